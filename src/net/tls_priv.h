/* tls_priv.h: for the files of net/ that together make TLS: tls_context.c (contexts), tls.c (sessions), tls_facts.c
 * (what is known of a peer), and what conn.c and loop.c need of them. */
#pragma once

#include "net/conn.h"
#include "net/output.h"
#include "net/tls.h"

#include <stdatomic.h>

struct loop;
struct ssl_ctx_st; /* the library's SSL_CTX and SSL */
struct ssl_st;

struct tls_context {
    _Atomic uint32_t refs;     /* atomic: release on leaving, acquire by the last */
    struct ssl_ctx_st *server; /* const, as all that follows, after create */
    struct ssl_ctx_st *client;
    int64_t ticket_keys_made_s; /* wall clock */
    struct tls_certificate_facts certificates[TLS_CERTIFICATE_COUNT];
};

struct tls_session {
    struct ssl_st *ssl;
    struct conn *conn;
    struct output wire;
    const char *in; /* what the BIO reads: only set while the session is fed */
    size_t in_size;
    char *error; /* NULL: none */
    struct loop *loop;
    int64_t used_us;
    struct tls_session *warm_next;
    struct tls_session *warm_previous;
    struct tls_session *wait_next; /* its handshake waits for its turn */
    struct tls_session *wait_previous;
    char *held; /* what arrived for it meanwhile; NULL: nothing */
    size_t held_size;
    bool is_warm;
    bool is_waiting;
};

/* NULL: the library refuses. */
struct tls_session *tls_session_create(struct tls_context *context, struct conn *conn, bool client,
                                       const char *server_name);
void tls_session_destroy(struct tls_session **handle); /* NULL is fine; leaves NULL */

struct output *tls_session_wire(struct tls_session *session); /* encrypted bytes on their way out */
size_t tls_session_memory_bytes(const struct tls_session *session);

/* Each may close the connection, or tell it that it stands (conn_open_done). Encrypted output is left in the wire. */
void tls_start(struct conn *conn); /* a client's first message */
void tls_got_cipher(struct conn *conn, char *data, size_t size);
/* Decrypts into memory of the caller, from inside of on_data; false: the session is broken. */
must_check bool tls_decrypt_aside(struct conn *conn, struct slice cipher, char *data, size_t room, size_t *size);
void tls_run_handshakes(struct loop *loop);                       /* those that wait, as many as a turn may have */
void tls_encrypt(struct conn *conn);                              /* from conn->output, as much as fits a turn */
void tls_say_goodbye(struct conn *conn);                          /* close_notify, if the session stands */
const char *tls_session_error(const struct tls_session *session); /* why it was closed; "" */
