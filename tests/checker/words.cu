// Words of shared memory that one thread each accesses, and those that look so.
#define K extern "C" __global__ void

//@ block=64
K own_words_right(const int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  for (int i = 0; i < 4; i++) s[threadIdx.x] += in[i];
  if (threadIdx.x % 32 < 16) s[threadIdx.x] *= 2;
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
//@ block=64
K own_words_no_barrier_wrong(const int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  s[threadIdx.x] += 1;                                                                               //~ race
  out[threadIdx.x] = s[63 - threadIdx.x];                                                              //~ race
}
//@ block=64
K next_word_wrong(const int* in, int* out) {                     // of the lane beside it, which has stored it before
  __shared__ int s[65];
  s[threadIdx.x] = in[threadIdx.x];                                                                   //~ race
  out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1];                                              //~ race
}
//@ block=64
K pairs_then_words_wrong(const int* in, int* out) {              // the same words by other lanes of the warp
  __shared__ int2 s[64];
  if (threadIdx.x % 32 < 16) s[threadIdx.x] = make_int2(in[threadIdx.x], in[threadIdx.x + 1]);          //~ race
  out[threadIdx.x] = reinterpret_cast<int*>(s + (threadIdx.x & 32))[threadIdx.x % 32];                  //~ race
}
//@ block=64
K pairs_then_words_right(const int* in, int* out) {
  __shared__ int2 s[64];
  if (threadIdx.x % 32 < 16) s[threadIdx.x] = make_int2(in[threadIdx.x], in[threadIdx.x + 1]);
  __syncwarp();
  out[threadIdx.x] = reinterpret_cast<int*>(s + (threadIdx.x & 32))[threadIdx.x % 32];
}
//@ block=64
K words_of_two_warps_wrong(const int* in, int* out) {            // both warps store all of them, each its own values
  __shared__ int s[32];
  int lane = threadIdx.x % 32;
  s[lane] = in[lane] + threadIdx.x / 32;                                                              //~ race
  __syncthreads();
  out[threadIdx.x] = s[lane];
}
//@ block=64
K one_word_of_all_then_own_wrong(const int* in, int* out) {      // lane 0's word is read by all before it is stored again
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x & 32];                                                             //~ race
  s[threadIdx.x] = threadIdx.x + 9;                                                                   //~ race
}
