/* What a capture of a stream forbids, and how it fails, as the CUDA Driver API's documentation has it ("Stream Management": cuStreamBeginCapture,
   cuStreamEndCapture, cuStreamIsCapturing, cuThreadExchangeStreamCaptureMode, cuStreamWaitEvent; "Context Management"). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSetCurrent(H), cuCtxGetCurrent(H *), cuCtxSynchronize(void);
int cuMemAlloc_v2(Ptr *, size_t), cuMemHostAlloc(void **, size_t, unsigned), cuMemsetD32Async(Ptr, unsigned, size_t, H);
int cuMemcpyDtoH_v2(void *, Ptr, size_t), cuStreamCreate(H *, unsigned), cuStreamSynchronize(H), cuStreamQuery(H), cuStreamDestroy_v2(H);
int cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *), cuStreamIsCapturing(H, int *), cuThreadExchangeStreamCaptureMode(int *);
int cuStreamWaitEvent(H, H, unsigned), cuEventCreate(H *, unsigned), cuEventRecord(H, H), cuEventQuery(H), cuEventSynchronize(H);
int cuGraphGetNodes(H, H *, size_t *), cuGraphInstantiateWithFlags(H *, H, Ptr), cuGraphLaunch(H, H), cuGraphNodeGetType(H, int *);

enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { NONE, ACTIVE, INVALIDATED };
enum { BLOCKING, NON_BLOCKING };
enum { INVALID_VALUE = 1, UNSUPPORTED = 900, SPOILT, MERGE, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED_EVENT, WRONG_THREAD };

#define CHECK(what) do { if (!(what)) { printf("captures.c:%d: %s\n", __LINE__, #what); exit(1); } } while (0)
#define IS(expected, call) do { int r_ = (call); if (r_ != (expected)) { printf("captures.c:%d: %s = %d\n", __LINE__, #call, r_); exit(1); } } while (0)
#define OK(call) IS(0, call)

static H context, stream, other;
static Ptr word;

static int status(H of) {
    int is = -1;
    OK(cuStreamIsCapturing(of, &is));
    return is;
}

/* A capture that was invalidated refuses work, and ends without a graph. */
static void is_spoilt(void) {
    H graph = (H)1;
    CHECK(status(stream) == INVALIDATED);
    IS(SPOILT, cuMemsetD32Async(word, 1, 1, stream));
    IS(SPOILT, cuStreamEndCapture(stream, &graph));
    CHECK(!graph && status(stream) == NONE);
    OK(cuStreamSynchronize(stream));
}

static void begin(int mode) {
    OK(cuStreamBeginCapture_v2(stream, mode));
    OK(cuMemsetD32Async(word, 7, 1, stream));
    CHECK(status(stream) == ACTIVE);
}

static void end(size_t expected) {
    H graph = 0;
    size_t count = 0;
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, 0, &count));
    CHECK(count == expected);
}

/* Calls of a thread of its own, while the main thread captures. */
static void *beside(void *mode) {
    Ptr own;
    H graph;
    OK(cuCtxSetCurrent(context));
    int in = *(int *)mode;
    OK(cuThreadExchangeStreamCaptureMode(&in));
    CHECK(in == GLOBAL);
    *(int *)mode = cuMemAlloc_v2(&own, 64);
    IS(WRONG_THREAD, cuStreamEndCapture(stream, &graph));
    return 0;
}

static int allocation_beside(int mode) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, 0, beside, &mode));
    CHECK(!pthread_join(thread, 0));
    return mode;
}

int main(void) {
    H graph, exec, event, late, node;
    Ptr address;
    void *host;
    unsigned value = 0;
    size_t one = 1;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuMemAlloc_v2(&word, 64));
    OK(cuStreamCreate(&stream, NON_BLOCKING));
    OK(cuStreamCreate(&other, NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&late, 0));

    /* Waiting for the stream, for its context, and allocating. */
    begin(GLOBAL);
    IS(UNSUPPORTED, cuStreamSynchronize(stream));
    is_spoilt();
    begin(GLOBAL);
    IS(UNSUPPORTED, cuStreamQuery(stream));
    is_spoilt();
    begin(RELAXED);
    IS(UNSUPPORTED, cuCtxSynchronize());
    is_spoilt();
    begin(GLOBAL);
    IS(UNSUPPORTED, cuMemAlloc_v2(&address, 64));
    is_spoilt();
    begin(THREAD_LOCAL);
    IS(UNSUPPORTED, cuMemHostAlloc(&host, 64, 0));
    is_spoilt();

    /* What the modes permit, in this thread and in others. */
    begin(RELAXED);
    OK(cuMemAlloc_v2(&address, 64));
    end(1);
    int mode = RELAXED;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == GLOBAL);
    begin(GLOBAL);
    OK(cuMemAlloc_v2(&address, 64));
    mode = GLOBAL;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == RELAXED);
    end(1);
    mode = 3;
    IS(INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mode));
    begin(GLOBAL);
    IS(UNSUPPORTED, allocation_beside(GLOBAL));
    is_spoilt();
    begin(GLOBAL);
    OK(allocation_beside(THREAD_LOCAL));
    end(1);
    begin(THREAD_LOCAL);
    OK(allocation_beside(GLOBAL));
    end(1);

    /* The default stream waits for streams that take turns with it, so it is out of use while one of them is captured. */
    H turns;
    int is;
    begin(RELAXED);
    OK(cuMemcpyDtoH_v2(&value, word, 4));
    end(1);
    OK(cuStreamCreate(&turns, BLOCKING));
    OK(cuStreamBeginCapture_v2(turns, RELAXED));
    IS(IMPLICIT, cuStreamIsCapturing(0, &is));
    CHECK(status(turns) == ACTIVE);
    IS(IMPLICIT, cuMemcpyDtoH_v2(&value, word, 4));
    CHECK(status(turns) == INVALIDATED);
    OK(cuStreamDestroy_v2(turns));
    OK(cuMemcpyDtoH_v2(&value, word, 4));

    /* Streams that joined by an event have to come back. */
    begin(GLOBAL);
    OK(cuEventRecord(event, stream));
    IS(CAPTURED_EVENT, cuEventQuery(event));
    is_spoilt();
    begin(GLOBAL);
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(other, event, 0));
    CHECK(status(other) == ACTIVE);
    IS(UNMATCHED, cuStreamEndCapture(other, &graph));
    OK(cuMemsetD32Async(word + 4, 8, 1, other));
    IS(UNJOINED, cuStreamEndCapture(stream, &graph));
    CHECK(!graph && status(stream) == NONE && status(other) == NONE);
    IS(CAPTURED_EVENT, cuStreamWaitEvent(other, event, 0));
    begin(GLOBAL);
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(other, event, 0));
    OK(cuMemsetD32Async(word + 4, 8, 1, other));
    OK(cuEventRecord(late, other));
    OK(cuStreamWaitEvent(stream, late, 0));
    end(2);

    /* Two captures cannot merge, and none can depend on work outside, unless a node waits for it. */
    OK(cuStreamBeginCapture_v2(other, GLOBAL));
    OK(cuEventRecord(event, other));
    begin(GLOBAL);
    IS(MERGE, cuStreamWaitEvent(stream, event, 0));
    is_spoilt();
    IS(SPOILT, cuStreamEndCapture(other, &graph));
    OK(cuEventRecord(event, other));
    begin(GLOBAL);
    IS(ISOLATION, cuStreamWaitEvent(stream, event, 0));
    is_spoilt();
    IS(INVALID_VALUE, cuStreamWaitEvent(stream, event, 1));
    OK(cuStreamBeginCapture_v2(stream, GLOBAL));
    OK(cuStreamWaitEvent(stream, event, 1));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, &node, &one));
    OK(cuGraphNodeGetType(node, &is));
    CHECK(one == 1 && is == 6 /* CU_GRAPH_NODE_TYPE_WAIT_EVENT */);

    /* After all that, captures work. */
    begin(GLOBAL);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(&value, word, 4));
    CHECK(value == 7);
    puts("right");
    return 0;
}
