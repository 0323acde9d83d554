/* Consumers of groups in commands, and the effects of group commands for replicas. Callers hold the key's stripe and,
 * for changes, have an open edit. */
#pragma once

#include "commands/stream/reply_cap.h"

/* One group of one stream, while a command uses it. */
struct group_use {
    struct request *request;
    const struct key *key;
    const struct stream *stream;
    struct stream_group *group;
    struct slice group_name;
    struct slice consumer_name;
    struct stream_consumer *consumer; /* NULL: not looked up yet */
    bool made_consumer;
    struct reply_cap *cap;      /* of the reply's entries; NULL: none */
    struct stream_iter entries; /* finds entries of ascending ids; not started by all commands */
};

/* Returns the consumer, and creates it if necessary; updates its seen-time. */
struct stream_consumer *group_use_consumer(struct group_use *use);
/* Call it after the edit has ended: adds the effect of a created consumer. */
void group_use_end(struct group_use *use);

/* The entry is late, unless it was handed out before. */
void group_use_late(struct group_use *use, struct stream_id id);
/* The group's position was set: what is behind it is not late but new. */
void group_use_forget_new(struct group_use *use);
bool stream_is_late(const struct stream_pending *pending);
/* The entry is pending for nobody, since its consumer gave it back (XNACK). */
bool stream_is_released(const struct stream_pending *pending);
/* The count with one delivery more. */
uint64_t stream_deliveries_after(uint64_t count);

/* Each adds one effect, which replaces the command's own words. */
void effect_claim(const struct group_use *use, struct stream_id id, const struct stream_pending *pending);
void effect_acknowledged(const struct group_use *use, struct stream_id id);
void effect_group_position(const struct group_use *use);
void effect_consumer(const struct group_use *use);

/* The same for peers. */
void operation_claim(const struct group_use *use, struct stream_id id, const struct stream_pending *pending);
void operation_acknowledged(const struct group_use *use, struct stream_id id);
void operation_consumer(const struct group_use *use);
