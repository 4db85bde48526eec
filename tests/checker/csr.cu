// Graphs in compressed rows: traversals by vertex, warp and CTA, worklists, colours, ranks, labels.
#define K extern "C" __global__ void
#define ALL 0xffffffffu
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
// 64 vertices, three out-edges each, in CSR.
#define R8(b) (b)*24, (b)*24+3, (b)*24+6, (b)*24+9, (b)*24+12, (b)*24+15, (b)*24+18, (b)*24+21
__device__ int row[65] = { R8(0), R8(1), R8(2), R8(3), R8(4), R8(5), R8(6), R8(7), 192 };
__device__ int col[192] = {
 1,17,40, 2,33,63, 3,0,9, 4,44,12, 5,21,60, 6,7,8, 7,31,2, 8,50,11, 9,10,58, 10,3,35, 11,12,62, 12,14,1, 13,37,20, 14,15,55, 15,6,43, 16,18,29,
 17,0,34, 18,25,56, 19,22,61, 20,41,5, 21,23,48, 22,24,9, 23,59,30, 24,26,4, 25,13,36, 26,28,47, 27,16,53, 28,32,39, 29,45,19, 30,31,57, 31,38,27, 32,6,49,
 33,35,63, 34,1,42, 35,36,10, 36,51,8, 37,39,25, 38,40,54, 39,46,2, 40,43,28, 41,44,52, 42,17,60, 43,45,33, 44,29,62, 45,47,7, 46,48,38, 47,50,21, 48,55,0,
 49,51,61, 50,34,14, 51,53,59, 52,22,41, 53,54,37, 54,56,3, 55,57,46, 56,58,30, 57,15,49, 58,60,24, 59,42,20, 60,61,52, 61,32,63, 62,26,11, 63,18,5, 0,16,64-1 };
__device__ int head, tail, items[4096], level[64], parent[64], claimed[64], lock_, value;

//@ grid=2 block=32 zero
K bfs_topology_plain_right(int* dist, int* changed, int depth) { // one level of one kernel: reads dist == depth, writes depth + 1
  int v = TID; if (dist[v] != depth - 4) return;
  for (int e = row[v]; e < row[v + 1]; e++) atomicMax(&changed[col[e]], 1);
}
//@ grid=2 block=32 zero
K bfs_topology_same_value_read_wrong(int* dist, int* changed) {
  int v = TID; if (v == 0) dist[0] = 1;
  if (dist[v] == 1)    //~ race
    for (int e = row[v]; e < row[v + 1]; e++) if (dist[col[e]] == 0) dist[col[e]] = 2; }
//@ grid=2 block=32 zero
K sssp_relax_cas_right(int* dist, int* changed) { int v = TID; int d = atomicAdd(&dist[v], 0);
  for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e], nd = d + e % 5 + 1, old = atomicAdd(&dist[u], 0);
    while (old > nd || old == 0) { int seen = atomicCAS(&dist[u], old, nd); if (seen == old) { *(volatile int*)changed = 1; break; } old = seen; } } }
//@ grid=2 block=32 zero
K sssp_relax_cas_plain_first_wrong(int* dist, int* changed) { int v = TID; int d = dist[v]; //~ race
  for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e], nd = d + e % 5 + 1, old = atomicAdd(&dist[u], 0);
    while (old > nd || old == 0) { int seen = atomicCAS(&dist[u], old, nd); if (seen == old) { *changed = 1; break; } old = seen; } } }
//@ grid=4 block=64 zero
K persistent_right(int* done) { // all take tickets of vertices; each vertex by one thread
  for (int v; (v = atomicAdd(&head, 1)) < 64;) { int s = 0; for (int e = row[v]; e < row[v + 1]; e++) s += col[e]; done[v] = s; } }
//@ grid=4 block=64 zero
K persistent_ticket_plain_wrong(int* done) {
  for (int v; (v = head++) < 64;) { //~ race
    int s = 0; for (int e = row[v]; e < row[v + 1]; e++) s += col[e]; done[v] = s; } }
//@ grid=4 block=64 zero
K persistent_push_right(int* out) { // a worklist that grows; items are published one by one by a flag word
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { for (int i = 0; i < 16; i++) { items[i * 2] = i * 3; __threadfence(); atomicExch(&items[i * 2 + 1], 1); } }
  else { for (int i = blockIdx.x - 1; i < 16; i += 3) { while (!atomicAdd(&items[i * 2 + 1], 0)) {} __threadfence(); out[i] = items[i * 2]; } } }
//@ grid=4 block=64 zero
K persistent_push_fence_behind_wrong(int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { for (int i = 0; i < 16; i++) { items[i * 2] = i * 3;   //~ race
      atomicExch(&items[i * 2 + 1], 1); __threadfence(); } }
  else { for (int i = blockIdx.x - 1; i < 16; i += 3) { while (!atomicAdd(&items[i * 2 + 1], 0)) {} __threadfence(); out[i] = items[i * 2]; } } }
//@ grid=4 block=64 zero
K persistent_pop_no_fence_wrong(int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { for (int i = 0; i < 16; i++) { items[i * 2] = i * 3; __threadfence(); atomicExch(&items[i * 2 + 1], 1); } }
  else { for (int i = blockIdx.x - 1; i < 16; i += 3) { while (!atomicAdd(&items[i * 2 + 1], 0)) {}
      out[i] = items[i * 2]; } } }   //~ race
//@ grid=2 block=32 zero
K bfs_claim_right(int* next, int* n) { int v = TID; if (v > 3) return;
  for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; if (atomicExch(&claimed[u], 1) == 0) { parent[u] = v; next[atomicAdd(n, 1)] = u; } } }
//@ grid=2 block=32 zero
K bfs_claim_test_and_set_apart_wrong(int* next, int* n) { int v = TID;
  for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; if (claimed[u] == 0) { claimed[u] = 1;   //~ race
      parent[u] = v; next[atomicAdd(n, 1)] = u; } } }
//@ block=64 zero
K bfs_claim_flag_volatile_parent_wrong(int* next, int* n) { int v = TID;
  for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; if (*(volatile int*)&claimed[u] == 0) { *(volatile int*)&claimed[u] = 1; parent[u] = v;   //~ race
      next[atomicAdd(n, 1)] = u; } } }
//@ grid=2 block=32 zero
K warp_vertex_degree_right(int* out) { int lane = threadIdx.x % 32; for (int v = TID / 32; v < 64; v += 2) { int s = 0;
    for (int e = row[v] + lane; e < row[v + 1]; e += 32) s += col[e];
    for (int o = 16; o; o /= 2) s += __shfl_down_sync(ALL, s, o);
    if (lane == 0) out[v] = s; } }
//@ grid=2 block=32 zero
K warp_vertex_all_lanes_store_wrong(int* out) { int lane = threadIdx.x % 32; for (int v = TID / 32; v < 64; v += 2) { int s = 0;
    for (int e = row[v] + lane; e < row[v + 1]; e += 32) s += col[e];
    for (int o = 16; o; o /= 2) s += __shfl_down_sync(ALL, s, o);
    out[v] = s; } }    //~ race
//@ grid=2 block=32 zero
K warp_vertex_shfl_in_loop_wrong(int* out) { int lane = threadIdx.x % 32; for (int v = TID / 32; v < 64; v += 2) { int s = 0;
    for (int e = row[v] + lane; e < row[v + 1]; e += 32) { s += col[e]; s += __shfl_xor_sync(ALL, s, 1); }   //~ synchronization
    if (lane == 0) out[v] = s; } }
//@ grid=3 block=64 zero
K block_vertex_last_step_no_barrier_wrong(int* out) { __shared__ int s[64]; int t = threadIdx.x;
  for (int v = blockIdx.x; v < 64; v += 3) { int e = row[v] + t; s[t] = e < row[v + 1] ? col[e] : 0; __syncthreads();
    for (int o = 32; o > 1; o /= 2) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
    if (t < 1) s[t] += s[t + 1];
    if (t == 33) out[v] = s[0]; __syncthreads(); } }   //~ race
//@ grid=3 block=64 zero
K block_vertex_right(int* out) { __shared__ int s[64]; int t = threadIdx.x;
  for (int v = blockIdx.x; v < 64; v += 3) { int e = row[v] + t; s[t] = e < row[v + 1] ? col[e] : 0; __syncthreads();
    for (int o = 32; o > 0; o /= 2) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
    if (t == 33) out[v] = s[0]; __syncthreads(); } }
//@ grid=3 block=64 zero
K block_vertex_barrier_by_degree_wrong(int* out) { __shared__ int s[64]; int t = threadIdx.x;
  for (int v = blockIdx.x; v < 64; v += 3) { for (int e = row[v] + t; e < row[v + 1]; e += 64) { s[t] = col[e]; __syncthreads(); }   //~ synchronization
    if (t == 0) out[v] = s[0]; } }
//@ grid=2 block=32 zero
K color_volatile_right(int* color) { int v = TID; volatile int* c = color; for (int r = 0; r < 4; r++) { int used = 0; bool top = true;
    for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; if (c[u]) used |= 1 << c[u]; else if (u > v) top = false; }
    if (top && !c[v]) c[v] = __ffs(~used & ~1) - 1; } }
//@ grid=2 block=32 zero
K color_read_plain_wrong(int* color) { int v = TID; volatile int* c = color; for (int r = 0; r < 4; r++) { int used = 0; bool top = true;
    for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; int x = color[u]; if (x) used |= 1 << x; else if (u > v) top = false; }   //~ race
    if (top && !c[v]) c[v] = __ffs(~used & ~1) - 1; } }
//@ grid=2 block=32 zero
K color_block_scope_wrong(int* color) { int v = TID; 
    for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; atomicMax_block(&color[u], v + 1); } }   //~ race
//@ grid=1 block=64 zero
K color_block_scope_one_right(int* color) { int v = TID; for (int e = row[v]; e < row[v + 1]; e++) atomicMax_block(&color[col[e]], v + 1); }
//@ grid=2 block=32 zero
K triangles_right(int* n) { int v = TID, c = 0; for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; for (int f = row[u]; f < row[u + 1]; f++) for (int g = row[v]; g < row[v + 1]; g++) c += col[f] == col[g]; }
  c = __reduce_add_sync(ALL, c); if (threadIdx.x == 0) atomicAdd(n, c); }
//@ grid=2 block=32 zero
K edge_past_the_end_wrong(const int* w, int* out) { int v = TID; int s = 0; for (int e = row[v]; e <= row[v + 1]; e++) s += col[e]; //~ fault
  out[v] = s; }
//@ grid=2 block=33 zero
K vertex_past_the_end_wrong(int* out) { int v = TID; if (v <= 64) { int s = 0; for (int e = row[v]; e < row[v + 1]; e++) s += col[e];  //~ fault
    out[v] = s; } }
//@ grid=2 block=64 zero
K pull_pagerank_right(const float* in, float* out) { int v = TID; if (v >= 64) return; float s = 0; for (int e = row[v]; e < row[v + 1]; e++) s += in[col[e]] / 3; out[v] = .15f + .85f * s; }
//@ grid=2 block=32 zero
K pull_pagerank_in_place_wrong(float* in) { int v = TID; float s = 0; for (int e = row[v]; e < row[v + 1]; e++) s += in[col[e]] / 3;   //~ race
  in[v] = .15f + .85f * s; }
//@ grid=2 block=32 zero
K push_residual_right(float* rank, float* res) { int v = TID; float r = atomicExch(&res[v], 0.f); rank[v] += r; for (int e = row[v]; e < row[v + 1]; e++) atomicAdd(&res[col[e]], r / 3); }
//@ grid=2 block=32 zero
K push_residual_take_plain_wrong(float* rank, float* res) { int v = TID; float r = res[v]; res[v] = 0; rank[v] += r;   //~ race
  for (int e = row[v]; e < row[v + 1]; e++) atomicAdd(&res[col[e]], r / 3); }
//@ grid=2 block=32 zero
K hook_jump_right(int* comp) { int v = TID; comp += 0; volatile int* c = comp; c[v] = v;
  for (int r = 0; r < 6; r++) { for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; int a = c[v], b = c[u]; if (a < b) atomicMin(&comp[u], a); else if (b < a) atomicMin(&comp[v], b); } } }
//@ grid=2 block=32 zero
K mis_right(int* st) { int v = TID; volatile int* s = st; for (;;) { if (s[v]) break; bool best = true, out = false; for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; if (u == v) continue; if (s[u] == 2) out = true; if (s[u] == 0 && u > v) best = false; }
    if (out) s[v] = 1; else if (best) s[v] = 2; } }
//@ grid=2 block=32 zero
K mis_plain_write_wrong(int* st) { int v = TID; volatile int* s = st; for (;;) { if (s[v]) break; bool best = true, out = false; for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; if (u == v) continue; if (s[u] == 2) out = true; if (s[u] == 0 && u > v) best = false; }   //~ race
    if (out) st[v] = 1; else if (best) st[v] = 2; } }
//@ grid=2 block=32 zero
K best_edge_packed_right(unsigned long long* best) { int v = TID; for (int e = row[v]; e < row[v + 1]; e++) { unsigned long long w = (unsigned long long)(e * 7 % 31) << 32 | e; atomicMax(&best[col[e]], w); atomicMax(&best[v], w); } }
//@ grid=2 block=32 zero
K best_edge_read_half_wrong(unsigned long long* best, int* out) { int v = TID; for (int e = row[v]; e < row[v + 1]; e++) { unsigned long long w = (unsigned long long)(e * 7 % 31) << 32 | e; atomicMax(&best[col[e]], w); }
   out[v] = ((volatile int*)best)[2 * v]; }   //~ race
//@ grid=2 block=32 zero
K ldg_of_written_wrong(int* d) { int v = TID; int s = __ldg(&d[col[3 * v]]); d[v] = s + v; }    //~ race
//@ grid=1 block=64 zero
K pointer_jump_shared_right(int* out) { __shared__ int p[64]; int t = threadIdx.x; p[t] = t ? t - 1 : 0; __syncthreads(); for (int r = 0; r < 6; r++) { int x = p[p[t]]; __syncthreads(); p[t] = x; __syncthreads(); } out[t] = p[t]; }
//@ grid=1 block=64 zero
K pointer_jump_shared_one_barrier_wrong(int* out) { __shared__ int p[64]; int t = threadIdx.x; p[t] = t ? t - 1 : 0; __syncthreads(); for (int r = 0; r < 6; r++) { int x = p[p[t]];   //~ race
   p[t] = x; __syncthreads(); } out[t] = p[t]; }
//@ grid=2 block=64 zero
K frontier_flags_right(const unsigned char* cur, unsigned char* next) { int v = TID; if (v >= 64) return; if (cur[v] == 0) for (int e = row[v]; e < row[v + 1]; e++) next[col[e]] = 1; }
//@ grid=2 block=32 zero
K frontier_flags_same_array_wrong(unsigned char* cur) { int v = TID; if (cur[v] == 0) for (int e = row[v]; e < row[v + 1]; e++) cur[col[e]] = 1; }   //~ race
//@ grid=2 block=32 zero
K frontier_bits_or_right(unsigned* cur, unsigned* next) { int v = TID; for (int e = row[v]; e < row[v + 1]; e++) atomicOr(&next[col[e] / 32], 1u << col[e] % 32); }
//@ grid=2 block=32 zero
K frontier_bits_or_plain_wrong(unsigned* cur, unsigned* next) { int v = TID; for (int e = row[v]; e < row[v + 1]; e++) next[col[e] / 32] |= 1u << col[e] % 32; }   //~ race
