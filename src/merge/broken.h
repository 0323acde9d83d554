/* Switches that break one rule each, so that tests can show that breaking it is noticed. Only code built with
 * -DMERGE_BREAKABLE has them (the simulation builds the module so for itself); elsewhere each is a constant false and
 * costs nothing. The word of each switch says what the broken rule does instead. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*                    name                  what is done instead of the rule                                        */
#define MERGE_BREAKS(BREAK)                                                                                            \
    BREAK(ACCEPT_ANY, "accept-any", "an entry is accepted whatever came before it")                                    \
    BREAK(TIE_BY_STAMP, "tie-by-stamp", "equal stamps of two origins are in order of arrival")                         \
    BREAK(CLOCK_NOT_RAISED, "clock-not-raised", "an arriving stamp does not raise the clock")                          \
    BREAK(ARRIVAL_ORDER, "arrival-order", "an older operation runs at the end")                                        \
    BREAK(FORGET_REFUSED, "forget-refused", "a refused operation leaves the list")                                     \
    BREAK(OVERWRITE_RUNS_ALL, "overwrite-runs-all", "what is older than an overwriting operation is run again on it")  \
    BREAK(OLD_OVER_OVERWRITER, "old-over-overwriter", "what is older than an overwriting base counts as late")         \
    BREAK(FLUSH_ALL, "flush-all", "a flush takes what is younger, too")                                                \
    BREAK(FLUSH_LATE, "flush-late", "nobody is told of a flush that is older than the floor")                          \
    BREAK(EVICT_CONDITIONAL, "evict-conditional", "an eviction deletes if the key has still the stamp it saw")         \
    BREAK(EVICT_LAST, "evict-last", "an eviction stands at its own stamp, as DEL")                                     \
    BREAK(EVICT_EARLY, "evict-early", "a node evicts before its frontier has reached its start")                       \
    BREAK(NO_TOMBSTONE_FLOOR, "no-tombstone-floor", "a freed tombstone leaves no floor")                               \
    BREAK(SETTLE_EARLY, "settle-early", "lists go when this node has all, whatever the others have")                   \
    BREAK(EXPIRY_BY_FRONTIER, "expiry-by-frontier", "memory goes by F instead of W")                                   \
    BREAK(EXPIRY_BY_CLOCK, "expiry-by-clock", "memory goes by the own clock instead of W")                             \
    BREAK(CLOSED_WALL, "closed-wall", "W rises while a closed origin still counts")                                    \
    BREAK(CLOSED_FRONTIER, "closed-frontier", "F rises while a closed origin still counts, up to what all have of it") \
    BREAK(CLOSE_UNCONFIRMED, "close-unconfirmed", "a closed origin stops counting when vectors agree")                 \
    BREAK(KEEP_OLD_CONNECTIONS, "keep-old-connections", "what the connection of a closed origin holds is taken")       \
    BREAK(WORD_BEFORE_DEEDS, "word-before-deeds", "a member's word is believed before its operations are here")        \
    BREAK(ASK_ONCE, "ask-once", "an origin stays on the link that offered it first, also if nothing comes by it")      \
    BREAK(REUSE_ORIGIN, "reuse-origin", "a restart goes on with its origin")                                           \
    BREAK(WALL_BACK, "wall-back", "a restart forgets the wall time it had reached")                                    \
    BREAK(STAMP_BACK, "stamp-back", "a restart forgets the stamps it had given and promised")                          \
    BREAK(JOIN_UNSYNCED, "join-unsynced", "a sponsor does not sync the newcomer into its members")                     \
    BREAK(JOIN_CLOCK, "join-clock", "a newcomer does not start its clock and w above the sponsor's")                   \
    BREAK(SNAPSHOT_UNCHECKED, "snapshot-unchecked", "a snapshot that lacks what is here is taken")                     \
    BREAK(TAKE_FIRST, "take-first", "a state is sent to one who has what it lacks")                                    \
    BREAK(WAIT_FOR_EVER, "wait-for-ever", "who has to give first is waited for, also where nothing comes")             \
    BREAK(SNAPSHOT_NO_EXTRA, "snapshot-no-extra", "operations that a snapshot lacks are not put on top")               \
    BREAK(HELLO_ALONE, "hello-alone", "a hello tells who was removed, but not who belongs to the group")               \
    BREAK(FORGET_UNKNOWN, "forget-unknown", "a member goes though another does not know all")                          \
    BREAK(LATE_NOT_DIRTY, "late-not-dirty", "a late operation leaves no mark")                                         \
    BREAK(LATE_WALL_IGNORED, "late-wall-ignored", "what is below W is no reason for a mark")                           \
    BREAK(REPAIR_EARLY, "repair-early", "a repair does not wait for what the frontiers of others cover")               \
    BREAK(BOUND_KEEPS_OVERWROTE, "bound-keeps-overwrote", "a list given up leaves a base that counts as overwritten")  \
    BREAK(IN_PLACE_SAME_MEMBER, "in-place-same-member", "an older change of the same member runs at the end")          \
    BREAK(IN_PLACE_ANY_UNDO, "in-place-any-undo",                                                                      \
          "an older one runs at the end though a younger one is taken back as a whole")                                \
    BREAK(IN_PLACE_LIMITS, "in-place-limits", "additions run at the end though one of them may meet a limit")          \
    BREAK(IN_PLACE_EMPTIES, "in-place-empties", "a removal runs at the end though it may have emptied the key")        \
    BREAK(IN_PLACE_PUSH_LAST, "in-place-push-last", "an older push comes behind what younger ones have pushed")        \
    BREAK(IN_PLACE_PUSH_ANY, "in-place-push-any", "an older push passes younger ones that do not just push")           \
    BREAK(JOINED_TORN, "joined-torn", "what belongs among joined additions is exact before them")                      \
    BREAK(JOINED_RUN_ANYWHERE, "joined-run-anywhere", "joined additions run again at limits and deadlines")            \
    BREAK(JOINED_OVER_WRITES, "joined-over-writes", "additions are joined though the member was written in between")

enum merge_break {
#define BREAK(name, text, what) MERGE_BREAK_##name,
    MERGE_BREAKS(BREAK)
#undef BREAK
        MERGE_BREAK_COUNT
};

#ifdef MERGE_BREAKABLE
extern uint64_t merge_breaks; /* bits of enum merge_break */
#endif

static inline bool merge_broken(enum merge_break rule)
{
#ifdef MERGE_BREAKABLE
    return (merge_breaks >> rule & 1) != 0;
#else
    (void)rule;
    return false;
#endif
}
