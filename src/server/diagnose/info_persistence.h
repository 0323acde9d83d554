/* Fields of INFO about saving and loading: the functions of rows in info_rows.c. */
#pragma once

#include <stdbool.h>

struct buffer;

void put_loading(struct buffer *buffer);
void put_loading_fields(struct buffer *buffer); /* whole lines */
bool info_is_loading(void);
void put_current_cow_peak(struct buffer *buffer);
void put_current_cow_size(struct buffer *buffer);
void put_current_cow_size_age(struct buffer *buffer);
void put_current_fork_perc(struct buffer *buffer);
void put_current_save_keys_processed(struct buffer *buffer);
void put_current_save_keys_total(struct buffer *buffer);
void put_rdb_changes_since_last_save(struct buffer *buffer);
void put_rdb_bgsave_in_progress(struct buffer *buffer);
void put_rdb_last_save_time(struct buffer *buffer);
void put_rdb_last_bgsave_status(struct buffer *buffer);
void put_rdb_last_bgsave_time_sec(struct buffer *buffer);
void put_rdb_current_bgsave_time_sec(struct buffer *buffer);
void put_rdb_saves(struct buffer *buffer);
void put_rdb_last_cow_size(struct buffer *buffer);
void put_rdb_last_load_keys_expired(struct buffer *buffer);
void put_rdb_last_load_keys_loaded(struct buffer *buffer);
void put_latest_fork_usec(struct buffer *buffer);
void put_total_forks(struct buffer *buffer);
