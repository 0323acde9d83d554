/* Bits of strings: single ones, ranges, whole strings combined, numbers of some bits. data/bits.h does the work. */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "base/number.h"
#include "commands/shared/operations.h"
#include "commands/shared/range.h"
#include "commands/string/string.h"
#include "data/bits.h"

/* --- shared pieces --- */

/* A bit's place, before the end of the largest string. With '#' in front it counts fields of `width` bits; 0: no such
 * form. */
static bool bit_offset(struct request *request, uint32_t index, uint8_t width, uint64_t *offset)
{
    struct slice word = request_arg(request, index);
    bool counts_fields = width != 0 && word.size != 0 && word.data[0] == '#';
    uint64_t limit = string_size_limit(request);
    int64_t number;

    if (number_parse_i64(counts_fields ? slice_skip(word, 1) : word, &number) && number >= 0 &&
        !(counts_fields && __builtin_mul_overflow(number, (int64_t)width, &number)) && (uint64_t)number / 8 < limit) {
        *offset = (uint64_t)number;
        return true;
    }
    reply_error(request, "ERR bit offset is not an integer or out of range");
    return false;
}

static struct slice bytes_of(const struct entry *entry, char scratch[ENTRY_INT_TEXT_BYTES])
{
    return entry != NULL ? entry_string(entry, scratch) : SLICE_EMPTY;
}

/* A write that changes nothing still leaves plain bytes behind: then OBJECT ENCODING says so. */
static void write_nothing(const struct request *request, const struct key *key, const struct entry *entry)
{
    struct change change;

    if (entry->encoding == ENCODING_RAW)
        return;
    change_begin(&change, request->access, request->db, key);
    (void)change_edit_part(&change, entry_string_size(entry), 0, 0);
    change_abandon(&change);
}

/* --- single bits --- */

static void cmd_setbit(struct request *request)
{
    const struct key *key = &request->keys[0];
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct change change;
    struct entry *entry;
    struct slice bytes;
    uint64_t offset;
    int64_t value;
    size_t size;
    bool old;

    if (!bit_offset(request, 2, 0, &offset) ||
        !request_arg_range(request, 3, 0, 1, &value, "ERR bit is not an integer or out of range") ||
        !string_find(request, key, &entry))
        return;
    bytes = bytes_of(entry, scratch);
    old = bits_get(bytes, offset);
    size = MAX(bytes.size, (size_t)(offset / 8 + 1));
    if (entry != NULL && size == bytes.size && old == (value != 0)) {
        write_nothing(request, key, entry);
    } else {
        change_begin(&change, request->access, request->db, key);
        bits_set(change_edit_part(&change, size, (size_t)(offset / 8), 1), offset, value != 0);
        change_end(&change, EVENT_STRING, "setbit");
    }
    reply_int(request, old);
}

static void cmd_getbit(struct request *request)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct entry *entry;
    uint64_t offset;

    if (bit_offset(request, 2, 0, &offset) && string_read(request, &request->keys[0], &entry))
        reply_int(request, bits_get(bytes_of(entry, scratch), offset));
}

/* --- ranges --- */

/* BYTE or BIT, if it is there; it is the last word. */
static bool parse_unit(struct request *request, uint32_t index, bool *in_bits)
{
    *in_bits = false;
    if (index == request->arg_count)
        return true;
    *in_bits = request_arg_is(request, index, "BIT");
    if (*in_bits || request_arg_is(request, index, "BYTE"))
        return true;
    reply_syntax_error(request);
    return false;
}

/* From bytes to bits, unless they are bits. */
static void range_in_bits(bool in_bits, size_t first, size_t count, uint64_t *first_bit, uint64_t *bit_count)
{
    *first_bit = in_bits ? first : (uint64_t)first * 8;
    *bit_count = in_bits ? count : (uint64_t)count * 8;
}

static void cmd_bitcount(struct request *request)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    uint64_t first_bit, bit_count;
    int64_t start = 0, end = -1;
    size_t first, count;
    struct entry *entry;
    struct slice bytes;
    bool in_bits;

    if (request->arg_count == 3 || request->arg_count > 5) {
        reply_syntax_error(request);
        return;
    }
    if ((request->arg_count > 3 && (!request_arg_i64(request, 2, &start) || !request_arg_i64(request, 3, &end))) ||
        !parse_unit(request, MIN(4U, request->arg_count), &in_bits) || !string_read(request, &request->keys[0], &entry))
        return;
    bytes = bytes_of(entry, scratch);
    if ((start < 0 && end < 0 && start > end) ||
        !range_of_any_ends(start, end, in_bits ? bytes.size * 8 : bytes.size, &first, &count)) {
        reply_int(request, 0);
        return;
    }
    range_in_bits(in_bits, first, count, &first_bit, &bit_count);
    reply_int(request, (int64_t)bits_count(bytes, first_bit, bit_count));
}

static void cmd_bitpos(struct request *request)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    int64_t value, start = 0, end = -1, found = -1;
    uint64_t first_bit, bit_count;
    size_t first, count;
    struct entry *entry;
    struct slice bytes;
    bool in_bits;

    if (!request_arg_i64(request, 2, &value))
        return;
    if (value != 0 && value != 1) {
        reply_error(request, "ERR The bit argument must be 1 or 0.");
        return;
    }
    if (request->arg_count > 6) {
        reply_syntax_error(request);
        return;
    }
    if ((request->arg_count > 3 && !request_arg_i64(request, 3, &start)) ||
        !parse_unit(request, MIN(5U, request->arg_count), &in_bits) ||
        (request->arg_count > 4 && !request_arg_i64(request, 4, &end)) ||
        !string_read(request, &request->keys[0], &entry))
        return;
    if (entry == NULL) { /* zeros without an end */
        reply_int(request, value == 0 ? 0 : -1);
        return;
    }
    bytes = entry_string(entry, scratch);
    if (range_of_any_ends(start, end, in_bits ? bytes.size * 8 : bytes.size, &first, &count)) {
        range_in_bits(in_bits, first, count, &first_bit, &bit_count);
        found = bits_find(bytes, value != 0, first_bit, bit_count);
        /* Without an end argument the string is followed by zeros. */
        if (found < 0 && value == 0 && request->arg_count <= 4)
            found = (int64_t)bytes.size * 8;
    }
    reply_int(request, found);
}

/* --- whole strings --- */

enum bitop_kind { BITOP_COMBINE, BITOP_NOT, BITOP_SHIFT };
static const struct bitop {
    const char *word;
    enum bitop_kind kind;
    enum bits_operation operation; /* BITOP_COMBINE */
    int direction;                 /* BITOP_SHIFT: 1 is left */
    bool is_newer;                 /* redis-server 7.0 lacks it: others are told of the result */
    bool needs_two;                /* sources */
} bitops[] = {
    {"AND", BITOP_COMBINE, .operation = BITS_AND},
    {"OR", BITOP_COMBINE, .operation = BITS_OR},
    {"XOR", BITOP_COMBINE, .operation = BITS_XOR},
    {"NOT", BITOP_NOT, .direction = 0},
    {"LSHIFT", BITOP_SHIFT, .direction = 1},
    {"RSHIFT", BITOP_SHIFT, .direction = -1},
    {"DIFF", BITOP_COMBINE, .operation = BITS_DIFF, .is_newer = true, .needs_two = true},
    {"DIFF1", BITOP_COMBINE, .operation = BITS_DIFF1, .is_newer = true, .needs_two = true},
    {"ANDOR", BITOP_COMBINE, .operation = BITS_ANDOR, .is_newer = true, .needs_two = true},
    {"ONE", BITOP_COMBINE, .operation = BITS_ONE, .is_newer = true},
};

enum { SHIFT_MOST = 1 << 30 };

static const struct bitop *bitop_of_word(struct slice word)
{
    for (size_t i = 0; i < countof(bitops); i++) {
        if (slice_equal_text_nocase(word, bitops[i].word))
            return &bitops[i];
    }
    return NULL;
}

/* The last word of a shift is a number, not a key. */
static bool bitop_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    const struct bitop *bitop = arg_count > 3 ? bitop_of_word(args[1]) : NULL;
    uint32_t end = bitop != NULL && bitop->kind == BITOP_SHIFT && arg_count > 4 ? arg_count - 1 : arg_count;

    if (arg_count < 4)
        return false;
    key_positions_add(positions, 2, KEY_OW | KEY_UPDATE);
    for (uint32_t i = 3; i < end; i++)
        key_positions_add(positions, i, KEY_RO | KEY_ACCESS);
    return true;
}

/* How far to the left; to the right if negative. */
static bool parse_shift(struct request *request, const struct bitop *bitop, int64_t *places)
{
    if (request->arg_count != 5) {
        reply_error(request, "ERR BITOP SHIFT must be called with a single source key and an integer shift.");
        return false;
    }
    if (!number_parse_i64(request_arg(request, 4), places)) {
        reply_error(request, "ERR BITOP SHIFT's last parameter must be an integer");
        return false;
    }
    if (*places > SHIFT_MOST || (bitop->direction < 0 && *places < -SHIFT_MOST)) {
        reply_error(request, "ERR BITOP SHIFT value is too large.");
        return false;
    }
    *places *= bitop->direction;
    return true;
}

/* The source strings, and the room for numbers among them. */
struct sources {
    struct slice *strings;
    char (*scratch)[ENTRY_INT_TEXT_BYTES];
    size_t count;
    size_t longest;
};

static void sources_fini(struct sources *sources)
{
    mem_free(sources->strings);
    mem_free(sources->scratch);
}

/* False: one is no string, which was replied. Release them in either case. */
static bool sources_read(struct request *request, struct sources *sources)
{
    sources->count = request->key_count - 1;
    sources->longest = 0;
    sources->strings = mem_alloc(sources->count * sizeof(*sources->strings));
    sources->scratch = mem_alloc(sources->count * sizeof(*sources->scratch));
    for (size_t i = 0; i < sources->count; i++) {
        struct entry *entry;

        if (!string_read(request, &request->keys[i + 1], &entry))
            return false;
        sources->strings[i] = bytes_of(entry, sources->scratch[i]);
        sources->longest = MAX(sources->longest, sources->strings[i].size);
    }
    return true;
}

static void compute(const struct bitop *bitop, const struct sources *sources, int64_t places, char *out, size_t size)
{
    switch (bitop->kind) {
    case BITOP_COMBINE:
        bits_combine(bitop->operation, out, size, sources->strings, sources->count);
        break;
    case BITOP_NOT:
        bits_invert(out, sources->strings[0]);
        break;
    case BITOP_SHIFT:
        bits_shift(out, sources->strings[0], places);
        break;
    }
}

/* The key has gone. */
static void tell_deleted(struct request *request, const struct bitop *bitop)
{
    const struct slice words[] = {SLICE("DEL"), request->keys[0].name};

    if (bitop->is_newer)
        effect_set(request, words, countof(words));
    operation_add(request, words, countof(words));
}

static void tell_result(struct request *request, const struct bitop *bitop)
{
    const struct key *key = &request->keys[0];
    char scratch[ENTRY_INT_TEXT_BYTES];

    if (bitop->is_newer) {
        const struct slice value = entry_string(access_probe(request->access, request->db, key), scratch);

        effect_set(request, (const struct slice[]){SLICE("SET"), key->name, value}, 3);
    }
    operation_add_value(request, request->db, key);
}

/* The result is the key's value, whatever it was: computed first, for the key may be a source, too. */
static void store_result(struct request *request, const struct bitop *bitop, const struct sources *sources,
                         int64_t places, size_t size)
{
    const struct key *key = &request->keys[0];
    struct change change;

    if (size == 0) {
        if (access_delete(request->access, request->db, key))
            tell_deleted(request, bitop);
        return;
    }
    if (size > ENTRY_INLINE_BYTES) {
        struct blob *blob = blob_create(size);

        compute(bitop, sources, places, blob->data, size);
        (void)access_probe(request->access, request->db, key); /* one that has expired goes as such */
        change_begin(&change, request->access, request->db, key);
        change_put_blob(&change, blob, EXPIRE_NEVER);
        blob_release(&blob);
    } else {
        char result[ENTRY_INLINE_BYTES];

        compute(bitop, sources, places, result, size);
        (void)access_probe(request->access, request->db, key);
        change_begin(&change, request->access, request->db, key);
        change_put_string(&change, SLICE_EMPTY, EXPIRE_NEVER);
        memcpy(change_edit_string(&change, size), result, size); /* also digits stay bytes */
    }
    change_end(&change, EVENT_STRING | EVENT_REPLACES, "set");
    tell_result(request, bitop);
}

static void combine_keys(struct request *request, const struct bitop *bitop, int64_t places)
{
    struct sources sources;
    size_t size;

    if (sources_read(request, &sources)) {
        size = bitop->kind == BITOP_SHIFT ? bits_shifted_size(sources.longest, places) : sources.longest;
        if (size <= sources.longest || string_check_size(request, size)) {
            store_result(request, bitop, &sources, places, size);
            reply_int(request, (int64_t)size);
        }
    }
    sources_fini(&sources);
}

static void cmd_bitop(struct request *request)
{
    const struct bitop *bitop = bitop_of_word(request_arg(request, 1));
    int64_t places = 0;

    if (bitop == NULL)
        reply_syntax_error(request);
    else if (bitop->kind == BITOP_NOT && request->arg_count != 4)
        reply_error(request, "ERR BITOP NOT must be called with a single source key.");
    else if (bitop->needs_two && request->arg_count < 5)
        reply_errorf(request, "ERR BITOP %s must be called with at least two source keys.", bitop->word);
    else if (bitop->kind != BITOP_SHIFT || parse_shift(request, bitop, &places))
        combine_keys(request, bitop, places);
}

/* --- fields --- */

enum field_action { FIELD_GET, FIELD_SET, FIELD_INCREMENT, FIELD_END, FIELD_ERROR };

struct field_step {
    struct bits_field field;
    enum bits_overflow overflow;
    int64_t value; /* FIELD_SET, FIELD_INCREMENT */
};

/* "u8", "i64": letters are small. */
static bool parse_field_type(struct request *request, uint32_t index, struct bits_field *field)
{
    struct slice word = request_arg(request, index);
    int64_t width = 0;

    if (word.size > 1 && (word.data[0] == 'i' || word.data[0] == 'u') &&
        number_parse_i64(slice_skip(word, 1), &width)) {
        field->is_signed = word.data[0] == 'i';
        if (width >= 1 && width <= (field->is_signed ? 64 : 63)) {
            field->width = (uint8_t)width;
            return true;
        }
    }
    reply_error(request, "ERR Invalid bitfield type. Use something like i16 u8. "
                         "Note that u64 is not supported but i64 is.");
    return false;
}

static bool parse_overflow(struct request *request, uint32_t index, enum bits_overflow *overflow)
{
    if (request_arg_is(request, index, "WRAP"))
        *overflow = BITS_WRAP;
    else if (request_arg_is(request, index, "SAT"))
        *overflow = BITS_SATURATE;
    else if (request_arg_is(request, index, "FAIL"))
        *overflow = BITS_FAIL;
    else {
        reply_error(request, "ERR Invalid OVERFLOW type specified");
        return false;
    }
    return true;
}

/* The next step from argument `index` on, which moves; `step` keeps the overflow that was said last. Errors are
 * replied. */
static enum field_action next_step(struct request *request, uint32_t *index, struct field_step *step)
{
    uint32_t left;
    enum field_action action;

    for (; (left = request->arg_count - *index) > 1 && request_arg_is(request, *index, "OVERFLOW"); *index += 2) {
        if (!parse_overflow(request, *index + 1, &step->overflow))
            return FIELD_ERROR;
    }
    if (left == 0)
        return FIELD_END;
    if (left > 2 && request_arg_is(request, *index, "GET"))
        action = FIELD_GET;
    else if (left > 3 && request_arg_is(request, *index, "SET"))
        action = FIELD_SET;
    else if (left > 3 && request_arg_is(request, *index, "INCRBY"))
        action = FIELD_INCREMENT;
    else {
        reply_syntax_error(request);
        return FIELD_ERROR;
    }
    if (!parse_field_type(request, *index + 1, &step->field) ||
        !bit_offset(request, *index + 2, step->field.width, &step->field.at) ||
        (action != FIELD_GET && !request_arg_i64(request, *index + 3, &step->value)))
        return FIELD_ERROR;
    *index += action == FIELD_GET ? 3 : 4;
    return action;
}

struct field_plan {
    uint64_t steps;
    size_t size; /* size of the string that the writing operations need; 0: all only read */
};

/* All is looked at before anything is done. */
static bool check_steps(struct request *request, struct field_plan *plan)
{
    struct field_step step = {.overflow = BITS_WRAP};
    enum field_action action;
    uint32_t index = 2;

    *plan = (struct field_plan){0, 0};
    while ((action = next_step(request, &index, &step)) < FIELD_END) {
        plan->steps++;
        if (action != FIELD_GET)
            plan->size = MAX(plan->size, (size_t)bits_field_end_byte(&step.field) + 1);
    }
    return action == FIELD_END;
}

static void read_fields(struct request *request, const struct field_plan *plan)
{
    struct field_step step = {.overflow = BITS_WRAP};
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct entry *entry;
    struct slice bytes;
    uint32_t index = 2;

    if (!string_read(request, &request->keys[0], &entry))
        return;
    bytes = bytes_of(entry, scratch);
    reply_array(request, plan->steps);
    while (next_step(request, &index, &step) == FIELD_GET)
        reply_int(request, bits_field_read(bytes, &step.field));
}

/* Replies; tells whether the bytes are others now, and whether the number fits at all. */
static bool write_field(struct request *request, enum field_action action, const struct field_step *step,
                        struct change *change, char *bytes, size_t size, bool *fits)
{
    const size_t first = (size_t)(step->field.at / 8);
    int64_t old = bits_field_read(slice_make(bytes, size), &step->field), number;

    if (!(action == FIELD_SET ? bits_field_fit(&step->field, step->overflow, step->value, &number)
                              : bits_field_add(&step->field, step->overflow, old, step->value, &number))) {
        reply_null(request);
        return false;
    }
    *fits = true;
    reply_int(request, action == FIELD_SET ? old : number);
    if (number == old)
        return false;
    change_edit_also(change, first, (size_t)bits_field_end_byte(&step->field) + 1 - first);
    bits_field_write(bytes, &step->field, number);
    return true;
}

static void write_fields(struct request *request, const struct field_plan *plan)
{
    const struct key *key = &request->keys[0];
    struct field_step step = {.overflow = BITS_WRAP};
    enum field_action action;
    struct change change;
    struct entry *entry;
    size_t old_size, size;
    uint32_t index = 2;
    char *bytes;
    bool changed, written = false; /* written: something fitted, and the string has changed or grown */

    if (!string_find(request, key, &entry))
        return;
    old_size = entry != NULL ? entry_string_size(entry) : 0;
    size = MAX(old_size, plan->size);
    change_begin(&change, request->access, request->db, key);
    bytes = change_edit_part(&change, size, 0, 0);
    changed = size != old_size;
    reply_array(request, plan->steps);
    while ((action = next_step(request, &index, &step)) < FIELD_END) {
        if (action == FIELD_GET)
            reply_int(request, bits_field_read(slice_make(bytes, size), &step.field));
        else if (write_field(request, action, &step, &change, bytes, size, &written))
            changed = true;
    }
    if (changed)
        change_end(&change, EVENT_STRING, written ? "setbit" : NULL);
    else
        change_abandon(&change);
}

static void cmd_bitfield(struct request *request)
{
    struct field_plan plan;

    if (!check_steps(request, &plan))
        return;
    if (plan.size == 0)
        read_fields(request, &plan);
    else
        write_fields(request, &plan);
}

static void cmd_bitfield_ro(struct request *request)
{
    struct field_plan plan;

    if (!check_steps(request, &plan))
        return;
    if (plan.size == 0)
        read_fields(request, &plan);
    else
        reply_error(request, "ERR BITFIELD_RO only supports the GET subcommand");
}

/* Where all steps are seen to read, so is the key. */
static bool bitfield_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    bool reads = true;

    for (uint32_t i = 2; i < arg_count && reads;) {
        if (slice_equal_text_nocase(args[i], "GET") && arg_count - i > 2)
            i += 3;
        else if (slice_equal_text_nocase(args[i], "OVERFLOW") && arg_count - i > 1)
            i += 2;
        else
            reads = false;
    }
    key_positions_add(positions, 1, reads ? KEY_RO | KEY_ACCESS : KEY_RW | KEY_ACCESS | KEY_UPDATE);
    return true;
}

/* --- rows --- */

#define KEY_SPEC(flags_) flags_ "@index:1@range:0,1,0"
#define BITMAP_ROW(name_, run_, arity_, flags_, categories_, keys_, since_, complexity_, syntax_, summary_, ...) \
    {                                                                                                            \
        .name = (name_), .run = (run_), .arity = (arity_), .access = ACCESS_STRIPED, .flags = (flags_),          \
        .categories = (categories_), .keys = (keys_), .group = "bitmap", .since = (since_),                      \
        .complexity = (complexity_), .syntax = (syntax_), .summary = (summary_), ##__VA_ARGS__                   \
    }

const struct command_row bitmap_commands[] = {
    BITMAP_ROW("setbit", cmd_setbit, 4, "write denyoom", "@write @bitmap @slow", KEY_SPEC("RW,ACCESS,UPDATE"), "2.2.0",
               "O(1), and what the string grows by", "SETBIT key offset value",
               "Sets a bit of a string and returns its old value. The string grows as needed."),
    BITMAP_ROW("getbit", cmd_getbit, 3, "readonly fast", "@read @bitmap @fast", KEY_SPEC("RO,ACCESS"), "2.2.0", "O(1)",
               "GETBIT key offset", "Returns a bit of a string."),
    BITMAP_ROW("bitcount", cmd_bitcount, -2, "readonly alone", "@read @bitmap @slow", KEY_SPEC("RO,ACCESS"), "2.6.0",
               "O(N) for N bytes that are looked at", "BITCOUNT key [start end [BYTE|BIT]]",
               "Counts the bits of a string, or of a range of it, that are 1.", .arg_since = "index_unit:7.0.0",
               .history = "7.0.0=The range in `BIT`s, or in `BYTE`s."),
    BITMAP_ROW("bitpos", cmd_bitpos, -3, "readonly alone", "@read @bitmap @slow", KEY_SPEC("RO,ACCESS"), "2.8.7",
               "O(N) for N bytes that are looked at", "BITPOS key bit [start [end [BYTE|BIT]]]",
               "Returns the position of the first bit that is 1, or 0.", .arg_since = "index_unit:7.0.0",
               .history = "7.0.0=The range in `BIT`s, or in `BYTE`s."),
    BITMAP_ROW("bitop", cmd_bitop, -4, "write denyoom alone", "@write @bitmap @slow",
               "OW,UPDATE@index:2@range:0,1,0 RO,ACCESS@index:3@range:-1,1,0", "2.6.0",
               "O(N) for the N bytes of all sources",
               "BITOP ((AND|OR|XOR|NOT|DIFF|DIFF1|ANDOR|ONE) destkey key [key ...]|(LSHIFT|RSHIFT) destkey key shift)",
               "Stores the result of a bitwise operation on strings.", .find_keys = bitop_find_keys),
    BITMAP_ROW("bitfield", cmd_bitfield, -2, "write denyoom", "@write @bitmap @slow",
               KEY_SPEC("RW,ACCESS,UPDATE,VARIABLE_FLAGS"), "3.2.0", "O(1) for each step",
               "BITFIELD key [(GET encoding offset|[OVERFLOW (WRAP|SAT|FAIL)] "
               "(SET encoding offset value|INCRBY encoding offset increment)) ...]",
               "Reads and changes integers of any width in a string.",
               .key_notes = "Where there is only `GET`, RO and ACCESS.", .find_keys = bitfield_find_keys),
    BITMAP_ROW("bitfield_ro", cmd_bitfield_ro, -2, "readonly fast", "@read @bitmap @fast", KEY_SPEC("RO,ACCESS"),
               "6.0.0", "O(1) for each step", "BITFIELD_RO key [GET encoding offset [GET encoding offset ...]]",
               "Reads integers of any width in a string."),
    {.name = NULL},
};
