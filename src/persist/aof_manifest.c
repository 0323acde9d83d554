#include "persist/aof_manifest.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/words.h"

#include <stdio.h>
#include <string.h>

static const char not_the_format[] = "Invalid AOF manifest file format";

/* -------------------------------------------------------------------------------------------------------- parts -- */

static struct aof_part *insert(struct aof_manifest *manifest, uint32_t at, char *name, uint64_t sequence,
                               enum aof_part_type type)
{
    assert(at <= manifest->count);
    ARRAY_RESERVE(manifest, 1);
    memmove(&manifest->items[at + 1], &manifest->items[at], (manifest->count - at) * sizeof(struct aof_part));
    manifest->items[at] = (struct aof_part){name, sequence, type};
    manifest->count++;
    return &manifest->items[at];
}

/* The index of the first part of none of these types; the types have the order base, history, increments. */
static uint32_t end_of(const struct aof_manifest *manifest, enum aof_part_type type)
{
    uint32_t at = 0;

    while (at < manifest->count && (manifest->items[at].type == AOF_BASE || manifest->items[at].type == type ||
                                    (type == AOF_INCREMENT && manifest->items[at].type == AOF_HISTORY)))
        at++;
    return at;
}

static char *copy_slice(struct slice text)
{
    char *copy = mem_alloc(text.size + 1);

    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return copy;
}

static char *make_name(const char *name, uint64_t sequence, const char *suffix)
{
    struct buffer text = {0};
    char *made;

    buffer_printf(&text, "%s.%llu.%s", name, (unsigned long long)sequence, suffix);
    made = copy_slice(buffer_slice(&text));
    buffer_fini(&text);
    return made;
}

const struct aof_part *aof_manifest_base(const struct aof_manifest *manifest)
{
    return manifest->count != 0 && manifest->items[0].type == AOF_BASE ? &manifest->items[0] : NULL;
}

const struct aof_part *aof_manifest_last_increment(const struct aof_manifest *manifest)
{
    const struct aof_part *last = manifest->count != 0 ? &manifest->items[manifest->count - 1] : NULL;

    return last != NULL && last->type == AOF_INCREMENT ? last : NULL;
}

uint32_t aof_manifest_count(const struct aof_manifest *manifest, enum aof_part_type type)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < manifest->count; i++)
        count += manifest->items[i].type == type;
    return count;
}

void aof_manifest_copy(struct aof_manifest *to, const struct aof_manifest *from)
{
    assert(to->count == 0);
    *to = (struct aof_manifest){0};
    for (uint32_t i = 0; i < from->count; i++)
        insert(to, i, mem_copy_text(from->items[i].name), from->items[i].sequence, from->items[i].type);
}

void aof_manifest_fini(struct aof_manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->count; i++)
        mem_free(manifest->items[i].name);
    mem_free(manifest->items);
    *manifest = (struct aof_manifest){0};
}

/* ------------------------------------------------------------------------------------------------------ parsing -- */

static bool is_path(struct slice name)
{
    return name.size == 0 || memchr(name.data, '/', name.size) != NULL || memchr(name.data, '\0', name.size) != NULL ||
           slice_equal_text(name, ".") || slice_equal_text(name, "..");
}

/* The pairs of a line; NULL: fine. */
static const char *parse_pairs(const struct words *words, struct slice *name, uint64_t *sequence, char *type)
{
    if (words->count < 6 || words->count % 2 != 0)
        return not_the_format;
    for (size_t i = 0; i < words->count; i += 2) {
        struct slice value = words->items[i + 1];

        if (slice_equal_text_nocase(words->items[i], "file")) {
            *name = value;
            if (is_path(value))
                return "File can't be a path, just a filename";
        } else if (slice_equal_text_nocase(words->items[i], "seq")) {
            if (!number_parse_u64(value, sequence) || *sequence == 0 || *sequence > AOF_MANIFEST_SEQUENCE_MOST)
                return not_the_format;
        } else if (slice_equal_text_nocase(words->items[i], "type")) {
            *type = value.size == 1 ? value.data[0] : 0;
            if (*type != AOF_BASE && *type != AOF_INCREMENT && *type != AOF_HISTORY)
                return "Unknown AOF file type";
        }
    }
    return name->size == 0 || *sequence == 0 || *type == 0 ? not_the_format : NULL;
}

static const char *parse_line(struct aof_manifest *manifest, struct slice line)
{
    const struct aof_part *last = aof_manifest_last_increment(manifest);
    struct slice name = SLICE_EMPTY;
    struct words words = {0};
    uint64_t sequence = 0;
    char type = 0;
    const char *problem;

    if (line.size != 0 && memchr(line.data, '\0', line.size) != NULL)
        return not_the_format; /* the words would end there */
    problem = words_split(line, &words) ? parse_pairs(&words, &name, &sequence, &type) : not_the_format;
    if (problem == NULL && type == AOF_BASE && aof_manifest_base(manifest) != NULL)
        problem = "Found duplicate base file information";
    if (problem == NULL && type == AOF_INCREMENT && last != NULL && sequence <= last->sequence)
        problem = "Found a non-monotonic sequence number";
    if (problem == NULL)
        insert(manifest, type == AOF_BASE ? 0 : end_of(manifest, (enum aof_part_type)type), copy_slice(name), sequence,
               (enum aof_part_type)type);
    words_fini(&words);
    return problem;
}

static const char *parse_text(struct aof_manifest *manifest, struct slice text, uint32_t *line_number)
{
    for (const char *at = text.data, *end = text.data + text.size; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at)), *problem;

        ++*line_number;
        if (*at == '#') {
            at = line_end != NULL ? line_end + 1 : end;
            continue;
        }
        if (line_end == NULL || line_end - at >= AOF_MANIFEST_LINE_BYTES)
            return "The AOF manifest file contains too long line";
        problem = parse_line(manifest, slice_make(at, (size_t)(line_end - at)));
        if (problem != NULL)
            return problem;
        at = line_end + 1;
    }
    return NULL;
}

enum status aof_manifest_parse(struct aof_manifest *manifest, struct slice text, struct aof_manifest_problem *problem)
{
    *manifest = (struct aof_manifest){0};
    *problem = (struct aof_manifest_problem){0};
    if (text.size == 0)
        problem->text = "Found an empty AOF manifest";
    else
        problem->text = parse_text(manifest, text, &problem->line);
    if (problem->text == NULL)
        return STATUS_OK;
    aof_manifest_fini(manifest);
    return STATUS_INVALID;
}

void aof_manifest_print(const struct aof_manifest *manifest, struct buffer *buffer)
{
    for (uint32_t i = 0; i < manifest->count; i++) {
        const struct aof_part *part = &manifest->items[i];
        struct slice name = slice_from_text(part->name);

        buffer_append_text(buffer, "file ");
        if (words_needs_quote(name))
            words_quote(buffer, name);
        else
            buffer_append_slice(buffer, name);
        buffer_printf(buffer, " seq %llu type %c\n", (unsigned long long)part->sequence, (char)part->type);
    }
}

/* ----------------------------------------------------------------------------------------------------- changing -- */

void aof_manifest_adopt_base(struct aof_manifest *manifest, struct slice name)
{
    assert(aof_manifest_base(manifest) == NULL);
    insert(manifest, 0, copy_slice(name), 1, AOF_BASE);
}

/* History that a new increment of the same number would have the name of. */
static bool was_increment(const struct aof_part *part, const char *name)
{
    char *as_increment;
    bool was;

    if (part->type != AOF_HISTORY)
        return false;
    as_increment = make_name(name, part->sequence, "incr.aof");
    was = strcmp(part->name, as_increment) == 0;
    mem_free(as_increment);
    return was;
}

const struct aof_part *aof_manifest_add_increment(struct aof_manifest *manifest, const char *name)
{
    const struct aof_part *last = aof_manifest_last_increment(manifest);
    uint64_t sequence = 1;

    if (last != NULL)
        sequence = last->sequence + 1;
    for (uint32_t i = 0; i < manifest->count; i++) {
        if (was_increment(&manifest->items[i], name))
            sequence = MAX(sequence, manifest->items[i].sequence + 1);
    }
    assert(last == NULL || sequence > last->sequence);
    return insert(manifest, manifest->count, make_name(name, sequence, "incr.aof"), sequence, AOF_INCREMENT);
}

static uint64_t next_base_sequence(const struct aof_manifest *manifest)
{
    const struct aof_part *base = aof_manifest_base(manifest);

    return base != NULL ? base->sequence + 1 : 1;
}

char *aof_manifest_next_base_name(const struct aof_manifest *manifest, const char *name, bool is_rdb)
{
    return make_name(name, next_base_sequence(manifest), is_rdb ? "base.rdb" : "base.aof");
}

static bool becomes_history(const struct aof_part *part, uint64_t keep_from)
{
    return part->type == AOF_BASE || (part->type == AOF_INCREMENT && part->sequence < keep_from);
}

/* To the end of the other manifest; the name goes with it. */
static void move_part(struct aof_manifest *to, struct aof_part *part, enum aof_part_type type)
{
    insert(to, to->count, part->name, part->sequence, type);
    part->name = NULL;
}

const struct aof_part *aof_manifest_replace_base(struct aof_manifest *manifest, const char *name, bool is_rdb,
                                                 const struct aof_part *first)
{
    uint64_t keep_from = first != NULL ? first->sequence : UINT64_MAX;
    struct aof_manifest before = *manifest;

    assert(first == NULL || first->type == AOF_INCREMENT);
    *manifest = (struct aof_manifest){0};
    insert(manifest, 0, aof_manifest_next_base_name(&before, name, is_rdb), next_base_sequence(&before), AOF_BASE);
    for (uint32_t i = before.count; i-- > 0;) {
        if (becomes_history(&before.items[i], keep_from))
            move_part(manifest, &before.items[i], AOF_HISTORY);
    }
    for (uint32_t i = 0; i < before.count; i++) {
        if (before.items[i].name != NULL)
            move_part(manifest, &before.items[i], before.items[i].type);
    }
    aof_manifest_fini(&before);
    return &manifest->items[0];
}

void aof_manifest_drop_history(struct aof_manifest *manifest)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < manifest->count; i++) {
        if (manifest->items[i].type == AOF_HISTORY)
            mem_free(manifest->items[i].name);
        else
            manifest->items[kept++] = manifest->items[i];
    }
    manifest->count = kept;
}
