#include "server/process/availability_zone.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/spinlock.h"
#include "server/config/config.h"

#include <string.h>

static struct option_string option_availability_zone; /* global: option storage; never NULL */

static struct {
    struct spinlock lock;                                     /* rank LOCK_REGISTRY */
    char text[AVAILABILITY_ZONE_BYTES_MOST] GUARDED_BY(lock); /* the option's value: INFO does not wait for the gate */
    size_t size GUARDED_BY(lock);
} zone;

static const char *apply(const struct option_row *row)
{
    gate_assert_alone();
    assert(option_availability_zone.size <= AVAILABILITY_ZONE_BYTES_MOST);
    (void)row;
    spinlock_acquire(&zone.lock);
    zone.size = option_availability_zone.size;
    if (zone.size != 0)
        memcpy(zone.text, option_availability_zone.data, zone.size);
    spinlock_release(&zone.lock);
    return NULL;
}

/* A line of INFO stays one. */
static const char *check(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    if (text.size > AVAILABILITY_ZONE_BYTES_MOST)
        return "argument must be no longer than 256 bytes";
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\r' || text.data[i] == '\n')
            return "argument must be one line";
    }
    return NULL;
}

static const struct option_row rows[] = {
    ROW_STRING("availability-zone", &option_availability_zone, "", OPTION_MUTABLE,
               "Where the server is, for clients; INFO server and HELLO show it.", .check = check, .apply = apply),
};

void availability_zone_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&zone.lock, LOCK_REGISTRY);
    config_add_rows(rows, countof(rows));
}

void availability_zone_start(void)
{
    gate_assert_main_alone();
    (void)apply(NULL);
}

size_t availability_zone_copy(char text[AVAILABILITY_ZONE_BYTES_MOST])
{
    size_t size;

    spinlock_acquire(&zone.lock);
    size = zone.size;
    assert(size <= AVAILABILITY_ZONE_BYTES_MOST);
    memcpy(text, zone.text, size);
    spinlock_release(&zone.lock);
    return size;
}

static void append(struct buffer *buffer, const void *picture)
{
    char text[AVAILABILITY_ZONE_BYTES_MOST];

    (void)picture;
    buffer_append(buffer, text, availability_zone_copy(text));
}

const struct info_row availability_zone_info[] = {
    INFO_VALUE("availability_zone", NULL, append),
    {0},
};
