// Locks that are taken by a load and a store, which two threads may find free.
#include <cuda/atomic>
#define K extern "C" __global__ void
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto D = cuda::thread_scope_device;
constexpr auto B = cuda::thread_scope_block;
using cuda::memory_order_acquire, cuda::memory_order_release, cuda::memory_order_relaxed;
#define ONE if (threadIdx.x) return

//@ grid=4 block=32 zero
K lock_by_store_wrong(int* lock, int* data) {
  ONE;
  volatile int* l = lock;
  while (*l) {}
  *l = 1;
  __threadfence();
  data[0] = data[0] + 1;      //~ race
  __threadfence();
  *l = 0;
}
//@ grid=4 block=32 zero
K lock_by_relaxed_store_wrong(int* lock, int* data) {
  ONE;
  Ref<D> l(*lock);
  while (l.load(memory_order_acquire)) {}
  l.store(1, memory_order_relaxed);
  data[0] = data[0] + 1;      //~ race
  l.store(0, memory_order_release);
}
//@ grid=4 block=32 zero
K lock_looked_at_first_right(int* lock, int* data) {
  ONE;
  Ref<D> l(*lock);
  for (int z = 1; z;) {
    while (l.load(memory_order_relaxed)) {}
    z = 0;
    if (!l.compare_exchange_strong(z, 1, memory_order_acquire)) z = 1;
  }
  data[0] = data[0] + 1;
  l.store(0, memory_order_release);
}
//@ grid=1 block=128 zero
K lock_of_warps_wrong(int* data, int n) {
  __shared__ int l;
  if (threadIdx.x == 0) l = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    volatile int* v = &l;
    while (*v) {}
    *v = 1;
    __threadfence_block();
    data[0] += threadIdx.x;      //~ race
    __threadfence_block();
    *v = 0;
  }
}
//@ grid=3 block=32 zero
K lock_cleared_by_atomic_wrong(int* lock, int* data) {
  ONE;
  while (*(volatile int*)lock) {}
  *(volatile int*)lock = 1;
  __threadfence();
  data[0] += 1;      //~ race
  __threadfence();
  atomicAnd(lock, ~1);
}
//@ grid=1 block=96 zero
K block_lock_by_exchange_right(int* lock, int* data) {
  if (threadIdx.x % 32) return;
  while (Ref<B>(*lock).exchange(1, memory_order_acquire)) {}
  data[0] += 1;
  __threadfence();
  atomicExch(lock, 0);
}
//@ grid=3 block=32 zero
K lock_looked_at_and_taken_right(int* lock, int* data) {
  ONE;
  while (true) {
    while (*(volatile int*)lock) {}
    if (atomicCAS(lock, 0, 1) == 0) break;
  }
  __threadfence();
  data[0] += 1;
  __threadfence();
  *(volatile int*)lock = 0;
}
//@ grid=2 block=32 zero
K slot_emptied_and_filled_right(int* full, int* box, int* out) {
  ONE;
  Ref<D> f(*full);
  for (int i = 0; i < 4; i++)
    if (blockIdx.x == 0) { while (f.load(memory_order_acquire)) {} box[0] = i; f.store(1, memory_order_release); }
    else { while (!f.load(memory_order_acquire)) {} out[i] = box[0]; f.store(0, memory_order_release); }
}
