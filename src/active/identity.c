#include "active/identity.h"

#include "active/uuid.h"
#include "base/assert.h"
#include "base/crc64.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/number.h"
#include "store/stamp.h"

#include <stdio.h>
#include <string.h>

enum { CRC_LINE_BYTES = 6 + 16 + 1 };

static const char first_line[] = "keydb-identity 1\n";
static const char any_first_line[] = "keydb-identity ";

void identity_fini(struct merge_identity *identity)
{
    merge_vector_fini(&identity->former);
    merge_members_fini(&identity->members);
    merge_vector_fini(&identity->removed);
    *identity = (struct merge_identity){0};
}

/* --------------------------------------------------------------------------------------------------------- text -- */

static void add_uuid(struct buffer *text, const char *word, uint64_t id)
{
    const struct uuid uuid = uuid_of_id(id);
    char out[UUID_TEXT_BYTES + 1];

    uuid_format(&uuid, out);
    buffer_printf(text, "%s %s\n", word, out);
}

static uint64_t crc_of(struct slice text)
{
    return crc64_update(0, text.data, text.size);
}

static void add_member(struct buffer *text, const struct merge_member *member)
{
    const struct uuid name = uuid_of_id(member->name), origin = uuid_of_id(member->origin);
    char name_text[UUID_TEXT_BYTES + 1], origin_text[UUID_TEXT_BYTES + 1];

    uuid_format(&name, name_text);
    uuid_format(&origin, origin_text);
    buffer_printf(text, "member %s %s %u\n", name_text, origin_text, member->incarnation);
}

void identity_format(const struct merge_identity *identity, struct buffer *text)
{
    const size_t begin = text->size;

    buffer_append_text(text, first_line);
    add_uuid(text, "name", identity->name);
    add_uuid(text, "origin", identity->origin);
    buffer_printf(text, "starts %u\nstamp-bound %llu\nwall-bound %lld\n", identity->incarnation,
                  (unsigned long long)identity->promised, (long long)identity->wall);
    for (uint32_t i = 0; i < identity->former.count; i++)
        add_uuid(text, "former", identity->former.items[i].id);
    for (uint32_t i = 0; i < identity->members.count; i++)
        add_member(text, &identity->members.items[i]);
    for (uint32_t i = 0; i < identity->removed.count; i++)
        add_uuid(text, "removed", identity->removed.items[i].id);
    buffer_printf(text, "crc64 %016llx\n",
                  (unsigned long long)crc_of(slice_make(text->data + begin, text->size - begin)));
}

/* Takes the value of the next line if that begins with the word. */
static bool take_line(struct slice *text, const char *word, struct slice *value)
{
    const char *end = text->size != 0 ? memchr(text->data, '\n', text->size) : NULL;
    const size_t size = strlen(word);
    struct slice line;

    if (end == NULL)
        return false;
    line = slice_make(text->data, (size_t)(end - text->data));
    if (!slice_starts_with(line, slice_from_text(word)) || line.size <= size || line.data[size] != ' ')
        return false;
    *value = slice_skip(line, size + 1);
    *text = slice_skip(*text, line.size + 1);
    return true;
}

/* Names and origins of ours only. */
static bool parse_id(struct slice value, uint64_t *id)
{
    struct uuid uuid;

    if (!uuid_parse(value, &uuid) || !uuid_is_ours(&uuid))
        return false;
    *id = uuid_id(&uuid);
    return true;
}

static bool take_id(struct slice *text, const char *word, uint64_t *id)
{
    struct slice value;

    return take_line(text, word, &value) && parse_id(value, id);
}

static bool take_member(struct slice *text, struct merge_members *members)
{
    struct merge_member member;
    struct slice value;
    uint64_t starts;

    if (!take_line(text, "member", &value) || value.size < 2 * (UUID_TEXT_BYTES + 1) ||
        value.data[UUID_TEXT_BYTES] != ' ' || value.data[2 * UUID_TEXT_BYTES + 1] != ' ' ||
        !parse_id(slice_make(value.data, UUID_TEXT_BYTES), &member.name) ||
        !parse_id(slice_make(value.data + UUID_TEXT_BYTES + 1, UUID_TEXT_BYTES), &member.origin) ||
        !number_parse_u64(slice_skip(value, 2 * (size_t)(UUID_TEXT_BYTES + 1)), &starts) || starts > UINT32_MAX)
        return false;
    member.incarnation = (uint32_t)starts;
    return merge_members_learn(members, member);
}

static bool take_number(struct slice *text, const char *word, uint64_t most, uint64_t *number)
{
    struct slice value;

    return take_line(text, word, &value) && number_parse_u64(value, number) && *number <= most;
}

static bool take_fields(struct slice *text, struct merge_identity *identity)
{
    uint64_t starts, wall, id;

    if (!take_id(text, "name", &identity->name) || !take_id(text, "origin", &identity->origin) ||
        !take_number(text, "starts", UINT32_MAX, &starts) ||
        !take_number(text, "stamp-bound", UINT64_MAX, &identity->promised) ||
        !take_number(text, "wall-bound", (uint64_t)STAMP_MOST_MS, &wall) || !stamp_is_possible(identity->promised))
        return false;
    identity->incarnation = (uint32_t)starts;
    identity->wall = (int64_t)wall;
    while (slice_starts_with(*text, SLICE("former ")) && take_id(text, "former", &id))
        merge_vector_set(&identity->former, id, 1);
    while (slice_starts_with(*text, SLICE("member ")) && take_member(text, &identity->members)) {
    }
    while (slice_starts_with(*text, SLICE("removed ")) && take_id(text, "removed", &id))
        merge_vector_set(&identity->removed, id, 1);
    return text->size == 0 && starts > identity->former.count;
}

static bool refuse(char error[IDENTITY_ERROR_BYTES], const char *why)
{
    (void)snprintf(error, IDENTITY_ERROR_BYTES, "%s", why);
    return false;
}

bool identity_parse(struct slice text, struct merge_identity *identity, char error[IDENTITY_ERROR_BYTES])
{
    struct slice lines;
    char crc_line[CRC_LINE_BYTES + 1];

    *identity = (struct merge_identity){0};
    if (!slice_starts_with(text, slice_from_text(any_first_line)))
        return refuse(error, "this is no identity file; something else has written it");
    if (!slice_starts_with(text, slice_from_text(first_line)))
        return refuse(error, "a later version has written it");
    if (text.size < sizeof(first_line) - 1 + CRC_LINE_BYTES)
        return refuse(error, "it is damaged: its end is missing");
    lines = slice_make(text.data, text.size - CRC_LINE_BYTES);
    (void)snprintf(crc_line, sizeof(crc_line), "crc64 %016llx\n", (unsigned long long)crc_of(lines));
    if (!slice_equal_text(slice_skip(text, lines.size), crc_line))
        return refuse(error, "it is damaged: its checksum is wrong");
    lines = slice_skip(lines, sizeof(first_line) - 1);
    if (take_fields(&lines, identity))
        return true;
    identity_fini(identity);
    return refuse(error, "it is damaged: a line is wrong, though the checksum is right");
}

/* --------------------------------------------------------------------------------------------------------- files -- */

enum status identity_store(const char *path, const struct merge_identity *identity)
{
    struct buffer text = {0};
    enum status status;

    identity_format(identity, &text);
    status = file_store(path, buffer_slice(&text));
    buffer_fini(&text);
    return status;
}

static must_check enum status fail(const char *path, const char *what, const char *why, enum status status,
                                   char error[IDENTITY_ERROR_BYTES])
{
    (void)snprintf(error, IDENTITY_ERROR_BYTES, "the identity file %.200s %s: %.200s", path, what, why);
    return status;
}

static must_check enum status load(const char *path, struct merge_identity *identity, char error[IDENTITY_ERROR_BYTES])
{
    char why[IDENTITY_ERROR_BYTES];
    char *data = NULL;
    size_t size = 0;
    enum status status = file_load(path, IDENTITY_FILE_BYTES_MOST, &data, &size);

    if (status == STATUS_NOT_FOUND)
        return status;
    if (status != STATUS_OK)
        return fail(path, "cannot be read", status_text(status), status, error);
    if (!identity_parse(slice_make(data, size), identity, why))
        status = fail(path, "is refused", why, STATUS_CORRUPT, error);
    mem_free(data);
    return status;
}

enum status identity_start(const char *path, int64_t wall_ms, struct merge_identity *identity, uint64_t *clock,
                           int64_t *wall, char error[IDENTITY_ERROR_BYTES])
{
    enum status status;

    *identity = (struct merge_identity){0};
    status = load(path, identity, error);
    if (status == STATUS_NOT_FOUND)
        *identity = (struct merge_identity){.name = uuid_random_id(), .promised = stamp_at(wall_ms), .wall = wall_ms};
    else if (status != STATUS_OK)
        return status;
    if (identity->origin != 0)
        merge_vector_set(&identity->former, identity->origin, 1);
    *clock = identity->promised;
    *wall = identity->wall;
    identity->origin = uuid_random_id();
    identity->incarnation++;
    identity_reserve(identity, MAX(stamp_at(wall_ms), *clock), MAX(wall_ms, *wall));
    status = identity_store(path, identity);
    if (status == STATUS_OK)
        return STATUS_OK;
    identity_fini(identity);
    return fail(path, "cannot be written", status_text(status), status, error);
}

/* -------------------------------------------------------------------------------------------------------- bounds -- */

bool identity_wants_more(const struct merge_identity *identity, uint64_t stamp, int64_t wall_ms)
{
    return stamp_ms(stamp) > stamp_ms(identity->promised) - IDENTITY_AHEAD_MS / 2 ||
           wall_ms > identity->wall - IDENTITY_AHEAD_MS / 2;
}

/* Bounds never fall. A stamp can be ahead of the clock, as one was heard. */
void identity_reserve(struct merge_identity *identity, uint64_t stamp, int64_t wall_ms)
{
    identity->promised = MAX(identity->promised, stamp_at(stamp_ms(stamp) + IDENTITY_AHEAD_MS));
    identity->wall = MIN(MAX(identity->wall, wall_ms + IDENTITY_AHEAD_MS), STAMP_MOST_MS);
}

/* ----------------------------------------------------------------------------------------------- who says so -- */

/* Two copies began with the same starts, and each went on with its own: one does not know the other's. */
enum identity_verdict identity_judge(const struct merge_member *known, bool is_heard, const struct merge_member *said,
                                     const struct merge_vector *former)
{
    assert(known->name == said->name);
    if (said->origin == known->origin)
        return said->incarnation == known->incarnation ? IDENTITY_SAME : IDENTITY_COPY;
    if (merge_vector_has(former, known->origin) && said->incarnation > known->incarnation)
        return is_heard ? IDENTITY_COPY : IDENTITY_LATER;
    return is_heard || said->incarnation >= known->incarnation ? IDENTITY_COPY : IDENTITY_OLD;
}
