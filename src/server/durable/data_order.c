#include "server/durable/data_order.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"
#include "store/origins.h"
#include "store/stamp.h"
#include "store/window.h"

static const struct data_order_keeper *keeper; /* global: const after setup; NULL: none */

void data_order_provide(const struct data_order_keeper *provided)
{
    gate_assert_main_alone();
    assert(keeper == NULL && provided->is_on != NULL && provided->is_wanted != NULL && provided->now != NULL &&
           provided->records != NULL && provided->keep != NULL && provided->let_go != NULL && provided->begin != NULL &&
           provided->place != NULL && provided->end != NULL && provided->origin != NULL && provided->restore != NULL &&
           provided->stored != NULL);
    keeper = provided;
}

static bool is_on(void)
{
    return keeper != NULL && keeper->is_on();
}

bool data_order_is_wanted(void)
{
    return keeper != NULL && keeper->is_wanted();
}

void data_order_now(struct data_order *order)
{
    gate_assert_alone();
    buffer_clear(&order->state);
    if (!is_on())
        return;
    keeper->now(order);
    assert(order->state.size != 0);
}

void data_order_stored(void)
{
    if (is_on())
        keeper->stored();
}

void data_order_keep(struct snapshot *keys)
{
    gate_assert_alone();
    if (is_on())
        keeper->keep(keys);
}

void data_order_let_go(struct snapshot *keys)
{
    if (keeper != NULL)
        keeper->let_go(keys);
}

void data_order_copy(struct data_order *to, const struct data_order *from)
{
    struct buffer state = to->state;

    buffer_clear(&state);
    buffer_append_slice(&state, buffer_slice(&from->state));
    *to = *from;
    to->state = state;
}

void data_order_fini(struct data_order *order)
{
    buffer_fini(&order->state);
}

static void give_records(struct snapshot *keys, bool (*take)(struct slice record, void *context), void *context)
{
    keeper->records(keys, take, context);
}

void data_order_fill_save(const struct data_order *order, struct rdb_save_request *request, struct rdb_aux *aux)
{
    if (data_order_is_empty(order))
        return;
    assert(aux == request->aux + request->aux_count);
    *aux = (struct rdb_aux){RDB_AUX_ORDER_STATE, buffer_slice(&order->state)};
    request->aux_count++;
    request->origins = &order->origins;
    request->records = give_records;
    request->with_expired = true; /* they go when the frontiers say so */
}

unsigned data_order_origin(uint64_t id, void *context)
{
    (void)context;
    assert(id != 0);
    return keeper->origin(id);
}

void data_order_take(struct data_order_found *found, struct slice name, struct slice value)
{
    if (slice_equal(name, RDB_AUX_ORDER_STATE)) {
        buffer_clear(&found->state);
        buffer_append_slice(&found->state, value);
    } else if (slice_equal(name, RDB_AUX_ORDER_RECORD)) {
        *ARRAY_PUSH(&found->records) = slice_make(mem_copy(value.data, value.size), value.size);
    }
}

bool data_order_begin(struct data_order_found *found, struct worker *worker, char error[DATA_ORDER_ERROR_BYTES])
{
    gate_assert_alone();
    assert(data_order_is_wanted() && !found->is_begun);
    found->is_begun = true;
    return keeper->begin(worker, found, error);
}

void data_order_place(struct data_order_found *found, struct worker *worker, const struct data_order_entry *entry)
{
    gate_assert_alone();
    assert(found->is_begun);
    keeper->place(worker, entry);
    merge_vector_raise(&found->done, entry->origin, entry->stamp);
}

uint64_t data_order_leave(struct access *access, unsigned db, const struct key *key)
{
    struct window_key *known = window_find(access, db, key);
    const struct entry *entry = access_probe(access, db, key);
    uint64_t last = entry != NULL ? version_stamp(entry_version(entry)) : 0;

    gate_assert_alone();
    if (known != NULL) {
        last = merge_record_last(&known->record).stamp;
        window_remove(access, &known);
    }
    return last;
}

void data_order_left(struct access *access, unsigned db, const struct key *key, uint64_t last)
{
    gate_assert_alone();
    if (access_probe(access, db, key) == NULL)
        horizon_raise_floor(&access->store->horizon, last);
}

void data_order_end(const struct data_order_found *found)
{
    if (found->is_begun)
        keeper->end();
}

bool data_order_restore(struct access *access, const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES])
{
    gate_assert_alone();
    return !data_order_is_wanted() || keeper->restore(access, found, error);
}

void data_order_found_fini(struct data_order_found *found)
{
    buffer_fini(&found->state);
    for (uint32_t i = 0; i < found->records.count; i++)
        mem_free((void *)(uintptr_t)found->records.items[i].data);
    ARRAY_FINI(&found->records);
    merge_vector_fini(&found->done);
}
