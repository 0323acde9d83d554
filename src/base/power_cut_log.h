/* For tests of whole servers: a record of what is on the disk and what only looks so, as kill -9 spares what the
 * system has not written yet. A test that has killed the server reads it, cuts files back to their synced length,
 * undoes changes of names whose folder was not synced, and so sees what a loss of power would have left.
 *
 * KEYDB_FILE_JOURNAL in the environment names the file, with its whole path. Each line is written with one call, also
 * by forked children:
 *
 *     C inode path                  opened for writing, and made
 *     O inode bytes path            opened for writing; it was there with so many bytes
 *     S inode bytes                 so many are on the disk
 *     T inode bytes                 cut to so many
 *     R id inode saved from to      about to be renamed; `saved` (or -) is a second name of what `to` was before
 *     U id inode saved path         about to be removed; `saved` is a second name
 *     D id                          that has been done
 *     f id folder                   about to be synced
 *     F id                          that has been done
 *
 * KEYDB_FAULT orders one fault: KIND:NUMBER[:HOW], of open read write sync rename remove truncate, the first call being
 * number 0, and of eio (it is, if nothing is said) enospc short torn interrupt. When it happens standard error says
 * "fault: KIND:NUMBER". */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

void power_cut_log_setup(void); /* at start, while there is one thread */

extern bool power_cut_log_is_on; /* global: const after start */

void power_cut_log_opened(int fd, const char *path, bool was_there);
void power_cut_log_synced(int fd, uint64_t bytes); /* that it had when the sync began */
void power_cut_log_truncated(int fd, uint64_t bytes);
int power_cut_log_rename(const char *from, const char *to); /* does it, too */
int power_cut_log_remove(const char *path);                 /* likewise */
uint64_t power_cut_log_folder_begin(const char *folder);    /* its id */
void power_cut_log_folder_synced(uint64_t id);
