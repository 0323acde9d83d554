/* What this node receives by a link from a server that is no node of ours, from the answer to PSYNC to the end of the
 * connection (links.h has what comes before and after).
 *
 *     FULLRESYNC -> its data come: into a file, then united with ours (adoption.h) -> the stream
 *     CONTINUE   -----------------------------------------------------------------/
 *
 * The stream of a plain master (redis-server, or one of ours that is not active) are operations of this node, as
 * clients' are: run/follow applies them, they get stamps of this origin. That of an active KeyDB server are envelopes
 * (keydb_stream.h), whose operations keep their origins and times.
 *
 * Where it stands in the other's history is kept by the link, so the next connection continues there.
 *
 * Everything here is for worker 0's thread, outside of the gate and with no lock held. */
#pragma once

#include "active/adoption.h"
#include "active/receiver.h"
#include "replication/history.h"

struct foreign;
struct handshake;

/* In the other's history. No id: nothing of it is here. */
struct foreign_position {
    struct adoption_origin origin; /* of what this link brings in */
    char id[HISTORY_ID_SIZE + 1];
    int64_t offset;
    unsigned db; /* selected there */
};

/* The handshake has ended, with HANDSHAKE_FULL or HANDSHAKE_CONTINUES. `position`: the link's, kept up to date; it
 * lives until foreign_leave. */
struct foreign *foreign_create(struct worker *worker, struct conn *conn, const struct handshake *handshake,
                               bool continues, struct foreign_position *position,
                               const struct receiver_options *options);
/* From here on only foreign_destroy is called. */
void foreign_leave(struct foreign *foreign);
void foreign_destroy(struct foreign **handle); /* accepts NULL; leaves NULL */

/* As those of the receiver; the data may be kept by the caller, who gives the rest again. */
must_check enum receiver_result foreign_take(struct foreign *foreign, char *data, size_t size, size_t *used);
must_check enum receiver_result foreign_go_on(struct foreign *foreign);
void foreign_say_alive(struct foreign *foreign); /* once a second */

bool foreign_streams(const struct foreign *foreign); /* its data are here */
const char *foreign_error(const struct foreign *foreign);
