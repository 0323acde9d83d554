#include "net/listener.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/loop_priv.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* There is one socket for each address, and all loops watch it. A connection wakes a waiting loop, so a loop that is
 * busy for long delays no connection. (With a socket for each loop and SO_REUSEPORT, the kernel would choose a loop
 * before any loop accepts, possibly a busy one.)
 *
 * A socket is bound without SO_REUSEPORT, which fails if any process has the port, sharing or not. Only then it is
 * marked as sharing. A group that `joins` may share a port with other groups of this server only: while one of those is
 * open no other process can get the port.
 *
 * When the process is out of descriptors a pending connection cannot be accepted, and the socket stays ready: accepting
 * stops for a moment instead of spinning; a timer resumes it. */

enum { ACCEPTS_MAX = 64, ACCEPT_PAUSE_US = 100 * 1000, PATIENCE_STEP_US = 2000 };

static _Atomic uint8_t groups_of_port[65536]; /* atomic: relaxed; open TCP groups of this process */

struct share_watch {
    struct loop_watch watch;
    struct share *share;
};

struct share { /* of one loop; owner: that loop's thread */
    struct listener_group *group;
    struct loop *loop;           /* NULL: not attached */
    struct share_watch *watches; /* one a socket */
    struct loop_timer pause;
    listener_accept_fn *on_accept;
    void *user;
};

struct listener_group {
    enum listener_kind kind; /* const, like all here, after open */
    int port;
    int counted_port; /* in groups_of_port; 0: a unix socket, -1: it never opened */
    unsigned loop_count;
    struct {
        int *items;
        size_t count, capacity;
    } fds; /* bound so far, one an address */
    char *path;
    struct share *shares; /* loop_count */
};

/* ----------------------------------------------------------------------------------------------- binding -- */

static const char *kind_name(enum listener_kind kind)
{
    static const char *const names[] = {[LISTENER_TCP] = "TCP", [LISTENER_TLS] = "TLS", [LISTENER_UNIX] = "unix"};

    return names[kind];
}

/* "*" and "-::*" are the default of `bind`; the latter is optional. */
struct wanted {
    const char *host; /* NULL: any */
    int family;
    bool optional;
};

static struct wanted address_wanted(const char *address)
{
    struct wanted wanted = {.host = address, .family = AF_UNSPEC};

    if (address[0] == '-') {
        wanted.optional = true;
        wanted.host = ++address;
    }
    if (strcmp(address, "*") == 0) {
        wanted.host = NULL;
        wanted.family = AF_INET;
    } else if (strcmp(address, "::*") == 0) {
        wanted.host = NULL;
        wanted.family = AF_INET6;
    }
    return wanted;
}

static bool set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/* One socket; *step names what failed. */
static int bind_one(const struct addrinfo *to, int mark, bool join, const char **step)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0;

    *step = "socket";
    if (fd < 0)
        return -1;
    *step = "setsockopt";
    if (!set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) || (join && !set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1)) ||
        (to->ai_family == AF_INET6 && !set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) ||
        (mark != 0 && !set_option(fd, SOL_SOCKET, SO_MARK, mark)))
        goto fail;
    *step = "bind";
    if (bind(fd, to->ai_addr, to->ai_addrlen) != 0)
        goto fail;
    *step = "setsockopt";
    if (!join && !set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1))
        goto fail;
    return fd;
fail:
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int bound_port(int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);

    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return 0;
    if (address.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)&address)->sin6_port);
    return ntohs(((const struct sockaddr_in *)(const void *)&address)->sin_port);
}

static void set_port(struct sockaddr *address, int port)
{
    if (address->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)(void *)address)->sin_port = htons((uint16_t)port);
}

static bool is_absent(int error, bool optional)
{
    return (optional && error == EADDRNOTAVAIL) || error == ENOPROTOOPT || error == EPROTONOSUPPORT ||
           error == ESOCKTNOSUPPORT || error == EPFNOSUPPORT || error == EAFNOSUPPORT;
}

static int bind_address(struct listener_group *group, const struct listener_options *options, struct addrinfo *to,
                        const char **step)
{
    bool is_ours = options->joins && group->port != 0 &&
                   atomic_load_explicit(&groups_of_port[group->port & 65535], memory_order_relaxed) != 0;
    int fd = -1;

    if (group->port != 0)
        set_port(to->ai_addr, group->port);
    fd = bind_one(to, options->socket_mark, is_ours, step);
    if (fd >= 0 && group->port == 0) /* the system chose: all other addresses take the same */
        group->port = bound_port(fd);
    return fd;
}

static int bind_patiently(struct listener_group *group, const struct listener_options *options, struct addrinfo *to,
                          const char **step)
{
    const uint64_t end_ms = clock_monotonic_ms() + options->patience_ms;
    int fd;

    while ((fd = bind_address(group, options, to, step)) < 0 && errno == EADDRINUSE) {
        if (clock_monotonic_ms() >= end_ms) {
            errno = EADDRINUSE;
            break;
        }
        (void)usleep(PATIENCE_STEP_US);
    }
    return fd;
}

/* False: `error` is set. True: the socket was added, or the address is not to be had and that is fine. */
static bool open_address(struct listener_group *group, const struct listener_options *options, const char *address,
                         char error[LISTENER_ERROR_BYTES])
{
    struct wanted wanted = address_wanted(address);
    struct addrinfo hints = {.ai_family = wanted.family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    const char *step = NULL;
    const char *shown = address[0] == '-' ? address + 1 : address;
    char service[16];
    int failed = 0, fd = -1;

    snprintf(service, sizeof(service), "%d", options->port);
    failed = getaddrinfo(wanted.host, service, &hints, &found);
    if (failed != 0) {
        snprintf(error, LISTENER_ERROR_BYTES, "Could not create server %s listening socket %s:%d: %s",
                 kind_name(group->kind), shown, options->port, gai_strerror(failed));
        return wanted.optional;
    }
    fd = bind_patiently(group, options, found, &step);
    if (fd >= 0) {
        *ARRAY_PUSH(&group->fds) = fd;
    } else {
        failed = errno;
        snprintf(error, LISTENER_ERROR_BYTES, "Could not create server %s listening socket %s:%d: %s: %s",
                 kind_name(group->kind), shown, options->port, step, strerror(failed));
        if (is_absent(failed, wanted.optional)) {
            log_warning("Warning: %s", error);
            failed = 0;
        }
    }
    freeaddrinfo(found);
    return failed == 0;
}

static bool open_tcp(struct listener_group *group, const struct listener_options *options,
                     char error[LISTENER_ERROR_BYTES])
{
    error[0] = '\0';
    for (size_t i = 0; i < options->address_count; i++)
        if (!open_address(group, options, options->addresses[i], error))
            return false;
    if (group->fds.count == 0) {
        if (error[0] == '\0')
            snprintf(error, LISTENER_ERROR_BYTES, "Could not create server %s listening socket: no address",
                     kind_name(group->kind));
        return false;
    }
    for (size_t i = 0; i < group->fds.count; i++)
        if (listen(group->fds.items[i], options->backlog) != 0) {
            snprintf(error, LISTENER_ERROR_BYTES, "Could not create server %s listening socket *:%d: listen: %s",
                     kind_name(group->kind), group->port, strerror(errno));
            return false;
        }
    return true;
}

static bool open_unix(struct listener_group *group, const struct listener_options *options,
                      char error[LISTENER_ERROR_BYTES])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *step = "path too long";
    int fd = -1;

    errno = ENAMETOOLONG;
    if (strlen(options->path) >= sizeof(address.sun_path))
        goto fail;
    memcpy(address.sun_path, options->path, strlen(options->path) + 1);
    unlink(options->path);
    step = "socket";
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        goto fail;
    step = "bind";
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        goto fail;
    group->path = mem_copy_text(options->path);
    step = "chmod";
    if (options->permissions != 0 && chmod(options->path, (mode_t)options->permissions) != 0)
        goto fail;
    step = "listen";
    if (listen(fd, options->backlog) != 0)
        goto fail;
    *ARRAY_PUSH(&group->fds) = fd;
    return true;
fail:
    snprintf(error, LISTENER_ERROR_BYTES, "Failed opening Unix socket: %s: %s", step, strerror(errno));
    if (fd >= 0)
        close(fd);
    return false;
}

bool listener_group_open(struct listener_group **result, const struct listener_options *options,
                         char error[LISTENER_ERROR_BYTES])
{
    struct listener_group *group = mem_alloc_zero(sizeof(*group));

    assert(options->loop_count > 0);
    group->kind = options->kind;
    group->port = options->port;
    group->loop_count = options->loop_count;
    group->shares = mem_alloc_zero(options->loop_count * sizeof(*group->shares));
    *result = group;
    if (options->kind == LISTENER_UNIX ? open_unix(group, options, error) : open_tcp(group, options, error)) {
        group->counted_port = options->kind == LISTENER_UNIX ? 0 : group->port & 65535;
        atomic_fetch_add_explicit(&groups_of_port[group->counted_port], 1, memory_order_relaxed);
        return true;
    }
    group->counted_port = -1;
    listener_group_close(result);
    return false;
}

void listener_group_stop(struct listener_group *group)
{
    for (size_t i = 0; i < group->fds.count; i++)
        shutdown(group->fds.items[i], SHUT_RDWR);
}

void listener_group_close(struct listener_group **handle)
{
    struct listener_group *group = *handle;

    *handle = NULL;
    if (group == NULL)
        return;
    for (unsigned i = 0; i < group->loop_count; i++)
        assert(group->shares[i].loop == NULL);
    for (size_t i = 0; i < group->fds.count; i++)
        close(group->fds.items[i]);
    if (group->counted_port >= 0)
        atomic_fetch_sub_explicit(&groups_of_port[group->counted_port], 1, memory_order_relaxed);
    if (group->path != NULL)
        unlink(group->path);
    mem_free(group->path);
    ARRAY_FINI(&group->fds);
    mem_free(group->shares);
    mem_free(group);
}

enum listener_kind listener_group_kind(const struct listener_group *group)
{
    return group->kind;
}

int listener_group_port(const struct listener_group *group)
{
    return group->port;
}

/* ---------------------------------------------------------------------------------------------- accepting -- */

static void on_ready(struct loop *loop, struct loop_watch *watch);

static bool share_listen(struct share *share)
{
    for (size_t i = 0; i < share->group->fds.count; i++)
        if (!loop_watch_shared(share->loop, &share->watches[i].watch, share->group->fds.items[i], on_ready)) {
            while (i-- > 0)
                loop_watch_stop(share->loop, &share->watches[i].watch);
            return false;
        }
    return true;
}

static void share_silence(struct share *share)
{
    loop_assert_self(share->loop);
    for (size_t i = 0; i < share->group->fds.count; i++)
        loop_watch_stop(share->loop, &share->watches[i].watch);
}

static void on_pause_over(struct loop *loop, struct loop_timer *timer)
{
    struct share *share = container_of(timer, struct share, pause);

    if (!share_listen(share))
        loop_timer_start(loop, timer, ACCEPT_PAUSE_US, on_pause_over);
}

static bool is_lasting(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void share_accept(struct share *share, int listener_fd)
{
    for (int i = 0; i < ACCEPTS_MAX && share->loop != NULL; i++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof(peer);
        int one = 1;
        int fd = accept4(listener_fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            if (is_lasting(errno)) {
                log_warning("Accepting client connection: %s", strerror(errno));
                share_silence(share);
                loop_timer_start(share->loop, &share->pause, ACCEPT_PAUSE_US, on_pause_over);
                return;
            }
            if (errno == EAGAIN)
                return;
            continue; /* the connection is gone already */
        }
        if (share->group->kind != LISTENER_UNIX)
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        share->loop->stats.accepted++;
        share->on_accept(share->loop, fd, &peer, size, share->group->kind, share->user);
    }
}

static void on_ready(struct loop *loop, struct loop_watch *watch)
{
    struct share *share = container_of(watch, struct share_watch, watch)->share;

    assert(share->loop == loop);
    share_accept(share, watch->fd);
}

bool listener_group_attach(struct listener_group *group, struct loop *loop, unsigned loop_index,
                           listener_accept_fn *on_accept, void *user)
{
    struct share *share = &group->shares[loop_index];

    loop_assert_self(loop);
    assert(loop_index < group->loop_count);
    assert(share->loop == NULL);
    *share = (struct share){.group = group, .loop = loop, .on_accept = on_accept, .user = user};
    share->watches = mem_alloc_zero(group->fds.count * sizeof(*share->watches));
    for (size_t i = 0; i < group->fds.count; i++)
        share->watches[i].share = share;
    if (share_listen(share))
        return true;
    mem_free(share->watches);
    *share = (struct share){0};
    return false;
}

void listener_group_detach(struct listener_group *group, unsigned loop_index)
{
    struct share *share = &group->shares[loop_index];

    assert(loop_index < group->loop_count);
    if (share->loop == NULL)
        return;
    share_silence(share);
    loop_timer_stop(share->loop, &share->pause);
    mem_free(share->watches);
    *share = (struct share){0};
}
