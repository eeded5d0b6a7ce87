/* orphans CASE: a process whose parents end one after the other, and which says whose child it is.
 *
 * Lines: "root PID NS"; "parent PID NS" before a parent ends; "orphan PPID NS" each time that getppid() has changed;
 * "inner PID NS", a namespace's first process. What parents and orphans in a namespace say is as they see it.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int seen[2];
static int parents;

static unsigned long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_BOOTTIME, &at);
    return at.tv_sec * 1000000000ULL + at.tv_nsec;
}

static void say(const char *what, long number, unsigned long long ns) {
    char line[80];
    int length = snprintf(line, sizeof line, "%s %ld %llu\n", what, number, ns);
    if (write(1, line, length) != length) _exit(3);
}

/* Says each parent, until it has had so many. */
static void orphan(void) {
    pid_t before = -1;
    for (int had = 0; had < parents;) {
        pid_t parent = getppid();
        if (parent != before) {
            say("orphan", parent, now());
            if (write(seen[1], "x", 1) != 1) _exit(3);
            before = parent;
            had++;
        } else {
            usleep(500);
        }
    }
    _exit(7);
}

static void until_seen(void) {
    char byte;
    if (read(seen[0], &byte, 1) != 1) _exit(3);
}

/* Ends once the orphan has seen it. */
static void end(void) {
    until_seen();
    say("parent", getpid(), now());
    _exit(0);
}

static pid_t made(void (*what)(void)) {
    pid_t pid = fork();
    if (pid < 0) _exit(4);
    if (pid == 0) {
        what();
        _exit(0);
    }
    return pid;
}

static void middle(void) {
    made(orphan);
    end();
}

static void stopped(void) {
    made(orphan);
    raise(SIGSTOP);
    end();
}

static void subreaper(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    waitpid(made(middle), NULL, 0);
    end();
}

/* First of a pid namespace: it ends when all of it is over. */
static void inner(void) {
    made(middle);
    while (wait(NULL) > 0) {}
}

static void *thread(void *unused) {
    (void)unused;
    made(orphan);
    return NULL;
}

/* The thread that made the orphan ends long before its process. */
static void threads(void) {
    pthread_t other;
    if (pthread_create(&other, NULL, thread, NULL)) _exit(4);
    pthread_join(other, NULL);
    end();
}

static void sister(void) {
    if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) orphan();
    end();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (pipe(seen)) return 2;
    say("root", getpid(), now());
    pid_t child;
    parents = 2;
    if (!strcmp(what, "init")) {
        child = made(middle);
    } else if (!strcmp(what, "subreaper")) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        child = made(middle);
    } else if (!strcmp(what, "late")) {
        child = made(stopped);
        waitpid(child, NULL, WUNTRACED);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        kill(child, SIGCONT);
    } else if (!strcmp(what, "no_more")) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        child = made(middle);
    } else if (!strcmp(what, "chain")) {
        parents = 3;
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        child = made(subreaper);
    } else if (!strcmp(what, "namespace")) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (unshare(CLONE_NEWPID)) return 2;
        child = made(inner);
        say("inner", child, now());
    } else if (!strcmp(what, "threads")) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        child = made(threads);
    } else if (!strcmp(what, "sister")) {
        parents = 1;
        child = made(sister);
    } else {
        return 2;
    }
    waitpid(child, NULL, 0);
    /* Of one parent alone its creator has read. */
    if (parents > 1) until_seen();
    while (wait(NULL) > 0) {}
    return 0;
}
