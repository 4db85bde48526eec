/* Work in several streams that accesses the same memory: `order NAME` does one thing, right or wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSynchronize(void), cuMemAlloc_v2(Ptr *, size_t), cuMemFree_v2(Ptr);
int cuMemHostAlloc(void **, size_t, unsigned), cuMemAllocAsync(Ptr *, size_t, H), cuMemFreeAsync(Ptr, H), cuMemcpyDtoHAsync_v2(void *, Ptr, size_t, H);
int cuMemAllocManaged(Ptr *, size_t, unsigned), cuMemFreeHost(void *), cuMemHostRegister_v2(void *, size_t, unsigned), cuMemHostUnregister(void *);
int cuMemcpyDtoH_v2(void *, Ptr, size_t), cuMemsetD32Async(Ptr, unsigned, size_t, H);
int cuMemcpyHtoDAsync_v2(Ptr, const void *, size_t, H), cuModuleGetGlobal_v2(Ptr *, size_t *, H, const char *);
int cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);
int cuStreamCreate(H *, unsigned), cuStreamSynchronize(H), cuStreamQuery(H), cuStreamWaitEvent(H, H, unsigned);
int cuLaunchHostFunc(H, void (*)(void *), void *);
int cuEventCreate(H *, unsigned), cuEventRecord(H, H), cuEventSynchronize(H);
int cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *), cuGraphInstantiateWithFlags(H *, H, Ptr), cuGraphLaunch(H, H);

/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct {
    H function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
    H kernel, context;
} Node;
int cuGraphCreate(H *, unsigned), cuGraphAddKernelNode_v2(H *, H, const H *, size_t, const Node *);
int cuGraphExecKernelNodeSetParams_v2(H, H, const Node *), cuGraphNodeSetEnabled(H, H, unsigned);

enum { NON_BLOCKING = 1, N = 64 };
#define OK(call) ok(call, #call, __LINE__)

static void ok(int code, const char *call, int line) {
    if (code) { printf("order.c:%d: %s = %d\n", line, call, code); exit(1); }
}

/* A function that streams call. */
static int seen;
static void look(void *at) { seen += ((volatile int *)at)[1]; }

static const char ptx[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n"
    ".visible .const .b32 table[64];\n"
    ".visible .entry look(.param .u64 p) {\n"
    ".reg .b32 %t; .reg .b64 %d, %c; ld.param.u64 %d, [p]; mov.u32 %t, %tid.x; mad.wide.u32 %d, %t, 4, %d; mov.u64 %c, table;\n"
    "mad.wide.u32 %c, %t, 4, %c; ld.const.u32 %t, [%c]; st.global.u32 [%d], %t; ret; }\n"
    ".visible .entry write(.param .u64 p) {\n"
    ".reg .b32 %t; .reg .b64 %d; ld.param.u64 %d, [p]; mov.u32 %t, %tid.x; mad.wide.u32 %d, %t, 4, %d; st.global.u32 [%d], %t; ret; }\n"
    ".visible .entry read(.param .u64 p) {\n"
    ".reg .b32 %t; .reg .b64 %d; ld.param.u64 %d, [p]; mov.u32 %t, %tid.x; mad.wide.u32 %d, %t, 4, %d; ld.global.u32 %t, [%d]; ret; }\n"
    ".visible .entry wait(.param .u64 p) {\n"
    ".reg .b32 %t; .reg .b64 %d; .reg .pred %p; ld.param.u64 %d, [p];\n"
    "again: ld.volatile.global.u32 %t, [%d]; setp.eq.u32 %p, %t, 0; @%p bra again; ret; }\n"
    /* Kernels that let the next one begin, and such as wait for those before them: in each thread, or in one and then at a barrier. */
#define AT ".reg .pred %p; .reg .b32 %t; .reg .b64 %d; ld.param.u64 %d, [p]; mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; mad.wide.u32 %d, %t, 4, %d;"
    ".visible .entry trigger(.param .u64 p) {" AT "st.global.u32 [%d], %t; griddepcontrol.launch_dependents; ret; }\n"
    ".visible .entry trigger_at_once(.param .u64 p) {" AT "griddepcontrol.launch_dependents; griddepcontrol.wait; st.global.u32 [%d], %t; ret; }\n"
    ".visible .entry trigger_late(.param .u64 p) {" AT "griddepcontrol.wait; griddepcontrol.launch_dependents; st.global.u32 [%d], %t; ret; }\n"
    ".visible .entry early(.param .u64 p) {" AT "ld.global.u32 %t, [%d]; griddepcontrol.wait; ret; }\n"
    ".visible .entry late(.param .u64 p) {" AT "griddepcontrol.wait; ld.global.u32 %t, [%d]; ret; }\n"
    ".visible .entry one_waits(.param .u64 p) {" AT "@!%p griddepcontrol.wait; ld.global.u32 %t, [%d]; ret; }\n"
    ".visible .entry one_waits_for_all(.param .u64 p) {" AT "@!%p griddepcontrol.wait; bar.sync 0; ld.global.u32 %t, [%d]; ret; }\n"
    ".visible .entry count(.param .u64 p) {\n"
    ".reg .b64 %d; ld.param.u64 %d, [p]; red.global.add.u32 [%d], 1; ret; }\n";

static H module, a, b, event;

static void launch_ctas(unsigned ctas, const char *name, H stream, Ptr at) {
    H function;
    void *args[] = { &at };
    OK(cuModuleGetFunction(&function, module, name));
    OK(cuLaunchKernel(function, ctas, 1, 1, N, 1, 1, 0, stream, args, NULL));
}

static void launch(const char *name, H stream, Ptr at) { launch_ctas(1, name, stream, at); }

/* CUlaunchConfig with CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: the launch may begin before the one before it has ended. */
typedef struct { unsigned id, pad, value[16]; } Attribute;
typedef struct { unsigned grid[3], block[3], shared; H stream; Attribute *attributes; unsigned count; } Config;
int cuLaunchKernelEx(const Config *, H, void **, void **);

static void overlap(const char *name, H stream, Ptr at) {
    H function;
    void *args[] = { &at };
    Attribute attribute = { 6, 0, { 1 } };
    Config config = { { 1, 1, 1 }, { N, 1, 1 }, 0, stream, &attribute, 1 };
    OK(cuModuleGetFunction(&function, module, name));
    OK(cuLaunchKernelEx(&config, function, args, NULL));
}

static void then(H from, H to) {
    OK(cuEventRecord(event, from));
    OK(cuStreamWaitEvent(to, event, 0));
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    H context, graph, exec;
    Ptr p;
    void *host;
#define IS(words) (!strcmp(name, words))
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuMemAlloc_v2(&p, 8 * N));
    /* Before there are streams, longer launches are not compared with others. */
    if (strstr(name, "after a million threads")) launch_ctas((1 << 20) / N, "read", NULL, p), launch("write", NULL, p), OK(cuCtxSynchronize());
    if (IS("wrong launch before there are streams")) launch("write", NULL, p);
    OK(cuMemHostAlloc(&host, 8 * N, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuStreamCreate(&a, strstr(name, "turns") ? 0 : NON_BLOCKING));
    OK(cuStreamCreate(&b, strstr(name, "turns") ? 0 : NON_BLOCKING));
    if (IS("wrong launch before there are streams")) launch("read", b, p), OK(cuStreamSynchronize(b));
    launch("write", NULL, p);
    OK(cuCtxSynchronize());

    if (IS("wrong writes after a million threads")) launch("write", a, p), launch("write", b, p + 4);
    if (IS("right halves after a million threads")) launch("write", a, p), launch("write", b, p + 4 * N);

    if (IS("right launch that waits for the program")) {
        *(volatile int *)host = 0, launch("wait", a, (Ptr)host), *(volatile int *)host = 1, launch("write", a, p);
    }
    if (IS("wrong copy")) launch("write", a, p), OK(cuMemcpyDtoHAsync_v2(host, p, 4, b));
    Ptr table;
    OK(cuModuleGetGlobal_v2(&table, NULL, module, "table"));
    if (IS("wrong constants")) launch("look", a, p), OK(cuMemcpyHtoDAsync_v2(table, host, 4, b));
    if (IS("right constants")) launch("look", a, p), then(a, b), OK(cuMemcpyHtoDAsync_v2(table, host, 4, b));
    if (IS("wrong constants, stored to by a kernel")) launch("look", a, p), launch("write", b, table);
    if (IS("right constants in order")) launch("write", a, table), launch("look", a, p);
    if (IS("right copy")) launch("write", a, p), then(a, b), OK(cuMemcpyDtoHAsync_v2(host, p, 4, b));
    if (IS("right copy after the program has waited")) {
        launch("write", a, p), OK(cuStreamSynchronize(a)), OK(cuMemcpyDtoHAsync_v2(host, p, 4, b));
    }
    if (IS("right copy after an event that the program has waited for")) {
        launch("write", a, p), OK(cuEventRecord(event, a)), OK(cuEventSynchronize(event)), OK(cuMemcpyDtoHAsync_v2(host, p, 4, b));
    }
    if (IS("wrong event, recorded too early")) {
        OK(cuEventRecord(event, a)), launch("write", a, p), OK(cuStreamWaitEvent(b, event, 0)), launch("read", b, p);
    }
    if (IS("wrong event, waited for by another stream")) launch("write", a, p), then(a, NULL), launch("read", b, p);
    if (IS("right chain")) launch("write", a, p), then(a, NULL), launch("read", NULL, p), then(NULL, b), launch("write", b, p);
    if (IS("wrong writes")) launch("write", a, p), launch("write", b, p + 4);
    if (IS("right halves")) launch("write", a, p), launch("write", b, p + 4 * N);
    if (IS("right reads")) launch("read", a, p), launch("read", b, p);
    if (IS("right counts")) launch("count", a, p), launch("count", b, p);
    if (IS("wrong count")) launch("count", a, p), launch("write", b, p);
    if (IS("wrong fill")) OK(cuMemsetD32Async(p, 7, N, a)), launch("read", b, p);
    if (IS("wrong default stream")) launch("write", NULL, p), launch("read", b, p);
    if (IS("right turns")) launch("write", a, p), launch("read", NULL, p), launch("write", b, p);
    if (IS("wrong turns")) launch("write", a, p), launch("write", b, p);
    if (IS("right free")) launch("write", a, p), OK(cuMemFreeAsync(p, a)), p = 0;
    if (IS("wrong free")) launch("write", a, p), OK(cuMemFreeAsync(p, b)), p = 0;
    if (IS("wrong allocation")) OK(cuMemFree_v2(p)), OK(cuMemAllocAsync(&p, 4 * N, a)), launch("write", b, p);
    if (IS("right allocation")) OK(cuMemFree_v2(p)), OK(cuMemAllocAsync(&p, 4 * N, a)), then(a, b), launch("write", b, p);
    if (IS("right allocation, waited for")) {
        OK(cuMemFree_v2(p)), OK(cuMemAllocAsync(&p, 4 * N, a)), OK(cuStreamSynchronize(a)), launch("write", b, p);
    }
    if (IS("right free by a call that waits")) launch("write", a, p), OK(cuMemFree_v2(p)), OK(cuMemAlloc_v2(&p, 8 * N)), launch("write", b, p);
    /* Programmatic dependent launches. */
    if (IS("wrong overlap, read before the wait")) launch("trigger", a, p), overlap("early", a, p);
    if (IS("wrong overlap without a wait")) launch("trigger", a, p), overlap("read", a, p);
    if (IS("wrong overlap, one thread waits for itself alone")) launch("trigger", a, p), overlap("one_waits", a, p);
    if (IS("right overlap")) launch("trigger", a, p), overlap("late", a, p);
    if (IS("right overlap, one thread waits for all")) launch("trigger", a, p), overlap("one_waits_for_all", a, p);
    if (IS("right overlap, early read of other memory")) launch("trigger", a, p), overlap("early", a, p + 4 * N);
    if (IS("right overlap of reads")) launch("read", a, p), overlap("early", a, p);
    if (IS("right early read without the attribute")) launch("trigger", a, p), launch("early", a, p);
    if (IS("right early read behind a launch that triggers nothing")) launch("write", a, p), overlap("early", a, p);
    if (IS("right early read behind a fill")) launch("trigger", a, p), OK(cuMemsetD32Async(p + 4 * N, 7, N, a)), overlap("early", a, p);
    if (IS("right early read, waited for by the program")) launch("trigger", a, p), OK(cuStreamSynchronize(a)), overlap("early", a, p);
    /* In chains, the one before the last may have begun, and have let the last begin, before the first has ended. */
    if (IS("wrong overlap with the last but one")) launch("trigger", a, p), overlap("trigger_at_once", a, p + 4 * N), overlap("early", a, p);
    if (IS("right overlap behind one that has waited")) launch("trigger", a, p), overlap("trigger_late", a, p + 4 * N), overlap("early", a, p);
    if (strstr(name, "overlap in captured")) {
        OK(cuStreamBeginCapture_v2(a, 0));
        launch("trigger", a, p);
        if (IS("wrong overlap in captured launches")) overlap("early", a, p);
        if (IS("right overlap in captured launches")) overlap("late", a, p);
        OK(cuStreamEndCapture(a, &graph));
        OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        OK(cuGraphLaunch(exec, a));
    }
    static int plain[2 * N];
    if (IS("wrong copy from pageable memory, beside a kernel")) OK(cuMemcpyHtoDAsync_v2(p, plain, 4 * N, a)), launch("read", b, p);
    if (IS("right copy from pageable memory, then a kernel")) OK(cuMemcpyHtoDAsync_v2(p, plain, 4 * N, a)), launch("read", a, p);
    if (IS("right copy to pageable memory, which the call waits for")) {
        OK(cuMemcpyDtoHAsync_v2(plain, p, 4 * N, a)), launch("write", b, p);
    }
    if (IS("wrong free of page-locked memory during a copy")) OK(cuMemcpyDtoHAsync_v2(host, p, 4 * N, a)), OK(cuMemFreeHost(host));
    if (IS("right free of page-locked memory")) {
        OK(cuMemcpyDtoHAsync_v2(host, p, 4 * N, a)), OK(cuStreamSynchronize(a)), OK(cuMemFreeHost(host));
    }
    if (IS("wrong unregistration during a copy")) {
        OK(cuMemHostRegister_v2(plain, sizeof plain, 0)), OK(cuMemcpyDtoHAsync_v2(plain, p, 4 * N, a)), OK(cuMemHostUnregister(plain));
    }
    if (IS("right unregistration")) {
        OK(cuMemHostRegister_v2(plain, sizeof plain, 0)), OK(cuMemcpyDtoHAsync_v2(plain, p, 4 * N, a)), OK(cuCtxSynchronize());
        OK(cuMemHostUnregister(plain));
    }
    if (strstr(name, "nodes")) {
        /* Two nodes that nothing orders, which write different memory until an argument changes. */
        Ptr other = p + 4 * N;
        void *first[] = { &p }, *second[] = { &other };
        Node node = { NULL, { 1, 1, 1 }, { N, 1, 1 }, 0, first, NULL, NULL, NULL };
        H one, two;
        OK(cuModuleGetFunction(&node.function, module, "write"));
        OK(cuGraphCreate(&graph, 0));
        OK(cuGraphAddKernelNode_v2(&one, graph, NULL, 0, &node));
        node.arguments = second;
        OK(cuGraphAddKernelNode_v2(&two, graph, IS("right nodes in order") ? &one : NULL, IS("right nodes in order"), &node));
        OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        OK(cuGraphLaunch(exec, a));
        node.arguments = first;
        if (!IS("right nodes")) OK(cuGraphExecKernelNodeSetParams_v2(exec, two, &node));
        if (IS("right nodes, one of them disabled")) OK(cuGraphNodeSetEnabled(exec, two, 0));
        if (IS("wrong nodes after a change of an argument")) second[0] = NULL; /* the arguments were copied */
        OK(cuGraphLaunch(exec, a));
    }
    /* The program's own accesses to page-locked and managed memory. */
    Ptr shared;
    volatile int *own, sum = 0;
    OK(cuMemHostAlloc((void **)&own, 4 * N, 0));
    OK(cuMemAllocManaged(&shared, 4 * N, 1));
    volatile int *managed = (volatile int *)shared;
    if (IS("wrong read by the program before it waits")) launch("write", a, (Ptr)own), sum += own[1];
    if (IS("right read by the program after it has waited")) launch("write", a, (Ptr)own), OK(cuStreamSynchronize(a)), sum += own[1];
    if (IS("right read by the program after it has asked")) {
        launch("write", a, (Ptr)own);
        while (cuStreamQuery(a)) continue;
        sum += own[1];
    }
    if (IS("right read by the program before the launch")) sum += own[1], launch("write", a, (Ptr)own);
    if (IS("right read by the program after an event")) {
        launch("write", a, (Ptr)own), OK(cuEventRecord(event, a)), OK(cuEventSynchronize(event)), sum += own[1], own[1] = 0;
    }
    if (IS("wrong read by the program after an event of another stream")) {
        launch("write", a, (Ptr)own), OK(cuEventRecord(event, b)), OK(cuEventSynchronize(event)), sum += own[1], own[1] = 0;
    }
    if (IS("wrong write by the program to what a kernel reads")) launch("read", a, shared), managed[1] = 1, sum += managed[1];
    if (IS("right read by the program of what a kernel reads")) launch("read", a, shared), sum += managed[1];
    if (IS("wrong read by the program of the target of a copy")) OK(cuMemcpyDtoHAsync_v2((void *)own, p, 4 * N, a)), sum += own[1];
    if (IS("right read by the program of the target of a copy")) OK(cuMemcpyDtoH_v2((void *)own, p, 4 * N)), sum += own[1];
    if (IS("wrong write by the program to the source of a copy")) OK(cuMemcpyHtoDAsync_v2(p, (void *)own, 4 * N, a)), own[1] = 1;
    if (IS("right read by the program of the source of a copy")) OK(cuMemcpyHtoDAsync_v2(p, (void *)own, 4 * N, a)), sum += own[1];
    if (IS("right read by the program beside what a kernel writes")) launch("write", a, (Ptr)host), sum += ((volatile int *)host)[N];
    if (IS("right reads by the program of new memory")) {
        launch("write", a, (Ptr)own), OK(cuStreamSynchronize(a)), launch("write", b, shared), OK(cuMemFree_v2(shared));
        OK(cuMemAllocManaged(&shared, 4 * N, 1)), sum += *(volatile int *)shared + own[1];
    }
    if (strstr(name, "host function")) {
        OK(cuMemcpyDtoHAsync_v2((void *)own, p, 4 * N, a));
        if (IS("right host function after an event")) then(a, b);
        if (IS("right host function after the program has waited")) OK(cuStreamSynchronize(a));
        if (IS("wrong host function beside a copy to what it reads")) OK(cuLaunchHostFunc(b, look, (void *)own));
        else OK(cuLaunchHostFunc(IS("right host function behind a copy in its stream") ? a : b, look, (void *)own));
    }
    if (strstr(name, "graph")) {
        OK(cuStreamBeginCapture_v2(a, 0));
        launch("write", a, p), launch("read", a, p);
        OK(cuStreamEndCapture(a, &graph));
        OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        OK(cuGraphLaunch(exec, a));
        if (IS("right graph")) then(a, b);
        launch("read", b, p);
    }
    OK(cuCtxSynchronize());
    puts("done");
    return 0;
}
