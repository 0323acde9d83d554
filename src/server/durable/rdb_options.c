#include "server/durable/rdb_options.h"

#include "base/rows.h"
#include "server/config/config.h"

static _Atomic int64_t version, compresses, checksums, writes_back, stops_writes; /* global: option storage */
static _Atomic int64_t save_delay_us, load_delay_us; /* global: option storage */
static struct option_string file_name; /* global: option storage; never NULL */

static const struct option_enum versions[] = {
    {"auto", 0}, {"9", 9}, {"10", 10}, {"11", 11}, {"12", 12}, {NULL, 0},
};

struct rdb_write_options rdb_payload_options(void)
{
    int wanted = (int)OPTION_GET(version);

    return (struct rdb_write_options){.least = wanted != 0 ? wanted : RDB_VERSION_WRITTEN_LEAST,
                                      .most = wanted != 0 ? wanted : RDB_VERSION_MOST,
                                      .compresses = OPTION_IS(compresses)};
}

struct rdb_write_options rdb_file_options(void)
{
    struct rdb_write_options options = rdb_payload_options();

    options.checksums = OPTION_IS(checksums);
    return options;
}

const char *rdb_file_name(void)
{
    return file_name.data;
}

bool rdb_starts_writeback(void)
{
    return OPTION_IS(writes_back);
}

bool rdb_stops_writes(void)
{
    return OPTION_IS(stops_writes);
}

int64_t rdb_save_delay_us(void)
{
    return OPTION_GET(save_delay_us);
}

int64_t rdb_load_delay_us(void)
{
    return OPTION_GET(load_delay_us);
}

static const char *check_name(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    if (text.size == 0)
        return "dbfilename can't be empty";
    return memchr(text.data, '/', text.size) == NULL ? NULL : "dbfilename can't be a path, just a filename";
}

static const struct option_row rows[] = {
    ROW_ENUM("rdb-version", &version, 0, versions, OPTION_MUTABLE,
             "version of RDB files and DUMP payloads; auto: the lowest that holds the data"),
    ROW_BOOL("rdbcompression", &compresses, 1, OPTION_MUTABLE, "compress texts in RDB files and DUMP payloads"),
    ROW_BOOL("rdbchecksum", &checksums, 1, OPTION_IMMUTABLE, "RDB files have a checksum, which is looked at"),
    ROW_BOOL("rdb-save-incremental-fsync", &writes_back, 1, OPTION_MUTABLE,
             "RDB files go to the disk while they are written, not all at the end"),
    ROW_BOOL("stop-writes-on-bgsave-error", &stops_writes, 1, OPTION_MUTABLE,
             "refuse writes while snapshots fail"),
    ROW_INT("rdb-key-save-delay", &save_delay_us, 0, INT32_MIN, INT32_MAX, OPTION_MUTABLE | OPTION_HIDDEN,
            "for tests: microseconds after each key"),
    ROW_INT("key-load-delay", &load_delay_us, 0, INT32_MIN, INT32_MAX, OPTION_MUTABLE | OPTION_HIDDEN,
            "likewise, while loading"),
    ROW_STRING("dbfilename", &file_name, "dump.rdb", OPTION_MUTABLE | OPTION_PROTECTED,
               "the RDB file, in the folder `dir`", .check = check_name),
};

void rdb_options_setup(void)
{
    config_add_rows(rows, countof(rows));
}
