/* Converts between RESP and Lua values: replies of commands to values, results of scripts to replies. */
#pragma once

#include "base/slice.h"
#include "net/output.h"

#include <lua.h>

#include <stdbool.h>

/* Pushes the value of a reply. `bytes` is exactly one reply, which this server has written in this protocol. In
 * protected mode. *is_error: the reply is an error, pushed as a table with `err`. */
void lua_values_push_reply(lua_State *L, struct slice bytes, int proto, bool *is_error);
/* Pops the value at the top and writes it for a client of `proto`. `script_proto` is the protocol that the script has
 * set with setresp. In protected mode. *failed: the reply is an error; it is counted unless it is marked as counted. */
void lua_values_write(lua_State *L, struct output *out, int proto, int script_proto, bool *failed,
                      void (*count_error)(struct slice text, void *context), void *context);
/* Pushes an error as scripts know it: a table {err = text}, with a mark that it was counted. */
void lua_values_push_error(lua_State *L, struct slice text);
