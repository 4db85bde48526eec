// Work that one thread, warp or CTA hands to another: queues, locks, barriers, rings, and the fences of single state spaces.
#include <cuda/atomic>
#include <cuda/latch>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define TID (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define ONE if (threadIdx.x) return;
typedef unsigned long long u64;
template <class T> using Dev = cuda::atomic_ref<T, cuda::thread_scope_device>;
template <class T> using Blk = cuda::atomic_ref<T, cuda::thread_scope_block>;
using Latch = cuda::latch<cuda::thread_scope_block>;
constexpr auto rlx = cuda::memory_order_relaxed;
constexpr auto rel = cuda::memory_order_release;
constexpr auto acq = cuda::memory_order_acquire;
__device__ inline unsigned sa(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void minit(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
__device__ inline void mexp(u64* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
__device__ inline void marr(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sa(b)) : "memory"); }
__device__ inline void mwait(u64* b, int p) {
  int ok;
  do asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(sa(b)), "r"(p) : "memory");
  while (!ok);
}
__device__ inline void g2s(void* s, const void* g, int n, u64* b) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(sa(s)), "l"(g), "r"(n), "r"(sa(b)) : "memory"); }
__device__ inline void s2g(void* g, const void* s, int n) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(g), "r"(sa(s)), "r"(n) : "memory"); }
__device__ inline void bcommit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void pfence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Lamport's queue of one producer and one consumer.
//@ grid=2 block=32 zero
K lamport_right(int* head, int* tail, int* buf) { ONE Dev<int> h(*head), t(*tail);
  if (blockIdx.x == 0) for (int i = 0; i < 12; i++) { while (t.load(rlx) - h.load(acq) >= 4) {} buf[i & 3] = i; t.store(i + 1, rel); }
  else for (int i = 0; i < 12; i++) { while (t.load(acq) == i) {} buf[64 + i] = buf[i & 3]; h.store(i + 1, rel); } }
//@ grid=2 block=32 zero
K lamport_head_read_relaxed_wrong(int* head, int* tail, int* buf) { ONE Dev<int> h(*head), t(*tail);
  if (blockIdx.x == 0) for (int i = 0; i < 12; i++) { while (t.load(rlx) - h.load(acq) >= 4) {} buf[i & 3] = i; t.store(i + 1, rel); }  //~ race
  else for (int i = 0; i < 12; i++) { while (t.load(rlx) == i) {} buf[64 + i] = buf[i & 3]; h.store(i + 1, rel); } }  //~ race
//@ grid=2 block=32 zero
K lamport_tail_before_item_wrong(int* head, int* tail, int* buf) { ONE Dev<int> h(*head), t(*tail);
  if (blockIdx.x == 0) for (int i = 0; i < 12; i++) { while (t.load(rlx) - h.load(acq) >= 4) {} t.store(i + 1, rel); buf[i & 3] = i; }  //~ race
  else for (int i = 0; i < 12; i++) { while (t.load(acq) == i) {} buf[64 + i] = buf[i & 3]; h.store(i + 1, rel); } }  //~ race
//@ grid=2 block=32 zero
K lamport_head_stored_before_item_taken_wrong(int* head, int* tail, int* buf) { ONE Dev<int> h(*head), t(*tail);
  if (blockIdx.x == 0) for (int i = 0; i < 12; i++) { while (t.load(rlx) - h.load(acq) >= 4) {} buf[i & 3] = i; t.store(i + 1, rel); }  //~ race
  else for (int i = 0; i < 12; i++) { while (t.load(acq) == i) {} h.store(i + 1, rel); buf[64 + i] = buf[i & 3]; } }  //~ race

// A lock for a part of the data.
//@ grid=2 block=64 zero
K striped_right(int* l, int* c) { for (int t = 0; t < 32; t++) if (t == threadIdx.x % 32) { int i = TID * 7 & 15; int* k = l + (i & 3); while (atomicCAS(k, 0, 1)) {} __threadfence(); c[i]++; __threadfence(); atomicExch(k, 0); } }
//@ grid=2 block=64 zero
K striped_wrong_stripe_wrong(int* l, int* c) { for (int t = 0; t < 32; t++) if (t == threadIdx.x % 32) { int i = TID * 7 & 15; int* k = l + (TID & 3); while (atomicCAS(k, 0, 1)) {} __threadfence();
  c[i >> 1]++;   //~ race
  __threadfence(); atomicExch(k, 0); } }

// A lock by tickets whose holder passes it on by a plain increment.
//@ grid=4 block=32 zero
K ticket_plain_bump_wrong(int* next, int* serving, int* c) { ONE int my = atomicAdd(next, 1); while (Dev<int>(*serving).load(acq) != my) {}   //~ race
  c[0]++; __threadfence(); (*serving)++; }  //~ race

// From a thread to another one of the CTA, and on to another CTA.
//@ grid=2 block=64 zero
K relay_cta_then_gpu_right(int* f, int* d) { __shared__ int m; int t = threadIdx.x; if (t == 0) m = 0; __syncthreads();
  if (blockIdx.x == 0) { if (t == 0) { d[0] = 1; Blk<int>(m).store(1, rel); } if (t == 32) { while (!Blk<int>(m).load(acq)) {} Dev<int>(*f).store(1, rel); } }
  else if (t == 0) { while (!Dev<int>(*f).load(acq)) {} d[1] = d[0]; } }
//@ grid=2 block=64 zero
K relay_cta_relaxed_then_gpu_wrong(int* f, int* d) { __shared__ int m; int t = threadIdx.x; if (t == 0) m = 0; __syncthreads();
  if (blockIdx.x == 0) { if (t == 0) { d[0] = 1; Blk<int>(m).store(1, rlx); } if (t == 32) { while (!Blk<int>(m).load(acq)) {} Dev<int>(*f).store(1, rel); } }   //~ race
  else if (t == 0) { while (!Dev<int>(*f).load(acq)) {} d[1] = d[0]; } }   //~ race
//@ grid=2 block=32 zero
K block_flag_device_fence_wrong(int* f, int* d) { ONE if (blockIdx.x == 0) { d[0] = 1; __threadfence(); Blk<int>(*f).store(1, rlx); }   //~ race
  else { while (!Blk<int>(*f).load(rlx)) {} __threadfence(); d[1] = d[0]; } }   //~ race

// A hazard pointer: the reader announces what it reads.
//@ grid=2 block=32 zero
K hazard_right(int* head, int* haz, int* nodes) { ONE Dev<int> h(*head), z(*haz);
  if (blockIdx.x == 0) { nodes[1] = 11; nodes[2] = 22; h.store(1, rel); h.exchange(2, cuda::memory_order_acq_rel); __threadfence(); while (z.load(acq) == 1) {} nodes[1] = -1; }
  else { int p; do { p = h.load(rlx); z.store(p, rlx); __threadfence(); } while (p == 0 || h.load(acq) != p); nodes[8] = nodes[p]; z.store(0, rel); } }

// A latch.
//@ grid=1 block=64
K latch_count_down_right(int* d) { __shared__ alignas(Latch) char room[sizeof(Latch)]; auto& l = *(Latch*)room; __shared__ int s[64]; if (threadIdx.x == 0) ::new (&l) Latch(32); __syncthreads();
  if (threadIdx.x < 32) { s[threadIdx.x] = threadIdx.x; l.count_down(); } else { l.wait(); d[threadIdx.x] = s[threadIdx.x - 32]; } }
//@ grid=1 block=64
K latch_count_down_early_wrong(int* d) { __shared__ alignas(Latch) char room[sizeof(Latch)]; auto& l = *(Latch*)room; __shared__ int s[64]; if (threadIdx.x == 0) ::new (&l) Latch(32); __syncthreads();
  if (threadIdx.x < 32) { l.count_down();
     s[threadIdx.x] = threadIdx.x; } else { l.wait(); d[threadIdx.x] = s[threadIdx.x - 32]; } }   //~ race
//@ grid=1 block=64
K latch_too_few_wrong(int* d) { __shared__ alignas(Latch) char room[sizeof(Latch)]; auto& l = *(Latch*)room; __shared__ int s[64]; if (threadIdx.x == 0) ::new (&l) Latch(16); __syncthreads();
  if (threadIdx.x < 32) { s[threadIdx.x] = threadIdx.x; if (threadIdx.x < 16) l.count_down(); } else { l.wait(); d[threadIdx.x] = s[threadIdx.x - 32]; } }   //~ race

// A ring of three tiles, filled by bulk copies and emptied by three warps.
#define RING(N) \
  __shared__ alignas(128) int s[3][32]; __shared__ u64 full[3], empty[3]; int t = threadIdx.x; \
  if (t == 0) for (int i = 0; i < 3; i++) { minit(full + i, 1); minit(empty + i, N); } \
  if (t == 0) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); \
  __syncthreads();
//@ block=128
K ring3_right(const int* g, int* out) {
  RING(96)
  if (t < 32) { if (t == 0) for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(empty + i, (r & 1) ^ 1); mexp(full + i, 128); g2s(s[i], g + k * 32, 128, full + i); } }
  else { int a = 0; for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(full + i, r & 1); a += s[i][(t * 5) & 31]; marr(empty + i); } out[t] = a; }
}
//@ block=128
K ring3_empty_before_read_wrong(const int* g, int* out) {
  RING(96)
  if (t < 32) { if (t == 0) for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(empty + i, (r & 1) ^ 1); mexp(full + i, 128); g2s(s[i], g + k * 32, 128, full + i); } }  //~ race
  else { int a = 0; for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(full + i, r & 1); marr(empty + i); a += s[i][(t * 5) & 31]; } out[t] = a; }   //~ race
}
//@ block=128
K ring3_full_wrong_stage_wrong(const int* g, int* out) {
  RING(96)
  if (t < 32) { if (t == 0) for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(empty + i, (r & 1) ^ 1); mexp(full + i, 128); g2s(s[i], g + k * 32, 128, full + i); } }  //~ race
  else { int a = 0; for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(full + i, r & 1); a += s[(i + 1) % 3][(t * 5) & 31]; marr(empty + i); } out[t] = a; }   //~ race
}
//@ block=128
K ring3_one_lane_frees_wrong(const int* g, int* out) {
  RING(3)
  if (t < 32) { if (t == 0) for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(empty + i, (r & 1) ^ 1); mexp(full + i, 128); g2s(s[i], g + k * 32, 128, full + i); } }  //~ race
  else { int a = 0; for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(full + i, r & 1); a += s[i][(t * 5) & 31]; if (t % 32 == 0) marr(empty + i); } out[t] = a; }   //~ race
}
//@ block=128
K ring3_one_lane_frees_syncwarp_right(const int* g, int* out) {
  RING(3)
  if (t < 32) { if (t == 0) for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(empty + i, (r & 1) ^ 1); mexp(full + i, 128); g2s(s[i], g + k * 32, 128, full + i); } }
  else { int a = 0; for (int k = 0; k < 8; k++) { int i = k % 3, r = k / 3; mwait(full + i, r & 1); a += s[i][(t * 5) & 31]; __syncwarp(); if (t % 32 == 0) marr(empty + i); } out[t] = a; }
}

// A proxy fence of a state space says nothing of others.
#define COPYBACK(FENCE) \
  __shared__ alignas(128) int s[64]; __shared__ u64 b; int t = threadIdx.x; g[t] = t; FENCE; \
  if (t == 0) minit(&b, 1); __syncthreads(); \
  if (t == 0) { mexp(&b, 256); g2s(s, g, 256, &b); } mwait(&b, 0); out[t] = s[63 - t];
//@ block=64
K gfence_all_right(int* g, int* out) { COPYBACK(asm volatile("fence.proxy.async;" ::: "memory")) }
//@ block=64
K gfence_global_right(int* g, int* out) { COPYBACK(asm volatile("fence.proxy.async.global;" ::: "memory")) }
//@ block=64
K gfence_shared_wrong(int* g, int* out) { COPYBACK(asm volatile("fence.proxy.async.shared::cta;" ::: "memory")) }   //~ race
#define COPYOUT(FENCE) __shared__ alignas(128) int s[64]; int t = threadIdx.x; s[t] = t; FENCE; __syncthreads(); if (t == 0) { s2g(out, s, 256); bcommit(); asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
//@ block=64
K sfence_shared_right(int* out) { COPYOUT(asm volatile("fence.proxy.async.shared::cta;" ::: "memory")) }
//@ block=64
K sfence_cluster_right(int* out) { COPYOUT(asm volatile("fence.proxy.async.shared::cluster;" ::: "memory")) }
//@ block=64
K sfence_global_wrong(int* out) { COPYOUT(asm volatile("fence.proxy.async.global;" ::: "memory")) }   //~ race
//@ block=64
K sfence_alias_wrong(int* out) { COPYOUT(asm volatile("fence.proxy.alias;" ::: "memory")) }   //~ race

// Tiles that other CTAs get.
//@ grid=2 block=32 zero
K tile_to_other_cta_right(int* f, int* d) { __shared__ alignas(128) int s[32]; int t = threadIdx.x;
  if (blockIdx.x == 0) { s[t] = t + 1; asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncwarp(); if (t == 0) { s2g(d, s, 128); bcommit(); asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); Dev<int>(*f).store(1, rel); } }
  else { if (t == 0) while (!Dev<int>(*f).load(acq)) {} __syncwarp(); d[64 + t] = d[t]; } }
//@ grid=2 block=32 zero
K tile_to_other_cta_read_wait_wrong(int* f, int* d) { __shared__ alignas(128) int s[32]; int t = threadIdx.x;
  if (blockIdx.x == 0) { s[t] = t + 1; asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncwarp(); if (t == 0) {
    s2g(d, s, 128); bcommit(); asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); Dev<int>(*f).store(1, rel); } }   //~ race
  else { if (t == 0) while (!Dev<int>(*f).load(acq)) {} __syncwarp(); d[64 + t] = d[t]; } }   //~ race
//@ grid=2 block=32 cluster=2
K st_async_right(int* out) { __shared__ alignas(8) int s[32]; __shared__ u64 b; auto c = cg::this_cluster(); int t = threadIdx.x, r = c.block_rank();
  if (t == 0) { minit(&b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); mexp(&b, 128); } c.sync();
  asm volatile("{.reg .b32 a, m; mapa.shared::cluster.u32 a, %0, %2; mapa.shared::cluster.u32 m, %1, %2; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [a], %3, [m];}" :: "r"(sa(&s[t])), "r"(sa(&b)), "r"(r ^ 1), "r"(t) : "memory");
  mwait(&b, 0); out[r * 32 + t] = s[31 - t]; c.sync(); }
//@ grid=2 block=32 cluster=2
K st_async_not_awaited_wrong(int* out) { __shared__ alignas(8) int s[32]; __shared__ u64 b; auto c = cg::this_cluster(); int t = threadIdx.x, r = c.block_rank();
  if (t == 0) { minit(&b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); mexp(&b, 128); } c.sync();
  asm volatile("{.reg .b32 a, m; mapa.shared::cluster.u32 a, %0, %2; mapa.shared::cluster.u32 m, %1, %2; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [a], %3, [m];}" :: "r"(sa(&s[t])), "r"(sa(&b)), "r"(r ^ 1), "r"(t) : "memory");   //~ race
  c.sync(); out[r * 32 + t] = s[31 - t]; }   //~ race

// A copy to several CTAs of a cluster.
//@ grid=2 block=32 cluster=2
K multicast_right(const int* g, int* out) {
  __shared__ alignas(128) int s[32]; __shared__ u64 b; auto c = cg::this_cluster(); int t = threadIdx.x, r = c.block_rank();
  if (t == 0) { minit(&b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); mexp(&b, 128); } c.sync();
  if (r == 0 && t == 0) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" :: "r"(sa(s)), "l"(g), "r"(sa(&b)), "h"((short)3) : "memory");
  mwait(&b, 0); out[r * 32 + t] = s[31 - t]; c.sync();
}
//@ grid=2 block=32 cluster=2
K multicast_no_wait_in_other_wrong(const int* g, int* out) {
  __shared__ alignas(128) int s[32]; __shared__ u64 b; auto c = cg::this_cluster(); int t = threadIdx.x, r = c.block_rank();
  if (t == 0) { minit(&b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); mexp(&b, 128); } c.sync();
  if (r == 0 && t == 0) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" :: "r"(sa(s)), "l"(g), "r"(sa(&b)), "h"((short)3) : "memory");  //~ race
  if (r == 0) mwait(&b, 0); out[r * 32 + t] = s[31 - t]; c.sync();    //~ race
}

// A sort whose last steps stay within a warp.
//@ block=64
K bitonic_warp_steps_wrong(const int* in, int* out) { __shared__ int s[64]; int t = threadIdx.x; s[t] = in[t]; __syncthreads(); for (int k = 2; k <= 64; k *= 2) for (int j = k / 2; j; j /= 2) { int o = t ^ j;
  if (o > t && (s[t] > s[o]) == ((t & k) == 0)) { int x = s[t]; s[t] = s[o]; s[o] = x; }   //~ race
  if (j >= 32) __syncthreads(); } out[t] = s[t]; }
//@ block=64
K bitonic_warp_steps_syncwarp_right(const int* in, int* out) { __shared__ int s[64]; int t = threadIdx.x; s[t] = in[t]; __syncthreads(); for (int k = 2; k <= 64; k *= 2) for (int j = k / 2; j; j /= 2) { int o = t ^ j; if (o > t && (s[t] > s[o]) == ((t & k) == 0)) { int x = s[t]; s[t] = s[o]; s[o] = x; } if (j > 32) __syncthreads(); else if (j == 32 || k == 32 && j == 1) __syncthreads(); else __syncwarp(); } out[t] = s[t]; }

// The first one to come sets a value up for the others.
//@ block=96
K lazy_init_atomic_winner_no_wait_wrong(int* out) { __shared__ int st, v; if (threadIdx.x == 0) st = 0; __syncthreads(); if (threadIdx.x % 32 == 0) { if (atomicCAS(&st, 0, 1) == 0) v = blockDim.x + 1;   //~ race
   out[threadIdx.x] = v; } }  //~ race
//@ block=96
K lazy_init_atomic_winner_waits_right(int* out) { __shared__ int st, v; if (threadIdx.x == 0) st = 0; __syncthreads(); if (threadIdx.x % 32 == 0) { cuda::atomic_ref<int, cuda::thread_scope_block> a(st); int e = 0; if (a.compare_exchange_strong(e, 1)) { v = blockDim.x + 1; a.store(2, rel); } else while (a.load(acq) != 2) {} out[threadIdx.x] = v; } }
