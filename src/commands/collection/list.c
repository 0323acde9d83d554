/* Lists: elements in order, pushed and popped at both ends. */
#include "commands/shared/families.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "commands/shared/operations.h"
#include "commands/shared/type_options.h"
#include "commands/shared/typed.h"
#include "data/list.h"
#include "server/run/blocked.h"

/* ------------------------------------------------------------------------------------------------------- pieces -- */

static bool edit_list(struct edit *edit, struct request *request, const struct key *key)
{
    return edit_begin(edit, request, key, TYPE_LIST);
}

static bool read_list(struct request *request, const struct quicklist **list)
{
    struct value value;

    if (!typed_read(request, &request->keys[0], TYPE_LIST, &value))
        return false;
    *list = value.data;
    return true;
}

static void reply_element(struct request *request, const struct listpack_value *value)
{
    char scratch[NUMBER_I64_SPACE];

    reply_bulk(request, listpack_value_text(value, scratch));
}

static void end_removal(struct edit *edit, const char *event)
{
    if (quicklist_count(list_of(edit->value)) == 0)
        edit_end_empty(edit, EVENT_LIST, event);
    else
        edit_end(edit, EVENT_LIST, event);
}

static const char *push_event(enum quicklist_end end)
{
    return end == QUICKLIST_HEAD ? "lpush" : "rpush";
}

static const char *pop_event(enum quicklist_end end)
{
    return end == QUICKLIST_HEAD ? "lpop" : "rpop";
}

static struct slice push_word(enum quicklist_end end)
{
    return end == QUICKLIST_HEAD ? SLICE("LPUSH") : SLICE("RPUSH");
}

/* A pop of these elements, as they were popped one after the other. */
static void operation_popped(struct operation_list *elements, const struct key *key, enum quicklist_end end)
{
    operation_list_end(elements,
                       (const struct slice[]){SLICE("KEYDB.OP.POP"), key->name,
                                              end == QUICKLIST_HEAD ? SLICE("LEFT") : SLICE("RIGHT")},
                       3);
}

/* "LEFT" or "RIGHT". False: neither, which was replied. */
static bool parse_end(struct request *request, uint32_t index, enum quicklist_end *end)
{
    bool is_left = request_arg_is(request, index, "LEFT");

    *end = is_left ? QUICKLIST_HEAD : QUICKLIST_TAIL;
    if (is_left || request_arg_is(request, index, "RIGHT"))
        return true;
    reply_syntax_error(request);
    return false;
}

/* ----------------------------------------------------------------------------------------------------- pushing -- */

static void push_all(struct request *request, struct edit *edit, enum quicklist_end end)
{
    const struct quicklist_limits limits = type_list_limits();

    if (edit->is_new)
        edit->value = list_create(&limits);
    for (uint32_t i = 2; i < request->arg_count; i++)
        quicklist_push(list_of(edit->value), end, request_arg(request, i));
    edit_end(edit, EVENT_LIST, push_event(end));
    reply_int(request, (int64_t)quicklist_count(list_of(edit->value)));
}

static void push(struct request *request, enum quicklist_end end)
{
    struct edit edit;

    if (edit_list(&edit, request, &request->keys[0]))
        push_all(request, &edit, end);
}

static void push_if_there(struct request *request, enum quicklist_end end)
{
    struct edit edit;

    if (!edit_list(&edit, request, &request->keys[0]))
        return;
    if (edit.is_new) {
        reply_int(request, 0);
        return;
    }
    push_all(request, &edit, end);
    operation_add_words(request, (const struct slice[]){push_word(end)}, 1, 1);
}

static void cmd_lpush(struct request *request)
{
    push(request, QUICKLIST_HEAD);
}

static void cmd_rpush(struct request *request)
{
    push(request, QUICKLIST_TAIL);
}

static void cmd_lpushx(struct request *request)
{
    push_if_there(request, QUICKLIST_HEAD);
}

static void cmd_rpushx(struct request *request)
{
    push_if_there(request, QUICKLIST_TAIL);
}

static void cmd_linsert(struct request *request)
{
    const struct quicklist_needle pivot = quicklist_needle_make(request_arg(request, 3));
    bool before = request_arg_is(request, 2, "BEFORE"), found = false;
    struct quicklist_iter iter;
    struct listpack_value value;
    struct quicklist *list;
    struct edit edit;

    if (!before && !request_arg_is(request, 2, "AFTER")) {
        reply_syntax_error(request);
        return;
    }
    if (!edit_list(&edit, request, &request->keys[0]))
        return;
    if (edit.is_new) {
        reply_int(request, 0);
        return;
    }
    list = list_of(edit.value);
    quicklist_iter_init(&iter, list, 0, QUICKLIST_FORWARD);
    while (!found && quicklist_iter_next(&iter, &value))
        found = quicklist_value_is(&value, &pivot);
    if (found && before)
        quicklist_insert_before(list, &iter, request_arg(request, 4));
    else if (found)
        quicklist_insert_after(list, &iter, request_arg(request, 4));
    quicklist_iter_fini(&iter);
    if (found)
        edit_end(&edit, EVENT_LIST, "linsert");
    reply_int(request, found ? (int64_t)quicklist_count(list) : -1);
}

/* ----------------------------------------------------------------------------------------------------- popping -- */

/* Replies and drops elements; there are so many. */
static void pop_elements(struct request *request, struct edit *edit, enum quicklist_end end, uint64_t count)
{
    struct quicklist *list = list_of(edit->value);
    const struct key *key = edit->change.key;
    struct operation_list operation;
    char scratch[NUMBER_I64_SPACE];
    struct listpack_value value;

    operation_list_begin(&operation, request);
    while (count-- > 0) {
        bool there = quicklist_peek(list, end, &value);

        assert(there);
        reply_element(request, &value);
        operation_list_add(&operation, listpack_value_text(&value, scratch));
        quicklist_drop(list, end);
    }
    end_removal(edit, pop_event(end));
    operation_popped(&operation, key, end);
}

static void pop(struct request *request, enum quicklist_end end)
{
    struct edit edit;
    int64_t count;

    if (request->arg_count > 3) {
        reply_errorf(request, "ERR wrong number of arguments for '%.*s' command", (int)request->command->full_name.size,
                     request->command->full_name.data);
        return;
    }
    if (request->arg_count == 3 &&
        !request_arg_range(request, 2, 0, INT64_MAX, &count, "ERR value is out of range, must be positive"))
        return;
    if (!edit_list(&edit, request, &request->keys[0]))
        return;
    if (request->arg_count == 2) {
        if (edit.is_new)
            reply_null(request);
        else
            pop_elements(request, &edit, end, 1);
    } else if (edit.is_new) {
        reply_null_array(request);
    } else {
        uint64_t there = MIN((uint64_t)count, quicklist_count(list_of(edit.value)));

        reply_array(request, there);
        if (there != 0)
            pop_elements(request, &edit, end, there);
    }
}

static void cmd_lpop(struct request *request)
{
    pop(request, QUICKLIST_HEAD);
}

static void cmd_rpop(struct request *request)
{
    pop(request, QUICKLIST_TAIL);
}

static void wait_for_lists(struct request *request, uint32_t key_count, const struct key *target, int64_t timeout_ms)
{
    block_client(request, &(const struct block_wish){.type = TYPE_LIST,
                                                     .keys = request->keys,
                                                     .key_count = key_count,
                                                     .target = target,
                                                     .timeout_ms = timeout_ms});
}

/* "LPOP key count" is what LMPOP came to. */
static void effect_popped(struct request *request, struct slice key, enum quicklist_end end, uint64_t count)
{
    char digits[NUMBER_I64_SPACE];

    effect_set(request,
               (const struct slice[]){end == QUICKLIST_HEAD ? SLICE("LPOP") : SLICE("RPOP"), key,
                                      slice_make(digits, number_format_u64(digits, count))},
               3);
}

/* "LPOP key" is what BLPOP came to. */
static void effect_popped_one(struct request *request, struct slice key, enum quicklist_end end)
{
    effect_set(request, (const struct slice[]){end == QUICKLIST_HEAD ? SLICE("LPOP") : SLICE("RPOP"), key}, 2);
}

/* From the first list that has something. False: there is none, and nothing was replied. */
static bool pop_of_several(struct request *request, enum quicklist_end end, uint64_t count)
{
    uint32_t index = 0;
    struct edit edit;
    bool failed;

    if (!edit_begin_next(&edit, request, &index, TYPE_LIST, &failed))
        return failed;
    count = MIN(count, quicklist_count(list_of(edit.value)));
    reply_array(request, 2);
    reply_bulk(request, request->keys[index].name);
    reply_array(request, count);
    pop_elements(request, &edit, end, count);
    effect_popped(request, request->keys[index].name, end, count);
    return true;
}

/* "numkeys key [key ...] LEFT|RIGHT [COUNT count]" from argument `index` on. False: an error was replied. */
static bool parse_pop_of_several(struct request *request, uint32_t index, enum quicklist_end *end, int64_t *count)
{
    int64_t key_count;

    *count = 1;
    if (!request_arg_range(request, index, 1, INT64_MAX, &key_count, "ERR numkeys should be greater than 0"))
        return false;
    if (key_count >= (int64_t)request->arg_count - (int64_t)index - 1) {
        reply_syntax_error(request);
        return false;
    }
    index += 1 + (uint32_t)key_count;
    if (!parse_end(request, index++, end))
        return false;
    if (index + 1 < request->arg_count && request_arg_is(request, index, "COUNT")) {
        if (!request_arg_range(request, index + 1, 1, INT64_MAX, count, "ERR count should be greater than 0"))
            return false;
        index += 2;
    }
    if (index == request->arg_count)
        return true;
    reply_syntax_error(request);
    return false;
}

static void cmd_lmpop(struct request *request)
{
    enum quicklist_end end;
    int64_t count;

    if (parse_pop_of_several(request, 1, &end, &count) && !pop_of_several(request, end, (uint64_t)count))
        reply_null_array(request);
}

static void cmd_blmpop(struct request *request)
{
    int64_t timeout_ms, count;
    enum quicklist_end end;

    if (request_arg_timeout(request, 1, &timeout_ms) && parse_pop_of_several(request, 2, &end, &count) &&
        !pop_of_several(request, end, (uint64_t)count))
        wait_for_lists(request, request->key_count, NULL, timeout_ms);
}

static void pop_or_wait(struct request *request, enum quicklist_end end)
{
    uint32_t index = 0;
    int64_t timeout_ms;
    struct edit edit;
    bool failed;

    if (!request_arg_timeout(request, request->arg_count - 1, &timeout_ms))
        return;
    if (edit_begin_next(&edit, request, &index, TYPE_LIST, &failed)) {
        reply_array(request, 2);
        reply_bulk(request, request->keys[index].name);
        pop_elements(request, &edit, end, 1);
        effect_popped_one(request, request->keys[index].name, end);
    } else if (!failed) {
        wait_for_lists(request, request->key_count, NULL, timeout_ms);
    }
}

static void cmd_blpop(struct request *request)
{
    pop_or_wait(request, QUICKLIST_HEAD);
}

static void cmd_brpop(struct request *request)
{
    pop_or_wait(request, QUICKLIST_TAIL);
}

/* The deadline of a list that is about to move onto itself, all `count` elements of it: who takes the last one off, as
 * others are told to, loses it. EXPIRE_NEVER: it has none, or some stay. */
static int64_t deadline_at_stake(const struct edit *edit, uint64_t count)
{
    const struct entry *entry = change_entry(&edit->change);

    assert(entry != NULL);
    return quicklist_count(list_of(edit->value)) == count ? entry_expire_ms(entry) : EXPIRE_NEVER;
}

/* It is set again, behind the pop and the push. */
static void tell_deadline(struct request *request, int64_t expire_ms, bool has_effects)
{
    char digits[NUMBER_I64_SPACE];
    const struct slice words[] = {SLICE("PEXPIREAT"), request->keys[0].name,
                                  slice_make(digits, number_format_i64(digits, expire_ms))};

    if (expire_ms == EXPIRE_NEVER)
        return;
    if (has_effects)
        effect_add(request, words, countof(words));
    operation_add(request, words, countof(words));
}

static void operation_moved(struct request *request, enum quicklist_end from_end, enum quicklist_end to_end,
                            struct slice element)
{
    struct operation_list popped;

    operation_list_begin(&popped, request);
    operation_list_add(&popped, element);
    operation_popped(&popped, &request->keys[0], from_end);
    operation_add(request,
                  (const struct slice[]){push_word(to_end), request->keys[request->key_count - 1].name, element}, 3);
}

/* From one list to the other, which may be the same. False: there is no such list, and nothing was replied. */
static bool move_element(struct request *request, enum quicklist_end from_end, enum quicklist_end to_end)
{
    const struct quicklist_limits limits = type_list_limits();
    const struct key *from_key = &request->keys[0], *to_key = &request->keys[request->key_count - 1];
    char scratch[NUMBER_I64_SPACE];
    struct buffer element = {0};
    struct listpack_value value;
    const bool is_same = slice_equal(from_key->name, to_key->name);
    int64_t expire_ms = EXPIRE_NEVER;
    struct edit from, to;
    bool there, emptied;

    if (!edit_list(&from, request, from_key))
        return true;
    if (from.is_new)
        return false;
    if (!typed_find(request, to_key, TYPE_LIST, &(struct value){NULL, ENCODING_RAW}))
        return true;
    if (!edit_list(&from, request, from_key)) /* again: looking elsewhere has moved on */
        return true;
    there = quicklist_peek(list_of(from.value), from_end, &value);
    assert(there);
    buffer_append_slice(&element, listpack_value_text(&value, scratch));
    reply_bulk(request, element.size != 0 ? buffer_slice(&element) : SLICE(""));
    if (is_same)
        expire_ms = deadline_at_stake(&from, 1);
    quicklist_drop(list_of(from.value), from_end);
    if (is_same) {
        quicklist_push(list_of(from.value), to_end, buffer_slice(&element));
        edit_end(&from, EVENT_LIST, push_event(to_end));
        access_event(request->access, request->db, from_key, EVENT_LIST, pop_event(from_end));
    } else {
        emptied = quicklist_count(list_of(from.value)) == 0;
        edit_end(&from, EVENT_LIST, NULL); /* its events are told after those of the other list */
        if (edit_list(&to, request, to_key)) {
            if (to.is_new)
                to.value = list_create(&limits);
            quicklist_push(list_of(to.value), to_end, buffer_slice(&element));
            edit_end(&to, EVENT_LIST, push_event(to_end));
        }
        access_event(request->access, request->db, from_key, EVENT_LIST, pop_event(from_end));
        if (emptied)
            (void)access_delete(request->access, request->db, from_key);
    }
    operation_moved(request, from_end, to_end, buffer_slice(&element));
    tell_deadline(request, expire_ms, false); /* its own words are the effect */
    buffer_fini(&element);
    return true;
}

static void move_at_once(struct request *request, enum quicklist_end from_end, enum quicklist_end to_end)
{
    if (!move_element(request, from_end, to_end))
        reply_null(request);
}

static void cmd_lmove(struct request *request)
{
    enum quicklist_end from_end, to_end;

    if (parse_end(request, 3, &from_end) && parse_end(request, 4, &to_end))
        move_at_once(request, from_end, to_end);
}

static void cmd_rpoplpush(struct request *request)
{
    move_at_once(request, QUICKLIST_TAIL, QUICKLIST_HEAD);
}

/* Records the effect for replicas; false: the client is blocked. */
static bool move_or_wait(struct request *request, enum quicklist_end from_end, enum quicklist_end to_end,
                         int64_t timeout_ms)
{
    if (move_element(request, from_end, to_end))
        return true;
    if (request->in_exec)
        reply_null(request);
    else
        wait_for_lists(request, 1, &request->keys[request->key_count - 1], timeout_ms);
    return false;
}

/* As redis-server writes it: as the client did, but in small letters when it has waited. */
static struct slice effect_end(const struct request *request, uint32_t index, enum quicklist_end end)
{
    if (request->ready == NULL)
        return request_arg(request, index);
    return end == QUICKLIST_HEAD ? SLICE("left") : SLICE("right");
}

static void cmd_blmove(struct request *request)
{
    enum quicklist_end from_end, to_end;
    int64_t timeout_ms;

    if (parse_end(request, 3, &from_end) && parse_end(request, 4, &to_end) &&
        request_arg_timeout(request, 5, &timeout_ms) && move_or_wait(request, from_end, to_end, timeout_ms) &&
        !request->failed)
        effect_set(request,
                   (const struct slice[]){SLICE("LMOVE"), request_arg(request, 1), request_arg(request, 2),
                                          effect_end(request, 3, from_end), effect_end(request, 4, to_end)},
                   5);
}

static void cmd_brpoplpush(struct request *request)
{
    int64_t timeout_ms;

    if (request_arg_timeout(request, 3, &timeout_ms) &&
        move_or_wait(request, QUICKLIST_TAIL, QUICKLIST_HEAD, timeout_ms) && !request->failed)
        effect_set(request,
                   (const struct slice[]){SLICE("RPOPLPUSH"), request_arg(request, 1), request_arg(request, 2)}, 3);
}

/* ---------------------------------------------------------------------------------------------- moving several -- */

/* What LMOVEM is asked for. */
struct moving {
    enum quicklist_end from_end, to_end;
    uint64_t count; /* at most so many elements */
    bool exactly;   /* so many or none */
    bool reverses;  /* they come to stand in the reverse order: one after the other, from an end to the same end */
};

/* "[COUNT count|EXACTLY count OBO|BULK]" from argument `index` on; without it one element moves. False: an error was
 * replied. */
static bool parse_moving(struct request *request, uint32_t index, struct moving *moving)
{
    const bool in_bulk = index + 2 < request->arg_count && request_arg_is(request, index + 2, "BULK");
    int64_t count = 1;

    if (!parse_end(request, 3, &moving->from_end) || !parse_end(request, 4, &moving->to_end))
        return false;
    moving->exactly = index < request->arg_count && request_arg_is(request, index, "EXACTLY");
    if (index != request->arg_count &&
        (index + 3 != request->arg_count || !(moving->exactly || request_arg_is(request, index, "COUNT")) ||
         !(in_bulk || request_arg_is(request, index + 2, "OBO")))) {
        reply_syntax_error(request);
        return false;
    }
    if (index != request->arg_count &&
        !request_arg_range(request, index + 1, 1, INT64_MAX, &count, "ERR count should be greater than 0"))
        return false;
    moving->count = (uint64_t)count;
    moving->reverses = !in_bulk && moving->from_end == moving->to_end;
    return true;
}

/* Elements that leave a list, behind the words of the push that puts them into the other one. */
struct block {
    struct slice *words;
    struct buffer bytes;
    uint64_t count;
    bool backwards; /* the order of the push is not that of the list which they leave */
};

enum { PUSH_WORDS = 2 };

/* The word of an element, by its place in the list which they leave: 0 is the one nearest to the head. */
static struct slice *block_word(const struct block *block, uint64_t place)
{
    return &block->words[PUSH_WORDS + (block->backwards ? block->count - 1 - place : place)];
}

static uint64_t block_first(const struct quicklist *list, const struct moving *moving, uint64_t count)
{
    return moving->from_end == QUICKLIST_HEAD ? 0 : quicklist_count(list) - count;
}

/* Copies the elements; they stay in the list. */
static void block_init(struct block *block, const struct quicklist *list, const struct moving *moving, struct slice to)
{
    const uint64_t count = MIN(moving->count, quicklist_count(list));
    char scratch[NUMBER_I64_SPACE];
    struct quicklist_iter iter;
    struct listpack_value value;
    size_t at = 0;

    *block = (struct block){.words = mem_alloc((PUSH_WORDS + count) * sizeof(*block->words)),
                            .count = count,
                            .backwards = moving->reverses != (moving->to_end == QUICKLIST_HEAD)};
    block->words[0] = push_word(moving->to_end);
    block->words[1] = to;
    quicklist_iter_init(&iter, list, (int64_t)block_first(list, moving, count), QUICKLIST_FORWARD);
    for (uint64_t place = 0; place < count; place++) {
        bool there = quicklist_iter_next(&iter, &value);
        const struct slice text = there ? listpack_value_text(&value, scratch) : SLICE_EMPTY;

        assert(there);
        buffer_append_slice(&block->bytes, text);
        block_word(block, place)->size = text.size;
    }
    quicklist_iter_fini(&iter);
    for (uint64_t place = 0; place < count; place++) {
        struct slice *word = block_word(block, place);

        *word = block->bytes.data != NULL ? slice_make(block->bytes.data + at, word->size) : SLICE("");
        at += word->size;
    }
}

static void block_fini(struct block *block)
{
    mem_free(block->words);
    buffer_fini(&block->bytes);
}

static void block_drop(const struct block *block, struct quicklist *list, const struct moving *moving)
{
    (void)quicklist_delete_range(list, (int64_t)block_first(list, moving, block->count), block->count);
}

static void block_push(const struct block *block, struct quicklist *list, enum quicklist_end end)
{
    for (uint64_t i = 0; i < block->count; i++)
        quicklist_push(list, end, block->words[PUSH_WORDS + i]);
}

/* In the order in which they stand in the destination. */
static void block_reply(const struct block *block, struct request *request, const struct moving *moving)
{
    reply_array(request, block->count);
    for (uint64_t i = 0; i < block->count; i++)
        reply_bulk(request, *block_word(block, moving->reverses ? block->count - 1 - i : i));
}

/* Redis 7.0 does not know LMOVEM, so files and replicas get a pop and a push. */
static void tell_moved(struct request *request, const struct moving *moving, const struct block *block,
                       int64_t expire_ms)
{
    struct operation_list popped;

    effect_popped(request, request->keys[0].name, moving->from_end, block->count);
    effect_add(request, block->words, PUSH_WORDS + (uint32_t)block->count);
    operation_list_begin(&popped, request);
    for (uint64_t i = 0; i < block->count; i++)
        operation_list_add(&popped, *block_word(block, moving->from_end == QUICKLIST_HEAD ? i : block->count - 1 - i));
    operation_popped(&popped, &request->keys[0], moving->from_end);
    operation_add(request, block->words, PUSH_WORDS + (uint32_t)block->count);
    tell_deadline(request, expire_ms, true);
}

/* Within one list. In bulk to the end where they are they stay. */
static void move_block_within(struct request *request, struct edit *edit, const struct moving *moving,
                              const struct block *block)
{
    const struct key *key = &request->keys[0];
    struct quicklist *list = list_of(edit->value);
    const int64_t expire_ms = deadline_at_stake(edit, block->count);

    if (moving->from_end == moving->to_end && !moving->reverses)
        return;
    block_drop(block, list, moving);
    block_push(block, list, moving->to_end);
    edit_end(edit, EVENT_LIST, push_event(moving->to_end));
    access_event(request->access, request->db, key, EVENT_LIST, pop_event(moving->from_end));
    tell_moved(request, moving, block, expire_ms);
}

static void move_block_between(struct request *request, struct edit *from, const struct moving *moving,
                               const struct block *block)
{
    const struct quicklist_limits limits = type_list_limits();
    const bool empties = quicklist_count(list_of(from->value)) == block->count;
    struct edit to;

    block_drop(block, list_of(from->value), moving);
    edit_end(from, EVENT_LIST, NULL); /* its events are told after those of the other list */
    if (edit_list(&to, request, &request->keys[1])) {
        if (to.is_new)
            to.value = list_create(&limits);
        block_push(block, list_of(to.value), moving->to_end);
        edit_end(&to, EVENT_LIST, push_event(moving->to_end));
    }
    access_event(request->access, request->db, &request->keys[0], EVENT_LIST, pop_event(moving->from_end));
    if (empties)
        (void)access_delete(request->access, request->db, &request->keys[0]);
    tell_moved(request, moving, block, EXPIRE_NEVER);
}

/* False: there is nothing to move, and nothing was replied. */
static bool move_block(struct request *request, const struct moving *moving)
{
    const struct key *from_key = &request->keys[0], *to_key = &request->keys[request->key_count - 1];
    struct block block;
    struct value list;
    struct edit from;

    if (!typed_find(request, from_key, TYPE_LIST, &list))
        return true;
    if (list.data == NULL || (moving->exactly && quicklist_count(list_of(list)) < moving->count))
        return false;
    if (!typed_find(request, to_key, TYPE_LIST, &list) || !edit_list(&from, request, from_key))
        return true;
    block_init(&block, list_of(from.value), moving, to_key->name);
    block_reply(&block, request, moving);
    if (slice_equal(from_key->name, to_key->name))
        move_block_within(request, &from, moving, &block);
    else
        move_block_between(request, &from, moving, &block);
    block_fini(&block);
    return true;
}

static void cmd_lmovem(struct request *request)
{
    struct moving moving;

    if (parse_moving(request, 5, &moving) && !move_block(request, &moving))
        reply_null_array(request);
}

/* A block_wish's can_serve: EXACTLY waits until there are so many. */
static bool has_enough(const struct request *request, const struct entry *entry)
{
    int64_t count;

    return request->arg_count == 6 || !request_arg_is(request, 6, "EXACTLY") ||
           (number_parse_i64(request_arg(request, 7), &count) &&
            quicklist_count(list_of(entry_value(entry))) >= (uint64_t)count);
}

static void cmd_blmovem(struct request *request)
{
    struct moving moving;
    int64_t timeout_ms;

    if (!parse_moving(request, 6, &moving) || !request_arg_timeout(request, 5, &timeout_ms) ||
        move_block(request, &moving))
        return;
    block_client(request, &(const struct block_wish){.type = TYPE_LIST,
                                                     .keys = request->keys,
                                                     .key_count = 1,
                                                     .target = &request->keys[request->key_count - 1],
                                                     .timeout_ms = timeout_ms,
                                                     .can_serve = has_enough});
}

/* ----------------------------------------------------------------------------------- removing what others popped -- */

/* Takes the first element that is the needle from the place `from` on, counted from that end, up to before `to`. */
static bool take_between(struct quicklist *list, enum quicklist_end end, int64_t from, int64_t to,
                         const struct quicklist_needle *needle)
{
    const bool from_head = end == QUICKLIST_HEAD;
    struct quicklist_iter iter;
    struct listpack_value value;
    bool found = false;

    quicklist_iter_init(&iter, list, from_head ? from : -1 - from, from_head ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD);
    for (int64_t at = from; !found && at < to && quicklist_iter_next(&iter, &value); at++)
        found = quicklist_value_is(&value, needle);
    if (found)
        quicklist_delete(list, &iter);
    quicklist_iter_fini(&iter);
    return found;
}

/* Takes the first element with these bytes from that end on, if it is not too deep. */
static bool take_element(struct quicklist *list, enum quicklist_end end, struct slice element)
{
    const struct quicklist_needle needle = quicklist_needle_make(element);

    return take_between(list, end, 0, POP_NEAR_ELEMENTS, &needle) ||
           (quicklist_may_have(list, end, POP_SEARCH_ELEMENTS, element) &&
            take_between(list, end, POP_NEAR_ELEMENTS, POP_SEARCH_ELEMENTS, &needle));
}

/* KEYDB.OP.POP key LEFT|RIGHT element [element ...]: elements that a peer has popped from that end. Those that are not
 * there stay away. */
static void operate_pop(struct request *request)
{
    enum quicklist_end end;
    struct edit edit;
    int64_t taken = 0;

    if (!parse_end(request, 2, &end) || !edit_list(&edit, request, &request->keys[0]))
        return;
    for (uint32_t i = 3; !edit.is_new && i < request->arg_count; i++) {
        if (quicklist_count(list_of(edit.value)) == 0)
            break;
        if (!take_element(list_of(edit.value), end, request_arg(request, i)))
            continue;
        taken++;
        effect_add(request, /* readers of the plain stream do not know the operation */
                   (const struct slice[]){SLICE("LREM"), request->keys[0].name,
                                          end == QUICKLIST_HEAD ? SLICE("1") : SLICE("-1"), request_arg(request, i)},
                   4);
    }
    if (taken != 0)
        end_removal(&edit, pop_event(end));
    reply_int(request, taken);
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

static void cmd_llen(struct request *request)
{
    const struct quicklist *list;

    if (read_list(request, &list))
        reply_int(request, list != NULL ? (int64_t)quicklist_count(list) : 0);
}

static void cmd_lindex(struct request *request)
{
    const struct quicklist *list;
    struct quicklist_iter iter;
    struct listpack_value value;
    int64_t index;

    if (!read_list(request, &list))
        return;
    if (list == NULL) {
        reply_null(request);
        return;
    }
    if (!request_arg_i64(request, 2, &index))
        return;
    quicklist_iter_init(&iter, list, index, QUICKLIST_FORWARD);
    if (quicklist_iter_next(&iter, &value))
        reply_element(request, &value);
    else
        reply_null(request);
    quicklist_iter_fini(&iter);
}

/* start ... stop as places in a list of so many; ends before the first count from the last. False: none. */
static bool clamp_range(int64_t *start, int64_t *stop, uint64_t count)
{
    int64_t size = (int64_t)count;

    if (*start < 0)
        *start = MAX(*start + size, INT64_C(0));
    if (*stop < 0)
        *stop += size;
    *stop = MIN(*stop, size - 1);
    return *start <= *stop && *start < size;
}

static void cmd_lrange(struct request *request)
{
    const struct quicklist *list;
    struct quicklist_iter iter;
    struct listpack_value value;
    int64_t start, stop;

    if (!request_arg_i64(request, 2, &start) || !request_arg_i64(request, 3, &stop) || !read_list(request, &list))
        return;
    if (list == NULL || !clamp_range(&start, &stop, quicklist_count(list))) {
        reply_array(request, 0);
        return;
    }
    reply_array(request, (uint64_t)(stop - start + 1));
    quicklist_iter_init(&iter, list, start, QUICKLIST_FORWARD);
    for (; start <= stop && quicklist_iter_next(&iter, &value); start++)
        reply_element(request, &value);
    quicklist_iter_fini(&iter);
}

struct pos_options {
    uint64_t rank; /* which match is the first that counts, from 1 */
    bool from_tail;
    bool has_count;
    uint64_t count; /* 0: all */
    uint64_t most;  /* comparisons; 0: as many as there are elements */
};

static bool parse_pos_rank(struct request *request, uint32_t index, struct pos_options *options)
{
    int64_t rank;

    if (!request_arg_i64(request, index, &rank))
        return false;
    if (rank == INT64_MIN) {
        reply_error(request, "ERR value is out of range, value must between -9223372036854775807 and "
                             "9223372036854775807");
        return false;
    }
    if (rank == 0) {
        reply_error(request, "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or "
                             "use negative to start from the end of the list");
        return false;
    }
    options->from_tail = rank < 0;
    options->rank = (uint64_t)(rank < 0 ? -rank : rank);
    return true;
}

static bool parse_pos_options(struct request *request, struct pos_options *options)
{
    *options = (struct pos_options){.rank = 1, .count = 1};
    for (uint32_t i = 3; i < request->arg_count; i += 2) {
        int64_t number = 0;
        bool done;

        if (i + 1 == request->arg_count) {
            reply_syntax_error(request);
            return false;
        }
        if (request_arg_is(request, i, "RANK")) {
            done = parse_pos_rank(request, i + 1, options);
        } else if (request_arg_is(request, i, "COUNT")) {
            done = request_arg_range(request, i + 1, 0, INT64_MAX, &number, "ERR COUNT can't be negative");
            options->count = (uint64_t)number;
            options->has_count = true;
        } else if (request_arg_is(request, i, "MAXLEN")) {
            done = request_arg_range(request, i + 1, 0, INT64_MAX, &number, "ERR MAXLEN can't be negative");
            options->most = (uint64_t)number;
        } else {
            reply_syntax_error(request);
            return false;
        }
        if (!done)
            return false;
    }
    return true;
}

/* Replies the places found; how many. */
static uint64_t find_places(struct request *request, const struct quicklist *list, const struct pos_options *options)
{
    const struct quicklist_needle needle = quicklist_needle_make(request_arg(request, 2));
    const uint64_t size = quicklist_count(list);
    uint64_t matches = 0, found = 0;
    struct quicklist_iter iter;
    struct listpack_value value;

    quicklist_iter_init(&iter, list, options->from_tail ? -1 : 0,
                        options->from_tail ? QUICKLIST_BACKWARD : QUICKLIST_FORWARD);
    for (uint64_t i = 0; (options->most == 0 || i < options->most) && quicklist_iter_next(&iter, &value); i++) {
        if (!quicklist_value_is(&value, &needle) || ++matches < options->rank)
            continue;
        reply_int(request, (int64_t)(options->from_tail ? size - 1 - i : i));
        if (++found == options->count)
            break;
    }
    quicklist_iter_fini(&iter);
    return found;
}

static void cmd_lpos(struct request *request)
{
    const struct quicklist *list;
    struct pos_options options;
    struct resp_deferred head;
    uint64_t found;

    if (!parse_pos_options(request, &options) || !read_list(request, &list))
        return;
    if (!options.has_count) {
        if (list == NULL || find_places(request, list, &options) == 0)
            reply_null(request);
        return;
    }
    head = resp_begin_deferred(request->out);
    found = list != NULL ? find_places(request, list, &options) : 0;
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, found);
}

/* ---------------------------------------------------------------------------------------------------- changing -- */

static void cmd_lset(struct request *request)
{
    struct quicklist_iter iter;
    struct listpack_value value;
    struct edit edit;
    int64_t index;
    bool found;

    if (!edit_list(&edit, request, &request->keys[0]))
        return;
    if (edit.is_new) {
        reply_error(request, "ERR no such key");
        return;
    }
    if (!request_arg_i64(request, 2, &index))
        return;
    quicklist_iter_init(&iter, list_of(edit.value), index, QUICKLIST_FORWARD);
    found = quicklist_iter_next(&iter, &value);
    if (found)
        quicklist_replace(list_of(edit.value), &iter, request_arg(request, 3));
    quicklist_iter_fini(&iter);
    if (!found) {
        reply_error(request, "ERR index out of range");
        return;
    }
    edit_end(&edit, EVENT_LIST, "lset");
    reply_ok(request);
}

static void cmd_lrem(struct request *request)
{
    const struct quicklist_needle needle = quicklist_needle_make(request_arg(request, 3));
    struct quicklist_iter iter;
    struct listpack_value value;
    int64_t count, removed = 0;
    uint64_t most;
    struct edit edit;

    if (!request_arg_i64(request, 2, &count) || !edit_list(&edit, request, &request->keys[0]))
        return;
    if (edit.is_new) {
        reply_int(request, 0);
        return;
    }
    most = count == 0 ? UINT64_MAX : count < 0 ? -(uint64_t)count : (uint64_t)count;
    quicklist_iter_init(&iter, list_of(edit.value), count < 0 ? -1 : 0,
                        count < 0 ? QUICKLIST_BACKWARD : QUICKLIST_FORWARD);
    while ((uint64_t)removed < most && quicklist_iter_next(&iter, &value)) {
        if (!quicklist_value_is(&value, &needle))
            continue;
        quicklist_delete(list_of(edit.value), &iter);
        removed++;
    }
    quicklist_iter_fini(&iter);
    if (removed > 0)
        end_removal(&edit, "lrem");
    reply_int(request, removed);
}

static void cmd_ltrim(struct request *request)
{
    struct quicklist *list;
    struct edit edit;
    int64_t start, stop;
    uint64_t count;

    if (!request_arg_i64(request, 2, &start) || !request_arg_i64(request, 3, &stop) ||
        !edit_list(&edit, request, &request->keys[0]))
        return;
    if (!edit.is_new) {
        list = list_of(edit.value);
        count = quicklist_count(list);
        if (clamp_range(&start, &stop, count)) {
            (void)quicklist_delete_range(list, stop + 1, count);
            (void)quicklist_delete_range(list, 0, (uint64_t)start);
        } else {
            (void)quicklist_delete_range(list, 0, count);
        }
        if (quicklist_count(list) == count) /* watchers of the key are informed, but replicas get nothing */
            effect_none(request);
        end_removal(&edit, "ltrim");
    }
    reply_ok(request);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row list_commands[] = {
    {.name = "keydb.op.pop", .run = operate_pop, .arity = -4, .access = ACCESS_STRIPED, .flags = "write operation",
     .categories = "@write @list @slow", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "list", .since = "7.0.0",
     .summary = "Removes elements that were popped on another server.",
     .complexity = "O(N) for N elements, each searched in the 4096 elements at that end",
     .syntax = "KEYDB.OP.POP key LEFT|RIGHT element [element ...]"},
    {.name = "lpush", .run = cmd_lpush, .arity = -3, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @list @fast", .keys = "RW,INSERT@index:1@range:0,1,0", .group = "list", .since = "1.0.0",
     .summary = "Inserts elements at the front of a list. Creates the key if it does not exist.",
     .complexity = "O(N) for N elements",
     .syntax = "LPUSH key element [element ...]", .history = "2.4.0=Several elements in one call."},
    {.name = "rpush", .run = cmd_rpush, .arity = -3, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @list @fast", .keys = "RW,INSERT@index:1@range:0,1,0", .group = "list", .since = "1.0.0",
     .summary = "Appends elements to a list. Creates the key if it does not exist.",
     .complexity = "O(N) for N elements",
     .syntax = "RPUSH key element [element ...]", .history = "2.4.0=Several elements in one call."},
    {.name = "lpushx", .run = cmd_lpushx, .arity = -3, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @list @fast", .keys = "RW,INSERT@index:1@range:0,1,0", .group = "list", .since = "2.2.0",
     .summary = "Inserts elements at the front of a list that exists.", .complexity = "O(N) for N elements",
     .syntax = "LPUSHX key element [element ...]", .history = "4.0.0=Several elements in one call."},
    {.name = "rpushx", .run = cmd_rpushx, .arity = -3, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @list @fast", .keys = "RW,INSERT@index:1@range:0,1,0", .group = "list", .since = "2.2.0",
     .summary = "Appends elements to a list that exists.", .complexity = "O(N) for N elements",
     .syntax = "RPUSHX key element [element ...]", .history = "4.0.0=Several elements in one call."},
    {.name = "linsert", .run = cmd_linsert, .arity = 5, .access = ACCESS_STRIPED, .flags = "write denyoom",
     .categories = "@write @list @slow", .keys = "RW,INSERT@index:1@range:0,1,0", .group = "list", .since = "2.2.0",
     .summary = "Inserts an element before or after another one.", .complexity = "O(N) for N elements up to the place",
     .syntax = "LINSERT key (BEFORE|AFTER) pivot element"},
    {.name = "lpop", .run = cmd_lpop, .arity = -2, .access = ACCESS_STRIPED, .flags = "write fast alone",
     .categories = "@write @list @fast", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0", .group = "list",
     .since = "1.0.0", .summary = "Removes and returns the first elements of a list.",
     .complexity = "O(N) for N elements returned", .syntax = "LPOP key [count]", .arg_since = "count:6.2.0",
     .history = "6.2.0=The argument `count`."},
    {.name = "rpop", .run = cmd_rpop, .arity = -2, .access = ACCESS_STRIPED, .flags = "write fast alone",
     .categories = "@write @list @fast", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0", .group = "list",
     .since = "1.0.0", .summary = "Removes and returns the last elements of a list.",
     .complexity = "O(N) for N elements returned", .syntax = "RPOP key [count]", .arg_since = "count:6.2.0",
     .history = "6.2.0=The argument `count`."},
    {.name = "lmpop", .run = cmd_lmpop, .arity = -4, .access = ACCESS_STRIPED, .flags = "write movablekeys alone",
     .categories = "@write @list @slow", .keys = "RW,ACCESS,DELETE@index:1@keynum:0,1,1", .group = "list",
     .since = "7.0.0", .summary = "Removes and returns elements of the first list that is not empty.",
     .complexity = "O(N+M) for N keys and M elements returned",
     .syntax = "LMPOP numkeys key [key ...] (LEFT|RIGHT) [COUNT count]"},
    {.name = "lmove", .run = cmd_lmove, .arity = 5, .access = ACCESS_STRIPED, .flags = "write denyoom",
     .categories = "@write @list @slow", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0 RW,INSERT@index:2@range:0,1,0",
     .group = "list", .since = "6.2.0", .summary = "Moves an element from one list to another.", .complexity = "O(1)",
     .syntax = "LMOVE source destination (LEFT|RIGHT) (LEFT|RIGHT)"},
    {.name = "lmovem", .run = cmd_lmovem, .arity = -5, .access = ACCESS_STRIPED, .flags = "write denyoom alone",
     .categories = "@write @list @slow", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0 RW,INSERT@index:2@range:0,1,0",
     .group = "list", .since = "8.10.0", .summary = "Moves several elements from one list to another.",
     .complexity = "O(N) for N elements moved",
     .syntax = "LMOVEM source destination (LEFT|RIGHT) (LEFT|RIGHT) [(COUNT count|EXACTLY count) (OBO|BULK)]"},
    {.name = "rpoplpush", .run = cmd_rpoplpush, .arity = 3, .access = ACCESS_STRIPED,
     .flags = "write denyoom deprecated", .categories = "@write @list @slow",
     .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0 RW,INSERT@index:2@range:0,1,0", .group = "list", .since = "1.2.0",
     .summary = "Moves the last element of a list to the front of another.", .complexity = "O(1)",
     .syntax = "RPOPLPUSH source destination", .deprecated_since = "6.2.0",
     .replaced_by = "`LMOVE` with the `RIGHT` and `LEFT` arguments"},
    {.name = "blpop", .run = cmd_blpop, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "write blocking alone", .categories = "@write @list @slow @blocking",
     .keys = "RW,ACCESS,DELETE@index:1@range:-2,1,0", .group = "list", .since = "2.0.0",
     .summary = "Removes and returns the first element of the first list that is not empty. Blocks until there is one.",
     .complexity = "O(N) for N keys", .syntax = "BLPOP key [key ...] timeout",
     .history = "6.0.0=A timeout may be a fraction of a second."},
    {.name = "brpop", .run = cmd_brpop, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "write blocking alone", .categories = "@write @list @slow @blocking",
     .keys = "RW,ACCESS,DELETE@index:1@range:-2,1,0", .group = "list", .since = "2.0.0",
     .summary = "Removes and returns the last element of the first list that is not empty. Blocks until there is one.",
     .complexity = "O(N) for N keys", .syntax = "BRPOP key [key ...] timeout",
     .history = "6.0.0=A timeout may be a fraction of a second."},
    {.name = "blmpop", .run = cmd_blmpop, .arity = -5, .access = ACCESS_STRIPED,
     .flags = "write blocking movablekeys alone", .categories = "@write @list @slow @blocking",
     .keys = "RW,ACCESS,DELETE@index:2@keynum:0,1,1", .group = "list", .since = "7.0.0",
     .summary = "Removes and returns elements of the first list that is not empty. Blocks until there is one.",
     .complexity = "O(N+M) for N keys and M elements returned",
     .syntax = "BLMPOP timeout numkeys key [key ...] (LEFT|RIGHT) [COUNT count]"},
    {.name = "blmove", .run = cmd_blmove, .arity = 6, .access = ACCESS_STRIPED,
     .flags = "write denyoom blocking alone", .categories = "@write @list @slow @blocking",
     .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0 RW,INSERT@index:2@range:0,1,0", .group = "list", .since = "6.2.0",
     .summary = "Moves an element from one list to another. Blocks until there is one.", .complexity = "O(1)",
     .syntax = "BLMOVE source destination (LEFT|RIGHT) (LEFT|RIGHT) timeout"},
    {.name = "blmovem", .run = cmd_blmovem, .arity = -6, .access = ACCESS_STRIPED,
     .flags = "write denyoom blocking alone", .categories = "@write @list @slow @blocking",
     .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0 RW,INSERT@index:2@range:0,1,0", .group = "list", .since = "8.10.0",
     .summary = "Moves several elements from one list to another. Blocks until there are any, or enough.",
     .complexity = "O(N) for N elements moved",
     .syntax = "BLMOVEM source destination (LEFT|RIGHT) (LEFT|RIGHT) timeout [(COUNT count|EXACTLY count) "
               "(OBO|BULK)]"},
    {.name = "brpoplpush", .run = cmd_brpoplpush, .arity = 4, .access = ACCESS_STRIPED,
     .flags = "write denyoom blocking deprecated alone", .categories = "@write @list @slow @blocking",
     .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0 RW,INSERT@index:2@range:0,1,0", .group = "list", .since = "2.2.0",
     .summary = "Moves the last element of a list to the front of another. Blocks until there is one.",
     .complexity = "O(1)",
     .syntax = "BRPOPLPUSH source destination timeout", .deprecated_since = "6.2.0",
     .replaced_by = "`BLMOVE` with the `RIGHT` and `LEFT` arguments",
     .history = "6.0.0=A timeout may be a fraction of a second."},
    {.name = "llen", .run = cmd_llen, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @list @fast", .keys = "RO@index:1@range:0,1,0", .group = "list", .since = "1.0.0",
     .summary = "Returns how many elements a list has.", .complexity = "O(1)", .syntax = "LLEN key"},
    {.name = "lindex", .run = cmd_lindex, .arity = 3, .access = ACCESS_STRIPED, .flags = "readonly",
     .categories = "@read @list @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "list", .since = "1.0.0",
     .summary = "Returns the element at an index.", .complexity = "O(N) for a place N elements from the nearer end",
     .syntax = "LINDEX key index"},
    {.name = "lrange", .run = cmd_lrange, .arity = 4, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @list @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "list", .since = "1.0.0",
     .summary = "Returns a range of elements.", .complexity = "O(S+N) for N elements that begin S from the nearer end",
     .syntax = "LRANGE key start stop"},
    {.name = "lpos", .run = cmd_lpos, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @list @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "list", .since = "6.0.6",
     .summary = "Returns the indexes of the elements that equal a given one.",
     .complexity = "O(N) for a list of N elements",
     .syntax = "LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]"},
    {.name = "lset", .run = cmd_lset, .arity = 4, .access = ACCESS_STRIPED, .flags = "write denyoom",
     .categories = "@write @list @slow", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "list", .since = "1.0.0",
     .summary = "Sets the element at an index.", .complexity = "O(N) for a place N elements from the nearer end",
     .syntax = "LSET key index element"},
    {.name = "lrem", .run = cmd_lrem, .arity = 4, .access = ACCESS_STRIPED, .flags = "write alone",
     .categories = "@write @list @slow", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "list", .since = "1.0.0",
     .summary = "Removes elements that equal a given one.",
     .complexity = "O(N+M) for N elements of which M are removed", .syntax = "LREM key count element"},
    {.name = "ltrim", .run = cmd_ltrim, .arity = 4, .access = ACCESS_STRIPED, .flags = "write alone",
     .categories = "@write @list @slow", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "list", .since = "1.0.0",
     .summary = "Removes all elements outside of a range.", .complexity = "O(N) for N elements removed",
     .syntax = "LTRIM key start stop"},
    {.name = NULL},
};
/* clang-format on */
