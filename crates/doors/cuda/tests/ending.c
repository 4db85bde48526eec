/* Calls from an `atexit` function, which runs after thread-local destructors, as do C++ destructors that free a library's resources. */
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(H *, int), cuCtxSetCurrent(H), cuCtxGetCurrent(H *), cuCtxPushCurrent_v2(H), cuCtxPopCurrent_v2(H *);
int cuMemAlloc_v2(Ptr *, size_t), cuMemFree_v2(Ptr), cuMemcpyDtoH_v2(void *, Ptr, size_t), cuMemsetD32_v2(Ptr, unsigned, size_t);
int cuStreamQuery(H), cuStreamDestroy_v2(H), cuStreamCreate(H *, unsigned), cuCtxSynchronize(void);
int margayAwaitThreads(unsigned, const unsigned *, size_t, unsigned *);

static H context, stream;
static Ptr memory;

static void at_end(void) {
    H found = 0;
    unsigned word = 0;
    int good = cuCtxGetCurrent(&found) == 0 && found == context;
    good &= cuMemsetD32_v2(memory, 7, 1) == 0 && cuMemcpyDtoH_v2(&word, memory, 4) == 0 && word == 7;
    good &= cuCtxSynchronize() == 0 && cuStreamDestroy_v2(stream) == 0 && cuMemFree_v2(memory) == 0;
    good &= cuStreamQuery((H)2) == 4; /* the per-thread default stream is gone: CUDA_ERROR_DEINITIALIZED */
    good &= cuCtxPushCurrent_v2(context) == 0 && cuCtxPopCurrent_v2(&found) == 0 && found == context;
    puts(good ? "right" : "wrong");
}

int main(void) {
    unsigned quiet = 0;
    atexit(at_end);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    if (cuCtxPushCurrent_v2(context) || cuCtxPopCurrent_v2(&context)) return 1;
    if (cuMemAlloc_v2(&memory, 4) || cuStreamCreate(&stream, 0) || cuStreamQuery((H)2)) return 1;
    /* There are only margay's threads. */
    if (margayAwaitThreads(60000, 0, 0, &quiet) || quiet != 1) return 1;
    return 0;
}
