#include "server/crash.h"

#include "base/buffer.h"
#include "base/log.h"
#include "base/memtest.h"
#include "base/panic.h"
#include "base/stack_trace.h"
#include "base/thread.h"
#include "server/client.h"
#include "server/config.h"
#include "server/info.h"
#include "server/options_process.h"
#include "server/process.h"
#include "server/request.h"
#include "server/version.h"
#include "server/worker.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    LINE_BYTES = 1024,
    STACK_BYTES = 128 * 1024, /* INFO is made on it */
    ARGS_MOST = 32,
    ARG_BYTES = 128,
    REPORT_SECONDS = 30,
    MEMORY_TEST_MS = 10000
};

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static _Atomic bool has_begun;              /* atomic: who sets it reports */
static _Thread_local bool is_reporting;     /* owner: the thread */
static _Thread_local char *handler_stack;   /* owner: the thread */
static const char *current_part = "";       /* owner: the reporting thread; for a fault inside the report */
static _Thread_local const char *panic_message; /* owner: the thread; NULL: it does not panic */
static int reported_signal;                 /* owner: the reporting thread */

/* ------------------------------------------------------------------------------------------------------- pieces -- */

/* Whole numbers and texts only: for these glibc's formatting neither locks nor allocates. */
static void say(const char *format, ...) PRINTF_LIKE(1, 2);
static void say(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    log_from_signal_raw(line, (size_t)MIN(MAX(size, 0), LINE_BYTES - 1));
}

static void begin_part(const char *title)
{
    current_part = title;
    say("\n------ %s ------\n", title);
}

/* Tools look for either name. */
static void say_start(void)
{
    say("\n\n=== KEYDB BUG REPORT START: Cut & paste starting from here ===\n");
    say("=== REDIS BUG REPORT START: Cut & paste starting from here ===\n");
    log_from_signal("KeyDB " KEYDB_VERSION " (commit " KEYDB_GIT_SHA1 ")");
}

static void say_end(void)
{
    say("\n=== REDIS BUG REPORT END. Make sure to include from START to END. ===\n");
    say("=== KEYDB BUG REPORT END. Make sure to include from START to END. ===\n\n");
    say("Please send the report above, and what the server was doing, to those who look after this program.\n"
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
        say("%s:%016llx%s", registers[i].name, (unsigned long long)context->uc_mcontext.gregs[registers[i].index],
            i % 4 == 3 ? "\n" : " ");
    say("\n");
#elif defined(__aarch64__)
    for (int i = 0; i < 31; i++)
        say("X%-2d:%016llx%s", i, (unsigned long long)context->uc_mcontext.regs[i], i % 4 == 3 ? "\n" : " ");
    say("SP:%016llx PC:%016llx\n", (unsigned long long)context->uc_mcontext.sp,
        (unsigned long long)context->uc_mcontext.pc);
#else
    (void)context;
    say("not known on this kind of processor\n");
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

/* What cannot be printed is a dot. */
static void say_argument(unsigned index, struct slice word)
{
    char shown[ARG_BYTES + 1];
    size_t size = MIN(word.size, (size_t)ARG_BYTES);

    for (size_t i = 0; i < size; i++)
        shown[i] = word.data[i] >= ' ' && word.data[i] <= '~' ? word.data[i] : '.';
    shown[size] = '\0';
    say("argv[%u]: '%s'%s\n", index, shown, word.size > size ? "..." : "");
}

static void say_client(void)
{
    const struct worker *worker = worker_self();
    const struct request *request = worker != NULL ? worker->running : NULL;
    struct buffer text = {0};

    if (request == NULL) {
        say("%s\n", worker != NULL ? "none: this worker was not running a command" : "none: this thread is no worker");
        return;
    }
    say("argc: %u\n", request->arg_count);
    for (unsigned i = 0; i < request->arg_count && i < ARGS_MOST; i++) {
        if (i == 0 || !OPTION_IS(option_hide_user_data_from_log))
            say_argument(i, request->args[i]);
    }
    client_card_print(&request->client->card, &text);
    buffer_append_char(&text, '\n');
    log_from_signal_raw(text.data, text.size);
    buffer_fini(&text);
}

static void say_info(void)
{
    const struct slice everything = SLICE("everything");
    struct buffer text = {0};

    info_write(&text, &everything, 1);
    log_from_signal_raw(text.data, text.size);
    buffer_fini(&text);
}

#ifdef MEM_LIBC
enum { MEMORY_IS_WATCHED = 1 }; /* by a sanitizer, whose own records are no place for patterns */
#else
enum { MEMORY_IS_WATCHED = 0 };
#endif

static void run_memory_test(void)
{
    struct memtest_result result = memtest_process(handler_stack, STACK_BYTES, MEMORY_TEST_MS);

    say("%llu MB tested%s: ", (unsigned long long)(result.tested_bytes >> 20),
        result.is_complete ? "" : ", then time was over");
    if (result.wrong_words == 0)
        say("Fast memory test PASSED, however your memory can still be broken. Run a memory test for several hours "
            "if possible.\n");
    else
        say("!!! MEMORY ERROR DETECTED! %llu words differ, the first in the page at %p. Check your memory ASAP !!!\n",
            (unsigned long long)result.wrong_words, result.first_wrong);
}

static void check_memory(void)
{
    if (!OPTION_IS(option_crash_memcheck_enabled))
        say("left out: crash-memcheck-enabled is no\n");
    else if (MEMORY_IS_WATCHED)
        say("left out: this build watches memory in its own way\n");
    else if (handler_stack == NULL)
        say("left out: this thread has no stack of its own for it\n");
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
    say_client();
    begin_part("FAST MEMORY TEST");
    check_memory();
    begin_part("INFO OUTPUT"); /* last: a held thread may hold a lock that this needs */
    say_info();
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

/* A lock that a held thread has, most likely. */
static void on_late(int signal_number)
{
    (void)signal_number;
    say("\nThe report takes too long in its part \"%s\": it ends here.\n", current_part);
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
        say("\nThe report failed itself (signal %d) in its part \"%s\".\n", signal_number, current_part);
        set_default(signal_number);
        raise(signal_number);
        _exit(128 + signal_number);
    }
    is_reporting = true;
    while (atomic_exchange(&has_begun, true))
        pause();
    reported_signal = signal_number;
    limit_time();
}

static void say_cause(int signal_number, const siginfo_t *info, const ucontext_t *context)
{
    say("KeyDB %s crashed by signal: %d, si_code: %d\n", KEYDB_VERSION, signal_number, info->si_code);
    if (info->si_code <= 0)
        say("Killed by PID: %ld, UID: %d\n", (long)info->si_pid, (int)info->si_uid);
    else
        say("Accessing address: %p\n", info->si_addr);
    say("Crashed running the instruction at: %p\n", instruction_of(context));
}

static void say_panic(const char *message)
{
    say("%s\n%s\n", strncmp(message, "assertion failed", 16) == 0 ? "=== ASSERTION FAILED ===" : "=== PANIC ===",
        message);
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

/* From panic, whose message stands in the log already. The report is made by the handler, because it has a stack of its
 * own; then panic goes on, to its own end. */
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

/* A stack of its own for the handlers of each thread: the thread's may be what is broken. Mapped, so that it
 * costs memory only when it is used. */
static void crash_thread_begin(void)
{
    stack_t stack = {.ss_size = STACK_BYTES};

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
    handle_faults(false);
    thread_set_hooks(NULL, NULL);
    crash_thread_end();
}
