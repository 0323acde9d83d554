#include "active/node_files.h"

#include "active/node.h"
#include "active/options.h"
#include "active/part.h"
#include "active/place.h"
#include "active/replay.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mpsc.h"
#include "persist/rdb_payload.h"
#include "persist/rdb_read.h"
#include "persist/rdb_write.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/child.h"
#include "server/durable/persistence.h"
#include "store/snapshot_live.h"
#include "store/window.h"
#include "store/window_copy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------- writing -- */

static bool is_on(void)
{
    return active_is_on();
}

static void copy_origins(struct rdb_origins *to, const struct origins *from)
{
    for (unsigned i = 0; i < VERSION_ORIGINS; i++) {
        to->ids[i] = origins_id(from, i);
        to->since[i] = atomic_load_explicit(&from->since[i], memory_order_relaxed);
    }
}

/* How many databases a server has is its own. */
static unsigned db_in_file(const struct store *store, unsigned db)
{
    return db == horizon_libraries_db(&store->horizon) ? MOMENT_LIBRARIES : db;
}

static unsigned db_of_file(const struct store *store, unsigned db)
{
    return db == MOMENT_LIBRARIES ? horizon_libraries_db(&store->horizon) : db;
}

static void fill_flushes(struct moment *moment, const struct store *store)
{
    for (unsigned db = 0; db <= horizon_libraries_db(&store->horizon); db++) {
        const struct merge_place flush = horizon_of(&store->horizon, db).flush;

        if (flush.stamp != 0)
            *ARRAY_PUSH(&moment->flushes) = (struct moment_flush){db_in_file(store, db), flush};
        if (horizon_has_late_flush(&store->horizon, db) &&
            (moment->recheck.stamp == 0 || merge_place_before(flush, moment->recheck)))
            moment->recheck = flush;
    }
}

static void now(struct data_order *order)
{
    const struct store *store = server_instance()->store;
    struct notice_hello hello;
    struct moment moment = {.floor = horizon_floor(&store->horizon)};

    gate_assert_alone();
    node_hello(&hello);
    moment.name = hello.hello.name;
    moment.origin = hello.hello.origin;
    notice_hello_fini(&hello);
    node_account(&moment.account);
    node_note_file(&moment.account.vector);
    fill_flushes(&moment, store);
    copy_origins(&order->origins, &store->origins);
    moment_write(&order->state, &moment);
    moment_fini(&moment);
}

/* What a stripe's window was at the moment: records, each behind its size. Or one, whose base is a large value. */
struct left_records {
    struct mpsc_node node;
    struct buffer records;
    struct live_earlier *base; /* not NULL: the record's, which has it in parts */
    struct buffer back;        /* steps that lead there from what the snapshot gives; mostly none */
};

/* Where operations are taken back, and what a thread writes of a moment while the window changes. */
static struct {
    struct window_copy *copy;   /* const once it is there; created with the gate owned */
    struct window_copy *own;    /* likewise; used by the snapshot's thread alone, while is_kept */
    struct live_snapshot *live; /* of the moment; written with the gate owned */
    const struct part *part;    /* const while it is kept; NULL: of all keys */
    bool is_kept;               /* written with the gate owned, then by the snapshot's thread */
    _Atomic bool is_let_go;     /* atomic: relaxed; nobody wants the rest */
    struct mpsc left;           /* the snapshot's thread takes them out */
} window_kept;

static void put_sized(struct buffer *out, const struct moment_record *record)
{
    const size_t at = out->size;
    size_t size = 0;

    buffer_append(out, &size, sizeof(size));
    moment_write_record(out, record);
    size = out->size - at - sizeof(size);
    memcpy(out->data + at, &size, sizeof(size));
}

/* Where records of a stripe go; live: large values are left to this snapshot, NULL: they are copied. */
struct leaving {
    struct buffer records;
    struct live_snapshot *live;
    const struct part *part; /* NULL: of all keys */
};

static void put_base(struct access *access, const struct window_key *known, struct rdb_writer *writer,
                     struct moment_record *record)
{
    const struct entry *entry = window_copy_base(window_kept.copy, access, known);

    if (entry != NULL) {
        rdb_payload_write(writer, entry);
        record->has_value = true;
        record->expire_ms = entry_expire_ms(entry);
        record->payload = buffer_slice(&writer->out);
    }
    window_copy_release(window_kept.copy);
}

/* The thread writes the value, in parts, and then the record. */
static void leave_base(struct access *access, const struct window_key *known, const struct leaving *leaving,
                       struct moment_record *record, struct left_records *left)
{
    if (leaving->live != NULL)
        left->base = window_copy_leave(window_kept.copy, access, known, leaving->live, &record->expire_ms, &left->back);
    record->has_value = record->is_in_parts = left->base != NULL;
}

static void push_with_base(const struct moment_record *record, const struct left_records *from)
{
    struct left_records *left = mem_alloc(sizeof(*left));

    *left = *from;
    moment_write_record(&left->records, record);
    mpsc_push(&window_kept.left, &left->node);
}

static const struct rdb_write_options base_options = {.least = RDB_VERSION_FIELD_DEADLINES,
                                                      .most = RDB_VERSION_MOST,
                                                      .checksums = true};

/* A list is written as the value at its base, and the operations. */
static void put_list(struct access *access, const struct window_key *known, struct leaving *leaving)
{
    struct moment_record record = {.db = known->db,
                                   .name = window_name(known).name,
                                   .base = known->record.base_place,
                                   .dirty = known->dirty,
                                   .base_overwrote = known->record.base_overwrote,
                                   .expire_ms = EXPIRE_NEVER};
    struct left_records left = {.base = NULL};
    struct merge_spot spot = {0, 0};
    const struct merge_step *step;
    struct rdb_writer writer;

    rdb_writer_init(&writer, &base_options, NULL);
    leave_base(access, known, leaving, &record, &left);
    if (left.base == NULL)
        put_base(access, known, &writer, &record);
    while ((step = merge_record_next(&known->record, &spot)) != NULL)
        *ARRAY_PUSH(&record.steps) = (struct moment_step){.place = step->op->place,
                                                          .prev = step->op->entry->prev,
                                                          .wall = step->op->entry->wall,
                                                          .joined = step->op->entry->joined,
                                                          .words = step->op->words};
    if (left.base != NULL)
        push_with_base(&record, &left);
    else
        put_sized(&leaving->records, &record);
    moment_record_fini(&record);
    rdb_writer_fini(&writer);
}

static void put_known(struct access *access, struct window_key *known, void *context)
{
    struct leaving *leaving = context;
    const struct moment_record record = {.db = db_in_file(access->store, known->db),
                                         .name = window_name(known).name,
                                         .base = merge_record_last(&known->record),
                                         .dirty = known->dirty,
                                         .base_overwrote = known->record.base_overwrote && known->record.count == 0};

    if (leaving->part != NULL && !part_crosses(leaving->part, record.base, record.base_overwrote))
        return;
    if (known->record.count != 0)
        put_list(access, known, leaving);
    else if (known->record.value == NULL || known->dirty.stamp != 0)
        put_sized(&leaving->records, &record); /* else its version says as much */
}

static void make_copy(const struct store *store)
{
    gate_assert_alone();
    if (window_kept.copy == NULL) {
        window_kept.copy = window_copy_create(store);
        window_kept.own = window_copy_create(store);
    }
}

static void leave(struct window_keeper *keeper, struct access *access, uint32_t stripe)
{
    struct leaving leaving = {.live = window_kept.live, .part = window_kept.part};
    struct left_records *left;

    (void)keeper;
    if (atomic_load_explicit(&window_kept.is_let_go, memory_order_relaxed))
        return;
    window_each(access, stripe, put_known, &leaving);
    if (leaving.records.size == 0)
        return;
    left = mem_alloc_zero(sizeof(*left));
    left->records = leaving.records;
    mpsc_push(&window_kept.left, &left->node);
}

static void keep(struct snapshot *keys)
{
    static struct window_keeper keeper = {.leave = leave};
    struct store *store = server_instance()->store;

    gate_assert_alone();
    assert(!window_kept.is_kept);
    if (store->window == NULL)
        return;
    make_copy(store);
    window_kept.part = part_of_snapshot(keys);
    atomic_store_explicit(&window_kept.is_let_go, false, memory_order_relaxed);
    window_kept.live = live_of_snapshot(keys);
    window_kept.is_kept = true;
    window_keep(store, &keeper);
}

struct giving {
    bool (*take)(struct slice record, void *context);
    void *context;
    bool is_live, is_wanted;
    struct leaving leaving; /* of the stripe; it is not live */
};

static void give(struct giving *giving, const struct buffer *records)
{
    for (size_t at = 0, size; at < records->size && giving->is_wanted; at += size) {
        memcpy(&size, records->data + at, sizeof(size));
        at += sizeof(size);
        giving->is_wanted = giving->take(slice_make(records->data + at, size), giving->context);
    }
}

enum { PART_BYTES = 64 << 10 };

/* A payload in parts, as it comes. */
struct parts {
    struct byte_sink sink;
    struct giving *giving;
    struct rdb_writer writer;
    struct rdb_elements elements;
    struct buffer part;
    bool is_whole;
};

static void take_part(struct parts *parts, struct slice bytes)
{
    struct giving *giving = parts->giving;

    buffer_clear(&parts->part);
    moment_write_part(&parts->part, bytes);
    giving->is_wanted = giving->is_wanted && giving->take(buffer_slice(&parts->part), giving->context);
}

static must_check enum status give_part(struct byte_sink *sink, struct slice bytes)
{
    take_part(container_of(sink, struct parts, sink), bytes);
    return STATUS_OK;
}

static bool begin_parts(struct access *access, unsigned db, const struct entry *entry,
                        const struct snapshot_value *value, void *context)
{
    struct parts *parts = context;

    (void)access;
    (void)db;
    return rdb_payload_begin(&parts->writer, &parts->elements, entry, value->first_ms, value->count);
}

static void put_element(const struct former_element *element, int64_t expire_ms, void *context)
{
    struct parts *parts = context;

    rdb_write_one(&parts->writer, &parts->elements, element, expire_ms);
}

static void put_deadline(struct slice member, int64_t expire_ms, void *context)
{
    rdb_write_member_deadline(&((struct parts *)context)->writer, member, expire_ms);
}

static void end_parts(void *context)
{
    struct parts *parts = context;

    rdb_payload_end(&parts->writer, &parts->elements);
    parts->is_whole = rdb_writer_flush(&parts->writer) == STATUS_OK;
}

static bool wants_parts(void *context)
{
    return ((struct parts *)context)->giving->is_wanted;
}

/* Visits the base, or what it is to be made of, into parts->writer. */
static void visit_base(struct parts *parts, struct left_records *left)
{
    const struct snapshot_visitor visitor = {.begin = begin_parts,
                                             .element = put_element,
                                             .deadline = put_deadline,
                                             .end = end_parts,
                                             .rest = wants_parts,
                                             .context = parts,
                                             .sees_expired = true};

    live_visit_earlier(window_kept.live, &left->base, &visitor);
    parts->giving->is_wanted = parts->giving->is_wanted && parts->is_whole;
}

static void put_read(struct change *change, void *context)
{
    struct rdb_value *value = context;

    if (value->type == TYPE_STRING)
        change_put_string(change, value->text, EXPIRE_NEVER);
    else
        change_put_value(change, value->type, value->value, EXPIRE_NEVER);
    value->value.data = NULL;
}

/* The payload of what the snapshot gave becomes that of the base. */
static void rebuild(struct slice payload, struct slice back, struct rdb_writer *out)
{
    const struct rdb_limits limits = persistence_limits();
    struct rdb_value value;
    struct rdb_reader reader;
    bool is_read;

    rdb_reader_init_memory(&reader, slice_make(payload.data, payload.size - RDB_PAYLOAD_TAIL_BYTES));
    is_read = rdb_payload_read(&reader, &limits, &value);
    assert(is_read && !value.is_empty); /* it was written just now */
    rdb_payload_write(out, window_copy_rebuild(window_kept.own, put_read, &value, back));
    rdb_value_destroy(&value);
    window_copy_release(window_kept.own);
    rdb_reader_fini(&reader);
}

/* The base is made of what the snapshot gives, a copy, under no lock. */
static void give_rebuilt(struct giving *giving, struct left_records *left)
{
    struct parts parts = {.giving = giving};
    struct rdb_writer out;

    rdb_writer_init(&parts.writer, &base_options, NULL);
    rdb_writer_init(&out, &base_options, NULL);
    visit_base(&parts, left);
    if (giving->is_wanted)
        rebuild(buffer_slice(&parts.writer.out), buffer_slice(&left->back), &out);
    rdb_writer_fini(&parts.writer);
    for (size_t at = 0, size; at < out.out.size && giving->is_wanted; at += size) {
        size = MIN(out.out.size - at, (size_t)PART_BYTES);
        take_part(&parts, slice_make(out.out.data + at, size));
    }
    rdb_writer_fini(&out);
    buffer_fini(&parts.part);
}

static void give_base(struct giving *giving, struct left_records *left)
{
    struct parts parts = {.sink = {give_part}, .giving = giving};

    rdb_writer_init(&parts.writer, &base_options, &parts.sink);
    visit_base(&parts, left);
    rdb_writer_fini(&parts.writer);
    buffer_fini(&parts.part);
}

/* False: it is not wanted any more. */
static bool still_wants(const struct giving *giving)
{
    return giving->is_wanted && !atomic_load_explicit(&window_kept.is_let_go, memory_order_relaxed);
}

static void give_with_base(struct giving *giving, struct left_records *left)
{
    if (left->back.size != 0)
        give_rebuilt(giving, left);
    else
        give_base(giving, left);
    giving->is_wanted = giving->is_wanted && giving->take(buffer_slice(&left->records), giving->context);
}

static void give_left(struct giving *giving, struct left_records *left)
{
    if (left->base == NULL)
        give(giving, &left->records);
    else if (still_wants(giving))
        give_with_base(giving, left);
    else
        live_visit_earlier(window_kept.live, &left->base, NULL);
    buffer_fini(&left->records);
    buffer_fini(&left->back);
    mem_free(left);
}

static void hold_stripe(struct access *access, uint32_t stripe, void *context)
{
    struct giving *giving = context;

    if (giving->is_live)
        window_leave(access, stripe);
    else
        window_each(access, stripe, put_known, &giving->leaving);
}

static bool give_some(void *context)
{
    struct giving *giving = context;
    struct mpsc_node *node;

    while (giving->is_live && (node = mpsc_pop(&window_kept.left)) != NULL)
        give_left(giving, container_of(node, struct left_records, node));
    give(giving, &giving->leaving.records);
    buffer_clear(&giving->leaving.records);
    return giving->is_wanted;
}

static void give_records(struct snapshot *keys, bool (*take)(struct slice record, void *context), void *context)
{
    struct giving giving = {.take = take,
                            .context = context,
                            .is_live = snapshot_is_live(keys),
                            .is_wanted = true,
                            .leaving.part = part_of_snapshot(keys)};
    const struct snapshot_holder holder = {hold_stripe, give_some, &giving};

    if (giving.is_live ? !window_kept.is_kept : keys->access->store->window == NULL)
        return;
    if (!giving.is_live)
        make_copy(keys->access->store);
    if (snapshot_each_stripe(keys, &holder) && giving.is_live) {
        window_kept.is_kept = false;
        window_keep_end(keys->access->store);
    }
    buffer_fini(&giving.leaving.records);
}

static bool take_nothing(struct slice record, void *context)
{
    (void)record;
    (void)context;
    return true;
}

/* Nobody leaves anything behind the end. */
static void let_go(struct snapshot *keys)
{
    if (!window_kept.is_kept)
        return;
    atomic_store_explicit(&window_kept.is_let_go, true, memory_order_relaxed);
    give_records(keys, take_nothing, NULL);
    assert(!window_kept.is_kept);
}

/* ------------------------------------------------------------------------------------------------------- reading -- */

static bool is_wanted(void)
{
    return OPTION_IS(option_active_replica);
}

static unsigned number_of(uint64_t id)
{
    return origins_number(&server_instance()->store->origins, id);
}

static bool fail(char error[DATA_ORDER_ERROR_BYTES], const char *reason)
{
    (void)snprintf(error, DATA_ORDER_ERROR_BYTES, "%s", reason);
    return false;
}

/* The history went with the process, or stayed with the sponsor: all of it counts as gone. What is above the last
 * operation was only promised, and nobody lacks it. */
static void cut_history(struct merge_account *account)
{
    merge_vector_raise_all(&account->cut, &account->deeds);
}

static bool read_moment(struct slice state, struct moment *moment, char error[DATA_ORDER_ERROR_BYTES])
{
    char reason[MOMENT_ERROR_BYTES];

    if (!moment_read(state, server_instance()->store->database_count, moment, reason))
        return fail(error, reason);
    cut_history(&moment->account);
    return true;
}

static void put_record(struct access *access, const struct moment_record *record)
{
    const struct key key = key_make(record->name);
    const unsigned db = db_of_file(access->store, record->db);
    const struct entry *entry = db == record->db ? access_probe(access, db, &key) : NULL;
    struct merge_record kept = {.base_place = record->base, .base_overwrote = record->base_overwrote};
    struct window_key *known;

    if (entry != NULL && record->dirty.stamp == 0)
        return; /* it has come back behind its end */
    if (entry != NULL)
        window_base(access, db, true, entry_version(entry), &kept);
    known = window_find(access, db, &key);
    if (known == NULL)
        known = window_add(access, db, &key, &kept);
    if (record->dirty.stamp != 0)
        window_mark(access, known, record->dirty);
}

static bool is_value(struct slice payload)
{
    const struct rdb_limits limits = persistence_limits();
    struct rdb_reader reader;
    struct rdb_value value;
    struct slice body;
    bool is_right;

    if (!rdb_payload_check(payload, &body))
        return false;
    rdb_reader_init_memory(&reader, body);
    is_right = rdb_payload_read(&reader, &limits, &value);
    if (is_right) {
        is_right = !value.is_empty;
        rdb_value_destroy(&value);
    }
    rdb_reader_fini(&reader);
    return is_right;
}

static bool check_record(const struct moment_record *record, unsigned db_count, char error[DATA_ORDER_ERROR_BYTES])
{
    if (record->steps.count != 0 && record->db >= db_count)
        return fail(error, "a record of the window: a library of functions with a list");
    if (record->steps.count != 0 && record->has_value && !is_value(record->payload))
        return fail(error, "a record of the window: what it begins with is no value");
    return true;
}

/* The records of a file, one after the other. */
struct record_walk {
    const struct data_order_found *found;
    uint32_t at;
    struct buffer parts; /* of the record, if it has some */
    struct moment_record record;
};

static bool take_parts(struct record_walk *walk)
{
    const struct data_order_found *found = walk->found;
    struct slice part;

    buffer_clear(&walk->parts);
    for (; walk->at < found->records.count && moment_is_part(found->records.items[walk->at], &part); walk->at++)
        buffer_append_slice(&walk->parts, part);
    return walk->at < found->records.count;
}

/* False: there is no more, or *is_right is false and `error` has the reason. */
static bool next_record(struct record_walk *walk, bool *is_right, char error[DATA_ORDER_ERROR_BYTES])
{
    const unsigned db_count = server_instance()->store->database_count;
    char reason[MOMENT_ERROR_BYTES];

    moment_record_fini(&walk->record);
    walk->record = (struct moment_record){.db = 0};
    if (!take_parts(walk)) {
        *is_right = walk->parts.size == 0 || fail(error, "a record of the window: parts of a value without a record");
        return false;
    }
    if (!moment_read_record(walk->found->records.items[walk->at++], db_count, &walk->record, reason))
        return *is_right = fail(error, reason);
    if (walk->record.is_in_parts != (walk->parts.size != 0))
        return *is_right = fail(error, "a record of the window: parts of a value and no such record");
    if (walk->record.is_in_parts)
        walk->record.payload = buffer_slice(&walk->parts);
    return *is_right = true;
}

static void end_walk(struct record_walk *walk)
{
    moment_record_fini(&walk->record);
    buffer_fini(&walk->parts);
}

/* Before anything of them counts. */
static bool check_records(const struct data_order_found *found, bool *has_lists, char error[DATA_ORDER_ERROR_BYTES])
{
    const unsigned db_count = server_instance()->store->database_count;
    struct record_walk walk = {.found = found};
    bool is_right;

    *has_lists = false;
    while (next_record(&walk, &is_right, error)) {
        is_right = check_record(&walk.record, db_count, error);
        if (!is_right)
            break;
        *has_lists |= walk.record.steps.count != 0;
    }
    end_walk(&walk);
    return is_right;
}

enum { BATCH_STEPS = 1024 };

/* The key begins anew with the value at its base, and the operations run again: that gives its value, its list, and
 * what takes each of them back. */
static bool run_list(struct place *place, const struct moment_record *record)
{
    const struct place_base base = {.db = record->db,
                                    .key = key_make(record->name),
                                    .place = record->base,
                                    .dirty = record->dirty,
                                    .overwrote = record->base_overwrote,
                                    .has_value = record->has_value,
                                    .expire_ms = record->expire_ms,
                                    .payload = record->payload};

    if (!place_base(place, &base))
        return false;
    for (uint32_t i = 0; i < record->steps.count; i++) {
        const struct moment_step *from = &record->steps.items[i];
        const struct window_step step = {.place = from->place,
                                         .previous = from->prev,
                                         .wall = from->wall,
                                         .words = from->words,
                                         .exists = true,
                                         .joined = from->joined};

        place_step(place, record->db, &base.key, &step);
        if (i % BATCH_STEPS == BATCH_STEPS - 1) {
            struct worker *worker = place->worker;

            place_end(place);
            place_begin_again(place, worker);
        }
    }
    return true;
}

/* A thread that only loads has no worker, and one may be busy: operations run by one of their own. */
static struct worker *open_worker(void)
{
    struct worker *worker = mem_alloc(sizeof(*worker));

    worker_init(worker, server_instance(), WORKER_OF_LOADER);
    return worker;
}

/* They were checked. */
static bool put_lists(struct worker *given, const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES])
{
    struct worker *worker = given != NULL ? given : open_worker();
    struct effects *effects = worker->run.access.effects;
    struct record_walk walk = {.found = found};
    struct place place = {.worker = NULL};
    bool is_right;

    place_begin_again(&place, worker);
    while (next_record(&walk, &is_right, error)) {
        if (walk.record.steps.count == 0 || run_list(&place, &walk.record))
            continue;
        is_right = fail(error, "a record of the window: what it begins with cannot be taken");
        break;
    }
    end_walk(&walk);
    place.told = place.counts; /* they were counted when they came */
    place_end(&place);
    place_fini(&place);
    worker->run.access.effects = effects;
    if (given == NULL) {
        worker_fini(worker);
        mem_free(worker);
    }
    return is_right;
}

static bool put_records(struct worker *worker, struct access *access, const struct data_order_found *found,
                        char error[DATA_ORDER_ERROR_BYTES])
{
    struct record_walk walk = {.found = found};
    bool is_right, has_lists;

    if (!check_records(found, &has_lists, error))
        return false;
    while (next_record(&walk, &is_right, error)) {
        if (walk.record.steps.count == 0)
            put_record(access, &walk.record);
    }
    end_walk(&walk);
    return is_right && (!has_lists || put_lists(worker, found, error));
}

bool node_files_add_records(struct worker *worker, const struct data_order_found *found,
                            char error[DATA_ORDER_ERROR_BYTES])
{
    struct store_counters counters = {0};
    struct access access;

    gate_assert_alone();
    access_init(&access, server_instance()->store, &counters);
    access_begin(&access, clock_wall_ms(), true);
    return put_records(worker, &access, found, error);
}

/* A file has the oldest one alone: of those that are younger it is told, too. */
static void note_late_flushes(struct horizon *horizon, struct merge_place oldest)
{
    for (unsigned db = 0; db < horizon->database_count && oldest.stamp != 0; db++) {
        if (!merge_place_before(horizon_of(horizon, db).flush, oldest))
            horizon_note_late_flush(horizon, db);
    }
}

bool node_files_restore_window(struct worker *worker, const struct moment *moment, const struct data_order_found *found,
                               char error[DATA_ORDER_ERROR_BYTES])
{
    struct store *store = server_instance()->store;
    struct merge_place *flushes = mem_alloc_zero((store->database_count + 1) * sizeof(*flushes));
    struct store_counters counters = {0};
    struct access access;

    gate_assert_alone();
    assert(store->window != NULL);
    for (uint32_t i = 0; i < moment->flushes.count; i++)
        flushes[db_of_file(store, moment->flushes.items[i].db)] = moment->flushes.items[i].place;
    horizon_replace_past(&store->horizon, moment->floor, flushes);
    note_late_flushes(&store->horizon, moment->recheck);
    mem_free(flushes);
    access_init(&access, store, &counters);
    access_begin(&access, clock_wall_ms(), true);
    for (unsigned db = 0; db <= horizon_libraries_db(&store->horizon); db++)
        window_forget_db(&access, db);
    return put_records(worker, &access, found, error);
}

/* From a load at start until the node begins. */
static struct {
    struct moment moment;
    struct data_order_found found;
    bool is_there;
} pending;

static void keep_pending(struct moment *moment, const struct data_order_found *found)
{
    moment_fini(&pending.moment);
    data_order_found_fini(&pending.found);
    pending.moment = *moment;
    memset(&pending.found, 0, sizeof(pending.found));
    for (uint32_t i = 0; i < found->records.count; i++)
        data_order_take(&pending.found, RDB_AUX_ORDER_RECORD, found->records.items[i]);
    pending.is_there = true;
    *moment = (struct moment){.name = 0};
}

void node_files_begin(void)
{
    char error[DATA_ORDER_ERROR_BYTES];

    gate_assert_alone();
    if (pending.is_there && active_is_on() && !node_files_restore_window(NULL, &pending.moment, &pending.found, error))
        log_warning("The window of the file is lost: %s", error);
    moment_fini(&pending.moment);
    data_order_found_fini(&pending.found);
    memset(&pending, 0, sizeof(pending));
}

/* An append-only file: the entries behind its base are placed. */
static bool begin(struct worker *worker, const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES])
{
    struct moment moment = {.name = 0};
    bool good = true;

    gate_assert_alone();
    if (!active_is_on())
        node_prepare();
    if (found->state.size != 0)
        good = read_moment(buffer_slice(&found->state), &moment, error);
    good = good && node_files_restore_window(worker, &moment, found, error);
    if (good)
        replay_begin(&moment.account.deeds, found->state.size != 0);
    moment_fini(&moment);
    return good;
}

static bool restore(struct access *access, const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES])
{
    struct moment moment = {.name = 0};
    bool good = true, has_lists;

    (void)access;
    if (found->state.size != 0)
        good = read_moment(buffer_slice(&found->state), &moment, error) && check_records(found, &has_lists, error);
    merge_vector_raise_all(&moment.account.vector, &found->done);
    merge_vector_raise_all(&moment.account.deeds, &found->done);
    merge_vector_raise_all(&moment.account.cut, &found->done);
    for (uint32_t i = 0; i < found->done.count; i++)
        moment.account.clock = MAX(moment.account.clock, found->done.items[i].stamp);
    if (good && active_is_on()) { /* it knows its state already */
        /* This thread's worker is in the middle of a command. */
        good = found->is_begun || node_files_restore_window(NULL, &moment, found, error);
    } else if (good) {
        node_resume(&moment.account);
        if (!found->is_begun)
            keep_pending(&moment, found);
    }
    moment_fini(&moment);
    return good;
}

/* ------------------------------------------------------------------------------------------------ a file's front -- */

static bool find_state(struct rdb_reader *reader, struct moment *moment, char error[DATA_ORDER_ERROR_BYTES])
{
    struct slice name, value, magic;
    bool is_part = false;
    unsigned opcode;

    if (!rdb_read_bytes(reader, RDB_HEADER_BYTES, &magic) || !slice_starts_with(magic, SLICE("REDIS")))
        return fail(error, "it is not an RDB file");
    while (rdb_read_byte(reader, &opcode) && opcode == RDB_AUX && rdb_read_texts(reader, &name, &value)) {
        is_part |= slice_equal(name, RDB_AUX_ORDER_PART);
        if (!slice_equal(name, RDB_AUX_ORDER_STATE))
            continue;
        if (!read_moment(value, moment, error))
            return false;
        moment->is_part = is_part;
        return true;
    }
    return fail(error, reader->status != STATUS_OK ? reader->error : "it has no state of a node");
}

bool node_files_read_state(const char *path, struct moment *moment, char error[DATA_ORDER_ERROR_BYTES])
{
    struct file *file = NULL;
    struct file_source source;
    struct rdb_reader reader;
    bool good = false;

    if (file_open(&file, path, FILE_READ) != STATUS_OK || file_source_init(&source, file) != STATUS_OK) {
        (void)fail(error, strerror(errno));
    } else {
        rdb_reader_init(&reader, &source.source);
        good = find_state(&reader, moment, error);
        rdb_reader_fini(&reader);
    }
    file_close(&file);
    return good;
}

static const struct data_order_keeper keeper = {
    .is_on = is_on,
    .is_wanted = is_wanted,
    .now = now,
    .stored = node_file_is_stored,
    .records = give_records,
    .keep = keep,
    .let_go = let_go,
    .origin = number_of,
    .begin = begin,
    .place = replay_place,
    .end = replay_end,
    .restore = restore,
};

void node_files_setup(void)
{
    gate_assert_main_alone();
    mpsc_init(&window_kept.left);
    data_order_provide(&keeper);
}

void node_files_teardown(void)
{
    gate_assert_main_alone();
    window_copy_destroy(&window_kept.copy);
    window_copy_destroy(&window_kept.own);
}
