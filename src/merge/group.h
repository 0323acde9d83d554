/* The group: who belongs to it, what each member said last, and what follows from that for the frontiers.
 *
 * A member has a name for life and an origin for each start. An origin that ended is closed; it is known as closed for
 * ever. A word is what a member says of itself in a heartbeat; it travels behind the operations it speaks of, so a word
 * is believed only when these are here.
 *
 *     F  the least, over members and origins, of what the members have
 *     W  the least wall time that a running command of a member may still use
 *
 * A closed origin stops counting when all members say that they know it closed and have the same of it. Until then
 * neither F nor W rises: what comes from the dead may have any wall time, and evictions among it any place.
 *
 * A member that was silent for too long is given up: it does not hold the frontiers until it is heard again. */
#pragma once

#include "merge/vector.h"

#include <stdbool.h>
#include <stdint.h>

struct merge_member {
    uint64_t name;
    uint64_t origin;
    uint32_t incarnation; /* counts the starts of this member */
};

struct merge_members {
    struct merge_member *items; /* ascending by name */
    uint32_t count, capacity;
};

void merge_members_fini(struct merge_members *members);
void merge_members_copy(struct merge_members *to, const struct merge_members *from); /* `to` is empty */
struct merge_member *merge_members_find(const struct merge_members *members, uint64_t name);
/* Adds a member, or notes its later start. Returns whether it changed anything. */
bool merge_members_learn(struct merge_members *members, struct merge_member member);
void merge_members_remove(struct merge_members *members, uint64_t name);

/* Never changes after it was said. Counted without atomics. */
struct merge_word {
    uint32_t references;
    uint32_t incarnation;
    uint64_t sequence; /* later words of a start have a larger one */
    uint64_t name, origin;
    struct merge_vector vector;
    struct merge_vector saved; /* what of the vector is on disk: others keep their history down to this */
    struct merge_vector closed;
    struct merge_members members;
    int64_t wall; /* no command that runs or will run uses a wall time below this */
    uint64_t frontier;
};

struct merge_word *merge_word_acquire(struct merge_word *word);
void merge_word_release(struct merge_word *word);

struct merge_group {
    uint64_t self;
    struct merge_members members;
    struct merge_vector closed;   /* a set of origins */
    struct merge_vector removed;  /* a set of names */
    struct merge_vector given_up; /* a set of names */
    struct {
        struct merge_word **items; /* at most one a member */
        uint32_t count, capacity;
    } words;
};

void merge_group_fini(struct merge_group *group);
/* What another node knows of the group. Each start of a removed member is closed, also one heard of later. `removed`
 * may be NULL. */
void merge_group_learn(struct merge_group *group, const struct merge_members *members,
                       const struct merge_vector *closed, const struct merge_vector *removed);
void merge_group_hear(struct merge_group *group, struct merge_word *word);           /* keeps it if it is news */
struct merge_word *merge_group_word(const struct merge_group *group, uint64_t name); /* the last one, or NULL */

/* True if the word of each member that counts is here, with all it speaks of. `vector`: what this node has. */
bool merge_group_is_informed(const struct merge_group *group, const struct merge_vector *vector);
/* The frontiers as they follow from all words; `own` is what this node would say now. Only raises them. Returns false,
 * and changes nothing, if the group is not informed. */
bool merge_group_frontiers(const struct merge_group *group, const struct merge_word *own, uint64_t *frontier,
                           int64_t *wall);
/* True if nothing of this closed origin can come any more, as all members know. `vector`: what this node has. */
bool merge_group_is_over(const struct merge_group *group, const struct merge_vector *vector, uint64_t origin);
/* True if this node has all that the frontiers of its members cover: then it may repair. */
bool merge_group_covers_frontiers(const struct merge_group *group, const struct merge_vector *vector);
/* Members that remain without `name` and have not said that they know all: the frontiers of such a one may pass what it
 * has not heard of. */
uint32_t merge_group_ignorant(const struct merge_group *group, uint64_t name);
/* True if there is none of these. */
bool merge_group_may_forget(const struct merge_group *group, uint64_t name);
/* For each origin in `vector`, what this node has: up to where every member has it, as far as this node knows; also
 * those that were given up. `held` is empty. */
void merge_group_held(const struct merge_group *group, const struct merge_vector *vector, struct merge_vector *held);
/* What every member has on disk of this origin, as far as this node knows. */
uint64_t merge_group_saved(const struct merge_group *group, const struct merge_word *own, uint64_t origin);
