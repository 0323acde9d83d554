/* An open-loop load generator: GET and a write at a fixed rate, or at full speed. See usage() for the options.
 *
 * At a fixed rate request number i is due at start + i / rate, whatever happened to those before it. It is sent by the
 * first connection with room in its pipeline; if none has room it waits, and that time is part of its latency, which is
 * measured from when it was due. So a server that stalls for a second shows it in all requests of that second, and not
 * in one. At full speed a connection sends a whole pipeline when the last one is answered, and the latency is measured
 * from then. One thread. */
#include "base/assert.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/tick.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/resp.h"
#include "net/tls.h"

#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

enum { PREFIX_BYTES = 4, KEY_BYTES_MOST = 64, VALUE_COUNT = 16, REFERENCE_BYTES = 2048, PATIENCE_S = 30 };

enum kind { KIND_GET, KIND_WRITE, KIND_COUNT };
enum write { WRITE_SET, WRITE_INCR, WRITE_HSET, WRITE_COUNT };

struct request {
    uint64_t due_ns;
    enum kind kind;
};

struct client {
    struct conn conn;
    struct request *sent; /* a ring of `pipeline` requests that are not answered */
    uint64_t sent_first, sent_count;
    bool open;
};

static struct {
    const char *host, *certificates;
    uint64_t port, connections, pipeline, rate, keys, key_bytes, value_bytes, gets;
    uint64_t count, seconds, warm_up, seed, each_ms;
    enum write write;
    bool sequential, json;
} options = {.host = "127.0.0.1",
             .port = 6379,
             .connections = 50,
             .pipeline = 1,
             .keys = 100000,
             .key_bytes = 16,
             .value_bytes = 64,
             .seed = 1};

static struct loop *loop;
static struct loop_watch alarm_watch; /* on a timerfd: the loop itself waits for whole milliseconds only */
static struct client *clients;
static struct tls_context *tls; /* NULL: plain connections */
static struct blob *values[VALUE_COUNT];
static struct random dice;
static struct histogram latencies[KIND_COUNT], all;
static uint64_t longest_ns;
static uint64_t started_ns, measured_ns, due_count, answered, measured, errors, misses;
static uint64_t open_count, next_client;
static volatile sig_atomic_t told_to_stop; /* by SIGINT or SIGTERM */
static char first_error[200];

static void usage(FILE *to)
{
    fputs("usage: load [option ...]\n"
          "  --host IP            of the server (127.0.0.1)\n"
          "  --port N             (6379)\n"
          "  --tls FOLDER         over TLS, with the folder's ca.crt, client.crt and client.key\n"
          "  --rate N             requests a second; 0 (default): as fast as they are answered\n"
          "  --connections N      (50)\n"
          "  --pipeline N         requests on their way for each connection, at most (1)\n"
          "  --count N            stops after so many requests\n"
          "  --seconds N          stops after so long (10, unless --count is given)\n"
          "  --warm-up N          seconds before measuring begins (0); within --seconds\n"
          "  --keys N             keys are chosen from so many (100000)\n"
          "  --sequential         one after the other, and not at random\n"
          "  --key-size N         bytes of a key: \"key:\" and digits (16)\n"
          "  --value-size N       bytes of a value (64)\n"
          "  --gets N             percent of the requests that are GET, the others are writes (0)\n"
          "  --write COMMAND      of the writes: set (default), incr, or hset of one field\n"
          "  --seed N             of keys, values and the mix (1)\n"
          "  --each MS            also a line for each such period: seconds, requests, longest latency\n"
          "  --json               the result as one line of JSON\n"
          "SIGINT or SIGTERM ends it, too, with the result so far. Latencies are from when a request was due to its "
          "answer.\n",
          to);
}

/* ---- requests */

static void write_key(char *key)
{
    uint64_t number = options.sequential ? due_count % options.keys : random_below(&dice, options.keys);

    memcpy(key, "key:", PREFIX_BYTES);
    for (size_t at = options.key_bytes; at > PREFIX_BYTES; at--, number /= 10)
        key[at - 1] = (char)('0' + number % 10);
}

static void write_command(struct output *output, struct slice begin, const char *key)
{
    output_append(output, begin.data, begin.size);
    resp_write_bulk(output, slice_make(key, options.key_bytes));
}

static void write_value(struct output *output)
{
    struct blob *value = values[random_below(&dice, VALUE_COUNT)];

    resp_write_header(output, '$', (int64_t)options.value_bytes);
    if (options.value_bytes >= REFERENCE_BYTES)
        output_append_blob(output, value, 0, options.value_bytes);
    else
        output_append(output, value->data, options.value_bytes);
    output_append(output, "\r\n", 2);
}

static void write_write(struct output *output, const char *key)
{
    switch (options.write) {
    case WRITE_INCR:
        write_command(output, SLICE("*2\r\n$4\r\nINCR\r\n"), key);
        return;
    case WRITE_HSET:
        write_command(output, SLICE("*4\r\n$4\r\nHSET\r\n"), key);
        resp_write_bulk(output, SLICE("field"));
        break;
    default:
        write_command(output, SLICE("*3\r\n$3\r\nSET\r\n"), key);
        break;
    }
    write_value(output);
}

static void send_request(struct client *client, uint64_t due_ns)
{
    struct output *output = &client->conn.output;
    enum kind kind = options.gets != 0 && random_below(&dice, 100) < options.gets ? KIND_GET : KIND_WRITE;
    char key[KEY_BYTES_MOST];

    assert(client->sent_count < options.pipeline);
    client->sent[(client->sent_first + client->sent_count++) % options.pipeline] = (struct request){.due_ns = due_ns,
                                                                                                    .kind = kind};
    write_key(key);
    if (kind == KIND_GET)
        write_command(output, SLICE("*2\r\n$3\r\nGET\r\n"), key);
    else
        write_write(output, key);
    due_count++;
    conn_write_pending(&client->conn);
}

static bool is_over(uint64_t now_ns)
{
    return told_to_stop || (options.count != 0 && due_count >= options.count) ||
           (options.seconds != 0 && now_ns - started_ns >= options.seconds * NS_PER_S);
}

static uint64_t due_at(uint64_t number)
{
    return started_ns + (number / options.rate) * NS_PER_S + number % options.rate * NS_PER_S / options.rate;
}

/* Full speed: a whole pipeline at once. */
static void refill(struct client *client, uint64_t now_ns)
{
    while (client->sent_count < options.pipeline && !is_over(now_ns))
        send_request(client, now_ns);
}

/* A fixed rate: what is due goes to the connections in turn. Returns when the next request is due. */
static uint64_t send_due(uint64_t now_ns)
{
    for (;;) {
        struct client *client = NULL;
        uint64_t due_ns = due_at(due_count);

        if (due_ns > now_ns || is_over(now_ns))
            return due_ns;
        for (uint64_t tries = 0; client == NULL && tries < options.connections; tries++) {
            struct client *candidate = &clients[next_client++ % options.connections];

            if (candidate->sent_count < options.pipeline)
                client = candidate;
        }
        if (client == NULL)
            return UINT64_MAX; /* an answer comes first */
        send_request(client, due_ns);
    }
}

/* ---- answers */

/* The size of the answer at the beginning of the bytes; 0: it is not complete. */
static size_t answer_size(const char *data, size_t size)
{
    const char *end = memchr(data, '\n', size);
    size_t line, bulk;

    if (end == NULL)
        return 0;
    line = (size_t)(end - data) + 1;
    if (data[0] != '$' || data[1] == '-')
        return line;
    bulk = line + strtoul(data + 1, NULL, 10) + 2;
    return bulk <= size ? bulk : 0;
}

static void count_answer(struct client *client, const char *data, size_t size, uint64_t now_ns)
{
    struct request *request = &client->sent[client->sent_first++ % options.pipeline];
    uint64_t took_ns = now_ns > request->due_ns ? now_ns - request->due_ns : 0;

    client->sent_count--;
    answered++;
    if (data[0] == '-') {
        if (errors++ == 0)
            snprintf(first_error, sizeof(first_error), "%.*s", (int)MIN(size - 2, sizeof(first_error) - 1), data);
    } else if (data[0] == '$' && data[1] == '-') {
        misses++;
    }
    if (request->due_ns < measured_ns)
        return;
    measured++;
    longest_ns = MAX(longest_ns, took_ns);
    histogram_add(&latencies[request->kind], MIN(took_ns, HISTOGRAM_MOST));
    histogram_add(&all, MIN(took_ns, HISTOGRAM_MOST));
}

static size_t on_data(struct conn *conn, char *data, size_t size)
{
    struct client *client = (struct client *)conn;
    uint64_t now_ns = clock_monotonic_ns();
    size_t used = 0, one;

    while (used < size && (one = answer_size(data + used, size - used)) != 0) {
        if (client->sent_count == 0)
            errx(1, "an answer that nobody has asked for: %.*s", (int)MIN(one, 100), data + used);
        count_answer(client, data + used, one, now_ns);
        used += one;
    }
    if (options.rate == 0 && client->sent_count == 0)
        refill(client, now_ns);
    return used;
}

static void on_open(struct conn *conn)
{
    struct client *client = (struct client *)conn;

    client->open = true;
    open_count++;
}

static void on_closed(struct conn *conn, enum conn_close_reason reason, const char *detail)
{
    struct client *client = (struct client *)conn;

    if (reason != CONN_CLOSED_LOCAL)
        errx(1, "%s: %s", client->open ? "a connection was lost" : "cannot connect", detail);
}

static const struct conn_handler handler = {.on_data = on_data, .on_open = on_open, .on_closed = on_closed};

/* ---- the run */

static void stop(int number)
{
    (void)number;
    told_to_stop = 1;
}

static void read_certificates(void)
{
    enum { PATH_BYTES = 4096 };
    static const char *const names[] = {"ca.crt", "client.crt", "client.key"};
    char paths[3][PATH_BYTES];
    char error[TLS_ERROR_BYTES];

    if (options.certificates == NULL)
        return;
    for (int i = 0; i < 3; i++)
        snprintf(paths[i], PATH_BYTES, "%s/%s", options.certificates, names[i]);
    if (!tls_context_create(
            &(struct tls_options){.ca_cert_file = paths[0], .cert_file = paths[1], .key_file = paths[2]}, NULL, &tls,
            error))
        errx(1, "%s", error);
}

static void open_clients(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port)};
    uint64_t give_up_ns = clock_monotonic_ns() + PATIENCE_S * NS_PER_S;

    if (inet_pton(AF_INET, options.host, &address.sin_addr) != 1)
        errx(2, "%s is no IPv4 address", options.host);
    clients = mem_alloc_zero(options.connections * sizeof(*clients));
    for (uint64_t i = 0; i < options.connections; i++) {
        clients[i].sent = mem_alloc_zero(options.pipeline * sizeof(*clients[i].sent));
        if (!conn_connect(loop, &clients[i].conn, (struct sockaddr *)&address, sizeof(address), NULL, 0, &handler, tls,
                          NULL))
            err(1, "cannot connect");
    }
    while (open_count < options.connections) {
        if (clock_monotonic_ns() > give_up_ns)
            errx(1, "%d s were not enough to connect", PATIENCE_S);
        loop_turn(loop, 100000);
    }
}

static void make_values(void)
{
    for (int i = 0; i < VALUE_COUNT; i++) {
        values[i] = blob_create(options.value_bytes);
        for (uint64_t at = 0; at < options.value_bytes; at++)
            values[i]->data[at] = (char)('a' + random_below(&dice, 26));
    }
}

static void report_period(uint64_t now_ns)
{
    static uint64_t next_ns, answered_before;

    if (options.each_ms == 0 || now_ns < next_ns)
        return;
    if (next_ns != 0) {
        printf("%.3f %llu %.3f\n", (double)(now_ns - started_ns) / 1e9,
               (unsigned long long)(answered - answered_before), (double)longest_ns / 1e6);
        fflush(stdout);
    }
    answered_before = answered;
    next_ns = now_ns + options.each_ms * NS_PER_MS;
}

static void on_alarm(struct loop *its_loop, struct loop_watch *watch)
{
    uint64_t times;

    (void)its_loop;
    if (read(watch->fd, &times, sizeof(times)) < 0)
        err(1, "timerfd");
}

static void setup_alarm(void)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

    if (fd < 0 || !loop_watch_start(loop, &alarm_watch, fd, on_alarm))
        err(1, "timerfd");
}

/* Waits until this time at most. */
static void turn_until(uint64_t until_ns, uint64_t now_ns)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S)}};

    if (until_ns <= now_ns) {
        loop_turn(loop, 0);
        return;
    }
    if (timerfd_settime(alarm_watch.fd, TFD_TIMER_ABSTIME, &when, NULL) != 0)
        err(1, "timerfd");
    loop_turn(loop, -1);
}

/* Returns when the last answer came. */
static uint64_t run(void)
{
    uint64_t now_ns, next_ns = UINT64_MAX, give_up_ns;

    started_ns = clock_monotonic_ns();
    measured_ns = started_ns + options.warm_up * NS_PER_S;
    if (options.rate == 0) {
        for (uint64_t i = 0; i < options.connections; i++)
            refill(&clients[i], started_ns);
    }
    while (now_ns = clock_monotonic_ns(), !is_over(now_ns)) {
        uint64_t until_ns = options.seconds != 0 ? started_ns + options.seconds * NS_PER_S : UINT64_MAX;

        if (options.rate != 0)
            next_ns = send_due(now_ns);
        report_period(now_ns);
        turn_until(MIN(MIN(until_ns, next_ns), now_ns + NS_PER_S / 10), now_ns);
    }
    give_up_ns = now_ns + PATIENCE_S * NS_PER_S;
    while (answered < due_count && clock_monotonic_ns() < give_up_ns)
        loop_turn(loop, 100000);
    if (answered < due_count)
        errx(1, "%llu requests were not answered within %d s", (unsigned long long)(due_count - answered), PATIENCE_S);
    return clock_monotonic_ns();
}

static double ms(const struct histogram *histogram, double percent)
{
    return (double)histogram_percentile(histogram, percent) / 1e6;
}

static void report(uint64_t ended_ns)
{
    static const char *const names[KIND_COUNT] = {"get", "set"};
    double seconds = (double)(ended_ns - measured_ns) / 1e9;

    if (options.json) {
        printf("{\"requests\": %llu, \"measured\": %llu, \"seconds\": %.4f, \"rate\": %.1f, \"errors\": %llu, "
               "\"misses\": %llu, \"p50\": %.4f, \"p99\": %.4f, \"p99.9\": %.4f, \"max\": %.4f}\n",
               (unsigned long long)answered, (unsigned long long)measured, seconds, (double)measured / seconds,
               (unsigned long long)errors, (unsigned long long)misses, ms(&all, 50), ms(&all, 99), ms(&all, 99.9),
               (double)longest_ns / 1e6);
    } else {
        printf("%llu requests in %.3f s, %.0f requests/s, p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, max %.3f ms\n",
               (unsigned long long)measured, seconds, (double)measured / seconds, ms(&all, 50), ms(&all, 99),
               ms(&all, 99.9), (double)longest_ns / 1e6);
        for (int i = 0; i < KIND_COUNT; i++) {
            if (histogram_count(&latencies[i]) != 0 && histogram_count(&latencies[i]) != measured)
                printf("  %s: %llu, p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms\n", names[i],
                       (unsigned long long)histogram_count(&latencies[i]), ms(&latencies[i], 50), ms(&latencies[i], 99),
                       ms(&latencies[i], 99.9));
        }
    }
    if (errors != 0)
        fprintf(stderr, "%llu errors, the first: %s\n", (unsigned long long)errors, first_error);
}

/* ---- options */

static uint64_t number_of(const char *name, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || number < least || number > most)
        errx(2, "--%s wants a number from %llu to %llu", name, (unsigned long long)least, (unsigned long long)most);
    return number;
}

static enum write write_of(const char *text)
{
    static const char *const names[WRITE_COUNT] = {"set", "incr", "hset"};

    for (unsigned i = 0; i < WRITE_COUNT; i++) {
        if (strcmp(text, names[i]) == 0)
            return (enum write)i;
    }
    errx(2, "--write wants set, incr or hset");
}

static void read_options(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint64_t *into;
        uint64_t least, most;
    } numbers[] = {
        {"port", &options.port, 1, 65535},
        {"rate", &options.rate, 0, 100000000},
        {"connections", &options.connections, 1, 100000},
        {"pipeline", &options.pipeline, 1, 100000},
        {"count", &options.count, 1, UINT64_MAX},
        {"seconds", &options.seconds, 1, 1000000},
        {"warm-up", &options.warm_up, 0, 1000000},
        {"keys", &options.keys, 1, UINT64_MAX},
        {"key-size", &options.key_bytes, PREFIX_BYTES + 1, KEY_BYTES_MOST},
        {"value-size", &options.value_bytes, 0, 512 << 20},
        {"gets", &options.gets, 0, 100},
        {"seed", &options.seed, 0, UINT64_MAX},
        {"each", &options.each_ms, 1, 1000000},
    };
    enum { NUMBERS = (int)(sizeof(numbers) / sizeof(numbers[0])) };
    struct option known[NUMBERS + 7] = {{0}};
    int index, got, count = 0;

    for (; count < NUMBERS; count++)
        known[count] = (struct option){.name = numbers[count].name, .has_arg = required_argument};
    known[count++] = (struct option){.name = "host", .has_arg = required_argument, .val = 'h'};
    known[count++] = (struct option){.name = "tls", .has_arg = required_argument, .val = 't'};
    known[count++] = (struct option){.name = "write", .has_arg = required_argument, .val = 'w'};
    known[count++] = (struct option){.name = "sequential", .val = 's'};
    known[count++] = (struct option){.name = "json", .val = 'j'};
    known[count] = (struct option){.name = "help", .val = '?' + 1};
    while ((got = getopt_long(argc, argv, "", known, &index)) != -1) {
        if (got == 0)
            *numbers[index].into = number_of(numbers[index].name, optarg, numbers[index].least, numbers[index].most);
        else if (got == 'h')
            options.host = optarg;
        else if (got == 't')
            options.certificates = optarg;
        else if (got == 'w')
            options.write = write_of(optarg);
        else if (got == 's')
            options.sequential = true;
        else if (got == 'j')
            options.json = true;
        else
            usage(got == '?' ? stderr : stdout), exit(got == '?' ? 2 : 0);
    }
    if (optind != argc)
        usage(stderr), exit(2);
    if (options.count == 0 && options.seconds == 0)
        options.seconds = 10;
}

int main(int argc, char **argv)
{
    uint64_t ended_ns;

    read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    tick_setup();
    random_seed(&dice, options.seed);
    loop = loop_create(&(struct loop_options){.kind = LOOP_EPOLL});
    if (loop == NULL)
        err(1, "no event loop");
    setup_alarm();
    make_values();
    read_certificates();
    open_clients();
    ended_ns = run();
    report(ended_ns);
    return errors != 0;
}
