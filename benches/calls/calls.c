// The calls of calls.ptx in C, none inlined. usage: calls NAME COUNT; prints the last result of thread 0 to 31, then ns a call.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUTLINE __attribute__((noinline))
// Keeps the optimiser from seeing that a function has no effects.
#define OPAQUE __asm__ volatile("")

OUTLINE static uint32_t step(uint32_t x) { OPAQUE; return x * 1664525u + 1013904223u; }
OUTLINE static uint32_t twist(uint32_t x) { OPAQUE; return x ^ x >> 7; }

struct pair { uint8_t tag; double value; uint32_t count; };
OUTLINE static struct pair grow(struct pair s) {
    OPAQUE;
    s.tag += 1;
    s.value = __builtin_fma(s.value, 0x1.ffffde7210be9p-1, 1.0);
    s.count += 3;
    return s;
}

OUTLINE static uint32_t down(uint32_t n, uint32_t x) {
    if (n == 0) return x;
    uint32_t below = down(n - 1, x);
    __asm__ volatile("" : "+r"(below)); // else this becomes a loop
    return below + n;
}

static uint32_t (*volatile table[2])(uint32_t) = {step, twist};

static uint32_t run(const char *name, uint32_t thread, uint32_t count) {
    uint32_t x = thread;
    if (!strcmp(name, "direct")) {
        while (count--) x = step(x);
    } else if (!strcmp(name, "structure")) {
        struct pair s = {0, thread, thread};
        while (count--) s = grow(s);
        x = s.count + (uint32_t)s.value + s.tag;
    } else if (!strcmp(name, "recursion")) {
        for (count /= 16; count--;) x = down(15, x);
    } else {
        for (; count; count--) x = table[count & 1](x);
    }
    return x;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    uint32_t count = (uint32_t)atoi(argv[2]), result[32];
    double least = 1e30;
    for (int round = 0; round < 5; round++) {
        double begun = now();
        for (uint32_t t = 0; t < 32; t++) result[t] = run(argv[1], t, count);
        double took = now() - begun;
        if (took < least) least = took;
    }
    for (int t = 0; t < 32; t++) printf("%u ", result[t]);
    printf("\n%.3f\n", least / 32 / count);
    return 0;
}
