/* Commands as they stand in an append only file, written word by word into a sink; for the files of persist/ only.
 * Nothing here fails by itself: what the sink answers is kept, and everything after an error is dropped. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "persist/byte_io.h"

#include <stdint.h>

struct aof_commands {
    struct byte_sink *sink;
    struct buffer out; /* what the sink has not got yet */
    enum status status;
    int error;        /* errno of it */
    struct slice key; /* whose commands are under way */
    /* Its elements: */
    const char *command;
    unsigned width; /* words an element */
    uint64_t left;  /* elements to come */
    unsigned room;  /* of the command under way, in elements */
};

void aof_commands_flush(struct aof_commands *commands);

void aof_command_begin(struct aof_commands *commands, uint64_t words); /* before each command */
void aof_put(struct aof_commands *commands, struct slice word);
void aof_put_text(struct aof_commands *commands, const char *word);
void aof_put_number(struct aof_commands *commands, int64_t number);

/* `count` elements of the key, some to a command of this name. Before the words of each: aof_element. */
void aof_elements(struct aof_commands *commands, const char *command, unsigned width, uint64_t count);
void aof_element(struct aof_commands *commands);
