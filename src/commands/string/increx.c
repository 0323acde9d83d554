/* INCREX: adds to a number within bounds, and may change the key's deadline.
 *
 * Others are told what came of it, in words that every version knows: files and replicas by an INCRBY, or a SET where
 * there is a deadline or a float, or by a DEL where the new deadline has passed. Peers get the addition, so that those
 * of several nodes add up, and the deadline; but the sum where a float was cut off at a bound, since it need not be the
 * old value plus the rounded difference. */
#include "commands/shared/families.h"

#include "commands/keys/expire.h"
#include "commands/string/string.h"

#include <math.h>

/* --- options --- */

struct increx {
    uint32_t amount_index, least_index, most_index, time_index; /* arguments; 0: there is none */
    bool is_float, saturates, only_without_deadline;
    enum lifetime lifetime;
    int64_t expire_ms; /* what the command says, then what the key gets */
    union {
        struct {
            int64_t amount, least, most;
        } integer;
        struct {
            long double amount, least, most;
        } floating;
    };
};

/* Goes to the option's value. */
static bool parse_value(const struct request *request, uint32_t *index, uint32_t *value_index)
{
    if (*value_index != 0 || *index + 1 == request->arg_count)
        return false;
    *value_index = ++*index;
    return true;
}

static bool parse_flag(bool *flag)
{
    const bool is_first = !*flag;

    *flag = true;
    return is_first;
}

static bool parse_lifetime(const struct request *request, uint32_t *index, struct increx *increx)
{
    const enum lifetime lifetime = lifetime_of_word(request_arg(request, *index));

    if (lifetime == LIFETIME_NONE || lifetime == LIFETIME_KEEP || increx->lifetime != LIFETIME_NONE)
        return false;
    increx->lifetime = lifetime;
    return !lifetime_takes_time(lifetime) || parse_value(request, index, &increx->time_index);
}

/* Each option may stand once. */
static bool parse_option(const struct request *request, uint32_t *index, struct increx *increx)
{
    if (request_arg_is(request, *index, "BYINT"))
        return parse_value(request, index, &increx->amount_index);
    if (request_arg_is(request, *index, "BYFLOAT")) {
        increx->is_float = true;
        return parse_value(request, index, &increx->amount_index);
    }
    if (request_arg_is(request, *index, "LBOUND"))
        return parse_value(request, index, &increx->least_index);
    if (request_arg_is(request, *index, "UBOUND"))
        return parse_value(request, index, &increx->most_index);
    if (request_arg_is(request, *index, "SATURATE"))
        return parse_flag(&increx->saturates);
    if (request_arg_is(request, *index, "ENX"))
        return parse_flag(&increx->only_without_deadline);
    return parse_lifetime(request, index, increx);
}

static bool check_bounds(struct request *request, bool are_ordered)
{
    if (!are_ordered)
        reply_error(request, "ERR LBOUND can't be greater than UBOUND");
    return are_ordered;
}

static bool parse_integers(struct request *request, struct increx *increx)
{
    increx->integer.amount = 1;
    increx->integer.least = INT64_MIN;
    increx->integer.most = INT64_MAX;
    if (increx->amount_index != 0 &&
        !request_arg_range(request, increx->amount_index, INT64_MIN, INT64_MAX, &increx->integer.amount,
                           "ERR Increment is not an integer or out of range"))
        return false;
    if (increx->least_index != 0 && !request_arg_i64(request, increx->least_index, &increx->integer.least))
        return false;
    if (increx->most_index != 0 && !request_arg_i64(request, increx->most_index, &increx->integer.most))
        return false;
    return check_bounds(request, increx->integer.least <= increx->integer.most);
}

static bool parse_floats(struct request *request, struct increx *increx)
{
    increx->floating.least = -INFINITY;
    increx->floating.most = INFINITY;
    if (!number_parse_long_double(request_arg(request, increx->amount_index), &increx->floating.amount)) {
        reply_error(request, "ERR Increment is not a valid float");
        return false;
    }
    if (!isfinite(increx->floating.amount)) {
        reply_error(request, "ERR BYFLOAT increment cannot be Infinity");
        return false;
    }
    if (increx->least_index != 0 && !request_arg_long_double(request, increx->least_index, &increx->floating.least))
        return false;
    if (increx->most_index != 0 && !request_arg_long_double(request, increx->most_index, &increx->floating.most))
        return false;
    return check_bounds(request, increx->floating.least <= increx->floating.most);
}

/* False: an error was replied. */
static bool parse_options(struct request *request, struct increx *increx)
{
    *increx = (struct increx){.expire_ms = EXPIRE_KEEP};
    for (uint32_t i = 2; i < request->arg_count; i++) {
        if (!parse_option(request, &i, increx)) {
            reply_syntax_error(request);
            return false;
        }
    }
    if (increx->only_without_deadline && increx->lifetime == LIFETIME_PERSIST) {
        reply_syntax_error(request);
        return false;
    }
    if (increx->only_without_deadline && increx->lifetime == LIFETIME_NONE) {
        reply_error(request, "ERR ENX flag requires an expiration");
        return false;
    }
    if (!(increx->is_float ? parse_floats(request, increx) : parse_integers(request, increx)))
        return false;
    if (increx->lifetime == LIFETIME_PERSIST)
        increx->expire_ms = EXPIRE_NEVER;
    return !lifetime_takes_time(increx->lifetime) ||
           expire_arg_positive(request, increx->time_index, increx->lifetime, &increx->expire_ms);
}

/* --- deadlines and effects --- */

/* A key whose new deadline has passed goes, or does not come. */
static bool is_past(const struct request *request, const struct increx *increx)
{
    return lifetime_takes_time(increx->lifetime) && increx->expire_ms <= request->access->due_ms;
}

/* After the value was changed. */
static void change_deadline(struct request *request, const struct key *key, const struct increx *increx)
{
    if (increx->lifetime == LIFETIME_PERSIST)
        (void)expire_remove(request, key, access_probe(request->access, request->db, key));
    else if (increx->lifetime != LIFETIME_NONE)
        expire_set(request, key, increx->expire_ms);
}

static void add_effect(struct request *request, const struct increx *increx, struct slice value)
{
    char text[NUMBER_I64_SPACE];
    struct slice words[] = {SLICE("SET"), request->keys[0].name, value, SLICE("KEEPTTL"), SLICE_EMPTY};
    uint32_t count = increx->lifetime == LIFETIME_PERSIST ? 3 : 4;

    if (lifetime_takes_time(increx->lifetime)) {
        words[3] = SLICE("PXAT");
        words[4] = slice_make(text, number_format_i64(text, increx->expire_ms));
        count = 5;
    }
    effect_set(request, words, count);
}

static void add_operations(struct request *request, const struct increx *increx, const char *name, struct slice amount)
{
    const struct slice key = request->keys[0].name;
    char text[NUMBER_I64_SPACE];

    operation_add(request, (const struct slice[]){slice_from_text(name), key, amount}, 3);
    if (increx->lifetime == LIFETIME_PERSIST) {
        operation_add(request, (const struct slice[]){SLICE("PERSIST"), key}, 2);
    } else if (increx->lifetime != LIFETIME_NONE) {
        const struct slice time = slice_make(text, number_format_i64(text, increx->expire_ms));

        operation_add(request, (const struct slice[]){SLICE("PEXPIREAT"), key, time}, 3);
    }
}

/* --- integers --- */

/* A bound or the end of the type is met where the number leads beyond it. False: the sum is to be left out. */
static bool add_integers(const struct increx *increx, int64_t old, int64_t *sum)
{
    bool fits = true;

    if (__builtin_add_overflow(old, increx->integer.amount, sum)) {
        fits = false;
        *sum = increx->integer.amount < 0 ? INT64_MIN : INT64_MAX;
    }
    fits = fits && *sum >= increx->integer.least && *sum <= increx->integer.most;
    *sum = MIN(MAX(*sum, increx->integer.least), increx->integer.most);
    return fits || increx->saturates;
}

static void reply_integers(struct request *request, int64_t number, int64_t amount)
{
    reply_array(request, 2);
    reply_int(request, number);
    reply_int(request, amount);
}

static void put_integer(struct request *request, const struct increx *increx, int64_t number, int64_t amount)
{
    const struct key *key = &request->keys[0];
    char text[NUMBER_I64_SPACE], amount_text[NUMBER_I64_SPACE];
    const struct slice added = slice_make(amount_text, number_format_i64(amount_text, amount));
    struct change change;

    change_begin(&change, request->access, request->db, key);
    change_put_int(&change, number, EXPIRE_KEEP);
    change_end(&change, EVENT_STRING, "incrby");
    if (increx->lifetime == LIFETIME_NONE) {
        effect_set(request, (const struct slice[]){SLICE("INCRBY"), key->name, added}, 3);
        return;
    }
    change_deadline(request, key, increx);
    add_effect(request, increx, slice_make(text, number_format_i64(text, number)));
    add_operations(request, increx, "INCRBY", added);
}

static void increase_integer(struct request *request, const struct increx *increx, const struct entry *entry)
{
    int64_t old, sum, amount;

    if (!string_read_number(request, entry, &old))
        return;
    if (!add_integers(increx, old, &sum)) {
        reply_integers(request, old, 0);
        return;
    }
    if (__builtin_sub_overflow(sum, old, &amount)) {
        reply_error(request, "ERR applied increment would overflow");
        return;
    }
    if (is_past(request, increx))
        expire_delete(request, &request->keys[0]);
    else
        put_integer(request, increx, sum, amount);
    reply_integers(request, sum, amount);
}

/* --- floats --- */

/* The largest of 64 bits of mantissa and 15 of exponent: that of every sum here (base/number.h). */
static long double largest_float(void)
{
    return ldexpl((long double)UINT64_MAX, 16320);
}

/* The same for floats, with the amount that was added, which is the command's own unless the sum is cut off. */
static bool add_floats(const struct increx *increx, long double old, long double *sum, long double *amount)
{
    bool fits;

    *sum = number_add_long_double(old, increx->floating.amount);
    *amount = increx->floating.amount;
    fits = isfinite(*sum) && *sum >= increx->floating.least && *sum <= increx->floating.most;
    if (fits)
        return true;
    if (isinf(*sum))
        *sum = copysignl(largest_float(), *sum);
    *sum = fminl(fmaxl(*sum, increx->floating.least), increx->floating.most);
    *amount = number_add_long_double(*sum, -old);
    return increx->saturates;
}

static void reply_float(struct request *request, long double number)
{
    char text[NUMBER_LONG_DOUBLE_HUMAN_SPACE];

    resp_write_double_text(request->out, request->proto,
                           slice_make(text, number_format_long_double_human(text, number)));
}

static void reply_floats(struct request *request, long double number, long double amount)
{
    reply_array(request, 2);
    reply_float(request, number);
    reply_float(request, amount);
}

static void put_float(struct request *request, const struct increx *increx, long double number, bool is_cut)
{
    const struct key *key = &request->keys[0];
    char digits[NUMBER_LONG_DOUBLE_HUMAN_SPACE];
    const struct slice text = slice_make(digits, number_format_long_double_human(digits, number));
    struct change change;

    change_begin(&change, request->access, request->db, key);
    string_put_text(&change, text);
    change_end(&change, EVENT_STRING, "incrbyfloat");
    change_deadline(request, key, increx);
    add_effect(request, increx, text);
    if (!is_cut)
        add_operations(request, increx, "INCRBYFLOAT", request_arg(request, increx->amount_index));
}

static void increase_float(struct request *request, const struct increx *increx, const struct entry *entry)
{
    long double old, sum, amount;

    if (!string_read_float(request, entry, &old))
        return;
    if (!isfinite(old)) {
        reply_error(request, "ERR value cannot be Infinity");
        return;
    }
    if (!add_floats(increx, old, &sum, &amount)) {
        reply_floats(request, old, 0);
        return;
    }
    if (!isfinite(sum) || !isfinite(amount)) {
        reply_error(request, "ERR applied increment would be Infinity");
        return;
    }
    if (is_past(request, increx))
        expire_delete(request, &request->keys[0]);
    else
        put_float(request, increx, sum, amount != increx->floating.amount);
    reply_floats(request, sum, amount);
}

/* --- the command --- */

static void cmd_increx(struct request *request)
{
    struct increx increx;
    struct entry *entry;

    if (!parse_options(request, &increx) || !string_find(request, &request->keys[0], &entry))
        return;
    if (increx.only_without_deadline && entry != NULL && entry_expire_ms(entry) != EXPIRE_NEVER)
        increx.lifetime = LIFETIME_NONE;
    if (increx.is_float)
        increase_float(request, &increx, entry);
    else
        increase_integer(request, &increx, entry);
}

const struct command_row increx_commands[] = {
    {.name = "increx",
     .run = cmd_increx,
     .arity = -2,
     .access = ACCESS_STRIPED,
     .flags = "write denyoom fast",
     .categories = "@write @string @fast",
     .keys = "RW,ACCESS,UPDATE@index:1@range:0,1,0",
     .group = "string",
     .since = "8.8.0",
     .complexity = "O(1)",
     .syntax =
         "INCREX key [BYINT increment|BYFLOAT float-increment] [LBOUND lower-bound] [UBOUND upper-bound] [SATURATE] "
         "[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] [ENX]",
     .summary = "Adds to a number within bounds, and may change its deadline."},
    {.name = NULL},
};
