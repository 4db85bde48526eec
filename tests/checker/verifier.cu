// Small kernels of the kind that verifiers are tried on: divergent barriers, races in a CTA, races between CTAs.
#define K extern "C" __global__ void
__device__ void helper(int* a) {
  a[threadIdx.x] += 1;
  __syncthreads();  //~ synchronization bd_in_function_wrong
}

//@ block=64
K bd_if_tid_wrong(int* a, int n) { if (threadIdx.x < 32) { a[threadIdx.x] = 1; 
  __syncthreads(); } }  //~ synchronization
//@ block=64
K bd_if_else_wrong(int* a, int n) { if (threadIdx.x & 1) { a[threadIdx.x] = 1; 
  __syncthreads(); }  //~ synchronization
  else { a[threadIdx.x] = 2; 
  __syncthreads(); } }
//@ block=64
K bd_loop_trip_wrong(int* a, int n) { for (int i = 0; i < threadIdx.x; i++) { a[64 + threadIdx.x] = i; 
  __syncthreads(); } }  //~ synchronization
//@ block=64
K bd_uniform_right(int* a, int n) { if (n > 2) { a[threadIdx.x] = 1; __syncthreads();
    a[64 + threadIdx.x] = a[63 - threadIdx.x]; } }
//@ block=64
K bd_uniform_loop_right(int* a, int n) { for (int i = 0; i < n; i++) { a[threadIdx.x] += i; __syncthreads(); } }
//@ block=64
K bd_data_dependent_wrong(int* a, int n) { if (a[threadIdx.x] > 3) 
  __syncthreads();  //~ synchronization
  a[threadIdx.x] = 1; }
//@ block=64
K bd_return_early_right(int* a, int n) { if (threadIdx.x >= 40) return; a[threadIdx.x] = 1; __syncthreads();
    a[64 + threadIdx.x] = a[39 - threadIdx.x]; }
//@ block=64
K bd_break_wrong(int* a, int n) { for (int i = 0; i < 10; i++) { if (a[threadIdx.x] == i) break;
  __syncthreads();  //~ synchronization
  } a[threadIdx.x] = 9; }
//@ block=64
K bd_continue_wrong(int* a, int n) { for (int i = 0; i < 4; i++) { if (((threadIdx.x >> 5) + i) & 1) continue;
  a[threadIdx.x] = i; 
  __syncthreads();  //~ synchronization
  a[threadIdx.x + 64] = a[threadIdx.x]; } a[200 + threadIdx.x] = 1; }
//@ block=64
K bd_switch_wrong(int* a, int n) { switch (threadIdx.x >> 5) { case 0: a[threadIdx.x] = 1; 
  __syncthreads(); break;  //~ synchronization
  case 1: a[threadIdx.x] = 2; break; } a[100 + threadIdx.x] = 3; }
//@ block=64
K bd_in_function_wrong(int* a, int n) { if (threadIdx.x > 10) helper(a); a[100 + threadIdx.x] = 1; }
//@ block=64
K bd_count_divergent_wrong(int* a, int n) { int k = 0; if (threadIdx.x < 33) 
  k = __syncthreads_count(1);  //~ synchronization
  a[threadIdx.x] = k; }
//@ block=96
K bd_named_right(int* a, int n) { if (threadIdx.x < 64) { a[threadIdx.x] = 1;
    asm volatile("bar.sync 1, 64;" ::: "memory"); a[100 + threadIdx.x] = a[63 - threadIdx.x]; } }
//@ block=64
K ic_neighbour_wrong(int* a, int n) { int t = threadIdx.x; a[t] = a[t + 1]; }  //~ race
//@ block=64
K ic_neighbour_right(int* a, int n) { int t = threadIdx.x; int x = a[t + 1]; __syncthreads(); a[t] = x; }
//@ block=64
K ic_ww_wrong(int* a, int n) { int t = threadIdx.x; a[t / 2] = t; }  //~ race
//@ block=64
K ic_ww_same_right(int* a, int n) { a[0] = n; }
//@ block=64
K ic_rw_one_cell_wrong(int* a, int n) { int t = threadIdx.x; if (t == 0) a[0] = 5;  //~ race
  a[100 + t] = a[0]; }  //~ race
//@ block=64
K ic_stride_right(int* a, int n) { int t = threadIdx.x; for (int i = t; i < 512; i += 64) a[i] = i; }
//@ block=64
K ic_stride_off_wrong(int* a, int n) { int t = threadIdx.x; for (int i = t; i < 512; i += 63) 
  a[i] = t; }  //~ race
//@ block=64
K ic_transpose_inplace_wrong(int* a, int n) { int x = threadIdx.x & 7, y = threadIdx.x >> 3; int v = a[x * 8 + y];  //~ race
  a[y * 8 + x] = v; }  //~ race
//@ block=64
K ic_transpose_inplace_right(int* a, int n) { int x = threadIdx.x & 7, y = threadIdx.x >> 3;
    int v = a[x * 8 + y]; __syncthreads(); a[y * 8 + x] = v; }
//@ block=64
K ic_prefix_wrong(int* a, int n) { __shared__ int s[64]; int t = threadIdx.x; s[t] = a[t]; __syncthreads();
  for (int d = 1; d < 64; d *= 2) { int v = t >= d ? s[t - d] : 0;  //~ race
   s[t] += v; __syncthreads(); } a[t] = s[t]; }  //~ race
//@ block=64
K ic_prefix_right(int* a, int n) { __shared__ int s[64]; int t = threadIdx.x; s[t] = a[t]; __syncthreads();
  for (int d = 1; d < 64; d *= 2) { int v = t >= d ? s[t - d] : 0; __syncthreads(); s[t] += v; __syncthreads();
    } a[t] = s[t]; }
//@ block=64
K ic_histogram_wrong(int* a, int n) { __shared__ int s[8]; int t = threadIdx.x; if (t < 8) s[t] = 0; __syncthreads(); 
   s[a[t] & 7]++;  //~ race
   __syncthreads(); if (t < 8) a[t] = s[t]; }
//@ block=64
K ic_histogram_right(int* a, int n) { __shared__ int s[8]; int t = threadIdx.x; if (t < 8) s[t] = 0;
    __syncthreads(); atomicAdd(&s[a[t] & 7], 1); __syncthreads(); if (t < 8) a[t] = s[t]; }
//@ block=64
K ic_histogram_no_init_barrier_wrong(int* a, int n) { __shared__ int s[8]; int t = threadIdx.x; if (t < 8) s[t] = 0;  //~ race
   atomicAdd(&s[a[t] & 7], 1);  //~ race
   __syncthreads(); if (t < 8) a[t] = s[t]; }
//@ block=64
K ic_histogram_no_final_barrier_wrong(int* a, int n) { __shared__ int s[8]; int t = threadIdx.x;
    if (t < 8) s[t] = 0; __syncthreads(); 
   atomicAdd(&s[a[t] & 7], 1);  //~ race
   if (t < 8) a[t] = s[t]; }  //~ race
//@ block=64
K ic_bytes_right(char* a, int n) { a[threadIdx.x] = threadIdx.x; }     // neighbouring bytes of a word
//@ block=64
K ic_bitfield_wrong(unsigned* a, int n) { unsigned t = threadIdx.x; 
   a[t >> 5] |= 1u << (t & 31); }  //~ race
//@ block=64
K ic_bitfield_atomic_right(unsigned* a, int n) { unsigned t = threadIdx.x; atomicOr(&a[t >> 5], 1u << (t & 31)); }
//@ block=64
K ic_vector_overlap_wrong(int* a, int n) { int t = threadIdx.x; ((int4*)a)[t] = make_int4(t, t, t, t);  //~ race
   a[(t + 1) * 4 & 255] = 9; }  //~ race
//@ block=64
K ic_two_arrays_alias_wrong(int* a, int* b) { int t = threadIdx.x; int* c = a + 32;
   a[t] = t;  //~ race
   c[t] = 2 * t; }  //~ race
//@ block=64
K ic_arrays_apart_right(int* a, int* b) { int t = threadIdx.x; int* c = a + 64; a[t] = t; c[t] = 2 * t; b[t] = 1; }
//@ block=64
K ic_struct_fields_right(int* a, int n) { struct P { int x, y; }; P* p = (P*)a; int t = threadIdx.x;
    if (t & 1) p[t / 2].x = t; else p[t / 2].y = t; }
//@ block=64
K ic_loop_carried_wrong(int* a, int n) { __shared__ int s[64]; int t = threadIdx.x; s[t] = t; __syncthreads();
   for (int i = 0; i < 3; i++) { int v = s[(t + 1) & 63];  //~ race
     __syncthreads(); 
     s[t] = v + 1; }  //~ race
   a[t] = s[t]; }
//@ block=64
K ic_pingpong_right(int* a, int n) { __shared__ int s[2][64]; int t = threadIdx.x; s[0][t] = a[t];
   for (int i = 0; i < 4; i++) { __syncthreads(); s[(i + 1) & 1][t] = s[i & 1][(t + 1) & 63];
    } __syncthreads(); a[t] = s[0][t]; }
//@ block=64
K ic_pingpong_same_wrong(int* a, int n) { __shared__ int s[2][64]; int t = threadIdx.x; s[0][t] = a[t];
   for (int i = 0; i < 4; i++) { __syncthreads(); 
     s[0][t] = s[0][(t + 1) & 63]; }  //~ race
   __syncthreads(); a[t] = s[0][t]; }
//@ block=64
K ic_sense_wrong(int* a, int n) { __shared__ volatile int flag; int t = threadIdx.x; if (t == 0) flag = 0;
    __syncthreads();
   if (t == 0) { a[0] = 7;  //~ race
     flag = 1; } 
   if (t == 32) { while (!flag); 
     a[1] = a[0]; } }  //~ race
//@ block=64
K ic_sense_fence_right(int* a, int n) { __shared__ volatile int flag; int t = threadIdx.x;
    if (t == 0) flag = 0; __syncthreads();
   if (t == 0) { a[0] = 7; __threadfence_block(); flag = 1; } 
   if (t == 32) { while (!flag); __threadfence_block(); a[1] = a[0]; } }
//@ grid=3 block=64
K xc_overlap_wrong(int* a, int n) { int i = blockIdx.x * 63 + threadIdx.x; 
   a[i] = i + blockIdx.x; }  //~ race
//@ grid=3 block=64
K xc_halo_read_wrong(int* a, int n) { int i = blockIdx.x * 64 + threadIdx.x; int v = a[i + 1]; __syncthreads();  //~ race
   a[i] = v; }  //~ race
//@ grid=3 block=64
K xc_halo_two_buffers_right(int* a, int* b) { int i = blockIdx.x * 64 + threadIdx.x; b[i] = a[i] + a[i + 1]; }
//@ grid=3 block=64
K xc_block_index_wrong(int* a, int n) { 
   a[threadIdx.x] = blockIdx.x; }  //~ race
//@ grid=3 block=64
K xc_block_out_right(int* a, int n) { if (threadIdx.x == 0) a[blockIdx.x] = blockIdx.x; }
//@ grid=3 block=64
K xc_sync_does_not_order_wrong(int* a, int n) { int i = blockIdx.x * 64 + threadIdx.x; 
   a[i] = i;  //~ race
   __syncthreads(); a[512 + i] = a[191 - i]; }  //~ race
//@ grid=3 block=64
K xc_fence_does_not_order_wrong(int* a, int n) { int i = blockIdx.x * 64 + threadIdx.x; 
   a[i] = i;  //~ race
   __threadfence(); a[512 + i] = a[191 - i]; }  //~ race
//@ grid=3 block=64
K xc_global_sum_wrong(int* a, int n) { if (threadIdx.x == 0) 
   a[0] += blockIdx.x; }  //~ race
//@ grid=3 block=64
K xc_global_sum_right(int* a, int n) { if (threadIdx.x == 0) atomicAdd(a, blockIdx.x); }
//@ grid=3 block=64 zero
K xc_once_wrong(int* a, int n) { if (threadIdx.x == 0) { if (a[0] == 0) {  //~ race
   a[0] = blockIdx.x + 1; a[1] = blockIdx.x; } } }  //~ race
//@ grid=3 block=64 zero
K xc_once_right(int* a, int n) { if (threadIdx.x == 0) { if (atomicCAS(a, 0, 1) == 0) a[1] = blockIdx.x; } }
//@ grid=3 block=64 zero
K xc_mixed_size_wrong(int* a, int n) { if (threadIdx.x == 0) { if (blockIdx.x == 0) atomicAdd((unsigned long long*)a, 1ull);  //~ race
   else atomicAdd(a, 1); } }  //~ race
//@ grid=3 block=64 zero
K xc_two_counters_right(int* a, int n) { if (threadIdx.x == 0) { atomicAdd(a, 1);
    atomicAdd_block(a + 1 + blockIdx.x, 1); } }
