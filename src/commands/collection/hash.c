/* Hashes: fields and their values. */
#include "commands/shared/families.h"

#include "base/number.h"
#include "commands/collection/fields.h"
#include "commands/shared/operations.h"
#include "commands/shared/random_count.h"
#include "commands/shared/scan_options.h"
#include "commands/shared/type_options.h"
#include "commands/shared/typed.h"
#include "data/hash.h"

#include <math.h>

/* ----------------------------------------------------------------------------------------------------- setting -- */

static bool edit_hash(struct edit *edit, struct request *request)
{
    return edit_begin(edit, request, &request->keys[0], TYPE_HASH);
}

/* Pairs from argument 2 on; returns how many fields are new. */
static int64_t put_pairs(struct request *request, struct edit *edit)
{
    const struct hash_limits limits = type_hash_limits();
    int64_t added = 0;

    if (edit->is_new)
        edit->value = hash_create();
    if (request->arg_count > 4) /* hash_put looks at a single pair itself */
        hash_expect(&edit->value, &limits, &request->args[2], request->arg_count - 2);
    for (uint32_t i = 2; i < request->arg_count; i += 2)
        added += hash_put(&edit->value, &limits, request_arg(request, i), request_arg(request, i + 1));
    edit_forget_args(edit, 2, 2);
    fields_end_kept(edit, "hset", &request->args[2], (request->arg_count - 2) / 2, 2);
    return added;
}

/* False: pairs are not complete, or the key is no hash; it was replied. */
static bool begin_pairs(struct request *request, struct edit *edit)
{
    if (request->arg_count % 2 == 0)
        return edit_hash(edit, request);
    reply_errorf(request, "ERR wrong number of arguments for '%.*s' command", (int)request->command->full_name.size,
                 request->command->full_name.data);
    return false;
}

static void cmd_hset(struct request *request)
{
    struct edit edit;

    if (begin_pairs(request, &edit))
        reply_int(request, put_pairs(request, &edit));
}

static void cmd_hmset(struct request *request)
{
    struct edit edit;

    if (!begin_pairs(request, &edit))
        return;
    (void)put_pairs(request, &edit);
    reply_ok(request);
}

static void put_one(struct edit *edit, struct slice field, struct slice value, const char *event)
{
    const struct hash_limits limits = type_hash_limits();

    if (edit->is_new)
        edit->value = hash_create();
    (void)hash_put(&edit->value, &limits, field, value);
    fields_end_kept(edit, event, &field, 1, 1);
}

static void cmd_hsetnx(struct request *request)
{
    struct edit edit;

    if (!edit_hash(&edit, request))
        return;
    if (!edit.is_new && hash_has(edit.value, request_arg(request, 2))) {
        reply_int(request, 0);
        return;
    }
    put_one(&edit, request_arg(request, 2), request_arg(request, 3), "hset");
    operation_add_words(request, (const struct slice[]){SLICE("HSET")}, 1, 1);
    reply_int(request, 1);
}

static bool get_field(const struct edit *edit, struct slice field, char scratch[NUMBER_I64_SPACE], struct slice *value)
{
    return !edit->is_new && hash_get(edit->value, field, scratch, value);
}

static void cmd_hincrby(struct request *request)
{
    char scratch[NUMBER_I64_SPACE], digits[NUMBER_I64_SPACE];
    int64_t amount, number = 0;
    struct slice value;
    struct edit edit;
    bool is_there;

    if (!request_arg_i64(request, 3, &amount) || !edit_hash(&edit, request))
        return;
    is_there = get_field(&edit, request_arg(request, 2), scratch, &value);
    if (is_there && !number_parse_i64(value, &number)) {
        reply_error(request, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(number, amount, &number)) {
        reply_error(request, "ERR increment or decrement would overflow");
        return;
    }
    if (is_there) {
        const struct hash_limits limits = type_hash_limits();

        hash_add(&edit.value, &limits, request_arg(request, 2), amount, number);
        fields_end_kept(&edit, "hincrby", &request->args[2], 1, 1);
    } else {
        put_one(&edit, request_arg(request, 2), slice_make(digits, number_format_i64(digits, number)), "hincrby");
    }
    reply_int(request, number);
}

static void cmd_hincrbyfloat(struct request *request)
{
    char scratch[NUMBER_I64_SPACE], digits[NUMBER_LONG_DOUBLE_HUMAN_SPACE];
    long double amount, number = 0;
    struct slice value;
    struct edit edit;

    if (!request_arg_long_double(request, 3, &amount))
        return;
    if (!isfinite(amount)) {
        reply_error(request, "ERR value is NaN or Infinity");
        return;
    }
    if (!edit_hash(&edit, request))
        return;
    if (get_field(&edit, request_arg(request, 2), scratch, &value) && !number_parse_long_double(value, &number)) {
        reply_error(request, "ERR hash value is not a float");
        return;
    }
    number = number_add_long_double(number, amount);
    if (!isfinite(number)) {
        reply_error(request, "ERR increment would produce NaN or Infinity");
        return;
    }
    value = slice_make(digits, number_format_long_double_human(digits, number));
    put_one(&edit, request_arg(request, 2), value, "hincrbyfloat");
    reply_bulk(request, value);
    /* Others get the sum: their floats may round otherwise. Peers are of our kind. */
    effect_set(request, (const struct slice[]){SLICE("HSET"), request_arg(request, 1), request_arg(request, 2), value},
               4);
    operation_add(request, request->args, request->arg_count);
    if (edit.has_deadlines) /* which HSET forgets */
        field_effect_deadline(request, request_arg(request, 2),
                              entry_member_expire_ms(change_entry(&edit.change), request_arg(request, 2)));
}

static void cmd_hdel(struct request *request)
{
    struct operation_list changed;
    struct touched touched;
    struct edit edit;

    if (!edit_hash(&edit, request))
        return;
    operation_members_begin(&changed, request);
    touched_begin_event(&touched, request, request->arg_count - 2);
    for (uint32_t i = 2; !edit.is_new && i < request->arg_count; i++) {
        if (!hash_remove(&edit.value, request_arg(request, i)))
            continue;
        operation_list_add(&changed, request_arg(request, i));
        touched_add(&touched, request_arg(request, i));
    }
    if (touched.count > 0) {
        edit_forget_args(&edit, 2, 1);
        fields_end(&edit, "hdel", &touched);
    }
    operation_members_end(&changed);
    reply_int(request, touched.count);
    touched_end(&touched);
}

/* The deadline of one field becomes that of another, with which it changes its name. */
static int64_t rename_deadline(struct edit *edit, struct slice from, struct slice to)
{
    int64_t expire_ms = EXPIRE_NEVER;

    if (edit->has_deadlines) {
        expire_ms = entry_member_expire_ms(change_entry(&edit->change), from);
        edit_forget(edit, from);
        change_member_expire(&edit->change, to, expire_ms);
    }
    return expire_ms;
}

/* A field gets another name; what had that name goes. */
static void cmd_hrename(struct request *request)
{
    struct slice from = request_arg(request, 2), to = request_arg(request, 3), value;
    const struct hash_limits limits = type_hash_limits();
    char scratch[NUMBER_I64_SPACE];
    struct buffer copy = {0};
    struct edit edit;
    int64_t expire_ms;

    if (!edit_hash(&edit, request))
        return;
    if (edit.is_new) {
        reply_null(request);
        return;
    }
    if (!hash_get(edit.value, from, scratch, &value)) {
        reply_error(request, "ERR hash key doesn't exist");
        return;
    }
    buffer_append_slice(&copy, value); /* it goes with its field */
    (void)hash_remove(&edit.value, from);
    (void)hash_put(&edit.value, &limits, to, buffer_slice(&copy));
    expire_ms = rename_deadline(&edit, from, to);
    fields_end_kept(&edit, "hset", &request->args[2], slice_equal(from, to) ? 1 : 2, 1);
    reply_int(request, 1);
    /* In this order: the key must not go in between, its deadline would go with it. */
    effect_set(request, (const struct slice[]){SLICE("HSET"), request_arg(request, 1), to, buffer_slice(&copy)}, 4);
    if (!slice_equal(from, to))
        effect_add(request, (const struct slice[]){SLICE("HDEL"), request_arg(request, 1), from}, 3);
    field_effect_deadline(request, to, expire_ms);
    buffer_fini(&copy);
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

static bool read_hash(struct request *request, struct value *hash)
{
    return typed_read(request, &request->keys[0], TYPE_HASH, hash);
}

static void cmd_hget(struct request *request)
{
    struct value hash;

    if (read_hash(request, &hash))
        field_reply(request, hash, request_arg(request, 2));
}

static void cmd_hmget(struct request *request)
{
    struct value hash;

    if (!read_hash(request, &hash))
        return;
    reply_array(request, request->arg_count - 2);
    for (uint32_t i = 2; i < request->arg_count; i++)
        field_reply(request, hash, request_arg(request, i));
}

static void cmd_hexists(struct request *request)
{
    struct value hash;

    if (read_hash(request, &hash))
        reply_int(request, hash.data != NULL && hash_has(hash, request_arg(request, 2)));
}

static void cmd_hlen(struct request *request)
{
    struct value hash;

    if (read_hash(request, &hash))
        reply_int(request, hash.data != NULL ? (int64_t)hash_count(hash) : 0);
}

static void cmd_hstrlen(struct request *request)
{
    char scratch[NUMBER_I64_SPACE];
    struct slice value;
    struct value hash;

    if (!read_hash(request, &hash))
        return;
    if (hash.data == NULL || !hash_get(hash, request_arg(request, 2), scratch, &value))
        value = SLICE_EMPTY;
    reply_int(request, (int64_t)value.size);
}

/* The parts of a pair that are replied. */
enum part { FIELDS = 1, VALUES = 2, PAIRS = FIELDS | VALUES, NESTED_PAIRS = PAIRS | 4 };

struct printer {
    struct request *request;
    const struct scan_options *options; /* NULL: everything is wanted */
    enum part part;
    uint64_t count; /* of elements printed */
};

static void print_pair(struct slice field, struct slice value, void *context)
{
    struct printer *printer = context;
    struct request *request = printer->request;

    if (printer->options != NULL && !scan_wants(printer->options, field))
        return;
    if (printer->part == NESTED_PAIRS)
        reply_array(request, 2);
    if ((printer->part & FIELDS) != 0)
        reply_bulk(request, field);
    if ((printer->part & VALUES) != 0)
        reply_bulk(request, value);
    printer->count += (printer->part & PAIRS) == PAIRS ? 2 : 1;
}

static void reply_all(struct request *request, enum part part)
{
    struct printer printer = {.request = request, .part = part};
    struct value hash;
    uint64_t count;

    if (!read_hash(request, &hash))
        return;
    count = hash.data != NULL ? hash_count(hash) : 0;
    if (part == PAIRS)
        reply_map(request, count);
    else
        reply_array(request, count);
    if (hash.data != NULL)
        hash_each(hash, print_pair, &printer);
}

static void cmd_hgetall(struct request *request)
{
    reply_all(request, PAIRS);
}

static void cmd_hkeys(struct request *request)
{
    reply_all(request, FIELDS);
}

static void cmd_hvals(struct request *request)
{
    reply_all(request, VALUES);
}

static void cmd_hscan(struct request *request)
{
    struct scan_options options;
    struct printer printer = {.request = request, .options = &options, .part = PAIRS};
    struct scan_reply reply;
    struct value hash;
    uint64_t cursor;

    if (!scan_parse_cursor(request, 2, &cursor) || !read_hash(request, &hash))
        return;
    if (hash.data == NULL) {
        scan_reply_nothing(request);
        return;
    }
    if (!scan_parse_options(request, 3, SCAN_NOVALUES, &options))
        return;
    if (options.no_values)
        printer.part = FIELDS;
    reply = scan_reply_begin(request);
    cursor = hash_scan(hash, cursor, (uint64_t)options.want, print_pair, &printer);
    scan_reply_end(request, reply, cursor, printer.count);
}

struct random_printer {
    struct printer printer;
    struct value hash;
};

/* A random_count_reply_fn. */
static void reply_random_one(struct request *request, void *context)
{
    struct random_printer *random = context;

    (void)request;
    hash_random(random->hash, random_thread(), print_pair, &random->printer);
}

static void reply_random(struct request *request, struct value hash, const struct random_count *wanted, enum part part)
{
    struct random_printer random = {.printer = {.request = request, .part = part}, .hash = hash};
    uint64_t count = wanted->count, strings = part == PAIRS ? 2 : 1;

    if (hash.data == NULL) {
        reply_array(request, 0);
    } else if (wanted->repeats) {
        random_count_reply_repeats(request, wanted, count * strings, reply_random_one, &random);
    } else {
        count = MIN(count, hash_count(hash));
        reply_array(request, count * strings);
        if (count != 0)
            hash_random_some(hash, random_thread(), count, print_pair, &random.printer);
    }
}

static void cmd_hrandfield(struct request *request)
{
    struct printer printer = {.request = request, .part = FIELDS};
    struct random_count wanted;
    enum part part = FIELDS;
    struct value hash;

    if (request->arg_count == 2) {
        if (!read_hash(request, &hash))
            return;
        if (hash.data == NULL)
            reply_null(request);
        else
            hash_random(hash, random_thread(), print_pair, &printer);
        return;
    }
    if (!random_count_parse(request, 2, &wanted))
        return;
    if (request->arg_count > 4 || (request->arg_count == 4 && !request_arg_is(request, 3, "WITHVALUES"))) {
        reply_syntax_error(request);
        return;
    }
    if (request->arg_count == 4)
        part = request->proto == 3 ? NESTED_PAIRS : PAIRS;
    if (part != FIELDS && !random_count_check_pairs(request, &wanted))
        return;
    if (read_hash(request, &hash))
        reply_random(request, hash, &wanted, part);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row hash_commands[] = {
    {.name = "hset", .run = cmd_hset, .arity = -4, .member = 2, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @hash @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Sets one or more fields of a hash.", .complexity = "O(N) for N fields",
     .syntax = "HSET key field value [field value ...]", .history = "4.0.0=Several pairs of field and value."},
    {.name = "hmset", .run = cmd_hmset, .arity = -4, .member = 2,
     .access = ACCESS_STRIPED, .flags = "write denyoom fast deprecated",
     .categories = "@write @hash @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Sets several fields of a hash.", .complexity = "O(N) for N fields",
     .syntax = "HMSET key field value [field value ...]", .deprecated_since = "4.0.0",
     .replaced_by = "`HSET` with multiple field-value pairs"},
    {.name = "hsetnx", .run = cmd_hsetnx, .arity = 4, .member = 2,
     .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @hash @fast", .keys = "RW,INSERT@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Sets a field of a hash if it does not exist.", .complexity = "O(1)",
     .syntax = "HSETNX key field value"},
    {.name = "hget", .run = cmd_hget, .arity = 3, .member = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @hash @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Returns the value of a field.", .complexity = "O(1)", .syntax = "HGET key field"},
    {.name = "hmget", .run = cmd_hmget, .arity = -3, .member = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @hash @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Returns the values of several fields.", .complexity = "O(N) for N fields",
     .syntax = "HMGET key field [field ...]"},
    {.name = "hdel", .run = cmd_hdel, .arity = -3, .member = 2, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @hash @fast", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Deletes fields. Deletes the hash when no field remains.", .complexity = "O(N) for N fields",
     .syntax = "HDEL key field [field ...]", .history = "2.4.0=Several fields in one call."},
    {.name = "hlen", .run = cmd_hlen, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @hash @fast", .keys = "RO@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Returns how many fields a hash has.", .complexity = "O(1)", .syntax = "HLEN key"},
    {.name = "hstrlen", .run = cmd_hstrlen, .arity = 3, .member = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @hash @fast", .keys = "RO@index:1@range:0,1,0", .group = "hash", .since = "3.2.0",
     .summary = "Returns the length of a field's value in bytes.", .complexity = "O(1)", .syntax = "HSTRLEN key field"},
    {.name = "hexists", .run = cmd_hexists, .arity = 3, .member = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @hash @fast", .keys = "RO@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Checks whether a hash has a field.", .complexity = "O(1)", .syntax = "HEXISTS key field"},
    {.name = "hgetall", .run = cmd_hgetall, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @hash @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Returns all fields with their values.", .complexity = "O(N) for a hash of N fields",
     .syntax = "HGETALL key", .tips = "nondeterministic_output_order"},
    {.name = "hkeys", .run = cmd_hkeys, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @hash @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Returns the names of all fields.", .complexity = "O(N) for a hash of N fields", .syntax = "HKEYS key",
     .tips = "nondeterministic_output_order"},
    {.name = "hvals", .run = cmd_hvals, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @hash @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "hash", .since = "2.0.0",
     .summary = "Returns the values of all fields.", .complexity = "O(N) for a hash of N fields",
     .syntax = "HVALS key", .tips = "nondeterministic_output_order"},
    {.name = "hincrby", .run = cmd_hincrby, .arity = 4, .member = 2,
     .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @hash @fast", .keys = "RW,ACCESS,UPDATE@index:1@range:0,1,0", .group = "hash",
     .since = "2.0.0", .summary = "Adds to the integer in a field. A field that does not exist counts as 0.",
     .complexity = "O(1)",
     .syntax = "HINCRBY key field increment"},
    {.name = "hincrbyfloat", .run = cmd_hincrbyfloat, .arity = 4, .member = 2, .access = ACCESS_STRIPED,
     .flags = "write denyoom fast", .categories = "@write @hash @fast", .keys = "RW,ACCESS,UPDATE@index:1@range:0,1,0",
     .group = "hash", .since = "2.6.0",
     .summary = "Adds to the number in a field. A field that does not exist counts as 0.",
     .complexity = "O(1)", .syntax = "HINCRBYFLOAT key field increment"},
    {.name = "hrandfield", .run = cmd_hrandfield, .arity = -2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @hash @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "hash", .since = "6.2.0",
     .summary = "Returns random fields of a hash.", .complexity = "O(N) for N fields returned",
     .syntax = "HRANDFIELD key [count [WITHVALUES]]", .tips = "nondeterministic_output"},
    {.name = "hscan", .run = cmd_hscan, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly",
     .categories = "@read @hash @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "hash", .since = "2.8.0",
     .summary = "Iterates over the fields of a hash.",
     .complexity = "O(1) for each step, O(N) for all N fields",
     .syntax = "HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]", .tips = "nondeterministic_output"},
    {.name = "keydb.hrename", .run = cmd_hrename, .arity = 4, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @hash @fast", .keys = "RW,ACCESS,UPDATE@index:1@range:0,1,0", .group = "generic",
     .since = "6.0.8", .summary = "Renames a field.", .complexity = "O(1)",
     .syntax = "KEYDB.HRENAME key src-field dst-field"},
    {.name = NULL},
};
/* clang-format on */
