/* A key's value as the command that makes it, whatever was there before. */
#pragma once

#include "store/access.h"

/* Calls `add` with the words: SET, RESTORE with REPLACE and ABSTTL, or DEL if there is no such key. They are valid
 * during the call. `value`: a large one is a word that is the whole of this blob, so that no copy is needed to keep it;
 * NULL: it is not large. The stripe is held. */
typedef void (*value_words_fn)(const struct slice *words, uint32_t count, struct blob *value, void *context);
void value_words(struct access *access, unsigned db, const struct key *key, value_words_fn add, void *context);
