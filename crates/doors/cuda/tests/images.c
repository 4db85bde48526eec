// Loads and links a file of machine code, which its argument names; each must fail.
#include <stddef.h>
#include <stdio.h>

typedef void *Handle;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(Handle *, int), cuCtxSetCurrent(Handle), cuModuleLoad(Handle *, const char *);
int cuLibraryLoadFromFile(Handle *, const char *, void *, void *, unsigned, void *, void *, unsigned);
int cuLinkCreate_v2(unsigned, void *, void *, Handle *), cuLinkDestroy(Handle);
int cuLinkAddFile_v2(Handle, unsigned, const char *, unsigned, void *, void *);
int cuLinkAddData_v2(Handle, unsigned, void *, size_t, const char *, unsigned, void *, void *);

#define CHECK(what) \
    if (!(what)) return printf("line %d: %s\n", __LINE__, #what), 1
#define NO_BINARY 209

int main(int count, char **arguments) {
    const char *path = arguments[count - 1];
    Handle context, made, link;
    CHECK(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuCtxSetCurrent(context) == 0);
    CHECK(cuModuleLoad(&made, path) == NO_BINARY);
    CHECK(cuLibraryLoadFromFile(&made, path, NULL, NULL, 0, NULL, NULL, 0) == NO_BINARY);
    CHECK(cuLinkCreate_v2(0, NULL, NULL, &link) == 0);
    CHECK(cuLinkAddFile_v2(link, 2, path, 0, NULL, NULL) == NO_BINARY);               // CU_JIT_INPUT_FATBINARY
    CHECK(cuLinkAddData_v2(link, 0, "\x7f" "ELF", 4, "part of it", 0, NULL, NULL) == NO_BINARY); // CU_JIT_INPUT_CUBIN
    CHECK(cuLinkDestroy(link) == 0);
    return puts("right") < 0;
}
