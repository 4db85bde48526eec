// Which memory, and how far: what was never written, what another thread owns, indices that leave what they index, the scopes of atomics.
#include <cuda/atomic>
#define K extern "C" __global__ void
#define ALL 0xffffffffu
template <class T, cuda::thread_scope S> using Ref = cuda::atomic_ref<T, S>;
constexpr auto device = cuda::thread_scope_device, block = cuda::thread_scope_block;

//@ block=128
K last_element_unwritten_wrong(const int* in, int* out) {                   // the halo is loaded by nobody
  __shared__ int s[130]; int t = threadIdx.x;
  s[t + 1] = in[t];
  __syncthreads();
  out[t] = s[t] + s[t + 1] + s[t + 2];                                                //~ uninitialized
}
//@ block=128
K halo_written_right(const int* in, int* out) {
  __shared__ int s[130]; int t = threadIdx.x;
  s[t + 1] = in[t];
  if (t == 0) s[0] = s[129] = 0;
  __syncthreads();
  out[t] = s[t] + s[t + 1] + s[t + 2];
}
//@ block=128
K odd_columns_unwritten_wrong(const int* in, int* out) {
  __shared__ int s[128][2]; int t = threadIdx.x;
  s[t][0] = in[t];
  __syncthreads();
  out[t] = s[t][0] + s[t][1];                                                         //~ uninitialized
}
//@ block=128 uninit=2
K scratch_unwritten_wrong(const int* in, int* out, int* scratch) {
  int t = threadIdx.x;
  if (t < 127) scratch[t] = in[t];
  out[t] = scratch[t];                                                                //~ uninitialized
}
//@ block=128 uninit=2
K scratch_written_right(const int* in, int* out, int* scratch) {
  int t = threadIdx.x;
  scratch[t] = in[t];
  out[t] = scratch[t];
}
//@ block=128 uninit=1
K counter_unwritten_wrong(const int* in, int* count) { if (in[threadIdx.x] & 1) atomicAdd(count, 1); }   //~ uninitialized
struct Pair { char kind; double value; };
//@ block=64 uninit=1
K padded_right(const int* in, Pair* out) { int t = threadIdx.x; Pair p; p.kind = 1; p.value = in[t]; out[t] = p; }
//@ block=64 uninit=1
K padded_copied_right(const int* in, Pair* pairs) {
  int t = threadIdx.x;
  if (t < 32) { pairs[t].kind = 1; pairs[t].value = in[t]; Pair q = pairs[t]; pairs[t + 64] = q; }
}
//@ block=64 uninit=1
K member_unwritten_wrong(const int* in, Pair* pairs, double* out) {
  int t = threadIdx.x;
  pairs[t].kind = in[t];
  out[t] = pairs[t].value;                                                            //~ uninitialized
}
//@ block=32
K picked_unwritten_wrong(const int* in, int* out) {
  int t = threadIdx.x, found[8];
  for (int i = 0; i < (in[t] & 3); i++) found[i] = in[t + i];
  out[t] = found[in[t + 1] & 7];                                                      //~ uninitialized
}
//@ block=32
K picked_written_right(const int* in, int* out) {
  int t = threadIdx.x, found[8] = {};
  for (int i = 0; i < (in[t] & 3); i++) found[i] = in[t + i];
  out[t] = found[in[t + 1] & 7];
}
//@ block=64
K column_overrun_wrong(const int* in, int* out) {
  __shared__ int a[64], b[64]; int t = threadIdx.x;
  a[t] = in[t]; b[t] = 0;
  __syncthreads();
  if (t < 63) b[t] = 1;
  __syncthreads();
  out[t] = a[t + (in[t + 7] & 1) * 64] + b[t];                                        //~ out of bounds
}
//@ block=64
K off_by_one_shared_wrong(const int* in, int* out) {
  __shared__ int a[64], b[65]; int t = threadIdx.x;
  b[t] = in[t]; if (t == 0) a[0] = 0;
  __syncthreads();
  a[t + 1] = in[t];                                                                   //~ out of bounds
  __syncthreads();
  out[t] = a[t] + b[t];
}
//@ block=32 uninit=1
K leaked_local_wrong(const int* in, int* out) {                             // a pointer to another thread's variable
  __shared__ int* p; int t = threadIdx.x; int mine[4] = {in[t], in[t + 1], in[t + 2], in[t + 3]};
  if (t == 0) p = mine;
  __syncthreads();
  out[t] = p[in[t] & 3] + mine[in[t + 1] & 3];                                        //~ fault
}
//@ block=32 uninit=1
K own_local_right(const int* in, int* out) {
  __shared__ int* p[32]; int t = threadIdx.x; int mine[4] = {in[t], in[t + 1], in[t + 2], in[t + 3]};
  p[t] = mine;
  __syncthreads();
  out[t] = p[t][in[t] & 3];
}
//@ grid=4 block=64 zero
K block_counter_per_block_right(int* counts, int* out) {
  int mine = atomicAdd_block(&counts[blockIdx.x], 1);
  out[blockIdx.x * 64 + mine] = threadIdx.x;
}
//@ grid=4 block=64 zero
K block_counter_shared_wrong(int* counts, int* out) {                       // two blocks for each counter
  int mine = atomicAdd_block(&counts[blockIdx.x / 2], 1);                             //~ race
  if (mine < 0) out[0] = mine;
}
//@ grid=4 block=64 zero
K ref_block_wrong(int* count) { Ref<int, block>(*count).fetch_add(1); }     //~ race
//@ grid=4 block=64 zero
K ref_block_own_right(int* count) { Ref<int, block>(count[blockIdx.x]).fetch_add(1); }
//@ grid=4 block=64 zero
K ref_mixed_wrong(int* count) {                                             // the store is narrower than the updates
  Ref<int, device>(*count).fetch_add(1);                                              //~ race
  if (threadIdx.x == 0 && blockIdx.x == 1) Ref<int, block>(*count).store(0);          //~ race
}
//@ grid=4 block=64 zero
K counter_read_plain_wrong(int* count, int* out) {
  atomicAdd(count, 1);                                                                //~ race
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = *count;                                     //~ race
}
//@ grid=1 block=64 zero
K counter_read_after_barrier_right(int* count, int* out) {
  atomicAdd(count, 1);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = *count;
}
//@ grid=4 block=64 zero
K counter_read_atomic_right(int* count, int* out) {
  atomicAdd(count, 1);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = atomicAdd(count, 0);
}
//@ grid=2 block=32 zero
K message_right(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { *data = 42; __threadfence(); Ref<int, device>(*flag).store(1, cuda::memory_order_relaxed); }
  else { while (!Ref<int, device>(*flag).load(cuda::memory_order_relaxed)) {} __threadfence(); *out = *data; }
}
//@ grid=2 block=32 zero
K message_block_fence_wrong(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    *data = 42;                                                                       //~ race
    __threadfence_block();
    Ref<int, device>(*flag).store(1, cuda::memory_order_relaxed);
  } else {
    while (!Ref<int, device>(*flag).load(cuda::memory_order_relaxed)) {}
    __threadfence();
    *out = *data;                                                                     //~ race
  }
}
//@ grid=2 block=32 zero
K message_reader_block_fence_wrong(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    *data = 42;                                                                       //~ race
    __threadfence();
    Ref<int, device>(*flag).store(1, cuda::memory_order_relaxed);
  } else {
    while (!Ref<int, device>(*flag).load(cuda::memory_order_relaxed)) {}
    __threadfence_block();
    *out = *data;                                                                     //~ race
  }
}
//@ grid=2 block=32 zero
K message_volatile_data_wrong(volatile int* data, int* flag, int* out) {    // strong data, and a plain flag
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { *data = 42; __threadfence(); *flag = 1; }                    //~ race
  else if (*flag) *out = *data;                                                       //~ race
}
//@ grid=2 block=32 zero
K message_block_flag_wrong(int* data, int* flag, int* out) {                // an atomic flag, whose scope is the block
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { *data = 42; __threadfence(); atomicExch_block(flag, 1); }    //~ race
  else if (atomicAdd_block(flag, 0)) { __threadfence(); *out = *data; }               //~ race
}
//@ grid=2 block=32 zero
K ping_pong_right(int* turn, int* data) {
  if (threadIdx.x) return;
  for (int i = 0; i < 4; i++) {
    while (Ref<int, device>(*turn).load(cuda::memory_order_acquire) != (int)(blockIdx.x + 2 * i)) {}
    *data += i;
    Ref<int, device>(*turn).fetch_add(1, cuda::memory_order_release);
  }
}
//@ grid=2 block=32 zero
K ping_pong_wrong(int* turn, int* data) {                                   // writes after it has passed the turn on
  if (threadIdx.x) return;
  for (int i = 0; i < 4; i++) {
    while (Ref<int, device>(*turn).load(cuda::memory_order_acquire) != (int)(blockIdx.x + 2 * i)) {}
    Ref<int, device>(*turn).fetch_add(1, cuda::memory_order_release);
    *data += i + 1;                                                                   //~ race
  }
}
//@ grid=1 block=64 zero
K flag_in_block_right(int* data, int* out) {
  __shared__ int flag; int t = threadIdx.x;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t == 0) { *data = 5; __threadfence_block(); atomicExch(&flag, 1); }
  if (t == 32) { while (!atomicAdd(&flag, 0)) {} __threadfence_block(); *out = *data; }
}
//@ grid=1 block=64 zero
K flag_in_block_wrong(int* data, int* out) {
  __shared__ int flag; int t = threadIdx.x;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t == 0) { *data = 5; atomicExch(&flag, 1); }                                    //~ race
  if (t == 32) { while (!atomicAdd(&flag, 0)) {} __threadfence_block(); *out = *data; }   //~ race
}
//@ grid=2 block=32 zero
K same_value_right(int* found, const int* in) { if (in[threadIdx.x] == 0) *found = 1; }
//@ grid=2 block=32 zero
K same_value_read_wrong(int* found, const int* in) { if (in[threadIdx.x] == 0 && !*found) *found = 1; }   //~ race
//@ grid=2 block=64
K heap_exchange_right(int* g, int n) {
  __shared__ int* p; int t = threadIdx.x;
  if (t == 0) p = (int*)malloc(64 * 4);
  __syncthreads();
  p[t] = g[t];
  __syncthreads();
  g[blockIdx.x * 64 + t + 256] = p[63 - t];
  __syncthreads();
  if (t == 0) free(p);
}
//@ grid=2 block=64
K heap_freed_early_wrong(int* g, int n) {                                   // freed while others may still read
  __shared__ int* p; int t = threadIdx.x;
  if (t == 0) p = (int*)malloc(64 * 4);
  __syncthreads();
  p[t] = g[t];
  __syncthreads();
  int v = p[63 - t];                                                                  //~ fault
  if (t == 0) free(p);                                                                //~ race
  g[blockIdx.x * 64 + t + 256] = v;
}
//@ grid=2 block=64
K heap_freed_unordered_wrong(int* g, int n) {                               // the last warp frees: here the others have read already
  __shared__ int* p; int t = threadIdx.x;
  if (t == 0) p = (int*)malloc(64 * 4);
  __syncthreads();
  p[t] = g[t];
  __syncthreads();
  g[blockIdx.x * 64 + t + 256] = p[63 - t];                                           //~ race
  if (t == 63) free(p);                                                               //~ race
}
//@ block=64 uninit=1
K vector_part_used_wrong(const int* in, int4* v, int* out) {
  int t = threadIdx.x;
  v[t].x = in[t];
  int4 q = v[t];                                                                      //~ uninitialized
  out[t] = q.x + q.y;
}
//@ block=64 uninit=1
K vector_part_dropped_right(const int* in, int4* v, int* out) {
  int t = threadIdx.x;
  v[t].x = in[t]; v[t].z = 2;
  int4 q = v[t];
  v[t + 64] = q;
  out[t] = q.x + q.z;
}
//@ block=32 findings=0
K far_outside_wrong(int* g, int n) { g[threadIdx.x + n * 100000000] = 1; }          //~ fault
