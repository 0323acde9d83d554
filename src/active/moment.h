/* What files say of a node beside its keys and their versions (docs/active-replication.md, "Files"): its state of one
 * moment, and records of the window, as bytes.
 *
 *     state     version 1; name 8, origin 8; clock 8; wall varint; vector, deeds, cut; closed, removed: sets;
 *               members; F, floor: differences to the clock; W varint; late flush: place; count of flushes, then
 *               of each db varint, place
 *     record    version 1; flags 1; db varint; name: size varint, bytes; base: place; if dirty: place;
 *               if there is a value: deadline 8, then size varint and the payload of a DUMP; count of steps, then of
 *               each origin 8, stamp as a difference to the one before, prev: a difference to the stamp, wall varint;
 *               flags 1; words: size varint, commands as RESP
 *     part      version 2; bytes of the payload of the record behind it: of a large value, whose size is not known
 *               before; flags of the record say so, and size and payload are not in it
 *     place     stamp 8, origin 8
 *
 * What is read is checked: stamps are possible, ids are valid, steps ascend and stand behind the base, their words
 * are commands that name the key. A payload is checked by whoever takes it. Pure; an owner each. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "merge/operation.h"
#include "merge/place.h"
#include "merge/state.h"

#include <stdbool.h>
#include <stdint.h>

enum { MOMENT_ERROR_BYTES = 128 };
#define MOMENT_LIBRARIES 0x7fffffffU /* the database of libraries of functions (store/horizon.h) */

struct moment_flush {
    unsigned db;
    struct merge_place place;
};

/* Zeroed memory is empty. */
struct moment {
    uint64_t name, origin; /* whose it is */
    struct merge_account account;
    uint64_t floor;
    bool is_part;               /* of a file: it has only some keys (part.h); not among these bytes */
    struct merge_place recheck; /* the oldest late flush that others are to hear of; stamp 0: none */
    struct {
        struct moment_flush *items; /* ascending by db */
        uint32_t count, capacity;
    } flushes;
};

void moment_fini(struct moment *moment);
void moment_write(struct buffer *out, const struct moment *moment);
/* False: `error` has a line, and the moment is empty. Databases are below db_count. */
must_check bool moment_read(struct slice bytes, unsigned db_count, struct moment *moment,
                            char error[MOMENT_ERROR_BYTES]);

/* An operation of a list. */
struct moment_step {
    struct merge_place place;
    uint64_t prev;
    int64_t wall;
    bool overwrites;
    struct merge_joined joined;
    struct slice words;
};

struct moment_record {
    unsigned db;
    struct slice name;
    struct merge_place base, dirty; /* dirty: stamp 0: it is clean */
    bool base_overwrote;
    bool has_value;   /* at the base; otherwise the key was not there */
    bool is_in_parts; /* its payload stands in front of the record, which does not have it */
    int64_t expire_ms;
    struct slice payload;
    struct {
        struct moment_step *items; /* ascending */
        uint32_t count, capacity;
    } steps;
};

void moment_write_part(struct buffer *out, struct slice bytes);
bool moment_is_part(struct slice bytes, struct slice *part); /* it is no record */
void moment_record_fini(struct moment_record *record);       /* the steps: slices are not its own */
void moment_write_record(struct buffer *out, const struct moment_record *record);
/* As moment_read. Slices point into the bytes. */
must_check bool moment_read_record(struct slice bytes, unsigned db_count, struct moment_record *record,
                                   char error[MOMENT_ERROR_BYTES]);
