#include "server/upkeep/shutdown.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/config/config.h"
#include "server/config/save_points.h"
#include "server/core/client.h"
#include "server/core/exclusive.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/durable/aof.h"
#include "server/durable/child.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"
#include "server/upkeep/shutdown_wait.h"
#include "server/upkeep/soft_shutdown.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static _Atomic int64_t option_on_sigint, option_on_sigterm; /* global: option storage */

static const struct option_enum words[] = {
    {"default", 0},        {"save", SHUTDOWN_SAVE},   {"nosave", SHUTDOWN_NOSAVE},
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
             "How SIGINT stops the server: default, or of save, nosave, now, force.", .check = check_words),
    ROW_ENUM("shutdown-on-sigterm", &option_on_sigterm, 0, words, WORDS,
             "How SIGTERM stops the server: default, or of save, nosave, now, force.", .check = check_words),
};

void shutdown_setup(void)
{
    thread_assert_main();
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

static bool refuse(void)
{
    log_warning("Errors trying to shut down the server. Check the logs for more information.");
    return false;
}

/* A client that wants the data saved must get an error, instead of losing the data. */
bool shutdown_begin(struct server *server, unsigned flags, struct access *access)
{
    assert(access == NULL || (access->exclusive && gate_is_alone()));
    log_warning("User requested shutdown...");
    if (aof_state() == AOF_STARTING && (flags & SHUTDOWN_FORCE) == 0) {
        if (!aof_first_base_failed() || !role_follows()) {
            log_warning("Writing initial AOF, can't exit. Use FORCE to stop the server anyway.");
            return refuse();
        }
        log_warning("The AOF has no base with the data of the last sync. Its master has them: exiting anyway.");
    }
    child_stop(CHILD_RDB); /* its file would be older than the one written now */
    child_stop(CHILD_AOF);
    if (access != NULL && shutdown_needs_gate(flags)) {
        log_notice("Saving the final RDB snapshot before exiting.");
        if (!persistence_save(access)) {
            if ((flags & SHUTDOWN_FORCE) == 0) {
                log_warning("Error trying to save the DB, can't exit. Use NOSAVE or FORCE to stop the server anyway.");
                return refuse();
            }
            log_warning("Error trying to save the DB. Exiting anyway.");
        }
    }
    server_stop(server);
    return true;
}

int shutdown_keep_open(struct client *client)
{
    client_assert_owned(client);
    return fcntl(client->conn.fd, F_DUPFD_CLOEXEC, 0); /* if there is no room, the end is told a little early */
}

bool shutdown_by_itself(struct worker *worker, unsigned flags)
{
    bool done;

    worker_assert_zero(worker);
    worker_assert_outside(worker);
    if ((flags & SHUTDOWN_NOW) == 0 && shutdown_wait_begin(NULL, flags))
        return true; /* later: shutdown_wait.h */
    if (!shutdown_needs_gate(flags))
        return shutdown_begin(worker->server, flags, NULL);
    if (!exclusive_begin(worker, GATE_WISH_SHUTDOWN))
        return true; /* not yet: see there */
    access_begin(&worker->run.access, worker_now_ms(worker), true);
    done = shutdown_begin(worker->server, flags, &worker->run.access);
    exclusive_end(worker);
    return done;
}

/* ----------------------------------------------------------------------------------------------------- signals -- */

static _Atomic int signal_received; /* atomic: 0, or the signal that asked to stop */
static _Atomic bool signal_noted;   /* atomic: the log reports it */
static bool base_noted;             /* worker 0's; the log says that the signal waits for the AOF's first base */

static bool is_put_off(unsigned flags)
{
    return aof_state() == AOF_STARTING && !aof_first_base_failed() && (flags & SHUTDOWN_FORCE) == 0;
}

bool shutdown_is_put_off(unsigned flags)
{
    worker_assert_zero(worker_self());
    if (!is_put_off(flags))
        return base_noted = false;
    if (!base_noted)
        log_warning("Writing initial AOF: the server stops when it is complete.");
    return base_noted = true;
}

void shutdown_on_signal(int signal_number)
{
    if (atomic_exchange(&signal_received, signal_number) != 0 && signal_number == SIGINT) {
        log_from_signal("You insist... exiting now.");
        persistence_give_up_from_signal();
        _exit(1);
    }
    server_wake_from_signal();
}

static void serve_signal(struct worker *worker)
{
    struct server *server = worker->server;
    int signal_number = atomic_load_explicit(&signal_received, memory_order_relaxed);

    if (worker->index != 0 || signal_number == 0 || atomic_load_explicit(&server->stopping, memory_order_relaxed) ||
        atomic_load_explicit(&server->cron_paused, memory_order_relaxed) || soft_shutdown_is_pending() ||
        shutdown_waits())
        return;
    if (!atomic_exchange(&signal_noted, true))
        log_warning("Received %s scheduling shutdown...", signal_number == SIGINT ? "SIGINT" : "SIGTERM");
    if (soft_shutdown_is_wished())
        soft_shutdown_begin();
    else if (shutdown_is_put_off(shutdown_flags_of_signal(signal_number)))
        return; /* `sample` looks again */
    else if (!shutdown_by_itself(worker, shutdown_flags_of_signal(signal_number)))
        shutdown_forget_refused();
}

bool shutdown_is_asked(void)
{
    int signal_number = atomic_load_explicit(&signal_received, memory_order_relaxed);

    return signal_number != 0 && !soft_shutdown_is_wished() && !soft_shutdown_is_pending() &&
           !is_put_off(shutdown_flags_of_signal(signal_number));
}

bool shutdown_forget_signal(void)
{
    struct server *server = server_instance();

    return !atomic_load_explicit(&server->stopping, memory_order_relaxed) && !soft_shutdown_is_pending() &&
           atomic_exchange(&signal_received, 0) != 0;
}

void shutdown_forget_refused(void)
{
    int signal_number = atomic_load_explicit(&signal_received, memory_order_relaxed);

    if (signal_number != 0 && !is_put_off(shutdown_flags_of_signal(signal_number)))
        (void)shutdown_forget_signal();
}

static void sample(struct server *server)
{
    serve_signal(&server->workers[0]);
}

const struct lifecycle shutdown_lifecycle = {.server_sample = sample, .worker_wake = serve_signal};
