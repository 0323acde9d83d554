/* Where the files of the append only file are, and whether they are there. */
#pragma once

#include "base/compiler.h"
#include "persist/aof_manifest.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a file in their folder; to be freed. */
char *aof_file_path(const char *name);
char *aof_manifest_path(void); /* likewise */
char *aof_tail_path(void);     /* likewise: see aof_tail.h */

enum aof_found { AOF_FOUND_NOTHING, AOF_FOUND, AOF_FOUND_TROUBLE };

/* Reads the manifest and looks whether the files are there. `takes_over`: a single file, as Redis before 7 and KeyDB
 * write it, moves into the folder and becomes the base. TROUBLE: the log says what; the server must not start. Only
 * AOF_FOUND leaves something in *manifest. */
must_check enum aof_found aof_files_find(bool takes_over, struct aof_manifest *manifest, uint64_t *total_bytes);
