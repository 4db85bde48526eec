// Atomics, fences, flags, locks and scopes.
#define K extern "C" __global__ void
__device__ int ld_relaxed(int* p) { int v; asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ int ld_acquire(int* p) { int v; asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ int ld_acquire_cta(int* p) { int v; asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ void st_relaxed(int* p, int v) { asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__device__ void st_release(int* p, int v) { asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__device__ void st_release_cta(int* p, int v) { asm volatile("st.release.cta.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }

K init_then_atomic_wrong(int* g, int n) {
  __shared__ int s[8]; int t = threadIdx.x;
  if (t < 8) s[t] = 0;                  //~ race
  atomicAdd(&s[g[t] & 7], 1);           //~ race
  __syncthreads();
  if (t < 8) g[t] = s[t];
}
K init_then_atomic_right(int* g, int n) {
  __shared__ int s[8]; int t = threadIdx.x;
  if (t < 8) s[t] = 0;
  __syncthreads();
  atomicAdd(&s[g[t] & 7], 1);
  __syncthreads();
  if (t < 8) g[t] = s[t];
}
K read_after_atomic_wrong(int* g, int n) {
  __shared__ int s; int t = threadIdx.x;
  if (!t) s = 0;
  __syncthreads();
  atomicAdd(&s, 1);                     //~ race
  g[t] = s;                             //~ race
}
K read_after_atomic_right(int* g, int n) {
  __shared__ int s; int t = threadIdx.x;
  if (!t) s = 0;
  __syncthreads();
  atomicAdd(&s, 1);
  __syncthreads();
  g[t] = s;
}
// A flag between CTAs: data in g[0], flag in g[1].
//@ grid=2 zero
K flag_relaxed_wrong(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    g[0] = 42;                          //~ race
    st_relaxed(&g[1], 1);
  } else {
    while (!ld_relaxed(&g[1]));
    g[2] = g[0];                        //~ race
  }
}
//@ grid=2 zero
K flag_release_right(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    g[0] = 42;
    st_release(&g[1], 1);
  } else {
    while (!ld_acquire(&g[1]));
    g[2] = g[0];
  }
}
//@ grid=2 zero
K flag_no_release_wrong(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    g[0] = 42;                          //~ race
    st_relaxed(&g[1], 1);
  } else {
    while (!ld_acquire(&g[1]));
    g[2] = g[0];                        //~ race
  }
}
//@ grid=2 zero
K flag_no_acquire_wrong(int* g, int n) {         //? `__threadfence()` is missing after it is read
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    g[0] = 42;                          //~ race
    st_release(&g[1], 1);
  } else {
    while (!ld_relaxed(&g[1]));
    g[2] = g[0];                        //~ race
  }
}
//@ grid=2 zero
K flag_fences_right(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    g[0] = 42;
    __threadfence();
    *(volatile int*)&g[1] = 1;
  } else {
    while (!*(volatile int*)&g[1]);
    __threadfence();
    g[2] = g[0];
  }
}
//@ grid=2 zero
K flag_narrow_fence_wrong(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    g[0] = 42;                          //~ race
    __threadfence_block();
    *(volatile int*)&g[1] = 1;
  } else {
    while (!*(volatile int*)&g[1]);
    __threadfence();
    g[2] = g[0];                        //~ race
  }
}
//@ grid=2 zero
K flag_late_fence_wrong(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    __threadfence();
    g[0] = 42;                          //~ race
    *(volatile int*)&g[1] = 1;
  } else {
    while (!*(volatile int*)&g[1]);
    __threadfence();
    g[2] = g[0];                        //~ race
  }
}
//@ grid=2 zero
K flag_plain_wrong(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    g[0] = 42;
    __threadfence();
    g[1] = 1;                           //~ race
  } else if (ld_relaxed(&g[1])) {       //~ race
    __threadfence();
    g[2] = g[0];
  }
}
//@ grid=2 zero
K flag_exchange_right(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    g[0] = 42;
    __threadfence();
    atomicExch(&g[1], 1);
  } else {
    while (atomicAdd(&g[1], 0) == 0);
    __threadfence();
    g[2] = g[0];
  }
}
//@ grid=2 zero
K scope_store_wrong(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    g[0] = 42;                          //~ race
    st_release_cta(&g[1], 1);
  } else {
    while (!ld_acquire(&g[1]));
    g[2] = g[0];                        //~ race
  }
}
//@ zero
K scope_in_cta_right(int* g, int n) {
  if (threadIdx.x == 0) {
    g[0] = 42;
    st_release_cta(&g[1], 1);
  } else if (threadIdx.x == 64) {
    while (!ld_acquire_cta(&g[1]));
    g[2] = g[0];
  }
}
//@ grid=2
K scope_atomic_wrong(int* g, int n) { atomicAdd_block(&g[0], 1); }     //~ race
//@ grid=2
K scope_atomic_right(int* g, int n) { atomicAdd_block(&g[blockIdx.x], 1); }
//@ grid=2
K scope_mixed_wrong(int* g, int n) {
  if (blockIdx.x == 0) atomicAdd_block(&g[0], 1);     //~ race
  else atomicAdd(&g[0], 1);                           //~ race
}
//@ grid=2
K scope_mixed_right(int* g, int n) {
  if (blockIdx.x == 0) atomicAdd(&g[0], 1);
  else atomicAdd_system(&g[0], 1);
}
// A lock: g[1] is it, g[0] what it guards.
//@ grid=4 zero
K lock_wrong(int* g, int n) {
  if (threadIdx.x) return;
  while (atomicCAS(&g[1], 0, 1) != 0);
  g[0] += 1;                            //~ race
  atomicExch(&g[1], 0);
}
//@ grid=4 zero
K lock_right(int* g, int n) {
  if (threadIdx.x) return;
  while (atomicCAS(&g[1], 0, 1) != 0);
  __threadfence();
  g[0] += 1;
  __threadfence();
  atomicExch(&g[1], 0);
}
//@ grid=4 zero
K unlock_plain_wrong(int* g, int n) {
  if (threadIdx.x) return;
  while (atomicCAS(&g[1], 0, 1) != 0);  //~ race
  __threadfence();
  g[0] += 1;
  __threadfence();
  g[1] = 0;                             //~ race
}
//@ grid=4 zero
K two_locks_wrong(int* g, int n) {      // each guards by its own lock
  if (threadIdx.x) return;
  int* lock = &g[1 + (blockIdx.x & 1)];
  while (atomicCAS(lock, 0, 1) != 0);
  __threadfence();
  g[0] += 1;                            //~ race
  __threadfence();
  atomicExch(lock, 0);
}
// The last CTA adds up what all have left.
__device__ unsigned int ticket;
//@ grid=4
K last_block_right(int* g, int* out) {
  __shared__ bool last; int t = threadIdx.x;
  if (t == 0) {
    out[blockIdx.x] = g[blockIdx.x];
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t < gridDim.x) g[512 + t] = out[t];
}
//@ grid=4
K last_block_wrong(int* g, int* out) {
  __shared__ bool last; int t = threadIdx.x;
  if (t == 0) {
    out[blockIdx.x] = g[blockIdx.x];    //~ race
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t < gridDim.x) g[512 + t] = out[t];   //~ race
}
//@ grid=4
K last_block_all_write_right(int* g, int* out) {
  __shared__ bool last; int t = threadIdx.x;
  out[blockIdx.x * 128 + t] = g[t];
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (last) g[512 + t] = out[t] + out[128 + t] + out[256 + t] + out[384 + t];
}
// Only thread 0 fences: by the barrier before, its fence speaks for all.
//@ grid=4
K last_block_one_fence_right(int* g, int* out) {
  __shared__ bool last; int t = threadIdx.x;
  out[blockIdx.x * 128 + t] = g[t];
  __syncthreads();
  if (t == 0) {
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) g[512 + t] = out[t] + out[128 + t] + out[256 + t] + out[384 + t];
}
//@ grid=4
K last_block_no_barrier_wrong(int* g, int* out) {   // thread 0 speaks for threads that have not written yet
  __shared__ bool last; int t = threadIdx.x;
  out[blockIdx.x * 128 + t] = g[t];     //~ race
  if (t == 0) {
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) g[512 + t] = out[t] + out[128 + t] + out[256 + t] + out[384 + t];   //~ race
}
// Decoupled look-back: each CTA waits for the sum of the one before.
//@ grid=4 zero
K look_back_right(int* g, int* state) {
  if (threadIdx.x) return;
  int b = blockIdx.x, before = 0;
  if (b > 0) {
    while (!ld_acquire(&state[b - 1]));
    before = g[b - 1];
  }
  g[b] = before + b;
  st_release(&state[b], 1);
}
//@ grid=4 zero
K look_back_wrong(int* g, int* state) {
  if (threadIdx.x) return;
  int b = blockIdx.x, before = 0;
  if (b > 0) {
    while (!ld_relaxed(&state[b - 1]));
    before = g[b - 1];                  //~ race
  }
  g[b] = before + b;                    //~ race
  st_release(&state[b], 1);
}
// Status and value in one word need no order.
//@ grid=4 zero
K packed_look_back_right(int* g, int n) {
  if (threadIdx.x) return;
  int b = blockIdx.x, v = 0;
  if (b > 0) while (!((v = ld_relaxed(&g[b - 1])) & 1));
  st_relaxed(&g[b], (v + 2) | 1);
}
//@ grid=2 zero
K sizes_wrong(int* g, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) atomicAdd(&g[0], 1);                                    //~ race
  else atomicAdd((unsigned long long*)&g[0], 1ull);                            //~ race
}
//@ grid=2 zero
K sizes_right(int* g, int n) {
  if (threadIdx.x) return;
  atomicAdd((unsigned long long*)&g[0], 1ull);
}
// A reduction's read makes no acquire pattern (manual, section 8.11.1), a release passes through it.
//@ zero
K shared_flag_wrong(int* g, int n) {
  __shared__ int d, f; int t = threadIdx.x;
  if (!t) { f = 0; d = 0; }
  __syncthreads();
  if (t == 0) { d = 42; asm volatile("st.relaxed.cta.shared.u32 [%0], 1;" :: "r"((unsigned)__cvta_generic_to_shared(&f)) : "memory"); }   //~ race
  if (t == 64) { int v; do asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"((unsigned)__cvta_generic_to_shared(&f)) : "memory"); while (!v); g[0] = d; }   //~ race
}
K shared_flag_right(int* g, int n) {
  __shared__ int d, f; int t = threadIdx.x;
  if (!t) { f = 0; d = 0; }
  __syncthreads();
  if (t == 0) { d = 42; asm volatile("st.release.cta.shared.u32 [%0], 1;" :: "r"((unsigned)__cvta_generic_to_shared(&f)) : "memory"); }
  if (t == 64) { int v; do asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"((unsigned)__cvta_generic_to_shared(&f)) : "memory"); while (!v); g[0] = d; }
}
