/* Keys that commands have changed and whose versions are still to be written: the stamp is only known when the journal
 * has the effects. One thread collects them while it holds the stripes, beside the effects, and writes the versions
 * before it releases them. Zeroed memory is an empty collection. Expiry and eviction are nobody's command: what they
 * remove is not noted. */
#pragma once

#include "base/buffer.h"
#include "store/access.h"
#include "store/journal.h"

#include <stdint.h>

struct changed_item {
    uint64_t hash;
    size_t name_at, name_size; /* in `names` */
    unsigned db;
};

/* What one command, EXEC or script did. */
struct changed_group {
    uint32_t key_end, effect_end; /* behind its keys and effects; they begin with the end of the group before */
    int64_t wall_ms;              /* the time with which it ran */
};

struct changed {
    struct buffer names;
    struct changed_item *items;
    uint32_t count, capacity;
    struct {
        struct changed_group *items;
        uint32_t count, capacity;
    } groups;
    struct {
        struct effect_stamp *items;
        uint32_t count, capacity;
    } stamps;
};

void changed_fini(struct changed *changed);
/* change_end calls it while the store stamps (store_set_stamping); the key's stripe is held. */
void changed_note(struct changed *changed, const struct change *change);
/* The keys so far and the effects up to `effect_count` are of one group. Without effects that are new the keys are
 * forgotten: what the journal does not know has no stamp. */
void changed_end_group(struct changed *changed, uint32_t effect_count, int64_t wall_ms);
void changed_clear(struct changed *changed); /* forgets all */
/* Appends the effects, writes the stamps into the keys that are left, and forgets all. The last group has ended; the
 * keys' stripes are held. Returns what journal_append returns. */
uint64_t changed_append(struct changed *changed, struct access *access, struct journal *journal,
                        const struct effects *effects);
