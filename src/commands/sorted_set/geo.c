/* Positions on the earth: members of sorted sets whose scores are positions (data/geohash.h). Searching is in
 * geo_search.c. */
#include "commands/sorted_set/geo.h"

#include "base/mem.h"
#include "base/number.h"
#include "commands/shared/families.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------------- parsing -- */

bool geo_parse_point(struct request *request, uint32_t index, struct geohash_point *point)
{
    if (!zset_parse_score(request, index, &point->longitude) || !zset_parse_score(request, index + 1, &point->latitude))
        return false;
    if (geohash_point_is_valid(*point))
        return true;
    reply_errorf(request, "ERR invalid longitude,latitude pair %f,%f", point->longitude, point->latitude);
    return false;
}

bool geo_parse_unit(struct request *request, uint32_t index, double *unit_m)
{
    static const struct {
        const char *name;
        double meters;
    } units[] = {{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}};

    for (size_t i = 0; i < countof(units); i++) {
        if (request_arg_is(request, index, units[i].name)) {
            *unit_m = units[i].meters;
            return true;
        }
    }
    reply_error(request, "ERR unsupported unit provided. please use M, KM, FT, MI");
    return false;
}

/* ----------------------------------------------------------------------------------------------------- replies -- */

struct geohash_point geo_point_of_score(double score)
{
    return geohash_decode(geohash_from_score(score));
}

/* Four digits after the point. Printed as a whole number of the last of them, unless it is so close to the middle
 * between two that the multiplication may have gone to the wrong side. */
size_t geo_format_distance(char out[GEO_DISTANCE_SPACE], double distance)
{
    double scaled = distance * 1e4, whole = floor(scaled), rest = scaled - whole;
    uint64_t number;
    size_t size;

    if (!(distance >= 0 && distance < 1e9) || fabs(rest - 0.5) < 1e-3)
        return (size_t)snprintf(out, GEO_DISTANCE_SPACE, "%.4f", distance);
    number = (uint64_t)whole + (rest > 0.5);
    size = number_format_u64(out, number / 10000);
    out[size] = '.';
    for (unsigned i = 4; i > 0; i--, number /= 10)
        out[size + i] = (char)('0' + number % 10);
    return size + 5;
}

static void reply_coordinate(struct request *request, double degrees)
{
    char text[NUMBER_LONG_DOUBLE_HUMAN_SPACE];
    struct slice number = slice_make(text, number_format_long_double_human(text, (long double)degrees));

    if (request->proto == 2) {
        reply_bulk(request, number);
        return;
    }
    resp_write_raw(request->out, SLICE(","));
    resp_write_raw(request->out, number);
    resp_write_raw(request->out, SLICE("\r\n"));
}

void geo_reply_point(struct request *request, struct geohash_point point)
{
    reply_array(request, 2);
    reply_coordinate(request, point.longitude);
    reply_coordinate(request, point.latitude);
}

/* ---------------------------------------------------------------------------------------------------- commands -- */

/* The words before the positions; returns where those begin. */
static uint32_t parse_words(const struct request *request, struct zset_adding *adding)
{
    uint32_t index = 2;

    for (; index < request->arg_count; index++) {
        if (request_arg_is(request, index, "NX"))
            adding->only_new = true;
        else if (request_arg_is(request, index, "XX"))
            adding->only_there = true;
        else if (request_arg_is(request, index, "CH"))
            adding->counts_changes = true;
        else
            break;
    }
    return index;
}

static bool parse_places(struct request *request, uint32_t first, struct zset_scored *members)
{
    struct geohash_point point;

    for (uint32_t i = first; i < request->arg_count; i += 3, members++) {
        members->member = request_arg(request, i + 2);
        if (!geo_parse_point(request, i, &point) || !zset_check_member(request, members->member))
            return false;
        members->score = (double)geohash_encode(point);
    }
    return true;
}

/* Others get the scores, so that they need not reckon. */
static void tell_scores(struct request *request, uint32_t first, const struct zset_scored *members, uint32_t count)
{
    uint32_t word_count = first + 2 * count, used = first;
    struct slice *words = mem_alloc(word_count * sizeof(*words));
    char(*digits)[NUMBER_I64_SPACE] = mem_alloc(count * sizeof(*digits));

    memcpy(words, request->args, first * sizeof(*words));
    words[0] = SLICE("ZADD");
    for (uint32_t i = 0; i < count; i++) {
        words[used++] = slice_make(digits[i], number_format_u64(digits[i], (uint64_t)members[i].score));
        words[used++] = members[i].member;
    }
    effect_set(request, words, word_count);
    mem_free(digits);
    mem_free(words);
}

static void cmd_geoadd(struct request *request)
{
    struct zset_adding adding = {.score = 0};
    struct zset_scored room[ZSET_SCORED_ROOM], *members = room;
    uint32_t first = parse_words(request, &adding), count = (request->arg_count - first) / 3;

    if (count == 0 || (request->arg_count - first) % 3 != 0 || (adding.only_new && adding.only_there)) {
        reply_syntax_error(request);
        return;
    }
    if (count > countof(room))
        members = mem_alloc(count * sizeof(*members));
    if (parse_places(request, first, members) && zset_add(request, &adding, members, count))
        tell_scores(request, first, members, count);
    if (members != room)
        mem_free(members);
}

static void cmd_geodist(struct request *request)
{
    char text[GEO_DISTANCE_SPACE];
    double from, to, unit_m = 1, distance_m;
    struct value zset;

    if (request->arg_count > 5) {
        reply_syntax_error(request);
        return;
    }
    if ((request->arg_count == 5 && !geo_parse_unit(request, 4, &unit_m)) ||
        !zset_read(request, &request->keys[0], &zset))
        return;
    if (zset.data == NULL || !zset_score(zset, request_arg(request, 2), &from) ||
        !zset_score(zset, request_arg(request, 3), &to)) {
        reply_null(request);
        return;
    }
    distance_m = geohash_distance_m(geo_point_of_score(from), geo_point_of_score(to));
    reply_bulk(request, slice_make(text, geo_format_distance(text, distance_m / unit_m)));
}

static void reply_hash(struct request *request, double score)
{
    char text[GEOHASH_TEXT_BYTES + 1];

    geohash_format(text, geo_point_of_score(score));
    reply_bulk(request, slice_make(text, GEOHASH_TEXT_BYTES));
}

static void reply_place(struct request *request, double score)
{
    geo_reply_point(request, geo_point_of_score(score));
}

/* Replies for each named member; `absent` for members that do not exist. */
static void reply_each(struct request *request, void (*reply)(struct request *request, double score),
                       void (*absent)(struct request *request))
{
    struct value zset;
    double score;

    if (!zset_read(request, &request->keys[0], &zset))
        return;
    reply_array(request, request->arg_count - 2);
    for (uint32_t i = 2; i < request->arg_count; i++) {
        if (zset.data != NULL && zset_score(zset, request_arg(request, i), &score))
            reply(request, score);
        else
            absent(request);
    }
}

static void cmd_geohash(struct request *request)
{
    reply_each(request, reply_hash, reply_null);
}

static void cmd_geopos(struct request *request)
{
    reply_each(request, reply_place, reply_null_array);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row geo_commands[] = {
    {.name = "geoadd", .run = cmd_geoadd, .arity = -5, .access = ACCESS_STRIPED, .flags = "write denyoom",
     .categories = "@write @geo @slow", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "geo", .since = "3.2.0",
     .summary = "Adds positions to a sorted set.", .complexity = "O(log(N)) for each position, N of them being there",
     .syntax = "GEOADD key [NX|XX] [CH] longitude latitude member [longitude latitude member ...]",
     .arg_since = "condition:6.2.0 CH:6.2.0", .history = "6.2.0=The words `CH`, `NX` and `XX`."},
    {.name = "geodist", .run = cmd_geodist, .arity = -4, .access = ACCESS_STRIPED, .flags = "readonly",
     .categories = "@read @geo @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "geo", .since = "3.2.0",
     .summary = "Returns the distance between two members.", .complexity = "O(1)",
     .syntax = "GEODIST key member1 member2 [m|km|ft|mi]"},
    {.name = "geohash", .run = cmd_geohash, .arity = -2, .access = ACCESS_STRIPED, .flags = "readonly",
     .categories = "@read @geo @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "geo", .since = "3.2.0",
     .summary = "Returns positions as geohash strings.", .complexity = "O(1) for each position",
     .syntax = "GEOHASH key [member ...]"},
    {.name = "geopos", .run = cmd_geopos, .arity = -2, .access = ACCESS_STRIPED, .flags = "readonly",
     .categories = "@read @geo @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "geo", .since = "3.2.0",
     .summary = "Returns longitude and latitude of members.", .complexity = "O(1) for each position",
     .syntax = "GEOPOS key [member ...]"},
    {.name = NULL},
};
/* clang-format on */
