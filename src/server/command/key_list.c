#include "server/command/key_list.h"

uint32_t key_list_add(struct key_list *list, const struct command *command, const struct slice *args,
                      uint32_t arg_count)
{
    struct key_positions *positions = &list->positions;

    if (command->first_key == 0 && command->key_spec_count == 0 && command->row->find_keys == NULL)
        return 0;
    positions->count = 0;
    if (!command_keys(command, args, arg_count, positions))
        return 0;
    ARRAY_RESERVE(list, positions->count);
    for (uint32_t i = 0; i < positions->count; i++)
        list->items[list->count++] = key_make(key_position_name(args, positions->items[i]));
    return positions->count;
}

void key_list_fini(struct key_list *list)
{
    key_positions_fini(&list->positions);
    ARRAY_FINI(list);
}
