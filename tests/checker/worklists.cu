// Graph kernels with worklists, locks and flags as people write them, each with what goes wrong in it.
#define K extern "C" __global__ void
__device__ inline int ld_acquire(const int* p) { int v; asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ inline int ld_acquire_cta(const int* p) { int v; asm volatile("ld.acquire.cta.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ inline int ld_relaxed(const int* p) { int v; asm volatile("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ inline void st_release(int* p, int v) { asm volatile("st.release.gpu.s32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__device__ inline void st_relaxed(int* p, int v) { asm volatile("st.relaxed.gpu.s32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }

//@ grid=2 zero
K size_polled_wrong(int* list, int* size, int* out) {            // the size is read plainly while others push
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < *size) out[i] = 1;                                                                          //~ race
  if (threadIdx.x % 3 == 0) list[atomicAdd(size, 1)] = i;                                             //~ race
}
//@ grid=2 zero
K size_polled_right(int* list, const int* size, int* next, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < *size) out[i] = 1;
  if (threadIdx.x % 3 == 0) list[atomicAdd(next, 1)] = i;
}
//@ grid=2 zero
K relax_by_hand_wrong(const int* in, int* dist) {                // compares and stores
  int v = in[threadIdx.x], d = threadIdx.x + blockIdx.x;
  if (d > dist[v]) dist[v] = d;                                                                       //~ race
}
//@ grid=2 zero
K relax_by_hand_right(const int* in, int* dist) {
  int v = in[threadIdx.x], d = threadIdx.x + blockIdx.x;
  if (d > atomicAdd(&dist[v], 0)) atomicMax(&dist[v], d);
}
//@ grid=2
K core_degree_wrong(const int* in, int* degree, int* removed) {
  int v = in[threadIdx.x];
  if (--degree[v] == 4) removed[v] = 1;                                                               //~ race
}
//@ grid=2
K core_degree_right(const int* in, int* degree, int* removed) {
  int v = in[threadIdx.x];
  if (atomicSub(&degree[v], 1) == 5) removed[v] = 1;
}
//@ grid=2 zero
K independent_set_wrong(const int* in, int* status) {            // looks at neighbors that decide at the same time
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool best = true;
  for (int k = 1; k <= 4; k++) if (status[(i + k) % 256] == 1) best = false;                          //~ race
  if (best) status[i] = 1;                                                                            //~ race
}
//@ grid=2 zero
K independent_set_right(const int* in, int* status, int* next) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool best = true;
  for (int k = 1; k <= 4; k++) if (status[(i + k) % 256] == 1) best = false;
  if (best) next[i] = 1;
}
//@ grid=2 zero
K independent_set_volatile_right(volatile int* status) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool best = true;
  for (int k = 1; k <= 4; k++) if (status[(i + k) % 256] == 1) best = false;
  if (best) status[i] = 1;
}
//@ grid=2 zero
K hook_wrong(const int* in, int* parent) {
  int u = in[threadIdx.x], v = (u + 1 + blockIdx.x) % 8;
  int pu = parent[u], pv = parent[v];                                                                 //~ race
  if (pu <= pv) parent[u] = pv + threadIdx.x + blockIdx.x;                                                         //~ race
}
//@ grid=2 zero
K hook_right(const int* in, int* parent) {
  int u = in[threadIdx.x], v = (u + 1 + blockIdx.x) % 8;
  int pu = ld_relaxed(&parent[u]), pv = ld_relaxed(&parent[v]);
  if (pu <= pv) atomicMax(&parent[u], pv + threadIdx.x);
}
//@ grid=2 zero
K push_then_fill_wrong(int* list, int* tail, int* out) {         // the slot is counted before it is filled
  if (blockIdx.x == 0) {
    int at = atomicAdd(tail, 1);
    list[at] = threadIdx.x;                                                                           //~ race
  } else {
    int n = ld_acquire(tail);
    if (threadIdx.x < n) out[threadIdx.x] = list[threadIdx.x];                                        //~ race
  }
}
//@ grid=2 zero
K push_then_fill_right(int* list, int* ready, int* out) {
  if (blockIdx.x == 0) {
    list[threadIdx.x] = threadIdx.x;
    st_release(&ready[threadIdx.x], 1);
  } else if (ld_acquire(&ready[threadIdx.x])) {
    out[threadIdx.x] = list[threadIdx.x];
  }
}
//@ grid=2 zero
K push_batch_wrong(int* list, int* tail, int* out) {             // one thread publishes what the warp wrote, without a barrier
  if (blockIdx.x == 0) {
    list[threadIdx.x] = threadIdx.x;                                                                  //~ race
    if (threadIdx.x % 32 == 0) { __threadfence(); atomicAdd(tail, 32); }
  } else if (ld_acquire(tail) == 128) {
    out[threadIdx.x] = list[threadIdx.x];                                                             //~ race
  }
}
//@ grid=2 zero
K push_batch_right(int* list, int* tail, int* out) {
  if (blockIdx.x == 0) {
    list[threadIdx.x] = threadIdx.x;
    __syncwarp();
    if (threadIdx.x % 32 == 0) { __threadfence(); atomicAdd(tail, 32); }
  } else if (ld_acquire(tail) == 128) {
    out[threadIdx.x] = list[threadIdx.x];
  }
}
//@ grid=2 zero
K acquire_cta_wrong(int* data, int* flag, int* out) {            // the reader's scope is its own block
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { data[0] = 7; st_release(flag, 1); }                                       //~ race
  } else if (threadIdx.x == 0) {
    while (ld_acquire_cta(flag) == 0) {}
    out[0] = data[0];                                                                                 //~ race
  }
}
//@ grid=2 zero
K acquire_cta_right(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { data[0] = 7; st_release(flag, 1); }
  } else if (threadIdx.x == 0) {
    while (ld_acquire(flag) == 0) {}
    out[0] = data[0];
  }
}
//@ grid=2 zero
K poll_then_fence_wrong(int* data, int* flag, int* out) {        // the fence stands before the poll
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { data[0] = 7; __threadfence(); st_relaxed(flag, 1); }                      //~ race
  } else if (threadIdx.x == 0) {
    __threadfence();
    while (ld_relaxed(flag) == 0) {}
    out[0] = data[0];                                                                                 //~ race
  }
}
//@ grid=2 zero
K poll_then_fence_right(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { data[0] = 7; __threadfence(); st_relaxed(flag, 1); }
  } else if (threadIdx.x == 0) {
    while (ld_relaxed(flag) == 0) {}
    __threadfence();
    out[0] = data[0];
  }
}
//@ grid=2 zero
K overwritten_flag_wrong(int* data, int* flag, int* out) {       // a second store releases what came before the first, and no more
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { st_release(flag, 1); data[0] = 7; st_relaxed(flag, 2); }                  //~ race
  } else if (threadIdx.x == 0) {
    while (ld_acquire(flag) != 2) {}
    out[0] = data[0];                                                                                 //~ race
  }
}
//@ grid=2 zero
K flag_stored_again_right(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { data[0] = 7; st_release(flag, 1); st_relaxed(flag, 2); }
  } else if (threadIdx.x == 0) {
    while (ld_acquire(flag) != 2) {}
    out[0] = data[0];
  }
}
//@ grid=3 zero
K flag_stored_again_by_another_wrong(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    data[0] = 7; st_release(flag, 1);                                                                 //~ race
  } else if (blockIdx.x == 1) {
    while (ld_relaxed(flag) != 1) {}
    st_relaxed(flag, 2);
  } else {
    while (ld_acquire(flag) != 2) {}
    out[0] = data[0];                                                                                 //~ race
  }
}
//@ grid=3 zero
K flag_taken_back_and_stored_again_right(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    data[0] = 7; st_release(flag, 1);
    while (ld_relaxed(flag) != 2) {}
    st_relaxed(flag, 3);
  } else if (blockIdx.x == 1) {
    while (ld_relaxed(flag) != 1) {}
    st_relaxed(flag, 2);
  } else {
    while (ld_acquire(flag) != 3) {}
    out[0] = data[0];
  }
}
//@ grid=2 zero
K overwritten_flag_right(int* data, int* flag, int* out) {       // an update continues it
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) { data[0] = 7; st_release(flag, 1); atomicAdd(flag, 1); }
  } else if (threadIdx.x == 0) {
    while (ld_acquire(flag) != 2) {}
    out[0] = data[0];
  }
}
//@ grid=3 zero
K relay_wrong(int* data, int* flag, int* out) {                  // the middle one passes on without having acquired
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { data[0] = 7; st_release(&flag[0], 1); }                                      //~ race
  if (blockIdx.x == 1) { while (ld_relaxed(&flag[0]) == 0) {} st_release(&flag[1], 1); }
  if (blockIdx.x == 2) { while (ld_acquire(&flag[1]) == 0) {} out[0] = data[0]; }                      //~ race
}
//@ grid=3 zero
K relay_right(int* data, int* flag, int* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { data[0] = 7; st_release(&flag[0], 1); }
  if (blockIdx.x == 1) { while (ld_acquire(&flag[0]) == 0) {} st_release(&flag[1], 1); }
  if (blockIdx.x == 2) { while (ld_acquire(&flag[1]) == 0) {} out[0] = data[0]; }
}
//@ grid=2 zero
K lock_read_outside_wrong(int* sum, int* lock, int* out) {       // reads what the lock guards before it has the lock
  if (threadIdx.x == 0) {
    int before = *sum;                                                                                //~ race
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *sum = before + 1;                                                                                //~ race
    __threadfence();
    atomicExch(lock, 0);
  }
}
//@ grid=2 zero
K lock_read_outside_right(int* sum, int* lock, int* out) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *sum = *sum + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}
//@ grid=2 zero
K block_behind_lock_wrong(int* sum, int* lock) {                 // one thread takes the lock for its block, which does not wait for it
  if (threadIdx.x == 0) { while (atomicCAS(lock, 0, 1) != 0) {} __threadfence(); }
  sum[threadIdx.x] += 1 + blockIdx.x;                                                                 //~ race
  __syncthreads();
  if (threadIdx.x == 0) { __threadfence(); atomicExch(lock, 0); }
}
//@ grid=2 zero
K block_behind_lock_right(int* sum, int* lock) {
  if (threadIdx.x == 0) { while (atomicCAS(lock, 0, 1) != 0) {} __threadfence(); }
  __syncthreads();
  sum[threadIdx.x] += 1 + blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) { __threadfence(); atomicExch(lock, 0); }
}
//@ grid=2 zero
K claim_wrong(const int* in, int* owner, int* value) {           // whoever sees 0 believes that it is alone
  int v = in[threadIdx.x];
  if (owner[v] == 0) {                                                                                //~ race
    owner[v] = 1 + threadIdx.x;                                                                       //~ race
    value[v] = threadIdx.x;                                                                           //~ race
  }
}
//@ grid=2 zero
K claim_right(const int* in, int* owner, int* value) {
  int v = in[threadIdx.x];
  if (atomicCAS(&owner[v], 0, 1 + threadIdx.x) == 0) value[v] = threadIdx.x;
}
//@ zero
K frontier_shared_wrong(const int* in, int* out) {               // the queue's length is read before all have pushed
  __shared__ int queue[128], length;
  if (threadIdx.x == 0) length = 0;
  __syncthreads();
  if (threadIdx.x & 1) queue[atomicAdd(&length, 1)] = threadIdx.x;                                    //~ race
  for (int i = threadIdx.x; i < length; i += blockDim.x) out[i] = queue[i];                           //~ race
}
//@ zero
K frontier_shared_right(const int* in, int* out) {
  __shared__ int queue[128], length;
  if (threadIdx.x == 0) length = 0;
  __syncthreads();
  if (threadIdx.x & 1) queue[atomicAdd(&length, 1)] = threadIdx.x;
  __syncthreads();
  for (int i = threadIdx.x; i < length; i += blockDim.x) out[i] = queue[i];
}
//@ grid=2 zero
K per_block_total_wrong(const int* in, int* total) {             // one cell for all blocks, added to by one thread of each
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[threadIdx.x] + 1);
  __syncthreads();
  if (threadIdx.x == 0) total[0] += sum + blockIdx.x;                                                 //~ race
}
//@ grid=2 zero
K per_block_total_right(const int* in, int* total) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[threadIdx.x] + 1);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&total[0], sum + blockIdx.x);
}
//@ grid=2 zero
K color_conflict_wrong(const int* in, int* color) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int used = 0;
  for (int k = 0; k < 3; k++) used |= 1 << color[(i + in[i] + k) % 256];                              //~ race
  color[i] = __ffs(~used);                                                                            //~ race
}
//@ grid=2 zero
K color_conflict_right(const int* in, const int* color, int* next) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int used = 0;
  for (int k = 0; k < 3; k++) used |= 1 << color[(i + in[i] + k) % 256];
  next[i] = __ffs(~used);
}
//@ grid=3 zero
K in_place_scan_right(int* data, int* flag) {                    // as in a selection in place: what was read before a barrier is read before a relaxed flag
  int t = threadIdx.x, at = blockIdx.x * blockDim.x + t;
  int v = data[at];
  __syncthreads();
  if (t == 0) {
    if (blockIdx.x > 0) while (ld_relaxed(&flag[blockIdx.x - 1]) == 0) {}
    st_relaxed(&flag[blockIdx.x], 1);
  }
  __syncthreads();
  if (at > 0) data[at - 1] = v + 1;
}
//@ grid=3 zero
K in_place_scan_wrong(int* data, int* flag) {                    // without the barrier, others may still read
  int t = threadIdx.x, at = blockIdx.x * blockDim.x + t;
  int v = data[at];                                                                                   //~ race
  if (t == 0) {
    if (blockIdx.x > 0) while (ld_relaxed(&flag[blockIdx.x - 1]) == 0) {}
    st_relaxed(&flag[blockIdx.x], 1);
  }
  __syncthreads();
  if (at > 0) data[at - 1] = v + 1;                                                                   //~ race
}
//@ grid=3 zero
K in_place_write_wrong(int* data, int* flag, int* out) {         // what was written is not passed on by a relaxed flag
  int t = threadIdx.x, at = blockIdx.x * blockDim.x + t;
  data[at] = t;                                                                                       //~ race
  __syncthreads();
  if (t == 0) {
    if (blockIdx.x > 0) while (ld_relaxed(&flag[blockIdx.x - 1]) == 0) {}
    st_relaxed(&flag[blockIdx.x], 1);
  }
  __syncthreads();
  if (blockIdx.x > 0) out[at] = data[at - 128];                                                       //~ race
}
