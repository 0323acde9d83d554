/* uri.h: where a server is and who connects, as one text:
 *
 *     redis://[[user:]password@][host][:port][/database]
 *
 * rediss:// is the same over TLS. keydb:// and keydbs:// mean the same two. User and password may have %HH. A host in
 * square brackets is an IPv6 address. Any thread may call these functions. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "tools/link/link.h"

#include <stdbool.h>

struct uri {
    bool tls;
    char *user;     /* NULL: not given, as all texts here */
    char *password; /* its bytes after decoding; a zero byte ends it */
    char *host;
    int port;     /* 0: not given */
    int database; /* -1: not given */
};

/* NULL, or why the text is no URI; then `uri` is empty. Otherwise the caller ends it with uri_fini. */
must_check const char *uri_parse(const char *text, struct uri *uri);
void uri_fini(struct uri *uri); /* an empty one is fine */
bool uri_is(const char *text);  /* the text begins with one of the four schemes */

/* What is given takes the place of what the target has; its texts are the URI's. With TLS it gets `tls`. */
void uri_give(const struct uri *uri, struct link_target *target, const struct link_tls *tls);
