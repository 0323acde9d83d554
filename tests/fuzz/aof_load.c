/* An append-only file as a server loads it: the last one of its manifest, into the store of a server that does not run.
 * Properties: with any bytes loading ends, and the loaded keyspace is valid and can be emptied; a file whose end was
 * cut off is loaded a second time without anything to cut off, with the same number of commands. Scripts are left out:
 * they may run for ever. */
#define main server_main
int server_main(int argc, char **argv);
#include "main.c" /* so that nothing of how it is put together is said twice */
#undef main

#include "base/background.h"
#include "fuzz.h"
#include "server/durable/aof_load.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/keydb-fuzz-XXXXXX";
static const char path[] = "appendonlydir/f";
static struct server *server;

static int home; /* where the fuzzer has its files */

static void remove_folder(void)
{
    if (chdir(folder) != 0)
        return;
    (void)unlink(path);
    (void)unlink("socket");
    (void)rmdir("appendonlydir");
    (void)rmdir(folder);
}

static void start(void)
{
    /* clang-format off */
    static const struct command_row *const tables[] = {
        string_commands,
        lcs_commands,
        keys_commands,
        expire_commands,
        scan_commands,
        connection_commands,
        transaction_commands,
        admin_commands,
        bitmap_commands,
        hyperloglog_commands,
        hash_commands,
        hash_ex_commands,
        list_commands,
        set_commands,
        sorted_set_commands,
        stream_commands,
        sorted_set_pop_commands,
        sorted_set_algebra_commands,
        stream_group_commands,
        stream_reference_commands,
        stream_read_commands,
        member_expiry_commands,
        nested_commands,
        geo_commands,
        dump_commands,
        sort_commands,
    };
    /* clang-format on */
    static char words[][32] = {"keydb-server", "--port 0", "--server-threads 1", "--loglevel nothing",
                               "--unixsocket socket"};
    static char *args[countof(words) + 1];
    int exit_status = 0;

    home = open(".", O_RDONLY | O_DIRECTORY);
    assert(home >= 0 && mkdtemp(folder) != NULL && chdir(folder) == 0 && mkdir("appendonlydir", 0700) == 0);
    for (size_t i = 0; i < countof(words); i++)
        args[i] = words[i];
    atexit(remove_folder);
    fence_setup();
    hash_setup();
    mem_thread_start();
    parts_setup();
    command_registry_setup(tables, countof(tables));
    assert(config_load(countof(words), args, &exit_status));
    background_setup(1);
    server = server_create();
    assert(server != NULL);
    types_setup(server->store);
    aof_load_provide(&apply_functions);
    log_set_level(LOG_LEVEL_NOTHING);
}

static void put(struct slice bytes)
{
    FILE *file = fopen(path, "wb");

    assert(file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size && fclose(file) == 0);
}

static void empty(void)
{
    for (unsigned db = 0; db < store_database_bound(server->store); db++)
        access_flush_db(&server->workers[0].run.access, db, false);
}

static bool load(struct aof_load_result *result)
{
    struct aof_part part = {.name = (char *)(uintptr_t) "f", .sequence = 1, .type = AOF_INCREMENT};
    const struct aof_manifest manifest = {.items = &part, .count = 1, .capacity = 1};
    const struct aof_load_request request = {.worker = &server->workers[0]};

    empty();
    return aof_load_run(&manifest, &request, result);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct aof_load_result first, second;

    if (server == NULL)
        start();
    assert(chdir(folder) == 0);
    access_begin(&server->workers[0].run.access, 1, true);
    put(slice_make(bytes, size));
    if (load(&first)) {
        bool good = load(&second);

        assert(good);
        assert(first.commands == second.commands && first.keys == second.keys);
    }
    empty();
    for (unsigned db = 0; db < store_database_bound(server->store); db++)
        assert(store_key_count(server->store, db) == 0);
    background_drain(); /* what a thread is about to free would be taken for leaks: tables keep tagged addresses */
    assert(fchdir(home) == 0);
    return 0;
}
