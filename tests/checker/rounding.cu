// All lanes store what their warp has added up by butterfly shuffles: the same up to rounding, as in kernels of Triton, which fuses products.
#define K extern "C" __global__ void
__device__ float fused(float x) { float y = __fmaf_rn(x, x, __shfl_xor_sync(~0u, __fmul_rn(x, x), 16)); y += __shfl_xor_sync(~0u, y, 8); y += __shfl_xor_sync(~0u, y, 4); return y; }
//@ block=64
K all_lanes_store_their_sum_right(float* a, float* o) { __shared__ float s[2]; int t = threadIdx.x; float y = fused(a[t] * 0.1f + 0.37f * t); y += __shfl_xor_sync(~0u, y, 2); y += __shfl_xor_sync(~0u, y, 1);
   s[t / 32] = y; __syncthreads(); o[t] = s[0] + s[1]; }
//@ block=64
K sum_of_eight_lanes_is_not_that_of_four_wrong(float* a, float* o) { __shared__ float s[2]; int t = threadIdx.x; float y = fused(a[t] * 0.1f + 0.37f * t);
   s[t / 32] = y;  //~ race
   __syncthreads(); o[t] = s[0] + s[1]; }
//@ block=64
K groups_of_eight_lanes_store_their_sum_right(float* a, float* o) { __shared__ float s[16]; int t = threadIdx.x; float x = a[t] * 0.1f + 0.37f * t; float y = __fmaf_rn(x, x, __shfl_xor_sync(~0u, __fmul_rn(x, x), 4)); y += __shfl_xor_sync(~0u, y, 2); y += __shfl_xor_sync(~0u, y, 1);
   s[t / 8] = y; __syncthreads(); o[t] = s[t % 8]; }
//@ block=64
K own_value_besides_the_sum_wrong(float* a, float* o) { __shared__ float s[2]; int t = threadIdx.x; float x = a[t] * 0.1f + 0.37f * t, y = fused(x); y += __shfl_xor_sync(~0u, y, 2); y += __shfl_xor_sync(~0u, y, 1); if (y > 0) o[t] = y;
   s[t / 32] = x;  //~ race
   __syncthreads(); o[t] += s[0] + s[1]; }
// Mean and sum of squares, as in Welford's algorithm.
//@ block=64
K all_lanes_store_their_mean_right(float* a, float* o) { __shared__ float s[4]; int t = threadIdx.x; float mean = a[t] * 0.1f + 0.37f * t * t, m2 = 0, n = 1;
   for (int k = 16; k; k /= 2) { float d = __shfl_xor_sync(~0u, mean, k) - mean, q = __shfl_xor_sync(~0u, m2, k); mean += d * (n / (n + n)); m2 = m2 + q + d * d * 0.3f * n; n *= 2; }
   s[t / 32] = mean; s[2 + t / 32] = m2; __syncthreads(); o[t] = s[0] + s[1] + s[2] + s[3]; }
// Each lane stores another integer.
//@ block=64
K all_lanes_store_integers_wrong(int* a, int* o) { __shared__ int s[2]; int t = threadIdx.x; int y = a[t]; for (int k = 16; k; k /= 2) y = y * 3 + __shfl_xor_sync(~0u, y, k);
   s[t / 32] = y;  //~ race
   __syncthreads(); o[t] = s[0] + s[1]; }
