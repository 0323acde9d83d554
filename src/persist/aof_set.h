/* The files of an append only file on the disk: a manifest and what it names, in a folder of their own. Every change of
 * which files they are is safe at any moment: an error, a crash or a loss of power leaves the set as it was before or
 * as it is after.
 *
 *  1. A file stands under its own name, and on the disk with its name, before the manifest names it.
 *  2. The manifest is replaced as a whole, and is on the disk before anything is written that counts on it.
 *  3. A file is removed only when the manifest on the disk does not name it any more.
 *  4. After an error nobody knows which manifest the disk has. It is written anew, as it is here, before a file is
 *     touched that it may name.
 *
 * One thread at a time. What fails leaves errno set. */
#pragma once

#include "base/file.h"
#include "persist/aof_manifest.h"

struct aof_set {
    char *folder, *name; /* the folder's path; what the names of the files begin with */
    struct aof_manifest manifest;
    bool is_in_doubt; /* see 4 */
};

enum { AOF_SET_ERROR_BYTES = 256 };

/* Touches nothing on the disk. */
void aof_set_init(struct aof_set *files, const char *folder, const char *name);
void aof_set_fini(struct aof_set *files);
char *aof_set_path(const struct aof_set *files, const char *file_name); /* to be freed */
char *aof_set_tail_path(const struct aof_set *files); /* likewise: beside them, see store/journal_tail.h */

/* What the disk has. STATUS_NOT_FOUND: there is no manifest. Others: *error says why. */
must_check enum status aof_set_read(struct aof_set *files, char error[AOF_SET_ERROR_BYTES]);
must_check enum status aof_set_make_folder(const struct aof_set *files);
/* The last increment, to be appended to; its size. It must be there. */
must_check enum status aof_set_open_last(const struct aof_set *files, struct file **file, uint64_t *size);
/* One more increment, empty: from now on the last one. */
must_check enum status aof_set_add_increment(struct aof_set *files, struct file **file);

/* What is left beside a new base. */
enum aof_kept {
    AOF_KEPT_NOTHING,  /* it holds everything */
    AOF_KEPT_LAST,     /* the last increment: what happened since it was begun */
    AOF_KEPT_TEMPORARY /* nothing of what is there, but the file of that name, which becomes an increment */
};
/* The file `temp_base`, which is in the folder and on the disk, becomes the base; so does `temp_increment` an increment
 * (AOF_KEPT_TEMPORARY). Where this fails they may have other names, and are not to be used. */
must_check enum status aof_set_replace_base(struct aof_set *files, const char *temp_base, bool is_rdb,
                                            enum aof_kept kept, const char *temp_increment);
/* The manifest forgets what is no longer needed; then `remove` is called for each path, and takes it over. */
must_check enum status aof_set_drop_history(struct aof_set *files, void (*remove)(char *path));

/* Base and increments. Files that are not there count as empty. */
uint64_t aof_set_bytes(const struct aof_set *files);
