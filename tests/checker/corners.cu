// Bugs of programs that synchronize by parts of a warp, a block or a grid: groups of lanes that form at run time, barriers that are left,
// barriers of the grid that are used again, functions that are called through tables, elements smaller than a word.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#define K extern "C" __global__ void
namespace cg = cooperative_groups;

// Lanes that have taken a branch agree by their group; the leader's write is read behind its barrier, or not.
K branch_group_wrong(const int* in, int* out) {
  __shared__ int base[4];
  int t = threadIdx.x;
  if (in[t] & 1) {
    auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0) base[t / 32] = t;                                                  //~ race
    out[t] = base[t / 32];                                                                            //~ race
  }
}
K branch_group_right(const int* in, int* out) {
  __shared__ int base[4];
  int t = threadIdx.x;
  if (in[t] & 1) {
    auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0) base[t / 32] = t;
    active.sync();
    out[t] = base[t / 32];
  }
}
// A thread that leaves a barrier for good writes afterwards.
K drop_then_write_wrong(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  if (t >= 96) {
    b.arrive_and_drop();
    s[t] = t;                                                                                         //~ race
  } else {
    s[t] = t;
    b.arrive_and_wait();
    out[t] = s[t + 32];                                                                               //~ race
  }
}
K drop_then_write_right(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  s[t] = t;
  if (t >= 96) {
    b.arrive_and_drop();
  } else {
    b.arrive_and_wait();
    out[t] = s[t + 32];
  }
}
// The threads that are left use the barrier again.
K drop_then_again_right(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  s[t] = t;
  if (t >= 64) {
    b.arrive_and_drop();
  } else {
    b.arrive_and_wait();
    int v = s[t + 64];
    b.arrive_and_wait();
    s[t] = v;
    b.arrive_and_wait();
    out[t] = s[63 - t];
  }
}
K drop_then_again_wrong(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&b, 128);
  __syncthreads();
  s[t] = t;
  if (t >= 64) {
    b.arrive_and_drop();
  } else {
    b.arrive_and_wait();
    int v = s[63 - t];                                                                                //~ race
    s[t] = v;                                                                                         //~ race
    b.arrive_and_wait();
    out[t] = s[63 - t];
  }
}
// A barrier of the grid by a counter that is waited for with the same count again.
__device__ void meet(unsigned* count, unsigned n) {
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> c(*count);
    c.fetch_add(1, cuda::memory_order_acq_rel);
    while (c.load(cuda::memory_order_acquire) < n) {}
  }
  __syncthreads();
}
//@ grid=4 block=32 coop zero
K counter_used_again_wrong(unsigned* count, int* a, int* b, int* out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  a[i] = i;
  meet(count, gridDim.x);
  b[i] = a[127 - i];                                                                                  //~ race
  meet(count, gridDim.x);
  out[i] = b[127 - i];                                                                                //~ race
}
//@ grid=4 block=32 coop zero
K counter_used_again_right(unsigned* count, int* a, int* b, int* out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  a[i] = i;
  meet(count, gridDim.x);
  b[i] = a[127 - i];
  meet(count, 2 * gridDim.x);
  out[i] = b[127 - i];
}
// The last warp of a block adds up what all have stored; the counter is shared.
//? __threadfence_block
K last_warp_wrong(const int* in, int* out) {
  __shared__ int part[4];
  __shared__ unsigned done;
  int t = threadIdx.x, w = t / 32;
  if (t == 0) done = 0;
  __syncthreads();
  int v = __reduce_add_sync(~0u, in[t]);
  if (t % 32 == 0) {
    part[w] = v;                                                                                      //~ race
    if (atomicAdd(&done, 1) == 3) out[0] = part[0] + part[1] + part[2] + part[3];                     //~ race
  }
}
K last_warp_right(const int* in, int* out) {
  __shared__ int part[4];
  __shared__ unsigned done;
  int t = threadIdx.x, w = t / 32;
  if (t == 0) done = 0;
  __syncthreads();
  int v = __reduce_add_sync(~0u, in[t]);
  if (t % 32 == 0) {
    part[w] = v;
    __threadfence_block();
    if (atomicAdd(&done, 1) == 3) {
      __threadfence_block();
      out[0] = part[0] + part[1] + part[2] + part[3];
    }
  }
}
// Elements of a structure, bytes and halves: neighbours in one word are no conflict, but a structure that is copied whole is.
struct Pixel { unsigned char r, g, b, a; };
K pixels_right(const unsigned char* in, unsigned char* out) {
  __shared__ Pixel p[32];
  int t = threadIdx.x, i = t / 4;
  unsigned char* bytes = reinterpret_cast<unsigned char*>(&p[i]);
  bytes[t % 4] = in[t];
  out[t] = bytes[t % 4] + 1;
}
K pixels_wrong(const unsigned char* in, unsigned* out) {
  __shared__ Pixel p[32];
  int t = threadIdx.x, i = t / 4;
  unsigned char* bytes = reinterpret_cast<unsigned char*>(&p[i]);
  bytes[t % 4] = in[t];                                                                               //~ race
  if (t % 4 == 0) out[i] = *reinterpret_cast<unsigned*>(&p[i]);                                       //~ race
}
K flags_of_bytes_wrong(const int* in, unsigned char* flags) {                                         // several set bits of one byte
  int t = threadIdx.x;
  if (in[t] & 1) flags[t / 8] |= 1 << t % 8;                                                          //~ race
}
K flags_of_bytes_right(const int* in, unsigned char* flags) {                                         // a byte each
  int t = threadIdx.x;
  if (in[t] & 1) flags[t] |= 2;
}
// Vectors: one thread's vector ends where the next one's begins, or not.
K vectors_right(const float4* in, float4* out) {
  __shared__ float s[4 * 128];
  int t = threadIdx.x;
  reinterpret_cast<float4*>(s)[t] = in[t];
  float v = s[4 * t] + s[4 * t + 3];
  out[t] = make_float4(v, v, v, v);
}
K vectors_wrong(const float4* in, float4* out) {
  __shared__ float s[4 * 128 + 4];
  int t = threadIdx.x;
  reinterpret_cast<float4*>(s)[t] = in[t];                                                            //~ race
  float v = s[4 * t] + s[4 * t + 4];                                                                  //~ race
  out[t] = make_float4(v, v, v, v);
}
//@ grid=2
K pairs_overlap_wrong(int* a, int* out) {                                                             // 8 bytes of one, 4 of another block
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x == 0) reinterpret_cast<int2*>(a)[i + 1] = make_int2(i, i);                           //~ race
  else out[i] = a[i + 10];                                                                            //~ race
}
// Functions through a table, and virtual ones.
typedef void (*Step)(int*, int);
__device__ void put(int* s, int t) { s[t] = t; }
__device__ void shift(int* s, int t) { s[t] = s[(t + 1) % 128]; }                                     //~ race table_wrong
__device__ Step steps[2] = {put, shift};
K table_wrong(const int* which, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  for (int k = 0; k < 2; k++) {
    steps[which[k]](s, t);
    __syncthreads();
  }
  out[t] = s[t];
}
__device__ void take(int* s, int t) { s[128 + t] = s[(t + 1) % 128]; }
__device__ Step others[2] = {put, take};
K table_right(const int* which, int* out) {
  __shared__ int s[256];
  int t = threadIdx.x;
  for (int k = 0; k < 2; k++) {
    others[which[k]](s, t);
    __syncthreads();
  }
  out[t] = s[128 + t];
}
// A value that one lane has got for its group.
K one_for_all_wrong(const int* in, int* out) {
  __shared__ int slot[4];
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  cg::invoke_one(tile, [&] { slot[tile.meta_group_rank()] = in[threadIdx.x]; });                      //~ race
  out[threadIdx.x] = slot[tile.meta_group_rank()];                                                    //~ race
}
K one_for_all_right(const int* in, int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  out[threadIdx.x] = cg::invoke_one_broadcast(tile, [&] { return in[threadIdx.x]; });
}
// Sums by groups that end in shared memory, which the next round uses again.
K rounds_of_sums_wrong(const int* in, int* out) {
  __shared__ int sums[4];
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int total = 0;
  for (int k = 0; k < 4; k++) {
    int v = cg::reduce(tile, in[threadIdx.x + k], cg::plus<int>());
    if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = v;                                    //~ race
    __syncthreads();
    total += sums[0] + sums[1] + sums[2] + sums[3];                                                   //~ race
  }
  out[threadIdx.x] = total;
}
K rounds_of_sums_right(const int* in, int* out) {
  __shared__ int sums[2][4];
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int total = 0;
  for (int k = 0; k < 4; k++) {
    int v = cg::reduce(tile, in[threadIdx.x + k], cg::plus<int>());
    if (tile.thread_rank() == 0) sums[k & 1][tile.meta_group_rank()] = v;
    __syncthreads();
    total += sums[k & 1][0] + sums[k & 1][1] + sums[k & 1][2] + sums[k & 1][3];
  }
  out[threadIdx.x] = total;
}
// Three buffers need one barrier, two need two if the writes run ahead by one.
K run_ahead_wrong(const int* in, int* out) {
  __shared__ int s[2][128];
  int t = threadIdx.x, total = 0;
  s[0][t] = in[t];
  for (int k = 0; k < 4; k++) {
    s[(k + 1) & 1][t] = in[t + k + 1];                                                                //~ race
    __syncthreads();
    total += s[k & 1][127 - t];                                                                       //~ race
  }
  out[t] = total;
}
K run_ahead_right(const int* in, int* out) {
  __shared__ int s[3][128];
  int t = threadIdx.x, total = 0;
  s[0][t] = in[t];
  for (int k = 0; k < 4; k++) {
    s[(k + 1) % 3][t] = in[t + k + 1];
    __syncthreads();
    total += s[k % 3][127 - t];
  }
  out[t] = total;
}
// Only some inputs let two threads meet.
K hash_slots_wrong(const int* in, int* out) {                                                         // 0 to 7 in turn: 16 threads each
  int t = threadIdx.x;
  out[in[t]] = t;                                                                                     //~ race
}
K hash_slots_right(const int* in, int* out) {
  int t = threadIdx.x;
  if (t < 8) out[in[t]] = t;
}
K rarely_wrong(const int* in, int* out) {                                                             // only where the value is 5
  __shared__ int s[129];
  int t = threadIdx.x;
  s[t] = in[t];                                                                                       //~ race
  if (t == 128 - 1) s[128] = 0;
  if (in[t] == 5) out[t + 200] = s[t ^ 32];                                                           //~ race
}
// A stack by its index: the slot is written before it is announced, or behind.
//@ grid=4 block=32 zero
K push_index_wrong(unsigned* top, int* slots, int* out) {
  unsigned i = atomicAdd(top, 1);
  slots[i] = i;                                                                                       //~ race
  unsigned n = *(volatile unsigned*)top;
  out[i] = slots[n - 1];                                                                              //~ race
}
// An intrusive list: the link is stored before the head is exchanged, and followed by whoever sees the node.
struct Node { int value; Node* next; };
//@ grid=4 block=1 zero
K list_push_relaxed_wrong(Node* nodes, unsigned long long* head, int* out) {
  Node* mine = nodes + blockIdx.x;
  mine->value = blockIdx.x;                                                                           //~ race
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> h(*head);
  unsigned long long old = h.load(cuda::memory_order_relaxed);
  do mine->next = reinterpret_cast<Node*>(old);                                                       //~ race
  while (!h.compare_exchange_weak(old, reinterpret_cast<unsigned long long>(mine), cuda::memory_order_relaxed));
  int sum = 0;
  for (Node* n = mine; n; n = n->next) sum += n->value;                                               //~ race
  out[blockIdx.x] = sum;
}
//@ grid=4 block=1 zero
K list_push_relaxed_right(Node* nodes, unsigned long long* head, int* out) {
  Node* mine = nodes + blockIdx.x;
  mine->value = blockIdx.x;
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> h(*head);
  unsigned long long old = h.load(cuda::memory_order_relaxed);
  do mine->next = reinterpret_cast<Node*>(old);
  while (!h.compare_exchange_weak(old, reinterpret_cast<unsigned long long>(mine), cuda::memory_order_acq_rel));
  int sum = 0;
  for (Node* n = mine; n; n = n->next) sum += n->value;
  out[blockIdx.x] = sum;
}
// The cache of `__ldg()` does not notice what the kernel writes, whatever orders the two.
K cached_wrong(int* a, int* out) {
  int t = threadIdx.x;
  a[t] = t;                                                                                           //~ race
  __syncthreads();
  out[t] = __ldg(&a[127 - t]);                                                                        //~ race
}
K cached_right(int* a, const int* b, int* out) {
  int t = threadIdx.x;
  a[t] = t;
  __syncthreads();
  out[t] = a[127 - t] + __ldg(&b[t]);
}
K cached_in_place_right(int* a) {
  int t = threadIdx.x;
  for (int k = 0; k < 4; k++) a[t + 128 * k] = __ldg(&a[t + 128 * k]) + 1;
}
//@ grid=2 coop
K cached_after_grid_sync_wrong(int* a, int* out) {
  int i = blockIdx.x * 128 + threadIdx.x;
  a[i] = i;                                                                                           //~ race
  cg::this_grid().sync();
  out[i] = __ldg(&a[255 - i]);                                                                        //~ race
}
