/* link.h: a client's connection to a server, for tools: TCP, TLS or a unix socket, blocking, with limits of time.
 *
 *     struct link *link = link_create();
 *     struct resp_reply *reply = NULL;
 *
 *     if (link_open(link, &target) == STATUS_OK && link_greet(link, &target, &step) == STATUS_OK &&
 *         link_call(link, words, countof(words), &reply) == STATUS_OK)
 *         ...
 *     else
 *         ... link_error(link) says why
 *     resp_reply_destroy(&reply);
 *     link_destroy(&link);
 *
 * A link never prints and never ends the program. Commands are collected and sent by link_flush, which link_receive
 * calls; so a pipeline is many link_send and as many link_receive. While it sends, a link also reads what the server
 * has to say, so that neither waits for the other. An error other than STATUS_TIMEOUT and STATUS_INTERRUPTED closes the
 * link; it may be opened again. One thread at a time uses a link. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "base/status.h"
#include "net/resp.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

#define LINK_FOREVER (-1) /* as a limit of time */

/* How the server is checked, and how this side shows who it is. NULL means not given. */
struct link_tls {
    const char *server_name; /* SNI; not given: none is sent */
    const char *ca_file;     /* without authorities the system's are asked */
    const char *ca_folder;
    const char *cert_file; /* a certificate needs its key and the other way round */
    const char *key_file;
    const char *ciphers;      /* up to TLS 1.2 */
    const char *ciphersuites; /* TLS 1.3 */
    bool insecure;            /* any certificate will do */
};

struct link_target {
    const char *socket_path; /* a unix socket; NULL: host and port */
    const char *host;
    int port;
    const struct link_tls *tls; /* NULL: without */
    int connect_limit_ms;       /* for connecting and the handshake of TLS; 0: none but the system's own */

    /* what link_greet does */
    const char *user;     /* NULL: the default user */
    const char *password; /* NULL: no AUTH */
    int database;
    int proto;        /* 3: HELLO 3; otherwise the protocol with which a connection begins */
    const char *name; /* CLIENT SETNAME; NULL: none */
};

struct link *link_create(void);
void link_destroy(struct link **handle); /* accepts NULL; leaves NULL */

/* Connects; a link that was open is closed before. STATUS_UNSUPPORTED: the TLS options make no sense, or the handshake
 * failed; link_is_tls_error is true then. */
must_check enum status link_open(struct link *link, const struct link_target *target);
void link_close(struct link *link);
bool link_is_open(const struct link *link);
bool link_is_tls_error(const struct link *link);
/* Why the last call failed: "Connection refused". Valid until the next call. */
const char *link_error(const struct link *link);

/* What a new connection is told, one step after another: HELLO, AUTH, SELECT. STATUS_DENIED: the server refused *step;
 * link_error is its answer, and the later steps were not done. */
enum link_step { LINK_STEP_AUTH, LINK_STEP_HELLO, LINK_STEP_SELECT, LINK_STEP_NAME, LINK_STEP_COUNT };
must_check enum status link_greet(struct link *link, const struct link_target *target, enum link_step *step);
/* One step. STATUS_OK also where the target does not ask for it. */
must_check enum status link_greet_step(struct link *link, const struct link_target *target, enum link_step step);

/* Adds a command to what is to be sent. Nothing is sent yet. */
void link_send(struct link *link, const struct slice *words, size_t word_count);
void link_send_raw(struct link *link, struct slice bytes);
size_t link_unsent(const struct link *link); /* bytes */
must_check enum status link_flush(struct link *link);
/* Sends what is possible at once. */
must_check enum status link_flush_some(struct link *link);

/* The next reply, at most `limit_ms` after the call; the caller owns it. STATUS_TIMEOUT: not yet. STATUS_INTERRUPTED: a
 * signal came, and the link's interrupted function said so. STATUS_CORRUPT: what came is no reply.
 *
 * If there is a function for pushes, it is given each push that comes before the reply; the push is the link's and ends
 * with the call. Otherwise pushes are returned as replies. */
must_check enum status link_receive(struct link *link, int limit_ms, struct resp_reply **reply);
typedef void (*link_push_fn)(const struct resp_reply *push, void *user);
void link_set_push(struct link *link, link_push_fn push, void *user);
/* Asked when a signal ends a wait. `mask` is the mask of signals while it waits, NULL: the thread's own. Signals that
 * are blocked otherwise cannot come between a look and the wait. */
void link_set_interrupted(struct link *link, bool (*interrupted)(void), const sigset_t *mask);

/* Sends one command and takes its reply. */
must_check enum status link_call(struct link *link, const struct slice *words, size_t word_count,
                                 struct resp_reply **reply);

/* Bytes as they come, for what is no reply: the payload of SYNC. *size 0 with STATUS_OK does not happen; the end is
 * STATUS_CLOSED. Bytes that were received with an earlier reply come first. */
must_check enum status link_read(struct link *link, int limit_ms, char *data, size_t room, size_t *size);

/* What is there now, without waiting: `input` is the link's own memory, is taken, and valid until the next call. Empty:
 * there is nothing. The end is STATUS_CLOSED, when all bytes before it were given. A plain link has nothing more if it
 * gave less than LINK_TAKE_BYTES; with TLS that is sure when it gives nothing. */
enum { LINK_TAKE_BYTES = 64 * 1024 };
must_check enum status link_take(struct link *link, struct slice *input);

/* For a caller that polls itself. Bytes may wait in the link although the descriptor is not readable. */
int link_descriptor(const struct link *link);
bool link_has_input(const struct link *link);
uint64_t link_received_bytes(const struct link *link); /* since it was opened */
