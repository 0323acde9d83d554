/* Sinks and sources of bytes that are written or read once from front to end: files, memory, later sockets. An
 * implementation has this struct as its first member. One thread at a time. */
#pragma once

#include "base/compiler.h"
#include "base/file.h"
#include "base/slice.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct byte_sink {
    must_check enum status (*write)(struct byte_sink *sink, struct slice bytes); /* writes all bytes, or fails */
};

#define BYTES_UNKNOWN UINT64_MAX

struct byte_source {
    /* Reads at least one byte, unless this is the end (*got is 0). */
    must_check enum status (*read)(struct byte_source *source, void *data, size_t size, size_t *got);
    uint64_t size; /* total size, or BYTES_UNKNOWN; lengths in the data are checked against it */
};

/* Writes into a file. The kernel starts writing to the disk early, so that the sync at the end is short. */
struct file_sink {
    struct byte_sink sink;
    struct file *file; /* not owned */
    uint64_t written;
    uint64_t started; /* the part of `written` for which writing was started */
    bool writes_back; /* start writing every few MiB */
};
void file_sink_init(struct file_sink *sink, struct file *file, bool writes_back);

struct file_source {
    struct byte_source source;
    struct file *file; /* not owned */
};
/* From the current position, 0. */
must_check enum status file_source_init(struct file_source *source, struct file *file);

struct memory_source {
    struct byte_source source;
    struct slice left; /* not owned */
};
void memory_source_init(struct memory_source *source, struct slice bytes);
