// Kernels of the kinds that real programs bring, for benches/cold: what a first run costs. No float is added by atomics, so every
// engine must give the same bytes. nvcc -ptx -arch=compute_80 -o kernels.ptx kernels.cu

template <class T> __device__ void product(const T *a, const T *b, T *c, int n) {
    __shared__ T as[16][16], bs[16][16];
    int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    T sum = 0;
    for (int t = 0; t < n; t += 16) {
        as[y][x] = a[row * n + t + x];
        bs[y][x] = b[(t + y) * n + col];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) sum += as[y][k] * bs[k][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
extern "C" __global__ void product_f32(const float *a, const float *b, float *c, int n) { product(a, b, c, n); }
extern "C" __global__ void product_f64(const double *a, const double *b, double *c, int n) { product(a, b, c, n); }
extern "C" __global__ void product_i32(const int *a, const int *b, int *c, int n) { product(a, b, c, n); }

// Sums of rows of elements: threads, warps, block, grid.
extern "C" __global__ void reduce(const unsigned *in, unsigned *out, int n) {
    __shared__ unsigned parts[8];
    unsigned sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i];
#pragma unroll
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < 8 ? parts[threadIdx.x] : 0;
#pragma unroll
        for (int d = 4; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}

// Inclusive sums of each block's 1024 elements, four a thread.
extern "C" __global__ void scan(const uint4 *in, uint4 *out) {
    __shared__ unsigned sums[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    uint4 v = in[blockIdx.x * 256 + t];
    v.y += v.x, v.z += v.y, v.w += v.z;
    unsigned all = v.w;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        unsigned left = __shfl_up_sync(~0u, all, d);
        if (lane >= d) all += left;
    }
    if (lane == 31) sums[warp] = all;
    __syncthreads();
    unsigned before = all - v.w;
    for (int w = 0; w < warp; w++) before += sums[w];
    v.x += before, v.y += before, v.z += before, v.w += before;
    out[blockIdx.x * 256 + t] = v;
}

// Sorts each block's 512 keys with their values.
extern "C" __global__ void sort(unsigned *keys, unsigned *values) {
    __shared__ unsigned k[512], v[512];
    int base = blockIdx.x * 512, t = threadIdx.x;
    k[t] = keys[base + t], k[t + 256] = keys[base + t + 256];
    v[t] = values[base + t], v[t + 256] = values[base + t + 256];
    for (int size = 2; size <= 512; size *= 2)
        for (int stride = size / 2; stride; stride /= 2) {
            __syncthreads();
            int i = 2 * t - (t & (stride - 1)), j = i + stride;
            bool up = (i & size) == 0;
            if ((k[i] > k[j]) == up) {
                unsigned a = k[i], b = v[i];
                k[i] = k[j], v[i] = v[j], k[j] = a, v[j] = b;
            }
        }
    __syncthreads();
    keys[base + t] = k[t], keys[base + t + 256] = k[t + 256];
    values[base + t] = v[t], values[base + t + 256] = v[t + 256];
}

// Groups of lanes as programs with cooperative groups form them: lanes with the same bucket take places together.
extern "C" __global__ void groups(const unsigned *in, unsigned *counts, unsigned *ranks, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned bucket = in[i] % 7, active = __activemask(), mine = 0;
    for (unsigned b = 0; b < 7; b++) {
        unsigned with = __ballot_sync(active, bucket == b);
        if (bucket == b) mine = with;
    }
    unsigned lane = threadIdx.x % 32, leader = __ffs(mine) - 1;
    if (lane == leader) atomicAdd(&counts[bucket], __popc(mine));
    ranks[i] = __popc(mine & ((1u << lane) - 1));
}

// Forces on points from a binary tree in an array (children of i: 2 i + 1, 2 i + 2), by a stack of one's own.
extern "C" __global__ void tree(const float4 *nodes, const float2 *points, float2 *forces, int leaves, float near) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, inner = leaves - 1, top = 0;
    int stack[32];
    float2 p = points[i], f = make_float2(0, 0);
    stack[top++] = 0;
    while (top) {
        int node = stack[--top];
        float4 q = nodes[node];
        float dx = q.x - p.x, dy = q.y - p.y, d = dx * dx + dy * dy + 1e-3f;
        if (node >= inner || q.w * q.w < near * d) {
            float r = rsqrtf(d), s = q.z * r * r * r;
            f.x += dx * s, f.y += dy * s;
        } else {
            stack[top++] = 2 * node + 1;
            stack[top++] = 2 * node + 2;
        }
    }
    forces[i] = f;
}

// A row of queries for each thread, keys and values by tiles, softmax on the way.
extern "C" __global__ void attention(const float *q, const float *k, const float *v, float *out, int n, float scale) {
    __shared__ float ks[32][32], vs[32][32];
    int row = blockIdx.x * 64 + threadIdx.x;
    float query[32], sum[32], most = -1e30f, total = 0;
#pragma unroll
    for (int d = 0; d < 32; d++) query[d] = q[row * 32 + d] * scale, sum[d] = 0;
    for (int tile = 0; tile < n; tile += 32) {
        for (int e = threadIdx.x; e < 1024; e += 64) ks[e / 32][e % 32] = k[tile * 32 + e], vs[e / 32][e % 32] = v[tile * 32 + e];
        __syncthreads();
        for (int j = 0; j < 32; j++) {
            float dot = 0;
#pragma unroll
            for (int d = 0; d < 32; d++) dot += query[d] * ks[j][d];
            float now = fmaxf(most, dot), old = __expf(most - now), weight = __expf(dot - now);
            total = total * old + weight;
#pragma unroll
            for (int d = 0; d < 32; d++) sum[d] = sum[d] * old + weight * vs[j][d];
            most = now;
        }
        __syncthreads();
    }
#pragma unroll
    for (int d = 0; d < 32; d++) out[row * 32 + d] = sum[d] / total;
}

// About 3,000 instructions without a loop inside: rounds of a hash over 16 words, all written out.
#define ROUND(r)                                                                                                             \
    s[(r) % 16] = (s[(r) % 16] + (s[((r) + 5) % 16] ^ (s[((r) + 11) % 16] >> ((r) % 13 + 1)))) * (2654435761u + 2 * (r));   \
    s[((r) + 7) % 16] ^= __funnelshift_l(s[(r) % 16], s[(r) % 16], (r) % 31 + 1) & (s[((r) + 2) % 16] | 0x5a5a5a5au ^ (r));
#define FOUR(r) ROUND(r) ROUND(r + 1) ROUND(r + 2) ROUND(r + 3)
#define SIXTEEN(r) FOUR(r) FOUR(r + 4) FOUR(r + 8) FOUR(r + 12)
#define SIXTYFOUR(r) SIXTEEN(r) SIXTEEN(r + 16) SIXTEEN(r + 32) SIXTEEN(r + 48)
extern "C" __global__ void large(const unsigned *in, unsigned *out, int times) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned s[16];
#pragma unroll
    for (int k = 0; k < 16; k++) s[k] = in[i] + k;
    for (int t = 0; t < times; t++) { SIXTYFOUR(0) SIXTYFOUR(64) SIXTYFOUR(128) SIXTYFOUR(192) SIXTYFOUR(256) SIXTYFOUR(320) }
    unsigned all = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) all ^= s[k];
    out[i] = all;
}
