/* Parking: one key's stripe is held for a while (DEBUG HOLD). Meanwhile keys of other stripes are served as ever by all
 * workers but the one that holds (it sleeps in the command); what asks for the held key waits, without its worker,
 * keeps the order of its connection, can be killed, and gets the right answers afterwards. Which keys share the held
 * one's stripe nobody can tell from outside, since the hash has a secret: they are found out by a first, short hold. */
#include "conn.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKERS_MOST = 16,
    CONNS = 24,          /* candidates for anything */
    TRAFFIC_MOST = 9,    /* connections that measure */
    KEYS = 100,
    OWN_KEYS = 3,        /* of these: not for measuring */
    SAMPLES_MOST = 1 << 20
};

struct parking {
    int port;
    struct conn holder;
    struct conn conns[CONNS];
    unsigned keys[KEYS]; /* numbers of keys in other stripes */
    unsigned key_count;
    double hold_seconds;
};

/* --- who is where --- */

static int worker_of(struct conn *conn)
{
    return (int)info_number(conn_ask(conn, "INFO clients"), "current_client_thread");
}

/* Sends without waiting; the reply comes later. */
static void post(struct conn *conn, const char *command)
{
    conn_add(conn, "%s", command);
    if (!conn_send(conn))
        die("parking: a connection was closed");
}

/* A string, an integer or a status with this text comes within the time. */
static bool hears(struct conn *conn, const char *text, double seconds)
{
    struct raw reply;
    struct raw string;
    enum got got = conn_read(conn, &reply, seconds);
    char room[200];

    if (got != GOT_REPLY) {
        complain("parking: %s instead of '%s'", got == GOT_CLOSED ? "the end" : "silence", text);
        return false;
    }
    string = raw_string(reply);
    if (string.size == strlen(text) && memcmp(string.data, text, string.size) == 0)
        return true;
    complain("parking: '%s' instead of '%s'", raw_show(reply, room, sizeof(room)), text);
    return false;
}

static bool is_silent(struct conn *conn)
{
    struct raw reply;

    return conn_poll(conn, &reply) == GOT_NOTHING;
}

/* Begins to hold, and returns when `witness`, of another worker, waits for the key. */
static void begin_hold(struct parking *parking, struct conn *witness, const char *key, double seconds)
{
    char line[100];
    struct raw reply;

    snprintf(line, sizeof(line), "DEBUG HOLD %s %g", key, seconds);
    post(&parking->holder, line);
    for (;;) { /* too early it gets its answer */
        snprintf(line, sizeof(line), "EXISTS %s", key);
        post(witness, line);
        if (conn_read(witness, &reply, 0.05) == GOT_NOTHING)
            break;
        if (!is_silent(&parking->holder))
            die("parking: DEBUG HOLD does not hold");
    }
    if (!is_silent(&parking->holder))
        die("parking: DEBUG HOLD is over too soon");
}

/* --- keys in other stripes --- */

static void find_keys(struct parking *parking, struct conn *away)
{
    bool fits[2 * KEYS] = {false};
    static struct conn own[2 * KEYS]; /* pipelines wait as one, hence each question has its own */
    struct raw reply;

    for (unsigned i = 0; i < COUNTOF(own); i++)
        conn_start(&own[i], parking->port, 0);
    for (unsigned i = 0; i < COUNTOF(own); i++)
        own[i].worker = worker_of(&own[i]);
    begin_hold(parking, away, "held", 0.5);
    for (unsigned i = 0; i < COUNTOF(own); i++) {
        char line[40];

        if (own[i].worker == parking->holder.worker)
            continue;
        snprintf(line, sizeof(line), "SET other%u 0", i);
        post(&own[i], line);
    }
    for (uint64_t limit = now_ns() + 200000000ull; now_ns() < limit && is_silent(&parking->holder); sleep_ms(1)) {
        for (unsigned i = 0; i < COUNTOF(own); i++) {
            if (own[i].worker != parking->holder.worker && !fits[i] && conn_poll(&own[i], &reply) == GOT_REPLY)
                fits[i] = true;
        }
    }
    for (unsigned i = 0; i < COUNTOF(own); i++) {
        conn_close(&own[i]);
        if (fits[i] && parking->key_count < KEYS)
            parking->keys[parking->key_count++] = i;
    }
    conn_read(&parking->holder, &reply, reply_limit_seconds);
    conn_read(away, &reply, reply_limit_seconds);
}

/* --- latency --- */

struct latencies {
    float *us;
    size_t count;
    uint64_t served[TRAFFIC_MOST];
    double p50, p99, p999, most;
};

static int compare_floats(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;

    return a < b ? -1 : a > b;
}

static void latencies_finish(struct latencies *latencies)
{
    size_t count = latencies->count;

    if (count == 0)
        return;
    qsort(latencies->us, count, sizeof(*latencies->us), compare_floats);
    latencies->p50 = (double)latencies->us[count / 2];
    latencies->p99 = (double)latencies->us[count * 99 / 100];
    latencies->p999 = (double)latencies->us[count * 999 / 1000];
    latencies->most = (double)latencies->us[count - 1];
}

/* One request after the other on each connection, until the holder has its reply or the time is over. */
static void measure(struct parking *parking, struct conn **conns, unsigned conn_count, double seconds, bool holding,
                    struct chance *chance, struct latencies *latencies)
{
    uint64_t sent_ns[TRAFFIC_MOST], limit = now_ns() + (uint64_t)(seconds * 1e9);
    bool waits[TRAFFIC_MOST] = {false};
    unsigned pending = 0;

    *latencies = (struct latencies){.us = calloc(SAMPLES_MOST, sizeof(*latencies->us))};
    if (latencies->us == NULL)
        die("out of memory");
    for (;;) {
        bool going = now_ns() < limit && latencies->count < SAMPLES_MOST - TRAFFIC_MOST;
        struct pollfd polls[TRAFFIC_MOST];

        if (!going && pending == 0)
            break;
        for (unsigned i = 0; i < conn_count; i++) {
            unsigned key = parking->keys[OWN_KEYS + chance_below(chance, parking->key_count - OWN_KEYS)];
            char line[64];

            polls[i] = (struct pollfd){.fd = conns[i]->fd, .events = POLLIN};
            if (waits[i] || !going)
                continue;
            if (chance_below(chance, 2) == 0)
                snprintf(line, sizeof(line), "GET other%u", key);
            else
                snprintf(line, sizeof(line), "SET other%u %u", key, key);
            sent_ns[i] = now_ns();
            post(conns[i], line);
            waits[i] = true;
            pending++;
        }
        if (poll(polls, conn_count, (int)(reply_limit_seconds * 1000)) == 0)
            die("parking: keys of other stripes got no reply");
        for (unsigned i = 0; i < conn_count; i++) {
            struct raw reply;

            if (polls[i].revents == 0 || !waits[i] || conn_poll(conns[i], &reply) != GOT_REPLY)
                continue;
            latencies->us[latencies->count++] = (float)((double)(now_ns() - sent_ns[i]) / 1e3);
            waits[i] = false;
            pending--;
            latencies->served[i]++;
        }
        if (holding && latencies->count % 1024 == 0 && !is_silent(&parking->holder))
            die("parking: the hold is over before the measurement");
    }
    latencies_finish(latencies);
}

/* --- the part --- */

/* The connection of the pool that is not used yet and sits on a worker that may be asked. */
static struct conn *take_conn(struct parking *parking, int worker)
{
    for (unsigned i = 0; i < CONNS; i++) {
        struct conn *conn = &parking->conns[i];

        if (conn->worker != parking->holder.worker && conn->worker >= 0 && (worker < 0 || conn->worker == worker)) {
            conn->worker = -1 - conn->worker; /* taken */
            return conn;
        }
    }
    return NULL;
}

static struct conn *need_conn(struct parking *parking)
{
    struct conn *conn = take_conn(parking, -1);

    if (conn == NULL)
        die("parking: too few connections sit on other workers than the holder's");
    return conn;
}

static void open_pool(struct parking *parking, int threads)
{
    unsigned seen[WORKERS_MOST] = {0}, workers = 0;

    conn_start(&parking->holder, parking->port, 0);
    parking->holder.worker = worker_of(&parking->holder);
    for (unsigned i = 0; i < CONNS; i++) {
        conn_start(&parking->conns[i], parking->port, 0);
        parking->conns[i].worker = worker_of(&parking->conns[i]);
        if (parking->conns[i].worker >= 0 && parking->conns[i].worker < WORKERS_MOST)
            workers += seen[parking->conns[i].worker]++ == 0;
    }
    check((int)workers == threads, "parking: connections sit on %u of %d workers", workers, threads);
}

static void run_hold(struct parking *parking, const struct options *options)
{
    struct chance chance = chance_make(options->seed, 300);
    struct conn *traffic[TRAFFIC_MOST], *witness = need_conn(parking);
    struct conn *first = need_conn(parking), *second = need_conn(parking), *pipeline = need_conn(parking);
    struct conn *several = need_conn(parking), *victim = need_conn(parking), *gone = need_conn(parking);
    struct conn *transaction = need_conn(parking), *killer = need_conn(parking);
    struct latencies baseline, during;
    unsigned traffic_count = 0, least = UINT32_MAX, busy[WORKERS_MOST] = {0};
    char line[200];
    struct raw reply;
    uint64_t began, hold_ns = (uint64_t)(parking->hold_seconds * 1e9);

    for (unsigned turn = 0; turn < 3; turn++) { /* as many of each worker */
        for (int worker = 0; worker < options->server_threads && traffic_count < TRAFFIC_MOST; worker++) {
            struct conn *conn = take_conn(parking, worker);

            if (conn == NULL)
                continue;
            traffic[traffic_count++] = conn;
            busy[worker]++;
        }
    }
    find_keys(parking, witness);
    check(parking->key_count >= KEYS / 2, "parking: %u keys are in other stripes than the held one",
          parking->key_count);
    if (parking->key_count < KEYS / 2 || traffic_count == 0)
        return;
    measure(parking, traffic, traffic_count, parking->hold_seconds * 0.6, false, &chance, &baseline);

    conn_ask(killer, "SET held 0");
    conn_ask(killer, "SET other%u before", parking->keys[0]);
    began = now_ns();
    begin_hold(parking, witness, "held", parking->hold_seconds);

    post(first, "INCR held");
    post(second, "INCR held");
    snprintf(line, sizeof(line), "SET other%u one", parking->keys[1]);
    post(pipeline, line);
    if (hears(pipeline, "OK", reply_limit_seconds)) { /* alone it is served; behind a parked one it waits */
        snprintf(line, sizeof(line), "GET other%u", parking->keys[1]);
        post(pipeline, "INCRBY held 100");
        post(pipeline, line);
        snprintf(line, sizeof(line), "SET other%u two", parking->keys[1]);
        post(pipeline, line);
        snprintf(line, sizeof(line), "GET other%u", parking->keys[1]);
        post(pipeline, line);
        post(pipeline, "STRLEN held");
    }
    snprintf(line, sizeof(line), "MSET other%u after held2 x held3 y", parking->keys[0]);
    conn_add(several, "MULTI");
    conn_add(several, "%s", line);
    conn_add(several, "GET held");
    conn_add(several, "EXEC");
    conn_send(several);
    post(victim, "SET held killed");
    snprintf(line, sizeof(line), "MGET other%u held", parking->keys[2]);
    post(gone, line);
    conn_add(transaction, "MULTI");
    conn_add(transaction, "INCR held");
    conn_add(transaction, "INCR held");
    conn_add(transaction, "EXEC");
    conn_send(transaction);

    /* What is parked holds nothing: not even the stripes of its other keys. */
    snprintf(line, sizeof(line), "GET other%u", parking->keys[0]);
    post(killer, line);
    check(hears(killer, "before", reply_limit_seconds) && is_silent(&parking->holder),
          "parking: a parked command leaves its other keys to others");
    sleep_ms(30);
    snprintf(line, sizeof(line), "CLIENT KILL ID %lld", (long long)victim->id);
    post(killer, line);
    hears(killer, "1", reply_limit_seconds);
    check(conn_read(victim, &reply, parking->hold_seconds) == GOT_CLOSED && is_silent(&parking->holder),
          "parking: a parked client can be killed");
    conn_reset(gone);

    measure(parking, traffic, traffic_count, parking->hold_seconds * 0.6, false, &chance, &during);
    check(is_silent(&parking->holder), "parking: all that was measured, %zu requests, ended before the hold",
          during.count);
    for (unsigned i = 0; i < traffic_count; i++)
        least = during.served[i] < least ? (unsigned)during.served[i] : least;
    check(least >= 10, "parking: each of %u connections on %d workers was served, at least %u times", traffic_count,
          options->server_threads - 1, least);
    check(is_silent(first) && is_silent(second) && is_silent(witness) && is_silent(pipeline),
          "parking: what needs the held key waits, and so does the pipeline behind it");

    hears(&parking->holder, "OK", reply_limit_seconds);
    check(now_ns() - began >= hold_ns, "parking: the hold took its %g s", parking->hold_seconds);
    {
        int64_t one = -1, other = -1;

        if (conn_read(first, &reply, reply_limit_seconds) == GOT_REPLY)
            one = raw_number(reply);
        if (conn_read(second, &reply, reply_limit_seconds) == GOT_REPLY)
            other = raw_number(reply);
        check(one > 0 && other > 0 && one != other, "parking: both INCR are done: %lld, %lld", (long long)one,
              (long long)other);
    }
    hears(witness, "1", reply_limit_seconds);
    {
        struct raw length;
        bool ordered = conn_read(pipeline, &length, reply_limit_seconds) == GOT_REPLY && raw_is_int(length);

        ordered = ordered && hears(pipeline, "one", reply_limit_seconds) && hears(pipeline, "OK", reply_limit_seconds) &&
                  hears(pipeline, "two", reply_limit_seconds) &&
                  conn_read(pipeline, &length, reply_limit_seconds) == GOT_REPLY && raw_number(length) >= 1;
        check(ordered, "parking: the pipeline's replies are right and in order");
    }
    hears(transaction, "OK", reply_limit_seconds);
    hears(transaction, "QUEUED", reply_limit_seconds);
    hears(transaction, "QUEUED", reply_limit_seconds);
    check(conn_read(transaction, &reply, reply_limit_seconds) == GOT_REPLY && raw_number(reply) == 2 &&
              raw_number(raw_child(reply, 0)) + 1 == raw_number(raw_child(reply, 1)),
          "parking: the parked transaction ran in one piece");
    hears(several, "OK", reply_limit_seconds);
    hears(several, "QUEUED", reply_limit_seconds);
    hears(several, "QUEUED", reply_limit_seconds);
    check(conn_read(several, &reply, reply_limit_seconds) == GOT_REPLY && raw_says(raw_child(reply, 0), "OK"),
          "parking: the transaction over several stripes ran");
    reply = conn_ask(killer, "GET held");
    check(raw_number(reply) == 104, "parking: all but the killed client's command has run: the key is %lld of 104",
          (long long)raw_number(reply));
    post(killer, "GET held2");
    check(hears(killer, "x", reply_limit_seconds) && complaints() == 0, "parking: all replies were right");

    say("parking: hold %g s, %u connections; in us: before p50 %.0f p99 %.0f p99.9 %.0f max %.0f (%zu), during p50 %.0f "
        "p99 %.0f p99.9 %.0f max %.0f (%zu)",
        parking->hold_seconds, traffic_count, baseline.p50, baseline.p99, baseline.p999, baseline.most,
        baseline.count, during.p50, during.p99, during.p999, during.most, during.count);
    if (options->strict)
        check(during.p999 <= baseline.p999 + 4 * 5000,
              "parking: 99.9 %% of requests are delayed by less than 20 ms more than before (wanted: 5 ms)");
    free(baseline.us);
    free(during.us);
}

void part_parking(const struct options *options, double seconds)
{
    static struct parking parking;
    struct server server;

    server_start(&server, options, options->server_threads);
    parking.port = server.port;
    parking.hold_seconds = seconds / 2 < 0.8 ? 0.8 : seconds / 2 > 2 ? 2 : seconds / 2;
    open_pool(&parking, options->server_threads);
    run_hold(&parking, options);
    for (unsigned i = 0; i < CONNS; i++)
        conn_close(&parking.conns[i]);
    conn_close(&parking.holder);
    server_stop(&server, "parking");
}
