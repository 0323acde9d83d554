/* The effect of a storm of new connections on connected clients.
 *
 *   storm PORT NEWCOMERS BUSY WINDOW
 *
 * BUSY connections send GET in a closed loop. After a second NEWCOMERS connections are opened as fast as they are
 * answered, at most WINDOW at a time: each sends PING, gets its reply and stays. Meanwhile INFO and CLIENT LIST are
 * sent in turn, every 100 ms. Prints one line of JSON: latencies in us before and during the storm.
 *
 * Three threads, so that neither the storm nor a long CLIENT LIST delays the clocks of the busy ones more than the
 * processors do. Every wait ends after half a minute: then the program fails. */
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
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CALM, STORM, OVER, PHASES = OVER };
enum { EVENTS_MOST = 256, SAMPLES_MOST = 8 << 20, PATIENCE_S = 30, WATCH_US = 100 * 1000 };

static const char get[] = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
static const char set[] = "SET k 0123456789012345678901234567890123456789012345678901234567890123\r\n";
static struct sockaddr_in address;
static int newcomers, busy, window;
static _Atomic int phase;         /* CALM, STORM, OVER */
static uint32_t *samples[PHASES]; /* us; the busy thread's */
static size_t sample_count[PHASES];
static uint32_t longest_us[PHASES];
static uint64_t storm_us; /* how long it took; the storming thread's, like the next two */
static int refused;
static uint32_t *welcomes;        /* us from connect to the answer */
static uint64_t watch_longest_us; /* the watching thread's, like the next two */
static unsigned watch_count;
static unsigned most_listed; /* lines of the longest CLIENT LIST */

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int open_socket(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    int one = 1;

    if (fd < 0)
        err(1, "socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static int open_connected(void)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = open_socket(0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        err(1, "connect");
    return fd;
}

static void say(int fd, const char *text, size_t size)
{
    if (write(fd, text, size) != (ssize_t)size)
        err(1, "write");
}

/* ----------------------------------------------------------------------------------------------------- the busy -- */

static void keep(int during, uint64_t us)
{
    if (during >= PHASES)
        return;
    if (us > longest_us[during])
        longest_us[during] = (uint32_t)us;
    if (sample_count[during] < SAMPLES_MOST)
        samples[during][sample_count[during]++] = (uint32_t)us;
}

static void *be_busy(void *unused)
{
    int *fds = calloc((size_t)busy, sizeof(*fds));
    uint64_t *asked_us = calloc((size_t)busy, sizeof(*asked_us));
    int epoll = epoll_create1(0);
    char reply[4096];

    for (int i = 0; i < busy; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

        fds[i] = open_connected();
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event);
        asked_us[i] = now_us();
        say(fds[i], get, sizeof(get) - 1);
    }
    while (phase != OVER) {
        struct epoll_event events[EVENTS_MOST];
        int count = epoll_wait(epoll, events, EVENTS_MOST, PATIENCE_S * 1000);

        if (count == 0)
            errx(1, "the busy clients got no answer for %d s", PATIENCE_S);
        for (int i = 0; i < count; i++) {
            uint32_t which = events[i].data.u32;
            uint64_t now;

            if (read(fds[which], reply, sizeof(reply)) <= 0)
                errx(1, "a busy client was disconnected");
            now = now_us();
            keep(phase, now - asked_us[which]);
            asked_us[which] = now;
            say(fds[which], get, sizeof(get) - 1);
        }
    }
    return unused;
}

/* ---------------------------------------------------------------------------------------------------- the storm -- */

struct newcomer {
    int fd;
    bool has_asked;
    uint64_t began_us;
};

static void arrive(struct newcomer *newcomer, int epoll)
{
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = newcomer};

    newcomer->fd = open_socket(SOCK_NONBLOCK);
    newcomer->began_us = now_us();
    if (connect(newcomer->fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno != EINPROGRESS)
        err(1, "connect");
    epoll_ctl(epoll, EPOLL_CTL_ADD, newcomer->fd, &event);
}

/* True: that one is through, or was turned away. */
static bool go_on(struct newcomer *newcomer, int epoll, int *welcome_count)
{
    char reply[512];
    ssize_t size;

    if (!newcomer->has_asked) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = newcomer};

        newcomer->has_asked = true;
        epoll_ctl(epoll, EPOLL_CTL_MOD, newcomer->fd, &event);
        if (write(newcomer->fd, "PING\r\n", 6) == 6)
            return false;
        refused++;
    } else {
        size = read(newcomer->fd, reply, sizeof(reply));
        if (size > 0 && reply[0] == '+')
            welcomes[(*welcome_count)++] = (uint32_t)(now_us() - newcomer->began_us);
        else
            refused++;
    }
    epoll_ctl(epoll, EPOLL_CTL_DEL, newcomer->fd, NULL);
    return true;
}

static void storm(void)
{
    struct newcomer *all = calloc((size_t)newcomers, sizeof(*all));
    int epoll = epoll_create1(0), begun = 0, done = 0, welcome_count = 0;
    uint64_t began_us = now_us();

    while (done < newcomers) {
        struct epoll_event events[EVENTS_MOST];
        int count;

        while (begun < newcomers && begun - done < window)
            arrive(&all[begun++], epoll);
        count = epoll_wait(epoll, events, EVENTS_MOST, PATIENCE_S * 1000);
        if (count == 0)
            errx(1, "newcomers got no answer for %d s", PATIENCE_S);
        for (int i = 0; i < count; i++)
            done += go_on(events[i].data.ptr, epoll, &welcome_count);
    }
    storm_us = now_us() - began_us;
    newcomers = welcome_count;
}

/* --------------------------------------------------------------------------------------------------- the watcher -- */

/* Reads one bulk; gives the number of its lines. */
static unsigned read_bulk(int fd)
{
    static char buffer[1 << 20];
    ssize_t size = read(fd, buffer, sizeof(buffer));
    unsigned lines = 0;
    long long rest;
    char *body;

    if (size <= 0 || buffer[0] != '$' || (body = memchr(buffer, '\n', (size_t)size)) == NULL)
        errx(1, "the watcher got no answer");
    rest = strtoll(buffer + 1, NULL, 10) + 2 + (body + 1 - buffer);
    for (;;) {
        for (ssize_t i = 0; i < size; i++)
            lines += buffer[i] == '\n';
        rest -= size;
        if (rest <= 0)
            return lines - 2; /* without the lines of the head and the end */
        size = read(fd, buffer, sizeof(buffer));
        if (size <= 0)
            errx(1, "the watcher got half an answer");
    }
}

static void *watch(void *unused)
{
    int fd = open_connected();

    while (phase != OVER) {
        bool is_list = watch_count++ % 2 == 0;
        uint64_t began_us = now_us(), took_us;
        unsigned lines;

        say(fd, is_list ? "CLIENT LIST\r\n" : "INFO\r\n", is_list ? 13 : 6);
        lines = read_bulk(fd);
        took_us = now_us() - began_us;
        if (is_list && lines > most_listed)
            most_listed = lines;
        if (took_us > watch_longest_us)
            watch_longest_us = took_us;
        usleep(WATCH_US);
    }
    return unused;
}

/* ------------------------------------------------------------------------------------------------------- figures -- */

static int compare(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;

    return (one > two) - (one < two);
}

static void print_latencies(const char *name, uint32_t *us, size_t count)
{
    if (count == 0)
        errx(1, "nothing was measured: %s", name);
    qsort(us, count, sizeof(*us), compare);
    printf("\"%s\": {\"count\": %zu, \"p50\": %u, \"p99\": %u, \"p99.9\": %u, \"most\": %u}, ", name, count,
           us[count / 2], us[count * 99 / 100], us[count * 999 / 1000], us[count - 1]);
}

int main(int argc, char **argv)
{
    pthread_t busy_thread, watch_thread;
    struct rlimit limit;
    int one_key;

    if (argc != 5)
        errx(2, "storm PORT NEWCOMERS BUSY WINDOW");
    address = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)atoi(argv[1])),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    newcomers = atoi(argv[2]);
    busy = atoi(argv[3]);
    window = atoi(argv[4]);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (newcomers < 1 || busy < 1 || window < 1 || limit.rlim_max < (rlim_t)newcomers + (rlim_t)busy + 16)
        errx(2, "%d connections: only %llu descriptors may be open", newcomers, (unsigned long long)limit.rlim_max);
    for (int i = 0; i < PHASES; i++)
        samples[i] = malloc(SAMPLES_MOST * sizeof(uint32_t));
    welcomes = calloc((size_t)newcomers, sizeof(*welcomes));
    one_key = open_connected();
    say(one_key, set, sizeof(set) - 1);
    pthread_create(&busy_thread, NULL, be_busy, NULL);
    pthread_create(&watch_thread, NULL, watch, NULL);
    sleep(1);
    phase = STORM;
    storm();
    phase = OVER;
    pthread_join(busy_thread, NULL);
    pthread_join(watch_thread, NULL);
    printf("{");
    print_latencies("calm", samples[CALM], sample_count[CALM]);
    print_latencies("storm", samples[STORM], sample_count[STORM]);
    print_latencies("welcome", welcomes, (size_t)newcomers);
    printf("\"storm_ms\": %llu, \"refused\": %d, \"watched\": %u, \"watch_longest_us\": %llu, \"listed\": %u}\n",
           (unsigned long long)storm_us / 1000, refused, watch_count, (unsigned long long)watch_longest_us,
           most_listed);
    return 0;
}
