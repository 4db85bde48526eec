// Copies that store the same, atomics of several sizes, and shuffles by a part of a warp.
#define K extern "C" __global__ void
typedef unsigned long long u64;
__device__ unsigned at(void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void push(int* to, void* from) {
  asm volatile("fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" :: "l"(to), "r"(at(from)) : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

// Two CTAs copy the same to one place.
//@ grid=2 block=32
K copies_alike_right(int* g, int n) {
  __shared__ __align__(16) int s[32]; int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  if (t == 0) push(g, s);
}
//@ grid=2 block=32
K copies_unlike_wrong(int* g, int n) {
  __shared__ __align__(16) int s[32]; int t = threadIdx.x;
  s[t] = t + (t == 15 ? blockIdx.x : 0);
  __syncthreads();
  if (t == 0) asm volatile("fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" :: "l"(g), "r"(at(s)) : "memory");  //~ race
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

// A wide read of two counters: the warp's own additions come later, those of others at any time.
//@ block=96
K wide_read_wrong(int* g, int n) {
  __shared__ u64 s[2]; int t = threadIdx.x;
  if (t == 0) s[0] = 0;
  __syncthreads();
  if (t == 3) { u64 v; asm volatile("ld.relaxed.cta.shared.b64 %0, [%1];" : "=l"(v) : "r"(at(s)) : "memory"); g[0] = (int)v; }  //~ race
  __syncwarp();
  atomicAdd((int*)s, 1);                                                                                                        //~ race
  __syncthreads();
  if (t == 0) g[1] = ((int*)s)[0];
}
//@ block=96
K wide_read_right(int* g, int n) {
  __shared__ u64 s[2]; int t = threadIdx.x;
  if (t == 0) s[0] = 0;
  __syncthreads();
  if (t == 3) { u64 v; asm volatile("ld.relaxed.cta.shared.b64 %0, [%1];" : "=l"(v) : "r"(at(s)) : "memory"); g[0] = (int)v; }
  __syncthreads();
  atomicAdd((int*)s, 1);
  __syncthreads();
  if (t == 0) g[1] = ((int*)s)[0];
}

// Sums by the first lanes only: what the last of them get comes from nowhere, and nobody uses it.
//@ block=32
K half_sum_right(int* g, int n) {
  int t = threadIdx.x;
  if (t < 16) {
    int v = g[t];
    for (int d = 8; d; d /= 2) v += __shfl_down_sync(0xffff, v, d);
    if (t == 0) g[64] = v;
  }
}
//@ block=32
K half_sum_wrong(int* g, int n) {               // one step too many
  int t = threadIdx.x;
  if (t < 16) {
    int v = g[t];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffff, v, d);   //~ synchronization
    if (t == 0) g[64] = v;
  }
}
// A stage by one lane for each warp.
K last_stage_right(int* g, int n) {
  __shared__ int s[4]; int t = threadIdx.x, v = g[t];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (t % 32 == 0) s[t / 32] = v;
  __syncthreads();
  if (t < 4) {
    v = s[t];
    for (int d = 2; d; d /= 2) v += __shfl_down_sync(0xf, v, d);
    if (t == 0) g[512] = v;
  }
}
K last_stage_wrong(int* g, int n) {             // as if all lanes took part
  __shared__ int s[4]; int t = threadIdx.x, v = g[t];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (t % 32 == 0) s[t / 32] = v;
  __syncthreads();
  if (t < 4) {
    v = s[t];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xf, v, d);      //~ synchronization
    if (t == 0) g[512] = v;
  }
}
// What came from nowhere goes through shared memory, or decides a branch.
//@ block=32
K kept_stray_wrong(int* g, int n) {
  __shared__ int s[16]; int t = threadIdx.x;
  if (t < 16) s[t] = __shfl_down_sync(0xffff, g[t], 4);                //~ synchronization
  __syncthreads();
  if (t < 16) g[64 + t] = s[t];
}
//@ block=32
K kept_stray_right(int* g, int n) {
  __shared__ int s[16]; int t = threadIdx.x;
  if (t < 16) { int v = __shfl_down_sync(0xffff, g[t], 4); if (t < 12) s[t] = v; }
  __syncthreads();
  if (t < 12) g[64 + t] = s[t];
}
//@ block=32
K branch_on_stray_wrong(int* g, int n) {
  int t = threadIdx.x;
  if (t < 16) { int v = __shfl_xor_sync(0xffff, g[t], 16); if (v > 4) g[64 + t] = 1; }   //~ synchronization
}
//@ block=32
K branch_on_stray_right(int* g, int n) {
  int t = threadIdx.x;
  if (t < 16) { int v = __shfl_xor_sync(0xffff, g[t], 8); if (v > 4) g[64 + t] = 1; }
}
