#include "replication/farewell.h"

#include "base/buffer.h"
#include "base/log.h"
#include "base/thread.h"
#include "replication/history.h"
#include "replication/options.h"
#include "replication/replicas.h"
#include "server/config/options.h"
#include "server/upkeep/shutdown_wait.h"

struct look {
    int64_t offset;
    unsigned missing;
    struct buffer *lines; /* NULL: nobody reads them */
};

static const char *state_name(enum replica_state state)
{
    switch (state) {
    case REPLICA_WAITS:
        return "wait_bgsave";
    case REPLICA_LOADS:
        return "send_bulk";
    case REPLICA_ONLINE:
        return "online";
    }
    return "?";
}

static void look_at(const struct replica_facts *facts, void *context)
{
    struct look *look = context;

    if (facts->acked_offset >= look->offset) /* also in its first full sync, if nothing was written since */
        return;
    look->missing++;
    if (look->lines != NULL)
        buffer_printf(look->lines, "%sLagging replica %s:%d reported offset %lld behind master, lag=%lld, state=%s.",
                      look->missing != 1 ? " " : "", facts->ip, facts->port,
                      (long long)(look->offset - facts->acked_offset), (long long)facts->lag_s,
                      state_name(facts->state));
}

static unsigned count_missing(struct buffer *lines)
{
    struct look look = {.offset = history_offset(), .lines = lines};

    replicas_each(look_at, &look);
    return look.missing;
}

static bool is_over(void)
{
    return count_missing(NULL) == 0;
}

static int64_t timeout_ms(void)
{
    return replicas_count() == 0 ? 0 : OPTION_GET(option_shutdown_timeout) * 1000;
}

static void log_end(void)
{
    struct buffer lines = {0};
    const unsigned missing = count_missing(&lines), count = replicas_count();

    if (missing != 0)
        log_warning("%.*s", (int)lines.size, lines.data);
    if (count != 0)
        log_notice("%u of %u replicas are in sync when shutting down.", count - MIN(count, missing), count);
    buffer_fini(&lines);
}

void farewell_setup(void)
{
    static const struct shutdown_wait wait = {is_over, timeout_ms, log_end};

    thread_assert_main();
    shutdown_wait_provide(&wait);
}
