/* Conditions on what a key was before a command changes it, and the digest of a string that they may ask for. */
#pragma once

#include "server/core/request.h"

enum condition_kind {
    CONDITION_NONE,
    CONDITION_MISSING,       /* NX: there is no key */
    CONDITION_EXISTS,        /* XX */
    CONDITION_EQUALS,        /* IFEQ value: the key is this string */
    CONDITION_DIFFERS,       /* IFNE value: it is another one, or missing */
    CONDITION_DIGEST_EQUALS, /* IFDEQ digest */
    CONDITION_DIGEST_DIFFERS /* IFDNE digest; true also if the key is missing */
};

struct condition {
    enum condition_kind kind;
    uint32_t value_index; /* the argument with the value or digest, if it has one */
};

static inline bool condition_reads_value(enum condition_kind kind)
{
    return kind >= CONDITION_EQUALS;
}
enum condition_kind condition_of_word_slow(struct slice word);
/* CONDITION_NONE: the word is no such option, as most are not. */
static inline enum condition_kind condition_of_word(struct slice word)
{
    const char first = word.size != 0 ? (char)(*word.data | 32) : '\0';

    return first == 'n' || first == 'x' || first == 'i' ? condition_of_word_slow(word) : CONDITION_NONE;
}

/* Parses the condition at *index, of the kind that its word says, and goes to its last argument. The same kind may be
 * repeated: the last one counts. False: it is none, lacks its value, or there was another kind before. */
must_check bool condition_parse(const struct request *request, uint32_t *index, enum condition_kind kind,
                                struct condition *condition);

/* Whether the condition holds of the entry, NULL: the key is missing. One that reads the value needs a string.
 * False: an error was replied. */
must_check bool condition_check(struct request *request, const struct condition *condition, const struct entry *entry,
                                bool *holds);

enum { STRING_DIGEST_BYTES = 16 };
/* The digest of DIGEST: XXH3 (64 bits, seed 0) as lower-case hexadecimal digits. */
void string_digest(struct slice string, char text[STRING_DIGEST_BYTES + 1]);
