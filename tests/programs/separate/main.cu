// A program of two files, one of which calls a device function of the other and shares a variable with it (`nvcc -rdc=true`).
#include <cstdio>

extern __device__ int shared_count;
extern __device__ int twice(int x);

__global__ void apply(int *x) {
    x[threadIdx.x] = twice(x[threadIdx.x]);
    atomicAdd(&shared_count, 1);
}

int main() {
    int *x, count = 0;
    if (cudaMallocManaged(&x, 64 * sizeof *x) != cudaSuccess) return 1;
    for (int i = 0; i < 64; i++) x[i] = i;
    apply<<<1, 64>>>(x);
    if (cudaDeviceSynchronize() != cudaSuccess || cudaMemcpyFromSymbol(&count, shared_count, sizeof count) != cudaSuccess) return 1;
    for (int i = 0; i < 64; i++)
        if (x[i] != 2 * i) return printf("x[%d] is %d\n", i, x[i]), 1;
    if (count != 64) return printf("count is %d\n", count), 1;
    puts("ok");
    return 0;
}
