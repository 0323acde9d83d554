/* What access.c and subkey_ttl.c tell undo.c while changes are recorded. `change->undo` is set then. */
#pragma once

#include "store/undo.h"

#include "data/undo.h"

enum { SPARE_NAME_BYTES = 128 }; /* room for the name of a log that is used again */

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

void undo_note_begin(struct change *change);             /* change_begin; sets change->undo */
void undo_note_end(struct change *change, bool changed); /* change_end, change_abandon */
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
