/* Compares the folder after a power cut with a simple model: a table of names and contents, and a copy of both as of
 * the last syncs. */
#include "base/power_cut.h"

#include "base/compiler.h"
#include "base/test_seed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int empty_folder(void **state)
{
    char command[300];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -rf %s %s.power_cut && mkdir %s", folder, folder, folder);
    return system(command) != 0 || chdir(folder) != 0;
}

static void sync_fd(int fd)
{
    assert_int_equal(fdatasync(fd), 0);
    assert_int_equal(close(fd), 0);
}

static void sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY);

    assert_true(fd >= 0);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(close(fd), 0);
}

static void put(const char *name, int flags, const char *text, bool synced)
{
    int fd = open(name, flags | O_WRONLY | O_CREAT, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    if (synced)
        assert_int_equal(fsync(fd), 0);
    assert_int_equal(close(fd), 0);
}

static void expect(const char *name, const char *text)
{
    char found[1000] = "";
    int fd = open(name, O_RDONLY);
    ssize_t size = fd >= 0 ? read(fd, found, sizeof(found) - 1) : -1;

    if (fd >= 0)
        (void)close(fd);
    if (text == NULL)
        assert_int_equal(size, -1);
    else
        assert_true(size >= 0);
    if (text != NULL)
        assert_string_equal(found, text);
}

static unsigned count_names(void)
{
    DIR *list = opendir(folder);
    unsigned count = 0;

    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(list);
    return count;
}

static void cut_power(void)
{
    struct power_cut_loss loss;
    char record[100];

    power_cut_apply(folder, POWER_CUT_NOW, 0, &loss);
    (void)snprintf(record, sizeof(record), "%s.power_cut", folder);
    assert_int_equal(access(record, F_OK), -1);
}

/* ------------------------------------------------------------------------------------------------------ contents -- */

static void what_is_appended_is_lost_behind_the_last_sync(void **state)
{
    (void)state;
    put("a", O_APPEND, "before ", false); /* before the record begins: counts as synced */
    power_cut_begin(folder);
    put("a", O_APPEND, "synced ", true);
    put("a", O_APPEND, "lost", false);
    cut_power();
    expect("a", "before synced ");
    power_cut_begin(".");
    put("a", O_APPEND, "gone", false);
    cut_power();
    expect("a", "before synced ");
}

static void what_is_overwritten_comes_back(void **state)
{
    const struct iovec parts[] = {{(char[]){'x'}, 1}, {(char[]){'y', 'z'}, 2}};
    int fd;

    (void)state;
    put("a", 0, "0123456789", false);
    power_cut_begin(folder);
    put("a", 0, "ab", true);
    fd = open("a", O_RDWR);
    assert_int_equal(pwrite(fd, "c", 1, 2), 1);
    assert_int_equal(lseek(fd, 8, SEEK_SET), 8);
    assert_int_equal(writev(fd, parts, 2), 3);
    assert_int_equal(pwritev(fd, parts, 2, 0), 3);
    (void)close(fd);
    expect("a", "xyz34567xyz");
    cut_power();
    expect("a", "ab23456789");
}

static void what_is_cut_off_comes_back(void **state)
{
    int fd;

    (void)state;
    put("a", 0, "0123456789", false);
    put("b", 0, "bbbbb", false);
    put("c", 0, "ccccc", false);
    power_cut_begin(folder);
    fd = open("a", O_RDWR | O_APPEND);
    assert_int_equal(ftruncate(fd, 5), 0);
    assert_int_equal(write(fd, "abc", 3), 3);
    assert_int_equal(ftruncate(fd, 6), 0);
    assert_int_equal(ftruncate(fd, 20), 0);
    (void)close(fd);
    put("b", O_TRUNC, "B", false);
    assert_int_equal(truncate("c", 1), 0);
    cut_power();
    expect("a", "0123456789");
    expect("b", "bbbbb");
    expect("c", "ccccc");
    power_cut_begin(folder);
    put("b", O_TRUNC, "B", true);
    assert_int_equal(truncate("c", 1), 0);
    sync_fd(open("c", O_RDONLY));
    cut_power();
    expect("b", "B");
    expect("c", "c");
}

static void what_could_not_be_done_is_not_undone(void **state)
{
    int fd;

    (void)state;
    put("a", 0, "aaaa", false);
    power_cut_begin(folder);
    fd = open("a", O_RDONLY);
    assert_int_equal(write(fd, "b", 1), -1);
    assert_int_equal(errno, EBADF);
    (void)close(fd);
    put("a", 0, "bb", true);
    assert_int_equal(open("a", O_WRONLY | O_CREAT | O_EXCL, 0644), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(rename("none", "a"), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(unlink("none"), -1);
    cut_power();
    expect("a", "bbaa");
    assert_int_equal(count_names(), 1);
}

/* --------------------------------------------------------------------------------------------------------- names -- */

static void names_are_lost_whose_folder_was_not_synced(void **state)
{
    (void)state;
    power_cut_begin(folder);
    put("a", 0, "data", true);
    put("b", 0, "data", true);
    sync_folder(".");
    assert_int_equal(unlink("b"), 0);
    cut_power();
    expect("a", "data");
    expect("b", "data"); /* the removal did not reach the disk */
    power_cut_begin(folder);
    assert_int_equal(unlink("b"), 0);
    sync_folder(folder);
    cut_power();
    expect("b", NULL);
    power_cut_begin(folder);
    put("b", 0, "data", true);
    assert_int_equal(link("a", "c"), 0);
    cut_power();
    assert_int_equal(count_names(), 1); /* "b" is synced itself, but not its name */
}

static void renames_are_undone(void **state)
{
    (void)state;
    put("a", 0, "old", false);
    put("b", 0, "new", false);
    power_cut_begin(folder);
    assert_int_equal(rename("b", "a"), 0);
    expect("a", "new");
    cut_power();
    expect("a", "old");
    expect("b", "new");
    power_cut_begin(folder);
    assert_int_equal(rename("b", "a"), 0);
    sync_folder(folder);
    cut_power();
    expect("a", "new");
    assert_int_equal(count_names(), 1);
}

static void a_missing_sync_of_data_shows(void **state)
{
    (void)state;
    put("a", 0, "old", false);
    power_cut_begin(folder);
    put("b", 0, "new", false);
    assert_int_equal(rename("b", "a"), 0);
    sync_folder(folder);
    cut_power();
    expect("a", ""); /* the classic mistake */
}

static void a_rename_takes_both_folders(void **state)
{
    (void)state;
    for (unsigned synced = 0; synced < 4; synced++) {
        assert_int_equal(empty_folder(NULL), 0);
        assert_int_equal(mkdir("sub", 0755), 0);
        put("a", 0, "data", false);
        power_cut_begin(folder);
        assert_int_equal(rename("a", "sub/../sub/b"), 0);
        if ((synced & 1) != 0)
            sync_folder(".");
        if ((synced & 2) != 0)
            sync_folder("sub/.");
        cut_power();
        expect("a", synced == 3 ? NULL : "data");
        expect("sub/b", synced == 3 ? "data" : NULL);
    }
}

static void folders_go_with_what_they_have(void **state)
{
    (void)state;
    power_cut_begin(folder);
    assert_int_equal(mkdir("sub", 0755), 0);
    put("sub/a", 0, "data", true);
    sync_folder("sub"); /* its own name is in the other folder */
    cut_power();
    assert_int_equal(count_names(), 0);
    power_cut_begin(folder);
    assert_int_equal(mkdir("sub", 0755), 0);
    sync_folder(".");
    put("sub/a", 0, "data", true);
    put("sub/b", 0, "data", true);
    assert_int_equal(unlink("sub/b"), 0);
    sync_folder("sub");
    cut_power();
    expect("sub/a", "data");
    expect("sub/b", NULL);
}

static void all_ways_to_open_count(void **state)
{
    int here = open(".", O_RDONLY | O_DIRECTORY);
    FILE *stream;

    (void)state;
    put("d", 0, "dddd", false);
    power_cut_begin(folder);
    (void)close(creat("a", 0644));
    (void)close(openat(here, "b", O_RDWR | O_CREAT, 0644));
    stream = fopen("c", "w");
    assert_non_null(stream);
    (void)fclose(stream);
    stream = fopen("d", "w");
    assert_non_null(stream);
    (void)fclose(stream);
    (void)close(here);
    assert_int_equal(count_names(), 4);
    cut_power();
    assert_int_equal(count_names(), 1);
    expect("d", "dddd");
}

/* ------------------------------------------------------------------------------------- threads, children, points -- */

static void *rename_much(void *place)
{
    char from[20], to[20];

    (void)snprintf(from, sizeof(from), "%s/from", (const char *)place);
    (void)snprintf(to, sizeof(to), "%s/to", (const char *)place);
    for (unsigned i = 0; i < 100; i++) {
        put(from, O_TRUNC, i < 99 ? "more" : "last", true);
        assert_int_equal(rename(from, to), 0);
        if (i == 49)
            sync_folder(place);
    }
    return NULL;
}

static void threads_and_children_are_recorded(void **state)
{
    static char places[][2] = {"0", "1", "2"};
    pthread_t threads[countof(places)];
    pid_t child;
    int status;

    (void)state;
    for (size_t i = 0; i < countof(places); i++)
        assert_int_equal(mkdir(places[i], 0755), 0);
    power_cut_begin(folder);
    put("child", 0, "parent", true);
    sync_folder(".");
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int fd = 3; fd < 100; fd++)
            (void)close(fd);
        put("child.temp", 0, "child", true);
        (void)!rename("child.temp", "child");
        put("other", 0, "data", true);
        _exit(0);
    }
    for (size_t i = 0; i < countof(places); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, rename_much, places[i]), 0);
    for (size_t i = 0; i < countof(places); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect("0/to", "last");
    expect("child", "child");
    cut_power();
    expect("0/to", "more");
    expect("1/to", "more");
    expect("2/to", "more");
    expect("child", "parent");
    assert_int_equal(count_names(), 4);
}

static void any_point_can_be_chosen(void **state)
{
    static const char *const afterwards[] = {"old", "new"};
    uint64_t points = 1;

    (void)state;
    for (uint64_t point = 0; point <= points; point++) {
        const char *expected;
        struct power_cut_loss loss;

        assert_int_equal(empty_folder(NULL), 0);
        put("a", 0, "old", false);
        power_cut_begin(folder);
        put("b", 0, "new", true);
        assert_int_equal(rename("b", "a"), 0);
        sync_folder(folder);
        points = power_cut_point(folder);
        power_cut_apply(folder, point, 0, &loss);
        expected = afterwards[point == points];
        expect("a", expected);
        expect("b", NULL);
    }
    assert_int_equal(points, 1 + 4 * 2); /* the existing file; creation, sync, rename and sync */
}

/* ------------------------------------------------------------------------------------------------------- a model -- */

enum { NAMES = 4, BYTES_MOST = 40, STEPS = 60, FILES = STEPS + 1 };

struct model_file {
    char bytes[BYTES_MOST], synced[BYTES_MOST];
    size_t size, synced_size;
};

struct model {
    struct model_file files[FILES];
    unsigned file_count;
    unsigned names[NAMES], synced_names[NAMES]; /* index of a file; 0: none */
    uint64_t point;
};

static void model_name(char name[8], unsigned index)
{
    (void)snprintf(name, 8, "name%u", index);
}

static void write_at(struct model *model, unsigned name_index, const char *name, struct random *random)
{
    struct model_file *file = &model->files[model->names[name_index]];
    const size_t at = random_below(random, MIN(file->size + 1, BYTES_MOST));
    const size_t size = 1 + random_below(random, BYTES_MOST - at);
    char bytes[BYTES_MOST];
    int fd = open(name, O_RDWR);

    memset(bytes, 'a' + (int)random_below(random, 26), size);
    assert_int_equal(pwrite(fd, bytes, size, (off_t)at), size);
    memcpy(file->bytes + at, bytes, size);
    file->size = MAX(file->size, at + size);
    (void)close(fd);
}

static void step_of_file(struct model *model, unsigned index, const char *name, struct random *random)
{
    struct model_file *file = &model->files[model->names[index]];

    switch (random_below(random, 4)) {
    case 0:
        file->size = random_below(random, file->size + 1);
        assert_int_equal(truncate(name, (off_t)file->size), 0);
        break;
    case 1:
        sync_fd(open(name, O_RDONLY));
        memcpy(file->synced, file->bytes, sizeof(file->synced));
        file->synced_size = file->size;
        break;
    default:
        write_at(model, index, name, random);
        break;
    }
}

static void step_of_names(struct model *model, unsigned index, const char *name, struct random *random)
{
    const unsigned other_index = (unsigned)random_below(random, NAMES);
    char other[8];

    model_name(other, other_index);
    switch (random_below(random, 4)) {
    case 0:
        sync_folder(".");
        memcpy(model->synced_names, model->names, sizeof(model->names));
        break;
    case 1:
        assert_int_equal(unlink(name), 0);
        model->names[index] = 0;
        break;
    default:
        if (other_index == index)
            break;
        assert_int_equal(rename(name, other), 0);
        model->names[other_index] = model->names[index];
        model->names[index] = 0;
        break;
    }
}

static void step(struct model *model, struct random *random)
{
    const unsigned index = (unsigned)random_below(random, NAMES);
    char name[8];

    model_name(name, index);
    if (model->names[index] == 0) {
        (void)close(open(name, O_WRONLY | O_CREAT, 0644));
        model->names[index] = ++model->file_count;
    } else if (random_below(random, 2) == 0) {
        step_of_names(model, index, name, random);
    } else {
        step_of_file(model, index, name, random);
    }
    model->point = power_cut_point(".");
}

static void expect_model(const struct model *model)
{
    for (unsigned i = 0; i < NAMES; i++) {
        const struct model_file *file = &model->files[model->synced_names[i]];
        char name[8], text[BYTES_MOST + 1] = "";

        model_name(name, i);
        memcpy(text, file->synced, file->synced_size);
        expect(name, model->synced_names[i] != 0 ? text : NULL);
    }
}

/* The names are those of some step since the folder was last synced. */
static void expect_legal(const struct model *models, unsigned count)
{
    const struct model *last = &models[count - 1];
    bool is_legal = false;

    for (unsigned i = 0; i < count && !is_legal; i++) {
        is_legal = memcmp(models[i].synced_names, last->synced_names, sizeof(last->synced_names)) == 0;
        for (unsigned j = 0; j < NAMES && is_legal; j++) {
            char name[8];

            model_name(name, j);
            is_legal = (access(name, F_OK) == 0) == (models[i].names[j] != 0);
        }
    }
    assert_true(is_legal);
}

static void it_is_as_the_model_says(void **state)
{
    static struct model models[STEPS + 1];
    struct random random = test_random("power_cut");

    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        const unsigned steps = 1 + (unsigned)random_below(&random, STEPS);
        const unsigned at = round % 3 == 0 ? steps : (unsigned)random_below(&random, steps + 1);
        struct power_cut_loss loss;

        assert_int_equal(empty_folder(NULL), 0);
        models[0] = (struct model){0};
        put("name0", 0, "first", false);
        memcpy(models[0].files[1].bytes, "first", 5);
        models[0].files[1].size = 5;
        models[0].files[1].synced_size = 5;
        memcpy(models[0].files[1].synced, "first", 5);
        models[0].names[0] = models[0].synced_names[0] = models[0].file_count = 1;
        power_cut_begin(folder);
        models[0].point = power_cut_point(folder);
        for (unsigned i = 0; i < steps; i++) {
            models[i + 1] = models[i];
            step(&models[i + 1], &random);
        }
        if (round % 3 == 1) {
            power_cut_apply(folder, POWER_CUT_NOW, 1 + random_below(&random, 1000000), &loss);
            expect_legal(models, steps + 1);
        } else {
            power_cut_apply(folder, at < steps ? models[at].point : POWER_CUT_NOW, 0, &loss);
            expect_model(&models[at]);
        }
    }
}

#define POWER_CUT_TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POWER_CUT_TEST(what_is_appended_is_lost_behind_the_last_sync),
        POWER_CUT_TEST(what_is_overwritten_comes_back),
        POWER_CUT_TEST(what_is_cut_off_comes_back),
        POWER_CUT_TEST(what_could_not_be_done_is_not_undone),
        POWER_CUT_TEST(names_are_lost_whose_folder_was_not_synced),
        POWER_CUT_TEST(renames_are_undone),
        POWER_CUT_TEST(a_missing_sync_of_data_shows),
        POWER_CUT_TEST(a_rename_takes_both_folders),
        POWER_CUT_TEST(folders_go_with_what_they_have),
        POWER_CUT_TEST(all_ways_to_open_count),
        POWER_CUT_TEST(threads_and_children_are_recorded),
        POWER_CUT_TEST(any_point_can_be_chosen),
        POWER_CUT_TEST(it_is_as_the_model_says),
    };
    char command[300];
    int result;

    (void)snprintf(folder, sizeof(folder), "%s/power-cut-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL)
        return 1;
    result = cmocka_run_group_tests(tests, NULL, NULL);
    (void)snprintf(command, sizeof(command), "cd / && rm -rf %s %s.power_cut", folder, folder);
    return system(command) == 0 ? result : 1;
}
