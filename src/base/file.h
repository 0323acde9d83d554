/* Files on a disk that may fail. Tests can make every system call fail (fault.h) and see what a power failure leaves
 * (power_cut.h). A call that fails leaves errno set. A `struct file` belongs to one thread at a time. Any thread may
 * call the functions that take paths. EINTR is handled here. */
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
    FILE_READ = 0, /* the file must exist */
    FILE_APPEND,   /* creates the file if needed; writes go to the end */
    FILE_REPLACE   /* creates or empties the file; for reading and writing */
};

must_check enum status file_open(struct file **file, const char *path, enum file_mode mode);
/* Creates a new file beside `path`, which file_commit renames to `path`. A file that is closed without a commit removes
 * itself. */
must_check enum status file_create_temp(struct file **file, const char *path);
/* The same under a name that the caller chooses; it must not exist. For child processes whose parent cleans up. */
must_check enum status file_create_temp_named(struct file **file, const char *temp_path);
/* Syncs the data, renames the file to `path` and syncs the folder. After STATUS_OK the change survives a power
 * failure. */
must_check enum status file_commit(struct file *file, const char *path);
must_check enum status file_name(struct file *file, const char *path); /* only the second of these steps */
void file_close(struct file **file);                                   /* accepts NULL; leaves NULL */

must_check enum status file_write_all(struct file *file, const void *data, size_t size);
must_check enum status file_writev_all(struct file *file, struct iovec *parts, int count); /* changes `parts` */
/* Reads until `size` bytes or the end of the file: *got < size only at the end. */
must_check enum status file_read(struct file *file, void *data, size_t size, size_t *got);
must_check enum status file_pread(struct file *file, void *data, size_t size, uint64_t offset, size_t *got);
/* Never waits for the disk: false if the kernel does not have all of it in memory, or the file system cannot tell. */
must_check bool file_pread_cached(struct file *file, void *data, size_t size, uint64_t offset);
must_check enum status file_pwrite_all(struct file *file, const void *data, size_t size, uint64_t offset);
must_check enum status file_seek(struct file *file, uint64_t offset);
must_check enum status file_sync(struct file *file); /* after it, data and size are on the disk (fdatasync) */
/* A hint: begins to write, does not wait. */
void file_start_writeback(struct file *file, uint64_t offset, uint64_t size);
/* A hint: the range will not be read again soon. */
void file_drop_cache(struct file *file, uint64_t offset, uint64_t size);
must_check enum status file_size(struct file *file, uint64_t *size);
must_check enum status file_truncate(struct file *file, uint64_t size);
const char *file_path(const struct file *file);
int file_descriptor(const struct file *file);

/* --- calls that take paths --- */
/* Survives a power failure only after file_sync_folder. */
must_check enum status file_rename(const char *from, const char *to);
must_check enum status file_remove(const char *path); /* STATUS_NOT_FOUND: the file did not exist */
/* The path of a file in the working directory, which may change later. */
enum { FILE_PATH_SPACE = 4096 };
void file_full_path(char path[FILE_PATH_SPACE], const char *name);
must_check enum status file_sync_folder(const char *path); /* syncs the folder that holds `path` */
must_check enum status file_make_folder(const char *path); /* succeeds if the folder exists already */
bool file_exists(const char *path);
must_check enum status file_size_of(const char *path, uint64_t *size);
/* Loads a whole small file as text, followed by a zero byte. STATUS_FULL: the file is larger than `limit`. Free the
 * data with mem_free. */
must_check enum status file_load(const char *path, size_t limit, char **data, size_t *size);
/* Replaces a file: creates a temporary file, writes, commits. An existing file keeps its mode and, where possible, its
 * owner and group. */
must_check enum status file_store(const char *path, struct slice data);
