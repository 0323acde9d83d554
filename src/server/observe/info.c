/* INFO. The figures of workers are collected once a call and lie in a variable of the calling thread while the rows
 * print, so that one answer is made of one picture. */
#include "server/diagnose/info.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/random.h"
#include "server/config/config.h"
#include "server/diagnose/info_rows.h"
#include "server/memory/client_limit.h"
#include "server/memory/memory_limit.h"
#include "server/observe/stats_since.h"
#include "server/observe/timing.h"
#include "server/run/soft_shutdown.h"
#include "server/upkeep/active_expiry.h"
#include "server/upkeep/defrag_cycle.h"
#include "server/upkeep/shutdown.h"

#include <stdio.h>
#include <string.h>

/* In printing order. */
static const struct {
    const char *name, *title;
    enum { SHOWN_BY_DEFAULT, SHOWN_BY_ALL, SHOWN_BY_NAME } shown; /* each also by what stands behind it */
} sections[] = {
    {"server", "Server", SHOWN_BY_DEFAULT},
    {"clients", "Clients", SHOWN_BY_DEFAULT},
    {"memory", "Memory", SHOWN_BY_DEFAULT},
    {"persistence", "Persistence", SHOWN_BY_DEFAULT},
    {"stats", "Stats", SHOWN_BY_DEFAULT},
    {"replication", "Replication", SHOWN_BY_DEFAULT},
    {"cpu", "CPU", SHOWN_BY_DEFAULT},
    {"modules", "Modules", SHOWN_BY_DEFAULT},
    {"commandstats", "Commandstats", SHOWN_BY_ALL},
    {"errorstats", "Errorstats", SHOWN_BY_DEFAULT},
    {"latencystats", "Latencystats", SHOWN_BY_ALL},
    {"cluster", "Cluster", SHOWN_BY_DEFAULT},
    {"keyspace", "Keyspace", SHOWN_BY_DEFAULT},
    {"keydb", "KeyDB", SHOWN_BY_DEFAULT},
    {"debug", "Debug", SHOWN_BY_NAME},
};

enum { SECTION_COUNT = countof(sections), TABLES_MOST = 64 };

static struct {
    struct {
        const struct info_field *rows;
        size_t count;
    } tables[TABLES_MOST]; /* constant once the workers run */
    size_t table_count;
    char run_id[INFO_ID_SIZE + 1];
} info;

/* --- setup --- */

static size_t section_index(struct slice name) /* SECTION_COUNT: none */
{
    size_t index = 0;

    while (index < SECTION_COUNT && !slice_equal_text_nocase(name, sections[index].name))
        index++;
    return index;
}

void info_add_rows(const struct info_field *rows, size_t count)
{
    assert(info.table_count < TABLES_MOST);
    for (size_t i = 0; i < count; i++) {
        if (section_index(slice_from_text(rows[i].section)) == SECTION_COUNT)
            panic("INFO has no section '%s'", rows[i].section);
    }
    info.tables[info.table_count].rows = rows;
    info.tables[info.table_count].count = count;
    info.table_count++;
}

void info_setup(void)
{
    random_hex(info.run_id, INFO_ID_SIZE); /* its zero byte is there already */
    info_rows_setup();
    stats_since_setup();
    timing_setup();
    memory_limit_setup();
    defrag_cycle_setup();
    client_limit_setup();
    soft_shutdown_setup();
    shutdown_setup();
    active_expiry_setup();
    config_on_reset_stat(stats_since_reset);
    config_on_reset_stat(timing_reset);
    info_add_rows(info_server_rows, info_server_row_count);
    info_add_rows(info_thread_rows, info_thread_row_count);
}

void info_mark_ready(void)
{
    info_rows_mark_ready();
}

void info_teardown(void)
{
    timing_teardown();
    stats_since_teardown();
    memset(&info, 0, sizeof(info));
}

const char *info_run_id(void)
{
    return info.run_id;
}

/* --- writing --- */

static void write_row(struct buffer *text, const struct info_field *row)
{
    if (row->wanted != NULL && !row->wanted())
        return;
    if (row->name == NULL) {
        row->append(text);
        return;
    }
    buffer_append_text(text, row->name);
    buffer_append_char(text, ':');
    row->append(text);
    buffer_append_text(text, "\r\n");
}

static void write_section(struct buffer *text, size_t index)
{
    if (text->size != 0)
        buffer_append_text(text, "\r\n");
    buffer_printf(text, "# %s\r\n", sections[index].title);
    for (size_t i = 0; i < info.table_count; i++) {
        for (size_t k = 0; k < info.tables[i].count; k++) {
            if (strcmp(info.tables[i].rows[k].section, sections[index].name) == 0)
                write_row(text, &info.tables[i].rows[k]);
        }
    }
}

static void choose(bool wanted[SECTION_COUNT], struct slice word)
{
    bool all = slice_equal_text_nocase(word, "all") || slice_equal_text_nocase(word, "everything");
    bool usual = slice_equal_text_nocase(word, "default");
    size_t index = slice_equal_text_nocase(word, "module_list") ? section_index(SLICE("modules")) : section_index(word);

    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (i == index || (all && sections[i].shown <= SHOWN_BY_ALL) ||
            (usual && sections[i].shown == SHOWN_BY_DEFAULT))
            wanted[i] = true;
    }
}

void info_write(struct buffer *text, const struct slice *words, size_t word_count)
{
    bool wanted[SECTION_COUNT] = {false};
    struct server_stats stats; /* not on the heap: used_memory is not to count it */

    if (word_count == 0)
        choose(wanted, SLICE("default"));
    for (size_t i = 0; i < word_count; i++)
        choose(wanted, words[i]);
    stats_since_collect(&stats);
    info_rows_begin(&stats);
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (wanted[i])
            write_section(text, i);
    }
    info_rows_end();
}
