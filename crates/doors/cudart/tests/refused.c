/* A program whose only kernel is in a fat binary that holds no code, and which never asks whether its launch succeeded. */
#include "program.h"

int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *), cudaDeviceSynchronize(void);

EMPTY_FATBIN(nothing);
static struct wrapper wrapper = WRAPPER(1, &nothing, 0);
static void stub(void) {}

int main(void) {
    dim3 one = {1, 1, 1};
    void **handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (void *)stub, "stub", "stub", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    cudaLaunchKernel((void *)stub, one, one, 0, 0, 0);
    /* The launch has no effect on the device, so there is nothing to report here. */
    return cudaDeviceSynchronize();
}
