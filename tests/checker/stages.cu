// Stages: barriers with names and counts, arrivals apart from waits, pipelines, clusters.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
using Bar = cuda::barrier<cuda::thread_scope_block>;

//@ block=128
K cuda_barrier_tx_right(const int* g, int* out) {
  __shared__ alignas(128) int s[128];
  #pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Bar bar;
  int t = threadIdx.x;
  if (t == 0) { init(&bar, blockDim.x); cuda::device::experimental::fence_proxy_async_shared_cta(); }
  __syncthreads();
  Bar::arrival_token tok;
  if (t == 0) { cuda::device::experimental::cp_async_bulk_global_to_shared(s, g, 512, bar); tok = cuda::device::barrier_arrive_tx(bar, 1, 512); }
  else tok = bar.arrive();
  bar.wait(std::move(tok));
  out[t] = s[127 - t];
}
//@ block=128
K cuda_barrier_tx_not_waited_wrong(const int* g, int* out) {
  __shared__ alignas(128) int s[128];
  __shared__ Bar bar;
  int t = threadIdx.x;
  if (t == 0) { init(&bar, blockDim.x); cuda::device::experimental::fence_proxy_async_shared_cta(); }
  __syncthreads();
  Bar::arrival_token tok;
  if (t == 0) { cuda::device::experimental::cp_async_bulk_global_to_shared(s, g, 512, bar); tok = cuda::device::barrier_arrive_tx(bar, 1, 512); }
  else tok = bar.arrive();
  int v = s[127 - t];      //~ race
  bar.wait(std::move(tok));
  out[t] = v;
}
//@ block=128
K cuda_barrier_split_right(const int* g, int* out) {
  __shared__ int s[128]; __shared__ Bar bar;
  int t = threadIdx.x, n = blockDim.x;
  if (t == 0) init(&bar, n);
  __syncthreads();
  s[t] = g[t];
  auto tok = bar.arrive();
  int own = s[t] * 2;
  bar.wait(std::move(tok));
  out[t] = s[n - 1 - t] + own;
}
//@ block=128
K cuda_barrier_write_after_arrive_wrong(const int* g, int* out) {
  __shared__ int s[128]; __shared__ Bar bar;
  int t = threadIdx.x, n = blockDim.x;
  if (t == 0) init(&bar, n);
  __syncthreads();
  auto tok = bar.arrive();
  s[t] = g[t];        //~ race
  bar.wait(std::move(tok));
  out[t] = s[n - 1 - t];   //~ race
}
//@ block=128
K pipe_block_right(const int* g, int* out) {
  constexpr int S = 2; __shared__ int s[S][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, S> st;
  auto b = cg::this_thread_block(); int t = threadIdx.x, n = blockDim.x;
  auto p = cuda::make_pipeline(b, &st);
  int a = 0;
  for (int k = 0, f = 0; k < 5; k++) {
    for (; f < 5 && f < k + S; f++) { p.producer_acquire(); cuda::memcpy_async(b, s[f % S], g + f * n, sizeof(int) * n, p); p.producer_commit(); }
    p.consumer_wait(); a += s[k % S][n - 1 - t]; p.consumer_release();
  }
  out[t] = a;
}
//@ block=128
K pipe_thread_no_sync_wrong(const int* g, int* out) {    // a thread's pipeline orders nothing for the others
  constexpr int S = 2; __shared__ int s[S][128];
  auto b = cg::this_thread_block(); int t = threadIdx.x, n = blockDim.x;
  auto p = cuda::make_pipeline();
  int a = 0;
  for (int k = 0, f = 0; k < 5; k++) {
    for (; f < 5 && f < k + S; f++) { p.producer_acquire(); cuda::memcpy_async(&s[f % S][t], g + f * n + t, sizeof(int), p); p.producer_commit(); }   //~ race
    p.consumer_wait(); a += s[k % S][n - 1 - t]; p.consumer_release();   //~ race
  }
  out[t] = a;
}
//@ block=128
K pipe_thread_one_sync_wrong(const int* g, int* out) {    // the barrier before the slot is filled again is missing
  constexpr int S = 2; __shared__ int s[S][128];
  int t = threadIdx.x, n = blockDim.x;
  auto p = cuda::make_pipeline();
  int a = 0;
  for (int k = 0, f = 0; k < 5; k++) {
    for (; f < 5 && f < k + S; f++) { p.producer_acquire(); cuda::memcpy_async(&s[f % S][t], g + f * n + t, sizeof(int), p); p.producer_commit(); }   //~ race
    p.consumer_wait(); __syncthreads(); a += s[k % S][n - 1 - t]; p.consumer_release();   //~ race
  }
  out[t] = a;
}
//@ block=128
K pipe_thread_right(const int* g, int* out) {
  constexpr int S = 2; __shared__ int s[S][128];
  int t = threadIdx.x, n = blockDim.x;
  auto p = cuda::make_pipeline();
  int a = 0;
  for (int k = 0, f = 0; k < 5; k++) {
    for (; f < 5 && f < k + S; f++) { p.producer_acquire(); cuda::memcpy_async(&s[f % S][t], g + f * n + t, sizeof(int), p); p.producer_commit(); }
    cuda::pipeline_consumer_wait_prior<S - 1>(p); 
    if (f == 5) cuda::pipeline_consumer_wait_prior<0>(p);
    __syncthreads(); a += s[k % S][n - 1 - t]; __syncthreads(); p.consumer_release();
  }
  out[t] = a;
}
//@ block=128
K pipe_prior_one_too_many_wrong(const int* g, int* out) {   // the last stage is read while its copy may be under way
  constexpr int S = 2; __shared__ int s[S][128];
  int t = threadIdx.x, n = blockDim.x;
  int a = 0;
  for (int k = 0, f = 0; k < 5; k++) {
    for (; f < 5 && f < k + S; f++) { __pipeline_memcpy_async(&s[f % S][t], g + f * n + t, 4); __pipeline_commit(); }   //~ race
    __pipeline_wait_prior(S - 1);
    __syncthreads(); a += s[k % S][n - 1 - t]; __syncthreads();  //~ race
  }
  out[t] = a;
}
//@ block=64
K named_ping_pong_right(int* g) {
  __shared__ int s[32];
  int t = threadIdx.x, l = t & 31;
  for (int k = 0; k < 4; k++) {
    if (t < 32) { s[l] = k + l; asm volatile("bar.arrive 1, 64;" ::: "memory"); asm volatile("bar.sync 2, 64;" ::: "memory"); }
    else { asm volatile("bar.sync 1, 64;" ::: "memory"); g[k * 32 + l] = s[31 - l]; asm volatile("bar.arrive 2, 64;" ::: "memory"); }
  }
}
//@ block=64
K named_no_back_wrong(int* g) {
  __shared__ int s[32];
  int t = threadIdx.x, l = t & 31;
  for (int k = 0; k < 4; k++) {
    if (t < 32) { s[l] = k + l; asm volatile("bar.arrive 1, 64;" ::: "memory"); }   //~ fault
    else { asm volatile("bar.sync 1, 64;" ::: "memory"); g[k * 32 + l] = s[31 - l]; }
  }
}
//@ block=64
K named_arrive_first_wrong(int* g) {
  __shared__ int s[32];
  int t = threadIdx.x, l = t & 31;
  if (t < 32) { asm volatile("bar.arrive 1, 64;" ::: "memory"); s[l] = l; }   //~ race
  else { asm volatile("bar.sync 1, 64;" ::: "memory"); g[l] = s[31 - l]; }    //~ race
}
//@ block=128
K named_groups_right(int* g) {    // two groups of 64 with barriers of their own
  __shared__ int s[128];
  int t = threadIdx.x, h = t / 64;
  s[t] = g[t];
  asm volatile("bar.sync %0, 64;" :: "r"(h + 1) : "memory");
  g[t + 128] = s[h * 64 + 63 - (t & 63)];
}
//@ block=128
K named_groups_across_wrong(int* g) {
  __shared__ int s[128];
  int t = threadIdx.x, h = t / 64;
  s[t] = g[t];   //~ race
  asm volatile("bar.sync %0, 64;" :: "r"(h + 1) : "memory");
  g[t + 128] = s[127 - t];  //~ race
}
//@ block=128
K named_count_too_small_wrong(int* g) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = g[t];   //~ race
  asm volatile("bar.sync 1, 64;" ::: "memory");   //~ synchronization
  g[t + 128] = s[127 - t];  //~ race
}
//@ grid=2 cluster=2 block=64
K cluster_ring_right(int* g) {
  __shared__ int s[64]; int t = threadIdx.x; auto c = cg::this_cluster();
  s[t] = g[t] + c.block_rank();
  c.sync();
  int v = c.map_shared_rank(s, c.block_rank() ^ 1)[63 - t];
  c.sync();
  s[t] = v;
  c.sync();
  g[128 + t + 64 * blockIdx.x] = c.map_shared_rank(s, c.block_rank() ^ 1)[t];
  c.sync();
}
//@ grid=2 cluster=2 block=64
K cluster_ring_no_second_wrong(int* g) {
  __shared__ int s[64]; int t = threadIdx.x; auto c = cg::this_cluster();
  s[t] = g[t] + c.block_rank();
  c.sync();
  int v = c.map_shared_rank(s, c.block_rank() ^ 1)[63 - t];   //~ race
  __syncthreads();
  s[t] = v;                                                   //~ race
  c.sync();
  g[128 + t + 64 * blockIdx.x] = c.map_shared_rank(s, c.block_rank() ^ 1)[t];
  c.sync();
}
