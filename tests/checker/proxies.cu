// Bulk copies: the async proxy, and the phases of barrier objects.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
__device__ inline unsigned sa(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void m_init(unsigned long long* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
__device__ inline void m_expect(unsigned long long* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
__device__ inline void m_arrive(unsigned long long* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sa(b)) : "memory"); }
__device__ inline bool m_try(unsigned long long* b, int p) { int ok; asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(sa(b)), "r"(p) : "memory"); return ok; }
__device__ inline void m_wait(unsigned long long* b, int p) { while (!m_try(b, p)) {} }
__device__ inline void bulk_g2s(void* s, const void* g, int n, unsigned long long* b) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(sa(s)), "l"(g), "r"(n), "r"(sa(b)) : "memory"); }
__device__ inline void bulk_s2g(void* g, const void* s, int n) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(g), "r"(sa(s)), "r"(n) : "memory"); }
__device__ inline void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void bulk_wait0() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ inline void bulk_wait_read0() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ inline void fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

//@ block=64
K tma_load_right(const int* g, int* out) {
  __shared__ alignas(128) int s[128]; __shared__ unsigned long long b;
  int t = threadIdx.x;
  if (t == 0) { m_init(&b, 1); fence_proxy(); }
  __syncthreads();
  if (t == 0) { m_expect(&b, 512); bulk_g2s(s, g, 512, &b); }
  m_wait(&b, 0);
  out[t] = s[127 - t];
}
//@ block=64
K tma_load_one_waits_wrong(const int* g, int* out) {
  __shared__ alignas(128) int s[128]; __shared__ unsigned long long b;
  int t = threadIdx.x;
  if (t == 0) { m_init(&b, 1); fence_proxy(); }
  __syncthreads();
  if (t == 0) { m_expect(&b, 512); bulk_g2s(s, g, 512, &b); m_wait(&b, 0); }
  out[t] = s[127 - t];   //~ race
}
//@ block=64
K tma_load_try_ignored_wrong(const int* g, int* out) {
  __shared__ alignas(128) int s[128]; __shared__ unsigned long long b;
  int t = threadIdx.x;
  if (t == 0) { m_init(&b, 1); fence_proxy(); }
  __syncthreads();
  if (t == 0) { m_expect(&b, 512); bulk_g2s(s, g, 512, &b); }
  __syncthreads();
  m_try(&b, 0);
  out[t] = s[127 - t];   //~ race
}
//@ block=64
K tma_wrong_parity_wrong(const int* g, int* out) {   // parity 1: the phase before, which is over
  __shared__ alignas(128) int s[128]; __shared__ unsigned long long b;
  int t = threadIdx.x;
  if (t == 0) { m_init(&b, 1); fence_proxy(); }
  __syncthreads();
  if (t == 0) { m_expect(&b, 512); bulk_g2s(s, g, 512, &b); }
  m_wait(&b, 1);   //~ synchronization, fault
  out[t] = s[127 - t];
}
//@ block=128
K tma_store_right(const int* g, int* out) {
  __shared__ alignas(128) int s[128];
  int t = threadIdx.x;
  for (int i = t; i < 128; i += blockDim.x) s[i] = g[i] + 1;
  fence_proxy();
  __syncthreads();
  if (t == 0) { bulk_s2g(out, s, 512); bulk_commit(); bulk_wait0(); }
}
//@ block=128
K tma_store_no_proxy_fence_wrong(const int* g, int* out) {
  __shared__ alignas(128) int s[128];
  int t = threadIdx.x;
  for (int i = t; i < 128; i += blockDim.x) s[i] = g[i] + 1;   //~ race
  __syncthreads();
  if (t == 0) { bulk_s2g(out, s, 512); bulk_commit(); bulk_wait0(); }  //~ race
}
//@ block=128
K tma_store_no_barrier_wrong(const int* g, int* out) {
  __shared__ alignas(128) int s[128];
  int t = threadIdx.x;
  for (int i = t; i < 128; i += blockDim.x) s[i] = g[i] + 1;   //~ race
  fence_proxy();
  if (t == 0) { bulk_s2g(out, s, 512); bulk_commit(); bulk_wait0(); }  //~ race
}
//@ block=128
K tma_store_reuse_wrong(const int* g, int* out) {
  __shared__ alignas(128) int s[128];
  int t = threadIdx.x;
  for (int r = 0; r < 2; r++) {
    for (int i = t; i < 128; i += blockDim.x) s[i] = g[i] + r;   //~ race
    fence_proxy();
    __syncthreads();
    if (t == 0) { bulk_s2g(out + 128 * r, s, 512); bulk_commit(); }  //~ race
    __syncthreads();
  }
  if (t == 0) bulk_wait0();
}
//@ block=128
K tma_store_reuse_right(const int* g, int* out) {
  __shared__ alignas(128) int s[128];
  int t = threadIdx.x;
  for (int r = 0; r < 2; r++) {
    for (int i = t; i < 128; i += blockDim.x) s[i] = g[i] + r;
    fence_proxy();
    __syncthreads();
    if (t == 0) { bulk_s2g(out + 128 * r, s, 512); bulk_commit(); bulk_wait_read0(); }
    __syncthreads();
  }
  if (t == 0) bulk_wait0();
}
//@ block=128
K ring_right(const int* g, int* out) {    // full/empty barriers, two stages, warp 0 produces
  __shared__ alignas(128) int s[2][128]; __shared__ unsigned long long full[2], empty[2];
  int t = threadIdx.x, consumers = blockDim.x - 32;
  if (t == 0) { for (int i = 0; i < 2; i++) { m_init(&full[i], 1); m_init(&empty[i], consumers); } fence_proxy(); }
  __syncthreads();
  if (t < 32) {
    if (t == 0) for (int k = 0; k < 6; k++) {
      int st = k & 1;
      if (k >= 2) m_wait(&empty[st], (k / 2 - 1) & 1);
      m_expect(&full[st], 512); bulk_g2s(s[st], g + 128 * k, 512, &full[st]);
    }
  } else {
    int a = 0;
    for (int k = 0; k < 6; k++) { int st = k & 1; m_wait(&full[st], k / 2 & 1); a += s[st][t - 32]; m_arrive(&empty[st]); }
    out[t] = a;
  }
}
//@ block=128
K ring_no_empty_wait_wrong(const int* g, int* out) {
  __shared__ alignas(128) int s[2][128]; __shared__ unsigned long long full[2], empty[2];
  int t = threadIdx.x, consumers = blockDim.x - 32;
  if (t == 0) { for (int i = 0; i < 2; i++) { m_init(&full[i], 1); m_init(&empty[i], consumers); } fence_proxy(); }
  __syncthreads();
  if (t < 32) {
    if (t == 0) for (int k = 0; k < 4; k++) {
      int st = k & 1;
      m_expect(&full[st], 512); bulk_g2s(s[st], g + 128 * k, 512, &full[st]);
      m_wait(&full[st], k / 2 & 1);
    }
  } else {
    int a = 0;
    for (int k = 0; k < 2; k++) { int st = k & 1; m_wait(&full[st], 0); a += s[st][t - 32]; m_arrive(&empty[st]); }   //~ synchronization, fault
    out[t] = a;
  }
}
//@ block=128
K ring_early_release_wrong(const int* g, int* out) {    // the slot is released before it is read
  __shared__ alignas(128) int s[2][128]; __shared__ unsigned long long full[2], empty[2];
  int t = threadIdx.x, consumers = blockDim.x - 32;
  if (t == 0) { for (int i = 0; i < 2; i++) { m_init(&full[i], 1); m_init(&empty[i], consumers); } fence_proxy(); }
  __syncthreads();
  if (t < 32) {
    if (t == 0) for (int k = 0; k < 6; k++) {
      int st = k & 1;
      if (k >= 2) m_wait(&empty[st], (k / 2 - 1) & 1);
      m_expect(&full[st], 512); bulk_g2s(s[st], g + 128 * k, 512, &full[st]);   //~ race
    }
  } else {
    int a = 0;
    for (int k = 0; k < 6; k++) { int st = k & 1; m_wait(&full[st], k / 2 & 1); m_arrive(&empty[st]); a += s[st][t - 32]; }  //~ race
    out[t] = a;
  }
}
//@ block=128
K ring_parity_wrong(const int* g, int* out) {    // the producer waits for a phase that is over
  __shared__ alignas(128) int s[2][128]; __shared__ unsigned long long full[2], empty[2];
  int t = threadIdx.x, consumers = blockDim.x - 32;
  if (t == 0) { for (int i = 0; i < 2; i++) { m_init(&full[i], 1); m_init(&empty[i], consumers); } fence_proxy(); }
  __syncthreads();
  if (t < 32) {
    if (t == 0) for (int k = 0; k < 4; k++) {
      int st = k & 1;
      m_wait(&empty[st], (k / 2 & 1) ^ 1 ^ (k >= 2));
      m_expect(&full[st], 512); bulk_g2s(s[st], g + 128 * k, 512, &full[st]);
    }
  } else {
    int a = 0;
    for (int k = 0; k < 4; k++) { int st = k & 1; m_wait(&full[st], k / 2 & 1); a += s[st][t - 32]; m_arrive(&empty[st]); }   //~ synchronization, fault
    out[t] = a;
  }
}
//@ block=128
K generic_write_then_tma_no_fence_wrong(const int* g, int* out) {   // the buffer is zeroed by stores, then filled by a copy
  __shared__ alignas(128) int s[128]; __shared__ unsigned long long b;
  int t = threadIdx.x;
  if (t == 0) m_init(&b, 1);
  for (int i = t; i < 128; i += blockDim.x) s[i] = 0;     //~ race
  __syncthreads();
  if (t == 0) { asm volatile("fence.mbarrier_init.release.cluster;"); m_expect(&b, 256); bulk_g2s(s, g, 256, &b); }  //~ race
  m_wait(&b, 0);
  out[t] = s[127 - t];
}
//@ block=128
K generic_read_then_tma_right(const int* g, int* out) {   // reads, barrier, copy: a WAR needs no proxy fence in practice
  __shared__ alignas(128) int s[128]; __shared__ unsigned long long b;
  int t = threadIdx.x;
  if (t == 0) { m_init(&b, 1); fence_proxy(); }
  __syncthreads();
  int a = 0;
  for (int k = 0; k < 3; k++) {
    if (t == 0) { m_expect(&b, 512); bulk_g2s(s, g + 128 * k, 512, &b); }
    m_wait(&b, k & 1);
    a += s[t];
    __syncthreads();
  }
  out[t] = a;
}
//@ grid=2 cluster=2 block=64
K cluster_tx_st_async_right(int* g) {
  __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; int t = threadIdx.x; auto c = cg::this_cluster();
  if (t == 0) { m_init(&b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
  c.sync();
  if (t == 0) m_expect(&b, 256);
  unsigned ra, rb; int peer = c.block_rank() ^ 1;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(ra) : "r"(sa(&s[t])), "r"(peer));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(rb) : "r"(sa(&b)), "r"(peer));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" :: "r"(ra), "r"(g[t]), "r"(rb) : "memory");
  m_wait(&b, 0);
  g[128 + t + 64 * blockIdx.x] = s[63 - t];
  c.sync();
}
//@ grid=2 cluster=2 block=64
K cluster_tx_st_async_no_wait_wrong(int* g) {
  __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; int t = threadIdx.x; auto c = cg::this_cluster();
  if (t == 0) { m_init(&b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
  c.sync();
  if (t == 0) m_expect(&b, 256);
  unsigned ra, rb; int peer = c.block_rank() ^ 1;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(ra) : "r"(sa(&s[t])), "r"(peer));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(rb) : "r"(sa(&b)), "r"(peer));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" :: "r"(ra), "r"(g[t]), "r"(rb) : "memory");   //~ race
  c.sync();
  g[128 + t + 64 * blockIdx.x] = s[63 - t];   //~ race
  m_wait(&b, 0);
  c.sync();
}
