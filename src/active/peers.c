#include "active/peers.h"

#include "active/options.h"
#include "base/assert.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/rows.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "replication/master.h"
#include "replication/options.h"
#include "server/config/config.h"
#include "server/core/role.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static struct {
    struct spinlock lock;                           /* rank LOCK_REGISTRY */
    struct peer items[PEERS_MOST] GUARDED_BY(lock); /* changes with the gate owned, too */
    _Atomic uint32_t count;                         /* atomic: relaxed; changes under the lock */
    _Atomic uint64_t generation;                    /* atomic: relaxed; likewise */
    uint32_t last_id;                               /* with the gate owned, or before the workers start */
    void (*changed)(void);                          /* const after setup; NULL: none */
    bool is_started;                                /* const once the server has started */
} peers;

/* ------------------------------------------------------------------------------------------------------- looking -- */

uint32_t peers_count(void)
{
    return atomic_load_explicit(&peers.count, memory_order_relaxed);
}

uint64_t peers_generation(void)
{
    return atomic_load_explicit(&peers.generation, memory_order_relaxed);
}

void peers_each(void (*visit)(const struct peer *peer, void *context), void *context)
{
    struct peer *copy;
    uint32_t count;

    spinlock_assert_none_held();
    if (peers_count() == 0)
        return;
    copy = mem_alloc(sizeof(peers.items));
    spinlock_acquire(&peers.lock);
    count = peers_count();
    memcpy(copy, peers.items, count * sizeof(*copy));
    spinlock_release(&peers.lock);
    for (uint32_t i = 0; i < count; i++)
        visit(&copy[i], context);
    mem_free(copy);
}

/* ------------------------------------------------------------------------------------------------------ changing -- */

/* With the gate owned, or before the workers start: so nobody else changes the list. */
static uint32_t find(const char *host, int port)
{
    uint32_t i = 0;

    gate_assert_alone();
    while (i < peers_count() && (strcasecmp(peers.items[i].host, host) != 0 || peers.items[i].port != port))
        i++;
    return i;
}

static void set_count_locked(uint32_t count) REQUIRES(peers.lock)
{
    spinlock_assert_held(&peers.lock);
    atomic_store_explicit(&peers.count, count, memory_order_relaxed);
    atomic_store_explicit(&peers.generation, peers_generation() + 1, memory_order_relaxed);
}

static void tell(void)
{
    gate_assert_alone();
    role_set_active(OPTION_IS(option_active_replica) && peers_count() != 0);
    if (peers.changed != NULL && peers.is_started)
        peers.changed();
}

enum peers_result peers_add(const char *host, int port)
{
    const uint32_t count = peers_count();

    gate_assert_alone();
    assert(host[0] != '\0');
    if (find(host, port) < count)
        return PEERS_SAME;
    if (count == PEERS_MOST)
        return PEERS_FULL;
    spinlock_acquire(&peers.lock);
    peers.items[count] = (struct peer){.id = ++peers.last_id, .port = port};
    (void)snprintf(peers.items[count].host, sizeof(peers.items[count].host), "%s", host);
    set_count_locked(count + 1);
    spinlock_release(&peers.lock);
    tell();
    return PEERS_DONE;
}

bool peers_remove(const char *host, int port)
{
    const uint32_t count = peers_count(), at = find(host, port);

    gate_assert_alone();
    if (at == count)
        return false;
    spinlock_acquire(&peers.lock);
    memmove(&peers.items[at], &peers.items[at + 1], (count - at - 1) * sizeof(peers.items[0]));
    set_count_locked(count - 1);
    spinlock_release(&peers.lock);
    tell();
    return true;
}

bool peers_clear(void)
{
    gate_assert_alone();
    if (peers_count() == 0)
        return false;
    spinlock_acquire(&peers.lock);
    set_count_locked(0);
    spinlock_release(&peers.lock);
    tell();
    return true;
}

bool peers_has(const char *host, int port)
{
    gate_assert_alone();
    return find(host, port) < peers_count();
}

/* --------------------------------------------------------------------------------------------------- the option -- */

static bool fail(char *error, size_t error_size, const char *text)
{
    (void)snprintf(error, error_size, "%s", text);
    return false;
}

static bool set(const struct option_row *row, const struct slice *words, size_t count, char *error, size_t error_size)
{
    char host[sizeof(((struct peer *)NULL)->host)];
    int64_t port;

    (void)row;
    thread_assert_main();
    if (count == 0 || (count == 1 && words[0].size == 0)) {
        (void)peers_clear();
        return true;
    }
    if (count != 2)
        return fail(error, error_size, "wrong number of arguments");
    if (slice_equal_text_nocase(words[0], "no") && slice_equal_text_nocase(words[1], "one")) {
        (void)peers_clear();
        return true;
    }
    if (!number_parse_i64(words[1], &port) || port < 0 || port > 65535)
        return fail(error, error_size, "Invalid master port");
    if (words[0].size == 0 || words[0].size >= sizeof(host) || memchr(words[0].data, '\0', words[0].size) != NULL)
        return fail(error, error_size, "Invalid master host");
    memcpy(host, words[0].data, words[0].size);
    host[words[0].size] = '\0';
    if (peers_add(host, (int)port) == PEERS_FULL)
        return fail(error, error_size, "too many masters");
    return true;
}

struct lines {
    const char *name; /* NULL: one line of all */
    struct buffer *buffer;
    unsigned count;
};

static void append_one(const struct peer *peer, void *context)
{
    struct lines *lines = context;

    if (lines->name != NULL)
        buffer_printf(lines->buffer, "%s %s %d\n", lines->name, peer->host, peer->port);
    else
        buffer_printf(lines->buffer, "%s%s %d", lines->count++ != 0 ? " " : "", peer->host, peer->port);
}

static void append(struct lines *lines)
{
    struct master_address master;

    (void)master_address(&master);
    if (master.host[0] != '\0') {
        struct peer only = {.port = master.port};

        (void)snprintf(only.host, sizeof(only.host), "%s", master.host);
        append_one(&only, lines);
    }
    peers_each(append_one, lines);
}

/* "host port" of each. */
static void get(const struct option_row *row, struct buffer *buffer)
{
    (void)row;
    append(&(struct lines){.buffer = buffer});
}

static void rewrite(const struct option_row *row, struct buffer *buffer)
{
    append(&(struct lines){.name = row->name, .buffer = buffer});
}

static const struct option_row rows[] = {
    ROW_SPECIAL("replicaof", set, get, "", OPTION_MULTI_ARG,
                "The host and the port of the master to follow; with multi-master one line for each.",
                .alias = "slaveof", .rewrite = rewrite),
};

void peers_on_change(void (*changed)(void))
{
    gate_assert_main_alone();
    assert(peers.changed == NULL);
    peers.changed = changed;
}

void peers_setup(void)
{
    thread_assert_main();
    spinlock_init(&peers.lock, LOCK_REGISTRY);
    config_add_rows(rows, countof(rows));
}

/* The last line counts where there can be only one. */
static void keep_last(void)
{
    while (peers_count() > 1) {
        const struct peer first = peers.items[0];

        log_warning("replicaof %s %d is not used: several masters need multi-master yes", first.host, first.port);
        (void)peers_remove(first.host, first.port);
    }
}

static bool start(struct server *server)
{
    (void)server;
    gate_assert_main_alone();
    if (OPTION_IS(option_multi_master) && !OPTION_IS(option_active_replica)) {
        log_warning("multi-master yes needs active-replica yes");
        return false;
    }
    if (!OPTION_IS(option_multi_master))
        keep_last();
    role_set_active(OPTION_IS(option_active_replica) && peers_count() != 0);
    if (OPTION_IS(option_active_replica)) {
        atomic_store_explicit(&option_replica_read_only, 0, memory_order_relaxed);
        return true;
    }
    if (peers_count() != 0) {
        master_choose(peers.items[0].host, peers.items[0].port);
        (void)peers_clear();
    }
    return true;
}

static void begin(struct server *server)
{
    (void)server;
    gate_assert_main_alone();
    peers.is_started = true;
}

const struct lifecycle peers_lifecycle = {.server_start = start, .server_begin = begin};
