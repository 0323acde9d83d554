# Deadlines at the end of time.

with_server {} {
    test "INFO's average of the latest deadline there is" {} {
        r set k v
        r pexpireat k 9223372036854775807
        regexp {avg_ttl=(-?\d+)} [info_field db0 keyspace] all average
        assert_range $average 9000000000000000000 9223372036854775807
    }
}
