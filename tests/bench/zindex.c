/* The sorted index beside a skiplist, in process: nanoseconds of CPU time a step and bytes a member.
 *
 *     zindex [MEMBERS] [ROUNDS]          linked with the library
 *
 * The skiplist is what sorted sets are usually made of, made well: a tower of links with spans (one in four goes a
 * level up), a link back, score and member, all in one allocation. The index's items are allocations of their own, so
 * the bytes count item and share of the nodes. Each round fills, asks and empties both; medians of the rounds are
 * printed. Steps draw their members evenly; a scan is 100 items whose score and member are read. */
#include "base/mem.h"
#include "base/random.h"
#include "data/zindex.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MEMBERS_DEFAULT = 1000000, ROUNDS_DEFAULT = 5, ROUNDS_MOST = 101, SCAN = 100, LEVELS = 16 };

/* --- the skiplist --- */

struct tower;
struct link {
    struct tower *next;
    uint64_t span;
};
struct tower {
    double score;
    struct tower *previous;
    uint32_t size;
    uint32_t level_count;
    struct link links[]; /* then the member */
};
struct skiplist {
    struct tower *head;
    uint64_t count;
    unsigned level_count;
    struct random random;
};

static struct slice tower_member(const struct tower *tower)
{
    return slice_make(&tower->links[tower->level_count], tower->size);
}

static bool tower_precedes(const struct tower *tower, double score, struct slice member)
{
    if (tower->score != score)
        return tower->score < score;
    return slice_compare(tower_member(tower), member) < 0;
}

static struct tower *tower_create(unsigned level_count, double score, struct slice member)
{
    struct tower *tower = mem_alloc(sizeof(*tower) + level_count * sizeof(struct link) + member.size);

    tower->score = score;
    tower->size = (uint32_t)member.size;
    tower->level_count = level_count;
    memcpy(&tower->links[level_count], member.data, member.size);
    return tower;
}

static void skiplist_init(struct skiplist *list)
{
    list->head = tower_create(LEVELS, 0, SLICE(""));
    list->count = 0;
    list->level_count = 1;
    memset(list->head->links, 0, LEVELS * sizeof(struct link));
    list->head->previous = NULL;
    random_seed(&list->random, 1);
}

/* The last tower before the place on each level, and its rank; returns the rank of the place. */
static uint64_t skiplist_descend(const struct skiplist *list, double score, struct slice member,
                                 struct tower *before[LEVELS], uint64_t ranks[LEVELS])
{
    struct tower *at = list->head;
    uint64_t rank = 0;

    for (unsigned level = list->level_count; level-- > 0;) {
        struct tower *next;

        while ((next = at->links[level].next) != NULL && tower_precedes(next, score, member)) {
            rank += at->links[level].span;
            at = next;
        }
        before[level] = at;
        ranks[level] = rank;
    }
    return rank;
}

static struct tower *skiplist_insert(struct skiplist *list, double score, struct slice member)
{
    struct tower *before[LEVELS], *tower;
    uint64_t ranks[LEVELS], rank = skiplist_descend(list, score, member, before, ranks);
    uint64_t dice = random_u64(&list->random);
    unsigned level_count = 1;

    for (; level_count < LEVELS && (dice & 3) == 0; dice >>= 2)
        level_count++;
    for (; list->level_count < level_count; list->level_count++) {
        before[list->level_count] = list->head;
        ranks[list->level_count] = 0;
        list->head->links[list->level_count] = (struct link){NULL, list->count};
    }
    tower = tower_create(level_count, score, member);
    for (unsigned level = 0; level < list->level_count; level++) {
        struct link *link = &before[level]->links[level];

        if (level >= level_count) {
            link->span++;
            continue;
        }
        tower->links[level] = (struct link){link->next, link->span - (rank - ranks[level])};
        *link = (struct link){tower, rank - ranks[level] + 1};
    }
    tower->previous = before[0];
    if (tower->links[0].next != NULL)
        tower->links[0].next->previous = tower;
    list->count++;
    return tower;
}

static void skiplist_remove(struct skiplist *list, struct tower *tower)
{
    struct tower *before[LEVELS];
    uint64_t ranks[LEVELS];

    skiplist_descend(list, tower->score, tower_member(tower), before, ranks);
    for (unsigned level = 0; level < list->level_count; level++) {
        struct link *link = &before[level]->links[level];

        if (link->next == tower)
            *link = (struct link){tower->links[level].next, link->span + tower->links[level].span};
        link->span--;
    }
    if (tower->links[0].next != NULL)
        tower->links[0].next->previous = tower->previous;
    list->count--;
    mem_free(tower);
}

static struct tower *skiplist_at(const struct skiplist *list, uint64_t rank)
{
    struct tower *at = list->head;

    rank++;
    for (unsigned level = list->level_count; level-- > 0;) {
        while (at->links[level].next != NULL && at->links[level].span <= rank) {
            rank -= at->links[level].span;
            at = at->links[level].next;
        }
    }
    return at;
}

static struct tower *skiplist_seek_score(const struct skiplist *list, double score)
{
    struct tower *at = list->head, *next;

    for (unsigned level = list->level_count; level-- > 0;) {
        while ((next = at->links[level].next) != NULL && next->score < score)
            at = next;
    }
    return at->links[0].next;
}

/* --- the measurements --- */

enum step {
    INSERT,
    ASCENDING,
    EQUAL,
    RANK,
    AT,
    SCAN_RANK,
    SCAN_SCORE,
    SCORE_NEAR,
    SCORE_FAR,
    REMOVE,
    BYTES,
    BYTES_ASCENDING,
    STEPS
};
static const char *const step_names[STEPS] = {
    [INSERT] = "insert, random scores", [ASCENDING] = "insert, ascending",
    [EQUAL] = "insert, equal scores",   [RANK] = "rank of a member",
    [AT] = "member at a rank",          [SCAN_RANK] = "100 from a rank",
    [SCAN_SCORE] = "100 from a score",  [SCORE_NEAR] = "score changes a little",
    [SCORE_FAR] = "score changes",      [REMOVE] = "remove",
    [BYTES] = "bytes a member",         [BYTES_ASCENDING] = "bytes, ascending",
};

struct bench {
    uint64_t count;
    double *scores; /* 0 ... 1 */
    struct random random;
    uint64_t checksum;
};

static double results[2][STEPS][ROUNDS_MOST];

static uint64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Each number has its own, and neighbours are far apart. */
static struct slice member_name(char space[32], uint64_t number)
{
    return slice_make(space, (size_t)snprintf(space, 32, "member:%010u", (uint32_t)number * UINT32_C(2654435761)));
}

/* `body` runs `times` times with `i`; its mean time goes into `result`. */
#define MEASURE(result, times, body)                               \
    do {                                                           \
        uint64_t begin_ = cpu_ns();                                \
        for (uint64_t i = 0; i < (times); i++) {                   \
            body;                                                  \
        }                                                          \
        *(result) = (double)(cpu_ns() - begin_) / (double)(times); \
    } while (0)

static void read_item(struct bench *bench, double score, struct slice member)
{
    bench->checksum += (uint64_t)(score * 1000) + (unsigned char)member.data[member.size - 1];
}

static void read_items(struct bench *bench, struct zindex_cursor cursor)
{
    struct zindex_item *item;

    for (unsigned i = 0; i < SCAN && (item = zindex_next(&cursor)) != NULL; i++)
        read_item(bench, item->score, zindex_item_member(item));
}

static void read_towers(struct bench *bench, const struct tower *tower)
{
    for (unsigned i = 0; i < SCAN && tower != NULL; i++, tower = tower->links[0].next)
        read_item(bench, tower->score, tower_member(tower));
}

static uint64_t any(struct bench *bench)
{
    return random_below(&bench->random, bench->count);
}

static void free_item(struct zindex_item *item, void *context)
{
    (void)context;
    zindex_item_destroy(item);
}

/* Fills an empty index in order of the numbers; returns bytes a member. */
static double fill_index(struct bench *bench, struct zindex *index, struct zindex_item **items, double *time,
                         double (*score_of)(const struct bench *bench, uint64_t number))
{
    size_t before = mem_used();
    char space[32];

    MEASURE(time, bench->count, {
        items[i] = zindex_item_create(score_of(bench, i), member_name(space, i), ZINDEX_NO_DEADLINE);
        zindex_insert(index, items[i]);
    });
    return (double)(mem_used() - before) / (double)bench->count;
}

static double fill_list(struct bench *bench, struct skiplist *list, struct tower **towers, double *time,
                        double (*score_of)(const struct bench *bench, uint64_t number))
{
    size_t before = mem_used();
    char space[32];

    MEASURE(time, bench->count, towers[i] = skiplist_insert(list, score_of(bench, i), member_name(space, i)));
    return (double)(mem_used() - before) / (double)bench->count;
}

static double score_random(const struct bench *bench, uint64_t number)
{
    return bench->scores[number];
}

static double score_ascending(const struct bench *bench, uint64_t number)
{
    return (double)number / (double)bench->count;
}

static double score_equal(const struct bench *bench, uint64_t number)
{
    (void)bench;
    (void)number;
    return 1;
}

static void set_tower_score(struct skiplist *list, struct tower **tower, double score)
{
    char space[32];
    struct slice member = tower_member(*tower);
    struct tower *previous = (*tower)->previous, *next = (*tower)->links[0].next;

    if ((previous == list->head || previous->score < score) && (next == NULL || next->score > score)) {
        (*tower)->score = score;
        return;
    }
    memcpy(space, member.data, member.size);
    member.data = space;
    skiplist_remove(list, *tower);
    *tower = skiplist_insert(list, score, member);
}

static void shuffle(struct bench *bench, void **pointers)
{
    for (uint64_t i = bench->count; i > 1; i--) {
        uint64_t k = random_below(&bench->random, i);
        void *kept = pointers[k];

        pointers[k] = pointers[i - 1];
        pointers[i - 1] = kept;
    }
}

static void measure_index(struct bench *bench, double (*out)[ROUNDS_MOST], unsigned round)
{
    struct zindex_item **items = mem_alloc(bench->count * sizeof(*items));
    struct zindex index = {0};
    double near = 0.5 / (double)bench->count;

    out[BYTES_ASCENDING][round] = fill_index(bench, &index, items, &out[ASCENDING][round], score_ascending);
    zindex_clear(&index, free_item, NULL);
    fill_index(bench, &index, items, &out[EQUAL][round], score_equal);
    zindex_clear(&index, free_item, NULL);
    out[BYTES][round] = fill_index(bench, &index, items, &out[INSERT][round], score_random);
    MEASURE(&out[RANK][round], bench->count, bench->checksum += zindex_rank(&index, items[any(bench)]));
    MEASURE(&out[AT][round], bench->count, bench->checksum += zindex_at(&index, any(bench))->size);
    MEASURE(&out[SCAN_RANK][round], bench->count / 10, read_items(bench, zindex_seek_rank(&index, any(bench))));
    MEASURE(&out[SCAN_SCORE][round], bench->count / 10,
            read_items(bench, zindex_seek_score(&index, bench->scores[any(bench)], ZINDEX_BEFORE)));
    MEASURE(&out[SCORE_NEAR][round], bench->count / 2, {
        struct zindex_item *item = items[any(bench)];

        zindex_set_score(&index, item, item->score + near * random_unit(&bench->random));
    });
    MEASURE(&out[SCORE_FAR][round], bench->count / 2,
            zindex_set_score(&index, items[any(bench)], random_unit(&bench->random)));
    shuffle(bench, (void **)items);
    MEASURE(&out[REMOVE][round], bench->count, {
        zindex_remove(&index, items[i]);
        zindex_item_destroy(items[i]);
    });
    mem_free(items);
}

static void measure_list(struct bench *bench, double (*out)[ROUNDS_MOST], unsigned round)
{
    struct tower **towers = mem_alloc(bench->count * sizeof(*towers));
    struct tower *before[LEVELS];
    uint64_t ranks[LEVELS];
    struct skiplist list;
    double near = 0.5 / (double)bench->count;

    for (enum step step = ASCENDING; step <= EQUAL; step++) {
        skiplist_init(&list);
        out[BYTES_ASCENDING][round] = fill_list(bench, &list, towers, &out[step][round],
                                                step == EQUAL ? score_equal : score_ascending);
        for (uint64_t i = 0; i < bench->count; i++)
            mem_free(towers[i]);
        mem_free(list.head);
    }
    skiplist_init(&list);
    out[BYTES][round] = fill_list(bench, &list, towers, &out[INSERT][round], score_random);
    MEASURE(&out[RANK][round], bench->count, {
        const struct tower *tower = towers[any(bench)];

        bench->checksum += skiplist_descend(&list, tower->score, tower_member(tower), before, ranks);
    });
    MEASURE(&out[AT][round], bench->count, bench->checksum += skiplist_at(&list, any(bench))->size);
    MEASURE(&out[SCAN_RANK][round], bench->count / 10, read_towers(bench, skiplist_at(&list, any(bench))));
    MEASURE(&out[SCAN_SCORE][round], bench->count / 10,
            read_towers(bench, skiplist_seek_score(&list, bench->scores[any(bench)])));
    MEASURE(&out[SCORE_NEAR][round], bench->count / 2, {
        struct tower **tower = &towers[any(bench)];

        set_tower_score(&list, tower, (*tower)->score + near * random_unit(&bench->random));
    });
    MEASURE(&out[SCORE_FAR][round], bench->count / 2,
            set_tower_score(&list, &towers[any(bench)], random_unit(&bench->random)));
    shuffle(bench, (void **)towers);
    MEASURE(&out[REMOVE][round], bench->count, skiplist_remove(&list, towers[i]));
    mem_free(list.head);
    mem_free(towers);
}

static int compare(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;

    return (first > second) - (first < second);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    struct bench bench = {.count = argc > 1 ? strtoull(argv[1], NULL, 10) : MEMBERS_DEFAULT};
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : ROUNDS_DEFAULT;

    if (bench.count < 10 || rounds == 0 || rounds > ROUNDS_MOST) {
        fprintf(stderr, "usage: zindex [MEMBERS (10 or more)] [ROUNDS (1 to %d)]\n", ROUNDS_MOST);
        return 2;
    }
    mem_thread_start();
    random_seed(&bench.random, 7);
    bench.scores = mem_alloc(bench.count * sizeof(double));
    for (uint64_t i = 0; i < bench.count; i++)
        bench.scores[i] = random_unit(&bench.random);
    for (unsigned i = 0; i < rounds; i++) {
        measure_index(&bench, results[0], i);
        measure_list(&bench, results[1], i);
    }
    printf("%-24s %10s %10s %8s\n", "", "index", "skiplist", "ratio");
    for (unsigned step = 0; step < STEPS; step++) {
        double ours = median(results[0][step], rounds), theirs = median(results[1][step], rounds);

        printf("%-24s %10.1f %10.1f %8.2f\n", step_names[step], ours, theirs, ours / theirs);
    }
    mem_free(bench.scores);
    mem_thread_stop();
    return bench.checksum == 0;
}
