// Work that CTAs hand to each other: queues, look-back, locks of other kinds, barriers of libcu++.
#include <cuda/atomic>
#include <cuda/barrier>
#define K extern "C" __global__ void
using namespace cuda::std;
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto dev = cuda::thread_scope_device, blk = cuda::thread_scope_block;

//@ grid=3 block=64 zero
K steal_right(int* c, int* d) { __shared__ int i; for (;;) { if (threadIdx.x == 0) i = atomicAdd(c, 1);
    __syncthreads(); int k = i; __syncthreads(); if (k >= 8) break; d[k * 64 + threadIdx.x] = k; } }
//@ grid=3 block=64 zero
K steal_no_second_barrier_wrong(int* c, int* d) { __shared__ int i; for (;;) { if (threadIdx.x == 0) i = atomicAdd(c, 1);  //~ race
   __syncthreads(); int k = i;  //~ race, synchronization
   if (k >= 8) break; d[k * 64 + threadIdx.x] = k; } }
//@ grid=3 block=64 zero
K steal_block_scope_wrong(int* c, int* d) { __shared__ int i; for (;;) { if (threadIdx.x == 0) 
   i = atomicAdd_block(c, 1);  //~ race
   __syncthreads(); int k = i; __syncthreads(); if (k >= 8) break; d[k * 64 + threadIdx.x] = k; } }
//@ grid=3 block=64 zero
K own_queue_then_steal_wrong(int* c, int* d) { int b = blockIdx.x; if (threadIdx.x) return;   // own queue by block scope, others' by device scope
   for (int q = 0; q < 3; q++) { int who = (b + q) % 3; int k = q == 0 ? atomicAdd_block(c + who, 1)  //~ race
       : atomicAdd(c + who, 1); d[q * 16 + b * 4 + (k & 3)] = k; } }
//@ grid=3 block=64 zero
K own_queue_then_steal_right(int* c, int* d) { int b = blockIdx.x; if (threadIdx.x) return;
   for (int q = 0; q < 3; q++) { int who = (b + q) % 3; int k = atomicAdd(c + who, 1);
    d[q * 16 + b * 4 + (k & 3)] = k; } }
//@ grid=2 block=32 zero
K queue_publish_right(int* c, int* d) { if (threadIdx.x) return; Ref<dev> tail(c[0]);
   if (blockIdx.x == 0) { for (int k = 0; k < 4; k++) { d[k] = k; tail.fetch_add(1, memory_order_release); } }
   else { int got = 0; while (got < 4) { int t = tail.load(memory_order_acquire);
    for (; got < t; got++) d[16 + got] = d[got]; } } }
//@ grid=2 block=32 zero
K queue_reserve_then_write_wrong(int* c, int* d) { if (threadIdx.x) return; Ref<dev> tail(c[0]);     // the index is taken before the item is written
   if (blockIdx.x == 0) { for (int k = 0; k < 4; k++) { int i = tail.fetch_add(1, memory_order_acq_rel); 
       d[i] = k; } }  //~ race
   else { int got = 0; while (got < 4) { int t = tail.load(memory_order_acquire); for (; got < t; got++) 
       d[16 + got] = d[got]; } } }  //~ race
//@ grid=2 block=32 zero
K queue_item_flag_right(int* c, int* d) { if (threadIdx.x) return; 
   if (blockIdx.x == 0) { for (int k = 0; k < 4; k++) { d[k] = k; Ref<dev>(c[k]).store(1, memory_order_release); } }
   else { for (int k = 0; k < 4; k++) { while (!Ref<dev>(c[k]).load(memory_order_acquire)) {} d[16 + k] = d[k]; } } }
//@ grid=1 block=64
K barrier_block_right(int* c, int* d) { __shared__ cuda::barrier<blk> b; if (threadIdx.x == 0) init(&b, 64);
    __syncthreads(); d[threadIdx.x] = threadIdx.x; b.arrive_and_wait(); c[threadIdx.x] = d[63 - threadIdx.x]; }
//@ grid=1 block=64
K barrier_arrive_only_wrong(int* c, int* d) { __shared__ cuda::barrier<blk> b; if (threadIdx.x == 0) init(&b, 64); __syncthreads(); d[threadIdx.x] = threadIdx.x;  //~ race
   auto t = b.arrive(); 
   c[threadIdx.x] = d[63 - threadIdx.x];  //~ race
   b.wait(std::move(t)); }
//@ grid=1 block=64
K barrier_init_no_sync_wrong(int* c, int* d) { __shared__ cuda::barrier<blk> b; if (threadIdx.x == 0) init(&b, 64); else { int k = 0; while (k < 200) k++; }  //~ race
   b.arrive_and_wait(); c[threadIdx.x] = 1; }
//@ grid=1 block=64
K barrier_two_phases_right(int* c, int* d) { __shared__ cuda::barrier<blk> b; __shared__ int s[64];
    if (threadIdx.x == 0) init(&b, 64); __syncthreads(); for (int k = 0; k < 3; k++) {
    s[threadIdx.x] = k + threadIdx.x; b.arrive_and_wait(); c[64 * k + threadIdx.x] = s[63 - threadIdx.x];
    b.arrive_and_wait(); } }
//@ grid=1 block=64
K barrier_split_right(int* c, int* d) { __shared__ cuda::barrier<blk> b; __shared__ int s[64];
    if (threadIdx.x == 0) init(&b, 64); __syncthreads(); s[threadIdx.x] = threadIdx.x; auto t = b.arrive();
    int own = d[threadIdx.x]; b.wait(std::move(t)); c[threadIdx.x] = s[63 - threadIdx.x] + own; }
//@ grid=1 block=64
K barrier_split_reads_before_wait_wrong(int* c, int* d) { __shared__ cuda::barrier<blk> b;
    __shared__ int s[64]; if (threadIdx.x == 0) init(&b, 64); __syncthreads(); 
   s[threadIdx.x] = threadIdx.x; auto t = b.arrive();  //~ race
   int own = s[63 - threadIdx.x];  //~ race
   b.wait(std::move(t)); c[threadIdx.x] = own; }
//@ grid=2 block=32 zero
K seqlock_right(int* c, int* d) { if (threadIdx.x) return; Ref<dev> seq(c[0]); 
   if (blockIdx.x == 0) { seq.store(1, memory_order_relaxed);
    cuda::atomic_thread_fence(memory_order_release, dev); Ref<dev>(d[0]).store(5, memory_order_relaxed);
    Ref<dev>(d[1]).store(6, memory_order_relaxed); seq.store(2, memory_order_release); }
   else { int a, b, s; do { s = seq.load(memory_order_acquire); a = Ref<dev>(d[0]).load(memory_order_relaxed);
    b = Ref<dev>(d[1]).load(memory_order_relaxed); cuda::atomic_thread_fence(memory_order_acquire, dev);
    } while (s & 1 || s != seq.load(memory_order_relaxed)); d[10] = a + b; } }
//@ grid=4 block=32 zero
K lookback_right(int* st, int* v) { int b = blockIdx.x; if (threadIdx.x) return; int agg = b + 1, pre = 0;
   v[b] = agg; __threadfence(); atomicExch(&st[b], 1);
   for (int p = b - 1; p >= 0; p--) { while (atomicAdd(&st[p], 0) == 0) {} __threadfence(); pre += v[p]; }
   v[64 + b] = pre; }
//@ grid=4 block=32 zero
K lookback_no_fence_wrong(int* st, int* v) { int b = blockIdx.x; if (threadIdx.x) return; int agg = b + 1, pre = 0;
   v[b] = agg;  //~ race
   atomicExch(&st[b], 1);
   for (int p = b - 1; p >= 0; p--) { while (atomicAdd(&st[p], 0) == 0) {} __threadfence(); 
     pre += v[p]; }  //~ race
   v[64 + b] = pre; }
//@ grid=4 block=32 zero
K lookback_packed_right(unsigned long long* st, int* v) { int b = blockIdx.x; if (threadIdx.x) return;
    int agg = b + 1, pre = 0;
   atomicExch(&st[b], (1ull << 32) | agg);
   for (int p = b - 1; p >= 0; p--) { unsigned long long x;
    while (!((x = atomicAdd(&st[p], 0ull)) >> 32)) {} pre += (int)x; }
   v[64 + b] = pre; }
//@ grid=4 block=32 zero
K lookback_packed_volatile_right(unsigned long long* st, int* v) { int b = blockIdx.x; if (threadIdx.x) return;
    int agg = b + 1, pre = 0; volatile unsigned long long* vs = st;
   vs[b] = (1ull << 32) | agg;
   for (int p = b - 1; p >= 0; p--) { unsigned long long x; while (!((x = vs[p]) >> 32)) {} pre += (int)x; }
   v[64 + b] = pre; }
//@ grid=4 block=32 zero
K lookback_packed_plain_wrong(unsigned long long* st, int* v) { int b = blockIdx.x; if (threadIdx.x) return;
    int agg = b + 1, pre = 0; volatile unsigned long long* vs = st;
   st[b] = (1ull << 32) | agg;  //~ race
   for (int p = b - 1; p >= 0; p--) { unsigned long long x; while (!((x = vs[p]) >> 32)) {} pre += (int)x; }
   v[64 + b] = pre; }
//@ grid=3 block=32 zero
K once_right(int* f, int* d) { if (threadIdx.x) return; Ref<dev> st(f[0]);
    int s = st.load(memory_order_acquire); if (s != 2) { int z = 0;
    if (st.compare_exchange_strong(z, 1, memory_order_acquire)) { d[0] = 42; st.store(2, memory_order_release);
    } else while (st.load(memory_order_acquire) != 2) {} } d[8 + blockIdx.x] = d[0]; }
//@ grid=2 block=32 zero
K vector_read_of_counters_wrong(int* f, int* d) { if (threadIdx.x) return; if (blockIdx.x == 0) { 
    atomicAdd(f + 1, 1); }  //~ race
    else { int4 x = *(int4*)f;  //~ race
      d[0] = x.x + x.w; } }
//@ grid=2 block=32 zero
K half_atomic_right(int* f, int* d) { atomicAdd((float*)f, 1.0f); atomicMax(d, threadIdx.x); }
//@ grid=2 block=32 zero
K cas_loop_float_max_right(int* f, int* d) { int old = *(volatile int*)f, assumed; do { assumed = old;
    if (__int_as_float(assumed) >= threadIdx.x) break;
    old = atomicCAS(f, assumed, __float_as_int((float)threadIdx.x)); } while (assumed != old); }
//@ grid=2 block=32 zero
K cas_loop_plain_first_read_wrong(int* f, int* d) { int old = *f, assumed; do { assumed = old; if (__int_as_float(assumed) >= threadIdx.x) break;  //~ race
    old = atomicCAS(f, assumed, __float_as_int((float)threadIdx.x)); } while (assumed != old); }  //~ race
