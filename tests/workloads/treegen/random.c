/* Random choices: numbers, names, arguments. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "treegen.h"

/* splitmix64 */
uint64_t next_random(struct node *node) {
    uint64_t z = node->rng += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

unsigned pick(struct node *node, unsigned n) { return (unsigned)(next_random(node) % n); }

/* Short, longer than a thread name holds, with a space, not UTF-8, cut inside a character by 15 bytes. */
static const char *const OWN_NAMES[] = {"worker", "a-name-longer-than-fifteen-bytes", "two words", "\xff\xfe-raw",
                                        "fourteen-byte-\xe2\x82\xac"};
enum { OWN_NAME_COUNT = sizeof OWN_NAMES / sizeof *OWN_NAMES };

void make_own_names(const char *folder) {
    char path[512];
    for (int i = 0; i < OWN_NAME_COUNT; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, OWN_NAMES[i]);
        char self[512];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        if (n < 0) fail("readlink");
        self[n] = 0;
        if (symlink(self, path) < 0 && errno != EEXIST) fail("symlink");
    }
}

const char *random_own_name(struct node *node) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", work_folder, OWN_NAMES[pick(node, OWN_NAME_COUNT)]);
    return path;
}

/* Usually short; now and then longer than a page, rarely longer than a record of the ring buffer. */
static unsigned random_length(struct node *node) {
    switch (pick(node, 16)) {
    case 0:
    case 1: return 0;
    case 2: return 300 + pick(node, 6000);
    case 3: return pick(node, 8) ? 1 : 20000 + pick(node, 80000);
    default: return 1 + pick(node, 40);
    }
}

static char *random_arg(struct node *node) {
    unsigned n = random_length(node), raw = pick(node, 3) == 0;
    char *text = malloc(n + 1);
    for (unsigned i = 0; i < n; i++)
        text[i] = (char)(raw ? 1 + pick(node, 255) : (unsigned)"abc -=/\"'\\\n"[pick(node, 11)]);
    text[n] = 0;
    return text;
}

char **random_argv(struct node *node) {
    unsigned n = 1 + pick(node, 6);
    char **argv = calloc(n + 1, sizeof *argv);
    for (unsigned i = 0; i < n; i++) argv[i] = random_arg(node);
    return argv;
}
