/* Members with deadlines, at full speed: hashes, sets and sorted sets that all clients share, in which each connection
 * has members of its own and knows their state.
 *
 * A member does not expire before its time, and an expired member stays away until its owner adds it again; every later
 * reply agrees with the owner's changes. A member is late if it still exists LATE_MS after its time: workers sample the
 * clock once a turn, so this only checks that it expires at all. In the end each key has exactly the members that its
 * owners count.
 *
 * Meanwhile one thread renames the keys there and back, copies them, walks over them, moves their memory, pauses
 * writers and runs commands that need the whole server. */
#include "conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PLAYERS = 4, /* threads */
    CONNS_A_PLAYER = 4,
    KEYS = 6,
    MEMBERS = 10, /* of each connection in each key */
    LATE_MS = 5000,
    NEVER = 0
};

enum action { ADD, EXPIRE, EXPIRE_FIELD, REMOVE, IS_THERE, LEFT, PERSIST, GET_ALL, ACTION_COUNT };

static const char *const key_names[KEYS] = {"h0", "s0", "z0", "h1", "s1", "z1"};

/* The owner's knowledge of a member. */
struct member {
    bool exists; /* unless its time has come */
    int64_t when_ms;
};

struct actor {
    struct conn conn;
    struct member members[KEYS][MEMBERS];
    /* The command that is under way. */
    enum action action;
    unsigned key, member;
    int64_t when_ms, sent_ms;
    uint64_t counts[ACTION_COUNT], deaths;
};

struct subkey_ttls {
    int port;
    uint64_t seed, until_ns;
    struct actor actors[PLAYERS * CONNS_A_PLAYER];
    uint64_t disturbances;
};

static int64_t wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- judging, which is also applied to known errors --- */

/* Judges whether `seen` is possible between sent_ms and now_ms. The member then has the state seen. NULL: yes. */
static const char *judge(struct member *member, bool seen, int64_t sent_ms, int64_t now_ms)
{
    const char *problem = NULL;

    if (!member->exists)
        problem = seen ? "is there though it was gone" : NULL;
    else if (!seen && (member->when_ms == NEVER || now_ms < member->when_ms))
        problem = "went before its time";
    else if (seen && member->when_ms != NEVER && sent_ms > member->when_ms + LATE_MS)
        problem = "is there though its time has come";
    member->exists = seen;
    if (!seen)
        member->when_ms = NEVER;
    return problem;
}

static void check_judge(void)
{
    struct member gone = {false, NEVER}, lives = {true, NEVER}, later = {true, 1000}, sooner = {true, 1000},
                  due = {true, 1000}, late = {true, 1000};
    unsigned wrong = 0, right = 0;

    wrong += judge(&gone, true, 10, 20) != NULL;
    wrong += judge(&lives, false, 10, 20) != NULL;
    wrong += judge(&later, false, 10, 999) != NULL;
    wrong += judge(&late, true, 1001 + LATE_MS, 2000 + LATE_MS) != NULL;
    right += judge(&sooner, true, 10, 2000) == NULL && sooner.exists;
    right += judge(&due, false, 10, 1000) == NULL && !due.exists && due.when_ms == NEVER;
    check(wrong == 4 && right == 2, "lifetimes: what is wrong on purpose is noticed, what is right is not");
}

/* --- actors --- */

static bool is_hash(unsigned key)
{
    return key_names[key][0] == 'h';
}

static unsigned number_of(const struct subkey_ttls *lifetimes, const struct actor *actor)
{
    return (unsigned)(actor - lifetimes->actors);
}

static void add_command(const struct subkey_ttls *lifetimes, struct actor *actor)
{
    const char *key = key_names[actor->key];
    unsigned owner = number_of(lifetimes, actor), member = actor->member;
    struct conn *conn = &actor->conn;

    switch (actor->action) {
    case ADD:
        if (key[0] == 'h')
            conn_add(conn, "HSET %s m%u:%u 1", key, owner, member);
        else if (key[0] == 's')
            conn_add(conn, "SADD %s m%u:%u", key, owner, member);
        else
            conn_add(conn, "ZADD %s %u m%u:%u", key, member, owner, member);
        break;
    case EXPIRE:
        conn_add(conn, "PEXPIREMEMBERAT %s m%u:%u %lld", key, owner, member, (long long)actor->when_ms);
        break;
    case EXPIRE_FIELD:
        conn_add(conn, "HPEXPIREAT %s %lld FIELDS 1 m%u:%u", key, (long long)actor->when_ms, owner, member);
        break;
    case REMOVE:
        conn_add(conn, "%s %s m%u:%u", key[0] == 'h' ? "HDEL" : key[0] == 's' ? "SREM" : "ZREM", key, owner, member);
        break;
    case IS_THERE:
        conn_add(conn, "%s %s m%u:%u",
                 key[0] == 'h'   ? "HEXISTS"
                 : key[0] == 's' ? "SISMEMBER"
                                 : "ZSCORE",
                 key, owner, member);
        break;
    case LEFT:
        conn_add(conn, "PTTL %s m%u:%u", key, owner, member);
        break;
    case PERSIST:
        conn_add(conn, "PERSIST %s m%u:%u", key, owner, member);
        break;
    case GET_ALL:
    case ACTION_COUNT:
        if (key[0] == 'h')
            conn_add(conn, "HKEYS %s", key);
        else if (key[0] == 's')
            conn_add(conn, "SMEMBERS %s", key);
        else
            conn_add(conn, "ZRANGE %s 0 -1", key);
        break;
    }
}

static void choose(struct actor *actor, struct chance *chance)
{
    actor->action = (enum action)chance_below(chance, ACTION_COUNT);
    if (actor->action == GET_ALL && chance_below(chance, 8) != 0)
        actor->action = ADD;
    actor->key = chance_below(chance, KEYS);
    actor->member = chance_below(chance, MEMBERS);
    if (actor->action == EXPIRE_FIELD && !is_hash(actor->key))
        actor->action = EXPIRE;
    actor->when_ms = wall_ms() - 2 + chance_below(chance, chance_below(chance, 4) == 0 ? 300 : 20);
}

static void note(const struct subkey_ttls *lifetimes, const struct actor *actor, unsigned member, const char *problem)
{
    if (problem != NULL)
        complain("lifetimes: m%u:%u of %s %s (action %d)", number_of(lifetimes, actor), member, key_names[actor->key],
                 problem, (int)actor->action);
}

static void judge_all(struct subkey_ttls *lifetimes, struct actor *actor, struct raw reply, int64_t now_ms)
{
    bool seen[MEMBERS] = {false};
    size_t count = raw_is_array(reply) ? (size_t)raw_number(reply) : 0;
    const char *at = count != 0 ? raw_child(reply, 0).data : NULL;
    char own[16];
    size_t own_size = (size_t)snprintf(own, sizeof(own), "m%u:", number_of(lifetimes, actor));

    for (size_t i = 0; i < count; i++) {
        struct raw child = {at, raw_size(at, (size_t)(reply.data + reply.size - at))};
        struct raw text = raw_string(child);

        at += child.size;
        if (text.size > own_size && memcmp(text.data, own, own_size) == 0)
            seen[strtoul(text.data + own_size, NULL, 10) % MEMBERS] = true;
    }
    for (unsigned m = 0; m < MEMBERS; m++)
        note(lifetimes, actor, m, judge(&actor->members[actor->key][m], seen[m], actor->sent_ms, now_ms));
}

static void judge_left(struct subkey_ttls *lifetimes, struct actor *actor, int64_t left, int64_t now_ms)
{
    struct member *member = &actor->members[actor->key][actor->member];

    if (left < 0 && member->when_ms != NEVER) { /* it has gone, or the deadline alone has, which must not be */
        note(lifetimes, actor, actor->member, judge(member, false, actor->sent_ms, now_ms));
    } else if (left >= 0) {
        note(lifetimes, actor, actor->member, judge(member, true, actor->sent_ms, now_ms));
        if (member->when_ms == NEVER || left > member->when_ms - actor->sent_ms + LATE_MS ||
            left < member->when_ms - now_ms)
            complain("lifetimes: %lld ms are left of %lld", (long long)left,
                     (long long)(member->when_ms - actor->sent_ms));
    }
}

static void judge_reply(struct subkey_ttls *lifetimes, struct actor *actor, struct raw reply)
{
    struct member *member = &actor->members[actor->key][actor->member];
    bool was_there = member->exists;
    int64_t now_ms = wall_ms();
    char room[300];

    actor->counts[actor->action]++;
    if (raw_is_error(reply)) {
        complain("lifetimes: an error: %s", raw_show(reply, room, sizeof(room)));
        return;
    }
    switch (actor->action) {
    case ADD:
        note(lifetimes, actor, actor->member, judge(member, raw_number(reply) == 0, actor->sent_ms, now_ms));
        member->exists = true;
        if (is_hash(actor->key))
            member->when_ms = NEVER;
        break;
    case EXPIRE:
    case EXPIRE_FIELD:
        if (raw_is_array(reply))
            reply = raw_child(reply, 0);
        note(lifetimes, actor, actor->member, judge(member, raw_number(reply) > 0, actor->sent_ms, now_ms));
        if (member->exists)
            member->when_ms = actor->when_ms;
        break;
    case REMOVE:
        note(lifetimes, actor, actor->member, judge(member, raw_number(reply) == 1, actor->sent_ms, now_ms));
        *member = (struct member){false, NEVER};
        break;
    case IS_THERE:
        note(lifetimes, actor, actor->member,
             judge(member, !raw_is_null(reply) && (raw_is_string(reply) || raw_number(reply) == 1), actor->sent_ms,
                   now_ms));
        break;
    case LEFT:
        judge_left(lifetimes, actor, raw_number(reply), now_ms);
        break;
    case PERSIST:
        if (raw_number(reply) == 1 || member->when_ms != NEVER)
            note(lifetimes, actor, actor->member, judge(member, raw_number(reply) == 1, actor->sent_ms, now_ms));
        member->when_ms = NEVER;
        break;
    case GET_ALL:
    case ACTION_COUNT:
        judge_all(lifetimes, actor, reply, now_ms);
        break;
    }
    actor->deaths += was_there && !member->exists && actor->action != REMOVE;
}

/* --- the others --- */

static void disturb(struct subkey_ttls *lifetimes)
{
    struct chance chance = chance_make(lifetimes->seed, 777);
    struct conn conn;

    conn_start(&conn, lifetimes->port, 0);
    while (now_ns() < lifetimes->until_ns) {
        const char *key = key_names[chance_below(&chance, KEYS)];

        switch (chance_below(&chance, 9)) {
        case 0: /* nobody sees it under its other name; without a key both fail */
            conn_ask(&conn, "MULTI");
            conn_ask(&conn, "RENAME %s away", key);
            conn_ask(&conn, "RENAME away %s", key);
            conn_ask(&conn, "EXEC");
            break;
        case 1:
            conn_ask(&conn, "COPY %s copy%u REPLACE", key, chance_below(&chance, 3));
            break;
        case 2:
            conn_ask(&conn, "KEYS *");
            break;
        case 3:
            conn_ask(&conn, "SCAN 0 COUNT 100");
            break;
        case 4:
            conn_ask(&conn, "DEBUG DIGEST");
            break;
        case 5:
            conn_ask(&conn, "DEBUG DEFRAG-ALL");
            break;
        case 6:
            conn_ask(&conn, "CLIENT PAUSE 5 WRITE");
            break;
        case 7:
            conn_ask(&conn, "PEXPIREAT %s 4102444800000", key);
            break;
        default:
            conn_ask(&conn, "PERSIST %s", key);
        }
        lifetimes->disturbances++;
        sleep_ms(chance_below(&chance, 8));
    }
    conn_close(&conn);
}

static void play(void *context, unsigned index)
{
    struct subkey_ttls *lifetimes = context;
    struct chance chance = chance_make(lifetimes->seed, 500 + index);
    struct actor *actors = &lifetimes->actors[index * CONNS_A_PLAYER];

    if (index == PLAYERS) {
        disturb(lifetimes);
        return;
    }
    while (now_ns() < lifetimes->until_ns) {
        for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
            choose(&actors[c], &chance);
            add_command(lifetimes, &actors[c]);
            actors[c].sent_ms = wall_ms();
            if (!conn_send(&actors[c].conn))
                die("lifetimes: a connection was closed");
        }
        for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
            struct raw reply;

            if (conn_read(&actors[c].conn, &reply, reply_limit_seconds) != GOT_REPLY)
                die("lifetimes: no reply");
            judge_reply(lifetimes, &actors[c], reply);
        }
    }
}

/* --- the part --- */

static void check_keys(struct subkey_ttls *lifetimes, struct conn *conn)
{
    static const char *const commands[] = {"HLEN", "SCARD", "ZCARD"};

    for (unsigned k = 0; k < KEYS; k++) {
        int64_t count = 0;

        for (unsigned a = 0; a < COUNTOF(lifetimes->actors); a++) {
            for (unsigned m = 0; m < MEMBERS; m++) {
                const struct member *member = &lifetimes->actors[a].members[k][m];

                count += member->exists && member->when_ms == NEVER;
            }
        }
        check(raw_number(conn_ask(conn, "%s %s", commands[k % 3], key_names[k])) == count,
              "lifetimes: %s has its %lld members", key_names[k], (long long)count);
    }
}

void part_lifetimes(const struct options *options, double seconds)
{
    static struct subkey_ttls lifetimes;
    uint64_t deaths = 0, commands = 0;
    struct server server;
    struct conn conn;

    check_judge();
    server_start(&server, options, options->server_threads);
    lifetimes.port = server.port;
    lifetimes.seed = options->seed;
    for (unsigned a = 0; a < COUNTOF(lifetimes.actors); a++)
        conn_start(&lifetimes.actors[a].conn, server.port, 0);
    conn_start(&conn, server.port, 0);
    check(server_is_spread(&conn, options->server_threads), "lifetimes: all workers have clients");
    lifetimes.until_ns = now_ns() + (uint64_t)(seconds * 1e9);
    threads_run(PLAYERS + 1, play, &lifetimes);
    for (unsigned a = 0; a < COUNTOF(lifetimes.actors); a++) {
        deaths += lifetimes.actors[a].deaths;
        for (unsigned i = 0; i < ACTION_COUNT; i++)
            commands += lifetimes.actors[a].counts[i];
        conn_close(&lifetimes.actors[a].conn);
    }
    say("lifetimes: %llu commands, %llu members found dead, %llu disturbances", (unsigned long long)commands,
        (unsigned long long)deaths, (unsigned long long)lifetimes.disturbances);
    check(complaints() == 0 && deaths > 0, "lifetimes: nothing went too early, came back, or stayed");
    sleep_ms(400); /* the last deadlines lie in the past by then */
    check_keys(&lifetimes, &conn);
    check(info_number(conn_ask(&conn, "INFO stats"), "expired_subkeys") >= (int64_t)deaths,
          "lifetimes: the server counts those that went");
    conn_close(&conn);
    server_stop(&server, "lifetimes");
}
