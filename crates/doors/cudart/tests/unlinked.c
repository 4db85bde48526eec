/* A program of two files, whose only kernel calls a function that neither of them defines, and which never asks whether its launch
   succeeded. */
#include "program.h"

int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *), cudaDeviceSynchronize(void);

FATBIN(code, ".version 7.0\n.target sm_80\n.address_size 64\n"
             ".extern .func missing;\n"
             ".visible .entry stub() { call missing; ret; }\n");
FATBIN(other, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .func unused { ret; }\n");
EMPTY_FATBIN(linked);
static void *files[] = {&code, &other, 0};
static struct wrapper wrapper = WRAPPER(2, &linked, files);
static void stub(void) {}

int main(void) {
    dim3 one = {1, 1, 1};
    void **handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (void *)stub, "stub", "stub", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    cudaLaunchKernel((void *)stub, one, one, 0, 0, 0);
    return cudaDeviceSynchronize();
}
