/* XREADGROUP CLAIM: what the group was handed long ago, whoever has it, before what is new. Callers hold the key's
 * stripe. */
#pragma once

#include "commands/stream/stream_effects.h"

/* What is behind CLAIM. NULL: fine; else the error. */
const char *stream_claim_parse(struct slice text, int64_t *idle_ms);

/* True if an entry has been pending for idle_ms. Otherwise *due_ms is when the first one will have been, if nothing
 * changes; INT64_MAX: none. */
bool stream_claim_is_due(const struct stream *stream, struct stream_group *group, int64_t now_ms, int64_t idle_ms,
                         int64_t *due_ms);
/* Hands at most `most` of them to the consumer, and replies them. Returns how many. An edit is open. */
uint64_t stream_claim_deliver(struct group_use *use, int64_t idle_ms, uint64_t most);

/* Replies an entry with how long it was idle, and how often it had been delivered before. */
void reply_claimed_entry(struct request *request, struct stream_iter *iter, struct stream_id id, uint64_t field_count,
                         int64_t idle_ms, uint64_t delivery_count);
