/* Blocking commands, which wait for a key to be filled: BLPOP and similar commands.
 *
 * A command that finds nothing calls block_client, and its client is answered later. The worker that fills one of its
 * keys runs the command again on behalf of the client, with the stripes it holds, before it releases them. Commands run
 * in order of arrival, after the command, EXEC or script that filled the key. The reply goes to the client's worker by
 * mail. It is posted before the stripes are released, behind the messages about earlier changes.
 *
 *     if (found) { ... reply ...; return; }
 *     block_client(request, &(struct block_wish){...});
 *
 * When the command runs again, request->ready is the one key to look at, and request->client is NULL. The key has
 * something for it: the key's type and can_serve, which replies nothing, have decided that. */
#pragma once

#include "server/core/lifecycle.h"
#include "server/core/request.h"

extern const struct lifecycle blocked_lifecycle;

struct block_wish {
    enum value_type type;   /* only a key of this type serves it */
    const struct key *keys; /* keys to wait for, out of the request's keys */
    uint32_t key_count;
    const struct key *target; /* a key that it changes besides the ready one; NULL: none */
    int64_t timeout_ms;       /* 0: no timeout */
    bool wants_losses;        /* runs also if a key is deleted or changes its type (can_serve is not called then) */
    /* Returns whether the key has something for the command. `request` is as when it runs; it runs only if the result
     * is true. NULL: always true. */
    bool (*can_serve)(const struct request *request, const struct entry *entry);
    const struct slice *args; /* the words of the command when it runs again, the same number; NULL: its own words */
};

/* Blocks the client. After the timeout, and at once within EXEC and scripts, the reply is a null array. Called from the
 * command's function, with the stripes that it holds. */
void block_client(struct request *request, const struct block_wish *wish);
/* Parses a timeout in seconds, as BLPOP takes it. False: an error was replied. */
must_check bool request_arg_timeout(struct request *request, uint32_t index, int64_t *timeout_ms);

/* --- for the server --- */

void blocked_serve(struct worker *worker); /* serves all ready keys; its thread, the stripes are held */
