// Products of warpgroups, which read shared memory asynchronously and in the async proxy: fences before them, waits behind them.
#include <cstdint>
#define K extern "C" __global__ void
__device__ inline uint32_t sa(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ inline uint64_t desc(const void* p) { return (uint64_t)((sa(p) & 0x3ffff) >> 4) | 8ull << 16 | 16ull << 32; }
__device__ inline void mma(float (&c)[4], uint64_t a, uint64_t b) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0; }"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(a), "l"(b));
}
__device__ inline void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template<int N> __device__ inline void wait(float (&c)[4]) { asm volatile("wgmma.wait_group.sync.aligned %4;" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "n"(N) : "memory"); }
__device__ inline void proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ inline void bulk_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void put(float* out, float (&c)[4]) { for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = c[i]; }
__device__ inline void m_init(uint64_t* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
__device__ inline void m_expect(uint64_t* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
__device__ inline void m_arrive(uint64_t* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sa(b)) : "memory"); }
__device__ inline bool m_try(uint64_t* b, int p) { int ok; asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(sa(b)), "r"(p) : "memory"); return ok; }
__device__ inline void m_wait(uint64_t* b, int p) { while (!m_try(b, p)) {} }
__device__ inline void bulk(void* s, const void* g, int n, uint64_t* b) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(sa(s)), "l"(g), "r"(n), "r"(sa(b)) : "memory"); }

//@ block=128
K product_right(const int* in, float* out) {
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);
  __syncthreads();
  a[threadIdx.x] = 0;
  put(out, c);
}
//@ block=128
K product_fenced_by_reader_right(const int* in, float* out) {
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  __syncthreads(); proxy();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);
  put(out, c);
}
//@ block=128
K product_before_barrier_wrong(const int* in, float* out) {
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[(i * 5) & 511];   //~ race
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];                  //~ race
  proxy();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);                 //~ race
  put(out, c);
}  //? `__syncthreads()` is missing
//@ block=128
K product_without_proxy_fence_wrong(const int* in, float* out) {
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];               //~ race
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];                  //~ race
  __syncthreads();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);                 //~ race
  put(out, c);
}  //? a product of the tensor cores reads `a[
//@ block=128
K product_operand_overwritten_wrong(const int* in, float* out) {
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit();                             //~ race
  __syncthreads();
  a[threadIdx.x] = 0;                                                      //~ race
  wait<0>(c);
  put(out, c);
}  //? `wgmma.commit_group` and `wgmma.wait_group`
//@ block=128
K product_overwritten_without_barrier_wrong(const int* in, float* out) {   // each warp waits for itself only
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);                 //~ race
  if (threadIdx.x < 64) b[threadIdx.x] = 0;                                //~ race
  put(out, c);
}
//@ block=128
K product_never_committed_wrong(const int* in, float* out) {               // the wait waits for no group
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); wait<0>(c);                           //~ race
  __syncthreads();
  b[threadIdx.x & 63] = 0;                                                 //~ race
}
//@ block=128
K products_in_two_buffers_right(const int* in, float* out, int n) {
  __shared__ alignas(128) int a[2][512], b[64];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  float c[4] = {};
  for (int k = 0; k < n; k++) {
    int (&s)[512] = a[k & 1];
    for (int i = threadIdx.x; i < 512; i += 128) s[i] = in[i + k];
    proxy(); __syncthreads();
    fence(); mma(c, desc(s), desc(b)); commit();
    wait<1>(c);   // the product before this one is over, so its buffer may be filled, behind the barrier
    __syncthreads();
  }
  wait<0>(c);
  put(out, c);
}
//@ block=128
K products_in_two_buffers_wrong(const int* in, float* out, int n) {        // two products may be under way in two buffers
  __shared__ alignas(128) int a[2][512], b[64];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  float c[4] = {};
  for (int k = 0; k < n; k++) {
    int (&s)[512] = a[k & 1];
    for (int i = threadIdx.x; i < 512; i += 128) s[i] = in[i + k];         //~ race
    proxy(); __syncthreads();
    fence(); mma(c, desc(s), desc(b)); commit();                           //~ race
    wait<2>(c);
    __syncthreads();
  }
  wait<0>(c);
  put(out, c);
}
//@ block=160
K product_of_bulk_copies_right(const int* in, float* out, int n) {         // a warp copies, a warpgroup multiplies
  __shared__ alignas(128) int a[2][512], b[64];
  __shared__ uint64_t full[2], empty[2];
  if (threadIdx.x == 0) { for (int i = 0; i < 2; i++) { m_init(&full[i], 1); m_init(&empty[i], 4); } }
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) for (int k = 0; k < n; k++) {
      if (k >= 2) m_wait(&empty[k & 1], (k / 2 + 1) & 1);
      m_expect(&full[k & 1], 2048); bulk(a[k & 1], in, 2048, &full[k & 1]);
    }
    return;
  }
  float c[4] = {};
  for (int k = 0; k < n; k++) {
    m_wait(&full[k & 1], k / 2 & 1);
    fence(); mma(c, desc(a[k & 1]), desc(b)); commit(); wait<0>(c);
    if (threadIdx.x % 32 == 0) m_arrive(&empty[k & 1]);
  }
  put(out, c);
}
//@ block=160
K product_of_bulk_copies_released_early_wrong(const int* in, float* out, int n) {
  __shared__ alignas(128) int a[2][512], b[64];
  __shared__ uint64_t full[2], empty[2];
  if (threadIdx.x == 0) { for (int i = 0; i < 2; i++) { m_init(&full[i], 1); m_init(&empty[i], 4); } }
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) for (int k = 0; k < n; k++) {
      if (k >= 2) m_wait(&empty[k & 1], (k / 2 + 1) & 1);
      m_expect(&full[k & 1], 2048); bulk(a[k & 1], in, 2048, &full[k & 1]);  //~ race
    }
    return;
  }
  float c[4] = {};
  for (int k = 0; k < n; k++) {
    m_wait(&full[k & 1], k / 2 & 1);
    fence(); mma(c, desc(a[k & 1]), desc(b)); commit(); wait<1>(c);          //~ race
    if (threadIdx.x % 32 == 0) m_arrive(&empty[k & 1]);                      // releases the buffer of the product under way
  }
  wait<0>(c);
  put(out, c);
}
//@ block=160
K product_before_copy_arrives_wrong(const int* in, float* out) {
  __shared__ alignas(128) int a[512], b[64];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) m_init(&full, 1);
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  if (threadIdx.x == 128) { m_expect(&full, 2048); bulk(a, in, 2048, &full); }  //~ race
  __syncthreads();
  if (threadIdx.x >= 128) return;
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);                      //~ race
  m_wait(&full, 0);
  put(out, c);
}
//@ block=128
K product_of_own_rows_right(const int* in, float* out) {                   // each warp writes its rows, and all write B
  __shared__ alignas(128) int a[512], b[64];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  int w = threadIdx.x / 32, l = threadIdx.x % 32;
  for (int i = l; i < 64; i += 32) { a[w * 128 + i] = in[i]; a[w * 128 + 64 + i] = in[i]; }
  proxy(); __syncwarp();
  float c[4] = {};
  // Rows 16 w to 16 w + 15: two groups of eight rows, 256 bytes each.
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);
  put(out, c);
}
//@ block=128
K product_read_before_wait_wrong(const int* in, float* out) {              // registers are read that the product has not written yet
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit();                             //~ race
  out[threadIdx.x] = c[0] + c[1];                                          //~ race
  wait<0>(c);
}  //? `wgmma.wait_group` is missing between products.cu:
//@ block=128
K product_read_before_the_last_wait_wrong(const int* in, float* out) {     // one group may be pending, which is the one that is read
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {}, d[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); mma(d, desc(a), desc(b)); commit();  //~ race
  wait<1>(d);
  out[threadIdx.x] = d[0] + d[1];                                          //~ race
  wait<0>(d);
}
//@ block=128
K product_read_while_another_pends_right(const int* in, float* out) {
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {}, d[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); mma(d, desc(a), desc(b)); commit();
  wait<1>(c);
  out[threadIdx.x] = c[0] + c[1];
  wait<0>(d);
  out[128 + threadIdx.x] = d[0] + d[1];
}
//@ block=128
K product_without_fence_wrong(const int* in, float* out) {
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {};
  mma(c, desc(a), desc(b)); commit(); wait<0>(c);                          //~ synchronization
  put(out, c);
}  //? without `wgmma.fence`
//@ block=128
K product_of_scaled_sums_wrong(const int* in, float* out) {                // the sums are written between two products
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);
  for (int i = 0; i < 4; i++) c[i] *= in[i] * 0.5f;                        //~ synchronization
  mma(c, desc(a), desc(b)); commit(); wait<0>(c);                          //~ synchronization
  put(out, c);
}
//@ block=128
K product_of_scaled_sums_right(const int* in, float* out) {
  __shared__ alignas(128) int a[512], b[64];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = in[i];
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];
  proxy(); __syncthreads();
  float c[4] = {};
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);
  for (int i = 0; i < 4; i++) c[i] *= in[i] * 0.5f;
  fence(); mma(c, desc(a), desc(b)); commit(); wait<0>(c);
  put(out, c);
}
