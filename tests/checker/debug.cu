// Compiled with -G: variables live in local memory, accesses are generic, structures are copied word by word.
#define K extern "C" __global__ void
#define ALL 0xffffffffu
struct Pair { char kind; double value; };
struct Empty {};
struct Wide { Pair pair; Empty none; short tail; };
__device__ Pair make(int x) { Pair p; p.kind = 1; p.value = x; return p; }
__device__ double use(Wide w, Empty) { return w.pair.value + w.tail; }

//@ block=64 uninit=1
K padded_right(const int* in, Pair* out) { int t = threadIdx.x; Pair p; p.kind = 1; p.value = in[t]; out[t] = p; }
//@ block=64 uninit=1
K returned_right(const int* in, Pair* out) { int t = threadIdx.x; Pair p = make(in[t]), q = p; out[t] = q; }
//@ block=32 uninit=1
K copied_right(const int* in, Pair* pairs) {
  int t = threadIdx.x;
  pairs[t].kind = 1; pairs[t].value = in[t];
  Pair q = pairs[t];
  pairs[t + 64] = q;
}
//@ block=64
K passed_right(const int* in, double* out) {
  int t = threadIdx.x; Wide w; Empty e;
  w.pair = make(in[t]); w.tail = 2;
  Wide copy = w;
  out[t] = use(copy, e);
}
//@ block=64
K member_unwritten_wrong(const int* in, double* out) {
  int t = threadIdx.x; Pair p;
  p.kind = in[t];
  Pair copy = p;
  out[t] = copy.value;                                                                //~ uninitialized
}
//@ block=64 uninit=1
K global_member_unwritten_wrong(const int* in, Pair* pairs, double* out) {
  int t = threadIdx.x;
  pairs[t].kind = in[t];
  Pair copy = pairs[t];
  out[t] = copy.value;                                                                //~ uninitialized
}
//@ block=64 uninit=1
K never_written_wrong(const int* in, int* data, int* out) { out[threadIdx.x] = data[threadIdx.x]; }   //~ uninitialized
//@ block=64
K never_set_wrong(const int* in, int* out) { int t = threadIdx.x, x; if (in[t] & 1) x = 2; out[t] = x; }   //~ uninitialized
//@ block=64
K never_used_right(const int* in, int* out) { int t = threadIdx.x, x; if (in[t] & 1) x = 2; int y = x; if (in[t] & 1) out[t] = y; }
//@ block=64
K tile_of_nothing_right(const int* in, int* out) {
  __shared__ int tile[64]; int t = threadIdx.x, a[2];
  if (t & 1) a[t & 1] = in[t];
  tile[t] = a[t & 1];
  __syncthreads();
  if (t & 1) out[t] = tile[t];
}
//@ block=64
K shared_neighbour_wrong(const int* in, int* out) {
  __shared__ int a[64], b[64]; int t = threadIdx.x;
  a[t] = in[t]; b[t] = 0;
  __syncthreads();
  out[t] = a[t + 1] + b[t];                                                           //~ out of bounds
}
//@ block=64
K frame_overrun_wrong(const int* in, int* out) {
  int t = threadIdx.x, a[4];
  for (int i = 0; i <= 4; i++) a[i + (in[t] & 1 ? 32 : 0)] = in[i];                   //~ out of bounds
  out[t] = a[1];
}
//@ block=64
K no_barrier_wrong(const int* in, int* out) {
  __shared__ int s[64]; int t = threadIdx.x;
  s[t] = in[t] + 1;                                                                   //~ race
  out[t] = s[63 - t];                                                                 //~ race
}
//@ block=64
K barrier_right(const int* in, int* out) {
  __shared__ int s[64]; int t = threadIdx.x;
  s[t] = in[t] + 1;
  __syncthreads();
  out[t] = s[63 - t];
}
//@ grid=2 block=64 zero
K block_scope_wrong(const int* in, int* count) { if (in[threadIdx.x] == 0) atomicAdd_block(count, 1); }    //~ race
