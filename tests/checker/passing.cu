// Structures that are passed and copied although a member is not set.
#define K extern "C" __global__ void
#define F __device__ __noinline__
struct Part { int key; int value; float weight; };

F int both(Part p) {
  return p.key + p.value;
}
F int key_only(Part p) { return p.key; }
F int relay(Part p) { return both(p); }
struct Entry { char kind; int value; short count; };

//@ block=64
K struct_argument_wrong(const int* in, int* out) {
  Part p;
  p.key = in[threadIdx.x];
  out[threadIdx.x] = both(p);                                     //~ uninitialized
}
//@ block=64
K struct_argument_right(const int* in, int* out) {
  Part p;
  p.key = in[threadIdx.x];
  p.value = 2;
  out[threadIdx.x] = both(p);
}
//@ block=64
K struct_argument_unused_right(const int* in, int* out) {        // the function does not look at what is not set
  Part p;
  p.key = in[threadIdx.x];
  out[threadIdx.x] = key_only(p);
}
//@ block=64
K struct_argument_passed_on_right(const int* in, int* out) {
  Part p;
  p.key = in[threadIdx.x];
  p.value = p.key + 1;
  out[threadIdx.x] = relay(p);
}
//@ block=64 uninit=1
K member_computed_with_wrong(const int* in, Entry* entries) {     // a member that nobody set, amid others that are copied
  int t = threadIdx.x;
  entries[t].kind = in[t];
  entries[t].count = 1;
  entries[t + 64] = entries[t];
  entries[t + 64].value = entries[t].value + 1;                   //~ uninitialized
}
//@ block=64 uninit=1
K member_copied_right(const int* in, Entry* entries) {
  int t = threadIdx.x;
  entries[t].kind = in[t];
  entries[t].count = 1;
  entries[t + 64] = entries[t];
  entries[t + 64].value = t;
}
