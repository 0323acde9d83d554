#include "net/tls.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "net/conn.h"
#include "net/loop_priv.h"
#include "net/tls_priv.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

/* The library never sees the socket. Its BIO reads from the range of encrypted bytes that the loop has just received
 * and writes to an output of the session, the wire, which is sent like any plain output:
 *
 *     socket -> loop->cipher -> [BIO read, SSL_read] -> loop->input (or direct memory) -> on_data
 *     conn->output -> [SSL_write, BIO write] -> wire -> socket
 *
 * 1. SSL_read is called until the range is empty, so nothing encrypted is kept but a begun record, by the library.
 * 2. While the wire is not empty because the socket is full, nothing more is encrypted: plain output waits as plain.
 * 3. The BIO's write cannot fail, so neither can SSL_write for lack of room: no partial writes, no retries.
 * 4. The library's record buffers (2 x 17 KB) are kept between the records of a busy session and given back when it
 *    was silent for IDLE_US, or when more than WARM_MAX others have been busy since. Letting the library do that after
 *    every record (SSL_MODE_RELEASE_BUFFERS) cost 4 % of a request. Sessions with buffers stand in the loop's `warm`
 *    list, the longest silent first.
 * 5. A step of a handshake takes as long as hundreds of requests. So what arrives for a handshake is held until the end
 *    of the turn, when the replies of the others have been sent; then steps are taken, first come, first served, until
 *    HANDSHAKE_TURN_US have passed. The rest waits for the end of the next turn, and so do, for their sending, replies
 *    to what a step has brought: promises are kept (on_turn_end) before anything is sent. */

enum {
    WIRE_LIMIT_BYTES = 256 * 1024,    /* encrypted at a time */
    RECORD_BYTES = LOOP_GATHER_BYTES, /* most that fits a record */
    GATHER_BELOW_BYTES = 8192,        /* smaller pieces are put together to fill a record */
    PIECES_MAX = 64,
    ERROR_TEXT_BYTES = 256,
    IDLE_US = 200 * 1000,
    WARM_MAX = 128,
    HANDSHAKE_TURN_US = 200,
    HELD_MAX_BYTES = 128 * 1024, /* a flight of a handshake, with a long chain of certificates */
};

/* ---------------------------------------------------------------------------------------------------- BIO -- */

static int bio_read(BIO *bio, char *data, size_t size, size_t *used)
{
    struct tls_session *session = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    *used = MIN(size, session->in_size);
    if (*used == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(data, session->in, *used);
    session->in += *used;
    session->in_size -= *used;
    return 1;
}

static int bio_write(BIO *bio, const char *data, size_t size, size_t *used)
{
    struct tls_session *session = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    output_append(&session->wire, data, size);
    *used = size;
    return 1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP;
}

static BIO_METHOD *bio_method; /* global: written once, before main */

static __attribute__((constructor)) void bio_method_setup(void)
{
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "loop");
    BIO_meth_set_read_ex(bio_method, bio_read);
    BIO_meth_set_write_ex(bio_method, bio_write);
    BIO_meth_set_ctrl(bio_method, bio_ctrl);
}

static __attribute__((destructor)) void bio_method_teardown(void)
{
    BIO_meth_free(bio_method);
    bio_method = NULL;
}

/* ------------------------------------------------------------------------------------------------- session -- */

static void warm_unlink(struct tls_session *session)
{
    struct tls_warm *warm = &session->loop->warm;

    if (!session->is_warm)
        return;
    if (session->warm_previous != NULL)
        session->warm_previous->warm_next = session->warm_next;
    else
        warm->first = session->warm_next;
    if (session->warm_next != NULL)
        session->warm_next->warm_previous = session->warm_previous;
    else
        warm->last = session->warm_previous;
    session->is_warm = false;
    warm->count--;
}

/* A session with half a record in its buffer keeps it, and comes back to the list with the other half. */
static void warm_cool_first(struct loop *loop)
{
    struct tls_session *session = loop->warm.first;

    warm_unlink(session);
    SSL_free_buffers(session->ssl);
}

static void on_warm_timer(struct loop *loop, struct loop_timer *timer)
{
    while (loop->warm.first != NULL && loop->warm.first->used_us + IDLE_US <= loop->now_us)
        warm_cool_first(loop);
    if (loop->warm.first != NULL)
        loop_timer_start(loop, timer, loop->warm.first->used_us + IDLE_US - loop->now_us, on_warm_timer);
}

/* The session is in use now. */
static void session_warm(struct tls_session *session)
{
    struct loop *loop = session->loop;
    struct tls_warm *warm = &loop->warm;

    session->used_us = loop->now_us;
    if (warm->last == session)
        return;
    warm_unlink(session);
    session->warm_previous = warm->last;
    session->warm_next = NULL;
    if (warm->last != NULL)
        warm->last->warm_next = session;
    else
        warm->first = session;
    warm->last = session;
    session->is_warm = true;
    if (++warm->count > WARM_MAX)
        warm_cool_first(loop);
    if (!loop_timer_is_running(&warm->timer))
        loop_timer_start(loop, &warm->timer, IDLE_US, on_warm_timer);
}

static void wait_unlink(struct tls_session *session)
{
    struct tls_waiting *waiting = &session->loop->handshakes;

    if (!session->is_waiting)
        return;
    if (session->wait_previous != NULL)
        session->wait_previous->wait_next = session->wait_next;
    else
        waiting->first = session->wait_next;
    if (session->wait_next != NULL)
        session->wait_next->wait_previous = session->wait_previous;
    else
        waiting->last = session->wait_previous;
    session->is_waiting = false;
}

static void wait_append(struct tls_session *session)
{
    struct tls_waiting *waiting = &session->loop->handshakes;

    assert(!session->is_waiting);
    session->wait_previous = waiting->last;
    session->wait_next = NULL;
    if (waiting->last != NULL)
        waiting->last->wait_next = session;
    else
        waiting->first = session;
    waiting->last = session;
    session->is_waiting = true;
}

struct tls_session *tls_session_create(struct tls_context *context, struct conn *conn, bool client,
                                       const char *server_name)
{
    struct tls_session *session = mem_alloc_zero(sizeof(*session));

    loop_assert_self(conn->loop);
    BIO *bio = BIO_new(bio_method);

    session->conn = conn;
    session->loop = conn->loop;
    session->ssl = SSL_new(client ? context->client : context->server); /* it keeps the SSL_CTX alive */
    if (session->ssl == NULL || bio == NULL) {
        BIO_free(bio);
        tls_session_destroy(&session);
        return NULL;
    }
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio);
    output_init(&session->wire, &conn->loop->pool);
    if (!client)
        SSL_set_accept_state(session->ssl);
    else
        SSL_set_connect_state(session->ssl);
    if (client && server_name != NULL && server_name[0] != '\0')
        SSL_set_tlsext_host_name(session->ssl, (char *)(uintptr_t)server_name); /* it is copied */
    return session;
}

void tls_session_destroy(struct tls_session **handle)
{
    struct tls_session *session = *handle;

    *handle = NULL;
    if (session == NULL)
        return;
    loop_assert_self(session->loop);
    warm_unlink(session);
    wait_unlink(session);
    SSL_free(session->ssl);
    output_give_back(&session->wire);
    mem_free(session->held);
    mem_free(session->error);
    mem_free(session);
}

struct output *tls_session_wire(struct tls_session *session)
{
    return &session->wire;
}

size_t tls_session_memory_bytes(const struct tls_session *session)
{
    return sizeof(*session) + session->held_size + output_memory_bytes(&session->wire);
}

const char *tls_session_error(const struct tls_session *session)
{
    return session->error != NULL ? session->error : "";
}

/* Before calls whose errors SSL_get_error() explains by what the thread's queue has. It is hardly ever anything: to
 * look takes 206 instructions, to clear it 2,100, and that twice in a request. */
static void forget_errors(void)
{
    if (UNLIKELY(ERR_peek_error() != 0))
        ERR_clear_error();
}

/* Records the library's last error. */
static COLD void session_note_error(struct tls_session *session)
{
    char code_text[ERROR_TEXT_BYTES];
    char text[ERROR_TEXT_BYTES * 2];
    long verify = SSL_get_verify_result(session->ssl);
    unsigned long code = ERR_peek_last_error();

    ERR_error_string_n(code, code_text, sizeof(code_text));
    if (verify != X509_V_OK)
        snprintf(text, sizeof(text), "%s (%s)", code_text, X509_verify_cert_error_string(verify));
    else
        snprintf(text, sizeof(text), "%s", code_text);
    ERR_clear_error();
    mem_free(session->error);
    session->error = mem_copy_text(text);
}

static COLD void session_close(struct conn *conn, int ssl_error)
{
    if (ssl_error == SSL_ERROR_ZERO_RETURN)
        conn_got_end(conn);
    else
        conn_close_for(conn, CONN_CLOSED_HANDSHAKE, 0);
}

static COLD void session_fail(struct conn *conn, int ssl_error)
{
    if (ssl_error != SSL_ERROR_ZERO_RETURN)
        session_note_error(conn->tls);
    session_close(conn, ssl_error);
}

/* False: not complete, or failed. */
static bool session_shake_hands(struct conn *conn)
{
    struct tls_session *session = conn->tls;
    int result = 0;
    int error = 0;

    int64_t begin_us = (int64_t)clock_monotonic_us();

    forget_errors();
    result = SSL_do_handshake(session->ssl);
    tls_tickets_settle();
    session->loop->handshakes.spent_us += (int64_t)clock_monotonic_us() - begin_us;
    if (result == 1) {
        conn_open_done(conn);
        return (conn->flags & CONN_CLOSING) == 0;
    }
    error = SSL_get_error(session->ssl, result);
    if (error != SSL_ERROR_WANT_READ)
        session_fail(conn, error);
    return false;
}

/* Decrypts into [to, to + room) until that is full or no encrypted bytes are left. Returns SSL_ERROR_NONE, or why the
 * session has ended; bytes decrypted before that count. */
static int session_read(struct tls_session *session, char *to, size_t room, size_t *size)
{
    *size = 0;
    while (*size < room && (session->in_size > 0 || SSL_pending(session->ssl) > 0)) {
        int got = SSL_read(session->ssl, to + *size, (int)MIN(room - *size, (size_t)INT_MAX));
        int error = 0;

        if (LIKELY(got > 0)) {
            *size += (size_t)got;
            continue;
        }
        error = SSL_get_error(session->ssl, got);
        if (error == SSL_ERROR_WANT_READ)
            continue; /* the range is empty now, or held a message of the protocol itself */
        if (error != SSL_ERROR_ZERO_RETURN)
            session_note_error(session);
        return error;
    }
    return SSL_ERROR_NONE;
}

/* Gives decrypted bytes to the handler, in pieces as large as the window allows. */
static void session_read_all(struct conn *conn)
{
    struct tls_session *session = conn->tls;

    while ((conn->flags & (CONN_CLOSING | CONN_CLOSE_AFTER)) == 0 &&
           (session->in_size > 0 || SSL_pending(session->ssl) > 0)) {
        int error = SSL_ERROR_NONE;
        size_t size = 0;

        forget_errors();
        if (conn->direct_size > 0) {
            error = session_read(session, conn->direct, conn->direct_size, &size);
            if (size > 0)
                conn_got_direct(conn, NULL, size);
        } else {
            size_t room = 0;
            char *window = conn_window(conn, &room);

            error = session_read(session, window, room, &size);
            if (size > 0)
                conn_got(conn, window, size);
        }
        if (error != SSL_ERROR_NONE) {
            session_close(conn, error);
            return;
        }
    }
}

static void session_feed(struct conn *conn, const char *data, size_t size)
{
    struct tls_session *session = conn->tls;

    session_warm(session);
    session->in = data;
    session->in_size = size;
    if ((conn->flags & CONN_HANDSHAKE) == 0 || session_shake_hands(conn))
        session_read_all(conn);
    session->in = NULL;
    session->in_size = 0;
    if (!output_is_empty(&session->wire))
        conn_write_pending(conn);
}

bool tls_decrypt_aside(struct conn *conn, struct slice cipher, char *data, size_t room, size_t *size)
{
    struct tls_session *session = conn->tls;
    const char *in = session->in;
    size_t in_size = session->in_size;
    int error;

    assert((conn->flags & (CONN_IN_DATA | CONN_PAUSED)) != 0);
    session->in = cipher.data;
    session->in_size = cipher.size;
    forget_errors();
    error = session_read(session, data, room, size);
    session->in = in;
    session->in_size = in_size;
    return error == SSL_ERROR_NONE;
}

/* Keeps input for a handshake until it is its turn. */
static void session_hold(struct conn *conn, const char *data, size_t size)
{
    struct tls_session *session = conn->tls;

    session->held = mem_realloc(session->held, session->held_size + size);
    memcpy(session->held + session->held_size, data, size);
    session->held_size += size;
    if (!session->is_waiting)
        wait_append(session);
}

/* More than a handshake has: requests stand behind its last flight, so it has to be over now. */
static COLD void got_handshake(struct conn *conn, const char *data, size_t size)
{
    if (conn->tls->held_size + size > HELD_MAX_BYTES)
        tls_feed_held(conn);
    if ((conn->flags & CONN_CLOSING) != 0)
        return;
    if ((conn->flags & CONN_HANDSHAKE) != 0)
        session_hold(conn, data, size);
    else
        session_feed(conn, data, size);
}

void tls_got_cipher(struct conn *conn, char *data, size_t size)
{
    if (UNLIKELY((conn->flags & CONN_HANDSHAKE) != 0))
        got_handshake(conn, data, size);
    else
        session_feed(conn, data, size);
}

void tls_feed_held(struct conn *conn)
{
    struct tls_session *session = conn->tls;
    char *held = session->held;
    size_t size = session->held_size;

    wait_unlink(session);
    session->held = NULL;
    session->held_size = 0;
    if (size > 0 && (conn->flags & CONN_CLOSING) == 0)
        session_feed(conn, held, size);
    mem_free(held);
}

void tls_run_handshakes(struct loop *loop)
{
    struct tls_waiting *waiting = &loop->handshakes;

    loop_assert_self(loop);
    waiting->spent_us = 0;
    waiting->stepped = true;
    while (waiting->first != NULL && waiting->spent_us < HANDSHAKE_TURN_US)
        tls_feed_held(waiting->first->conn);
}

void tls_start(struct conn *conn)
{
    assert((conn->flags & CONN_HANDSHAKE) != 0);
    session_shake_hands(conn);
}

/* The first bytes of the output as one range: where they are, or put together in the loop's memory. */
static struct slice next_record(struct conn *conn)
{
    struct iovec pieces[PIECES_MAX];
    unsigned count = conn_pieces(conn, pieces, PIECES_MAX);
    char *gather = conn->loop->cipher;
    size_t size = 0;

    assert(count > 0);
    if (count == 1 || pieces[0].iov_len >= GATHER_BELOW_BYTES)
        return slice_make(pieces[0].iov_base, MIN(pieces[0].iov_len, (size_t)WIRE_LIMIT_BYTES));
    gather += LOOP_CIPHER_BYTES;
    for (unsigned i = 0; i < count && size < RECORD_BYTES; i++) {
        size_t part = MIN(pieces[i].iov_len, RECORD_BYTES - size);

        memcpy(gather + size, pieces[i].iov_base, part);
        size += part;
    }
    return slice_make(gather, size);
}

void tls_encrypt(struct conn *conn)
{
    struct tls_session *session = conn->tls;

    assert((conn->flags & CONN_HANDSHAKE) == 0);
    if (!output_is_empty(&conn->output))
        session_warm(session);
    while (!output_is_empty(&conn->output) && ((conn->flags & CONN_HELD) == 0 || conn->clear_bytes != 0) &&
           output_size(&session->wire) < WIRE_LIMIT_BYTES) {
        struct slice plain = next_record(conn);
        int written = 0;

        forget_errors();
        written = SSL_write(session->ssl, plain.data, (int)plain.size);
        if (UNLIKELY(written <= 0)) {
            session_fail(conn, SSL_get_error(session->ssl, written));
            return;
        }
        conn_consume(conn, (size_t)written);
    }
}

void tls_say_goodbye(struct conn *conn)
{
    forget_errors();
    SSL_shutdown(conn->tls->ssl);
    forget_errors();
}
