/* Whether a script can touch other keys than those that its command declares, seen from its text. Pure functions; the
 * registry of commands must be set up. Any thread.
 *
 * Sound, but not complete: true only if
 *
 *  1. `redis` (or another name of it) is only used as redis.NAME, and redis.call and redis.pcall only in calls. No name
 *     is used by which a text could become a function, or the globals a table.
 *  2. Each call names its command in quotes. The command's keys are at fixed places, and it has to hold nothing else.
 *  3. At each of these places is KEYS[i], i a number or a name, or a local variable that has that value and no other.
 *  4. KEYS is used for nothing else, except #KEYS. So it is the table with the declared keys, and all KEYS[i] are of
 *     them, or nil, which is no argument of a command. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>

bool script_keys_are_declared(struct slice body);
