#include "server/run/migrate_link.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/spinlock.h"
#include "base/status.h"
#include "server/config/source_address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINKS_MOST = 64, IDLE_MS = 10000, LINE_MOST_BYTES = 65536, RECEIVE_BYTES = 16384 };

struct link {
    struct list_node node; /* the most recently used one is last */
    char *host, *port;
    int fd;
    int64_t db; /* the database selected there */
    uint64_t used_ms;
    struct buffer in;
    bool is_fresh; /* opened for this order */
};

struct migrate_links {
    struct list list;
    unsigned count;     /* at most LINKS_MOST */
    uint32_t thread_id; /* const: whose they are */
};

static int interrupt_fd = -1;       /* global; set before the first wait. Readable: all waiting ends */
static _Atomic unsigned kept_count; /* atomic, relaxed: for INFO */

/* --------------------------------------------------------------------------------------------------------- links -- */

void migrate_links_setup(void)
{
    assert(interrupt_fd < 0);
    interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void migrate_links_interrupt(void)
{
    const uint64_t one = 1;

    if (interrupt_fd >= 0)
        status_ignore(write(interrupt_fd, &one, sizeof(one)), "fails only when it is readable already");
}

void migrate_links_teardown(void)
{
    if (interrupt_fd >= 0)
        close(interrupt_fd);
    interrupt_fd = -1;
}

struct migrate_links *migrate_links_create(void)
{
    struct migrate_links *links = mem_alloc_zero(sizeof(*links));

    list_init(&links->list);
    links->thread_id = spinlock_self_id();
    return links;
}

static void links_assert_owned(const struct migrate_links *links)
{
    assert(links->thread_id == spinlock_self_id());
}

static void link_destroy(struct link *link)
{
    close(link->fd);
    buffer_fini(&link->in);
    mem_free(link->host);
    mem_free(link->port);
    mem_free(link);
}

static void drop(struct migrate_links *links, struct link *link)
{
    if (list_node_is_linked(&link->node)) {
        assert(links->count != 0);
        list_remove(&link->node);
        links->count--;
        atomic_store_explicit(&kept_count, links->count, memory_order_relaxed);
    }
    link_destroy(link);
}

void migrate_links_destroy(struct migrate_links **links)
{
    struct migrate_links *gone = *links;

    if (gone == NULL)
        return;
    links_assert_owned(gone);
    LIST_FOREACH_SAFE(node, &gone->list)
        drop(gone, container_of(node, struct link, node));
    assert(gone->count == 0);
    mem_free(gone);
    *links = NULL;
}

void migrate_links_close_idle(struct migrate_links *links)
{
    uint64_t now_ms = clock_monotonic_ms();

    links_assert_owned(links);
    LIST_FOREACH_SAFE(node, &links->list) {
        struct link *link = container_of(node, struct link, node);

        if (now_ms - link->used_ms > IDLE_MS)
            drop(links, link);
    }
}

unsigned migrate_links_count(void)
{
    return atomic_load_explicit(&kept_count, memory_order_relaxed);
}

/* ---------------------------------------------------------------------------------------------------- the socket -- */

/* False: not in time, or the connection is gone; errno. */
static bool wait_for(int fd, short events, int timeout_ms)
{
    struct pollfd both[] = {{.fd = fd, .events = events}, {.fd = interrupt_fd, .events = POLLIN}};
    int result;

    do {
        result = poll(both, 2, timeout_ms);
    } while (result < 0 && errno == EINTR);
    if (result == 0 || (result > 0 && both[1].revents != 0))
        errno = ETIMEDOUT;
    return result > 0 && both[1].revents == 0;
}

static int connect_to(const struct addrinfo *address, int timeout_ms)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, error = 0;
    socklen_t size = sizeof(error);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    source_address_bind(fd, address->ai_family);
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    if (errno == EINPROGRESS && wait_for(fd, POLLOUT, timeout_ms) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
        return fd;
    if (error != 0)
        errno = error;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* A port that is not a number counts as port 0, which never answers. */
static struct link *link_open(struct migrate_order *order)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses = NULL;
    struct link *link;
    char port[16];
    int fd = -1;

    (void)snprintf(port, sizeof(port), "%u", (unsigned)atoi(order->port) & 0xffff);
    if (getaddrinfo(order->host, port, &hints, &addresses) != 0) {
        order->end = MIGRATE_NO_ADDRESS;
        return NULL;
    }
    for (const struct addrinfo *address = addresses; address != NULL && fd < 0; address = address->ai_next)
        fd = connect_to(address, order->timeout_ms);
    freeaddrinfo(addresses);
    if (fd < 0) {
        order->end = MIGRATE_NOT_WRITTEN;
        return NULL;
    }
    link = mem_alloc_zero(sizeof(*link));
    list_node_init(&link->node);
    link->host = mem_copy(order->host, strlen(order->host) + 1);
    link->port = mem_copy(order->port, strlen(order->port) + 1);
    link->fd = fd;
    link->is_fresh = true;
    return link;
}

static bool send_all(struct link *link, const char *data, size_t size, int timeout_ms)
{
    while (size != 0) {
        ssize_t sent = send(link->fd, data, size, MSG_NOSIGNAL);

        if (sent > 0) {
            data += sent;
            size -= (size_t)sent;
        } else if (sent < 0 && errno != EINTR && (errno != EAGAIN || !wait_for(link->fd, POLLOUT, timeout_ms))) {
            return false;
        }
    }
    return true;
}

/* The next line without its end, valid until the next call. */
static bool read_line(struct link *link, int timeout_ms, size_t *done, struct slice *line)
{
    struct buffer *in = &link->in;

    for (;;) {
        const char *end = in->size > *done ? memchr(in->data + *done, '\n', in->size - *done) : NULL;
        ssize_t got;

        if (end != NULL) {
            size_t size = (size_t)(end - in->data) - *done;

            *line = slice_make(in->data + *done, size != 0 && end[-1] == '\r' ? size - 1 : size);
            *done += size + 1;
            return true;
        }
        if (in->size - *done > LINE_MOST_BYTES) {
            errno = EPROTO;
            return false;
        }
        buffer_consume(in, *done);
        *done = 0;
        got = recv(link->fd, buffer_reserve(in, RECEIVE_BYTES), RECEIVE_BYTES, 0);
        if (got > 0) {
            in->size += (size_t)got;
        } else if (got == 0) {
            errno = ECONNRESET;
            return false;
        } else if (errno != EINTR && (errno != EAGAIN || !wait_for(link->fd, POLLIN, timeout_ms))) {
            return false;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------ an order -- */

void migrate_append_words(struct buffer *buffer, const struct slice *words, uint32_t count)
{
    buffer_printf(buffer, "*%u\r\n", count);
    for (uint32_t i = 0; i < count; i++) {
        buffer_printf(buffer, "$%zu\r\n", words[i].size);
        buffer_append_slice(buffer, words[i]);
        buffer_append(buffer, "\r\n", 2);
    }
}

static bool is_error(struct migrate_order *order, struct slice line)
{
    if (line.size == 0 || line.data[0] != '-')
        return false;
    if (order->error[0] == '\0')
        (void)snprintf(order->error, sizeof(order->error), "%.*s", (int)line.size - 1, line.data + 1);
    return true;
}

/* AUTH and SELECT, answered before anything else is sent: else keys could get into another database. */
static bool prepare(struct link *link, struct migrate_order *order)
{
    char number[NUMBER_I64_SPACE];
    const struct slice select[] = {SLICE("SELECT"), slice_make(number, number_format_i64(number, order->db))};
    const struct slice with_user[] = {SLICE("AUTH"), order->user, order->password};
    const struct slice without[] = {SLICE("AUTH"), order->password};
    unsigned wanted = (order->password.data != NULL) + (link->db != order->db);
    struct buffer words = {0};
    struct slice line;
    size_t done = 0;
    bool good;

    if (wanted == 0)
        return true;
    if (order->password.data != NULL && order->user.data != NULL)
        migrate_append_words(&words, with_user, 3);
    else if (order->password.data != NULL)
        migrate_append_words(&words, without, 2);
    if (link->db != order->db)
        migrate_append_words(&words, select, 2);
    order->end = MIGRATE_NOT_WRITTEN;
    good = send_all(link, words.data, words.size, order->timeout_ms);
    buffer_fini(&words);
    while (good && wanted-- > 0) {
        order->end = MIGRATE_NOT_READ;
        good = read_line(link, order->timeout_ms, &done, &line);
        if (good && is_error(order, line))
            order->end = MIGRATE_REFUSED;
        if (good && order->end == MIGRATE_REFUSED && wanted == 0)
            good = false;
    }
    buffer_consume(&link->in, done);
    if (order->end == MIGRATE_REFUSED)
        return false;
    if (good)
        link->db = order->db;
    return good;
}

static void run_on(struct link *link, struct migrate_order *order)
{
    struct slice line;
    size_t done = 0;

    if (!prepare(link, order))
        return;
    order->end = MIGRATE_NOT_WRITTEN;
    if (!send_all(link, order->commands.data, order->commands.size, order->timeout_ms))
        return;
    order->end = MIGRATE_NOT_READ;
    for (uint32_t i = 0; i < order->count; i++) {
        if (!read_line(link, order->timeout_ms, &done, &line))
            return;
        order->accepted[i] = !is_error(order, line);
    }
    buffer_consume(&link->in, done);
    order->end = MIGRATE_DONE;
}

static struct link *find(struct migrate_links *links, const struct migrate_order *order)
{
    LIST_FOREACH(node, &links->list) {
        struct link *link = container_of(node, struct link, node);

        if (strcmp(link->host, order->host) == 0 && strcmp(link->port, order->port) == 0)
            return link;
    }
    return NULL;
}

/* Where AUTH or SELECT was refused it is not known who we are there: as where it broke, the connection goes. */
static void settle(struct migrate_links *links, struct link *link, const struct migrate_order *order)
{
    if (links == NULL || order->end != MIGRATE_DONE) {
        drop(links, link);
        return;
    }
    if (list_node_is_linked(&link->node)) {
        list_remove(&link->node);
        links->count--;
    } else if (links->count == LINKS_MOST) {
        drop(links, container_of(list_first(&links->list), struct link, node));
    }
    list_push_back(&links->list, &link->node);
    links->count++;
    assert(links->count <= LINKS_MOST);
    link->used_ms = clock_monotonic_ms();
    link->is_fresh = false;
    atomic_store_explicit(&kept_count, links->count, memory_order_relaxed);
}

void migrate_link_run(struct migrate_links *links, struct migrate_order *order)
{
    struct link *link = links != NULL ? find(links, order) : NULL;
    bool again;

    spinlock_assert_may_sleep();
    if (links != NULL)
        links_assert_owned(links);
    assert(order->count != 0);
    do {
        bool was_kept = link != NULL;

        if (link == NULL)
            link = link_open(order);
        if (link == NULL)
            return;
        memset(order->accepted, 0, order->count * sizeof(bool));
        order->error[0] = '\0';
        errno = 0;
        run_on(link, order);
        /* The other server may have closed the connection since its last use. Answered commands are not sent twice. */
        again = was_kept && (order->end == MIGRATE_NOT_WRITTEN || order->end == MIGRATE_NOT_READ) &&
                errno != ETIMEDOUT && !order->accepted[0] && order->error[0] == '\0';
        settle(links, link, order);
        link = NULL;
    } while (again);
}

static uint64_t links_count(void)
{
    return migrate_links_count();
}

const struct info_row migrate_link_info[] = {
    INFO_CALL("migrate_cached_sockets", links_count),
    {0},
};
