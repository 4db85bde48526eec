// Tensor memory: completion of products, copies, loads and stores, and shared memory that products read.
#include <cstdint>
#define K extern "C" __global__ void
__device__ inline uint32_t sa(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ inline uint64_t desc(const void* p) { return (uint64_t)((sa(p) & 0x3ffff) >> 4) | 8ull << 16 | 16ull << 32 | 1ull << 46; }
__device__ inline void alloc(uint32_t* p) { asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(sa(p)) : "memory"); }
__device__ inline void dealloc(uint32_t t) { asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(t) : "memory"); }
// f16 inputs, f32 results, 128 rows, 8 columns, depth 16.
__device__ inline void mma(uint32_t d, uint64_t a, uint64_t b, int more) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
    :: "r"(d), "l"(a), "l"(b), "r"(8u << 24 | 1u << 17 | 1u << 4), "r"(more) : "memory");
}
__device__ inline void commit(uint64_t* b) { asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(sa(b)) : "memory"); }
__device__ inline void before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ inline void after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
__device__ inline void wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
__device__ inline void wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
__device__ inline void load(uint32_t t, float (&c)[8]) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
    : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3]), "=f"(c[4]), "=f"(c[5]), "=f"(c[6]), "=f"(c[7]) : "r"(t) : "memory");
}
__device__ inline void store(uint32_t t, float x) { asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1,%1,%1,%1,%1,%1,%1,%1};" :: "r"(t), "f"(x) : "memory"); }
__device__ inline void m_init(uint64_t* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
__device__ inline bool m_try(uint64_t* b, int p) { int ok; asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(sa(b)), "r"(p) : "memory"); return ok; }
__device__ inline void m_wait(uint64_t* b, int p) { while (!m_try(b, p)) {} }
__device__ inline void proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void put(float* out, float (&c)[8]) { for (int i = 0; i < 8; i++) out[threadIdx.x * 8 + i] = c[i]; }
#define BEGIN \
  __shared__ alignas(128) int a[1024], b[64]; __shared__ uint64_t bar; __shared__ uint32_t place; \
  for (int i = threadIdx.x; i < 1024; i += 128) a[i] = in[i]; \
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x]; \
  if (threadIdx.x == 0) m_init(&bar, 1); \
  if (threadIdx.x < 32) alloc(&place);
#define READY \
  proxy(); before(); __syncthreads(); after(); \
  uint32_t t = place, mine = t + (threadIdx.x / 32 * 32 << 16); float c[8] = {};
#define END \
  before(); __syncthreads(); \
  if (threadIdx.x < 32) dealloc(t);

//@ block=128
K tensor_right(const int* in, float* out) {
  BEGIN READY
  if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 0); mma(t, desc(a), desc(b), 1); commit(&bar); }
  m_wait(&bar, 0); after();
  load(mine, c); wait_ld();
  a[threadIdx.x] = 0;
  put(out, c);
  END
}
//@ block=128
K tensor_loaded_before_product_ends_wrong(const int* in, float* out) {
  BEGIN READY
  if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 0); commit(&bar); }   //~ race
  before(); __syncthreads(); after();                                    // waits for the thread, not for the product
  load(mine, c); wait_ld();                                              //~ race
  m_wait(&bar, 0);
  put(out, c);
  END
}  //? lane 0, column 0 of tensor memory
//@ block=128
K tensor_operand_overwritten_wrong(const int* in, float* out) {
  BEGIN READY
  if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 0); commit(&bar); }   //~ race
  before(); __syncthreads(); after();
  a[threadIdx.x] = 0;                                                    //~ race
  m_wait(&bar, 0); after();
  load(mine, c); wait_ld();
  put(out, c);
  END
}  //? `tcgen05.commit`
//@ block=128
K tensor_without_proxy_fence_wrong(const int* in, float* out) {
  __shared__ alignas(128) int a[1024], b[64]; __shared__ uint64_t bar; __shared__ uint32_t place;
  for (int i = threadIdx.x; i < 1024; i += 128) a[i] = in[i];            //~ race
  if (threadIdx.x < 64) b[threadIdx.x] = in[threadIdx.x];                //~ race
  if (threadIdx.x == 0) m_init(&bar, 1);
  if (threadIdx.x < 32) alloc(&place);
  before(); __syncthreads(); after();
  uint32_t t = place, mine = t + (threadIdx.x / 32 * 32 << 16); float c[8] = {};
  if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 0); commit(&bar); }   //~ race
  m_wait(&bar, 0); after();
  load(mine, c); wait_ld();
  put(out, c);
  END
}
//@ block=128
K tensor_committed_too_early_wrong(const int* in, float* out) {
  BEGIN READY
  if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 0); commit(&bar); mma(t, desc(a), desc(b), 1); }   //~ race
  m_wait(&bar, 0); after();
  load(mine, c); wait_ld();                                              //~ race
  before(); __syncthreads(); after();
  if (threadIdx.x == 0) commit(&bar);
  m_wait(&bar, 1);
  put(out, c);
  END
}
//@ block=128
K tensor_stores_right(const int* in, float* out) {                       // the accumulator begins with what threads have stored
  BEGIN READY
  store(mine, 2.0f); wait_st();
  before(); __syncthreads(); after();
  if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 1); commit(&bar); }
  m_wait(&bar, 0); after();
  load(mine, c); wait_ld();
  put(out, c);
  END
}
//@ block=128
K tensor_stores_not_awaited_wrong(const int* in, float* out) {
  BEGIN READY
  store(mine, 2.0f);                                                     //~ race
  before(); __syncthreads(); after();
  if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 1); commit(&bar); }   //~ race
  m_wait(&bar, 0); after();
  load(mine, c); wait_ld();
  put(out, c);
  END
}  //? `tcgen05.wait::st` is missing
//@ block=128
K tensor_stores_before_barrier_wrong(const int* in, float* out) {
  BEGIN READY
  store(mine, 2.0f); wait_st();                                          //~ race
  if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 1); commit(&bar); }   //~ race
  m_wait(&bar, 0); after();
  load(mine, c); wait_ld();
  put(out, c);
  END
}
//@ block=128
K tensor_store_then_load_wrong(const int* in, float* out) {              // of one warp, without a wait in between
  BEGIN READY
  store(mine, 2.0f);                                                     //~ race
  load(mine, c); wait_ld();                                              //~ race
  wait_st();
  put(out, c);
  END
}
//@ block=128
K tensor_store_then_load_right(const int* in, float* out) {
  BEGIN READY
  store(mine, 2.0f); wait_st();
  load(mine, c); wait_ld();
  put(out, c);
  END
}
//@ block=128
K tensor_next_product_too_early_wrong(const int* in, float* out) {       // before all warps have loaded the last one
  __shared__ uint64_t then;                                              // of the second product
  if (threadIdx.x == 0) m_init(&then, 1);
  BEGIN READY
  for (int k = 0; k < 2; k++) {
    if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 0); commit(k ? &then : &bar); } //~ race
    m_wait(k ? &then : &bar, 0); after();
    load(mine, c); wait_ld();                                            //~ race
    put(out, c);
  }
  END
}
//@ block=128
K tensor_next_product_right(const int* in, float* out) {
  __shared__ uint64_t then;                                              // of the second product
  if (threadIdx.x == 0) m_init(&then, 1);
  BEGIN READY
  for (int k = 0; k < 2; k++) {
    if (threadIdx.x == 0) { mma(t, desc(a), desc(b), 0); commit(k ? &then : &bar); }
    m_wait(k ? &then : &bar, 0); after();
    load(mine, c); wait_ld();
    put(out, c);
    before(); __syncthreads(); after();
  }
  END
}
//@ block=128
K tensor_freed_too_early_wrong(const int* in, float* out) {
  BEGIN READY
  store(mine, 2.0f); wait_st();
  load(mine, c); wait_ld();                                              //~ race
  put(out, c);
  if (threadIdx.x >= 96) dealloc(t);                                     //~ race
}
//@ block=128
K tensor_place_read_early_wrong(const int* in, float* out) {
  BEGIN                                                                  //~ race
  proxy(); before();
  uint32_t t = place;                                                    //~ race
  __syncthreads(); after();
  uint32_t mine = t + (threadIdx.x / 32 * 32 << 16); float c[8] = {};
  store(mine, 2.0f); wait_st();
  load(mine, c); wait_ld();
  put(out, c);
  END
}
