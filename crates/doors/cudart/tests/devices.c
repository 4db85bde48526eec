/* A program as nvcc makes it, on two devices and across a reset: its stubs keep the kernel's handle from the first launch on
   (`__cudaGetKernel`), and each device has variables of its own, but for managed ones (CUDA C++ Programming Guide, "Multi-Device System"). */
#include "program.h"

int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *), cudaGetKernel(void **, const void *);
int cudaGetFuncBySymbol(void **, const void *), cudaFuncSetAttribute(const void *, int, int), cudaFuncGetAttributes(void *, const void *);
int cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int), cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int);
int cudaSetDevice(int), cudaDeviceReset(void), cudaDeviceSynchronize(void), cudaGetSymbolAddress(void **, const void *);

#define PTX(step) \
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 calls = 100;\n" \
    ".visible .global .attribute(.managed) .align 4 .u32 all = 1000;\n" \
    ".visible .entry count() { red.global.add.u32 [calls], " step "; red.global.add.u32 [all], 1; ret; }\n"
FATBIN(fat, PTX("1"));
FATBIN(other_fat, PTX("7"));
static struct wrapper wrapper = WRAPPER(1, &fat, 0), other = WRAPPER(1, &other_fat, 0);

static unsigned calls, *all;
static int count_stub(void) {
    static void *kernel; /* as in the code that nvcc generates */
    dim3 one = {1, 1, 1};
    if (!kernel) OK(__cudaGetKernel(&kernel, (void *)count_stub));
    return __cudaLaunchKernel(kernel, one, one, 0, 0, 0);
}

static void **load(void *binary) {
    void **handle = __cudaRegisterFatBinary(binary);
    __cudaRegisterFunction(handle, (void *)count_stub, "count", "count", -1, 0, 0, 0, 0, 0);
    __cudaRegisterVar(handle, (char *)&calls, "calls", "calls", 0, 4, 0, 0);
    __cudaRegisterManagedVar(handle, (void **)&all, "all", "all", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    return handle;
}

static unsigned counted(void) {
    unsigned n = 0;
    OK(cudaMemcpyFromSymbol(&n, &calls, 4, 0, 2));
    return n;
}

static int most_shared(void) {
    struct { size_t sizes[3]; int threads, registers, ptx, binary, cached, most, rest[32]; } found;
    OK(cudaFuncGetAttributes(&found, (void *)count_stub));
    return found.most;
}

int main(void) {
    dim3 one = {1, 1, 1};
    void *kernel, *functions[2], *places[2], **handle = load(&wrapper);
    unsigned five = 5;
    OK(count_stub());
    CHECK(counted() == 101);
    OK(cudaSetDevice(1));
    CHECK(counted() == 100);
    OK(count_stub());
    OK(count_stub());
    CHECK(counted() == 102);
    CHECK(*all == 1003);
    OK(cudaMemcpyToSymbol(&calls, &five, 4, 0, 1));
    OK(cudaSetDevice(0));
    CHECK(counted() == 101);

    /* The handles of the API: a kernel is of all devices, a function and a variable's address of one. */
    OK(cudaGetKernel(&kernel, (void *)count_stub));
    OK(cudaGetFuncBySymbol(&functions[0], (void *)count_stub));
    OK(cudaGetSymbolAddress(&places[0], &calls));
    OK(cudaFuncSetAttribute((void *)count_stub, 8, 60000));
    OK(cudaSetDevice(1));
    OK(cudaGetFuncBySymbol(&functions[1], (void *)count_stub));
    OK(cudaGetSymbolAddress(&places[1], &calls));
    CHECK(functions[0] != functions[1] && places[0] != places[1]);
    CHECK(most_shared() == 49152);
    OK(cudaLaunchKernel(kernel, one, one, 0, 0, 0));
    CHECK(counted() == 6);
    OK(cudaSetDevice(0));
    CHECK(most_shared() == 60000 && counted() == 101);

    /* A reset destroys the variables of its device only, and no kernel. */
    OK(cudaDeviceReset());
    OK(count_stub());
    OK(cudaLaunchKernel(kernel, one, one, 0, 0, 0));
    CHECK(counted() == 102 && most_shared() == 49152 && *all == 1006); /* the other device has it still */
    OK(cudaSetDevice(1));
    CHECK(counted() == 6);
    OK(cudaDeviceReset());
    OK(cudaSetDevice(0));
    OK(cudaDeviceReset());
    unsigned before = *all; /* the host's address is valid without a call */
    OK(count_stub());
    CHECK(counted() == 101 && *all == before + 1);

    /* The addresses of a library that was closed belong to another one. */
    __cudaUnregisterFatBinary(handle);
    handle = load(&other);
    OK(cudaLaunchKernel((void *)count_stub, one, one, 0, 0, 0));
    CHECK(counted() == 107 && *all == 1001); /* its own variables */
    __cudaUnregisterFatBinary(handle);
    CHECK(cudaLaunchKernel((void *)count_stub, one, one, 0, 0, 0) == 98);
    if (!failures) printf("right\n");
    return failures != 0;
}
