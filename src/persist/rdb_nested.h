/* Trees of texts (KEYDB.NHSET) in RDB; for the files of persist/ only. KeyDB has no form for them. Here they are the
 * value of a module type called "kdbnested", so that who does not know it can read over it:
 *
 *     type 7 | id | node | 0
 *     node = unsigned NESTED_TREE | unsigned children | (text name | node) ...
 *            unsigned NESTED_TEXT | text
 *            unsigned NESTED_LIST | unsigned texts | text ...
 *     unsigned = 2, length; text = 5, text */
#pragma once

#include "data/nested.h"
#include "persist/rdb_read.h"
#include "persist/rdb_write.h"

#define RDB_NESTED_NAME "kdbnested"

uint64_t rdb_nested_id(void);
void rdb_write_nested(struct rdb_writer *writer, struct value tree); /* with the id */
must_check bool rdb_read_nested(struct rdb_reader *reader, struct value *tree); /* behind the id */
