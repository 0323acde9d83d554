#include "server/rdb_options.h"

#include "base/rows.h"
#include "server/config.h"

static _Atomic int64_t version, compresses; /* global: option storage */

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

static const struct option_row rows[] = {
    ROW_ENUM("rdb-version", &version, 0, versions, OPTION_MUTABLE,
             "version of RDB files and DUMP payloads; auto: the lowest that holds the data"),
    ROW_BOOL("rdbcompression", &compresses, 1, OPTION_MUTABLE, "compress texts in RDB files and DUMP payloads"),
};

void rdb_options_setup(void)
{
    config_add_rows(rows, countof(rows));
}
