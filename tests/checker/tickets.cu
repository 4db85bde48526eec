// Counters that tell a CTA that it is the last: what it may read then, and access plainly because of that.
#include <cuda/atomic>
#define K extern "C" __global__ void

//@ grid=4 block=64 zero
K last_reset_right(int* g, int* o) {
  __shared__ bool last; __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = t; __syncthreads();
  if (t == 0) { int a = 0; for (int i = 0; i < 64; i++) a += s[i]; g[1 + blockIdx.x] = a; __threadfence();
    unsigned k = atomicInc((unsigned*)g, gridDim.x); last = k == gridDim.x - 1; }
  __syncthreads();
  if (last) { if (t == 0) { int a = 0; for (int i = 0; i < gridDim.x; i++) a += g[1 + i]; o[0] = a; g[0] = 0; } }
}
//@ grid=4 block=64 zero
K last_reset_noload_right(int* g, int* o) {   // no __syncthreads between
  int t = threadIdx.x;
  if (t == 0) { g[1 + blockIdx.x] = blockIdx.x; __threadfence(); int k = atomicAdd(g, 1);
    if (k == gridDim.x - 1) { __threadfence(); int a = 0; for (int i = 0; i < gridDim.x; i++) a += g[1 + i];
    o[0] = a; g[0] = 0; } }
}
//@ grid=4 block=64 zero
K last_reset_onefence_right(int* g, int* o) {   // only one fence, same thread; reset is a plain store
  int t = threadIdx.x;
  if (t == 0) { g[1 + blockIdx.x] = blockIdx.x; __threadfence(); int k = atomicAdd(g, 1);
    if (k == gridDim.x - 1) { g[0] = 0; } }
}
//@ grid=4 block=64 zero
K last_reset_nofence_right(int* g, int* o) {   // no fence at all: only the ticket; reset plain
  int t = threadIdx.x;
  if (t == 0) { int k = atomicAdd(g, 1);
    if (k == gridDim.x - 1) { g[0] = 0; } }
}
//@ grid=4 block=64 zero
K last_nofence_wrong(int* g, int* o) {
  int t = threadIdx.x; __shared__ bool last;
  if (t == 0) { g[1 + blockIdx.x] = blockIdx.x;  //~ race
     int k = atomicAdd(g, 1); last = k == gridDim.x - 1; }
  __syncthreads();
  if (last && t < gridDim.x) { o[t] = g[1 + t];  //~ race
     if (t == 0) g[0] = 0; }
}
//@ grid=4 block=64 zero
K last_volatile_sum_right(int* g, int* o) {   // as in the CUDA guide: volatile partial results
  volatile int* r = g + 1;
  int t = threadIdx.x; __shared__ bool last;
  if (t == 0) { r[blockIdx.x] = blockIdx.x; __threadfence(); unsigned k = atomicInc((unsigned*)g, gridDim.x);
    last = (k == gridDim.x - 1); }
  __syncthreads();
  if (last) { int a = 0; for (int i = 0; i < gridDim.x; i++) a += r[i]; if (t == 0) { r[0] = a;
    *(volatile int*)g = 0; } }
}
//@ grid=4 block=64 zero
K last_all_threads_write_right(int* g, int* o) {   // every thread writes and fences
  int t = threadIdx.x; __shared__ unsigned k;
  g[1 + blockIdx.x * 64 + t] = t;
  __threadfence();
  __syncthreads();
  if (t == 0) k = atomicAdd(g, 1);
  __syncthreads();
  if (k == gridDim.x - 1) { int a = 0; for (int b = 0; b < gridDim.x; b++) a += g[1 + b * 64 + t]; o[t] = a;
    if (t == 0) g[0] = 0; }
}
//@ grid=4 block=64 zero
K last_all_threads_second_fence_right(int* g, int* o) {
  int t = threadIdx.x; __shared__ unsigned k;
  g[1 + blockIdx.x * 64 + t] = t;
  __threadfence();
  __syncthreads();
  if (t == 0) k = atomicAdd(g, 1);
  __syncthreads();
  if (k == gridDim.x - 1) { __threadfence(); int a = 0;
    for (int b = 0; b < gridDim.x; b++) a += g[1 + b * 64 + t]; o[t] = a; if (t == 0) g[0] = 0; }
}
//@ grid=4 block=64 zero
K last_all_threads_fence_by_one_right(int* g, int* o) {   // barrier, then one fences: cumulativity
  int t = threadIdx.x; __shared__ unsigned k;
  g[1 + blockIdx.x * 64 + t] = t;
  __syncthreads();
  if (t == 0) { __threadfence(); k = atomicAdd(g, 1); __threadfence(); }
  __syncthreads();
  if (k == gridDim.x - 1) { int a = 0; for (int b = 0; b < gridDim.x; b++) a += g[1 + b * 64 + t]; o[t] = a;
    if (t == 0) g[0] = 0; }
}
//@ grid=4 block=64 zero
K last_fence_missing_barrier_wrong(int* g, int* o) {   // no barrier between the writes and the ticket
  int t = threadIdx.x; __shared__ unsigned k;
  g[1 + blockIdx.x * 64 + t] = t;  //~ race
  __threadfence();
  if (t == 0) k = atomicAdd(g, 1);
  __syncthreads();
  if (k == gridDim.x - 1) { int a = 0; for (int b = 0; b < gridDim.x; b++) a += g[1 + b * 64 + t];  //~ race
     o[t] = a; }
}
//@ grid=4 block=64 zero
K last_fence_block_wrong(int* g, int* o) {
  int t = threadIdx.x; __shared__ unsigned k;
  g[1 + blockIdx.x * 64 + t] = t;  //~ race
  __threadfence_block();
  __syncthreads();
  if (t == 0) k = atomicAdd(g, 1);
  __syncthreads();
  if (k == gridDim.x - 1) { int a = 0; for (int b = 0; b < gridDim.x; b++) a += g[1 + b * 64 + t];  //~ race
     o[t] = a; }
}
//@ grid=4 block=64 zero
K last_every_thread_ticket_right(int* g, int* o) {   // each thread takes a ticket; the last thread resets
  int t = threadIdx.x;
  g[1 + blockIdx.x * 64 + t] = t; __threadfence();
  int k = atomicAdd(g, 1);
  if (k == gridDim.x * blockDim.x - 1) { __threadfence(); int a = 0;
    for (int b = 0; b < 64 * gridDim.x; b++) a += g[1 + b]; o[0] = a; g[0] = 0; }
}
//@ grid=4 block=64 zero
K reset_early_wrong(int* g, int* o) {   // resets although it is not the last one
  int t = threadIdx.x;
  if (t == 0) { int k = atomicAdd(g, 1);  //~ race
    if (k == 1) g[0] = 0; }  //~ race
}
//@ grid=4 block=64 zero
K reset_first_wrong(int* g, int* o) {   // the first CTA resets a counter that others update
  int t = threadIdx.x;
  if (t == 0) { if (blockIdx.x == 0) g[0] = 0;  //~ race
     atomicAdd(g, 1); }  //~ race
}
//@ grid=4 block=64 zero
K last_ref_right(int* g, int* o) {
  cuda::atomic_ref<int, cuda::thread_scope_device> c(g[0]); int t = threadIdx.x; __shared__ bool last;
  g[1 + blockIdx.x * 64 + t] = t;
  __syncthreads();
  if (t == 0) last = c.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  __syncthreads();
  if (last) { o[t] = g[1 + t] + g[65 + t] + g[129 + t]; if (t == 0) g[0] = 0; }
}
//@ grid=4 block=64 zero
K last_ref_release_only_right(int* g, int* o) {   // release, then an acquire fence
  cuda::atomic_ref<int, cuda::thread_scope_device> c(g[0]); int t = threadIdx.x; __shared__ bool last;
  g[1 + blockIdx.x * 64 + t] = t;
  __syncthreads();
  if (t == 0) { last = c.fetch_add(1, cuda::memory_order_release) == gridDim.x - 1;
    if (last) cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device); }
  __syncthreads();
  if (last) { o[t] = g[1 + t] + g[65 + t] + g[129 + t]; if (t == 0) g[0] = 0; }
}
//@ grid=4 block=64 zero
K last_ref_acquire_only_wrong(int* g, int* o) {
  cuda::atomic_ref<int, cuda::thread_scope_device> c(g[0]); int t = threadIdx.x; __shared__ bool last;
  g[1 + blockIdx.x * 64 + t] = t;  //~ race
  __syncthreads();
  if (t == 0) last = c.fetch_add(1, cuda::memory_order_acquire) == gridDim.x - 1;
  __syncthreads();
  if (last) { o[t] = g[1 + t] + g[65 + t] + g[129 + t]; }  //~ race
}
//@ grid=4 block=64 zero
K last_warp_broadcast_right(int* g, int* o) {   // one warp per CTA; last told by shuffle
  int t = threadIdx.x; if (t >= 32) return;
  g[1 + blockIdx.x * 32 + t] = t; __threadfence(); __syncwarp();
  int k; if (t == 0) k = atomicAdd(g, 1);
  k = __shfl_sync(~0u, k, 0);
  if (k == gridDim.x - 1) { __threadfence(); int a = 0;
    for (int b = 0; b < gridDim.x; b++) a += g[1 + b * 32 + t]; o[t] = a; if (t == 0) g[0] = 0; }
}
//@ grid=4 block=64 zero
K last_sync_or_right(int* g, int* o) {     // told by __syncthreads_or
  int t = threadIdx.x; bool last = false;
  g[1 + blockIdx.x * 64 + t] = t;
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(g, 1) == gridDim.x - 1;
  last = __syncthreads_or(last);
  if (last) { int a = 0; for (int b = 0; b < gridDim.x; b++) a += g[1 + b * 64 + t]; o[t] = a; if (t == 0) g[0] = 0; }
}
//@ grid=4 block=64 zero
K last_reset_atomic_plain_mix_wrong(int* g, int* o) {   // reset before own read of others' data: fine; but a plain read of the counter
  int t = threadIdx.x;
  if (t == 0) { atomicAdd(g, 1);  //~ race
     if (g[0] == gridDim.x) o[0] = 1; }  //~ race
}
//@ grid=4 block=64 zero
K reset_by_index_wrong(int* g, int* o) {   // the last CTA in natural order, but not because of its ticket
  int t = threadIdx.x;
  if (t == 0) { int k = atomicAdd(g, 1);  //~ race
    o[k] = blockIdx.x; if (blockIdx.x == 3) g[0] = 0; }  //~ race
}
//@ grid=4 block=64 zero
K reset_after_other_condition_wrong(int* g, int* o) {   // a condition on the ticket, which has ended before
  int t = threadIdx.x;
  if (t == 0) { int k = atomicAdd(g, 1);  //~ race
    if (k < 100) o[k] = blockIdx.x;
    if (blockIdx.x == 3) g[0] = 0; }  //~ race
}
//@ grid=4 block=64 zero
K reset_without_value_wrong(int* g, int* o) {
  int t = threadIdx.x;
  if (t == 0) { atomicAdd(g, 1);  //~ race
    if (o[0] == 0 && blockIdx.x == 3) g[0] = 0; }  //~ race
}
//@ grid=4 block=64 zero
K last_reads_counter_right(int* g, int* o) {   // reads the counter plainly once it is the last
  if (threadIdx.x == 0) { int k = atomicAdd(g, 1); if (k == gridDim.x - 1) o[0] = g[0]; }
}
//@ grid=4 block=64 zero
K last_waits_then_resets_wrong(int* g, int* o) {   // others still poll the counter
  if (threadIdx.x == 0) { int k = atomicAdd(g, 1); if (k == gridDim.x - 1) g[0] = 0;  //~ race
    else { int c = 0; while (c++ < 3 && *(volatile int*)g < gridDim.x) {} } }  //~ race
}
//@ grid=4 block=64 zero
K last_other_thread_resets_right(int* g, int* o) {   // another thread than the one with the ticket, after a barrier
  __shared__ int k; if (threadIdx.x == 0) k = atomicAdd(g, 1); __syncthreads();
  if (k == gridDim.x - 1 && threadIdx.x == 33) g[0] = 0;
}
//@ grid=4 block=64 zero
K last_other_thread_no_barrier_wrong(int* g, int* o) {
  __shared__ int k; if (threadIdx.x == 0) k = atomicAdd(g, 1);  //~ race
  if (threadIdx.x == 33 && k == gridDim.x - 1) g[0] = 0;  //~ race
}
//@ grid=4 block=64 zero
K ticket_block_scope_wrong(int* g, int* o) {
  if (threadIdx.x == 0) { int k = atomicAdd_block(g, 1);  //~ race
    if (k == gridDim.x - 1) g[0] = 0; }
}
//@ grid=1 block=64 zero
K ticket_in_shared_right(int* g, int* o) {   // the last thread of the CTA
  __shared__ int c; if (threadIdx.x == 0) c = 0; __syncthreads();
  int k = atomicAdd(&c, 1);
  if (k == 63) c = 0;
  __syncthreads(); g[threadIdx.x] = c;
}
//@ grid=40 block=64 zero
K last_of_many_right(int* g, int* o) {   // more CTAs than accesses are kept
  if (threadIdx.x == 0) { o[blockIdx.x] = 1; __threadfence(); int k = atomicAdd(g, 1);
    if (k == gridDim.x - 1) { __threadfence(); int a = 0; for (int i = 0; i < gridDim.x; i++) a += o[i];
    o[100] = a; g[0] = 0; } }
}
