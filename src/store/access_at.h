/* Access to keys that are looked at, changed and stamped in a row, by whoever places operations: the key is searched
 * once. Where it was found is known as long as nothing came or went in its stripe (struct access_spot); else it is
 * searched again. So a spot never has to be right. The key's stripe was held since it was given. */
#pragma once

#include "store/access.h"

/* access_look, and where that is. */
const struct entry *access_look_at(struct access *access, unsigned db, const struct key *key, struct access_spot *spot);
/* Behind access_begin: the command that follows finds the key without a search. False: it has to look, as something
 * came, went or is due there. */
must_check bool access_find_at(struct access *access, unsigned db, const struct key *key,
                               const struct access_spot *spot);
/* change_find with change_set_version and change_abandon. False: the key is not there. spot NULL: not known. Version 0:
 * only looks. */
bool access_set_version(struct access *access, unsigned db, const struct key *key, const struct access_spot *spot,
                        uint64_t version);
