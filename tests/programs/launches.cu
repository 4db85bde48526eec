// Launches from device code: recursion, the tail and the fire-and-forget stream, copies and fills, errors, attributes. The results
// follow from the CUDA C++ Programming Guide, "CUDA Dynamic Parallelism".
#include <cstddef>
#include <cstdio>
#include <cstring>

static int failures = 0;
#define CHECK(what) if (!(what)) { std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); failures++; }

struct Range { long long first; int count; char pad; };

// Halves a range until it has one element.
__global__ void halve(Range range, int *values, double factor)
{
    if (range.count == 1) {
        values[range.first] = (int)(range.first * factor);
    } else {
        Range left = range, right = range;
        left.count = range.count / 2;
        right.first += left.count;
        right.count -= left.count;
        halve<<<1, 1>>>(left, values, factor);
        halve<<<1, 1, 0, cudaStreamFireAndForget>>>(right, values, factor);
    }
}

__global__ void add(int *sum, const int *values, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(sum, values[i]);
}

__global__ void compute(int *values, int *sum, int n)
{
    halve<<<1, 1>>>(Range { 0, n, 1 }, values, 3.0);
    add<<<1, 64, 0, cudaStreamTailLaunch>>>(sum, values, n);
}

// Launches itself for as long as there is work: the tail stream may go on as long as it likes.
__global__ void again(int *left, int *steps)
{
    extern __shared__ int shared[];
    shared[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        steps[0] += shared[1];
        if (--*left > 0)
            again<<<1, 2, 2 * sizeof(int), cudaStreamTailLaunch>>>(left, steps);
    }
}

__global__ void write(int *to, int value) { to[blockIdx.x * blockDim.x + threadIdx.x] = value; }

__global__ void order(int *a, int *b, int n)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMemsetAsync(a, 0xff, n * sizeof(int), stream);
    write<<<1, n / 2, 0, stream>>>(a, 7);
    cudaMemcpyAsync(b, a, n * sizeof(int), cudaMemcpyDeviceToDevice, stream);
    write<<<1, n, 0, stream>>>(a, 9);
    cudaStreamDestroy(stream);
}

__global__ void errors(int *seen)
{
    write<<<1, 2048>>>(seen, 1);
    seen[0] = cudaPeekAtLastError();
    seen[1] = cudaGetLastError();
    seen[2] = cudaGetLastError();
    cudaDeviceGetAttribute(&seen[3], cudaDevAttrWarpSize, 0);
    cudaDeviceGetAttribute(&seen[4], cudaDevAttrMultiProcessorCount, 0);
    seen[5] = cudaDeviceGetAttribute(&seen[6], cudaDevAttrWarpSize, 17);
    const char *text = cudaGetErrorString((cudaError_t)seen[1]), *wanted = "invalid configuration argument";
    while (*text && *text == *wanted)
        text++, wanted++;
    seen[7] = *text == 0 && *wanted == 0;
    cudaGetDevice(&seen[8]);
}

// Copies and fills of rows; the padding stays. Rows that overlap, and arrays, are refused.
__global__ void rows(unsigned char *to, unsigned char *from, int *seen)
{
    seen[0] = cudaMemset2DAsync(to, 16, 1, 5, 3, 0);
    seen[1] = cudaMemcpy2DAsync(to + 48, 8, from, 16, 7, 4, cudaMemcpyDeviceToDevice, 0);
    const cudaPitchedPtr box = { to + 80, 8, 8, 3 };
    const cudaExtent extent = { 6, 2, 2 };
    seen[2] = cudaMemset3DAsync(box, 2, extent, 0);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = { from, 16, 16, 4 };
    copy.srcPos = { 1, 1, 0 };
    copy.dstPtr = { to + 128, 8, 8, 2 };
    copy.dstPos = { 2, 0, 1 };
    copy.extent = { 3, 2, 2 };
    copy.kind = cudaMemcpyDeviceToDevice;
    seen[3] = cudaMemcpy3DAsync(&copy, 0);
    seen[4] = cudaMemcpy2DAsync(to, 4, from, 16, 5, 2, cudaMemcpyDeviceToDevice, 0);
    seen[5] = cudaMemset2DAsync(to, 4, 1, 5, 2, 0);
    copy.srcArray = (cudaArray_t)from;
    seen[6] = cudaMemcpy3DAsync(&copy, 0);
}

static void rows_of_device_code()
{
    unsigned char *to, *from, wanted[192] = {};
    int *seen;
    cudaMallocManaged(&to, sizeof wanted);
    cudaMallocManaged(&from, 128);
    cudaMallocManaged(&seen, 7 * sizeof(int));
    std::memset(to, 0, sizeof wanted);
    for (int i = 0; i < 128; i++)
        from[i] = 100 + i;
    for (int y = 0; y < 3; y++)
        std::memset(wanted + 16 * y, 1, 5);
    for (int y = 0; y < 4; y++)
        std::memcpy(wanted + 48 + 8 * y, from + 16 * y, 7);
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            std::memset(wanted + 80 + 8 * (3 * z + y), 2, 6);
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            std::memcpy(wanted + 128 + 8 * (2 * (z + 1) + y) + 2, from + 16 * (4 * z + y + 1) + 1, 3);
    rows<<<1, 1>>>(to, from, seen);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(std::memcmp(to, wanted, sizeof wanted) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(seen[i] == cudaSuccess);
    CHECK(seen[4] == cudaErrorInvalidPitchValue && seen[5] == cudaErrorInvalidValue && seen[6] == cudaErrorInvalidValue);
}

__global__ __launch_bounds__(256) void tile(double *to)
{
    __shared__ double values[100];
    values[threadIdx.x % 100] = to[threadIdx.x];
    __syncthreads();
    to[threadIdx.x] = values[99 - threadIdx.x % 100];
}

struct Answers {
    cudaFuncAttributes attributes;
    int ctas[3], device, devices, errors[10];
    cudaSharedMemConfig shared_banks;
    size_t limits[2];
    cudaFuncCache cache;
};

__global__ void ask(Answers *a)
{
    int e = 0;
    a->errors[e++] = cudaFuncGetAttributes(&a->attributes, tile);
    a->errors[e++] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&a->ctas[0], tile, 256, 0);
    a->errors[e++] = cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&a->ctas[1], tile, 64, 40000, 0);
    a->errors[e++] = cudaDeviceGetLimit(&a->limits[0], cudaLimitMallocHeapSize);
    a->errors[e++] = cudaDeviceGetLimit(&a->limits[1], cudaLimitStackSize);
    a->errors[e++] = cudaDeviceGetCacheConfig(&a->cache);
    a->errors[e++] = cudaDeviceGetSharedMemConfig(&a->shared_banks);
    a->errors[e++] = cudaDeviceGetLimit(&a->limits[0], (cudaLimit)77);
    a->errors[e++] = cudaFuncGetAttributes(&a->attributes, (const void *)a);
    a->errors[e++] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&a->ctas[2], tile, 0, 0);
    cudaGetDevice(&a->device);
    cudaGetDeviceCount(&a->devices);
}

// Device code reads what the host reads.
static void questions()
{
    Answers *a;
    cudaFuncAttributes wanted;
    int ctas[2], devices;
    size_t stack;
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 20 << 20) == cudaSuccess);
    CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1) == cudaSuccess);
    CHECK(cudaFuncSetAttribute(tile, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000) == cudaSuccess);
    cudaMallocManaged(&a, sizeof *a);
    std::memset(a, 0x55, sizeof *a);
    ask<<<1, 1>>>(a);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaFuncGetAttributes(&wanted, tile) == cudaSuccess);
    CHECK(std::memcmp(&wanted, &a->attributes, offsetof(cudaFuncAttributes, reserved)) == 0);
    CHECK(wanted.sharedSizeBytes == 800 && wanted.maxThreadsPerBlock == 256 && wanted.maxDynamicSharedSizeBytes == 60000);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas[0], tile, 256, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas[1], tile, 64, 40000);
    CHECK(a->ctas[0] == ctas[0] && a->ctas[1] == ctas[1] && ctas[0] > ctas[1] && a->ctas[2] == 0x55555555);
    cudaDeviceGetLimit(&stack, cudaLimitStackSize);
    CHECK(a->limits[0] == 20 << 20 && a->limits[1] == stack && a->cache == cudaFuncCachePreferL1);
    CHECK(a->shared_banks == cudaSharedMemBankSizeFourByte);
    cudaGetDeviceCount(&devices);
    CHECK(a->device == 0 && a->devices == devices);
    for (int i = 0; i < 7; i++)
        CHECK(a->errors[i] == cudaSuccess);
    CHECK(a->errors[7] == cudaErrorUnsupportedLimit && a->errors[8] == cudaErrorInvalidDeviceFunction);
    CHECK(a->errors[9] == cudaErrorInvalidValue);
}

// Every thread of several CTAs launches.
__global__ void many(int *counts)
{
    add<<<1, 1>>>(&counts[threadIdx.x], counts + 64, 1);
}

int main()
{
    const int n = 100;
    int *values, *sum;
    cudaMallocManaged(&values, n * sizeof(int));
    cudaMallocManaged(&sum, sizeof(int));
    *sum = 0;
    compute<<<1, 1>>>(values, sum, n);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    for (int i = 0; i < n; i++)
        CHECK(values[i] == 3 * i);
    CHECK(*sum == 3 * n * (n - 1) / 2);

    int *left, *steps;
    cudaMallocManaged(&left, sizeof(int));
    cudaMallocManaged(&steps, sizeof(int));
    *left = 200;
    *steps = 0;
    again<<<1, 2, 2 * sizeof(int)>>>(left, steps);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(*steps == 200);

    int *other;
    cudaMallocManaged(&other, n * sizeof(int));
    order<<<1, 1>>>(values, other, n);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    for (int i = 0; i < n; i++)
        CHECK(values[i] == 9 && other[i] == (i < n / 2 ? 7 : -1));

    rows_of_device_code();
    questions();

    int *seen, multiprocessors;
    cudaMallocManaged(&seen, 16 * sizeof(int));
    std::memset(seen, 0x55, 16 * sizeof(int));
    errors<<<1, 1>>>(seen);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
    CHECK(seen[0] == cudaErrorInvalidConfiguration && seen[1] == cudaErrorInvalidConfiguration && seen[2] == cudaSuccess);
    CHECK(seen[3] == 32 && seen[4] == multiprocessors && seen[5] == cudaErrorInvalidDevice && seen[7] == 1 && seen[8] == 0);

    int *counts;
    cudaMallocManaged(&counts, 65 * sizeof(int));
    std::memset(counts, 0, 65 * sizeof(int));
    counts[64] = 1;
    many<<<8, 64>>>(counts);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    for (int i = 0; i < 64; i++)
        CHECK(counts[i] == 8);

    if (!failures)
        std::puts("ok");
    return failures != 0;
}
