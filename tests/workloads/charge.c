/* charge WHAT [MORE]: uses memory in one of the ways that the memory controller counts, then ends.
   anon MIB            fills private memory
   forks MIB N         fills private memory and forks N children, which wait until all are there
   read FILE           reads a file to its end
   shm FILE MIB        fills a file in memory and leaves it there
   forever             says that it runs, and waits */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    _exit(99);
}

static void fill(long mib) {
    size_t size = (size_t)mib << 20;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (at == MAP_FAILED) fail("mmap");
    for (size_t i = 0; i < size; i += 4096) at[i] = 1;
}

static void forks(int n) {
    int ready[2], go[2];
    char byte = 0;
    if (pipe(ready) || pipe(go)) fail("pipe");
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid < 0) fail("fork");
        if (pid == 0) {
            close(go[1]);
            if (write(ready[1], &byte, 1) != 1) fail("write");
            _exit(read(go[0], &byte, 1) != 0);
        }
    }
    for (int i = 0; i < n; i++)
        if (read(ready[0], &byte, 1) != 1) fail("read");
    usleep(100000);
    close(go[1]);
    while (wait(NULL) > 0) {}
}

static void read_all(const char *file) {
    static char room[1 << 16];
    int fd = open(file, O_RDONLY);
    if (fd < 0) fail(file);
    while (read(fd, room, sizeof room) > 0) {}
}

static void leave(const char *file, long mib) {
    static char room[1 << 20];
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) fail(file);
    memset(room, 1, sizeof room);
    for (long i = 0; i < mib; i++)
        if (write(fd, room, sizeof room) != (ssize_t)sizeof room) fail("write");
}

/* The group that memory of this process is charged to: a line of version 1, or the only one of version 2. */
static void say_group(void) {
    char line[4352];
    FILE *groups = fopen("/proc/self/cgroup", "r");
    if (!groups) fail("cgroup");
    while (fgets(line, sizeof line, groups)) {
        char *v1 = strstr(line, ":memory:");
        if (v1) fputs(v1 + 8, stdout);
        else if (!strncmp(line, "0::", 3) && access("/sys/fs/cgroup/memory", F_OK)) fputs(line + 3, stdout);
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    say_group();
    if (!strcmp(what, "anon") && argc == 3) fill(atol(argv[2]));
    else if (!strcmp(what, "forks") && argc == 4) fill(atol(argv[2])), forks(atoi(argv[3]));
    else if (!strcmp(what, "read") && argc == 3) read_all(argv[2]);
    else if (!strcmp(what, "shm") && argc == 4) leave(argv[2], atol(argv[3]));
    else if (!strcmp(what, "forever")) for (;;) pause();
    else return 98;
    /* A look takes place within 50 ms. */
    usleep(150000);
    return 0;
}
