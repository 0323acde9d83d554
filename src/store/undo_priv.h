/* What access.c and subkey_ttl.c tell undo.c while changes are recorded, and changed.c takes. `change->undo` is set
 * then. What most commands need, which change one key once, is inline here; undo.c has the rest. */
#pragma once

#include "store/undo.h"

#include "base/copy.h"
#include "data/undo.h"

enum {
    UNDO_SPARE_NAME_BYTES = 128, /* room for the name of a log that is used again */
    UNDO_SPARE_MOST = 4,         /* logs that are kept for the next recording */
    UNDO_SPARE_BYTES = 4096      /* of their steps, at most */
};

/* Steps beside those of values, in the same logs. */
enum undo_step {
    UNDO_STEP_DEADLINE = VALUE_STEP_OWNERS, /* a: the key's deadline */
    UNDO_STEP_MEMBER_DEADLINE,              /* first: the member; a: its deadline */
    UNDO_STEP_STRING                        /* a: the size; first: bytes at b */
};

struct key_undo {
    uint32_t references;
    bool was_missing;
    bool is_spent;             /* the value has become the key's again */
    bool is_number;            /* as a whole the key was a number; it has no other memory */
    bool is_sum;               /* number was added to it, also if that is 0 */
    int64_t number, expire_ms; /* is_number false: number was added to it; 0: nothing was */
    struct entry *whole;       /* the key as it was before the steps were taken back; NULL: the steps are all */
    uint64_t whole_bytes;
    size_t steps_size;
    char steps[];
};

/* What was done to one key so far. */
struct undo_log {
    struct value_log values; /* first: what was touched in place, and steps of our own */
    struct undo_log *older;
    struct entry *whole; /* the key as it was before the steps; what came behind does not count. NULL: there is none */
    uint64_t hash;
    unsigned db;
    int64_t number, expire_ms; /* is_number: the key was this instead; else so much was added to it, 0: nothing */
    bool is_begun;             /* the fields below count */
    bool was_missing;          /* there was no key; nothing else is recorded */
    bool is_sealed;            /* the log can restore all: what follows is not recorded */
    bool is_number;
    bool has_changed;
    bool has_expired;   /* members were removed that have expired */
    struct buffer held; /* the effects of that, until the key is changed: number of words, then each behind its size */
    size_t name_size, name_capacity;
    char name[];
};

void undo_note_begin_slow(struct change *change);
void undo_note_value(struct change *change); /* it is no string: it is watched, or kept as a whole */
void undo_note_end_slow(struct change *change);
size_t undo_take_image_slow(struct access *access, struct undo_log *log, struct buffer *to);

/* change_begin; sets change->undo. */
static ALWAYS_INLINE void undo_note_begin(struct change *change)
{
    const struct entry *entry = change_entry(change);
    const struct key *key = change->key;
    struct access_undo *undo = &change->access->undo;
    struct undo_log *log = undo->spare;

    if (UNLIKELY(undo->newest != NULL || log == NULL || key->name.size > UNDO_SPARE_NAME_BYTES)) {
        undo_note_begin_slow(change);
        return;
    }
    undo->spare = log->older;
    undo->spare_count--;
    undo->newest = log;
    undo->count = 1;
    log->older = NULL;
    log->hash = key->hash;
    log->db = change->db;
    log->name_size = key->name.size;
    copy_word(log->name, key->name.data, key->name.size);
    log->is_begun = true;
    log->was_missing = log->is_sealed = entry == NULL && !change->is_hidden;
    change->undo = log;
    if (UNLIKELY(entry != NULL && entry->type != TYPE_STRING))
        undo_note_value(change);
}

/* change_end, change_abandon. */
static ALWAYS_INLINE void undo_note_end(struct change *change, bool changed)
{
    struct undo_log *log = change->undo;

    value_log_ignore(&log->values);
    if (!changed)
        return;
    if (UNLIKELY(change->access->undo.is_held || log->held.size != 0))
        undo_note_end_slow(change);
    else
        log->has_changed = true;
}

/* Nothing was done to the key yet. What it was is somebody else's. */
static inline void undo_log_reset(struct undo_log *log)
{
    value_log_ignore(&log->values);
    buffer_clear(&log->values.steps);
    buffer_clear(&log->held);
    log->whole = NULL;
    log->number = 0;
    log->is_begun = log->was_missing = log->is_sealed = log->is_number = log->has_changed = log->has_expired = false;
}

static inline size_t undo_image_bytes(const struct undo_log *log)
{
    return (sizeof(struct key_undo) + log->values.steps.size + 7) & ~(size_t)7;
}

/* undo_take_image_of. */
static ALWAYS_INLINE size_t undo_take_image_inline(struct access *access, struct undo_log *log, struct buffer *to)
{
    const size_t steps_size = log->values.steps.size, bytes = undo_image_bytes(log);
    struct key_undo *image;

    if (UNLIKELY(!log->has_changed || log->whole != NULL))
        return undo_take_image_slow(access, log, to);
    image = (struct key_undo *)buffer_reserve(to, bytes);
    *image = (struct key_undo){.references = 1,
                               .was_missing = log->was_missing,
                               .is_number = log->is_number,
                               .number = log->number,
                               .expire_ms = log->expire_ms,
                               .steps_size = steps_size};
    copy_word(image->steps, log->values.steps.data, steps_size);
    to->size += bytes;
    undo_log_reset(log);
    return bytes;
}

/* undo_end. */
static ALWAYS_INLINE void undo_end_inline(struct access *access)
{
    struct access_undo *undo = &access->undo;
    struct undo_log *log = undo->newest;

    if (UNLIKELY(log == NULL || log->older != NULL || log->is_begun || undo->spare_count == UNDO_SPARE_MOST ||
                 log->name_capacity != UNDO_SPARE_NAME_BYTES ||
                 log->values.steps.capacity + log->held.capacity > UNDO_SPARE_BYTES)) {
        undo_end(access);
        return;
    }
    log->older = undo->spare;
    undo->spare = log;
    undo->spare_count++;
    undo->newest = NULL;
    undo->count = 0;
    undo->is_on = false;
}

/* The value and the deadlines of the key are about to go: the log takes them over. The entry stays, as one that owns
 * nothing, with its own deadline. */
void undo_note_loss(struct change *change);
void undo_note_departure(struct change *change);                /* they are about to go to another key: copies them */
void undo_note_addition(struct change *change, int64_t amount); /* to the number that the key is */
/* `size` bytes of the key's string from `offset` on will be written; its new size is `new_size`. */
void undo_note_edit(struct change *change, size_t offset, size_t size, size_t new_size);
void undo_check_kept(const struct change *change,
                     struct value value);       /* the value was changed in place: all is noted */
void undo_note_deadline(struct change *change); /* that of the key will change */
/* That of a member will change; `before_ms` or EXPIRE_NEVER. */
void undo_note_member_deadline(struct change *change, struct slice member, int64_t before_ms);
/* The words of what has expired: the effect counts only if the key is changed, too. */
void undo_hold_words(const struct change *change, const struct slice *words, size_t count);
/* What has expired of the key has gone for good: that is a change. */
void undo_count_expired(struct access *access, unsigned db, const struct key *key);
void undo_forget(struct access *access, unsigned db); /* all of its keys change */
