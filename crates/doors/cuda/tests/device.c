// The device as the user describes it: two devices with little memory, which see each other.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef int CUdevice;
typedef void *CUcontext;
typedef unsigned long long CUdeviceptr;
int cuInit(unsigned), cuDeviceGetCount(int *), cuDeviceGetName(char *, int, CUdevice), cuDeviceTotalMem_v2(size_t *, CUdevice);
int cuDeviceGetAttribute(int *, int, CUdevice), cuDeviceCanAccessPeer(int *, CUdevice, CUdevice);
int cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext), cuCtxGetDevice(CUdevice *);
int cuCtxEnablePeerAccess(CUcontext, unsigned), cuCtxDisablePeerAccess(CUcontext);
int cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr), cuMemGetInfo_v2(size_t *, size_t *);
int cuPointerGetAttribute(void *, int, CUdeviceptr), cuDeviceGetPCIBusId(char *, int, CUdevice), cuDeviceGetByPCIBusId(CUdevice *, const char *);

#define CHECK(what) \
    if (!(what)) return printf("line %d: %s\n", __LINE__, #what), 1

static int attribute(int number, CUdevice device) {
    int value = -1;
    return cuDeviceGetAttribute(&value, number, device) ? -1 : value;
}

int main(void) {
    int count, can;
    char name[64], bus[32];
    size_t total, free;
    CHECK(cuInit(0) == 0);
    CHECK(cuDeviceGetCount(&count) == 0 && count == 2);
    CHECK(cuDeviceGetName(name, sizeof name, 1) == 0 && strcmp(name, "Tesla T4") == 0);
    CHECK(cuDeviceGetName(name, sizeof name, 2) == 101); // CUDA_ERROR_INVALID_DEVICE
    CHECK(attribute(75, 1) == 7 && attribute(76, 1) == 5);
    CHECK(attribute(18, 0) == 0);                                  // not integrated
    CHECK(attribute(16, 0) == 3);                                  // multiprocessors
    CHECK(attribute(97, 0) == 64 << 10 && attribute(39, 0) == 1024); // shared memory of a CTA, threads of a multiprocessor
    CHECK(cuDeviceTotalMem_v2(&total, 0) == 0 && total == 64 << 20);
    CHECK(cuDeviceGetPCIBusId(bus, sizeof bus, 1) == 0);
    CUdevice found = -1;
    CHECK(cuDeviceGetByPCIBusId(&found, bus) == 0 && found == 1);
    /* Hexadecimal numbers of any width; domain and function may be omitted. */
    unsigned place[3];
    char narrow[32];
    CHECK(sscanf(bus, "%x:%x:%x", &place[0], &place[1], &place[2]) == 3);
    snprintf(narrow, sizeof narrow, "%x:%X:%x", place[0], place[1], place[2]);
    found = -1;
    CHECK(cuDeviceGetByPCIBusId(&found, narrow) == 0 && found == 1);
    snprintf(narrow, sizeof narrow, "%02x:%x.0", place[1], place[2]);
    found = -1;
    CHECK(cuDeviceGetByPCIBusId(&found, narrow) == 0 && found == 1);
    CHECK(cuDeviceGetByPCIBusId(&found, "7:1:0") == 101 && cuDeviceGetByPCIBusId(&found, "device 0") == 1);

    CUcontext contexts[2];
    for (int i = 0; i < 2; i++) CHECK(cuDevicePrimaryCtxRetain(&contexts[i], i) == 0);
    CHECK(contexts[0] != contexts[1]);
    CUdeviceptr memory[2];
    for (int i = 0; i < 2; i++) {
        CHECK(cuCtxSetCurrent(contexts[i]) == 0 && cuCtxGetDevice(&found) == 0 && found == i);
        CHECK(cuMemAlloc_v2(&memory[i], 1 << 20) == 0);
    }
    for (int i = 0; i < 2; i++) CHECK(cuPointerGetAttribute(&found, 9, memory[i]) == 0 && found == i);
    CHECK(cuDeviceCanAccessPeer(&can, 0, 1) == 0 && can == 1);
    CHECK(cuDeviceCanAccessPeer(&can, 1, 1) == 0 && can == 0);
    CHECK(cuCtxEnablePeerAccess(contexts[0], 0) == 0);
    CHECK(cuCtxEnablePeerAccess(contexts[0], 0) == 704); // CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
    CHECK(cuCtxDisablePeerAccess(contexts[0]) == 0);
    CHECK(cuCtxDisablePeerAccess(contexts[0]) == 705); // CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
    CHECK(cuCtxEnablePeerAccess(contexts[1], 0) == 217); // CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: its own device

    // Memory ends where the device's does, and what was freed can be had again.
    CUdeviceptr pieces[128];
    int got = 0, error = 0;
    while (got < 128 && (error = cuMemAlloc_v2(&pieces[got], 1 << 20)) == 0) got++;
    CHECK(error == 2 && got > 32 && got < 64); // CUDA_ERROR_OUT_OF_MEMORY
    CHECK(cuMemGetInfo_v2(&free, &total) == 0 && free < 1 << 20 && total == 64 << 20);
    CHECK(cuMemFree_v2(pieces[0]) == 0 && cuMemAlloc_v2(&pieces[0], 1 << 20) == 0);
    puts("right");
    return 0;
}
