// Irregular code over a graph: conditional updates, push and pull, worklists, union-find, reductions.
#include <cuda/atomic>
#define K extern "C" __global__ void
__device__ __forceinline__ int deg(int i) { return 3; }
__device__ __forceinline__ int nb(int i, int j) { return (i * 7 + j * 13 + 1) & 127; }

//@ grid=2 block=64 zero
K cv_atomic_right(int* v, int* m) { int i = blockIdx.x * 64 + threadIdx.x;
    for (int j = 0; j < deg(i); j++) if (v[nb(i, j)] + i > 5) atomicMax(m, v[nb(i, j)] + i); }
//@ grid=2 block=64 zero
K cv_plain_wrong(int* v, int* m) { int i = blockIdx.x * 64 + threadIdx.x;
  for (int j = 0; j < deg(i); j++) { int x = v[nb(i, j)] + i;
    if (x > *m)  //~ race
      *m = x; } }  //~ race
//@ grid=2 block=64 zero
K cv_guarded_atomic_wrong(int* v, int* m) { int i = blockIdx.x * 64 + threadIdx.x;   // plain guard before the atomic
  for (int j = 0; j < deg(i); j++) { int x = v[nb(i, j)] + i;
    if (x > *m)  //~ race
      atomicMax(m, x); } }  //~ race
//@ grid=2 block=64 zero
K cv_volatile_guard_right(int* v, int* m) { int i = blockIdx.x * 64 + threadIdx.x;   // volatile guard before the atomic
  for (int j = 0; j < deg(i); j++) { int x = v[nb(i, j)] + i; if (x > *(volatile int*)m) atomicMax(m, x); } }
//@ grid=2 block=64 zero
K cv_relaxed_guard_right(int* v, int* m) { int i = blockIdx.x * 64 + threadIdx.x;
    cuda::atomic_ref<int, cuda::thread_scope_device> r(*m);
  for (int j = 0; j < deg(i); j++) { int x = v[nb(i, j)] + i;
    if (x > r.load(cuda::memory_order_relaxed)) r.fetch_max(x, cuda::memory_order_relaxed); } }
//@ grid=2 block=64 zero
K ce_count_right(int* v, int* m) { int i = blockIdx.x * 64 + threadIdx.x;
    for (int j = 0; j < deg(i); j++) if (i < nb(i, j)) atomicAdd(m, 1); }
//@ grid=2 block=64 zero
K ce_count_wrong(int* v, int* m) { int i = blockIdx.x * 64 + threadIdx.x; for (int j = 0; j < deg(i); j++) if (i < nb(i, j)) (*m)++; }  //~ race
//@ grid=2 block=64 zero
K ce_block_scope_wrong(int* v, int* m) { int i = blockIdx.x * 64 + threadIdx.x;
    for (int j = 0; j < deg(i); j++) if (i < nb(i, j)) 
   atomicAdd_block(m, 1); }  //~ race
//@ grid=1 block=64 zero
K ce_block_scope_one_right(int* v, int* m) { int i = threadIdx.x;
    for (int j = 0; j < deg(i); j++) if (i < nb(i, j)) atomicAdd_block(m, 1); }
//@ grid=2 block=64 zero
K pull_right(int* v, int* w) { int i = blockIdx.x * 64 + threadIdx.x; int a = 0;
    for (int j = 0; j < deg(i); j++) a += v[nb(i, j)]; w[i] = a; }
//@ grid=2 block=64 zero
K pull_inplace_wrong(int* v, int* w) { int i = blockIdx.x * 64 + threadIdx.x; int a = 1; 
   for (int j = 0; j < deg(i); j++) a += v[nb(i, j)];  //~ race
   v[i] = a; }  //~ race
//@ grid=2 block=64 zero
K pull_bounds_wrong(int* v, int* w) { int i = blockIdx.x * 64 + threadIdx.x; int a = 0;
    for (int j = 0; j < deg(i); j++) 
    a += v[nb(i, j) + 1000];  //~ fault
    w[i] = a; }
//@ grid=2 block=64 zero
K push_right(int* v, int* w) { int i = blockIdx.x * 64 + threadIdx.x;
    for (int j = 0; j < deg(i); j++) atomicAdd(&w[nb(i, j)], v[i]); }
//@ grid=2 block=64 zero
K push_plain_wrong(int* v, int* w) { int i = blockIdx.x * 64 + threadIdx.x; for (int j = 0; j < deg(i); j++) w[nb(i, j)] += i; }  //~ race
//@ grid=2 block=64 zero
K push_min_guard_wrong(int* v, int* w) { int i = blockIdx.x * 64 + threadIdx.x; for (int j = 0; j < deg(i); j++) 
   if (i + 1 > w[nb(i, j)])  //~ race
      atomicMax(&w[nb(i, j)], i + 1); }  //~ race
//@ grid=2 block=64 zero
K push_same_value_right(int* v, int* w) { int i = blockIdx.x * 64 + threadIdx.x; for (int j = 0; j < deg(i); j++) w[nb(i, j)] = 1; }   // benign: same value
//@ grid=2 block=64 zero
K wl_right(int* c, int* w) { int i = blockIdx.x * 64 + threadIdx.x; if (i % 3 == 0) { int s = atomicAdd(c, 1);
    w[s] = i; } }
//@ grid=2 block=64 zero
K wl_plain_wrong(int* c, int* w) { int i = blockIdx.x * 64 + threadIdx.x; if (i % 3 == 0) { 
   int s = (*c)++;  //~ race
   w[s] = i; } }  //~ race
//@ grid=2 block=64 zero
K wl_bounds_wrong(int* c, int* w) { int i = blockIdx.x * 64 + threadIdx.x; if (i % 3 == 0) { int s = atomicAdd(c, 1); 
   w[1000 + s] = i; } }  //~ fault
//@ grid=2 block=64 zero
K wl_block_scope_wrong(int* c, int* w) { int i = blockIdx.x * 64 + threadIdx.x; if (i % 3 == 0) {
   int s = atomicAdd_block(c, 1);  //~ race
   w[s] = i; } }
//@ grid=2 block=64 zero
K wl_read_size_wrong(int* c, int* w) { int i = blockIdx.x * 64 + threadIdx.x; if (i % 3 == 0) { 
   int s = atomicAdd(c, 1); w[s] = i; }  //~ race
   if (i < *c) w[512 + i] = 1; }  //~ race
//@ grid=2 block=64 zero
K wl_consume_same_kernel_wrong(int* c, int* w) { int i = blockIdx.x * 64 + threadIdx.x; int s = atomicAdd(c, 1); 
   w[s] = i;  //~ race
   w[512 + i] = w[127 - i]; }  //~ race
//@ grid=2 block=64
K uf_plain_wrong(int* p, int* w) { int i = blockIdx.x * 64 + threadIdx.x; if (i >= 120) return;
   int q = p[i], b = p[i + 8];  //~ race
   if (q < b) p[b] = q; else if (b < q) p[q] = b; else p[i] = q + 1; }  //~ race
//@ grid=2 block=64 zero
K uf_cas_right(int* p, int* w) { int i = blockIdx.x * 64 + threadIdx.x; volatile int* vp = p;   // parent 0 = root
   int a = i & 15, b = (i * 5 + 3) & 31; 
   for (int k = 0; k < 64; k++) { while (vp[a]) a = vp[a] - 1; while (vp[b]) b = vp[b] - 1; if (a == b) break;
    if (a < b) { int t = a; a = b; b = t; } if (atomicCAS(&p[a], 0, b + 1) == 0) break; } }
//@ grid=2 block=64 zero
K uf_plain_find_wrong(int* p, int* w) { int i = blockIdx.x * 64 + threadIdx.x;
   int a = i & 15, b = (i * 5 + 3) & 31; 
   for (int k = 0; k < 64; k++) { 
     while (p[a]) a = p[a] - 1;  //~ race
     while (p[b]) b = p[b] - 1; if (a == b) break; if (a < b) { int t = a; a = b; b = t; } 
     if (atomicCAS(&p[a], 0, b + 1) == 0) break; } }  //~ race
//@ block=128
K tree_right(int* v, int* o) { __shared__ int s[128]; int t = threadIdx.x; s[t] = v[t]; __syncthreads();
  for (int d = 64; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); } if (t == 0) *o = s[0]; }
//@ block=128
K tree_no_first_wrong(int* v, int* o) { __shared__ int s[128]; int t = threadIdx.x; 
  s[t] = v[t];  //~ race
  for (int d = 64; d > 0; d >>= 1) { 
     if (t < d) s[t] += s[t + d];  //~ race
     __syncthreads(); } if (t == 0) *o = s[0]; }
//@ block=128
K tree_no_inner_wrong(int* v, int* o) { __shared__ int s[128]; int t = threadIdx.x; s[t] = v[t]; __syncthreads();
  for (int d = 64; d > 0; d >>= 1) { 
     if (t < d) s[t] += s[t + d]; }  //~ race
  __syncthreads(); if (t == 0) *o = s[0]; }
//@ block=128
K tree_barrier_inside_if_wrong(int* v, int* o) { __shared__ int s[128]; int t = threadIdx.x; s[t] = v[t];
    __syncthreads();
  for (int d = 64; d > 0; d >>= 1) { if (t < d) { s[t] += s[t + d]; 
     __syncthreads(); } }  //~ synchronization
  if (t == 0) *o = s[0]; }
//@ block=128
K tree_last_warp_wrong(int* v, int* o) { __shared__ int s[128]; int t = threadIdx.x; s[t] = v[t]; __syncthreads();
  for (int d = 64; d > 16; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t < 32) { for (int d = 16; d > 0; d >>= 1) 
      if (t < d) s[t] += s[t + d]; }  //~ race
   if (t == 0) *o = s[0]; }
//@ block=128
K tree_last_warp_right(int* v, int* o) { __shared__ int s[128]; int t = threadIdx.x; s[t] = v[t]; __syncthreads();
  for (int d = 64; d > 16; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t < 32) { for (int d = 16; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncwarp(); } }
   if (t == 0) *o = s[0]; }
//@ grid=2 block=128 zero
K block_reduce_right(int* v, int* o) { __shared__ int part[4]; int t = threadIdx.x, x = v[t] + t;
  for (int d = 16; d; d >>= 1) x += __shfl_down_sync(~0u, x, d);
  if ((t & 31) == 0) part[t >> 5] = x;
  __syncthreads();
  if (t < 32) { x = t < 4 ? part[t] : 0; for (int d = 16; d; d >>= 1) x += __shfl_down_sync(~0u, x, d);
    if (t == 0) atomicAdd(o, x); } }
//@ grid=2 block=128 zero
K block_reduce_no_barrier_wrong(int* v, int* o) { __shared__ int part[4]; int t = threadIdx.x, x = v[t] + t;
  for (int d = 16; d; d >>= 1) x += __shfl_down_sync(~0u, x, d);
  if ((t & 31) == 0) part[t >> 5] = x;  //~ race
  if (t < 32) { x = t < 4 ? part[t] : 0;  //~ race
  for (int d = 16; d; d >>= 1) x += __shfl_down_sync(~0u, x, d); if (t == 0) atomicAdd(o, x); } }
//@ grid=2 block=128 zero
K block_reduce_plain_out_wrong(int* v, int* o) { __shared__ int part[4]; int t = threadIdx.x, x = v[t] + t;
  for (int d = 16; d; d >>= 1) x += __shfl_down_sync(~0u, x, d);
  if ((t & 31) == 0) part[t >> 5] = x;
  __syncthreads();
  if (t < 32) { x = t < 4 ? part[t] : 0; for (int d = 16; d; d >>= 1) x += __shfl_down_sync(~0u, x, d); if (t == 0) 
    *o += x; } }  //~ race
//@ grid=2 block=128 zero
K warp_aggregate_right(int* c, int* w) { int t = threadIdx.x; bool p = (t * 7) % 5 < 2;
    unsigned m = __ballot_sync(~0u, p); int lead = __ffs(m) - 1, base = 0;
  if ((t & 31) == lead) base = atomicAdd(c, __popc(m)); base = __shfl_sync(~0u, base, lead);
    if (p) w[base + __popc(m & ((1u << (t & 31)) - 1))] = t; }
//@ grid=2 block=128 zero
K warp_aggregate_no_prefix_wrong(int* c, int* w) { int t = threadIdx.x; bool p = (t * 7) % 5 < 2;
    unsigned m = __ballot_sync(~0u, p); int lead = __ffs(m) - 1, base = 0;
  if ((t & 31) == lead) base = atomicAdd(c, __popc(m)); base = __shfl_sync(~0u, base, lead); 
  if (p) w[base] = t; }  //~ race
//@ grid=1 block=128 zero
K block_min_smem_reuse_wrong(int* v, int* o) { __shared__ int part[4]; int t = threadIdx.x;
    for (int k = 0; k < 2; k++) { int x = v[t] + t + k;
  for (int d = 16; d; d >>= 1) x = min(x, __shfl_xor_sync(~0u, x, d));
  if ((t & 31) == 0) part[t >> 5] = x;  //~ race
  __syncthreads();
  o[k * 128 + t] = part[0] + part[3]; } }  //~ race
