# How many elements SRANDMEMBER, HRANDFIELD and ZRANDMEMBER may be asked for, and how much they may take.

set random_commands {{srandmember s} {hrandfield h} {zrandmember z}}

# A member for each of them.
proc random_fill {member} {
    r sadd s $member
    r hset h $member 1
    r zadd z 1 $member
}

with_server {} {
    test "counts of random elements have their bounds, and without a key none is too many" {} {
        foreach words $::random_commands {
            foreach count {-16777216 -16777217 -1000000000000 -4611686018427387905 -9223372036854775807
                    9223372036854775807} {
                assert_equal {} [r {*}$words $count]
            }
            assert_refused "ERR value is out of range, value must between -9223372036854775807 and\
                9223372036854775807" r {*}$words -9223372036854775808
            foreach count {-9223372036854775809 9223372036854775808 many} {
                assert_refused "ERR value is not an integer or out of range" r {*}$words $count
            }
        }
        foreach words {{hrandfield h %s withvalues} {zrandmember z %s withscores}} {
            foreach count {-16777217 -4611686018427387903 4611686018427387903} {
                assert_equal {} [r {*}[string map [list %s $count] $words]]
            }
            foreach count {-4611686018427387904 4611686018427387904 -9223372036854775807} {
                assert_refused "ERR value is out of range" r {*}[string map [list %s $count] $words]
            }
        }
    }

    test "what some elements take is bounded, not how many they are" {keydb slow} {
        random_fill a
        set c [connect]
        foreach words $::random_commands {
            # As many as once were too many: read raw, lists of them would take gigabytes here.
            $c -send {*}$words -16777217
            assert_equal *16777217 [$c -line]
            for {set left [expr {16777217 * 7}]} {$left > 0} {incr left -$size} {
                set size [expr {min($left, 1 << 20)}]
                $c -bytes $size
            }
            assert_equal PONG [$c ping]
        }
        $c -close
    }

    test "random elements that take too much are an error" {keydb} {
        random_fill a
        set refusal "ERR value is out of range, the reply would exceed 512 MiB"
        foreach words $::random_commands {
            foreach count {-100000000 -4611686018427387903} {
                assert_refused $refusal r {*}$words $count
                assert_error "$refusal*" {r eval {return redis.call(unpack(ARGV))} 0 {*}$words $count}
            }
        }
    }

    test "random elements that have taken too much on the way are taken back" {keydb slow} {
        set refusal "ERR value is out of range, the reply would exceed 512 MiB"
        random_fill [string repeat x 1000000]
        foreach words $::random_commands {
            assert_refused $refusal r {*}$words -600
            assert_equal 3 [llength [r {*}$words -3]]
        }
        r multi
        r set few 1
        r hrandfield h -600
        r get few
        assert_equal [list OK $refusal 1] [r exec]
    }

}

with_server {} {
    test "random elements stop at the output limit of their client" {keydb} {
        random_fill a
        r config resetstat
        set used [info_field used_memory memory]
        with_config {client-output-buffer-limit "normal 1000000 0 0"} {
            foreach words $::random_commands {
                set c [connect]
                $c -send {*}$words -999999999
                assert {[$c -closed]}
                $c -close
            }
        }
        assert_equal 3 [info_field client_output_buffer_limit_disconnections stats]
        assert_range [info_field used_memory_peak memory] 0 [expr {$used + 64 * 1024 * 1024}]
    }
}
