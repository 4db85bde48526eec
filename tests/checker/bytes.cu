// Atomics of bytes and halfwords, which libcu++ makes of accesses of whole words.
#include <cuda/atomic>
#define K extern "C" __global__ void
#define B blockIdx.x
#define T threadIdx.x
template <class V> using Block = cuda::atomic_ref<V, cuda::thread_scope_block>;
template <class V> using Device = cuda::atomic_ref<V, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;
using Byte = unsigned char;

// States of vertices in bytes: all accesses are atomic, or the test is not.
//@ grid=2 block=64 zero
K states_right(Byte* state, int n) {
  if (Device<Byte>(state[(B * 64 + T) / 3]).load(relaxed) == 0) Device<Byte>(state[(B * 64 + T) / 2]).store(1 + (T & 1), relaxed);
}
//@ grid=2 block=64 zero
K states_wrong(Byte* state, int n) {
  if (state[(B * 64 + T) / 3] == 0) Device<Byte>(state[(B * 64 + T) / 2]).store(1 + (T & 1), relaxed);          //~ race
}
// The scope of a block is too narrow for two of them.
//@ grid=2 block=64 zero
K states_narrow_wrong(Byte* state, int n) {
  if (Block<Byte>(state[T / 3]).load(relaxed) == 0) Block<Byte>(state[T / 2]).store(1 + (T & 1), relaxed);      //~ race
}
//@ grid=2 block=64 zero
K halfwords_right(unsigned short* state, int n) {
  Device<unsigned short>(state[T / 2]).fetch_add(1, relaxed);
  if (Device<unsigned short>(state[T / 3]).load(relaxed) == 9) state[512] = 1;
}
// A flag for each warp in four neighbouring bytes.
//@ grid=2 block=128 zero
K byte_flags_right(Byte* flags, int* data) {
  int w = T / 32, lane = T % 32;
  if (B == 0) {
    data[T] = T;
    __syncwarp();
    if (lane == 0) Device<Byte>(flags[w]).store(1, release);
  } else {
    if (lane == 0) while (Device<Byte>(flags[w]).load(acquire) == 0) {}
    __syncwarp();
    data[256 + T] = data[T];
  }
}
//@ grid=2 block=128 zero
K byte_flags_relaxed_wrong(Byte* flags, int* data) {
  int w = T / 32, lane = T % 32;
  if (B == 0) {
    data[T] = T;                                                                                             //~ race
    __syncwarp();
    if (lane == 0) Device<Byte>(flags[w]).store(1, relaxed);
  } else {
    if (lane == 0) while (Device<Byte>(flags[w]).load(acquire) == 0) {}
    __syncwarp();
    data[256 + T] = data[T];                                                                                 //~ race
  }
}
// A lock in a byte, the third one of its word.
//@ grid=3 block=1 zero
K byte_lock_right(Byte* lock, int* data) {
  while (Device<Byte>(lock[2]).exchange(1, acquire)) {}
  data[0] += 1;
  Device<Byte>(lock[2]).store(0, release);
}
//@ grid=3 block=1 zero
K byte_lock_wrong(Byte* lock, int* data) {
  while (Device<Byte>(lock[2]).exchange(1, acquire)) {}
  data[0] += 1;                                                                                              //~ race
  Device<Byte>(lock[2]).store(0, relaxed);
}
