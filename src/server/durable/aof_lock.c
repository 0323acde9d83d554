#include "server/durable/aof_lock.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutex.h"
#include "server/durable/aof.h"
#include "server/durable/file_options.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP_MS = 20 };

static struct {
    pthread_mutex_t lock; /* a leaf */
    unsigned users;       /* under the lock, as are the next fields */
    int fd;               /* -1: it could not be locked. Forked children close theirs first of all (child.h) */
    char *path;
} owned = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* The file that is locked may have been removed by its last owner meanwhile: then the lock is worth nothing. */
static bool is_still_there(int fd, const char *path)
{
    struct stat opened, named;

    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

enum attempt { ATTEMPT_LOCKED, ATTEMPT_HELD, ATTEMPT_IMPOSSIBLE };

static enum attempt try(const char *path, int *fd)
{
    int error;

    do {
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (*fd < 0)
            return ATTEMPT_IMPOSSIBLE;
        if (flock(*fd, LOCK_EX | LOCK_NB) == 0) {
            if (is_still_there(*fd, path))
                return ATTEMPT_LOCKED;
            error = 0;
        } else {
            error = errno;
        }
        (void)close(*fd);
        *fd = -1;
    } while (error == 0 || error == EINTR);
    errno = error;
    return error == EWOULDBLOCK ? ATTEMPT_HELD : ATTEMPT_IMPOSSIBLE;
}

static void write_owner(int fd)
{
    char text[24];
    int size = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)size, 0) != size)
        log_verbose("Can't write the process id to the AOF lock file");
}

static void tell_owner(const char *path)
{
    char text[24] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

    if (fd >= 0)
        (void)close(fd);
    text[size > 0 ? size : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    log_warning("The append-only file is in use by another server: process %s holds %s. Two servers would destroy "
                "each other's data. Stop the other one, or give this one another dir, appenddirname or appendfilename.",
                text[0] != '\0' ? text : "(unknown)", path);
}

static char *lock_path(void)
{
    char *folder = aof_folder_path();
    struct buffer path = {0};

    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        log_verbose("Can't create the directory %s: %s", folder, strerror(errno));
    buffer_printf(&path, "%s/.%s.lock", folder, aof_file_name());
    mem_free(folder);
    return buffer_take(&path, &(size_t){0});
}

static bool take_locked(unsigned wait_ms)
{
    char *path = lock_path();
    enum attempt attempt = try(path, &owned.fd);

    for (unsigned waited_ms = 0; attempt == ATTEMPT_HELD && waited_ms < wait_ms; waited_ms += STEP_MS) {
        (void)usleep(STEP_MS * 1000);
        attempt = try(path, &owned.fd);
    }
    if (attempt == ATTEMPT_HELD)
        tell_owner(path);
    else if (attempt == ATTEMPT_IMPOSSIBLE)
        log_verbose("Can't lock the append-only file: %s: %s", path, strerror(errno));
    else
        write_owner(owned.fd);
    assert((attempt == ATTEMPT_LOCKED) == (owned.fd >= 0));
    owned.path = path;
    return attempt != ATTEMPT_HELD;
}

static void drop_locked(void)
{
    if (owned.fd >= 0) {
        (void)unlink(owned.path); /* while it is ours: nobody else's is taken away */
        (void)close(owned.fd);
    }
    owned.fd = -1;
    mem_free(owned.path);
    owned.path = NULL;
}

bool aof_lock_acquire(unsigned wait_ms)
{
    bool good = true;

    mutex_lock(&owned.lock);
    assert(owned.users != 0 || (owned.path == NULL && owned.fd < 0));
    if (owned.users == 0)
        good = take_locked(wait_ms);
    if (good)
        owned.users++;
    else
        drop_locked();
    mutex_unlock(&owned.lock);
    return good;
}

void aof_lock_release(void)
{
    mutex_lock(&owned.lock);
    assert(owned.users > 0);
    if (--owned.users == 0)
        drop_locked();
    mutex_unlock(&owned.lock);
}

void aof_lock_leave(void)
{
    mutex_lock(&owned.lock);
    owned.users = 0;
    drop_locked();
    mutex_unlock(&owned.lock);
}
