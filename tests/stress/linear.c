/* Linearizability: 16 connections of 4 threads send random commands on 5 keys of two databases, in short windows. After
 * each window the data are read in silence, and the window's history is given to the search of history.h. Within
 * windows connections are killed by others, and closed with commands under way. */
#include "history.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 4, CONNS = 16, CONNS_A_THREAD = CONNS / THREADS, OPS_A_CONN_MOST = 4 };

struct plan { /* operations of a connection in a window */
    unsigned op_index[OPS_A_CONN_MOST];
    unsigned op_count;
    unsigned replies[OPS_A_CONN_MOST];
    uint32_t kill_victim; /* a connection's index + 1 */
    bool close_early, reset;
};

struct linear {
    int port;
    bool stop;
    bool one_by_one[THREADS];
    struct conn conns[CONNS];
    struct conn watcher[MODEL_DBS]; /* reads the data in silence; lists clients */
    struct plan plans[CONNS];
    struct window window;
    pthread_barrier_t begin, end;
    pthread_mutex_t texts_lock;
    struct chance chance;
    uint64_t unique;
    uint64_t windows, ops, pending, kills, closes, undecided, nodes;
};

/* --- a window --- */

static void plan_window(struct linear *linear)
{
    struct window *window = &linear->window;
    struct chance *chance = &linear->chance;
    unsigned busy = 3 + chance_below(chance, CONNS - 5); /* fewer connections: fewer orders, a sharper question */

    window->op_count = 0;
    memset(linear->plans, 0, sizeof(linear->plans));
    for (unsigned c = 0; c < CONNS; c++) {
        struct plan *plan = &linear->plans[c];
        unsigned wanted = 1 + chance_below(chance, OPS_A_CONN_MOST);

        if (chance_below(chance, CONNS) >= busy)
            continue;
        for (; plan->op_count < wanted && window->op_count < WINDOW_OPS_MOST; plan->op_count++) {
            struct op *op = &window->ops[window->op_count];

            *op = (struct op){.conn = (uint8_t)c, .db = (uint8_t)(c % MODEL_DBS)};
            op_make(op, &window->texts, chance, &linear->unique);
            plan->op_index[plan->op_count] = window->op_count++;
        }
        if (chance_below(chance, 150) == 0)
            plan->kill_victim = 1 + chance_below(chance, CONNS);
        if (chance_below(chance, 150) == 0) {
            plan->close_early = true;
            plan->reset = chance_below(chance, 2) == 0;
        }
    }
    for (unsigned i = 0; i < THREADS; i++)
        linear->one_by_one[i] = chance_below(chance, 2) == 0;
}

static void send_plan(struct linear *linear, unsigned c)
{
    struct plan *plan = &linear->plans[c];
    struct conn *conn = &linear->conns[c];
    uint64_t now;

    if (plan->op_count == 0)
        return;
    if (plan->kill_victim != 0)
        conn_add(conn, "CLIENT KILL ID %lld", (long long)linear->conns[plan->kill_victim - 1].id);
    pthread_mutex_lock(&linear->texts_lock);
    for (unsigned i = 0; i < plan->op_count; i++)
        plan->replies[i] = op_send(&linear->window.ops[plan->op_index[i]], &linear->window.texts, conn);
    pthread_mutex_unlock(&linear->texts_lock);
    if (plan->close_early) /* and the last command is cut */
        conn->out.size -= conn->out.size > 30 ? 5 : 0;
    now = now_ns();
    for (unsigned i = 0; i < plan->op_count; i++)
        linear->window.ops[plan->op_index[i]].invoked_ns = now;
    conn_send(conn);
    if (!plan->close_early)
        return;
    if (plan->reset)
        conn_reset(conn);
    else
        conn_close(conn);
}

static void read_plan(struct linear *linear, unsigned c)
{
    struct plan *plan = &linear->plans[c];
    struct conn *conn = &linear->conns[c];
    struct raw reply = {0};
    enum got got = GOT_REPLY;

    if (plan->op_count == 0 || plan->close_early)
        return;
    if (plan->kill_victim != 0)
        got = conn_read(conn, &reply, reply_limit_seconds);
    for (unsigned i = 0; i < plan->op_count && got == GOT_REPLY; i++) {
        struct op *op = &linear->window.ops[plan->op_index[i]];

        for (unsigned n = 0; n < plan->replies[i] && got == GOT_REPLY; n++) {
            got = conn_read(conn, &reply, reply_limit_seconds);
            if (got == GOT_REPLY && n + 1 < plan->replies[i] && !raw_says(reply, n == 0 ? "OK" : "QUEUED"))
                complain("linear: MULTI or a command within it was not accepted");
        }
        if (got != GOT_REPLY)
            break;
        op->returned_ns = now_ns();
        op->pending = false;
        pthread_mutex_lock(&linear->texts_lock);
        op->reply = op_reply(op, &linear->window.texts, reply);
        pthread_mutex_unlock(&linear->texts_lock);
    }
    if (got == GOT_NOTHING)
        die("linear: connection %u got no reply within %g s", c, reply_limit_seconds);
}

static void run_window(struct linear *linear, unsigned thread)
{
    for (unsigned i = 0; i < CONNS_A_THREAD; i++) {
        send_plan(linear, thread * CONNS_A_THREAD + i);
        if (linear->one_by_one[thread])
            read_plan(linear, thread * CONNS_A_THREAD + i);
    }
    for (unsigned i = 0; i < CONNS_A_THREAD && !linear->one_by_one[thread]; i++)
        read_plan(linear, thread * CONNS_A_THREAD + i);
}

/* --- silence --- */

/* A client that is in the list no more runs no command any more. */
static bool is_listed(struct linear *linear, int64_t id)
{
    return raw_string(conn_ask(&linear->watcher[0], "CLIENT LIST ID %lld", (long long)id)).size > 0;
}

/* A killed client may be closed a moment after the killer's reply: its own replies do not show it. */
static void replace_dead(struct linear *linear)
{
    bool killed[CONNS] = {false};

    for (unsigned c = 0; c < CONNS; c++) {
        uint32_t victim = linear->plans[c].kill_victim;

        linear->kills += victim != 0 && linear->plans[c].op_count != 0;
        linear->closes += linear->plans[c].close_early;
        if (victim != 0)
            killed[victim - 1] = true;
    }
    for (unsigned c = 0; c < CONNS; c++) {
        uint64_t limit = now_ns() + (uint64_t)(reply_limit_seconds * 1e9);
        struct raw reply;

        if (!killed[c] && linear->conns[c].fd >= 0)
            continue;
        /* The kill may have been lost with the killer itself. */
        if (linear->conns[c].fd >= 0 && !linear->plans[c].close_early) {
            conn_ask(&linear->watcher[0], "CLIENT KILL ID %lld", (long long)linear->conns[c].id);
            if (conn_read(&linear->conns[c], &reply, reply_limit_seconds) != GOT_CLOSED)
                complain("linear: a killed connection lives or got a reply too many");
        }
        while (is_listed(linear, linear->conns[c].id)) {
            if (now_ns() > limit)
                die("linear: client %lld is closed but stays in CLIENT LIST", (long long)linear->conns[c].id);
        }
        conn_close(&linear->conns[c]);
        conn_start(&linear->conns[c], linear->port, (int)(c % MODEL_DBS));
    }
}

static void read_state(struct linear *linear, struct state *state)
{
    for (unsigned db = 0; db < MODEL_DBS; db++) {
        struct raw reply = conn_ask(&linear->watcher[db], "MGET k0 k1 k2 k3 k4");

        for (unsigned key = 0; key < MODEL_KEYS; key++) {
            struct raw value = raw_child(reply, key);
            struct raw string = raw_string(value);

            state->values[db][key] = raw_is_null(value) ? 0
                                                        : texts_number(&linear->window.texts, string.data, string.size);
        }
    }
}

/* The texts of the window are forgotten, those of the data at its end are the next one's beginning. */
static void begin_from_end(struct linear *linear)
{
    texts_clear(&linear->window.texts);
    read_state(linear, &linear->window.begin);
}

static void judge_window(struct linear *linear)
{
    struct verdict_info info;
    enum verdict verdict = window_verdict(&linear->window, &info);

    linear->windows++;
    linear->nodes += info.nodes;
    linear->ops += linear->window.op_count;
    for (unsigned i = 0; i < linear->window.op_count; i++)
        linear->pending += linear->window.ops[i].pending;
    linear->undecided += verdict == LINEAR_TOO_LONG;
    if (verdict == LINEAR_NO) {
        complain("linear: no order explains window %llu", (unsigned long long)linear->windows);
        window_show(&linear->window, &info);
    }
}

/* --- the checker must be able to fail --- */

/* Takes a history that was found right, changes one thing, and checks again. A damaged history that is too hard to
 * decide says nothing about the checker and does not count. */
static void corrupt_window(struct linear *linear, unsigned *asked, unsigned *noticed)
{
    struct window *window = &linear->window;
    struct verdict_info info;
    enum verdict verdict;
    unsigned victim = chance_below(&linear->chance, window->op_count);
    struct state end = window->end;
    struct op op = window->ops[victim];

    if (*asked >= 20 || window_verdict(window, &info) != LINEAR_YES)
        return;
    if (op.pending || op.reply == 0)
        window->end.values[0][0] = texts_number(&window->texts, "never written", 13);
    else
        window->ops[victim].reply = texts_number(&window->texts, "$never written;", 15);
    verdict = window_verdict(window, &info);
    window->end = end;
    window->ops[victim] = op;
    *asked += verdict != LINEAR_TOO_LONG;
    *noticed += verdict == LINEAR_NO;
}

/* One operation of a history made by hand: times in order of appearance. */
static void hand_op(struct window *window, unsigned conn, uint64_t from, uint64_t to, const char *command,
                    const char *reply)
{
    struct op *op = &window->ops[window->op_count++];
    struct chance chance = chance_make(1, 1);
    uint64_t unique = 0;

    /* The random maker is asked until it makes this very command: so no second parser is needed. */
    for (unsigned tries = 0; tries < 2000000; tries++) {
        struct texts *texts = &window->texts;
        struct conn shown = {.fd = -1};
        struct text *out = &shown.out;
        bool same;

        unique = 0;
        *op = (struct op){.conn = (uint8_t)conn};
        op_make(op, texts, &chance, &unique);
        if (op->in_transaction)
            continue;
        op_send(op, texts, &shown);
        text_append(out, "", 1);
        same = strstr(out->data, command) != NULL;
        text_fini(out);
        if (same) {
            op->pending = reply == NULL;
            op->invoked_ns = from;
            op->returned_ns = to;
            op->reply = reply != NULL ? texts_number(texts, reply, strlen(reply)) : 0;
            return;
        }
    }
    die("no such command: %s", command);
}

static struct window *hand_window(void)
{
    static struct window window;

    texts_clear(&window.texts);
    window.op_count = 0;
    memset(&window.begin, 0, sizeof(window.begin));
    memset(&window.end, 0, sizeof(window.end));
    return &window;
}

#define K(n) "$2\r\nk" #n "\r\n"
#define V(n) "$2\r\nv" #n "\r\n"

static void check_checker(void)
{
    struct verdict_info info;
    struct window *window = hand_window();
    unsigned right = 0;

    hand_op(window, 0, 10, 20, "*3\r\n$3\r\nSET\r\n" K(0) V(1), "+OK;");
    hand_op(window, 1, 15, 25, "*2\r\n$3\r\nGET\r\n" K(0), "_;");
    window->end.values[0][0] = texts_number(&window->texts, "v1", 2);
    right += window_verdict(window, &info) == LINEAR_YES;
    window->ops[1].invoked_ns = 21; /* a stale read */
    right += window_verdict(window, &info) == LINEAR_NO;
    window->ops[1].conn = 0; /* the same by the order of one connection alone */
    window->ops[1].invoked_ns = 15;
    right += window_verdict(window, &info) == LINEAR_NO;

    window = hand_window();
    hand_op(window, 0, 10, 20, "*2\r\n$4\r\nINCR\r\n" K(1), ":1;");
    hand_op(window, 1, 10, 20, "*2\r\n$4\r\nINCR\r\n" K(1), ":2;");
    window->end.values[0][1] = texts_number(&window->texts, "2", 1);
    right += window_verdict(window, &info) == LINEAR_YES;
    window->ops[1].reply = window->ops[0].reply; /* a lost update */
    right += window_verdict(window, &info) == LINEAR_NO;

    window = hand_window();
    hand_op(window, 0, 10, 40, "*5\r\n$4\r\nMSET\r\n" K(0) V(1) K(1) V(2), NULL);
    hand_op(window, 1, 10, 40, "*4\r\n$4\r\nMGET\r\n" K(0) K(1) K(0), "*3;$v1;$v2;$v1;");
    window->end.values[0][0] = texts_number(&window->texts, "v1", 2);
    window->end.values[0][1] = texts_number(&window->texts, "v2", 2);
    right += window_verdict(window, &info) == LINEAR_YES; /* nobody saw its reply, but it has happened */
    window->ops[1].reply = texts_number(&window->texts, "*3;_;$v2;_;", 11); /* half of it */
    right += window_verdict(window, &info) == LINEAR_NO;
    check(right == 7, "linear: the checker knows right from wrong in %u of 7 histories made by hand", right);
}

/* --- the part --- */

static void linear_thread(void *context, unsigned index)
{
    struct linear *linear = context;

    for (;;) {
        pthread_barrier_wait(&linear->begin);
        if (linear->stop)
            return;
        run_window(linear, index);
        pthread_barrier_wait(&linear->end);
    }
}

struct linear_run {
    struct linear *linear;
    double seconds;
    unsigned asked, noticed;
};

/* Thread 0 conducts, the others play. */
static void linear_any(void *context, unsigned index)
{
    struct linear_run *run = context;
    struct linear *linear = run->linear;
    uint64_t until = now_ns() + (uint64_t)(run->seconds * 1e9);

    if (index != 0) {
        linear_thread(linear, index - 1);
        return;
    }
    while (now_ns() < until && linear->undecided < 500) {
        begin_from_end(linear);
        plan_window(linear);
        pthread_barrier_wait(&linear->begin);
        pthread_barrier_wait(&linear->end);
        replace_dead(linear);
        read_state(linear, &linear->window.end);
        judge_window(linear);
        if (chance_below(&linear->chance, 50) == 0 && linear->window.op_count != 0)
            corrupt_window(linear, &run->asked, &run->noticed);
    }
    linear->stop = true;
    pthread_barrier_wait(&linear->begin);
}

void part_linear(const struct options *options, double seconds)
{
    static struct linear linear;
    struct linear_run run = {&linear, seconds, 0, 0};
    struct server server;

    check_checker();
    server_start(&server, options, options->server_threads);
    linear.port = server.port;
    linear.chance = chance_make(options->seed, 1);
    pthread_barrier_init(&linear.begin, NULL, THREADS + 1);
    pthread_barrier_init(&linear.end, NULL, THREADS + 1);
    pthread_mutex_init(&linear.texts_lock, NULL);
    for (unsigned c = 0; c < CONNS; c++)
        conn_start(&linear.conns[c], server.port, (int)(c % MODEL_DBS));
    for (unsigned db = 0; db < MODEL_DBS; db++)
        conn_start(&linear.watcher[db], server.port, (int)db);
    check(server_is_spread(&linear.watcher[0], options->server_threads), "linear: all workers have clients");

    threads_run(THREADS + 1, linear_any, &run);

    say("linear: %llu windows, %llu operations, %llu without reply, %llu kills, %llu closes, %llu nodes searched",
        (unsigned long long)linear.windows, (unsigned long long)linear.ops, (unsigned long long)linear.pending,
        (unsigned long long)linear.kills, (unsigned long long)linear.closes, (unsigned long long)linear.nodes);
    check(linear.windows > 0 && complaints() == 0, "linear: every window's history has an order that explains it");
    check(linear.undecided * 50 <= linear.windows, "linear: %llu windows were too hard to decide (1 in 50 may be)",
          (unsigned long long)linear.undecided);
    check(run.asked > 0 && run.noticed == run.asked, "linear: %u of %u histories damaged on purpose were noticed",
          run.noticed, run.asked);
    for (unsigned c = 0; c < CONNS; c++)
        conn_close(&linear.conns[c]);
    for (unsigned db = 0; db < MODEL_DBS; db++)
        conn_close(&linear.watcher[db]);
    server_stop(&server, "linear");
}
