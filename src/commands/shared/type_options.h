/* Options for the encodings of values. */
#pragma once

#include "data/hash.h"
#include "data/list.h"
#include "data/set.h"
#include "data/zset.h"
#include "data/stream_idmp.h"
#include "data/stream_value.h"
#include "persist/rdb_read_value.h"

#define LIST_OPEN_NODES 8 /* nodes at each end of a list that are not compressed, unless list-compress-depth is set */

void type_options_setup(void); /* after config_setup */

struct hash_limits type_hash_limits(void); /* any thread */
struct quicklist_limits type_list_limits(void);
/* Sets the size from which texts are plain nodes in new lists (DEBUG); 0: only texts that no node could hold. */
void type_set_list_plain_from(uint64_t bytes);
struct set_limits type_set_limits(void);
struct zset_limits type_zset_limits(void);
struct stream_limits type_stream_limits(void);
struct stream_idmp_limits type_stream_idmp_limits(void); /* of a stream whose first pair comes now */
struct rdb_limits type_rdb_limits(void);                 /* for all types together */
