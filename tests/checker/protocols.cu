// Protocols of several steps, with one step missing.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define B blockIdx.x
#define T threadIdx.x
template <class V> using Block = cuda::atomic_ref<V, cuda::thread_scope_block>;
template <class V> using Device = cuda::atomic_ref<V, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;
constexpr auto acq_rel = cuda::memory_order_acq_rel;

// The owner pushes and pops at the bottom of a deque, a thief takes at the top.
template <int kind> __device__ __forceinline__ void deque(int* top, int* bottom, int* items, int* out) {
  if (B == 0) {
    for (int i = 0; i < 4; i++) {
      items[i] = i + 10;                                                                                     //~ race deque_relaxed_push_wrong
      Device<int>(*bottom).store(i + 1, kind == 1 ? relaxed : release);
    }
  } else {
    for (int got = 0; got < 4;) {
      int t = Device<int>(*top).load(acquire);
      if (t >= Device<int>(*bottom).load(acquire)) continue;
      int item = items[t];                                                                                   //~ race deque_relaxed_push_wrong
      if (Device<int>(*top).compare_exchange_strong(t, t + 1, acq_rel)) out[got++] = item;
    }
  }
}
//@ grid=2 block=1 zero
K deque_push_right(int* top, int* bottom, int* items, int* out) { deque<0>(top, bottom, items, out); }
//@ grid=2 block=1 zero
K deque_relaxed_push_wrong(int* top, int* bottom, int* items, int* out) { deque<1>(top, bottom, items, out); }

// Partial sums by blocks; the last one adds them up. A flag in shared memory tells its threads.
template <int kind> __device__ __forceinline__ void last(const int* in, int* sums, unsigned* done, int* out) {
  __shared__ bool is_last;
  int v = __reduce_add_sync(~0u, in[B * 32 + T]);
  if (T == 0) {
    sums[B] = v;                                                                                             //~ race last_late_fence_wrong, race last_block_order_wrong
    if (kind != 1) __threadfence();
    unsigned n = kind == 2 ? Block<unsigned>(*done).fetch_add(1, relaxed) : atomicInc(done, gridDim.x - 1);  //~ race last_block_order_wrong
    if (kind == 1) __threadfence();
    is_last = n == gridDim.x - 1;
  }
  __syncwarp();
  if (is_last) {
    int s = T < gridDim.x ? sums[T] : 0;                                                                     //~ race last_late_fence_wrong, race last_block_order_wrong
    s = __reduce_add_sync(~0u, s);
    if (T == 0) out[0] = s;
  }
}
//@ grid=4 block=32 zero
K last_late_fence_wrong(const int* in, int* sums, unsigned* done, int* out) { last<1>(in, sums, done, out); }
//@ grid=4 block=32 zero
K last_block_order_wrong(const int* in, int* sums, unsigned* done, int* out) { last<2>(in, sums, done, out); }

// A list of free cells: pop reads the next index of a cell that another thread may have popped and written.
//@ grid=2 block=32
K free_list_wrong(int* head, int* next) {
  int mine = Device<int>(*head).load(acquire), after;
  do after = next[mine & 63]; while (!Device<int>(*head).compare_exchange_weak(mine, after, acq_rel));         //~ race
  next[mine & 63] = T;                                                                                       //~ race
}
// Cells are only taken, by an index.
//@ grid=2 block=32 zero
K free_index_right(int* head, int* cells) {
  int mine = atomicAdd(head, 1);
  cells[mine] = T;
}
// The largest value and where it is: under a lock that is tried, not waited for.
template <bool checks> __device__ __forceinline__ void arg_max(const int* in, int* lock, int* best) {
  int v = in[B * 64 + T] + T;
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      if (v > best[0]) { best[0] = v; best[1] = T; }                                                         //~ race arg_max_plain_wrong
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
    if (!checks && v <= best[0]) done = true;                                                                //~ race arg_max_plain_wrong
  }
}
//@ grid=2 block=8 zero
K arg_max_right(const int* in, int* lock, int* best) { arg_max<true>(in, lock + 512, best + 600); }
//@ grid=2 block=8 zero
K arg_max_plain_wrong(const int* in, int* lock, int* best) { arg_max<false>(in, lock + 512, best + 600); }
// A buffer is handed to and fro between two warps by two counts.
template <int kind> __device__ __forceinline__ void to_and_fro(const int* in, int* out) {
  __shared__ int s[32]; __shared__ int full, empty;
  if (T == 0) full = empty = 0;
  __syncthreads();
  int lane = T & 31;
  for (int i = 1; i < 4; i++) {
    if (T < 32) {
      if (lane == 0) while (Block<int>(empty).load(kind == 1 ? relaxed : acquire) < i - 1) {}
      __syncwarp();
      s[lane] = in[32 * i + lane];                                                                           //~ race to_and_fro_unsynced_wrong
      __syncwarp();
      if (lane == 0) Block<int>(full).store(i, release);
    } else {
      if (lane == 0) while (Block<int>(full).load(acquire) < i) {}
      __syncwarp();
      out[32 * i + lane] = s[31 - lane];                                                                     //~ race to_and_fro_unsynced_wrong
      if (kind != 2) __syncwarp();
      if (lane == 0) Block<int>(empty).store(i, release);
    }
  }
}
//@ block=64
K to_and_fro_right(const int* in, int* out) { to_and_fro<0>(in, out); }
//@ block=64
K to_and_fro_unsynced_wrong(const int* in, int* out) { to_and_fro<2>(in, out); }

// Three blocks: what the first one has written reaches the third one through the second one's read-modify-write, or its store.
template <int kind> __device__ __forceinline__ void through(int* data, int* flag) {
  if (B == 0) { data[0] = 3; Device<int>(*flag).store(1, release); }                                         //~ race through_store_wrong
  if (B == 1) {
    if (kind == 0) { int one = 1; while (!Device<int>(*flag).compare_exchange_weak(one, 2, relaxed)) one = 1; }
    else { while (Device<int>(*flag).load(relaxed) == 0) {} Device<int>(*flag).store(2, relaxed); }
  }
  if (B == 2) { while (Device<int>(*flag).load(acquire) != 2) {} data[1] = data[0]; }                        //~ race through_store_wrong
}
//@ grid=3 block=1 zero
K through_exchange_right(int* data, int* flag) { through<0>(data, flag); }
//@ grid=3 block=1 zero
K through_store_wrong(int* data, int* flag) { through<1>(data, flag); }

// Warps of a block take rows by a counter in shared memory; a lane takes it, and all of its warp use it.
//@ block=128
K rows_by_warp_right(const int* in, int* out) {
  __shared__ int next;
  if (T == 0) next = 0;
  __syncthreads();
  for (;;) {
    int row;
    if (T % 32 == 0) row = atomicAdd(&next, 1);
    row = __shfl_sync(~0u, row, 0);
    if (row >= 8) break;
    out[row * 32 + T % 32] = in[row * 32 + T % 32];
  }
}
// As before, through a word of the block that all warps share.
//@ block=128
K rows_by_word_wrong(const int* in, int* out) {
  __shared__ int next, row;
  if (T == 0) next = 0;
  __syncthreads();
  for (int i = 0; i < 2; i++) {
    if (T % 32 == 0) row = atomicAdd(&next, 1);                                                              //~ race
    __syncwarp();
    out[row * 32 + T % 32] = in[row * 32 + T % 32];                                                          //~ race
  }
}
// A sum by halves whose barrier is left out for the last warp; a step of 32 still crosses warps.
template <int until> __device__ __forceinline__ void halves(const int* in, int* out, int* s) {
  s[T] = in[T];
  __syncthreads();
  for (int d = 64; d >= until; d /= 2) {
    if (T < d) s[T] += s[T + d];
    __syncthreads();
  }
  if (T < 32)
    for (int d = until / 2; d > 0; d /= 2) {
      int v = T < d || d == 32 ? s[T + d] : 0;
      __syncwarp();
      s[T] += v;
      __syncwarp();
    }
  if (T == 0) out[B] = s[0];
}
K halves_until_64_right(const int* in, int* out) { __shared__ int s[128]; halves<64>(in, out, s); }
// Two kernels' worth of work in one: a grid barrier for part of the blocks' threads only is enough if a block barrier follows.
//@ grid=2 block=64 zero
K elected_grid_barrier_right(const int* in, int* count, int* data) {
  data[B * 64 + T] = in[T];
  __syncthreads();
  if (T == 0) { Device<int>(*count).fetch_add(1, acq_rel); while (Device<int>(*count).load(acquire) < 2) {} }
  __syncthreads();
  data[256 + B * 64 + T] = data[(1 - B) * 64 + T];
}
//@ grid=2 block=64 zero
K elected_grid_barrier_wrong(const int* in, int* count, int* data) {
  data[B * 64 + T] = in[T];                                                                                  //~ race
  if (T == 0) { Device<int>(*count).fetch_add(1, acq_rel); while (Device<int>(*count).load(acquire) < 2) {} }
  __syncthreads();
  data[256 + B * 64 + T] = data[(1 - B) * 64 + T];                                                           //~ race
}
// A 64-bit word packs a value with a flag; or value and flag are two words of one vector, stored and loaded as one.
//@ grid=2 block=32 zero
K packed_right(const int* in, unsigned long long* words, int* out) {
  if (B == 0) Device<unsigned long long>(words[T]).store(1ull << 32 | (unsigned)in[T], relaxed);
  else { unsigned long long w; while (!((w = Device<unsigned long long>(words[T]).load(relaxed)) >> 32)) {} out[T] = (int)w; }
}
//@ grid=2 block=32 zero
K packed_in_two_wrong(const int* in, int* words, int* out) {
  if (B == 0) { words[2 * T] = in[T]; Device<int>(words[2 * T + 1]).store(1, relaxed); }                      //~ race
  else { while (!Device<int>(words[2 * T + 1]).load(relaxed)) {} out[T] = words[2 * T]; }                     //~ race
}
// A count of readers lets a writer in; the last reader leaves by a relaxed decrement.
template <int kind> __device__ __forceinline__ void readers(int* count, int* data, int* out) {
  if (B < 2) {
    out[B] = data[0];                                                                                        //~ race readers_relaxed_wrong
    Device<int>(*count).fetch_add(1, kind ? relaxed : release);
  } else {
    while (Device<int>(*count).load(acquire) < 2) {}
    data[0] = 7;                                                                                             //~ race readers_relaxed_wrong
  }
}
//@ grid=3 block=1 zero
K readers_right(int* count, int* data, int* out) { readers<0>(count, data, out); }
//@ grid=3 block=1 zero
K readers_relaxed_wrong(int* count, int* data, int* out) { readers<1>(count, data, out); }
// A dynamic queue in shared memory: items are added while others are taken, behind the same barrier.
//@ block=64
K queue_rounds_right(const int* in, int* out) {
  __shared__ int queue[256], tail, from;
  if (T == 0) tail = 64, from = 0;
  queue[T] = in[T];
  __syncthreads();
  for (int round = 0; round < 2; round++) {
    int first = from, end = tail;
    __syncthreads();
    for (int i = first + T; i < end; i += 64) if (queue[i] > round * 4) queue[atomicAdd(&tail, 1)] = queue[i] - 1;
    if (T == 0) from = end;
    __syncthreads();
  }
  out[T] = queue[tail - 1];
}
//@ block=64
K queue_rounds_wrong(const int* in, int* out) {
  __shared__ int queue[256], tail, from;
  if (T == 0) tail = 64, from = 0;
  queue[T] = in[T];
  __syncthreads();
  for (int round = 0; round < 2; round++) {
    int first = from, end = tail;                                                                            //~ race
    for (int i = first + T; i < end; i += 64) if (queue[i] > round * 4) queue[atomicAdd(&tail, 1)] = queue[i] - 1; //~ race
    if (T == 0) from = end;
    __syncthreads();
  }
  out[T] = queue[tail - 1];
}
// A matrix is transposed in place by tiles: the pair of tiles is read by one block, and by the one across the diagonal.
//@ grid=4 block=64
K transpose_pairs_right(int* m, int n) {
  __shared__ int a[8][9], b[8][9]; int by = B / 2, bx = B % 2, x = T % 8, y = T / 8;
  if (bx < by) return;
  int here = (by * 8 + y) * 16 + bx * 8 + x, there = (bx * 8 + y) * 16 + by * 8 + x;
  a[y][x] = m[here]; b[y][x] = m[there];
  __syncthreads();
  m[there] = a[x][y]; if (bx != by) m[here] = b[x][y];
}
//@ grid=4 block=64
K transpose_pairs_wrong(int* m, int n) {
  __shared__ int a[8][9]; int by = B / 2, bx = B % 2, x = T % 8, y = T / 8;
  int here = (by * 8 + y) * 16 + bx * 8 + x, there = (bx * 8 + y) * 16 + by * 8 + x;
  a[y][x] = m[here];                                                                                         //~ race
  __syncthreads();
  m[there] = a[x][y];                                                                                        //~ race
}
