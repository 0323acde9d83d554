/* Values that come element by element while they go on changing (store/snapshot_live.h) are written as those that are
 * written whole: the same words, whatever their order is, and files that load with the same contents. */
#include "base/background.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "data/hash.h"
#include "data/nested.h"
#include "data/set.h"
#include "data/stream_value.h"
#include "data/zset.h"
#include "persist/aof_dump.h"
#include "persist/digest.h"
#include "persist/rdb_load.h"
#include "persist/rdb_save.h"
#include "persist/test_keyspace.h"
#include "persist/types.h"
#include "store/snapshot_live.h"
#include "store/subkey_ttl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { MEMBERS = 2000, NOW_MS = 1000000, FIRST_MS = NOW_MS + 77 };

/* clang-format off */
static const struct rdb_limits limits = {
    .hash = {4, 8}, .set = {4, 4, 8}, .zset = {4, 8}, .list = {.fill = -2},
};
/* clang-format on */
static const struct digest_secret secret = {{1, 2}};
static char folder[] = "/tmp/large_values_test.XXXXXX";
static char path[64], temp_path[64];

static void keyspace_init(struct keyspace *keys)
{
    keyspace_create(keys, 2, 1, NOW_MS);
}

static struct value create(enum value_type type)
{
    if (type == TYPE_HASH)
        return hash_create();
    if (type == TYPE_STREAM)
        return stream_value(stream_create());
    if (type == TYPE_NESTED)
        return nested_create();
    return type == TYPE_ZSET ? zset_create() : set_create(&limits.set, SLICE("member"), MEMBERS);
}

/* Most entries are pending, for one of three consumers. */
static void put_entry(struct stream *stream, struct slice field, unsigned i)
{
    static const struct slice names[] = {{"", 0}, {"one", 3}, {"three", 5}};
    const struct slice name = names[i % 5 % countof(names)];
    const struct stream_id id = {i + 1, i % 7};
    struct stream_consumer *consumer;
    struct stream_group *group;

    assert_true(stream_append(stream, id, (const struct slice[]){field, field}, 1, &(struct stream_limits){0, 100}));
    if (i == 0) {
        (void)stream_group_create(stream, SLICE("a group that reads nothing"), STREAM_ID_LEAST, 0);
        (void)stream_group_create(stream, SLICE("group"), STREAM_ID_LEAST, 0);
        (void)stream_consumer_create(stream_group_find(stream, SLICE("group")), SLICE("lazy"), 1);
    }
    group = stream_group_find(stream, SLICE("group"));
    consumer = stream_consumer_find(group, name);
    if (consumer == NULL)
        consumer = stream_consumer_create(group, name, (int64_t)i);
    consumer->active_ms = 2 * (int64_t)i;
    stream_group_advance(stream, group, id);
    if (i % 4 != 3)
        stream_pending_assign(group, id, consumer, (int64_t)i + NOW_MS, i);
}

/* Trees of some depth, texts and lists. */
static void put_path(struct value *value, struct slice name, unsigned i)
{
    static const char *const trees[] = {"tree.", "a.deeper.tree.", ""};
    const struct slice texts[] = {name, SLICE("another text"), SLICE("")};
    char room[64];
    const int size = snprintf(room, sizeof(room), "%s%.*s", trees[i % countof(trees)], (int)name.size, name.data);

    (void)nested_put(value, slice_make(room, (size_t)size), texts, i % 5 == 0 ? 3 : 1, NULL);
}

static void put(struct value *value, enum value_type type, struct slice member, unsigned i)
{
    if (type == TYPE_HASH)
        (void)hash_put(value, &limits.hash, member, member);
    else if (type == TYPE_STREAM)
        put_entry(stream_of(*value), member, i);
    else if (type == TYPE_NESTED)
        put_path(value, member, i);
    else if (type == TYPE_ZSET)
        (void)zset_put(value, &limits.zset, member, i % 100);
    else
        (void)set_add(value, &limits.set, member);
}

/* Every third member has a deadline, if there are any. */
static void fill(struct keyspace *keys, enum value_type type, const char *name, bool has_deadlines)
{
    const struct key key = key_make(slice_from_text(name));
    struct value value = create(type);
    struct change change;
    char room[32];

    for (unsigned i = 0; i < MEMBERS; i++)
        put(&value, type, slice_make(room, (size_t)snprintf(room, sizeof(room), "member:%u", i)), i);
    change_begin(&change, &keys->access, 0, &key);
    change_put_value(&change, type, value, has_deadlines ? EXPIRE_NEVER : FIRST_MS);
    for (unsigned i = 0; has_deadlines && i < MEMBERS; i += 3)
        change_member_expire(&change, slice_make(room, (size_t)snprintf(room, sizeof(room), "member:%u", i)),
                             FIRST_MS + i);
    change_end(&change, EVENT_GENERIC, NULL);
}

struct memory_sink {
    struct byte_sink sink;
    struct buffer bytes;
};

static must_check enum status write_to_memory(struct byte_sink *sink, struct slice bytes)
{
    buffer_append_slice(&container_of(sink, struct memory_sink, sink)->bytes, bytes);
    return STATUS_OK;
}

static void read_all_of(struct buffer *bytes)
{
    struct file *file = NULL;
    uint64_t size;
    size_t got;

    assert_int_equal(file_open(&file, path, FILE_READ), STATUS_OK);
    assert_int_equal(file_size(file, &size), STATUS_OK);
    assert_int_equal(file_read(file, buffer_reserve(bytes, size), size, &got), STATUS_OK);
    assert_int_equal(got, size);
    bytes->size = size;
    file_close(&file);
}

/* RDB of a version, or commands. */
enum { COMMANDS = 0 };

static void save(struct snapshot *all, int version, int most, struct buffer *bytes)
{
    struct memory_sink sink = {.sink = {write_to_memory}};
    char error[256];

    if (version == COMMANDS) {
        const struct aof_dump_request request = {.path = path,
                                                 .temp_path = temp_path,
                                                 .keys = all,
                                                 .payload = {RDB_VERSION_WRITTEN_LEAST, most, false, false}};

        assert_int_equal(aof_dump_save(&request, error, sizeof(error)), STATUS_OK);
        read_all_of(bytes);
    } else {
        const struct rdb_save_request request = {.keys = all, .options = {version, version, true, false}};
        struct rdb_save_result result;

        assert_int_equal(rdb_save_to(&sink.sink, &request, &result), STATUS_OK);
        *bytes = sink.bytes;
    }
}

static void add_key(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    uint64_t *sums = context;
    struct digest digest;
    uint64_t sum[2];

    (void)access;
    (void)db;
    digest_begin_keyed(&digest, &secret);
    digest_mix(&digest, entry_key(entry));
    digest_mix_value(&digest, entry);
    digest_end_keyed(&digest, sum);
    sums[0] += sum[0];
    sums[1] += sum[1];
}

static void sum_of(struct keyspace *keys, uint64_t sums[2])
{
    const struct access_visitor visitor = {.visit = add_key, .context = sums};

    sums[0] = sums[1] = 0;
    access_each(&keys->access, 0, &visitor);
}

static void check_loads(const struct buffer *bytes, struct keyspace *keys, int64_t now_ms)
{
    struct keyspace again;
    struct memory_source source;
    struct rdb_load_result result;
    struct rdb_load_request request = {.limits = limits, .pause_bytes = 1 << 20};
    uint64_t sums[2], loaded[2];

    keyspace_init(&again);
    access_begin(&keys->access, now_ms, true);
    access_begin(&again.access, now_ms, true);
    request.access = &again.access;
    memory_source_init(&source, buffer_slice(bytes));
    assert_true(rdb_load(&source.source, &request, &result));
    sum_of(keys, sums);
    sum_of(&again, loaded);
    assert_memory_equal(sums, loaded, sizeof(sums));
    store_destroy(&again.store);
}

/* How often each byte is there; so many may differ: a checksum of a payload is of other bytes in another order. */
static void check_same_words(const struct buffer *a, const struct buffer *b, uint64_t most)
{
    int64_t counts[256] = {0};
    uint64_t differ = 0;

    assert_int_equal(a->size, b->size);
    for (size_t i = 0; i < a->size; i++) {
        counts[(unsigned char)a->data[i]]++;
        counts[(unsigned char)b->data[i]]--;
    }
    for (unsigned i = 0; i < countof(counts); i++)
        differ += counts[i] > 0 ? (uint64_t)counts[i] : 0;
    assert_true(differ <= most);
}

static void wake(void *context)
{
    (void)context;
}

/* At now_ms members may be past their deadlines: then they may be in the file, but do not come back. */
static void check(enum value_type type, int version, int most, int64_t now_ms)
{
    struct keyspace keys;
    struct gate gate;
    struct gate_member member = {0};
    struct snapshot all;
    struct live_snapshot *live;
    struct buffer whole = {0}, piecemeal = {0};

    keyspace_init(&keys);
    gate_init(&gate);
    gate_join(&gate, &member, wake, NULL);
    gate_traffic_begin();
    fill(&keys, type, "with", type != TYPE_STREAM && type != TYPE_NESTED);
    fill(&keys, type, "without", false);
    all = snapshot_of_access(&keys.access);
    save(&all, version, most, &whole);
    assert_true(gate_try_own(&member, 1));
    access_begin(&keys.access, now_ms, true);
    live = live_snapshot_begin(&keys.access, &(struct live_options){.gate = &gate, .threads = 1});
    gate_open(&member);
    live_snapshot_adopt(live);
    save(live_snapshot_keys(live), version, most, &piecemeal);
    assert_true(live_snapshot_costs(live).kept_keys == 2);
    assert_true(live_snapshot_costs(live).kept_peak_bytes < (type == TYPE_STREAM ? 17 * MEMBERS : 4096));
    live_snapshot_end(&live);
    if (now_ms == NOW_MS)
        check_same_words(&whole, &piecemeal, version == COMMANDS && type == TYPE_NESTED ? 2 * sizeof(uint64_t) : 0);
    gate_traffic_end();
    if (version != COMMANDS)
        check_loads(&piecemeal, &keys, now_ms);
    buffer_fini(&whole);
    buffer_fini(&piecemeal);
    gate_part(&member);
    gate_fini(&gate);
    store_destroy(&keys.store);
}

static void pieces_make_the_same_file(void **state)
{
    static const enum value_type types[] = {TYPE_HASH, TYPE_SET, TYPE_ZSET};

    (void)state;
    for (unsigned i = 0; i < countof(types); i++) {
        check(types[i], RDB_VERSION_FIELD_DEADLINES, 0, NOW_MS);
        check(types[i], RDB_VERSION_FIELD_DEADLINES - 1, 0, NOW_MS); /* all deadlines in records */
        check(types[i], RDB_VERSION_VALKEY, 0, NOW_MS);
        check(types[i], COMMANDS, RDB_VERSION_FIELD_DEADLINES, NOW_MS);
        check(types[i], COMMANDS, RDB_VERSION_FIELD_DEADLINES - 1, NOW_MS);
    }
}

static void streams_have_the_same_form(void **state)
{
    (void)state;
    for (int version = RDB_VERSION_WRITTEN_LEAST; version <= RDB_VERSION_FIELD_DEADLINES; version++)
        check(TYPE_STREAM, version, 0, NOW_MS);
    check(TYPE_STREAM, RDB_VERSION_VALKEY, 0, NOW_MS);
    check(TYPE_STREAM, COMMANDS, RDB_VERSION_WRITTEN_LEAST, NOW_MS);
    check(TYPE_STREAM, COMMANDS, RDB_VERSION_FIELD_DEADLINES, NOW_MS);
}

static void nested_hashes_have_the_same_form(void **state)
{
    (void)state;
    check(TYPE_NESTED, RDB_VERSION_WRITTEN_LEAST, 0, NOW_MS);
    check(TYPE_NESTED, RDB_VERSION_FIELD_DEADLINES, 0, NOW_MS);
    check(TYPE_NESTED, COMMANDS, RDB_VERSION_WRITTEN_LEAST, NOW_MS);
}

static void members_past_their_deadlines_do_not_come_back(void **state)
{
    static const enum value_type types[] = {TYPE_HASH, TYPE_SET, TYPE_ZSET};

    (void)state;
    for (unsigned i = 0; i < countof(types); i++) {
        check(types[i], RDB_VERSION_FIELD_DEADLINES, 0, FIRST_MS + MEMBERS / 2);
        check(types[i], RDB_VERSION_FIELD_DEADLINES - 1, 0, FIRST_MS + MEMBERS / 2);
        check(types[i], RDB_VERSION_VALKEY, 0, FIRST_MS + MEMBERS / 2);
    }
}

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/file", folder);
    (void)snprintf(temp_path, sizeof(temp_path), "%s/temp", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)!file_remove(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_make_the_same_file),
        cmocka_unit_test(streams_have_the_same_form),
        cmocka_unit_test(nested_hashes_have_the_same_form),
        cmocka_unit_test(members_past_their_deadlines_do_not_come_back),
    };
    int failed;

    fence_setup();
    hash_setup();
    (void)thread_self_index();
    background_setup(1);
    failed = cmocka_run_group_tests(tests, setup, teardown);
    background_teardown();
    return failed;
}
