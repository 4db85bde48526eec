/* The error of a kernel that failed stays as long as its context (CUDA Runtime API, cudaErrorIllegalAddress: "any further CUDA work will
   return the same error"): cudaGetLastError does not reset it, a reset of the device does. */
#include "program.h"

int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *), cudaDeviceSynchronize(void), cudaMalloc(void **, size_t);
int cudaGetLastError(void), cudaPeekAtLastError(void), cudaDeviceReset(void);

#define ILLEGAL_ADDRESS 700
#define PTX \
    ".version 7.0\n.target sm_80\n.address_size 64\n" \
    ".visible .entry fail() { .reg .b64 %at; mov.b64 %at, 16; st.global.u32 [%at], 1; ret; }\n"
FATBIN(fat, PTX);
static struct wrapper wrapper = WRAPPER(1, &fat, 0);
static void fail(void) {}

int main(void) {
    dim3 one = {1, 1, 1};
    void *memory, **handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (void *)fail, "fail", "fail", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    OK(cudaLaunchKernel((void *)fail, one, one, 0, 0, 0));
    CHECK(cudaDeviceSynchronize() == ILLEGAL_ADDRESS);
    for (int i = 0; i < 3; i++) CHECK(cudaPeekAtLastError() == ILLEGAL_ADDRESS && cudaGetLastError() == ILLEGAL_ADDRESS);
    CHECK(cudaMalloc(&memory, 4) == ILLEGAL_ADDRESS && cudaGetLastError() == ILLEGAL_ADDRESS);
    OK(cudaDeviceReset());
    cudaGetLastError();
    OK(cudaGetLastError());
    OK(cudaMalloc(&memory, 4));
    if (!failures) puts("right");
    return failures;
}
