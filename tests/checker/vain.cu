// Reads of what others have released whose values nobody uses, and trees in which the last one to arrive goes on.
#include <cuda/atomic>
#define K extern "C" __global__ void
using Ref = cuda::atomic_ref<int, cuda::thread_scope_device>;
using cuda::memory_order_acquire, cuda::memory_order_relaxed, cuda::memory_order_release;

//@ grid=2 block=32 zero
K count_then_barrier_wrong(int* data, int* count, int* out) {    // the barrier passes on nothing that must be so
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { data[0] = 5; __threadfence(); atomicAdd(count, 1); }                        //~ race
  } else {
    if (threadIdx.x == 0) { atomicAdd(count, 1); __threadfence(); }
    __syncthreads();
    out[threadIdx.x] = data[0];                                                                       //~ race
  }
}
//@ grid=2 block=32 zero
K count_then_syncwarp_wrong(int* data, int* count, int* out) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { data[0] = 5; __threadfence(); atomicAdd(count, 1); }                        //~ race
  } else {
    if (threadIdx.x == 0) { atomicAdd(count, 1); __threadfence(); }
    __syncwarp();
    out[threadIdx.x] = data[0];                                                                       //~ race
  }
}
//@ grid=2 block=32 zero
K acquire_after_poll_right(int* data, int* flag, int* out) {     // the second read finds what the first one has, or what came later
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { data[0] = 5; Ref(*flag).store(1, memory_order_release); }
  } else {
    if (threadIdx.x == 0) {
      while (!Ref(*flag).load(memory_order_relaxed)) {}
      (void)Ref(*flag).load(memory_order_acquire);
    }
    __syncthreads();
    out[threadIdx.x] = data[0];
  }
}
//@ grid=2 block=32 zero
K acquire_after_poll_own_right(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { data[0] = 5; Ref(*flag).store(1, memory_order_release); }
  else {
    while (!Ref(*flag).load(memory_order_relaxed)) {}
    (void)Ref(*flag).load(memory_order_acquire);
    out[0] = data[0];
  }
}
//@ grid=2 block=32 zero
K arrive_then_wait_right(int* data, int* count, int* out) {      // the arrival tells nothing, the wait does
  if (threadIdx.x == 0) {
    data[blockIdx.x] = 5;
    __threadfence();
    atomicAdd(count, 1);
    while (Ref(*count).load(memory_order_relaxed) < 2) {}
    __threadfence();
  }
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = data[1 - blockIdx.x];
}
//@ grid=2 zero
K tree_right(int* box, int* arrived) {
  int v = 255 + blockIdx.x * 128 + threadIdx.x;
  box[v] = v;
  while (v > 0) {
    __threadfence();
    v = (v - 1) / 2;
    if (atomicAdd(&arrived[v], 1) == 0) return;
    __threadfence();
    box[v] = max(box[2 * v + 1], box[2 * v + 2]);
  }
}
//@ grid=2 zero
K tree_no_fence_wrong(int* box, int* arrived) {
  int v = 255 + blockIdx.x * 128 + threadIdx.x;
  box[v] = v;                                                                                         //~ race
  while (v > 0) {
    v = (v - 1) / 2;
    if (atomicAdd(&arrived[v], 1) == 0) return;
    box[v] = max(box[2 * v + 1], box[2 * v + 2]);                                                       //~ race
  }
}
//@ grid=2 zero
K tree_block_fence_wrong(int* box, int* arrived) {               // the two halves meet at the root
  int v = 255 + blockIdx.x * 128 + threadIdx.x;
  box[v] = v;
  while (v > 0) {
    __threadfence_block();
    v = (v - 1) / 2;
    if (atomicAdd(&arrived[v], 1) == 0) return;
    __threadfence_block();
    box[v] = max(box[2 * v + 1], box[2 * v + 2]);                                                       //~ race
  }
}
