#include "tools/cli/docs.h"

#include "base/array.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/words.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* COMMAND DOCS is a map from names to maps. In RESP2 a map is an array of twice as many elements, which resp_reply
 * holds in the same way. */

static bool is_list(const struct resp_reply *reply)
{
    return reply->type == RESP_TYPE_MAP || reply->type == RESP_TYPE_ARRAY || reply->type == RESP_TYPE_SET;
}

static bool is_text(const struct resp_reply *reply)
{
    return reply->text != NULL;
}

/* The value of a name in a map; NULL: none. */
static const struct resp_reply *value_of(const struct resp_reply *map, const char *name)
{
    for (size_t i = 0; i + 1 < map->element_count; i += 2)
        if (is_text(map->elements[i]) && strcmp(map->elements[i]->text, name) == 0)
            return map->elements[i + 1];
    return NULL;
}

static const char *text_of(const struct resp_reply *map, const char *name)
{
    const struct resp_reply *value = value_of(map, name);

    return value != NULL && is_text(value) ? value->text : NULL;
}

static bool has_flag(const struct resp_reply *argument, const char *flag)
{
    const struct resp_reply *flags = value_of(argument, "flags");

    for (size_t i = 0; flags != NULL && is_list(flags) && i < flags->element_count; i++)
        if (is_text(flags->elements[i]) && strcmp(flags->elements[i]->text, flag) == 0)
            return true;
    return false;
}

static void append_argument(struct buffer *out, const struct resp_reply *argument);

static void append_arguments(struct buffer *out, const struct resp_reply *list, const char *between)
{
    for (size_t i = 0; i < list->element_count; i++) {
        if (i > 0)
            buffer_append_text(out, between);
        append_argument(out, list->elements[i]);
    }
}

/* One value: a name, or what the parts of a block or the choices are. */
static void append_value(struct buffer *out, const struct resp_reply *argument)
{
    const char *type = text_of(argument, "type");
    const char *name = text_of(argument, "display_text");
    const struct resp_reply *parts = value_of(argument, "arguments");

    if (name == NULL)
        name = text_of(argument, "display");
    if (name == NULL)
        name = text_of(argument, "name");
    if (parts != NULL && is_list(parts))
        append_arguments(out, parts, type != NULL && strcmp(type, "oneof") == 0 ? "|" : " ");
    else if (name != NULL)
        buffer_append_text(out, name);
}

static void append_argument(struct buffer *out, const struct resp_reply *argument)
{
    const char *type, *token;
    bool is_optional, is_multiple, repeats_token;
    size_t begin, end;

    if (!is_list(argument))
        return;
    type = text_of(argument, "type");
    token = text_of(argument, "token");
    is_optional = has_flag(argument, "optional");
    is_multiple = has_flag(argument, "multiple");
    repeats_token = has_flag(argument, "multiple_token");
    if (is_optional)
        buffer_append_char(out, '[');
    if (type != NULL && strcmp(type, "pure-token") == 0) {
        buffer_append_text(out, token != NULL ? token : "");
    } else {
        begin = out->size;
        if (token != NULL)
            buffer_printf(out, "%s ", token);
        if (!repeats_token)
            begin = out->size;
        append_value(out, argument);
        end = out->size;
        if (is_multiple) {
            buffer_append_text(out, " [");
            buffer_reserve(out, end - begin);
            buffer_append(out, out->data + begin, end - begin);
            buffer_append_text(out, " ...]");
        }
    }
    if (is_optional)
        buffer_append_char(out, ']');
}

static char *copy_of(const char *text)
{
    return mem_copy_text(text != NULL ? text : "");
}

static char *name_of(const char *text)
{
    char *name = mem_copy_text(text);

    for (char *c = name; *c != '\0'; c++)
        *c = (char)(*c == '|' ? ' ' : *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return name;
}

static void add(struct docs *docs, const char *name, const struct resp_reply *map)
{
    const struct resp_reply *arguments = value_of(map, "arguments");
    const struct resp_reply *subcommands = value_of(map, "subcommands");
    struct buffer syntax = {0};
    struct doc *doc = ARRAY_PUSH(docs);
    size_t size;

    if (arguments != NULL && is_list(arguments))
        append_arguments(&syntax, arguments, " ");
    *doc = (struct doc){.name = name_of(name),
                        .summary = copy_of(text_of(map, "summary")),
                        .since = copy_of(text_of(map, "since")),
                        .group = copy_of(text_of(map, "group")),
                        .arguments = buffer_take(&syntax, &size)};
    if (subcommands == NULL || !is_list(subcommands))
        return;
    for (size_t i = 0; i + 1 < subcommands->element_count; i += 2)
        if (is_text(subcommands->elements[i]) && is_list(subcommands->elements[i + 1]))
            add(docs, subcommands->elements[i]->text, subcommands->elements[i + 1]);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct doc *)a)->name, ((const struct doc *)b)->name);
}

void docs_load(struct docs *docs, const struct resp_reply *reply)
{
    docs_fini(docs);
    if (!is_list(reply))
        return;
    for (size_t i = 0; i + 1 < reply->element_count; i += 2)
        if (is_text(reply->elements[i]) && is_list(reply->elements[i + 1]))
            add(docs, reply->elements[i]->text, reply->elements[i + 1]);
    if (docs->count > 0)
        qsort(docs->items, docs->count, sizeof(*docs->items), compare);
}

void docs_fini(struct docs *docs)
{
    for (uint32_t i = 0; i < docs->count; i++) {
        mem_free(docs->items[i].name);
        mem_free(docs->items[i].summary);
        mem_free(docs->items[i].since);
        mem_free(docs->items[i].group);
        mem_free(docs->items[i].arguments);
    }
    ARRAY_FINI(docs);
}

/* ----------------------------------------------------------------------------------------------------- finding -- */

/* How many words the name takes of those given; 0: it is another name. */
static size_t match(const struct doc *doc, const struct slice *words, size_t word_count)
{
    const char *at = doc->name;
    size_t used = 0;

    while (*at != '\0') {
        size_t size = strcspn(at, " ");

        if (used == word_count || !slice_equal_nocase(words[used], slice_make(at, size)))
            return 0;
        used++;
        at += size;
        if (*at == ' ')
            at++;
    }
    return used;
}

static const struct doc *find(const struct docs *docs, const struct slice *words, size_t word_count, size_t *used)
{
    const struct doc *best = NULL;

    *used = 0;
    for (uint32_t i = 0; i < docs->count; i++) {
        size_t size = match(&docs->items[i], words, word_count);

        if (size > *used) {
            best = &docs->items[i];
            *used = size;
        }
    }
    return best;
}

const struct doc *docs_find(const struct docs *docs, const struct slice *words, size_t word_count)
{
    size_t used;

    return find(docs, words, word_count, &used);
}

/* The first argument of the syntax, with its brackets. */
static size_t argument_size(const char *text)
{
    int depth = 0;
    size_t i;

    for (i = 0; text[i] != '\0' && (depth > 0 || text[i] != ' '); i++)
        depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
    return i;
}

void docs_hint(const struct docs *docs, struct slice line, struct buffer *out)
{
    struct words words = {0};
    const struct doc *doc = NULL;
    const char *left;
    bool goes_on = line.size > 0 && line.data[line.size - 1] == ' ';
    size_t used = 0;

    if (words_split(line, &words))
        doc = find(docs, words.items, words.count, &used);
    if (doc != NULL) {
        /* What was typed stands for the arguments that every call has; from the first optional one on all is shown. */
        left = doc->arguments;
        for (size_t typed = words.count - used; typed > 0 && *left != '\0' && *left != '['; typed--) {
            left += argument_size(left);
            if (*left == ' ')
                left++;
        }
        if (*left != '\0' && !goes_on)
            buffer_append_char(out, ' ');
        buffer_append_text(out, left);
    }
    words_fini(&words);
}

/* ------------------------------------------------------------------------------------------------- completing -- */

static const char *const groups[] = {"generic",     "string",       "list",   "set",        "sorted-set", "hash",
                                     "pubsub",      "transactions", "stream", "connection", "server",     "scripting",
                                     "hyperloglog", "cluster",      "geo",    "bitmap",     "sentinel",   "module"};

static char *joined(const char *head, size_t head_size, const char *mark, const char *tail)
{
    struct buffer text = {0};
    size_t size;

    buffer_append(&text, head, head_size);
    buffer_append_text(&text, mark);
    buffer_append_text(&text, tail);
    return buffer_take(&text, &size);
}

char *docs_complete(const struct docs *docs, const char *line, uint32_t index)
{
    bool is_help = strncasecmp(line, "help ", 5) == 0;
    size_t head = is_help ? 5 + strspn(line + 5, " ") : 0;
    const char *typed = line + head;
    size_t size = strlen(typed);

    for (size_t i = 0; is_help && i < countof(groups); i++)
        if (typed[0] == '@' && strncasecmp(groups[i], typed + 1, size - 1) == 0 && index-- == 0)
            return joined(line, head, "@", groups[i]);
    for (uint32_t i = 0; i < docs->count; i++)
        if (strncasecmp(docs->items[i].name, typed, size) == 0 && index-- == 0)
            return joined(line, head, "", docs->items[i].name);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------- help -- */

static void append_help(const struct doc *doc, bool with_group, struct buffer *out)
{
    buffer_printf(out, "\r\n  \x1b[1m%s\x1b[0m \x1b[90m%s\x1b[0m\r\n", doc->name, doc->arguments);
    buffer_printf(out, "  \x1b[33msummary:\x1b[0m %s\r\n", doc->summary);
    buffer_printf(out, "  \x1b[33msince:\x1b[0m %s\r\n", doc->since);
    if (with_group)
        buffer_printf(out, "  \x1b[33mgroup:\x1b[0m %s\r\n", doc->group);
}

/* The name begins with the words. */
static bool begins_with(const struct doc *doc, const struct slice *words, size_t word_count)
{
    const char *at = doc->name;

    for (size_t i = 0; i < word_count; i++) {
        size_t size = strcspn(at, " ");

        if (size == 0 || !slice_equal_nocase(words[i], slice_make(at, size)))
            return false;
        at += size;
        if (*at == ' ')
            at++;
    }
    return true;
}

bool docs_help(const struct docs *docs, const struct slice *words, size_t word_count, struct buffer *out)
{
    size_t before = out->size;

    if (word_count == 1 && words[0].size > 0 && words[0].data[0] == '@') {
        for (uint32_t i = 0; i < docs->count; i++)
            if (slice_equal_text_nocase(slice_skip(words[0], 1), docs->items[i].group))
                append_help(&docs->items[i], false, out);
    } else {
        for (uint32_t i = 0; i < docs->count; i++)
            if (begins_with(&docs->items[i], words, word_count))
                append_help(&docs->items[i], true, out);
    }
    return out->size > before;
}
