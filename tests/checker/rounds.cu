// Patterns of irregular and cooperative kernels: barriers that some blocks leave out, bounded queues, ranges and epochs.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#define K extern "C" __global__ void
namespace cg = cooperative_groups;

//@ coop grid=4 block=32
K grid_block_missing_wrong(int* a) {
  if (blockIdx.x == 3) return;
  a[blockIdx.x * 32 + threadIdx.x] = 1;
  cg::this_grid().sync();                                                             //~ fault
  a[128 + blockIdx.x * 32 + threadIdx.x] = a[(blockIdx.x + 1) % 3 * 32 + threadIdx.x];
}
//@ coop grid=4 block=32
K grid_block_idle_right(int* a) {
  if (blockIdx.x != 3) a[blockIdx.x * 32 + threadIdx.x] = 1;
  cg::this_grid().sync();
  if (blockIdx.x != 3) a[128 + blockIdx.x * 32 + threadIdx.x] = a[(blockIdx.x + 1) % 3 * 32 + threadIdx.x];
}
// The early leavers have nothing to do with the barrier that follows.
//@ grid=2 block=128
K half_leaves_right(int* a) {
  __shared__ int s[64];
  if (threadIdx.x >= 64) return;
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[128 + blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}
//@ grid=2 block=128
K half_leaves_wrong(int* a) {
  __shared__ int s[64];
  if (threadIdx.x >= 64) return;
  s[threadIdx.x] = a[threadIdx.x];                                                    //~ race
  a[128 + blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];                       //~ race
}
// A ring with two generations: a consumer must give the slot back before it is filled again.
struct Slot { int value, full; };
//@ zero grid=2 block=32
K bounded_queue_right(Slot* slot, int* out) {
  if (threadIdx.x) return;
  for (int i = 0; i < 6; i++) {
    cuda::atomic_ref<int, cuda::thread_scope_device> full(slot[i & 1].full);
    if (blockIdx.x == 0) {
      while (full.load(cuda::memory_order_acquire)) {}
      slot[i & 1].value = i;
      full.store(1, cuda::memory_order_release);
    } else {
      while (!full.load(cuda::memory_order_acquire)) {}
      out[i] = slot[i & 1].value;
      full.store(0, cuda::memory_order_release);
    }
  }
}
//@ zero grid=2 block=32
K bounded_queue_wrong(Slot* slot, int* out) {
  if (threadIdx.x) return;
  for (int i = 0; i < 6; i++) {
    cuda::atomic_ref<int, cuda::thread_scope_device> full(slot[i & 1].full);
    if (blockIdx.x == 0) {
      while (full.load(cuda::memory_order_acquire)) {}
      slot[i & 1].value = i;                                                          //~ race
      full.store(1, cuda::memory_order_release);
    } else {
      while (!full.load(cuda::memory_order_acquire)) {}
      full.store(0, cuda::memory_order_release);
      out[i] = slot[i & 1].value;                                                     //~ race
    }
  }
}
// Each warp takes a range of a shared counter, and writes into its range only.
//@ zero grid=2 block=64
K ranges_right(int* count, int* out) {
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
  int base = 0;
  if (warp.thread_rank() == 0) base = atomicAdd(count, 32);
  base = warp.shfl(base, 0);
  out[base + warp.thread_rank()] = threadIdx.x;
}
//@ zero grid=2 block=64
K ranges_wrong(int* count, int* out) {
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
  int base = 0;
  if (warp.thread_rank() == 0) base = atomicAdd(count, 31);
  base = warp.shfl(base, 0);
  out[base + warp.thread_rank()] = threadIdx.x;                                       //~ race
}
// Rounds over one frontier: what a round adds must not be read in the same round.
//@ zero block=64
K rounds_right(int* level) {
  __shared__ int next[64], now[64];
  now[threadIdx.x] = threadIdx.x == 0;
  __syncthreads();
  for (int round = 1; round < 4; round++) {
    next[threadIdx.x] = now[(threadIdx.x + 63) % 64] | now[threadIdx.x];
    __syncthreads();
    if (next[threadIdx.x] && !now[threadIdx.x]) level[threadIdx.x] = round;
    __syncthreads();
    now[threadIdx.x] = next[threadIdx.x];
    __syncthreads();
  }
}
//@ zero block=64
K rounds_wrong(int* level) {
  __shared__ int next[64], now[64];
  now[threadIdx.x] = threadIdx.x == 0;
  __syncthreads();
  for (int round = 1; round < 4; round++) {
    next[threadIdx.x] = now[(threadIdx.x + 63) % 64] | now[threadIdx.x];              //~ race
    __syncthreads();
    if (next[threadIdx.x] && !now[threadIdx.x]) level[threadIdx.x] = round;
    __syncthreads();
    now[threadIdx.x] = next[threadIdx.x];                                             //~ race
  }
}
// An epoch counter: readers of the old epoch are counted, by releases, before the writer replaces the data.
//@ zero grid=3 block=32
K epochs_right(int* data, int* readers, int* out) {
  if (threadIdx.x) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> left(*readers);
  if (blockIdx.x) {
    out[blockIdx.x] = data[1];
    left.fetch_add(1, cuda::memory_order_release);
  } else {
    while (left.load(cuda::memory_order_acquire) < 2) {}
    data[1] = 5;
  }
}
//@ zero grid=3 block=32
K epochs_wrong(int* data, int* readers, int* out) {
  if (threadIdx.x) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> left(*readers);
  if (blockIdx.x) {
    out[blockIdx.x] = data[1];                                                        //~ race
    left.fetch_add(1, cuda::memory_order_relaxed);
  } else {
    while (left.load(cuda::memory_order_acquire) < 2) {}
    data[1] = 5;                                                                      //~ race
  }
}
// A sum by a group whose leader alone adds it: the group's partial sums lie in shared memory.
//@ zero grid=2 block=128
K group_sums_right(const int* in, int* out) {
  __shared__ int part[4];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int sum = cg::reduce(warp, in[blockIdx.x * 128 + threadIdx.x], cg::plus<int>());
  if (warp.thread_rank() == 0) part[warp.meta_group_rank()] = sum;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, part[0] + part[1] + part[2] + part[3]);
}
//@ zero grid=2 block=128
K group_sums_wrong(const int* in, int* out) {
  __shared__ int part[4];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int sum = cg::reduce(warp, in[blockIdx.x * 128 + threadIdx.x], cg::plus<int>());
  if (warp.thread_rank() == 0) part[warp.meta_group_rank()] = sum;                    //~ race
  warp.sync();
  if (threadIdx.x == 0) atomicAdd(out, part[0] + part[1] + part[2] + part[3]);        //~ race
}
// Delta between neighbours, in place: the left value must be read by all before any is replaced.
//@ grid=1 block=96
K deltas_right(int* a) {
  int own = a[threadIdx.x], left = threadIdx.x ? a[threadIdx.x - 1] : 0;
  __syncthreads();
  a[threadIdx.x] = own - left;
}
//@ grid=1 block=96
K deltas_wrong(int* a) {
  int own = a[threadIdx.x], left = threadIdx.x ? a[threadIdx.x - 1] : 0;              //~ race
  __syncwarp();
  a[threadIdx.x] = own - left;                                                        //~ race
}
// Rows of a sparse matrix, a row for each warp; the tail is shared by two warps of different blocks.
//@ grid=2 block=64
K split_row_right(const int* in, int* out) {
  int warp = (blockIdx.x * 64 + threadIdx.x) / 32, row = min(warp, 2);
  int sum = __reduce_add_sync(~0u, in[warp * 32 + threadIdx.x % 32]);
  if (threadIdx.x % 32 == 0) atomicAdd(&out[row], sum);
}
//@ grid=2 block=64
K split_row_wrong(const int* in, int* out) {
  int warp = (blockIdx.x * 64 + threadIdx.x) / 32, row = min(warp, 2);
  int sum = __reduce_add_sync(~0u, in[warp * 32 + threadIdx.x % 32]);
  if (threadIdx.x % 32 == 0) out[row] += sum + warp;                                  //~ race
}
// A pool of buffers: a bit says which are free. A block works in the buffer that it has taken, and gives it back.
//@ zero grid=4 block=32
K pool_right(unsigned* taken, int* buffers, int* out) {
  __shared__ int mine;
  if (threadIdx.x == 0) {
    for (unsigned i = blockIdx.x;; i++)
      if (!(atomicOr(taken, 1u << (i & 1)) >> (i & 1) & 1)) { mine = i & 1; break; }
    __threadfence();
  }
  __syncthreads();
  buffers[mine * 32 + threadIdx.x] = blockIdx.x + threadIdx.x;
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = buffers[mine * 32 + 31 - threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) __threadfence(), atomicAnd(taken, ~(1u << mine));
}
//@ zero grid=4 block=32
K pool_wrong(unsigned* taken, int* buffers, int* out) {
  __shared__ int mine;
  if (threadIdx.x == 0) {
    for (unsigned i = blockIdx.x;; i++)
      if (!(atomicOr(taken, 1u << (i & 1)) >> (i & 1) & 1)) { mine = i & 1; break; }
    __threadfence();
  }
  __syncthreads();
  buffers[mine * 32 + threadIdx.x] = blockIdx.x + threadIdx.x;                        //~ race
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = buffers[mine * 32 + 31 - threadIdx.x];         //~ race
  if (threadIdx.x == 0) __threadfence(), atomicAnd(taken, ~(1u << mine));
}
// A pyramid in one launch: the last of four blocks to finish a level builds the next one.
//@ zero grid=8 block=32
K pyramid_right(int* level, int* done) {
  __shared__ bool last;
  level[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&done[blockIdx.x / 4], 1) == 3;
  __syncthreads();
  if (!last) return;
  __threadfence();
  int sum = 0;
  for (int b = 0; b < 4; b++) sum += level[(blockIdx.x / 4 * 4 + b) * 32 + threadIdx.x];
  level[256 + blockIdx.x / 4 * 32 + threadIdx.x] = sum;
}
//@ zero grid=8 block=32
K pyramid_wrong(int* level, int* done) {
  __shared__ bool last;
  level[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;                                  //~ race
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&done[blockIdx.x / 4], 1) == 3;
  __syncthreads();
  if (!last) return;
  __threadfence();
  int sum = 0;
  for (int b = 0; b < 5; b++) sum += level[(blockIdx.x / 4 * 4 + b) % 8 * 32 + threadIdx.x]; //~ race
  level[256 + blockIdx.x / 4 * 32 + threadIdx.x] = sum;
}
// Two counters in one word: fields that are updated as a whole, or apart.
//@ zero grid=2 block=32
K fields_right(unsigned* word) { atomicAdd(word, threadIdx.x & 1 ? 1u : 1u << 16); }
//@ zero grid=2 block=32
K fields_wrong(unsigned* word) {
  if (threadIdx.x & 1) atomicAdd(word, 1u);                                           //~ race
  else reinterpret_cast<volatile unsigned short*>(word)[1] = blockIdx.x;              //~ race
}
// A tile that is wider than the block, with the last columns by a second load.
//@ grid=1 block=64
K wide_window_right(const int* in, int* out) {
  __shared__ int s[80];
  s[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x < 16) s[64 + threadIdx.x] = in[64 + threadIdx.x];
  __syncthreads();
  int sum = 0;
  for (int j = 0; j < 17; j++) sum += s[threadIdx.x + j];
  out[threadIdx.x] = sum;
}
//@ grid=1 block=64
K wide_window_wrong(const int* in, int* out) {
  __shared__ int s[80];
  s[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x < 15) s[64 + threadIdx.x] = in[64 + threadIdx.x];
  __syncthreads();
  int sum = 0;
  for (int j = 0; j < 17; j++) sum += s[threadIdx.x + j];                         //~ uninitialized
  out[threadIdx.x] = sum;                                                             //~ uninitialized
}
