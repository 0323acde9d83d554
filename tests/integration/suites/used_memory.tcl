# Used memory is one number with one meaning: what is allocated, whichever thread does it. maxmemory looks at that
# number less what is not the data's and soon gone (server/memory/memory_limit.h), and everybody asks the same question.

# Off by what threads keep to themselves (base/mem.h), by what a few commands take while we ask, and by what jemalloc
# keeps in each thread's cache: that is free, but its statistics take it for allocated.
proc difference_allowed {} {
    return [expr {($::settings(threads) + 8) * (65536 + 262144) + 262144}]
}

proc used_less_allocated {} {
    set fields [info_fields memory]
    return [expr {[dict get $fields used_memory] - [dict get $fields allocator_allocated]}]
}

proc wait_for_honest_count {} {
    memory_needs_jemalloc
    if {![wait_until {abs([used_less_allocated]) < [difference_allowed]} 10000]} {
        fail "used memory is [used_less_allocated] bytes more than what is allocated, [difference_allowed] are allowed"
    }
}

proc counted_memory {} {
    set fields [info_fields memory]
    return [expr {[dict get $fields used_memory] - [dict get $fields mem_not_counted_for_evict]}]
}

# Sets PREFIX:0 to PREFIX:`keys` over and over, in pipelines; returns the replies that were errors.
proc overwrite {prefix keys count value} {
    set c [connect]
    set refused 0
    for {set i 0} {$i < $count} {incr i 100} {
        for {set k $i} {$k < $i + 100} {incr k} {
            $c -send set $prefix:[expr {$k % $keys}] $value
        }
        for {set k $i} {$k < $i + 100} {incr k} {
            incr refused [catch {$c -read}]
        }
    }
    $c -close
    return $refused
}

# With a short backlog its thread frees nearly every block of the journal.
with_server {appendonly yes appendfsync no repl-backlog-size 16kb} {
    test "what the append only file's thread frees is not used any more" {keydb} {
        set before [info_field used_memory]
        assert_equal 0 [overwrite key 1000 20000 [string repeat x 1000]]
        wait_for {[info_field aof_buffer_length] == 0}
        wait_for_honest_count
        r flushall sync
        wait_for_honest_count
        assert_range [expr {[info_field used_memory] - $before}] -1000000 3000000
    }

    test "at maxmemory with the append only file keys are overwritten without end" {keydb} {
        with_config {maxmemory 0 maxmemory-policy allkeys-lru} {
            overwrite key 1000 1000 [string repeat x 1000]
            r config resetstat
            r config set maxmemory [expr {[counted_memory] + 4000000}]
            assert_equal 0 [overwrite key 1000 20000 [string repeat x 1000]]
            assert_equal 1000 [r dbsize]
            assert_equal 0 [info_field evicted_keys]
        }
    }
}

# How far counted memory may be from what it was: what threads keep to themselves, and what commands take for a moment.
proc counted_since before {
    return [expr {[counted_memory] - $before}]
}

proc wait_for_counted {before least most} {
    if {![wait_until {[counted_since $before] >= $least && [counted_since $before] <= $most} 10000]} {
        fail "counted memory has grown by [counted_since $before], not by $least to $most"
    }
}

# A reader that reads nothing keeps all: 10 KiB in the allocator for each value of 8 KiB.
with_server {enable-debug-command yes journal-memory-limit 0 maxmemory-policy noeviction} {
    foreach {name size count most} {short 1000 20000 3e6 middle 4096 8000 3e6 usual 8192 4000 3e6
                                    long 40000 800 3e6 large 300000 100 9e6} {
        test "what the journal keeps of $name values neither evicts nor refuses" {keydb} [
            string map [list @size $size @count $count @most $most] {
            overwrite key 10 10 [string repeat x @size]
            r debug journal start spills
            set before [counted_memory]
            with_config "maxmemory [expr {int([counted_memory] + @most)}]" {
                assert_equal 0 [overwrite key 10 @count [string repeat y @size]]
            }
            wait_for_counted $before -1500000 2000000
            assert_range [expr {[info_field mem_not_counted_for_evict] / 1e6}] 15 50
            r debug journal stop
            wait_for_counted $before -1500000 2000000
            assert_range [info_field mem_not_counted_for_evict] 0 2000000
            r flushall sync
        }]
    }

    test "keys that are renamed, copied, moved or changed stay data, whatever the journal has" {keydb} {
        r debug journal start spills
        set before [counted_memory]
        overwrite key 1000 1000 [string repeat y 8192]
        wait_for_counted $before 9500000 12000000
        for {set i 0} {$i < 1000} {incr i} {
            r -send rename key:$i new:$i
            r -send copy new:$i copy:$i
            r -send copy new:$i more:$i
            r -send move more:$i 1
            r -send del new:$i
            r -send expire copy:$i 1000
        }
        for {set i 0} {$i < 6000} {incr i} {
            r -read
        }
        r swapdb 0 1
        wait_for_counted $before 9500000 12500000
        r select 1
        for {set i 0} {$i < 1000} {incr i} {
            r -send append copy:$i z ;# a copy of its own
        }
        for {set i 0} {$i < 1000} {incr i} {
            r -read
        }
        wait_for_counted $before 19500000 23500000
        r select 0
        r flushdb sync
        wait_for_counted $before 9500000 13500000
        r flushall sync
        wait_for_counted $before -500000 2000000
        assert {[info_field mem_not_counted_for_evict] > 10000000}
        r debug journal stop
        wait_for_counted $before -500000 2000000
        assert_range [info_field mem_not_counted_for_evict] 0 2000000
    }
}

proc send_random {c sizes} {
    set key key:[random_below 40]
    set other key:[random_below 40]
    set value [string repeat v [expr {[lindex $sizes [random_below [llength $sizes]]] + [random_below 100]}]]
    switch [random_below 20] {
        0 { $c -send getset $key $value }
        1 { $c -send append $key [string range $value 0 9000] }
        2 { $c -send setrange $key [random_below 20000] [string range $value 0 5000] }
        3 { $c -send copy $key $other replace }
        4 { $c -send rename $key $other }
        5 { $c -send del $key $other }
        6 { $c -send unlink $key }
        7 { $c -send pexpire $key [expr {1 + [random_below 20]}] }
        8 { $c -send eval {redis.call('set', KEYS[1], ARGV[1]) redis.call('set', KEYS[2], ARGV[1])
                           return redis.call('append', KEYS[1], 'x')} 2 $key $other $value }
        9 { $c -send swapdb 0 1 }
        10 { $c -send move $key 1 }
        11 { $c -send mset $key $value $other $value }
        12 { $c -send {*}[expr {[random_below 10] ? {getdel nothing} : {flushdb async}}] }
        13 { $c -send setbit $key [random_below 100000] 1 }
        14 { $c -send bitop not $key $other }
        15 { $c -send set $key $value px [expr {10 + [random_below 1000]}] get }
        16 - 17 {
            $c -send multi
            $c -send set $key $value
            $c -send {*}[lindex [list [list append $key x] [list set $key $value] [list rename $key $other]] \
                         [random_below 3]]
            $c -send exec
            return 4
        }
        default { $c -send set $key $value }
    }
    return 1
}

proc random_below most {
    return [expr {int(rand() * $most)}]
}

# What each of the two counts changes with each command; in the end nothing may be left of either. The journal has some
# 90 MB. What the threads keep for their next allocations, up to 1.5 MB each, is counted, too.
foreach {name options} {"" {} " and with the append only file" {appendonly yes appendfsync no}} {
    with_server [list enable-debug-command yes journal-memory-limit 0 repl-backlog-size 16kb {*}$options] {
        test "after random changes the journal has what it had before$name" {keydb} {
            set seed [clock microseconds]
            expr {srand($seed)}
            set clients [list [connect] [connect] [connect]]
            r set k v
            set before [counted_memory]
            set aside [info_field mem_not_counted_for_evict]
            foreach {limit policy} {0 noeviction 6e6 allkeys-lru} {
                r config set maxmemory-policy $policy
                r debug journal start spills
                if {$limit != 0} {
                    r config set maxmemory [expr {int([counted_memory] + $limit)}]
                }
                for {set i 0} {$i < 60} {incr i} {
                    foreach c $clients {
                        set $c 0
                        for {set k 0} {$k < 10} {incr k} {
                            incr $c [send_random $c {4000 4090 8192 32700 40000 262000 300000}]
                        }
                    }
                    foreach c $clients {
                        for {} {[set $c] > 0} {incr $c -1} {
                            catch {$c -read} answer
                            if {[string match OOM* $answer]} {
                                fail "seed $seed: $answer"
                            }
                        }
                    }
                }
                r config set maxmemory 0
                r flushall sync
                # all that is left is the journal's
                wait_for_counted $before -4000000 8000000
                assert {[info_field mem_not_counted_for_evict] - $aside > 10000000}
                r debug journal stop
                # the append only file has its buffer, and the last block
                wait_for {[info_field mem_not_counted_for_evict] - $aside < 8000000}
                wait_for_counted $before -4000000 8000000
            }
            foreach c $clients {
                $c -close
            }
        }
    }
}

# So full that each write has to evict first.
proc fill_to_the_brim {} {
    overwrite key 3000 3000 [string repeat x 1000]
    r config set maxmemory [expr {[counted_memory] - 500000}]
}

set runs {"without the append only file" no "with the append only file" yes}
foreach {name aof} $runs {
    with_server [list appendonly $aof appendfsync no maxmemory-policy allkeys-lru] [string map [list @name $name] {
        test "at the limit a script may write what other commands may, @name" {} {
            fill_to_the_brim
            for {set i 0} {$i < 500} {incr i} {
                assert_equal OK [r eval {return redis.call('set', KEYS[1], ARGV[1])} 1 key:$i [string repeat y 1000]]
            }
            assert {[info_field evicted_keys] > 0}
            assert {[r dbsize] > 2000}
            r config set maxmemory 0
        }

        test "at the limit a transaction with a script runs as a whole, @name" {} {
            fill_to_the_brim
            for {set i 0} {$i < 200} {incr i} {
                set value [string repeat $i 3000]
                r multi
                r set first:$i $value
                r eval {return redis.call('set', KEYS[1], ARGV[1])} 1 second:$i $value
                r set third:$i $value
                assert_equal {OK OK OK} [r exec]
            }
            r config set maxmemory 0
        }
    }]
}

with_server {maxmemory-policy noeviction} {
    test "what finds no room before it begins is refused: scripts, also inside of EXEC" {} {
        r set key value
        r multi
        assert_equal QUEUED [r eval {return redis.call('set', KEYS[1], 1)} 1 key]
        assert_equal QUEUED [r get key]
        set other [connect]
        $other config set maxmemory 1
        assert_error "OOM*" {$other eval {return redis.call('set', KEYS[1], 1)} 1 key}
        assert_equal value [$other eval {return redis.call('get', KEYS[1])} 1 key]
        assert_equal 1 [$other eval {redis.call('del', KEYS[1]) return redis.call('incr', KEYS[1])} 1 key]
        assert_match {{OOM*} 1} [r exec]
        $other config set maxmemory 0
        $other -close
    }
}

# What eviction tells clients must not be a reason to evict.
proc read_all_names {c} {
    assert_equal 3000 [$c eval {
        for i = 1, 3000 do redis.call('exists', string.rep('n', 1000) .. i) end
        return 3000
    } 0]
}

proc fill_names {} {
    r flushall sync
    r eval {for i = 1, 3000 do redis.call('set', string.rep('n', 1000) .. i, 'v') end} 0
    assert_equal 3000 [r dbsize]
    r config resetstat
}

# Takes `bytes` of memory away and returns how many keys have gone for that, once no more go.
proc evicted_for bytes {
    wait_for {[counted_memory] > $bytes + 2000000} ;# all that was told before has been delivered
    set used [expr {[counted_memory] - $bytes}]
    r config set maxmemory $used
    wait_for {[counted_memory] <= $used + 16384}
    for {set i 0} {$i < 300} {incr i} {
        r ping
    }
    set evicted [info_field evicted_keys]
    r config set maxmemory 0
    return $evicted
}

foreach {file options} {
    {} {} {, with output that waits for the disk} {appendonly yes appendfsync always}
} {
# Over TLS each session that has to send takes buffers of its own, which is no feedback.
with_server [list .tls 0 maxmemory-policy allkeys-lru {*}$options] {
    foreach {name tracking} {"" {} " that have another told" redirect " in broadcast mode" bcast} {
        test "clients that track$name do not drive out more keys$file" {} [string map [list @tracking $tracking] {
            fill_names
            set alone [evicted_for 400000]
            assert_range $alone 100 600
            fill_names
            set clients {}
            set listener [connect -proto 3]
            set listener_id [$listener client id]
            for {set i 0} {$i < 30} {incr i} {
                set c [connect -proto 3]
                switch "@tracking" {
                    redirect { $c client tracking on redirect $listener_id }
                    bcast { $c client tracking on bcast }
                    default { $c client tracking on }
                }
                read_all_names $c
                lappend clients $c
            }
            assert_range [evicted_for 400000] 1 [expr {$alone * 3 / 2}]
            foreach c [list {*}$clients $listener] {
                $c -close
            }
        }]
    }

    test "nor do those who hear of keys that are evicted$file" {} {
        fill_names
        set alone [evicted_for 400000]
        fill_names
        set clients {}
        for {set i 0} {$i < 30} {incr i} {
            set c [connect -proto 3]
            $c subscribe __keyevent@0__:evicted
            lappend clients $c
        }
        with_config {notify-keyspace-events Ee} {
            assert_range [evicted_for 400000] 1 [expr {$alone * 3 / 2}]
        }
        foreach c $clients {
            $c -close
        }
    }
}
}
