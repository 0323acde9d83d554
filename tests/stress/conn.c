#include "conn.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

double reply_limit_seconds = 30;

/* --- text --- */

static void text_reserve(struct text *text, size_t more)
{
    if (text->room - text->size >= more)
        return;
    text->room = (text->size + more) * 2;
    text->data = realloc(text->data, text->room);
    if (text->data == NULL)
        die("out of memory");
}

void text_append(struct text *text, const char *data, size_t size)
{
    text_reserve(text, size);
    memcpy(text->data + text->size, data, size);
    text->size += size;
}

void text_printf(struct text *text, const char *format, ...)
{
    char room[4096];
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(room, sizeof(room), format, arguments);
    va_end(arguments);
    text_append(text, room, size < (int)sizeof(room) ? (size_t)size : sizeof(room) - 1);
}

void text_fini(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

/* --- the connection --- */

bool conn_open(struct conn *conn, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;

    *conn = (struct conn){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .worker = -1};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (conn->fd < 0)
        die("socket: %s", strerror(errno));
    if (connect(conn->fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        conn_close(conn);
        return false;
    }
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return true;
}

bool conn_try_start(struct conn *conn, int port, int db)
{
    struct raw reply;

    if (!conn_open(conn, port))
        die("the server does not accept connections: %s", strerror(errno));
    conn_add(conn, "CLIENT ID");
    conn_add(conn, "SELECT %d", db);
    if (!conn_send(conn) || conn_read(conn, &reply, reply_limit_seconds) != GOT_REPLY || !raw_is_int(reply))
        return false;
    conn->id = raw_number(reply);
    return conn_read(conn, &reply, reply_limit_seconds) == GOT_REPLY && raw_says(reply, "OK");
}

void conn_start(struct conn *conn, int port, int db)
{
    if (!conn_try_start(conn, port, db))
        die("a new connection got no answer");
}

void conn_close(struct conn *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    text_fini(&conn->out);
    text_fini(&conn->in);
    conn->in_done = 0;
}

void conn_reset(struct conn *conn)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    if (conn->fd >= 0)
        setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    conn_close(conn);
}

void conn_add_args(struct conn *conn, int count, const char *const *args, const size_t *sizes)
{
    text_printf(&conn->out, "*%d\r\n", count);
    for (int i = 0; i < count; i++) {
        text_printf(&conn->out, "$%zu\r\n", sizes[i]);
        text_append(&conn->out, args[i], sizes[i]);
        text_append(&conn->out, "\r\n", 2);
    }
}

static void add_words(struct conn *conn, char *line)
{
    const char *args[256];
    size_t sizes[256];
    int count = 0;

    for (char *word = line; *word != 0;) {
        size_t size = strcspn(word, " ");

        if (count == (int)COUNTOF(args))
            die("a command has too many words");
        args[count] = word;
        sizes[count++] = size;
        word += size + (word[size] == ' ');
    }
    conn_add_args(conn, count, args, sizes);
}

static void add_formatted(struct conn *conn, const char *format, va_list arguments) PRINTF(2, 0);
static void add_formatted(struct conn *conn, const char *format, va_list arguments)
{
    char line[8192];

    if (vsnprintf(line, sizeof(line), format, arguments) >= (int)sizeof(line))
        die("a command is too long");
    add_words(conn, line);
}

void conn_add(struct conn *conn, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_formatted(conn, format, arguments);
    va_end(arguments);
}

bool conn_send(struct conn *conn)
{
    size_t sent = 0;

    while (conn->fd >= 0 && sent < conn->out.size) {
        ssize_t count = send(conn->fd, conn->out.data + sent, conn->out.size - sent, MSG_NOSIGNAL);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        sent += (size_t)count;
    }
    if (sent < conn->out.size)
        return false;
    conn->out.size = 0;
    return true;
}

size_t raw_size(const char *data, size_t size)
{
    const char *end = memchr(data, '\r', size);
    size_t line;
    long count;

    if (end == NULL || (size_t)(end - data) + 2 > size)
        return 0;
    line = (size_t)(end - data) + 2;
    switch (data[0]) {
    case '+':
    case '-':
    case ':':
    case '_':
        return line;
    case '$':
        count = atol(data + 1);
        return count < 0 ? line : line + (size_t)count + 2 <= size ? line + (size_t)count + 2 : 0;
    case '*':
    case '>':
    case '%':
        count = atol(data + 1) * (data[0] == '%' ? 2 : 1);
        for (long i = 0; i < count; i++) {
            size_t child = line < size ? raw_size(data + line, size - line) : 0;

            if (child == 0)
                return 0;
            line += child;
        }
        return line;
    default:
        die("a reply begins with the byte %d", data[0]);
    }
}

enum got conn_poll(struct conn *conn, struct raw *reply)
{
    return conn_read(conn, reply, 0);
}

enum got conn_read(struct conn *conn, struct raw *reply, double seconds)
{
    uint64_t limit = now_ns() + (uint64_t)(seconds * 1e9);

    if (conn->in_done == conn->in.size)
        conn->in_done = conn->in.size = 0;
    for (;;) {
        size_t size = 0;
        ssize_t count;

        if (conn->in.size > conn->in_done)
            size = raw_size(conn->in.data + conn->in_done, conn->in.size - conn->in_done);
        if (size != 0) {
            *reply = (struct raw){conn->in.data + conn->in_done, size};
            conn->in_done += size;
            return GOT_REPLY;
        }
        if (conn->fd < 0)
            return GOT_CLOSED;
        text_reserve(&conn->in, conn->in.size < 65536 ? 65536 : conn->in.size);
        count = recv(conn->fd, conn->in.data + conn->in.size, conn->in.room - conn->in.size, MSG_DONTWAIT);
        if (count > 0) {
            conn->in.size += (size_t)count;
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            close(conn->fd);
            conn->fd = -1;
            return GOT_CLOSED;
        } else {
            struct pollfd one = {.fd = conn->fd, .events = POLLIN};
            uint64_t now = now_ns();

            if (now >= limit)
                return GOT_NOTHING;
            poll(&one, 1, (int)((limit - now) / 1000000) + 1);
        }
    }
}

void conn_post(struct conn *conn, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_formatted(conn, format, arguments);
    va_end(arguments);
    if (!conn_send(conn))
        die("'%s': the connection was closed", format);
}

bool conn_is_silent(struct conn *conn)
{
    struct raw reply;

    return conn_poll(conn, &reply) == GOT_NOTHING;
}

int conn_worker(struct conn *conn)
{
    return (int)info_number(conn_ask(conn, "INFO clients"), "current_client_thread");
}

int64_t conn_lock_waits(struct conn *conn)
{
    return info_number(conn_ask(conn, "INFO cpu"), "long_lock_waits");
}

struct raw conn_ask(struct conn *conn, const char *format, ...)
{
    struct raw reply;
    va_list arguments;
    enum got got;

    va_start(arguments, format);
    add_formatted(conn, format, arguments);
    va_end(arguments);
    got = conn_send(conn) ? conn_read(conn, &reply, reply_limit_seconds) : GOT_CLOSED;
    if (got != GOT_REPLY)
        die("no reply to '%s': %s", format, got == GOT_CLOSED ? "the connection was closed" : "out of time");
    return reply;
}

/* --- replies --- */

bool raw_is_error(struct raw raw)
{
    return raw.data[0] == '-';
}
bool raw_is_null(struct raw raw)
{
    return (raw.data[0] == '$' || raw.data[0] == '*') && raw.data[1] == '-';
}
bool raw_is_int(struct raw raw)
{
    return raw.data[0] == ':';
}
bool raw_is_string(struct raw raw)
{
    return (raw.data[0] == '$' || raw.data[0] == '+') && !raw_is_null(raw);
}
bool raw_is_array(struct raw raw)
{
    return raw.data[0] == '*' && !raw_is_null(raw);
}

struct raw raw_string(struct raw raw)
{
    const char *end = memchr(raw.data, '\r', raw.size);
    size_t line = (size_t)(end - raw.data);

    if (raw.data[0] == '$' && !raw_is_null(raw))
        return (struct raw){raw.data + line + 2, raw.size - line - 4};
    return (struct raw){raw.data + 1, line - 1};
}

int64_t raw_number(struct raw raw)
{
    struct raw string = raw_string(raw);
    char digits[24];
    char *end;
    int64_t number;

    if (string.size == 0 || string.size >= sizeof(digits) || raw_is_null(raw) || raw_is_error(raw))
        return -1;
    memcpy(digits, string.data, string.size);
    digits[string.size] = 0;
    number = strtoll(digits, &end, 10);
    return *end == 0 ? number : -1;
}

struct raw raw_child(struct raw array, size_t index)
{
    const char *end = memchr(array.data, '\r', array.size);
    size_t at = (size_t)(end - array.data) + 2;

    for (;;) {
        size_t size = at < array.size ? raw_size(array.data + at, array.size - at) : 0;

        if (size == 0)
            return (struct raw){"$-1\r\n", 5};
        if (index-- == 0)
            return (struct raw){array.data + at, size};
        at += size;
    }
}

bool raw_says(struct raw raw, const char *text)
{
    struct raw string = raw_string(raw);

    return raw_is_string(raw) && string.size == strlen(text) && memcmp(string.data, text, string.size) == 0;
}

int64_t info_number(struct raw info, const char *field)
{
    struct raw text = raw_string(info);
    size_t size = strlen(field);

    for (const char *at = text.data, *end = text.data + text.size; at < end;) {
        const char *next = memchr(at, '\n', (size_t)(end - at));

        if ((size_t)(end - at) > size && memcmp(at, field, size) == 0 && at[size] == ':')
            return atoll(at + size + 1);
        at = next != NULL ? next + 1 : end;
    }
    return -1;
}

const char *raw_show(struct raw raw, char *room, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < raw.size && at + 2 < size; i++) {
        if (raw.data[i] == '\r')
            room[at++] = ' ';
        else if (raw.data[i] != '\n')
            room[at++] = isprint((unsigned char)raw.data[i]) ? raw.data[i] : '?';
    }
    room[at] = 0;
    return room;
}
