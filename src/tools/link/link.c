#include "tools/link/link.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "tools/link/link_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Input is a buffer of which the first `taken` bytes were parsed; it is moved together when half of it was, so a large
 * pipeline is not moved for each reply. */

enum { READ_BYTES = LINK_TAKE_BYTES, KEEPALIVE_S = 15 };

struct link {
    int socket; /* -1: closed */
    struct link_session *session;
    struct buffer out;
    size_t sent; /* bytes of `out` */
    struct buffer in;
    size_t taken;
    bool ended; /* no more input will come: what is in `in` is all */
    uint64_t received_bytes;
    struct resp_reply_parser parser;
    link_push_fn push;
    void *push_user;
    bool (*interrupted)(void);
    bool has_mask;
    sigset_t mask; /* has_mask */
    bool is_tls_error;
    char error[512];
};

struct link *link_create(void)
{
    struct link *link = mem_alloc_zero(sizeof(*link));

    link->socket = -1;
    resp_reply_parser_init(&link->parser);
    return link;
}

void link_destroy(struct link **handle)
{
    struct link *link = *handle;

    *handle = NULL;
    if (link == NULL)
        return;
    link_close(link);
    mem_free(link);
}

void link_close(struct link *link)
{
    link_session_destroy(&link->session);
    if (link->socket >= 0)
        close(link->socket);
    link->socket = -1;
    link->sent = link->taken = 0;
    link->ended = false;
    buffer_fini(&link->in);
    buffer_fini(&link->out);
    resp_reply_parser_fini(&link->parser);
    resp_reply_parser_init(&link->parser);
}

bool link_is_open(const struct link *link)
{
    return link->socket >= 0;
}

bool link_is_tls_error(const struct link *link)
{
    return link->is_tls_error;
}

const char *link_error(const struct link *link)
{
    return link->error;
}

void link_set_push(struct link *link, link_push_fn push, void *user)
{
    link->push = push;
    link->push_user = user;
}

void link_set_interrupted(struct link *link, bool (*interrupted)(void), const sigset_t *mask)
{
    link->interrupted = interrupted;
    link->has_mask = mask != NULL;
    if (mask != NULL)
        link->mask = *mask;
}

int link_descriptor(const struct link *link)
{
    return link->socket;
}

bool link_has_input(const struct link *link)
{
    return link->in.size > link->taken;
}

uint64_t link_received_bytes(const struct link *link)
{
    return link->received_bytes;
}

/* ----------------------------------------------------------------------------------------------------- failing -- */

static must_check enum status fail(struct link *link, enum status status, const char *why)
{
    if (why != link->error)
        snprintf(link->error, sizeof(link->error), "%s", why);
    if (status != STATUS_TIMEOUT && status != STATUS_INTERRUPTED)
        link_close(link);
    return status;
}

static must_check enum status fail_errno(struct link *link)
{
    return fail(link, STATUS_IO, strerror(errno));
}

static must_check enum status not_open(struct link *link)
{
    return fail(link, STATUS_CLOSED, "not connected");
}

/* ----------------------------------------------------------------------------------------------------- waiting -- */

static uint64_t deadline_of(int limit_ms)
{
    return limit_ms < 0 ? UINT64_MAX : clock_monotonic_ms() + (uint64_t)limit_ms;
}

/* Waits until the socket is ready for one of the events. */
static must_check enum status wait_for(struct link *link, short events, uint64_t deadline_ms, short *ready)
{
    for (;;) {
        struct pollfd one = {.fd = link->socket, .events = events};
        uint64_t now = clock_monotonic_ms();
        struct timespec limit;
        int count;

        if (deadline_ms != UINT64_MAX) {
            uint64_t left = deadline_ms <= now ? 0 : deadline_ms - now;

            limit = (struct timespec){.tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left % 1000) * 1000000};
        }
        count = ppoll(&one, 1, deadline_ms != UINT64_MAX ? &limit : NULL, link->has_mask ? &link->mask : NULL);
        if (count > 0) {
            *ready = one.revents;
            return STATUS_OK;
        }
        if (count == 0 && (deadline_ms != UINT64_MAX && clock_monotonic_ms() >= deadline_ms))
            return fail(link, STATUS_TIMEOUT, strerror(ETIMEDOUT));
        if (count < 0 && errno != EINTR)
            return fail_errno(link);
        if (count < 0 && link->interrupted != NULL && link->interrupted())
            return fail(link, STATUS_INTERRUPTED, strerror(EINTR));
    }
}

/* ------------------------------------------------------------------------------------------------- connecting -- */

static bool make_nonblocking(int socket)
{
    int flags = fcntl(socket, F_GETFL);

    return flags >= 0 && fcntl(socket, F_SETFL, flags | O_NONBLOCK) == 0 && fcntl(socket, F_SETFD, FD_CLOEXEC) == 0;
}

/* Connects link->socket, which is closed again where that fails. */
static must_check enum status connect_to(struct link *link, int family, const struct sockaddr *address, socklen_t size,
                                         uint64_t deadline_ms)
{
    socklen_t error_size = sizeof(int);
    int error = 0;
    short ready;
    enum status status;

    link->socket = socket(family, SOCK_STREAM, 0);
    if (link->socket < 0 || !make_nonblocking(link->socket))
        return fail_errno(link);
    if (connect(link->socket, address, size) == 0)
        return STATUS_OK;
    if (errno != EINPROGRESS)
        return fail_errno(link);
    status = wait_for(link, POLLOUT, deadline_ms, &ready);
    if (status != STATUS_OK) {
        link_close(link);
        return status;
    }
    if (getsockopt(link->socket, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0)
        return fail_errno(link);
    if (error != 0) {
        errno = error;
        return fail_errno(link);
    }
    return STATUS_OK;
}

static must_check enum status connect_unix(struct link *link, const char *path, uint64_t deadline_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return fail(link, STATUS_INVALID, strerror(ENAMETOOLONG));
    memcpy(address.sun_path, path, strlen(path) + 1);
    return connect_to(link, AF_UNIX, (const struct sockaddr *)&address, sizeof(address), deadline_ms);
}

static void tune_tcp(int socket)
{
    const int on = 1, seconds = KEEPALIVE_S, between = KEEPALIVE_S / 3, count = 3;

    status_ignore(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "it is only slower without");
    status_ignore(setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)), "a dead peer is seen later");
    status_ignore(setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds)), "likewise");
    status_ignore(setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof(between)), "likewise");
    status_ignore(setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count)), "likewise");
}

static must_check enum status connect_tcp(struct link *link, const char *host, int port, uint64_t deadline_ms)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    char service[NUMBER_I64_SPACE];
    enum status status = STATUS_NOT_FOUND;
    int error;

    number_format_i64(service, port & 0xffff);
    error = getaddrinfo(host, service, &hints, &addresses);
    if (error != 0)
        return fail(link, STATUS_NOT_FOUND, error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
    for (const struct addrinfo *one = addresses; one != NULL && status != STATUS_OK; one = one->ai_next)
        status = connect_to(link, one->ai_family, one->ai_addr, one->ai_addrlen, deadline_ms);
    freeaddrinfo(addresses);
    if (status == STATUS_OK)
        tune_tcp(link->socket);
    return status;
}

static short events_of(enum link_wish wish)
{
    return wish == LINK_WISH_WRITE ? POLLOUT : POLLIN;
}

static must_check enum status start_tls(struct link *link, const struct link_tls *options, uint64_t deadline_ms)
{
    enum link_wish wish;
    enum status status;
    short ready;

    link->session = link_session_create(options, link->socket, link->error, sizeof(link->error));
    if (link->session == NULL) {
        link_close(link);
        return STATUS_UNSUPPORTED;
    }
    for (;;) {
        status = link_session_shake(link->session, &wish, link->error, sizeof(link->error));
        if (status == STATUS_OK)
            return STATUS_OK;
        if (status == STATUS_AGAIN)
            status = wait_for(link, events_of(wish), deadline_ms, &ready);
        if (status != STATUS_OK) {
            link_close(link);
            return status;
        }
    }
}

enum status link_open(struct link *link, const struct link_target *target)
{
    uint64_t deadline_ms = deadline_of(target->connect_limit_ms > 0 ? target->connect_limit_ms : LINK_FOREVER);
    enum status status;

    link_close(link);
    link->received_bytes = 0;
    link->error[0] = '\0';
    link->is_tls_error = false;
    status = target->socket_path != NULL ? connect_unix(link, target->socket_path, deadline_ms)
                                         : connect_tcp(link, target->host, target->port, deadline_ms);
    if (status == STATUS_OK && target->tls != NULL) {
        status = start_tls(link, target->tls, deadline_ms);
        link->is_tls_error = status == STATUS_UNSUPPORTED;
    }
    return status;
}

/* ---------------------------------------------------------------------------------------- reading and writing -- */

/* The server has closed the connection. What it said before must not be lost, as it may be the reason: link_receive
 * gives it out first. Nobody will read what was not sent. */
static void end_input(struct link *link)
{
    link->ended = true;
    buffer_clear(&link->out);
    link->sent = 0;
}

/* Reads once, if there is something. STATUS_AGAIN: there is not. */
static must_check enum status read_once(struct link *link, enum link_wish *wish)
{
    size_t size = 0;
    enum status status = STATUS_OK;
    char *to;

    if (link->taken > link->in.size / 2) {
        buffer_consume(&link->in, link->taken);
        link->taken = 0;
    }
    if (!buffer_try_reserve(&link->in, READ_BYTES))
        return fail(link, STATUS_NO_MEMORY, "Out of memory");
    to = link->in.data + link->in.size;
    *wish = LINK_WISH_READ;
    if (link->session != NULL) {
        status = link_session_read(link->session, to, READ_BYTES, &size, wish, link->error, sizeof(link->error));
    } else {
        ssize_t count = recv(link->socket, to, READ_BYTES, 0);

        if (count > 0)
            size = (size_t)count;
        else if (count == 0)
            status = STATUS_CLOSED;
        else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            status = STATUS_AGAIN;
        else
            return fail_errno(link);
    }
    if (status == STATUS_CLOSED)
        end_input(link);
    else if (status != STATUS_OK && status != STATUS_AGAIN)
        return fail(link, status, link->error);
    link->in.size += size;
    link->received_bytes += size;
    return status == STATUS_CLOSED ? STATUS_OK : status;
}

/* After a write that failed as the server has closed the connection. */
static must_check enum status read_rest(struct link *link)
{
    enum link_wish wish;
    enum status status = STATUS_OK;

    while (!link->ended && status == STATUS_OK)
        status = read_once(link, &wish);
    if (status != STATUS_OK && status != STATUS_AGAIN)
        return status;
    end_input(link);
    return STATUS_OK;
}

static must_check enum status write_once(struct link *link, enum link_wish *wish)
{
    const char *data = link->out.data + link->sent;
    size_t left = link->out.size - link->sent;
    size_t written = 0;
    enum status status = STATUS_OK;

    *wish = LINK_WISH_WRITE;
    if (link->session != NULL) {
        status = link_session_write(link->session, data, left, &written, wish, link->error, sizeof(link->error));
        if (status != STATUS_OK && status != STATUS_AGAIN)
            return fail(link, status, link->error);
    } else {
        ssize_t count = send(link->socket, data, left, MSG_NOSIGNAL);

        if (count >= 0)
            written = (size_t)count;
        else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            status = STATUS_AGAIN;
        else if (errno == EPIPE || errno == ECONNRESET)
            return read_rest(link);
        else
            return fail_errno(link);
    }
    link->sent += written;
    if (link->sent == link->out.size) {
        buffer_clear(&link->out);
        link->sent = 0;
    }
    return status;
}

void link_send_raw(struct link *link, struct slice bytes)
{
    buffer_append_slice(&link->out, bytes);
}

static void append_header(struct buffer *buffer, char type, size_t number)
{
    char *to = buffer_reserve(buffer, RESP_HEADER_BYTES);

    buffer->size += (size_t)(resp_encode_header(to, type, (int64_t)number) - to);
}

void link_send(struct link *link, const struct slice *words, size_t word_count)
{
    append_header(&link->out, '*', word_count);
    for (size_t i = 0; i < word_count; i++) {
        append_header(&link->out, '$', words[i].size);
        buffer_append_slice(&link->out, words[i]);
        buffer_append(&link->out, "\r\n", 2);
    }
}

size_t link_unsent(const struct link *link)
{
    return link->out.size - link->sent;
}

enum status link_flush_some(struct link *link)
{
    enum link_wish wish;
    enum status status = STATUS_OK;

    if (link->socket < 0)
        return not_open(link);
    while (link_unsent(link) > 0 && status == STATUS_OK)
        status = write_once(link, &wish);
    return status == STATUS_AGAIN ? STATUS_OK : status;
}

enum status link_flush(struct link *link)
{
    enum link_wish wish = LINK_WISH_WRITE;
    enum status status = STATUS_OK;
    short ready = 0;

    if (link->socket < 0)
        return not_open(link);
    while (link_unsent(link) > 0 && status == STATUS_OK) {
        status = write_once(link, &wish);
        if (status == STATUS_AGAIN)
            status = wait_for(link, (short)(POLLIN | events_of(wish)), UINT64_MAX, &ready);
        if (status == STATUS_OK && (ready & (POLLIN | POLLHUP)) != 0)
            status = read_once(link, &wish);
        if (status == STATUS_AGAIN)
            status = STATUS_OK;
        ready = 0;
    }
    return status;
}

/* ---------------------------------------------------------------------------------------------------- replies -- */

/* STATUS_AGAIN: more input is needed. */
static must_check enum status parse(struct link *link, struct resp_reply **reply)
{
    size_t consumed = 0;
    enum resp_reply_result result = RESP_REPLY_MORE;

    *reply = NULL;
    if (link_has_input(link))
        result = resp_reply_parse(&link->parser, link->in.data + link->taken, link->in.size - link->taken, &consumed,
                                  reply);
    link->taken += consumed;
    if (link->taken == link->in.size) {
        buffer_clear(&link->in);
        link->taken = 0;
    }
    if (result == RESP_REPLY_READY)
        return STATUS_OK;
    if (result == RESP_REPLY_MORE)
        return STATUS_AGAIN;
    snprintf(link->error, sizeof(link->error), "%s", link->parser.error);
    return fail(link, STATUS_CORRUPT, link->error);
}

/* A reply that is there already, or STATUS_AGAIN. Pushes go to their function. */
static must_check enum status parse_reply(struct link *link, struct resp_reply **reply)
{
    enum status status;

    while ((status = parse(link, reply)) == STATUS_OK) {
        if ((*reply)->type != RESP_TYPE_PUSH || link->push == NULL)
            return STATUS_OK;
        link->push(*reply, link->push_user);
        resp_reply_destroy(reply);
    }
    return status;
}

/* Waits for input and reads it. */
static must_check enum status read_more(struct link *link, uint64_t deadline_ms)
{
    enum link_wish wish = LINK_WISH_READ;
    enum status status;
    short ready;

    for (;;) {
        if (link->ended)
            return fail(link, STATUS_CLOSED, "Server closed the connection");
        status = read_once(link, &wish);
        if (status == STATUS_OK && !link->ended)
            return STATUS_OK;
        if (status == STATUS_AGAIN)
            status = wait_for(link, events_of(wish), deadline_ms, &ready);
        if (status != STATUS_OK)
            return status;
    }
}

enum status link_receive(struct link *link, int limit_ms, struct resp_reply **reply)
{
    uint64_t deadline_ms = deadline_of(limit_ms);
    enum status status;

    *reply = NULL;
    if (link->socket < 0)
        return not_open(link);
    status = link_flush(link);
    while (status == STATUS_OK) {
        status = parse_reply(link, reply);
        if (status != STATUS_AGAIN)
            return status;
        status = read_more(link, deadline_ms);
    }
    return status;
}

enum status link_call(struct link *link, const struct slice *words, size_t word_count, struct resp_reply **reply)
{
    *reply = NULL;
    link_send(link, words, word_count);
    return link_receive(link, LINK_FOREVER, reply);
}

enum status link_read(struct link *link, int limit_ms, char *data, size_t room, size_t *size)
{
    enum status status;

    *size = 0;
    if (link->socket < 0)
        return not_open(link);
    status = link_flush(link);
    if (status == STATUS_OK && !link_has_input(link))
        status = read_more(link, deadline_of(limit_ms));
    if (status != STATUS_OK)
        return status;
    *size = MIN(room, link->in.size - link->taken);
    memcpy(data, link->in.data + link->taken, *size);
    link->taken += *size;
    return STATUS_OK;
}

enum status link_take(struct link *link, struct slice *input)
{
    enum link_wish wish;
    enum status status = STATUS_OK;

    *input = slice_make(NULL, 0);
    if (link->socket < 0)
        return not_open(link);
    if (!link_has_input(link)) {
        buffer_clear(&link->in);
        link->taken = 0;
        if (!link->ended)
            status = read_once(link, &wish);
        if (status == STATUS_OK && !link_has_input(link))
            return fail(link, STATUS_CLOSED, "Server closed the connection");
    }
    if (status != STATUS_OK)
        return status == STATUS_AGAIN ? STATUS_OK : status;
    *input = slice_make(link->in.data + link->taken, link->in.size - link->taken);
    link->taken = link->in.size;
    return STATUS_OK;
}

/* ----------------------------------------------------------------------------------------------- introductions -- */

static must_check enum status greet(struct link *link, const struct slice *words, size_t word_count)
{
    struct resp_reply *reply = NULL;
    enum status status = link_call(link, words, word_count, &reply);

    if (status == STATUS_OK && (reply->type == RESP_TYPE_ERROR || reply->type == RESP_TYPE_BULK_ERROR)) {
        snprintf(link->error, sizeof(link->error), "%s", reply->text);
        status = STATUS_DENIED;
    }
    resp_reply_destroy(&reply);
    return status;
}

enum status link_greet_step(struct link *link, const struct link_target *target, enum link_step step)
{
    struct slice words[3];
    char number[NUMBER_I64_SPACE];

    switch (step) {
    case LINK_STEP_AUTH:
        if (target->password == NULL)
            return STATUS_OK;
        words[0] = SLICE("AUTH");
        words[1] = slice_from_text(target->user != NULL ? target->user : target->password);
        words[2] = slice_from_text(target->password);
        return greet(link, words, target->user != NULL ? 3 : 2);
    case LINK_STEP_HELLO:
        words[0] = SLICE("HELLO");
        words[1] = SLICE("3");
        return target->proto == 3 ? greet(link, words, 2) : STATUS_OK;
    case LINK_STEP_SELECT:
        words[0] = SLICE("SELECT");
        words[1] = slice_make(number, number_format_i64(number, target->database));
        return target->database != 0 ? greet(link, words, 2) : STATUS_OK;
    default:
        assert(step == LINK_STEP_NAME);
        words[0] = SLICE("CLIENT");
        words[1] = SLICE("SETNAME");
        if (target->name == NULL)
            return STATUS_OK;
        words[2] = slice_from_text(target->name);
        return greet(link, words, 3);
    }
}

enum status link_greet(struct link *link, const struct link_target *target, enum link_step *step)
{
    enum status status = STATUS_OK;

    for (*step = LINK_STEP_AUTH; *step < LINK_STEP_COUNT; (*step)++) {
        status = link_greet_step(link, target, *step);
        if (status != STATUS_OK)
            return status;
    }
    return status;
}
