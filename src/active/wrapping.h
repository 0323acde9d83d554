/* The stream for KeyDB servers that follow this node: what an ordinary replica gets, in RREPLAY envelopes
 * (replication/replica_link.h asks for it).
 *
 *  1. The effects of one stamp are one envelope, with the UUID of the origin where they ran and its mvcc. What has no
 *     stamp (values that correct what was placed late, PING) goes under this node's UUID without an mvcc. What expires
 *     is left out: KeyDB does so itself.
 *  2. What ran at the server that is asked, or was brought in from it, is left out; so is the value of a key whose last
 *     operation that is: the server is already further.
 *  3. Commands that KeyDB 6.3.4 does not know are left out (FUNCTION), or told in its words (deadlines of fields).
 *  4. The offsets of such a stream are its own. Behind each few KiB it is noted where that is in the journal, until the
 *     server has acknowledged it: so it can continue. The same records give the same bytes. */
#pragma once

void wrapping_setup(void); /* main thread, before the workers start */
void wrapping_end(void);   /* main thread, behind the workers */
