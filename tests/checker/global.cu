// Global memory, within a CTA and between CTAs.
#define K extern "C" __global__ void

//@ grid=4
K sum_wrong(int* g, int n) { g[0] += threadIdx.x + 1; }     //~ race
//@ grid=4
K sum_right(int* g, int n) { atomicAdd(&g[0], threadIdx.x + 1); }
K within_cta_wrong(int* g, int n) {
  g[threadIdx.x] = n;                                 //~ race
  g[threadIdx.x + 128] = g[127 - threadIdx.x];        //~ race
}
K within_cta_right(int* g, int n) {
  g[threadIdx.x] = n;
  __syncthreads();
  g[threadIdx.x + 128] = g[127 - threadIdx.x];
}
//@ grid=2
K barrier_is_no_grid_wrong(int* g, int n) {           // a barrier of the CTA does not order the other CTA
  int i = blockIdx.x * 128 + threadIdx.x;
  g[i] = n;                                           //~ race
  __syncthreads();
  g[i + 512] = g[255 - i];                            //~ race
}
//@ grid=2
K barrier_is_no_grid_right(int* g, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  g[i] = n;
  __syncthreads();
  g[i + 512] = g[blockIdx.x * 128 + 127 - threadIdx.x];
}
//@ grid=2
K stencil_wrong(int* g, int n) {                      // in place
  int i = blockIdx.x * 128 + threadIdx.x + 1;
  g[i] = g[i - 1] + g[i + 1];                         //~ race
}
//@ grid=2
K stencil_right(int* g, int* out) {
  int i = blockIdx.x * 128 + threadIdx.x + 1;
  out[i] = g[i - 1] + g[i + 1];
}
//@ grid=2
K overlap_wrong(int* g, int n) { g[blockIdx.x * 100 + threadIdx.x] = blockIdx.x; }    //~ race
//@ grid=2
K overlap_right(int* g, int n) { g[blockIdx.x * 128 + threadIdx.x] = blockIdx.x; }
//@ grid=2
K histogram_wrong(int* g, int* bins) { bins[g[threadIdx.x] & 7]++; }                  //~ race
//@ grid=2
K histogram_right(int* g, int* bins) { atomicAdd(&bins[g[threadIdx.x] & 7], 1); }
//@ grid=2
K read_counter_wrong(int* g, int n) {
  atomicAdd(&g[0], 1);                                //~ race
  g[1 + blockIdx.x * 128 + threadIdx.x] = g[0];       //~ race
}
//@ grid=2
K read_counter_right(int* g, int n) { g[1 + blockIdx.x * 128 + threadIdx.x] = atomicAdd(&g[0], 1); }
//@ grid=2
K reset_wrong(int* g, int n) {
  if (threadIdx.x == 0 && blockIdx.x == 0) g[0] = 0;  //~ race
  __syncthreads();
  atomicAdd(&g[0], 1);                                //~ race
}
K reset_right(int* g, int n) {
  if (threadIdx.x == 0) g[0] = 0;
  __syncthreads();
  atomicAdd(&g[0], 1);
}
//@ grid=2
K changed_flag_right(int* g, int* changed) {          // all that write it write the same
  if (g[threadIdx.x] > 2) *changed = 1;
}
//@ grid=2
K changed_flag_wrong(int* g, int* changed) {
  if (g[threadIdx.x] > 2) *changed = blockIdx.x;      //~ race
}
__device__ int counter;
//@ grid=3
K variable_wrong(int* g, int n) { if (threadIdx.x == 0) counter += n; }               //~ race
//@ grid=3
K variable_right(int* g, int n) { if (threadIdx.x == 0) atomicAdd(&counter, n); }
K heap_wrong(int** p, int n) {
  __shared__ int* shared;
  if (threadIdx.x == 0) { shared = (int*)malloc(512); }
  __syncthreads();
  shared[threadIdx.x] = n;                            //~ race
  int v = shared[127 - threadIdx.x];                  //~ race
  __syncthreads();
  if (threadIdx.x == 0) { free(shared); p[0] = (int*)(long)v; }
}
K heap_right(int** p, int n) {
  __shared__ int* shared;
  if (threadIdx.x == 0) { shared = (int*)malloc(512); }
  __syncthreads();
  shared[threadIdx.x] = n;
  __syncthreads();
  int v = shared[127 - threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) { free(shared); p[0] = (int*)(long)v; }
}
//@ grid=2
K max_wrong(int* g, int* best) { if (g[threadIdx.x] + (int)threadIdx.x > *best) *best = g[threadIdx.x] + threadIdx.x; }   //~ race
//@ grid=2
K max_right(int* g, int* best) { atomicMax(best, g[threadIdx.x]); }
