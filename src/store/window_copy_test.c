/* A large value at the base of a list, in pieces, or rebuilt of what was given in pieces, while the key goes on
 * changing, against what the key was then. */
#include "store/window_copy.h"

#include "base/background.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/test_seed.h"
#include "data/former_groups.h"
#include "data/hash.h"
#include "data/list.h"
#include "data/set.h"
#include "data/stream_value.h"
#include "data/zset.h"
#include "store/lazyfree.h"
#include "store/snapshot_live.h"
#include "store/snapshot_string.h"
#include "store/subkey_ttl.h"
#include "store/undo.h"
#include "store/window.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MEMBERS = 3000, MOST_STEPS = 40, ROUNDS = 150, MOST_ROUNDS = 3000, NOW_MS = 1000, KEY_DEADLINE_MS = 5000000 };
enum { ENTRIES = 100000, LONG_TEXT = LONG_STRING_BYTES + 50000 }; /* nodes of a stream have some hundred entries */

static const struct hash_limits hash_limits = {0, 0};
static const struct set_limits set_limits = {0, 0, 0};
static const struct zset_limits zset_limits = {0, 0};
static const struct quicklist_limits list_limits = {.fill = 1}; /* so that few elements are many blocks */
static const enum value_type types[] = {TYPE_HASH, TYPE_SET, TYPE_ZSET, TYPE_LIST, TYPE_STREAM, TYPE_STRING};
static const struct store_type rows[TYPE_COUNT] = {
    [TYPE_LIST] = {.ops = &list_ops},
    [TYPE_HASH] = {.ops = &hash_ops, .expired_command = "HDEL", .expired_event = "hdel", .expired_class = EVENT_HASH},
    [TYPE_SET] = {.ops = &set_ops, .expired_command = "SREM", .expired_event = "srem", .expired_class = EVENT_SET},
    [TYPE_ZSET] = {.ops = &zset_ops, .expired_command = "ZREM", .expired_event = "zrem", .expired_class = EVENT_ZSET},
    [TYPE_STREAM] = {.ops = &stream_ops},
};

static struct store *store;
static struct store_counters counters;
static struct access access_;
static struct random random_;
static struct gate the_gate;
static struct gate_member member_;
static sem_t woken;
static struct key key;
static struct window_copy *copy, *own_copy;

/* The list of the key. */
static struct key_undo *undos[MOST_STEPS];
static unsigned undo_count;

static unsigned below(unsigned bound)
{
    return (unsigned)random_below(&random_, bound);
}

/* ------------------------------------------------------------------------------------------- what a value is -- */

struct picture {
    uint64_t sum, count, deadlines;
    int64_t expire_ms;
};

static void add(struct picture *picture, struct slice first, struct slice second, double score)
{
    uint64_t bits;

    memcpy(&bits, &score, sizeof(bits));
    picture->sum += (hash_bytes(first.data, first.size) * 3 + hash_bytes(second.data, second.size)) * (bits | 1);
    picture->count++;
}

/* Their order counts. */
static void add_element(struct picture *picture, struct slice text)
{
    picture->sum = picture->sum * 3 + hash_bytes(text.data, text.size);
    picture->count++;
}

static void add_elements(struct value value, struct picture *picture)
{
    char scratch[NUMBER_I64_SPACE];
    struct listpack_value element;
    struct quicklist_iter iter;

    quicklist_iter_init(&iter, list_of(value), 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&iter, &element))
        add_element(picture, listpack_value_text(&element, scratch));
    quicklist_iter_fini(&iter);
}

static void add_pair(struct slice field, struct slice value, void *context)
{
    add(context, field, value, 0);
}

static void add_member(struct slice member, void *context)
{
    add(context, member, SLICE_EMPTY, 0);
}

static void add_deadline(struct slice member, int64_t expire_ms, void *context)
{
    struct picture *picture = context;

    picture->sum += (hash_bytes(member.data, member.size) | 1) * (uint64_t)expire_ms * 5;
    picture->deadlines++;
}

static void add_scored(struct value value, struct picture *picture)
{
    struct slice member;
    struct zset_walk walk;
    double score;

    zset_walk_begin(&walk, value, (struct zset_span){0, zset_count(value)}, false);
    while (zset_walk_next(&walk, &member, &score))
        add(picture, member, SLICE_EMPTY, score);
}

static void add_node(struct slice id, struct slice bytes, struct picture *picture)
{
    add_element(picture, id);
    add_element(picture, bytes);
}

static void add_node_of(struct stream_id id, struct slice bytes, void *context)
{
    char room[STREAM_ID_BYTES];

    add_node(stream_id_encode(id, room), bytes, context);
}

static struct picture picture_of(const struct entry *entry)
{
    struct picture picture = {.expire_ms = entry_expire_ms(entry)};
    char scratch[NUMBER_I64_SPACE];

    if (entry->type == TYPE_STRING)
        add_element(&picture, entry_string(entry, scratch));
    else if (entry->type == TYPE_STREAM)
        stream_each_node(stream_of(entry_value(entry)), add_node_of, &picture);
    else if (entry->type == TYPE_HASH)
        hash_each(entry_value(entry), add_pair, &picture);
    else if (entry->type == TYPE_SET)
        set_each(entry_value(entry), add_member, &picture);
    else if (entry->type == TYPE_LIST)
        add_elements(entry_value(entry), &picture);
    else
        add_scored(entry_value(entry), &picture);
    entry_each_member_deadline(entry, add_deadline, &picture);
    return picture;
}

/* --------------------------------------------------------------------------------------------------- changes -- */

static struct slice name_of(unsigned number, char *room)
{
    return slice_make(room, (size_t)sprintf(room, "member:%u", number));
}

static void put(struct value *value, enum value_type type, struct slice member)
{
    char room[32];

    if (type == TYPE_HASH)
        (void)hash_put(value, &hash_limits, member, slice_make(room, (size_t)sprintf(room, "%u", below(50))));
    else if (type == TYPE_SET)
        (void)set_add(value, &set_limits, member);
    else
        (void)zset_put(value, &zset_limits, member, below(50));
}

static void add_to(struct value *value, struct slice field)
{
    char scratch[NUMBER_I64_SPACE];
    struct slice text;
    int64_t number;

    if (!hash_get(*value, field, scratch, &text))
        return;
    assert_true(number_parse_i64(text, &number));
    hash_add(value, &hash_limits, field, 7, number + 7);
}

static void change_member(struct change *change, enum value_type type, struct value *value, struct slice member)
{
    const struct value_ops *ops = rows[type].ops;

    switch (below(5)) {
    case 0:
        if (ops->count(*value) > 1 && ops->members->remove(value, member))
            change_member_expire(change, member, EXPIRE_NEVER);
        break;
    case 1:
        if (ops->members->has(*value, member))
            change_member_expire(change, member, below(3) == 0 ? EXPIRE_NEVER : NOW_MS + (int64_t)below(1000));
        break;
    case 2:
        if (type == TYPE_HASH)
            add_to(value, member);
        break;
    default:
        put(value, type, member);
    }
    change_keep_value(change, *value);
}

/* Mostly at the ends. */
static void change_list(struct change *change, struct value value)
{
    struct quicklist *list = list_of(value);
    const enum quicklist_end end = below(2) == 0 ? QUICKLIST_HEAD : QUICKLIST_TAIL;
    char room[32];

    if (below(2) == 0 || quicklist_count(list) < 100)
        quicklist_push(list, end, name_of(below(MEMBERS), room));
    else if (below(3) == 0)
        (void)quicklist_delete_range(list, end == QUICKLIST_HEAD ? 0 : -7, 7);
    else if (below(200) == 0)
        (void)quicklist_delete_range(list, 9, 2);
    else
        quicklist_drop(list, end);
    change_keep_value(change, value);
}

static void append_to(struct stream *stream)
{
    struct stream_id id = stream_last_id(stream);
    char room[32];
    const struct slice pairs[2] = {SLICE("field"), name_of(below(MEMBERS), room)};
    const struct stream_limits limits = {.node_entries = 100, .node_bytes = 4096};
    bool is_there;

    id.ms += 1 + below(3);
    is_there = stream_append(stream, id, pairs, 1, &limits);
    assert_true(is_there);
}

static void change_stream(struct change *change, struct value value)
{
    struct stream *stream = stream_of(value);

    if (below(2) == 0)
        append_to(stream);
    else
        (void)stream_delete(stream, (struct stream_id){below(ENTRIES), 0});
    change_keep_value(change, value);
}

/* Bytes are written, appended or cut. */
static void change_text(struct change *change)
{
    const size_t size = entry_string_size(change_entry(change)), at = below((unsigned)size - 10),
                 new_size = below(5) == 0 ? size - 5 + below(10) : size;
    char *bytes = change_edit_part(change, new_size, at, 5);

    memset(bytes + at, (int)('a' + below(26)), 5);
    if (new_size > size)
        memset(bytes + size, 'x', new_size - size);
}

static struct value create_value(enum value_type type)
{
    if (type == TYPE_LIST)
        return list_create(&list_limits);
    if (type == TYPE_STREAM)
        return stream_value(stream_create());
    if (type == TYPE_HASH)
        return hash_create();
    return type == TYPE_SET ? set_create(&set_limits, SLICE("member:0"), MEMBERS) : zset_create();
}

static struct value new_value(enum value_type type, unsigned members)
{
    struct value value = create_value(type);
    char room[32];

    if (type == TYPE_STREAM && members == MEMBERS)
        members = ENTRIES;
    while (members-- != 0) {
        if (type == TYPE_STREAM)
            append_to(stream_of(value));
        else if (type == TYPE_LIST)
            quicklist_push(list_of(value), QUICKLIST_TAIL, name_of(below(MEMBERS), room));
        else
            put(&value, type, name_of(below(MEMBERS), room));
    }
    return value;
}

static void put_new(struct change *change)
{
    const enum value_type type = types[below(countof(types))];
    char *text;

    if (type != TYPE_STRING) {
        change_put_value(change, type, new_value(type, below(4) == 0 ? 9 : MEMBERS), EXPIRE_NEVER);
        return;
    }
    text = mem_alloc(LONG_TEXT);
    memset(text, 't', LONG_TEXT);
    change_put_string(change, slice_make(text, LONG_TEXT), EXPIRE_NEVER);
    mem_free(text);
}

/* The key becomes another value, or goes, or some of its members change. */
static void change_once(void)
{
    struct change change;
    const struct entry *entry;
    char room[32];

    change_begin(&change, &access_, 0, &key);
    entry = change_entry(&change);
    if (entry != NULL && below(30) == 0) {
        change_delete(&change);
    } else if (entry == NULL || below(30) == 0) {
        put_new(&change);
    } else if (below(10) == 0) {
        change_expire(&change, below(2) == 0 ? EXPIRE_NEVER : KEY_DEADLINE_MS + (int64_t)below(100));
    } else {
        const enum value_type type = (enum value_type)entry->type;
        const struct value value_now = type != TYPE_STRING ? entry_value(entry) : (struct value){NULL, ENCODING_RAW};
        struct value value = value_now;

        for (unsigned left = 1 + below(below(8) == 0 ? 1000 : 5); left != 0; left--) {
            if (type == TYPE_STRING)
                change_text(&change);
            else if (type == TYPE_STREAM)
                change_stream(&change, value);
            else if (type == TYPE_LIST)
                change_list(&change, value);
            else
                change_member(&change, type, &value, name_of(below(MEMBERS), room));
        }
    }
    change_end(&change, EVENT_GENERIC, NULL);
}

static void run_operation(void)
{
    undo_begin(&access_);
    for (unsigned left = 1 + below(3); left != 0; left--)
        change_once();
    undos[undo_count] = undo_take(&access_, 0, &key);
    undo_count += undos[undo_count] != NULL;
    undo_end(&access_);
}

/* -------------------------------------------------------------------------------------------------- the test -- */

static unsigned rebuilt[TYPE_COUNT];

struct seen {
    struct picture picture;
    uint64_t announced;
    int64_t first_ms;
    enum value_type type;
    bool are_together, is_whole;
    struct buffer back, text; /* back: if it is not empty, steps from `made` to the base */
    struct value made;        /* a list or stream that was given; text: a string */
    unsigned rests, rests_most;
};

static bool is_in_order(enum value_type type)
{
    return type == TYPE_LIST || type == TYPE_STREAM || type == TYPE_STRING;
}

static bool begin(struct access *access, unsigned db, const struct entry *entry, const struct snapshot_value *value,
                  void *context)
{
    struct seen *seen = context;

    (void)access;
    assert_int_equal(db, 0);
    assert_true(slice_equal(entry_key(entry), key.name) && (entry->flags & ENTRY_MEMBERS) == 0);
    seen->type = (enum value_type)entry->type;
    if (seen->type == TYPE_LIST || seen->type == TYPE_STREAM)
        seen->made = create_value(seen->type);
    seen->announced = value->count;
    seen->first_ms = value->first_ms;
    return seen->are_together && !is_in_order(seen->type);
}

static void note_element(const struct former_element *element, int64_t expire_ms, void *context)
{
    struct seen *seen = context;

    if (seen->type == TYPE_STRING) {
        buffer_append_slice(&seen->text, element->first);
    } else if (seen->type == TYPE_STREAM && element->part == STREAM_PART_NODE) {
        assert_true(stream_load_node(stream_of(seen->made), stream_id_decode(element->first.data), element->second));
        add_node(element->first, element->second, &seen->picture);
    } else if (seen->type == TYPE_LIST) {
        quicklist_push(list_of(seen->made), QUICKLIST_TAIL, element->first);
        add_element(&seen->picture, element->first);
    } else if (seen->type != TYPE_STREAM) {
        add(&seen->picture, element->first, element->second, element->score);
    }
    if (expire_ms == EXPIRE_NEVER)
        return;
    assert_true(seen->are_together && expire_ms >= seen->first_ms);
    add_deadline(element->first, expire_ms, &seen->picture);
}

static void note_deadline(struct slice member, int64_t expire_ms, void *context)
{
    struct seen *seen = context;

    assert_true(!seen->are_together && seen->first_ms != EXPIRE_NEVER && expire_ms >= seen->first_ms);
    add_deadline(member, expire_ms, &seen->picture);
}

static void put_made(struct change *change, void *context)
{
    struct seen *seen = context;

    if (seen->type == TYPE_STRING)
        change_put_string(change, buffer_slice(&seen->text), EXPIRE_NEVER);
    else
        change_put_value(change, seen->type, seen->made, EXPIRE_NEVER);
    seen->made.data = NULL;
}

static void end(void *context)
{
    struct seen *seen = context;

    seen->is_whole = true;
    if (seen->back.size == 0 && seen->type == TYPE_STRING)
        add_element(&seen->picture, buffer_slice(&seen->text));
    if (seen->back.size == 0)
        return;
    seen->picture = picture_of(window_copy_rebuild(own_copy, put_made, seen, buffer_slice(&seen->back)));
    window_copy_release(own_copy);
    rebuilt[seen->type]++;
}

static void seen_fini(struct seen *seen)
{
    if (seen->made.data != NULL)
        rows[seen->type].ops->destroy(seen->made);
    buffer_fini(&seen->text);
    buffer_fini(&seen->back);
}

static void wake(void *context)
{
    (void)context;
    (void)sem_post(&woken);
}

static uint32_t stripe;

static void hold(void)
{
    uint32_t busy;

    assert_true(gate_enter(&member_));
    access_begin(&access_, NOW_MS, false);
    stripe = access_stripe_of(&access_, &key);
    assert_true(access_lock(&access_, &stripe, 1, &busy));
}

static void let_go(void)
{
    access_unlock(&access_, &stripe, 1);
    gate_leave(&member_);
}

/* Between pieces: operations of the list are taken back, others come, what they have kept is freed. */
static bool change_meanwhile(void *context)
{
    struct seen *seen = context;

    assert_int_equal(spinlock_held_count, 0);
    hold();
    while (undo_count != 0 && below(4) == 0) {
        undo_apply(&access_, 0, &key, undos[--undo_count]);
        key_undo_release(&access_, &undos[undo_count]);
    }
    if (undo_count < MOST_STEPS && below(2) == 0)
        run_operation();
    if (undo_count != 0 && below(30) == 0) { /* the oldest ones are settled */
        while (undo_count != 0)
            key_undo_release(&access_, &undos[--undo_count]);
    }
    let_go();
    return ++seen->rests != seen->rests_most;
}

static struct live_earlier *leave_base(struct live_snapshot *live, int64_t *expire_ms, struct buffer *back)
{
    struct merge_step steps[MOST_STEPS] = {{0}};
    struct window_key *known = mem_alloc_zero(sizeof(*known) + key.name.size);
    struct live_earlier *base;

    for (unsigned i = 0; i < undo_count; i++)
        steps[i].undo = (struct merge_undo *)undos[i];
    known->record = (struct merge_record){.steps = steps, .count = undo_count};
    known->hash = key.hash;
    known->name_size = (uint32_t)key.name.size;
    memcpy(known->name, key.name.data, key.name.size);
    base = window_copy_leave(copy, &access_, known, live, expire_ms, back);
    mem_free(known);
    return base;
}

static void own(void)
{
    assert_true(gate_try_own(&member_, 100));
    access_begin(&access_, NOW_MS, true);
}

static void visit(struct live_snapshot *live, struct live_earlier *base, struct seen *seen)
{
    const struct snapshot_visitor visitor = {.begin = begin,
                                             .element = note_element,
                                             .deadline = note_deadline,
                                             .end = end,
                                             .rest = change_meanwhile,
                                             .context = seen,
                                             .sees_expired = true};

    live_visit_earlier(live, &base, below(20) == 0 ? NULL : &visitor);
    assert_null(base);
}

/* The base of some operations is left at the moment. Returns whether it was given whole. */
static bool run(void)
{
    const struct live_options options = {.gate = &the_gate, .threads = 1};
    struct seen seen = {.are_together = below(2) == 0, .rests_most = below(10) == 0 ? 3 : 0};
    struct live_snapshot *live;
    struct live_earlier *base;
    struct picture then;
    int64_t expire_ms;
    unsigned operations = 1 + below(MOST_STEPS / 2);

    own();
    undo_count = 0;
    while (access_look(&access_, 0, &key) == NULL)
        change_once();
    then = picture_of(access_look(&access_, 0, &key));
    while (operations-- != 0)
        run_operation();
    live = live_snapshot_begin(&access_, &options);
    live_snapshot_adopt(live);
    base = leave_base(live, &expire_ms, &seen.back);
    gate_open(&member_);
    lazyfree_after_release(&access_);
    if (base != NULL)
        visit(live, base, &seen);
    live_snapshot_end(&live);
    hold();
    while (undo_count != 0)
        key_undo_release(&access_, &undos[--undo_count]);
    let_go();
    seen_fini(&seen);
    if (!seen.is_whole)
        return false;
    assert_int_equal(then.expire_ms, expire_ms);
    then.expire_ms = seen.picture.expire_ms = 0; /* not of a key's */
    assert_memory_equal(&seen.picture, &then, sizeof(then));
    assert_true(is_in_order(seen.type) || seen.announced == then.count);
    assert_true((seen.first_ms != EXPIRE_NEVER) == (then.deadlines != 0));
    return true;
}

static void start(void)
{
    random_ = test_random("window_copy");
    store = store_create(2, 1);
    for (unsigned i = 0; i < countof(types); i++)
        store_set_type(store, types[i], &rows[types[i]]);
    access_init(&access_, store, &counters);
    (void)sem_init(&woken, 0, 0);
    gate_init(&the_gate);
    gate_join(&the_gate, &member_, wake, NULL);
    gate_traffic_begin();
    own();
    copy = window_copy_create(store);
    own_copy = window_copy_create(store);
    gate_open(&member_);
    key = key_make(SLICE("key"));
}

static void finish(void)
{
    own();
    window_copy_destroy(&copy);
    window_copy_destroy(&own_copy);
    gate_open(&member_);
    gate_traffic_end();
    gate_part(&member_);
    undo_fini(&access_);
    background_drain();
    store_destroy(&store);
    gate_fini(&the_gate);
}

static bool each_was_rebuilt(void)
{
    return rebuilt[TYPE_LIST] != 0 && rebuilt[TYPE_STREAM] != 0 && rebuilt[TYPE_STRING] != 0;
}

/* A list is rebuilt in one round of forty: what chance has not brought within ROUNDS is waited for. */
static void a_large_base_is_given_in_pieces(void **state)
{
    unsigned whole = 0, round = 0;

    (void)state;
    start();
    for (; round < ROUNDS || (!each_was_rebuilt() && round < MOST_ROUNDS); round++)
        whole += run();
    assert_true(whole > round / 2);
    assert_true(each_was_rebuilt());
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_base_is_given_in_pieces),
    };

    mem_thread_start();
    hash_setup();
    return cmocka_run_group_tests_name("window_copy", tests, NULL, NULL);
}
