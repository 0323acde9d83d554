#include "metrics/exposition.h"

#include "base/mem.h"
#include "base/number.h"
#include "base/tick.h"
#include "metrics/exposition_rows.h"
#include "server/command/command.h"
#include "server/observe/info.h"
#include "server/observe/timing.h"

#include <stdio.h>
#include <string.h>

enum { BUCKET_BITS_MOST = 24, NS_PER_US = 1000 }; /* the largest bucket: 16.8 s */

/* A field of INFO. */
struct field {
    struct slice name, value;
};

struct fields {
    struct field *items;
    size_t count;
};

/* ---------------------------------------------------------------------------------------------------------- INFO -- */

/* Cuts off and returns what stands before the byte; all, if it is not there. */
static struct slice cut(struct slice *rest, char at)
{
    const char *found = rest->size != 0 ? memchr(rest->data, at, rest->size) : NULL;
    struct slice before = slice_make(rest->data, found != NULL ? (size_t)(found - rest->data) : rest->size);

    *rest = slice_skip(*rest, before.size + (found != NULL));
    return before;
}

static void read_fields(struct fields *fields, struct slice info)
{
    size_t lines = 1;

    for (size_t i = 0; i < info.size; i++)
        lines += info.data[i] == '\n';
    *fields = (struct fields){.items = mem_alloc(lines * sizeof(*fields->items))};
    while (info.size != 0) {
        struct slice value = cut(&info, '\n'), name = cut(&value, ':');

        if (value.size != 0 && value.data[value.size - 1] == '\r')
            value.size--;
        if (name.size != 0 && name.data[0] != '#' && name.data[0] != '\r')
            fields->items[fields->count++] = (struct field){name, value};
    }
}

static struct slice field_value(const struct fields *fields, struct slice name) /* empty: there is none */
{
    for (size_t i = 0; i < fields->count; i++) {
        if (slice_equal(fields->items[i].name, name))
            return fields->items[i].value;
    }
    return SLICE_EMPTY;
}

/* Of a value "a=1,b=2"; empty: there is none. */
static struct slice part_value(struct slice value, struct slice part)
{
    while (value.size != 0) {
        struct slice text = cut(&value, ','), name = cut(&text, '=');

        if (slice_equal(name, part))
            return text;
    }
    return SLICE_EMPTY;
}

static bool is_digits(struct slice text)
{
    size_t i = 0;

    while (i < text.size && text.data[i] >= '0' && text.data[i] <= '9')
        i++;
    return i == text.size && i != 0;
}

/* Does the row speak of this field? `behind`: what stands in place of '#' or '*'. */
static bool names_field(const struct metric_row *row, struct slice name, struct slice *behind)
{
    struct slice pattern = slice_from_text(row->field);
    char last = pattern.data[pattern.size - 1];

    *behind = SLICE_EMPTY;
    if (last != '#' && last != '*')
        return slice_equal(name, pattern);
    pattern.size--;
    if (!slice_starts_with(name, pattern))
        return false;
    *behind = slice_skip(name, pattern.size);
    return last == '*' || is_digits(*behind);
}

/* ------------------------------------------------------------------------------------------------------- samples -- */

struct writer {
    struct buffer *text;
    const char *last; /* the metric whose head was written last */
};

static void write_head(struct writer *writer, const char *name, const char *type, const char *help)
{
    if (writer->last != NULL && strcmp(writer->last, name) == 0)
        return;
    writer->last = name;
    buffer_printf(writer->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Texts of others are in it, as the codes of errors that scripts make up. One byte that is no text, or two texts that
 * become the same, and a scraper would refuse the whole answer: so such bytes are written as %XX. */
static void write_label_value(struct buffer *text, struct slice value)
{
    buffer_append_char(text, '"');
    for (size_t i = 0; i < value.size; i++) {
        unsigned char c = (unsigned char)value.data[i];

        if (c < ' ' || c > '~' || c == '%') {
            buffer_printf(text, "%%%02X", c);
            continue;
        }
        if (c == '\\' || c == '"')
            buffer_append_char(text, '\\');
        buffer_append_char(text, (char)c);
    }
    buffer_append_char(text, '"');
}

/* What a row makes a sample of. */
struct found {
    const struct fields *fields;
    struct slice name, value, behind, part;
};

static struct slice label_value(const struct found *found, struct slice from)
{
    static const char other[] = "field:";

    if (slice_equal_text(from, "*"))
        return found->behind;
    if (slice_equal_text(from, "**"))
        return found->name;
    if (slice_equal_text(from, "<"))
        return found->part;
    if (from.size >= 2 && from.data[0] == '\'')
        return slice_make(from.data + 1, from.size - 2);
    if (slice_starts_with(from, SLICE("field:")))
        return field_value(found->fields, slice_skip(from, sizeof(other) - 1));
    return part_value(found->value, from);
}

static void write_labels(struct buffer *text, const struct metric_row *row, const struct found *found)
{
    struct slice words = slice_from_text(row->labels != NULL ? row->labels : "");

    for (char before = '{'; words.size != 0; before = ',') {
        struct slice from = cut(&words, ' '), label = cut(&from, '=');

        buffer_append_char(text, before);
        buffer_append_slice(text, label);
        buffer_append_char(text, '=');
        write_label_value(text, label_value(found, from));
    }
    if (row->labels != NULL)
        buffer_append_char(text, '}');
}

static void write_number(struct buffer *text, double number)
{
    buffer_printf(text, " %.15g\n", number);
}

static void write_sample(struct writer *writer, const struct metric_row *row, const struct found *found,
                         struct slice value)
{
    static const char *const types[] =
        {[METRIC_GAUGE] = "gauge", [METRIC_COUNTER] = "counter", [METRIC_SUMMARY] = "summary"};
    double number = 0;

    if (row->is != NULL)
        number = strcmp(row->is, "*") == 0 || slice_equal_text(value, row->is);
    else if (!number_parse_double(value, &number))
        return; /* "unavailable", or no such part */
    write_head(writer, row->name, types[row->type], row->help);
    buffer_append_text(writer->text, row->name);
    write_labels(writer->text, row, found);
    write_number(writer->text, row->divisor != 0 ? number / row->divisor : number);
}

/* Percentiles: the part "p99.9" is the quantile 0.999. */
static void write_each_part(struct writer *writer, const struct metric_row *row, struct found *found)
{
    struct slice parts = found->value;

    while (parts.size != 0) {
        struct slice value = cut(&parts, ','), name = cut(&value, '=');
        char quantile[NUMBER_DOUBLE_SPACE];
        double percent;

        if (name.size == 0 || !number_parse_double(slice_skip(name, 1), &percent))
            continue;
        snprintf(quantile, sizeof(quantile), "%.10g", percent / 100);
        found->part = slice_from_text(quantile);
        write_sample(writer, row, found, value);
    }
}

static void write_row(struct writer *writer, const struct metric_row *row, const struct fields *fields)
{
    for (size_t i = 0; i < fields->count; i++) {
        struct found found = {.fields = fields, .name = fields->items[i].name, .value = fields->items[i].value};

        if (!names_field(row, found.name, &found.behind))
            continue;
        if (row->part == NULL)
            write_sample(writer, row, &found, found.value);
        else if (strcmp(row->part, "*") == 0)
            write_each_part(writer, row, &found);
        else
            write_sample(writer, row, &found, part_value(found.value, slice_from_text(row->part)));
    }
}

void exposition_write_from(struct buffer *text, struct slice info)
{
    struct writer writer = {.text = text};
    struct fields fields;

    read_fields(&fields, info);
    for (size_t i = 0; i < metric_row_count; i++)
        write_row(&writer, &metric_rows[i], &fields);
    mem_free(fields.items);
}

/* ---------------------------------------------------------------------------------------------------- histograms -- */

/* Calls without a duration are in none of them. */
static void write_histogram(struct buffer *text, struct slice command, const struct command_times *times)
{
    static const char name[] = "redis_commands_latencies_usec";
    unsigned long long count = histogram_count(&times->ticks);

    for (unsigned bits = 0; bits <= BUCKET_BITS_MOST; bits++) {
        uint64_t most = MIN(tick_from_ns((UINT64_C(1) << bits) * NS_PER_US), HISTOGRAM_MOST);

        buffer_printf(text, "%s_bucket{cmd=", name);
        write_label_value(text, command);
        buffer_printf(text, ",le=\"%llu\"} %llu\n", 1ULL << bits,
                      (unsigned long long)histogram_count_upto(&times->ticks, most));
    }
    buffer_printf(text, "%s_bucket{cmd=", name);
    write_label_value(text, command);
    buffer_printf(text, ",le=\"+Inf\"} %llu\n%s_sum{cmd=", count, name);
    write_label_value(text, command);
    buffer_printf(text, "} %llu\n%s_count{cmd=", (unsigned long long)timing_usec(times), name);
    write_label_value(text, command);
    buffer_printf(text, "} %llu\n", count);
}

static void write_histograms(struct buffer *text)
{
    struct writer writer = {.text = text};

    for (uint32_t id = 0; id < command_count(); id++) {
        struct command_times *times = timing_collect(id);

        if (times != NULL && histogram_count(&times->ticks) != 0) {
            write_head(&writer, "redis_commands_latencies_usec", "histogram",
                       "Durations of a command in microseconds, since the start or CONFIG RESETSTAT.");
            write_histogram(text, command_at(id)->full_name, times);
        }
        mem_free(times);
    }
}

void exposition_write(struct buffer *text)
{
    static const struct slice everything[] = {SLICE("everything")};
    struct buffer info = {0};

    info_write(&info, everything, countof(everything));
    buffer_append_text(text, "# HELP redis_up Whether the server answers.\n# TYPE redis_up gauge\nredis_up 1\n");
    exposition_write_from(text, buffer_slice(&info));
    write_histograms(text);
    buffer_fini(&info);
}
