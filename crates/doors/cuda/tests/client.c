/* A client of the driver API as C programs are: it declares what it calls, links with libcuda.so.1 and checks what comes
   back. Expectations are those of the CUDA Driver API's documentation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuDriverGetVersion(int *), cuDeviceGet(int *, int), cuDeviceGetCount(int *);
int cuDeviceGetName(char *, int, int), cuDeviceGetAttribute(int *, int, int), cuDeviceTotalMem_v2(size_t *, int);
int cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H), cuCtxGetCurrent(H *), cuCtxSynchronize(void), cuCtxGetDevice(int *), cuMemGetInfo_v2(size_t *, size_t *);
int cuDeviceGetDefaultMemPool(H *, int), cuMemPoolGetAttribute(H, int, void *);
int cuDevicePrimaryCtxRetain(H *, int), cuDevicePrimaryCtxRelease_v2(int), cuCtxSetCurrent(H);
int cuMemAlloc_v2(Ptr *, size_t), cuMemFree_v2(Ptr), cuMemAllocManaged(Ptr *, size_t, unsigned);
int cuMemcpyHtoD_v2(Ptr, const void *, size_t), cuMemcpyDtoH_v2(void *, Ptr, size_t), cuMemcpyDtoD_v2(Ptr, Ptr, size_t);
int cuMemsetD32_v2(Ptr, unsigned, size_t), cuMemsetD2D8_v2(Ptr, size_t, unsigned char, size_t, size_t);
int cuModuleLoadData(H *, const void *), cuModuleLoadDataEx(H *, const void *, unsigned, int *, void **);
int cuModuleGetFunction(H *, H, const char *), cuModuleGetGlobal_v2(Ptr *, size_t *, H, const char *), cuModuleUnload(H);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);
int cuStreamCreate(H *, unsigned), cuStreamSynchronize(H), cuStreamDestroy_v2(H), cuStreamWaitEvent(H, H, unsigned);
int cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *), cuGraphInstantiateWithFlags(H *, H, unsigned long long);
int cuGraphLaunch(H, H), cuGraphExecDestroy(H), cuGraphDestroy(H), cuGraphGetNodes(H, H *, size_t *);
int cuGraphAddMemAllocNode(H *, H, const H *, size_t, void *), cuGraphAddMemFreeNode(H *, H, const H *, size_t, Ptr);
int cuDeviceGetGraphMemAttribute(int, int, void *), cuDeviceSetGraphMemAttribute(int, int, void *), cuDeviceGraphMemTrim(int);
int cuMemsetD32Async(Ptr, unsigned, size_t, H), cuMemcpyDtoDAsync_v2(Ptr, Ptr, size_t, H);
int cuEventCreate(H *, unsigned), cuEventRecord(H, H), cuEventQuery(H), cuEventElapsedTime(float *, H, H), cuEventDestroy_v2(H);
int cuPointerGetAttribute(void *, int, Ptr), cuFuncGetAttribute(int *, int, H), cuFuncSetAttribute(H, int, int);
int cuGetErrorName(int, const char **), cuGetErrorString(int, const char **), cuGetExportTable(void **, const void *);
int cuGetProcAddress_v2(const char *, void **, int, unsigned long long, int *);
int cuLinkCreate_v2(unsigned, int *, void **, H *), cuLinkAddData_v2(H, int, void *, size_t, const char *, unsigned, int *, void **);
int cuLinkComplete(H, void **, size_t *), cuLinkDestroy(H), cuImportExternalMemory(H *, void *);
int cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned), cuLibraryGetKernel(H *, H, const char *);
int cuLibraryGetManaged(Ptr *, size_t *, H, const char *), cuMemAllocAsync(Ptr *, size_t, H), cuMemFreeAsync(Ptr, H);
int cuLogsRegisterCallback(void (*)(void *, unsigned, char *, size_t), void *, H *), cuLogsUnregisterCallback(H);
int cuLogsCurrent(unsigned *, unsigned), cuLogsDumpToMemory(unsigned *, char *, size_t *, unsigned);
int cuOccupancyMaxPotentialBlockSize(int *, int *, H, size_t (*)(int), size_t, int);
int cuMemHostRegister_v2(void *, size_t, unsigned), cuMemHostUnregister(void *), cuMemHostGetDevicePointer_v2(Ptr *, void *, unsigned);
int cuMemGetAllocationGranularity(size_t *, void *, int), cuMemAddressReserve(Ptr *, size_t, size_t, Ptr, unsigned long long);
int cuMemCreate(Ptr *, size_t, void *, unsigned long long), cuMemMap(Ptr, size_t, size_t, Ptr, unsigned long long), cuMemRelease(Ptr);
int cuMemSetAccess(Ptr, size_t, void *, size_t), cuMemUnmap(Ptr, size_t), cuMemAddressFree(Ptr, size_t);
int cuMemExportToShareableHandle(void *, Ptr, int, unsigned long long), cuMemImportFromShareableHandle(Ptr *, void *, int);
int cuUserObjectCreate(H *, void *, void (*)(void *), unsigned, unsigned), cuGraphRetainUserObject(H, H, unsigned, unsigned);
int cuStreamBeginCapture_v2_ptsz(H, int), cuStreamEndCapture_ptsz(H, H *), cuMemsetD32_v2_ptds(Ptr, unsigned, size_t);
int cuMemsetD32Async_ptsz(Ptr, unsigned, size_t, H), cuGraphConditionalHandleCreate(Ptr *, H, H, unsigned, unsigned);
int cuGraphAddNode_v2(H *, H, H *, void *, size_t, void *), cuGraphAddMemsetNode(H *, H, H *, size_t, void *, H);
int cuGraphAddChildGraphNode(H *, H, H *, size_t, H), cuGraphChildGraphNodeGetGraph(H, H *), cuGraphNodeGetType(H, int *);
int cuGraphMemsetNodeGetParams(H, void *), cuMemcpyBatchAsync_v2(Ptr *, Ptr *, size_t *, size_t, void *, size_t *, size_t, H);
int cuGraphExecUpdate_v2(H, H, void *), cuGraphCreate(H *, unsigned), cuFuncSetBlockShape(H, int, int, int), cuParamSetv(H, int, void *, unsigned);
int cuParamSeti(H, int, unsigned), cuLaunchGrid(H, int, int);

static int failures;
#define CHECK(what) do { if (!(what)) { printf("client.c:%d: %s\n", __LINE__, #what); failures++; } } while (0)
#define OK(call) do { int r_ = (call); if (r_) { printf("client.c:%d: %s = %d\n", __LINE__, #call, r_); exit(1); } } while (0)

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .u32 scale = 3;\n"
    ".visible .entry twice(.param .u64 to, .param .u64 from, .param .u32 n, .param .u8 plus) {\n"
    ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>; .reg .b16 %h;\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "ld.param.u32 %r5, [n]; setp.ge.u32 %p, %r4, %r5; @%p ret;\n"
    "ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to]; mul.wide.u32 %d3, %r4, 4;\n"
    "add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3; ld.global.u32 %r6, [%d1];\n"
    "ld.global.u32 %r7, [scale]; mul.lo.u32 %r6, %r6, %r7; ld.param.u8 %h, [plus]; cvt.u32.u8 %r7, %h;\n"
    "add.u32 %r6, %r6, %r7; st.global.u32 [%d2], %r6; ret; }\n"
    ".visible .entry hang() { L: bra L; }\n";

enum { N = 1000 };

static void count_down(void *number) { --*(int *)number; }

static size_t dynamic(int block) { return (size_t)block * 4; }

static void keep(void *to, unsigned level, char *message, size_t length) {
    if (level == 0 && strlen(message) == length) strcpy(to, message);
}

int main(void) {
    int v, major;
    char name[64];
    H context, current, module, function, stream, other;
    CHECK(cuDeviceGetCount(&v) == 3); /* not initialised */
    OK(cuInit(0));
    OK(cuDriverGetVersion(&v));
    CHECK(v >= 12000);
    OK(cuDeviceGetCount(&v));
    CHECK(v == 1);
    CHECK(cuDeviceGet(&v, 1) == 101);
    OK(cuDeviceGetName(name, sizeof name, 0));
    CHECK(strncmp(name, "margay", 6) == 0);
    OK(cuDeviceGetName(name, 4, 0));
    CHECK(strcmp(name, "mar") == 0);
    OK(cuDeviceGetAttribute(&v, 10, 0));
    OK(cuDeviceGetAttribute(&major, 75, 0));
    CHECK(v == 32 && major >= 7);
    CHECK(cuMemAlloc_v2(&(Ptr){0}, 4) == 201); /* no context */

    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == context);
    CHECK(cuModuleLoadData(&module, ".version 7.0\n.target sm_80\nnonsense") == 218);
    static char log[4096];
    int keys[] = {5, 6};
    void *values[] = {log, (void *)sizeof log};
    CHECK(cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_80\n.entry k() { add.q32 %r, 1, 2; }", 2, keys, values) == 218);
    CHECK(strstr(log, "error") && strlen(log) == (size_t)values[1]);
    OK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&function, module, "thrice") == 500);
    OK(cuModuleGetFunction(&function, module, "twice"));

    unsigned from[N], to[N], n = N;
    unsigned char plus = 1;
    for (int i = 0; i < N; i++) from[i] = i;
    Ptr a, b;
    OK(cuMemAlloc_v2(&a, sizeof from));
    OK(cuMemAlloc_v2(&b, sizeof from));
    CHECK(a % 256 == 0);
    OK(cuMemcpyHtoD_v2(a, from, sizeof from));
    CHECK(cuMemcpyHtoD_v2(a + 4, from, sizeof from) == 1); /* beyond the end */
    OK(cuStreamCreate(&stream, 1));
    void *args[] = {&b, &a, &n, &plus};
    OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, args, 0));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(to, b, sizeof to));
    for (int i = 0; i < N; i++) CHECK(to[i] == 3u * i + 1);

    /* The same with one block of arguments, and another value of the variable. */
    Ptr variable;
    size_t size;
    OK(cuModuleGetGlobal_v2(&variable, &size, module, "scale"));
    CHECK(size == 4);
    OK(cuMemsetD32_v2(variable, 5, 1));
    struct { Ptr to, from; unsigned n; unsigned char plus; } block = {b, a, N, 7};
    size_t bytes = sizeof block;
    void *extra[] = {(void *)1, &block, (void *)2, &bytes, 0};
    OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, 0, 0, extra));
    OK(cuMemcpyDtoH_v2(to, b, sizeof to));
    for (int i = 0; i < N; i++) CHECK(to[i] == 5u * i + 7);
    CHECK(cuLaunchKernel(function, 8, 1, 1, 2048, 1, 1, 0, 0, args, 0) == 1); /* too many threads */
    CHECK(cuLaunchKernel(function, 8, 1, 1, 32, 1, 1, 64 << 10, 0, args, 0) == 1); /* no opting in */
    OK(cuFuncSetAttribute(function, 8, 64 << 10));
    OK(cuLaunchKernel(function, 8, 1, 1, 32, 1, 1, 64 << 10, 0, args, 0));
    OK(cuFuncGetAttribute(&v, 0, function));
    CHECK(v == 1024);
    int grid, threads;
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &threads, function, dynamic, 0, 256));
    CHECK(threads > 0 && threads <= 256 && grid > 0);

    /* Two streams in one capture: fork by an event, join by another. */
    H fork, join, graph, exec;
    OK(cuStreamCreate(&other, 1));
    OK(cuEventCreate(&fork, 2));
    OK(cuEventCreate(&join, 2));
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuMemsetD32Async(a, 1, N, stream));
    OK(cuEventRecord(fork, stream));
    OK(cuStreamWaitEvent(other, fork, 0));
    OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, other, args, 0));
    OK(cuEventRecord(join, other));
    OK(cuStreamWaitEvent(stream, join, 0));
    OK(cuMemcpyDtoDAsync_v2(a, b, sizeof from, stream));
    OK(cuStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    OK(cuGraphGetNodes(graph, 0, &nodes));
    CHECK(nodes == 3);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemcpyDtoH_v2(to, b, sizeof to));
    CHECK(to[3] == 5 * 3 + 1 && "captured work has not run yet");
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(to, a, sizeof to));
    for (int i = 0; i < N; i++) CHECK(to[i] == 5 * 1 + 1);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    CHECK(cuGraphLaunch(exec, stream) == 400);

    H e0, e1;
    float ms = -1;
    OK(cuEventCreate(&e0, 0));
    OK(cuEventCreate(&e1, 0));
    CHECK(cuEventElapsedTime(&ms, e0, e1) == 400); /* not recorded */
    OK(cuEventRecord(e0, 0));
    OK(cuEventRecord(e1, 0));
    OK(cuEventQuery(e1));
    OK(cuEventElapsedTime(&ms, e0, e1));
    CHECK(ms >= 0);

    /* Managed memory is the host's memory. */
    Ptr managed;
    OK(cuMemAllocManaged(&managed, 4 * N, 1));
    for (int i = 0; i < N; i++) ((unsigned *)managed)[i] = 2 * i;
    void *managed_args[] = {&managed, &managed, &n, &plus};
    OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, 0, managed_args, 0));
    OK(cuCtxSynchronize());
    CHECK(((unsigned *)managed)[9] == 5 * 18 + 1);
    unsigned is_managed = ~0u, type;
    OK(cuPointerGetAttribute(&is_managed, 8, managed + 16));
    OK(cuPointerGetAttribute(&type, 2, a));
    CHECK(is_managed == 1 && type == 2);
    OK(cuPointerGetAttribute(&is_managed, 8, variable));
    CHECK(is_managed == 0);
    CHECK(cuPointerGetAttribute(&type, 2, (Ptr)&type) == 1);
    OK(cuMemsetD2D8_v2(managed, 16, 9, 4, 3)); /* three rows of four bytes, 16 apart */
    CHECK(((unsigned *)managed)[4] == 0x09090909 && ((unsigned *)managed)[5] == 5 * 10 + 1);
    OK(cuMemFree_v2(managed));
    CHECK(cuMemFree_v2(managed) == 1);

    /* The program's own memory, under its own addresses. */
    unsigned *own = malloc(4 * N);
    for (int i = 0; i < N; i++) own[i] = i;
    OK(cuMemHostRegister_v2(own, 4 * N, 0));
    CHECK(cuMemHostRegister_v2(own + 1, 4, 0) == 712);
    Ptr seen;
    OK(cuMemHostGetDevicePointer_v2(&seen, own, 0));
    void *own_args[] = {&seen, &seen, &n, &plus};
    OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, 0, own_args, 0));
    OK(cuCtxSynchronize());
    CHECK(own[9] == 5 * 9 + 1);
    CHECK(cuMemFree_v2(seen) == 1);
    OK(cuMemHostUnregister(own));
    CHECK(cuMemHostUnregister(own) == 713);
    free(own);

    /* Two pieces of memory side by side are one array; one of them at a second place holds the same. */
    size_t unit;
    struct { int type, handles, at, id; void *meta; unsigned char flags[8]; } property = {1, 1, 1, 0, 0, {0}};
    struct { int at, id, flags; } right = {1, 0, 3};
    Ptr range, twin, piece[2], copy;
    OK(cuMemGetAllocationGranularity(&unit, &property, 0));
    OK(cuMemAddressReserve(&range, 2 * unit, 0, 0, 0));
    OK(cuMemAddressReserve(&twin, unit, 0, 0, 0));
    CHECK(range % unit == 0);
    CHECK(cuMemCreate(&piece[0], unit + 1, &property, 0) == 1);
    for (int i = 0; i < 2; i++) {
        OK(cuMemCreate(&piece[i], unit, &property, 0));
        OK(cuMemMap(range + i * unit, unit, 0, piece[i], 0));
    }
    CHECK(cuMemMap(range, unit, 0, piece[0], 0) == 208);
    OK(cuMemSetAccess(range, 2 * unit, &right, 1));
    OK(cuMemcpyHtoD_v2(range + unit - 2000, from, sizeof from));
    Ptr middle = range + unit - 2000;
    void *range_args[] = {&middle, &middle, &n, &plus};
    OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, 0, range_args, 0));
    OK(cuMemcpyDtoH_v2(to, middle, sizeof to));
    for (int i = 0; i < N; i++) CHECK(to[i] == 5u * i + 1);
    int descriptor;
    OK(cuMemExportToShareableHandle(&descriptor, piece[0], 1, 0));
    OK(cuMemImportFromShareableHandle(&copy, (void *)(long)descriptor, 1));
    OK(cuMemMap(twin, unit, 0, copy, 0));
    OK(cuMemSetAccess(twin, unit, &right, 1));
    OK(cuMemcpyDtoH_v2(to, twin + unit - 2000, 4));
    CHECK(to[0] == 1);
    CHECK(cuMemAddressFree(range, 2 * unit) == 1); /* still mapped */
    OK(cuMemUnmap(range, 2 * unit));
    OK(cuMemUnmap(twin, unit));
    OK(cuMemAddressFree(range, 2 * unit));
    OK(cuMemAddressFree(twin, unit));
    OK(cuMemRelease(piece[0]));
    OK(cuMemRelease(piece[1]));
    OK(cuMemRelease(copy));

    /* What a graph keeps goes with the graph. */
    int alive = 1;
    H object;
    OK(cuGraphCreate(&graph, 0));
    OK(cuUserObjectCreate(&object, &alive, count_down, 1, 1));
    OK(cuGraphRetainUserObject(graph, object, 1, 1));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    CHECK(alive == 1);
    OK(cuGraphExecDestroy(exec));
    CHECK(alive == 0);

    /* The default stream of the second forms is the thread's, which can be captured. */
    CHECK(cuStreamBeginCapture_v2(0, 0) == 900);
    OK(cuStreamBeginCapture_v2_ptsz(0, 0));
    OK(cuMemsetD32Async_ptsz(a, 77, 1, 0));
    OK(cuStreamEndCapture_ptsz(0, &graph));
    OK(cuMemsetD32_v2_ptds(a, 78, 1));
    OK(cuMemcpyDtoH_v2(to, a, 4));
    CHECK(to[0] == 78);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, 0));
    OK(cuMemcpyDtoH_v2(to, a, 4));
    CHECK(to[0] == 77);
    void *form;
    OK(cuGetProcAddress_v2("cuMemsetD32Async", &form, 12000, 2, &v));
    CHECK(form == (void *)cuMemsetD32Async_ptsz);

    /* A loop over a graph: its body sets the condition, whose handle is a word on the device, to zero. */
    H body, node, other_node;
    struct { Ptr to; size_t pitch; unsigned value, element; size_t width, height; } set = {a, 0, 5, 4, 2, 1}, was;
    struct { int type, reserved[3]; Ptr condition; int kind; unsigned count; H *bodies; size_t rest[27]; } loop = {13};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&loop.condition, graph, context, 1, 1));
    loop.kind = 1;
    loop.count = 2;
    CHECK(cuGraphAddNode_v2(&node, graph, 0, 0, 0, &loop) == 1); /* a loop has one body */
    loop.count = 1;
    OK(cuGraphAddNode_v2(&node, graph, 0, 0, 0, &loop));
    OK(cuGraphNodeGetType(node, &v));
    CHECK(v == 13);
    body = loop.bodies[0];
    OK(cuGraphAddMemsetNode(&node, body, 0, 0, &set, context));
    OK(cuGraphMemsetNodeGetParams(node, &was));
    CHECK(was.to == a && was.value == 5 && was.element == 4 && was.width == 2 && was.height == 1);
    set.to = loop.condition;
    set.value = 0;
    set.width = 1;
    OK(cuGraphAddMemsetNode(&other_node, body, &node, 1, &set, context));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, 0));
    OK(cuMemcpyDtoH_v2(to, a, 8));
    CHECK(to[0] == 5 && to[1] == 5);
    OK(cuMemsetD32_v2(a, 1, 2));
    OK(cuGraphLaunch(exec, 0)); /* the default value again */
    OK(cuMemcpyDtoH_v2(to, a, 8));
    CHECK(to[0] == 5);

    /* A graph takes over another of its own shape only. */
    H empty;
    struct { int result; H node, from; } update;
    OK(cuGraphCreate(&empty, 0));
    CHECK(cuGraphExecUpdate_v2(exec, empty, &update) == 910 && update.result == 2);
    OK(cuGraphAddMemsetNode(&node, empty, 0, 0, &set, context));
    CHECK(cuGraphExecUpdate_v2(exec, empty, &update) == 910 && update.result == 3);
    OK(cuGraphExecUpdate_v2(exec, graph, &update));
    CHECK(update.result == 0);

    /* Memory of graphs: the second allocation comes after the free of the first, and may have its address; the third does not. Launches
       reserve what they need, and trimming returns what nothing holds. */
    struct { int type, handles, place[2]; size_t rest[11]; size_t bytes; Ptr at; } wanted[3];
    H got[3], freed;
    size_t reserved = 1, zero = 0;
    OK(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 3; i++) {
        memset(&wanted[i], 0, sizeof wanted[i]);
        wanted[i].type = wanted[i].place[0] = 1;
        wanted[i].bytes = 1 << 16;
    }
    OK(cuGraphAddMemAllocNode(&got[0], graph, 0, 0, &wanted[0]));
    OK(cuGraphAddMemFreeNode(&freed, graph, &got[0], 1, wanted[0].at));
    OK(cuGraphAddMemAllocNode(&got[1], graph, &freed, 1, &wanted[1]));
    OK(cuGraphAddMemAllocNode(&got[2], graph, &got[0], 1, &wanted[2]));
    CHECK(wanted[1].at == wanted[0].at && wanted[2].at != wanted[0].at);
    OK(cuGraphAddMemFreeNode(&freed, graph, &got[1], 1, wanted[1].at));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuDeviceGetGraphMemAttribute(0, 2, &reserved));
    CHECK(reserved == 0);
    OK(cuGraphLaunch(exec, 0));
    OK(cuCtxSynchronize());
    OK(cuDeviceGraphMemTrim(0)); /* the third is not freed */
    OK(cuDeviceGetGraphMemAttribute(0, 0, &reserved));
    CHECK(reserved == 1 << 16);
    OK(cuMemFree_v2(wanted[2].at));
    OK(cuDeviceGetGraphMemAttribute(0, 2, &reserved));
    CHECK(reserved == 1 << 16);
    OK(cuDeviceGraphMemTrim(0));
    OK(cuDeviceGetGraphMemAttribute(0, 2, &reserved));
    CHECK(reserved == 0);
    OK(cuDeviceGetGraphMemAttribute(0, 3, &reserved));
    CHECK(reserved >= 1 << 16);
    OK(cuDeviceSetGraphMemAttribute(0, 3, &zero));
    OK(cuDeviceGetGraphMemAttribute(0, 3, &reserved));
    CHECK(reserved == 0);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));

    Ptr many_to[2] = {b, b + 4}, many_from[2] = {a + 4, a};
    size_t sizes[2] = {4, 4}, which[1] = {0}, attribute[4] = {0};
    OK(cuMemsetD32_v2(a, 9, 1));
    OK(cuCtxSynchronize());
    OK(cuMemcpyBatchAsync_v2(many_to, many_from, sizes, 2, attribute, which, 1, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(to, b, 8));
    CHECK(to[0] == 5 && to[1] == 9);

    /* A launch as before CUDA 4. */
    OK(cuFuncSetBlockShape(function, 128, 1, 1));
    OK(cuParamSetv(function, 0, &b, 8));
    OK(cuParamSetv(function, 8, &a, 8));
    OK(cuParamSeti(function, 16, N));
    OK(cuParamSeti(function, 20, 2));
    OK(cuMemcpyHtoD_v2(a, from, sizeof from));
    OK(cuLaunchGrid(function, 8, 1));
    OK(cuMemcpyDtoH_v2(to, b, sizeof to));
    for (int i = 0; i < N; i++) CHECK(to[i] == 5u * i + 2);

    /* PTX through the linker, and as a library. */
    H link, linked, library, kernel;
    void *image;
    OK(cuLinkCreate_v2(0, 0, 0, &link));
    OK(cuLinkAddData_v2(link, 1, (void *)ptx, sizeof ptx, "ptx", 0, 0, 0));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&linked, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&function, linked, "twice"));
    OK(cuModuleUnload(linked));
    /* The same as machine code (CU_JIT_INPUT_CUBIN), which is PTX where margay stands behind NVRTC. */
    OK(cuLinkCreate_v2(0, 0, 0, &link));
    OK(cuLinkAddData_v2(link, 0, (void *)ptx, sizeof ptx, "ptx", 0, 0, 0));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&linked, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&function, linked, "twice"));
    OK(cuModuleUnload(linked));
    /* What nothing defines is an error of the link, and stands in its log. */
    static const char open_ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n.extern .func absent();\n"
                                   ".visible .entry k() { call absent; ret; }";
    char link_log[500] = "";
    int link_keys[] = {5, 6};
    void *link_values[] = {link_log, (void *)sizeof link_log};
    OK(cuLinkCreate_v2(2, link_keys, link_values, &link));
    OK(cuLinkAddData_v2(link, 1, (void *)open_ptx, sizeof open_ptx, "open", 0, 0, 0));
    CHECK(cuLinkComplete(link, &image, &size) != 0);
    CHECK(strstr(link_log, "absent") != 0);
    OK(cuLinkDestroy(link));
    /* With the module go its functions. */
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, args, 0) == 400);
    OK(cuLibraryLoadData(&library, ptx, 0, 0, 0, 0, 0, 0));
    OK(cuLibraryGetKernel(&kernel, library, "twice"));
    CHECK(cuLibraryGetManaged(&managed, &size, library, "scale") == 500); /* a variable of the device */
    OK(cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 0, 0, args, 0));

    const char *text;
    OK(cuGetErrorName(700, &text));
    CHECK(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    CHECK(cuGetErrorString(704, &text) == 0 && strcmp(text, "peer access is already enabled") == 0);
    CHECK(cuGetErrorString(12345, &text) == 1 && text == 0);
    CHECK(cuGetExportTable((void **)&image, "0123456789abcde") != 0);
    CHECK(cuImportExternalMemory(&link, 0) == 801);
    int (*found)(Ptr *, size_t);
    OK(cuGetProcAddress_v2("cuMemAlloc", (void **)&found, 12000, 0, &v));
    CHECK(found == cuMemAlloc_v2 && v == 0);

    /* A fault stays with its context. */
    Ptr nowhere = 64;
    void *bad[] = {&b, &nowhere, &n, &plus};
    OK(cuModuleGetFunction(&function, module, "twice"));
    {
        static char told[1 << 16], dumped[1 << 16];
        unsigned before, now;
        size_t length = sizeof dumped, none = 4, dropped = 40;
        H listener;
        CHECK(cuLogsRegisterCallback(NULL, told, &listener) == 1 && cuLogsUnregisterCallback(NULL) == 1);
        OK(cuLogsRegisterCallback(keep, told, &listener));
        OK(cuLogsCurrent(&before, 0));
        OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, bad, 0));
        CHECK(cuCtxSynchronize() == 700);
        /* The report is a message of the driver's log. */
        CHECK(strstr(told, "out of bounds") && strlen(told) < sizeof dumped - 2);
        OK(cuLogsUnregisterCallback(listener));
        now = before;
        CHECK(cuLogsDumpToMemory(&now, dumped, &none, 0) == 1 && none == 0); /* room for no message */
        now = before;
        OK(cuLogsDumpToMemory(&now, dumped, &length, 0));
        CHECK(now == before + 1 && length == strlen(dumped) && length == strlen(told) + 1);
        CHECK(memcmp(dumped, told, length - 1) == 0 && dumped[length - 1] == '\n');
        OK(cuLogsDumpToMemory(&now, dumped, &dropped, 0));
        CHECK(dropped == 0); /* nothing new */
    }
    CHECK(cuMemAlloc_v2(&managed, 4) == 700);
    OK(cuCtxDestroy_v2(context));
    CHECK(cuModuleUnload(module) == 400);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc_v2(&managed, 4));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(cuMemAlloc_v2(&managed, 4) == 709);
    /* A primary context keeps its handle, and so it is current again once it is active. */
    H again;
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(again == context);
    OK(cuMemAlloc_v2(&managed, 4));
    /* Memory is allocated in the context of the stream, which need not be current. */
    OK(cuStreamCreate(&stream, 1));
    OK(cuCtxSetCurrent(0));
    CHECK(cuMemAlloc_v2(&managed, 4) == 201);
    OK(cuMemAllocAsync(&managed, 4, stream));
    OK(cuCtxCreate_v2(&again, 0, 0));
    OK(cuPointerGetAttribute(&module, 1, managed));
    CHECK(module == context); /* not the current one */
    OK(cuCtxDestroy_v2(again));
    OK(cuMemFreeAsync(managed, stream));
    /* A pool counts what is allocated where the stream's calls have got to. */
    H pool;
    unsigned long long used[3];
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolGetAttribute(pool, 7, &used[0]));
    OK(cuMemAllocAsync(&managed, 512, stream));
    OK(cuMemPoolGetAttribute(pool, 7, &used[1]));
    OK(cuMemFreeAsync(managed, stream));
    OK(cuMemPoolGetAttribute(pool, 7, &used[2]));
    CHECK(used[1] == used[0] + 512 && used[2] == used[0]);
    OK(cuMemAllocAsync(&managed, 4, stream));
    OK(cuMemFree_v2(managed));
    OK(cuStreamSynchronize(stream));
    /* A context that is not active still has its device. */
    OK(cuCtxSetCurrent(context));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(cuMemAlloc_v2(&managed, 4) == 709);
    int device = -1;
    OK(cuCtxGetDevice(&device));
    CHECK(device == 0);
    size_t total = 0;
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    OK(cuMemGetInfo_v2(0, &total));
    CHECK(total > 0);
    printf("%d failures\n", failures);
    return failures != 0;
}
