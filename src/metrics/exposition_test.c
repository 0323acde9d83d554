#include "metrics/exposition.h"

#include "base/mem.h"
#include "metrics/exposition_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *info, const char *wanted)
{
    struct buffer text = {0};
    size_t size;
    char *got;

    exposition_write_from(&text, slice_from_text(info));
    got = buffer_take(&text, &size);
    assert_string_equal(got, wanted);
    mem_free(got);
}

static void what_info_does_not_show_is_not_told(void **state)
{
    (void)state;
    expect("", "");
    expect("# Server\r\n\r\nno_such_field:1\r\nconnected_clients_x:1\r\nxconnected_clients:1\r\nconnected_clients\r\n",
           "");
    expect("connected_clients:unavailable\r\n", "");
}

static void a_field_becomes_a_sample(void **state)
{
    (void)state;
    expect("connected_clients:7\r\n", "# HELP redis_connected_clients Connections of clients, without replicas.\n"
                                      "# TYPE redis_connected_clients gauge\n"
                                      "redis_connected_clients 7\n");
    expect("latest_fork_usec:1500\n", "# HELP redis_latest_fork_seconds How long the last fork took.\n"
                                      "# TYPE redis_latest_fork_seconds gauge\n"
                                      "redis_latest_fork_seconds 0.0015\n");
    expect("aof_last_write_status:err\n",
           "# HELP redis_aof_last_write_status Whether the append-only file could be written last.\n"
           "# TYPE redis_aof_last_write_status gauge\n"
           "redis_aof_last_write_status 0\n");
}

static void lines_of_a_kind_become_one_metric_with_labels(void **state)
{
    (void)state;
    expect("errorstat_ERR:count=3\r\nerrorstat_A\"\\%\x01:count=4\r\nerrorstat_X:\r\n",
           "# HELP redis_errors_total Error replies by their code.\n"
           "# TYPE redis_errors_total counter\n"
           "redis_errors_total{err=\"ERR\"} 3\n"
           "redis_errors_total{err=\"A\\\"\\\\%25%01\"} 4\n");
    expect("latency_percentiles_usec_get:p50=1.5,p99.9=2\r\n",
           "# HELP redis_latency_percentiles_usec Percentiles of a command since the start or CONFIG RESETSTAT, as "
           "latency-tracking-info-percentiles says.\n"
           "# TYPE redis_latency_percentiles_usec summary\n"
           "redis_latency_percentiles_usec{cmd=\"get\",quantile=\"0.5\"} 1.5\n"
           "redis_latency_percentiles_usec{cmd=\"get\",quantile=\"0.999\"} 2\n");
}

static void other_fields_can_be_labels(void **state)
{
    (void)state;
    expect("master_host:::1\nmaster_port:7\nmaster_link_status:up\n",
           "# HELP redis_master_link_up Whether the link to the master is up.\n"
           "# TYPE redis_master_link_up gauge\n"
           "redis_master_link_up{master_host=\"::1\",master_port=\"7\"} 1\n");
}

/* Prometheus wants the samples of a metric in one piece. */
static void rows_of_one_metric_stand_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < metric_row_count; i++) {
        for (size_t k = i + 1; k < metric_row_count; k++) {
            if (strcmp(metric_rows[i].name, metric_rows[k].name) == 0)
                assert_string_equal(metric_rows[k - 1].name, metric_rows[k].name);
        }
        assert_true(metric_rows[i].part == NULL || metric_rows[i].labels != NULL);
        assert_non_null(metric_rows[i].help);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_info_does_not_show_is_not_told),
        cmocka_unit_test(a_field_becomes_a_sample),
        cmocka_unit_test(lines_of_a_kind_become_one_metric_with_labels),
        cmocka_unit_test(other_fields_can_be_labels),
        cmocka_unit_test(rows_of_one_metric_stand_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
