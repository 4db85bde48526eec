// Small kernels with barriers: sorts, scans, halos, masks, tiles, buffers.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define ALL 0xffffffffu
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
#define T threadIdx.x
//@ grid=1 block=64
K shift_left_barrier_wrong(int* a) { __shared__ int s[65]; s[T] = a[T]; if (T == 0) s[64] = 0; __syncthreads(); s[T] = s[T + 1]; __syncthreads(); a[T] = s[T]; }   //~ race
//@ grid=1 block=64
K shift_left_right(int* a) { __shared__ int s[65]; s[T] = a[T]; if (T == 0) s[64] = 0; __syncthreads(); int x = s[T + 1]; __syncthreads(); s[T] = x; __syncthreads(); a[T] = s[T]; }
//@ grid=1 block=64
K odd_even_sort_right(int* a) { __shared__ int s[64]; s[T] = a[T]; for (int p = 0; p < 64; p++) { __syncthreads(); int i = 2 * T + (p & 1); if (T < 32 && i + 1 < 64 && s[i] > s[i + 1]) { int x = s[i]; s[i] = s[i + 1]; s[i + 1] = x; } } __syncthreads(); a[T] = s[T]; }
//@ grid=1 block=64
K odd_even_sort_both_threads_wrong(int* a) { __shared__ int s[64]; s[T] = a[T]; for (int p = 0; p < 8; p++) { __syncthreads(); int i = T;
   if (i + 1 < 64 && s[i] > s[i + 1]) { int x = s[i]; s[i] = s[i + 1]; s[i + 1] = x; } }   //~ race
   __syncthreads(); a[T] = s[T]; }
//@ grid=1 block=64
K blelloch_right(int* a) { __shared__ int s[128]; s[T] = a[T]; s[T + 64] = a[T + 64]; int o = 1; for (int d = 64; d > 0; d /= 2) { __syncthreads(); if (T < d) s[o * (2 * T + 2) - 1] += s[o * (2 * T + 1) - 1]; o *= 2; }
   if (T == 0) s[127] = 0; for (int d = 1; d < 128; d *= 2) { o /= 2; __syncthreads(); if (T < d) { int i = o * (2 * T + 1) - 1, j = o * (2 * T + 2) - 1; int x = s[i]; s[i] = s[j]; s[j] += x; } } __syncthreads(); a[T] = s[T]; a[T + 64] = s[T + 64]; }
//@ grid=1 block=64
K blelloch_root_not_synced_wrong(int* a) { __shared__ int s[128]; s[T] = a[T]; s[T + 64] = a[T + 64]; int o = 1; for (int d = 64; d > 0; d /= 2) { __syncthreads();
   if (T < d) s[o * (2 * T + 2) - 1] += s[o * (2 * T + 1) - 1]; o *= 2; }   //~ race
   if (T == 33) s[127] = 0;   //~ race
   for (int d = 1; d < 128; d *= 2) { o /= 2; __syncthreads(); if (T < d) { int i = o * (2 * T + 1) - 1, j = o * (2 * T + 2) - 1; int x = s[i]; s[i] = s[j]; s[j] += x; } } __syncthreads(); a[T] = s[T]; }
//@ grid=1 block=128
K reduce_warp_tail_right(int* a) { __shared__ int s[128]; s[T] = a[T]; __syncthreads(); for (int o = 64; o >= 32; o /= 2) { if (T < o) s[T] += s[T + o]; __syncthreads(); }
   if (T < 32) { int x = s[T]; for (int o = 16; o; o /= 2) x += __shfl_down_sync(ALL, x, o); if (T == 0) a[0] = x; } }
//@ grid=1 block=128
K reduce_warp_tail_one_step_late_wrong(int* a) { __shared__ int s[128]; s[T] = a[T]; __syncthreads(); for (int o = 64; o >= 32; o /= 2) { if (o > 32) { if (T < o) s[T] += s[T + o]; __syncthreads(); } else if (T < o) s[T] += s[T + o]; }
   if (T >= 32 && T < 64) { int x = s[T - 32]; for (int o = 16; o; o /= 2) x += __shfl_down_sync(ALL, x, o); if (T == 32) a[0] = x; } }   //~ race
//@ grid=1 block=128
K reduce_volatile_warp_wrong(int* a) { __shared__ int s[128]; volatile int* v = s; s[T] = a[T]; __syncthreads(); if (T < 64) s[T] += s[T + 64]; __syncthreads();
   if (T < 32) { v[T] += v[T + 32]; v[T] += v[T + 16]; v[T] += v[T + 8]; }   //~ race
   if (T == 0) a[0] = s[0]; }
//@ grid=1 block=128
K reduce_syncwarp_right(int* a) { __shared__ int s[128]; volatile int* v = s; s[T] = a[T]; __syncthreads(); if (T < 64) s[T] += s[T + 64]; __syncthreads();
   if (T < 32) { int x = v[T]; for (int o = 32; o; o /= 2) { x += v[T + o]; __syncwarp(); v[T] = x; __syncwarp(); } } if (T == 0) a[0] = s[0]; }
//@ grid=1 block=64 shared=256
K dynamic_one_too_many_wrong(int* a) { extern __shared__ int s[]; s[T + 1] = a[T]; __syncthreads();   //~ fault
   a[T] = s[T]; }
//@ grid=1 block=64
K halo_left_wrong(int* a) { __shared__ int before[4], s[64]; if (T < 4) before[T] = 9; s[T] = a[T]; __syncthreads(); int x = s[(int)T - 1];    //~ out of bounds
   a[T] = x + before[T & 3]; }
//@ grid=2 block=64
K halo_global_left_wrong(const int* a, int* b) { b[TID] = a[(int)TID - 1]; }    //~ fault
//@ grid=2 block=64
K halo_shared_corner_right(const int* a, int* b) { __shared__ int s[66]; int g = TID; s[T + 1] = a[g]; if (T == 0) s[0] = g ? a[g - 1] : 0; if (T == 63) s[65] = g < 127 ? a[g + 1] : 0; __syncthreads(); b[g] = s[T] + s[T + 1] + s[T + 2]; }
//@ grid=2 block=64
K halo_shared_corner_unset_wrong(const int* a, int* b) { __shared__ int s[66]; int g = TID; s[T + 1] = a[g]; if (T == 0) s[0] = g ? a[g - 1] : 0; __syncthreads();
   b[g] = s[T] + s[T + 1] + s[T + 2]; }    //~ uninitialized
//@ grid=2 block=64
K histogram_not_cleared_wrong(const int* a, int* b) { __shared__ int h[8]; atomicAdd(&h[a[TID]], 1);    //~ uninitialized
   __syncthreads(); if (T < 8) atomicAdd(&b[T], h[T]); }
//@ grid=2 block=32
K histogram_partly_cleared_wrong(const int* a, int* b) { __shared__ int h[64]; h[T] = 0; __syncthreads(); atomicAdd(&h[a[TID] * 8], 1);    //~ uninitialized
   __syncthreads(); for (int i = T; i < 64; i += 32) atomicAdd(&b[i], h[i]); }
//@ grid=2 block=64
K histogram_clear_unsynced_wrong(const int* a, int* b) { __shared__ int h[8]; if (T < 8) h[T] = 0;    //~ race
   atomicAdd(&h[a[TID]], 1); __syncthreads(); if (T < 8) atomicAdd(&b[T], h[T]); }
//@ grid=1 block=64
K barrier_in_loop_by_thread_wrong(int* a) { __shared__ int s[64]; for (int i = 0; i <= T / 32; i++) { s[T] = a[T] + i; __syncthreads(); }    //~ synchronization
   a[T] = s[T]; }
//@ grid=1 block=64
K barrier_both_arms_wrong(int* a) { __shared__ int s[64]; s[T] = a[T]; if (T < 32) { s[T] += 1; __syncthreads(); } else { s[T] += 2; __syncthreads(); }    //~ synchronization
   a[T] = s[63 - T]; }
//@ grid=1 block=64
K barrier_switch_wrong(int* a) { __shared__ int s[64]; s[T] = a[T]; switch (T % 3) { case 0: __syncthreads(); break; case 1: s[T]++; break; default: ; }    //~ synchronization
   a[T] = s[T]; }
//@ grid=1 block=64
K mask_of_other_half_wrong(int* a) { int x = a[T]; if (T % 32 < 16) x += __shfl_xor_sync(0xffff0000u, x, 1);    //~ synchronization
   a[T] = x; }
//@ grid=1 block=64
K mask_half_right(int* a) { int x = a[T]; if (T % 32 < 16) x += __shfl_xor_sync(0x0000ffffu, x, 1); else x += __shfl_xor_sync(0xffff0000u, x, 2); a[T] = x; }
//@ grid=1 block=64
K mask_activemask_right(int* a) { int x = a[T]; if (x > 3) { unsigned m = __activemask(); int n = __popc(__ballot_sync(m, x > 5)); a[T] = n; } }
//@ grid=1 block=64
K syncwarp_half_wrong(int* a) { __shared__ int s[64]; s[T] = a[T];    //~ race
   __syncwarp(T % 32 < 16 ? 0xffffu : 0xffff0000u); a[T] = s[T ^ 31]; }
//@ grid=1 block=64
K syncwarp_right(int* a) { __shared__ int s[64]; s[T] = a[T]; __syncwarp(); a[T] = s[T ^ 31]; }
//@ grid=1 block=64
K syncwarp_for_cta_wrong(int* a) { __shared__ int s[64]; s[T] = a[T];    //~ race
   __syncwarp(); a[T] = s[T ^ 32]; }
//@ grid=4 block=64 coop
K grid_stencil_right(int* a, int* b) { auto g = cg::this_grid(); for (int r = 0; r < 3; r++) { int i = TID; b[i] = a[i] + a[(i + 1) % 256]; g.sync(); a[i] = b[i] + b[(i + 255) % 256]; g.sync(); } }
//@ grid=4 block=64 coop
K grid_stencil_one_sync_wrong(int* a, int* b) { auto g = cg::this_grid(); for (int r = 0; r < 3; r++) { int i = TID; b[i] = a[i] + a[(i + 1) % 256]; g.sync();   //~ race
   a[i] = b[i] + b[(i + 255) % 256]; } }
//@ grid=1 block=64
K tile_shared_right(int* a) { __shared__ int s[64]; auto w = cg::tiled_partition<16>(cg::this_thread_block()); s[T] = a[T]; w.sync(); a[T] = s[T ^ 15]; }
//@ grid=1 block=64
K tile_shared_wider_wrong(int* a) { __shared__ int s[64]; auto w = cg::tiled_partition<8>(cg::this_thread_block()); s[T] = a[T]; w.sync();    //~ race
   a[T] = s[T ^ 15]; }
//@ grid=1 block=64
K double_buffer_right(int* a) { __shared__ int s[2][64]; s[0][T] = a[T]; __syncthreads(); for (int r = 0; r < 5; r++) { s[~r & 1][T] = s[r & 1][(T + 1) & 63] + 1; __syncthreads(); } a[T] = s[1][T]; }
//@ grid=1 block=64
K double_buffer_parity_wrong(int* a) { __shared__ int s[2][64]; s[0][T] = s[1][T] = a[T]; __syncthreads(); for (int r = 0; r < 5; r++) { s[~r >> 1 & 1][T] = s[r & 1][(T + 1) & 63] + 1; __syncthreads(); } a[T] = s[1][T]; }    //~ race
//@ grid=1 block=64
K triple_buffer_no_barrier_wrong(int* a) { __shared__ int s[3][64]; s[0][T] = a[T]; __syncthreads(); for (int r = 0; r < 6; r++) { s[(r + 1) % 3][T] = s[r % 3][(T + 33) & 63] + 1; if (r % 2) __syncthreads(); } a[T] = s[0][T]; }    //~ race
//@ grid=1 block=64
K named_barrier_pair_right(int* a) { __shared__ int s[32]; if (T < 32) { s[T] = a[T]; asm volatile("bar.arrive 1, 64;" ::: "memory"); } else { asm volatile("bar.sync 1, 64;" ::: "memory"); a[T] = s[T - 32]; } }
//@ grid=1 block=64
K named_barrier_wrong_number_wrong(int* a) { __shared__ int s[32]; if (T < 32) { s[T] = a[T]; asm volatile("bar.sync 1, 32;" ::: "memory"); } else { asm volatile("bar.sync 2, 32;" ::: "memory"); a[T] = s[T - 32]; } }   //~ race
//@ grid=1 block=64
K transpose_pad_right(int* a) { __shared__ int s[8][9]; s[T / 8][T % 8] = a[T]; __syncthreads(); a[T] = s[T % 8][T / 8]; }
//@ grid=1 block=64
K transpose_off_by_one_wrong(int* a) { __shared__ int s[8][8]; __shared__ int other; s[T / 8][T % 8] = a[T]; if (T == 0) other = 1; __syncthreads(); a[T] = s[T % 8][T / 8 + 1] + other; }   //~ fault
//@ grid=2 block=64
K bounds_or_guard_wrong(int* a, int n) { int x = T, y = blockIdx.x; if (x < 60 || y < 1) a[x + 1000 * y] = n; }   //~ fault
//@ grid=1 block=32
K local_array_past_wrong(int* a, int* b) { int q[8]; for (int i = 0; i < 8; i++) q[i] = a[i]; int k = a[T] + 1; b[T] = q[k]; }   //~ out of bounds
//@ grid=1 block=64
K same_value_flag_right(int* a) { __shared__ int found; if (T == 0) found = 0; __syncthreads(); if (a[T] == 5) found = 1; __syncthreads(); if (found) a[T] = 0; }
//@ grid=1 block=64
K winner_value_wrong(int* a) { __shared__ int who; if (T == 0) who = -1; __syncthreads(); if (a[T] == 5) who = T;   //~ race
   __syncthreads(); a[T] = who; }
//@ grid=1 block=64
K select_by_index_right(int* a) { __shared__ int base; if (T == 0) base = 3; __syncthreads(); int x = T == 0 ? base : 5; if (T == 0) base = x + 6; a[T] = x; }
//@ grid=1 block=64
K loop_flag_unsynced_wrong(int* a) { __shared__ int more; do { if (T == 0) more = 0; __syncthreads(); if (a[T] < 9) { a[T]++; more = 1; } __syncthreads(); } while (more); }   //~ race, synchronization
//@ grid=1 block=64
K loop_flag_right(int* a) { __shared__ int more; do { __syncthreads(); if (T == 0) more = 0; __syncthreads(); if (a[T] < 9) { a[T]++; more = 1; } __syncthreads(); } while (more); }
