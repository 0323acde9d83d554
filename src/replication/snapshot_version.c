#include "replication/snapshot_version.h"

#include "persist/rdb_format.h"
#include "persist/rdb_write.h"

static int lowest(const struct snapshot_contents *contents)
{
    if (contents->may_have_idmp)
        return RDB_VERSION_IDMP;
    if (contents->has_field_deadlines)
        return RDB_VERSION_FIELD_DEADLINES;
    if (contents->has_libraries || contents->had_streams) /* below it, streams lose their counts */
        return RDB_VERSION_LISTPACKS;
    return RDB_VERSION_WRITTEN_LEAST;
}

struct snapshot_version snapshot_version_choose(const struct rdb_write_options *options, enum snapshot_readers readers,
                                                const struct snapshot_contents *contents)
{
    int version = 0;

    if (options->least == options->most)
        return (struct snapshot_version){options->least, options->most, false};
    switch (readers) {
    case SNAPSHOT_FOR_KEYDB:
        version = RDB_VERSION_WRITTEN_LEAST;
        break;
    case SNAPSHOT_FOR_VALKEY:
        version = RDB_VERSION_VALKEY;
        break;
    case SNAPSHOT_FOR_NEWEST:
        version = contents->may_have_idmp ? RDB_VERSION_IDMP : RDB_VERSION_FIELD_DEADLINES;
        break;
    case SNAPSHOT_FOR_OTHERS:
        version = lowest(contents);
        break;
    }
    return (struct snapshot_version){version, version, readers == SNAPSHOT_FOR_KEYDB};
}
