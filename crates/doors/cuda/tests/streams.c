/* Streams as the CUDA Driver API's documentation has them ("Stream synchronization behavior", "API synchronization behavior"): work
   beside the program and beside other streams, in order within a stream. Nothing here depends on how long anything takes: kernels wait
   for words of page-locked memory, which the program or other kernels set. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSetCurrent(H), cuCtxSynchronize(void), cuDeviceGetCount(int *);
int cuMemAlloc_v2(Ptr *, size_t), cuMemFree_v2(Ptr), cuMemHostAlloc(void **, size_t, unsigned), cuMemFreeAsync(Ptr, H);
int cuMemAllocAsync(Ptr *, size_t, H), cuMemcpyHtoDAsync_v2(Ptr, const void *, size_t, H), cuMemcpyDtoH_v2(void *, Ptr, size_t);
int cuMemcpyDtoHAsync_v2(void *, Ptr, size_t, H), cuMemsetD32Async(Ptr, unsigned, size_t, H), cuMemsetD32_v2(Ptr, unsigned, size_t);
int cuMemcpyDtoDAsync_v2(Ptr, Ptr, size_t, H), cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);
int cuStreamCreate(H *, unsigned), cuStreamSynchronize(H), cuStreamQuery(H), cuStreamDestroy_v2(H), cuStreamWaitEvent(H, H, unsigned);
int cuStreamAddCallback(H, void (*)(H, int, void *), void *, unsigned), cuLaunchHostFunc(H, void (*)(void *), void *);
int cuStreamWaitValue32_v2(H, Ptr, unsigned, unsigned), cuStreamWriteValue32_v2(H, Ptr, unsigned, unsigned);
int cuEventCreate(H *, unsigned), cuEventRecord(H, H), cuEventQuery(H), cuEventSynchronize(H), cuEventElapsedTime(float *, H, H);
int cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *), cuGraphInstantiateWithFlags(H *, H, Ptr), cuGraphLaunch(H, H);
int cuEventRecordWithFlags(H, H, unsigned), cuGraphCreate(H *, unsigned), cuGraphAddEventWaitNode(H *, H, const H *, size_t, H);
int margayCountKernels(void), margayKernels(char *, size_t, size_t *);

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, NOT_READY = 600, LAUNCH_FAILED = 719, NOT_PERMITTED = 800, NON_BLOCKING = 1 };

static int failures;
#define CHECK(what) do { if (!(what)) { printf("streams.c:%d: %s\n", __LINE__, #what); failures++; } } while (0)
#define OK(call) do { int r_ = (call); if (r_) { printf("streams.c:%d: %s = %d\n", __LINE__, #call, r_); exit(1); } } while (0)

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    /* Waits until a word is set. */
    ".visible .entry wait(.param .u64 word) {\n"
    ".reg .pred %p; .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d, [word];\n"
    "L: ld.relaxed.sys.global.u32 %r, [%d]; setp.eq.u32 %p, %r, 0; @%p bra L; ret; }\n"
    ".visible .entry set(.param .u64 word, .param .u32 value) {\n"
    ".reg .b32 %r; .reg .b64 %d; ld.param.u64 %d, [word]; ld.param.u32 %r, [value];\n"
    "st.relaxed.sys.global.u32 [%d], %r; ret; }\n"
    /* Ten times the word, and a digit. */
    ".visible .entry digit(.param .u64 word, .param .u32 value) {\n"
    ".reg .b32 %r, %s; .reg .b64 %d; ld.param.u64 %d, [word]; ld.param.u32 %r, [value];\n"
    "ld.global.u32 %s, [%d]; mad.lo.u32 %r, %s, 10, %r; st.global.u32 [%d], %r; ret; }\n"
    ".visible .entry fail() { trap; }\n";

static H context, wait_for, set, digit, fail;

static void launch(H function, H stream, volatile unsigned *word, unsigned value) {
    void *args[] = { &word, &value };
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
    /* Arguments are copied when the call returns. */
    word = NULL;
    value = 77;
}

static volatile unsigned *word(void) {
    void *at;
    OK(cuMemHostAlloc(&at, 4, 0));
    *(volatile unsigned *)at = 0;
    return at;
}

/* Another thread may be reading the word. */
static void put(volatile unsigned *word, unsigned value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

static void open_door(void *door) { put(door, 1); }
static void append(void *digits) { strcat(digits, "h"); }
static void called(H stream, int status, void *digits) { (void)stream; strcat(digits, status == SUCCESS ? "c" : "e"); }

static void *open_soon(void *door) {
    usleep(50000);
    open_door(door);
    return NULL;
}

/* A launch returns before its kernel ends, and everybody knows. */
static void beside_the_program(void) {
    H stream, before, after;
    float ms;
    char order[8] = "";
    volatile unsigned *door = word(), *n = word();
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&before, 0));
    OK(cuEventCreate(&after, 0));
    CHECK(cuStreamQuery(stream) == SUCCESS && cuEventQuery(before) == SUCCESS);
    OK(cuEventRecord(before, stream));
    launch(wait_for, stream, door, 0);
    launch(digit, stream, n, 1);
    OK(cuLaunchHostFunc(stream, append, order));
    OK(cuStreamAddCallback(stream, called, order, 0));
    launch(digit, stream, n, 2);
    OK(cuEventRecord(after, stream));
    CHECK(cuStreamQuery(stream) == NOT_READY && cuEventQuery(after) == NOT_READY && cuEventQuery(before) == SUCCESS);
    CHECK(cuEventElapsedTime(&ms, before, after) == NOT_READY);
    CHECK(*n == 0 && !*order);
    usleep(20000);
    put(door, 1);
    OK(cuEventSynchronize(after));
    CHECK(*n == 12 && strcmp(order, "hc") == 0);
    CHECK(cuStreamQuery(stream) == SUCCESS && cuEventQuery(after) == SUCCESS);
    OK(cuEventElapsedTime(&ms, before, after));
    CHECK(ms >= 20.0);
    OK(cuStreamDestroy_v2(stream));
}

/* Kernels of different streams run at the same time, and wait for each other where events say so. */
static void beside_each_other(void) {
    H a, b, event;
    volatile unsigned *door = word(), *n = word();
    OK(cuStreamCreate(&a, NON_BLOCKING));
    OK(cuStreamCreate(&b, NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    launch(wait_for, a, door, 0);
    launch(digit, a, n, 1);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    launch(digit, b, n, 2);
    /* The event is where it was recorded when the wait began. */
    OK(cuEventRecord(event, b));
    CHECK(cuStreamQuery(b) == NOT_READY && *n == 0);
    launch(set, NULL, door, 1); /* the default stream does not wait for streams that take no turns with it */
    OK(cuEventSynchronize(event));
    CHECK(*n == 12);
    /* The stream is gone when its work is done. */
    *door = 0;
    launch(wait_for, a, door, 0);
    launch(digit, a, n, 3);
    OK(cuStreamDestroy_v2(a));
    CHECK(*n == 12);
    put(door, 1);
    OK(cuCtxSynchronize());
    CHECK(*n == 123);
    OK(cuStreamDestroy_v2(b));
}

/* The default stream and the others take turns. */
static void default_stream(void) {
    H stream, other, free_of_turns;
    volatile unsigned *door = word(), *n = word(), *m = word();
    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamCreate(&other, 0));
    OK(cuStreamCreate(&free_of_turns, NON_BLOCKING));
    launch(wait_for, stream, door, 0);
    launch(digit, stream, n, 1);
    launch(digit, NULL, n, 2);
    launch(digit, other, n, 3);
    launch(digit, free_of_turns, m, 4);
    OK(cuStreamSynchronize(free_of_turns));
    CHECK(*m == 4 && *n == 0);
    CHECK(cuStreamQuery(NULL) == NOT_READY && cuStreamQuery(other) == NOT_READY);
    put(door, 1);
    OK(cuStreamSynchronize(other));
    CHECK(*n == 123);
    OK(cuCtxSynchronize());
}

/* What a call does with memory that the program may change when it has returned. */
static void memory(void) {
    H stream;
    Ptr device, more;
    pthread_t thread;
    unsigned own[4] = { 1, 2, 3, 4 }, back[4];
    unsigned *pinned;
    volatile unsigned *door = word();
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemAlloc_v2(&device, 16));
    OK(cuMemHostAlloc((void **)&pinned, 16, 0));
    /* Pageable memory has been read when the call returns: whoever opens the door is somebody else. */
    launch(wait_for, stream, door, 0);
    OK(pthread_create(&thread, NULL, open_soon, (void *)door));
    OK(cuMemcpyHtoDAsync_v2(device, own, 16, stream));
    memset(own, 0, 16);
    OK(cuMemcpyDtoHAsync_v2(back, device, 16, stream));
    CHECK(back[0] == 1 && back[3] == 4);
    pthread_join(thread, NULL);
    /* Page-locked memory is read and written in the stream's order. */
    *door = 0;
    launch(wait_for, stream, door, 0);
    OK(cuMemsetD32Async(device, 9, 4, stream));
    OK(cuMemcpyDtoHAsync_v2(pinned, device, 16, stream));
    OK(cuMemAllocAsync(&more, 16, stream));
    OK(cuMemcpyDtoDAsync_v2(more, device, 16, stream));
    OK(cuMemFreeAsync(more, stream));
    pinned[0] = 5;
    CHECK(cuStreamQuery(stream) == NOT_READY && pinned[0] == 5);
    /* Wrong addresses are the call's error. */
    CHECK(cuMemsetD32Async(device, 0, 5, stream) == INVALID_VALUE);
    CHECK(cuMemcpyDtoHAsync_v2(pinned, 16, 16, stream) == INVALID_VALUE);
    put(door, 1);
    OK(cuStreamSynchronize(stream));
    CHECK(pinned[0] == 9 && pinned[3] == 9);
    /* A copy that is not asynchronous waits in the default stream, which waits for the others. */
    *door = 0;
    launch(wait_for, stream, door, 0);
    OK(cuMemsetD32Async(device, 6, 4, stream));
    OK(pthread_create(&thread, NULL, open_soon, (void *)door));
    OK(cuMemcpyDtoH_v2(back, device, 16));
    CHECK(back[0] == 6);
    pthread_join(thread, NULL);
    /* Memory is freed when nobody uses it any more. */
    *door = 0;
    launch(wait_for, stream, door, 0);
    launch(set, stream, (volatile unsigned *)device, 3);
    OK(pthread_create(&thread, NULL, open_soon, (void *)door));
    OK(cuMemFree_v2(device));
    CHECK(__atomic_load_n(door, __ATOMIC_ACQUIRE) == 1);
    pthread_join(thread, NULL);
    OK(cuCtxSynchronize());
}

/* Streams wait for words that the program, kernels and other streams write. */
static void words(void) {
    H a, b;
    volatile unsigned *first = word(), *second = word(), *n = word();
    OK(cuStreamCreate(&a, NON_BLOCKING));
    OK(cuStreamCreate(&b, NON_BLOCKING));
    OK(cuStreamWaitValue32_v2(a, (Ptr)first, 5, 1));
    OK(cuStreamWriteValue32_v2(a, (Ptr)second, 7, 0));
    OK(cuStreamWaitValue32_v2(b, (Ptr)second, 7, 0));
    launch(digit, b, n, 8);
    CHECK(cuStreamQuery(b) == NOT_READY && *n == 0 && *second == 0);
    put(first, 5);
    OK(cuStreamSynchronize(b));
    CHECK(*n == 8 && *second == 7);
}

/* Graphs run in streams like anything else. */
static void graphs(void) {
    H stream, graph, exec;
    volatile unsigned *door = word(), *n = word();
    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamBeginCapture_v2(stream, 0));
    launch(digit, stream, n, 1);
    launch(digit, stream, n, 2);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    launch(wait_for, stream, door, 0);
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamQuery(stream) == NOT_READY && *n == 0);
    put(door, 1);
    OK(cuStreamSynchronize(stream));
    CHECK(*n == 1212);
}

/* An event that a graph records is ahead from the launch on, for the program, other streams and other graphs. */
static void events_of_graphs(void) {
    H stream, other, third, event, graph, exec, waiting, node;
    volatile unsigned *door = word(), *n = word();
    OK(cuStreamCreate(&stream, NON_BLOCKING));
    OK(cuStreamCreate(&other, NON_BLOCKING));
    OK(cuStreamCreate(&third, NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuStreamBeginCapture_v2(stream, 0));
    launch(wait_for, stream, door, 0);
    launch(digit, stream, n, 1);
    OK(cuEventRecordWithFlags(event, stream, 1)); /* CU_EVENT_RECORD_EXTERNAL: a node of the graph */
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEventWaitNode(&node, graph, NULL, 0, event));
    OK(cuGraphInstantiateWithFlags(&waiting, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamWaitEvent(other, event, 0));
    launch(digit, other, n, 2);
    OK(cuGraphLaunch(waiting, third));
    CHECK(cuEventQuery(event) == NOT_READY && cuStreamQuery(other) == NOT_READY && cuStreamQuery(third) == NOT_READY);
    put(door, 1);
    OK(cuEventSynchronize(event));
    OK(cuStreamSynchronize(other));
    OK(cuStreamSynchronize(third));
    CHECK(*n == 112 && cuEventQuery(event) == SUCCESS);
}

/* A fault comes with the next call that waits, and stays. */
static void faults(void) {
    H stream;
    int status;
    char order[8] = "";
    volatile unsigned *door = word(), *n = word();
    OK(cuStreamCreate(&stream, 0));
    launch(wait_for, stream, door, 0);
    OK(cuLaunchKernel(fail, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    launch(digit, stream, n, 1);
    OK(cuLaunchHostFunc(stream, append, order));
    OK(cuStreamAddCallback(stream, called, order, 0));
    put(door, 1);
    status = cuStreamSynchronize(stream);
    CHECK(status == LAUNCH_FAILED);
    CHECK(*n == 0 && strcmp(order, "e") == 0);
    CHECK(cuCtxSynchronize() == LAUNCH_FAILED && cuStreamQuery(stream) == LAUNCH_FAILED);
    CHECK(cuMemsetD32_v2((Ptr)n, 0, 1) == LAUNCH_FAILED);
}

/* Host functions "must not make any CUDA API calls", which "may result in CUDA_ERROR_NOT_PERMITTED" (cuLaunchHostFunc): one that waited for
   its own stream would wait for ever. What acts on a context is refused; whether an event has occurred is answered. */
static H own, behind;
static int answers[4];
static void waits(void *unused) {
    (void)unused;
    answers[0] = cuStreamSynchronize(own);
    answers[1] = cuEventSynchronize(behind);
    answers[2] = cuStreamQuery(own);
    answers[3] = cuEventQuery(behind);
}

static void host_functions(void) {
    volatile unsigned *door = word();
    OK(cuStreamCreate(&own, 0));
    OK(cuEventCreate(&behind, 0));
    launch(wait_for, own, door, 0);
    OK(cuLaunchHostFunc(own, waits, NULL));
    OK(cuEventRecord(behind, own));
    put(door, 1);
    OK(cuStreamSynchronize(own));
    CHECK(answers[0] == NOT_PERMITTED && answers[1] == NOT_PERMITTED && answers[2] == NOT_PERMITTED && answers[3] == NOT_READY);
    OK(cuStreamDestroy_v2(own));
}

/* margay's own: what was launched, a line for each kernel. */
static void counts(void) {
    volatile unsigned *n = word();
    char text[256], engine[32], name[32];
    size_t length;
    unsigned long times, time, compiling;
    OK(margayCountKernels());
    launch(digit, NULL, n, 1);
    launch(digit, NULL, n, 2);
    OK(cuCtxSynchronize());
    OK(margayKernels(NULL, 0, &length));
    CHECK(length > 1 && length <= sizeof text && margayKernels(text, length - 1, &length) == INVALID_VALUE);
    OK(margayKernels(text, length, &length));
    CHECK(strlen(text) + 1 == length);
    CHECK(sscanf(text, "%lu %lu %lu %31s %31s", &times, &time, &compiling, engine, name) == 5);
    CHECK(times == 2 && time > 0 && strcmp(name, "digit") == 0);
}

/* A child has no driver, and nothing waits for threads that it does not have. */
static void forks(void) {
    int status, count;
    volatile unsigned *door = word();
    pid_t child;
    launch(wait_for, NULL, door, 0);
    child = fork();
    if (child == 0) {
        exit(cuInit(0) == NOT_INITIALIZED && cuDeviceGetCount(&count) == NOT_INITIALIZED ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    put(door, 1);
    OK(cuCtxSynchronize());
}

/* An event of the default stream has happened when the work of the streams is done that it waits for. */
static void measurements(void) {
    H stream, before, after;
    float ms = -1;
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&before, 0));
    OK(cuEventCreate(&after, 0));
    for (int i = 0; i < 200; i++) {
        volatile unsigned *n = word();
        OK(cuEventRecord(before, NULL));
        launch(digit, stream, n, 1);
        OK(cuEventRecord(after, NULL));
        OK(cuStreamSynchronize(stream));
        OK(cuEventElapsedTime(&ms, before, after));
        CHECK(ms >= 0 && *n == 1);
    }
    OK(cuStreamDestroy_v2(stream));
}

int main(int count, char **arguments) {
    H module;
    (void)arguments;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&wait_for, module, "wait"));
    OK(cuModuleGetFunction(&set, module, "set"));
    OK(cuModuleGetFunction(&digit, module, "digit"));
    OK(cuModuleGetFunction(&fail, module, "fail"));
    if (count > 1) {
        /* Ends with work that would go on for ever. */
        launch(wait_for, NULL, word(), 0);
        launch(digit, NULL, word(), 0);
        return 0;
    }
    beside_the_program();
    beside_each_other();
    default_stream();
    memory();
    words();
    graphs();
    events_of_graphs();
    host_functions();
    counts();
    forks();
    measurements();
    faults();
    if (!failures) {
        puts("right");
    }
    return failures != 0;
}
