// What shows only if CTAs share the work or meet at a lock, not if each runs to its end before the next one begins: work taken from
// counters, queues of waiting threads, semaphores, published states that are soon replaced.
#include <cuda/atomic>
#include <cuda/semaphore>
#define K extern "C" __global__ void
#define T threadIdx.x
#define ALL 0xffffffffu
template <class V> using dev = cuda::atomic_ref<V, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;
constexpr auto acq_rel = cuda::memory_order_acq_rel;
constexpr auto seq_cst = cuda::memory_order_seq_cst;
__device__ inline int edge(int v, int e) { return (v * 5 + e * 3 + 1) & 63; }

// CTAs take vertices from a counter, and push to the targets of their edges.
template <class Push> __device__ inline void each_by_cta(int* next, Push push) {
  __shared__ int taken;
  for (;;) {
    if (T == 0) taken = atomicAdd(next, 1);
    __syncthreads();
    int v = taken;
    __syncthreads();
    if (v >= 64) break;
    push(v, (int)T);
  }
}
// So do warps.
template <class Push> __device__ inline void each_by_warp(int* next, Push push) {
  for (;;) {
    int v, lane = T % 32;
    if (lane == 0) v = atomicAdd(next, 1);
    v = __shfl_sync(ALL, v, 0);
    if (v >= 64) break;
    push(v, lane);
  }
}
//@ grid=4 block=64 zero
K push_max_right(int* next, int* out) {
  each_by_cta(next, [&](int v, int e) { if (e < 4) atomicMax(&out[edge(v, e)], v); });
}
//@ grid=4 block=64 zero
K push_max_plain_wrong(int* next, int* out) {
  each_by_cta(next, [&](int v, int e) { if (e < 4) out[edge(v, e)] = max(out[edge(v, e)], v); });       //~ race
}
//@ grid=4 block=64 zero
K push_max_tested_wrong(int* next, int* out) {
  each_by_cta(next, [&](int v, int e) { if (e < 4 && out[edge(v, e)] < v) atomicMax(&out[edge(v, e)], v); });       //~ race
}
//@ grid=4 block=64 zero
K push_max_of_block_wrong(int* next, int* out) {
  each_by_warp(next, [&](int v, int e) { if (e < 4) atomicMax_block(&out[edge(v, e)], v); });           //~ race
}
//@ grid=4 block=64 zero
K pull_right(int* next, const int* in, int* out) {
  each_by_cta(next, [&](int v, int e) { if (e == 0) out[v] = in[edge(v, 0)] + in[edge(v, 1)] + v; });
}
//@ grid=4 block=64 zero
K pull_in_place_wrong(int* next, int* out) {
  each_by_cta(next, [&](int v, int e) { if (e == 0) out[v] = out[edge(v, 0)] + out[edge(v, 1)] + v; }); //~ race
}
//@ grid=4 block=64 zero
K append_right(int* next, int* size, int* out) {
  each_by_warp(next, [&](int v, int e) { if (e < 2) out[atomicAdd(size, 1)] = edge(v, e); });
}
//@ grid=4 block=64 zero
K append_of_block_wrong(int* next, int* size, int* out) {
  each_by_warp(next, [&](int v, int e) { if (e < 2) out[atomicAdd_block(size, 1)] = edge(v, e); });     //~ race
}
// Warps of one CTA take work from a counter in shared memory.
//@ block=128 zero
K shared_counter_right(int* out) {
  __shared__ int next;
  if (T == 0) next = 0;
  __syncthreads();
  each_by_warp(&next, [&](int v, int lane) { if (lane == 0) atomicAdd(&out[v & 7], v); });
}
//@ block=128 zero
K shared_counter_plain_sum_wrong(int* out) {
  __shared__ int next;
  if (T == 0) next = 0;
  __syncthreads();
  each_by_warp(&next, [&](int v, int lane) { if (lane == 0) out[v & 7] += v; });                        //~ race
}
// A lock whose waiting threads form a queue (MCS).
struct Node { int next, waits; };
enum { NOTHING, WAITS_RELAXED, HANDS_OVER_RELAXED };
template <int wrong> __device__ void count_locked(int* tail, Node* nodes, int* count) {
  int me = blockIdx.x + 1;
  Node& node = nodes[me];
  for (int i = 0; i < 3; i++) {
    dev<int>(node.next).store(0, relaxed);
    dev<int>(node.waits).store(1, relaxed);
    int before = dev<int>(*tail).exchange(me, acq_rel);
    if (before) {
      dev<int>(nodes[before].next).store(me, release);
      while (dev<int>(node.waits).load(wrong == WAITS_RELAXED ? relaxed : acquire)) {}
    }
    *count += 1;                                                 //~ race queue_lock_waits_relaxed_wrong, race queue_lock_hands_over_relaxed_wrong
    int next = dev<int>(node.next).load(acquire);
    if (!next) {
      int expected = me;
      if (dev<int>(*tail).compare_exchange_strong(expected, 0, release)) continue;
      while (!(next = dev<int>(node.next).load(acquire))) {}
    }
    dev<int>(nodes[next].waits).store(0, wrong == HANDS_OVER_RELAXED ? relaxed : release);
  }
}
//@ grid=4 block=1 zero
K queue_lock_right(int* tail, Node* nodes, int* count) { count_locked<NOTHING>(tail, nodes, count); }
//@ grid=4 block=1 zero
K queue_lock_waits_relaxed_wrong(int* tail, Node* nodes, int* count) { count_locked<WAITS_RELAXED>(tail, nodes, count); }
//@ grid=4 block=1 zero
K queue_lock_hands_over_relaxed_wrong(int* tail, Node* nodes, int* count) { count_locked<HANDS_OVER_RELAXED>(tail, nodes, count); }
// A semaphore that lets two threads in.
__device__ cuda::counting_semaphore<cuda::thread_scope_device, 4> for_two{2};
__device__ cuda::counting_semaphore<cuda::thread_scope_device, 4> for_one{1};
//@ grid=4 block=1 zero
K semaphore_for_two_wrong(int* count) {
  for_two.acquire();
  *count += 1;                                                                                          //~ race
  for_two.release();
}
//@ grid=4 block=1 zero
K semaphore_for_one_right(int* count) {
  for_one.acquire();
  *count += 1;
  for_one.release();
}
// Two locks in the bits of one word, which order nothing for who holds the other one.
__device__ inline void lock_bit(unsigned* word, unsigned bit) { while (atomicOr(word, bit) & bit) {} __threadfence(); }
__device__ inline void unlock_bit(unsigned* word, unsigned bit) { __threadfence(); atomicAnd(word, ~bit); }
//@ grid=3 block=1 zero
K bits_right(unsigned* word, int* count) {
  for (int b = 0; b < 2; b++) { lock_bit(word, 1 << b); count[b] += 1; unlock_bit(word, 1 << b); }
}
//@ grid=3 block=1 zero
K bits_mixed_up_wrong(unsigned* word, int* count) {
  for (int b = 0; b < 2; b++) {
    lock_bit(word, 1 << b);
    count[blockIdx.x & 1] += 1;                                                                         //~ race
    unlock_bit(word, 1 << b);
  }
}
// A look-back that finds sums, or prefixes if their CTAs are further.
template <bool fence> __device__ void look_back(int* state, int* sums, int* prefixes) {
  int b = blockIdx.x;
  if (T) return;
  sums[b] = b + 1;                                               //~ race sum_without_fence_wrong
  if (fence) __threadfence();
  ((volatile int*)state)[b] = 1;
  int before = 0;
  for (int p = b - 1; p >= 0; p--) {
    int found;
    do found = ((volatile int*)state)[p]; while (!found);
    __threadfence();
    if (found == 2) { before += prefixes[p]; break; }
    before += sums[p];                                           //~ race sum_without_fence_wrong
  }
  prefixes[b] = before + b + 1;
  __threadfence();
  ((volatile int*)state)[b] = 2;
}
//@ grid=6 block=32 zero
K sum_right(int* state, int* sums, int* prefixes) { look_back<true>(state, sums, prefixes); }
//@ grid=6 block=32 zero
K sum_without_fence_wrong(int* state, int* sums, int* prefixes) { look_back<false>(state, sums, prefixes); }
// A deque: its owner pushes and pops at the bottom, others take from the top. What the owner stores at the bottom by relaxed operations when
// it pops continues what it has released there (manual, section 8.8).
//@ grid=3 block=32 zero
K deque_right(int* ends, int* items, int* out) {
  if (T) return;
  dev<int> bottom(ends[0]), top(ends[1]);
  if (blockIdx.x == 0) {
    for (int i = 0; i < 8; i++) { items[i] = 100 + i; bottom.store(i + 1, release); }
    for (int i = 7; i >= 0; i--) {
      bottom.store(i, relaxed);
      cuda::atomic_thread_fence(seq_cst, cuda::thread_scope_device);
      int t = top.load(relaxed);
      if (t > i) break;
      int item = items[i], expected = i;
      if (t < i || top.compare_exchange_strong(expected, i + 1, seq_cst, relaxed)) atomicAdd(&out[item], 1);
      if (t == i) break;
    }
  } else {
    for (int i = 0; i < 8; i++) {
      int t = top.load(acquire);
      cuda::atomic_thread_fence(seq_cst, cuda::thread_scope_device);
      if (t >= bottom.load(acquire)) continue;
      int item = items[t];
      if (top.compare_exchange_strong(t, t + 1, seq_cst, relaxed)) atomicAdd(&out[item], 1);
    }
  }
}
// Groups of 16 lanes lock a node whose words they read by relaxed loads, as in trees: each of them shares by shuffles what all have read.
template <bool FENCE, int COUNTED = 15> __device__ inline void update_node(unsigned* node, unsigned* count) {
  const unsigned lane = T % 16, group = 0xffffu << (T & 16), locked = 1u << 31;
  dev<unsigned> word(node[lane]);
  unsigned held;
  do {
    held = __shfl_sync(group, word.load(relaxed), 15, 16) & locked;
    if (held) continue;
    if (lane == 15) held = atomicOr(&node[15], locked) & locked;
    held = __shfl_sync(group, held, 15, 16);
  } while (held);
  if (FENCE) __threadfence();
  if (lane == 0) *count += 1;  //~ race node_wrong
  if (lane < COUNTED) word.store(word.load(relaxed) + 1, relaxed);
  __threadfence();
  __syncwarp(group);
  if (lane == 15) atomicAnd(&node[15], ~locked);
}
//@ grid=2 block=128 zero
K node_right(unsigned* node, unsigned* count) { update_node<true>(node, count); }
// The word with the lock is updated, too, while others find it taken: what they update atomically does not change, so nothing is lost.
//@ grid=2 block=128 zero
K node_with_lock_right(unsigned* node, unsigned* count) { update_node<true, 16>(node, count); }
//@ grid=2 block=128 zero
K node_wrong(unsigned* node, unsigned* count) { update_node<false>(node, count); }
// A word that is incremented in two steps by who owns it, while others try to raise it by maxima that are no greater.
template <int AT_MOST> __device__ inline void raise_in_vain(unsigned* words) {
  dev<unsigned> word(words[0]);
  if (T) return;
  if (blockIdx.x == 0) {
    for (int i = 0; i < 8; i++) word.store(word.load(relaxed) + 1, relaxed);  //~ race raised_word_wrong
  } else {
    for (int i = 0; i < 8; i++) atomicMax(&words[0], i % 4 == 3 ? AT_MOST : 0);  //~ race raised_word_wrong
  }
}
//@ grid=2 block=32 zero
K word_in_vain_right(unsigned* words) { raise_in_vain<0>(words); }
//@ grid=2 block=32 zero
K raised_word_wrong(unsigned* words) { raise_in_vain<100>(words); }
