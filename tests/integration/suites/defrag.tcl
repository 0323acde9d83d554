# activedefrag: memory full of holes is put together while the server works, and nobody notices but the allocator.

proc has_jemalloc {} {
    return [string match jemalloc-5.* [info_field mem_allocator memory]]
}

# Deletes all but about one in `keep` of key:0 ..., chosen at random.
proc thin_out {count keep} {
    set c [connect]
    expr {srand(4711)}
    set pending 0
    for {set i 0} {$i < $count} {} {
        set names {}
        for {} {[llength $names] < 200 && $i < $count} {incr i} {
            if {int(rand() * $keep) != 0} {
                lappend names key:$i
            }
        }
        $c -send del {*}$names
        if {[incr pending] == 50 || $i == $count} {
            for {} {$pending > 0} {incr pending -1} {
                $c -read
            }
        }
    }
    $c -close
}

proc frag_percent {} {
    return [expr {([info_field allocator_frag_ratio memory] - 1) * 100}]
}

set counters {active_defrag_hits active_defrag_misses active_defrag_key_hits active_defrag_key_misses
    total_active_defrag_time}

with_server {enable-debug-command yes} {
    test "activedefrag wants an allocator that knows its holes" {keydb} {
        if {[has_jemalloc]} {
            skip "built with jemalloc"
        }
        assert_refused "ERR CONFIG SET failed (possibly related to argument 'activedefrag') - Active defragmentation\
            cannot be enabled: the server's memory allocator is not a jemalloc that tells where its holes are" \
            r config set activedefrag yes
        assert_equal {activedefrag no} [r config get activedefrag]
        set id [server_launch [list --port [free_port] --activedefrag yes {*}[thread_args]]]
        assert_equal 1 [process_wait $id]
        assert_match "*Active defragmentation cannot be enabled*" [process_log $id]
    }

    test "holes that keys left are put together" {keydb} {
        if {![has_jemalloc]} {
            skip "built without jemalloc"
        }
        r debug populate 300000 key 100
        r set long [string repeat x 5000]
        r setex soon 100000 value
        thin_out 300000 6
        assert {[frag_percent] > 150}
        assert_match "*Fragmentation*CONFIG SET activedefrag yes*" [r memory doctor]
        set digest [r debug digest]
        set used [info_field used_memory memory]
        foreach name $::counters {
            assert_equal 0 [info_field $name stats]
        }
        assert_equal 0 [info_field active_defrag_running memory]
        r config set active-defrag-ignore-bytes 1mb active-defrag-threshold-lower 10 active-defrag-cycle-max 60 \
            activedefrag yes
        wait_for {[frag_percent] < 15} 30000
        wait_for {[info_field active_defrag_running memory] == 0} 30000
        assert_equal $digest [r debug digest]
        assert {[r dbsize] > 30000}
        assert {[info_field active_defrag_hits stats] > 20000}
        assert {[info_field active_defrag_key_hits stats] > 20000}
        assert {[info_field total_active_defrag_time stats] > 0}
        assert_equal 0 [info_field current_active_defrag_time stats]
        assert_range [info_field used_memory memory] 0 [expr {$used * 1.05}]
        assert {![string match "*Fragmentation*" [r memory doctor]]}
        r config resetstat
        foreach name $::counters {
            assert_equal 0 [info_field $name stats]
        }
        r config set activedefrag no
    }

    test "the thresholds say whether, and how hard" {keydb} {
        if {![has_jemalloc]} {
            skip "built without jemalloc"
        }
        r flushall sync
        r debug populate 50000 key 100
        thin_out 50000 6
        r debug pause-cron 1 ;# only look
        r config resetstat
        r config set active-defrag-cycle-min 7 active-defrag-cycle-max 77 active-defrag-ignore-bytes 1mb \
            activedefrag yes
        wait_for {[info_field active_defrag_running memory] == 77}
        assert {[info_field current_active_defrag_time stats] <= [info_field total_active_defrag_time stats]}
        wait_for {[info_field current_active_defrag_time stats] > 0}
        # Few bytes do not stop it.
        r config set active-defrag-ignore-bytes 1gb active-defrag-threshold-upper 1000
        wait_for {[info_field active_defrag_running memory] < 77}
        assert_range [info_field active_defrag_running memory] 8 76
        r config set active-defrag-threshold-lower 1000
        wait_for {[info_field active_defrag_running memory] == 0}
        assert_equal 0 [info_field current_active_defrag_time stats]
        assert {[info_field total_active_defrag_time stats] > 0}
        # But with few it does not begin: it looks once a second.
        r config set active-defrag-threshold-lower 10
        set began [info_field uptime_in_seconds server]
        wait_for {[info_field uptime_in_seconds server] > $began + 2}
        assert_equal 0 [info_field active_defrag_running memory]
        r config set active-defrag-ignore-bytes 1mb
        wait_for {[info_field active_defrag_running memory] != 0}
        r config set active-defrag-threshold-lower 0 active-defrag-threshold-upper 0
        wait_for {[info_field active_defrag_running memory] == 77}
        r config set activedefrag no
        wait_for {[info_field active_defrag_running memory] == 0}
        assert_equal 0 [info_field active_defrag_hits stats]
        r debug pause-cron 0
    }
}

# Scripts stay where they are: the holes that keys left between them are nothing that walking over keys can close.
with_server {} {
    test "it ends when the holes are not those of keys, and begins again when there are more" {keydb} {
        if {![has_jemalloc]} {
            skip "built without jemalloc"
        }
        set filler "--[string repeat x 400]\nreturn "
        for {set i 0} {$i < 20000} {incr i 100} {
            for {set k $i} {$k < $i + 100} {incr k} {
                r -send script load $filler$k
                r -send set between:$k $filler$k
            }
            for {set k 0} {$k < 200} {incr k} {
                r -read
            }
        }
        r flushall sync
        for {set i 0} {$i < 2000} {incr i} {
            r set key:$i $i
        }
        r config set active-defrag-ignore-bytes 1mb active-defrag-threshold-lower 10 active-defrag-cycle-max 60 \
            activedefrag yes
        wait_for {[info_field active_defrag_running memory] != 0}
        wait_for {[info_field active_defrag_running memory] == 0} 30000
        assert {[frag_percent] > 10}
        assert {[info_field allocator_frag_bytes memory] > 1048576}
        assert {[info_field active_defrag_misses stats] > 0}
        for {set i 0} {$i < 100000} {incr i 1000} {
            for {set k $i} {$k < $i + 1000} {incr k} {
                r -send set key:$k [string repeat x 100]
            }
            for {set k 0} {$k < 1000} {incr k} {
                r -read
            }
        }
        set before [info_field active_defrag_hits stats] ;# it may begin as soon as there are holes
        thin_out 100000 6
        wait_for {[info_field active_defrag_hits stats] > $before + 5000} 30000
        wait_for {[info_field active_defrag_running memory] == 0} 30000
        r config set activedefrag no
    }
}

# Everything moves, all the time; also where the sanitizers bring their own allocator.
with_server {enable-debug-command yes} {
    proc defrag_everything {} {
        r debug defrag-all 1
        r config set active-defrag-cycle-max 90 activedefrag yes
        wait_for {[info_field active_defrag_running memory] == 90}
    }

    proc defrag_ends {} {
        r config set activedefrag no
        wait_for {[info_field active_defrag_running memory] == 0}
        r debug defrag-all 0
    }

    test "all that is stored survives being moved" {keydb} {
        for {set db 0} {$db < 3} {incr db} {
            r select $db
            for {set i 0} {$i < 700} {incr i} {
                r -send set key:$i [string repeat $i [expr {$i % 40}]]
                r -send set number:$i $i
                r -send set expiring:$i $i ex [expr {100000 + $i}]
            }
            for {set i 0} {$i < 2100} {incr i} {
                r -read
            }
            r set long [string repeat x 3000]
            r set longest [pattern_bytes 200000]
            r set [string repeat k 400] longkey
        }
        r select 0
        set digest [r debug digest]
        defrag_everything
        set before [info_field active_defrag_hits stats]
        wait_for {[info_field active_defrag_hits stats] > $before + 30000} 60000
        assert_equal $digest [r debug digest]
        assert_equal [pattern_bytes 200000] [r get longest]
        defrag_ends
        assert_equal $digest [r debug digest]
    }

    test "clients at work do not notice" {keydb} {
        r flushall sync
        set clients {}
        for {set i 0} {$i < 8} {incr i} {
            set c [connect]
            $c ping
            lappend clients $c
        }
        set long [pattern_bytes 20000]
        r set shared:long $long
        defrag_everything
        set before [info_field active_defrag_key_hits stats]
        set rounds 0
        while {[info_field active_defrag_key_hits stats] < $before + 20000 || $rounds < 20} {
            incr rounds
            set who 0
            foreach c $clients {
                incr who
                for {set k 0} {$k < 10} {incr k} {
                    $c -send incr counter:$k
                    $c -send append log:$k [format {%d.} $who]
                    set value [string repeat $who [expr {$k * 30}]]
                    $c -send set own:$who:$rounds:$k $value px [expr {$k % 3 ? 600000 : 5}]
                    $c -send get own:$who:$rounds:1
                    $c -send set long:$who:$k [string repeat $rounds 900]
                    $c -send get shared:long
                    $c -send del own:$who:[expr {$rounds - 1}]:$k
                }
            }
            set who 0
            foreach c $clients {
                incr who
                for {set k 0} {$k < 10} {incr k} {
                    $c -read
                    $c -read
                    $c -read
                    assert_equal [expr {$k == 0 ? {} : [string repeat $who 30]}] [$c -read]
                    $c -read
                    assert {[$c -read] eq $long}
                    $c -read
                }
            }
        }
        for {set k 0} {$k < 10} {incr k} {
            assert_equal [expr {8 * $rounds}] [r get counter:$k]
            assert_equal [expr {16 * $rounds}] [r strlen log:$k]
            for {set who 1} {$who <= 8} {incr who} {
                assert_equal [string repeat $rounds 900] [r get long:$who:$k]
            }
        }
        defrag_ends
    }

    test "values of every type survive being moved, and being changed meanwhile" {keydb} {
        r config set list-compress-depth 1 list-max-listpack-size 20
        for {set i 0} {$i < 2000} {incr i} {
            r -send rpush list [string repeat element:$i [expr {$i % 40 == 0 ? 500 : 1}]]
            r -send rpush small:[expr {$i % 200}] $i
            r -send hset hash field:$i $i
            r -send hset fields:[expr {$i % 200}] $i $i
            r -send sadd set member:$i
            r -send sadd numbers $i
            r -send zadd zset $i member:$i
            r -send rpush ends $i
        }
        for {set i 0} {$i < 16000} {incr i} {
            r -read
        }
        set elements [r lrange ends 0 -1]
        set digest [r debug digest-value list small:7 hash fields:7 set numbers zset]
        defrag_everything
        set before [info_field active_defrag_hits stats]
        set rounds 0
        while {[info_field active_defrag_hits stats] < $before + 50000 || $rounds < 200} {
            incr rounds
            foreach words {{lpush small:1 x} {rpop small:1} {lpop ends} {linsert ends before 1000 y} {lrem ends 1 y}
                           {hset hash extra 1} {hdel hash extra} {sadd set extra} {srem set extra} {lset list 777 x}
                           {lset list 777 element:777} {lrange list 770 790} {zadd zset 5 extra} {zrem zset extra}
                           {rpoplpush small:2 small:2} {lmove ends ends left right}} {
                r -send {*}$words
            }
            set elements [lrange [concat $elements [lindex $elements 1]] 2 end]
            r -send rpush ends n$rounds
            lappend elements n$rounds
            for {set i 0} {$i < 17} {incr i} {
                r -read
            }
        }
        assert_equal $elements [r lrange ends 0 -1]
        defrag_ends
        assert_equal $elements [r lrange ends 0 -1]
        assert_equal $digest [r debug digest-value list small:7 hash fields:7 set numbers zset]
    }

    test "FLUSHALL, SWAPDB and transactions in the midst of it" {keydb} {
        defrag_everything
        for {set round 0} {$round < 30} {incr round} {
            r debug populate 2000 key 50
            r select 1
            r debug populate 500 other 2000
            r swapdb 0 1
            assert_equal 2000 [r dbsize]
            r multi
            r set key:1 changed
            r get key:1
            assert_equal {OK changed} [r exec]
            r flushall sync
            r select 0
        }
        defrag_ends
        assert_equal 0 [r dbsize]
    }

    test "a busy stripe holds up neither the walk nor its clients" {keydb} {
        r set held value
        r debug populate 5000 key 50
        defrag_everything
        set c [connect]
        $c -send debug hold held 100
        set before [info_field active_defrag_key_hits stats]
        wait_for {[info_field active_defrag_key_hits stats] > $before + 20000} 60000
        r debug release hold
        $c -read
        assert_equal value [r get held]
        defrag_ends
    }
}
