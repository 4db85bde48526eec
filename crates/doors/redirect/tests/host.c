// Opens a library by its path and calls its function, as Python opens its modules.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words) {
    void *library = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) return puts(dlerror()), 2;
    int (*run)(void) = (int (*)(void))dlsym(library, "run_library");
    return run ? run() : 2;
}
