// Barriers that a part of a CTA reaches.
#define K extern "C" __global__ void

K within_warp_wrong(int* g, int n) {
  if (threadIdx.x & 1) __syncthreads();               //~ synchronization
  g[threadIdx.x] = 1;
}
K within_warp_right(int* g, int n) {
  __syncthreads();
  if (threadIdx.x & 1) g[threadIdx.x] = 1;
}
K both_sides_wrong(int* g, int n) {
  if (threadIdx.x & 1) { g[threadIdx.x] = 1; __syncthreads(); g[threadIdx.x + 128] = 1; }    //~ synchronization
  else { g[threadIdx.x] = 2; __syncthreads(); g[threadIdx.x + 256] = 2; }
}
K both_sides_right(int* g, int n) {
  if (threadIdx.x & 1) g[threadIdx.x] = 1; else g[threadIdx.x] = 2;
  __syncthreads();
  if (threadIdx.x & 1) g[threadIdx.x + 128] = 1; else g[threadIdx.x + 256] = 2;
}
K half_block_wrong(int* g, int n) {
  if (threadIdx.x < 64) __syncthreads();              //~ synchronization
  g[threadIdx.x] = 1;
}
K half_block_right(int* g, int n) {
  if (n < 64) __syncthreads();
  g[threadIdx.x] = 1;
}
K trip_count_wrong(int* g, int n) {
  for (int k = 0; k <= (int)threadIdx.x / 32; k++) __syncthreads();   //~ synchronization
  g[threadIdx.x] = 1;
}
K trip_count_right(int* g, int n) {
  for (int k = 0; k <= n; k++) __syncthreads();
  g[threadIdx.x] = 1;
}
K early_exit_right(int* g, int n) {                   // threads that have ended count as arrived
  __shared__ int s[128]; int t = threadIdx.x;
  if (t >= 100) return;
  s[t] = g[t];
  __syncthreads();
  g[t + 128] = s[99 - t];
}
K early_exit_store_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  if (t >= 96) { g[t] = 0; return; }
  s[t] = g[t];
  __syncthreads();
  g[t + 128] = s[95 - t];
}
K break_out_wrong(int* g, int n) {                    // some leave the loop before the others
  int t = threadIdx.x;
  for (int k = 0; k < 8; k++) {
    if (k > t / 32 + 2) break;
    g[t + 128 * k] = k;
    __syncthreads();                                  //~ synchronization
  }
  g[t] = 1;
}
K break_out_right(int* g, int n) {
  int t = threadIdx.x;
  for (int k = 0; k < 8; k++) {
    if (k > n) break;
    g[t + 128 * k] = k;
    __syncthreads();
  }
  g[t] = 1;
}
