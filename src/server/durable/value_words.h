/* A key's value as the command that makes it, whatever was there before. */
#pragma once

#include "store/access.h"

/* Calls `add` with the words: SET, RESTORE with REPLACE and ABSTTL, or DEL if there is no such key. They are valid
 * during the call. The stripe is held. */
void value_words(struct access *access, unsigned db, const struct key *key,
                 void (*add)(const struct slice *words, uint32_t count, void *context), void *context);
