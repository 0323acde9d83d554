/* Giving up values. A small one is freed on the spot. Giving back a large one takes long and asks the system, and so
 * does waking a background thread: neither happens while a stripe is held, but right after the release, when the value
 * is freed or handed over. Which of the two depends on why it goes: see enum free_reason. Scripts alone, which hold
 * their stripes for long anyway, do it at once. */
#pragma once

#include "store/access.h"

/* What the entry points to is given up, also its members' deadlines; the entry itself stays. Its stripe is held. */
void lazyfree_of_value(struct access *access, struct entry *entry, enum free_reason reason);

/* Work for a background thread that will free so many objects; the job calls lazyfree_done with their number. */
void lazyfree_submit(uint64_t objects, void (*run)(void *argument), void *argument);
void lazyfree_done(uint64_t objects);

struct access_garbage *lazyfree_of_garbage(struct access_garbage *garbage); /* frees all of it; returns NULL */

/* After a release of stripes. */
static inline void lazyfree_after_release(struct access *access)
{
    if (UNLIKELY(access->garbage != NULL))
        access->garbage = lazyfree_of_garbage(access->garbage);
}
