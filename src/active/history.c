#include "active/history.h"

#include "active/options.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "server/upkeep/journal_limits.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------------- marks -- */

void history_marks_fini(struct history_marks *marks)
{
    for (uint32_t i = 0; i < marks->count; i++)
        merge_vector_fini(&marks->items[i].deeds);
    ARRAY_FINI(marks);
}

/* Records have more bytes than their words, or refer to them: the history is as long as either. */
static uint64_t distance(const struct history_mark *mark, uint64_t position, uint64_t bytes)
{
    assert(position >= mark->position && bytes >= mark->bytes);
    return MAX(position - mark->position, bytes - mark->bytes);
}

void history_marks_add(struct history_marks *marks, uint64_t position, uint64_t bytes, const struct merge_vector *deeds,
                       uint64_t limit_bytes)
{
    const uint64_t apart = limit_bytes / (HISTORY_MARKS_MOST - 2) + 1;
    struct history_mark *mark;

    if (marks->count != 0 && distance(&marks->items[marks->count - 1], position, bytes) < apart)
        return;
    mark = ARRAY_PUSH(marks);
    *mark = (struct history_mark){.position = position, .bytes = bytes};
    merge_vector_copy(&mark->deeds, deeds);
}

static bool may_go(const struct history_mark *mark, uint64_t position, uint64_t bytes, uint64_t limit_bytes,
                   const struct merge_vector *held, uint64_t held_bytes)
{
    const uint64_t kept = distance(mark, position, bytes);

    return kept > limit_bytes || (kept > held_bytes && merge_vector_covers(held, &(mark + 1)->deeds));
}

void history_marks_trim(struct history_marks *marks, uint64_t position, uint64_t bytes, uint64_t limit_bytes,
                        const struct merge_vector *held, uint64_t held_bytes)
{
    uint32_t gone = 0;

    while (gone + 1 < marks->count && may_go(&marks->items[gone], position, bytes, limit_bytes, held, held_bytes))
        merge_vector_fini(&marks->items[gone++].deeds);
    if (gone == 0)
        return;
    marks->count -= gone;
    memmove(marks->items, marks->items + gone, marks->count * sizeof(*marks->items));
}

void history_marks_skip(struct history_marks *marks, const struct merge_vector *skipped)
{
    for (uint32_t i = 0; i < marks->count; i++)
        merge_vector_raise_all(&marks->items[i].deeds, skipped);
}

static bool is_covered(const struct history_mark *mark, const struct merge_vector *behind)
{
    for (uint32_t i = 0; i < behind->count; i++) {
        if (merge_vector_get(&mark->deeds, behind->items[i].id) > behind->items[i].stamp)
            return false;
    }
    return true;
}

const struct history_mark *history_marks_find(const struct history_marks *marks, const struct merge_vector *behind)
{
    uint32_t low = 0, high = marks->count; /* those below `low` are covered, those from `high` on are not */

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (is_covered(&marks->items[middle], behind))
            low = middle + 1;
        else
            high = middle;
    }
    return low != 0 ? &marks->items[low - 1] : NULL;
}

/* ------------------------------------------------------------------------------------------------- this server -- */

enum { HELD_PART = 4 }; /* of journal-memory-limit */
enum { PLACE_FLAGS = JOURNAL_READER_PLACE | JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS };

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct history_marks marks GUARDED_BY(lock);
    struct journal *journal;         /* changed with the gate owned; NULL: it was not started */
    struct journal_reader places[2]; /* worker 0's; at the first mark: the one that is open */
    unsigned place;                  /* likewise: its index */
    _Atomic bool is_cut;             /* atomic: relaxed; the place was given up, for the file is full */
} history = {.lock = {.rank = LOCK_REGISTRY}};

static void on_change(struct journal_reader *reader)
{
    (void)reader;
    atomic_store_explicit(&history.is_cut, true, memory_order_relaxed);
}

void active_history_start(struct journal *journal, const struct merge_vector *deeds)
{
    struct journal_reader *place = &history.places[0];
    uint64_t position;

    gate_assert_alone();
    assert(history.journal == NULL && history.marks.count == 0);
    history.journal = journal;
    history.place = 0;
    atomic_store_explicit(&history.is_cut, false, memory_order_relaxed);
    journal_reader_open(place, journal);
    place->on_change = on_change;
    journal_reader_set(place, PLACE_FLAGS, 0);
    position = journal_end_position(journal);
    spinlock_acquire(&history.lock);
    history_marks_add(&history.marks, position, journal_end_bytes(journal), deeds, 0);
    spinlock_release(&history.lock);
}

bool active_history_has_begun(void)
{
    gate_assert_alone();
    return history.journal != NULL;
}

void active_history_stop(void)
{
    gate_assert_no_traffic();
    if (history.journal == NULL)
        return;
    journal_reader_close(&history.places[history.place]);
    history.journal = NULL;
    spinlock_acquire(&history.lock);
    history_marks_fini(&history.marks);
    spinlock_release(&history.lock);
}

/* What was before is lost: history begins anew at this position. */
static bool begin_anew(uint64_t position, uint64_t bytes, const struct merge_vector *deeds)
{
    struct journal_reader *old = &history.places[history.place], *place = &history.places[!history.place];
    struct history_marks gone;

    log_warning("The history for peers was not kept: the journal's file is full");
    if (!journal_reader_open_near(place, history.journal, position, PLACE_FLAGS, on_change))
        return false; /* with the next heartbeat, then */
    journal_reader_close(old);
    history.place = !history.place;
    atomic_store_explicit(&history.is_cut, false, memory_order_relaxed);
    spinlock_acquire(&history.lock);
    gone = history.marks;
    history.marks = (struct history_marks){0};
    history_marks_add(&history.marks, position, bytes, deeds, 0);
    spinlock_release(&history.lock);
    history_marks_fini(&gone);
    return true;
}

/* Of what all members have: so little that the journal needs no file, also with what is on its way to them. */
static uint64_t held_most(void)
{
    const uint64_t memory = journal_limits_memory();

    return memory == 0 ? UINT64_MAX : memory / HELD_PART;
}

bool active_history_note(uint64_t position, const struct merge_vector *deeds, const struct merge_vector *held)
{
    const uint64_t limit = OPTION_GET_U64(option_active_history_limit);
    uint64_t bytes, before, first;

    if (history.journal == NULL)
        return false;
    if (!gate_is_alone())
        thread_assert_main();
    bytes = journal_end_bytes(history.journal); /* a little behind the position, perhaps */
    if (UNLIKELY(atomic_load_explicit(&history.is_cut, memory_order_relaxed)))
        return begin_anew(position, bytes, deeds);
    spinlock_acquire(&history.lock);
    before = history.marks.items[0].position;
    history_marks_add(&history.marks, position, bytes, deeds, limit);
    history_marks_trim(&history.marks, position, bytes, limit, held, held_most());
    first = history.marks.items[0].position;
    spinlock_release(&history.lock);
    if (first != before)
        journal_reader_move_near(&history.places[history.place], first);
    return first != before;
}

void active_history_skip(const struct merge_vector *skipped)
{
    gate_assert_alone();
    spinlock_acquire(&history.lock);
    history_marks_skip(&history.marks, skipped);
    spinlock_release(&history.lock);
}

bool active_history_open(struct journal_reader *reader, const struct merge_vector *behind, unsigned flags,
                         void (*on_reader_change)(struct journal_reader *reader))
{
    const struct history_mark *mark;
    uint64_t position = 0;

    if (history.journal == NULL || atomic_load_explicit(&history.is_cut, memory_order_relaxed))
        return false;
    spinlock_acquire(&history.lock);
    mark = history_marks_find(&history.marks, behind);
    if (mark != NULL)
        position = mark->position;
    spinlock_release(&history.lock);
    return mark != NULL && journal_reader_open_near(reader, history.journal, position, flags, on_reader_change);
}

void active_history_cut(struct merge_vector *cut)
{
    spinlock_acquire(&history.lock);
    if (history.marks.count != 0)
        merge_vector_copy(cut, &history.marks.items[0].deeds);
    spinlock_release(&history.lock);
}

uint64_t active_history_bytes(void)
{
    uint64_t kept = 0, position, bytes;

    if (history.journal == NULL)
        return 0;
    position = journal_end_position(history.journal);
    bytes = journal_end_bytes(history.journal);
    spinlock_acquire(&history.lock);
    if (history.marks.count != 0 && position >= history.marks.items[0].position)
        kept = distance(&history.marks.items[0], position, MAX(bytes, history.marks.items[0].bytes));
    spinlock_release(&history.lock);
    return kept;
}
