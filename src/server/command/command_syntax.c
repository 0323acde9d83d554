/* Converts the notation of the documentation to a tree, in two steps.
 *
 * Reading gives items: a literal (upper case), an argument (lower case), or a group in ( ) or [ ] with its
 * alternatives, each a sequence of items. A group "[x ...]" behind the same x makes that x a repeated unit.
 *
 * Building gives nodes: a literal takes the arguments behind it as its value (none: a pure token; one: it becomes the
 * token of that argument; several: of a block of them), a choice becomes a oneof, a group of several items a block.
 *
 * The notation has no names for choices and blocks and no types. Names come from a table of common choices, or are made
 * of the names inside. Types come from the name of the argument. So a name may differ from that of Redis if only its
 * documentation knows the name. */
#include "server/command/command_syntax.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/mem.h"

#include <string.h>

/* --- reading --- */

enum item_kind { ITEM_LITERAL, ITEM_ARGUMENT, ITEM_GROUP };

struct sequence {
    struct item *items;
    size_t count, capacity;
    bool repeats; /* ended by "..." */
};

struct item {
    enum item_kind kind;
    struct slice text; /* as written */
    bool optional, multiple, multiple_token;
    struct {
        struct sequence *items;
        size_t count, capacity;
    } alternatives; /* GROUP */
};

struct reader {
    const char *at, *end;
};

static void release_sequence(struct sequence *sequence)
{
    for (size_t i = 0; i < sequence->count; i++) {
        for (size_t k = 0; k < sequence->items[i].alternatives.count; k++)
            release_sequence(&sequence->items[i].alternatives.items[k]);
        ARRAY_FINI(&sequence->items[i].alternatives);
    }
    ARRAY_FINI(sequence);
}

static bool is_stop(char c)
{
    return c == ']' || c == ')' || c == '|';
}

/* Units of distance and the like are literals that are written in lower case. */
static bool is_lower_literal(struct slice word)
{
    static const char *const words[] = {"m",      "km",    "ft",      "mi",     "normal",
                                        "master", "slave", "replica", "pubsub", "primary"};

    for (size_t i = 0; i < countof(words); i++) {
        if (slice_equal_text(word, words[i]))
            return true;
    }
    return false;
}

static bool is_literal(struct slice word)
{
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] >= 'a' && word.data[i] <= 'z')
            return is_lower_literal(word);
    }
    return true;
}

static void read_sequence(struct reader *reader, struct sequence *sequence);

static void read_alternatives(struct reader *reader, struct item *group)
{
    do {
        struct sequence *alternative = ARRAY_PUSH(&group->alternatives);

        reader->at++; /* the bracket, or the bar */
        *alternative = (struct sequence){0};
        read_sequence(reader, alternative);
    } while (reader->at < reader->end && *reader->at == '|');
    if (reader->at < reader->end)
        reader->at++;
}

/* "x [x ...]": the items for x become one repeated unit. False: the items before are not x. */
static bool join_repeated(struct sequence *sequence, struct item *group)
{
    struct sequence *inner = &group->alternatives.items[0];
    struct item unit = {.kind = ITEM_GROUP, .multiple = true};
    struct sequence *joined;
    size_t first;

    if (group->alternatives.count != 1 || !inner->repeats || inner->count == 0 || inner->count > sequence->count)
        return false;
    first = sequence->count - inner->count;
    for (size_t i = 0; i < inner->count; i++) {
        if (!slice_equal(inner->items[i].text, sequence->items[first + i].text))
            return false;
    }
    unit.multiple_token = inner->items[0].kind == ITEM_LITERAL;
    unit.text = sequence->items[first].text;
    release_sequence(inner);
    ARRAY_FINI(&group->alternatives);
    joined = ARRAY_PUSH(&unit.alternatives);
    *joined = (struct sequence){0};
    for (size_t i = first; i < sequence->count; i++)
        *ARRAY_PUSH(joined) = sequence->items[i];
    sequence->count = first;
    *ARRAY_PUSH(sequence) = unit;
    return true;
}

static void read_group(struct reader *reader, struct sequence *sequence)
{
    struct item group = {.kind = ITEM_GROUP, .optional = *reader->at == '['};
    const char *begin = reader->at;

    read_alternatives(reader, &group);
    group.text = slice_make(begin, (size_t)(reader->at - begin));
    if (group.optional && join_repeated(sequence, &group))
        return;
    if (group.alternatives.items[0].repeats) {
        group.multiple = true;
        group.multiple_token = group.alternatives.items[0].count != 0 &&
                               group.alternatives.items[0].items[0].kind == ITEM_LITERAL;
    }
    *ARRAY_PUSH(sequence) = group;
}

static void read_word(struct reader *reader, struct sequence *sequence)
{
    const char *begin = reader->at;
    struct slice word;

    while (reader->at < reader->end && *reader->at != ' ' && !is_stop(*reader->at))
        reader->at++;
    word = slice_make(begin, (size_t)(reader->at - begin));
    if (slice_equal_text(word, "..."))
        sequence->repeats = true;
    else
        *ARRAY_PUSH(sequence) = (struct item){.kind = is_literal(word) ? ITEM_LITERAL : ITEM_ARGUMENT, .text = word};
}

static void read_sequence(struct reader *reader, struct sequence *sequence)
{
    while (reader->at < reader->end && !is_stop(*reader->at)) {
        if (*reader->at == ' ')
            reader->at++;
        else if (*reader->at == '[' || *reader->at == '(')
            read_group(reader, sequence);
        else
            read_word(reader, sequence);
    }
}

/* --- names and types --- */

struct naming {
    const char *from, *name;
};

static const char *lookup(const struct naming *table, size_t count, struct slice from)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal_text(from, table[i].from))
            return table[i].name;
    }
    return NULL;
}

static const struct naming token_names[] = {
    {"ALPHA", "sorting"},   {"CH", "change"}, {"INCR", "increment"}, {"=", "equal"},
    {"~", "approximately"}, {"*", "auto_id"}, {"$", "new_id"},       {"\"\"", "empty_string"},
};

/* By the tokens or names of the alternatives. */
/* clang-format off */
static const struct naming choice_names[] = {
    {"NX|XX", "condition"}, {"NX|XX|IFEQ|IFNE|IFDEQ|IFDNE", "condition"}, {"IFEQ|IFNE|IFDEQ|IFDNE", "condition"},
    {"FNX|FXX", "fields_condition"}, {"NX|XX|GT|LT", "condition"}, {"GT|LT", "comparison"}, {"ASYNC|SYNC", "async"},
    {"EX|PX|EXAT|PXAT|PERSIST", "expiration"}, {"EX|PX|EXAT|PXAT|KEEPTTL", "expiration"}, {"ASC|DESC", "order"},
    {"BYINT|BYFLOAT", "increment"}, {"KEEPREF|DELREF|ACKED", "condition"},
    {"FLUSH|APPEND|REPLACE", "policy"}, {"MAXLEN|MINID", "strategy"}, {"=|~", "operator"}, {"*|id", "id_or_auto"},
    {"BYTE|BIT", "index_unit"}, {"M|KM|FT|MI", "unit"}, {"FROMMEMBER|FROMLONLAT", "from"},
    {"COUNT|EXACTLY", "selector"}, {"OBO|BULK", "ordering"},
    {"BEFORE|AFTER", "where"}, {"LEFT|RIGHT", "where"}, {"MIN|MAX", "where"}, {"id|$", "id"},
    {"MODULE|ACLCAT|PATTERN", "filterby"}, {"SUM|MIN|MAX", "aggregate"}, {"SUM|MIN|MAX|COUNT", "aggregate"},
    {"BYSCORE|BYLEX", "sortby"},
    {"IMPORTING|MIGRATING|NODE|STABLE", "subcommand"}, {"FORCE|TAKEOVER", "options"}, {"count|RESET", "operation"},
    {"YES|SYNC|NO", "mode"}, {"YES|NO", "mode"}, {"SILENT|FAIL|FATAL", "mode"},
    {"WRITE|ALL", "mode"}, {"AUTH|AUTH2", "authentication"},
    {"ON|OFF", "status"}, {"ON|OFF|SKIP", "on_off_skip"}, {"host_port|NO_ONE", "args"},
    {"key|\"\"", "key_or_empty_string"}, {"ID|TYPE|USER|ADDR|LADDR|SKIPME|MAXAGE", "new-format"},
    {"ip:port|new-format", "filter"}, {"NORMAL|MASTER|SLAVE|REPLICA|PUBSUB", "normal_master_slave_pubsub"},
    {"NOSAVE|SAVE", "nosave_save"}, {"HARD|SOFT", "hard_soft"}, {"TIMEOUT|ERROR", "timeout_error"},
    {"SLOW|LARGE-REQUEST|LARGE-REPLY", "type"},
};
/* clang-format on */

/* Names of choices and blocks in one command only. */
static const struct {
    const char *command, *from, *name;
} special_names[] = {
    {"no-evict", "status", "enabled"},
    {"no-touch", "status", "enabled"},
    {"import-source", "status", "enabled"},
    {"hello", "protover", "arguments"},
    {"hrandfield", "count", "options"},
    {"zrandmember", "count", "options"},
    {"hsetex", "numfields_field_value", "fields"},
    {"hgetex", "numfields_field", "fields"},
    {"hgetdel", "numfields_field", "fields"},
    {"xnack", "numids_id", "ids"},
    {"geosearch", "radius_unit_width_height_unit_num-vertices_vertex-longitude_vertex-latitude", "by"},
    {"geosearch", "radius_unit", "circle"},
    {"geosearch", "width_height_unit", "box"},
    {"geosearch", "num-vertices_vertex-longitude_vertex-latitude", "polygon"},
    {"geosearch", "vertex-longitude_vertex-latitude", "vertex"},
    {"geosearchstore", "radius_unit_width_height_unit_num-vertices_vertex-longitude_vertex-latitude", "by"},
    {"geosearchstore", "radius_unit", "circle"},
    {"geosearchstore", "width_height_unit", "box"},
    {"geosearchstore", "num-vertices_vertex-longitude_vertex-latitude", "polygon"},
    {"geosearchstore", "vertex-longitude_vertex-latitude", "vertex"},
    {"bitcount", "start_end", "index"},
    {"bitpos", "start", "index"},
    {"bitpos", "end", "end_index"},
    {"bitfield", "encoding_offset_value_encoding_offset_increment", "write_operation"},
    {"bitfield", "wrap_sat_fail_encoding_offset_value_encoding_offset_increment", "write"},
    {"bitfield", "encoding_offset_wrap_sat_fail_encoding_offset_value_encoding_offset_increment", "operation"},
    {"xadd", "strategy_threshold", "trim"},
    {"xadd", "producer_producer_iid", "idmp"},
    {"xtrim", "strategy_threshold", "trim"},
    {"xdelex", "numids_id", "ids"},
    {"xackdel", "numids_id", "ids"},
    {"xpending", "min-idle-time_start_end_count", "filters"},
    {"xread", "key_id", "streams"},
    {"xreadgroup", "key_id", "streams"},
};

/* Types by the names of arguments; all others are strings. */
/* clang-format off */
static const struct naming type_names[] = {
    {"bit", "i"}, {"bits", "i"}, {"client-id", "i"}, {"cluster-bus-port", "i"}, {"config-epoch", "i"},
    {"count", "i"}, {"cursor", "i"}, {"db", "i"}, {"db-index", "i"}, {"index", "i"}, {"index1", "i"},
    {"index2", "i"}, {"decrement", "i"}, {"destination-db", "i"}, {"end", "i"}, {"end-slot", "i"},
    {"entries-added", "i"}, {"entries-read", "i"}, {"frequency", "i"}, {"increment", "i"}, {"len", "i"},
    {"limit", "i"}, {"milliseconds", "i"}, {"ms", "i"}, {"num-matches", "i"}, {"numfields", "i"}, {"numids", "i"},
    {"maxcount", "i"}, {"maxsize", "i"}, {"idle", "i"}, {"k", "i"}, {"ratio", "i"}, {"slot-count", "i"},
    {"numlocal", "i"}, {"duration", "i"},
    {"numkeys", "i"}, {"numreplicas", "i"}, {"offset", "i"}, {"port", "i"}, {"protover", "i"}, {"rank", "i"},
    {"seconds", "i"}, {"shift", "i"}, {"slot", "i"}, {"start", "i"}, {"start-slot", "i"}, {"stop", "i"},
    {"timeout", "i"}, {"ttl", "i"}, {"version", "i"}, {"weight", "i"}, {"maxage", "i"}, {"min-match-len", "i"},
    {"num-vertices", "i"}, {"vertex-latitude", "d"}, {"vertex-longitude", "d"},
    {"height", "d"}, {"width", "d"}, {"latitude", "d"}, {"longitude", "d"}, {"radius", "d"}, {"score", "d"},
    {"float-increment", "d"},
    {"pattern", "p"},
    {"unix-time-seconds", "u"}, {"unix-time-milliseconds", "u"},
    {"key", "k"}, {"key1", "k"}, {"key2", "k"}, {"newkey", "k"}, {"source", "k"}, {"destination", "k"},
    {"destkey", "k"}, {"sourcekey", "k"}, {"src", "k"}, {"dst", "k"},
};
/* clang-format on */

static enum syntax_type type_of_argument(const struct command *command, struct slice name)
{
    const char *group = command->row->group != NULL ? command->row->group : "";
    const char *type = lookup(type_names, countof(type_names), name);
    bool is_float = strstr(command->row->name, "float") != NULL;

    if (slice_equal_text(name, "timeout") && (command->flags & COMMAND_BLOCKING) != 0 && strcmp(group, "generic") != 0)
        return SYNTAX_DOUBLE;
    if (slice_equal_text(name, "increment") && is_float)
        return SYNTAX_DOUBLE;
    if (slice_equal_text(name, "value") && strcmp(group, "bitmap") == 0)
        return SYNTAX_INTEGER;
    if (strcmp(group, "stream") == 0 && (slice_equal_text(name, "start") || slice_equal_text(name, "end")))
        return SYNTAX_STRING;
    if (strcmp(command->row->name, "zrange") == 0 && name.size != 0 && name.data[0] == 's') /* start, stop */
        return SYNTAX_STRING;
    if ((slice_equal_text(name, "min") || slice_equal_text(name, "max")) &&
        (strstr(command->row->name, "score") != NULL || strcmp(command->row->name, "zcount") == 0))
        return SYNTAX_DOUBLE;
    if (slice_equal_text(name, "min-idle-time") &&
        (strcmp(command->row->name, "xpending") == 0 || strcmp(command->row->name, "xreadgroup") == 0))
        return SYNTAX_INTEGER;
    if (type == NULL)
        return SYNTAX_STRING;
    switch (type[0]) {
    case 'i':
        return SYNTAX_INTEGER;
    case 'd':
        return SYNTAX_DOUBLE;
    case 'p':
        return SYNTAX_PATTERN;
    case 'u':
        return SYNTAX_UNIX_TIME;
    default:
        return command->key_spec_count != 0 ? SYNTAX_KEY : SYNTAX_STRING;
    }
}

const char *syntax_type_name(enum syntax_type type)
{
    static const char *const names[] = {
        [SYNTAX_STRING] = "string",    [SYNTAX_INTEGER] = "integer", [SYNTAX_DOUBLE] = "double",
        [SYNTAX_KEY] = "key",          [SYNTAX_PATTERN] = "pattern", [SYNTAX_UNIX_TIME] = "unix-time",
        [SYNTAX_TOKEN] = "pure-token", [SYNTAX_ONEOF] = "oneof",     [SYNTAX_BLOCK] = "block",
    };

    return names[type];
}

/* --- building --- */

struct builder {
    const struct command *command;
    int next_key_spec;
};

static void release_node(struct syntax_node *node)
{
    syntax_release(&node->children);
    mem_free(node->name);
    mem_free(node->token);
    mem_free(node);
}

void syntax_release(struct syntax_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        release_node(list->items[i]);
    ARRAY_FINI(list);
}

static struct syntax_node *make_node(enum syntax_type type)
{
    struct syntax_node *node = mem_alloc_zero(sizeof(*node));

    node->type = type;
    node->key_spec_index = -1;
    return node;
}

static char *lower_copy(struct slice text)
{
    char *copy = mem_copy(text.data, text.size);

    for (size_t i = 0; i < text.size; i++)
        copy[i] = slice_lower(text.data[i]);
    return copy;
}

static char *upper_copy(struct slice text)
{
    char *copy = mem_copy(text.data, text.size);

    for (size_t i = 0; i < text.size; i++)
        copy[i] = (char)(copy[i] >= 'a' && copy[i] <= 'z' ? copy[i] - 'a' + 'A' : copy[i]);
    return copy;
}

static struct syntax_node *build_literal(struct slice word)
{
    struct syntax_node *node = make_node(SYNTAX_TOKEN);
    const char *known = lookup(token_names, countof(token_names), word);

    node->name = known != NULL ? mem_copy_text(known) : lower_copy(word);
    node->token = slice_equal_text(word, "\"\"") ? mem_copy_text("") : upper_copy(word);
    return node;
}

static bool patterns_are_keys(const struct command *command)
{
    return command->key_spec_count > 1 && command->key_specs[1].begin == KEY_BEGIN_UNKNOWN;
}

static struct syntax_node *build_argument(struct builder *builder, struct slice word)
{
    const struct command *command = builder->command;
    struct syntax_node *node = make_node(type_of_argument(command, word));

    node->name = mem_copy(word.data, word.size);
    if (node->type == SYNTAX_KEY) {
        int last = (int)command->key_spec_count - 1;

        node->key_spec_index = MIN(builder->next_key_spec, last);
        builder->next_key_spec++;
    } else if (node->type == SYNTAX_PATTERN && patterns_are_keys(command)) {
        node->key_spec_index = 1; /* SORT's patterns name keys that depend on values */
        builder->next_key_spec = 2;
    }
    return node;
}

static char *joined_names(const struct syntax_list *list)
{
    struct buffer text = {0};

    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i]->optional && text.size != 0)
            continue;
        if (text.size != 0)
            buffer_append_char(&text, '_');
        buffer_append_text(&text, list->items[i]->name);
    }
    return buffer_take(&text, &(size_t){0});
}

static struct syntax_node *build_block(struct syntax_list *children)
{
    struct syntax_node *node = make_node(SYNTAX_BLOCK);

    node->name = joined_names(children);
    node->children = *children;
    *children = (struct syntax_list){0};
    return node;
}

/* The node itself if there is just one. */
static struct syntax_node *one_node(struct syntax_list *list)
{
    struct syntax_node *node;

    if (list->count != 1)
        return build_block(list);
    node = list->items[0];
    ARRAY_FINI(list);
    return node;
}

static char *choice_name(const struct syntax_list *choices)
{
    struct buffer text = {0};
    const char *known;
    char *name;

    for (size_t i = 0; i < choices->count; i++) {
        const struct syntax_node *choice = choices->items[i];

        buffer_append_text(&text, i == 0 ? "" : "|");
        buffer_append_text(&text, choice->token == NULL      ? choice->name
                                  : choice->token[0] != '\0' ? choice->token
                                                             : "\"\"");
    }
    known = lookup(choice_names, countof(choice_names), buffer_slice(&text));
    name = known != NULL ? mem_copy_text(known) : joined_names(choices);
    buffer_fini(&text);
    return name;
}

static void build_sequence(struct builder *builder, const struct sequence *sequence, struct syntax_list *list);

static struct syntax_node *build_group(struct builder *builder, const struct item *item)
{
    struct syntax_list parts = {0};
    struct syntax_node *node;

    if (item->alternatives.count == 1) {
        build_sequence(builder, &item->alternatives.items[0], &parts);
        node = one_node(&parts);
    } else {
        node = make_node(SYNTAX_ONEOF);
        for (size_t i = 0; i < item->alternatives.count; i++) {
            build_sequence(builder, &item->alternatives.items[i], &parts);
            *ARRAY_PUSH(&node->children) = one_node(&parts);
        }
        node->name = choice_name(&node->children);
    }
    node->optional = node->optional || item->optional;
    node->multiple = node->multiple || item->multiple;
    node->multiple_token = node->multiple_token || item->multiple_token;
    return node;
}

/* The items that a literal may take as its value: arguments, repeated ones, and choices that are not optional. */
static bool is_value(const struct item *item)
{
    if (item->kind == ITEM_ARGUMENT)
        return true;
    return item->kind == ITEM_GROUP && !item->optional && !item->multiple_token;
}

static struct syntax_node *build_item(struct builder *builder, const struct item *item)
{
    return item->kind == ITEM_GROUP ? build_group(builder, item) : build_argument(builder, item->text);
}

static void set_token(struct syntax_node *node, char *token)
{
    mem_free(node->token);
    node->token = token;
}

/* A literal and `count` values behind it. */
static void build_with_token(struct builder *builder, const struct item *items, size_t count, struct syntax_list *list)
{
    struct syntax_list values = {0};
    bool has_choice = false;
    char *token = upper_copy(items[0].text);

    for (size_t i = 1; i <= count; i++) {
        *ARRAY_PUSH(&values) = build_item(builder, &items[i]);
        has_choice = has_choice || values.items[i - 1]->type == SYNTAX_ONEOF;
    }
    if (count > 1 && has_choice) {
        set_token(values.items[0], token);
        for (size_t i = 0; i < count; i++)
            *ARRAY_PUSH(list) = values.items[i];
        ARRAY_FINI(&values);
        return;
    }
    *ARRAY_PUSH(list) = one_node(&values);
    set_token(list->items[list->count - 1], token);
}

static void build_sequence(struct builder *builder, const struct sequence *sequence, struct syntax_list *list)
{
    for (size_t i = 0; i < sequence->count; i++) {
        const struct item *item = &sequence->items[i];
        size_t values = 0;

        if (item->kind != ITEM_LITERAL) {
            *ARRAY_PUSH(list) = build_item(builder, item);
            continue;
        }
        while (i + values + 1 < sequence->count && is_value(&sequence->items[i + values + 1]))
            values++;
        if (values == 0)
            *ARRAY_PUSH(list) = build_literal(item->text);
        else
            build_with_token(builder, item, values, list);
        i += values;
    }
}

/* --- since when --- */

static struct slice word_at(struct slice *text)
{
    const char *blank = text->size == 0 ? NULL : memchr(text->data, ' ', text->size);
    struct slice word = slice_make(text->data, blank != NULL ? (size_t)(blank - text->data) : text->size);

    *text = slice_skip(*text, blank != NULL ? word.size + 1 : word.size);
    return word;
}

static bool is_called(const struct syntax_node *node, struct slice name)
{
    return slice_equal_text(name, node->name) || (node->token != NULL && slice_equal_text(name, node->token));
}

static void set_since(struct syntax_list *list, struct slice name, struct slice version, bool deprecated)
{
    for (size_t i = 0; i < list->count; i++) {
        struct syntax_node *node = list->items[i];

        if (is_called(node, name) && deprecated)
            node->deprecated_since = version;
        else if (is_called(node, name))
            node->since = version;
        else
            set_since(&node->children, name, version, deprecated);
    }
}

/* "GET:6.2.0 condition:2.6.12", and "name:deprecated 2.8.12". */
static void apply_since(struct syntax_list *list, struct slice text)
{
    while (text.size != 0) {
        struct slice word = word_at(&text);
        const char *colon = word.size == 0 ? NULL : memrchr(word.data, ':', word.size);
        struct slice name, version;

        if (colon == NULL)
            continue;
        name = slice_make(word.data, (size_t)(colon - word.data));
        version = slice_skip(word, name.size + 1);
        if (slice_equal_text(version, "deprecated"))
            set_since(list, name, word_at(&text), true);
        else
            set_since(list, name, version, false);
    }
}

/* Two choices of the same kind: the first says from where, the second where to. */
static void name_directions(struct syntax_list *list)
{
    struct syntax_node *first = NULL;

    for (size_t i = 0; i < list->count; i++) {
        struct syntax_node *node = list->items[i];

        if (node->type != SYNTAX_ONEOF || strcmp(node->name, "where") != 0)
            continue;
        if (first == NULL) {
            first = node;
            continue;
        }
        mem_free(first->name);
        mem_free(node->name);
        first->name = mem_copy_text("wherefrom");
        node->name = mem_copy_text("whereto");
    }
}

static void name_specially(const struct command *command, struct syntax_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct syntax_node *node = list->items[i];

        for (size_t k = 0; node->children.count != 0 && k < countof(special_names); k++) {
            if (strcmp(command->row->name, special_names[k].command) != 0 ||
                strcmp(node->name, special_names[k].from) != 0)
                continue;
            mem_free(node->name);
            node->name = mem_copy_text(special_names[k].name);
            break;
        }
        name_specially(command, &node->children);
    }
}

void syntax_parse(const struct command *command, struct syntax_list *list)
{
    struct slice text = slice_from_text(command->row->syntax != NULL ? command->row->syntax : "");
    struct builder builder = {.command = command};
    struct sequence sequence = {0};
    struct reader reader;

    *list = (struct syntax_list){0};
    if (command->subcommand_count != 0)
        return;
    (void)word_at(&text); /* the name */
    if (command->container != NULL)
        (void)word_at(&text);
    reader = (struct reader){text.data, text.data + text.size};
    read_sequence(&reader, &sequence);
    build_sequence(&builder, &sequence, list);
    release_sequence(&sequence);
    name_directions(list);
    name_specially(command, list);
    if (command->row->arg_since != NULL)
        apply_since(list, slice_from_text(command->row->arg_since));
}
