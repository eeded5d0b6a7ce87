/* oom WHAT MIB: children in a memory control group with a limit of MIB, which it makes and removes. Prints the group's
   name and, of each child that it waits for, pid and status. Exit 77: there is no such group to be had. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    _exit(99);
}

/* Whether the file could be written. */
static int put(const char *folder, const char *file, const char *text) {
    char path[4352];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    int fd = open(path, O_WRONLY);
    if (fd < 0) return 0;
    int done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return done;
}

/* Makes a group below the top one of version 1 or 2; without a limit if mib is 0. */
static char *make_group(char *path, size_t size, const char *above, long mib) {
    static int number;
    char text[32];
    if (above) {
        snprintf(path, size, "%s/inner", above);
    } else {
        int has_v1 = access("/sys/fs/cgroup/memory/cgroup.procs", F_OK) == 0;
        const char *top = has_v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
        if (!has_v1) put(top, "cgroup.subtree_control", "+memory");
        snprintf(path, size, "%s/rtrace-test-%d-%d", top, (int)getpid(), number++);
    }
    if (mkdir(path, 0755)) exit(77);
    if (mib == 0) return path;
    snprintf(text, sizeof text, "%ld", mib << 20);
    if (!put(path, "memory.limit_in_bytes", text) && !put(path, "memory.max", text)) {
        rmdir(path);
        exit(77);
    }
    /* What is swapped out would be no reason to kill. */
    put(path, "memory.memsw.limit_in_bytes", text);
    put(path, "memory.swap.max", "0");
    return path;
}

static void remove_group(const char *path) {
    for (int i = 0; i < 500 && rmdir(path); i++) usleep(10000);
}

static void join(const char *group) {
    char text[32];
    snprintf(text, sizeof text, "%d", (int)getpid());
    if (!put(group, "cgroup.procs", text)) fail("cgroup.procs");
}

static void fill(long mib, int flags) {
    size_t size = (size_t)mib << 20;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    if (at == MAP_FAILED) fail("mmap");
    for (size_t i = 0; i < size; i += 4096) at[i] = 1;
}

static void reap(pid_t pid) {
    int status;
    if (waitpid(pid, &status, 0) != pid) fail("waitpid");
    printf("%d %d\n", (int)pid, status);
}

/* A child that joins a group and fills so much memory; it ends with 3 if nothing kills it. */
static pid_t filler(const char *group, long mib, int flags) {
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) {
        join(group);
        fill(mib, flags);
        _exit(3);
    }
    return pid;
}

/* One child fills most of the group and waits; the next one goes over the limit, and the first one is killed for it. */
static void other(const char *group, long mib) {
    int ends[2];
    char byte;
    if (pipe(ends)) fail("pipe");
    pid_t large = fork();
    if (large == 0) {
        join(group);
        fill(mib * 6 / 10, MAP_PRIVATE);
        if (write(ends[1], "x", 1) != 1) fail("write");
        for (;;) pause();
    }
    if (read(ends[0], &byte, 1) != 1) fail("read");
    reap(filler(group, mib * 6 / 10, MAP_PRIVATE));
    reap(large);
}

/* A child in the group that stays below the limit, and that somebody else kills. */
static void spared(const char *group, long mib) {
    int ends[2];
    char byte;
    if (pipe(ends)) fail("pipe");
    pid_t pid = fork();
    if (pid == 0) {
        join(group);
        fill(mib / 4, MAP_PRIVATE);
        if (write(ends[1], "x", 1) != 1) fail("write");
        for (;;) pause();
    }
    if (read(ends[0], &byte, 1) != 1) fail("read");
    kill(pid, SIGKILL);
    reap(pid);
}

static char stack[64 * 1024] __attribute__((aligned(16)));

static int fill_all(void *mib) {
    fill(*(long *)mib, MAP_PRIVATE);
    return 3;
}

/* A child in the group and another process with the same memory: the kernel kills both and chooses one. */
static void sharing(const char *group, long mib) {
    pid_t pid = fork();
    if (pid == 0) {
        long wanted = 3 * mib;
        join(group);
        if (clone(fill_all, stack + sizeof stack, CLONE_VM | SIGCHLD, &wanted) < 0) fail("clone");
        for (;;) pause();
    }
    reap(pid);
}

/* Without a group: a child that offers itself, and fills all of the host's memory. */
static void host(void) {
    pid_t pid = fork();
    if (pid == 0) {
        if (!put("/proc/self", "oom_score_adj", "1000")) fail("oom_score_adj");
        for (;;) fill(16, MAP_PRIVATE);
    }
    reap(pid);
}

int main(int argc, char **argv) {
    char group[4096], inner[4160];
    if (argc != 3) return 2;
    /* Who started it may be out of the killer's reach, which children inherit. */
    if (!put("/proc/self", "oom_score_adj", "0")) fail("oom_score_adj");
    long mib = atol(argv[2]);
    if (strcmp(argv[1], "host") == 0) {
        /* Never where anybody else needs the memory. */
        if (!getenv("RTRACE_EMULATED")) return 77;
        host();
        return 0;
    }
    make_group(group, sizeof group, NULL, mib);
    printf("%s\n", strrchr(group, '/') + 1);
    if (strcmp(argv[1], "private") == 0) {
        reap(filler(group, 3 * mib, MAP_PRIVATE));
    } else if (strcmp(argv[1], "shared") == 0) {
        reap(filler(group, 3 * mib, MAP_SHARED));
    } else if (strcmp(argv[1], "nested") == 0) {
        /* Version 2, and version 1 before 5.11: a limit holds for the groups below only if that is asked for. */
        put(group, "cgroup.subtree_control", "+memory");
        put(group, "memory.use_hierarchy", "1");
        make_group(inner, sizeof inner, group, 0);
        reap(filler(inner, 3 * mib, MAP_PRIVATE));
        remove_group(inner);
    } else if (strcmp(argv[1], "other") == 0) {
        other(group, mib);
    } else if (strcmp(argv[1], "sharing") == 0) {
        sharing(group, mib);
    } else if (strcmp(argv[1], "spared") == 0) {
        spared(group, mib);
    }
    remove_group(group);
    return 0;
}
