/* Values of every type and form: read from bytes put together by hand, written in every version and read back. */
#include "persist/rdb_payload.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/test_seed.h"
#include "data/cron.h"
#include "data/list.h"
#include "data/nested.h"
#include "data/stream_value.h"
#include "persist/types.h"
#include "store/subkey_ttl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* clang-format off */
static const struct rdb_limits limits = {
    .hash = {4, 8}, .set = {4, 4, 8}, .zset = {4, 8}, .list = {.fill = -2},
};
/* clang-format on */

/* ------------------------------------------------------------------------------------------- values as text -- */

/* Texts as hexadecimal digits, a blank before each: words without doubt, however strange the texts. */
static bool shows_hex;

static void show_text(struct buffer *out, struct slice text)
{
    static const char digits[] = "0123456789abcdef";
    char *at = shows_hex ? buffer_reserve(out, 2 * text.size) : NULL;

    if (!shows_hex)
        buffer_append_slice(out, text);
    for (size_t i = 0; at != NULL && i < text.size; i++) {
        *at++ = digits[(unsigned char)text.data[i] >> 4];
        *at++ = digits[text.data[i] & 15];
        out->size += 2;
    }
}

static void show(struct buffer *out, struct slice text)
{
    if (out->size != 0 || shows_hex)
        buffer_append_char(out, ' ');
    show_text(out, text);
}

static void show_member(struct slice member, void *context)
{
    show(context, member);
}

static void show_pair(struct slice field, struct slice value, void *context)
{
    show(context, field);
    buffer_append_char(context, '=');
    show_text(context, value);
}

static void show_deadline(struct slice member, int64_t when_ms, void *context)
{
    show(context, member);
    buffer_printf(context, "@%lld", (long long)when_ms);
}

static void show_list(struct buffer *out, const struct quicklist *list)
{
    struct quicklist_iter iter;
    struct listpack_value value;
    char digits[NUMBER_I64_SPACE];

    quicklist_validate(list);
    quicklist_iter_init(&iter, list, 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&iter, &value))
        show(out, listpack_value_text(&value, digits));
    quicklist_iter_fini(&iter);
}

static void show_zset(struct buffer *out, struct value zset)
{
    struct zset_walk walk;
    struct slice member;
    double score;

    zset_validate(zset);
    zset_walk_begin(&walk, zset, (struct zset_span){0, zset_count(zset)}, false);
    while (zset_walk_next(&walk, &member, &score)) {
        show(out, member);
        buffer_printf(out, "=%.17g", score);
    }
}

static void show_pending(struct buffer *out, const struct radix *pending)
{
    struct radix_iter iter;

    radix_iter_init(&iter, pending);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct stream_pending *one = iter.value;

        buffer_printf(out, " %llu(%s %lld %llu)", (unsigned long long)stream_pending_id(&iter).ms,
                      one->consumer->name_size != 0 ? "has" : "none", (long long)one->delivery_ms,
                      (unsigned long long)one->delivery_count);
    }
    radix_iter_fini(&iter);
}

static void show_groups(struct buffer *out, const struct stream *stream)
{
    struct radix_iter groups, consumers;

    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *group = groups.value;

        show(out, radix_iter_key(&groups));
        buffer_printf(out, ":%llu/%lld", (unsigned long long)group->last_id.ms, (long long)group->entries_read);
        show_pending(out, group->pending);
        radix_iter_init(&consumers, group->consumers);
        for (bool any = radix_seek(&consumers, RADIX_FIRST, SLICE_EMPTY); any; any = radix_next(&consumers)) {
            const struct stream_consumer *consumer = consumers.value;

            show(out, stream_consumer_name(consumer));
            buffer_printf(out, "#%lld", (long long)consumer->seen_ms);
            show_pending(out, consumer->pending);
        }
        radix_iter_fini(&consumers);
    }
    radix_iter_fini(&groups);
}

static void show_stream(struct buffer *out, const struct stream *stream)
{
    struct stream_iter iter;
    struct stream_id id;
    struct slice field, value;
    uint64_t count;

    stream_validate(stream);
    stream_iter_init(&iter, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    while (stream_iter_next(&iter, &id, &count)) {
        buffer_printf(out, " %llu", (unsigned long long)id.ms);
        for (; count != 0; count--) {
            stream_iter_pair(&iter, &field, &value);
            show_pair(field, value, out);
        }
    }
    stream_iter_fini(&iter);
    buffer_printf(out, " last %llu added %llu deleted %llu", (unsigned long long)stream_last_id(stream).ms,
                  (unsigned long long)stream_entries_added(stream),
                  (unsigned long long)stream_max_deleted_id(stream).ms);
    show_groups(out, stream);
}

static void show_job(struct buffer *out, const struct cron *cron)
{
    buffer_printf(out, "%s %lld %lld", cron->repeats ? "repeats" : "single", (long long)cron->start_ms,
                  (long long)cron->interval_ms);
    for (uint32_t i = 0; i < cron->word_count; i++) {
        buffer_append_text(out, i <= cron->key_count && i != 0 ? " key" : "");
        show(out, cron->words[i]);
    }
}

static void show_value(struct buffer *out, enum value_type type, struct value value)
{
    switch (type) {
    case TYPE_LIST:
        show_list(out, list_of(value));
        break;
    case TYPE_SET:
        set_validate(value);
        set_each(value, show_member, out);
        break;
    case TYPE_ZSET:
        show_zset(out, value);
        break;
    case TYPE_HASH:
        hash_validate(value);
        hash_each(value, show_pair, out);
        break;
    case TYPE_STREAM:
        show_stream(out, stream_of(value));
        break;
    case TYPE_CRON:
        show_job(out, cron_of(value));
        break;
    case TYPE_NESTED:
        nested_append_json(value.data, out);
        break;
    default:
        fail_msg("nothing shows type %d", (int)type);
    }
}

static void show_read(struct buffer *out, const struct rdb_value *value)
{
    if (value->type == TYPE_STRING)
        show(out, value->text);
    else if (value->value.data != NULL)
        show_value(out, value->type, value->value);
    deadlines_each_due(&value->members, DEADLINE_NONE, show_deadline, out);
}

/* ---------------------------------------------------------------------------------------------- bytes by hand -- */

/* Pairs of hexadecimal digits, 'text' unchanged, blanks. */
static void parse_bytes(struct buffer *out, const char *text)
{
    while (*text != '\0') {
        if (*text == ' ') {
            text++;
        } else if (*text == '\'') {
            for (text++; *text != '\''; text++)
                buffer_append_char(out, *text);
            text++;
        } else {
            const char digits[3] = {text[0], text[1], '\0'};

            buffer_append_char(out, (char)strtoul(digits, NULL, 16));
            text += 2;
        }
    }
}

struct example {
    const char *bytes; /* type and value */
    const char *shown; /* NULL: refused */
};

/* Texts inside of containers are spelled out, so a container's size stands in front of it. */
static const struct example examples[] = {
    /* strings */
    {"00 05 'hello'", "hello"},
    {"00 00", ""},
    {"00 c0 80", "-128"},
    {"00 c1 0080", "-32768"},
    {"00 c2 ffffff7f", "2147483647"},
    {"00 c3 05 0a 00'a' e0 00 00", "aaaaaaaaaa"},
    {"00 c3 05 0b 00'a' e0 00 00", NULL},          /* the size does not hold */
    {"00 c3 05 80 7fffffff 00'a' e0 00 00", NULL}, /* nor can it */
    {"00 4003 'abc'", "abc"},
    {"00 80 00000003 'abc'", "abc"},
    {"00 81 0000000000000003 'abc'", "abc"},
    {"00 82 'abc'", NULL},
    {"00 c4 'abc'", NULL},
    {"00 81 ffffffffffffffff 'abc'", NULL},
    /* lists */
    {"01 03 01'a' c0 07 01'a'", "a 7 a"},
    {"01 00", ""},
    {"01 c0 07", NULL},
    {"0a 0f 0f000000 0d000000 0200 00 f8 02 f3 ff", NULL}, /* its last entry is elsewhere */
    {"0a 0f 0f000000 0c000000 0200 00 f8 02 f3 ff", "7 2"},
    {"0a 1b 1b000000 19000000 0400 00 03'abc' 05 fe 85 03 c0 3930 04 f1 ff 00", NULL}, /* ends early */
    {"0a 19 19000000 16000000 0400 00 03'abc' 05 fe 85 03 c0 3930 04 f1 ff", "abc -123 12345 0"},
    {"0a 19 19000000 16000000 0500 00 03'abc' 05 fe 85 03 c0 3930 04 f1 ff", NULL}, /* a wrong count */
    {"0a 19 19000000 16000000 ffff 00 03'abc' 05 fe 85 03 c0 3930 04 f1 ff", "abc -123 12345 0"},
    {"0a 19 19000000 16000000 0400 00 03'abc' 06 fe 85 03 c0 3930 04 f1 ff", NULL}, /* a wrong size of the one before */
    {"0a 17 17000000 0a000000 0100 00 e0 ffffffffffffff7f ffffff", NULL},
    {"0a 15 15000000 0a000000 0100 00 e0 ffffffffffffff7f ff", "9223372036854775807"},
    {"0a 16 16000000 0f000000 0200 00 f0 ffff7f fe 05000000 f2 ff", "8388607 1"}, /* a small size in the long form */
    {"0a 12 12000000 0a000000 0100 00 80 00000001'x' ff", "x"},
    {"0a 0e 0e000000 0a000000 0100 00 4001'x' ff", NULL},
    {"0a 0f 0f000000 0a000000 0100 00 4001'x' ff", "x"},
    {"0e 02 0d 0d000000 0a000000 0100 00 f8 ff 0d 0d000000 0a000000 0100 00 f3 ff", "7 2"},
    {"12 02 01 03'abc' 02 0c 0c000000 0200 81'a' 02 0501 ff", "abc a 5"},
    {"12 01 03 03'abc'", NULL},
    {"12 01 02 0c 0c000000 0300 81'a' 02 0501 ff", NULL},
    /* sets */
    {"02 02 01'a' 01'b'", "a b"},
    {"02 02 01'a' 01'a'", NULL},
    {"0b 0c 02000000 02000000 feff 0700", "-2 7"},
    {"0b 0c 02000000 02000000 0700 feff", NULL},
    {"14 0c 0c000000 0200 81'a' 02 0501 ff", "a 5"},
    {"14 0c 0c000000 0200 0501 0501 ff", NULL},
    {"14 0b 0b000000 0200 0501 0501 ff", NULL},
    /* sorted sets */
    {"03 02 01'a' 03'1.5' 01'b' ff", "b=-inf a=1.5"},
    {"03 01 01'a' fd", NULL},
    {"05 02 01'a' 000000000000f83f 01'b' 0000000000000840", "a=1.5 b=3"},
    {"05 01 01'a' 000000000000f87f", NULL},
    {"05 02 01'a' 000000000000f83f 01'a' 0000000000000840", NULL},
    {"11 14 14000000 0400 81'a' 02 83'1.5' 04 81'b' 02 0301 ff", "a=1.5 b=3"},
    {"11 11 11000000 0300 81'a' 02 83'1.5' 04 0301 ff", NULL},
    {"0c 15 15000000 11000000 0400 00 01'a' 03 f2 02 01'b' 03 f3 ff", NULL},
    {"0c 15 15000000 12000000 0400 00 01'a' 03 f2 02 01'b' 03 f3 ff", "a=1 b=2"},
    /* jobs, and the records behind them */
    {"40 02's1' e803000000000000 a086010000000000 02 02'k1' 02'k2' 01 02'a1'",
     "repeats 1000 100000 s1 key k1 key k2 a1"},
    {"40 01's' e803000000000000 0a00000000000000 00 00", "repeats 1000 10 s"},
    {"40 01's' e803000000000000 0a00000000000000 00 00 fa 13'keydb-subexpire-key' 01'j' "
     "fa 14'keydb-subexpire-when' c2 a0860100",
     "repeats 99990 10 s"},
    {"40 01's' e803000000000000 0a00000000000000 00 00 fa 11'keydb-cron-single' 01'1'", "single 1000 10 s"},
    {"40 01's' e803000000000000 0000000000000000 00 00", NULL}, /* no interval */
    {"40 01's' e803000000000000 ffffffffffffffff 00 00", NULL},
    {"40 01's' e803000000000000 0a00000000000000 02 01'k'", NULL},
    {"40 01's' e803000000000000 0a00000000000000 00 81 00000000ffffffff 01'k'", NULL},
    /* hashes */
    {"04 02 01'a' 01'1' 01'b' 00", "a=1 b="},
    {"04 02 01'a' 01'1' 01'a' 00", NULL},
    {"09 13 02 01'a' 03 02'xyz' 0000 01'b' 00 00 ff", NULL},
    {"09 0f 02 01'a' 03 02'xyz' 0000 01'b' 00 00 ff", "a=xyz b="},
    {"09 0f fe 01'a' 03 02'xyz' 0000 01'b' 00 00 ff", "a=xyz b="},
    {"09 0f 03 01'a' 03 02'xyz' 0000 01'b' 00 00 ff", NULL},
    {"0d 15 15000000 12000000 0400 00 01'a' 03 f2 02 01'b' 03 f3 ff", "a=1 b=2"},
    {"10 13 13000000 0400 81'a' 02 0101 81'b' 02 82'xy' 03 ff", "a=1 b=xy"},
    {"10 13 13000000 0400 81'a' 02 0101 81'a' 02 82'xy' 03 ff", NULL},
    {"16 02 42bc 01'a' 01'1' 00 01'b' 01'2'", "a=1 b=2 a@700"},
    {"18 bc02000000000000 02 02 01'a' 01'1' 00 01'b' 01'2'", "a=1 b=2 a@701"},
    {"18 ffffffffffffffff 02 02 01'a' 01'1' 00 01'b' 01'2'", NULL},
    {"17 16 16000000 0600 81'a' 02 0101 c2bc 02 81'b' 02 0201 0001 ff", "a=1 b=2 a@700"},
    {"19 bc02000000000000 16 16000000 0600 81'a' 02 0101 c2bc 02 81'b' 02 0201 0001 ff", "a=1 b=2 a@700"},
    {"19 bc02000000000000 14 14000000 0500 81'a' 02 0101 c2bc 02 81'b' 02 0201 ff", NULL},
    /* trees of texts */
    {"07 81 91d6e77acb5e7401 0200 0201 0501'a' 0200 0201 0501'c' 0202 0202 0501'x' 05c011 00",
     "{\"a\" : {\"c\" : [\"x\",\"17\"]}}"},
    {"07 81 91d6e77acb5e7401 0200 0201 0501'a' 0201 0501'x' 00", "{\"a\" : \"x\"}"},
    {"07 81 91d6e77acb5e7401 0200 0201 0503'a.b' 0201 0501'x' 00", NULL},
    {"07 81 91d6e77acb5e7401 0200 0202 0501'a' 0201 0501'x' 0501'a' 0201 0501'x' 00", NULL},
    {"07 81 91d6e77acb5e7401 0201 0501'x' 00", "\"x\""},
    /* Types that do not exist. */
    {"08 00", NULL},
    {"1a 00", NULL},
    {"ff 00", NULL},
    {"06 00", NULL},
    {"07 81 0000000000000400 02 05 00", NULL},
    {"40 01'x' 0000000000000000 0000000000000000 00 00", NULL},
};

static bool read_version(int version, struct slice bytes, struct rdb_value *value, struct buffer *shown)
{
    /* In a block of exactly its size, so that the address sanitizer sees a step too far. */
    char *exact = mem_copy(bytes.data, bytes.size);
    char *shrunk = malloc(bytes.size != 0 ? bytes.size : 1);
    struct rdb_reader reader;
    bool good;

    memcpy(shrunk, exact, bytes.size);
    mem_free(exact);
    rdb_reader_init_memory(&reader, slice_make(shrunk, bytes.size));
    reader.version = version;
    good = rdb_payload_read(&reader, &limits, value);
    if (good)
        show_read(shown, value);
    else
        assert_true(reader.error[0] != '\0' && reader.status != STATUS_OK);
    rdb_reader_fini(&reader);
    free(shrunk);
    return good;
}

static bool read_bytes(struct slice bytes, struct rdb_value *value, struct buffer *shown)
{
    return read_version(0, bytes, value, shown);
}

static void examples_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(examples); i++) {
        struct buffer bytes = {0}, shown = {0};
        struct rdb_value value;
        bool good;

        parse_bytes(&bytes, examples[i].bytes);
        good = read_bytes(buffer_slice(&bytes), &value, &shown);
        if (good != (examples[i].shown != NULL) || (good && strcmp(buffer_text(&shown), examples[i].shown) != 0))
            fail_msg("%s: '%s'", examples[i].bytes, good ? buffer_text(&shown) : "refused");
        if (good)
            rdb_value_destroy(&value);
        buffer_fini(&bytes);
        buffer_fini(&shown);
    }
}

/* There is one thread, and the thread sanitizer takes minutes. */
enum { ROUNDS = THREAD_SANITIZER ? 300 : 3000, ROUNDS_DAMAGED = THREAD_SANITIZER ? 4 : 40 };

/* Any byte changed to anything, and any end missing: no harm is done, and accepted values are complete. */
static void damage(int version, struct slice good)
{
    struct buffer bytes = {0}, shown = {0};
    struct rdb_value value;

    buffer_append_slice(&bytes, good);
    for (size_t i = 0; i < good.size; i++) {
        if (read_version(version, slice_make(good.data, i), &value, &shown))
            rdb_value_destroy(&value);
        for (unsigned change = 1; change < 256; change++) {
            bytes.data[i] = (char)(good.data[i] ^ (char)change);
            buffer_clear(&shown);
            if (read_version(version, buffer_slice(&bytes), &value, &shown))
                rdb_value_destroy(&value);
        }
        bytes.data[i] = good.data[i];
    }
    buffer_fini(&bytes);
    buffer_fini(&shown);
}

static void damaged_examples_do_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(examples); i++) {
        struct buffer bytes = {0};

        parse_bytes(&bytes, examples[i].bytes);
        damage(0, buffer_slice(&bytes));
        buffer_fini(&bytes);
    }
}

static void strange_values_are_read_over(void **state)
{
    struct rdb_limits lenient = limits;
    static const char *const strange[] = {
        "07 81 0000000000000400 01 05 02 05 03 00000000 04 0000000000000000 05 03'abc' 00",
    };

    (void)state;
    lenient.skips_strange = true;
    for (size_t i = 0; i < countof(strange); i++) {
        struct buffer bytes = {0};
        struct rdb_reader reader;
        struct rdb_value value;

        parse_bytes(&bytes, strange[i]);
        rdb_reader_init_memory(&reader, buffer_slice(&bytes));
        assert_true(rdb_payload_read(&reader, &lenient, &value));
        assert_true(value.is_strange);
        assert_int_equal(rdb_reader_left(&reader), 0);
        rdb_value_destroy(&value);
        rdb_reader_fini(&reader);
        buffer_fini(&bytes);
    }
}

/* ---------------------------------------------------------------------------------------------- there and back -- */

static struct store *store;
static struct store_counters counters;
static struct access keys;
static struct random random_;

static int setup(void **state)
{
    (void)state;
    random_ = test_random("rdb_value");
    store = store_create(1, 1);
    types_setup(store);
    access_init(&keys, store, &counters);
    access_begin(&keys, 1800000000000, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_destroy(&store);
    return 0;
}

static struct slice random_text(struct buffer *room)
{
    uint64_t kind = random_below(&random_, 8);

    buffer_clear(room);
    if (kind < 3) {
        buffer_append_i64(room, (int64_t)(random_u64(&random_) >> random_below(&random_, 64)) *
                                    (random_below(&random_, 2) != 0 ? -1 : 1));
    } else if (kind < 6) {
        for (uint64_t size = random_below(&random_, kind == 5 ? 300 : 12); size != 0; size--)
            buffer_append_char(room, (char)random_below(&random_, kind == 4 ? 2 : 256));
    } else {
        buffer_append(room, "a text", 1 + random_below(&random_, 5));
    }
    return buffer_slice(room);
}

static void fill_stream(struct stream *stream, uint64_t count)
{
    struct buffer room = {0};

    for (uint64_t i = 1; i <= count; i++) {
        const struct slice pair[] = {i % 3 == 0 ? SLICE("x") : SLICE("f"), random_text(&room)};

        assert_true(
            stream_append(stream, (struct stream_id){10 * i, 0}, pair, 1, &(struct stream_limits){.node_entries = 5}));
    }
    for (uint64_t i = random_below(&random_, 4); i != 0; i--)
        (void)stream_delete(stream, (struct stream_id){10 * (1 + random_below(&random_, count)), 0});
    for (uint64_t i = random_below(&random_, 3); i != 0; i--) {
        struct stream_group *group = stream_group_create(stream, random_text(&room), STREAM_ID_LEAST, 0);
        struct stream_consumer *consumer;

        if (group == NULL)
            continue;
        group->last_id.ms = random_below(&random_, 100);
        group->entries_read = (int64_t)random_below(&random_, 5) - 1;
        consumer = stream_consumer_create(group, SLICE("one"), 77);
        consumer->active_ms = 66;
        (void)stream_consumer_create(group, SLICE("two"), 78);
        for (uint64_t id = random_below(&random_, 5); id != 0; id--)
            stream_pending_assign(group, (struct stream_id){id, 0}, consumer, 0, id);
    }
    buffer_fini(&room);
}

static struct value random_value(enum value_type type)
{
    struct value value = {NULL, ENCODING_RAW};
    uint64_t count = 1 + random_below(&random_, random_below(&random_, 3) == 0 ? 40 : 6);
    struct buffer room = {0}, more = {0};

    if (type == TYPE_LIST)
        value = list_create(&(struct quicklist_limits){.fill = 3, .compress = 1});
    else if (type == TYPE_HASH)
        value = hash_create();
    else if (type == TYPE_ZSET)
        value = zset_create();
    else if (type == TYPE_STREAM)
        value = stream_value(stream_create());
    if (type == TYPE_STREAM)
        fill_stream(stream_of(value), count);
    for (uint64_t i = 0; type != TYPE_STREAM && i < count; i++) {
        struct slice text = random_text(&room), other = random_text(&more);
        const struct slice texts[] = {text, other};

        if (type == TYPE_LIST)
            quicklist_push(list_of(value), QUICKLIST_TAIL, text);
        if (type == TYPE_HASH) {
            hash_expect(&value, &limits.hash, texts, countof(texts));
            (void)hash_put(&value, &limits.hash, text, other);
        }
        if (type == TYPE_ZSET)
            (void)zset_put(&value, &limits.zset, text, (double)random_below(&random_, 20) / 4 - 2);
        if (type == TYPE_SET) {
            if (value.data == NULL)
                value = set_create(&limits.set, text, 1);
            (void)set_add(&value, &limits.set, text);
        }
    }
    buffer_fini(&room);
    buffer_fini(&more);
    return value;
}

static int order_of_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Tables have no order: their texts are compared word by word, sorted. */
static void sort_words(struct buffer *text)
{
    struct {
        char **items;
        size_t count, capacity;
    } words = {0};
    struct buffer sorted = {0};

    buffer_append_char(text, '\0');
    for (char *rest = text->data, *word; (word = strsep(&rest, " ")) != NULL;)
        *ARRAY_PUSH(&words) = word;
    if (words.count != 0)
        qsort(words.items, words.count, sizeof(*words.items), order_of_words);
    for (size_t i = 0; i < words.count; i++) {
        buffer_append_text(&sorted, words.items[i]);
        buffer_append_char(&sorted, ' ');
    }
    ARRAY_FINI(&words);
    buffer_fini(text);
    *text = sorted;
}

static void give_deadlines(struct slice member, void *context)
{
    if (random_below(&random_, 3) == 0)
        change_member_expire(context, member, 1800000000001 + (int64_t)random_below(&random_, 1000000));
}

struct names {
    struct buffer bytes;
    struct slice each[64];
    size_t count;
};

static void note(struct slice member, void *context)
{
    struct names *names = context;

    assert_true(names->count < countof(names->each) && names->bytes.size + member.size <= names->bytes.capacity);
    names->each[names->count++] = slice_make(names->bytes.data + names->bytes.size, member.size);
    buffer_append_slice(&names->bytes, member);
}

static void note_pair(struct slice field, struct slice value, void *context)
{
    (void)value;
    note(field, context);
}

static const struct entry *put(const struct key *key, enum value_type type, struct value value)
{
    struct change change;

    change_begin(&change, &keys, 0, key);
    if (type == TYPE_STRING) {
        struct buffer room = {0};

        change_put_string(&change, random_text(&room), EXPIRE_NEVER);
        buffer_fini(&room);
    } else {
        change_put_value(&change, type, value, EXPIRE_NEVER);
    }
    if ((type == TYPE_SET || type == TYPE_HASH) && random_below(&random_, 2) == 0) {
        struct names names = {.count = 0};

        (void)buffer_reserve(&names.bytes, 64 * 1024);
        if (type == TYPE_SET)
            set_each(value, note, &names);
        else
            hash_each(value, note_pair, &names);
        for (size_t i = 0; i < names.count; i++)
            give_deadlines(names.each[i], &change);
        buffer_fini(&names.bytes);
    }
    change_end(&change, EVENT_GENERIC, NULL);
    return access_probe(&keys, 0, key);
}

static void show_entry(struct buffer *out, const struct entry *entry)
{
    char digits[ENTRY_INT_TEXT_BYTES];

    if (entry->type == TYPE_STRING)
        show(out, entry_string(entry, digits));
    else
        show_value(out, entry->type, entry_value(entry));
    entry_each_member_deadline(entry, show_deadline, out);
}

/* A version that cannot hold all of a stream is not asked to. */
static bool holds_all(const struct entry *entry, int version)
{
    return entry->type != TYPE_STREAM || version >= RDB_VERSION_LISTPACKS || version == 0;
}

static void values_come_back(void **state)
{
    const struct key key = key_make(SLICE("k"));

    (void)state;
    shows_hex = true;
    for (int round = 0; round < ROUNDS; round++) {
        enum value_type type = (enum value_type)random_below(&random_, TYPE_STREAM + 1);
        struct value made = type != TYPE_STRING ? random_value(type) : (struct value){NULL, ENCODING_RAW};
        int version = (int)random_below(&random_, 6) + 8;
        struct rdb_write_options options = {version, version, random_below(&random_, 2) != 0, false};
        struct buffer before = {0}, after = {0};
        const struct entry *entry;
        struct rdb_writer writer;
        struct rdb_value value;
        struct slice body;

        if (version == 8) { /* any */
            version = 0;
            options.least = RDB_VERSION_WRITTEN_LEAST;
            options.most = RDB_VERSION_MOST;
        }
        if (version == 13)
            version = options.least = options.most = RDB_VERSION_VALKEY;
        entry = put(&key, type, made);
        show_entry(&before, entry);
        rdb_writer_init(&writer, &options, NULL);
        rdb_payload_write(&writer, entry);
        assert_true(writer.status == STATUS_OK && (version == 0 || writer.version == version));
        assert_true(rdb_payload_check(buffer_slice(&writer.out), &body));
        assert_true(read_version(version, body, &value, &after));
        if (type == TYPE_SET || type == TYPE_HASH) {
            sort_words(&before);
            sort_words(&after);
        }
        if (holds_all(entry, version) && !slice_equal(buffer_slice(&before), buffer_slice(&after)))
            fail_msg("type %d in version %d:\n%s\n%s", (int)type, version, buffer_text(&before), buffer_text(&after));
        if (round < ROUNDS_DAMAGED)
            damage(version, body);
        rdb_value_destroy(&value);
        writer.out.data[random_below(&random_, writer.out.size)] ^= 4;
        assert_false(rdb_payload_check(buffer_slice(&writer.out), &body));
        rdb_writer_fini(&writer);
        buffer_fini(&before);
        buffer_fini(&after);
    }
    shows_hex = false;
    assert_false(rdb_payload_check(SLICE("123456789"), &(struct slice){NULL, 0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_are_read),
        cmocka_unit_test(damaged_examples_do_no_harm),
        cmocka_unit_test(strange_values_are_read_over),
        cmocka_unit_test_setup_teardown(values_come_back, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
