/* Parking: one key's stripe is held (DEBUG HOLD, until RELEASE). Meanwhile keys of other stripes are served as ever by
 * all workers (a background thread holds it); what asks for the held key waits, without its worker, keeps the order of
 * its connection, can be killed, and gets the right answers afterwards. Which keys share the held one's stripe nobody
 * can tell from outside, since the hash has a secret: they are found out by a first hold. */
#include "conn.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKERS_MOST = 16,
    CONNS = 24,       /* candidates for anything */
    TRAFFIC_MOST = 9, /* connections that measure */
    KEYS = 100,
    OWN_KEYS = 3,    /* of these: excluded from measurements */
    HELD_ASKERS = 7, /* commands that ask_for_held sends and that wait */
    SAMPLES_MOST = 1 << 20
};

struct parking {
    int port;
    struct conn holder;
    struct conn conns[CONNS];
    unsigned keys[KEYS]; /* numbers of keys in other stripes */
    unsigned key_count;
    double measure_seconds;
};

/* --- talking --- */

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

/* Checks that there are so many replies, of MULTI and its queued commands, and no more. */
static bool is_silent_after(struct conn *conn, unsigned replies)
{
    struct raw reply;

    for (unsigned i = 0; i < replies; i++) {
        if (conn_read(conn, &reply, reply_limit_seconds) != GOT_REPLY || !raw_says(reply, i == 0 ? "OK" : "QUEUED"))
            return false;
    }
    return conn_is_silent(conn);
}

/* Begins to hold until DEBUG RELEASE, and returns when `witness`, of another worker, waits for the key. */
static void begin_hold(struct parking *parking, struct conn *witness, struct conn *director, const char *key)
{
    int64_t before = conn_lock_waits(director);

    conn_post(&parking->holder, "DEBUG HOLD %s %g", key, 2 * reply_limit_seconds);
    conn_post(witness, "EXISTS %s", key);
    while (conn_lock_waits(director) == before) {
        if (!conn_is_silent(&parking->holder))
            die("parking: DEBUG HOLD does not hold");
        if (!conn_is_silent(witness)) /* too early it gets its answer */
            conn_post(witness, "EXISTS %s", key);
    }
}

static void end_hold(struct parking *parking, struct conn *director)
{
    conn_post(director, "DEBUG RELEASE HOLD");
    hears(director, "OK", reply_limit_seconds);
    hears(&parking->holder, "OK", reply_limit_seconds);
}

/* --- keys in other stripes --- */

static void find_keys(struct parking *parking, struct conn *away, struct conn *director)
{
    bool fits[2 * KEYS] = {false};
    static struct conn own[2 * KEYS]; /* pipelines wait as one, hence each question has its own */
    unsigned asked = 0, fitting = 0;
    int64_t before;
    struct raw reply;

    for (unsigned i = 0; i < COUNTOF(own); i++)
        conn_start(&own[i], parking->port, 0);
    for (unsigned i = 0; i < COUNTOF(own); i++)
        own[i].worker = conn_worker(&own[i]);
    begin_hold(parking, away, director, "held");
    before = conn_lock_waits(director);
    for (unsigned i = 0; i < COUNTOF(own); i++) {
        if (own[i].worker >= 0) {
            conn_post(&own[i], "SET other%u 0", i);
            asked++;
        }
    }
    /* Each is either answered or parked. One that found its stripe busy for other reasons counts as parked once more,
     * which only makes us look at the others a little less long. */
    while (conn_is_silent(&parking->holder) && fitting + (unsigned)(conn_lock_waits(director) - before) < asked) {
        for (unsigned i = 0; i < COUNTOF(own); i++) {
            if (!fits[i] && conn_poll(&own[i], &reply) == GOT_REPLY) {
                fits[i] = true;
                fitting++;
            }
        }
    }
    for (unsigned i = 0; i < COUNTOF(own); i++) {
        conn_close(&own[i]);
        if (fits[i] && parking->key_count < KEYS)
            parking->keys[parking->key_count++] = i;
    }
    end_hold(parking, director);
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

/* One request after the other on each connection for a while. */
static void measure(struct parking *parking, struct conn **conns, unsigned conn_count, double seconds,
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

            polls[i] = (struct pollfd){.fd = conns[i]->fd, .events = POLLIN};
            if (waits[i] || !going)
                continue;
            sent_ns[i] = now_ns();
            if (chance_below(chance, 2) == 0)
                conn_post(conns[i], "GET other%u", key);
            else
                conn_post(conns[i], "SET other%u %u", key, key);
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
    }
    latencies_finish(latencies);
}

/* --- the part --- */

/* The connection of the pool that is not used yet and sits on a worker that may be asked. */
static struct conn *take_conn(struct parking *parking, int worker)
{
    for (unsigned i = 0; i < CONNS; i++) {
        struct conn *conn = &parking->conns[i];

        if (conn->worker >= 0 && (worker < 0 || conn->worker == worker)) {
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
    parking->holder.worker = conn_worker(&parking->holder);
    for (unsigned i = 0; i < CONNS; i++) {
        conn_start(&parking->conns[i], parking->port, 0);
        parking->conns[i].worker = conn_worker(&parking->conns[i]);
        if (parking->conns[i].worker >= 0 && parking->conns[i].worker < WORKERS_MOST)
            workers += seen[parking->conns[i].worker]++ == 0;
    }
    check((int)workers == threads, "parking: connections sit on %u of %d workers", workers, threads);
}

/* The roles while the key is held. */
struct cast {
    struct conn *witness, *first, *second, *pipeline, *several, *victim, *gone, *transaction, *director;
    struct conn *traffic[TRAFFIC_MOST];
    unsigned traffic_count;
};

static void choose_cast(struct parking *parking, struct cast *cast, int workers)
{
    struct conn **roles[] = {&cast->witness, &cast->first, &cast->second,      &cast->pipeline, &cast->several,
                             &cast->victim,  &cast->gone,  &cast->transaction, &cast->director};

    for (unsigned i = 0; i < COUNTOF(roles); i++)
        *roles[i] = need_conn(parking);
    for (unsigned turn = 0; turn < 3; turn++) { /* as many of each worker */
        for (int worker = 0; worker < workers && cast->traffic_count < TRAFFIC_MOST; worker++) {
            struct conn *conn = take_conn(parking, worker);

            if (conn != NULL)
                cast->traffic[cast->traffic_count++] = conn;
        }
    }
}

/* All that will wait for the held key, in many ways. */
static void ask_for_held(struct parking *parking, struct cast *cast)
{
    conn_post(cast->first, "INCR held");
    conn_post(cast->second, "INCR held");
    conn_post(cast->pipeline, "SET other%u one", parking->keys[1]);
    hears(cast->pipeline, "OK", reply_limit_seconds); /* in front of a parked command it is served, behind it waits */
    conn_post(cast->pipeline, "INCRBY held 100");
    conn_post(cast->pipeline, "GET other%u", parking->keys[1]);
    conn_post(cast->pipeline, "SET other%u two", parking->keys[1]);
    conn_post(cast->pipeline, "GET other%u", parking->keys[1]);
    conn_post(cast->pipeline, "STRLEN held");
    conn_add(cast->several, "MULTI");
    conn_add(cast->several, "MSET other%u after held2 x held3 y", parking->keys[0]);
    conn_add(cast->several, "GET held");
    conn_post(cast->several, "EXEC");
    conn_post(cast->victim, "SET held killed");
    conn_post(cast->gone, "MGET other%u held", parking->keys[2]);
    conn_add(cast->transaction, "MULTI");
    conn_add(cast->transaction, "INCR held");
    conn_add(cast->transaction, "INCR held");
    conn_post(cast->transaction, "EXEC");
}

static void check_while_held(struct parking *parking, struct cast *cast)
{
    struct raw reply;

    conn_post(cast->director, "GET other%u", parking->keys[0]);
    check(hears(cast->director, "before", reply_limit_seconds) && conn_is_silent(&parking->holder),
          "parking: a parked command leaves its other keys to others");
    conn_post(cast->director, "CLIENT KILL ID %lld", (long long)cast->victim->id);
    hears(cast->director, "1", reply_limit_seconds);
    check(conn_read(cast->victim, &reply, reply_limit_seconds) == GOT_CLOSED && conn_is_silent(&parking->holder),
          "parking: a parked client can be killed");
    conn_reset(cast->gone);
}

static void check_traffic(struct parking *parking, struct cast *cast, struct chance *chance, struct latencies *during,
                          int workers)
{
    uint64_t least = UINT64_MAX;

    measure(parking, cast->traffic, cast->traffic_count, parking->measure_seconds, chance, during);
    check(conn_is_silent(&parking->holder), "parking: all that was measured, %zu requests, ended before the hold",
          during->count);
    for (unsigned i = 0; i < cast->traffic_count; i++)
        least = during->served[i] < least ? during->served[i] : least;
    check(least >= 10, "parking: each of %u connections on %d workers was served, at least %llu times",
          cast->traffic_count, workers - 1, (unsigned long long)least);
    check(conn_is_silent(cast->first) && conn_is_silent(cast->second) && conn_is_silent(cast->witness) &&
              conn_is_silent(cast->pipeline) && is_silent_after(cast->transaction, 3) &&
              is_silent_after(cast->several, 3),
          "parking: what needs the held key waits, and so does the pipeline behind it");
}

static int64_t next_number(struct conn *conn)
{
    struct raw reply;

    return conn_read(conn, &reply, reply_limit_seconds) == GOT_REPLY && raw_is_int(reply) ? raw_number(reply) : -1;
}

static void check_after(struct cast *cast)
{
    int64_t first = next_number(cast->first), second = next_number(cast->second), added, length;
    struct raw reply;
    bool ordered;

    check(first > 0 && second > 0 && first != second, "parking: both INCR are done: %lld, %lld", (long long)first,
          (long long)second);
    hears(cast->witness, "1", reply_limit_seconds);

    added = next_number(cast->pipeline);
    ordered = added >= 100 && hears(cast->pipeline, "one", reply_limit_seconds) &&
              hears(cast->pipeline, "OK", reply_limit_seconds) && hears(cast->pipeline, "two", reply_limit_seconds);
    length = ordered ? next_number(cast->pipeline) : -1;
    check(length == 3, "parking: the pipeline's replies are right and in order");

    check(conn_read(cast->transaction, &reply, reply_limit_seconds) == GOT_REPLY && raw_number(reply) == 2 &&
              raw_number(raw_child(reply, 0)) + 1 == raw_number(raw_child(reply, 1)),
          "parking: the parked transaction ran in one piece");
    check(conn_read(cast->several, &reply, reply_limit_seconds) == GOT_REPLY && raw_says(raw_child(reply, 0), "OK"),
          "parking: the transaction over several stripes ran");
    reply = conn_ask(cast->director, "GET held");
    check(raw_number(reply) == 104, "parking: all but the killed client's command has run: the key is %lld of 104",
          (long long)raw_number(reply));
    conn_post(cast->director, "GET held2");
    check(hears(cast->director, "x", reply_limit_seconds) && complaints() == 0, "parking: all replies were right");
}

static void show_latencies(const char *when, const struct latencies *latencies)
{
    say("parking: %s: %zu requests, us: p50 %.0f, p99 %.0f, p99.9 %.0f, max %.0f", when, latencies->count,
        latencies->p50, latencies->p99, latencies->p999, latencies->most);
}

static void run_hold(struct parking *parking, const struct options *options)
{
    struct chance chance = chance_make(options->seed, 300);
    struct cast cast = {0};
    struct latencies baseline, during;
    int64_t before;

    choose_cast(parking, &cast, options->server_threads);
    find_keys(parking, cast.witness, cast.director);
    check(parking->key_count >= KEYS / 2, "parking: %u keys are in other stripes than the held one",
          parking->key_count);
    if (parking->key_count < KEYS / 2 || cast.traffic_count == 0)
        return;
    measure(parking, cast.traffic, cast.traffic_count, parking->measure_seconds, &chance, &baseline);

    conn_ask(cast.director, "SET held 0");
    conn_ask(cast.director, "SET other%u before", parking->keys[0]);
    begin_hold(parking, cast.witness, cast.director, "held");
    before = conn_lock_waits(cast.director);
    ask_for_held(parking, &cast);
    while (conn_lock_waits(cast.director) < before + HELD_ASKERS)
        sleep_ms(1);
    check_while_held(parking, &cast);
    check_traffic(parking, &cast, &chance, &during, options->server_threads);
    end_hold(parking, cast.director);
    check_after(&cast);

    show_latencies("before", &baseline);
    show_latencies("during", &during);
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
    parking.measure_seconds = seconds / 4 < 0.5 ? 0.5 : seconds / 4 > 1.2 ? 1.2 : seconds / 4;
    open_pool(&parking, options->server_threads);
    run_hold(&parking, options);
    for (unsigned i = 0; i < CONNS; i++)
        conn_close(&parking.conns[i]);
    conn_close(&parking.holder);
    server_stop(&server, "parking");
}
