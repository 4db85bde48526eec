// Recursion under divergence: every lane goes to its own depth. Ackermann's function and the n queens, on the device's stack.

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ __noinline__ int queens(int n, unsigned columns, unsigned left, unsigned right) {
  unsigned all = (1u << n) - 1;
  if (columns == all) return 1;
  int found = 0;
  for (unsigned free = all & ~(columns | left | right); free; free &= free - 1) {
    unsigned bit = free & (0u - free);
    found += queens(n, columns | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return found;
}

extern "C" __global__ void recursion(int *ack, int *solutions) {
  int i = threadIdx.x;
  ack[i] = ackermann(i % 3, i);
  solutions[i] = i < 9 ? queens(i, 0, 0, 0) : -1;
}
