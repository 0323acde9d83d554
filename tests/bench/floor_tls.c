/* The cost of the kernel, the network and the TLS library alone: floor.c over TLS.
 *
 *   floor_tls PORT BYTES FOLDER
 *
 * FOLDER has the certificates of utils/gen-test-certs.sh; clients are asked for theirs, as the servers do by default.
 * One thread, one epoll instance; for each readiness event one read, the library's work on what it has brought, and one
 * write: the library reads and writes memory here, never the socket. Each request, which begins with an asterisk, gets
 * the same value, all requests of an event together. So a request without pipelining takes two records and two system
 * calls, and a server that does it over this library cannot take less. */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)
#define EVENTS_A_TURN 128
#define REPLIES_A_READ (READ_BYTES / 8)
#define RECORDS_BYTES (32 * 1024) /* more than what is added to a reply by the records it fills, and by a handshake */

struct session {
    SSL *ssl;
    int fd;
};

static char input[READ_BYTES], plain[READ_BYTES];
static const char *in; /* what the library has not read of `input` */
static size_t in_bytes;
static char *out; /* what the library has written, and nobody sent */
static size_t out_bytes, out_room;
static char *replies; /* the constant, REPLIES_A_READ times in a row */
static size_t reply_bytes;

static int take_input(BIO *bio, char *data, size_t size, size_t *taken)
{
    BIO_clear_retry_flags(bio);
    *taken = size < in_bytes ? size : in_bytes;
    if (*taken == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(data, in, *taken);
    in += *taken;
    in_bytes -= *taken;
    return 1;
}

static int keep_output(BIO *bio, const char *data, size_t size, size_t *kept)
{
    (void)bio;
    if (size > out_room - out_bytes)
        errx(1, "more output than there is room for");
    memcpy(out + out_bytes, data, size);
    out_bytes += size;
    *kept = size;
    return 1;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "memory");

    if (method == NULL)
        errx(1, "BIO_meth_new");
    BIO_meth_set_read_ex(method, take_input);
    BIO_meth_set_write_ex(method, keep_output);
    BIO_meth_set_ctrl(method, control);
    return method;
}

static const char *path_in(const char *folder, const char *name)
{
    static char path[4096];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static SSL_CTX *make_context(const char *folder)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    if (context == NULL || SSL_CTX_use_certificate_chain_file(context, path_in(folder, "server.crt")) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, path_in(folder, "server.key"), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_load_verify_locations(context, path_in(folder, "ca.crt"), NULL) != 1)
        errx(1, "no certificates in %s", folder);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_session_id_context(context, (const unsigned char *)"floor", 5);
    return context;
}

static int listen_on(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int yes = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 511) != 0)
        err(1, "port %d", port);
    return listener;
}

static void prepare_replies(size_t value_bytes)
{
    char head[32];
    size_t head_bytes = (size_t)snprintf(head, sizeof head, "$%zu\r\n", value_bytes);

    reply_bytes = head_bytes + value_bytes + 2;
    replies = malloc(reply_bytes * REPLIES_A_READ);
    out_room = 2 * reply_bytes * REPLIES_A_READ + RECORDS_BYTES;
    out = malloc(out_room);
    if (replies == NULL || out == NULL)
        err(1, "replies");
    for (char *at = replies; at < replies + reply_bytes * REPLIES_A_READ; at += reply_bytes) {
        memcpy(at, head, head_bytes);
        memset(at + head_bytes, 'x', value_bytes);
        memcpy(at + head_bytes + value_bytes, "\r\n", 2);
    }
}

static size_t count_requests(const char *at, size_t bytes)
{
    const char *end = at + bytes;
    size_t count = 0;

    for (; (at = memchr(at, '*', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

static int send_output(int fd)
{
    for (const char *from = out; out_bytes > 0;) {
        ssize_t written = write(fd, from, out_bytes);

        if (written <= 0)
            return 0;
        from += written;
        out_bytes -= (size_t)written;
    }
    return 1;
}

/* False when the connection is over. */
static int answer(struct session *session)
{
    ssize_t received = read(session->fd, input, sizeof input);
    size_t requests = 0;
    int got = 1;

    out_bytes = 0;
    if (received <= 0)
        return 0;
    in = input;
    in_bytes = (size_t)received;
    while (got > 0 && (in_bytes > 0 || SSL_pending(session->ssl) > 0)) {
        got = SSL_read(session->ssl, plain, sizeof plain);
        if (got > 0)
            requests += count_requests(plain, (size_t)got);
        else if (SSL_get_error(session->ssl, got) != SSL_ERROR_WANT_READ)
            return 0;
    }
    if (requests > 0 && SSL_write(session->ssl, replies, (int)(requests * reply_bytes)) <= 0)
        return 0;
    return send_output(session->fd);
}

static void watch(int epoll, int fd, void *data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        err(1, "epoll_ctl");
}

static struct session *greet(int listener, SSL_CTX *context, BIO_METHOD *method)
{
    struct session *session = malloc(sizeof *session);
    BIO *bio = BIO_new(method);
    int yes = 1;

    if (session == NULL || bio == NULL)
        err(1, "session");
    session->fd = accept(listener, NULL, NULL);
    session->ssl = SSL_new(context);
    if (session->fd < 0 || session->ssl == NULL)
        err(1, "accept");
    setsockopt(session->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio);
    SSL_set_accept_state(session->ssl);
    return session;
}

static void part(struct session *session)
{
    ERR_clear_error();
    SSL_free(session->ssl);
    close(session->fd);
    free(session);
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS_A_TURN];
    BIO_METHOD *method = make_method();
    SSL_CTX *context;
    int listener, epoll;

    if (argc != 4)
        errx(2, "usage: floor_tls PORT BYTES FOLDER");
    signal(SIGPIPE, SIG_IGN);
    prepare_replies((size_t)atol(argv[2]));
    context = make_context(argv[3]);
    listener = listen_on(atoi(argv[1]));
    epoll = epoll_create1(0);
    watch(epoll, listener, NULL);
    for (;;) {
        int ready = epoll_wait(epoll, events, EVENTS_A_TURN, -1);

        for (int i = 0; i < ready; i++) {
            struct session *session = events[i].data.ptr;

            if (session == NULL) {
                session = greet(listener, context, method);
                watch(epoll, session->fd, session);
            } else if (!answer(session)) {
                part(session);
            }
        }
    }
}
