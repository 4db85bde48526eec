// Classic algorithms of a CTA in shared memory, each with a barrier that is missing, comes too early, or is of too few threads.
#include <cooperative_groups.h>
#define K extern "C" __global__ void
#define T threadIdx.x
#define G (blockIdx.x * blockDim.x + threadIdx.x)
namespace cg = cooperative_groups;
__device__ inline void sync(bool wanted) { if (wanted) __syncthreads(); }

// Work-efficient scan: up and down a tree.
template <bool up, bool down> __device__ inline void tree_scan(const int* in, int* out) {
  __shared__ int s[256];
  s[2 * T] = in[2 * T]; s[2 * T + 1] = in[2 * T + 1];
  int d = 1;
  for (int n = 128; n > 0; n >>= 1, d *= 2) {
    sync(up);
    if (T < n) s[d * (2 * T + 2) - 1] += s[d * (2 * T + 1) - 1];                                      //~ race tree_scan_up_wrong
  }
  __syncthreads();
  if (T == 0) s[255] = 0;
  for (int n = 1; n < 256; n *= 2) {
    d >>= 1;
    sync(down || n == 1);
    if (T < n) {
      int i = d * (2 * T + 1) - 1, j = d * (2 * T + 2) - 1, t = s[i];
      s[i] = s[j];                                                                                    //~ race tree_scan_down_wrong
      s[j] += t;                                                                                      //~ race tree_scan_down_wrong
    }
  }
  __syncthreads();
  out[2 * T] = s[2 * T]; out[2 * T + 1] = s[2 * T + 1];
}
K tree_scan_right(const int* in, int* out) { tree_scan<true, true>(in, out); }
K tree_scan_up_wrong(const int* in, int* out) { tree_scan<false, true>(in, out); }
K tree_scan_down_wrong(const int* in, int* out) { tree_scan<true, false>(in, out); }                  //~ race

// Neighbors are compared in turn.
template <bool waits> __device__ inline void odd_even(const int* in, int* out) {
  __shared__ int s[256];
  s[T] = in[T]; s[T + 128] = in[T + 128];
  for (int round = 0; round < 6; round++) {
    sync(waits || round == 0);
    int i = 2 * T + (round & 1);
    if (i < 255 && s[i] > s[i + 1]) { int t = s[i]; s[i] = s[i + 1]; s[i + 1] = t; }                  //~ race odd_even_wrong
  }
  __syncthreads();
  out[T] = s[T];
}
K odd_even_right(const int* in, int* out) { odd_even<true>(in, out); }
K odd_even_wrong(const int* in, int* out) { odd_even<false>(in, out); }                               //~ race

// Elimination: a row is scaled, and then subtracted from the rows below.
template <bool scaled, bool subtracted> __device__ inline void eliminate(const int* in, float* out) {
  __shared__ float a[8][16];
  int row = T / 16, column = T % 16;
  a[row][column] = in[T] + (row == column ? 20 : 1);
  __syncthreads();
  for (int k = 0; k < 8; k++) {
    float pivot = a[k][k];                                                                            //~ race eliminate_pivot_wrong
    sync(scaled);
    if (row == k) a[k][column] /= pivot;                                                              //~ race eliminate_pivot_wrong
    __syncthreads();
    float factor = a[row][k];                                                                         //~ race eliminate_factor_wrong
    sync(subtracted);
    if (row > k) a[row][column] -= factor * a[k][column];                                             //~ race eliminate_factor_wrong
    __syncthreads();
  }
  out[T] = a[row][column];
}
K eliminate_right(const int* in, float* out) { eliminate<true, true>(in, out); }
K eliminate_pivot_wrong(const int* in, float* out) { eliminate<false, true>(in, out); }               //~ race
K eliminate_factor_wrong(const int* in, float* out) { eliminate<true, false>(in, out); }              //~ race

// Shortest paths between all pairs, in place. If no distance is less than zero, what others read in a step does not change in it, unless it is
// stored again.
template <bool apart, bool always> __device__ inline void all_pairs(const int* in, int* out) {
  __shared__ int d[8][16];
  int i = T / 16, j = T % 16;
  d[i][j] = T * 29 % 61 + in[0] + 1;
  __syncthreads();
  for (int k = 0; k < 8; k++) {
    int through = d[i][k] + d[k][j];                                                                  //~ race all_pairs_stored_again_wrong
    sync(apart);
    if (always) d[i][j] = min(through, d[i][j]);                                                      //~ race all_pairs_stored_again_wrong
    else if (through < d[i][j]) d[i][j] = through;
    __syncthreads();
  }
  out[T] = d[i][j];
}
K all_pairs_right(const int* in, int* out) { all_pairs<true, true>(in, out); }
K all_pairs_if_less_right(const int* in, int* out) { all_pairs<false, false>(in, out); }
K all_pairs_stored_again_wrong(const int* in, int* out) { all_pairs<false, true>(in, out); }          //~ race

// Diagonals of a table of two strings' distance, three of which are kept.
template <bool waits> __device__ inline void distance(const int* in, int* out) {
  __shared__ int diagonal[3][129];
  diagonal[0][T] = diagonal[1][T] = diagonal[2][T] = 0;
  if (T == 0) diagonal[0][128] = diagonal[1][128] = diagonal[2][128] = 0;
  __syncthreads();
  for (int d = 0; d < 12; d++) {
    int *now = diagonal[d % 3], *before = diagonal[(d + 2) % 3], *last = diagonal[(d + 1) % 3];
    int best = min(before[T], before[T + 1]) + 1;                                                     //~ race distance_wrong
    now[T + 1] = min(best, last[T] + (in[T] != in[d]));                                               //~ race distance_wrong
    sync(waits);
  }
  __syncthreads();
  out[T] = diagonal[2][T + 1];
}
K distance_right(const int* in, int* out) { distance<true>(in, out); }
K distance_wrong(const int* in, int* out) { distance<false>(in, out); }                               //~ race

// One digit of a radix sort: by a ballot of each warp, and the warps' sums.
template <bool sums, bool again> __device__ inline void split(const int* in, int* out) {
  __shared__ int keys[128], zeros[4];
  keys[T] = in[T];
  for (int bit = 0; bit < 3; bit++) {
    __syncthreads();
    int key = keys[T], warp = T / 32;
    unsigned zero = __ballot_sync(~0u, !(key >> bit & 1));
    if (T % 32 == 0) zeros[warp] = __popc(zero);                                                      //~ race split_sums_wrong
    sync(sums);
    int before = 0, all = 0;
    for (int w = 0; w < 4; w++) { all += zeros[w]; if (w < warp) before += zeros[w]; }                //~ race split_sums_wrong
    before += __popc(zero & ((1u << T % 32) - 1));
    if (again) __syncthreads();
    keys[key >> bit & 1 ? all + T - before : before] = key;
  }
  __syncthreads();
  out[T] = keys[T];
}
K split_right(const int* in, int* out) { split<true, true>(in, out); }
K split_sums_wrong(const int* in, int* out) { split<false, true>(in, out); }                          //~ race
K split_keys_are_read_before_the_sums_right(const int* in, int* out) { split<true, false>(in, out); }

// A histogram for each warp, added up by all.
template <bool warp, bool block> __device__ inline void histograms(const int* in, int* out) {
  __shared__ int bins[4][8];
  int w = T / 32;
  if (T % 32 < 8) bins[w][T % 32] = 0;                                                                //~ race histograms_no_syncwarp_wrong, race histograms_syncwarp_for_all_wrong
  if (warp) __syncwarp();
  atomicAdd(&bins[w][in[T] & 7], 1);                                                                  //~ race histograms_no_syncwarp_wrong
  if (block) __syncthreads(); else __syncwarp();
  if (T < 8) out[T] = bins[0][T] + bins[1][T] + bins[2][T] + bins[3][T];                              //~ race histograms_syncwarp_for_all_wrong
}
K histograms_right(const int* in, int* out) { histograms<true, true>(in, out); }
K histograms_no_syncwarp_wrong(const int* in, int* out) { histograms<false, true>(in, out); }         //~ race
K histograms_syncwarp_for_all_wrong(const int* in, int* out) { histograms<true, false>(in, out); }    //~ race

// Butterflies of a transform: strides below a warp's width need its own barrier only.
template <int narrow> __device__ inline void butterflies(const int* in, int* out) {
  __shared__ int s[128];
  s[T] = in[T];
  for (int d = 64; d > 0; d /= 2) {
    if (d >= narrow) __syncthreads(); else __syncwarp();
    int other = s[T ^ d], mine = s[T];                                                                //~ race butterflies_too_early_wrong
    if (d >= narrow) __syncthreads(); else __syncwarp();
    s[T] = T & d ? other - mine : other + mine;                                                       //~ race butterflies_too_early_wrong
  }
  out[T] = s[T];
}
K butterflies_right(const int* in, int* out) { butterflies<32>(in, out); }
K butterflies_too_early_wrong(const int* in, int* out) { butterflies<128>(in, out); }                 //~ race

// Memory that one step after the other uses for something else.
union Room { int numbers[128]; float sums[32]; };
template <bool waits> __device__ inline void reuse(const int* in, int* out) {
  __shared__ Room room;
  room.numbers[T] = in[T];
  __syncthreads();
  int reversed = room.numbers[127 - T];                                                               //~ race reuse_wrong
  sync(waits);
  if (T < 32) room.sums[T] = reversed;                                                                //~ race reuse_wrong
  __syncthreads();
  out[T] = reversed + (int)room.sums[T / 4];
}
K reuse_right(const int* in, int* out) { reuse<true>(in, out); }
K reuse_wrong(const int* in, int* out) { reuse<false>(in, out); }                                     //~ race

// A partition by two counters, whose ends meet.
template <bool known> __device__ inline void partition(const int* in, int* out) {
  __shared__ int low, high, s[128];
  if (T == 0) { low = 0; high = 128; }                                                                //~ race partition_wrong
  sync(known);
  s[in[T] < 4 ? atomicAdd(&low, 1) : atomicSub(&high, 1) - 1] = in[T];                                //~ race partition_wrong
  __syncthreads();
  out[T] = s[T];
}
K partition_right(const int* in, int* out) { partition<true>(in, out); }
K partition_wrong(const int* in, int* out) { partition<false>(in, out); }                             //~ race

// Cells of several CTAs that look at those beside them, in two buffers.
template <bool waits> __device__ inline void cells(int* a, int* b, int n) {
  for (int i = 0; i < n; i++) {
    b[G] = a[(G + 1) % 256] ^ a[(G + 255) % 256];                                                     //~ race cells_block_wrong
    if (waits) cg::this_grid().sync(); else __syncthreads();
    int* t = a; a = b; b = t;
  }
}
//@ grid=2 coop
K cells_right(int* a, int* b, int n) { cells<true>(a, b, n); }
//@ grid=2 coop
K cells_block_wrong(int* a, int* b, int n) { cells<false>(a, b, n); }                                 //~ race

// Tiles of a group of 16 lanes.
template <bool waits> __device__ inline void tiles(const int* in, int* out) {
  __shared__ int s[128];
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  s[T] = in[T];                                                                                       //~ race tiles_wrong
  for (int d = 8; d > 0; d /= 2) {
    if (waits) tile.sync();
    int v = tile.thread_rank() < d ? s[T + d] : 0;                                                    //~ race tiles_wrong
    tile.sync();
    s[T] += v;                                                                                        //~ race tiles_wrong
  }
  out[T] = s[T];
}
K tiles_right(const int* in, int* out) { tiles<true>(in, out); }
K tiles_wrong(const int* in, int* out) { tiles<false>(in, out); }                                     //~ race
