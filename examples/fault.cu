// A kernel that forgets half of its bounds check: what a fault looks like, with the PTX line and the CUDA line.

struct Extent {
  int width, height;
};

__device__ __noinline__ void put(float *cells, Extent extent, int x, int y, float value) {
  cells[y * extent.width + x] = value;
}

extern "C" __global__ void fill(float *cells, Extent extent) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (y < extent.height) put(cells, extent, x, y, 1.0f);  // and x < extent.width?
}
