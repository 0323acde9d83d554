#include "active/sender.h"

#include "active/beats.h"
#include "active/compare.h"
#include "active/frame.h"
#include "active/gather.h"
#include "active/history.h"
#include "active/node.h"
#include "active/notice.h"
#include "active/options.h"
#include "active/snapshot.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "replication/followers.h"
#include "replication/options.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SAID_BYTES_MOST = 16 << 20,  /* a frame of a receiver is not longer */
    RECORDS_A_TURN = 20000,      /* looked at before others are served */
    ORIGINS_WANTED_MOST = 16384, /* starts: of a node that starts again and again there are many */
    HOLD_BYTES_LEAST = 2 << 10,  /* less than that goes at once; more waits for what the next turn brings, */
    HOLD_MOST_US = 1000,         /* at most for so long */
    STATE_BYTES = 64 << 10,      /* of the file in one frame */
    SECOND_US = 1000 * 1000,
    WAITS_MOST = 4, /* then it comes again with what it has by then */
    READER_FLAGS = JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS,
    READER_SKIPS = JOURNAL_SELECT | JOURNAL_BEGINS | JOURNAL_NOT_FOR_PEERS
};

/* Fields without a comment are its worker's. */
struct sender {
    struct follower follower;
    struct list_node node; /* in `all`, guarded by its lock */
    struct client *client; /* const */
    struct worker *worker; /* const */
    uint64_t client_id;    /* const */
    char address[64];      /* const */
    uint64_t said_origin;  /* const: with REPLCONF one-order */
    uint64_t generation;   /* const: that of `all` when it began */

    char title[128];   /* for the log: its name when it is known, and its address */
    _Atomic int state; /* atomic: relaxed; enum sender_state */
    _Atomic uint64_t peer, entries, bytes, offset, moved_us; /* atomic: relaxed; for sender_facts */
    _Atomic unsigned origins;                                /* atomic: relaxed; likewise */

    struct frame_reader *input;
    struct frame_writer *output;
    struct gather *gather;
    uint64_t own_origin;        /* of this node, and those of its former starts: */
    struct merge_vector former; /* a set */
    /* The origins of this link, each with the stamp above which its entries are to be sent. */
    struct merge_vector sent;
    bool has_reader, is_idle;
    uint64_t held_us;   /* since when a frame is held that is not full; 0: there is none */
    uint64_t held_turn; /* the loop's turn in which it got longer last */
    bool seeks;         /* the reader has to go back, or is not open yet */
    struct journal_reader reader;
    struct node_beat *beat;     /* the one to be sent next; NULL: the newest one was sent */
    uint64_t beats_seen;        /* beat_count when it was taken */
    struct beats beats;         /* what was sent of them */
    unsigned version;           /* of frames, that both know; 0: it said no hello yet */
    struct notice_hello hello;  /* what it said, until it streams; name 0: nothing yet */
    struct snapshot_gift *gift; /* SENDER_GIVES; NULL: it has not begun */
    bool has_said_makes;        /* since its file is being made */
    unsigned waits;             /* SENDER_GREETS: how often it had to give first */
    uint64_t given_bytes;       /* of its file */
    uint64_t last_out;          /* bytes of the connection when they were looked at last */
};

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct list links GUARDED_BY(lock);
    _Atomic uint64_t generation; /* atomic: relaxed; changed with the gate owned, read inside of it */
} all = {.lock = {.rank = LOCK_REGISTRY}};

static _Atomic uint64_t beat_count; /* atomic: release by worker 0, behind the beat */

const char *sender_state_name(enum sender_state state)
{
    static const char *const names[] = {"greets", "gives its state", "streams"};

    return names[state];
}

/* --------------------------------------------------------------------------------------------------- the end -- */

static void set_state(struct sender *link, enum sender_state state)
{
    atomic_store_explicit(&link->state, (int)state, memory_order_relaxed);
}

static enum sender_state state_of(const struct sender *link)
{
    return (enum sender_state)atomic_load_explicit(&link->state, memory_order_relaxed);
}

/* Something is wrong with the other side. */
static void fail(struct sender *link, const char *what)
{
    if (conn_is_closing(&link->client->conn))
        return;
    log_warning("Closing the link to the active node %s: %s", link->title, what);
    conn_close(&link->client->conn);
}

/* It has to come again. */
static void end(struct sender *link, const char *why)
{
    if (conn_is_closing(&link->client->conn))
        return;
    log_notice("The link to the active node %s ends: %s", link->title, why);
    conn_close_after_flush(&link->client->conn);
}

static void close_reader(struct sender *link)
{
    if (link->has_reader)
        journal_reader_close(&link->reader);
    link->has_reader = false;
    gather_clear(link->gather);
}

/* -------------------------------------------------------------------------------------------------- frames out -- */

static void write_frame(struct sender *link, enum frame_kind kind, struct slice body)
{
    struct output *out = &link->client->conn.output;
    const size_t before = output_size(out);

    link->held_us = 0;
    frame_writer_flush(link->output, out);
    frame_write(out, kind, body);
    atomic_fetch_add_explicit(&link->bytes, output_size(out) - before, memory_order_relaxed);
    conn_write_pending(&link->client->conn);
}

static void flush_entries(struct sender *link)
{
    struct output *out = &link->client->conn.output;
    const size_t before = output_size(out);

    if (frame_writer_bytes(link->output) == 0)
        return;
    link->held_us = 0;
    frame_writer_flush(link->output, out);
    atomic_fetch_add_explicit(&link->bytes, output_size(out) - before, memory_order_relaxed);
    conn_write_pending(&link->client->conn);
}

/* Under load a frame is sent when it is full, or when a turn has added nothing. So one send, and one batch over there,
 * has the commands of several turns. */
static bool holds_entries(struct sender *link, bool has_grown)
{
    const uint64_t turn = loop_stats(link->worker->loop)->turns, bytes = frame_writer_bytes(link->output);

    if (bytes < HOLD_BYTES_LEAST || bytes >= FRAME_FULL_BYTES)
        return false;
    if (link->held_us == 0)
        link->held_us = clock_monotonic_us();
    else if (clock_monotonic_us() - link->held_us > HOLD_MOST_US)
        return false;
    if (has_grown)
        link->held_turn = turn;
    return turn < link->held_turn + 2;
}

/* With multi-master-no-forward a node gives what ran on it, now or before a restart. What only some have of an origin
 * that has ended nobody else can give: its node may have lost its disk, or the end of its file. */
static bool may_send(const struct sender *link, uint64_t origin)
{
    return origin == link->own_origin || !OPTION_IS(option_multi_master_no_forward) ||
           merge_vector_has(&link->former, origin) || node_is_closed(origin);
}

static void write_set(struct sender *link, enum frame_kind kind, const struct merge_vector *set)
{
    struct buffer body = {0};

    notice_write_set(&body, set);
    write_frame(link, kind, buffer_slice(&body));
    buffer_fini(&body);
}

/* Of a comparison; the body may be empty. */
static void send_answer(struct sender *link, struct buffer *body)
{
    if (body->size != 0 && !conn_is_closing(&link->client->conn))
        write_frame(link, FRAME_DIGESTS, buffer_slice(body));
    buffer_fini(body);
}

/* What could be asked for here. */
static void make_offers(const struct sender *link, const struct merge_vector *all_offers, struct merge_vector *offers)
{
    for (uint32_t i = 0; i < all_offers->count; i++) {
        if (may_send(link, all_offers->items[i].id))
            *ARRAY_PUSH(offers) = all_offers->items[i];
    }
}

static void write_beat(struct sender *link, const struct node_beat *beat)
{
    struct merge_vector offers = {0};
    struct merge_beat part, said;
    struct buffer body = {0};

    node_beat_for(beat, &link->sent, &part);
    said = part;
    make_offers(link, &part.offers, &offers);
    said.offers = offers;
    if (link->version >= FRAME_VERSION_CHANGES)
        beats_write(&link->beats, &body, &said);
    else
        notice_write_beat(&body, &said);
    write_frame(link, FRAME_BEAT, buffer_slice(&body));
    buffer_fini(&body);
    merge_vector_fini(&offers);
    node_beat_end(&part);
}

static void release_beat(struct node_beat **beat)
{
    if (*beat != NULL)
        node_beat_release(*beat);
    *beat = NULL;
}

/* The newest one that was not sent yet. One that waits is not replaced: a link that is behind would never send any. */
static void take_beat(struct sender *link)
{
    const uint64_t newest = atomic_load_explicit(&beat_count, memory_order_acquire);

    if (link->beat != NULL || link->beats_seen == newest)
        return;
    link->beats_seen = newest;
    link->beat = node_beat_acquire();
}

static void send_beat_if_due(struct sender *link)
{
    take_beat(link);
    if (link->beat == NULL || (link->has_reader && !journal_reader_is_past(&link->reader, link->beat->position)))
        return;
    write_beat(link, link->beat);
    release_beat(&link->beat);
}

/* ----------------------------------------------------------------------------------------------------- streaming -- */

static void on_reader_change(struct journal_reader *reader)
{
    worker_wake(container_of(reader, struct sender, reader)->worker);
}

/* Where the origin that stands farthest back goes on. */
static void seek(struct sender *link)
{
    close_reader(link);
    link->seeks = false;
    if (link->sent.count == 0)
        return;
    if (!active_history_open(&link->reader, &link->sent, READER_FLAGS, on_reader_change)) {
        end(link, "it wants what is not in the history any more");
        return;
    }
    link->has_reader = true;
    journal_reader_set(&link->reader, READER_FLAGS, READER_SKIPS);
}

/* The origin of this link of which it is to be sent; NULL: it is not. `last`: that of the record before. */
static struct merge_vector_item *wanted_of(const struct sender *link, const struct journal_stamp *stamp,
                                           struct merge_vector_item *last)
{
    struct merge_vector_item *sent = last;

    if (UNLIKELY(sent == NULL || sent->id != stamp->origin))
        sent = merge_vector_find(&link->sent, stamp->origin);
    return sent != NULL && stamp->stamp > sent->stamp ? sent : NULL;
}

/* Reads records; returns false if there are no more now. */
static bool read_records(struct sender *link)
{
    const size_t size = conn_output_size(&link->client->conn);
    struct merge_vector_item *sent = NULL;
    struct journal_view view;

    for (unsigned i = 0; i < RECORDS_A_TURN && size + frame_writer_bytes(link->output) < FOLLOWER_AHEAD_BYTES; i++) {
        if (!journal_reader_next(&link->reader, &view))
            return false;
        if (view.stamp == NULL || (sent = wanted_of(link, view.stamp, sent)) == NULL)
            continue;
        if (!gather_write(link->gather, &view, link->output))
            continue;
        sent->stamp = view.stamp->stamp;
        counter_add(&link->entries, 1);
        if (frame_writer_bytes(link->output) >= FRAME_FULL_BYTES)
            break;
    }
    return true;
}

/* True if it has read everything. */
static bool pump(struct sender *link)
{
    struct conn *conn = &link->client->conn;
    bool has_more = link->has_reader;

    while (has_more && conn_output_size(conn) < FOLLOWER_AHEAD_BYTES) {
        const size_t before = frame_writer_bytes(link->output);

        has_more = read_records(link);
        if (frame_writer_bytes(link->output) == 0 && has_more) { /* much that is not for this link: others first */
            worker_wake(link->worker);
            break;
        }
        if (!has_more && holds_entries(link, frame_writer_bytes(link->output) != before)) {
            worker_wake(link->worker);
            break;
        }
        flush_entries(link);
        send_beat_if_due(link);
    }
    if (link->has_reader && link->reader.is_lost) {
        end(link, "it is too far behind, the history was not kept for it");
        return false;
    }
    if (!has_more && conn_output_size(conn) < FOLLOWER_AHEAD_BYTES)
        send_beat_if_due(link);
    if (link->has_reader)
        atomic_store_explicit(&link->offset, journal_reader_offset(&link->reader), memory_order_relaxed);
    if (conn_output_size(conn) != 0)
        conn_want_drained(conn);
    link->is_idle = !has_more && (!link->has_reader || link->reader.fetch == NULL);
    return link->is_idle;
}

static struct sender *of_follower(struct follower *follower)
{
    return container_of(follower, struct sender, follower);
}

static bool serve(struct follower *follower)
{
    struct sender *link = of_follower(follower);

    if (link->generation != atomic_load_explicit(&all.generation, memory_order_relaxed))
        end(link, "what this node has came otherwise");
    if (state_of(link) != SENDER_STREAMS)
        return state_of(link) == SENDER_GIVES && link->gift == NULL; /* it looks again with the next beat */
    if (link->seeks)
        seek(link);
    return !conn_is_closing(&link->client->conn) && pump(link);
}

static bool is_behind(struct follower *follower, uint64_t end_offset)
{
    struct sender *link = of_follower(follower);

    return link->has_reader && !link->is_idle && journal_reader_offset(&link->reader) < end_offset;
}

/* ----------------------------------------------------------------------------------------------------- the state -- */

static void give_end(struct sender *link)
{
    snapshot_end(&link->gift);
    write_frame(link, FRAME_STATE, SLICE_EMPTY);
    log_notice("The active node %s has the state of this node: %llu bytes", link->title,
               (unsigned long long)link->given_bytes);
    set_state(link, SENDER_STREAMS);
}

static void give_part(struct sender *link, int fd, uint64_t size)
{
    struct buffer bytes = {0};
    char *room = buffer_reserve(&bytes, STATE_BYTES);
    const size_t part = (size_t)MIN((uint64_t)STATE_BYTES, size - link->given_bytes);
    const ssize_t count = pread(fd, room, part, (off_t)link->given_bytes);

    if (count > 0) {
        write_frame(link, FRAME_STATE, slice_make(room, (size_t)count));
        link->given_bytes += (uint64_t)count;
    } else {
        fail(link, count == 0 ? "the file with the state ended early" : strerror(errno));
    }
    buffer_fini(&bytes);
}

/* It waits for that alone then, and asks nobody else. */
static void say_makes(struct sender *link)
{
    if (link->version >= FRAME_VERSION_MAKES)
        write_frame(link, FRAME_MAKES, SLICE_EMPTY);
    else
        write_set(link, FRAME_STOPPED, &(struct merge_vector){0});
    link->has_said_makes = true;
}

/* False: not yet. A newcomer has to be a member on this node's disk before it gets the state. */
static bool begin_gift(struct sender *link)
{
    if (link->gift == NULL && (link->hello.hello.ready || node_sponsor(&link->hello.hello)))
        link->gift = snapshot_begin(&link->hello.hello, link->version >= FRAME_VERSION_PARTS, link->worker);
    return link->gift != NULL;
}

static void give(struct sender *link)
{
    struct conn *conn = &link->client->conn;
    uint64_t size;
    int fd;

    if (!begin_gift(link))
        return;
    switch (snapshot_state(link->gift)) {
    case SNAPSHOT_WAITS:
        return;
    case SNAPSHOT_MAKES:
        if (!link->has_said_makes)
            say_makes(link);
        return;
    case SNAPSHOT_FAILED:
        end(link, "its state cannot be given");
        return;
    case SNAPSHOT_READY:
        break;
    }
    fd = snapshot_fd(link->gift, &size);
    while (link->given_bytes < size && conn_output_size(conn) < FOLLOWER_AHEAD_BYTES && !conn_is_closing(conn))
        give_part(link, fd, size);
    if (conn_is_closing(conn))
        return;
    if (link->given_bytes == size)
        give_end(link);
    conn_want_drained(conn);
}

/* Outside of the gate, as it reads a file. */
static void look(struct follower *follower, uint64_t end_offset)
{
    struct sender *link = of_follower(follower);
    struct buffer answer;

    (void)end_offset;
    if (compare_answer(link->client_id, &answer)) {
        send_answer(link, &answer);
        conn_want_drained(&link->client->conn);
    }
    if (state_of(link) == SENDER_GIVES && !conn_is_closing(&link->client->conn) && !link->worker->reentrant)
        give(link);
}

static const struct follower_kind sender_kind = {serve, is_behind, look};

/* --------------------------------------------------------------------------------------------------- frames in -- */

static void note_origins(struct sender *link)
{
    atomic_store_explicit(&link->origins, link->sent.count, memory_order_relaxed);
}

/* These origins are wanted, each behind the stamp in `have`. */
static void want(struct sender *link, const struct merge_vector *wanted, const struct merge_vector *have)
{
    struct merge_vector stopped = {0};

    for (uint32_t i = 0; i < wanted->count && !conn_is_closing(&link->client->conn); i++) {
        const uint64_t origin = wanted->items[i].id;

        if (!may_send(link, origin) || origin == link->said_origin)
            merge_vector_set(&stopped, origin, 1);
        else if (merge_vector_has(&link->sent, origin))
            fail(link, "it wants an origin that it gets");
        else if (link->sent.count == ORIGINS_WANTED_MOST)
            fail(link, "it wants too many origins");
        else
            merge_vector_set(&link->sent, origin, merge_vector_get(have, origin));
    }
    link->seeks = true;
    note_origins(link);
    if (stopped.count != 0)
        write_set(link, FRAME_STOPPED, &stopped);
    merge_vector_fini(&stopped);
    worker_wake(link->worker);
}

static void take_stop(struct sender *link, struct slice body)
{
    char error[NOTICE_ERROR_BYTES];
    struct merge_vector set;

    if (!notice_read_set(body, &set, error)) {
        fail(link, error);
        return;
    }
    for (uint32_t i = 0; i < MIN(set.count, (uint32_t)FRAME_ORIGINS_MOST); i++)
        merge_vector_remove(&link->sent, set.items[i].id);
    note_origins(link);
    write_set(link, FRAME_STOPPED, &set);
    merge_vector_fini(&set);
}

static void take_comparison(struct sender *link, const struct frame *frame)
{
    char error[COMPARE_ERROR_BYTES];
    struct buffer answer = {0};

    if (frame->kind == FRAME_COMPARE && !compare_asked(link->client_id, link->worker, frame->body, &answer, error))
        fail(link, error);
    if (frame->kind == FRAME_REPAIR && !compare_told_repair(frame->body, error))
        fail(link, error);
    send_answer(link, &answer);
}

/* Says hello, too. */
static void answer(struct sender *link)
{
    struct notice_hello own = {0};
    struct buffer body = {0};

    node_hello(&own);
    link->own_origin = own.hello.origin;
    merge_vector_copy(&link->former, &own.former);
    notice_write_hello(&body, &own);
    write_frame(link, FRAME_HELLO, buffer_slice(&body));
    buffer_fini(&body);
    notice_hello_fini(&own);
}

static void begin_giving(struct sender *link, bool forced)
{
    log_notice("The active node %s lacks what is not in the history any more: it gets the state of this node%s",
               link->title, forced ? ", though that lacks something that only the other one has" : "");
    set_state(link, SENDER_GIVES);
    worker_wake(link->worker);
}

static void offer(struct sender *link)
{
    switch (node_offer(&link->hello.hello)) {
    case MERGE_OFFER_NOTHING:
        end(link, "one of the two does not belong to the group any more");
        break;
    case MERGE_OFFER_WAIT: /* until what it says next, a second later at most */
        if (++link->waits == WAITS_MOST)
            end(link, "the other one has to give first what only it has");
        break;
    case MERGE_OFFER_STREAM:
        log_notice("The active node %s gets the stream", link->title);
        set_state(link, SENDER_STREAMS);
        write_set(link, FRAME_STOPPED, &(struct merge_vector){0}); /* at once: its other links wait for an answer */
        want(link, &link->hello.wanted, &link->hello.hello.vector);
        break;
    case MERGE_OFFER_SNAPSHOT:
        begin_giving(link, false);
        break;
    case MERGE_OFFER_FORCED:
        begin_giving(link, true);
        break;
    }
}

static void refuse(struct sender *link, const char *error)
{
    log_warning("Refusing the active node %s: %s", link->title, error);
    conn_close_after_flush(&link->client->conn);
}

/* Whoever only says hello is no member, which all would wait for: what it says behind our hello shows that it has heard
 * that, and goes on. */
static void greet(struct sender *link)
{
    char error[NODE_ERROR_BYTES];

    if (node_greet(&link->hello, error) == NODE_WELCOME)
        offer(link);
    else
        refuse(link, error);
    if (state_of(link) != SENDER_STREAMS)
        return;
    notice_hello_fini(&link->hello);
    link->hello = (struct notice_hello){0};
}

static void note_name(struct sender *link, const struct notice_hello *hello)
{
    char name[UUID_TEXT_BYTES + 1];

    uuid_format(&hello->name, name);
    (void)snprintf(link->title, sizeof(link->title), "%s at %s", name, link->address);
    atomic_store_explicit(&link->peer, hello->hello.name, memory_order_relaxed);
}

static void take_hello(struct sender *link, struct slice body)
{
    char error[NODE_ERROR_BYTES];
    struct notice_hello hello;

    if (!notice_read_hello(body, &hello, error)) {
        fail(link, error);
        return;
    }
    if (hello.hello.origin != link->said_origin) {
        fail(link, "it said another origin before");
    } else if (notice_choose_version(&hello) == 0) {
        fail(link, "it speaks no version of frames that this node knows");
    } else if (node_look_at(&hello, error) != NODE_WELCOME) {
        answer(link); /* so that it can tell, too */
        refuse(link, error);
    } else {
        note_name(link, &hello);
        answer(link);
        link->version = notice_choose_version(&hello);
        link->hello = hello; /* with all it has */
        return;
    }
    notice_hello_fini(&hello);
}

static void take_want(struct sender *link, struct slice body)
{
    char error[NOTICE_ERROR_BYTES];
    struct merge_vector wanted;
    uint64_t clock;

    if (!notice_read_want(body, &clock, &wanted, error)) {
        fail(link, error);
        return;
    }
    if (state_of(link) == SENDER_GREETS)
        greet(link);
    if (state_of(link) == SENDER_STREAMS && wanted.count != 0) /* without any: it is alive */
        want(link, &wanted, &wanted);
    merge_vector_fini(&wanted);
}

static void take_frame(struct sender *link, const struct frame *frame)
{
    const bool has_said_hello = link->hello.hello.name != 0 || state_of(link) != SENDER_GREETS;

    if (!has_said_hello && frame->kind != FRAME_HELLO)
        fail(link, "it did not say hello first");
    else if (!has_said_hello)
        take_hello(link, frame->body);
    else if (frame->kind == FRAME_WANT) /* while it gets a state it wants in vain: with that it asks anew */
        take_want(link, frame->body);
    else if (frame->kind == FRAME_STOP)
        take_stop(link, frame->body);
    else if (frame->kind == FRAME_COMPARE || frame->kind == FRAME_REPAIR)
        take_comparison(link, frame);
    else if ((frame->kind != FRAME_WANT && frame->kind != FRAME_STOP) || state_of(link) != SENDER_GIVES)
        fail(link, "it says what the receiver of a link does not say, or not now");
    /* else it does not know yet that it gets a state, and asks anew when it has that */
}

static size_t on_input(struct client *client, char *data, size_t size)
{
    struct sender *link = client->sender;
    size_t done = 0, used;
    struct frame frame;

    client_assert_owned(client);
    while (done < size && !conn_is_closing(&client->conn)) {
        const enum frame_result result = frame_read(link->input, data + done, size - done, &used, &frame);

        done += used;
        if (result == FRAME_MORE)
            break;
        if (result == FRAME_ERROR)
            fail(link, frame_reader_error(link->input));
        else
            take_frame(link, &frame);
    }
    if (size - done > SAID_BYTES_MOST || frame_reader_bytes(link->input) > SAID_BYTES_MOST)
        fail(link, "it says more than the receiver of a link has to say");
    return conn_is_closing(&client->conn) ? size : done;
}

/* -------------------------------------------------------------------------------------------------- begin, end -- */

void sender_begin(struct client *client, struct slice uuid)
{
    struct sender *link = mem_alloc_zero(sizeof(*link));
    struct uuid said;
    int port;

    client_assert_owned(client);
    assert(client->sender == NULL && active_is_on());
    if (!uuid_parse(uuid, &said))
        said = (struct uuid){0}; /* its hello cannot name it */
    link->client = client;
    link->worker = client->worker;
    link->client_id = client->id;
    link->generation = atomic_load_explicit(&all.generation, memory_order_relaxed);
    link->said_origin = uuid_id(&said);
    if (!conn_peer_ip(&client->conn, link->address, sizeof(link->address), &port))
        (void)snprintf(link->address, sizeof(link->address), "?");
    (void)snprintf(link->title, sizeof(link->title), "%s", link->address);
    link->input = frame_reader_create((unsigned)OPTION_GET(option_databases));
    link->output = frame_writer_create();
    link->gather = gather_create();
    list_node_init(&link->node);
    follower_init(&link->follower, &sender_kind, client);
    link->follower.streams = true;
    atomic_store_explicit(&link->moved_us, clock_monotonic_us(), memory_order_relaxed);
    client->sender = link;
    client->on_input = on_input;
    client->flags |= CLIENT_REPLICA;
    spinlock_acquire(&all.lock);
    list_push_back(&all.links, &link->node);
    spinlock_release(&all.lock);
    follower_begin(&link->follower);
}

void senders_end_all(void)
{
    gate_assert_alone();
    atomic_fetch_add_explicit(&all.generation, 1, memory_order_relaxed);
}

static void on_client_close(struct client *client)
{
    struct sender *link = client->sender;

    if (LIKELY(link == NULL))
        return;
    client->sender = NULL;
    follower_end(&link->follower);
    spinlock_acquire(&all.lock);
    list_remove(&link->node);
    spinlock_release(&all.lock);
    close_reader(link);
    compare_link_ends(link->client_id);
    snapshot_end(&link->gift);
    release_beat(&link->beat);
    beats_fini(&link->beats);
    frame_reader_destroy(&link->input);
    frame_writer_destroy(&link->output);
    gather_destroy(&link->gather);
    notice_hello_fini(&link->hello);
    merge_vector_fini(&link->sent);
    merge_vector_fini(&link->former);
    mem_free(link);
}

static void on_drained(struct client *client)
{
    const struct sender *link = client->sender;

    if (link != NULL && !link->is_idle)
        worker_wake(client->worker); /* served in the next turn */
}

/* ------------------------------------------------------------------------------------------------------- turns -- */

/* Something to read for the other side, which waits. */
static void say_alive(struct sender *link)
{
    if (link->has_said_makes && link->gift != NULL && snapshot_state(link->gift) == SNAPSHOT_MAKES)
        say_makes(link);
    else
        write_set(link, FRAME_STOPPED, &(struct merge_vector){0});
}

/* A socket that takes nothing of what there is. Beats see to it that there is something, or words while the other side
 * waits for a file. */
static void look_for_life(struct sender *link, uint64_t now_us)
{
    const uint64_t limit_us = (uint64_t)OPTION_GET(option_repl_timeout) * SECOND_US;
    const struct conn *conn = &link->client->conn;

    if ((state_of(link) == SENDER_GIVES || link->waits != 0) && conn_output_size(conn) == 0)
        say_alive(link);
    if (conn->bytes_out != link->last_out || (conn_output_size(conn) == 0 && state_of(link) != SENDER_GREETS))
        atomic_store_explicit(&link->moved_us, now_us, memory_order_relaxed);
    link->last_out = conn->bytes_out;
    if (now_us - atomic_load_explicit(&link->moved_us, memory_order_relaxed) > limit_us)
        fail(link, "it says no hello, or takes nothing any more (repl-timeout)");
}

static void on_second(struct worker *worker)
{
    const uint64_t now_us = clock_monotonic_us();

    LIST_FOREACH(node, followers_of(worker)) {
        struct follower *follower = container_of(node, struct follower, node);

        if (follower->kind != &sender_kind || conn_is_closing(&follower->client->conn))
            continue;
        look_for_life(of_follower(follower), now_us);
        client_check_output(follower->client);
        client_update_card(follower->client);
    }
}

static void on_beat(void)
{
    atomic_fetch_add_explicit(&beat_count, 1, memory_order_release);
    followers_wake(&server_instance()->workers[0]);
}

static bool start(struct server *server)
{
    (void)server;
    node_on_beat(on_beat);
    return true;
}

static void setup(struct worker *worker)
{
    if (worker->index == 0)
        list_init(&all.links);
}

const struct lifecycle sender_lifecycle = {
    .server_start = start,
    .worker_init = setup,
    .worker_second = on_second,
    .client_drained = on_drained,
    .client_close = on_client_close,
};

/* ------------------------------------------------------------------------------------------------------- facts -- */

static void fill_facts(struct sender_facts *facts, const struct sender *link, uint64_t end_offset, uint64_t now_us)
{
    const uint64_t offset = atomic_load_explicit(&link->offset, memory_order_relaxed);
    const uint64_t moved_us = atomic_load_explicit(&link->moved_us, memory_order_relaxed);

    *facts = (struct sender_facts){
        .client_id = link->client_id,
        .peer = atomic_load_explicit(&link->peer, memory_order_relaxed),
        .state = state_of(link),
        .origins = atomic_load_explicit(&link->origins, memory_order_relaxed),
        .entries = atomic_load_explicit(&link->entries, memory_order_relaxed),
        .bytes = atomic_load_explicit(&link->bytes, memory_order_relaxed),
        .lag_bytes = offset != 0 ? end_offset - MIN(end_offset, offset) : 0,
        .moved_ms = (now_us - MIN(now_us, moved_us)) / 1000,
    };
    memcpy(facts->address, link->address, sizeof(facts->address));
}

void senders_each(void (*visit)(const struct sender_facts *facts, void *context), void *context)
{
    const uint64_t end_offset = journal_end_offset(&server_instance()->journal), now_us = clock_monotonic_us();

    spinlock_acquire(&all.lock);
    LIST_FOREACH(node, &all.links) {
        struct sender_facts facts;

        fill_facts(&facts, container_of(node, struct sender, node), end_offset, now_us);
        visit(&facts, context);
    }
    spinlock_release(&all.lock);
}
