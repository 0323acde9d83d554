#include "active/snapshot.h"

#include "active/gather.h"
#include "active/history.h"
#include "active/node.h"
#include "active/node_files.h"
#include "active/own_data.h"
#include "active/part.h"
#include "active/place.h"
#include "base/assert.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/rdb_file.h"
#include "persist/rdb_load.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"
#include "store/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A file that is being loaded. The loader's from snapshot_load until `is_done`. */
static struct taking {
    char *path; /* NULL: none is loaded; worker 0's */
    struct file *file;
    struct file_source source;
    struct moment moment;
    struct data_order_found found;
    struct own_data kept;    /* of a forced one */
    struct part_keys part;   /* of a part: its keys, also deleted ones */
    struct merge_vector own; /* origins of which this node has more than the state, and what that has of them */
    void (*on_done)(enum snapshot_end end, const char *error, void *context); /* const */
    void *context;
    enum snapshot_end end;
    char error[700];
    _Atomic bool is_done; /* atomic: release */
} taken;

static bool rewind_file(void *context)
{
    (void)context;
    return file_seek(taken.file, 0) == STATUS_OK;
}

static void take_aux(struct slice name, struct slice value, void *context)
{
    (void)context;
    data_order_take(&taken.found, name, value);
}

enum { AGAIN_ENTRIES = 1024 }; /* in a batch */

/* Operations of these origins above these stamps are only here. */
static void note_own(const struct merge_vector *deeds, const struct merge_vector *theirs)
{
    for (uint32_t i = 0; i < deeds->count; i++) {
        const uint64_t origin = deeds->items[i].id, there = merge_vector_get(theirs, origin);

        if (deeds->items[i].stamp > there)
            merge_vector_set(&taken.own, origin, there);
    }
}

static void keep_data(void)
{
    struct store_counters counters = {0};
    struct access access;

    access_init(&access, server_instance()->store, &counters);
    access_begin(&access, clock_wall_ms(), true);
    own_data_keep(&taken.kept, &access);
}

static bool is_own(const struct journal_stamp *stamp)
{
    return merge_vector_has(&taken.own, stamp->origin) && stamp->stamp > merge_vector_get(&taken.own, stamp->origin);
}

/* Of a part: the operations on its keys. What has no key is done again, which changes nothing. False: there is none. */
static bool choose_ops(const struct frame_entry *entry, struct frame_op *room, struct frame_entry *chosen)
{
    *chosen = *entry;
    chosen->ops = room;
    chosen->op_count = 0;
    for (uint32_t i = 0; i < entry->op_count; i++) {
        const struct frame_op *op = &entry->ops[i];
        const struct key key = key_make(op->words[op->key_index]);

        if (op->key_index == 0 || part_keys_has(&taken.part, op->db, &key))
            room[chosen->op_count++] = *op;
    }
    return chosen->op_count != 0;
}

static void place_chosen(struct place *place, const struct frame_entry *entry)
{
    struct frame_entry chosen;
    struct frame_op *room;

    if (!taken.moment.is_part) {
        place_entry(place, entry, NULL);
        return;
    }
    room = mem_alloc(entry->op_count * sizeof(*room));
    if (choose_ops(entry, room, &chosen))
        place_entry(place, &chosen, NULL);
    mem_free(room);
}

/* Returns how many. */
static uint64_t place_records(struct journal_reader *reader, struct worker *worker)
{
    struct gather *gather = gather_create();
    struct place place = {.worker = NULL};
    struct journal_view view;
    uint64_t count = 0;

    place_begin_again(&place, worker);
    while (journal_reader_next(reader, &view)) {
        const struct frame_entry *entry;

        if (view.stamp == NULL || !is_own(view.stamp) || (entry = gather_take(gather, &view)) == NULL)
            continue;
        place_chosen(&place, entry);
        if (++count % AGAIN_ENTRIES == 0) {
            place_end(&place);
            place_begin_again(&place, worker);
        }
    }
    place_end(&place);
    place_fini(&place);
    gather_destroy(&gather);
    return count;
}

/* The state is there: what only this node has comes on top. It is in the history, else the state was refused. */
static bool place_own(struct worker *worker)
{
    struct journal_reader reader;
    uint64_t count;
    bool good;

    gate_assert_alone();
    if (taken.kept.values + taken.kept.steps != 0) {
        const uint64_t stay = own_data_put(&taken.kept, worker);

        log_notice("Keys that neither node could give first: %" PRIu64 ", of which those of this node stay: %" PRIu64
                   "; operations of others: %" PRIu64,
                   taken.kept.values, stay, taken.kept.steps);
    }
    if (taken.own.count == 0)
        return true;
    if (!active_history_open(&reader, &taken.own, JOURNAL_READER_SPILLS, NULL)) {
        (void)snprintf(taken.error, sizeof(taken.error), "the history has lost what only this node had");
        return false;
    }
    journal_reader_set(&reader, JOURNAL_READER_SPILLS, JOURNAL_SELECT | JOURNAL_BEGINS | JOURNAL_NOT_FOR_PEERS);
    count = place_records(&reader, worker);
    good = !reader.is_lost;
    journal_reader_close(&reader);
    log_notice("Operations that only this node had were put on top: %" PRIu64, count);
    if (!good)
        (void)snprintf(taken.error, sizeof(taken.error), "the history cannot be read: %s", strerror(reader.error));
    return good;
}

/* With the gate owned: the account is added to what this node has, or refused. From here on there is no way back: the
 * file was read, and is whole. */
static bool may_replace(void *context)
{
    struct merge_account *account = &taken.moment.account, before = {.clock = 0};
    bool is_adopted;

    (void)context;
    gate_assert_alone();
    node_account(&before);
    /* What it lacks may be in the history here by now, or there by now. */
    account->forced = account->forced && !merge_vector_covers(&account->vector, &before.cut);
    is_adopted = node_adopt(account);
    if (is_adopted && account->forced)
        own_data_begin(&taken.kept, &before.deeds, &account->vector);
    if (is_adopted && account->forced && !taken.moment.is_part)
        keep_data();
    else if (is_adopted && !account->forced)
        note_own(&before.deeds, &account->vector);
    merge_account_fini(&before);
    return is_adopted;
}

static bool restore_window(struct worker *worker)
{
    if (taken.moment.is_part)
        return node_files_add_records(worker, &taken.found, taken.error);
    return node_files_restore_window(worker, &taken.moment, &taken.found, taken.error);
}

static struct merge_place flush_in_state(unsigned db)
{
    for (uint32_t i = 0; i < taken.moment.flushes.count; i++) {
        if (taken.moment.flushes.items[i].db == db)
            return taken.moment.flushes.items[i].place;
    }
    return (struct merge_place){0, 0};
}

/* A part has come to what is here, of which the node that gave it may lack a flush. (With a whole state the flushes are
 * those of that node, and one that it lacks is done again.) */
static void flush_part(struct worker *worker)
{
    const struct horizon *horizon = &server_instance()->store->horizon;
    struct place place = {.worker = NULL};

    if (!taken.moment.is_part)
        return;
    place_begin_again(&place, worker);
    for (unsigned db = 0; db < horizon->database_count; db++) {
        if (merge_place_before(flush_in_state(db), horizon_of(horizon, db).flush))
            place_flush_again(&place, db);
    }
    place_end(&place);
    place_fini(&place);
}

static void complete(struct worker *worker, void *context)
{
    bool good;

    (void)context;
    good = restore_window(worker);
    if (good) {
        flush_part(worker);
        good = place_own(worker);
    }
    assert(good || taken.error[0] != '\0');
}

/* --- a part --- */

struct part_reader {
    struct rdb_handler handler; /* first */
    struct access *access;
    struct part_keys deleted; /* not among those of the part before its end: they are many, and these are looked for */
    struct buffer listed;     /* keys with a list or a mark, each a listed_key */
    uint64_t deleted_here;
};

/* Then the name. Records stand in front of the keys or behind them, so only at the end it is known whether the part has
 * this one, too. */
struct listed_key {
    size_t name_size;
    unsigned db;
};

/* What is known of a key of the part goes; of two that could not give first, this node's is kept beside. */
static void give_way(struct access *access, struct part_keys *keys, unsigned db, struct slice name)
{
    const struct key key = key_make(name);
    struct window_key *known;

    part_keys_add(keys, db, &key);
    if (taken.moment.account.forced)
        own_data_keep_key(&taken.kept, access, db, &key);
    known = window_find(access, db, &key);
    if (known != NULL)
        window_remove(access, &known);
}

static bool note_record(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                        struct slice record)
{
    (void)reader;
    (void)record;
    give_way(((struct part_reader *)handler)->access, &taken.part, key->db, key->name);
    return true;
}

static bool pass_library(struct rdb_handler *handler, struct rdb_reader *reader, struct slice source)
{
    (void)handler;
    (void)reader;
    (void)source;
    return true;
}

/* It is no key of the part: it goes. */
static void delete_here(struct part_reader *reader, unsigned db, struct slice name)
{
    const struct key key = key_make(name);
    struct change change;

    give_way(reader->access, &reader->deleted, db, name);
    change_begin(&change, reader->access, db, &key);
    if (change_entry(&change) != NULL) {
        change_delete(&change);
        reader->deleted_here++;
    }
    change_end_untold(&change);
}

static void note_aux(struct rdb_handler *handler, struct slice name, struct slice value)
{
    struct part_reader *reader = (struct part_reader *)handler;
    struct moment_record record;
    char reason[MOMENT_ERROR_BYTES];

    if (!slice_equal(name, RDB_AUX_ORDER_RECORD) ||
        !moment_read_record(value, reader->access->store->database_count, &record, reason))
        return; /* what is wrong is told behind the keys */
    if (record.db >= reader->access->store->database_count) {
        /* a library's, which no part has */
    } else if (record.steps.count != 0 || record.dirty.stamp != 0) {
        const struct listed_key listed = {record.name.size, record.db};

        buffer_append(&reader->listed, &listed, sizeof(listed));
        buffer_append_slice(&reader->listed, record.name);
    } else {
        delete_here(reader, record.db, record.name); /* a tombstone */
    }
    moment_record_fini(&record);
}

static void end_listed(struct part_reader *reader)
{
    const char *at = reader->listed.data, *end = at + reader->listed.size;

    while (at != end) {
        struct listed_key listed;
        struct slice name;
        struct key key;

        memcpy(&listed, at, sizeof(listed));
        name = slice_make(at + sizeof(listed), listed.name_size);
        at += sizeof(listed) + listed.name_size;
        key = key_make(name);
        if (!part_keys_has(&taken.part, listed.db, &key))
            delete_here(reader, listed.db, name);
    }
    buffer_fini(&reader->listed);
}

/* The file was checked; a disk that fails now fails again when it is loaded. */
static void make_room(struct worker *worker, void *context)
{
    struct part_reader part = {.handler = {.record = note_record,
                                           .takes_all_records = true,
                                           .aux = note_aux,
                                           .library = pass_library,
                                           .database_count = worker->server->store->database_count},
                               .access = &worker->run.access};
    struct rdb_load_request request;
    struct rdb_reader reader;
    enum status status = STATUS_IO;

    (void)context;
    gate_assert_alone();
    persistence_fill_load(&request, &worker->run.access);
    part.handler.limits = request.limits;
    rdb_reader_init(&reader, &taken.source.source);
    if (rdb_read_file(&reader, &part.handler) && rewind_file(NULL))
        status = STATUS_OK;
    rdb_reader_fini(&reader);
    end_listed(&part);
    part_keys_add_all(&taken.part, &part.deleted);
    part_keys_fini(&part.deleted);
    log_notice("A part of the state: %" PRIu32 " keys, of which %" PRIu64 " were there and are deleted",
               taken.part.count, part.deleted_here);
    if (status != STATUS_OK)
        log_warning("The part of a state cannot be read");
}

static void end_load(const struct rdb_load_result *result, enum loading_end end, void *context)
{
    (void)context;
    gate_assert_alone();
    if (end == LOADING_REPLACED) {
        taken.end = taken.error[0] == '\0' ? SNAPSHOT_LOADED : SNAPSHOT_LOST;
    } else if (result->status == STATUS_DENIED) {
        taken.end = SNAPSHOT_REFUSED;
        (void)snprintf(taken.error, sizeof(taken.error),
                       "it is not needed, or lacks what only this node has and is not in its history any more");
    } else {
        taken.end = SNAPSHOT_LOST;
        if (result->status == STATUS_INTERRUPTED)
            (void)snprintf(taken.error, sizeof(taken.error), "loading was interrupted");
        else
            (void)snprintf(taken.error, sizeof(taken.error), "at byte %" PRIu64 ": %s", result->failed_at,
                           result->error);
    }
    atomic_store_explicit(&taken.is_done, true, memory_order_release);
    worker_wake(&server_instance()->workers[0]);
}

static void forget(void)
{
    file_close(&taken.file);
    moment_fini(&taken.moment);
    data_order_found_fini(&taken.found);
    merge_vector_fini(&taken.own);
    own_data_fini(&taken.kept);
    part_keys_fini(&taken.part);
    mem_free(taken.path);
    taken = (struct taking){.path = NULL};
}

/* Removing a large file waits for the disk. */
static void remove_file(void *path)
{
    status_ignore(file_remove(path), "it is only in the way");
    mem_free(path);
}

static bool open_source(const char *path, uint64_t *bytes, char error[DATA_ORDER_ERROR_BYTES])
{
    enum status status = node_files_read_state(path, &taken.moment, error) ? STATUS_OK : STATUS_CORRUPT;

    if (status != STATUS_OK)
        return false;
    status = file_open(&taken.file, path, FILE_READ);
    if (status == STATUS_OK)
        status = file_source_init(&taken.source, taken.file);
    if (status == STATUS_OK)
        status = file_size(taken.file, bytes);
    if (status == STATUS_OK)
        return true;
    (void)snprintf(error, DATA_ORDER_ERROR_BYTES, "%s", strerror(errno));
    return false;
}

/* Worker 0. */
static void finish(void)
{
    struct taking done = taken;

    log_notice("The state of a peer was %s%s%s", done.end == SNAPSHOT_LOADED ? "loaded" : "not loaded: ", done.error,
               done.end == SNAPSHOT_LOST ? "; links ask again" : "");
    background_submit(BACKGROUND_OTHER, remove_file, mem_copy(done.path, strlen(done.path) + 1));
    forget();
    done.on_done(done.end, done.error, done.context);
    worker_wake(&server_instance()->workers[0]); /* another state may wait */
}

bool snapshot_load(const char *path, bool forced,
                   void (*on_done)(enum snapshot_end end, const char *error, void *context), void *context)
{
    struct loading_replacement replacement = {
        .source = &taken.source.source,
        .rewind = rewind_file,
        .may_replace = may_replace,
        .frees_later = true,
        .aux = take_aux,
        .loaded = complete,
        .done = end_load,
    };

    worker_assert_zero(&server_instance()->workers[0]);
    if (taken.path != NULL || loading_replaces() || loading_runs())
        return false;
    taken = (struct taking){.path = mem_copy(path, strlen(path) + 1), .on_done = on_done, .context = context};
    if (!open_source(path, &replacement.total_bytes, taken.error)) {
        taken.end = SNAPSHOT_LOST;
        taken.is_done = true;
        worker_wake(&server_instance()->workers[0]);
        return true;
    }
    taken.moment.account.forced = forced;
    if (taken.moment.is_part)
        replacement.part = make_room;
    if (loading_replace(&replacement))
        return true;
    forget();
    return false;
}

static void woken(struct worker *worker)
{
    if (worker->index == 0 && UNLIKELY(taken.path != NULL) &&
        atomic_load_explicit(&taken.is_done, memory_order_acquire))
        finish();
}

const struct lifecycle snapshot_load_lifecycle = {
    .worker_wake = woken,
};
