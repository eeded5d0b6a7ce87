/* Forks and waits for so many processes, one after the other; the n-th ends with n modulo 7. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long number = argc > 1 ? atol(argv[1]) : 0;
    for (long n = 0; n < number; n++) {
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child == 0) {
            _exit((int)(n % 7));
        }
        int status;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != n % 7) {
            return 2;
        }
    }
    return 0;
}
