/* DEBUG SEGFAULT: an access to memory that must not be touched, also in the worst places. */
#include "commands/debug/debug_priv.h"

#include "base/mem_control.h"
#include "base/rows.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <sys/mman.h>

enum { PAGE_BYTES = 4096 };

static volatile char *forbidden_page(void)
{
    return mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void fault(void)
{
    *forbidden_page() = 1;
}

static void fault_at_card(const struct client_card *card, void *context)
{
    (void)card;
    (void)context;
    fault();
}

/* Copies the text, under the lock, to an invalid address. */
static void fault_under_strings_lock(void)
{
    char text[] = "text";
    const struct option_string string = {.data = text, .size = sizeof(text) - 1};
    struct buffer buffer = {.data = (char *)(uintptr_t)forbidden_page(), .capacity = PAGE_BYTES};

    option_string_append(&string, &buffer);
}

void debug_segfault(struct request *request)
{
    if (request->arg_count > 2 && request_arg_is(request, 2, "roster"))
        server_each_client(request->worker->server, fault_at_card, NULL);
    if (request->arg_count > 2 && request_arg_is(request, 2, "registry"))
        fault_under_strings_lock();
    if (request->arg_count > 2 && request_arg_is(request, 2, "allocator"))
        mem_control_run_inside(fault);
    fault();
}
