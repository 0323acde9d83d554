#include "replication/role_rules.h"

#include "base/gate.h"
#include "base/spinlock.h"
#include "replication/failover.h"
#include "replication/local_keys.h"
#include "replication/master.h"
#include "replication/options.h"
#include "replication/replicas.h"
#include "replication/wait.h"
#include "server/config/command_block.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/role.h"
#include "server/memory/memory_limit.h"
#include "server/process/process.h"
#include "server/upkeep/shutdown_wait.h"

/* So that of two threads the later one is right: the bits change under it. */
static struct spinlock update_lock = {.rank = LOCK_REGISTRY};

static bool (*lacks_links)(void); /* const after setup; NULL: nobody says so */

void role_rules_provide(bool (*says)(void))
{
    gate_assert_main_alone();
    lacks_links = says;
}

static bool lacks_master(void)
{
    return role_is_active() ? lacks_links != NULL && lacks_links() : master_is_away();
}

static bool lacks_replicas(void)
{
    const int64_t wanted = OPTION_GET(option_min_replicas_to_write);

    return wanted != 0 && OPTION_GET(option_min_replicas_max_lag) != 0 && replicas_good_count() < wanted;
}

void role_rules_update(void)
{
    bool follows;

    spinlock_acquire(&update_lock);
    follows = role_follows();
    command_block_set(COMMAND_BLOCK_READONLY, follows && OPTION_IS(option_replica_read_only));
    command_block_set(COMMAND_BLOCK_STALE, !OPTION_IS(option_replica_serve_stale_data) && lacks_master());
    command_block_set(COMMAND_BLOCK_NO_REPLICAS, !follows && lacks_replicas());
    spinlock_release(&update_lock);
}

static void on_role(void)
{
    gate_assert_alone();
    memory_limit_ignore(role_follows() && OPTION_IS(option_replica_ignore_maxmemory));
    process_note_role(role_follows());
    local_keys_update();
    role_rules_update();
    wait_look_again(); /* replicas have nothing to wait for */
}

static void on_news(void)
{
    role_rules_update();
    wait_look_again();
    failover_look_again();
    shutdown_wait_look_again();
}

static const char *on_option(const struct option_row *row)
{
    (void)row;
    on_role();
    return NULL;
}

static bool start(struct server *server)
{
    static const char *const options[] = {"replica-read-only", "replica-serve-stale-data", "replica-ignore-maxmemory",
                                          "min-replicas-to-write", "min-replicas-max-lag"};

    gate_assert_main_alone();
    (void)server;
    for (size_t i = 0; i < countof(options); i++)
        config_on_change(options[i], on_option);
    role_on_change(on_role);
    replicas_on_news(on_news);
    on_role();
    return true;
}

/* Good replicas get old with the time. */
static void sample(struct server *server)
{
    (void)server;
    role_rules_update();
}

const struct lifecycle role_rules_lifecycle = {.server_start = start, .server_sample = sample};
