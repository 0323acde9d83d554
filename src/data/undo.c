#include "data/undo.h"

#include "base/assert.h"
#include "base/copy.h"


_Thread_local struct value_log *value_logs; /* global: a value does not know who watches it */

struct trailer {
    uint64_t a, b, first_size, second_size;
    uint32_t kind;
};

void value_log_ignore_slow(struct value_log *log)
{
    for (struct value_log **at = &value_logs; *at != NULL; at = &(*at)->next) {
        if (*at == log) {
            *at = log->next;
            return;
        }
    }
}

void value_log_watch(struct value_log *log, const void *data)
{
    struct value_log *last;
    unsigned count = 1;

    assert(data != NULL);
    value_log_ignore(log);
    log->data = data;
    log->next = value_logs;
    value_logs = log;
    for (last = log; last->next != NULL; last = last->next) {
        if (++count > VALUE_LOGS_MOST) {
            last->next->data = NULL;
            last->next = NULL;
            break;
        }
    }
}

void value_log_moved_slow(struct value_log *log, const void *data)
{
    const void *before = log->data;

    for (; log != NULL; log = log->next) {
        if (log->data == before)
            log->data = data;
    }
}

static bool wants(const struct value_log *log, uint32_t kind)
{
    return kind >= VALUE_STEP_ADDITION || (log->ignored >> kind & 1) == 0;
}

static void add(struct value_log *log, const struct value_step *step)
{
    const struct trailer trailer = {step->a, step->b, step->first.size, step->second.size, step->kind};

    char *at = buffer_reserve(&log->steps, step->first.size + step->second.size + sizeof(trailer));

    copy_word(at, step->first.data, step->first.size);
    at += step->first.size;
    copy_word(at, step->second.data, step->second.size);
    at += step->second.size;
    memcpy(at, &trailer, sizeof(trailer));
    log->steps.size += step->first.size + step->second.size + sizeof(trailer);
}

static bool extend(struct value_log *log, const struct value_step *step)
{
    struct trailer trailer;

    if (log->steps.size < sizeof(trailer))
        return false;
    memcpy(&trailer, log->steps.data + log->steps.size - sizeof(trailer), sizeof(trailer));
    if (trailer.kind != step->kind || trailer.b != step->b)
        return false;
    trailer.a += step->a;
    memcpy(log->steps.data + log->steps.size - sizeof(trailer), &trailer, sizeof(trailer));
    return true;
}

/* The next one that watches the same value, from `log` on. */
static struct value_log *watcher(struct value_log *log, const void *data)
{
    while (log != NULL && log->data != data)
        log = log->next;
    return log;
}

void value_log_note(struct value_log *log, const struct value_step *step)
{
    const void *data = log->data;

    if (data == NULL || step->kind >= VALUE_STEP_OWNERS) { /* its owner's own */
        add(log, step);
        return;
    }
    for (; log != NULL; log = watcher(log->next, data)) {
        if (wants(log, step->kind))
            add(log, step);
    }
}

void value_log_extend(struct value_log *log, const struct value_step *step)
{
    for (const void *data = log->data; log != NULL; log = watcher(log->next, data)) {
        if (wants(log, step->kind) && !extend(log, step))
            add(log, step);
    }
}

bool value_log_wants(const struct value_log *log, uint32_t kind)
{
    const void *data = log->data;

    while (log != NULL && (log->data != data || !wants(log, kind)))
        log = log->next;
    return log != NULL;
}

bool value_steps_take(struct slice *steps, struct value_step *step)
{
    struct trailer trailer;
    const char *texts;
    size_t text_bytes;

    if (steps->size == 0)
        return false;
    assert(steps->size >= sizeof(trailer));
    memcpy(&trailer, steps->data + steps->size - sizeof(trailer), sizeof(trailer));
    text_bytes = trailer.first_size + trailer.second_size;
    assert(steps->size - sizeof(trailer) >= text_bytes);
    steps->size -= sizeof(trailer) + text_bytes;
    texts = steps->data + steps->size;
    *step = (struct value_step){trailer.a, trailer.b, slice_make(texts, trailer.first_size),
                                slice_make(texts + trailer.first_size, trailer.second_size), trailer.kind};
    return true;
}
