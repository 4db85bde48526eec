// NVIDIA's Python bindings of the runtime in small, and a program beside them. With -DLIBRARY, a library that holds a runtime without the
// names of its functions, which nothing registers device code with. Without it, a program that opens that library and asks the driver for
// the tables that are not documented: by itself, or, given a second word, through the library.
#include <dlfcn.h>
#include <stdio.h>

typedef int (*asking)(void *, const char *);

__attribute__((noinline)) int ask_driver(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *table;
    asking ask = driver ? (asking)dlsym(driver, "cuGetExportTable") : NULL;
    int refused = ask && ask(&table, "0123456789abcdef") != 0; // no tail call, so that the caller is this function
    return refused;
}

#ifdef LIBRARY
// How NVIDIA's runtime names the shared memory that it asks the system for.
const char *volatile shared_memory = "/cudart.shm.%x";
#else
int main(int count, char **words) {
    void *library = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) return puts(dlerror()), 2;
    int (*through)(void) = (int (*)(void))dlsym(library, "ask_driver");
    int asked = ask_driver() && (count < 3 || through());
    return puts(asked ? "right" : "wrong"), 0;
}
#endif
