#include "replication/dial.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/conn.h"
#include "net/tls.h"
#include "replication/lookup.h"
#include "replication/options.h"
#include "server/config/options.h"
#include "server/config/source_address.h"
#include "server/tls/certificates.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void dial_begin(struct dial *dial, const char *host, int port, void (*on_done)(void))
{
    assert(dial->lookup == NULL);
    *dial = (struct dial){.lookup = lookup_create(host, port, on_done)};
}

void dial_end(struct dial *dial)
{
    lookup_release(&dial->lookup);
    *dial = (struct dial){0};
}

/* --------------------------------------------------------------------------------------------------- connecting -- */

/* False: TLS is wanted, and not configured. */
static bool acquire_tls(struct tls_context **tls)
{
    *tls = OPTION_IS(option_tls_replication) ? certificates_acquire() : NULL;
    return *tls != NULL || !OPTION_IS(option_tls_replication);
}

static bool connect_to(const struct addrinfo *address, struct loop *loop, struct conn *conn,
                       const struct conn_handler *handler, struct tls_context *tls)
{
    struct sockaddr_storage source;
    socklen_t source_size = source_address_get(address->ai_family, &source);

    if (source_size != 0 && conn_connect(loop, conn, address->ai_addr, address->ai_addrlen, (struct sockaddr *)&source,
                                         source_size, handler, tls, NULL))
        return true;
    if (source_size != 0)
        log_warning("Can't connect from bind-source-addr: %s. The system chooses an address.", strerror(errno));
    return conn_connect(loop, conn, address->ai_addr, address->ai_addrlen, NULL, 0, handler, tls, NULL);
}

/* False: *error has the reason. */
static bool look(struct dial *dial, char error[DIAL_ERROR_BYTES])
{
    const char *reason;

    dial->is_known = true;
    dial->next = lookup_addresses(dial->lookup, &reason);
    if (dial->next == NULL)
        (void)snprintf(error, DIAL_ERROR_BYTES, "the name cannot be resolved: %s", reason);
    return dial->next != NULL;
}

enum dial_result dial_next(struct dial *dial, struct loop *loop, struct conn *conn, const struct conn_handler *handler,
                           char error[DIAL_ERROR_BYTES])
{
    struct tls_context *tls = NULL;
    bool connects = false;

    assert(dial->lookup != NULL);
    if (!dial->is_known && !lookup_is_done(dial->lookup))
        return DIAL_WAITS;
    if (!dial->is_known && !look(dial, error))
        return DIAL_FAILED;
    if (!acquire_tls(&tls)) {
        (void)snprintf(error, DIAL_ERROR_BYTES, "tls-replication is set, but TLS is not configured");
        return DIAL_FAILED;
    }
    assert(dial->next != NULL);
    while (!connects && dial->next != NULL) {
        const struct addrinfo *address = dial->next;

        dial->next = address->ai_next;
        connects = connect_to(address, loop, conn, handler, tls);
        if (!connects)
            (void)snprintf(error, DIAL_ERROR_BYTES, "can't connect: %s", strerror(errno));
    }
    tls_context_release(&tls);
    if (connects)
        (void)conn_set_keepalive(conn, (int)OPTION_GET(option_tcp_keepalive));
    return connects ? DIAL_CONNECTS : DIAL_FAILED;
}

/* ------------------------------------------------------------------------------------------------ the handshake -- */

static struct slice copy_option(struct option_string *option, struct buffer *buffer)
{
    option_string_append(option, buffer);
    return buffer_slice(buffer);
}

static int announced_port(void)
{
    const int64_t announced = OPTION_GET(option_replica_announce_port);

    if (announced != 0)
        return (int)announced;
    if (OPTION_IS(option_tls_replication) && OPTION_GET(option_tls_port) != 0)
        return (int)OPTION_GET(option_tls_port);
    return (int)OPTION_GET(option_port);
}

void dial_begin_handshake(struct handshake *handshake, struct handshake_facts facts, struct buffer *out)
{
    struct buffer user = {0}, password = {0}, ip = {0};

    facts.port = announced_port();
    facts.user = copy_option(&option_masteruser, &user);
    facts.password = copy_option(&option_masterauth, &password);
    facts.announced_ip = copy_option(&option_replica_announce_ip, &ip);
    handshake_begin(handshake, &facts, out);
    buffer_fini(&user);
    buffer_fini(&password);
    buffer_fini(&ip);
}
