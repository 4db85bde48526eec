/* Memory, events and memory pools of another process, as the CUDA Driver API's documentation has them ("Memory Management",
   `cuIpc...`, and "Stream Ordered Memory Allocator", `cuMemPoolExport...`). The processes wait for each other by a socket. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long Ptr;
typedef void *H;
struct shareable { char bytes[64]; };
int cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuDeviceGetAttribute(int *, int, int);
int cuMemAlloc_v2(Ptr *, size_t), cuMemFree_v2(Ptr), cuMemAllocHost_v2(void **, size_t), cuMemAllocManaged(Ptr *, size_t, unsigned);
int cuMemcpyDtoH_v2(void *, Ptr, size_t), cuMemsetD32_v2(Ptr, unsigned, size_t), cuMemsetD32Async(Ptr, unsigned, size_t, H);
int cuMemcpyDtoDAsync_v2(Ptr, Ptr, size_t, H), cuLaunchHostFunc(H, void (*)(void *), void *);
int cuStreamCreate(H *, unsigned), cuStreamSynchronize(H), cuStreamWaitEvent(H, H, unsigned);
int cuEventCreate(H *, unsigned), cuEventRecord(H, H), cuEventQuery(H), cuEventSynchronize(H), cuEventDestroy_v2(H);
int cuIpcGetMemHandle(struct shareable *, Ptr), cuIpcOpenMemHandle_v2(Ptr *, struct shareable, unsigned), cuIpcCloseMemHandle(Ptr);
int cuIpcGetEventHandle(struct shareable *, H), cuIpcOpenEventHandle(H *, struct shareable);
int cuMemPoolCreate(H *, const void *), cuMemPoolDestroy(H), cuMemPoolExportToShareableHandle(void *, H, int, Ptr);
int cuMemPoolImportFromShareableHandle(H *, void *, int, Ptr), cuMemPoolExportPointer(struct shareable *, Ptr);
int cuMemPoolImportPointer(Ptr *, H, struct shareable *), cuMemAllocFromPoolAsync(Ptr *, size_t, H, H), cuMemFreeAsync(Ptr, H);

enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600 };
enum { NO_TIMING = 2, INTERPROCESS = 4, NON_BLOCKING = 1, DESCRIPTOR = 1, LAZY_PEER_ACCESS = 1 };

#define CHECK(what) do { if (!(what)) { printf("processes.c:%d: %s\n", __LINE__, #what); exit(1); } } while (0)
#define OK(call) do { int r_ = (call); if (r_) { printf("processes.c:%d: %s = %d\n", __LINE__, #call, r_); exit(1); } } while (0)

/* What the first process tells the second. */
struct message { struct shareable memory, inner, small, event, pointer; };

static int ends[2];

static void tell(int end) { CHECK(write(ends[end], "x", 1) == 1); }
static void hear(int end) { char x; CHECK(read(ends[end], &x, 1) == 1); }
static void hear_first(void *unused) { (void)unused; hear(0); }

static unsigned word_at(Ptr at) {
    unsigned value = 0;
    OK(cuMemcpyDtoH_v2(&value, at, 4));
    return value;
}

static void begin(void) {
    H context;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
}

/* Sends or receives a message with a file descriptor. */
static int pass(int end, struct message *message, int descriptor) {
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec bytes = {message, sizeof *message};
    struct msghdr with = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (descriptor >= 0) {
        struct cmsghdr *head = CMSG_FIRSTHDR(&with);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
        CHECK(sendmsg(ends[end], &with, 0) == sizeof *message);
    } else {
        CHECK(recvmsg(ends[end], &with, 0) == sizeof *message);
        memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&with)), sizeof(int));
    }
    return descriptor;
}

static void second(void) {
    struct message from;
    Ptr memory, again, small, pooled;
    H event, stream, pool;
    begin();
    int descriptor = pass(1, &from, -1);

    OK(cuIpcOpenMemHandle_v2(&memory, from.memory, LAZY_PEER_ACCESS));
    OK(cuIpcOpenMemHandle_v2(&again, from.inner, LAZY_PEER_ACCESS));
    CHECK(again == memory); /* opened twice: one address, and a count */
    OK(cuIpcOpenMemHandle_v2(&small, from.small, LAZY_PEER_ACCESS));
    CHECK(word_at(memory) == 1 && word_at(memory + 8188) == 1 && word_at(small) == 3);
    CHECK(cuIpcOpenMemHandle_v2(&again, from.event, LAZY_PEER_ACCESS) == INVALID_HANDLE);

    /* The event happens when the first process has been told to go on. */
    OK(cuIpcOpenEventHandle(&event, from.event));
    OK(cuStreamCreate(&stream, NON_BLOCKING));
    CHECK(cuEventQuery(event) == NOT_READY);
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuMemcpyDtoDAsync_v2(memory + 4096, memory, 4, stream));
    OK(cuEventRecord(event, stream));
    tell(1);
    OK(cuStreamSynchronize(stream));
    OK(cuEventSynchronize(event));
    CHECK(cuEventQuery(event) == 0 && word_at(memory + 4096) == 7);

    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(size_t)descriptor, DESCRIPTOR, 0));
    close(descriptor);
    OK(cuMemPoolImportPointer(&pooled, pool, &from.pointer));
    CHECK(word_at(pooled + 400) == 5);
    OK(cuMemsetD32Async(pooled, 6, 1, stream));
    OK(cuMemFreeAsync(pooled, stream));
    CHECK(cuMemAllocFromPoolAsync(&pooled, 64, pool, stream) == INVALID_VALUE); /* its memory is its process's */
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolDestroy(pool));

    OK(cuIpcCloseMemHandle(small));
    OK(cuIpcCloseMemHandle(memory));
    CHECK(word_at(memory) == 7);
    OK(cuIpcCloseMemHandle(memory));
    CHECK(cuIpcCloseMemHandle(memory) == INVALID_VALUE && cuMemcpyDtoH_v2(&again, memory, 4) == INVALID_VALUE);
    OK(cuEventDestroy_v2(event));
    tell(1);
    exit(0);
}

int main(void) {
    struct message to = {0};
    struct shareable other, none = {{0}};
    Ptr memory, small, managed, pooled, again;
    H event, plain, stream, pool, plain_pool;
    void *host;
    int descriptor, status, supported;
    struct { int kind, handles, where, device; Ptr rest[9]; } properties = {1, DESCRIPTOR, 1, 0, {0}};

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t child = fork(); /* before either has a context */
    CHECK(child >= 0);
    if (child == 0)
        second();
    begin();
    OK(cuDeviceGetAttribute(&supported, 119, 0));
    CHECK(supported == DESCRIPTOR);
    OK(cuDeviceGetAttribute(&supported, 125, 0));
    CHECK(supported == 1);

    OK(cuMemAlloc_v2(&memory, 8192));
    OK(cuMemsetD32_v2(memory, 1, 2048));
    for (int i = 0; i < 5000; i++) /* so many before make no difference */
        OK(cuMemAlloc_v2(&small, 80));
    OK(cuMemsetD32_v2(small, 3, 20));
    OK(cuIpcGetMemHandle(&to.memory, memory));
    OK(cuIpcGetMemHandle(&to.inner, memory));
    OK(cuIpcGetMemHandle(&to.small, small));
    CHECK(word_at(memory) == 1 && word_at(small) == 3);
    CHECK(cuIpcOpenMemHandle_v2(&again, to.memory, LAZY_PEER_ACCESS) == INVALID_CONTEXT); /* its own process */
    CHECK(cuIpcOpenMemHandle_v2(&again, none, LAZY_PEER_ACCESS) == INVALID_HANDLE);
    OK(cuMemAllocHost_v2(&host, 64));
    OK(cuMemAllocManaged(&managed, 64, 1));
    CHECK(cuIpcGetMemHandle(&other, (Ptr)(size_t)host) == INVALID_VALUE && cuIpcGetMemHandle(&other, managed) == INVALID_VALUE);
    CHECK(cuIpcGetMemHandle(&other, 4096) == INVALID_VALUE);

    CHECK(cuEventCreate(&event, INTERPROCESS) == INVALID_VALUE); /* it has no time */
    OK(cuEventCreate(&plain, NO_TIMING));
    CHECK(cuIpcGetEventHandle(&other, plain) == INVALID_VALUE);
    OK(cuEventCreate(&event, INTERPROCESS | NO_TIMING));
    OK(cuIpcGetEventHandle(&to.event, event));
    CHECK(cuEventQuery(event) == 0); /* never recorded */

    properties.handles = 0;
    OK(cuMemPoolCreate(&plain_pool, &properties));
    CHECK(cuMemPoolExportToShareableHandle(&descriptor, plain_pool, DESCRIPTOR, 0) == INVALID_VALUE);
    properties.handles = DESCRIPTOR;
    OK(cuMemPoolCreate(&pool, &properties));
    OK(cuMemPoolExportToShareableHandle(&descriptor, pool, DESCRIPTOR, 0));
    OK(cuStreamCreate(&stream, NON_BLOCKING));
    OK(cuMemAllocFromPoolAsync(&pooled, 404, pool, stream));
    OK(cuMemsetD32Async(pooled, 5, 101, stream));
    OK(cuMemPoolExportPointer(&to.pointer, pooled));
    CHECK(cuIpcGetMemHandle(&other, pooled) == INVALID_VALUE && cuMemPoolExportPointer(&other, memory) == INVALID_VALUE);

    /* The other process releases the stream. */
    OK(cuLaunchHostFunc(stream, hear_first, 0));
    OK(cuMemsetD32Async(memory, 7, 1, stream));
    OK(cuEventRecord(event, stream));
    CHECK(cuEventQuery(event) == NOT_READY);
    pass(0, &to, descriptor);
    OK(cuStreamSynchronize(stream));
    hear(0);
    OK(cuEventSynchronize(event)); /* recorded by the other process last */
    CHECK(word_at(memory) == 7 && word_at(memory + 4096) == 7 && word_at(memory + 8188) == 1);
    CHECK(word_at(pooled) == 6 && word_at(pooled + 400) == 5);
    CHECK(waitpid(child, &status, 0) == child && status == 0);

    /* Other memory has another handle, also at the same address. */
    OK(cuMemFree_v2(memory));
    OK(cuMemAlloc_v2(&memory, 8192));
    OK(cuIpcGetMemHandle(&other, memory));
    CHECK(memcmp(&other, &to.memory, sizeof other) != 0);
    OK(cuMemFreeAsync(pooled, stream));
    OK(cuStreamSynchronize(stream));
    close(descriptor);
    printf("right\n");
    return 0;
}
