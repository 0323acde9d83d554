#include "commands/string/condition.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

enum condition_kind condition_of_word_slow(struct slice word)
{
    if (slice_equal_nocase(word, SLICE("NX")))
        return CONDITION_MISSING;
    if (slice_equal_nocase(word, SLICE("XX")))
        return CONDITION_EXISTS;
    if (slice_equal_nocase(word, SLICE("IFEQ")))
        return CONDITION_EQUALS;
    if (slice_equal_nocase(word, SLICE("IFNE")))
        return CONDITION_DIFFERS;
    if (slice_equal_nocase(word, SLICE("IFDEQ")))
        return CONDITION_DIGEST_EQUALS;
    return slice_equal_nocase(word, SLICE("IFDNE")) ? CONDITION_DIGEST_DIFFERS : CONDITION_NONE;
}

bool condition_parse(const struct request *request, uint32_t *index, enum condition_kind kind,
                     struct condition *condition)
{
    if (kind == CONDITION_NONE || (condition->kind != CONDITION_NONE && condition->kind != kind))
        return false;
    condition->kind = kind;
    if (!condition_reads_value(kind))
        return true;
    if (*index + 1 == request->arg_count)
        return false;
    condition->value_index = ++*index;
    return true;
}

void string_digest(struct slice string, char text[STRING_DIGEST_BYTES + 1])
{
    snprintf(text, STRING_DIGEST_BYTES + 1, "%016" PRIx64, (uint64_t)XXH3_64bits(string.data, string.size));
}

static bool check_digest(struct request *request, struct slice wanted, struct slice string, bool *holds)
{
    char text[STRING_DIGEST_BYTES + 1];

    if (wanted.size != STRING_DIGEST_BYTES) {
        reply_error(request, "ERR must be exactly 16 hexadecimal characters");
        return false;
    }
    string_digest(string, text);
    *holds = slice_equal_text_nocase(wanted, text);
    return true;
}

bool condition_check(struct request *request, const struct condition *condition, const struct entry *entry, bool *holds)
{
    const bool wants_other = condition->kind == CONDITION_DIFFERS || condition->kind == CONDITION_DIGEST_DIFFERS;
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct slice wanted;

    *holds = condition->kind == CONDITION_NONE || (condition->kind == CONDITION_EXISTS) == (entry != NULL);
    if (!condition_reads_value(condition->kind))
        return true;
    *holds = wants_other;
    if (entry == NULL)
        return true;
    wanted = request_arg(request, condition->value_index);
    if (condition->kind == CONDITION_EQUALS || condition->kind == CONDITION_DIFFERS)
        *holds = slice_equal(entry_string(entry, scratch), wanted);
    else if (!check_digest(request, wanted, entry_string(entry, scratch), holds))
        return false;
    *holds ^= wants_other;
    return true;
}
