/* actor WHAT [NUMBER]: does one thing with processes or threads whose outcome is known beforehand. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void fail(const char *what) {
    perror(what);
    _exit(99);
}

static int reap_all(void) {
    int count = 0;
    while (wait(NULL) > 0) count++;
    return count;
}

/* NUMBER children that end at once with 7; their pids go to standard output. */
static int forks(int number) {
    for (int i = 0; i < number; i++) {
        pid_t pid = fork();
        if (pid < 0) fail("fork");
        if (pid == 0) _exit(7);
        printf("%d\n", (int)pid);
        if (i % 50 == 49) reap_all();
    }
    fflush(stdout);
    reap_all();
    return 0;
}

/* NUMBER times /bin/true, one after the other. */
static int burst(int number) {
    char *argv[] = {"true", NULL};
    for (int i = 0; i < number; i++) {
        pid_t pid;
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ)) fail("posix_spawn");
        if (waitpid(pid, NULL, 0) != pid) fail("waitpid");
    }
    return 0;
}

/* A chain: each process creates one and waits for it; the last ends with 5, and so do all. */
static int deep(int number) {
    if (number == 0) return 5;
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) _exit(deep(number - 1));
    int status;
    if (waitpid(pid, &status, 0) != pid) fail("waitpid");
    return WEXITSTATUS(status);
}

static char child_stack[256 * 1024] __attribute__((aligned(16)));

static int leave(void *code) { _exit(*(int *)code); }

/* One child that shares our memory and leaves with NUMBER; with CLONE_VFORK or without. */
static int sharing(int number, int flags) {
    pid_t pid = clone(leave, child_stack + sizeof child_stack, CLONE_VM | flags | SIGCHLD, &number);
    if (pid < 0) fail("clone");
    reap_all();
    return 0;
}

static pthread_barrier_t barrier;

static void *meet(void *unused) {
    pthread_barrier_wait(&barrier);
    return unused;
}

/* NUMBER threads, all alive at once; then a fork, with only the first left. */
static int threads(int number) {
    pthread_t ids[number];
    pthread_barrier_init(&barrier, NULL, (unsigned)number + 1);
    for (int i = 0; i < number; i++)
        if (pthread_create(&ids[i], NULL, meet, NULL)) fail("pthread_create");
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < number; i++) pthread_join(ids[i], NULL);
    if (fork() == 0) _exit(0);
    reap_all();
    return 0;
}

static void *end_later(void *code) {
    char path[64], text[128] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    do {
        int fd = open(path, O_RDONLY);
        if (read(fd, text, sizeof text - 1) < 1) fail("read");
        close(fd);
    } while (!strstr(text, ") Z "));
    _exit(*(int *)code);
}

/* The first thread leaves with 1, another ends the process with NUMBER when it sees that. */
static int leader_first(int number) {
    pthread_t id;
    if (pthread_create(&id, NULL, end_later, &number)) fail("pthread_create");
    syscall(SYS_exit, 1);
    return 98;
}

static void *exec_true(void *unused) {
    char *argv[] = {"true", "from a thread", NULL};
    execve("/bin/true", argv, environ);
    fail("execve");
    return unused;
}

/* A thread that isn't the leader turns the process into /bin/true. */
static int exec_in_thread(int unused) {
    pthread_t id;
    if (pthread_create(&id, NULL, exec_true, NULL)) fail("pthread_create");
    pause();
    return unused;
}

static void *rename_thread(void *unused) {
    prctl(PR_SET_NAME, "only-a-thread");
    return unused;
}

/* A child with a name of its own; a thread of it has another. */
static int names(int unused) {
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t id;
        prctl(PR_SET_NAME, "first-name");
        prctl(PR_SET_NAME, "b\xffyte \xe2\x82\xac name");
        if (pthread_create(&id, NULL, rename_thread, NULL)) fail("pthread_create");
        pthread_join(id, NULL);
        _exit(0);
    }
    reap_all();
    return unused;
}

static const char *const NAMES[] = {"kworker/0:1", "rtrace", "\x1b]0;x\x07\x1b[2J", "a\nb\tc", "<script>", "\xff\xfe", "\xe2\x80\xaegnp.exe",
                                    "[kthreadd]"};
enum { NAME_COUNT = sizeof NAMES / sizeof *NAMES };

/* For each name a child that takes it and ends with its place, then one that is /bin/true with it as only argument. */
static int imitate(int unused) {
    for (int i = 0; i < NAME_COUNT; i++) {
        if (fork() == 0) {
            prctl(PR_SET_NAME, NAMES[i]);
            _exit(100 + i);
        }
        reap_all();
        if (fork() == 0) {
            execve("/bin/true", (char *[]){(char *)NAMES[i], NULL}, environ);
            fail("execve");
        }
        reap_all();
    }
    return unused;
}

/* fork, setsid, fork: the middle one ends first; we end when the last one has (it holds a pipe). */
static int daemonise(int number) {
    int ends[2];
    char byte;
    if (pipe(ends)) fail("pipe");
    pid_t middle = fork();
    if (middle == 0) {
        setsid();
        pid_t creator = getpid();
        if (fork() == 0) {
            while (getppid() == creator) usleep(200);
            _exit(number);
        }
        _exit(1);
    }
    close(ends[1]);
    if (waitpid(middle, NULL, 0) != middle || read(ends[0], &byte, 1) != 0) fail("daemon");
    return 0;
}

/* A child that nobody reaps for 300 ms, then 300 ms in which the kernel can free it. */
static int zombie(int unused) {
    if (fork() == 0) _exit(4);
    usleep(300000);
    reap_all();
    usleep(300000);
    return unused;
}

/* The same pid twice, the first time ended with 11, the last with 22; misses end with 33. 77 means that it never
   worked. Somebody else, such as a kernel thread, may take the pid and keep it: then another one is tried. */
static int same_pid(int tries) {
    char text[32];
    pid_t first = 0;
    int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
    for (int i = 0; i < tries; i++) {
        if (i % 20 == 0) {
            first = fork();
            if (first == 0) _exit(11);
            waitpid(first, NULL, 0);
        }
        int length = snprintf(text, sizeof text, "%d", (int)first - 1);
        if (pwrite(fd, text, (size_t)length, 0) != length) fail("ns_last_pid");
        pid_t again = fork();
        if (again == 0) _exit(getpid() == first ? 22 : 33);
        waitpid(again, NULL, 0);
        if (again == first) return 0;
    }
    return 77;
}

/* A child that writes NUMBER MiB and gives them back before it ends. */
static int memory(int number) {
    size_t size = (size_t)number << 20;
    if (fork() == 0) {
        char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) fail("mmap");
        for (size_t i = 0; i < size; i += 4096) at[i] = 1;
        munmap(at, size);
        _exit(0);
    }
    reap_all();
    return 0;
}

/* A child that reserves NUMBER MiB of address space, touches nothing of it and ends with it. */
static int reserve(int number) {
    if (fork() == 0) {
        if (mmap(NULL, (size_t)number << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
            MAP_FAILED)
            fail("mmap");
        _exit(0);
    }
    reap_all();
    return 0;
}

/* NUMBER children, then says so and waits for the end of standard input. */
static int wait_for_input(int number) {
    char byte;
    forks(number);
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) == 1) continue;
    puts("still alive");
    return 0;
}

/* A child every 2 ms until the end of standard input, after each its pid and the time, ns since boot; ends with NUMBER. */
static int pulse(int number) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    do {
        struct timespec now;
        pid_t pid = fork();
        if (pid < 0) fail("fork");
        if (pid == 0) _exit(7);
        if (waitpid(pid, NULL, 0) != pid) fail("waitpid");
        clock_gettime(CLOCK_BOOTTIME, &now);
        printf("%d %lld\n", (int)pid, now.tv_sec * 1000000000LL + now.tv_nsec);
        fflush(stdout);
    } while (poll(&input, 1, 2) == 0);
    puts("done");
    return number;
}

static int vfork_child(int number) { return sharing(number, CLONE_VFORK); }
static int clone_vm_child(int number) { return sharing(number, 0); }

static const struct {
    const char *name;
    int (*act)(int);
} ACTS[] = {{"forks", forks},
            {"burst", burst},
            {"deep", deep},
            {"vfork", vfork_child},
            {"clone_vm", clone_vm_child},
            {"threads", threads},
            {"leader_first", leader_first},
            {"exec_in_thread", exec_in_thread},
            {"names", names},
            {"imitate", imitate},
            {"daemonise", daemonise},
            {"zombie", zombie},
            {"same_pid", same_pid},
            {"memory", memory},
            {"reserve", reserve},
            {"wait_for_input", wait_for_input},
            {"pulse", pulse}};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof ACTS / sizeof *ACTS; i++)
        if (strcmp(ACTS[i].name, argv[1]) == 0) return ACTS[i].act(argc > 2 ? atoi(argv[2]) : 0);
    fputs("actor WHAT [NUMBER]\n", stderr);
    return 2;
}
