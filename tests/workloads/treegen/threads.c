/* Threads: batches that are alive at once, creation and exec from one that isn't the leader, a leader that leaves. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "treegen.h"

enum { MOST = 6 };
enum thread_job { JOB_NONE, JOB_CREATE, JOB_EXEC, JOB_RENAME };

struct batch {
    struct node *node;
    pthread_barrier_t all_here, may_leave;
    enum thread_job job;
};

struct member {
    struct batch *batch;
    int number;
};

static void *member_main(void *data) {
    struct member *self = data;
    struct batch *batch = self->batch;
    pthread_barrier_wait(&batch->all_here);
    if (self->number == 0) {
        if (batch->job == JOB_CREATE) create_something(batch->node);
        if (batch->job == JOB_EXEC) become_own(batch->node);
        if (batch->job == JOB_RENAME) prctl(PR_SET_NAME, "not-the-leader");
    }
    pthread_barrier_wait(&batch->may_leave);
    return NULL;
}

/* thread NODE BEFORE AFTER */
static pthread_t start_thread(struct node *node, void *(*run)(void *), void *data) {
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 512 * 1024);
    uint64_t before = now_ns();
    /* Counted first: a leader that leaves reads this from the thread that it starts. */
    node->threads_made++;
    if (++node->live > node->threads_max) node->threads_max = node->live;
    errno = pthread_create(&thread, &attr, run, data);
    if (errno) fail("pthread_create");
    log_line("thread %s %llu %llu\n", node->name, (unsigned long long)before, (unsigned long long)now_ns());
    return thread;
}

/* Some threads, all alive at once; one of them does a job; all are joined. */
void run_threads(struct node *node) {
    struct batch batch = {.node = node, .job = (enum thread_job)pick(node, 4)};
    struct member members[MOST];
    pthread_t threads[MOST];
    unsigned n = 1 + pick(node, MOST);
    pthread_barrier_init(&batch.all_here, NULL, n + 1);
    pthread_barrier_init(&batch.may_leave, NULL, n);
    for (unsigned i = 0; i < n; i++) {
        members[i] = (struct member){&batch, (int)i};
        threads[i] = start_thread(node, member_main, &members[i]);
    }
    pthread_barrier_wait(&batch.all_here);
    for (unsigned i = 0; i < n; i++) pthread_join(threads[i], NULL);
    node->live -= (int)n;
    pthread_barrier_destroy(&batch.all_here);
    pthread_barrier_destroy(&batch.may_leave);
}

static void *sleep_main(void *barrier) {
    pthread_barrier_wait(barrier);
    for (;;) pause();
    return NULL;
}

/* Leaves threads asleep behind, for a process that ends (or executes a program) under them. */
void hold_threads(struct node *node) {
    static pthread_barrier_t barrier;
    unsigned n = 1 + pick(node, MOST);
    pthread_barrier_init(&barrier, NULL, n + 1);
    for (unsigned i = 0; i < n; i++) start_thread(node, sleep_main, &barrier);
    pthread_barrier_wait(&barrier);
}

/* Until the kernel shows the leader as a zombie: from then on it doesn't count as live. */
static void wait_until_leader_is_gone(void) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    for (;;) {
        int fd = open(path, O_RDONLY);
        ssize_t n = read(fd, text, sizeof text - 1);
        close(fd);
        if (n < 1) fail("leader");
        text[n] = 0;
        if (strstr(text, ") Z ")) return;
        usleep(100);
    }
}

static void *heir_main(void *data) {
    struct node *node = data;
    wait_until_leader_is_gone();
    node->live--;
    run_node(node);
}

/* The first thread ends, another one goes on with the node. */
void leader_leaves(struct node *node) {
    if (syscall(SYS_gettid) != getpid()) return;
    static struct node heir;
    heir = *node;
    start_thread(&heir, heir_main, &heir);
    syscall(SYS_exit, 0);
}
