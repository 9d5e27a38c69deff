/* A program that knows nothing of fullstop, and loads a library that does. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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
    if (getenv("FORKS")) {
        /* As a program does that becomes a daemon: no thread of the library's is in the copy. */
        pid_t copy = fork();
        if (copy == 0) {
            alarm(60);
            start_and_stop();
            return 0;
        }
        int status = 0;
        if (waitpid(copy, &status, 0) != copy || status != 0) {
            puts("the copy did not end by itself");
            return 1;
        }
    }
    return 0;
}
