/* Invariants at full speed: statements that hold in any order, checked over many operations.
 *
 *     tags        MSET writes one text to eight keys; MGET, and GETs in a transaction, see one text
 *     counters    replies of INCR are different numbers, grow with time, and the last is the count
 *     transfers   transactions move money between accounts; every reader of all accounts finds the same sum
 *     watch       optimistic increments of one key: none is lost; of a key of one's own: none is refused
 *
 * Meanwhile one thread runs commands that need the whole server, and kills clients at random, and other clients
 * disconnect. */
#include "conn.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLAYERS = 4, /* threads */
    CONNS_A_PLAYER = 4,
    ROUND_OPS = 12, /* commands a connection sends in one piece */
    TAG_KEYS = 8,
    ACCOUNTS = 8,
    ACCOUNT_MONEY = 1000,
    RECORDS_MOST = 1 << 19
};

/* A reply of INCR. */
struct record {
    int64_t value;
    uint64_t invoked_ns, returned_ns;
};

enum kind { TAG_WRITE, TAG_READ, TAG_READ_EXEC, COUNT, TRANSFER, SUM, SUM_EXEC, KIND_COUNT };
static const unsigned kind_replies[KIND_COUNT] = {1, 1, TAG_KEYS + 2, 1, 4, 1, ACCOUNTS + 2};

struct player {
    struct conn conns[CONNS_A_PLAYER];
    struct record *records;
    size_t record_count;
    uint64_t counts[KIND_COUNT];
    uint64_t lost_counts;                          /* INCR without reply */
    uint64_t watch_wins, watch_losses, watch_lost; /* lost: without reply */
    uint64_t own_wins, reconnects;
};

struct invariants {
    int port;
    uint64_t seed, until_ns;
    struct player players[PLAYERS];
    _Atomic int64_t ids[PLAYERS * CONNS_A_PLAYER];
    uint64_t exclusive, kills;
};

/* --- checks, which are also given damaged data --- */

static bool tags_agree(struct raw array)
{
    struct raw first = raw_child(array, 0);

    for (size_t i = 1; i < TAG_KEYS; i++) {
        struct raw other = raw_child(array, i);

        if (other.size != first.size || memcmp(other.data, first.data, first.size) != 0)
            return false;
    }
    return raw_is_array(array) && raw_number(array) == TAG_KEYS;
}

static int64_t sum_of(struct raw array)
{
    int64_t sum = 0;

    for (size_t i = 0; i < ACCOUNTS; i++)
        sum += raw_number(raw_child(array, i));
    return sum;
}

static int compare_records(const void *left, const void *right)
{
    const struct record *a = left, *b = right;

    return a->value < b->value ? -1 : a->value > b->value;
}

/* Different numbers from 1 on, as many missing as had no reply, and what returned first has the smaller number. */
static bool records_are_right(struct record *records, size_t count, uint64_t may_miss)
{
    uint64_t earliest_return = UINT64_MAX; /* of the greater ones */

    qsort(records, count, sizeof(*records), compare_records);
    for (size_t i = count; i-- > 0;) {
        if (i > 0 && records[i].value == records[i - 1].value)
            return false;
        if (records[i].invoked_ns > earliest_return) /* a greater one was there before this was asked for */
            return false;
        earliest_return = records[i].returned_ns < earliest_return ? records[i].returned_ns : earliest_return;
    }
    return count == 0 || (records[0].value >= 1 && (uint64_t)records[count - 1].value <= count + may_miss);
}

/* --- players --- */

static void revive(struct invariants *invariants, unsigned index, unsigned c)
{
    struct player *player = &invariants->players[index];

    conn_close(&player->conns[c]);
    while (!conn_try_start(&player->conns[c], invariants->port, 0))
        conn_close(&player->conns[c]);
    atomic_store(&invariants->ids[index * CONNS_A_PLAYER + c], player->conns[c].id);
    player->reconnects++;
}

static void add_command(struct conn *conn, enum kind kind, struct chance *chance)
{
    unsigned long long tag = (unsigned long long)chance_next(chance);
    unsigned from = chance_below(chance, ACCOUNTS), to = chance_below(chance, ACCOUNTS);
    unsigned amount = 1 + chance_below(chance, 50);

    switch (kind) {
    case TAG_WRITE:
        conn_add(conn, "MSET t3 %llx t1 %llx t6 %llx t2 %llx t0 %llx t7 %llx t5 %llx t4 %llx", tag, tag, tag, tag, tag,
                 tag, tag, tag);
        break;
    case TAG_READ:
        conn_add(conn, "MGET t0 t1 t2 t3 t4 t5 t6 t7");
        break;
    case TAG_READ_EXEC:
        conn_add(conn, "MULTI");
        for (unsigned i = 0; i < TAG_KEYS; i++)
            conn_add(conn, "GET t%u", i);
        conn_add(conn, "EXEC");
        break;
    case COUNT:
        conn_add(conn, "INCR counter");
        break;
    case TRANSFER:
        conn_add(conn, "MULTI");
        conn_add(conn, "DECRBY a%u %u", from, amount);
        conn_add(conn, "INCRBY a%u %u", to, amount);
        conn_add(conn, "EXEC");
        break;
    case SUM:
        conn_add(conn, "MGET a0 a1 a2 a3 a4 a5 a6 a7");
        break;
    case SUM_EXEC:
        conn_add(conn, "MULTI");
        for (unsigned i = 0; i < ACCOUNTS; i++)
            conn_add(conn, "GET a%u", i);
        conn_add(conn, "EXEC");
        break;
    case KIND_COUNT:
        break;
    }
}

static void judge_reply(struct player *player, enum kind kind, struct raw reply, uint64_t invoked_ns)
{
    char room[600];

    player->counts[kind]++;
    if (raw_is_error(reply))
        complain("invariants: an error: %s", raw_show(reply, room, sizeof(room)));
    else if ((kind == TAG_READ || kind == TAG_READ_EXEC) && !tags_agree(reply))
        complain("invariants: half an MSET was seen: %s", raw_show(reply, room, sizeof(room)));
    else if ((kind == SUM || kind == SUM_EXEC) && sum_of(reply) != ACCOUNTS * ACCOUNT_MONEY)
        complain("invariants: the accounts' sum is %lld: %s", (long long)sum_of(reply),
                 raw_show(reply, room, sizeof(room)));
    else if (kind == COUNT && player->record_count < RECORDS_MOST)
        player->records[player->record_count++] = (struct record){raw_number(reply), invoked_ns, now_ns()};
}

/* Each connection gets its commands in one piece; replies are read when all have theirs. */
static void play_mixed(struct invariants *invariants, unsigned index, struct chance *chance)
{
    struct player *player = &invariants->players[index];
    enum kind kinds[CONNS_A_PLAYER][ROUND_OPS];
    uint64_t invoked_ns[CONNS_A_PLAYER];

    for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
        for (unsigned i = 0; i < ROUND_OPS; i++) {
            kinds[c][i] = (enum kind)chance_below(chance, KIND_COUNT);
            if (kinds[c][i] == COUNT && player->record_count >= RECORDS_MOST - CONNS_A_PLAYER * ROUND_OPS)
                kinds[c][i] = SUM;
            add_command(&player->conns[c], kinds[c][i], chance);
        }
        invoked_ns[c] = now_ns();
        conn_send(&player->conns[c]);
    }
    for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
        bool hang_up = chance_below(chance, 2000) == 0;
        enum got got = GOT_REPLY;
        struct raw reply;

        for (unsigned i = 0; i < ROUND_OPS; i++) {
            for (unsigned n = 0; n < kind_replies[kinds[c][i]] && got == GOT_REPLY; n++)
                got = hang_up ? GOT_CLOSED : conn_read(&player->conns[c], &reply, reply_limit_seconds);
            if (got == GOT_REPLY)
                judge_reply(player, kinds[c][i], reply, invoked_ns[c]);
            else
                player->lost_counts += kinds[c][i] == COUNT;
        }
        if (got == GOT_NOTHING)
            die("invariants: no reply within %g s", reply_limit_seconds);
        if (got == GOT_CLOSED)
            revive(invariants, index, c);
    }
}

/* Reads one key watched, then writes it one greater: a key of all, or one that nobody else writes. */
static void play_watch(struct invariants *invariants, unsigned index, struct chance *chance)
{
    struct player *player = &invariants->players[index];
    bool own = chance_below(chance, 4) == 0;
    int64_t values[CONNS_A_PLAYER];
    bool alive[CONNS_A_PLAYER];
    struct raw reply;

    for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
        if (own)
            conn_add(&player->conns[c], "WATCH own%u:%u", index, c);
        else
            conn_add(&player->conns[c], "WATCH w0 shared w1");
        if (own)
            conn_add(&player->conns[c], "GET own%u:%u", index, c);
        else
            conn_add(&player->conns[c], "GET shared");
        conn_send(&player->conns[c]);
    }
    for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
        alive[c] = conn_read(&player->conns[c], &reply, reply_limit_seconds) == GOT_REPLY &&
                   conn_read(&player->conns[c], &reply, reply_limit_seconds) == GOT_REPLY;
        if (!alive[c])
            continue;
        values[c] = raw_is_null(reply) ? 0 : raw_number(reply);
        conn_add(&player->conns[c], "MULTI");
        if (own)
            conn_add(&player->conns[c], "SET own%u:%u %lld", index, c, (long long)values[c] + 1);
        else
            conn_add(&player->conns[c], "SET shared %lld", (long long)values[c] + 1);
        conn_add(&player->conns[c], "EXEC");
        conn_send(&player->conns[c]);
    }
    for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
        for (unsigned i = 0; i < 3 && alive[c]; i++)
            alive[c] = conn_read(&player->conns[c], &reply, reply_limit_seconds) == GOT_REPLY;
        if (!alive[c]) {
            player->watch_lost += !own;
            revive(invariants, index, c);
        } else if (own && raw_is_null(reply)) {
            complain("invariants: EXEC was refused though nobody touched the watched key");
        } else if (own) {
            player->own_wins++;
        } else if (raw_is_null(reply)) {
            player->watch_losses++;
        } else {
            player->watch_wins++;
        }
    }
}

/* Runs commands that need the whole server, and kills. Only this thread uses databases 8 and 9. */
static void disturb(struct invariants *invariants)
{
    struct chance chance = chance_make(invariants->seed, 99);
    struct conn conn, far;

    conn_start(&conn, invariants->port, 0);
    conn_start(&far, invariants->port, 9);
    while (now_ns() < invariants->until_ns) {
        int64_t id = atomic_load(&invariants->ids[chance_below(&chance, PLAYERS * CONNS_A_PLAYER)]);

        switch (chance_below(&chance, 8)) {
        case 0:
            conn_ask(&conn, "KEYS *");
            break;
        case 1:
            conn_ask(&far, "SET far 1");
            conn_ask(&far, "FLUSHDB");
            break;
        case 2:
            conn_ask(&far, "SWAPDB 8 9");
            break;
        case 3:
            conn_ask(&conn, "DEBUG SLEEP 0.001");
            break;
        case 4:
            conn_ask(&conn, "CONFIG SET hz %u", 10 + chance_below(&chance, 5));
            break;
        case 5:
            conn_ask(&far, "MULTI");
            conn_ask(&far, "SET far 2");
            conn_ask(&far, "FLUSHDB");
            conn_ask(&far, "EXEC");
            break;
        case 6:
            conn_ask(&conn, "INFO");
            break;
        default:
            if (chance_below(&chance, 4) == 0)
                invariants->kills += (uint64_t)raw_number(conn_ask(&conn, "CLIENT KILL ID %lld", (long long)id));
        }
        invariants->exclusive++;
        sleep_ms(chance_below(&chance, 6));
    }
    conn_close(&conn);
    conn_close(&far);
}

static void play(void *context, unsigned index)
{
    struct invariants *invariants = context;
    struct chance chance = chance_make(invariants->seed, 100 + index);

    if (index == PLAYERS) {
        disturb(invariants);
        return;
    }
    while (now_ns() < invariants->until_ns) {
        if (chance_below(&chance, 4) == 0)
            play_watch(invariants, index, &chance);
        else
            play_mixed(invariants, index, &chance);
    }
    for (unsigned c = 0; c < CONNS_A_PLAYER; c++)
        conn_close(&invariants->players[index].conns[c]);
}

/* --- the part --- */

static void prepare(struct invariants *invariants, int threads)
{
    struct conn conn;

    conn_start(&conn, invariants->port, 0);
    for (unsigned i = 0; i < ACCOUNTS; i++)
        conn_ask(&conn, "SET a%u %d", i, ACCOUNT_MONEY);
    for (unsigned i = 0; i < PLAYERS; i++) {
        struct player *player = &invariants->players[i];

        player->records = calloc(RECORDS_MOST, sizeof(*player->records));
        if (player->records == NULL)
            die("out of memory");
        for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
            conn_start(&player->conns[c], invariants->port, 0);
            atomic_store(&invariants->ids[i * CONNS_A_PLAYER + c], player->conns[c].id);
        }
    }
    check(server_is_spread(&conn, threads), "invariants: all workers have clients");
    conn_close(&conn);
}

static void check_checkers(struct record *records, size_t count)
{
    static const char torn_text[] = "*8\r\n:1\r\n:1\r\n:1\r\n:2\r\n:1\r\n:1\r\n:1\r\n:1\r\n";
    struct raw torn = {torn_text, sizeof(torn_text) - 1};
    struct record twice[] = {{1, 10, 20}, {2, 12, 22}, {2, 14, 24}};
    struct record backward[] = {{1, 30, 40}, {2, 10, 20}};
    struct record missing[] = {{1, 10, 20}, {3, 30, 40}};
    unsigned noticed = !tags_agree(torn) + !records_are_right(twice, 3, 0) + !records_are_right(backward, 2, 0) +
                       !records_are_right(missing, 2, 0) + records_are_right(missing, 2, 1);

    if (count > 2) { /* in the last correct reply, sorted by value */
        struct record middle = records[count / 2];

        records[count / 2].value = records[count / 2 - 1].value;
        noticed += !records_are_right(records, count, UINT32_MAX);
        records[count / 2] = middle;
    } else {
        noticed++;
    }
    check(noticed == 6, "invariants: damaged on purpose: %u of 6 were judged rightly", noticed);
}

static void check_counters(struct invariants *invariants, struct conn *conn)
{
    struct record *all;
    size_t count = 0;
    uint64_t lost = 0;
    int64_t last;

    for (unsigned i = 0; i < PLAYERS; i++)
        count += invariants->players[i].record_count;
    all = calloc(count + 1, sizeof(*all));
    if (all == NULL)
        die("out of memory");
    count = 0;
    for (unsigned i = 0; i < PLAYERS; i++) {
        memcpy(all + count, invariants->players[i].records, invariants->players[i].record_count * sizeof(*all));
        count += invariants->players[i].record_count;
        lost += invariants->players[i].lost_counts;
    }
    last = raw_number(conn_ask(conn, "GET counter"));
    check(records_are_right(all, count, lost),
          "invariants: %zu replies of INCR are different and grow with time (%llu had none)", count,
          (unsigned long long)lost);
    check(last >= (int64_t)count && last <= (int64_t)(count + lost),
          "invariants: the counter is %lld after %zu to %zu INCR", (long long)last, count, count + (size_t)lost);
    check_checkers(all, count);
    free(all);
}

static void check_watches(struct invariants *invariants, struct conn *conn)
{
    uint64_t wins = 0, losses = 0, lost = 0, own = 0;
    int64_t shared = raw_number(conn_ask(conn, "GET shared"));

    for (unsigned i = 0; i < PLAYERS; i++) {
        wins += invariants->players[i].watch_wins;
        losses += invariants->players[i].watch_losses;
        lost += invariants->players[i].watch_lost;
        own += invariants->players[i].own_wins;
    }
    if (shared < 0 && wins == 0)
        shared = 0;
    check(shared >= (int64_t)wins && shared <= (int64_t)(wins + lost),
          "invariants: the key of %llu optimistic increments (%llu refused, %llu unknown, %llu of own keys) is %lld",
          (unsigned long long)wins, (unsigned long long)losses, (unsigned long long)lost, (unsigned long long)own,
          (long long)shared);
}

void part_invariants(const struct options *options, double seconds)
{
    static struct invariants invariants;
    uint64_t counts[KIND_COUNT] = {0}, reconnects = 0;
    struct server server;
    struct conn conn;

    server_start(&server, options, options->server_threads);
    invariants.port = server.port;
    invariants.seed = options->seed;
    prepare(&invariants, options->server_threads);
    invariants.until_ns = now_ns() + (uint64_t)(seconds * 1e9);
    threads_run(PLAYERS + 1, play, &invariants);
    for (unsigned i = 0; i < PLAYERS; i++) {
        for (unsigned k = 0; k < KIND_COUNT; k++)
            counts[k] += invariants.players[i].counts[k];
        reconnects += invariants.players[i].reconnects;
    }
    say("invariants: %llu MSET, %llu + %llu reads of all keys, %llu transfers, %llu + %llu sums, %llu disturbances, "
        "%llu kills, %llu reconnects",
        (unsigned long long)counts[TAG_WRITE], (unsigned long long)counts[TAG_READ],
        (unsigned long long)counts[TAG_READ_EXEC], (unsigned long long)counts[TRANSFER],
        (unsigned long long)counts[SUM], (unsigned long long)counts[SUM_EXEC], (unsigned long long)invariants.exclusive,
        (unsigned long long)invariants.kills, (unsigned long long)reconnects);
    check(complaints() == 0 && counts[TAG_READ] > 0 && counts[SUM] > 0,
          "invariants: no half MSET, no money lost, no needless refusal");
    conn_start(&conn, server.port, 0);
    check(sum_of(conn_ask(&conn, "MGET a0 a1 a2 a3 a4 a5 a6 a7")) == ACCOUNTS * ACCOUNT_MONEY,
          "invariants: the sum is right at the end");
    check_counters(&invariants, &conn);
    check_watches(&invariants, &conn);
    conn_close(&conn);
    for (unsigned i = 0; i < PLAYERS; i++)
        free(invariants.players[i].records);
    server_stop(&server, "invariants");
}
