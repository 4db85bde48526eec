// Accesses of unequal kinds: copies beside copies, atomics of several sizes.
#define K extern "C" __global__ void
typedef unsigned long long u64;
__device__ unsigned at(void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void push(int* to, void* from) {
  asm volatile("fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" :: "l"(to), "r"(at(from)) : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

// Two CTAs copy the same to one place.
//@ grid=2 block=32
K copies_alike_right(int* g, int n) {
  __shared__ __align__(16) int s[32]; int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  if (t == 0) push(g, s);
}
//@ grid=2 block=32
K copies_unlike_wrong(int* g, int n) {
  __shared__ __align__(16) int s[32]; int t = threadIdx.x;
  s[t] = t + (t == 15 ? blockIdx.x : 0);
  __syncthreads();
  if (t == 0) asm volatile("fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" :: "l"(g), "r"(at(s)) : "memory");  //~ race
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

// A wide read of two counters: the warp's own additions come later, those of others at any time.
//@ block=96
K wide_read_wrong(int* g, int n) {
  __shared__ u64 s[2]; int t = threadIdx.x;
  if (t == 0) s[0] = 0;
  __syncthreads();
  if (t == 3) { u64 v; asm volatile("ld.relaxed.cta.shared.b64 %0, [%1];" : "=l"(v) : "r"(at(s)) : "memory"); g[0] = (int)v; }  //~ race
  __syncwarp();
  atomicAdd((int*)s, 1);                                                                                                        //~ race
  __syncthreads();
  if (t == 0) g[1] = ((int*)s)[0];
}
//@ block=96
K wide_read_right(int* g, int n) {
  __shared__ u64 s[2]; int t = threadIdx.x;
  if (t == 0) s[0] = 0;
  __syncthreads();
  if (t == 3) { u64 v; asm volatile("ld.relaxed.cta.shared.b64 %0, [%1];" : "=l"(v) : "r"(at(s)) : "memory"); g[0] = (int)v; }
  __syncthreads();
  atomicAdd((int*)s, 1);
  __syncthreads();
  if (t == 0) g[1] = ((int*)s)[0];
}
