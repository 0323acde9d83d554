#include "server/run/obeyed.h"

#include "base/mem.h"
#include "server/core/client.h"
#include "server/core/worker.h"

struct client *obeyed_client_create(struct worker *worker, char *address)
{
    static char nowhere[] = ""; /* global: an address that nobody has; never written */
    struct client *client = mem_alloc_zero(sizeof(*client));

    client->worker = worker;
    client->id = UINT64_MAX;
    client->proto = 2;
    client->flags = CLIENT_AUTHENTICATED | CLIENT_REPLY_OFF | CLIENT_OBEYED;
    client->card.id = client->id;
    client->card.address = address != NULL ? address : nowhere;
    client->card.local_address = nowhere;
    client->card.user_name = nowhere;
    return client;
}

void obeyed_client_destroy(struct client **client)
{
    if (*client == NULL)
        return;
    output_clear(&(*client)->conn.output);
    mem_free(*client);
    *client = NULL;
}

static bool is_plain(const struct command *command, const char *name)
{
    return slice_equal_text(command->full_name, name);
}

bool obeyed_belongs(const struct command *command)
{
    const uint32_t data = COMMAND_WRITE | COMMAND_READONLY | COMMAND_MAY_REPLICATE | COMMAND_SCRIPT;

    if ((command->flags & COMMAND_ADMIN) != 0 && (command->flags & COMMAND_WRITE) == 0)
        return false;
    if (is_plain(command, "post") || is_plain(command, "host:")) /* they close their connection */
        return false;
    return (command->flags & data) != 0 || slice_starts_with(command->full_name, SLICE("script|")) ||
           is_plain(command, "select") || is_plain(command, "multi") || is_plain(command, "exec") ||
           is_plain(command, "ping") || is_plain(command, "echo");
}
