/* swings LOG THREADS PAGES ROUNDS KIND: each thread, on a CPU of its own as far as there are enough, touches so many
   pages and gives them back, over and over, all at once. At the end all stand at the top together. LOG gets the RSS of
   the process before, at the top and after, pages, as smaps_rollup has it, and when it stood at the top, ns since boot.

   KIND: pages, of anonymous memory; folios, of the same where the kernel may give several at once; file, pages of a file
   that is in memory already, of which the kernel maps several at once. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define MOST 64
#define WARM 3
/* Areas begin at a multiple of it. */
#define AREA (1 << 20)
#define BALLAST (1 << 20)

static pthread_barrier_t barrier;
static size_t pages, rounds, threads;
static char text[4096];

static void fail(const char *what) {
    perror(what);
    exit(99);
}

/* Touches nothing that it hasn't touched before, from the second call on. */
static size_t rss(void) {
    int fd = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length < 0) fail("smaps_rollup");
    close(fd);
    text[length] = 0;
    const char *at = strstr(text, "Rss:");
    return at ? strtoul(at + 4, NULL, 10) * 1024 / PAGE : 0;
}

static int is_file;
static volatile char seen;

static void up(char *at) {
    for (size_t n = 0; n < pages; n++) {
        volatile char *place = at + n * PAGE;
        if (is_file)
            seen = *place;
        else
            *place = 1;
    }
}

static void down(char *at) {
    if (madvise(at, pages * PAGE, MADV_DONTNEED)) fail("madvise");
}

static void meet(void) { pthread_barrier_wait(&barrier); }

static void *swing(void *place) {
    char *at = place;
    for (int n = 0; n < WARM; n++) {
        up(at);
        meet();
        down(at);
        meet();
    }
    meet();
    for (size_t n = 0; n < rounds; n++) {
        up(at);
        down(at);
    }
    meet();
    up(at);
    meet();
    meet();
    down(at);
    meet();
    /* Until it has been looked at, so that no stack goes. */
    meet();
    return NULL;
}

/* The n-th of the CPUs that this may run on. */
static void pin(pthread_attr_t *attributes, size_t n) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all)) fail("sched_getaffinity");
    size_t left = n % CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && left-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            pthread_attr_setaffinity_np(attributes, sizeof one, &one);
            return;
        }
}

/* Room for a thread's pages, with nothing mapped on either side: of two neighbours the kernel makes one mapping. */
static char *area(const char *kind) {
    size_t length = (pages * PAGE + AREA - 1) / AREA * AREA;
    char *room = mmap(NULL, length + 2 * AREA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) fail("mmap");
    char *at = (char *)(((size_t)room + AREA) / AREA * AREA);
    if (!is_file) {
        int advice = strcmp(kind, "folios") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
        if (mprotect(at, pages * PAGE, PROT_READ | PROT_WRITE) || madvise(at, pages * PAGE, advice)) fail("madvise");
        return at;
    }
    int fd = memfd_create("swings", 0);
    if (fd < 0 || ftruncate(fd, length)) fail("memfd_create");
    for (size_t page = 0; page < length / PAGE; page++)
        if (pwrite(fd, "x", 1, page * PAGE) != 1) fail("pwrite");
    if (mmap(at, pages * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != at) fail("mmap");
    close(fd);
    return at;
}

int main(int count, char **words) {
    if (count != 6) return 2;
    is_file = !strcmp(words[5], "file");
    FILE *log = fopen(words[1], "w");
    if (!log) fail(words[1]);
    threads = strtoul(words[2], NULL, 10), pages = strtoul(words[3], NULL, 10), rounds = strtoul(words[4], NULL, 10);
    if (threads < 1 || threads > MOST) return 2;
    pthread_t ids[MOST];
    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (size_t n = 0; n < threads; n++) {
        char *at = area(words[5]);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pin(&attributes, n);
        if (pthread_create(&ids[n], &attributes, swing, at)) fail("pthread_create");
    }
    /* More than the process has at its beginning and at its end, so that the top is the highest. */
    char *ballast = mmap(NULL, BALLAST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ballast == MAP_FAILED) fail("mmap");
    memset(ballast, 1, BALLAST);
    /* Also for the code of it, which counts when it first runs. */
    munmap(mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0), PAGE);
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    size_t before = 0;
    for (int n = 0; n < WARM; n++) {
        meet();
        rss();
        meet();
        before = rss();
    }
    meet();
    meet();
    meet();
    size_t top = rss();
    clock_gettime(CLOCK_BOOTTIME, &now);
    meet();
    meet();
    size_t after = rss();
    /* Before the threads leave: that brings more code in, while this is still there. */
    munmap(ballast, BALLAST);
    meet();
    for (size_t n = 0; n < threads; n++) pthread_join(ids[n], NULL);
    long long ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    fprintf(log, "%zu %zu %zu %lld\n", before, top, after, ns);
    return fclose(log) ? 1 : 0;
}
