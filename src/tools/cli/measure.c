#include "tools/cli/measure.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PING_PAUSE_US = 10000, HISTORY_MS = 15000, HEAD_LINES = 20 };

static uint64_t interval_ms(const struct session *session, uint64_t otherwise)
{
    uint64_t us = session->options->interval_us;

    return us > 0 ? us / 1000 : otherwise;
}

/* False: an error that was told. */
static bool ping(struct session *session, uint64_t *took_us)
{
    static const struct slice words[] = {SLICE("PING")};
    uint64_t begin = clock_monotonic_us();
    struct resp_reply *reply;

    if (!session_connect(session))
        return false;
    reply = session_call(session, words, countof(words));
    *took_us = clock_monotonic_us() - begin;
    if (reply == NULL)
        return false;
    resp_reply_destroy(&reply);
    return true;
}

/* ----------------------------------------------------------------------------------------------------- latency -- */

struct latency {
    long long least, most, sum, count; /* ms */
};

static void show_latency(const struct session *session, const struct latency *latency)
{
    double average = latency->count > 0 ? (double)latency->sum / (double)latency->count : 0;

    switch (session->format) {
    case FORMAT_TEXT:
        printf("min: %lld, max: %lld, avg: %.2f (%lld samples)", latency->least, latency->most, average,
               latency->count);
        break;
    case FORMAT_CSV:
        printf("%lld,%lld,%.2f,%lld\n", latency->least, latency->most, average, latency->count);
        break;
    case FORMAT_RAW:
        printf("%lld %lld %.2f %lld\n", latency->least, latency->most, average, latency->count);
        break;
    default:
        printf("{\"min\": %lld, \"max\": %lld, \"avg\": %.2f, \"count\": %lld}\n", latency->least, latency->most,
               average, latency->count);
        break;
    }
}

int measure_latency(struct session *session)
{
    const bool has_history = session->options->mode == MODE_LATENCY_HISTORY;
    const uint64_t span_ms = interval_ms(session, has_history ? HISTORY_MS : 1000);
    const bool is_text = session->format == FORMAT_TEXT;
    struct latency latency = {0};
    uint64_t begin = clock_monotonic_ms();

    if (!session_connect(session))
        return 1;
    for (;;) {
        uint64_t us, span;
        long long ms;

        if (!ping(session, &us))
            return 1;
        ms = (long long)us / 1000;
        latency.least = latency.count == 0 || ms < latency.least ? ms : latency.least;
        latency.most = MAX(latency.most, ms);
        latency.sum += ms;
        latency.count++;
        if (is_text)
            printf("\x1b[0G\x1b[2K");
        if (is_text || has_history)
            show_latency(session, &latency);
        fflush(stdout);
        span = clock_monotonic_ms() - begin;
        if (has_history && span > span_ms) {
            printf(" -- %.2f seconds range\n", (double)span / 1000);
            begin = clock_monotonic_ms();
            latency = (struct latency){0};
        } else if (!has_history && !is_text && span > span_ms) {
            show_latency(session, &latency);
            return 0;
        }
        usleep(PING_PAUSE_US);
    }
}

/* The distribution as a row of characters, one for each range, whose background shows how many samples are in it. */
struct range {
    uint64_t most_us; /* 0: the rest */
    char letter;
};

static const struct range ranges[] = {
    {10, '.'},       {125, '-'},      {250, '*'},     {500, '#'},     {1000, '1'},    {2000, '2'},    {3000, '3'},
    {4000, '4'},     {5000, '5'},     {6000, '6'},    {7000, '7'},    {8000, '8'},    {9000, '9'},    {10000, 'A'},
    {20000, 'B'},    {30000, 'C'},    {40000, 'D'},   {50000, 'E'},   {100000, 'F'},  {200000, 'G'},  {300000, 'H'},
    {400000, 'I'},   {500000, 'J'},   {1000000, 'K'}, {2000000, 'L'}, {4000000, 'M'}, {8000000, 'N'}, {16000000, 'O'},
    {30000000, 'P'}, {60000000, 'Q'}, {0, '?'},
};

static const int colours[] = {0,   233, 234, 235, 237, 239, 241, 243, 245, 247,
                              144, 143, 142, 184, 226, 214, 208, 202, 196};
static const int greys[] = {0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 249, 251, 253};

static void palette(const struct session *session, const int **colour, size_t *count)
{
    *colour = session->options->monochrome ? greys : colours;
    *count = session->options->monochrome ? countof(greys) : countof(colours);
}

static void show_legend(const struct session *session)
{
    const int *colour;
    size_t count;

    palette(session, &colour, &count);
    printf("---------------------------------------------\n"
           ". - * #          .01 .125 .25 .5 milliseconds\n"
           "1,2,3,...,9      from 1 to 9     milliseconds\n"
           "A,B,C,D,E        10,20,30,40,50  milliseconds\n"
           "F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n"
           "K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds\n"
           "From 0 to 100%%: ");
    for (size_t i = 0; i < count; i++)
        printf("\x1b[48;5;%dm ", colour[i]);
    printf("\x1b[0m\n---------------------------------------------\n");
}

static void show_spectrum(const struct session *session, uint64_t *counts, uint64_t total)
{
    const int *colour;
    size_t count;

    palette(session, &colour, &count);
    printf("\x1b[38;5;0m");
    for (size_t i = 0; i < countof(ranges); i++) {
        double share = total > 0 ? (double)counts[i] / (double)total : 0;
        size_t shade = counts[i] > 0 ? 1 + (size_t)(share * (double)(count - 2) + 0.5) : 0;

        printf("\x1b[48;5;%dm%c", colour[MIN(shade, count - 1)], ranges[i].letter);
        counts[i] = 0;
    }
    printf("\x1b[0m\n");
    fflush(stdout);
}

int measure_latency_spectrum(struct session *session)
{
    const uint64_t span_ms = interval_ms(session, 1000);
    uint64_t counts[countof(ranges)] = {0};
    uint64_t total = 0, begin = clock_monotonic_ms();
    unsigned lines = 0;

    if (!session_connect(session))
        return 1;
    for (;;) {
        uint64_t us;
        size_t i = 0;

        if (!ping(session, &us))
            return 1;
        while (ranges[i].most_us != 0 && us > ranges[i].most_us)
            i++;
        counts[i]++;
        total++;
        if (clock_monotonic_ms() - begin > span_ms) {
            if (lines++ % HEAD_LINES == 0)
                show_legend(session);
            show_spectrum(session, counts, total);
            total = 0;
            begin = clock_monotonic_ms();
        }
        usleep(PING_PAUSE_US);
    }
}

/* -------------------------------------------------------------------------------------------------------- stat -- */

/* A field of INFO; `otherwise` where there is none. */
static long long field(const char *info, const char *name, long long otherwise)
{
    size_t size = strlen(name);

    for (const char *line = info; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, size) == 0 && line[size] == ':')
            return atoll(line + size + 1);
    }
    return otherwise;
}

static long long keys_of(const char *info)
{
    long long keys = 0;

    for (const char *line = info; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        const char *at;

        line += *line == '\n';
        if (strncmp(line, "db", 2) != 0 || !isdigit((unsigned char)line[2]))
            continue;
        at = strstr(line, ":keys=");
        if (at != NULL && at < line + strcspn(line, "\n"))
            keys += atoll(at + 6);
    }
    return keys;
}

static void human(char text[NUMBER_DOUBLE_SPACE], long long bytes)
{
    static const char units[] = "BKMGTP";
    double number = (double)(bytes < 0 ? -bytes : bytes);
    size_t unit = 0;

    while (number >= 1024 && unit + 2 < sizeof(units)) {
        number /= 1024;
        unit++;
    }
    if (unit == 0)
        snprintf(text, NUMBER_DOUBLE_SPACE, "%s%.0fB", bytes < 0 ? "-" : "", number);
    else
        snprintf(text, NUMBER_DOUBLE_SPACE, "%s%.2f%c", bytes < 0 ? "-" : "", number, units[unit]);
}

static const char *child_of(const char *info)
{
    bool saves = field(info, "rdb_bgsave_in_progress", 0) != 0;
    bool rewrites = field(info, "aof_rewrite_in_progress", 0) != 0;

    if (saves && rewrites)
        return "SAVE+AOF";
    if (field(info, "loading", 0) != 0)
        return "LOAD";
    return saves ? "SAVE" : rewrites ? "AOF" : "";
}

static void show_stat(const char *info, long long *requests_before)
{
    long long requests = field(info, "total_commands_processed", 0);
    char memory[NUMBER_DOUBLE_SPACE];
    char load[64];

    human(memory, field(info, "used_memory", 0));
    snprintf(load, sizeof(load), "%lld (+%lld)", requests, *requests_before < 0 ? 0 : requests - *requests_before);
    *requests_before = requests;
    printf("%-11lld%-9s%-8lld%-8lld%-20s%-12lld%s\n", keys_of(info), memory, field(info, "connected_clients", 0),
           field(info, "blocked_clients", 0), load, field(info, "total_connections_received", 0), child_of(info));
    fflush(stdout);
}

int measure_stat(struct session *session)
{
    static const struct slice words[] = {SLICE("INFO")};
    long long requests = -1;

    for (unsigned lines = 0;; lines++) {
        struct resp_reply *reply;

        if (!session_connect(session))
            return 1;
        reply = session_call(session, words, countof(words));
        if (reply == NULL)
            return 1;
        if (format_is_error(reply)) {
            fprintf(stderr, "ERROR: %s\n", reply->text);
            resp_reply_destroy(&reply);
            return 1;
        }
        if (lines % HEAD_LINES == 0)
            printf("------- data ------ --------------------- load -------------------- - child -\n"
                   "keys       mem      clients blocked requests            connections          \n");
        show_stat(reply->text != NULL ? reply->text : "", &requests);
        resp_reply_destroy(&reply);
        usleep((useconds_t)(interval_ms(session, 1000) * 1000));
    }
}

/* ------------------------------------------------------------------------------------------------------- cache -- */

enum { CACHE_PIPELINE = 250, CACHE_ROUNDS = 64 };

/* Of `count` numbers the first fifth comes four times out of five, and so on within that fifth. */
static int64_t skewed(int64_t count)
{
    double most = (double)count;

    while (most > 5 && random() % 5 != 0 && random() % 2 == 0)
        most /= 5;
    return (int64_t)((double)random() / ((double)RAND_MAX + 1) * most);
}

/* Asks for a batch of keys, and writes those that were missing. False: an error that was told. */
static bool ask_cache(struct session *session, long long *hits, long long *misses)
{
    int64_t keys[CACHE_PIPELINE];
    char name[NUMBER_I64_SPACE + 8];
    size_t missing = 0;
    bool good = true;

    for (size_t i = 0; i < CACHE_PIPELINE; i++) {
        keys[i] = skewed(session->options->lru_keys);
        const struct slice words[] = {SLICE("GET"), slice_make(name, (size_t)snprintf(name, sizeof(name), "lru:%lld",
                                                                                      (long long)keys[i]))};

        link_send(session->link, words, countof(words));
    }
    for (size_t i = 0; i < CACHE_PIPELINE && good; i++) {
        struct resp_reply *reply = session_receive(session);

        good = reply != NULL && !format_is_error(reply);
        if (good && reply->type == RESP_TYPE_NULL)
            keys[missing++] = keys[i];
        else if (reply != NULL && !good)
            fprintf(stderr, "Error: %s\n", reply->text);
        resp_reply_destroy(&reply);
    }
    for (size_t i = 0; i < missing && good; i++) {
        const struct slice words[] = {SLICE("SET"),
                                      slice_make(name,
                                                 (size_t)snprintf(name, sizeof(name), "lru:%lld", (long long)keys[i])),
                                      SLICE("value")};

        link_send(session->link, words, countof(words));
    }
    for (size_t i = 0; i < missing && good; i++) {
        struct resp_reply *reply = session_receive(session);

        good = reply != NULL;
        resp_reply_destroy(&reply);
    }
    *hits += (long long)(CACHE_PIPELINE - missing);
    *misses += (long long)missing;
    return good;
}

int measure_cache(struct session *session)
{
    long long hits = 0, misses = 0;
    uint64_t begin = clock_monotonic_ms();

    if (session->options->lru_keys <= 0) {
        fprintf(stderr, "--lru-test wants a number of keys\n");
        return 1;
    }
    if (!session_connect(session))
        return 1;
    srandom((unsigned)clock_monotonic_ns());
    for (;;) {
        uint64_t span;

        if (!ask_cache(session, &hits, &misses))
            return 1;
        span = clock_monotonic_ms() - begin;
        if (span < 1000)
            continue;
        printf("%lld Gets/sec | Hits: %lld (%.2f%%) | Misses: %lld (%.2f%%)\n",
               (hits + misses) * 1000 / (long long)span, hits, 100.0 * (double)hits / (double)(hits + misses), misses,
               100.0 * (double)misses / (double)(hits + misses));
        fflush(stdout);
        hits = misses = 0;
        begin = clock_monotonic_ms();
    }
}

/* ------------------------------------------------------------------------------------------------- this machine -- */

/* Some microseconds of work that cannot be left out. */
static uint64_t work(uint64_t seed)
{
    for (int i = 0; i < 200; i++)
        seed = seed * 6364136223846793005U + 1442695040888963407U;
    return seed;
}

int measure_intrinsic(struct session *session)
{
    const uint64_t span_ns = (uint64_t)session->options->intrinsic_s * 1000000000U;
    const uint64_t begin = clock_monotonic_ns();
    uint64_t now = begin, most_ns = 0, seed = begin;
    long long runs = 0;
    double average_us;

    session_catch_interrupts();
    while (now - begin < span_ns && !session_interrupted()) {
        uint64_t before = now;

        seed = work(seed);
        now = clock_monotonic_ns();
        runs++;
        if (now - before > most_ns) {
            if ((now - before) / 1000 > most_ns / 1000) {
                printf("Max latency so far: %lld microseconds.\n", (long long)((now - before) / 1000));
                fflush(stdout);
            }
            most_ns = now - before;
        }
    }
    if (runs == 0)
        return 1;
    average_us = (double)(now - begin) / (double)runs / 1000;
    printf("\n%lld total runs (avg latency: %.4f microseconds / %.2f nanoseconds per run).\n", runs, average_us,
           average_us * 1000);
    printf("Worst run took %.0fx longer than the average latency.\n", (double)most_ns / 1000 / average_us);
    return seed == 0 ? 1 : 0;
}
