#include "server/durable/durable_info.h"

#include "server/durable/aof.h"
#include "server/durable/aof_writer.h"
#include "server/durable/child.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"

struct picture {
    struct child_stats child;
    struct persistence_stats saving;
    struct aof_stats rewriting;
    struct aof_writer_stats writing;
    struct loading_stats loading;
    uint64_t changes, keys_left;
    int64_t last_save_s, saving_s;
    bool is_loading, is_loading_aside, is_saving, is_rewriting;
    bool has_aof, aof_is_on; /* it may also be starting or stopping */
    double child_percent, loaded_percent;
};

static double percent(uint64_t part, uint64_t whole)
{
    return whole != 0 ? (double)part * 100 / (double)whole : 0;
}

/* Also for replicas: who watches the memory and the disk asks for both. */
static bool makes_snapshot(void)
{
    return child_runs(CHILD_RDB) || child_runs(CHILD_SYNC) || child_runs(CHILD_STATE);
}

/* Of the one that has run for longest. -1: there is none. */
static int64_t snapshot_running_s(void)
{
    const int64_t own_s = child_running_s(CHILD_RDB), sync_s = child_running_s(CHILD_SYNC);
    const int64_t most_s = MAX(own_s, sync_s);

    return MAX(most_s, child_running_s(CHILD_STATE));
}

static bool take_safe(void *into, const struct info_moment *moment)
{
    struct picture *picture = into;

    (void)moment;
    picture->is_loading = loading_runs();
    picture->is_loading_aside = loading_runs_aside();
    picture->is_saving = makes_snapshot();
    picture->is_rewriting = child_runs(CHILD_AOF);
    picture->aof_is_on = aof_is_on();
    return true;
}

static void take(void *into, const struct info_moment *moment)
{
    struct picture *picture = into;

    (void)moment;
    child_stats(&picture->child);
    persistence_stats(&picture->saving);
    aof_stats(&picture->rewriting);
    aof_writer_stats(&picture->writing);
    picture->changes = persistence_changes();
    picture->last_save_s = persistence_last_save_s();
    picture->is_loading = loading_runs();
    picture->is_loading_aside = loading_runs_aside();
    if (picture->is_loading || picture->is_loading_aside) {
        loading_stats(&picture->loading);
        picture->loaded_percent = percent(picture->loading.loaded_bytes, picture->loading.expected_bytes);
        picture->loading.eta_s = picture->loading.eta_s >= 0 ? picture->loading.eta_s : 1;
    }
    picture->is_saving = makes_snapshot();
    picture->is_rewriting = picture->rewriting.is_rewriting;
    picture->saving_s = snapshot_running_s();
    picture->has_aof = aof_state() != AOF_OFF;
    picture->aof_is_on = aof_is_on();
    picture->keys_left = picture->child.keys_total - MIN(picture->child.keys, picture->child.keys_total);
    picture->child_percent = percent(picture->child.keys, picture->child.keys_total);
}

static const struct info_source source = {sizeof(struct picture), .take = take, .take_safe = take_safe};

static bool has_aof(const void *picture)
{
    return ((const struct picture *)picture)->has_aof;
}

static bool is_loading(const void *picture)
{
    return ((const struct picture *)picture)->is_loading || ((const struct picture *)picture)->is_loading_aside;
}

#define FIELD(name, member, ...) INFO_FIELD(name, &source, struct picture, member, ##__VA_ARGS__)
#define OK(name, member) INFO_OK(name, &source, struct picture, member)
#define AOF_FIELD(name, member) FIELD(name, member, .wanted = has_aof)
#define LOADING_FIELD(name, member) FIELD(name, member, .wanted = is_loading)

const struct info_row durable_info[] = {
    FIELD("loading", is_loading, INFO_SAFE),
    FIELD("async_loading", is_loading_aside, INFO_SAFE),
    LOADING_FIELD("loading_start_time", loading.start_s),
    LOADING_FIELD("loading_total_bytes", loading.total_bytes),
    LOADING_FIELD("loading_rdb_used_mem", loading.memory_bytes),
    LOADING_FIELD("loading_loaded_bytes", loading.loaded_bytes),
    LOADING_FIELD("loading_loaded_perc", loaded_percent),
    LOADING_FIELD("loading_eta_seconds", loading.eta_s),

    FIELD("current_cow_peak", child.cow_peak_bytes),
    FIELD("current_cow_size", child.cow_bytes),
    FIELD("current_cow_size_age", child.cow_age_s),
    FIELD("current_fork_perc", child_percent),
    FIELD("current_save_keys_processed", child.keys),
    FIELD("current_save_keys_total", child.keys_total),
    FIELD("latest_fork_usec", child.last_fork_us),
    FIELD("total_forks", child.fork_count),

    FIELD("rdb_changes_since_last_save", changes),
    FIELD("rdb_bgsave_in_progress", is_saving, INFO_SAFE),
    FIELD("rdb_last_save_time", last_save_s),
    OK("rdb_last_bgsave_status", saving.last_was_good),
    FIELD("rdb_last_bgsave_time_sec", saving.last_duration_s),
    FIELD("rdb_current_bgsave_time_sec", saving_s),
    FIELD("rdb_saves", saving.saves),
    FIELD("rdb_saves_consecutive_failures", saving.failures),
    FIELD("rdb_last_cow_size", saving.last_cow_bytes),
    FIELD("rdb_last_load_keys_expired", saving.expired_at_load),
    FIELD("rdb_last_load_keys_loaded", saving.loaded),

    FIELD("snapshot_method", child.method),
    FIELD("snapshot_keys_left", keys_left),
    FIELD("snapshot_gate_usec", child.gate_us),
    FIELD("snapshot_kept_bytes", child.live.kept_bytes),
    FIELD("snapshot_kept_peak_bytes", child.live.kept_peak_bytes),
    FIELD("snapshot_kept_keys", child.live.kept_keys),
    FIELD("snapshot_longest_hold_usec", child.live.held_us),
    FIELD("snapshot_longest_wait_usec", child.live.waited_us),
    FIELD("snapshot_slowed_usec", child.live.slowed_us),

    FIELD("aof_enabled", aof_is_on, INFO_SAFE),
    FIELD("aof_rewrite_in_progress", is_rewriting, INFO_SAFE),
    FIELD("aof_rewrite_scheduled", rewriting.is_scheduled),
    FIELD("aof_last_rewrite_time_sec", rewriting.last_duration_s),
    FIELD("aof_current_rewrite_time_sec", rewriting.running_s),
    OK("aof_last_bgrewrite_status", rewriting.last_was_good),
    FIELD("aof_rewrites", rewriting.rewrites),
    FIELD("aof_rewrites_consecutive_failures", rewriting.failures),
    OK("aof_last_write_status", writing.is_well),
    FIELD("aof_last_cow_size", rewriting.last_cow_bytes),
    AOF_FIELD("aof_current_size", writing.size_bytes),
    AOF_FIELD("aof_base_size", writing.rewritten_bytes),
    AOF_FIELD("aof_pending_rewrite", rewriting.is_scheduled),
    AOF_FIELD("aof_buffer_length", writing.waiting_bytes),
    AOF_FIELD("aof_pending_bio_fsync", writing.is_syncing),
    AOF_FIELD("aof_syncs", writing.syncs),
    AOF_FIELD("aof_delayed_fsync", writing.slow_syncs),
    FIELD("mem_aof_buffer", writing.buffer_bytes),
    {0},
};
