// Schemes of synchronization that people build from atomics and fences (queue locks, semaphores, rings, deques, dissemination barriers), and graph
// kernels that persist over several rounds; each with what goes wrong in it.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>
#include <new>
#define K extern "C" __global__ void
#define T threadIdx.x
#define B blockIdx.x
#define G (blockIdx.x * blockDim.x + threadIdx.x)
#define N (gridDim.x * blockDim.x)
namespace cg = cooperative_groups;
template <class V> using Device = cuda::atomic_ref<V, cuda::thread_scope_device>;
template <class V> using Block = cuda::atomic_ref<V, cuda::thread_scope_block>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;
constexpr auto acq_rel = cuda::memory_order_acq_rel;
constexpr auto seq_cst = cuda::memory_order_seq_cst;
// A graph without memory: four neighbors of a vertex.
__device__ inline int neighbor(int v, int j, int n) { return (v * 5 + j * 7 + 1) % n; }

// MCS lock: each thread that waits has a place in a queue, and gets the lock from the one before it.
struct Place { int next, locked; };
template <bool handed> __device__ inline void mcs(Place* places, int* tail, int* data, int* queued) {
  int me = B + 1;
  Device<int>(places[me].next).store(0, relaxed);
  Device<int>(places[me].locked).store(1, relaxed);
  int before = Device<int>(*tail).exchange(me, acq_rel);
  if (before) {
    Device<int>(places[before].next).store(me, release);
    Device<int>(*queued).fetch_add(1, relaxed);
    while (Device<int>(places[me].locked).load(acquire)) {}
  } else {
    while (Device<int>(*queued).load(relaxed) < 3) {}                                                 // so that all get it from another one
  }
  data[0] += me;                                                                                      //~ race mcs_relaxed_wrong
  int next = Device<int>(places[me].next).load(acquire), self = me;
  if (!next) {
    if (Device<int>(*tail).compare_exchange_strong(self, 0, acq_rel)) return;
    while (!(next = Device<int>(places[me].next).load(acquire))) {}
  }
  Device<int>(places[next].locked).store(0, handed ? release : relaxed);
}
//@ grid=4 block=1 zero
K mcs_right(Place* places, int* tail, int* data, int* queued) { mcs<true>(places, tail, data, queued); }
//@ grid=4 block=1 zero
K mcs_relaxed_wrong(Place* places, int* tail, int* data, int* queued) { mcs<false>(places, tail, data, queued); }   //~ race

// Readers and writers: the count of readers, or -1.
template <bool ordered> __device__ inline void read_or_write(int* state, int* data, int* out) {
  Device<int> s(*state);
  if (B & 1) {
    int free = 0;
    while (!s.compare_exchange_strong(free, -1, acquire, relaxed)) free = 0;
    data[0] = B;                                                                                      //~ race rw_reader_leaves_relaxed_wrong
    data[1] = B;                                                                                      //~ race rw_reader_leaves_relaxed_wrong
    s.store(0, release);
  } else {
    int seen = s.load(relaxed);
    do {
      while (seen < 0) seen = s.load(relaxed);
    } while (!s.compare_exchange_strong(seen, seen + 1, acquire, relaxed));
    out[B] = data[0] + data[1];                                                                       //~ race rw_reader_leaves_relaxed_wrong
    s.fetch_sub(1, ordered ? release : relaxed);
  }
}
//@ grid=4 block=1 zero
K rw_right(int* state, int* data, int* out) { read_or_write<true>(state, data, out); }
//@ grid=4 block=1 zero
K rw_reader_leaves_relaxed_wrong(int* state, int* data, int* out) { read_or_write<false>(state, data, out); }   //~ race

// Peterson's lock of two CTAs.
template <bool fenced> __device__ inline void peterson(int* wants, int* turn, int* data) {
  int me = B, other = 1 - B;
  for (int i = 0; i < 3; i++) {
    Device<int>(wants[me]).store(1, relaxed);
    Device<int>(*turn).store(other, fenced ? release : relaxed);
    cuda::atomic_thread_fence(seq_cst, cuda::thread_scope_device);
    while (Device<int>(wants[other]).load(acquire) && Device<int>(*turn).load(acquire) == other) {}
    if (fenced) cuda::atomic_thread_fence(seq_cst, cuda::thread_scope_device);
    data[0] += 1;
    Device<int>(wants[me]).store(0, fenced ? release : relaxed);
  }
}
//@ grid=2 block=1 zero
K peterson_right(int* wants, int* turn, int* data) { peterson<true>(wants, turn, data); }

// A ring of one producer and one consumer.
template <int kind> __device__ inline void ring(int* slots, int* head, int* tail, int* out) {
  constexpr int SIZE = 4, COUNT = 12;
  if (B == 0) {
    for (int i = 0; i < COUNT; i++) {
      while (i - Device<int>(*head).load(kind == 3 ? relaxed : acquire) >= SIZE) {}
      slots[i % SIZE] = i + 1;                                                                        //~ race ring_freed_early_wrong, race ring_published_early_wrong, race ring_refilled_relaxed_wrong
      Device<int>(*tail).store(i + 1, kind == 1 ? relaxed : release);
    }
  } else {
    for (int i = 0; i < COUNT; i++) {
      while (Device<int>(*tail).load(acquire) <= i) {}
      if (kind == 2) Device<int>(*head).store(i + 1, release);
      out[i] = slots[i % SIZE];                                                                       //~ race ring_freed_early_wrong, race ring_published_early_wrong, race ring_refilled_relaxed_wrong
      if (kind != 2) Device<int>(*head).store(i + 1, kind == 3 ? relaxed : release);
    }
  }
}
//@ grid=2 block=1 zero
K ring_two_blocks_right(int* slots, int* head, int* tail, int* out) { ring<0>(slots, head, tail, out); }
//@ grid=2 block=1 zero
K ring_published_early_wrong(int* slots, int* head, int* tail, int* out) { ring<1>(slots, head, tail, out); }   //~ race
//@ grid=2 block=1 zero
K ring_freed_early_wrong(int* slots, int* head, int* tail, int* out) { ring<2>(slots, head, tail, out); }       //~ race
//@ grid=2 block=1 zero
K ring_refilled_relaxed_wrong(int* slots, int* head, int* tail, int* out) { ring<3>(slots, head, tail, out); }  //~ race

// A dissemination barrier of four CTAs: in round r each tells the one 2^r further.
template <bool ordered> __device__ inline void disseminate(int* flags) {
  __syncthreads();
  if (T == 0) {
    for (int r = 0, d = 1; d < 4; d *= 2, r++) {
      Device<int>(flags[r * 4 + (B + d) % 4]).store(1, ordered ? release : relaxed);
      while (!Device<int>(flags[r * 4 + B]).load(acquire)) {}
    }
  }
  __syncthreads();
}
//@ grid=4 block=64 zero
K dissemination_right(int* flags, int* data, int* out) {
  data[G] = T;
  disseminate<true>(flags);
  out[G] = data[(G + 64) % N];
}
//@ grid=4 block=64 zero
K dissemination_relaxed_wrong(int* flags, int* data, int* out) {
  data[G] = T;                                                                                        //~ race
  disseminate<false>(flags);
  out[G] = data[(G + 64) % N];                                                                        //~ race
}
//@ grid=4 block=64 zero
K dissemination_one_round_wrong(int* flags, int* data, int* out) {       // hears only of its neighbor
  data[G] = T;                                                                                        //~ race
  __syncthreads();
  if (T == 0) {
    Device<int>(flags[(B + 1) % 4]).store(1, release);
    while (!Device<int>(flags[B]).load(acquire)) {}
  }
  __syncthreads();
  out[G] = data[(G + 64) % N];                                                                        //~ race
}

// Objects of libcu++ in global and shared memory.
using Latch = cuda::latch<cuda::thread_scope_block>;
__device__ cuda::binary_semaphore<cuda::thread_scope_device> one_at_a_time(1);
//@ grid=4 block=1 zero
K semaphore_right(int* data, int n) {
  one_at_a_time.acquire();
  data[0] += B;
  one_at_a_time.release();
}
//@ grid=4 block=1 zero
K semaphore_late_wrong(int* data, int n) {
  one_at_a_time.acquire();
  data[0] += B;                                                                                       //~ race
  one_at_a_time.release();
  data[0] += 1;                                                                                       //~ race
}
K latch_right(int* data, int* out) {
  __shared__ alignas(Latch) char room[sizeof(Latch)];
  Latch& all_here = *(Latch*)room;
  if (T == 0) new (room) Latch(4);
  __syncthreads();
  data[T] = T;
  __syncwarp();
  if (T % 32 == 0) all_here.arrive_and_wait();
  __syncwarp();
  out[T] = data[127 - T];
}
K latch_no_sync_wrong(int* data, int* out) {           // the lanes do not wait for the one that does
  __shared__ alignas(Latch) char room[sizeof(Latch)];
  Latch& all_here = *(Latch*)room;
  if (T == 0) new (room) Latch(4);
  __syncthreads();
  data[T] = T;                                                                                        //~ race
  __syncwarp();
  if (T % 32 == 0) all_here.arrive_and_wait();
  out[T] = data[127 - T];                                                                             //~ race
}

// A deque whose owner pushes and pops at the bottom, while others steal from the top.
template <bool published> __device__ inline void deque(int* items, int* top, int* bottom, int* out) {
  if (B == 0) {
    for (int i = 0; i < 8; i++) {
      items[i] = i + 1;                                                                               //~ race deque_relaxed_wrong
      Device<int>(*bottom).store(i + 1, published ? release : relaxed);
    }
  } else {
    int t = Device<int>(*top).load(acquire);
    for (int tries = 0; tries < 12; tries++) {
      cuda::atomic_thread_fence(seq_cst, cuda::thread_scope_device);
      int b = Device<int>(*bottom).load(acquire);
      if (t >= b) continue;
      int item = items[t];                                                                            //~ race deque_relaxed_wrong
      if (Device<int>(*top).compare_exchange_strong(t, t + 1, seq_cst, relaxed)) out[t++] = item;
    }
  }
}
//@ grid=3 block=1 zero
K deque_right(int* items, int* top, int* bottom, int* out) { deque<true>(items, top, bottom, out); }
//@ grid=3 block=1 zero
K deque_relaxed_wrong(int* items, int* top, int* bottom, int* out) { deque<false>(items, top, bottom, out); }   //~ race

// A table of keys and values: the key is claimed first.
//@ grid=2 block=32 zero
K table_value_late_wrong(const int* in, int* keys, int* values, int* out) {
  int key = T % 16 + 1, at = key * 3 % 64;
  if (atomicCAS(&keys[at], 0, key) == 0) values[at] = key * 10;                                       //~ race
  if (atomicAdd(&keys[at], 0) == key) out[G] = values[at];                                            //~ race
}
//@ grid=2 block=32 zero
K table_value_ready_right(const int* in, int* keys, int* values, int* out) {
  int key = T % 16 + 1, at = key * 3 % 64;
  if (atomicCAS(&keys[at], 0, -1) == 0) {
    values[at] = key * 10;
    Device<int>(keys[at]).store(key, release);
  }
  if (Device<int>(keys[at]).load(acquire) == key) out[G] = values[at];
}

// Breadth-first search that persists over its levels.
//@ grid=2 coop zero
K levels_right(int* level, int* changed, int n) {
  if (G == 0) level[0] = 1;
  cg::this_grid().sync();
  // What one level's search has reached is only looked at in the next one: plain reads and atomics of other vertices' levels still meet.
  for (int d = 0; d < n; d++) {
    for (int v = G; v < 512; v += N)
      if (Device<int>(level[v]).load(relaxed) == d + 1)
        for (int j = 0; j < 4; j++)
          if (atomicCAS(&level[neighbor(v, j, 512)], 0, d + 2) == 0) changed[d] = 1;
    cg::this_grid().sync();
    if (changed[d] == 0) break;
  }
}
//@ grid=2 coop zero
K levels_no_sync_wrong(int* level, int* changed, int n) {                // the flag is tested before all have set it
  if (G == 0) level[0] = 1;
  cg::this_grid().sync();
  for (int d = 0; d < n; d++) {
    for (int v = G; v < 512; v += N)
      if (Device<int>(level[v]).load(relaxed) == d + 1)
        for (int j = 0; j < 4; j++)
          if (atomicCAS(&level[neighbor(v, j, 512)], 0, d + 2) == 0) changed[d] = 1;                  //~ race
    if (changed[d] == 0) break;                                                                       //~ race
  }
}
//@ grid=2 coop zero
K levels_plain_read_wrong(int* level, int n) {
  if (G == 0) level[0] = 1;
  cg::this_grid().sync();
  for (int d = 0; d < n; d++) {
    for (int v = G; v < 512; v += N)
      if (level[v] == d + 1)                                                                          //~ race
        for (int j = 0; j < 4; j++) atomicCAS(&level[neighbor(v, j, 512)], 0, d + 2);                 //~ race
    cg::this_grid().sync();
  }
}
//@ grid=2 coop zero
K frontiers_right(int* level, int* from, int* to, int* sizes, int n) {
  auto grid = cg::this_grid();
  if (G == 0) { from[0] = 0; level[0] = 1; sizes[0] = 1; }
  grid.sync();
  for (int d = 0; d < n; d++) {
    int size = sizes[d];
    for (int i = G; i < size; i += N)
      for (int j = 0; j < 4; j++) {
        int u = neighbor(from[i], j, 512);
        if (atomicCAS(&level[u], 0, d + 2) == 0) to[atomicAdd(&sizes[d + 1], 1)] = u;
      }
    grid.sync();
    int* t = from; from = to; to = t;
  }
}
//@ grid=2 coop zero
K frontiers_one_size_wrong(int* level, int* from, int* to, int* size, int n) {       // the size is reset while others read it
  auto grid = cg::this_grid();
  if (G == 0) { from[0] = 0; level[0] = 1; size[0] = 1; }
  grid.sync();
  for (int d = 0; d < n; d++) {
    int count = size[0];                                                                              //~ race
    if (G == 0) size[0] = 0;                                                                          //~ race
    grid.sync();
    for (int i = G; i < count; i += N)
      for (int j = 0; j < 4; j++) {
        int u = neighbor(from[i], j, 512);
        if (atomicCAS(&level[u], 0, d + 2) == 0) to[atomicAdd(size, 1)] = u;
      }
    grid.sync();
    int* t = from; from = to; to = t;
  }
}

// Statuses of a byte.
//@ grid=2 zero
K status_bytes_right(volatile unsigned char* status) {
  int v = G;
  bool best = true;
  for (int j = 0; j < 4; j++) best &= status[neighbor(v, j, 256)] != 1;
  status[v] = best ? 1 : 2;
}
//@ grid=2 zero
K status_bytes_wrong(unsigned char* status) {
  int v = G;
  bool best = true;
  for (int j = 0; j < 4; j++) best &= status[neighbor(v, j, 256)] != 1;                               //~ race
  status[v] = best ? 1 : 2;                                                                           //~ race
}
// Components: hooking and shortcuts.
//@ grid=2
K hook_right(int* parent) {
  int v = G + 8;
  for (int j = 0; j < 4; j++) {
    int a = Device<int>(parent[v]).load(relaxed), b = Device<int>(parent[neighbor(v, j, 256)]).load(relaxed);
    if (a != b) atomicMin(&parent[max(a, b)], min(a, b));
  }
}
//@ grid=2
K hook_plain_read_wrong(int* parent) {
  int v = G + 8;
  for (int j = 0; j < 4; j++) {
    int a = parent[v & 7], b = parent[neighbor(v, j, 256) & 7];                                       //~ race
    if (a != b) atomicMin(&parent[max(a, b)], min(a, b));                                             //~ race
  }
}
// A warp for each vertex, from a counter.
//@ zero
K warp_takes_right(int* counter, int* out) {
  for (;;) {
    int v = 0;
    if (T % 32 == 0) v = atomicAdd(counter, 1);
    v = __shfl_sync(~0u, v, 0);
    if (v >= 16) break;
    out[v * 32 + T % 32] = v;
  }
}
//@ zero
K warp_takes_shared_right(int* counter, int* out) {
  __shared__ int taken[4];
  for (;;) {
    if (T % 32 == 0) taken[T / 32] = atomicAdd(counter, 1);
    __syncwarp();
    int v = taken[T / 32];
    __syncwarp();
    if (v >= 16) break;
    out[v * 32 + T % 32] = v;
  }
}
//@ zero
K warp_takes_again_wrong(int* counter, int* out) {     // the next vertex replaces one that lanes still read
  __shared__ int taken[4];
  for (;;) {
    if (T % 32 == 0) taken[T / 32] = atomicAdd(counter, 1);                                           //~ race
    __syncwarp();
    int v = taken[T / 32];                                                                            //~ race
    if (v >= 16) break;
    out[v * 32 + T % 32] = v;
  }
}
//@ zero grid=2
K block_takes_right(int* counter, int* out) {
  __shared__ int taken;
  for (;;) {
    if (T == 0) taken = atomicAdd(counter, 1);
    __syncthreads();
    int v = taken;
    __syncthreads();
    if (v >= 8) break;
    out[v * 128 + T] = v;
  }
}
//@ zero grid=2
K block_takes_again_wrong(int* counter, int* out) {
  __shared__ int taken;
  for (;;) {
    if (T == 0) taken = atomicAdd(counter, 1);                                                        //~ race
    __syncthreads();   //~ synchronization
    int v = taken;                                                                                    //~ race, synchronization
    if (v >= 8) break;
    out[v * 128 + T] = v;
  }
}
// A set in shared memory for each vertex of a CTA: triangles.
template <bool cleared> __device__ inline void triangles(int* out) {
  __shared__ int set[64];
  int count = 0;
  for (int v = 0; v < 3; v++) {
    if (T < 64) set[T] = -1;                                                                          //~ race triangles_not_waited_wrong
    __syncthreads();
    if (T < 4) {
      int u = neighbor(v, T, 512), at = u % 64;
      while (atomicCAS(&set[at], -1, u) != -1) at = (at + 1) % 64;
    }
    __syncthreads();
    int w = neighbor(neighbor(v, T % 4, 512), T / 4 % 4, 512);
    for (int at = w % 64; set[at] != -1; at = (at + 1) % 64) count += set[at] == w;                   //~ race triangles_not_waited_wrong
    if (cleared) __syncthreads();
  }
  atomicAdd(out, count);
}
K triangles_right(int* out, int n) { triangles<true>(out); }
K triangles_not_waited_wrong(int* out, int n) { triangles<false>(out); }                              //~ race

// Residuals: push and pull of ranks.
//@ grid=2
K residual_right(float* rank, float* residual) {
  float r = atomicExch(&residual[G], 0.0f);
  rank[G] += r;
  for (int j = 0; j < 4; j++) atomicAdd(&residual[neighbor(G, j, 256)], 0.2f * r);
}
//@ grid=2
K residual_plain_take_wrong(float* rank, float* residual) {
  float r = residual[G];                                                                              //~ race
  residual[G] = 0;                                                                                    //~ race
  rank[G] += r;
  for (int j = 0; j < 4; j++) atomicAdd(&residual[neighbor(G, j, 256)], 0.2f * r);                    //~ race
}
//@ grid=2
K residual_block_scope_wrong(float* rank, float* residual) {
  float r = atomicExch(&residual[G], 0.0f);                                                           //~ race
  rank[G] += r;
  for (int j = 0; j < 4; j++) atomicAdd_block(&residual[neighbor(G, j, 256)], 0.2f * r);              //~ race
}
//@ grid=2
K residual_system_right(float* rank, float* residual) {
  float r = atomicExch_system(&residual[G], 0.0f);
  rank[G] += r;
  for (int j = 0; j < 4; j++) atomicAdd(&residual[neighbor(G, j, 256)], 0.2f * r);
}
//@ grid=2
K vertices_off_by_one_wrong(const int* in, int* out) { for (int v = G; v <= 1024; v += N) out[v] = 1; }        //~ fault
