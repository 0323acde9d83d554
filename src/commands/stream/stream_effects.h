/* Consumers of groups as commands use them, and what becomes of groups as replicas hear it. Callers have the key's
 * stripe and, where something changes, an open edit. */
#pragma once

#include "commands/stream/stream_args.h"

/* One group of one stream while a command deals with it. */
struct group_use {
    struct request *request;
    const struct key *key;
    const struct stream *stream;
    struct stream_group *group;
    struct slice group_name;
    struct slice consumer_name;
    struct stream_consumer *consumer; /* NULL: not looked for yet */
    bool made_consumer;
    struct stream_iter entries; /* to find entries of ascending ids; not begun by all */
};

/* The consumer, made if need be; it was seen now. */
struct stream_consumer *group_use_consumer(struct group_use *use);
/* After the edit has ended: tells of a consumer that was made. */
void group_use_end(struct group_use *use);

/* Each is one effect more, instead of the command's own words. */
void effect_claim(const struct group_use *use, struct stream_id id, const struct stream_pending *pending);
void effect_group_position(const struct group_use *use);
void effect_consumer(const struct group_use *use);
