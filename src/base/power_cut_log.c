#include "base/power_cut_log.h"

#include "base/fault.h"
#include "base/number.h"
#include "base/slice.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool power_cut_log_is_on;           /* global: see the header */
static char journal_path[PATH_MAX]; /* global: const after start; the environment's memory becomes the process' title */
static _Atomic uint64_t last_id;    /* atomic: relaxed; a child goes on with its own number */

static void PRINTF_LIKE(1, 2) put_line(const char *format, ...)
{
    char line[4 * PATH_MAX];
    int error = errno, size, fd;
    va_list arguments;

    va_start(arguments, format);
    size = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    fd = open(journal_path, O_WRONLY | O_APPEND | O_CLOEXEC); /* a child has none of its parent's descriptors */
    if (fd < 0 || size <= 0 || size >= (int)sizeof(line) || write(fd, line, (size_t)size) != size)
        abort(); /* a test would draw wrong conclusions */
    close(fd);
    errno = error;
}

static uint64_t next_id(void)
{
    return (uint64_t)getpid() << 32 | (atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1);
}

static uint64_t inode_of(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* From the root on. */
static const char *whole(const char *path, char room[PATH_MAX])
{
    char here[PATH_MAX];

    if (path[0] == '/' || getcwd(here, sizeof(here)) == NULL ||
        snprintf(room, PATH_MAX, "%s/%s", here, path) >= PATH_MAX)
        return path;
    return room;
}

/* A second name for `path`; "-": there is no such file. */
static const char *save(const char *path, uint64_t id, char room[PATH_MAX])
{
    char name[PATH_MAX];

    if (snprintf(room, PATH_MAX, "%s.saved-%" PRIu64, whole(path, name), id) >= PATH_MAX || link(path, room) != 0)
        return "-";
    return room;
}

void power_cut_log_opened(int fd, const char *path, bool was_there)
{
    char room[PATH_MAX];
    struct stat info;

    if (fstat(fd, &info) != 0)
        return;
    if (was_there)
        put_line("O %" PRIu64 " %" PRIu64 " %s\n", (uint64_t)info.st_ino, (uint64_t)info.st_size, whole(path, room));
    else
        put_line("C %" PRIu64 " %s\n", (uint64_t)info.st_ino, whole(path, room));
}

static void put_bytes(char what, int fd, uint64_t bytes)
{
    struct stat info;

    if (fstat(fd, &info) == 0)
        put_line("%c %" PRIu64 " %" PRIu64 "\n", what, (uint64_t)info.st_ino, bytes);
}

void power_cut_log_synced(int fd, uint64_t bytes)
{
    put_bytes('S', fd, bytes);
}

void power_cut_log_truncated(int fd, uint64_t bytes)
{
    put_bytes('T', fd, bytes);
}

static int done(uint64_t id, int result)
{
    if (result == 0)
        put_line("D %" PRIu64 "\n", id);
    return result;
}

int power_cut_log_rename(const char *from, const char *to)
{
    char saved[PATH_MAX], from_room[PATH_MAX], to_room[PATH_MAX];
    uint64_t id = next_id();

    put_line("R %" PRIu64 " %" PRIu64 " %s %s %s\n", id, inode_of(from), save(to, id, saved), whole(from, from_room),
             whole(to, to_room));
    return done(id, rename(from, to));
}

int power_cut_log_remove(const char *path)
{
    char saved[PATH_MAX], room[PATH_MAX];
    uint64_t id = next_id();

    put_line("U %" PRIu64 " %" PRIu64 " %s %s\n", id, inode_of(path), save(path, id, saved), whole(path, room));
    return done(id, unlink(path));
}

uint64_t power_cut_log_folder_begin(const char *folder)
{
    char room[PATH_MAX];
    uint64_t id = next_id();

    put_line("f %" PRIu64 " %s\n", id, whole(folder, room));
    return id;
}

void power_cut_log_folder_synced(uint64_t id)
{
    put_line("F %" PRIu64 "\n", id);
}

/* ------------------------------------------------------------------------------------------------------- faults -- */

static const struct {
    const char *name;
    unsigned kind;
} kinds[] = {
    {"open", FAULT_OPEN},     {"read", FAULT_READ},     {"write", FAULT_WRITE},       {"sync", FAULT_SYNC},
    {"rename", FAULT_RENAME}, {"remove", FAULT_REMOVE}, {"truncate", FAULT_TRUNCATE},
};

static const char *const hows[] = {
    [FAULT_HOW_EIO] = "eio",   [FAULT_HOW_ENOSPC] = "enospc",       [FAULT_HOW_SHORT] = "short",
    [FAULT_HOW_TORN] = "torn", [FAULT_HOW_INTERRUPT] = "interrupt",
};

/* KIND:NUMBER[:HOW] */
static bool order_fault(const char *order)
{
    const char *number = strchr(order, ':'), *how = number != NULL ? strchr(number + 1, ':') : NULL;
    uint64_t nth;
    size_t kind = 0, way = 0;

    if (number == NULL)
        return false;
    while (kind < countof(kinds) && !slice_equal_text(slice_make(order, (size_t)(number - order)), kinds[kind].name))
        kind++;
    while (how != NULL && way < countof(hows) && strcmp(how + 1, hows[way]) != 0)
        way++;
    number++;
    return kind < countof(kinds) && way < countof(hows) &&
           number_parse_u64(slice_make(number, how != NULL ? (size_t)(how - number) : strlen(number)), &nth) &&
           fault_order(kinds[kind].kind, nth, (enum fault_how)way, order);
}

void power_cut_log_setup(void)
{
    const char *path = getenv("KEYDB_FILE_JOURNAL"), *fault = getenv("KEYDB_FAULT");

    thread_assert_only();
    if (path != NULL) {
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

        (void)snprintf(journal_path, sizeof(journal_path), "%s", path);
        power_cut_log_is_on = fd >= 0;
        if (!power_cut_log_is_on)
            (void)fprintf(stderr, "Can't write KEYDB_FILE_JOURNAL %s: %s\n", path, strerror(errno));
        else
            close(fd);
    }
    if (fault != NULL && !order_fault(fault))
        (void)fprintf(stderr, "KEYDB_FAULT %s is no fault\n", fault);
}
