/* A library that starts a thread as soon as it is loaded, as some for linear algebra do. */

#include <pthread.h>
#include <unistd.h>

static void *wait(void *nothing) {
    pause();
    return nothing;
}

__attribute__((constructor)) static void start(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait, NULL);
}
