/* Commands that wait for something to come into a key: BLPOP and the like.
 *
 * A command that finds nothing calls block_client, and its client is answered later. Whoever fills one of its keys runs
 * the command once more on its behalf, with what it holds anyway, before it gives the stripes back: in order of
 * arrival, after the command, EXEC or script that filled the key. The reply goes to the client's worker by mail, posted
 * before the stripes are given back, behind what is told of the changes before it.
 *
 *     if (found) { ... reply ...; return; }
 *     block_client(request, &(struct block_wish){...});
 *
 * When it runs again request->ready is the one key to look at, and request->client is NULL. There is something for it
 * then: whether there is has been decided by the key's type and by can_serve, which replies nothing. */
#pragma once

#include "server/core/lifecycle.h"
#include "server/core/request.h"

extern const struct lifecycle blocked_lifecycle;

struct block_wish {
    enum value_type type;   /* a key must be of this type to serve it */
    const struct key *keys; /* to wait for: of the request's keys */
    uint32_t key_count;
    const struct key *target; /* a key it changes besides the one that is ready; NULL: none */
    int64_t timeout_ms;       /* 0: for ever */
    bool wants_losses;        /* runs also when a key has gone or become another type (can_serve is not asked) */
    /* Is there something for it? The request is as it would run; it is not run if not. NULL: always. */
    bool (*can_serve)(const struct request *request, const struct entry *entry);
    const struct slice *args; /* of these words the command consists when it runs again, as many; NULL: its own */
};

/* After the time-out, and at once within EXEC and scripts, the reply is a null array. From the command's function, with
 * what it holds. */
void block_client(struct request *request, const struct block_wish *wish);
/* Seconds, as BLPOP takes them. False: an error was replied. */
must_check bool request_arg_timeout(struct request *request, uint32_t index, int64_t *timeout_ms);

/* --- for the server --- */

void blocked_serve(struct worker *worker); /* all that is ready; its thread, the stripes are held */
