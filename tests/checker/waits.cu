// Asynchronous copies without a wait, and with one that is too early, too late or of the wrong thread.
#include <cuda_pipeline.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
typedef unsigned long long u64;
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void binit(u64* b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ void expect(u64* b, int n) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1; }" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ void wait(u64* b, int parity) {
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; }" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ void bulk(void* d, const void* s, int n, u64* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at(d)), "l"(__cvta_generic_to_global(s)), "r"(n), "r"(at(b)) : "memory");
}

//@ block=64
K cp16_wrong(int* g, int n) {
  __shared__ alignas(16) int s[256]; int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at(s + 4 * t)), "l"(g + 4 * t) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  g[512 + t] = s[4 * t];  //~ race
}
//@ block=64
K cp16_no_commit_wrong(int* g, int n) {    // wait_group 0 without a commit waits for nothing
  __shared__ alignas(16) int s[256]; int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at(s + 4 * t)), "l"(g + 4 * t) : "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  g[512 + t] = s[4 * t];  //~ race
}
//@ block=64
K cp16_wait_all_right(int* g, int n) {
  __shared__ alignas(16) int s[256]; int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at(s + 4 * t)), "l"(g + 4 * t) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  g[512 + t] = s[(4 * t + 100) & 255];
}
//@ block=64
K cp_overwritten_source_wrong(int* g, int n) {   // the source is overwritten while it is copied
  __shared__ alignas(16) int s[64]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &g[t], 4);  //~ race
  __pipeline_commit();
  g[t] = 7;  //~ race
  __pipeline_wait_prior(0);
  g[512 + t] = s[t];
}
//@ block=64
K cp_overwritten_dest_wrong(int* g, int n) {   // the tile is refilled while others read it
  __shared__ alignas(16) int s[64]; int t = threadIdx.x, a = 0;
  for (int k = 0; k < 3; k++) {
    __pipeline_memcpy_async(&s[t], &g[64 * k + t], 4);  //~ race
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    a += s[63 - t];  //~ race
  }
  g[512 + t] = a;
}
//@ block=64
K cp_double_right(int* g, int n) {
  __shared__ alignas(16) int s[2][64]; int t = threadIdx.x, a = 0;
  __pipeline_memcpy_async(&s[0][t], &g[t], 4); __pipeline_commit();
  for (int k = 0; k < 4; k++) {
    if (k < 3) __pipeline_memcpy_async(&s[(k + 1) & 1][t], &g[64 * (k + 1) + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    a += s[k & 1][63 - t];
    __syncthreads();
  }
  g[512 + t] = a;
}
//@ block=64
K cp_double_no_second_barrier_wrong(int* g, int n) {
  __shared__ alignas(16) int s[2][64]; int t = threadIdx.x, a = 0;
  __pipeline_memcpy_async(&s[0][t], &g[t], 4); __pipeline_commit();
  for (int k = 0; k < 4; k++) {
    if (k < 3) __pipeline_memcpy_async(&s[(k + 1) & 1][t], &g[64 * (k + 1) + t], 4);  //~ race
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    a += s[k & 1][63 - t];  //~ race
  }
  g[512 + t] = a;
}
//@ block=64
K group_copy_no_wait_wrong(int* g, int n) {
  __shared__ int s[64]; auto b = cg::this_thread_block(); int t = threadIdx.x;
  cg::memcpy_async(b, s, g, sizeof s);
  __syncthreads();
  g[512 + t] = s[t];  //~ race
}
//@ block=64
K group_copy_right(int* g, int n) {
  __shared__ int s[64]; auto b = cg::this_thread_block(); int t = threadIdx.x;
  cg::memcpy_async(b, s, g, sizeof s);
  cg::wait(b);
  g[512 + t] = s[63 - t];
}
//@ block=64
K barrier_copy_right(int* g, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar; __shared__ int s[64];
    auto b = cg::this_thread_block(); int t = threadIdx.x;
  if (t == 0) init(&bar, 64);
  b.sync();
  cuda::memcpy_async(b, s, g, sizeof s, bar);
  bar.arrive_and_wait();
  g[512 + t] = s[63 - t];
}
//@ block=64
K barrier_copy_no_wait_wrong(int* g, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar; __shared__ int s[64];
    auto b = cg::this_thread_block(); int t = threadIdx.x;
  if (t == 0) init(&bar, 64);
  b.sync();
  cuda::memcpy_async(b, s, g, sizeof s, bar);
  auto token = bar.arrive();
  g[512 + t] = s[63 - t];  //~ race
  bar.wait(std::move(token));
}
//@ block=64
K pipeline_two_stage_right(int* g, int n) {
  constexpr auto S = cuda::thread_scope_block;
  __shared__ cuda::pipeline_shared_state<S, 2> st; __shared__ int s[2][64];
  auto b = cg::this_thread_block(); int t = threadIdx.x, a = 0;
  auto p = cuda::make_pipeline(b, &st);
  p.producer_acquire(); cuda::memcpy_async(b, s[0], g, sizeof s[0], p); p.producer_commit();
  for (int k = 0; k < 4; k++) {
    if (k < 3) { p.producer_acquire(); cuda::memcpy_async(b, s[(k + 1) & 1], g + 64 * (k + 1), sizeof s[0], p);
    p.producer_commit(); }
    p.consumer_wait();
    a += s[k & 1][63 - t];
    p.consumer_release();
  }
  g[512 + t] = a;
}
//@ block=64
K pipeline_early_release_wrong(int* g, int n) {
  constexpr auto S = cuda::thread_scope_block;
  __shared__ cuda::pipeline_shared_state<S, 2> st; __shared__ int s[2][64];
  auto b = cg::this_thread_block(); int t = threadIdx.x, a = 0;
  auto p = cuda::make_pipeline(b, &st);
  p.producer_acquire(); cuda::memcpy_async(b, s[0], g, sizeof s[0], p); p.producer_commit();
  for (int k = 0; k < 4; k++) {
    if (k < 3) { p.producer_acquire(); cuda::memcpy_async(b, s[(k + 1) & 1], g + 64 * (k + 1), sizeof s[0], p);
    p.producer_commit(); }
    p.consumer_wait();
    p.consumer_release();
    a += s[k & 1][63 - t];  //~ race
  }
  g[512 + t] = a;
}
//@ block=64
K bulk_right(int* g, int n) {
  __shared__ alignas(128) int s[64]; __shared__ u64 b; int t = threadIdx.x;
  if (t == 0) binit(&b, 1);
  __syncthreads();
  if (t == 0) { expect(&b, 256); bulk(s, g, 256, &b); }
  wait(&b, 0);
  g[512 + t] = s[63 - t];
}
//@ block=64
K bulk_no_wait_wrong(int* g, int n) {
  __shared__ alignas(128) int s[64]; __shared__ u64 b; int t = threadIdx.x;
  if (t == 0) binit(&b, 1);
  __syncthreads();
  if (t == 0) { expect(&b, 256); bulk(s, g, 256, &b); }  //~ race
  __syncthreads();
  g[512 + t] = s[63 - t];  //~ race
}
//@ block=64
K bulk_one_waits_wrong(int* g, int n) {     // only thread 0 waits, no barrier
  __shared__ alignas(128) int s[64]; __shared__ u64 b; int t = threadIdx.x;
  if (t == 0) binit(&b, 1);
  __syncthreads();
  if (t == 0) { expect(&b, 256); bulk(s, g, 256, &b); wait(&b, 0); }
  g[512 + t] = s[63 - t];  //~ race
}
//@ block=64
K bulk_one_waits_barrier_right(int* g, int n) {
  __shared__ alignas(128) int s[64]; __shared__ u64 b; int t = threadIdx.x;
  if (t == 0) binit(&b, 1);
  __syncthreads();
  if (t == 0) { expect(&b, 256); bulk(s, g, 256, &b); wait(&b, 0); }
  __syncthreads();
  g[512 + t] = s[63 - t];
}
//@ block=64
K bulk_reuse_right(int* g, int n) {
  __shared__ alignas(128) int s[64]; __shared__ u64 b; int t = threadIdx.x, a = 0;
  if (t == 0) binit(&b, 1);
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    if (t == 0) { expect(&b, 256); bulk(s, g + 64 * k, 256, &b); }
    wait(&b, k & 1);
    a += s[63 - t];
    __syncthreads();
  }
  g[512 + t] = a;
}
//@ block=64
K bulk_store_reuse_wrong(int* g, int n) {    // the tile is overwritten while it is stored
  __shared__ alignas(128) int s[64]; int t = threadIdx.x;
  for (int k = 0; k < 2; k++) {
    s[t] = t + k;  //~ race
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(__cvta_generic_to_global(g + 64 * k)), "r"(at(s)) : "memory");  //~ race
      asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
    __syncthreads();
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
//@ block=64
K bulk_store_reuse_right(int* g, int n) {
  __shared__ alignas(128) int s[64]; int t = threadIdx.x;
  for (int k = 0; k < 2; k++) {
    s[t] = t + k;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(__cvta_generic_to_global(g + 64 * k)), "r"(at(s)) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
    __syncthreads();
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
//@ block=64
K bulk_store_read_back_wrong(int* g, int n) {    // .read only waits for the source
  __shared__ alignas(128) int s[64]; int t = threadIdx.x;
  s[t] = t;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(__cvta_generic_to_global(g)), "r"(at(s)) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); 
      g[512] = g[3]; }  //~ race
}
