// Arguments that the documentation of the runtime API excludes: the error and the last error. Queries, which leave none. The amounts of
// a memory pool.
#include <atomic>
#include <cstdio>
#include <initializer_list>

__global__ void store(int *to) { *to = 1; }
__device__ int variable;

static int failed;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #what);                                                          \
            failed = 1;                                                                                                \
        }                                                                                                              \
    } while (0)
#define OK(call) CHECK((call) == cudaSuccess)
#define REFUSED(code, call)                                                                                            \
    do {                                                                                                               \
        CHECK((call) == (code));                                                                                       \
        CHECK(cudaPeekAtLastError() == (code) && cudaGetLastError() == (code) && cudaGetLastError() == cudaSuccess);   \
    } while (0)
#define INVALID(call) REFUSED(cudaErrorInvalidValue, call)

static void CUDART_CB called(cudaStream_t, cudaError_t, void *) {}

static void memory() {
    int own[64], *device, *pinned, *managed;
    const unsigned unknown = 0x100;
    INVALID(cudaHostAlloc((void **)&pinned, 64, unknown));
    INVALID(cudaHostRegister(own, sizeof own, unknown));
    REFUSED(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own));
    INVALID(cudaMallocManaged((void **)&managed, 64, cudaMemAttachSingle));
    INVALID(cudaMallocManaged((void **)&managed, 64, 0));
    OK(cudaMalloc(&device, 64));
    INVALID(cudaFreeHost(device));
    OK(cudaMemset(device, 0, 64)); // it is still there
#if CUDART_VERSION >= 13000
    const cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    INVALID(cudaMemAdvise(device, 64, cudaMemAdviseSetReadMostly, here));
    INVALID(cudaMemPrefetchAsync(device, 64, here, 0, 0));
#else
    INVALID(cudaMemAdvise(device, 64, cudaMemAdviseSetReadMostly, 0));
    INVALID(cudaMemPrefetchAsync(device, 64, 0, 0));
#endif
    INVALID(cudaMemset2D(device, 4, 0, 8, 2)); // rows that overlap
    const cudaMemcpyKind wrong = (cudaMemcpyKind)7;
    REFUSED(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, own, 64, wrong));
    REFUSED(cudaErrorInvalidMemcpyDirection, cudaMemcpy2D(device, 8, own, 8, 8, 2, wrong));
    REFUSED(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(variable, own, 4, 0, cudaMemcpyDeviceToHost));
    REFUSED(cudaErrorInvalidMemcpyDirection, cudaMemcpyFromSymbol(own, variable, 4, 0, cudaMemcpyHostToDevice));
    OK(cudaFree(device));
}

static void streams() {
    cudaStream_t stream;
    cudaEvent_t event;
    cudaGraph_t graph;
    INVALID(cudaEventCreateWithFlags(&event, 0x80));
    INVALID(cudaEventCreateWithFlags(&event, cudaEventInterprocess)); // without `cudaEventDisableTiming`
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&event));
    INVALID(cudaStreamWaitEvent(stream, event, 0x10));
    INVALID(cudaStreamAddCallback(stream, nullptr, nullptr, 0));
    INVALID(cudaStreamAddCallback(stream, called, nullptr, 1));
    INVALID(cudaGraphCreate(&graph, 1));
    INVALID(cudaSetDeviceFlags(0x10000));
    INVALID(cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceScheduleYield));
    INVALID(cudaFuncSetAttribute((const void *)store, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
    OK(cudaFuncSetAttribute((const void *)store, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    OK(cudaStreamDestroy(stream));
    OK(cudaEventDestroy(event));
}

static std::atomic<bool> go;

static void CUDART_CB wait(void *) {
    while (!go) {}
}

// That work is not done yet is not an error (CUDA C++ Programming Guide, "Error Checking").
static void queries() {
    cudaStream_t stream;
    cudaEvent_t event;
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&event));
    OK(cudaLaunchHostFunc(stream, wait, nullptr));
    OK(cudaEventRecord(event, stream));
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady && cudaEventQuery(event) == cudaErrorNotReady);
    OK(cudaPeekAtLastError());
    OK(cudaGetLastError());
    // Nor does it hide an earlier one.
    (void)cudaGraphCreate(nullptr, 1);
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady && cudaGetLastError() == cudaErrorInvalidValue);
    go = true;
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamQuery(stream));
    OK(cudaEventQuery(event));
    OK(cudaStreamDestroy(stream));
    OK(cudaEventDestroy(event));
}

// A surface needs an array that was made for surfaces.
static void surfaces() {
    const cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    cudaSurfaceObject_t surface;
    for (unsigned flags : {0u, (unsigned)cudaArraySurfaceLoadStore}) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        OK(cudaMallocArray(&resource.res.array.array, &channels, 8, 8, flags));
        if (flags == 0) {
            INVALID(cudaCreateSurfaceObject(&surface, &resource));
        } else {
            OK(cudaCreateSurfaceObject(&surface, &resource));
            OK(cudaDestroySurfaceObject(surface));
        }
        OK(cudaFreeArray(resource.res.array.array));
    }
}

static unsigned long long amount(cudaMemPool_t pool, cudaMemPoolAttr of) {
    unsigned long long bytes = 0;
    OK(cudaMemPoolGetAttribute(pool, of, &bytes));
    return bytes;
}

// A pool keeps freed memory up to its release threshold, until it is trimmed.
static void pools() {
    cudaMemPool_t pool;
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    for (unsigned long long threshold : {0ull, ~0ull}) {
        void *memory;
        OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
        OK(cudaMallocAsync(&memory, 5000, 0));
        CHECK(amount(pool, cudaMemPoolAttrUsedMemCurrent) >= 5000);
        CHECK(amount(pool, cudaMemPoolAttrReservedMemCurrent) >= amount(pool, cudaMemPoolAttrUsedMemCurrent));
        OK(cudaFreeAsync(memory, 0));
        OK(cudaStreamSynchronize(0));
        CHECK(amount(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
        CHECK((amount(pool, cudaMemPoolAttrReservedMemCurrent) >= 5000) == (threshold > 0));
        CHECK(amount(pool, cudaMemPoolAttrUsedMemHigh) >= 5000);
    }
    OK(cudaMemPoolTrimTo(pool, 0));
    CHECK(amount(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
    unsigned long long bytes = 1;
    INVALID(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
    INVALID(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &bytes));
    bytes = 0;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &bytes));
    CHECK(amount(pool, cudaMemPoolAttrUsedMemHigh) == 0);
}

int main() {
    memory();
    streams();
    queries();
    surfaces();
    pools();
    if (!failed) puts("ok");
    return failed;
}
