#include "net/conn.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/tick.h"
#include "net/linger.h"
#include "net/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* The server under test answers each line with the same line. Lines that begin with a capital are orders:
 *   D<n>  the next n bytes are received directly, then answered with their sum; M<n> the same in parts of PART_BYTES
 *   B<n>  answer with n bytes
 *   P     pause (the test resumes), H pause and watch for a hang-up, Q close, F answer "bye" and close after that
 * Everything runs in one thread; the other end is a plain non-blocking socket, or a connection of the same loop. */

enum { PART_BYTES = 5000 };

static struct loop *loop;
static enum loop_kind kind;

struct server {
    struct conn conn;
    char *direct;
    size_t direct_size;
    size_t direct_asked; /* bytes that are there or on their way into `direct` */
    size_t direct_part;
    unsigned data_calls;
    unsigned drained;
    size_t kept; /* as on_kept was told */
    bool closed;
    bool pause_before_lines;
    enum conn_close_reason reason;
};

static size_t run_order(struct server *server, char *line, size_t size, size_t behind)
{
    struct conn *conn = &server->conn;
    size_t number = strtoul(line + 1, NULL, 10);
    size_t there = 0;
    char *block = NULL;

    switch (line[0]) {
    case 'D':
    case 'M':
        there = MIN(number, behind);
        server->direct_part = line[0] == 'M' ? PART_BYTES : SIZE_MAX;
        server->direct = mem_alloc(number + 1);
        server->direct_size = number;
        memcpy(server->direct, line + size, there);
        if (there < number) {
            server->direct_asked = there + MIN(number - there, server->direct_part);
            conn_receive_direct(conn, server->direct + there, server->direct_asked - there, there);
            return SIZE_MAX;
        }
        server->direct_asked = number;
        conn->handler->on_direct_done(conn);
        return there;
    case 'B':
        block = mem_alloc(number + 1);
        memset(block, 'b', number);
        output_append(&conn->output, block, number);
        mem_free(block);
        break;
    case 'P':
        conn_pause(conn);
        break;
    case 'H':
        conn_pause_blocked(conn);
        break;
    case 'Q':
        conn_close(conn);
        break;
    case 'F':
        output_append(&conn->output, "bye", 3);
        conn_close_after_flush(conn);
        break;
    default:
        break;
    }
    return 0;
}

static size_t on_data(struct conn *conn, char *data, size_t size)
{
    struct server *server = (struct server *)conn;
    size_t used = 0;

    assert_false(server->closed);
    server->data_calls++;
    while (used < size && (conn->flags & (CONN_PAUSED | CONN_CLOSING | CONN_CLOSE_AFTER)) == 0) {
        char *end = memchr(data + used, '\n', size - used);
        size_t line_size = 0;
        size_t more = 0;

        if (end == NULL)
            break;
        line_size = (size_t)(end - data) + 1 - used;
        if (data[used] >= 'A' && data[used] <= 'Z') {
            more = run_order(server, data + used, line_size, size - used - line_size);
            used += line_size;
            if (more == SIZE_MAX)
                break;
            used += more;
        } else {
            output_append(&conn->output, data + used, line_size);
            used += line_size;
        }
    }
    conn_write_pending(conn);
    return used;
}

static void on_kept(struct conn *conn)
{
    struct server *server = (struct server *)conn;

    assert_false(server->closed);
    assert_int_equal(conn->flags & CONN_IN_DATA, 0);
    server->kept = conn_kept_size(conn);
}

static void on_direct_done(struct conn *conn)
{
    struct server *server = (struct server *)conn;
    size_t more = MIN(server->direct_size - server->direct_asked, server->direct_part);
    unsigned sum = 0;
    char text[32];

    if (more > 0) {
        conn_receive_direct_more(conn, server->direct + server->direct_asked, more);
        server->direct_asked += more;
        return;
    }
    for (size_t i = 0; i < server->direct_size; i++)
        sum += (unsigned char)server->direct[i];
    mem_free(server->direct);
    server->direct = NULL;
    snprintf(text, sizeof(text), "%u\n", sum);
    output_append(&conn->output, text, strlen(text));
    conn_write_pending(conn);
}

static void on_drained(struct conn *conn)
{
    ((struct server *)conn)->drained++;
}

static void on_closed(struct conn *conn, enum conn_close_reason reason, const char *detail)
{
    struct server *server = (struct server *)conn;

    assert_non_null(detail);
    assert_false(server->closed);
    mem_free(server->direct);
    server->direct = NULL;
    server->closed = true;
    server->reason = reason;
}

static const struct conn_handler handler = {.on_data = on_data,
                                            .on_kept = on_kept,
                                            .on_direct_done = on_direct_done,
                                            .on_drained = on_drained,
                                            .on_closed = on_closed};

/* ------------------------------------------------------------------------------------------------- helpers -- */

static int setup_loop(void **state)
{
    struct loop_options options = {.kind = kind};

    (void)state;
    loop = loop_create(&options);
    assert_non_null(loop);
    return 0;
}

static int teardown_loop(void **state)
{
    (void)state;
    loop_destroy(&loop);
    return 0;
}

/* Both ends of a TCP connection: the returned one is the test's, non-blocking. */
static int open_server(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = -1;

    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);
    fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(fd >= 0);
    close(listener);
    assert_int_equal(fcntl(client, F_SETFL, O_NONBLOCK), 0);
    *server = (struct server){0};
    assert_true(conn_open(loop, &server->conn, fd, &handler, NULL));
    return client;
}

static void turns(int count)
{
    for (int i = 0; i < count; i++)
        loop_turn(loop, 2000);
}

/* Sends the bytes that the socket accepts now. */
static size_t give(int fd, const char *data, size_t size)
{
    ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

    assert_true(sent >= 0 || errno == EAGAIN);
    return sent > 0 ? (size_t)sent : 0;
}

static void say(int fd, const char *text)
{
    assert_int_equal(give(fd, text, strlen(text)), strlen(text));
}

/* Reads on into the buffer; false: the stream has ended. */
static bool take(int fd, struct buffer *buffer)
{
    ssize_t got = recv(fd, buffer_reserve(buffer, 65536), 65536, 0);

    if (got > 0)
        buffer->size += (size_t)got;
    return got > 0 || (got < 0 && errno == EAGAIN);
}

/* Turns the loop until the peer has got exactly this. */
static void expect_text(int fd, const char *text)
{
    struct buffer got = {0};

    for (int i = 0; i < 2000 && got.size < strlen(text); i++) {
        turns(1);
        take(fd, &got);
    }
    assert_string_equal(buffer_text(&got), text);
    buffer_fini(&got);
}

static void expect_silence(int fd)
{
    char c = 0;

    turns(5);
    assert_int_equal(recv(fd, &c, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
}

static void expect_closed(struct server *server, enum conn_close_reason reason)
{
    for (int i = 0; i < 1000 && !server->closed; i++)
        turns(1);
    assert_true(server->closed);
    assert_int_equal(server->reason, reason);
}

/* --------------------------------------------------------------------------------------------------- tests -- */

static void answers_lines(void **state)
{
    struct server server;
    int fd = open_server(&server);

    (void)state;
    say(fd, "hello\n");
    expect_text(fd, "hello\n");
    say(fd, "he");
    expect_silence(fd);
    assert_int_equal(conn_kept_size(&server.conn), 2);
    say(fd, "llo\nwor");
    expect_text(fd, "hello\n");
    say(fd, "ld\n");
    expect_text(fd, "world\n");
    assert_int_equal(conn_memory_bytes(&server.conn), 0); /* idle again: it owns nothing */
    assert_int_equal(server.conn.bytes_in, 6 + 12);
    assert_int_equal(server.conn.bytes_out, 18);
    close(fd);
    expect_closed(&server, CONN_CLOSED_PEER);
}

/* Lines of all sizes, and direct parts between them, in pieces of all sizes: the answers are right. */
static void any_pieces(void **state)
{
    struct random random;
    uint64_t seed = 31337;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    random_seed(&random, seed);
    for (int round = 0; round < 60; round++) {
        static const size_t limits[] = {10, 500, 20000, 200000};
        struct server server;
        struct buffer stream = {0};
        struct buffer wanted = {0};
        struct buffer got = {0};
        size_t limit = limits[random_below(&random, countof(limits))];
        int fd = open_server(&server);

        for (int i = 0; i < 20; i++) {
            size_t size = 1 + random_below(&random, limit);
            unsigned sum = 0;

            if (random_below(&random, 4) == 0) {
                buffer_printf(&stream, "%c%zu\n", random_below(&random, 2) == 0 ? 'D' : 'M', size);
                for (size_t n = 0; n < size; n++) {
                    char c = (char)random_below(&random, 256);

                    buffer_append_char(&stream, c);
                    sum += (unsigned char)c;
                }
                buffer_printf(&wanted, "%u\n", sum);
            } else {
                memset(buffer_reserve(&stream, size), 'a' + i, size);
                memset(buffer_reserve(&wanted, size), 'a' + i, size);
                stream.size += size;
                wanted.size += size;
                buffer_append_char(&stream, '\n');
                buffer_append_char(&wanted, '\n');
            }
        }
        for (size_t at = 0; got.size < wanted.size;) {
            size_t piece = 1 + random_below(&random, limit * 3);

            piece = MIN(piece, stream.size - at);
            if (piece > 0)
                at += give(fd, stream.data + at, piece);
            loop_turn(loop, 1000);
            assert_int_equal(server.kept, conn_kept_size(&server.conn));
            assert_true(take(fd, &got));
        }
        assert_int_equal(got.size, wanted.size);
        assert_memory_equal(got.data, wanted.data, wanted.size);
        close(fd);
        expect_closed(&server, CONN_CLOSED_PEER);
        buffer_fini(&stream);
        buffer_fini(&wanted);
        buffer_fini(&got);
    }
}

static void answers_before_the_end(void **state)
{
    struct server server;
    struct buffer got = {0};
    int fd = open_server(&server);

    (void)state;
    say(fd, "one\ntwo\n");
    shutdown(fd, SHUT_WR);
    while (take(fd, &got))
        turns(1);
    assert_string_equal(buffer_text(&got), "one\ntwo\n");
    expect_closed(&server, CONN_CLOSED_PEER);
    buffer_fini(&got);
    close(fd);
}

static void pause_and_resume(void **state)
{
    struct server server;
    unsigned calls = 0;
    int fd = open_server(&server);

    (void)state;
    say(fd, "P\none\n");
    turns(3);
    calls = server.data_calls;
    say(fd, "two\n");
    expect_silence(fd);
    say(fd, "three\n");
    expect_silence(fd);
    assert_int_equal(server.data_calls, calls);
    conn_resume(&server.conn);
    expect_text(fd, "one\ntwo\nthree\n");
    say(fd, "four\n");
    expect_text(fd, "four\n");
    close(fd);
    expect_closed(&server, CONN_CLOSED_PEER);
}

/* A paused connection whose peer leaves is told so after the resume, and does not keep the loop busy meanwhile. */
static void pause_hides_the_end(void **state)
{
    static const bool resets[] = {false, true};

    (void)state;
    for (size_t i = 0; i < countof(resets); i++) {
        struct server server;
        struct linger linger = {.l_onoff = 1, .l_linger = 0};
        uint64_t begin = 0;
        int fd = open_server(&server);

        say(fd, "P\none\n");
        turns(3);
        if (resets[i])
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        close(fd);
        turns(5);
        begin = clock_monotonic_us();
        turns(5);
        assert_true(clock_monotonic_us() - begin >= 5 * 2000); /* it slept */
        if (!resets[i])
            assert_false(server.closed);
        conn_resume(&server.conn);
        for (int n = 0; n < 100 && !server.closed; n++)
            turns(1);
        assert_true(server.closed);
    }
}

static void blocked_pause_sees_the_end(void **state)
{
    struct server server;
    int fd = open_server(&server);

    (void)state;
    say(fd, "H\n");
    turns(3);
    expect_silence(fd);
    close(fd);
    expect_closed(&server, CONN_CLOSED_PEER);

    fd = open_server(&server);
    say(fd, "H\n");
    turns(3);
    say(fd, "more\n"); /* reading is stopped by this */
    turns(3);
    assert_false(server.closed);
    close(fd);
    expect_closed(&server, CONN_CLOSED_PEER);

    fd = open_server(&server);
    say(fd, "H\n");
    turns(3);
    conn_resume(&server.conn);
    say(fd, "again\n");
    expect_text(fd, "again\n");
    close(fd);
    expect_closed(&server, CONN_CLOSED_PEER);
}

static void resume_without_pause_calls_again(void **state)
{
    struct server server;
    unsigned calls = 0;
    int fd = open_server(&server);

    (void)state;
    say(fd, "unfinished");
    turns(3);
    calls = server.data_calls;
    conn_resume(&server.conn);
    conn_resume(&server.conn);
    turns(1);
    assert_int_equal(server.data_calls, calls + 1);
    assert_int_equal(conn_kept_size(&server.conn), 10);
    close(fd);
    expect_closed(&server, CONN_CLOSED_PEER);
}

static void close_is_the_last_call(void **state)
{
    struct server server;
    struct buffer got = {0};
    int fd = open_server(&server);

    (void)state;
    say(fd, "Q\none\ntwo\n");
    expect_closed(&server, CONN_CLOSED_LOCAL);
    assert_int_equal(server.data_calls, 1);
    assert_false(take(fd, &got));
    assert_int_equal(got.size, 0);
    close(fd);
    buffer_fini(&got);
}

/* ----------------------------------------------------------------------------------------------- lingering -- */

/* The server has said "bye" and closed, and has not read all that we had sent. Its descriptor's number then. */
static int dismissed(int *fd)
{
    struct server server;
    struct buffer more = {0};
    int number;

    *fd = open_server(&server);
    number = server.conn.fd;
    memset(buffer_reserve(&more, 1 << 20), 'x', 1 << 20);
    say(*fd, "F\n");
    give(*fd, more.data, 1 << 20);
    buffer_fini(&more);
    expect_closed(&server, CONN_CLOSED_LOCAL);
    return number;
}

static bool is_open(int number)
{
    return fcntl(number, F_GETFD) != -1;
}

/* Sends `step` bytes after each turn until it fails, or until so many are sent. */
static size_t send_on(int fd, size_t step, size_t most, int64_t most_us)
{
    static char bytes[65536];
    int64_t end_us = (int64_t)clock_monotonic_us() + most_us;
    size_t sent = 0;

    while (sent < most && (int64_t)clock_monotonic_us() < end_us) {
        ssize_t now = send(fd, bytes, step, MSG_NOSIGNAL);

        if (now < 0 && errno != EAGAIN)
            return sent;
        sent += now > 0 ? (size_t)now : 0;
        turns(1);
    }
    return sent;
}

static void last_words_reach_who_still_sends(void **state)
{
    struct buffer got = {0};
    int fd, number = dismissed(&fd);

    (void)state;
    assert_int_equal(send_on(fd, 65536, 8 << 20, INT32_MAX), 8 << 20);
    do {
        turns(1);
        errno = 0;
    } while (take(fd, &got));
    assert_int_equal(errno, 0); /* an end, no reset */
    assert_string_equal(buffer_text(&got), "bye");
    assert_true(is_open(number));
    close(fd);
    for (int i = 0; i < 1000 && is_open(number); i++)
        turns(1);
    assert_false(is_open(number));
    buffer_fini(&got);
}

static void nobody_may_send_for_ever(void **state)
{
    int fd, number = dismissed(&fd);
    size_t sent = send_on(fd, 65536, SIZE_MAX, 20 * 1000 * 1000);

    (void)state;
    assert_false(is_open(number));
    assert_in_range(sent, 1, 2 * (size_t)LINGER_BYTES + (16 << 20)); /* sockets hold some more */
    close(fd);
    /* Nor a little for ever. */
    number = dismissed(&fd);
    send_on(fd, 1, SIZE_MAX, 20 * 1000 * 1000);
    assert_false(is_open(number));
    close(fd);
}

static void few_linger_at_a_time(void **state)
{
    int fds[LINGER_MOST + 1], numbers[LINGER_MOST + 1];

    (void)state;
    for (int i = 0; i < LINGER_MOST; i++)
        numbers[i] = dismissed(&fds[i]);
    assert_true(is_open(numbers[0]));
    numbers[LINGER_MOST] = dismissed(&fds[LINGER_MOST]);
    assert_false(is_open(numbers[0]));
    for (int i = 1; i <= LINGER_MOST; i++)
        assert_true(is_open(numbers[i]));
    loop_destroy(&loop);
    for (int i = 0; i <= LINGER_MOST; i++) {
        assert_false(is_open(numbers[i]));
        close(fds[i]);
    }
}

/* More than any socket buffer holds, to a reader that takes its time; nothing is lost, then it closes. */
static void slow_reader_gets_everything(void **state)
{
    struct server server;
    struct buffer got = {0};
    int fd = open_server(&server);

    (void)state;
    say(fd, "B20000000\n");
    turns(10);
    assert_true(conn_output_size(&server.conn) > 0);
    assert_int_equal(server.drained, 0);
    say(fd, "F\n");
    turns(10);
    assert_false(server.closed);
    assert_true(conn_is_closing(&server.conn));
    while (take(fd, &got))
        loop_turn(loop, 1000);
    assert_int_equal(got.size, 20000003);
    assert_memory_equal(got.data + 20000000, "bye", 3);
    assert_int_equal(got.data[19999999], 'b');
    expect_closed(&server, CONN_CLOSED_LOCAL);
    buffer_fini(&got);
    close(fd);
}

static void take_exactly(int fd, struct buffer *got, size_t size)
{
    for (int i = 0; i < 4000 && got->size < size; i++) {
        turns(1);
        assert_true(take(fd, got));
    }
    assert_int_equal(got->size, size);
    turns(3);
    expect_silence(fd);
}

static void held_output_is_sent_as_it_is_cleared(void **state)
{
    struct server server;
    struct buffer got = {0};
    int fd = open_server(&server);

    (void)state;
    say(fd, "free\n");
    expect_text(fd, "free\n");
    conn_hold(&server.conn);
    say(fd, "one\n");
    turns(5);
    expect_silence(fd);
    assert_int_equal(conn_held_size(&server.conn), 4);
    conn_clear(&server.conn, 2);
    expect_text(fd, "on");
    say(fd, "two\n");
    turns(5);
    expect_silence(fd);
    conn_clear(&server.conn, 2);
    expect_text(fd, "e\n");
    assert_int_equal(conn_held_size(&server.conn), 4);
    say(fd, "B20000000\n"); /* more than the socket takes at once */
    turns(5);
    conn_clear(&server.conn, 4 + 10000000);
    take_exactly(fd, &got, 4 + 10000000);
    conn_clear(&server.conn, 1);
    take_exactly(fd, &got, 4 + 10000001);
    say(fd, "F\n"); /* held output is sent before it closes */
    turns(5);
    assert_false(server.closed);
    expect_silence(fd);
    conn_unhold(&server.conn);
    while (take(fd, &got))
        loop_turn(loop, 1000);
    assert_int_equal(got.size, 20000007);
    assert_memory_equal(got.data, "two\nbbb", 7);
    assert_memory_equal(got.data + 20000004, "bye", 3);
    expect_closed(&server, CONN_CLOSED_LOCAL);
    buffer_fini(&got);
    close(fd);
}

static void drained_is_told_once(void **state)
{
    struct server server;
    struct buffer got = {0};
    int fd = open_server(&server);

    (void)state;
    say(fd, "small\n");
    expect_text(fd, "small\n");
    assert_int_equal(server.drained, 0);
    if (kind != LOOP_IO_URING) { /* there a send waits in the kernel, which need not tell */
        say(fd, "B20000000\n");
        while (got.size < 20000000) {
            loop_turn(loop, 1000);
            assert_true(take(fd, &got));
        }
        turns(3);
        assert_int_equal(server.drained, 1);
    }
    say(fd, "small\n");
    expect_text(fd, "small\n");
    close(fd);
    expect_closed(&server, CONN_CLOSED_PEER);
    buffer_fini(&got);
}

static void reader_that_breaks_off(void **state)
{
    struct server server;
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    int fd = open_server(&server);

    (void)state;
    say(fd, "B20000000\n");
    turns(5);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(fd);
    expect_closed(&server, CONN_CLOSED_ERROR);
}

static void flush_now(void **state)
{
    struct server server;
    struct buffer got = {0};
    int fd = open_server(&server);

    (void)state;
    turns(1);
    output_append(&server.conn.output, "now\n", 4);
    conn_flush_now(&server.conn);
    if (kind != LOOP_IO_URING)
        take(fd, &got);
    else
        turns(2);
    take(fd, &got);
    assert_string_equal(buffer_text(&got), "now\n");
    close(fd);
    expect_closed(&server, CONN_CLOSED_PEER);
    buffer_fini(&got);
}

enum { LINE_BYTES = 4096 };

/* One connection that always has a full socket does not keep another waiting for more than a turn or two. */
static void nobody_starves(void **state)
{
    struct server busy;
    struct server calm;
    int busy_fd = open_server(&busy);
    int calm_fd = open_server(&calm);
    struct buffer got = {0};
    char *block = mem_alloc(1 << 20);

    (void)state;
    memset(block, 'X', 1 << 20); /* lines that are taken and not answered */
    for (size_t end = LINE_BYTES; end <= 1 << 20; end += LINE_BYTES)
        block[end - 1] = '\n';
    for (int i = 0; i < 20; i++) {
        while (give(busy_fd, block, 1 << 20) > 0)
            continue;
        say(calm_fd, "me\n");
        turns(2);
        while (give(busy_fd, block, 1 << 20) > 0)
            continue;
        turns(2);
        take(calm_fd, &got);
        assert_string_equal(buffer_text(&got), "me\n");
        buffer_clear(&got);
    }
    close(busy_fd);
    close(calm_fd);
    expect_closed(&busy, CONN_CLOSED_PEER);
    expect_closed(&calm, CONN_CLOSED_PEER);
    buffer_fini(&got);
    mem_free(block);
}

static unsigned opened;

static size_t swallow(struct conn *conn, char *data, size_t size)
{
    (void)conn;
    (void)data;
    return size;
}

static void note_open(struct conn *conn)
{
    opened++;
    output_append(&conn->output, "hello\n", 6);
}

static const struct conn_handler client_handler = {.on_data = swallow, .on_open = note_open, .on_closed = on_closed};

static void connects(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct server client = {0};
    struct buffer got = {0};
    char text[CONN_ADDRESS_TEXT_BYTES];
    char wanted[64];
    int fd = -1;

    (void)state;
    opened = 0;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_true(
        conn_connect(loop, &client.conn, (struct sockaddr *)&address, size, NULL, 0, &client_handler, NULL, NULL));
    turns(3);
    assert_int_equal(opened, 1);
    fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    turns(2);
    take(fd, &got);
    assert_string_equal(buffer_text(&got), "hello\n");
    conn_peer_text(&client.conn, text);
    snprintf(wanted, sizeof(wanted), "127.0.0.1:%d", ntohs(address.sin_port));
    assert_string_equal(text, wanted);
    assert_true(conn_set_keepalive(&client.conn, 300));
    close(fd);
    expect_closed(&client, CONN_CLOSED_PEER);

    /* No socket listens there any more. */
    close(listener);
    client = (struct server){0};
    if (conn_connect(loop, &client.conn, (struct sockaddr *)&address, size, NULL, 0, &client_handler, NULL, NULL))
        expect_closed(&client, CONN_CLOSED_ERROR);
    assert_int_equal(opened, 1);
    buffer_fini(&got);
}

static void texts_of_addresses(void **state)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(6379), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0x0a000001)};
    char text[CONN_ADDRESS_TEXT_BYTES];

    (void)state;
    conn_sockaddr_text((struct sockaddr *)&six, sizeof(six), text);
    assert_string_equal(text, "[::1]:6379");
    conn_sockaddr_text((struct sockaddr *)&four, sizeof(four), text);
    assert_string_equal(text, "10.0.0.1:80");
}

static void destroy_closes_all(void **state)
{
    struct server servers[10];
    int fds[10];

    (void)state;
    for (size_t i = 0; i < countof(fds); i++) {
        fds[i] = open_server(&servers[i]);
        say(fds[i], i % 2 == 0 ? "unfinished" : "B3000000\n");
    }
    turns(5);
    loop_destroy(&loop);
    for (size_t i = 0; i < countof(fds); i++) {
        assert_true(servers[i].closed);
        assert_int_equal(servers[i].reason, CONN_CLOSED_LOCAL);
        close(fds[i]);
    }
}

/* Both backends run every test. */
#define FOR(test) cmocka_unit_test_setup_teardown(test, setup_loop, teardown_loop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOR(answers_lines),
        FOR(any_pieces),
        FOR(answers_before_the_end),
        FOR(pause_and_resume),
        FOR(pause_hides_the_end),
        FOR(blocked_pause_sees_the_end),
        FOR(resume_without_pause_calls_again),
        FOR(close_is_the_last_call),
        FOR(last_words_reach_who_still_sends),
        FOR(nobody_may_send_for_ever),
        FOR(few_linger_at_a_time),
        FOR(slow_reader_gets_everything),
        FOR(held_output_is_sent_as_it_is_cleared),
        FOR(drained_is_told_once),
        FOR(reader_that_breaks_off),
        FOR(flush_now),
        FOR(nobody_starves),
        FOR(connects),
        FOR(texts_of_addresses),
        FOR(destroy_closes_all),
    };
    int failed = 0;

    tick_setup();
    kind = LOOP_EPOLL;
    failed += cmocka_run_group_tests_name("epoll", tests, NULL, NULL);
    kind = LOOP_IO_URING; /* where the kernel has it; else epoll once more */
    failed += cmocka_run_group_tests_name("io_uring", tests, NULL, NULL);
    return failed;
}
