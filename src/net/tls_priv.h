/* tls_priv.h: internals of TLS in net/: tls_context.c (contexts), tls_tickets.c (tickets), tls.c (sessions) and
 * tls_facts.c (facts about a peer), and the functions that conn.c and loop.c call. */
#pragma once

#include "net/conn.h"
#include "net/output.h"
#include "net/tls.h"

#include <stdatomic.h>

struct loop;
struct ssl_ctx_st; /* the library's SSL_CTX and SSL */
struct ssl_st;

struct tls_context {
    _Atomic uint32_t refs;     /* atomic: release when a user leaves, acquire by the last user */
    struct ssl_ctx_st *server; /* const after create, as all members below */
    struct ssl_ctx_st *client;
    int64_t ticket_keys_made_s; /* wall clock */
    struct tls_certificate_facts certificates[TLS_CERTIFICATE_COUNT];
};

struct tls_session {
    struct ssl_st *ssl;
    struct conn *conn;
    struct output wire;
    const char *in; /* input of the BIO; set only while the session is given bytes */
    size_t in_size;
    char *error; /* NULL: none */
    struct loop *loop;
    int64_t used_us;
    struct tls_session *warm_next;
    struct tls_session *warm_previous;
    struct tls_session *wait_next; /* sessions whose handshake waits for its turn */
    struct tls_session *wait_previous;
    char *held; /* bytes that arrived meanwhile; NULL: none */
    size_t held_size;
    bool is_warm;
    bool is_waiting;
};

#define TLS_TICKET_KEYS_BYTES 80 /* what the library keeps: a name, and a key for each of MAC and cipher */

void tls_tickets_setup(struct ssl_ctx_st *server); /* sessions that are resumed without decoding the peer's key */
/* After each call in which the library may shake hands: it may have given up in the middle of a ticket. Any thread, for
 * itself. */
void tls_tickets_settle(void);

/* NULL: the library refuses it. */
struct tls_session *tls_session_create(struct tls_context *context, struct conn *conn, bool client,
                                       const char *server_name);
void tls_session_destroy(struct tls_session **handle); /* accepts NULL; leaves NULL */

struct output *tls_session_wire(struct tls_session *session); /* encrypted bytes to be sent */
size_t tls_session_memory_bytes(const struct tls_session *session);

/* Each of these functions may close the connection, or report it as established (conn_open_done). Encrypted output is
 * added to the wire. */
void tls_start(struct conn *conn); /* writes a client's first message */
void tls_got_cipher(struct conn *conn, char *data, size_t size);
/* Decrypts into the caller's memory, inside on_data. False: the session failed. */
must_check bool tls_decrypt_aside(struct conn *conn, struct slice cipher, char *data, size_t room, size_t *size);
void tls_run_handshakes(struct loop *loop); /* takes steps of waiting handshakes, as many as one turn may have */
void tls_feed_held(struct conn *conn);      /* what waits for this one's handshake, now */
void tls_encrypt(struct conn *conn);        /* encrypts conn->output, as much as fits a turn */
void tls_say_goodbye(struct conn *conn);    /* writes close_notify, if the session is established */
const char *tls_session_error(const struct tls_session *session); /* the reason why it was closed, or "" */
