/* A seeded random process tree that logs its own truth.
 *
 * Every process of the tree is a node with a name of its own ("r.0.3": the fourth child of the first child of the
 * root); what a node does follows from its random state alone. The state survives exec in the environment. */
#ifndef TREEGEN_H
#define TREEGEN_H

#include <stdint.h>
#include <sys/types.h>

/* Descriptors that every node inherits, across exec too. */
enum {
    LOG_FD = 200,    /* the log, opened with O_APPEND: one write is one line */
    ALIVE_FD = 201,  /* write end of a pipe: open as long as a node lives */
    ALIVE_READ = 202 /* read end: the root waits here until nobody is left */
};

enum { MAX_KIDS = 64, NAME_LEN = 200 };

/* How a node leaves: by its own choice, or waiting to be killed. */
enum end_kind { END_BY_ITSELF, END_KILLED_BY_PARENT };

struct node {
    char name[NAME_LEN];
    uint64_t rng;
    int budget;       /* descendants that it may still have */
    int depth;
    int steps;        /* actions still to do */
    int children;     /* made so far: number of the next one */
    int threads_made; /* besides the first */
    int threads_max;  /* most alive at once */
    int live;         /* alive now */
    int ready_fd;     /* tell the parent here that one is ready to be killed, or -1 */
    int orphan_of;    /* pid whose end to wait for before doing anything, or 0 */
    enum end_kind end;
    int kid_count;
    pid_t kids[MAX_KIDS]; /* children not yet waited for */
};

extern const char *work_folder; /* holds the names under which treegen executes itself */
extern char **environ;

/* log.c */
uint64_t now_ns(void);
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_exec(const char *node, const char *filename, char *const argv[]);
void log_create(const struct node *parent, const char *child, pid_t pid, const char *how, const char *mode,
                uint64_t before, uint64_t after);
void log_end(const struct node *node, const char *how, int value);
void hex_name(char out[64]);
void fail(const char *what);

/* random.c */
uint64_t next_random(struct node *node);
unsigned pick(struct node *node, unsigned n);
char **random_argv(struct node *node);
const char *random_own_name(struct node *node);
void make_own_names(const char *folder);

/* state.c */
char **env_with_state(const struct node *node);
int state_from_env(struct node *node);
struct node child_of(struct node *parent, int budget);

/* create.c */
void create_something(struct node *node);
void wait_for(struct node *node, pid_t pid);
void wait_for_kids(struct node *node);

/* threads.c */
void run_threads(struct node *node);
void hold_threads(struct node *node);
void leader_leaves(struct node *node);

/* main.c */
int is_root(const struct node *node);
void run_node(struct node *node) __attribute__((noreturn));
void become_own(struct node *node);
void end_with(struct node *node, int code) __attribute__((noreturn));

#endif
