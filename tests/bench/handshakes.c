/* TLS clients that come and go: connect, shake hands, PING, close.
 *
 *   handshakes PORT FOLDER full|resumed SECONDS RATE THREADS
 *
 * FOLDER has the certificates of utils/gen-test-certs.sh; the client shows its own, and checks the server's. At RATE 0
 * each thread begins the next connection after the last one; otherwise connection number i is due at i / RATE seconds,
 * and its time counts from then. "resumed": each connection resumes the session of the thread's last one, and it is an
 * error if the server refuses; the first of each thread is not counted. Prints one line of JSON: connections, a second,
 * and the time of one in milliseconds. */
#include "base/clock.h"
#include "base/histogram.h"
#include "base/mem.h"
#include "base/tick.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

struct client {
    pthread_t thread;
    SSL_SESSION *session; /* what to resume; NULL: the first connection */
    struct histogram times;
};

/* const after the start of the threads, but for `next` */
static struct {
    SSL_CTX *context;
    uint16_t port;
    bool resumes;
    uint64_t rate, begin_ns, end_ns;
    _Atomic uint64_t next; /* atomic: relaxed; the number of the next connection, for any thread */
} run;

static _Noreturn void fail(const char *what)
{
    unsigned long code = ERR_peek_last_error();

    errx(1, "%s: %s", what, code != 0 ? ERR_reason_error_string(code) : strerror(errno));
}

static SSL_CTX *make_context(const char *folder)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    char ca[4096], certificate[4096], key[4096];

    snprintf(ca, sizeof(ca), "%s/ca.crt", folder);
    snprintf(certificate, sizeof(certificate), "%s/client.crt", folder);
    snprintf(key, sizeof(key), "%s/client.key", folder);
    if (context == NULL || SSL_CTX_load_verify_locations(context, ca, NULL) != 1 ||
        SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        fail(folder);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_quiet_shutdown(context, 1);
    return context;
}

static int connect_to_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(run.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        err(1, "port %u", run.port);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return fd;
}

/* The reply, with which the tickets have come. */
static void ask(SSL *ssl)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    char reply[256];
    int size = 0;

    if (SSL_write(ssl, ping, sizeof(ping) - 1) <= 0)
        fail("no request");
    while (size == 0 || reply[size - 1] != '\n') {
        int got = SSL_read(ssl, reply + size, (int)sizeof(reply) - size);

        if (got <= 0)
            fail("no reply");
        size += got;
    }
}

/* Whether it is to be counted. */
static bool come_and_go(struct client *client)
{
    const int fd = connect_to_server();
    SSL *ssl = SSL_new(run.context);
    const bool resumes = client->session != NULL;

    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1)
        fail("SSL_new");
    if (resumes)
        SSL_set_session(ssl, client->session);
    if (SSL_connect(ssl) != 1)
        fail("handshake");
    ask(ssl);
    if (resumes != (SSL_session_reused(ssl) == 1))
        errx(1, "the server does not resume");
    if (run.resumes) {
        SSL_SESSION_free(client->session);
        client->session = SSL_get1_session(ssl);
    }
    SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
    return !run.resumes || resumes;
}

static void sleep_until(uint64_t when_ns)
{
    struct timespec when = {.tv_sec = (time_t)(when_ns / NS_PER_S), .tv_nsec = (long)(when_ns % NS_PER_S)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0) {
    }
}

/* When the next connection is due. */
static uint64_t next_due(void)
{
    const uint64_t number = atomic_fetch_add_explicit(&run.next, 1, memory_order_relaxed);

    if (run.rate == 0)
        return clock_monotonic_ns();
    return run.begin_ns + number / run.rate * NS_PER_S + number % run.rate * NS_PER_S / run.rate;
}

static void *client_main(void *user)
{
    struct client *client = user;
    uint64_t due_ns = 0;

    while ((due_ns = next_due()) < run.end_ns) {
        sleep_until(due_ns);
        if (come_and_go(client))
            histogram_add(&client->times, MIN(clock_monotonic_ns() - due_ns, HISTOGRAM_MOST));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct histogram *times = mem_alloc_zero(sizeof(*times));
    struct client *clients = NULL;
    unsigned threads = 0;
    double seconds = 0;

    if (argc != 7 || (strcmp(argv[3], "full") != 0 && strcmp(argv[3], "resumed") != 0))
        errx(2, "usage: handshakes PORT FOLDER full|resumed SECONDS RATE THREADS");
    signal(SIGPIPE, SIG_IGN);
    tick_setup();
    run.port = (uint16_t)atoi(argv[1]);
    run.context = make_context(argv[2]);
    run.resumes = strcmp(argv[3], "resumed") == 0;
    run.rate = strtoull(argv[5], NULL, 10);
    threads = (unsigned)atoi(argv[6]);
    clients = mem_alloc_zero(threads * sizeof(*clients));
    run.begin_ns = clock_monotonic_ns();
    run.end_ns = run.begin_ns + (uint64_t)(atof(argv[4]) * (double)NS_PER_S);
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) != 0)
            errx(1, "no thread");
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(clients[i].thread, NULL);
        histogram_merge(times, &clients[i].times);
        SSL_SESSION_free(clients[i].session);
    }
    seconds = (double)(clock_monotonic_ns() - run.begin_ns) / (double)NS_PER_S;
    printf("{\"connections\": %llu, \"rate\": %.1f, \"p50\": %.3f, \"p99\": %.3f}\n",
           (unsigned long long)histogram_count(times), (double)histogram_count(times) / seconds,
           (double)histogram_percentile(times, 50) / 1e6, (double)histogram_percentile(times, 99) / 1e6);
    SSL_CTX_free(run.context);
    mem_free(clients);
    mem_free(times);
    return 0;
}
