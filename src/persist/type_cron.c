/* Jobs in files: KeyDB's type 64, `script, start, interval, keys, arguments`. The records behind the value have the
 * rest: the time of the next run (as the deadline of a member with the name of the key) and, in a record that KeyDB
 * skips, that the job runs only once. Files of KeyDB do not have the latter; their jobs repeat. */
#include "base/array.h"
#include "persist/types.h"

#include "base/mem.h"
#include "base/number.h"
#include "data/cron.h"

#define AUX_SINGLE SLICE("keydb-cron-single")

/* ----------------------------------------------------------------------------------------------------- writing -- */

static void write_words(struct rdb_writer *writer, const struct slice *words, uint32_t count)
{
    rdb_write_length(writer, count);
    for (uint32_t i = 0; i < count; i++)
        rdb_write_text(writer, words[i]);
}

static void write_cron(struct rdb_writer *writer, const struct entry *entry)
{
    const struct cron *cron = cron_of(entry_value(entry));

    assert(cron->key_count < cron->word_count);
    rdb_write_text(writer, cron->words[0]);
    rdb_write_u64(writer, (uint64_t)cron->start_ms);
    rdb_write_u64(writer, (uint64_t)cron->interval_ms);
    write_words(writer, cron->words + 1, cron->key_count);
    write_words(writer, cron->words + 1 + cron->key_count, cron->word_count - 1 - cron->key_count);
}

static void write_records(struct rdb_writer *writer, const struct entry *entry)
{
    const struct cron *cron = cron_of(entry_value(entry));
    char next[NUMBER_I64_SPACE];

    rdb_write_aux(writer, RDB_AUX_MEMBER, entry_key(entry));
    rdb_write_aux(writer, RDB_AUX_MEMBER_MS, slice_make(next, number_format_i64(next, MAX(cron_next_ms(cron), 0))));
    if (!cron->repeats)
        rdb_write_aux(writer, AUX_SINGLE, SLICE("1"));
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

/* Texts are valid until the next read: the words are gathered, and located when all of them are there. */
struct gathered {
    struct buffer bytes;
    struct {
        size_t *items;
        size_t count, capacity;
    } sizes; /* of the words in them */
};

static bool gather(struct rdb_reader *reader, struct gathered *gathered)
{
    struct slice text;

    if (!rdb_read_text(reader, &text))
        return false;
    if (gathered->sizes.count == UINT32_MAX)
        return rdb_corrupt(reader, "a job has too many arguments");
    buffer_append_slice(&gathered->bytes, text);
    *ARRAY_PUSH(&gathered->sizes) = text.size;
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
    uint32_t count = (uint32_t)gathered->sizes.count;
    struct slice *words = mem_alloc(count * sizeof(*words));
    const char *at = gathered->bytes.data;
    struct value value;

    for (uint32_t i = 0; i < count; i++) {
        words[i] = slice_make(at, gathered->sizes.items[i]);
        at += words[i].size;
    }
    assert(at == gathered->bytes.data + gathered->bytes.size);
    value = cron_create(terms, words, count);
    mem_free(words);
    return value;
}

static bool read_cron(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct cron_terms terms = {.repeats = true};
    struct gathered gathered = {.bytes = {0}};
    bool good = gather(reader, &gathered) && rdb_read_i64(reader, &terms.start_ms) &&
                rdb_read_i64(reader, &terms.interval_ms);

    (void)limits;
    value->type = TYPE_CRON;
    good = good && (terms.interval_ms > 0 || rdb_corrupt(reader, "a job has no interval")) &&
           gather_list(reader, &gathered);
    terms.key_count = (uint32_t)gathered.sizes.count - good;
    good = good && gather_list(reader, &gathered);
    if (good)
        value->value = make(&terms, &gathered);
    buffer_fini(&gathered.bytes);
    ARRAY_FINI(&gathered.sizes);
    return good;
}

static void set_next(struct cron *cron, int64_t next_ms)
{
    if (__builtin_sub_overflow(next_ms, cron->interval_ms, &cron->start_ms))
        cron->start_ms = INT64_MIN;
}

/* Of a job's member only the time counts: there is but one, called as the key. */
static bool take_record(struct value *value, struct slice name, struct slice text)
{
    struct cron *cron = cron_of(*value);
    int64_t next_ms;

    if (slice_equal(name, AUX_SINGLE))
        cron->repeats = false;
    else if (!slice_equal(name, RDB_AUX_MEMBER_MS))
        return slice_equal(name, RDB_AUX_MEMBER);
    else if (number_parse_i64(text, &next_ms) && next_ms >= 0)
        set_next(cron, next_ms);
    return true;
}

/* ------------------------------------------------------------------------------------------------------ digest -- */

/* In Redis' form without its times, which are those of one moment. */
static void digest_value(struct digest *digest, const struct entry *entry)
{
    const struct cron *cron = cron_of(entry_value(entry));

    digest_mix_u32(digest, cron->repeats);
    digest_mix_u32(digest, (uint32_t)((uint64_t)cron->interval_ms >> 32));
    digest_mix_u32(digest, (uint32_t)cron->interval_ms);
    digest_mix_u32(digest, cron->key_count);
    for (uint32_t i = 0; i < cron->word_count; i++)
        digest_mix(digest, cron->words[i]);
    if (digest_is_keyed(digest))
        digest_mix_u64(digest, (uint64_t)cron->start_ms);
}

/* --------------------------------------------------------------------------------------------------------- row -- */

static const struct rdb_form forms[] = {
    {.number = RDB_CRON, .name = "cron job", .read = read_cron, .write = write_cron},
    {0},
};

const struct type_row type_cron = {.known = {.name = "unknown", .ops = &cron_ops},
                                   .forms = forms,
                                   .write_records = write_records,
                                   .take_record = take_record,
                                   .digest_number = 65,
                                   .digest = digest_value};
