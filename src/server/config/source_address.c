#include "server/config/source_address.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/spinlock.h"
#include "server/config/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static void bind_to(int fd, int family, const char *text)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    const bool is_six = family == AF_INET6;

    assert(family == AF_INET || family == AF_INET6);
    if (inet_pton(family, text, is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr) != 1)
        return;
    if (bind(fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four, is_six ? sizeof(six) : sizeof(four)) != 0)
        log_warning("Can't bind to the source address %s (bind-source-addr): %s", text, strerror(errno));
}

void source_address_bind(int fd, int family)
{
    struct buffer text = {0};

    spinlock_assert_may_sleep();
    if (family != AF_INET && family != AF_INET6)
        return;
    option_string_append(&option_bind_source_addr, &text);
    if (text.size != 0) {
        buffer_append_char(&text, '\0');
        bind_to(fd, family, text.data);
    }
    buffer_fini(&text);
}
