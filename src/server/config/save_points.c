#include "server/config/save_points.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/number.h"
#include "base/rows.h"
#include "base/spinlock.h"
#include "server/config/config.h"

#include <stdio.h>
#include <string.h>

enum { POINTS_MOST = 256 };

struct save_point {
    int64_t seconds, changes;
};

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct save_point points[POINTS_MOST] GUARDED_BY(lock);
    size_t count GUARDED_BY(lock);
    bool reading, is_first; /* main thread */
} save;

void save_points_reading(bool reading)
{
    gate_assert_main_alone();
    assert(save.reading != reading);
    save.reading = reading;
    save.is_first = reading;
}

static bool parse_pair(const struct slice *words, int64_t *seconds, int64_t *changes)
{
    return number_parse_i64(words[0], seconds) && number_parse_i64(words[1], changes) && *seconds >= 1 && *changes >= 0;
}

static bool check_words(const struct slice *words, size_t count, size_t have)
{
    int64_t seconds, changes;

    if (count % 2 != 0 || have + count / 2 > POINTS_MOST)
        return false;
    for (size_t i = 0; i < count; i += 2) {
        if (!parse_pair(&words[i], &seconds, &changes))
            return false;
    }
    return true;
}

static bool set(const struct option_row *row, const struct slice *words, size_t count, char *error, size_t error_size)
{
    size_t have = save.reading && !save.is_first && count != 0 ? save.count : 0;

    gate_assert_alone();
    (void)row;
    if (count == 1 && words[0].size == 0)
        count = have = 0;
    if (!check_words(words, count, have)) {
        (void)snprintf(error, error_size, "Invalid save parameters");
        return false;
    }
    spinlock_acquire(&save.lock);
    for (size_t i = 0; i < count / 2; i++)
        (void)parse_pair(&words[2 * i], &save.points[have + i].seconds, &save.points[have + i].changes);
    save.count = have + count / 2;
    assert(save.count <= POINTS_MOST);
    spinlock_release(&save.lock);
    save.is_first = false;
    return true;
}

static size_t copy_points(struct save_point *points)
{
    size_t count;

    spinlock_acquire(&save.lock);
    count = save.count;
    memcpy(points, save.points, count * sizeof(*points));
    spinlock_release(&save.lock);
    return count;
}

static void get(const struct option_row *row, struct buffer *buffer)
{
    struct save_point points[POINTS_MOST];
    size_t count = copy_points(points);

    (void)row;
    for (size_t i = 0; i < count; i++)
        buffer_printf(buffer, "%s%lld %lld", i == 0 ? "" : " ", (long long)points[i].seconds,
                      (long long)points[i].changes);
}

static void rewrite(const struct option_row *row, struct buffer *buffer)
{
    struct save_point points[POINTS_MOST];
    size_t count = copy_points(points);

    for (size_t i = 0; i < count; i++)
        buffer_printf(buffer, "%s %lld %lld\n", row->name, (long long)points[i].seconds, (long long)points[i].changes);
    if (count == 0)
        buffer_printf(buffer, "%s \"\"\n", row->name);
}

bool save_points_exist(void)
{
    bool exist;

    spinlock_acquire(&save.lock);
    exist = save.count != 0;
    spinlock_release(&save.lock);
    return exist;
}

bool save_points_due(int64_t since_s, uint64_t changed, int64_t *seconds, int64_t *changes)
{
    bool is_due = false;

    spinlock_acquire(&save.lock);
    for (size_t i = 0; i < save.count && !is_due; i++) {
        *seconds = save.points[i].seconds;
        *changes = save.points[i].changes;
        is_due = since_s > *seconds && changed >= (uint64_t)*changes;
    }
    spinlock_release(&save.lock);
    return is_due;
}

static const struct option_row rows[] = {
    ROW_SPECIAL("save", set, get, "3600 1 300 100 60 10000", OPTION_MUTABLE | OPTION_MULTI_ARG,
                "Pairs of seconds and changes after which a snapshot is saved.", .rewrite = rewrite),
};

void save_points_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&save.lock, LOCK_REGISTRY);
    config_add_rows(rows, countof(rows));
}

void save_points_teardown(void)
{
    gate_assert_main_alone();
    save.count = 0;
}
