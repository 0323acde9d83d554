#include "server/durable/aof_tail.h"

#include "base/file.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/aof_text.h"
#include "server/durable/aof_files.h"
#include "server/durable/file_options.h"
#include "store/journal_tail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NOTES_BYTES = 1024 * 1024 }; /* lines with the time, which are only in the file */

/* The tail as text, and the file's end beside it. */
struct recovery {
    struct journal_tail_reader *reader;
    struct journal_place place;
    struct aof_text text;
    size_t whole_size; /* of the text: up to the end of the last transaction that is whole */
    int whole_db;
    bool is_broken;     /* something of the transaction is not there */
    bool has_hole;      /* the first such transaction, which is where the file ends at the latest: */
    size_t hole_at;     /* where in the text it is left out */
    struct buffer torn; /* its begin, which the file may have */
    struct file *file;
    uint64_t file_bytes;
    struct buffer written;         /* the file's bytes behind the place */
    size_t agreed, written_agreed; /* so much of the text is there, in so much of the file */
};

static void forget_transaction(struct recovery *recovery)
{
    recovery->text.bytes.size = recovery->whole_size;
    recovery->text.db = recovery->whole_db;
    recovery->text.in_transaction = false;
}

/* False: the end. */
static bool take_next(struct recovery *recovery)
{
    struct journal_view view;
    enum journal_tail_item item = journal_tail_next(recovery->reader, &view);

    if (item == JOURNAL_TAIL_END)
        return false;
    if ((view.flags & JOURNAL_MESSAGE) != 0) {
        if (item == JOURNAL_TAIL_RECORD)
            aof_text_add(&recovery->text, &view);
        if (!recovery->text.in_transaction && !recovery->is_broken)
            recovery->whole_size = recovery->text.bytes.size;
        return true;
    }
    if (item == JOURNAL_TAIL_HOLE && !recovery->has_hole) {
        recovery->has_hole = true;
        recovery->hole_at = recovery->whole_size;
        buffer_append(&recovery->torn, buffer_text(&recovery->text.bytes) + recovery->whole_size,
                      recovery->text.bytes.size - recovery->whole_size);
    }
    recovery->is_broken = recovery->is_broken || item == JOURNAL_TAIL_HOLE;
    if (item == JOURNAL_TAIL_RECORD)
        aof_text_add(&recovery->text, &view);
    if ((view.flags & JOURNAL_SELECT) != 0 ? recovery->text.in_transaction : (view.flags & JOURNAL_ENDS) == 0)
        return true;
    if (recovery->is_broken)
        forget_transaction(recovery);
    recovery->is_broken = false;
    recovery->whole_size = recovery->text.bytes.size;
    recovery->whole_db = recovery->text.db;
    return true;
}

static void make_text(struct recovery *recovery)
{
    recovery->text.db = recovery->whole_db = (int)recovery->place.db;
    while (take_next(recovery))
        ;
    forget_transaction(recovery);
}

/* ----------------------------------------------------------------------------------------------------- the file -- */

static bool is_empty(const struct aof_part *part)
{
    char *path = aof_file_path(part->name);
    uint64_t size = 0;
    bool is = file_size_of(path, &size) == STATUS_OK && size == 0;

    mem_free(path);
    return is;
}

/* The increment that the place names: the last one, or the ones behind it are empty, since they were just begun. */
static const struct aof_part *find_part(const struct recovery *recovery, const struct aof_manifest *manifest)
{
    const struct aof_part *found = NULL;

    for (uint32_t i = 0; i < manifest->count; i++) {
        const struct aof_part *part = &manifest->items[i];

        if (part->type != AOF_INCREMENT)
            continue;
        if (part->sequence == recovery->place.file_number)
            found = part;
        else if (found != NULL && !is_empty(part))
            found = NULL;
    }
    return found;
}

/* NULL, or why not. */
static const char *read_file(struct recovery *recovery, const char *path)
{
    uint64_t room = recovery->text.bytes.size + NOTES_BYTES, size;
    size_t got = 0;

    if (file_size_of(path, &recovery->file_bytes) != STATUS_OK ||
        file_open(&recovery->file, path, FILE_READ) != STATUS_OK)
        return strerror(errno);
    if (recovery->file_bytes < recovery->place.file_bytes)
        return "the file is shorter than it was";
    size = MIN(recovery->file_bytes - recovery->place.file_bytes, room);
    if (file_pread(recovery->file, buffer_reserve(&recovery->written, (size_t)size + 1), (size_t)size,
                   recovery->place.file_bytes, &got) != STATUS_OK)
        return strerror(errno);
    recovery->written.size = got;
    file_close(&recovery->file);
    return NULL;
}

/* Lines with the time are between commands, and only in the file. */
static size_t skip_times(const struct recovery *recovery, size_t at, size_t text_at)
{
    const struct buffer *written = &recovery->written, *text = &recovery->text.bytes;
    const struct slice time = SLICE("#TS:");

    if (slice_starts_with(slice_make(text->data + text_at, text->size - text_at), time))
        return at;
    while (slice_starts_with(slice_make(written->data + at, written->size - at), time)) {
        const char *end = memchr(written->data + at, '\n', written->size - at);

        at = end != NULL ? (size_t)(end + 1 - written->data) : written->size;
    }
    return at;
}

/* False: they differ. A line with the time may be where the text has '*' or '#', which begin a command or a note. */
static bool agree(struct recovery *recovery)
{
    const struct buffer *written = &recovery->written;
    const char *text = recovery->text.bytes.data;
    const size_t limit = recovery->has_hole ? recovery->hole_at : recovery->whole_size;
    size_t at = 0, done = 0;

    while (done < limit) {
        if (text[done] == '*' || text[done] == '#')
            at = skip_times(recovery, at, done);
        if (at == written->size)
            break;
        if (written->data[at++] != text[done++])
            return false;
    }
    recovery->agreed = done;
    recovery->written_agreed = at;
    if (!recovery->has_hole || done < limit)
        return true;
    at = skip_times(recovery, at, done);
    return written->size - at <= recovery->torn.size &&
           memcmp(written->data + at, buffer_text(&recovery->torn), written->size - at) == 0;
}

static bool append(struct recovery *recovery, const char *path)
{
    struct file *file = NULL;
    enum status status = file_open(&file, path, FILE_APPEND);

    if (status == STATUS_OK && recovery->has_hole && recovery->written_agreed < recovery->written.size)
        status = file_truncate(file, recovery->place.file_bytes + recovery->written_agreed);
    if (status == STATUS_OK)
        status = file_write_all(file, recovery->text.bytes.data + recovery->agreed,
                                recovery->whole_size - recovery->agreed);
    if (status == STATUS_OK)
        status = file_sync(file);
    if (status != STATUS_OK)
        log_warning("Can't append acknowledged writes of the last run to %s: %s. The server does not start, and keeps "
                    "them in the AOF tail. Remove the cause and start again.",
                    path, strerror(errno));
    file_close(&file);
    return status == STATUS_OK;
}

static void ignore(const char *path, const char *reason)
{
    log_warning("The AOF tail %s is ignored: %s. The other files are loaded.", path, reason);
}

static bool apply(struct recovery *recovery, const char *tail_path, const char *path)
{
    const char *reason = read_file(recovery, path);

    if (reason == NULL && !agree(recovery))
        reason = "the file has something else there";
    if (reason != NULL) {
        ignore(tail_path, reason);
        return true;
    }
    if (recovery->agreed == recovery->whole_size)
        return true;
    if (!append(recovery, path))
        return false;
    log_notice("Appended %zu bytes of acknowledged writes of the last run to %s",
               recovery->whole_size - recovery->agreed, path);
    return true;
}

bool aof_tail_recover(const struct aof_manifest *manifest)
{
    struct recovery recovery = {0};
    const struct aof_part *part;
    char *tail_path = aof_tail_path(), *path = NULL;
    const char *error;
    bool good = true;
    enum status status = journal_tail_open(&recovery.reader, tail_path, &error);

    gate_assert_main_alone();
    if (status == STATUS_OK) {
        recovery.place = *journal_tail_place(recovery.reader);
        part = find_part(&recovery, manifest);
        if (part != NULL) {
            path = aof_file_path(part->name);
            make_text(&recovery);
            good = apply(&recovery, tail_path, path);
        } else {
            ignore(tail_path, "it belongs to a file that is not the last one any more");
        }
    } else if (status != STATUS_NOT_FOUND) {
        ignore(tail_path, error);
    }
    if (good && status != STATUS_NOT_FOUND)
        (void)!file_remove(tail_path);
    journal_tail_close(&recovery.reader);
    file_close(&recovery.file);
    buffer_fini(&recovery.text.bytes);
    buffer_fini(&recovery.written);
    buffer_fini(&recovery.torn);
    mem_free(path);
    mem_free(tail_path);
    return good;
}
