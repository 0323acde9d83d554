/* Snapshots of data that four threads change meanwhile, against what the keys were at the moment: each key of the
 * moment is visited once, as it was, and no other one. */
#include "store/snapshot_live.h"

#include "base/background.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "base/number.h"
#include "base/test_seed.h"
#include "base/thread.h"
#include "data/former_nested.h"
#include "data/hash.h"
#include "store/access_at.h"
#include "store/defrag.h"
#include "store/lazyfree.h"
#include "store/snapshot_string.h"
#include "store/subkey_ttl.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    WRITERS = 4,
    STRIPES = 4,
    DATABASES = 3,
    UNUSED_DATABASE = 5,
    KEYS = 4000,
    LARGE_KEYS = 24, /* hashes of these keys are large, or nested ones */
    NESTED_PART = 3, /* one key of so many of them */
    LARGE_FIELDS = 3000,
    LONG_BYTES = 5000,
    LONG_HOLD_US = 500,
    NOW_MS = 1000,
    LONG_KEYS = 2, /* strings of the keys behind those are long: they are changed in place */
    LONG_MOST_BYTES = 2 << 20
};

static const struct hash_limits limits = {8, 64};
static const struct store_type hash_row = {.ops = &hash_ops,
                                           .expired_command = "HDEL",
                                           .expired_event = "hexpired",
                                           .expired_class = EVENT_HASH};

static const struct store_type nested_row = {.ops = &nested_ops};

struct player {
    struct gate_member member;
    sem_t woken;
    struct access access;
    struct store_counters counters;
    struct random random;
    struct thread thread;
};

static struct gate the_gate;
static struct store *store;
static struct player players[1 + WRITERS]; /* the first one owns the gate */
static _Atomic bool is_over;
static _Atomic bool thins_out; /* most changes are deletions, so that tables shrink */

/* What was visited, and what should be: a number of the value of each key; 0: it is not there. */
struct picture {
    uint64_t values[DATABASES][KEYS];
};
static struct picture expected[ENTRY_MARKS], seen[ENTRY_MARKS];

static void wake(void *context)
{
    (void)sem_post(&((struct player *)context)->woken);
}

static unsigned below(struct player *player, unsigned bound)
{
    return (unsigned)random_below(&player->random, bound);
}

static struct key name_key(unsigned number, char room[16])
{
    return key_make(slice_make(room, (size_t)snprintf(room, 16, "key:%u", number)));
}

/* ------------------------------------------------------------------------------------------------- the pictures -- */

static void add_pair(struct slice field, struct slice value, void *context)
{
    *(uint64_t *)context += hash_bytes(field.data, field.size) * 3 + hash_bytes(value.data, value.size);
}

static void add_deadline(struct slice field, int64_t expire_ms, void *context)
{
    *(uint64_t *)context += (hash_bytes(field.data, field.size) | 1) * (uint64_t)expire_ms * 5;
}

static uint64_t number_without_value(const struct entry *entry)
{
    return (uint64_t)entry_expire_ms(entry) * 31 + entry_version(entry) * 17 + entry->type + 1;
}

static bool is_long(unsigned number)
{
    return number >= LARGE_KEYS && number < LARGE_KEYS + LONG_KEYS;
}

static uint64_t number_of_node(struct slice name, uint64_t count)
{
    return hash_bytes(name.data, name.size) * 3 + count * 7;
}

static void add_node(struct slice name, const struct nested *node, void *context)
{
    const uint64_t count = nested_count(node);
    uint64_t *number = context;

    *number += number_of_node(name, count);
    if (nested_kind(node) == NESTED_TREE)
        nested_each(node, add_node, number);
    for (uint64_t i = 0; nested_kind(node) != NESTED_TREE && i < count; i++)
        *number += hash_bytes(nested_text(node, i).data, nested_text(node, i).size);
}

static uint64_t number_of(const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    uint64_t number = number_without_value(entry);

    if (entry->type == TYPE_HASH) {
        hash_each(entry_value(entry), add_pair, &number);
        entry_each_member_deadline(entry, add_deadline, &number);
    } else if (entry->type == TYPE_NESTED) {
        add_node(SLICE_EMPTY, nested_find(entry_value(entry), SLICE_EMPTY), &number);
    } else {
        const struct slice text = entry_string(entry, scratch);

        number += hash_bytes(text.data, text.size);
    }
    return number | 1;
}

static unsigned number_of_name(struct slice name)
{
    int64_t number;

    assert_true(number_parse_i64(slice_make(name.data + 4, name.size - 4), &number) && number < KEYS);
    return (unsigned)number;
}

static void note(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct picture *picture = context;
    uint64_t *value = &picture->values[db][number_of_name(entry_key(entry))];

    (void)access;
    assert_true(*value == 0); /* once */
    *value = number_of(entry);
}

/* By what changes of a key change. */
static bool is_chosen(const struct snapshot_choice *choice, const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    const bool has_deadline = entry_expire_ms(entry) != EXPIRE_NEVER;

    (void)choice;
    if (entry->type != TYPE_STRING)
        return has_deadline;
    return has_deadline == (entry_string(entry, scratch).size % 2 == 0);
}

static const struct snapshot_choice some_keys = {.has = is_chosen};

static void note_chosen(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    if (is_chosen(&some_keys, entry))
        note(access, db, entry, context);
}

/* choice: these keys; NULL: all. */
static void take_picture(struct player *player, const struct snapshot_choice *choice, struct picture *picture)
{
    const struct access_visitor visitor = {.visit = choice != NULL ? note_chosen : note, .context = picture};

    memset(picture, 0, sizeof(*picture));
    for (unsigned db = 0; db < DATABASES; db++)
        access_each(&player->access, db, &visitor);
}

/* ------------------------------------------------------------------------------------------------------- writers -- */

static void put_text(struct player *player, struct change *change)
{
    char text[LONG_BYTES];
    const size_t size = below(player, 20) == 0 ? below(player, LONG_BYTES) + 1 : below(player, 90) + 1;

    memset(text, 'a' + (int)below(player, 26), size);
    change_put_string(change, slice_make(text, size), below(player, 3) == 0 ? (int64_t)1 << 40 : EXPIRE_KEEP);
}

static void edit_text(struct player *player, struct change *change)
{
    const struct entry *entry = change_entry(change);
    const size_t size = entry != NULL ? entry_string_size(entry) : 0;
    char *bytes = change_edit_string(change, size + below(player, 9) + 1);

    bytes[0] = (char)('A' + (int)below(player, 26));
    bytes[size] = '!';
}

/* A few bytes anywhere, each of them announced. */
static void edit_fields(struct player *player, struct change *change, size_t size)
{
    char *bytes = change_edit_part(change, size, 0, 0);

    for (unsigned i = 0; i < 3 && size != 0; i++) {
        const size_t at = below(player, (unsigned)size);

        change_edit_also(change, at, 1);
        bytes[at]++;
    }
}

static void write_part(struct player *player, struct change *change, size_t size, size_t offset, size_t written)
{
    char *bytes = change_edit_part(change, MAX(size, offset + written), offset, written);

    if (written != 0)
        memset(bytes + offset, 'a' + (int)below(player, 26), written);
}

static void change_long(struct player *player, struct change *change)
{
    const struct entry *entry = change_entry(change);
    const size_t size = entry != NULL && entry->type == TYPE_STRING ? entry_string_size(entry) : 0;
    const unsigned part = below(player, below(player, 8) == 0 ? 300000 : 20);

    if (entry != NULL && entry->type != TYPE_STRING)
        change_put_string(change, SLICE("short"), EXPIRE_NEVER);
    else if (size < LONG_MOST_BYTES / 2)
        write_part(player, change, size, LONG_MOST_BYTES / 2 + below(player, LONG_MOST_BYTES / 4), part);
    else if (below(player, 40) == 0)
        change_put_string(change, SLICE("short"), EXPIRE_KEEP);
    else if (below(player, 40) == 0)
        change_delete(change);
    else if (below(player, 10) == 0)
        (void)change_edit_part(change, size - part, 0, 0); /* it is cut */
    else if (below(player, 4) == 0)
        write_part(player, change, size, size, size < LONG_MOST_BYTES ? part : 0); /* an append */
    else if (below(player, 3) == 0)
        edit_fields(player, change, size);
    else
        write_part(player, change, size, below(player, (unsigned)size), part);
}

static void put_field(struct player *player, struct change *change)
{
    const struct entry *entry = change_entry(change);
    const bool is_hash = entry != NULL && entry->type == TYPE_HASH;
    const bool is_large = number_of_name(change->key->name) < LARGE_KEYS && (!is_hash || below(player, 4) == 0);
    struct value hash = is_hash ? entry_value(entry) : hash_create();
    char field[16], value[16];

    for (unsigned i = is_large ? 600 : below(player, 4) + 1; i != 0; i--) {
        const unsigned number = below(player, is_large ? LARGE_FIELDS : 30);
        const struct slice name = slice_make(field, (size_t)snprintf(field, 16, "f%u", number));

        if (is_hash && hash_count(hash) > 1 && below(player, 3) == 0) {
            (void)hash_remove(&hash, name);
            change_member_expire(change, name, EXPIRE_NEVER);
        } else {
            (void)hash_put(&hash, &limits, name,
                           slice_make(value, (size_t)snprintf(value, 16, "v%u", below(player, 99))));
        }
    }
    if (is_hash)
        change_keep_value(change, hash);
    else
        change_put_value(change, TYPE_HASH, hash, EXPIRE_KEEP);
}

static bool is_nested(const struct change *change)
{
    const struct entry *entry = change_entry(change);
    const unsigned number = number_of_name(change->key->name);

    return entry != NULL ? entry->type == TYPE_NESTED : number < LARGE_KEYS && number % NESTED_PART == 0;
}

/* Mostly leaves; seldom one above them, so what is below it goes. */
static struct slice random_path(struct player *player, char room[32])
{
    const unsigned top = below(player, 5), middle = below(player, 5), leaf = below(player, LARGE_FIELDS / 20);
    const unsigned what = below(player, 4000);
    int size;

    if (what == 0)
        return SLICE_EMPTY;
    if (what < 10)
        size = snprintf(room, 32, "a%u", top);
    else if (what < 40)
        size = snprintf(room, 32, "a%u.b%u", top, middle);
    else
        size = snprintf(room, 32, "a%u.b%u.c%u", top, middle, leaf);
    return slice_make(room, (size_t)size);
}

static void put_path(struct player *player, const struct change *change, struct value *value)
{
    char path[32], text[16];
    const struct slice one = slice_make(text, (size_t)snprintf(text, 16, "v%u", below(player, 99)));
    const struct slice texts[] = {one, SLICE("another"), one, one};
    struct value replaced;

    (void)nested_put(value, random_path(player, path), texts, below(player, 9) == 0 ? 4 : 1, &replaced);
    if (replaced.data != NULL)
        lazyfree_of_part(change, &nested_ops, replaced);
}

static void put_paths(struct player *player, struct change *change)
{
    const struct entry *entry = change_entry(change);
    struct value value = entry != NULL ? entry_value(entry) : nested_create();

    for (unsigned i = entry == NULL || below(player, 4) == 0 ? 600 : below(player, 4) + 1; i != 0; i--)
        put_path(player, change, &value);
    if (entry != NULL)
        change_keep_value(change, value);
    else
        change_put_value(change, TYPE_NESTED, value, EXPIRE_KEEP);
}

static void put_deadline(struct change *change, struct value hash, unsigned number, int64_t expire_ms)
{
    char name[16], scratch[NUMBER_I64_SPACE];
    const struct slice field = slice_make(name, (size_t)snprintf(name, 16, "f%u", number));
    struct slice value;

    if (hash_get(hash, field, scratch, &value))
        change_member_expire(change, field, expire_ms);
}

/* Of some fields of the hash, of a single one, or all of them go. */
static void put_deadlines(struct player *player, struct change *change, struct value hash)
{
    const bool is_large = number_of_name(change->key->name) < LARGE_KEYS;
    const unsigned fields = is_large ? LARGE_FIELDS : 30, what = below(player, 5);
    const unsigned count = what == 0 ? fields : what == 1 ? 1 : below(player, fields / 5) + 1;

    for (unsigned i = 0; i < count; i++) {
        if (what == 0 || below(player, 3) == 0)
            put_deadline(change, hash, what == 0 ? i : below(player, fields), EXPIRE_NEVER);
        else
            put_deadline(change, hash, below(player, fields),
                         below(player, 4) == 0 ? NOW_MS - 100 : NOW_MS + below(player, 1000));
    }
}

static void change_key(struct player *player, struct change *change)
{
    const struct entry *entry = change_entry(change);

    switch (atomic_load(&thins_out) ? MIN(below(player, 30), 1U) : below(player, 8)) {
    case 0:
        change_put_int(change, (int64_t)below(player, 1000), EXPIRE_NEVER);
        break;
    case 1:
        if (entry != NULL)
            change_delete(change);
        break;
    case 2:
        if (entry != NULL)
            change_expire(change, entry_expire_ms(entry) == EXPIRE_NEVER ? (int64_t)1 << 41 : EXPIRE_NEVER);
        break;
    case 3:
        if (entry != NULL && entry_is_int(entry))
            change_add_int(change, 7);
        break;
    case 4:
    case 5:
        if (is_nested(change))
            put_paths(player, change);
        else
            put_field(player, change);
        break;
    case 6:
        if (entry != NULL && entry->type == TYPE_HASH)
            put_deadlines(player, change, entry_value(entry));
        else if (entry == NULL || entry->type == TYPE_STRING)
            edit_text(player, change);
        break;
    default:
        put_text(player, change);
    }
}

static void copy_key(struct access *access, const struct entry *from, unsigned to_db, const struct key *to_key)
{
    struct change to;

    change_begin(&to, access, to_db, to_key);
    change_copy_value(&to, from, EXPIRE_NEVER);
    change_end(&to, EVENT_GENERIC, NULL);
}

/* The value of one key becomes that of another one, too or alone, which may be in another stripe and database. */
static void rename_key(struct player *player, const struct key *from_key, const struct key *to_key)
{
    const unsigned from_db = below(player, DATABASES), to_db = below(player, DATABASES);
    struct access *access = &player->access;
    uint32_t stripes[2] = {access_stripe_of(access, from_key), access_stripe_of(access, to_key)}, busy;
    const uint32_t count = stripes[0] == stripes[1] ? 1 : 2;
    struct change from, to;

    if (stripes[0] > stripes[1]) {
        stripes[0] = stripes[1];
        stripes[1] = access_stripe_of(access, from_key);
    }
    if (!access_lock(access, stripes, count, &busy))
        return;
    if (access_find(access, from_db, from_key) != NULL) {
        if (access_find(access, to_db, to_key) != NULL)
            (void)access_delete(access, to_db, to_key);
        if (below(player, 3) == 0) {
            copy_key(access, access_find(access, from_db, from_key), to_db, to_key);
            access_unlock(access, stripes, count);
            return;
        }
        change_begin(&from, access, from_db, from_key);
        change_begin(&to, access, to_db, to_key);
        change_move_value(&to, &from, EXPIRE_NEVER);
        change_end(&from, EVENT_GENERIC, NULL);
        change_end(&to, EVENT_GENERIC, NULL);
    }
    access_unlock(access, stripes, count);
}

static void enter(struct player *player)
{
    while (!gate_enter(&player->member))
        while (sem_wait(&player->woken) != 0)
            ;
}

static void write_once(struct player *player)
{
    char room[16], other_room[16];
    const unsigned chosen = below(player, 80) == 0 ? LARGE_KEYS + below(player, LONG_KEYS)
                                                   : below(player, below(player, 4) == 0 ? LARGE_KEYS : KEYS);
    const struct key key = name_key(chosen, room);
    const struct key other = name_key(is_long(chosen) ? LARGE_KEYS + below(player, LONG_KEYS)
                                                      : below(player, LARGE_KEYS),
                                      other_room);
    const unsigned db = below(player, DATABASES);
    struct access *access = &player->access;
    uint32_t stripe = access_stripe_of(access, &key), busy;
    struct change change;

    enter(player);
    access_begin(access, NOW_MS, false);
    if (below(player, 20) == 0 && !slice_equal(key.name, other.name)) {
        rename_key(player, &key, &other);
    } else if (access_lock(access, &stripe, 1, &busy)) {
        if (below(player, 10) == 0)
            (void)access_set_version(access, db, &key, NULL, below(player, 5));
        (void)access_find(access, db, &key);
        change_begin(&change, access, db, &key);
        if (below(player, 10) == 0) {
            if (below(player, 2) == 0) /* both are allowed */
                change_abandon(&change);
        } else {
            if (is_long(number_of_name(key.name)))
                change_long(player, &change);
            else
                change_key(player, &change);
            change_end(&change, EVENT_GENERIC, NULL);
            access_expire_members(access, db, &key);
        }
        access_unlock(access, &stripe, 1);
    }
    gate_leave(&player->member);
}

static void writer(void *argument)
{
    struct player *player = argument;

    while (!atomic_load(&is_over))
        write_once(player);
    gate_rest(&player->member);
}

/* ---------------------------------------------------------------------------------------------------- the thread -- */

/* One of the threads. */
struct part {
    struct saving *saving;
    struct random random;
    unsigned rests;
    uint64_t *large; /* the number of the large value that is visited */
    uint64_t left;   /* elements of it */
    int64_t first_ms;
    bool are_together; /* its deadlines come with the elements */
    bool is_string;
    struct buffer text; /* of a long string, so far */
    unsigned key_count, large_count, nested_count, long_count, large_with_deadlines;
    bool is_done;
};

struct saving {
    struct thread thread;
    struct live_snapshot *live;
    struct picture *picture; /* each thread writes the values of its keys */
    struct random random;
    const struct snapshot_choice *choice;
    bool is_cut;       /* one of the threads stops in the middle */
    unsigned cut_part; /* that one */
    bool is_whole;
    unsigned large_count, nested_count, long_count, large_with_deadlines;
    unsigned together; /* how many times several threads had keys */
    struct part parts[SNAPSHOT_THREADS_MOST];
};

static bool rest(void *context)
{
    struct part *part = context;

    if (random_below(&part->random, 8) == 0)
        (void)usleep(200); /* others get on */
    return !part->saving->is_cut || part != &part->saving->parts[part->saving->cut_part] ||
           ++part->rests < 2; /* each has a stripe at least */
}

static void note_saved(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct part *part = context;

    assert_true(spinlock_held_count == 0); /* nobody waits for a writer */
    assert_true(part->saving->picture->values[db][number_of_name(entry_key(entry))] == 0); /* nobody else had it */
    note(access, db, entry, part->saving->picture);
    part->key_count++;
}

static bool begin_large(struct access *access, unsigned db, const struct entry *entry,
                        const struct snapshot_value *value, void *context)
{
    struct part *part = context;

    (void)access;
    part->large = &part->saving->picture->values[db][number_of_name(entry_key(entry))];
    part->left = value->count;
    part->is_string = entry->type == TYPE_STRING;
    buffer_clear(&part->text);
    assert_true(*part->large == 0);
    assert_true(entry->type == TYPE_HASH || entry->type == TYPE_NESTED || part->is_string);
    part->nested_count += entry->type == TYPE_NESTED;
    *part->large = number_without_value(entry);
    part->first_ms = value->first_ms;
    part->are_together = random_below(&part->random, 2) == 0;
    part->large_with_deadlines += value->first_ms != EXPIRE_NEVER;
    return part->are_together;
}

static void note_nested(const struct former_element *element, struct part *part)
{
    const bool is_node = element->part == NESTED_PART_TREE || element->part == NESTED_PART_LIST;
    struct nested_part_head head = {1};

    part->left -= element->part == NESTED_PART_TEXT ? 2 : 1; /* a node and its text */
    if (is_node)
        memcpy(&head, element->second.data, sizeof(head));
    else
        *part->large += hash_bytes(element->second.data, element->second.size);
    if (element->part != NESTED_PART_ITEM)
        *part->large += number_of_node(element->first, head.count);
}

static void note_element(const struct former_element *element, int64_t expire_ms, void *context)
{
    struct part *part = context;

    assert_true(spinlock_held_count == 0 && part->left != 0);
    if (part->is_string) {
        part->left -= element->first.size;
        buffer_append_slice(&part->text, element->first);
        return;
    }
    if (element->part != 0) {
        note_nested(element, part);
        return;
    }
    part->left--;
    add_pair(element->first, element->second, part->large);
    if (expire_ms == EXPIRE_NEVER)
        return;
    assert_true(part->are_together && part->first_ms != EXPIRE_NEVER && expire_ms >= part->first_ms);
    add_deadline(element->first, expire_ms, part->large);
}

static void note_deadline(struct slice field, int64_t expire_ms, void *context)
{
    struct part *part = context;

    assert_true(spinlock_held_count == 0 && !part->are_together && part->left == 0);
    assert_true(part->first_ms != EXPIRE_NEVER && expire_ms >= part->first_ms);
    add_deadline(field, expire_ms, part->large);
}

static void end_large(void *context)
{
    struct part *part = context;

    assert_true(part->left == 0);
    if (part->is_string) {
        *part->large += hash_bytes(part->text.data, part->text.size);
        part->long_count++;
    } else {
        part->large_count++;
    }
    *part->large |= 1;
}

static void end_part(void *context)
{
    struct part *part = context;

    assert_false(part->is_done);
    part->is_done = true;
}

/* By as many threads as it has, or fewer. */
static void save(void *argument)
{
    struct saving *saving = argument;
    struct snapshot *keys;
    struct snapshot_visitor visitors[SNAPSHOT_THREADS_MOST];
    unsigned count, busy = 0;

    live_snapshot_adopt(saving->live);
    keys = live_snapshot_keys(saving->live);
    memset(saving->picture, 0, sizeof(*saving->picture));
    count = 1 + (unsigned)random_below(&saving->random, snapshot_threads(keys));
    saving->cut_part = (unsigned)random_below(&saving->random, count);
    for (unsigned i = 0; i < count; i++) {
        saving->parts[i] = (struct part){.saving = saving};
        random_seed(&saving->parts[i].random, random_u64(&saving->random));
        visitors[i] = (struct snapshot_visitor){.visit = note_saved,
                                                .begin = begin_large,
                                                .element = note_element,
                                                .deadline = note_deadline,
                                                .end = end_large,
                                                .rest = rest,
                                                .done = end_part,
                                                .context = &saving->parts[i]};
    }
    saving->is_whole = snapshot_each_by(keys, visitors, count);
    for (unsigned i = 0; i < count; i++) {
        assert_true(saving->parts[i].is_done);
        saving->large_count += saving->parts[i].large_count;
        saving->nested_count += saving->parts[i].nested_count;
        saving->large_with_deadlines += saving->parts[i].large_with_deadlines;
        saving->long_count += saving->parts[i].long_count;
        buffer_fini(&saving->parts[i].text);
        busy += saving->parts[i].key_count != 0;
    }
    saving->together += busy > 1;
    assert_true(live_snapshot_costs(saving->live).kept_bytes == 0);
    live_snapshot_end(&saving->live);
}

/* --------------------------------------------------------------------------------------------------------- tests -- */

static void own(struct player *owner)
{
    while (!gate_try_own(&owner->member, 100))
        while (sem_wait(&owner->woken) != 0)
            ;
    access_begin(&owner->access, NOW_MS, true);
}

static void shake(struct player *owner)
{
    own(owner);
    if (below(owner, 3) != 0)
        access_swap_db(&owner->access, below(owner, DATABASES), below(owner, DATABASES));
    else
        access_flush_db(&owner->access, below(owner, DATABASES), below(owner, 2) == 0);
    gate_open(&owner->member);
}

static void setup(const char *name)
{
    struct random random = test_random(name);

    store = store_create(STRIPES, UNUSED_DATABASE + 2);
    store_set_type(store, TYPE_HASH, &hash_row);
    store_set_type(store, TYPE_NESTED, &nested_row);
    gate_init(&the_gate);
    atomic_store(&is_over, false);
    for (unsigned i = 0; i < countof(players); i++) {
        struct player *player = &players[i];

        memset(player, 0, sizeof(*player));
        random_seed(&player->random, random_u64(&random));
        (void)sem_init(&player->woken, 0, 0);
        access_init(&player->access, store, &player->counters);
        gate_join(&the_gate, &player->member, wake, player);
    }
    gate_traffic_begin();
    for (unsigned i = 1; i < countof(players); i++)
        thread_start(&players[i].thread, "writer", writer, &players[i]);
}

static void stop_writers(void)
{
    atomic_store(&is_over, true);
    for (unsigned i = 1; i < countof(players); i++)
        thread_join(&players[i].thread);
}

static void teardown(void)
{
    stop_writers();
    gate_traffic_end();
    for (unsigned i = 0; i < countof(players); i++) {
        lazyfree_after_release(&players[i].access); /* of one who only held stripes at the gate */
        gate_part(&players[i].member);
    }
    background_drain();
    store_destroy(&store);
    gate_fini(&the_gate);
}

static struct live_snapshot *begin_at_gate(struct player *owner, struct saving *saving, unsigned i)
{
    const struct live_options options = {.gate = &the_gate, .threads = 1 + below(owner, 4), .choice = saving->choice};

    take_picture(owner, saving->choice, &expected[i]);
    saving->picture = &seen[i];
    random_seed(&saving->random, random_u64(&owner->random));
    saving->live = live_snapshot_begin(&owner->access, &options);
    assert_non_null(saving->live);
    return saving->live;
}

/* The thread may have ended it when this returns: only live_snapshot_cancel takes the result then. */
static struct live_snapshot *begin(struct player *owner, struct saving *saving, unsigned i)
{
    struct live_snapshot *live;

    own(owner);
    atomic_store(&thins_out, below(owner, 3) == 0);
    live = begin_at_gate(owner, saving, i);
    gate_open(&owner->member);
    thread_start(&saving->thread, "snapshot", save, saving);
    return live;
}

static unsigned rounds(unsigned most)
{
    return THREAD_SANITIZER ? most / 10 : most;
}

static void each_key_is_visited_as_it_was(void **state)
{
    struct saving saving = {.live = NULL};

    (void)state;
    setup("each_key_is_visited_as_it_was");
    for (unsigned round = 0; round < rounds(150); round++) {
        (void)begin(&players[0], &saving, 0);
        while (below(&players[0], 3) == 0)
            shake(&players[0]);
        thread_join(&saving.thread);
        assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
    }
    assert_true(saving.nested_count > LARGE_KEYS / NESTED_PART);
    assert_true(saving.large_count > LARGE_KEYS); /* that many at once, at most, in a database */
    assert_true(saving.together > 2);
    assert_true(THREAD_SANITIZER || saving.large_with_deadlines > LARGE_KEYS);
    assert_true(saving.long_count > LONG_KEYS);
    teardown();
}

static unsigned count_keys(const struct picture *picture)
{
    unsigned count = 0;

    for (unsigned db = 0; db < DATABASES; db++) {
        for (unsigned number = 0; number < KEYS; number++)
            count += picture->values[db][number] != 0;
    }
    return count;
}

/* Also if a change makes it one that would not be chosen, or one that would. */
static void keys_are_chosen_as_they_were(void **state)
{
    struct saving saving = {.choice = &some_keys};
    unsigned chosen = 0, all = 0;
    struct picture *picture = mem_alloc(sizeof(*picture));

    (void)state;
    setup("keys_are_chosen_as_they_were");
    for (unsigned round = 0; round < rounds(100); round++) {
        own(&players[0]);
        take_picture(&players[0], NULL, picture);
        gate_open(&players[0].member);
        all += count_keys(picture);
        (void)begin(&players[0], &saving, 0);
        while (below(&players[0], 3) == 0)
            shake(&players[0]);
        thread_join(&saving.thread);
        assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
        chosen += count_keys(&seen[0]);
    }
    assert_true(chosen > all / 10 && chosen < all / 10 * 9);
    assert_true(THREAD_SANITIZER || saving.large_count + saving.long_count > LARGE_KEYS);
    mem_free(picture);
    teardown();
}

static bool is_none(const struct snapshot_choice *choice, const struct entry *entry)
{
    (void)choice;
    (void)entry;
    return false;
}

static void change_each(struct player *owner)
{
    for (unsigned number = 0; number < KEYS; number++) {
        char room[16];
        const struct key key = name_key(number, room);
        struct change change;

        change_begin(&change, &owner->access, 0, &key);
        change_key(owner, &change);
        change_end(&change, EVENT_GENERIC, NULL);
    }
}

static void of_a_key_that_is_not_chosen_nothing_is_left(void **state)
{
    static const struct snapshot_choice none = {.has = is_none};

    struct saving saving = {.choice = &none};
    struct player *owner = &players[0];
    struct live_costs costs;
    struct picture *picture = mem_alloc(sizeof(*picture));

    (void)state;
    setup("of_a_key_that_is_not_chosen_nothing_is_left");
    stop_writers();
    own(owner);
    atomic_store(&thins_out, false);
    change_each(owner);
    take_picture(owner, NULL, picture);
    assert_true(count_keys(picture) > KEYS / 4);
    saving.live = live_snapshot_begin(&owner->access,
                                      &(struct live_options){.gate = &the_gate, .threads = 1, .choice = saving.choice});
    change_each(owner);
    access_flush_db(&owner->access, 1, true);
    gate_open(&owner->member);
    saving.picture = &seen[0];
    random_seed(&saving.random, random_u64(&owner->random));
    live_snapshot_adopt(saving.live);
    costs = live_snapshot_costs(saving.live);
    assert_true(costs.kept_bytes == 0 && costs.kept_keys <= STRIPES); /* flushed tables */
    save(&saving);
    assert_true(saving.is_whole);
    assert_int_equal(count_keys(&seen[0]), 0);
    mem_free(picture);
    teardown();
}

static void several_may_run_at_once(void **state)
{
    struct saving saving[ENTRY_MARKS] = {{.choice = NULL}, {.choice = &some_keys}};
    const struct live_options options = {.gate = &the_gate, .threads = 2};

    (void)state;
    setup("several_may_run_at_once");
    for (unsigned round = 0; round < rounds(40); round++) {
        for (unsigned i = 0; i < ENTRY_MARKS; i++) {
            (void)begin(&players[0], &saving[i], i);
            if (below(&players[0], 2) == 0)
                shake(&players[0]);
        }
        for (unsigned i = 0; i < ENTRY_MARKS; i++) {
            thread_join(&saving[i].thread);
            assert_memory_equal(&expected[i], &seen[i], sizeof(seen[i]));
        }
    }
    for (unsigned i = 0; i < ENTRY_MARKS; i++) {
        own(&players[0]);
        saving[i].live = live_snapshot_begin(&players[0].access, &options);
        assert_non_null(saving[i].live);
        gate_open(&players[0].member);
    }
    own(&players[0]);
    assert_null(live_snapshot_begin(&players[0].access, &options));
    gate_open(&players[0].member);
    for (unsigned i = 0; i < ENTRY_MARKS; i++) { /* given up before anything was visited */
        live_snapshot_adopt(saving[i].live);
        live_snapshot_end(&saving[i].live);
    }
    (void)begin(&players[0], &saving[0], 0);
    thread_join(&saving[0].thread);
    assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
    teardown();
}

static void one_that_stops_early_leaves_nothing(void **state)
{
    struct saving saving = {.live = NULL};

    (void)state;
    setup("one_that_stops_early_leaves_nothing");
    for (unsigned round = 0; round < rounds(40); round++) {
        struct live_snapshot *live;

        saving.is_cut = round % 2 == 0;
        live = begin(&players[0], &saving, 0);
        if (saving.is_cut && below(&players[0], 2) == 0)
            live_snapshot_cancel(live);
        thread_join(&saving.thread);
        assert_true(saving.is_whole != saving.is_cut);
        if (saving.is_whole)
            assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
        assert_true(live_kept_bytes(store) == 0);
    }
    teardown();
}

static bool is_marked(const struct entry *entry)
{
    assert_non_null(entry);
    return entry != NULL && (entry->flags & ENTRY_MARKS_MASK) != 0;
}

/* The places of databases that were never used count, too, once they are swapped. */
static void a_mark_in_a_swapped_database_goes(void **state)
{
    struct saving saving = {.live = NULL};
    struct player *owner = &players[0];
    char room[16];
    const struct key key = name_key(1, room);
    struct change change;

    (void)state;
    setup("a_mark_in_a_swapped_database_goes");
    stop_writers();
    own(owner);
    for (unsigned db = 0; db < DATABASES; db++)
        access_flush_db(&owner->access, db, false);
    saving.live = live_snapshot_begin(&owner->access, &(struct live_options){.gate = &the_gate, .threads = 1});
    access_swap_db(&owner->access, UNUSED_DATABASE, UNUSED_DATABASE + 1);
    change_begin(&change, &owner->access, UNUSED_DATABASE, &key);
    change_put_int(&change, 7, EXPIRE_NEVER);
    change_end(&change, EVENT_GENERIC, NULL);
    assert_true(is_marked(change_entry(&change)));
    gate_open(&owner->member);
    live_snapshot_adopt(saving.live);
    live_snapshot_end(&saving.live);
    own(owner);
    assert_false(is_marked(access_probe(&owner->access, UNUSED_DATABASE, &key)));
    gate_open(&owner->member);
    teardown();
}

static void change_fields(struct player *owner, const struct key *key, bool also_deletes)
{
    struct change change;

    change_begin(&change, &owner->access, 0, key);
    put_field(owner, &change);
    if (also_deletes)
        change_delete(&change);
    change_end(&change, EVENT_GENERIC, NULL);
}

static void save_and_own(struct player *owner, struct saving *saving)
{
    gate_open(&owner->member);
    thread_start(&saving->thread, "snapshot", save, saving);
    thread_join(&saving->thread);
    own(owner);
}

/* A large value is changed by one who left a change of it before, while an earlier snapshot needed it. It is also
 * deleted by the change that has put fields into it. */
static void a_change_that_was_left_keeps_nothing(void **state)
{
    struct saving saving = {.live = NULL};
    struct player *owner = &players[0];
    char room[16];
    const struct key key = name_key(1, room);
    struct change left;

    (void)state;
    setup("a_change_that_was_left_keeps_nothing");
    stop_writers();
    own(owner);
    access_flush_db(&owner->access, 0, false);
    for (unsigned i = 0; i < 30; i++)
        change_fields(owner, &key, false);
    (void)begin_at_gate(owner, &saving, 0);
    change_fields(owner, &key, false);
    change_begin(&left, &owner->access, 0, &key);
    save_and_own(owner, &saving);
    assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
    for (unsigned i = 0; i < 3; i++)
        change_fields(owner, &key, false); /* no snapshot needs it */
    (void)begin_at_gate(owner, &saving, 0);
    change_fields(owner, &key, false);
    change_fields(owner, &key, true);
    save_and_own(owner, &saving);
    assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
    assert_true(saving.large_count >= 2);
    gate_open(&owner->member);
    teardown();
}

static void give_deadlines(struct player *owner, const struct key *key, unsigned from, unsigned to, int64_t expire_ms)
{
    const struct entry *entry = access_find(&owner->access, 0, key);
    struct change change;
    struct value hash;

    assert_non_null(entry);
    hash = entry_value(entry);
    change_begin(&change, &owner->access, 0, key);
    for (unsigned i = from; i < to; i++)
        put_deadline(&change, hash, i, expire_ms != EXPIRE_NEVER ? expire_ms + i : EXPIRE_NEVER);
    change_end(&change, EVENT_GENERIC, NULL);
    access_expire_members(&owner->access, 0, key);
}

/* What can move does. */
static void defragment(struct player *owner)
{
    struct defrag_counters moved = {0};
    struct defrag_walk walk;

    mem_move_everything(true);
    defrag_walk_init(&walk, 0, &moved);
    while (defrag_step(&owner->access, &walk, 0, 1))
        continue;
    mem_move_everything(false);
}

/* Members get their first deadlines, die of them, and lose their last ones, with the table of them, while two snapshots
 * need what there was; then the key is gone. */
static void deadlines_come_and_go(void **state)
{
    struct saving saving[2] = {{.live = NULL}};
    struct player *owner = &players[0];
    char room[16];
    const struct key key = name_key(1, room);
    uint64_t bytes;

    (void)state;
    setup("deadlines_come_and_go");
    stop_writers();
    own(owner);
    for (unsigned db = 0; db < DATABASES; db++)
        access_flush_db(&owner->access, db, false);
    for (unsigned i = 0; i < 30; i++)
        change_fields(owner, &key, false);
    (void)begin_at_gate(owner, &saving[0], 0);
    give_deadlines(owner, &key, 100, LARGE_FIELDS, NOW_MS);
    defragment(owner);
    (void)begin_at_gate(owner, &saving[1], 1);
    bytes = live_kept_bytes(store);
    give_deadlines(owner, &key, 200, 900, EXPIRE_NEVER);
    assert_true(live_kept_bytes(store) > bytes + 300 * sizeof("f200")); /* of some 700 fields a part is there */
    access_begin(&owner->access, NOW_MS + 1000, true);
    assert_non_null(access_find(&owner->access, 0, &key)); /* fields up to 999 are gone */
    access_begin(&owner->access, NOW_MS, true);
    give_deadlines(owner, &key, 500, 1500, NOW_MS * 9);
    give_deadlines(owner, &key, 50, 200, 0); /* they are past */
    give_deadlines(owner, &key, 0, LARGE_FIELDS, EXPIRE_NEVER);
    give_deadlines(owner, &key, 1500, 1600, NOW_MS * 3);
    save_and_own(owner, &saving[0]);
    assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
    assert_int_equal(saving[0].large_with_deadlines, 0);
    give_deadlines(owner, &key, 0, LARGE_FIELDS, NOW_MS * 2);
    assert_true(access_delete(&owner->access, 0, &key));
    save_and_own(owner, &saving[1]);
    assert_memory_equal(&expected[1], &seen[1], sizeof(seen[1]));
    assert_int_equal(saving[1].large_with_deadlines, 1);
    assert_true(live_kept_bytes(store) == 0);
    gate_open(&owner->member);
    teardown();
}

static const struct blob *blob_of(struct player *owner, const struct key *key)
{
    const struct entry *entry = access_find(&owner->access, 0, key);

    assert_non_null(entry);
    return entry != NULL ? entry_blob(entry) : NULL;
}

static const struct blob *edit_long(struct player *owner, const struct key *key, size_t size, size_t offset)
{
    struct change change;

    change_begin(&change, &owner->access, 0, key);
    write_part(owner, &change, size, offset, 10);
    change_end(&change, EVENT_GENERIC, NULL);
    return blob_of(owner, key);
}

static uint64_t kept(const struct saving *saving)
{
    return live_snapshot_costs(saving->live).kept_bytes;
}

/* Two snapshots need it; what they keep is what was changed, and, once no key has it any more, the string. */
static void a_long_string_is_changed_in_place(void **state)
{
    enum { SIZE = LONG_MOST_BYTES, PAGE = FORMER_PAGE_BYTES, SOME = 1 << 10 };
    struct saving saving[2] = {{.live = NULL}};
    struct player *owner = &players[0];
    char room[16], other_room[16];
    const struct key key = name_key(LARGE_KEYS, room), other = name_key(LARGE_KEYS + 1, other_room);
    const struct blob *blob;

    (void)state;
    setup("a_long_string_is_changed_in_place");
    stop_writers();
    own(owner);
    for (unsigned db = 0; db < DATABASES; db++)
        access_flush_db(&owner->access, db, false);
    blob = edit_long(owner, &key, SIZE, 7);
    (void)begin_at_gate(owner, &saving[0], 0);
    assert_ptr_equal(edit_long(owner, &key, SIZE, 2 * PAGE - 1), blob);
    assert_true(kept(&saving[0]) > 2 * PAGE && kept(&saving[0]) < 2 * PAGE + SOME);
    assert_ptr_equal(edit_long(owner, &key, SIZE, 2 * PAGE), blob);
    assert_true(kept(&saving[0]) < 2 * PAGE + SOME);
    (void)begin_at_gate(owner, &saving[1], 1);
    assert_ptr_equal(edit_long(owner, &key, SIZE, 2 * PAGE), blob);
    assert_true(kept(&saving[0]) < 2 * PAGE + SOME && kept(&saving[1]) > PAGE && kept(&saving[1]) < PAGE + SOME);
    blob = edit_long(owner, &key, SIZE, SIZE); /* it moves, perhaps */
    assert_true(kept(&saving[0]) < 2 * PAGE + SOME && kept(&saving[1]) < PAGE + SOME);
    copy_key(&owner->access, access_find(&owner->access, 0, &key), 0, &other);
    assert_ptr_equal(blob_of(owner, &other), blob);
    assert_ptr_not_equal(edit_long(owner, &key, SIZE + 10, 0), blob); /* two keys have it */
    assert_ptr_equal(edit_long(owner, &other, SIZE + 10, 0), blob);
    (void)access_delete(&owner->access, 0, &other);
    assert_true(kept(&saving[0]) > SIZE && kept(&saving[1]) > SIZE && kept(&saving[1]) < 2 * SIZE);
    save_and_own(owner, &saving[0]);
    assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
    save_and_own(owner, &saving[1]);
    assert_memory_equal(&expected[1], &seen[1], sizeof(seen[1]));
    assert_true(saving[0].long_count == 1 && saving[1].long_count == 1);
    assert_int_equal(atomic_load(&store->long_string_count), 0);
    gate_open(&owner->member);
    teardown();
}

struct long_hold {
    uint32_t stripe; /* that is held for long */
    bool is_wanted;  /* by a command */
};

static void hold_long(struct access *access, uint32_t stripe, void *context)
{
    const struct long_hold *hold = context;
    const uint64_t begin_us = clock_monotonic_us();

    if (stripe != hold->stripe)
        return;
    if (hold->is_wanted)
        atomic_fetch_or(&access->store->stripes[stripe].wait_mask, 1); /* as stripe_wait, which is another thread's */
    while (clock_monotonic_us() - begin_us < LONG_HOLD_US)
        ;
}

static bool go_on(void *context)
{
    (void)context;
    return true;
}

static void a_hold_is_a_wait_where_somebody_waits(void **state)
{
    struct player *owner = &players[0];

    (void)state;
    setup("a_hold_is_a_wait_where_somebody_waits");
    stop_writers();
    for (unsigned i = 0; i < 2; i++) {
        const struct live_options options = {.gate = &the_gate, .threads = 1};
        struct long_hold hold = {.stripe = 1, .is_wanted = i == 1};
        const struct snapshot_holder holder = {.hold = hold_long, .rest = go_on, .context = &hold};
        struct live_snapshot *live;

        own(owner);
        live = live_snapshot_begin(&owner->access, &options);
        gate_open(&owner->member);
        live_snapshot_adopt(live);
        assert_true(snapshot_each_stripe(live_snapshot_keys(live), &holder));
        assert_true(live_snapshot_costs(live).held_us >= LONG_HOLD_US);
        if (hold.is_wanted)
            assert_true(live_snapshot_costs(live).waited_us >= LONG_HOLD_US);
        else
            assert_true(live_snapshot_costs(live).waited_us == 0);
        live_snapshot_end(&live);
    }
    teardown();
}

/* A string that gets another name is still a key's; one that is deleted is the snapshot's. */
static void a_long_string_counts_when_no_key_has_it(void **state)
{
    struct saving saving = {.live = NULL};
    struct player *owner = &players[0];
    char room[16], other_room[16];
    const struct key key = name_key(LARGE_KEYS, room), other = name_key(LARGE_KEYS + 1, other_room);
    struct change from, to;

    (void)state;
    setup("a_long_string_counts_when_no_key_has_it");
    stop_writers();
    own(owner);
    for (unsigned db = 0; db < DATABASES; db++)
        access_flush_db(&owner->access, db, false);
    (void)edit_long(owner, &key, LONG_MOST_BYTES, 0);
    (void)begin_at_gate(owner, &saving, 0);
    change_begin(&from, &owner->access, 0, &key);
    change_begin(&to, &owner->access, 0, &other);
    change_move_value(&to, &from, EXPIRE_NEVER);
    change_end(&from, EVENT_GENERIC, NULL);
    change_end(&to, EVENT_GENERIC, NULL);
    (void)edit_long(owner, &other, LONG_MOST_BYTES, 0);
    assert_true(kept(&saving) < 2 * FORMER_PAGE_BYTES);
    (void)access_delete(&owner->access, 0, &other);
    assert_true(kept(&saving) > LONG_MOST_BYTES);
    save_and_own(owner, &saving);
    assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
    assert_int_equal(saving.long_count, 1);
    gate_open(&owner->member);
    teardown();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_is_visited_as_it_was),
        cmocka_unit_test(several_may_run_at_once),
        cmocka_unit_test(keys_are_chosen_as_they_were),
        cmocka_unit_test(of_a_key_that_is_not_chosen_nothing_is_left),
        cmocka_unit_test(one_that_stops_early_leaves_nothing),
        cmocka_unit_test(a_mark_in_a_swapped_database_goes),
        cmocka_unit_test(a_change_that_was_left_keeps_nothing),
        cmocka_unit_test(deadlines_come_and_go),
        cmocka_unit_test(a_hold_is_a_wait_where_somebody_waits),
        cmocka_unit_test(a_long_string_is_changed_in_place),
        cmocka_unit_test(a_long_string_counts_when_no_key_has_it),
    };
    int failed;

    fence_setup();
    hash_setup();
    (void)thread_self_index();
    background_setup(1);
    failed = cmocka_run_group_tests_name("snapshot_live", tests, NULL, NULL);
    background_teardown();
    return failed;
}
