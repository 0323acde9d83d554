#include "store/effects.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/number.h"

void effects_cut(struct effects *effects, uint32_t count)
{
    if (count >= effects->count)
        return;
    effects->bytes.size = effects->items[count].offset;
    for (uint32_t i = effects->items[count].first_blob; i < effects->blobs.count; i++)
        blob_release(&effects->blobs.items[i].blob);
    effects->blobs.count = effects->items[count].first_blob;
    effects->count = count;
    effects->ended_count = MIN(effects->ended_count, count);
}

void effects_clear(struct effects *effects)
{
    for (uint32_t i = 0; i < effects->blobs.count; i++)
        blob_release(&effects->blobs.items[i].blob);
    effects->blobs.count = 0;
    effects->bytes.size = 0;
    effects->count = 0;
    effects->ended_count = 0;
}

/* The bytes and blobs of what is dropped stay where they are until all is cleared. */
void effects_hide(struct effects *effects, uint32_t count, unsigned hidden_from)
{
    uint32_t kept = count;

    assert(hidden_from == EFFECT_AOF || hidden_from == EFFECT_REPLICAS);
    if (hidden_from == EFFECT_REPLICAS)
        hidden_from |= EFFECT_PEERS;
    for (uint32_t i = count; i < effects->count; i++) {
        struct effect *effect = &effects->items[i];

        effect->hidden_from |= (uint8_t)hidden_from;
        if (effect->hidden_from != EFFECT_ALL)
            effects->items[kept++] = *effect;
    }
    if (kept == count)
        effects_cut(effects, count);
    effects->count = kept;
    effects->ended_count = MIN(effects->ended_count, kept);
}

/* Here, too. */
void effects_keep_local(struct effects *effects)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < effects->count; i++) {
        struct effect *effect = &effects->items[i];

        if ((effect->hidden_from & EFFECT_AOF) != 0) {
            if (effect->ends_group && kept != 0)
                effects->items[kept - 1].ends_group = true;
            continue;
        }
        effect->hidden_from |= EFFECT_REPLICAS | EFFECT_PEERS;
        effects->items[kept++] = *effect;
    }
    effects->count = kept;
    effects->ended_count = MIN(effects->ended_count, kept);
    if (kept == 0)
        effects_clear(effects);
}

void effects_fini(struct effects *effects)
{
    effects_clear(effects);
    buffer_fini(&effects->bytes);
    ARRAY_FINI(&effects->blobs);
    ARRAY_FINI(effects);
}

static ALWAYS_INLINE char *put_line_end(char *at)
{
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

enum { HEADER_SPACE = NUMBER_I64_SPACE + 3 };

/* Returns where it ends. */
static ALWAYS_INLINE char *put_header(char *at, char type, uint64_t number)
{
    *at++ = type;
    if (LIKELY(number < 100)) {
        if (number >= 10)
            *at++ = (char)('0' + number / 10);
        *at++ = (char)('0' + number % 10);
    } else {
        at += number_format_u64(at, number);
    }
    return put_line_end(at);
}

void effects_add_with_blobs(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count,
                            struct blob *(*blob_of)(const void *context, struct slice arg), const void *context)
{
    struct buffer *bytes = &effects->bytes;
    struct effect effect = {.offset = bytes->size, .first_blob = effects->blobs.count, .db = db};
    char *at = put_header(buffer_reserve(bytes, HEADER_SPACE), '*', arg_count);

    bytes->size = (size_t)(at - bytes->data);
    for (size_t i = 0; i < arg_count; i++) {
        const struct slice arg = args[i];
        struct blob *blob = blob_of != NULL && arg.size >= EFFECT_BLOB_BYTES ? blob_of(context, arg) : NULL;

        at = buffer_reserve(bytes, HEADER_SPACE + (blob != NULL ? 0 : arg.size) + 2);
        at = put_header(at, '$', arg.size);
        if (UNLIKELY(blob != NULL)) {
            const size_t position = (size_t)(at - bytes->data) - effect.offset;

            *ARRAY_PUSH(&effects->blobs) = (struct effect_blob){position, blob_acquire(blob)};
        } else if (arg.size != 0) {
            if (i == 1 && LIKELY(arg.size < UINT32_MAX)) {
                effect.word_at = (uint32_t)((size_t)(at - bytes->data) - effect.offset);
                effect.word_size = (uint32_t)arg.size;
            }
            memcpy(at, arg.data, arg.size);
            at += arg.size;
        }
        at = put_line_end(at);
        bytes->size = (size_t)(at - bytes->data);
    }
    effect.size = bytes->size - effect.offset;
    effect.blob_count = effects->blobs.count - effect.first_blob;
    *ARRAY_PUSH(effects) = effect;
}

void effects_append_words(struct buffer *to, const struct slice *words, size_t count)
{
    char *at = put_header(buffer_reserve(to, HEADER_SPACE), '*', count);

    to->size = (size_t)(at - to->data);
    for (size_t i = 0; i < count; i++) {
        at = put_header(buffer_reserve(to, HEADER_SPACE + words[i].size + 2), '$', words[i].size);
        if (words[i].size != 0)
            memcpy(at, words[i].data, words[i].size);
        at = put_line_end(at + words[i].size);
        to->size = (size_t)(at - to->data);
    }
}

void effects_end_group(struct effects *effects)
{
    if (effects->count != 0)
        effects->items[effects->count - 1].ends_group = true;
}

void effects_end_command(struct effects *effects, bool has_operations)
{
    for (uint32_t i = effects->ended_count; UNLIKELY(has_operations) && i < effects->count; i++) {
        if ((effects->items[i].hidden_from & EFFECT_PLAIN) != EFFECT_PLAIN)
            effects->items[i].hidden_from |= EFFECT_PEERS;
    }
    effects->ended_count = effects->count;
}

void effects_add(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count)
{
    effects_add_with_blobs(effects, db, args, arg_count, NULL, NULL);
}

void effects_add_message(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count)
{
    effects_add(effects, db, args, arg_count);
    effects->items[effects->count - 1].hidden_from = EFFECT_AOF;
}

void effects_add_operation(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count)
{
    effects_add(effects, db, args, arg_count);
    effects->items[effects->count - 1].hidden_from = EFFECT_PLAIN;
}

void effects_describe(struct effects *effects, unsigned key_index, unsigned flags)
{
    struct effect *effect = &effects->items[effects->count - 1];

    assert(effects->count != 0 && key_index <= EFFECT_KEY_MOST);
    effect->key_index = (uint8_t)key_index;
    effect->flags = (uint8_t)flags;
}

void effects_add_unshared(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count)
{
    effects_add(effects, db, args, arg_count);
    effects->items[effects->count - 1].hidden_from = EFFECT_PEERS;
}

/* Behind the line that begins there. */
static const char *skip_number(const char *at, uint64_t *number)
{
    *number = 0;
    for (at++; *at != '\r'; at++)
        *number = *number * 10 + (uint64_t)(*at - '0');
    return at + 2;
}

struct slice effects_word(const struct effects *effects, const struct effect *effect, uint32_t index)
{
    const char *begin = effects->bytes.data + effect->offset, *at;
    const struct effect_blob *blob = effects->blobs.items + effect->first_blob, *end = blob + effect->blob_count;
    uint64_t count, size;

    if (LIKELY(index == 1 && effect->word_at != 0))
        return slice_make(begin + effect->word_at, effect->word_size);
    at = skip_number(begin, &count);
    assert(index < count);
    for (uint32_t i = 0;; i++) {
        bool is_blob;

        at = skip_number(at, &size);
        is_blob = blob < end && blob->position == (size_t)(at - begin);
        if (i == index)
            return slice_make(is_blob ? blob->blob->data : at, size);
        at += is_blob ? 2 : size + 2;
        blob += is_blob;
    }
}

void effects_append_bytes(const struct effects *effects, const struct effect *effect, struct buffer *to)
{
    const char *bytes = effects->bytes.data + effect->offset;
    size_t at = 0;

    for (uint32_t i = 0; i < effect->blob_count; i++) {
        const struct effect_blob *blob = &effects->blobs.items[effect->first_blob + i];

        buffer_append(to, bytes + at, blob->position - at);
        buffer_append(to, blob->blob->data, blob->blob->size);
        at = blob->position;
    }
    buffer_append(to, bytes + at, effect->size - at);
}
