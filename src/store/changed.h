/* Keys that commands have changed and of which the window is still to learn: the stamp is only known when the journal
 * has the effects. One thread collects them while it holds the stripes, beside the effects, and writes down what they
 * are now before it releases them. Zeroed memory is an empty collection.
 *
 * What peers get of a group tells what was done to which key (effects_describe). A key that an operation overwrote gets
 * a version that says so, or a tombstone. Others get the version, and a step in the window: the operation's words, and
 * what takes it back (undo.h), if that was recorded. A key that no operation names, as it has expired, keeps what it
 * had. If nothing is described, as no peer reads, all get versions. */
#pragma once

#include "base/array.h"
#include "base/buffer.h"
#include "store/access.h"
#include "store/journal.h"

#include <stdint.h>

struct changed_item {
    uint64_t hash;
    const char *name; /* of `own`; NULL: a copy of it is in `names` */
    size_t name_at, name_size;
    uint64_t version;          /* the key's, before */
    struct access_spot spot;   /* behind its first change */
    struct undo_log *undo;     /* until its group ends; NULL: what was done is not recorded */
    size_t undo_at, undo_size; /* in `undos`: of the whole group; only the key's first item has it */
    unsigned db;
    bool existed;      /* before */
    bool is_first;     /* it is the first of `own` */
    bool was_recorded; /* of the item of a single: its group was */
};

/* What one command, EXEC or script did. */
struct changed_group {
    uint32_t key_end, effect_end; /* behind its keys and effects; they begin with the end of the group before */
    int64_t wall_ms;              /* the time with which it ran */
    bool was_recorded;            /* its keys have undos */
};

/* An operation, by its key. */
struct changed_operation {
    uint64_t hash;
    struct slice name; /* in the effects */
    unsigned db;
    uint32_t effect;
    bool is_first; /* its key is that of the group's first item */
};

struct changed {
    struct buffer names;
    struct buffer undos; /* images (undo.h) */
    struct changed_item *items;
    uint32_t count, capacity;
    uint32_t first_open;   /* behind the items of the groups that have ended */
    const struct key *own; /* of the command that runs: their names stay until all is written; NULL: there are none */
    uint32_t own_count;
    struct {
        struct changed_group *items;
        uint32_t count, capacity;
    } groups; /* all of them; none as long as they are singles */
    struct {
        struct journal_single *items;
        uint32_t count, capacity;
    } singles; /* the groups, as long as each is one effect on the one key that it has changed: its item */
    struct {
        struct effect_stamp *items;
        uint32_t count, capacity;
    } stamps;
    struct {
        struct changed_operation *items;
        uint32_t count, capacity;
    } operations; /* of the group that is written */
    struct {
        uint32_t *items, count, capacity;
    } by_hash; /* items, if they are many */
    struct buffer words;
};

void changed_fini(struct changed *changed);                                             /* it is empty */
struct key changed_key(const struct changed *changed, const struct changed_item *item); /* until the next change */

/* Of the command that runs next, until its group ends: the names of these keys stay where they are until all is
 * written, so they are not copied. EFFECT_OWN_KEY says that the first of them is an effect's key. */
static inline void changed_begin_own(struct changed *changed, const struct key *keys, uint32_t key_count)
{
    changed->own = keys;
    changed->own_count = key_count;
}
bool changed_was_noted(const struct changed *changed, const struct change *change); /* the last item is of its key */

/* change_end calls it while the store stamps (store_set_stamping); the key's stripe is held. `spot`: of the key now. */
static ALWAYS_INLINE void changed_note(struct changed *changed, const struct change *change, struct access_spot spot)
{
    const struct key *key = change->key;
    const bool is_own = (uintptr_t)key - (uintptr_t)changed->own < changed->own_count * sizeof(*key);
    struct changed_item *item;

    /* Commands that change a key twice do it without another one in between. */
    if (UNLIKELY(changed->count != changed->first_open) && changed_was_noted(changed, change))
        return;
    item = ARRAY_PUSH(changed);
    item->hash = key->hash;
    item->name = is_own ? key->name.data : NULL;
    item->name_at = changed->names.size;
    item->name_size = key->name.size;
    item->version = change->version;
    item->spot = spot;
    item->undo = change->undo;
    item->undo_size = 0;
    item->db = change->db;
    item->existed = change->existed;
    item->is_first = key == changed->own;
    if (UNLIKELY(!is_own))
        buffer_append_slice(&changed->names, key->name);
}

/* The keys and effects so far are of one group. Takes what was recorded of them, and ends the recording. Without
 * effects that are new the keys are forgotten: what the journal does not know has no stamp. The stripes are held. */
void changed_end_group(struct changed *changed, struct access *access, const struct effects *effects, int64_t wall_ms);

void changed_clear(struct changed *changed, struct access *access); /* forgets all */

/* Appends the effects, writes down what the keys are now, and forgets all. The last group has ended; the keys' stripes
 * are held. Returns what journal_append returns. */
uint64_t changed_append(struct changed *changed, struct access *access, struct journal *journal,
                        const struct effects *effects);
