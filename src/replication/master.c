#include "replication/master.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/rows.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "replication/backlog.h"
#include "replication/history.h"
#include "replication/master_link.h"
#include "replication/replicas.h"
#include "server/config/config.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/durable/data_history.h"
#include "server/durable/loading.h"
#include "server/tls/certificates.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct spinlock lock;                           /* rank LOCK_REGISTRY */
    struct master_address address GUARDED_BY(lock); /* changes with the gate owned, too */
    _Atomic uint64_t generation;                    /* atomic: relaxed; changed with the gate owned */
} master;

/* ------------------------------------------------------------------------------------------------------- reading -- */

uint64_t master_generation(void)
{
    return atomic_load_explicit(&master.generation, memory_order_relaxed);
}

uint64_t master_address(struct master_address *address)
{
    uint64_t generation;

    spinlock_acquire(&master.lock);
    *address = master.address;
    generation = master_generation();
    spinlock_release(&master.lock);
    return generation;
}

void master_facts(struct master_facts *facts)
{
    struct master_address address;

    *facts = (struct master_facts){.sync_total_bytes = -1, .last_io_s = -1, .down_s = -1, .up_s = -1};
    (void)master_address(&address);
    facts->follows = address.host[0] != '\0';
    (void)snprintf(facts->host, sizeof(facts->host), "%s", address.host);
    facts->port = address.port;
    master_link_facts(facts);
}

bool master_is_away(void)
{
    return role_follows() && !master_link_is_up();
}

void master_stats(struct master_stats *stats)
{
    master_link_stats(stats);
}

void master_reset_stats(void)
{
    gate_assert_alone();
    master_link_reset_stats();
}

/* ------------------------------------------------------------------------------------------------------ changing -- */

static void store_address(const char *host, int port)
{
    spinlock_acquire(&master.lock);
    (void)snprintf(master.address.host, sizeof(master.address.host), "%s", host);
    master.address.port = port;
    atomic_store_explicit(&master.generation, master_generation() + 1, memory_order_relaxed);
    spinlock_release(&master.lock);
}

static bool is_address(const char *host, int port)
{
    struct master_address address;

    (void)master_address(&address);
    return strcmp(address.host, host) == 0 && address.port == port;
}

bool master_follow(const char *host, int port)
{
    gate_assert_alone();
    assert(host[0] != '\0');
    if (is_address(host, port))
        return false;
    if (role_follows())
        role_end_waits();
    else
        role_set(true);
    store_address(host, port);
    loading_cancel(); /* what the former master sends */
    master_link_look();
    return true;
}

bool master_leave(void)
{
    gate_assert_alone();
    if (!role_follows())
        return false;
    store_address("", 0);
    loading_cancel();
    history_fork();
    replicas_disconnect(false);
    journal_select_anew(&server_instance()->journal);
    role_set(false);
    master_link_look();
    return true;
}

/* ------------------------------------------------------------------------------------------------ in RDB files -- */

/* While the journal is off, effects are not counted: nobody else knows this history. */
static bool now_is(struct data_history *now)
{
    struct history_facts facts;

    static_assert((int)DATA_HISTORY_ID_SIZE == (int)HISTORY_ID_SIZE, "ids are of one size");
    if (!backlog_is_on())
        return false;
    history_facts(&facts);
    *now = (struct data_history){.offset = facts.offset, .stream_db = journal_stream_db(&server_instance()->journal)};
    memcpy(now->id, facts.id, sizeof(now->id));
    return true;
}

/* From here on all effects count: the server's replicas, or its master, continue there. */
static void restore(const struct data_history *then)
{
    gate_assert_alone();
    backlog_begin(true);
    history_restore(then->id, then->offset, role_follows());
    journal_set_stream_db(&server_instance()->journal, then->stream_db);
    log_notice("The data is that of the history %s at offset %lld", then->id, (long long)then->offset);
}

static const struct data_history_keeper keeper = {.now = now_is, .restore = restore};

/* ----------------------------------------------------------------------------------------------------- starting -- */

static const char *demand_tls(const struct option_row *row)
{
    return OPTION_IS(*row->number) ? certificates_demand() : NULL;
}

static bool print_address(char *text, size_t size)
{
    struct master_address address;

    (void)master_address(&address);
    snprintf(text, size, "%s:%d", address.host, address.port);
    return address.host[0] != '\0';
}

void master_setup(void)
{
    thread_assert_main();
    role_provide_master(print_address);
    spinlock_init(&master.lock, LOCK_REGISTRY);
    config_on_change("tls-replication", demand_tls);
    config_on_reset_stat(master_reset_stats);
    data_history_provide(&keeper);
    master_link_setup();
}

void master_choose(const char *host, int port)
{
    gate_assert_main_alone();
    assert(host[0] != '\0');
    store_address(host, port);
}

static bool start(struct server *server)
{
    struct master_address address;

    (void)server;
    gate_assert_main_alone();
    (void)master_address(&address);
    if (address.host[0] != '\0')
        role_set(true);
    return true;
}

const struct lifecycle master_lifecycle = {.server_start = start};
