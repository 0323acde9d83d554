#include "server/shutdown.h"

#include "base/log.h"
#include "server/config.h"
#include "server/server.h"

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

/* Data lives in memory only. Whoever wants it saved must hear that it is not, instead of losing it. */
bool shutdown_begin(struct server *server, unsigned flags)
{
    log_warning("User requested shutdown...");
    if ((flags & SHUTDOWN_SAVE) != 0) {
        log_warning("The data cannot be saved: this version keeps data in memory only.");
        if ((flags & SHUTDOWN_FORCE) == 0) {
            log_warning("The server does not end. To end it nevertheless use NOSAVE or FORCE.");
            return false;
        }
    }
    server_stop(server);
    return true;
}
