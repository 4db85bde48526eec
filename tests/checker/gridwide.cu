// Grid barriers by hand, look-back, last blocks.
#include <cuda/atomic>
#define K extern "C" __global__ void
//@ grid=3 block=64 zero
K hand_barrier_right(int* c, int* d) { int t = threadIdx.x, g = blockIdx.x * 64 + t; d[g] = g; __syncthreads(); if (t == 0) { __threadfence(); atomicAdd(c, 1); while (*(volatile int*)c < 3) {} __threadfence(); } __syncthreads(); d[256 + g] = d[191 - g]; }
//@ grid=3 block=64 zero
K hand_barrier_no_last_sync_wrong(int* c, int* d) { int t = threadIdx.x, g = blockIdx.x * 64 + t;
   d[g] = g;  //~ race
   __syncthreads(); if (t == 0) { __threadfence(); atomicAdd(c, 1); while (*(volatile int*)c < 3) {} __threadfence(); }
   d[256 + g] = d[191 - g];  //~ race
 }
//@ grid=3 block=64 zero
K hand_barrier_no_first_sync_wrong(int* c, int* d) { int t = threadIdx.x, g = blockIdx.x * 64 + t;
   d[g] = g;  //~ race
   if (t == 0) { __threadfence(); atomicAdd(c, 1); while (*(volatile int*)c < 3) {} __threadfence(); } __syncthreads();
   d[256 + g] = d[191 - g];  //~ race
 }
//@ grid=3 block=64 zero
K hand_barrier_block_fence_wrong(int* c, int* d) { int t = threadIdx.x, g = blockIdx.x * 64 + t;
   d[g] = g;  //~ race
   __syncthreads(); if (t == 0) { __threadfence_block(); atomicAdd(c, 1); while (*(volatile int*)c < 3) {} __threadfence(); } __syncthreads();
   d[256 + g] = d[191 - g];  //~ race
 }
//@ grid=3 block=64 zero
K hand_barrier_twice_right(int* c, int* d) { int t = threadIdx.x, g = blockIdx.x * 64 + t; for (int k = 1; k <= 3; k++) { d[g] = g + k; __syncthreads(); if (t == 0) { __threadfence(); atomicAdd(c, 1); while (*(volatile int*)c < 3 * (2 * k - 1)) {} __threadfence(); } __syncthreads();
   d[256 + g] += d[191 - g]; __syncthreads(); if (t == 0) { __threadfence(); atomicAdd(c, 1); while (*(volatile int*)c < 6 * k) {} __threadfence(); } __syncthreads(); } }
//@ grid=3 block=64 zero
K hand_barrier_same_target_wrong(int* c, int* d) { int t = threadIdx.x, g = blockIdx.x * 64 + t; for (int k = 1; k <= 3; k++) {
   d[g] = g + k;  //~ race
   __syncthreads(); if (t == 0) { __threadfence(); atomicAdd(c, 1); while (*(volatile int*)c < 3) {} __threadfence(); } __syncthreads();
   d[256 + g] += d[191 - g];  //~ race
 } }
//@ grid=3 block=64 zero
K sense_right(int* c, int* d) { int t = threadIdx.x, g = blockIdx.x * 64 + t; volatile int* s = c + 1; for (int k = 0; k < 3; k++) { d[k * 192 + g] = g; __syncthreads(); if (t == 0) { int old = *s; __threadfence(); if (atomicAdd(c, 1) == 2) { c[0] = 0; __threadfence(); *s = old + 1; } else while (*s == old) {} __threadfence(); } __syncthreads(); d[600 + g] += d[k * 192 + 191 - g]; } }
//@ grid=3 block=64 zero
K sense_reset_after_wrong(int* c, int* d) { int t = threadIdx.x, g = blockIdx.x * 64 + t; volatile int* s = c + 1; for (int k = 0; k < 2; k++) { d[k * 192 + g] = g; __syncthreads(); if (t == 0) { int old = *s; __threadfence();
   if (atomicAdd(c, 1) == 2 + 3 * k) { __threadfence(); *s = old + 1; for (int w = 0; w < 100; w++) c[5] = w;
     c[0] = 3 + 3 * k;  //~ race
   } else while (*s == old) {} __threadfence(); } __syncthreads(); d[600 + g] += d[k * 192 + 191 - g]; } }
//@ grid=4 block=32 zero
K dissemination_right(int* f, int* d) { int b = blockIdx.x; if (threadIdx.x) return; d[b] = b; for (int r = 0; r < 2; r++) { int to = (b + (1 << r)) % 4; __threadfence(); atomicExch(&f[r * 4 + to], 1); while (!atomicAdd(&f[r * 4 + b], 0)) {} __threadfence(); } d[10 + b] = d[3 - b] + d[(b + 1) % 4] + d[(b + 2) % 4]; }
//@ grid=4 block=32 zero
K dissemination_one_round_wrong(int* f, int* d) { int b = blockIdx.x; if (threadIdx.x) return;
   d[b] = b;  //~ race
   for (int r = 0; r < 1; r++) { int to = (b + (1 << r)) % 4; __threadfence(); atomicExch(&f[r * 4 + to], 1); while (!atomicAdd(&f[r * 4 + b], 0)) {} __threadfence(); }
   d[10 + b] = d[(b + 1) % 4];  //~ race
 }
//@ grid=4 block=64 zero
K last_block_right(int* c, int* p, int* o) { __shared__ int s[64]; __shared__ bool last; int t = threadIdx.x; s[t] = blockIdx.x + t; __syncthreads(); for (int k = 32; k; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
   if (t == 0) { p[blockIdx.x] = s[0]; __threadfence(); last = atomicInc((unsigned*)c, gridDim.x) == gridDim.x - 1; } __syncthreads(); if (last) { s[t] = t < gridDim.x ? p[t] : 0; __syncthreads(); for (int k = 32; k; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); } if (t == 0) { o[0] = s[0]; c[0] = 0; } } }
//@ grid=4 block=64 zero
K last_block_no_fence_wrong(int* c, int* p, int* o) { __shared__ bool last; int t = threadIdx.x;
   if (t == 0) {
     p[blockIdx.x] = t + 1;  //~ race
     last = atomicInc((unsigned*)c, gridDim.x) == gridDim.x - 1; } __syncthreads(); if (last && t < gridDim.x)
     o[t] = p[t];  //~ race
 }
//@ grid=4 block=64 zero
K last_block_other_thread_stores_wrong(int* c, int* p, int* o) { __shared__ bool last; int t = threadIdx.x;
   p[blockIdx.x * 64 + t] = t + 1;  //~ race
   if (t == 0) { __threadfence();
     last = atomicInc((unsigned*)c, gridDim.x) == gridDim.x - 1; } __syncthreads(); if (last) for (int b = 0; b < 4; b++)
     o[t] += p[b * 64 + 63 - t];  //~ race
 }
//@ grid=4 block=64 zero
K last_block_all_fence_right(int* c, int* p, int* o) { __shared__ bool last; int t = threadIdx.x; p[blockIdx.x * 64 + t] = t + 1; __threadfence(); __syncthreads();
   if (t == 0) last = atomicInc((unsigned*)c, gridDim.x) == gridDim.x - 1; __syncthreads(); if (last) { __threadfence(); for (int b = 0; b < 4; b++) o[t] += p[b * 64 + 63 - t]; } }
//@ grid=4 block=64 zero
K last_block_all_fence_no_sync_wrong(int* c, int* p, int* o) { __shared__ bool last; int t = threadIdx.x;
   p[blockIdx.x * 64 + t] = t + 1;  //~ race
   __threadfence();
   if (t == 0) last = atomicInc((unsigned*)c, gridDim.x) == gridDim.x - 1; __syncthreads(); if (last) { __threadfence(); for (int b = 0; b < 4; b++)
     o[t] += p[b * 64 + 63 - t];  //~ race
   } }
//@ grid=4 block=64 zero
K last_block_flag_unsynced_wrong(int* c, int* p, int* o) { __shared__ bool last; int t = threadIdx.x; if (t == 0) { p[blockIdx.x] = 1; __threadfence();
     last = atomicInc((unsigned*)c, gridDim.x) == gridDim.x - 1;  //~ race
   } 
   if (last && t < 4)  //~ race
     o[t] = 1; }
//@ grid=4 block=64 zero
K last_warp_right(int* c, int* p, int* o) { int t = threadIdx.x, w = t / 32 + blockIdx.x * 2, l = t % 32; p[w * 32 + l] = l; __threadfence(); __syncwarp(); int n; if (l == 0) n = atomicAdd(c, 1); n = __shfl_sync(~0u, n, 0); if (n == 7) { __threadfence(); for (int k = 0; k < 8; k++) o[l] += p[k * 32 + 31 - l]; } }
//@ grid=4 block=64 zero
K last_warp_no_syncwarp_wrong(int* c, int* p, int* o) { int t = threadIdx.x, w = t / 32 + blockIdx.x * 2, l = t % 32;
   p[w * 32 + l] = l;  //~ race
   __threadfence(); int n; if (l == 0) n = atomicAdd(c, 1); n = __shfl_sync(~0u, n, 0); if (n == 7) { __threadfence(); for (int k = 0; k < 8; k++)
     o[l] += p[k * 32 + 31 - l];  //~ race
   } }
//@ grid=5 block=32 zero
K packed_lookback_right(unsigned long long* st, int* o) { int b = blockIdx.x; if (threadIdx.x) return; unsigned agg = b + 3, pre = 0; atomicExch(&st[b], (1ull << 32) | agg);
   for (int p = b - 1; p >= 0; p--) { unsigned long long v; do v = *(volatile unsigned long long*)&st[p]; while (!(v >> 32)); pre += (unsigned)v; if (v >> 32 == 2) break; } atomicExch(&st[b], (2ull << 32) | (agg + pre)); o[b] = pre; }
//@ grid=5 block=32 zero
K packed_lookback_plain_wrong(unsigned long long* st, int* o) { int b = blockIdx.x; if (threadIdx.x) return; unsigned agg = b + 3, pre = 0;
   st[b] = (1ull << 32) | agg;  //~ race
   for (int p = b - 1; p >= 0; p--) { unsigned long long v; do v = *(volatile unsigned long long*)&st[p]; while (!(v >> 32)); pre += (unsigned)v; } o[b] = pre; }
//@ grid=5 block=32 zero
K split_lookback_wrong(unsigned* st, int* o) { int b = blockIdx.x; if (threadIdx.x) return; unsigned agg = b + 3, pre = 0;
   ((volatile unsigned*)o)[100 + b] = agg; ((volatile unsigned*)st)[b] = 1;
   o[200 + b] = agg;  //~ race
   __threadfence_block(); ((volatile unsigned*)st)[50 + b] = 1;
   for (int p = b - 1; p >= 0; p--) { while (!((volatile unsigned*)st)[50 + p]) {} __threadfence();
     pre += o[200 + p];  //~ race
   } o[b] = pre; }
//@ grid=3 block=64 zero
K warp_lookback_right(unsigned long long* st, int* o, int* c) { __shared__ int bid, base; int t = threadIdx.x; if (t == 0) bid = atomicAdd(c, 1); __syncthreads(); int b = bid; unsigned agg = b + 1;
   if (t == 0) atomicExch(&st[32 + b], ((b == 0 ? 2ull : 1ull) << 32) | agg);
   if (t < 32 && b > 0) { int p = b - 1 - t; unsigned long long v; do { v = p >= 0 ? *(volatile unsigned long long*)&st[32 + p] : 2ull << 32; } while (__any_sync(~0u, !(v >> 32)));
     unsigned full = __ballot_sync(~0u, v >> 32 == 2); int stop = __ffs(full) - 1; unsigned x = t <= stop ? (unsigned)v : 0; for (int k = 16; k; k /= 2) x += __shfl_xor_sync(~0u, x, k); if (t == 0) { base = x; atomicExch(&st[32 + b], (2ull << 32) | (x + agg)); } } else if (t == 0) base = 0;
   __syncthreads(); o[b * 64 + t] = base + t; }
//@ grid=3 block=64 zero
K warp_lookback_base_unsynced_wrong(unsigned long long* st, int* o, int* c) { __shared__ int bid, base; int t = threadIdx.x; if (t == 0) bid = atomicAdd(c, 1); __syncthreads(); int b = bid; unsigned agg = b + 1;
   if (t == 0) { atomicExch(&st[b], (2ull << 32) | agg);
     base = b;  //~ race
   }
   o[b * 64 + t] = base + t;  //~ race
 }
//@ grid=2 block=64 zero
K done_flag_right(int* c, int* d) { __shared__ int go; int t = threadIdx.x; for (int k = 0; k < 8; k++) { if (t == 0) go = atomicAdd(c, 1) < 9; __syncthreads(); bool g = go; __syncthreads(); if (!g) break; d[blockIdx.x * 64 + t]++; } }
//@ grid=2 block=64 zero
K done_flag_break_before_barrier_wrong(int* c, int* d) { __shared__ int go; int t = threadIdx.x; for (int k = 0; k < 8; k++) {
    if (t == 0) go = atomicAdd(c, 1) < 9;  //~ race
    __syncthreads(); 
    if (!go) break;  //~ race
    d[blockIdx.x * 64 + t]++; } }
