// The kernels of ../kernels/kernels.cu as OpenCL C; recursion (fib_divergent) is what OpenCL does not have.
typedef struct { float x, y, z, w; } Body;
typedef struct { float a, b, c, d; int n; } Mix;

kernel void saxpy(float a, global const float *x, global float *y, int n) {
    int i = get_global_id(0);
    if (i < n) y[i] = a * x[i] + y[i];
}

kernel void sgemm(global const float *a, global const float *b, global float *c, int n) {
    local float ta[16][16], tb[16][16];
    int lx = get_local_id(0), ly = get_local_id(1), row = get_group_id(1) * 16 + ly, col = get_group_id(0) * 16 + lx;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        ta[ly][lx] = a[row * n + t + lx];
        tb[ly][lx] = b[(t + ly) * n + col];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; k++) sum += ta[ly][k] * tb[k][lx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + col] = sum;
}

kernel void nbody(global const Body *p, global float *force, int n) {
    int i = get_global_id(0);
    if (i >= n) return;
    Body me = p[i];
    float fx = 0, fy = 0, fz = 0;
    for (int j = 0; j < n; j++) {
        Body o = p[j];
        float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
        float d2 = dx * dx + dy * dy + dz * dz + 1e-4f;
        float inv = 1.0f / sqrt(d2);
        float s = o.w * inv * inv * inv;
        fx += dx * s, fy += dy * s, fz += dz * s;
    }
    force[3 * i] = fx, force[3 * i + 1] = fy, force[3 * i + 2] = fz;
}

kernel void mandelbrot(global int *out, int w, int h, int limit) {
    int px = get_global_id(0), py = get_global_id(1);
    if (px >= w || py >= h) return;
    float cx = -2.0f + 3.0f * px / w, cy = -1.0f + 2.0f * py / h, x = 0, y = 0;
    int it = 0;
    while (it < limit && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy, x = t, it++;
    }
    out[py * w + px] = it;
}

// Without warps: the tree in local memory that OpenCL's guides show.
kernel void reduce(global const float *in, global float *out) {
    local float part[256];
    int t = get_local_id(0);
    part[t] = in[get_group_id(0) * 256 + t];
    for (int s = 128; s; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < s) part[t] += part[t + s];
    }
    if (t == 0) out[get_group_id(0)] = part[0];
}

kernel void hist_global(global const uchar *in, global uint *bins, int n) {
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&bins[in[i]]);
}

kernel void hist_shared(global const uchar *in, global uint *bins, int n) {
    local uint counts[256];
    for (int b = get_local_id(0); b < 256; b += get_local_size(0)) counts[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&counts[in[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = get_local_id(0); b < 256; b += get_local_size(0)) atomic_add(&bins[b], counts[b]);
}

kernel void stencil(global const float *in, global float *out, int w, int h) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    int i = y * w + x;
    out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
}

__attribute__((noinline)) Mix blend(Mix m, float t) {
    Mix r = {m.a + t * (m.b - m.a), m.b + t * (m.c - m.b), m.c + t * (m.d - m.c), m.d + t * (m.a - m.d), m.n + 1};
    return r;
}
kernel void struct_call(global float *out, int n) {
    int i = get_global_id(0);
    if (i >= n) return;
    Mix m = {(float)i, i + 1.0f, i * 0.5f, 3.0f, 0};
    for (int k = 0; k < 16; k++) m = blend(m, 0.25f);
    out[i] = m.a + m.b + m.c + m.d + m.n;
}

kernel void scan(global const int *in, global int *out) {
    local int a[2][256];
    int t = get_local_id(0), from = 0;
    a[0][t] = in[get_group_id(0) * 256 + t];
    for (int d = 1; d < 256; d *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        a[1 - from][t] = a[from][t] + (t >= d ? a[from][t - d] : 0);
        from = 1 - from;
    }
    out[get_group_id(0) * 256 + t] = a[from][t];
}

kernel void bitonic(global int *data) {
    local int a[512];
    int t = get_local_id(0), base = get_group_id(0) * 512;
    a[t] = data[base + t], a[t + 256] = data[base + t + 256];
    for (int k = 2; k <= 512; k *= 2)
        for (int j = k / 2; j; j /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            int i = 2 * t - (t & (j - 1)), o = i + j;
            bool up = (i & k) == 0;
            int x = a[i], y = a[o];
            if ((x > y) == up) a[i] = y, a[o] = x;
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    data[base + t] = a[t], data[base + t + 256] = a[t + 256];
}

kernel void transpose(global const float *in, global float *out, int n) {
    local float tile[32][33];
    int lx = get_local_id(0), ly = get_local_id(1), x = get_group_id(0) * 32 + lx, y = get_group_id(1) * 32 + ly;
    for (int j = 0; j < 32; j += 8) tile[ly + j][lx] = in[(y + j) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    x = get_group_id(1) * 32 + lx, y = get_group_id(0) * 32 + ly;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[lx][ly + j];
}

float cnd(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float v = 0.39894228f * exp(-0.5f * d * d) *
              (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - v : v;
}
kernel void black_scholes(global const float *price, global const float *strike, global const float *years, global float *call, int n) {
    int i = get_global_id(0);
    if (i >= n) return;
    float s = price[i], x = strike[i], t = years[i], r = 0.02f, v = 0.3f, root = sqrt(t);
    float d1 = (log(s / x) + (r + 0.5f * v * v) * t) / (v * root), d2 = d1 - v * root;
    call[i] = s * cnd(d1) - x * exp(-r * t) * cnd(d2);
}
