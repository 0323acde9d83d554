/* The running node: one membership, with the server's clock, disk, journal and workers around it.
 *
 * At the start the identity file is read and written before the data are loaded; the bounds of the start before are
 * those above which this one begins. When the data are there, the journal stamps. Then worker 0 makes beats. Twice as
 * often as needed it has the background thread store new bounds; when these do not come in time, writes wait. */
#include "active/node.h"

#include "active/history.h"
#include "active/identity.h"
#include "active/links.h"
#include "active/membership.h"
#include "active/options.h"
#include "active/peers.h"
#include "active/place.h"
#include "active/sender.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/core/run_time.h"
#include "server/durable/aof.h"
#include "server/durable/aof_writer.h"
#include "server/durable/file_options.h"
#include "server/durable/persistence.h"
#include "server/run/pause.h"

#include <inttypes.h>

#define IDENTITY_PATH "keydb-identity" /* in `dir` */

enum {
    BOUNDS_LEAST_MS = 1000, /* writes wait when less is left of what is on the disk */
    RETRY_MS = 1000,        /* after a failure to store */
    FUTURE_MS = 5000,       /* a clock that is so far ahead is told of */
    SECOND_BEATS = 1000 / NODE_BEAT_MS
};

_Atomic bool active_is_on_; /* global: see node.h */

static struct {
    struct membership membership;
    struct server *server;       /* const after start; NULL: this server is no node */
    struct merge_account loaded; /* until node_begin: what files said; guarded by the gate */
    uint64_t begun_at;           /* const after node_begin */
    uint64_t name;               /* const after start: this node's */
    int64_t wall_before;         /* const after start: no command of an earlier start used a time above */
    void (*on_beat)(void);       /* const after start; may be NULL */

    /* owner: worker 0 */
    int64_t wall; /* promised last */
    uint64_t retry_ms;
    uint64_t counted; /* the highest stamp of node_count */
    bool is_paused;
    int64_t future_ms;          /* how far ahead it was when that was told */
    struct node_beat *unsynced; /* counts as saved when the append-only file is synced so far; NULL: none */
    bool has_met;               /* a link was up in this start, or that was waited for too long */
    uint64_t begun_ms;          /* of the first beat */

    struct merge_identity storing; /* owner: worker 0 while is_storing is false, else the background thread */
    _Atomic bool is_storing;       /* atomic: release, when `storing` and `stored` are complete */
    _Atomic int stored;            /* atomic: relaxed, before is_storing: enum status */
} node;

/* ------------------------------------------------------------------------------------------------------ start -- */

static bool start(struct server *server)
{
    struct merge_identity identity;
    uint64_t clock;
    int64_t wall;
    char error[IDENTITY_ERROR_BYTES];

    if (!OPTION_IS(option_active_replica))
        return true;
    if (identity_start(IDENTITY_PATH, clock_wall_ms(), &identity, &clock, &wall, error) != STATUS_OK) {
        log_warning("Can't start as an active replica: %s", error);
        return false;
    }
    node.name = identity.name;
    membership_init(&node.membership, &identity, clock, wall, &server->journal, &server->store->horizon,
                    &server->store->origins);
    node.server = server;
    node.wall_before = wall;
    return true;
}

static void log_start(void)
{
    struct node_facts facts;
    char name[UUID_TEXT_BYTES + 1], origin[UUID_TEXT_BYTES + 1];

    node_facts(&facts);
    uuid_format(&facts.name, name);
    uuid_format(&facts.origin, origin);
    log_notice("Active replica: node %s, origin %s, start %" PRIu32, name, origin, facts.incarnation);
    node_facts_fini(&facts);
}

void node_resume(struct merge_account *account)
{
    gate_assert_alone();
    assert(!active_is_on());
    merge_account_fini(&node.loaded);
    node.loaded = *account;
    *account = (struct merge_account){0};
}

static void note_cut(void)
{
    struct merge_vector cut = {0};

    active_history_cut(&cut);
    membership_set_cut(&node.membership, &cut);
}

/* What an RDB file brought is in no journal. */
static void begin_history(struct journal *journal)
{
    struct merge_account account = {0};

    membership_account(&node.membership, &account);
    if (!active_history_has_begun()) /* else with the entries of an append-only file */
        active_history_start(journal, &account.deeds);
    merge_account_fini(&account);
    note_cut();
}

/* Data without the state of a node, of a plain file: nobody has it, and it is in no history. So it counts as done by
 * this start, before its first operation. */
static void count_plain_data(void)
{
    struct merge_account *loaded = &node.loaded;
    const uint64_t origin = membership_origin(&node.membership, &loaded->clock);

    if (loaded->vector.count != 0 || persistence_key_count(node.server->store) == 0)
        return;
    loaded->clock = MAX(loaded->clock + 1, stamp_at(clock_wall_ms()));
    merge_vector_set(&loaded->vector, origin, loaded->clock);
    merge_vector_set(&loaded->deeds, origin, loaded->clock);
}

void node_prepare(void)
{
    struct journal *journal = &node.server->journal;
    uint64_t clock = 0;
    const uint64_t origin = membership_origin(&node.membership, &clock);

    gate_assert_alone();
    journal_set_stamping(journal, origin, clock);
    place_teach_window();
    store_set_stamping(node.server->store, true);
    store_keep_expired(node.server->store, STORE_KEEPS_ACTIVE, true);
    journal_set_peers(journal, true);
    journal_keep(journal, JOURNAL_KEPT_FOR_PEERS, true);
}

/* A plain file's data have no stamps. */
static void note_begin(void)
{
    uint64_t clock = 0;

    (void)membership_origin(&node.membership, &clock);
    node.begun_at = node.loaded.vector.count != 0 ? clock : 0;
}

void node_begin(void)
{
    gate_assert_alone();
    if (node.server == NULL || active_is_on())
        return;
    node_prepare();
    node.wall = MAX(node.wall_before, node.loaded.wall);
    run_time_raise(node.wall);
    note_begin();
    count_plain_data();
    membership_begin(&node.membership, &node.loaded);
    if (!OPTION_IS(option_appendonly)) /* else no RDB file was looked at */
        membership_file_was_loaded(&node.membership);
    merge_account_fini(&node.loaded);
    begin_history(&node.server->journal);
    atomic_store_explicit(&active_is_on_, true, memory_order_relaxed);
    log_start();
}

/* The journal ends next. */
static void end_history(struct worker *worker)
{
    if (worker->index == 0)
        active_history_stop();
}

static void drop_beat(struct node_beat **beat)
{
    if (*beat != NULL)
        membership_release_beat(&node.membership, *beat);
    *beat = NULL;
}

static void end(struct server *server)
{
    if (node.server != server)
        return;
    atomic_store_explicit(&active_is_on_, false, memory_order_relaxed);
    merge_account_fini(&node.loaded);
    identity_fini(&node.storing);
    drop_beat(&node.unsynced);
    membership_fini(&node.membership);
    node.server = NULL;
}

/* ----------------------------------------------------------------------------------------------------- bounds -- */

static void store_bounds(void *argument)
{
    (void)argument;
    spinlock_assert_may_sleep();
    atomic_store_explicit(&node.stored, identity_store(IDENTITY_PATH, &node.storing), memory_order_relaxed);
    atomic_store_explicit(&node.is_storing, false, memory_order_release);
}

/* What the background thread has stored counts from here on. */
static void note_stored(uint64_t now_ms)
{
    const enum status status = (enum status)atomic_load_explicit(&node.stored, memory_order_relaxed);

    if (node.storing.name == 0)
        return;
    if (status == STATUS_OK) {
        membership_stored_bounds(&node.membership, &node.storing);
    } else {
        log_warning("The identity file %s cannot be written: %s", IDENTITY_PATH, status_text(status));
        node.retry_ms = now_ms + RETRY_MS;
    }
    identity_fini(&node.storing);
}

static void look_at_bounds(uint64_t now_ms, int64_t wall_ms)
{
    const bool is_short = membership_is_short(&node.membership, wall_ms, BOUNDS_LEAST_MS);

    if (is_short != node.is_paused) {
        node.is_paused = is_short;
        pause_for(PAUSE_FOR_BOUNDS, is_short);
        if (is_short)
            log_warning("Writes wait until the identity file %s is written", IDENTITY_PATH);
        else
            pause_for_over();
    }
    if (now_ms >= node.retry_ms && membership_wants_bounds(&node.membership, wall_ms, &node.storing)) {
        atomic_store_explicit(&node.is_storing, true, memory_order_relaxed);
        background_submit(BACKGROUND_SYNC, store_bounds, NULL);
    }
}

static void keep_bounds(uint64_t now_ms, int64_t wall_ms)
{
    if (!atomic_load_explicit(&node.is_storing, memory_order_acquire))
        note_stored(now_ms);
    if (!atomic_load_explicit(&node.is_storing, memory_order_relaxed))
        look_at_bounds(now_ms, wall_ms);
}

/* What others say may bring us at once to where our bounds end. */
static void look_ahead(uint64_t stamp)
{
    const int64_t wall_ms = clock_wall_ms();

    if (UNLIKELY(stamp_ms(stamp) > wall_ms + BOUNDS_LEAST_MS))
        keep_bounds(clock_monotonic_ms(), wall_ms);
}

/* ------------------------------------------------------------------------------------------------------ beats -- */

static void log_silent(uint64_t now_ms)
{
    const uint64_t timeout_ms = (uint64_t)OPTION_GET(option_active_peer_timeout) * 1000;
    uint64_t name;

    while ((name = membership_give_up(&node.membership, now_ms, timeout_ms)) != 0) {
        const struct uuid uuid = uuid_of_id(name);
        char text[UUID_TEXT_BYTES + 1];

        uuid_format(&uuid, text);
        log_warning("Node %s was silent for %lld seconds: it is not waited for any more", text,
                    (long long)OPTION_GET(option_active_peer_timeout));
    }
    while ((name = membership_came_back(&node.membership)) != 0) {
        const struct uuid uuid = uuid_of_id(name);
        char text[UUID_TEXT_BYTES + 1];

        uuid_format(&uuid, text);
        log_notice("Node %s is heard again: it is waited for", text);
    }
}

/* What others have decided, or a member that is wrong has said: writes of these nodes are lost to the others. */
static void log_gone(void)
{
    struct merge_member member;
    uint64_t name;
    char text[UUID_TEXT_BYTES + 1], origin[UUID_TEXT_BYTES + 1];

    while ((name = membership_removed(&node.membership)) != 0) {
        const struct uuid uuid = uuid_of_id(name);

        uuid_format(&uuid, text);
        if (name == node.name)
            log_warning("This node was removed from the group: others do not take what is written here any more");
        else
            log_warning("Node %s was removed from the group: what it writes is not taken any more", text);
    }
    while (membership_ended(&node.membership, &member)) {
        const struct uuid uuid = uuid_of_id(member.name), start = uuid_of_id(member.origin);

        uuid_format(&uuid, text);
        uuid_format(&start, origin);
        log_warning("A member says that the start %s of %s %s has ended, and no later one is known: what it writes is "
                    "not taken any more",
                    origin, member.name == node.name ? "this node" : "node", text);
    }
}

/* While somebody is alone with the data, or this worker serves others inside a script, the promise stays as it is. */
static void promise_wall(struct worker *worker, int64_t wall_ms)
{
    if (worker->reentrant || gate_is_inside(&worker->member) || gate_is_alone() || !gate_enter(&worker->member))
        return;
    node.wall = run_time_promise(node.server, wall_ms);
    gate_leave(&worker->member);
}

/* The history has a mark where a beat stands. */
static void note_beat(void)
{
    struct node_beat *beat = membership_beat(&node.membership);
    struct merge_vector held = {0};

    membership_held(&node.membership, &held);
    if (active_history_note(beat->position, &beat->beat.deeds, &held))
        note_cut();
    merge_vector_fini(&held);
    membership_release_beat(&node.membership, beat);
}

/* What of the vector a restart would find. With an append-only file what that has: a beat speaks of what is before a
 * position of the journal, and counts when that is synced. Else what the last RDB file has. While the data are replaced
 * it is not known yet which files have them. */
static void note_saved(void)
{
    if (gate_is_alone())
        return;
    if (aof_state() != AOF_ON) {
        drop_beat(&node.unsynced);
        if (!aof_is_on())
            membership_saved_in_file(&node.membership);
        return;
    }
    if (node.unsynced == NULL)
        node.unsynced = membership_beat(&node.membership);
    if (aof_synced_position() < node.unsynced->position)
        return;
    membership_saved(&node.membership, &node.unsynced->beat.vector);
    drop_beat(&node.unsynced);
}

/* Stamps of others raise our clock, also where theirs is wrong. */
static void log_future(int64_t ahead_ms)
{
    if (ahead_ms > FUTURE_MS && ahead_ms > node.future_ms + FUTURE_MS)
        log_warning("Stamps are %" PRId64 " seconds ahead of this machine's clock", ahead_ms / 1000);
    else if (ahead_ms > FUTURE_MS || node.future_ms == 0)
        return;
    node.future_ms = MAX(ahead_ms, 0);
}

/* A master that was never heard is waited for as long as a member that is silent. */
static void wait_for_first(uint64_t now_ms)
{
    const uint64_t timeout_ms = (uint64_t)OPTION_GET(option_active_peer_timeout) * 1000;

    if (LIKELY(node.has_met))
        return;
    if (node.begun_ms == 0)
        node.begun_ms = now_ms;
    node.has_met = links_up_count() != 0 || (timeout_ms != 0 && now_ms - node.begun_ms >= timeout_ms);
    membership_wait_for_first(&node.membership, !node.has_met && peers_count() != 0);
}

static void sample(struct server *server)
{
    struct worker *worker = &server->workers[0];
    const uint64_t now_ms = clock_monotonic_ms();
    const int64_t wall_ms = clock_wall_ms();
    static unsigned beats; /* owner: worker 0 */
    int64_t bound_ms, clock_ms;

    worker_assert_zero(worker);
    if (LIKELY(!active_is_on()))
        return;
    bound_ms = membership_bound_ms(&node.membership, &clock_ms);
    promise_wall(worker, MIN(wall_ms, bound_ms));
    wait_for_first(now_ms);
    membership_make_beat(&node.membership, MIN(wall_ms, bound_ms), node.wall);
    log_future(clock_ms - wall_ms);
    keep_bounds(now_ms, wall_ms);
    if (++beats % SECOND_BEATS == 0) {
        log_silent(now_ms);
        log_gone();
        membership_end_origins(&node.membership);
    }
    note_beat();
    note_saved();
    if (node.on_beat != NULL)
        node.on_beat();
}

void node_on_beat(void (*told)(void))
{
    thread_assert_main();
    node.on_beat = told;
}

struct node_beat *node_beat_acquire(void)
{
    return membership_beat(&node.membership);
}

void node_beat_release(struct node_beat *beat)
{
    membership_release_beat(&node.membership, beat);
}

void node_beat_for(const struct node_beat *beat, const struct merge_vector *origins, struct merge_beat *part)
{
    merge_beat_part(part, &beat->beat, origins);
}

void node_beat_end(struct merge_beat *part)
{
    merge_beat_part_fini(part);
}

/* ------------------------------------------------------------------------------------------------- by its name -- */

void node_hello(struct notice_hello *hello)
{
    membership_hello(&node.membership, hello);
}

enum node_verdict node_greet(const struct notice_hello *hello, char error[NODE_ERROR_BYTES])
{
    return membership_greet(&node.membership, hello, clock_monotonic_ms(), error);
}

enum node_verdict node_look_at(const struct notice_hello *hello, char error[NODE_ERROR_BYTES])
{
    return membership_look_at(&node.membership, hello, clock_monotonic_ms(), error);
}

enum merge_offer node_offer(const struct merge_hello *hello)
{
    return membership_offer(&node.membership, hello, clock_monotonic_ms());
}

void node_wait_anew(void)
{
    membership_wait_anew(&node.membership);
}

bool node_sponsor(const struct merge_hello *hello)
{
    return membership_sponsor(&node.membership, hello);
}

enum merge_acceptance node_judge(uint64_t origin, uint64_t prev, uint64_t stamp)
{
    worker_assert_zero(&node.server->workers[0]);
    return membership_judge(&node.membership, origin, prev, stamp);
}

bool node_is_below_promise(uint64_t origin, uint64_t stamp)
{
    worker_assert_zero(&node.server->workers[0]);
    return membership_is_below_promise(&node.membership, origin, stamp);
}

void node_count(uint64_t origin, uint64_t stamp)
{
    worker_assert_zero(&node.server->workers[0]);
    membership_count(&node.membership, origin, stamp);
    node.counted = MAX(node.counted, stamp);
}

void node_count_alone(uint64_t origin, uint64_t stamp)
{
    gate_assert_alone();
    membership_count(&node.membership, origin, stamp);
}

void node_look_ahead(void)
{
    worker_assert_zero(&node.server->workers[0]);
    spinlock_assert_may_sleep();
    look_ahead(node.counted);
}

bool node_hear(const struct merge_beat *beat)
{
    worker_assert_zero(&node.server->workers[0]);
    if (!membership_hear(&node.membership, beat, clock_monotonic_ms(), clock_wall_ms()))
        return false;
    look_ahead(beat->clock);
    return true;
}

bool node_is_closed(uint64_t origin)
{
    return membership_is_closed(&node.membership, origin);
}

uint64_t node_have(uint64_t origin)
{
    return membership_have(&node.membership, origin);
}

bool node_knows(uint64_t origin)
{
    return membership_knows(&node.membership, origin);
}

void node_orders_fini(struct node_orders *orders)
{
    mem_free(orders->items);
    *orders = (struct node_orders){0};
}

void node_link_up(uint32_t link, uint64_t origin)
{
    worker_assert_zero(&node.server->workers[0]);
    membership_link_up(&node.membership, link, origin);
}

void node_link_down(uint32_t link)
{
    worker_assert_zero(&node.server->workers[0]);
    membership_link_down(&node.membership, link);
}

void node_offered(uint32_t link, const struct merge_vector *offers, struct node_orders *orders)
{
    worker_assert_zero(&node.server->workers[0]);
    membership_offered(&node.membership, link, offers, orders);
}

void node_stopped(uint32_t link, const struct merge_vector *origins, struct node_orders *orders)
{
    worker_assert_zero(&node.server->workers[0]);
    membership_stopped(&node.membership, link, origins, orders);
}

uint64_t node_begun_at(void)
{
    gate_assert_alone();
    return node.begun_at;
}

bool node_may_repair(void)
{
    return membership_may_repair(&node.membership);
}

uint64_t node_heard_up_to(void)
{
    return membership_heard_up_to(&node.membership, clock_monotonic_ms());
}

uint64_t node_origin(void)
{
    return origins_id(&node.server->store->origins, VERSION_OWN_ORIGIN);
}

uint32_t node_forget_by_force(uint64_t name)
{
    return membership_forget_by_force(&node.membership, name);
}

bool node_forget(uint64_t name)
{
    return membership_forget(&node.membership, name);
}

void node_account(struct merge_account *account)
{
    gate_assert_alone();
    membership_account(&node.membership, account);
}

bool node_adopt(const struct merge_account *account)
{
    struct merge_account before = {0};
    struct merge_vector skipped = {0};
    int64_t least_wall;
    bool is_adopted;

    gate_assert_alone();
    membership_account(&node.membership, &before);
    is_adopted = membership_adopt(&node.membership, account, &least_wall);
    for (uint32_t i = 0; is_adopted && i < account->deeds.count; i++) {
        const struct merge_vector_item item = account->deeds.items[i];

        if (item.stamp > merge_vector_get(&before.vector, item.id))
            merge_vector_set(&skipped, item.id, item.stamp);
    }
    if (is_adopted) {
        active_history_skip(&skipped);
        note_cut();
        senders_end_all();
        run_time_raise(least_wall);
    }
    merge_vector_fini(&skipped);
    merge_account_fini(&before);
    return is_adopted;
}

void node_note_file(const struct merge_vector *vector)
{
    gate_assert_alone();
    membership_note_file(&node.membership, vector);
}

void node_file_is_stored(void)
{
    membership_file_is_stored(&node.membership);
}

void node_facts(struct node_facts *facts)
{
    if (active_is_on())
        membership_facts(&node.membership, clock_monotonic_ms(), facts);
    else
        *facts = (struct node_facts){0};
}

void node_facts_fini(struct node_facts *facts)
{
    mem_free(facts->members);
    *facts = (struct node_facts){0};
}

const struct lifecycle node_lifecycle = {
    .server_start = start,
    .server_sample = sample,
    .server_end = end,
    .worker_fini = end_history,
};
