// Cooperative groups, warp code, and pieces of words.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
//@ grid=2 block=64
K tile_sync_right(int* a, int* o) { __shared__ int s[64]; auto b = cg::this_thread_block(); auto t = cg::tiled_partition<16>(b); s[b.thread_rank()] = a[b.thread_rank()]; t.sync(); o[blockIdx.x * 64 + b.thread_rank()] = s[b.thread_rank() / 16 * 16 + 15 - t.thread_rank()]; }
//@ grid=2 block=64
K tile_sync_for_block_wrong(int* a, int* o) { __shared__ int s[64]; auto b = cg::this_thread_block(); auto t = cg::tiled_partition<16>(b);
   s[b.thread_rank()] = a[b.thread_rank()];  //~ race
   t.sync();
   o[blockIdx.x * 64 + b.thread_rank()] = s[63 - b.thread_rank()];  //~ race
 }
//@ grid=2 block=64
K tile4_neighbour_tile_wrong(int* a, int* o) { __shared__ int s[64]; auto b = cg::this_thread_block(); auto t = cg::tiled_partition<4>(b);
   s[b.thread_rank()] = a[b.thread_rank()];  //~ race
   t.sync();
   o[blockIdx.x * 64 + b.thread_rank()] = s[(b.thread_rank() + 4) % 64];  //~ race
 }
//@ grid=2 block=64
K split_barrier_right(int* a, int* o) { __shared__ int s[64]; auto b = cg::this_thread_block(); int r = b.thread_rank(); s[r] = a[r]; auto tok = b.barrier_arrive(); int x = a[r + 64]; b.barrier_wait(std::move(tok)); o[blockIdx.x * 64 + r] = s[63 - r] + x; }
//@ grid=2 block=64
K split_barrier_early_read_wrong(int* a, int* o) { __shared__ int s[64]; auto b = cg::this_thread_block(); int r = b.thread_rank();
   s[r] = a[r];  //~ race
   auto tok = b.barrier_arrive();
   int x = s[63 - r];  //~ race
   b.barrier_wait(std::move(tok)); o[blockIdx.x * 64 + r] = x; }
//@ grid=3 block=64 coop
K grid_sync_right(int* a, int* o) { auto g = cg::this_grid(); int r = g.thread_rank(); a[r] = r; g.sync(); o[r] = a[191 - r]; g.sync(); a[r] = o[191 - r]; }
//@ grid=3 block=64 coop
K grid_sync_is_block_sync_wrong(int* a, int* o) { auto g = cg::this_grid(); int r = g.thread_rank();
   a[r] = r;  //~ race
   cg::this_thread_block().sync();
   o[r] = a[191 - r];  //~ race
 }
//@ grid=3 block=64 coop
K grid_sync_second_missing_wrong(int* a, int* o) { auto g = cg::this_grid(); int r = g.thread_rank(); a[r] = r; g.sync();
   o[r] = a[191 - r];  //~ race
   a[r] = 5;  //~ race
 }
//@ grid=3 block=64 coop
K grid_split_right(int* a, int* o) { auto g = cg::this_grid(); int r = g.thread_rank(); a[r] = r; auto t = g.barrier_arrive(); int x = o[r + 300]; g.barrier_wait(std::move(t)); o[r] = a[191 - r] + x; }
//@ grid=3 block=64 coop
K grid_split_early_wrong(int* a, int* o) { auto g = cg::this_grid(); int r = g.thread_rank();
   a[r] = r;  //~ race
   auto t = g.barrier_arrive();
   int x = a[191 - r];  //~ race
   g.barrier_wait(std::move(t)); o[r] = x; }
//@ grid=2 block=48
K coalesced_right(int* a, int* o) { int t = threadIdx.x; if (a[t] % 2) { auto c = cg::coalesced_threads(); int s = cg::reduce(c, a[t], cg::plus<int>()); if (c.thread_rank() == 0) atomicAdd(o, s); } }
//@ grid=2 block=48
K coalesced_shared_right(int* a, int* o) { __shared__ int s[2][32]; int t = threadIdx.x; if (a[t] % 3 != 1) { auto c = cg::coalesced_threads(); s[t / 32][c.thread_rank()] = t; c.sync(); o[blockIdx.x * 48 + t] = s[t / 32][c.size() - 1 - c.thread_rank()]; } }
//@ grid=2 block=48
K coalesced_shared_no_sync_wrong(int* a, int* o) { __shared__ int s[2][32]; int t = threadIdx.x; if (a[t] % 3 != 1) { auto c = cg::coalesced_threads();
   s[t / 32][c.thread_rank()] = t;  //~ race
   o[blockIdx.x * 48 + t] = s[t / 32][c.size() - 1 - c.thread_rank()];  //~ race
 } }
//@ grid=2 block=48
K coalesced_one_buffer_wrong(int* a, int* o) { __shared__ int s[32]; int t = threadIdx.x; if (a[t] % 3 != 1) { auto c = cg::coalesced_threads();
   s[c.thread_rank()] = t;  //~ race
   c.sync();
   o[blockIdx.x * 48 + t] = s[c.size() - 1 - c.thread_rank()];
 } }
//@ grid=2 block=64
K labeled_right(int* a, int* o) { auto w = cg::tiled_partition<32>(cg::this_thread_block()); int t = threadIdx.x; auto l = cg::labeled_partition(w, a[t] % 3); int s = cg::reduce(l, 1, cg::plus<int>()); if (l.thread_rank() == 0) atomicAdd(&o[a[t] % 3], s); }
//@ grid=2 block=64
K binary_right(int* a, int* o) { auto w = cg::tiled_partition<32>(cg::this_thread_block()); int t = threadIdx.x; auto l = cg::binary_partition(w, a[t] > 3); int s = cg::inclusive_scan(l, a[t]); o[blockIdx.x * 64 + t] = s; }
//@ grid=2 block=64
K scan_update_right(int* a, int* o) { auto w = cg::tiled_partition<32>(cg::this_thread_block()); int t = threadIdx.x; cuda::atomic_ref<int, cuda::thread_scope_device> c(o[1023]); int at = cg::exclusive_scan_update(w, c, a[t] & 1, cg::plus<int>()); if (a[t] & 1) o[at] = t; }
//@ grid=2 block=64
K scan_update_plain_wrong(int* a, int* o) { auto w = cg::tiled_partition<32>(cg::this_thread_block()); int t = threadIdx.x; int at = cg::exclusive_scan(w, a[t] & 1); int n = cg::reduce(w, a[t] & 1, cg::plus<int>());
   int base = 0; if (w.thread_rank() == 0) { 
     base = o[1023]; o[1023] = base + n;  //~ race
   } base = w.shfl(base, 0); if (a[t] & 1) 
     o[base + at] = t; }
//@ grid=2 block=64
K reduce_async_right(int* a, int* o) { auto b = cg::this_thread_block(); auto w = cg::tiled_partition<32>(b); __shared__ cuda::atomic<int, cuda::thread_scope_block> s; if (b.thread_rank() == 0) s = 0; b.sync(); cg::reduce_update_async(w, s, a[b.thread_rank()], cg::plus<int>()); b.sync(); if (b.thread_rank() == 0) o[blockIdx.x] = s; }
//@ grid=2 block=64
K reduce_async_no_sync_wrong(int* a, int* o) { auto b = cg::this_thread_block(); auto w = cg::tiled_partition<32>(b); __shared__ int s; if (b.thread_rank() == 0) s = 0; b.sync(); cuda::atomic_ref<int, cuda::thread_scope_block> r(s);
   cg::reduce_update_async(w, r, a[b.thread_rank()], cg::plus<int>());
   if (b.thread_rank() == 0) 
     o[blockIdx.x] = s;  //~ race
 }
//@ grid=2 block=64
K memcpy_async_right(int* a, int* o) { __shared__ alignas(16) int s[64]; auto b = cg::this_thread_block(); cg::memcpy_async(b, s, a, sizeof s); cg::wait(b); o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x]; }
//@ grid=2 block=64
K memcpy_async_no_wait_wrong(int* a, int* o) { __shared__ alignas(16) int s[64]; auto b = cg::this_thread_block(); cg::memcpy_async(b, s, a, sizeof s); b.sync();
   o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];  //~ race
 }
//@ grid=2 block=64
K memcpy_async_tile_wait_wrong(int* a, int* o) { __shared__ alignas(16) int s[64]; auto b = cg::this_thread_block(); auto w = cg::tiled_partition<32>(b); cg::memcpy_async(w, s + w.meta_group_rank() * 32, a, 128); cg::wait(w);
   o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];  //~ race
 }
//@ grid=2 block=64
K memcpy_async_stages_right(int* a, int* o) { __shared__ alignas(16) int s[2][64]; auto b = cg::this_thread_block(); int x = 0; cg::memcpy_async(b, s[0], a, 256); for (int k = 0; k < 4; k++) { if (k < 3) { cg::memcpy_async(b, s[(k + 1) % 2], a + (k + 1) * 64, 256); cg::wait_prior<1>(b); } else cg::wait(b); x += s[k % 2][63 - threadIdx.x]; b.sync(); } o[threadIdx.x] = x; }
//@ grid=2 block=64
K memcpy_async_stages_last_prior_wrong(int* a, int* o) { __shared__ alignas(16) int s[2][64]; auto b = cg::this_thread_block(); int x = 0; cg::memcpy_async(b, s[0], a, 256); for (int k = 0; k < 4; k++) { if (k < 3) cg::memcpy_async(b, s[(k + 1) % 2], a + (k + 1) * 64, 256);  
   cg::wait_prior<1>(b);
   x += s[k % 2][63 - threadIdx.x];  //~ race
   b.sync(); } o[blockIdx.x * 64 + threadIdx.x] = x; }
//@ grid=2 block=64
K memcpy_async_stages_no_free_wrong(int* a, int* o) { __shared__ alignas(16) int s[2][64]; auto b = cg::this_thread_block(); int x = 0; cg::memcpy_async(b, s[0], a, 256); for (int k = 0; k < 4; k++) { if (k < 3) { cg::memcpy_async(b, s[(k + 1) % 2], a + (k + 1) * 64, 256); cg::wait_prior<1>(b); } else cg::wait(b);
   x += s[k % 2][63 - threadIdx.x];  //~ race
  } o[blockIdx.x * 64 + threadIdx.x] = x; }
//@ grid=1 block=64
K shfl_is_no_fence_wrong(int* a, int* o) { __shared__ int s[64]; int t = threadIdx.x;
   s[t] = a[t];  //~ race
   int x = __shfl_sync(~0u, t, 0);
   o[t] = s[t ^ 1] + x;  //~ race
 }
//@ grid=1 block=64
K match_is_no_fence_wrong(int* a, int* o) { __shared__ int s[64]; int t = threadIdx.x;
   s[t] = a[t];  //~ race
   unsigned m = __match_any_sync(~0u, a[t]);
   o[t] = s[t / 32 * 32 + __ffs(m) - 1];  //~ race
 }
//@ grid=1 block=64
K syncwarp_mask_right(int* a, int* o) { __shared__ int s[64]; int t = threadIdx.x; unsigned half = t % 32 < 16 ? 0xffff : 0xffff0000; s[t] = a[t]; __syncwarp(half); o[t] = s[t ^ 15]; }
//@ grid=1 block=64
K syncwarp_mask_half_wrong(int* a, int* o) { __shared__ int s[64]; int t = threadIdx.x; unsigned half = t % 32 < 16 ? 0xffff : 0xffff0000;
   s[t] = a[t];  //~ race
   __syncwarp(half);
   o[t] = s[t ^ 31];  //~ race
 }
//@ grid=1 block=20
K partial_warp_reduce_right(int* a, int* o) { __shared__ int s[32]; int t = threadIdx.x; s[t] = a[t]; __syncwarp(0xfffff); for (int k = 16; k; k /= 2) { int x = t + k < 20 && t < k ? s[t + k] : 0; __syncwarp(0xfffff); if (t < k) s[t] += x; __syncwarp(0xfffff); } if (t == 0) o[0] = s[0]; }
//@ grid=1 block=20
K partial_warp_reduce_no_sync_wrong(int* a, int* o) { __shared__ int s[32]; int t = threadIdx.x; s[t] = a[t]; __syncwarp(0xfffff); for (int k = 16; k; k /= 2) { if (t < k && t + k < 20)
   s[t] += s[t + k];  //~ race
  } if (t == 0) o[0] = s[0]; }
//@ grid=1 block=64
K volatile_warp_reduce_wrong(int* a, int* o) { __shared__ volatile int s[64]; int t = threadIdx.x; s[t] = a[t]; __syncthreads(); if (t < 32) {
   s[t] += s[t + 32];  //~ race
   s[t] += s[t + 16];  //~ race
   s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1]; } if (t == 0) o[0] = s[0]; }
//@ grid=2 block=64
K bytes_right(unsigned char* a, int* o) { int g = blockIdx.x * 64 + threadIdx.x; a[g] = g; a[g + 128] += 1; }
//@ grid=2 block=64
K bytes_overlap_wrong(unsigned char* a, int* o) { int g = blockIdx.x * 64 + threadIdx.x;
   *(unsigned short*)(a + g / 2 * 2) = g;  //~ race
 }
//@ grid=1 block=64
K bool_flags_right(int* a, bool* f) { __shared__ bool s[64]; int t = threadIdx.x; s[t] = a[t] > 3; __syncthreads(); f[t] = s[63 - t]; }
//@ grid=1 block=64
K bits_wrong(int* a, unsigned* o) { int t = threadIdx.x; if (a[t] > 3)
   o[t / 32] |= 1u << t % 32;  //~ race
 }
//@ grid=1 block=64
K bits_right(int* a, unsigned* o) { int t = threadIdx.x; if (a[t] > 3) atomicOr(&o[t / 32], 1u << t % 32); }
//@ grid=1 block=64
K bits_ballot_right(int* a, unsigned* o) { int t = threadIdx.x; unsigned b = __ballot_sync(~0u, a[t] > 3); if (t % 32 == 0) o[t / 32] = b; }
struct Bits { unsigned lo : 12, hi : 20; };
//@ grid=1 block=64
K bitfield_wrong(int* a, Bits* o) { int t = threadIdx.x; if (t % 2)
   o[t / 2].hi = a[t];  //~ race
   else
   o[t / 2].lo = a[t];  //~ race
 }
//@ grid=2 block=64 zero
K halves_of_atomic_wrong(unsigned long long* a, unsigned* o) { atomicAdd(a, 1ull);  //~ race
   if (threadIdx.x == 0)
   o[blockIdx.x] = *(volatile unsigned*)a;  //~ race
 }
//@ grid=2 block=64 zero
K whole_of_atomic_right(unsigned long long* a, unsigned* o) { atomicAdd(a, 1ull); if (threadIdx.x == 0) o[blockIdx.x] = *(volatile unsigned long long*)a; }
//@ grid=2 block=64 zero
K half2_atomic_right(__half2* a, unsigned* o) { atomicAdd(a + threadIdx.x % 4, __half2(1, 1)); }
//@ grid=2 block=64 zero
K half_plain_wrong(__half* a, unsigned* o) {
   a[threadIdx.x % 4] = a[threadIdx.x % 4] + __half(1);  //~ race
 }
//@ grid=2 block=64 zero
K short_cas_right(unsigned short* a, unsigned* o) { unsigned short v = *(volatile unsigned short*)a, w; do { w = v; v = atomicCAS(a, w, (unsigned short)(w + 1)); } while (v != w); }
//@ grid=2 block=64 zero
K short_plain_wrong(unsigned short* a, unsigned* o) {
   a[0]++;  //~ race
 }
//@ grid=2 block=64 zero
K adjacent_shorts_right(unsigned short* a, unsigned* o) { a[blockIdx.x * 64 + threadIdx.x]++; }
//@ grid=1 block=64
K float4_disjoint_right(float4* a, float4* o) { int t = threadIdx.x; float4 x = a[t]; x.y += x.x; o[t] = x; }
//@ grid=1 block=64
K named_right(int* a, int* o) { __shared__ int s[64]; int t = threadIdx.x; if (t < 32) { s[t] = a[t]; asm volatile("bar.arrive 1, 64;" ::: "memory"); asm volatile("bar.sync 2, 64;" ::: "memory"); o[t] = s[32 + t]; } else { s[t] = a[t]; asm volatile("bar.sync 1, 64;" ::: "memory"); o[t] = s[t - 32]; asm volatile("bar.arrive 2, 64;" ::: "memory"); } }
//@ grid=1 block=96
K named_ring_right(int* a, int* o) { __shared__ int s[2][32]; int t = threadIdx.x, w = t / 32, l = t % 32; if (w == 0) { for (int k = 0; k < 4; k++) { asm volatile("bar.sync %0, 96;" :: "r"(3 + k % 2) : "memory"); s[k % 2][l] = k * 32 + l; asm volatile("bar.arrive %0, 96;" :: "r"(1 + k % 2) : "memory"); } }
   else { asm volatile("bar.arrive 3, 96;" ::: "memory"); asm volatile("bar.arrive 4, 96;" ::: "memory"); for (int k = 0; k < 4; k++) { asm volatile("bar.sync %0, 96;" :: "r"(1 + k % 2) : "memory"); o[k * 64 + t - 32] = s[k % 2][31 - l]; if (k < 2) asm volatile("bar.arrive %0, 96;" :: "r"(3 + k % 2) : "memory"); } } }
//@ grid=1 block=96
K named_ring_no_empty_wrong(int* a, int* o) { __shared__ int s[2][32]; int t = threadIdx.x, w = t / 32, l = t % 32; if (w == 0) { for (int k = 0; k < 4; k++) {
   s[k % 2][l] = k * 32 + l;  //~ race
   asm volatile("bar.arrive %0, 96;" :: "r"(1 + k % 4) : "memory"); } }
   else { for (int k = 0; k < 4; k++) { asm volatile("bar.sync %0, 96;" :: "r"(1 + k % 4) : "memory");
   o[k * 64 + t - 32] = s[k % 2][31 - l];  //~ race
   } } }
//@ grid=1 block=64
K count_barrier_right(int* a, int* o) { __shared__ int s[64]; int t = threadIdx.x; s[t] = a[t]; int n = __syncthreads_count(a[t] > 2); o[t] = s[63 - t] + n; n = __syncthreads_or(o[t]); s[t] = n; }
//@ grid=2 block=64 zero
K aggregated_right(int* c, int* o) { unsigned m = __activemask(); int l = __ffs(m) - 1, me = threadIdx.x % 32, b; if (me == l) b = atomicAdd(c, __popc(m)); b = __shfl_sync(m, b, l); o[b + __popc(m & ((1u << me) - 1))] = threadIdx.x; }
//@ grid=2 block=64 zero
K aggregated_no_shfl_wrong(int* c, int* o) { __shared__ int b[2]; int me = threadIdx.x % 32, w = threadIdx.x / 32; if (me == 0)
   b[w] = atomicAdd(c, 32);  //~ race
   o[b[w] + me] = threadIdx.x;  //~ race
 }
