// The other half of main.cu.
__device__ int shared_count;

__device__ int twice(int x) { return 2 * x; }
