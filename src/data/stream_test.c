#include "data/stream.h"

#include "base/buffer.h"
#include "base/mem_move.h"
#include "base/test_seed.h"
#include "data/stream_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The model: an array of ids; the pairs of an entry follow from its id. */
enum { MODEL_MOST = 4000, FIELDS_MOST = 4 };

static struct stream_id model[MODEL_MOST];
static unsigned model_count;

static struct stream_id id_of(uint64_t ms, uint64_t seq)
{
    return (struct stream_id){ms, seq};
}

static void assert_id(struct stream_id id, uint64_t ms, uint64_t seq)
{
    assert_int_equal(id.ms, ms);
    assert_int_equal(id.seq, seq);
}

static size_t make_pairs(struct stream_id id, struct slice pairs[2 * FIELDS_MOST], char room[FIELDS_MOST][32])
{
    static const char *const names[] = {"temperature", "17", "", "pressure-in-the-boiler"};
    size_t count = 1 + (size_t)(id.ms / 3 % FIELDS_MOST);

    for (size_t i = 0; i < count; i++) {
        int64_t number = (int64_t)(id.ms * 31 + id.seq * 7 + i) * (i == 1 ? -1 : 1);

        pairs[2 * i] = slice_from_text(names[(i + id.ms / 7) % 4]);
        pairs[2 * i + 1] = slice_make(room[i], number_format_i64(room[i], number));
        if (i == 2)
            pairs[2 * i + 1] = SLICE("text");
    }
    return count;
}

static void append(struct stream *stream, struct stream_id id, const struct stream_limits *limits)
{
    struct slice pairs[2 * FIELDS_MOST];
    char room[FIELDS_MOST][32];
    size_t count = make_pairs(id, pairs, room);

    assert_true(stream_append(stream, id, pairs, count, limits));
}

/* At a random place; an id that is there is refused, one that was deleted may be. */
static bool insert_random(struct random *random, struct stream *stream, const struct stream_limits *limits)
{
    const struct stream_id id = id_of(random_below(random, stream_last_id(stream).ms + 1), 1 + random_below(random, 9));
    struct slice pairs[2 * FIELDS_MOST];
    char room[FIELDS_MOST][32];
    const size_t count = make_pairs(id, pairs, room);
    const bool is_there = stream_has(stream, id);
    unsigned index = 0;

    if (!stream_insert(stream, id, pairs, count, limits))
        return false;
    assert_false(is_there);
    while (index < model_count && stream_id_compare(model[index], id) < 0)
        index++;
    memmove(&model[index + 1], &model[index], (model_count - index) * sizeof(model[0]));
    model[index] = id;
    model_count++;
    return true;
}

static void expect_entry(struct stream_iter *iter, struct stream_id id, uint64_t field_count)
{
    struct slice pairs[2 * FIELDS_MOST], field, value;
    char room[FIELDS_MOST][32];

    assert_int_equal(field_count, make_pairs(id, pairs, room));
    for (uint64_t i = 0; i < field_count; i++) {
        uint64_t bytes = 0;

        for (uint64_t left = 2 * i; left < 2 * field_count; left++)
            bytes += pairs[left].size;
        assert_int_equal(stream_iter_bytes(iter, field_count - i), bytes);
        stream_iter_pair(iter, &field, &value);
        assert_true(slice_equal(field, pairs[2 * i]));
        assert_true(slice_equal(value, pairs[2 * i + 1]));
    }
}

static void check_range(const struct stream *stream, struct stream_id start, struct stream_id end)
{
    struct stream_iter iter;
    struct stream_id id;
    uint64_t field_count;
    unsigned low = 0, high = model_count;

    while (low < model_count && stream_id_compare(model[low], start) < 0)
        low++;
    while (high > low && stream_id_compare(model[high - 1], end) > 0)
        high--;
    stream_iter_init(&iter, stream, start, end);
    for (unsigned i = low; i < high; i++) {
        assert_true(stream_iter_next(&iter, &id, &field_count));
        assert_id(id, model[i].ms, model[i].seq);
        expect_entry(&iter, id, field_count);
    }
    assert_false(stream_iter_next(&iter, &id, &field_count));
    stream_iter_fini(&iter);
    stream_iter_init_backwards(&iter, stream, start, end);
    for (unsigned i = high; i > low; i--) {
        assert_true(stream_iter_next(&iter, &id, &field_count));
        assert_id(id, model[i - 1].ms, model[i - 1].seq);
        expect_entry(&iter, id, field_count);
    }
    assert_false(stream_iter_next(&iter, &id, &field_count));
    stream_iter_fini(&iter);
}

static void model_drop(unsigned index, unsigned count)
{
    model_count -= count;
    memmove(&model[index], &model[index + count], (model_count - index) * sizeof(model[0]));
}

static struct stream_id random_id(struct random *random, const struct stream *stream)
{
    if (model_count != 0 && random_below(random, 2) == 0)
        return model[random_below(random, model_count)];
    return id_of(random_below(random, stream_last_id(stream).ms + 2), random_below(random, 4));
}

/* Ids in order and not, there and not, by one iterator. */
static void check_finding(struct random *random, const struct stream *stream)
{
    struct stream_iter iter;

    stream_iter_init_find(&iter, stream);
    for (unsigned i = 0; i < 40; i++) {
        struct stream_id id = random_id(random, stream);
        unsigned next = 0;
        uint64_t field_count;
        bool found;

        while (next < model_count && stream_id_compare(model[next], id) < 0)
            next++;
        for (unsigned k = 0; k < 4; k++, next++) {
            found = stream_iter_find(&iter, id, &field_count);
            assert_int_equal(found, next < model_count && stream_id_compare(model[next], id) == 0);
            if (found)
                expect_entry(&iter, id, field_count);
            if (next + 1 >= model_count)
                break;
            id = model[next + 1];
        }
    }
    stream_iter_fini(&iter);
}

/* As a group does: a few entries behind its position, again and again. It begins anew at the end, and now and then. */
static void read_on(struct random *random, const struct stream *stream, struct stream_id *position)
{
    uint64_t field_count, left = 1 + random_below(random, 3);
    struct stream_id start = *position, id;
    struct stream_iter iter;
    unsigned next = 0;

    assert_true(stream_id_increment(&start));
    while (next < model_count && stream_id_compare(model[next], start) < 0)
        next++;
    stream_iter_init(&iter, stream, start, STREAM_ID_MOST);
    for (; left != 0 && next < model_count; left--, next++) {
        assert_true(stream_iter_next(&iter, &id, &field_count));
        assert_id(id, model[next].ms, model[next].seq);
        expect_entry(&iter, id, field_count);
        *position = id;
    }
    if (left != 0)
        assert_false(stream_iter_next(&iter, &id, &field_count));
    stream_iter_fini(&iter);
    if (left != 0 || random_below(random, 50) == 0)
        *position = random_id(random, stream);
}

static void delete_random(struct random *random, struct stream *stream)
{
    struct stream_id id = random_id(random, stream), deleted = stream_max_deleted_id(stream);
    unsigned index = 0;
    bool is_there;

    while (index < model_count && stream_id_compare(model[index], id) < 0)
        index++;
    is_there = index < model_count && stream_id_compare(model[index], id) == 0;
    assert_int_equal(stream_has(stream, id), is_there);
    assert_int_equal(stream_delete(stream, id), is_there);
    assert_false(stream_has(stream, id));
    if (is_there) {
        model_drop(index, 1);
        if (stream_id_compare(id, deleted) > 0)
            deleted = id;
    }
    assert_id(stream_max_deleted_id(stream), deleted.ms, deleted.seq);
}

static void trim_random(struct random *random, struct stream *stream, uint64_t node_entries)
{
    struct stream_trim trim = {.by = STREAM_TRIM_LENGTH, .whole_nodes = random_below(random, 2) == 0};
    uint64_t gone, wanted = 0;
    struct stream_id last;
    bool any;

    if (random_below(random, 2) == 0) {
        trim.by = STREAM_TRIM_ID;
        trim.id = model_count != 0 ? model[random_below(random, 1 + model_count / 3)] : id_of(5, 0);
        trim.id.seq += random_below(random, 2); /* perhaps among deleted ones that end a node */
        while (wanted < model_count && stream_id_compare(model[wanted], trim.id) < 0)
            wanted++;
    } else {
        trim.length = random_below(random, 4) == 0 ? 0 : model_count - random_below(random, 1 + model_count / 3);
        wanted = model_count - MIN(model_count, trim.length);
    }
    if (random_below(random, 3) == 0)
        trim.removal_limit = 1 + random_below(random, 30);
    any = stream_trim_last(stream, &trim, &last);
    gone = stream_trim(stream, &trim);
    assert_int_equal(any, gone != 0);
    if (any)
        assert_id(last, model[gone - 1].ms, model[gone - 1].seq);
    if (trim.removal_limit != 0)
        wanted = MIN(wanted, trim.removal_limit);
    if (trim.whole_nodes)
        assert_true(gone <= wanted && wanted - gone < node_entries);
    else
        assert_int_equal(gone, wanted);
    model_drop(0, (unsigned)gone);
}

static void check_copy(const struct stream *stream)
{
    struct stream *copy = stream_copy(stream);

    stream_validate(copy);
    assert_int_equal(stream_length(copy), stream_length(stream));
    check_range(copy, STREAM_ID_LEAST, STREAM_ID_MOST);
    stream_destroy(&copy);
    assert_null(copy);
}

static void random_steps_match_the_model(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned round = 0; round < 8; round++) {
        struct stream_limits limits = {round % 2 == 0 ? 0 : 300, 1 + random_below(&random, 40)};
        struct stream *stream = stream_create();
        struct stream_id positions[3] = {{0, 0}};
        uint64_t added = 0;

        model_count = 0;
        for (unsigned i = 0; i < 2500; i++) {
            uint64_t dice = random_below(&random, 1000);

            if (dice < 700) {
                struct stream_id id = stream_last_id(stream);

                if (random_below(&random, 3) == 0)
                    id = id_of(id.ms + 1 + random_below(&random, 3), random_below(&random, 3));
                else
                    id.seq += 1 + random_below(&random, 2);
                append(stream, id, &limits);
                model[model_count++] = id;
                added++;
            } else if (dice < 750 && round >= 4) {
                added += insert_random(&random, stream, &limits);
            } else if (dice < 990) {
                delete_random(&random, stream);
            } else {
                trim_random(&random, stream, limits.node_entries);
            }
            stream_validate(stream);
            assert_int_equal(stream_length(stream), model_count);
            assert_int_equal(stream_entries_added(stream), added);
            if (model_count != 0)
                assert_id(stream_first_id(stream), model[0].ms, model[0].seq);
            for (unsigned k = 0; k < countof(positions); k++)
                read_on(&random, stream, &positions[k]);
            if (i % 20 == 0)
                check_range(stream, random_id(&random, stream), random_id(&random, stream));
            if (i % 100 == 0)
                check_finding(&random, stream);
            if (i % 500 == 0)
                check_copy(stream);
        }
        check_range(stream, STREAM_ID_LEAST, STREAM_ID_MOST);
        assert_true(stream_memory_bytes(stream, 0) > stream_length(stream) * 4);
        stream_destroy(&stream);
    }
}

static unsigned relocate_all(struct stream **stream, uint64_t most, struct mem_mover *mover)
{
    uint64_t position = 0;
    unsigned calls = 0;

    mem_move_everything(true);
    do {
        position = stream_relocate(stream, position, most, mover);
        calls++;
    } while (position != 0);
    mem_move_everything(false);
    return calls;
}

static void relocation_reaches_every_block_once(void **state)
{
    static const struct stream_limits limits = {0, 20};

    (void)state;
    for (unsigned count = 0; count < 1000; count = count * 3 + 1) {
        struct stream *stream = stream_create(), *old = stream;
        struct mem_mover mover = {0};
        uint64_t nodes;

        model_count = 0;
        for (unsigned i = 0; i < count; i++) {
            model[model_count++] = id_of(i / 50, i + 1); /* some nodes have their first half in common */
            append(stream, model[i], &limits);
        }
        nodes = (count + 19) / 20;
        assert_in_range(relocate_all(&stream, 30, &mover), 1, 1 + count / 30);
        /* The stream, its tree, nodes, and nodes of the tree. */
        assert_int_equal(mover.moved, 2 + nodes + stream_tree_node_count(stream) - 1);
        assert_true(stream != old);
        stream_validate(stream);
        check_range(stream, STREAM_ID_LEAST, STREAM_ID_MOST);
        assert_int_equal(relocate_all(&stream, UINT64_MAX, &mover), 1);
        assert_int_equal(stream_relocate(&stream, 1000, 1, &mover), 0);
        stream_validate(stream);
        stream_destroy(&stream);
    }
}

static void ids_have_limits(void **state)
{
    struct stream *stream = stream_create();
    struct stream_limits limits = {4096, 100};
    struct stream_id id = id_of(7, UINT64_MAX);
    char room[STREAM_ID_BYTES];

    (void)state;
    assert_true(stream_id_increment(&id));
    assert_id(id, 8, 0);
    assert_true(stream_id_decrement(&id));
    assert_id(id, 7, UINT64_MAX);
    id = STREAM_ID_MOST;
    assert_false(stream_id_increment(&id));
    id = STREAM_ID_LEAST;
    assert_false(stream_id_decrement(&id));
    assert_memory_equal(stream_id_encode(id_of(1, 0x0203), room).data, "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\2\3", 16);
    assert_id(stream_id_decode(room), 1, 0x0203);
    model_count = 0;
    append(stream, model[model_count++] = id_of(0, 1), &limits);
    append(stream, model[model_count++] = id_of(3, UINT64_MAX), &limits);
    append(stream, model[model_count++] = id_of(4, 0), &limits);
    append(stream, model[model_count++] = STREAM_ID_MOST, &limits);
    stream_validate(stream);
    check_range(stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    assert_int_equal(stream_node_count(stream), 1);
    stream_destroy(&stream);
}

/* --- nodes from outside --- */

static struct buffer kept;
static struct stream_id kept_id;

static void keep_node(struct stream_id id, struct slice bytes, void *context)
{
    (void)context;
    kept_id = id;
    buffer_clear(&kept);
    buffer_append_slice(&kept, bytes);
}

/* A node that is damaged anywhere is refused, or is another good one; and cut short it is always refused. */
static void damaged_nodes_are_refused(void **state)
{
    struct random random = test_random(__func__);
    struct stream *stream = stream_create(), *other;
    struct stream_limits limits = {0, 0};

    (void)state;
    for (unsigned i = 1; i < 12; i++)
        append(stream, id_of(i, 0), &limits);
    assert_true(stream_delete(stream, id_of(1, 0)));
    stream_each_node(stream, keep_node, NULL);
    assert_id(kept_id, 1, 0);
    other = stream_create();
    assert_true(stream_load_node(other, kept_id, buffer_slice(&kept)));
    assert_false(stream_load_node(other, kept_id, buffer_slice(&kept))); /* out of order */
    assert_int_equal(stream_length(other), 10);
    assert_id(stream_first_id(other), 2, 0);
    stream_validate(other);
    stream_destroy(&other);
    for (size_t size = 0; size < kept.size; size++) {
        other = stream_create();
        assert_false(stream_load_node(other, kept_id, slice_make(kept.data, size)));
        stream_destroy(&other);
    }
    for (unsigned i = 0; i < 5000; i++) {
        size_t at = (size_t)random_below(&random, kept.size);
        char before = kept.data[at];

        other = stream_create();
        kept.data[at] = (char)random_u64(&random);
        if (stream_load_node(other, kept_id, buffer_slice(&kept)))
            stream_validate(other);
        else
            assert_int_equal(stream_length(other), 0);
        stream_destroy(&other);
        kept.data[at] = before;
    }
    buffer_fini(&kept);
    stream_destroy(&stream);
}

/* As Redis 7.0 saved it: 1-1 a 1 b x (deleted), 1-2 a 2 b -5, 3-0 c hello (deleted), 4-0 a 1 b 2. */
static void a_node_of_redis_is_read(void **state)
{
    static const uint8_t bytes[] = {
        0x51, 0x00, 0x00, 0x00, 0x1f, 0x00, 0x02, 0x01, 0x02, 0x01, 0x02, 0x01, 0x81, 0x61, 0x02, 0x81, 0x62,
        0x02, 0x00, 0x01, 0x03, 0x01, 0x00, 0x01, 0x00, 0x01, 0x01, 0x01, 0x81, 0x78, 0x02, 0x05, 0x01, 0x02,
        0x01, 0x00, 0x01, 0x01, 0x01, 0x02, 0x01, 0xdf, 0xfb, 0x02, 0x05, 0x01, 0x01, 0x01, 0x02, 0x01, 0xdf,
        0xff, 0x02, 0x01, 0x01, 0x81, 0x63, 0x02, 0x85, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x06, 0x06, 0x01, 0x02,
        0x01, 0x03, 0x01, 0xdf, 0xff, 0x02, 0x01, 0x01, 0x02, 0x01, 0x05, 0x01, 0xff,
    };
    static const char *const texts[] = {"a", "2", "b", "-5", "a", "1", "b", "2"};
    struct stream *stream = stream_create();
    struct stream_iter iter;
    struct stream_id id;
    uint64_t field_count;
    unsigned seen = 0;

    (void)state;
    assert_true(stream_load_node(stream, id_of(1, 1), slice_make(bytes, sizeof(bytes))));
    stream_validate(stream);
    assert_int_equal(stream_length(stream), 2);
    stream_iter_init(&iter, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    while (stream_iter_next(&iter, &id, &field_count)) {
        assert_id(id, seen == 0 ? 1 : 4, seen == 0 ? 2 : 0);
        assert_int_equal(field_count, 2);
        for (unsigned i = 0; i < 2; i++) {
            struct slice field, value;

            stream_iter_pair(&iter, &field, &value);
            assert_true(slice_equal_text(field, texts[seen++]));
            assert_true(slice_equal_text(value, texts[seen++]));
        }
    }
    assert_int_equal(seen, 8);
    stream_iter_fini(&iter);
    stream_each_node(stream, keep_node, NULL);
    assert_true(slice_equal(buffer_slice(&kept), slice_make(bytes, sizeof(bytes))));
    buffer_fini(&kept);
    stream_destroy(&stream);
}

/* --- groups --- */

static struct stream *five_entries(void)
{
    struct stream *stream = stream_create();
    struct stream_limits limits = {4096, 100};

    for (unsigned i = 1; i <= 5; i++)
        append(stream, id_of(i, 0), &limits);
    return stream;
}

static void expect_lag(const struct stream *stream, const struct stream_group *group, int64_t wanted)
{
    int64_t lag = -12345;

    assert_true(stream_group_lag(stream, group, &lag));
    assert_int_equal(lag, wanted);
}

static void expect_no_lag(const struct stream *stream, const struct stream_group *group)
{
    int64_t lag;

    assert_false(stream_group_lag(stream, group, &lag));
}

static void read_up_to(const struct stream *stream, struct stream_group *group, uint64_t from, uint64_t to)
{
    for (uint64_t ms = from; ms <= to; ms++) {
        if (stream_has(stream, id_of(ms, 0)))
            stream_group_advance(stream, group, id_of(ms, 0));
    }
}

/* The results of Redis 8.6 in the same cases. */
static void lag_of_positions(void **state)
{
    static const struct {
        uint64_t ms, seq;
        int64_t lag; /* -1: unknown */
    } rows[] = {{0, 0, 5}, {0, 5, 5}, {1, 0, 4}, {3, 0, -1}, {3, 5, -1}, {5, 0, 0}, {9, 0, -1}};
    struct stream *stream = five_entries();
    struct stream_group *group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, STREAM_READ_UNKNOWN);

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        group->last_id = id_of(rows[i].ms, rows[i].seq);
        if (rows[i].lag < 0)
            expect_no_lag(stream, group);
        else
            expect_lag(stream, group, rows[i].lag);
    }
    group->last_id = id_of(3, 0);
    group->entries_read = 100;
    expect_lag(stream, group, -95);
    group->last_id = id_of(9, 0);
    group->entries_read = STREAM_READ_UNKNOWN;
    stream_set_ids(stream, id_of(9, 0), STREAM_ID_LEAST, 5);
    expect_lag(stream, group, 0);
    stream_set_ids(stream, id_of(10, 0), id_of(4, 0), 20);
    expect_no_lag(stream, group);
    stream_destroy(&stream);
}

static void lag_after_deletions(void **state)
{
    struct stream *stream = five_entries();
    struct stream_group *group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, STREAM_READ_UNKNOWN);

    (void)state;
    read_up_to(stream, group, 1, 2);
    assert_int_equal(group->entries_read, 2);
    expect_lag(stream, group, 3);
    assert_true(stream_delete(stream, id_of(4, 0)));
    expect_no_lag(stream, group);
    read_up_to(stream, group, 3, 3);
    assert_int_equal(group->entries_read, STREAM_READ_UNKNOWN);
    expect_no_lag(stream, group);
    read_up_to(stream, group, 4, 5);
    assert_int_equal(group->entries_read, 5);
    expect_lag(stream, group, 0);
    append(stream, id_of(6, 0), &(struct stream_limits){0, 0});
    expect_lag(stream, group, 1);
    stream_destroy(&stream);

    stream = five_entries();
    group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, STREAM_READ_UNKNOWN);
    read_up_to(stream, group, 1, 3);
    assert_true(stream_delete(stream, id_of(3, 0)));
    expect_no_lag(stream, group); /* its position is a deleted entry */
    read_up_to(stream, group, 4, 4);
    assert_int_equal(group->entries_read, STREAM_READ_UNKNOWN);
    expect_no_lag(stream, group);
    read_up_to(stream, group, 5, 5);
    assert_int_equal(group->entries_read, 5);
    stream_destroy(&stream);

    stream = five_entries();
    group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, STREAM_READ_UNKNOWN);
    assert_true(stream_delete(stream, id_of(1, 0)));
    expect_lag(stream, group, 4);
    group->entries_read = 0;
    expect_lag(stream, group, 4);
    read_up_to(stream, group, 2, 2);
    assert_int_equal(group->entries_read, 2);
    assert_true(stream_delete(stream, id_of(5, 0)));
    expect_no_lag(stream, group);
    stream_destroy(&stream);

    stream = five_entries();
    group = stream_group_create(stream, SLICE("g"), id_of(1, 0), 4);
    read_up_to(stream, group, 2, 3);
    assert_int_equal(group->entries_read, 5); /* there were no more */
    expect_lag(stream, group, 0);
    stream_group_count(stream, group);
    assert_int_equal(group->entries_read, 5);
    group->entries_read = STREAM_READ_UNKNOWN;
    stream_group_count(stream, group);
    assert_int_equal(group->entries_read, STREAM_READ_UNKNOWN);
    stream_destroy(&stream);
}

static void lag_after_trimming(void **state)
{
    struct stream_trim trim = {.by = STREAM_TRIM_LENGTH, .length = 2};
    struct stream *stream = five_entries();
    struct stream_group *group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, STREAM_READ_UNKNOWN);

    (void)state;
    assert_int_equal(stream_trim(stream, &trim), 3);
    assert_id(stream_max_deleted_id(stream), 0, 0);
    expect_lag(stream, group, 2);
    group->last_id = id_of(3, 0);
    expect_lag(stream, group, 2);
    group->entries_read = 1; /* it never had the others, and will not have them */
    expect_lag(stream, group, 2);
    trim.length = 0;
    assert_int_equal(stream_trim(stream, &trim), 2);
    expect_lag(stream, group, 0);
    group->entries_read = STREAM_READ_UNKNOWN;
    append(stream, id_of(7, 0), &(struct stream_limits){0, 0});
    expect_lag(stream, group, 1);
    stream_destroy(&stream);
    stream = stream_create();
    group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, STREAM_READ_UNKNOWN);
    stream_set_ids(stream, id_of(5, 0), STREAM_ID_LEAST, 0);
    expect_lag(stream, group, 0);
    stream_destroy(&stream);
}

static uint64_t count_of(const struct stream_group *group, struct stream_id id)
{
    const struct stream_pending *pending = stream_pending_find(group, id);

    return pending != NULL ? pending->delivery_count : 0;
}

static void random_pending_matches_the_model(void **state)
{
    enum { IDS = 200, CONSUMERS = 4 };
    static const char *const names[CONSUMERS] = {"", "alice", "bob", "al"};
    struct random random = test_random(__func__);
    struct stream *stream = five_entries(), *copy;
    struct stream_group *group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, 0);
    int owners[IDS];
    uint64_t count, with_nothing;

    (void)state;
    assert_null(stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, 0));
    with_nothing = stream_memory_bytes(stream, 0);
    memset(owners, -1, sizeof(owners));
    for (unsigned i = 0; i < 5000; i++) {
        unsigned who = (unsigned)random_below(&random, CONSUMERS), ms = (unsigned)random_below(&random, IDS);
        struct stream_consumer *consumer = stream_consumer_find(group, slice_from_text(names[who]));

        if (random_below(&random, 100) == 0 && consumer != NULL) {
            uint64_t wanted = 0;

            for (unsigned k = 0; k < IDS; k++) {
                wanted += owners[k] == (int)who;
                owners[k] = owners[k] == (int)who ? -1 : owners[k];
            }
            assert_true(stream_consumer_destroy(group, slice_from_text(names[who]), &count, NULL));
            assert_int_equal(count, wanted);
            assert_false(stream_consumer_destroy(group, slice_from_text(names[who]), &count, NULL));
        } else if (random_below(&random, 3) != 0) {
            if (consumer == NULL)
                consumer = stream_consumer_create(group, slice_from_text(names[who]), i);
            assert_null(stream_consumer_create(group, slice_from_text(names[who]), i));
            stream_pending_assign(group, id_of(ms, 1), consumer, i, count_of(group, id_of(ms, 1)) + 1);
            owners[ms] = (int)who;
        } else {
            assert_int_equal(stream_pending_remove(group, id_of(ms, 1)), owners[ms] >= 0);
            owners[ms] = -1;
        }
        stream_validate(stream);
    }
    copy = stream_copy(stream);
    stream_validate(copy);
    for (unsigned ms = 0; ms < IDS; ms++) {
        const struct stream_pending *pending = stream_pending_find(stream_group_find(copy, SLICE("g")), id_of(ms, 1));
        const struct stream_pending *original = stream_pending_find(group, id_of(ms, 1));

        assert_int_equal(pending != NULL, owners[ms] >= 0);
        assert_int_equal(original != NULL, owners[ms] >= 0);
        if (pending != NULL) {
            assert_true(slice_equal_text(stream_consumer_name(pending->consumer), names[owners[ms]]));
            assert_int_equal(pending->delivery_count, original->delivery_count);
        }
    }
    assert_true(stream_memory_bytes(stream, 0) > with_nothing);
    assert_true(stream_group_destroy(stream, SLICE("g"), NULL));
    assert_false(stream_group_destroy(stream, SLICE("g"), NULL));
    assert_int_equal(radix_count(stream_groups(stream)), 0);
    stream_destroy(&stream);
    stream_destroy(&copy);
}

/* Of every `apart` ids one is pending for the second consumer, the others are for the first one. */
static void destroy_first_of_two(uint64_t ids, uint64_t apart, bool with_garbage)
{
    struct stream *stream = stream_create(), *garbage = NULL;
    struct stream_group *group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, 0);
    struct stream_consumer *first = stream_consumer_create(group, SLICE("first"), 1);
    struct stream_consumer *second = stream_consumer_create(group, SLICE("second"), 1);
    const uint64_t with_consumers = stream_memory_bytes(stream, 0);
    uint64_t count;

    for (uint64_t i = 0; i < ids; i++)
        stream_pending_assign(group, id_of(i, 1), i % apart == 0 ? second : first, 0, i);
    assert_true(stream_consumer_destroy(group, SLICE("first"), &count, with_garbage ? &garbage : NULL));
    assert_int_equal(count, ids - (ids + apart - 1) / apart);
    assert_int_equal(garbage != NULL, with_garbage);
    if (garbage != NULL) {
        assert_true(stream_memory_bytes(garbage, 0) > count * sizeof(struct stream_pending));
        assert_true(stream_ops.free_effort(stream_value(garbage)) >= MIN(count, UINT64_C(1024)));
    }
    stream_destroy(&garbage);
    stream_validate(stream);
    assert_null(stream_consumer_find(group, SLICE("first")));
    assert_int_equal(radix_count(group->pending), ids - count);
    for (uint64_t i = 0; i < ids; i++) {
        const struct stream_pending *pending = stream_pending_find(group, id_of(i, 1));

        assert_ptr_equal(pending != NULL ? pending->consumer : NULL, i % apart == 0 ? second : NULL);
        assert_true(pending == NULL || pending->delivery_count == i);
    }
    assert_true(stream_consumer_destroy(group, SLICE("second"), &count, &garbage));
    stream_destroy(&garbage);
    assert_true(stream_memory_bytes(stream, 0) < with_consumers);
    assert_true(stream_group_destroy(stream, SLICE("g"), &garbage));
    assert_non_null(garbage);
    stream_destroy(&garbage);
    assert_false(stream_group_destroy(stream, SLICE("g"), &garbage));
    assert_null(garbage);
    stream_destroy(&stream);
}

static void a_consumer_goes_with_little_or_much_of_its_group(void **state)
{
    static const uint64_t sizes[] = {0, 1, 1000, 1024, 1537, 3000, 5000}, distances[] = {1, 2, 3, 4, 100, 10000};

    (void)state;
    for (size_t i = 0; i < countof(sizes); i++) {
        for (size_t k = 0; k < countof(distances); k++) {
            destroy_first_of_two(sizes[i], distances[k], false);
            destroy_first_of_two(sizes[i], distances[k], true);
        }
    }
}

static void pending_is_walked_by_range(void **state)
{
    struct stream *stream = stream_create();
    struct stream_group *group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, 0);
    struct stream_consumer *consumer = stream_consumer_create(group, SLICE("c"), 1);
    struct radix_iter iter;

    (void)state;
    for (unsigned ms = 10; ms <= 50; ms += 10)
        stream_pending_assign(group, id_of(ms, 3), consumer, 0, 0);
    radix_iter_init(&iter, consumer->pending);
    assert_true(stream_pending_seek(&iter, id_of(20, 4)));
    assert_id(stream_pending_id(&iter), 30, 3);
    assert_true(stream_pending_remove(group, id_of(30, 3))); /* the walk goes on */
    assert_true(radix_next(&iter));
    assert_id(stream_pending_id(&iter), 40, 3);
    assert_false(stream_pending_seek(&iter, id_of(50, 4)));
    radix_iter_fini(&iter);
    stream_destroy(&stream);
}

static struct stream *stream_with_groups(uint64_t groups, uint64_t consumers)
{
    struct stream *stream = stream_create();
    char room[NUMBER_I64_SPACE];

    for (uint64_t i = 0; i < groups; i++) {
        struct stream_group *group = stream_group_create(stream, slice_make(room, number_format_u64(room, i)),
                                                         STREAM_ID_LEAST, 0);

        for (uint64_t k = 0; k < consumers; k++)
            (void)stream_consumer_create(group, slice_make(room, number_format_u64(room, k)), 0);
    }
    return stream;
}

/* Whoever asks has no time to look at all. */
static void much_in_groups_is_estimated(void **state)
{
    static const uint64_t rows[][2] = {{1, 5}, {3, 5000}, {255, 4}, {5000, 3}, {700, 20}};

    (void)state;
    for (unsigned i = 0; i < countof(rows); i++) {
        struct stream *stream = stream_with_groups(rows[i][0], rows[i][1]);
        const uint64_t all = stream_memory_bytes(stream, 0), some = stream_memory_bytes(stream, 5);
        const uint64_t effort = stream_ops.free_effort(stream_value(stream)), things = rows[i][0] * (1 + rows[i][1]);

        assert_true(all >= things * 30);
        assert_in_range(some, all - all / 8, all + all / 8);
        if (things < 1024)
            assert_int_equal(effort, things);
        else
            assert_in_range(effort, 1024, things);
        stream_destroy(&stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps_match_the_model),
        cmocka_unit_test(relocation_reaches_every_block_once),
        cmocka_unit_test(ids_have_limits),
        cmocka_unit_test(damaged_nodes_are_refused),
        cmocka_unit_test(a_node_of_redis_is_read),
        cmocka_unit_test(lag_of_positions),
        cmocka_unit_test(lag_after_deletions),
        cmocka_unit_test(lag_after_trimming),
        cmocka_unit_test(random_pending_matches_the_model),
        cmocka_unit_test(a_consumer_goes_with_little_or_much_of_its_group),
        cmocka_unit_test(pending_is_walked_by_range),
        cmocka_unit_test(much_in_groups_is_estimated),
    };

    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
