#include "server/process/banner.h"

#include "base/compiler.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/version.h"
#include "server/config/options.h"

#include <stdio.h>
#include <unistd.h>

/* The words beside the picture are formatted in this order: version, commit, modified, bits, mode, port, pid. Each
 * `LABEL: value` is on a line of its own, since scripts that wait for a server's start expect this. */
static const char picture[] = "\n"
                              "       .-\"\"\"-.\n"
                              "      /  .-.  \\        KeyDB %s (%s/%d) %d bit\n"
                              "     |  (   )  |\n"
                              "      \\  `-'  /        Running in %s mode\n"
                              "       `-. .-'         Port: %lld\n"
                              "         | |           PID: %ld\n"
                              "         | |__\n"
                              "         |  __|        many threads, one keyspace\n"
                              "         | |_\n"
                              "         |  _|\n"
                              "         |_|\n"
                              "\n";

static long long served_port(void)
{
    long long port = (long long)OPTION_GET(option_port);

    return port != 0 ? port : (long long)OPTION_GET(option_tls_port);
}

void banner_write(void)
{
    const char *mode = "standalone";
    char text[sizeof(picture) + 256];
    int length;

    gate_assert_main_alone();
    if (!OPTION_GET(option_always_show_logo) && !(log_is_to_stdout() && isatty(STDOUT_FILENO))) {
        log_notice("Running mode=%s, port=%lld.", mode, served_port());
        return;
    }
    length = snprintf(text, sizeof(text), picture, KEYDB_VERSION, KEYDB_GIT_SHA1, KEYDB_GIT_DIRTY,
                      (int)sizeof(void *) * 8, mode, served_port(), (long)getpid());
    if (length > 0 && (size_t)length < sizeof(text))
        log_raw(LOG_LEVEL_NOTICE, text, (size_t)length);
}
