#include "server/diagnose/crash.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/memtest.h"
#include "base/panic.h"
#include "base/stack_trace.h"
#include "base/thread.h"
#include "base/version.h"
#include "server/config/config.h"
#include "server/config/options_process.h"
#include "server/diagnose/crash_facts.h"
#include "server/process/process.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK_BYTES = 128 * 1024, REPORT_SECONDS = 30, MEMORY_TEST_MS = 10000 };

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static _Atomic bool has_begun;                  /* atomic: the thread that sets it reports */
static _Thread_local bool is_reporting;         /* owner: the thread */
static _Thread_local char *handler_stack;       /* owner: the thread */
static const char *current_part = "";           /* owner: the reporting thread; for a fault inside the report */
static _Thread_local const char *panic_message; /* owner: the thread; NULL: it does not panic */
static int reported_signal;                     /* owner: the reporting thread, like the next */
static uint64_t allocated_before;               /* by this thread, before the report */

/* ------------------------------------------------------------------------------------------------------- pieces -- */

static void begin_part(const char *title)
{
    current_part = title;
    crash_say("\n------ %s ------\n", title);
}

/* Tools look for either name. */
static void say_start(void)
{
    crash_say("\n\n=== KEYDB BUG REPORT START: Cut & paste starting from here ===\n");
    crash_say("=== REDIS BUG REPORT START: Cut & paste starting from here ===\n");
    log_from_signal("KeyDB " KEYDB_VERSION " (commit " KEYDB_GIT_SHA1 ")");
}

static void say_end(void)
{
    crash_say("\n=== REDIS BUG REPORT END. Make sure to include from START to END. ===\n");
    crash_say("=== KEYDB BUG REPORT END. Make sure to include from START to END. ===\n\n");
    crash_say("Please send the report above, and what the server was doing, to those who look after this program.\n"
              "If the memory check found errors, or the machine has crashed otherwise, suspect its memory:\n"
              "    keydb-server --test-memory <megabytes>\n");
}

static void say_registers(const ucontext_t *context)
{
#if defined(__x86_64__)
    static const struct {
        const char *name;
        int index;
    } registers[] = {{"RAX", REG_RAX}, {"RBX", REG_RBX}, {"RCX", REG_RCX}, {"RDX", REG_RDX}, {"RDI", REG_RDI},
                     {"RSI", REG_RSI}, {"RBP", REG_RBP}, {"RSP", REG_RSP}, {"R8 ", REG_R8},  {"R9 ", REG_R9},
                     {"R10", REG_R10}, {"R11", REG_R11}, {"R12", REG_R12}, {"R13", REG_R13}, {"R14", REG_R14},
                     {"R15", REG_R15}, {"RIP", REG_RIP}, {"EFL", REG_EFL}};

    for (size_t i = 0; i < countof(registers); i++)
        crash_say("%s:%016llx%s", registers[i].name, (unsigned long long)context->uc_mcontext.gregs[registers[i].index],
                  i % 4 == 3 ? "\n" : " ");
    crash_say("\n");
#elif defined(__aarch64__)
    for (int i = 0; i < 31; i++)
        crash_say("X%-2d:%016llx%s", i, (unsigned long long)context->uc_mcontext.regs[i], i % 4 == 3 ? "\n" : " ");
    crash_say("SP:%016llx PC:%016llx\n", (unsigned long long)context->uc_mcontext.sp,
              (unsigned long long)context->uc_mcontext.pc);
#else
    (void)context;
    crash_say("not known on this kind of processor\n");
#endif
}

static const void *instruction_of(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (const void *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)(uintptr_t)context->uc_mcontext.pc;
#else
    (void)context;
    return NULL;
#endif
}

#ifdef MEM_LIBC
enum { MEMORY_IS_WATCHED = 1 }; /* by a sanitizer, whose own records are no place for patterns */
#else
enum { MEMORY_IS_WATCHED = 0 };
#endif

static void run_memory_test(void)
{
    struct memtest_result result = memtest_process(handler_stack, STACK_BYTES, MEMORY_TEST_MS);

    crash_say("%llu MB tested%s: ", (unsigned long long)(result.tested_bytes >> 20),
              result.is_complete ? "" : ", then time was over");
    if (result.wrong_words == 0)
        crash_say("Fast memory test PASSED, however your memory can still be broken. Run a memory test for several "
                  "hours if possible.\n");
    else
        crash_say("!!! MEMORY ERROR DETECTED! %llu words differ, the first in the page at %p. Check your memory ASAP "
                  "!!!\n",
                  (unsigned long long)result.wrong_words, result.first_wrong);
}

static void check_memory(void)
{
    if (!OPTION_IS(option_crash_memcheck_enabled))
        crash_say("left out: crash-memcheck-enabled is no\n");
    else if (MEMORY_IS_WATCHED)
        crash_say("left out: this build watches memory in its own way\n");
    else if (handler_stack == NULL)
        crash_say("left out: this thread has no stack of its own for it\n");
    else
        run_memory_test();
}

/* All that follows the stack of the thread that failed. */
static void say_rest(const ucontext_t *context)
{
    current_part = "STACK TRACE";
    stack_trace_others(true);
    begin_part("REGISTERS");
    say_registers(context);
    begin_part("CURRENT CLIENT INFO");
    crash_facts_client();
    begin_part("FAST MEMORY TEST");
    check_memory();
    begin_part("INFO OUTPUT");
    crash_facts_info();
    crash_say("\nMemory that this report has allocated: %llu bytes\n",
              (unsigned long long)(mem_thread_allocated() - allocated_before));
    say_end();
    process_remove_pidfile();
}

/* ------------------------------------------------------------------------------------------------------ signals -- */

static void set_default(int signal_number)
{
    struct sigaction action;
    sigset_t one;

    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_DFL;
    sigaction(signal_number, &action, NULL);
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

static void on_late(int signal_number)
{
    (void)signal_number;
    crash_say("\nThe report takes too long in its part \"%s\": it ends here.\n", current_part);
    say_end();
    set_default(reported_signal);
    raise(reported_signal);
}

static void limit_time(void)
{
    struct sigaction action;
    sigset_t one;

    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_late;
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&one);
    sigaddset(&one, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    alarm(REPORT_SECONDS);
}

/* Two threads may fail at a time: the second waits for the end that the first will bring. */
static void begin_report(int signal_number)
{
    if (is_reporting) {
        crash_say("\nThe report failed itself (signal %d) in its part \"%s\".\n", signal_number, current_part);
        set_default(signal_number);
        raise(signal_number);
        _exit(128 + signal_number);
    }
    is_reporting = true;
    while (atomic_exchange(&has_begun, true))
        pause();
    reported_signal = signal_number;
    allocated_before = mem_thread_allocated();
    limit_time();
}

static void say_cause(int signal_number, const siginfo_t *info, const ucontext_t *context)
{
    crash_say("KeyDB %s crashed by signal: %d, si_code: %d\n", KEYDB_VERSION, signal_number, info->si_code);
    if (info->si_code <= 0)
        crash_say("Killed by PID: %ld, UID: %d\n", (long)info->si_pid, (int)info->si_uid);
    else
        crash_say("Accessing address: %p\n", info->si_addr);
    crash_say("Crashed running the instruction at: %p\n", instruction_of(context));
}

static void say_panic(const char *message)
{
    crash_say("%s\n%s\n",
              strncmp(message, "assertion failed", 16) == 0 ? "=== ASSERTION FAILED ===" : "=== PANIC ===", message);
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    const char *message = panic_message;

    begin_report(signal_number);
    say_start();
    if (message != NULL)
        say_panic(message);
    else
        say_cause(signal_number, info, context);
    begin_part("STACK TRACE");
    stack_trace_self();
    say_rest(context);
    set_default(signal_number);
    if (message == NULL)
        raise(signal_number);
}

/* Called by panic, whose message is in the log already. The handler writes the report, because it has a stack of its
 * own; then panic continues to its end. */
static void on_panic(const char *message)
{
    panic_message = message;
    raise(SIGABRT);
}

static void handle_faults(bool on)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    action.sa_sigaction = on_fault;
    for (size_t i = 0; i < countof(fault_signals); i++) {
        if (on)
            sigaction(fault_signals[i], &action, NULL);
        else
            set_default(fault_signals[i]);
    }
    panic_set_report(on ? on_panic : NULL);
}

/* A separate stack for the handlers of each thread, since the thread's own stack may be broken. Mapped, so that it
 * costs memory only when it is used. */
static void crash_thread_begin(void)
{
    stack_t stack = {.ss_size = STACK_BYTES};

    assert(handler_stack == NULL);
    stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack.ss_sp == MAP_FAILED)
        return;
    handler_stack = stack.ss_sp;
    if (sigaltstack(&stack, NULL) == 0)
        return;
    munmap(handler_stack, STACK_BYTES);
    handler_stack = NULL;
}

static void crash_thread_end(void)
{
    const stack_t none = {.ss_flags = SS_DISABLE};

    if (handler_stack == NULL)
        return;
    sigaltstack(&none, NULL);
    munmap(handler_stack, STACK_BYTES);
    handler_stack = NULL;
}

/* ----------------------------------------------------------------------------------------------- configuration -- */

static const char *apply_crash_log(const struct option_row *row)
{
    (void)row;
    handle_faults(OPTION_IS(option_crash_log_enabled));
    return NULL;
}

static const char *apply_exit_on_panic(const struct option_row *row)
{
    (void)row;
    panic_set_exit(OPTION_IS(option_use_exit_on_panic));
    return NULL;
}

void crash_setup(void)
{
    thread_assert_only();
    stack_trace_setup();
    thread_set_hooks(crash_thread_begin, crash_thread_end);
    crash_thread_begin();
    handle_faults(OPTION_IS(option_crash_log_enabled));
    panic_set_exit(OPTION_IS(option_use_exit_on_panic));
    config_on_change("crash-log-enabled", apply_crash_log);
    config_on_change("use-exit-on-panic", apply_exit_on_panic);
}

void crash_teardown(void)
{
    thread_assert_only();
    handle_faults(false);
    thread_set_hooks(NULL, NULL);
    crash_thread_end();
}
