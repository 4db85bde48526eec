// Order by hand: flags, locks, tickets and queues, with the scopes and fences of CUDA's and of libcu++'s atomics.
#include <cuda/atomic>
#define K extern "C" __global__ void
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto device = cuda::thread_scope_device, block = cuda::thread_scope_block;

//@ grid=2 block=32 zero
K publish_right(int* g, int n) {
  Ref<device> flag(g[100]);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { g[0] = n; flag.store(1, cuda::memory_order_release); }
  else { while (flag.load(cuda::memory_order_acquire) == 0) {} g[1] = g[0]; }
}
//@ grid=2 block=32 zero
K publish_relaxed_wrong(int* g, int n) {
  Ref<device> flag(g[100]);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { g[0] = n; flag.store(1, cuda::memory_order_relaxed); }                       //~ race
  else { while (flag.load(cuda::memory_order_acquire) == 0) {} g[1] = g[0]; }                         //~ race
}
//@ grid=2 block=32 zero
K publish_block_scope_wrong(int* g, int n) {
  Ref<block> flag(g[100]);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { g[0] = n; flag.store(1, cuda::memory_order_release); }                       //~ race
  else { while (flag.load(cuda::memory_order_acquire) == 0) {} g[1] = g[0]; }                         //~ race
}
//@ block=64 zero
K publish_in_block_right(int* g, int n) {
  Ref<block> flag(g[100]);
  if (threadIdx.x == 0) { g[0] = n; flag.store(1, cuda::memory_order_release); }
  if (threadIdx.x == 32) { while (flag.load(cuda::memory_order_acquire) == 0) {} g[1] = g[0]; }
}
//@ grid=2 block=32 zero
K publish_too_early_wrong(int* g, int n) {
  Ref<device> flag(g[100]);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { flag.store(1, cuda::memory_order_release); g[0] = n; }                       //~ race
  else { while (flag.load(cuda::memory_order_acquire) == 0) {} g[1] = g[0]; }                         //~ race
}
//@ grid=2 block=32 zero
K volatile_flag_right(int* g, int n) {
  volatile int* flag = g + 100;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { g[0] = n; __threadfence(); *flag = 1; }
  else { while (*flag == 0) {} __threadfence(); g[1] = g[0]; }
}
//@ grid=2 block=32 zero
K volatile_flag_wrong(int* g, int n) {                 //? before the second one, orders nothing: `__threadfence()` is missing before it is set
  volatile int* flag = g + 100;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { g[0] = n; *flag = 1; }                                                       //~ race
  else { while (*flag == 0) {} __threadfence(); g[1] = g[0]; }                                        //~ race
}
//@ grid=2 block=32 zero
K volatile_flag_block_fence_wrong(int* g, int n) {     //? has a scope that does not include the other thread
  volatile int* flag = g + 100;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { g[0] = n; __threadfence_block(); *flag = 1; }                                //~ race
  else { while (*flag == 0) {} __threadfence(); g[1] = g[0]; }                                        //~ race
}
//@ grid=2 block=32 zero
K volatile_data_right(int* g, int n) {                 // data that are volatile themselves race with nothing
  volatile int* flag = g + 100; volatile int* data = g;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { data[0] = n; __threadfence(); *flag = 1; }
  else { while (*flag == 0) {} data[1] = data[0]; }
}
//@ grid=2 block=64 zero
K whole_block_publishes_right(int* g, int n) {
  int* flag = g + 100;
  if (blockIdx.x == 0) {
    g[threadIdx.x] = n;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1);
  } else {
    if (threadIdx.x == 0) { while (atomicAdd(flag, 0) == 0) {} __threadfence(); }
    __syncthreads();
    g[200 + threadIdx.x] = g[63 - threadIdx.x];
  }
}
//@ grid=2 block=64 zero
K whole_block_publishes_wrong(int* g, int n) {         // the others may not have written yet
  int* flag = g + 100;
  if (blockIdx.x == 0) {
    g[threadIdx.x] = n;                                                                               //~ race
    __threadfence();
    if (threadIdx.x == 0) atomicExch(flag, 1);
  } else {
    if (threadIdx.x == 0) { while (atomicAdd(flag, 0) == 0) {} __threadfence(); }
    __syncthreads();
    g[200 + threadIdx.x] = g[63 - threadIdx.x];                                                       //~ race
  }
}
//@ grid=3 block=32 zero
K spin_lock_right(int* g, int n) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&g[100], 0, 1) != 0) {}
    __threadfence();
    g[0] += n;
    __threadfence();
    atomicExch(&g[100], 0);
  }
}
//@ grid=3 block=32 zero
K spin_lock_block_wrong(int* g, int n) {
  if (threadIdx.x == 0) {
    while (atomicCAS_block(&g[100], 0, 1) != 0) {}                                                    //~ race
    __threadfence();
    g[0] += n;                                                                                        //~ race
    __threadfence();
    atomicExch_block(&g[100], 0);
  }
}
//@ grid=3 block=32 zero
K spin_lock_no_release_wrong(int* g, int n) {          //? , set at ordering.cu:122 after the first access and read at ordering.cu:119
  if (threadIdx.x == 0) {
    while (atomicCAS(&g[100], 0, 1) != 0) {}
    __threadfence();
    g[0] += n;                                                                                        //~ race
    atomicExch(&g[100], 0);
  }
}
//@ grid=3 block=32 zero
K spin_lock_acquire_right(int* g, int n) {
  Ref<device> lock(g[100]);
  if (threadIdx.x == 0) {
    int free = 0;
    while (!lock.compare_exchange_weak(free, 1, cuda::memory_order_acquire)) free = 0;
    g[0] += n;
    lock.store(0, cuda::memory_order_release);
  }
}
//@ grid=3 block=32 zero
K outside_the_lock_wrong(int* g, int n) {
  Ref<device> lock(g[100]);
  if (threadIdx.x == 0) {
    int free = 0;
    while (!lock.compare_exchange_weak(free, 1, cuda::memory_order_acquire)) free = 0;
    g[0] += n;                                                                                        //~ race
    lock.store(0, cuda::memory_order_release);
    g[1 + blockIdx.x] = g[0];                                                                         //~ race
  }
}
//@ grid=3 block=32 zero
K ticket_lock_right(int* g, int n) {
  if (threadIdx.x == 0) {
    int mine = atomicAdd(&g[100], 1);
    while (atomicAdd(&g[101], 0) != mine) {}
    __threadfence();
    g[0] += n;
    __threadfence();
    atomicAdd(&g[101], 1);
  }
}
//@ grid=2 block=32 zero
K counter_scopes_wrong(int* g, int n) { Ref<block>(g[0]).fetch_add(n, cuda::memory_order_relaxed); }  //~ race
//@ grid=2 block=32 zero
K counter_scopes_right(int* g, int n) { Ref<device>(g[0]).fetch_add(n, cuda::memory_order_relaxed); }
//@ grid=2 block=32 zero
K one_side_narrow_wrong(int* g, int n) {
  if (blockIdx.x == 0) atomicAdd(&g[0], n); else atomicAdd_block(&g[0], n);                           //~ race
}
//@ grid=2 block=64 zero
K own_queue_right(int* g, int n) {                     // each CTA takes from its own queue
  int at = atomicAdd_block(&g[blockIdx.x], 1);
  g[100 + blockIdx.x * 64 + at] = threadIdx.x;
}
//@ grid=2 block=64 zero
K stolen_queue_wrong(int* g, int n) {                  // and from its neighbour's
  int at = atomicAdd_block(&g[blockIdx.x], 1);                                                        //~ race
  if (at > 40) at = atomicAdd_block(&g[1 - blockIdx.x], 1);                                           //~ race
  g[100 + blockIdx.x * 64 + threadIdx.x] = at;
}
//@ grid=2 block=64 zero
K stolen_queue_right(int* g, int n) {
  int at = atomicAdd(&g[blockIdx.x], 1);
  if (at > 40) at = atomicAdd(&g[1 - blockIdx.x], 1);
  g[100 + blockIdx.x * 64 + threadIdx.x] = at;
}
//@ grid=2 block=32 zero
K long_counter_wrong(unsigned long long* g, int n) {
  if (blockIdx.x == 0) atomicAdd(&g[0], 1ull); else atomicAdd((unsigned*)&g[0], 1u);                  //~ race
}
//@ grid=2 block=32 zero
K float_counter_right(float* g, int n) { atomicAdd(&g[0], 1.0f); }
//@ grid=2 block=32 zero
K double_counter_right(double* g, int n) { atomicAdd(&g[0], 1.0); }
//@ grid=2 block=32 zero
K reset_behind_atomics_wrong(int* g, int n) {
  atomicAdd(&g[0], n);                                                                                //~ race
  if (blockIdx.x == 1 && threadIdx.x == 0) g[0] = 0;                                                  //~ race
}
//@ block=96 zero
K chain_right(int* g, int n) {                         // from warp to warp to warp
  Ref<block> first(g[100]), second(g[101]);
  if (threadIdx.x == 0) { g[0] = n; first.store(1, cuda::memory_order_release); }
  if (threadIdx.x == 32) { while (!first.load(cuda::memory_order_acquire)) {} second.store(1, cuda::memory_order_release); }
  if (threadIdx.x == 64) { while (!second.load(cuda::memory_order_acquire)) {} g[1] = g[0]; }
}
//@ block=96 zero
K chain_wrong(int* g, int n) {                         // the one in the middle does not acquire
  Ref<block> first(g[100]), second(g[101]);
  if (threadIdx.x == 0) { g[0] = n; first.store(1, cuda::memory_order_release); }                     //~ race
  if (threadIdx.x == 32) { while (!first.load(cuda::memory_order_relaxed)) {} second.store(1, cuda::memory_order_release); }
  if (threadIdx.x == 64) { while (!second.load(cuda::memory_order_acquire)) {} g[1] = g[0]; }         //~ race
}
//@ block=64 zero
K shared_flag_right(int* g, int n) {
  __shared__ int flag, data;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) { data = n; __threadfence_block(); atomicExch_block(&flag, 1); }
  if (threadIdx.x == 32) { while (atomicAdd_block(&flag, 0) == 0) {} __threadfence_block(); g[0] = data; }
}
//@ block=64 zero
K shared_flag_wrong(int* g, int n) {
  __shared__ int flag, data;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) { data = n; atomicExch_block(&flag, 1); }                                     //~ race
  if (threadIdx.x == 32) { while (atomicAdd_block(&flag, 0) == 0) {} g[0] = data; }                   //~ race
}
