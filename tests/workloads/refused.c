/* refused WHAT LIMIT WANTED [FOLDER]: a process that wants so many children, which wait, and has less room for them.
 * After three calls that fail it gives up. Prints its pid, how many it has made, how many calls failed, and with what. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096, TRIES = 3 };

static void fail(const char *what) {
    perror(what);
    exit(99);
}

static void put(const char *folder, const char *name, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) < 0) fail(path);
    close(file);
}

static pid_t call_fork(int unused) {
    (void)unused;
    return fork();
}

/* A child in the control group of this folder. */
static pid_t call_into(int folder) {
    struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = folder};
    return syscall(SYS_clone3, &args, sizeof args);
}

static void make(int wanted, pid_t (*call)(int), int folder, int out) {
    static pid_t made[MOST];
    int count = 0, failed = 0, error = 0;
    while (count < wanted && count < MOST && failed < TRIES) {
        pid_t pid = call(folder);
        if (pid == 0) {
            /* Of a namespace's first process the children end with it. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) pause();
        }
        if (pid > 0) {
            made[count++] = pid;
        } else {
            error = errno;
            failed++;
        }
    }
    for (int i = 0; i < count; i++) kill(made[i], SIGKILL);
    for (int i = 0; i < count; i++) waitpid(made[i], NULL, 0);
    dprintf(out, "%d\n%d\n%d\n", count, failed, error);
}

static void limit_user(int limit, uid_t uid) {
    struct rlimit processes = {limit, limit};
    if (setrlimit(RLIMIT_NPROC, &processes)) fail("setrlimit");
    if (uid && (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))) fail("setresuid");
}

/* What happens to the process that is refused, before it makes children; whether it makes them itself. */
static void prepare(const char *what, int limit, const char *folder) {
    if (strcmp(what, "user") == 0) limit_user(limit, 61000 + getpid() % 4000);
    if (strcmp(what, "root") == 0 || (strcmp(what, "group") == 0 && limit)) limit_user(limit, 0);
    if (strcmp(what, "group") == 0 || strcmp(what, "into") == 0) put(folder, "cgroup.procs", "0");
    if (strcmp(what, "ended") == 0 || strcmp(what, "living") == 0) {
        if (unshare(CLONE_NEWPID)) fail("unshare");
        pid_t first = fork();
        if (first == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (what[0] == 'l') pause();
            _exit(0);
        }
        if (first < 0) fail("fork");
        /* It is gone once it has been waited for. */
        if (what[0] == 'e' && waitpid(first, NULL, 0) != first) fail("waitpid");
    }
    if (strcmp(what, "numbers") == 0) {
        char text[16];
        snprintf(text, sizeof text, "%d", limit);
        put("/proc/sys/kernel", "pid_max", text);
    }
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    const char *what = argv[1], *folder = argc > 4 ? argv[4] : "";
    int flags = strcmp(what, "numbers") == 0 ? CLONE_NEWPID : 0;
    int into = strcmp(what, "into") == 0 ? open(argv[5], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (flags && unshare(flags)) fail("unshare");
    pid_t pid = fork();
    if (pid == 0) {
        prepare(what, atoi(argv[2]), folder);
        make(atoi(argv[3]), into < 0 ? call_fork : call_into, into, 1);
        _exit(0);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) fail("fork");
    printf("%d\n", (int)pid);
    return status == 0 ? 0 : 1;
}
