/* The cost of the kernel and the network alone: a server that answers every request with the same bytes.
 *
 *   floor PORT get|set BYTES
 *
 * One thread, one epoll instance, one read and one write for each readiness event. It counts the asterisks that begin
 * requests and reads nothing else, so keys and values must not contain any; redis-benchmark's do not. A real server's
 * cost above this, on the same machine in the same minute, is its own. */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)
#define EVENTS_A_TURN 128
#define REPLIES_A_READ (READ_BYTES / 8) /* the shortest request that redis-benchmark sends is longer than this */

static char input[READ_BYTES];
static char *replies; /* the constant, REPLIES_A_READ times in a row */
static size_t reply_bytes;

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

static void prepare_replies(const char *kind, size_t value_bytes)
{
    size_t room = value_bytes + 32;
    char *one = malloc(room);

    if (one == NULL)
        err(1, "reply");
    if (strcmp(kind, "set") == 0) {
        reply_bytes = (size_t)snprintf(one, room, "+OK\r\n");
    } else {
        size_t head = (size_t)snprintf(one, room, "$%zu\r\n", value_bytes);

        memset(one + head, 'x', value_bytes);
        memcpy(one + head + value_bytes, "\r\n", 2);
        reply_bytes = head + value_bytes + 2;
    }
    replies = malloc(reply_bytes * REPLIES_A_READ);
    if (replies == NULL)
        err(1, "replies");
    for (size_t i = 0; i < REPLIES_A_READ; i++)
        memcpy(replies + i * reply_bytes, one, reply_bytes);
    free(one);
}

static size_t count_requests(size_t bytes)
{
    const char *end = input + bytes;
    size_t count = 0;

    for (const char *at = input; (at = memchr(at, '*', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

/* False when the connection is over. */
static int answer(int fd)
{
    ssize_t received = read(fd, input, sizeof input);
    size_t left;
    const char *from = replies;

    if (received <= 0)
        return 0;
    left = count_requests((size_t)received) * reply_bytes;
    while (left > 0) {
        ssize_t written = write(fd, from, left);

        if (written <= 0)
            return 0;
        left -= (size_t)written;
        from += written;
    }
    return 1;
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        err(1, "epoll_ctl");
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS_A_TURN];
    int listener, epoll, yes = 1;

    if (argc != 4)
        errx(2, "usage: floor PORT get|set BYTES");
    prepare_replies(argv[2], (size_t)atol(argv[3]));
    listener = listen_on(atoi(argv[1]));
    epoll = epoll_create1(0);
    watch(epoll, listener);
    for (;;) {
        int ready = epoll_wait(epoll, events, EVENTS_A_TURN, -1);

        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;

            if (fd == listener) {
                fd = accept(listener, NULL, NULL);
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
                watch(epoll, fd);
            } else if (!answer(fd)) {
                close(fd);
            }
        }
    }
}
