// Threads that have elements of their own in global memory, as the launch and bounds in the code show, or nearly so.
#define K extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
//@ grid=4 block=64
K element_right(int* a) { a[I] += 3; }
//@ grid=4 block=64
K element_pairs_wrong(int* a) { a[I / 2] += 3; }   //~ race
//@ grid=4 block=64
K element_next_wrong(int* a) {
  int v = a[I + 1];   //~ race
  a[I] = v + 1;       //~ race
}
// CTAs overlap by one element.
//@ grid=4 block=64
K element_tight_wrong(int* a) { a[blockIdx.x * 63 + threadIdx.x] += 3; }   //~ race
//@ grid=4 block=63
K element_loose_right(int* a) { a[blockIdx.x * 64 + threadIdx.x] += 3; }
// The loop steps over all threads, or over those of one CTA.
//@ grid=4 block=64
K loop_right(int* a) { for (int i = I; i < 1000; i += gridDim.x * blockDim.x) a[i] += 3; }
//@ grid=4 block=64
K loop_by_cta_wrong(int* a) { for (int i = I; i < 1000; i += blockDim.x) a[i] += 3; }   //~ race
//@ grid=4 block=64
K loop_down_right(int* a) { for (int i = 768 + I; i >= 0; i -= gridDim.x * blockDim.x) a[i] += 3; }
// Rows of 60 elements, which CTAs of 16 columns do not divide.
//@ grid=4 block=16
K rows_right(int* a) {
  int x = I;
  if (x < 60)
    for (int y = 0; y < 4; y++) a[y * 60 + x] += 3;
}
//@ grid=4 block=16
K rows_bound_right(int* a) {
  int x = threadIdx.x, y = blockIdx.x;
  if (x < 12) a[y * 12 + x] += 3;
}
//@ grid=4 block=16
K rows_bound_wrong(int* a) {
  int x = threadIdx.x, y = blockIdx.x;
  if (x < 13) a[y * 12 + x] += 3;   //~ race
}
// One thread of each CTA, or two.
//@ grid=4 block=64
K first_right(int* a, int* sums) {
  if (threadIdx.x == 0) sums[blockIdx.x] = a[I];
}
//@ grid=4 block=64
K first_two_wrong(int* a, int* sums) {
  if (threadIdx.x < 2) sums[blockIdx.x] = threadIdx.x;   //~ race
}
//@ grid=4 block=64
K first_or_last_wrong(int* a, int* sums) {
  if (threadIdx.x == 0 || threadIdx.x == 63) sums[blockIdx.x] = threadIdx.x;   //~ race
}
// The output is the input, in place or shifted.
//@ grid=4 block=64 alias=1
K in_place_right(const int* in, int* out) { out[I] = in[I] + 1; }
//@ grid=4 block=64 alias=1
K shifted_wrong(const int* in, int* out) { out[I] = in[I + 4] + 1; }   //~ race
//@ grid=4 block=64
K shifted_right(const int* in, int* out) { out[I] = in[I + 4] + 1; }
// Members of structures, and a vector that covers half of the next one.
struct S { int a, b, c; };
//@ grid=4 block=64
K members_right(S* s) { s[I].a += 1, s[I].c = s[I].b; }
//@ grid=4 block=64
K members_next_wrong(S* s) {
  s[I].a += 1;            //~ race
  (&s[I].c)[1] = 7 + I;   //~ race
}
// Half of the threads write what the others do.
//@ grid=4 block=64
K halves_wrong(int* a) {
  int t = threadIdx.x;
  if (t < 32) a[t] = blockIdx.x;
  else a[t - 32] = t;   //~ race
}
//@ grid=1 block=64
K halves_right(int* a) {
  int t = threadIdx.x;
  if (t < 32) a[t] = t;
  else a[t] = t - 32;
}
// An index that wraps around.
//@ grid=4 block=64
K wrapped_wrong(int* a) { a[(unsigned char)(2 * I)] += 3; }   //~ race
// Double-precision functions that call a function for large arguments.
//@ grid=4 block=64
K sine_right(const float* in, float* out) { out[I] = (float)sin((double)in[I]); }
//@ grid=4 block=64
K sine_wrong(const float* in, float* out) { out[I / 2] = (float)sin((double)(in[I] + I)); }   //~ race
// Arrays of each thread's own, indexed at run time.
//@ grid=4 block=64
K local_right(const int* in, int* out) {
  int w[16];
  for (int k = 0; k < 16; k++) w[k] = in[(I + k) & 255];
  int s = 0;
  for (int k = 0; k < 64; k++) s += w[(k * 7 + s) & 15], w[k & 15] += s;
  out[I] = s;
}
//@ grid=4 block=64
K local_wrong(const int* in, int* out) {
  int w[16];
  for (int k = 0; k < 16; k++) w[k] = in[(I + k) & 255];
  int s = I;
  for (int k = 0; k < 64; k++) s += w[(k * 7 + s) & 15], w[k & 15] += s;
  out[I & ~1u] = s;   //~ race
}
