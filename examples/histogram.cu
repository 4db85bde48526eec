// How often each byte occurs: counted with atomics in (dynamic) shared memory, then added to global memory.

extern __shared__ unsigned counts[];

extern "C" __global__ void histogram(int n, const unsigned char *bytes, unsigned *bins) {
  for (int i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[bytes[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (counts[i]) atomicAdd(&bins[i], counts[i]);
}
