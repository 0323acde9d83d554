#include "base/rows.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/spinlock.h"
#include "base/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_unsigned(const struct option_row *row)
{
    return row->type == OPTION_UINT || row->type == OPTION_MEMORY;
}

bool option_is_named(const struct option_row *row, struct slice name)
{
    return slice_equal_text_nocase(name, row->name) ||
           (row->alias != NULL && slice_equal_text_nocase(name, row->alias));
}

/* --- strings --- */

static struct spinlock strings_lock = {.rank = LOCK_REGISTRY}; /* all strings: for the time of a copy */

/* No memory is allocated under the lock: it may have to be asked for again. */
void option_string_append(const struct option_string *string, struct buffer *buffer)
{
    bool fits;

    do {
        size_t room;

        spinlock_acquire(&strings_lock);
        room = string->size;
        spinlock_release(&strings_lock);
        (void)buffer_reserve(buffer, room);
        spinlock_acquire(&strings_lock);
        fits = string->size <= room;
        if (fits && string->size != 0)
            buffer_append(buffer, string->data, string->size);
        spinlock_release(&strings_lock);
    } while (!fits);
}

struct option_string option_string_replace(struct option_string *string, struct option_string with)
{
    struct option_string before;

    gate_assert_alone();
    spinlock_acquire(&strings_lock);
    before = *string;
    *string = with;
    spinlock_release(&strings_lock);
    return before;
}

/* --- names --- */

const char *option_enum_name(const struct option_enum *names, int64_t value)
{
    for (; names->name != NULL; names++) {
        if (names->value == value)
            return names->name;
    }
    return NULL;
}

bool option_enum_value(const struct option_enum *names, struct slice name, int64_t *value)
{
    for (; names->name != NULL; names++) {
        if (slice_equal_text_nocase(name, names->name)) {
            *value = names->value;
            return true;
        }
    }
    return false;
}

/* --- parsing --- */

static bool refuse(char *error, size_t error_size, const char *text)
{
    snprintf(error, error_size, "%s", text);
    return false;
}

static bool refuse_bounds(const struct option_row *row, char *error, size_t error_size)
{
    if (row->type == OPTION_OCTAL)
        snprintf(error, error_size, "argument must be between %" PRIo64 " and %" PRIo64 " inclusive",
                 (uint64_t)row->least, (uint64_t)row->most);
    else if (is_unsigned(row))
        snprintf(error, error_size, "argument must be between %" PRIu64 " and %" PRIu64 " inclusive",
                 (uint64_t)row->least, (uint64_t)row->most);
    else
        snprintf(error, error_size, "argument must be between %" PRId64 " and %" PRId64 " inclusive", row->least,
                 row->most);
    return false;
}

static bool in_bounds(const struct option_row *row, int64_t number)
{
    if (is_unsigned(row))
        return (uint64_t)number >= (uint64_t)row->least && (uint64_t)number <= (uint64_t)row->most;
    return number >= row->least && number <= row->most;
}

static bool parse_bool(struct slice text, int64_t *number, char *error, size_t error_size)
{
    if (slice_equal_nocase(text, SLICE("yes")))
        *number = 1;
    else if (slice_equal_nocase(text, SLICE("no")))
        *number = 0;
    else
        return refuse(error, error_size, "argument must be 'yes' or 'no'");
    return true;
}

/* An empty text is 0 bytes. */
static bool parse_bytes(struct slice text, int64_t *number)
{
    uint64_t bytes = 0;

    if (text.size != 0 && !number_parse_memory(text, &bytes))
        return false;
    *number = (int64_t)bytes;
    return true;
}

static bool parse_percent(struct slice text, int64_t *number, char *error, size_t error_size)
{
    int64_t percent;

    if (text.size != 0 && text.data[text.size - 1] == '%') {
        if (!number_parse_i64(slice_make(text.data, text.size - 1), &percent) || percent < 0)
            return refuse(error, error_size, "argument must be a memory or percent value");
        if (percent > 100)
            return refuse(error, error_size, "percentage argument must be less or equal to 100");
        *number = -percent;
        return true;
    }
    if (!parse_bytes(text, number) || *number < 0)
        return refuse(error, error_size, "argument must be a memory or percent value");
    return true;
}

static bool parse_octal(struct slice text, int64_t *number)
{
    uint64_t value = 0;

    if (text.size == 0 || text.size > 20)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';

        if (digit > 7)
            return false;
        value = value << 3 | digit;
    }
    *number = (int64_t)value;
    return true;
}

static bool refuse_name(const struct option_row *row, char *error, size_t error_size)
{
    size_t size = 0;
    int printed = snprintf(error, error_size, "argument(s) must be one of the following: ");

    for (const struct option_enum *name = row->names; name->name != NULL; name++) {
        size = MIN(size + (size_t)printed, error_size - 1);
        printed = snprintf(error + size, error_size - size, "%s%s", name == row->names ? "" : ", ", name->name);
    }
    return false;
}

static bool parse_names(const struct option_row *row, const struct slice *words, size_t count, int64_t *number,
                        char *error, size_t error_size)
{
    int64_t all = 0;

    for (size_t i = 0; i < count; i++) {
        int64_t value;

        if (!option_enum_value(row->names, words[i], &value))
            return refuse_name(row, error, error_size);
        all |= value;
    }
    *number = all;
    return count != 0 || refuse_name(row, error, error_size);
}

static bool parse_number(const struct option_row *row, struct slice text, int64_t *number, char *error,
                         size_t error_size)
{
    switch (row->type) {
    case OPTION_BOOL:
        return parse_bool(text, number, error, error_size);
    case OPTION_INT:
        if (!number_parse_i64(text, number))
            return refuse(error, error_size, "argument couldn't be parsed into an integer");
        break;
    case OPTION_UINT:
        if (text.size != 0 && text.data[0] == '-' && number_parse_i64(text, number))
            return refuse_bounds(row, error, error_size);
        if (!number_parse_u64(text, (uint64_t *)number))
            return refuse(error, error_size, "argument couldn't be parsed into an integer");
        break;
    case OPTION_MEMORY:
        if (!parse_bytes(text, number))
            return refuse(error, error_size, "argument must be a memory value");
        break;
    case OPTION_PERCENT_OR_MEMORY:
        return parse_percent(text, number, error, error_size);
    case OPTION_OCTAL:
        if (!parse_octal(text, number))
            return refuse(error, error_size, "argument couldn't be parsed as an octal number");
        break;
    case OPTION_ENUM:
    case OPTION_STRING:
    case OPTION_SPECIAL:
        assert(!"not a number");
    }
    return in_bounds(row, *number) || refuse_bounds(row, error, error_size);
}

static struct option_string string_make(const struct option_row *row, struct slice text)
{
    if (text.data == NULL || (text.size == 0 && (row->flags & OPTION_EMPTY_IS_NULL) != 0))
        return (struct option_string){NULL, 0};
    return (struct option_string){mem_copy(text.data, text.size), text.size};
}

/* The words of a SPECIAL wait as one quoted line until they are stored. */
static struct option_string words_as_text(const struct slice *words, size_t count)
{
    struct buffer buffer = {0};
    struct option_string text;

    for (size_t i = 0; i < count; i++) {
        words_quote(&buffer, words[i]);
        buffer_append_char(&buffer, ' ');
    }
    text.data = buffer_take(&buffer, &text.size);
    return text;
}

static bool parse_words(const struct option_row *row, const struct slice *words, size_t count,
                        struct option_value *value, char *error, size_t error_size)
{
    struct slice text = count == 0 ? SLICE("") : words[0];
    const char *reason;

    if (count != 1 && (row->flags & OPTION_MULTI_ARG) == 0)
        return refuse(error, error_size, "wrong number of arguments");
    if (row->type == OPTION_SPECIAL) {
        value->string = words_as_text(words, count);
        return true;
    }
    if (row->type == OPTION_STRING)
        value->string = string_make(row, text);
    else if (row->type == OPTION_ENUM && !parse_names(row, words, count, &value->number, error, error_size))
        return false;
    else if (row->type != OPTION_ENUM && !parse_number(row, text, &value->number, error, error_size))
        return false;
    reason = row->check == NULL ? NULL : row->check(row, value->number, text);
    if (reason == NULL)
        return true;
    option_value_release(value);
    return refuse(error, error_size, reason);
}

bool option_parse(const struct option_row *row, const struct slice *words, size_t count, struct option_value *value,
                  char *error, size_t error_size)
{
    struct words split = {0};
    bool is_list = (row->flags & OPTION_MULTI_ARG) != 0 && count == 1;
    bool parsed;

    *value = (struct option_value){0};
    error[0] = '\0';
    if (!is_list)
        return parse_words(row, words, count, value, error, error_size);
    if (!words_split(words[0], &split)) {
        words_fini(&split);
        return refuse(error, error_size, "unbalanced quotes");
    }
    parsed = parse_words(row, split.items, split.count, value, error, error_size);
    words_fini(&split);
    return parsed;
}

void option_value_release(struct option_value *value)
{
    mem_free(value->string.data);
    *value = (struct option_value){0};
}

/* --- storing --- */

static bool strings_equal(const struct option_string *a, const struct option_string *b)
{
    return (a->data == NULL) == (b->data == NULL) &&
           slice_equal(slice_make(a->data, a->size), slice_make(b->data, b->size));
}

static enum option_result store_special(const struct option_row *row, struct option_value *value, char *error,
                                        size_t error_size)
{
    struct words words = {0};
    struct buffer before = {0};
    struct buffer after = {0};
    enum option_result result = OPTION_FAILED;

    if (!words_split(slice_make(value->string.data, value->string.size), &words))
        assert(!"we quoted them ourselves");
    row->get(row, &before);
    error[0] = '\0';
    if (row->set(row, words.items, words.count, error, error_size)) {
        row->get(row, &after);
        result = slice_equal(buffer_slice(&before), buffer_slice(&after)) ? OPTION_SAME : OPTION_CHANGED;
        option_value_release(value);
        value->string.data = buffer_take(&before, &value->string.size);
    }
    words_fini(&words);
    buffer_fini(&before);
    buffer_fini(&after);
    return result;
}

enum option_result option_store(const struct option_row *row, struct option_value *value, char *error,
                                size_t error_size)
{
    bool is_same;

    if (row->type == OPTION_SPECIAL)
        return store_special(row, value, error, error_size);
    if (row->type == OPTION_STRING) {
        is_same = strings_equal(row->string, &value->string);
        value->string = option_string_replace(row->string, value->string);
    } else {
        int64_t before = atomic_load_explicit(row->number, memory_order_relaxed);

        is_same = before == value->number;
        atomic_store_explicit(row->number, value->number, memory_order_relaxed);
        value->number = before;
    }
    return is_same ? OPTION_SAME : OPTION_CHANGED;
}

static struct option_value preset_value(const struct option_row *row)
{
    struct option_value value = {.number = row->preset};

    if (row->preset_text != NULL)
        value.string = (struct option_string){mem_copy_text(row->preset_text), strlen(row->preset_text)};
    return value;
}

void option_set_preset(const struct option_row *row)
{
    char error[OPTION_ERROR_SPACE];
    struct option_value value = preset_value(row);

    if (row->type != OPTION_SPECIAL || row->preset_text != NULL) {
        if (option_store(row, &value, error, sizeof(error)) == OPTION_FAILED)
            assert(!"a default that its own option refuses");
    }
    option_value_release(&value);
}

bool option_is_preset(const struct option_row *row)
{
    struct buffer text = {0};
    const char *preset = row->preset_text == NULL ? "" : row->preset_text;
    bool is_preset;

    if (row->type == OPTION_STRING)
        return (row->string->data == NULL) == (row->preset_text == NULL) &&
               slice_equal_text(slice_make(row->string->data, row->string->size), preset);
    if (row->type != OPTION_SPECIAL)
        return atomic_load_explicit(row->number, memory_order_relaxed) == row->preset;
    row->get(row, &text);
    is_preset = slice_equal_text(buffer_slice(&text), preset);
    buffer_fini(&text);
    return is_preset;
}

void option_fini(const struct option_row *row)
{
    if (row->type != OPTION_STRING)
        return;
    mem_free(row->string->data);
    *row->string = (struct option_string){NULL, 0};
}

/* --- printing --- */

/* Bits that are all there; a name of several bits hides the names of its parts. */
static void format_bits(const struct option_enum *names, int64_t bits, struct buffer *buffer)
{
    const char *whole = option_enum_name(names, bits);
    const char *gap = "";

    if (whole != NULL) {
        buffer_append_text(buffer, whole);
        return;
    }
    for (; names->name != NULL; names++) {
        if (names->value == 0 || (bits & names->value) != names->value)
            continue;
        buffer_append_text(buffer, gap);
        buffer_append_text(buffer, names->name);
        bits &= ~names->value;
        gap = " ";
    }
}

static void format_number(const struct option_row *row, int64_t number, struct buffer *buffer)
{
    const char *name;

    switch (row->type) {
    case OPTION_BOOL:
        buffer_append_text(buffer, number != 0 ? "yes" : "no");
        break;
    case OPTION_PERCENT_OR_MEMORY:
        buffer_append_i64(buffer, number < 0 ? -number : number);
        if (number < 0)
            buffer_append_char(buffer, '%');
        break;
    case OPTION_OCTAL:
        buffer_printf(buffer, "%" PRIo64, (uint64_t)number);
        break;
    case OPTION_ENUM:
        name = option_enum_name(row->names, number);
        if ((row->flags & OPTION_MULTI_ENUM) != 0)
            format_bits(row->names, number, buffer);
        else
            buffer_append_text(buffer, name == NULL ? "unknown" : name);
        break;
    default:
        if (is_unsigned(row))
            buffer_append_u64(buffer, (uint64_t)number);
        else
            buffer_append_i64(buffer, number);
    }
}

void option_format(const struct option_row *row, struct buffer *buffer)
{
    if (row->type == OPTION_SPECIAL)
        row->get(row, buffer);
    else if (row->type == OPTION_STRING)
        option_string_append(row->string, buffer);
    else
        format_number(row, atomic_load_explicit(row->number, memory_order_relaxed), buffer);
}

/* A list of words is written word by word, so that none of them is quoted with its neighbours. */
static void rewrite_words(struct buffer *buffer, struct slice text)
{
    struct words words = {0};

    if (!words_split(text, &words) || words.count == 0)
        words_quote(buffer, text);
    for (size_t i = 0; i < words.count; i++) {
        if (i != 0)
            buffer_append_char(buffer, ' ');
        if (words_needs_quote(words.items[i]))
            words_quote(buffer, words.items[i]);
        else
            buffer_append_slice(buffer, words.items[i]);
    }
    words_fini(&words);
}

void option_rewrite(const struct option_row *row, struct buffer *buffer)
{
    struct buffer text = {0};

    if (row->rewrite != NULL) {
        row->rewrite(row, buffer);
        return;
    }
    buffer_append_text(buffer, row->name);
    buffer_append_char(buffer, ' ');
    if (row->type == OPTION_MEMORY) {
        char *to = buffer_reserve(buffer, NUMBER_DOUBLE_SPACE);

        buffer->size += number_format_memory(to, (uint64_t)atomic_load_explicit(row->number, memory_order_relaxed));
    } else {
        option_format(row, &text);
        if (row->type == OPTION_STRING)
            words_quote(buffer, buffer_slice(&text));
        else
            rewrite_words(buffer, buffer_slice(&text));
    }
    buffer_append_char(buffer, '\n');
    buffer_fini(&text);
}
