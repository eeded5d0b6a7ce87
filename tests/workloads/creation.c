/* creation HOW MIB: touches MIB of memory, has two more threads, and makes a child by HOW (fork, vfork, clone3, fails).
   Prints: pid, ns since boot before the call, in the child, and after the call; then VmSize, VmRSS and VmPTE of
   /proc/self/status just before it, in KiB. The child of vfork is at it for 200 ms. */
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    _exit(99);
}

static uint64_t boot_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now)) fail("clock_gettime");
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static long kib(const char *status, const char *name) {
    const char *at = strstr(status, name);
    if (!at) fail(name);
    return strtol(at + strlen(name), NULL, 10);
}

static void *idle(void *nothing) {
    for (;;) pause();
    return nothing;
}

static volatile uint64_t *seen;

static void child(int is_vfork) {
    *seen = boot_ns();
    if (is_vfork) {
        struct timespec time = {0, 200000000};
        nanosleep(&time, NULL);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc != 3) return 98;
    const char *how = argv[1];
    size_t size = strtoul(argv[2], NULL, 10) << 20;
    seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED || pages == MAP_FAILED) fail("mmap");
    if (madvise(pages, size, MADV_NOHUGEPAGE)) fail("madvise");
    for (size_t at = 0; at < size; at += 4096) pages[at] = 1;
    *seen = 1;
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread, NULL, idle, NULL)) fail("pthread_create");
    printf("%s", "");
    static char status[8192];
    int file = open("/proc/self/status", O_RDONLY);
    if (file < 0) fail("status");
    struct rlimit old;
    if (getrlimit(RLIMIT_NPROC, &old)) fail("getrlimit");
    /* Twice: what the first reading itself touches is there the second time. */
    for (int i = 0; i < 2; i++)
        if (pread(file, status, sizeof status - 1, 0) <= 0) fail("status");
    volatile int is_vfork = !strcmp(how, "vfork");
    volatile uint64_t before = boot_ns();
    pid_t pid;
    if (is_vfork) {
        pid = vfork();
    } else if (!strcmp(how, "clone3")) {
        struct clone_args args = {.exit_signal = SIGCHLD};
        pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    } else {
        pid = fork();
    }
    if (pid == 0) child(is_vfork);
    uint64_t after = boot_ns();
    if (pid < 0) fail("fork");
    if (waitpid(pid, NULL, 0) != pid) fail("waitpid");
    printf("%d %llu %llu %llu %ld %ld %ld\n", (int)pid, (unsigned long long)before, (unsigned long long)*seen,
           (unsigned long long)after, kib(status, "VmSize:"), kib(status, "VmRSS:"), kib(status, "VmPTE:"));
    return 0;
}
