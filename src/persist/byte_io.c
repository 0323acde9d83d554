#include "persist/byte_io.h"

#include "base/assert.h"

enum { WRITE_BACK_BYTES = 4 * 1024 * 1024 };

static must_check enum status write_to_file(struct byte_sink *sink, struct slice bytes)
{
    struct file_sink *self = (struct file_sink *)sink;
    enum status status = file_write_all(self->file, bytes.data, bytes.size);

    if (status != STATUS_OK)
        return status;
    self->written += bytes.size;
    assert(self->started <= self->written);
    if (self->writes_back && self->written - self->started >= WRITE_BACK_BYTES) {
        file_start_writeback(self->file, self->started, self->written - self->started);
        self->started = self->written;
    }
    return STATUS_OK;
}

void file_sink_init(struct file_sink *sink, struct file *file, bool writes_back)
{
    *sink = (struct file_sink){.sink = {write_to_file}, .file = file, .writes_back = writes_back};
}

static must_check enum status read_from_file(struct byte_source *source, void *data, size_t size, size_t *got)
{
    return file_read(((struct file_source *)source)->file, data, size, got);
}

enum status file_source_init(struct file_source *source, struct file *file)
{
    *source = (struct file_source){.source = {read_from_file, BYTES_UNKNOWN}, .file = file};
    return file_size(file, &source->source.size);
}

static must_check enum status read_from_memory(struct byte_source *source, void *data, size_t size, size_t *got)
{
    struct memory_source *self = (struct memory_source *)source;

    *got = size < self->left.size ? size : self->left.size;
    if (*got != 0)
        memcpy(data, self->left.data, *got);
    self->left = slice_skip(self->left, *got);
    return STATUS_OK;
}

void memory_source_init(struct memory_source *source, struct slice bytes)
{
    *source = (struct memory_source){.source = {read_from_memory, bytes.size}, .left = bytes};
}
