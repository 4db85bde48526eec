// A thread waits in a loop for the CTA, which a barrier then lets go on: nothing is acquired without a fence.
#define K extern "C" __global__ void

//@ grid=4 block=64 zero
K ticket_wrong(int* next, int* serving, int* data) {
  __shared__ int mine;
  if (threadIdx.x == 0) { mine = atomicAdd(next, 1); while (*(volatile int*)serving != mine) {} }
  __syncthreads();
  data[threadIdx.x] += 1;      //~ race
  __syncthreads();
  if (threadIdx.x == 0) { __threadfence(); atomicAdd(serving, 1); }
}
//@ grid=4 block=64 zero
K ticket_right(int* next, int* serving, int* data) {
  __shared__ int mine;
  if (threadIdx.x == 0) { mine = atomicAdd(next, 1); while (*(volatile int*)serving != mine) {} __threadfence(); }
  __syncthreads();
  data[threadIdx.x] += 1;
  __syncthreads();
  if (threadIdx.x == 0) { __threadfence(); atomicAdd(serving, 1); }
}
//@ grid=2 block=64 zero
K flag_wrong(int* flag, int* data) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 7;      //~ race
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *(volatile int*)flag = 1;
  } else {
    if (threadIdx.x == 0) while (!*(volatile int*)flag) {}
    __syncthreads();
    data[64 + threadIdx.x] = data[63 - threadIdx.x];      //~ race
  }
}
//@ grid=2 block=64 zero
K flag_fenced_right(int* flag, int* data) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 7;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *(volatile int*)flag = 1;
  } else {
    if (threadIdx.x == 0) { while (!*(volatile int*)flag) {} __threadfence(); }
    __syncthreads();
    data[64 + threadIdx.x] = data[63 - threadIdx.x];
  }
}
//@ grid=2 block=64 zero
K flag_fenced_by_all_right(int* flag, int* data) {      // each thread that has passed the barrier executes the fence
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 7;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *(volatile int*)flag = 1;
  } else {
    if (threadIdx.x == 0) while (!*(volatile int*)flag) {}
    __syncthreads();
    __threadfence();
    data[64 + threadIdx.x] = data[63 - threadIdx.x];
  }
}
//@ grid=2 block=64 zero
K flag_fenced_by_some_wrong(int* flag, int* data) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 7;      //~ race
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *(volatile int*)flag = 1;
  } else {
    if (threadIdx.x == 0) while (!*(volatile int*)flag) {}
    __syncthreads();
    if (threadIdx.x < 32) __threadfence();
    data[64 + threadIdx.x] = data[63 - threadIdx.x];      //~ race
  }
}
//@ grid=4 block=64 zero
K lock_wrong(int* lock, int* data) {
  if (threadIdx.x == 0) while (atomicCAS(lock, 0, 1)) {}
  __syncthreads();
  data[threadIdx.x] += 1;       //~ race
  __syncthreads();
  if (threadIdx.x == 0) { __threadfence(); atomicExch(lock, 0); }
}
//@ grid=4 block=64 zero
K lock_right(int* lock, int* data) {
  if (threadIdx.x == 0) { while (atomicCAS(lock, 0, 1)) {} __threadfence(); }
  __syncthreads();
  data[threadIdx.x] += 1;
  __syncthreads();
  if (threadIdx.x == 0) { __threadfence(); atomicExch(lock, 0); }
}
//@ grid=4 block=64 zero
K lock_by_exchange_wrong(int* lock, int* data) {
  if (threadIdx.x == 0) while (atomicExch(lock, 1)) {}
  __syncthreads();
  data[threadIdx.x] += 1;       //~ race
  __syncthreads();
  if (threadIdx.x == 0) { __threadfence(); atomicExch(lock, 0); }
}
//@ grid=4 block=32 coop zero
K grid_barrier_wrong(int* count, int* data) {
  data[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;      //~ race
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) { atomicAdd(count, 1); while (*(volatile int*)count < 4) {} }
  __syncthreads();
  data[128 + blockIdx.x * 32 + threadIdx.x] = data[(blockIdx.x * 32 + threadIdx.x + 32) % 128];   //~ race
}
//@ grid=4 block=32 coop zero
K grid_barrier_right(int* count, int* data) {
  data[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) { atomicAdd(count, 1); while (*(volatile int*)count < 4) {} __threadfence(); }
  __syncthreads();
  data[128 + blockIdx.x * 32 + threadIdx.x] = data[(blockIdx.x * 32 + threadIdx.x + 32) % 128];
}
//@ grid=4 block=64 zero
K last_by_ticket_right(int* count, int* data, int* out) {      // no thread waits: the barrier suffices
  __shared__ int last;
  data[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(count, 1) == 3;
  __syncthreads();
  if (last) out[threadIdx.x] = data[threadIdx.x] + data[192 + threadIdx.x];
}
//@ grid=4 block=64 zero
K last_by_retried_update_right(int* count, int* data, int* out) {      // nor here, where an update is tried again
  __shared__ int last;
  data[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    int old = *(volatile int*)count, seen;
    do { seen = old; old = atomicCAS(count, seen, seen + 1); } while (old != seen);
    last = old == 3;
  }
  __syncthreads();
  if (last) out[threadIdx.x] = data[threadIdx.x] + data[192 + threadIdx.x];
}
