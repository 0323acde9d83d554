#include "base/panic.h"

#include "base/log.h"
#include "base/number.h"
#include "base/slice.h"

#include <execinfo.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_LIMIT 100

static panic_report_fn report_fn;       /* const: set before the first worker starts */
static _Atomic bool is_exiting;         /* atomic: relaxed; use-exit-on-panic */
static _Atomic bool has_begun;          /* atomic: the thread that sets it reports */
static _Thread_local bool is_reporting; /* owner: the thread; a panic inside a panic */

void panic_set_report(panic_report_fn report)
{
    report_fn = report;
}

void panic_set_exit(bool exits)
{
    atomic_store_explicit(&is_exiting, exits, memory_order_relaxed);
}

void panic_setup(void)
{
    void *frame;

    (void)backtrace(&frame, 1);
}

static void write_error(const char *text)
{
    size_t size = strlen(text);

    while (size > 0) {
        ssize_t got = write(STDERR_FILENO, text, size);

        if (got <= 0)
            return;
        text += got;
        size -= (size_t)got;
    }
}

void panic_backtrace(void)
{
    void *frames[FRAME_LIMIT];
    int count = backtrace(frames, FRAME_LIMIT);
    int fd = log_signal_fd();

    backtrace_symbols_fd(frames, count, STDERR_FILENO);
    if (fd >= 0 && fd != STDERR_FILENO)
        backtrace_symbols_fd(frames, count, fd);
    log_signal_fd_done(fd);
}

NORETURN static void finish(const char *message)
{
    if (is_reporting)
        abort(); /* reporting failed itself */
    is_reporting = true;
    if (atomic_exchange(&has_begun, true)) {
        /* Another thread is at it: let it finish, it ends the process. */
        for (;;)
            pause();
    }
    write_error(message);
    write_error("\n");
    log_from_signal(message);
    if (report_fn != NULL)
        report_fn(message);
    else
        panic_backtrace();
    if (atomic_load_explicit(&is_exiting, memory_order_relaxed))
        _exit(1);
    abort();
}

void panic(const char *format, ...)
{
    char message[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    finish(message);
}

/* Only functions that are allowed in signal handlers, so not snprintf. */
static size_t add_text(char *message, size_t size, size_t space, const char *text)
{
    size_t more = MIN(strlen(text), space - size - 1);

    memcpy(message + size, text, more);
    message[size + more] = '\0';
    return size + more;
}

void panic_assertion(const char *condition, const char *file, int line, const char *function)
{
    char message[1024];
    char line_text[NUMBER_I64_SPACE];
    const char *parts[] = {"assertion failed: ", condition, " at ", file, ":", line_text, " in ", function};
    size_t size = 0;

    number_format_i64(line_text, line);
    for (size_t i = 0; i < countof(parts); i++)
        size = add_text(message, size, sizeof(message), parts[i]);
    finish(message);
}

/* glibc's assert calls this function: failed assertions of libraries get the same report. */
void __assert_fail(const char *assertion, const char *file, unsigned int line, const char *function)
{
    panic_assertion(assertion, file, (int)line, function);
}
