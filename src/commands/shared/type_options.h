/* Options that say in which form values are kept. */
#pragma once

#include "data/hash.h"
#include "data/list.h"
#include "data/set.h"
#include "data/zset.h"
#include "data/stream_value.h"
#include "persist/rdb_read_value.h"

#define LIST_OPEN_NODES 8 /* at each end of a list, where list-compress-depth does not say */

void type_options_setup(void); /* after config_setup */

struct hash_limits type_hash_limits(void); /* any thread */
struct quicklist_limits type_list_limits(void);
/* Texts of this size and more get nodes of their own in lists to come (DEBUG); 0: those that fit into no other. */
void type_set_list_plain_from(uint64_t bytes);
struct set_limits type_set_limits(void);
struct zset_limits type_zset_limits(void);
struct stream_limits type_stream_limits(void);
struct rdb_limits type_rdb_limits(void); /* of all types together */
