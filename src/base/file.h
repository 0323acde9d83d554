/* Files on a disk that may fail. Every system call can be made to fail by tests (fault.h), and the crash model shows
 * what would be left after a loss of power. Each call that fails leaves errno set. A `struct file` belongs to one
 * thread at a time; calls on paths may come from any. EINTR is handled here. */
#pragma once

#include "base/compiler.h"
#include "base/fault.h"
#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct file;

enum file_mode {
    FILE_READ = 0, /* must exist */
    FILE_APPEND,   /* created if need be; writes go to the end */
    FILE_REPLACE   /* created or emptied; read and write */
};

must_check enum status file_open(struct file **file, const char *path, enum file_mode mode);
/* A new file beside `path`, to be renamed to it by file_commit. Closed without commit it removes itself. */
must_check enum status file_create_temp(struct file **file, const char *path);
/* The same under a name the caller chose (it must not exist), for child processes whose parent cleans up. */
must_check enum status file_create_temp_named(struct file **file, const char *temp_path);
/* Syncs the data, renames to `path` and syncs the folder: after STATUS_OK it is `path`, whatever happens next. */
must_check enum status file_commit(struct file *file, const char *path);
void file_close(struct file **file); /* NULL is fine; leaves NULL */

must_check enum status file_write_all(struct file *file, const void *data, size_t size);
must_check enum status file_writev_all(struct file *file, struct iovec *parts, int count); /* changes `parts` */
/* *got < size only at the end of the file. */
must_check enum status file_read(struct file *file, void *data, size_t size, size_t *got);
must_check enum status file_pread(struct file *file, void *data, size_t size, uint64_t offset, size_t *got);
must_check enum status file_pwrite_all(struct file *file, const void *data, size_t size, uint64_t offset);
must_check enum status file_seek(struct file *file, uint64_t offset);
must_check enum status file_sync(struct file *file); /* data and size are on the disk (fdatasync) */
void file_start_writeback(struct file *file, uint64_t offset, uint64_t size); /* a hint: begin writing, don't wait */
void file_drop_cache(struct file *file, uint64_t offset, uint64_t size);      /* a hint: not read again soon */
must_check enum status file_size(struct file *file, uint64_t *size);
must_check enum status file_truncate(struct file *file, uint64_t size);
const char *file_path(const struct file *file);
int file_descriptor(const struct file *file);

/* --- by path --- */
must_check enum status file_rename(const char *from, const char *to); /* durable only after file_sync_folder */
must_check enum status file_remove(const char *path);                 /* STATUS_NOT_FOUND if it was not there */
must_check enum status file_sync_folder(const char *path);            /* the folder that holds `path` */
must_check enum status file_make_folder(const char *path);            /* fine if it exists as a folder */
bool file_exists(const char *path);
must_check enum status file_size_of(const char *path, uint64_t *size);
/* All of a small file, as text; more than `limit` is STATUS_FULL. Free with mem_free. A zero byte follows. */
must_check enum status file_load(const char *path, size_t limit, char **data, size_t *size);
/* temp + write + commit. Mode and, where possible, owner and group of a file that is there stay. */
must_check enum status file_store(const char *path, struct slice data);

/* --- the crash model, for tests; one thread --- */
/* On: from now on it is recorded what was synced: lengths of files, and creations, renames and removals in folders. */
void file_crash_model(bool on);
/* As if the power had failed: every file is cut to its last synced length, and creations, renames and removals whose
 * folder was not synced are undone, latest first. All files must have been closed. Recording starts anew. */
void fault_crash_apply(void);
