/* Deadlines as commands write them, for every family that takes one. */
#pragma once

#include "server/core/request.h"

/* The lifetime a command asked for. */
enum lifetime {
    LIFETIME_NONE,
    LIFETIME_SECONDS,    /* EX: from now on */
    LIFETIME_MS,         /* PX */
    LIFETIME_AT_SECONDS, /* EXAT: since 1970 */
    LIFETIME_AT_MS,      /* PXAT */
    LIFETIME_KEEP,       /* KEEPTTL */
    LIFETIME_PERSIST     /* PERSIST */
};

/* The wall clock time in ms that argument `index` means. False: an error was replied. */
must_check bool expire_arg(struct request *request, uint32_t index, enum lifetime lifetime, int64_t *expire_ms);
/* The same for commands that refuse 0 and less. */
must_check bool expire_arg_positive(struct request *request, uint32_t index, enum lifetime lifetime,
                                    int64_t *expire_ms);

/* Deletes a key whose deadline was put into the past; the command's effect is the deletion. */
void expire_delete(struct request *request, const struct key *key);
/* Gives a key a deadline, with its event; says nothing of the effect. */
void expire_set(struct request *request, const struct key *key, int64_t expire_ms);
/* Takes a key's deadline away, with its event; false: it had none. */
bool expire_remove(struct request *request, const struct key *key, const struct entry *entry);
/* The effect "NAME key ms", with what argument `first_option` and those behind it say. */
void expire_effect(struct request *request, int64_t expire_ms, uint32_t first_option);
