// Reads of shared memory in the opposite direction of the threads, across lines of shadow memory.
#define K extern "C" __global__ void

//@ grid=1 block=64
K mirror_wrong(const int* in, int* out) {                            // one warp writes what the other one reads, and nobody reads what it writes
  __shared__ int s[3][129];
  int t = threadIdx.x;
  s[1][t] = in[t];
  __syncthreads();
  out[t] = s[1][63 - t];                                             //~ race
  s[1][t + (t & 32)] = in[t + 3];                                    //~ race
}
//@ grid=1 block=64
K mirror_right(const int* in, int* out) {
  __shared__ int s[3][129];
  int t = threadIdx.x;
  s[1][t] = in[t];
  __syncthreads();
  out[t] = s[1][63 - t];
  __syncthreads();
  s[1][t + (t & 32)] = in[t + 3];
}
//@ grid=1 block=64
K mirror_odd_rows_wrong(const int* in, int* out) {                   // rows begin between lines
  __shared__ int s[4][33];
  int t = threadIdx.x & 31, w = threadIdx.x / 32;
  s[w][t] = in[threadIdx.x];                                         //~ race
  out[threadIdx.x] = s[w ^ 1][31 - t];                               //~ race
}
//@ grid=1 block=64
K mirror_odd_rows_right(const int* in, int* out) {
  __shared__ int s[4][33];
  int t = threadIdx.x & 31, w = threadIdx.x / 32;
  s[w][t] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = s[w][31 - t];
}
//@ grid=1 block=64
K mirror_long_wrong(const int* in, int* out) {
  __shared__ long long s[3][65];
  int t = threadIdx.x;
  s[1][t] = in[t];
  __syncthreads();
  out[t] = s[1][63 - t];                                             //~ race
  s[1][t + (t & 32) / 32] = in[t + 3];                               //~ race
}
//@ grid=1 block=64
K mirror_every_other_wrong(const int* in, int* out) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = s[t + 64] = s[t + 128] = in[t];
  __syncthreads();
  out[t] = s[131 - 2 * t];                                           //~ race
  s[t + 70] = in[t + 3];                                             //~ race
}
//@ grid=1 block=64
K mirror_then_next_step_wrong(const int* in, int* out) {             // the other of two buffers, which the next step fills
  __shared__ int s[2][65];
  int t = threadIdx.x;
  s[1][t] = 0; s[0][t] = 0;
  __syncthreads();
  for (int k = 0; k < 7; k++) {
    s[k % 2][t] = in[k + t];                                         //~ race
    __syncthreads();
    out[k * 64 + t] = s[(k + 1) % 2][63 - t];                        //~ race
  }
}
