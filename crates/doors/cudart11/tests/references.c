/* Texture references as CUDA 11's compiler registers them (CUDA Runtime API 11.8, "Texture Reference Management [DEPRECATED]"). */
#include "../../cudart/tests/program.h"

struct channels { int x, y, z, w, kind; };
struct reference {
    int normalized, filter, address[3];
    struct channels channels;
    int srgb;
    unsigned anisotropy;
    int level_filter;
    float bias, least, most;
    int trilinear, reserved[14];
};
void __cudaRegisterTexture(void **, const struct reference *, const void **, const char *, int, int, int);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *), cudaMalloc(void **, size_t);
int cudaMemcpy(void *, const void *, size_t, int), cudaBindTexture(size_t *, const struct reference *, const void *, const struct channels *, size_t);
int cudaUnbindTexture(const struct reference *), cudaGetTextureAlignmentOffset(size_t *, const struct reference *);
int cudaGetTextureReference(const struct reference **, const void *);
int cudaMallocArray(void **, const struct channels *, size_t, size_t, unsigned), cudaBindTextureToArray(const struct reference *, void *, const struct channels *);
int cudaMemcpyToArray(void *, size_t, size_t, const void *, size_t, int);

enum { INVALID_VALUE = 1, INVALID_TEXTURE = 18, INVALID_BINDING = 19, N = 32, TO_DEVICE = 1, TO_HOST = 2, WRAP = 0, LINEAR = 1 };
#define PTX \
    ".version 7.0\n.target sm_80\n.address_size 64\n" \
    ".global .texref _ZN5alpha5imageE;\n" \
    ".visible .entry load(.param .u64 out) {\n" \
    "    .reg .b64 %p, %o; .reg .b32 %x; .reg .f32 %f, %v<4>;\n" \
    "    ld.param.u64 %p, [out]; mov.u32 %x, %tid.x; mul.wide.u32 %o, %x, 4; add.u64 %p, %p, %o;\n" \
    "    tex.1d.v4.f32.s32 {%v0, %v1, %v2, %v3}, [_ZN5alpha5imageE, {%x}]; st.global.f32 [%p], %v0; ret;\n}\n" \
    ".visible .entry sample(.param .u64 out) {\n" \
    "    .reg .b64 %p, %o; .reg .b32 %x; .reg .f32 %f, %v<4>;\n" \
    "    ld.param.u64 %p, [out]; mov.u32 %x, %tid.x; mul.wide.u32 %o, %x, 4; add.u64 %p, %p, %o;\n" \
    "    cvt.rn.f32.u32 %f, %x; div.rn.f32 %f, %f, 32.0; tex.1d.v4.f32.f32 {%v0, %v1, %v2, %v3}, [_ZN5alpha5imageE, {%f}];\n" \
    "    st.global.f32 [%p], %v0; ret;\n}\n"
FATBIN(fat, PTX);
static struct wrapper wrapper = WRAPPER(1, &fat, 0);
static void load(void) {}
static void sample(void) {}
static struct reference image, other;

int main(void) {
    dim3 one = {1, 1, 1}, threads = {N, 1, 1};
    void **handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (void *)load, "load", "load", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFunction(handle, (void *)sample, "sample", "sample", -1, 0, 0, 0, 0, 0);
    /* The third argument is the variable's name, the fourth its name in the source. */
    __cudaRegisterTexture(handle, &image, (const void **)"_ZN5alpha5imageE", "::alpha::image", 1, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);

    const struct channels floats = {32, 0, 0, 0, 2};
    const struct reference *found;
    float values[N], read[N];
    void *memory, *out, *array, *arguments[] = {&out};
    size_t offset = 1;
    for (int i = 0; i < N; i++) values[i] = i * 0.5f;
    OK(cudaMalloc(&memory, sizeof values));
    OK(cudaMalloc(&out, sizeof read));
    OK(cudaMemcpy(memory, values, sizeof values, TO_DEVICE));
    OK(cudaGetTextureReference(&found, &image));
    CHECK(found == &image && cudaGetTextureReference(&found, &other) == INVALID_TEXTURE);
    CHECK(cudaBindTexture(0, &other, memory, &floats, sizeof values) == INVALID_TEXTURE);
    CHECK(cudaGetTextureAlignmentOffset(&offset, &image) == INVALID_BINDING);
    OK(cudaBindTexture(&offset, &image, memory, &floats, ~0u)); /* the size may be left out */
    CHECK(offset == 0);
    OK(cudaLaunchKernel((void *)load, one, threads, arguments, 0, 0));
    OK(cudaMemcpy(read, out, sizeof read, TO_HOST));
    for (int i = 0; i < N; i++) CHECK(read[i] == values[i]);
    CHECK(cudaBindTexture(0, &image, (char *)memory + 8, &floats, 64) == INVALID_VALUE);
    OK(cudaBindTexture(&offset, &image, (char *)memory + 8, &floats, 64));
    CHECK(offset == 8);
    OK(cudaGetTextureAlignmentOffset(&offset, &image));
    CHECK(offset == 8);
    OK(cudaUnbindTexture(&image));
    CHECK(cudaGetTextureAlignmentOffset(&offset, &image) == INVALID_BINDING);

    /* Attributes of the program's variable count when an array is bound: between two texels is their mean, and before the first the last. */
    image.normalized = 1;
    image.filter = LINEAR;
    image.address[0] = WRAP;
    OK(cudaMallocArray(&array, &floats, N, 0, 0));
    OK(cudaMemcpyToArray(array, 0, 0, values, sizeof values, TO_DEVICE));
    OK(cudaBindTextureToArray(&image, array, &floats));
    OK(cudaLaunchKernel((void *)sample, one, threads, arguments, 0, 0));
    OK(cudaMemcpy(read, out, sizeof read, TO_HOST));
    for (int i = 0; i < N; i++) CHECK(read[i] == (values[i] + values[(i + N - 1) % N]) / 2);
    if (!failures) puts("right");
    return failures;
}
