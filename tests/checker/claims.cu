// Updates in several steps: claims by a test and a store, sums by a load and a store of volatile and relaxed words.
#include <cuda/atomic>
#define K extern "C" __global__ void
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto D = cuda::thread_scope_device;
using cuda::memory_order_acquire, cuda::memory_order_release, cuda::memory_order_relaxed, cuda::memory_order_seq_cst;
#define ONE if (threadIdx.x) return
#define THREAD int t = blockIdx.x * blockDim.x + threadIdx.x

// Two threads find a word free, and both do what only one of them may do.
//@ grid=4 block=1 zero
K claim_wrong(volatile int* taken, int* out) { if (!*taken) { *taken = 1; *out = blockIdx.x; } }      //~ race
//@ grid=4 block=32 zero
K claim_slot_wrong(volatile int* taken, int* out) { THREAD; int i = t % 8; if (!taken[i]) { taken[i] = 1; out[i] = t; } }      //~ race
//@ grid=4 block=32 zero
K claim_slot_right(int* taken, int* out) { THREAD; int i = t % 8; if (atomicCAS(&taken[i], 0, 1) == 0) out[i] = t; }
//@ grid=4 block=32 zero
K claim_relaxed_wrong(int* taken, int* out) {
  ONE;
  Ref<D> r(*taken);
  if (r.load(memory_order_relaxed) == 0) { r.store(1, memory_order_relaxed); out[0] = blockIdx.x; }   //~ race
}
//@ grid=4 block=32 zero
K claim_acquired_wrong(int* taken, int* out) {
  ONE;
  Ref<D> r(*taken);
  if (r.load(memory_order_acquire) == 0) { r.store(1, memory_order_release); out[0] += blockIdx.x; }   //~ race
}
//@ block=64 zero
K bits_of_a_lock_right(unsigned* lock, int* data) {
  if (threadIdx.x % 32) return;
  while (atomicOr(lock, 4u) & 4u) {}
  __threadfence();
  data[0] += 1;
  __threadfence();
  atomicAnd(lock, ~4u);
}
//@ block=64 zero
K bits_of_two_locks_wrong(unsigned* lock, int* data) {
  if (threadIdx.x % 32) return;
  unsigned bit = 1u << threadIdx.x / 32;
  while (atomicOr(lock, bit) & bit) {}
  __threadfence();
  data[0] += 1;      //~ race
  __threadfence();
  atomicAnd(lock, ~bit);
}

// What another thread adds between the load and the store is lost.
//@ grid=2 block=32 zero
K volatile_count_wrong(volatile int* c, int n) { THREAD; if (t & 1) *c = *c + 1; }     //~ race
//@ grid=2 block=32 zero
K volatile_sums_wrong(const int* in, volatile int* c) { THREAD; c[t % 8] += t; }     //~ race
//@ grid=2 block=32 zero
K volatile_float_wrong(const float* in, volatile float* c) { ONE; *c = *c * 0.5f + in[3] + 1; }     //~ race
//@ grid=2 block=32 zero
K volatile_own_right(volatile int* c, int n) { THREAD; c[t] += t; }
//@ grid=4 block=32 zero
K relaxed_add_wrong(int* c, int n) {   //? by a read and a write, and another thread's write that it may lose
  ONE;
  Ref<D> r(*c);
  r.store(r.load(memory_order_relaxed) + 1, memory_order_relaxed);    //~ race
}
//@ grid=4 block=32 zero
K relaxed_add_right(int* c, int n) { ONE; Ref<D>(*c).fetch_add(1, memory_order_relaxed); }
//@ grid=4 block=32 zero
K add_beside_atomic_wrong(int* c, int n) {
  ONE;
  Ref<D> r(*c);
  if (blockIdx.x) r.fetch_add(1, memory_order_relaxed);               //~ race
  else r.store(r.load(memory_order_relaxed) + 1, memory_order_relaxed);    //~ race
}
//@ grid=4 block=32 zero
K add_under_lock_right(int* lock, int* c) {
  ONE;
  Ref<D> l(*lock), r(*c);
  int z = 0;
  while (!l.compare_exchange_weak(z, 1, memory_order_acquire)) z = 0;
  r.store(r.load(memory_order_relaxed) + 1, memory_order_relaxed);
  l.store(0, memory_order_release);
}
//@ grid=4 block=32 zero
K one_adds_right(int* c, int* out) {
  ONE;
  Ref<D> r(*c);
  if (blockIdx.x == 0) for (int i = 0; i < 5; i++) r.store(r.load(memory_order_relaxed) + 1, memory_order_relaxed);
  else out[blockIdx.x] = r.load(memory_order_relaxed);
}
//@ grid=4 block=32 zero
K turns_right(int* turn, int* c) {
  ONE;
  Ref<D> t(*turn), r(*c);
  while (t.load(memory_order_acquire) != blockIdx.x) {}
  r.store(r.load(memory_order_relaxed) + 1, memory_order_relaxed);
  t.store(blockIdx.x + 1, memory_order_release);
}
//@ grid=4 block=32 zero
K turn_itself_right(volatile int* turn, int* c) {      // the word says whose turn it is, and is passed on by a sum
  ONE;
  while (*turn != blockIdx.x) {}
  atomicAdd(c, 1);
  *turn = *turn + 1;
}
//@ grid=1 block=64 zero
K shared_turns_right(int* out, int n) {
  __shared__ volatile int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  for (int i = 0; i < 2; i++) { if (threadIdx.x == 32 * i) s = s + 1; __syncthreads(); }
  if (threadIdx.x == 0) out[0] = s;
}
//@ grid=1 block=64 zero
K shared_add_wrong(int* out, int n) {
  __shared__ volatile int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) s = s + 1;      //~ race
  __syncthreads();
  if (threadIdx.x == 0) out[0] = s;
}
//@ grid=2 block=32 zero
K pop_wrong(volatile int* top, int* out) {
  ONE;
  int i = *top;
  *top = i + 1;        //~ race
  out[i] = blockIdx.x;
}

// Tests and stores that lose nothing.
//@ grid=2 block=32 zero
K levels_right(volatile int* level, volatile int* changed) {
  THREAD;
  if (level[t]) return;
  for (int e = t * 3; e < t * 3 + t % 4; e++) {
    int w = (e * 11 + 5) % 64;
    if (level[w] == 0) { level[w] = 1; *changed = 1; }
  }
}
//@ grid=2 block=32
K relax_until_nothing_changes_right(volatile int* dist, volatile int* changed) {
  THREAD;
  int d = dist[t];
  for (int e = t * 3; e < t * 3 + t % 4; e++) {
    int w = (e * 11 + 5) % 64;
    if (d + 1 < dist[w]) { dist[w] = d + 1; *changed = 1; }
  }
}
//@ grid=2 block=32 zero
K own_maximum_right(const int* in, volatile int* best) {
  THREAD;
  for (int i = 0; i < 4; i++) if (in[t + i] > best[t]) best[t] = in[t + i];
}
//@ block=128
K claim_and_look_again_right(const int* in, volatile int* owner, int* out) {
  int t = threadIdx.x, i = in[t] + 8 * (t & 1);
  if (!owner[i]) owner[i] = t + 1;
  __syncthreads();
  if (owner[i] == t + 1) out[i] = t;
}
//@ grid=4 block=1 zero
K splitter_right(int* x, int* y, int* data) {
  Ref<D> rx(*x), ry(*y);
  int me = blockIdx.x + 1;
  rx.store(me, memory_order_seq_cst);
  if (ry.load(memory_order_seq_cst)) return;
  ry.store(1, memory_order_seq_cst);
  if (rx.load(memory_order_seq_cst) == me) atomicAdd(data, me);
}
//@ grid=2 block=1 zero
K peterson_rounds_right(int* flag, int* turn, int* data) {
  int me = blockIdx.x, other = 1 - me;
  Ref<D> mine(flag[me]), his(flag[other]), tn(*turn);
  for (int i = 0; i < 3; i++) {
    mine.store(1, memory_order_seq_cst);
    tn.store(other, memory_order_seq_cst);
    while (his.load(memory_order_seq_cst) == 1 && tn.load(memory_order_seq_cst) == other) {}
    data[0]++;
    mine.store(0, memory_order_release);
  }
}

// Over graphs, tables and queues.
#define TID int t = blockIdx.x * blockDim.x + threadIdx.x, T = gridDim.x * blockDim.x
template <class T> using RD = cuda::atomic_ref<T, cuda::thread_scope_device>;
template <class T> using RB = cuda::atomic_ref<T, cuda::thread_scope_block>;
__device__ __forceinline__ int deg(int v) { return v % 4; }
__device__ __forceinline__ int nb(int v, int j) { return (v * 5 + j * 37 + 11) & 255; }
__device__ __forceinline__ int ld(int* p) { return RD<int>(*p).load(memory_order_relaxed); }
__device__ __forceinline__ void st(int* p, int x) { RD<int>(*p).store(x, memory_order_relaxed); }
//@ grid=4 block=64 zero
K parent_wrong(int* mark, int* parent) { TID; for (int v = t; v < 256; v += T) for (int j = 0; j < deg(v); j++) { int w = nb(v, j); if (ld(&mark[w]) == 0) { st(&mark[w], 1); parent[w] = v; } } }   //~ race
//@ grid=4 block=64 zero
K parent_right(int* mark, int* parent) { TID; for (int v = t; v < 256; v += T) for (int j = 0; j < deg(v); j++) { int w = nb(v, j); if (ld(&mark[w]) == 0 && atomicExch(&mark[w], 1) == 0) { parent[w] = v; } } }
//@ grid=4 block=64 zero
K parent_block_wrong(int* mark, int* parent) { TID; for (int v = t; v < 256; v += T) for (int j = 0; j < deg(v); j++) { int w = nb(v, j); if (atomicExch_block(&mark[w], 1) == 0) { parent[w] = v; } } }   //~ race
//@ grid=4 block=64 zero
K level_right(int* mark, int* n) { TID; for (int v = t; v < 256; v += T) for (int j = 0; j < deg(v); j++) { int w = nb(v, j); if (ld(&mark[w]) == 0) { st(&mark[w], 1); st(n, 1); } } }
//@ grid=4 block=64 zero
K dup_worklist_right(int* mark, int* n, int* wl) { TID; for (int v = t; v < 256; v += T) for (int j = 0; j < deg(v); j++) { int w = nb(v, j); if (ld(&mark[w]) == 0) { st(&mark[w], 1); wl[atomicAdd(n, 1) & 1023] = w; } } }
//@ grid=4 block=64 zero
K match_wrong(int* mate, int* weight) { TID; for (int v = t; v < 256; v += T) for (int j = 0; j < deg(v); j++) { int w = nb(v, j) & 63; if (ld(&mate[w]) == 0 && v != w) { st(&mate[w], v + 1); weight[w] += v; break; } } }   //~ race
//@ grid=4 block=64 zero
K colour_wrong(volatile int* taken, int* slot) { TID; for (int c = 0; c < 8; c++) if (!taken[c]) { taken[c] = 1; slot[c] = t; break; } }   //~ race
//@ grid=4 block=64 zero
K colour_right(int* taken, int* slot) { TID; for (int c = 0; c < 8; c++) if (!atomicExch(&taken[c], 1)) { slot[c] = t; break; } }
//@ grid=4 block=64 zero
K once_wrong(volatile int* done, int* table) { if (threadIdx.x == 0 && !*done) { for (int i = 0; i < 8; i++) table[i] = blockIdx.x + i; __threadfence(); *done = 1; } }   //~ race
//@ grid=4 block=64 zero
K once_same_right(volatile int* done, int* table) { if (threadIdx.x == 0 && !*done) { for (int i = 0; i < 8; i++) table[i] = i; __threadfence(); *done = 1; } }
//@ grid=4 block=64 zero
K once_acquire_wrong(int* done, int* table, int* o) { if (threadIdx.x) return; RD<int> d(*done); if (!d.load(memory_order_acquire)) { table[0] += 1; d.store(1, memory_order_release); } o[blockIdx.x] = table[0]; }   //~ race
//@ grid=4 block=64 zero
K counter_pop_wrong(volatile int* top, int* items) { if (threadIdx.x) return; int i = *top; if (i < 8) { *top = i + 1; items[i] = blockIdx.x; } }   //~ race
//@ grid=4 block=64 zero
K counter_pop_right(int* top, int* items) { if (threadIdx.x) return; int i = atomicAdd(top, 1); if (i < 8) { items[i] = blockIdx.x; } }
//@ grid=4 block=64 zero
K pop_cas_right(int* top, int* items) { if (threadIdx.x) return; int i = ld(top); while (i < 8) { int o = atomicCAS(top, i, i + 1); if (o == i) { items[i] = blockIdx.x; break; } i = o; } }
//@ grid=1 block=128 zero
K shared_claim_wrong(int* a, int* o) { __shared__ int taken; if (threadIdx.x == 0) taken = 0; __syncthreads(); if (threadIdx.x % 32 == 0) { if (*(volatile int*)&taken == 0) { *(volatile int*)&taken = 1; o[0] = threadIdx.x; } } }   //~ race
//@ grid=1 block=128 zero
K shared_claim_right(int* a, int* o) { __shared__ int taken; if (threadIdx.x == 0) taken = 0; __syncthreads(); if (threadIdx.x % 32 == 0) { if (atomicCAS(&taken, 0, 1) == 0) { o[0] = threadIdx.x; } } }
//@ grid=1 block=128 zero
K shared_block_claim_wrong(int* a, int* o) { __shared__ int taken; if (threadIdx.x == 0) taken = 0; __syncthreads(); if (RB<int>(taken).load(memory_order_relaxed) == 0) { RB<int>(taken).store(1, memory_order_relaxed); o[0] = threadIdx.x; } }   //~ race
//@ grid=4 block=64 zero
K max_holder_wrong(int* best, int* who) { TID; if (ld(best) < t) { st(best, t); who[0] = t; } }   //~ race
//@ grid=4 block=64 zero
K max_atomic_holder_wrong(int* best, int* who) { TID; if (atomicMax(best, t) < t) who[0] = t; }   //~ race
//@ grid=4 block=64 zero
K owner_wrong(int* owner, int* data) { if (threadIdx.x) return; RD<int> w(*owner); if (w.load(memory_order_acquire) == 0) { w.store(blockIdx.x + 1, memory_order_relaxed); data[0] += 1; w.store(0, memory_order_release); } }   //~ race
//@ grid=4 block=64 zero
K owner_right(int* owner, int* data) { if (threadIdx.x) return; RD<int> w(*owner); int e = 0; if (w.compare_exchange_strong(e, blockIdx.x + 1, memory_order_acquire)) { data[0] += 1; w.store(0, memory_order_release); } }
//@ grid=4 block=64 zero
K trylock_loop_wrong(int* lock, int* data) { if (threadIdx.x) return; RD<int> l(*lock); bool done = false; while (!done) { if (l.load(memory_order_acquire) == 0) { l.store(1, memory_order_relaxed); data[0] += 1; l.store(0, memory_order_release); done = true; } } }   //~ race
//@ grid=4 block=64 zero
K spin_then_claim_wrong(int* lock, int* data) { if (threadIdx.x) return; volatile int* l = lock; while (*l != 0) __nanosleep(20); *l = 1; __threadfence(); data[0] = data[0] + 1; __threadfence(); *l = 0; }   //~ race
//@ grid=4 block=64 zero
K ticket_right(int* s, int* data) { if (threadIdx.x) return; int me = atomicAdd(&s[0], 1); while (*(volatile int*)&s[1] != me) {} __threadfence(); data[0]++; __threadfence(); *(volatile int*)&s[1] = me + 1; }
//@ grid=4 block=64 zero
K ticket_by_store_wrong(int* s, int* data) { if (threadIdx.x) return; volatile int* v = s; int me = v[0]; v[0] = me + 1; while (v[1] != me) {} __threadfence(); data[0]++; __threadfence(); v[1] = me + 1; }   //~ race
//@ grid=2 block=32 zero
K handoff_right(int* turn, int* data) { if (threadIdx.x) return; RD<int> t(*turn); for (int i = 0; i < 4; i++) { while (t.load(memory_order_acquire) % 2 != blockIdx.x) {} data[0]++; t.store(t.load(memory_order_relaxed) + 1, memory_order_release); } }
//@ grid=2 block=32 zero
K mailbox_right(int* full, int* box, int* o) { if (threadIdx.x) return; RD<int> f(*full); for (int i = 0; i < 4; i++) if (blockIdx.x == 0) { while (f.load(memory_order_acquire)) {} box[0] = i; f.store(1, memory_order_release); } else { while (!f.load(memory_order_acquire)) {} o[i] = box[0]; f.store(0, memory_order_release); } }
//@ grid=3 block=32 zero
//@ grid=4 block=64 zero
K reset_by_last_right(int* c, int* o) { __threadfence(); __syncthreads(); if (threadIdx.x == 0 && atomicAdd(c, 1) == gridDim.x - 1) { *c = 0; o[0] = 1; } }
//@ grid=4 block=64 zero
K state_machine_wrong(int* st, int* d) { if (threadIdx.x) return; RD<int> s(*st); int x = s.load(memory_order_acquire); if (x == 0) { d[0] = blockIdx.x; s.store(1, memory_order_release); } else if (x == 1) { d[1] = d[0]; s.store(2, memory_order_release); } }   //~ race
//@ grid=4 block=64 zero
K state_machine_cas_right(int* st, int* d) { if (threadIdx.x) return; RD<int> s(*st); int x = 0; if (s.compare_exchange_strong(x, 9, memory_order_acquire)) { d[0] = blockIdx.x; s.store(1, memory_order_release); } else if (x == 1 && s.compare_exchange_strong(x, 9, memory_order_acquire)) { d[1] = d[0]; s.store(2, memory_order_release); } }
//@ grid=4 block=64 zero
K hash_insert_wrong(int* keys, int* vals) { TID; int k = t % 32 + 1; for (int h = k; ; h = (h + 1) & 255) { int o = ld(&keys[h]); if (o == 0) { st(&keys[h], k); vals[h] = t; return; } if (o == k) return; } }   //~ race
//@ grid=4 block=64 zero
K hash_insert_right(int* keys, int* vals) { TID; int k = t % 32 + 1; for (int h = k; ; h = (h + 1) & 255) { int o = atomicCAS(&keys[h], 0, k); if (o == 0) { vals[h] = t; return; } if (o == k) return; } }
//@ grid=4 block=64 zero
K list_push_wrong(int* head, int* next) { TID; int h = ld(head); next[t] = h; st(head, t + 1); if (h) next[h - 1 + 512] = t; }   //~ race
//@ grid=4 block=64 zero
K list_push_right(int* head, int* next) { TID; int h = ld(head), o; do { o = h; next[t] = o; __threadfence(); h = atomicCAS(head, o, t + 1); } while (h != o); }
//@ grid=4 block=64 zero
K sum_guarded_by_flag_wrong(int* busy, float* sum) { if (threadIdx.x) return; while (ld(busy)) {} st(busy, 1); *sum += 1.0f; st(busy, 0); }   //~ race
//@ grid=4 block=64 zero
K union_hook_right(int* p, int* q) { TID; int a = t & 127, b = nb(t, 1) & 127; for (int i = 0; i < 9; i++) { int x = ld(&p[a]), y = ld(&p[b]); if (x < y) st(&p[b], x); else st(&p[a], y); } }
//@ grid=4 block=32 zero
K if_count_reached_right(int* f, int* d, int* o) {
  ONE;
  if (blockIdx.x < 3) { d[blockIdx.x] = 1; RD<int>(*f).fetch_add(1, memory_order_release); }
  else if (RD<int>(*f).load(memory_order_acquire) >= 3) o[0] = d[0] + d[1] + d[2];
}
//@ grid=4 block=32 zero
K if_count_too_low_wrong(int* f, int* d, int* o) {
  ONE;
  if (blockIdx.x < 3) { d[blockIdx.x] = 1; RD<int>(*f).fetch_add(1, memory_order_release); }     //~ race
  else if (RD<int>(*f).load(memory_order_acquire) >= 2) o[0] = d[0] + d[1] + d[2];     //~ race
}
