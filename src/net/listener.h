/* listener.h: sockets that wait for connections.
 *
 * A group is what one directive asks for (port 6379 on some addresses, or one unix socket): a socket an address, which
 * all loops watch; a loop that waits accepts. A second server on the same port fails. Whoever sets the server up opens
 * and closes groups; each loop's thread attaches itself. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct listener_group;
struct loop;

enum listener_kind { LISTENER_TCP, LISTENER_TLS, LISTENER_UNIX };

#define LISTENER_ERROR_BYTES 256

struct listener_options {
    enum listener_kind kind;
    /* TCP: addresses or names; "*": every IPv4, "-::*" and "::*": every IPv6 address; a leading '-' makes one
     * optional: it may be missing from this machine. */
    const char *const *addresses;
    size_t address_count;
    int port;
    unsigned loop_count;  /* that may attach */
    int backlog;          /* tcp-backlog */
    int socket_mark;      /* SO_MARK; 0: none */
    bool joins;           /* a port that other groups of ours have may be shared: they are to be closed soon */
    const char *path;     /* unix: a file of that name is replaced */
    unsigned permissions; /* unix: mode of the file; 0: as the umask says */
};

/* A connection came in. fd is non-blocking, close-on-exec, with TCP_NODELAY, and the callee's. */
typedef void listener_accept_fn(struct loop *loop, int fd, const struct sockaddr_storage *peer, socklen_t peer_size,
                                enum listener_kind kind, void *user);

/* Binds and listens. false: error says why, as "Could not create server TCP listening socket *:6379: bind: ...". */
must_check bool listener_group_open(struct listener_group **group, const struct listener_options *options,
                                    char error[LISTENER_ERROR_BYTES]);
/* From any thread, before the loops detach: the sockets take no more connections from now on. */
void listener_group_stop(struct listener_group *group);
void listener_group_close(struct listener_group **handle); /* all loops have detached; removes a unix socket */

enum listener_kind listener_group_kind(const struct listener_group *group);
int listener_group_port(const struct listener_group *group); /* as bound, also where 0 was asked for */

/* In the thread of that loop; loop_index < loop_count. At most 64 accepts a turn. */
must_check bool listener_group_attach(struct listener_group *group, struct loop *loop, unsigned loop_index,
                                      listener_accept_fn *on_accept, void *user);
void listener_group_detach(struct listener_group *group, unsigned loop_index);
