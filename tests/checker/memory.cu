// Accesses that violate no bounds and are wrong all the same: local arrays overrun, arguments that land in other allocations.
#define K extern "C" __global__ void

//@ block=1
K local_write_wrong(int* g, int n) {
  int a[8];
  for (int i = 0; i < n + 6; i++) a[i] = g[i];                      //~ out of bounds
  g[threadIdx.x] = a[g[0] & 7];
}
//@ block=1
K local_write_right(int* g, int n) {
  int a[8];
  for (int i = 0; i < n + 4; i++) a[i] = g[i];
  g[threadIdx.x + 16] = a[g[0] & 7];
}
//@ block=1
K local_read_wrong(int* g, int n) {                // what lies there was never written either
  int a[8];
  for (int i = 0; i < 8; i++) a[i] = g[i];
  g[threadIdx.x + 16] = a[g[7] + n - 3];                            //~ out of bounds
}
//@ block=1
K local_read_right(int* g, int n) {
  int a[8];
  for (int i = 0; i < 8; i++) a[i] = g[i];
  g[threadIdx.x + 16] = a[g[7] + n - 4];
}
// The distance of two allocations as a number: no index of the first leads to the second.
K stray_wrong(int* g, int* h) {
  __shared__ volatile long p[2];
  if (threadIdx.x == 0) { p[0] = (long)g; p[1] = (long)h; }
  __syncthreads();
  long distance = (p[1] - p[0]) / 4;
  h[threadIdx.x + 128] = g[distance + threadIdx.x];                 //~ out of bounds
}
K stray_right(int* g, int* h) {
  __shared__ volatile long p[2];
  if (threadIdx.x == 0) { p[0] = (long)g; p[1] = (long)(g + 64); }
  __syncthreads();
  long distance = (p[1] - p[0]) / 4;
  h[threadIdx.x] = g[distance + threadIdx.x];
}
K stray_write_wrong(int* g, int* h) {
  __shared__ volatile long p[2];
  if (threadIdx.x == 0) { p[0] = (long)g; p[1] = (long)h; }
  __syncthreads();
  long distance = (p[1] - p[0]) / 4;
  g[distance + threadIdx.x] = 1;                                    //~ out of bounds
}
K either_right(int* g, int* h) {                  // a choice between arguments is nobody's
  int* p = threadIdx.x & 1 ? g : h;
  p[threadIdx.x] = 1;
}
K walk_right(int* g, int* h) {                    // a pointer that moves on
  int* p = g;
  for (int i = 0; i < 7; i++, p += 128) p[threadIdx.x] = i;
  const int* end = g + 1024;
  h[threadIdx.x] = end[-1 - (int)threadIdx.x];
}
K loaded_right(int** g, int* h) {                 // a pointer that was loaded is no argument
  __shared__ int* p;
  if (threadIdx.x == 0) p = h;
  __syncthreads();
  p[threadIdx.x] = 1;
}
__device__ int pool[512];
K pool_right(int* g, int n) {
  pool[threadIdx.x] = g[threadIdx.x];
  int* p = n > 2 ? pool : g;
  p[threadIdx.x + 128] = 4;
}
//@ grid=2
K aligned_right(char* g, int n) {                 // rounded up to a multiple of 16
  int* p = (int*)(((long)g + 15) & ~15l);
  p[blockIdx.x * 128 + threadIdx.x] = 1;
}
