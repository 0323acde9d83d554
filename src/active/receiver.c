#include "active/receiver.h"

#include "active/beats.h"
#include "active/compare.h"
#include "active/frame.h"
#include "active/links.h"
#include "active/node.h"
#include "active/notice.h"
#include "active/place.h"
#include "active/room.h"
#include "active/snapshot.h"
#include "active/uuids.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/conn.h"
#include "replication/sync_file.h"
#include "server/command/key_list.h"
#include "server/core/deferred_log.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/loading.h"
#include "server/run/batch.h"
#include "store/stamp.h"

#include <stdio.h>
#include <string.h>

enum {
    PREFETCH_KEYS = 16,
    DIRECT_MOST_BYTES = 1 << 20, /* of a large word at a time */
    CORRECTING_TIMES = 4,        /* as long a batch may be as the values of the last one took */
    CORRECTING_MOST_US = 50 * 1000,
    TURN_MOST_US = 2000,     /* of operations that go before many others: then clients have a turn */
    ANSWER_US = 1000 * 1000, /* then others may ask */
    STATE_NAME_BYTES = 64
};

/* Owner: worker 0. */
struct receiver {
    struct worker *worker;
    struct conn *conn;
    struct receiver_options options;
    struct frame_reader *reader;
    struct frame frame; /* that is worked on */
    bool has_frame;
    uint32_t done;        /* entries of the frame that are done */
    uint32_t batch_end;   /* behind the last one of the batch; as `done`: there is none */
    struct batch batch;   /* what these need */
    struct key_list keys; /* theirs */
    struct place place;
    struct merge_vector counted; /* what the batch has placed, and the node has not counted yet */
    struct merge_vector deeds;   /* of this node, when it said hello */
    struct sync_file *state;     /* that comes; NULL: none */
    bool state_is_whole;
    bool state_is_forced; /* it lacks what only this node has, and cannot give */
    bool goes_far_back;   /* operations of the last batch did: as many as there are should go together */
    bool has_left;
    bool has_hello;   /* the other's, which is to be heard */
    bool is_answered; /* by the stream: there is no state to come */
    bool is_made_for; /* the other one makes a file of its state for this link */
    struct notice_hello hello;
    uint64_t asked_us;       /* when its hello was heard */
    size_t direct_bytes;     /* of the piece of a large word that comes */
    uint64_t name, origin;   /* the other's; 0: its hello was not heard */
    unsigned version;        /* likewise: that both know */
    uint64_t broken_promise; /* the origin of which that was told last; 0: none */
    struct beats beats;      /* what was heard of its beats */
    char error[RECEIVER_ERROR_BYTES];
};

#define COUNT(receiver, field, more) \
    atomic_fetch_add_explicit(&(receiver)->options.counts->field, (more), memory_order_relaxed)

static enum receiver_result PRINTF_LIKE(3, 4)
    fail(struct receiver *receiver, enum receiver_result result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(receiver->error, sizeof(receiver->error), format, arguments);
    va_end(arguments);
    return result;
}

/* ------------------------------------------------------------------------------------------------- begin and end -- */

static void send_frame(struct receiver *receiver, enum frame_kind kind, struct buffer *body)
{
    frame_write(&receiver->conn->output, kind, buffer_slice(body));
    conn_write_pending(receiver->conn);
    buffer_fini(body);
}

static void say_hello(struct receiver *receiver)
{
    struct notice_hello hello;
    struct buffer body = {0};

    node_hello(&hello);
    notice_write_hello(&body, &hello);
    merge_vector_copy(&receiver->deeds, &hello.hello.deeds);
    notice_hello_fini(&hello);
    send_frame(receiver, FRAME_HELLO, &body);
}

struct receiver *receiver_create(struct worker *worker, struct conn *conn, const struct receiver_options *options)
{
    struct receiver *receiver = mem_alloc_zero(sizeof(*receiver));

    worker_assert_zero(worker);
    receiver->worker = worker;
    receiver->conn = conn;
    receiver->options = *options;
    receiver->reader = frame_reader_create(FRAME_DATABASES_MOST);
    batch_init(&receiver->batch, worker, GATE_WISH_PLACE);
    say_hello(receiver);
    return receiver;
}

struct receiver *receiver_create_bare(struct worker *worker, const struct receiver_options *options)
{
    struct receiver *receiver = mem_alloc_zero(sizeof(*receiver));

    worker_assert_zero(worker);
    receiver->worker = worker;
    receiver->options = *options;
    batch_init(&receiver->batch, worker, GATE_WISH_PLACE);
    return receiver;
}

void receiver_leave(struct receiver *receiver)
{
    worker_assert_zero(receiver->worker);
    assert(!receiver->has_left);
    receiver->has_left = true;
    batch_drop(&receiver->batch);
    sync_file_release(&receiver->state);
    if (receiver->name != 0)
        node_link_down(receiver->options.link);
}

void receiver_destroy(struct receiver **handle)
{
    struct receiver *receiver = *handle;

    if (receiver == NULL)
        return;
    worker_assert_zero(receiver->worker);
    assert(receiver->has_left);
    *handle = NULL;
    batch_fini(&receiver->batch);
    place_fini(&receiver->place);
    key_list_fini(&receiver->keys);
    merge_vector_fini(&receiver->counted);
    merge_vector_fini(&receiver->deeds);
    notice_hello_fini(&receiver->hello);
    beats_fini(&receiver->beats);
    frame_reader_destroy(&receiver->reader);
    mem_free(receiver);
}

bool receiver_compares(const struct receiver *receiver)
{
    return receiver_is_up(receiver) && receiver->version >= FRAME_VERSION_COMPARES;
}

bool receiver_is_up(const struct receiver *receiver)
{
    return receiver->name != 0;
}

bool receiver_takes_state(const struct receiver *receiver)
{
    return receiver->state != NULL || receiver->is_made_for;
}

bool receiver_is_answered(const struct receiver *receiver)
{
    return receiver->is_answered;
}

bool receiver_asks(const struct receiver *receiver)
{
    return receiver_takes_state(receiver) || (receiver_is_up(receiver) && !receiver->is_answered &&
                                              clock_monotonic_us() - receiver->asked_us < ANSWER_US);
}

uint64_t receiver_name(const struct receiver *receiver)
{
    return receiver->name;
}

uint64_t receiver_origin(const struct receiver *receiver)
{
    return receiver->origin;
}

const char *receiver_error(const struct receiver *receiver)
{
    return receiver->error;
}

/* ---------------------------------------------------------------------------------------------------------- asks -- */

void receiver_want(struct receiver *receiver, uint64_t origin, uint64_t have)
{
    struct merge_vector wanted = {0};
    struct buffer body = {0};

    assert(receiver_is_up(receiver));
    merge_vector_set(&wanted, origin, have);
    notice_write_want(&body, have, &wanted);
    merge_vector_fini(&wanted);
    send_frame(receiver, FRAME_WANT, &body);
}

void receiver_stop(struct receiver *receiver, uint64_t origin)
{
    struct merge_vector set = {0};
    struct buffer body = {0};

    assert(receiver_is_up(receiver));
    merge_vector_set(&set, origin, 1);
    notice_write_set(&body, &set);
    merge_vector_fini(&set);
    send_frame(receiver, FRAME_STOP, &body);
}

/* Wants nothing. */
void receiver_say_alive(struct receiver *receiver)
{
    struct buffer body = {0};

    notice_write_want(&body, 0, &(struct merge_vector){0});
    send_frame(receiver, FRAME_WANT, &body);
}

void receiver_say(struct receiver *receiver, enum frame_kind kind, const struct buffer *body)
{
    assert(receiver_compares(receiver));
    frame_write(&receiver->conn->output, kind, buffer_slice(body));
    conn_write_pending(receiver->conn);
}

/* What the other has, by its hello or a beat. */
static void take_offers(const struct receiver *receiver, const struct merge_vector *offers)
{
    struct node_orders orders = {0};

    node_offered(receiver->options.link, offers, &orders);
    links_say(&orders);
    node_orders_fini(&orders);
}

/* --------------------------------------------------------------------------------------------------------- hello -- */

static enum receiver_result learn(struct receiver *receiver, const struct notice_hello *hello)
{
    char error[NODE_ERROR_BYTES];
    enum node_verdict verdict;

    if (notice_choose_version(hello) == 0)
        return fail(receiver, RECEIVER_REFUSED, "it speaks versions %u to %u of frames, this server %u to %u",
                    hello->version_least, hello->version_most, (unsigned)FRAME_VERSION_LEAST,
                    (unsigned)FRAME_VERSION_MOST);
    verdict = node_greet(hello, error);
    if (verdict == NODE_COPY) /* or its next start: that shows when the one before was not heard for a moment */
        return fail(receiver, RECEIVER_BROKEN, "%s", error);
    if (verdict != NODE_WELCOME)
        return fail(receiver, RECEIVER_REFUSED, "%s", error);
    receiver->version = notice_choose_version(hello);
    receiver->name = hello->hello.name;
    receiver->origin = hello->hello.origin;
    receiver->state_is_forced = !merge_vector_covers(&hello->hello.vector, &receiver->deeds);
    node_link_up(receiver->options.link, receiver->origin);
    receiver->asked_us = clock_monotonic_us();
    receiver_say_alive(receiver); /* it has waited for that */
    return RECEIVER_GOES_ON;
}

/* The other one waits for our word behind it. */
static enum receiver_result take_hello(struct receiver *receiver)
{
    char damage[NOTICE_ERROR_BYTES];
    enum receiver_result result;

    if (receiver->name != 0)
        return fail(receiver, RECEIVER_BROKEN, "a second hello");
    if (!receiver->has_hello && !notice_read_hello(receiver->frame.body, &receiver->hello, damage))
        return fail(receiver, RECEIVER_BROKEN, "%s", damage);
    receiver->has_hello = true;
    if (!receiver->options.may_ask(receiver->options.link))
        return RECEIVER_WAITS;
    result = learn(receiver, &receiver->hello);
    if (result == RECEIVER_GOES_ON)
        take_offers(receiver, &receiver->hello.hello.vector);
    notice_hello_fini(&receiver->hello);
    receiver->hello = (struct notice_hello){0};
    receiver->has_hello = false;
    return result;
}

/* ------------------------------------------------------------------------------------------------------- entries -- */

/* Which entries are the next batch. One that needs the gate is a batch of its own. */
static void gather(struct receiver *receiver)
{
    const struct frame *frame = &receiver->frame;
    const uint32_t most = receiver->goes_far_back ? RECEIVER_ENTRIES_GATHERED : RECEIVER_ENTRIES;

    batch_clear(&receiver->batch);
    receiver->keys.count = 0;
    while (receiver->batch_end < frame->entry_count && receiver->batch_end - receiver->done < most &&
           receiver->batch.stripes.count < BATCH_STRIPES_MOST) {
        const uint32_t first = receiver->keys.count;

        if (!place_keys(&frame->entries[receiver->batch_end], &receiver->keys)) {
            if (receiver->batch_end == receiver->done) {
                batch_need_gate(&receiver->batch);
                receiver->batch_end++;
            }
            receiver->keys.count = first;
            return;
        }
        for (uint32_t i = first; i < receiver->keys.count; i++)
            batch_add_key(&receiver->batch, &receiver->keys.items[i]);
        receiver->batch_end++;
    }
}

/* counted: the last one of its origin in this batch; NULL: there was none. */
static enum merge_acceptance judge(const struct frame_entry *entry, const struct merge_vector_item *counted)
{
    if (UNLIKELY(counted == NULL))
        return node_judge(entry->origin, entry->prev, entry->stamp);
    if (entry->stamp <= counted->stamp)
        return MERGE_OLD;
    return entry->prev > counted->stamp ? MERGE_GAP : MERGE_ACCEPTED;
}

static void prefetch(const struct receiver *receiver, const struct frame_entry *entry, uint32_t first)
{
    const uint32_t left = receiver->keys.count - MIN(first, receiver->keys.count); /* operations may be without keys */

    if (entry->op_count != 0 && entry->ops[0].db == 0 && left != 0)
        store_prefetch(receiver->worker->server->store, &receiver->keys.items[first],
                       MIN(left, (uint32_t)PREFETCH_KEYS));
}

static enum receiver_result fail_gap(struct receiver *receiver, const struct frame_entry *entry)
{
    char uuid[UUID_TEXT_BYTES + 1];

    COUNT(receiver, gaps, 1);
    uuid_format(&entry->uuid, uuid);
    return fail(receiver, RECEIVER_ANEW, "something of the start %s is missing before what it sends", uuid);
}

/* Nothing tells what it would change by now, as all may have settled what is behind it. Told once a link and origin. */
static void note_broken_promise(struct receiver *receiver, const struct frame_entry *entry)
{
    char uuid[UUID_TEXT_BYTES + 1];

    if (receiver->broken_promise == entry->origin)
        return;
    receiver->broken_promise = entry->origin;
    uuid_format(&entry->uuid, uuid);
    deferred_log(receiver->worker, LOG_LEVEL_WARNING,
                 "Link to the peer %s: an operation of the start %s is dropped: a beat has promised that nothing with "
                 "such a stamp follows. A node of the group is wrong",
                 receiver->options.peer, uuid);
}

/* NULL: there are none, as of an entry that needs the gate. */
static const struct key *keys_from(const struct receiver *receiver, uint32_t first, uint32_t end)
{
    return first < end && end <= receiver->keys.count ? &receiver->keys.items[first] : NULL;
}

/* What waits for the end of the batch has still to go back: so it ends when that is worth it. */
static bool has_taken_long(const struct receiver *receiver, uint64_t begin_us)
{
    uint64_t correcting_us;

    if (receiver->place.waiting.count != 0)
        return place_is_full(&receiver->place);
    /* Values that are to be corrected cost as much however long the batch is: of a long list, bytes of a file, too. */
    correcting_us = receiver->place.corrections.count != 0 ? CORRECTING_TIMES * receiver->place.correcting_us : 0;
    return clock_monotonic_us() - begin_us > TURN_MOST_US + MIN(correcting_us, (uint64_t)CORRECTING_MOST_US);
}

/* Returns RECEIVER_WAITS if it has taken long: the others are a batch of their own. */
static enum receiver_result place_entries(struct receiver *receiver)
{
    const uint64_t placed = receiver->place.counts.placed, begin_us = clock_monotonic_us();
    enum receiver_result result = RECEIVER_GOES_ON;
    uint32_t key = 0, prefetched = 0, taken = 0, old = 0;
    struct merge_vector_item *counted = NULL;

    for (uint32_t i = receiver->done; i < receiver->batch_end && result == RECEIVER_GOES_ON; i++) {
        const struct frame_entry *entry = &receiver->frame.entries[i];
        const uint32_t first = key;

        if (UNLIKELY(counted == NULL || counted->id != entry->origin))
            counted = merge_vector_find(&receiver->counted, entry->origin);
        if (key >= prefetched) {
            prefetch(receiver, entry, key);
            prefetched = key + PREFETCH_KEYS;
        }
        key += place_key_count(entry);
        switch (judge(entry, counted)) {
        case MERGE_ACCEPTED:
            if (UNLIKELY(entry->mvcc != 0))
                uuids_keep(&entry->uuid);
            place_entry(&receiver->place, entry, keys_from(receiver, first, key));
            if (LIKELY(counted != NULL))
                counted->stamp = entry->stamp;
            else
                merge_vector_set(&receiver->counted, entry->origin, entry->stamp);
            taken++;
            break;
        case MERGE_OLD:
            old++;
            if (UNLIKELY(counted == NULL && node_is_below_promise(entry->origin, entry->stamp)))
                note_broken_promise(receiver, entry);
            break;
        case MERGE_GAP:
            result = fail_gap(receiver, entry);
            break;
        }
        if (UNLIKELY(receiver->place.counts.placed != placed || receiver->place.waiting.count != 0) &&
            result == RECEIVER_GOES_ON && has_taken_long(receiver, begin_us)) {
            receiver->batch_end = i + 1;
            result = RECEIVER_WAITS;
        }
    }
    COUNT(receiver, entries, taken);
    COUNT(receiver, old, old);
    return result;
}

/* What the batch needs is held. Who sees its entries in the vector finds them in the journal; who sees its keys finds
 * the clock above them. */
static enum receiver_result apply(struct receiver *receiver)
{
    enum receiver_result result;

    worker_assert_inside(receiver->worker);
    place_begin(&receiver->place, receiver->worker, receiver->batch.state == BATCH_ALONE);
    result = place_entries(receiver);
    receiver->goes_far_back = place_goes_far_back(&receiver->place);
    place_end(&receiver->place);
    for (uint32_t i = 0; i < receiver->counted.count; i++)
        node_count(receiver->counted.items[i].id, receiver->counted.items[i].stamp);
    receiver->counted.count = 0;
    receiver->done = receiver->batch_end;
    COUNT(receiver, batches, 1);
    return result;
}

/* Data that are being loaded are of no moment: what comes waits for their end. */
static bool is_loading(void)
{
    return UNLIKELY(loading_runs() || loading_replaces());
}

static bool take_batch(struct receiver *receiver)
{
    if (!is_loading() && room_is_there(receiver->worker) && batch_take(&receiver->batch, false) != BATCH_WAITS) {
        if (!is_loading())
            return true;
        batch_release(&receiver->batch);
    }
    if (is_loading())
        batch_drop(&receiver->batch);
    COUNT(receiver, waits, 1);
    return false;
}

static enum receiver_result take_entries(struct receiver *receiver)
{
    enum receiver_result result = RECEIVER_GOES_ON;

    while (result == RECEIVER_GOES_ON && receiver->done < receiver->frame.entry_count) {
        if (receiver->batch_end == receiver->done)
            gather(receiver);
        if (!take_batch(receiver))
            return RECEIVER_WAITS;
        result = apply(receiver);
        batch_release(&receiver->batch);
        node_look_ahead();
        if (receiver->worker->has_deferred)
            worker_run_deferred(receiver->worker);
    }
    if (result == RECEIVER_WAITS && receiver->done == receiver->frame.entry_count)
        return RECEIVER_GOES_ON;
    if (result == RECEIVER_WAITS)
        worker_wake(receiver->worker);
    return result;
}

/* --------------------------------------------------------------------------------------------------------- beats -- */

static bool read_beat(struct receiver *receiver, struct merge_beat *beat, char damage[NOTICE_ERROR_BYTES])
{
    return receiver->version >= FRAME_VERSION_CHANGES ? beats_read(&receiver->beats, receiver->frame.body, beat, damage)
                                                      : notice_read_beat(receiver->frame.body, beat, damage);
}

static enum receiver_result take_beat(struct receiver *receiver)
{
    char damage[NOTICE_ERROR_BYTES];
    struct merge_beat beat;
    bool is_believed;

    if (!read_beat(receiver, &beat, damage))
        return fail(receiver, RECEIVER_BROKEN, "%s", damage);
    is_believed = node_hear(&beat);
    if (is_believed) {
        atomic_store_explicit(&receiver->options.counts->heard_ms, (int64_t)(beat.clock >> STAMP_COUNTER_BITS),
                              memory_order_relaxed);
        take_offers(receiver, &beat.offers);
    }
    merge_beat_fini(&beat);
    if (is_believed)
        return RECEIVER_GOES_ON;
    COUNT(receiver, gaps, 1);
    return fail(receiver, RECEIVER_ANEW, "a beat speaks of operations that are missing here");
}

static enum receiver_result take_stopped(struct receiver *receiver)
{
    struct node_orders orders = {0};
    char damage[NOTICE_ERROR_BYTES];
    struct merge_vector set;

    if (!notice_read_set(receiver->frame.body, &set, damage))
        return fail(receiver, RECEIVER_BROKEN, "%s", damage);
    node_stopped(receiver->options.link, &set, &orders);
    links_say(&orders);
    node_orders_fini(&orders);
    merge_vector_fini(&set);
    return RECEIVER_GOES_ON;
}

static enum receiver_result take_digests(struct receiver *receiver)
{
    char damage[COMPARE_ERROR_BYTES];

    if (!compare_heard(receiver->name, receiver->frame.body, damage))
        return fail(receiver, RECEIVER_BROKEN, "%s", damage);
    return RECEIVER_GOES_ON;
}

/* ------------------------------------------------------------------------------------------------------- a state -- */

static void on_loaded(enum snapshot_end result, const char *error, void *context)
{
    (void)context;
    if (result != SNAPSHOT_LOADED) {
        log_warning("The state of another node was not taken over: %s", error);
        return;
    }
    log_notice("The state of another node was taken over");
    links_ask_anew();
}

static void name_state(const struct receiver *receiver, char name[STATE_NAME_BYTES])
{
    (void)snprintf(name, STATE_NAME_BYTES, "temp-state-%u.rdb", receiver->options.link);
}

/* This connection is of no use then: what follows is of the moment of the state. All links ask anew when it is loaded;
 * if it is refused, this one does so after a while. */
static enum receiver_result load_state(struct receiver *receiver)
{
    char name[STATE_NAME_BYTES];

    switch (sync_file_state(receiver->state)) {
    case SYNC_FILE_WRITES:
        return RECEIVER_WAITS;
    case SYNC_FILE_FAILED:
        return fail(receiver, RECEIVER_REFUSED, "%s", sync_file_error(receiver->state));
    case SYNC_FILE_READY:
        break;
    }
    name_state(receiver, name);
    if (!snapshot_load(name, receiver->state_is_forced, on_loaded, NULL))
        return RECEIVER_WAITS; /* something else is being loaded */
    return fail(receiver, RECEIVER_REFUSED, "its state is here, and is loaded");
}

static enum receiver_result go_on_with_state(struct receiver *receiver)
{
    if (receiver->state_is_whole)
        return load_state(receiver);
    if (sync_file_state(receiver->state) == SYNC_FILE_FAILED)
        return fail(receiver, RECEIVER_REFUSED, "%s", sync_file_error(receiver->state));
    return sync_file_is_full(receiver->state) ? RECEIVER_WAITS : RECEIVER_GOES_ON;
}

/* What it says is that it makes one (note_answer). */
static enum receiver_result take_makes(struct receiver *receiver)
{
    if (receiver->frame.body.size != 0)
        return fail(receiver, RECEIVER_BROKEN, "a frame with a body, which has none");
    return RECEIVER_GOES_ON;
}

static enum receiver_result take_state(struct receiver *receiver)
{
    const struct slice bytes = receiver->frame.body;
    char name[STATE_NAME_BYTES];

    if (receiver->state == NULL) {
        name_state(receiver, name);
        receiver->state = sync_file_create(name, receiver->options.on_change);
        log_notice("Link to the peer %s: it sends its state", receiver->options.peer);
    }
    if (bytes.size != 0) {
        sync_file_add(receiver->state, bytes);
        COUNT(receiver, state_bytes, bytes.size);
    } else {
        sync_file_finish_in_place(receiver->state);
        receiver->state_is_whole = true;
    }
    return go_on_with_state(receiver);
}

/* -------------------------------------------------------------------------------------------------------- frames -- */

static void note_answer(struct receiver *receiver)
{
    const enum frame_kind kind = receiver->frame.kind;

    if (kind == FRAME_MAKES || kind == FRAME_STATE)
        node_wait_anew();
    if (kind == FRAME_MAKES && !receiver->is_made_for)
        log_notice("Link to the peer %s: it makes a file of its state", receiver->options.peer);
    receiver->is_made_for = kind == FRAME_MAKES || (receiver->is_made_for && kind == FRAME_STATE);
    if (receiver->is_answered || kind == FRAME_HELLO || kind == FRAME_STATE || kind == FRAME_MAKES)
        return;
    receiver->is_answered = true;
    receiver->options.on_change();
}

static enum receiver_result take_frame(struct receiver *receiver)
{
    if (receiver->name == 0 && receiver->reader != NULL && receiver->frame.kind != FRAME_HELLO)
        return fail(receiver, RECEIVER_BROKEN, "it says something else before its hello");
    note_answer(receiver);
    switch (receiver->frame.kind) {
    case FRAME_HELLO:
        return take_hello(receiver);
    case FRAME_ENTRIES:
        return take_entries(receiver);
    case FRAME_BEAT:
        return take_beat(receiver);
    case FRAME_STOPPED:
        return take_stopped(receiver);
    case FRAME_STATE:
        return take_state(receiver);
    case FRAME_DIGESTS:
        return take_digests(receiver);
    case FRAME_MAKES:
        return take_makes(receiver);
    default:
        return fail(receiver, RECEIVER_BROKEN, "a frame that only a receiver says");
    }
}

/* What a closed origin's old connection still holds is dropped: others have it, too, or nobody shall. */
static bool is_closed(const struct receiver *receiver)
{
    return receiver->origin != 0 && node_is_closed(receiver->origin);
}

/* Works on the frame that was read last. It may have to be kept: its bytes are the caller's. */
static enum receiver_result work(struct receiver *receiver)
{
    const enum receiver_result result = take_frame(receiver);

    if (result == RECEIVER_WAITS && receiver->frame.kind == FRAME_ENTRIES) {
        if (receiver->reader != NULL)
            frame_reader_keep(receiver->reader);
        return result;
    }
    receiver->has_frame = result == RECEIVER_WAITS && receiver->has_hello;
    if (result == RECEIVER_GOES_ON && receiver->frame.kind != FRAME_ENTRIES && is_closed(receiver))
        return fail(receiver, RECEIVER_ANEW, "this start of the node is over");
    return result;
}

/* Of a large word the next bytes go where they stay. */
static void await_large(struct receiver *receiver)
{
    char *room;
    const size_t most = frame_reader_large_room(receiver->reader, &room);

    receiver->direct_bytes = MIN(most, (size_t)DIRECT_MOST_BYTES);
    if (receiver->direct_bytes != 0)
        conn_receive_direct(receiver->conn, room, receiver->direct_bytes, 0);
}

enum receiver_result receiver_take(struct receiver *receiver, const char *data, size_t size, size_t *used)
{
    enum receiver_result result = RECEIVER_GOES_ON;

    worker_assert_outside(receiver->worker);
    assert(!receiver->has_left && !receiver->has_frame);
    *used = 0;
    while (result == RECEIVER_GOES_ON && *used < size) {
        size_t step;

        switch (frame_read(receiver->reader, data + *used, size - *used, &step, &receiver->frame)) {
        case FRAME_COMPLETE:
            *used += step;
            receiver->has_frame = true;
            receiver->done = receiver->batch_end = 0;
            result = work(receiver);
            break;
        case FRAME_MORE:
            *used += step;
            if (*used == size)
                await_large(receiver);
            return RECEIVER_GOES_ON;
        case FRAME_ERROR:
            return fail(receiver, RECEIVER_BROKEN, "%s", frame_reader_error(receiver->reader));
        }
    }
    return result;
}

enum receiver_result receiver_place(struct receiver *receiver, const struct frame_entry *entries, uint32_t count)
{
    worker_assert_outside(receiver->worker);
    assert(!receiver->has_left && !receiver->has_frame && receiver->reader == NULL);
    receiver->frame = (struct frame){.kind = FRAME_ENTRIES, .entries = entries, .entry_count = count};
    receiver->has_frame = true;
    receiver->done = receiver->batch_end = 0;
    return work(receiver);
}

bool receiver_take_direct(struct receiver *receiver)
{
    char *room;
    size_t most;

    frame_reader_large_received(receiver->reader, receiver->direct_bytes);
    most = frame_reader_large_room(receiver->reader, &room);
    receiver->direct_bytes = MIN(most, (size_t)DIRECT_MOST_BYTES);
    if (receiver->direct_bytes != 0)
        conn_receive_direct_more(receiver->conn, room, receiver->direct_bytes);
    return receiver->direct_bytes != 0;
}

enum receiver_result receiver_go_on(struct receiver *receiver)
{
    size_t used;

    worker_assert_outside(receiver->worker);
    assert(!receiver->has_left);
    if (receiver->has_frame)
        return work(receiver);
    if (receiver->state != NULL)
        return go_on_with_state(receiver);
    if (receiver->reader == NULL)
        return RECEIVER_GOES_ON;
    switch (frame_read(receiver->reader, "", 0, &used, &receiver->frame)) {
    case FRAME_COMPLETE: /* its last large word has come directly */
        receiver->has_frame = true;
        receiver->done = receiver->batch_end = 0;
        return work(receiver);
    case FRAME_ERROR:
        return fail(receiver, RECEIVER_BROKEN, "%s", frame_reader_error(receiver->reader));
    case FRAME_MORE:
        break;
    }
    return RECEIVER_GOES_ON;
}
