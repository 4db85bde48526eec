// What was never written: buffers of the host, parts of them, shared and local memory, the heap; with what counts as writing.
#define K extern "C" __global__ void

//@ uninit=0
K buffer_wrong(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }                       //~ uninitialized
K buffer_right(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }
//@ uninit=1
K only_written_right(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }
//@ uninit=1
K sum_wrong(const int* in, int* sum) { atomicAdd(sum, in[threadIdx.x]); }                             //~ uninitialized
//@ uninit=1
K sum_right(const int* in, int* sum) {
  if (threadIdx.x == 0) *sum = 0;
  __syncthreads();
  atomicAdd(sum, in[threadIdx.x]);
}
//@ uninit=1
K accumulate_wrong(const int* in, int* out) { out[threadIdx.x] += in[threadIdx.x]; }                  //~ uninitialized
//@ uninit=1
K last_of_block_wrong(const int* in, int* out) {       // one element is left out
  if (threadIdx.x < 127) out[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[200 + threadIdx.x] = out[127 - threadIdx.x];                                                    //~ uninitialized
}
//@ uninit=1
K last_of_block_right(const int* in, int* out) {
  if (threadIdx.x < 127) out[threadIdx.x] = in[threadIdx.x]; else out[threadIdx.x] = 0;
  __syncthreads();
  out[200 + threadIdx.x] = out[127 - threadIdx.x];
}
K halo_wrong(const int* in, int* out) {                // the halo of a tile is not loaded
  __shared__ int tile[130];
  int t = threadIdx.x;
  tile[t + 1] = in[t];
  __syncthreads();
  out[t] = tile[t] + tile[t + 2];                                                                     //~ uninitialized
}
K halo_right(const int* in, int* out) {
  __shared__ int tile[130];
  int t = threadIdx.x;
  tile[t + 1] = in[t];
  if (t == 0) tile[0] = tile[129] = 0;
  __syncthreads();
  out[t] = tile[t] + tile[t + 2];
}
K bins_wrong(const int* in, int* out) {
  __shared__ int bins[8];
  atomicAdd(&bins[in[threadIdx.x] & 7], 1);                                                           //~ uninitialized
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}
K bins_right(const int* in, int* out) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[in[threadIdx.x] & 7], 1);
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}
struct Hole { char c; int i; };
K hole_right(const Hole* in, Hole* out) {
  Hole h;
  h.c = 1; h.i = in[threadIdx.x].i;
  out[threadIdx.x] = h;
}
//@ shared=512
K dynamic_wrong(const int* in, int* out) {
  extern __shared__ int d[];
  if (threadIdx.x < 64) d[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = d[threadIdx.x];                                                                  //~ uninitialized
}
//@ shared=512
K dynamic_right(const int* in, int* out) {
  extern __shared__ int d[];
  d[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = d[127 - threadIdx.x];
}
//@ block=32
K heap_wrong(int* out, int n) {
  int* p = (int*)malloc(16);
  out[threadIdx.x] = p[1];                                                                            //~ uninitialized
  free(p);
}
//@ block=32
K heap_right(int* out, int n) {
  int* p = (int*)malloc(16);
  p[1] = n;
  out[threadIdx.x] = p[1];
  free(p);
}
K memset_right(int* out, int n) {
  __shared__ int s[128];
  if (threadIdx.x == 0) memset(s, 0, sizeof s);
  __syncthreads();
  out[threadIdx.x] = s[127 - threadIdx.x];
}
//@ grid=2
K other_block_wrong(int* out, int n) {                 // shared memory of another CTA was written, not this one's
  __shared__ int s[128];
  if (blockIdx.x == 0) s[threadIdx.x] = n;
  __syncthreads();
  out[blockIdx.x * 128 + threadIdx.x] = s[threadIdx.x];                                               //~ uninitialized
}
__device__ int zeroed[128];
K variable_right(int* out, int n) { out[threadIdx.x] = zeroed[threadIdx.x]; }
//@ block=32
K tile_of_nothing_right(const int* in, int* out) {     // rows of a tile that nobody uses
  __shared__ int tile[64];
  int a, b, t = threadIdx.x;
  if (t < 20) { a = in[t]; b = in[t + 32]; }
  tile[t] = a; tile[t + 32] = b;
  __syncwarp();
  if (t < 20) out[t] = tile[19 - t] + tile[32 + t];
}
