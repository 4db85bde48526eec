// Messages, turns and locks between CTAs, and the scopes of what they use.
#include <cuda/atomic>
#define K extern "C" __global__ void
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto D = cuda::thread_scope_device;
[[maybe_unused]] constexpr auto B = cuda::thread_scope_block;
using cuda::memory_order_acquire, cuda::memory_order_release, cuda::memory_order_relaxed, cuda::memory_order_acq_rel, cuda::memory_order_seq_cst;
// A ticket lock for whole blocks, polled relaxed, then a barrier: no acquire
//@ grid=4 block=64 zero
K block_ticket_no_release_wrong(int* next, int* serving, int* data) {
  if (threadIdx.x == 0) { int mine = atomicAdd(next, 1); while (*(volatile int*)serving != mine) {} __threadfence(); }
  __syncthreads();
  data[threadIdx.x] += 1;         //~ race
  __syncthreads();
  if (threadIdx.x == 0) { atomicAdd(serving, 1); }
}
// flag polled relaxed, then a barrier
// spin lock by CAS relaxed and then a barrier
// the fence only of block scope
//@ grid=4 block=64 zero
K block_spin_narrow_wrong(int* lock, int* data) {
  if (threadIdx.x == 0) { while (atomicCAS(lock, 0, 1)) {} __threadfence(); }
  __syncthreads();
  data[threadIdx.x] += 1;     //~ race
  __syncthreads();
  if (threadIdx.x == 0) { __threadfence_block(); atomicExch(lock, 0); }
}
// grid barrier by hand, relaxed poll then barrier
// grid barrier by hand, arriving with red.release and polling with ld.acquire, block scope at the poll
//@ grid=4 block=32 coop zero
K grid_barrier_narrow_poll_wrong(int* count, int* data) {
  data[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;      //~ race
  __syncthreads();
  if (threadIdx.x == 0) { Ref<D>(*count).fetch_add(1, memory_order_release); while (Ref<B>(*count).load(memory_order_acquire) < 4) {} }    
  __syncthreads();
  data[128 + blockIdx.x * 32 + threadIdx.x] = data[(blockIdx.x * 32 + threadIdx.x + 32) % 128];   //~ race
}
//@ grid=4 block=32 coop zero
K grid_barrier_acq_rel_right(int* count, int* data) {
  data[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) { Ref<D>(*count).fetch_add(1, memory_order_release); while (Ref<D>(*count).load(memory_order_acquire) < 4) {} }
  __syncthreads();
  data[128 + blockIdx.x * 32 + threadIdx.x] = data[(blockIdx.x * 32 + threadIdx.x + 32) % 128];
}
// work stealing: own half by block scoped counter, thieves by the device scoped one
//@ grid=4 block=32 zero
K steal_counter_scopes_wrong(int* head, int* out) {
  if (threadIdx.x) return;
  int i;
  while ((i = atomicAdd_block(&head[blockIdx.x], 1)) < 4) out[blockIdx.x * 4 + i] = 1;             //~ race
  int v = (blockIdx.x + 1) % 4;
  while ((i = atomicAdd(&head[v], 1)) < 4) out[v * 4 + i] = 2;                     //~ race
}
//@ grid=4 block=32 zero
K steal_counter_scopes_right(int* head, int* out) {
  if (threadIdx.x) return;
  int i;
  while ((i = atomicAdd(&head[blockIdx.x], 1)) < 4) out[blockIdx.x * 4 + i] = 1;
  int v = (blockIdx.x + 1) % 4;
  while ((i = atomicAdd(&head[v], 1)) < 4) out[v * 4 + i] = 2;
}
// chained blocks: next block starts with what the previous one left, fence is missing at the reader
//@ grid=4 block=32 zero
K relay_reader_no_fence_wrong(int* turn, int* acc) {
  if (threadIdx.x == 0) {
    while (atomicAdd(turn, 0) != blockIdx.x) {}
    acc[0] += blockIdx.x;           //~ race
    __threadfence();
    atomicExch(turn, blockIdx.x + 1);
  }
}
//@ grid=4 block=32 zero
K relay_right(int* turn, int* acc) {
  if (threadIdx.x == 0) {
    while (atomicAdd(turn, 0) != blockIdx.x) {}
    __threadfence();
    acc[0] += blockIdx.x;
    __threadfence();
    atomicExch(turn, blockIdx.x + 1);
  }
}
// only the accumulator itself is atomic: needs no fence
//@ grid=4 block=32 zero
K relay_atomic_data_right(int* turn, int* acc) {
  if (threadIdx.x == 0) {
    while (atomicAdd(turn, 0) != blockIdx.x) {}
    atomicAdd(acc, blockIdx.x);
    atomicExch(turn, blockIdx.x + 1);
  }
}
// A matrix row locked by each block: lock per row, wrong scope on the unlock
//@ grid=4 block=32 zero
K row_locks_wrong(int* lock, int* c) {
  for (int r = 0; r < 4; r++) {
    if (threadIdx.x == 0) { while (atomicCAS_block(&lock[r], 0, 1)) {} __threadfence(); }   //~ race
    __syncwarp();
    c[r * 32 + threadIdx.x] += 1;            //~ race
    __syncwarp();
    if (threadIdx.x == 0) { __threadfence(); atomicExch(&lock[r], 0); }      //~ race
  }
}
//@ grid=4 block=32 zero
K row_locks_right(int* lock, int* c) {
  for (int r = 0; r < 4; r++) {
    if (threadIdx.x == 0) { while (atomicCAS(&lock[r], 0, 1)) {} __threadfence(); }
    __syncwarp();
    c[r * 32 + threadIdx.x] += 1;
    __syncwarp();
    if (threadIdx.x == 0) { __threadfence(); atomicExch(&lock[r], 0); }
  }
}
//@ grid=4 block=32 zero
K row_locks_no_syncwarp_wrong(int* lock, int* c) {
  for (int r = 0; r < 4; r++) {
    if (threadIdx.x == 0) { while (atomicCAS(&lock[r], 0, 1)) {} __threadfence(); }
    __syncwarp();
    c[r * 32 + threadIdx.x] += 1;        //~ race
    if (threadIdx.x == 0) { __threadfence(); atomicExch(&lock[r], 0); }
  }
}
// exponential: message by two words, valid bit in the last
//@ grid=2 block=32 zero
K two_words_wrong(int* box, int* out) {
  if (threadIdx.x) return;
  volatile int* v = box;
  if (blockIdx.x == 0) { box[0] = 5; v[1] = 1; }              //~ race
  else { while (!v[1]) {} __threadfence(); out[0] = box[0]; }     //~ race
}
//@ grid=2 block=32 zero
K two_words_right(int* box, int* out) {
  if (threadIdx.x) return;
  volatile int* v = box;
  if (blockIdx.x == 0) { box[0] = 5; __threadfence(); v[1] = 1; }
  else { while (!v[1]) {} __threadfence(); out[0] = box[0]; }
}
// packed in one 64-bit word: right without any fence
//@ grid=2 block=32 zero
K one_word_right(unsigned long long* box, int* out) {
  if (threadIdx.x) return;
  volatile unsigned long long* v = box;
  if (blockIdx.x == 0) *v = 5ull << 32 | 1;
  else { unsigned long long x; while (!((x = *v) & 1)) {} out[0] = x >> 32; }
}
// the flag is cleared by the reader while the writer sends the next one without looking
//@ grid=2 block=32 zero
K no_backpressure_wrong(int* flag, int* data, int* out) {
  if (threadIdx.x) return;
  Ref<D> f(*flag);
  for (int i = 1; i < 4; i++) {
    if (blockIdx.x == 0) { data[0] = i; f.store(i, memory_order_release); }        //~ race
    else { while (f.load(memory_order_acquire) < i) {} out[i] = data[0]; }        //~ race
  }
}
//@ grid=2 block=32 zero
K backpressure_right(int* flag, int* data, int* out) {
  if (threadIdx.x) return;
  Ref<D> f(*flag);
  for (int i = 1; i < 4; i++) {
    if (blockIdx.x == 0) { while (f.load(memory_order_acquire) != 0) {} data[0] = i; f.store(1, memory_order_release); }
    else { while (f.load(memory_order_acquire) != 1) {} out[i] = data[0]; f.store(0, memory_order_release); }
  }
}
// reader releases the slot before it has read
//@ grid=2 block=32 zero
K backpressure_early_wrong(int* flag, int* data, int* out) {
  if (threadIdx.x) return;
  Ref<D> f(*flag);
  for (int i = 1; i < 4; i++) {
    if (blockIdx.x == 0) { while (f.load(memory_order_acquire) != 0) {} data[0] = i; f.store(1, memory_order_release); }     //~ race
    else { while (f.load(memory_order_acquire) != 1) {} f.store(0, memory_order_release); out[i] = data[0]; }     //~ race
  }
}
// two producers, one consumer that waits for the count of one
//@ grid=3 block=32 zero
K wait_for_one_wrong(int* n, int* data, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x < 2) { data[blockIdx.x] = 3; __threadfence(); atomicAdd(n, 1); }      //~ race
  else { while (atomicAdd(n, 0) < 1) {} __threadfence(); out[0] = data[0] + data[1]; }     //~ race
}
//@ grid=3 block=32 zero
K wait_for_both_right(int* n, int* data, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x < 2) { data[blockIdx.x] = 3; __threadfence(); atomicAdd(n, 1); }
  else { while (atomicAdd(n, 0) < 2) {} __threadfence(); out[0] = data[0] + data[1]; }
}
// convolution with halo from the neighbour block's freshly written cells
//@ grid=4 block=32 zero
K conv_halo_wrong(int* a, int* b) {
  int t = blockIdx.x * 32 + threadIdx.x;
  a[t] = t;                    //~ race
  __threadfence(); __syncthreads();
  b[t] = a[t] + a[(t + 1) % 128];       //~ race
}
// atomics of block scope in one block only, and the total by device scope
//@ grid=2 block=64 zero
K block_then_device_right(int* part, int* total) {
  atomicAdd_block(&part[blockIdx.x], 1);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(total, part[blockIdx.x]);
}
//@ grid=2 block=64 zero
K block_pairs_wrong(int* part, int* total) {
  atomicAdd_block(&part[blockIdx.x / 2], 1);      //~ race
}
