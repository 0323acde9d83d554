/* Strings. Plain forms come first in each function: they are what servers do all day. */
#include "commands/string/string.h"

#include "base/mem.h"
#include "base/number.h"
#include "commands/keys/expire.h"
#include "commands/shared/families.h"
#include "commands/shared/operations.h"
#include "commands/shared/range.h"
#include "commands/string/condition.h"

#include <math.h>

/* --- shared pieces --- */

static inline void put_argument(const struct request *request, struct change *change, uint32_t index, int64_t expire_ms)
{
    if (UNLIKELY(request->blob_count != 0) && request_arg(request, index).size > ENTRY_INLINE_BYTES) {
        struct blob *blob = request_arg_blob(request, index);

        if (blob != NULL) {
            change_put_blob(change, blob, expire_ms);
            return;
        }
    }
    change_put_string(change, request_arg(request, index), expire_ms);
}

/* The key's value becomes argument `index`. Looking first lets an expired value go with all that belongs to it. */
static inline void set_to_argument(const struct request *request, const struct key *key, uint32_t index,
                                   int64_t expire_ms)
{
    struct change change;

    (void)access_probe(request->access, request->db, key);
    change_begin(&change, request->access, request->db, key);
    put_argument(request, &change, index, expire_ms);
    change_end(&change, EVENT_STRING | EVENT_REPLACES, "set");
}

static void set_until(const struct request *request, const struct key *key, uint32_t index, int64_t expire_ms)
{
    set_to_argument(request, key, index, expire_ms);
    access_event(request->access, request->db, key, EVENT_GENERIC, "expire");
}

/* The effect "SET key value PXAT ms", since a lifetime counts from now. */
static void effect_set_until(struct request *request, uint32_t value_index, int64_t expire_ms)
{
    char text[NUMBER_I64_SPACE];
    const struct slice words[] = {SLICE("SET"), request_arg(request, 1), request_arg(request, value_index),
                                  SLICE("PXAT"), slice_make(text, number_format_i64(text, expire_ms))};

    effect_set(request, words, countof(words));
}

/* The operation "SET key value", whatever the conditions were. */
static void operation_set_argument(struct request *request, const struct key *key, uint32_t value_index, bool keeps_ttl)
{
    const struct slice words[] = {SLICE("SET"), key->name, request_arg(request, value_index), SLICE("KEEPTTL")};

    operation_add(request, words, keeps_ttl ? 4 : 3);
}

/* --- options of SET and GETEX --- */

struct set_options {
    struct condition condition;
    bool gets;
    enum lifetime lifetime;
    uint32_t time_index; /* the argument with the time */
};

/* Parses one option. The same option may be repeated, but not combined with another kind. Advances `index`. */
static bool parse_lifetime(const struct request *request, uint32_t *index, enum lifetime unknown,
                           struct set_options *options)
{
    enum lifetime lifetime = lifetime_of_word(request_arg(request, *index));

    if (lifetime == LIFETIME_NONE || lifetime == unknown)
        return false;
    if (options->lifetime != LIFETIME_NONE && options->lifetime != lifetime)
        return false;
    options->lifetime = lifetime;
    if (lifetime_takes_time(lifetime)) {
        if (*index + 1 == request->arg_count)
            return false;
        options->time_index = ++*index;
    }
    return true;
}

static bool parse_set_options(struct request *request, struct set_options *options)
{
    *options = (struct set_options){.gets = false};
    for (uint32_t i = 3; i < request->arg_count; i++) {
        const enum condition_kind kind = condition_of_word(request_arg(request, i));

        if (kind == CONDITION_NONE && request_arg_is(request, i, "GET"))
            options->gets = true;
        else if (kind != CONDITION_NONE ? !condition_parse(request, &i, kind, &options->condition)
                                        : !parse_lifetime(request, &i, LIFETIME_PERSIST, options))
            return false;
    }
    return true;
}

/* --- SET and its relatives --- */

/* Only the sender needs GET; the effect is the command without it. */
static void effect_set_without_get(struct request *request)
{
    struct slice *words = mem_alloc(request->arg_count * sizeof(struct slice));
    uint32_t count = 0;

    for (uint32_t i = 0; i < request->arg_count; i++) {
        if (i < 3 || !request_arg_is(request, i, "GET"))
            words[count++] = request_arg(request, i);
    }
    effect_set(request, words, count);
    mem_free(words);
}

/* Only who asked needs the condition, too: it held. */
static void effect_set_argument(struct request *request, bool keeps_ttl)
{
    const struct slice words[] = {SLICE("SET"), request_arg(request, 1), request_arg(request, 2), SLICE("KEEPTTL")};

    effect_set(request, words, keeps_ttl ? 4 : 3);
}

/* What the key is now is told as far as the options ask for it. Only with GET a missing key is a miss. False: an error
 * was replied. */
static bool check_set(struct request *request, const struct set_options *options, bool *holds)
{
    const struct key *key = &request->keys[0];
    struct entry *entry;

    if (!options->gets && !condition_reads_value(options->condition.kind)) {
        entry = access_find(request->access, request->db, key);
        return condition_check(request, &options->condition, entry, holds);
    }
    if (!(options->gets ? string_read(request, key, &entry) : string_find(request, key, &entry)) ||
        !condition_check(request, &options->condition, entry, holds))
        return false;
    if (options->gets)
        reply_string(request, entry); /* before it is overwritten */
    return true;
}

static NOINLINE void set_with_options(struct request *request)
{
    const struct key *key = &request->keys[0];
    struct set_options options;
    int64_t expire_ms = EXPIRE_NEVER;
    bool timed, holds;

    if (!parse_set_options(request, &options)) {
        reply_syntax_error(request);
        return;
    }
    timed = lifetime_takes_time(options.lifetime);
    if (timed && !expire_arg_positive(request, options.time_index, options.lifetime, &expire_ms))
        return;
    if (options.lifetime == LIFETIME_KEEP)
        expire_ms = EXPIRE_KEEP;
    if (!check_set(request, &options, &holds))
        return;
    if (!holds) {
        if (!options.gets)
            reply_null(request);
        return;
    }
    if (timed) {
        set_until(request, key, 2, expire_ms);
        effect_set_until(request, 2, expire_ms);
    } else {
        set_to_argument(request, key, 2, expire_ms);
        if (condition_reads_value(options.condition.kind))
            effect_set_argument(request, expire_ms == EXPIRE_KEEP);
        else if (options.gets)
            effect_set_without_get(request);
        if (options.gets || options.condition.kind != CONDITION_NONE)
            operation_set_argument(request, key, 2, expire_ms == EXPIRE_KEEP);
    }
    if (!options.gets)
        reply_ok(request);
}

static void cmd_set(struct request *request)
{
    if (UNLIKELY(request->arg_count != 3)) {
        set_with_options(request);
        return;
    }
    set_to_argument(request, &request->keys[0], 2, EXPIRE_NEVER);
    reply_ok(request);
}

/* The key flags of SET depend on GET, and on conditions that read the value. */
static bool set_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    uint32_t flags = KEY_OW | KEY_UPDATE;

    for (uint32_t i = 3; i < arg_count; i++) {
        if (slice_equal_text_nocase(args[i], "GET") || condition_reads_value(condition_of_word(args[i])))
            flags = KEY_RW | KEY_ACCESS | KEY_UPDATE;
    }
    key_positions_add(positions, 1, flags);
    return true;
}

static bool delex_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    (void)args;
    key_positions_add(positions, 1, arg_count > 2 ? KEY_RW | KEY_ACCESS | KEY_DELETE : KEY_RM | KEY_DELETE);
    return true;
}

static void cmd_setnx(struct request *request)
{
    const struct key *key = &request->keys[0];

    if (access_find(request->access, request->db, key) != NULL) {
        reply_int(request, 0);
        return;
    }
    set_to_argument(request, key, 2, EXPIRE_NEVER);
    operation_set_argument(request, key, 2, false);
    reply_int(request, 1);
}

static void set_for(struct request *request, enum lifetime lifetime)
{
    int64_t expire_ms;

    if (!expire_arg_positive(request, 2, lifetime, &expire_ms))
        return;
    set_until(request, &request->keys[0], 3, expire_ms);
    effect_set_until(request, 3, expire_ms);
    reply_ok(request);
}

static void cmd_setex(struct request *request)
{
    set_for(request, LIFETIME_SECONDS);
}

static void cmd_psetex(struct request *request)
{
    set_for(request, LIFETIME_MS);
}

static void cmd_getset(struct request *request)
{
    const struct slice words[] = {SLICE("SET"), request_arg(request, 1), request_arg(request, 2)};
    struct entry *entry;

    if (!string_read(request, &request->keys[0], &entry))
        return;
    reply_string(request, entry);
    set_to_argument(request, &request->keys[0], 2, EXPIRE_NEVER);
    effect_set(request, words, countof(words));
}

/* --- GET and its relatives --- */

static void cmd_get(struct request *request)
{
    struct entry *entry;

    if (string_read(request, &request->keys[0], &entry))
        reply_string(request, entry);
}

static void cmd_getdel(struct request *request)
{
    const struct key *key = &request->keys[0];
    const struct slice words[] = {OPTION_IS(option_lazyfree_lazy_user_del) ? SLICE("UNLINK") : SLICE("DEL"), key->name};
    struct entry *entry;

    if (!string_read(request, key, &entry))
        return;
    reply_string(request, entry);
    if (access_delete_for(request->access, request->db, key, FREE_USER_DEL))
        effect_set(request, words, countof(words));
}

/* --- DIGEST, DELEX, DELIFEQ --- */

static void cmd_digest(struct request *request)
{
    char scratch[ENTRY_INT_TEXT_BYTES], text[STRING_DIGEST_BYTES + 1];
    struct entry *entry;

    if (!string_read(request, &request->keys[0], &entry))
        return;
    if (entry == NULL) {
        reply_null(request);
        return;
    }
    string_digest(entry_string(entry, scratch), text);
    reply_bulk(request, slice_make(text, STRING_DIGEST_BYTES));
}

static void delete_if(struct request *request, bool holds)
{
    const struct key *key = &request->keys[0];
    const struct slice words[] = {OPTION_IS(option_lazyfree_lazy_user_del) ? SLICE("UNLINK") : SLICE("DEL"), key->name};
    const bool is_deleted = holds && access_delete_for(request->access, request->db, key, FREE_USER_DEL);

    if (is_deleted)
        effect_set(request, words, countof(words));
    reply_int(request, is_deleted);
}

/* The words are looked at only if there is a key to compare. */
static void cmd_delex(struct request *request)
{
    struct condition condition = {CONDITION_NONE, 3};
    const struct entry *entry;
    bool holds;

    if (request->arg_count == 3 || request->arg_count > 4) {
        reply_errorf(request, "ERR wrong number of arguments for '%s' command", request->command->row->name);
        return;
    }
    if (request->arg_count == 2) {
        delete_if(request, access_find(request->access, request->db, &request->keys[0]) != NULL);
        return;
    }
    entry = access_read(request->access, request->db, &request->keys[0]);
    if (entry == NULL) {
        delete_if(request, false);
        return;
    }
    condition.kind = condition_of_word(request_arg(request, 2));
    if (entry->type != TYPE_STRING) {
        reply_error(request, "ERR Key should be of string type if conditions are specified");
    } else if (!condition_reads_value(condition.kind)) {
        reply_error(request, "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
    } else if (condition_check(request, &condition, entry, &holds)) {
        delete_if(request, holds);
    }
}

static void cmd_delifeq(struct request *request)
{
    static const struct condition condition = {CONDITION_EQUALS, 2};
    struct entry *entry;
    bool holds;

    if (string_find(request, &request->keys[0], &entry) && condition_check(request, &condition, entry, &holds))
        delete_if(request, holds);
}

static void getex_persist(struct request *request, const struct key *key, const struct entry *entry)
{
    const struct slice words[] = {SLICE("PERSIST"), key->name};

    if (expire_remove(request, key, entry))
        effect_set(request, words, countof(words));
}

static void getex_expire(struct request *request, const struct key *key, int64_t expire_ms)
{
    if (expire_ms <= request->access->due_ms) {
        expire_delete(request, key);
    } else {
        expire_set(request, key, expire_ms);
        expire_effect(request, expire_ms, request->arg_count);
    }
}

static void cmd_getex(struct request *request)
{
    const struct key *key = &request->keys[0];
    struct set_options options = {0};
    struct entry *entry;
    int64_t expire_ms;
    bool timed;

    for (uint32_t i = 2; i < request->arg_count; i++) {
        if (!parse_lifetime(request, &i, LIFETIME_KEEP, &options)) {
            reply_syntax_error(request);
            return;
        }
    }
    if (!string_read(request, key, &entry))
        return;
    timed = lifetime_takes_time(options.lifetime);
    if (entry != NULL && timed && !expire_arg_positive(request, options.time_index, options.lifetime, &expire_ms))
        return;
    reply_string(request, entry);
    if (entry == NULL)
        return;
    if (timed)
        getex_expire(request, key, expire_ms);
    else if (options.lifetime == LIFETIME_PERSIST)
        getex_persist(request, key, entry);
}

static void cmd_mget(struct request *request)
{
    reply_array(request, request->key_count);
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct entry *entry = access_read(request->access, request->db, &request->keys[i]);

        reply_string(request, entry != NULL && entry->type == TYPE_STRING ? entry : NULL);
    }
}

/* --- MSET --- */

static bool check_pairs(struct request *request)
{
    if (LIKELY(request->arg_count % 2 == 1))
        return true;
    reply_errorf(request, "ERR wrong number of arguments for '%s' command", request->command->row->name);
    return false;
}

static void set_pairs(struct request *request)
{
    for (uint32_t i = 0; i < request->key_count; i++) {
        set_to_argument(request, &request->keys[i], 2 * i + 2, EXPIRE_NEVER);
        operation_set_argument(request, &request->keys[i], 2 * i + 2, false);
    }
}

static void cmd_mset(struct request *request)
{
    if (!check_pairs(request))
        return;
    set_pairs(request);
    reply_ok(request);
}

static void cmd_msetnx(struct request *request)
{
    if (!check_pairs(request))
        return;
    for (uint32_t i = 0; i < request->key_count; i++) {
        if (access_find(request->access, request->db, &request->keys[i]) != NULL) {
            reply_int(request, 0);
            return;
        }
    }
    set_pairs(request);
    reply_int(request, 1);
}

/* --- MSETEX --- */

/* False: an error was replied. */
static bool parse_msetex(struct request *request, struct set_options *options)
{
    int64_t count;
    uint32_t i;

    *options = (struct set_options){.gets = false};
    if (!number_parse_i64(request_arg(request, 1), &count) || count < 1 || count > INT32_MAX) {
        reply_error(request, "ERR invalid numkeys value");
        return false;
    }
    if ((uint64_t)count * 2 > request->arg_count - 2) {
        reply_error(request, "ERR wrong number of key-value pairs");
        return false;
    }
    for (i = 2 + 2 * (uint32_t)count; i < request->arg_count; i++) {
        const enum condition_kind kind = condition_of_word(request_arg(request, i));

        if (condition_reads_value(kind) || (!condition_parse(request, &i, kind, &options->condition) &&
                                            !parse_lifetime(request, &i, LIFETIME_PERSIST, options))) {
            reply_syntax_error(request);
            return false;
        }
    }
    return true;
}

static bool all_hold(struct request *request, const struct condition *condition)
{
    bool hold = true;

    for (uint32_t i = 0; i < request->key_count && hold; i++) {
        if (!condition_check(request, condition, access_find(request->access, request->db, &request->keys[i]), &hold))
            return false;
    }
    return hold;
}

/* Redis tells of the deadline first here, but of a new key before either. */
static void set_pair_until(const struct request *request, const struct key *key, uint32_t index, int64_t expire_ms)
{
    struct change change;

    (void)access_probe(request->access, request->db, key);
    change_begin(&change, request->access, request->db, key);
    put_argument(request, &change, index, expire_ms);
    change_end(&change, EVENT_STRING | EVENT_REPLACES, NULL);
    access_event(request->access, request->db, key, EVENT_GENERIC, "expire");
    access_event(request->access, request->db, key, EVENT_STRING, "set");
}

/* Deadlines count from now, so others get each key with its own. */
static void set_pairs_until(struct request *request, bool keeps, int64_t expire_ms)
{
    char text[NUMBER_I64_SPACE];
    const struct slice time = slice_make(text, number_format_i64(text, expire_ms));

    effect_none(request);
    for (uint32_t i = 0; i < request->key_count; i++) {
        const uint32_t value_index = 2 * i + 3;
        const struct slice words[] = {SLICE("SET"), request->keys[i].name, request_arg(request, value_index),
                                      keeps ? SLICE("KEEPTTL") : SLICE("PXAT"), time};

        if (keeps)
            set_to_argument(request, &request->keys[i], value_index, EXPIRE_KEEP);
        else
            set_pair_until(request, &request->keys[i], value_index, expire_ms);
        effect_add(request, words, keeps ? 4 : 5);
    }
}

static void set_pairs_plainly(struct request *request)
{
    const uint32_t count = 1 + 2 * request->key_count;
    struct slice *words = mem_alloc(count * sizeof(*words));

    words[0] = SLICE("MSET");
    memcpy(words + 1, request->args + 2, (count - 1) * sizeof(*words));
    for (uint32_t i = 0; i < request->key_count; i++) {
        set_to_argument(request, &request->keys[i], 2 * i + 3, EXPIRE_NEVER);
        operation_set_argument(request, &request->keys[i], 2 * i + 3, false);
    }
    effect_set(request, words, count);
    mem_free(words);
}

static void cmd_msetex(struct request *request)
{
    struct set_options options;
    int64_t expire_ms = EXPIRE_NEVER;

    if (!parse_msetex(request, &options) ||
        (lifetime_takes_time(options.lifetime) &&
         !expire_arg_positive(request, options.time_index, options.lifetime, &expire_ms)))
        return;
    if (!all_hold(request, &options.condition)) {
        reply_int(request, 0);
        return;
    }
    if (options.lifetime == LIFETIME_NONE)
        set_pairs_plainly(request);
    else
        set_pairs_until(request, options.lifetime == LIFETIME_KEEP, expire_ms);
    reply_int(request, 1);
}

/* --- parts of strings --- */

static void cmd_append(struct request *request)
{
    const struct key *key = &request->keys[0];
    struct slice more = request_arg(request, 2);
    struct change change;
    struct entry *entry;
    size_t size = 0;
    char *bytes;

    if (!string_find(request, key, &entry))
        return;
    if (entry != NULL) {
        size = entry_string_size(entry);
        if (!string_check_size(request, (uint64_t)size + more.size))
            return;
    }
    change_begin(&change, request->access, request->db, key);
    if (entry == NULL) {
        put_argument(request, &change, 2, EXPIRE_NEVER);
    } else {
        bytes = change_edit_part(&change, size + more.size, size, more.size);
        if (more.size != 0)
            memcpy(bytes + size, more.data, more.size);
    }
    change_end(&change, EVENT_STRING, "append");
    reply_int(request, (int64_t)(size + more.size));
}

static void cmd_strlen(struct request *request)
{
    struct entry *entry;

    if (string_read(request, &request->keys[0], &entry))
        reply_int(request, entry != NULL ? (int64_t)entry_string_size(entry) : 0);
}

static void cmd_setrange(struct request *request)
{
    const struct key *key = &request->keys[0];
    struct slice part = request_arg(request, 3);
    struct change change;
    struct entry *entry;
    int64_t offset;
    size_t size;

    if (!request_arg_i64(request, 2, &offset))
        return;
    if (offset < 0) {
        reply_error(request, "ERR offset is out of range");
        return;
    }
    if (!string_find(request, key, &entry))
        return;
    size = entry != NULL ? entry_string_size(entry) : 0;
    if (part.size == 0) { /* nothing to write: nothing changes, no key is made */
        reply_int(request, (int64_t)size);
        return;
    }
    if (!string_check_size(request, (uint64_t)offset + part.size)) /* both below 2^63 */
        return;
    size = MAX(size, (size_t)offset + part.size);
    change_begin(&change, request->access, request->db, key);
    memcpy(change_edit_part(&change, size, (size_t)offset, part.size) + offset, part.data, part.size);
    change_end(&change, EVENT_STRING, "setrange");
    reply_int(request, (int64_t)size);
}

static void cmd_getrange(struct request *request)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    int64_t start, end;
    struct entry *entry;
    struct blob *blob;
    size_t first, count;

    if (!request_arg_i64(request, 2, &start) || !request_arg_i64(request, 3, &end))
        return;
    if (!string_read(request, &request->keys[0], &entry))
        return;
    if (entry == NULL || !range_of_bytes(start, end, entry_string_size(entry), &first, &count)) {
        reply_bulk(request, SLICE_EMPTY);
        return;
    }
    blob = entry_blob(entry);
    if (blob != NULL)
        resp_write_bulk_blob(request->out, blob, first, count);
    else
        reply_bulk(request, slice_make(entry_string(entry, scratch).data + first, count));
}

/* --- numbers --- */

static inline void add_to_key(struct request *request, int64_t amount)
{
    const struct key *key = &request->keys[0];
    struct change change;
    struct entry *entry;
    int64_t number;

    if (!string_find(request, key, &entry) || !string_read_number(request, entry, &number))
        return;
    if (__builtin_add_overflow(number, amount, &number)) {
        reply_error(request, "ERR increment or decrement would overflow");
        return;
    }
    change_begin(&change, request->access, request->db, key);
    if (LIKELY(change_entry(&change) != NULL && entry_is_int(change_entry(&change))))
        change_add_int(&change, amount);
    else
        change_put_int(&change, number, EXPIRE_KEEP);
    change_end(&change, EVENT_STRING, "incrby");
    reply_int(request, number);
}

static void cmd_incr(struct request *request)
{
    add_to_key(request, 1);
}

static void cmd_decr(struct request *request)
{
    add_to_key(request, -1);
}

static void cmd_incrby(struct request *request)
{
    int64_t amount;

    if (request_arg_i64(request, 2, &amount))
        add_to_key(request, amount);
}

static void cmd_decrby(struct request *request)
{
    int64_t amount;

    if (!request_arg_i64(request, 2, &amount))
        return;
    if (amount == INT64_MIN) { /* it has no opposite */
        reply_error(request, "ERR decrement would overflow");
        return;
    }
    add_to_key(request, -amount);
}

bool string_read_float(struct request *request, const struct entry *entry, long double *number)
{
    char scratch[ENTRY_INT_TEXT_BYTES];

    *number = 0;
    if (entry == NULL || number_parse_long_double(entry_string(entry, scratch), number))
        return true;
    reply_error(request, "ERR value is not a valid float");
    return false;
}

void string_put_text(struct change *change, struct slice text)
{
    struct entry *entry;

    memcpy(change_edit_string(change, text.size), text.data, text.size);
    entry = change_entry(change);
    if (text.size <= ENTRY_EMBSTR_BYTES && entry_blob(entry) == NULL)
        entry->encoding = ENCODING_EMBSTR;
}

static void cmd_incrbyfloat(struct request *request)
{
    const struct key *key = &request->keys[0];
    char digits[NUMBER_LONG_DOUBLE_HUMAN_SPACE];
    struct change change;
    struct entry *entry;
    long double number, amount;
    struct slice text;

    if (!string_find(request, key, &entry) || !string_read_float(request, entry, &number) ||
        !request_arg_long_double(request, 2, &amount))
        return;
    number = number_add_long_double(number, amount);
    if (!isfinite(number)) {
        reply_error(request, "ERR increment would produce NaN or Infinity");
        return;
    }
    text = slice_make(digits, number_format_long_double_human(digits, number));
    change_begin(&change, request->access, request->db, key);
    string_put_text(&change, text);
    change_end(&change, EVENT_STRING, "incrbyfloat");
    reply_bulk(request, text);
    /* Others get the sum: their floats may round otherwise. Peers are of our kind. */
    effect_set(request, (const struct slice[]){SLICE("SET"), key->name, text, SLICE("KEEPTTL")}, 4);
    operation_add(request, request->args, request->arg_count);
}

/* --- rows --- */

#define KEY_SPEC(flags_) flags_ "@index:1@range:0,1,0"
#define STRING_ROW(name_, run_, arity_, flags_, categories_, keys_, since_, complexity_, syntax_, summary_, ...) \
    {                                                                                                            \
        .name = (name_), .run = (run_), .arity = (arity_), .access = ACCESS_STRIPED, .flags = (flags_),          \
        .categories = (categories_), .keys = (keys_), .group = "string", .since = (since_),                      \
        .complexity = (complexity_), .syntax = (syntax_), .summary = (summary_), ##__VA_ARGS__                   \
    }

const struct command_row string_commands[] = {
    STRING_ROW("get", cmd_get, 2, "readonly fast", "@read @string @fast", KEY_SPEC("RO,ACCESS"), "1.0.0", "O(1)",
               "GET key", "Returns the value of a string."),
    STRING_ROW("set", cmd_set, -3, "write denyoom", "@write @string @slow", KEY_SPEC("RW,ACCESS,UPDATE,VARIABLE_FLAGS"),
               "1.0.0", "O(1)",
               "SET key value [NX|XX|IFEQ ifeq-value|IFNE ifne-value|IFDEQ ifdeq-digest|IFDNE ifdne-digest] [GET] [EX "
               "seconds|PX milliseconds|EXAT unix-time-seconds|"
               "PXAT unix-time-milliseconds|KEEPTTL]",
               "Sets a string, and overwrites a value of any type.",
               .arg_since = "condition:2.6.12 GET:6.2.0 EX:2.6.12 PX:2.6.12 EXAT:6.2.0 PXAT:6.2.0 KEEPTTL:6.0.0",
               .history = "2.6.12=The options `EX`, `PX`, `NX` and `XX`.|6.0.0=The option `KEEPTTL`.|"
                          "6.2.0=The options `GET`, `EXAT` and `PXAT`.|7.0.0=`NX` and `GET` may stand together.|"
                          "8.4.0=The options `IFEQ`, `IFNE`, `IFDEQ` and `IFDNE`.",
               .key_notes = "`GET` makes it RW and ACCESS.", .find_keys = set_find_keys),
    STRING_ROW("setnx", cmd_setnx, 3, "write denyoom fast deprecated", "@write @string @fast", KEY_SPEC("OW,INSERT"),
               "1.0.0", "O(1)", "SETNX key value", "Sets a string if the key does not exist.",
               .deprecated_since = "2.6.12", .replaced_by = "`SET` with the `NX` argument"),
    STRING_ROW("setex", cmd_setex, 4, "write denyoom deprecated", "@write @string @slow", KEY_SPEC("OW,UPDATE"),
               "2.0.0", "O(1)", "SETEX key seconds value", "Sets a string with a deadline in seconds from now.",
               .deprecated_since = "2.6.12", .replaced_by = "`SET` with the `EX` argument"),
    STRING_ROW("psetex", cmd_psetex, 4, "write denyoom deprecated", "@write @string @slow", KEY_SPEC("OW,UPDATE"),
               "2.6.0", "O(1)", "PSETEX key milliseconds value",
               "Sets a string with a deadline in milliseconds from now.", .deprecated_since = "2.6.12",
               .replaced_by = "`SET` with the `PX` argument"),
    STRING_ROW("getset", cmd_getset, 3, "write denyoom fast deprecated", "@write @string @fast",
               KEY_SPEC("RW,ACCESS,UPDATE"), "1.0.0", "O(1)", "GETSET key value",
               "Sets a string and returns its old value.", .deprecated_since = "6.2.0",
               .replaced_by = "`SET` with the `!GET` argument"),
    STRING_ROW("getdel", cmd_getdel, 2, "write fast", "@write @string @fast", KEY_SPEC("RW,ACCESS,DELETE"), "6.2.0",
               "O(1)", "GETDEL key", "Returns a string and deletes its key."),
    STRING_ROW("digest", cmd_digest, 2, "readonly fast", "@read @string @fast", KEY_SPEC("RO,ACCESS"), "8.4.0",
               "O(N) for N bytes of the string", "DIGEST key", "Returns the digest of a string."),
    STRING_ROW("delex", cmd_delex, -2, "write fast", "@write @string @fast", KEY_SPEC("RW,DELETE,VARIABLE_FLAGS"),
               "8.4.0", "O(1); O(N) for N bytes of the string where its digest is compared",
               "DELEX key [IFEQ ifeq-value|IFNE ifne-value|IFDEQ ifdeq-digest|IFDNE ifdne-digest]",
               "Deletes a key, if it is a string as the condition wants it.",
               .key_notes = "Without a condition it is RM, with one ACCESS, too.", .find_keys = delex_find_keys),
    STRING_ROW("delifeq", cmd_delifeq, 3, "write fast", "@write @string @fast", KEY_SPEC("RW,ACCESS,DELETE"), "9.0.0",
               "O(1)", "DELIFEQ key value", "Deletes a string if it is this one."),
    STRING_ROW("getex", cmd_getex, -2, "write fast", "@write @string @fast", KEY_SPEC("RW,ACCESS,UPDATE"), "6.2.0",
               "O(1)",
               "GETEX key [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST]",
               "Returns a string and may change its deadline.",
               .key_notes = "RW and UPDATE, for the key's lifetime may change."),
    STRING_ROW("append", cmd_append, 3, "write denyoom fast", "@write @string @fast", KEY_SPEC("RW,INSERT"), "2.0.0",
               "O(M) for M bytes that are added (amortized)", "APPEND key value",
               "Appends bytes to a string. Creates the key if it does not exist."),
    STRING_ROW("strlen", cmd_strlen, 2, "readonly fast", "@read @string @fast", KEY_SPEC("RO"), "2.2.0", "O(1)",
               "STRLEN key", "Returns the length of a string in bytes."),
    STRING_ROW("setrange", cmd_setrange, 4, "write denyoom", "@write @string @slow", KEY_SPEC("RW,UPDATE"), "2.2.0",
               "O(M) for M bytes that are written, and for what the string grows by", "SETRANGE key offset value",
               "Overwrites a part of a string. The string grows as needed."),
    STRING_ROW("getrange", cmd_getrange, 4, "readonly", "@read @string @slow", KEY_SPEC("RO,ACCESS"), "2.4.0",
               "O(N) for N bytes that are returned", "GETRANGE key start end",
               "Returns a range of the bytes of a string."),
    STRING_ROW("substr", cmd_getrange, 4, "readonly deprecated", "@read @string @slow", KEY_SPEC("RO,ACCESS"), "1.0.0",
               "O(N) for N bytes that are returned", "SUBSTR key start end",
               "Returns a range of the bytes of a string.", .deprecated_since = "2.0.0", .replaced_by = "`GETRANGE`"),
    STRING_ROW("mget", cmd_mget, -2, "readonly fast", "@read @string @fast", "RO,ACCESS@index:1@range:-1,1,0", "1.0.0",
               "O(N) for N keys", "MGET key [key ...]", "Returns several strings.",
               .tips = "request_policy:multi_shard"),
    STRING_ROW("mset", cmd_mset, -3, "write denyoom", "@write @string @slow", "OW,UPDATE@index:1@range:-1,2,0", "1.0.1",
               "O(N) for N keys", "MSET key value [key value ...]", "Sets several strings at once.",
               .tips = "request_policy:multi_shard response_policy:all_succeeded"),
    STRING_ROW("msetnx", cmd_msetnx, -3, "write denyoom", "@write @string @slow", "OW,INSERT@index:1@range:-1,2,0",
               "1.0.1", "O(N) for N keys", "MSETNX key value [key value ...]",
               "Sets several strings if none of the keys exists."),
    STRING_ROW("msetex", cmd_msetex, -4, "write denyoom movablekeys", "@write @string @slow",
               "OW,UPDATE@index:1@keynum:0,1,2", "8.4.0", "O(N) for N keys",
               "MSETEX numkeys key value [key value ...] [NX|XX] "
               "[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
               "Sets several strings at once, if all of the keys exist or none does, with one deadline.",
               .tips = "request_policy:multi_shard response_policy:all_succeeded"),
    STRING_ROW("incr", cmd_incr, 2, "write denyoom fast", "@write @string @fast", KEY_SPEC("RW,ACCESS,UPDATE"), "1.0.0",
               "O(1)", "INCR key", "Increments an integer by one. A key that does not exist counts as 0."),
    STRING_ROW("decr", cmd_decr, 2, "write denyoom fast", "@write @string @fast", KEY_SPEC("RW,ACCESS,UPDATE"), "1.0.0",
               "O(1)", "DECR key", "Decrements an integer by one. A key that does not exist counts as 0."),
    STRING_ROW("incrby", cmd_incrby, 3, "write denyoom fast", "@write @string @fast", KEY_SPEC("RW,ACCESS,UPDATE"),
               "1.0.0", "O(1)", "INCRBY key increment", "Adds to an integer. A key that does not exist counts as 0."),
    STRING_ROW("decrby", cmd_decrby, 3, "write denyoom fast", "@write @string @fast", KEY_SPEC("RW,ACCESS,UPDATE"),
               "1.0.0", "O(1)", "DECRBY key decrement",
               "Subtracts from an integer. A key that does not exist counts as 0."),
    STRING_ROW("incrbyfloat", cmd_incrbyfloat, 3, "write denyoom fast", "@write @string @fast",
               KEY_SPEC("RW,ACCESS,UPDATE"), "2.6.0", "O(1)", "INCRBYFLOAT key increment",
               "Adds to a floating point number. A key that does not exist counts as 0."),
    {.name = NULL},
};
