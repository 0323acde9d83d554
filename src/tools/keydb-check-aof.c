/* keydb-check-aof: reads an append-only file, or all files of a manifest, and shows what they contain, or where they
 * are damaged.
 *
 *     keydb-check-aof [--fix | --truncate-to-timestamp SECONDS] <FILE.manifest | FILE>
 *
 * --fix cuts the last file off at its first damage, after a question. --truncate-to-timestamp cuts it off where later
 * commands begin (aof-timestamp-enabled). The exit code is 0 if all files are complete, or were repaired, otherwise 1.
 * Lines that scripts look for are those of redis-check-aof; lines that begin with [info] are added. */
#include "base/hash.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/version.h"
#include "persist/aof_manifest.h"
#include "persist/aof_read.h"
#include "persist/rdb_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATABASES_MOST = 1 << 20, PATH_BYTES = 4096 };

enum wish { WISH_LOOK, WISH_FIX, WISH_CUT_AT_TIME };

/* The request and its progress, over all files. */
struct check {
    enum wish wish;
    int64_t until_s;     /* WISH_CUT_AT_TIME */
    uint64_t line_count; /* of the commands read so far */
};

struct checked_file {
    struct check *check;
    const char *path;
    const char *name;
    bool is_last;
    uint64_t size;
    uint64_t good_bytes; /* up to there all is whole */
    uint64_t good_lines;
    uint64_t cut_at; /* WISH_CUT_AT_TIME: where later commands begin */
    bool is_late;    /* there is something */
    uint64_t commands, transactions, notes, rdb_keys;
};

/* ---------------------------------------------------------------------------------------------------------- RDB -- */

struct rdb_check {
    struct rdb_handler handler;
    struct rdb_reader *reader;
    uint64_t keys, expires, libraries;
};

static bool take_key(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                     struct rdb_value *value)
{
    struct rdb_check *check = (struct rdb_check *)handler;

    (void)reader;
    (void)value;
    check->keys++;
    check->expires += key->expire_ms != EXPIRE_NEVER;
    return true;
}

static bool take_library(struct rdb_handler *handler, struct rdb_reader *reader, struct slice source)
{
    (void)reader;
    (void)source;
    ((struct rdb_check *)handler)->libraries++;
    return true;
}

static void take_aux(struct rdb_handler *handler, struct slice name, struct slice value)
{
    const struct rdb_check *check = (struct rdb_check *)handler;

    printf("[offset %" PRIu64 "] AUX FIELD ", rdb_reader_offset(check->reader));
    for (size_t i = 0; i < name.size + value.size; i++) {
        char c = i < name.size ? name.data[i] : value.data[i - name.size];

        printf("%s%c", i == name.size ? " = '" : "", c >= ' ' && c < 127 ? c : '?');
    }
    printf("'\n");
}

/* Checks the RDB at the begin of the file. *size: its size. */
static bool check_rdb(struct checked_file *file, struct file_source *source, uint64_t *size)
{
    struct rdb_check check = {
        .handler = {.key = take_key,
                    .library = take_library,
                    .aux = take_aux,
                    .database_count = DATABASES_MOST,
                    .limits = {.hash = {512, 64},
                               .set = {512, 128, 64},
                               .zset = {128, 64},
                               .list = {.fill = -2},
                               .skips_strange = true}},
    };
    struct rdb_reader reader;
    bool good;

    printf("[offset 0] Checking RDB file %s\n", file->name);
    rdb_reader_init(&reader, &source->source);
    reader.sums = true;
    check.reader = &reader;
    good = rdb_read_file(&reader, &check.handler);
    *size = rdb_reader_offset(&reader);
    if (good)
        printf("[offset %" PRIu64 "] Checksum OK\n[offset %" PRIu64 "] \\o/ RDB looks OK! \\o/\n", *size, *size);
    else
        printf("--- RDB ERROR DETECTED ---\n[offset %" PRIu64 "] %s\n", reader.failed_at, reader.error);
    printf("[info] version %d\n[info] %" PRIu64 " keys read\n[info] %" PRIu64 " expires\n", check.handler.version,
           check.keys, check.expires);
    if (check.libraries != 0)
        printf("[info] %" PRIu64 " libraries of functions\n", check.libraries);
    rdb_reader_fini(&reader);
    file->rdb_keys = check.keys;
    puts(good ? "RDB preamble is OK, proceeding with AOF tail..." : "RDB preamble of AOF file is not sane, aborting.");
    return good;
}

/* ----------------------------------------------------------------------------------------------------- commands -- */

static void PRINTF_LIKE(2, 3) complain(uint64_t offset, const char *format, ...)
{
    va_list arguments;

    printf("0x%16" PRIx64 ": ", offset);
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)putchar('\n');
}

/* Returns the next command or other piece. Notes are counted and checked. */
static enum aof_piece next_piece(struct checked_file *file, struct aof_reader *reader, struct aof_command *command)
{
    for (;;) {
        uint64_t offset = aof_reader_offset(reader);
        enum aof_piece piece;
        int64_t seconds;

        aof_reader_forget(reader);
        piece = aof_reader_piece(reader, command);
        if (piece == AOF_MORE && aof_reader_fill(reader, NULL))
            continue;
        if (piece != AOF_NOTE)
            return piece;
        file->notes++;
        file->check->line_count++;
        if (!file->is_late && aof_note_time(reader->note, &seconds) && file->check->wish == WISH_CUT_AT_TIME &&
            seconds > file->check->until_s) {
            file->is_late = true;
            file->cut_at = offset;
        }
    }
}

static void note_good(struct checked_file *file, uint64_t offset)
{
    file->good_bytes = offset;
    file->good_lines = file->check->line_count;
}

/* Why the reading ended; false: something is wrong. */
static bool check_end(struct checked_file *file, struct aof_reader *reader, enum aof_piece piece, bool in_transaction)
{
    uint64_t offset = aof_reader_offset(reader);

    if (piece == AOF_BAD) {
        complain(offset, "%s", reader->error);
        printf("AOF %s format error\n", file->name);
        return false;
    }
    if (reader->status != STATUS_OK) {
        complain(offset, "it cannot be read: %s", strerror(errno));
        return false;
    }
    if (!aof_reader_is_done(reader)) {
        complain(offset, "Expected to read a whole command, got the end of the file");
        if (aof_reader_hides_commands(reader))
            complain(offset, "The claimed argument has whole commands in it: its length is damaged");
        return false;
    }
    if (in_transaction) {
        complain(offset, "Reached EOF before reading EXEC for MULTI");
        return false;
    }
    note_good(file, offset);
    return true;
}

static bool check_commands(struct checked_file *file, struct aof_reader *reader)
{
    struct aof_command command;
    bool in_transaction = false, was_late = false;
    enum aof_piece piece;

    note_good(file, aof_reader_offset(reader));
    while ((piece = next_piece(file, reader, &command)) == AOF_COMMAND) {
        struct slice name = reader->words.items[command.first];
        bool begins = command.count == 1 && slice_equal_text_nocase(name, "multi");
        bool ends = command.count == 1 && slice_equal_text_nocase(name, "exec");

        if (begins == in_transaction && (begins || ends)) {
            complain(aof_reader_offset(reader), "Unexpected %s in AOF %s", begins ? "MULTI" : "EXEC", file->name);
            return false;
        }
        if (file->is_late && !was_late && in_transaction)
            file->cut_at = file->good_bytes; /* all of the transaction is too late */
        was_late = file->is_late;
        file->check->line_count += 1 + 2 * (uint64_t)command.count;
        file->commands += !begins && !ends;
        file->transactions += begins;
        in_transaction = (in_transaction || begins) && !ends;
        if (!in_transaction)
            note_good(file, aof_reader_offset(reader));
    }
    if (file->is_late && !was_late && in_transaction)
        file->cut_at = file->good_bytes;
    return check_end(file, reader, piece, in_transaction);
}

/* ------------------------------------------------------------------------------------------------------- cutting -- */

static bool cut(const struct checked_file *file, uint64_t size)
{
    struct file *writable = NULL;
    enum status status = file_open(&writable, file->path, FILE_APPEND);

    if (status == STATUS_OK)
        status = file_truncate(writable, size);
    if (status == STATUS_OK)
        status = file_sync(writable);
    file_close(&writable);
    if (status != STATUS_OK)
        printf("Failed to truncate AOF %s: %s\n", file->name, strerror(errno));
    return status == STATUS_OK;
}

/* Asks the user: only the answer y continues. */
static bool is_wanted(void)
{
    char answer[8];

    printf("Continue? [y/N]: ");
    (void)fflush(stdout);
    if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    puts("Aborting...");
    return false;
}

static bool cut_at_time(const struct checked_file *file)
{
    const int64_t until_s = file->check->until_s;

    if (!file->is_late) {
        printf("Truncate nothing in AOF %s to timestamp %" PRId64 "\n", file->name, until_s);
        return true;
    }
    if (file->cut_at == 0) {
        printf("AOF %s has nothing before timestamp %" PRId64 ", aborting...\n", file->name, until_s);
        return false;
    }
    if (!file->is_last) {
        printf("Failed to truncate AOF %s to timestamp %" PRId64 " to offset %" PRIu64 " because it is not the last "
               "file.\nIf you insist, please delete all files after this file according to the manifest file and "
               "delete the corresponding records in manifest file manually. Then re-run keydb-check-aof.\n",
               file->path, until_s, file->cut_at);
        return false;
    }
    if (!cut(file, file->cut_at))
        return false;
    printf("Successfully truncated AOF %s to timestamp %" PRId64 "\n", file->name, until_s);
    return true;
}

static bool fix(const struct checked_file *file)
{
    if (file->check->wish != WISH_FIX) {
        printf("AOF %s is not valid. Use the --fix option to try fixing it.\n", file->name);
        return false;
    }
    if (!file->is_last) {
        printf("Failed to truncate AOF %s because it is not the last file\n", file->name);
        return false;
    }
    printf("This will shrink the AOF %s from %" PRIu64 " bytes, with %" PRIu64 " bytes, to %" PRIu64 " bytes\n",
           file->name, file->size, file->size - file->good_bytes, file->good_bytes);
    if (!is_wanted() || !cut(file, file->good_bytes))
        return false;
    printf("Successfully truncated AOF %s\n", file->name);
    return true;
}

/* --------------------------------------------------------------------------------------------------------- files -- */

static bool begins_as_rdb(struct file *file, bool *is_rdb)
{
    char magic[RDB_MAGIC_BYTES];
    size_t got;
    bool good = file_read(file, magic, sizeof(magic), &got) == STATUS_OK && file_seek(file, 0) == STATUS_OK;

    *is_rdb = good && got == sizeof(magic) && rdb_is_magic(magic);
    return good;
}

static bool check_content(struct checked_file *file, struct file *opened, const char *kind)
{
    struct file_source source;
    struct aof_reader reader;
    uint64_t offset = 0;
    bool is_rdb, good;

    if (!begins_as_rdb(opened, &is_rdb) || file_source_init(&source, opened) != STATUS_OK) {
        printf("Cannot read file %s: %s, aborting...\n", file->path, strerror(errno));
        return false;
    }
    if (strcmp(kind, "BASE ") == 0)
        printf("Start to check BASE AOF (%s format).\n", is_rdb ? "RDB" : "RESP");
    if (is_rdb && (!check_rdb(file, &source, &offset) || file_seek(opened, offset) != STATUS_OK))
        return false;
    aof_reader_init(&reader, &source.source, offset);
    good = check_commands(file, &reader);
    aof_reader_fini(&reader);
    if (file->check->wish != WISH_CUT_AT_TIME || !good)
        printf("AOF analyzed: filename=%s, size=%" PRIu64 ", ok_up_to=%" PRIu64 ", ok_up_to_line=%" PRIu64
               ", diff=%" PRIu64 "\n",
               file->name, file->size, file->good_bytes, file->good_lines + 1, file->size - file->good_bytes);
    printf("[info] %s: %" PRIu64 " bytes, %" PRIu64 " keys, %" PRIu64 " commands, %" PRIu64 " transactions, %" PRIu64
           " notes\n",
           file->name, file->size, file->rdb_keys, file->commands, file->transactions, file->notes);
    if (!good)
        return fix(file);
    if (file->check->wish == WISH_CUT_AT_TIME) {
        if (!cut_at_time(file))
            return false;
        if (file->is_late)
            return true;
    }
    printf("%sAOF %s is valid\n", kind, file->name);
    return true;
}

/* `kind`: what its lines begin with. */
static bool check_file(struct check *check, const char *path, const char *name, const char *kind, bool is_last)
{
    struct checked_file file = {.check = check, .path = path, .name = name, .is_last = is_last};
    struct file *opened = NULL;
    enum status status = file_open(&opened, path, FILE_READ);
    bool good = false;

    if (status == STATUS_OK)
        status = file_size(opened, &file.size);
    if (status != STATUS_OK) {
        printf("Cannot open file %s: %s%s\n", path, strerror(errno), kind[0] != '\0' ? ", aborting..." : "");
    } else if (file.size == 0) {
        printf("%sAOF %s is empty\n", kind, name);
        good = true;
    } else {
        good = check_content(&file, opened, kind);
    }
    file_close(&opened);
    return good;
}

/* ----------------------------------------------------------------------------------------------------- manifest -- */

static bool check_part(struct check *check, const char *folder, int folder_size, const struct aof_part *part,
                       bool is_last)
{
    char path[PATH_BYTES];

    if (snprintf(path, sizeof(path), "%.*s%s", folder_size, folder, part->name) >= (int)sizeof(path)) {
        printf("Cannot open file %s: its path is too long, aborting...\n", part->name);
        return false;
    }
    return check_file(check, path, part->name, part->type == AOF_BASE ? "BASE " : "INCR ", is_last);
}

static bool check_parts(struct check *check, const char *path, const struct aof_manifest *manifest)
{
    const char *slash = strrchr(path, '/');
    int folder_size = slash != NULL ? (int)(slash + 1 - path) : 0;
    bool told = false;

    for (uint32_t i = 0; i < manifest->count; i++) {
        const struct aof_part *part = &manifest->items[i];

        if (part->type == AOF_HISTORY)
            continue;
        if (part->type == AOF_INCREMENT && !told) {
            puts("Start to check INCR files.");
            told = true;
        }
        if (!check_part(check, path, folder_size, part, i + 1 == manifest->count))
            return false;
    }
    puts("All AOF files and manifest are valid");
    return true;
}

static bool check_manifest(struct check *check, const char *path)
{
    struct aof_manifest_problem problem;
    struct aof_manifest manifest;
    size_t size;
    char *text;
    bool good;

    puts("Start checking Multi Part AOF");
    if (file_load(path, AOF_MANIFEST_BYTES_MOST, &text, &size) != STATUS_OK) {
        printf("Cannot open file %s: %s\n", path, strerror(errno));
        return false;
    }
    good = aof_manifest_parse(&manifest, slice_make(text, size), &problem) == STATUS_OK;
    if (!good)
        printf("*** FATAL AOF MANIFEST FILE ERROR ***\n%s: at line %u: %s\n", path, problem.line, problem.text);
    else
        good = check_parts(check, path, &manifest);
    aof_manifest_fini(&manifest);
    mem_free(text);
    return good;
}

/* By its name, or because its first word is "file". */
static bool is_manifest(const char *path)
{
    size_t length = strlen(path), got = 0;
    struct file *file = NULL;
    char word[5];
    bool is = length > 9 && strcmp(path + length - 9, ".manifest") == 0;

    if (!is && file_open(&file, path, FILE_READ) == STATUS_OK)
        is = file_read(file, word, sizeof(word), &got) == STATUS_OK && got == sizeof(word) &&
             memcmp(word, "file ", sizeof(word)) == 0;
    file_close(&file);
    return is;
}

static bool check_path(struct check *check, const char *path)
{
    if (is_manifest(path))
        return check_manifest(check, path);
    if (file_exists(path))
        puts("Start checking Old-Style AOF");
    return check_file(check, path, path, "", true);
}

int main(int argc, char **argv)
{
    struct check check = {.wish = WISH_LOOK};

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("keydb-check-aof " KEYDB_VERSION);
        return EXIT_SUCCESS;
    }
    if (argc == 3 && strcmp(argv[1], "--fix") == 0) {
        check.wish = WISH_FIX;
    } else if (argc == 4 && strcmp(argv[1], "--truncate-to-timestamp") == 0) {
        check.wish = WISH_CUT_AT_TIME;
        if (!number_parse_i64(slice_from_text(argv[2]), &check.until_s) || check.until_s <= 0) {
            puts("Invalid timestamp, aborting...");
            return EXIT_FAILURE;
        }
    } else if (argc != 2 || strcmp(argv[1], "--help") == 0) {
        printf("Usage: %s [--fix|--truncate-to-timestamp $timestamp] <file.manifest|file.aof>\n", argv[0]);
        return EXIT_FAILURE;
    }
    hash_setup();
    mem_thread_start();
    return check_path(&check, argv[argc - 1]) ? EXIT_SUCCESS : EXIT_FAILURE;
}
