/* Parts of a device and what belongs to one of several: green contexts, cooperative launches that are too large, streams and events of
   another device. The device has two members of compute capability 9.0 with 16 multiprocessors each. Results follow from the CUDA Driver
   API ("Green Contexts", `cuLaunchCooperativeKernel`, `cuEventRecord`) and the CUDA C++ Programming Guide ("Stream and Event Behavior"). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Ptr;
typedef void *H;
typedef struct { unsigned count, least, together, flags, domain; } Part;
typedef struct { unsigned kind; unsigned char padding[92]; Part part; unsigned char rest[20]; void *next; } Resource;
typedef struct { unsigned count, together, preferred, flags, domain, reserved[11]; } Group;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(H *, int), cuCtxSetCurrent(H), cuCtxGetCurrent(H *), cuCtxSynchronize(void);
int cuMemAlloc_v2(Ptr *, size_t), cuMemcpyDtoH_v2(void *, Ptr, size_t), cuMemsetD32_v2(Ptr, unsigned, size_t);
int cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *), cuFuncGetAttribute(int *, int, H);
int cuLibraryLoadData(H *, const void *, void *, void *, unsigned, void *, void *, unsigned), cuLibraryGetKernel(H *, H, const char *);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);
int cuLaunchCooperativeKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, H, int, size_t), cuDeviceGetAttribute(int *, int, int);
int cuStreamCreate(H *, unsigned), cuStreamDestroy_v2(H), cuStreamSynchronize(H), cuStreamQuery(H);
int cuStreamGetGreenCtx(H, H *), cuStreamGetCtx_v2(H, H *, H *), cuStreamGetDevResource(H, Resource *, unsigned);
int cuEventCreate(H *, unsigned), cuEventRecord(H, H), cuEventSynchronize(H), cuEventElapsedTime(float *, H, H);
int cuStreamWaitEvent(H, H, unsigned);
int cuDeviceGetDevResource(int, Resource *, unsigned), cuCtxGetDevResource(H, Resource *, unsigned);
int cuGreenCtxGetDevResource(H, Resource *, unsigned), cuDevResourceGenerateDesc(H *, Resource *, unsigned);
int cuDevSmResourceSplitByCount(Resource *, unsigned *, const Resource *, Resource *, unsigned, unsigned);
int cuDevSmResourceSplit(Resource *, unsigned, const Resource *, Resource *, unsigned, Group *);
int cuGreenCtxCreate(H *, H, int, unsigned), cuGreenCtxDestroy(H), cuCtxFromGreenCtx(H *, H), cuGreenCtxGetId(H, Ptr *);
int cuGreenCtxStreamCreate(H *, H, unsigned, int), cuGreenCtxRecordEvent(H, H), cuGreenCtxWaitEvent(H, H);
int cuCtxGetLimit(size_t *, int), cuCtxSetLimit(int, size_t);

static int failures;
#define IS(expected, call) do { int r_ = (call); if (r_ != (expected)) { printf("parts.c:%d: %s = %d\n", __LINE__, #call, r_); failures++; } } while (0)
#define CHECK(what) do { if (!(what)) { printf("parts.c:%d: %s\n", __LINE__, #what); failures++; } } while (0)
#define OK(call) do { int r_ = (call); if (r_) { printf("parts.c:%d: %s = %d\n", __LINE__, #call, r_); exit(1); } } while (0)

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".func (.param .b32 r) heavy(.param .b32 a) {\n.reg .b32 %r<40>; ld.param.b32 %r0, [a];\n"
    "add.u32 %r1, %r0, 1; add.u32 %r2, %r0, 2; add.u32 %r3, %r0, 3; add.u32 %r4, %r0, 4; add.u32 %r5, %r0, 5; add.u32 %r6, %r0, 6;\n"
    "mul.lo.u32 %r1, %r1, %r2; mul.lo.u32 %r1, %r1, %r3; mul.lo.u32 %r1, %r1, %r4; mul.lo.u32 %r1, %r1, %r5; mul.lo.u32 %r1, %r1, %r6;\n"
    "st.param.b32 [r], %r1; ret; }\n"
    ".visible .entry light() { ret; }\n"
    ".visible .entry large() .reqntid 4096 { ret; }\n"
    ".visible .entry calls(.param .u64 to) {\n.reg .b32 %r; .reg .b64 %d; .param .b32 a; .param .b32 r;\n"
    "mov.u32 %r, %tid.x; st.param.b32 [a], %r; call (r), heavy, (a); ld.param.b32 %r, [r]; ld.param.u64 %d, [to]; st.global.u32 [%d], %r; ret; }\n"
    ".visible .entry count(.param .u64 to) {\n.reg .b64 %d; ld.param.u64 %d, [to]; red.global.add.u32 [%d], 1; ret; }\n";

static unsigned word(Ptr at) { unsigned value; OK(cuMemcpyDtoH_v2(&value, at, 4)); return value; }

static void splits(void) {
    Resource all, parts[4], rest, other;
    unsigned n = 4;
    H descriptor;
    OK(cuDeviceGetDevResource(0, &all, 1));
    CHECK(all.kind == 1 && all.part.count == 16 && all.part.least == 8 && all.part.together == 8);
    IS(0, cuDevSmResourceSplitByCount(NULL, &n, &all, NULL, 0, 5));
    CHECK(n == 2); /* of 8 each */
    IS(0, cuDevSmResourceSplitByCount(NULL, &n, &all, NULL, 1, 5));
    CHECK(n == 2); /* of 6 each, alignments of 2 */
    n = 1;
    IS(0, cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, 8));
    CHECK(n == 1 && parts[0].part.count == 8 && rest.kind == 1 && rest.part.count == 8);
    n = 4;
    IS(0, cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, 8));
    CHECK(n == 2 && rest.kind == 0); /* nothing is left */
    IS(1, cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, 17));
    IS(914, cuDevSmResourceSplitByCount(parts, &n, &rest, NULL, 0, 1));
    Group groups[2] = {{10, 2, 0, 0}, {0, 2, 0, 0}};
    IS(0, cuDevSmResourceSplit(parts, 2, &all, &rest, 0, groups));
    CHECK(parts[0].part.count == 10 && parts[0].part.together == 2 && groups[1].count == 6 && rest.kind == 0);
    IS(0, cuDevResourceGenerateDesc(&descriptor, parts, 2));
    OK(cuDeviceGetDevResource(1, &other, 1));
    parts[1] = other;
    IS(915, cuDevResourceGenerateDesc(&descriptor, parts, 2)); /* of two devices */
    Group odd = {3, 2, 0, 0}, all_of_it = {0, 0, 0, 0}, too_many = {12, 4, 0, 0};
    IS(1, cuDevSmResourceSplit(parts, 1, &all, &rest, 0, &odd));
    IS(0, cuDevSmResourceSplit(NULL, 1, &all, &rest, 0, &all_of_it));
    CHECK(all_of_it.count == 16 && all_of_it.together == 8);
    Group two[2] = {{8, 8, 0, 0}, too_many};
    IS(915, cuDevSmResourceSplit(parts, 2, &all, &rest, 0, two));
    IS(914, cuDeviceGetDevResource(0, &other, 77));
}

static void green(H primary, H module, Ptr data) {
    Resource all, parts[2], rest, own;
    unsigned n = 2;
    H descriptor, green, context, current, stream, plain, named, count, event, of, kernel;
    Ptr id = 0, other = 0;
    void *params[] = {&data};
    OK(cuModuleGetFunction(&count, module, "count"));
    OK(cuModuleGetFunction(&kernel, module, "light"));
    OK(cuDeviceGetDevResource(0, &all, 1));
    OK(cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, 8));
    OK(cuDevResourceGenerateDesc(&descriptor, parts, 1));
    OK(cuGreenCtxCreate(&green, descriptor, 0, 1));
    IS(1, cuGreenCtxCreate(&of, descriptor, 1, 1)); /* the descriptor is of device 0 */
    IS(1, cuGreenCtxStreamCreate(&stream, green, 0, 0));
    OK(cuGreenCtxStreamCreate(&stream, green, 1, 0));
    OK(cuStreamCreate(&plain, 1));
    OK(cuMemsetD32_v2(data, 0, 1));
    IS(0, cuLaunchKernel(count, 4, 1, 1, 32, 1, 1, 0, stream, params, NULL)); /* the primary context is current */
    OK(cuEventCreate(&event, 0));
    IS(0, cuGreenCtxRecordEvent(green, event));
    IS(0, cuEventSynchronize(event));
    CHECK(word(data) == 128);
    IS(0, cuGreenCtxWaitEvent(green, event));
    IS(0, cuStreamWaitEvent(stream, event, 0));
    IS(0, cuGreenCtxGetDevResource(green, &own, 1));
    CHECK(own.part.count == 8);
    IS(0, cuStreamGetDevResource(stream, &own, 1));
    CHECK(own.part.count == 8);
    IS(0, cuStreamGetDevResource(plain, &own, 1));
    CHECK(own.part.count == 16);
    IS(914, cuStreamGetDevResource(stream, &own, 1000));
    IS(0, cuStreamGetGreenCtx(stream, &of));
    CHECK(of == green);
    IS(0, cuStreamGetGreenCtx(plain, &of));
    CHECK(of == NULL);
    IS(0, cuStreamGetCtx_v2(stream, &context, &of));
    CHECK(context == primary && of == green);
    IS(0, cuGreenCtxGetId(green, &id));
    IS(201, cuGreenCtxGetId(NULL, &other)); /* no green context is current */
    /* While it is current, null is its own default stream, and new streams belong to it. */
    OK(cuCtxFromGreenCtx(&context, green));
    OK(cuCtxSetCurrent(context));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == context);
    IS(0, cuGreenCtxGetId(NULL, &other));
    CHECK(other == id);
    IS(0, cuCtxGetDevResource(NULL, &own, 1));
    CHECK(own.part.count == 8);
    IS(0, cuStreamGetGreenCtx(NULL, &of));
    CHECK(of == green);
    OK(cuStreamCreate(&named, 0));
    IS(0, cuStreamGetGreenCtx(named, &of));
    CHECK(of == green);
    IS(0, cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    IS(0, cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 0, named, params, NULL));
    IS(0, cuCtxSynchronize());
    CHECK(word(data) == 192);
    OK(cuCtxSetCurrent(primary));
    IS(0, cuGreenCtxDestroy(green));
    IS(201, cuGreenCtxDestroy(green));
    IS(917, cuStreamSynchronize(stream));
    IS(917, cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, named, NULL, NULL));
    IS(0, cuStreamDestroy_v2(stream));
    IS(0, cuStreamDestroy_v2(named));
    IS(0, cuStreamQuery(plain));
}

/* The largest number of CTAs is what the occupancy functions say, times the multiprocessors. */
static void cooperative(H module) {
    int each, all;
    H kernel;
    OK(cuModuleGetFunction(&kernel, module, "light"));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, 256, 0));
    OK(cuDeviceGetAttribute(&all, 16, 0));
    IS(0, cuLaunchCooperativeKernel(kernel, each * all, 1, 1, 256, 1, 1, 0, NULL, NULL));
    IS(720, cuLaunchCooperativeKernel(kernel, each * all + 1, 1, 1, 256, 1, 1, 0, NULL, NULL));
    IS(1, cuLaunchCooperativeKernel(kernel, each * all + 1, 1, 1, 2048, 1, 1, 0, NULL, NULL));
    IS(0, cuCtxSynchronize()); /* the error is not sticky */
}

static void two_devices(H first, H second, H module, Ptr data) {
    H stream, count, library, kernel, event, here;
    float ms;
    void *params[] = {&data};
    OK(cuModuleGetFunction(&count, module, "count"));
    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "count"));
    OK(cuEventCreate(&here, 0));
    OK(cuEventRecord(here, NULL));
    OK(cuCtxSetCurrent(second));
    OK(cuStreamCreate(&stream, 1));
    OK(cuEventCreate(&event, 0));
    IS(0, cuEventRecord(event, stream));
    IS(0, cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    IS(0, cuStreamSynchronize(stream));
    OK(cuCtxSetCurrent(first));
    IS(400, cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    IS(400, cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    IS(400, cuEventRecord(here, stream));
    IS(400, cuEventElapsedTime(&ms, here, event));
    IS(0, cuStreamWaitEvent(NULL, event, 0));
    IS(0, cuEventSynchronize(event));
}

static void limits(H module) {
    size_t stack = 0;
    int light, calls, threads;
    H kernel;
    IS(0, cuCtxGetLimit(&stack, 0));
    CHECK(stack == 1024);
    IS(0, cuCtxSetLimit(0, 8192));
    IS(0, cuCtxGetLimit(&stack, 0));
    CHECK(stack == 8192);
    /* The registers of functions that a kernel does not reach are not its own. */
    OK(cuModuleGetFunction(&kernel, module, "light"));
    OK(cuFuncGetAttribute(&light, 4, kernel));
    OK(cuModuleGetFunction(&kernel, module, "calls"));
    OK(cuFuncGetAttribute(&calls, 4, kernel));
    CHECK(light < calls);
    /* A kernel may require more threads than the device has; no launch of it succeeds. */
    OK(cuModuleGetFunction(&kernel, module, "large"));
    OK(cuFuncGetAttribute(&threads, 0, kernel));
    CHECK(threads == 1024);
}

int main(void) {
    H first, second, module;
    Ptr data;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuDevicePrimaryCtxRetain(&first, 0));
    OK(cuCtxSetCurrent(first));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuMemAlloc_v2(&data, 64));
    splits();
    green(first, module, data);
    cooperative(module);
    two_devices(first, second, module, data);
    limits(module);
    if (!failures) printf("right\n");
    return failures != 0;
}
