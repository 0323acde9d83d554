/* The paths of the append-only file's files, and whether the files exist. */
#pragma once

#include "base/compiler.h"
#include "persist/aof_manifest.h"

#include <stdbool.h>
#include <stdint.h>

/* Path of a file in their folder; the caller frees it. */
char *aof_file_path(const char *name);
char *aof_manifest_path(void); /* the caller frees it */
char *aof_tail_path(void);     /* the caller frees it; see aof_tail.h */

enum aof_found { AOF_FOUND_NOTHING, AOF_FOUND, AOF_FOUND_TROUBLE };

/* Reads the manifest and checks whether its files exist. `takes_over`: a single file, as Redis before 7 and KeyDB write
 * it, is moved into the folder and becomes the base. AOF_FOUND_TROUBLE: the reason is in the log, and the server must
 * not start. *manifest is set only with AOF_FOUND. */
must_check enum aof_found aof_files_find(bool takes_over, struct aof_manifest *manifest, uint64_t *total_bytes);
