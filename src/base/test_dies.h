/* For tests of assertions: runs a function in a forked child and tells whether it ended the process. */
#pragma once

#include "base/assert.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool dies(void (*run)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        close(STDERR_FILENO); /* discards the expected message */
        close(STDOUT_FILENO);
        run();
        _exit(0);
    }
    assert(pid > 0);
    assert(waitpid(pid, &status, 0) == pid);
    assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}
