// Locks, queues and flags between threads and CTAs.
#include <cuda/atomic>
#include <cuda/semaphore>
#include <cuda/latch>
#define K extern "C" __global__ void
namespace cs = cuda::std;
using cs::memory_order_relaxed; using cs::memory_order_acquire; using cs::memory_order_release; using cs::memory_order_acq_rel; using cs::memory_order_seq_cst;
constexpr auto dev = cuda::thread_scope_device, blk = cuda::thread_scope_block, sys = cuda::thread_scope_system;
template <cuda::thread_scope S, class T = int> using R = cuda::atomic_ref<T, S>;

//@ grid=3 block=32 zero
K ticket_right(int* l, int* d) { if (threadIdx.x) return; int t = R<dev>(l[0]).fetch_add(1, memory_order_relaxed);
    while (R<dev>(l[1]).load(memory_order_acquire) != t) {} d[0] += 2; d[1] = d[0] + 1; R<dev>(l[1]).store(t + 1, memory_order_release); }
//@ grid=3 block=32 zero
K ticket_relaxed_serve_wrong(int* l, int* d) { if (threadIdx.x) return; int t = R<dev>(l[0]).fetch_add(1, memory_order_relaxed);
    while (R<dev>(l[1]).load(memory_order_acquire) != t) {}
    d[0] += 2;  //~ race
    R<dev>(l[1]).store(t + 1, memory_order_relaxed); }
//@ grid=3 block=32 zero
K ticket_relaxed_wait_wrong(int* l, int* d) { if (threadIdx.x) return; int t = R<dev>(l[0]).fetch_add(1, memory_order_acq_rel);
    while (R<dev>(l[1]).load(memory_order_relaxed) != t) {}
    d[0] += 2;  //~ race
    R<dev>(l[1]).store(t + 1, memory_order_release); }
//@ grid=3 block=32 zero
K ticket_block_scope_wrong(int* l, int* d) { if (threadIdx.x) return; int t = R<dev>(l[0]).fetch_add(1, memory_order_relaxed);
    while (R<blk>(l[1]).load(memory_order_acquire) != t) {}  //~ race
    d[0] += 2;
    R<dev>(l[1]).store(t + 1, memory_order_release); }
//@ grid=3 block=32 zero
K ticket_classic_right(int* l, int* d) { if (threadIdx.x) return; int t = atomicAdd(l, 1);
    while (atomicAdd(l + 1, 0) != t) {} __threadfence(); d[0] += 2; __threadfence(); atomicAdd(l + 1, 1); }
//@ grid=3 block=32 zero
K ticket_classic_volatile_right(int* l, int* d) { if (threadIdx.x) return; int t = atomicAdd(l, 1); volatile int* s = l + 1;
    while (*s != t) {} __threadfence(); d[0] += 2; __threadfence(); *s = t + 1; }
//@ grid=3 block=32 zero
K ticket_classic_no_fence_wrong(int* l, int* d) { if (threadIdx.x) return; int t = atomicAdd(l, 1);
    while (atomicAdd(l + 1, 0) != t) {} __threadfence();
    d[0] += 2;  //~ race
    atomicAdd(l + 1, 1); }
//@ grid=3 block=32 zero
K ticket_block_fence_wrong(int* l, int* d) { if (threadIdx.x) return; int t = atomicAdd(l, 1);
    while (atomicAdd(l + 1, 0) != t) {} __threadfence();
    d[0] += 2;  //~ race
    __threadfence_block(); atomicAdd(l + 1, 1); }
struct Node { int locked; int next; };
//@ grid=4 block=32 zero
K mcs_right(int* tail, Node* n, int* d) { if (threadIdx.x) return; int me = blockIdx.x + 1; 
    R<dev>(n[me].next).store(0, memory_order_relaxed); R<dev>(n[me].locked).store(1, memory_order_relaxed);
    int p = R<dev>(*tail).exchange(me, memory_order_acq_rel);
    if (p) { R<dev>(n[p].next).store(me, memory_order_release); while (R<dev>(n[me].locked).load(memory_order_acquire)) {} }
    d[0]++; d[1] += d[0];
    int nx = R<dev>(n[me].next).load(memory_order_acquire);
    if (!nx) { int e = me; if (R<dev>(*tail).compare_exchange_strong(e, 0, memory_order_release, memory_order_relaxed)) return;
        while (!(nx = R<dev>(n[me].next).load(memory_order_acquire))) {} }
    R<dev>(n[nx].locked).store(0, memory_order_release); }
//@ grid=4 block=32 zero
K mcs_relaxed_handover_wrong(int* tail, Node* n, int* d) { if (threadIdx.x) return; int me = blockIdx.x + 1; 
    R<dev>(n[me].next).store(0, memory_order_relaxed); R<dev>(n[me].locked).store(1, memory_order_relaxed);
    int p = R<dev>(*tail).exchange(me, memory_order_acq_rel);
    if (p) { R<dev>(n[p].next).store(me, memory_order_release); while (R<dev>(n[me].locked).load(memory_order_acquire)) {} }
    d[0]++;  //~ race
    int nx = R<dev>(n[me].next).load(memory_order_acquire);
    if (!nx) { int e = me; if (R<dev>(*tail).compare_exchange_strong(e, 0, memory_order_relaxed, memory_order_relaxed)) return;
        while (!(nx = R<dev>(n[me].next).load(memory_order_acquire))) {} }
    R<dev>(n[nx].locked).store(0, memory_order_relaxed); }
//@ grid=4 block=32 zero
K clh_right(int* tail, int* n, int* d) { if (threadIdx.x) return; int me = blockIdx.x + 1; 
    R<dev>(n[me]).store(1, memory_order_relaxed); int p = R<dev>(*tail).exchange(me, memory_order_acq_rel);
    while (R<dev>(n[p]).load(memory_order_acquire)) {} d[0]++; R<dev>(n[me]).store(0, memory_order_release); }
//@ grid=4 block=32 zero
K clh_relaxed_enqueue_wrong(int* tail, int* n, int* d) { if (threadIdx.x) return; int me = blockIdx.x + 1; 
    n[me] = 1;  //~ race
    int p = R<dev>(*tail).exchange(me, memory_order_relaxed);
    while (R<dev>(n[p]).load(memory_order_acquire)) {}
    d[0]++; R<dev>(n[me]).store(0, memory_order_release); }
//@ grid=4 block=64 zero
K rwlock_right(int* l, int* d) { if (threadIdx.x % 32) return; bool w = blockIdx.x == 0;
    if (w) { int e; do { e = 0; } while (!R<dev>(*l).compare_exchange_strong(e, -1, memory_order_acquire, memory_order_relaxed)); d[0] += 1; d[1] += 1; R<dev>(*l).store(0, memory_order_release); }
    else { for (;;) { int e = R<dev>(*l).load(memory_order_relaxed); if (e >= 0 && R<dev>(*l).compare_exchange_weak(e, e + 1, memory_order_acquire, memory_order_relaxed)) break; }
      int s = d[0] + d[1]; R<dev>(*l).fetch_sub(1, memory_order_release); d[10 + blockIdx.x * 2 + threadIdx.x / 32] = s; } }
//@ grid=4 block=64 zero
K rwlock_reader_relaxed_exit_wrong(int* l, int* d) { if (threadIdx.x % 32) return; bool w = blockIdx.x == 3;
    if (w) { for (int k = 0; k < 3; k++) { int e; do { e = 0; } while (!R<dev>(*l).compare_exchange_strong(e, -1, memory_order_acquire, memory_order_relaxed));
      d[0] += 1;  //~ race
      R<dev>(*l).store(0, memory_order_release); } }
    else { for (;;) { int e = R<dev>(*l).load(memory_order_relaxed); if (e >= 0 && R<dev>(*l).compare_exchange_weak(e, e + 1, memory_order_acquire, memory_order_relaxed)) break; }
      int s = d[0];  //~ race
      R<dev>(*l).fetch_sub(1, memory_order_relaxed); d[10 + blockIdx.x * 2 + threadIdx.x / 32] = s; } }
//@ grid=4 block=32 zero
K spin_right(int* l, int* d) { if (threadIdx.x == 0) { while (atomicCAS(l, 0, 1)) {} __threadfence(); d[0]++; d[1] = d[0]; __threadfence(); atomicExch(l, 0); } }
//@ grid=4 block=32 zero
K spin_volatile_unlock_right(int* l, int* d) { if (threadIdx.x == 0) { while (atomicCAS(l, 0, 1)) {} __threadfence(); d[0]++; __threadfence(); *(volatile int*)l = 0; } }
//@ grid=4 block=32 zero
K spin_plain_unlock_wrong(int* l, int* d) { if (threadIdx.x == 0) { while (atomicCAS(l, 0, 1)) {}  //~ race
    __threadfence(); d[0]++; __threadfence();
    l[0] = 0;  //~ race
  } }
//@ grid=4 block=64 zero
K spin_per_lane_right(int* l, int* d) { bool done = false; while (!done) { if (atomicCAS(l, 0, 1) == 0) { __threadfence(); d[0]++; __threadfence(); atomicExch(l, 0); done = true; } } }
//@ grid=4 block=64 zero
K spin_per_bucket_right(int* l, int* d) { int b = (threadIdx.x * 5 + blockIdx.x) % 8; bool done = false; while (!done) { if (atomicCAS(l + b, 0, 1) == 0) { __threadfence(); d[b] += threadIdx.x; __threadfence(); atomicExch(l + b, 0); done = true; } } }
//@ grid=4 block=64 zero
K spin_wrong_bucket_wrong(int* l, int* d) { int b = (threadIdx.x * 5 + blockIdx.x) % 8; bool done = false; while (!done) { if (atomicCAS(l + b, 0, 1) == 0) { __threadfence();
    d[b / 2] += threadIdx.x + 1;  //~ race
    __threadfence(); atomicExch(l + b, 0); done = true; } } }
//@ grid=1 block=64 zero
K spin_block_scope_one_cta_right(int* l, int* d) { if (threadIdx.x % 32 == 0) { while (atomicCAS_block(l, 0, 1)) {} __threadfence_block(); d[0]++; __threadfence_block(); atomicExch_block(l, 0); } }
//@ grid=2 block=64 zero
K spin_block_scope_wrong(int* l, int* d) { if (threadIdx.x % 32 == 0) {
   while (atomicCAS_block(l, 0, 1)) {}  //~ race
   __threadfence(); d[0]++; __threadfence();
   atomicExch_block(l, 0); } }
//@ grid=2 block=64 zero
K spin_read_outside_wrong(int* l, int* d) { if (threadIdx.x % 32 == 0) { while (atomicCAS(l, 0, 1)) {} __threadfence();
    d[0]++;  //~ race
    __threadfence(); atomicExch(l, 0);
    d[20 + blockIdx.x * 2 + threadIdx.x / 32] = d[0];  //~ race
 } }
//@ grid=2 block=64 zero
K trylock_right(int* l, int* d) { if (threadIdx.x % 32 == 0 && atomicCAS(l, 0, 1) == 0) { __threadfence(); d[0]++; __threadfence(); atomicExch(l, 0); } }
//@ grid=2 block=64 zero
K trylock_ignores_wrong(int* l, int* d) { if (threadIdx.x % 32 == 0) { int got = atomicCAS(l, 0, 1); __threadfence();
     d[0]++;  //~ race
     __threadfence(); if (got == 0) atomicExch(l, 0); } }
//@ grid=2 block=64 zero
K double_checked_right(int* l, int* d) { if (threadIdx.x) return; R<dev> ready(l[1]);
    if (!ready.load(memory_order_acquire)) { while (R<dev>(l[0]).exchange(1, memory_order_acquire)) {} if (!ready.load(memory_order_relaxed)) { d[0] = 7; d[1] = 8; ready.store(1, memory_order_release); } R<dev>(l[0]).store(0, memory_order_release); }
    d[10 + blockIdx.x] = d[0] + d[1]; }
//@ grid=2 block=64 zero
K double_checked_plain_wrong(int* l, int* d) { if (threadIdx.x) return;
    if (!l[1]) { while (R<dev>(l[0]).exchange(1, memory_order_acquire)) {} if (!l[1]) { d[0] = 7; d[1] = 8; 
      l[1] = 1;  //~ race
     } R<dev>(l[0]).store(0, memory_order_release); }
    d[10 + blockIdx.x] = d[0] + d[1]; }
//@ grid=4 block=32 zero
K treiber_right(int* top, int* next, int* val) { if (threadIdx.x) return; int me = blockIdx.x + 1; val[me] = me * 10; R<dev> t(*top);
    int h = t.load(memory_order_relaxed); do { next[me] = h; } while (!t.compare_exchange_weak(h, me, memory_order_release, memory_order_relaxed));
    h = t.load(memory_order_acquire); int s = 0; while (h) { s += val[h]; h = next[h]; } val[100 + me] = s; }
//@ grid=4 block=32 zero
K treiber_relaxed_push_wrong(int* top, int* next, int* val) { if (threadIdx.x) return; int me = blockIdx.x + 1;
    val[me] = me * 10;  //~ race
    R<dev> t(*top);
    int h = t.load(memory_order_relaxed); do { next[me] = h; } while (!t.compare_exchange_weak(h, me, memory_order_relaxed, memory_order_relaxed));
    h = t.load(memory_order_acquire); int s = 0; while (h) { s += val[h]; h = next[h]; } val[100 + me] = s; }
//@ grid=4 block=32 zero
K treiber_relaxed_walk_wrong(int* top, int* next, int* val) { if (threadIdx.x) return; int me = blockIdx.x + 1;
    val[me] = me * 10;  //~ race
    R<dev> t(*top);
    int h = t.load(memory_order_relaxed); do { next[me] = h; } while (!t.compare_exchange_weak(h, me, memory_order_release, memory_order_relaxed));
    h = t.load(memory_order_relaxed); int s = 0; while (h) { s += val[h]; h = next[h]; } val[100 + me] = s; }
//@ grid=4 block=32 zero
K treiber_classic_right(int* top, int* next, int* val) { if (threadIdx.x) return; int me = blockIdx.x + 1; val[me] = me * 10; int h = *(volatile int*)top, o;
    do { next[me] = h; __threadfence(); o = h; h = atomicCAS(top, o, me); } while (h != o);
    h = atomicAdd(top, 0); __threadfence(); int s = 0; while (h) { s += val[h]; h = next[h]; } val[100 + me] = s; }
//@ grid=3 block=32 zero
K vyukov_right(int* q, int* seq, int* data) { if (threadIdx.x) return; int b = blockIdx.x; 
    if (b < 2) { for (int k = 0; k < 3; k++) { int p = R<dev>(q[0]).fetch_add(1, memory_order_relaxed), c = p % 4, turn = p / 4 * 2;
        while (R<dev>(seq[c]).load(memory_order_acquire) != turn) {} data[c] = b * 10 + k; R<dev>(seq[c]).store(turn + 1, memory_order_release); } }
    else for (int p = 0; p < 6; p++) { int c = p % 4, turn = p / 4 * 2 + 1; while (R<dev>(seq[c]).load(memory_order_acquire) != turn) {} data[100 + p] = data[c]; R<dev>(seq[c]).store(turn + 1, memory_order_release); } }
//@ grid=3 block=32 zero
K vyukov_relaxed_free_wrong(int* q, int* seq, int* data) { if (threadIdx.x) return; int b = blockIdx.x; 
    if (b < 2) { for (int k = 0; k < 3; k++) { int p = R<dev>(q[0]).fetch_add(1, memory_order_relaxed), c = p % 4, turn = p / 4 * 2;
        while (R<dev>(seq[c]).load(memory_order_relaxed) != turn) {}
        data[c] = b * 10 + k;  //~ race
        R<dev>(seq[c]).store(turn + 1, memory_order_release); } }
    else for (int p = 0; p < 6; p++) { int c = p % 4, turn = p / 4 * 2 + 1; while (R<dev>(seq[c]).load(memory_order_acquire) != turn) {} data[100 + p] = data[c]; R<dev>(seq[c]).store(turn + 1, memory_order_relaxed); } }
//@ grid=3 block=32 zero
K vyukov_no_turn_wrong(int* q, int* seq, int* data) { if (threadIdx.x) return; int b = blockIdx.x; 
    if (b < 2) { for (int k = 0; k < 3; k++) { int p = R<dev>(q[0]).fetch_add(1, memory_order_relaxed), c = p % 4;
        data[c] = b * 10 + k;  //~ race
        R<dev>(seq[c]).store(p + 1, memory_order_release); } }
    else for (int p = 0; p < 4; p++) { int c = p % 4; while (R<dev>(seq[c]).load(memory_order_acquire) < p + 1) {} data[100 + p] = data[c]; } }
//@ grid=2 block=64 zero
K spsc_right(int* q, int* ring) { R<dev> head(q[0]), tail(q[32]); int t = threadIdx.x; 
    if (blockIdx.x == 0) for (int k = 0; k < 4; k++) { if (t == 0) while (k - tail.load(memory_order_acquire) >= 2) {} __syncthreads(); ring[k % 2 * 64 + t] = k * 64 + t; __syncthreads(); if (t == 0) head.store(k + 1, memory_order_release); }
    else for (int k = 0; k < 4; k++) { if (t == 0) while (head.load(memory_order_acquire) <= k) {} __syncthreads(); q[100 + k * 64 + t] = ring[k % 2 * 64 + t]; __syncthreads(); if (t == 0) tail.store(k + 1, memory_order_release); } }
//@ grid=2 block=64 zero
K spsc_no_barrier_before_publish_wrong(int* q, int* ring) { R<dev> head(q[0]), tail(q[32]); int t = threadIdx.x; 
    if (blockIdx.x == 0) for (int k = 0; k < 4; k++) { if (t == 0) while (k - tail.load(memory_order_acquire) >= 2) {} __syncthreads();
       ring[k % 2 * 64 + t] = k * 64 + t;  //~ race
       if (t == 0) head.store(k + 1, memory_order_release); }
    else for (int k = 0; k < 4; k++) { if (t == 0) while (head.load(memory_order_acquire) <= k) {} __syncthreads();
       q[100 + k * 64 + t] = ring[k % 2 * 64 + t];  //~ race
       __syncthreads(); if (t == 0) tail.store(k + 1, memory_order_release); } }
//@ grid=2 block=64 zero
K spsc_no_barrier_before_free_wrong(int* q, int* ring) { R<dev> head(q[0]), tail(q[32]); int t = threadIdx.x; 
    if (blockIdx.x == 0) for (int k = 0; k < 4; k++) { if (t == 0) while (k - tail.load(memory_order_acquire) >= 2) {} __syncthreads();
       ring[k % 2 * 64 + t] = k * 64 + t;  //~ race
       __syncthreads(); if (t == 0) head.store(k + 1, memory_order_release); }
    else for (int k = 0; k < 4; k++) { if (t == 0) while (head.load(memory_order_acquire) <= k) {} __syncthreads();
       q[100 + k * 64 + t] = ring[k % 2 * 64 + t];  //~ race
       if (t == 0) tail.store(k + 1, memory_order_release); } }
//@ grid=2 block=64 zero
K spsc_only_thread_waits_wrong(int* q, int* ring) { R<dev> head(q[0]); int t = threadIdx.x; 
    if (blockIdx.x == 0) { ring[t] = t;  //~ race
        __syncthreads(); if (t == 0) head.store(1, memory_order_release); }
    else { if (t == 0) while (head.load(memory_order_acquire) <= 0) {}
       q[100 + t] = ring[t];  //~ race
    } }
// Chase and Lev's deque: the owner pushes and takes at the bottom, the others steal at the top.
//@ grid=3 block=32 zero
K deque_right(int* q, int* item, int* out) { if (threadIdx.x) return; R<dev> top(q[0]), bottom(q[1]);
    if (blockIdx.x == 0) { for (int k = 0; k < 6; k++) { int b = bottom.load(memory_order_relaxed); R<dev>(item[b]).store(k + 1, memory_order_relaxed); bottom.store(b + 1, memory_order_release); }
      for (;;) { int b = bottom.load(memory_order_relaxed) - 1; bottom.store(b, memory_order_relaxed); cuda::atomic_thread_fence(memory_order_seq_cst, dev); int t = top.load(memory_order_relaxed);
        if (t > b) { bottom.store(b + 1, memory_order_relaxed); break; } int x = R<dev>(item[b]).load(memory_order_relaxed); if (t == b) { int e = t; bool won = top.compare_exchange_strong(e, t + 1, memory_order_seq_cst, memory_order_relaxed); bottom.store(b + 1, memory_order_relaxed); if (won) out[x] = 1; break; } out[x] = 1; } }
    else for (int k = 0; k < 3; k++) { int t = top.load(memory_order_acquire); cuda::atomic_thread_fence(memory_order_seq_cst, dev); int b = bottom.load(memory_order_acquire); if (t < b) { int x = R<dev>(item[t]).load(memory_order_relaxed); int e = t; if (top.compare_exchange_strong(e, t + 1, memory_order_seq_cst, memory_order_relaxed)) out[x] = 2 + blockIdx.x; } } }
//@ grid=3 block=32 zero
K deque_plain_bottom_wrong(int* q, int* item, int* out) { if (threadIdx.x) return; R<dev> top(q[0]);
    if (blockIdx.x == 0) { for (int k = 0; k < 6; k++) { int b = q[1]; item[b] = k + 1; __threadfence();
        q[1] = b + 1;  //~ race
      } }
    else for (int k = 0; k < 3; k++) { int t = top.load(memory_order_acquire); __threadfence();
        int b = q[1];  //~ race
        if (t < b) { int e = t; if (top.compare_exchange_strong(e, t + 1, memory_order_seq_cst, memory_order_relaxed)) out[t] = 2 + blockIdx.x; } } }
//@ grid=3 block=32 zero
K deque_unlocked_items_wrong(int* q, int* item, int* out) { if (threadIdx.x) return; R<dev> top(q[0]), bottom(q[1]);
    if (blockIdx.x == 0) { for (int k = 0; k < 6; k++) { int b = bottom.load(memory_order_relaxed);
        item[b] = k + 1;  //~ race
        bottom.store(b + 1, memory_order_relaxed); } }
    else { while (bottom.load(memory_order_acquire) < 6) {} for (int k = 0; k < 3; k++) { int t = top.fetch_add(1, memory_order_relaxed);
        out[t] = item[t];  //~ race
      } } }
//@ grid=3 block=64 zero
K counting_semaphore_right(int* d, int* o) { __shared__ cuda::binary_semaphore<blk> s; if (threadIdx.x == 0) new (&s) cuda::binary_semaphore<blk>(1); __syncthreads();
    if (threadIdx.x % 32 == 0) { s.acquire(); d[blockIdx.x]++; s.release(); } __syncthreads(); o[blockIdx.x * 64 + threadIdx.x] = d[blockIdx.x]; }
//@ grid=1 block=64 zero
K latch_right(int* d, int* o) { __shared__ __align__(8) char raw[sizeof(cuda::latch<blk>)]; auto& s = (cuda::latch<blk>&)raw; if (threadIdx.x == 0) new (&s) cuda::latch<blk>(64); __syncthreads(); d[threadIdx.x] = threadIdx.x; s.arrive_and_wait(); o[threadIdx.x] = d[63 - threadIdx.x]; }
//@ grid=1 block=64 zero
K latch_count_down_only_wrong(int* d, int* o) { __shared__ __align__(8) char raw[sizeof(cuda::latch<blk>)]; auto& s = (cuda::latch<blk>&)raw; if (threadIdx.x == 0) new (&s) cuda::latch<blk>(64); __syncthreads();
    d[threadIdx.x] = threadIdx.x;  //~ race
    s.count_down();
    o[threadIdx.x] = d[63 - threadIdx.x];  //~ race
  }
//@ grid=1 block=64 zero
K latch_half_count_wrong(int* d, int* o) { __shared__ __align__(8) char raw[sizeof(cuda::latch<blk>)]; auto& s = (cuda::latch<blk>&)raw; if (threadIdx.x == 0) new (&s) cuda::latch<blk>(32); __syncthreads();
    d[threadIdx.x] = threadIdx.x;  //~ race
    if (threadIdx.x < 32) s.count_down(); s.wait();
    o[threadIdx.x] = d[63 - threadIdx.x];  //~ race
  }
//@ grid=2 block=32 zero
K publish_pointer_right(int* q, int* d) { if (threadIdx.x) return; unsigned long long* p = (unsigned long long*)q;
    if (blockIdx.x == 0) { d[5] = 42; R<dev, unsigned long long>(*p).store((unsigned long long)(d + 5), memory_order_release); }
    else { unsigned long long x; while (!(x = R<dev, unsigned long long>(*p).load(memory_order_acquire))) {} d[9] = *(int*)x; } }
//@ grid=2 block=32 zero
K publish_pointer_consume_wrong(int* q, int* d) { if (threadIdx.x) return; unsigned long long* p = (unsigned long long*)q;
    if (blockIdx.x == 0) {
      d[5] = 42;  //~ race
      R<dev, unsigned long long>(*p).store((unsigned long long)(d + 5), memory_order_release); }
    else { unsigned long long x; while (!(x = R<dev, unsigned long long>(*p).load(memory_order_relaxed))) {}
      d[9] = *(int*)x;  //~ race
    } }
//@ grid=3 block=32 zero
K release_sequence_right(int* f, int* d) { if (threadIdx.x) return; if (blockIdx.x == 0) { d[0] = 5; R<dev>(*f).store(1, memory_order_release); }
    else if (blockIdx.x == 1) { int e = 1; while (!R<dev>(*f).compare_exchange_weak(e, 2, memory_order_relaxed, memory_order_relaxed)) e = 1; }
    else { while (R<dev>(*f).load(memory_order_acquire) != 2) {} d[1] = d[0]; } }
//@ grid=3 block=32 zero
K release_sequence_broken_wrong(int* f, int* d) { if (threadIdx.x) return; if (blockIdx.x == 0) {
      d[0] = 5;  //~ race
      R<dev>(*f).store(1, memory_order_release); }
    else if (blockIdx.x == 1) { while (R<dev>(*f).load(memory_order_relaxed) != 1) {} R<dev>(*f).store(2, memory_order_relaxed); }
    else { while (R<dev>(*f).load(memory_order_acquire) != 2) {}
      d[1] = d[0];  //~ race
    } }
//@ grid=3 block=32 zero
K transitive_right(int* f, int* d) { if (threadIdx.x) return; if (blockIdx.x == 0) { d[0] = 5; R<dev>(f[0]).store(1, memory_order_release); }
    else if (blockIdx.x == 1) { while (R<dev>(f[0]).load(memory_order_acquire) != 1) {} R<dev>(f[1]).store(2, memory_order_release); }
    else { while (R<dev>(f[1]).load(memory_order_acquire) != 2) {} d[1] = d[0]; } }
//@ grid=3 block=32 zero
K transitive_middle_relaxed_wrong(int* f, int* d) { if (threadIdx.x) return; if (blockIdx.x == 0) {
      d[0] = 5;  //~ race
      R<dev>(f[0]).store(1, memory_order_release); }
    else if (blockIdx.x == 1) { while (R<dev>(f[0]).load(memory_order_relaxed) != 1) {} R<dev>(f[1]).store(2, memory_order_release); }
    else { while (R<dev>(f[1]).load(memory_order_acquire) != 2) {}
      d[1] = d[0];  //~ race
    } }
//@ grid=2 block=64 zero
K scope_inside_then_outside_right(int* f, int* d) { int t = threadIdx.x;   // block scope within a CTA, device scope between: causality is transitive
    if (blockIdx.x == 0) { if (t == 0) { d[0] = 5; R<blk>(f[0]).store(1, memory_order_release); } else if (t == 32) { while (!R<blk>(f[0]).load(memory_order_acquire)) {} R<dev>(f[1]).store(1, memory_order_release); } }
    else if (t == 0) { while (!R<dev>(f[1]).load(memory_order_acquire)) {} d[1] = d[0]; } }
//@ grid=2 block=64 zero
K scope_inside_only_wrong(int* f, int* d) { int t = threadIdx.x;
    if (blockIdx.x == 0) { if (t == 0) {
      d[0] = 5;  //~ race
      R<blk>(f[0]).store(1, memory_order_release); } else if (t == 32) { while (!R<blk>(f[0]).load(memory_order_acquire)) {} R<blk>(f[1]).store(1, memory_order_release); } }
    else if (t == 0) { while (!R<dev>(f[1]).load(memory_order_acquire)) {}  //~ race
      d[1] = d[0]; } }
