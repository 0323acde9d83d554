/* For tests: what a disk may hold after a power failure. kill -9 destroys only what a process has in memory; what it
 * has written and not synced belongs to the kernel and survives. So a test records what a program does with the files
 * of one folder, and then applies the record: it changes the folder to what a disk may hold whose power failed at some
 * point.
 *
 * power_cut_calls.c defines the functions of libc that change files (open, write, rename, fsync ...) and passes each
 * call on. The Makefile links it to the unit tests that include this header, and makes a library for LD_PRELOAD of it
 * (tests/fault/preload.c). The server does not contain it. Calls of all threads and forked children are recorded.
 *
 * The record is the folder FOLDER.power_cut:
 *
 *     log      one line for each step, written by one call. A change has a line before it is made and one when it has
 *              been made, because the program may be killed in between
 *     NUMBER   what the change with this number destroys: a second name (a hard link) of the file, or the old bytes
 *
 *     kind number inode  first  second path to
 *     O    0      inode  bytes  -      -    -     the file existed when the record began, all of it on the disk
 *     C    number -      folder -      path -     create a file
 *     M    number -      folder -      path -     make a folder
 *     L    number inode  folder -      path -     link the file to this name
 *     R    number inode  folder folder from to    rename; first and second: the folders of both names; NUMBER: old `to`
 *     U    number inode  folder -      path -     remove this name; NUMBER: the file
 *     W    number inode  offset bytes  -    -     overwrite; NUMBER: the old bytes
 *     T    number inode  size   bytes  -    -     truncate to this size; NUMBER: the bytes behind it
 *     S    number inode  bytes  -      -    -     sync a file with so many bytes, or a folder
 *     D    number inode  -      -      -    -     done; C: the inode of the new file
 *     N    number -      -      -      -    -     the call failed
 *     J    -      -      -      -      -    -     another program continues the record
 *
 * Folders are given by their inodes.
 *
 *  1. A sync covers what was done before it began, and only if it succeeds. The sync of a file covers its contents (W,
 *     T, appended bytes). The sync of a folder covers names in it (C, M, L, U). A rename needs syncs of both folders.
 *  2. Appended bytes have no line: they are the bytes of the file behind the size at its last sync.
 *  3. Undoing everything that is not covered, in reverse order, gives the least that the disk holds. It may hold more:
 *     the first ones of the changes of names, and of each file the first ones of its changes and some appended bytes.
 *  4. Undoing the changes behind a line of the log gives the disk as it was at that point.
 *
 * Not recorded: writes through a mapping, holes, symbolic links, removals of folders, other programs. */
#pragma once

#include <stdint.h>

#define POWER_CUT_NOW UINT64_MAX

struct power_cut_loss {
    uint64_t changes; /* number of changes of names */
    uint64_t bytes;   /* number of appended bytes */
};

/* Begins a record: everything in the folder counts as synced, and this program is recorded from here on. */
void power_cut_begin(const char *folder);
/* Continues in this program a record that another program has begun. */
void power_cut_join(const char *folder);
/* Returns the number of lines in the record. */
uint64_t power_cut_point(const char *folder);
/* Changes the folder to what a disk may hold whose power failed behind `point` lines of the record, then removes the
 * record. Seed 0 gives the least that it may hold, another seed a random amount. All files must have been closed. */
void power_cut_apply(const char *folder, uint64_t point, uint64_t seed, struct power_cut_loss *loss);
