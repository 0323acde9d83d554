/* tls.h: TLS contexts (certificates and rules), and facts about a peer's certificate.
 *
 * A context is made from the tls-* directives. It is immutable and reference-counted: after a reload, new connections
 * use the new context, and old connections keep theirs. All threads share contexts. A connection's session belongs to
 * its loop's thread. conn.h does the transport: give the context to conn_open() or conn_connect(). */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct tls_context;

enum tls_auth_clients { TLS_AUTH_NO, TLS_AUTH_YES, TLS_AUTH_OPTIONAL };

/* The members have the names of the directives. NULL and "" mean unset. */
struct tls_options {
    const char *cert_file;
    const char *key_file;
    const char *key_file_pass;
    const char *client_cert_file; /* for connections that this server opens; unset: the pair above */
    const char *client_key_file;
    const char *client_key_file_pass;
    const char *ca_cert_file;
    const char *ca_cert_dir;
    const char *dh_params_file;
    const char *protocols;    /* "TLSv1.2 TLSv1.3", which is also the default */
    const char *ciphers;      /* for TLS up to 1.2 */
    const char *ciphersuites; /* for TLS 1.3 */
    bool prefer_server_ciphers;
    bool session_caching;
    uint32_t session_cache_size; /* number of sessions; 0: no limit */
    uint32_t session_cache_timeout_s;
    enum tls_auth_clients auth_clients;
};

#define TLS_ERROR_BYTES 512

/* False: `error` names the file or directive and the reason. `previous` is the context to be replaced, or NULL.
 * Sessions of the previous context can be resumed, unless the authorities or tls-auth-clients have changed, or its
 * ticket keys are older than a day. */
must_check bool tls_context_create(const struct tls_options *options, const struct tls_context *previous,
                                   struct tls_context **context, char error[TLS_ERROR_BYTES]);
struct tls_context *tls_context_acquire(struct tls_context *context); /* any thread */
void tls_context_release(struct tls_context **handle);                /* any thread; accepts NULL; leaves NULL */

enum tls_certificate_kind {
    TLS_CERTIFICATE_SERVER,
    TLS_CERTIFICATE_CLIENT,    /* for connections that this server opens */
    TLS_CERTIFICATE_AUTHORITY, /* the one in tls-ca-cert-file that expires first */
    TLS_CERTIFICATE_COUNT,
};
#define TLS_SERIAL_BYTES 64 /* hexadecimal; a serial number has at most 20 bytes */
struct tls_certificate_facts {
    bool known;
    int64_t expires_s; /* wall clock */
    char serial[TLS_SERIAL_BYTES];
};
/* The facts are valid as long as the context. */
const struct tls_certificate_facts *tls_context_certificate(const struct tls_context *context,
                                                            enum tls_certificate_kind kind);

/* Facts about a connection's session; empty and false without TLS and before the end of the handshake. */
bool tls_conn_peer_has_certificate(const struct conn *conn);
size_t tls_conn_peer_subject(const struct conn *conn, char *text, size_t text_size); /* "CN=x,O=y" (RFC 2253) */
size_t tls_conn_peer_common_name(const struct conn *conn, char *text, size_t text_size);
#define TLS_FINGERPRINT_BYTES 65
size_t tls_conn_peer_fingerprint(const struct conn *conn, char *text, size_t text_size); /* SHA-256, lower-case hex */
/* Calls fn for the subject's common name and then for every e-mail, DNS, URI and IP name (as text) of the peer's
 * certificate, until fn returns true. Returns whether it did. For allowlists. */
typedef bool (*tls_name_fn)(const char *name, size_t size, void *user);
bool tls_conn_peer_match_names(const struct conn *conn, tls_name_fn fn, void *user);
bool tls_conn_peer_match_uris(const struct conn *conn, tls_name_fn fn, void *user); /* the same for its URIs alone */
const char *tls_conn_version(const struct conn *conn);                              /* "TLSv1.3", or "" */
const char *tls_conn_cipher(const struct conn *conn);
bool tls_conn_resumed(const struct conn *conn);
