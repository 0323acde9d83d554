# What KeyDB has and Redis has not.

with_server {} {
    test "EXPDEL is DEL" {keydb} {
        r mset a 1 b 2 c 3
        assert_reply {int 2} r expdel a none b
        assert_reply {int 0} r expdel a
        assert_reply {int 1} r dbsize
        assert_refused "ERR wrong number of arguments for 'expdel' command" r expdel
    }

    test "KEYDB.MEXISTS" {keydb} {
        r mset a 1 b 2
        assert_reply {array {{int 1} {int 0} {int 1} {int 1}}} r keydb.mexists a none b a
        assert_reply {array {{int 0}}} r KeyDB.MExists none
        r hello 3
        assert_reply {array {{bool 1} {bool 0}}} r keydb.mexists a none
        assert_refused "ERR wrong number of arguments for 'keydb.mexists' command" r keydb.mexists
        r set gone v px 1
        pause 3
        assert_reply {array {{bool 0}}} r keydb.mexists gone
    }

    test "KEYDB.MEXISTS counts hits and misses" {keydb} {
        r set a 1
        r config resetstat
        r keydb.mexists a none a
        assert_equal {2 1} [list [info_field keyspace_hits stats] [info_field keyspace_misses stats]]
    }

    test "LFENCE" {keydb} {
        assert_reply {status OK} r lfence
        assert_refused "ERR wrong number of arguments for 'lfence' command" r lfence x
        r multi
        r lfence
        assert_reply {array {{status OK}}} r exec
    }

    test "COMMAND INFO of KeyDB's own" {keydb} {
        foreach {name arity keys} {expdel -2 {1 -1 1} keydb.mexists -2 {1 -1 1} lfence 1 {0 0 0}} {
            set info [lindex [r command info $name] 0]
            assert_equal [list $name $arity $keys] [list [lindex $info 0] [lindex $info 1] [lrange $info 3 5]]
        }
        assert_equal {a b} [r command getkeys expdel a b]
        assert_equal {a b} [r command getkeys keydb.mexists a b]
    }

    test "INFO shows the worker threads" {keydb} {
        assert_equal $::settings(threads) [info_field server_threads cpu]
    }

    test "connections are spread over the threads" {keydb} {
        set clients {}
        set count [expr {$::settings(threads) * 16}]
        for {set i 1} {$i < $count} {incr i} {
            set c [connect]
            $c ping
            lappend clients $c
        }
        set fields [info_fields clients]
        set sum 0
        for {set i 0} {$i < $::settings(threads)} {incr i} {
            set on_thread [dict get $fields thread_${i}_clients]
            assert_range $on_thread 4 40
            incr sum $on_thread
        }
        assert_equal $count $sum
        assert {![dict exists $fields thread_$::settings(threads)_clients]}
    }
}

test "server-threads has bounds" {keydb noconn} {
    foreach value {-1 65 x 1000} {
        set id [server_launch [list --port [free_port] --save "" --server-threads $value]]
        assert_equal 1 [process_wait $id] $value
    }
}

with_server {server-threads 1} {
    test "one thread" {keydb} {
        assert_equal 1 [info_field server_threads cpu]
        assert_equal {1 2} [list [r incr k] [[connect] incr k]]
    }
}
