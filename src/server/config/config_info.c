#include "server/config/config_info.h"

#include "base/version.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/options_process.h"

#define TEXT_OF_(word) #word
#define TEXT_OF(word) TEXT_OF_(word)

static const char *keydb_version(void)
{
    return option_version_override.data != NULL ? option_version_override.data : KEYDB_VERSION;
}

static const char *supervised(void)
{
    switch (OPTION_GET(option_supervised)) {
    case SUPERVISED_SYSTEMD:
        return "systemd";
    case SUPERVISED_UPSTART:
        return "upstart";
    default:
        return "no";
    }
}

static uint64_t tcp_port(void)
{
    return OPTION_GET_U64(option_port) != 0 ? OPTION_GET_U64(option_port) : OPTION_GET_U64(option_tls_port);
}

struct build {
    uint64_t id;
};

static bool take_build_safe(void *picture, const struct info_moment *moment)
{
    (void)moment;
    ((struct build *)picture)->id = config_build_id();
    return true;
}

static void take_build(void *picture, const struct info_moment *moment)
{
    (void)take_build_safe(picture, moment);
}

static const struct info_source build_source = {sizeof(struct build), take_build, take_build_safe};

static void append_policy(struct buffer *buffer, const void *picture)
{
    (void)picture;
    (void)config_get_text("maxmemory-policy", buffer);
}

static void append_backlog_size(struct buffer *buffer, const void *picture)
{
    (void)picture;
    (void)config_get_text("repl-backlog-size", buffer);
}

const struct info_row config_info[] = {
    INFO_TEXT("redis_version", KEYDB_REDIS_VERSION, INFO_SAFE),
    INFO_CALL_TEXT("keydb_version", keydb_version, INFO_SAFE),
    INFO_TEXT("redis_git_sha1", KEYDB_GIT_SHA1, INFO_SAFE),
    INFO_TEXT("redis_git_dirty", TEXT_OF(KEYDB_GIT_DIRTY)),
    INFO_HEX("redis_build_id", &build_source, struct build, id, INFO_SAFE),
    INFO_CALL_TEXT("process_supervised", supervised),
    INFO_CALL("tcp_port", tcp_port, INFO_SAFE),
    INFO_OPTION("configured_hz", option_hz, INFO_SAFE),
    INFO_CALL_TEXT("executable", config_executable_path, INFO_SAFE),
    INFO_CALL_TEXT("config_file", config_file_path, INFO_SAFE),
    INFO_OPTION("maxclients", option_maxclients, INFO_SAFE),
    INFO_VALUE("maxmemory_policy", NULL, append_policy),
    INFO_VALUE("repl_backlog_size", NULL, append_backlog_size),
    {0},
};
