#include "server/command/command_words.h"

#include "base/compiler.h"

#include <stddef.h>

/* In the order of printing; `printed` NULL: only in rows. */
static const struct {
    uint32_t flag;
    const char *word;
    bool printed;
} flags[] = {
    {COMMAND_WRITE, "write", true},
    {COMMAND_READONLY, "readonly", true},
    {COMMAND_DENYOOM, "denyoom", true},
    {COMMAND_ADMIN, "admin", true},
    {COMMAND_PUBSUB, "pubsub", true},
    {COMMAND_NOSCRIPT, "noscript", true},
    {COMMAND_BLOCKING, "blocking", true},
    {COMMAND_LOADING, "loading", true},
    {COMMAND_STALE, "stale", true},
    {COMMAND_SKIP_MONITOR, "skip_monitor", true},
    {COMMAND_SKIP_SLOWLOG, "skip_slowlog", true},
    {COMMAND_ASKING, "asking", true},
    {COMMAND_FAST, "fast", true},
    {COMMAND_NO_AUTH, "no_auth", true},
    {COMMAND_NO_ASYNC_LOADING, "no_async_loading", true},
    {COMMAND_NO_MULTI, "no_multi", true},
    {COMMAND_NO_MANDATORY_KEYS, "no_mandatory_keys", true},
    {COMMAND_ALLOW_BUSY, "allow_busy", true},
    {COMMAND_MOVABLE_KEYS, "movablekeys", true},
    {COMMAND_MAY_REPLICATE, "may_replicate", false},
    {COMMAND_PROTECTED, "protected", false},
    {COMMAND_DEPRECATED, "deprecated", false},
    {COMMAND_SYSTEM, "syscmd", false},
    {COMMAND_ARBITRARY_KEYS, "touches_arbitrary_keys", false},
    {COMMAND_ALONE, "alone", false},
    {COMMAND_UNQUEUED, "unqueued", false},
    {COMMAND_ENDS_MULTI, "ends_multi", false},
    {COMMAND_SUBSCRIBED, "subscribed", false},
    {COMMAND_SCRIPT, "script", false},
    {COMMAND_ABSENT, "absent", false},
    {COMMAND_OPERATION, "operation", false},
    /* Known words of the facts that mean nothing here: */
    {0, "sentinel", false},
    {0, "experimental", false},
    {0, "noprop", false},
    {0, "async_ok", false},
    {0, "random", false},
};

/* A category's bit is its place here; also the order of printing. */
static const char *const categories[] = {
    "keyspace", "read",        "write",      "set",         "sortedset", "list",        "hash", "string",
    "bitmap",   "hyperloglog", "geo",        "stream",      "pubsub",    "admin",       "fast", "slow",
    "blocking", "dangerous",   "connection", "transaction", "scripting", "replication",
};

static const struct {
    uint32_t flag;
    const char *name;
} key_flags[] = {
    {KEY_RO, "RO"},
    {KEY_RW, "RW"},
    {KEY_OW, "OW"},
    {KEY_RM, "RM"},
    {KEY_ACCESS, "access"},
    {KEY_UPDATE, "update"},
    {KEY_INSERT, "insert"},
    {KEY_DELETE, "delete"},
    {KEY_NOT_KEY, "not_key"},
    {KEY_INCOMPLETE, "incomplete"},
    {KEY_VARIABLE_FLAGS, "variable_flags"},
};

bool command_flag_of_word(struct slice word, uint32_t *flag)
{
    for (size_t i = 0; i < countof(flags); i++) {
        if (slice_equal_text(word, flags[i].word)) {
            *flag = flags[i].flag;
            return true;
        }
    }
    return false;
}

uint32_t command_flag_at(unsigned index)
{
    return index < countof(flags) ? flags[index].flag : 0;
}

const char *command_flag_name(uint32_t flag)
{
    for (size_t i = 0; i < countof(flags); i++) {
        if (flags[i].flag == flag)
            return flags[i].printed ? flags[i].word : NULL;
    }
    return NULL;
}

uint64_t command_category_of_word(struct slice word)
{
    for (size_t i = 0; i < countof(categories); i++) {
        if (slice_equal_text_nocase(word, categories[i]))
            return UINT64_C(1) << i;
    }
    return 0;
}

const char *command_category_name(unsigned bit)
{
    return bit < countof(categories) ? categories[bit] : NULL;
}

uint32_t key_flag_of_word(struct slice word)
{
    for (size_t i = 0; i < countof(key_flags); i++) {
        if (slice_equal_text_nocase(word, key_flags[i].name))
            return key_flags[i].flag;
    }
    return 0;
}

uint32_t key_flag_at(unsigned index)
{
    return index < countof(key_flags) ? key_flags[index].flag : 0;
}

const char *key_flag_name(uint32_t flag)
{
    for (size_t i = 0; i < countof(key_flags); i++) {
        if (key_flags[i].flag == flag)
            return key_flags[i].name;
    }
    return NULL;
}
