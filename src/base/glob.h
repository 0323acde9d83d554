/* Glob-style patterns, as in KEYS, SCAN, PSUBSCRIBE, CONFIG GET and ACL: * matches any bytes, ? one byte, [abc] [a-z]
 * [^a] one byte of a set, \x the byte x. Matching takes at most (pattern size) x (text size) steps and no recursion,
 * however many stars there are. Any thread may call these functions. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>

bool glob_match(struct slice pattern, struct slice text, bool nocase);

bool glob_has_wildcard(struct slice pattern); /* the pattern has one of * ? [ \ */
