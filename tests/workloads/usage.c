/* usage WHAT: a child that does a known amount of work in some way, and what the kernel itself says of it then.
   Prints one line: pid, user and system time (us), minor and major faults, voluntary and involuntary switches as wait4 has
   them, and rchar, wchar, read_bytes, write_bytes of /proc/PID/io; -1 for what isn't there. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 500, BYTES = 100000, THREADS = 20 };

static void fail(const char *what) {
    perror(what);
    _exit(99);
}

/* CPU time of the calling thread, ns. */
static long long cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* A file of some pages that go to storage and come back by page faults, where there is any storage. */
static void use_storage(void) {
    enum { SIZE = 16 * 4096 };
    static const char bytes[SIZE];
    FILE *file = tmpfile();
    if (!file) fail("tmpfile");
    int fd = fileno(file);
    if (write(fd, bytes, SIZE) != SIZE || fsync(fd)) fail("write");
    posix_fadvise(fd, 0, SIZE, POSIX_FADV_DONTNEED);
    volatile char *at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) fail("mmap");
    for (int i = 0; i < SIZE; i += 4096) (void)at[i];
    munmap((void *)at, SIZE);
    fclose(file);
}

/* PAGES faults at least, BYTES read and BYTES written, some time in user mode and in the kernel, some waiting. */
static void work(void) {
    static char zeros[BYTES];
    static __thread char bytes[BYTES];
    size_t size = PAGES * 4096UL;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail("mmap");
    madvise(at, size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += 4096) at[i] = 1;
    munmap(at, size);
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    if (read(zero, bytes, BYTES) != BYTES || write(null, zeros, BYTES) != BYTES) fail("read or write");
    long long end = cpu_ns() + 10000000;
    while (cpu_ns() < end) continue;
    for (end = cpu_ns() + 5000000; cpu_ns() < end;)
        if (syscall(SYS_getppid) < 0) fail("getppid");
    usleep(1000);
    close(zero);
    close(null);
    use_storage();
}

static void *work_in_thread(void *unused) {
    work();
    return unused;
}

static void in_threads(void) {
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&ids[i], NULL, work_in_thread, NULL)) fail("pthread_create");
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    work();
}

/* Works when the first thread is a zombie, and ends the process. */
static void *work_later(void *unused) {
    char path[64], text[128] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    do {
        int fd = open(path, O_RDONLY);
        if (read(fd, text, sizeof text - 1) < 1) fail("read");
        close(fd);
    } while (!strstr(text, ") Z "));
    work();
    _exit(7);
    return unused;
}

static void child(const char *what, char *self) {
    work();
    if (strcmp(what, "threads") == 0) {
        in_threads();
    } else if (strcmp(what, "leader_first") == 0) {
        pthread_t id;
        if (pthread_create(&id, NULL, work_later, NULL)) fail("pthread_create");
        syscall(SYS_exit, 1);
    } else if (strcmp(what, "killed") == 0) {
        raise(SIGKILL);
    } else if (strcmp(what, "exec") == 0) {
        execl("/proc/self/exe", self, "only_work", NULL);
        fail("exec");
    }
    _exit(0);
}

static long long io_of(pid_t pid, const char *name) {
    char path[64], line[128], found[64];
    long long value, result = -1;
    snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%63[^:]: %lld", found, &value) == 2 && strcmp(found, name) == 0) result = value;
    if (file) fclose(file);
    return result;
}

static long long micros(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    if (strcmp(argv[1], "only_work") == 0) {
        work();
        return 0;
    }
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) child(argv[1], argv[0]);
    siginfo_t info;
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT)) fail("waitid");
    /* It still runs to its last switch: only then the numbers are final. */
    usleep(50000);
    long long rchar = io_of(pid, "rchar"), wchar = io_of(pid, "wchar");
    long long read_bytes = io_of(pid, "read_bytes"), write_bytes = io_of(pid, "write_bytes");
    struct rusage used;
    if (wait4(pid, NULL, 0, &used) != pid) fail("wait4");
    printf("%d %lld %lld %ld %ld %ld %ld %lld %lld %lld %lld\n", (int)pid, micros(used.ru_utime), micros(used.ru_stime),
           used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw, rchar, wchar, read_bytes, write_bytes);
    return 0;
}
