// Irregular codes in the shapes that benchmarks publish: vertex, edge, warp and block variants, wide types, conditional updates, scopes.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/semaphore>
#include <cuda/barrier>
#define K extern "C" __global__ void
namespace cg = cooperative_groups;
using ull = unsigned long long;
template <class T, cuda::thread_scope S> using Ref = cuda::atomic_ref<T, S>;
constexpr auto device = cuda::thread_scope_device;
constexpr auto block = cuda::thread_scope_block;
constexpr auto relaxed = cuda::memory_order_relaxed;

//@ grid=2 block=64
K max_edge_double_wrong(const int* in, double* best) {
  double v = in[(blockIdx.x * 64 + threadIdx.x) % 1024] + threadIdx.x;
  if (best[0] < v) best[0] = v;                                      //~ race
}
//@ grid=2 block=64
K max_edge_double_right(const int* in, ull* best) {
  double v = in[(blockIdx.x * 64 + threadIdx.x) % 1024] + threadIdx.x;
  Ref<double, device> r(*(double*)best);
  double seen = r.load(relaxed);
  while (seen < v && !r.compare_exchange_weak(seen, v, relaxed)) {}
}
//@ grid=2 block=64
K guarded_max_wrong(const int* in, int* best) {
  int v = in[threadIdx.x] + blockIdx.x;
  if (best[0] < v) atomicMax(best, v);                               //~ race
}
//@ grid=2 block=64 zero
K warp_cooperative_sum_wrong(const int* in, int* out) {              // lane 0 of each warp of all blocks, without an atomic
  int sum = __reduce_add_sync(~0u, in[threadIdx.x]);
  if ((threadIdx.x & 31) == 0) out[threadIdx.x / 32] += sum + 1;     //~ race
}
//@ grid=2 block=64 zero
K warp_cooperative_sum_right(const int* in, int* out) {
  int sum = __reduce_add_sync(~0u, in[threadIdx.x]);
  if ((threadIdx.x & 31) == 0) out[blockIdx.x * 2 + threadIdx.x / 32] += sum + 1;
}
//@ grid=3 block=96
K vertex_bound_wrong(const int* nindex, int* out) {      // 288 threads, 256 vertices
  __shared__ int count[256];
  int v = threadIdx.x + blockIdx.x * blockDim.x;
  count[v] = nindex[v];                                              //~ fault
  __syncthreads();
  out[v] = count[v ^ 1];
}
//@ grid=2 block=64 zero
K pull_long_in_place_wrong(const int* in, ull* label) {
  int i = blockIdx.x * 64 + threadIdx.x;
  ull m = label[i];
  for (int k = 0; k < 3; k++) m = max(m, label[(i + in[k + i] + 1) % 128]);    //~ race
  label[i] = m + i;                                                  //~ race
}
//@ grid=2 block=64 zero
K pull_long_right(const int* in, const ull* label, ull* next) {
  int i = blockIdx.x * 64 + threadIdx.x;
  ull m = label[i];
  for (int k = 0; k < 3; k++) m = max(m, label[(i + in[k + i] + 1) % 128]);
  next[i] = m + i;
}
//@ grid=2 block=64 zero
K sssp_packed_right(const int* in, ull* dist) {
  int i = blockIdx.x * 64 + threadIdx.x;
  ull mine = atomicMax(&dist[i % 128], 0ull);
  atomicMax(&dist[(i * 7 + in[i]) % 128], mine + ((ull)i << 32));
}
//@ grid=2 block=64 zero
K sssp_packed_half_wrong(const int* in, ull* dist) {                 // reads the high half of the packed word
  int i = blockIdx.x * 64 + threadIdx.x;
  int mine = ((volatile int*)dist)[2 * (i % 128) + 1];               //~ race
  atomicMax(&dist[(i * 7 + in[i]) % 128], (ull)(mine + i + 1) << 32);  //~ race
}
//@ grid=2 block=64 zero
K jump_pointers_wrong(int* parent) {                                 // pointer jumping in place, plainly
  int i = blockIdx.x * 64 + threadIdx.x;
  int p = parent[i];
  while (p != parent[p]) p = parent[p];
  parent[(i + 1) % 128] = p + i;                                     //~ race
}
//@ grid=2 block=64 zero
K frontier_index_bound_wrong(int* wl, int* size, int* out) {
  __shared__ int local[64];
  if (threadIdx.x < 32) local[threadIdx.x] = 0;
  __syncthreads();
  int at = atomicAdd(size, 1);
  local[at] = 1;                                                     //~ fault
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = local[threadIdx.x];
}
//@ grid=1 block=64
K block_vertex_no_last_barrier_wrong(const int* in, int* out) {      // the block's loop over vertices reuses the sum
  __shared__ int sum;
  for (int v = 0; v < 3; v++) {
    if (threadIdx.x == 0) sum = 0;                                   //~ race
    __syncthreads();
    atomicAdd(&sum, in[v * 64 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 32) out[v] = sum;                             //~ race
  }
}
//@ grid=1 block=64
K block_vertex_right(const int* in, int* out) {
  __shared__ int sum;
  for (int v = 0; v < 3; v++) {
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[v * 64 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[v] = sum;
  }
}
//@ grid=1 block=64
K block_vertex_same_thread_right(const int* in, int* out) {          // two sums in turn, one barrier less
  __shared__ int sum[2];
  if (threadIdx.x == 0) sum[0] = 0;
  for (int v = 0; v < 3; v++) {
    __syncthreads();
    atomicAdd(&sum[v & 1], in[v * 64 + threadIdx.x]);
    if (threadIdx.x == 0) sum[~v & 1] = 0;
    __syncthreads();
    if (threadIdx.x == 32) out[v] = sum[v & 1];
  }
}
//@ grid=2 block=64 zero
K thread_scope_wrong(int* c) {
  Ref<int, cuda::thread_scope_thread>(c[0]).fetch_add(1, relaxed);   //~ race
}
//@ grid=2 block=64 zero
K fence_scope_block_wrong(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    data[0] = 7;                                                     //~ race
    cuda::atomic_thread_fence(cuda::memory_order_release, block);
    Ref<int, device>(flag[0]).store(1, relaxed);
  } else {
    while (Ref<int, device>(flag[0]).load(relaxed) == 0) {}
    cuda::atomic_thread_fence(cuda::memory_order_acquire, device);
    out[0] = data[0];                                                //~ race
  }
}
//@ grid=2 block=64 zero
K fence_scope_device_right(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    data[0] = 7;
    cuda::atomic_thread_fence(cuda::memory_order_release, device);
    Ref<int, device>(flag[0]).store(1, relaxed);
  } else {
    while (Ref<int, device>(flag[0]).load(relaxed) == 0) {}
    cuda::atomic_thread_fence(cuda::memory_order_acquire, device);
    out[0] = data[0];
  }
}
//@ grid=2 block=64 zero
K semaphore_block_scope_wrong(int* mem, int* data) {                 // one semaphore for both blocks, of block scope
  auto* s = (cuda::binary_semaphore<block>*)mem;
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { data[0] = 1; s->release(); }              //~ race
    else { s->acquire(); data[1] = data[0]; }                        //~ race
  }
}
//@ grid=2 block=64 zero
K semaphore_device_scope_right(int* mem, int* data) {
  auto* s = (cuda::binary_semaphore<device>*)mem;
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { data[0] = 1; s->release(); }
    else { s->acquire(); data[1] = data[0]; }
  }
}
//@ grid=2 block=32 zero
K notify_wait_right(int* flag, int* data) {
  Ref<int, device> f(flag[0]);
  if (blockIdx.x == 0) { data[threadIdx.x] = threadIdx.x; __syncwarp(); if (threadIdx.x == 0) { f.store(1, cuda::memory_order_release); f.notify_all(); } }
  else { f.wait(0, cuda::memory_order_acquire); data[32 + threadIdx.x] = data[31 - threadIdx.x]; }
}
//@ grid=2 block=32 zero
K notify_no_syncwarp_wrong(int* flag, int* data) {
  Ref<int, device> f(flag[0]);
  if (blockIdx.x == 0) { data[threadIdx.x] = threadIdx.x; if (threadIdx.x == 0) { f.store(1, cuda::memory_order_release); f.notify_all(); } }   //~ race
  else { f.wait(0, cuda::memory_order_acquire); data[32 + threadIdx.x] = data[31 - threadIdx.x]; }   //~ race
}
//@ grid=1 block=64
K tile_arrive_only_wrong(const int* in, int* out) {
  __shared__ int s[64];
  auto b = cg::this_thread_block();
  s[threadIdx.x] = in[threadIdx.x];                                  //~ race
  auto t = b.barrier_arrive();
  out[threadIdx.x] = s[63 - threadIdx.x];                            //~ race
  b.barrier_wait(std::move(t));
}
//@ grid=1 block=64
K tile_arrive_wait_right(const int* in, int* out) {
  __shared__ int s[64];
  auto b = cg::this_thread_block();
  s[threadIdx.x] = in[threadIdx.x];
  auto t = b.barrier_arrive();
  int x = in[threadIdx.x + 1];
  b.barrier_wait(std::move(t));
  out[threadIdx.x] = s[63 - threadIdx.x] + x;
}
//@ grid=2 block=64 coop zero
K grid_split_right(int* a, int* b) {
  auto g = cg::this_grid();
  int i = g.thread_rank();
  a[i] = i;
  auto t = g.barrier_arrive();
  int x = i * 3;
  g.barrier_wait(std::move(t));
  b[i] = a[127 - i] + x;
}
//@ grid=2 block=64 coop zero
K grid_split_early_wrong(int* a, int* b) {
  auto g = cg::this_grid();
  int i = g.thread_rank();
  a[i] = i;                                                          //~ race
  auto t = g.barrier_arrive();
  b[i] = a[127 - i];                                                 //~ race
  g.barrier_wait(std::move(t));
}
//@ grid=1 block=64
K tile_of_warps_partial_wrong(const int* in, int* out) {             // a tile of 16 synchronizes, data comes from the other half of the warp
  __shared__ int s[64];
  auto t = cg::tiled_partition<16>(cg::this_thread_block());
  s[threadIdx.x] = in[threadIdx.x];                                  //~ race
  t.sync();
  out[threadIdx.x] = s[threadIdx.x ^ 16];                            //~ race
}
//@ grid=2 block=64 zero
K counter_then_plain_total_wrong(int* count, int* out) {             // no barrier between the grid's atomics and the read
  atomicAdd(count, 1);                                               //~ race
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = count[0];                  //~ race
}
//@ grid=1 block=64 zero
K counter_then_plain_total_one_block_right(int* count, int* out) {
  atomicAdd(count, 1);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = count[0];
}
//@ grid=1 block=64 zero
K two_block_barriers_of_branches_wrong(int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x < 32) { __syncthreads(); out[threadIdx.x] = s[63 - threadIdx.x]; }   //~ synchronization
  else { out[threadIdx.x] = 1; __syncthreads(); }                    //~ synchronization
}
//@ grid=2 block=64 zero
K cas_insert_then_plain_value_wrong(int* keys, int* values, int* out) {
  int k = threadIdx.x % 16 + 1;
  if (atomicCAS(&keys[k], 0, k) == 0) values[k] = k + blockIdx.x;    //~ race
  else out[threadIdx.x] = values[k];                                 //~ race
}
//@ grid=2 block=64 zero
K changed_flag_volatile_wrong(volatile int* changed, int* out) {     // the flag is polled and reset while others set it
  if (threadIdx.x == 0) out[blockIdx.x] = ((int*)changed)[0];        //~ race
  changed[0] = 1;                                                    //~ race
}
//@ grid=1 block=64
K last_element_of_pairs_wrong(const int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1];            //~ fault
}
