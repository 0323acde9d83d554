/* Fields of INFO about the append-only file: the functions of rows in info_rows.c. */
#pragma once

#include <stdbool.h>

struct buffer;

bool info_has_aof(void);
void put_aof_enabled(struct buffer *buffer);
void put_aof_rewrite_in_progress(struct buffer *buffer);
void put_aof_rewrite_scheduled(struct buffer *buffer);
void put_aof_last_rewrite_time_sec(struct buffer *buffer);
void put_aof_current_rewrite_time_sec(struct buffer *buffer);
void put_aof_last_bgrewrite_status(struct buffer *buffer);
void put_aof_rewrites(struct buffer *buffer);
void put_aof_rewrites_consecutive_failures(struct buffer *buffer);
void put_aof_last_write_status(struct buffer *buffer);
void put_aof_last_cow_size(struct buffer *buffer);
void put_aof_fields(struct buffer *buffer); /* whole lines; only while it is on */
void put_mem_aof_buffer(struct buffer *buffer);
