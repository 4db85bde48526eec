// Reads of flags without loops: what is accessed hinges on the value, or does not.
#include <cuda/atomic>
#define K extern "C" __global__ void
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto D = cuda::thread_scope_device;
constexpr auto B = cuda::thread_scope_block;
using cuda::memory_order_acquire, cuda::memory_order_release, cuda::memory_order_relaxed, cuda::memory_order_acq_rel, cuda::memory_order_seq_cst;
__device__ int data0, data1[4], flag0;
//@ grid=2 block=64 zero
K select_global_right(int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { data0 = 5; Ref<D>(flag0).store(1, memory_order_release); }
  else { int r = Ref<D>(flag0).load(memory_order_acquire); out[0] = r ? data0 : -1; }
}
//@ grid=1 block=64 zero
K select_shared_right(int* out) {
  __shared__ int f, d;
  if (threadIdx.x == 0) f = 0; __syncthreads();
  if (threadIdx.x == 0) { d = 5; Ref<B>(f).store(1, memory_order_release); }
  if (threadIdx.x == 32) { int r = Ref<B>(f).load(memory_order_acquire); out[0] = r ? d : -1; }
}
//@ grid=1 block=64 zero
K select_shared_two_right(int* out) {
  __shared__ int f, d, e;
  if (threadIdx.x == 0) { f = 0; e = 3; } __syncthreads();
  if (threadIdx.x == 0) { d = 5; Ref<B>(f).store(1, memory_order_release); }
  if (threadIdx.x == 32) { int r = Ref<B>(f).load(memory_order_acquire); int v = -1; if (r == 1) v = d + e; out[0] = v; }
}
//@ grid=1 block=64 zero
K store_if_right(int* out) {
  __shared__ int f, d;
  if (threadIdx.x == 0) { f = 0; d = 1; } __syncthreads();
  if (threadIdx.x == 0) { d = 5; Ref<B>(f).store(1, memory_order_release); }
  if (threadIdx.x == 32) { int r = Ref<B>(f).load(memory_order_acquire); if (r) d = 7; }
  __syncthreads(); out[threadIdx.x] = d;
}
//@ grid=4 block=64 zero
K last_one_thread_right(int* count, int* part, int* out) {
  if (threadIdx.x) return;
  part[blockIdx.x] = blockIdx.x; __threadfence();
  int t = atomicAdd(count, 1); __threadfence();
  if (t == gridDim.x - 1) { int s = 0; for (int i = 0; i < gridDim.x; i++) s += part[i]; *out = s; }
}
//@ grid=4 block=64 zero
K last_warp_shuffle_right(int* count, int* part, int* out) {
  int l = threadIdx.x; if (l >= 32) return;
  part[blockIdx.x * 32 + l] = l; __threadfence(); __syncwarp();
  int t = 0; if (l == 0) { t = atomicAdd(count, 1); __threadfence(); } t = __shfl_sync(~0u, t, 0);
  if (t == gridDim.x - 1) { int s = 0; for (int i = 0; i < gridDim.x; i++) s += part[i * 32 + l]; out[l] = s; }
}
//@ grid=4 block=64 zero
K deque_right(int* top, int* bottom, int* items, int* out) {   // the owner pushes, others steal
  if (threadIdx.x) return;
  if (blockIdx.x == 0) for (int i = 0; i < 8; i++) { Ref<D>(items[i]).store(i + 1, memory_order_relaxed); Ref<D>(*bottom).store(i + 1, memory_order_release); }
  else for (int k = 0; k < 6; k++) {
    int t = Ref<D>(*top).load(memory_order_acquire);
    cuda::atomic_thread_fence(memory_order_seq_cst, D);
    int b = Ref<D>(*bottom).load(memory_order_acquire);
    if (t < b) { int x = Ref<D>(items[t]).load(memory_order_relaxed); if (Ref<D>(*top).compare_exchange_strong(t, t + 1, memory_order_seq_cst)) out[x * 8] = blockIdx.x; }
  }
}
//@ grid=4 block=64 zero
K slots_then_count_right(int* count, int* slot, int* out) {    // seq_cst counters by ++
  if (threadIdx.x) return;
  Ref<D> c(*count);
  int i = c++; slot[i] = i; 
  while (c.load() < 4) {}
  out[blockIdx.x] = i;
}
//@ grid=4 block=64 zero
K rcu_pointer_right(int* cur, int* pool, int* out) {     // versions: the index is published, the readers take the latest one
  if (threadIdx.x) return;
  if (blockIdx.x == 0) for (int v = 1; v < 6; v++) { pool[v * 2] = v; pool[v * 2 + 1] = v; Ref<D>(*cur).store(v * 2, memory_order_release); }
  else { int p = Ref<D>(*cur).load(memory_order_acquire); out[blockIdx.x] = pool[p] - pool[p + 1]; }
}
//@ grid=4 block=64 zero
K version_skip_right(int* ver, int* d, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[0] = 5; Ref<D>(*ver).store(1, memory_order_release); }
  else { int s = 0; for (int k = 0; k < 5; k++) { if (Ref<D>(*ver).load(memory_order_acquire) == 0) continue; s += d[0]; } out[blockIdx.x] = s; }
}
//@ grid=4 block=64 zero
K bounded_poll_right(int* f, int* d, int* out) {      // gives up after some time
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[0] = 5; Ref<D>(*f).store(1, memory_order_release); return; }
  int ok = 0;
  for (int k = 0; k < 100 && !ok; k++) ok = Ref<D>(*f).load(memory_order_acquire);
  if (ok) out[blockIdx.x] = d[0];
}
//@ grid=2 block=64 zero
K poll_by_switch_right(int* f, int* d, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[0] = 5; Ref<D>(*f).store(2, memory_order_release); return; }
  for (bool go = true; go;) switch (Ref<D>(*f).load(memory_order_acquire)) { case 0: break; case 1: __nanosleep(10); break; case 2: out[0] = d[0]; go = false; break; default: go = false; }
}
//@ grid=2 block=64 zero
K two_flags_right(int* f, int* d, int* out) {     // both must be set
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[0] = 5; Ref<D>(f[0]).store(1, memory_order_release); d[1] = 6; Ref<D>(f[1]).store(1, memory_order_release); return; }
  int a = Ref<D>(f[0]).load(memory_order_acquire), b = Ref<D>(f[1]).load(memory_order_acquire);
  if (a & b) out[0] = d[0] + d[1];
}
//@ grid=2 block=64 zero
K two_flags_or_wrong(int* f, int* d, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[0] = 5; Ref<D>(f[0]).store(1, memory_order_release); d[1] = 6; Ref<D>(f[1]).store(1, memory_order_release); return; }   //~ race
  int a = Ref<D>(f[0]).load(memory_order_acquire);
  int v = 0;
  if (a) v = d[0];
  out[0] = v + d[1];    //~ race
}
//@ grid=2 block=64 zero
K cta_tests_shared_right(int* f, int* d, int* out) {
  __shared__ int ready;
  if (blockIdx.x == 0) { if (threadIdx.x == 0) { d[0] = 5; Ref<D>(*f).store(1, memory_order_release); } return; }
  if (threadIdx.x == 0) ready = Ref<D>(*f).load(memory_order_acquire);
  __syncthreads();
  if (ready) out[threadIdx.x] = d[0];
}
