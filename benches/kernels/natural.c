/* The same computations as a C programmer writes them for one core.
 * natural NAME ROUNDS       prints the least and the median time of a round in nanoseconds
 * natural NAME files DIR    writes the buffers before (DIR/<argument>.npy) and those that one round changes (DIR/want<argument>.npy) */
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
static float *floats(size_t n, size_t step) { float *p = make(n * 4); for (size_t i = 0; i < n; i++) p[i] = 0.25f + (float)(i * step % 1009) / 1000; return p; }
static _Float16 *halves(size_t n, size_t step) { _Float16 *p = make(n * 2); for (size_t i = 0; i < n; i++) p[i] = (_Float16)(0.25f + (float)(i * step % 61) / 64); return p; }
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

/* Of every row: e to the power of each number, less the greatest, divided by their sum. */
__attribute__((noinline)) static void softmax(float *restrict out, const float *restrict in, int rows, int n) {
    for (int r = 0; r < rows; r++) {
        const float *row = in + r * n;
        float most = row[0], sum = 0;
        for (int i = 1; i < n; i++) most = row[i] > most ? row[i] : most;
        for (int i = 0; i < n; i++) sum += out[r * n + i] = expf(row[i] - most);
        for (int i = 0; i < n; i++) out[r * n + i] /= sum;
    }
}
__attribute__((noinline)) static void matmul(const _Float16 *restrict a, const _Float16 *restrict b, float *restrict c, int n) {
    memset(c, 0, (size_t)n * n * 4);
    for (int i = 0; i < n; i++) for (int k = 0; k < n; k++) for (int j = 0; j < n; j++) c[i * n + j] += (float)a[i * n + k] * (float)b[k * n + j];
}

static int by_value(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return x < y ? -1 : x > y; }

static void write_npy(const char *folder, const char *name, int argument, const char *type, const void *data, size_t n, size_t size) {
    char path[4096], header[128];
    snprintf(path, sizeof path, "%s/%s%d.npy", folder, name, argument);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%zu,), }", type, n);
    FILE *f = fopen(path, "wb");
    if (!f) { perror(path); exit(2); }
    fprintf(f, "\x93NUMPY\x01%c%c%c%-117s\n", 0, 118, 0, header);
    fwrite(data, size, n, f);
    fclose(f);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *name = argv[1], *folder = argc > 3 ? argv[3] : NULL;
    int rounds = folder ? 1 : atoi(argv[2]), found = 0;
    double *ns = malloc(sizeof *ns * rounds);
    float *x = floats(1 << 24, 7919), *y = floats(1 << 24, 104729), *z = floats(1 << 22, 1299709), *f = make(1 << 26);
    _Float16 *g = halves(1 << 16, 7919), *h = halves(1 << 16, 104729);
    int *n = ints(1 << 22), *o = make(1 << 24);
    uint8_t *bytes = make(1 << 22);
    for (int i = 0; i < 1 << 22; i++) bytes[i] = (uint8_t)(i * 7919 >> 4);
/* A buffer of the kernel: argument, type, data, number. */
#define IN(argument, type, data, n) if (folder && stage == 0) write_npy(folder, "", argument, type, data, n, sizeof *(data));
#define OUT(argument, type, data, n) IN(argument, type, data, n) if (folder && stage == 1) write_npy(folder, "want", argument, type, data, n, sizeof *(data));
#define CASE(label, call, buffers) if (!strcmp(name, label)) { \
        int stage = 0; \
        found = 1; \
        buffers \
        double t = now(); \
        call; \
        ns[r] = now() - t, stage = 1; \
        buffers \
        (void)stage; \
    }
    for (int r = 0; r < rounds; r++) {
        CASE("saxpy", saxpy(2, x, y, 1 << 22), IN(1, "<f4", x, 1 << 22) OUT(2, "<f4", y, 1 << 22))
        CASE("saxpy_l2", for (int k = 0; k < (folder ? 1 : 16); k++) saxpy(2, x, y, 1 << 15), IN(1, "<f4", x, 1 << 15) OUT(2, "<f4", y, 1 << 15))
        CASE("sgemm", sgemm(x, y, f, 256), IN(0, "<f4", x, 1 << 16) IN(1, "<f4", y, 1 << 16) OUT(2, "<f4", f, 1 << 16))
        CASE("nbody", nbody((Body *)x, f, 2048), IN(0, "<f4", x, 8192) OUT(1, "<f4", f, 6144))
        CASE("mandelbrot", mandelbrot(o, 512, 384, 256), OUT(0, "<i4", o, 512 * 384))
        CASE("reduce", reduce(x, f, 4096), IN(0, "<f4", x, 1 << 20) OUT(1, "<f4", f, 4096))
        CASE("hist_global", hist(bytes, (unsigned *)o, 1 << 22), IN(0, "|u1", bytes, 1 << 22) OUT(1, "<u4", o, 256))
        CASE("hist_shared", hist(bytes, (unsigned *)o, 1 << 22), IN(0, "|u1", bytes, 1 << 22) OUT(1, "<u4", o, 256))
        CASE("stencil", stencil(x, f, 2048, 2048), IN(0, "<f4", x, 1 << 22) OUT(1, "<f4", f, 1 << 22))
        CASE("struct_call", struct_call(f, 1 << 16), OUT(0, "<f4", f, 1 << 16))
        CASE("fib_divergent", fib_divergent(o, 1 << 14), OUT(0, "<i4", o, 1 << 14))
        CASE("scan", scan(n, o, 4096), IN(0, "<i4", n, 1 << 20) OUT(1, "<i4", o, 1 << 20))
        CASE("bitonic", bitonic(n, 256), OUT(0, "<i4", n, 1 << 17))
        CASE("transpose", transpose(x, f, 2048), IN(0, "<f4", x, 1 << 22) OUT(1, "<f4", f, 1 << 22))
        CASE("black_scholes", black_scholes(x, y, z, f, 1 << 20), IN(0, "<f4", x, 1 << 20) IN(1, "<f4", y, 1 << 20) IN(2, "<f4", z, 1 << 20) OUT(3, "<f4", f, 1 << 20))
        CASE("softmax", softmax(f, x, 1024, 1024), OUT(0, "<f4", f, 1 << 20) IN(1, "<f4", x, 1 << 20))
        CASE("matmul", matmul(g, h, f, 256), IN(0, "<f2", g, 1 << 16) IN(1, "<f2", h, 1 << 16) OUT(2, "<f4", f, 1 << 16))
    }
    if (!found) return 2;
    qsort(ns, rounds, sizeof *ns, by_value);
    if (!folder) printf("%.0f %.0f\n", ns[0], ns[rounds / 2]);
    return 0;
}
