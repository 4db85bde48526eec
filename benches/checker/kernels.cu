// Kernels without errors, whose checks bench.py measures. kernels.ptx is made by: nvcc -arch=sm_90 -ptx kernels.cu
#define T 32
extern "C" __global__ void tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float sa[T][T], sb[T][T];
  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  float s = 0;
  for (int t = 0; t < n; t += T) {
    sa[threadIdx.y][threadIdx.x] = a[y * n + t + threadIdx.x];
    sb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + x];
    __syncthreads();
    for (int k = 0; k < T; k++) s += sa[threadIdx.y][k] * sb[k][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = s;
}
extern "C" __global__ void histogram(const unsigned* in, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i] & 255], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}
extern "C" __global__ void reduction(const float* in, float* out, int n) {
  __shared__ float s[256];
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int d = 128; d > 0; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void scan(const int* in, int* out, int n) {
  __shared__ int s[2][256];
  int i = blockIdx.x * 256 + threadIdx.x, p = 0;
  s[0][threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    s[1 - p][threadIdx.x] = s[p][threadIdx.x] + (threadIdx.x >= d ? s[p][threadIdx.x - d] : 0);
    p = 1 - p;
    __syncthreads();
  }
  if (i < n) out[i] = s[p][threadIdx.x];
}
extern "C" __global__ void stencil(const float* in, float* out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
  out[y * w + x] = 0.2f * (in[y * w + x] + in[y * w + x - 1] + in[y * w + x + 1] + in[(y - 1) * w + x] + in[(y + 1) * w + x]);
}
extern "C" __global__ void warpsum(const float* in, float* out, int n) {
  __shared__ float s[32];
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
  for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0;
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x == 0) atomicAdd(out, v);
  }
}
// Step `k` of the shortest paths between all pairs: rows of 16 threads, and a row and a column that all CTAs read of what they write.
extern "C" __global__ void paths(int* distance, int n, int k) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int via = distance[y * n + k] + distance[k * n + x];
  if (via < distance[y * n + x]) distance[y * n + x] = via;
}
// Bytes, four of which lie in a word.
extern "C" __global__ void invert(unsigned char* pixels, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) pixels[i] = 255 - pixels[i];
}
struct Particle {
  float x, y, z, vx, vy, vz;
};
// Members of structures, 24 bytes apart from lane to lane.
extern "C" __global__ void particles(Particle* all, int n, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Particle p = all[i];
  p.x += p.vx * dt, p.y += p.vy * dt, p.z += p.vz * dt;
  all[i] = p;
}
// Words that lanes write at places of their own all over memory.
extern "C" __global__ void permute(const unsigned* in, unsigned* out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i * 12345 & n - 1] = in[i];
}
// Words of 16 lists to which the threads append: two words of each by a warp.
extern "C" __global__ void radix(const unsigned* in, unsigned* out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[(i & 15) * (n / 16) + i / 16] = in[i];
}
// Words that threads change at places of their own all over memory.
extern "C" __global__ void increments(unsigned* data, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i * 12345 & n - 1] += 1;
}
// A product with a sparse matrix, whose vector is in memory that the kernel writes, too.
extern "C" __global__ void sparse(const unsigned* columns, float* x, unsigned rows) {
  unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int j = 0; j < 16; j++) sum += x[columns[j * rows + row] & rows - 1];
  x[rows + row] = sum;
}
// Bins in global memory.
extern "C" __global__ void counts(const unsigned* in, unsigned* bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i] & 255], 1);
}
// Bins whose counters also give places.
extern "C" __global__ void places(const unsigned* in, unsigned* bins, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = atomicAdd(&bins[in[i] & 255], 1);
}
// What is odd, in a place that one counter gives.
extern "C" __global__ void compact(const unsigned* in, unsigned* out, unsigned* count, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] & 1) out[atomicAdd(count, 1) & n - 1] = in[i];
}
// A hash table, in which keys are found or take a free place.
extern "C" __global__ void insert(const unsigned* keys, unsigned* table, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned key = keys[i] | 1, at = key * 2654435761u;
  for (;; at++) {
    unsigned found = atomicCAS(&table[at & 2 * n - 1], 0, key);
    if (found == 0 || found == key) return;
  }
}
