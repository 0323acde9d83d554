/* Taking members off an end of a sorted set: ZPOPMIN and its like, also for clients that waited for members. */
#pragma once

#include "commands/sorted_set.h"

struct zset_pop {
    bool greatest; /* from the end of the greatest scores */
    uint64_t count; /* at most; not 0 */
    enum zset_form form;
};

/* Replies to `out` an array of what it takes out of the set that is being edited (it is there), then ends the edit with
 * its event. Returns how many it took. */
uint64_t zset_pop(struct edit *edit, const struct zset_pop *pop, struct output *out, int proto);
/* What others hear of it instead of a command that names several keys or waits: "ZPOPMIN key count". */
void zset_pop_effect(struct request *request, const struct key *key, bool greatest, uint64_t count);

/* The words MIN or MAX; replies if it is neither. */
must_check bool zset_parse_end(struct request *request, uint32_t index, bool *greatest);
/* "[COUNT count]" from argument `index` to the end; replies if it is anything else. */
must_check bool zset_parse_pop_count(struct request *request, uint32_t index, uint64_t *count);
