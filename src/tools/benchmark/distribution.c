#include "tools/benchmark/distribution.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_EXPONENT 0.99
#define EXPONENT_MOST 20.0
#define NEARLY_ONE 1e-9 /* nearer to an exponent of 1 the integral is a logarithm */

static const struct {
    const char *name;
    enum distribution_kind kind;
    bool takes_number;
} names[] = {
    {"uniform", DISTRIBUTION_UNIFORM, false},  {"sequential", DISTRIBUTION_SEQUENTIAL, false},
    {"gaussian", DISTRIBUTION_GAUSSIAN, true}, {"zipf", DISTRIBUTION_ZIPF, true},
    {"latest", DISTRIBUTION_LATEST, true},
};

const char *distribution_parse(const char *text, struct distribution *distribution)
{
    const size_t size = strcspn(text, ":");
    char *end = NULL;

    for (size_t i = 0; i < countof(names); i++) {
        if (strlen(names[i].name) != size || strncmp(names[i].name, text, size) != 0)
            continue;
        *distribution = (struct distribution){.kind = names[i].kind};
        if (text[size] == '\0')
            return NULL;
        if (!names[i].takes_number)
            return "it takes no number";
        distribution->parameter = strtod(text + size + 1, &end);
        if (end == text + size + 1 || *end != '\0' || !(distribution->parameter > 0))
            return "what follows the colon must be a number above 0";
        if (names[i].kind != DISTRIBUTION_GAUSSIAN && distribution->parameter > EXPONENT_MOST)
            return "the exponent is at most 20";
        return NULL;
    }
    return "it is none of uniform, sequential, gaussian, zipf, latest";
}

/* ------------------------------------------------------------------------------------------------------- zipf -- */

static double height(double exponent, double x)
{
    return exp(-exponent * log(x));
}

/* The integral of the curve x^-s, up to a constant, and its inverse. */
static double integral(double exponent, double x)
{
    const double rest = 1 - exponent;

    return fabs(rest) < NEARLY_ONE ? log(x) : expm1(rest * log(x)) / rest;
}

static double inverse(double exponent, double area)
{
    const double rest = 1 - exponent;

    return fabs(rest) < NEARLY_ONE ? exp(area) : exp(log1p(MAX(rest * area, -1.0)) / rest);
}

static void begin_zipf(struct distribution *distribution, uint64_t count)
{
    const double exponent = distribution->parameter > 0 ? distribution->parameter : USUAL_EXPONENT;

    distribution->exponent = exponent;
    distribution->integral_first = integral(exponent, 1.5) - 1;
    distribution->integral_last = integral(exponent, (double)count + 0.5);
    distribution->shortcut = 2 - inverse(exponent, integral(exponent, 2.5) - height(exponent, 2));
}

/* 1 is the most frequent one. */
static uint64_t draw_rank(const struct distribution *distribution, struct random *random)
{
    const double exponent = distribution->exponent;

    for (;;) {
        const double area = distribution->integral_last +
                            random_unit(random) * (distribution->integral_first - distribution->integral_last);
        const double x = inverse(exponent, area);
        const double rank = MIN(MAX(floor(x + 0.5), 1.0), (double)distribution->count);

        if (rank - x <= distribution->shortcut || area >= integral(exponent, rank + 0.5) - height(exponent, rank))
            return (uint64_t)rank;
    }
}

/* --------------------------------------------------------------------------------------------------- gaussian -- */

/* By the polar method; what lies outside of the keys is drawn again. */
static uint64_t draw_gaussian(const struct distribution *distribution, struct random *random)
{
    const double keys = (double)distribution->count;
    const double deviation = distribution->parameter > 0 ? distribution->parameter : keys / 6;

    for (;;) {
        const double x = 2 * random_unit(random) - 1, y = 2 * random_unit(random) - 1, square = x * x + y * y;
        double at;

        if (square >= 1 || square <= 0)
            continue;
        at = floor(keys / 2 + deviation * x * sqrt(-2 * log(square) / square));
        if (at >= 0 && at < keys)
            return (uint64_t)at;
    }
}

/* -------------------------------------------------------------------------------------------------------- all -- */

void distribution_begin(struct distribution *distribution, uint64_t count)
{
    assert(count > 0);
    distribution->count = count;
    atomic_store_explicit(&distribution->next, distribution->kind == DISTRIBUTION_LATEST ? count : 0,
                          memory_order_relaxed);
    if (distribution->kind == DISTRIBUTION_ZIPF || distribution->kind == DISTRIBUTION_LATEST)
        begin_zipf(distribution, count);
}

uint64_t distribution_draw(struct distribution *distribution, struct random *random)
{
    switch (distribution->kind) {
    case DISTRIBUTION_SEQUENTIAL:
        return atomic_fetch_add_explicit(&distribution->next, 1, memory_order_relaxed) % distribution->count;
    case DISTRIBUTION_GAUSSIAN:
        return draw_gaussian(distribution, random);
    case DISTRIBUTION_ZIPF:
        return draw_rank(distribution, random) - 1;
    case DISTRIBUTION_LATEST:
        return atomic_load_explicit(&distribution->next, memory_order_relaxed) - draw_rank(distribution, random);
    default:
        return random_below(random, distribution->count);
    }
}

uint64_t distribution_grow(struct distribution *distribution)
{
    return atomic_fetch_add_explicit(&distribution->next, 1, memory_order_relaxed);
}
