// Atomics of types that have no instruction of their own, and warps whose lanes go their own ways.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/std/atomic>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define B blockIdx.x
#define T threadIdx.x
template <class V> using Device = cuda::atomic_ref<V, cuda::thread_scope_device>;
template <class V> using Block = cuda::atomic_ref<V, cuda::thread_scope_block>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;
struct alignas(8) Pair { int value, turn; };

// A pair in one atomic word of eight bytes.
//@ grid=2 block=1 zero
K pair_right(Pair* p, int* out) {
  if (B == 0) Device<Pair>(*p).store(Pair{5, 1}, relaxed);
  else { Pair now; while ((now = Device<Pair>(*p).load(relaxed)).turn == 0) {} out[0] = now.value; }
}
// One side looks at half of it.
//@ grid=2 block=1 zero
K pair_half_wrong(Pair* p, int* out) {
  if (B == 0) Device<Pair>(*p).store(Pair{5, 1}, relaxed);                                                   //~ race
  else { while (Device<int>(p->turn).load(relaxed) == 0) {} out[0] = p->value; }                             //~ race
}
// A floating-point maximum by a loop of exchanges.
//@ grid=2 block=32 zero
K float_max_right(const float* in, float* best) {
  Device<float> ref(*best); float v = in[T] + B, was = ref.load(relaxed);
  while (was < v && !ref.compare_exchange_weak(was, v, relaxed)) {}
}
//@ grid=2 block=32 zero
K float_max_wrong(const float* in, float* best) {
  Device<float> ref(*best); float v = in[T] + B + 1, was = *best;                                            //~ race
  while (was < v && !ref.compare_exchange_weak(was, v, relaxed)) {}                                          //~ race
}
// Pairs of halves are added at once; the other side adds to one half alone.
//@ grid=2 block=32 zero
K half_pairs_right(const float* in, __half2* sum) { atomicAdd(sum + (T & 3), __floats2half2_rn(in[T], 1.0f)); }
// A flag of an object that outlives no block, in shared memory.
//@ block=64
K shared_flag_right(const int* in, int* out) {
  __shared__ cuda::atomic<bool, cuda::thread_scope_block> ready; __shared__ int v;
  if (T == 0) ready.store(false, relaxed);
  __syncthreads();
  if (T == 32) { v = in[3]; ready.store(true, release); }
  if (T < 32) { while (!ready.load(acquire)) {} out[T] = v; }
}
//@ block=64
K shared_flag_wrong(const int* in, int* out) {
  __shared__ cuda::atomic<bool, cuda::thread_scope_block> ready; __shared__ int v;
  if (T == 0) ready.store(false, relaxed);
  __syncthreads();
  if (T == 32) { v = in[3]; ready.store(true, relaxed); }                                                     //~ race
  if (T < 32) { while (!ready.load(acquire)) {} out[T] = v; }                                                 //~ race
}
// A word of flags: each byte is set by another warp, and all are read as one word.
//@ block=128
K bytes_as_word_wrong(const int* in, int* out) {
  __shared__ union { unsigned word; unsigned char bytes[4]; } u; __shared__ int s[128];
  if (T == 0) u.word = 0;
  __syncthreads();
  s[T] = in[T];                                                                                              //~ race
  if (T % 32 == 0) Block<unsigned char>(u.bytes[T / 32]).store(1, release);
  while (Block<unsigned>(u.word).load(acquire) != 0x01010101) {}
  out[T] = s[127 - T];                                                                                       //~ race
}
// An atomic_flag as a lock.
//@ grid=2 block=1 zero
K flag_lock_right(cuda::std::atomic_flag* lock, int* data) {
  while (lock->test_and_set(cuda::std::memory_order_acquire)) {}
  data[0]++;
  lock->clear(cuda::std::memory_order_release);
}
//@ grid=2 block=1 zero
K flag_lock_wrong(cuda::std::atomic_flag* lock, int* data) {
  while (lock->test_and_set(cuda::std::memory_order_relaxed)) {}
  data[0]++;                                                                                                 //~ race
  lock->clear(cuda::std::memory_order_release);
}
// The mask names all lanes, and half of them have gone.
//@ block=32
K gone_lanes_wrong(const int* in, int* out) {
  if (T >= 16) return;
  out[T] = __shfl_sync(~0u, in[T], T ^ 1);                                                                   //~ synchronization
}
//@ block=32
K gone_lanes_right(const int* in, int* out) {
  unsigned mask = __ballot_sync(~0u, T < 16);
  if (T >= 16) return;
  out[T] = __shfl_sync(mask, in[T], T ^ 1);
}
// Lanes of different sides of a branch wait for each other by a mask that names them all: each at its own barrier.
//@ block=32
K own_mask_omitted_wrong(const int* in, int* out) {
  __shared__ int s[32];
  s[T] = in[T];                                                                                              //~ race
  if (T < 16) __syncwarp(0xffff); else __syncwarp(0xffff0000);
  out[T] = s[31 - T];                                                                                        //~ race
}
// A group of the lanes that have work exchanges in shared memory.
//@ block=32
K working_lanes_right(const int* in, int* out) {
  __shared__ int s[32];
  if (in[T] & 1) {
    auto g = cg::coalesced_threads();
    s[g.thread_rank()] = in[T];
    g.sync();
    out[T] = s[g.size() - 1 - g.thread_rank()];
  }
}
//@ block=32
K working_lanes_wrong(const int* in, int* out) {
  __shared__ int s[32];
  if (in[T] & 1) {
    auto g = cg::coalesced_threads();
    s[g.thread_rank()] = in[T];                                                                              //~ race
    out[T] = s[g.size() - 1 - g.thread_rank()];                                                              //~ race
  }
}
// Tiles of eight lanes: the sum is the group's own, the words of the neighbouring tile are not.
//@ block=32
K tiles_right(const int* in, int* out) {
  __shared__ int s[4]; auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int v = cg::reduce(tile, in[T], cg::plus<int>());
  if (tile.thread_rank() == 0) s[T / 8] = v;
  tile.sync();
  out[T] = s[T / 8];
}
//@ block=32
K tiles_wrong(const int* in, int* out) {
  __shared__ int s[4]; auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int v = cg::reduce(tile, in[T], cg::plus<int>());
  if (tile.thread_rank() == 0) s[T / 8] = v;                                                                 //~ race
  tile.sync();
  out[T] = s[3 - T / 8];                                                                                     //~ race
}
// Barriers in a loop whose length a thread reads for itself.
//@ block=64
K own_length_wrong(const int* in, int* out) {
  __shared__ int s[64];
  s[T] = 0;
  for (int i = 0; i < in[T / 32]; i++) { s[T] = i; __syncthreads(); }                                         //~ synchronization
  out[T] = s[T];
}
//@ block=64
K common_length_right(const int* in, int* out) {
  __shared__ int s[64];
  s[T] = 0;
  for (int i = 0; i < in[5]; i++) { s[T] = i; __syncthreads(); }
  out[T] = s[T];
}
