/* A snapshot on its way from the connection to a file on the disk. Its owner, a thread, gives the bytes; jobs of the
 * background thread write them, in order. A complete file is synced. It gets its name only when its reader says so;
 * what ends before leaves nothing behind. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

struct byte_source;
struct sync_file;

enum sync_file_state { SYNC_FILE_WRITES, SYNC_FILE_READY, SYNC_FILE_FAILED };

/* For a file of that name in the present folder. The jobs call `on_change` when bytes were written, or the state has
 * changed. */
struct sync_file *sync_file_create(const char *name, void (*on_change)(void));
/* Accepts NULL; leaves NULL. A job that still runs ends first, and then frees it. Its source is not read any more. */
void sync_file_release(struct sync_file **handle);
void sync_file_add(struct sync_file *file, struct slice bytes);
bool sync_file_is_full(const struct sync_file *file); /* add no more until on_change */
void sync_file_finish(struct sync_file *file);        /* that was all: becomes ready, or fails */
/* The same, and it has its name when it is ready. */
void sync_file_finish_in_place(struct sync_file *file);
enum sync_file_state sync_file_state(const struct sync_file *file);
const char *sync_file_error(const struct sync_file *file); /* of a file that failed */
/* Of a file that is ready: its bytes from the start. For one thread, which may be another. */
struct byte_source *sync_file_source(struct sync_file *file);
/* That thread's. False: errno has the reason. */
must_check bool sync_file_rewind(struct sync_file *file);       /* the source begins again */
must_check bool sync_file_put_in_place(struct sync_file *file); /* under its name; replaces what is there */
