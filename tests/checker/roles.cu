// Roles of threads and warps: barrier objects, pipelines, cooperative groups, clusters.
#include <cuda/atomic>
#include <cuda/std/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
using Bar = cuda::barrier<cuda::thread_scope_block>;
// barrier arrives with a count of the block, each warp uses its own
//@ block=64
K warp_barriers_right(int* a, int n) {
  __shared__ Bar b[2]; __shared__ int s[64]; int t = threadIdx.x, w = t / 32;
  if (t % 32 == 0) init(&b[w], 32);
  __syncthreads();
  for (int i = 0; i < 3; i++) { s[t] = a[t] + i; b[w].arrive_and_wait(); a[t] = s[t ^ 1]; b[w].arrive_and_wait(); }
}
//@ block=64
K warp_barriers_crossed_wrong(int* a, int n) {
  __shared__ Bar b[2]; __shared__ int s[64]; int t = threadIdx.x, w = t / 32;
  if (t % 32 == 0) init(&b[w], 32);
  __syncthreads();
  for (int i = 0; i < 3; i++) { s[t] = a[t] + i; b[w].arrive_and_wait(); a[t] = s[t ^ 33]; b[w].arrive_and_wait(); }   //~ race
}
//@ block=64
K warp_barriers_once_wrong(int* a, int n) {
  __shared__ Bar b[2]; __shared__ int s[64]; int t = threadIdx.x, w = t / 32;
  if (t % 32 == 0) init(&b[w], 32);
  __syncthreads();
  for (int i = 0; i < 3; i++) { s[t] = a[t] + i; b[w].arrive_and_wait(); a[t] = s[t ^ 1]; }     //~ race
}
// arrive_and_drop by half of the block, the others go on
//@ block=64
K drop_right(int* a, int n) {
  __shared__ Bar b; __shared__ int s[64]; int t = threadIdx.x;
  if (t == 0) init(&b, 64);
  __syncthreads();
  s[t] = a[t];
  if (t >= 32) { b.arrive_and_drop(); return; }
  b.arrive_and_wait();
  int x = s[t + 32]; b.arrive_and_wait(); s[t] = x; b.arrive_and_wait(); a[t] = s[t ^ 3];
}
//@ block=64
K drop_before_writing_wrong(int* a, int n) {
  __shared__ Bar b; __shared__ int s[64]; int t = threadIdx.x;
  if (t == 0) init(&b, 64);
  __syncthreads();
  if (t >= 32) { b.arrive_and_drop(); s[t] = a[t]; return; }    //~ race
  b.arrive_and_wait();
  a[t] = s[t + 32];        //~ race
}
// producer warp / consumer warp with two barriers; consumers read the other stage
//@ block=64
K roles_right(const int* in, int* out) {
  __shared__ Bar full[2], empty[2]; __shared__ int s[2][32]; int t = threadIdx.x;
  if (t < 2) { init(&full[t], 64); init(&empty[t], 64); }
  __syncthreads();
  if (t < 32) for (int i = 0; i < 6; i++) {
    if (i >= 2) empty[i & 1].arrive_and_wait();
    s[i & 1][t] = in[i * 32 + t];
    (void)full[i & 1].arrive();
  } else for (int i = 0; i < 6; i++) {
    full[i & 1].arrive_and_wait();
    out[i * 32 + t - 32] = s[i & 1][63 - t];
    if (i < 4) (void)empty[i & 1].arrive();
  }
}
//@ block=64
K roles_empty_early_wrong(const int* in, int* out) {
  __shared__ Bar full[2], empty[2]; __shared__ int s[2][32]; int t = threadIdx.x;
  if (t < 2) { init(&full[t], 64); init(&empty[t], 64); }
  __syncthreads();
  if (t < 32) for (int i = 0; i < 6; i++) {
    if (i >= 2) empty[i & 1].arrive_and_wait();
    s[i & 1][t] = in[i * 32 + t];         //~ race
    (void)full[i & 1].arrive();
  } else for (int i = 0; i < 6; i++) {
    full[i & 1].arrive_and_wait();
    if (i < 4) (void)empty[i & 1].arrive();
    out[i * 32 + t - 32] = s[i & 1][63 - t];     //~ race
  }
}
//@ block=64
K roles_other_stage_wrong(const int* in, int* out) {
  __shared__ Bar full[2], empty[2]; __shared__ int s[2][32]; int t = threadIdx.x;
  if (t < 2) { init(&full[t], 64); init(&empty[t], 64); }
  __syncthreads();
  if (t < 32) for (int i = 0; i < 6; i++) {
    if (i >= 2) empty[i & 1].arrive_and_wait();
    s[i & 1][t] = in[i * 32 + t];       //~ race
    (void)full[i & 1].arrive();
  } else for (int i = 0; i < 6; i++) {
    full[i & 1].arrive_and_wait();
    out[i * 32 + t - 32] = s[~i & 1][63 - t];    //~ race
    if (i < 4) (void)empty[i & 1].arrive();
  }
}
// cooperative groups
//@ block=64
K cg_reduce_then_shared_wrong(int* a, int n) {
  __shared__ int part[2]; auto blk = cg::this_thread_block(); auto w = cg::tiled_partition<32>(blk);
  int s = cg::reduce(w, a[blk.thread_rank()], cg::plus<int>());
  if (w.thread_rank() == 0) part[w.meta_group_rank()] = s;          //~ race
  if (blk.thread_rank() == 0) a[0] = part[0] + part[1];             //~ race
}
//@ block=64
K cg_reduce_then_shared_right(int* a, int n) {
  __shared__ int part[2]; auto blk = cg::this_thread_block(); auto w = cg::tiled_partition<32>(blk);
  int s = cg::reduce(w, a[blk.thread_rank()], cg::plus<int>());
  if (w.thread_rank() == 0) part[w.meta_group_rank()] = s;
  blk.sync();
  if (blk.thread_rank() == 0) a[0] = part[0] + part[1];
}
//@ block=64
K cg_tile8_sync_wrong(int* a, int n) {
  __shared__ int s[64]; auto blk = cg::this_thread_block(); auto w = cg::tiled_partition<8>(blk); int t = threadIdx.x;
  s[t] = a[t]; w.sync(); a[t] = s[t ^ 8];      //~ race
}
//@ block=64
K cg_tile8_sync_right(int* a, int n) {
  __shared__ int s[64]; auto blk = cg::this_thread_block(); auto w = cg::tiled_partition<8>(blk); int t = threadIdx.x;
  s[t] = a[t]; w.sync(); a[t] = s[t ^ 4];
}
//@ block=64
K cg_scan_offsets_right(const int* in, int* out) {
  auto blk = cg::this_thread_block(); auto w = cg::tiled_partition<32>(blk); int t = threadIdx.x;
  int c = in[t] & 3, o = cg::exclusive_scan(w, c);
  for (int i = 0; i < c; i++) out[w.meta_group_rank() * 128 + o + i] = t;
}
//@ block=64
K cg_scan_offsets_wrong(const int* in, int* out) {
  auto blk = cg::this_thread_block(); auto w = cg::tiled_partition<32>(blk); int t = threadIdx.x;
  int c = in[t] & 3, o = cg::exclusive_scan(w, c);
  for (int i = 0; i < c; i++) out[o + i] = t;         //~ race
}
//@ block=64
K cg_coalesced_leader_right(const int* in, int* cnt, int* out) {
  int t = threadIdx.x;
  if (in[t] > 3) { auto g = cg::coalesced_threads(); int b; if (g.thread_rank() == 0) b = atomicAdd(cnt, g.size()); b = g.shfl(b, 0); out[(b & 63) + g.thread_rank()] = t; }
}
//@ block=64 zero
K cg_invoke_one_wrong(int* x, int n) {
  auto w = cg::tiled_partition<32>(cg::this_thread_block());
  if (w.thread_rank() == 0) x[0] += 1;     //~ race
}
//@ block=64 zero
K cg_block_one_right(int* x, int n) {
  if (cg::this_thread_block().thread_rank() == 0) x[0] += 1;
}
//@ grid=4 block=32 coop
K cg_grid_reverse_right(int* a, int* b) {
  auto g = cg::this_grid(); int t = g.thread_rank(); b[t] = a[t] + 1; g.sync(); a[t] = b[127 - t];
}
//@ grid=4 block=32 coop
K cg_grid_reverse_in_place_wrong(int* a, int* b) {
  auto g = cg::this_grid(); int t = g.thread_rank(); int x = a[127 - t]; g.sync(); a[t] = x; b[t] = a[t ^ 64];     //~ race
}
//@ grid=4 block=32 coop
K cg_grid_sync_by_some_right(int* a, int* b) {
  auto g = cg::this_grid(); int t = g.thread_rank();
  for (int i = 0; i < 3; i++) { if (g.block_rank() == i) a[threadIdx.x] += i; g.sync(); }
}
//@ block=64
K cg_memcpy_right(const int* in, int* out) {
  __shared__ int s[64]; auto b = cg::this_thread_block();
  cg::memcpy_async(b, s, in, sizeof(s)); cg::wait(b); out[threadIdx.x] = s[63 - threadIdx.x];
}
//@ block=64
K cg_memcpy_reuse_wrong(const int* in, int* out) {
  __shared__ int s[64]; auto b = cg::this_thread_block();
  for (int i = 0; i < 3; i++) {
    cg::memcpy_async(b, s, in + 64 * i, sizeof(s)); cg::wait(b);           //~ race
    out[64 * i + threadIdx.x] = s[63 - threadIdx.x];                       //~ race
  }
}
//@ block=64
K cg_memcpy_reuse_right(const int* in, int* out) {
  __shared__ int s[64]; auto b = cg::this_thread_block();
  for (int i = 0; i < 3; i++) {
    cg::memcpy_async(b, s, in + 64 * i, sizeof(s)); cg::wait(b);
    out[64 * i + threadIdx.x] = s[63 - threadIdx.x];
    b.sync();
  }
}
// pipelines
//@ block=64
K pipe_three_stages_right(const int* in, int* out) {
  __shared__ int s[3][64]; int t = threadIdx.x;
  auto p = cuda::make_pipeline();
  for (int i = 0; i < 2; i++) { p.producer_acquire(); cuda::memcpy_async(&s[i][t], &in[64 * i + t], sizeof(int), p); p.producer_commit(); }
  for (int i = 0; i < 6; i++) {
    p.producer_acquire(); if (i + 2 < 6) cuda::memcpy_async(&s[(i + 2) % 3][t], &in[64 * (i + 2) + t], sizeof(int), p); p.producer_commit();
    cuda::pipeline_consumer_wait_prior<2>(p); __syncthreads();
    out[64 * i + t] = s[i % 3][63 - t];
    p.consumer_release(); __syncthreads();
  }
}
//@ block=64
K pipe_wait_too_few_wrong(const int* in, int* out) {
  __shared__ int s[3][64]; int t = threadIdx.x;
  auto p = cuda::make_pipeline();
  for (int i = 0; i < 2; i++) { p.producer_acquire(); cuda::memcpy_async(&s[i][t], &in[64 * i + t], sizeof(int), p); p.producer_commit(); }    //~ race
  for (int i = 0; i < 6; i++) {
    p.producer_acquire(); if (i + 2 < 6) cuda::memcpy_async(&s[(i + 2) % 3][t], &in[64 * (i + 2) + t], sizeof(int), p); p.producer_commit();
    cuda::pipeline_consumer_wait_prior<3>(p); __syncthreads();
    out[64 * i + t] = s[i % 3][63 - t];     //~ race
    p.consumer_release(); __syncthreads();
  }
}
//@ block=64
K pipe_two_buffers_wrong(const int* in, int* out) {
  __shared__ int s[2][64]; int t = threadIdx.x;
  auto p = cuda::make_pipeline();
  for (int i = 0; i < 2; i++) { p.producer_acquire(); cuda::memcpy_async(&s[i][t], &in[64 * i + t], sizeof(int), p); p.producer_commit(); }
  for (int i = 0; i < 6; i++) {
    p.producer_acquire(); if (i + 2 < 6) cuda::memcpy_async(&s[(i + 2) % 2][t], &in[64 * (i + 2) + t], sizeof(int), p); p.producer_commit();   //~ race
    cuda::pipeline_consumer_wait_prior<2>(p); __syncthreads();
    out[64 * i + t] = s[i % 2][63 - t];      //~ race
    p.consumer_release(); __syncthreads();
  }
}
// cluster
//@ grid=4 block=32 cluster=2
K cluster_swap_right(int* a, int n) {
  __shared__ int s[32]; auto c = cg::this_cluster(); int t = threadIdx.x, g = blockIdx.x * 32 + t;
  s[t] = a[g]; c.sync(); int x = c.map_shared_rank(s, c.block_rank() ^ 1)[31 - t]; c.sync(); a[g] = x;
}
//@ grid=4 block=32 cluster=2
K cluster_swap_leaves_wrong(int* a, int n) {
  __shared__ int s[32]; auto c = cg::this_cluster(); int t = threadIdx.x, g = blockIdx.x * 32 + t;
  s[t] = a[g]; c.sync(); a[g] = c.map_shared_rank(s, c.block_rank() ^ 1)[31 - t];    //~ race
}
//@ grid=4 block=32 cluster=2
K cluster_block_sync_only_wrong(int* a, int n) {
  __shared__ int s[32]; auto c = cg::this_cluster(); int t = threadIdx.x, g = blockIdx.x * 32 + t;
  s[t] = a[g]; __syncthreads(); int x = c.map_shared_rank(s, c.block_rank() ^ 1)[31 - t]; c.sync(); a[g] = x;    //~ race
}
//@ grid=4 block=32 cluster=2
K cluster_add_plain_wrong(int* a, int n) {
  __shared__ int s; auto c = cg::this_cluster(); int t = threadIdx.x;
  if (t == 0) s = 0; c.sync();
  if (t == 0) *c.map_shared_rank(&s, 0) += 1;     //~ race
  c.sync(); if (t == 0) a[blockIdx.x] = s;
}
//@ grid=4 block=32 cluster=2
K cluster_add_atomic_right(int* a, int n) {
  __shared__ int s; auto c = cg::this_cluster(); int t = threadIdx.x;
  if (t == 0) s = 0; c.sync();
  if (t == 0) atomicAdd(c.map_shared_rank(&s, 0), 1);
  c.sync(); if (t == 0) a[blockIdx.x] = s;
}
//@ grid=4 block=32 cluster=2
K cluster_add_narrow_wrong(int* a, int n) {
  __shared__ int s; auto c = cg::this_cluster(); int t = threadIdx.x;
  if (t == 0) s = 0; c.sync();
  if (t == 0) cuda::atomic_ref<int, cuda::thread_scope_block>(*c.map_shared_rank(&s, 0)).fetch_add(1, cuda::memory_order_relaxed);    //~ race
  c.sync(); if (t == 0) a[blockIdx.x] = s;
}
//@ block=64 zero
K flag_test_and_set_right(int* lock, int* d) {
  if (threadIdx.x % 32) return;
  auto& f = *(cuda::std::atomic_flag*)lock;
  while (f.test_and_set(cuda::memory_order_acquire)) {}
  d[0]++;
  f.clear(cuda::memory_order_release);
}
//@ block=64 zero
K flag_test_and_set_relaxed_wrong(int* lock, int* d) {
  if (threadIdx.x % 32) return;
  auto& f = *(cuda::std::atomic_flag*)lock;
  while (f.test_and_set(cuda::memory_order_relaxed)) {}
  d[0]++;       //~ race
  f.clear(cuda::memory_order_release);
}
