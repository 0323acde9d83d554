#include "net/listener.h"

#include "base/compiler.h"
#include "base/tick.h"
#include "net/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static enum loop_kind kind;
static struct loop *loops[2];
static unsigned accepted[2];
static enum listener_kind last_kind;

static void on_accept(struct loop *loop, int fd, const struct sockaddr_storage *peer, socklen_t peer_size,
                      enum listener_kind listener, void *user)
{
    (void)peer;
    (void)peer_size;
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    accepted[loop == loops[1]]++;
    last_kind = listener;
    assert_ptr_equal(user, &accepted);
    close(fd);
}

static int setup_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(loops); i++) {
        loops[i] = loop_create(&(struct loop_options){.kind = kind});
        assert_non_null(loops[i]);
        accepted[i] = 0;
    }
    return 0;
}

static int teardown_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(loops); i++)
        loop_destroy(&loops[i]);
    return 0;
}

static bool open_on(struct listener_group **group, const char *const *addresses, size_t count, int port, char *error)
{
    struct listener_options options = {.kind = LISTENER_TCP,
                                       .addresses = addresses,
                                       .address_count = count,
                                       .port = port,
                                       .loop_count = 2,
                                       .backlog = 511};

    error[0] = '\0';
    return listener_group_open(group, &options, error);
}

static int connect_to(int family, int port)
{
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = family == AF_INET ? connect(fd, (struct sockaddr *)&four, sizeof(four))
                                   : connect(fd, (struct sockaddr *)&six, sizeof(six));

    if (result == 0)
        return fd;
    close(fd);
    return -1;
}

static void attach_both(struct listener_group *group)
{
    for (unsigned i = 0; i < countof(loops); i++)
        assert_true(listener_group_attach(group, loops[i], i, on_accept, &accepted));
}

static void detach_both(struct listener_group *group)
{
    for (unsigned i = 0; i < countof(loops); i++)
        listener_group_detach(group, i);
}

static void turns(int count)
{
    for (int i = 0; i < count; i++)
        for (size_t n = 0; n < countof(loops); n++)
            loop_turn(loops[n], 1000);
}

static void any_loop_accepts(void **state)
{
    static const char *const addresses[] = {"127.0.0.1"};
    struct listener_group *group = NULL;
    char error[LISTENER_ERROR_BYTES];
    int fds[10];

    (void)state;
    assert_true(open_on(&group, addresses, 1, 0, error));
    assert_int_equal(listener_group_kind(group), LISTENER_TCP);
    attach_both(group);
    turns(1);                                             /* work that attaching has queued */
    for (unsigned one = 0; one < countof(loops); one++) { /* ... while the other does not come to it */
        for (size_t i = 0; i < countof(fds); i++) {
            fds[i] = connect_to(AF_INET, listener_group_port(group));
            assert_true(fds[i] >= 0);
        }
        for (int i = 0; i < 5 && accepted[one] < countof(fds); i++)
            loop_turn(loops[one], 1000);
        assert_int_equal(accepted[one], countof(fds));
        for (size_t i = 0; i < countof(fds); i++)
            close(fds[i]);
    }
    detach_both(group);
    listener_group_close(&group);
    assert_null(group);
}

static void second_server_fails(void **state)
{
    static const char *const addresses[] = {"127.0.0.1"};
    struct listener_group *group = NULL;
    struct listener_group *second = NULL;
    char error[LISTENER_ERROR_BYTES];
    char wanted[LISTENER_ERROR_BYTES];
    int port = 0;

    (void)state;
    assert_true(open_on(&group, addresses, 1, 0, error));
    port = listener_group_port(group);
    assert_false(open_on(&second, addresses, 1, port, error));
    assert_null(second);
    snprintf(wanted, sizeof(wanted),
             "Could not create server TCP listening socket 127.0.0.1:%d: bind: Address already in use", port);
    assert_string_equal(error, wanted);
    listener_group_close(&group);
    assert_true(open_on(&second, addresses, 1, port, error)); /* free at once again */
    listener_group_close(&second);
}

/* A port is free as soon as its group is closed, also after connections and with loops that go on. */
static void closed_port_is_free(void **state)
{
    static const char *const addresses[] = {"127.0.0.1"};
    struct listener_group *group = NULL;
    char error[LISTENER_ERROR_BYTES];
    int port = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        int fd = -1;

        if (!open_on(&group, addresses, 1, port, error))
            fail_msg("%s", error);
        port = listener_group_port(group);
        attach_both(group);
        turns(1);
        fd = connect_to(AF_INET, port);
        assert_true(fd >= 0);
        turns(2);
        detach_both(group);
        listener_group_close(&group);
        assert_int_equal(connect_to(AF_INET, port), -1);
        close(fd);
    }
    assert_int_equal(accepted[0] + accepted[1], 20);
}

static void optional_addresses(void **state)
{
    static const char *const absent[] = {"203.0.113.7"};
    static const char *const optional[] = {"127.0.0.1", "-203.0.113.7"};
    static const char *const nonsense[] = {"no.such.name.invalid"};
    struct listener_group *group = NULL;
    char error[LISTENER_ERROR_BYTES];

    (void)state;
    assert_false(open_on(&group, absent, 1, 0, error));
    assert_non_null(strstr(error, "203.0.113.7:0: bind: Cannot assign requested address"));
    assert_true(open_on(&group, optional, 2, 0, error));
    listener_group_close(&group);
    assert_false(open_on(&group, nonsense, 1, 0, error));
    assert_non_null(strstr(error, "no.such.name.invalid"));
}

static void *close_later(void *argument)
{
    (void)usleep(30 * 1000);
    listener_group_close(argument);
    return NULL;
}

static void address_in_use_for_a_while(void **state)
{
    static const char *const addresses[] = {"127.0.0.1"};
    struct listener_options options = {.kind = LISTENER_TCP,
                                       .addresses = addresses,
                                       .address_count = 1,
                                       .loop_count = 1,
                                       .backlog = 5,
                                       .patience_ms = 60 * 1000};
    struct listener_group *first = NULL, *second = NULL, *third = NULL;
    char error[LISTENER_ERROR_BYTES];
    pthread_t thread;

    (void)state;
    assert_true(open_on(&first, addresses, 1, 0, error));
    options.port = listener_group_port(first);
    assert_false(open_on(&third, addresses, 1, options.port, error)); /* at once */
    assert_non_null(strstr(error, "Address already in use"));
    assert_int_equal(pthread_create(&thread, NULL, close_later, &first), 0);
    assert_true(listener_group_open(&second, &options, error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    listener_group_close(&second);
}

static void every_address(void **state)
{
    static const char *const addresses[] = {"*", "-::*"};
    struct listener_group *group = NULL;
    char error[LISTENER_ERROR_BYTES];
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool has_six = probe >= 0 && bind(probe, (struct sockaddr *)&six, sizeof(six)) == 0;
    int four_fd = -1;
    int six_fd = -1;

    (void)state;
    close(probe);
    assert_true(open_on(&group, addresses, 2, 0, error));
    attach_both(group);
    four_fd = connect_to(AF_INET, listener_group_port(group));
    assert_true(four_fd >= 0);
    turns(3);
    assert_int_equal(accepted[0] + accepted[1], 1);
    if (has_six) {
        six_fd = connect_to(AF_INET6, listener_group_port(group));
        assert_true(six_fd >= 0);
        turns(3);
        assert_int_equal(accepted[0] + accepted[1], 2);
    }
    close(four_fd);
    if (six_fd >= 0)
        close(six_fd);
    detach_both(group);
    listener_group_close(&group);
}

static void unix_sockets(void **state)
{
    char path[64];
    struct listener_options options = {.kind = LISTENER_UNIX,
                                       .path = path,
                                       .permissions = 0700,
                                       .loop_count = 2,
                                       .backlog = 5};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct listener_group *group = NULL;
    char error[LISTENER_ERROR_BYTES];
    struct stat info;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    snprintf(path, sizeof(path), "/tmp/listener_test.%d.sock", (int)getpid());
    for (int round = 0; round < 2; round++) /* a file that was left behind is replaced */
        if (round == 0)
            close(open(path, O_CREAT | O_CLOEXEC, 0600));
        else
            assert_true(listener_group_open(&group, &options, error));
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    assert_int_equal(info.st_mode & 0777, 0700);
    attach_both(group);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    turns(3);
    assert_int_equal(accepted[0] + accepted[1], 1);
    assert_int_equal(last_kind, LISTENER_UNIX);
    close(fd);
    detach_both(group);
    listener_group_close(&group);
    assert_int_equal(stat(path, &info), -1);

    options.path = "/no/such/folder/socket";
    assert_false(listener_group_open(&group, &options, error));
    assert_string_equal(error, "Failed opening Unix socket: bind: No such file or directory");
}

/* Without descriptors nothing can be accepted; the loop must sleep, and go on when there are some again. */
static void out_of_descriptors(void **state)
{
    static const char *const addresses[] = {"127.0.0.1"};
    struct listener_group *group = NULL;
    struct rlimit limit;
    struct rlimit tight;
    char error[LISTENER_ERROR_BYTES];
    uint64_t turns_before = 0;
    int fd = -1;

    (void)state;
    assert_true(open_on(&group, addresses, 1, 0, error));
    attach_both(group);
    fd = connect_to(AF_INET, listener_group_port(group));
    assert_true(fd >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    tight = limit;
    tight.rlim_cur = (rlim_t)fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    turns(2);
    assert_int_equal(accepted[0] + accepted[1], 0);
    turns_before = loop_stats(loops[0])->turns;
    for (int i = 0; i < 4; i++)
        loop_turn(loops[0], 10000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(loop_stats(loops[0])->turns, turns_before + 4);
    for (int i = 0; i < 300 && accepted[0] + accepted[1] == 0; i++)
        turns(1);
    assert_int_equal(accepted[0] + accepted[1], 1);
    close(fd);
    detach_both(group);
    listener_group_close(&group);
}

#define FOR(test) cmocka_unit_test_setup_teardown(test, setup_loops, teardown_loops)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOR(any_loop_accepts), FOR(second_server_fails), FOR(closed_port_is_free), FOR(optional_addresses),
        FOR(every_address),    FOR(unix_sockets),        FOR(out_of_descriptors),  FOR(address_in_use_for_a_while),
    };
    int failed = 0;

    tick_setup();
    kind = LOOP_EPOLL;
    failed += cmocka_run_group_tests_name("epoll", tests, NULL, NULL);
    kind = LOOP_IO_URING;
    failed += cmocka_run_group_tests_name("io_uring", tests, NULL, NULL);
    return failed;
}
