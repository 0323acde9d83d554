# Deadlines at the end of time.

with_server {} {
    test "INFO's average of the latest deadline there is" {} {
        r set k v
        r pexpireat k 9223372036854775807
        regexp {avg_ttl=(-?\d+)} [info_field db0 keyspace] all average
        assert_range $average 9000000000000000000 9223372036854775807
    }

    test "INFO's average of many of them" {keydb} {
        for {set i 0} {$i < 5000} {incr i} {
            r -send set k$i v pxat 9223372036854775807
        }
        for {set i 0} {$i < 5000} {incr i} {
            assert_equal OK [r -read]
        }
        set averages {{} {lindex [regexp -inline {avg_ttl=(-?\d+)} [info_field db0 keyspace]] 1}}
        assert_range [apply $averages] 9000000000000000000 9223372036854775807
        # And none of them is left in the sums when they have nearer ones.
        for {set i 0} {$i < 5000} {incr i} {
            r -send pexpire k$i 1000000
        }
        for {set i 0} {$i < 5000} {incr i} {
            assert_equal 1 [r -read]
        }
        assert_range [apply $averages] 1 1000000
    }
}
