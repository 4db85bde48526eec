// Barriers and warps: conditions that differ, joins, early exits, masks, warp-synchronous code; clusters and copies.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda/barrier>
#define K extern "C" __global__ void
#define ALL 0xffffffffu
namespace cg = cooperative_groups;

//@ block=128
K skipped_at_end_wrong(int* g, int n) {                                     // nothing follows but the end
  __shared__ int s[128]; int t = threadIdx.x, x = g[t];
  s[t] = x;
  if (x & 1) { x += s[t ^ 0]; __syncthreads(); }                                      //~ synchronization
  if (x > 100) g[t] = x;
}
//@ block=128
K guard_then_exit_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  if (t >= 100) return;
  s[t] = g[t];
  __syncthreads();
  if (t < 99) g[t] = s[t + 1];
}
//@ block=128
K guard_around_wrong(int* g, int n) {                                       // the same guard, and code behind it
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];
  if (t < 100) { __syncthreads(); s[t] += 1; }                                        //~ synchronization
  if (t < 90) { __syncthreads(); g[t] = s[89 - t]; }
}
//@ block=128
K uneven_strides_wrong(int* g, int n) {                                     // 300 is no multiple of 128
  __shared__ int s[128]; int t = threadIdx.x, sum = 0;
  for (int i = t; i < n * 75; i += blockDim.x) {
    s[t] = g[i];
    __syncthreads();                                                                  //~ synchronization
    sum += s[t ^ 1];
    __syncthreads();
  }
  if (sum > 10000) g[t] = sum;
}
//@ block=128
K even_strides_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x, sum = 0;
  for (int i = 0; i < n * 75; i += blockDim.x) {
    s[t] = i + t < n * 75 ? g[i + t] : 0;
    __syncthreads();
    sum += s[t ^ 1];
    __syncthreads();
  }
  if (sum > 10000) g[t] = sum;
}
//@ block=64
K while_data_wrong(int* g, int n) {                                         // each thread has its own number of turns
  __shared__ int s[64]; int t = threadIdx.x, turns = g[t];
  s[t] = 0;
  while (turns-- > 0) { s[t]++; __syncthreads(); }                                    //~ synchronization
  if (s[t] > 100) g[t] = 1;
}
//@ block=64
K while_shared_right(int* g, int n) {
  __shared__ int turns; int t = threadIdx.x;
  if (t == 0) turns = 5;
  __syncthreads();
  for (int i = 0; i < turns; i++) { g[t]++; __syncthreads(); }
}
//@ block=64
K both_branches_wrong(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x;
  if (t < 32) { s[t] = g[t]; __syncthreads(); }                                       //~ synchronization
  else { s[t] = 2 * g[t]; __syncthreads(); }                                          //~ synchronization
  g[t] = s[63 - t];
}
//@ block=64
K returned_in_loop_right(int* g, int n) {                                   // whole warps end, between barriers
  __shared__ int s[64]; int t = threadIdx.x;
  s[t] = g[t];
  for (int d = 32; d > 0; d >>= 1) {
    __syncthreads();
    if (t >= d) return;
    s[t] += s[t + d];
  }
  g[0] = s[0];
}
//@ block=64
K returned_in_loop_wrong(int* g, int n) {                                   // an iteration too late: others still write
  __shared__ int s[64]; int t = threadIdx.x;
  s[t] = g[t];
  for (int d = 32; d > 0; d >>= 1) {
    __syncthreads();
    if (t >= 2 * d) return;
    s[t] += s[(t + d) & 63];                                                          //~ race
  }
  g[0] = s[0];
}
//@ block=128
K broadcast_pair_right(int* g, int n) {
  __shared__ int s[4]; int t = threadIdx.x;
  int v = __shfl_sync(ALL, g[t], 0);
  if (t % 32 == 0) s[t / 32] = v;
  __syncthreads();
  g[t] += s[(t / 32 + 1) & 3];
}
//@ block=128
K broadcast_pair_wrong(int* g, int n) {
  __shared__ int s[4]; int t = threadIdx.x;
  int v = __shfl_sync(ALL, g[t], 0);
  if (t % 32 == 0) s[t / 32] = v;                                                     //~ race
  __syncwarp();
  g[t] += s[(t / 32 + 1) & 3];                                                        //~ race
}
//@ block=32
K in_step_wrong(int* g, int n) {                                            // the classic tail without masks
  __shared__ int s[64]; int t = threadIdx.x;
  s[t] = g[t]; s[t + 32] = g[t + 32];
  __syncwarp();
  s[t] += s[t + 32];
  s[t] += s[t + 16];                                                                  //~ race
  s[t] += s[t + 8];
  if (t == 0) g[0] = s[0];
}
//@ block=32
K in_step_right(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x, v;
  s[t] = g[t]; s[t + 32] = g[t + 32];
  __syncwarp();
  v = s[t]; 
  for (int d = 32; d > 0; d >>= 1) { v += s[t + d]; __syncwarp(); s[t] = v; __syncwarp(); }
  if (t == 0) g[0] = v;
}
//@ block=32
K half_syncwarp_wrong(int* g, int n) {                                      // only a half of the warp waits
  __shared__ int s[32]; int t = threadIdx.x;
  s[t] = g[t];                                                                        //~ race
  if (t < 16) __syncwarp(0xffff);
  g[t] = s[31 - t];                                                                   //~ race
}
//@ block=32
K half_syncwarp_right(int* g, int n) {
  __shared__ int s[32]; int t = threadIdx.x;
  s[t] = g[t];
  if (t < 16) { __syncwarp(0xffff); g[t] = s[15 - t]; }
  else { __syncwarp(0xffff0000); g[t] = s[47 - t]; }
}
//@ block=64
K leader_writes_right(int* g, int n) {
  __shared__ int s[2]; int t = threadIdx.x, w = t / 32;
  unsigned sum = __reduce_add_sync(ALL, (unsigned)g[t]);
  if (t % 32 == 0) s[w] = sum;
  __syncwarp();
  g[t] = s[w];
}
//@ block=64
K leader_writes_wrong(int* g, int n) {
  __shared__ int s[2]; int t = threadIdx.x, w = t / 32;
  unsigned sum = __reduce_add_sync(ALL, (unsigned)g[t]);
  if (t % 32 == 0) s[w] = sum;                                                        //~ race
  g[t] = s[w];                                                                        //~ race
}
//@ block=64
K loop_of_leaders_wrong(int* g, int n) {                                    // the second turn overwrites what lanes still read
  __shared__ int s[2]; int t = threadIdx.x, w = t / 32;
  for (int i = 0; i < n; i++) {
    if (t % 32 == 0) s[w] = g[i] + i;                                                 //~ race
    __syncwarp();
    g[t + 64] += s[w];                                                                //~ race
  }
}
//@ block=64
K loop_of_leaders_right(int* g, int n) {
  __shared__ int s[2]; int t = threadIdx.x, w = t / 32;
  for (int i = 0; i < n; i++) {
    if (t % 32 == 0) s[w] = g[i] + i;
    __syncwarp();
    g[t + 64] += s[w];
    __syncwarp();
  }
}
//@ block=128
K tile_of_32_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  s[t] = g[t];
  tile.sync();
  g[t] = s[t ^ 31];
}
//@ block=128
K tile_of_32_wrong(int* g, int n) {                                         // a tile's barrier, a block's exchange
  __shared__ int s[128]; int t = threadIdx.x;
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  s[t] = g[t];                                                                        //~ race
  tile.sync();
  g[t] = s[127 - t];                                                                  //~ race
}
//@ block=64 grid=4 coop
K grid_sync_right(int* g, int n) {
  int t = blockIdx.x * 64 + threadIdx.x;
  g[t] = t;
  cg::this_grid().sync();
  int v = g[255 - t];
  cg::this_grid().sync();
  g[t] = v;
}
//@ block=64 grid=4 coop
K grid_sync_once_wrong(int* g, int n) {
  int t = blockIdx.x * 64 + threadIdx.x;
  g[t] = t;
  cg::this_grid().sync();
  int v = g[255 - t];                                                                 //~ race
  g[t] = v + 1;                                                                       //~ race
}
//@ block=64 grid=4 coop
K block_sync_for_grid_wrong(int* g, int n) {
  int t = blockIdx.x * 64 + threadIdx.x;
  g[t] = t;                                                                           //~ race
  cg::this_thread_block().sync();
  g[t + 512] = g[255 - t];                                                            //~ race
}
//@ block=128
K async_two_groups_right(const int* in, int* out) {
  __shared__ int s[2][128]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t], &in[t], 4); __pipeline_commit();
  __pipeline_memcpy_async(&s[1][t], &in[t + 128], 4); __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();
  int v = s[0][127 - t];
  __pipeline_wait_prior(0);
  __syncthreads();
  out[t] = v + s[1][127 - t];
}
//@ block=128
K async_two_groups_wrong(const int* in, int* out) {                         // the second group is still under way
  __shared__ int s[2][128]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t], &in[t], 4); __pipeline_commit();
  __pipeline_memcpy_async(&s[1][t], &in[t + 128], 4); __pipeline_commit();            //~ race
  __pipeline_wait_prior(1);
  __syncthreads();
  out[t] = s[0][127 - t] + s[1][127 - t];                                             //~ race
}
//@ block=128
K async_uncommitted_wrong(const int* in, int* out) {                        // waiting for groups, and nothing is in one
  __shared__ int s[128]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &in[t], 4);                                          //~ race
  __pipeline_wait_prior(0);
  __syncthreads();
  out[t] = s[127 - t];                                                                //~ race
}
//@ block=128
K async_own_element_right(const int* in, int* out) {
  __shared__ int s[128]; int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &in[t], 4); __pipeline_commit();
  __pipeline_wait_prior(0);
  out[t] = s[t];
}
//@ block=128
K async_overwritten_wrong(const int* in, int* out) {                        // the copy's buffer is reused at once
  __shared__ int s[128]; int t = threadIdx.x; int sum = 0;
  for (int i = 0; i < 2; i++) {
    __pipeline_memcpy_async(&s[t], &in[t + 128 * i], 4); __pipeline_commit();         //~ race
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += s[127 - t];                                                                //~ race
  }
  out[t] = sum;
}
//@ block=64
K block_barrier_right(int* g, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b; __shared__ int s[64]; int t = threadIdx.x;
  if (t == 0) init(&b, 64);
  __syncthreads();
  for (int i = 0; i < 3; i++) {
    s[t] = g[t] + i;
    b.arrive_and_wait();
    g[t + 64] = s[63 - t];
    b.arrive_and_wait();
  }
}
//@ block=64
K arrive_early_wrong(int* g, int n) {                                       // arrives, and writes afterwards
  __shared__ cuda::barrier<cuda::thread_scope_block> b; __shared__ int s[64]; int t = threadIdx.x;
  if (t == 0) init(&b, 64);
  __syncthreads();
  auto token = b.arrive();
  s[t] = g[t];                                                                        //~ race
  b.wait(std::move(token));
  g[t + 64] = s[63 - t];                                                              //~ race
}
//@ block=64
K barrier_init_unseen_wrong(int* g, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b; int t = threadIdx.x;
  if (t == 0) init(&b, 1);                                                            //~ race
  __syncwarp();
  if (t >= 32) (void)b.arrive();                                                      //~ race
  g[t] = 1;
}
