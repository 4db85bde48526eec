// A program, or with -DLIBRARY a library, that holds a CUDA runtime in itself as nvcc's programs do: functions of the API's names
// that are not exported. These are stand-ins which end the process, so the program works only if they are led elsewhere before
// its constructor registers a kernel. -DRELEASE=11, 12 or 13 says of which release the names are.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined SHORT
#elif defined ASKS
// What NVIDIA's runtime does first: it asks the driver for tables that are not documented, and gives up without them.
#include <dlfcn.h>
static int64_t ran(const char *name) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found;
    int (*ask)(void *, const char *) = driver ? (int (*)(void *, const char *))dlsym(driver, "cuGetExportTable") : NULL;
    if (!ask || ask(&found, "0123456789abcdef") == 0) exit(4);
    return 500;
}
#else
static int64_t ran(const char *name) {
    printf("the stand-in of %s ran\n", name);
    exit(3);
}
#endif

#ifdef SHORT
// Six bytes of code and ten of padding: less than a jump with its address takes, and the room for it.
#define STANDIN(name, ...) \
    __attribute__((visibility("hidden"))) int64_t name(__VA_ARGS__); \
    __asm__(".text\n.p2align 4\n.globl " #name "\n.hidden " #name "\n.type " #name ", @function\n" #name ":\n" \
            "movl $999, %eax\nret\n.size " #name ", . - " #name "\n.p2align 4\n");
#else
#define STANDIN(name, ...) \
    __attribute__((visibility("hidden"), noinline, used)) int64_t name(__VA_ARGS__) { return ran(#name); }
#endif

typedef struct { unsigned x, y, z; } dim3;
struct attributes { int type, device; void *device_pointer, *host_pointer; uint64_t reserved[8]; };

STANDIN(__cudaRegisterFatBinary, void *image)
STANDIN(__cudaRegisterFatBinaryEnd, int64_t handle)
STANDIN(__cudaUnregisterFatBinary, int64_t handle)
STANDIN(__cudaRegisterFunction, int64_t handle, const void *host, char *device, const char *name, int limit, void *tid, void *bid,
        void *block, void *grid, int *warp)
STANDIN(cudaRuntimeGetVersion, int *version)
STANDIN(cudaMalloc, void **address, size_t bytes)
STANDIN(cudaMemcpy, void *to, const void *from, size_t bytes, int kind)
STANDIN(cudaLaunchKernel, const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream)
STANDIN(cudaPointerGetAttributes, struct attributes *attributes, const void *address)
#if RELEASE == 12
STANDIN(cudaGetDeviceProperties_v2, void *properties, int device)
#elif RELEASE == 11
STANDIN(cudaBindTexture, size_t *offset)
STANDIN(cudaCtxResetPersistingL2Cache, void)
#endif

#define PTX \
    ".version 7.0\n.target sm_50\n.address_size 64\n" \
    ".visible .entry twice(.param .u64 numbers) {\n" \
    ".reg .b32 %x, %i;\n.reg .b64 %at, %offset;\n" \
    "mov.u32 %i, %tid.x;\nld.param.u64 %at, [numbers];\nmul.wide.u32 %offset, %i, 4;\nadd.u64 %at, %at, %offset;\n" \
    "ld.global.u32 %x, [%at];\nadd.u32 %x, %x, %x;\nst.global.u32 [%at], %x;\nret;\n}\n"

// A fat binary of one entry, and the wrapper that nvcc's host code registers.
__attribute__((section(".nv_fatbin"), aligned(8))) static const struct {
    uint32_t magic; uint16_t version, header; uint64_t size;
    uint16_t kind, entry_version; uint32_t entry_header; uint64_t padded; uint32_t compressed, options, version_of_ptx, architecture;
    uint64_t unused, flags, more, unpacked;
    char text[1024];
} image = {0xba55ed50, 1, 16, 64 + 1024, 1, 1, 64, 1024, 0, 0, 0, 50, 0, 0, 0, 0, PTX};
__attribute__((section(".nvFatBinSegment"))) static struct { int magic, version; const void *image, *none; } wrapper = {
    0x466243b1, 1, &image, NULL};

static char kernel;
static int64_t handle;

__attribute__((constructor)) static void register_kernels(void) {
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, &kernel, &kernel, "twice", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
}

static int run(void) {
    int version = 0, numbers[32];
    void *memory;
    cudaRuntimeGetVersion(&version);
    if (version / 1000 != RELEASE) return printf("version %d\n", version), 1;
    for (int i = 0; i < 32; i++) numbers[i] = i;
    if (cudaMalloc(&memory, sizeof numbers) || cudaMemcpy(memory, numbers, sizeof numbers, 1)) return 1;
    void *arguments[] = {&memory};
#ifdef FAULT
    memory = (void *)16; // where nothing is; the program does not look at errors
    cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, NULL);
    return 0;
#endif
    if (cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, NULL)) return 1;
    if (cudaMemcpy(numbers, memory, sizeof numbers, 2)) return 1;
    for (int i = 0; i < 32; i++)
        if (numbers[i] != 2 * i) return printf("numbers[%d] is %d\n", i, numbers[i]), 1;
    // The structure has reserved bytes since CUDA 13; before, nothing may be written there.
    struct attributes of;
    memset(&of, 0xff, sizeof of);
    if (cudaPointerGetAttributes(&of, memory) || of.type != 2 || of.device_pointer != memory) return 1;
    if ((of.reserved[0] == 0) != (RELEASE >= 13)) return puts("the structure has another layout"), 1;
    puts("right");
    return 0;
}

#ifdef LIBRARY
int run_library(void) { return run(); }
#else
int main(void) { return run(); }
#endif
