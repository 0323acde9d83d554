#include "server/config/config_words.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/memtest.h"
#include "base/number.h"
#include "base/slice.h"
#include "base/thread.h"
#include "base/version.h"
#include "server/config/config.h"
#include "server/config/system_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MEMORY_TEST_PASSES = 50, MEGABYTES_MOST = 64 * 1024 * 1024 };

static int print_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("KeyDB server v=%s sha=%s:%d malloc=%s bits=%d build=%llx\n", KEYDB_VERSION, KEYDB_GIT_SHA1, KEYDB_GIT_DIRTY,
           mem_allocator_name(), (int)(8 * sizeof(void *)), (unsigned long long)config_build_id());
    return EXIT_SUCCESS;
}

static int print_usage(int argc, char **argv)
{
    static const char usage[] =
        "Usage: keydb-server [FILE] [--OPTION VALUE...]... [-]\n"
        "       keydb-server -v | --version\n"
        "       keydb-server -h | --help\n"
        "       keydb-server --test-memory MEGABYTES      write patterns to that much memory and read them back\n"
        "       keydb-server --check-system               what of this system's settings costs speed or safety\n"
        "       keydb-server --is-flash-enabled           exit code 0 if values can be kept on flash, else 1\n"
        "\n"
        "FILE holds options, one a line: see keydb.conf. A minus, as the first or the last word, reads more of them\n"
        "from standard input. Options of the command line come last and win.\n"
        "\n"
        "Examples:\n"
        "       keydb-server                              all defaults\n"
        "       keydb-server /etc/keydb/keydb.conf\n"
        "       keydb-server --port 7777 --server-threads 2\n"
        "       keydb-server /etc/keydb/keydb.conf --loglevel verbose -\n"
        "       echo 'maxmemory 128mb' | keydb-server -\n";

    (void)argc;
    (void)argv;
    fputs(usage, stderr);
    return EXIT_FAILURE;
}

static int run_memory_test(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t wrong = 0;

    if (memory == MAP_FAILED) {
        fprintf(stderr, "Unable to allocate %zu MB: choose less.\n", bytes >> 20);
        return EXIT_FAILURE;
    }
    for (unsigned pass = 1; pass <= MEMORY_TEST_PASSES; pass++) {
        uint64_t found = memtest_run(memory, bytes / sizeof(uint64_t), pass);

        printf("pass %u of %d: %llu wrong words\n", pass, MEMORY_TEST_PASSES, (unsigned long long)found);
        fflush(stdout);
        wrong += found;
    }
    munmap(memory, bytes);
    if (wrong == 0) {
        printf("\nYour memory passed this test. Repeat it, for hours, if you suspect the machine: errors may be rare, "
               "and only memory that was free could be tested.\n");
        return EXIT_SUCCESS;
    }
    printf("\n*** MEMORY ERROR DETECTED: %llu words came back different. ***\n", (unsigned long long)wrong);
    return EXIT_FAILURE;
}

static int test_memory(int argc, char **argv)
{
    int64_t megabytes;

    if (argc == 3 && number_parse_i64(slice_from_text(argv[2]), &megabytes) && megabytes > 0 &&
        megabytes <= MEGABYTES_MOST)
        return run_memory_test((size_t)megabytes << 20);
    fprintf(stderr, "Please specify the amount of memory to test in megabytes.\n"
                    "Example: keydb-server --test-memory 4096\n");
    return EXIT_FAILURE;
}

static int check_system(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return system_check_report();
}

static int is_flash_enabled(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return EXIT_FAILURE;
}

static const struct {
    const char *word;
    int (*run)(int argc, char **argv);
} words[] = {
    {"-v", print_version},
    {"--version", print_version},
    {"-h", print_usage},
    {"--help", print_usage},
    {"--test-memory", test_memory},
    {"--check-system", check_system},
    {"--is-flash-enabled", is_flash_enabled},
};

/* Installations link these names to the server, as one program can be all of them. */
static const struct {
    const char *name;
    const char *what;
} other_programs[] = {
    {"redis-sentinel", "Sentinel"},         {"keydb-sentinel", "Sentinel"},
    {"redis-check-rdb", "The RDB checker"}, {"keydb-check-rdb", "The RDB checker"},
    {"redis-check-aof", "The AOF checker"}, {"keydb-check-aof", "The AOF checker"},
};

static bool refuse(const char *what, int *exit_status)
{
    fprintf(stderr, "%s is not part of this build.\n", what);
    *exit_status = EXIT_FAILURE;
    return true;
}

bool config_run_word(int argc, char **argv, int *exit_status)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "";

    thread_assert_main();
    for (size_t i = 0; i < countof(other_programs); i++) {
        if (strstr(name, other_programs[i].name) != NULL)
            return refuse(other_programs[i].what, exit_status);
    }
    for (size_t i = 0; argc > 1 && i < countof(words); i++) {
        if (strcmp(argv[1], words[i].word) == 0) {
            *exit_status = words[i].run(argc, argv);
            return true;
        }
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--sentinel") == 0)
            return refuse("Sentinel", exit_status);
    }
    return false;
}
