// Moves each element one place to the left, with two mistakes: a barrier is missing, and the last block reads past the end.
#include <cstdio>

__global__ void shift(float *to, const float *from) {
    __shared__ float tile[129];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = from[i];
    if (threadIdx.x == 127) tile[128] = from[i + 1];
    to[i] = tile[threadIdx.x + 1];
}

int main() {
    const int n = 1024;
    float *to, *from;
    cudaMalloc(&to, n * sizeof(float));
    cudaMalloc(&from, n * sizeof(float));
    cudaMemset(from, 0, n * sizeof(float));
    shift<<<n / 128, 128>>>(to, from);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
