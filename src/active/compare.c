#include "active/compare.h"

#include "active/comparison.h"
#include "active/frame.h"
#include "active/links.h"
#include "active/node.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/spinlock.h"
#include "replication/wait.h"
#include "server/core/exclusive.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/loading.h"
#include "server/upkeep/slot_cycle.h"
#include "store/stamp.h"
#include "store/window.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNTIL_AHEAD_MS = 10 * 1000, /* what has a deadline before that is left out: it may be freed meanwhile */
    COVER_MOST_MS = 30 * 1000,  /* for what the other one had, when all was read */
    BUSY_MOST_MS = 60 * 1000,   /* the other one compares, or this one does so for another */
    BUSY_PAUSE_MS = 200,        /* then it is asked again, after so long and up to five times as long */
    LISTED_SLOTS_MOST = 256,    /* whose keys are compared, in one comparison */
    LISTS_MOST = 5,             /* walks for that: slots that change meanwhile are looked at again */
    LINES_MOST = 10             /* in the log, of keys */
};

/* What a walk of this node is for. */
struct walk {
    struct slot_terms terms;
    uint64_t number; /* of slot_walk */
    struct merge_vector deeds;
    uint64_t clock;
    uint64_t read_ms; /* when all was read; 0: it runs */
};

enum step {
    STEP_RESTS,
    STEP_BEGINS, /* wants the gate */
    STEP_WALKS,
    STEP_ENDS,   /* wants the gate */
    STEP_CANCELS /* likewise */
};

/* Guarded by the lock. */
static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct compare_report report GUARDED_BY(lock);
    /* What a link has asked for. */
    bool is_asked;   /* `request` is for worker 0, and of `link` */
    bool has_answer; /* `answer` is for `link` */
    uint64_t link;   /* 0: nobody is served */
    struct worker *worker;
    struct comparison_request request;
    struct buffer answer;
    uint64_t repair_number; /* `repair` is for worker 0 */
    struct buffer repair;   /* the body; empty: none */
} shared = {.lock = {.rank = LOCK_REGISTRY}};

/* Hints for who would take the lock for nothing. */
static _Atomic bool is_wanted, has_answer; /* release */
/* Atomics: relaxed. */
static _Atomic uint64_t total_members, total_different, total_keys;

/* Worker 0's. */
static struct {
    enum step step;
    uint32_t at; /* in the report */
    struct comparison_request request;
    struct walk walk;
    uint64_t connection; /* of the link that was asked */
    bool has_heard;
    struct comparison_answer heard;
    struct buffer body; /* which `heard` points into */
    uint64_t begun_ms, pause_ms;
    bool is_asking; /* the request is to be sent */
    bool is_listing;
    uint32_t lists, lines;
    struct comparison_slots differ; /* whose keys are to be compared */
    uint32_t differ_count;
    struct comparison_keys theirs; /* which the other one is to write anew; at the gate, and until that is sent */
} own;

static struct {
    enum step step;
    struct comparison_request request;
    struct walk walk;
    uint64_t answered; /* the last request that was answered, and its terms */
    struct slot_terms terms;
} served;

const char *compare_state_name(enum compare_state state)
{
    static const char *const names[] = {"waits", "runs", "done", "no-link", "no-answer"};

    return names[state];
}

static bool is_over(enum compare_state state)
{
    return state != COMPARE_WAITS && state != COMPARE_RUNS;
}

/* ------------------------------------------------------------------------------------------------------ commands -- */

static bool is_done_locked(void) REQUIRES(shared.lock)
{
    spinlock_assert_held(&shared.lock);
    for (uint32_t i = 0; i < shared.report.count; i++) {
        if (!is_over(shared.report.targets[i].state))
            return false;
    }
    return true;
}

static void add_targets_locked(const struct node_facts *facts, uint64_t name) REQUIRES(shared.lock)
{
    spinlock_assert_held(&shared.lock);
    shared.report.count = 0;
    for (uint32_t i = 0; i < facts->member_count && shared.report.count < COMPARE_TARGETS_MOST; i++) {
        const struct node_member *member = &facts->members[i];

        if (!member->is_self && (name == 0 || member->name == name))
            shared.report.targets[shared.report.count++] = (struct compare_target){.name = member->name};
    }
}

bool compare_begin(uint64_t name, uint64_t *number)
{
    struct node_facts facts;
    bool is_free;

    node_facts(&facts);
    spinlock_acquire(&shared.lock);
    is_free = is_done_locked();
    if (is_free) {
        shared.report.number++;
        add_targets_locked(&facts, name);
    }
    *number = shared.report.number;
    spinlock_release(&shared.lock);
    node_facts_fini(&facts);
    atomic_store_explicit(&is_wanted, true, memory_order_release);
    return is_free;
}

bool compare_is_done(uint64_t number)
{
    bool is_done;

    spinlock_acquire(&shared.lock);
    is_done = shared.report.number != number || is_done_locked();
    spinlock_release(&shared.lock);
    return is_done;
}

void compare_report(struct compare_report *report)
{
    spinlock_acquire(&shared.lock);
    *report = shared.report;
    spinlock_release(&shared.lock);
}

void compare_totals(struct compare_totals *totals)
{
    *totals = (struct compare_totals){.members = atomic_load_explicit(&total_members, memory_order_relaxed),
                                      .different = atomic_load_explicit(&total_different, memory_order_relaxed),
                                      .keys = atomic_load_explicit(&total_keys, memory_order_relaxed)};
}

/* -------------------------------------------------------------------------------------------------------- a walk -- */

static void mark_dirty_slot(struct access *access, struct window_key *known, void *context)
{
    (void)access;
    (void)context;
    if (known->dirty.stamp != 0)
        slot_walk_mark(slot_of(window_name(known).name));
}

/* A dirty key may differ until it is written anew. */
static void mark_dirty_slots(struct worker *worker)
{
    const struct store *store = worker->server->store;
    struct window_totals totals;

    window_totals(store, &totals);
    if (totals.dirty == 0)
        return;
    for (uint32_t i = 0; i <= store->stripe_mask; i++)
        window_each(&worker->run.access, i, mark_dirty_slot, NULL);
}

static void walk_begin(struct walk *walk, struct worker *worker, const struct comparison_request *request)
{
    struct merge_account account = {.clock = 0};

    gate_assert_alone();
    node_account(&account);
    merge_vector_fini(&walk->deeds);
    merge_vector_copy(&walk->deeds, &account.deeds);
    walk->clock = account.clock;
    merge_account_fini(&account);
    walk->terms = (struct slot_terms){.secret = request->secret, .until_ms = request->until_ms};
    walk->read_ms = 0;
    slot_cycle_begin(&walk->terms);
    walk->number = slot_walk_number();
    slot_walk_hold();
    if (request->wanted_count != 0)
        slot_walk_list(request->wanted.words);
    access_begin(&worker->run.access, worker_now_ms(worker), true);
    mark_dirty_slots(worker);
}

/* False: somebody else has begun another one (DEBUG DIGEST-WALK). */
static bool walk_is_there(const struct walk *walk)
{
    gate_assert_alone();
    return walk->number == slot_walk_number() && slot_walk_result() != NULL;
}

static void walk_cancel(struct walk *walk)
{
    gate_assert_alone();
    if (walk->number == slot_walk_number())
        slot_walk_cancel();
    merge_vector_fini(&walk->deeds);
}

/* All was read, and this node has what the other one had. */
static bool walk_may_end(struct walk *walk, const struct merge_vector *theirs, uint64_t now_ms)
{
    struct notice_hello hello = {0};
    bool covers;

    if (slot_cycle_runs())
        return false;
    if (walk->read_ms == 0)
        walk->read_ms = now_ms;
    node_hello(&hello);
    covers = merge_vector_covers(&hello.hello.vector, theirs);
    notice_hello_fini(&hello);
    return covers;
}

static void clear_slots(struct comparison_slots *slots)
{
    gate_assert_alone();
    memset(slots, 0, sizeof(*slots));
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (slot_walk_is_clear(slot))
            comparison_set(slots, slot);
    }
}

static struct merge_place place_of(uint64_t version)
{
    const struct origins *origins = &server_instance()->store->origins;

    if (version == 0)
        return (struct merge_place){0, 0};
    return (struct merge_place){version_stamp(version), origins_id(origins, version_origin(version))};
}

/* The names are those of the result. */
static void list_keys(const struct slot_walk_result *result, const struct comparison_slots *clear,
                      struct comparison_keys *keys)
{
    for (uint32_t i = 0; i < result->list.count; i++) {
        const struct slot_walk_key *key = &result->list.items[i];
        const struct slice name = slice_make(result->names.data + key->name_at, key->name_size);

        if (comparison_has(clear, slot_of(name)))
            *ARRAY_PUSH(keys) = (struct comparison_key){key->db, name, key->sum, place_of(key->version)};
    }
}

/* Those of these keys that are still as they were are written anew. Returns how many. */
static uint32_t repair(struct worker *worker, const struct slot_terms *terms, const struct comparison_keys *keys)
{
    struct access *access = &worker->run.access;
    const struct merge_place mark = {journal_clock(&worker->server->journal), 0};
    uint32_t count = 0;

    gate_assert_alone();
    access_begin(access, worker_now_ms(worker), true);
    for (uint32_t i = 0; i < keys->count; i++) {
        const struct key key = key_make(keys->items[i].name);
        const unsigned db = keys->items[i].db;
        const struct entry *entry = access_probe(access, db, &key);
        struct window_key *known = window_find(access, db, &key);
        struct merge_record base;
        struct slot_sum sum;

        if (entry == NULL || !slot_digest_of(terms, db, entry, &sum) ||
            memcmp(&sum, &keys->items[i].sum, sizeof(sum)) != 0)
            continue;
        if (known == NULL) {
            window_base(access, db, true, entry_version(entry), &base);
            known = window_add(access, db, &key, &base);
        }
        window_mark(access, known, mark);
        count++;
    }
    return count;
}

/* --------------------------------------------------------------------------------------------- for another node -- */

static void write_refusal(struct buffer *body, uint64_t number, enum comparison_kind kind)
{
    const struct comparison_answer answer = {.number = number, .kind = kind};

    comparison_write_answer(body, &answer);
}

bool compare_asked(uint64_t link, struct worker *worker, struct slice body, struct buffer *answer,
                   char error[COMPARE_ERROR_BYTES])
{
    struct comparison_request request;
    bool is_free;

    if (!comparison_read_request(body, &request, error))
        return false;
    spinlock_acquire(&shared.lock);
    is_free = shared.link == 0 || shared.link == link;
    if (is_free) {
        comparison_request_fini(&shared.request);
        shared.request = request;
        shared.link = link;
        shared.worker = worker;
        shared.is_asked = true;
        shared.has_answer = false;
    }
    spinlock_release(&shared.lock);
    if (is_free) {
        atomic_store_explicit(&is_wanted, true, memory_order_release);
    } else {
        write_refusal(answer, request.number, COMPARISON_BUSY);
        comparison_request_fini(&request);
    }
    return true;
}

bool compare_told_repair(struct slice body, char error[COMPARE_ERROR_BYTES])
{
    struct comparison_keys keys;
    uint64_t number;

    if (!comparison_read_repair(body, server_instance()->store->database_count, &number, &keys, error))
        return false;
    ARRAY_FINI(&keys);
    spinlock_acquire(&shared.lock);
    shared.repair_number = number;
    buffer_clear(&shared.repair);
    buffer_append_slice(&shared.repair, body);
    spinlock_release(&shared.lock);
    atomic_store_explicit(&is_wanted, true, memory_order_release);
    return true;
}

bool compare_answer(uint64_t link, struct buffer *body)
{
    bool is_there = false;

    if (LIKELY(!atomic_load_explicit(&has_answer, memory_order_acquire)))
        return false;
    spinlock_acquire(&shared.lock);
    if (shared.link == link && shared.has_answer) {
        *body = shared.answer;
        shared.answer = (struct buffer){0};
        shared.has_answer = false;
        shared.link = 0;
        atomic_store_explicit(&has_answer, false, memory_order_relaxed);
        is_there = true;
    }
    spinlock_release(&shared.lock);
    return is_there;
}

void compare_link_ends(uint64_t link)
{
    spinlock_acquire(&shared.lock);
    if (shared.link == link) {
        shared.link = 0;
        shared.is_asked = shared.has_answer = false;
        atomic_store_explicit(&has_answer, false, memory_order_relaxed);
    }
    spinlock_release(&shared.lock);
}

/* The answer is there. */
static void answer(const struct comparison_answer *said)
{
    struct worker *woken = NULL;

    spinlock_acquire(&shared.lock);
    if (shared.link != 0 && !shared.is_asked) {
        buffer_clear(&shared.answer);
        comparison_write_answer(&shared.answer, said);
        shared.has_answer = true;
        atomic_store_explicit(&has_answer, true, memory_order_release);
        woken = shared.worker;
    }
    spinlock_release(&shared.lock);
    if (woken != NULL)
        worker_wake(woken);
}

static void refuse(enum comparison_kind kind)
{
    answer(&(struct comparison_answer){.number = served.request.number, .kind = kind});
}

/* Whether a request is there; it is taken. */
static bool take_request(void)
{
    bool is_asked;

    spinlock_acquire(&shared.lock);
    is_asked = shared.is_asked;
    if (is_asked) {
        comparison_request_fini(&served.request);
        served.request = shared.request;
        shared.request = (struct comparison_request){.number = 0};
        shared.is_asked = false;
    }
    spinlock_release(&shared.lock);
    return is_asked;
}

static bool has_link(void)
{
    bool has;

    spinlock_acquire(&shared.lock);
    has = shared.link != 0;
    spinlock_release(&shared.lock);
    return has;
}

static void look_at_request(uint64_t now_ms)
{
    if (take_request()) {
        const int64_t freed_ms = horizon_wall(&server_instance()->store->horizon);
        const bool is_free = own.step == STEP_RESTS, may = served.request.until_ms >= freed_ms;

        if (!is_free || !may) /* keys may have been freed that the asker still counts */
            refuse(is_free ? COMPARISON_FAILED : COMPARISON_BUSY);
        if (is_free && may)
            served.step = STEP_BEGINS;
        else if (served.step != STEP_RESTS)
            served.step = STEP_CANCELS;
    }
    if (served.step == STEP_RESTS)
        return;
    if (!has_link())
        served.step = STEP_CANCELS;
    if (served.step != STEP_WALKS)
        return;
    if (walk_may_end(&served.walk, &served.request.deeds, now_ms)) {
        served.step = STEP_ENDS;
    } else if (served.walk.read_ms != 0 && now_ms - served.walk.read_ms > COVER_MOST_MS) {
        refuse(COMPARISON_FAILED);
        served.step = STEP_CANCELS;
    }
}

static void end_served(void)
{
    const struct slot_walk_result *result = slot_walk_result();
    const bool lists = served.request.wanted_count != 0;
    struct comparison_answer said = {.number = served.request.number,
                                     .kind = lists ? COMPARISON_KEYS : COMPARISON_SUMS,
                                     .clock = served.walk.clock,
                                     .deeds = served.walk.deeds};

    if (!walk_is_there(&served.walk)) {
        refuse(COMPARISON_FAILED);
        return;
    }
    clear_slots(&said.clear);
    said.digests = (struct slot_digests *)(uintptr_t)&result->digests;
    if (lists)
        list_keys(result, &said.clear, &said.keys);
    answer(&said);
    ARRAY_FINI(&said.keys);
    served.answered = served.request.number;
    served.terms = served.walk.terms;
}

static void serve_at_gate(struct worker *worker)
{
    switch (served.step) {
    case STEP_BEGINS:
        walk_begin(&served.walk, worker, &served.request);
        served.step = STEP_WALKS;
        break;
    case STEP_ENDS:
        end_served();
        FALLTHROUGH;
    case STEP_CANCELS:
        walk_cancel(&served.walk);
        served.step = STEP_RESTS;
        break;
    default:
        break;
    }
}

static bool has_repair(void)
{
    bool has;

    spinlock_acquire(&shared.lock);
    has = shared.repair.size != 0;
    spinlock_release(&shared.lock);
    return has;
}

static void repair_at_gate(struct worker *worker)
{
    struct comparison_keys keys = {.count = 0};
    char error[COMPARE_ERROR_BYTES];
    struct buffer body;
    uint64_t number;
    uint32_t count;

    spinlock_acquire(&shared.lock);
    body = shared.repair;
    shared.repair = (struct buffer){0};
    spinlock_release(&shared.lock);
    if (comparison_read_repair(buffer_slice(&body), worker->server->store->database_count, &number, &keys, error) &&
        number == served.answered) {
        count = repair(worker, &served.terms, &keys);
        log_warning("Another node has found keys that differ though both nodes had the same operations: %" PRIu32
                    " of them are written anew here",
                    count);
    }
    ARRAY_FINI(&keys);
    buffer_fini(&body);
}

/* ------------------------------------------------------------------------------------------------ of this node -- */

static struct compare_target target_now(void)
{
    struct compare_target target;

    spinlock_acquire(&shared.lock);
    target = shared.report.targets[own.at];
    spinlock_release(&shared.lock);
    return target;
}

static void set_target(const struct compare_target *target)
{
    spinlock_acquire(&shared.lock);
    shared.report.targets[own.at] = *target;
    spinlock_release(&shared.lock);
}

static void forget_heard(void)
{
    comparison_answer_fini(&own.heard);
    buffer_fini(&own.body);
    own.has_heard = false;
}

static void log_target(const struct compare_target *target)
{
    const struct uuid uuid = uuid_of_id(target->name);
    char name[UUID_TEXT_BYTES + 1];

    uuid_format(&uuid, name);
    if (target->state == COMPARE_DONE)
        log_notice("Compared with the node %s: %" PRIu32 " slots are equal, %" PRIu32 " differ, %" PRIu32
                   " cannot be told, as they changed meanwhile or have large values",
                   name, target->equal, target->different, target->undecided);
    else
        log_warning("Not compared with the node %s: %s", name,
                    target->state == COMPARE_NO_LINK ? "no link leads there by which it could be asked"
                                                     : "it did not answer, or was busy or behind for too long");
}

/* With this member: the walk, if there is one, has to be cancelled. */
static void finish(enum compare_state state)
{
    struct compare_target target = target_now();

    target.state = state;
    set_target(&target);
    log_target(&target);
    if (state == COMPARE_DONE)
        atomic_fetch_add_explicit(&total_members, 1, memory_order_relaxed);
    if (own.theirs.count == 0)
        forget_heard();
    own.is_listing = own.is_asking = false;
    own.begun_ms = own.pause_ms = 0;
    own.lists = own.lines = 0;
    if (own.step != STEP_RESTS)
        own.step = STEP_CANCELS;
    wait_look_again();
}

static bool has_target(void)
{
    bool has;

    spinlock_acquire(&shared.lock);
    has = !is_done_locked();
    spinlock_release(&shared.lock);
    return has;
}

/* The next member; false: there is none. */
static bool find_target(void)
{
    bool found = false;

    spinlock_acquire(&shared.lock);
    for (uint32_t i = 0; i < shared.report.count && !found; i++) {
        found = !is_over(shared.report.targets[i].state);
        if (found)
            own.at = i;
    }
    if (found)
        shared.report.targets[own.at].state = COMPARE_RUNS;
    spinlock_release(&shared.lock);
    return found;
}

static void make_request(void)
{
    comparison_request_fini(&own.request);
    random_secret(&own.request.number, sizeof(own.request.number));
    random_secret(&own.request.secret, sizeof(own.request.secret));
    own.request.until_ms = clock_wall_ms() + UNTIL_AHEAD_MS;
    if (own.is_listing) {
        own.request.wanted = own.differ;
        own.request.wanted_count = own.differ_count;
    }
}

static void choose(uint64_t now_ms)
{
    if (served.step != STEP_RESTS || now_ms < own.pause_ms || !find_target())
        return;
    if (own.begun_ms == 0)
        own.begun_ms = now_ms;
    if (links_comparer(target_now().name) == 0) {
        finish(COMPARE_NO_LINK);
        return;
    }
    make_request();
    own.step = STEP_BEGINS;
}

/* Outside of the gate: says what was found there. */
static void say(void)
{
    const uint64_t name = target_now().name;
    struct buffer body = {0};

    if (own.is_asking) {
        own.is_asking = false;
        comparison_write_request(&body, &own.request);
        own.connection = links_compare(name, FRAME_COMPARE, &body);
        if (own.connection == 0)
            finish(COMPARE_NO_LINK);
    }
    if (own.theirs.count != 0) {
        comparison_write_repair(&body, own.request.number, &own.theirs);
        (void)links_compare(name, FRAME_REPAIR, &body);
        ARRAY_FINI(&own.theirs);
        forget_heard();
    }
    buffer_fini(&body);
}

/* The other one compares, too: both stop, and one of them begins again before the other. */
static void pause(uint64_t now_ms)
{
    forget_heard();
    if (now_ms - own.begun_ms > BUSY_MOST_MS) {
        finish(COMPARE_NO_ANSWER);
        return;
    }
    own.pause_ms = now_ms + BUSY_PAUSE_MS + random_below(random_thread(), UINT64_C(4) * BUSY_PAUSE_MS);
    own.step = STEP_CANCELS;
}

static void look_at_own(uint64_t now_ms)
{
    if (own.step != STEP_WALKS)
        return;
    if (links_comparer(target_now().name) != own.connection)
        finish(COMPARE_NO_ANSWER);
    else if (own.has_heard && own.heard.kind == COMPARISON_BUSY)
        pause(now_ms);
    else if (own.has_heard && own.heard.kind == COMPARISON_FAILED)
        finish(COMPARE_NO_ANSWER);
    else if (own.has_heard && walk_may_end(&own.walk, &own.heard.deeds, now_ms))
        own.step = STEP_ENDS;
    else if (own.has_heard && own.walk.read_ms != 0 && now_ms - own.walk.read_ms > COVER_MOST_MS)
        finish(COMPARE_NO_ANSWER);
}

static void compare_sums(struct compare_target *target)
{
    const struct slot_walk_result *result = slot_walk_result();

    memset(&own.differ, 0, sizeof(own.differ));
    own.differ_count = 0;
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (!slot_walk_is_clear(slot) || !comparison_has(&own.heard.clear, slot)) {
            target->undecided++;
        } else if (memcmp(&result->digests.slots[slot], &own.heard.digests->slots[slot], sizeof(struct slot_sum)) ==
                   0) {
            target->equal++;
        } else {
            target->different++;
            if (own.differ_count == LISTED_SLOTS_MOST)
                continue;
            comparison_set(&own.differ, slot);
            own.differ_count++;
        }
    }
    atomic_fetch_add_explicit(&total_different, target->different, memory_order_relaxed);
    if (target->different != 0)
        log_warning("A defect: %" PRIu32 " slots differ though both nodes had the same operations", target->different);
}

static int compare_names(const void *a, const void *b)
{
    const struct comparison_key *first = a, *second = b;

    if (first->db != second->db)
        return first->db < second->db ? -1 : 1;
    return slice_compare(first->name, second->name);
}

static void log_key(const struct comparison_key *key, const char *what)
{
    if (own.lines++ < LINES_MOST)
        log_warning("A key differs: database %u, slot %" PRIu32 ", name \"%.*s\": %s", key->db, slot_of(key->name),
                    (int)MIN(key->name.size, (size_t)100), key->name.data, what);
}

/* Who writes a key anew that differs. */
static void decide(const struct comparison_key *mine, const struct comparison_key *other, struct comparison_keys *ours)
{
    if (other == NULL || (mine != NULL && !merge_place_before(mine->last, other->last))) {
        log_key(mine, other == NULL ? "the other node lacks it" : "it is written anew here");
        *ARRAY_PUSH(ours) = *mine;
    } else {
        log_key(other, mine == NULL ? "this node lacks it" : "it is written anew by the other node");
        *ARRAY_PUSH(&own.theirs) = *other;
    }
}

static void compare_lists(const struct comparison_keys *mine, const struct comparison_keys *other,
                          struct comparison_keys *ours)
{
    uint32_t i = 0, j = 0;

    while (i < mine->count || j < other->count) {
        const int order = i == mine->count    ? 1
                          : j == other->count ? -1
                                              : compare_names(&mine->items[i], &other->items[j]);

        if (order < 0)
            decide(&mine->items[i++], NULL, ours);
        else if (order > 0)
            decide(NULL, &other->items[j++], ours);
        else if (memcmp(&mine->items[i].sum, &other->items[j].sum, sizeof(struct slot_sum)) != 0)
            decide(&mine->items[i++], &other->items[j++], ours);
        else
            i++, j++;
    }
}

/* Of the slots that are clear on both, keys that differ are found. The others are looked at again. */
static void compare_keys(struct worker *worker, struct compare_target *target)
{
    struct comparison_keys mine = {.count = 0}, other = {.count = 0}, ours = {.count = 0};
    struct comparison_slots clear;

    clear_slots(&clear);
    for (unsigned i = 0; i < COMPARISON_SLOT_WORDS; i++)
        clear.words[i] &= own.heard.clear.words[i];
    list_keys(slot_walk_result(), &clear, &mine);
    for (uint32_t i = 0; i < own.heard.keys.count; i++) {
        if (comparison_has(&clear, slot_of(own.heard.keys.items[i].name)))
            *ARRAY_PUSH(&other) = own.heard.keys.items[i];
    }
    if (mine.count != 0)
        qsort(mine.items, mine.count, sizeof(*mine.items), compare_names);
    if (other.count != 0)
        qsort(other.items, other.count, sizeof(*other.items), compare_names);
    compare_lists(&mine, &other, &ours);
    target->keys += ours.count + own.theirs.count;
    atomic_fetch_add_explicit(&total_keys, ours.count + own.theirs.count, memory_order_relaxed);
    (void)repair(worker, &own.walk.terms, &ours);
    own.differ_count = 0;
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (comparison_has(&clear, slot))
            own.differ.words[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
        own.differ_count += comparison_has(&own.differ, slot);
    }
    ARRAY_FINI(&mine);
    ARRAY_FINI(&other);
    ARRAY_FINI(&ours);
}

static void end_own(struct worker *worker)
{
    const enum comparison_kind wanted = own.request.wanted_count != 0 ? COMPARISON_KEYS : COMPARISON_SUMS;
    struct compare_target target = target_now();

    if (!walk_is_there(&own.walk) || own.heard.kind != wanted) {
        finish(COMPARE_NO_ANSWER);
        return;
    }
    if (wanted == COMPARISON_SUMS)
        compare_sums(&target);
    else
        compare_keys(worker, &target);
    set_target(&target);
    own.is_listing = own.differ_count != 0 && own.lists++ < LISTS_MOST;
    if (!own.is_listing)
        finish(COMPARE_DONE);
    else if (own.theirs.count == 0)
        forget_heard();
}

static void own_at_gate(struct worker *worker)
{
    switch (own.step) {
    case STEP_BEGINS:
        walk_begin(&own.walk, worker, &own.request);
        merge_vector_copy(&own.request.deeds, &own.walk.deeds);
        own.request.clock = own.walk.clock;
        own.is_asking = true;
        own.step = STEP_WALKS;
        break;
    case STEP_ENDS:
        end_own(worker);
        FALLTHROUGH;
    case STEP_CANCELS:
        walk_cancel(&own.walk);
        own.step = STEP_RESTS;
        break;
    default:
        break;
    }
}

bool compare_heard(uint64_t name, struct slice body, char error[COMPARE_ERROR_BYTES])
{
    struct comparison_answer heard;

    worker_assert_zero(&server_instance()->workers[0]);
    if (!comparison_read_answer(body, server_instance()->store->database_count, &heard, error))
        return false;
    if (own.step != STEP_WALKS || own.has_heard || heard.number != own.request.number || target_now().name != name) {
        comparison_answer_fini(&heard); /* of one that was given up */
        return true;
    }
    comparison_answer_fini(&heard);
    buffer_append_slice(&own.body, body);
    own.has_heard = comparison_read_answer(buffer_slice(&own.body), server_instance()->store->database_count,
                                           &own.heard, error);
    assert(own.has_heard);
    return true;
}

/* --------------------------------------------------------------------------------------------------------- turns -- */

static bool wants_gate(void)
{
    return has_repair() || (own.step != STEP_RESTS && own.step != STEP_WALKS) ||
           (served.step != STEP_RESTS && served.step != STEP_WALKS);
}

static void look(struct worker *worker)
{
    const uint64_t now_ms = clock_monotonic_ms();

    worker_assert_zero(worker);
    if (loading_runs() || loading_replaces() || server_is_stopping(worker->server) || worker->reentrant) {
        exclusive_drop(worker, GATE_WISH_COMPARE);
        return;
    }
    look_at_request(now_ms);
    look_at_own(now_ms);
    if (own.step == STEP_RESTS)
        choose(now_ms);
    if (!wants_gate()) {
        exclusive_drop(worker, GATE_WISH_COMPARE);
        return;
    }
    if (!exclusive_begin(worker, GATE_WISH_COMPARE))
        return; /* looks again when it is woken */
    serve_at_gate(worker);
    own_at_gate(worker);
    if (has_repair())
        repair_at_gate(worker);
    exclusive_end(worker);
    say();
}

/* Set again by whoever brings something. */
static bool is_idle(void)
{
    return own.step == STEP_RESTS && served.step == STEP_RESTS && !has_repair() && !has_target();
}

static void sample(struct server *server)
{
    if (LIKELY(!atomic_exchange_explicit(&is_wanted, false, memory_order_acquire)))
        return;
    look(&server->workers[0]);
    if (!is_idle())
        atomic_store_explicit(&is_wanted, true, memory_order_release);
}

static void woken(struct worker *worker)
{
    if (worker->index == 0 && UNLIKELY(exclusive_is_wished(worker, GATE_WISH_COMPARE)))
        look(worker);
}

static void end(struct server *server)
{
    (void)server;
    forget_heard();
    comparison_request_fini(&own.request);
    comparison_request_fini(&served.request);
    comparison_request_fini(&shared.request);
    merge_vector_fini(&own.walk.deeds);
    merge_vector_fini(&served.walk.deeds);
    ARRAY_FINI(&own.theirs);
    buffer_fini(&shared.answer);
    buffer_fini(&shared.repair);
}

const struct lifecycle compare_lifecycle = {.server_sample = sample, .worker_wake = woken, .server_end = end};
