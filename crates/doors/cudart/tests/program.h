/* What nvcc puts into a program: the launch of a kernel by its stub, the registration before main, fat binaries. Beside it the
   checks of these tests. */
#include <stdio.h>
#include <stdlib.h>

typedef struct { unsigned x, y, z; } dim3;
void **__cudaRegisterFatBinary(void *), __cudaRegisterFatBinaryEnd(void **), __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
int __cudaGetKernel(void **, const void *), __cudaLaunchKernel(void *, dim3, dim3, void **, size_t, void *);

__attribute__((unused)) static int failures;
#define CHECK(what) do { if (!(what)) { printf("%s:%d: %s\n", __FILE__, __LINE__, #what); failures++; } } while (0)
#define OK(call) do { int r_ = (call); if (r_) { printf("%s:%d: %s = %d\n", __FILE__, __LINE__, #call, r_); exit(1); } } while (0)

/* Header and one entry of a fat binary: uncompressed PTX for sm_80. */
#define FATBIN(binary, ptx) \
    static struct { \
        unsigned magic; unsigned short version, header; unsigned long long size; \
        unsigned short kind, entry_version; unsigned entry_header; unsigned long long payload; \
        unsigned compressed, options; unsigned short minor, major; unsigned architecture, name, name_size; \
        unsigned long long flags, zero, unpacked; \
        char text[(sizeof ptx + 7) / 8 * 8]; \
    } binary = {0xba55ed50, 1, 16, 64 + sizeof binary.text, 1, 0x101, 64, sizeof binary.text, 0, 0, 0, 7, 80, 0, 0, 0x11, 0, 0, ptx}
/* What nvlink leaves: no code in the binary itself. */
#define EMPTY_FATBIN(binary) \
    static struct { unsigned magic; unsigned short version, header; unsigned long long size; } binary = {0xba55ed50, 1, 16, 0}
/* By which a program names a fat binary: version 1 for one binary, 2 for one with the files that nvlink has linked. */
struct wrapper { int magic, version; void *data, *files; };
#define WRAPPER(version, data, files) {0x466243b1, version, data, files}
