#include "net/tls.h"

#include "base/assert.h"
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
 *    list, the longest silent first. */

enum {
    WIRE_LIMIT_BYTES = 256 * 1024,  /* encrypted at a time */
    RECORD_BYTES = LOOP_GATHER_BYTES, /* most that fits a record */
    GATHER_BELOW_BYTES = 8192,      /* smaller pieces are put together to fill a record */
    PIECES_MAX = 64,
    ERROR_TEXT_BYTES = 256,
    IDLE_US = 200 * 1000,
    WARM_MAX = 128,
};

struct tls_context {
    _Atomic uint32_t refs;  /* atomic: release on leaving, acquire by the last */
    SSL_CTX *server;        /* const, like the next, after create */
    SSL_CTX *client;
};

struct tls_session {
    SSL *ssl;
    struct output wire;
    const char *in;         /* what the BIO reads: only set during tls_got_cipher */
    size_t in_size;
    char *error;            /* NULL: none */
    struct loop *loop;
    int64_t used_us;
    struct tls_session *warm_next;
    struct tls_session *warm_previous;
    bool is_warm;
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

static BIO_METHOD *bio_method;          /* global: written once, before main */

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

/* ------------------------------------------------------------------------------------------------- context -- */

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static const char *library_reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;

    return reason != NULL ? reason : code != 0 ? "unknown reason" : "no reason given";
}

static COLD bool context_fail(char error[TLS_ERROR_BYTES], const char *what, const char *value)
{
    snprintf(error, TLS_ERROR_BYTES, "%s: %s: %s", what, value, library_reason());
    ERR_clear_error();
    return false;
}

static int give_password(char *to, int size, int writing, void *user)
{
    const char *password = user;
    size_t length = password != NULL ? strlen(password) : 0;

    (void)writing;
    if (length == 0 || length > (size_t)size)
        return -1;
    memcpy(to, password, length);
    return (int)length;
}

/* The words of tls-protocols as options that switch the others off. */
static bool parse_protocols(const char *protocols, uint64_t *options, char error[TLS_ERROR_BYTES])
{
    static const struct {
        const char *name;
        uint64_t off;
    } known[] = {{"TLSv1", SSL_OP_NO_TLSv1},
                 {"TLSv1.1", SSL_OP_NO_TLSv1_1},
                 {"TLSv1.2", SSL_OP_NO_TLSv1_2},
                 {"TLSv1.3", SSL_OP_NO_TLSv1_3}};
    uint64_t off = SSL_OP_NO_SSLv3;
    const char *at = protocols;

    for (size_t i = 0; i < countof(known); i++)
        off |= known[i].off;
    while (*at != '\0') {
        size_t length = strcspn(at, " \t");
        bool found = length == 0;

        for (size_t i = 0; i < countof(known); i++)
            if (length != 0 && slice_equal_nocase(slice_make(at, length), slice_from_text(known[i].name))) {
                off &= ~known[i].off;
                found = true;
            }
        if (!found) {
            snprintf(error, TLS_ERROR_BYTES, "tls-protocols: unknown protocol '%.*s'", (int)length, at);
            return false;
        }
        at += length + (at[length] != '\0');
    }
    *options = off;
    return true;
}

static bool load_pair(SSL_CTX *context, const char *cert_file, const char *key_file, const char *password,
                      char error[TLS_ERROR_BYTES])
{
    SSL_CTX_set_default_passwd_cb(context, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(context, (void *)(uintptr_t)password);
    if (SSL_CTX_use_certificate_chain_file(context, cert_file) != 1)
        return context_fail(error, "Failed to load certificate", cert_file);
    if (!is_set(key_file))
        return context_fail(error, "No key file is given for certificate", cert_file);
    if (SSL_CTX_use_PrivateKey_file(context, key_file, SSL_FILETYPE_PEM) != 1)
        return context_fail(error, "Failed to load private key", key_file);
    if (SSL_CTX_check_private_key(context) != 1)
        return context_fail(error, "The private key does not match the certificate", key_file);
    SSL_CTX_set_default_passwd_cb_userdata(context, NULL); /* the caller's text */
    return true;
}

static bool load_authorities(SSL_CTX *context, const struct tls_options *options, char error[TLS_ERROR_BYTES])
{
    const char *file = is_set(options->ca_cert_file) ? options->ca_cert_file : NULL;
    const char *folder = is_set(options->ca_cert_dir) ? options->ca_cert_dir : NULL;

    if (file == NULL && folder == NULL)
        return true;
    if (SSL_CTX_load_verify_locations(context, file, folder) != 1)
        return context_fail(error, "Failed to load CA certificates", file != NULL ? file : folder);
    return true;
}

static bool load_dh_params(SSL_CTX *context, const char *path, char error[TLS_ERROR_BYTES])
{
    BIO *bio = NULL;
    EVP_PKEY *params = NULL;

    if (!is_set(path)) {
        SSL_CTX_set_dh_auto(context, 1);
        return true;
    }
    bio = BIO_new_file(path, "r");
    if (bio == NULL)
        return context_fail(error, "Failed to load DH parameters", path);
    params = PEM_read_bio_Parameters(bio, NULL);
    BIO_free(bio);
    if (params == NULL || SSL_CTX_set0_tmp_dh_pkey(context, params) != 1) {
        EVP_PKEY_free(params);
        return context_fail(error, "Failed to load DH parameters", path);
    }
    return true;
}

static bool set_ciphers(SSL_CTX *context, const struct tls_options *options, char error[TLS_ERROR_BYTES])
{
    if (is_set(options->ciphers) && SSL_CTX_set_cipher_list(context, options->ciphers) != 1)
        return context_fail(error, "Failed to configure tls-ciphers", options->ciphers);
    if (is_set(options->ciphersuites) && SSL_CTX_set_ciphersuites(context, options->ciphersuites) != 1)
        return context_fail(error, "Failed to configure tls-ciphersuites", options->ciphersuites);
    return true;
}

static void set_session_cache(SSL_CTX *context, const struct tls_options *options)
{
    static const unsigned char name[] = "keydb";

    if (!options->session_caching) {
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(context, 0);
        return;
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(context, options->session_cache_size);
    SSL_CTX_set_timeout(context, (long)options->session_cache_timeout_s);
    SSL_CTX_set_session_id_context(context, name, sizeof(name) - 1);
}

/* What both sides have in common. */
static SSL_CTX *context_begin(const SSL_METHOD *method, const struct tls_options *options,
                              char error[TLS_ERROR_BYTES])
{
    const char *protocols = is_set(options->protocols) ? options->protocols : "TLSv1.2 TLSv1.3";
    uint64_t switches = 0;
    SSL_CTX *context = NULL;

    if (!parse_protocols(protocols, &switches, error))
        return NULL;
    context = SSL_CTX_new(method);
    if (context == NULL) {
        context_fail(error, "Failed to set TLS up", "SSL_CTX_new");
        return NULL;
    }
    SSL_CTX_set_min_proto_version(context, 0); /* the system's configuration may demand more; ours decides */
    SSL_CTX_set_options(context, switches | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 0);
    if (set_ciphers(context, options, error) && load_authorities(context, options, error))
        return context;
    SSL_CTX_free(context);
    return NULL;
}

static bool create_server(struct tls_context *context, const struct tls_options *options, char error[TLS_ERROR_BYTES])
{
    static const int verify[] = {[TLS_AUTH_NO] = SSL_VERIFY_NONE,
                                 [TLS_AUTH_YES] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                                 [TLS_AUTH_OPTIONAL] = SSL_VERIFY_PEER};
    SSL_CTX *server = context_begin(TLS_server_method(), options, error);

    context->server = server;
    if (server == NULL)
        return false;
    if (options->prefer_server_ciphers)
        SSL_CTX_set_options(server, SSL_OP_CIPHER_SERVER_PREFERENCE);
    set_session_cache(server, options);
    SSL_CTX_set_verify(server, verify[options->auth_clients], NULL);
    if (!is_set(options->cert_file)) {
        snprintf(error, TLS_ERROR_BYTES, "No tls-cert-file configured!");
        return false;
    }
    return load_pair(server, options->cert_file, options->key_file, options->key_file_pass, error) &&
           load_dh_params(server, options->dh_params_file, error);
}

static bool create_client(struct tls_context *context, const struct tls_options *options, char error[TLS_ERROR_BYTES])
{
    bool own = is_set(options->client_cert_file);
    bool verifies = is_set(options->ca_cert_file) || is_set(options->ca_cert_dir);
    SSL_CTX *client = context_begin(TLS_client_method(), options, error);

    context->client = client;
    if (client == NULL)
        return false;
    SSL_CTX_set_verify(client, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (own)
        return load_pair(client, options->client_cert_file, options->client_key_file, options->client_key_file_pass,
                         error);
    return load_pair(client, options->cert_file, options->key_file, options->key_file_pass, error);
}

bool tls_context_create(const struct tls_options *options, struct tls_context **result, char error[TLS_ERROR_BYTES])
{
    struct tls_context *context = mem_alloc_zero(sizeof(*context));

    ERR_clear_error();
    atomic_init(&context->refs, 1);
    *result = context;
    if (options->auth_clients != TLS_AUTH_NO && !is_set(options->ca_cert_file) && !is_set(options->ca_cert_dir))
        snprintf(error, TLS_ERROR_BYTES, "%s", "To verify clients, give tls-ca-cert-file or tls-ca-cert-dir");
    else if (create_server(context, options, error) && create_client(context, options, error))
        return true;
    tls_context_release(result);
    return false;
}

struct tls_context *tls_context_acquire(struct tls_context *context)
{
    atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
    return context;
}

void tls_context_release(struct tls_context **handle)
{
    struct tls_context *context = *handle;

    *handle = NULL;
    if (context == NULL || atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) != 1)
        return;
    SSL_CTX_free(context->server);
    SSL_CTX_free(context->client);
    mem_free(context);
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

struct tls_session *tls_session_create(struct tls_context *context, struct loop *loop, bool client,
                                       const char *server_name)
{
    struct tls_session *session = mem_alloc_zero(sizeof(*session));
    BIO *bio = BIO_new(bio_method);

    session->loop = loop;
    session->ssl = SSL_new(client ? context->client : context->server); /* it keeps the SSL_CTX alive */
    if (session->ssl == NULL || bio == NULL) {
        BIO_free(bio);
        tls_session_destroy(&session);
        return NULL;
    }
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio);
    output_init(&session->wire, &loop->pool);
    if (!client)
        SSL_set_accept_state(session->ssl);
    else
        SSL_set_connect_state(session->ssl);
    if (client && is_set(server_name))
        SSL_set_tlsext_host_name(session->ssl, (char *)(uintptr_t)server_name); /* it is copied */
    return session;
}

void tls_session_destroy(struct tls_session **handle)
{
    struct tls_session *session = *handle;

    *handle = NULL;
    if (session == NULL)
        return;
    warm_unlink(session);
    SSL_free(session->ssl);
    output_clear(&session->wire);
    mem_free(session->error);
    mem_free(session);
}

struct output *tls_session_wire(struct tls_session *session)
{
    return &session->wire;
}

size_t tls_session_memory_bytes(const struct tls_session *session)
{
    return sizeof(*session) + output_memory_bytes(&session->wire);
}

const char *tls_session_error(const struct tls_session *session)
{
    return session->error != NULL ? session->error : "";
}

/* Writes down what the library has just complained about. */
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

    ERR_clear_error();
    result = SSL_do_handshake(session->ssl);
    if (result == 1) {
        conn_open_done(conn);
        return (conn->flags & CONN_CLOSING) == 0;
    }
    error = SSL_get_error(session->ssl, result);
    if (error != SSL_ERROR_WANT_READ)
        session_fail(conn, error);
    return false;
}

/* Decrypts into [to, to + room) until that is full or nothing encrypted is left. Returns SSL_ERROR_NONE, or why the
 * session has ended; what was decrypted before counts. */
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

/* Presents what can be decrypted, in as large pieces as the window allows. */
static void session_read_all(struct conn *conn)
{
    struct tls_session *session = conn->tls;

    while ((conn->flags & (CONN_CLOSING | CONN_CLOSE_AFTER)) == 0 &&
           (session->in_size > 0 || SSL_pending(session->ssl) > 0)) {
        int error = SSL_ERROR_NONE;
        size_t size = 0;

        ERR_clear_error();
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

void tls_got_cipher(struct conn *conn, char *data, size_t size)
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

void tls_start(struct conn *conn)
{
    session_shake_hands(conn);
}

/* The first bytes of the output as one range: where they are, or put together in the loop's memory. */
static struct slice next_record(struct conn *conn)
{
    struct iovec pieces[PIECES_MAX];
    unsigned count = output_iovec(&conn->output, pieces, PIECES_MAX);
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

    if (!output_is_empty(&conn->output))
        session_warm(session);
    while (!output_is_empty(&conn->output) && output_size(&session->wire) < WIRE_LIMIT_BYTES) {
        struct slice plain = next_record(conn);
        int written = 0;

        ERR_clear_error();
        written = SSL_write(session->ssl, plain.data, (int)plain.size);
        if (UNLIKELY(written <= 0)) {
            session_fail(conn, SSL_get_error(session->ssl, written));
            return;
        }
        output_consume(&conn->output, (size_t)written);
    }
}

void tls_say_goodbye(struct conn *conn)
{
    ERR_clear_error();
    SSL_shutdown(conn->tls->ssl);
    ERR_clear_error();
}

/* --------------------------------------------------------------------------------------------------- facts -- */

static SSL *conn_ssl(const struct conn *conn)
{
    return (conn->flags & (CONN_TLS | CONN_HANDSHAKE)) == CONN_TLS ? conn->tls->ssl : NULL;
}

static X509 *conn_certificate(const struct conn *conn)
{
    SSL *ssl = conn_ssl(conn);

    return ssl != NULL ? SSL_get0_peer_certificate(ssl) : NULL;
}

bool tls_conn_peer_has_certificate(const struct conn *conn)
{
    return conn_certificate(conn) != NULL;
}

size_t tls_conn_peer_subject(const struct conn *conn, char *text, size_t text_size)
{
    X509 *certificate = conn_certificate(conn);
    BIO *bio = NULL;
    int size = 0;

    text[0] = '\0';
    if (certificate == NULL)
        return 0;
    bio = BIO_new(BIO_s_mem());
    if (bio == NULL)
        return 0;
    X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
    size = BIO_read(bio, text, (int)text_size - 1);
    BIO_free(bio);
    size = MAX(size, 0);
    text[size] = '\0';
    return (size_t)size;
}

size_t tls_conn_peer_common_name(const struct conn *conn, char *text, size_t text_size)
{
    X509 *certificate = conn_certificate(conn);
    int size = -1;

    text[0] = '\0';
    if (certificate != NULL)
        size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text, (int)text_size);
    return (size_t)MAX(size, 0);
}

size_t tls_conn_peer_fingerprint(const struct conn *conn, char *text, size_t text_size)
{
    X509 *certificate = conn_certificate(conn);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_size = 0;
    size_t size = 0;

    text[0] = '\0';
    if (certificate == NULL || X509_digest(certificate, EVP_sha256(), digest, &digest_size) != 1)
        return 0;
    for (unsigned i = 0; i < digest_size && size + 2 < text_size; i++)
        size += (size_t)snprintf(text + size, text_size - size, "%02x", digest[i]);
    return size;
}

static bool match_alternative(const GENERAL_NAME *name, bool (*fn)(const char *name, size_t size, void *user),
                              void *user)
{
    int type = 0;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);

    if (type != GEN_DNS && type != GEN_IPADD && type != GEN_EMAIL && type != GEN_URI)
        return false;
    return fn((const char *)ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value), user);
}

bool tls_conn_peer_match_names(const struct conn *conn, bool (*fn)(const char *name, size_t size, void *user),
                               void *user)
{
    X509 *certificate = conn_certificate(conn);
    GENERAL_NAMES *names = NULL;
    char common[256];
    size_t size = tls_conn_peer_common_name(conn, common, sizeof(common));
    bool matched = false;

    if (certificate == NULL)
        return false;
    if (size > 0 && fn(common, size, user))
        return true;
    names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; !matched && i < sk_GENERAL_NAME_num(names); i++)
        matched = match_alternative(sk_GENERAL_NAME_value(names, i), fn, user);
    GENERAL_NAMES_free(names);
    return matched;
}

const char *tls_conn_version(const struct conn *conn)
{
    SSL *ssl = conn_ssl(conn);

    return ssl != NULL ? SSL_get_version(ssl) : "";
}

const char *tls_conn_cipher(const struct conn *conn)
{
    SSL *ssl = conn_ssl(conn);

    return ssl != NULL ? SSL_get_cipher_name(ssl) : "";
}

bool tls_conn_resumed(const struct conn *conn)
{
    SSL *ssl = conn_ssl(conn);

    return ssl != NULL && SSL_session_reused(ssl) == 1;
}
