// Order that holds by chance: reads that do not wait, and accesses that do not depend on what was read.
#include <cuda/atomic>
#define K extern "C" __global__ void
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto D = cuda::thread_scope_device;
constexpr auto B = cuda::thread_scope_block;
using cuda::memory_order_acquire, cuda::memory_order_release, cuda::memory_order_relaxed, cuda::memory_order_acq_rel, cuda::memory_order_seq_cst;

//@ grid=2 block=64 zero
K mp_rel_acq_right(int* f, int* d, int* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { d[0] = 5; Ref<D>(*f).store(1, memory_order_release); }
    else { while (!Ref<D>(*f).load(memory_order_acquire)) {} out[0] = d[0]; }
  }
}
//@ grid=2 block=64 zero
K seqlock_relaxed_right(int* s, int* d, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (int i = 1; i < 4; i++) {
      Ref<D>(*s).store(2 * i - 1, memory_order_relaxed);
      cuda::atomic_thread_fence(memory_order_release, D);
      Ref<D>(d[0]).store(i, memory_order_relaxed); Ref<D>(d[1]).store(i, memory_order_relaxed);
      Ref<D>(*s).store(2 * i, memory_order_release);
    }
  } else {
    int a, x, y;
    do {
      a = Ref<D>(*s).load(memory_order_acquire);
      x = Ref<D>(d[0]).load(memory_order_relaxed); y = Ref<D>(d[1]).load(memory_order_relaxed);
      cuda::atomic_thread_fence(memory_order_acquire, D);
    } while ((a & 1) || Ref<D>(*s).load(memory_order_relaxed) != a);
    out[0] = x - y;
  }
}
//@ grid=2 block=64 zero
K seqlock_plain_wrong(int* s, int* d, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (int i = 1; i < 4; i++) {
      Ref<D>(*s).store(2 * i - 1, memory_order_relaxed);
      __threadfence();
      d[0] = i; d[1] = i;    //~ race
      __threadfence();
      Ref<D>(*s).store(2 * i, memory_order_relaxed);
    }
  } else {
    int a, x, y;
    do {
      a = Ref<D>(*s).load(memory_order_acquire);
      x = d[0]; y = d[1];   //~ race
      __threadfence();
    } while ((a & 1) || Ref<D>(*s).load(memory_order_relaxed) != a);
    out[0] = x - y;
  }
}
//@ grid=4 block=64 zero
K dcl_right(int* st, int* d, int* out) {
  if (threadIdx.x) return;
  Ref<D> s(*st);
  if (s.load(memory_order_acquire) != 2) {
    int e = 0;
    if (s.compare_exchange_strong(e, 1, memory_order_acquire)) { d[0] = 7; s.store(2, memory_order_release); }
    else while (s.load(memory_order_acquire) != 2) {}
  }
  out[blockIdx.x] = d[0];
}
//@ grid=4 block=64 zero
K dcl_relaxed_first_check_wrong(int* st, int* d, int* out) {
  if (threadIdx.x) return;
  Ref<D> s(*st);
  if (s.load(memory_order_relaxed) != 2) {
    int e = 0;
    if (s.compare_exchange_strong(e, 1, memory_order_acquire)) { d[0] = 7; s.store(2, memory_order_release); } //~ race
    else while (s.load(memory_order_acquire) != 2) {}
  }
  out[blockIdx.x] = d[0];   //~ race
}
//@ grid=4 block=64 zero
K dcl_relaxed_publish_wrong(int* st, int* d, int* out) {
  if (threadIdx.x) return;
  Ref<D> s(*st);
  if (s.load(memory_order_acquire) != 2) {
    int e = 0;
    if (s.compare_exchange_strong(e, 1, memory_order_acquire)) { d[0] = 7; s.store(2, memory_order_relaxed); } //~ race
    else while (s.load(memory_order_acquire) != 2) {}
  }
  out[blockIdx.x] = d[0];   //~ race
}
//@ grid=4 block=64 zero
K dcl_loser_does_not_wait_wrong(int* st, int* d, int* out) {
  if (threadIdx.x) return;
  Ref<D> s(*st);
  if (s.load(memory_order_acquire) == 0) {
    int e = 0;
    if (s.compare_exchange_strong(e, 1, memory_order_acq_rel)) { d[0] = 7; s.store(2, memory_order_release); } //~ race
  }
  out[blockIdx.x] = d[0];   //~ race
}
//@ grid=4 block=64 zero
K dcl_plain_check_wrong(int* st, int* d, int* out) {
  if (threadIdx.x) return;
  if (*st != 2) {                    //~ race
    while (atomicCAS(st + 1, 0, 1)) {}
    __threadfence();
    if (*st != 2) { d[0] = 7; __threadfence(); *st = 2; }
    __threadfence(); atomicExch(st + 1, 0);
  }
  out[blockIdx.x] = d[0];
}
//@ grid=2 block=64 zero
K steal_plain_tail_wrong(int* head, int* tail, int* out) {
  if (threadIdx.x) return;
  int b = blockIdx.x;
  for (int i = 0; i < 4; i++) { tail[b] = tail[b] + 1; }                //~ race
  int v = 1 - b;
  if (atomicAdd(&head[v], 1) < tail[v]) out[b] = 1;                     //~ race
}
//@ grid=2 block=64 zero
K steal_right(int* head, int* tail, int* out) {
  if (threadIdx.x) return;
  int b = blockIdx.x;
  for (int i = 0; i < 4; i++) { out[10 + b * 8 + i] = i; __threadfence(); atomicAdd(&tail[b], 1); }
  int v = 1 - b;
  int h = atomicAdd(&head[v], 1);
  if (h < Ref<D>(tail[v]).load(memory_order_acquire)) out[b] = out[10 + v * 8 + h];
}
//@ grid=2 block=64 zero
K steal_item_no_fence_wrong(int* head, int* tail, int* out) {
  if (threadIdx.x) return;
  int b = blockIdx.x;
  for (int i = 0; i < 4; i++) { out[10 + b * 8 + i] = i; atomicAdd(&tail[b], 1); }  //~ race
  int v = 1 - b;
  int h = atomicAdd(&head[v], 1);
  while (h >= Ref<D>(tail[v]).load(memory_order_acquire)) {}
  out[b] = out[10 + v * 8 + h];  //~ race
}
//@ grid=2 block=64 zero
K failed_cas_acquires_right(int* f, int* d) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[0] = 1; Ref<D>(*f).store(1, memory_order_release); }
  else { int e = 0; while (Ref<D>(*f).compare_exchange_strong(e, 0, memory_order_acquire, memory_order_acquire)) { e = 0; } d[0] += 1; }
}
//@ grid=2 block=64 zero
K try_lock_right(int* l, int* d) {
  if (threadIdx.x) return;
  for (int i = 0; i < 50; i++)
    if (atomicCAS(l, 0, 1) == 0) { __threadfence(); d[0] += 1; __threadfence(); atomicExch(l, 0); }
}
//@ grid=2 block=64 zero
K try_lock_works_anyway_wrong(int* l, int* d) {
  if (threadIdx.x) return;
  bool mine = atomicCAS(l, 0, 1) == 0;
  __threadfence(); d[0] += 1; __threadfence();    //~ race
  if (mine) atomicExch(l, 0);
}
//@ grid=2 block=64 zero
K rw_lock_right(int* l, int* d) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { int e; do { e = 0; } while (!Ref<D>(*l).compare_exchange_weak(e, -1, memory_order_acquire)); d[0] = 3; Ref<D>(*l).store(0, memory_order_release); }
  else {
    int e = Ref<D>(*l).load(memory_order_relaxed);
    do { if (e < 0) e = 0; } while (!Ref<D>(*l).compare_exchange_weak(e, e + 1, memory_order_acquire));
    d[1] = d[0];
    Ref<D>(*l).fetch_sub(1, memory_order_release);
  }
}
//@ grid=3 block=64 zero
K rw_lock_reader_unlock_relaxed_wrong(int* l, int* d) {
  if (threadIdx.x) return;
  if (blockIdx.x == 1) { int e; do { e = 0; } while (!Ref<D>(*l).compare_exchange_weak(e, -1, memory_order_acquire)); d[0] = 3; Ref<D>(*l).store(0, memory_order_release); }  //~ race
  else {
    int e = Ref<D>(*l).load(memory_order_relaxed);
    do { if (e < 0) e = 0; } while (!Ref<D>(*l).compare_exchange_weak(e, e + 1, memory_order_acquire));
    d[1 + blockIdx.x] = d[0];  //~ race
    Ref<D>(*l).fetch_sub(1, memory_order_relaxed);
  }
}
//@ grid=2 block=64 zero
K index_read_right(int* f, int* d, int* out) {   // the address follows from the value
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[7] = 5; Ref<D>(*f).store(7, memory_order_release); }
  else { int i = Ref<D>(*f).load(memory_order_acquire); out[0] = d[i]; }
}
//@ grid=2 block=64 zero
K slot_or_own_right(int* f, int* d, int* out) {   // the winner's object, or an own one
  if (threadIdx.x) return;
  int mine = 8 + blockIdx.x, there = Ref<D>(*f).load(memory_order_acquire);
  if (there == 0) {
    d[mine] = mine;
    if (Ref<D>(*f).compare_exchange_strong(there, mine, memory_order_acq_rel)) there = mine;
  }
  out[blockIdx.x] = d[there];
}
//@ grid=2 block=64 zero
K read_before_tested_wrong(int* f, int* d, int* out) {   // the value is thrown away if the flag is not set, but it is read
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[0] = 5; Ref<D>(*f).store(1, memory_order_release); }      //~ race
  else { int ready = Ref<D>(*f).load(memory_order_acquire); int v = *(volatile int*)d; int w = d[0]; out[0] = ready ? w + 0 * v : -1; }   //~ race
}
//@ grid=2 block=64 zero
K told_by_lane_right(int* f, int* d, int* out) {
  int ready = 0;
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { d[0] = 5; Ref<D>(*f).store(1, memory_order_release); }
  } else {
    if (threadIdx.x % 32 == 0) ready = Ref<D>(*f).load(memory_order_acquire);
    if (__shfl_sync(~0u, ready, 0)) out[threadIdx.x] = d[0];
  }
}
//@ grid=2 block=64 zero
K several_polls_right(int* f, int* d, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) for (int i = 0; i < 4; i++) { d[i] = i; Ref<D>(f[i]).store(1, memory_order_release); }
  else for (int i = 0; i < 4; i++) { while (!Ref<D>(f[i]).load(memory_order_acquire)) {} out[i] = d[i]; }
}
//@ grid=2 block=64 zero
K seqlock_after_fence_wrong(int* s, int* d, int* out) {           // the release finds a fence of the same thread before it
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    Ref<D>(*s).store(1, memory_order_relaxed);
    cuda::atomic_thread_fence(memory_order_release, D);
    d[0] = 5;    //~ race
    Ref<D>(*s).store(2, memory_order_release);
  } else {
    int a, b, x;
    do {
      a = Ref<D>(*s).load(memory_order_acquire);
      x = d[0];   //~ race
      cuda::atomic_thread_fence(memory_order_acquire, D);
      b = Ref<D>(*s).load(memory_order_relaxed);
    } while (a != b || (a & 1));
    out[0] = x;
  }
}
