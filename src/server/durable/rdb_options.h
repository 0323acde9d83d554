/* Options of RDB files and DUMP payloads. Any thread, but for strings: see options.h. */
#pragma once

#include "persist/rdb_write.h"

void rdb_options_setup(void); /* after config_setup: adds the rows */

struct rdb_write_options rdb_payload_options(void); /* how DUMP writes */
struct rdb_write_options rdb_file_options(void);    /* how files are written; and read: checksums */
const char *rdb_file_name(void);                    /* dbfilename; a string: see above */
bool rdb_starts_writeback(void);
bool rdb_stops_writes(void);       /* stop-writes-on-bgsave-error */
int64_t rdb_save_delay_us(void);   /* for tests: after each key */
int64_t rdb_load_delay_us(void);
