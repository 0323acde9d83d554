#include "commands/connection/client_control.h"

#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/run/pause.h"
#include "server/run/rendezvous.h"

void cmd_client_pause(struct request *request)
{
    enum pause_mode mode = PAUSE_ALL;
    int64_t timeout_ms;

    if (request->arg_count > 4) {
        reply_subcommand_syntax_error(request);
        return;
    }
    if (request->arg_count == 4) {
        if (request_arg_is(request, 3, "write")) {
            mode = PAUSE_WRITES;
        } else if (!request_arg_is(request, 3, "all")) {
            reply_error(request, "ERR CLIENT PAUSE mode must be WRITE or ALL");
            return;
        }
    }
    if (!request_arg_range(request, 2, INT64_MIN, INT64_MAX, &timeout_ms,
                           "ERR timeout is not an integer or out of range"))
        return;
    if (timeout_ms < 0) {
        reply_error(request, "ERR timeout is negative");
        return;
    }
    pause_begin(request->worker, mode, timeout_ms);
    reply_ok(request);
    rendezvous_begin(request->client, RENDEZVOUS_ALL, RENDEZVOUS_COMMANDS);
}

void cmd_client_unpause(struct request *request)
{
    pause_end(request->worker->server);
    reply_ok(request);
}

struct unblocking {
    uint64_t id;
    bool with_error, done;
};

/* Whoever changes the card's state from CLIENT_WAIT_ON ends the wait: the timeout, a filled key, or this command. */
static bool unblock(struct client_card *card, void *context)
{
    struct unblocking *unblocking = context;

    if (card->id != unblocking->id || unblocking->done)
        return false;
    unblocking->done = client_card_claim(card, unblocking->with_error ? CLIENT_WAIT_ERROR : CLIENT_WAIT_TIMEOUT);
    return unblocking->done;
}

void cmd_client_unblock(struct request *request)
{
    struct unblocking unblocking = {0};
    int64_t id;

    if (request->arg_count == 4 && request_arg_is(request, 3, "error")) {
        unblocking.with_error = true;
    } else if (request->arg_count == 4 && !request_arg_is(request, 3, "timeout")) {
        reply_error(request, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        return;
    } else if (request->arg_count > 4) {
        reply_subcommand_syntax_error(request);
        return;
    }
    if (!request_arg_i64(request, 2, &id))
        return;
    unblocking.id = (uint64_t)id;
    server_request_clients(request->worker, CLIENT_REQUEST_UNBLOCK, unblock, &unblocking, NULL);
    reply_int(request, unblocking.done);
}
