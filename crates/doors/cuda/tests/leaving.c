/* A thread ends the process while another waits for the compilation of long kernels. The argument: after how many milliseconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(H *, int), cuCtxSetCurrent(H), cuModuleLoadData(H *, const void *);
int cuModuleGetFunction(H *, H, const char *), cuMemAlloc_v2(Ptr *, size_t), cuCtxSynchronize(void);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

static void *leave(void *milliseconds) {
    usleep(1000 * atoi(milliseconds));
    exit(7);
}

/* A kernel of about five instructions for each `step`. */
static char *kernel(char *at, const char *name, int steps) {
    at += sprintf(at, ".visible .entry %s(.param .u64 p) {\n.reg .u64 %%a, %%b;\n.reg .u32 %%t, %%x, %%y;\n.reg .pred %%p;\n", name);
    at += sprintf(at, "ld.param.u64 %%a, [p];\nmov.u32 %%t, %%tid.x;\nmad.wide.u32 %%a, %%t, 4, %%a;\nld.global.u32 %%x, [%%a];\n");
    for (int i = 1; i <= steps; i++) {
        at += sprintf(at, "mad.lo.u32 %%y, %%x, %d, %%t;\nsetp.gt.u32 %%p, %%y, %d;\n", 2 * i + 1, 7777 * i);
        at += sprintf(at, "@%%p shf.l.wrap.b32 %%x, %%y, %%x, %d;\nld.global.u32 %%y, [%%a+%d];\nxor.b32 %%x, %%x, %%y;\n", i % 32, 4 * i);
    }
    return at + sprintf(at, "st.global.u32 [%%a], %%x;\nret;\n}\n");
}

int main(int count, char **arguments) {
    static char text[1 << 20];
    H context, module, function;
    Ptr memory;
    pthread_t thread;
    void *parameters[] = {&memory};
    const char *names[] = {"first", "second", "third"};
    char *at = text + sprintf(text, ".version 7.8\n.target sm_80\n.address_size 64\n");

    for (int i = 0; i < 3; i++) at = kernel(at, names[i], 300 + i);
    if (count < 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    if (cuModuleLoadData(&module, text) || cuMemAlloc_v2(&memory, 1 << 20)) return 1;
    if (pthread_create(&thread, 0, leave, arguments[1])) return 1;
    for (int i = 0; i < 3; i++) {
        /* Calls fail when `exit` has begun; a second `exit` would decide about the exit code. */
        if (cuModuleGetFunction(&function, module, names[i])) break;
        if (cuLaunchKernel(function, 256, 1, 1, 256, 1, 1, 0, 0, parameters, 0) || cuCtxSynchronize()) break;
    }
    pthread_join(thread, 0);
    return 1;
}
