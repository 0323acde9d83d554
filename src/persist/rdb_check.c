#include "persist/rdb_check.h"

#include "base/assert.h"

#include <stdio.h>

struct checker {
    struct rdb_handler handler;
    const struct rdb_check *check;
    uint64_t next_pause; /* offset */
};

static bool go_on(struct checker *checker, struct rdb_reader *reader)
{
    const uint64_t offset = rdb_reader_offset(reader);

    if (LIKELY(offset < checker->next_pause))
        return true;
    checker->next_pause = offset + checker->check->pause_bytes;
    return checker->check->pause() || rdb_fail(reader, STATUS_INTERRUPTED, "interrupted");
}

static bool pass_key(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                     struct rdb_value *value)
{
    (void)key;
    (void)value;
    return go_on((struct checker *)handler, reader);
}

static bool pass_record(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                        struct slice record)
{
    (void)key;
    (void)record;
    return go_on((struct checker *)handler, reader);
}

static bool pass_library(struct rdb_handler *handler, struct rdb_reader *reader, struct slice source)
{
    const struct rdb_check *check = ((struct checker *)handler)->check;

    (void)reader;
    if (check->library != NULL)
        check->library(source, check->context);
    return true;
}

bool rdb_check(struct byte_source *source, const struct rdb_check *check, struct rdb_load_result *result,
               bool *is_summed)
{
    struct checker checker = {
        .handler = {.key = pass_key,
                    .record = check->makes_values ? NULL : pass_record,
                    .library = pass_library,
                    .limits = check->limits,
                    .database_count = check->database_count},
        .check = check,
        .next_pause = check->pause_bytes,
    };
    struct rdb_reader reader;
    bool good;

    assert(check->pause != NULL);
    rdb_reader_init(&reader, source);
    reader.sums = check->checks_sum;
    good = rdb_read_file(&reader, &checker.handler);
    *is_summed = good && check->checks_sum && checker.handler.has_checksum;
    *result = (struct rdb_load_result){.bytes = rdb_reader_offset(&reader),
                                       .version = checker.handler.version,
                                       .status = reader.status,
                                       .failed_at = reader.failed_at};
    (void)snprintf(result->error, sizeof(result->error), "%s", reader.error);
    rdb_reader_fini(&reader);
    return good;
}
