// What reports recommend where one thread signals for its warp or its CTA.
#include <cuda/atomic>
#define K extern "C" __global__ void
#define T threadIdx.x
template <class V> using dev = cuda::atomic_ref<V, cuda::thread_scope_device>;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;

// A warp hands rows to another one, through a buffer and a flag in shared memory.
enum { NOTHING, FENCE, WARP_BEFORE, WARP_AFTER };
template <int WITHOUT> __device__ inline void hand_over(const int* in, int* out) {
  __shared__ int row[32];
  __shared__ volatile int full;
  if (T == 0) full = 0;
  __syncthreads();
  int lane = T % 32;
  for (int i = 0; i < 4; i++) {
    if (T < 32) {
      if (lane == 0) while (full) {}
      __threadfence_block();
      __syncwarp();
      row[lane] = in[i * 32 + lane];                              //~ race fence_wrong, race before_wrong
      if (WITHOUT != FENCE) __threadfence_block();
      if (WITHOUT != WARP_BEFORE) __syncwarp();
      if (lane == 0) full = 1;
    } else {
      if (lane == 0) while (!full) {}
      __threadfence_block();
      if (WITHOUT != WARP_AFTER) __syncwarp();
      out[i * 32 + lane] = row[31 - lane];                        //~ race fence_wrong, race before_wrong, race after_wrong
      __threadfence_block();
      __syncwarp();
      if (lane == 0) full = 0;
    }
  }
}
//@ block=64
K right(const int* in, int* out) { hand_over<NOTHING>(in, out); }
//@ block=64
K fence_wrong(const int* in, int* out) {
  hand_over<FENCE>(in, out);
  //? orders nothing: `__threadfence_block()` is missing before it is set
}
//@ block=64
K before_wrong(const int* in, int* out) {
  hand_over<WARP_BEFORE>(in, out);
  //? has released what it did itself, but not the first access: `__syncwarp()` is missing between that and the release
}
//@ block=64
K after_wrong(const int* in, int* out) {
  hand_over<WARP_AFTER>(in, out);
  //? is missing between signals.cu:22 and signals.cu:30
}
// A thread sets a flag for its CTA, and one waits for it.
template <class Fence> __device__ inline void tell(int* data, int* flag, int* out, Fence fence) {
  if (blockIdx.x == 0) {
    data[T] = T + 1;                                              //~ race told_without_fence_wrong, race told_in_block_scope_wrong
    fence();
    __syncthreads();
    if (T == 0) atomicExch(flag, 1);
  } else {
    if (T == 0) { while (atomicAdd(flag, 0) == 0) {} __threadfence(); }
    __syncthreads();
    out[T] = data[T ^ 1];                                         //~ race told_without_fence_wrong, race told_in_block_scope_wrong
  }
}
//@ grid=2 block=64 zero
K told_right(int* data, int* flag, int* out) { tell(data, flag, out, [] { __threadfence(); }); }
//@ grid=2 block=64 zero
K told_without_fence_wrong(int* data, int* flag, int* out) {
  tell(data, flag, out, [] {});
  //? orders nothing: `__threadfence()` is missing before it is set
}
//@ grid=2 block=64 zero
K told_in_block_scope_wrong(int* data, int* flag, int* out) {
  tell(data, flag, out, [] { __threadfence_block(); });
  //? orders nothing: the fence before it is set, or the release, has a scope that does not include the other thread
}
// A lock whose fences are those of a CTA: the lock has been taken again by then.
//@ grid=2 block=32 zero
K lock_in_block_scope_wrong(int* lock, int* data) {
  if (T) return;
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence_block();
  data[0] = data[0] + 1;                                          //~ race
  //? the fence before it is set, or the release, has a scope that does not include the other thread
  __threadfence_block();
  atomicExch(lock, 0);
}
// The lines of a function that was inlined are named, not the one line of the kernel.
template <bool SYNC> __device__ inline void reverse(const int* in, int* out) {
  __shared__ int all[64];
  all[T] = in[T];                                                 //~ race reverse_wrong
  if (SYNC) __syncthreads();
  out[T] = all[63 - T];                                           //~ race reverse_wrong
}
//@ block=64
K reverse_right(const int* in, int* out) { reverse<true>(in, out); }
//@ block=64
K reverse_wrong(const int* in, int* out) {
  reverse<false>(in, out);
  //? `__syncthreads()` is missing between signals.cu:95 and signals.cu:93
}
