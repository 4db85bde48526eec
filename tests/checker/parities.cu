// Phases of barrier objects, waited for by parity: in turn, or not.
#define K extern "C" __global__ void
__device__ inline unsigned sa(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void m_init(unsigned long long* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
__device__ inline void m_arrive(unsigned long long* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sa(b)) : "memory"); }
__device__ inline void m_arrive_relaxed(unsigned long long* b) { asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" :: "r"(sa(b)) : "memory"); }
__device__ inline void m_wait(unsigned long long* b, int p) { int ok; do asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(sa(b)), "r"(p) : "memory"); while (!ok); }
__device__ inline void m_wait_relaxed(unsigned long long* b, int p) { int ok; do asm volatile("{.reg .pred p; mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(sa(b)), "r"(p) : "memory"); while (!ok); }
// phases that are taken in turn, by relaxed operations that order no data
//@ block=64
K relaxed_phases_right(int* g) {
  __shared__ unsigned long long b; int t = threadIdx.x;
  if (t == 0) m_init(&b, 64);
  __syncthreads();
  for (int k = 0; k < 5; k++) { m_arrive_relaxed(&b); m_wait_relaxed(&b, k & 1); }
  g[t] = 1;
}
//@ block=64
K elected_waits_right(int* g) {
  __shared__ unsigned long long b; __shared__ int s[64]; int t = threadIdx.x;
  if (t == 0) m_init(&b, 2);
  __syncthreads();
  for (int k = 0; k < 5; k++) {
    s[t] = k;
    __syncwarp();
    if (t % 32 == 0) { m_arrive(&b); m_wait(&b, k & 1); }
    __syncwarp();
    g[k * 64 + t] = s[63 - t];
    __syncthreads();
  }
}
//@ block=64
K waits_for_second_phase_only_wrong(int* g) {
  __shared__ unsigned long long b; __shared__ int s; int t = threadIdx.x;
  if (t == 0) m_init(&b, 1);
  __syncthreads();
  if (t == 0) { m_arrive(&b); s = g[1]; m_arrive(&b); }
  if (t == 32) { m_wait(&b, 1); g[0] = s; }    //~ synchronization
}
