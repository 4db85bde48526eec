// Barrier objects, bulk copies, clusters, pipelines.
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cooperative_groups.h>
namespace cg = cooperative_groups; namespace px = cuda::ptx;
#define K extern "C" __global__ void
using u64 = uint64_t;
__device__ void init(u64* b, int n) { px::mbarrier_init(b, n); }
__device__ bool tryp(u64* b, int par) { return px::mbarrier_try_wait_parity(b, par); }
__device__ void waitp(u64* b, int par) { while (!tryp(b, par)) {} }
//@ grid=2 block=64
K load_right(int* a, int* o) { __shared__ alignas(128) int s[64]; __shared__ u64 b; if (threadIdx.x == 0) { init(&b, 1); px::fence_mbarrier_init(px::sem_release, px::scope_cluster); } __syncthreads();
   if (threadIdx.x == 0) { px::mbarrier_arrive_expect_tx(px::sem_release, px::scope_cta, px::space_shared, &b, 256); px::cp_async_bulk(px::space_cluster, px::space_global, s, a, 256, &b); } waitp(&b, 0); o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x]; }
//@ grid=2 block=64
K load_no_wait_wrong(int* a, int* o) { __shared__ alignas(128) int s[64]; __shared__ u64 b; if (threadIdx.x == 0) init(&b, 1); __syncthreads();
   if (threadIdx.x == 0) { px::mbarrier_arrive_expect_tx(px::sem_release, px::scope_cta, px::space_shared, &b, 256); px::cp_async_bulk(px::space_cluster, px::space_global, s, a, 256, &b); } __syncthreads();
   o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];  //~ race
 }
//@ grid=2 block=64
K load_one_waits_wrong(int* a, int* o) { __shared__ alignas(128) int s[64]; __shared__ u64 b; if (threadIdx.x == 0) init(&b, 1); __syncthreads();
   if (threadIdx.x == 0) { px::mbarrier_arrive_expect_tx(px::sem_release, px::scope_cta, px::space_shared, &b, 256); px::cp_async_bulk(px::space_cluster, px::space_global, s, a, 256, &b); waitp(&b, 0); }
   o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];  //~ race
 }
//@ grid=2 block=64
K load_one_waits_then_barrier_right(int* a, int* o) { __shared__ alignas(128) int s[64]; __shared__ u64 b; if (threadIdx.x == 0) init(&b, 1); __syncthreads();
   if (threadIdx.x == 0) { px::mbarrier_arrive_expect_tx(px::sem_release, px::scope_cta, px::space_shared, &b, 256); px::cp_async_bulk(px::space_cluster, px::space_global, s, a, 256, &b); waitp(&b, 0); } __syncthreads();
   o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x]; }
//@ grid=2 block=64
K two_stages_right(int* a, int* o) { __shared__ alignas(128) int s[2][64]; __shared__ u64 f[2], e[2]; int t = threadIdx.x; if (t == 0) for (int k = 0; k < 2; k++) { init(f + k, 1); init(e + k, 64); } __syncthreads(); int x = 0;
   for (int k = 0; k < 6; k++) { int q = k % 2, r = k / 2; if (t == 0) { waitp(e + q, (r & 1) ^ 1); px::mbarrier_arrive_expect_tx(px::sem_release, px::scope_cta, px::space_shared, f + q, 256); px::cp_async_bulk(px::space_cluster, px::space_global, s[q], a + k * 64, 256, f + q); }
     waitp(f + q, r & 1); x += s[q][63 - t]; px::mbarrier_arrive(px::sem_release, px::scope_cta, px::space_shared, e + q); } o[blockIdx.x * 64 + t] = x; }
//@ grid=2 block=64
K two_stages_arrive_before_read_wrong(int* a, int* o) { __shared__ alignas(128) int s[2][64]; __shared__ u64 f[2], e[2]; int t = threadIdx.x; if (t == 0) for (int k = 0; k < 2; k++) { init(f + k, 1); init(e + k, 64); } __syncthreads(); int x = 0;
   for (int k = 0; k < 6; k++) { int q = k % 2, r = k / 2; if (t == 0) { waitp(e + q, (r & 1) ^ 1); px::mbarrier_arrive_expect_tx(px::sem_release, px::scope_cta, px::space_shared, f + q, 256); px::cp_async_bulk(px::space_cluster, px::space_global, s[q], a + k * 64, 256, f + q); }
     waitp(f + q, r & 1); px::mbarrier_arrive(px::sem_release, px::scope_cta, px::space_shared, e + q);
     x += s[q][63 - t];  //~ race
   } o[blockIdx.x * 64 + t] = x; }
//@ grid=2 block=64
K two_stages_relaxed_arrive_wrong(int* a, int* o) { __shared__ alignas(128) int s[2][64]; __shared__ u64 f[2], e[2]; int t = threadIdx.x; if (t == 0) for (int k = 0; k < 2; k++) { init(f + k, 1); init(e + k, 64); } __syncthreads(); int x = 0;
   for (int k = 0; k < 6; k++) { int q = k % 2, r = k / 2; if (t == 0) { waitp(e + q, (r & 1) ^ 1); px::mbarrier_arrive_expect_tx(px::sem_release, px::scope_cta, px::space_shared, f + q, 256); px::cp_async_bulk(px::space_cluster, px::space_global, s[q], a + k * 64, 256, f + q); }
     waitp(f + q, r & 1);
     x += s[q][63 - t];  //~ race
     px::mbarrier_arrive(px::sem_relaxed, px::scope_cta, px::space_shared, e + q); } o[blockIdx.x * 64 + t] = x; }
//@ grid=2 block=64
K store_right(int* a, int* o) { __shared__ alignas(128) int s[64]; s[threadIdx.x] = a[threadIdx.x]; px::fence_proxy_async(px::space_shared); __syncthreads(); if (threadIdx.x == 0) { px::cp_async_bulk(px::space_global, px::space_shared, o + blockIdx.x * 64, s, 256); px::cp_async_bulk_commit_group(); px::cp_async_bulk_wait_group_read(px::n32_t<0>()); } __syncthreads(); s[threadIdx.x] = 0; }
//@ grid=2 block=64
K store_no_fence_wrong(int* a, int* o) { __shared__ alignas(128) int s[64];
   s[threadIdx.x] = a[threadIdx.x];  //~ race
   __syncthreads(); if (threadIdx.x == 0) { px::cp_async_bulk(px::space_global, px::space_shared, o + blockIdx.x * 64, s, 256); px::cp_async_bulk_commit_group(); px::cp_async_bulk_wait_group_read(px::n32_t<0>()); } __syncthreads(); s[threadIdx.x] = 0; }
//@ grid=2 block=64
K store_reuse_wrong(int* a, int* o) { __shared__ alignas(128) int s[64]; s[threadIdx.x] = a[threadIdx.x]; px::fence_proxy_async(px::space_shared); __syncthreads(); if (threadIdx.x == 0) { px::cp_async_bulk(px::space_global, px::space_shared, o + blockIdx.x * 64, s, 256); px::cp_async_bulk_commit_group(); } __syncthreads();
   s[threadIdx.x] = 0;  //~ race
 }
//@ grid=2 block=64
K store_then_read_global_wrong(int* a, int* o) { __shared__ alignas(128) int s[64]; s[threadIdx.x] = a[threadIdx.x]; px::fence_proxy_async(px::space_shared); __syncthreads(); if (threadIdx.x == 0) { px::cp_async_bulk(px::space_global, px::space_shared, o + blockIdx.x * 64, s, 256); px::cp_async_bulk_commit_group(); px::cp_async_bulk_wait_group_read(px::n32_t<0>()); } __syncthreads();
   o[500 + blockIdx.x * 64 + threadIdx.x] = o[blockIdx.x * 64 + 63 - threadIdx.x];  //~ race
 }
//@ grid=2 block=64
K store_then_read_global_right(int* a, int* o) { __shared__ alignas(128) int s[64]; s[threadIdx.x] = a[threadIdx.x]; px::fence_proxy_async(px::space_shared); __syncthreads(); if (threadIdx.x == 0) { px::cp_async_bulk(px::space_global, px::space_shared, o + blockIdx.x * 64, s, 256); px::cp_async_bulk_commit_group(); px::cp_async_bulk_wait_group(px::n32_t<0>()); } __syncthreads();
   o[500 + blockIdx.x * 64 + threadIdx.x] = o[blockIdx.x * 64 + 63 - threadIdx.x]; }
//@ grid=2 block=64 zero
K reduce_bulk_right(int* a, int* o) { __shared__ alignas(128) int s[64]; s[threadIdx.x] = 1; px::fence_proxy_async(px::space_shared); __syncthreads(); if (threadIdx.x == 0) { px::cp_reduce_async_bulk(px::space_global, px::space_shared, px::op_add, o, s, 256); px::cp_async_bulk_commit_group(); px::cp_async_bulk_wait_group(px::n32_t<0>()); } }
//@ grid=2 block=64 zero
K reduce_bulk_and_plain_wrong(int* a, int* o) { __shared__ alignas(128) int s[64]; s[threadIdx.x] = 1; px::fence_proxy_async(px::space_shared); __syncthreads(); if (threadIdx.x == 0) { px::cp_reduce_async_bulk(px::space_global, px::space_shared, px::op_add, o, s, 256); px::cp_async_bulk_commit_group(); px::cp_async_bulk_wait_group(px::n32_t<0>()); }
   if (blockIdx.x == 1) a[threadIdx.x] = o[threadIdx.x];  //~ race
 }
//@ grid=4 block=32 cluster=2
K dsmem_right(int* a, int* o) { __shared__ int s[32]; auto c = cg::this_cluster(); s[threadIdx.x] = a[threadIdx.x] + blockIdx.x; c.sync(); int* r = c.map_shared_rank(s, c.block_rank() ^ 1); o[blockIdx.x * 32 + threadIdx.x] = r[31 - threadIdx.x]; c.sync(); }
//@ grid=4 block=32 cluster=2
K dsmem_no_first_sync_wrong(int* a, int* o) { __shared__ int s[32]; auto c = cg::this_cluster();
   s[threadIdx.x] = a[threadIdx.x] + blockIdx.x;  //~ race
   __syncthreads(); int* r = c.map_shared_rank(s, c.block_rank() ^ 1); o[blockIdx.x * 32 + threadIdx.x] = r[31 - threadIdx.x]; c.sync(); }
//@ grid=4 block=32 cluster=2
K dsmem_no_last_sync_wrong(int* a, int* o) { __shared__ int s[32]; auto c = cg::this_cluster(); s[threadIdx.x] = a[threadIdx.x] + blockIdx.x; c.sync(); int* r = c.map_shared_rank(s, c.block_rank() ^ 1);
   o[blockIdx.x * 32 + threadIdx.x] = r[31 - threadIdx.x];  //~ race
 }
//@ grid=4 block=32 cluster=2 zero
K dsmem_atomic_right(int* a, int* o) { __shared__ int s; auto c = cg::this_cluster(); if (threadIdx.x == 0) s = 0; c.sync(); atomicAdd(c.map_shared_rank(&s, 0), 1); c.sync(); if (c.block_rank() == 0 && threadIdx.x == 0) o[blockIdx.x] = s; }
//@ grid=4 block=32 cluster=2
K cluster_split_right(int* a, int* o) { __shared__ int s[32]; auto c = cg::this_cluster(); s[threadIdx.x] = a[threadIdx.x]; auto t = c.barrier_arrive(); int x = a[threadIdx.x + 32]; c.barrier_wait(std::move(t)); int* r = c.map_shared_rank(s, c.block_rank() ^ 1); o[blockIdx.x * 32 + threadIdx.x] = r[31 - threadIdx.x] + x; c.sync(); }
//@ grid=4 block=32 cluster=2
K cluster_split_early_wrong(int* a, int* o) { __shared__ int s[32]; auto c = cg::this_cluster();
   s[threadIdx.x] = a[threadIdx.x];  //~ race
   auto t = c.barrier_arrive(); int* r = c.map_shared_rank(s, c.block_rank() ^ 1);
   o[blockIdx.x * 32 + threadIdx.x] = r[31 - threadIdx.x];  //~ race
   c.barrier_wait(std::move(t)); c.sync(); }
//@ grid=4 block=32 cluster=2
K remote_bulk_right(int* a, int* o) { __shared__ alignas(128) int s[32], d[32]; __shared__ u64 b; auto c = cg::this_cluster(); if (threadIdx.x == 0) { init(&b, 1); px::fence_mbarrier_init(px::sem_release, px::scope_cluster); px::mbarrier_arrive_expect_tx(px::sem_release, px::scope_cta, px::space_shared, &b, 128); } s[threadIdx.x] = a[threadIdx.x]; px::fence_proxy_async(px::space_shared); c.sync();
   if (threadIdx.x == 0) px::cp_async_bulk(px::space_cluster, px::space_shared, c.map_shared_rank(d, c.block_rank() ^ 1), s, 128, c.map_shared_rank(&b, c.block_rank() ^ 1)); waitp(&b, 0); o[blockIdx.x * 32 + threadIdx.x] = d[31 - threadIdx.x]; c.sync(); }
//@ grid=4 block=32 cluster=2
K remote_bulk_no_wait_wrong(int* a, int* o) { __shared__ alignas(128) int s[32], d[32]; __shared__ u64 b; auto c = cg::this_cluster(); if (threadIdx.x == 0) { init(&b, 1); px::fence_mbarrier_init(px::sem_release, px::scope_cluster); px::mbarrier_arrive_expect_tx(px::sem_release, px::scope_cta, px::space_shared, &b, 128); } s[threadIdx.x] = a[threadIdx.x]; px::fence_proxy_async(px::space_shared); c.sync();
   if (threadIdx.x == 0) px::cp_async_bulk(px::space_cluster, px::space_shared, c.map_shared_rank(d, c.block_rank() ^ 1), s, 128, c.map_shared_rank(&b, c.block_rank() ^ 1)); c.sync();
   o[blockIdx.x * 32 + threadIdx.x] = d[31 - threadIdx.x];  //~ race
   c.sync(); }
//@ grid=2 block=64
K pipeline_right(int* a, int* o) { __shared__ alignas(16) int s[2][64]; __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> st; auto g = cg::this_thread_block(); auto p = cuda::make_pipeline(g, &st); int x = 0; for (int k = 0; k < 5; k++) { if (k < 4) { p.producer_acquire(); cuda::memcpy_async(g, s[k % 2], a + k * 64, cuda::aligned_size_t<16>(256), p); p.producer_commit(); } if (k > 0) { p.consumer_wait(); x += s[(k - 1) % 2][63 - threadIdx.x]; p.consumer_release(); } } o[blockIdx.x * 64 + threadIdx.x] = x; }
//@ grid=2 block=64
K pipeline_no_wait_wrong(int* a, int* o) { __shared__ alignas(16) int s[64]; __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> st; auto g = cg::this_thread_block(); auto p = cuda::make_pipeline(g, &st); p.producer_acquire(); cuda::memcpy_async(g, s, a, cuda::aligned_size_t<16>(256), p); p.producer_commit(); __syncthreads();
   o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];  //~ race
   p.consumer_wait(); p.consumer_release(); }
//@ grid=2 block=64
K pipeline_thread_right(int* a, int* o) { __shared__ alignas(16) int s[2][256]; auto p = cuda::make_pipeline(); int x = 0, t = threadIdx.x; for (int k = 0; k < 4; k++) { if (k < 3) { p.producer_acquire(); cuda::memcpy_async(&s[k % 2][t * 4], a + k * 256 + t * 4, cuda::aligned_size_t<16>(16), p); p.producer_commit(); } if (k > 0) { if (k < 3) cuda::pipeline_consumer_wait_prior<1>(p); else cuda::pipeline_consumer_wait_prior<0>(p); x += s[(k - 1) % 2][t * 4]; p.consumer_release(); } } o[blockIdx.x * 64 + t] = x; }
//@ grid=2 block=64
K pipeline_thread_neighbour_wrong(int* a, int* o) { __shared__ alignas(16) int s[256]; auto p = cuda::make_pipeline(); int t = threadIdx.x; p.producer_acquire(); cuda::memcpy_async(&s[t * 4], a + t * 4, cuda::aligned_size_t<16>(16), p); p.producer_commit(); cuda::pipeline_consumer_wait_prior<0>(p);
   o[blockIdx.x * 64 + t] = s[255 - t * 4];  //~ race
 }
//@ grid=2 block=64
K barrier_memcpy_right(int* a, int* o) { __shared__ alignas(16) int s[64]; __shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, 64); __syncthreads(); cuda::memcpy_async(cg::this_thread_block(), s, a, cuda::aligned_size_t<16>(256), b); b.arrive_and_wait(); o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x]; }
//@ grid=2 block=64
K barrier_memcpy_arrive_wrong(int* a, int* o) { __shared__ alignas(16) int s[64]; __shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, 64); __syncthreads(); cuda::memcpy_async(cg::this_thread_block(), s, a, cuda::aligned_size_t<16>(256), b); auto t = b.arrive();
   o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];  //~ race
   b.wait(std::move(t)); }
//@ grid=1 block=96
K specialised_right(int* a, int* o) { __shared__ int s[2][64]; __shared__ cuda::barrier<cuda::thread_scope_block> f[2], e[2]; int t = threadIdx.x; if (t < 2) { init(f + t, 96); init(e + t, 96); } __syncthreads();
   if (t < 32) for (int k = 0; k < 4; k++) { if (k >= 2) e[k % 2].arrive_and_wait(); for (int i = t; i < 64; i += 32) s[k % 2][i] = a[k * 64 + i]; (void)f[k % 2].arrive(); }
   else for (int k = 0; k < 4; k++) { f[k % 2].arrive_and_wait(); o[k * 64 + t - 32] = s[k % 2][95 - t]; if (k < 2) (void)e[k % 2].arrive(); } }
