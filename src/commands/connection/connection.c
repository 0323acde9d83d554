/* The connection and its session: PING, ECHO, SELECT, QUIT, RESET, AUTH, HELLO, CLIENT. Free of stripes and gate: a
 * connection belongs to its worker, and other threads read its card. */
#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/version.h"
#include "commands/connection/client_control.h"
#include "commands/connection/client_filter.h"
#include "commands/connection/client_tracking.h"
#include "commands/shared/families.h"
#include "replication/master_client.h"
#include "replication/master_link.h"
#include "server/acl/acl_client.h"
#include "server/acl/acl_user.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/pubsub/monitor.h"
#include "server/pubsub/pubsub.h"
#include "server/pubsub/tracking.h"
#include "server/run/dispatch.h"
#include "server/process/availability_zone.h"
#include "server/run/rendezvous.h"
#include "server/upkeep/soft_shutdown.h"

#include <stdio.h>
#include <stdlib.h>

static const char wrong_password[] = "WRONGPASS invalid username-password pair or user is disabled.";

/* How much of a word of the client is repeated in an error. */
static int shown_size(struct slice word)
{
    return (int)MIN(word.size, (size_t)128);
}

/* ----------------------------------------------------------------------------------------------- small commands -- */

/* Clients that read messages over RESP2 expect an array. */
static void reply_pong_as_message(struct request *request)
{
    reply_array(request, 2);
    reply_text(request, "pong");
    reply_bulk(request, request->arg_count == 2 ? request_arg(request, 1) : SLICE_EMPTY);
}

static void cmd_ping(struct request *request)
{
    if (request->arg_count > 2)
        reply_errorf(request, "ERR wrong number of arguments for '%s' command", request->command->row->name);
    else if (soft_shutdown_is_pending() && (request->client->flags & CLIENT_MONITOR) == 0)
        reply_error(request, "SHUTDOWN PENDING");
    else if ((request->client->flags & CLIENT_PUBSUB) != 0 && request->proto == 2)
        reply_pong_as_message(request);
    else if (request->arg_count == 2)
        reply_bulk(request, request_arg(request, 1));
    else
        reply_status(request, "PONG");
}

static void cmd_echo(struct request *request)
{
    reply_bulk(request, request_arg(request, 1));
}

static bool select_find_databases(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    (void)args, (void)arg_count;
    key_positions_add(positions, 1, 0);
    return true;
}

static void cmd_select(struct request *request)
{
    unsigned db;

    if (!request_arg_db(request, 1, &db, NULL))
        return;
    request->client->db = db;
    reply_ok(request);
}

static void cmd_quit(struct request *request)
{
    reply_ok(request);
    conn_close_after_flush(&request->client->conn);
}

/* POST and Host: are lines of HTTP. A web browser was tricked into sending a request here whose body may contain
 * commands. The connection is closed, and nothing that follows is run. */
static void cmd_not_for_us(struct request *request)
{
    enum { LOG_AGAIN_MS = 60000 };
    static _Atomic int64_t logged_ms; /* atomic: when it was last said, relaxed */
    int64_t now_ms = request->access->now_ms, last_ms = atomic_load_explicit(&logged_ms, memory_order_relaxed);

    if ((last_ms == 0 || now_ms - last_ms > LOG_AGAIN_MS) &&
        atomic_compare_exchange_strong_explicit(&logged_ms, &last_ms, now_ms, memory_order_relaxed,
                                                memory_order_relaxed))
        log_warning("Possible SECURITY ATTACK detected: client %s sent an HTTP request (POST or Host:). A web page "
                    "may have made a browser send it (cross protocol scripting). Connection aborted.",
                    request->client->card.address);
    conn_close(&request->client->conn);
}

static void cmd_reset(struct request *request)
{
    const uint32_t session_flags = CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT | CLIENT_NO_EVICT |
                                   CLIENT_NO_TOUCH | CLIENT_AS_MASTER | CLIENT_CAPA_REDIRECT | CLIENT_READONLY |
                                   CLIENT_IMPORT_SOURCE;
    struct client *client = request->client;

    pubsub_catch_up(client);
    client_reset_transaction(client);
    monitor_stop(client);
    pubsub_leave(client);
    tracking_disable(client);
    client->flags &= ~session_flags;
    client->db = 0;
    client->proto = 2;
    client_set_name(client, &client->card.name, SLICE_EMPTY);
    acl_client_enter(client);
    resp_write_status(&client->conn.output, SLICE("RESET")); /* the replies are on again */
}

/* -------------------------------------------------------------------------------------- authentication and names -- */

/* Replies an error if that is not the user's password. */
static bool authenticate(struct request *request, struct slice name, struct slice password)
{
    struct acl_user *user = acl_authenticate(name, password);

    if (user == NULL) {
        acl_note_wrong_password(request, name);
        reply_error(request, wrong_password);
        return false;
    }
    acl_client_become(request->client, &user);
    return true;
}

static void cmd_auth(struct request *request)
{
    bool names_user = request->arg_count == 3;

    for (uint32_t i = 1; i < request->arg_count; i++)
        request_redact(request, i);
    if (request->arg_count > 3)
        reply_syntax_error(request);
    else if (!names_user && atomic_load_explicit(&acl_default_is_nopass, memory_order_relaxed))
        reply_error(request, "ERR AUTH <password> called without any password configured for the default user. Are "
                             "you sure your configuration is correct?");
    else if (authenticate(request, names_user ? request_arg(request, 1) : SLICE("default"),
                          request_arg(request, request->arg_count - 1)))
        reply_ok(request);
}

/* Names must be plain, so that CLIENT LIST can be read. */
static bool is_plain(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '!' || text.data[i] > '~')
            return false;
    }
    return true;
}

static bool set_client_name(struct request *request, struct slice name)
{
    if (!is_plain(name)) {
        reply_error(request, "ERR Client names cannot contain spaces, newlines or special characters.");
        return false;
    }
    client_set_name(request->client, &request->client->card.name, name);
    return true;
}

/* Parses the options of HELLO and applies each at once. */
static bool hello_options(struct request *request)
{
    for (uint32_t i = 2; i < request->arg_count; i++) {
        uint32_t more = request->arg_count - 1 - i;

        if (request_arg_is(request, i, "auth") && more >= 2) {
            request_redact(request, i + 1);
            request_redact(request, i + 2);
            if (!authenticate(request, request_arg(request, i + 1), request_arg(request, i + 2)))
                return false;
            i += 2;
        } else if (request_arg_is(request, i, "setname") && more >= 1) {
            if (!set_client_name(request, request_arg(request, i + 1)))
                return false;
            i += 1;
        } else {
            reply_errorf(request, "ERR Syntax error in HELLO option '%.*s'", shown_size(request_arg(request, i)),
                         request_arg(request, i).data);
            return false;
        }
    }
    return true;
}

static const char *role_word(void)
{
    if (role_is_active())
        return "active-replica";
    return role_follows() ? "replica" : "master";
}

static void reply_hello(struct request *request)
{
    char zone[AVAILABILITY_ZONE_BYTES_MOST];
    const size_t zone_size = availability_zone_copy(zone);

    reply_map(request, zone_size != 0 ? 8 : 7);
    reply_text(request, "server");
    reply_text(request, "redis");
    reply_text(request, "version");
    reply_text(request, KEYDB_REDIS_VERSION);
    reply_text(request, "proto");
    reply_int(request, request->proto);
    reply_text(request, "id");
    reply_int(request, (int64_t)request->client->id);
    reply_text(request, "mode");
    reply_text(request, "standalone");
    reply_text(request, "role");
    reply_text(request, role_word());
    reply_text(request, "modules");
    reply_array(request, 0);
    if (zone_size != 0) {
        reply_text(request, "availability_zone");
        reply_bulk(request, slice_make(zone, zone_size));
    }
}

static void cmd_hello(struct request *request)
{
    struct client *client = request->client;
    int64_t proto = client->proto;

    if (request->arg_count > 1 && !request_arg_range(request, 1, INT64_MIN, INT64_MAX, &proto,
                                                     "ERR Protocol version is not an integer or out of range"))
        return;
    if (proto < 2 || proto > 3) {
        reply_error(request, "NOPROTO unsupported protocol version");
        return;
    }
    if (!hello_options(request))
        return;
    if (!client_is_authenticated(client)) {
        reply_error(request, "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
                             "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
                             "protocol version at the same time");
        return;
    }
    if (!request->in_exec)
        pubsub_catch_up(client);
    client->proto = (uint8_t)proto;
    request->proto = (int)proto;
    reply_hello(request);
}

/* -------------------------------------------------------------------------------------------------- CLIENT: mine -- */

static void cmd_client_id(struct request *request)
{
    reply_int(request, (int64_t)request->client->id);
}

static void cmd_client_getname(struct request *request)
{
    const char *name = request->client->card.name; /* only its owner changes it */

    if (name != NULL)
        reply_text(request, name);
    else
        reply_null(request);
}

static void cmd_client_setname(struct request *request)
{
    if (set_client_name(request, request_arg(request, 2)))
        reply_ok(request);
}

static void cmd_client_setinfo(struct request *request)
{
    struct client_card *card = &request->client->card;
    struct slice option = request_arg(request, 2), value = request_arg(request, 3);
    char **field;

    if (request_arg_is(request, 2, "lib-name")) {
        field = &card->library_name;
    } else if (request_arg_is(request, 2, "lib-ver")) {
        field = &card->library_version;
    } else {
        reply_errorf(request, "ERR Unrecognized option '%.*s'", shown_size(option), option.data);
        return;
    }
    if (!is_plain(value)) {
        reply_errorf(request, "ERR %.*s cannot contain spaces, newlines or special characters.", shown_size(option),
                     option.data);
        return;
    }
    client_set_name(request->client, field, value);
    reply_ok(request);
}

/* ON or OFF as argument 2; replies an error and returns false if it is neither. */
static bool switch_flag(struct request *request, uint32_t flag)
{
    if (request_arg_is(request, 2, "on")) {
        request->client->flags |= flag;
    } else if (request_arg_is(request, 2, "off")) {
        request->client->flags &= ~flag;
    } else {
        reply_syntax_error(request);
        return false;
    }
    return true;
}

static void cmd_client_no_evict(struct request *request)
{
    if (switch_flag(request, CLIENT_NO_EVICT))
        reply_ok(request);
}

static void cmd_client_no_touch(struct request *request)
{
    if (switch_flag(request, CLIENT_NO_TOUCH))
        reply_ok(request);
}

static void cmd_client_import_source(struct request *request)
{
    if (!store_is_importing(request->access->store) && !request_arg_is(request, 2, "off"))
        reply_error(request, "ERR Server is not in import mode");
    else if (switch_flag(request, CLIENT_IMPORT_SOURCE))
        reply_ok(request);
}

/* What a client may say that this server does not know is no error. */
static void cmd_client_capa(struct request *request)
{
    for (uint32_t i = 2; i < request->arg_count; i++) {
        if (request_arg_is(request, i, "redirect"))
            request->client->flags |= CLIENT_CAPA_REDIRECT;
    }
    reply_ok(request);
}

static void cmd_client_reply(struct request *request)
{
    struct client *client = request->client;

    if (request_arg_is(request, 2, "on")) {
        client->flags &= ~(uint32_t)(CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT);
        resp_write_ok(&client->conn.output); /* request->out may still be the output that is discarded */
    } else if (request_arg_is(request, 2, "off")) {
        client->flags |= CLIENT_REPLY_OFF;
    } else if (!request_arg_is(request, 2, "skip")) {
        reply_syntax_error(request);
    } else if ((client->flags & CLIENT_REPLY_OFF) == 0) {
        client->flags |= CLIENT_REPLY_SKIP_NEXT;
    }
}

/* ------------------------------------------------------------------------------------------------ CLIENT: others -- */

static bool is_being_killed(const struct client_card *card)
{
    return (atomic_load_explicit(&card->requests, memory_order_relaxed) & CLIENT_REQUEST_KILL) != 0;
}

/* The lines of CLIENT LIST, found under one roster lock after the other, then put in order. */
struct roster_line {
    uint64_t id;
    size_t offset, size;
};

struct roster_lines {
    struct buffer text;
    struct roster_line *items;
    size_t count, capacity;
    const struct client_filter *filter;
    const struct client_card *skipped; /* NULL: nobody */
};

static void add_line(const struct client_card *card, void *context)
{
    struct roster_lines *lines = context;
    struct roster_line line = {.id = card->id, .offset = lines->text.size};

    if (is_being_killed(card) || card == lines->skipped || !client_filter_takes(lines->filter, card))
        return;
    client_card_print(card, &lines->text);
    buffer_append_char(&lines->text, '\n');
    line.size = lines->text.size - line.offset;
    *ARRAY_PUSH(lines) = line;
}

static int compare_lines(const void *a, const void *b)
{
    uint64_t first = ((const struct roster_line *)a)->id, second = ((const struct roster_line *)b)->id;

    return (first > second) - (first < second);
}

static void append_line(struct buffer *text, const struct roster_lines *lines, const struct roster_line *line)
{
    buffer_append(text, lines->text.data + line->offset, line->size);
}

/* Of the clients named from argument 3 on, in that order. */
static void append_lines_of_ids(struct request *request, struct buffer *text, const struct roster_lines *lines)
{
    for (uint32_t i = 3; i < request->arg_count; i++) {
        struct roster_line wanted = {0};
        const struct roster_line *line;

        if (lines->count == 0 || !number_parse_u64(request_arg(request, i), &wanted.id))
            continue; /* below zero: nobody */
        line = bsearch(&wanted, lines->items, lines->count, sizeof(wanted), compare_lines);
        if (line != NULL)
            append_line(text, lines, line);
    }
}

/* Updates the card of the sender, so that it shows this command. */
static void show_own_card(struct request *request)
{
    size_t args_bytes = 0;

    for (uint32_t i = 0; i < request->arg_count; i++)
        args_bytes += request_arg(request, i).size;
    client_update_card(request->client);
    client_show_running(request->client, request->command, dispatch_query_bytes(request), args_bytes);
}

/* Its memory is part of the input, which is not the client's for longer than the command runs. */
static void restore_own_card(struct request *request)
{
    client_show_running(request->client, request->command, conn_kept_size(&request->client->conn), 0);
}

static void cmd_client_list(struct request *request)
{
    struct roster_lines lines = {.filter = NULL};
    struct client_filter filter;
    struct buffer text = {0};

    client_filter_init(&filter, request);
    if (!client_filter_parse(&filter, 2, false))
        return;
    lines.filter = &filter;
    if (filter.skips_me)
        lines.skipped = &request->client->card;
    show_own_card(request);
    server_each_client(request->worker->server, add_line, &lines);
    master_client_visit(add_line, &lines);
    restore_own_card(request);
    if (lines.count != 0)
        qsort(lines.items, lines.count, sizeof(struct roster_line), compare_lines);
    if (client_filter_is_ids(&filter)) {
        append_lines_of_ids(request, &text, &lines);
    } else {
        for (size_t i = 0; i < lines.count; i++)
            append_line(&text, &lines, &lines.items[i]);
    }
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
    buffer_fini(&lines.text);
    ARRAY_FINI(&lines);
}

static void cmd_client_info(struct request *request)
{
    struct buffer text = {0};

    show_own_card(request);
    client_card_print(&request->client->card, &text);
    restore_own_card(request);
    buffer_append_char(&text, '\n');
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

/* Whom CLIENT KILL means. */
struct victims {
    const struct client *asking;
    struct client_filter filter;
    bool me;     /* the sender is among them; it is closed after its reply */
    bool master; /* the link to the master is */
};

static void meet_master(const struct client_card *card, void *context)
{
    struct victims *victims = context;

    victims->master = client_filter_takes(&victims->filter, card);
}

static bool is_victim(struct client_card *card, void *context)
{
    struct victims *victims = context;

    if (is_being_killed(card) || !client_filter_takes(&victims->filter, card))
        return false;
    if (card != &victims->asking->card)
        return true;
    victims->me = !victims->filter.skips_me;
    return false;
}

static void cmd_client_kill(struct request *request)
{
    const bool is_old_form = request->arg_count == 3; /* the address alone */
    struct victims victims = {.asking = request->client};
    struct worker *worker = request->worker;
    uint64_t workers = 0;
    unsigned count;

    client_filter_init(&victims.filter, request);
    if (is_old_form)
        client_filter_of_address(&victims.filter, 2);
    else if (!client_filter_parse(&victims.filter, 2, true))
        return;
    count = server_request_clients(worker, CLIENT_REQUEST_KILL, is_victim, &victims, &workers) + victims.me;
    master_client_visit(meet_master, &victims);
    if (victims.master && master_link_cut())
        count++;
    if ((workers & (UINT64_C(1) << worker->index)) != 0)
        worker_serve_requests(worker);
    if (request->arg_count > 3)
        reply_int(request, count);
    else if (count != 0)
        reply_ok(request);
    else
        reply_error(request, "ERR No such client");
    rendezvous_begin(request->client, workers, RENDEZVOUS_REQUESTS);
    if (victims.me)
        conn_close_after_flush(&request->client->conn);
}

static void cmd_client_help(struct request *request)
{
    static const char *const lines[] = {
        "CACHING (YES|NO)",
        "    Select whether the keys of the next command are tracked, with OPTIN or OPTOUT.",
        "CAPA <capability> [<capability> ...]",
        "    Tell the server what this client knows. redirect: a replica sends it to its master with -REDIRECT.",
        "GETNAME",
        "    Return the name of this connection.",
        "GETREDIR",
        "    Return the id of the client that gets the invalidations of this one; -1: no tracking.",
        "ID",
        "    Return the id of this connection.",
        "IMPORT-SOURCE (ON|OFF)",
        "    This connection copies data from another server (import-mode yes): for it no key expires.",
        "INFO",
        "    Return the line of CLIENT LIST for this connection.",
        "KILL <ip:port>",
        "    Close the connection from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Close the connections that match all options:",
        "    * ID <client-id>",
        "    * ADDR (<ip:port>|<unixsocket>:0): address of the client",
        "    * LADDR (<ip:port>|<unixsocket>:0): address of the server",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "    * USER <username>",
        "    * IP <ip>, NAME <name>, LIB-NAME <name>, LIB-VER <version>, DB <number>, FLAGS <letters>, CAPA <letters>:",
        "      as CLIENT LIST has them",
        "    * MAXAGE <seconds>: minimum age",
        "    * IDLE <seconds>: minimum time since the last command",
        "    * SKIPME (YES|NO): skip this connection (default: yes)",
        "    NOT-ID and so on, but for the last three: those for which it is not so. ID takes several ids.",
        "LIST [<option> <value> [...]]",
        "    Return one line for each connection; options as those of KILL, with SKIPME NO as default.",
        "NO-EVICT (ON|OFF)",
        "    Exempt this connection from eviction of clients.",
        "NO-TOUCH (ON|OFF)",
        "    Commands of this connection do not update the last use of keys.",
        "PAUSE <timeout> [WRITE|ALL]",
        "    Suspend writing commands, or all commands (the default), for <timeout> milliseconds.",
        "REPLY (ON|OFF|SKIP)",
        "    Select whether the server replies to this connection. SKIP: no reply to the next command.",
        "SETINFO (LIB-NAME|LIB-VER) <value>",
        "    Set the name or the version of the client library.",
        "SETNAME <name>",
        "    Set the name of this connection.",
        "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [PREFIX ...]] [OPTIN] [OPTOUT] [NOLOOP]",
        "    Send invalidations of keys that this connection has read (BCAST: all keys, or those with a prefix).",
        "TRACKINGINFO",
        "    Return the state of tracking of this connection.",
        "UNBLOCK <client-id> [TIMEOUT|ERROR]",
        "    Unblock a blocked client as by its timeout, or with an error.",
        "UNPAUSE",
        "    End CLIENT PAUSE.",
    };

    reply_help(request, lines, countof(lines));
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* NOT-ID and so on are told by HELP. */
#define CLIENT_FILTERS                                                                                \
    "ID client-id [client-id ...]|TYPE (normal|master|slave|replica|pubsub|primary)|USER username|"   \
    "ADDR ip:port|LADDR ip:port|IP ip|NAME name|LIB-NAME lib-name|LIB-VER lib-ver|DB db|FLAGS flags|" \
    "CAPA capa|"                                                                                      \
    "SKIPME (YES|NO)|MAXAGE maxage|IDLE idle"

#define CLIENT_ROW_MINE                                                                                   \
    .access = ACCESS_FREE, .flags = "noscript loading stale sentinel", .categories = "@slow @connection", \
    .group = "connection", .complexity = "O(1)"
#define CLIENT_ROW_ADMIN                                                     \
    .access = ACCESS_FREE, .flags = "admin noscript loading stale sentinel", \
    .categories = "@admin @slow @dangerous @connection", .group = "connection"

/* clang-format off */
static const struct command_row client_subcommands[] = {
    {.name = "caching", .run = cmd_client_caching, .arity = 3, CLIENT_ROW_MINE, .since = "6.0.0",
     .summary = "Selects whether the keys of the next command are tracked.", .syntax = "CLIENT CACHING (YES|NO)"},
    {.name = "capa", .run = cmd_client_capa, .arity = -3, .access = ACCESS_FREE,
     .flags = "noscript loading stale sentinel allow_busy", .categories = "@slow @connection", .group = "connection",
     .complexity = "O(1)", .since = "8.0.0", .summary = "Tells the server what the client knows.",
     .syntax = "CLIENT CAPA capability [capability ...]"},
    {.name = "getname", .run = cmd_client_getname, .arity = 2, CLIENT_ROW_MINE, .since = "2.6.9",
     .summary = "Returns the name of the connection.", .syntax = "CLIENT GETNAME"},
    {.name = "getredir", .run = cmd_client_getredir, .arity = 2, CLIENT_ROW_MINE, .since = "6.0.0",
     .summary = "Returns the client that gets the invalidations of this connection.", .syntax = "CLIENT GETREDIR"},
    {.name = "help", .run = cmd_client_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale sentinel",
     .categories = "@slow @connection", .group = "connection", .since = "5.0.0",
     .summary = "Explains the subcommands.", .complexity = "O(1)", .syntax = "CLIENT HELP"},
    {.name = "id", .run = cmd_client_id, .arity = 2, CLIENT_ROW_MINE, .since = "5.0.0",
     .summary = "Returns the unique id of the connection.", .syntax = "CLIENT ID"},
    {.name = "import-source", .run = cmd_client_import_source, .arity = 3, CLIENT_ROW_MINE, .since = "8.1.0",
     .summary = "Selects whether the connection copies data from another server, in import mode.",
     .syntax = "CLIENT IMPORT-SOURCE (ON|OFF)"},
    {.name = "info", .run = cmd_client_info, .arity = 2, CLIENT_ROW_MINE, .since = "6.2.0",
     .summary = "Describes the connection.", .syntax = "CLIENT INFO",
     .tips = "nondeterministic_output"},
    {.name = "kill", .run = cmd_client_kill, .arity = -3, CLIENT_ROW_ADMIN, .since = "2.4.0",
     .summary = "Closes connections.", .complexity = "O(N) where N is the number of connections",
     .syntax = "CLIENT KILL (ip:port|(" CLIENT_FILTERS ") [(" CLIENT_FILTERS ") ...])",
     .arg_since = "ID:2.8.12 TYPE:2.8.12 master:3.2.0 replica:5.0.0 LADDR:6.2.0 MAXAGE:7.4.0",
     .history = "2.8.12=The form with options.|2.8.12=The option ID.|3.2.0=The type master.|"
                "5.0.0=The type replica, another word for slave.|6.2.0=The option LADDR.|7.4.0=The option MAXAGE."},
    {.name = "list", .run = cmd_client_list, .arity = -2, CLIENT_ROW_ADMIN, .since = "2.4.0",
     .summary = "Describes all connections.", .complexity = "O(N) where N is the number of connections",
     .syntax = "CLIENT LIST [(" CLIENT_FILTERS ") ...]",
     .arg_since = "TYPE:5.0.0 ID:6.2.0", .tips = "nondeterministic_output",
     .history = "2.8.12=The field id.|5.0.0=The option TYPE.|6.0.0=The field user.|6.2.0=The option ID, and the fields "
                "laddr, argv-mem, tot-mem and redir.|7.0.0=The fields resp, multi-mem, rbs and rbp.|"
                "7.0.3=The field ssub.|7.2.0=The fields lib-name and lib-ver.|7.4.0=The field watch.|"
                "8.0.0=The field io-thread."},
    {.name = "no-evict", .run = cmd_client_no_evict, .arity = 3, CLIENT_ROW_ADMIN, .since = "7.0.0",
     .summary = "Protects the connection from eviction.", .complexity = "O(1)",
     .syntax = "CLIENT NO-EVICT (ON|OFF)"},
    {.name = "no-touch", .run = cmd_client_no_touch, .arity = 3, CLIENT_ROW_MINE, .since = "7.2.0",
     .summary = "Selects whether commands of the connection update the last use of keys.",
     .syntax = "CLIENT NO-TOUCH (ON|OFF)"},
    {.name = "pause", .run = cmd_client_pause, .arity = -3, CLIENT_ROW_ADMIN, .since = "3.0.0",
     .summary = "Suspends all commands, or those that write, for a time.", .complexity = "O(1)",
     .syntax = "CLIENT PAUSE timeout [WRITE|ALL]", .arg_since = "mode:6.2.0",
     .history = "6.2.0=CLIENT PAUSE WRITE, and the word mode."},
    {.name = "reply", .run = cmd_client_reply, .arity = 3, CLIENT_ROW_MINE, .since = "3.2.0",
     .summary = "Selects whether the server replies to the connection.", .syntax = "CLIENT REPLY (ON|OFF|SKIP)"},
    {.name = "setinfo", .run = cmd_client_setinfo, .arity = 4, CLIENT_ROW_MINE, .since = "7.2.0",
     .summary = "Sets the name or version of the client library.",
     .syntax = "CLIENT SETINFO (LIB-NAME libname|LIB-VER libver)",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "setname", .run = cmd_client_setname, .arity = 3, CLIENT_ROW_MINE, .since = "2.6.9",
     .summary = "Sets the name of the connection.", .syntax = "CLIENT SETNAME connection-name",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "tracking", .run = cmd_client_tracking, .arity = -3, CLIENT_ROW_MINE, .since = "6.0.0",
     .summary = "Switches client-side caching of the connection on or off.",
     .syntax = "CLIENT TRACKING (ON|OFF) [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] "
               "[OPTOUT] [NOLOOP]"},
    {.name = "trackinginfo", .run = cmd_client_trackinginfo, .arity = 2, CLIENT_ROW_MINE, .since = "6.2.0",
     .summary = "Returns the state of client-side caching of the connection.", .syntax = "CLIENT TRACKINGINFO"},
    {.name = "unblock", .run = cmd_client_unblock, .arity = -3, CLIENT_ROW_ADMIN, .since = "5.0.0",
     .summary = "Unblocks a client that waits in a blocking command.",
     .complexity = "O(log N) where N is the number of connections",
     .syntax = "CLIENT UNBLOCK client-id [TIMEOUT|ERROR]"},
    {.name = "unpause", .run = cmd_client_unpause, .arity = 2, CLIENT_ROW_ADMIN, .since = "6.2.0",
     .summary = "Ends CLIENT PAUSE.", .complexity = "O(N) where N is the number of connections that wait",
     .syntax = "CLIENT UNPAUSE"},
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row connection_commands[] = {
    {
        .name = "auth", .run = cmd_auth, .arity = -2, .access = ACCESS_FREE,
        .flags = "noscript loading stale fast no_auth allow_busy sentinel", .categories = "@fast @connection",
        .group = "connection", .since = "1.0.0", .summary = "Authenticates the connection.",
        .complexity = "O(N) where N is the number of passwords of the user", .syntax = "AUTH [username] password",
        .arg_since = "username:6.0.0", .history = "6.0.0=The name of a user before the password.",
    },
    {
        .name = "client", .arity = -2, .access = ACCESS_FREE, .flags = "sentinel", .categories = "@slow",
        .group = "connection", .since = "2.4.0", .summary = "Container for commands about connections.",
        .complexity = "Depends on the subcommand.", .syntax = "CLIENT subcommand [arg ...]",
        .subcommands = client_subcommands,
    },
    {
        .name = "echo", .run = cmd_echo, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale fast",
        .categories = "@fast @connection", .group = "connection", .since = "1.0.0",
        .summary = "Returns its argument.", .complexity = "O(1)", .syntax = "ECHO message",
    },
    {
        .name = "hello", .run = cmd_hello, .arity = -1, .access = ACCESS_FREE,
        .flags = "noscript loading stale fast no_auth allow_busy sentinel", .categories = "@fast @connection",
        .group = "connection", .since = "6.0.0",
        .summary = "Returns facts about the server, and selects the protocol of the connection.", .complexity = "O(1)",
        .syntax = "HELLO [protover [AUTH username password] [SETNAME clientname]]",
        .history = "6.2.0=The protocol may be left out: it stays, and the reply tells it.",
    },
    {
        .name = "host:", .run = cmd_not_for_us, .arity = -1, .access = ACCESS_FREE,
        .flags = "noscript readonly loading stale no_auth allow_busy unqueued ends_multi", .categories = "@read @slow",
        .group = "generic", .since = "3.2.7", .summary = "Closes the connection: the command is a line of HTTP.",
        .complexity = "O(1)", .syntax = "HOST: [arg ...]",
    },
    {
        .name = "ping", .run = cmd_ping, .arity = -1, .access = ACCESS_FREE, .flags = "fast sentinel subscribed",
        .categories = "@fast @connection @replication", .group = "connection", .since = "1.0.0",
        .summary = "Replies PONG, or its argument.", .complexity = "O(1)", .syntax = "PING [message]",
        .tips = "request_policy:all_shards response_policy:all_succeeded",
    },
    {
        .name = "post", .run = cmd_not_for_us, .arity = -1, .access = ACCESS_FREE,
        .flags = "noscript readonly loading stale no_auth allow_busy unqueued ends_multi", .categories = "@read @slow",
        .group = "generic", .since = "3.2.7", .summary = "Closes the connection: the command is a line of HTTP.",
        .complexity = "O(1)", .syntax = "POST [arg ...]",
    },
    {
        .name = "quit", .run = cmd_quit, .arity = -1, .access = ACCESS_FREE,
        .flags = "noscript loading stale fast no_auth allow_busy unqueued ends_multi subscribed deprecated",
        .categories = "@fast @connection", .group = "connection", .since = "1.0.0",
        .summary = "Closes the connection.", .complexity = "O(1)", .syntax = "QUIT", .deprecated_since = "7.2.0",
        .replaced_by = "just closing the connection",
    },
    {
        .name = "replping", .run = cmd_ping, .arity = -1, .access = ACCESS_FREE, .flags = "stale fast",
        .categories = "@fast @connection", .group = "generic", .since = "6.2.0",
        .summary = "Replies as PING: servers ask one another by it.", .complexity = "O(1)",
        .syntax = "REPLPING [message]",
    },
    {
        .name = "reset", .run = cmd_reset, .arity = 1, .access = ACCESS_FREE,
        .flags = "noscript loading stale fast no_auth allow_busy unqueued ends_multi subscribed",
        .categories = "@fast @connection", .group = "connection", .since = "6.2.0",
        .summary = "Resets the connection to its initial state.", .complexity = "O(1)", .syntax = "RESET",
    },
    {
        .name = "select", .run = cmd_select, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale fast",
        .categories = "@fast @connection", .group = "connection", .databases = DATABASES_CHOSEN,
        .find_databases = select_find_databases, .since = "1.0.0",
        .summary = "Selects the database of the connection.", .complexity = "O(1)", .syntax = "SELECT index",
    },
    {0},
};
/* clang-format on */
