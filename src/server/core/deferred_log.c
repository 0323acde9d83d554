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
    uint64_t left_out; /* lines for which there was no room */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

void deferred_log(struct worker *worker, enum log_level level, const char *format, ...)
{
    struct state *mine = &states[worker->index];
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
    worker->has_deferred = true;
    if (mine->lines.size >= DEFERRED_LOG_BYTES) {
        mine->left_out++;
        return;
    }
    buffer_append(&mine->lines, &head, sizeof(head));
    buffer_append(&mine->lines, text, (size_t)head.size);
}

static bool flush(struct worker *worker)
{
    struct state *mine = &states[worker->index];
    struct buffer *lines = &mine->lines;

    for (size_t at = 0; at < lines->size;) {
        struct head head;

        memcpy(&head, lines->data + at, sizeof(head));
        at += sizeof(head);
        log_write(head.level, "%.*s", head.size, lines->data + at);
        at += (size_t)head.size;
    }
    buffer_fini(lines);
    if (mine->left_out != 0)
        log_warning("%llu more lines of one command were left out", (unsigned long long)mine->left_out);
    mine->left_out = 0;
    return false;
}

static void fini(struct worker *worker)
{
    buffer_fini(&states[worker->index].lines);
}

const struct lifecycle deferred_log_lifecycle = {.worker_fini = fini, .worker_deferred = flush};
