#include "commands/connection/client_tracking.h"

#include "base/mem.h"
#include "server/core/client.h"
#include "server/core/client_ref.h"
#include "server/core/request.h"
#include "server/core/worker.h"
#include "server/pubsub/broadcast.h"
#include "server/pubsub/tracking.h"

#include <string.h>

/* The arguments of CLIENT TRACKING. */
struct wishes {
    uint32_t mode;
    struct client_ref *redirect; /* a reference */
    struct slice *prefixes;      /* the given prefixes; on the heap */
    uint32_t prefix_count;
};

static bool is_prefix_of(struct slice one, struct slice two)
{
    return one.size <= two.size && (one.size == 0 || memcmp(one.data, two.data, one.size) == 0);
}

static bool overlap(struct slice one, struct slice two)
{
    return is_prefix_of(one, two) || is_prefix_of(two, one);
}

static bool parse_redirect(struct request *request, uint32_t index, struct wishes *wishes)
{
    int64_t id;

    if (wishes->redirect != NULL) {
        reply_error(request, "ERR A client can only redirect to a single other client");
        return false;
    }
    if (!request_arg_i64(request, index, &id))
        return false;
    wishes->redirect = client_ref_find(request->worker->server, (uint64_t)id);
    if (wishes->redirect == NULL)
        reply_error(request, "ERR The client ID you want redirect to does not exist");
    return wishes->redirect != NULL;
}

static bool parse_wishes(struct request *request, struct wishes *wishes)
{
    static const struct {
        const char *word;
        uint32_t mode;
    } words[] = {
        {"bcast", TRACKING_BCAST},
        {"optin", TRACKING_OPTIN},
        {"optout", TRACKING_OPTOUT},
        {"noloop", TRACKING_NOLOOP},
    };

    for (uint32_t i = 3; i < request->arg_count; i++) {
        bool has_more = i + 1 < request->arg_count;
        size_t k = 0;

        if (request_arg_is(request, i, "redirect") && has_more) {
            if (!parse_redirect(request, ++i, wishes))
                return false;
            continue;
        }
        if (request_arg_is(request, i, "prefix") && has_more) {
            wishes->prefixes[wishes->prefix_count++] = request_arg(request, ++i);
            continue;
        }
        while (k < countof(words) && !request_arg_is(request, i, words[k].word))
            k++;
        if (k == countof(words)) {
            reply_syntax_error(request);
            return false;
        }
        wishes->mode |= words[k].mode;
    }
    return true;
}

/* Checks whether the options fit together, and fit the client's current state. */
static bool may_have(struct request *request, const struct wishes *wishes)
{
    const struct tracking *tracking = request->client->tracking;
    const char *error = NULL;

    if ((wishes->mode & TRACKING_BCAST) == 0 && wishes->prefix_count != 0)
        error = "ERR PREFIX option requires BCAST mode to be enabled";
    else if (tracking != NULL && ((tracking->mode ^ wishes->mode) & TRACKING_BCAST) != 0)
        error = "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then "
                "re-enabling it with a different mode.";
    else if ((wishes->mode & TRACKING_BCAST) != 0 && (wishes->mode & (TRACKING_OPTIN | TRACKING_OPTOUT)) != 0)
        error = "ERR OPTIN and OPTOUT are not compatible with BCAST";
    else if ((wishes->mode & TRACKING_OPTIN) != 0 && (wishes->mode & TRACKING_OPTOUT) != 0)
        error = "ERR You can't specify both OPTIN mode and OPTOUT mode";
    else if (tracking != NULL && (((wishes->mode & TRACKING_OPTIN) != 0 && (tracking->mode & TRACKING_OPTOUT) != 0) ||
                                  ((wishes->mode & TRACKING_OPTOUT) != 0 && (tracking->mode & TRACKING_OPTIN) != 0)))
        error = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then "
                "re-enabling it with a different mode.";
    if (error != NULL)
        reply_error(request, error);
    return error == NULL;
}

static void refuse_prefix(struct request *request, struct slice prefix, const char *what, struct slice other)
{
    reply_errorf(request,
                 "ERR Prefix '%.*s' overlaps with %s prefix '%.*s'. Prefixes for a single client must not "
                 "overlap.",
                 (int)MIN(prefix.size, (size_t)128), prefix.data, what, (int)MIN(other.size, (size_t)128), other.data);
}

/* A key has one of a client's prefixes at most. */
static bool prefixes_fit(struct request *request, const struct wishes *wishes)
{
    struct slice *existing = NULL;
    uint64_t existing_count = 0;
    bool fit = true;

    if (request->client->tracking != NULL)
        existing = tracking_prefixes(request->client, &existing_count);
    for (uint32_t i = 0; i < wishes->prefix_count && fit; i++) {
        for (uint64_t k = 0; k < existing_count && fit; k++) {
            fit = !overlap(wishes->prefixes[i], existing[k]);
            if (!fit)
                refuse_prefix(request, wishes->prefixes[i], "an existing", existing[k]);
        }
        for (uint32_t k = i + 1; k < wishes->prefix_count && fit; k++) {
            fit = !overlap(wishes->prefixes[i], wishes->prefixes[k]);
            if (!fit)
                refuse_prefix(request, wishes->prefixes[i], "another provided", wishes->prefixes[k]);
        }
    }
    mem_free(existing);
    return fit;
}

static void switch_on(struct request *request, struct wishes *wishes)
{
    struct client *client = request->client;

    if (!may_have(request, wishes) || !prefixes_fit(request, wishes))
        return;
    tracking_enable(client, wishes->mode, wishes->redirect);
    wishes->redirect = NULL; /* handed over */
    for (uint32_t i = 0; i < wishes->prefix_count; i++)
        broadcast_enter(client->tracking, wishes->prefixes[i]);
    if ((wishes->mode & TRACKING_BCAST) != 0 && wishes->prefix_count == 0)
        broadcast_enter(client->tracking, SLICE(""));
    reply_ok(request);
}

void cmd_client_tracking(struct request *request)
{
    struct wishes wishes = {.prefixes = mem_alloc(request->arg_count * sizeof(struct slice))};

    /* Read the invalidations of earlier changes while the client still tracks. */
    if (!request->in_exec)
        worker_read_mail_so_far(request->worker);
    if (parse_wishes(request, &wishes)) {
        if (request_arg_is(request, 2, "on")) {
            switch_on(request, &wishes);
        } else if (request_arg_is(request, 2, "off")) {
            tracking_disable(request->client);
            reply_ok(request);
        } else {
            reply_syntax_error(request);
        }
    }
    client_ref_release(&wishes.redirect);
    mem_free(wishes.prefixes);
}

void cmd_client_caching(struct request *request)
{
    struct tracking *tracking = request->client->tracking;
    uint32_t mode = tracking != NULL ? tracking->mode : 0;

    if (mode == 0)
        reply_error(request, "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
                             "OPTOUT mode enabled");
    else if (request_arg_is(request, 2, "yes") && (mode & TRACKING_OPTIN) == 0)
        reply_error(request, "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    else if (request_arg_is(request, 2, "no") && (mode & TRACKING_OPTOUT) == 0)
        reply_error(request, "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    else if (!request_arg_is(request, 2, "yes") && !request_arg_is(request, 2, "no"))
        reply_syntax_error(request);
    else {
        tracking->mode |= TRACKING_CACHING;
        reply_ok(request);
    }
}

static int64_t redirect_of(const struct client *client)
{
    if (client->tracking == NULL)
        return -1;
    return client->tracking->redirect != NULL ? (int64_t)client->tracking->redirect->id : 0;
}

void cmd_client_getredir(struct request *request)
{
    reply_int(request, redirect_of(request->client));
}

static void reply_mode(struct request *request)
{
    const struct client *client = request->client;
    const uint32_t mode = client->tracking != NULL ? client->tracking->mode : 0;
    const bool is_caching = (mode & TRACKING_CACHING) != 0, opts_in = (mode & TRACKING_OPTIN) != 0;
    const struct {
        bool is_so;
        const char *word;
    } words[] = {
        {mode == 0, "off"},
        {mode != 0, "on"},
        {(mode & TRACKING_BCAST) != 0, "bcast"},
        {opts_in, "optin"},
        {opts_in && is_caching, "caching-yes"},
        {(mode & TRACKING_OPTOUT) != 0, "optout"},
        {(mode & TRACKING_OPTOUT) != 0 && is_caching, "caching-no"},
        {(mode & TRACKING_NOLOOP) != 0, "noloop"},
        {(client->flags & CLIENT_TRACKING_BROKEN) != 0, "broken_redirect"},
    };
    uint64_t count = 0;

    for (size_t i = 0; i < countof(words); i++)
        count += words[i].is_so;
    reply_set(request, count);
    for (size_t i = 0; i < countof(words); i++) {
        if (words[i].is_so)
            reply_text(request, words[i].word);
    }
}

void cmd_client_trackinginfo(struct request *request)
{
    struct slice *prefixes = NULL;
    uint64_t count = 0;

    if (request->client->tracking != NULL)
        prefixes = tracking_prefixes(request->client, &count);
    reply_map(request, 3);
    reply_text(request, "flags");
    reply_mode(request);
    reply_text(request, "redirect");
    reply_int(request, redirect_of(request->client));
    reply_text(request, "prefixes");
    reply_array(request, count);
    for (uint64_t i = 0; i < count; i++)
        reply_bulk(request, prefixes[i]);
    mem_free(prefixes);
}
