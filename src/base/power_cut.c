#include "base/power_cut.h"

#include "base/power_cut_calls.h"
#include "base/power_cut_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put_there(const char *path, const struct stat *info, void *context)
{
    (void)path;
    (void)context;
    if (S_ISREG(info->st_mode))
        power_cut_put(&(struct power_cut_line){.kind = 'O', .inode = info->st_ino, .first = (uint64_t)info->st_size});
}

void power_cut_begin(const char *folder)
{
    power_cut_choose(folder);
    power_cut_create();
    power_cut_walk(power_cut_watched(), put_there, NULL);
    power_cut_calls_record(true);
}

void power_cut_join(const char *folder)
{
    power_cut_choose(folder);
    power_cut_put(&(struct power_cut_line){.kind = 'J'});
    power_cut_calls_record(true);
}

uint64_t power_cut_point(const char *folder)
{
    uint64_t count;
    char *log;

    power_cut_choose(folder);
    log = power_cut_load();
    count = power_cut_each(log, NULL, NULL);
    free(log);
    return count;
}

/* -------------------------------------------------------------------------------------------- reading the record -- */

struct change {
    struct power_cut_line line; /* refers to the text */
    bool is_later;              /* it is behind the point */
    bool is_lost;
    uint64_t done_line;  /* of its D; 0: none before the point */
    bool from_is_synced; /* R: the old name's folder has been synced */
    bool to_is_synced;   /* R: the new name's folder has been synced */
};

struct sync {
    struct power_cut_line line;
    uint64_t at_line;
};

struct file {
    uint64_t inode;
    uint64_t bytes; /* size at the last sync */
    char *path;     /* one of its names; NULL: it has no name */
};

struct disk {
    char *text;             /* of the log */
    struct change *changes; /* in order, without those that a sync covers */
    struct sync *syncs;     /* that have begun and not ended */
    struct file *files;
    size_t change_count, sync_count, file_count;
    uint64_t point, random; /* random 0: keep the least */
};

/* Makes room for one more item behind `count` items. */
static void *grow(void *items, size_t count, size_t item_bytes)
{
    if ((count & (count - 1)) == 0) {
        items = realloc(items, MAX(count * 2, 1) * item_bytes);
        if (items == NULL)
            power_cut_give_up("allocate", "memory");
    }
    return items;
}

static struct file *find_file(const struct disk *disk, uint64_t inode)
{
    for (size_t i = 0; i < disk->file_count; i++) {
        if (disk->files[i].inode == inode)
            return &disk->files[i];
    }
    return NULL;
}

static void set_file(struct disk *disk, uint64_t inode, uint64_t bytes)
{
    struct file *file = find_file(disk, inode);

    if (file == NULL) {
        disk->files = grow(disk->files, disk->file_count, sizeof(*file));
        file = &disk->files[disk->file_count++];
        *file = (struct file){.inode = inode};
    }
    file->bytes = bytes;
}

static bool is_content(const struct change *change)
{
    return change->line.kind == 'W' || change->line.kind == 'T';
}

/* Invariant 1. */
static bool covers(const struct sync *sync, struct change *change)
{
    const uint64_t inode = sync->line.inode;

    if (change->done_line == 0 || change->done_line > sync->at_line)
        return false;
    if (is_content(change))
        return change->line.inode == inode;
    if (change->line.kind != 'R')
        return change->line.first == inode;
    change->from_is_synced |= change->line.first == inode;
    change->to_is_synced |= change->line.second == inode;
    return change->from_is_synced && change->to_is_synced;
}

static void apply_sync(struct disk *disk, const struct sync *sync)
{
    struct file *file = find_file(disk, sync->line.inode);
    size_t count = 0;

    if (file != NULL)
        file->bytes = sync->line.first;
    for (size_t i = 0; i < disk->change_count; i++) {
        if (!covers(sync, &disk->changes[i]))
            disk->changes[count++] = disk->changes[i];
    }
    disk->change_count = count;
}

static void end_change(struct disk *disk, struct change *change, const struct power_cut_line *line, uint64_t at_line)
{
    if (line->kind == 'N') {
        const size_t behind = (size_t)(&disk->changes[--disk->change_count] - change);

        memmove(change, change + 1, behind * sizeof(*change));
        return;
    }
    if (change->line.kind == 'C') {
        change->line.inode = line->inode;
        set_file(disk, line->inode, 0);
    }
    if (at_line <= disk->point)
        change->done_line = at_line;
}

static void add_end(struct disk *disk, const struct power_cut_line *line, uint64_t at_line)
{
    struct change *change = NULL;

    for (size_t i = 0; i < disk->change_count && change == NULL; i++)
        change = disk->changes[i].line.number == line->number ? &disk->changes[i] : NULL;
    if (change != NULL) {
        end_change(disk, change, line, at_line);
        return;
    }
    for (size_t i = 0; i < disk->sync_count; i++) {
        const struct sync sync = disk->syncs[i];

        if (sync.line.number != line->number)
            continue;
        disk->syncs[i] = disk->syncs[--disk->sync_count];
        if (line->kind == 'D' && at_line <= disk->point)
            apply_sync(disk, &sync);
        return;
    }
}

static void add_line(const struct power_cut_line *line, uint64_t at_line, void *context)
{
    struct disk *disk = context;

    switch (line->kind) {
    case 'J':
        break;
    case 'O':
        set_file(disk, line->inode, line->first);
        break;
    case 'S':
        disk->syncs = grow(disk->syncs, disk->sync_count, sizeof(*disk->syncs));
        disk->syncs[disk->sync_count++] = (struct sync){.line = *line, .at_line = at_line};
        break;
    case 'D':
    case 'N':
        add_end(disk, line, at_line);
        break;
    default:
        disk->changes = grow(disk->changes, disk->change_count, sizeof(*disk->changes));
        disk->changes[disk->change_count++] = (struct change){.line = *line, .is_later = at_line > disk->point};
    }
}

/* ------------------------------------------------------------------------------------------------------ applying -- */

/* A random number from 0 to `most`. */
static uint64_t draw(struct disk *disk, uint64_t most)
{
    if (disk->random == 0)
        return 0;
    disk->random ^= disk->random << 13;
    disk->random ^= disk->random >> 7;
    disk->random ^= disk->random << 17;
    return most == UINT64_MAX ? disk->random : disk->random % (most + 1);
}

/* Inode 0 selects the changes of names, another inode the changes of that file's contents. */
static bool is_of(const struct change *change, uint64_t inode)
{
    return inode == 0 ? !is_content(change) : is_content(change) && change->line.inode == inode;
}

/* Keeps a random number of the first changes of names, or of one file's contents (invariant 3). */
static void choose(struct disk *disk, uint64_t inode)
{
    size_t count = 0, kept;

    for (size_t i = 0; i < disk->change_count; i++)
        count += is_of(&disk->changes[i], inode) && !disk->changes[i].is_later;
    kept = draw(disk, count);
    for (size_t i = 0; i < disk->change_count; i++) {
        struct change *change = &disk->changes[i];

        if (!is_of(change, inode))
            continue;
        change->is_lost = change->is_later || kept == 0;
        kept -= kept != 0 && !change->is_later;
    }
}

static void find_path(const char *path, const struct stat *info, void *context)
{
    struct file *file = find_file(context, info->st_ino);

    if (file == NULL || file->path != NULL || !S_ISREG(info->st_mode))
        return;
    file->path = strdup(path);
    if (file->path == NULL)
        power_cut_give_up("allocate", "memory");
}

static void undo_contents(struct disk *disk)
{
    for (size_t i = disk->change_count; i-- > 0;) {
        const struct change *change = &disk->changes[i];
        struct file *file = is_content(change) ? find_file(disk, change->line.inode) : NULL;
        char name[PATH_MAX];

        if (file == NULL || file->path == NULL)
            continue;
        power_cut_kept_path(name, change->line.number);
        if (change->is_lost)
            power_cut_copy(name, 0, file->path, (off_t)change->line.first, INT64_MAX);
        else if (change->line.kind == 'T')
            file->bytes = MIN(file->bytes, change->line.first);
    }
}

static uint64_t cut_file(struct disk *disk, const struct file *file)
{
    struct stat info;
    uint64_t bytes, kept = file->bytes;

    if (file->path == NULL || stat(file->path, &info) != 0 || (uint64_t)info.st_size <= file->bytes)
        return 0;
    bytes = (uint64_t)info.st_size;
    if (disk->point == POWER_CUT_NOW)
        kept += draw(disk, bytes - file->bytes); /* at an earlier point the size is not known */
    if (REAL(truncate)(file->path, (off_t)kept) != 0)
        power_cut_give_up("cut", file->path);
    return bytes - kept;
}

static uint64_t inode_of(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 ? info.st_ino : 0;
}

static void move(const char *from, const char *to)
{
    if (REAL(renameat)(AT_FDCWD, from, AT_FDCWD, to) != 0)
        power_cut_give_up("rename", from);
}

static void undo_name(const struct disk *disk, const struct power_cut_line *line)
{
    const uint64_t there = inode_of(line->path);
    char kept[PATH_MAX];

    power_cut_kept_path(kept, line->number);
    switch (line->kind) {
    case 'C':
        if (there == 0 || (line->inode != 0 ? there != line->inode : find_file(disk, there) != NULL))
            return;
        if (REAL(unlinkat)(AT_FDCWD, line->path, 0) != 0)
            power_cut_give_up("remove", line->path);
        return;
    case 'L':
        if (there == line->inode && REAL(unlinkat)(AT_FDCWD, line->path, 0) != 0)
            power_cut_give_up("remove", line->path);
        return;
    case 'M':
        if (there != 0)
            power_cut_remove_folder(line->path);
        return;
    case 'R':
        if (there != 0 || inode_of(line->to) != line->inode)
            return; /* it was not done */
        move(line->to, line->path);
        if (inode_of(kept) != 0)
            move(kept, line->to);
        return;
    case 'U':
        if (there == 0 && inode_of(kept) != 0)
            move(kept, line->path);
        return;
    default:
        errno = EBADMSG;
        power_cut_give_up("undo", line->path);
    }
}

void power_cut_apply(const char *folder, uint64_t point, uint64_t seed, struct power_cut_loss *loss)
{
    struct disk disk = {.point = point, .random = seed};

    *loss = (struct power_cut_loss){0};
    power_cut_calls_record(false);
    power_cut_choose(folder);
    disk.text = power_cut_load();
    (void)power_cut_each(disk.text, add_line, &disk);
    power_cut_walk(power_cut_watched(), find_path, &disk);
    power_cut_walk(power_cut_record(), find_path, &disk);
    choose(&disk, 0);
    for (size_t i = 0; i < disk.file_count; i++)
        choose(&disk, disk.files[i].inode);
    undo_contents(&disk);
    for (size_t i = 0; i < disk.file_count; i++)
        loss->bytes += cut_file(&disk, &disk.files[i]);
    for (size_t i = disk.change_count; i-- > 0;) {
        const struct change *change = &disk.changes[i];

        if (is_content(change) || !change->is_lost)
            continue;
        undo_name(&disk, &change->line);
        loss->changes += !change->is_later;
    }
    power_cut_remove_folder(power_cut_record());
    for (size_t i = 0; i < disk.file_count; i++)
        free(disk.files[i].path);
    free(disk.files);
    free(disk.syncs);
    free(disk.changes);
    free(disk.text);
}
