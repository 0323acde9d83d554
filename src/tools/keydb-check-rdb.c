/* keydb-check-rdb: reads an RDB file completely and shows what it contains, or where it is damaged.
 *
 *     keydb-check-rdb [--keys] FILE
 *
 * --keys lists every key: database, type, bytes in the file, deadline, name. The exit code is 0 if the file is
 * complete, 1 if not, 2 for wrong arguments. */
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/version.h"
#include "persist/rdb_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATABASES_MOST = 1 << 20, SHOWN_BYTES = 200, EXIT_USAGE = 2 };

struct checker {
    struct rdb_handler handler;
    struct rdb_reader *reader;
    bool lists_keys;
    int64_t now_ms;
    unsigned db; /* of the last key; UINT_MAX: there was none */
    uint64_t keys, expires, expired, members, empty, libraries;
    uint64_t type_keys[RDB_TYPE_NUMBERS], type_bytes[RDB_TYPE_NUMBERS];
    struct buffer last; /* name of the last key that was read as a whole */
};

/* Anybody's bytes, on one line. */
static void print_text(struct slice text)
{
    for (size_t i = 0; i < MIN(text.size, (size_t)SHOWN_BYTES); i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (c >= ' ' && c < 127 && c != '\\')
            (void)putchar(c);
        else
            printf("\\x%02x", c);
    }
    if (text.size > SHOWN_BYTES)
        printf("... (%zu bytes)", text.size);
}

static bool take_key(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                     struct rdb_value *value)
{
    struct checker *checker = (struct checker *)handler;

    (void)reader;
    if (!checker->lists_keys && checker->db != key->db)
        printf("[offset %" PRIu64 "] Selecting DB ID %u\n", key->offset, key->db);
    checker->db = key->db;
    checker->keys++;
    checker->expires += key->expire_ms != EXPIRE_NEVER;
    checker->expired += key->expire_ms != EXPIRE_NEVER && key->expire_ms < checker->now_ms;
    checker->members += deadlines_count(&value->members);
    checker->empty += value->is_empty;
    checker->type_keys[key->type]++;
    checker->type_bytes[key->type] += key->bytes;
    buffer_clear(&checker->last);
    buffer_append_slice(&checker->last, key->name);
    if (!checker->lists_keys)
        return true;
    printf("%u\t%s\t%" PRIu64 "\t%" PRId64 "\t", key->db, rdb_type_name(key->type), key->bytes, key->expire_ms);
    print_text(key->name);
    (void)putchar('\n');
    return true;
}

static bool take_library(struct rdb_handler *handler, struct rdb_reader *reader, struct slice source)
{
    (void)reader;
    (void)source;
    ((struct checker *)handler)->libraries++;
    return true;
}

static void take_aux(struct rdb_handler *handler, struct slice name, struct slice value)
{
    const struct checker *checker = (struct checker *)handler;

    if (checker->lists_keys)
        return;
    printf("[offset %" PRIu64 "] AUX FIELD ", rdb_reader_offset(checker->reader));
    print_text(name);
    printf(" = '");
    print_text(value);
    printf("'\n");
}

static void report_types(const struct checker *checker)
{
    for (unsigned type = 0; type < RDB_TYPE_NUMBERS; type++) {
        if (checker->type_keys[type] != 0)
            printf("[info] %" PRIu64 " x %s, %" PRIu64 " bytes\n", checker->type_keys[type], rdb_type_name(type),
                   checker->type_bytes[type]);
    }
}

static void report(const struct checker *checker, bool good)
{
    const struct rdb_reader *reader = checker->reader;

    if (good) {
        printf("[offset %" PRIu64 "] %s\n", rdb_reader_offset(reader),
               checker->handler.has_checksum ? "Checksum OK" : "The file was saved without a checksum");
        printf("[offset %" PRIu64 "] \\o/ RDB looks OK! \\o/\n", rdb_reader_offset(reader));
    } else {
        printf("--- RDB ERROR DETECTED ---\n[offset %" PRIu64 "] %s\n", reader->failed_at, reader->error);
        if (checker->keys != 0) {
            printf("[info] last complete key: ");
            print_text(buffer_slice(&checker->last));
            (void)putchar('\n');
        }
    }
    printf("[info] version %d\n", checker->handler.version);
    printf("[info] %" PRIu64 " keys read\n", checker->keys);
    printf("[info] %" PRIu64 " expires\n", checker->expires);
    printf("[info] %" PRIu64 " already expired\n", checker->expired);
    if (checker->members != 0)
        printf("[info] %" PRIu64 " members with a deadline\n", checker->members);
    if (checker->empty != 0)
        printf("[info] %" PRIu64 " empty keys\n", checker->empty);
    if (checker->libraries != 0)
        printf("[info] %" PRIu64 " libraries of functions\n", checker->libraries);
    report_types(checker);
    if (good && rdb_reader_left(reader) != 0)
        printf("[info] %" PRIu64 " bytes follow, as in an append only file\n", rdb_reader_left(reader));
}

static bool check(const char *path, bool lists_keys)
{
    struct checker checker = {
        .handler = {.key = take_key,
                    .library = take_library,
                    .aux = take_aux,
                    .database_count = DATABASES_MOST,
                    .limits = {.hash = {512, 64},
                               .set = {512, 128, 64},
                               .zset = {128, 64},
                               .list = {.fill = -2},
                               .skips_strange = true}},
        .lists_keys = lists_keys,
        .db = UINT_MAX,
        .now_ms = clock_wall_ms(),
    };
    struct rdb_reader reader;
    struct file_source source;
    struct file *file = NULL;
    enum status status = file_open(&file, path, FILE_READ);
    bool good;

    if (status == STATUS_OK)
        status = file_source_init(&source, file);
    if (status != STATUS_OK) {
        fprintf(stderr, "Cannot open file %s: %s\n", path, strerror(errno));
        file_close(&file);
        return false;
    }
    if (!lists_keys)
        printf("[offset 0] Checking RDB file %s\n", path);
    rdb_reader_init(&reader, &source.source);
    checker.reader = &reader;
    good = rdb_read_file(&reader, &checker.handler);
    if (!lists_keys || !good)
        report(&checker, good);
    rdb_reader_fini(&reader);
    buffer_fini(&checker.last);
    file_close(&file);
    return good;
}

int main(int argc, char **argv)
{
    bool lists_keys = argc > 2 && strcmp(argv[1], "--keys") == 0;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("keydb-check-rdb " KEYDB_VERSION);
        return EXIT_SUCCESS;
    }
    if (argc != 2 + lists_keys || argv[argc - 1][0] == '\0' || strcmp(argv[1], "--help") == 0) {
        fprintf(stderr, "Usage: %s [--keys] <rdb-file-name>\n", argv[0]);
        return EXIT_USAGE;
    }
    hash_setup();
    mem_thread_start();
    return check(argv[argc - 1], lists_keys) ? EXIT_SUCCESS : EXIT_FAILURE;
}
