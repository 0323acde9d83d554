#include "values.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_NEW, ENTRY_PENDING, ENTRY_DONE };

static const bool kind_overwrites[] = {
#define KIND(name, overwrites) overwrites,
    VALUE_KINDS(KIND)
#undef KIND
};
static const char *const kind_names[] = {
#define KIND(name, overwrites) #name,
    VALUE_KINDS(KIND)
#undef KIND
};

bool value_kind_overwrites(uint8_t kind)
{
    return kind_overwrites[kind];
}

static struct merge_value *value_copy(struct merge_value *value)
{
    if (value != NULL)
        value->references++;
    return value;
}

static void value_destroy(struct merge_value *value)
{
    if (value != NULL && --value->references == 0)
        mem_free(value);
}

bool value_equal(const struct merge_value *a, const struct merge_value *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return memcmp((const char *)a + sizeof(uint32_t), (const char *)b + sizeof(uint32_t),
                  sizeof(*a) - sizeof(uint32_t)) == 0;
}

/* Takes the reference over and returns one to a value that may be changed. */
static struct merge_value *value_own(struct merge_value *value)
{
    struct merge_value *own;

    if (value->references == 1)
        return value;
    own = mem_copy(value, sizeof(*value));
    own->references = 1;
    value->references--;
    return own;
}

static struct merge_value *value_new(uint8_t type)
{
    struct merge_value *value = mem_alloc_zero(sizeof(*value));

    value->references = 1;
    value->type = type;
    return value;
}

static bool is_collection(const struct merge_value *value)
{
    return value->type == VALUE_SET || value->type == VALUE_HASH || value->type == VALUE_ZSET;
}

/* Removes the members; none left: the key goes. */
static struct merge_value *remove_members(struct merge_value *value, uint8_t which)
{
    which &= value->members;
    if (which == 0)
        return value;
    if (which == value->members) {
        value_destroy(value);
        return NULL;
    }
    value = value_own(value);
    value->members &= (uint8_t)~which;
    for (unsigned i = 0; i < VALUE_MEMBERS; i++) {
        if ((which >> i & 1) == 0)
            continue;
        value->member_deadline[i] = 0;
        if (value->type == VALUE_HASH) {
            value->of.hash.size[i] = 0;
            memset(value->of.hash.text[i], 0, VALUE_FIELD_MOST);
        } else if (value->type == VALUE_ZSET) {
            value->of.score[i] = 0;
        }
    }
    return value;
}

static struct merge_value *value_expire(struct merge_value *value, int64_t wall)
{
    uint8_t dead = 0;

    if (value == NULL)
        return NULL;
    if (value->deadline != 0 && value->deadline <= wall) {
        value_destroy(value);
        return NULL;
    }
    if (!is_collection(value))
        return value;
    for (unsigned i = 0; i < VALUE_MEMBERS; i++) {
        if (value->member_deadline[i] != 0 && value->member_deadline[i] <= wall)
            dead |= (uint8_t)(1 << i);
    }
    return remove_members(value, dead);
}

/* The value to change as this type, or a new one; NULL if it has another type. */
static struct merge_value *typed(struct merge_value **value, uint8_t type)
{
    if (*value == NULL)
        *value = value_new(type);
    else if ((*value)->type != type)
        return NULL;
    else
        *value = value_own(*value);
    return *value;
}

static bool parse_integer(const char *text, uint8_t size, long *number)
{
    char room[VALUE_STRING_MOST + 1], *end;

    if (size == 0) {
        *number = 0;
        return false;
    }
    memcpy(room, text, size);
    room[size] = '\0';
    *number = strtol(room, &end, 10);
    return end == room + size;
}

static void set_string(struct merge_value *value, const char *text, uint8_t size)
{
    memset(value->of.string, 0, sizeof(value->of.string));
    memcpy(value->of.string, text, size);
    value->count = size;
}

static struct merge_value *drop_if_new(struct merge_value *value, bool was_new)
{
    if (!was_new)
        return value;
    value_destroy(value);
    return NULL;
}

static struct merge_value *apply_string(struct merge_value *value, const struct value_part *part)
{
    bool is_new = value == NULL;
    char text[64];
    int size = 0;
    long number = 0;

    if (typed(&value, VALUE_STRING) == NULL)
        return value;
    switch (part->kind) {
    case KIND_INCRBY:
        if (!is_new && !parse_integer(value->of.string, value->count, &number))
            return value;
        if (__builtin_add_overflow(number, part->n, &number) || number > VALUE_LIMIT || number < -VALUE_LIMIT)
            return drop_if_new(value, is_new);
        size = snprintf(text, sizeof(text), "%ld", number);
        break;
    case KIND_INCRF: {
        char room[VALUE_STRING_MOST + 1] = "0", *end = room + 1;
        double sum;

        if (!is_new) {
            memcpy(room, value->of.string, value->count);
            room[value->count] = '\0';
        }
        sum = strtod(room, &end);
        if (end == room || *end != '\0')
            return value;
        size = snprintf(text, sizeof(text), "%.17g", sum + part->f);
        break;
    }
    case KIND_APPEND:
        if (value->count + part->text_size > VALUE_STRING_MOST)
            return value;
        memcpy(text, value->of.string, value->count);
        memcpy(text + value->count, part->text, part->text_size);
        size = value->count + part->text_size;
        break;
    default: /* SETRANGE */
        memset(text, 0, sizeof(text));
        memcpy(text, value->of.string, value->count);
        memcpy(text + part->n, part->text, part->text_size);
        size = (int)part->n + part->text_size;
        if (size < value->count)
            size = value->count;
        break;
    }
    if (size > VALUE_STRING_MOST)
        return drop_if_new(value, is_new);
    set_string(value, text, (uint8_t)size);
    return value;
}

static struct merge_value *list_remove(struct merge_value *value, unsigned from, unsigned count)
{
    if (count == 0)
        return value;
    if (count == value->count) {
        value_destroy(value);
        return NULL;
    }
    memmove(value->of.list + from, value->of.list + from + count, value->count - from - count);
    value->count = (uint8_t)(value->count - count);
    memset(value->of.list + value->count, 0, VALUE_LIST_MOST - value->count);
    return value;
}

static void list_insert(struct merge_value *value, unsigned at, char element)
{
    if (value->count == VALUE_LIST_MOST)
        return;
    memmove(value->of.list + at + 1, value->of.list + at, value->count - at);
    value->of.list[at] = element;
    value->count++;
}

static struct merge_value *apply_list(struct merge_value *value, const struct value_part *part)
{
    bool pushes = part->kind == KIND_LPUSH || part->kind == KIND_RPUSH;
    unsigned deep;

    if ((value == NULL && !pushes) || typed(&value, VALUE_LIST) == NULL)
        return value;
    switch (part->kind) {
    case KIND_LPUSH:
        list_insert(value, 0, part->a);
        break;
    case KIND_RPUSH:
        list_insert(value, value->count, part->a);
        break;
    case KIND_POPV:
        deep = value->count < VALUE_SEARCH ? value->count : VALUE_SEARCH;
        for (unsigned i = 0; i < deep; i++) {
            unsigned at = part->b == 'L' ? i : value->count - 1u - i;

            if (value->of.list[at] == part->a)
                return list_remove(value, at, 1);
        }
        break;
    case KIND_LREM:
        for (unsigned i = value->count; value != NULL && i-- != 0;) {
            if (value->of.list[i] == part->a)
                value = list_remove(value, i, 1);
        }
        break;
    case KIND_LSET:
        if (part->n < value->count)
            value->of.list[part->n] = part->a;
        break;
    case KIND_LTRIM:
        if (part->m < value->count)
            value = list_remove(value, (unsigned)part->m, (unsigned)(value->count - part->m));
        if (value != NULL)
            value = list_remove(value, 0, (unsigned)(part->n < value->count ? part->n : value->count));
        break;
    default: /* LINSERT */
        for (unsigned i = 0; i < value->count; i++) {
            if (value->of.list[i] == part->a) {
                list_insert(value, i, part->b);
                break;
            }
        }
        break;
    }
    return value;
}

static struct merge_value *apply_members(struct merge_value *value, const struct value_part *part)
{
    uint8_t bit = (uint8_t)(1 << part->member);
    bool is_new = value == NULL;
    uint8_t type = VALUE_SET;

    if (part->kind == KIND_HSET || part->kind == KIND_HDEL || part->kind == KIND_HINCRBY)
        type = VALUE_HASH;
    else if (part->kind >= KIND_ZADD && part->kind <= KIND_ZINCRBY)
        type = VALUE_ZSET;
    if (part->kind == KIND_SREM || part->kind == KIND_HDEL || part->kind == KIND_ZREM)
        return value != NULL && value->type == type ? remove_members(value, bit) : value;
    if (typed(&value, type) == NULL)
        return value;
    if (part->kind == KIND_HSET) {
        memset(value->of.hash.text[part->member], 0, VALUE_FIELD_MOST);
        memcpy(value->of.hash.text[part->member], part->text, part->text_size);
        value->of.hash.size[part->member] = part->text_size;
    } else if (part->kind == KIND_HINCRBY) {
        long number = 0;
        char text[32];
        int size;

        if ((value->members & bit) != 0 &&
            !parse_integer(value->of.hash.text[part->member], value->of.hash.size[part->member], &number))
            return value;
        if (__builtin_add_overflow(number, part->n, &number) || number > VALUE_LIMIT || number < -VALUE_LIMIT)
            return drop_if_new(value, is_new);
        size = snprintf(text, sizeof(text), "%ld", number);
        memset(value->of.hash.text[part->member], 0, VALUE_FIELD_MOST);
        memcpy(value->of.hash.text[part->member], text, (size_t)size);
        value->of.hash.size[part->member] = (uint8_t)size;
    } else if (part->kind == KIND_ZADD) {
        value->of.score[part->member] = part->f;
    } else if (part->kind == KIND_ZGT) {
        if ((value->members & bit) == 0 || part->f > value->of.score[part->member])
            value->of.score[part->member] = part->f;
    } else if (part->kind == KIND_ZINCRBY) {
        value->of.score[part->member] += part->f;
    }
    value->members |= bit;
    return value;
}

static unsigned stream_seek(const struct merge_value *value, uint64_t id)
{
    unsigned at = 0;

    while (at < value->count && value->of.stream.id[at] < id)
        at++;
    return at;
}

static void stream_remove(struct merge_value *value, unsigned from, unsigned count)
{
    unsigned rest = value->count - from - count;

    memmove(&value->of.stream.id[from], &value->of.stream.id[from + count], rest * sizeof(uint64_t));
    memmove(&value->of.stream.state[from], &value->of.stream.state[from + count], rest);
    value->count = (uint8_t)(value->count - count);
    for (unsigned i = value->count; i < value->count + count; i++) {
        value->of.stream.id[i] = 0;
        value->of.stream.state[i] = 0;
    }
}

static struct merge_value *apply_stream(struct merge_value *value, const struct value_part *part)
{
    uint64_t id = (uint64_t)part->n;
    unsigned at;
    bool is_there;

    if ((value == NULL && part->kind != KIND_XADD) || typed(&value, VALUE_STREAM) == NULL)
        return value;
    at = stream_seek(value, id);
    is_there = at < value->count && value->of.stream.id[at] == id;
    switch (part->kind) {
    case KIND_XADD:
        if (is_there || value->count == VALUE_STREAM_MOST)
            break;
        memmove(&value->of.stream.id[at + 1], &value->of.stream.id[at], (value->count - at) * sizeof(uint64_t));
        memmove(&value->of.stream.state[at + 1], &value->of.stream.state[at], value->count - at);
        value->of.stream.id[at] = id;
        value->of.stream.state[at] = ENTRY_NEW;
        value->count++;
        if (id > value->of.stream.last)
            value->of.stream.last = id;
        break;
    case KIND_XDEL:
        if (is_there)
            stream_remove(value, at, 1);
        break;
    case KIND_XTRIM:
        stream_remove(value, 0, at);
        break;
    case KIND_XDELIVER:
        if (is_there && value->of.stream.state[at] == ENTRY_NEW)
            value->of.stream.state[at] = ENTRY_PENDING;
        break;
    default: /* XACK */
        if (is_there && value->of.stream.state[at] == ENTRY_PENDING)
            value->of.stream.state[at] = ENTRY_DONE;
        break;
    }
    return value;
}

static struct merge_value *apply_set(struct merge_value *value, const struct value_part *part)
{
    int64_t deadline = part->kind == KIND_SETKEEP && value != NULL ? value->deadline : part->n;

    value_destroy(value);
    value = value_new(VALUE_STRING);
    set_string(value, part->text, part->text_size);
    value->deadline = deadline;
    return value;
}

struct merge_value *value_apply_part(struct merge_value *value, const struct value_part *part, int64_t wall)
{
    switch (part->kind) {
    case KIND_SET:
        return apply_set(value, part);
    case KIND_DEL:
    case KIND_EVICT:
        value_destroy(value);
        return NULL;
    case KIND_RESTORE:
        value_destroy(value);
        return part->n == 0 ? NULL : mem_copy(part + 1, sizeof(struct merge_value));
    default:
        break;
    }
    value = value_expire(value, wall);
    if (part->kind == KIND_SETKEEP)
        return apply_set(value, part);
    if (part->kind >= KIND_INCRBY && part->kind <= KIND_SETRANGE)
        return apply_string(value, part);
    if (part->kind >= KIND_LPUSH && part->kind <= KIND_LINSERT)
        return apply_list(value, part);
    if (part->kind >= KIND_SADD && part->kind <= KIND_ZINCRBY)
        return apply_members(value, part);
    if (part->kind >= KIND_XADD && part->kind <= KIND_XACK)
        return apply_stream(value, part);
    if (value == NULL)
        return NULL;
    if (part->kind == KIND_MEXPIREAT) {
        if (!is_collection(value) || (value->members >> part->member & 1) == 0)
            return value;
        value = value_own(value);
        value->member_deadline[part->member] = part->n;
    } else {
        value = value_own(value);
        value->deadline = part->kind == KIND_PEXPIREAT ? part->n : 0;
    }
    return value_expire(value, wall);
}

/* What was touched: a whole value where a key appeared, disappeared or became another one, a member, what was added to
 * an integer, at which end was pushed, else stretches of bytes. */
struct merge_undo {
    uint32_t references;
    enum { UNDO_WHOLE, UNDO_BYTES, UNDO_MEMBER, UNDO_ADDITION, UNDO_PUSH } form;
    struct merge_value *before; /* if whole; of a member: the value that has it */
    uint8_t member;             /* VALUE_MEMBERS: the string itself; of a push: whether it was at the tail */
    int64_t amount;
    uint32_t count;
    struct {
        uint16_t at;
        uint8_t byte;
    } bytes[];
};

static struct merge_undo *value_undo_acquire(struct merge_undo *undo)
{
    if (undo != NULL)
        undo->references++;
    return undo;
}

static void value_undo_release(struct merge_undo *undo)
{
    if (undo == NULL || --undo->references != 0)
        return;
    value_destroy(undo->before);
    mem_free(undo);
}

static uint8_t type_of_part(const struct value_part *part)
{
    if (part->kind == KIND_HSET || part->kind == KIND_HDEL || part->kind == KIND_HINCRBY)
        return VALUE_HASH;
    if (part->kind == KIND_SADD || part->kind == KIND_SREM)
        return VALUE_SET;
    if (part->kind == KIND_LPUSH || part->kind == KIND_RPUSH)
        return VALUE_LIST;
    return part->kind == KIND_INCRBY ? VALUE_STRING : VALUE_ZSET;
}

static struct merge_touch value_touch(const struct merge_op *op)
{
    const struct value_part *part = (const void *)op->words.data;

    if (op->words.size != sizeof(*part))
        return (struct merge_touch){.kind = MERGE_TOUCHES_ALL};
    switch (part->kind) {
    case KIND_INCRBY:
        return (struct merge_touch){VALUE_MEMBERS, MERGE_ADDS};
    case KIND_HINCRBY:
        return (struct merge_touch){part->member, MERGE_ADDS};
    case KIND_SADD:
    case KIND_HSET:
    case KIND_ZADD:
        return (struct merge_touch){part->member, MERGE_WRITES};
    case KIND_SREM:
    case KIND_HDEL:
    case KIND_ZREM:
        return (struct merge_touch){part->member, MERGE_REMOVES};
    case KIND_LPUSH:
        return (struct merge_touch){1, MERGE_PUSHES_FIRST};
    case KIND_RPUSH:
        return (struct merge_touch){1, MERGE_PUSHES_LAST};
    default:
        return (struct merge_touch){.kind = MERGE_TOUCHES_ALL};
    }
}

/* The integer that the part adds to, if that is how it would be written ("07" is not). */
static bool read_integer(const struct merge_value *value, const struct value_part *part, long *number)
{
    const bool is_string = part->kind == KIND_INCRBY;
    const char *text = is_string ? value->of.string : value->of.hash.text[part->member];
    const uint8_t size = is_string ? value->count : value->of.hash.size[part->member];
    char as_written[32];

    *number = 0;
    if (value->type != (is_string ? VALUE_STRING : VALUE_HASH)) /* refused; what it met may have expired nevertheless */
        return false;
    if (!is_string && (value->members >> part->member & 1) == 0)
        return true;
    return parse_integer(text, size, number) && snprintf(as_written, sizeof(as_written), "%ld", *number) == size &&
           memcmp(as_written, text, size) == 0;
}

static bool has_member_deadlines(const struct merge_value *value)
{
    for (unsigned i = 0; i < VALUE_MEMBERS; i++) {
        if (value->member_deadline[i] != 0)
            return true;
    }
    return false;
}

/* The greatest amount is 20. */
static bool value_suits(const struct merge_value *value, const struct merge_op *op, uint32_t younger, uint32_t again)
{
    const struct value_part *part = (const void *)op->words.data;
    const unsigned members = (unsigned)__builtin_popcount(value->members);
    long number;

    if (value->type != type_of_part(part))
        return false;
    if (value->type == VALUE_LIST)
        return value->count < VALUE_LIST_MOST;
    if (again != 0 && members <= again + 1 && !merge_broken(MERGE_BREAK_IN_PLACE_EMPTIES))
        return false;
    switch (value_touch(op).kind) {
    case MERGE_ADDS:
        return merge_broken(MERGE_BREAK_IN_PLACE_LIMITS) ||
               (read_integer(value, part, &number) && labs(number) + 20 * (long)(younger + 1) <= VALUE_LIMIT);
    case MERGE_REMOVES:
        return members > younger + 1 || merge_broken(MERGE_BREAK_IN_PLACE_EMPTIES);
    default:
        return true;
    }
}

static bool value_undo_is_apart(const struct merge_undo *undo, enum merge_touch_kind kind)
{
    if (kind == MERGE_PUSHES_FIRST || kind == MERGE_PUSHES_LAST)
        return undo->form == UNDO_PUSH;
    return undo->form == (kind == MERGE_ADDS ? UNDO_ADDITION : UNDO_MEMBER);
}

/* All but this member is as it was, and all deadlines. */
static bool is_member_alone(const struct merge_value *before, const struct merge_value *after, uint8_t member)
{
    const uint8_t others = (uint8_t) ~(1 << member);

    if ((before->members & others) != (after->members & others) || before->deadline != after->deadline)
        return false;
    return memcmp(before->member_deadline, after->member_deadline, sizeof(before->member_deadline)) == 0;
}

/* Of one that can run in place; else false. */
static bool note_apart(struct merge_undo *undo, const struct merge_op *op, struct merge_value *before,
                       const struct merge_value *after)
{
    const struct value_part *part = (const void *)op->words.data;
    long old, new;

    switch (value_touch(op).kind) {
    case MERGE_ADDS:
        if (!read_integer(before, part, &old) || !read_integer(after, part, &new))
            return false;
        if (before->deadline != after->deadline || new - old != part->n) /* it had expired */
            return false;
        if (part->kind == KIND_HINCRBY &&
            ((before->members >> part->member & 1) == 0 || !is_member_alone(before, after, part->member)))
            return false;
        undo->form = UNDO_ADDITION;
        undo->member = part->kind == KIND_INCRBY ? VALUE_MEMBERS : part->member;
        undo->amount = new - old;
        return true;
    case MERGE_WRITES:
    case MERGE_REMOVES:
        if (!is_member_alone(before, after, part->member))
            return false;
        undo->form = UNDO_MEMBER;
        undo->member = part->member;
        undo->before = value_copy(before);
        return true;
    case MERGE_PUSHES_FIRST:
    case MERGE_PUSHES_LAST: /* its elements may be the same ones also if it had expired */
        undo->form = UNDO_PUSH;
        undo->member = part->kind == KIND_RPUSH;
        return before->deadline == after->deadline && before->count + 1 == after->count;
    default:
        return false;
    }
}

static struct merge_undo *value_what_was_touched(const struct merge_op *op, struct merge_value *before,
                                                 const struct merge_value *after)
{
    struct merge_undo *undo;
    const uint8_t *old = (const uint8_t *)before, *new = (const uint8_t *)after;

    if (value_equal(before, after))
        return NULL;
    undo = mem_alloc_zero(sizeof(*undo) + sizeof(*before) * sizeof(undo->bytes[0]));
    undo->references = 1;
    if (before == NULL || after == NULL || before->type != after->type) {
        undo->before = value_copy(before);
        return undo;
    }
    if (note_apart(undo, op, before, after))
        return undo;
    undo->form = UNDO_BYTES;
    for (size_t i = sizeof(uint32_t); i < sizeof(*before); i++) {
        if (old[i] == new[i])
            continue;
        undo->bytes[undo->count].at = (uint16_t)i;
        undo->bytes[undo->count++].byte = old[i];
    }
    return undo;
}

static void restore_member(struct merge_value *value, const struct merge_value *before, uint8_t member)
{
    const uint8_t bit = (uint8_t)(1 << member);

    value->members = (uint8_t)((value->members & ~bit) | (before->members & bit));
    if (value->type == VALUE_HASH) {
        value->of.hash.size[member] = before->of.hash.size[member];
        memcpy(value->of.hash.text[member], before->of.hash.text[member], VALUE_FIELD_MOST);
    } else if (value->type == VALUE_ZSET) {
        value->of.score[member] = before->of.score[member];
    }
}

static void take_off(struct merge_value *value, uint8_t member, int64_t amount)
{
    char text[32];
    long number = 0;

    if (member == VALUE_MEMBERS) {
        (void)parse_integer(value->of.string, value->count, &number);
        set_string(value, text, (uint8_t)snprintf(text, sizeof(text), "%ld", number - (long)amount));
        return;
    }
    (void)parse_integer(value->of.hash.text[member], value->of.hash.size[member], &number);
    memset(value->of.hash.text[member], 0, VALUE_FIELD_MOST);
    value->of.hash.size[member] = (uint8_t)snprintf(text, sizeof(text), "%ld", number - (long)amount);
    memcpy(value->of.hash.text[member], text, value->of.hash.size[member]);
}

static struct merge_value *value_undo(struct merge_value *value, const struct merge_undo *undo)
{
    if (undo->form == UNDO_WHOLE) {
        value_destroy(value);
        return value_copy(undo->before);
    }
    if (undo->form == UNDO_PUSH && (value == NULL || value->type != VALUE_LIST))
        return value; /* a rule is broken */
    value = value_own(value);
    if (undo->form == UNDO_MEMBER)
        restore_member(value, undo->before, undo->member);
    else if (undo->form == UNDO_ADDITION)
        take_off(value, undo->member, undo->amount);
    else if (undo->form == UNDO_PUSH)
        value = list_remove(value, undo->member ? value->count - 1u : 0, 1);
    for (uint32_t i = 0; i < undo->count; i++)
        ((uint8_t *)value)[undo->bytes[i].at] = undo->bytes[i].byte;
    return value;
}

static struct merge_value *value_apply(struct merge_value *value, const struct merge_op *op, struct merge_undo **undo)
{
    const struct value_part *part = (const void *)op->words.data;
    struct merge_value *before = undo != NULL ? value_copy(value) : NULL;

    for (size_t i = 0; i < op->words.size / sizeof(*part); i++) {
        value = value_apply_part(value, &part[i], op->entry->wall);
        if (part->kind == KIND_RESTORE)
            break; /* its value stands behind it */
    }
    if (undo != NULL)
        *undo = value_what_was_touched(op, before, value);
    value_destroy(before);
    return value;
}

/* One that has expired is no list to push on: what it does then has no undo that stands apart. */
static struct merge_value *value_apply_behind(struct merge_value *value, const struct merge_op *op, uint64_t behind,
                                              struct merge_undo **undo)
{
    const struct value_part *part = (const void *)op->words.data;

    if (value->deadline != 0 && value->deadline <= op->entry->wall)
        return value_apply(value, op, undo);
    value = value_own(value);
    behind = behind < value->count ? behind : value->count; /* more only if a rule is broken */
    list_insert(value, part->kind == KIND_LPUSH ? (unsigned)behind : value->count - (unsigned)behind, part->a);
    *undo = mem_alloc_zero(sizeof(**undo));
    (*undo)->references = 1;
    (*undo)->form = UNDO_PUSH;
    (*undo)->member = part->kind == KIND_RPUSH;
    return value;
}

enum { AMOUNT_MOST = 20 }; /* what value_suits counts for one younger addition */

static uint64_t weight_of(const struct merge_op *op, const struct merge_undo *undo)
{
    return merge_op_is_joined(op) ? op->entry->joined.weight : (uint64_t)llabs(undo->amount);
}

static bool value_join(const struct merge_op *older, const struct merge_undo *older_undo,
                       const struct merge_op *younger, const struct merge_undo *younger_undo, struct merge_sum *sum)
{
    struct value_part *part;

    sum->weight = weight_of(older, older_undo) + weight_of(younger, younger_undo);
    if (older_undo->member != younger_undo->member || sum->weight > AMOUNT_MOST)
        return false;
    part = mem_copy(younger->words.data, sizeof(*part));
    part->n = older_undo->amount + younger_undo->amount;
    sum->words = slice_make(part, sizeof(*part));
    sum->undo = mem_copy(younger_undo, sizeof(*younger_undo));
    sum->undo->references = 1;
    sum->undo->count = 0;
    sum->undo->amount = part->n;
    return true;
}

static bool value_suits_joined(const struct merge_value *value, const struct merge_op *op, uint32_t others)
{
    const struct value_part *part = (const void *)op->words.data;
    long number;

    if (value->type != type_of_part(part) || (value->deadline != 0 && value->deadline <= op->entry->wall))
        return false;
    if (part->kind == KIND_HINCRBY && ((value->members >> part->member & 1) == 0 || has_member_deadlines(value)))
        return false;
    return read_integer(value, part, &number) && labs(number) + AMOUNT_MOST * (long)(others + 1) <= VALUE_LIMIT;
}

static struct slice value_restore(const struct merge_value *value)
{
    struct value_part *part = mem_alloc_zero(sizeof(*part) + sizeof(*value));

    part->kind = KIND_RESTORE;
    part->n = value != NULL;
    if (value != NULL) {
        struct merge_value *copy = (void *)(part + 1);

        memcpy(copy, value, sizeof(*value));
        copy->references = 1;
    }
    return slice_make(part, sizeof(*part) + sizeof(*value));
}

/* The functions of a model get it first. */
static struct merge_value *model_apply(const struct merge_model *model, struct merge_value *value,
                                       const struct merge_op *op, struct merge_undo **undo)
{
    (void)model;
    return value_apply(value, op, undo);
}

static struct merge_value *model_undo(const struct merge_model *model, struct merge_value *value,
                                      const struct merge_undo *undo)
{
    (void)model;
    return value_undo(value, undo);
}

static struct merge_touch model_touch(const struct merge_model *model, const struct merge_op *op)
{
    (void)model;
    return value_touch(op);
}

static bool model_suits(const struct merge_model *model, const struct merge_value *value, const struct merge_op *op,
                        uint32_t younger, uint32_t again)
{
    (void)model;
    return value_suits(value, op, younger, again);
}

static bool model_undo_is_apart(const struct merge_model *model, const struct merge_undo *undo,
                                enum merge_touch_kind kind)
{
    (void)model;
    return value_undo_is_apart(undo, kind);
}

static struct merge_value *model_apply_behind(const struct merge_model *model, struct merge_value *value,
                                              const struct merge_op *op, uint64_t behind, struct merge_undo **undo)
{
    (void)model;
    return value_apply_behind(value, op, behind, undo);
}

static bool model_join(const struct merge_model *model, const struct merge_op *older,
                       const struct merge_undo *older_undo, const struct merge_op *younger,
                       const struct merge_undo *younger_undo, struct merge_sum *sum)
{
    (void)model;
    return value_join(older, older_undo, younger, younger_undo, sum);
}

static bool model_suits_joined(const struct merge_model *model, const struct merge_value *value,
                               const struct merge_op *op, uint32_t others)
{
    (void)model;
    return value_suits_joined(value, op, others);
}

static struct merge_undo *model_undo_acquire(const struct merge_model *model, struct merge_undo *undo)
{
    (void)model;
    return value_undo_acquire(undo);
}

static void model_undo_release(const struct merge_model *model, struct merge_undo *undo)
{
    (void)model;
    value_undo_release(undo);
}

static struct merge_value *model_expire(const struct merge_model *model, struct merge_value *value, int64_t wall)
{
    (void)model;
    return value_expire(value, wall);
}

static struct merge_value *model_copy(const struct merge_model *model, struct merge_value *value)
{
    (void)model;
    return value_copy(value);
}

static void model_destroy(const struct merge_model *model, struct merge_value *value)
{
    (void)model;
    value_destroy(value);
}

static struct slice model_restore(const struct merge_model *model, const struct merge_value *value)
{
    (void)model;
    return value_restore(value);
}

const struct merge_model value_model = {.apply = model_apply,
                                        .undo = model_undo,
                                        .touch = model_touch,
                                        .suits = model_suits,
                                        .undo_is_apart = model_undo_is_apart,
                                        .join = model_join,
                                        .suits_joined = model_suits_joined,
                                        .apply_behind = model_apply_behind,
                                        .undo_acquire = model_undo_acquire,
                                        .undo_release = model_undo_release,
                                        .expire = model_expire,
                                        .copy = model_copy,
                                        .destroy = model_destroy,
                                        .restore = model_restore};

/* --- random commands --- */

static int64_t between(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)random_below(random, (uint64_t)(high - low + 1));
}

static char one_of(struct random *random, const char *letters)
{
    return letters[random_below(random, strlen(letters))];
}

static void set_text(struct value_part *part, const char *text)
{
    part->text_size = (uint8_t)strlen(text);
    memcpy(part->text, text, part->text_size);
}

static uint64_t some_id(struct random *random, const struct merge_value *value)
{
    if (value == NULL || value->type != VALUE_STREAM || value->count == 0)
        return (uint64_t)between(random, 1, 9);
    return value->of.stream.id[random_below(random, value->count)];
}

bool value_random_part(struct random *random, struct merge_value *value, int64_t wall, uint64_t origin,
                       enum value_profile profile, struct value_part *part)
{
    static const double floats[] = {0.1, 0.2, 0.3, 0.7, -0.1};
    static const uint8_t often_expiry[] = {KIND_SET,    KIND_SETKEEP,   KIND_INCRBY,    KIND_INCRBY,  KIND_APPEND,
                                           KIND_APPEND, KIND_PEXPIREAT, KIND_PEXPIREAT, KIND_PERSIST, KIND_PERSIST};
    static const uint8_t often_evict[] = {KIND_INCRBY, KIND_INCRBY, KIND_APPEND, KIND_SADD, KIND_HINCRBY};
    struct merge_value *seen, *after;
    char digit[2] = {(char)('0' + between(random, 0, 9)), '\0'};
    bool changes;

    *part = (struct value_part){0};
    part->kind = (uint8_t)random_below(random, KIND_COUNT);
    if (random_below(random, 4) == 0)
        part->kind = KIND_INCRBY;
    if (profile == PROFILE_EXPIRY)
        part->kind = often_expiry[random_below(random, sizeof(often_expiry))];
    else if (profile == PROFILE_EVICT && random_below(random, 2) == 0)
        part->kind = often_evict[random_below(random, sizeof(often_evict))];
    if (part->kind == KIND_EVICT || part->kind == KIND_RESTORE)
        return false;
    part->member = (uint8_t)random_below(random, VALUE_MEMBERS);
    switch (part->kind) {
    case KIND_SET:
        set_text(part, digit);
        part->n = random_below(random, 5) < 2 ? wall + between(random, -4, 70) : 0;
        break;
    case KIND_SETKEEP:
    case KIND_HSET:
        set_text(part, digit);
        break;
    case KIND_INCRBY:
    case KIND_HINCRBY:
        part->n = between(random, -9, 20);
        break;
    case KIND_INCRF:
    case KIND_ZINCRBY:
        part->f = floats[random_below(random, 5)];
        break;
    case KIND_APPEND:
        set_text(part, (char[]){one_of(random, "0123xy"), '\0'});
        break;
    case KIND_SETRANGE:
        part->n = between(random, 0, 5);
        set_text(part, random_below(random, 2) == 0 ? "4" : "56");
        break;
    case KIND_POPV:
        if (value == NULL || value->type != VALUE_LIST)
            return false;
        part->b = one_of(random, "LR");
        part->a = value->of.list[part->b == 'L' ? 0 : value->count - 1];
        break;
    case KIND_LPUSH:
    case KIND_RPUSH:
    case KIND_LREM:
    case KIND_LINSERT:
        part->a = one_of(random, "pqrstu");
        part->b = one_of(random, "IJ");
        break;
    case KIND_LSET:
        part->n = between(random, 0, 3);
        part->a = one_of(random, "PQRS");
        break;
    case KIND_LTRIM:
        part->n = between(random, 0, 2);
        part->m = part->n + between(random, 0, 5);
        break;
    case KIND_ZADD:
    case KIND_ZGT:
        part->f = (double)between(random, 0, 9);
        break;
    case KIND_XADD: /* mostly an id of its own, as XADD * has the origin in it */
        part->n = (wall << 24) + (int64_t)((origin & 0xfffff) << 4) + between(random, 0, 15);
        if (random_below(random, 4) == 0)
            part->n = between(random, 1, 9);
        break;
    case KIND_XDEL:
    case KIND_XTRIM:
    case KIND_XDELIVER:
    case KIND_XACK:
        part->n = (int64_t)some_id(random, value);
        break;
    case KIND_PEXPIREAT:
    case KIND_MEXPIREAT:
        part->n = wall + between(random, -4, 70);
        if (part->n < 1)
            part->n = 1;
        break;
    default:
        break;
    }
    if (kind_overwrites[part->kind])
        return part->kind != KIND_DEL || value != NULL;
    seen = value_expire(value_copy(value), wall);
    after = value_apply_part(value_copy(seen), part, wall);
    changes = !value_equal(seen, after);
    value_destroy(seen);
    value_destroy(after);
    return changes;
}

/* --- printing --- */

int value_print(char *out, size_t size, const struct merge_value *value)
{
    int at = 0;

    if (value == NULL)
        return snprintf(out, size, "none");
    at += snprintf(out + at, size - (size_t)at, "%c", value->type);
    if (value->type == VALUE_STRING)
        at += snprintf(out + at, size - (size_t)at, " \"%.*s\"", value->count, value->of.string);
    else if (value->type == VALUE_LIST)
        at += snprintf(out + at, size - (size_t)at, " [%.*s]", value->count, value->of.list);
    else if (value->type == VALUE_STREAM)
        for (unsigned i = 0; i < value->count; i++)
            at += snprintf(out + at, size - (size_t)at, " %llx:%u", (unsigned long long)value->of.stream.id[i],
                           value->of.stream.state[i]);
    for (unsigned i = 0; i < VALUE_MEMBERS; i++) {
        if ((value->members >> i & 1) == 0)
            continue;
        at += snprintf(out + at, size - (size_t)at, " %c", 'a' + (int)i);
        if (value->type == VALUE_HASH)
            at += snprintf(out + at, size - (size_t)at, "=%.*s", value->of.hash.size[i], value->of.hash.text[i]);
        else if (value->type == VALUE_ZSET)
            at += snprintf(out + at, size - (size_t)at, "=%.17g", value->of.score[i]);
        if (value->member_deadline[i] != 0)
            at += snprintf(out + at, size - (size_t)at, "@%lld", (long long)value->member_deadline[i]);
    }
    if (value->deadline != 0)
        at += snprintf(out + at, size - (size_t)at, " until %lld", (long long)value->deadline);
    return at;
}

int value_print_part(char *out, size_t size, const struct value_part *part)
{
    int at = snprintf(out, size, "%s", kind_names[part->kind]);

    if (part->kind >= KIND_SADD && part->kind <= KIND_ZINCRBY)
        at += snprintf(out + at, size - (size_t)at, " %c", 'a' + part->member);
    if (part->a != 0)
        at += snprintf(out + at, size - (size_t)at, " %c", part->a);
    if (part->b != 0)
        at += snprintf(out + at, size - (size_t)at, " %c", part->b);
    if (part->text_size != 0)
        at += snprintf(out + at, size - (size_t)at, " \"%.*s\"", part->text_size, part->text);
    if (part->n != 0)
        at += snprintf(out + at, size - (size_t)at, " %lld", (long long)part->n);
    if (part->m != 0)
        at += snprintf(out + at, size - (size_t)at, " %lld", (long long)part->m);
    if (part->f != 0)
        at += snprintf(out + at, size - (size_t)at, " %g", part->f);
    if (part->kind == KIND_RESTORE) {
        at += snprintf(out + at, size - (size_t)at, " ");
        at += value_print(out + at, size - (size_t)at, part->n != 0 ? (const void *)(part + 1) : NULL);
    }
    return at;
}
