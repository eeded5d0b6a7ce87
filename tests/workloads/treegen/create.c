/* Making processes in every way, and waiting for them. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "treegen.h"

enum { STACK = 512 * 1024 };

/* wait PARENT PID BEFORE AFTER */
void wait_for(struct node *node, pid_t pid) {
    uint64_t before = now_ns();
    int status;
    if (waitpid(pid, &status, 0) != pid) fail("waitpid");
    log_line("wait %s %d %llu %llu\n", node->name, (int)pid, (unsigned long long)before,
             (unsigned long long)now_ns());
}

void wait_for_kids(struct node *node) {
    while (node->kid_count) wait_for(node, node->kids[--node->kid_count]);
}

/* At once, or later: then it is a zombie in between. */
static void wait_some_time(struct node *node, pid_t pid) {
    if (node->kid_count == MAX_KIDS || pick(node, 2)) wait_for(node, pid);
    else node->kids[node->kid_count++] = pid;
}

/* fork: waited for, or left behind as an orphan, or killed when it says that it is ready. The root leaves no
 * orphans: it ends last, and an orphan waits for its creator's end. */
static void create_fork(struct node *node) {
    struct node child = child_of(node, (int)pick(node, (unsigned)node->budget / 2 + 1));
    int pipe_fd[2] = {-1, -1}, kind = (int)pick(node, 8);
    static const int SIGNALS[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGSEGV, SIGALRM};
    int signal = SIGNALS[pick(node, 7)], orphan = kind == 0 && !is_root(node), killed = kind == 1;
    if (killed && pipe(pipe_fd) < 0) fail("pipe");
    pid_t creator = getpid();
    uint64_t before = now_ns();
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) {
        if (orphan) child.orphan_of = (int)creator;
        if (killed) {
            close(pipe_fd[0]);
            child.ready_fd = pipe_fd[1];
            child.end = END_KILLED_BY_PARENT;
        }
        run_node(&child);
    }
    log_create(node, child.name, pid, "fork", orphan ? "orphan" : "waited", before, now_ns());
    if (orphan) return;
    if (killed) {
        char byte;
        close(pipe_fd[1]);
        if (read(pipe_fd[0], &byte, 1) != 1) fail("ready");
        close(pipe_fd[0]);
        log_line("kill %s %llu %d\n", child.name, (unsigned long long)now_ns(), signal);
        if (kill(pid, signal) < 0) fail("kill");
    }
    wait_some_time(node, pid);
}

/* What a child that shares our memory does: nothing but leave, or another program. */
struct shared_child {
    const char *name, *filename;
    char **argv, **env;
    int code;
};

static int shared_main(void *data) {
    const struct shared_child *child = data;
    if (child->filename) {
        log_exec(child->name, child->filename, child->argv);
        execve(child->filename, child->argv, child->env);
        fail("execve");
    }
    log_line("left %s %llu code %d\n", child->name, (unsigned long long)now_ns(), child->code);
    _exit(child->code);
}

/* Programs that aren't ours: their end is known beforehand. */
static char *const TRUE_ARGV[] = {"true", "", "an \xff argument", NULL};
static char *const SHELL_ARGV[] = {"sh", "-c", "exit 42", NULL};

struct program {
    const char *filename;
    char **argv, **env;
    int code; /* -1: treegen itself */
};

/* Fills in the program, and the state that it goes on with if it is treegen. */
static struct program random_program(struct node *node, struct node *child) {
    static char *no_env[] = {NULL};
    switch (pick(node, 3)) {
    case 0: return (struct program){"/bin/true", (char **)TRUE_ARGV, no_env, 0};
    case 1: return (struct program){"/bin/sh", (char **)SHELL_ARGV, no_env, 42};
    default: return (struct program){strdup(random_own_name(node)), random_argv(child), env_with_state(child), -1};
    }
}

static void log_foreign_end(const char *child, const struct program *program, uint64_t before) {
    if (program->code >= 0)
        log_line("left %s %llu code %d\n", child, (unsigned long long)before, program->code);
}

/* vfork or clone with shared memory; the child executes a program or just leaves. */
static void create_sharing(struct node *node, int flags, const char *how) {
    struct node child = child_of(node, (int)pick(node, (unsigned)node->budget / 2 + 1));
    struct program program = {.code = (int)pick(node, 256)};
    if (pick(node, 4)) program = random_program(node, &child);
    struct shared_child arg = {child.name, program.filename, program.argv, program.env, program.code};
    char *stack = malloc(STACK); /* never freed: a child without CLONE_VFORK may outlive this call */
    uint64_t before = now_ns();
    pid_t pid = clone(shared_main, stack + STACK, flags | CLONE_VM | SIGCHLD, &arg);
    if (pid < 0) fail("clone");
    log_create(node, child.name, pid, how, "waited", before, now_ns());
    if (program.filename) log_foreign_end(child.name, &program, before);
    /* `arg` lives on this stack, so a child that runs beside us must be gone before we leave. */
    if (flags & CLONE_VFORK) wait_some_time(node, pid);
    else wait_for(node, pid);
}

static void create_spawn(struct node *node) {
    struct node child = child_of(node, (int)pick(node, (unsigned)node->budget / 2 + 1));
    struct program program = random_program(node, &child);
    log_exec(child.name, program.filename, program.argv);
    uint64_t before = now_ns();
    pid_t pid;
    errno = posix_spawn(&pid, program.filename, NULL, NULL, program.argv, program.env);
    if (errno) fail("posix_spawn");
    log_create(node, child.name, pid, "posix_spawn", "waited", before, now_ns());
    log_foreign_end(child.name, &program, before);
    wait_some_time(node, pid);
}

void create_something(struct node *node) {
    if (node->budget < 1 || node->depth > 40) return;
    switch (pick(node, 8)) {
    case 0: create_spawn(node); break;
    case 1:
    case 2: create_sharing(node, CLONE_VFORK, "vfork"); break;
    case 3: create_sharing(node, 0, "clone_vm"); break;
    default: create_fork(node); break;
    }
}
