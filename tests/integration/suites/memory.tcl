# MEMORY: where the memory is.

with_server {} {
    test "MEMORY USAGE" {} {
        r set small v
        r set large [string repeat x 100000]
        assert_range [r memory usage small] 16 128
        assert_range [r memory usage large] 100000 140000
        assert_range [r memory usage large samples 5] 100000 140000
        assert_equal {} [r memory usage nosuch]
        assert_refused "ERR syntax error" r memory usage small samples
        assert_refused "ERR syntax error" r memory usage small samples -1
        assert_refused "ERR syntax error" r memory usage small foo 1
        assert_refused "ERR value is not an integer or out of range" r memory usage small samples x
    }

    test "MEMORY STATS adds up" {} {
        r flushall sync
        r set a 1
        r select 3
        r set b 1 ex 1000
        r select 0
        set stats [r memory stats]
        assert {[dict get $stats peak.allocated] >= [dict get $stats total.allocated]}
        assert {[dict get $stats overhead.total] >= [dict get $stats startup.allocated]}
        assert_equal 2 [dict get $stats keys.count]
        foreach db {db.0 db.3} {
            assert {[dict get $stats $db overhead.hashtable.main] > 0}
        }
        assert {[dict get $stats db.3 overhead.hashtable.expires] > 0}
        assert_equal 0 [dict get $stats db.0 overhead.hashtable.expires]
        assert {![dict exists $stats db.1]}
        if {!$::is_oracle} {
            set main [dict get $stats db.0 overhead.hashtable.main]
            incr main [dict get $stats db.3 overhead.hashtable.main]
            assert_equal $main [dict get $stats overhead.db.hashtable.lut]
            r eval "return 1" 0
            assert {[dict get [r memory stats] script.VMs] > 0}
        }
        foreach {field of} {allocator-fragmentation.ratio {allocator.active allocator.allocated}
                            allocator-rss.ratio {allocator.resident allocator.active}} {
            lassign $of part whole
            if {[dict get $stats $whole] != 0} {
                set ratio [expr {double([dict get $stats $part]) / [dict get $stats $whole]}]
                assert {abs([dict get $stats $field] - $ratio) < 0.001} $field
            }
        }
        set info [info_fields memory]
        assert_equal [dict get $stats startup.allocated] [dict get $info used_memory_startup]
        assert {abs([dict get $stats overhead.total] - [dict get $info used_memory_overhead]) < 200000}
        assert_range [dict get $info used_memory_dataset] 0 [dict get $info used_memory]
    }

    test "MEMORY STATS has the fields of the family, in RESP3 with numbers as such" {} {
        set fields {
            peak.allocated total.allocated startup.allocated replication.backlog clients.slaves clients.normal
            cluster.links aof.buffer lua.caches functions.caches overhead.total keys.count keys.bytes-per-key
            dataset.bytes dataset.percentage peak.percentage allocator.allocated allocator.active allocator.resident
            allocator-fragmentation.ratio allocator-fragmentation.bytes allocator-rss.ratio allocator-rss.bytes
            rss-overhead.ratio rss-overhead.bytes fragmentation fragmentation.bytes
        }
        if {!$::is_oracle} {
            set fields [linsert $fields [lsearch $fields allocator-fragmentation.ratio] allocator.muzzy]
            # Those that Redis 8 has more of.
            lappend fields replica.fullsync.buffer script.VMs overhead.db.hashtable.lut \
                overhead.db.hashtable.rehashing db.dict.rehashing.count
        }
        r flushall sync
        assert_equal [lsort $fields] [lsort [dict keys [r memory stats]]]
        r hello 3
        set reply [r -typed memory stats]
        assert_equal map [lindex $reply 0]
        assert_equal double [lindex [dict get [lindex $reply 1] {bulk fragmentation}] 0]
        r hello 2
    }

    test "MEMORY DOCTOR, PURGE, MALLOC-STATS" {} {
        assert {[string length [r memory doctor]] > 20}
        assert_equal OK [r memory purge]
        assert {[string length [r memory malloc-stats]] > 0}
    }

    test "what background threads free is counted" {} {
        r flushall sync
        for {set i 0} {$i < 50} {incr i} {
            r set key:$i x
        }
        set before [info_field lazyfreed_objects memory]
        r flushall async
        wait_for {[info_field lazyfreed_objects memory] >= $before + 50}
        wait_for {[info_field lazyfree_pending_objects memory] == 0}
        r config resetstat
        assert_equal 0 [info_field lazyfreed_objects memory]
        assert_equal 0 [info_field lazyfree_pending_objects memory]
    }
}

with_server {enable-debug-command yes} {
    test "the output of a client that is cut is given back" {keydb} {
        memory_needs_jemalloc
        r debug pause-cron 1
        r rpush list {*}[lrepeat 150 [string repeat x 1000]]
        with_config {client-output-buffer-limit "normal 100000 0 0"} {
            foreach last {0 -1} { # a thread's first client brings what stays
                set before [info_field used_memory]
                set c [connect]
                set id [$c client id]
                $c -send lrange list 0 $last
                if {$last == 0} {
                    $c -read
                    $c -close
                }
                wait_for {[r client list id $id] eq {}}
            }
            wait_for {[info_field used_memory] < $before + 10000}
        }
        r debug pause-cron 0
    }
}
