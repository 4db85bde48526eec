// C = A B for any sizes, by tiles of 16 x 16 in shared memory, with a barrier before and after each tile's use.

template <int TILE>
__device__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float as[TILE][TILE];
  __shared__ float bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < k; t += TILE) {
    int ax = t + threadIdx.x, by = t + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < m && ax < k ? a[row * k + ax] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = by < k && col < n ? b[by * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; i++) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

extern "C" __global__ void matmul16(const float *a, const float *b, float *c, int m, int n, int k) {
  matmul<16>(a, b, c, m, n, k);
}
