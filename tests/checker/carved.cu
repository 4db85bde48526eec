// Indices, carved arrays, the heap, barriers in branches and loops, in kernels of one line.
#include <cstring>
#define K extern "C" __global__ void
#define ALL 0xffffffffu
//@ block=64
K local_array2_wrong(const int* a, int* o) { int l[8]; for (int i = 0; i < 4; i++) l[i] = a[i + threadIdx.x]; o[threadIdx.x] = l[(threadIdx.x & 3) + 1]; }   //~ uninitialized
//@ block=64
K local_array2_right(const int* a, int* o) { int l[8]; for (int i = 0; i < 4; i++) l[i] = a[i + threadIdx.x]; o[threadIdx.x] = l[threadIdx.x & 3]; }
//@ block=64 shared=512
K carve_overlap_wrong(const int* in, int* out) { extern __shared__ int s[]; int* a = s; int* b = s + 60; int t = threadIdx.x; a[t] = in[t]; b[t] = in[t + 64]; __syncthreads(); out[t] = a[t] + b[t]; }   //~ race
//@ block=64 shared=512
K carve_apart_right(const int* in, int* out) { extern __shared__ int s[]; int* a = s; int* b = s + 64; int t = threadIdx.x; a[t] = in[t]; b[t] = in[t + 64]; __syncthreads(); out[t] = a[t] + b[t]; }
//@ block=64 shared=256
K carve_past_wrong(const int* in, int* out) { extern __shared__ int s[]; int* b = s + 32; int t = threadIdx.x; b[t] = in[t]; __syncthreads(); out[t] = b[63 - t]; }   //~ fault
//@ block=64
K struct_in_shared_wrong(int* a, int n) { struct Q { int head, tail, item[62]; }; __shared__ Q q; int t = threadIdx.x; if (t == 0) q.head = q.tail = 0; if (t < 62) q.item[t] = a[t]; __syncthreads(); int i = q.head + t; if (t == 5) q.head = 7; a[t] = i; }      //~ race
//@ block=64
K struct_in_shared_right(int* a, int n) { struct Q { int head, tail, item[62]; }; __shared__ Q q; int t = threadIdx.x; if (t == 0) q.head = q.tail = 0; if (t < 62) q.item[t] = a[t]; __syncthreads(); int i = q.head + t; __syncthreads(); if (t == 5) q.head = 7; a[t] = i; }
//@ block=64
K memcpy_overlap_wrong(char* a, int n) { int t = threadIdx.x; memcpy(a + t * 6, a + 1024 + t * 8, 8); }    //~ race
//@ block=64
K memcpy_apart_right(char* a, int n) { int t = threadIdx.x; memcpy(a + t * 8, a + 1024 + t * 8, 8); }
//@ block=64
K memset_overlap_wrong(char* a, int n) { int t = threadIdx.x; memset(a + t * 3, t, 4); }    //~ race
//@ block=64
K memset_same_right(char* a, int n) { int t = threadIdx.x; memset(a + t * 3, 7, 4); }
//@ block=64 zero
K vec_load_beside_atomic_wrong(int* c, int4* o) { int t = threadIdx.x; if (t == 0) atomicAdd(&c[2], 1); else if (t == 33) o[0] = *(int4*)c; }       //~ race
//@ block=64 zero
K vec_load_beside_right(int* c, int4* o) { int t = threadIdx.x; if (t == 0) atomicAdd(&c[4], 1); else if (t == 33) o[0] = *(int4*)c; }
//@ block=64
K wrong_side_barrier_wrong(int* a, int n) { __shared__ int s[64]; int t = threadIdx.x; for (int i = 0; i < n; i++) { __syncthreads(); s[t] = a[t] + i; a[t] = s[(t + 1) % 64]; } }   //~ race
//@ block=64
K both_sides_barrier_right(int* a, int n) { __shared__ int s[64]; int t = threadIdx.x; for (int i = 0; i < n; i++) { __syncthreads(); s[t] = a[t] + i; __syncthreads(); a[t] = s[(t + 1) % 64]; } }
//@ block=64
K one_barrier_alternating_right(int* a, int n) { __shared__ int s[2][64]; int t = threadIdx.x; for (int i = 0; i < n; i++) { s[i & 1][t] = a[t] + i; __syncthreads(); a[t] = s[i & 1][(t + 1) % 64]; } }
//@ block=64
K one_barrier_three_rounds_wrong(int* a, int n) { __shared__ int s[2][64]; int t = threadIdx.x; for (int i = 0; i < n; i++) { s[i % 3 & 1][t] = a[t] + i; __syncthreads(); a[t] = s[i % 3 & 1][(t + 1) % 64]; } }    //~ race
//@ block=96
K named_both_ways_right(int* a, int n) {
  __shared__ int s[96]; int t = threadIdx.x;
  if (t < 64) { s[t] = a[t]; asm volatile("bar.arrive 1, 96;" ::: "memory"); asm volatile("bar.sync 2, 96;" ::: "memory"); }
  else { asm volatile("bar.sync 1, 96;" ::: "memory"); a[t] = s[t - 64]; s[t] = 1; asm volatile("bar.arrive 2, 96;" ::: "memory"); }
  if (t < 32) a[t] = s[t + 64];
}
//@ block=32
K match_groups_wrong(const int* in, int* out) { __shared__ int s[8]; int k = in[threadIdx.x] & 7; unsigned m = __match_any_sync(ALL, k); if ((int)threadIdx.x == __ffs(m) - 1) s[k] = __popc(m); out[threadIdx.x] = s[k]; }   //~ race
//@ block=32
K match_groups_right(const int* in, int* out) { __shared__ int s[8]; int k = in[threadIdx.x] & 7; unsigned m = __match_any_sync(ALL, k); if ((int)threadIdx.x == __ffs(m) - 1) s[k] = __popc(m); __syncwarp(m); out[threadIdx.x] = s[k]; }
//@ block=32
K match_groups_other_wrong(const int* in, int* out) { __shared__ int s[8]; int k = in[threadIdx.x] & 7; unsigned m = __match_any_sync(ALL, k); if ((int)threadIdx.x == __ffs(m) - 1) s[k] = __popc(m); __syncwarp(m); out[threadIdx.x] = s[k ^ 1]; }    //~ race
//@ block=32
K reduce_add_sync_right(const int* in, int* out) { int s = __reduce_add_sync(ALL, in[threadIdx.x]); if (threadIdx.x == 0) out[0] = s; }
//@ block=32
K shfl_undefined_wrong(const int* in, int* out) { int x; if (threadIdx.x < 31) x = in[threadIdx.x]; int y = __shfl_down_sync(ALL, x, 1); out[threadIdx.x] = y; }    //~ uninitialized
//@ block=32
K shfl_undefined_unused_right(const int* in, int* out) { int x; if (threadIdx.x < 31) x = in[threadIdx.x]; int y = __shfl_down_sync(ALL, x, 1); if (threadIdx.x < 30) out[threadIdx.x] = y; }
//@ block=64
K heap_use_after_free_wrong(int* out, int n) { int* p = (int*)malloc(64); p[0] = threadIdx.x; free(p); out[threadIdx.x] = p[0]; }    //~ fault
//@ block=64
K heap_double_free_wrong(int* out, int n) { int* p = (int*)malloc(64); p[0] = threadIdx.x; out[threadIdx.x] = p[0]; free(p); if (n) free(p); }    //~ fault
//@ block=64
K heap_past_end_wrong(int* out, int n) { int* p = (int*)malloc(64); for (int i = 0; i <= 16; i++) p[i] = i; out[threadIdx.x] = p[n]; free(p); }    //~ fault
//@ block=64
K heap_shared_by_block_wrong(int* out, int n) { __shared__ int* p; if (threadIdx.x == 0) p = (int*)malloc(256); __syncthreads(); p[threadIdx.x] = threadIdx.x; out[threadIdx.x] = p[63 - threadIdx.x]; __syncthreads(); if (threadIdx.x == 0) free(p); }    //~ race
//@ block=64
K heap_shared_by_block_right(int* out, int n) { __shared__ int* p; if (threadIdx.x == 0) p = (int*)malloc(256); __syncthreads(); p[threadIdx.x] = threadIdx.x; __syncthreads(); out[threadIdx.x] = p[63 - threadIdx.x]; __syncthreads(); if (threadIdx.x == 0) free(p); }
//@ block=64 zero
K device_variable_counter_right(int* out, int n) { int i = atomicAdd(out, 1); if (i == 63) out[1] = i; }
__device__ int total; __device__ int table[64];
//@ block=64 grid=2
K device_variable_wrong(const int* in, int n) { total += in[threadIdx.x]; }      //~ race
//@ block=64 grid=2
K device_table_right(const int* in, int n) { if (blockIdx.x == 0) table[threadIdx.x] = in[threadIdx.x]; }
//@ block=64 grid=2
K device_table_wrong(const int* in, int* out) { if (blockIdx.x == 0) table[threadIdx.x] = in[threadIdx.x]; else out[threadIdx.x] = table[threadIdx.x]; }    //~ race
//@ block=64
K recursion_shared_wrong(int* a, int n) { __shared__ int s[65]; int t = threadIdx.x; s[t] = a[t]; int d = 1; do { s[t] += s[t + 1]; d++; } while (d < n); a[t] = s[t]; }    //~ race
//@ block=128
K tiles_of_two_warps_wrong(int* a, int n) { __shared__ int s[128]; int t = threadIdx.x; s[t] = a[t]; asm volatile("bar.sync %0, 64;" :: "r"(1 + t / 64) : "memory"); a[t] = s[(t + 64) % 128]; }    //~ race
//@ block=128
K tiles_of_two_warps_right(int* a, int n) { __shared__ int s[128]; int t = threadIdx.x; s[t] = a[t]; asm volatile("bar.sync %0, 64;" :: "r"(1 + t / 64) : "memory"); a[t] = s[t ^ 63]; }
//@ block=64 grid=3
K blocks_overlap_by_ceil_wrong(int* a, int n) { int per = (100 + 2) / 3 + 1; for (int i = blockIdx.x * (per - 1) + threadIdx.x; i < (blockIdx.x + 1) * per && i < 100; i += blockDim.x) a[i] += 1; }    //~ race
//@ block=64 grid=3
K blocks_apart_right(int* a, int n) { int per = (100 + 2) / 3; for (int i = blockIdx.x * per + threadIdx.x; i < (blockIdx.x + 1) * per && i < 100; i += blockDim.x) a[i] += 1; }
//@ block=33
K odd_block_tail_wrong(int* a, int n) { __shared__ int s[33]; int t = threadIdx.x; s[t] = a[t]; __syncwarp(); a[t] = s[32 - t]; }    //~ race
//@ block=33
K odd_block_tail_right(int* a, int n) { __shared__ int s[33]; int t = threadIdx.x; s[t] = a[t]; __syncthreads(); a[t] = s[32 - t]; }
//@ block=64 zero
K lock_released_twice_right(int* lock, int* d) { if (threadIdx.x % 32) return; while (atomicExch(lock, 1)) {} __threadfence(); d[0] += 1; __threadfence(); atomicExch(lock, 0); }
//@ block=64 zero
K lock_released_early_wrong(int* lock, int* d) { if (threadIdx.x % 32) return; while (atomicExch(lock, 1)) {} __threadfence(); int x = d[0] + 1; __threadfence(); atomicExch(lock, 0); d[0] = x; }    //~ race
//@ block=64 zero
K two_locks_order_right(int* lock, int* d) { if (threadIdx.x % 32) return; while (atomicExch(lock, 1)) {} while (atomicExch(lock + 1, 1)) {} __threadfence(); d[0] += 1; d[1] += 1; __threadfence(); atomicExch(lock + 1, 0); atomicExch(lock, 0); }
//@ grid=2 block=32 zero
K lock_or_atomic_wrong(int* lock, int* d) { if (threadIdx.x) return; if (blockIdx.x == 0) { while (atomicExch(lock, 1)) {} __threadfence(); d[0] += 1; __threadfence(); atomicExch(lock, 0); } else atomicAdd(d, 1); }    //~ race
//@ grid=2 block=32 zero
K reader_skips_lock_wrong(int* lock, int* d) { if (threadIdx.x) return; if (blockIdx.x == 0) { while (atomicExch(lock, 1)) {} __threadfence(); d[0] += 1; __threadfence(); atomicExch(lock, 0); } else d[1] = d[0]; }    //~ race
//@ grid=4 block=32 zero
K hash_chain_wrong(int* head, int* next) { int i = blockIdx.x * 32 + threadIdx.x, b = i % 8; next[i] = head[b]; head[b] = i; }     //~ race
//@ grid=4 block=32 zero
K hash_chain_right(int* head, int* next) { int i = blockIdx.x * 32 + threadIdx.x, b = i % 8; next[i] = atomicExch(&head[b], i); }
//@ grid=4 block=32 zero
K hash_chain_walk_wrong(int* head, int* next) { int i = blockIdx.x * 32 + threadIdx.x, b = i % 8; next[i] = atomicExch(&head[b], i + 1); int n = 0; for (int j = i; j && n < 5; n++) j = next[j]; head[64 + i] = n; }     //~ race
//@ grid=4 block=32
K read_then_zero_wrong(int* a, int* out) { int i = blockIdx.x * 32 + threadIdx.x; out[i] = a[i / 2]; a[i / 2] = 0; }    //~ race
//@ grid=4 block=32
K swap_neighbours_right(int* a, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i % 2 == 0) { int x = a[i]; a[i] = a[i + 1]; a[i + 1] = x; } }
//@ grid=4 block=32
K swap_neighbours_wrong(int* a, int n) { int i = blockIdx.x * 32 + threadIdx.x; int x = a[i]; a[i] = a[i + 1]; a[i + 1] = x; }    //~ race
// barrier divergence
//@ block=64
K nested_ifs_right(int* a, int n) { int t = threadIdx.x; if (n > 2) { if (blockDim.x > 32) { a[t] = 1; __syncthreads(); a[t] += 2; } } }
//@ block=64
K do_while_by_lane_wrong(int* a, int n) { int t = threadIdx.x, i = 0; do { a[t] = i; __syncthreads(); i++; } while (i < (t & 1) + 2); a[t] = 9; }   //~ synchronization
//@ block=64
K do_while_uniform_right(int* a, int n) { int t = threadIdx.x, i = 0; do { a[t] = i; __syncthreads(); i++; } while (i < (n & 1) + 2); a[t] = 9; }
//@ block=64
K goto_over_wrong(int* a, int n) { int t = threadIdx.x; if (t == 5) goto end; a[t] = 1; __syncthreads(); a[t ^ 1] = 2; end: a[t] += 3; }  //~ synchronization, race
//@ block=64
K ternary_bound_wrong(int* a, int n) { int t = threadIdx.x; int m = t < 32 ? 3 : n; for (int i = 0; i < m; i++) { a[t] += i; __syncthreads(); } a[t] *= 2; }  //~ synchronization
//@ block=64
K ternary_bound_right(int* a, int n) { int t = threadIdx.x; int m = t < 32 ? 4 : n; for (int i = 0; i < m; i++) { a[t] += i; __syncthreads(); } a[t] *= 2; }
__device__ __noinline__ void helper_sync(int* a, int t) { a[t]++; __syncthreads(); a[t]--; }   //~ synchronization helper_wrong
//@ block=64
K helper_wrong(int* a, int n) { int t = threadIdx.x; if (t > 30) helper_sync(a, t); a[t] = t; }
//@ block=64
K helper_right(int* a, int n) { int t = threadIdx.x; if (n > 3) helper_sync(a, t); a[t] = t; }
//@ block=64
K shared_condition_wrong(int* a, int n) {
  __shared__ int go; int t = threadIdx.x;
  if (t == 0) go = n;                          //~ race
  if (go > 3) { a[t] = 1; __syncthreads(); }   //~ race, synchronization
  a[t] = 2;
}
//@ block=64
K shared_condition_right(int* a, int n) {
  __shared__ int go; int t = threadIdx.x;
  if (t == 0) go = n;
  __syncthreads();
  if (go > 3) { a[t] = 1; __syncthreads(); }
  a[t] = 2;
}
//@ block=64
K two_loops_wrong(int* a, int n) {
  int t = threadIdx.x;
  for (int i = 0; i < n; i++) { for (int j = 0; j < t % 2; j++) __syncthreads(); a[t] = i; }   //~ synchronization
}
//@ block=96
K sub_block_right(int* a, int n) { int t = threadIdx.x; if (t < 64) { asm volatile("bar.sync 2, 64;"); } a[t] = t; if (t >= 64) asm volatile("bar.sync 3, 32;"); }
// within a warp
//@ block=32
K lane_exchange_wrong(int* a, int n) { __shared__ int s[32]; int t = threadIdx.x; s[t] = a[t]; a[t] = s[31 - t]; }    //~ race
//@ block=32
K lane_exchange_right(int* a, int n) { __shared__ int s[32]; int t = threadIdx.x; s[t] = a[t]; __syncwarp(); a[t] = s[31 - t]; }
//@ block=32
K lane_exchange_shfl_is_none_wrong(int* a, int n) { __shared__ int s[32]; int t = threadIdx.x; s[t] = a[t]; int x = __shfl_sync(ALL, t, 0); a[t] = s[31 - t] + x; }    //~ race
//@ block=64
K odd_lanes_wrong(int* a, int n) { __shared__ int s[64]; int t = threadIdx.x; if (t & 1) { s[t] = t; __syncwarp(0xaaaaaaaa); a[t] = s[t - 2 & 63]; } else { s[t] = 2 * t; __syncwarp(0x55555555); a[t] = s[t + 1]; } }   //~ race
//@ block=64
K odd_lanes_right(int* a, int n) { __shared__ int s[64]; int t = threadIdx.x; if (t & 1) { s[t] = t; __syncwarp(0xaaaaaaaa); a[t] = s[(t & 32) + ((t - 2) & 31)]; } else { s[t] = 2 * t; __syncwarp(0x55555555); a[t] = s[(t & 32) + ((t + 2) & 31)]; } }
//@ block=64
K odd_lanes_across_wrong(int* a, int n) { __shared__ int s[64]; int t = threadIdx.x; if (t & 1) { s[t] = t; __syncwarp(0xaaaaaaaa); a[t] = s[(t - 2) & 63]; } }  //~ race
//@ block=32
K mask_omits_self_wrong(int* a, int n) { int t = threadIdx.x; if (t < 16) a[t] = __shfl_sync(0xffff0000, t, 17); }    //~ synchronization
//@ block=32
K mask_too_many_wrong(int* a, int n) { int t = threadIdx.x; if (t < 16) { a[t] = 1; } else return; __syncwarp(0x0001ffff); a[t] = 2; }  //~ synchronization
//@ block=32
K vote_and_publish_right(int* a, int n) { __shared__ int s; int t = threadIdx.x; unsigned m = __ballot_sync(ALL, a[t] > 3); if (t == __ffs(m) - 1) s = t; __syncwarp(); a[t] = s; }
//@ block=32
K vote_and_publish_wrong(int* a, int n) { __shared__ int s; int t = threadIdx.x; unsigned m = __ballot_sync(ALL, a[t] > 3); if (t == __ffs(m) - 1) s = t; a[t] = s; }  //~ race
// index arithmetic
//@ block=64
K xor_right(int* a, int n) { a[threadIdx.x ^ 5] = threadIdx.x; }
//@ block=64
K or_wrong(int* a, int n) { a[threadIdx.x | 5] = threadIdx.x; }    //~ race
//@ block=64
K mul_mod_right(int* a, int n) { a[threadIdx.x * 5 % 64] = threadIdx.x; }
//@ block=64
K mul_mod_wrong(int* a, int n) { a[threadIdx.x * 6 % 64] = threadIdx.x; }   //~ race
//@ block=64
K div_wrong(int* a, int n) { a[threadIdx.x / 2] = threadIdx.x; }   //~ race
//@ block=64
K div_guard_right(int* a, int n) { if (threadIdx.x % 2 == 0) a[threadIdx.x / 2] = threadIdx.x; }
//@ block=64
K triangle_index_right(int* a, int n) { int t = threadIdx.x % 8, b = threadIdx.x / 8; if (b <= t) a[t * (t + 1) / 2 + b] = t; }
//@ block=64
K triangle_index_wrong(int* a, int n) { int t = threadIdx.x % 8, b = threadIdx.x / 8; if (b <= t + 1) a[t * (t + 1) / 2 + b] = t; }   //~ race
//@ block=64
K rotate_wrong(int* a, int n) { int t = threadIdx.x; int x = a[(t + n) % 64]; a[t] = x; }   //~ race
//@ block=64
K rotate_right(int* a, int n) { int t = threadIdx.x; int x = a[(t + n) % 64]; __syncthreads(); a[t] = x; }
//@ block=64 grid=2
K rotate_grid_wrong(int* a, int n) { int t = blockIdx.x * 64 + threadIdx.x; int x = a[(t + n) % 128]; __syncthreads(); a[t] = x; }   //~ race
//@ block=64
K char_cast_wrong(int* a, int n) { char* c = (char*)a; int t = threadIdx.x; c[t] = t; if (t < 16) a[t] = t; }    //~ race
//@ block=64
K char_cast_apart_right(int* a, int n) { char* c = (char*)a; int t = threadIdx.x; c[t] = t; if (t < 16) a[t + 16] = t; }
//@ block=64
K float4_as_words_wrong(float4* a, float* b) { int t = threadIdx.x; float* f = (float*)a; if (t < 32) a[t] = make_float4(t, t, t, t); else f[t * 4 - 128 + 3] = 1; } //~ race
// function pointers
__device__ int inc(int* a, int t) { return a[t] + 1; }
__device__ int nxt(int* a, int t) { return a[t + 1]; }   //~ race by_pointer_wrong
//@ block=64
K by_pointer_wrong(int* a, int n) { int (*f)(int*, int) = n > 8 ? inc : nxt; a[threadIdx.x] = f(a, threadIdx.x); }   //~ race
// atomics mixed
//@ block=64
K exch_and_plain_wrong(int* a, int n) { int t = threadIdx.x; if (t < 32) atomicExch(&a[t], t); else a[t - 32] = 3; }   //~ race
//@ block=64
K exch_and_barrier_right(int* a, int n) { int t = threadIdx.x; if (t < 32) atomicExch(&a[t], t); __syncthreads(); if (t >= 32) a[t - 32] = 3; }
//@ block=64 zero
K atomic_index_right(int* c, int* a) { int i = atomicInc((unsigned*)c, 1000); a[i] = threadIdx.x; }
//@ block=64 zero
K atomic_wraps_wrong(int* c, int* a) { int i = atomicInc((unsigned*)c, 31); a[i] = threadIdx.x; }   //~ race
//@ block=64 zero
K atomic_sub_index_right(int* c, int* a) { int i = atomicSub(c, 1); a[-i] = threadIdx.x; }
//@ block=64 zero
K atomic_result_unused_index_wrong(int* c, int* a) { atomicAdd(c, 1); a[*c] = threadIdx.x; }     //~ race
// loops with tiles
//@ block=64
K stride_reduce_skips_wrong(int* a, int n) {
  __shared__ int s[64]; int t = threadIdx.x; s[t] = a[t]; __syncthreads();
  for (int d = 1; d < 64; d *= 2) { if (t % (2 * d) == 0) s[t] += s[t + d]; if (d != 4) __syncthreads(); }     //~ race
  if (t == 0) a[0] = s[0];
}
//@ block=64
K warp_synchronous_steps_wrong(int* a, int n) {
  __shared__ int s[64]; int t = threadIdx.x; s[t] = a[t]; __syncthreads();
  if (t < 32) for (int d = 32; d; d >>= 1) s[t] += s[t + d & 63];   //~ race
  __syncthreads();
  if (t == 0) a[0] = s[0];
}
//@ block=64
K stencil_ghost_wrong(int* a, int* b) {
  __shared__ int s[66]; int t = threadIdx.x;
  s[t + 1] = a[t]; if (t == 0) s[0] = 0; if (t == 63) s[65] = 0;
  b[t] = s[t] + s[t + 1] + s[t + 2];      //~ race
}
//@ block=64
K ping_pong_swapped_late_wrong(int* a, int n) {
  __shared__ int s[2][64]; int t = threadIdx.x; s[0][t] = a[t];
  for (int i = 0; i < n; i++) { __syncthreads(); s[i & 1][t] = s[i & 1][(t + 1) & 63] + 1; }    //~ race
  a[t] = s[0][t];
}
//@ block=64
K ping_pong_right(int* a, int n) {
  __shared__ int s[2][64]; int t = threadIdx.x; s[0][t] = a[t];
  for (int i = 0; i < n; i++) { __syncthreads(); s[~i & 1][t] = s[i & 1][(t + 1) & 63] + 1; }
  a[t] = s[0][t];
}
//@ block=64
K matrix_diagonal_right(int* a, int n) { __shared__ int s[8][9]; int x = threadIdx.x % 8, y = threadIdx.x / 8; s[y][x] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = s[x][y]; }
//@ block=64
K matrix_overhang_wrong(int* a, int n) { __shared__ int s[8][8]; int x = threadIdx.x % 8, y = threadIdx.x / 8; s[y][x + (y == 7)] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = s[x][y]; }  //~ fault
//@ block=64
K row_overhang_wrong(int* a, int n) { __shared__ int s[8][8]; int x = threadIdx.x % 8, y = threadIdx.x / 8; s[y][x + (y == 3)] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = s[x][y]; }  //~ race
// Histogram by private copies, merged by another mapping without barrier
//@ block=64
K private_bins_wrong(const int* in, int* out) {
  __shared__ int h[64][8]; int t = threadIdx.x;
  for (int i = 0; i < 8; i++) h[t][i] = 0;
  for (int i = 0; i < 8; i++) h[t][in[t + i] & 7]++;        //~ race
  if (t < 8) { int s = 0; for (int i = 0; i < 64; i++) s += h[i][t]; out[t] = s; }    //~ race
}
//@ block=64
K private_bins_right(const int* in, int* out) {
  __shared__ int h[64][8]; int t = threadIdx.x;
  for (int i = 0; i < 8; i++) h[t][i] = 0;
  for (int i = 0; i < 8; i++) h[t][in[t + i] & 7]++;
  __syncthreads();
  if (t < 8) { int s = 0; for (int i = 0; i < 64; i++) s += h[i][t]; out[t] = s; }
}
// Uninitialized
//@ block=64
K shared_partly_set_wrong(int* a, int n) { __shared__ int s[64]; int t = threadIdx.x; if (t != 17) s[t] = a[t]; __syncthreads(); a[t] = s[63 - t]; }    //~ uninitialized
//@ block=64
//@ block=64 uninit=0
K output_is_read_wrong(int* out, const int* in) { out[threadIdx.x] += in[threadIdx.x]; }    //~ uninitialized
