#include "metrics/metrics.h"

#include "active/options.h"
#include "active/readiness.h"
#include "base/assert.h"
#include "base/file.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rows.h"
#include "base/thread.h"
#include "metrics/exposition.h"
#include "metrics/http.h"
#include "metrics/page.h"
#include "server/config/command_block.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/server.h"
#include "server/tls/certificates.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PORT_MOST = 65535, TOKEN_BYTES_MOST = 256, PEM_BYTES_MOST = 1024 * 1024 };

static _Atomic int64_t option_metrics_port;       /* global: option storage */
static _Atomic int64_t option_metrics_tls;        /* global: option storage; bool */
static struct option_string option_metrics_bind;  /* global: option storage */
static struct option_string option_metrics_token; /* global: option storage */

/* Owner: who owns the gate, or the main thread while no worker runs. */
static struct {
    struct http_server *http; /* NULL: off */
    char *wish;               /* what it was opened for */
    bool serves;              /* it has begun */
} metrics;

/* ------------------------------------------------------------------------------------------------------- answers -- */

static void answer_metrics(struct http_reply *reply)
{
    reply->type = "text/plain; version=0.0.4; charset=utf-8";
    exposition_write(&reply->body);
}

static void answer_health(struct http_reply *reply)
{
    buffer_append_text(&reply->body, "alive\n");
}

static const char *why_not_ready(void) /* NULL: it is */
{
    if (server_is_stopping(server_instance()))
        return "the server is shutting down";
    if (OPTION_IS(option_active_replica))
        return readiness_now() != READINESS_FULL ? readiness_text(readiness_now()) : NULL;
    if ((command_blocks() & COMMAND_BLOCK_LOADING) != 0)
        return "data is being loaded";
    if ((command_blocks() & COMMAND_BLOCK_STALE) != 0)
        return "the link to the master is down, and replica-serve-stale-data is no";
    return NULL;
}

static void answer_readiness(struct http_reply *reply)
{
    const char *reason = why_not_ready();

    reply->status = reason == NULL ? HTTP_OK : HTTP_UNAVAILABLE;
    buffer_printf(&reply->body, "%s\n", reason == NULL ? "ready" : reason);
}

static void answer_page(struct http_reply *reply)
{
    reply->type = "text/html; charset=utf-8";
    buffer_append_slice(&reply->body, page_html());
}

static const struct http_route routes[] = {
    {"/metrics", .answer = answer_metrics},
    {"/healthz", .is_open = true, .answer = answer_health},
    {"/readyz", .is_open = true, .answer = answer_readiness},
    {"/", .is_open = true, .answer = answer_page},
};

/* ----------------------------------------------------------------------------------------------------------- TLS -- */

static char *text_of(const struct option_string *option) /* NULL: unset */
{
    struct buffer text = {0};
    size_t size;

    option_string_append(option, &text);
    if (text.size != 0)
        return buffer_take(&text, &size);
    buffer_fini(&text);
    return NULL;
}

static char *read_pem(const char *name, const struct option_string *option, char error[HTTP_ERROR_BYTES])
{
    char *path = text_of(option), *bytes = NULL;
    size_t size;

    if (path == NULL) {
        snprintf(error, HTTP_ERROR_BYTES, "metrics-tls needs %s", name);
    } else {
        enum status status = file_load(path, PEM_BYTES_MOST, &bytes, &size);

        if (status != STATUS_OK)
            snprintf(error, HTTP_ERROR_BYTES, "%s %s: %s", name, path, strerror(errno));
    }
    mem_free(path);
    return bytes;
}

static bool read_credentials(struct http_credentials *credentials, char error[HTTP_ERROR_BYTES])
{
    credentials->certificate = read_pem("tls-cert-file", &option_tls_cert_file, error);
    if (credentials->certificate != NULL)
        credentials->key = read_pem("tls-key-file", &option_tls_key_file, error);
    credentials->passphrase = text_of(&option_tls_key_file_pass);
    return credentials->key != NULL;
}

/* ------------------------------------------------------------------------------------------------------- options -- */

/* Tells whether the server that there is has the options that are set. */
static char *wish_now(void)
{
    struct buffer text = {0};
    size_t size;

    buffer_printf(&text, "%lld %d %s %s", (long long)OPTION_GET(option_metrics_port),
                  (int)OPTION_IS(option_metrics_tls), option_metrics_bind.data,
                  option_metrics_token.data != NULL ? option_metrics_token.data : "");
    return buffer_take(&text, &size);
}

/* Opens what the options want in place of what there is. False: everything is as it was. */
static bool follow_options(void)
{
    const struct http_options options = {
        .address = option_metrics_bind.data,
        .port = (uint16_t)OPTION_GET(option_metrics_port),
        .token = option_metrics_token.data,
        .has_tls = OPTION_IS(option_metrics_tls),
        .routes = routes,
        .route_count = countof(routes),
        .credentials = read_credentials,
        .credentials_version = certificates_version,
    };
    struct http_server *http = NULL;
    char error[HTTP_ERROR_BYTES];

    if (options.port != 0 && !http_open(&http, &options, metrics.http, error)) {
        log_warning("metrics: %s", error);
        return false;
    }
    http_close(&metrics.http);
    metrics.http = http;
    if (http != NULL && metrics.serves)
        http_begin(http);
    return true;
}

/* The socket is open, or closed, when the client gets its OK. A thread that is making an answer is waited for: it takes
 * nothing that we hold. */
static const char *apply(const struct option_row *row)
{
    char *wish = wish_now();
    const char *reason = NULL;

    (void)row;
    gate_assert_alone();
    if (strcmp(wish, metrics.wish) != 0) {
        if (OPTION_IS(option_metrics_tls) && OPTION_GET(option_metrics_port) != 0)
            reason = certificates_demand();
        if (reason == NULL && !follow_options())
            reason = "Unable to serve metrics there. Check server logs.";
    }
    if (reason == NULL) {
        char *before = metrics.wish;

        metrics.wish = wish;
        wish = before;
    }
    mem_free(wish);
    return reason;
}

static const char *check_address(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    return text.size == 0 ? "an address in numbers, or * for all" : NULL;
}

static const char *check_token(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return "a token has printable characters without blanks only";
    }
    return text.size > TOKEN_BYTES_MOST ? "a token has at most 256 characters" : NULL;
}

void metrics_setup(void)
{
    static const struct option_row rows[] = {
        ROW_INT("metrics-port", &option_metrics_port, 0, 0, PORT_MOST, OPTION_MUTABLE,
                "Port for metrics, probes and the status page over HTTP; 0: none."),
        ROW_STRING("metrics-bind", &option_metrics_bind, "127.0.0.1", OPTION_MUTABLE,
                   "Address of metrics-port, in numbers; *: all addresses.", .check = check_address),
        ROW_STRING("metrics-token", &option_metrics_token, NULL,
                   OPTION_MUTABLE | OPTION_SENSITIVE | OPTION_EMPTY_IS_NULL,
                   "What /metrics wants as Authorization: Bearer.", .check = check_token),
        ROW_BOOL("metrics-tls", &option_metrics_tls, 0, OPTION_MUTABLE,
                 "metrics-port speaks TLS, with the certificate of the server."),
    };

    gate_assert_main_alone();
    config_add_rows(rows, countof(rows));
}

/* ------------------------------------------------------------------------------------------------- start and end -- */

static bool start(struct server *server)
{
    static const char *const names[] = {"metrics-port", "metrics-bind", "metrics-token", "metrics-tls"};

    (void)server;
    gate_assert_main_alone();
    for (size_t i = 0; i < countof(names); i++)
        config_on_change(names[i], apply);
    metrics.serves = false;
    metrics.wish = wish_now();
    return follow_options();
}

static void begin(struct server *server)
{
    (void)server;
    gate_assert_no_traffic();
    metrics.serves = true;
    if (metrics.http != NULL)
        http_begin(metrics.http);
}

void metrics_stop(void)
{
    thread_assert_main();
    http_close(&metrics.http);
}

static void end(struct server *server)
{
    (void)server;
    thread_assert_main();
    http_close(&metrics.http); /* there is one if the start has failed */
    mem_free(metrics.wish);
    metrics.wish = NULL;
}

const struct lifecycle metrics_lifecycle = {.server_start = start, .server_begin = begin, .server_end = end};
