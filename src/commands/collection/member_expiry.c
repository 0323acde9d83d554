/* Deadlines of members: of fields by HEXPIRE and similar commands, of members of any type by EXPIREMEMBER and similar
 * commands. TTL, PTTL and PERSIST, which also accept a member, are with the other commands for keys (expire.c). */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "base/number.h"
#include "commands/collection/fields.h"
#include "commands/keys/expire.h"
#include "commands/shared/operations.h"
#include "commands/shared/typed.h"
#include "data/hash.h"

/* ---------------------------------------------------------------------------------------------------- of fields -- */

enum { NO_FIELD = -2, NO_DEADLINE = -1, NOT_MET = 0, DONE = 1, GONE = 2 }; /* replies for a field */

static void reply_no_key(struct request *request, struct fields fields)
{
    reply_array(request, fields.end - fields.first);
    for (uint32_t i = fields.first; i < fields.end; i++)
        reply_int(request, NO_FIELD);
}

enum condition { ANY, NX, XX, GT, LT };

static enum condition parse_condition(const struct request *request, uint32_t index)
{
    static const char *const names[] = {[NX] = "NX", [XX] = "XX", [GT] = "GT", [LT] = "LT"};

    for (enum condition condition = NX; condition <= LT; condition++) {
        if (request_arg_is(request, index, names[condition]))
            return condition;
    }
    return ANY;
}

/* A field without deadline lives longer than any. */
static bool condition_holds(enum condition condition, int64_t current_ms, int64_t wanted_ms)
{
    bool expires = current_ms != EXPIRE_NEVER;

    switch (condition) {
    case NX:
        return !expires;
    case XX:
        return expires;
    case GT:
        return expires && wanted_ms > current_ms;
    case LT:
        return !expires || wanted_ms < current_ms;
    default:
        return true;
    }
}

struct hexpire {
    struct edit edit;
    enum condition condition;
    int64_t expire_ms;
    struct touched done; /* fields that got the deadline, or went */
};

static int64_t expire_field(struct hexpire *hexpire, struct slice field)
{
    struct edit *edit = &hexpire->edit;

    if (!hash_has(edit->value, field))
        return NO_FIELD;
    if (!condition_holds(hexpire->condition, entry_member_expire_ms(change_entry(&edit->change), field),
                         hexpire->expire_ms))
        return NOT_MET;
    touched_add(&hexpire->done, field);
    return field_live_until(edit, field, hexpire->expire_ms) ? DONE : GONE;
}

static void hexpire_fields(struct request *request, struct hexpire *hexpire, struct fields fields)
{
    const bool is_past = hexpire->expire_ms <= request->access->due_ms;

    touched_begin(&hexpire->done, fields.end - fields.first);
    reply_array(request, fields.end - fields.first);
    for (uint32_t i = fields.first; i < fields.end; i++)
        reply_int(request, expire_field(hexpire, request_arg(request, i)));
    if (hexpire->done.count != 0) {
        fields_end(&hexpire->edit, is_past ? "hdel" : "hexpire", &hexpire->done);
        effect_none(request);
        fields_effect_deadline(request, hexpire->expire_ms, hexpire->done.fields, hexpire->done.count);
    }
    touched_end(&hexpire->done);
}

/* Argument `index` is FIELDS. False: an error was replied. */
static bool parse_fields_block(struct request *request, uint32_t index, struct fields *fields)
{
    int64_t count;

    if (fields->first != 0) {
        reply_error(request, "ERR FIELDS keyword specified multiple times");
        return false;
    }
    if (index + 2 >= request->arg_count) {
        reply_error(request, "ERR FIELDS requires at least numfields and one field argument");
        return false;
    }
    if (!request_arg_range(request, index + 1, 1, INT32_MAX, &count,
                           "ERR Parameter `numFields` should be greater than 0"))
        return false;
    if (count > (int64_t)request->arg_count - index - 2) {
        reply_error(request, "ERR wrong number of arguments");
        return false;
    }
    *fields = (struct fields){index + 2, index + 2 + (uint32_t)count};
    return true;
}

/* In any order, from argument 3 on, as since Redis 8.6. False: an error was replied. */
static bool parse_hexpire(struct request *request, enum condition *condition, struct fields *fields)
{
    bool differ = false;

    *condition = ANY;
    *fields = (struct fields){0, 0};
    for (uint32_t i = 3; i < request->arg_count; i++) {
        const enum condition named = parse_condition(request, i);

        if (named != ANY) {
            differ |= *condition != ANY && *condition != named;
            *condition = named;
        } else if (!request_arg_is(request, i, "FIELDS")) {
            const struct slice word = request_arg(request, i);

            reply_errorf(request, "ERR unknown argument: %.*s", (int)MIN(word.size, (size_t)1024), word.data);
            return false;
        } else if (!parse_fields_block(request, i, fields)) {
            return false;
        } else {
            i = fields->end - 1;
        }
    }
    if (fields->first == 0)
        reply_error(request, "ERR missing FIELDS argument");
    else if (differ)
        reply_error(request, "ERR Multiple condition flags specified");
    return fields->first != 0 && !differ;
}

static void hexpire_command(struct request *request, enum lifetime lifetime)
{
    struct hexpire hexpire;
    struct fields fields;

    if (!edit_begin(&hexpire.edit, request, &request->keys[0], TYPE_HASH) ||
        !field_deadline_parse(request, 2, lifetime, &hexpire.expire_ms) ||
        !parse_hexpire(request, &hexpire.condition, &fields))
        return;
    if (hexpire.edit.is_new)
        reply_no_key(request, fields);
    else
        hexpire_fields(request, &hexpire, fields);
}

static void cmd_hexpire(struct request *request)
{
    hexpire_command(request, LIFETIME_SECONDS);
}

static void cmd_hpexpire(struct request *request)
{
    hexpire_command(request, LIFETIME_MS);
}

static void cmd_hexpireat(struct request *request)
{
    hexpire_command(request, LIFETIME_AT_SECONDS);
}

static void cmd_hpexpireat(struct request *request)
{
    hexpire_command(request, LIFETIME_AT_MS);
}

static int64_t persist_field(struct edit *edit, struct slice field)
{
    if (!hash_has(edit->value, field))
        return NO_FIELD;
    if (entry_member_expire_ms(change_entry(&edit->change), field) == EXPIRE_NEVER)
        return NO_DEADLINE;
    edit_forget(edit, field);
    return DONE;
}

static void cmd_hpersist(struct request *request)
{
    struct fields fields;
    struct touched touched;
    struct edit edit;

    if (!edit_begin(&edit, request, &request->keys[0], TYPE_HASH) || !fields_parse(request, 2, &fields))
        return;
    if (edit.is_new) {
        reply_no_key(request, fields);
        return;
    }
    touched_begin_event(&touched, request, fields.end - fields.first);
    reply_array(request, fields.end - fields.first);
    for (uint32_t i = fields.first; i < fields.end; i++) {
        int64_t result = persist_field(&edit, request_arg(request, i));

        if (result == DONE)
            touched_add(&touched, request_arg(request, i));
        reply_int(request, result);
    }
    if (touched.count != 0)
        fields_end_kept(&edit, "hpersist", touched.fields, touched.count, 1);
    touched_end(&touched);
}

/* Converts a deadline to the reply of a command. */
typedef int64_t (*tell_fn)(int64_t expire_ms, int64_t now_ms);

static void tell_deadlines(struct request *request, tell_fn tell)
{
    const struct entry *entry;
    struct fields fields;

    entry = access_read(request->access, request->db, &request->keys[0]);
    if ((entry != NULL && !request_expect_type(request, entry, TYPE_HASH)) || !fields_parse(request, 2, &fields))
        return;
    if (entry == NULL) {
        reply_no_key(request, fields);
        return;
    }
    reply_array(request, fields.end - fields.first);
    for (uint32_t i = fields.first; i < fields.end; i++) {
        struct slice field = request_arg(request, i);
        int64_t expire_ms = entry_member_expire_ms(entry, field);

        if (expire_ms != EXPIRE_NEVER)
            reply_int(request, tell(expire_ms, request->access->now_ms));
        else
            reply_int(request, hash_has(entry_value(entry), field) ? NO_DEADLINE : NO_FIELD);
    }
}

static int64_t seconds_up(int64_t ms)
{
    return ms / 1000 + (ms % 1000 > 0);
}

static int64_t tell_rest_seconds(int64_t expire_ms, int64_t now_ms)
{
    return seconds_up(expire_ms - now_ms);
}

static int64_t tell_rest_ms(int64_t expire_ms, int64_t now_ms)
{
    return expire_ms - now_ms;
}

static int64_t tell_seconds(int64_t expire_ms, int64_t now_ms)
{
    (void)now_ms;
    return seconds_up(expire_ms);
}

static int64_t tell_ms(int64_t expire_ms, int64_t now_ms)
{
    (void)now_ms;
    return expire_ms;
}

static void cmd_httl(struct request *request)
{
    tell_deadlines(request, tell_rest_seconds);
}

static void cmd_hpttl(struct request *request)
{
    tell_deadlines(request, tell_rest_ms);
}

static void cmd_hexpiretime(struct request *request)
{
    tell_deadlines(request, tell_seconds);
}

static void cmd_hpexpiretime(struct request *request)
{
    tell_deadlines(request, tell_ms);
}

/* -------------------------------------------------------------------------------------- of members of any type -- */

static void member_effect(struct request *request, struct slice member, int64_t expire_ms, bool is_past)
{
    char text[NUMBER_I64_SPACE];
    const struct slice words[] = {SLICE("PEXPIREMEMBERAT"), request_arg(request, 1), member,
                                  slice_make(text, number_format_i64(text, expire_ms))};

    if (is_past) {
        effect_none(request); /* others have heard that the member is gone */
        operation_add(request, words, countof(words));
    } else {
        effect_set(request, words, countof(words));
    }
}

/* A deadline in the past is taken, and the member goes as if its time had come just now. */
static void expire_member(struct request *request, int64_t expire_ms)
{
    const bool is_past = expire_ms <= request->access->due_ms;
    const struct key *key = &request->keys[0];
    struct slice member = request_arg(request, 2);
    struct change change;

    change_begin(&change, request->access, request->db, key);
    change_member_expire(&change, member, is_past ? 0 : expire_ms);
    change_end(&change, EVENT_GENERIC, NULL);
    if (is_past)
        access_expire_members(request->access, request->db, key);
    member_effect(request, member, expire_ms, is_past);
}

static void expire_member_command(struct request *request, enum lifetime lifetime)
{
    const struct value_member_ops *ops;
    const struct entry *entry;
    int64_t expire_ms;

    if (!expire_arg(request, 3, lifetime, &expire_ms))
        return;
    entry = access_find(request->access, request->db, &request->keys[0]);
    if (entry == NULL) {
        reply_int(request, 0);
        return;
    }
    ops = entry_member_ops(request->access->store, entry);
    if (ops == NULL) {
        reply_error(request, "ERR object type is unsupported");
        return;
    }
    if (!ops->has(entry_value(entry), request_arg(request, 2))) {
        reply_int(request, 0);
        return;
    }
    expire_member(request, expire_ms);
    reply_int(request, 1);
}

static void cmd_expiremember(struct request *request)
{
    enum lifetime lifetime = LIFETIME_SECONDS;

    if (request->arg_count > 5) {
        reply_error(request, "ERR Invalid number of arguments");
        return;
    }
    if (request->arg_count == 5) {
        if (request_arg_is(request, 4, "MS")) {
            lifetime = LIFETIME_MS;
        } else if (!request_arg_is(request, 4, "S")) {
            reply_error(request, "ERR Invalid unit arg");
            return;
        }
    }
    expire_member_command(request, lifetime);
}

static void cmd_expirememberat(struct request *request)
{
    expire_member_command(request, LIFETIME_AT_SECONDS);
}

static void cmd_pexpirememberat(struct request *request)
{
    expire_member_command(request, LIFETIME_AT_MS);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

#define HASH_ROW(name_, run_, arity_, flags_, keys_, class_, syntax_, summary_, ...)                    \
    {                                                                                                   \
        .name = (name_), .run = (run_), .arity = (arity_), .access = ACCESS_STRIPED, .flags = (flags_), \
        .categories = class_ " @hash @fast", .keys = (keys_), .group = "hash", .since = "7.4.0",        \
        .summary = (summary_), .complexity = "O(N) for N fields",                                       \
        .syntax = syntax_ " FIELDS numfields field [field ...]", ##__VA_ARGS__                          \
    }
#define SET_ROW(name_, run_, argument_, summary_)                                                                  \
    HASH_ROW(name_, run_, -6, "write fast", "RW,UPDATE@index:1@range:0,1,0", "@write", argument_ " [NX|XX|GT|LT]", \
             summary_)
#define GET_ROW(name_, run_, syntax_, summary_, ...)                                                        \
    HASH_ROW(name_, run_, -5, "readonly fast", "RO,ACCESS@index:1@range:0,1,0", "@read", syntax_, summary_, \
             ##__VA_ARGS__)
#define MEMBER_ROW(name_, run_, arity_, since_, argument_, summary_)                                         \
    {                                                                                                        \
        .name = (name_), .run = (run_), .arity = (arity_), .access = ACCESS_STRIPED, .flags = "write fast",  \
        .categories = "@keyspace @write @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "generic", \
        .since = (since_), .summary = (summary_), .complexity = "O(1)", .syntax = (argument_)                \
    }

const struct command_row member_expiry_commands[] = {
    SET_ROW("hexpire", cmd_hexpire, "HEXPIRE key seconds", "Sets the deadlines of fields in seconds from now."),
    SET_ROW("hpexpire", cmd_hpexpire, "HPEXPIRE key milliseconds",
            "Sets the deadlines of fields in milliseconds from now."),
    SET_ROW("hexpireat", cmd_hexpireat, "HEXPIREAT key unix-time-seconds",
            "Sets the deadlines of fields as a Unix time in seconds."),
    SET_ROW("hpexpireat", cmd_hpexpireat, "HPEXPIREAT key unix-time-milliseconds",
            "Sets the deadlines of fields as a Unix time in milliseconds."),
    HASH_ROW("hpersist", cmd_hpersist, -5, "write fast", "RW,UPDATE@index:1@range:0,1,0", "@write", "HPERSIST key",
             "Removes the deadlines of fields."),
    GET_ROW("httl", cmd_httl, "HTTL key", "Returns the time to live of fields in seconds.",
            .tips = "nondeterministic_output"),
    GET_ROW("hpttl", cmd_hpttl, "HPTTL key", "Returns the time to live of fields in milliseconds.",
            .tips = "nondeterministic_output"),
    GET_ROW("hexpiretime", cmd_hexpiretime, "HEXPIRETIME key",
            "Returns the deadlines of fields as Unix times in seconds."),
    GET_ROW("hpexpiretime", cmd_hpexpiretime, "HPEXPIRETIME key",
            "Returns the deadlines of fields as Unix times in milliseconds."),
    MEMBER_ROW("expiremember", cmd_expiremember, -4, "5.1.0", "EXPIREMEMBER key subkey delay [s|ms]",
               "Sets the deadline of a member in seconds, or in the given unit, from now."),
    MEMBER_ROW("expirememberat", cmd_expirememberat, 4, "5.1.0", "EXPIREMEMBERAT key subkey unix-time-seconds",
               "Sets the deadline of a member as a Unix time in seconds."),
    MEMBER_ROW("pexpirememberat", cmd_pexpirememberat, 4, "6.0.8", "PEXPIREMEMBERAT key subkey unix-time-milliseconds",
               "Sets the deadline of a member as a Unix time in milliseconds."),
    {.name = NULL},
};
