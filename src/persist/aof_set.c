#include "persist/aof_set.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void aof_set_init(struct aof_set *files, const char *folder, const char *name)
{
    *files = (struct aof_set){.folder = mem_copy_text(folder), .name = mem_copy_text(name)};
}

void aof_set_fini(struct aof_set *files)
{
    aof_manifest_fini(&files->manifest);
    mem_free(files->folder);
    mem_free(files->name);
    *files = (struct aof_set){0};
}

char *aof_set_path(const struct aof_set *files, const char *file_name)
{
    struct buffer path = {0};

    buffer_printf(&path, "%s/%s", files->folder, file_name);
    return buffer_take(&path, &(size_t){0});
}

char *aof_set_tail_path(const struct aof_set *files)
{
    struct buffer path = {0};

    buffer_printf(&path, "%s/%s.tail", files->folder, files->name);
    return buffer_take(&path, &(size_t){0});
}

static char *manifest_path(const struct aof_set *files)
{
    struct buffer path = {0};

    buffer_printf(&path, "%s/%s.manifest", files->folder, files->name);
    return buffer_take(&path, &(size_t){0});
}

/* ----------------------------------------------------------------------------------------------------- manifest -- */

enum status aof_set_read(struct aof_set *files, char error[AOF_SET_ERROR_BYTES])
{
    struct aof_manifest_problem problem;
    char *path = manifest_path(files), *text = NULL;
    size_t size = 0;
    enum status status = file_load(path, AOF_MANIFEST_BYTES_MOST, &text, &size);

    error[0] = '\0';
    aof_manifest_fini(&files->manifest);
    if (status == STATUS_OK) {
        status = aof_manifest_parse(&files->manifest, slice_make(text, size), &problem);
        if (status != STATUS_OK)
            (void)snprintf(error, AOF_SET_ERROR_BYTES, "%s.manifest: line %u: %s", files->name, problem.line,
                           problem.text);
    } else if (status != STATUS_NOT_FOUND) {
        (void)snprintf(error, AOF_SET_ERROR_BYTES, "%s.manifest: %s", files->name, strerror(errno));
    }
    mem_free(text);
    mem_free(path);
    return status;
}

static must_check enum status store(struct aof_set *files, const struct aof_manifest *manifest)
{
    struct buffer text = {0};
    char *path = manifest_path(files);
    enum status status;

    aof_manifest_print(manifest, &text);
    status = file_store(path, buffer_slice(&text));
    files->is_in_doubt = status != STATUS_OK;
    buffer_fini(&text);
    mem_free(path);
    return status;
}

static must_check enum status settle(struct aof_set *files)
{
    return files->is_in_doubt ? store(files, &files->manifest) : STATUS_OK;
}

/* Makes `next` the manifest, on the disk first, or changes nothing. */
static must_check enum status adopt(struct aof_set *files, struct aof_manifest *next)
{
    enum status status = store(files, next);

    assert(next->count != 0);
    if (status != STATUS_OK)
        return status;
    aof_manifest_fini(&files->manifest);
    files->manifest = *next;
    *next = (struct aof_manifest){0};
    return STATUS_OK;
}

/* -------------------------------------------------------------------------------------------------------- files -- */

enum status aof_set_make_folder(const struct aof_set *files)
{
    enum status status = file_make_folder(files->folder);

    return status == STATUS_OK ? file_sync_folder(files->folder) : status;
}

static must_check enum status sync_folder(const struct aof_set *files)
{
    char *path = manifest_path(files);
    enum status status = file_sync_folder(path);

    mem_free(path);
    return status;
}

enum status aof_set_open_last(const struct aof_set *files, struct file **file, uint64_t *size)
{
    const struct aof_part *last = aof_manifest_last_increment(&files->manifest);
    char *path = NULL;
    enum status status;

    assert(last != NULL);
    path = aof_set_path(files, last->name);
    status = file_size_of(path, size);
    *file = NULL;
    if (status == STATUS_OK)
        status = file_open(file, path, FILE_APPEND);
    mem_free(path);
    return status;
}

static must_check enum status create_empty(const struct aof_set *files, const char *name, struct file **file)
{
    char *path = aof_set_path(files, name);
    enum status status = file_remove(path); /* of an attempt that failed */

    if (status == STATUS_OK || status == STATUS_NOT_FOUND)
        status = file_open(file, path, FILE_APPEND);
    mem_free(path);
    return status;
}

enum status aof_set_add_increment(struct aof_set *files, struct file **file)
{
    struct aof_manifest next = {0};
    enum status status = settle(files);

    *file = NULL;
    aof_manifest_copy(&next, &files->manifest);
    if (status == STATUS_OK)
        status = create_empty(files, aof_manifest_add_increment(&next, files->name)->name, file);
    if (status == STATUS_OK)
        status = sync_folder(files);
    if (status == STATUS_OK)
        status = adopt(files, &next);
    if (status != STATUS_OK)
        file_close(file);
    aof_manifest_fini(&next);
    return status;
}

static must_check enum status rename_in_folder(const struct aof_set *files, const char *from, const char *to)
{
    char *from_path = aof_set_path(files, from), *to_path = aof_set_path(files, to);
    enum status status = file_rename(from_path, to_path);

    mem_free(from_path);
    mem_free(to_path);
    return status;
}

enum status aof_set_replace_base(struct aof_set *files, const char *temp_base, bool is_rdb, enum aof_kept kept,
                                 const char *temp_increment)
{
    struct aof_manifest next = {0};
    const struct aof_part *part;
    enum status status = settle(files);

    assert((kept == AOF_KEPT_TEMPORARY) == (temp_increment != NULL));
    assert(kept != AOF_KEPT_LAST || aof_manifest_last_increment(&files->manifest) != NULL);
    aof_manifest_copy(&next, &files->manifest);
    part = aof_manifest_replace_base(&next, files->name, is_rdb,
                                     kept == AOF_KEPT_LAST ? aof_manifest_last_increment(&next) : NULL);
    if (status == STATUS_OK)
        status = rename_in_folder(files, temp_base, part->name);
    if (status == STATUS_OK && kept == AOF_KEPT_TEMPORARY) {
        part = aof_manifest_add_increment(&next, files->name);
        status = rename_in_folder(files, temp_increment, part->name);
    }
    if (status == STATUS_OK)
        status = sync_folder(files);
    if (status == STATUS_OK)
        status = adopt(files, &next);
    aof_manifest_fini(&next);
    return status;
}

enum status aof_set_drop_history(struct aof_set *files, void (*remove)(char *path))
{
    struct aof_manifest next = {0}, before;
    enum status status;

    if (aof_manifest_count(&files->manifest, AOF_HISTORY) == 0)
        return STATUS_OK;
    aof_manifest_copy(&next, &files->manifest);
    aof_manifest_drop_history(&next);
    before = files->manifest;
    files->manifest = (struct aof_manifest){0};
    status = adopt(files, &next);
    if (status != STATUS_OK) {
        files->manifest = before;
        aof_manifest_fini(&next);
        return status;
    }
    for (uint32_t i = 0; i < before.count; i++) {
        if (before.items[i].type == AOF_HISTORY)
            remove(aof_set_path(files, before.items[i].name));
    }
    aof_manifest_fini(&before);
    return STATUS_OK;
}

uint64_t aof_set_bytes(const struct aof_set *files)
{
    uint64_t sum = 0, size;

    for (uint32_t i = 0; i < files->manifest.count; i++) {
        const struct aof_part *part = &files->manifest.items[i];
        char *path;

        if (part->type == AOF_HISTORY)
            continue;
        path = aof_set_path(files, part->name);
        sum += file_size_of(path, &size) == STATUS_OK ? size : 0;
        mem_free(path);
    }
    return sum;
}
