#include "server/upkeep/shutdown.h"

#include "base/log.h"
#include "server/config/config.h"
#include "server/core/server.h"
#include "server/durable/aof.h"
#include "server/durable/child.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"
#include "server/durable/save_points.h"
#include "server/run/dispatch.h"

#include <signal.h>

static _Atomic int64_t option_on_sigint, option_on_sigterm, option_timeout_s; /* global: option storage */

static const struct option_enum words[] = {
    {"default", 0},         {"save", SHUTDOWN_SAVE},   {"nosave", SHUTDOWN_NOSAVE},
    {"now", SHUTDOWN_NOW}, {"force", SHUTDOWN_FORCE}, {NULL, 0},
};

static const char *check_words(const struct option_row *row, int64_t number, struct slice text)
{
    const int64_t both = SHUTDOWN_SAVE | SHUTDOWN_NOSAVE;

    (void)row;
    (void)text;
    return (number & both) != both ? NULL : "shutdown options SAVE and NOSAVE can't be used simultaneously";
}

#define WORDS (OPTION_MUTABLE | OPTION_MULTI_ARG | OPTION_MULTI_ENUM)

static const struct option_row rows[] = {
    ROW_ENUM("shutdown-on-sigint", &option_on_sigint, 0, words, WORDS,
             "how SIGINT ends the server: default, or of save, nosave, now, force", .check = check_words),
    ROW_ENUM("shutdown-on-sigterm", &option_on_sigterm, 0, words, WORDS, "likewise, SIGTERM", .check = check_words),
    ROW_INT("shutdown-timeout", &option_timeout_s, 10, 0, INT32_MAX, OPTION_MUTABLE,
            "seconds to wait for replicas before the server ends"),
};

void shutdown_setup(void)
{
    config_add_rows(rows, countof(rows));
}

unsigned shutdown_flags_of_signal(int signal_number)
{
    return (unsigned)(signal_number == SIGINT ? OPTION_GET(option_on_sigint) : OPTION_GET(option_on_sigterm));
}

bool shutdown_needs_gate(unsigned flags)
{
    return (flags & SHUTDOWN_NOSAVE) == 0 && ((flags & SHUTDOWN_SAVE) != 0 || save_points_exist()) && !loading_runs();
}

/* Whoever wants the data saved must hear that it is not, instead of losing it. */
bool shutdown_begin(struct server *server, unsigned flags, struct access *access)
{
    log_warning("User requested shutdown...");
    if (aof_state() == AOF_STARTING && (flags & SHUTDOWN_FORCE) == 0) {
        log_warning("Writing initial AOF. Can't exit. To end the server nevertheless use FORCE.");
        return false;
    }
    child_stop(CHILD_RDB); /* what it would have is older than what comes now */
    child_stop(CHILD_AOF);
    if (access != NULL && shutdown_needs_gate(flags)) {
        log_notice("Saving the final RDB snapshot before exiting.");
        if (!persistence_save(access)) {
            if ((flags & SHUTDOWN_FORCE) == 0) {
                log_warning("Error trying to save the DB, can't exit. To end the server nevertheless use NOSAVE or "
                            "FORCE.");
                return false;
            }
            log_warning("Error trying to save the DB. Exiting anyway.");
        }
    }
    server_stop(server);
    return true;
}

bool shutdown_by_itself(struct worker *worker, unsigned flags)
{
    bool done;

    if (!shutdown_needs_gate(flags))
        return shutdown_begin(worker->server, flags, NULL);
    if (!dispatch_exclusive_begin(worker, GATE_WISH_SHUTDOWN))
        return true; /* not yet: see there */
    access_begin(&worker->access, worker_now_ms(worker), true);
    done = shutdown_begin(worker->server, flags, &worker->access);
    dispatch_exclusive_end(worker);
    return done;
}
