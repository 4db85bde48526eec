// What reports recommend.
#include <cuda/atomic>
#define K extern "C" __global__ void
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto D = cuda::thread_scope_device;
using cuda::memory_order_acquire, cuda::memory_order_release, cuda::memory_order_relaxed;

//@ grid=4 block=64 zero
K barrier_by_hand_right(int* data, int* count, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < 4) {}
    __threadfence();
  }
  __syncthreads();
  out[i] = data[255 - i];
}
//@ grid=4 block=32 zero
K barrier_by_hand_nobody_waits_before_wrong(int* data, int* count, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = i;                                                    //~ race
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < 4) {}
    __threadfence();
  }
  __syncthreads();
  out[i] = data[127 - i];                                         //~ race
}
//@ grid=4 block=64 zero
K barrier_by_hand_nobody_waits_after_wrong(int* data, int* count, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = i;                                                    //~ race
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < 4) {}
    __threadfence();
  }
  out[i] = data[255 - i];                                         //~ race
}
//@ grid=2 block=64 zero
K counter_wrong(int* count) {
  ++*count;                                                       //~ race
  //? several threads read, change and write it at advice.cu:50: use an atomic operation
}
//@ grid=2 block=64 zero
K counter_right(int* count) { atomicAdd(count, 1); }
//@ grid=2 block=64
K relax_wrong(const int* from, int* best) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (from[i] - i < best[i % 8]) best[i % 8] = from[i] - i;          //~ race
  //? use an atomic
}
//@ grid=2 block=64
K relax_right(const int* from, int* best) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMin(&best[i % 8], from[i]);
}
//@ grid=3 block=32 zero
K release_overwritten_wrong(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  Ref<D> f(*flag);
  if (blockIdx.x == 0) {
    data[0] = 1;                                                  //~ race
    f.store(1, memory_order_release);
  } else if (blockIdx.x == 1) {
    while (f.load(memory_order_relaxed) != 1) {}
    f.store(2, memory_order_relaxed);
  } else {
    while (f.load(memory_order_acquire) != 2) {}
    out[0] = data[0];                                             //~ race
    //? another thread's store to it in between has ended the release sequence
  }
}
//@ grid=3 block=32 zero
K release_continued_right(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  Ref<D> f(*flag);
  if (blockIdx.x == 0) {
    data[0] = 1;
    f.store(1, memory_order_release);
  } else if (blockIdx.x == 1) {
    while (f.load(memory_order_relaxed) != 1) {}
    f.fetch_add(1, memory_order_relaxed);
  } else {
    while (f.load(memory_order_acquire) != 2) {}
    out[0] = data[0];
  }
}
//@ grid=2 block=32 zero
K lock_taken_in_block_scope_wrong(int* lock, int* data) {
  if (threadIdx.x) return;
  while (atomicCAS_block(lock, 0, 1)) {}                          //~ race
  __threadfence();
  data[0] = data[0] + 1;                                          //~ race
  //? orders nothing: one of the two has a scope that does not include the other thread
  __threadfence();
  atomicExch(lock, 0);
}
//@ grid=2 block=64 zero
K lock_without_fence_wrong(int* lock, int* data) {                // also between threads of one block, the fence must be one for all
  if (threadIdx.x % 32) return;
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence();
  data[0] = data[0] + 1;                                          //~ race
  //? `__threadfence()` is missing before it is set
  atomicExch(lock, 0);
}
