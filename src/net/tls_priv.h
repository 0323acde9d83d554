/* tls_priv.h: what a connection needs of its TLS session; tls.c, for conn.c. */
#pragma once

#include "net/conn.h"
#include "net/output.h"

struct loop;
struct tls_context;
struct tls_session;

/* NULL: the library refuses. */
struct tls_session *tls_session_create(struct tls_context *context, struct loop *loop, bool client,
                                       const char *server_name);
void tls_session_destroy(struct tls_session **session);     /* NULL is fine; leaves NULL */

struct output *tls_session_wire(struct tls_session *session);  /* encrypted bytes on their way out */
size_t tls_session_memory_bytes(const struct tls_session *session);

/* Each may close the connection, or tell it that it stands (conn_open_done). Encrypted output is left in the wire. */
void tls_start(struct conn *conn);                          /* a client's first message */
void tls_got_cipher(struct conn *conn, char *data, size_t size);
void tls_encrypt(struct conn *conn);                        /* from conn->output, as much as fits a turn */
void tls_say_goodbye(struct conn *conn);                    /* close_notify, if the session stands */
const char *tls_session_error(const struct tls_session *session);   /* why it was closed; "" */
