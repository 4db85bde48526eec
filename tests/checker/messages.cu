// Messages over several CTAs and warps: release sequences, tickets, mailboxes, barriers of the grid.
#include <cuda/atomic>
#define K extern "C" __global__ void
template <cuda::thread_scope S> using Ref = cuda::atomic_ref<int, S>;
constexpr auto D = cuda::thread_scope_device;
constexpr auto B = cuda::thread_scope_block;
using cuda::memory_order_acquire, cuda::memory_order_release, cuda::memory_order_relaxed, cuda::memory_order_acq_rel, cuda::memory_order_seq_cst;

//@ grid=2 block=64 zero
K mp_rel_block_wrong(int* f, int* d, int* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { d[0] = 5; Ref<B>(*f).store(1, memory_order_release); }   //~ race
    else { while (!Ref<D>(*f).load(memory_order_acquire)) {} out[0] = d[0]; }    //~ race
  }
}
//@ grid=2 block=64 zero
K mp_acq_block_wrong(int* f, int* d, int* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { d[0] = 5; Ref<D>(*f).store(1, memory_order_release); }   //~ race
    else { while (!Ref<B>(*f).load(memory_order_acquire)) {} out[0] = d[0]; }    //~ race
  }
}
//@ grid=2 block=128 zero
K chain_block_then_device_right(int* f, int* d, int* out) {   // cumulativity: warp 0 -> warp 1 (cta) -> other CTA (gpu)
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) { d[0] = 5; Ref<B>(f[0]).store(1, memory_order_release); }
    if (t == 32) { while (!Ref<B>(f[0]).load(memory_order_acquire)) {} Ref<D>(f[1]).store(1, memory_order_release); }
  } else if (t == 0) { while (!Ref<D>(f[1]).load(memory_order_acquire)) {} out[0] = d[0]; }
}
//@ grid=2 block=128 zero
K chain_relaxed_middle_wrong(int* f, int* d, int* out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) { d[0] = 5; Ref<B>(f[0]).store(1, memory_order_release); }  //~ race
    if (t == 32) { while (!Ref<B>(f[0]).load(memory_order_relaxed)) {} Ref<D>(f[1]).store(1, memory_order_release); }
  } else if (t == 0) { while (!Ref<D>(f[1]).load(memory_order_acquire)) {} out[0] = d[0]; } //~ race
}
//@ grid=3 block=64 zero
K release_sequence_right(int* f, int* d, int* out) {   // rmw in between by another CTA continues the sequence
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { d[0] = 5; Ref<D>(*f).fetch_add(1, memory_order_release); }
    else if (blockIdx.x == 1) { while (Ref<D>(*f).load(memory_order_relaxed) != 1) {} Ref<D>(*f).fetch_add(1, memory_order_relaxed); }
    else { while (Ref<D>(*f).load(memory_order_acquire) != 2) {} out[0] = d[0]; }
  }
}
//@ grid=3 block=64 zero
K release_sequence_store_wrong(int* f, int* d, int* out) {   // a store in between ends it
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) { d[0] = 5; Ref<D>(*f).fetch_add(1, memory_order_release); }  //~ race
    else if (blockIdx.x == 1) { while (Ref<D>(*f).load(memory_order_relaxed) != 1) {} Ref<D>(*f).store(2, memory_order_relaxed); }
    else { while (Ref<D>(*f).load(memory_order_acquire) != 2) {} out[0] = d[0]; }  //~ race
  }
}
//@ grid=4 block=64 zero
K ticket_lock_block_serving_wrong(int* l, int* g) {
  if (threadIdx.x == 0) {
    int me = Ref<D>(l[0]).fetch_add(1, memory_order_relaxed);
    while (Ref<D>(l[1]).load(memory_order_acquire) != me) {}
    g[0] += 1;      //~ race
    Ref<B>(l[1]).store(me + 1, memory_order_release); //~ race
  }
}
//@ grid=4 block=64 zero
K ticket_lock_right(int* l, int* g) {
  if (threadIdx.x == 0) {
    int me = Ref<D>(l[0]).fetch_add(1, memory_order_relaxed);
    while (Ref<D>(l[1]).load(memory_order_acquire) != me) {}
    g[0] += 1;
    Ref<D>(l[1]).store(me + 1, memory_order_release);
  }
}
//@ grid=4 block=64 zero
K ticket_lock_relaxed_serving_wrong(int* l, int* g) {
  if (threadIdx.x == 0) {
    int me = Ref<D>(l[0]).fetch_add(1, memory_order_relaxed);
    while (Ref<D>(l[1]).load(memory_order_relaxed) != me) {}
    g[0] += 1;      //~ race
    Ref<D>(l[1]).store(me + 1, memory_order_release);
  }
}
//@ grid=1 block=128 zero
K warp_mailbox_right(int* g) {     // one warp tells the next one in turn, in shared memory
  __shared__ int box[32]; __shared__ int turn;
  int t = threadIdx.x, w = t / 32, l = t % 32, n = blockDim.x / 32;
  if (t == 0) turn = 0;
  if (w == 0) box[l] = l;
  __syncthreads();
  if (l == 0) while (Ref<B>(turn).load(memory_order_acquire) != w) {}
  __syncwarp();
  box[l] += w;
  __syncwarp();
  if (l == 0) Ref<B>(turn).store(w + 1, memory_order_release);
  __syncthreads();
  if (w == 0) g[l] = box[l] + n;
}
//@ grid=1 block=128 zero
K warp_mailbox_no_syncwarp_wrong(int* g) {
  __shared__ int box[32]; __shared__ int turn;
  int t = threadIdx.x, w = t / 32, l = t % 32, n = blockDim.x / 32;
  if (t == 0) turn = 0;
  if (w == 0) box[l] = l;
  __syncthreads();
  if (l == 0) while (Ref<B>(turn).load(memory_order_acquire) != w) {}
  box[l] += w;             //~ race
  if (l == 0) Ref<B>(turn).store(w + 1, memory_order_release);
  __syncthreads();
  if (w == 0) g[l] = box[l] + n;
}
//@ grid=1 block=128 zero
K warp_mailbox_no_second_syncwarp_wrong(int* g) {
  __shared__ int box[32]; __shared__ int turn;
  int t = threadIdx.x, w = t / 32, l = t % 32, n = blockDim.x / 32;
  if (t == 0) turn = 0;
  if (w == 0) box[l] = l;
  __syncthreads();
  if (l == 0) while (Ref<B>(turn).load(memory_order_acquire) != w) {}
  __syncwarp();
  box[l] += w;   //~ race
  if (l == 0) Ref<B>(turn).store(w + 1, memory_order_release);
  __syncthreads();
  if (w == 0) g[l] = box[l] + n;
}
//@ grid=4 block=64 zero
K sense_barrier2_right(int* bar, int* g) {
  int local = 0, n = gridDim.x;
  for (int r = 0; r < 3; r++) {
    if (threadIdx.x == 0) g[(r & 1) * 512 + blockIdx.x] = r;
    __syncthreads();
    if (threadIdx.x == 0) {
      local ^= 1;
      if (Ref<D>(bar[0]).fetch_add(1, memory_order_acq_rel) == n - 1) { Ref<D>(bar[0]).store(0, memory_order_relaxed); Ref<D>(bar[1]).store(local, memory_order_release); }
      else while (Ref<D>(bar[1]).load(memory_order_acquire) != local) {}
    }
    __syncthreads();
    int v = g[(r & 1) * 512 + (blockIdx.x + 1) % n];
    if (v != r) g[700 + threadIdx.x + blockDim.x * blockIdx.x % 256] = v;
  }
}
//@ grid=4 block=64 zero
K sense_barrier_one_buffer_wrong(int* bar, int* g) {   // the next round's write meets this round's read
  int local = 0, n = gridDim.x;
  for (int r = 0; r < 3; r++) {
    if (threadIdx.x == 0) g[blockIdx.x] = r;   //~ race
    __syncthreads();
    if (threadIdx.x == 0) {
      local ^= 1;
      if (Ref<D>(bar[0]).fetch_add(1, memory_order_acq_rel) == n - 1) { Ref<D>(bar[0]).store(0, memory_order_relaxed); Ref<D>(bar[1]).store(local, memory_order_release); }
      else while (Ref<D>(bar[1]).load(memory_order_acquire) != local) {}
    }
    __syncthreads();
    int v = g[(blockIdx.x + 1) % n];   //~ race
    if (v > 99) g[700] = v;
  }
}
//@ grid=4 block=64 zero
K sense_barrier_relaxed_arrival_wrong(int* bar, int* g) {
  int local = 0, n = gridDim.x;
  for (int r = 0; r < 3; r++) {
    if (threadIdx.x == 0) g[(r & 1) * 512 + blockIdx.x] = r;   //~ race
    __syncthreads();
    if (threadIdx.x == 0) {
      local ^= 1;
      if (Ref<D>(bar[0]).fetch_add(1, memory_order_relaxed) == n - 1) { Ref<D>(bar[0]).store(0, memory_order_relaxed); Ref<D>(bar[1]).store(local, memory_order_release); }
      else while (Ref<D>(bar[1]).load(memory_order_acquire) != local) {}
    }
    __syncthreads();
    int v = g[(r & 1) * 512 + (blockIdx.x + 1) % n];  //~ race
    if (v > 99) g[700] = v;
  }
}
//@ grid=4 block=128 zero
K sense_barrier_no_second_sync_wrong(int* bar, int* g) {
  int local = 0, n = gridDim.x;
  for (int r = 0; r < 2; r++) {
    if (threadIdx.x == 0) g[(r & 1) * 512 + blockIdx.x] = r;   //~ race
    __syncthreads();
    if (threadIdx.x == 0) {
      local ^= 1;
      if (Ref<D>(bar[0]).fetch_add(1, memory_order_acq_rel) == n - 1) { Ref<D>(bar[0]).store(0, memory_order_relaxed); Ref<D>(bar[1]).store(local, memory_order_release); }
      else while (Ref<D>(bar[1]).load(memory_order_acquire) != local) {}
    }
    int v = g[(r & 1) * 512 + (blockIdx.x + 1) % n];  //~ race
    if (v > 99) g[700] = v;
  }
}
//@ grid=4 block=64 zero
K master_flags_right(int* f, int* d) {
  int n = gridDim.x, b = blockIdx.x, t = threadIdx.x;
  if (t == 0) d[b] = b + 1;
  __syncthreads();
  if (b) { if (t == 0) { __threadfence(); Ref<D>(f[b]).store(1, memory_order_relaxed); while (Ref<D>(f[b]).load(memory_order_relaxed) != 2) {} __threadfence(); } }
  else {
    if (t > 0 && t < n) { while (Ref<D>(f[t]).load(memory_order_relaxed) != 1) {} __threadfence(); }
    __syncthreads();
    if (t == 0) { int s = 0; for (int i = 0; i < n; i++) s += d[i]; d[100] = s; }
    __syncthreads();
    if (t > 0 && t < n) { __threadfence(); Ref<D>(f[t]).store(2, memory_order_relaxed); }
  }
  __syncthreads();
  d[200 + b * 128 + t] = d[100];
}
//@ grid=4 block=64 zero
K master_flags_no_fence_wrong(int* f, int* d) {
  int n = gridDim.x, b = blockIdx.x, t = threadIdx.x;
  if (t == 0) d[b] = b + 1;
  __syncthreads();
  if (b) { if (t == 0) { __threadfence(); Ref<D>(f[b]).store(1, memory_order_relaxed); while (Ref<D>(f[b]).load(memory_order_relaxed) != 2) {} __threadfence(); } }
  else {
    if (t > 0 && t < n) { while (Ref<D>(f[t]).load(memory_order_relaxed) != 1) {} __threadfence(); }
    __syncthreads();
    if (t == 0) { int s = 0; for (int i = 0; i < n; i++) s += d[i]; d[100] = s; }  //~ race
    __syncthreads();
    if (t > 0 && t < n) { Ref<D>(f[t]).store(2, memory_order_relaxed); }
  }
  __syncthreads();
  d[200 + b * 128 + t] = d[100];  //~ race
}
//@ grid=2 block=64 zero
K flag_plain_store_atomic_poll_wrong(int* f, int* d) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[0] = 1; __threadfence(); *f = 1; }   //~ race
  else { while (atomicAdd(f, 0) == 0) {} __threadfence(); d[1] = d[0]; }  //~ race
}
//@ grid=2 block=64 zero
K acqrel_exch_right(int* f, int* d) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { d[0] = 1; Ref<D>(*f).exchange(1, memory_order_acq_rel); }
  else { while (Ref<D>(*f).exchange(0, memory_order_acq_rel) == 0) {} d[0] += 1; }
}
//@ grid=2 block=64 zero
K fence_cta_in_lock_wrong(int* l, int* d) {
  if (threadIdx.x) return;
  while (atomicCAS(l, 0, 1)) {}
  __threadfence();
  d[0] += 1;    //~ race
  __threadfence_block();
  atomicExch(l, 0);
}
//@ grid=1 block=128 zero
K fence_cta_in_lock_right(int* l, int* d) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(l, 0, 1)) {}
  __threadfence_block();
  d[0] += 1;
  __threadfence_block();
  atomicExch(l, 0);
}
