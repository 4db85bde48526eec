// Parallel algorithms: scans, groups of equal keys, stacks, buffers in turn, calls.
#include <cuda/atomic>
#define K extern "C" __global__ void
#define ALL 0xffffffffu
template <class T, cuda::thread_scope S> using Ref = cuda::atomic_ref<T, S>;
constexpr auto device = cuda::thread_scope_device;
//@ grid=2 block=64
K fill_by_one_right(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x;
  memset(s, 0, t == 0 ? sizeof s : 0);
  __syncthreads();
  atomicAdd(&s[g[t] & 63], 1);
  __syncthreads();
  atomicAdd(&g[512 + t], s[t]);
}
//@ grid=2 block=64
K fill_by_all_wrong(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x;
  for (int i = 0; i < 64; i++) s[i] = t;                                              //~ race
  __syncthreads();
  g[512 + t + blockIdx.x * 64] = s[t];
}
//@ block=64
K function_pointer_right(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x;
  int (*f)(int) = n == 4 ? +[](int x) { return x + 1; } : +[](int x) { return x + 2; };
  s[t] = f(g[t]);
  __syncthreads();
  g[t] = s[63 - t];
}
//@ grid=2 block=64
K count_by_activemask_right(int* g, int n) {
  int t = threadIdx.x;
  if (g[t] & 1) {
    unsigned m = __activemask(); int lane = t & 31, leader = __ffs(m) - 1, base = 0;
    if (lane == leader) base = atomicAdd(&g[900], __popc(m));
    base = __shfl_sync(m, base, leader);
    g[512 + ((base + __popc(m & ((1u << lane) - 1))) & 255)] = t & 0;
  }
}
//@ block=64
K match_groups_right(int* g, int* sums) {
  int t = threadIdx.x, key = g[t];
  unsigned m = __match_any_sync(ALL, key);
  int sum = __reduce_add_sync(m, t);
  if ((t & 31) == __ffs(m) - 1) atomicAdd(&sums[key], sum);
}
//@ block=64
K match_groups_wrong(int* g, int* sums) {
  int t = threadIdx.x, key = g[t];
  unsigned m = __match_any_sync(ALL, key);
  int sum = __reduce_add_sync(m, t);
  if ((t & 31) == __ffs(m) - 1) sums[key] += sum;                                     //~ race
}
//@ block=128
K scan_inclusive_right(int* g, int n) {
  __shared__ int sums[4]; int t = threadIdx.x, lane = t & 31, w = t / 32, v = g[t];
  for (int d = 1; d < 32; d <<= 1) { int o = __shfl_up_sync(ALL, v, d); if (lane >= d) v += o; }
  if (lane == 31) sums[w] = v;
  __syncthreads();
  if (w == 0 && lane < 4) {
    int x = sums[lane];
    for (int d = 1; d < 4; d <<= 1) { int o = __shfl_up_sync(0xf, x, d); if (lane >= d) x += o; }
    sums[lane] = x;
  }
  __syncthreads();
  g[t] = v + (w ? sums[w - 1] : 0);
}
//@ block=128
K scan_inclusive_wrong(int* g, int n) {
  __shared__ int sums[4]; int t = threadIdx.x, lane = t & 31, w = t / 32, v = g[t];
  for (int d = 1; d < 32; d <<= 1) { int o = __shfl_up_sync(ALL, v, d); if (lane >= d) v += o; }
  if (lane == 31) sums[w] = v;
  __syncthreads();
  if (w == 0 && lane < 4) {
    int x = sums[lane];
    for (int d = 1; d < 4; d <<= 1) { int o = __shfl_up_sync(0xf, x, d); if (lane >= d) x += o; }
    sums[lane] = x;                                                                   //~ race
  }
  g[t] = v + (w ? sums[w - 1] : 0);                                                   //~ race
}
//@ grid=4 block=64 zero
K treiber_push_right(int* head, int* next) {
  int v = blockIdx.x * 64 + threadIdx.x + 1;
  Ref<int, device> h(*head);
  int old = h.load(cuda::memory_order_relaxed);
  do next[v] = old; while (!h.compare_exchange_weak(old, v, cuda::memory_order_release, cuda::memory_order_relaxed));
}
//@ grid=4 block=64 zero
K treiber_pop_relaxed_wrong(int* head, int* next, int* out) {
  int v = blockIdx.x * 64 + threadIdx.x + 1;
  Ref<int, device> h(*head);
  int old = h.load(cuda::memory_order_relaxed);
  do next[v] = old; while (!h.compare_exchange_weak(old, v, cuda::memory_order_relaxed, cuda::memory_order_relaxed));   //~ race
  int top = h.load(cuda::memory_order_relaxed);
  out[v] = next[top];                                                                 //~ race
}
//@ grid=2 block=64 zero
K monotone_max_right(int* best, int* g) {
  int t = blockIdx.x * 64 + threadIdx.x;
  Ref<int, device> b(*best);
  int seen = b.load(cuda::memory_order_relaxed);
  while (seen < t && !b.compare_exchange_weak(seen, t, cuda::memory_order_relaxed)) {}
}
//@ block=128
K rotating_buffers_right(int* g, int n) {
  __shared__ int s[3][128]; int t = threadIdx.x;
  for (int i = 0; i < 6; i++) { s[i % 3][t] = g[t] + i; __syncthreads(); g[t] += s[i % 3][127 - t]; }
}
//@ block=128
K rotating_buffers_wrong(int* g, int n) {
  __shared__ int s[2][128]; int t = threadIdx.x;
  for (int i = 0; i < 6; i++) {
    s[i & 1 & (i / 4 ^ 1)][t] = g[t] + i;                                             //~ race
    __syncthreads();
    g[t] += s[i & 1 & (i / 4 ^ 1)][127 - t];                                          //~ race
  }
}
//@ grid=3 block=32
K three_d_index_right(int* g, int n) {
  int x = threadIdx.x & 3, y = threadIdx.x >> 2, z = blockIdx.x;
  g[(z * 8 + y) * 4 + x] = x + y;
}
//@ grid=3 block=32
K three_d_index_wrong(int* g, int n) {
  int x = threadIdx.x & 3, y = threadIdx.x >> 2, z = blockIdx.x;
  g[(z * 7 + y) * 4 + x] = x + y + z;                                                 //~ race
}
