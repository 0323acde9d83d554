/* A small HTTP server with a thread of its own (libmicrohttpd): GET and HEAD of a few paths, over TCP or TLS.
 *
 * It takes nothing from strangers but a request line and headers, and each resource has a limit: HTTP_PEERS_MOST
 * connections at a time (others wait in the kernel's queue), HTTP_PEER_BYTES of memory for each, HTTP_IDLE_S seconds
 * without a byte, HTTP_REQUEST_MS for the request and its reply, however slowly they trickle. A connection has one
 * request.
 *
 *     http_open(&server, &options, NULL, error)     binds, listens; nobody is answered yet
 *     http_begin(server)                            starts the thread
 *     http_close(&server)                           ends the thread and all connections */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_PEERS_MOST = 16, HTTP_PEER_BYTES = 16 * 1024, HTTP_IDLE_S = 3, HTTP_REQUEST_MS = 5 * 1000 };
enum { HTTP_OK = 200, HTTP_UNAVAILABLE = 503 };

#define HTTP_ERROR_BYTES 256

struct http_server;

struct http_reply {
    unsigned status;  /* HTTP_OK unless the route says otherwise */
    const char *type; /* Content-Type; a constant */
    struct buffer body;
};

struct http_route {
    const char *path;
    bool is_open; /* also without the token */
    /* Called by the server's thread. */
    void (*answer)(struct http_reply *reply);
};

/* Texts in PEM; the caller of `credentials` ends them. */
struct http_credentials {
    char *certificate, *key, *passphrase; /* passphrase: NULL: none */
};

/* Everything but the functions and routes is copied. */
struct http_options {
    const char *address; /* in numbers, or "*": all addresses */
    uint16_t port;       /* not 0 */
    const char *token;   /* "Authorization: Bearer TOKEN"; NULL: none is wanted */
    bool has_tls;
    const struct http_route *routes;
    size_t route_count;
    /* With TLS. Called by http_open, and by the server's thread when the version is another: new connections get the
     * new ones, and what cannot be read changes nothing. False: `error` has the reason. */
    bool (*credentials)(struct http_credentials *credentials, char error[HTTP_ERROR_BYTES]);
    uint64_t (*credentials_version)(void);
};

/* Takes over the socket of `before` (NULL: none) if it listens at the same address, so that nobody is turned away while
 * one server follows another; the caller closes `before` next. False: `error` has the reason, and `before` is as it
 * was. */
must_check bool http_open(struct http_server **handle, const struct http_options *options, struct http_server *before,
                          char error[HTTP_ERROR_BYTES]);
void http_begin(struct http_server *server);
void http_close(struct http_server **handle); /* NULL is fine */
