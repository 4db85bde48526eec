// What goes wrong in graph codes, reductions and tiles: worklists, stamps, union-find, persistent threads, flags in loops, partitions of
// shared memory.
#include <cuda/atomic>
#define K extern "C" __global__ void
#define ALL 0xffffffffu
#define VERTEX int v = blockIdx.x * blockDim.x + threadIdx.x
#define EACH_NEIGHBOUR for (int j = 0; j < (v & 3) + 2; j++)
__device__ __forceinline__ int neighbour(int v, int j) { return (v * 5 + j * 7 + 1) & 63; }
template <class T, cuda::thread_scope S> using Ref = cuda::atomic_ref<T, S>;
constexpr auto device = cuda::thread_scope_device;

//@ grid=2 block=32 zero
K stamped_worklist_right(int* stamp, int* list, int* size) {
  VERTEX;
  EACH_NEIGHBOUR { int w = neighbour(v, j); if (atomicMax(&stamp[w], 9) != 9) list[atomicAdd(size, 1)] = w; }
}
//@ grid=2 block=32 zero
K stamped_worklist_wrong(int* stamp, int* list, int* size) {
  VERTEX;
  EACH_NEIGHBOUR {
    int w = neighbour(v, j);
    if (stamp[w] != 9) {                                                              //~ race
      stamp[w] = 9;                                                                   //~ race
      list[atomicAdd(size, 1)] = w;
    }
  }
}
//@ grid=2 block=32 zero
K stamped_worklist_block_wrong(int* stamp, int* list, int* size) {
  VERTEX;
  EACH_NEIGHBOUR {
    int w = neighbour(v, j);
    if (atomicMax_block(&stamp[w], 9) != 9) list[atomicAdd(size, 1)] = w;             //~ race
  }
}
//@ grid=2 block=32
K worklist_slot_wrong(const int* in, int* list, int* size) {
  VERTEX;
  if (in[v] & 1) list[atomicAdd_block(size, 1)] = v;                                  //~ race
}
//@ grid=2 block=32
K worklist_slot_right(const int* in, int* list, int* size) { VERTEX; if (in[v] & 1) list[atomicAdd(size, 1)] = v; }
//@ grid=2 block=32
K persistent_vertices_right(const int* in, int* out, int n) {
  for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n * 64; v += gridDim.x * blockDim.x) out[v] = in[v] + in[(v + 1) & 255];
}
//@ grid=2 block=32
K persistent_vertices_wrong(const int* in, int* out, int n) {               // the stride forgets the blocks
  for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n * 64; v += blockDim.x) out[v] = in[v] + blockIdx.x;   //~ race
}
//@ grid=2 block=32
K chunks_right(const int* in, int* out, int n) {
  int per = n * 4, first = (blockIdx.x * blockDim.x + threadIdx.x) * per;
  for (int v = first; v < first + per; v++) out[v] = in[v] + threadIdx.x;
}
//@ grid=2 block=32
K chunks_wrong(const int* in, int* out, int n) {                            // one too far: the next thread's first
  int per = n * 2, first = (blockIdx.x * blockDim.x + threadIdx.x) * per;
  for (int v = first; v <= first + per; v++) out[v] = in[v] + threadIdx.x;            //~ race
}
__device__ int find_plain(int v, int* parent) {
  int p = parent[v];                                                                  //~ race union_find_plain_wrong
  if (p != v) {
    int before = v, next;
    while (p > (next = parent[p])) { parent[before] = next; before = p; p = next; }   //~ race union_find_plain_wrong
  }
  return p;
}
__device__ int find_volatile(int v, volatile int* parent) {
  int p = parent[v];
  if (p != v) {
    int before = v, next;
    while (p > (next = parent[p])) { parent[before] = next; before = p; p = next; }
  }
  return p;
}
__device__ int find_relaxed(int v, int* parent) {
  auto at = [&](int i) { return Ref<int, device>(parent[i]); };
  int p = at(v).load(cuda::memory_order_relaxed);
  if (p != v) {
    int before = v, next;
    while (p > (next = at(p).load(cuda::memory_order_relaxed))) { at(before).store(next, cuda::memory_order_relaxed); before = p; p = next; }
  }
  return p;
}
#define UNION(find)                                                        \
  VERTEX;                                                                  \
  EACH_NEIGHBOUR {                                                         \
    int a = find(v, parent), b = find(neighbour(v, j), parent);            \
    for (bool again = a != b; again;) {                                    \
      again = false;                                                       \
      int low = a < b ? a : b, high = a < b ? b : a, old = atomicCAS(&parent[high], high, low); \
      if (old != high) { if (a < b) b = old; else a = old; again = a != b; } \
    }                                                                      \
  }
//@ grid=2 block=32
K union_find_plain_wrong(int* parent) { UNION(find_plain) }
//@ grid=2 block=32
K union_find_volatile_right(int* parent) { UNION(find_volatile) }
//@ grid=2 block=32
K union_find_relaxed_right(int* parent) { UNION(find_relaxed) }
//@ block=128
K flatten_right(const int* parent, int* root) {
  int v = threadIdx.x, p = parent[v];
  while (p != parent[p]) p = parent[p];
  root[v] = p;
}
//@ block=128 zero
K done_in_loop_right(int* g, int n) {
  __shared__ int done; int t = threadIdx.x;
  for (int i = 0;; i++) {
    if (t == 0) done = i >= n;
    __syncthreads();
    if (done) break;
    __syncthreads();
    g[t] += i;
  }
}
//@ block=128 zero
K done_in_loop_wrong(int* g, int n) {
  __shared__ int done; int t = threadIdx.x;
  for (int i = 0;; i++) {
    if (t == 0) done = i >= n;                                                        //~ race
    __syncthreads();   //~ synchronization
    if (done) break;                                                                  //~ race, synchronization
    g[t] += i;
  }
}
//@ block=128 shared=1024
K partition_right(const int* in, int* out, int n) {
  extern __shared__ int pool[]; int t = threadIdx.x, *keys = pool, *values = pool + 128;
  keys[t] = in[t]; values[t] = t;
  __syncthreads();
  out[t] = keys[(t + 1) & 127] + values[(t + 2) & 127];
}
//@ block=128 shared=1024
K partition_wrong(const int* in, int* out, int n) {                         // the second part begins in the first
  extern __shared__ int pool[]; int t = threadIdx.x, *keys = pool, *values = pool + 128 / sizeof(int);
  keys[t] = in[t];                                                                    //~ race
  values[t] = t + 100;                                                                //~ race
  __syncthreads();
  out[t] = keys[(t + 1) & 127] + values[(t + 2) & 127];
}
struct Flags { unsigned a : 4, b : 4, c : 24; };
//@ grid=1 block=32 zero
K bit_fields_wrong(Flags* f) { if (threadIdx.x & 1) f->a = threadIdx.x; else f->b = 3; }   //~ race
struct Bytes { unsigned char a, b; short c; };
//@ grid=1 block=2 zero
K byte_fields_right(Bytes* f) { if (threadIdx.x & 1) f->a = 7; else f->b = 3; }
//@ grid=2 block=32
K quads_right(const int4* in, int4* out) { VERTEX; int4 q = in[v]; q.x += v; out[v] = q; }
//@ grid=2 block=32
K quads_wrong(const int4* in, int* out) {                                   // quads every 8 bytes overlap
  VERTEX; int4 q = in[v];
  q.x += v;
  *(longlong2*)&out[4 * v] = *(longlong2*)&q;                                         //~ race
  out[4 * v + 5] = v;                                                                 //~ race
}
//@ grid=2 block=32 zero
K split_k_right(const int* in, float* c) { atomicAdd(&c[threadIdx.x], in[blockIdx.x * 32 + threadIdx.x] * 2.f); }
//@ grid=2 block=32 zero
K split_k_block_wrong(const int* in, float* c) {
  atomicAdd_block(&c[threadIdx.x], in[blockIdx.x * 32 + threadIdx.x] * 2.f);          //~ race
}
//@ grid=2 block=32 zero
K split_k_plain_wrong(const int* in, float* c) {
  c[threadIdx.x] += in[blockIdx.x * 32 + threadIdx.x] * 2.f + 1;                      //~ race
}
//@ grid=4 block=64
K halo_by_flag_right(int* cells, volatile int* ready, int* out) {
  VERTEX;
  __shared__ int left;
  cells[v + 512] = v;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    ready[512 + blockIdx.x] = 77;
    left = 0;
    if (blockIdx.x > 0) {
      while (ready[512 + blockIdx.x - 1] != 77) {}
      __threadfence();
      left = cells[512 + v - 1];
    }
  }
  __syncthreads();
  out[v] = left + cells[v + 512];
}
//@ grid=4 block=64
K halo_by_flag_wrong(int* cells, volatile int* ready, int* out) {           // fenced by one thread only, before the barrier
  VERTEX;
  __shared__ int left;
  cells[v + 512] = v;                                                                 //~ race
  if (threadIdx.x == 0) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    ready[512 + blockIdx.x] = 77;
    left = 0;
    if (blockIdx.x > 0) {
      while (ready[512 + blockIdx.x - 1] != 77) {}
      __threadfence();
      left = cells[512 + v - 1];                                                      //~ race
    }
  }
  __syncthreads();
  out[v] = left + cells[v + 512];
}
//@ grid=2 block=64 zero
K lock_in_block_scope_wrong(int* lock, int* sum) {
  if (threadIdx.x == 0) {
    while (atomicCAS_block(lock, 0, 1) != 0) {}                                       //~ race
    __threadfence();
    *sum += blockIdx.x + 1;                                                           //~ race
    __threadfence();
    atomicExch_block(lock, 0);                                                        //~ race
  }
}
//@ grid=4 block=64 zero
K lock_per_bucket_right(int* lock, int* sum) {
  int b = threadIdx.x & 3;
  for (bool done = false; !done;) {
    if (atomicCAS(&lock[b], 0, 1) == 0) {
      __threadfence();
      sum[b] += threadIdx.x;
      __threadfence();
      atomicExch(&lock[b], 0);
      done = true;
    }
  }
}
//@ grid=4 block=64 zero
K lock_of_other_bucket_wrong(int* lock, int* sum) {
  int b = threadIdx.x & 3;
  for (bool done = false; !done;) {
    if (atomicCAS(&lock[b], 0, 1) == 0) {
      __threadfence();
      sum[b] += threadIdx.x;                                                          //~ race
      sum[(b + 1) & 3] += 1;                                                          //~ race
      __threadfence();
      atomicExch(&lock[b], 0);
      done = true;
    }
  }
}
//@ grid=4 block=64 zero
K lock_without_acquire_wrong(int* lock, int* sum) {  //? `__threadfence()` is missing after it is read
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    *sum += blockIdx.x + 1;                                                           //~ race
    __threadfence();
    atomicExch(lock, 0);
  }
}
//@ grid=4 block=64 zero
K lock_plain_unlock_wrong(int* lock, int* sum) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}                                             //~ race
    __threadfence();
    *sum += blockIdx.x + 1;
    __threadfence();
    *lock = 0;                                                                        //~ race
  }
}
//@ grid=4 block=64 zero
K lock_volatile_unlock_right(volatile int* lock, int* sum) {
  if (threadIdx.x == 0) {
    while (atomicCAS((int*)lock, 0, 1) != 0) {}
    __threadfence();
    *sum += blockIdx.x + 1;
    __threadfence();
    *lock = 0;
  }
}
//@ grid=4 block=64 zero
K lazy_table_right(int* state, int* table, int* out) {
  Ref<int, device> s(*state);
  if (s.load(cuda::memory_order_acquire) != 2) {
    int none = 0;
    if (s.compare_exchange_strong(none, 1, cuda::memory_order_relaxed)) {
      for (int i = 0; i < 8; i++) table[i] = i * i + 1;
      s.store(2, cuda::memory_order_release);
    } else {
      while (s.load(cuda::memory_order_acquire) != 2) {}
    }
  }
  out[blockIdx.x * 64 + threadIdx.x] = table[threadIdx.x & 7];
}
//@ grid=4 block=64 zero
K lazy_table_wrong(int* state, int* table, int* out) {                      // the quick look is relaxed
  Ref<int, device> s(*state);
  if (s.load(cuda::memory_order_relaxed) != 2) {
    int none = 0;
    if (s.compare_exchange_strong(none, 1, cuda::memory_order_relaxed)) {
      for (int i = 0; i < 8; i++) table[i] = i * i + 1;                               //~ race
      s.store(2, cuda::memory_order_release);
    } else {
      while (s.load(cuda::memory_order_acquire) != 2) {}
    }
  }
  out[blockIdx.x * 64 + threadIdx.x] = table[threadIdx.x & 7];                        //~ race
}
//@ grid=4 block=128
K block_sum_then_last_right(const int* in, int* partial, unsigned* ticket, int* out) {
  __shared__ int s[128]; __shared__ bool last; int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  for (int d = 64; d > 0; d >>= 1) { __syncthreads(); if (t < d) s[t] += s[t + d]; }
  if (t == 0) { partial[blockIdx.x] = s[0]; __threadfence(); last = atomicInc(ticket + 8, gridDim.x - 1) == gridDim.x - 1; }
  __syncthreads();
  if (last) { int sum = 0; for (unsigned i = 0; i < gridDim.x; i++) sum += partial[i]; if (t == 0) *out = sum; }
}
//@ grid=4 block=128
K block_sum_not_last_wrong(const int* in, int* partial, unsigned* ticket, int* out) {   // everybody adds up
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  for (int d = 64; d > 0; d >>= 1) { __syncthreads(); if (t < d) s[t] += s[t + d]; }
  if (t == 0) {
    partial[blockIdx.x] = s[0] + blockIdx.x;                                          //~ race
    __threadfence();
    atomicInc(ticket + 8, gridDim.x - 1);
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; i++) sum += partial[i];                       //~ race
    out[blockIdx.x] = sum;
  }
}
//@ grid=4 block=128
K block_sum_loop_wrong(const int* in, int* partial) {                       // the barrier stands inside the condition
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
  for (int d = 64; d > 0; d >>= 1) { if (t < d) { s[t] += s[t + d]; __syncthreads(); } }   //~ synchronization
  if (t == 0) partial[blockIdx.x] = s[0];
}
//@ grid=1 block=128 findings=1
K block_sum_last_step_wrong(const int* in, int* partial) {                  // a barrier before the loop only
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int d = 64; d > 0; d >>= 1) if (t < d) s[t] += s[t + d];                       //~ race
  if (t == 0) partial[0] = s[0];
}
