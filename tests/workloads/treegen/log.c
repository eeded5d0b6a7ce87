/* The truth: one line per fact, one write per line. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "treegen.h"

uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void fail(const char *what) {
    char text[256];
    int n = snprintf(text, sizeof text, "broken %d %s: %s\n", (int)getpid(), what, strerror(errno));
    if (write(LOG_FD, text, (size_t)n) < 0 || write(2, text, (size_t)n) < 0) _exit(99);
    _exit(98);
}

static void put(const char *text, size_t n) {
    if (write(LOG_FD, text, n) != (ssize_t)n) _exit(97);
}

void log_line(const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof text) _exit(96);
    put(text, (size_t)n);
}

static size_t hex(char *out, const char *bytes, size_t n) {
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digit[(unsigned char)bytes[i] >> 4];
        *out++ = digit[bytes[i] & 15];
    }
    return 2 * n;
}

/* The calling thread's name as the kernel has it. */
void hex_name(char out[64]) {
    char name[17] = {0};
    prctl(PR_GET_NAME, name);
    out[0] = 'x';
    out[1 + hex(out + 1, name, strlen(name))] = 0;
}

/* exec NODE BEFORE xFILENAME xARG,xARG,... ; on the stack, since a vfork child shares the heap. */
void log_exec(const char *node, const char *filename, char *const argv[]) {
    size_t room = 400 + 2 * strlen(filename);
    for (int i = 0; argv[i]; i++) room += 2 * strlen(argv[i]) + 2;
    char *text = alloca(room), *at = text;
    at += sprintf(at, "exec %s %llu x", node, (unsigned long long)now_ns());
    at += hex(at, filename, strlen(filename));
    for (int i = 0; argv[i]; i++) {
        *at++ = i ? ',' : ' ';
        *at++ = 'x';
        at += hex(at, argv[i], strlen(argv[i]));
    }
    *at++ = '\n';
    put(text, (size_t)(at - text));
}

/* create PARENT CHILD PID HOW MODE BEFORE AFTER CREATOR_TID CREATOR_THREADS xNAME */
void log_create(const struct node *parent, const char *child, pid_t pid, const char *how, const char *mode,
                uint64_t before, uint64_t after) {
    char name[64];
    hex_name(name);
    log_line("create %s %s %d %s %s %llu %llu %d %d %s\n", parent->name, child, (int)pid, how, mode,
             (unsigned long long)before, (unsigned long long)after, (int)syscall(SYS_gettid), parent->live, name);
}

/* end NODE BEFORE HOW VALUE THREADS_MADE THREADS_MAX xLEADER_NAME */
void log_end(const struct node *node, const char *how, int value) {
    char raw[32], name[80] = "x";
    int fd = open("/proc/self/comm", O_RDONLY);
    ssize_t n = read(fd, raw, sizeof raw);
    close(fd);
    if (n < 1) fail("read /proc/self/comm");
    name[1 + hex(name + 1, raw, (size_t)n - 1)] = 0; /* without the line feed that procfs adds */
    log_line("end %s %llu %s %d %d %d %s\n", node->name, (unsigned long long)now_ns(), how, value,
             node->threads_made, node->threads_max, name);
}
