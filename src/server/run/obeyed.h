/* A client without a connection, whose commands are always obeyed: those of a file, and those of a master. */
#pragma once

#include <stdbool.h>

struct client;
struct command;
struct worker;

/* The address is what monitors see, and lives as long as the client; NULL: it has none. */
struct client *obeyed_client_create(struct worker *worker, char *address);
void obeyed_client_destroy(struct client **client);
/* False: no version writes this command to a file or a stream, and it could do harm. Reads do no harm. */
bool obeyed_belongs(const struct command *command);
