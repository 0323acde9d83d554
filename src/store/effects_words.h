/* How words become the RESP of an effect, inline: each write goes through here. */
#pragma once

#include "base/array.h"
#include "base/copy.h"
#include "base/number.h"
#include "store/effects.h"

#include <string.h>

static ALWAYS_INLINE char *effects_put_line_end(char *at)
{
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

enum { EFFECTS_HEADER_SPACE = NUMBER_I64_SPACE + 3, EFFECTS_WORD_SPACE = EFFECTS_HEADER_SPACE + 2 };

/* Returns where it ends. Small numbers are one word of four bytes, of which the first one has the lowest address. */
static ALWAYS_INLINE char *effects_put_header(char *at, char type, uint64_t number)
{
    uint32_t bytes = (unsigned char)type;

    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the bytes of a word in their order");
    if (LIKELY(number < 10)) {
        bytes += UINT32_C(0x0A0D3000) + ((uint32_t)number << 8);
        memcpy(at, &bytes, sizeof(bytes));
        return at + sizeof(bytes);
    }
    if (LIKELY(number < 100)) {
        const uint32_t tens = (uint32_t)number * 103 >> 10; /* exact below 179 */

        bytes += UINT32_C(0x0D303000) + (tens << 8) + (((uint32_t)number - tens * 10) << 16);
        memcpy(at, &bytes, sizeof(bytes));
        at[4] = '\n';
        return at + 5;
    }
    *at++ = type;
    at += number_format_u64(at, number);
    return effects_put_line_end(at);
}

/* With room for EFFECTS_HEADER_SPACE + word.size + 2 bytes. */
static ALWAYS_INLINE char *effects_put_word(char *at, struct slice word)
{
    at = effects_put_header(at, '$', word.size);
    copy_word(at, word.data, word.size);
    return effects_put_line_end(at + word.size);
}

/* Room that the words take at most. */
static ALWAYS_INLINE size_t effects_words_room(const struct slice *words, size_t count)
{
    size_t room = EFFECTS_HEADER_SPACE + count * EFFECTS_WORD_SPACE;

    for (size_t i = 0; i < count; i++)
        room += words[i].size;
    return room;
}

static ALWAYS_INLINE struct effect *effects_begin(struct effects *effects, unsigned db)
{
    struct effect *effect = ARRAY_PUSH(effects);

    *effect = (struct effect){.offset = effects->bytes.size, .first_blob = effects->blobs.count, .db = db};
    return effect;
}

static ALWAYS_INLINE size_t effects_header_size(uint64_t number)
{
    size_t size = number < 10 ? 4 : 5;

    for (uint64_t least = 100; UNLIKELY(number >= least); least *= 10)
        size++;
    return size;
}

/* The bytes in which the words of a plain command stand (resp_command), if we would write them so. Empty: not quite. */
static ALWAYS_INLINE struct slice effects_plain_text(const struct slice *args, size_t arg_count)
{
    const char *begin = args[0].data - effects_header_size(args[0].size) - effects_header_size(arg_count), *end = begin;

    for (size_t i = 0; i < arg_count; i++) {
        end = args[i].data + args[i].size;
        if (UNLIKELY(end[0] != '\r' || end[1] != '\n'))
            return SLICE_EMPTY;
        end += 2;
    }
    return slice_make(begin, (size_t)(end - begin));
}

/* Of such words, in one piece. */
static ALWAYS_INLINE void effects_add_plain(struct effects *effects, unsigned db, const struct slice *args,
                                            size_t arg_count, struct slice text)
{
    struct effect *effect = effects_begin(effects, db);

    copy_word(buffer_reserve(&effects->bytes, text.size), text.data, text.size);
    if (LIKELY(arg_count > 1) && args[1].size != 0) {
        effect->word_at = (uint32_t)(args[1].data - text.data);
        effect->word_size = (uint32_t)args[1].size;
    }
    effect->size = text.size;
    effects->bytes.size += text.size;
}

/* None of them is in a blob. The room for all is there at once, so they are written without looking at it. */
static ALWAYS_INLINE void effects_add_copied(struct effects *effects, unsigned db, const struct slice *args,
                                             size_t arg_count, size_t room)
{
    struct buffer *bytes = &effects->bytes;
    struct effect *effect = effects_begin(effects, db);
    char *const begin = buffer_reserve(bytes, room), *at = effects_put_header(begin, '*', arg_count);
    size_t i = 0;

    if (LIKELY(arg_count > 1)) {
        at = effects_put_word(at, args[0]);
        at = effects_put_word(at, args[1]);
        if (args[1].size != 0) {
            effect->word_at = (uint32_t)((size_t)(at - begin) - 2 - args[1].size);
            effect->word_size = (uint32_t)args[1].size;
        }
        i = 2;
    }
    for (; i < arg_count; i++)
        at = effects_put_word(at, args[i]);
    effect->size = (size_t)(at - begin);
    bytes->size += effect->size;
}
