// CUDA's own means of synchronization: barriers, latches, semaphores and pipelines of libcu++, cooperative groups' algorithms.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#define K extern "C" __global__ void
namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

//@ grid=1 block=64
K barrier_right(int* g, int n) {
  __shared__ Barrier b;
  __shared__ int s[64];
  auto group = cg::this_thread_block();
  if (group.thread_rank() == 0) init(&b, 64);
  group.sync();
  for (int i = 0; i < 3; i++) {
    s[threadIdx.x] = g[threadIdx.x] + i;
    b.arrive_and_wait();
    g[threadIdx.x] = s[63 - threadIdx.x];
    b.arrive_and_wait();
  }
}
//@ grid=1 block=64
K barrier_wrong(int* g, int n) {                      // the second wait of a turn is missing
  __shared__ Barrier b;
  __shared__ int s[64];
  auto group = cg::this_thread_block();
  if (group.thread_rank() == 0) init(&b, 64);
  group.sync();
  for (int i = 0; i < 3; i++) {
    s[threadIdx.x] = g[threadIdx.x] + i;              //~ race
    b.arrive_and_wait();
    g[threadIdx.x] = s[63 - threadIdx.x];             //~ race
  }
}
//@ grid=1 block=64
K arrive_then_wait_right(int* g, int n) {             // work between the arrival and the wait
  __shared__ Barrier b;
  __shared__ int s[64];
  if (threadIdx.x == 0) init(&b, 64);
  __syncthreads();
  s[threadIdx.x] = g[threadIdx.x];
  auto token = b.arrive();
  int mine = g[threadIdx.x] * 3;
  b.wait(std::move(token));
  g[threadIdx.x] = s[63 - threadIdx.x] + mine;
}
//@ grid=1 block=64
K arrive_then_write_wrong(int* g, int n) {            // writes after it has arrived
  __shared__ Barrier b;
  __shared__ int s[64];
  if (threadIdx.x == 0) init(&b, 64);
  __syncthreads();
  auto token = b.arrive();
  s[threadIdx.x] = g[threadIdx.x];                    //~ race
  b.wait(std::move(token));
  g[threadIdx.x] = s[63 - threadIdx.x];               //~ race
}
//@ grid=1 block=64
K copy_right(int* g, int n) {
  __shared__ Barrier b;
  __shared__ int s[64];
  auto group = cg::this_thread_block();
  if (threadIdx.x == 0) init(&b, 64);
  group.sync();
  cuda::memcpy_async(group, s, g, sizeof(int) * 64, b);
  b.arrive_and_wait();
  g[64 + threadIdx.x] = s[63 - threadIdx.x];
}
//@ grid=1 block=64
K group_copy_right(int* g, int n) {
  __shared__ int s[64];
  auto group = cg::this_thread_block();
  cg::memcpy_async(group, s, g, sizeof(int) * 64);
  cg::wait(group);
  g[64 + threadIdx.x] = s[63 - threadIdx.x];
}
//@ grid=1 block=64
K group_copy_wrong(int* g, int n) {                   // a barrier is no wait
  __shared__ int s[64];
  auto group = cg::this_thread_block();
  cg::memcpy_async(group, s, g, sizeof(int) * 64);
  group.sync();
  g[64 + threadIdx.x] = s[63 - threadIdx.x];          //~ race
  cg::wait(group);
}
//@ grid=1 block=64
K pipeline_right(int* g, int n) {
  constexpr int stages = 2;
  __shared__ int s[stages][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto group = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(group, &state);
  for (int next = 0, i = 0; i < 4; i++) {
    for (; next < 4 && next < i + stages; next++) {
      pipe.producer_acquire();
      cuda::memcpy_async(group, s[next % stages], g + 64 * next, sizeof(int) * 64, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    g[512 + 64 * i + threadIdx.x] = s[i % stages][63 - threadIdx.x];
    pipe.consumer_release();
  }
}
//@ grid=1 block=64
K thread_pipeline_right(int* g, int n) {
  __shared__ int s[2][64];
  auto pipe = cuda::make_pipeline();
  for (int i = 0; i < 2; i++) {
    pipe.producer_acquire();
    cuda::memcpy_async(&s[i][threadIdx.x], g + 64 * i + threadIdx.x, cuda::aligned_size_t<4>(4), pipe);
    pipe.producer_commit();
  }
  cuda::pipeline_consumer_wait_prior<1>(pipe);
  __syncthreads();
  g[512 + threadIdx.x] = s[0][63 - threadIdx.x];
  cuda::pipeline_consumer_wait_prior<0>(pipe);
  __syncthreads();
  g[576 + threadIdx.x] = s[1][63 - threadIdx.x];
}
//@ grid=1 block=64
K thread_pipeline_wrong(int* g, int n) {              // the second stage is read after a wait for the first
  __shared__ int s[2][64];
  auto pipe = cuda::make_pipeline();
  for (int i = 0; i < 2; i++) {
    pipe.producer_acquire();
    cuda::memcpy_async(&s[i][threadIdx.x], g + 64 * i + threadIdx.x, cuda::aligned_size_t<4>(4), pipe);
    pipe.producer_commit();
  }
  cuda::pipeline_consumer_wait_prior<1>(pipe);
  __syncthreads();
  g[512 + threadIdx.x] = s[0][63 - threadIdx.x] + s[1][63 - threadIdx.x];   //~ race
}
//@ grid=2 block=32
K reduce_right(int* g, int n) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int x = cg::reduce(warp, g[threadIdx.x], cg::plus<int>());
  int y = cg::inclusive_scan(warp, g[threadIdx.x], cg::plus<int>());
  if (warp.thread_rank() == 0) g[64 + blockIdx.x] = x;
  g[128 + blockIdx.x * 32 + threadIdx.x] = y;
}
//@ grid=1 block=64
K labels_right(int* g, int n) {                       // lanes with the same label add up
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto same = cg::labeled_partition(warp, g[threadIdx.x] & 3);
  int x = cg::reduce(same, 1, cg::plus<int>());
  if (same.thread_rank() == 0) atomicAdd(&g[64 + (g[threadIdx.x] & 3)], x);
}
//@ grid=1 block=64
K labels_wrong(int* g, int n) {                       // each warp has a first lane
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto same = cg::labeled_partition(warp, g[threadIdx.x] & 3);
  int x = cg::reduce(same, 1 + (int)threadIdx.x, cg::plus<int>());
  if (same.thread_rank() == 0) g[64 + (g[threadIdx.x] & 3)] += x;           //~ race
}
//@ grid=1 block=64
K binary_right(int* g, int n) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto part = cg::binary_partition(warp, g[threadIdx.x] > 3);
  int x = part.shfl(g[threadIdx.x], 0);
  part.sync();
  g[64 + threadIdx.x] = x;
}
//@ grid=2 block=32 zero
K semaphore_right(int* g, int n) {                    // a mutual exclusion
  auto* s = reinterpret_cast<cuda::binary_semaphore<cuda::thread_scope_device>*>(&g[32]);
  auto* ready = &g[0];
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) {
      new (s) cuda::binary_semaphore<cuda::thread_scope_device>(1);
      cuda::atomic_ref<int, cuda::thread_scope_device>(*ready).store(1, cuda::memory_order_release);
    } else {
      while (!cuda::atomic_ref<int, cuda::thread_scope_device>(*ready).load(cuda::memory_order_acquire)) {}
    }
    s->acquire();
    g[1] += 1 + blockIdx.x;
    s->release();
  }
}
//@ grid=1 block=64 zero
K latch_right(int* g, int n) {
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(Latch) char room[sizeof(Latch)];
  __shared__ int s[64];
  Latch* latch = reinterpret_cast<Latch*>(room);
  if (threadIdx.x == 0) new (latch) Latch(64);
  __syncthreads();
  s[threadIdx.x] = threadIdx.x;
  latch->arrive_and_wait();
  g[threadIdx.x] = s[63 - threadIdx.x];
}
//@ grid=1 block=64 zero
K latch_wrong(int* g, int n) {                        // counts down and does not wait
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(Latch) char room[sizeof(Latch)];
  __shared__ int s[64];
  Latch* latch = reinterpret_cast<Latch*>(room);
  if (threadIdx.x == 0) new (latch) Latch(64);
  __syncthreads();
  s[threadIdx.x] = threadIdx.x;                       //~ race
  latch->count_down();
  g[threadIdx.x] = s[63 - threadIdx.x];               //~ race
}
//@ grid=2 block=32 zero
K sleeping_flag_right(int* g, int n) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 1) {
      while (atomicAdd(&g[0], 0) == 0) __nanosleep(100);
      __threadfence();
      g[2] = g[1];
    } else {
      g[1] = 5;
      __threadfence();
      atomicExch(&g[0], 1);
    }
  }
}
//@ grid=2 block=32 zero
K atomic_wait_right(int* g, int n) {
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(g[0]);
  if (threadIdx.x == 0) {
    if (blockIdx.x == 1) {
      flag.wait(0, cuda::memory_order_acquire);
      g[2] = g[1];
    } else {
      g[1] = 5;
      flag.store(1, cuda::memory_order_release);
      flag.notify_all();
    }
  }
}
//@ grid=2 block=32 zero
K atomic_wait_relaxed_wrong(int* g, int n) {
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(g[0]);
  if (threadIdx.x == 0) {
    if (blockIdx.x == 1) {
      flag.wait(0, cuda::memory_order_relaxed);
      g[2] = g[1];                                    //~ race
    } else {
      g[1] = 5;                                       //~ race
      flag.store(1, cuda::memory_order_release);
    }
  }
}
