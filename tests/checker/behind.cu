// Undefined values that are read and dropped, as behind the end of a tile, beside those that are used; barriers with counts;
// loops that the compiler unrolls; scans.
#define K extern "C" __global__ void

//@ block=64
K merge_right(const int* in, int* out, int n) {               // the merge looks one element behind the tile, and drops it
  __shared__ int tile[96];
  int t = threadIdx.x, a = t, b = 16 * n - 1;
  tile[t] = in[t];
  __syncthreads();
  int x = tile[a], y = tile[b + 1];
  bool first = b + 1 >= 64 || x < y;
  out[t] = first ? x : y;
}
//@ block=64
K merge_wrong(const int* in, int* out, int n) {
  __shared__ int tile[96];
  int t = threadIdx.x, a = t, b = 16 * n - 1;
  tile[t] = in[t];
  __syncthreads();
  int x = tile[a], y = tile[b + 1];                    //~ uninitialized
  bool first = b + 1 < 64 || x < y;
  out[t] = first ? x : y;
}
//@ block=32
K dropped_right(const int* in, int* out, int n) {
  __shared__ int tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncwarp();
  int sum = tile[t] + tile[t + 16];                    // the upper half is not complete
  if (t < 16) out[t] = sum;
}
//@ block=32
K dropped_wrong(const int* in, int* out, int n) {
  __shared__ int tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncwarp();
  int sum = tile[t] + tile[t + 16];                    //~ uninitialized
  if (t < 17) out[t] = sum;
}
//@ block=64
K passed_on_wrong(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  for (int d = 1; d < 16; d *= 2) {
    __syncthreads();
    int sum = s[t] + s[t + d];                         //~ uninitialized
    __syncthreads();
    s[t] = sum;
  }
  __syncthreads();
  if (t < 50) out[t] = s[t];
}
//@ block=64
K passed_on_right(const int* in, int* out) {           // the same sums, of which none that read behind the end counts
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  for (int d = 1; d < 16; d *= 2) {
    __syncthreads();
    int sum = s[t] + s[t + d];
    __syncthreads();
    s[t] = sum;
  }
  __syncthreads();
  if (t < 49) out[t] = s[t];
}
//@ block=32
K pairs_right(const int* in, int* out) {               // one half of a vector is undefined, and not used
  __shared__ int2 s[32];
  int t = threadIdx.x;
  s[t].x = in[t];
  __syncwarp();
  int2 v = s[31 - t];
  out[t] = v.x;
}
//@ block=64
K counted_right(const int* in, int* out) {             // the warps meet at different instructions, as the counts say
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t < 32) {
    s[t] = in[t];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = s[t - 32];
  }
}
//@ block=64
K counted_wrong(const int* in, int* out) {             // who waits has nothing to wait for
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t < 32) {
    s[t] = in[t];                                      //~ race
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    out[t] = s[t - 32];                                //~ race
  }
}
//@ block=32 findings=1
K unrolled_wrong(const int* in, int* out) {            // many pairs of instructions, and one pair of lines
  __shared__ int s[128];
  int t = threadIdx.x, sum = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) s[t + 32 * i] = in[t] + i;                              //~ race
#pragma unroll
  for (int i = 0; i < 4; i++) sum += s[(t + 32 * i + 1) & 127];                       //~ race
  out[t] = sum;
}
//@ block=32
K scan_right(const int* in, int* out) {                // the upper lanes' sums are undefined, and whether there is a source lane is not
  int t = threadIdx.x, x, sum;
  if (t < 8) x = in[t];
  asm volatile("{ .reg .s32 r; .reg .pred p; shfl.sync.up.b32 r|p, %1, 1, 0, -1; mov.s32 %0, %1; @p add.s32 %0, r, %0; }" : "=r"(sum) : "r"(x));
  if (t < 8) out[t] = sum;
}
