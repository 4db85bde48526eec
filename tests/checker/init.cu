// Values that nobody wrote; accesses that leave their variable.
#define K extern "C" __global__ void

//@ uninit=0
K never_written_wrong(int* g, int* out) { out[threadIdx.x] = g[threadIdx.x]; }       //~ uninitialized
K never_written_right(int* g, int* out) { out[threadIdx.x] = g[threadIdx.x]; }
//@ uninit=0
K written_first_right(int* g, int* out) {
  g[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = g[threadIdx.x];
}
//@ uninit=0
K part_written_wrong(int* g, int* out) {
  if (threadIdx.x != 7) g[threadIdx.x] = 1;
  out[threadIdx.x] = g[threadIdx.x];                  //~ uninitialized
}
//@ uninit=0
K accumulate_wrong(int* g, int n) { atomicAdd(&g[threadIdx.x & 3], n); }             //~ uninitialized
K accumulate_right(int* g, int n) { atomicAdd(&g[threadIdx.x & 3], n); }
K shared_wrong(int* g, int n) {
  __shared__ int s[256]; int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  g[t] = s[t + 1];                                    //~ uninitialized
}
K shared_right(int* g, int n) {
  __shared__ int s[256]; int t = threadIdx.x;
  s[t] = g[t];
  if (t == 0) s[128] = 0;
  __syncthreads();
  g[t] = s[t + 1];
}
K shared_atomic_wrong(int* g, int n) {
  __shared__ int s;
  atomicAdd(&s, 1);                                   //~ uninitialized
  __syncthreads();
  g[threadIdx.x] = s;
}
K shared_atomic_right(int* g, int n) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  atomicAdd(&s, 1);
  __syncthreads();
  g[threadIdx.x] = s;
}
K heap_wrong(int* g, int n) {
  int* p = (int*)malloc(64);
  g[threadIdx.x] = p[g[threadIdx.x] & 15];            //~ uninitialized
  free(p);
}
K heap_right(int* g, int n) {
  int* p = (int*)malloc(64);
  for (int i = 0; i < 16; i++) p[i] = i;
  g[threadIdx.x] = p[g[threadIdx.x] & 15];
  free(p);
}
K local_wrong(int* g, int n) {
  int a[16];
  for (int i = 0; i < n; i++) a[i] = i;
  g[threadIdx.x] = a[g[threadIdx.x] + 4];             //~ uninitialized
}
K local_right(int* g, int n) {
  int a[16];
  for (int i = 0; i < 4 * n; i++) a[i] = i;
  g[threadIdx.x] = a[g[threadIdx.x] + 4];
}
K local_overrun_wrong(int* g, int n) {
  int a[8];
  for (int i = 0; i < 8; i++) a[i] = i;
  a[4 + (g[threadIdx.x] & 7)] = 3;                    //~ out of bounds
  g[threadIdx.x] = a[(g[threadIdx.x] + 1) & 7];
}
K local_overrun_right(int* g, int n) {
  int a[16];
  for (int i = 0; i < 16; i++) a[i] = i;
  a[4 + (g[threadIdx.x] & 7)] = 3;
  g[threadIdx.x] = a[(g[threadIdx.x] + 1) & 7];
}
K register_wrong(int* g, int n) {
  int v;
  asm("" : "=r"(v));
  g[threadIdx.x] = v;                                 //~ uninitialized
}
