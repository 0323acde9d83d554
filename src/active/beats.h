/* Beats as they go by one link from FRAME_VERSION_CHANGES on: each says what has changed since the one before. Most of
 * a beat does not change: what there is of starts that have ended, who is a member, words of members that are silent.
 * So a beat costs what is alive, however often nodes were started.
 *
 *     beat      clock 8; vector, deeds, offers: changes; members; closed, removed: changes of sets; count of words,
 *               then of each, by ascending names, name 8, whether it is another one than before 1, and if so
 *               origin 8, incarnation, sequence, wall varint, frontier; vector, saved: changes; closed: changes of a
 *               set; members
 *     changes   vector: of those that are new or have another stamp; set: of those that are gone
 *     members   0: the same; 1: others, and these (notice.h)
 *
 * The first beat of a link changes an empty one. Changes of a word are those since the last word of the same name; one
 * that is not named is gone. What notice.h says of numbers, bases and errors holds here, too; what changes nothing is
 * an error.
 *
 * Each side of a link keeps the beat before, and both have the same. An owner each; all zero is one that has had
 * none. */
#pragma once

#include "active/notice.h"

struct beats {
    struct merge_beat last; /* its words are its own: they have no references elsewhere */
};

enum { BEATS_ITEMS_MOST = 8 << 20 }; /* of all vectors and sets of a beat: what its reader keeps, 16 bytes each */

void beats_fini(struct beats *beats);
void beats_write(struct beats *beats, struct buffer *body, const struct merge_beat *beat);
/* *beat has memory of its own (merge_beat_fini), its words have no other owner. False: it is empty, and no later one
 * can be read. */
must_check bool beats_read(struct beats *beats, struct slice body, struct merge_beat *beat,
                           char error[NOTICE_ERROR_BYTES]);
