/* Patterns of KEYS, SCAN, PSUBSCRIBE, CONFIG GET and ACL: * any bytes, ? one byte, [abc] [a-z] [^a] a set, \x the byte
 * x. Never more than (pattern size) x (text size) steps, and no recursion, however many stars there are. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>

bool glob_match(struct slice pattern, struct slice text, bool nocase);

bool glob_has_wildcard(struct slice pattern); /* one of * ? [ \ is in it */
