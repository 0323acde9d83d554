/* Deadlines in the arguments of commands, for every family that takes them. */
#pragma once

#include "server/core/request.h"

/* The form of a deadline in a command. */
enum lifetime {
    LIFETIME_NONE,
    LIFETIME_SECONDS,    /* EX: seconds from now */
    LIFETIME_MS,         /* PX */
    LIFETIME_AT_SECONDS, /* EXAT: since 1970 */
    LIFETIME_AT_MS,      /* PXAT */
    LIFETIME_KEEP,       /* KEEPTTL */
    LIFETIME_PERSIST     /* PERSIST */
};

enum lifetime lifetime_of_word(struct slice word); /* LIFETIME_NONE: no such option */
static inline bool lifetime_takes_time(enum lifetime lifetime)
{
    return lifetime >= LIFETIME_SECONDS && lifetime <= LIFETIME_AT_MS;
}

/* Returns argument `index` as a wall clock time in ms. False: an error was replied. */
must_check bool expire_arg(struct request *request, uint32_t index, enum lifetime lifetime, int64_t *expire_ms);
/* The same for commands that refuse values below 1. */
must_check bool expire_arg_positive(struct request *request, uint32_t index, enum lifetime lifetime,
                                    int64_t *expire_ms);

/* Deletes a key because its new deadline is in the past; the command's effect is the deletion. */
void expire_delete(struct request *request, const struct key *key);
/* Sets a key's deadline, with its event; does not set an effect. */
void expire_set(struct request *request, const struct key *key, int64_t expire_ms);
/* Removes a key's deadline, with its event; false: the key had none. */
bool expire_remove(struct request *request, const struct key *key, const struct entry *entry);
/* Sets the effect "NAME key ms", followed by the arguments from `first_option` on. */
void expire_effect(struct request *request, int64_t expire_ms, uint32_t first_option);
