// Lanes of one warp that do the same to one place.
#define K extern "C" __global__ void

//@ block=32
K read_after_atomic_by_warp_wrong(int* g, int n) {
  __shared__ int s; int t = threadIdx.x;
  if (!t) s = 0;
  __syncthreads();
  atomicAdd(&s, 1);                     //~ race
  g[t] = s;                             //~ race
}
//@ block=32
K read_after_atomic_by_warp_right(int* g, int n) {
  __shared__ int s; int t = threadIdx.x;
  if (!t) s = 0;
  __syncthreads();
  atomicAdd(&s, 1);
  __syncwarp();
  g[t] = s;
}
// Rows that are shifted by one lane, and tables that are read between many barriers.
//@ block=128
K shifted_rows_wrong(int* g, int n) {
  __shared__ int s[129]; int t = threadIdx.x;
  s[t] = g[t];                          //~ race
  __syncwarp();
  g[t] = s[t + 1];                      //~ race
}
//@ block=128
K shifted_rows_right(int* g, int n) {
  __shared__ int s[129]; int t = threadIdx.x;
  s[t] = g[t];
  if (!t) s[128] = 0;
  __syncthreads();
  g[t] = s[t + 1];
}
//@ block=128
K table_between_barriers_wrong(int* g, int n) {
  __shared__ int s[32], sum[128]; int t = threadIdx.x;
  if (t < 32) s[t] = g[t];
  sum[t] = 0;
  __syncthreads();
  for (int i = 0; i < n; i++) {
    sum[t] += s[t % 32];                //~ race
    if (i + 1 < n) __syncthreads();
  }
  if (t == 127) s[0] = 1;               //~ race
  __syncthreads();
  g[t] = sum[t] + s[0];
}
//@ block=128
K table_between_barriers_right(int* g, int n) {
  __shared__ int s[32], sum[128]; int t = threadIdx.x;
  if (t < 32) s[t] = g[t];
  sum[t] = 0;
  __syncthreads();
  for (int i = 0; i < n; i++) {
    sum[t] += s[t % 32];
    __syncthreads();
  }
  if (t == 127) s[0] = 1;
  __syncthreads();
  g[t] = sum[t] + s[0];
}
