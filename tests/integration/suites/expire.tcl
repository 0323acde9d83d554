# Keys with a time to live: setting, reading, removing it, and what happens when the time has come.

set wrong_int "ERR value is not an integer or out of range"

with_server {enable-debug-command yes} {
    test "EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT set, TTL and its kin read" {} {
        foreach command {expire pexpire expireat pexpireat} {
            assert_reply {int 0} r $command none 100
        }
        r set k v
        assert_reply {int 1} r expire k 100
        assert_range [r ttl k] 99 100
        assert_range [r pttl k] 99000 100000
        assert_range [r expiretime k] [expr {[clock seconds] + 98}] [expr {[clock seconds] + 101}]
        assert_reply {int 1} r pexpire k 200500
        assert_range [r pttl k] 199500 200500
        assert_reply {int 1} r expireat k 4102444800
        assert_reply {int 4102444800} r expiretime k
        assert_reply {int 4102444800000} r pexpiretime k
        assert_reply {int 1} r pexpireat k 4102444800999
        assert_reply {int 4102444800999} r pexpiretime k
        assert_reply {int 4102444801} r expiretime k
        assert_reply {bulk v} r get k
    }

    test "TTL rounds to the nearest second" {} {
        r set k v px 1900
        assert_reply {int 2} r ttl k
        r set k v px 99400
        assert_reply {int 99} r ttl k
        r set k v px 400
        assert_reply {int 0} r ttl k
        assert_range [r pttl k] 1 400
    }

    test "no key is -2, no expiry is -1" {} {
        r set k v
        foreach command {ttl pttl expiretime pexpiretime} {
            assert_reply {int -2} r $command none
            assert_reply {int -1} r $command k
            assert_refused "ERR wrong number of arguments for '$command' command" r $command
        }
    }

    test "PERSIST" {} {
        r set k v
        assert_reply {int 0} r persist k
        assert_reply {int 0} r persist none
        r expire k 100
        assert_reply {int 1} r persist k
        assert_reply {int 0} r persist k
        assert_reply {int -1} r ttl k
    }

    test "NX, XX, GT, LT" {} {
        r set k v
        foreach {options before after expected} {
            nx   -1 100 1    nx   50 100 0    xx   -1 100 0    xx   50 100 1    XX   50 20  1
            gt   -1 100 0    gt   50 100 1    gt   50 20  0    gt   50 50  0
            lt   -1 100 1    lt   50 100 0    lt   50 20  1    lt   50 50  0
            {xx gt} -1 100 0 {xx gt} 50 100 1 {xx lt} -1 100 0 {lt xx} 50 20 1 {gt xx} 50 20 0
            {nx nx} -1 100 1 {gt gt} 50 100 1
        } {
            foreach command {expireat pexpireat} unit {1 1000} {
                r persist k
                if {$before >= 0} {
                    r $command k [expr {(4102444800 + $before) * $unit}]
                }
                assert_reply [list int $expected] r $command k [expr {(4102444800 + $after) * $unit}] {*}$options
                set now [expr {$expected ? $after : $before}]
                assert_reply [list int [expr {$now < 0 ? -1 : 4102444800 + $now}]] r expiretime k
            }
        }
        r persist k
        assert_reply {int 0} r expire k 100 gt
        assert_reply {int 1} r expire k 100 nx
        assert_reply {int 1} r pexpire k 50000 lt
        assert_range [r ttl k] 48 50
    }

    test "bad options and times are refused, also for a missing key" {} {
        r set k v
        foreach command {expire pexpire expireat pexpireat} {
            foreach key {k none} {
                assert_refused "ERR NX and XX, GT or LT options at the same time are not compatible" r $command $key \
                    10 nx xx
                assert_refused "ERR NX and XX, GT or LT options at the same time are not compatible" r $command $key \
                    10 gt nx
                assert_refused "ERR GT and LT options at the same time are not compatible" r $command $key 10 gt lt
                assert_refused "ERR Unsupported option foo" r $command $key 10 foo
                assert_refused "ERR Unsupported option Bar" r $command $key 10 nx Bar
                assert_refused $::wrong_int r $command $key x
                assert_refused $::wrong_int r $command $key 1.5
                assert_refused $::wrong_int r $command $key 9223372036854775808
            }
            assert_refused "ERR wrong number of arguments for '$command' command" r $command k
        }
        foreach {command time} {
            expire 9223372036854775807  expire -9223372036854775808  expire 9223372036854776  expire 9223372036854775
            pexpire 9223372036854775807  pexpire 9223372036854770000  expireat 9223372036854775807
            expireat 9223372036854776
            expireat -9223372036854776
        } {
            assert_refused "ERR invalid expire time in '$command' command" r $command k $time
        }
        assert_reply {int -1} r ttl k
        assert_reply {int 1} r expireat k 9223372036854775
        assert_reply {int 9223372036854775000} r pexpiretime k
        assert_reply {int 1} r pexpireat k 9223372036854775807
        assert_reply {int 9223372036854775807} r pexpiretime k
    }

    test "a time that has passed deletes at once" {} {
        foreach {command time} {expire 0  expire -1  pexpire 0  pexpire -100  expireat 1  expireat 0  expireat -5
            pexpireat 1
                pexpireat -9223372036854775808} {
            r set k v
            assert_reply {int 1} r $command k $time
            assert_reply {int 0} r exists k
            assert_reply {int 0} r dbsize
        }
        r set k v
        assert_reply {int 0} r expire k -1 xx
        assert_reply {int 1} r exists k
        assert_reply {int 1} r expire k -1 lt
        assert_reply {int 0} r exists k
    }

    test "a dead key is not there for any command" {} {
        r debug set-active-expire 0
        set commands {{get k} {} {exists k} 0 {ttl k} -2 {pttl k} -2 {type k} none {strlen k} 0 {getrange k 0 -1} {} \
            {mget k} {{}}
            {del k} 0 {unlink k} 0 {touch k} 0 {persist k} 0 {expire k 10} 0 {object encoding k} {} {getdel k} {} \
                {getex k ex 5} {}
            {copy k k2} 0 {move k 1} 0 {randomkey} {} {keys *} {} {expiretime k} -2 {setnx k w} 1 {append k w} 1 \
                {incr k} 1
            {getset k w} {} {setrange k 0 xy} 2 {set k w nx} OK {set k w xx} {} {set k w get} {} {incrbyfloat k 2} 2 \
                {msetnx k 1} 1}
        foreach {command expected} $commands {
            r flushall
            r set k 5 px 1
            pause 2
            assert_equal $expected [r {*}$command] $command
        }
        r flushall
        r set k v px 1
        pause 2
        assert_refused "ERR no such key" r rename k other
        r debug set-active-expire 1
    }

    test "RANDOMKEY deletes the expired keys that it meets" {} {
        r debug set-active-expire 0
        for {set i 0} {$i < 60} {incr i} {
            r set short$i 1 px 1
        }
        r set long 1
        wait_for {[r pttl short59] == -2}
        assert_equal long [r randomkey]
        r del long
        wait_for {[r randomkey] eq {} && [r dbsize] == 0}
        r debug set-active-expire 1
    }

    test "keys nobody asks for disappear by themselves" {} {
        for {set i 0} {$i < 2000} {incr i} {
            r -send set k$i v px [expr {1 + $i % 50}]
        }
        for {set i 0} {$i < 2000} {incr i} {
            r -read
        }
        r set stays v
        r set later v ex 1000
        wait_for {[r dbsize] == 2}
        assert {[info_field expired_keys stats] >= 2000}
        assert_match "keys=2,expires=1,avg_ttl=*" [info_field db0 keyspace]
    }

    test "in every database" {} {
        for {set db 0} {$db < 16} {incr db} {
            r select $db
            r set k v px 20
        }
        wait_for {![string match "*keys=*" [r info keyspace]]}
    }

    test "DEBUG SET-ACTIVE-EXPIRE 0 keeps them until somebody asks" {} {
        r debug set-active-expire 0
        r set k v px 1
        r set other v px 1
        pause 150
        assert_reply {int 2} r dbsize
        assert_reply nullbulk r get k
        assert_reply {int 1} r dbsize
        r debug set-active-expire 1
        wait_for {[r dbsize] == 0}
    }

    test "a key lives until its time and no longer" {} {
        foreach ms {30 80 130} {
            set begin [clock milliseconds]
            r set k v px $ms
            set sent [clock milliseconds]
            set alive $sent
            while 1 {
                set asked [clock milliseconds]
                if {![r exists k]} {
                    break
                }
                set alive $asked
            }
            set gone [clock milliseconds]
            assert_range [expr {$gone - $begin}] [expr {$ms - 1}] 10000
            assert_range [expr {$alive - $sent}] 0 [expr {$ms + 1}]
        }
    }

    test "a new expiry replaces the old one" {} {
        r set k v px 30
        r pexpire k 100000
        r set k2 v px 30
        r persist k2
        r set k3 v px 30
        r set k3 w
        r set probe v px 31
        wait_for {[r exists probe] == 0}
        assert_reply {int 3} r exists k k2 k3
    }

    test "the expiry goes with the key" {} {
        r set a v pxat 4102444800123
        r rename a b
        assert_reply {int 4102444800123} r pexpiretime b
        r copy b c
        assert_reply {int 4102444800123} r pexpiretime c
        r move c 1
        r select 1
        assert_reply {int 4102444800123} r pexpiretime c
        r swapdb 0 1
        assert_reply {int 4102444800123} r pexpiretime b
    }

    test "an access in a transaction sees one time" {} {
        r set k v px 400
        r multi
        r get k
        r debug sleep 0.5
        r get k
        r pttl k
        set replies [r exec]
        assert_equal v [lindex $replies 0]
        assert_equal v [lindex $replies 2]
        assert_reply nullbulk r get k
    }

    test "TTL of a member" {keydb} {
        assert_reply {int -2} r ttl none member
        r set k v
        assert_refused "ERR Invalid arguments" r ttl k a b
    }
}

with_server {hz 100} {
    test "expired_keys counts, hits and misses too" {} {
        r config resetstat
        r set a v px 1
        r set b v
        pause 2
        r get a
        r get b
        r get b
        r exists none
        wait_for {[info_field expired_keys stats] == 1}
        assert_equal 2 [info_field keyspace_hits stats]
        assert_equal 2 [info_field keyspace_misses stats]
    }
}
