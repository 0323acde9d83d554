/* Stress tests of a server with several worker threads: random load from many connections, whose results are checked
 * against the possible results of a server with one thread; see the top of each part's file. */
#include "conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMPLAINTS_SHOWN_MOST = 20, LOG_LINES_SHOWN = 40 };

static unsigned passed, failed;
static _Atomic uint64_t complaint_count;
static uint64_t complaints_shown;
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;
static struct server *current_server;

/* --- results --- */

static void print_line(const char *head, const char *format, va_list arguments) PRINTF(2, 0);
static void print_line(const char *head, const char *format, va_list arguments)
{
    pthread_mutex_lock(&print_lock);
    fputs(head, stdout);
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&print_lock);
}

void check(bool ok, const char *format, ...)
{
    va_list arguments;

    if (ok)
        passed++;
    else
        failed++;
    va_start(arguments, format);
    print_line(ok ? "  ok    " : "  FAIL  ", format, arguments);
    va_end(arguments);
}

void say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_line("        ", format, arguments);
    va_end(arguments);
}

void complain(const char *format, ...)
{
    va_list arguments;

    if (atomic_fetch_add(&complaint_count, 1) >= COMPLAINTS_SHOWN_MOST)
        return;
    va_start(arguments, format);
    print_line("  wrong ", format, arguments);
    va_end(arguments);
}

uint64_t complaints(void)
{
    uint64_t count = atomic_load(&complaint_count), since = count - complaints_shown;

    complaints_shown = count;
    return since;
}

static void show_log(const char *path)
{
    char command[700];

    snprintf(command, sizeof(command), "tail -n %d '%s' | sed 's/^/    log | /'", LOG_LINES_SHOWN, path);
    fflush(stdout);
    if (system(command) != 0)
        say("(no log at %s)", path);
}

static void print_totals(void)
{
    printf("%u passed, %u failed\n", passed, failed);
    fflush(stdout);
}

void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_line("  FAIL  ", format, arguments);
    va_end(arguments);
    failed++;
    if (current_server != NULL) {
        if (server_is_alive(current_server)) {
            say("the server is still running; it is ended");
            kill(current_server->pid, SIGCONT);
            kill(current_server->pid, SIGKILL);
        }
        show_log(current_server->log_path);
    }
    print_totals();
    _exit(1);
}

/* --- time and chance --- */

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sleep_ms(double ms)
{
    struct timespec time = {.tv_sec = (time_t)(ms / 1000)};

    time.tv_nsec = (long)((ms - (double)time.tv_sec * 1000) * 1e6);
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        ;
}

struct chance chance_make(uint64_t seed, uint64_t stream)
{
    struct chance chance = {seed * 0x9E3779B97F4A7C15u + stream * 0xD1B54A32D192ED03u + 1};

    chance_next(&chance);
    return chance;
}

uint64_t chance_next(struct chance *chance)
{
    uint64_t mixed = chance->state += 0x9E3779B97F4A7C15u;

    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

uint32_t chance_below(struct chance *chance, uint32_t limit)
{
    return (uint32_t)(((chance_next(chance) >> 32) * limit) >> 32);
}

/* --- the server --- */

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    /* Below the range for ports of clients, so that no client takes it between here and there. */
    for (int tries = 0; tries < 1000; tries++) {
        int port = 12000 + (int)((now_ns() / 1000 + (uint64_t)getpid() * 7919) % 18000);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_free;

        address.sin_port = htons((uint16_t)port);
        is_free = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
        close(fd);
        if (is_free)
            return port;
    }
    die("no port is free");
}

/* The sanitizers' own libraries need not come before it. */
static void preload(const char *library)
{
    const char *given = getenv("ASAN_OPTIONS");
    char asan[1000];

    snprintf(asan, sizeof(asan), "verify_asan_link_order=0:%s", given != NULL ? given : "");
    setenv("ASAN_OPTIONS", asan, 1);
    setenv("LD_PRELOAD", library, 1);
}

static void run_server(const struct server *server, const struct options *options, int threads)
{
    char port[16], count[16];
    int log = open(server->log_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (log < 0)
        _exit(126);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (options->preload != NULL)
        preload(options->preload);
    snprintf(port, sizeof(port), "%d", server->port);
    snprintf(count, sizeof(count), "%d", threads);
    execl(options->server, options->server, "--port", port, "--bind", "127.0.0.1", "--server-threads", count, "--save",
          "", "--dbfilename", "none.rdb", "--dir", options->dir != NULL ? options->dir : ".", "--enable-debug-command",
          "yes", "--min-clients-per-thread", "0", (char *)NULL);
    _exit(127);
}

/* The process itself answers there, not another one that was faster to take the port. */
static bool is_ours(struct server *server)
{
    struct conn conn;
    bool ours = false;

    if (!conn_open(&conn, server->port))
        return false;
    conn_add(&conn, "INFO server");
    if (conn_send(&conn)) {
        struct raw reply;

        ours = conn_read(&conn, &reply, 5) == GOT_REPLY && info_number(reply, "process_id") == server->pid;
    }
    conn_close(&conn);
    return ours;
}

void server_start(struct server *server, const struct options *options, int threads)
{
    static unsigned number;

    *server = (struct server){.port = free_port(), .outer = current_server};
    snprintf(server->log_path, sizeof(server->log_path), "%s/server-%d-%u.log", options->folder, (int)getpid(),
             ++number);
    fflush(stdout);
    server->pid = fork();
    if (server->pid < 0)
        die("fork: %s", strerror(errno));
    if (server->pid == 0)
        run_server(server, options, threads);
    current_server = server;
    for (uint64_t limit = now_ns() + 30ull * 1000000000; !is_ours(server); sleep_ms(20)) {
        if (!server_is_alive(server) || now_ns() > limit)
            die("the server does not start: %s", options->server);
    }
}

bool server_is_spread(struct conn *conn, int threads)
{
    struct raw info = conn_ask(conn, "INFO clients");
    bool all = true;

    for (int i = 0; i < threads; i++) {
        char field[40];

        snprintf(field, sizeof(field), "thread_%d_clients", i);
        all = all && info_number(info, field) > 0;
    }
    return all;
}

bool server_is_alive(struct server *server)
{
    siginfo_t info = {0};

    return server->pid > 0 && waitid(P_PID, (id_t)server->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

void server_stop(struct server *server, const char *part)
{
    struct conn conn;
    int status = -1;

    if (conn_open(&conn, server->port)) {
        conn_add(&conn, "SHUTDOWN NOSAVE");
        conn_send(&conn);
    }
    for (uint64_t limit = now_ns() + 60ull * 1000000000; server_is_alive(server); sleep_ms(10)) {
        if (now_ns() > limit) {
            complain("%s: SHUTDOWN takes longer than a minute", part);
            kill(server->pid, SIGKILL);
            break;
        }
    }
    conn_close(&conn);
    waitpid(server->pid, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: SHUTDOWN ends the server, exit code 0 (is: %s %d)", part,
          WIFEXITED(status) ? "code" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        show_log(server->log_path);
    else
        unlink(server->log_path);
    current_server = server->outer;
    server->pid = 0;
}

/* --- threads --- */

struct thread_start {
    thread_fn *run;
    void *context;
    unsigned index;
};

static void *thread_main(void *argument)
{
    struct thread_start *start = argument;

    start->run(start->context, start->index);
    return NULL;
}

void threads_run(unsigned count, thread_fn *run, void *context)
{
    pthread_t threads[64];
    struct thread_start starts[64];

    for (unsigned i = 0; i < count; i++) {
        starts[i] = (struct thread_start){run, context, i};
        if (pthread_create(&threads[i], NULL, thread_main, &starts[i]) != 0)
            die("pthread_create failed");
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* --- the program --- */

static const struct part {
    const char *name;
    void (*run)(const struct options *options, double seconds);
    double share; /* of the time */
} parts[] = {
    {"linear", part_linear, 0.22},     {"invariants", part_invariants, 0.15},
    {"replica", part_replica, 0.14},   {"parking", part_parking, 0.11},
    {"gate", part_gate, 0.10},         {"waiting", part_waiting, 0.08},
    {"messages", part_messages, 0.08}, {"told", part_told, 0.10},
    {"leaks", part_leaks, 0.10},       {"lifetimes", part_lifetimes, 0.10},
    {"follower", part_follower, 0.14}, {"switches", part_switches, 0.10},
};

static unsigned part_index(const char *name)
{
    for (unsigned i = 0; i < COUNTOF(parts); i++) {
        if (strcmp(parts[i].name, name) == 0)
            return i;
    }
    fprintf(stderr, "there is no part '%s'\n", name);
    exit(2);
}

int main(int count, char **args)
{
    struct options options = {.folder = "build/stress", .seconds = 10, .seed = 1, .server_threads = 4};
    unsigned wanted = 0;
    double share = 0;

    for (int i = 1; i < count; i += 2) {
        const char *value = args[i + 1];

        if (value == NULL || strncmp(args[i], "--", 2) != 0) {
            fprintf(stderr, "see the top of tests/stress/run\n");
            return 2;
        }
        if (strcmp(args[i], "--server") == 0)
            options.server = value;
        else if (strcmp(args[i], "--folder") == 0)
            options.folder = value;
        else if (strcmp(args[i], "--seconds") == 0)
            options.seconds = atof(value);
        else if (strcmp(args[i], "--seed") == 0)
            options.seed = strtoull(value, NULL, 10);
        else if (strcmp(args[i], "--threads") == 0)
            options.server_threads = atoi(value);
        else if (strcmp(args[i], "--part") == 0)
            wanted |= 1u << part_index(value);
        else {
            fprintf(stderr, "unknown option %s\n", args[i]);
            return 2;
        }
    }
    if (options.server == NULL || access(options.server, X_OK) != 0) {
        printf("  FAIL  there is no server '%s'\n0 passed, 1 failed\n", options.server != NULL ? options.server : "");
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    options.strict = options.seconds >= 60;
    for (unsigned i = 0; i < COUNTOF(parts); i++) {
        if (wanted == 0 || (wanted >> i & 1) != 0)
            share += parts[i].share;
    }
    printf("stress: %s, %d threads, %g s, seed %llu\n", options.server, options.server_threads, options.seconds,
           (unsigned long long)options.seed);
    for (unsigned i = 0; i < COUNTOF(parts); i++) {
        if (wanted == 0 || (wanted >> i & 1) != 0)
            parts[i].run(&options, options.seconds * parts[i].share / share);
    }
    print_totals();
    return failed == 0 ? 0 : 1;
}
