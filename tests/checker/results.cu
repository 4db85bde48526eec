// Arguments and results of functions that are not set, without optimization: variables live in local memory, and all calls are calls.
#define K extern "C" __global__ void
#define F __device__ __noinline__
struct Part { int key; int value; float weight; };

F int picked(int x) {
  int found;
  if (x > 2) found = 2 * x;
  return found;
}
F int picked_or_zero(int x) {
  int found = 0;
  if (x > 2) found = 2 * x;
  return found;
}
F Part build(int x) {
  Part p;
  p.key = x;
  if (x & 1) p.value = 1;
  p.weight = 0;
  return p;
}
F int both(Part p) {
  return p.key + p.value;
}
F int key_of(Part p) { return p.key; }
F int first_or_sum(int a, int b, bool sum) { return sum ? a + b : a; }

//@ block=64
K result_wrong(const int* in, int* out) {
  out[threadIdx.x] = picked(in[threadIdx.x]);                     //~ uninitialized
}
//@ block=64
K result_right(const int* in, int* out) { out[threadIdx.x] = picked_or_zero(in[threadIdx.x]); }
//@ block=64
K result_unused_right(const int* in, int* out) {
  int found = picked(in[threadIdx.x]);
  if (in[threadIdx.x] > 2) out[threadIdx.x] = found;
}
//@ block=64
K struct_argument_wrong(const int* in, int* out) {
  Part p;
  p.key = in[threadIdx.x];
  out[threadIdx.x] = both(p);                                     //~ uninitialized
}
//@ block=64
K struct_argument_unused_right(const int* in, int* out) {
  Part p;
  p.key = in[threadIdx.x];
  out[threadIdx.x] = key_of(p);
}
//@ block=64
K struct_result_wrong(const int* in, int* out) {
  Part p = build(in[threadIdx.x]);
  out[threadIdx.x] = p.key + p.value;                             //~ uninitialized
}
//@ block=64
K struct_result_unused_right(const int* in, int* out) {
  Part p = build(in[threadIdx.x]);
  out[threadIdx.x] = p.key;
  if (p.key & 1) out[threadIdx.x + 64] = p.value;
}
//@ block=64
K argument_wrong(const int* in, int* out) {
  int second;
  if (in[threadIdx.x] > 2) second = 1;
  out[threadIdx.x] = first_or_sum(1, second, true);               //~ uninitialized
}
//@ block=64
K argument_unused_right(const int* in, int* out) {
  int second, t = threadIdx.x;
  if (in[t] > 2) second = 1;
  out[t] = first_or_sum(1, second, in[t] > 2);
}
