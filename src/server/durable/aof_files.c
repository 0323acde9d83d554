#include "server/durable/aof_files.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/durable/file_options.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char no_start[] = "The server does not start, and does not change the files.";

char *aof_file_path(const char *name)
{
    const char *folder = aof_folder_name();
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = mem_alloc(size);

    (void)snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static char *path_with_ending(const char *ending)
{
    size_t size = strlen(aof_file_name()) + strlen(ending) + 1;
    char *name = mem_alloc(size), *path;

    (void)snprintf(name, size, "%s%s", aof_file_name(), ending);
    path = aof_file_path(name);
    mem_free(name);
    return path;
}

char *aof_manifest_path(void)
{
    return path_with_ending(".manifest");
}

char *aof_tail_path(void)
{
    return path_with_ending(".tail");
}

/* The line of the text, for people. */
static struct slice line_of(struct slice text, uint32_t number)
{
    const char *at = text.data, *end = text.data + text.size, *line_end;

    for (; number > 1 && at < end && (line_end = memchr(at, '\n', (size_t)(end - at))) != NULL; number--)
        at = line_end + 1;
    line_end = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return slice_make(at, (size_t)((line_end != NULL ? line_end : end) - at));
}

static enum aof_found read_manifest(const char *path, struct aof_manifest *manifest)
{
    struct aof_manifest_problem problem;
    struct slice line;
    size_t size;
    char *text;
    enum status status = file_load(path, AOF_MANIFEST_BYTES_MOST, &text, &size);

    if (status == STATUS_NOT_FOUND)
        return AOF_FOUND_NOTHING;
    if (status != STATUS_OK) {
        log_warning("Fatal error: can't open the AOF manifest file %s for reading: %s. %s Remove the cause and start "
                    "again.",
                    path, strerror(errno), no_start);
        return AOF_FOUND_TROUBLE;
    }
    status = aof_manifest_parse(manifest, slice_make(text, size), &problem);
    if (status != STATUS_OK) {
        line = line_of(slice_make(text, size), problem.line);
        if (problem.line != 0)
            log_warning("FATAL AOF MANIFEST FILE ERROR: reading the manifest file %s, at line %u >>> '%.*s': %s. %s "
                        "Correct that line, or restore the manifest from a copy.",
                        path, problem.line, (int)MIN(line.size, (size_t)200), line.data, problem.text, no_start);
        else
            log_warning("FATAL AOF MANIFEST FILE ERROR: %s: %s. %s Restore the manifest from a copy, or move "
                        "the files away to begin without data.",
                        path, problem.text, no_start);
    }
    mem_free(text);
    return status == STATUS_OK ? AOF_FOUND : AOF_FOUND_TROUBLE;
}

/* ------------------------------------------------------------------------------------------------- a file of old -- */

/* True if the file in `dir` is the only part in the manifest: then taking it over was interrupted. */
static bool is_half_taken_over(const struct aof_manifest *manifest)
{
    const struct aof_part *base = aof_manifest_base(manifest);
    char *path;
    bool is_there;

    if (manifest->count != 1 || base == NULL || strcmp(base->name, aof_file_name()) != 0)
        return false;
    path = aof_file_path(base->name);
    is_there = file_exists(path);
    mem_free(path);
    return !is_there && file_exists(aof_file_name());
}

/* The manifest is on the disk before the file moves: whatever happens in between, one of both names has the data. */
static must_check enum status take_over(const char *manifest_path, struct aof_manifest *manifest)
{
    char *path = aof_file_path(aof_file_name());
    struct buffer text = {0};
    enum status status;

    if (manifest->count == 0)
        aof_manifest_adopt_base(manifest, slice_from_text(aof_file_name()));
    aof_manifest_print(manifest, &text);
    status = file_make_folder(aof_folder_name());
    if (status == STATUS_OK)
        status = file_sync_folder(aof_folder_name()); /* the folder that has it */
    if (status == STATUS_OK)
        status = file_store(manifest_path, buffer_slice(&text));
    if (status == STATUS_OK)
        status = file_rename(aof_file_name(), path);
    if (status == STATUS_OK)
        status = file_sync_folder(path);
    if (status == STATUS_OK)
        status = file_sync_folder(aof_file_name());
    if (status == STATUS_OK)
        log_notice("Successfully migrated an old-style AOF file (%s) into the AOF directory (%s).", aof_file_name(),
                   aof_folder_name());
    else
        log_warning("Can't move the append-only file %s into the directory %s: %s. The server does not start. Remove "
                    "the cause and start again.",
                    aof_file_name(), aof_folder_name(), strerror(errno));
    buffer_fini(&text);
    mem_free(path);
    return status;
}

/* ----------------------------------------------------------------------------------------------------- looking -- */

/* Files that a manifest would name, if there was one. */
static bool is_part_name(const char *name)
{
    size_t prefix = strlen(aof_file_name()), size = strlen(name);

    if (strncmp(name, aof_file_name(), prefix) != 0 || name[prefix] != '.')
        return false;
    return (size > 9 && (strcmp(name + size - 9, ".base.rdb") == 0 || strcmp(name + size - 9, ".base.aof") == 0 ||
                         strcmp(name + size - 9, ".incr.aof") == 0));
}

/* Without a manifest it is unknown which files are complete and what their order is: starting empty would hide the
 * data. */
static enum aof_found look_for_orphans(const char *manifest_path)
{
    DIR *folder = opendir(aof_folder_name());
    enum aof_found found = AOF_FOUND_NOTHING;
    const struct dirent *item;

    if (folder == NULL) {
        if (errno == ENOENT)
            return AOF_FOUND_NOTHING;
        log_warning("Can't open append-only dir %s: %s. The server does not start. Remove the cause and start again.",
                    aof_folder_name(), strerror(errno));
        return AOF_FOUND_TROUBLE;
    }
    while (found == AOF_FOUND_NOTHING && (item = readdir(folder)) != NULL) {
        uint64_t size = 0;
        char *path;

        if (!is_part_name(item->d_name))
            continue;
        path = aof_file_path(item->d_name);
        if (file_size_of(path, &size) != STATUS_OK || size != 0) {
            log_warning("The append-only file has no manifest: %s exists, %s does not. %s Restore the manifest from a "
                        "copy, or write one (file NAME seq NUMBER type b or i), or move the files away to start "
                        "without them.",
                        path, manifest_path, no_start);
            found = AOF_FOUND_TROUBLE;
        }
        mem_free(path);
    }
    closedir(folder);
    return found;
}

static bool files_are_there(const struct aof_manifest *manifest, uint64_t *total_bytes)
{
    *total_bytes = 0;
    for (uint32_t i = 0; i < manifest->count; i++) {
        const struct aof_part *part = &manifest->items[i];
        uint64_t size = 0;
        char *path;
        enum status status;

        if (part->type == AOF_HISTORY)
            continue;
        path = aof_file_path(part->name);
        status = file_size_of(path, &size);
        if (status != STATUS_OK)
            log_warning("Unable to obtain the AOF file %s length. stat: %s. %s Put the file back that the manifest "
                        "names.",
                        part->name, strerror(errno), no_start);
        mem_free(path);
        if (status != STATUS_OK)
            return false;
        *total_bytes += size;
    }
    return true;
}

static enum aof_found find(bool takes_over, const char *manifest_path, struct aof_manifest *manifest)
{
    enum aof_found found = read_manifest(manifest_path, manifest);
    bool is_old;

    if (found == AOF_FOUND_TROUBLE)
        return found;
    if (manifest->count == 0) {
        found = look_for_orphans(manifest_path);
        if (found != AOF_FOUND_NOTHING)
            return found;
    }
    is_old = manifest->count == 0 ? file_exists(aof_file_name()) : is_half_taken_over(manifest);
    if (is_old && takes_over)
        return take_over(manifest_path, manifest) == STATUS_OK ? AOF_FOUND : AOF_FOUND_TROUBLE;
    return manifest->count != 0 ? AOF_FOUND : AOF_FOUND_NOTHING;
}

enum aof_found aof_files_find(bool takes_over, struct aof_manifest *manifest, uint64_t *total_bytes)
{
    char *manifest_path = aof_manifest_path();
    enum aof_found found;

    *manifest = (struct aof_manifest){0};
    found = find(takes_over, manifest_path, manifest);
    if (found == AOF_FOUND && !files_are_there(manifest, total_bytes))
        found = AOF_FOUND_TROUBLE;
    if (found != AOF_FOUND)
        aof_manifest_fini(manifest);
    mem_free(manifest_path);
    return found;
}
