// Traversals of graphs, worklists and hand-made synchronization, with one mistake each.
#include <cooperative_groups.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
using block_ref = cuda::atomic_ref<int, cuda::thread_scope_block>;
using device_ref = cuda::atomic_ref<int, cuda::thread_scope_device>;
using system_ref = cuda::atomic_ref<int, cuda::thread_scope_system>;
__device__ __forceinline__ int edge(int v, int j) { return (v * 7 + j * 11 + 3) & 127; }

// A bitmap of visited vertices: several threads set bits of one word.
K bitmap_wrong(const int* in, unsigned* out) {
  for (int j = 0; j < 3; j++) { int u = edge(TID, j); out[u / 32] |= 1u << (u & 31); }                  //~ race
}
K bitmap_right(const int* in, unsigned* out) {
  for (int j = 0; j < 3; j++) { int u = edge(TID, j); atomicOr(&out[u / 32], 1u << (u & 31)); }
}
// The bit is tested by a plain load first: other threads set bits of the word by atomics.
K bitmap_tested_wrong(const int* in, unsigned* out) {
  for (int j = 0; j < 3; j++) {
    int u = edge(TID, j);
    if (!(out[u / 32] >> (u & 31) & 1)) atomicOr(&out[u / 32], 1u << (u & 31));                          //~ race
  }
}
K bitmap_tested_right(const int* in, unsigned* out) {
  for (int j = 0; j < 3; j++) {
    int u = edge(TID, j);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> word(out[u / 32]);
    if (!(word.load(cuda::memory_order_relaxed) >> (u & 31) & 1)) word.fetch_or(1u << (u & 31), cuda::memory_order_relaxed);
  }
}
// Path counts of the next level are summed while the present one is read; a level too far reads what is being summed.
//@ grid=2 block=64 zero
K path_counts_wrong(int* level, int* sigma) {
  int v = TID;
  for (int j = 0; j < 2; j++) {
    int u = (v + 1 + j) & 127;
    atomicAdd(&sigma[u], sigma[v] + 1);                                                                  //~ race
  }
}
//@ grid=2 block=64 zero
K path_counts_right(int* level, int* sigma) {
  int v = TID;
  for (int j = 0; j < 2; j++) {
    int u = (v + 1 + j) & 127;
    atomicAdd(&sigma[128 + u], sigma[v] + 1);
  }
}
// The lightest edge of a component: weight and edge in two words.
K lightest_edge_wrong(const int* in, int* out) {
  int c = TID & 7, w = -(int)TID;
  if (atomicMin(&out[c], w) > w) out[64 + c] = TID;                                          //~ race
}
K lightest_edge_right(const int* in, unsigned long long* out) {
  int c = TID & 7;
  unsigned w = 1000 - TID;
  atomicMin(&out[c], (unsigned long long)w << 32 | TID);
}
// Degrees of vertices that fall to k leave the core: the count is read again instead of taken from the atomic.
//@ grid=2 block=64
K peel_wrong(int* degree, int* removed) {
  int u = edge(TID, 0) & 31;
  atomicSub(&degree[u], 1);
  if (degree[u] < 2) removed[u] = 1;                                                                     //~ race
}
//@ grid=2 block=64
K peel_right(int* degree, int* removed) {
  int u = edge(TID, 0) & 31;
  if (atomicSub(&degree[u], 1) < 2) removed[u] = 1;
}
// Colors by priority: a vertex waits for its left neighbour's color. The flag has the scope of a block.
//@ grid=4 block=32 zero
K color_in_order_wrong(int* flag, int* color) {
  if (threadIdx.x) return;
  int b = blockIdx.x;
  if (b > 0) while (!block_ref(flag[b - 1]).load(cuda::memory_order_acquire)) {}                         //~ race
  color[b] = b > 0 ? color[b - 1] + 1 : 1;                                                               //~ race
  block_ref(flag[b]).store(1, cuda::memory_order_release);                                               //~ race
}
//@ grid=4 block=32 zero
K color_in_order_right(int* flag, int* color) {
  if (threadIdx.x) return;
  int b = blockIdx.x;
  if (b > 0) while (!device_ref(flag[b - 1]).load(cuda::memory_order_acquire)) {}
  color[b] = b > 0 ? color[b - 1] + 1 : 1;
  device_ref(flag[b]).store(1, cuda::memory_order_release);
}
// A worklist in shared memory that overflows into global memory: the count of the overflow is reserved for the device.
//@ grid=2 block=64 zero
K spill_wrong(int* count, int* list) {
  __shared__ int n, q[16];
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  int at = atomicAdd(&n, 1);
  if (at < 16) q[at] = threadIdx.x; else list[atomicAdd_block(count, 1)] = TID + 1;                      //~ race
  __syncthreads();
  if (threadIdx.x < 16) list[512 + blockIdx.x * 16 + threadIdx.x] = q[threadIdx.x];
}
//@ grid=2 block=64 zero
K spill_right(int* count, int* list) {
  __shared__ int n, q[16];
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  int at = atomicAdd(&n, 1);
  if (at < 16) q[at] = threadIdx.x; else list[atomicAdd(count, 1)] = TID + 1;
  __syncthreads();
  if (threadIdx.x < 16) list[512 + blockIdx.x * 16 + threadIdx.x] = q[threadIdx.x];
}
// Two queues that exchange roles at each grid barrier; the new count is cleared by one thread after the others have begun.
//@ grid=2 block=32 coop zero
K two_queues_wrong(int* count, int* list) {
  for (int round = 0; round < 3; round++) {
    int now = round & 1;
    cg::this_grid().sync();
    if (TID == 0) count[now ^ 1] = 0;                                                                    //~ race
    int at = atomicAdd(&count[now ^ 1], 1);                                                              //~ race
    list[(now ^ 1) * 256 + (at & 63)] = TID;                                                             //~ race
  }
}
//@ grid=2 block=32 coop zero
K two_queues_right(int* count, int* list) {
  for (int round = 0; round < 3; round++) {
    int now = round & 1;
    if (TID == 0) count[now ^ 1] = 0;
    cg::this_grid().sync();
    int at = atomicAdd(&count[now ^ 1], 1);
    list[(now ^ 1) * 256 + (at & 63)] = TID;
    cg::this_grid().sync();
  }
}
// Dynamic shared memory in two parts: the second begins an element too early.
//@ block=64 shared=1024
K parts_wrong(const int* in, int* out) {
  extern __shared__ int memory[];
  int *a = memory, *b = memory + blockDim.x - 1, t = threadIdx.x;
  a[t] = in[t];                                                                                          //~ race
  b[t] = in[t + 64] + 8;                                                                                 //~ race
  __syncthreads();
  out[t] = a[63 - t] + b[63 - t];
}
//@ block=64 shared=1024
K parts_right(const int* in, int* out) {
  extern __shared__ int memory[];
  int *a = memory, *b = memory + blockDim.x, t = threadIdx.x;
  a[t] = in[t];
  b[t] = in[t + 64] + 8;
  __syncthreads();
  out[t] = a[63 - t] + b[63 - t];
}
// A tile of two warps, whose barrier is that of a tile of one.
//@ block=128
K wide_tile_wrong(const int* in, int* out) {
  __shared__ int s[128];
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int t = threadIdx.x;
  s[t] = in[t];                                                                                          //~ race
  tile.sync();
  out[t] = s[t ^ 32];                                                                                    //~ race
}
//@ block=128
K wide_tile_right(const int* in, int* out) {
  __shared__ cg::block_tile_memory<128> memory;
  __shared__ int s[128];
  auto block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<64>(block);
  int t = threadIdx.x;
  s[t] = in[t];
  tile.sync();
  out[t] = s[t ^ 32];
}
// A structure behind a lock: one member is read without it.
//@ grid=4 block=32 zero
K member_outside_wrong(int* lock, int* pair) {
  if (threadIdx.x) return;
  int seen = pair[1];                                                                                    //~ race
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence();
  pair[0] += seen + 1;
  pair[1] += 2;                                                                                          //~ race
  __threadfence();
  atomicExch(lock, 0);
}
//@ grid=4 block=32 zero
K member_outside_right(int* lock, int* pair) {
  if (threadIdx.x) return;
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence();
  int seen = pair[1];
  pair[0] += seen + 1;
  pair[1] += 2;
  __threadfence();
  atomicExch(lock, 0);
}
// Two locks for one account: each thread takes only that of the source.
//@ grid=4 block=32 zero
K transfer_wrong(int* lock, int* account) {
  if (threadIdx.x) return;
  int a = blockIdx.x, b = (a + 1) & 3;
  while (atomicCAS(&lock[a], 0, 1)) {}
  __threadfence();
  account[a] -= 1;                                                                                       //~ race
  account[b] += 1;                                                                                       //~ race
  __threadfence();
  atomicExch(&lock[a], 0);
}
//@ grid=4 block=32 zero
K transfer_right(int* lock, int* account) {
  if (threadIdx.x) return;
  int a = blockIdx.x, b = (a + 1) & 3, first = min(a, b), second = max(a, b);
  while (atomicCAS(&lock[first], 0, 1)) {}
  while (atomicCAS(&lock[second], 0, 1)) {}
  __threadfence();
  account[a] -= 1;
  account[b] += 1;
  __threadfence();
  atomicExch(&lock[second], 0);
  atomicExch(&lock[first], 0);
}
// An unlock whose fence comes after it.
//@ grid=4 block=32 zero
K late_fence_wrong(int* lock, int* data) {
  if (threadIdx.x) return;
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence();
  data[0] += 1;                                                                                          //~ race
  atomicExch(lock, 0);
  __threadfence();
}
//@ grid=4 block=32 zero
K late_fence_right(int* lock, int* data) {
  if (threadIdx.x) return;
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence();
  data[0] += 1;
  __threadfence();
  atomicExch(lock, 0);
}
// A block votes whether to go on; the vote of the next round is cleared without a barrier.
//@ block=64
K vote_wrong(const int* in, int* out) {
  __shared__ int more;
  for (int round = 0; round < 3; round++) {
    if (threadIdx.x == 0) more = 0;                                                                      //~ race
    __syncthreads();
    if (in[threadIdx.x] > round) more = 1;
    __syncthreads();
    if (!more) break;                                                                                    //~ race
    out[threadIdx.x] = round;
  }
}
//@ block=64
K vote_right(const int* in, int* out) {
  __shared__ int more;
  for (int round = 0; round < 3; round++) {
    if (threadIdx.x == 0) more = 0;
    __syncthreads();
    if (in[threadIdx.x] > round) more = 1;
    __syncthreads();
    bool go = more;
    __syncthreads();
    if (!go) break;
    out[threadIdx.x] = round;
  }
}
// Each warp takes vertices; the first lane takes, and hands the vertex over in shared memory.
//@ grid=2 block=64 zero
K taken_by_warp_wrong(int* next, int* out) {
  __shared__ int taken[2];
  int w = threadIdx.x / 32, l = threadIdx.x & 31;
  for (int i = 0; i < 3; i++) {
    if (l == 0) taken[w] = atomicAdd(next, 1);                                                           //~ race
    __syncwarp();
    out[(taken[w] & 15) * 32 + l] = l;                                                                   //~ race
  }
}
//@ grid=2 block=64 zero
K taken_by_warp_right(int* next, int* out) {
  __shared__ int taken[2];
  int w = threadIdx.x / 32, l = threadIdx.x & 31;
  for (int i = 0; i < 3; i++) {
    if (l == 0) taken[w] = atomicAdd(next, 1);
    __syncwarp();
    int v = taken[w];
    __syncwarp();
    out[(v & 15) * 32 + l] = l;
  }
}
// A pipeline of blocks by counters: the consumer counts arrivals with a relaxed load and no fence.
//@ grid=3 block=32 zero
K arrivals_wrong(int* count, int* data) {
  if (blockIdx.x < 2) {
    data[blockIdx.x * 32 + threadIdx.x] = threadIdx.x + 1;                                               //~ race
    __syncthreads();
    if (threadIdx.x == 0) device_ref(*count).fetch_add(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0) while (device_ref(*count).load(cuda::memory_order_relaxed) < 2) {}
    __syncwarp();
    data[128 + threadIdx.x] = data[threadIdx.x] + data[32 + threadIdx.x];                                //~ race
  }
}
//@ grid=3 block=32 zero
K arrivals_right(int* count, int* data) {
  if (blockIdx.x < 2) {
    data[blockIdx.x * 32 + threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x == 0) device_ref(*count).fetch_add(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0) while (device_ref(*count).load(cuda::memory_order_acquire) < 2) {}
    __syncwarp();
    data[128 + threadIdx.x] = data[threadIdx.x] + data[32 + threadIdx.x];
  }
}
// The same variable by references of different scopes.
//@ grid=2 block=32 zero
K scopes_of_one_wrong(int* a, int* out) {
  if (blockIdx.x == 0) system_ref(*a).fetch_add(1, cuda::memory_order_relaxed);                          //~ race
  else block_ref(*a).fetch_add(1, cuda::memory_order_relaxed);                                           //~ race
}
//@ grid=2 block=32 zero
K scopes_of_one_right(int* a, int* out) {
  if (blockIdx.x == 0) system_ref(*a).fetch_add(1, cuda::memory_order_relaxed);
  else device_ref(*a).fetch_add(1, cuda::memory_order_relaxed);
}
// Barriers under conditions that differ within the block.
//@ block=64
K barrier_by_value_wrong(const int* in, int* out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  for (int i = 0; i < in[t]; i++) {
    s[t] = i;
    __syncthreads();                                                                                     //~ synchronization
    out[t] += s[t ^ 1];
    __syncthreads();                                                                                     //~ synchronization
  }
}
//@ block=64
K barrier_by_value_right(const int* in, int* out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  for (int i = 0; __syncthreads_or(i < in[t]); i++) {
    s[t] = i;
    __syncthreads();
    out[t] += s[t ^ 1];
  }
}
//@ block=64
K vote_in_branch_wrong(const int* in, int* out) {
  int t = threadIdx.x, any = 0;
  if (t >= 32) any = __syncthreads_or(in[t]);                                                            //~ synchronization
  else out[64] = 1;
  out[t] = any;
  if (t < 32) out[t + 128] = 2;                                                                          //~ synchronization
}
//@ block=64
K vote_in_branch_right(const int* in, int* out) {
  int t = threadIdx.x, any = __syncthreads_or(t >= 32 && in[t]);
  out[t] = any;
}
// A reduction whose last steps leave the warp barriers out, with volatile accesses and without.
//@ block=128
K last_steps_wrong(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  for (int d = 64; d >= 32; d >>= 1) { __syncthreads(); if (t < d) s[t] += s[t + d]; }
  if (t < 32) { s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1]; }   //~ race
  if (t == 0) out[0] = s[0];
}
//@ block=128
K last_steps_right(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  for (int d = 64; d >= 32; d >>= 1) { __syncthreads(); if (t < d) s[t] += s[t + d]; }
  if (t < 32) {
    int v = s[t];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    if (t == 0) out[0] = v;
  }
}
// A pointer to data made by another block: published with a block fence.
//@ grid=2 block=32 zero
K published_pointer_wrong(unsigned long long* slot, int* data) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    data[5] = 42;                                                                                        //~ race
    __threadfence_block();
    atomicExch(slot, (unsigned long long)&data[5]);
  } else {
    unsigned long long p;
    while (!(p = atomicAdd(slot, 0ull))) {}
    __threadfence();
    data[100] = *(int*)p;                                                                                //~ race
  }
}
//@ grid=2 block=32 zero
K published_pointer_right(unsigned long long* slot, int* data) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    data[5] = 42;
    __threadfence();
    atomicExch(slot, (unsigned long long)&data[5]);
  } else {
    unsigned long long p;
    while (!(p = atomicAdd(slot, 0ull))) {}
    __threadfence();
    data[100] = *(int*)p;
  }
}
// Rows of a matrix in compressed form: a warp for each row, whose sums go to the row; the rows' ends overlap.
//@ grid=2 block=64
K rows_wrong(const int* in, float* out) {
  int row = TID / 32, l = threadIdx.x & 31;
  float sum = 0;
  for (int j = row * 8 + l; j <= row * 8 + 8; j += 32) { sum += in[j]; out[j] = sum + row; }                   //~ race
}
//@ grid=2 block=64
K rows_right(const int* in, float* out) {
  int row = TID / 32, l = threadIdx.x & 31;
  float sum = 0;
  for (int j = row * 8 + l; j < row * 8 + 8; j += 32) { sum += in[j]; out[j] = sum + row; }
}
