// Vertices in chunks, their edges in reverse or until one matches, lists and buckets.
#define K extern "C" __global__ void
#define ALL 0xffffffffu

// CSR of 32 vertices with 2..4 neighbours, made from the arguments' 0..7 pattern.
__device__ __forceinline__ int first(int v) { return v * 3; }
__device__ __forceinline__ int last(int v) { return v * 3 + (v % 4); }
__device__ __forceinline__ int dst(int e) { return (e * 11 + 5) % 32; }

// Chunked schedule: each thread has consecutive vertices.
//@ grid=2 block=32
K chunked_max_right(int* val, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, per = 2;
  for (int v = t * per; v < min((t + 1) * per, 64); v++)
    for (int e = first(v); e < last(v); e++) atomicMax(&val[dst(e)], v);
}
//@ grid=2 block=32
K chunked_max_wrong(int* val, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, per = 2;
  for (int v = t * per; v < min((t + 1) * per, 64); v++)
    for (int e = first(v); e < last(v); e++)
      val[dst(e)] = max(val[dst(e)], v);   //~ race
}
// Chunks overlap by one vertex: two threads own it.
//@ grid=2 block=32
K chunk_overlap_wrong(int* val, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, per = 4;
  for (int v = t * per; v <= (t + 1) * per; v++) val[v] += t;   //~ race
}
//@ grid=2 block=32
K chunk_apart_right(int* val, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, per = 4;
  for (int v = t * per; v < (t + 1) * per; v++) val[v] += t;
}
// Conditional vertex: one flag; another value each, so the winner matters.
//@ grid=2 block=32
K last_matching_wrong(const int* in, int* found) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (in[v] == 5) *found = v;      //~ race
}
//@ grid=2 block=32
K last_matching_right(const int* in, int* found) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (in[v] == 5) atomicMax(found, v);
}
// Break when the first matching neighbour is found.
//@ grid=2 block=32
K until_wrong(const int* in, int* mark) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  for (int e = first(v); e < last(v); e++)
    if (in[dst(e)] > 3) { mark[dst(e)]++; break; }   //~ race
}
//@ grid=2 block=32
K until_right(const int* in, int* mark) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  for (int e = first(v); e < last(v); e++)
    if (in[dst(e)] > 3) { atomicAdd(&mark[dst(e)], 1); break; }
}
// Neighbours in reverse, bound off by one at the lower end.
//@ grid=1 block=64
K backwards_bound_wrong(const int* in, int* out) {
  int v = threadIdx.x, s = 0;
  for (int e = v * 16 + 15; e >= v * 16 - 1; e--) s += in[e];      //~ fault
  out[v] = s;
}
//@ grid=1 block=64
K backwards_bound_right(const int* in, int* out) {
  int v = threadIdx.x, s = 0;
  for (int e = v * 16 + 15; e >= v * 16; e--) s += in[e];
  out[v] = s;
}
// Warp per vertex with shuffle-reduced degree; only lane 0 pushes.
//@ grid=2 block=64
K warp_push_right(const int* in, int* cnt, int* list) {
  int v = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  int s = lane < 5 ? in[v * 8 + lane] : 0;
  for (int d = 16; d; d >>= 1) s += __shfl_down_sync(ALL, s, d);
  if (lane == 0 && s > 0) { int at = atomicAdd(cnt, 1); list[at] = v; }
}
//@ grid=2 block=64
K warp_push_all_wrong(const int* in, int* cnt, int* list) {
  int v = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  int s = lane < 5 ? in[v * 8 + lane] : 0;
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(ALL, s, d);
  if (s > 0) { int at = *cnt; *cnt = at + 1; list[at] = v + lane; }  //~ race
}
// Block per vertex: block total in shared memory, then carried by one thread to a global maximum.
//@ grid=4 block=64
K block_total_right(const int* in, int* best) {
  __shared__ int tot;
  if (threadIdx.x == 0) tot = 0;
  __syncthreads();
  if (in[threadIdx.x] > 2) atomicAdd_block(&tot, 1);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(best, tot);
}
//@ grid=4 block=64
K block_total_early_wrong(const int* in, int* best) {
  __shared__ int tot;
  if (threadIdx.x == 0) tot = 0;
  __syncthreads();
  if (in[threadIdx.x] > 2) atomicAdd_block(&tot, 1);   //~ race
  if (threadIdx.x == 0) atomicMax(best, tot);          //~ race
}
//@ grid=4 block=64
K block_total_uncleared_wrong(const int* in, int* best) {
  __shared__ int tot;
  if (threadIdx.x == 0) tot = 0;                       //~ race
  if (in[threadIdx.x] > 2) atomicAdd_block(&tot, 1);   //~ race
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(best, tot);
}
// Strided persistent block-per-vertex loop; shared total reused in the next round without a barrier.
//@ grid=2 block=64
K block_rounds_wrong(const int* in, int* out) {
  __shared__ int tot;
  for (int v = blockIdx.x; v < 8; v += gridDim.x) {
    if (threadIdx.x == 0) tot = 0;          //~ race
    __syncthreads();
    atomicAdd(&tot, in[v * 64 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 33) out[v] = tot;    //~ race
  }
}
//@ grid=2 block=64
K block_rounds_right(const int* in, int* out) {
  __shared__ int tot;
  for (int v = blockIdx.x; v < 8; v += gridDim.x) {
    if (threadIdx.x == 0) tot = 0;
    __syncthreads();
    atomicAdd(&tot, in[v * 64 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 33) out[v] = tot;
    __syncthreads();
  }
}
// the same thread clears and reads: one barrier less.
//@ grid=2 block=64
K block_rounds_same_right(const int* in, int* out) {
  __shared__ int tot;
  for (int v = blockIdx.x; v < 8; v += gridDim.x) {
    if (threadIdx.x == 0) tot = 0;
    __syncthreads();
    atomicAdd(&tot, in[v * 64 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[v] = tot;
  }
}
// Path compression on a forest of parents: plain reads of what CAS writes.
//@ grid=2 block=32 zero
K halving_plain_wrong(int* par, int n) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  int p = par[v];                          //~ race
  while (true) {
    int q = par[p];
    if (q == p) break;
    par[v] = q;                            
    v = p; p = q;
  }
  atomicCAS(&par[(v + 1) % 64], 0, p + v); //~ race
}
//@ grid=2 block=32
K degrees_both_ends_wrong(int* deg, int n) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&deg[dst(e)], 1);               //~ race
  deg[dst(e + 7)] += 1;                     //~ race
}
//@ grid=2 block=32
K degrees_both_ends_right(int* deg, int n) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&deg[dst(e)], 1);
  atomicAdd(&deg[dst(e + 7)], 1);
}
// Edge-centric triangle counting into 64 bits.
//@ grid=2 block=32 zero
K tri64_right(unsigned long long* cnt, int n) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long s = 0;
  for (int i = 0; i < (e & 3); i++) s += dst(e + i) > 16;
  if (s) atomicAdd(cnt, s);
}
//@ grid=2 block=32 zero
K tri64_narrow_wrong(unsigned long long* cnt, int n) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned s = 0;
  for (int i = 0; i < (e & 3); i++) s += dst(e + i) > 16;
  if (s) { if (e & 4) atomicAdd(cnt, (unsigned long long)s); else atomicAdd((unsigned*)cnt, s); }   //~ race
}
// Worklist with two counters packed; guard missing: the list's end.
//@ grid=2 block=256 zero
K list_overflow_wrong(int* cnt, int* list) {
  for (int i = 0; i < 3; i++) { int at = atomicAdd(cnt, 1); list[at] = i; }     //~ fault
}
//@ grid=2 block=256 zero
K list_overflow_right(int* cnt, int* list) {
  for (int i = 0; i < 3; i++) { int at = atomicAdd(cnt, 1); if (at < 1024) list[at] = i; }
}
// MIS by priorities: reads the neighbours' states plainly while they are decided.
//@ grid=2 block=32 zero
K decide_plain_wrong(int* st, int n) {
  int v = blockIdx.x * blockDim.x + threadIdx.x, w = (v * 7 + 3) % 64;
  if (st[w] == 0) st[v] = 1;           //~ race
}
//@ grid=2 block=32 zero
K decide_two_arrays_right(const int* st, int* out) {
  int v = blockIdx.x * blockDim.x + threadIdx.x, w = (v * 7 + 3) % 64;
  if (st[w] == 0) out[v] = 1;
}
// byte states in a struct next to each other: separate bytes, right
struct Node { unsigned char state, colour; short degree; };
//@ grid=2 block=32
K node_fields_right(Node* g, int n) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < 32) g[v].state = 1; else g[v - 32].colour = 2;
}
// bucketed frontier (delta-stepping like): index by value
//@ grid=2 block=32 zero
K bucket_right(const int* in, int* size, int* items) {
  int v = blockIdx.x * blockDim.x + threadIdx.x, b = v % 3;
  items[b * 64 + atomicAdd(&size[b], 1)] = v;
}
//@ grid=2 block=32 zero
K bucket_wrong(const int* in, int* size, int* items) {
  int v = blockIdx.x * blockDim.x + threadIdx.x, b = v % 3;
  items[b * 16 + atomicAdd(&size[b], 1)] = v;     //~ race
}
// pull over a level-synchronous array with volatile
//@ grid=2 block=32 zero
K bfs_volatile_right(volatile int* dist, volatile int* changed) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (dist[v] == 0)
    for (int e = first(v); e < last(v); e++)
      if (dist[dst(e)] == 0) { dist[dst(e)] = 1; *changed = 1; }
}
// Topology-driven relaxation to a fixpoint: the lost update is repeated in the next round
//@ grid=2 block=32
K relax_fixpoint_right(volatile int* dist, volatile int* changed) {
  int v = blockIdx.x * blockDim.x + threadIdx.x, d = dist[v];
  for (int e = first(v); e < last(v); e++)
    if (d + 1 < dist[dst(e)]) { dist[dst(e)] = d + 1; *changed = 1; }
}
// volatile increments lose counts
// own slots in volatile memory
