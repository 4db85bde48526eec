// Compiled with -G: loads of flags are functions that are called, and a thread that repeats the call waits all the same.
#include <cuda/atomic>
#define K extern "C" __global__ void
#define T threadIdx.x
template <class V> using dev = cuda::atomic_ref<V, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;

// One thread waits for the CTA, which a barrier lets go on.
//@ grid=2 block=64 zero
K polled_right(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    data[T] = T + 1;
    __threadfence();
    __syncthreads();
    if (T == 0) atomicExch(flag, 1);
  } else {
    if (T == 0) { while (dev<int>(*flag).load(relaxed) == 0) {} __threadfence(); }
    __syncthreads();
    out[T] = data[T ^ 1];
  }
}
//@ grid=2 block=64 zero
K polled_wrong(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    data[T] = T + 1;                                              //~ race
    __threadfence();
    __syncthreads();
    if (T == 0) atomicExch(flag, 1);
  } else {
    if (T == 0) { while (dev<int>(*flag).load(relaxed) == 0) {} }
    __syncthreads();
    out[T] = data[T ^ 1];                                         //~ race
    //? `__threadfence()` is missing after it is read
  }
}
// So with loads of libcu++, and a ring whose slots are used again.
template <bool ACQUIRES> __device__ void pipe(const int* in, int* ring, int* full, int* empty, int* out) {
  for (int i = 0; i < 4; i++) {
    int slot = i % 2, round = i / 2;
    if (blockIdx.x == 0) {
      if (T == 0) while (dev<int>(empty[slot]).load(acquire) < round) {}
      __syncthreads();
      ring[slot * 64 + T] = in[i * 64 + T];                       //~ race pipe_wrong
      __syncthreads();
      if (T == 0) dev<int>(full[slot]).store(round + 1, release);
    } else {
      if (T == 0) while (dev<int>(full[slot]).load(ACQUIRES ? acquire : relaxed) < round + 1) {}
      __syncthreads();
      out[i * 64 + T] = ring[slot * 64 + (T * 7) % 64];           //~ race pipe_wrong
      __syncthreads();
      if (T == 0) dev<int>(empty[slot]).store(round + 1, release);
    }
  }
}
//@ grid=2 block=64 zero
K pipe_right(const int* in, int* ring, int* full, int* empty, int* out) { pipe<true>(in, ring, full, empty, out); }
//@ grid=2 block=64 zero
K pipe_wrong(const int* in, int* ring, int* full, int* empty, int* out) { pipe<false>(in, ring, full, empty, out); }
// An update that is tried again waits for nobody, and a barrier after it is enough for who learns that it is the last.
//@ grid=4 block=64 zero
K last_by_cas_right(int* parts, int* count, int* out) {
  __shared__ bool last;
  parts[blockIdx.x * 64 + T] = T;
  __threadfence();
  __syncthreads();
  if (T == 0) {
    int old = *(volatile int*)count, seen;
    do { seen = old; old = atomicCAS(count, seen, seen + 1); } while (old != seen);
    last = old == gridDim.x - 1;
  }
  __syncthreads();
  if (last) for (int b = 0; b < gridDim.x; b++) out[T] += parts[b * 64 + T];
}
//@ grid=4 block=64 zero
K last_by_cas_wrong(int* parts, int* count, int* out) {
  __shared__ bool last;
  parts[blockIdx.x * 64 + T] = T;                                 //~ race
  __syncthreads();
  if (T == 0) {
    int old = *(volatile int*)count, seen;
    do { seen = old; old = atomicCAS(count, seen, seen + 1); } while (old != seen);
    last = old == gridDim.x - 1;
  }
  __syncthreads();
  if (last) for (int b = 0; b < gridDim.x; b++) out[T] += parts[b * 64 + T];  //~ race
}
