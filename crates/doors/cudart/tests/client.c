/* A program as nvcc would make it with `-cudart shared`, written by hand: a fat binary with PTX, the registration before
   main, a kernel's stub, and calls of the runtime API. Expectations are those of the CUDA Runtime API's documentation. */
#include "program.h"
#include <string.h>

unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void *), __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
char __cudaInitModule(void **);
int cudaMemcpyPeer(void *, int, const void *, int, size_t);
int cudaMalloc(void **, size_t), cudaFree(void *), cudaMallocManaged(void **, size_t, unsigned), cudaMemcpy(void *, const void *, size_t, int);
int cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int), cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int);
int cudaGetSymbolSize(size_t *, const void *), cudaGetSymbolAddress(void **, const void *), cudaMemset(void *, int, size_t), cudaDeviceSynchronize(void), cudaGetDeviceCount(int *);
int cudaGetLastError(void), cudaPeekAtLastError(void), cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int), cudaGetDeviceProperties(void *, int), cudaDeviceReset(void), cudaDeviceEnablePeerAccess(int, unsigned);
int cudaLogsDumpToMemory(unsigned *, char *, size_t *, unsigned);
int cudaPointerGetAttributes(void *, const void *), cudaFuncGetAttributes(void *, const void *), cudaStreamCreate(void **);
int cudaStreamBeginCapture(void *, int), cudaStreamEndCapture(void *, void **), cudaGraphInstantiate(void **, void *, unsigned long long);
int cudaMemsetAsync(void *, int, size_t, void *), cudaGraphLaunch(void *, void *), cudaRuntimeGetVersion(int *);
int cudaMemcpyAsync_ptsz(void *, const void *, size_t, int, void *), cudaMemset_ptds(void *, int, size_t), cudaStreamIsCapturing_ptsz(void *, int *);
int cudaStreamBeginCapture_ptsz(void *, int), cudaStreamEndCapture_ptsz(void *, void **), cudaGraphCreate(void **, unsigned);
int cudaGraphAddKernelNode(void **, void *, void **, size_t, void *), cudaGraphKernelNodeGetParams(void *, void *);
int cudaGraphExecKernelNodeSetParams(void *, void *, void *), cudaGraphAddMemcpyNodeFromSymbol(void **, void *, void **, size_t, void *, const void *, size_t, size_t, int);
int cudaGraphAddNode(void **, void *, void **, const void *, size_t, void *), cudaGraphNodeGetParams(void *, void *);
int cudaGraphNodeSetEnabled(void *, void *, unsigned), cudaGraphClone(void **, void *), cudaGraphNodeFindInClone(void **, void *, void *);
int cudaGraphNodeGetDependencies(void *, void **, void *, size_t *), cudaGraphMemcpyNodeGetParams(void *, void *);
int cudaMallocArray(void **, void *, size_t, size_t, unsigned), cudaMemcpyToArray(void *, size_t, size_t, const void *, size_t, int);
int cudaMemcpy2DFromArray(void *, size_t, void *, size_t, size_t, size_t, size_t, int), cudaCreateTextureObject(void *, void *, void *, void *);
int cudaGetTextureObjectResourceDesc(void *, unsigned long long), cudaGetTextureObjectTextureDesc(void *, unsigned long long);
int cudaMemAdvise(void *, size_t, int, long), cudaMemRangeGetAttribute(void *, size_t, int, void *, size_t), cudaIpcGetMemHandle(void *, void *);
const char *cudaGetErrorName(int), *cudaGetErrorString(int);

#define PTX \
    ".version 7.0\n.target sm_80\n.address_size 64\n.const .align 4 .b8 factor[8];\n.global .align 4 .u32 calls;\n" \
    ".visible .global .attribute(.managed) .align 4 .u32 shared_word;\n" \
    ".visible .entry scale(.param .u64 p, .param .u32 n) {\n.reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<4>;\n" \
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;\n" \
    "ld.param.u32 %r2, [n]; setp.ge.u32 %p, %r1, %r2; @%p ret;\n" \
    "ld.param.u64 %d1, [p]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; ld.global.u32 %r3, [%d1];\n" \
    "ld.const.u32 %r4, [factor+4]; mul.lo.u32 %r3, %r3, %r4; st.global.u32 [%d1], %r3;\n" \
    "red.global.add.u32 [calls], 1; st.global.u32 [shared_word], %r2; ret; }\n"

/* Two files that call each other, as `nvcc -rdc=true` compiles them. */
#define CALLER \
    ".version 7.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b32 r) twice(.param .b32 x);\n" \
    ".visible .entry doubled(.param .u64 p) {\n.reg .b32 %r<3>; .reg .b64 %d; mov.u32 %r1, %tid.x; ld.param.u64 %d, [p];\n" \
    "mad.wide.u32 %d, %r1, 4, %d; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), twice, (a);\n" \
    "ld.param.b32 %r2, [b]; } st.global.u32 [%d], %r2; ret; }\n"
#define CALLEE \
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 base = 1;\n" \
    ".visible .func (.param .b32 r) twice(.param .b32 x) {\n.reg .b32 %r<3>; ld.param.u32 %r1, [x];\n" \
    "ld.global.u32 %r2, [base]; mad.lo.u32 %r1, %r1, 2, %r2; st.param.b32 [r], %r1; ret; }\n"

FATBIN(fat, PTX);
FATBIN(fat_caller, CALLER);
FATBIN(fat_callee, CALLEE);
/* A program that nvlink has linked: the binary itself has no code, and the files' own follow. */
EMPTY_FATBIN(nothing);
static void *files[] = {&fat_caller, &fat_callee, 0};
static struct wrapper wrapper = WRAPPER(1, &fat, 0), linked = WRAPPER(2, &nothing, files);

static void **handle, **linked_handle;
static unsigned factor[2], calls, *shared_word;
static void scale_stub(unsigned *p, unsigned n) {
    void *args[] = {&p, &n}, *stream, *kernel = 0;
    dim3 grid, block;
    size_t shared;
    if (__cudaGetKernel(&kernel, (void *)scale_stub) || __cudaPopCallConfiguration(&grid, &block, &shared, &stream)) return;
    __cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
static void unregistered(void) {}
static void doubled_stub(void) {}
static unsigned base;

__attribute__((constructor)) static void registration(void) {
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (void *)scale_stub, "scale", "scale", -1, 0, 0, 0, 0, 0);
    __cudaRegisterVar(handle, (char *)factor, "factor", "factor", 0, 8, 1, 0);
    __cudaRegisterVar(handle, (char *)&calls, "calls", "calls", 0, 4, 0, 0);
    __cudaRegisterManagedVar(handle, (void **)&shared_word, "shared_word", "shared_word", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    linked_handle = __cudaRegisterFatBinary(&linked);
    __cudaRegisterFunction(linked_handle, (void *)doubled_stub, "doubled", "doubled", -1, 0, 0, 0, 0, 0);
    __cudaRegisterVar(linked_handle, (char *)&base, "base", "base", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(linked_handle);
}

enum { N = 300, H2D = 1, D2H = 2, DEFAULT = 4 };

int main(void) {
    dim3 grid = {3, 1, 1}, block = {128, 1, 1};
    unsigned host[N], *device, *managed, values[2] = {0, 5}, count = 0;
    int n;
    size_t size;
    OK(cudaGetDeviceCount(&n));
    CHECK(n == 1);
    OK(cudaRuntimeGetVersion(&n));
    CHECK(n / 1000 == 13);
    struct { char name[256]; char rest[752]; } properties;
    OK(cudaGetDeviceProperties(&properties, 0));
    CHECK(strncmp(properties.name, "margay", 6) == 0 && *(int *)(properties.rest + 308 - 256) == 32);
    CHECK(cudaGetDeviceProperties(&properties, 1) == 101);
    CHECK(cudaPeekAtLastError() == 101 && cudaGetLastError() == 101 && cudaGetLastError() == 0);

    __cudaInitModule(handle);
    CHECK(shared_word && *shared_word == 0);
    OK(cudaMalloc((void **)&device, sizeof host));
    for (int i = 0; i < N; i++) host[i] = i;
    OK(cudaMemcpy(device, host, sizeof host, H2D));
    OK(cudaMemcpyToSymbol(factor, values, 8, 0, H2D));
    CHECK(cudaMemcpyToSymbol(factor, values, 8, 4, H2D) == 1);
    CHECK(cudaMemcpyToSymbol(host, values, 4, 0, H2D) == 13);
    CHECK(cudaGetLastError() == 13);
    OK(cudaGetSymbolSize(&size, factor));
    CHECK(size == 8);
    __cudaPushCallConfiguration(grid, block, 0, 0);
    scale_stub(device, N);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(host, device, sizeof host, D2H));
    for (int i = 0; i < N; i++) CHECK(host[i] == 5u * i);
    OK(cudaMemcpyFromSymbol(&count, &calls, 4, 0, D2H));
    CHECK(count == N && *shared_word == N);

    /* A kernel may write constants at the address that the program gives it; later kernels read what it wrote. */
    unsigned *constants, written[2];
    OK(cudaGetSymbolAddress((void **)&constants, factor));
    __cudaPushCallConfiguration(grid, block, 0, 0);
    scale_stub(constants + 1, 1);
    OK(cudaMemcpyFromSymbol(written, factor, 8, 0, D2H));
    CHECK(written[1] == 25);
    OK(cudaMemcpyToSymbol(factor, values, 8, 0, H2D));

    OK(cudaMallocManaged((void **)&managed, sizeof host, 1));
    for (int i = 0; i < N; i++) managed[i] = 7;
    void *args[] = {&managed, &(unsigned){N}};
    OK(cudaLaunchKernel((void *)scale_stub, grid, block, args, 0, 0));
    OK(cudaDeviceSynchronize());
    CHECK(managed[N - 1] == 35);
    CHECK(cudaLaunchKernel((void *)unregistered, grid, block, args, 0, 0) == 98);
    block.x = 2000;
    CHECK(cudaLaunchKernel((void *)scale_stub, grid, block, args, 0, 0) == 9);
    block.x = 128;
    CHECK(cudaGetLastError() == 9);
    OK(cudaMemcpy2D(host, 8, managed, 16, 4, 10, DEFAULT));
    CHECK(host[0] == 35 && host[1] == 5 * 1 && host[18] == 35);
    CHECK(cudaMemcpy2D(host, 8, managed, 16, 12, 10, DEFAULT) == 12 && cudaGetLastError() == 12); /* the width exceeds a pitch */
    CHECK(cudaDeviceEnablePeerAccess(0, 0) == 101 && cudaGetLastError() == 101); /* no device is its own peer */
    struct { int type, device; void *on_device, *on_host; long reserved[8]; } attributes;
    OK(cudaPointerGetAttributes(&attributes, managed));
    CHECK(attributes.type == 3 && attributes.on_host == managed);
    OK(cudaPointerGetAttributes(&attributes, device));
    CHECK(attributes.type == 2 && attributes.on_device == device);
    OK(cudaPointerGetAttributes(&attributes, host));
    CHECK(attributes.type == 0);
    OK(cudaPointerGetAttributes(&attributes, shared_word));
    CHECK(attributes.type == 3 && attributes.on_host == shared_word);
    void *variable;
    OK(cudaGetSymbolAddress(&variable, &calls));
    OK(cudaPointerGetAttributes(&attributes, variable));
    CHECK(attributes.type == 2 && attributes.on_host == 0);
    CHECK(cudaMemAdvise(variable, 4, 1, 1) == 1 && cudaGetLastError() == 1); /* advice is for managed memory */
    OK(cudaMemAdvise(shared_word, 4, 1, 1));
    struct { size_t shared, constant, local; int most, rest[29]; } function;
    OK(cudaFuncGetAttributes(&function, (void *)scale_stub));
    CHECK(function.most == 1024 && function.rest[1] == 80);

    void *stream, *graph, *exec;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, 0));
    OK(cudaMemsetAsync(managed, 1, sizeof host, stream));
    OK(cudaLaunchKernel((void *)scale_stub, grid, block, args, 0, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    CHECK(managed[0] == 35);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaDeviceSynchronize());
    CHECK(managed[0] == 0x05050505);

    /* To the second forms the default stream is the thread's, which can be captured. */
    int state = -1;
    CHECK(cudaStreamBeginCapture(0, 0) == 900);
    OK(cudaStreamBeginCapture_ptsz(0, 0));
    OK(cudaStreamIsCapturing_ptsz(0, &state));
    CHECK(state == 1);
    OK(cudaMemcpyAsync_ptsz(managed, host, 4, DEFAULT, 0));
    OK(cudaStreamEndCapture_ptsz(0, &graph));
    OK(cudaMemset_ptds(managed, 0, 4));
    CHECK(managed[0] == 0);

    /* A graph by hand: a kernel, then a variable; its parts can be asked for and changed. */
    struct { void *function; dim3 grid, block; unsigned shared; void **params, **extra; } launch = {(void *)scale_stub, grid, block, 0, args, 0}, got;
    struct { void *array; size_t at[3]; void *address; size_t pitch, width, height; } sides[2];
    void *node, *read, *other, *clone, *before;
    size_t several = 1;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddKernelNode(&node, graph, 0, 0, &launch));
    OK(cudaGraphAddMemcpyNodeFromSymbol(&read, graph, &node, 1, &count, &calls, 4, 0, D2H));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaMemset(managed, 0, sizeof host));
    managed[1] = 2;
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaDeviceSynchronize());
    CHECK(managed[1] == 10 && count > N);
    OK(cudaGraphKernelNodeGetParams(node, &got));
    CHECK(got.function == (void *)scale_stub && got.grid.x == 3 && got.block.x == 128);
    CHECK(*(unsigned **)got.params[0] == managed && *(unsigned *)got.params[1] == N);
    *(unsigned *)got.params[1] = 1; /* the first element only */
    OK(cudaGraphExecKernelNodeSetParams(exec, node, &got));
    OK(cudaGraphLaunch(exec, stream));
    CHECK(managed[1] == 10);
    OK(cudaGraphNodeSetEnabled(exec, read, 0));
    count = 0;
    OK(cudaGraphLaunch(exec, stream));
    CHECK(count == 0);
    struct { void *from[8], *to[8]; size_t extent[3]; int kind; } params;
    OK(cudaGraphMemcpyNodeGetParams(read, &params));
    memcpy(sides, &params, sizeof sides);
    CHECK(sides[1].address == &count && params.extent[0] == 4);
    OK(cudaGraphNodeGetDependencies(read, &before, 0, &several));
    CHECK(several == 1 && before == node);
    OK(cudaGraphClone(&clone, graph));
    OK(cudaGraphNodeFindInClone(&other, node, clone));
    CHECK(other != node);
    /* Memory of a graph has its address before it is there, and the same one in every launch. */
    struct { int type, reserved[3]; size_t pool[11]; void *rights; size_t count, bytes; void *address; size_t rest[16]; } memory = {10}, same;
    memory.bytes = 64;
    OK(cudaGraphAddNode(&node, graph, 0, 0, 0, &memory));
    CHECK(memory.address != 0);
    OK(cudaGraphNodeGetParams(node, &same));
    CHECK(same.type == 10 && same.address == memory.address && same.bytes == 64);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    CHECK(cudaGraphLaunch(exec, stream) == 1); /* not freed since */
    OK(cudaFree(memory.address));
    OK(cudaGraphLaunch(exec, stream));

    /* Bytes for an array go on from row to row; what a texture was made of can be asked for. */
    struct { int x, y, z, w, kind; } channels = {32, 0, 0, 0, 1};
    struct { int type; void *array; char rest[136]; } resource = {0}, resource_of;
    struct { int address[3], filter, read, srgb; float border[4]; int normalized; char rest[28]; } options = {{1, 1, 1}, 0, 0, 0, {0}, 1}, options_of;
    unsigned long long texture;
    unsigned column[2];
    OK(cudaMallocArray(&resource.array, &channels, 4, 2, 0));
    for (int i = 0; i < 8; i++) host[i] = i;
    OK(cudaMemcpyToArray(resource.array, 0, 0, host, 8 * 4, H2D));
    OK(cudaMemcpy2DFromArray(column, 4, resource.array, 4, 0, 4, 2, D2H));
    CHECK(column[0] == 1 && column[1] == 5);
    OK(cudaCreateTextureObject(&texture, &resource, &options, 0));
    OK(cudaGetTextureObjectResourceDesc(&resource_of, texture));
    OK(cudaGetTextureObjectTextureDesc(&options_of, texture));
    CHECK(resource_of.type == 0 && resource_of.array == resource.array);
    CHECK(options_of.address[0] == 1 && options_of.normalized == 1 && options_of.read == 0);

    /* What is printed is logged. */
    char log[256] = "";
    size_t log_bytes = sizeof log;
    OK(cudaLogsDumpToMemory(0, log, &log_bytes, 0));
    CHECK(log_bytes < sizeof log && strlen(log) == log_bytes);

    int mostly = -1;
    OK(cudaMemAdvise(managed, 64, 1, 1));
    OK(cudaMemRangeGetAttribute(&mostly, 4, 1, managed, 64));
    CHECK(mostly == 1);
    OK(cudaMemRangeGetAttribute(&mostly, 4, 1, managed, 128));
    CHECK(mostly == 0); /* not all of it */
    CHECK(cudaIpcGetMemHandle(column, managed) == 1); /* not of cudaMalloc */
    CHECK(cudaGetLastError() == 1);

    /* A copy between devices, which may be the same one, is done when others look. */
    unsigned *pair[2], forty_two = 42, copied = 0;
    OK(cudaMalloc((void **)&pair[0], 4));
    OK(cudaMalloc((void **)&pair[1], 4));
    OK(cudaMemcpy(pair[0], &forty_two, 4, H2D));
    OK(cudaMemcpyPeer(pair[1], 0, pair[0], 0, 4));
    OK(cudaMemcpy(&copied, pair[1], 4, D2H));
    CHECK(copied == 42);
    CHECK(cudaMemcpyPeer(pair[1], 0, pair[0], 99, 4) == 101 && cudaGetLastError() == 101);

    CHECK(strcmp(cudaGetErrorName(700), "cudaErrorIllegalAddress") == 0);
    CHECK(strcmp(cudaGetErrorString(0), "no error") == 0);
    CHECK(strcmp(cudaGetErrorString(718), "invalid program counter") == 0);
    CHECK(strcmp(cudaGetErrorString(720), "too many blocks in cooperative launch") == 0);

    unsigned ten = 10;
    OK(cudaMemcpyToSymbol(&base, &ten, 4, 0, H2D));
    OK(cudaLaunchKernel((void *)doubled_stub, (dim3){1, 1, 1}, block, (void *[]){&managed}, 0, 0));
    OK(cudaDeviceSynchronize());
    CHECK(managed[0] == 10 && managed[127] == 264);

    unsigned *nowhere = (unsigned *)64;
    void *bad[] = {&nowhere, &(unsigned){N}};
    OK(cudaLaunchKernel((void *)scale_stub, grid, block, bad, 0, 0));
    CHECK(cudaDeviceSynchronize() == 700);
    CHECK(cudaMalloc((void **)&device, 4) == 700);
    OK(cudaDeviceReset());
    OK(cudaMalloc((void **)&device, 4));
    OK(cudaMemcpyFromSymbol(&count, &calls, 4, 0, D2H));
    CHECK(count == 0);
    OK(cudaFree(device));
    printf("%d failures\n", failures);
    return failures != 0;
}
