// Lanes of one warp.
#define K extern "C" __global__ void
#define ALL 0xffffffffu

//@ block=32
K exchange_wrong(int* g, int n) {
  __shared__ int s[32]; int t = threadIdx.x;
  s[t] = g[t];                          //~ race
  g[t + 32] = s[t ^ 1];                 //~ race
}
//@ block=32
K exchange_right(int* g, int n) {
  __shared__ int s[32]; int t = threadIdx.x;
  s[t] = g[t];
  __syncwarp();
  g[t + 32] = s[t ^ 1];
}
//@ block=32
K volatile_reduce_wrong(int* g, int n) {
  __shared__ int q[64]; volatile int* s = q; int t = threadIdx.x;
  s[t] = g[t]; s[t + 32] = 0;
  __syncwarp();
  s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];   //~ race
  if (!t) g[0] = s[0];
}
//@ block=32
K volatile_reduce_right(int* g, int n) {
  __shared__ int q[64]; volatile int* s = q; int t = threadIdx.x;
  s[t] = g[t]; s[t + 32] = 0;
  for (int d = 16; d; d >>= 1) {
    __syncwarp();
    int v = s[t + d];
    __syncwarp();
    s[t] += v;
  }
  __syncwarp();
  if (!t) g[0] = s[0];
}
K warp_tree_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 32];
    __syncwarp();
    if (t < 16) s[t] += s[t + 16];
    __syncwarp();
    if (t < 8) s[t] += s[t + 8];
    __syncwarp();
    if (t < 4) s[t] += s[t + 4];
    __syncwarp();
    if (t < 2) s[t] += s[t + 2];
    __syncwarp();
    if (t < 1) g[0] = s[0] + s[1];
  }
}
K warp_tree_wrong(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];        //~ race
  if (t < 32) {
    s[t] += s[t + 32];                  //~ race
    __syncwarp();
    if (t < 16) s[t] += s[t + 16];
    __syncwarp();
    if (t < 1) g[0] = s[0] + s[1];
  }
}
// The mask holds half a warp, and the other half reads.
//@ block=32
K half_mask_wrong(int* g, int n) {
  __shared__ int s[32]; int t = threadIdx.x;
  s[t] = g[t];                          //~ race
  if (t < 16) __syncwarp(0xffff); else __syncwarp(0xffff0000);
  g[t + 32] = s[31 - t];                //~ race
}
//@ block=32
K half_mask_right(int* g, int n) {
  __shared__ int s[32]; int t = threadIdx.x;
  s[t] = g[t];
  if (t < 16) __syncwarp(0xffff); else __syncwarp(0xffff0000);
  g[t + 32] = s[t ^ 15];
}
// A shuffle orders no memory.
//@ block=32
K shuffle_wrong(int* g, int n) {
  __shared__ int s[32]; int t = threadIdx.x;
  s[t] = g[t];                          //~ race
  int v = __shfl_sync(ALL, t, 0);
  g[t + 32] = s[t ^ 1] + v;             //~ race
}
//@ block=32
K shuffle_right(int* g, int n) {
  int t = threadIdx.x, v = g[t];
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(ALL, v, d);
  g[t + 32] = v;
}
// Only lane 0 writes `w`, and only lane 0's is read.
K aggregate_right(int* c, int* out) {
  int w;
  if ((threadIdx.x & 31) == 0) w = atomicAdd(c, 32);
  out[threadIdx.x] = __shfl_sync(ALL, w, 0) + (threadIdx.x & 31);
}
K aggregate_wrong(int* c, int* out) {   // the wrong lane is read
  int w;
  if ((threadIdx.x & 31) == 0) w = atomicAdd(c, 32);
  out[threadIdx.x] = __shfl_sync(ALL, w, 5) + (threadIdx.x & 31);   //~ uninitialized
}
//@ block=32
K ended_lane_wrong(int* g, int n) {
  int t = threadIdx.x;
  if (t >= 16) return;
  g[t + 64] = __shfl_sync(ALL, g[t], (t + 16) & 31);   //~ synchronization
}
//@ block=32
K ended_lane_right(int* g, int n) {
  int t = threadIdx.x;
  if (t >= 16) return;
  g[t + 64] = __shfl_sync(0xffff, g[t], (t + 1) & 15);
}
//@ block=32
K divergent_wrong(int* g, int n) {      // two sides of a branch, one after the other on old machines
  __shared__ int s; int t = threadIdx.x;
  if (t < 16) { if (t == 0) s = n; }    //~ race
  else g[t] = s;                        //~ race
}
//@ block=32
K divergent_right(int* g, int n) {
  __shared__ int s; int t = threadIdx.x;
  if (t == 0) s = n;
  __syncwarp();
  if (t >= 16) g[t] = s;
}
K ballot_compact_right(int* g, int* out) {
  int t = threadIdx.x, lane = t & 31;
  bool keep = g[t] > 3;
  unsigned m = __ballot_sync(ALL, keep);
  int base;
  if (lane == 0) base = atomicAdd(&out[1000], __popc(m));
  base = __shfl_sync(ALL, base, 0);
  if (keep) out[(base + __popc(m & ((1u << lane) - 1))) & 511] = t;
}
