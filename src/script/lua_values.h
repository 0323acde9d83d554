/* Between RESP and Lua values: replies of commands become values, what a script returns becomes a reply. */
#pragma once

#include "base/slice.h"
#include "net/output.h"

#include <lua.h>

#include <stdbool.h>

/* Pushes the value of the reply that is the whole of `bytes`, which our own server has written in this protocol. In
 * protected mode. *is_error: it is an error, pushed as a table with `err`. */
void lua_values_push_reply(lua_State *L, struct slice bytes, int proto, bool *is_error);
/* Writes the value at the top, and pops it, for a client of `proto`; `script_proto` is what the script has chosen with
 * setresp. In protected mode. *failed: the reply is an error; it is counted unless it says that it was. */
void lua_values_write(lua_State *L, struct output *out, int proto, int script_proto, bool *failed,
                      void (*count_error)(struct slice text, void *context), void *context);
/* Pushes the table that scripts know an error by: {err = text}, with a mark that it has been counted. */
void lua_values_push_error(lua_State *L, struct slice text);
