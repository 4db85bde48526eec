// Indices of arrays in local memory that are too low or too high.
#define K extern "C" __global__ void
//@ block=32
K below1_wrong(const int* in, int* out, int n) {
  int a[8];
  for (int i = 0; i < 8; i++) a[(i + n) & 7] = in[i];
  int s = 0;
  for (int i = 0; i < 8; i++) s += a[in[i] - 1];    //~ out of bounds
  out[threadIdx.x] = s;
}
//@ block=32
K below_store_wrong(const int* in, int* out, int n) {
  int a[8];
  for (int i = 0; i < 8; i++) a[(i + n) & 7] = in[i];
  a[in[0] - 3] = 5;    //~ out of bounds
  int s = 0;
  for (int i = 0; i < 8; i++) s += a[(i + n) & 7];
  out[threadIdx.x] = s;
}
//@ block=32
K below_two_wrong(const int* in, int* out, int n) {
  int a[8], b[8];
  for (int i = 0; i < 8; i++) a[(i + n) & 7] = in[i], b[(i + n) & 7] = in[i + 1];
  a[in[0] - 1] = 5;    //~ out of bounds
  b[in[0] - 1] = 5;
  int s = 0;
  for (int i = 0; i < 8; i++) s += a[(i + n) & 7] + b[(i + n) & 7];
  out[threadIdx.x] = s;
}
//@ block=32
K above_wrong(const int* in, int* out, int n) {
  int a[8];
  for (int i = 0; i < 8; i++) a[(i + n) & 7] = in[i];
  int s = 0;
  for (int i = 0; i < 8; i++) s += a[in[i] + 1];    //~ out of bounds
  out[threadIdx.x] = s;
}
__device__ __noinline__ int sum(int* p, const int* in) { int s = 0; for (int i = 0; i < 8; i++) s += p[in[i] - 1];    //~ out of bounds callee_wrong
 return s; }
//@ block=32
K callee_wrong(const int* in, int* out, int n) {
  int a[8];
  for (int i = 0; i < 8; i++) a[(i + n) & 7] = in[i];
  out[threadIdx.x] = sum(a, in);
}
//@ block=32
K every_element_right(const int* in, int* out, int n) {
  int a[8];
  for (int i = 0; i < 8; i++) a[(i + n) & 7] = in[i];
  int s = 0;
  for (int i = 0; i < 8; i++) s += a[7 - in[i]] + a[in[i]];
  out[threadIdx.x] = s;
}
