#include "server/observe/info.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/random.h"
#include "base/thread.h"

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
    void (*begin)(void), (*end)(void); /* likewise; NULL: nobody asked */
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
    thread_assert_main();
    gate_assert_no_traffic();
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
    thread_assert_main();
    gate_assert_no_traffic();
    assert(info.table_count == 0);
    random_hex(info.run_id, INFO_ID_SIZE); /* its zero byte is there already */
}

void info_on_write(void (*begin)(void), void (*end)(void))
{
    thread_assert_main();
    gate_assert_no_traffic();
    assert(begin != NULL && end != NULL && info.begin == NULL);
    info.begin = begin;
    info.end = end;
}

void info_teardown(void)
{
    thread_assert_main();
    gate_assert_no_traffic();
    memset(&info, 0, sizeof(info));
}

const char *info_run_id(void)
{
    assert(info.run_id[0] != '\0'); /* info_setup was first */
    return info.run_id;
}

/* --- writing --- */

static void write_row(struct buffer *text, const struct info_field *row)
{
    assert(row->append != NULL);
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
    assert(index < SECTION_COUNT);
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

    if (word_count == 0)
        choose(wanted, SLICE("default"));
    for (size_t i = 0; i < word_count; i++)
        choose(wanted, words[i]);
    if (info.begin != NULL)
        info.begin();
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (wanted[i])
            write_section(text, i);
    }
    if (info.end != NULL)
        info.end();
}
