#include "net/linger.h"

#include "base/mem.h"
#include "net/loop_priv.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

struct lingerer {
    struct loop_watch watch;
    struct list_node node;
    int64_t due_us;
    size_t left_bytes;
    int fd;
};

static void on_timer(struct loop *loop, struct loop_timer *timer);

/* For the oldest: all wait for the same time, so it is due first. */
static void set_timer(struct loop *loop)
{
    struct lingers *lingers = &loop->lingers;
    struct list_node *first = list_first(&lingers->list);

    if (first == NULL)
        loop_timer_stop(loop, &lingers->timer);
    else if (!loop_timer_is_running(&lingers->timer))
        loop_timer_start(loop, &lingers->timer, container_of(first, struct lingerer, node)->due_us - loop->now_us,
                         on_timer);
}

static void linger_end(struct loop *loop, struct lingerer **handle)
{
    struct lingerer *linger = *handle;

    assert(loop->lingers.count != 0);
    *handle = NULL;
    loop_watch_stop(loop, &linger->watch);
    list_remove(&linger->node);
    loop->lingers.count--;
    close(linger->fd);
    mem_free(linger);
}

/* Discards input. False: lingering is over. */
static bool drain(struct loop *loop, int fd, size_t *left_bytes)
{
    ssize_t got = recv(fd, loop->input, LOOP_INPUT_BYTES, MSG_DONTWAIT);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0 || (size_t)got >= *left_bytes)
        return false;
    *left_bytes -= (size_t)got;
    return true;
}

/* Once a turn for each socket: an endless sender does not delay others. */
static void on_ready(struct loop *loop, struct loop_watch *watch)
{
    struct lingerer *linger = container_of(watch, struct lingerer, watch);

    if (drain(loop, linger->fd, &linger->left_bytes))
        return;
    linger_end(loop, &linger);
    set_timer(loop);
}

static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    struct lingers *lingers = container_of(timer, struct lingers, timer);

    while (!list_is_empty(&lingers->list)) {
        struct lingerer *linger = container_of(list_first(&lingers->list), struct lingerer, node);

        if (linger->due_us > loop->now_us)
            break;
        linger_end(loop, &linger);
    }
    set_timer(loop);
}

void loop_linger(struct loop *loop, int fd)
{
    struct lingers *lingers = &loop->lingers;
    size_t left_bytes = LINGER_BYTES;
    struct lingerer *linger;

    loop_assert_self(loop);
    if (shutdown(fd, SHUT_WR) != 0 || !drain(loop, fd, &left_bytes)) {
        close(fd);
        return;
    }
    linger = mem_alloc(sizeof(*linger));
    *linger = (struct lingerer){.fd = fd, .left_bytes = left_bytes, .due_us = loop->now_us + LINGER_US};
    if (!loop_watch_start(loop, &linger->watch, fd, on_ready)) {
        close(fd);
        mem_free(linger);
        return;
    }
    list_push_back(&lingers->list, &linger->node);
    if (++lingers->count > LINGER_MOST) {
        struct lingerer *oldest = container_of(list_first(&lingers->list), struct lingerer, node);

        linger_end(loop, &oldest);
    }
    set_timer(loop);
}

void lingers_init(struct lingers *lingers)
{
    list_init(&lingers->list);
}

void lingers_fini(struct loop *loop)
{
    loop_assert_self(loop);
    while (!list_is_empty(&loop->lingers.list)) {
        struct lingerer *linger = container_of(list_first(&loop->lingers.list), struct lingerer, node);

        linger_end(loop, &linger);
    }
}
