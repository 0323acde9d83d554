/* Measures how many messages a second a server delivers, with receivers that cost next to nothing.
 *
 *   fanout PORT PID SUBSCRIBERS PIPELINE BYTES SECONDS PUBLISHERS
 *
 * SUBSCRIBERS connections subscribe to one channel. Each of PUBLISHERS threads keeps PIPELINE PUBLISH commands of BYTES
 * in flight, but none gets further ahead of the slowest subscriber than a window. One thread takes the messages off the
 * subscribers' sockets in large pieces, without copying them to user space (MSG_TRUNC): the kernel wakes it once for
 * hundreds of messages. Prints one line of JSON: deliveries a second, and CPU time of process PID, in us a delivery,
 * both measured from the moment when everything runs to the end. Every wait ends after half a minute: then the program
 * fails. */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_MESSAGES = 256, WINDOW_PIECES = 6, PATIENCE_S = 30, WARM_UP_MS = 300 };
enum { RECEIVE_BYTES = 8 << 20 }; /* small packets take ten times their bytes of a socket's room */

static struct sockaddr_in address;
static int subscriber_count, pipeline, payload_bytes;
static int *subscribers;
static size_t message_bytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static uint64_t published, received; /* messages; guarded by lock. received: by the slowest subscriber */
static _Atomic bool over;

static uint64_t clock_us(clockid_t clock)
{
    struct timespec now;

    if (clock_gettime(clock, &now) != 0)
        err(1, "clock");
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int open_connected(int room)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    if (fd < 0)
        err(1, "socket");
    if (room != 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        err(1, "connect");
    return fd;
}

static void say(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t sent = write(fd, text, size);

        if (sent < 0)
            err(1, "write");
        text += sent;
        size -= (size_t)sent;
    }
}

static void open_subscribers(void)
{
    static const char subscribe[] = "*2\r\n$9\r\nSUBSCRIBE\r\n$4\r\nnews\r\n";
    static const char told[] = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
    char reply[sizeof(told) - 1];
    int least = PIECE_MESSAGES * (int)message_bytes;

    subscribers = calloc((size_t)subscriber_count, sizeof(*subscribers));
    for (int i = 0; i < subscriber_count; i++) {
        int fd = subscribers[i] = open_connected(RECEIVE_BYTES);

        say(fd, subscribe, sizeof(subscribe) - 1);
        if (recv(fd, reply, sizeof(reply), MSG_WAITALL) != (ssize_t)sizeof(reply) ||
            memcmp(reply, told, sizeof(reply)) != 0)
            errx(1, "SUBSCRIBE was not answered as it should be");
        if (setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)) != 0)
            err(1, "SO_RCVLOWAT");
    }
}

static void *receive(void *unused)
{
    size_t piece = PIECE_MESSAGES * message_bytes;

    while (!over) {
        for (int i = 0; i < subscriber_count; i++) {
            size_t left = piece;

            while (left > 0) {
                ssize_t size = recv(subscribers[i], NULL, left, MSG_TRUNC | MSG_WAITALL);

                if (over)
                    return unused;
                if (size <= 0)
                    err(1, "a subscriber got nothing for %d s, or was disconnected", PATIENCE_S);
                left -= (size_t)size;
            }
        }
        pthread_mutex_lock(&lock);
        received += PIECE_MESSAGES;
        pthread_cond_broadcast(&moved);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* As many as there is room for in the window, at most a pipeline; waits until there is room. */
static uint64_t room(void)
{
    const uint64_t window = (uint64_t)WINDOW_PIECES * PIECE_MESSAGES;
    uint64_t count = (uint64_t)pipeline;

    pthread_mutex_lock(&lock);
    while (published + count > received + window && !over)
        pthread_cond_wait(&moved, &lock);
    published += count;
    pthread_mutex_unlock(&lock);
    return over ? 0 : count;
}

static void *publish(void *unused)
{
    char *batch = malloc((size_t)pipeline * ((size_t)payload_bytes + 64)), reply[32];
    size_t size = 0, reply_size = (size_t)snprintf(reply, sizeof(reply), ":%d\r\n", subscriber_count);
    char *replies = malloc(reply_size * (size_t)pipeline);
    int fd = open_connected(0);

    for (int i = 0; i < pipeline; i++) {
        size += (size_t)sprintf(batch + size, "*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n$%d\r\n", payload_bytes);
        memset(batch + size, 'v', (size_t)payload_bytes);
        size += (size_t)payload_bytes;
        memcpy(batch + size, "\r\n", 2);
        size += 2;
    }
    while (room() != 0) {
        say(fd, batch, size);
        if (recv(fd, replies, reply_size * (size_t)pipeline, MSG_WAITALL) != (ssize_t)(reply_size * (size_t)pipeline) ||
            memcmp(replies, reply, reply_size) != 0)
            errx(1, "PUBLISH was not answered as it should be");
    }
    close(fd);
    free(batch);
    free(replies);
    return unused;
}

static uint64_t received_now(void)
{
    uint64_t count;

    pthread_mutex_lock(&lock);
    count = received;
    pthread_mutex_unlock(&lock);
    return count;
}

int main(int argc, char **argv)
{
    int seconds, publishers;
    uint64_t began_us, began_cpu_us, began_count, count, took_us, cpu_us;
    clockid_t server_clock;
    pthread_t receiver, publisher[64];

    if (argc != 8)
        errx(2, "usage: fanout PORT PID SUBSCRIBERS PIPELINE BYTES SECONDS PUBLISHERS");
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (clock_getcpuclockid(atoi(argv[2]), &server_clock) != 0)
        errx(1, "no process %s", argv[2]);
    subscriber_count = atoi(argv[3]);
    pipeline = atoi(argv[4]);
    payload_bytes = atoi(argv[5]);
    seconds = atoi(argv[6]);
    publishers = atoi(argv[7]);
    if (subscriber_count < 1 || pipeline < 1 || pipeline > PIECE_MESSAGES || payload_bytes < 1 || seconds < 1 ||
        publishers < 1 || publishers > 64)
        errx(2, "out of range");
    message_bytes = (size_t)snprintf(NULL, 0, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$%d\r\n\r\n", payload_bytes) +
                    (size_t)payload_bytes;
    open_subscribers();
    pthread_create(&receiver, NULL, receive, NULL);
    for (int i = 0; i < publishers; i++)
        pthread_create(&publisher[i], NULL, publish, NULL);
    usleep(WARM_UP_MS * 1000);
    began_us = clock_us(CLOCK_MONOTONIC);
    began_cpu_us = clock_us(server_clock);
    began_count = received_now();
    sleep((unsigned)seconds);
    count = (received_now() - began_count) * (uint64_t)subscriber_count;
    took_us = clock_us(CLOCK_MONOTONIC) - began_us;
    cpu_us = clock_us(server_clock) - began_cpu_us;
    if (count == 0)
        errx(1, "nothing was delivered");
    printf("{\"rate\": %.0f, \"cpu_us\": %.4f}\n", (double)count * 1e6 / (double)took_us,
           (double)cpu_us / (double)count);
    fflush(stdout);
    _exit(0);
}
