/* listener.h: listening sockets.
 *
 * A group has the sockets of one directive: a port on some addresses, with one socket for each address, or one unix
 * socket. All loops watch the sockets, and a loop that is waiting accepts. A second server on the same port fails. The
 * part that sets the server up opens and closes groups; each loop's thread attaches itself. */
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
    /* TCP: addresses or host names. "*" is every IPv4 address, "-::*" and "::*" every IPv6 address. A leading '-' makes
     * an address optional: it may be missing on this machine. */
    const char *const *addresses;
    size_t address_count;
    int port;
    unsigned loop_count; /* number of loops that may attach */
    int backlog;         /* tcp-backlog */
    int socket_mark;     /* SO_MARK; 0: none */
    bool joins; /* true: other groups of this server may have the same port for a while; they will be closed soon */
    /* An address in use is tried again for so long. When a process that used io_uring was killed, the kernel closes its
     * sockets some 10 ms after its end, and accepts connections until then. */
    unsigned patience_ms;
    const char *path;     /* unix: path of the socket; a file with this name is replaced */
    unsigned permissions; /* unix: mode of the socket file; 0: by the umask */
};

/* Called for each new connection. fd is non-blocking and close-on-exec and has TCP_NODELAY. The callee owns fd. */
typedef void listener_accept_fn(struct loop *loop, int fd, const struct sockaddr_storage *peer, socklen_t peer_size,
                                enum listener_kind kind, void *user);

/* Binds and listens. False: `error` has the reason, as "Could not create server TCP listening socket *:6379: bind:
 * ...". */
must_check bool listener_group_open(struct listener_group **group, const struct listener_options *options,
                                    char error[LISTENER_ERROR_BYTES]);
/* Any thread, also while loops detach, and more than once: the sockets accept no more connections. */
void listener_group_stop(struct listener_group *group);
/* After all loops have detached; removes the file of a unix socket. */
void listener_group_close(struct listener_group **handle);

enum listener_kind listener_group_kind(const struct listener_group *group);
int listener_group_port(const struct listener_group *group); /* the bound port, also if port 0 was asked for */

/* In the thread of that loop; loop_index < loop_count. The loop accepts at most 64 connections a turn. */
must_check bool listener_group_attach(struct listener_group *group, struct loop *loop, unsigned loop_index,
                                      listener_accept_fn *on_accept, void *user);
void listener_group_detach(struct listener_group *group, unsigned loop_index);
