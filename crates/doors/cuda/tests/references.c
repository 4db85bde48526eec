/* Texture and surface references (CUDA Driver API, "Texture Reference Management [DEPRECATED]", "Surface Reference Management
   [DEPRECATED]"): variables of a module, bound by the host. */
#include <stddef.h>
#include <stdio.h>

typedef unsigned long long Pointer;
typedef void *H;
struct array { size_t width, height; int format; unsigned channels; };
struct array3 { size_t width, height, depth; int format; unsigned channels, flags; };
int cuInit(unsigned), cuDevicePrimaryCtxRetain(H *, int), cuCtxSetCurrent(H), cuModuleLoadData(H *, const void *);
int cuModuleGetFunction(H *, H, const char *), cuModuleGetTexRef(H *, H, const char *), cuModuleGetSurfRef(H *, H, const char *);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **), cuCtxSynchronize(void);
int cuMemAlloc_v2(Pointer *, size_t), cuMemcpyHtoD_v2(Pointer, const void *, size_t), cuMemcpyDtoH_v2(void *, Pointer, size_t);
int cuArrayCreate_v2(H *, const struct array *), cuArray3DCreate_v2(H *, const struct array3 *);
int cuMemcpyHtoA_v2(H, size_t, const void *, size_t), cuMemcpyAtoH_v2(void *, H, size_t, size_t);
int cuTexRefSetArray(H, H, unsigned), cuTexRefSetAddress_v2(size_t *, H, Pointer, size_t), cuTexRefSetFormat(H, int, int);
int cuTexRefSetAddress2D_v3(H, const struct array *, Pointer, size_t), cuTexRefSetFlags(H, unsigned), cuTexRefSetAddressMode(H, int, int);
int cuTexRefGetAddress_v2(Pointer *, H), cuTexRefGetArray(H *, H), cuTexRefGetFormat(int *, int *, H), cuTexRefGetFlags(unsigned *, H);
int cuSurfRefSetArray(H, H, unsigned), cuSurfRefGetArray(H *, H);

#define OK(call) do { int r_ = (call); if (r_) return printf("line %d: %s = %d\n", __LINE__, #call, r_), 1; } while (0)
#define CHECK(what) do { if (!(what)) return printf("line %d: %s\n", __LINE__, #what), 1; } while (0)
enum { INVALID_VALUE = 1, NOT_FOUND = 500, UINT8 = 1, UINT32 = 3, FLOAT = 0x20, N = 32, SURFACE = 2 };

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".global .texref image;\n.global .surfref plane;\n"
    ".visible .entry load(.param .u64 out) {\n"
    "    .reg .b64 %p, %o; .reg .b32 %x; .reg .f32 %v<4>;\n"
    "    ld.param.u64 %p, [out]; mov.u32 %x, %tid.x; mul.wide.u32 %o, %x, 4; add.u64 %p, %p, %o;\n"
    "    tex.1d.v4.f32.s32 {%v0, %v1, %v2, %v3}, [image, {%x}];\n"
    "    st.global.f32 [%p], %v0; ret;\n}\n"
    ".visible .entry store() {\n"
    "    .reg .b32 %x, %v; mov.u32 %x, %tid.x; mad.lo.u32 %v, %x, 3, 1; shl.b32 %x, %x, 2;\n"
    "    sust.b.1d.b32.trap [plane, {%x}], {%v}; ret;\n}\n";

int main(void) {
    H context, module, load, store, image, again, plane, array, other, found;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&load, module, "load"));
    OK(cuModuleGetFunction(&store, module, "store"));
    OK(cuModuleGetTexRef(&image, module, "image"));
    OK(cuModuleGetTexRef(&again, module, "image"));
    CHECK(image == again);
    CHECK(cuModuleGetTexRef(&again, module, "absent") == NOT_FOUND && cuModuleGetTexRef(&again, module, "plane") == NOT_FOUND);

    /* Linear memory. What is not aligned begins before the address, by as much as the offset says. */
    float values[N], read[N];
    for (int i = 0; i < N; i++) values[i] = i * 0.5f;
    Pointer memory, out, address;
    size_t offset = 1;
    int format, channels;
    OK(cuMemAlloc_v2(&memory, sizeof values));
    OK(cuMemAlloc_v2(&out, sizeof read));
    OK(cuMemcpyHtoD_v2(memory, values, sizeof values));
    OK(cuTexRefSetFormat(image, FLOAT, 1));
    OK(cuTexRefSetAddress_v2(&offset, image, memory, sizeof values));
    CHECK(offset == 0);
    OK(cuTexRefGetAddress_v2(&address, image));
    OK(cuTexRefGetFormat(&format, &channels, image));
    CHECK(address == memory && format == FLOAT && channels == 1 && cuTexRefGetArray(&found, image) == INVALID_VALUE);
    void *arguments[] = {&out};
    OK(cuLaunchKernel(load, 1, 1, 1, N, 1, 1, 0, 0, arguments, 0));
    OK(cuMemcpyDtoH_v2(read, out, sizeof read));
    for (int i = 0; i < N; i++) CHECK(read[i] == values[i]);
    CHECK(cuTexRefSetAddress_v2(0, image, memory + 8, sizeof values - 8) == INVALID_VALUE);
    OK(cuTexRefSetAddress_v2(&offset, image, memory + 8, sizeof values - 8));
    CHECK(offset == 8);
    OK(cuLaunchKernel(load, 1, 1, 1, N, 1, 1, 0, 0, arguments, 0));

    /* An array of bytes, read as fractions. The launch before still reads what was bound to it. */
    unsigned char bytes[N];
    for (int i = 0; i < N; i++) bytes[i] = 5 * i;
    OK(cuArrayCreate_v2(&array, &(struct array){N, 0, UINT8, 1}));
    OK(cuMemcpyHtoA_v2(array, 0, bytes, sizeof bytes));
    OK(cuTexRefSetArray(image, array, 1));
    OK(cuMemcpyDtoH_v2(read, out, sizeof read));
    for (int i = 0; i < N; i++) CHECK(read[i] == values[i]);
    unsigned flags;
    OK(cuTexRefGetArray(&found, image));
    OK(cuTexRefGetFlags(&flags, image));
    CHECK(found == array && flags == 0 && cuTexRefGetAddress_v2(&address, image) == INVALID_VALUE);
    OK(cuLaunchKernel(load, 1, 1, 1, N, 1, 1, 0, 0, arguments, 0));
    OK(cuMemcpyDtoH_v2(read, out, sizeof read));
    for (int i = 0; i < N; i++) CHECK(read[i] == bytes[i] / 255.0f);

    /* A surface takes arrays that were made for it. */
    unsigned written[N];
    OK(cuModuleGetSurfRef(&plane, module, "plane"));
    CHECK(cuSurfRefSetArray(plane, array, 0) == INVALID_VALUE && cuSurfRefGetArray(&found, plane) == INVALID_VALUE);
    OK(cuArray3DCreate_v2(&other, &(struct array3){N, 0, 0, UINT32, 1, SURFACE}));
    OK(cuSurfRefSetArray(plane, other, 0));
    OK(cuSurfRefGetArray(&found, plane));
    CHECK(found == other);
    OK(cuLaunchKernel(store, 1, 1, 1, N, 1, 1, 0, 0, 0, 0));
    OK(cuCtxSynchronize());
    OK(cuMemcpyAtoH_v2(written, other, 0, sizeof written));
    for (int i = 0; i < N; i++) CHECK(written[i] == 3u * i + 1);
    return puts("right") < 0;
}
