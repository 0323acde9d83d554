/* HSETEX, HGETEX and HGETDEL: fields are written or read, and get a deadline or go, in one command. Others are told in
 * the words of older commands: HSET, HDEL, HPERSIST, HPEXPIREAT with the time as it was here. */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "base/number.h"
#include "commands/collection/fields.h"
#include "commands/shared/operations.h"
#include "commands/shared/type_options.h"
#include "data/hash.h"

/* ----------------------------------------------------------------------------------------------------- options -- */

enum demand { ANY, ABSENT, PRESENT };

struct options {
    enum demand key, fields; /* HSETEX: what has to be there, or must not be */
    enum lifetime lifetime;
    int64_t expire_ms;     /* for lifetimes that take a time */
    uint32_t first, count; /* the fields: arguments first, first + width ...; first 0: none yet */
};

/* What differs between the commands that take options. */
struct form {
    bool has_demands;
    uint32_t width;         /* arguments of a field */
    enum lifetime lifetime; /* besides those with a time */
    const char *many_error; /* several lifetimes */
};

static const struct form hsetex_form = {
    .has_demands = true,
    .width = 2,
    .lifetime = LIFETIME_KEEP,
    .many_error = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
};
static const struct form hgetex_form = {
    .width = 1,
    .lifetime = LIFETIME_PERSIST,
    .many_error = "ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified",
};

/* The parsers of an option get the index of its first argument and leave that of its last one. */

static bool parse_block(struct request *request, uint32_t *index, uint32_t width, struct options *options)
{
    int64_t count;

    if (options->first != 0) {
        reply_error(request, "ERR FIELDS keyword specified multiple times");
        return false;
    }
    if (*index + 1 == request->arg_count) {
        reply_error(request, "ERR wrong number of arguments");
        return false;
    }
    if (!request_arg_range(request, *index + 1, 1, INT32_MAX, &count, "ERR invalid number of fields"))
        return false;
    options->first = *index + 2;
    if (count * width > (int64_t)request->arg_count - options->first) {
        reply_error(request, "ERR wrong number of arguments");
        return false;
    }
    options->count = (uint32_t)count;
    *index = options->first + options->count * width - 1;
    return true;
}

static bool parse_lifetime(struct request *request, uint32_t *index, const struct form *form, enum lifetime lifetime,
                           struct options *options)
{
    if (options->lifetime != LIFETIME_NONE) {
        reply_error(request, form->many_error);
        return false;
    }
    options->lifetime = lifetime;
    if (!lifetime_takes_time(lifetime))
        return true;
    if (++*index == request->arg_count) {
        reply_error(request, "ERR missing expire time");
        return false;
    }
    return field_deadline_parse(request, *index, lifetime, &options->expire_ms);
}

static bool set_demand(struct request *request, enum demand *demand, enum demand wanted, const char *many_error)
{
    if (*demand != ANY) {
        reply_error(request, many_error);
        return false;
    }
    *demand = wanted;
    return true;
}

static bool refuse_word(struct request *request, struct slice word)
{
    reply_errorf(request, "ERR unknown argument: %.*s", (int)MIN(word.size, (size_t)1024), word.data);
    return false;
}

static bool parse_demand(struct request *request, uint32_t index, struct options *options)
{
    static const char fields_error[] = "ERR Only one of FXX or FNX arguments can be specified";
    static const char key_error[] = "ERR Only one of XX or NX arguments can be specified";

    if (request_arg_is(request, index, "FNX"))
        return set_demand(request, &options->fields, ABSENT, fields_error);
    if (request_arg_is(request, index, "FXX"))
        return set_demand(request, &options->fields, PRESENT, fields_error);
    if (request_arg_is(request, index, "NX"))
        return set_demand(request, &options->key, ABSENT, key_error);
    if (request_arg_is(request, index, "XX"))
        return set_demand(request, &options->key, PRESENT, key_error);
    return refuse_word(request, request_arg(request, index));
}

static bool parse_option(struct request *request, uint32_t *index, const struct form *form, struct options *options)
{
    const struct slice word = request_arg(request, *index);
    enum lifetime lifetime;

    if (request_arg_is(request, *index, "FIELDS"))
        return parse_block(request, index, form->width, options);
    lifetime = lifetime_of_word(word);
    if (lifetime_takes_time(lifetime) || (lifetime != LIFETIME_NONE && lifetime == form->lifetime))
        return parse_lifetime(request, index, form, lifetime, options);
    return form->has_demands ? parse_demand(request, *index, options) : refuse_word(request, word);
}

/* In any order, also behind the fields. False: an error was replied. */
static bool parse_options(struct request *request, const struct form *form, struct options *options)
{
    *options = (struct options){.lifetime = LIFETIME_NONE};
    for (uint32_t i = 2; i < request->arg_count; i++) {
        if (!parse_option(request, &i, form, options))
            return false;
    }
    if (options->first == 0) {
        reply_error(request, "ERR missing FIELDS argument");
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------ HSETEX -- */

static bool fields_meet(const struct request *request, const struct edit *edit, const struct options *options)
{
    for (uint32_t i = 0; options->fields != ANY && i < options->count; i++) {
        const bool is_there = !edit->is_new && hash_has(edit->value, request_arg(request, options->first + 2 * i));

        if (is_there != (options->fields == PRESENT))
            return false;
    }
    return true;
}

static bool key_meets(const struct edit *edit, const struct options *options)
{
    return options->key == ANY || edit->is_new == (options->key == ABSENT);
}

static void put_fields(struct request *request, struct edit *edit, const struct options *options)
{
    const struct hash_limits limits = type_hash_limits();
    const struct slice *pairs = &request->args[options->first];

    if (edit->is_new)
        edit->value = hash_create();
    hash_expect(&edit->value, &limits, pairs, 2 * options->count);
    for (uint32_t i = 0; i < 2 * options->count; i += 2) {
        (void)hash_put(&edit->value, &limits, pairs[i], pairs[i + 1]);
        if (options->lifetime == LIFETIME_NONE)
            edit_forget(edit, pairs[i]);
    }
    fields_end_kept(edit, "hset", pairs, options->count, 2);
}

static void effect_put(struct request *request, const struct options *options)
{
    const struct slice head[] = {SLICE("HSET"), request_arg(request, 1)};

    effect_none(request);
    fields_effect(request, head, countof(head), &request->args[options->first], 2 * options->count);
}

/* HSET forgets deadlines, so those that stay are told anew. */
static void effect_keep(struct request *request, const struct edit *edit, const struct options *options)
{
    if (!edit->has_deadlines)
        return;
    for (uint32_t i = 0; i < options->count; i++) {
        struct slice field = request_arg(request, options->first + 2 * i);

        field_effect_deadline(request, field, entry_member_expire_ms(change_entry(&edit->change), field));
    }
}

/* A change of its own, with its own event: only a key that is there can have fields with deadlines. If the time has
 * passed, others only hear that the fields are gone. */
static void limit_fields(struct request *request, const struct options *options)
{
    bool live = true;
    struct touched touched;
    struct edit edit;

    if (!edit_begin(&edit, request, &request->keys[0], TYPE_HASH))
        return;
    touched_begin(&touched, options->count);
    for (uint32_t i = 0; i < options->count; i++) {
        struct slice field = request_arg(request, options->first + 2 * i);

        live = field_live_until(&edit, field, options->expire_ms);
        touched_add(&touched, field);
    }
    fields_end(&edit, live ? "hexpire" : "hdel", &touched);
    if (live)
        effect_put(request, options);
    else
        effect_none(request);
    fields_effect_deadline(request, options->expire_ms, touched.fields, touched.count);
    touched_end(&touched);
}

static void cmd_hsetex(struct request *request)
{
    struct options options;
    struct edit edit;

    if (!parse_options(request, &hsetex_form, &options) || !edit_begin(&edit, request, &request->keys[0], TYPE_HASH))
        return;
    if (!key_meets(&edit, &options) || !fields_meet(request, &edit, &options)) {
        reply_int(request, 0);
        return;
    }
    put_fields(request, &edit, &options);
    reply_int(request, 1);
    if (lifetime_takes_time(options.lifetime)) {
        limit_fields(request, &options);
        return;
    }
    effect_put(request, &options);
    if (options.lifetime == LIFETIME_KEEP)
        effect_keep(request, &edit, &options);
}

/* ------------------------------------------------------------------------------------------------------ HGETEX -- */

static void effect_persist(struct request *request, const struct touched *touched)
{
    char text[NUMBER_I64_SPACE];
    const struct slice head[] = {SLICE("HPERSIST"), request_arg(request, 1), SLICE("FIELDS"),
                                 slice_make(text, number_format_i64(text, touched->count))};

    effect_none(request);
    fields_effect(request, head, countof(head), touched->fields, touched->count);
}

static void reply_persisting(struct request *request, struct edit *edit, const struct options *options)
{
    struct touched touched;

    touched_begin(&touched, options->count);
    for (uint32_t i = 0; i < options->count; i++) {
        struct slice field = request_arg(request, options->first + i);

        field_reply(request, edit->value, field);
        if (entry_member_expire_ms(change_entry(&edit->change), field) == EXPIRE_NEVER)
            continue;
        edit_forget(edit, field);
        touched_add(&touched, field);
    }
    if (touched.count != 0) {
        fields_end(edit, "hpersist", &touched);
        effect_persist(request, &touched);
    }
    touched_end(&touched);
}

static void reply_limiting(struct request *request, struct edit *edit, const struct options *options)
{
    bool live = true;
    struct touched touched;

    touched_begin(&touched, options->count);
    for (uint32_t i = 0; i < options->count; i++) {
        struct slice field = request_arg(request, options->first + i);

        field_reply(request, edit->value, field);
        if (!hash_has(edit->value, field))
            continue;
        live = field_live_until(edit, field, options->expire_ms);
        touched_add(&touched, field);
    }
    if (touched.count != 0) {
        fields_end(edit, live ? "hexpire" : "hdel", &touched);
        effect_none(request);
        fields_effect_deadline(request, options->expire_ms, touched.fields, touched.count);
    }
    touched_end(&touched);
}

static void cmd_hgetex(struct request *request)
{
    struct options options;
    struct value hash;
    struct edit edit;

    if (!typed_find(request, &request->keys[0], TYPE_HASH, &hash) || !parse_options(request, &hgetex_form, &options))
        return;
    if (hash.data == NULL || options.lifetime == LIFETIME_NONE) {
        reply_array(request, options.count);
        for (uint32_t i = 0; i < options.count; i++)
            field_reply(request, hash, request_arg(request, options.first + i));
        return;
    }
    if (!edit_begin(&edit, request, &request->keys[0], TYPE_HASH))
        return;
    reply_array(request, options.count);
    if (options.lifetime == LIFETIME_PERSIST)
        reply_persisting(request, &edit, &options);
    else
        reply_limiting(request, &edit, &options);
}

/* ----------------------------------------------------------------------------------------------------- HGETDEL -- */

static void effect_delete(struct request *request, const struct touched *touched)
{
    const struct slice head[] = {SLICE("HDEL"), request_arg(request, 1)};

    effect_none(request);
    fields_effect(request, head, countof(head), touched->fields, touched->count);
}

static void reply_deleting(struct request *request, struct edit *edit, struct fields fields)
{
    struct touched touched;

    touched_begin(&touched, fields.end - fields.first);
    for (uint32_t i = fields.first; i < fields.end; i++) {
        struct slice field = request_arg(request, i);

        field_reply(request, edit->value, field);
        if (!hash_remove(&edit->value, field))
            continue;
        edit_forget(edit, field);
        touched_add(&touched, field);
    }
    if (touched.count != 0) {
        fields_end(edit, "hdel", &touched);
        effect_delete(request, &touched);
    }
    touched_end(&touched);
}

static void cmd_hgetdel(struct request *request)
{
    struct fields fields;
    struct edit edit;

    if (!edit_begin(&edit, request, &request->keys[0], TYPE_HASH) || !fields_parse(request, 2, &fields))
        return;
    reply_array(request, fields.end - fields.first);
    if (edit.is_new) {
        for (uint32_t i = fields.first; i < fields.end; i++)
            reply_null(request);
    } else {
        reply_deleting(request, &edit, fields);
    }
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

#define HASH_EX_ROW(name_, run_, arity_, flags_, keys_, syntax_, summary_, ...)                                      \
    {                                                                                                                \
        .name = (name_), .run = (run_), .arity = (arity_), .access = ACCESS_STRIPED, .flags = (flags_),              \
        .categories = "@write @hash @fast", .keys = keys_ "@index:1@range:0,1,0", .group = "hash", .since = "8.0.0", \
        .summary = (summary_), .complexity = "O(N) for N fields", .syntax = (syntax_), ##__VA_ARGS__                 \
    }

const struct command_row hash_ex_commands[] = {
    HASH_EX_ROW("hsetex", cmd_hsetex, -6, "write denyoom fast", "RW,UPDATE",
                "HSETEX key [NX|XX] [FNX|FXX] "
                "[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL] "
                "FIELDS numfields field value [field value ...]",
                "Sets fields with one deadline, if all of them exist or none does."),
    HASH_EX_ROW("hgetex", cmd_hgetex, -5, "write fast", "RW,ACCESS,UPDATE",
                "HGETEX key "
                "[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] "
                "FIELDS numfields field [field ...]",
                "Returns the values of fields, and sets or removes their deadlines.",
                .key_notes = "RW and UPDATE, for the fields' lifetime may change."),
    HASH_EX_ROW("hgetdel", cmd_hgetdel, -5, "write fast", "RW,ACCESS,DELETE",
                "HGETDEL key FIELDS numfields field [field ...]", "Returns the values of fields and deletes these."),
    {.name = NULL},
};
