// A driver with one GPU whose kernels write 7 to every byte of their first 64 bytes of output: the last argument.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned f) { return f; }
int cuDriverGetVersion(int *v) { *v = 13050; return 0; }
int cuGetErrorName(int code, const char **name) { *name = "CUDA_ERROR_FAKE"; return 0; }
int cuDeviceGet(int *d, int n) { *d = n; return 0; }
int cuDeviceGetName(char *name, int size, int d) { strncpy(name, "Paper GPU", size); return 0; }
int cuDeviceGetAttribute(int *v, int what, int d) { *v = what == 75 ? 9 : 0; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = malloc(1); return 0; }
int cuCtxSetCurrent(void *c) { return c ? 0 : 201; }
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadData(void **m, const void *text) { *m = strdup(text); return 0; }
int cuModuleUnload(void *m) { free(m); return 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) { *f = m; return strstr(m, name) ? 0 : 500; }
int cuFuncSetAttribute(void *f, int what, int v) { return 0; }
int cuMemAlloc_v2(uint64_t *at, size_t n) { *at = (uint64_t)malloc(n); return 0; }
int cuMemFree_v2(uint64_t at) { free((void *)at); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n) { memcpy((void *)to, from, n); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) { memcpy(to, (void *)from, n); return 0; }
int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned u, unsigned v, unsigned w, unsigned shared,
                   void *stream, void **args, void **extra) {
    memset((void *)*(uint64_t *)args[0], 7, 16);
    return 0;
}
