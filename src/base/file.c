#include "base/file.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct file {
    int fd;
    bool is_temp; /* removes itself when closed */
    char *path;
};

/* --- system calls that can be made to fail --- */

static int fail_as(enum fault_how how)
{
    errno = how == FAULT_HOW_ENOSPC ? ENOSPC : how == FAULT_HOW_INTERRUPT ? EINTR : EIO;
    return -1;
}

static int sys_open(const char *path, int flags)
{
    enum fault_how how;

    spinlock_assert_may_sleep();
    if (fault_hit(FAULT_OPEN, &how))
        return fail_as(how);
    return open(path, flags | O_CLOEXEC, 0644);
}

static size_t half(size_t size)
{
    return size < 2 ? size : size / 2;
}

/* Asked before bytes are moved. False: errno is set. May cut *size. */
static bool may_move(unsigned kind, size_t *size)
{
    enum fault_how how;

    spinlock_assert_may_sleep();
    if (!fault_hit(kind, &how))
        return true;
    if (how == FAULT_HOW_SHORT) {
        *size = half(*size);
        return true;
    }
    (void)fail_as(how);
    return false;
}

static int sys_sync(int fd, bool data_only)
{
    enum fault_how how;

    spinlock_assert_may_sleep();
    if (fault_hit(FAULT_SYNC, &how))
        return fail_as(how);
    return data_only ? fdatasync(fd) : fsync(fd);
}

static int sys_rename(const char *from, const char *to)
{
    enum fault_how how;

    spinlock_assert_may_sleep();
    if (fault_hit(FAULT_RENAME, &how))
        return fail_as(how);
    return rename(from, to);
}

static int sys_remove(const char *path)
{
    enum fault_how how;

    spinlock_assert_may_sleep();
    if (fault_hit(FAULT_REMOVE, &how))
        return fail_as(how);
    return unlink(path);
}

static int sys_truncate(int fd, uint64_t size)
{
    enum fault_how how;

    spinlock_assert_may_sleep();
    if (fault_hit(FAULT_TRUNCATE, &how))
        return fail_as(how);
    return ftruncate(fd, (off_t)size);
}

#define RETRY(call)                            \
    ({                                         \
        __typeof__(call) result_;              \
        do                                     \
            result_ = (call);                  \
        while (result_ < 0 && errno == EINTR); \
        result_;                               \
    })

static must_check enum status status_of(int result)
{
    return result >= 0 ? STATUS_OK : status_from_errno(errno);
}

/* --- files --- */

static must_check enum status open_as(struct file **file, const char *path, int flags, bool is_temp)
{
    int fd = RETRY(sys_open(path, flags));

    *file = NULL;
    if (fd < 0)
        return status_from_errno(errno);
    *file = mem_alloc(sizeof(**file));
    **file = (struct file){.fd = fd, .is_temp = is_temp, .path = mem_copy_text(path)};
    return STATUS_OK;
}

enum status file_open(struct file **file, const char *path, enum file_mode mode)
{
    static const int flags[] = {
        [FILE_READ] = O_RDONLY,
        [FILE_APPEND] = O_WRONLY | O_APPEND | O_CREAT,
        [FILE_REPLACE] = O_RDWR | O_TRUNC | O_CREAT,
    };

    return open_as(file, path, flags[mode], false);
}

enum status file_create_temp(struct file **file, const char *path)
{
    static _Atomic unsigned count;
    char temp_path[PATH_MAX];
    unsigned number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);

    if (snprintf(temp_path, sizeof(temp_path), "%s.tmp-%d-%u", path, (int)getpid(), number) >= (int)sizeof(temp_path)) {
        *file = NULL;
        errno = ENAMETOOLONG;
        return STATUS_INVALID;
    }
    return file_create_temp_named(file, temp_path);
}

enum status file_create_temp_named(struct file **file, const char *temp_path)
{
    return open_as(file, temp_path, O_RDWR | O_CREAT | O_EXCL, true);
}

void file_full_path(char path[FILE_PATH_SPACE], const char *name)
{
    char folder[FILE_PATH_SPACE / 2];

    if (getcwd(folder, sizeof(folder)) == NULL)
        (void)snprintf(folder, sizeof(folder), ".");
    (void)snprintf(path, FILE_PATH_SPACE, "%s/%s", folder, name);
}

enum status file_name(struct file *file, const char *path)
{
    enum status status = file_rename(file->path, path);

    if (status != STATUS_OK)
        return status;
    file->is_temp = false;
    mem_free(file->path);
    file->path = mem_copy_text(path);
    return STATUS_OK;
}

enum status file_commit(struct file *file, const char *path)
{
    enum status status = file_sync(file);

    if (status == STATUS_OK)
        status = file_name(file, path);
    return status == STATUS_OK ? file_sync_folder(path) : status;
}

void file_close(struct file **file)
{
    struct file *gone = *file;
    int error = errno;

    *file = NULL;
    if (gone == NULL)
        return;
    spinlock_assert_may_sleep();
    if (gone->is_temp && sys_remove(gone->path) != 0)
        errno = error; /* it stays behind, under a name that is never read */
    close(gone->fd);   /* everything necessary was synced: an error here does not matter */
    mem_free(gone->path);
    mem_free(gone);
    errno = error;
}

enum status file_write_all(struct file *file, const void *data, size_t size)
{
    const char *from = data;

    while (size > 0) {
        size_t now = size;
        ssize_t got = RETRY(may_move(FAULT_WRITE, &now) ? write(file->fd, from, now) : -1);

        if (got < 0)
            return status_from_errno(errno);
        from += got;
        size -= (size_t)got;
    }
    return STATUS_OK;
}

static ssize_t sys_writev(int fd, const struct iovec *parts, int count)
{
    size_t size = parts[0].iov_len;

    if (!may_move(FAULT_WRITE, &size))
        return -1;
    if (size < parts[0].iov_len)
        return write(fd, parts[0].iov_base, size);
    return writev(fd, parts, MIN(count, IOV_MAX));
}

enum status file_writev_all(struct file *file, struct iovec *parts, int count)
{
    while (count > 0) {
        size_t moved;
        ssize_t got;

        if (parts[0].iov_len == 0) {
            parts++;
            count--;
            continue;
        }
        got = RETRY(sys_writev(file->fd, parts, count));
        if (got < 0)
            return status_from_errno(errno);
        for (moved = (size_t)got; count > 0 && moved >= parts[0].iov_len; parts++, count--)
            moved -= parts[0].iov_len;
        if (moved > 0) {
            parts[0].iov_base = (char *)parts[0].iov_base + moved;
            parts[0].iov_len -= moved;
        }
    }
    return STATUS_OK;
}

/* With NO_OFFSET from the file's own position. */
#define NO_OFFSET UINT64_MAX

static ssize_t sys_read(int fd, void *to, size_t size, uint64_t offset)
{
    if (!may_move(FAULT_READ, &size))
        return -1;
    return offset == NO_OFFSET ? read(fd, to, size) : pread(fd, to, size, (off_t)offset);
}

static must_check enum status read_until(struct file *file, void *data, size_t size, uint64_t offset, size_t *got)
{
    *got = 0;
    while (*got < size) {
        uint64_t place = offset == NO_OFFSET ? NO_OFFSET : offset + *got;
        ssize_t now = RETRY(sys_read(file->fd, (char *)data + *got, size - *got, place));

        if (now < 0)
            return status_from_errno(errno);
        if (now == 0)
            break;
        *got += (size_t)now;
    }
    return STATUS_OK;
}

enum status file_read(struct file *file, void *data, size_t size, size_t *got)
{
    return read_until(file, data, size, NO_OFFSET, got);
}

enum status file_pread(struct file *file, void *data, size_t size, uint64_t offset, size_t *got)
{
    return read_until(file, data, size, offset, got);
}

bool file_pread_cached(struct file *file, void *data, size_t size, uint64_t offset)
{
    char *to = data;
    enum fault_how how;

    if (fault_hit(FAULT_CACHE, &how))
        return false;
    while (size > 0) {
        struct iovec room = {to, size};
        ssize_t got = RETRY(preadv2(file->fd, &room, 1, (off_t)offset, RWF_NOWAIT));

        if (got <= 0)
            return false;
        to += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return true;
}

enum status file_pwrite_all(struct file *file, const void *data, size_t size, uint64_t offset)
{
    const char *from = data;

    while (size > 0) {
        size_t now = size;
        ssize_t got = RETRY(may_move(FAULT_WRITE, &now) ? pwrite(file->fd, from, now, (off_t)offset) : -1);

        if (got < 0)
            return status_from_errno(errno);
        from += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return STATUS_OK;
}

enum status file_seek(struct file *file, uint64_t offset)
{
    return lseek(file->fd, (off_t)offset, SEEK_SET) < 0 ? status_from_errno(errno) : STATUS_OK;
}

enum status file_sync(struct file *file)
{
    return status_of(RETRY(sys_sync(file->fd, true)));
}

void file_start_writeback(struct file *file, uint64_t offset, uint64_t size)
{
    (void)sync_file_range(file->fd, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE); /* a hint */
}

void file_drop_cache(struct file *file, uint64_t offset, uint64_t size)
{
    (void)posix_fadvise(file->fd, (off_t)offset, (off_t)size, POSIX_FADV_DONTNEED); /* a hint */
}

enum status file_size(struct file *file, uint64_t *size)
{
    struct stat info;

    if (fstat(file->fd, &info) != 0)
        return status_from_errno(errno);
    *size = (uint64_t)info.st_size;
    return STATUS_OK;
}

enum status file_truncate(struct file *file, uint64_t size)
{
    return status_of(RETRY(sys_truncate(file->fd, size)));
}

const char *file_path(const struct file *file)
{
    return file->path;
}

int file_descriptor(const struct file *file)
{
    return file->fd;
}

/* --- by path --- */

enum status file_rename(const char *from, const char *to)
{
    return status_of(RETRY(sys_rename(from, to)));
}

enum status file_remove(const char *path)
{
    return status_of(RETRY(sys_remove(path)));
}

static must_check enum status folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - path);

    if (size >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return STATUS_INVALID;
    }
    memcpy(folder, path, size);
    folder[size] = '\0';
    if (size == 0)
        strcpy(folder, slash == NULL ? "." : "/");
    return STATUS_OK;
}

enum status file_sync_folder(const char *path)
{
    char folder[PATH_MAX];
    enum status status = folder_of(path, folder);
    int fd;
    int result;
    int error;

    if (status != STATUS_OK)
        return status;
    fd = RETRY(sys_open(folder, O_RDONLY | O_DIRECTORY));
    if (fd < 0)
        return status_from_errno(errno);
    result = RETRY(sys_sync(fd, false));
    error = errno;
    close(fd);
    errno = error;
    if (result != 0 && errno == EINVAL)
        result = 0; /* a file system whose folders cannot be synced */
    return status_of(result);
}

enum status file_make_folder(const char *path)
{
    struct stat info;

    if (mkdir(path, 0755) == 0)
        return STATUS_OK;
    if (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return STATUS_OK;
    return status_from_errno(errno);
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

enum status file_size_of(const char *path, uint64_t *size)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return status_from_errno(errno);
    *size = (uint64_t)info.st_size;
    return STATUS_OK;
}

enum status file_load(const char *path, size_t limit, char **data, size_t *size)
{
    struct file *file = NULL;
    struct buffer buffer = {0};
    enum status status = file_open(&file, path, FILE_READ);

    *data = NULL;
    while (status == STATUS_OK) {
        size_t step = 16 * 1024;
        size_t got;

        status = file_read(file, buffer_reserve(&buffer, step), step, &got);
        if (status != STATUS_OK || got == 0)
            break;
        buffer.size += got;
        if (buffer.size > limit) {
            errno = EFBIG;
            status = STATUS_FULL;
        }
    }
    if (status == STATUS_OK)
        *data = buffer_take(&buffer, size);
    buffer_fini(&buffer);
    file_close(&file);
    return status;
}

/* A file that replaces another one gets its mode and, as far as permitted, its owner and group. If the group cannot be
 * kept, the new group gets no rights. */
static must_check enum status inherit_rights(const struct file *file, const char *path)
{
    struct stat old, made;
    mode_t mode;

    if (stat(path, &old) != 0 || !S_ISREG(old.st_mode))
        return STATUS_OK;
    if (fchown(file->fd, old.st_uid, old.st_gid) != 0)
        status_ignore(fchown(file->fd, (uid_t)-1, old.st_gid), "not ours to give away: the mode makes up for it");
    if (fstat(file->fd, &made) != 0)
        return status_from_errno(errno);
    mode = old.st_mode & 0777;
    if (made.st_gid != old.st_gid)
        mode &= ~(mode_t)(S_IRWXG & ~(mode << 3)); /* no more than others have */
    return status_of(fchmod(file->fd, mode));
}

enum status file_store(const char *path, struct slice data)
{
    struct file *file = NULL;
    enum status status = file_create_temp(&file, path);

    if (status == STATUS_OK)
        status = inherit_rights(file, path);
    if (status == STATUS_OK)
        status = file_write_all(file, data.data, data.size);
    if (status == STATUS_OK)
        status = file_commit(file, path);
    file_close(&file);
    return status;
}
