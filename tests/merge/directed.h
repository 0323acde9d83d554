/* Histories written by hand: what users were promised, and what random histories seldom reach. */
#pragma once

#include "merge/broken.h"

/* Runs all of them with the rules whole. Adds to *failed, returns how many passed. */
unsigned directed_run(unsigned *failed);

enum directed_answer { DIRECTED_NONE, DIRECTED_FOUND, DIRECTED_MISSED };

/* Runs those that were written for this rule, with the rule broken. */
enum directed_answer directed_find(enum merge_break rule);
