/* Calls from an `atexit` function, which runs after thread-local destructors, as do C++ destructors that free a library's resources. Before,
   the program has called the same functions. */
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(H *, int), cuCtxSetCurrent(H), cuCtxGetCurrent(H *), cuCtxPushCurrent_v2(H), cuCtxPopCurrent_v2(H *);
int cuMemAlloc_v2(Ptr *, size_t), cuMemFree_v2(Ptr), cuMemcpyDtoH_v2(void *, Ptr, size_t), cuMemsetD32_v2(Ptr, unsigned, size_t);
int cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);
int cuStreamQuery(H), cuStreamDestroy_v2(H), cuStreamCreate(H *, unsigned), cuCtxSynchronize(void);
int margayAwaitThreads(unsigned, const unsigned *, size_t, unsigned *);

static H context, stream;
static Ptr memory, other;
static const char *text = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .u64 %a;\n"
                          "ld.param.u64 %a, [p];\nst.global.u32 [%a], 9;\nret;\n}\n";

static int calls(Ptr to) {
    H module, function;
    unsigned word = 0;
    void *parameters[] = {&to};
    int good = cuModuleLoadData(&module, text) == 0 && cuModuleGetFunction(&function, module, "k") == 0;
    good &= cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0) == 0;
    good &= cuMemcpyDtoH_v2(&word, to, 4) == 0 && word == 9;
    good &= cuMemsetD32_v2(to, 7, 1) == 0 && cuMemcpyDtoH_v2(&word, to, 4) == 0 && word == 7;
    return good && cuMemFree_v2(to) == 0;
}

static void at_end(void) {
    H found = 0;
    int good = cuCtxGetCurrent(&found) == 0 && found == context;
    good &= cuCtxSynchronize() == 0 && cuStreamDestroy_v2(stream) == 0 && calls(memory);
    good &= cuStreamQuery((H)2) == 4; /* the per-thread default stream is gone: CUDA_ERROR_DEINITIALIZED */
    good &= cuCtxPushCurrent_v2(context) == 0 && cuCtxPopCurrent_v2(&found) == 0 && found == context;
    puts(good ? "right" : "wrong");
}

int main(void) {
    unsigned quiet = 0;
    atexit(at_end);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    if (cuCtxPushCurrent_v2(context) || cuCtxPopCurrent_v2(&context)) return 1;
    if (cuMemAlloc_v2(&other, 4) || !calls(other)) return 1;
    if (cuMemAlloc_v2(&memory, 4) || cuStreamCreate(&stream, 0) || cuStreamQuery((H)2)) return 1;
    /* There are only margay's threads. */
    if (margayAwaitThreads(60000, 0, 0, &quiet) || quiet != 1) return 1;
    return 0;
}
