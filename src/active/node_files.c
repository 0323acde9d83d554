#include "active/node_files.h"

#include "active/node.h"
#include "active/options.h"
#include "active/part.h"
#include "active/replay.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/rdb_read.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/child.h"
#include "store/window.h"

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
    fill_flushes(&moment, store);
    copy_origins(&order->origins, &store->origins);
    moment_write(&order->state, &moment);
    moment_fini(&moment);
}

struct giving {
    void (*take)(struct slice record, void *context);
    void *context;
    struct buffer bytes;
};

static const struct part *written; /* global: a forked child's; NULL: all is written */

void node_files_write_part(const struct part *part)
{
    assert(child_is_copy());
    written = part;
}

/* Lists are left out: the key's base is its last operation then. */
static void give_record(struct access *access, struct window_key *known, void *context)
{
    struct giving *giving = context;
    const struct key key = window_name(known);
    const struct moment_record record = {.db = db_in_file(access->store, known->db),
                                         .name = key.name,
                                         .base = merge_record_last(&known->record),
                                         .dirty = known->dirty,
                                         .base_overwrote = known->record.base_overwrote && known->record.count == 0};

    if (known->record.value != NULL && known->dirty.stamp == 0)
        return; /* its version says as much */
    if (written != NULL && (known->record.value != NULL || !part_crosses(written, record.base, record.base_overwrote)))
        return;
    buffer_clear(&giving->bytes);
    moment_write_record(&giving->bytes, &record);
    giving->take(buffer_slice(&giving->bytes), giving->context);
}

static void give_records(struct access *access, void (*take)(struct slice record, void *context), void *context)
{
    struct giving giving = {.take = take, .context = context};

    gate_assert_alone();
    for (uint32_t i = 0; access->store->window != NULL && i <= access->store->stripe_mask; i++)
        window_each_lasting(access, i, give_record, &giving);
    buffer_fini(&giving.bytes);
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

static bool put_records(struct access *access, const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES])
{
    char reason[MOMENT_ERROR_BYTES];
    struct moment_record record;

    for (uint32_t i = 0; i < found->records.count; i++) {
        if (!moment_read_record(found->records.items[i], access->store->database_count, &record, reason))
            return fail(error, reason);
        put_record(access, &record);
        moment_record_fini(&record);
    }
    return true;
}

bool node_files_add_tombstones(const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES])
{
    struct store_counters counters = {0};
    struct access access;

    gate_assert_alone();
    access_init(&access, server_instance()->store, &counters);
    access_begin(&access, clock_wall_ms(), true);
    return put_records(&access, found, error);
}

bool node_files_restore_window(const struct moment *moment, const struct data_order_found *found,
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
    mem_free(flushes);
    access_init(&access, store, &counters);
    access_begin(&access, clock_wall_ms(), true);
    for (unsigned db = 0; db <= horizon_libraries_db(&store->horizon); db++)
        window_forget_db(&access, db);
    return put_records(&access, found, error);
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
    if (pending.is_there && active_is_on() && !node_files_restore_window(&pending.moment, &pending.found, error))
        log_warning("The window of the file is lost: %s", error);
    moment_fini(&pending.moment);
    data_order_found_fini(&pending.found);
    memset(&pending, 0, sizeof(pending));
}

/* An append-only file: the entries behind its base are placed. */
static bool begin(const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES])
{
    struct moment moment = {.name = 0};
    bool good = true;

    gate_assert_alone();
    if (!active_is_on())
        node_prepare();
    if (found->state.size != 0)
        good = read_moment(buffer_slice(&found->state), &moment, error);
    good = good && node_files_restore_window(&moment, found, error);
    if (good)
        replay_begin(&moment.account.deeds, found->state.size != 0);
    moment_fini(&moment);
    return good;
}

static bool restore(struct access *access, const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES])
{
    struct moment moment = {.name = 0};
    bool good = true;

    (void)access;
    if (found->state.size != 0)
        good = read_moment(buffer_slice(&found->state), &moment, error);
    merge_vector_raise_all(&moment.account.vector, &found->done);
    merge_vector_raise_all(&moment.account.deeds, &found->done);
    merge_vector_raise_all(&moment.account.cut, &found->done);
    for (uint32_t i = 0; i < found->done.count; i++)
        moment.account.clock = MAX(moment.account.clock, found->done.items[i].stamp);
    if (good && active_is_on()) { /* it knows its state already */
        good = found->is_begun || node_files_restore_window(&moment, found, error);
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
    .records = give_records,
    .origin = number_of,
    .begin = begin,
    .place = replay_place,
    .end = replay_end,
    .restore = restore,
};

void node_files_setup(void)
{
    gate_assert_main_alone();
    data_order_provide(&keeper);
}
