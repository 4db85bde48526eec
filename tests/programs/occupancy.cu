// CUDA's occupancy calculator, which programs contain, knows the device by its properties alone. It says what the runtime says.
#include <cuda_occupancy.h>
#include <cstdio>

static int failed;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #what);                                                          \
            failed = 1;                                                                                                \
        }                                                                                                              \
    } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

__global__ void store(int *to) { to[threadIdx.x] = 1; }

int main() {
    cudaDeviceProp properties;
    cudaFuncAttributes attributes;
    OK(cudaGetDeviceProperties(&properties, 0));
    OK(cudaFuncGetAttributes(&attributes, store));
    cudaOccDeviceProp device(properties);
    cudaOccFuncAttributes function(attributes);
    cudaOccDeviceState state;

    int grid = 0, threads = 0, own_grid = 0, own_threads = 0;
    CHECK(cudaOccMaxPotentialOccupancyBlockSize(&grid, &threads, &device, &function, &state, (size_t)0) == CUDA_OCC_SUCCESS);
    OK(cudaOccupancyMaxPotentialBlockSize(&own_grid, &own_threads, store, 0, 0));
    CHECK(threads == own_threads && grid == own_grid);

    for (int size = 128; size <= 1024; size *= 2) {
        cudaOccResult result;
        int blocks = 0;
        CHECK(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, size, 0) == CUDA_OCC_SUCCESS);
        OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, size, 0));
        CHECK(result.activeBlocksPerMultiprocessor == blocks && blocks > 0);
    }
    puts(failed ? "failed" : "ok");
    return failed;
}
