#include "data/cron.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

static _Atomic uint64_t last_id; /* global, atomic: relaxed, only to be different */

static uint64_t new_id(void)
{
    return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
}

static struct cron *make(const struct cron_terms *terms, uint64_t id, const struct slice *words, uint32_t word_count)
{
    size_t bytes = 0;
    struct cron *cron;
    char *end;

    assert(word_count > terms->key_count);
    for (uint32_t i = 0; i < word_count; i++)
        bytes += words[i].size;
    cron = mem_alloc(sizeof(*cron) + word_count * sizeof(struct slice) + bytes);
    *cron = (struct cron){.start_ms = terms->start_ms,
                          .interval_ms = terms->interval_ms,
                          .id = id,
                          .repeats = terms->repeats,
                          .key_count = terms->key_count,
                          .word_count = word_count};
    end = (char *)&cron->words[word_count];
    for (uint32_t i = 0; i < word_count; i++) {
        if (words[i].size != 0)
            memcpy(end, words[i].data, words[i].size);
        cron->words[i] = slice_make(end, words[i].size);
        end += words[i].size;
    }
    return cron;
}

struct value cron_create(const struct cron_terms *terms, const struct slice *words, uint32_t word_count)
{
    return (struct value){make(terms, new_id(), words, word_count), ENCODING_RAW};
}

static struct cron *copy(const struct cron *cron, uint64_t id)
{
    const struct cron_terms terms = {cron->repeats, cron->start_ms, cron->interval_ms, cron->key_count};

    return make(&terms, id, cron->words, cron->word_count);
}

struct cron *cron_clone(const struct cron *cron)
{
    return copy(cron, cron->id);
}

void cron_free(struct cron **cron)
{
    mem_free(*cron);
    *cron = NULL;
}

int64_t cron_next_ms(const struct cron *cron)
{
    int64_t next_ms;

    return __builtin_add_overflow(cron->start_ms, cron->interval_ms, &next_ms) ? INT64_MAX : next_ms;
}

int64_t cron_start_after(const struct cron *cron, int64_t now_ms)
{
    const int64_t ran_ms = cron_next_ms(cron);
    uint64_t late_ms;

    if (ran_ms > now_ms)
        return ran_ms;
    if (cron->start_ms == 0)
        return now_ms;
    late_ms = (uint64_t)now_ms - (uint64_t)ran_ms;
    return (int64_t)((uint64_t)now_ms - late_ms % (uint64_t)cron->interval_ms);
}

/* ------------------------------------------------------------------------------------------------- as a value -- */

static void destroy(struct value value)
{
    mem_free(value.data);
}

static struct value copy_value(struct value value)
{
    return (struct value){copy(cron_of(value), new_id()), value.encoding};
}

static uint64_t memory_bytes(struct value value, uint64_t samples)
{
    (void)samples;
    return mem_usable(value.data);
}

static uint64_t free_effort(struct value value)
{
    (void)value;
    return 1;
}

const struct value_ops cron_ops = {.destroy = destroy,
                                   .copy = copy_value,
                                   .memory_bytes = memory_bytes,
                                   .free_effort = free_effort};
