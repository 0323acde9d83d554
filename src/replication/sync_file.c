#include "replication/sync_file.h"

#include "base/assert.h"
#include "base/background.h"
#include "base/file.h"
#include "base/mem.h"
#include "persist/byte_io.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FULL_BYTES = 8 * 1024 * 1024 };

struct sync_file {
    char *path; /* const; absolute: the folder may change meanwhile */
    void (*on_change)(void);
    _Atomic unsigned uses;        /* atomic: acq_rel; the owner, and each job */
    _Atomic size_t waiting_bytes; /* atomic: relaxed; given, not yet written */
    _Atomic int state;            /* atomic: released by the job that sets it, with all that it wrote before */
    _Atomic bool is_dropped;      /* atomic: relaxed; the owner has left: nothing more is written */
    /* the jobs', which run one after the other; the owner's when the state has changed */
    struct file *file;
    struct file_sink sink;
    struct file_source source;
    char error[256];
};

enum job_kind { JOB_WRITES, JOB_ENDS, JOB_ENDS_IN_PLACE };

struct job {
    struct sync_file *file;
    enum job_kind kind;
    size_t size;
    char bytes[];
};

static void fail(struct sync_file *file, const char *what)
{
    (void)snprintf(file->error, sizeof(file->error), "%s: %s", what, strerror(errno));
    file_close(&file->file);
    atomic_store_explicit(&file->state, SYNC_FILE_FAILED, memory_order_release);
}

static void write_bytes(struct sync_file *file, struct slice bytes)
{
    if (file->file == NULL) {
        if (file_create_temp(&file->file, file->path) != STATUS_OK) {
            fail(file, "Can't create the file for the snapshot");
            return;
        }
        file_sink_init(&file->sink, file->file, true);
    }
    if (file->sink.sink.write(&file->sink.sink, bytes) != STATUS_OK)
        fail(file, "Can't write the snapshot");
}

static must_check enum status save(struct sync_file *file, bool in_place)
{
    return in_place ? file_commit(file->file, file->path) : file_sync(file->file);
}

static void end_writing(struct sync_file *file, bool in_place)
{
    if (file->file == NULL || save(file, in_place) != STATUS_OK) {
        fail(file, "Can't write the snapshot");
        return;
    }
    if (file_seek(file->file, 0) != STATUS_OK || file_source_init(&file->source, file->file) != STATUS_OK) {
        fail(file, "Can't read the snapshot again");
        return;
    }
    atomic_store_explicit(&file->state, SYNC_FILE_READY, memory_order_release);
}

static void drop_use(struct sync_file *file)
{
    if (atomic_fetch_sub_explicit(&file->uses, 1, memory_order_acq_rel) != 1)
        return;
    file_close(&file->file);
    mem_free(file->path);
    mem_free(file);
}

static void run(void *argument)
{
    struct job *job = argument;
    struct sync_file *file = job->file;
    const bool is_wanted = !atomic_load_explicit(&file->is_dropped, memory_order_relaxed);

    if (is_wanted && sync_file_state(file) == SYNC_FILE_WRITES) {
        if (job->kind == JOB_WRITES)
            write_bytes(file, slice_make(job->bytes, job->size));
        else
            end_writing(file, job->kind == JOB_ENDS_IN_PLACE);
    }
    (void)atomic_fetch_sub_explicit(&file->waiting_bytes, job->size, memory_order_relaxed);
    if (is_wanted)
        file->on_change();
    mem_free(job);
    drop_use(file);
}

static void submit(struct sync_file *file, struct slice bytes, enum job_kind kind)
{
    struct job *job = mem_alloc(sizeof(*job) + bytes.size);

    job->file = file;
    job->kind = kind;
    job->size = bytes.size;
    if (bytes.size != 0)
        memcpy(job->bytes, bytes.data, bytes.size);
    (void)atomic_fetch_add_explicit(&file->uses, 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&file->waiting_bytes, bytes.size, memory_order_relaxed);
    background_submit(BACKGROUND_OTHER, run, job);
}

struct sync_file *sync_file_create(const char *name, void (*on_change)(void))
{
    struct sync_file *file = mem_alloc_zero(sizeof(*file));
    char folder[4096], path[sizeof(folder) + 256];

    if (name[0] == '/' || getcwd(folder, sizeof(folder)) == NULL)
        (void)snprintf(path, sizeof(path), "%s", name);
    else
        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file->path = mem_copy(path, strlen(path) + 1);
    file->on_change = on_change;
    atomic_init(&file->uses, 1);
    atomic_init(&file->state, SYNC_FILE_WRITES);
    return file;
}

void sync_file_release(struct sync_file **handle)
{
    struct sync_file *file = *handle;

    if (file == NULL)
        return;
    *handle = NULL;
    atomic_store_explicit(&file->is_dropped, true, memory_order_relaxed);
    submit(file, SLICE_EMPTY, JOB_WRITES); /* removing the file may wait for the disk: that job is the last to use it */
    drop_use(file);
}

void sync_file_add(struct sync_file *file, struct slice bytes)
{
    submit(file, bytes, JOB_WRITES);
}

bool sync_file_is_full(const struct sync_file *file)
{
    return sync_file_state(file) == SYNC_FILE_WRITES &&
           atomic_load_explicit(&file->waiting_bytes, memory_order_relaxed) >= FULL_BYTES;
}

void sync_file_finish(struct sync_file *file)
{
    submit(file, SLICE_EMPTY, JOB_ENDS);
}

void sync_file_finish_in_place(struct sync_file *file)
{
    submit(file, SLICE_EMPTY, JOB_ENDS_IN_PLACE);
}

enum sync_file_state sync_file_state(const struct sync_file *file)
{
    return (enum sync_file_state)atomic_load_explicit(&file->state, memory_order_acquire);
}

const char *sync_file_error(const struct sync_file *file)
{
    assert(sync_file_state(file) == SYNC_FILE_FAILED);
    return file->error;
}

struct byte_source *sync_file_source(struct sync_file *file)
{
    assert(sync_file_state(file) == SYNC_FILE_READY);
    return &file->source.source;
}

bool sync_file_rewind(struct sync_file *file)
{
    assert(sync_file_state(file) == SYNC_FILE_READY);
    return file_seek(file->file, 0) == STATUS_OK;
}

bool sync_file_put_in_place(struct sync_file *file)
{
    assert(sync_file_state(file) == SYNC_FILE_READY);
    return file_commit(file->file, file->path) == STATUS_OK;
}
