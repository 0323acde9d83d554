/* The crash model keeps, while it is on, two things: for each file that was opened for writing how many bytes of it are
 * known to be on the disk, and a journal of what happened to names since their folder was synced. Files that a rename
 * or a removal would destroy are kept under a second name (a hard link) until the folder is synced, so that
 * fault_crash_apply can put them back. Paths are compared as text: tests spell a path in one way. */
#include "base/file.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/power_cut_log.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/mutex.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    int fd;
    bool is_temp; /* removes itself when closed */
    char *path;
};

/* --- the crash model --- */

enum crash_kind { CRASH_CREATED, CRASH_RENAMED, CRASH_REMOVED };

struct crash_file {
    struct list_node node;
    char *path;
    uint64_t synced_bytes;
};

struct crash_change {
    struct list_node node;
    enum crash_kind kind;
    char *path;           /* the name that came, or went (removed) */
    char *from;           /* RENAMED: the old name */
    char *saved;          /* second name of the file that `path` was before; NULL: there was none */
    uint64_t saved_bytes; /* how much of that one was synced */
};

static bool crash_is_on; /* set while other threads are quiet */
static pthread_mutex_t crash_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list crash_files GUARDED_BY(crash_lock);
static struct list crash_changes GUARDED_BY(crash_lock); /* oldest first */
static unsigned crash_saved_count GUARDED_BY(crash_lock);

static struct crash_file *crash_find_locked(const char *path)
{
    LIST_FOREACH(node, &crash_files) {
        struct crash_file *file = container_of(node, struct crash_file, node);

        if (strcmp(file->path, path) == 0)
            return file;
    }
    return NULL;
}

static void crash_set_synced_locked(const char *path, uint64_t bytes)
{
    struct crash_file *file = crash_find_locked(path);

    if (file == NULL) {
        file = mem_alloc(sizeof(*file));
        *file = (struct crash_file){.path = mem_copy_text(path)};
        list_push_back(&crash_files, &file->node);
    }
    file->synced_bytes = bytes;
}

static void crash_forget_locked(const char *path)
{
    struct crash_file *file = crash_find_locked(path);

    if (file == NULL)
        return;
    list_remove(&file->node);
    mem_free(file->path);
    mem_free(file);
}

static uint64_t length_of(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* Contents from before the model was switched on count as synced. */
static uint64_t crash_synced_locked(const char *path)
{
    const struct crash_file *file = crash_find_locked(path);

    return file != NULL ? file->synced_bytes : length_of(path);
}

static void crash_change_destroy(struct crash_change *change)
{
    list_remove(&change->node);
    mem_free(change->path);
    mem_free(change->from);
    mem_free(change->saved);
    mem_free(change);
}

static struct crash_change *crash_record_locked(enum crash_kind kind, const char *path, const char *from)
{
    struct crash_change *change = mem_alloc_zero(sizeof(*change));

    change->kind = kind;
    change->path = mem_copy_text(path);
    change->from = from == NULL ? NULL : mem_copy_text(from);
    list_push_back(&crash_changes, &change->node);
    return change;
}

/* Called before `path` is destroyed. */
static void crash_save_locked(struct crash_change *change)
{
    char name[PATH_MAX];

    snprintf(name, sizeof(name), "%s.crash-%u", change->path, crash_saved_count++);
    if (link(change->path, name) != 0)
        return; /* it was not there */
    change->saved = mem_copy_text(name);
    change->saved_bytes = crash_synced_locked(change->path);
}

static bool same_folder(const char *a, const char *b)
{
    const char *slash_a = strrchr(a, '/');
    const char *slash_b = strrchr(b, '/');

    if (slash_a == NULL || slash_b == NULL)
        return slash_a == slash_b;
    return slash_a - a == slash_b - b && memcmp(a, b, (size_t)(slash_a - a)) == 0;
}

static void crash_opened(const char *path, bool was_there)
{
    mutex_lock(&crash_lock);
    if (!was_there) {
        crash_record_locked(CRASH_CREATED, path, NULL);
        crash_set_synced_locked(path, 0);
    } else if (crash_find_locked(path) == NULL) {
        crash_set_synced_locked(path, length_of(path));
    }
    mutex_unlock(&crash_lock);
}

static void crash_synced(const char *path, int fd)
{
    struct stat info;

    mutex_lock(&crash_lock);
    if (fstat(fd, &info) == 0)
        crash_set_synced_locked(path, (uint64_t)info.st_size);
    mutex_unlock(&crash_lock);
}

static void crash_truncated(const char *path, uint64_t size)
{
    mutex_lock(&crash_lock);
    crash_set_synced_locked(path, MIN(crash_synced_locked(path), size));
    mutex_unlock(&crash_lock);
}

static void crash_folder_synced(const char *path)
{
    mutex_lock(&crash_lock);
    LIST_FOREACH_SAFE(node, &crash_changes) {
        struct crash_change *change = container_of(node, struct crash_change, node);

        if (!same_folder(change->path, path))
            continue;
        if (change->saved != NULL)
            unlink(change->saved);
        crash_change_destroy(change);
    }
    mutex_unlock(&crash_lock);
}

/* rename and unlink, recorded: the call itself happens under the lock, so that record and fact agree. */
static int crash_rename(const char *from, const char *to)
{
    struct crash_change *change;
    uint64_t synced_bytes;
    int result;

    mutex_lock(&crash_lock);
    change = crash_record_locked(CRASH_RENAMED, to, from);
    crash_save_locked(change);
    synced_bytes = crash_synced_locked(from);
    result = rename(from, to);
    if (result == 0) {
        crash_forget_locked(from);
        crash_set_synced_locked(to, synced_bytes);
    } else {
        int error = errno;

        if (change->saved != NULL)
            unlink(change->saved);
        crash_change_destroy(change);
        errno = error;
    }
    mutex_unlock(&crash_lock);
    return result;
}

static int crash_remove(const char *path)
{
    struct crash_change *change;
    int result;

    mutex_lock(&crash_lock);
    change = crash_record_locked(CRASH_REMOVED, path, NULL);
    crash_save_locked(change);
    result = unlink(path);
    if (result == 0) {
        crash_forget_locked(path);
    } else {
        int error = errno;

        crash_change_destroy(change);
        errno = error;
    }
    mutex_unlock(&crash_lock);
    return result;
}

static void crash_forget_everything_locked(void)
{
    LIST_FOREACH_SAFE(node, &crash_changes) {
        struct crash_change *change = container_of(node, struct crash_change, node);

        if (change->saved != NULL)
            unlink(change->saved);
        crash_change_destroy(change);
    }
    LIST_FOREACH_SAFE(node, &crash_files) {
        struct crash_file *file = container_of(node, struct crash_file, node);

        list_remove(&file->node);
        mem_free(file->path);
        mem_free(file);
    }
}

void file_crash_model(bool on)
{
    mutex_lock(&crash_lock);
    if (crash_is_on)
        crash_forget_everything_locked();
    list_init(&crash_files);
    list_init(&crash_changes);
    crash_is_on = on;
    mutex_unlock(&crash_lock);
}

static void crash_undo_locked(const struct crash_change *change)
{
    if (change->kind == CRASH_CREATED) {
        unlink(change->path);
        crash_forget_locked(change->path);
    } else if (change->kind == CRASH_RENAMED) {
        uint64_t synced_bytes = crash_synced_locked(change->path);

        if (rename(change->path, change->from) == 0)
            crash_set_synced_locked(change->from, synced_bytes);
        crash_forget_locked(change->path);
    }
    if (change->saved != NULL && rename(change->saved, change->path) == 0)
        crash_set_synced_locked(change->path, change->saved_bytes);
}

void fault_crash_apply(void)
{
    mutex_lock(&crash_lock);
    assert(crash_is_on);
    while (!list_is_empty(&crash_changes)) {
        struct crash_change *change = container_of(list_last(&crash_changes), struct crash_change, node);

        crash_undo_locked(change);
        crash_change_destroy(change);
    }
    LIST_FOREACH(node, &crash_files) {
        const struct crash_file *file = container_of(node, struct crash_file, node);

        if (length_of(file->path) > file->synced_bytes && truncate(file->path, (off_t)file->synced_bytes) != 0)
            assert(false);
    }
    crash_forget_everything_locked();
    mutex_unlock(&crash_lock);
}

/* --- system calls that can be made to fail --- */

static int fail_as(enum fault_how how)
{
    errno = how == FAULT_HOW_ENOSPC ? ENOSPC : how == FAULT_HOW_INTERRUPT ? EINTR : EIO;
    return -1;
}

static int sys_open(const char *path, int flags)
{
    enum fault_how how;
    bool was_there = true;
    int fd;

    spinlock_assert_may_sleep();
    if (fault_hit(FAULT_OPEN, &how))
        return fail_as(how);
    if (UNLIKELY(crash_is_on || power_cut_log_is_on))
        was_there = access(path, F_OK) == 0;
    fd = open(path, flags | O_CLOEXEC, 0644);
    if (UNLIKELY(crash_is_on) && fd >= 0 && (flags & O_ACCMODE) != O_RDONLY) {
        crash_opened(path, was_there);
        if ((flags & O_TRUNC) != 0)
            crash_truncated(path, 0);
    }
    if (UNLIKELY(power_cut_log_is_on) && fd >= 0 && (flags & O_ACCMODE) != O_RDONLY)
        power_cut_log_opened(fd, path, was_there);
    return fd;
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
    if (UNLIKELY(power_cut_log_is_on))
        return power_cut_log_rename(from, to);
    return UNLIKELY(crash_is_on) ? crash_rename(from, to) : rename(from, to);
}

static int sys_remove(const char *path)
{
    enum fault_how how;

    spinlock_assert_may_sleep();
    if (fault_hit(FAULT_REMOVE, &how))
        return fail_as(how);
    if (UNLIKELY(power_cut_log_is_on))
        return power_cut_log_remove(path);
    return UNLIKELY(crash_is_on) ? crash_remove(path) : unlink(path);
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

enum status file_commit(struct file *file, const char *path)
{
    enum status status = file_sync(file);

    if (status == STATUS_OK)
        status = file_rename(file->path, path);
    if (status != STATUS_OK)
        return status;
    file->is_temp = false;
    mem_free(file->path);
    file->path = mem_copy_text(path);
    return file_sync_folder(path);
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
    uint64_t bytes = 0;
    enum status status = STATUS_OK;

    if (UNLIKELY(power_cut_log_is_on))
        status = file_size(file, &bytes);
    if (LIKELY(status == STATUS_OK))
        status = status_of(RETRY(sys_sync(file->fd, true)));
    if (UNLIKELY(power_cut_log_is_on) && status == STATUS_OK)
        power_cut_log_synced(file->fd, bytes);
    if (UNLIKELY(crash_is_on) && status == STATUS_OK)
        crash_synced(file->path, file->fd);
    return status;
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
    enum status status = status_of(RETRY(sys_truncate(file->fd, size)));

    if (UNLIKELY(crash_is_on) && status == STATUS_OK)
        crash_truncated(file->path, size);
    if (UNLIKELY(power_cut_log_is_on) && status == STATUS_OK)
        power_cut_log_truncated(file->fd, size);
    return status;
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
    uint64_t journal_id = 0;
    int fd;
    int result;
    int error;

    if (status != STATUS_OK)
        return status;
    if (UNLIKELY(power_cut_log_is_on))
        journal_id = power_cut_log_folder_begin(folder);
    fd = RETRY(sys_open(folder, O_RDONLY | O_DIRECTORY));
    if (fd < 0)
        return status_from_errno(errno);
    result = RETRY(sys_sync(fd, false));
    error = errno;
    close(fd);
    errno = error;
    if (result != 0 && errno == EINVAL)
        result = 0; /* a file system whose folders cannot be synced */
    if (UNLIKELY(crash_is_on) && result == 0)
        crash_folder_synced(path);
    if (UNLIKELY(power_cut_log_is_on) && result == 0)
        power_cut_log_folder_synced(journal_id);
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
