// Scopes, fences and locks; barriers of the grid by hand; graph algorithms whose updates meet.
#include <cuda/atomic>
#define K extern "C" __global__ void
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto device = cuda::thread_scope_device;
constexpr auto block = cuda::thread_scope_block;
using cuda::memory_order_acquire, cuda::memory_order_release, cuda::memory_order_relaxed;

//@ grid=2 block=64 zero
K steal_scope_wrong(int* q, int* out) {   // own head with block scope, thief with device scope
  int b = blockIdx.x;
  if (threadIdx.x == 0) {
    int mine = Ref<block>(q[b * 16]).fetch_add(1, memory_order_relaxed);     //~ race
    out[b * 8 + mine % 4] = mine;
    if (b == 1) { int other = Ref<device>(q[0]).fetch_add(1, memory_order_relaxed); atomicAdd(&out[100], other); }   //~ race
  }
}
//@ grid=2 block=64 zero
K fence_block_wrong(int* g, int* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { g[1] = 3; __threadfence_block(); atomicExch(&g[0], 1); }   //~ race
    else { while (atomicAdd(&g[0], 0) == 0) {} __threadfence(); out[0] = g[1]; }    //~ race
  }
}
//@ grid=2 block=64 zero
K fence_before_missing_wrong(int* g, int* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { g[1] = 3; atomicExch(&g[0], 1); }   //~ race
    else { while (atomicAdd(&g[0], 0) == 0) {} __threadfence(); out[0] = g[1]; }    //~ race
  }
}
//@ grid=2 block=64 zero
K fence_after_missing_wrong(int* g, int* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { g[1] = 3; __threadfence(); atomicExch(&g[0], 1); }   //~ race
    else { while (atomicAdd(&g[0], 0) == 0) {} out[0] = g[1]; }    //~ race
  }
}
//@ grid=2 block=64 zero
K lock_block_scope_wrong(int* l, int* g) {
  if (threadIdx.x == 0) {
    while (atomicCAS_block(l, 0, 1) != 0) {}      //~ race
    __threadfence();
    g[0] += 1;        //~ race
    __threadfence();
    atomicExch_block(l, 0);                       //~ race
  }
}
//@ grid=2 block=64 zero
K lock_no_fence_wrong(int* l, int* g) {
  if (threadIdx.x == 0) {
    while (atomicCAS(l, 0, 1) != 0) {}
    g[0] += 1;                                    //~ race
    atomicExch(l, 0);
  }
}
//@ grid=1 block=64 zero
K lock_block_right(int* l, int* g) {
  if ((threadIdx.x & 31) == 0) {
    while (atomicCAS_block(l, 0, 1) != 0) {}
    __threadfence_block();
    g[0] += 1;
    __threadfence_block();
    atomicExch_block(l, 0);
  }
}
//@ grid=4 block=32 zero
K global_barrier_right(int* count, int* g) {      // a barrier of the grid by hand
  g[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < 4) {}
    __threadfence();
  }
  __syncthreads();
  g[256 + blockIdx.x * 32 + threadIdx.x] = g[(blockIdx.x ^ 1) * 32 + threadIdx.x];
}
//@ grid=4 block=32 zero
K global_barrier_wrong(int* count, int* g) {      // without the last barrier of the block
  g[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;  //~ race
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < 4) {}
    __threadfence();
  }
  g[256 + blockIdx.x * 32 + threadIdx.x] = g[(blockIdx.x ^ 1) * 32 + threadIdx.x];   //~ race
}
//@ grid=4 block=64 zero
K global_barrier_no_first_wrong(int* count, int* g) {   // thread 0 does not wait for its block
  g[blockIdx.x * 64 + threadIdx.x] = blockIdx.x;  //~ race
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < 4) {}
    __threadfence();
  }
  __syncthreads();
  g[256 + blockIdx.x * 64 + threadIdx.x] = g[(blockIdx.x ^ 1) * 64 + threadIdx.x];   //~ race
}
//@ grid=2 block=64 zero
K color_wrong(int* color, const int* in) {   // colours of neighbours while these are chosen
  int v = blockIdx.x * 64 + threadIdx.x;
  int used = 0;
  for (int j = 1; j < 4; j++) used |= 1 << (color[(v + j) & 127] & 7);  //~ race
  color[v] = __ffs(~used) + v;                                         //~ race
}
//@ grid=2 block=64 zero
K mis_wrong(volatile int* state, int* out) {   // strong state, plain counter
  int v = blockIdx.x * 64 + threadIdx.x;
  bool best = true;
  for (int j = 1; j < 4; j++) if (state[(v + j) & 127] == 1) best = false;
  if (best) { state[v] = 1; out[0]++; }                                //~ race
}
//@ grid=2 block=64 zero
K mis_right(volatile int* state, int* out) {
  int v = blockIdx.x * 64 + threadIdx.x;
  bool best = true;
  for (int j = 1; j < 4; j++) if (state[(v + j) & 127] == 1) best = false;
  if (best) { state[v] = 1; atomicAdd(out, 1); }
}
//@ grid=2 block=64 zero
K triangle_block_sum_wrong(int* total, const int* in) {   // shared counter without reset barrier
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;          //~ race
  atomicAdd(&sum, in[threadIdx.x] + 1);   //~ race
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(total, sum);
}
//@ grid=2 block=64 zero
K triangle_block_sum_late_wrong(int* total, const int* in) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[threadIdx.x] + 1);         //~ race
  if (threadIdx.x == 0) atomicAdd(total, sum);  //~ race
}
//@ grid=2 block=64 zero
K pagerank_in_place_wrong(float* rank, const float* in) {
  int v = blockIdx.x * 64 + threadIdx.x;
  float s = 0;
  for (int j = 1; j < 4; j++) s += rank[(v + j) & 127];   //~ race
  rank[v] = s * 0.85f + 0.15f + v;                        //~ race
}
//@ grid=2 block=64 zero
K short_add_wrong(short* g, int n) { g[threadIdx.x & 7] += 1 + blockIdx.x; }   //~ race
//@ grid=1 block=64 zero
K divergent_shared_wrong(int* g, int n) {   // both branches touch the same word
  __shared__ int s[32];
  s[threadIdx.x & 31] = 0;  
  __syncthreads();
  if (threadIdx.x & 1) s[threadIdx.x >> 1] = threadIdx.x;    //~ race
  else s[(threadIdx.x >> 1) ^ 1] = threadIdx.x + 1;          //~ race
  __syncthreads();
  g[threadIdx.x] = s[threadIdx.x & 31];
}
//@ grid=1 block=32 zero
K warp_private_right(int* g, int n) {
  __shared__ volatile int s[32];
  s[threadIdx.x] = threadIdx.x;
  __syncwarp();
  for (int d = 16; d > 0; d /= 2) {
    int x = threadIdx.x < d ? s[threadIdx.x + d] : 0;
    __syncwarp();
    if (threadIdx.x < d) s[threadIdx.x] += x;
    __syncwarp();
  }
  if (threadIdx.x == 0) g[0] = s[0];
}
//@ grid=1 block=32 zero
K warp_private_wrong(int* g, int n) {         // the first step does not wait
  __shared__ volatile int s[32];
  s[threadIdx.x] = threadIdx.x;                              //~ race
  for (int d = 16; d > 0; d /= 2) {
    int x = threadIdx.x < d ? s[threadIdx.x + d] : 0;       //~ race
    __syncwarp();
    if (threadIdx.x < d) s[threadIdx.x] += x;
    __syncwarp();
  }
  if (threadIdx.x == 0) g[0] = s[0];
}
//@ grid=2 block=32 zero
K slot_queue_right(int* q, int* out) {     // acquire-release ticket then slot flags
  int t = Ref<device>(q[0]).fetch_add(1, memory_order_relaxed);
  out[t] = threadIdx.x;
  Ref<device>(q[64 + t]).store(1, memory_order_release);
  int r = Ref<device>(q[1]).fetch_add(1, memory_order_relaxed);
  while (Ref<device>(q[64 + r]).load(memory_order_acquire) == 0) {}
  out[128 + r] = out[r];
}
//@ grid=2 block=32 zero
K slot_queue_wrong(int* q, int* out) {
  int t = Ref<device>(q[0]).fetch_add(1, memory_order_relaxed);
  out[t] = threadIdx.x;                            //~ race
  Ref<device>(q[64 + t]).store(1, memory_order_relaxed);
  int r = Ref<device>(q[1]).fetch_add(1, memory_order_relaxed);
  while (Ref<device>(q[64 + (r ^ 33)]).load(memory_order_acquire) == 0) {}
  out[128 + r] = out[r ^ 33];                           //~ race
}
