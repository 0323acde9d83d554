/* The manifest of an append-only file: the list of its files, in order. Each file has one line:
 *
 *     file appendonly.aof.1.base.rdb seq 1 type b
 *     file appendonly.aof.1.incr.aof seq 1 type i
 *
 * The types are: b the base, at most one; i an increment, in ascending order; h history, a file that is no longer
 * needed and may be removed. Words may be quoted. Pairs with other names are not kept. A line that begins with # is a
 * comment. Every line ends with a newline. The format is that of Redis 7. A manifest belongs to one thread. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum aof_part_type { AOF_BASE = 'b', AOF_INCREMENT = 'i', AOF_HISTORY = 'h' };

struct aof_part {
    char *name; /* name of the file in the manifest's folder */
    uint64_t sequence;
    enum aof_part_type type;
};

/* Zeroed memory is an empty manifest. */
struct aof_manifest {
    struct aof_part *items; /* the base, then history (latest first), then increments */
    uint32_t count, capacity;
};

struct aof_manifest_problem {
    uint32_t line;    /* from 1; 0: the manifest as a whole */
    const char *text; /* why it is refused */
};

enum { AOF_MANIFEST_LINE_BYTES = 1024, AOF_MANIFEST_BYTES_MOST = 1 << 20 };
#define AOF_MANIFEST_SEQUENCE_MOST ((uint64_t)INT64_MAX / 2) /* far from an overflow by adding one */

/* STATUS_INVALID: *problem has the reason, and the manifest is empty. */
must_check enum status aof_manifest_parse(struct aof_manifest *manifest, struct slice text,
                                          struct aof_manifest_problem *problem);
void aof_manifest_print(const struct aof_manifest *manifest, struct buffer *buffer);
void aof_manifest_copy(struct aof_manifest *to, const struct aof_manifest *from); /* `to` is empty */
void aof_manifest_fini(struct aof_manifest *manifest);

/* Returned parts are valid until the manifest changes. */
const struct aof_part *aof_manifest_base(const struct aof_manifest *manifest);           /* NULL: none */
const struct aof_part *aof_manifest_last_increment(const struct aof_manifest *manifest); /* NULL: none */
uint32_t aof_manifest_count(const struct aof_manifest *manifest, enum aof_part_type type);

/* Makes a file from a time without manifest the base. */
void aof_manifest_adopt_base(struct aof_manifest *manifest, struct slice name);
/* Adds an increment "NAME.SEQUENCE.incr.aof". Its number is one above that of all increments, also those in history; 1
 * if there are none. */
const struct aof_part *aof_manifest_add_increment(struct aof_manifest *manifest, const char *name);
/* Sets a new base, "NAME.SEQUENCE.base.rdb" (or .aof), which has the contents of the old base and of all increments
 * before `first`: these become history. first NULL: all increments. */
const struct aof_part *aof_manifest_replace_base(struct aof_manifest *manifest, const char *name, bool is_rdb,
                                                 const struct aof_part *first);
/* Returns the name that aof_manifest_replace_base would use. The caller frees it. */
char *aof_manifest_next_base_name(const struct aof_manifest *manifest, const char *name, bool is_rdb);
void aof_manifest_drop_history(struct aof_manifest *manifest); /* call it after the files were removed */
