/* merge_sim: runs the rules of merge/ in a simulated world and compares with an oracle.
 *
 *     merge_sim [--seed FIRST] [--count N] [--mode honest|bounded|both] [--break NAME] [--print] [--no-shrink]
 *     merge_sim --breaks [--most N]     breaks each rule in turn; each must be found within N histories of both modes
 *     merge_sim --directed              histories that random ones seldom reach
 *     merge_sim --forms [--seed FIRST] [--count N]   compares the cheap form of records with the plainest
 *
 * A failing history is made smaller and printed. The last line is "N passed, N failed". */
#include "directed.h"
#include "forms.h"
#include "sim.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FORMS_A_HISTORY = 50 }; /* sequences of forms are so much cheaper */

static const char *const break_names[] = {
#define BREAK(name, text, what) text,
    MERGE_BREAKS(BREAK)
#undef BREAK
};
static const char *const break_words[] = {
#define BREAK(name, text, what) what,
    MERGE_BREAKS(BREAK)
#undef BREAK
};

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool fails(const struct sim_history *history)
{
    struct sim_totals ignored = {0};
    char wrong[512];

    return !sim_run(history, false, &ignored, wrong);
}

/* Leaves out ever smaller stretches of events as long as the history still fails. */
static void shrink(struct sim_history *history)
{
    bool smaller = true;

    while (smaller) {
        smaller = false;
        for (uint32_t stretch = history->count / 2; stretch != 0; stretch /= 2) {
            for (uint32_t from = 0; from + stretch <= history->count;) {
                struct sim_history shorter = *history;

                shorter.count = history->count - stretch;
                shorter.items = mem_alloc((shorter.count + 1) * sizeof(*shorter.items));
                memcpy(shorter.items, history->items, from * sizeof(*shorter.items));
                memcpy(shorter.items + from, history->items + from + stretch,
                       (shorter.count - from) * sizeof(*shorter.items));
                if (fails(&shorter)) {
                    memcpy(history->items, shorter.items, shorter.count * sizeof(*shorter.items));
                    history->count = shorter.count;
                    smaller = true;
                } else {
                    from += stretch;
                }
                mem_free(shorter.items);
            }
        }
    }
}

static bool run_seed(uint64_t seed, bool bounded, bool print, bool quiet, bool may_shrink, struct sim_totals *totals)
{
    struct sim_history history;
    struct sim_totals ignored = {0};
    char wrong[512];
    bool right;

    sim_history_make(&history, seed, bounded);
    right = sim_run(&history, print, totals, wrong);
    if (!right && !quiet) {
        printf("seed %llu %s: %s\n", (unsigned long long)seed, bounded ? "bounded" : "honest", wrong);
        if (may_shrink) {
            uint32_t before = history.count;

            shrink(&history);
            printf("%u of %u events are enough:\n", history.count, before);
            (void)sim_run(&history, true, &ignored, wrong);
            printf("  => %s\n", wrong);
        }
        fflush(stdout);
    }
    mem_free(history.items);
    return right;
}

static void print_totals(const struct sim_totals *totals, double took)
{
    const struct merge_counts *counts = &totals->counts;

    printf("%llu histories, %llu events, %llu operations (%.0f a second), %llu deliveries\n",
           (unsigned long long)totals->histories, (unsigned long long)totals->events,
           (unsigned long long)totals->operations, (double)totals->operations / took,
           (unsigned long long)totals->deliveries);
    printf("  appended %llu, placed %llu, flushed %llu, overwritten %llu, late %llu, late by wall time %llu, "
           "evictions of nothing %llu, repaired %llu, joined %llu, given up %llu, freed %llu\n",
           (unsigned long long)counts->appended, (unsigned long long)counts->placed,
           (unsigned long long)counts->flushed, (unsigned long long)counts->overwritten,
           (unsigned long long)counts->late, (unsigned long long)counts->late_wall,
           (unsigned long long)counts->evicted_nothing, (unsigned long long)counts->repaired,
           (unsigned long long)counts->joined, (unsigned long long)counts->forgotten,
           (unsigned long long)counts->freed);
    printf("  crashes %llu, joins %llu, forgotten %llu, wiped %llu, snapshots %llu, refused %llu, gave first %llu, "
           "forced %llu, evictions %llu, flushes %llu\n",
           (unsigned long long)totals->crashes, (unsigned long long)totals->joins,
           (unsigned long long)totals->forgotten, (unsigned long long)totals->wiped,
           (unsigned long long)totals->snapshots, (unsigned long long)totals->refused,
           (unsigned long long)totals->given_first, (unsigned long long)totals->forced,
           (unsigned long long)totals->evictions, (unsigned long long)totals->flushes);
}

/* Runs histories of both modes until one fails. Returns how many were needed, 0 if none did. */
static uint64_t histories_until_found(unsigned rule, uint64_t most)
{
    struct sim_totals totals = {0};
    uint64_t count = 0;

    merge_breaks = UINT64_C(1) << rule;
    for (uint64_t seed = 0; seed < most && count == 0; seed++) {
        if (!run_seed(seed, seed % 2 != 0, false, true, false, &totals))
            count = seed + 1;
    }
    merge_breaks = 0;
    return count;
}

/* A rule that directed histories were written for must be found by them, those of running in place by comparing the
 * forms of a record, any other within so many random histories. */
static unsigned run_breaks(uint64_t most, unsigned *failed)
{
    unsigned passed = 0;

    for (unsigned rule = 0; rule < MERGE_BREAK_COUNT; rule++) {
        const enum directed_answer directed = directed_find((enum merge_break)rule);
        const bool is_of_forms = rule >= MERGE_BREAK_IN_PLACE_SAME_MEMBER;
        const uint64_t count = directed == DIRECTED_FOUND ? 0
                               : is_of_forms              ? forms_find(rule, FORMS_A_HISTORY * most)
                                                          : histories_until_found(rule, most);
        char by_random[48] = "";
        bool found = directed == DIRECTED_FOUND || (directed == DIRECTED_NONE && count != 0);

        if (count != 0)
            snprintf(by_random, sizeof(by_random), "by %s %llu", is_of_forms ? "sequence" : "random one",
                     (unsigned long long)count);
        printf("%s  %-20s %-9s  %s: %s\n", found ? "found " : "MISSED", by_random,
               directed == DIRECTED_NONE    ? ""
               : directed == DIRECTED_FOUND ? "directed"
                                            : "MISSED",
               break_names[rule], break_words[rule]);
        fflush(stdout);
        if (found)
            passed++;
        else
            (*failed)++;
    }
    return passed;
}

int main(int argc, char **argv)
{
    uint64_t first = 0, count = 1000, most = 2000;
    bool honest = true, bounded = true, print = false, may_shrink = true, breaks = false, directed = false,
         forms = false;
    unsigned passed = 0, failed = 0;
    double begin = seconds();

    mem_thread_start();
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(word, "--print") == 0) {
            print = true;
        } else if (strcmp(word, "--no-shrink") == 0) {
            may_shrink = false;
        } else if (strcmp(word, "--breaks") == 0) {
            breaks = true;
        } else if (strcmp(word, "--directed") == 0) {
            directed = true;
        } else if (strcmp(word, "--forms") == 0) {
            forms = true;
        } else if (strcmp(word, "--seed") == 0) {
            first = strtoull(next, NULL, 10);
            i++;
        } else if (strcmp(word, "--count") == 0) {
            count = strtoull(next, NULL, 10);
            i++;
        } else if (strcmp(word, "--most") == 0) {
            most = strtoull(next, NULL, 10);
            i++;
        } else if (strcmp(word, "--mode") == 0) {
            honest = strcmp(next, "bounded") != 0;
            bounded = strcmp(next, "honest") != 0;
            i++;
        } else if (strcmp(word, "--break") == 0) {
            for (unsigned rule = 0; rule < MERGE_BREAK_COUNT; rule++) {
                if (strcmp(next, break_names[rule]) == 0)
                    merge_breaks |= UINT64_C(1) << rule;
            }
            i++;
        } else {
            fprintf(stderr, "unknown argument %s\n", word);
            return 2;
        }
    }

    if (breaks) {
        passed = run_breaks(most, &failed);
    } else if (directed) {
        passed = directed_run(&failed);
    } else if (forms) {
        passed = forms_run(first, count, &failed);
    } else {
        struct sim_totals totals = {0};

        for (uint64_t seed = first; seed < first + count && failed < 10; seed++) {
            for (unsigned mode = 0; mode < 2; mode++) {
                if (mode == 0 ? !honest : !bounded)
                    continue;
                if (run_seed(seed, mode != 0, print, false, may_shrink && failed == 0, &totals))
                    passed++;
                else
                    failed++;
            }
        }
        print_totals(&totals, seconds() - begin);
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
