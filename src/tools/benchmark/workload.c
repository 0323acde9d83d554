#include "tools/benchmark/workload.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"
#include "net/resp.h"

#include <stdio.h>
#include <string.h>

static const char number_text[] = "__rand_int__", new_text[] = "__new_int__", data_text[] = "__data__",
                  tag_text[] = "{tag}";

enum { KEY_FILLER = 'x' };

void workload_init(struct workload *workload, struct distribution *keys, struct slice payload, size_t payload_least)
{
    assert(payload_least <= payload.size);
    *workload = (struct workload){.keys = keys, .payload = payload, .payload_least = payload_least};
}

static void fini_text(struct workload_text *text)
{
    buffer_fini(&text->bytes);
    mem_free(text->patches.items);
}

void workload_fini(struct workload *workload)
{
    for (uint32_t i = 0; i < workload->count; i++) {
        struct workload_command *command = &workload->commands[i];

        fini_text(&command->text);
        for (uint32_t gap = 0; gap < command->gaps.count; gap++)
            fini_text(&command->gaps.items[gap].key);
        mem_free(command->gaps.items);
    }
    *workload = (struct workload){0};
}

void workload_set_key_sizes(struct workload *workload, size_t least, size_t most)
{
    assert(workload->count == 0 && least <= most);
    workload->key_least = least;
    workload->key_most = most;
}

bool workload_is_constant(const struct workload *workload)
{
    return workload->count == 1 && workload->commands[0].text.patches.count == 0 &&
           workload->commands[0].gaps.count == 0;
}

/* --------------------------------------------------------------------------------------------------- encoding -- */

static bool varies(const struct workload *workload)
{
    return workload->payload_least != workload->payload.size;
}

static void append_header(struct buffer *bytes, char type, size_t number)
{
    char *to = buffer_reserve(bytes, RESP_HEADER_BYTES);

    bytes->size += (size_t)(resp_encode_header(to, type, (int64_t)number) - to);
}

static bool begins_with(struct slice text, const char *mark)
{
    return slice_starts_with(text, slice_from_text(mark));
}

static size_t size_of_word(const struct workload *workload, struct slice word)
{
    size_t size = word.size;

    for (size_t i = 0; i < word.size; i++) {
        const struct slice rest = slice_skip(word, i);

        if (workload->keys != NULL && begins_with(rest, new_text))
            size += sizeof(number_text) - sizeof(new_text);
        else if (begins_with(rest, data_text))
            size += workload->payload.size - (sizeof(data_text) - 1);
    }
    return size;
}

static void add_patch(struct workload_text *to, size_t offset, int kind)
{
    *ARRAY_PUSH(&to->patches) = (struct workload_patch){.offset = offset, .kind = (unsigned)kind};
}

/* Appends the mark at the beginning of the text, if it is one, and returns its size. */
static size_t add_mark(const struct workload *workload, struct workload_text *to, struct slice text)
{
    struct buffer *bytes = &to->bytes;

    if (workload->keys != NULL && (begins_with(text, number_text) || begins_with(text, new_text))) {
        const bool is_new = !begins_with(text, number_text);

        add_patch(to, bytes->size, is_new ? PATCH_NEW_KEY : PATCH_KEY);
        buffer_append(bytes, "000000000000", WORKLOAD_DIGITS);
        return is_new ? sizeof(new_text) - 1 : sizeof(number_text) - 1;
    }
    if (begins_with(text, data_text)) {
        buffer_append_slice(bytes, workload->payload);
        return sizeof(data_text) - 1;
    }
    if (begins_with(text, tag_text)) {
        add_patch(to, bytes->size + 1, PATCH_TAG);
        buffer_append_text(bytes, tag_text);
        return sizeof(tag_text) - 1;
    }
    return 0;
}

static void add_marks(const struct workload *workload, struct workload_text *to, struct slice word)
{
    for (size_t at = 0, size; at < word.size; at += MAX(size, 1)) {
        size = add_mark(workload, to, slice_skip(word, at));
        if (size == 0)
            buffer_append_char(&to->bytes, word.data[at]);
    }
}

static bool has_number(struct slice word)
{
    for (size_t i = 0; i < word.size; i++) {
        if (begins_with(slice_skip(word, i), number_text) || begins_with(slice_skip(word, i), new_text))
            return true;
    }
    return false;
}

static bool is_key_to_lengthen(const struct workload *workload, struct slice word, size_t index)
{
    return workload->key_most != 0 && workload->keys != NULL && (index == 1 || begins_with(word, "key")) &&
           has_number(word);
}

static void add_word(const struct workload *workload, struct workload_command *command, struct slice word, size_t index)
{
    const bool is_key = is_key_to_lengthen(workload, word, index);
    struct buffer *bytes = &command->text.bytes;
    size_t size = size_of_word(workload, word), more = 0;

    if (is_key && workload->key_least != workload->key_most) {
        struct workload_gap *gap = ARRAY_PUSH(&command->gaps);

        *gap = (struct workload_gap){.offset = bytes->size};
        add_marks(workload, &gap->key, word);
        return;
    }
    if (varies(workload) && slice_equal_text(word, data_text)) {
        *ARRAY_PUSH(&command->gaps) = (struct workload_gap){.offset = bytes->size};
        return;
    }
    if (is_key && workload->key_most > size)
        more = workload->key_most - size;
    append_header(bytes, '$', size + more);
    add_marks(workload, &command->text, word);
    memset(buffer_reserve(bytes, more), KEY_FILLER, more);
    bytes->size += more;
    buffer_append(bytes, "\r\n", 2);
}

bool workload_add(struct workload *workload, uint32_t weight, const struct slice *words, size_t word_count)
{
    struct workload_command *command = &workload->commands[workload->count];

    assert(word_count > 0 && weight > 0);
    if (workload->count == WORKLOAD_COMMANDS_MOST)
        return false;
    *command = (struct workload_command){.weight = weight};
    snprintf(command->name, sizeof(command->name), "%.*s", (int)words[0].size, words[0].data);
    append_header(&command->text.bytes, '*', word_count);
    for (size_t i = 0; i < word_count; i++)
        add_word(workload, command, words[i], i);
    workload->count++;
    workload->total_weight += weight;
    return true;
}

void workload_add_inline(struct workload *workload, const char *line)
{
    struct workload_command *command = &workload->commands[workload->count++];

    assert(workload->count == 1);
    *command = (struct workload_command){.weight = 1};
    buffer_append_text(&command->text.bytes, line);
    workload->total_weight = 1;
}

/* --------------------------------------------------------------------------------------------------- requests -- */

static ALWAYS_INLINE void write_two(char *to, uint32_t number)
{
    to[0] = (char)('0' + number / 10);
    to[1] = (char)('0' + number % 10);
}

/* By pieces that do not wait for each other, as a chain of twelve divisions would. */
static ALWAYS_INLINE void write_six(char *to, uint32_t number)
{
    const uint32_t upper = number / 10000, lower = number % 10000;

    write_two(to, upper);
    write_two(to + 2, lower / 100);
    write_two(to + 4, lower % 100);
}

static void write_digits(char *to, uint64_t number)
{
    static_assert(WORKLOAD_DIGITS == 12, "two times six");
    if (number < 1000000)
        memset(to, '0', 6);
    else
        write_six(to, (uint32_t)(number / 1000000 % 1000000));
    write_six(to + 6, (uint32_t)(number % 1000000));
}

static uint32_t choose(const struct workload *workload, struct random *random)
{
    uint64_t at;
    uint32_t i = 0;

    if (workload->count == 1)
        return 0;
    at = random_below(random, workload->total_weight);
    while (at >= workload->commands[i].weight)
        at -= workload->commands[i++].weight;
    return i;
}

static void patch(struct workload *workload, const struct workload_patch *place, char *to, struct random *random,
                  const char *tag)
{
    if (place->kind == PATCH_TAG) {
        if (tag != NULL)
            memcpy(to, tag, WORKLOAD_TAG_BYTES);
    } else if (place->kind == PATCH_NEW_KEY && workload->keys->kind == DISTRIBUTION_LATEST) {
        write_digits(to, distribution_grow(workload->keys));
    } else {
        write_digits(to, distribution_draw(workload->keys, random));
    }
}

/* FNV-1a: of the name alone, so that a key has the same size in each run. */
static uint64_t hash_of(const char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 32);
}

/* The name is made behind the room for its header, as its size is known only then. */
static void append_key(struct workload *workload, const struct workload_text *key, struct random *random,
                       const char *tag, struct buffer *out)
{
    const size_t most = MAX(workload->key_most, key->bytes.size);
    char *to = buffer_reserve(out, RESP_HEADER_BYTES + most + 2), *name = to + RESP_HEADER_BYTES;
    size_t size;

    memcpy(name, key->bytes.data, key->bytes.size);
    for (uint32_t i = 0; i < key->patches.count; i++)
        patch(workload, &key->patches.items[i], name + key->patches.items[i].offset, random, tag);
    size = workload->key_least +
           (size_t)(hash_of(name, key->bytes.size) % (workload->key_most - workload->key_least + 1));
    size = MAX(size, key->bytes.size);
    to = resp_encode_header(to, '$', (int64_t)size);
    memmove(to, name, key->bytes.size);
    memset(to + key->bytes.size, KEY_FILLER, size - key->bytes.size);
    memcpy(to + size, "\r\n", 2);
    out->size = (size_t)(to + size + 2 - out->data);
}

static void append_payload(const struct workload *workload, struct random *random, struct buffer *out)
{
    const size_t least = workload->payload_least, most = workload->payload.size;
    const size_t size = least + (size_t)random_below(random, most - least + 1);

    append_header(out, '$', size);
    buffer_append(out, workload->payload.data, size);
    buffer_append(out, "\r\n", 2);
}

/* With words of changing sizes: what is between them is patched, too. */
static void append_with_gaps(struct workload *workload, const struct workload_command *command, struct random *random,
                             const char *tag, struct buffer *out)
{
    const struct workload_text *text = &command->text;
    size_t from = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; i <= command->gaps.count; i++) {
        const struct workload_gap *gap = i < command->gaps.count ? &command->gaps.items[i] : NULL;
        const size_t until = gap != NULL ? gap->offset : text->bytes.size, begin = out->size;

        buffer_append(out, text->bytes.data + from, until - from);
        for (; next < text->patches.count && text->patches.items[next].offset < until; next++)
            patch(workload, &text->patches.items[next], out->data + begin + (text->patches.items[next].offset - from),
                  random, tag);
        from = until;
        if (gap != NULL && gap->key.bytes.size != 0)
            append_key(workload, &gap->key, random, tag, out);
        else if (gap != NULL)
            append_payload(workload, random, out);
    }
}

uint32_t workload_next(struct workload *workload, struct random *random, const char *tag, struct buffer *out)
{
    const uint32_t chosen = choose(workload, random);
    const struct workload_command *command = &workload->commands[chosen];
    const size_t begin = out->size;

    if (command->gaps.count != 0) {
        append_with_gaps(workload, command, random, tag, out);
        return chosen;
    }
    buffer_append_slice(out, buffer_slice(&command->text.bytes));
    for (uint32_t i = 0; i < command->text.patches.count; i++)
        patch(workload, &command->text.patches.items[i], out->data + begin + command->text.patches.items[i].offset,
              random, tag);
    return chosen;
}
