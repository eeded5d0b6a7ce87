/* title HOW: writes over its arguments, as setproctitle of Python, nginx and others do, and compares with what the kernel
   tells of it. Prints what /proc/self/cmdline has at the end, its NULs as newlines.

   short    a title that is shorter than the arguments; ends by exit
   long     one that goes on over the environment
   renames  as short, with prctl(PR_SET_NAME) after it; then the arguments are put back, and it is killed
   grows    one while its memory grows, another one afterwards; is killed, so that only what was seen at the peak tells
   child    a child writes one, its creator doesn't
   nothing  writes none */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    _exit(99);
}

static void say(void) {
    char line[4096];
    int file = open("/proc/self/cmdline", O_RDONLY);
    ssize_t size = file < 0 ? -1 : read(file, line, sizeof line);
    if (size <= 0) fail("cmdline");
    while (size > 0 && line[size - 1] == 0) size--;
    for (ssize_t i = 0; i < size; i++) putchar(line[i] ? line[i] : '\n');
    putchar('\n');
    fflush(stdout);
    close(file);
}

static char *first, *behind;

static void set(const char *title) {
    size_t room = (size_t)(behind - first);
    memset(first, 0, room);
    strncpy(first, title, room - 1);
    /* A title that is longer than the arguments tells so by not ending there. */
}

static void grow(size_t mib) {
    char *pages = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) fail("mmap");
    for (size_t at = 0; at < mib << 20; at += 4096) pages[at] = 1;
}

static void pause_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

int main(int argc, char **argv, char **env) {
    if (argc < 2) return 98;
    char how[16];
    snprintf(how, sizeof how, "%s", argv[1]);
    first = argv[0];
    behind = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
    char old[4096];
    size_t size = (size_t)(behind - first);
    if (size > sizeof old) return 97;
    memcpy(old, first, size);
    if (!strcmp(how, "short")) {
        set("app: one");
        say();
    } else if (!strcmp(how, "long")) {
        for (char **one = env; *one; one++) behind = *one + strlen(*one) + 1;
        char title[400];
        memset(title, 'x', sizeof title);
        memcpy(title, "app: long --password s3cret ", 28);
        title[399] = 0;
        set(title);
        say();
    } else if (!strcmp(how, "renames")) {
        set("app: two");
        say();
        if (prctl(PR_SET_NAME, "two")) fail("prctl");
        memcpy(first, old, size);
        raise(SIGKILL);
    } else if (!strcmp(how, "grows")) {
        set("app: large");
        say();
        pause_ms(20);
        grow(16);
        set("app: small");
        raise(SIGKILL);
    } else if (!strcmp(how, "child")) {
        pid_t pid = fork();
        if (pid < 0) fail("fork");
        if (pid == 0) {
            set("app: child");
            say();
            exit(0);
        }
        if (waitpid(pid, NULL, 0) != pid) fail("waitpid");
    } else {
        say();
    }
    return 0;
}
