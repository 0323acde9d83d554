#include "server/core/deferred_log.h"

#include "base/buffer.h"
#include "server/core/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = LOG_MESSAGE_LIMIT_BYTES };

/* In front of each line's bytes. */
struct head {
    enum log_level level;
    int size;
};

/* A worker's; its own thread's. */
static struct state {
    struct buffer lines;
} CACHE_ALIGNED states[WORKERS_MOST + 1];

void deferred_log(struct worker *worker, enum log_level level, const char *format, ...)
{
    struct buffer *lines = &states[worker->index].lines;
    char text[LINE_BYTES];
    struct head head = {.level = level};
    va_list args;

    if (!log_wants(level))
        return;
    va_start(args, format);
    head.size = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    head.size = MIN(MAX(head.size, 0), (int)sizeof(text) - 1);
    if (worker != worker_self()) {
        log_write(level, "%.*s", head.size, text);
        return;
    }
    buffer_append(lines, &head, sizeof(head));
    buffer_append(lines, text, (size_t)head.size);
    worker->has_deferred = true;
}

static bool flush(struct worker *worker)
{
    struct buffer *lines = &states[worker->index].lines;

    for (size_t at = 0; at < lines->size;) {
        struct head head;

        memcpy(&head, lines->data + at, sizeof(head));
        at += sizeof(head);
        log_write(head.level, "%.*s", head.size, lines->data + at);
        at += (size_t)head.size;
    }
    buffer_fini(lines);
    return false;
}

static void fini(struct worker *worker)
{
    buffer_fini(&states[worker->index].lines);
}

const struct lifecycle deferred_log_lifecycle = {.worker_fini = fini, .worker_deferred = flush};
