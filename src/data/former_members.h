/* Former values of sets, hashes and sorted sets (former.h): their elements are members, each there once. */
#pragma once

#include "data/former.h"

extern const struct former_ops former_set_ops, former_hash_ops, former_zset_ops;
