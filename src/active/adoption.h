/* The data of a server of another kind, as a file that it sent: they are united with the data here, key by key.
 *
 * Each key of the file becomes an operation (RESTORE) with a stamp of the moment at which the file began, so what this
 * node and its peers have done since stays on top. The origin of these operations is the link's, as long as this
 * process lives: a foreign one (merge/place.h), since they stand behind the clock. KeyDB says when each key changed:
 * one that is not younger than the key here is passed over. What is here and not in the file stays.
 *
 * Everything is worker 0's, outside of the gate. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct adoption;
struct frame_entry;
struct sync_file;
struct receiver;
struct worker;

/* Of what a link brings in. */
struct adoption_origin {
    uint64_t id, last;
};
void adoption_origin_init(struct adoption_origin *origin); /* does nothing the second time; zeroed memory is fine */
/* Names an entry: its origin, a stamp behind its last one and not below `at`, the wall time. */
void adoption_name(struct adoption_origin *origin, uint64_t at, struct frame_entry *entry);

enum adoption_result {
    ADOPTION_WAITS, /* adoption_go_on after a wake */
    ADOPTION_DONE,
    ADOPTION_FAILED, /* adoption_error has the reason; keys before the fault are here */
    ADOPTION_FOREIGN /* likewise: this server cannot read it */
};

/* `placer` is a bare one, and places nothing else meanwhile. `stamp`: when the file began. With `is_timed` that is told
 * by the file: it is the last stamp of KeyDB's in it, so whatever that server does behind it is younger, by its own
 * clock. Then the file is read twice. */
struct adoption *adoption_create(struct worker *worker, struct receiver *placer, struct adoption_origin *origin,
                                 struct sync_file *file, uint64_t stamp, bool is_timed);
void adoption_destroy(struct adoption **handle); /* accepts NULL; leaves NULL */
must_check enum adoption_result adoption_go_on(struct adoption *adoption);
uint64_t adoption_keys(const struct adoption *adoption);      /* that became operations */
uint64_t adoption_passed(const struct adoption *adoption);    /* that are younger here, or over */
unsigned adoption_stream_db(const struct adoption *adoption); /* selected in the stream behind the file */
const char *adoption_error(const struct adoption *adoption);
