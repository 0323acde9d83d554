/* Where bytes go and where they come from, for what is written and read in one piece from front to end: files, memory,
 * later sockets. Who makes one embeds the struct in its own. One thread at a time. */
#pragma once

#include "base/compiler.h"
#include "base/file.h"
#include "base/slice.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct byte_sink {
    must_check enum status (*write)(struct byte_sink *sink, struct slice bytes); /* all of them, or an error */
};

#define BYTES_UNKNOWN UINT64_MAX

struct byte_source {
    /* At least one byte, unless this is the end (*got is 0). */
    must_check enum status (*read)(struct byte_source *source, void *data, size_t size, size_t *got);
    uint64_t size; /* bytes to come in all, or BYTES_UNKNOWN: what is claimed to be there is checked against it */
};

/* Into a file; what was written is on its way to the disk soon, so that the sync at the end is short. */
struct file_sink {
    struct byte_sink sink;
    struct file *file; /* not owned */
    uint64_t written;
    uint64_t started; /* of those, told to the system */
    bool writes_back; /* start writing every some MiB */
};
void file_sink_init(struct file_sink *sink, struct file *file, bool writes_back);

struct file_source {
    struct byte_source source;
    struct file *file; /* not owned */
};
must_check enum status file_source_init(struct file_source *source, struct file *file); /* from where it stands: 0 */

struct memory_source {
    struct byte_source source;
    struct slice left; /* not owned */
};
void memory_source_init(struct memory_source *source, struct slice bytes);
