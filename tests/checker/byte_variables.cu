// Variables of a byte or a halfword, of which libcu++'s atomic operations access the word.
#include <cuda/atomic>
#define K extern "C" __global__ void
#define T threadIdx.x
template <class V> using Device = cuda::atomic_ref<V, cuda::thread_scope_device>;
constexpr auto acquire = cuda::memory_order_acquire, release = cuda::memory_order_release;
__device__ unsigned char lock, ready;
__device__ unsigned short count;
__device__ int sum, message;

//@ grid=3 block=32 zero
K lock_right(int* out) {
  if (T) return;
  while (Device<unsigned char>(lock).exchange(1, acquire)) {}
  sum += 2;
  Device<unsigned char>(lock).store(0, release);
}
//@ grid=3 block=32 zero
K lock_given_back_relaxed_wrong(int* out) {
  if (T) return;
  while (Device<unsigned char>(lock).exchange(1, acquire)) {}
  sum += 2;                                                                           //~ race
  Device<unsigned char>(lock).store(0, cuda::memory_order_relaxed);
}
//@ grid=2 block=32 zero
K flag_right(int* out) {
  if (T) return;
  if (blockIdx.x == 0) { message = 5; Device<unsigned char>(ready).store(1, release); }
  else { while (!Device<unsigned char>(ready).load(acquire)) {} out[0] = message; }
}
//@ grid=2 block=32 zero
K count_right(int* out) { Device<unsigned short>(count).fetch_add(1, release); }
