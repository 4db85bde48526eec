// Compiled without line information: the copies of an unrolled loop's statement are not known to be one.
#define K extern "C" __global__ void

// What a thread does not keep goes to a slot that nobody reads.
//@ unlined
K slots_right(int* g, int n) {
  __shared__ int s[513]; int t = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; i++) s[g[4 * t + i] < n ? 4 * t + i : 512] = 4 * t + i;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; i++) if (g[4 * t + i] < n) g[512 + 4 * t + i] = s[4 * t + i];
}
//@ unlined
K slots_wrong(int* g, int n) {
  __shared__ int s[513]; int t = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; i++) s[g[4 * t + i] < n ? 4 * t + i : 512] = 4 * t + i;   //~ race
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; i++) if (g[4 * t + i] < n) g[512 + 4 * t + i] = s[4 * t + i];
  if (t == 0) g[512] = s[512];
}
