# Whatever the server has been through: used memory is what is allocated, within the little that threads keep to
# themselves, and when keys and clients have gone, both are where they were.

proc endures_difference {} {
    set fields [info_fields memory]
    return [expr {[dict get $fields used_memory] - [dict get $fields allocator_allocated]}]
}

# What each of some 16 threads has not published yet and what the allocator keeps for it, and some per cent.
proc assert_honest {} {
    memory_needs_jemalloc
    wait_for {abs([endures_difference]) < 2000000 + [info_field allocator_allocated] / 50}
}

proc endure_strings {c seed} {
    set sizes {10 200 1000 1100 5000 40000 300000}
    for {set i 0} {$i < 400} {incr i} {
        $c -send set string:[expr {($i * 7 + $seed) % 300}] [string repeat x [lindex $sizes [expr {$i % 7}]]]
        $c -send append grown:[expr {$i % 20}] [string repeat y 3000]
        $c -send get string:[expr {$i % 300}]
    }
    for {set i 0} {$i < 1200} {incr i} {
        $c -read
    }
}

proc endure_types {c seed} {
    for {set i 0} {$i < 300} {incr i} {
        $c -send rpush list:[expr {$i % 10}] [string repeat $i 100] $seed
        $c -send hset hash:[expr {$i % 10}] f$i [string repeat v 300]
        $c -send zadd zset:[expr {$i % 10}] $i m$seed.$i
        $c -send xadd stream:[expr {$i % 3}] maxlen 500 * f [string repeat z 100]
        $c -send set soon:$i x px 50
    }
    for {set i 0} {$i < 1500} {incr i} {
        $c -read
    }
}

proc endure_scripts {c} {
    for {set i 0} {$i < 30} {incr i} {
        $c eval {
            local t = {}
            for i = 1, 200 do t[i] = redis.call('set', 'script:' .. i, string.rep(ARGV[1], 500)) end
            return redis.call('incr', 'scripts')
        } 0 $i
        $c multi
        $c set in:$i [string repeat a 2000]
        $c eval {return redis.call('append', KEYS[1], ARGV[1])} 1 in:$i [string repeat b 2000]
        $c publish news [string repeat c 2000]
        $c exec
    }
}

proc endure_waiting {c} {
    set waiter [connect]
    for {set i 0} {$i < 50} {incr i} {
        $waiter -send blpop wait:$i 0
        wait_for {[info_field blocked_clients] == 1} ;# else what is pushed may be evicted before
        $c rpush wait:$i [string repeat w 5000]
        $waiter -read
    }
    $waiter -close
}

# One time of everything, with listeners; clients come and go.
proc endure seed {
    set listeners {}
    foreach mode {{} bcast} {
        for {set i 0} {$i < 4} {incr i} {
            set c [connect -proto 3]
            $c client tracking on {*}$mode
            for {set k 0} {$k < 100} {incr k} {
                $c get string:$k
            }
            lappend listeners $c
        }
    }
    for {set i 0} {$i < 4} {incr i} {
        set c [connect -proto 3]
        $c subscribe news
        $c psubscribe __key*__:*
        lappend listeners $c
    }
    set clients [lmap i {0 1 2 3 4 5} {connect}]
    foreach c $clients {
        endure_strings $c $seed
        endure_types $c $seed
        endure_scripts $c
        endure_waiting $c
        incr seed
    }
    foreach c [list {*}$clients {*}$listeners] {
        $c -close
    }
}

proc snapshots_rest {} {
    wait_for {[info_field rdb_bgsave_in_progress] == 0 && [info_field aof_rewrite_in_progress] == 0 &&
        [info_field aof_rewrite_scheduled] == 0} 60000
}

# Keys, clients and what was kept for them have gone.
proc settled {} {
    r flushall sync
    r script flush
    snapshots_rest
    wait_for {[info_field connected_clients] == 1 && [info_field lazyfree_pending_objects] == 0}
}

foreach threads {1 4} {
    with_server [list server-threads $threads min-clients-per-thread 1 appendonly yes appendfsync everysec \
        maxmemory-policy allkeys-lru notify-keyspace-events KEA repl-backlog-size 64kb \
        auto-aof-rewrite-percentage 0 client-output-buffer-limit {pubsub 1mb 0 0}] \
        [string map [list @threads $threads] {
        test "used memory is what is allocated, and comes back: @threads workers" {keydb} {
            endure 0 ;# what is made once is made: states for scripts, rooms of the workers
            settled
            assert_honest
            set before [info_field used_memory]
            set allocated [info_field allocator_allocated]
            for {set round 1} {$round <= 4} {incr round} {
                endure $round
                assert_honest
                switch $round {
                    1 {
                        # Listeners that do not read have at most 1 MB each, so there is room for keys beside them.
                        wait_for {[info_field connected_clients] == 1}
                        r config set maxmemory [expr {[info_field used_memory] * 2 / 3}]
                    }
                    2 { r bgrewriteaof }
                    3 { r bgsave schedule }
                }
                assert {$round == 1 || [info_field evicted_keys] > 0}
            }
            r config set maxmemory 0
            settled
            assert_honest
            wait_for {[info_field used_memory] < $before + 1500000}
            wait_for {[info_field allocator_allocated] < $allocated + 2500000}
        }
    }]
}
