// Loads ahead of the test of a flag, and protocols of libcu++.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define T threadIdx.x
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
using namespace cuda::std;
constexpr auto D = cuda::thread_scope_device, B = cuda::thread_scope_block;
template <cuda::thread_scope S, class X = int> using R = cuda::atomic_ref<X, S>;
//@ grid=2 block=64 zero
K select_reader_first_right(int* f, int* d, int* out) { if (T) return; if (blockIdx.x == 1) { d[0] = 5; R<D>(*f).store(1, memory_order_release); } else { int r = R<D>(*f).load(memory_order_acquire); out[0] = r ? d[0] : -1; } }
__device__ int sd, sf, sdata[4]; __device__ unsigned char sb; __device__ unsigned short sh;
//@ grid=2 block=64 zero
K select_variable_reader_first_right(int* out) { if (T) return; if (blockIdx.x == 1) { sd = 5; R<D>(sf).store(1, memory_order_release); } else { int r = R<D>(sf).load(memory_order_acquire); out[0] = r ? sd : -1; } }
//@ grid=2 block=64 zero
K select_variable_not_by_flag_wrong(int* out) { if (T) return; if (blockIdx.x == 1) { sd = 5;   //~ race
   R<D>(sf).store(1, memory_order_release); } else { int r = R<D>(sf).load(memory_order_acquire); out[0] = r ? -1 : sd; } }
//@ grid=2 block=64 zero
K select_compare_right(int* out) { if (T) return; if (blockIdx.x == 1) { sdata[1] = 5; sdata[2] = 7; R<D>(sf).store(3, memory_order_release); } else { int r = R<D>(sf).load(memory_order_acquire); int s = 0; if (r >= 3) s = sdata[1] + sdata[2]; out[0] = s; } }
//@ grid=2 block=64 zero
K select_by_half_right(int* out) { if (T) return; if (blockIdx.x == 1) { sd = 5; R<D, unsigned short>(sh).store(1, memory_order_release); } else { int r = R<D, unsigned short>(sh).load(memory_order_acquire); out[0] = r ? sd : -1; } }
//@ grid=2 block=64 zero
K select_by_two_right(int* out) { if (T) return; if (blockIdx.x == 1) { sd = 5; R<D>(sf).store(1, memory_order_release); } else { int r = R<D>(sf).load(memory_order_acquire), q = R<D>(sdata[3]).load(memory_order_relaxed); out[0] = r && !q ? sd : -1; } }
//@ grid=1 block=64
K select_shared_reader_first_right(int* out) { __shared__ int f, d; if (T == 0) f = 0; __syncthreads(); if (T == 32) { d = 5; R<B>(f).store(1, memory_order_release); } if (T == 0) { int r = R<B>(f).load(memory_order_acquire); out[0] = r ? d : -1; } }
//@ grid=2 block=64 zero
K select_after_counter_right(int* n, int* out) { if (T) return; if (blockIdx.x == 0) { sd = 5; R<D>(*n).fetch_add(1, memory_order_release); } else { int r = R<D>(*n).fetch_add(1, memory_order_acquire); out[blockIdx.x] = r ? sd : 0; } }
//@ grid=3 block=64 zero
K lamport_right(int* h, int* t, int* q, int* out) { if (T || blockIdx.x > 1) return; const int N = 4; if (blockIdx.x == 0) for (int i = 0; i < 20; i++) { int b = R<D>(*t).load(memory_order_relaxed); while (b - R<D>(*h).load(memory_order_acquire) >= N) {} q[b % N] = i; R<D>(*t).store(b + 1, memory_order_release); }
   else for (int i = 0; i < 20; i++) { int a = R<D>(*h).load(memory_order_relaxed); while (R<D>(*t).load(memory_order_acquire) == a) {} out[i] = q[a % N]; R<D>(*h).store(a + 1, memory_order_release); } }
//@ grid=3 block=64 zero
K seqlock_right(int* s, int* d, int* out) { if (T) return; if (blockIdx.x == 0) for (int i = 1; i < 6; i++) { R<D>(*s).store(2 * i - 1, memory_order_relaxed); cuda::atomic_thread_fence(memory_order_release, D); R<D>(d[0]).store(i, memory_order_relaxed); R<D>(d[1]).store(i, memory_order_relaxed); R<D>(*s).store(2 * i, memory_order_release); }
   else { int a, b, x, y; do { a = R<D>(*s).load(memory_order_acquire); x = R<D>(d[0]).load(memory_order_relaxed); y = R<D>(d[1]).load(memory_order_relaxed); cuda::atomic_thread_fence(memory_order_acquire, D); b = R<D>(*s).load(memory_order_relaxed); } while (a != b || a & 1); out[2 * blockIdx.x] = x; out[2 * blockIdx.x + 1] = y; } }
//@ grid=3 block=64 zero
K seqlock_plain_data_wrong(int* s, int* d, int* out) { if (T) return; if (blockIdx.x == 0) for (int i = 1; i < 6; i++) { R<D>(*s).store(2 * i - 1, memory_order_relaxed); cuda::atomic_thread_fence(memory_order_release, D); d[0] = i;   //~ race
     d[1] = i; R<D>(*s).store(2 * i, memory_order_release); }
   else { int a, b, x, y; do { a = R<D>(*s).load(memory_order_acquire); x = d[0]; y = d[1]; cuda::atomic_thread_fence(memory_order_acquire, D); b = R<D>(*s).load(memory_order_relaxed); } while (a != b || a & 1); out[2 * blockIdx.x] = x; out[2 * blockIdx.x + 1] = y; } }
//@ grid=1 block=64
K barrier_producer_right(int* a) { __shared__ cuda::barrier<B> full, empty; __shared__ int s[32]; if (T == 0) { init(&full, 64); init(&empty, 64); } __syncthreads();
   if (T < 32) { for (int i = 0; i < 3; i++) { if (i) empty.arrive_and_wait(); s[T] = a[T] + i; (void)full.arrive(); } }
   else for (int i = 0; i < 3; i++) { full.arrive_and_wait(); a[T] += s[T - 32]; if (i < 2) (void)empty.arrive(); } }
//@ grid=1 block=64
K barrier_producer_no_empty_wrong(int* a) { __shared__ cuda::barrier<B> full; __shared__ int s[32]; if (T == 0) { init(&full, 64); } __syncthreads();
   if (T < 32) { for (int i = 0; i < 3; i++) { s[T] = a[T] + i; full.arrive_and_wait(); } }   //~ race
   else for (int i = 0; i < 3; i++) { full.arrive_and_wait(); a[T] += s[T - 32]; } }
//@ grid=1 block=64
K pipeline_two_stages_right(const int* a, int* b) { __shared__ int s[2][64]; __shared__ cuda::pipeline_shared_state<B, 2> st; auto g = cg::this_thread_block(); auto p = cuda::make_pipeline(g, &st);
   for (int i = 0; i < 5; i++) { if (i < 4) { p.producer_acquire(); cuda::memcpy_async(g, s[i & 1], a + 64 * i, sizeof(int) * 64, p); p.producer_commit(); } if (i) { p.consumer_wait(); b[64 * i - 64 + T] = s[~i & 1][T ^ 1]; p.consumer_release(); } } }
//@ grid=1 block=64
K pipeline_two_stages_not_waited_wrong(const int* a, int* b) { __shared__ int s[2][64]; __shared__ cuda::pipeline_shared_state<B, 2> st; auto g = cg::this_thread_block(); auto p = cuda::make_pipeline(g, &st);
   for (int i = 0; i < 5; i++) { if (i < 4) { p.producer_acquire(); cuda::memcpy_async(g, s[i & 1], a + 64 * i, sizeof(int) * 64, p); p.producer_commit(); } if (i) { b[64 * i - 64 + T] = s[~i & 1][T ^ 1];    //~ race
     p.consumer_wait(); p.consumer_release(); } } }
//@ grid=4 block=64 zero
K relaxed_min_push_right(int* dist, int* out) { int v = TID, u = (v * 7 + 3) % 256; if (R<D>(dist[u]).fetch_min(-v, memory_order_relaxed) > -v) R<D>(out[u]).store(v, memory_order_relaxed); }
//@ grid=4 block=64 zero
K block_scope_min_push_wrong(int* dist, int* out) { int v = TID, u = (v * 7 + 3) % 64; R<B>(dist[u]).fetch_min(-v, memory_order_relaxed); }   //~ race
//@ grid=4 block=64 zero
K worklist_flag_release_right(int* n, int* q, int* out) { if (T < 4) { int i = R<D>(*n).fetch_add(1, memory_order_relaxed); q[2 * i] = TID + 1; R<D>(q[2 * i + 1]).store(1, memory_order_release); } if (T == 40) for (int i = blockIdx.x; i < 16; i += 4) { while (!R<D>(q[2 * i + 1]).load(memory_order_acquire)) {} out[i] = q[2 * i]; } }
//@ grid=4 block=64 zero
K worklist_count_is_no_flag_wrong(int* n, int* q, int* out) { if (T < 4) { int i = R<D>(*n).fetch_add(1, memory_order_release); q[i] = TID + 1; }   //~ race
   if (T == 40) for (int i = blockIdx.x; i < 16; i += 4) { while (R<D>(*n).load(memory_order_acquire) <= i) {} out[i] = q[i]; } }
