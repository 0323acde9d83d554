/* A payload of RESTORE without its tail. Properties of bytes that are accepted: the value is valid; written in any
 * version that can hold it and read again, it has the same fingerprint. */
#include "base/hash.h"
#include "base/mem.h"
#include "fuzz.h"
#include "persist/digest.h"
#include "persist/rdb_payload.h"
#include "persist/types.h"
#include "store/subkey_ttl.h"

#include <stdlib.h>

static struct store *store;
static struct store_counters counters;
static struct access keys;

/* The last keys are still there, and a leak could not be told from them: tables keep tagged addresses. */
static void teardown(void)
{
    store_destroy(&store);
}

static void setup(void)
{
    if (store != NULL)
        return;
    hash_setup();
    store = store_create(1, 1);
    atexit(teardown);
    types_setup(store);
    access_init(&keys, store, &counters);
    access_begin(&keys, 1, true); /* before any deadline */
}

static void validate(const struct rdb_value *value)
{
    if (value->value.data != NULL && store->types[value->type].ops->validate != NULL)
        store->types[value->type].ops->validate(value->value);
    deadlines_validate(&value->members);
}

static void put_deadline(struct slice member, int64_t when_ms, void *context)
{
    change_member_expire(context, member, when_ms);
}

/* Makes it the key's value, and takes its fingerprint. */
static const struct entry *keep(const struct key *key, struct rdb_value *value, struct digest *digest)
{
    struct change change;
    const struct entry *entry;

    change_begin(&change, &keys, 0, key);
    if (value->type == TYPE_STRING)
        change_put_string(&change, value->text, EXPIRE_NEVER);
    else
        change_put_value(&change, value->type, value->value, EXPIRE_NEVER);
    value->value.data = NULL;
    deadlines_each_due(&value->members, DEADLINE_NONE, put_deadline, &change);
    change_end(&change, EVENT_GENERIC, NULL);
    rdb_value_destroy(value);
    entry = access_probe(&keys, 0, key);
    assert(entry != NULL);
    *digest = (struct digest){.secret = NULL};
    digest_mix_value(digest, entry);
    return entry;
}

static bool read_body(int version, struct slice body, const struct rdb_limits *limits, struct rdb_value *value,
                      char **exact)
{
    struct rdb_reader reader;
    bool good;

    *exact = mem_alloc(body.size + (body.size == 0)); /* so that reading beyond the end is seen */
    if (body.size != 0)
        memcpy(*exact, body.data, body.size);
    rdb_reader_init_memory(&reader, slice_make(*exact, body.size));
    reader.version = version;
    good = rdb_payload_read(&reader, limits, value);
    assert(good == (reader.status == STATUS_OK) || reader.status != STATUS_OK);
    if (good && value->type == TYPE_STRING) { /* it may stand in the reader's memory */
        char *copy = mem_copy(value->text.data, value->text.size);

        mem_free(*exact);
        *exact = copy;
        value->text.data = copy;
    }
    rdb_reader_fini(&reader);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size), body;
    uint8_t steer = fuzz_take_byte(&input);
    const struct rdb_limits limits = {
        .hash = {steer & 7, 16},
        .set = {steer & 3, steer & 7, 16},
        .zset = {steer & 7, 16},
        .list = {.fill = -1 - (steer & 3), .compress = steer >> 7},
        .skips_strange = (steer & 64) != 0,
    };
    const int version = steer >> 5 == 7 ? RDB_VERSION_VALKEY : 0;
    const struct key key = key_make(SLICE("k"));
    struct digest before, after;
    struct rdb_value value;
    char *exact;

    setup();
    if (read_body(version, input, &limits, &value, &exact) && !value.is_empty && !value.is_strange) {
        struct rdb_write_options options = {RDB_VERSION_WRITTEN_LEAST, RDB_VERSION_MOST, (steer & 8) != 0, false};
        const struct entry *entry;
        struct rdb_writer writer;
        bool good;

        validate(&value);
        entry = keep(&key, &value, &before);
        if ((steer & 16) != 0 && entry->type != TYPE_STREAM)
            options.least = options.most = 9 + (steer >> 5 & 3);
        if (version != 0) /* streams lose their producers */
            options.least = options.most = version;
        rdb_writer_init(&writer, &options, NULL);
        rdb_payload_write(&writer, entry);
        good = rdb_payload_check(buffer_slice(&writer.out), &body);
        assert(good);
        mem_free(exact);
        good = read_body(version, body, &limits, &value, &exact);
        assert(good);
        validate(&value);
        (void)keep(&key, &value, &after);
        assert(memcmp(&before, &after, sizeof(before)) == 0);
        rdb_writer_fini(&writer);
    }
    mem_free(exact);
    return 0;
}
