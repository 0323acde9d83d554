#include "server/command/owned_args.h"

#include "base/assert.h"
#include "base/mem.h"

static bool is_in_blob(const struct owned_args *kept, uint32_t arg_index)
{
    for (uint32_t i = 0; i < kept->blob_count; i++) {
        if (kept->blobs[i].arg_index == arg_index)
            return true;
    }
    return false;
}

static void keep_blobs(struct owned_args *kept, const struct resp_blob_arg *blobs, uint32_t blob_count)
{
    if (blob_count == 0)
        return;
    kept->blobs = mem_alloc(blob_count * sizeof(struct resp_blob_arg));
    for (uint32_t i = 0; i < blob_count; i++) {
        assert(blobs[i].arg_index < kept->arg_count);
        if (blobs[i].blob != NULL) /* else somebody has taken it: its words are not to be looked at any more */
            kept->blobs[kept->blob_count++] = (struct resp_blob_arg){blobs[i].arg_index, blob_acquire(blobs[i].blob)};
    }
}

static void keep_args(struct owned_args *kept, const struct slice *args)
{
    size_t size = 0;
    char *at;

    for (uint32_t i = 0; i < kept->arg_count; i++)
        size += is_in_blob(kept, i) ? 0 : args[i].size;
    kept->args = mem_alloc(kept->arg_count * sizeof(struct slice));
    kept->bytes = at = mem_alloc(size + 1);
    kept->memory_bytes = kept->arg_count * sizeof(struct slice) + size + 1;
    for (uint32_t i = 0; i < kept->arg_count; i++) {
        kept->args[i] = args[i];
        if (args[i].size == 0 || is_in_blob(kept, i))
            continue;
        memcpy(at, args[i].data, args[i].size);
        kept->args[i].data = at;
        at += args[i].size;
    }
    assert(at == kept->bytes + size);
}

static void keep_keys(struct owned_args *kept, const struct slice *args, const struct key *keys, uint32_t key_count)
{
    kept->keys = mem_alloc(key_count * sizeof(struct key));
    kept->key_count = key_count;
    kept->memory_bytes += key_count * sizeof(struct key);
    for (uint32_t i = 0; i < key_count; i++) {
        kept->keys[i] = keys[i];
        for (uint32_t k = 0; k < kept->arg_count; k++) { /* the same bytes in the copy; of a path its beginning */
            if (keys[i].name.data == args[k].data && keys[i].name.size <= args[k].size) {
                kept->keys[i].name.data = kept->args[k].data;
                break;
            }
        }
    }
}

void owned_args_make(struct owned_args *kept, const struct slice *args, uint32_t arg_count,
                     const struct resp_blob_arg *blobs, uint32_t blob_count, const struct key *keys, uint32_t key_count)
{
    *kept = (struct owned_args){.arg_count = arg_count};
    keep_blobs(kept, blobs, blob_count);
    keep_args(kept, args);
    if (key_count != 0)
        keep_keys(kept, args, keys, key_count);
}

void owned_args_find_keys(struct owned_args *kept, const struct command *command)
{
    struct key_positions positions = {0};

    assert(kept->keys == NULL && kept->args != NULL);
    if (command_keys(command, kept->args, kept->arg_count, &positions) && positions.count != 0) {
        kept->keys = mem_alloc(positions.count * sizeof(struct key));
        kept->key_count = positions.count;
        kept->memory_bytes += positions.count * sizeof(struct key);
        for (uint32_t i = 0; i < positions.count; i++)
            kept->keys[i] = key_make(key_position_name(kept->args, positions.items[i]));
    }
    key_positions_fini(&positions);
}

void owned_args_fini(struct owned_args *kept)
{
    for (uint32_t i = 0; i < kept->blob_count; i++)
        blob_release(&kept->blobs[i].blob);
    mem_free(kept->blobs);
    mem_free(kept->args);
    mem_free(kept->keys);
    mem_free(kept->bytes);
}
