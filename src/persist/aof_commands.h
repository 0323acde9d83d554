/* Writes commands of an append-only file into a sink, word by word; for the files of persist/ only. The functions
 * return no errors: the sink's first error is kept, and everything after it is dropped. Words and elements must be as
 * many as were announced. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "persist/byte_io.h"

#include <stdint.h>

struct aof_commands {
    struct byte_sink *sink;
    struct buffer out; /* bytes not yet written to the sink */
    enum status status;
    int error;        /* errno of it */
    uint64_t words;   /* words of the current command still to come */
    uint64_t part;    /* bytes of the current word still to come, if it comes in parts */
    struct slice key; /* the key whose commands are being written */
    /* Elements of this key: */
    const char *command;
    unsigned width; /* words per element */
    uint64_t left;  /* elements still to come */
    unsigned room;  /* elements that still fit the current command */
};

void aof_commands_flush(struct aof_commands *commands);

void aof_command_begin(struct aof_commands *commands, uint64_t words); /* call it before each command */
void aof_put(struct aof_commands *commands, struct slice word);
void aof_put_text(struct aof_commands *commands, const char *word);
/* A word of so many bytes that comes in parts: call aof_put_part for each of them, and nothing else between. */
void aof_put_begin(struct aof_commands *commands, uint64_t size);
void aof_put_part(struct aof_commands *commands, struct slice part);
void aof_put_number(struct aof_commands *commands, int64_t number);

/* Begins `count` elements of the key, in commands with this name, several elements each. Call aof_element before the
 * words of each element. */
void aof_elements(struct aof_commands *commands, const char *command, unsigned width, uint64_t count);
void aof_element(struct aof_commands *commands);
