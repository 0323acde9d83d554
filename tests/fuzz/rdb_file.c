/* A whole RDB file, loaded into a store by as many threads as the first byte says. The result is saved and loaded
 * again, with the same keys and values. A failure is reported in one line with an offset within the file. */
#include "base/hash.h"
#include "base/mem.h"
#include "data/list.h"
#include "data/nested.h"
#include "data/stream_value.h"
#include "fuzz.h"
#include "persist/digest.h"
#include "persist/rdb_load.h"
#include "persist/rdb_save.h"
#include "persist/types.h"

enum { DATABASES = 4 };

struct buffer_sink {
    struct byte_sink sink;
    struct buffer bytes;
};

static enum status write_to_buffer(struct byte_sink *sink, struct slice bytes)
{
    buffer_append_slice(&((struct buffer_sink *)sink)->bytes, bytes);
    return STATUS_OK;
}

static struct store *make_store(struct access *access, struct store_counters *counters)
{
    struct store *store = store_create(16, DATABASES);

    types_setup(store);
    access_init(access, store, counters);
    access_begin(access, 1, true); /* before any deadline */
    return store;
}

static bool take_library(struct slice source, bool replaces, char *error, size_t error_size)
{
    (void)replaces;
    if (error_size != 0)
        error[0] = '\0';
    return source.size != 1;
}

/* As many local numbers as there are; one of them for several origins. */
static unsigned number_of(uint64_t id, void *context)
{
    (void)context;
    assert(id != 0);
    return (unsigned)(id % VERSION_ORIGINS);
}

static bool load(struct slice bytes, struct access *access, unsigned threads, bool checks_sum,
                 struct rdb_load_result *result)
{
    const struct rdb_load_request request = {
        .access = access,
        .checks_sum = checks_sum,
        .threads = threads,
        .library = take_library,
        .origin = number_of,
        .limits = {.hash = {4, 16}, .set = {4, 4, 16}, .zset = {4, 16}, .list = {.fill = 3}},
        .pause_bytes = 1 << 20,
    };
    char *exact = mem_copy(bytes.data, bytes.size); /* so that reading beyond the end is seen */
    struct memory_source source;
    bool good;

    memory_source_init(&source, slice_make(exact, bytes.size));
    good = rdb_load(&source.source, &request, result);
    mem_free(exact);
    assert(good == (result->status == STATUS_OK));
    assert(good || (result->error[0] != '\0' && strchr(result->error, '\n') == NULL));
    assert(result->failed_at <= bytes.size);
    return good;
}

static void add_version(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    const struct key key = key_make(entry_key(entry));

    (void)access;
    *(uint64_t *)context += (key.hash ^ db) * (entry_version(entry) | 1);
}

/* Equal for two stores whose keys have the same versions. */
static uint64_t versions_of(struct access *access)
{
    struct snapshot all = snapshot_of_access(access);
    uint64_t sum = 0;
    const struct snapshot_visitor visitor = {.visit = add_version, .context = &sum, .sees_expired = true};
    const bool saw_all = snapshot_each(&all, &visitor);

    assert(saw_all);
    return sum;
}

static void digest_of(struct access *access, struct digest *digest)
{
    *digest = (struct digest){.secret = NULL};
    digest_all(digest, access);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    uint8_t steer = fuzz_take_byte(&input);
    struct store_counters counters = {0}, more_counters = {0};
    struct access access, more;
    struct store *store, *again;
    struct rdb_load_result result;

    hash_setup();
    store = make_store(&access, &counters);
    if (load(input, &access, steer & 3, (steer & 4) != 0, &result)) {
        struct snapshot keys = snapshot_of_access(&access);
        static struct rdb_origins origins;
        const struct rdb_save_request request = {.keys = &keys,
                                                 .options = {RDB_VERSION_IDMP, RDB_VERSION_IDMP, (steer & 8) != 0,
                                                             true},
                                                 .origins = &origins};
        struct buffer_sink sink = {.sink = {write_to_buffer}};
        struct rdb_save_result saved;
        struct digest before, after;
        enum status status;
        bool good;

        for (unsigned i = 0; i < VERSION_ORIGINS - 1; i++)
            origins.ids[i] = i == 0 ? VERSION_ORIGINS : i; /* number_of gives the same numbers back */
        status = rdb_save_to(&sink.sink, &request, &saved);

        assert(status == STATUS_OK && saved.keys == result.keys);
        again = make_store(&more, &more_counters);
        good = load(buffer_slice(&sink.bytes), &more, 0, true, &result);
        assert(good && result.keys == saved.keys);
        assert(versions_of(&access) == versions_of(&more));
        digest_of(&access, &before);
        digest_of(&more, &after);
        assert(memcmp(&before, &after, sizeof(before)) == 0);
        store_destroy(&again);
        buffer_fini(&sink.bytes);
    }
    store_destroy(&store);
    return 0;
}
