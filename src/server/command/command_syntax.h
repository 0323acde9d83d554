/* Parses the `syntax` of a command's row into a tree of arguments, for COMMAND DOCS. */
#pragma once

#include "server/command/command.h"

#include <stdbool.h>
#include <stddef.h>

enum syntax_type {
    SYNTAX_STRING,
    SYNTAX_INTEGER,
    SYNTAX_DOUBLE,
    SYNTAX_KEY,
    SYNTAX_PATTERN,
    SYNTAX_UNIX_TIME,
    SYNTAX_TOKEN,
    SYNTAX_ONEOF,
    SYNTAX_BLOCK
};

struct syntax_list {
    struct syntax_node **items;
    size_t count, capacity;
};

struct syntax_node {
    char *name;
    enum syntax_type type;
    int key_spec_index;                   /* -1: none */
    char *token;                          /* NULL: none */
    struct slice since, deprecated_since; /* empty: that of the command */
    bool optional, multiple, multiple_token;
    struct syntax_list children; /* for SYNTAX_ONEOF and SYNTAX_BLOCK */
};

/* A container of subcommands has no arguments of its own. The caller releases the list. */
void syntax_parse(const struct command *command, struct syntax_list *list);
void syntax_release(struct syntax_list *list);

const char *syntax_type_name(enum syntax_type type); /* "pure-token" */
