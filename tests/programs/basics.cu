// The runtime API as programs use it every day: symbols, managed memory, streams and events, errors, properties, pointers. Every
// result is exact arithmetic.
#include <cstdio>
#include <cstring>

__constant__ int factor;
__device__ int table[64];
__managed__ unsigned total;

__global__ void scale(int *to, const int *from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        to[i] = from[i] * factor + table[i % 64];
        atomicAdd(&total, 1u);
    }
}

template <typename T> __global__ void sum(T *out, const T *in, int n) {
    extern __shared__ unsigned char room[];
    T *part = reinterpret_cast<T *>(room);
    T own = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) own += in[i];
    part[threadIdx.x] = own;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = part[0];
}

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, cudaGetErrorString(cudaGetLastError()));             \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

int main() {
    const int n = 1000;
    int host[n], back[n], numbers[64], seven = 7, read = 0;
    for (int i = 0; i < n; i++) host[i] = i;
    for (int i = 0; i < 64; i++) numbers[i] = -i;

    int count = 0, version = 0;
    OK(cudaGetDeviceCount(&count));
    CHECK(count >= 1);
    OK(cudaRuntimeGetVersion(&version));
    CHECK(version / 1000 == CUDART_VERSION / 1000);
    struct { cudaDeviceProp of; unsigned char guard[16]; } properties;
    memset(&properties, 0xa5, sizeof properties);
    OK(cudaGetDeviceProperties(&properties.of, 0));
    CHECK(properties.guard[0] == 0xa5); // the structure has the layout that this release has
    CHECK(properties.of.warpSize == 32 && properties.of.maxThreadsPerBlock == 1024 && properties.of.multiProcessorCount >= 1);
    int major = 0;
    OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    CHECK(major == properties.of.major);

    int *from, *to;
    OK(cudaMalloc(&from, sizeof host));
    OK(cudaMalloc(&to, sizeof host));
    OK(cudaMemcpyToSymbol(factor, &seven, sizeof seven));
    OK(cudaMemcpyFromSymbol(&read, factor, sizeof read));
    CHECK(read == 7);
    OK(cudaMemcpyToSymbol(table, numbers, sizeof numbers));
    cudaStream_t stream;
    cudaEvent_t begin, end;
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&begin));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(begin, stream));
    OK(cudaMemcpyAsync(from, host, sizeof host, cudaMemcpyHostToDevice, stream));
    scale<<<(n + 127) / 128, 128, 0, stream>>>(to, from, n);
    OK(cudaGetLastError());
    OK(cudaMemcpyAsync(back, to, sizeof back, cudaMemcpyDeviceToHost, stream));
    OK(cudaEventRecord(end, stream));
    OK(cudaStreamSynchronize(stream));
    float ms = -1;
    OK(cudaEventElapsedTime(&ms, begin, end));
    CHECK(ms >= 0);
    for (int i = 0; i < n; i++) CHECK(back[i] == 7 * i - i % 64);
    CHECK(total == n);

    long long *sums, result = 0, many[n];
    for (int i = 0; i < n; i++) many[i] = i;
    OK(cudaMallocManaged(&sums, sizeof many + sizeof result));
    memcpy(sums + 1, many, sizeof many);
    sum<<<1, 256, 256 * sizeof(long long)>>>(sums, sums + 1, n);
    OK(cudaDeviceSynchronize());
    result = sums[0];
    CHECK(result == n * (n - 1) / 2);

    struct { cudaPointerAttributes of; unsigned char guard[16]; } pointer;
    memset(&pointer, 0xa5, sizeof pointer);
    OK(cudaPointerGetAttributes(&pointer.of, from));
    CHECK(pointer.guard[0] == 0xa5 && pointer.of.type == cudaMemoryTypeDevice && pointer.of.devicePointer == from);
    OK(cudaPointerGetAttributes(&pointer.of, sums));
    CHECK(pointer.of.type == cudaMemoryTypeManaged);
    struct { cudaFuncAttributes of; unsigned char guard[16]; } function;
    memset(&function, 0xa5, sizeof function);
    OK(cudaFuncGetAttributes(&function.of, scale));
    CHECK(function.guard[0] == 0xa5 && function.of.maxThreadsPerBlock == 1024);
    int blocks = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 256, 0));
    CHECK(blocks >= 1);

    // An error is there once, and a launch that cannot be is one.
    CHECK(cudaMalloc(&from, ~size_t(0) / 2) == cudaErrorMemoryAllocation);
    CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaSuccess);
    scale<<<1, 2048>>>(to, from, n);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    OK(cudaFree(to));
    OK(cudaStreamDestroy(stream));
    puts("ok");
    return 0;
}
