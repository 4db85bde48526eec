// Warps, asynchronous copies, clusters, bounds and first values.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
#define K extern "C" __global__ void
#define T threadIdx.x
template <class V> using Block = cuda::atomic_ref<V, cuda::thread_scope_block>;
template <class V> using Device = cuda::atomic_ref<V, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;

// Halves of a warp exchange within themselves behind barriers of their own; across halves that is not enough.
//@ block=32
K half_exchange_right(const int* in, int* out) {
  __shared__ int s[32];
  unsigned half = T < 16 ? 0xffffu : 0xffff0000u;
  s[T] = in[T];
  __syncwarp(half);
  out[T] = s[T ^ 8];
}
//@ block=32
K half_exchange_wrong(const int* in, int* out) {
  __shared__ int s[32];
  unsigned half = T < 16 ? 0xffffu : 0xffff0000u;
  s[T] = in[T];                                                                                         //~ race
  __syncwarp(half);
  out[T] = s[T ^ 16];                                                                                   //~ race
}
// One side of a branch writes, the other one reads.
//@ block=32
K sides_wrong(const int* in, int* out) {
  __shared__ int s[16];
  if (T < 16) s[T] = in[T];                                                                             //~ race
  else out[T] = s[T - 16];                                                                              //~ race
}
//@ block=32
K sides_right(const int* in, int* out) {
  __shared__ int s[16];
  if (T < 16) s[T] = in[T];
  __syncwarp();
  if (T >= 16) out[T] = s[T - 16];
}
// A shuffle gives a value, but orders no memory.
//@ block=32
K index_by_shuffle_wrong(const int* in, int* out) {
  __shared__ int s[32];
  s[T] = in[T];                                                                                         //~ race
  int i = __shfl_sync(~0u, (int)T + 1, 0);
  out[T] = s[(T + i) & 31];                                                                             //~ race
}
//@ block=32
K index_by_shuffle_right(const int* in, int* out) {
  __shared__ int s[32];
  s[T] = in[T];
  int i = __shfl_sync(~0u, (int)T + 1, 0);
  __syncwarp();
  out[T] = s[(T + i) & 31];
}
// The inclusive scan of a warp in shared memory, step by step.
//@ block=64
K warp_scan_right(const int* in, int* out) {
  __shared__ int s[64]; int lane = T & 31;
  s[T] = in[T];
  __syncwarp();
  for (int d = 1; d < 32; d *= 2) {
    int v = lane >= d ? s[T - d] : 0;
    __syncwarp();
    s[T] += v;
    __syncwarp();
  }
  out[T] = s[T];
}
//@ block=64
K warp_scan_wrong(const int* in, int* out) {
  __shared__ int s[64]; int lane = T & 31;
  s[T] = in[T];
  __syncwarp();
  for (int d = 1; d < 32; d *= 2) {
    int v = lane >= d ? s[T - d] : 0;                                                                   //~ race
    s[T] += v;                                                                                          //~ race
    __syncwarp();
  }
  out[T] = s[T];
}
// The last warp goes on alone, but the sums of the others lie in its words only behind the block's barrier.
//@ block=96
K three_warps_wrong(const int* in, int* out) {
  __shared__ int s[3];
  int v = __reduce_add_sync(~0u, in[T]);
  if (T % 32 == 0) s[T / 32] = v;                                                                       //~ race
  __syncwarp();
  if (T == 0) out[0] = s[0] + s[1] + s[2];                                                              //~ race
}
//@ block=96
K three_warps_right(const int* in, int* out) {
  __shared__ int s[3];
  int v = __reduce_add_sync(~0u, in[T]);
  if (T % 32 == 0) s[T / 32] = v;
  __syncthreads();
  if (T == 0) out[0] = s[0] + s[1] + s[2];
}
// Groups of equal keys elect a leader that writes for them; they read what it wrote.
//@ block=32
K leader_right(const int* in, int* out) {
  __shared__ int s[8];
  int key = in[T] & 7; unsigned group = __match_any_sync(~0u, key);
  if (__ffs(group) - 1 == T) s[key] = __popc(group);
  __syncwarp(group);
  out[T] = s[key];
}
//@ block=32
K leader_wrong(const int* in, int* out) {
  __shared__ int s[8];
  int key = in[T] & 7; unsigned group = __match_any_sync(~0u, key);
  if (__ffs(group) - 1 == T) s[key] = __popc(group);                                                    //~ race
  __syncwarp(group);
  out[T] = s[key ^ 1];                                                                                  //~ race
}
// Copies in three stages: the wait leaves one group in flight, which in the last turn is the one that is used.
//@ block=32
K last_group_wrong(const int* in, int* out) {
  __shared__ int s[2][32]; int sum = 0;
  __pipeline_memcpy_async(&s[0][T], &in[T], 4); __pipeline_commit();
  for (int i = 0; i < 4; i++) {
    if (i < 3) { __pipeline_memcpy_async(&s[~i & 1][T], &in[32 * (i + 1) + T], 4); __pipeline_commit(); } //~ race
    __pipeline_wait_prior(1);
    sum += s[i & 1][T];                                                                                 //~ race
  }
  out[T] = sum;
}
//@ block=32
K last_group_right(const int* in, int* out) {
  __shared__ int s[2][32]; int sum = 0;
  __pipeline_memcpy_async(&s[0][T], &in[T], 4); __pipeline_commit();
  for (int i = 0; i < 4; i++) {
    if (i < 3) __pipeline_memcpy_async(&s[~i & 1][T], &in[32 * (i + 1) + T], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    sum += s[i & 1][T];
  }
  out[T] = sum;
}
// A tile that all threads copy and all read: the wait is each one's own, the barrier must come after it.
K tile_wait_then_barrier_right(const int* in, int* out) {
  __shared__ alignas(16) int s[512];
  __pipeline_memcpy_async(&s[4 * T], &in[4 * T], 16); __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[T] = s[511 - T];
}
K tile_barrier_then_wait_wrong(const int* in, int* out) {
  __shared__ alignas(16) int s[512];
  __pipeline_memcpy_async(&s[4 * T], &in[4 * T], 16); __pipeline_commit();                              //~ race
  __syncthreads();
  __pipeline_wait_prior(0);
  out[T] = s[511 - T];                                                                                  //~ race
}
// The part of a copy that is filled with zeros is written by it, too.
//@ block=32
K zero_fill_wrong(const int* in, int* out) {
  __shared__ alignas(16) int s[128];
  s[4 * T + 3] = 5;
  __pipeline_memcpy_async(&s[4 * T], &in[4 * T], 16, 8); __pipeline_commit();                           //~ race
  s[4 * T + 3] = 7;                                                                                     //~ race
  __pipeline_wait_prior(0);
  out[T] = s[4 * T + 3];
}
// A bulk copy whose barrier object counts fewer bytes than it brings: the phase ends early.
//@ block=32 grid=1
K bulk_in_two_right(const int* in, int* out) {
  __shared__ alignas(16) int s[64]; __shared__ alignas(8) uint64_t bar;
  if (T == 0) { ptx::mbarrier_init(&bar, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
  __syncthreads();
  if (T == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 256);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, in, 128, &bar);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s + 32, in + 32, 128, &bar);
  }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
  out[T] = s[T] + s[32 + T];
}
//@ block=32 grid=1
K bulk_in_two_wrong(const int* in, int* out) {
  __shared__ alignas(16) int s[64]; __shared__ alignas(8) uint64_t bars[2];
  if (T == 0) { ptx::mbarrier_init(&bars[0], 1); ptx::mbarrier_init(&bars[1], 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
  __syncthreads();
  if (T == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bars[0], 128);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bars[1], 128);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, in, 128, &bars[0]);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s + 32, in + 32, 128, &bars[1]);            //~ race
  }
  while (!ptx::mbarrier_try_wait_parity(&bars[0], 0)) {}
  out[T] = s[T] + s[32 + T];                                                                            //~ race
}
// Blocks of a cluster count in the first one's memory: the scope of a block is too narrow for that.
//@ grid=2 block=32 cluster=2
K cluster_count_right(const int* in, int* out) {
  __shared__ int s; auto c = cg::this_cluster();
  if (T == 0) s = 0;
  c.sync();
  atomicAdd(c.map_shared_rank(&s, 0), in[T]);
  c.sync();
  if (c.block_rank() == 0 && T == 0) out[0] = s;
}
//@ grid=2 block=32 cluster=2
K cluster_count_wrong(const int* in, int* out) {
  __shared__ int s; auto c = cg::this_cluster();
  if (T == 0) s = 0;
  c.sync();
  Block<int>(*c.map_shared_rank(&s, 0)).fetch_add(in[T], relaxed);                                     //~ race
  c.sync();
  if (c.block_rank() == 0 && T == 0) out[0] = s;
}
// A flag in the other block's memory, by the scope of the cluster and by that of the block.
template <cuda::thread_scope scope> __device__ __forceinline__ void pass(const int* in, int* out, int* s, int* flag) {
  auto c = cg::this_cluster();
  if (T == 0) *flag = 0;
  c.sync();
  if (c.block_rank() == 0) {
    c.map_shared_rank(s, 1)[T] = in[T];                                                                 //~ race pass_on_wrong
    __syncthreads();
    if (T == 0) cuda::atomic_ref<int, scope>(*c.map_shared_rank(flag, 1)).store(1, release);            //~ race pass_on_wrong
  } else {
    if (T == 0) while (cuda::atomic_ref<int, scope>(*flag).load(acquire) == 0) {}                       //~ race pass_on_wrong
    __syncthreads();
    out[T] = s[T];                                                                                      //~ race pass_on_wrong
  }
  c.sync();
}
//@ grid=2 block=32 cluster=2
K pass_on_right(const int* in, int* out) { __shared__ int s[32], flag; pass<cuda::thread_scope_device>(in, out, s, &flag); }
//@ grid=2 block=32 cluster=2
K pass_on_wrong(const int* in, int* out) { __shared__ int s[32], flag; pass<cuda::thread_scope_block>(in, out, s, &flag); }
// A stencil whose halo is as wide as its radius, and one whose array is one too short: the next variable follows.
K radius_two_right(const int* in, int* out) {
  __shared__ int s[132]; __shared__ int after[4];
  if (T < 4) after[T] = T;
  s[T + 2] = in[T + 2];
  if (T < 2) { s[T] = in[T]; s[T + 130] = in[T + 130]; }
  __syncthreads();
  out[T] = s[T] + s[T + 4] + after[T & 3];
}
K radius_two_wrong(const int* in, int* out) {
  __shared__ int s[131]; __shared__ int after[4];
  if (T < 4) after[T] = T;
  s[T + 2] = in[T + 2];
  if (T < 2) { s[T] = in[T]; s[min(T + 130, 130u)] = in[T]; }                                           //~ race
  __syncthreads();
  out[T] = s[T] + s[T + 4] + after[T & 3];                                                              //~ out of bounds
}
// A row of a tile is one element longer than its threads write.
//@ block=64
K tile_edge_wrong(const int* in, int* out) {
  __shared__ int s[8][9]; int x = T & 7, y = T / 8;
  s[y][x] = in[T];
  __syncthreads();
  out[T] = s[y][x] + s[y][x + 1];                                                                       //~ uninitialized
}
//@ block=64
K tile_edge_right(const int* in, int* out) {
  __shared__ int s[8][9]; int x = T & 7, y = T / 8;
  s[y][x] = in[T];
  if (x == 7) s[y][8] = 0;
  __syncthreads();
  out[T] = s[y][x] + s[y][x + 1];
}
// A counter in shared memory that nobody has set, and a sum in global memory that the host has not.
K counter_never_set_wrong(const int* in, int* out) {
  __shared__ int count;
  atomicAdd(&count, in[T]);                                                                             //~ uninitialized
  __syncthreads();
  if (T == 0) out[0] = count;
}
//@ uninit=1
K sum_never_set_wrong(const int* in, int* out) { out[T] += in[T]; }                                     //~ uninitialized
//@ uninit=1
K sum_set_right(const int* in, int* out) { out[T] = in[T]; __syncthreads(); out[T] += out[T] + 1; }
// The last element and the one behind it, and one before the first.
K behind_wrong(int* data, const int* in) { data[(T == 77) * 1024 + T * 0] = 1; }                        //~ fault
K before_wrong(int* data, const int* in) { data[(int)T - 1] = in[T]; }                                  //~ fault
K inside_right(int* data, const int* in) { data[896 + T] = in[T]; }
// Two arrays in dynamic shared memory: the second begins where the first ends, or within it.
//@ shared=1024
K carved_right(const int* in, int* out) {
  extern __shared__ int mem[]; int* a = mem; int* b = mem + 128;
  a[T] = in[T]; b[T] = in[T + 1];
  __syncthreads();
  out[T] = a[127 - T] + b[127 - T];
}
//@ shared=1024
K carved_wrong(const int* in, int* out) {
  extern __shared__ int mem[]; int* a = mem; int* b = mem + 127;
  a[T] = in[T];                                                                                         //~ race
  b[T] = in[T + 1];                                                                                     //~ race
  __syncthreads();
  out[T] = a[127 - T] + b[127 - T];
}
// The heap gives memory that nobody has written.
//@ block=32
K heap_row_wrong(const int* in, int* out) {
  int* row = (int*)malloc(16);
  row[0] = in[T]; row[1] = in[T];
  out[T] = row[T & 3];                                                                                  //~ uninitialized
  free(row);
}
//@ block=32
K heap_row_right(const int* in, int* out) {
  int* row = (int*)malloc(16);
  for (int i = 0; i < 4; i++) row[i] = in[T + i];
  out[T] = row[T & 3];
  free(row);
}
// A local array of which only the even elements are set.
K local_even_wrong(const int* in, int* out) {
  int a[8];
  for (int i = 0; i < 8; i += 2) a[i] = in[T + i];
  out[T] = a[in[T]];                                                                                    //~ uninitialized
}
K local_even_right(const int* in, int* out) {
  int a[8];
  for (int i = 0; i < 8; i += 2) a[i] = in[T + i];
  out[T] = a[in[T] & 6];
}
