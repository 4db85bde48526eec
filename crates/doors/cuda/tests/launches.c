/* Device code that calls the CUDA device runtime without being linked with it: launches (CUDA C++ Programming Guide, "CUDA Dynamic
   Parallelism"), graphs and cooperative groups. Results follow from the guide. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(H *, int), cuCtxSetCurrent(H), cuCtxSynchronize(void);
int cuMemAlloc_v2(Ptr *, size_t), cuMemcpyDtoH_v2(void *, Ptr, size_t), cuMemsetD32_v2(Ptr, unsigned, size_t);
int cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);
int cuStreamCreate(H *, unsigned), cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *), cuStreamSynchronize(H);
int cuGraphInstantiateWithFlags(H *, H, unsigned long long), cuGraphLaunch(H, H);
int cuLaunchCooperativeKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **);

static int failures;
#define CHECK(what) do { if (!(what)) { printf("launches.c:%d: %s\n", __LINE__, #what); failures++; } } while (0)
#define OK(call) do { int r_ = (call); if (r_) { printf("launches.c:%d: %s = %d\n", __LINE__, #call, r_); exit(1); } } while (0)

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);\n"
    ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);\n"
    ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
    ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
    /* Launches `kernel` with a grid of `ctas`, one pointer and one byte as parameters. */
    ".func (.param .b32 error) launch(.param .b64 kernel, .param .b32 ctas, .param .b64 stream, .param .b64 to, .param .b32 value) {\n"
    ".reg .b64 %k, %p, %s, %t; .reg .b32 %n, %v, %e;\n"
    ".param .b64 a; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 buffer; .param .b64 on; .param .b32 code;\n"
    "ld.param.b64 %k, [kernel]; ld.param.b32 %n, [ctas]; ld.param.b64 %s, [stream]; ld.param.b64 %t, [to]; ld.param.b32 %v, [value];\n"
    "st.param.b64 [a], %k; st.param.b32 [g], %n; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;\n"
    "st.param.b32 [b], 32; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1; st.param.b32 [s], 0;\n"
    "call (buffer), __cudaCDP2GetParameterBufferV2, (a, g, b, s); ld.param.b64 %p, [buffer];\n"
    "st.b64 [%p], %t; st.b8 [%p+8], %v; st.param.b64 [a], %p; st.param.b64 [on], %s;\n"
    "call (code), __cudaCDP2LaunchDeviceV2, (a, on); ld.param.b32 %e, [code]; st.param.b32 [error], %e; ret; }\n"
    ".visible .entry append(.param .u64 to, .param .u8 value) {\n" /* to[0] counts, to[1...] says in which order they came */
    ".reg .pred %p; .reg .b32 %t, %n, %v; .reg .b64 %d, %o;\n"
    "mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; @%p ret;\n"
    "ld.param.u64 %d, [to]; ld.param.u8 %v, [value]; atom.global.add.u32 %n, [%d], 1;\n"
    "mad.wide.u32 %o, %n, 4, %d; st.global.u32 [%o+4], %v; ret; }\n"
    ".visible .entry parent(.param .u64 to) {\n"
    ".reg .pred %p; .reg .b32 %t, %e; .reg .b64 %d, %f;\n"
    ".param .b64 k; .param .b32 c; .param .b64 s; .param .b64 w; .param .b32 v; .param .b32 code;\n"
    "mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; @%p ret;\n"
    "ld.param.u64 %d, [to]; mov.u64 %f, append; st.param.b64 [k], %f; st.param.b64 [w], %d; st.param.b32 [c], 1;\n"
    "st.param.b64 [s], 3; st.param.b32 [v], 200; call (code), launch, (k, c, s, w, v);\n" /* to the tail stream */
    "st.param.b64 [s], 0; st.param.b32 [v], 1; call (code), launch, (k, c, s, w, v);\n"
    "st.param.b32 [v], 2; call (code), launch, (k, c, s, w, v);\n"
    "st.param.b32 [c], 0; call (code), launch, (k, c, s, w, v);\n" /* a grid of nothing */
    "ld.param.b32 %e, [code]; st.global.u32 [%d+60], %e; ret; }\n"
    ".visible .entry clash(.param .u64 to, .param .u8 value) {\n" /* all lanes write one word */
    ".reg .b32 %t; .reg .b64 %d; ld.param.u64 %d, [to]; mov.u32 %t, %tid.x; st.global.u32 [%d+40], %t; ret; }\n"
    ".visible .entry careless(.param .u64 to) {\n"
    ".reg .pred %p; .reg .b32 %t; .reg .b64 %d, %f;\n"
    ".param .b64 k; .param .b32 c; .param .b64 s; .param .b64 w; .param .b32 v; .param .b32 code;\n"
    "mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; @%p ret;\n"
    "ld.param.u64 %d, [to]; mov.u64 %f, clash; st.param.b64 [k], %f; st.param.b64 [w], %d; st.param.b32 [c], 1;\n"
    "st.param.b64 [s], 0; st.param.b32 [v], 0; call (code), launch, (k, c, s, w, v); ret; }\n"
    ".visible .entry waits(.param .u64 to) {\n" /* right: written, a barrier, and then the launch */
    ".reg .pred %p; .reg .b32 %t; .reg .b64 %d, %f;\n"
    ".param .b64 k; .param .b32 c; .param .b64 s; .param .b64 w; .param .b32 v; .param .b32 code;\n"
    "ld.param.u64 %d, [to]; mov.u64 %f, append; st.param.b64 [k], %f; st.param.b64 [w], %d; st.param.b32 [c], 1;\n"
    "st.param.b64 [s], 0; st.param.b32 [v], 0; mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; mov.u32 %t, 5;\n"
    "@!%p bra on; st.global.u32 [%d], %t; on: bar.sync 0; @%p ret; call (code), launch, (k, c, s, w, v); ret; }\n"
    ".visible .entry hasty(.param .u64 to) {\n" /* wrong: other threads write without a barrier before the launch */
    ".reg .pred %p; .reg .b32 %t; .reg .b64 %d, %f;\n"
    ".param .b64 k; .param .b32 c; .param .b64 s; .param .b64 w; .param .b32 v; .param .b32 code;\n"
    "ld.param.u64 %d, [to]; mov.u64 %f, append; st.param.b64 [k], %f; st.param.b64 [w], %d; st.param.b32 [c], 1;\n"
    "st.param.b64 [s], 0; st.param.b32 [v], 0; mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; mov.u32 %t, 5;\n"
    "@%p st.global.u32 [%d], %t; @%p ret; call (code), launch, (k, c, s, w, v); ret; }\n"
    ".visible .entry looks(.param .u64 to) {\n" /* wrong: reads what the launched grid writes */
    ".reg .pred %p; .reg .b32 %t; .reg .b64 %d, %f;\n"
    ".param .b64 k; .param .b32 c; .param .b64 s; .param .b64 w; .param .b32 v; .param .b32 code;\n"
    "ld.param.u64 %d, [to]; mov.u64 %f, append; st.param.b64 [k], %f; st.param.b64 [w], %d; st.param.b32 [c], 1;\n"
    "st.param.b64 [s], 0; st.param.b32 [v], 0; mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; mov.u32 %t, 5;\n"
    "@%p ret; call (code), launch, (k, c, s, w, v); ld.global.u32 %t, [%d]; ret; }\n"
    ".visible .entry tails(.param .u64 to) {\n" /* right: the tail stream begins when the grid has ended */
    ".reg .pred %p; .reg .b32 %t; .reg .b64 %d, %f;\n"
    ".param .b64 k; .param .b32 c; .param .b64 s; .param .b64 w; .param .b32 v; .param .b32 code;\n"
    "ld.param.u64 %d, [to]; mov.u64 %f, append; st.param.b64 [k], %f; st.param.b64 [w], %d; st.param.b32 [c], 1;\n"
    "st.param.b64 [s], 0; st.param.b32 [v], 0; mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; mov.u32 %t, 5;\n"
    "st.param.b64 [s], 3; @%p ret; call (code), launch, (k, c, s, w, v); ld.global.u32 %t, [%d]; ret; }\n"
    ".visible .entry deeper(.param .u64 to, .param .u8 value) {\n"
    ".reg .pred %p; .reg .b32 %t, %n, %v; .reg .b64 %d, %f;\n"
    ".param .b64 k; .param .b32 c; .param .b64 s; .param .b64 w; .param .b32 v; .param .b32 code;\n"
    "mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; @%p ret;\n"
    "ld.param.u64 %d, [to]; ld.param.u8 %v, [value]; atom.global.add.u32 %n, [%d], 1;\n"
    "setp.eq.u32 %p, %v, 0; @%p ret; sub.u32 %v, %v, 1; mov.u64 %f, deeper;\n"
    "st.param.b64 [k], %f; st.param.b64 [w], %d; st.param.b32 [c], 1; st.param.b64 [s], 4; st.param.b32 [v], %v;\n"
    "call (code), launch, (k, c, s, w, v); ret; }\n"
    ".visible .entry meet(.param .u64 to) {\n" /* every thread adds 1, all meet, and each sees all */
    ".reg .b32 %c, %n, %t, %i, %v; .reg .b64 %h, %d, %o; .param .b32 g; .param .b64 h; .param .b32 f; .param .b32 code;\n"
    "ld.param.u64 %d, [to]; red.global.add.u32 [%d], 1;\n"
    "st.param.b32 [g], 1; call (h), cudaCGGetIntrinsicHandle, (g); ld.param.b64 %h, [h];\n"
    "st.param.b64 [h], %h; st.param.b32 [f], 0; call (code), cudaCGSynchronize, (h, f);\n"
    "ld.volatile.global.u32 %v, [%d]; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x;\n"
    "mad.lo.u32 %i, %c, %n, %t; mad.wide.u32 %o, %i, 4, %d; st.global.u32 [%o+4], %v; ret; }\n";

/* Kernels of graphs that launch graphs (CUDA C++ Programming Guide, "Device Graph Launch"). */
static const char graphs[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b32 r) cudaGraphLaunch(.param .b64 graph, .param .b64 stream);\n"
    ".visible .entry append(.param .u64 to, .param .u32 value) {\n"
    ".reg .b32 %n, %v; .reg .b64 %d, %o; ld.param.u64 %d, [to]; ld.param.u32 %v, [value];\n"
    "atom.global.add.u32 %n, [%d], 1; mad.wide.u32 %o, %n, 4, %d; st.global.u32 [%o+4], %v; ret; }\n"
    ".visible .entry start(.param .u64 to, .param .u64 last, .param .u64 other) {\n"
    ".reg .b32 %n, %e; .reg .b64 %d, %o, %g; .param .b64 g; .param .b64 s; .param .b32 code; ld.param.u64 %d, [to];\n"
    "ld.param.u64 %g, [last]; st.param.b64 [g], %g; st.param.b64 [s], 0x0100000000000000; call (code), cudaGraphLaunch, (g, s);\n"
    "ld.param.b32 %e, [code]; st.global.u32 [%d+60], %e;\n"
    "ld.param.u64 %g, [other]; st.param.b64 [g], %g; st.param.b64 [s], 0x0200000000000000; call (code), cudaGraphLaunch, (g, s);\n"
    "ld.param.b32 %e, [code]; st.global.u32 [%d+64], %e;\n"
    "st.param.b64 [s], 0; call (code), cudaGraphLaunch, (g, s); ld.param.b32 %e, [code]; st.global.u32 [%d+68], %e;\n"
    "atom.global.add.u32 %n, [%d], 1; mad.wide.u32 %o, %n, 4, %d; st.global.u32 [%o+4], 1; ret; }\n"
    ".visible .entry again(.param .u64 to) {\n" /* the graph of this kernel launches itself until it has run five times */
    ".reg .pred %p; .reg .b32 %n; .reg .b64 %d, %g; .param .b64 g; .param .b64 s; .param .b32 code; ld.param.u64 %d, [to];\n"
    "atom.global.add.u32 %n, [%d], 1; setp.ge.u32 %p, %n, 4; @%p ret;\n"
    "mov.u64 %g, %current_graph_exec; st.param.b64 [g], %g; st.param.b64 [s], 0x0100000000000000;\n"
    "call (code), cudaGraphLaunch, (g, s); ret; }\n";

/* A graph of one kernel, or of two in this order, that device code may launch. */
static H graph_of(H stream, H kernel, void **params, H second, void **its_params)
{
    const unsigned long long device_launch = 4;
    H graph, exec;
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, 0));
    if (second)
        OK(cuLaunchKernel(second, 1, 1, 1, 1, 1, 1, 0, stream, its_params, 0));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, device_launch));
    return exec;
}

static void kernels_launch_graphs(Ptr to)
{
    H module, stream, append, start, again, last, other, first;
    unsigned got[32], two = 2, seven = 7, nine = 9;
    void *with_two[] = { &to, &two }, *with_seven[] = { &to, &seven }, *with_nine[] = { &to, &nine }, *starting[] = { &to, &last, &other };
    OK(cuModuleLoadData(&module, graphs));
    OK(cuModuleGetFunction(&append, module, "append"));
    OK(cuModuleGetFunction(&start, module, "start"));
    OK(cuModuleGetFunction(&again, module, "again"));
    OK(cuStreamCreate(&stream, 0));
    last = graph_of(stream, append, with_nine, 0, 0);
    other = graph_of(stream, append, with_seven, 0, 0);
    first = graph_of(stream, start, starting, append, with_two);
    OK(cuMemsetD32_v2(to, 0, 129));
    OK(cuGraphLaunch(first, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(got, to, sizeof got));
    /* The tail launch comes after the graph and all that it launches, which may run in any order beside the second kernel. */
    CHECK(got[0] == 4 && got[1] + got[2] + got[3] == 1 + 2 + 7 && got[4] == 9);
    CHECK(got[15] == 0 && got[16] == 0 && got[17] != 0); /* the null stream takes no graphs */

    OK(cuMemsetD32_v2(to, 0, 129));
    OK(cuLaunchKernel(start, 1, 1, 1, 1, 1, 1, 0, stream, starting, 0)); /* not part of a graph */
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(got, to, sizeof got));
    CHECK(got[0] == 1 && got[15] != 0 && got[16] != 0);

    OK(cuMemsetD32_v2(to, 0, 129));
    OK(cuGraphLaunch(graph_of(stream, again, with_two, 0, 0), stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(got, to, sizeof got));
    CHECK(got[0] == 5);
}

int main(int argc, char **argv)
{
    H context, module, kernel;
    Ptr to;
    unsigned got[129], value;
    void *params[] = { &to, &value };
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc_v2(&to, sizeof got));
    OK(cuModuleLoadData(&module, ptx));

    OK(cuMemsetD32_v2(to, 0, 129));
    OK(cuModuleGetFunction(&kernel, module, "parent"));
    OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, params, 0));
    OK(cuMemcpyDtoH_v2(got, to, sizeof got));
    CHECK(got[0] == 3 && got[1] == 1 && got[2] == 2 && got[3] == 200);
    CHECK(got[15] == 9); /* cudaErrorInvalidConfiguration */

    OK(cuMemsetD32_v2(to, 0, 129));
    OK(cuModuleGetFunction(&kernel, module, "meet"));
    OK(cuLaunchCooperativeKernel(kernel, 4, 1, 1, 32, 1, 1, 0, 0, params));
    OK(cuMemcpyDtoH_v2(got, to, sizeof got));
    for (int i = 0; i <= 128; i++)
        CHECK(got[i] == 128);

    OK(cuMemsetD32_v2(to, 0, 129));
    OK(cuModuleGetFunction(&kernel, module, "deeper"));
    value = 20;
    OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, params, 0));
    OK(cuMemcpyDtoH_v2(got, to, sizeof got));
    CHECK(got[0] == 21);
    kernels_launch_graphs(to);
    if (argc > 1 && strcmp(argv[1], "deep") && strcmp(argv[1], "right")) {
        OK(cuModuleGetFunction(&kernel, module, argv[1]));
        OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, params, 0));
    }
    if (argc > 1 && !strcmp(argv[1], "deep")) {
        value = 100; /* deeper than any device goes */
        OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, params, 0));
        CHECK(cuCtxSynchronize() != 0);
    }
    if (!failures)
        puts("right");
    return failures != 0;
}
