// What people trust: cooperative groups and CUB. All right.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/cub.cuh>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void

K tile_right(int* g, int n) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  g[threadIdx.x + 128] = cg::reduce(tile, g[threadIdx.x], cg::plus<int>());
}
K tile_sync_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  s[t] = g[t];
  tile.sync();
  g[t + 128] = s[t ^ 15];
}
K tile_sync_wrong(int* g, int n) {                    // beyond the tile
  __shared__ int s[128]; int t = threadIdx.x;
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  s[t] = g[t];                                        //~ race
  tile.sync();
  g[t + 128] = s[t ^ 16];                             //~ race
}
K coalesced_right(int* c, int* out) {
  if (out[threadIdx.x] & 1) {
    auto g = cg::coalesced_threads();
    int first;
    if (g.thread_rank() == 0) first = atomicAdd(c, (int)g.size());
    out[threadIdx.x] = g.shfl(first, 0) + g.thread_rank();
  }
}
K tile64_right(int* g, int n) {
  __shared__ cg::block_tile_memory<128> m;
  auto b = cg::this_thread_block(m);
  auto t = cg::tiled_partition<64>(b);
  g[threadIdx.x + 128] = cg::reduce(t, g[threadIdx.x], cg::plus<int>());
}
//@ grid=4 coop
K grid_right(int* g, int n) {
  auto grid = cg::this_grid();
  g[grid.thread_rank()] = n + (int)grid.thread_rank();
  grid.sync();
  g[512 + grid.thread_rank()] = g[511 - grid.thread_rank()];
}
//@ grid=4 coop
K grid_wrong(int* g, int n) {
  auto grid = cg::this_grid();
  g[grid.thread_rank()] = n + (int)grid.thread_rank();            //~ race
  g[512 + grid.thread_rank()] = g[511 - grid.thread_rank()];      //~ race
  grid.sync();
}
K block_reduce_right(int* g, int n) {
  using R = cub::BlockReduce<int, 128>;
  __shared__ typename R::TempStorage temp;
  int sum = R(temp).Sum(g[threadIdx.x]);
  if (threadIdx.x == 0) g[200] = sum;
}
K block_reduce_wrong(int* g, int n) {                 // the storage is used again without a barrier
  using R = cub::BlockReduce<int, 128>;
  __shared__ typename R::TempStorage temp;
  int a = R(temp).Sum(g[threadIdx.x]);                //~ race
  int b = R(temp).Sum(g[threadIdx.x + 128]);          //~ race
  if (threadIdx.x == 0) g[300] = a + b;
}
K block_scan_right(int* g, int n) {
  using S = cub::BlockScan<int, 128>;
  __shared__ typename S::TempStorage temp;
  int v = g[threadIdx.x];
  S(temp).ExclusiveSum(v, v);
  g[threadIdx.x + 128] = v;
}
K block_sort_right(int* g, int n) {
  using S = cub::BlockRadixSort<int, 128, 2>;
  __shared__ typename S::TempStorage temp;
  int v[2] = {g[2 * threadIdx.x], g[2 * threadIdx.x + 1]};
  S(temp).Sort(v);
  g[2 * threadIdx.x] = v[0]; g[2 * threadIdx.x + 1] = v[1];
}
