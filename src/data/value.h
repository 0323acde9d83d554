/* How values of the types that are more than a string are handed around: what holds the data, and in which form it is.
 * A module of data/ makes, reads and changes values of its type through this; it may change both fields at any change,
 * so that who keeps a value stores it again afterwards. Values have no lock: who keeps them guards them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum value_encoding {
    ENCODING_INT,       /* string: a number */
    ENCODING_EMBSTR,    /* string: short, never edited in place */
    ENCODING_RAW,       /* any other string */
    ENCODING_LISTPACK,  /* hash: field, value ...; set: members; sorted set: member, score ...; struct listpack */
    ENCODING_INTSET,    /* set: struct intset */
    ENCODING_HASHTABLE, /* hash, set: a table of items */
    ENCODING_QUICKLIST, /* list */
    ENCODING_SKIPLIST,  /* sorted set: a table of items and an index of their order; the name is what clients know */
    ENCODING_STREAM,
    ENCODING_COUNT
};

struct mem_mover;
struct slice;
struct table;

struct value {
    void *data;
    enum value_encoding encoding;
};

/* Types whose members may have deadlines of their own: what the keyspace must know to let such members go. */
struct value_member_ops {
    bool (*has)(struct value value, struct slice member);
    bool (*remove)(struct value *value, struct slice member); /* false: it was not there; may leave the value empty */
};

/* What can be done with values of any type. */
struct value_ops {
    void (*destroy)(struct value value);
    struct value (*copy)(struct value value);
    /* What it takes; parts of large ones are estimated from `samples` of them (0: all are looked at). */
    uint64_t (*memory_bytes)(struct value value, uint64_t samples);
    uint64_t (*free_effort)(struct value value); /* roughly how many allocations: large ones are freed elsewhere */
    /* Moves the value's memory together (mem_move), elements from `position` on (0 first) and about `most` of them;
     * value->data is where it is from then on. Returns where to go on, 0 at the end. Before it is asked to, the value
     * may change, or another of any type take its place: any position must do, and the walk must end nevertheless.
     * NULL: values of this type stay where they are. */
    uint64_t (*relocate)(struct value *value, uint64_t position, uint64_t most, struct mem_mover *mover);
    /* Elements: a key whose value has none goes. NULL: values of this type stay whatever is in them. */
    uint64_t (*count)(struct value value);
    /* Where the elements are, to be described; NULL, and NULL is returned: not in a table. */
    const struct table *(*table)(struct value value);
    void (*validate)(struct value value);   /* for tests: asserts every invariant; may be NULL */
    const struct value_member_ops *members; /* NULL: members have no deadlines */
};
