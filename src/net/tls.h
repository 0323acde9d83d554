/* tls.h: certificates and rules for TLS connections, and what a peer has shown.
 *
 * A context is built from the tls-* directives, immutable afterwards, and counted: after a reload new connections use
 * the new one while old ones live on with theirs. Contexts are shared by all threads; a connection's session belongs
 * to its loop's thread. The transport is conn.h: hand the context to conn_open() or conn_connect(). */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct tls_context;

enum tls_auth_clients { TLS_AUTH_NO, TLS_AUTH_YES, TLS_AUTH_OPTIONAL };

/* Named as the directives; NULL and "" mean unset. */
struct tls_options {
    const char *cert_file;
    const char *key_file;
    const char *key_file_pass;
    const char *client_cert_file; /* for connections we make; unset: the pair above */
    const char *client_key_file;
    const char *client_key_file_pass;
    const char *ca_cert_file;
    const char *ca_cert_dir;
    const char *dh_params_file;
    const char *protocols;    /* "TLSv1.2 TLSv1.3" (also the default) */
    const char *ciphers;      /* up to TLS 1.2 */
    const char *ciphersuites; /* TLS 1.3 */
    bool prefer_server_ciphers;
    bool session_caching;
    uint32_t session_cache_size; /* sessions; 0: no limit */
    uint32_t session_cache_timeout_s;
    enum tls_auth_clients auth_clients;
};

#define TLS_ERROR_BYTES 512

/* false: error names the file or directive and the reason. previous (NULL: none): the context that this one replaces;
 * sessions begun under it can be resumed, unless who may sign certificates, or whether clients are asked for one, has
 * changed since, or its ticket keys are older than a day. */
must_check bool tls_context_create(const struct tls_options *options, const struct tls_context *previous,
                                   struct tls_context **context, char error[TLS_ERROR_BYTES]);
struct tls_context *tls_context_acquire(struct tls_context *context); /* any thread */
void tls_context_release(struct tls_context **handle);                /* any thread; NULL is fine; leaves NULL */

enum tls_certificate_kind {
    TLS_CERTIFICATE_SERVER,
    TLS_CERTIFICATE_CLIENT,    /* for connections we make */
    TLS_CERTIFICATE_AUTHORITY, /* of those in tls-ca-cert-file the one that expires first */
    TLS_CERTIFICATE_COUNT,
};
#define TLS_SERIAL_BYTES 64 /* hexadecimal; a serial number has at most 20 octets */
struct tls_certificate_facts {
    bool known;
    int64_t expires_s; /* wall clock */
    char serial[TLS_SERIAL_BYTES];
};
/* Valid as long as the context. */
const struct tls_certificate_facts *tls_context_certificate(const struct tls_context *context,
                                                            enum tls_certificate_kind kind);

/* What is known of a connection's session; empty and false on plain ones and before the handshake. */
bool tls_conn_peer_has_certificate(const struct conn *conn);
size_t tls_conn_peer_subject(const struct conn *conn, char *text, size_t text_size); /* "CN=x,O=y" (RFC 2253) */
size_t tls_conn_peer_common_name(const struct conn *conn, char *text, size_t text_size);
#define TLS_FINGERPRINT_BYTES 65
size_t tls_conn_peer_fingerprint(const struct conn *conn, char *text, size_t text_size); /* SHA-256, lower-case hex */
/* Calls fn for the subject's common name and then every e-mail, DNS, URI and IP name (as text) of the peer's
 * certificate until it returns true; returns whether it did. For allowlists. */
typedef bool (*tls_name_fn)(const char *name, size_t size, void *user);
bool tls_conn_peer_match_names(const struct conn *conn, tls_name_fn fn, void *user);
const char *tls_conn_version(const struct conn *conn); /* "TLSv1.3"; "" */
const char *tls_conn_cipher(const struct conn *conn);
bool tls_conn_resumed(const struct conn *conn);
