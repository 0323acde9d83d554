/* Hash slots: each key belongs to one of 16,384, as in Redis Cluster, by the CRC16 of its name. Of a name with a tag
 * ("{user}:name", "a{user}b") only the tag counts: what stands between the first `{` and the next `}`, unless it is
 * empty. This is the one place that knows. Pure functions, for any thread. */
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum { SLOT_COUNT = 16384 };

uint32_t slot_of(struct slice key);      /* 0 to SLOT_COUNT - 1 */
uint16_t slot_crc16(struct slice bytes); /* XMODEM: polynomial 1021, begins with 0, nothing reflected */
