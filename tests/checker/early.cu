// Waits for a value that comes too early: the thread that looks late finds more than it waits for.
#include <cuda/atomic>
#define K extern "C" __global__ void
#define B blockIdx.x
#define T threadIdx.x
#define ONE if (threadIdx.x) return
using Counter = cuda::atomic_ref<int, cuda::thread_scope_device>;
using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr auto acquire = cuda::memory_order_acquire;
constexpr auto release = cuda::memory_order_release;
constexpr auto acq_rel = cuda::memory_order_acq_rel;
__device__ int arrived, stage[16], head_, tail_, epoch, token;
__device__ unsigned sequence;

__device__ __forceinline__ void await(int* at, int least) { while (Counter(*at).load(acquire) < least) {} }

// Grid barriers.
//@ grid=8 block=32 zero
K barrier_right(int* d) {
  d[B] = B + 1;
  __syncthreads(); if (T == 0) { Counter(arrived).fetch_add(1, acq_rel); await(&arrived, gridDim.x); } __syncthreads();
  d[64 + B] = d[(B + 1) % gridDim.x];
}
//@ grid=8 block=32 zero
K barrier_one_too_few_wrong(int* d) {
  d[B] = B + 1; //~ race
  __syncthreads(); if (T == 0) { Counter(arrived).fetch_add(1, acq_rel); await(&arrived, gridDim.x - 1); } __syncthreads();
  d[64 + B] = d[(B + 1) % gridDim.x]; //~ race
}
//@ grid=8 block=32 zero
K barrier_half_wrong(int* d) {
  d[B] = B + 1; //~ race
  __syncthreads(); if (T == 0) { __threadfence(); atomicAdd(&arrived, 1); while (*(volatile int*)&arrived < gridDim.x / 2) {} __threadfence(); } __syncthreads();
  d[64 + B] = d[(B + 1) % gridDim.x]; //~ race
}
//@ grid=8 block=32 zero
K barrier_rounds_right(int* d) {
  for (int r = 0; r < 3; r++) {
    d[r * 64 + B] = B + r + (r ? d[(r - 1) * 64 + (B + 3) % gridDim.x] : 0);
    __syncthreads(); if (T == 0) { __threadfence(); atomicAdd(&arrived, 1); while (*(volatile int*)&arrived < gridDim.x * (r + 1)) {} __threadfence(); } __syncthreads();
  }
}
//@ grid=8 block=32 zero
K barrier_rounds_not_counted_wrong(int* d) {
  for (int r = 0; r < 3; r++) {
    d[r * 64 + B] = B + r + (r ? d[(r - 1) * 64 + (B + 3) % gridDim.x] : 0); //~ race
    __syncthreads(); if (T == 0) { __threadfence(); atomicAdd(&arrived, 1); while (*(volatile int*)&arrived < gridDim.x) {} __threadfence(); } __syncthreads();
  }
}
//@ grid=8 block=32 zero
K barrier_generation_right(int* d) {
  for (int r = 0; r < 3; r++) {
    d[r * 64 + B] = B + r + (r ? d[(r - 1) * 64 + (B + 3) % gridDim.x] : 0);
    __syncthreads();
    if (T == 0) {
      int old = Counter(epoch).load(relaxed);
      if (Counter(arrived).fetch_add(1, acq_rel) == gridDim.x - 1) { Counter(arrived).store(0, relaxed); Counter(epoch).fetch_add(1, release); }
      else while (Counter(epoch).load(acquire) == old) {}
    }
    __syncthreads();
  }
}

// Stages of a pipeline: 1 half done, 2 done.
//@ grid=2 block=32 zero
K stages_right(int* d) {
  ONE;
  if (B == 0) { d[0] = 7; Counter(stage[0]).store(1, release); d[1] = 8; Counter(stage[0]).store(2, release); }
  else { await(&stage[0], 2); d[2] = d[0] + d[1]; }
}
//@ grid=2 block=32 zero
K stages_first_half_right(int* d) {
  ONE;
  if (B == 0) { d[0] = 7; Counter(stage[0]).store(1, release); d[1] = 8; Counter(stage[0]).store(2, release); }
  else { await(&stage[0], 1); d[2] = d[0]; }
}
//@ grid=2 block=32 zero
K stages_half_wrong(int* d) {
  ONE;
  if (B == 0) { d[0] = 7; Counter(stage[0]).store(1, release); 
    d[1] = 8; Counter(stage[0]).store(2, release); } //~ race
  else { await(&stage[0], 1); 
    d[2] = d[0] + d[1]; } //~ race
}
//@ grid=2 block=32 zero
K stages_any_value_wrong(int* d) {
  ONE;
  if (B == 0) { d[0] = 7; __threadfence(); *(volatile int*)&stage[0] = 1; 
    d[1] = 8; __threadfence(); *(volatile int*)&stage[0] = 2; } //~ race
  else { while (!*(volatile int*)&stage[0]) {} __threadfence(); 
    d[2] = d[1]; } //~ race
}
// Tiles with several producers.
//@ grid=4 block=32 zero
K producers_right(int* d) {
  ONE;
  if (B < 3) { d[B] = B; __threadfence(); atomicAdd(&stage[1], 1); }
  else { while (atomicAdd(&stage[1], 0) != 3) {} __threadfence(); d[8] = d[0] + d[1] + d[2]; }
}
//@ grid=4 block=32 zero
K producers_two_of_three_wrong(int* d) {
  ONE;
  if (B < 3) { 
    d[B] = B; __threadfence(); atomicAdd(&stage[1], 1); } //~ race
  else { while (atomicAdd(&stage[1], 0) < 2) {} __threadfence(); 
    d[8] = d[0] + d[1] + d[2]; } //~ race
}
//@ grid=4 block=32 zero
K chain_right(int* d) { ONE; await(&token, B); d[B] = B ? d[B - 1] + 1 : 1; Counter(token).store(B + 1, release); }
//@ grid=4 block=32 zero
K chain_too_early_wrong(int* d) { ONE; await(&token, (int)B - 1); 
  d[B] = B ? d[B - 1] + 1 : 1; Counter(token).fetch_add(1, acq_rel); } //~ race

// Rings of four slots.
//@ grid=2 block=32 zero
K ring_right(int* d) {
  ONE;
  for (int i = 0; i < 12; i++) {
    if (B == 0) { while (i - Counter(tail_).load(acquire) >= 4) {} d[i % 4] = i; Counter(head_).store(i + 1, release); }
    else { while (Counter(head_).load(acquire) <= i) {} d[8 + i] = d[i % 4]; Counter(tail_).store(i + 1, release); }
  }
}
//@ grid=2 block=32 zero
K ring_one_too_many_wrong(int* d) {
  ONE;
  for (int i = 0; i < 12; i++) {
    if (B == 0) { while (i - Counter(tail_).load(acquire) > 4) {} 
      d[i % 4] = i; Counter(head_).store(i + 1, release); } //~ race
    else { while (Counter(head_).load(acquire) <= i) {} 
      d[8 + i] = d[i % 4]; Counter(tail_).store(i + 1, release); } //~ race
  }
}
//@ grid=2 block=32 zero
K ring_reads_ahead_wrong(int* d) {
  ONE;
  for (int i = 0; i < 12; i++) {
    if (B == 0) { while (i - Counter(tail_).load(acquire) >= 4) {} 
      d[i % 4] = i; Counter(head_).store(i + 1, release); } //~ race
    else { while (Counter(head_).load(acquire) < i) {} 
      d[8 + i] = d[i % 4]; Counter(tail_).store(i + 1, release); } //~ race
  }
}
// Sequence numbers: odd while the data changes.
//@ grid=2 block=32 zero
K sequence_relaxed_data_right(int* d) {
  ONE;
  if (B == 0) { for (int i = 1; i < 4; i++) { Word(sequence).store(2 * i - 1, relaxed); __threadfence(); Counter(d[0]).store(i, relaxed); Counter(d[1]).store(i, relaxed); __threadfence(); Word(sequence).store(2 * i, relaxed); } }
  else { unsigned s; int x, y; do { while ((s = Word(sequence).load(relaxed)) & 1) {} __threadfence(); x = Counter(d[0]).load(relaxed); y = Counter(d[1]).load(relaxed); __threadfence(); } while (s != Word(sequence).load(relaxed)); d[2] = x - y; }
}
//@ grid=2 block=32 zero
K sequence_no_retry_wrong(int* d) {
  ONE;
  if (B == 0) { for (int i = 1; i < 4; i++) { Word(sequence).store(2 * i - 1, relaxed); __threadfence(); 
    d[0] = i; d[1] = i; __threadfence(); Word(sequence).store(2 * i, release); } } //~ race
  else { while (Word(sequence).load(acquire) & 1) {} 
    d[2] = d[0] - d[1]; } //~ race
}
// Ping-pong by one flag.
//@ grid=2 block=32 zero
K ping_pong_right(int* d) {
  ONE;
  for (int i = 0; i < 6; i++) { while (Counter(token).load(acquire) != (int)B) {} d[0] += 1; Counter(token).store(1 - B, release); }
}
//@ grid=2 block=32 zero
K ping_pong_volatile_right(int* d) {
  ONE;
  for (int i = 0; i < 6; i++) { while (*(volatile int*)&token != B) {} __threadfence(); d[0] += 1; __threadfence(); *(volatile int*)&token = 1 - B; }
}
//@ grid=2 block=32 zero
K dekker_right(int* d) { ONE; volatile int* f = d + 8; int me = B, you = 1 - me; f[me] = 1; __threadfence(); if (!f[you]) { __threadfence(); d[0] += 1; __threadfence(); } f[me] = 0; }
//@ grid=2 block=32 zero
K peterson_right(int* d) {
  ONE; volatile int* f = d + 8; int me = B, you = 1 - me;
  for (int i = 0; i < 3; i++) { f[me] = 1; f[2] = you; __threadfence(); while (f[you] && f[2] == you) {} __threadfence(); d[0] += 1; __threadfence(); f[me] = 0; }
}
//@ grid=4 block=32 zero
K ticket_right(int* d) { ONE; int me = atomicAdd(&head_, 1); while (*(volatile int*)&tail_ != me) {} __threadfence(); d[0] += 1; __threadfence(); *(volatile int*)&tail_ = me + 1; }
//@ grid=4 block=32 zero
K ticket_less_wrong(int* d) { ONE; int me = atomicAdd(&head_, 1); while (*(volatile int*)&tail_ < me - 1) {} __threadfence(); 
  d[0] += 1; __threadfence(); atomicAdd(&tail_, 1); } //~ race
//@ grid=4 block=32 zero
K done_flags_right(int* d) {
  ONE;
  d[B] = B; __threadfence(); *(volatile int*)&stage[B] = 1;
  if (B == 3) { for (int i = 0; i < 4; i++) while (!*(volatile int*)&stage[i]) {} __threadfence(); d[8] = d[0] + d[1] + d[2] + d[3]; }
}
//@ grid=1 block=128 zero
K shared_counter_right(int* d) {
  __shared__ int s[4], n; if (T == 0) n = 0; __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> c(n);
  if (T % 32 == 0) { s[T / 32] = T; c.fetch_add(1, acq_rel); while (c.load(acquire) < 4) {} d[T / 32] = s[(T / 32 + 1) % 4]; }
}
//@ grid=1 block=128 zero
K shared_counter_three_wrong(int* d) {
  __shared__ int s[4], n; if (T == 0) n = 0; __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> c(n);
  if (T % 32 == 0) { 
    s[T / 32] = T; c.fetch_add(1, acq_rel); while (c.load(acquire) < 3) {} //~ race
    d[T / 32] = s[(T / 32 + 1) % 4]; } //~ race
}
//@ grid=1 block=128 zero
K warp_polls_right(int* d) {
  __shared__ int s[32], n; if (T == 0) n = 0; __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> c(n);
  if (T < 32) { s[T] = T; __syncwarp(); if (T == 0) c.fetch_add(1, release); } else { while (c.load(acquire) < 1) {} d[T] = s[T % 32]; }
}
// Counters of 64 bits and flags of bytes.
__device__ unsigned long long wide;
__device__ unsigned char small_;
//@ grid=4 block=32 zero
K wide_counter_right(int* d) {
  ONE; cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> n(wide);
  if (B < 3) { d[B] = B; n.fetch_add(1ull << 32, release); } else { while (n.load(acquire) >> 32 < 3) {} d[8] = d[0] + d[1] + d[2]; }
}
//@ grid=4 block=32 zero
K wide_counter_two_wrong(int* d) {
  ONE; cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> n(wide);
  if (B < 3) {
    d[B] = B; n.fetch_add(1ull << 32, release); } //~ race
  else { while (n.load(acquire) >> 32 < 2) {}
    d[8] = d[0] + d[1] + d[2]; } //~ race
}
//@ grid=2 block=32 zero
K small_stages_right(int* d) {
  ONE; volatile unsigned char* s = &small_;
  if (B == 0) { d[0] = 7; __threadfence(); *s = 1; d[1] = 8; __threadfence(); *s = 2; } else { while (*s < 2) {} __threadfence(); d[2] = d[0] + d[1]; }
}
//@ grid=2 block=32 zero
K small_stages_half_wrong(int* d) {
  ONE; volatile unsigned char* s = &small_;
  if (B == 0) { d[0] = 7; __threadfence(); *s = 1;
    d[1] = 8; __threadfence(); *s = 2; } //~ race
  else { while (*s < 1) {} __threadfence();
    d[2] = d[0] + d[1]; } //~ race
}
