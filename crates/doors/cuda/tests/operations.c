/* Stream memory operations, copies between devices, limits of memory, and names without a function behind them, as the CUDA Driver API's
   documentation has them. The device has 64 MiB, and there are two of it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long Ptr;
typedef void *H;
int cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSetCurrent(H), cuCtxSynchronize(void);
int cuMemAlloc_v2(Ptr *, size_t), cuMemFree_v2(Ptr), cuMemHostAlloc(void **, size_t, unsigned), cuMemGetInfo_v2(size_t *, size_t *);
int cuMemcpyDtoH_v2(void *, Ptr, size_t), cuMemcpyHtoD_v2(Ptr, const void *, size_t), cuMemsetD32Async(Ptr, unsigned, size_t, H);
int cuMemcpyDtoDAsync_v2(Ptr, Ptr, size_t, H), cuMemcpyPeer(Ptr, H, Ptr, H, size_t), cuDeviceGetAttribute(int *, int, int);
int cuStreamCreate(H *, unsigned), cuStreamSynchronize(H), cuStreamQuery(H), cuStreamBatchMemOp_v2(H, unsigned, const void *, unsigned);
int cuStreamWriteValue32_v2(H, Ptr, unsigned, unsigned), cuStreamWaitValue32_v2(H, Ptr, unsigned, unsigned);
int cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *), cuGraphInstantiateWithFlags(H *, H, Ptr), cuGraphLaunch(H, H);
int cuGraphGetNodes(H, H *, size_t *), cuGraphNodeGetType(H, int *), cuGraphBatchMemOpNodeGetParams(H, void *);
int cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *), cuGetProcAddress_v2(const char *, void **, int, Ptr, int *);
int cuGetProcAddress(const char *, void **, int, Ptr);
int cuModuleLoadDataEx(H *, const void *, unsigned, int *, void **), cuFuncGetAttribute(int *, int, H);
int cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);
int cuMemCreate(Ptr *, size_t, const void *, Ptr), cuMemRelease(Ptr), cuGraphConditionalHandleCreate(Ptr *, H, H, unsigned, unsigned);
int cuGraphCreate(H *, unsigned), cuMemGetMemPool(H *, const void *, int), cuMemGetDefaultMemPool(H *, const void *, int);
int cuMemSetMemPool(const void *, int, H), cuMemPoolCreate(H *, const void *), cuMemPoolDestroy(H), cuDeviceGetMemPool(H *, int);
int cuMemAddressReserve(Ptr *, size_t, size_t, Ptr, Ptr), cuMemMap(Ptr, size_t, size_t, Ptr, Ptr), cuMemUnmap(Ptr, size_t), cuMemAddressFree(Ptr, size_t);
int cuMemSetAccess(Ptr, size_t, const void *, size_t), cuCtxGetCurrent(H *);
int cuMemRetainAllocationHandle(Ptr *, void *), cuCtxGetStreamPriorityRange(int *, int *), cuStreamCreateWithPriority(H *, unsigned, int);
int cuStreamGetPriority(H, int *), cuStreamSetAttribute(H, int, const void *), cuStreamGetAttribute(H, int, void *), cuStreamCopyAttributes(H, H);
int cuMemAllocFromPoolAsync(Ptr *, size_t, H, H), cuMemFreeAsync(Ptr, H), cuPointerGetAttribute(void *, int, Ptr);
int cuMemcpy2D_v2(const void *), cuMemcpy2DUnaligned_v2(const void *), cuMemcpy2DAsync_v2(const void *, H);

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600, NOT_SUPPORTED = 801 };
enum { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5, BARRIER = 6, REDUCE = 8, MEMORY_NODE = 12 };

#define CHECK(what) do { if (!(what)) { printf("operations.c:%d: %s\n", __LINE__, #what); exit(1); } } while (0)
#define OK(call) do { int r_ = (call); if (r_) { printf("operations.c:%d: %s = %d\n", __LINE__, #call, r_); exit(1); } } while (0)

/* CUstreamBatchMemOpParams of a wait or a write. */
struct operation { int kind; Ptr address, value; unsigned flags; Ptr unused[2]; };
/* The same of a reduction. */
struct reduction { int kind; unsigned flags; int with, type; Ptr address, value, unused[2]; };
union any { struct operation o; struct reduction r; };

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry twice(.param .u64 word) {\n"
    ".reg .b32 %r; .reg .b64 %d; ld.param.u64 %d, [word];\n"
    "ld.global.u32 %r, [%d]; add.u32 %r, %r, %r; st.global.u32 [%d], %r; ret; }\n";

/* Sets a condition of a graph by the device runtime, which ptxas knows without a definition. */
static const char sets_condition[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);\n"
    ".visible .entry decide(.param .u64 handle) {\n"
    ".reg .b64 %h; ld.param.u64 %h, [handle];\n"
    "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %h; st.param.b32 [b], 7;\n"
    "call.uni cudaGraphSetConditional, (a, b); }\nret; }\n";

static unsigned word_at(Ptr at) {
    unsigned value = 0;
    OK(cuMemcpyDtoH_v2(&value, at, 4));
    return value;
}

static const char old[] =
    ".version 1.4\n.target sm_13\n"
    ".entry increment (.param .u64 word) {\n"
    "  .reg .u64 %word; .reg .u32 %value;\n"
    "  ld.param.u64 %word, [word];\n"
    "  ld.global.u32 %value, [%word];\n"
    "  add.u32 %value, %value, 1;\n"
    "  st.global.u32 [%word], %value;\n"
    "  exit;\n"
    "}\n";

static void memory_operations(void) {
    Ptr words;
    H waiting, other, graph, exec, node;
    int value = 0;
    for (int number = 92; number <= 94; number++) { /* CAN_USE_STREAM_MEM_OPS and its sisters */
        OK(cuDeviceGetAttribute(&value, number, 0));
        CHECK(value == 1);
    }
    OK(cuMemAlloc_v2(&words, 64));
    OK(cuMemsetD32Async(words, 0, 16, NULL));
    OK(cuCtxSynchronize());
    OK(cuStreamCreate(&waiting, 1));
    OK(cuStreamCreate(&other, 1));
    union any list[5];
    memset(list, 0, sizeof list);
    list[0].o = (struct operation){ WAIT_32, words, 5, 0 }; /* at least 5 */
    list[1].o = (struct operation){ WRITE_64, words + 8, 0x123456789abcULL, 0 };
    list[2].o = (struct operation){ BARRIER };
    list[3].o = (struct operation){ WRITE_32, words + 16, 70, 0 };
    list[4].r = (struct reduction){ REDUCE, 0, 0 /* add */, 0xe /* unsigned, 32 bits */, words + 16, 7 };
    OK(cuStreamBatchMemOp_v2(waiting, 5, list, 0));
    OK(cuStreamWriteValue32_v2(other, words, 4, 0));
    OK(cuStreamSynchronize(other));
    CHECK(cuStreamQuery(waiting) == NOT_READY && word_at(words + 16) == 0);
    OK(cuStreamWriteValue32_v2(other, words, 6, 0));
    OK(cuStreamSynchronize(waiting));
    CHECK(word_at(words + 8) == 0x56789abc && word_at(words + 12) == 0x1234 && word_at(words + 16) == 77);

    /* What is no operation, or has no memory, is refused at once. */
    list[0].o = (struct operation){ 99, words, 5, 0 };
    CHECK(cuStreamBatchMemOp_v2(waiting, 1, list, 0) == INVALID_VALUE);
    list[0].o = (struct operation){ WRITE_32, 0x1000, 5, 0 };
    CHECK(cuStreamBatchMemOp_v2(waiting, 1, list, 0) == INVALID_VALUE);
    CHECK(cuStreamWriteValue32_v2(waiting, words + 2, 1, 0) == INVALID_VALUE); /* misaligned */

    /* In a captured stream, they become a node. */
    size_t count = 1;
    int type = -1;
    struct { H context; unsigned count; union any *list; unsigned flags; } params;
    OK(cuStreamBeginCapture_v2(waiting, 2));
    OK(cuStreamWriteValue32_v2(waiting, words, 99, 0));
    OK(cuStreamEndCapture(waiting, &graph));
    CHECK(word_at(words) == 6);
    OK(cuGraphGetNodes(graph, &node, &count));
    OK(cuGraphNodeGetType(node, &type));
    OK(cuGraphBatchMemOpNodeGetParams(node, &params));
    CHECK(count == 1 && type == MEMORY_NODE && params.count == 1 && params.list[0].o.value == 99);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, waiting));
    OK(cuStreamSynchronize(waiting));
    CHECK(word_at(words) == 99);
    OK(cuMemFree_v2(words));
}

/* Registers per thread: what is alive at once, within the limits that the program sets. */
static void registers(H unlimited) {
    enum { NUM_REGS = 4, MAX_REGISTERS = 0 };
    static const char wide[] =
        ".version 7.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry wide(.param .u64 p)\n"
        "{ .reg .b64 %d, %v<40>; ld.param.u64 %d, [p];\n"
#define LOAD(n) "ld.global.b64 %v" #n ", [%d+8*" #n "];\n"
#define STORE(n) "st.global.b64 [%d+256-8*" #n "], %v" #n ";\n"
#define TEN(of, t) of(t##0) of(t##1) of(t##2) of(t##3) of(t##4) of(t##5) of(t##6) of(t##7) of(t##8) of(t##9)
        TEN(LOAD, 1) TEN(LOAD, 2) TEN(LOAD, 3) TEN(STORE, 1) TEN(STORE, 2) TEN(STORE, 3) "ret; }\n";
    H module, function;
    int few = 0, many = 0, limited = 0;
    int keys[] = { MAX_REGISTERS };
    void *values[] = { (void *)40 };
    OK(cuModuleGetFunction(&function, unlimited, "twice"));
    OK(cuFuncGetAttribute(&few, NUM_REGS, function));
    OK(cuModuleLoadData(&module, wide));
    OK(cuModuleGetFunction(&function, module, "wide"));
    OK(cuFuncGetAttribute(&many, NUM_REGS, function));
    OK(cuModuleLoadDataEx(&module, wide, 1, keys, values));
    OK(cuModuleGetFunction(&function, module, "wide"));
    OK(cuFuncGetAttribute(&limited, NUM_REGS, function));
    CHECK(few >= 3 && few < 16); /* an address and a word */
    CHECK(many >= 62 && many <= 80); /* thirty values of 64 bits, and an address */
    CHECK(limited == 40);
}

static unsigned *go;

static void *let_go(void *unused) {
    usleep(50000);
    __atomic_store_n(go, 1, __ATOMIC_SEQ_CST);
    return unused;
}

/* A copy between contexts waits for the work of both. */
static void copies_between_devices(H first, H second) {
    Ptr from, to;
    H stream;
    pthread_t thread;
    OK(cuMemAlloc_v2(&to, 4));
    OK(cuMemHostAlloc((void **)&go, 4, 0));
    *go = 0;
    OK(cuCtxSetCurrent(second));
    OK(cuMemAlloc_v2(&from, 4));
    OK(cuStreamCreate(&stream, 1));
    OK(cuStreamWaitValue32_v2(stream, (Ptr)go, 1, 1));
    OK(cuMemsetD32Async(from, 42, 1, stream));
    OK(cuCtxSetCurrent(first));
    pthread_create(&thread, NULL, let_go, NULL);
    OK(cuMemcpyPeer(to, first, from, second, 4));
    CHECK(word_at(to) == 42);
    /* And what another device does afterwards sees the copy. */
    H waits, next;
    Ptr last;
    unsigned value = 43;
    OK(cuStreamCreate(&waits, 1));
    OK(cuMemAlloc_v2(&last, 4));
    OK(cuMemsetD32Async(to, 43, 1, waits));
    OK(cuMemcpyPeer(from, second, to, first, 4));
    OK(cuCtxSetCurrent(second));
    OK(cuStreamCreate(&next, 1));
    OK(cuMemcpyDtoDAsync_v2(last, from, 4, next));
    OK(cuStreamSynchronize(next));
    OK(cuCtxSetCurrent(first));
    CHECK(word_at(last) == value);
    pthread_join(thread, NULL);
}

/* A program that allocates until it fails gets an error where the device's memory ends. */
static void limits(void) {
    static const struct { int kind, handles, at, id; Ptr win32, flags; } properties = { 1, 0, 1, 0, 0, 0 };
    const size_t piece = 4 << 20;
    size_t before, after, total, got = 0;
    Ptr all[64], physical;
    int n = 0, result;
    OK(cuMemGetInfo_v2(&before, &total));
    CHECK(total == 64 << 20 && before <= total);
    OK(cuMemCreate(&physical, piece, &properties, 0));
    OK(cuMemGetInfo_v2(&after, &total));
    CHECK(after + piece <= before);
    while ((result = cuMemAlloc_v2(&all[n], piece)) == 0 && n < 63) {
        got += piece;
        n++;
    }
    CHECK(result == OUT_OF_MEMORY && got + piece <= total && got + 3 * piece >= before);
    CHECK(cuMemCreate(&physical, 2 * piece, &properties, 0) == OUT_OF_MEMORY);
    OK(cuMemRelease(physical));
    while (n > 0) OK(cuMemFree_v2(all[--n]));
    OK(cuMemGetInfo_v2(&after, &total));
    CHECK(after >= before);
}

static void names(void) {
    static const char *known[] = { "cuMulticastCreate", "cuMulticastAddDevice", "cuArrayGetPlane", "cuCheckpointProcessLock" };
    for (int i = 0; i < 4; i++) {
        int (*function)(void) = NULL;
        int status = -1;
        OK(cuGetProcAddress_v2(known[i], (void **)&function, 13000, 0, &status));
        CHECK(function && status == 0 && function() == NOT_SUPPORTED);
    }
    /* "The API will return CUDA_SUCCESS and set the returned pfn to NULL": the status, if wanted, says why. Without one, as in CUDA 11,
       it is an error. */
    void *nothing = &nothing;
    int status = -1;
    OK(cuGetProcAddress_v2("cuMakeCoffee", &nothing, 13000, 0, &status));
    CHECK(!nothing && status == 1);
    nothing = &nothing;
    OK(cuGetProcAddress_v2("cuFuncSetAttribute", &nothing, 2000, 0, &status)); /* of CUDA 9.0 */
    CHECK(!nothing && status == 2);
    nothing = &nothing;
    OK(cuGetProcAddress_v2("cuFuncSetAttribute", &nothing, 2000, 0, NULL));
    CHECK(!nothing);
    nothing = &nothing;
    CHECK(cuGetProcAddress("cuMakeCoffee", &nothing, 13000, 0) == NOT_FOUND && !nothing);
}

/* There is a current pool for each kind of memory (CUDA Driver API, "Stream Ordered Memory Allocator"). */
static void pools(void) {
    enum { PINNED = 1, MANAGED = 2, ON_DEVICE = 1, ON_HOST = 2, MEMORY_TYPE = 2, IS_MANAGED = 8, POOL = 17 };
    struct { int kind, id; } device = {ON_DEVICE, 0}, host = {ON_HOST, 0}, nowhere = {9, 0};
    struct { int type, handles; int location[2]; void *attributes; size_t most; char rest[56]; } properties = {PINNED, 0, {ON_HOST, 0}};
    H pool[3], own, found;
    Ptr at, other;
    int has = 0;
    OK(cuDeviceGetAttribute(&has, 144, 0)); /* pools of host memory */
    CHECK(has == 1);
    OK(cuMemGetMemPool(&pool[0], &device, PINNED));
    OK(cuMemGetMemPool(&pool[1], &host, PINNED));
    OK(cuMemGetMemPool(&pool[2], &device, MANAGED));
    CHECK(pool[0] != pool[1] && pool[1] != pool[2] && pool[0] != pool[2]);
    OK(cuDeviceGetMemPool(&found, 0));
    CHECK(found == pool[0]);
    CHECK(cuMemGetMemPool(&found, &nowhere, PINNED) == INVALID_VALUE && cuMemGetMemPool(&found, &host, 7) == INVALID_VALUE);
    for (int i = 0; i < 3; i++) {
        unsigned type = 0;
        unsigned is_managed = 9;
        OK(cuMemAllocFromPoolAsync(&at, 4096, pool[i], NULL));
        OK(cuPointerGetAttribute(&type, MEMORY_TYPE, at));
        OK(cuPointerGetAttribute(&is_managed, IS_MANAGED, at));
        OK(cuPointerGetAttribute(&found, POOL, at));
        CHECK(type == (i == 1 ? 1 : 2) && is_managed == (i == 2) && found == pool[i]);
        if (i) *(int *)at = 5; /* the host has access */
        OK(cuMemFreeAsync(at, NULL));
    }
    OK(cuMemPoolCreate(&own, &properties));
    CHECK(cuMemSetMemPool(&device, PINNED, own) == INVALID_VALUE); /* of another kind */
    OK(cuMemSetMemPool(&host, PINNED, own));
    OK(cuMemGetMemPool(&found, &host, PINNED));
    CHECK(found == own);
    OK(cuMemGetDefaultMemPool(&found, &host, PINNED));
    CHECK(found == pool[1] && cuMemPoolDestroy(found) == INVALID_VALUE);
    OK(cuMemPoolDestroy(own));
    OK(cuMemGetMemPool(&found, &host, PINNED));
    CHECK(found == pool[1]);

    /* A pool keeps to its size, and what was freed can be had again. */
    properties.most = 8192;
    OK(cuMemPoolCreate(&own, &properties));
    OK(cuMemAllocFromPoolAsync(&at, 8192, own, NULL));
    CHECK(cuMemAllocFromPoolAsync(&other, 512, own, NULL) == OUT_OF_MEMORY);
    OK(cuMemFreeAsync(at, NULL));
    OK(cuMemAllocFromPoolAsync(&at, 512, own, NULL));
    OK(cuMemFreeAsync(at, NULL));
}

/* Addresses belong to the device, so they can be mapped without a context. A handle that mapped memory is asked for is the one that mapped it, and has to be released once more. */
static void handles(void) {
    static const struct { int kind, handles, at, id; Ptr win32, flags; } properties = { 1, 0, 1, 0, 0, 0 };
    const size_t piece = 2 << 20;
    static const struct { int kind, id, rights; } access = { 1, 0, 3 };
    Ptr made, found, at;
    H context;
    OK(cuCtxGetCurrent(&context));
    OK(cuCtxSetCurrent(NULL));
    OK(cuMemCreate(&made, piece, &properties, 0));
    OK(cuMemAddressReserve(&at, piece, 0, 0, 0));
    OK(cuMemMap(at, piece, 0, made, 0));
    OK(cuMemSetAccess(at, piece, &access, 1));
    OK(cuMemRetainAllocationHandle(&found, (void *)at));
    CHECK(found == made);
    OK(cuMemRelease(found));
    OK(cuMemRelease(made));
    CHECK(cuMemRelease(made) == INVALID_VALUE);
    OK(cuMemUnmap(at, piece));
    OK(cuMemAddressFree(at, piece));
    OK(cuCtxSetCurrent(context));
}

/* Priorities and attributes of streams are kept, the former within their range. */
static void hints(void) {
    enum { WINDOW = 1, POLICY = 3, PRIORITY = 8 };
    int least = 9, greatest = 9, priority = 9;
    struct { Ptr word[8]; } window = {{ 0x1000, 64 }}, found;
    H stream, other;
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK(least == 0 && greatest < least);
    OK(cuStreamCreateWithPriority(&stream, 1, greatest - 100));
    OK(cuStreamCreateWithPriority(&other, 1, least));
    OK(cuStreamGetPriority(stream, &priority));
    OK(cuStreamGetAttribute(stream, PRIORITY, &found));
    CHECK(priority == greatest && (int)found.word[0] == greatest);
    OK(cuStreamGetAttribute(stream, POLICY, &found));
    CHECK((int)found.word[0] == 1 /* CU_SYNC_POLICY_AUTO */);
    OK(cuStreamSetAttribute(stream, WINDOW, &window));
    OK(cuStreamCopyAttributes(other, stream));
    OK(cuStreamGetAttribute(other, WINDOW, &found));
    CHECK(!memcmp(&found, &window, sizeof found));
}

/* CUDA_MEMCPY2D */
struct side { size_t x, y; int kind; const void *host; Ptr device; H array; size_t pitch; };
struct copy { struct side from, to; size_t width, height; };

/* "If specified, srcPitch must be greater than or equal to WidthInBytes + srcXInBytes, and dstPitch [...]" (cuMemcpy2D). */
static void pitches(void) {
    enum { HOST = 1, DEVICE = 2 };
    char host[64] = { 0 };
    struct copy copy = { { 0, 0, HOST, host, 0, 0, 8 }, { 0, 0, DEVICE, 0, 0, 0, 8 }, 8, 4 };
    OK(cuMemAlloc_v2(&copy.to.device, 64));
    OK(cuMemcpy2D_v2(&copy));
    copy.from.x = 1;
    CHECK(cuMemcpy2D_v2(&copy) == INVALID_VALUE);
    copy.from.x = 0;
    copy.to.pitch = 7;
    CHECK(cuMemcpy2D_v2(&copy) == INVALID_VALUE && cuMemcpy2DUnaligned_v2(&copy) == INVALID_VALUE);
    CHECK(cuMemcpy2DAsync_v2(&copy, 0) == INVALID_VALUE);
    copy.to.pitch = 0;
    copy.height = 1;
    OK(cuMemcpy2D_v2(&copy));
    OK(cuMemFree_v2(copy.to.device));
}

int main(int argc, char **argv) {
    H first, second, module, twice, increment, decide, graph;
    Ptr word, condition;
    unsigned value = 21;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&second, 0, 1));
    OK(cuCtxCreate_v2(&first, 0, 0));
    OK(cuMemAlloc_v2(&word, 4));
    OK(cuMemcpyHtoD_v2(word, &value, 4));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&twice, module, "twice"));
    registers(module);
    void *args[] = { &word };
    OK(cuLaunchKernel(twice, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    CHECK(word_at(word) == 42);
    /* A module older than `.address_size` has the process's addresses. */
    OK(cuModuleLoadData(&module, old));
    OK(cuModuleGetFunction(&increment, module, "increment"));
    OK(cuLaunchKernel(increment, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    CHECK(word_at(word) == 43);
    OK(cuModuleLoadData(&module, sets_condition));
    OK(cuModuleGetFunction(&decide, module, "decide"));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&condition, graph, first, 0, 0));
    args[0] = &condition;
    OK(cuLaunchKernel(decide, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    OK(cuCtxSynchronize());
    if (argc > 1) { /* a stream that waits for ever */
        H stream;
        OK(cuStreamCreate(&stream, 1));
        OK(cuStreamWaitValue32_v2(stream, word, 1000, 0));
        sleep(11);
        return 3;
    }
    memory_operations();
    pools();
    handles();
    hints();
    copies_between_devices(first, second);
    pitches();
    limits();
    names();
    puts("right");
    return argv == NULL;
}
