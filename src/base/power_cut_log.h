/* For tests of whole servers: a log of the writes that would survive a power failure, since kill -9 loses nothing that
 * the kernel has. A test kills the server, reads this log, cuts files back to their synced length and undoes changes of
 * names whose folder was not synced. So it sees what a power failure would have left.
 *
 * The environment variable KEYDB_FILE_JOURNAL has the full path of the log. Each line is written with one call, also by
 * forked children:
 *
 *     C inode path                  the file was created and opened for writing
 *     O inode bytes path            the file existed with so many bytes and was opened for writing
 *     S inode bytes                 so many bytes are on the disk
 *     T inode bytes                 the file was cut to so many bytes
 *     R id inode saved from to      a rename begins; `saved` is a second name of the old `to`, or -
 *     U id inode saved path         a removal begins; `saved` is a second name of the file
 *     D id                          the rename or removal is done
 *     f id folder                   the sync of a folder begins
 *     F id                          the sync of the folder is done
 *
 * The environment variable KEYDB_FAULT orders one fault: KIND:NUMBER[:HOW]. KIND is open, read, write, sync, rename,
 * remove or truncate. NUMBER 0 is the first call. HOW is eio (the default), enospc, short, torn or interrupt. When the
 * fault fires, the server writes "fault: KIND:NUMBER" to standard error. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

void power_cut_log_setup(void); /* at start, while there is one thread */

extern bool power_cut_log_is_on; /* global: const after start */

void power_cut_log_opened(int fd, const char *path, bool was_there);
void power_cut_log_synced(int fd, uint64_t bytes); /* `bytes`: the size of the file when the sync began */
void power_cut_log_truncated(int fd, uint64_t bytes);
int power_cut_log_rename(const char *from, const char *to); /* logs and does the rename */
int power_cut_log_remove(const char *path);                 /* logs and does the removal */
uint64_t power_cut_log_folder_begin(const char *folder);    /* returns the id of the sync */
void power_cut_log_folder_synced(uint64_t id);
