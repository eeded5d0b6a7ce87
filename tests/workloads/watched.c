/* watched WHAT [NUMBER]: a child to which one thing happens that only a hook of its own tells. Prints the child's pid. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    _exit(99);
}

static void sleep_ms(int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&time, &time)) continue;
}

/* In the parent the child's pid, which it has printed; in the child 0. */
static pid_t child(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid > 0) {
        printf("%d\n", (int)pid);
        fflush(stdout);
    }
    return pid;
}

static int reap(pid_t pid) {
    if (waitpid(pid, NULL, 0) != pid) fail("waitpid");
    return 0;
}

/* Killed by signal NUMBER from its parent, after that has slept for half a second. */
static int killed(int number) {
    pid_t pid = child();
    if (pid == 0)
        for (;;) pause();
    sleep_ms(500);
    if (kill(pid, number)) fail("kill");
    return reap(pid);
}

/* Sends itself signal NUMBER. */
static int raises(int number) {
    pid_t pid = child();
    if (pid == 0) {
        raise(number);
        _exit(0);
    }
    return reap(pid);
}

/* Touches what isn't there. */
static int faults(int number) {
    pid_t pid = child();
    if (pid == 0) *(volatile char *)(long)number = 1;
    return reap(pid);
}

static volatile sig_atomic_t ticks;
static void tick(int signal) { ticks += signal != 0; }

/* A timer rings NUMBER times, which it handles; then once more, which it doesn't. */
static int rings(int number) {
    struct itimerval every = {{0, 2000}, {0, 2000}};
    pid_t pid = child();
    if (pid == 0) {
        signal(SIGALRM, tick);
        if (setitimer(ITIMER_REAL, &every, NULL)) fail("setitimer");
        while (ticks < number) continue;
        signal(SIGALRM, SIG_DFL);
        for (;;) continue;
    }
    return reap(pid);
}

static void *wait_forever(void *lock) {
    pthread_mutex_lock(lock);
    return NULL;
}

/* All its threads, NUMBER more than the first, wait for a lock that nobody gives back, until they are killed. */
static int blocks(int number) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pid_t pid = child();
    if (pid == 0) {
        pthread_t id;
        pthread_mutex_lock(&lock);
        for (int i = 0; i < number; i++)
            if (pthread_create(&id, NULL, wait_forever, &lock)) fail("pthread_create");
        wait_forever(&lock);
    }
    sleep_ms(700);
    if (kill(pid, SIGKILL)) fail("kill");
    return reap(pid);
}

/* The same, but the first thread keeps running. */
static int spins(int number) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pid_t pid = child();
    if (pid == 0) {
        pthread_t id;
        pthread_mutex_lock(&lock);
        for (int i = 0; i < number; i++)
            if (pthread_create(&id, NULL, wait_forever, &lock)) fail("pthread_create");
        for (;;) continue;
    }
    sleep_ms(700);
    if (kill(pid, SIGKILL)) fail("kill");
    return reap(pid);
}

/* Stopped by a signal for NUMBER ms, as its parent sees it, who prints the true time in ns. */
static int stops(int number) {
    struct timespec from, to;
    pid_t pid = child();
    if (pid == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) fail("waitpid");
    clock_gettime(CLOCK_BOOTTIME, &from);
    sleep_ms(number);
    clock_gettime(CLOCK_BOOTTIME, &to);
    if (kill(pid, SIGCONT)) fail("kill");
    printf("%lld\n", (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec);
    return reap(pid);
}

/* Calls of exec that fail: NUMBER times a file that isn't there, then a folder, then one by execveat. */
static int fails(int number) {
    char *argv[] = {"x", NULL};
    pid_t pid = child();
    if (pid == 0) {
        for (int i = 0; i < number; i++) {
            char path[32];
            snprintf(path, sizeof path, "/no/such/%d", i);
            execv(path, argv);
        }
        execv("/tmp", argv);
        syscall(SYS_execveat, AT_FDCWD, "/no/such/at", argv, environ, 0);
        _exit(3);
    }
    return reap(pid);
}

/* NUMBER calls of clone that fail with EINVAL: threads can't have handlers of their own. */
static int refused(int number) {
    pid_t pid = child();
    if (pid == 0) {
        for (int i = 0; i < number; i++)
            if (syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0) != -1 || errno != EINVAL) fail("clone");
        _exit(0);
    }
    return reap(pid);
}

/* A session of its own; a second call fails. */
static int session(int number) {
    pid_t pid = child();
    if (pid == 0) {
        if (setsid() < 0 || setsid() >= 0) _exit(1);
        _exit(number);
    }
    return reap(pid);
}

static int in_namespace(void *unused) {
    (void)unused;
    _exit(getpid() == 1 ? 0 : 1);
}

/* The first process of a pid namespace. */
static int namespace(int number) {
    static char stack[65536] __attribute__((aligned(16)));
    (void)number;
    pid_t pid = clone(in_namespace, stack + sizeof stack, CLONE_NEWPID | SIGCHLD, NULL);
    if (pid < 0) fail("clone");
    printf("%d\n", (int)pid);
    return reap(pid);
}

/* Moves to a new control group of whatever hierarchy there is; prints its path there, and removes it. */
static int moves(int number) {
    static const char *const HIERARCHIES[] = {"/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
    char name[64], path[256];
    const char *top = NULL;
    for (size_t i = 0; i < 3 && !top; i++) {
        snprintf(path, sizeof path, "%s/cgroup.procs", HIERARCHIES[i]);
        if (access(path, W_OK) == 0) top = HIERARCHIES[i];
    }
    if (!top) fail("no control groups");
    snprintf(name, sizeof name, "/rtrace-moves-%d", (int)getpid());
    snprintf(path, sizeof path, "%s%s", top, name);
    if (mkdir(path, 0755)) fail("mkdir");
    pid_t pid = child();
    if (pid == 0) {
        char procs[300];
        snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
        int fd = open(procs, O_WRONLY);
        if (fd < 0 || write(fd, "0", 1) != 1) fail(procs);
        _exit(number);
    }
    puts(name);
    reap(pid);
    while (rmdir(path) && errno == EBUSY) sleep_ms(10);
    return 0;
}

static const struct {
    const char *name;
    int (*act)(int);
} ACTS[] = {{"killed", killed}, {"raises", raises},   {"faults", faults},   {"rings", rings},
            {"blocks", blocks}, {"spins", spins},     {"stops", stops},     {"fails", fails},
            {"refused", refused}, {"session", session}, {"namespace", namespace}, {"moves", moves}};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof ACTS / sizeof *ACTS; i++)
        if (strcmp(ACTS[i].name, argv[1]) == 0) return ACTS[i].act(argc > 2 ? atoi(argv[2]) : 0);
    fputs("watched WHAT [NUMBER]\n", stderr);
    return 2;
}
