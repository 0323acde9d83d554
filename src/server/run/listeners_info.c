/* INFO server: a line for each listener. Each kind has a fixed number, so that a monitoring program finds a listener
 * independent of the others. INFO does not wait for the gate, at which listeners change, so it shows the options:
 * during a change the answer is the state before or after, never a mixture. */
#include "server/run/listeners_info.h"

#include "base/buffer.h"
#include "server/config/config.h"
#include "server/config/options.h"

#include <string.h>

enum { NUMBER_TCP, NUMBER_UNIX, NUMBER_TLS };

static void append_port(struct buffer *buffer, int number, const char *name, struct slice addresses, int64_t port)
{
    const char *end = addresses.data + addresses.size, *next;

    if (port == 0 || addresses.size == 0)
        return;
    buffer_printf(buffer, "listener%d:name=%s", number, name);
    for (const char *at = addresses.data; at < end; at = next + 1) {
        next = memchr(at, ' ', (size_t)(end - at));
        if (next == NULL)
            next = end;
        buffer_printf(buffer, ",bind=%.*s", (int)(next - at), at);
    }
    buffer_printf(buffer, ",port=%lld\r\n", (long long)port);
}

static void append_listeners(struct buffer *buffer, const void *picture)
{
    struct buffer addresses = {0};
    int64_t port, tls_port;
    uint64_t version;

    (void)picture;
    do {
        addresses.size = 0;
        version = config_version();
        port = OPTION_GET(option_port);
        tls_port = OPTION_GET(option_tls_port);
        (void)config_get_text("bind", &addresses);
    } while (config_version() != version);
    append_port(buffer, NUMBER_TCP, "tcp", (struct slice){addresses.data, addresses.size}, port);
    if (option_unixsocket.data != NULL) /* const while the server runs */
        buffer_printf(buffer, "listener%d:name=unix,bind=%s\r\n", NUMBER_UNIX, option_unixsocket.data);
    append_port(buffer, NUMBER_TLS, "tls", (struct slice){addresses.data, addresses.size}, tls_port);
    buffer_fini(&addresses);
}

const struct info_row listeners_info[] = {
    INFO_LINES("listener<n>", NULL, append_listeners),
    {0},
};
