#include "active/readiness.h"

#include "active/links.h"
#include "active/node.h"
#include "active/options.h"
#include "active/peers.h"
#include "base/gate.h"
#include "replication/options.h"
#include "replication/role_rules.h"
#include "replication/wait.h"
#include "server/config/command_block.h"

/* Under the lock of role_rules: loads alone. */
static bool lacks_links(void)
{
    const int64_t quorum = OPTION_GET(option_replica_quorum);

    return links_up_count() < (quorum < 0 ? (int64_t)peers_count() : quorum);
}

enum readiness readiness_now(void)
{
    if ((command_blocks() & COMMAND_BLOCK_LOADING) != 0 || !active_is_on()) /* it becomes a node behind its data */
        return READINESS_LOADS;
    if (!OPTION_IS(option_replica_serve_stale_data) && lacks_links())
        return READINESS_LACKS_LINKS;
    return READINESS_FULL;
}

const char *readiness_text(enum readiness state)
{
    static const char *const texts[] = {
        [READINESS_FULL] = "ready",
        [READINESS_LOADS] = "data is being loaded",
        [READINESS_LACKS_LINKS] = "fewer links are up than replica-quorum wants",
    };

    return texts[state];
}

static bool start(struct server *server)
{
    (void)server;
    gate_assert_main_alone();
    role_rules_provide(lacks_links);
    return true;
}

/* Clients may wait for what members have (KEYDB.ACTIVE WAIT): what is known of that is as old as a beat. */
static void sample(struct server *server)
{
    (void)server;
    if (active_is_on())
        wait_look_again();
}

const struct lifecycle readiness_lifecycle = {.server_start = start, .server_sample = sample};
