/* pages LOG tour | pages LOG storm | pages LOG busy SECONDS | pages LOG walk SEED STEPS: a child does things with memory and is quiet after each of them; its
   parent then writes into LOG what /proc says of it. Reading /proc from outside changes nothing of the child's. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define MIB (1 << 20)

static FILE *into;
static int ask[2], answer[2];

static void fail(const char *what) {
    perror(what);
    exit(99);
}

static unsigned long long now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* Bytes that a file of /proc says after `name`, which stands at the beginning of a line. */
static unsigned long long field(const char *text, const char *name) {
    const char *at = text;
    size_t length = strlen(name);
    while (at && strncmp(at, name, length) != 0) {
        at = strchr(at, '\n');
        if (at) at++;
    }
    return at ? strtoull(at + length, NULL, 10) * 1024 : 0;
}

static void read_all(pid_t pid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);
    if (length < 0) fail(path);
    text[length] = 0;
    close(fd);
}

static void look(const char *what, pid_t pid) {
    static const char *const fields[] = {"RssAnon:", "RssFile:", "RssShmem:", "VmSwap:", "VmSize:",
                                         "VmData:",  "VmStk:",   "VmExe:",    "VmLib:",  "VmPTE:"};
    char status[8192], rollup[4096];
    read_all(pid, "status", status, sizeof status);
    read_all(pid, "smaps_rollup", rollup, sizeof rollup);
    fprintf(into, "%s %d %llu", what, (int)pid, now_ns());
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) fprintf(into, " %llu", field(status, fields[i]));
    fprintf(into, " %llu %llu\n", field(rollup, "Rss:"), field(rollup, "Pss:"));
}

/* Says to the parent what was done, by whom, and waits to be looked at. */
static void quiet(const char *what, pid_t whom) {
    char message[64] = "";
    snprintf(message, sizeof message - 8, "%s", what);
    memcpy(message + sizeof message - sizeof whom, &whom, sizeof whom);
    char byte;
    if (write(ask[1], message, sizeof message) != sizeof message || read(answer[0], &byte, 1) != 1) exit(98);
}

static void done(const char *what) { quiet(what, getpid()); }

static char *map(size_t size, int flags, int fd) {
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (at == MAP_FAILED) fail("mmap");
    return at;
}

static void touch(char *at, size_t size) {
    for (size_t i = 0; i < size; i += PAGE) ((volatile char *)at)[i] = 1;
}

static int read_pages(const char *at, size_t size) {
    int sum = 0;
    for (size_t i = 0; i < size; i += PAGE) sum += ((const volatile char *)at)[i];
    return sum;
}

#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define THREADS 20

static pthread_barrier_t barrier;
static char *pieces[THREADS];

static void *fill(void *number) {
    size_t n = (size_t)number;
    pieces[n] = map((n + 1) * 5 * PAGE, ANON, -1);
    for (int round = 0; round < 20; round++) {
        touch(pieces[n], (n + 1) * 5 * PAGE);
        if (round < 19) madvise(pieces[n], (n + 1) * 5 * PAGE, MADV_DONTNEED);
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void threads(void) {
    pthread_t ids[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (size_t n = 0; n < THREADS; n++)
        if (pthread_create(&ids[n], NULL, fill, (void *)n)) fail("pthread_create");
    pthread_barrier_wait(&barrier);
    done("threads_filled");
    pthread_barrier_wait(&barrier);
    for (size_t n = 0; n < THREADS; n++) {
        pthread_join(ids[n], NULL);
        munmap(pieces[n], (n + 1) * 5 * PAGE);
    }
    done("threads_gone");
}

static int deep(int levels) {
    volatile char room[16 * PAGE];
    for (size_t i = 0; i < sizeof room; i += PAGE) room[i] = 1;
    return levels ? deep(levels - 1) + room[0] : room[PAGE];
}

/* Fewer pages than a CPU keeps to itself of a counter. */
#define FEW 31

static void few_pages(void) {
    char *at = map(FEW * PAGE, ANON, -1);
    for (int i = 0; i < 200; i++) {
        touch(at, FEW * PAGE);
        madvise(at, FEW * PAGE, MADV_DONTNEED);
    }
    touch(at, FEW * PAGE);
    done("few_pages_up");
    madvise(at, FEW * PAGE, MADV_DONTNEED);
    done("few_pages_down");
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof before, &before);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &before)) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            touch(map(FEW * PAGE, ANON, -1), FEW * PAGE);
        }
    sched_setaffinity(0, sizeof before, &before);
    done("few_pages_on_each_cpu");
}

static void forked(void) {
    char *at = map(100 * MIB, ANON, -1);
    touch(at, 100 * MIB);
    done("before_fork");
    pid_t pid = fork();
    if (pid == 0) {
        done("inherited");
        touch(at, 1000 * PAGE);
        done("wrote_1000_pages");
        touch(map(500 * PAGE, ANON, -1), 500 * PAGE);
        done("own_500_pages");
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    munmap(at, 100 * MIB);
    done("after_fork");
}

static void tour(void) {
    done("begin");
    char *at = map(64 * MIB, ANON, -1);
    touch(at, 64 * MIB);
    done("mapped_and_touched");
    madvise(at, 32 * MIB, MADV_DONTNEED);
    done("half_given_back");
    at = mremap(at, 64 * MIB, 96 * MIB, MREMAP_MAYMOVE);
    if (at == MAP_FAILED) fail("mremap");
    done("grown");
    mprotect(at + MIB, MIB, PROT_READ);
    done("partly_read_only");
    munmap(at, 96 * MIB);
    done("unmapped");
    at = map(16 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1);
    touch(at, 16 * MIB);
    done("shared");
    int fd = memfd_create("pages", 0);
    if (fd < 0 || ftruncate(fd, 8 * MIB)) fail("memfd");
    char *memory = map(8 * MIB, MAP_SHARED, fd);
    touch(memory, 8 * MIB);
    done("memfd");
    munmap(memory, 8 * MIB);
    munmap(at, 16 * MIB);
    done("shared_unmapped");
    int own = open("/proc/self/exe", O_RDONLY);
    at = mmap(NULL, 16 * PAGE, PROT_READ, MAP_PRIVATE, own, 0);
    if (at == MAP_FAILED) fail("mmap of the program");
    read_pages(at, 4 * PAGE);
    done("file");
    at = map(64 * MIB, ANON, -1);
    madvise(at, 64 * MIB, MADV_HUGEPAGE);
    touch(at, 64 * MIB);
    done("huge_pages");
    madvise(at + 3 * PAGE, 5 * PAGE, MADV_DONTNEED);
    done("huge_page_split");
    munmap(at, 64 * MIB);
    done("huge_pages_unmapped");
    char *end = sbrk(4 * MIB);
    touch(end, 4 * MIB);
    done("brk_up");
    sbrk(-3 * MIB);
    done("brk_down");
    deep(64);
    done("deep_stack");
    map(1024UL * MIB, ANON | MAP_NORESERVE, -1);
    done("reserved");
    few_pages();
    threads();
    forked();
    at = map(300 * MIB, ANON, -1);
    touch(at, 300 * MIB);
    usleep(20000);
    munmap(at, 300 * MIB);
    done("after_spike");
}

/* A process on each CPU that touches memory as fast as it can, then some changes without haste. */
static void storm(void) {
    cpu_set_t all, one;
    char *at = map(16 * MIB, ANON, -1);
    done("calm");
    sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && fork() == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            for (int round = 0; round < 30; round++) {
                touch(at, 16 * MIB);
                madvise(at, 16 * MIB, MADV_DONTNEED);
            }
            _exit(0);
        }
    while (wait(NULL) > 0) continue;
    for (int i = 0; i < 50; i++) {
        touch(at + i * 20 * PAGE, 20 * PAGE);
        usleep(2000);
    }
    done("after_storm");
}

/* Threads that touch memory and give it back all the time, with the shortest of pauses. */
static unsigned long long end;

static void *toil(void *number) {
    for (size_t round = (size_t)number; now_ns() < end; round++) {
        size_t pages = 1 + round * 37 % 300;
        char *at = map(pages * PAGE, ANON, -1);
        touch(at, pages * PAGE);
        if (round % 4 == 0) usleep(500);
        munmap(at, pages * PAGE);
    }
    return NULL;
}

static void busy(int seconds) {
    pthread_t ids[4];
    end = now_ns() + seconds * 1000000000ULL;
    for (size_t n = 0; n < 4; n++)
        if (pthread_create(&ids[n], NULL, toil, (void *)n)) fail("pthread_create");
    for (size_t n = 0; n < 4; n++) pthread_join(ids[n], NULL);
}

/* A walk: each step does one thing to one of some mappings, all sizes and places by chance. */
static uint64_t state;

static unsigned chance(unsigned below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % below;
}

static struct {
    char *at;
    size_t pages;
} slots[8];

static void *touch_some(void *number) {
    size_t n = (size_t)number;
    touch(slots[n].at, slots[n].pages * PAGE);
    return NULL;
}

static void step(void) {
    size_t n = chance(8);
    if (!slots[n].at) {
        slots[n].pages = 1 + chance(1 << chance(12));
        slots[n].at = map(slots[n].pages * PAGE, (chance(3) ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1);
        return;
    }
    size_t first = chance(slots[n].pages), count = 1 + chance(slots[n].pages - first);
    char *at = slots[n].at + first * PAGE;
    pthread_t id;
    pid_t pid;
    switch (chance(8)) {
    case 0:
        munmap(slots[n].at, slots[n].pages * PAGE);
        slots[n].at = NULL;
        break;
    case 1: madvise(at, count * PAGE, MADV_DONTNEED); break;
    case 2: madvise(at, count * PAGE, MADV_HUGEPAGE); break;
    case 3:
        if (pthread_create(&id, NULL, touch_some, (void *)n)) fail("pthread_create");
        touch(at, count * PAGE);
        pthread_join(id, NULL);
        break;
    case 4:
        if ((pid = fork()) == 0) {
            touch(at, count * PAGE);
            done("child");
            _exit(0);
        }
        waitpid(pid, NULL, 0);
        break;
    case 5: {
        size_t pages = 1 + chance(2 * slots[n].pages);
        char *moved = mremap(slots[n].at, slots[n].pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
        if (moved != MAP_FAILED) {
            /* What a shared mapping gets beyond its object can't be touched. */
            slots[n].pages = pages < slots[n].pages ? pages : slots[n].pages;
            if (pages > slots[n].pages) munmap(moved + slots[n].pages * PAGE, (pages - slots[n].pages) * PAGE);
            slots[n].at = moved;
        }
        break;
    }
    default: touch(at, count * PAGE);
    }
}

int main(int argc, char **argv) {
    if (argc < 3 || (strcmp(argv[2], "busy") == 0 && argc < 4) || !(into = fopen(argv[1], "w")) || pipe(ask) || pipe(answer)) fail("pages LOG tour | walk SEED STEPS");
    pid_t child = fork();
    if (child == 0) {
        if (strcmp(argv[2], "tour") == 0) {
            tour();
        } else if (strcmp(argv[2], "storm") == 0) {
            storm();
        } else if (strcmp(argv[2], "busy") == 0) {
            busy(atoi(argv[3]));
        } else {
            state = strtoull(argv[3], NULL, 10) * 2654435761ULL + 1;
            for (int steps = atoi(argv[4]); steps > 0; steps--) {
                step();
                done("step");
            }
        }
        _exit(0);
    }
    close(ask[1]);
    close(answer[0]);
    char message[64];
    while (read(ask[0], message, sizeof message) == sizeof message) {
        pid_t pid;
        memcpy(&pid, message + sizeof message - sizeof pid, sizeof pid);
        look(message, pid);
        if (write(answer[1], "", 1) != 1) fail("write");
    }
    int status;
    waitpid(child, &status, 0);
    fclose(into);
    return status == 0 ? 0 : 1;
}
