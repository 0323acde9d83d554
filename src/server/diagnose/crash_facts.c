#include "server/diagnose/crash_facts.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/acl/acl_user.h"
#include "server/config/options.h"
#include "server/config/options_process.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/stats.h"
#include "server/core/worker.h"
#include "server/observe/info.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 1024, ARGS_MOST = 32, ARG_BYTES = 128, US_PER_SECOND = 1000000 };

/* Whole numbers and texts only: for these glibc's formatting neither locks nor allocates. */
void crash_say(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    log_from_signal_raw(line, (size_t)MIN(MAX(size, 0), LINE_BYTES - 1));
}

/* ------------------------------------------------------------------------------------------------------- client -- */

/* A byte that cannot be printed becomes a dot. */
static void say_argument(unsigned index, struct slice word)
{
    char shown[ARG_BYTES + 1];
    size_t size = MIN(word.size, (size_t)ARG_BYTES);

    for (size_t i = 0; i < size; i++)
        shown[i] = word.data[i] >= ' ' && word.data[i] <= '~' ? word.data[i] : '.';
    shown[size] = '\0';
    crash_say("argv[%u]: '%s'%s\n", index, shown, word.size > size ? "..." : "");
}

static unsigned long long u64(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static unsigned u32(const _Atomic uint32_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static const char *text_or_none(const char *text)
{
    return text != NULL ? text : "";
}

static void say_session(const struct client_card *card)
{
    crash_say("id=%llu addr=%.100s laddr=%.100s fd=%d name=%.128s age=%lld flags=0x%x db=%u resp=%u user=%.128s "
              "lib-name=%.64s lib-ver=%.64s",
              (unsigned long long)card->id, card->address, card->local_address, card->fd, text_or_none(card->name),
              ((long long)clock_monotonic_us() - (long long)card->created_us) / US_PER_SECOND, u32(&card->flags),
              u32(&card->db), u32(&card->proto), card->user->name.data, text_or_none(card->library_name),
              text_or_none(card->library_version));
}

static void say_work(const struct client_card *card, struct slice command)
{
    crash_say(" cmd=%.*s multi=%d watch=%u sub=%u psub=%u ssub=%u qbuf=%llu argv-mem=%llu multi-mem=%llu oll=%llu "
              "omem=%llu tot-mem=%llu tot-net-in=%llu tot-net-out=%llu\n",
              (int)command.size, command.data, (int)atomic_load_explicit(&card->queued_count, memory_order_relaxed),
              u32(&card->watched_count), u32(&card->subscription_counts[TOPIC_CHANNEL]),
              u32(&card->subscription_counts[TOPIC_PATTERN]), u32(&card->subscription_counts[TOPIC_SHARD]),
              u64(&card->query_bytes), u64(&card->args_bytes), u64(&card->multi_bytes), u64(&card->output_pieces),
              u64(&card->output_bytes), (unsigned long long)client_card_memory_bytes(card), u64(&card->bytes_in),
              u64(&card->bytes_out));
}

void crash_facts_client(void)
{
    const struct worker *worker = worker_self();
    const struct request *request = worker != NULL ? worker->run.running : NULL;

    if (request == NULL) {
        crash_say("%s\n",
                  worker != NULL ? "none: this worker was not running a command" : "none: this thread is no worker");
        return;
    }
    crash_say("argc: %u\n", request->arg_count);
    for (unsigned i = 0; i < request->arg_count && i < ARGS_MOST; i++) {
        if (i == 0 || !OPTION_IS(option_hide_user_data_from_log))
            say_argument(i, request->args[i]);
    }
    if (request->client == NULL)
        return;
    say_session(&request->client->card); /* its texts are guarded by the roster lock, but replaced by this thread */
    say_work(&request->client->card, request->command->full_name);
}

/* --------------------------------------------------------------------------------------------------------- info -- */

static void say_title(const char *title)
{
    crash_say("\n# %s\n", title);
}

static void say_field(const char *name, const char *value)
{
    crash_say("%s:%.500s\n", name, value);
}

static void say_keyspace(void)
{
    say_title("Keyspace");
    for (unsigned db = 0; db < server_database_count(); db++) {
        struct keyspace_stats stats;

        server_keyspace_stats(db, &stats);
        if (stats.keys != 0)
            crash_say("db%u:keys=%llu,expires=%llu\n", db, (unsigned long long)stats.keys,
                      (unsigned long long)stats.expires);
    }
}

static void say_threads(void)
{
    struct server_stats stats;

    server_stats_collect_sums(&stats);
    say_title("KeyDB");
    for (unsigned i = 0; i < stats.thread_count; i++)
        crash_say("worker%u:clients=%llu,commands=%llu,errors=%llu,lock_waits=%llu,turns=%llu\n", i,
                  (unsigned long long)stats.thread_clients[i], (unsigned long long)stats.threads[i].commands_processed,
                  (unsigned long long)stats.threads[i].error_replies, (unsigned long long)stats.threads[i].lock_waits,
                  (unsigned long long)stats.threads[i].loop_turns);
}

/* The fields of INFO that are safe, and what INFO tells of each database and each worker. */
void crash_facts_info(void)
{
    info_tell_safe(say_title, say_field);
    if (server_instance() == NULL)
        return;
    say_keyspace();
    say_threads();
}
