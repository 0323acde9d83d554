/* The files of an append-only file on the disk: a manifest and the files it names, in a folder of their own. Every
 * change of the set is safe at any moment: an error, a crash or a power failure leaves the set as it was before or as
 * it is after.
 *
 *  1. A file has its name, and the name is on the disk, before the manifest names the file.
 *  2. The manifest is replaced as a whole, and is on the disk before anything is written that relies on it.
 *  3. A file is removed only when the manifest on the disk does not name it any more.
 *  4. After an error it is unknown which manifest is on the disk. The manifest is written again before a file is
 *     touched that it may name.
 *
 * One thread at a time. Calls that fail leave errno set. */
#pragma once

#include "base/file.h"
#include "persist/aof_manifest.h"

struct aof_set {
    char *folder, *name; /* path of the folder; prefix of the file names */
    struct aof_manifest manifest;
    bool is_in_doubt; /* see 4 */
};

enum { AOF_SET_ERROR_BYTES = 256 };

/* Does not touch the disk. */
void aof_set_init(struct aof_set *files, const char *folder, const char *name);
void aof_set_fini(struct aof_set *files);
char *aof_set_path(const struct aof_set *files, const char *file_name); /* the caller frees it */
/* The caller frees it; path of the journal's tail, see store/journal_tail.h. */
char *aof_set_tail_path(const struct aof_set *files);

/* Reads the manifest. STATUS_NOT_FOUND: there is none. On other failures `error` has the reason. */
must_check enum status aof_set_read(struct aof_set *files, char error[AOF_SET_ERROR_BYTES]);
must_check enum status aof_set_make_folder(const struct aof_set *files);
/* Opens the last increment for appending, and returns its size. It must exist. */
must_check enum status aof_set_open_last(const struct aof_set *files, struct file **file, uint64_t *size);
/* Adds an empty increment, which is the last one from now on. */
must_check enum status aof_set_add_increment(struct aof_set *files, struct file **file);

/* The increments that stay beside a new base. */
enum aof_kept {
    AOF_KEPT_NOTHING,  /* none: the base has everything */
    AOF_KEPT_LAST,     /* the last increment: changes since it was begun */
    AOF_KEPT_TEMPORARY /* no existing one; a file of that name becomes an increment */
};
/* Makes the file `temp_base` the base; it is in the folder and on the disk. With AOF_KEPT_TEMPORARY `temp_increment`
 * becomes an increment. On failure both may have other names and are useless. */
must_check enum status aof_set_replace_base(struct aof_set *files, const char *temp_base, bool is_rdb,
                                            enum aof_kept kept, const char *temp_increment);
/* Removes history from the manifest, then calls `remove` for each path; `remove` takes the path over. */
must_check enum status aof_set_drop_history(struct aof_set *files, void (*remove)(char *path));

/* Size of base and increments. Missing files count as empty. */
uint64_t aof_set_bytes(const struct aof_set *files);
