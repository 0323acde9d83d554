#include "server/acl/acl_client.h"

#include "base/assert.h"
#include "base/gate.h"
#include "net/tls.h"
#include "server/acl/acl_options.h"
#include "server/acl/acl_user.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/stats_info.h"
#include "server/pubsub/pubsub.h"
#include "server/core/transaction.h"

#include <stdio.h>

enum { USER_BYTES_SHOWN = 256 };

/* --------------------------------------------------------------------------------------------------------- whose -- */

static void set_user(struct client *client, struct acl_user *user)
{
    struct acl_user *old = client->card.user;

    client_assert_owned(client);
    spinlock_acquire(&client->worker->roster_lock);
    client->card.user = user;
    client->card.user_name = user != NULL ? user->name.data : "";
    spinlock_release(&client->worker->roster_lock);
    client->flags = user == NULL || user->may_everything ? client->flags & ~(uint32_t)CLIENT_RESTRICTED
                                                         : client->flags | CLIENT_RESTRICTED;
    acl_user_release(&old);
}

static bool needs_no_password(const struct acl_user *user)
{
    return (user->flags & (ACL_ON | ACL_NOPASS)) == (ACL_ON | ACL_NOPASS);
}

void acl_client_enter(struct client *client)
{
    struct acl_user *user = acl_default();

    client_assert_owned(client);
    set_user(client, user);
    client_set_authenticated(client, needs_no_password(user));
}

static void leave(struct client *client)
{
    set_user(client, NULL);
}

void acl_client_become(struct client *client, struct acl_user **user)
{
    assert(*user != NULL);
    client_assert_owned(client);
    set_user(client, *user);
    *user = NULL;
    client_set_authenticated(client, true);
}

/* A name in a certificate that may be that of its client's user. */
struct candidate {
    struct client *client;
    char name[512];
    size_t size; /* 0: there was none yet */
};

/* The client becomes this user, if there is one. A user that is off is not used, as with a password. */
static bool try_name(const char *name, size_t size, void *context)
{
    struct candidate *candidate = context;
    struct acl_user *user;
    bool may_be;

    if (size == 0 || size >= sizeof(candidate->name))
        return false;
    memcpy(candidate->name, name, size);
    candidate->size = size;
    user = acl_find(slice_make(name, size));
    may_be = user != NULL && (user->flags & ACL_ON) != 0;
    if (may_be)
        acl_client_become(candidate->client, &user);
    acl_user_release(&user);
    return may_be;
}

/* Where no name is that of a user, the client stays the default user, which is noted. */
static void recognise(struct client *client)
{
    struct candidate candidate = {.client = client};
    char name[sizeof(candidate.name) + 1]; /* longer than any that is tried: a name that was cut is none */
    bool is_known;

    client_assert_owned(client);
    if (OPTION_GET(option_tls_auth_clients_user) == TLS_USER_OFF)
        return;
    if (OPTION_GET(option_tls_auth_clients_user) == TLS_USER_URI)
        is_known = tls_conn_peer_match_uris(&client->conn, try_name, &candidate);
    else
        is_known = try_name(name, tls_conn_peer_common_name(&client->conn, name, sizeof(name)), &candidate);
    if (is_known || candidate.size == 0)
        return;
    counter_add(&client->worker->stats.acl_denied_certificate, 1);
    acl_log_add(ACL_REASON_CERTIFICATE, ACL_CONTEXT_TOPLEVEL, SLICE(""), slice_make(candidate.name, candidate.size),
                client, worker_now_ms(client->worker));
}

struct slice acl_client_name(const struct client *client)
{
    client_assert_owned(client);
    return client->card.user->name;
}

/* ------------------------------------------------------------------------------------------------------ changes -- */

struct subscriptions {
    const struct acl_user *user;
    enum topic_kind kind;
    bool are_allowed;
};

static void look_at_subscription(struct slice name, void *context)
{
    struct subscriptions *all = context;

    all->are_allowed = all->are_allowed && acl_may_channel(all->user, name, all->kind == TOPIC_PATTERN);
}

/* True if the user still may use the channels of its subscriptions. */
static bool may_keep_subscriptions(const struct client *client, const struct acl_user *user)
{
    struct subscriptions all = {.user = user, .are_allowed = true};

    for (int kind = 0; kind < PUBSUB_KINDS; kind++) {
        all.kind = (enum topic_kind)kind;
        pubsub_each(client, all.kind, look_at_subscription, &all);
    }
    return all.are_allowed;
}

/* False: its user was deleted, or may not use the channels of its subscriptions any more. */
static bool refresh_client(struct client *client)
{
    struct acl_user *old = client->card.user, *user;

    client_assert_owned(client);
    assert(old != NULL);
    if (!atomic_load_explicit(&old->is_outdated, memory_order_relaxed))
        return true;
    user = acl_find(old->name);
    if (user == NULL || user->identity != old->identity) {
        acl_user_release(&user);
        return false;
    }
    set_user(client, user);
    if (!client_is_authenticated(client) && needs_no_password(user))
        client_set_authenticated(client, true);
    return user->may_everything || may_keep_subscriptions(client, user);
}

void acl_refresh_clients(struct worker *worker)
{
    worker_assert_self(worker);
    worker->acl_generation = atomic_load_explicit(&acl_generation, memory_order_acquire);
    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);

        if (!conn_is_closing(&client->conn) && !refresh_client(client))
            client_kill(client);
    }
}

void acl_client_apply(struct client *client)
{
    client_assert_owned(client);
    if (!refresh_client(client)) {
        acl_client_enter(client); /* it did that to itself: it gets the reply yet */
        conn_close_after_flush(&client->conn);
    }
    acl_refresh(client->worker);
}

/* ----------------------------------------------------------------------------------------------------- refusals -- */

/* The log tells what CLIENT LIST would. */
static void show_command(struct client *client, const struct command *command)
{
    client_update_card(client);
    atomic_store_explicit(&client->card.command_id, command->id, memory_order_relaxed);
}

static void count_refusal(struct worker *worker, enum acl_verdict verdict)
{
    switch (verdict) {
    case ACL_DENIED_DATABASE:
        counter_add(&worker->stats.acl_denied_database, 1);
        break;
    case ACL_DENIED_COMMAND:
        counter_add(&worker->stats.acl_denied_command, 1);
        break;
    case ACL_DENIED_KEY:
        counter_add(&worker->stats.acl_denied_key, 1);
        break;
    case ACL_DENIED_CHANNEL:
        counter_add(&worker->stats.acl_denied_channel, 1);
        break;
    case ACL_ALLOWED:
        break;
    }
}

void acl_note_refusal(struct client *client, struct acl_decision decision, enum acl_context context,
                      const struct command *running, const struct command *command, const struct slice *args)
{
    static const enum acl_reason reasons[] = {[ACL_DENIED_DATABASE] = ACL_REASON_DATABASE,
                                              [ACL_DENIED_COMMAND] = ACL_REASON_COMMAND,
                                              [ACL_DENIED_KEY] = ACL_REASON_KEY,
                                              [ACL_DENIED_CHANNEL] = ACL_REASON_CHANNEL};
    struct slice object = decision.arg_index == 0 ? command->full_name : args[decision.arg_index];

    client_assert_owned(client);
    assert(decision.verdict != ACL_ALLOWED);
    count_refusal(client->worker, decision.verdict);
    show_command(client, running);
    acl_log_add(reasons[decision.verdict], context, object, acl_client_name(client), client,
                worker_now_ms(client->worker));
}

void acl_note_wrong_password(const struct request *request, struct slice user)
{
    client_assert_owned(request->client);
    counter_add(&request->worker->stats.acl_denied_auth, 1);
    show_command(request->client, request->command);
    acl_log_add(ACL_REASON_AUTH, request->in_exec ? ACL_CONTEXT_MULTI : ACL_CONTEXT_TOPLEVEL, request_arg(request, 0),
                user, request->client, worker_now_ms(request->worker));
}

/* What follows NOPERM; the texts may be cut to the room. */
static void print_refusal(struct slice user, const struct command *command, struct acl_decision decision,
                          char room[ACL_REFUSAL_SPACE])
{
    static const char *const objects[] =
        {[ACL_DENIED_DATABASE] = "database", [ACL_DENIED_KEY] = "a key", [ACL_DENIED_CHANNEL] = "a channel"};

    if (decision.verdict == ACL_DENIED_COMMAND)
        snprintf(room, ACL_REFUSAL_SPACE, "User %.*s has no permissions to run the '%.*s' command",
                 (int)MIN(user.size, (size_t)USER_BYTES_SHOWN), user.data, (int)command->full_name.size,
                 command->full_name.data);
    else
        snprintf(room, ACL_REFUSAL_SPACE, "No permissions to access %s", objects[decision.verdict]);
}

static void reply_refusal(struct request *request, struct slice user, struct acl_decision decision)
{
    char text[ACL_REFUSAL_SPACE];

    print_refusal(user, request->command, decision, text);
    reply_errorf(request, "%sNOPERM %s",
                 decision.verdict == ACL_DENIED_COMMAND && request->command->row->access == ACCESS_TRANSACTION
                     ? REFUSED_EXEC
                     : "",
                 text);
}

bool acl_refuses(struct request *request)
{
    struct client *client = request->client;
    const unsigned db = client->transaction != NULL ? transaction_db(client->transaction) : client->db;
    struct acl_decision decision = acl_check(client->card.user, db, request->command, request->args,
                                             request->arg_count);

    client_assert_owned(client);
    if (decision.verdict == ACL_ALLOWED)
        return false;
    acl_note_refusal(client, decision, client->transaction != NULL ? ACL_CONTEXT_MULTI : ACL_CONTEXT_TOPLEVEL,
                     request->command, request->command, request->args);
    reply_refusal(request, acl_client_name(client), decision);
    return true;
}

bool acl_refuses_queued(struct request *exec, const struct command *command, const struct slice *args,
                        uint32_t arg_count)
{
    static const char *const reasons[] = {
        [ACL_DENIED_DATABASE] = "no permission",
        [ACL_DENIED_COMMAND] = "no permission to execute the command or subcommand",
        [ACL_DENIED_KEY] = "no permission to touch the specified keys",
        [ACL_DENIED_CHANNEL] = "no permission to access one of the channels used as arguments",
    };
    struct acl_decision decision = acl_check(exec->client->card.user, exec->client->db, command, args, arg_count);

    client_assert_owned(exec->client);
    if (decision.verdict == ACL_ALLOWED)
        return false;
    acl_note_refusal(exec->client, decision, ACL_CONTEXT_MULTI, exec->command, command, args);
    reply_errorf(exec,
                 "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
                 "call. This command is no longer allowed for the following reason: %s",
                 reasons[decision.verdict]);
    return true;
}

const char *acl_refusal_in_script(const struct request *running, const struct command *command,
                                  const struct slice *args, uint32_t arg_count, char room[ACL_REFUSAL_SPACE])
{
    static const char before[] = "ERR ACL failure in script: ";
    struct client *client = running->client;
    struct acl_decision decision;
    char text[ACL_REFUSAL_SPACE];

    client_assert_owned(client);
    if (LIKELY((client->flags & CLIENT_RESTRICTED) == 0))
        return NULL;
    decision = acl_check(client->card.user, client->db, command, args, arg_count);
    if (decision.verdict == ACL_ALLOWED)
        return NULL;
    acl_note_refusal(client, decision, ACL_CONTEXT_LUA, running->command, command, args);
    print_refusal(acl_client_name(client), command, decision, text);
    snprintf(room, ACL_REFUSAL_SPACE, "%s%.*s", before, (int)(ACL_REFUSAL_SPACE - sizeof(before)), text);
    return room;
}

bool acl_refuses_served(struct request *request, const struct acl_user *user, struct acl_decision *decision)
{
    struct acl_user *now = NULL;

    worker_assert_inside(request->worker);
    *decision = (struct acl_decision){ACL_ALLOWED, 0};
    if (LIKELY(!atomic_load_explicit(&user->is_outdated, memory_order_relaxed)))
        return false; /* it was asked when it came */
    now = acl_find(user->name);
    if (now != NULL && now->identity == user->identity)
        *decision = acl_check(now, request->db, request->command, request->args, request->arg_count);
    else
        decision->verdict = ACL_DENIED_COMMAND;
    acl_user_release(&now);
    if (decision->verdict == ACL_ALLOWED)
        return false;
    reply_refusal(request, user->name, *decision);
    return true;
}

bool acl_client_may(const struct client *client, const struct command *command, const struct slice *args,
                    uint32_t arg_count)
{
    client_assert_owned(client);
    return acl_check(client->card.user, client->db, command, args, arg_count).verdict == ACL_ALLOWED;
}

bool acl_may_read_all_keys(const struct request *request)
{
    const struct client *client = request->client;

    client_assert_owned(client);
    return (client->flags & CLIENT_RESTRICTED) == 0 ||
           acl_may_all_keys(client->card.user, request->db, request->command, request->args, request->arg_count,
                            ACL_READ);
}

static bool admit(struct client *client)
{
    recognise(client);
    return true;
}

static const char *apply_requirepass(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    acl_set_default_password(slice_make(option_requirepass.data, option_requirepass.size));
    return NULL;
}

static bool start(struct server *server)
{
    gate_assert_main_alone();
    (void)server;
    config_on_change("requirepass", apply_requirepass);
    return true;
}

const struct lifecycle acl_client_lifecycle = {
    .server_start = start,
    .client_open = acl_client_enter,
    .client_admit = admit, /* its certificate may name its user (tls-auth-clients-user) */
    .client_close = leave,
};

const struct info_row acl_client_info[] = {
    INFO_STAT("acl_access_denied_auth", acl_denied_auth),
    INFO_STAT("acl_access_denied_cmd", acl_denied_command),
    INFO_STAT("acl_access_denied_key", acl_denied_key),
    INFO_STAT("acl_access_denied_channel", acl_denied_channel),
    INFO_STAT("acl_access_denied_db", acl_denied_database),
    INFO_STAT("acl_access_denied_tls_cert", acl_denied_certificate),
    {0},
};
