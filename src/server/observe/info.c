#include "server/observe/info.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/number.h"
#include "base/panic.h"
#include "server/observe/info_moment.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { SECTIONS_MOST = 32, FIELDS_MOST = 512, SOURCES_MOST = 64, PICTURES_BYTES = 16 * 1024, PROBLEM_BYTES = 256 };
enum { PICTURE_ALIGNMENT = 16, US_PER_MS = 1000, NO_SOURCE = SOURCES_MOST };

/* Constant once it is arranged. */
static struct {
    const struct info_section *sections;
    size_t section_count;
    struct section {
        size_t begin, end; /* of its rows */
        uint64_t sources;  /* bit i: source i */
    } ranges[SECTIONS_MOST];
    struct placed {
        const struct info_row *row;
        size_t source; /* NO_SOURCE: it has none */
    } rows[FIELDS_MOST];
    size_t row_count;
    struct {
        const struct info_source *source;
        size_t at; /* of its picture */
    } sources[SOURCES_MOST];
    size_t source_count, pictures_bytes;
} info;

/* The answer that this thread makes. Not on the heap: used_memory is not to count it. */
static _Thread_local struct {
    bool is_open;
    uint64_t taken; /* bit i: the picture of source i */
    struct info_moment moment;
    char pictures[PICTURES_BYTES] __attribute__((aligned(PICTURE_ALIGNMENT)));
} answer;

/* ----------------------------------------------------------------------------------------------------- arranging -- */

static size_t section_index(struct slice name) /* section_count: none */
{
    size_t index = 0;

    while (index < info.section_count && !slice_equal_text_nocase(name, info.sections[index].name))
        index++;
    return index;
}

static const struct info_row *find_row(const struct info_row *const *tables, size_t table_count, const char *name)
{
    for (size_t i = 0; i < table_count; i++) {
        for (const struct info_row *row = tables[i]; row->name != NULL; row++) {
            if (strcmp(row->name, name) == 0)
                return row;
        }
    }
    return NULL;
}

static size_t source_index(const struct info_source *source) /* source_count: none */
{
    size_t index = 0;

    while (index < info.source_count && info.sources[index].source != source)
        index++;
    return index;
}

static bool add_source(const struct info_source *source)
{
    if (info.source_count == SOURCES_MOST || info.pictures_bytes + source->bytes > PICTURES_BYTES)
        return false;
    info.sources[info.source_count].source = source;
    info.sources[info.source_count++].at = info.pictures_bytes;
    info.pictures_bytes += (source->bytes + PICTURE_ALIGNMENT - 1) / PICTURE_ALIGNMENT * PICTURE_ALIGNMENT;
    return true;
}

static bool is_plain(const struct info_row *row)
{
    static const enum info_form others[] = {INFO_FORM_VALUE, INFO_FORM_LINES, INFO_FORM_HUMAN,  INFO_FORM_DOUBLE,
                                            INFO_FORM_RATIO, INFO_FORM_TIME,  INFO_FORM_PERCENT};
    size_t i = 0;

    while (i < countof(others) && others[i] != row->form)
        i++;
    return i == countof(others);
}

/* Returns NULL, or why the row is wrong. */
static const char *place_row(struct section *section, const struct info_row *row)
{
    size_t source = NO_SOURCE;

    if (row == NULL)
        return "no table has a row for it";
    for (size_t i = 0; i < info.row_count; i++) {
        if (info.rows[i].row == row)
            return "it is named twice";
    }
    if (info.row_count == FIELDS_MOST)
        return "there are too many fields";
    if (row->is_safe && (!is_plain(row) || (row->source != NULL && row->source->take_safe == NULL)))
        return "the report of a crash cannot print it";
    if (row->source != NULL) {
        source = source_index(row->source);
        if (source == info.source_count && !add_source(row->source))
            return "there are too many sources, or too large ones";
        section->sources |= UINT64_C(1) << source;
    }
    info.rows[info.row_count++] = (struct placed){row, source};
    section->end = info.row_count;
    return NULL;
}

static const char *unplaced_row(const struct info_row *const *tables, size_t table_count)
{
    for (size_t i = 0; i < table_count; i++) {
        for (const struct info_row *row = tables[i]; row->name != NULL; row++) {
            size_t at = 0;

            while (at < info.row_count && info.rows[at].row != row)
                at++;
            if (at == info.row_count)
                return row->name;
        }
    }
    return NULL;
}

bool info_arrange(const struct info_section *sections, size_t section_count, const struct info_row *const *tables,
                  size_t table_count, char *problem, size_t problem_size)
{
    const char *name;

    assert(section_count <= SECTIONS_MOST);
    memset(&info, 0, sizeof(info));
    info.sections = sections;
    info.section_count = section_count;
    for (size_t i = 0; i < section_count; i++) {
        info.ranges[i].begin = info.ranges[i].end = info.row_count;
        for (const char *const *field = sections[i].fields; *field != NULL; field++) {
            const char *reason = place_row(&info.ranges[i], find_row(tables, table_count, *field));

            if (reason != NULL) {
                snprintf(problem, problem_size, "field '%s' of section %s: %s", *field, sections[i].name, reason);
                return false;
            }
        }
    }
    name = unplaced_row(tables, table_count);
    if (name != NULL)
        snprintf(problem, problem_size, "row '%s': no section names it, or two rows have this name", name);
    return name == NULL;
}

void info_setup(const struct info_row *const *tables, size_t table_count)
{
    char problem[PROBLEM_BYTES];

    gate_assert_main_alone();
    if (!info_arrange(info_sections, info_section_count, tables, table_count, problem, sizeof(problem)))
        panic("INFO: %s", problem);
}

/* ----------------------------------------------------------------------------------------------------- pictures -- */

static void *picture_at(size_t index)
{
    return answer.pictures + info.sources[index].at;
}

static const void *picture_of(size_t index)
{
    if ((answer.taken >> index & 1) == 0) {
        answer.taken |= UINT64_C(1) << index;
        info.sources[index].source->take(picture_at(index), &answer.moment);
    }
    return picture_at(index);
}

const struct info_moment *info_moment(void)
{
    assert(answer.is_open);
    return &answer.moment;
}

const void *info_moment_picture(const struct info_source *source)
{
    size_t index = source_index(source);

    assert(answer.is_open && index < info.source_count);
    return picture_of(index);
}

static void begin_answer(void)
{
    answer.taken = 0;
    answer.moment = (struct info_moment){.wall_us = clock_wall_us(), .monotonic_us = clock_monotonic_us()};
}

static const void *picture_of_row(const struct placed *placed)
{
    return placed->source != NO_SOURCE ? picture_at(placed->source) : NULL;
}

/* ------------------------------------------------------------------------------------------------------- values -- */

static uint64_t u64_at(const void *picture, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)picture + offset);
}

static double double_at(const void *picture, size_t offset)
{
    return *(const double *)(const void *)((const char *)picture + offset);
}

static double ratio(const void *picture, const struct info_row *row)
{
    uint64_t whole = u64_at(picture, row->other);

    return whole == 0 ? 0 : (double)u64_at(picture, row->member) / (double)whole;
}

/* Whole numbers and texts, without lock or memory. NULL: it is of another form (is_plain). `room` is for numbers. */
static const char *plain_value(const struct info_row *row, const void *picture, char room[NUMBER_I64_SPACE])
{
    const char *member = (const char *)picture + row->member;

    switch (row->form) {
    case INFO_FORM_TEXT:
        return row->text;
    case INFO_FORM_CALL_TEXT:
        return row->call_text();
    case INFO_FORM_WORD:
        return *(const char *const *)(const void *)member;
    case INFO_FORM_OK:
        return *(const bool *)member ? "ok" : "err";
    case INFO_FORM_BOOL:
        return *(const bool *)member ? "1" : "0";
    case INFO_FORM_CALL:
        number_format_u64(room, row->call());
        return room;
    case INFO_FORM_OPTION:
        number_format_u64(room, (uint64_t)atomic_load_explicit(row->option, memory_order_relaxed));
        return room;
    case INFO_FORM_U64:
        number_format_u64(room, u64_at(picture, row->member));
        return room;
    case INFO_FORM_UNSIGNED:
        number_format_u64(room, *(const unsigned *)(const void *)member);
        return room;
    case INFO_FORM_HEX:
        snprintf(room, NUMBER_I64_SPACE, "%llx", (unsigned long long)u64_at(picture, row->member));
        return room;
    case INFO_FORM_I64:
        number_format_i64(room, *(const int64_t *)(const void *)member);
        return room;
    case INFO_FORM_MS:
        number_format_u64(room, u64_at(picture, row->member) / US_PER_MS);
        return room;
    case INFO_FORM_DIFFERENCE:
        number_format_i64(room, (int64_t)(u64_at(picture, row->member) - u64_at(picture, row->other)));
        return room;
    case INFO_FORM_ROUNDED:
        number_format_u64(room, (uint64_t)(double_at(picture, row->member) + 0.5));
        return room;
    default:
        return NULL;
    }
}

static void write_time(struct buffer *text, const struct timeval *time)
{
    buffer_printf(text, "%lld.%06lld", (long long)time->tv_sec, (long long)time->tv_usec);
}

static void write_other_value(struct buffer *text, const struct info_row *row, const void *picture)
{
    char human[NUMBER_DOUBLE_SPACE];

    switch (row->form) {
    case INFO_FORM_HUMAN:
        number_format_bytes_human(human, u64_at(picture, row->member));
        buffer_append_text(text, human);
        break;
    case INFO_FORM_DOUBLE:
        buffer_printf(text, "%.2f", double_at(picture, row->member));
        break;
    case INFO_FORM_RATIO:
        buffer_printf(text, "%.2f", ratio(picture, row));
        break;
    case INFO_FORM_PERCENT:
        buffer_printf(text, "%.2f%%", 100 * ratio(picture, row));
        break;
    case INFO_FORM_TIME:
        write_time(text, (const struct timeval *)(const void *)((const char *)picture + row->member));
        break;
    default:
        row->append(text, picture);
        break;
    }
}

/* ------------------------------------------------------------------------------------------------------ answers -- */

static void write_row(struct buffer *text, const struct placed *placed)
{
    const struct info_row *row = placed->row;
    const void *picture = picture_of_row(placed);
    char room[NUMBER_I64_SPACE];
    const char *plain;

    if (row->wanted != NULL && !row->wanted(picture))
        return;
    if (row->form == INFO_FORM_LINES) {
        row->append(text, picture);
        return;
    }
    buffer_append_text(text, row->name);
    buffer_append_char(text, ':');
    plain = plain_value(row, picture, room);
    if (plain != NULL)
        buffer_append_text(text, plain);
    else
        write_other_value(text, row, picture);
    buffer_append_text(text, "\r\n");
}

static void write_section(struct buffer *text, size_t index)
{
    if (text->size != 0)
        buffer_append_text(text, "\r\n");
    buffer_printf(text, "# %s\r\n", info.sections[index].title);
    for (size_t i = info.ranges[index].begin; i < info.ranges[index].end; i++)
        write_row(text, &info.rows[i]);
}

static void choose(bool wanted[SECTIONS_MOST], struct slice word)
{
    bool all = slice_equal_text_nocase(word, "all") || slice_equal_text_nocase(word, "everything");
    bool usual = slice_equal_text_nocase(word, "default");
    size_t index = slice_equal_text_nocase(word, "module_list") ? section_index(SLICE("modules")) : section_index(word);

    for (size_t i = 0; i < info.section_count; i++) {
        enum info_shown shown = info.sections[i].shown;

        if (i == index || (all && shown <= INFO_SHOWN_BY_ALL) || (usual && shown == INFO_SHOWN_BY_DEFAULT))
            wanted[i] = true;
    }
}

static void take_pictures(const bool wanted[SECTIONS_MOST])
{
    uint64_t sources = 0;

    for (size_t i = 0; i < info.section_count; i++)
        sources |= wanted[i] ? info.ranges[i].sources : 0;
    for (size_t i = 0; i < info.source_count; i++) {
        if ((sources >> i & 1) != 0)
            (void)picture_of(i);
    }
}

void info_write(struct buffer *text, const struct slice *words, size_t word_count)
{
    bool wanted[SECTIONS_MOST] = {false};

    assert(!answer.is_open);
    if (word_count == 0)
        choose(wanted, SLICE("default"));
    for (size_t i = 0; i < word_count; i++)
        choose(wanted, words[i]);
    answer.is_open = true;
    begin_answer();
    take_pictures(wanted);
    for (size_t i = 0; i < info.section_count; i++) {
        if (wanted[i])
            write_section(text, i);
    }
    answer.is_open = false;
}

/* --------------------------------------------------------------------------------------------- report of a crash -- */

/* Which pictures of safe rows there are, by source. */
static uint64_t take_safe_pictures(void)
{
    uint64_t known = 0;

    for (size_t i = 0; i < info.source_count; i++) {
        const struct info_source *source = info.sources[i].source;

        if (source->take_safe != NULL && source->take_safe(picture_at(i), &answer.moment))
            known |= UINT64_C(1) << i;
    }
    return known;
}

static bool is_told(const struct placed *placed, uint64_t known)
{
    return placed->row->is_safe && (placed->source == NO_SOURCE || (known >> placed->source & 1) != 0);
}

/* The thread may have been making an answer when it failed: that ends here. */
void info_tell_safe(void (*title)(const char *title), void (*field)(const char *name, const char *value))
{
    uint64_t known;

    begin_answer();
    known = take_safe_pictures();
    for (size_t i = 0; i < info.section_count; i++) {
        bool has_title = false;

        for (size_t k = info.ranges[i].begin; k < info.ranges[i].end; k++) {
            const struct placed *placed = &info.rows[k];
            char room[NUMBER_I64_SPACE];

            if (!is_told(placed, known))
                continue;
            if (!has_title)
                title(info.sections[i].title);
            has_title = true;
            field(placed->row->name, plain_value(placed->row, picture_of_row(placed), room));
        }
    }
}
