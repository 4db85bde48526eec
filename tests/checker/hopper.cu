// Clusters: shared memory of other CTAs, and their end.
#include <cooperative_groups.h>
#define K extern "C" __global__ void
namespace cg = cooperative_groups;

//@ grid=2 block=64 cluster=2
K remote_read_right(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x; auto c = cg::this_cluster();
  s[t] = g[t] + c.block_rank();
  c.sync();
  int v = *c.map_shared_rank(&s[63 - t], c.block_rank() ^ 1);
  c.sync();
  g[blockIdx.x * 64 + t + 128] = v;
}
//@ grid=2 block=64 cluster=2
K remote_read_unsynced_wrong(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x; auto c = cg::this_cluster();
  s[t] = g[t] + c.block_rank();                                                       //~ race
  __syncthreads();
  int v = *c.map_shared_rank(&s[63 - t], c.block_rank() ^ 1);                         //~ race
  c.sync();
  g[blockIdx.x * 64 + t + 128] = v;
}
//@ grid=2 block=64 cluster=2
K remote_read_ended_wrong(int* g, int n) {                                  // the other CTA may have ended
  __shared__ int s[64]; int t = threadIdx.x; auto c = cg::this_cluster();
  s[t] = g[t] + c.block_rank();
  c.sync();
  g[blockIdx.x * 64 + t + 128] = *c.map_shared_rank(&s[63 - t], c.block_rank() ^ 1);  //~ race
}
//@ grid=2 block=64 cluster=2
K remote_write_ended_wrong(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x; auto c = cg::this_cluster();
  c.sync();
  *c.map_shared_rank(&s[t], c.block_rank() ^ 1) = g[t];                               //~ race
}
//@ grid=2 block=64 cluster=2
K remote_write_right(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x; auto c = cg::this_cluster();
  c.sync();
  *c.map_shared_rank(&s[t], c.block_rank() ^ 1) = g[t];
  c.sync();
  g[blockIdx.x * 64 + t] = s[t];
}
//@ grid=2 block=64 cluster=2
K remote_bins_right(int* g, int n) {
  __shared__ int bins[8]; int t = threadIdx.x; auto c = cg::this_cluster();
  if (t < 8) bins[t] = 0;
  c.sync();
  int v = g[t] & 7;
  atomicAdd(c.map_shared_rank(&bins[v], v & 1), 1);
  c.sync();
  if (t < 8) g[t + 64 + 8 * blockIdx.x] = bins[t];
}
//@ grid=2 block=64 cluster=2
K remote_bins_unready_wrong(int* g, int n) {                                // the other's bins may not be zero yet
  __shared__ int bins[8]; int t = threadIdx.x; auto c = cg::this_cluster();
  if (t < 8) bins[t] = 0;                                                             //~ race
  __syncthreads();
  int v = g[t] & 7;
  atomicAdd(c.map_shared_rank(&bins[v], v & 1), 1);                                   //~ race
  c.sync();
  if (t < 8) g[t + 64 + 8 * blockIdx.x] = bins[t];
}
//@ grid=2 block=64 cluster=2
K remote_owner_waits_right(int* g, int n) {                                 // one CTA reads, the other one waits for it
  __shared__ int s[64]; int t = threadIdx.x; auto c = cg::this_cluster();
  s[t] = g[t];
  c.sync();
  if (c.block_rank() == 0) g[t + 128] = *c.map_shared_rank(&s[t], 1);
  cg::cluster_group::barrier_arrive();
  if (c.block_rank() == 1) cg::cluster_group::barrier_wait();
  else cg::cluster_group::barrier_wait();
}
