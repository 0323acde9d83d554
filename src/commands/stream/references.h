/* What is done about the groups that refer to an entry which a client deletes or trims. A group refers to an entry that
 * is pending in it, and to one that it has yet to be given.
 *
 * There is no index from entries to groups: each group is asked by id. Groups are few, and those that use none of this
 * pay nothing. Callers hold the key's stripe. */
#pragma once

#include "commands/stream/stream_args.h"

enum reference_policy {
    REFERENCES_KEPT,     /* entries go, and what is pending stays so (KEEPREF, and without a word) */
    REFERENCES_DELETED,  /* entries go, and are pending in no group any more (DELREF) */
    REFERENCES_RESPECTED /* only entries go that no group refers to (ACKED) */
};

/* False: the word is none of a policy. */
must_check bool reference_policy_parse(struct slice word, enum reference_policy *policy);

/* Trims with a policy other than REFERENCES_KEPT, within an edit; returns how many entries went. What XTRIM or XADD
 * tell others stays true, with one exception: entries that went one by one, since others before them had to stay, or
 * since peers may know more of the latter. Then is_apart is set, and these are in `gone`, for reference_trim_end. What
 * is not pending any more is told at once.
 *
 * By length, entries go until so many are left, from the oldest on, and those that have to stay are passed over. With
 * whole nodes ("~") only the entries of nodes are looked at that would go without the policy, so its limit is one of
 * entries that are looked at. */
struct reference_trim {
    bool is_apart;
    struct {
        struct stream_id *items;
        uint64_t count, capacity;
    } gone;
};
uint64_t reference_trim(struct request *request, struct stream *stream, const struct stream_trim *limits,
                        enum reference_policy policy, struct reference_trim *trim);
/* Tells others which entries went one by one; frees them. It comes behind the other effects. */
void reference_trim_end(struct request *request, struct reference_trim *trim);
