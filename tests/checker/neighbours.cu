// Accesses that leave their variable or array, and synchronization in calls, loops and groups.
#include <cooperative_groups.h>
#define K extern "C" __global__ void
#define ALL 0xffffffffu
namespace cg = cooperative_groups;
__device__ __noinline__ int sum_of(const int* p, int n) { int x = 0; for (int i = 0; i < n; i++) x += p[i]; return x; }
__device__ __noinline__ void put(int* p, int x) { *p = x; }
__device__ __noinline__ void wait_all() { __syncthreads(); }

//@ grid=1 block=64
K shared_neighbour_write_wrong(int* g, int n) {       // one element behind its array, in the next one
  __shared__ int a[64], b[64];
  a[threadIdx.x] = g[threadIdx.x];
  b[threadIdx.x] = 0;
  __syncthreads();
  a[threadIdx.x + 1] = n + threadIdx.x;               //~ out of bounds
  __syncthreads();
  g[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
//@ grid=1 block=64
K shared_neighbour_read_wrong(int* g, int n) {
  __shared__ int a[64], b[64];
  a[threadIdx.x] = g[threadIdx.x];
  b[threadIdx.x] = 0;
  __syncthreads();
  g[threadIdx.x] = a[threadIdx.x + 1] + b[threadIdx.x];   //~ out of bounds
}
//@ grid=1 block=64
K shared_neighbour_right(int* g, int n) {
  __shared__ int a[65], b[64];
  a[threadIdx.x] = g[threadIdx.x];
  if (threadIdx.x == 0) a[64] = 0;
  b[threadIdx.x] = 0;
  __syncthreads();
  g[threadIdx.x] = a[threadIdx.x + 1] + b[threadIdx.x];
}
//@ grid=1 block=64 zero
K call_wrong(int* g, int n) {                         // the callee writes what the others read
  __shared__ int s[64];
  put(&s[threadIdx.x], threadIdx.x);                  //~ race
  g[threadIdx.x] = sum_of(s, 64);                     //~ race
}
//@ grid=1 block=64 zero
K call_right(int* g, int n) {
  __shared__ int s[64];
  put(&s[threadIdx.x], threadIdx.x);
  wait_all();
  g[threadIdx.x] = sum_of(s, 64);
}
//@ grid=1 block=64
K call_half_wrong(int* g, int n) {                    // only a part calls the function that waits
  g[threadIdx.x] = 1;
  if (threadIdx.x >= 32) { wait_all(); g[threadIdx.x + 64] = 2; }   //~ synchronization
  g[threadIdx.x + 128] = 3;                           //~ synchronization
}
//@ grid=1 block=64
K passed_undefined_wrong(int* g, int n) {             // a shared element that nobody wrote goes into a call
  __shared__ int s[64];
  if (threadIdx.x < 63) s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  put(&g[threadIdx.x], s[threadIdx.x]);               //~ uninitialized
}
//@ grid=1 block=64
K returned_undefined_wrong(int* g, int n) {           // in the callee
  __shared__ int s[64];
  if (threadIdx.x < 63) s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  g[threadIdx.x] = sum_of(s, 64);                     //~ uninitialized
}
//@ grid=1 block=64
K tile_of_16_right(int* g, int n) {
  __shared__ int s[64];
  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::this_thread_block());
  s[threadIdx.x] = g[threadIdx.x] + threadIdx.x;
  tile.sync();
  g[threadIdx.x] = s[threadIdx.x ^ 15];
}
//@ grid=1 block=64
K tile_of_16_wrong(int* g, int n) {                   // beyond the tile
  __shared__ int s[64];
  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::this_thread_block());
  s[threadIdx.x] = g[threadIdx.x] + threadIdx.x;      //~ race
  tile.sync();
  g[threadIdx.x] = s[threadIdx.x ^ 31];               //~ race
}
//@ grid=1 block=32
K diverged_tiles_right(int* g, int n) {               // each half has a barrier of its own
  __shared__ int s[32];
  int half = threadIdx.x & 16;
  if (half) { s[threadIdx.x] = 1 + threadIdx.x; __syncwarp(0xffff0000u); g[threadIdx.x] = s[threadIdx.x ^ 1]; }
  else { s[threadIdx.x] = 2 + threadIdx.x; __syncwarp(0xffffu); g[threadIdx.x] = s[threadIdx.x ^ 1]; }
}
//@ grid=1 block=32
K diverged_tiles_wrong(int* g, int n) {
  __shared__ int s[32];
  int half = threadIdx.x & 16;
  if (half) { s[threadIdx.x] = 1 + threadIdx.x; __syncwarp(0xffff0000u); g[threadIdx.x] = s[threadIdx.x ^ 16]; }  //~ race
  else { s[threadIdx.x] = 2 + threadIdx.x; __syncwarp(0xffffu); g[threadIdx.x] = s[threadIdx.x ^ 16]; }           //~ race
}
//@ grid=1 block=128
K uneven_loop_wrong(int* g, int n) {                  // the number of turns depends on the warp
  __shared__ int s;
  for (int i = 0; i <= (int)threadIdx.x / 32; i++) {
    if (threadIdx.x == 0) s = i + n;
    __syncthreads();                                  //~ synchronization
    g[threadIdx.x + 128 * i] = s;                     //~ synchronization
  }
}
//@ grid=1 block=128
K switch_barriers_wrong(int* g, int n) {              // each case has its own
  switch (threadIdx.x / 32) {
    case 0: g[threadIdx.x] = 1; __syncthreads(); g[threadIdx.x + 128] = 1; break;    //~ synchronization
    default: g[threadIdx.x] = 3; __syncthreads(); g[threadIdx.x + 128] = 4; break;   //~ synchronization
  }
}
//@ grid=1 block=128
K count_wrong(int* g, int n) {                        // the predicate of a barrier with a vote, in a condition
  int c = 0;
  if (g[threadIdx.x] > 3) c = __syncthreads_count(g[threadIdx.x] > 4);               //~ synchronization
  g[threadIdx.x + 128] = c;                           //~ synchronization
}
//@ grid=1 block=96
K masks_right(int* g, int n) {
  if (threadIdx.x < 80) {
    unsigned m = __activemask();
    int x = __reduce_add_sync(m, g[threadIdx.x]);
    if ((threadIdx.x & 31) == 0) g[threadIdx.x] = x;
  }
}
//@ grid=1 block=96
K masks_wrong(int* g, int n) {                        // the last warp is half
  if (threadIdx.x < 80) {
    int x = __reduce_add_sync(ALL, g[threadIdx.x]);   //~ synchronization
    if ((threadIdx.x & 31) == 0) g[threadIdx.x] = x;
  }
}
//@ grid=2 block=32 coop zero
K grid_phases_right(int* g, int n) {
  cg::grid_group all = cg::this_grid();
  int v = all.thread_rank();
  for (int i = 0; i < 3; i++) {
    g[64 * (i + 1) + v] = g[64 * i + 63 - v] + v;
    all.sync();
  }
}
//@ grid=2 block=32 coop zero
K grid_phases_wrong(int* g, int n) {                  // a block's barrier between phases
  cg::grid_group all = cg::this_grid();
  int v = all.thread_rank();
  for (int i = 0; i < 3; i++) {
    g[64 * (i + 1) + v] = g[64 * i + 63 - v] + v;     //~ race
    __syncthreads();
  }
}
//@ grid=2 block=32 coop zero
K grid_one_buffer_wrong(int* g, int n) {              // reads and writes in one phase
  cg::grid_group all = cg::this_grid();
  int v = all.thread_rank();
  for (int i = 0; i < 3; i++) {
    g[v] = g[63 - v] + v;                             //~ race
    all.sync();
  }
}
//@ grid=1 block=64 zero
K heap_list_right(int** g, int n) {                   // each thread allocates, the next one reads after the barrier
  int* p = (int*)malloc(8);
  p[0] = threadIdx.x; p[1] = 1;
  g[threadIdx.x] = p;
  __syncthreads();
  int x = g[threadIdx.x ^ 1][0];
  __syncthreads();
  p[1] = x;
  free(p);
}
//@ grid=1 block=64 zero
K heap_list_wrong(int** g, int n) {                   // freed while the other one still reads
  int* p = (int*)malloc(8);
  p[0] = threadIdx.x; p[1] = 1;
  g[threadIdx.x] = p;
  __syncthreads();
  int x = g[threadIdx.x ^ 1][0];                      //~ race
  p[0] = x;                                           //~ race
}
//@ grid=2 block=64 zero
K float_max_right(float* g, int n) {
  int* p = (int*)g;
  int seen = atomicAdd(p, 0), mine = __float_as_int(threadIdx.x * 1.5f);
  while (__int_as_float(seen) < __int_as_float(mine)) {
    int old = atomicCAS(p, seen, mine);
    if (old == seen) break;
    seen = old;
  }
}
//@ grid=2 block=64 zero
K float_max_wrong(float* g, int n) {                  // the first look is plain
  int* p = (int*)g;
  int seen = *p, mine = __float_as_int(threadIdx.x * 1.5f);   //~ race
  while (__int_as_float(seen) < __int_as_float(mine)) {
    int old = atomicCAS(p, seen, mine);               //~ race
    if (old == seen) break;
    seen = old;
  }
}
//@ grid=2 block=64 zero
K block_scope_bins_right(int* g, int n) {             // each block has bins of its own
  atomicAdd_block(&g[blockIdx.x * 8 + (threadIdx.x & 7)], 1);
}
//@ grid=2 block=64 zero
K block_scope_bins_wrong(int* g, int n) { atomicAdd_block(&g[threadIdx.x & 7], 1); }    //~ race
//@ grid=2 block=64 zero
K block_scope_then_merge_wrong(int* g, int n) {       // the sum of the blocks' bins with no order between them
  atomicAdd_block(&g[blockIdx.x * 8 + (threadIdx.x & 7)], 1);                             //~ race
  __syncthreads();
  if (blockIdx.x == 1 && threadIdx.x < 8) atomicAdd(&g[64 + threadIdx.x], g[threadIdx.x]);   //~ race
}
//@ grid=2 block=64 zero
K system_counter_right(int* g, int n) { atomicAdd_system(g, 1); }
//@ grid=1 block=64 zero
K widened_load_right(int* g, int n) {                 // nvcc reads the last three of seven as a vector of four
  __shared__ __align__(16) int a[7];
  __shared__ int b;
  if (threadIdx.x < 7) a[threadIdx.x] = n + threadIdx.x;
  if (threadIdx.x == 32) b = n;
  __syncthreads();
  if (threadIdx.x == 0) { g[0] = a[4]; g[1] = a[5]; g[2] = a[6]; }
  if (threadIdx.x == 32) b = n + 1;
  __syncthreads();
  if (threadIdx.x == 33) g[3] = b;
}
