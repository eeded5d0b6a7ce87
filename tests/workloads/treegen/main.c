/* treegen SEED LOG FOLDER: runs a random tree and writes its truth to LOG; FOLDER is for the names it executes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "treegen.h"

const char *work_folder;

/* Goes on as a new image of ourselves, with another name and arguments. */
void become_own(struct node *node) {
    const char *filename = random_own_name(node);
    char **argv = random_argv(node);
    log_exec(node->name, filename, argv);
    execve(filename, argv, env_with_state(node));
    fail("execve of ourselves");
}

static void fail_to_exec(void) {
    char *argv[] = {"nothing", NULL};
    execve("/nonexistent/program", argv, environ);
    execve("/tmp", argv, environ);
}

static void random_rename(struct node *node) {
    char name[20] = {0};
    unsigned n = 1 + pick(node, 18), raw = pick(node, 2);
    for (unsigned i = 0; i < n; i++) name[i] = (char)(raw ? 1 + pick(node, 255) : 'a' + pick(node, 26));
    /* procfs escapes these two, and the truth about the last name is read there. */
    for (unsigned i = 0; i < n; i++)
        if (name[i] == '\n' || name[i] == '\\') name[i] = '_';
    prctl(PR_SET_NAME, name);
}

static void one_step(struct node *node) {
    switch (pick(node, 16)) {
    case 0: become_own(node); break;
    case 1: run_threads(node); break;
    case 2: if (pick(node, 3) == 0) leader_leaves(node); break;
    case 3: random_rename(node); break;
    case 4: setsid(); break;
    case 5: usleep(pick(node, 2000)); break;
    case 6: fail_to_exec(); break;
    default: create_something(node); break;
    }
}

int is_root(const struct node *node) { return strcmp(node->name, "r") == 0; }

/* Until no other node lives, then reaps those that were given to us. */
static void wait_for_everybody(void) {
    char byte;
    close(ALIVE_FD);
    if (read(ALIVE_READ, &byte, 1) != 0) fail("alive pipe");
    log_line("quiet %llu\n", (unsigned long long)now_ns());
    int status;
    while (wait(&status) > 0) continue;
}

static void end_by_signal(struct node *node) {
    static const int SIGNALS[] = {SIGKILL, SIGTERM, SIGABRT, SIGSEGV, SIGUSR2, SIGPIPE};
    int signal = SIGNALS[pick(node, 6)];
    log_end(node, "signal", signal);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
    fail("a deadly signal");
}

void end_with(struct node *node, int code) {
    log_end(node, "code", code);
    _exit(code);
}

/* Does what is left of a node's life. */
void run_node(struct node *node) {
    while (node->orphan_of && getppid() == node->orphan_of) usleep(200);
    node->orphan_of = 0;
    while (node->steps > 0) {
        node->steps--;
        one_step(node);
    }
    wait_for_kids(node);
    if (is_root(node)) wait_for_everybody();
    if (node->end == END_KILLED_BY_PARENT) {
        log_end(node, "killed", 0);
        if (write(node->ready_fd, "", 1) != 1) fail("ready");
        for (;;) pause();
    }
    if (pick(node, 8) == 0) hold_threads(node);
    if (pick(node, 5) == 0) end_by_signal(node);
    end_with(node, (int)pick(node, 256));
}

static void to_fd(int from, int to) {
    if (from < 0 || dup2(from, to) < 0) fail("descriptor");
    close(from);
}

static void start_root(struct node *node, char **argv) {
    uint64_t seed = strtoull(argv[1], NULL, 10);
    int pipe_fd[2];
    to_fd(open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0644), LOG_FD);
    if (pipe(pipe_fd) < 0) fail("pipe");
    to_fd(pipe_fd[1], ALIVE_FD);
    to_fd(pipe_fd[0], ALIVE_READ);
    work_folder = argv[3];
    make_own_names(work_folder);
    *node = (struct node){.name = "r", .rng = seed * 0x9e3779b97f4a7c15u + 1, .threads_max = 1, .live = 1,
                          .ready_fd = -1};
    node->budget = 20 + (int)pick(node, 480);
    node->steps = 12 + (int)pick(node, 60);
    int subreaper = (int)pick(node, 2);
    prctl(PR_SET_CHILD_SUBREAPER, subreaper);
    log_line("root %d %llu %s\n", (int)getpid(), (unsigned long long)now_ns(), subreaper ? "subreaper" : "plain");
}

int main(int argc, char **argv) {
    struct node node;
    char name[64];
    if (state_from_env(&node)) {
        hex_name(name);
        log_line("image %s %llu %s\n", node.name, (unsigned long long)now_ns(), name);
        run_node(&node);
    }
    if (argc != 4) return 2;
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 1; i < 32; i++) signal(i, SIG_DFL);
    start_root(&node, argv);
    run_node(&node);
}
