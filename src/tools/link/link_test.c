#include "tools/link/link.h"

#include "base/mem.h"
#include "base/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* A server for one connection: it reads until `expected` bytes have come, says `answer`, and closes the connection once
 * the client has done so, or at once. */
struct server {
    int listener;
    int port;
    size_t expected;
    const char *answer;
    size_t answer_size;
    size_t piece; /* sends so many bytes at a time; 0: all */
    bool closes;
    char *received;
    size_t received_size;
    pthread_t thread;
};

static void say(int socket, const struct server *server)
{
    size_t piece = server->piece != 0 ? server->piece : server->answer_size;

    for (size_t at = 0; at < server->answer_size; at += piece)
        if (send(socket, server->answer + at, MIN(piece, server->answer_size - at), MSG_NOSIGNAL) < 0)
            return;
}

static void *serve(void *argument)
{
    struct server *server = argument;
    int socket = accept(server->listener, NULL, NULL);
    char buffer[65536];
    ssize_t count = 1;

    server->received = mem_alloc(server->expected + sizeof(buffer));
    while (count > 0 && server->received_size < server->expected) {
        count = recv(socket, buffer, sizeof(buffer), 0);
        if (count > 0 && server->received_size < server->expected) {
            memcpy(server->received + server->received_size, buffer, (size_t)count);
            server->received_size += (size_t)count;
        }
    }
    say(socket, server);
    while (!server->closes && recv(socket, buffer, sizeof(buffer), 0) > 0)
        ;
    close(socket);
    return NULL;
}

static void server_start(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server->listener, 1), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void server_end(struct server *server)
{
    pthread_join(server->thread, NULL);
    close(server->listener);
    mem_free(server->received);
}

static struct link *opened(const struct server *server)
{
    struct link *link = link_create();
    const struct link_target target = {.host = "127.0.0.1", .port = server->port};

    assert_int_equal(link_open(link, &target), STATUS_OK);
    assert_true(link_is_open(link));
    return link;
}

static void a_command_is_sent_and_its_reply_taken(void **state)
{
    const struct slice words[] = {SLICE("GET"), SLICE("a\0b")};

    (void)state;
    for (size_t piece = 0; piece < 3; piece++) {
        struct server server = {.expected = 22, .answer = "$3\r\nx\0y\r\n", .answer_size = 9, .piece = piece};
        struct link *link;
        struct resp_reply *reply = NULL;

        server_start(&server);
        link = opened(&server);
        assert_int_equal(link_call(link, words, 2, &reply), STATUS_OK);
        assert_int_equal(reply->type, RESP_TYPE_BULK);
        assert_memory_equal(reply->text, "x\0y", 3);
        assert_int_equal(link_received_bytes(link), 9);
        resp_reply_destroy(&reply);
        assert_int_equal(link_receive(link, 1, &reply), STATUS_TIMEOUT);
        assert_true(link_is_open(link));
        link_destroy(&link);
        server_end(&server);
    }
}

static uint32_t pushes_seen;

static void see_push(const struct resp_reply *push, void *user)
{
    assert_int_equal(push->type, RESP_TYPE_PUSH);
    assert_ptr_equal(user, &pushes_seen);
    pushes_seen++;
}

static void pushes_go_to_their_function(void **state)
{
    struct server server = {.answer = ">1\r\n:1\r\n+a\r\n>1\r\n:2\r\n+b\r\n", .answer_size = 24};
    struct resp_reply *reply = NULL;
    struct link *link;

    (void)state;
    server_start(&server);
    link = opened(&server);
    link_set_push(link, see_push, &pushes_seen);
    assert_int_equal(link_receive(link, LINK_FOREVER, &reply), STATUS_OK);
    assert_string_equal(reply->text, "a");
    assert_int_equal(pushes_seen, 1);
    resp_reply_destroy(&reply);
    link_set_push(link, NULL, NULL);
    assert_int_equal(link_receive(link, LINK_FOREVER, &reply), STATUS_OK);
    assert_int_equal(reply->type, RESP_TYPE_PUSH);
    resp_reply_destroy(&reply);
    link_destroy(&link);
    server_end(&server);
}

static void last_words_are_heard(void **state)
{
    static const struct slice ping = SLICE("PING");
    struct server server = {.answer = "-ERR full\r\n", .answer_size = 11, .closes = true};
    struct resp_reply *reply = NULL;
    struct link *link;

    (void)state;
    server_start(&server);
    link = opened(&server);
    pthread_join(server.thread, NULL); /* it is closed now */
    for (int i = 0; i < 3; i++) {
        link_send(link, &ping, 1);
        assert_int_equal(link_flush(link), STATUS_OK);
    }
    assert_int_equal(link_receive(link, LINK_FOREVER, &reply), STATUS_OK);
    assert_string_equal(reply->text, "ERR full");
    resp_reply_destroy(&reply);
    assert_int_equal(link_receive(link, LINK_FOREVER, &reply), STATUS_CLOSED);
    assert_string_equal(link_error(link), "Server closed the connection");
    assert_false(link_is_open(link));
    assert_int_equal(link_call(link, &ping, 1, &reply), STATUS_CLOSED);
    link_destroy(&link);
    close(server.listener);
    mem_free(server.received);
}

static void what_is_no_reply_closes_the_link(void **state)
{
    const char *const answers[] = {"@\r\n", "$99999999999\r\n", "*9999999999\r\n", ":x\r\n", "$1\r\nabc", "%-5\r\n"};

    (void)state;
    for (size_t i = 0; i < countof(answers); i++) {
        struct server server = {.answer = answers[i], .answer_size = strlen(answers[i])};
        struct resp_reply *reply = NULL;
        struct link *link;

        server_start(&server);
        link = opened(&server);
        assert_int_equal(link_receive(link, LINK_FOREVER, &reply), STATUS_CORRUPT);
        assert_null(reply);
        assert_non_null(strstr(link_error(link), "Protocol error"));
        assert_false(link_is_open(link));
        link_destroy(&link);
        server_end(&server);
    }
}

static void a_pipeline_and_its_replies_do_not_wait_for_each_other(void **state)
{
    enum { BYTES = 16 * 1024 * 1024 };
    char *large = mem_alloc_zero(BYTES);
    char *answer = mem_alloc(BYTES + 32);
    struct server server = {.expected = 1};
    struct slice word = slice_make(large, BYTES);
    struct resp_reply *reply = NULL;
    struct link *link;
    int head;

    (void)state;
    head = sprintf(answer, "$%d\r\n", BYTES);
    memset(answer + head, 'x', BYTES);
    memcpy(answer + head + BYTES, "\r\n", 2);
    server.answer = answer;
    server.answer_size = (size_t)head + BYTES + 2; /* it says all this before it reads on */
    server_start(&server);
    link = opened(&server);
    assert_int_equal(link_call(link, &word, 1, &reply), STATUS_OK);
    assert_int_equal(reply->size, BYTES);
    resp_reply_destroy(&reply);
    link_destroy(&link);
    server_end(&server);
    mem_free(large);
    mem_free(answer);
}

static void raw_bytes_follow_a_reply(void **state)
{
    struct server server = {.answer = "+OK\r\nrest", .answer_size = 9};
    struct resp_reply *reply = NULL;
    struct link *link;
    char bytes[16];
    size_t size = 0;

    (void)state;
    server_start(&server);
    link = opened(&server);
    assert_int_equal(link_receive(link, LINK_FOREVER, &reply), STATUS_OK);
    resp_reply_destroy(&reply);
    for (size_t got = 0; got < 4; got += size) {
        assert_int_equal(link_read(link, LINK_FOREVER, bytes + got, 3, &size), STATUS_OK);
        assert_true(size > 0);
    }
    assert_memory_equal(bytes, "rest", 4);
    assert_int_equal(link_read(link, 1, bytes, 3, &size), STATUS_TIMEOUT);
    link_destroy(&link);
    server_end(&server);
}

static void greeting_stops_where_it_is_refused(void **state)
{
    const char answer[] = "+OK\r\n%1\r\n+proto\r\n:3\r\n-ERR DB index is out of range\r\n";
    struct server server = {.answer = answer, .answer_size = sizeof(answer) - 1};
    struct link_target target = {.host = "127.0.0.1", .user = "me", .password = "p", .proto = 3, .database = 99};
    enum link_step step;
    struct link *link = link_create();

    (void)state;
    server_start(&server);
    target.port = server.port;
    assert_int_equal(link_open(link, &target), STATUS_OK);
    assert_int_equal(link_greet(link, &target, &step), STATUS_DENIED);
    assert_int_equal(step, LINK_STEP_SELECT);
    assert_string_equal(link_error(link), "ERR DB index is out of range");
    assert_true(link_is_open(link));
    link_destroy(&link);
    server_end(&server);
}

static void a_connection_that_fails_says_why(void **state)
{
    const struct link_target nobody = {.host = "127.0.0.1", .port = 1};
    const struct link_target no_file = {.socket_path = "/nonexistent/socket"};
    const struct link_target nowhere = {.host = "nowhere.invalid", .port = 1};
    struct link_target long_path = {0};
    struct link *link = link_create();
    char path[300];

    (void)state;
    assert_int_equal(link_open(link, &nobody), STATUS_IO);
    assert_string_equal(link_error(link), strerror(ECONNREFUSED));
    assert_int_equal(link_open(link, &no_file), STATUS_IO);
    assert_string_equal(link_error(link), strerror(ENOENT));
    assert_int_equal(link_open(link, &nowhere), STATUS_NOT_FOUND);
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    long_path.socket_path = path;
    assert_int_equal(link_open(link, &long_path), STATUS_INVALID);
    assert_false(link_is_open(link));
    link_destroy(&link);
    link_destroy(&link);
}

static void a_handshake_with_who_speaks_no_tls_fails(void **state)
{
    struct server server = {.expected = 1, .answer = "-ERR what?\r\n", .answer_size = 12, .closes = true};
    const struct link_tls tls = {.insecure = true};
    const struct link_tls no_file = {.ca_file = "/nonexistent"};
    struct link_target target = {.host = "127.0.0.1", .tls = &tls};
    struct link *link = link_create();

    (void)state;
    server_start(&server);
    target.port = server.port;
    assert_int_equal(link_open(link, &target), STATUS_UNSUPPORTED);
    assert_true(link_is_tls_error(link));
    server_end(&server);
    server = (struct server){.answer = ""};
    server_start(&server);
    target.port = server.port;
    target.tls = &no_file;
    assert_int_equal(link_open(link, &target), STATUS_UNSUPPORTED);
    assert_non_null(strstr(link_error(link), "Failed to load CA Certificate"));
    link_destroy(&link);
    server_end(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_is_sent_and_its_reply_taken),
        cmocka_unit_test(pushes_go_to_their_function),
        cmocka_unit_test(last_words_are_heard),
        cmocka_unit_test(what_is_no_reply_closes_the_link),
        cmocka_unit_test(a_pipeline_and_its_replies_do_not_wait_for_each_other),
        cmocka_unit_test(raw_bytes_follow_a_reply),
        cmocka_unit_test(greeting_stops_where_it_is_refused),
        cmocka_unit_test(a_connection_that_fails_says_why),
        cmocka_unit_test(a_handshake_with_who_speaks_no_tls_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
