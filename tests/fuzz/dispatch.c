/* The whole server with two workers, its main function in a thread of this program, and two clients that send the input
 * at the same time through a unix socket: half each. Properties:
 *  1. every reply is well-formed, in whichever protocol the client chose;
 *  2. both connections end once the clients have said all they had to say: nobody hangs;
 *  3. afterwards a third client finds everything in working order, and an empty keyspace after FLUSHALL.
 * Commands that stop or reconfigure the server, write files, or run for as long as they like are not sent. */
#define main server_main
int server_main(int argc, char **argv);
#include "main.c" /* so that nothing of how it is put together is said twice */
#undef main

#include "base/mem.h"
#include "base/thread.h"
#include "fuzz.h"
#include "net/resp.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CLIENTS = 2, PATIENCE_MS = 9000, READ_BYTES = 65536, INPUT_BYTES_MOST = 16384 };

static char folder[] = "/tmp/keydb-fuzz-XXXXXX";
static char socket_path[sizeof(folder) + 16];
static bool is_started;
static sem_t is_counted;

/* --- the server --- */

static void *run(void *nothing)
{
    static char words[][64] = {"keydb-server",
                               "--port 0",
                               "--unixsocket",
                               "",
                               "--dir",
                               "",
                               "--save \"\"",
                               "--server-threads 2",
                               "--proto-max-bulk-len 1mb",
                               "--client-output-buffer-limit normal 16mb 0 0",
                               "--loglevel warning",
                               "--min-clients-per-thread 0",
                               "--crash-log-enabled no"};
    static char *args[countof(words) + 1];

    (void)nothing;
    assert(thread_self_index() == 0); /* the server's main function is the first one's */
    assert(sem_post(&is_counted) == 0);
    snprintf(words[3], sizeof(words[3]), "%s", socket_path);
    snprintf(words[5], sizeof(words[5]), "%s", folder);
    for (size_t i = 0; i < countof(words); i++)
        args[i] = words[i];
    (void)server_main(countof(words), args);
    return NULL;
}

static void remove_folder(void)
{
    unlink(socket_path);
    rmdir(folder);
}

static void start(void)
{
    pthread_t server_thread;

    assert(mkdtemp(folder) != NULL);
    snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
    atexit(remove_folder);
    signal(SIGPIPE, SIG_IGN);
    assert(sem_init(&is_counted, 0, 0) == 0);
    assert(pthread_create(&server_thread, NULL, run, NULL) == 0);
    while (sem_wait(&is_counted) != 0)
        continue; /* the fuzzer's alarms */
    is_started = true;
}

/* --- commands that are not sent --- */

static bool is_harmless(struct slice stream)
{
    static const struct resp_limits limits = {.bulk_max_bytes = 1 << 20, .authenticated = true};
    static const char *const kept_back[] = {"config",       "shutdown", "debug", "acl",      "save",      "bgsave",
                                            "bgrewriteaof", "migrate",  "eval",  "evalsha",  "eval_ro",   "evalsha_ro",
                                            "script",       "function", "fcall", "fcall_ro", "keydb.cron"};
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct resp_command command;
    char *copy = mem_copy(stream.data, stream.size);
    size_t at = 0;
    bool harmless = true;
    enum resp_result result = RESP_EMPTY;

    resp_parser_init(&parser, &limits, &scratch);
    while (harmless && at < stream.size && (result == RESP_COMMAND || result == RESP_EMPTY)) {
        result = resp_parse(&parser, copy + at, stream.size - at, &command);
        if (result == RESP_COMMAND) {
            for (size_t i = 0; i < countof(kept_back); i++)
                harmless = harmless && !slice_equal_text_nocase(command.args[0], kept_back[i]);
            resp_command_fini(&command);
        }
        at += result == RESP_COMMAND || result == RESP_EMPTY ? command.consumed : 0;
        resp_scratch_reset(&scratch);
    }
    resp_parser_fini(&parser);
    resp_scratch_fini(&scratch);
    mem_free(copy);
    return harmless;
}

/* --- clients --- */

struct caller {
    int fd; /* -1: it is over */
    struct slice unsent;
    struct buffer replies; /* incomplete ones */
    struct resp_reply_parser parser;
};

static int connect_to_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    assert(fd >= 0);
    for (int tries = 0; connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0; tries++) {
        assert(tries < PATIENCE_MS); /* it is about to start */
        usleep(1000);
    }
    return fd;
}

static void peer_open(struct caller *peer, struct slice stream)
{
    *peer = (struct caller){.fd = connect_to_server(), .unsent = stream};
    resp_reply_parser_init(&peer->parser);
}

static void peer_close(struct caller *peer)
{
    close(peer->fd);
    peer->fd = -1;
    resp_reply_parser_fini(&peer->parser);
    buffer_fini(&peer->replies);
}

static void peer_send(struct caller *peer)
{
    ssize_t sent = send(peer->fd, peer->unsent.data, peer->unsent.size, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent > 0)
        peer->unsent = slice_skip(peer->unsent, (size_t)sent);
    else if (sent < 0 && errno != EAGAIN)
        peer->unsent.size = 0; /* the server has disconnected: its output is still to be read */
    if (peer->unsent.size == 0)
        shutdown(peer->fd, SHUT_WR);
}

static void peer_read(struct caller *peer)
{
    ssize_t got = recv(peer->fd, buffer_reserve(&peer->replies, READ_BYTES), READ_BYTES, MSG_DONTWAIT);
    enum resp_reply_result result;

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        peer_close(peer);
        return;
    }
    peer->replies.size += (size_t)got;
    do {
        struct resp_reply *reply = NULL;
        size_t consumed = 0;

        result = resp_reply_parse(&peer->parser, peer->replies.data, peer->replies.size, &consumed, &reply);
        if (result == RESP_REPLY_ERROR) {
            fprintf(stderr, "%s\n", peer->parser.error);
            assert(!"a reply that cannot be read");
        }
        buffer_consume(&peer->replies, consumed);
        resp_reply_destroy(&reply);
    } while (result == RESP_REPLY_READY && peer->replies.size != 0);
}

/* The fuzzer's own alarms interrupt. */
static int poll_again(struct pollfd *polls, nfds_t count)
{
    int ready;

    do {
        ready = poll(polls, count, PATIENCE_MS);
    } while (ready < 0 && errno == EINTR);
    return ready;
}

static void talk(struct caller *peers)
{
    for (;;) {
        struct pollfd polls[CLIENTS];
        bool open = false;

        for (int i = 0; i < CLIENTS; i++) {
            polls[i] = (struct pollfd){.fd = peers[i].fd, .events = POLLIN};
            if (peers[i].unsent.size != 0)
                polls[i].events |= POLLOUT;
            open = open || peers[i].fd >= 0;
        }
        if (!open)
            return;
        assert(poll_again(polls, CLIENTS) > 0); /* else somebody hangs */
        for (int i = 0; i < CLIENTS; i++) {
            if ((polls[i].revents & POLLOUT) != 0 && peers[i].unsent.size != 0)
                peer_send(&peers[i]);
            if ((polls[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
                peer_read(&peers[i]);
        }
    }
}

/* Everything works, and is empty again. */
static void check_health(void)
{
    static const char request[] = "FLUSHALL\r\nDBSIZE\r\nPING\r\n", wanted[] = "+OK\r\n:0\r\n+PONG\r\n";
    int fd = connect_to_server();
    char reply[sizeof(wanted)];
    size_t size = 0;

    assert(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == sizeof(request) - 1);
    while (size < sizeof(wanted) - 1) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        ssize_t got;

        assert(poll_again(&readable, 1) == 1);
        got = recv(fd, reply + size, sizeof(wanted) - 1 - size, 0);
        assert(got > 0);
        size += (size_t)got;
    }
    assert(memcmp(reply, wanted, size) == 0);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size), first;
    size_t share = fuzz_take_byte(&input);
    const char *end;
    struct caller peers[CLIENTS];

    if (!is_started)
        start();
    if (input.size == 0 || input.size > INPUT_BYTES_MOST)
        return 0;
    first = slice_make(input.data, input.size * share / 255);
    end = first.size == input.size ? NULL : memchr(input.data + first.size, '\n', input.size - first.size);
    first.size = end == NULL ? input.size : (size_t)(end + 1 - input.data);
    input = slice_skip(input, first.size);
    if (!is_harmless(first) || !is_harmless(input))
        return 0;
    peer_open(&peers[0], first);
    peer_open(&peers[1], input);
    if (input.size == 0)
        shutdown(peers[1].fd, SHUT_WR);
    talk(peers);
    check_health();
    return 0;
}
