#include "base/power_cut_record.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 16 * 1024 };

static char watched[PATH_MAX]; /* these: const while calls are recorded */
static char record[PATH_MAX];
static _Atomic uint32_t last_count; /* atomic: relaxed; a child's numbers differ by its pid */

void *power_cut_hidden(_Atomic(void *) *known, const char *name)
{
    void *function = atomic_load_explicit(known, memory_order_relaxed);

    if (function == NULL) {
        function = dlsym(RTLD_NEXT, name);
        if (function == NULL)
            power_cut_give_up("find", name);
        atomic_store_explicit(known, function, memory_order_relaxed);
    }
    return function;
}

void power_cut_give_up(const char *what, const char *path)
{
    (void)fprintf(stderr, "power cut: can't %s %s: %s\n", what, path, strerror(errno));
    abort();
}

void power_cut_choose(const char *folder)
{
    if (realpath(folder, watched) == NULL ||
        snprintf(record, sizeof(record), "%s.power_cut", watched) >= (int)sizeof(record))
        power_cut_give_up("find", folder);
}

void power_cut_create(void)
{
    char log[PATH_MAX];
    int fd;

    if (access(record, F_OK) == 0)
        power_cut_remove_folder(record);
    power_cut_join_path(log, record, "log");
    if (REAL(mkdir)(record, 0755) != 0 || (fd = REAL(openat)(AT_FDCWD, log, O_WRONLY | O_CREAT, 0644)) < 0)
        power_cut_give_up("create", log);
    (void)close(fd);
}

const char *power_cut_watched(void)
{
    return watched;
}

const char *power_cut_record(void)
{
    return record;
}

/* --------------------------------------------------------------------------------------------------------- lines -- */

uint64_t power_cut_number(void)
{
    return (uint64_t)getpid() << 32 | (atomic_fetch_add_explicit(&last_count, 1, memory_order_relaxed) + 1);
}

void power_cut_kept_path(char path[PATH_MAX], uint64_t number)
{
    char name[24];

    (void)snprintf(name, sizeof(name), "%" PRIu64, number);
    power_cut_join_path(path, record, name);
}

/* Opens the log for each line, because a child may have closed all its descriptors. */
void power_cut_put(const struct power_cut_line *line)
{
    char text[2 * PATH_MAX + 100], log[PATH_MAX];
    const char *path = line->path != NULL ? line->path : "", *to = line->to != NULL ? line->to : "";
    int size = snprintf(text, sizeof(text), "%c\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%s\n",
                        line->kind, line->number, line->inode, line->first, line->second, path, to);
    int fd;

    power_cut_join_path(log, record, "log");
    if (strpbrk(path, "\t\n") != NULL || strpbrk(to, "\t\n") != NULL)
        power_cut_give_up("record", path);
    fd = REAL(openat)(AT_FDCWD, log, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || REAL(write)(fd, text, (size_t)size) != size)
        power_cut_give_up("write", log);
    (void)close(fd);
}

char *power_cut_load(void)
{
    char path[PATH_MAX], *log;
    struct stat info;
    int fd;

    power_cut_join_path(path, record, "log");
    fd = REAL(openat)(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0)
        power_cut_give_up("read", path);
    log = malloc((size_t)info.st_size + 1);
    if (log == NULL || read(fd, log, (size_t)info.st_size) != info.st_size)
        power_cut_give_up("read", path);
    log[info.st_size] = '\0';
    (void)close(fd);
    return log;
}

/* A line without an end was being written when the program was killed. */
uint64_t power_cut_each(char *log, power_cut_line_fn *fn, void *context)
{
    uint64_t count = 0;

    for (char *at = log, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        struct power_cut_line line;
        char *tab = NULL;
        int size = 0;

        *end = '\0';
        if (sscanf(at, "%c\t%" SCNu64 "\t%" SCNu64 "\t%" SCNu64 "\t%" SCNu64 "%n", &line.kind, &line.number,
                   &line.inode, &line.first, &line.second, &size) == 5 &&
            at[size] == '\t')
            tab = strchr(at + size + 1, '\t');
        if (tab == NULL)
            power_cut_give_up("understand", at);
        *tab = '\0';
        line.path = at + size + 1;
        line.to = tab + 1;
        count++;
        if (fn != NULL)
            fn(&line, count, context);
    }
    return count;
}

/* --------------------------------------------------------------------------------------------------------- files -- */

void power_cut_join_path(char path[PATH_MAX], const char *folder, const char *name)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
        power_cut_give_up("name", name);
}

void power_cut_copy(const char *from, off_t from_offset, const char *to, off_t to_offset, off_t bytes)
{
    char block[COPY_BYTES];
    int in = REAL(openat)(AT_FDCWD, from, O_RDONLY | O_CLOEXEC);
    int out = REAL(openat)(AT_FDCWD, to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ssize_t size;

    if (in < 0 || out < 0)
        power_cut_give_up("copy", from);
    while (bytes > 0 && (size = pread(in, block, (size_t)MIN(bytes, (off_t)sizeof(block)), from_offset)) != 0) {
        if (size < 0 || REAL(pwrite)(out, block, (size_t)size, to_offset) != size)
            power_cut_give_up("copy", from);
        from_offset += size;
        to_offset += size;
        bytes -= size;
    }
    (void)close(in);
    (void)close(out);
}

void power_cut_walk(const char *folder, power_cut_walk_fn *fn, void *context)
{
    DIR *list = opendir(folder);
    struct stat info;

    if (list == NULL)
        power_cut_give_up("list", folder);
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char path[PATH_MAX];

        power_cut_join_path(path, folder, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || lstat(path, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode))
            power_cut_walk(path, fn, context);
        fn(path, &info, context);
    }
    (void)closedir(list);
}

static void remove_one(const char *path, const struct stat *info, void *context)
{
    (void)context;
    if (REAL(unlinkat)(AT_FDCWD, path, S_ISDIR(info->st_mode) ? AT_REMOVEDIR : 0) != 0)
        power_cut_give_up("remove", path);
}

void power_cut_remove_folder(const char *path)
{
    power_cut_walk(path, remove_one, NULL);
    if (rmdir(path) != 0)
        power_cut_give_up("remove", path);
}
