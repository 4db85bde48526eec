/* Signals that end the process while a kernel runs. The argument: `own` installs a handler first, `abort` ends the process itself, `fault`
   lets a kernel fail before. The program says when the kernel runs. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(H *, int), cuCtxSetCurrent(H), cuModuleLoadData(H *, const void *);
int cuModuleGetFunction(H *, H, const char *), cuMemAllocHost_v2(void **, size_t), cuCtxSynchronize(void);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

/* `waits` tells that it runs by the first word, and ends when the second one is set. */
static const char *text = ".version 7.8\n.target sm_80\n.address_size 64\n"
                          ".visible .entry waits(.param .u64 p) {\n.reg .u64 %a;\n.reg .u32 %x;\n.reg .pred %q;\n"
                          "ld.param.u64 %a, [p];\nst.volatile.global.u32 [%a], 1;\n"
                          "L:\nld.volatile.global.u32 %x, [%a+4];\nsetp.eq.u32 %q, %x, 0;\n@%q bra L;\nret;\n}\n"
                          ".visible .entry fails() {\n.reg .u64 %a;\nmov.u64 %a, 16;\nst.global.u32 [%a], 1;\nret;\n}\n";

static void own(int signal) {
    (void)signal;
    _exit(3);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    H context, module, waits, fails;
    volatile unsigned *flags;
    void *parameters[] = {&flags};

    /* Shells start background processes with it ignored. */
    signal(SIGINT, SIG_DFL);
    if (!strcmp(what, "own")) signal(SIGTERM, own);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    if (cuModuleLoadData(&module, text) || cuMemAllocHost_v2((void **)&flags, 8)) return 1;
    if (cuModuleGetFunction(&waits, module, "waits") || cuModuleGetFunction(&fails, module, "fails")) return 1;
    flags[0] = flags[1] = 0;
    if (!strcmp(what, "fault")) {
        if (cuLaunchKernel(fails, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) || !cuCtxSynchronize()) return 1;
    } else {
        if (cuLaunchKernel(waits, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0)) return 1;
        while (!flags[0]) usleep(1000);
    }
    if (!strcmp(what, "abort")) abort();
    puts("runs");
    fflush(stdout);
    sleep(60);
    return 1;
}
