// Kernels whose bug hides behind a condition, a loop or a partial synchronization.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/pipeline>
#include <cuda/barrier>
#define K extern "C" __global__ void
namespace cg = cooperative_groups;
template <class T, cuda::thread_scope S> using Ref = cuda::atomic_ref<T, S>;
constexpr auto device = cuda::thread_scope_device;
constexpr auto block = cuda::thread_scope_block;
using cuda::memory_order_relaxed, cuda::memory_order_acquire, cuda::memory_order_release, cuda::memory_order_seq_cst;

//@ grid=1 block=64
K ring_of_three_right(const int* in, int* out) {                     // three buffers need one barrier a step
  __shared__ int s[3][64];
  int t = threadIdx.x;
  for (int k = 0; k < 7; k++) { s[k % 3][t] = in[k + t]; __syncthreads(); out[k * 64 + t] = s[k % 3][63 - t]; }
}
//@ grid=1 block=64
K ring_of_one_wrong(const int* in, int* out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  for (int k = 0; k < 7; k++) { s[t] = in[k + t]; __syncthreads(); out[k * 64 + t] = s[63 - t]; }   //~ race
}
//@ grid=1 block=64
K ring_of_two_right(const int* in, int* out) {
  __shared__ int s[2][64];
  int t = threadIdx.x;
  for (int k = 0; k < 7; k++) { s[k % 2][t] = in[k + t]; __syncthreads(); out[k * 64 + t] = s[k % 2][63 - t]; }
}
//@ grid=1 block=64
K ring_reads_ahead_wrong(const int* in, int* out) {                  // two buffers, but reads of the step before the last
  __shared__ int s[2][65];
  int t = threadIdx.x;
  s[1][t] = 0; s[0][t] = 0;
  __syncthreads();
  for (int k = 0; k < 7; k++) { s[k % 2][t] = in[k + t]; __syncthreads(); out[k * 64 + t] = s[(k + 1) % 2][63 - t]; }   //~ race
}
//@ grid=1 block=128
K last_warp_reduce_late_barrier_wrong(const int* in, int* out) {     // the barrier of the last step is left out for the warps that sum
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  for (int k = 64; k >= 16; k >>= 1) {
    if (k > 32) __syncthreads();
    if (t < k) s[t] += s[t + k];                                     //~ race
  }
  if (t == 0) out[0] = s[0];
}
//@ grid=1 block=64
K cond_shared_flag_wrong(const int* in, int* out) {                  // reset of the flag for the next round meets the test of this one
  __shared__ int go;
  int t = threadIdx.x;
  do {
    if (t == 0) go = 0;                                              //~ race
    __syncthreads();                                                 //~ synchronization
    if (out[t] < 5) { out[t]++; go = 1; }
    __syncthreads();
  } while (go);                                                      //~ race, synchronization
}
//@ grid=1 block=64
K cond_shared_flag_right(const int* in, int* out) {
  __shared__ int go;
  int t = threadIdx.x;
  while (true) {
    __syncthreads();
    if (t == 0) go = 0;
    __syncthreads();
    if (out[t] < 5) { out[t]++; go = 1; }
    __syncthreads();
    if (!go) break;
  }
}
//@ grid=1 block=64
K sync_or_flag_right(const int* in, int* out) {
  int t = threadIdx.x, more;
  do { more = out[t] < 5; if (more) out[t]++; } while (__syncthreads_or(more));
}
//@ grid=2 block=64 zero
K relaxed_lock_wrong(int* lock, int* sum) {
  if (threadIdx.x) return;
  Ref<int, device> l(lock[0]);
  int free = 0;
  while (!l.compare_exchange_strong(free, 1, memory_order_relaxed)) free = 0;
  sum[0] += 1;                                                       //~ race
  l.store(0, memory_order_release);
}
//@ grid=2 block=64 zero
K lock_released_relaxed_wrong(int* lock, int* sum) {
  if (threadIdx.x) return;
  Ref<int, device> l(lock[0]);
  int free = 0;
  while (!l.compare_exchange_strong(free, 1, memory_order_acquire)) free = 0;
  sum[0] += 1;                                                       //~ race
  l.store(0, memory_order_relaxed);
}
//@ grid=2 block=64 zero
K lock_right(int* lock, int* sum) {
  if (threadIdx.x) return;
  Ref<int, device> l(lock[0]);
  int free = 0;
  while (!l.compare_exchange_strong(free, 1, memory_order_acquire)) free = 0;
  sum[0] += 1;
  l.store(0, memory_order_release);
}
//@ grid=2 block=64 zero
K lock_for_block_work_wrong(int* lock, int* sum) {                   // thread 0 holds the lock, all threads write, no barrier before the unlock
  Ref<int, device> l(lock[0]);
  if (threadIdx.x == 0) { int free = 0; while (!l.compare_exchange_strong(free, 1, memory_order_acquire)) free = 0; }
  __syncthreads();
  sum[threadIdx.x] += 1;                                             //~ race
  if (threadIdx.x == 0) l.store(0, memory_order_release);
}
//@ grid=2 block=64 zero
K lock_for_block_work_right(int* lock, int* sum) {
  Ref<int, device> l(lock[0]);
  if (threadIdx.x == 0) { int free = 0; while (!l.compare_exchange_strong(free, 1, memory_order_acquire)) free = 0; }
  __syncthreads();
  sum[threadIdx.x] += 1;
  __syncthreads();
  if (threadIdx.x == 0) l.store(0, memory_order_release);
}
//@ grid=2 block=64 zero
K dekker_relaxed_wrong(int* want, int* sum) {                        // sequential consistency is missing, both may enter
  if (threadIdx.x) return;
  int me = blockIdx.x;
  Ref<int, device>(want[me]).store(1, memory_order_relaxed);
  if (Ref<int, device>(want[1 - me]).load(memory_order_relaxed) == 0) sum[0] = me + 1;   //~ race
  else sum[0] = me + 3;                                              //~ race
}
//@ grid=1 block=96
K shared_queue_right(const int* in, int* out) {
  __shared__ int q[96]; __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  if (in[threadIdx.x] & 1) q[atomicAdd(&n, 1)] = threadIdx.x;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 96) out[i] = q[i];
}
//@ grid=1 block=96
K shared_queue_counter_unset_wrong(const int* in, int* out) {
  __shared__ int q[96]; __shared__ int n;
  if (threadIdx.x == 0) n = 0;                                       //~ race
  if (in[threadIdx.x] & 1) q[atomicAdd(&n, 1) % 96] = threadIdx.x;   //~ race
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 96) out[i] = q[i];
}
//@ grid=1 block=96
K shared_queue_read_growing_wrong(const int* in, int* out) {
  __shared__ int q[96]; __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  if (in[threadIdx.x] & 1) q[atomicAdd(&n, 1)] = threadIdx.x;        //~ race
  if (threadIdx.x < n) out[threadIdx.x] = 1;                         //~ race
}
//@ grid=1 block=64
K staged_copy_right(const int* in, int* out) {
  __shared__ int s[2][64];
  auto b = cg::this_thread_block();
  cg::memcpy_async(b, s[0], in, 256);
  for (int k = 0; k < 4; k++) {
    if (k < 3) { cg::memcpy_async(b, s[(k + 1) & 1], in + 64 * (k + 1), 256); cg::wait_prior<1>(b); } else cg::wait(b);
    out[64 * k + threadIdx.x] = s[k & 1][63 - threadIdx.x];
    b.sync();
  }
}
//@ grid=1 block=64
K staged_copy_no_sync_wrong(const int* in, int* out) {
  __shared__ int s[2][64];
  auto b = cg::this_thread_block();
  cg::memcpy_async(b, s[0], in, 256);
  for (int k = 0; k < 4; k++) {
    if (k < 3) { cg::memcpy_async(b, s[(k + 1) & 1], in + 64 * (k + 1), 256); cg::wait_prior<1>(b); } else cg::wait(b);   //~ race
    out[64 * k + threadIdx.x] = s[k & 1][63 - threadIdx.x];          //~ race
  }
}
//@ grid=1 block=64
K staged_copy_prior_too_many_wrong(const int* in, int* out) {
  __shared__ int s[2][64];
  auto b = cg::this_thread_block();
  cg::memcpy_async(b, s[0], in, 256);                                //~ race
  cg::memcpy_async(b, s[1], in + 64, 256);
  cg::wait_prior<2>(b);
  out[threadIdx.x] = s[0][63 - threadIdx.x];                         //~ race
  cg::wait(b);
}
//@ grid=1 block=64
K pipeline_block_right(const int* in, int* out) {
  __shared__ int s[2][64];
  __shared__ cuda::pipeline_shared_state<block, 2> state;
  auto b = cg::this_thread_block();
  auto p = cuda::make_pipeline(b, &state);
  for (int f = 0, k = 0; k < 4; k++) {
    for (; f < 4 && f < k + 2; f++) { p.producer_acquire(); cuda::memcpy_async(b, s[f % 2], in + 64 * f, sizeof(int) * 64, p); p.producer_commit(); }
    p.consumer_wait();
    out[64 * k + threadIdx.x] = s[k % 2][63 - threadIdx.x];
    p.consumer_release();
  }
}
//@ grid=1 block=64
K pipeline_released_before_read_wrong(const int* in, int* out) {
  __shared__ int s[2][64];
  __shared__ cuda::pipeline_shared_state<block, 2> state;
  auto b = cg::this_thread_block();
  auto p = cuda::make_pipeline(b, &state);
  for (int f = 0, k = 0; k < 4; k++) {
    for (; f < 4 && f < k + 2; f++) { p.producer_acquire(); cuda::memcpy_async(b, s[f % 2], in + 64 * f, sizeof(int) * 64, p); p.producer_commit(); }   //~ race
    p.consumer_wait();
    p.consumer_release();
    out[64 * k + threadIdx.x] = s[k % 2][63 - threadIdx.x];          //~ race
  }
}
//@ grid=1 block=64
K reduce_group_right(const int* in, int* out) {
  auto w = cg::tiled_partition<32>(cg::this_thread_block());
  __shared__ int s[2];
  int v = cg::reduce(w, in[threadIdx.x], cg::plus<int>());
  if (w.thread_rank() == 0) s[w.meta_group_rank()] = v;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = s[0] + s[1];
}
//@ grid=1 block=64
K reduce_group_wrong(const int* in, int* out) {
  auto w = cg::tiled_partition<32>(cg::this_thread_block());
  __shared__ int s[2];
  int v = cg::reduce(w, in[threadIdx.x], cg::plus<int>());
  if (w.thread_rank() == 0) s[w.meta_group_rank()] = v;              //~ race
  w.sync();
  if (threadIdx.x == 0) out[0] = s[0] + s[1];                        //~ race
}
//@ grid=1 block=64
K scan_group_right(const int* in, int* out) {
  auto w = cg::tiled_partition<32>(cg::this_thread_block());
  out[threadIdx.x] = cg::exclusive_scan(w, in[threadIdx.x], cg::plus<int>());
}
//@ grid=1 block=64
K coalesced_append_right(const int* in, int* out) {
  __shared__ int n; if (threadIdx.x == 0) n = 0;
  __syncthreads();
  if (in[threadIdx.x] & 1) {
    auto g = cg::coalesced_threads();
    int base;
    if (g.thread_rank() == 0) base = atomicAdd(&n, g.size());
    out[g.shfl(base, 0) + g.thread_rank()] = threadIdx.x;
  }
}
//@ grid=1 block=64
K coalesced_append_plain_wrong(const int* in, int* out) {            // each warp's leader adds without an atomic
  __shared__ int n; if (threadIdx.x == 0) n = 0;
  __syncthreads();
  if (in[threadIdx.x] & 1) {
    auto g = cg::coalesced_threads();
    int base;
    if (g.thread_rank() == 0) { base = n; n += g.size(); }           //~ race
    out[g.shfl(base, 0) + g.thread_rank()] = threadIdx.x;
  }
}
//@ grid=1 block=64
K object_of_too_many_right(const int* in, int* out) {                // 33 arrive, only one warp and the first thread take part
  __shared__ cuda::barrier<block> b; __shared__ int s;
  if (threadIdx.x == 0) init(&b, 33);
  __syncthreads();
  if (threadIdx.x == 0) { s = in[5]; b.arrive_and_drop(); }
  if (threadIdx.x >= 32) { b.arrive_and_wait(); out[threadIdx.x] = s; }
}
//@ grid=1 block=64
K object_of_too_few_wrong(const int* in, int* out) {                 // the warp alone completes the phase
  __shared__ cuda::barrier<block> b; __shared__ int s;
  if (threadIdx.x == 0) init(&b, 32);
  __syncthreads();
  if (threadIdx.x == 0) { s = in[5]; }                               //~ race
  if (threadIdx.x >= 32) { b.arrive_and_wait(); out[threadIdx.x] = s; }  //~ race
}
//@ grid=2 block=32 zero
K heap_pointer_published_wrong(int** slot, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { int* p = new int; *p = 3; *(int* volatile*)slot = p; }   //~ race
  else { int* p; while (!(p = *(int* volatile*)slot)) {} out[0] = *p; }           //~ race
}
//@ grid=2 block=32 zero
K half_atomics_and_halves_right(unsigned short* h) {
  if (threadIdx.x < 4) h[threadIdx.x * 2 + blockIdx.x] = threadIdx.x;
}
//@ grid=2 block=32 zero
K byte_flags_packed_wrong(unsigned char* b) {                        // a CAS on the word against a byte store within
  if (blockIdx.x == 0) b[threadIdx.x] = 1;                           //~ race
  else if (threadIdx.x < 8) atomicOr((unsigned*)b + threadIdx.x, 256u);   //~ race
}
//@ grid=1 block=64 zero
K syncwarp_across_warps_wrong(const int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];                                  //~ race
  __syncwarp();
  out[threadIdx.x] = s[(threadIdx.x + 1) % 64];                      //~ race
}
//@ grid=2 block=64 zero
K threadfence_is_no_barrier_wrong(const int* in, int* out, int* sum) {
  out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];              //~ race
  __threadfence();
  sum[blockIdx.x * 64 + threadIdx.x] = out[(blockIdx.x * 64 + threadIdx.x + 1) % 128];   //~ race
}
//@ grid=2 block=64 zero
K ticket_without_fence_wrong(int* part, int* ticket, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) { part[blockIdx.x] = blockIdx.x + 1; last = atomicAdd(ticket, 1) == 1; }   //~ race
  __syncthreads();
  if (last && threadIdx.x == 0) out[0] = part[0] + part[1];          //~ race
}
