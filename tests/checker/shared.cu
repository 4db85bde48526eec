// Shared memory and barriers of a CTA. Lines that a finding must name end in a mark; a kernel without marks is right.
#define K extern "C" __global__ void

K reverse_wrong(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];            //~ race
  g[t] = s[127 - t];      //~ race
}
K reverse_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  g[t] = s[127 - t];
}
K later_barrier_wrong(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x & 63;
  if (threadIdx.x < 64) {
    s[t] = 0;
  }
  __syncthreads();
  if (threadIdx.x < 64) {
    s[t] = t + 1;                       //~ race
    if (t < 32) g[t] = s[t + 32];       //~ race
  }
  __syncthreads();
  g[t + 64] = s[t];
}
K later_barrier_right(int* g, int n) {
  __shared__ int s[64]; int t = threadIdx.x & 63;
  if (threadIdx.x < 64) s[t] = t + 1;
  __syncthreads();
  if (threadIdx.x < 32) g[t] = s[t + 32];
  __syncthreads();
  g[threadIdx.x + 64] = s[t];
}
K tile_loop_wrong(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x, a = 0;
  for (int k = 0; k < n; k++) {
    s[t] = g[k * 128 + t];              //~ race
    __syncthreads();
    a += s[127 - t];                    //~ race
  }
  g[t + 512] = a;
}
K tile_loop_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x, a = 0;
  for (int k = 0; k < n; k++) {
    s[t] = g[k * 128 + t];
    __syncthreads();
    a += s[127 - t];
    __syncthreads();
  }
  g[t + 512] = a;
}
// Two buffers need one barrier a turn; if the barrier is left out, the third turn writes what the first still reads.
K two_buffers_wrong(int* g, int n) {
  __shared__ int s[2][128]; int t = threadIdx.x, a = 0;
  for (int k = 0; k < n; k++) {
    s[k & 1][t] = g[k * 128 + t];       //~ race
    if (k == 0) __syncthreads();
    a += s[k & 1][127 - t];             //~ race
  }
  g[t + 512] = a;
}
K two_buffers_right(int* g, int n) {
  __shared__ int s[2][128]; int t = threadIdx.x, a = 0;
  for (int k = 0; k < n; k++) {
    s[k & 1][t] = g[k * 128 + t];
    __syncthreads();
    a += s[k & 1][127 - t];
  }
  g[t + 512] = a;
}
K reduce_wrong(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  for (int d = 64; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];        //~ race
  }
  if (t == 0) g[0] = s[0];
}
K reduce_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  for (int d = 64; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) g[0] = s[0];
}
// Hillis and Steele: read and write of a step need a barrier between.
K scan_wrong(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  for (int d = 1; d < 128; d <<= 1) {
    int v = t >= d ? s[t - d] : 0;      //~ race
    s[t] += v;                          //~ race
    __syncthreads();
  }
  g[t] = s[t];
}
K scan_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  for (int d = 1; d < 128; d <<= 1) {
    int v = t >= d ? s[t - d] : 0;
    __syncthreads();
    s[t] += v;
    __syncthreads();
  }
  g[t] = s[t];
}
K broadcast_wrong(int* g, int n) {
  __shared__ int s; int t = threadIdx.x;
  if (t == 127) s = n;                  //~ race
  g[t] = s;                             //~ race
}
K broadcast_right(int* g, int n) {
  __shared__ int s; int t = threadIdx.x;
  if (t == 127) s = n;
  __syncthreads();
  g[t] = s;
}
K by_warp_1_right(int* g, int n) {
  __shared__ int s[32];
  if (threadIdx.x / 32 == 1) s[threadIdx.x % 32] = n;
  __syncthreads();
  g[threadIdx.x] = s[threadIdx.x % 32];
}
K one_store_wrong(int* g, int n) {
  __shared__ int s;
  s = threadIdx.x + g[0];               //~ race
  __syncthreads();
  g[threadIdx.x] = s;
}
K one_store_right(int* g, int n) {      // all write the same
  __shared__ int s;
  s = n + g[0];
  __syncthreads();
  g[threadIdx.x + 128] = s;
}
K flag_same_value_right(int* g, int n) {
  __shared__ int any;
  if (threadIdx.x == 0) any = 0;
  __syncthreads();
  if (g[threadIdx.x] > 3) any = 1;
  __syncthreads();
  g[threadIdx.x + 128] = any;
}
K winner_wrong(int* g, int n) {
  __shared__ int who;
  if (threadIdx.x == 0) who = 0;
  __syncthreads();
  if (g[threadIdx.x] == 3) who = threadIdx.x;   //~ race
  __syncthreads();
  g[threadIdx.x + 128] = who;
}
K winner_right(int* g, int n) {
  __shared__ int who;
  if (threadIdx.x == 0) who = 0;
  __syncthreads();
  if (g[threadIdx.x] == 3) atomicMax(&who, threadIdx.x);
  __syncthreads();
  g[threadIdx.x + 128] = who;
}
// Two warps hand over by a named barrier of 64 threads.
K named_wrong(int* g, int n) {
  __shared__ int s[32]; int w = threadIdx.x / 32, l = threadIdx.x % 32;
  if (w == 3) {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    s[l] = g[l];                        //~ race
  } else if (w == 0) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    g[l + 64] = s[31 - l];              //~ race
  }
}
K named_right(int* g, int n) {
  __shared__ int s[32]; int w = threadIdx.x / 32, l = threadIdx.x % 32;
  if (w == 3) {
    s[l] = g[l];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else if (w == 0) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    g[l + 64] = s[31 - l];
  }
}
// The barrier holds two warps, and a third one reads too.
K third_warp_wrong(int* g, int n) {
  __shared__ int s[32]; int w = threadIdx.x / 32, l = threadIdx.x % 32;
  if (w == 1) s[l] = g[l];              //~ race
  if (w < 2) asm volatile("bar.sync 2, 64;" ::: "memory");
  if (w == 0 || w == 2) g[32 * w + l + 256] = s[31 - l];   //~ race
}
K third_warp_right(int* g, int n) {
  __shared__ int s[32]; int w = threadIdx.x / 32, l = threadIdx.x % 32;
  if (w == 1) s[l] = g[l];
  if (w < 3) asm volatile("bar.sync 2, 96;" ::: "memory");
  if (w == 0 || w == 2) g[32 * w + l + 256] = s[31 - l];
}
K producer_consumer_wrong(int* g, int n) {   // nothing tells the producer that the buffer is free
  __shared__ int s[32]; int w = threadIdx.x / 32, l = threadIdx.x % 32;
  for (int k = 0; k < n; k++) {
    if (w == 0) {
      s[l] = g[k * 32 + l];             //~ race
      asm volatile("bar.sync 1, 64;" ::: "memory");
    } else if (w == 1) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      g[512 + l] = s[31 - l];           //~ race
    }
  }
}
K producer_consumer_right(int* g, int n) {
  __shared__ int s[32]; int w = threadIdx.x / 32, l = threadIdx.x % 32;
  for (int k = 0; k < n; k++) {
    if (w == 0) {
      s[l] = g[k * 32 + l];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    } else if (w == 1) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      g[512 + l] = s[31 - l];
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
}
K count_or_wrong(int* g, int n) {       // __syncthreads_or comes too late
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];                          //~ race
  int v = s[t ^ 32];                    //~ race
  g[t] = __syncthreads_or(v);
}
K count_or_right(int* g, int n) {
  __shared__ int s[128]; int t = threadIdx.x;
  s[t] = g[t];
  int any = __syncthreads_or(g[t] > 2);
  g[t + 128] = s[t ^ 32] + any;
}
__device__ __noinline__ int pick(int* s, int i) {
  return s[i];                          //~ race in_call_wrong
}
__device__ __noinline__ int outer(int* s, int i) { return pick(s, i) + 1; }
K in_call_wrong(int* g, int n) {
  __shared__ int tile[128]; int t = threadIdx.x;
  tile[t] = g[t];                       //~ race
  g[t + 128] = outer(tile, 127 - t);
}
K in_call_right(int* g, int n) {
  __shared__ int tile[128]; int t = threadIdx.x;
  tile[t] = g[t];
  __syncthreads();
  g[t + 128] = outer(tile, 127 - t);
}
// Bytes of one word are apart.
K bytes_right(char* g, int n) {
  __shared__ char s[128]; int t = threadIdx.x;
  s[t] = g[t];
  g[t + 256] = s[t];
}
K bytes_wrong(char* g, int n) {
  __shared__ char s[132]; int t = threadIdx.x;
  s[t] = g[t];                          //~ race
  if (t < 127 && t >= 64) g[t + 256] = s[t + 1];   //~ race
}
K halves_wrong(int* g, int n) {         // a vector load sees what the neighbour writes
  __shared__ int2 s[64]; int* p = (int*)s; int t = threadIdx.x;
  p[t] = g[t];                          //~ race
  int2 v = s[t / 2];                    //~ race
  g[t + 128] = v.x + v.y;
}
K halves_right(int* g, int n) {
  __shared__ int2 s[64]; int* p = (int*)s; int t = threadIdx.x;
  p[t] = g[t];
  __syncthreads();
  int2 v = s[t / 2];
  g[t + 128] = v.x + v.y;
}
//@ shared=512
K dynamic_wrong(int* g, int n) {
  extern __shared__ int dyn[]; int t = threadIdx.x;
  dyn[t] = g[t];                        //~ race
  g[t + 128] = dyn[t ^ 64];             //~ race
}
//@ shared=512
K dynamic_right(int* g, int n) {
  extern __shared__ int dyn[]; int t = threadIdx.x;
  dyn[t] = g[t];
  __syncthreads();
  g[t + 128] = dyn[t ^ 64];
}
K transpose_wrong(int* g, int n) {
  __shared__ int s[8][17]; int x = threadIdx.x % 16, y = threadIdx.x / 16;
  s[y][x] = g[threadIdx.x];             //~ race
  int i = threadIdx.x % 8, j = threadIdx.x / 8;
  g[threadIdx.x + 128] = s[i][j];       //~ race
}
K transpose_right(int* g, int n) {
  __shared__ int s[8][17]; int x = threadIdx.x % 16, y = threadIdx.x / 16;
  s[y][x] = g[threadIdx.x];
  __syncthreads();
  int i = threadIdx.x % 8, j = threadIdx.x / 8;
  g[threadIdx.x + 128] = s[i][j];
}
