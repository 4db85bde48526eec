// The kernels that are measured, each beside a function of natural.c that computes the same.
#include <cstdint>

struct Body { float x, y, z, w; };
struct Mix { float a, b, c, d; int n; };

extern "C" __global__ void empty() {}

extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

// C = A * B with 16 x 16 tiles in shared memory; n is a multiple of 16.
extern "C" __global__ void sgemm(const float *a, const float *b, float *c, int n) {
    __shared__ float ta[16][16], tb[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        ta[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

extern "C" __global__ void nbody(const Body *p, float *force, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Body me = p[i];
    float fx = 0, fy = 0, fz = 0;
    for (int j = 0; j < n; j++) {
        Body o = p[j];
        float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
        float d2 = dx * dx + dy * dy + dz * dz + 1e-4f;
        float inv = 1.0f / sqrtf(d2);
        float s = o.w * inv * inv * inv;
        fx += dx * s, fy += dy * s, fz += dz * s;
    }
    force[3 * i] = fx, force[3 * i + 1] = fy, force[3 * i + 2] = fz;
}

extern "C" __global__ void mandelbrot(int *out, int w, int h, int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= w || py >= h) return;
    float cx = -2.0f + 3.0f * px / w, cy = -1.0f + 2.0f * py / h, x = 0, y = 0;
    int it = 0;
    while (it < limit && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy, x = t, it++;
    }
    out[py * w + px] = it;
}

// Sums of 256 neighbours each.
extern "C" __global__ void reduce(const float *in, float *out) {
    __shared__ float part[8];
    float v = in[blockIdx.x * 256 + threadIdx.x];
    for (int s = 16; s; s >>= 1) v += __shfl_xor_sync(0xffffffffu, v, s);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < 8 ? part[threadIdx.x] : 0;
        for (int s = 4; s; s >>= 1) v += __shfl_xor_sync(0xffffffffu, v, s);
        if (threadIdx.x == 0) out[blockIdx.x] = v;
    }
}

extern "C" __global__ void hist_global(const uint8_t *in, unsigned *bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1u);
}

extern "C" __global__ void hist_shared(const uint8_t *in, unsigned *bins, int n) {
    __shared__ unsigned local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}

extern "C" __global__ void stencil(const float *in, float *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    int i = y * w + x;
    out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
}

__device__ __noinline__ Mix blend(Mix m, float t) {
    return {m.a + t * (m.b - m.a), m.b + t * (m.c - m.b), m.c + t * (m.d - m.c), m.d + t * (m.a - m.d), m.n + 1};
}
extern "C" __global__ void struct_call(float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Mix m = {(float)i, i + 1.0f, i * 0.5f, 3.0f, 0};
    for (int k = 0; k < 16; k++) m = blend(m, 0.25f);
    out[i] = m.a + m.b + m.c + m.d + m.n;
}

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void fib_divergent(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fib(8 + i % 8);
}

// Inclusive prefix sums of 256 values a block (Hillis and Steele).
extern "C" __global__ void scan(const int *in, int *out) {
    __shared__ int a[2][256];
    int t = threadIdx.x, from = 0;
    a[0][t] = in[blockIdx.x * 256 + t];
    for (int d = 1; d < 256; d *= 2) {
        __syncthreads();
        a[1 - from][t] = a[from][t] + (t >= d ? a[from][t - d] : 0);
        from = 1 - from;
    }
    out[blockIdx.x * 256 + t] = a[from][t];
}

// Sorts 512 values a block.
extern "C" __global__ void bitonic(int *data) {
    __shared__ int a[512];
    int t = threadIdx.x, base = blockIdx.x * 512;
    a[t] = data[base + t], a[t + 256] = data[base + t + 256];
    for (int k = 2; k <= 512; k *= 2)
        for (int j = k / 2; j; j /= 2) {
            __syncthreads();
            int i = 2 * t - (t & (j - 1)), o = i + j;
            bool up = (i & k) == 0;
            int x = a[i], y = a[o];
            if ((x > y) == up) a[i] = y, a[o] = x;
        }
    __syncthreads();
    data[base + t] = a[t], data[base + t + 256] = a[t + 256];
}

extern "C" __global__ void transpose(const float *in, float *out, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

__device__ float cnd(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float v = 0.39894228f * expf(-0.5f * d * d) *
              (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - v : v;
}
extern "C" __global__ void black_scholes(const float *price, const float *strike, const float *years, float *call, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = price[i], x = strike[i], t = years[i], r = 0.02f, v = 0.3f, root = sqrtf(t);
    float d1 = (logf(s / x) + (r + 0.5f * v * v) * t) / (v * root), d2 = d1 - v * root;
    call[i] = s * cnd(d1) - x * expf(-r * t) * cnd(d2);
}
