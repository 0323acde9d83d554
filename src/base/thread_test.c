#include "base/thread.h"
#include "base/file.h"
#include "base/thread_priv.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct seen {
    char name[THREAD_NAME_SPACE];
    unsigned index;
    sigset_t mask;
};

static void look_around(void *argument)
{
    struct seen *seen = argument;

    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    seen->index = thread_self_index();
    pthread_sigmask(SIG_SETMASK, NULL, &seen->mask);
}

static void threads_are_named_and_numbered(void **state)
{
    struct thread threads[3] = {{0}};
    struct seen seen[3];
    sigset_t mask;

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        thread_start(&threads[i], i == 0 ? "a name that is too long" : "short", look_around, &seen[i]);
    for (unsigned i = 0; i < 3; i++) {
        thread_join(&threads[i]);
        assert_int_equal(seen[i].index, i + 1);
        assert_int_equal(sigismember(&seen[i].mask, SIGTERM), 1);
        assert_int_equal(sigismember(&seen[i].mask, SIGSEGV), 0);
        thread_join(&threads[i]);
    }
    assert_string_equal(seen[0].name, "a name that is ");
    assert_string_equal(seen[1].name, "short");
    assert_int_equal(thread_self_index(), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGTERM), 0);
}

static void cpus_and_affinity(void **state)
{
    unsigned before = thread_cpu_count();
    cpu_set_t set;

    (void)state;
    assert_true(before >= 1);
    assert_true(before <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    assert_false(thread_set_affinity(-1));
    assert_false(thread_set_affinity(CPU_SETSIZE));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set))
            continue;
        assert_true(thread_set_affinity(cpu));
        assert_int_equal(sched_getcpu(), cpu);
        break;
    }
    assert_int_equal(thread_cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
    assert_int_equal(thread_cpu_count(), before);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(file_store(path, slice_from_text(text)), STATUS_OK);
}

static void quotas_of_groups(void **state)
{
    char top[] = "/tmp/keydb-quota-XXXXXX";
    char a[100], b[100], command[200];

    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(a, sizeof(a), "%s/a", top);
    snprintf(b, sizeof(b), "%s/a/b", top);
    mkdir(a, 0755);
    mkdir(b, 0755);
    assert_int_equal(thread_quota(top, "/a/b"), 0);
    write_text(b, "cpu.max", "max 100000\n");
    assert_int_equal(thread_quota(top, "/a/b"), 0);
    write_text(a, "cpu.max", "250000 100000\n");
    assert_int_equal(thread_quota(top, "/a/b"), 3);
    write_text(b, "cpu.max", "50000 100000\n");
    assert_int_equal(thread_quota(top, "/a/b"), 1);
    assert_int_equal(thread_quota(top, "/a"), 3);
    assert_int_equal(thread_quota(top, "/"), 0);
    write_text(top, "cpu.cfs_quota_us", "400000\n");
    assert_int_equal(thread_quota(top, "/"), 0); /* the period is missing */
    write_text(top, "cpu.cfs_period_us", "100000\n");
    assert_int_equal(thread_quota(top, "/"), 4);
    assert_int_equal(thread_quota(top, "/not/there"), 4);
    write_text(top, "cpu.cfs_quota_us", "-1\n");
    assert_int_equal(thread_quota(top, "/"), 0);
    snprintf(command, sizeof(command), "rm -r %s", top);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_named_and_numbered),
        cmocka_unit_test(cpus_and_affinity),
        cmocka_unit_test(quotas_of_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
