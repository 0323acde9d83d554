#include "persist/rdb_cron.h"

#include "base/mem.h"
#include "base/number.h"
#include "persist/rdb_format.h"
#include "store/jobs.h"

static void write_words(struct rdb_writer *writer, const struct slice *words, uint32_t count)
{
    rdb_write_length(writer, count);
    for (uint32_t i = 0; i < count; i++)
        rdb_write_text(writer, words[i]);
}

void rdb_write_cron(struct rdb_writer *writer, const struct cron *cron)
{
    rdb_write_text(writer, cron->words[0]);
    rdb_write_u64(writer, (uint64_t)cron->start_ms);
    rdb_write_u64(writer, (uint64_t)cron->interval_ms);
    write_words(writer, cron->words + 1, cron->key_count);
    write_words(writer, cron->words + 1 + cron->key_count, cron->word_count - 1 - cron->key_count);
}

void rdb_write_cron_records(struct rdb_writer *writer, struct slice key, const struct cron *cron)
{
    char next[NUMBER_I64_SPACE];

    rdb_write_aux(writer, RDB_AUX_MEMBER, key);
    rdb_write_aux(writer, RDB_AUX_MEMBER_MS, slice_make(next, number_format_i64(next, MAX(cron_next_ms(cron), 0))));
    if (!cron->repeats)
        rdb_write_aux(writer, RDB_AUX_CRON_SINGLE, SLICE("1"));
}

/* Texts are good until the next read: what comes is gathered, and found in there when all of it is. */
struct gathered {
    struct buffer bytes;
    struct buffer sizes; /* of size_t */
    uint32_t count;
};

static bool gather(struct rdb_reader *reader, struct gathered *gathered)
{
    struct slice text;

    if (!rdb_read_text(reader, &text))
        return false;
    if (gathered->count == UINT32_MAX)
        return rdb_corrupt(reader, "a job of too many words");
    buffer_append_slice(&gathered->bytes, text);
    buffer_append(&gathered->sizes, &text.size, sizeof(text.size));
    gathered->count++;
    return true;
}

static bool gather_list(struct rdb_reader *reader, struct gathered *gathered)
{
    uint64_t count;

    if (!rdb_read_count(reader, 1, &count))
        return false;
    for (; count != 0; count--) {
        if (!gather(reader, gathered))
            return false;
    }
    return true;
}

static struct value make(const struct cron_terms *terms, const struct gathered *gathered)
{
    struct slice *words = mem_alloc(gathered->count * sizeof(*words));
    const char *at = gathered->bytes.data;
    struct value value;

    for (uint32_t i = 0; i < gathered->count; i++) {
        memcpy(&words[i].size, gathered->sizes.data + i * sizeof(size_t), sizeof(size_t));
        words[i].data = at;
        at += words[i].size;
    }
    value = cron_create(terms, words, gathered->count);
    mem_free(words);
    return value;
}

bool rdb_read_cron(struct rdb_reader *reader, struct value *value)
{
    struct cron_terms terms = {.repeats = true};
    struct gathered gathered = {.count = 0};
    bool good = gather(reader, &gathered) && rdb_read_i64(reader, &terms.start_ms) &&
                rdb_read_i64(reader, &terms.interval_ms);

    good = good && (terms.interval_ms > 0 || rdb_corrupt(reader, "a job without an interval")) &&
           gather_list(reader, &gathered);
    terms.key_count = gathered.count - good;
    good = good && gather_list(reader, &gathered);
    if (good)
        *value = make(&terms, &gathered);
    buffer_fini(&gathered.bytes);
    buffer_fini(&gathered.sizes);
    return good;
}

void rdb_cron_set_next(struct cron *cron, int64_t next_ms)
{
    if (__builtin_sub_overflow(next_ms, cron->interval_ms, &cron->start_ms))
        cron->start_ms = INT64_MIN;
}
