/* The same computations as a C programmer writes them for one core. Each prints the least and the median time of its rounds:
 * natural NAME ROUNDS */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { float x, y, z, w; } Body;
typedef struct { float a, b, c, d; int n; } Mix;

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static void *make(size_t bytes) { void *p = aligned_alloc(64, (bytes + 63) / 64 * 64); memset(p, 0, bytes); return p; }
static float *floats(size_t n) { float *p = make(n * 4); for (size_t i = 0; i < n; i++) p[i] = 0.25f + (float)(i * 7919 % 1000) / 1000; return p; }
static int *ints(size_t n) { int *p = make(n * 4); for (size_t i = 0; i < n; i++) p[i] = (int)(i * 7919 % 100003); return p; }

__attribute__((noinline)) static void saxpy(float a, const float *restrict x, float *restrict y, int n) { for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i]; }
__attribute__((noinline)) static void sgemm(const float *restrict a, const float *restrict b, float *restrict c, int n) {
    memset(c, 0, (size_t)n * n * 4);
    for (int i = 0; i < n; i++) for (int k = 0; k < n; k++) for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
}
__attribute__((noinline)) static void nbody(const Body *restrict p, float *restrict f, int n) {
    for (int i = 0; i < n; i++) {
        float fx = 0, fy = 0, fz = 0;
        for (int j = 0; j < n; j++) {
            float dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
            float inv = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-4f), s = p[j].w * inv * inv * inv;
            fx += dx * s, fy += dy * s, fz += dz * s;
        }
        f[3 * i] = fx, f[3 * i + 1] = fy, f[3 * i + 2] = fz;
    }
}
__attribute__((noinline)) static void mandelbrot(int *out, int w, int h, int limit) {
    for (int py = 0; py < h; py++) for (int px = 0; px < w; px++) {
        float cx = -2.0f + 3.0f * px / w, cy = -1.0f + 2.0f * py / h, x = 0, y = 0; int it = 0;
        while (it < limit && x * x + y * y < 4.0f) { float t = x * x - y * y + cx; y = 2 * x * y + cy, x = t, it++; }
        out[py * w + px] = it;
    }
}
/* The sums of 256 neighbours, by the tree that the kernel's shuffles make. */
__attribute__((noinline)) static void reduce(const float *restrict in, float *restrict out, int blocks) {
    for (int b = 0; b < blocks; b++) {
        float v[256];
        memcpy(v, in + b * 256, sizeof v);
        for (int s = 128; s; s >>= 1) for (int i = 0; i < s; i++) v[i] += v[i + s];
        out[b] = v[0];
    }
}
__attribute__((noinline)) static void hist(const uint8_t *restrict in, unsigned *restrict bins, int n) { for (int i = 0; i < n; i++) bins[in[i]]++; }
__attribute__((noinline)) static void stencil(const float *restrict in, float *restrict out, int w, int h) {
    for (int y = 1; y < h - 1; y++) for (int x = 1; x < w - 1; x++) { int i = y * w + x; out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]); }
}
__attribute__((noinline)) static Mix blend(Mix m, float t) { return (Mix){m.a + t * (m.b - m.a), m.b + t * (m.c - m.b), m.c + t * (m.d - m.c), m.d + t * (m.a - m.d), m.n + 1}; }
__attribute__((noinline)) static void struct_call(float *out, int n) {
    for (int i = 0; i < n; i++) {
        Mix m = {(float)i, i + 1.0f, i * 0.5f, 3.0f, 0};
        for (int k = 0; k < 16; k++) m = blend(m, 0.25f);
        out[i] = m.a + m.b + m.c + m.d + m.n;
    }
}
__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) static void fib_divergent(int *out, int n) { for (int i = 0; i < n; i++) out[i] = fib(8 + i % 8); }
__attribute__((noinline)) static void scan(const int *restrict in, int *restrict out, int blocks) {
    for (int b = 0; b < blocks; b++) { int s = 0; for (int i = 0; i < 256; i++) out[b * 256 + i] = s += in[b * 256 + i]; }
}
__attribute__((noinline)) static void bitonic(int *data, int blocks) {
    for (int b = 0; b < blocks; b++) {
        int *a = data + b * 512;
        for (int k = 2; k <= 512; k *= 2) for (int j = k / 2; j; j /= 2) for (int i = 0; i < 512; i++) {
            int o = i ^ j;
            if (o > i && (a[i] > a[o]) == ((i & k) == 0)) { int t = a[i]; a[i] = a[o]; a[o] = t; }
        }
    }
}
__attribute__((noinline)) static void transpose(const float *restrict in, float *restrict out, int n) {
    for (int y = 0; y < n; y += 32) for (int x = 0; x < n; x += 32) for (int i = 0; i < 32; i++) for (int j = 0; j < 32; j++) out[(x + i) * n + y + j] = in[(y + j) * n + x + i];
}
static float cnd(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float v = 0.39894228f * expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - v : v;
}
__attribute__((noinline)) static void black_scholes(const float *price, const float *strike, const float *years, float *restrict call, int n) {
    for (int i = 0; i < n; i++) {
        float s = price[i], x = strike[i], t = years[i], r = 0.02f, v = 0.3f, root = sqrtf(t);
        float d1 = (logf(s / x) + (r + 0.5f * v * v) * t) / (v * root), d2 = d1 - v * root;
        call[i] = s * cnd(d1) - x * expf(-r * t) * cnd(d2);
    }
}

static int by_value(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return x < y ? -1 : x > y; }

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *name = argv[1];
    int rounds = atoi(argv[2]);
    double *ns = malloc(sizeof *ns * rounds);
    float *x = floats(1 << 24), *y = floats(1 << 24), *z = floats(1 << 22), *f = make(1 << 26);
    int *n = ints(1 << 22), *o = make(1 << 24);
    uint8_t *bytes = make(1 << 22);
    for (int i = 0; i < 1 << 22; i++) bytes[i] = (uint8_t)(i * 7919 >> 4);
#define CASE(label, call) if (!strcmp(name, label)) { found = 1; call; }
    int found = 0;
    for (int r = 0; r < rounds; r++) {
        double t = now();
        CASE("empty", (void)0)
        CASE("saxpy", saxpy(2, x, y, 1 << 22))
        CASE("saxpy_l2", for (int k = 0; k < 16; k++) saxpy(2, x, y, 1 << 15))
        CASE("sgemm", sgemm(x, y, f, 256))
        CASE("nbody", nbody((Body *)x, f, 2048))
        CASE("mandelbrot", mandelbrot(o, 512, 384, 256))
        CASE("reduce", reduce(x, f, 4096))
        CASE("hist_global", hist(bytes, (unsigned *)o, 1 << 22))
        CASE("hist_shared", hist(bytes, (unsigned *)o, 1 << 22))
        CASE("stencil", stencil(x, f, 2048, 2048))
        CASE("struct_call", struct_call(f, 1 << 16))
        CASE("fib_divergent", fib_divergent(o, 1 << 14))
        CASE("scan", scan(n, o, 4096))
        CASE("bitonic", bitonic(n, 256))
        CASE("transpose", transpose(x, f, 2048))
        CASE("black_scholes", black_scholes(x, y, z, f, 1 << 20))
        ns[r] = now() - t;
    }
    if (!found) return 2;
    qsort(ns, rounds, sizeof *ns, by_value);
    printf("%.0f %.0f\n", ns[0], ns[rounds / 2]);
    return 0;
}
