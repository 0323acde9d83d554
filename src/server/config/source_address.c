#include "server/config/source_address.h"

#include "base/buffer.h"
#include "base/log.h"
#include "base/spinlock.h"
#include "server/config/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

static socklen_t parse(const char *text, int family, struct sockaddr_storage *address)
{
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    const bool is_six = family == AF_INET6;

    memset(address, 0, sizeof(*address));
    address->ss_family = (sa_family_t)family;
    if (inet_pton(family, text, is_six ? (void *)&six->sin6_addr : (void *)&four->sin_addr) != 1)
        return 0;
    return is_six ? sizeof(*six) : sizeof(*four);
}

socklen_t source_address_get(int family, struct sockaddr_storage *address)
{
    struct buffer text = {0};
    socklen_t size = 0;

    if (family != AF_INET && family != AF_INET6)
        return 0;
    option_string_append(&option_bind_source_addr, &text);
    if (text.size != 0)
        size = parse(buffer_text(&text), family, address);
    buffer_fini(&text);
    return size;
}

void source_address_bind(int fd, int family)
{
    struct sockaddr_storage address;
    const socklen_t size = source_address_get(family, &address);
    char text[INET6_ADDRSTRLEN] = "";

    spinlock_assert_may_sleep();
    if (size == 0 || bind(fd, (struct sockaddr *)&address, size) == 0)
        return;
    (void)getnameinfo((struct sockaddr *)&address, size, text, sizeof(text), NULL, 0, NI_NUMERICHOST);
    log_warning("Can't bind to the source address %s (bind-source-addr): %s", text, strerror(errno));
}
