// Parallel patterns of irregular programs: queues, locks, hash tables, lists, pipelines of warps and blocks.
#include <cuda/atomic>
#define K extern "C" __global__ void
#define ALL 0xffffffffu
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto device = cuda::thread_scope_device;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;

//@ grid=2 block=64 zero
K persistent_right(int* next, int* out) {           // each block takes the next tile until there is none
  __shared__ int tile;
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    int t = tile;
    __syncthreads();
    if (t >= 6) return;
    out[t * 64 + threadIdx.x] = t;
  }
}
//@ grid=2 block=64 zero
K persistent_wrong(int* next, int* out) {           // the next tile is taken while others still read the last one
  __shared__ int tile;
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);  //~ race
    __syncthreads();   //~ synchronization
    int t = tile;                                     //~ race, synchronization
    if (t >= 6) return;
    out[t * 64 + threadIdx.x] = t;
  }
}
//@ grid=2 block=32 zero
K hash_insert_right(int* keys, int* values) {
  int key = 1 + threadIdx.x % 8, slot = key % 16;
  for (;;) {
    int old = atomicCAS(&keys[slot], 0, key);
    if (old == 0 || old == key) { atomicAdd(&values[slot], 1); return; }
    slot = (slot + 1) % 16;
  }
}
//@ grid=2 block=32 zero
K hash_insert_wrong(int* keys, int* values) {         // whoever finds its key adds without an atomic
  int key = 1 + threadIdx.x % 8, slot = key % 16;
  for (;;) {
    int old = atomicCAS(&keys[slot], 0, key);
    if (old == 0 || old == key) { values[slot] += threadIdx.x + 1; return; }    //~ race
    slot = (slot + 1) % 16;
  }
}
//@ grid=2 block=32 zero
K hash_probe_wrong(int* keys, int* values) {          // looks at the slot by a plain load before it takes it
  int key = 1 + threadIdx.x % 8, slot = key % 16;
  for (;;) {
    int old = keys[slot];                             //~ race
    if (old == 0) old = atomicCAS(&keys[slot], 0, key);  //~ race
    if (old == 0 || old == key) { atomicAdd(&values[slot], 1); return; }
    slot = (slot + 1) % 16;
  }
}
//@ grid=2 block=32 zero
K stack_push_right(int* head, int* nodes) {           // nodes[2 i] is the next one, nodes[2 i + 1] what it holds
  int me = 1 + blockIdx.x * 32 + threadIdx.x;
  nodes[2 * me + 1] = me;
  int top = Ref<device>(*head).load(relaxed);
  do { nodes[2 * me] = top; } while (!Ref<device>(*head).compare_exchange_weak(top, me, release, relaxed));
}
//@ grid=2 block=32 zero
K stack_walk_wrong(int* head, int* nodes) {           // the one that walks does not acquire
  int me = 1 + blockIdx.x * 32 + threadIdx.x;
  nodes[2 * me + 1] = me;                             //~ race
  int top = Ref<device>(*head).load(relaxed);
  do { nodes[2 * me] = top; } while (!Ref<device>(*head).compare_exchange_weak(top, me, release, relaxed));
  int other = Ref<device>(*head).load(relaxed);
  atomicAdd(&nodes[512], nodes[2 * other + 1]);       //~ race
}
//@ grid=2 block=32 zero
K stack_walk_right(int* head, int* nodes) {
  int me = 1 + blockIdx.x * 32 + threadIdx.x;
  nodes[2 * me + 1] = me;
  int top = Ref<device>(*head).load(relaxed);
  do { nodes[2 * me] = top; } while (!Ref<device>(*head).compare_exchange_weak(top, me, release, relaxed));
  int other = Ref<device>(*head).load(acquire);
  atomicAdd(&nodes[512], nodes[2 * other + 1]);
}
//@ grid=2 block=32 zero
K once_right(int* state, int* data) {                 // the first one fills, the others wait: double-checked
  if (threadIdx.x == 0) {
    if (Ref<device>(*state).load(acquire) != 2) {
      int none = 0;
      if (Ref<device>(*state).compare_exchange_strong(none, 1, relaxed)) {
        data[0] = 7;
        Ref<device>(*state).store(2, release);
      } else {
        while (Ref<device>(*state).load(acquire) != 2) {}
      }
    }
    data[1 + blockIdx.x] = data[0];
  }
}
//@ grid=2 block=32 zero
K once_wrong(int* state, int* data) {                 // the first look is relaxed
  if (threadIdx.x == 0) {
    if (Ref<device>(*state).load(relaxed) != 2) {
      int none = 0;
      if (Ref<device>(*state).compare_exchange_strong(none, 1, relaxed)) {
        data[0] = 7;                                  //~ race
        Ref<device>(*state).store(2, release);
      } else {
        while (Ref<device>(*state).load(relaxed) != 2) {}
      }
    }
    data[1 + blockIdx.x] = data[0];                   //~ race
  }
}
//@ grid=2 block=32 zero
K once_plain_wrong(int* state, int* data) {           // the flag itself is plain
  if (threadIdx.x == 0) {
    if (data[8] == 0) {                               //~ race
      while (atomicCAS(state, 0, 1)) {}
      __threadfence();
      if (data[8] == 0) { data[0] = 7; __threadfence(); data[8] = 1 + blockIdx.x; }   //~ race
      __threadfence();
      atomicExch(state, 0);
    }
  }
}
//@ grid=1 block=64 zero
K ring_right(int* in, int* out) {                     // warp 0 fills a ring that warp 1 empties, by named barriers
  __shared__ int ring[2][32];
  int lane = threadIdx.x & 31;
  if (threadIdx.x < 32) {
    for (int i = 0; i < 6; i++) {
      if (i >= 2) asm volatile("bar.sync %0, 64;" ::"r"(3 + (i & 1)) : "memory");
      ring[i & 1][lane] = in[i * 32 + lane];
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + (i & 1)) : "memory");
    }
  } else {
    for (int i = 0; i < 6; i++) {
      asm volatile("bar.sync %0, 64;" ::"r"(1 + (i & 1)) : "memory");
      out[i * 32 + lane] = ring[i & 1][31 - lane];
      if (i < 4) asm volatile("bar.arrive %0, 64;" ::"r"(3 + (i & 1)) : "memory");
    }
  }
}
//@ grid=1 block=64 zero
K ring_wrong(int* in, int* out) {                     // nobody says that the ring's slot is empty
  __shared__ int ring[2][32];
  int lane = threadIdx.x & 31;
  if (threadIdx.x < 32) {
    for (int i = 0; i < 6; i++) {
      ring[i & 1][lane] = in[i * 32 + lane] + i;      //~ race
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + i) : "memory");
    }
  } else {
    for (int i = 0; i < 6; i++) {
      asm volatile("bar.sync %0, 64;" ::"r"(1 + i) : "memory");
      out[i * 32 + lane] = ring[i & 1][31 - lane];    //~ race
    }
  }
}
//@ grid=1 block=128
K hillis_steele_wrong(int* in, int* out) {            // in place with one barrier a step
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t] + t;
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    int x = t >= d ? s[t - d] : 0;                    //~ race
    s[t] += x;                                        //~ race
    __syncthreads();
  }
  out[t] = s[t];
}
//@ grid=1 block=128
K hillis_steele_right(int* in, int* out) {
  __shared__ int s[2][128];
  int t = threadIdx.x, a = 0;
  s[0][t] = in[t] + t;
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    s[1 - a][t] = s[a][t] + (t >= d ? s[a][t - d] : 0);
    a = 1 - a;
    __syncthreads();
  }
  out[t] = s[a][t];
}
//@ grid=1 block=64
K bitonic_right(int* in, int* out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = in[t] * 31 + t;
  for (int k = 2; k <= 64; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      int p = t ^ j;
      if (p > t && (s[t] > s[p]) == ((t & k) == 0)) { int x = s[t]; s[t] = s[p]; s[p] = x; }
    }
  __syncthreads();
  out[t] = s[63 - t];
}
//@ grid=1 block=64
K bitonic_wrong(int* in, int* out) {                  // steps within a warp go without a barrier
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = in[t] * 31 + t;
  for (int k = 2; k <= 64; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      if (j >= 32) __syncthreads();
      int p = t ^ j;
      if (p > t && (s[t] > s[p]) == ((t & k) == 0)) { int x = s[t]; s[t] = s[p]; s[p] = x; }  //~ race
    }
  __syncthreads();
  out[t] = s[63 - t];
}
//@ grid=2 block=64 zero
K frontier_right(const int* in, int* list) {          // a block's part of the frontier in shared memory first
  __shared__ int count, base, part[64];
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (in[threadIdx.x] == 0) part[atomicAdd(&count, 1)] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) base = atomicAdd(&list[0], count);
  __syncthreads();
  if (threadIdx.x < count) list[1 + base + threadIdx.x] = part[threadIdx.x];
}
//@ grid=2 block=64 zero
K frontier_no_reset_barrier_wrong(const int* in, int* list) {
  __shared__ int count, base, part[64];
  if (threadIdx.x == 0) count = 0;                    //~ race
  if (in[threadIdx.x] == 0) part[atomicAdd(&count, 1) & 63] = threadIdx.x;   //~ race
  __syncthreads();
  if (threadIdx.x == 0) base = atomicAdd(&list[0], count);
  __syncthreads();
  if (threadIdx.x < count) list[1 + base + threadIdx.x] = part[threadIdx.x];
}
//@ grid=2 block=64 zero
K frontier_count_reused_wrong(const int* in, int* list) {   // the count is reset for the next round too early
  __shared__ int count, part[64];
  for (int round = 0; round < 2; round++) {
    if (threadIdx.x == 0) count = 0;                  //~ race
    __syncthreads();
    if (in[threadIdx.x] == round) part[atomicAdd(&count, 1)] = threadIdx.x;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += 64) atomicAdd(&list[part[i]], 1);   //~ race
  }
}
//@ grid=2 block=32 zero
K reader_writer_right(int* lock, int* data) {         // below zero: a writer; else the number of readers
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) {
      int none = 0;
      while (!Ref<device>(*lock).compare_exchange_weak(none, -1, acquire)) none = 0;
      data[0] += 5;
      Ref<device>(*lock).store(0, release);
    } else {
      for (;;) {
        int readers = Ref<device>(*lock).load(relaxed);
        if (readers >= 0 && Ref<device>(*lock).compare_exchange_weak(readers, readers + 1, acquire)) break;
      }
      data[1] = data[0];
      Ref<device>(*lock).fetch_sub(1, release);
    }
  }
}
//@ grid=2 block=32 zero
K reader_writer_wrong(int* lock, int* data) {         // a reader leaves without a release
  if (threadIdx.x == 0) {
    if (blockIdx.x == 1) {
      int none = 0;
      while (!Ref<device>(*lock).compare_exchange_weak(none, -1, acquire)) none = 0;
      data[0] += 5;                                   //~ race
      Ref<device>(*lock).store(0, release);
    } else {
      for (;;) {
        int readers = Ref<device>(*lock).load(relaxed);
        if (readers >= 0 && Ref<device>(*lock).compare_exchange_weak(readers, readers + 1, acquire)) break;
      }
      data[1] = data[0];                              //~ race
      Ref<device>(*lock).fetch_sub(1, relaxed);
    }
  }
}
//@ grid=4 block=32 zero
K last_block_scope_wrong(int* part, int* ticket) {    // the ticket counts blocks, its scope is one
  part[blockIdx.x * 32 + threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  __shared__ int mine;
  if (threadIdx.x == 0) mine = atomicAdd_block(ticket, 1);   //~ race
  __syncthreads();
  if (mine == 3 && threadIdx.x == 0) part[512] = part[0] + part[32];
}
//@ grid=4 block=64 zero
K last_block_right(int* part, int* ticket) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = blockIdx.x;
    __threadfence();
    last = atomicInc((unsigned*)ticket, 3) == 3;
  }
  __syncthreads();
  if (last) {
    int x = threadIdx.x < 4 ? ((volatile int*)part)[threadIdx.x] : 0;
    for (int d = 2; d > 0; d /= 2) x += __shfl_down_sync(ALL, x, d);
    if (threadIdx.x == 0) part[16] = x;
  }
}
//@ grid=4 block=32 zero
K neighbour_flags_right(int* flags, int* data) {      // block b waits for b - 1
  if (threadIdx.x == 0) {
    if (blockIdx.x > 0) while (Ref<device>(flags[blockIdx.x - 1]).load(acquire) == 0) {}
    data[blockIdx.x] = blockIdx.x > 0 ? data[blockIdx.x - 1] + 1 : 1;
    Ref<device>(flags[blockIdx.x]).store(1, release);
  }
}
//@ grid=4 block=32 zero
K neighbour_flags_volatile_wrong(volatile int* flags, int* data) {   // without fences
  if (threadIdx.x == 0) {
    if (blockIdx.x > 0) while (flags[blockIdx.x - 1] == 0) {}
    data[blockIdx.x] = blockIdx.x > 0 ? data[blockIdx.x - 1] + 1 : 1;    //~ race
    flags[blockIdx.x] = 1;
  }
}
//@ grid=2 block=64
K warp_sums_right(const int* in, int* out) {
  __shared__ int sums[2];
  int x = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(ALL, x, d);
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0] + sums[1];
}
//@ grid=2 block=64
K warp_sums_syncwarp_wrong(const int* in, int* out) { // a warp's barrier where the block's is needed
  __shared__ int sums[2];
  int x = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(ALL, x, d);
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = x;        //~ race
  __syncwarp();
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0] + sums[1];      //~ race
}
//@ grid=1 block=32
K exchange_by_shuffle_wrong(const int* in, int* out) {   // a shuffle orders no memory
  __shared__ int s[32];
  s[threadIdx.x] = in[threadIdx.x];                   //~ race
  int x = __shfl_sync(ALL, threadIdx.x, 3);
  out[threadIdx.x] = s[31 - threadIdx.x] + x;         //~ race
}
//@ grid=1 block=64
K half_block_barrier_wrong(const int* in, int* out) { // only the first warp waits
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];                   //~ race
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 32;" ::: "memory");
  out[threadIdx.x] = s[63 - threadIdx.x];             //~ race
}
//@ grid=2 block=32 zero
K relax_edges_wrong(int* dist, const int* weight) {   // reads its own distance while others lower it
  int v = blockIdx.x * 32 + threadIdx.x, d = dist[v]; //~ race
  for (int j = 1; j < 4; j++) atomicMin(&dist[(v + j) & 63], d + weight[v] - 3 - v);   //~ race
}
//@ grid=2 block=32 zero
K relax_edges_right(int* dist, const int* weight) {
  int v = blockIdx.x * 32 + threadIdx.x, d = atomicAdd(&dist[v], 0);
  for (int j = 1; j < 4; j++) atomicMin(&dist[(v + j) & 63], d + weight[v] - 3 - v);
}
//@ grid=2 block=32 zero
K relax_two_buffers_right(const int* dist, int* next) {
  int v = blockIdx.x * 32 + threadIdx.x, d = dist[v];
  for (int j = 1; j < 4; j++) atomicMin(&next[(v + j) & 63], d - v);
}
//@ grid=1 block=32 zero
K lanes_lock_right(int* lock, int* data) {            // lanes of a warp one after the other
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      data[0] += threadIdx.x;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
//@ grid=1 block=32 zero
K lanes_lock_plain_release_wrong(int* lock, int* data) {   // the unlock is a plain store
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {                 //~ race
      __threadfence();
      data[0] += threadIdx.x;
      __threadfence();
      *lock = 0;                                      //~ race
      done = true;
    }
  }
}
//@ grid=2 block=32 zero
K bit_set_right(unsigned* bits, int n) { atomicOr(&bits[threadIdx.x / 8], 1u << (threadIdx.x & 7)); }
//@ grid=2 block=32 zero
K bit_set_wrong(unsigned* bits, int n) { bits[threadIdx.x / 8] |= 1u << (threadIdx.x & 7); }   //~ race
//@ grid=2 block=32 zero
K flag_array_right(int* flags, const int* to) { flags[to[threadIdx.x]] = 1; }
//@ grid=2 block=32 zero
K owner_array_wrong(int* owner, const int* to) { owner[to[threadIdx.x]] = threadIdx.x; }   //~ race
//@ grid=1 block=96
K tail_warp_wrong(const int* in, int* out) {          // the last warp writes after the barrier what the first reads
  __shared__ int s[96];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= 64) s[threadIdx.x - 64] += threadIdx.x;       //~ race
  out[threadIdx.x] = s[threadIdx.x / 3];              //~ race
}
//@ grid=2 block=32 zero
K seqlock_right(int* seq, int* data) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) {
      Ref<device>(*seq).store(1, relaxed);
      cuda::atomic_thread_fence(release, device);
      Ref<device>(data[0]).store(5, relaxed);
      Ref<device>(data[1]).store(6, relaxed);
      Ref<device>(*seq).store(2, release);
    } else {
      int a, b, x, y;
      do {
        a = Ref<device>(*seq).load(acquire);
        x = Ref<device>(data[0]).load(relaxed);
        y = Ref<device>(data[1]).load(relaxed);
        cuda::atomic_thread_fence(acquire, device);
        b = Ref<device>(*seq).load(relaxed);
      } while (a != b || (a & 1));
      data[2] = x + y;
    }
  }
}
//@ grid=2 block=32 zero
K seqlock_plain_data_wrong(int* seq, int* data) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 1) {
      Ref<device>(*seq).store(1, relaxed);
      cuda::atomic_thread_fence(release, device);
      data[0] = 5;                                    //~ race
      Ref<device>(*seq).store(2, release);
    } else {
      int a, b, x;
      do {
        a = Ref<device>(*seq).load(acquire);
        x = data[0];                                  //~ race
        cuda::atomic_thread_fence(acquire, device);
        b = Ref<device>(*seq).load(relaxed);
      } while (a != b || (a & 1));
      data[2] = x;
    }
  }
}
