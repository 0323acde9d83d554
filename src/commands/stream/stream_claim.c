#include "commands/stream/stream_claim.h"

#include "base/array.h"

const char *stream_claim_parse(struct slice text, int64_t *idle_ms)
{
    if (!number_parse_i64(text, idle_ms))
        return "ERR min-idle-time is not an integer or out of range";
    return *idle_ms < 0 ? "ERR min-idle-time must be a positive integer" : NULL;
}

void reply_claimed_entry(struct request *request, struct stream_iter *iter, struct stream_id id, uint64_t field_count,
                         int64_t idle_ms, uint64_t delivery_count)
{
    reply_array(request, 4);
    reply_stream_entry_parts(request, iter, id, field_count);
    reply_int(request, idle_ms);
    reply_int(request, (int64_t)delivery_count);
}

/* A delivery in the future is due only for who takes any. */
static bool is_due(struct stream_idle idle, int64_t now_ms, int64_t idle_ms)
{
    return idle_ms == 0 || idle.delivery_ms <= now_ms - idle_ms;
}

static int64_t due_ms_of(struct stream_idle idle, int64_t idle_ms)
{
    int64_t due_ms;

    return __builtin_add_overflow(idle.delivery_ms, idle_ms, &due_ms) ? INT64_MAX : due_ms;
}

bool stream_claim_is_due(const struct stream *stream, struct stream_group *group, int64_t now_ms, int64_t idle_ms,
                         int64_t *due_ms)
{
    struct stream_idle_iter iter;
    struct stream_idle idle;
    bool found;

    stream_idle_iter_init(&iter, group);
    while ((found = stream_idle_iter_next(&iter, &idle)) && !stream_has(stream, idle.id))
        stream_idle_iter_forget(&iter);
    stream_idle_iter_fini(&iter);
    *due_ms = found ? due_ms_of(idle, idle_ms) : INT64_MAX;
    return found && is_due(idle, now_ms, idle_ms);
}

struct claimed_ids {
    struct stream_id *items;
    uint64_t count, capacity;
};

/* They are not assigned before all are found: what is assigned becomes the last one of the order. */
static void reply_due(struct group_use *use, int64_t idle_ms, uint64_t most, struct claimed_ids *claimed)
{
    const int64_t now_ms = use->request->access->now_ms;
    struct stream_idle_iter iter;
    struct stream_idle idle;
    uint64_t field_count;

    stream_iter_init_find(&use->entries, use->stream);
    stream_idle_iter_init(&iter, use->group);
    while (claimed->count < most && stream_idle_iter_next(&iter, &idle) && is_due(idle, now_ms, idle_ms)) {
        if (!stream_iter_find(&use->entries, idle.id, &field_count)) {
            stream_idle_iter_forget(&iter);
            continue;
        }
        if (!reply_cap_takes(use->cap, &use->entries, field_count))
            break;
        reply_claimed_entry(use->request, &use->entries, idle.id, field_count,
                            MAX(now_ms - MAX(idle.delivery_ms, 0), 0),
                            stream_pending_find(use->group, idle.id)->delivery_count);
        *ARRAY_PUSH(claimed) = idle.id;
    }
    stream_idle_iter_fini(&iter);
    stream_iter_fini(&use->entries);
}

uint64_t stream_claim_deliver(struct group_use *use, int64_t idle_ms, uint64_t most)
{
    struct stream_consumer *consumer = group_use_consumer(use);
    struct claimed_ids claimed = {NULL, 0, 0};
    uint64_t count;

    reply_due(use, idle_ms, most, &claimed);
    count = claimed.count;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t before = stream_pending_find(use->group, claimed.items[i])->delivery_count;
        const struct stream_pending *record = stream_pending_assign(use->group, claimed.items[i], consumer,
                                                                    use->request->access->now_ms,
                                                                    stream_deliveries_after(before));

        effect_claim(use, claimed.items[i], record);
        operation_claim(use, claimed.items[i], record);
    }
    ARRAY_FINI(&claimed);
    return count;
}
