#include "server/durable/value_words.h"

#include "base/number.h"
#include "data/stream_idmp.h"
#include "data/stream_value.h"
#include "persist/rdb_payload.h"
#include "server/durable/file_options.h"
#include "server/durable/libraries.h"
#include "store/effects.h"

struct words_target {
    value_words_fn add;
    void *context;
};

/* A string needs no payload. */
static void add_string(const struct key *key, const struct entry *entry, const struct words_target *to)
{
    char scratch[ENTRY_INT_TEXT_BYTES], digits[NUMBER_I64_SPACE];
    const int64_t expire_ms = entry_expire_ms(entry);
    const struct slice words[] = {SLICE("SET"), key->name, entry_string(entry, scratch), SLICE("PXAT"),
                                  slice_make(digits, number_format_i64(digits, expire_ms))};

    to->add(words, expire_ms != EXPIRE_NEVER ? 5 : 3, entry_blob(entry), to->context);
}

/* The payload is moved into a blob, and what it was written into is freed before anybody keeps the blob. */
static void add_large_payload(struct rdb_writer *writer, struct slice *words, uint32_t count,
                              const struct words_target *to)
{
    struct blob *value = blob_create_copy(buffer_slice(&writer->out));

    rdb_writer_fini(writer);
    words[3] = blob_slice(value);
    to->add(words, count, value, to->context);
    blob_release(&value);
}

static void add_payload(const struct key *key, const struct entry *entry, const struct words_target *to)
{
    struct rdb_write_options options = rdb_payload_options();
    const int64_t expire_ms = entry_expire_ms(entry);
    struct stream_idmp_facts idmp;
    char digits[NUMBER_I64_SPACE];
    struct slice words[] = {SLICE("RESTORE"), key->name, SLICE("0"), SLICE_EMPTY, SLICE("REPLACE"), SLICE("ABSTTL")};
    struct rdb_writer writer;

    if (rdb_is_for_valkey(&options)) { /* which reads no operations */
        options.least = RDB_VERSION_WRITTEN_LEAST;
        options.most = RDB_VERSION_MOST;
    }
    if (entry->type != TYPE_STREAM) /* the lowest version has all of them, and every reader knows it */
        options.most = options.least;
    else if (stream_idmp_facts(stream_of(entry_value(entry)), &idmp)) /* whatever rdb-version leaves out */
        options.most = RDB_VERSION_MOST;
    if (expire_ms != EXPIRE_NEVER)
        words[2] = slice_make(digits, number_format_i64(digits, expire_ms));
    rdb_writer_init(&writer, &options, NULL);
    rdb_payload_write(&writer, entry);
    if (writer.out.size >= EFFECT_BLOB_BYTES) {
        add_large_payload(&writer, words, countof(words), to);
        return;
    }
    words[3] = buffer_slice(&writer.out);
    to->add(words, countof(words), NULL, to->context);
    rdb_writer_fini(&writer);
}

/* The source is there for as long as we are inside of the gate. */
static void add_library(const struct key *key, const struct words_target *to)
{
    struct slice words[] = {SLICE("KEYDB.OP.LIBRARY"), key->name, SLICE_EMPTY};

    to->add(words, libraries_find(key->name, &words[2]) ? 3 : 2, NULL, to->context);
}

void value_words(struct access *access, unsigned db, const struct key *key, value_words_fn add, void *context)
{
    const struct words_target to = {add, context};
    const struct entry *entry;

    access_assert_holds(access, access_stripe_of(access, key));
    if (UNLIKELY(db == horizon_libraries_db(&access->store->horizon))) {
        add_library(key, &to);
        return;
    }
    entry = access_look(access, db, key);
    if (entry == NULL)
        add((const struct slice[]){SLICE("DEL"), key->name}, 2, NULL, context);
    else if (entry->type == TYPE_STRING)
        add_string(key, entry, &to);
    else
        add_payload(key, entry, &to);
}
