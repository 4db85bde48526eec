// Asynchronous copies, barrier objects and clusters.
#include <cuda_pipeline.h>
#define K extern "C" __global__ void
typedef unsigned long long u64;
__device__ unsigned at(void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ void arrive(u64* b) { asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" :: "r"(at(b)) : "memory"); }
__device__ void wait(u64* b, int parity) {
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; }" :: "r"(at(b)), "r"(parity) : "memory");
}

//@ arch=80
K copy_wrong(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &g[t], 4);
  __pipeline_commit();
  g[t + 128] = s[t] + 1;                              //~ race
}
K copy_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &g[t], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  g[t + 128] = s[t] + 1;
}
K copy_no_barrier_wrong(int* g, int n) {              // the wait is the thread's own
  __shared__ int s[128]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &g[t], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  g[t + 128] = s[t ^ 1] + 1;                          //~ race
}
K copy_barrier_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &g[t], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  g[t + 128] = s[t ^ 1] + 1;
}
K copy_barrier_first_wrong(int* g, int n) {           // the barrier does not wait for copies
  __shared__ int s[128]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &g[t], 4);
  __pipeline_commit();
  __syncthreads();
  __pipeline_wait_prior(0);
  g[t + 128] = s[t ^ 1] + 1;                          //~ race
}
K stages_wrong(int* g, int n) {                       // waits for all but one group more than it should
  __shared__ int s[2][128]; int t = threadIdx.x, a = 0;
  __pipeline_memcpy_async(&s[0][t], &g[t], 4);
  __pipeline_commit();
  for (int k = 0; k < n; k++) {
    __pipeline_memcpy_async(&s[(k + 1) & 1][t], &g[(k + 1) * 128 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(2);
    a += s[k & 1][t];                                 //~ race
  }
  __pipeline_wait_prior(0);
  g[t + 800] = a;
}
K stages_right(int* g, int n) {
  __shared__ int s[2][128]; int t = threadIdx.x, a = 0;
  __pipeline_memcpy_async(&s[0][t], &g[t], 4);
  __pipeline_commit();
  for (int k = 0; k < n; k++) {
    __pipeline_memcpy_async(&s[(k + 1) & 1][t], &g[(k + 1) * 128 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    a += s[k & 1][t];
  }
  __pipeline_wait_prior(0);
  g[t + 800] = a;
}
K object_wrong(int* g, int n) {                       // arrives before it writes
  __shared__ u64 b; __shared__ int s[128]; int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  arrive(&b);
  s[t] = g[t];                                        //~ race
  wait(&b, 0);
  g[t + 128] = s[127 - t];                            //~ race
}
K object_right(int* g, int n) {
  __shared__ u64 b; __shared__ int s[128]; int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  s[t] = g[t];
  arrive(&b);
  wait(&b, 0);
  g[t + 128] = s[127 - t];
}
//@ block=64
K object_phases_right(int* g, int n) {
  __shared__ u64 b; __shared__ int s[64]; int t = threadIdx.x, a = 0;
  if (t == 0) init(&b, 64);
  __syncthreads();
  for (int k = 0; k < n; k++) {
    s[t] = g[k * 64 + t];
    arrive(&b);
    wait(&b, 0);
    a += s[63 - t];
    arrive(&b);
    wait(&b, 1);
  }
  g[t + 600] = a;
}
//@ block=64
K object_phases_wrong(int* g, int n) {                // one phase a turn: the next turn writes too early
  __shared__ u64 b; __shared__ int s[64]; int t = threadIdx.x, a = 0;
  if (t == 0) init(&b, 64);
  __syncthreads();
  for (int k = 0; k < n; k++) {
    s[t] = g[k * 64 + t];                            //~ race
    arrive(&b);
    wait(&b, k & 1);
    a += s[63 - t];                                  //~ race
  }
  g[t + 600] = a;
}
K copy_object_right(int* g, int n) {
  __shared__ u64 b; __shared__ int s[128]; int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  __pipeline_memcpy_async(&s[t], &g[t], 4);
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(at(&b)) : "memory");
  wait(&b, 0);
  g[t + 128] = s[127 - t];
}
K copy_object_wrong(int* g, int n) {                  // arrives at once and not when the copies are complete
  __shared__ u64 b; __shared__ int s[128]; int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  __pipeline_memcpy_async(&s[t], &g[t], 4);
  arrive(&b);
  wait(&b, 0);
  g[t + 128] = s[127 - t];                            //~ race
}
K init_wrong(int* g, int n) {                         // others use the object before it is made
  __shared__ u64 b; int t = threadIdx.x;
  if (t == 0) init(&b, 64);                           //~ race
  if (t < 64) arrive(&b);                             //~ race
}
K init_right(int* g, int n) {
  __shared__ u64 b; int t = threadIdx.x;
  if (t == 0) init(&b, 64);
  __syncthreads();
  if (t < 64) arrive(&b);
}
K bulk_right(int* g, int n) {
  __shared__ alignas(16) int s[128]; __shared__ u64 b; int t = threadIdx.x;
  if (t == 0) init(&b, 1);
  __syncthreads();
  if (t == 0) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], 512; }" :: "r"(at(&b)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" :: "r"(at(s)), "l"(g), "r"(at(&b)) : "memory");
  }
  wait(&b, 0);
  g[t + 128] = s[t];
}
K bulk_wrong(int* g, int n) {
  __shared__ alignas(16) int s[128]; __shared__ u64 b; int t = threadIdx.x;
  if (t == 0) init(&b, 1);
  __syncthreads();
  if (t == 0) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], 512; }" :: "r"(at(&b)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" :: "r"(at(s)), "l"(g), "r"(at(&b)) : "memory");
  }
  __syncthreads();
  g[t + 128] = s[t];                                  //~ race
}
//@ grid=2 cluster=2
K cluster_wrong(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x; unsigned rank, remote;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  s[t] = g[t] + rank;                                 //~ race
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(at(&s[t])), "r"(rank ^ 1));
  int v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(remote) : "memory");   //~ race
  g[256 + rank * 128 + t] = v;
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
//@ grid=2 cluster=2
K cluster_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x; unsigned rank, remote;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  s[t] = g[t] + rank;
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(at(&s[t])), "r"(rank ^ 1));
  int v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(remote) : "memory");
  g[256 + rank * 128 + t] = v;
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
//@ grid=2 cluster=2
K cluster_relaxed_wrong(int* g, int n) {              // an arrival without release
  __shared__ int s[128]; int t = threadIdx.x; unsigned rank, remote;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  s[t] = g[t] + rank;                                 //~ race
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(at(&s[t])), "r"(rank ^ 1));
  int v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(remote) : "memory");   //~ race
  g[256 + rank * 128 + t] = v;
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
//@ grid=1 block=64
K bulk_store_reuse_right(int* g, int n) {      // `.read`: the source may be written again
  __shared__ __align__(128) int s[64]; int t = threadIdx.x;
  for (int i = 0; i < 3; i++) {
    s[t] = t + i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(g + 64 * i), "r"(at(s)) : "memory");
      asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
}
//@ grid=1 block=64
K bulk_store_reuse_wrong(int* g, int n) {      // one group may still read
  __shared__ __align__(128) int s[64]; int t = threadIdx.x;
  for (int i = 0; i < 3; i++) {
    s[t] = t + i;                                                                                         //~ race
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(g + 64 * i), "r"(at(s)) : "memory");  //~ race
      asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 1;" ::: "memory");
    }
    __syncthreads();
  }
}
//@ grid=1 block=64
K bulk_store_result_right(int* g, int n) {
  __shared__ __align__(128) int s[64]; int t = threadIdx.x;
  s[t] = t;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(g), "r"(at(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
  __syncthreads();
  g[64 + t] = g[t];
}
//@ grid=1 block=64
K bulk_store_result_wrong(int* g, int n) {     // `.read` says nothing of what is written
  __shared__ __align__(128) int s[64]; int t = threadIdx.x;
  s[t] = t;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(g), "r"(at(s)) : "memory");   //~ race
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  __syncthreads();
  g[64 + t] = g[t];                                                                                       //~ race
}
