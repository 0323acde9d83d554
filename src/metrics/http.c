#include "metrics/http.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

#include <stdio.h>

#ifdef HAVE_LIBMICROHTTPD

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_QUEUE = 64, TURN_MS_MOST = 1000, US_PER_MS = 1000 };

struct http_server {
    struct http_options options; /* const; address and token are copies */
    int listener;                /* -1: another server has it */
    int stop;                    /* eventfd */
    struct MHD_Daemon *daemon;   /* owner: its thread, while there is one; as all below */
    struct list peers;
    struct http_credentials credentials; /* the daemon refers to them */
    uint64_t credentials_version;
    char *problem; /* while the daemon starts: where its reason goes */
    struct thread thread;
};

/* One connection. */
struct peer {
    struct list_node node;
    int fd;
    int64_t until_us; /* its end, if it has none by then */
};

static int64_t now_us(void)
{
    return (int64_t)clock_monotonic_us();
}

/* --------------------------------------------------------------------------------------------------- connections -- */

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;
    struct peer *peer = *socket_context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        peer = mem_alloc_zero(sizeof(*peer));
        peer->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        peer->until_us = now_us() + (int64_t)HTTP_REQUEST_MS * US_PER_MS;
        list_push_back(&server->peers, &peer->node);
        *socket_context = peer;
        return;
    }
    list_remove(&peer->node);
    mem_free(peer);
    *socket_context = NULL;
}

/* The library counts seconds without a byte; who sends a byte a second would never be late. It notices the end of the
 * connection as if the peer had closed it. */
static void cut_late_peers(struct http_server *server)
{
    int64_t now = now_us();

    for (struct list_node *node = list_first(&server->peers); node != NULL; node = list_next(&server->peers, node)) {
        struct peer *peer = container_of(node, struct peer, node);

        if (peer->until_us <= now) {
            peer->until_us = INT64_MAX;
            (void)shutdown(peer->fd, SHUT_RDWR);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------ requests -- */

static void free_body(void *body)
{
    mem_free(body);
}

static enum MHD_Result send_reply(struct MHD_Connection *connection, struct http_reply *reply)
{
    size_t size;
    char *body = buffer_take(&reply->body, &size);
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback(size, body, free_body);
    enum MHD_Result result;

    if (response == NULL) {
        mem_free(body);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(response, "Content-Security-Policy",
                                  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                                  "connect-src 'self'; img-src data:; frame-ancestors 'none'");
    if (reply->status == MHD_HTTP_UNAUTHORIZED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"metrics\"");
    if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    result = MHD_queue_response(connection, reply->status, response);
    MHD_destroy_response(response);
    return result;
}

static void refuse(struct http_reply *reply, unsigned status, const char *reason)
{
    reply->status = status;
    buffer_append_text(&reply->body, reason);
    buffer_append_char(&reply->body, '\n');
}

static bool has_token(const struct http_server *server, struct MHD_Connection *connection)
{
    static const char scheme[] = "Bearer ";
    const char *wanted = server->options.token;
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);

    if (wanted == NULL)
        return true;
    if (given == NULL || strncasecmp(given, scheme, sizeof(scheme) - 1) != 0)
        return false;
    given += sizeof(scheme) - 1;
    return strlen(given) == strlen(wanted) && CRYPTO_memcmp(given, wanted, strlen(wanted)) == 0;
}

static const struct http_route *find_route(const struct http_server *server, const char *path)
{
    for (size_t i = 0; i < server->options.route_count; i++) {
        if (strcmp(server->options.routes[i].path, path) == 0)
            return &server->options.routes[i];
    }
    return NULL;
}

/* Paths are compared as they come. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

/* Called when the headers are there. Who is answered before a body could come is disconnected behind the answer. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload, size_t *upload_size,
                                  void **request_context)
{
    const struct http_server *server = context;
    const struct http_route *route = find_route(server, path);
    struct http_reply reply = {.status = HTTP_OK, .type = "text/plain; charset=utf-8"};

    (void)version;
    (void)upload;
    (void)upload_size;
    (void)request_context;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        refuse(&reply, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
    else if ((route == NULL || !route->is_open) && !has_token(server, connection))
        refuse(&reply, MHD_HTTP_UNAUTHORIZED, "metrics-token is wanted, as Authorization: Bearer TOKEN");
    else if (route == NULL)
        refuse(&reply, MHD_HTTP_NOT_FOUND, "there is no such path");
    else
        route->answer(&reply);
    return send_reply(connection, &reply);
}

/* -------------------------------------------------------------------------------------------------------- daemon -- */

static void free_credentials(struct http_credentials *credentials)
{
    mem_free(credentials->certificate);
    mem_free(credentials->key);
    mem_free(credentials->passphrase);
    *credentials = (struct http_credentials){0};
}

/* The library gives its reasons as text only. */
static void note_problem(void *context, const char *format, va_list arguments) PRINTF_LIKE(2, 0);
static void note_problem(void *context, const char *format, va_list arguments)
{
    const struct http_server *server = context;

    if (server->problem == NULL)
        return;
    vsnprintf(server->problem, HTTP_ERROR_BYTES, format, arguments);
    server->problem[strcspn(server->problem, "\n")] = '\0';
}

static bool start_daemon(struct http_server *server, char error[HTTP_ERROR_BYTES])
{
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, server->credentials.certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, server->credentials.key},
        {MHD_OPTION_HTTPS_KEY_PASSWORD, 0, server->credentials.passphrase},
        {MHD_OPTION_END, 0, NULL},
    };
    unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | (server->options.has_tls ? MHD_USE_TLS : 0);

    if (!server->options.has_tls)
        tls[0].option = MHD_OPTION_END;
    else if (server->credentials.passphrase == NULL)
        tls[2].option = MHD_OPTION_END;
    snprintf(error, HTTP_ERROR_BYTES, "cannot start");
    server->problem = error;
    server->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER,
                                      note_problem, server, MHD_OPTION_LISTEN_SOCKET, server->listener,
                                      MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_PEERS_MOST,
                                      MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_PEER_BYTES,
                                      MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_IDLE_S,
                                      MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes,
                                      server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_ARRAY,
                                      tls, MHD_OPTION_END);
    server->problem = NULL;
    return server->daemon != NULL;
}

/* The socket stays: it is ours. */
static void stop_daemon(struct http_server *server)
{
    if (server->daemon == NULL)
        return;
    (void)MHD_quiesce_daemon(server->daemon);
    MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
    assert(list_is_empty(&server->peers));
}

/* With credentials that are used from now on; without TLS it just starts. */
static bool start_with_credentials(struct http_server *server, char error[HTTP_ERROR_BYTES])
{
    struct http_credentials before = server->credentials, now = {0};

    if (server->options.has_tls) {
        server->credentials_version = server->options.credentials_version();
        if (!server->options.credentials(&now, error)) {
            free_credentials(&now);
            return false;
        }
    }
    stop_daemon(server);
    server->credentials = now;
    if (start_daemon(server, error)) {
        free_credentials(&before);
        return true;
    }
    free_credentials(&server->credentials);
    server->credentials = before;
    return false;
}

static void follow_certificates(struct http_server *server)
{
    char error[HTTP_ERROR_BYTES], other[HTTP_ERROR_BYTES];

    if (!server->options.has_tls || server->options.credentials_version() == server->credentials_version)
        return;
    if (start_with_credentials(server, error))
        return;
    log_warning("metrics: the new certificate can't be used: %s", error);
    if (server->daemon == NULL && !start_daemon(server, other))
        log_warning("metrics: nor the old one: %s", other);
}

static void turn(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG library_ms = TURN_MS_MOST;
    struct pollfd waits[2] = {{.fd = server->stop, .events = POLLIN}, {.fd = -1, .events = POLLIN}};

    if (server->daemon != NULL) {
        waits[1].fd = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
        if (MHD_get_timeout(server->daemon, &library_ms) != MHD_YES)
            library_ms = TURN_MS_MOST;
    }
    (void)poll(waits, countof(waits), (int)MIN(library_ms, (MHD_UNSIGNED_LONG_LONG)TURN_MS_MOST));
    if (server->daemon != NULL)
        (void)MHD_run(server->daemon);
    cut_late_peers(server);
    follow_certificates(server);
}

static bool must_stop(const struct http_server *server)
{
    struct pollfd wait = {.fd = server->stop, .events = POLLIN};

    return poll(&wait, 1, 0) != 0;
}

static void serve(void *argument)
{
    struct http_server *server = argument;

    while (!must_stop(server))
        turn(server);
}

/* ------------------------------------------------------------------------------------------------- start and end -- */

static void share_port(int fd, bool shares)
{
    int value = shares;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &value, sizeof(value));
}

static int listen_at(const struct addrinfo *address, bool shares)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1, off = 0;

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    share_port(fd, shares);
    if (address->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)); /* all addresses: also those of IPv4 */
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, LISTEN_QUEUE) == 0) {
        share_port(fd, false);
        return fd;
    }
    off = errno;
    (void)close(fd);
    errno = off;
    return -1;
}

/* All addresses are those of IPv6, or of IPv4 on a machine without IPv6. */
static bool open_listener(struct http_server *server, bool shares, char error[HTTP_ERROR_BYTES])
{
    const char *address = server->options.address;
    bool all = strcmp(address, "*") == 0;
    const char *const hosts[] = {all ? "::" : address, all ? "0.0.0.0" : NULL};
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    char port[8];

    snprintf(port, sizeof(port), "%u", server->options.port);
    for (size_t i = 0; server->listener < 0 && i < countof(hosts) && hosts[i] != NULL; i++) {
        struct addrinfo *found = NULL;
        int code = getaddrinfo(hosts[i], port, &hints, &found);

        if (code != 0) {
            snprintf(error, HTTP_ERROR_BYTES, "%s: %s", address, gai_strerror(code));
            continue;
        }
        server->listener = listen_at(found, shares);
        if (server->listener < 0)
            snprintf(error, HTTP_ERROR_BYTES, "%s port %s: %s", address, port, strerror(errno));
        freeaddrinfo(found);
    }
    return server->listener >= 0;
}

/* The port of `before` is ours, too, on other addresses, among which its own may be. */
static bool open_beside(struct http_server *server, struct http_server *before, char error[HTTP_ERROR_BYTES])
{
    bool shares = before != NULL && before->listener >= 0 && before->options.port == server->options.port, opened;

    if (shares)
        share_port(before->listener, true);
    opened = open_listener(server, shares, error);
    if (shares)
        share_port(before->listener, false);
    return opened;
}

static bool is_same_place(const struct http_server *before, const struct http_options *options)
{
    return before != NULL && before->listener >= 0 && before->options.port == options->port &&
           strcmp(before->options.address, options->address) == 0;
}

bool http_open(struct http_server **handle, const struct http_options *options, struct http_server *before,
               char error[HTTP_ERROR_BYTES])
{
    struct http_server *server = mem_alloc_zero(sizeof(*server));
    bool takes_over = is_same_place(before, options), opened;

    assert(options->port != 0);
    server->options = *options;
    server->options.address = mem_copy_text(options->address);
    server->options.token = options->token != NULL ? mem_copy_text(options->token) : NULL;
    list_init(&server->peers);
    server->listener = takes_over ? before->listener : -1;
    server->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->stop < 0) {
        snprintf(error, HTTP_ERROR_BYTES, "eventfd: %s", strerror(errno));
        opened = false;
    } else {
        opened = (takes_over || open_beside(server, before, error)) && start_with_credentials(server, error);
    }
    if (takes_over && opened)
        before->listener = -1;
    else if (takes_over)
        server->listener = -1;
    *handle = server;
    if (!opened)
        http_close(handle);
    return opened;
}

void http_begin(struct http_server *server)
{
    thread_start(&server->thread, "metrics", serve, server);
}

void http_close(struct http_server **handle)
{
    struct http_server *server = *handle;

    *handle = NULL;
    if (server == NULL)
        return;
    if (server->stop >= 0)
        (void)eventfd_write(server->stop, 1);
    thread_join(&server->thread);
    stop_daemon(server);
    if (server->listener >= 0)
        (void)close(server->listener);
    if (server->stop >= 0)
        (void)close(server->stop);
    free_credentials(&server->credentials);
    mem_free((char *)(uintptr_t)server->options.address);
    mem_free((char *)(uintptr_t)server->options.token);
    mem_free(server);
}

#else

bool http_open(struct http_server **handle, const struct http_options *options, struct http_server *before,
               char error[HTTP_ERROR_BYTES])
{
    (void)options;
    (void)before;
    *handle = NULL;
    snprintf(error, HTTP_ERROR_BYTES, "this server was built without libmicrohttpd");
    return false;
}

void http_begin(struct http_server *server)
{
    (void)server;
}

void http_close(struct http_server **handle)
{
    *handle = NULL;
}

#endif
