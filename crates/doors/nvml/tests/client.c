// What programs ask NVML for, over margay's driver library.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                                                   \
  if (!(condition)) {                                                                                                                      \
    printf("line %d: %s\n", __LINE__, #condition);                                                                                         \
    return 1;                                                                                                                              \
  }

typedef void* Device;
// `nvmlMemory_t`, `nvmlMemory_v2_t`, `nvmlPciInfo_t` and `nvmlProcessInfo_t` of the NVML API Reference.
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; } Pci;
typedef struct { unsigned pid; unsigned long long used; } Process1;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } Process;

int nvmlInit_v2(void), nvmlShutdown(void);
const char* nvmlErrorString(int);
int nvmlSystemGetDriverVersion(char*, unsigned), nvmlSystemGetCudaDriverVersion_v2(int*);
int nvmlDeviceGetCount_v2(unsigned*), nvmlDeviceGetHandleByIndex_v2(unsigned, Device*), nvmlDeviceGetIndex(Device, unsigned*);
int nvmlDeviceGetHandleByUUID(const char*, Device*), nvmlDeviceGetHandleByPciBusId_v2(const char*, Device*);
int nvmlDeviceGetName(Device, char*, unsigned), nvmlDeviceGetUUID(Device, char*, unsigned);
int nvmlDeviceGetMemoryInfo(Device, Memory*), nvmlDeviceGetMemoryInfo_v2(Device, Memory2*), nvmlDeviceGetPciInfo_v3(Device, Pci*);
int nvmlDeviceGetCudaComputeCapability(Device, int*, int*), nvmlDeviceGetArchitecture(Device, unsigned*);
int nvmlDeviceGetTemperature(Device, int, unsigned*), nvmlDeviceGetUtilizationRates(Device, void*);
int nvmlDeviceGetClockInfo(Device, int, unsigned*), nvmlDeviceGetMaxClockInfo(Device, int, unsigned*);
int nvmlDeviceGetComputeRunningProcesses_v3(Device, unsigned*, Process*);
int nvmlDeviceGetComputeRunningProcesses(Device, unsigned*, Process1*);

int main(void) {
  unsigned count = 0, index = 9, architecture = 0;
  char text[96];
  Device device, same;
  CHECK(nvmlDeviceGetCount_v2(&count) == 1); // uninitialized
  CHECK(nvmlShutdown() == 1);
  CHECK(strcmp(nvmlErrorString(3), "Not Supported") == 0);
  CHECK(nvmlInit_v2() == 0 && nvmlInit_v2() == 0 && nvmlShutdown() == 0);
  // CUDA_VISIBLE_DEVICES does not matter here.
  CHECK(nvmlDeviceGetCount_v2(&count) == 0 && count == 2);
  CHECK(nvmlDeviceGetHandleByIndex_v2(2, &device) == 2 && nvmlDeviceGetHandleByIndex_v2(1, &device) == 0);
  CHECK(nvmlDeviceGetIndex(device, &index) == 0 && index == 1);
  CHECK(nvmlDeviceGetIndex(0, &index) == 2 && nvmlDeviceGetIndex(device, 0) == 2);
  CHECK(nvmlDeviceGetName(device, text, sizeof text) == 0 && strcmp(text, "Tesla T4") == 0);
  CHECK(nvmlDeviceGetName(device, text, 4) == 7); // too small
  CHECK(nvmlDeviceGetUUID(device, text, sizeof text) == 0 && strncmp(text, "GPU-", 4) == 0 && strlen(text) == 40);
  CHECK(nvmlDeviceGetHandleByUUID(text, &same) == 0 && same == device && nvmlDeviceGetHandleByUUID("GPU-0", &same) == 6);
  Pci pci;
  CHECK(nvmlDeviceGetPciInfo_v3(device, &pci) == 0 && pci.device == 1 && strcmp(pci.text, "00000000:00:01.0") == 0);
  CHECK(strcmp(pci.legacy, "0000:00:01.0") == 0);
  CHECK(nvmlDeviceGetHandleByPciBusId_v2(pci.legacy, &same) == 0 && same == device);
  CHECK(nvmlDeviceGetHandleByPciBusId_v2(pci.text, &same) == 0 && same == device);
  int major, minor, cuda;
  CHECK(nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == 0 && major == 7 && minor == 5);
  CHECK(nvmlDeviceGetArchitecture(device, &architecture) == 0 && architecture == 6); // Turing
  CHECK(nvmlSystemGetDriverVersion(text, sizeof text) == 0 && atoi(text) >= 580);
  CHECK(nvmlSystemGetCudaDriverVersion_v2(&cuda) == 0 && cuda >= 13000);
  // The clocks are those that `cuDeviceGetAttribute` describes (attributes 13 and 36).
  CHECK(nvmlDeviceGetClockInfo(device, 2, &index) == 0 && index == 1000);
  CHECK(nvmlDeviceGetMaxClockInfo(device, 1, &index) == 0 && index == 1000 && nvmlDeviceGetClockInfo(device, 4, &index) == 2);
  CHECK(nvmlDeviceGetTemperature(device, 0, &index) == 3 && nvmlDeviceGetUtilizationRates(device, 0) == 3);

  // Nothing uses the device yet, and NVML has not started CUDA.
  Process process[2];
  unsigned room = 2;
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &room, process) == 0 && room == 0);
  Memory memory;
  CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == 0 && memory.total == 15360ull << 20);
  CHECK(memory.free <= memory.total && memory.used == memory.total - memory.free);
  Memory2 second = {.version = 0};
  CHECK(nvmlDeviceGetMemoryInfo_v2(device, &second) == 25);
  second.version = sizeof second | 2 << 24;
  CHECK(nvmlDeviceGetMemoryInfo_v2(device, &second) == 0 && second.total == memory.total);

  // An allocation of this process shows.
  void* cuda_library = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = dlsym(cuda_library, "cuInit");
  int (*retain)(void**, int) = dlsym(cuda_library, "cuDevicePrimaryCtxRetain");
  int (*set)(void*) = dlsym(cuda_library, "cuCtxSetCurrent");
  int (*allocate)(unsigned long long*, size_t) = dlsym(cuda_library, "cuMemAlloc_v2");
  void* context;
  unsigned long long address;
  CHECK(init(0) == 0 && retain(&context, 0) == 0 && set(context) == 0 && allocate(&address, 64 << 20) == 0);
  room = 0;
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &room, 0) == 7 && room == 1);
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &room, process) == 0 && room == 1 && process[0].used >= 64 << 20);
  Process1 first;
  CHECK(nvmlDeviceGetComputeRunningProcesses(device, &room, &first) == 0 && room == 1 && first.used == process[0].used);
  CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == 0 && memory.used >= 64 << 20);
  CHECK(nvmlShutdown() == 0 && nvmlDeviceGetIndex(device, &index) == 1);
  puts("right");
  return 0;
}
