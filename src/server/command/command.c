/* The registry of commands: rows become struct command, found by name.
 *
 * Commands are in one array: first the top-level commands in the order of their rows, then the subcommands, grouped by
 * container. A command's id is its index there. Two indexes lead to it, each an open hash table:
 *
 *   top level    slots of {first 16 bytes of the lower-cased name, size, command}: one request, one probe. The name is
 *                read as two words and lower-cased eight bytes at a time. With a quarter of the slots in use a probe
 *                finds its command at once in 9 of 10 cases. Names have up to 20 bytes; bytes after the 16th are
 *                compared with the full name.
 *   subcommands  the same with the container's id mixed into the hash. */
#include "server/command/command.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/panic.h"
#include "server/command/command_words.h"
#include "server/command/operation.h"

#include <stdio.h>
#include <string.h>

enum { NAME_WORD_BYTES = 8, NAME_KEPT_BYTES = 2 * NAME_WORD_BYTES, NAME_SIZE_MOST = 255, SLOTS_LEAST = 64 };

struct slot {
    uint64_t low, high;            /* the name's first 16 bytes, lower case, zeros behind it */
    const struct command *command; /* NULL: empty */
    uint32_t size;                 /* of the name */
    uint32_t container;            /* its id + 1; 0: top level */
};

static struct {
    struct command *commands; /* all of it is constant after setup */
    uint32_t count, top_count;
    struct slot *slots;
    uint32_t slot_mask;
    struct key_spec *specs; /* of all commands, one block */
} registry;

/* --- names as words --- */

static inline uint64_t load_up_to_8(const char *bytes, size_t size)
{
    uint64_t word = 0;

    if (size >= 4) {
        uint32_t first, last;

        memcpy(&first, bytes, 4);
        memcpy(&last, bytes + size - 4, 4);
        return first | (uint64_t)last << (8 * (size - 4)); /* the overlap says the same twice */
    }
    if (size != 0) {
        const unsigned char *at = (const unsigned char *)bytes;

        word = at[0] | (uint64_t)at[size / 2] << (8 * (size / 2)) | (uint64_t)at[size - 1] << (8 * (size - 1));
    }
    return word;
}

/* Lower-cases the eight bytes of a word: bit 5 is set in bytes from 'A' to 'Z', found by additions that carry into the
 * top bit of each byte. */
static inline uint64_t lower_8(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t seven = word & (ones * 0x7f);
    uint64_t from_a = seven + ones * (0x80 - 'A');
    uint64_t past_z = seven + ones * (0x7f - 'Z');

    return word | ((from_a & ~past_z & ~word & (ones * 0x80)) >> 2);
}

static ALWAYS_INLINE struct slot slot_of_name(struct slice name, uint32_t container)
{
    struct slot slot = {.size = (uint32_t)name.size, .container = container};

    if (LIKELY(name.size <= NAME_WORD_BYTES)) {
        slot.low = lower_8(load_up_to_8(name.data, name.size));
    } else {
        size_t more = MIN(name.size, (size_t)NAME_KEPT_BYTES) - NAME_WORD_BYTES;

        memcpy(&slot.low, name.data, NAME_WORD_BYTES);
        slot.low = lower_8(slot.low);
        slot.high = lower_8(load_up_to_8(name.data + NAME_WORD_BYTES, more));
    }
    return slot;
}

static inline uint32_t slot_hash(const struct slot *slot)
{
    uint64_t mixed = slot->low ^ (slot->high << 23 | slot->high >> 41) ^ (uint64_t)slot->container << 47;

    mixed *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 40);
}

#define KEY_OF_OPERATIONS UINT32_MAX /* in place of a container's: clients do not find them */

static uint32_t container_key(const struct command *container)
{
    return container != NULL ? container->id + 1 : 0;
}

static bool tail_fits(const struct command *command, struct slice name)
{
    return slice_equal_nocase(slice_skip(command->name, NAME_KEPT_BYTES), slice_skip(name, NAME_KEPT_BYTES));
}

static inline const struct command *find(struct slice name, uint32_t container)
{
    struct slot wanted;

    if (UNLIKELY(name.size == 0 || name.size > NAME_SIZE_MOST))
        return NULL;
    wanted = slot_of_name(name, container);
    for (uint32_t at = slot_hash(&wanted) & registry.slot_mask;; at = (at + 1) & registry.slot_mask) {
        const struct slot *slot = &registry.slots[at];

        /* An empty one has no size, and no name is empty. */
        if (LIKELY(slot->low == wanted.low && slot->high == wanted.high && slot->size == wanted.size &&
                   slot->container == container)) {
            if (LIKELY(name.size <= NAME_KEPT_BYTES) || tail_fits(slot->command, name))
                return slot->command;
        }
        if (slot->command == NULL)
            return NULL;
    }
}

const struct command *command_find(struct slice name)
{
    return find(name, 0);
}

const struct command *command_find_operation(struct slice name)
{
    const struct command *command = find(name, 0);

    return command != NULL ? command : find(name, KEY_OF_OPERATIONS);
}

const struct command *command_find_subcommand(const struct command *container, struct slice name)
{
    assert(container->container == NULL);
    return container->subcommand_count == 0 ? NULL : find(name, container_key(container));
}

const struct command *command_find_full(struct slice name)
{
    const char *bar = name.size == 0 ? NULL : memchr(name.data, '|', name.size);
    const struct command *container;

    if (bar == NULL)
        return command_find(name);
    container = command_find(slice_make(name.data, (size_t)(bar - name.data)));
    return container == NULL ? NULL
                             : command_find_subcommand(container, slice_skip(name, (size_t)(bar + 1 - name.data)));
}

uint32_t command_count(void)
{
    return registry.count;
}

const struct command *command_at(uint32_t id)
{
    assert(id < registry.count);
    return &registry.commands[id];
}

uint32_t command_top_count(void)
{
    return registry.top_count;
}

const struct command *command_top_at(uint32_t index)
{
    assert(index < registry.top_count);
    return &registry.commands[index];
}

/* --- rows --- */

NORETURN static void row_is_wrong(const struct command_row *row, const char *what, struct slice word)
{
    panic("command row '%s': %s '%.*s'", row->name, what, (int)word.size, word.data);
}

/* The next word of a text, separated by any of `separators`; empty at the end. */
static struct slice next_word(struct slice *text, const char *separators)
{
    struct slice word;
    size_t size = 0;

    while (text->size != 0 && strchr(separators, text->data[0]) != NULL)
        *text = slice_skip(*text, 1);
    while (size < text->size && strchr(separators, text->data[size]) == NULL)
        size++;
    word = slice_make(text->data, size);
    *text = slice_skip(*text, size);
    return word;
}

static int row_int(const struct command_row *row, struct slice word)
{
    int64_t number;

    if (!number_parse_i64(word, &number) || number < INT16_MIN || number > INT16_MAX)
        row_is_wrong(row, "not a number", word);
    return (int)number;
}

/* "LAST,STEP,LIMIT": three numbers. */
static void row_three(const struct command_row *row, struct slice text, int *first, int *second, int *third)
{
    *first = row_int(row, next_word(&text, ","));
    *second = row_int(row, next_word(&text, ","));
    *third = row_int(row, next_word(&text, ","));
}

static void parse_spec_part(struct command *command, struct key_spec *spec, struct slice part)
{
    struct slice kind = next_word(&part, ":");

    if (part.size != 0)
        part = slice_skip(part, 1);
    if (slice_equal_text(kind, "index")) {
        spec->begin = KEY_BEGIN_INDEX;
        spec->index = row_int(command->row, part);
    } else if (slice_equal_text(kind, "keyword")) {
        struct slice word = next_word(&part, ",");

        spec->begin = KEY_BEGIN_KEYWORD;
        spec->keyword = mem_copy(word.data, word.size);
        spec->index = row_int(command->row, slice_skip(part, 1));
    } else if (slice_equal_text(kind, "range")) {
        spec->find = KEY_FIND_RANGE;
        row_three(command->row, part, &spec->last, &spec->step, &spec->limit);
    } else if (slice_equal_text(kind, "keynum")) {
        spec->find = KEY_FIND_KEYNUM;
        row_three(command->row, part, &spec->count_index, &spec->first, &spec->key_step);
    } else if (!slice_equal_text(kind, "unknown")) {
        row_is_wrong(command->row, "unknown part of a key specification", kind);
    }
}

static void parse_spec(struct command *command, struct key_spec *spec, struct slice text)
{
    struct slice flags = text, word;

    *spec = (struct key_spec){.begin = KEY_BEGIN_UNKNOWN, .find = KEY_FIND_UNKNOWN};
    flags = next_word(&text, "@");
    while ((word = next_word(&flags, ",")).size != 0) {
        uint32_t flag = key_flag_of_word(word);

        if (flag == 0)
            row_is_wrong(command->row, "unknown flag of a key", word);
        spec->flags |= flag;
    }
    while ((word = next_word(&text, "@")).size != 0)
        parse_spec_part(command, spec, word);
}

/* Sets the legacy range: first key, last key and step, for old clients. It covers the specifications that continue each
 * other. Other keys make the keys movable. */
static void set_legacy_range(struct command *command)
{
    bool all = true, variable = false;

    for (uint32_t i = 0; i < command->key_spec_count; i++) {
        const struct key_spec *spec = &command->key_specs[i];
        int last = spec->last >= 0 ? spec->index + spec->last : spec->last;

        variable = variable || (spec->flags & KEY_VARIABLE_FLAGS) != 0;
        if (spec->flags & KEY_INCOMPLETE)
            all = false;
        if (spec->begin != KEY_BEGIN_INDEX || spec->find != KEY_FIND_RANGE || spec->limit > 1) {
            all = false;
        } else if (command->first_key == 0) {
            command->first_key = spec->index;
            command->last_key = last;
            command->key_step = spec->step;
        } else if (command->last_key >= 0 && spec->index == command->last_key + 1) {
            command->last_key = last;
        } else {
            all = false;
        }
    }
    if (command->key_spec_count != 0 && !all)
        command->flags |= COMMAND_MOVABLE_KEYS;
    command->simple_keys = command->first_key != 0 && all && (command->row->find_keys == NULL || variable);
}

static void parse_flags(struct command *command)
{
    struct slice text = slice_from_text(command->row->flags != NULL ? command->row->flags : ""), word;

    while ((word = next_word(&text, " ")).size != 0) {
        uint32_t flag;

        if (!command_flag_of_word(word, &flag))
            row_is_wrong(command->row, "unknown flag", word);
        command->flags |= flag;
    }
}

static uint64_t category(const char *name)
{
    uint64_t bit = command_category_of_word(slice_from_text(name));

    assert(bit != 0);
    return bit;
}

static void parse_categories(struct command *command)
{
    struct slice text = slice_from_text(command->row->categories != NULL ? command->row->categories : ""), word;

    while ((word = next_word(&text, " ")).size != 0) {
        uint64_t bit = word.data[0] == '@' ? command_category_of_word(slice_skip(word, 1)) : 0;

        if (bit == 0)
            row_is_wrong(command->row, "unknown category", word);
        command->categories |= bit;
    }
    /* Categories that the flags imply. */
    if (command->flags & COMMAND_WRITE)
        command->categories |= category("write");
    if ((command->flags & COMMAND_READONLY) && (command->categories & category("scripting")) == 0)
        command->categories |= category("read");
    if (command->flags & COMMAND_ADMIN)
        command->categories |= category("admin") | category("dangerous");
    if (command->flags & COMMAND_PUBSUB)
        command->categories |= category("pubsub");
    if (command->flags & COMMAND_BLOCKING)
        command->categories |= category("blocking");
    command->categories |= (command->flags & COMMAND_FAST) ? category("fast") : category("slow");
}

/* Those about keys, too, which may not say whether they read (OBJECT HELP); not those that only name channels. */
static bool uses_own_database(const struct command *command)
{
    const uint64_t categories = category("keyspace") | category("read") | category("write");

    if (command->row->databases != DATABASES_OWN)
        return false;
    for (uint32_t i = 0; i < command->key_spec_count; i++) {
        if ((command->key_specs[i].flags & KEY_NOT_KEY) == 0)
            return true;
    }
    return command->row->find_keys != NULL || (command->categories & categories) != 0;
}

static void set_full_name(struct command *command)
{
    const char *name = command->row->name;
    char text[2 * NAME_SIZE_MOST];
    int size;

    if (command->container != NULL)
        size = snprintf(text, sizeof(text), "%s|%s", command->container->row->name, name);
    else
        size = snprintf(text, sizeof(text), "%s", name);
    assert(size > 0 && (size_t)size < sizeof(text));
    command->full_name = slice_make(mem_copy(text, (size_t)size), (size_t)size);
}

static uint32_t count_specs(const struct command_row *row)
{
    struct slice text = slice_from_text(row->keys != NULL ? row->keys : "");
    uint32_t count = 0;

    while (next_word(&text, " ").size != 0)
        count++;
    return count;
}

/* Fills in one command; *specs is the free rest of the block. */
static void build(struct command *command, const struct command_row *row, const struct command *container,
                  struct key_spec **specs)
{
    struct slice keys = slice_from_text(row->keys != NULL ? row->keys : ""), word;

    assert((size_t)(command - registry.commands) < registry.count);
    *command = (struct command){.row = row,
                                .run = row->run,
                                .arity = row->arity,
                                .access = row->access,
                                .container = container,
                                .id = (uint32_t)(command - registry.commands)};
    command->name = slice_from_text(row->name);
    set_full_name(command);
    parse_flags(command);
    parse_categories(command);
    if ((command->flags & (COMMAND_ABSENT | COMMAND_OPERATION)) != 0)
        command->name = SLICE_EMPTY; /* as if taken away */
    command->key_specs = *specs;
    while ((word = next_word(&keys, " ")).size != 0)
        parse_spec(command, &command->key_specs[command->key_spec_count++], word);
    *specs += command->key_spec_count;
    set_legacy_range(command);
    command->member = row->member;
    command->uses_own_database = uses_own_database(command);
    command->operation_kind = operation_kind(command->full_name);
    command->operation_key = (uint8_t)MIN(MAX(command->first_key, 0), EFFECT_KEY_MOST);
}

static bool is_operation(const struct command *command)
{
    return (command->flags & COMMAND_OPERATION) != 0;
}

/* The name under which it is found, and the key of the place where it is searched; empty: it is not found. */
static struct slice found_name(const struct command *command, uint32_t *container)
{
    *container = is_operation(command) ? KEY_OF_OPERATIONS : container_key(command->container);
    return is_operation(command) ? command->full_name : command->name;
}

static void add_slot(const struct command *command)
{
    uint32_t container, at;
    struct slice name = found_name(command, &container);
    struct slot slot;

    if (name.size == 0)
        return;
    slot = slot_of_name(name, container);
    at = slot_hash(&slot) & registry.slot_mask;
    assert(registry.count <= registry.slot_mask / 2); /* there are free ones */
    slot.command = command;
    while (registry.slots[at].command != NULL)
        at = (at + 1) & registry.slot_mask;
    registry.slots[at] = slot;
}

static void add_checked_slot(const struct command *command)
{
    const size_t most = is_operation(command) ? NAME_KEPT_BYTES : NAME_SIZE_MOST;
    uint32_t container;
    struct slice name = found_name(command, &container);

    if (name.size == 0 || name.size > most || find(name, container) != NULL)
        row_is_wrong(command->row, "name too long or there twice:", name);
    add_slot(command);
}

static void build_all(const struct command_row *const *tables, size_t table_count)
{
    struct key_spec *specs = registry.specs;
    uint32_t next = 0;

    for (size_t i = 0; i < table_count; i++) {
        for (const struct command_row *row = tables[i]; row->name != NULL; row++)
            build(&registry.commands[next++], row, NULL, &specs);
    }
    assert(next == registry.top_count);
    for (uint32_t i = 0; i < registry.top_count; i++) {
        struct command *container = &registry.commands[i];
        const struct command_row *row = container->row->subcommands;

        container->subcommands = &registry.commands[next];
        for (; row != NULL && row->name != NULL; row++, container->subcommand_count++)
            build(&registry.commands[next++], row, container, &specs);
    }
    assert(next == registry.count);
}

void command_registry_setup(const struct command_row *const *tables, size_t table_count)
{
    uint32_t spec_count = 0, slot_count = SLOTS_LEAST;

    gate_assert_main_alone();
    assert(registry.commands == NULL);
    for (size_t i = 0; i < table_count; i++) {
        for (const struct command_row *row = tables[i]; row->name != NULL; row++) {
            registry.top_count++;
            registry.count++;
            spec_count += count_specs(row);
            for (const struct command_row *sub = row->subcommands; sub != NULL && sub->name != NULL; sub++) {
                registry.count++;
                spec_count += count_specs(sub);
            }
        }
    }
    while (slot_count < 4 * registry.count)
        slot_count *= 2;
    registry.commands = mem_alloc_zero(MAX(registry.count, 1) * sizeof(*registry.commands));
    registry.specs = mem_alloc_zero(MAX(spec_count, 1) * sizeof(*registry.specs));
    registry.slots = mem_aligned_alloc(CACHE_LINE_BYTES, slot_count * sizeof(*registry.slots));
    memset(registry.slots, 0, slot_count * sizeof(*registry.slots));
    registry.slot_mask = slot_count - 1;
    build_all(tables, table_count);
    for (uint32_t i = 0; i < registry.count; i++) {
        if ((registry.commands[i].flags & COMMAND_ABSENT) == 0)
            add_checked_slot(&registry.commands[i]);
    }
}

static void set_name(struct command *command, struct slice name)
{
    if (command->name.size != 0 && command->name.data != command->row->name)
        mem_free((void *)(uintptr_t)command->name.data);
    command->name = name.size != 0 ? slice_make(mem_copy(name.data, name.size), name.size) : SLICE_EMPTY;
}

static bool is_absent(struct slice name)
{
    for (uint32_t i = 0; i < registry.top_count; i++) {
        if ((registry.commands[i].flags & COMMAND_ABSENT) != 0 &&
            slice_equal_nocase(registry.commands[i].full_name, name))
            return true;
    }
    return false;
}

const char *command_rename(struct slice name, struct slice new_name)
{
    const struct command *found = command_find(name);
    struct command *command;

    gate_assert_main_alone();
    if (found == NULL)
        return is_absent(name) ? NULL : "No such command in rename-command";
    if (new_name.size > NAME_SIZE_MOST)
        return "Target command name is too long";
    if (command_find(new_name) != NULL && command_find(new_name) != found)
        return "Target command name already exists";
    assert(found->container == NULL);
    command = &registry.commands[found->id];
    set_name(command, new_name);
    memset(registry.slots, 0, (registry.slot_mask + 1) * sizeof(*registry.slots));
    for (uint32_t i = 0; i < registry.count; i++)
        add_slot(&registry.commands[i]);
    return NULL;
}

void command_registry_teardown(void)
{
    gate_assert_main_alone();
    for (uint32_t i = 0; i < registry.count; i++) {
        struct command *command = &registry.commands[i];

        mem_free((void *)(uintptr_t)command->full_name.data);
        set_name(command, SLICE_EMPTY);
        for (uint32_t k = 0; k < command->key_spec_count; k++)
            mem_free((void *)(uintptr_t)command->key_specs[k].keyword);
    }
    mem_free(registry.commands);
    mem_free(registry.specs);
    mem_free(registry.slots);
    memset(&registry, 0, sizeof(registry));
}

static const char *rename_by_directive(const struct slice *words, size_t count)
{
    return count == 3 ? command_rename(words[1], words[2]) : "Bad directive or wrong number of arguments";
}

/* CONFIG REWRITE keeps its lines as they are: a name cannot change while the server runs. */
const struct config_directive command_rename_directive = {.name = "rename-command", .run = rename_by_directive};

/* --- keys among the arguments --- */

struct key_position *key_positions_add(struct key_positions *positions, uint32_t arg_index, uint32_t flags)
{
    struct key_position *position = ARRAY_PUSH(positions);

    *position = (struct key_position){.arg_index = arg_index, .flags = flags};
    return position;
}

void key_positions_fini(struct key_positions *positions)
{
    ARRAY_FINI(positions);
}

/* Where the keyword's argument begins; 0: the keyword is not there, or is the last word, where it means nothing. */
static uint32_t find_keyword(const struct key_spec *spec, const struct slice *args, uint32_t arg_count)
{
    int64_t count = arg_count;
    int64_t at = spec->index >= 0 ? spec->index : count + spec->index;
    int64_t step = spec->index >= 0 ? 1 : -1;

    for (; at >= 1 && at < count; at += step) {
        if (slice_equal_text_nocase(args[at], spec->keyword) && at + 1 < count)
            return (uint32_t)at + 1;
    }
    return 0;
}

static bool add_range(const struct key_spec *spec, uint32_t begin, uint32_t arg_count, struct key_positions *positions)
{
    int64_t count = arg_count, last;

    if (spec->last >= 0)
        last = (int64_t)begin + spec->last;
    else if (spec->limit > 1)
        last = begin + (count - begin) / spec->limit + spec->last;
    else
        last = count + spec->last;
    if (last >= count || last < begin)
        return false;
    for (int64_t at = begin; at <= last; at += spec->step)
        (void)key_positions_add(positions, (uint32_t)at, spec->flags);
    return true;
}

static bool add_counted(const struct key_spec *spec, uint32_t begin, const struct slice *args, uint32_t arg_count,
                        struct key_positions *positions)
{
    int64_t count, first = (int64_t)begin + spec->first, at = (int64_t)begin + spec->count_index;

    if (at >= arg_count || !number_parse_i64(args[at], &count) || count <= 0 || count > arg_count)
        return false;
    if (first + (count - 1) * spec->key_step >= arg_count)
        return false;
    for (int64_t i = 0; i < count; i++)
        (void)key_positions_add(positions, (uint32_t)(first + i * spec->key_step), spec->flags);
    return true;
}

static bool add_by_spec(const struct key_spec *spec, const struct slice *args, uint32_t arg_count,
                        struct key_positions *positions)
{
    uint32_t begin = (uint32_t)spec->index;

    if (spec->begin == KEY_BEGIN_UNKNOWN || spec->find == KEY_FIND_UNKNOWN)
        return true;
    if (spec->begin == KEY_BEGIN_KEYWORD) {
        begin = find_keyword(spec, args, arg_count);
        if (begin == 0)
            return true; /* an option that was not used; if nothing else is found either, our caller complains */
    }
    if (begin >= arg_count)
        return false;
    return spec->find == KEY_FIND_RANGE ? add_range(spec, begin, arg_count, positions)
                                        : add_counted(spec, begin, args, arg_count, positions);
}

bool command_keys(const struct command *command, const struct slice *args, uint32_t arg_count,
                  struct key_positions *positions)
{
    bool optional = (command->flags & COMMAND_NO_MANDATORY_KEYS) != 0;
    uint32_t before = positions->count;

    if (command->row->find_keys != NULL) {
        if (command->row->find_keys(args, arg_count, positions))
            return true;
        positions->count = before;
        return optional;
    }
    for (uint32_t i = 0; i < command->key_spec_count; i++) {
        if (!add_by_spec(&command->key_specs[i], args, arg_count, positions)) {
            positions->count = before;
            return optional;
        }
    }
    return positions->count != before || command->key_spec_count == 0 || optional;
}

enum access_class command_access(const struct command *command, const struct slice *args, uint32_t arg_count)
{
    return command->row->access_of != NULL ? command->row->access_of(args, arg_count) : command->access;
}

uint32_t command_flags(const struct command *command, const struct slice *args, uint32_t arg_count)
{
    return command->row->flags_of == NULL ? command->flags : command->row->flags_of(command->flags, args, arg_count);
}

bool command_may_write(const struct command *command, const struct slice *args, uint32_t arg_count)
{
    return (command_flags(command, args, arg_count) & (COMMAND_WRITE | COMMAND_MAY_REPLICATE)) != 0;
}
