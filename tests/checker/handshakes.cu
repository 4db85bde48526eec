// Scans with look-back, locks, barriers of the grid, halos and queues between CTAs, each with one thing missing.
#define K extern "C" __global__ void
#define ALL 0xffffffffu
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
#define ONE if (threadIdx.x) return
__device__ int flag, data[64], lock_, serving, next_, top, sense, arrived, chosen;
__device__ volatile int vflag, vdata;
struct Status { int flag, aggregate, prefix, pad; };
__device__ Status status[64];

// Single-pass scan by CTAs with lookback.
#define LOOKBACK(FENCE1, FENCE2, FENCE3) \
  __shared__ int s[64], before; int t = threadIdx.x, b = blockIdx.x; volatile Status* st = (volatile Status*)status; \
  s[t] = in[TID]; __syncthreads(); \
  for (int o = 1; o < 64; o *= 2) { int x = t >= o ? s[t - o] : 0; __syncthreads(); s[t] += x; __syncthreads(); } \
  if (t == 0) { status[b].aggregate = s[63]; FENCE1; st[b].flag = 1; int sum = 0; \
    for (int p = b - 1; p >= 0; p--) { int f; do f = st[p].flag; while (!f); FENCE2; if (f == 2) { sum += status[p].prefix; break; } sum += status[p].aggregate; } \
    status[b].prefix = sum + s[63]; FENCE3; st[b].flag = 2; before = sum; } \
  __syncthreads(); out[TID] = s[t] + before
//@ grid=5 block=64
K lookback_right(const int* in, int* out) { LOOKBACK(__threadfence(), __threadfence(), __threadfence()); }
//@ grid=5 block=64
K lookback_no_second_wrong(const int* in, int* out) {
  LOOKBACK(__threadfence(), , __threadfence()); //~ race
}
//@ grid=5 block=64
K lookback_no_third_wrong(const int* in, int* out) {
  LOOKBACK(__threadfence(), __threadfence(), ); //~ race
}
//@ grid=5 block=64
K lookback_block_second_wrong(const int* in, int* out) {
  LOOKBACK(__threadfence(), __threadfence_block(), __threadfence()); //~ race
}
//@ grid=5 block=64
K lookback_block_third_wrong(const int* in, int* out) {
  LOOKBACK(__threadfence(), __threadfence(), __threadfence_block()); //~ race
}
//@ grid=3 block=64 zero
K mp_flag_volatile_right(int* out) { ONE; if (blockIdx.x == 0) { data[0] = 7; __threadfence(); vflag = 1; } else { while (!vflag) {} __threadfence(); out[blockIdx.x] = data[0]; } }
//@ grid=3 block=64 zero
K mp_data_volatile_no_fence_right(int* out) { ONE; if (blockIdx.x == 0) { vdata = 7; vflag = 1; } else { while (!vflag) {} out[blockIdx.x] = vdata; } }
//@ grid=3 block=64 zero
K mp_all_threads_write_then_flag_right(int* out) { if (blockIdx.x == 0) { data[threadIdx.x] = threadIdx.x; __threadfence(); __syncthreads(); if (threadIdx.x == 0) vflag = 1; } else { if (threadIdx.x == 0) { while (!vflag) {} __threadfence(); } __syncthreads(); out[TID] = data[threadIdx.x]; } }
//@ grid=3 block=64 zero
K mp_all_threads_write_no_sync_wrong(int* out) { if (blockIdx.x == 0) { data[threadIdx.x] = threadIdx.x; //~ race
  __threadfence(); if (threadIdx.x == 0) vflag = 1; } else { if (threadIdx.x == 0) { while (!vflag) {} __threadfence(); } __syncthreads(); out[TID] = data[threadIdx.x]; } }
//@ grid=3 block=64 zero
K mp_readers_no_sync_wrong(int* out) { if (blockIdx.x == 0) { data[threadIdx.x] = threadIdx.x; __threadfence(); __syncthreads(); if (threadIdx.x == 0) vflag = 1; } else { if (threadIdx.x == 0) { while (!vflag) {} __threadfence(); }
  out[TID] = data[threadIdx.x]; } } //~ race
//@ grid=3 block=64 zero
K mp_fence_by_flag_setter_only_right(int* out) { if (blockIdx.x == 0) { data[threadIdx.x] = threadIdx.x; __syncthreads(); if (threadIdx.x == 0) { __threadfence(); vflag = 1; } } else { if (threadIdx.x == 0) while (!vflag) {} __syncthreads(); __threadfence(); out[TID] = data[threadIdx.x]; } }
//@ grid=3 block=64 zero
K ticket_lock_right(int* d) { ONE; int me = atomicAdd(&next_, 1); while (*(volatile int*)&serving != me) {} __threadfence(); d[0] += 1; d[1] = d[0] * 2; __threadfence(); atomicAdd(&serving, 1); }
//@ grid=3 block=64 zero
K ticket_lock_release_block_wrong(int* d) { ONE; int me = atomicAdd(&next_, 1); while (*(volatile int*)&serving != me) {} __threadfence();
  d[0] += 1;   //~ race
  __threadfence_block(); atomicAdd(&serving, 1); }
//@ grid=3 block=64 zero
K ticket_lock_acquire_block_wrong(int* d) { ONE; int me = atomicAdd(&next_, 1); while (*(volatile int*)&serving != me) {} __threadfence_block();
  d[0] += 1;   //~ race
  __threadfence(); atomicAdd(&serving, 1); }
//@ grid=3 block=64 zero
K ticket_lock_serving_block_wrong(int* d) { ONE; int me = atomicAdd(&next_, 1); while (*(volatile int*)&serving != me) {} __threadfence(); d[0] += 1; __threadfence(); 
  atomicAdd_block(&serving, 1); }   //~ race
//@ grid=3 block=64 zero
K spin_exch_right(int* d) { ONE; while (atomicExch(&lock_, 1)) __nanosleep(20); __threadfence(); int x = d[0]; d[0] = x + 3; __threadfence(); atomicExch(&lock_, 0); }
//@ grid=3 block=64 zero
K spin_exch_released_in_front_wrong(int* d) { ONE; while (atomicExch(&lock_, 1)) __nanosleep(20); __threadfence(); int x = d[0]; 
  __threadfence(); atomicExch(&lock_, 0); d[0] = x + 3; }   //~ race
//@ grid=3 block=64 zero
K spin_for_block_right(int* d) { if (threadIdx.x == 0) { while (atomicCAS(&lock_, 0, 1)) {} __threadfence(); } __syncthreads(); d[threadIdx.x] += blockIdx.x; __threadfence(); __syncthreads(); if (threadIdx.x == 0) atomicExch(&lock_, 0); }
//@ grid=3 block=64 zero
K spin_for_block_no_sync_before_release_wrong(int* d) { if (threadIdx.x == 0) { while (atomicCAS(&lock_, 0, 1)) {} __threadfence(); } __syncthreads();
  d[threadIdx.x] += blockIdx.x;  //~ race
  __threadfence(); if (threadIdx.x == 0) atomicExch(&lock_, 0); }
//@ grid=3 block=64 zero
K spin_for_block_no_sync_after_acquire_wrong(int* d) { if (threadIdx.x == 0) { while (atomicCAS(&lock_, 0, 1)) {} __threadfence(); }
  d[threadIdx.x] += blockIdx.x;  //~ race
  __threadfence(); __syncthreads(); if (threadIdx.x == 0) atomicExch(&lock_, 0); }
//@ grid=3 block=64 zero
K spin_cas_block_wrong(int* d) { ONE;
  while (atomicCAS_block(&lock_, 0, 1)) {}   //~ race
  __threadfence(); d[0] += 1; __threadfence(); atomicExch(&lock_, 0); }
//@ grid=3 block=64 zero
K spin_exch_block_release_wrong(int* d) { ONE; while (atomicCAS(&lock_, 0, 1)) {} __threadfence(); d[0] += 1; __threadfence();
  atomicExch_block(&lock_, 0); }   //~ race
//@ grid=4 block=32 zero
K grid_barrier_right(int* d) { d[TID] = TID; __syncthreads(); if (threadIdx.x == 0) { __threadfence(); atomicAdd(&arrived, 1); while (atomicAdd(&arrived, 0) < 4) {} __threadfence(); } __syncthreads(); d[512 + TID] = d[(TID + 32) % 128]; }
//@ grid=4 block=32 zero
K grid_barrier_block_fence_wrong(int* d) { d[TID] = TID;   //~ race
  __syncthreads(); if (threadIdx.x == 0) { __threadfence_block(); atomicAdd(&arrived, 1); while (atomicAdd(&arrived, 0) < 4) {} __threadfence(); } __syncthreads();
  d[512 + TID] = d[(TID + 32) % 128]; }
//@ grid=4 block=32 zero
K grid_barrier_three_of_four_wrong(int* d) { d[TID] = TID;   //~ race
  __syncthreads(); if (threadIdx.x == 0) { __threadfence(); atomicAdd(&arrived, 1); while (atomicAdd(&arrived, 0) < 3) {} __threadfence(); } __syncthreads();
  d[512 + TID] = d[(TID + 32) % 128]; }
//@ grid=4 block=32 zero
K grid_barrier_sense_right(int* d) { for (int r = 0; r < 3; r++) { d[r * 128 + TID] = r ? d[r * 128 - 128 + (TID + 32) % 128] + 1 : TID; __syncthreads();
    if (threadIdx.x == 0) { volatile int* s = &sense; int old = *s; __threadfence(); if (atomicAdd(&arrived, 1) == 3) { arrived = 0; __threadfence(); *s = old + 1; } else { while (*s == old) {} } __threadfence(); } __syncthreads(); } }
//@ grid=4 block=32 zero
K grid_barrier_sense_reset_late_wrong(int* d) { for (int r = 0; r < 3; r++) { d[r * 128 + TID] = r ? d[r * 128 - 128 + (TID + 32) % 128] + 1 : TID; __syncthreads();
    if (threadIdx.x == 0) { volatile int* s = &sense; int old = *s; __threadfence(); if (atomicAdd(&arrived, 1) == 3) { *s = old + 1; __threadfence();
      arrived = 0; } else { while (*s == old) {} } __threadfence(); } __syncthreads(); } }   //~ race, fault
//@ grid=4 block=64 zero
K last_block_sums_right(const int* in, int* out) { __shared__ int s[64]; __shared__ bool last; int t = threadIdx.x; s[t] = in[TID]; __syncthreads(); for (int o = 32; o; o /= 2) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
  if (t == 0) { out[1 + blockIdx.x] = s[0]; __threadfence(); last = atomicInc((unsigned*)&arrived, gridDim.x - 1) == gridDim.x - 1; } __syncthreads();
  if (last && t == 0) { int x = 0; for (int b = 0; b < 4; b++) x += ((volatile int*)out)[1 + b]; out[0] = x; } }
//@ grid=4 block=64 zero
K last_block_sums_missing_fence_wrong(const int* in, int* out) { __shared__ int s[64]; __shared__ bool last; int t = threadIdx.x; s[t] = in[TID]; __syncthreads(); for (int o = 32; o; o /= 2) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
  if (t == 0) { out[1 + blockIdx.x] = s[0];   //~ race
    last = atomicInc((unsigned*)&arrived, gridDim.x - 1) == gridDim.x - 1; } __syncthreads();
  if (last && t == 0) { int x = 0; for (int b = 0; b < 4; b++) x += out[1 + b]; out[0] = x; } }
//@ grid=4 block=64 zero
K last_block_sums_block_counter_wrong(const int* in, int* out) { __shared__ bool last; int t = threadIdx.x;
  if (t == 0) { out[1 + blockIdx.x] = in[TID]; __threadfence();
    last = atomicAdd_block(&arrived, 1) == 3; } __syncthreads();   //~ race
  if (last && t == 0) { int x = 0; for (int b = 0; b < 4; b++) x += out[1 + b]; out[0] = x; } }
//@ grid=4 block=64 zero
K last_block_sums_last_step_no_barrier_wrong(const int* in, int* out) { __shared__ int s[64]; int t = threadIdx.x; s[t] = in[TID]; __syncthreads(); for (int o = 32; o; o /= 2) { if (t < o) s[t] += s[t + o]; if (o > 1) __syncthreads(); }
  if (t == 32) out[blockIdx.x] = s[0]; }   //~ race
//@ grid=2 block=64 zero
K dekker_sc_right(int* d) { ONE; volatile int* f = d + 8; int me = blockIdx.x, you = 1 - me; f[me] = 1; __threadfence(); if (!f[you]) { __threadfence(); d[0] += 1; __threadfence(); } f[me] = 0; }
//@ grid=2 block=64 zero
K dekker_no_fence_wrong(int* d) { ONE; volatile int* f = d + 8; int me = blockIdx.x, you = 1 - me; f[me] = 1; if (!f[you]) { 
   d[0] += 1; } f[me] = 0; }    //~ race
//@ grid=4 block=64 zero
K steal_right(int* out) { // deques of CTAs under locks; items of own and of others
  ONE; for (int r = 0; r < 4; r++) { int q = (blockIdx.x + r) % 4; int* l = out + 900 + q; while (atomicCAS(l, 0, 1)) {} __threadfence(); int n = out[100 + q]; if (n < 5) { out[100 + q] = n + 1; out[200 + q * 8 + n] = blockIdx.x; } __threadfence(); atomicExch(l, 0); } }
//@ grid=4 block=64 zero
K steal_own_lock_block_scope_wrong(int* out) {
  ONE; for (int r = 0; r < 4; r++) { int q = (blockIdx.x + r) % 4; int* l = out + 900 + q; 
    if (r == 0) while (atomicCAS_block(l, 0, 1)) {} else while (atomicCAS(l, 0, 1)) {}    //~ race
    __threadfence(); int n = out[100 + q]; if (n < 5) { out[100 + q] = n + 1; out[200 + q * 8 + n] = blockIdx.x; } __threadfence(); atomicExch(l, 0); } }
//@ grid=4 block=32 zero
K halo_by_flags_right(int* a) { // rows of CTAs, exchanged by flags, each round
  volatile int* f = a + 900; for (int r = 0; r < 3; r++) { a[r * 128 + TID] = r + TID; __threadfence(); __syncthreads(); if (threadIdx.x == 0) { f[blockIdx.x] = r + 1; int n = (blockIdx.x + 1) % 4; while (f[n] < r + 1) {} __threadfence(); } __syncthreads();
    a[512 + TID] += a[r * 128 + (TID + 1) % 128]; } }
//@ grid=4 block=32 zero
K halo_by_flags_wrong_neighbour_wrong(int* a) {
  volatile int* f = a + 900; for (int r = 0; r < 3; r++) { a[r * 128 + TID] = r + TID;   //~ race
    __threadfence(); __syncthreads(); if (threadIdx.x == 0) { f[blockIdx.x] = r + 1; int n = (blockIdx.x + 3) % 4; while (f[n] < r + 1) {} __threadfence(); } __syncthreads();
    a[512 + TID] += a[r * 128 + (TID + 1) % 128]; } }
//@ grid=4 block=32 zero
K halo_by_flags_one_round_late_wrong(int* a) {
  volatile int* f = a + 900; for (int r = 0; r < 3; r++) { a[r * 128 + TID] = r + TID;   //~ race
    __threadfence(); __syncthreads(); if (threadIdx.x == 0) { f[blockIdx.x] = r + 1; int n = (blockIdx.x + 1) % 4; while (f[n] < r) {} __threadfence(); } __syncthreads();
    a[512 + TID] += a[r * 128 + (TID + 1) % 128]; } }
//@ grid=3 block=32 zero
K sys_scope_right(int* d) { ONE; if (blockIdx.x == 0) { d[1] = 4; __threadfence_system(); atomicExch_system(&d[0], 1); } else { while (!atomicAdd_system(&d[0], 0)) {} __threadfence_system(); d[8 + blockIdx.x] = d[1]; } }
//@ grid=3 block=32 zero
K count_mixed_scope_wrong(int* d) { if (blockIdx.x & 1) atomicAdd(d, 1);
  else atomicAdd_block(d, 1); }    //~ race
//@ grid=3 block=32 zero
K count_by_cta_then_grid_right(int* d) { __shared__ int n; if (threadIdx.x == 0) n = 0; __syncthreads(); atomicAdd_block(&n, threadIdx.x); __syncthreads(); if (threadIdx.x == 0) atomicAdd(d, n); }
//@ grid=3 block=32 zero
K count_by_cta_global_right(int* d) { atomicAdd_block(&d[blockIdx.x], 1); __syncthreads(); if (threadIdx.x == 0) atomicAdd(&d[100], d[blockIdx.x]); }
//@ grid=24 block=32 zero
K grid_barrier_many_right(int* d) { if (threadIdx.x == 0) { d[blockIdx.x] = 1; __threadfence(); atomicAdd(&arrived, 1); while (atomicAdd(&arrived, 0) < 24) {} __threadfence(); d[64 + blockIdx.x] = d[(blockIdx.x + 5) % 24]; } }
