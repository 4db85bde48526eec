// Scopes, fences and hand-made synchronization: pairs that differ in one word.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/semaphore>
#include <cuda/latch>
#define K extern "C" __global__ void
#define B blockIdx.x
#define T threadIdx.x
template <class V> using Block = cuda::atomic_ref<V, cuda::thread_scope_block>;
template <class V> using Device = cuda::atomic_ref<V, cuda::thread_scope_device>;
template <class V> using System = cuda::atomic_ref<V, cuda::thread_scope_system>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;

// Each block has a counter of its own: the narrow scope is enough, unless a block takes another one's.
//@ grid=2 block=64
K own_counter_right(const int* in, int* count) { atomicAdd_block(&count[B], in[T]); }
//@ grid=2 block=64
K own_counter_wrong(const int* in, int* count) { atomicAdd_block(&count[(B + T / 63) & 1], in[T]); }          //~ race
// A wide and a narrow update of one counter by different blocks.
//@ grid=2 block=32
K wide_and_narrow_wrong(const int* in, int* count) {
  if (B == 0) atomicAdd_block(count, in[T]);                                                                  //~ race
  else atomicAdd_system(count, in[T]);                                                                        //~ race
}
//@ grid=2 block=32
K wide_and_wider_right(const int* in, int* count) {
  if (B == 0) atomicAdd(count, in[T]);
  else atomicAdd_system(count, in[T]);
}
// A lock of each block, in global memory.
//@ grid=2 block=64 zero
K lock_of_block_right(int* locks, int* data) {
  if (T % 32 == 0) {
    while (atomicCAS_block(&locks[B], 0, 1)) {}
    __threadfence_block();
    data[B] += 1;
    __threadfence_block();
    atomicExch_block(&locks[B], 0);
  }
}
//@ grid=2 block=64 zero
K lock_of_block_wrong(int* locks, int* data) {
  if (T % 32 == 0) {
    while (atomicCAS_block(&locks[B], 0, 1)) {}
    __threadfence_block();
    data[0] += 1;                                                                                             //~ race
    __threadfence_block();
    atomicExch_block(&locks[B], 0);
  }
}
// The unlocking store comes before the fence.
//@ grid=2 block=1 zero
K fence_behind_unlock_wrong(int* lock, int* data) {
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence();
  data[0] += 1;                                                                                               //~ race
  atomicExch(lock, 0);
  __threadfence();
}
//@ grid=2 block=1 zero
K fence_before_unlock_right(int* lock, int* data) {
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence();
  data[0] += 1;
  __threadfence();
  atomicExch(lock, 0);
}
// Arrival by a reduction that releases, and by one that does not.
//@ grid=2 block=32 zero
K red_release_right(int* data, int* count) {
  if (B == 0) {
    data[T] = T;
    __syncwarp();
    if (T == 0) asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(count) : "memory");
  } else {
    int seen;
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory"); while (seen == 0);
    data[512 + T] = data[T];
  }
}
//@ grid=2 block=32 zero
K red_relaxed_wrong(int* data, int* count) {
  if (B == 0) {
    data[T] = T;                                                                                              //~ race
    __syncwarp();
    if (T == 0) asm volatile("red.relaxed.gpu.global.add.s32 [%0], 1;" ::"l"(count) : "memory");
  } else {
    int seen;
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory"); while (seen == 0);
    data[512 + T] = data[T];                                                                                  //~ race
  }
}
// Lane 0 waits by relaxed loads and fences; its warp learns it by a barrier, or by nothing.
//@ grid=2 block=32 zero
K waiting_lane_right(int* data, int* flag) {
  if (B == 0) {
    data[T] = T + 1;
    __syncwarp();
    if (T == 0) Device<int>(*flag).store(1, release);
  } else {
    if (T == 0) { while (Device<int>(*flag).load(relaxed) == 0) {} __threadfence(); }
    __syncwarp();
    data[512 + T] = data[T];
  }
}
//@ grid=2 block=32 zero
K waiting_lane_wrong(int* data, int* flag) {
  if (B == 0) {
    data[T] = T + 1;                                                                                          //~ race
    __syncwarp();
    if (T == 0) Device<int>(*flag).store(1, release);
  } else {
    if (T == 0) { while (Device<int>(*flag).load(relaxed) == 0) {} __threadfence(); }
    data[512 + T] = data[T];                                                                                  //~ race
  }
}
// The fence of the waiting lane is too narrow.
//@ grid=2 block=32 zero
K waiting_lane_narrow_wrong(int* data, int* flag) {
  if (B == 0) {
    data[T] = T + 1;                                                                                          //~ race
    __syncwarp();
    if (T == 0) Device<int>(*flag).store(1, release);
  } else {
    if (T == 0) { while (Device<int>(*flag).load(relaxed) == 0) {} __threadfence_block(); }
    __syncwarp();
    data[512 + T] = data[T];                                                                                  //~ race
  }
}
// A barrier of all blocks with a generation; the arrival lacks its fence, or the wait does.
template <int kind> __device__ __forceinline__ void generation(unsigned* count, unsigned* turn) {
  __syncthreads();
  if (T == 0) {
    unsigned now = Device<unsigned>(*turn).load(relaxed);
    if (kind != 1) __threadfence();
    if (atomicInc(count, gridDim.x - 1) == gridDim.x - 1) {
      if (kind != 2) __threadfence();
      Device<unsigned>(*turn).store(now + 1, relaxed);
    } else {
      while (Device<unsigned>(*turn).load(relaxed) == now) {}
    }
    if (kind != 3) __threadfence();
  }
  __syncthreads();
}
//@ grid=3 block=32 zero
K generation_right(unsigned* count, unsigned* turn, int* data) {
  for (int i = 0; i < 2; i++) {
    data[i * 96 + B * 32 + T] = i + B;
    generation<0>(count, turn);
    data[256 + i * 96 + B * 32 + T] = data[i * 96 + (B + 1) % 3 * 32 + T];
  }
}
//@ grid=3 block=32 zero
K generation_no_arrival_fence_wrong(unsigned* count, unsigned* turn, int* data) {
  for (int i = 0; i < 2; i++) {
    data[i * 96 + B * 32 + T] = i + B;                                                                        //~ race
    generation<1>(count, turn);
    data[256 + i * 96 + B * 32 + T] = data[i * 96 + (B + 1) % 3 * 32 + T];                                    //~ race
  }
}
// Without the second fence of the last one to arrive, it passes on only what it has written itself, and it is only one of three.
//@ grid=3 block=32 zero
K generation_no_release_fence_wrong(unsigned* count, unsigned* turn, int* data) {
  for (int i = 0; i < 2; i++) {
    data[i * 96 + B * 32 + T] = i + B;                                                                        //~ race
    generation<2>(count, turn);
    data[256 + i * 96 + B * 32 + T] = data[i * 96 + (B + 1) % 3 * 32 + T];                                    //~ race
  }
}
// Work is stolen from the other end of a block's own range: the owner takes by atomics of its block.
template <bool wide> __device__ __forceinline__ int take(int* head, int step) {
  return wide ? Device<int>(*head).fetch_add(step, relaxed) : Block<int>(*head).fetch_add(step, relaxed);     //~ race thieves_wrong
}
//@ grid=2 block=32 zero
K thieves_right(int* heads, int* out) {
  int i = take<true>(&heads[B], 1);
  if (i < 16) out[B * 16 + i] = T;
  else if ((i = take<true>(&heads[1 - B], 1)) < 16) out[(1 - B) * 16 + i] = T;
}
//@ grid=2 block=32 zero
K thieves_wrong(int* heads, int* out) {
  int i = take<false>(&heads[B], 1);                                                                          //~ race
  if (i < 16) out[B * 16 + i] = T;
  else if ((i = take<true>(&heads[1 - B], 1)) < 16) out[512 + (1 - B) * 16 + i] = T;                          //~ race
}
// The last of several releases is read: those before it belong to its release sequence only if they are read-modify-writes.
//@ grid=3 block=1 zero
K releases_by_exchange_right(int* data, int* flag) {
  if (B < 2) {
    data[B] = 5;
    Device<int>(*flag).fetch_add(1, release);
  } else {
    while (Device<int>(*flag).load(acquire) < 2) {}
    data[4] = data[0] + data[1];
  }
}
//@ grid=3 block=1 zero
K releases_by_store_wrong(int* data, int* flag) {
  if (B < 2) {
    data[B] = 5;                                                                                              //~ race
    Device<int>(*flag).store(B + 1, release);
  } else {
    while (Device<int>(*flag).load(acquire) == 0) {}
    data[4] = data[0] + data[1];                                                                              //~ race
  }
}
// A barrier object of the whole device, and one of a block that another block uses.
//@ grid=2 block=32
K device_semaphore_right(int* data, int* out) {
  __shared__ cuda::binary_semaphore<cuda::thread_scope_block> lock;
  __shared__ int sum;
  if (T == 0) { new (&lock) cuda::binary_semaphore<cuda::thread_scope_block>(1); sum = 0; }
  __syncthreads();
  if (T % 8 == 0) { lock.acquire(); sum += data[T]; lock.release(); }
  __syncthreads();
  if (T == 0) out[B] = sum;
}
//@ grid=2 block=32
K device_semaphore_wrong(int* data, int* out) {
  __shared__ cuda::binary_semaphore<cuda::thread_scope_block> lock;
  __shared__ int sum;
  if (T == 0) { new (&lock) cuda::binary_semaphore<cuda::thread_scope_block>(1); sum = 0; }
  __syncthreads();
  if (T % 8 == 0) { lock.acquire(); int s = sum + data[T]; lock.release(); sum = s; }                          //~ race
  __syncthreads();
  if (T == 0) out[B] = sum;
}
// A sequence lock whose data are relaxed atomics.
//@ grid=2 block=1 zero
K sequence_right(int* sequence, int* data, int* out) {
  if (B == 0) {
    for (int i = 1; i < 4; i++) {
      Device<int>(*sequence).store(2 * i - 1, relaxed);
      __threadfence();
      Device<int>(data[0]).store(i, relaxed); Device<int>(data[1]).store(i, relaxed);
      Device<int>(*sequence).store(2 * i, release);
    }
  } else {
    int before, after, a, b;
    do {
      before = Device<int>(*sequence).load(acquire);
      a = Device<int>(data[0]).load(relaxed); b = Device<int>(data[1]).load(relaxed);
      __threadfence();
      after = Device<int>(*sequence).load(relaxed);
    } while (before != after || (before & 1));
    out[0] = a + b;
  }
}
// As before, but the second word is written plainly.
//@ grid=2 block=1 zero
K sequence_wrong(int* sequence, int* data, int* out) {
  if (B == 0) {
    for (int i = 1; i < 4; i++) {
      Device<int>(*sequence).store(2 * i - 1, relaxed);
      __threadfence();
      Device<int>(data[0]).store(i, relaxed); data[1] = i;                                                    //~ race
      Device<int>(*sequence).store(2 * i, release);
    }
  } else {
    int before, after, a, b;
    do {
      before = Device<int>(*sequence).load(acquire);
      a = Device<int>(data[0]).load(relaxed); b = Device<int>(data[1]).load(relaxed);                         //~ race
      __threadfence();
      after = Device<int>(*sequence).load(relaxed);
    } while (before != after || (before & 1));
    out[0] = a + b;
  }
}
// What a thread of the block has acquired belongs to all of them behind a barrier, and to no other warp without one.
//@ grid=2 block=64 zero
K acquired_for_block_right(int* data, int* flag) {
  if (B == 0) {
    data[T] = T;
    __syncthreads();
    if (T == 0) Device<int>(*flag).store(1, release);
  } else {
    if (T == 63) while (Device<int>(*flag).load(acquire) == 0) {}
    __syncthreads();
    data[256 + T] = data[T];
  }
}
//@ grid=2 block=64 zero
K acquired_for_warp_wrong(int* data, int* flag) {
  if (B == 0) {
    data[T] = T;                                                                                              //~ race
    __syncthreads();
    if (T == 0) Device<int>(*flag).store(1, release);
  } else {
    if (T == 63) while (Device<int>(*flag).load(acquire) == 0) {}
    __syncwarp();
    data[256 + T] = data[T];                                                                                  //~ race
  }
}
// A release of the block's scope, continued by one of the device's: what the first block wrote reaches the other through it.
//@ grid=2 block=64 zero
K relay_scopes_right(int* data, int* flags) {
  if (B == 0 && T == 0) { data[0] = 9; Block<int>(flags[0]).store(1, release); }
  if (B == 0 && T == 32) {
    while (Block<int>(flags[0]).load(acquire) == 0) {}
    Device<int>(flags[1]).store(1, release);
  }
  if (B == 1 && T == 0) { while (Device<int>(flags[1]).load(acquire) == 0) {} data[1] = data[0]; }
}
//@ grid=2 block=64 zero
K relay_scopes_wrong(int* data, int* flags) {
  if (B == 0 && T == 0) { data[0] = 9; Block<int>(flags[0]).store(1, release); }                               //~ race
  if (B == 0 && T == 32) {
    while (Block<int>(flags[0]).load(relaxed) == 0) {}
    Device<int>(flags[1]).store(1, release);
  }
  if (B == 1 && T == 0) { while (Device<int>(flags[1]).load(acquire) == 0) {} data[1] = data[0]; }             //~ race
}
// A fence of scope system is one of scope device too; an acquire of the block's scope is not.
//@ grid=2 block=1 zero
K system_fences_right(int* data, int* flag) {
  if (B == 0) { data[0] = 1; __threadfence_system(); atomicExch(flag, 1); }
  else { while (atomicAdd(flag, 0) == 0) {} __threadfence_system(); data[1] = data[0]; }
}
//@ grid=2 block=1 zero
K system_flag_wrong(int* data, int* flag) {
  if (B == 0) { data[0] = 1; System<int>(*flag).store(1, release); }                                           //~ race
  else { while (System<int>(*flag).load(relaxed) == 0) {} Block<int>(*flag).load(acquire); data[1] = data[0]; } //~ race
}
// A ticket lock whose served number is advanced by the owner's plain arithmetic on what it knows.
//@ grid=3 block=1 zero
K ticket_by_ticket_right(int* next, int* served, int* data) {
  int mine = atomicAdd(next, 1);
  while (Device<int>(*served).load(acquire) != mine) {}
  data[0] += mine;
  Device<int>(*served).store(mine + 1, release);
}
//@ grid=3 block=1 zero
K ticket_by_reading_wrong(int* next, int* served, int* data) {
  int mine = atomicAdd(next, 1);
  while (Device<int>(*served).load(acquire) != mine) {}
  data[0] += mine;
  *served = mine + 1;                                                                                          //~ race
}
// Blocks hand a token around: each waits for its turn and passes it on.
//@ grid=3 block=32 zero
K token_right(int* turn, int* data) {
  for (int round = 0; round < 2; round++) {
    if (T == 0) while (Device<int>(*turn).load(acquire) != round * 3 + B) {}
    __syncthreads();
    data[T] += B;
    __syncthreads();
    if (T == 0) Device<int>(*turn).store(round * 3 + B + 1, release);
  }
}
// The token is passed on before the block has done its part.
//@ grid=3 block=64 zero
K token_too_early_wrong(int* turn, int* data) {
  for (int round = 0; round < 2; round++) {
    if (T == 0) while (Device<int>(*turn).load(acquire) != round * 3 + B) {}
    __syncthreads();
    data[T] += B;                                                                                              //~ race
    if (T == 0) Device<int>(*turn).store(round * 3 + B + 1, release);
  }
}
