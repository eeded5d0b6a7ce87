/* A node's state: made for a child, carried across exec in the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "treegen.h"

static const char KEY[] = "TREEGEN_STATE=";
static const char FOLDER_KEY[] = "TREEGEN_FOLDER=";

char **env_with_state(const struct node *node) {
    char *text = malloc(sizeof KEY + NAME_LEN + 300 + MAX_KIDS * 12), *at = text;
    at += sprintf(at, "%s%s %llu %d %d %d %d %d %d %d %d %d %d", KEY, node->name, (unsigned long long)node->rng,
                  node->budget, node->depth, node->steps, node->children, node->threads_made, node->threads_max,
                  node->ready_fd, node->orphan_of, (int)node->end, node->kid_count);
    for (int i = 0; i < node->kid_count; i++) at += sprintf(at, " %d", (int)node->kids[i]);
    char *folder = malloc(sizeof FOLDER_KEY + strlen(work_folder));
    sprintf(folder, "%s%s", FOLDER_KEY, work_folder);
    char **env = calloc(4, sizeof *env);
    env[0] = text;
    env[1] = folder;
    env[2] = "PATH=/usr/bin:/bin";
    return env;
}

/* Whether this image goes on with a node. A new image has one thread. */
int state_from_env(struct node *node) {
    const char *text = getenv("TREEGEN_STATE");
    if (!text) return 0;
    unsigned long long rng;
    int end, used = 0;
    memset(node, 0, sizeof *node);
    if (sscanf(text, "%199s %llu %d %d %d %d %d %d %d %d %d %d%n", node->name, &rng, &node->budget, &node->depth,
               &node->steps, &node->children, &node->threads_made, &node->threads_max, &node->ready_fd,
               &node->orphan_of, &end, &node->kid_count, &used) != 12)
        fail("state");
    node->rng = rng;
    node->end = (enum end_kind)end;
    node->live = 1;
    text += used;
    for (int i = 0; i < node->kid_count; i++) node->kids[i] = (pid_t)strtol(text, (char **)&text, 10);
    work_folder = getenv("TREEGEN_FOLDER");
    return 1;
}

/* The state that a new child starts with; takes 1 + budget from the parent. */
struct node child_of(struct node *parent, int budget) {
    struct node child = {.rng = next_random(parent), .budget = budget, .depth = parent->depth + 1, .threads_max = 1,
                         .live = 1, .ready_fd = -1};
    snprintf(child.name, sizeof child.name, "%.*s.%d", NAME_LEN - 12, parent->name, parent->children++);
    child.steps = (int)pick(&child, 6) + (budget < 40 ? budget / 4 : 10);
    parent->budget -= 1 + budget;
    return child;
}
