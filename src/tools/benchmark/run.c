#include "tools/benchmark/run.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/thread.h"
#include "tools/benchmark/replies.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

enum { EVENTS_A_TURN = 256, LOOK_MS = 250, PAUSE_MS = 5, TURN_MS = 100 };

struct waiting { /* a request that is not answered yet */
    uint64_t since_ns;
    uint32_t command;
};

struct client {
    struct link *link;
    const struct run_node *node;
    const char *tag; /* NULL: no cluster */
    struct replies replies;
    struct waiting *ring; /* owned; of crew->ring_mask + 1 */
    uint64_t first, pending;
    uint32_t index; /* of its thread's */
    bool is_over;
};

struct crew { /* one thread's part; its own, but for what is atomic */
    struct run *run;
    struct thread thread;
    struct random random;
    struct client *clients; /* owned */
    uint32_t client_count, next_client;
    uint32_t over;      /* clients that have nothing more to send (closed loop) */
    uint64_t pending;   /* requests of all clients that are not answered */
    uint64_t ring_mask; /* of their rings: a power of two, for a pipeline at least, less one */
    uint64_t ended_ns;  /* read when the thread is joined */
    int epoll, timer;
    uint64_t number, due; /* of this crew among all; how many requests were due so far (open loop) */
    struct buffer out;
    struct buffer batch; /* a whole pipeline, where all requests are the same */
    struct latencies *all, *each[WORKLOAD_COMMANDS_MOST];
    _Atomic uint64_t finished, errors, sum_ns; /* atomic, relaxed: for those who look */
};

struct run {
    const struct run_plan *plan;
    const volatile sig_atomic_t *stop;
    struct run_result *result;
    struct crew *crews;                        /* owned */
    uint64_t started_ns, counted_ns, until_ns; /* const once the threads run */
    _Atomic uint64_t claimed;                  /* atomic, relaxed: requests that somebody sends */
    _Atomic uint32_t busy;                     /* atomic: threads that are not done; release and acquire */
    _Atomic bool has_failed;                   /* atomic: who sets it writes result->error */
    _Atomic bool has_error;                    /* likewise, with the first error reply */
};

/* --------------------------------------------------------------------------------------------------- failures -- */

static void PRINTF_LIKE(2, 3) give_up(struct run *run, const char *format, ...)
{
    va_list arguments;

    if (atomic_exchange(&run->has_failed, true))
        return;
    va_start(arguments, format);
    vsnprintf(run->result->error, RUN_ERROR_BYTES, format, arguments);
    va_end(arguments);
}

static bool is_ending(const struct run *run)
{
    return atomic_load_explicit(&run->has_failed, memory_order_relaxed) || *run->stop != 0;
}

static void lost(struct crew *crew, struct client *client)
{
    give_up(crew->run, "Error: %s", link_error(client->link));
}

/* ------------------------------------------------------------------------------------------------- connections -- */

static const char *place_of(const struct link_target *target, char text[300])
{
    if (target->socket_path != NULL)
        snprintf(text, 300, "%.280s", target->socket_path);
    else
        snprintf(text, 300, "%.250s:%d", target->host, target->port);
    return text;
}

static bool ask_for_tracking(struct crew *crew, struct client *client)
{
    static const struct slice words[] = {SLICE("CLIENT"), SLICE("TRACKING"), SLICE("on")};
    struct resp_reply *reply = NULL;
    bool good = link_call(client->link, words, countof(words), &reply) == STATUS_OK;

    if (!good) {
        lost(crew, client);
    } else if (reply->type == RESP_TYPE_ERROR) {
        give_up(crew->run, "Error from server: %s", reply->text);
        good = false;
    }
    resp_reply_destroy(&reply);
    return good;
}

static bool watch(struct crew *crew, struct client *client)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u32 = client->index}};

    return epoll_ctl(crew->epoll, EPOLL_CTL_ADD, link_descriptor(client->link), &event) == 0;
}

static bool open_client(struct crew *crew, struct client *client)
{
    const struct link_target *target = &client->node->target;
    enum link_step step = LINK_STEP_AUTH;
    char place[300];

    client->replies = (struct replies){0};
    if (link_open(client->link, target) != STATUS_OK) {
        give_up(crew->run, "Could not connect to Redis at %s: %s", place_of(target, place), link_error(client->link));
        return false;
    }
    if (link_greet(client->link, target, &step) != STATUS_OK) {
        give_up(crew->run, "Error from server: %s", link_error(client->link));
        return false;
    }
    if (crew->run->plan->tracks && !ask_for_tracking(crew, client))
        return false;
    if (watch(crew, client))
        return true;
    give_up(crew->run, "epoll: %s", strerror(errno));
    return false;
}

static bool open_clients(struct crew *crew)
{
    const struct run_plan *plan = crew->run->plan;

    for (uint32_t i = 0; i < crew->client_count; i++) {
        struct client *client = &crew->clients[i];
        const uint64_t number = crew->number + (uint64_t)i * plan->threads; /* among those of all threads */

        if (is_ending(crew->run))
            return false;
        client->index = i;
        client->link = link_create();
        client->ring = mem_alloc_zero((crew->ring_mask + 1) * sizeof(*client->ring));
        client->node = &plan->nodes[number % plan->node_count];
        if (client->node->tag_count != 0)
            client->tag = client->node->tags[number / plan->node_count % client->node->tag_count];
        if (!open_client(crew, client))
            return false;
    }
    return true;
}

static void close_clients(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->client_count; i++) {
        link_destroy(&crew->clients[i].link);
        mem_free(crew->clients[i].ring);
    }
    mem_free(crew->clients);
}

/* --------------------------------------------------------------------------------------------------- requests -- */

/* How many of `wanted` requests may still be sent. */
static uint64_t claim(struct run *run, uint64_t wanted, uint64_t now_ns)
{
    const uint64_t most = run->plan->requests;
    uint64_t before;

    if (is_ending(run) || now_ns >= run->until_ns)
        return 0;
    if (most == 0)
        return wanted;
    before = atomic_fetch_add_explicit(&run->claimed, wanted, memory_order_relaxed);
    return before >= most ? 0 : MIN(wanted, most - before);
}

static void note_sent(struct crew *crew, struct client *client, uint64_t since_ns, uint32_t command)
{
    assert(client->pending <= crew->ring_mask);
    crew->pending++;
    client->ring[(client->first + client->pending++) & crew->ring_mask] = (struct waiting){.since_ns = since_ns,
                                                                                           .command = command};
}

static void flush(struct crew *crew, struct client *client)
{
    if (link_flush_some(client->link) != STATUS_OK)
        lost(crew, client);
}

static void send_batch(struct crew *crew, struct client *client, uint64_t now_ns)
{
    const struct run_plan *plan = crew->run->plan;
    const uint64_t count = claim(crew->run, plan->pipeline, now_ns);

    if (count == 0) {
        crew->over += !client->is_over;
        client->is_over = true;
        return;
    }
    if (crew->batch.size != 0) {
        for (uint64_t i = 0; i < count; i++)
            note_sent(crew, client, now_ns, 0);
        link_send_raw(client->link, slice_make(crew->batch.data, crew->batch.size / plan->pipeline * count));
    } else {
        buffer_clear(&crew->out);
        for (uint64_t i = 0; i < count; i++)
            note_sent(crew, client, now_ns, workload_next(plan->workload, &crew->random, client->tag, &crew->out));
        link_send_raw(client->link, buffer_slice(&crew->out));
    }
    flush(crew, client);
}

/* --------------------------------------------------------------------------------------------------- open loop -- */

static uint64_t due_ns(const struct crew *crew, uint64_t number)
{
    const struct run_plan *plan = crew->run->plan;
    const double at = ((double)number * plan->threads + (double)crew->number) / plan->rate;

    return crew->run->started_ns + (uint64_t)(at * 1e9);
}

static struct client *find_free(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->client_count; i++) {
        struct client *client = &crew->clients[crew->next_client++ % crew->client_count];

        if (client->pending < crew->run->plan->pipeline)
            return client;
    }
    return NULL;
}

/* Sends what is due. Returns when the next one is; UINT64_MAX: none is, or a reply comes first. */
static uint64_t send_due(struct crew *crew, uint64_t now_ns)
{
    struct run *run = crew->run;

    for (;;) {
        const uint64_t due = due_ns(crew, crew->due);
        struct client *client;

        if (due >= run->until_ns)
            return UINT64_MAX;
        if (due > now_ns)
            return due;
        client = find_free(crew);
        if (client == NULL || claim(run, 1, due) == 0)
            return UINT64_MAX;
        buffer_clear(&crew->out);
        note_sent(crew, client, due, workload_next(run->plan->workload, &crew->random, client->tag, &crew->out));
        link_send_raw(client->link, buffer_slice(&crew->out));
        flush(crew, client);
        crew->due++;
    }
}

/* ----------------------------------------------------------------------------------------------------- replies -- */

/* In a cluster it matters who says so. */
static void note_error(struct crew *crew, const struct client *client)
{
    struct run *run = crew->run;
    const char *text = client->replies.error;
    char place[300];

    atomic_store_explicit(&crew->errors, atomic_load_explicit(&crew->errors, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (!run->plan->goes_on && client->tag != NULL)
        give_up(run, "Error from server %s: %s", place_of(&client->node->target, place), text);
    else if (!run->plan->goes_on)
        give_up(run, "Error from server: %s", text);
    else if (!atomic_exchange(&run->has_error, true))
        snprintf(run->result->error, RUN_ERROR_BYTES, "%s", text);
}

static void count(struct crew *crew, uint64_t since_ns, uint64_t now_ns, uint32_t command, uint64_t replies)
{
    const uint64_t took_ns = now_ns > since_ns ? now_ns - since_ns : 0;

    if (since_ns < crew->run->counted_ns)
        return;
    latencies_add(crew->all, took_ns, replies);
    if (crew->each[command] != NULL)
        latencies_add(crew->each[command], took_ns, replies);
    atomic_store_explicit(&crew->finished, atomic_load_explicit(&crew->finished, memory_order_relaxed) + replies,
                          memory_order_relaxed);
    atomic_store_explicit(&crew->sum_ns, atomic_load_explicit(&crew->sum_ns, memory_order_relaxed) + took_ns * replies,
                          memory_order_relaxed);
}

/* Requests of one pipeline that are answered together are counted together. */
static void count_run(struct crew *crew, struct client *client, uint64_t replies, uint64_t now_ns)
{
    while (replies != 0) {
        const struct waiting first = client->ring[client->first & crew->ring_mask];
        uint64_t alike = 0;

        while (alike < replies) {
            const struct waiting *one = &client->ring[(client->first + alike) & crew->ring_mask];

            if (one->since_ns != first.since_ns || one->command != first.command)
                break;
            alike++;
        }
        count(crew, first.since_ns, now_ns, first.command, alike);
        client->first += alike;
        client->pending -= alike;
        crew->pending -= alike;
        replies -= alike;
    }
}

/* Returns false if what came is no reply. */
static bool take_replies(struct crew *crew, struct client *client, struct slice input, uint64_t now_ns)
{
    enum replies_result result = REPLIES_GOOD;
    uint64_t replies = 0;

    while (input.size != 0 && result != REPLIES_BROKEN) {
        result = replies_next(&client->replies, &input);
        if (result == REPLIES_ERROR)
            note_error(crew, client);
        replies += result == REPLIES_GOOD || result == REPLIES_ERROR;
    }
    if (result == REPLIES_BROKEN || replies > client->pending)
        return false;
    count_run(crew, client, replies, now_ns);
    return true;
}

static void continue_client(struct crew *crew, struct client *client, uint64_t now_ns)
{
    if (client->pending != 0 || client->is_over || crew->run->plan->rate > 0)
        return;
    if (crew->run->plan->reconnects && !open_client(crew, client))
        return;
    send_batch(crew, client, now_ns);
}

static void serve(struct crew *crew, struct client *client, uint32_t events)
{
    const bool is_plain = client->node->target.tls == NULL;
    struct slice input = {0};
    uint64_t now_ns;

    if ((events & EPOLLOUT) != 0 && link_unsent(client->link) != 0)
        flush(crew, client);
    do {
        if (link_take(client->link, &input) != STATUS_OK) {
            lost(crew, client);
            return;
        }
        if (input.size == 0)
            return;
        now_ns = clock_monotonic_ns();
        if (!take_replies(crew, client, input, now_ns)) {
            give_up(crew->run, "what came from the server is no reply that was asked for");
            return;
        }
        continue_client(crew, client, now_ns);
    } while ((!is_plain || input.size == LINK_TAKE_BYTES) && !is_ending(crew->run));
}

/* ------------------------------------------------------------------------------------------------------ threads -- */

static bool is_done(const struct crew *crew, uint64_t now_ns)
{
    const struct run *run = crew->run;

    if (is_ending(run))
        return true;
    if (crew->pending != 0 || run->plan->rate <= 0)
        return crew->pending == 0 && crew->over == crew->client_count;
    return due_ns(crew, crew->due) >= run->until_ns || now_ns >= run->until_ns ||
           (run->plan->requests != 0 &&
            atomic_load_explicit(&run->claimed, memory_order_relaxed) >= run->plan->requests);
}

static void set_timer(const struct crew *crew, uint64_t at_ns)
{
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at_ns / NS_PER_S), .tv_nsec = (long)(at_ns % NS_PER_S)}};

    if (timerfd_settime(crew->timer, TFD_TIMER_ABSTIME, &when, NULL) != 0)
        give_up(crew->run, "timerfd: %s", strerror(errno));
}

static void turn(struct crew *crew)
{
    struct epoll_event events[EVENTS_A_TURN];
    int count, wait_ms = TURN_MS;

    if (crew->run->plan->rate > 0) {
        const uint64_t now_ns = clock_monotonic_ns(), next_ns = send_due(crew, now_ns);

        if (next_ns <= now_ns)
            wait_ms = 0;
        else if (next_ns != UINT64_MAX)
            set_timer(crew, next_ns);
    }
    count = epoll_wait(crew->epoll, events, EVENTS_A_TURN, wait_ms);
    for (int i = 0; i < count; i++) {
        uint64_t times;

        if (events[i].data.u32 < crew->client_count)
            serve(crew, &crew->clients[events[i].data.u32], events[i].events);
        else if (read(crew->timer, &times, sizeof(times)) < 0)
            continue; /* it was set anew meanwhile */
    }
}

static bool set_up(struct crew *crew)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = UINT32_MAX}};

    crew->epoll = epoll_create1(EPOLL_CLOEXEC);
    crew->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (crew->epoll < 0 || crew->timer < 0 || epoll_ctl(crew->epoll, EPOLL_CTL_ADD, crew->timer, &event) != 0) {
        give_up(crew->run, "epoll: %s", strerror(errno));
        return false;
    }
    return open_clients(crew);
}

static void make_batch(struct crew *crew)
{
    const struct run_plan *plan = crew->run->plan;

    for (uint32_t i = 0; i < plan->pipeline && workload_is_constant(plan->workload); i++)
        status_ignore(workload_next(plan->workload, &crew->random, NULL, &crew->batch), "there is one command");
}

static void crew_run(void *argument)
{
    struct crew *crew = argument;
    struct run *run = crew->run;
    uint64_t now_ns;

    make_batch(crew);
    now_ns = clock_monotonic_ns();
    for (uint32_t i = 0; i < crew->client_count && run->plan->rate <= 0; i++)
        send_batch(crew, &crew->clients[i], now_ns);
    while (!is_done(crew, clock_monotonic_ns()))
        turn(crew);
    crew->ended_ns = clock_monotonic_ns();
    atomic_fetch_sub_explicit(&run->busy, 1, memory_order_release);
}

/* -------------------------------------------------------------------------------------------------------- run -- */

static void begin(struct run *run)
{
    const struct run_plan *plan = run->plan;
    const uint32_t commands = plan->workload != NULL ? plan->workload->count : 0, several = commands > 1 ? commands : 0;

    run->crews = mem_alloc_zero(plan->threads * sizeof(*run->crews));
    for (uint32_t i = 0; i < plan->threads; i++) {
        struct crew *crew = &run->crews[i];

        *crew = (struct crew){.run = run, .number = i, .epoll = -1, .timer = -1};
        crew->client_count = plan->clients / plan->threads + (i < plan->clients % plan->threads);
        crew->clients = mem_alloc_zero(crew->client_count * sizeof(*crew->clients));
        random_seed(&crew->random, plan->seed + i);
        while (crew->ring_mask + 1 < plan->pipeline)
            crew->ring_mask = 2 * crew->ring_mask + 1;
        crew->all = mem_alloc_zero(sizeof(*crew->all));
        for (uint32_t one = 0; one < several; one++)
            crew->each[one] = mem_alloc_zero(sizeof(*crew->all));
    }
}

static void merge(struct latencies **into, const struct latencies *from)
{
    if (from == NULL)
        return;
    if (*into == NULL)
        *into = mem_alloc_zero(sizeof(**into));
    latencies_merge(*into, from);
}

static void end(struct run *run)
{
    struct run_result *result = run->result;

    for (uint32_t i = 0; i < run->plan->threads; i++) {
        struct crew *crew = &run->crews[i];

        merge(&result->all, crew->all);
        for (uint32_t one = 0; one < WORKLOAD_COMMANDS_MOST; one++) {
            merge(&result->each[one], crew->each[one]);
            mem_free(crew->each[one]);
        }
        result->finished += atomic_load(&crew->finished);
        result->errors += atomic_load(&crew->errors);
        mem_free(crew->all);
        close_clients(crew);
        buffer_fini(&crew->out);
        buffer_fini(&crew->batch);
        if (crew->epoll >= 0)
            close(crew->epoll);
        if (crew->timer >= 0)
            close(crew->timer);
    }
    mem_free(run->crews);
}

static void look(const struct run *run)
{
    struct run_progress progress = {.seconds = (double)(clock_monotonic_ns() - run->started_ns) / 1e9};

    for (uint32_t i = 0; i < run->plan->threads; i++) {
        progress.finished += atomic_load_explicit(&run->crews[i].finished, memory_order_relaxed);
        progress.sum_ns += (double)atomic_load_explicit(&run->crews[i].sum_ns, memory_order_relaxed);
    }
    run->plan->look(&progress, run->plan->context);
}

static void wait_for_all(struct run *run)
{
    uint64_t next_ns = run->started_ns + LOOK_MS * NS_PER_MS;

    while (atomic_load_explicit(&run->busy, memory_order_acquire) != 0) {
        const struct timespec a_little = {.tv_nsec = (long)(PAUSE_MS * NS_PER_MS)};

        nanosleep(&a_little, NULL);
        if (run->plan->look == NULL || clock_monotonic_ns() < next_ns)
            continue;
        next_ns += LOOK_MS * NS_PER_MS;
        look(run);
    }
}

static bool connect_all(struct run *run)
{
    bool good = true;

    for (uint32_t i = 0; i < run->plan->threads && good; i++)
        good = set_up(&run->crews[i]);
    return good && !is_ending(run);
}

bool run_it(const struct run_plan *plan, const volatile sig_atomic_t *stop, struct run_result *result)
{
    struct run run = {.plan = plan, .stop = stop, .result = result};
    const double cpu_before = (double)clock_cpu_process_us() / 1e6;
    uint64_t ended_ns = 0;

    assert(plan->clients > 0 && plan->pipeline > 0 && plan->threads > 0 && plan->threads <= plan->clients);
    *result = (struct run_result){0};
    begin(&run);
    if (connect_all(&run)) {
        run.started_ns = clock_monotonic_ns();
        run.counted_ns = run.started_ns + plan->warm_up_ms * NS_PER_MS;
        run.until_ns = plan->duration_ms != 0 ? run.counted_ns + plan->duration_ms * NS_PER_MS : UINT64_MAX;
        atomic_store(&run.busy, plan->threads);
        for (uint32_t i = 0; i < plan->threads; i++)
            thread_start(&run.crews[i].thread, "bench", crew_run, &run.crews[i]);
        wait_for_all(&run);
        for (uint32_t i = 0; i < plan->threads; i++) {
            thread_join(&run.crews[i].thread);
            ended_ns = MAX(ended_ns, run.crews[i].ended_ns);
        }
        result->seconds = ended_ns > run.counted_ns ? (double)(ended_ns - run.counted_ns) / 1e9 : 0;
    }
    result->cpu_seconds = (double)clock_cpu_process_us() / 1e6 - cpu_before;
    end(&run);
    return !atomic_load(&run.has_failed);
}

void run_result_fini(struct run_result *result)
{
    mem_free(result->all);
    for (uint32_t i = 0; i < WORKLOAD_COMMANDS_MOST; i++)
        mem_free(result->each[i]);
    *result = (struct run_result){0};
}

/* Nothing is asked, so what comes is a farewell. */
static void listen_to(struct crew *crew, struct client *client)
{
    struct slice input;

    if (link_take(client->link, &input) != STATUS_OK)
        lost(crew, client);
    else if (replies_next(&client->replies, &input) == REPLIES_ERROR)
        give_up(crew->run, "Error from server: %s", client->replies.error);
}

static void idle_turn(struct crew *crew)
{
    struct epoll_event events[EVENTS_A_TURN];
    const int count = epoll_wait(crew->epoll, events, EVENTS_A_TURN, TURN_MS);

    for (int i = 0; i < count; i++) {
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0 && events[i].data.u32 < crew->client_count)
            listen_to(crew, &crew->clients[events[i].data.u32]);
    }
}

bool run_idle(const struct run_plan *plan, const volatile sig_atomic_t *stop, char error[RUN_ERROR_BYTES])
{
    struct run_result result = {0};
    struct run run = {.plan = plan, .stop = stop, .result = &result};
    bool good;

    begin(&run);
    good = connect_all(&run);
    while (good && !is_ending(&run)) {
        for (uint32_t i = 0; i < plan->threads; i++)
            idle_turn(&run.crews[i]);
    }
    good = !atomic_load(&run.has_failed);
    end(&run);
    snprintf(error, RUN_ERROR_BYTES, "%s", result.error);
    run_result_fini(&result);
    return good;
}
