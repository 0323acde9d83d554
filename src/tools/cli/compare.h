/* compare.h: --compare: the keys of two servers, side by side.
 *
 * Where both have digests of slots (DEBUG DIGEST-SLOT, DIGEST-KEY), only the keys in slots that differ are looked at,
 * and by digests. Otherwise every key is read from both: its type, its value and its deadline. What differs may have
 * been written in between, so it is looked at again, up to three times, a second apart: a key that is named differs, or
 * changes all the time. The values of 20 keys of both servers are in
 * memory at a time. */
#pragma once

#include "tools/cli/session.h"

enum { COMPARE_EQUAL = 0, COMPARE_DIFFERENT = 1, COMPARE_FAILED = 2 };

int compare_run(struct session *session); /* the exit code */

/* For tests: whether two replies to the command that reads a value of the type say the same. The order of members does
 * not count where the type has none. Sorts them. */
bool compare_values_equal(const char *type, struct resp_reply *a, struct resp_reply *b);
