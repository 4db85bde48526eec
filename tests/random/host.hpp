// CUDA's threads on the host, for the programs that generate.py writes: every thread of a CTA is a context of its own, and whoever
// waits for others lets them run. Slow and simple: it says what a program's results are. CUDA C++ Programming Guide, sections 10.6
// (barriers), 10.14 (atomics) and 10.19 to 10.22 (votes, match, reductions and shuffles).
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __constant__
#define __noinline__ __attribute__((noinline))
#define __shared__ static

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host {
/// What the threads that wait for each other have handed in: the lanes of a mask, or the threads of a CTA.
struct Rendezvous {
    uint64_t value[1024];
    bool arrived[1024] = {};
    unsigned generation = 0;
    uint64_t taken[1024]; // what was handed in when all had arrived
};
struct Thread {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(256 * 1024);
    dim3 index;
    bool exited = false;
};
static std::vector<Thread> threads;
static unsigned current;
static ucontext_t scheduler;
static std::vector<std::pair<uint64_t, Rendezvous *>> meetings; // by warp and mask; the CTA's has the key all ones
static void (*body)();

static void yield() {
    swapcontext(&threads[current].context, &scheduler);
    threadIdx = threads[current].index;
}

static Rendezvous &meeting(uint64_t key) {
    for (auto &known : meetings)
        if (known.first == key) return *known.second;
    meetings.push_back({key, new Rendezvous()});
    return *meetings.back().second;
}

/// Hands in `value` and waits for the threads of which `member` is true; what all have handed in.
template <class Member> const uint64_t *all(uint64_t key, uint64_t value, Member member) {
    Rendezvous &here = meeting(key);
    here.value[current] = value;
    here.arrived[current] = true;
    unsigned generation = here.generation;
    for (;;) {
        if (here.generation != generation) break;
        bool complete = true;
        for (unsigned i = 0; i < threads.size(); i++)
            if (member(i) && !here.arrived[i]) complete = false;
        if (complete) {
            memcpy(here.taken, here.value, sizeof here.value);
            memset(here.arrived, 0, sizeof here.arrived);
            here.generation++;
            break;
        }
        yield();
    }
    return here.taken;
}

static const uint64_t *warp(unsigned mask, uint64_t value) {
    unsigned first = current & ~31u;
    const uint64_t *taken = all(uint64_t(first) << 32 | mask, value, [=](unsigned i) { return (i & ~31u) == first && mask >> (i & 31) & 1; });
    return taken + first;
}
static const uint64_t *cta(uint64_t value) {
    return all(~0ull, value, [](unsigned i) { return !threads[i].exited; });
}

static void enter() {
    threadIdx = threads[current].index;
    body();
    threads[current].exited = true;
    for (;;) swapcontext(&threads[current].context, &scheduler);
}

static void launch(unsigned ctas, unsigned size, void (*kernel)()) {
    body = kernel;
    gridDim.x = ctas;
    blockDim.x = size;
    for (blockIdx.x = 0; blockIdx.x < ctas; blockIdx.x++) {
        for (auto &known : meetings) delete known.second;
        meetings.clear();
        threads.clear();
        threads.resize(size);
        for (unsigned i = 0; i < size; i++) {
            Thread &thread = threads[i];
            thread.index.x = i;
            getcontext(&thread.context);
            thread.context.uc_stack.ss_sp = thread.stack.data();
            thread.context.uc_stack.ss_size = thread.stack.size();
            thread.context.uc_link = nullptr;
            makecontext(&thread.context, enter, 0);
        }
        for (unsigned left = size; left;) {
            left = 0;
            for (current = 0; current < size; current++)
                if (!threads[current].exited) {
                    swapcontext(&scheduler, &threads[current].context);
                    left++;
                }
        }
    }
}
} // namespace host

static unsigned lane_of_host() { return host::current & 31; }
inline void __syncthreads() { host::cta(0); }
inline int __syncthreads_count(int p) {
    const uint64_t *v = host::cta(p != 0);
    int n = 0;
    for (unsigned i = 0; i < blockDim.x; i++) n += v[i];
    return n;
}
inline int __syncthreads_and(int p) { return __syncthreads_count(p) == int(blockDim.x); }
inline int __syncthreads_or(int p) { return __syncthreads_count(p) != 0; }
inline void __syncwarp(unsigned mask = ~0u) { host::warp(mask, 0); }
inline unsigned __ballot_sync(unsigned mask, int p) {
    const uint64_t *v = host::warp(mask, p != 0);
    unsigned all = 0;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1 && v[i]) all |= 1u << i;
    return all;
}
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, p) == mask; }
inline unsigned __shfl_sync(unsigned mask, unsigned x, int from, int width = 32) {
    const uint64_t *v = host::warp(mask, x);
    return v[(lane_of_host() & ~(width - 1)) | (from & (width - 1))];
}
inline unsigned __shfl_xor_sync(unsigned mask, unsigned x, int by, int width = 32) {
    const uint64_t *v = host::warp(mask, x);
    int from = lane_of_host() ^ by, last = (lane_of_host() & ~(width - 1)) + width - 1;
    return from <= last ? v[from] : x;
}
inline unsigned __shfl_up_sync(unsigned mask, unsigned x, unsigned by, int width = 32) {
    const uint64_t *v = host::warp(mask, x);
    int from = int(lane_of_host()) - int(by), first = lane_of_host() & ~(width - 1);
    return from >= first ? v[from] : x;
}
inline unsigned __shfl_down_sync(unsigned mask, unsigned x, unsigned by, int width = 32) {
    const uint64_t *v = host::warp(mask, x);
    int from = lane_of_host() + by, last = (lane_of_host() & ~(width - 1)) + width - 1;
    return from <= last ? v[from] : x;
}
inline unsigned __match_any_sync(unsigned mask, unsigned x) {
    const uint64_t *v = host::warp(mask, x);
    unsigned all = 0;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1 && v[i] == x) all |= 1u << i;
    return all;
}
#define REDUCTION(name, join)                                                                                                             \
    inline unsigned name(unsigned mask, unsigned x) {                                                                                      \
        const uint64_t *v = host::warp(mask, x);                                                                                           \
        bool first = true;                                                                                                                 \
        unsigned a = 0;                                                                                                                    \
        for (int i = 0; i < 32; i++)                                                                                                       \
            if (mask >> i & 1) {                                                                                                           \
                unsigned b = unsigned(v[i]);                                                                                               \
                a = first ? b : (join);                                                                                                    \
                first = false;                                                                                                             \
            }                                                                                                                              \
        return a;                                                                                                                          \
    }
REDUCTION(__reduce_add_sync, a + b)
REDUCTION(__reduce_min_sync, a < b ? a : b)
REDUCTION(__reduce_max_sync, a > b ? a : b)
REDUCTION(__reduce_and_sync, a & b)
REDUCTION(__reduce_or_sync, a | b)
REDUCTION(__reduce_xor_sync, a ^ b)

template <class T> T exchange(T *p, T v) {
    T old = *p;
    *p = v;
    return old;
}
inline unsigned atomicAdd(unsigned *p, unsigned v) { return exchange(p, *p + v); }
inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) { return exchange(p, *p + v); }
inline unsigned atomicXor(unsigned *p, unsigned v) { return exchange(p, *p ^ v); }
inline unsigned atomicMin(unsigned *p, unsigned v) { return exchange(p, *p < v ? *p : v); }
inline unsigned atomicMax(unsigned *p, unsigned v) { return exchange(p, *p > v ? *p : v); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(unsigned x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
    return r;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    uint64_t both = uint64_t(b) << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= unsigned(both >> (8 * (s >> (4 * i) & 7)) & 255) << (8 * i);
    return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) { return unsigned(((uint64_t(hi) << 32 | lo) << (s & 31)) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline unsigned __float_as_uint(float f) {
    unsigned u;
    memcpy(&u, &f, 4);
    return u;
}
inline float __uint_as_float(unsigned u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
