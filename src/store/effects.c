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

static void append_header(struct buffer *bytes, char type, uint64_t number)
{
    char *at = buffer_reserve(bytes, NUMBER_I64_SPACE + 3), *start = at;

    *at++ = type;
    at += number_format_u64(at, number);
    *at++ = '\r';
    *at++ = '\n';
    bytes->size += (size_t)(at - start);
}

void effects_add_with_blobs(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count,
                            struct blob *(*blob_of)(const void *context, struct slice arg), const void *context)
{
    struct buffer *bytes = &effects->bytes;
    struct effect effect = {.offset = bytes->size, .first_blob = effects->blobs.count, .db = db};

    append_header(bytes, '*', arg_count);
    for (size_t i = 0; i < arg_count; i++) {
        struct blob *blob = blob_of != NULL && args[i].size >= EFFECT_BLOB_BYTES ? blob_of(context, args[i]) : NULL;

        append_header(bytes, '$', args[i].size);
        if (blob != NULL)
            *ARRAY_PUSH(&effects->blobs) = (struct effect_blob){bytes->size - effect.offset, blob_acquire(blob)};
        else
            buffer_append_slice(bytes, args[i]);
        buffer_append(bytes, "\r\n", 2);
    }
    effect.size = bytes->size - effect.offset;
    effect.blob_count = effects->blobs.count - effect.first_blob;
    *ARRAY_PUSH(effects) = effect;
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

void effects_add_unshared(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count)
{
    effects_add(effects, db, args, arg_count);
    effects->items[effects->count - 1].hidden_from = EFFECT_PEERS;
}
