/* Searching for positions: GEOSEARCH and the older GEORADIUS. Ranges of scores cover the shape; each range is walked,
 * and members inside of the shape are collected. */
#include "base/array.h"
#include "commands/sorted_set/geo.h"

#include "base/mem.h"
#include "base/number.h"
#include "commands/shared/families.h"

#include <stdlib.h>
#include <string.h>

enum order { UNSORTED, ASCENDING, DESCENDING };

/* The parsed arguments. */
struct search {
    struct value zset; /* data NULL: there is no such key */
    struct geohash_shape shape;
    double unit_m;
    bool from_member, from_point; /* GEOSEARCH must name one of them, */
    bool by_radius, by_box;       /* and one of these; the same word again takes the place of the first */
    bool by_polygon;              /* instead of both */
    struct geohash_point *vertices;
    bool with_distance, with_hash, with_point;
    bool any; /* ANY: the first matches are sufficient */
    enum order order;
    uint64_t count;               /* 0: all */
    bool stores, stores_distance; /* otherwise the result is replied */
    struct slice store_name;
    const struct key *store; /* of that name */
};

struct found {
    struct slice member; /* data NULL: the digits */
    double score, distance_m;
    struct geohash_point point;
    char digits[NUMBER_I64_SPACE];
    uint8_t digit_count;
};

struct findings {
    struct found *items;
    uint64_t count, capacity;
};

/* --------------------------------------------------------------------------------------------------- searching -- */

static struct slice found_member(const struct found *found)
{
    return found->member.data != NULL ? found->member : slice_make(found->digits, found->digit_count);
}

/* The member of a walk is valid until its next step; the text of a number is in the walk. */
static void add_found(struct findings *findings, const struct zset_walk *walk, struct slice member,
                      const struct found *like)
{
    struct found *found = ARRAY_PUSH(findings);

    found->score = like->score;
    found->distance_m = like->distance_m;
    found->point = like->point;
    found->member = member;
    if (member.data == walk->scratch) {
        memcpy(found->digits, member.data, member.size);
        found->digit_count = (uint8_t)member.size;
        found->member = SLICE_EMPTY;
    }
}

static bool is_full(const struct search *search, const struct findings *findings)
{
    return search->any && search->count != 0 && findings->count >= search->count;
}

static void search_range(const struct search *search, const struct geohash_area *window, struct geohash_range range,
                         struct findings *findings)
{
    struct zset_walk walk;
    struct slice member;
    struct found at;

    zset_walk_from_score(&walk, search->zset, (double)range.begin);
    while (zset_walk_next(&walk, &member, &at.score) && at.score < (double)range.end) {
        at.point = geo_point_of_score(at.score);
        if (!geohash_window_has(window, at.point) || !geohash_shape_contains(&search->shape, at.point, &at.distance_m))
            continue;
        add_found(findings, &walk, member, &at);
        if (is_full(search, findings))
            return;
    }
}

static int compare_distances(const void *a, const void *b)
{
    const struct found *left = a, *right = b;

    return (left->distance_m > right->distance_m) - (left->distance_m < right->distance_m);
}

static int compare_reversed(const void *a, const void *b)
{
    return compare_distances(b, a);
}

static void find(const struct search *search, struct findings *findings)
{
    struct geohash_range ranges[GEOHASH_RANGES_MOST];
    unsigned range_count = geohash_shape_cover(&search->shape, ranges);
    struct geohash_area window = geohash_shape_window(&search->shape);

    *findings = (struct findings){NULL, 0, 0};
    if (search->zset.data == NULL)
        return;
    for (unsigned i = 0; i < range_count && !is_full(search, findings); i++)
        search_range(search, &window, ranges[i], findings);
    if (search->order != UNSORTED && findings->count > 1)
        qsort(findings->items, findings->count, sizeof(*findings->items),
              search->order == ASCENDING ? compare_distances : compare_reversed);
    if (search->count != 0)
        findings->count = MIN(findings->count, search->count);
}

/* --------------------------------------------------------------------------------------------- replying, storing -- */

static void reply_found(struct request *request, const struct search *search, const struct found *found)
{
    unsigned extras = search->with_distance + search->with_hash + search->with_point;
    char text[GEO_DISTANCE_SPACE];

    if (extras != 0)
        reply_array(request, extras + 1);
    reply_bulk(request, found_member(found));
    if (search->with_distance)
        reply_bulk(request, slice_make(text, geo_format_distance(text, found->distance_m / search->unit_m)));
    if (search->with_hash)
        reply_int(request, (int64_t)geohash_from_score(found->score));
    if (search->with_point)
        geo_reply_point(request, found->point);
}

static void store_found(struct request *request, const struct search *search, const struct findings *findings,
                        const char *event)
{
    const struct zset_limits limits = type_zset_limits();
    struct zset_builder builder = {.longest = 0};

    for (uint64_t i = 0; i < findings->count; i++) {
        const struct found *found = &findings->items[i];

        zset_builder_add(&builder, found_member(found),
                         search->stores_distance ? found->distance_m / search->unit_m : found->score);
    }
    if (search->by_polygon) /* the word is newer than Redis 7.0 */
        zset_effect_built(request, search->store, &builder);
    zset_store(request, search->store, zset_build(&builder, &limits), event);
}

static void run(struct request *request, const struct search *search, const char *event)
{
    struct findings findings;

    find(search, &findings);
    if (search->stores) {
        store_found(request, search, &findings, event);
    } else {
        reply_array(request, findings.count);
        for (uint64_t i = 0; i < findings.count; i++)
            reply_found(request, search, &findings.items[i]);
    }
    ARRAY_FINI(&findings);
}

/* ----------------------------------------------------------------------------------------------------- parsing -- */

static bool parse_length(struct request *request, uint32_t index, const char *error, double *length)
{
    if (number_parse_double(request_arg(request, index), length))
        return true;
    reply_error(request, error);
    return false;
}

static bool parse_circle(struct request *request, uint32_t index, struct search *search)
{
    double radius;

    if (!parse_length(request, index, "ERR need numeric radius", &radius))
        return false;
    if (radius < 0) {
        reply_error(request, "ERR radius cannot be negative");
        return false;
    }
    if (!geo_parse_unit(request, index + 1, &search->unit_m))
        return false;
    search->shape.kind = GEOHASH_CIRCLE;
    search->shape.radius_m = radius * search->unit_m;
    search->by_radius = true;
    return true;
}

static bool parse_box(struct request *request, uint32_t index, struct search *search)
{
    double width, height;

    if (!parse_length(request, index, "ERR need numeric width", &width) ||
        !parse_length(request, index + 1, "ERR need numeric height", &height))
        return false;
    if (width < 0 || height < 0) {
        reply_error(request, "ERR height or width cannot be negative");
        return false;
    }
    if (!geo_parse_unit(request, index + 2, &search->unit_m))
        return false;
    search->shape.kind = GEOHASH_BOX;
    search->shape.width_m = width * search->unit_m;
    search->shape.height_m = height * search->unit_m;
    search->by_box = true;
    return true;
}

/* The number of vertices stands in argument `index`; they were checked to be there. */
static bool parse_vertices(struct request *request, uint32_t index, uint32_t count, struct search *search)
{
    mem_free(search->vertices);
    search->vertices = mem_alloc(count * sizeof(*search->vertices));
    for (uint32_t i = 0; i < count; i++) {
        if (!geo_parse_point(request, index + 1 + 2 * i, &search->vertices[i]))
            return false;
    }
    search->shape = geohash_polygon(search->vertices, count);
    search->by_polygon = true;
    return true;
}

/* A member of the set is the center; where there is no set none is needed. */
static bool parse_member(struct request *request, uint32_t index, struct search *search)
{
    double score;

    search->from_member = true;
    if (search->zset.data == NULL)
        return true;
    if (zset_score(search->zset, request_arg(request, index), &score)) {
        search->shape.center = geo_point_of_score(score);
        return true;
    }
    reply_error(request, "ERR could not decode requested zset member");
    return false;
}

enum taken { NOT_MINE, TAKEN, REPLIED };

static enum taken taken_if(bool is_fine)
{
    return is_fine ? TAKEN : REPLIED;
}

static enum taken parse_count(struct request *request, uint32_t *index, struct search *search)
{
    int64_t count;

    if (!request_arg_i64(request, *index + 1, &count))
        return REPLIED;
    if (count <= 0) {
        reply_error(request, "ERR COUNT must be > 0");
        return REPLIED;
    }
    search->count = (uint64_t)count;
    *index += 1;
    return TAKEN;
}

/* The words that all searches take. */
static enum taken parse_common_word(struct request *request, uint32_t *index, struct search *search)
{
    uint32_t at = *index;

    if (request_arg_is(request, at, "WITHDIST"))
        search->with_distance = true;
    else if (request_arg_is(request, at, "WITHHASH"))
        search->with_hash = true;
    else if (request_arg_is(request, at, "WITHCOORD"))
        search->with_point = true;
    else if (request_arg_is(request, at, "ANY"))
        search->any = true;
    else if (request_arg_is(request, at, "ASC"))
        search->order = ASCENDING;
    else if (request_arg_is(request, at, "DESC"))
        search->order = DESCENDING;
    else if (request_arg_is(request, at, "COUNT") && at + 1 < request->arg_count)
        return parse_count(request, index, search);
    else
        return NOT_MINE;
    return TAKEN;
}

static enum taken parse_store_word(struct request *request, uint32_t *index, struct search *search)
{
    uint32_t at = *index;
    bool distance = request_arg_is(request, at, "STOREDIST");

    if ((!distance && !request_arg_is(request, at, "STORE")) || at + 1 >= request->arg_count)
        return NOT_MINE;
    search->stores = true;
    search->store_name = request_arg(request, at + 1);
    search->stores_distance = distance;
    *index += 1;
    return TAKEN;
}

static enum taken parse_polygon(struct request *request, uint32_t *index, struct search *search)
{
    const uint32_t at = *index + 1;
    int64_t count;

    if (!request_arg_range(request, at, INT32_MIN, INT32_MAX, &count, "ERR invalid number of vertices"))
        return REPLIED;
    if (count < 3 || count > (request->arg_count - at - 1) / 2) {
        reply_error(request, "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices");
        return REPLIED;
    }
    *index = at + 2 * (uint32_t)count;
    return taken_if(parse_vertices(request, at, (uint32_t)count, search));
}

static bool has_center(const struct search *search)
{
    return search->from_member || search->from_point;
}

static enum taken parse_search_word(struct request *request, uint32_t *index, struct search *search)
{
    uint32_t at = *index, left = request->arg_count - at - 1;

    if (request_arg_is(request, at, "FROMMEMBER") && left >= 1 && !search->from_point && !search->by_polygon) {
        *index += 1;
        return taken_if(parse_member(request, at + 1, search));
    }
    if (request_arg_is(request, at, "FROMLONLAT") && left >= 2 && !search->from_member && !search->by_polygon) {
        *index += 2;
        search->from_point = true;
        return taken_if(geo_parse_point(request, at + 1, &search->shape.center));
    }
    if (request_arg_is(request, at, "BYRADIUS") && left >= 2 && !search->by_box && !search->by_polygon) {
        *index += 2;
        return taken_if(parse_circle(request, at + 1, search));
    }
    if (request_arg_is(request, at, "BYBOX") && left >= 3 && !search->by_radius && !search->by_polygon) {
        *index += 3;
        return taken_if(parse_box(request, at + 1, search));
    }
    if (request_arg_is(request, at, "BYPOLYGON") && left >= 1 && !has_center(search) && !search->by_radius &&
        !search->by_box)
        return parse_polygon(request, index, search);
    return NOT_MINE;
}

/* Parses the words from argument `index` on; own_word parses words that only this command has. */
static bool parse_words(struct request *request, uint32_t index,
                        enum taken (*own_word)(struct request *request, uint32_t *index, struct search *search),
                        struct search *search)
{
    for (; index < request->arg_count; index++) {
        enum taken taken = parse_common_word(request, &index, search);

        if (taken == NOT_MINE && own_word != NULL)
            taken = own_word(request, &index, search);
        if (taken == NOT_MINE)
            reply_syntax_error(request);
        if (taken != TAKEN)
            return false;
    }
    return true;
}

/* The destination key is one of the keys whose stripes are held; if the same word is given twice, the second key is
 * not. */
static bool find_store(struct request *request, struct search *search)
{
    for (uint32_t i = 0; i < request->key_count; i++) {
        if (slice_equal(request->keys[i].name, search->store_name)) {
            search->store = &request->keys[i];
            return true;
        }
    }
    reply_syntax_error(request);
    return false;
}

static bool check_words(struct request *request, struct search *search, const char *storing)
{
    if (search->stores && (search->with_distance || search->with_hash || search->with_point)) {
        reply_errorf(request, "ERR %s is not compatible with WITHDIST, WITHHASH and WITHCOORD options", storing);
        return false;
    }
    if (search->any && search->count == 0) {
        reply_error(request, "ERR the ANY argument requires COUNT argument");
        return false;
    }
    /* So many of them are the nearest, unless any will do. */
    if (search->count != 0 && search->order == UNSORTED && !search->any)
        search->order = ASCENDING;
    return !search->stores || find_store(request, search);
}

/* ---------------------------------------------------------------------------------------------------- commands -- */

static void radius_search(struct request *request, bool from_member, bool stores)
{
    struct search search = {.unit_m = 1};
    uint32_t index = from_member ? 3 : 4;

    if (!zset_read(request, &request->keys[0], &search.zset))
        return;
    if (from_member) {
        /* Without a set nobody looks at the circle either. */
        if (!parse_member(request, 2, &search) || (search.zset.data != NULL && !parse_circle(request, index, &search)))
            return;
    } else if (!geo_parse_point(request, 2, &search.shape.center) || !parse_circle(request, index, &search)) {
        return;
    }
    if (parse_words(request, index + 2, stores ? parse_store_word : NULL, &search) &&
        check_words(request, &search, "STORE option in GEORADIUS"))
        run(request, &search, "georadiusstore");
}

static void cmd_georadius(struct request *request)
{
    radius_search(request, false, true);
}

static void cmd_georadius_ro(struct request *request)
{
    radius_search(request, false, false);
}

static void cmd_georadiusbymember(struct request *request)
{
    radius_search(request, true, true);
}

static void cmd_georadiusbymember_ro(struct request *request)
{
    radius_search(request, true, false);
}

static bool check_search(struct request *request, const struct search *search)
{
    const struct slice name = request_arg(request, 0);

    if (search->by_polygon || (has_center(search) && (search->by_radius || search->by_box)))
        return true;
    reply_errorf(request, "ERR exactly one of %s can be specified for %.*s",
                 has_center(search) ? "BYRADIUS and BYBOX" : "FROMMEMBER or FROMLONLAT", (int)MIN(name.size, 128U),
                 name.data);
    return false;
}

static void cmd_geosearch(struct request *request)
{
    struct search search = {.unit_m = 1};

    if (zset_read(request, &request->keys[0], &search.zset) && parse_words(request, 2, parse_search_word, &search) &&
        check_search(request, &search) && check_words(request, &search, ""))
        run(request, &search, "");
    mem_free(search.vertices);
}

static enum taken parse_search_or_store_word(struct request *request, uint32_t *index, struct search *search)
{
    if (!request_arg_is(request, *index, "STOREDIST"))
        return parse_search_word(request, index, search);
    search->stores_distance = true;
    return TAKEN;
}

static void cmd_geosearchstore(struct request *request)
{
    struct search search = {.unit_m = 1, .stores = true, .store_name = request_arg(request, 1)};

    if (zset_read(request, &request->keys[1], &search.zset) &&
        parse_words(request, 3, parse_search_or_store_word, &search) && check_search(request, &search) &&
        check_words(request, &search, "GEOSEARCHSTORE"))
        run(request, &search, "geosearchstore");
    mem_free(search.vertices);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row geo_search_commands[] = {
    {.name = "georadius", .run = cmd_georadius, .arity = -6, .access = ACCESS_STRIPED,
     .flags = "write denyoom movablekeys deprecated alone", .categories = "@write @geo @slow",
     .keys = "RO,ACCESS@index:1@range:0,1,0 OW,UPDATE@keyword:STORE,6@range:0,1,0 "
                "OW,UPDATE@keyword:STOREDIST,6@range:0,1,0",
     .group = "geo", .since = "3.2.0", .summary = "Returns or stores the members within a circle around a point.",
     .complexity = "O(N+log(M)) for N members near the center, of M",
     .syntax = "GEORADIUS key longitude latitude radius (m|km|ft|mi) [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT "
                "count [ANY]] [ASC|DESC] [STORE key|STOREDIST key]",
     .arg_since = "ANY:6.2.0", .deprecated_since = "6.2.0",
     .replaced_by = "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
     .history = "6.2.0=The word `ANY`.|7.0.0=The units in either case."},
    {.name = "georadius_ro", .run = cmd_georadius_ro, .arity = -6, .access = ACCESS_STRIPED,
     .flags = "readonly deprecated alone", .categories = "@read @geo @slow", .keys = "RO,ACCESS@index:1@range:0,1,0",
     .group = "geo", .since = "3.2.10", .summary = "Returns the members within a circle around a point.",
     .complexity = "O(N+log(M)) for N members near the center, of M",
     .syntax = "GEORADIUS_RO key longitude latitude radius (m|km|ft|mi) [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT "
                "count [ANY]] [ASC|DESC]",
     .arg_since = "ANY:6.2.0", .deprecated_since = "6.2.0", .replaced_by = "`GEOSEARCH` with the `BYRADIUS` "
                "argument",
     .history = "6.2.0=The word `ANY`."},
    {.name = "georadiusbymember", .run = cmd_georadiusbymember, .arity = -5, .access = ACCESS_STRIPED,
     .flags = "write denyoom movablekeys deprecated alone", .categories = "@write @geo @slow",
     .keys = "RO,ACCESS@index:1@range:0,1,0 OW,UPDATE@keyword:STORE,5@range:0,1,0 "
                "OW,UPDATE@keyword:STOREDIST,5@range:0,1,0",
     .group = "geo", .since = "3.2.0", .summary = "Returns or stores the members within a circle around a member.",
     .complexity = "O(N+log(M)) for N members near the center, of M",
     .syntax = "GEORADIUSBYMEMBER key member radius (m|km|ft|mi) [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count "
                "[ANY]] [ASC|DESC] [STORE key|STOREDIST key]",
     .deprecated_since = "6.2.0",
     .replaced_by = "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
     .history = "6.2.0=`ANY` behind `COUNT`.|7.0.0=The units in either case."},
    {.name = "georadiusbymember_ro", .run = cmd_georadiusbymember_ro, .arity = -5, .access = ACCESS_STRIPED,
     .flags = "readonly deprecated alone", .categories = "@read @geo @slow", .keys = "RO,ACCESS@index:1@range:0,1,0",
     .group = "geo", .since = "3.2.10", .summary = "Returns the members within a circle around a member.",
     .complexity = "O(N+log(M)) for N members near the center, of M",
     .syntax = "GEORADIUSBYMEMBER_RO key member radius (m|km|ft|mi) [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT "
                "count [ANY]] [ASC|DESC]",
     .deprecated_since = "6.2.0", .replaced_by = "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
     .history = "6.2.0=`ANY` behind `COUNT`.|7.0.0=The units in either case."},
    {.name = "geosearch", .run = cmd_geosearch, .arity = -7, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @geo @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "geo", .since = "6.2.0",
     .summary = "Returns the members within a circle, a box or a polygon.",
     .complexity = "O(N+log(M)) for N members near the center, of M",
     .syntax = "GEOSEARCH key [FROMMEMBER member|FROMLONLAT longitude latitude] (BYRADIUS radius "
                "(m|km|ft|mi)|BYBOX width height (m|km|ft|mi)|BYPOLYGON num-vertices vertex-longitude "
                "vertex-latitude [vertex-longitude vertex-latitude ...]) [ASC|DESC] [COUNT count [ANY]] [WITHCOORD] "
                "[WITHDIST] [WITHHASH]",
     .history = "7.0.0=The units in either case.|9.0.0=The word `BYPOLYGON`."},
    {.name = "geosearchstore", .run = cmd_geosearchstore, .arity = -8, .access = ACCESS_STRIPED,
     .flags = "write denyoom alone", .categories = "@write @geo @slow",
     .keys = "OW,UPDATE@index:1@range:0,1,0 RO,ACCESS@index:2@range:0,1,0", .group = "geo", .since = "6.2.0",
     .summary = "Stores the members within a circle, a box or a polygon.",
     .complexity = "O(N+log(M)) for N members near the center, of M",
     .syntax = "GEOSEARCHSTORE destination source [FROMMEMBER member|FROMLONLAT longitude latitude] (BYRADIUS "
                "radius (m|km|ft|mi)|BYBOX width height (m|km|ft|mi)|BYPOLYGON num-vertices vertex-longitude "
                "vertex-latitude [vertex-longitude vertex-latitude ...]) [ASC|DESC] [COUNT count [ANY]] [STOREDIST]",
     .history = "7.0.0=The units in either case.|9.0.0=The word `BYPOLYGON`."},
    {.name = NULL},
};
/* clang-format on */
