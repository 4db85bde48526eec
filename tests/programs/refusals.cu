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
    // "`width` must not exceed either `dpitch` or `spitch`", also where there is only one row.
    REFUSED(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 4, own, 8, 8, 2, cudaMemcpyHostToDevice));
    REFUSED(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 8, own, 4, 8, 1, cudaMemcpyHostToDevice));
    REFUSED(cudaErrorInvalidPitchValue, cudaMemcpy2DAsync(own, 8, device, 4, 8, 2, cudaMemcpyDeviceToHost, 0));
    REFUSED(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 1ull << 31, own, 8, 8, 1, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(device, 8, own, 8, 8, 2, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(device, 0, own, 0, 0, 2, cudaMemcpyHostToDevice)); // no bytes
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

// Linear memory of a texture is aligned (`cudaCreateTextureObject`).
static void linear_textures() {
    char *memory;
    size_t pitch;
    cudaTextureObject_t texture;
    OK(cudaMallocPitch((void **)&memory, &pitch, 200, 4));
    cudaTextureDesc options = {};
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = 8;
    resource.res.pitch2D.height = 2;
    for (size_t wrong : {0, 4}) {
        resource.res.pitch2D.devPtr = memory + wrong;
        resource.res.pitch2D.pitchInBytes = pitch;
        if (wrong) {
            INVALID(cudaCreateTextureObject(&texture, &resource, &options, nullptr));
        } else {
            OK(cudaCreateTextureObject(&texture, &resource, &options, nullptr));
            OK(cudaDestroyTextureObject(texture));
        }
        resource.res.pitch2D.pitchInBytes = 36; // 8 texels fit, but it is no multiple of `texturePitchAlignment`
        INVALID(cudaCreateTextureObject(&texture, &resource, &options, nullptr));
    }
    resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = 64;
    resource.res.linear.devPtr = memory + 16;
    INVALID(cudaCreateTextureObject(&texture, &resource, &options, nullptr));
    resource.res.linear.devPtr = memory;
    OK(cudaCreateTextureObject(&texture, &resource, &options, nullptr));
    OK(cudaDestroyTextureObject(texture));
    OK(cudaFree(memory));
}

static cudaError_t instantiate(cudaGraphExec_t *exec, cudaGraph_t graph) {
#if CUDART_VERSION >= 12000
    return cudaGraphInstantiate(exec, graph, 0);
#else
    return cudaGraphInstantiate(exec, graph, nullptr, nullptr, 0);
#endif
}

// A graph with memory nodes cannot be cloned, be a child graph or lose a node, and has one instantiation at a time
// (`cudaGraphAddMemAllocNode`).
static void memory_of_graphs() {
    cudaGraph_t graph, other;
    cudaGraphNode_t allocation, release, node;
    cudaGraphExec_t exec, second;
    OK(cudaGraphCreate(&graph, 0));
    cudaMemAllocNodeParams params = {};
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location = {cudaMemLocationTypeDevice, 0};
    params.bytesize = 256;
    OK(cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &params));
    OK(cudaGraphAddMemFreeNode(&release, graph, &allocation, 1, params.dptr));
    INVALID(cudaGraphClone(&other, graph));
    OK(cudaGraphCreate(&other, 0));
    INVALID(cudaGraphAddChildGraphNode(&node, other, nullptr, 0, graph));
    INVALID(cudaGraphDestroyNode(release));
    OK(instantiate(&exec, graph));
    INVALID(instantiate(&second, graph));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaGraphLaunch(exec, 0));
    INVALID(cudaFreeAsync(params.dptr, 0)); // the graph has freed it
    OK(cudaStreamSynchronize(0));
    OK(cudaGraphExecDestroy(exec));
    OK(instantiate(&second, graph));
    OK(cudaGraphExecDestroy(second));
    OK(cudaGraphDestroy(graph));
    // Others have any number.
    OK(cudaGraphAddEmptyNode(&node, other, nullptr, 0));
    OK(instantiate(&exec, other));
    OK(instantiate(&second, other));
    OK(cudaGraphClone(&graph, other));
    OK(cudaGraphDestroyNode(node));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphExecDestroy(second));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(other));
}

__global__ void wait_for(volatile int *flag, int *to) {
    while (*flag == 0) {
    }
    *to = *flag;
}

// Launches of graphs that allocate return at once: the kernel ends when the host has set a flag. What a launch leaves allocated has to be
// freed before the next one.
static void launches_of_graphs_with_memory() {
    volatile int *flag;
    int *memory, seen = 0;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaHostAlloc((void **)&flag, sizeof *flag, cudaHostAllocMapped));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaMallocAsync((void **)&memory, 4096, stream));
    wait_for<<<1, 1, 0, stream>>>(flag, memory);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(instantiate(&exec, graph));
    for (int value = 1; value < 4; value++) {
        *flag = 0;
        OK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
        INVALID(cudaGraphLaunch(exec, stream));
        *flag = value;
        OK(cudaMemcpyAsync(&seen, memory, sizeof seen, cudaMemcpyDeviceToHost, stream));
        OK(cudaFreeAsync(memory, stream));
        INVALID(cudaFreeAsync(memory, stream));
        OK(cudaStreamSynchronize(stream));
        CHECK(seen == value);
    }
    // What the last launch leaves belongs to the program, also when the graph is gone.
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(&seen, memory, sizeof seen, cudaMemcpyDeviceToHost));
    CHECK(seen == 3);
    OK(cudaFree(memory));
    INVALID(cudaFree(memory));
    OK(cudaStreamDestroy(stream));
    OK(cudaFreeHost((void *)flag));
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
    linear_textures();
    memory_of_graphs();
    launches_of_graphs_with_memory();
    pools();
    if (!failed) puts("ok");
    return failed;
}
