#include "server/durable/data_history.h"

#include "base/assert.h"
#include "base/gate.h"

#include <ctype.h>
#include <string.h>

static const struct data_history_keeper *keeper; /* global: const after setup; NULL: none */

void data_history_provide(const struct data_history_keeper *provided)
{
    gate_assert_main_alone();
    assert(keeper == NULL && provided->now != NULL && provided->restore != NULL);
    keeper = provided;
}

bool data_history_now(struct data_history *history)
{
    gate_assert_alone();
    return keeper != NULL && keeper->now(history);
}

void data_history_restore(const struct data_history *history)
{
    gate_assert_alone();
    if (keeper != NULL)
        keeper->restore(history);
}

void data_history_write(const struct data_history *history, struct data_history_texts *texts,
                        struct rdb_aux facts[DATA_HISTORY_FACTS])
{
    size_t db = number_format_u64(texts->db, history->stream_db);
    size_t offset = number_format_i64(texts->offset, history->offset);

    facts[0] = (struct rdb_aux){SLICE("repl-stream-db"), slice_make(texts->db, db)};
    facts[1] = (struct rdb_aux){SLICE("repl-id"), slice_make(history->id, DATA_HISTORY_ID_SIZE)};
    facts[2] = (struct rdb_aux){SLICE("repl-offset"), slice_make(texts->offset, offset)};
}

static bool take_id(struct data_history *history, struct slice value)
{
    if (value.size != DATA_HISTORY_ID_SIZE)
        return false;
    for (size_t i = 0; i < value.size; i++) {
        if (!isxdigit((unsigned char)value.data[i]))
            return false;
        history->id[i] = (char)tolower((unsigned char)value.data[i]);
    }
    history->id[DATA_HISTORY_ID_SIZE] = '\0';
    return true;
}

void data_history_take(struct data_history_found *found, struct slice name, struct slice value)
{
    struct data_history *history = &found->history;
    uint64_t db;

    if (slice_equal_text(name, "repl-id")) {
        found->has_id = take_id(history, value);
    } else if (slice_equal_text(name, "repl-offset")) {
        found->has_offset = number_parse_i64(value, &history->offset) && history->offset >= 0;
    } else if (slice_equal_text(name, "repl-stream-db")) {
        found->has_db = number_parse_u64(value, &db) && db <= INT32_MAX;
        history->stream_db = found->has_db ? (unsigned)db : 0;
    }
}
