/* Values of all types other than string: the data and its encoding. A module of data/ makes, reads and changes values
 * of its type through this struct. A change may change both fields, so the owner stores the value again afterwards.
 * Values have no lock: their owner guards them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum value_encoding {
    ENCODING_INT,       /* string: a number */
    ENCODING_EMBSTR,    /* string: short, never changed in place */
    ENCODING_RAW,       /* string: any other */
    ENCODING_LISTPACK,  /* hash: field, value ...; set: members; sorted set: member, score ...; struct listpack */
    ENCODING_INTSET,    /* set: struct intset */
    ENCODING_HASHTABLE, /* hash, set: a table of items */
    ENCODING_QUICKLIST, /* list */
    /* Sorted set: a table of items and an index of their order; clients know this encoding by the name skiplist. */
    ENCODING_SKIPLIST,
    ENCODING_STREAM,
    ENCODING_COUNT
};

struct former_ops;
struct mem_mover;
struct slice;
struct table;
struct value_step;

struct value {
    void *data;
    enum value_encoding encoding;
};

/* For types whose members may have deadlines of their own: functions with which the keyspace removes members. */
struct value_member_ops {
    bool (*has)(struct value value, struct slice member);
    /* False: there was no such member; the value may be empty afterwards. */
    bool (*remove)(struct value *value, struct slice member);
};

/* The operations on values of any type. */
struct value_ops {
    void (*destroy)(struct value value);
    struct value (*copy)(struct value value);
    /* Memory in bytes; for large values an estimate from `samples` elements (0: all elements). */
    uint64_t (*memory_bytes)(struct value value, uint64_t samples);
    /* About the number of allocations; large values are freed in the background. */
    uint64_t (*free_effort)(struct value value);
    /* Defragments the value's memory (mem_move): about `most` elements from `position` on (0 at first). value->data is
     * the new address afterwards. Returns the next position, 0 at the end. Between calls the value may change, or be
     * replaced by one of another type: the function must accept any position, and the walk must end in any case. NULL:
     * values of this type are not moved. */
    uint64_t (*relocate)(struct value *value, uint64_t position, uint64_t most, struct mem_mover *mover);
    /* The number of elements. A key whose value has none is deleted. NULL: keys of this type stay even if empty. */
    uint64_t (*count)(struct value value);
    /* The table of the elements, for DEBUG HTSTATS-KEY. NULL, as pointer or as result: there is no table. */
    const struct table *(*table)(struct value value);
    /* Takes back the newest step that was noted (data/undo.h); the value may be empty before and afterwards. NULL:
     * values of this type note no steps. */
    void (*undo)(struct value *value, const struct value_step *step);
    void (*validate)(struct value value);   /* for tests: asserts every invariant; may be NULL */
    const struct value_member_ops *members; /* NULL: members have no deadlines */
    /* The value as it was, while it goes on changing (data/former.h); NULL: it takes a copy. */
    const struct former_ops *former;
};
