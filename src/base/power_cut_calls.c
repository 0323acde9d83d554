#include "base/power_cut_calls.h"

#include "base/power_cut_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define NO_OFFSET ((off_t)-1)

/* clang-tidy -readability-inconsistent-declaration-parameter-name: the C library names them with underscores */

static bool is_on; /* const while there are other threads */

void power_cut_calls_record(bool on)
{
    is_on = on;
}

/* Each function of libc calls a function begin_* first, which writes the line of the change and returns its number, or
 * 0 if the change is not to be recorded. Afterwards it calls a function end*, which leaves errno as it is. */

static uint64_t begin(struct power_cut_line line)
{
    if (line.number == 0)
        line.number = power_cut_number();
    power_cut_put(&line);
    return line.number;
}

static void end_as(uint64_t number, bool is_done, uint64_t inode)
{
    int error = errno;

    if (number != 0)
        power_cut_put(&(struct power_cut_line){.kind = is_done ? 'D' : 'N', .number = number, .inode = inode});
    errno = error;
}

static void end(uint64_t number, bool is_done)
{
    end_as(number, is_done, 0);
}

static bool is_watched(const char *path)
{
    const size_t size = strlen(power_cut_watched());

    return strncmp(path, power_cut_watched(), size) == 0 && (path[size] == '/' || path[size] == '\0');
}

static void path_of_fd(char path[PATH_MAX], int fd)
{
    (void)snprintf(path, PATH_MAX, "/proc/self/fd/%d", fd);
}

/* Works also for a file whose name is gone. */
static bool is_watched_fd(int fd)
{
    char link_path[PATH_MAX], path[PATH_MAX];
    ssize_t size;

    path_of_fd(link_path, fd);
    size = readlink(link_path, path, sizeof(path) - 1);
    path[MAX(size, 0)] = '\0';
    return is_watched(path);
}

/* --- names --- */

struct name {
    char path[PATH_MAX]; /* absolute */
    uint64_t folder;     /* inode of the folder */
    struct stat info;    /* .st_ino 0: there is no such file */
};

/* False: the name is not in the watched folder, or nothing is recorded. */
static bool find_name(struct name *name, int folder_fd, const char *path)
{
    const char *slash = strrchr(path, '/'), *last = slash != NULL ? slash + 1 : path;
    char folder[PATH_MAX], start[PATH_MAX] = "", real[PATH_MAX];
    struct stat info;

    if (path[0] != '/' && folder_fd != AT_FDCWD)
        path_of_fd(start, folder_fd);
    else if (path[0] != '/')
        strcpy(start, ".");
    if (!is_on || snprintf(folder, sizeof(folder), "%s/%.*s", start, (int)(last - path), path) >= PATH_MAX ||
        realpath(folder, real) == NULL || !is_watched(real) || stat(real, &info) != 0)
        return false;
    name->folder = info.st_ino;
    power_cut_join_path(name->path, real, last);
    if (lstat(name->path, &name->info) != 0)
        name->info.st_ino = 0;
    return true;
}

/* Gives the file that is about to lose its name a second one. Returns the number of the change. */
static uint64_t keep_file(const struct name *name)
{
    const uint64_t number = power_cut_number();
    char kept[PATH_MAX];

    power_cut_kept_path(kept, number);
    if (name->info.st_ino != 0 && REAL(linkat)(AT_FDCWD, name->path, AT_FDCWD, kept, 0) != 0 && errno != ENOENT)
        power_cut_give_up("keep", name->path);
    return number;
}

static uint64_t begin_name(char kind, const struct name *name, uint64_t inode, uint64_t number)
{
    return begin((struct power_cut_line){.kind = kind,
                                         .number = number,
                                         .inode = inode,
                                         .first = name->folder,
                                         .path = name->path});
}

static uint64_t begin_rename(int from_fd, const char *from, int to_fd, const char *to)
{
    struct name old, new;
    const bool is_from_here = find_name(&old, from_fd, from), is_to_here = find_name(&new, to_fd, to);

    if (!is_from_here && !is_to_here)
        return 0;
    if (!is_from_here || !is_to_here)
        power_cut_give_up("follow out of the folder or into it", from);
    return begin((struct power_cut_line){.kind = 'R',
                                         .number = keep_file(&new),
                                         .inode = old.info.st_ino,
                                         .first = old.folder,
                                         .second = new.folder,
                                         .path = old.path,
                                         .to = new.path});
}

/* --- contents --- */

/* Keeps the bytes from `offset` on, which are about to be destroyed. */
static uint64_t begin_content(char kind, const char *path, const struct stat *info, off_t offset, size_t bytes)
{
    const uint64_t number = power_cut_number();
    char kept[PATH_MAX];

    power_cut_kept_path(kept, number);
    power_cut_copy(path, offset, kept, 0, (off_t)bytes);
    return begin((struct power_cut_line){.kind = kind,
                                         .number = number,
                                         .inode = info->st_ino,
                                         .first = (uint64_t)offset,
                                         .second = bytes});
}

static uint64_t begin_cut(const char *path, const struct stat *info, off_t size)
{
    if (!S_ISREG(info->st_mode) || size >= info->st_size)
        return 0;
    return begin_content('T', path, info, size, (size_t)(info->st_size - size));
}

/* With NO_OFFSET the write begins at the file's position. */
static uint64_t begin_write(int fd, off_t offset, size_t bytes)
{
    char path[PATH_MAX];
    struct stat info;
    int flags;

    if (!is_on)
        return 0;
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_APPEND) != 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return 0;
    if (offset == NO_OFFSET)
        offset = lseek(fd, 0, SEEK_CUR);
    if (offset >= info.st_size || !is_watched_fd(fd))
        return 0;
    path_of_fd(path, fd);
    return begin_content('W', path, &info, offset, MIN(bytes, (size_t)(info.st_size - offset)));
}

static size_t size_of(const struct iovec *parts, int count)
{
    size_t size = 0;

    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    return size;
}

static uint64_t begin_sync(int fd)
{
    struct stat info;

    if (!is_on || fstat(fd, &info) != 0 || !(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) || !is_watched_fd(fd))
        return 0;
    return begin((struct power_cut_line){.kind = 'S', .inode = info.st_ino, .first = (uint64_t)info.st_size});
}

/* --- opening --- */

static uint64_t begin_open(int folder_fd, const char *path, int flags)
{
    struct name name;

    if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_TMPFILE) == O_TMPFILE || !find_name(&name, folder_fd, path))
        return 0;
    if (name.info.st_ino == 0)
        return (flags & O_CREAT) != 0 ? begin_name('C', &name, 0, 0) : 0;
    return (flags & O_TRUNC) != 0 ? begin_cut(name.path, &name.info, 0) : 0;
}

static void end_open(uint64_t number, int fd)
{
    int error = errno;
    struct stat info;

    if (fd < 0 || fstat(fd, &info) != 0)
        info.st_ino = 0;
    errno = error;
    end_as(number, info.st_ino != 0, info.st_ino);
}

/* ----------------------------------------------------------------------------------------- the functions of libc -- */

int openat(int folder_fd, const char *path, int flags, ...)
{
    mode_t mode = 0;
    uint64_t number;
    va_list arguments;
    int fd;

    va_start(arguments, flags);
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE)
        mode = va_arg(arguments, mode_t);
    va_end(arguments);
    number = begin_open(folder_fd, path, flags);
    fd = REAL(openat)(folder_fd, path, flags, mode);
    end_open(number, fd);
    return fd;
}

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list arguments;

    va_start(arguments, flags);
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE)
        mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return openat(AT_FDCWD, path, flags, mode);
}

int creat(const char *path, mode_t mode)
{
    return openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    const int access = mode[0] == 'r' && strchr(mode, '+') == NULL ? O_RDONLY : O_RDWR;
    const int creation = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT : 0;
    const uint64_t number = begin_open(AT_FDCWD, path, access | creation);
    FILE *file = REAL(fopen)(path, mode);

    end_open(number, file != NULL ? fileno(file) : -1);
    return file;
}

ssize_t write(int fd, const void *data, size_t size)
{
    const uint64_t number = begin_write(fd, NO_OFFSET, size);
    const ssize_t result = REAL(write)(fd, data, size);

    end(number, result >= 0);
    return result;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    const uint64_t number = begin_write(fd, offset, size);
    const ssize_t result = REAL(pwrite)(fd, data, size, offset);

    end(number, result >= 0);
    return result;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    const uint64_t number = begin_write(fd, NO_OFFSET, size_of(parts, count));
    const ssize_t result = REAL(writev)(fd, parts, count);

    end(number, result >= 0);
    return result;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    const uint64_t number = begin_write(fd, offset, size_of(parts, count));
    const ssize_t result = REAL(pwritev)(fd, parts, count, offset);

    end(number, result >= 0);
    return result;
}

int ftruncate(int fd, off_t size)
{
    uint64_t number = 0;
    char path[PATH_MAX];
    struct stat info;
    int result;

    path_of_fd(path, fd);
    if (is_on && fstat(fd, &info) == 0 && is_watched_fd(fd))
        number = begin_cut(path, &info, size);
    result = REAL(ftruncate)(fd, size);
    end(number, result == 0);
    return result;
}

int truncate(const char *path, off_t size)
{
    struct name name;
    const bool is_here = find_name(&name, AT_FDCWD, path) && name.info.st_ino != 0;
    const uint64_t number = is_here ? begin_cut(name.path, &name.info, size) : 0;
    const int result = REAL(truncate)(path, size);

    end(number, result == 0);
    return result;
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    const uint64_t number = begin_rename(from_fd, from, to_fd, to);
    const int result = REAL(renameat)(from_fd, from, to_fd, to);

    end(number, result == 0);
    return result;
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int folder_fd, const char *path, int flags)
{
    struct name name;
    const bool is_here = (flags & AT_REMOVEDIR) == 0 && find_name(&name, folder_fd, path);
    const uint64_t number = is_here ? begin_name('U', &name, name.info.st_ino, keep_file(&name)) : 0;
    const int result = REAL(unlinkat)(folder_fd, path, flags);

    end(number, result == 0);
    return result;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    struct name old, new;
    const bool is_here = find_name(&new, to_fd, to) && find_name(&old, from_fd, from);
    const uint64_t number = is_here ? begin_name('L', &new, old.info.st_ino, 0) : 0;
    const int result = REAL(linkat)(from_fd, from, to_fd, to, flags);

    end(number, result == 0);
    return result;
}

int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdir(const char *path, mode_t mode)
{
    struct name name;
    const uint64_t number = find_name(&name, AT_FDCWD, path) ? begin_name('M', &name, 0, 0) : 0;
    const int result = REAL(mkdir)(path, mode);

    end(number, result == 0);
    return result;
}

int fsync(int fd)
{
    const uint64_t number = begin_sync(fd);
    const int result = REAL(fsync)(fd);

    end(number, result == 0);
    return result;
}

int fdatasync(int fd)
{
    const uint64_t number = begin_sync(fd);
    const int result = REAL(fdatasync)(fd);

    end(number, result == 0);
    return result;
}

#ifdef __GLIBC__
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder_fd, const char *path, int flags, ...) __attribute__((alias("openat")));
int creat64(const char *path, mode_t mode) __attribute__((alias("creat")));
FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) __attribute__((alias("pwrite")));
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) __attribute__((alias("pwritev")));
int ftruncate64(int fd, off64_t size) __attribute__((alias("ftruncate")));
int truncate64(const char *path, off64_t size) __attribute__((alias("truncate")));
#endif
