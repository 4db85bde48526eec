// Kernels on graphs whose edges lie in memory: per vertex a row of targets, with one mistake each.
#include <cooperative_groups.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
#define SIZE (gridDim.x * blockDim.x)
using Device = cuda::atomic_ref<int, cuda::thread_scope_device>;
using Byte = cuda::atomic_ref<unsigned char, cuda::thread_scope_device>;
using Float = cuda::atomic_ref<float, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;
// Vertex v has the edges from first(v) to first(v + 1) of 128 vertices in a ring; `in` holds 0 to 7 in turn.
__device__ __forceinline__ int degree(int v) { return 1 + (v & 3); }
__device__ __forceinline__ int target(const int* in, int v, int j) { return (v + 1 + 5 * j + in[v]) & 127; }

// A pull writes the bitmap of the next frontier: a word has a bit of each lane.
K pull_bitmap_wrong(const int* in, const unsigned* now, unsigned* next) {
  int v = TID;
  for (int j = 0; j < degree(v); j++) {
    int u = target(in, v, j);
    if (now[u / 32] >> (u & 31) & 1) { next[v / 32] |= 1u << (v & 31); break; }                              //~ race
  }
}
K pull_bitmap_right(const int* in, const unsigned* now, unsigned* next) {
  int v = TID; bool reached = false;
  for (int j = 0; j < degree(v) && !reached; j++) {
    int u = target(in, v, j);
    reached = now[u / 32] >> (u & 31) & 1;
  }
  unsigned word = __ballot_sync(~0u, reached);
  if (v % 32 == 0) next[v / 32] = word;
}
// The parent is written by whoever reaches a vertex; only the winner of the level may.
//@ zero
K parent_of_all_wrong(const int* in, int* level, int* parent) {
  int v = TID;
  for (int j = 0; j < degree(v); j++) {
    int u = target(in, v, j);
    atomicCAS(&level[u], 0, 1);
    parent[u] = v;                                                                                           //~ race
  }
}
//@ zero
K parent_of_winner_right(const int* in, int* level, int* parent) {
  int v = TID;
  for (int j = 0; j < degree(v); j++) {
    int u = target(in, v, j);
    if (atomicCAS(&level[u], 0, 1) == 0) parent[u] = v;
  }
}
// Levels are pulled in place: a vertex may see what another one has just written.
//@ zero grid=2 block=64
K pull_levels_wrong(const int* in, int* level) {
  int v = TID;
  if (v == 0) { level[0] = 1; return; }                                                                      //~ race
  for (int j = 0; j < degree(v); j++)
    if (level[target(in, v, j)] == 1) { level[v] = 2; break; }                                               //~ race
}
//@ zero grid=2 block=64 coop
K pull_levels_right(const int* in, int* level) {
  int v = TID; auto grid = cg::this_grid();
  if (v == 0) level[0] = 1;
  grid.sync();
  bool reached = false;
  for (int j = 0; j < degree(v); j++) reached |= level[target(in, v, j)] == 1;
  grid.sync();
  if (reached && v) level[v] = 2;
}
// Pointer jumping in place, by plain accesses and by relaxed ones.
K shortcut_plain_wrong(const int* in, int* parent) {
  int v = TID;
  for (int i = 0; i < 3; i++) parent[v] = parent[parent[v] & 127];                                           //~ race
}
K shortcut_relaxed_right(const int* in, int* parent) {
  int v = TID;
  for (int i = 0; i < 3; i++) {
    int p = Device(parent[v]).load(relaxed);
    Device(parent[v]).store(Device(parent[p & 127]).load(relaxed), relaxed);
  }
}
// Half of it is relaxed: the grandparent is read plainly.
K shortcut_half_wrong(const int* in, int* parent) {
  int v = TID;
  int p = Device(parent[v]).load(relaxed);
  int g = parent[p & 127];                                                                                   //~ race
  Device(parent[v]).store(g + 1, relaxed);                                                                   //~ race
}
// Pointer jumping with a buffer for each round, within a block.
//@ grid=2
K shortcut_rounds_wrong(const int* in, int* parent, int* out) {
  __shared__ int p[2][128]; int t = threadIdx.x;
  p[0][t] = in[t];
  __syncthreads();
  for (int i = 0; i < 4; i++) {
    p[~i & 1][t] = p[i & 1][p[i & 1][t] & 127];                                                              //~ race
  }
  out[TID] = p[0][t];
}
//@ grid=2
K shortcut_rounds_right(const int* in, int* parent, int* out) {
  __shared__ int p[2][128]; int t = threadIdx.x;
  p[0][t] = in[t];
  __syncthreads();
  for (int i = 0; i < 4; i++) {
    p[~i & 1][t] = p[i & 1][p[i & 1][t] & 127];
    __syncthreads();
  }
  out[TID] = p[0][t];
}
// Hooks: the root with the greater number is hooked to the other one. Roots are read plainly while they change.
K hook_cas_plain_wrong(const int* in, int* parent) {
  int v = TID;
  for (int j = 0; j < degree(v); j++) {
    int a = v, b = target(in, v, j);
    while (parent[a] < a) a = parent[a];                                                                     //~ race
    while (parent[b] < b) b = parent[b];                                                                     //~ race
    if (a != b) atomicMin(&parent[max(a, b)], min(a, b));                                                    //~ race
  }
}
K hook_cas_right(const int* in, int* parent) {
  int v = TID;
  for (int j = 0; j < degree(v); j++) {
    int a = v, b = target(in, v, j);
    auto root = [&](int x) { for (int p; (p = Device(parent[x]).load(relaxed)) < x; x = p) {} return x; };
    a = root(a), b = root(b);
    while (a != b) {
      int high = max(a, b), low = min(a, b);
      int was = atomicCAS(&parent[high], high, low);
      if (was == high || was == low) break;
      a = root(was & 127), b = root(low);
      if (was > high) break;
    }
  }
}
// PageRank: the change of all ranks is summed by atomics, and read by the first thread behind a barrier of its block only.
//@ grid=2 block=64
K rank_change_wrong(const int* in, float* rank, float* change) {
  int v = TID; float sum = 0;
  for (int j = 0; j < degree(v); j++) sum += rank[target(in, v, j)];
  atomicAdd(change, sum);                                                                                    //~ race
  __syncthreads();
  if (v == 0) rank[512] = change[0];                                                                         //~ race
}
//@ grid=2 block=64 zero
K rank_change_right(const int* in, float* rank, float* change, int* done) {
  int v = TID; float sum = 0;
  for (int j = 0; j < degree(v); j++) sum += rank[target(in, v, j)];
  atomicAdd(change, sum);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(done, 1) == 1) { __threadfence(); rank[512] = change[0]; }
}
// Ranks are pushed to the next buffer by atomics; its reset must not be by the threads of the same pass.
//@ grid=2 block=64
K rank_reset_wrong(const int* in, float* now, float* next) {
  int v = TID;
  next[v] = 0.15f;                                                                                           //~ race
  for (int j = 0; j < degree(v); j++) atomicAdd(&next[target(in, v, j)], now[v] / degree(v));                //~ race
}
//@ grid=2 block=64
K rank_reset_right(const int* in, float* now, float* next, float* spare) {
  int v = TID;
  spare[v] = 0.15f;
  for (int j = 0; j < degree(v); j++) atomicAdd(&next[target(in, v, j)], now[v] / degree(v));
}
// The independent set: bytes tell what became of a vertex. Neighbours write the same byte, but others read it.
//@ zero grid=2 block=64
K mis_bytes_plain_wrong(const int* in, unsigned char* state) {
  int v = TID;
  if (state[v] == 0) {                                                                                       //~ race
    bool best = true;
    for (int j = 0; j < degree(v); j++) { int u = target(in, v, j); if (state[u] == 0 && u * 37 % 64 > v * 37 % 64) best = false; }
    if (best) { state[v] = 1; for (int j = 0; j < degree(v); j++) state[target(in, v, j)] = 2; }             //~ race
  }
}
//@ zero grid=2 block=64
K mis_bytes_right(const int* in, unsigned char* state) {
  int v = TID;
  if (Byte(state[v]).load(relaxed) == 0) {
    bool best = true;
    for (int j = 0; j < degree(v); j++) {
      int u = target(in, v, j);
      if (Byte(state[u]).load(relaxed) == 0 && u * 37 % 64 > v * 37 % 64) best = false;
    }
    if (best) {
      Byte(state[v]).store(1, relaxed);
      for (int j = 0; j < degree(v); j++) Byte(state[target(in, v, j)]).store(2, relaxed);
    }
  }
}
// Colours are chosen from those of the neighbours; conflicts are looked for in a second phase.
//@ coop grid=2 block=64
K colour_phases_wrong(const int* in, int* colour, int* conflict) {
  int v = TID; auto grid = cg::this_grid();
  unsigned taken = 0;
  for (int j = 0; j < degree(v); j++) taken |= 1u << (colour[target(in, v, j)] & 31);                        //~ race
  colour[v] = __ffs(~taken) - 1;                                                                             //~ race
  grid.sync();
  for (int j = 0; j < degree(v); j++) if (colour[target(in, v, j)] == colour[v]) conflict[v] = 1;
}
//@ coop grid=2 block=64
K colour_phases_right(const int* in, int* colour, int* conflict) {
  int v = TID; auto grid = cg::this_grid();
  unsigned taken = 0;
  for (int j = 0; j < degree(v); j++) taken |= 1u << (colour[target(in, v, j)] & 31);
  grid.sync();
  colour[v] = __ffs(~taken) - 1;
  grid.sync();
  for (int j = 0; j < degree(v); j++) if (colour[target(in, v, j)] == colour[v]) conflict[v] = 1;
}
// Triangles are counted with a hash table of the neighbours in shared memory, of one vertex after the other.
K triangle_table_wrong(const int* in, int* count) {
  __shared__ int table[64]; int t = threadIdx.x, found = 0;
  for (int v = 0; v < 4; v++) {
    if (t < 64) table[t] = -1;                                                                               //~ race
    __syncthreads();
    int u = target(in, t + v, 0);
    for (int i = u & 63; atomicCAS(&table[i], -1, u) != -1 && i < u + 8; ) i = (i + 1) & 63, u--;
    __syncthreads();
    found += table[(u * 3 + v) & 63] == u;                                                                   //~ race
  }
  atomicAdd(count, found);
}
K triangle_table_right(const int* in, int* count) {
  __shared__ int table[64]; int t = threadIdx.x, found = 0;
  for (int v = 0; v < 4; v++) {
    if (t < 64) table[t] = -1;
    __syncthreads();
    int u = target(in, t + v, 0);
    for (int i = u & 63; atomicCAS(&table[i], -1, u) != -1 && i < u + 8; ) i = (i + 1) & 63, u--;
    __syncthreads();
    found += table[(u * 3 + v) & 63] == u;
    __syncthreads();
  }
  atomicAdd(count, found);
}
// The shortest distance decides by an atomic; the predecessor follows plainly, and two may improve one vertex.
//@ grid=2 block=64
K predecessor_wrong(const int* in, int* distance, int* predecessor) {
  int v = TID;
  for (int j = 0; j < degree(v); j++) {
    int u = target(in, v, j);
    if (atomicMin(&distance[u], -v) > -v) predecessor[u] = v;                                                //~ race
  }
}
//@ grid=2 block=64
K predecessor_right(const int* in, unsigned long long* best) {
  int v = TID;
  for (int j = 0; j < degree(v); j++) atomicMin(&best[target(in, v, j)], (unsigned long long)(200 - v) << 32 | v);
}
// A worklist of a whole pass, in place of two: entries are appended to the list that is walked.
//@ grid=2 block=64 zero
K list_in_place_wrong(const int* in, int* list, int* tail) {
  int v = TID;
  list[v] = v;
  for (int i = v; i < 256; i += SIZE) {
    int u = list[i];                                                                                         //~ race
    if (u & 1) list[128 + atomicAdd(tail, 1)] = u + 1;                                                       //~ race
  }
}
//@ grid=2 block=64 zero coop
K list_in_turns_right(const int* in, int* list, int* tail) {
  int v = TID; auto grid = cg::this_grid();
  list[v] = v;
  int from = 0, to = 128;
  for (int turn = 0; turn < 3; turn++) {
    grid.sync();
    for (int i = from + v; i < to; i += SIZE) {
      int u = list[i];
      if (u & 1) list[128 + atomicAdd(tail, 1)] = u + turn;
    }
    grid.sync();
    from = to; to = 128 + tail[0];
  }
}
// The number of entries is read for the next turn while slower blocks may still append for this one.
//@ grid=2 block=64 zero coop
K list_in_turns_wrong(const int* in, int* list, int* tail) {
  int v = TID; auto grid = cg::this_grid();
  list[v] = v;
  int from = 0, to = 128;
  for (int turn = 0; turn < 3; turn++) {
    grid.sync();
    for (int i = from + v; i < to; i += SIZE) {
      int u = list[i];
      if (u & 1) list[128 + atomicAdd(tail, 1)] = u + turn;                                                  //~ race
    }
    from = to; to = 128 + tail[0];                                                                           //~ race
  }
}
// Dependencies flow from one level to the one above: a level's sums are complete only behind a grid barrier.
//@ grid=2 block=64 coop
K dependencies_wrong(const int* in, const int* level, float* delta) {
  int v = TID;
  for (int d = 7; d > 0; d--) {
    if (level[v] == d)
      for (int j = 0; j < degree(v); j++) {
        int u = target(in, v, j);
        if (level[u] == d - 1) atomicAdd(&delta[u], 1 + delta[v]);                                           //~ race
      }
    __syncthreads();
  }
}
//@ grid=2 block=64 coop
K dependencies_right(const int* in, const int* level, float* delta) {
  int v = TID; auto grid = cg::this_grid();
  for (int d = 7; d > 0; d--) {
    if (level[v] == d)
      for (int j = 0; j < degree(v); j++) {
        int u = target(in, v, j);
        if (level[u] == d - 1) atomicAdd(&delta[u], 1 + delta[v]);
      }
    grid.sync();
  }
}
// Proposals of a matching are answered: the answer is read before the other block may have proposed.
//@ grid=2 block=64
K proposals_wrong(const int* in, int* proposal, int* match) {
  int v = TID, u = target(in, v, 0);
  proposal[v] = u;                                                                                           //~ race
  __threadfence();
  __syncthreads();
  if (proposal[u] == v) match[v] = u;                                                                        //~ race
}
//@ grid=2 block=64 coop
K proposals_right(const int* in, int* proposal, int* match) {
  int v = TID, u = target(in, v, 0);
  proposal[v] = u;
  cg::this_grid().sync();
  if (proposal[u] == v) match[v] = u;
}
// Weights of communities move by atomics, and are read plainly or by relaxed loads to decide.
//@ grid=2 block=64
K communities_wrong(const int* in, float* weight, int* community) {
  int v = TID, from = v & 7, to = in[v] ^ 1;
  if (weight[to] > weight[from]) {                                                                           //~ race
    atomicAdd(&weight[to], 1.0f);                                                                            //~ race
    atomicAdd(&weight[from], -1.0f);
    community[v] = to;
  }
}
//@ grid=2 block=64
K communities_right(const int* in, float* weight, int* community) {
  int v = TID, from = v & 7, to = in[v] + 8;
  if (Float(weight[to]).load(relaxed) >= Float(weight[from]).load(relaxed)) {
    atomicAdd(&weight[to], 1.0f);
    atomicAdd(&weight[from], -1.0f);
    community[v] = to;
  }
}
// One warp per vertex sums in shared memory; the next vertex of the warp reuses the words.
K warp_vertices_wrong(const int* in, int* out) {
  __shared__ int part[4][32]; int w = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int v = w; v < 16; v += 4) {
    part[w][lane] = in[v * 32 + lane];                                                                       //~ race
    __syncwarp();
    int sum = 0;
    for (int i = lane & 7; i < 32; i += 8) sum += part[w][i];                                                //~ race
    if (lane < 8) out[v * 8 + lane] = sum;
  }
}
K warp_vertices_right(const int* in, int* out) {
  __shared__ int part[4][32]; int w = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int v = w; v < 16; v += 4) {
    part[w][lane] = in[v * 32 + lane];
    __syncwarp();
    int sum = 0;
    for (int i = lane & 7; i < 32; i += 8) sum += part[w][i];
    __syncwarp();
    if (lane < 8) out[v * 8 + lane] = sum;
  }
}
// A row ends at first[v + 1]; nobody has written where the last one ends.
//@ uninit=2
K row_end_wrong(const int* in, int* out, int* first) {
  int v = TID;
  if (v < 128) first[v] = 3 * v;
  __syncthreads();
  out[v] = first[v + 1] - first[v];                                                                          //~ uninitialized
}
K row_end_right(const int* in, int* out, int* first) {
  int v = TID;
  first[v] = 3 * v;
  if (v == 0) first[128] = 384;
  __syncthreads();
  out[v] = first[v + 1] - first[v];
}
