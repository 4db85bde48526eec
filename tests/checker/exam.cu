// Kernels of all kinds as an examiner would write them: shared memory, warps, copies, groups, bounds, values that nobody wrote.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/atomic>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void

K warp_reduce_shared_wrong(const int* in, int* out) {            // without `__syncwarp`
  __shared__ int s[128];
  int t = threadIdx.x, l = t & 31;
  s[t] = in[t];
  for (int d = 16; d; d >>= 1)
    if (l < d) s[t] += s[t + d];                                                                      //~ race
  if (l == 0) out[t / 32] = s[t];
}
K warp_reduce_shared_right(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x, l = t & 31;
  s[t] = in[t];
  for (int d = 16; d; d >>= 1) {
    __syncwarp();
    int v = l < d ? s[t + d] : 0;
    __syncwarp();
    if (l < d) s[t] += v;
  }
  if (l == 0) out[t / 32] = s[t];
}
K syncwarp_mask_wrong(const int* in, int* out) {                 // only half of the warp is named, the other half reads too
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];                                                                                       //~ race
  if ((t & 31) < 16) __syncwarp(0xffff);
  out[t] = s[t ^ 1] + s[t ^ 16];                                                                      //~ race
}
K syncwarp_mask_right(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  if ((t & 31) < 16) __syncwarp(0xffff); else __syncwarp(0xffff0000);
  out[t] = s[t ^ 1];
}
K double_buffer_wrong(const int* in, int* out) {                 // the same half is written that others still read
  __shared__ int s[2][128];
  int t = threadIdx.x, sum = 0;
  s[0][t] = in[t];
  for (int k = 0; k < 4; k++) {
    __syncthreads();
    sum += s[0][(t + 1) % 128];                                                                       //~ race
    s[0][t] = in[t + 128 * k] + k;                                                                    //~ race
  }
  out[t] = sum;
}
K double_buffer_right(const int* in, int* out) {
  __shared__ int s[2][128];
  int t = threadIdx.x, sum = 0;
  s[0][t] = in[t];
  for (int k = 0; k < 4; k++) {
    __syncthreads();
    sum += s[k & 1][(t + 1) % 128];
    s[~k & 1][t] = in[t + 128 * k] + k;
  }
  out[t] = sum;
}
K transpose_wrong(const int* in, int* out) {
  __shared__ int tile[8][17];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  tile[y][x] = in[threadIdx.x];                                                                       //~ race
  int u = threadIdx.x % 8, v = threadIdx.x / 8;
  out[threadIdx.x] = tile[u][v];                                                                      //~ race
}
K transpose_right(const int* in, int* out) {
  __shared__ int tile[8][17];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  tile[y][x] = in[threadIdx.x];
  __syncthreads();
  int u = threadIdx.x % 8, v = threadIdx.x / 8;
  out[threadIdx.x] = tile[u][v];
}
K async_copy_wrong(const int* in, int* out) {                    // waits for its own copy, and not for that of others
  __shared__ int s[128];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &in[t], 4);                                                          //~ race
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[t] = s[127 - t];                                                                                //~ race
}
K async_copy_right(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &in[t], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[t] = s[127 - t];
}
K async_stages_wrong(const int* in, int* out) {                  // one stage too many may still be in flight
  __shared__ int s[2][128];
  int t = threadIdx.x, sum = 0;
  for (int k = 0; k < 2; k++) { __pipeline_memcpy_async(&s[k][t], &in[128 * k + t], 4); __pipeline_commit(); }   //~ race
  for (int k = 0; k < 2; k++) {
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += s[k][127 - t];                                                                             //~ race
  }
  out[t] = sum;
}
K async_stages_right(const int* in, int* out) {
  __shared__ int s[2][128];
  int t = threadIdx.x, sum = 0;
  for (int k = 0; k < 2; k++) { __pipeline_memcpy_async(&s[k][t], &in[128 * k + t], 4); __pipeline_commit(); }
  for (int k = 0; k < 2; k++) {
    if (k == 0) __pipeline_wait_prior(1); else __pipeline_wait_prior(0);
    __syncthreads();
    sum += s[k][127 - t];
  }
  out[t] = sum;
}
K async_refill_wrong(const int* in, int* out) {                  // refills a stage that others still read
  __shared__ int s[128];
  int t = threadIdx.x, sum = 0;
  for (int k = 0; k < 3; k++) {
    __pipeline_memcpy_async(&s[t], &in[128 * k + t], 4);                                              //~ race
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += s[127 - t];                                                                                //~ race
  }
  out[t] = sum;
}
K async_refill_right(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x, sum = 0;
  for (int k = 0; k < 3; k++) {
    __pipeline_memcpy_async(&s[t], &in[128 * k + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += s[127 - t];
    __syncthreads();
  }
  out[t] = sum;
}
K barrier_token_wrong(const int* in, int* out) {                 // arrives and does not wait
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  s[t] = in[t];                                                                                       //~ race
  auto token = b.arrive();
  out[t] = s[127 - t];                                                                                //~ race
  b.wait(std::move(token));
}
K barrier_token_right(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  s[t] = in[t];
  auto token = b.arrive();
  out[128 + t] = in[t];
  b.wait(std::move(token));
  out[t] = s[127 - t];
}
K libcu_atomic_wrong(int* data, int* flag, int* out) {           // relaxed
  cuda::atomic_ref<int, cuda::thread_scope_block> f(*flag);
  if (threadIdx.x == 0) { data[0] = 5; f.store(9, cuda::memory_order_relaxed); }                      //~ race
  if (threadIdx.x == 64) { while (f.load(cuda::memory_order_acquire) != 9) {} out[0] = data[0]; }     //~ race
}
K libcu_atomic_right(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_block> f(*flag);
  if (threadIdx.x == 0) { data[0] = 5; f.store(9, cuda::memory_order_release); }
  if (threadIdx.x == 64) { while (f.load(cuda::memory_order_acquire) != 9) {} out[0] = data[0]; }
}
//@ grid=2
K libcu_scope_wrong(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_block> f(*flag);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { data[0] = 5; f.store(9, cuda::memory_order_release); }                       //~ race
  else { while (f.load(cuda::memory_order_acquire) != 9) {} out[0] = data[0]; }                       //~ race
}
//@ grid=2
K libcu_scope_right(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { data[0] = 5; f.store(9, cuda::memory_order_release); }
  else { while (f.load(cuda::memory_order_acquire) != 9) {} out[0] = data[0]; }
}
K group_reduce_right(const int* in, int* out) {
  __shared__ int s[4];
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int v = cg::reduce(warp, in[threadIdx.x], cg::plus<int>());
  if (warp.thread_rank() == 0) s[warp.meta_group_rank()] = v;
  block.sync();
  if (threadIdx.x < 4) out[threadIdx.x] = s[threadIdx.x] + cg::exclusive_scan(cg::coalesced_threads(), v);
}
K group_reduce_wrong(const int* in, int* out) {                  // the warps are not joined
  __shared__ int s[4];
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int v = cg::reduce(warp, in[threadIdx.x], cg::plus<int>());
  if (warp.thread_rank() == 0) s[warp.meta_group_rank()] = v;                                         //~ race
  warp.sync();
  if (threadIdx.x < 4) out[threadIdx.x] = s[threadIdx.x];                                             //~ race
}
K group_copy_wait_wrong(const int* in, int* out) {               // reads before the copy of the group is complete
  __shared__ int s[128];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, in, sizeof s);
  out[threadIdx.x] = s[127 - threadIdx.x];                                                            //~ race
  cg::wait(block);
}
K group_copy_wait_right(const int* in, int* out) {
  __shared__ int s[128];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, in, sizeof s);
  cg::wait(block);
  out[threadIdx.x] = s[127 - threadIdx.x];
}
//@ block=64
K pipeline_roles_right(const int* in, int* out) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ int s[2][64];
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int fetch = 0, k = 0; k < 4; k++) {
    for (; fetch < 4 && fetch < k + 2; fetch++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[fetch % 2], in + 64 * fetch, sizeof s[0], pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += s[k % 2][63 - threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
//@ block=64
K pipeline_roles_wrong(const int* in, int* out) {                // releases a stage before it is read
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ int s[2][64];
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int fetch = 0, k = 0; k < 4; k++) {
    for (; fetch < 4 && fetch < k + 2; fetch++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[fetch % 2], in + 64 * fetch, sizeof s[0], pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    pipe.consumer_release();
    sum += s[k % 2][63 - threadIdx.x];                                                                //~ race
  }
  out[threadIdx.x] = sum;
}
K barrier_in_branch_wrong(const int* in, int* out) {
  if (threadIdx.x < 64) __syncthreads();                                                              //~ synchronization
  out[threadIdx.x] = in[threadIdx.x];
}
K barrier_in_branch_right(const int* in, int* out) {
  __shared__ int s[128];
  s[threadIdx.x] = in[threadIdx.x];
  if (blockIdx.x < 64) __syncthreads();
  out[threadIdx.x] = s[127 - threadIdx.x];
}
K barrier_return_wrong(const int* in, int* out, int n) {         // some leave in the loop
  for (int k = 0; k < n; k++) {
    if (in[threadIdx.x] == k + 5) { out[threadIdx.x] = k; return; }
    __syncthreads();                                                                                  //~ synchronization
    out[256 + threadIdx.x] = k;
  }
  out[threadIdx.x] = 0;
}
K barrier_return_right(const int* in, int* out, int n) {
  bool done = false;
  for (int k = 0; k < n; k++) {
    if (!done && in[threadIdx.x] == k + 5) { out[threadIdx.x] = k; done = true; }
    __syncthreads();
  }
  if (!done) out[threadIdx.x] = 0;
}
K one_too_far_shared_wrong(const int* in, int* out) {
  __shared__ int a[128], b[128];
  int t = threadIdx.x;
  a[t] = in[t];
  b[t] = 1;
  __syncthreads();
  out[t] = a[t + 1] + b[t];                                                                           //~ out of bounds
}
K one_too_far_shared_right(const int* in, int* out) {
  __shared__ int a[129], b[128];
  int t = threadIdx.x;
  a[t] = in[t];
  if (t == 0) a[128] = 0;
  b[t] = 1;
  __syncthreads();
  out[t] = a[t + 1] + b[t];
}
K one_too_far_global_wrong(const int* in, int* out) {
  int i = threadIdx.x * 8 + 8;
  out[threadIdx.x] = in[i];                                                                           //~ fault
}
K one_too_far_global_right(const int* in, int* out) {
  int i = threadIdx.x * 8 + 7;
  out[threadIdx.x] = in[i];
}
K tail_not_set_wrong(const int* in, int* out, int n) {           // threads beyond the end do not fill their part of the tile
  __shared__ int s[128];
  if (threadIdx.x < 128 - n) s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int sum = 0;
  for (int k = 0; k < 128; k++) sum += s[k];
  out[threadIdx.x] = sum;                                                                             //~ uninitialized
}
K tail_not_set_right(const int* in, int* out, int n) {
  __shared__ int s[128];
  s[threadIdx.x] = threadIdx.x < 128 - n ? in[threadIdx.x] : 0;
  __syncthreads();
  int sum = 0;
  for (int k = 0; k < 128; k++) sum += s[k];
  out[threadIdx.x] = sum;
}
K heap_unset_wrong(int* out) {
  int* p = (int*)malloc(16);
  p[0] = threadIdx.x;
  out[threadIdx.x] = p[1];                                                                            //~ uninitialized
  free(p);
}
K lane_mask_wrong(const int* in, int* out) {                     // lanes that have gone are named
  int t = threadIdx.x;
  if ((t & 31) >= 24) return;
  out[t] = __shfl_down_sync(0xffffffff, in[t], 1);                                                    //~ synchronization
}
K lane_mask_right(const int* in, int* out) {
  int t = threadIdx.x;
  if ((t & 31) >= 24) return;
  out[t] = __shfl_sync(0xffffff, in[t], (t & 31) % 24 / 2);
}
K aggregate_right(const int* in, int* count, int* out) {         // one atomic for the lanes that push
  if (in[threadIdx.x] & 1) {
    auto g = cg::coalesced_threads();
    int at = 0;
    if (g.thread_rank() == 0) at = atomicAdd(count, g.size());
    out[g.shfl(at, 0) % 512 + g.thread_rank()] = threadIdx.x;
  }
}
K last_value_right(const int* in, int* out) {                    // what lanes of one store leave in a slot that nobody reads
  __shared__ int s[129];
  int t = threadIdx.x;
  bool keep = in[t] & 1;
  s[keep ? t : 128] = in[t];
  __syncthreads();
  if (keep) out[t] = s[t];
}
K last_value_wrong(const int* in, int* out) {                    // and in one that is read
  __shared__ int s[129];
  int t = threadIdx.x;
  bool keep = in[t] & 1;
  s[keep ? t : 128] = in[t];                                                                          //~ race
  __syncthreads();
  if (keep) out[t] = s[t];
  else out[t] = s[128];
}
K hillis_steele_block_right(const int* in, int* out) {                // a prefix of a block, by Hillis and Steele, with two barriers
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    int v = t >= d ? s[t - d] : 0;
    __syncthreads();
    s[t] += v;
    __syncthreads();
  }
  out[t] = s[t];
}
K hillis_steele_block_wrong(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    if (t >= d) s[t] += s[t - d];                                                                     //~ race
    __syncthreads();
  }
  out[t] = s[t];
}
K unrolled_slot_right(const int* in, int* out) {                 // the same slot, several times in an unrolled loop
  __shared__ int s[129];
  int t = threadIdx.x, sum = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) s[in[t + k] & 1 ? t : 128] = in[t] + k;
  if (in[t] & 1) sum = s[t];
  out[t] = sum;
}
K unrolled_slot_wrong(const int* in, int* out) {
  __shared__ int s[129];
  int t = threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; k++) s[in[t + k] & 1 ? t : 128] = in[t] + k;                                 //~ race
  __syncthreads();
  atomicAdd(&out[t], s[128]);
}
