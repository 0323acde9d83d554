#include "store/effects.h"

#include "store/effects_words.h"

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

typedef struct blob *(*blob_of_fn)(const void *context, struct slice arg);

/* Some words may be large: those that are in blobs are not copied. */
static NOINLINE void add_large(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count,
                               blob_of_fn blob_of, const void *context)
{
    struct buffer *bytes = &effects->bytes;
    struct effect *effect = effects_begin(effects, db);
    char *at = effects_put_header(buffer_reserve(bytes, EFFECTS_HEADER_SPACE), '*', arg_count);

    bytes->size = (size_t)(at - bytes->data);
    for (size_t i = 0; i < arg_count; i++) {
        const struct slice arg = args[i];
        struct blob *blob = blob_of != NULL && arg.size >= EFFECT_BLOB_BYTES ? blob_of(context, arg) : NULL;

        at = buffer_reserve(bytes, EFFECTS_WORD_SPACE + (blob != NULL ? 0 : arg.size));
        if (blob != NULL) {
            at = effects_put_header(at, '$', arg.size);
            *ARRAY_PUSH(&effects->blobs) = (struct effect_blob){(size_t)(at - bytes->data) - effect->offset,
                                                                blob_acquire(blob)};
            at = effects_put_line_end(at);
        } else {
            at = effects_put_word(at, arg);
            if (i == 1 && arg.size != 0 && arg.size < UINT32_MAX) {
                effect->word_at = (uint32_t)((size_t)(at - bytes->data) - 2 - arg.size - effect->offset);
                effect->word_size = (uint32_t)arg.size;
            }
        }
        bytes->size = (size_t)(at - bytes->data);
    }
    effect->size = bytes->size - effect->offset;
    effect->blob_count = effects->blobs.count - effect->first_blob;
}

void effects_add_with_blobs(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count,
                            blob_of_fn blob_of, const void *context)
{
    const size_t room = effects_words_room(args, arg_count);

    if (UNLIKELY(room >= EFFECT_BLOB_BYTES)) /* else no word is as large, and the room is not much too large */
        add_large(effects, db, args, arg_count, blob_of, context);
    else
        effects_add_copied(effects, db, args, arg_count, room);
}

void effects_add(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count)
{
    effects_add_with_blobs(effects, db, args, arg_count, NULL, NULL);
}

static struct blob *value_of(const void *context, struct slice arg)
{
    struct blob *value = (struct blob *)(uintptr_t)context;

    return arg.data == value->data && arg.size == value->size ? value : NULL;
}

void effects_add_value(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count,
                       struct blob *value, unsigned hidden_from)
{
    effects_add_with_blobs(effects, db, args, arg_count, value != NULL ? value_of : NULL, value);
    effects->items[effects->count - 1].hidden_from = (uint8_t)hidden_from;
}

void effects_append_words(struct buffer *to, const struct slice *words, size_t count)
{
    char *at = effects_put_header(buffer_reserve(to, effects_words_room(words, count)), '*', count);

    for (size_t i = 0; i < count; i++)
        at = effects_put_word(at, words[i]);
    to->size = (size_t)(at - to->data);
}

void effects_end_command(struct effects *effects, bool has_operations)
{
    for (uint32_t i = effects->ended_count; UNLIKELY(has_operations) && i < effects->count; i++) {
        if ((effects->items[i].hidden_from & EFFECT_PLAIN) != EFFECT_PLAIN)
            effects->items[i].hidden_from |= EFFECT_PEERS;
    }
    effects->ended_count = effects->count;
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

void effects_add_unshared(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count)
{
    effects_add(effects, db, args, arg_count);
    effects->items[effects->count - 1].hidden_from = EFFECT_PEERS;
}

struct slice effects_word(const struct effects *effects, const struct effect *effect, uint32_t index)
{
    const char *begin = effects->bytes.data + effect->offset, *at;
    const struct effect_blob *blob = effects->blobs.items + effect->first_blob, *end = blob + effect->blob_count;
    size_t count, size;

    if (LIKELY(index == 1 && effect->word_at != 0))
        return slice_make(begin + effect->word_at, effect->word_size);
    at = effects_number(begin, &count);
    assert(index < count);
    for (uint32_t i = 0;; i++) {
        bool is_blob;

        at = effects_number(at, &size);
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
