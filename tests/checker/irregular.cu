// Irregular kernels: neighbours of vertices, worklists, updates under a condition; a thread, a warp or a CTA for each vertex, in several types.
#define K extern "C" __global__ void
#define ALL 0xffffffffu
#define VERTEX int v = blockIdx.x * blockDim.x + threadIdx.x
#define EACH_NEIGHBOUR for (int j = 0; j < (v & 3) + 2; j++)
__device__ __forceinline__ int neighbour(int v, int j) { return (v * 5 + j * 7 + 1) & 63; }

//@ grid=2 block=32
K push_add_wrong(const int* in, int* out) { VERTEX; EACH_NEIGHBOUR out[neighbour(v, j)] += in[v]; }             //~ race
//@ grid=2 block=32
K push_add_right(const int* in, int* out) { VERTEX; EACH_NEIGHBOUR atomicAdd(&out[neighbour(v, j)], in[v]); }
//@ grid=2 block=32
K push_float_wrong(const float* in, float* out) { VERTEX; EACH_NEIGHBOUR out[neighbour(v, j)] += in[v] + v; }   //~ race
//@ grid=2 block=32
K push_float_right(const float* in, float* out) { VERTEX; EACH_NEIGHBOUR atomicAdd(&out[neighbour(v, j)], in[v]); }
//@ grid=2 block=32
K push_double_wrong(const int* in, double* out) { VERTEX; EACH_NEIGHBOUR out[neighbour(v, j)] += in[v] + v; }   //~ race
//@ grid=2 block=32
K push_double_right(const int* in, double* out) { VERTEX; EACH_NEIGHBOUR atomicAdd(&out[neighbour(v, j)], 1.0 * in[v]); }
//@ grid=2 block=32
K push_long_wrong(const int* in, unsigned long long* out) {
  VERTEX;
  EACH_NEIGHBOUR out[neighbour(v, j)] += in[v] + v;                                   //~ race
}
//@ grid=2 block=32
K push_long_right(const int* in, unsigned long long* out) { VERTEX; EACH_NEIGHBOUR atomicAdd(&out[neighbour(v, j)], 1ull + in[v]); }
//@ grid=2 block=32
K push_byte_wrong(const unsigned char* in, unsigned char* out) {
  VERTEX;
  EACH_NEIGHBOUR out[neighbour(v, j)] = in[v] + v;                                    //~ race
}
//@ grid=2 block=32
K neighbouring_bytes_right(const unsigned char* in, unsigned char* out) { VERTEX; out[v] = in[v] + v; }
//@ grid=2 block=32
K neighbouring_halves_right(const short* in, short* out) { VERTEX; out[v * 2] = in[v]; out[v * 2 + 1] = 2; }
//@ grid=2 block=32
K overlapping_halves_wrong(short* out, int n) { VERTEX; out[v] = v; out[v + 1] = v; }     //~ race
//@ grid=2 block=32
K push_min_wrong(const int* in, int* out) {
  VERTEX;
  EACH_NEIGHBOUR { int w = neighbour(v, j); if (in[v] - v < out[w]) out[w] = in[v] - v; }   //~ race
}
//@ grid=2 block=32
K push_min_right(const int* in, int* out) { VERTEX; EACH_NEIGHBOUR atomicMin(&out[neighbour(v, j)], in[v] - v); }
//@ grid=2 block=32
K guarded_min_wrong(const int* in, int* out) {             // the look before the update is plain
  VERTEX;
  EACH_NEIGHBOUR { int w = neighbour(v, j); if (in[v] - v < out[w]) atomicMin(&out[w], in[v] - v); }   //~ race
}
//@ grid=2 block=32
K guarded_min_right(const int* in, volatile int* out) {
  VERTEX;
  EACH_NEIGHBOUR { int w = neighbour(v, j); if (in[v] - v < out[w]) atomicMin((int*)&out[w], in[v] - v); }
}
//@ grid=2 block=32
K best_wrong(const int* in, int* best) { VERTEX; if (in[v] + v > *best) *best = in[v] + v; }     //~ race
//@ grid=2 block=32
K best_right(const int* in, int* best) { VERTEX; atomicMax(best, in[v] + v); }
//@ grid=2 block=32
K best_guarded_wrong(const int* in, int* best) { VERTEX; if (in[v] + v > *best) atomicMax(best, in[v] + v); }   //~ race
//@ grid=2 block=32
K best_float_right(const float* in, float* best) {
  VERTEX;
  int* at = (int*)best; int old = *(volatile int*)at, seen;
  do {
    seen = old;
    if (__int_as_float(seen) >= in[v]) break;
    old = atomicCAS(at, seen, __float_as_int(in[v]));
  } while (old != seen);
}
//@ grid=2 block=32
K best_float_wrong(const float* in, float* best) {
  VERTEX;
  if (in[v] + v > *best) atomicExch(best, in[v] + v);                                 //~ race
}
//@ grid=2 block=32
//@ grid=2 block=32
K count_edges_wrong(const int* in, int* count) { VERTEX; EACH_NEIGHBOUR if (v < neighbour(v, j)) (*count)++; }   //~ race
//@ grid=2 block=32
K count_edges_right(const int* in, int* count) { VERTEX; EACH_NEIGHBOUR if (v < neighbour(v, j)) atomicAdd(count, 1); }
//@ grid=2 block=32
K count_narrow_wrong(const int* in, int* count) {
  VERTEX;
  EACH_NEIGHBOUR if (v < neighbour(v, j)) atomicAdd_block(count, 1);                  //~ race
}
//@ grid=2 block=32
K count_ballot_right(const int* in, int* count) {
  VERTEX;
  unsigned votes = __ballot_sync(ALL, in[v] > 3);
  if (threadIdx.x % 32 == 0) atomicAdd(count, __popc(votes));
}
//@ grid=2 block=32
K count_ballot_wrong(const int* in, int* count) {
  VERTEX;
  unsigned votes = __ballot_sync(ALL, in[v] > 3);
  if (threadIdx.x % 32 == 0) *count += __popc(votes);                                 //~ race
}
//@ grid=2 block=32
K pull_right(const int* in, int* out) {
  VERTEX;
  int sum = 0;
  EACH_NEIGHBOUR sum += in[neighbour(v, j)];
  out[v] = sum;
}
//@ grid=2 block=32
K pull_in_place_wrong(int* data, int n) {
  VERTEX;
  int sum = 0;
  EACH_NEIGHBOUR sum += data[neighbour(v, j)];                                        //~ race
  data[v] = sum;                                                                      //~ race
}
//@ grid=2 block=32
K pull_other_half_right(int* data, int n) {            // reads one half, writes the other
  VERTEX;
  int sum = 0;
  EACH_NEIGHBOUR sum += data[neighbour(v, j)];
  data[v + 64] = sum;
}
//@ grid=2 block=32 zero
K worklist_wrong(const int* in, int* list) {
  VERTEX;
  if (neighbour(v, 1) > 9) { int at = list[0]++; list[1 + at] = v; }                  //~ race
}
//@ grid=2 block=32 zero
K worklist_right(const int* in, int* list) {
  VERTEX;
  if (neighbour(v, 1) > 9) { int at = atomicAdd(&list[0], 1); list[1 + at] = v; }
}
//@ grid=2 block=32 zero
K worklist_by_warp_right(const int* in, int* list) {
  VERTEX;
  bool mine = neighbour(v, 1) > 9;
  unsigned votes = __ballot_sync(ALL, mine);
  int lane = threadIdx.x % 32, base;
  if (lane == 0) base = atomicAdd(&list[0], __popc(votes));
  base = __shfl_sync(ALL, base, 0);
  if (mine) list[1 + base + __popc(votes & ((1u << lane) - 1))] = v;
}
//@ grid=2 block=32 zero
K worklist_by_warp_wrong(const int* in, int* list) {   // every lane of a warp takes the same place
  VERTEX;
  bool mine = neighbour(v, 1) > 9;
  unsigned votes = __ballot_sync(ALL, mine);
  int lane = threadIdx.x % 32, base;
  if (lane == 0) base = atomicAdd(&list[0], __popc(votes));
  base = __shfl_sync(ALL, base, 0);
  if (mine) list[1 + base] = v;                                                       //~ race
}
//@ grid=2 block=64 zero
K worklist_by_block_right(const int* in, int* list) {
  __shared__ int count, base;
  VERTEX;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int at = -1;
  if (neighbour(v, 1) > 9) at = atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) base = atomicAdd(&list[0], count);
  __syncthreads();
  if (at >= 0) list[1 + base + at] = v;
}
//@ grid=2 block=64 zero
K worklist_by_block_wrong(const int* in, int* list) {
  __shared__ int count, base;
  VERTEX;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int at = -1;
  if (neighbour(v, 1) > 9) at = atomicAdd(&count, 1);                                 //~ race
  if (threadIdx.x == 0) base = atomicAdd(&list[0], count);                            //~ race
  __syncthreads();
  if (at >= 0) list[1 + base + at] = v;
}
//@ grid=2 block=64
K warp_per_vertex_right(const int* in, int* out) {
  int v = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, best = 0;
  for (int j = lane; j < 40; j += 32) best = max(best, in[neighbour(v, j)]);
  for (int d = 16; d; d >>= 1) best = max(best, __shfl_xor_sync(ALL, best, d));
  if (lane == 0) out[v] = best;
}
//@ grid=2 block=64
K warp_per_vertex_wrong(const int* in, int* out) {
  int v = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, best = 0;
  for (int j = lane; j < 40; j += 32) best = max(best, in[neighbour(v, j)]);
  if (best + lane > out[v]) out[v] = best + lane;                                     //~ race
}
//@ grid=2 block=64
K warp_per_vertex_tree_right(const int* in, int* out) {
  __shared__ int s[64];
  int v = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, t = threadIdx.x;
  s[t] = in[neighbour(v, lane)];
  for (int d = 16; d; d >>= 1) {
    __syncwarp();
    if (lane < d) s[t] = max(s[t], s[t + d]);
  }
  if (lane == 0) out[v] = s[t];
}
//@ grid=2 block=64
K warp_per_vertex_tree_wrong(const int* in, int* out) {
  __shared__ int s[64];
  int v = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, t = threadIdx.x;
  s[t] = in[neighbour(v, lane)];
  for (int d = 16; d; d >>= 1)
    if (lane < d) s[t] = max(s[t], s[t + d]);                                         //~ race
  if (lane == 0) out[v] = s[t];
}
//@ grid=3 block=64
K block_per_vertex_right(const int* in, int* out) {
  __shared__ int s[64];
  for (int v = blockIdx.x; v < 9; v += gridDim.x) {
    s[threadIdx.x] = in[neighbour(v, threadIdx.x)];
    for (int d = 32; d; d >>= 1) {
      __syncthreads();
      if (threadIdx.x < d) s[threadIdx.x] = max(s[threadIdx.x], s[threadIdx.x + d]);
    }
    if (threadIdx.x == 0) out[v] = s[0];
    __syncthreads();
  }
}
//@ grid=3 block=64
K block_per_vertex_wrong(const int* in, int* out) {    // the next vertex overwrites what is being added up
  __shared__ int s[64];
  for (int v = blockIdx.x; v < 9; v += gridDim.x) {
    s[threadIdx.x] = in[neighbour(v, threadIdx.x)];                                   //~ race
    __syncthreads();
    if (threadIdx.x == 0) {
      int best = 0;
      for (int i = 0; i < 64; i++) best = max(best, s[i]);                            //~ race
      out[v] = best;
    }
  }
}
//@ grid=3 block=64
K block_best_right(const int* in, int* out) {
  __shared__ int best;
  for (int v = blockIdx.x; v < 9; v += gridDim.x) {
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    atomicMax_block(&best, in[neighbour(v, threadIdx.x)]);
    __syncthreads();
    if (threadIdx.x == 0) out[v] = best;
  }
}
//@ grid=3 block=64
K block_best_wrong(const int* in, int* out) {          // another thread writes it down than the one that begins anew
  __shared__ int best;
  for (int v = blockIdx.x; v < 9; v += gridDim.x) {
    if (threadIdx.x == 0) best = 0;                                                   //~ race
    __syncthreads();
    atomicMax_block(&best, in[neighbour(v, threadIdx.x)]);
    __syncthreads();
    if (threadIdx.x == 40) out[v] = best;                                             //~ race
  }
}
//@ grid=3 block=96
K two_stage_right(const int* in, int* out) {
  __shared__ int part[3];
  int x = in[neighbour(threadIdx.x, blockIdx.x)];
  for (int d = 16; d; d >>= 1) x += __shfl_down_sync(ALL, x, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = part[0] + part[1] + part[2];
}
//@ grid=3 block=96
K two_stage_wrong(const int* in, int* out) {
  __shared__ int part[3];
  int x = in[neighbour(threadIdx.x, blockIdx.x)];
  for (int d = 16; d; d >>= 1) x += __shfl_down_sync(ALL, x, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;                              //~ race
  __syncwarp();
  if (threadIdx.x == 0) out[blockIdx.x] = part[0] + part[1] + part[2];                //~ race
}
__device__ int find(volatile int* parent, int v) {
  int next, here = parent[v];
  while (here > (next = parent[here])) { parent[v] = next; v = here; here = next; }
  return here;
}
//@ grid=2 block=32
K components_right(int* parent, int n) {
  VERTEX;
  parent += 256;
  EACH_NEIGHBOUR {
    int a = v, b = neighbour(v, j);
    while (a != b) {
      if (a < b) { int t = a; a = b; b = t; }
      int old = atomicCAS(&parent[a], a, b);
      if (old == a) break;
      a = old & 63;
    }
  }
}
//@ grid=2 block=32
K components_wrong(int* parent, int n) {
  VERTEX;
  EACH_NEIGHBOUR {
    int w = neighbour(v, j), a = parent[v & 63], b = parent[w];                       //~ race
    if (a < b) parent[b] = a; else if (b < a) parent[a] = b;                          //~ race
  }
}
//@ grid=2 block=32 zero
K compress_right(int* parent, int* out) { VERTEX; out[v] = find(parent, v); }
//@ grid=2 block=32
K visit_wrong(int* seen, int* order) {                 // looks, then marks: two threads may take a vertex
  VERTEX;
  int w = neighbour(v, 2) & 15;
  if (seen[w] < 9) { seen[w] = 9 + v; order[v] = w; }                                 //~ race
}
//@ grid=2 block=32
K visit_right(int* seen, int* order) {
  VERTEX;
  int w = neighbour(v, 2) & 15;
  if (atomicMax(&seen[w], 9) < 9) order[w] = v;
}
//@ grid=2 block=32
K level_right(const int* in, int* level) {             // all that reach a vertex write the same
  VERTEX;
  if (in[v] == 3) EACH_NEIGHBOUR level[64 + neighbour(v, j)] = 4;
}
//@ grid=2 block=32
K level_reads_wrong(const int* in, int* level) {       // the same value, but others look at it meanwhile
  VERTEX;
  if (level[v] > 2) EACH_NEIGHBOUR level[neighbour(v, j)] = 4;                        //~ race
}
//@ grid=2 block=32
K again_right(const int* in, int* again) { VERTEX; if (in[v] == 5) *again = 1; }
//@ grid=2 block=32
K again_wrong(const int* in, int* again) { VERTEX; if (in[v] == 5) *again = v; }                         //~ race
//@ grid=2 block=32
K swap_wrong(int* data, int n) {                       // pairs that overlap
  VERTEX;
  if (data[v] > data[v + 1]) { int t = data[v]; data[v] = data[v + 1]; data[v + 1] = t; }   //~ race
}
//@ grid=2 block=32
K swap_right(int* data, int n) {
  int v = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (data[v] > data[v + 1]) { int t = data[v]; data[v] = data[v + 1]; data[v + 1] = t; }
}
//@ grid=2 block=32
K scatter_wrong(const int* in, int* out) { VERTEX; out[in[v]] = v; }                                     //~ race
//@ grid=2 block=32
K scatter_right(const int* in, int* out) { VERTEX; out[(v * 11) & 63] = in[v]; }
//@ grid=2 block=32
K reverse_wrong(int* data, int n) { VERTEX; data[v] = data[63 - v]; }                                    //~ race
//@ grid=2 block=32
K reverse_right(int* data, int n) { VERTEX; if (v < 32) { int t = data[v]; data[v] = data[63 - v]; data[63 - v] = t; } }
//@ grid=2 block=32
K vector_edge_wrong(int4* data, int n) {               // one element of a vector is somebody else's
  VERTEX;
  data[v] = make_int4(v, v, v, v);                                                    //~ race
  ((int*)data)[4 * v + 5] = v;                                                        //~ race
}
//@ grid=2 block=32
K vector_edge_right(int4* data, int n) {
  VERTEX;
  data[v] = make_int4(v, v, v, v);
  ((int*)data)[4 * v + 3] = v;
}
