/* The link to the master as the commands about clients see it: CLIENT LIST, CLIENT KILL, the number of clients. It is
 * one of them while the stream is applied, and has an id of their kind. */
#pragma once

#include "base/compiler.h"

struct client_card;
struct conn;
struct worker;

void master_client_setup(void); /* main thread, before the workers start */

/* Any thread. Calls `visit` with the link's card, which is a copy made for this call; not while the link is not up. */
void master_client_visit(void (*visit)(const struct client_card *card, void *context), void *context);

/* --- worker 0's thread --- */

void master_client_begin(struct worker *worker, const struct conn *conn);
void master_client_note(const struct conn *conn, unsigned db); /* bytes have come; costs a few stores */
void master_client_end(void);
