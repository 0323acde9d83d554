#include "commands/stream/stream_effects.h"

#include "base/assert.h"
#include "commands/shared/operations.h"

struct stream_consumer *group_use_consumer(struct group_use *use)
{
    int64_t now_ms = use->request->access->now_ms;

    assert(use->group != NULL);
    if (use->consumer == NULL)
        use->consumer = stream_consumer_find(use->group, use->consumer_name);
    if (use->consumer == NULL) {
        use->consumer = stream_consumer_create(use->group, use->consumer_name, now_ms);
        use->made_consumer = true;
    }
    use->consumer->seen_ms = now_ms;
    return use->consumer;
}

void group_use_end(struct group_use *use)
{
    assert(!use->made_consumer || use->consumer != NULL);
    if (use->made_consumer)
        access_event(use->request->access, use->request->db, use->key, EVENT_STREAM, "xgroup-createconsumer");
}

typedef void (*tell_fn)(struct request *request, const struct slice *words, uint32_t word_count);

static void tell_claim(const struct group_use *use, struct stream_id id, const struct stream_pending *pending,
                       tell_fn tell, uint32_t word_count)
{
    char id_text[STREAM_ID_TEXT_BYTES], last_text[STREAM_ID_TEXT_BYTES], time[NUMBER_I64_SPACE],
        deliveries[NUMBER_I64_SPACE];

    if (use->request->access->effects == NULL)
        return;
    tell(use->request,
         (const struct slice[]){SLICE("XCLAIM"), use->key->name, use->group_name,
                                stream_consumer_name(pending->consumer), SLICE("0"), stream_id_format(id, id_text),
                                SLICE("TIME"), slice_make(time, number_format_i64(time, pending->delivery_ms)),
                                SLICE("RETRYCOUNT"),
                                slice_make(deliveries, number_format_u64(deliveries, pending->delivery_count)),
                                SLICE("FORCE"), SLICE("JUSTID"), SLICE("LASTID"),
                                stream_id_format(use->group->last_id, last_text)},
         word_count);
}

void group_use_late(struct group_use *use, struct stream_id id)
{
    struct stream_consumer *late = stream_consumer_find(use->group, STREAM_LATE_CONSUMER);

    if (stream_pending_find(use->group, id) != NULL)
        return;
    if (late == NULL)
        late = stream_consumer_create(use->group, STREAM_LATE_CONSUMER, use->request->access->now_ms);
    (void)stream_pending_assign(use->group, id, late, 0, 0);
}

void group_use_forget_new(struct group_use *use)
{
    struct stream_consumer *late = stream_consumer_find(use->group, STREAM_LATE_CONSUMER);
    struct stream_id from = use->group->last_id;

    if (late == NULL || !stream_id_increment(&from))
        return;
    for (bool more = true; more;) {
        struct radix_iter pending;

        radix_iter_init(&pending, late->pending);
        more = stream_pending_seek(&pending, from);
        if (more)
            from = stream_pending_id(&pending);
        radix_iter_fini(&pending);
        if (more)
            (void)stream_pending_remove(use->group, from);
    }
}

bool stream_is_late(const struct stream_pending *pending)
{
    return slice_equal(stream_consumer_name(pending->consumer), STREAM_LATE_CONSUMER);
}

bool stream_is_released(const struct stream_pending *pending)
{
    return slice_equal(stream_consumer_name(pending->consumer), STREAM_RELEASED_CONSUMER);
}

uint64_t stream_deliveries_after(uint64_t count)
{
    return count < STREAM_DELIVERIES_MOST ? count + 1 : STREAM_DELIVERIES_MOST;
}

void effect_claim(const struct group_use *use, struct stream_id id, const struct stream_pending *pending)
{
    tell_claim(use, id, pending, effect_set, 14);
}

void operation_claim(const struct group_use *use, struct stream_id id, const struct stream_pending *pending)
{
    tell_claim(use, id, pending, operation_add, 12); /* deliveries tell the position */
}

static void tell_acknowledged(const struct group_use *use, struct stream_id id, tell_fn tell)
{
    char text[STREAM_ID_TEXT_BYTES];

    tell(use->request,
         (const struct slice[]){SLICE("XACK"), use->key->name, use->group_name, stream_id_format(id, text)}, 4);
}

void effect_acknowledged(const struct group_use *use, struct stream_id id)
{
    tell_acknowledged(use, id, effect_set);
}

void operation_acknowledged(const struct group_use *use, struct stream_id id)
{
    tell_acknowledged(use, id, operation_add);
}

void effect_group_position(const struct group_use *use)
{
    char id_text[STREAM_ID_TEXT_BYTES], read[NUMBER_I64_SPACE];

    if (use->request->access->effects == NULL)
        return;
    effect_set(use->request,
               (const struct slice[]){SLICE("XGROUP"), SLICE("SETID"), use->key->name, use->group_name,
                                      stream_id_format(use->group->last_id, id_text), SLICE("ENTRIESREAD"),
                                      slice_make(read, number_format_i64(read, use->group->entries_read))},
               7);
}

static void tell_consumer(const struct group_use *use, tell_fn tell)
{
    tell(use->request,
         (const struct slice[]){SLICE("XGROUP"), SLICE("CREATECONSUMER"), use->key->name, use->group_name,
                                use->consumer_name},
         5);
}

void effect_consumer(const struct group_use *use)
{
    tell_consumer(use, effect_set);
}

void operation_consumer(const struct group_use *use)
{
    tell_consumer(use, operation_add);
}
