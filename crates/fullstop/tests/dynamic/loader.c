/* A program that knows nothing of fullstop, and loads a library that does. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        /* It was started to be a keeper, and would start itself again and again. */
        return 3;
    }
    puts("main has run");
    fflush(stdout);
    void *library = dlopen(getenv("EMBEDDER"), RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*start_and_stop)(void) = (void (*)(void))dlsym(library, "start_and_stop");
    start_and_stop();
    return 0;
}
