/* family MIB CHILDREN [PAGES [kernel]]: fills MIB of memory and forks CHILDREN, of which the first writes to PAGES of the
   pages that it has from its parent, or has the kernel do so, and the second fills 20 MiB of its own. When all are done it prints what smaps_rollup says
   of all of them, in bytes: the sum of Pss, the sum of Rss, and the pid of the first child. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1 << 20)
#define PAGE 4096
#define OWN (20 * MIB)

static void fail(const char *what) {
    perror(what);
    exit(99);
}

static char *pages(size_t bytes) {
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail("mmap");
    /* Huge ones would be copied as such on some kernels. */
    madvise(at, bytes, MADV_NOHUGEPAGE);
    memset(at, 1, bytes);
    return at;
}

static unsigned long long field(pid_t pid, const char *name) {
    char path[64], line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) kib = strtoull(line + strlen(name), NULL, 10);
    fclose(file);
    return kib * 1024;
}

int main(int argc, char **argv) {
    if (argc < 3) return 98;
    size_t bytes = strtoul(argv[1], NULL, 10) * MIB;
    int count = atoi(argv[2]), written = argc > 3 ? atoi(argv[3]) : 0, done[2], leave[2];
    int zero = argc > 4 ? open("/dev/zero", O_RDONLY) : -1;
    char *all = pages(bytes), byte = 0;
    if (count > 64 || pipe(done) || pipe(leave)) fail("pipe");
    pid_t children[64];
    for (int n = 0; n < count; n++) {
        children[n] = fork();
        if (children[n] < 0) fail("fork");
        if (children[n] == 0) {
            close(leave[1]);
            if (n == 0)
                for (int page = 0; page < written; page++) {
                    char *at = all + (size_t)page * PAGE;
                    if (zero < 0)
                        *at = 2;
                    else if (read(zero, at, 1) != 1)
                        _exit(95);
                }
            if (n == 1) pages(OWN);
            if (write(done[1], &byte, 1) != 1) _exit(97);
            /* Until the parent closes its end. */
            _exit(read(leave[0], &byte, 1) == 0 ? 0 : 96);
        }
    }
    for (int n = 0; n < count; n++)
        if (read(done[0], &byte, 1) != 1) fail("read");
    unsigned long long pss = field(getpid(), "Pss:"), rss = field(getpid(), "Rss:");
    for (int n = 0; n < count; n++) {
        pss += field(children[n], "Pss:");
        rss += field(children[n], "Rss:");
    }
    printf("%llu %llu %d\n", pss, rss, (int)children[0]);
    close(leave[1]);
    while (wait(NULL) > 0) {
    }
    return 0;
}
