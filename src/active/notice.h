/* The bodies of frames that are not entries (frame.h): what nodes tell each other of themselves and of the group.
 *
 *     vector    count, then for each id 8 bytes and the stamp as a difference to a base that both know; ids ascend
 *     set       count, then for each id 8 bytes; ids ascend
 *     members   count, then for each name 8, origin 8, incarnation varint; names ascend
 *
 *     hello     version least 1, most 1; name uuid 16, origin uuid 16; flags 1; incarnation varint; clock 8;
 *               members; vector, deeds, cut; closed, removed, former: sets; wanted: set
 *     beat      clock 8; vector, deeds, offers; members; closed, removed: sets; count of words, then of each
 *               name 8, origin 8, incarnation, sequence, wall varint, frontier; vector, saved; closed; members
 *     want      clock 8; vector: the origins that are wanted, each behind the stamp that is here
 *     stop, stopped   set
 *
 * Links of later versions have beats in another form (beats.h).
 *
 * The base of stamps is the clock of the same body: most are near it, and take three or four bytes. Bytes behind the
 * end are an error: a later version says another number in its hello.
 *
 * What is read is checked: ids and names are valid and ascend, stamps are 0 or possible, counts are not larger than
 * what follows. What a body says, its sender vouches for. */
#pragma once

#include "active/uuid.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "merge/group.h"
#include "merge/state.h"

#include <stdbool.h>
#include <stdint.h>

enum { NOTICE_ERROR_BYTES = 128, NOTICE_MEMBERS_MOST = 4096 /* of a group, and words of a beat */ };

/* The first frame in each direction. */
struct notice_hello {
    uint8_t version_least, version_most; /* of frames, that the sender knows */
    struct uuid name, origin;            /* says the ids of `hello`, too */
    struct merge_hello hello;
    struct merge_vector former; /* a set: origins of earlier starts of this identity (identity_judge) */
    struct merge_vector wanted; /* a set: origins to be sent by this link */
};

void notice_hello_fini(struct notice_hello *hello);
void notice_write_hello(struct buffer *body, const struct notice_hello *hello);
must_check bool notice_read_hello(struct slice body, struct notice_hello *hello, char error[NOTICE_ERROR_BYTES]);
/* The version that both know, or 0. */
unsigned notice_choose_version(const struct notice_hello *hello);

void notice_write_beat(struct buffer *body, const struct merge_beat *beat);
must_check bool notice_read_beat(struct slice body, struct merge_beat *beat, char error[NOTICE_ERROR_BYTES]);

void notice_write_want(struct buffer *body, uint64_t clock, const struct merge_vector *wanted);
must_check bool notice_read_want(struct slice body, uint64_t *clock, struct merge_vector *wanted,
                                 char error[NOTICE_ERROR_BYTES]);

void notice_write_set(struct buffer *body, const struct merge_vector *set); /* stop, stopped */
must_check bool notice_read_set(struct slice body, struct merge_vector *set, char error[NOTICE_ERROR_BYTES]);

/* All of these leave what they read empty when they return false; the caller ends it when they return true
 * (notice_hello_fini, merge_beat_fini, merge_vector_fini). */
