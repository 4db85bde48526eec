// Sweeps over rows, segments and queues, and loops with barriers whose numbers of iterations differ.
#include <cooperative_groups.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
using device_ref = cuda::atomic_ref<int, cuda::thread_scope_device>;
__device__ __forceinline__ int ends(int i) { return (i * 3 + 4) / 5; }

// A barrier in a loop with the stride of the block: the last iteration is one of a part of the threads.
//@ block=64
K strided_wrong(const int* in, int* out) {
  __shared__ int s[64];
  for (int i = threadIdx.x; i < 100; i += 64) {
    s[threadIdx.x] = in[i];
    __syncthreads();                                                                                     //~ synchronization
    out[i] = s[threadIdx.x ^ 1];
    __syncthreads();                                                                                     //~ synchronization
  }
}
//@ block=64
K strided_right(const int* in, int* out) {
  __shared__ int s[64];
  for (int base = 0; base < 100; base += 64) {
    int i = base + threadIdx.x;
    s[threadIdx.x] = i < 100 ? in[i] : 0;
    __syncthreads();
    if (i < 100) out[i] = s[threadIdx.x ^ 1];
    __syncthreads();
  }
}
// Threads that have nothing left to do in a reduction wait on.
//@ block=128
K leaving_right(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int d = 64; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) out[0] = s[0];
}
// Edges in coordinates: a thread sums a run of edges, and the first and last row of a run belong to others, too.
//@ grid=2 block=32
K segments_wrong(const int* in, int* out) {
  int sum = 0, row = ends(TID * 4);
  for (int e = TID * 4; e < TID * 4 + 4; e++) {
    if (ends(e) != row) { out[row] += sum; row = ends(e); sum = 0; }                                     //~ race
    sum += in[e] + 1;
  }
  out[row] += sum;                                                                                       //~ race
}
//@ grid=2 block=32
K segments_right(const int* in, int* out) {
  int sum = 0, row = ends(TID * 4);
  for (int e = TID * 4; e < TID * 4 + 4; e++) {
    if (ends(e) != row) { atomicAdd(&out[row], sum); row = ends(e); sum = 0; }
    sum += in[e] + 1;
  }
  atomicAdd(&out[row], sum);
}
// A triangular system: a row waits for those before it; the flag is set before the value is written.
//@ grid=4 block=32 zero
K solve_wrong(int* ready, int* x) {
  if (threadIdx.x) return;
  int r = blockIdx.x, sum = 1;
  for (int j = 0; j < r; j++) {
    while (!device_ref(ready[j]).load(cuda::memory_order_acquire)) {}
    sum += x[j];                                                                                         //~ race
  }
  device_ref(ready[r]).store(1, cuda::memory_order_release);
  x[r] = sum;                                                                                            //~ race
}
//@ grid=4 block=32 zero
K solve_right(int* ready, int* x) {
  if (threadIdx.x) return;
  int r = blockIdx.x, sum = 1;
  for (int j = 0; j < r; j++) {
    while (!device_ref(ready[j]).load(cuda::memory_order_acquire)) {}
    sum += x[j];
  }
  x[r] = sum;
  device_ref(ready[r]).store(1, cuda::memory_order_release);
}
// Relaxation in place, of all points and of one color at a time.
//@ block=64
K relaxation_wrong(const int* in, int* x) {
  int i = threadIdx.x + 1;
  for (int k = 0; k < 2; k++) {
    x[i] = (x[i - 1] + x[i + 1]) / 2 + i;                                                                //~ race
    __syncthreads();
  }
}
//@ block=64
K relaxation_right(const int* in, int* x) {
  int i = threadIdx.x + 1;
  for (int k = 0; k < 4; k++) {
    if ((i ^ k) & 1) x[i] = (x[i - 1] + x[i + 1]) / 2 + i;
    __syncthreads();
  }
}
// Queues of the threads beside each other in global memory, with one element too many.
//@ grid=2 block=32 zero
K queues_beside_wrong(const int* in, int* out) {
  int* queue = out + TID * 4;
  for (int n = 0; n <= 4; n++) queue[n] = TID * 10 + n;                                                  //~ race
}
//@ grid=2 block=32 zero
K queues_beside_right(const int* in, int* out) {
  int* queue = out + TID * 4;
  for (int n = 0; n < 4; n++) queue[n] = TID * 10 + n;
}
// Thread 0 exchanges the pointers to two buffers for the block.
//@ block=64
K swapped_wrong(int* a, int* b) {
  __shared__ int *now, *next;
  int t = threadIdx.x;
  if (t == 0) { now = a; next = b; }
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    next[t] = now[63 - t] + 1;                                                                           //~ race
    __syncthreads();
    if (t == 0) { int* old = now; now = next; next = old; }                                              //~ race
  }
}
//@ block=64
K swapped_right(int* a, int* b) {
  __shared__ int *now, *next;
  int t = threadIdx.x;
  if (t == 0) { now = a; next = b; }
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    next[t] = now[63 - t] + 1;
    __syncthreads();
    if (t == 0) { int* old = now; now = next; next = old; }
    __syncthreads();
  }
}
// Claims with priorities: who holds both neighbours after the barrier may change them.
//@ grid=2 block=32 coop zero
K claims_wrong(int* owner, int* data) {
  int v = TID, u = (v + 1) & 63;
  atomicMax(&owner[v], v + 1);
  atomicMax(&owner[u], v + 1);
  if (owner[v] == v + 1 && owner[u] == v + 1) { data[v] += 1; data[u] += 1; }                            //~ race
}
//@ grid=2 block=32 coop zero
K claims_right(int* owner, int* data) {
  int v = TID, u = (v + 1) & 63;
  atomicMax(&owner[v], v + 1);
  atomicMax(&owner[u], v + 1);
  cg::this_grid().sync();
  if (owner[v] == v + 1 && owner[u] == v + 1) { data[v] += 1; data[u] += 1; }
}
// The builtin atomics of the compiler, with the scope of a block for what blocks share.
//@ grid=2 block=32 zero
K builtin_scope_wrong(int* count, int* list) {
  __nv_atomic_fetch_add(count, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_BLOCK);                         //~ race
}
//@ grid=2 block=32 zero
K builtin_scope_right(int* count, int* list) {
  __nv_atomic_fetch_add(count, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}
//@ grid=2 block=32 zero
K builtin_flag_wrong(int* flag, int* data) {
  if (threadIdx.x) return;
  int one = 1, seen = 0;
  if (blockIdx.x == 0) {
    data[0] = 42;                                                                                        //~ race
    __nv_atomic_store(flag, &one, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  } else {
    do __nv_atomic_load(flag, &seen, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE); while (!seen);
    data[1] = data[0];                                                                                   //~ race
  }
}
//@ grid=2 block=32 zero
K builtin_flag_right(int* flag, int* data) {
  if (threadIdx.x) return;
  int one = 1, seen = 0;
  if (blockIdx.x == 0) {
    data[0] = 42;
    __nv_atomic_store(flag, &one, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  } else {
    do __nv_atomic_load(flag, &seen, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE); while (!seen);
    data[1] = data[0];
  }
}
// A flag with the scope of the cluster: two clusters, and two CTAs of one.


//@ grid=4 block=32 cluster=2 zero
K cluster_flag_wrong(int* flag, int* data) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { data[0] = 42; asm volatile("st.release.cluster.global.u32 [%0], 1;" :: "l"(flag) : "memory"); }   //~ race
  if (blockIdx.x == 2) {
    int v;
    do asm volatile("ld.acquire.cluster.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (!v);           //~ race
    data[1] = data[0];                                                                                   //~ race
  }
}
//@ grid=4 block=32 cluster=2 zero
K cluster_flag_right(int* flag, int* data) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { data[0] = 42; asm volatile("st.release.cluster.global.u32 [%0], 1;" :: "l"(flag) : "memory"); }
  if (blockIdx.x == 1) {
    int v;
    do asm volatile("ld.acquire.cluster.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (!v);
    data[1] = data[0];
  }
}
// Groups of equal keys: their leader adds for them; the others read what it has made without waiting for the group.
//@ block=32
K labels_of_groups_wrong(const int* in, int* out) {
  auto group = cg::labeled_partition(cg::coalesced_threads(), in[threadIdx.x] & 3);
  __shared__ int start[4];
  int key = in[threadIdx.x] & 3;
  if (group.thread_rank() == 0) start[key] = atomicAdd(&out[512 + key], (int)group.size());              //~ race
  out[threadIdx.x] = start[key] + group.thread_rank();                                                   //~ race
}
//@ block=32
K labels_of_groups_right(const int* in, int* out) {
  auto group = cg::labeled_partition(cg::coalesced_threads(), in[threadIdx.x] & 3);
  __shared__ int start[4];
  int key = in[threadIdx.x] & 3;
  if (group.thread_rank() == 0) start[key] = atomicAdd(&out[512 + key], (int)group.size());
  group.sync();
  out[threadIdx.x] = start[key] + group.thread_rank();
}
// Both sides of a branch in one warp, with barriers of the halves and with one of the whole warp.
//@ block=32
K halves_of_a_warp_wrong(const int* in, int* out) {
  __shared__ int s[32];
  auto group = cg::binary_partition(cg::coalesced_threads(), threadIdx.x < 16);
  s[threadIdx.x] = in[threadIdx.x];                                                                      //~ race
  group.sync();
  out[threadIdx.x] = s[31 - threadIdx.x];                                                                //~ race
}
//@ block=32
K halves_of_a_warp_right(const int* in, int* out) {
  __shared__ int s[32];
  auto group = cg::binary_partition(cg::coalesced_threads(), threadIdx.x < 16);
  s[threadIdx.x] = in[threadIdx.x];
  group.sync();
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
// The sum of a row, kept in a register of one lane, is shuffled in a branch that not all named lanes take.
//@ block=32
K shuffled_in_branch_wrong(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (threadIdx.x < 20) v += __shfl_xor_sync(~0u, v, 1);                                                 //~ synchronization
  out[threadIdx.x] = v;
}
//@ block=32
K shuffled_in_branch_right(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (threadIdx.x < 20) v += __shfl_xor_sync(0xfffff, v, 1);
  out[threadIdx.x] = v;
}
// A count of the threads that remain is kept in shared memory; the last one writes the result of all.
//@ block=64
K remaining_wrong(const int* in, int* out) {
  __shared__ int left, part[64];
  if (threadIdx.x == 0) left = 64;
  __syncthreads();
  part[threadIdx.x] = in[threadIdx.x];                                                                   //~ race
  if (atomicSub(&left, 1) == 1) { int sum = 0; for (int i = 0; i < 64; i++) sum += part[i]; out[0] = sum; }   //~ race
}
//@ block=64
K remaining_right(const int* in, int* out) {
  __shared__ int left, part[64];
  if (threadIdx.x == 0) left = 64;
  __syncthreads();
  part[threadIdx.x] = in[threadIdx.x];
  __threadfence_block();
  if (atomicSub(&left, 1) == 1) {
    __threadfence_block();
    int sum = 0;
    for (int i = 0; i < 64; i++) sum += part[i];
    out[0] = sum;
  }
}
// An offset that ends a row is read one element too far, past the offsets.
//@ grid=8 block=128 zero
K offsets_wrong(const int* offsets, int* out) {
  int sum = 0;
  for (int j = offsets[TID]; j < offsets[TID + 1]; j++) sum += j;                                        //~ fault
  out[TID] = sum;
}
//@ grid=8 block=128 zero
K offsets_right(const int* offsets, int* out) {
  int sum = 0;
  if (TID + 1 < 1024) for (int j = offsets[TID]; j < offsets[TID + 1]; j++) sum += j;
  out[TID] = sum;
}
