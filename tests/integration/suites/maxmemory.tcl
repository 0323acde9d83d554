# maxmemory: what goes when memory is short, in which order, and what is refused.

proc used_memory {} {
    return [info_field used_memory memory]
}

# How far used memory may be above the limit: see memory_limit.h.
proc bound {} {
    return [expr {$::settings(threads) * (4096 + 8 * 4096)}]
}

# Lets the server have so many bytes more than it uses now.
proc limit_to {bytes} {
    set limit [expr {[used_memory] + $bytes}]
    r config set maxmemory $limit
    return $limit
}

# Used memory is at the limit, but for what this question itself takes.
proc is_within {limit} {
    return [expr {[used_memory] <= $limit + 16384}]
}

# Sets keys PREFIX:0 ... in pipelines; the rest of the arguments stands behind the value.
proc fill {prefix count value args} {
    set c [connect]
    for {set i 0} {$i < $count} {incr i 100} {
        for {set k $i} {$k < $i + 100} {incr k} {
            $c -send set $prefix:$k $value {*}$args
        }
        for {set k $i} {$k < $i + 100} {incr k} {
            $c -read
        }
    }
    $c -close
}

with_server {} {
    test "the first keys of a database cost little more than others" {keydb} {
        for {set i 0} {$i < 300} {incr i} {
            r set key:$i v
        }
        set before [used_memory]
        r select 9
        for {set i 0} {$i < 300} {incr i} {
            r set key:$i v
        }
        assert_range [expr {[used_memory] - $before}] 10000 100000
    }
}

# A sorted set whose freeing takes the background thread a while, and how many bytes it takes.
proc make_large {} {
    r config set maxmemory 0
    r flushall sync
    set before [used_memory]
    for {set i 0} {$i < 200000} {incr i 10000} {
        r eval {for i = ARGV[1], ARGV[1] + 9999 do redis.call('zadd', KEYS[1], i, 'member:' .. i) end} 1 large $i
    }
    return [expr {[used_memory] - $before}]
}

with_server {} {
    test "where a large value is deleted there is room at once, though it is freed later" {keydb} {
        memory_needs_jemalloc
        set bytes [make_large]
        r config set maxmemory-policy noeviction maxmemory [expr {[used_memory] - $bytes / 2}]
        assert_refused "OOM command not allowed when used memory > 'maxmemory'." r set a 1
        r -send del large
        r -send set a 1
        r -send eval {return redis.call('set', KEYS[1], 1)} 1 b
        assert_equal {1 OK OK} [list [r -read] [r -read] [r -read]]
        wait_for {[info_field lazyfree_pending_objects memory] == 0}
        # And only as much as it took.
        r config set maxmemory [expr {[used_memory] / 2}]
        assert_refused "OOM command not allowed when used memory > 'maxmemory'." r set c 1
    }

    test "what is about to be freed is not evicted once more, from keys that stay" {keydb} {
        memory_needs_jemalloc
        set bytes [make_large]
        r config set maxmemory-policy allkeys-random
        fill key 1000 [string repeat x 100]
        r config resetstat
        set limit [expr {[used_memory] - $bytes / 2}]
        r -send del large
        r -send config set maxmemory $limit
        for {set i 0} {$i < 200} {incr i} {
            r -send set key:$i y
        }
        for {set i 0} {$i < 202} {incr i} {
            r -read
        }
        wait_for {[info_field lazyfree_pending_objects memory] == 0}
        assert_equal 1000 [r dbsize]
        assert_equal 0 [info_field evicted_keys stats]
        assert {[used_memory] < $limit}
    }
}

proc fill_selected {} {
    for {set i 0} {$i < 1000} {incr i} {
        r set key:$i [string repeat x 100]
    }
}

proc count_of {prefix} {
    return [llength [r keys $prefix:*]]
}

with_server {enable-debug-command yes} {
    foreach policy {allkeys-lru allkeys-lfu allkeys-random volatile-lru volatile-lfu volatile-random volatile-ttl
            allkeys-lrm volatile-lrm} {
        test "$policy keeps memory at the limit" {} [string map [list @policy $policy] {
            r flushall sync
            r config resetstat
            r config set maxmemory-policy @policy
            set limit [limit_to 1000000]
            set value [string repeat x 100]
            fill key 20000 $value {*}[expr {[string match volatile-* @policy] ? {ex 1000} : {}}]
            assert_range [used_memory] 0 [expr {$limit + [bound]}]
            assert {[info_field evicted_keys stats] > 8000}
            assert_equal [expr {20000 - [info_field evicted_keys stats]}] [r dbsize]
            r config set maxmemory 0
        }]

        if {![string match volatile-* $policy]} continue
        test "$policy spares keys without a deadline, refuses when only they are left" {} [
            string map [list @policy $policy] {
            r flushall sync
            r config set maxmemory-policy @policy
            fill stays 500 [string repeat x 100]
            fill goes 500 [string repeat x 100] ex 1000
            limit_to 100000
            set refused 0
            for {set i 0} {$i < 3000} {incr i} {
                incr refused [catch {r set more:$i [string repeat x 100]} error]
            }
            assert {$refused > 0}
            assert_match "OOM command not allowed*" $error
            assert_equal 500 [count_of stays]
            assert_equal 0 [count_of goes]
            assert_equal PONG [r ping]
            assert_equal 1 [r del stays:1]
            r config set maxmemory 0
        }]
    }

    test "least recently modified: reads are no use of a key" {keydb} {
        r flushall sync
        r config set maxmemory-policy allkeys-lrm
        foreach key {read list written} {
            r rpush $key a
            r restore idle:$key 0 [r dump $key] idletime 1000
            assert_range [r object idletime idle:$key] 1000 1010
        }
        assert_equal a [r lindex idle:read 0]
        assert_equal 1 [r touch idle:read]
        r rpush idle:list b
        r set idle:written c
        assert_range [r object idletime idle:read] 1000 1010
        assert_range [r object idletime idle:list] 0 10
        assert_range [r object idletime idle:written] 0 10
        r config set maxmemory-policy allkeys-lru
        assert_equal a [r lindex idle:read 0]
        assert_range [r object idletime idle:read] 0 10
    }

    test "noeviction refuses what needs memory, and nothing else" {} {
        r flushall sync
        r config set maxmemory-policy noeviction
        fill key 100 x
        r config set maxmemory 1
        assert_refused "OOM command not allowed when used memory > 'maxmemory'." r set key:1 y
        assert_equal x [r get key:1]
        assert_equal 100 [r dbsize]
        assert_equal 1 [r del key:1]
        r config set maxmemory 0
        assert_equal OK [r set key:1 y]
    }

    test "the keys that were not used for long go first" {slow} {
        r flushall sync
        r config set maxmemory-policy allkeys-lru
        r config set maxmemory-samples 10
        fill key 2000 [string repeat x 100]
        pause 2100
        for {set i 0} {$i < 2000} {incr i 2} {
            r get key:$i
        }
        limit_to 0
        fill more 600 [string repeat x 100]
        set even 0
        foreach key [r keys key:*] {
            incr even [expr {[lindex [split $key :] 1] % 2 == 0}]
        }
        assert_range $even 960 1000
        assert_range [count_of key] 1200 1700
        r config set maxmemory 0
        r config set maxmemory-samples 5
    }

    test "the keys that are used often stay" {} {
        r flushall sync
        r config set maxmemory-policy allkeys-lfu
        r config set maxmemory-samples 10
        fill key 2000 [string repeat x 100]
        for {set i 0} {$i < 2000} {incr i 4} {
            for {set k 0} {$k < 12} {incr k} {
                r get key:$i
            }
        }
        limit_to 0
        fill more 600 [string repeat x 100]
        set often 0
        foreach key [r keys key:*] {
            incr often [expr {[lindex [split $key :] 1] % 4 == 0}]
        }
        assert_range $often 480 500
        r config set maxmemory 0
        r config set maxmemory-samples 5
    }

    test "volatile-ttl takes those that have the shortest time to live" {keydb} {
        r flushall sync
        r config set maxmemory-policy volatile-ttl
        set c [connect]
        for {set i 0} {$i < 3000} {incr i} {
            $c -send set key:$i [string repeat x 100] ex [expr {1000 + 10 * $i}]
        }
        for {set i 0} {$i < 3000} {incr i} {
            $c -read
        }
        # Prolonged ones do not go, although they were among the first.
        for {set i 0} {$i < 100} {incr i} {
            r expire key:$i 100000
        }
        limit_to 0
        fill more 1000 [string repeat x 100] ex 50000
        set left [lsort -integer [lmap key [r keys key:*] {lindex [split $key :] 1}]]
        assert_equal 100 [llength [lsearch -all -integer -inline -not -regexp $left {^\d\d\d+$}]]
        # But for the choice among a part of the stripes the rest is the tail.
        set first [lindex $left 100]
        assert_range [expr {3000 - $first - ([llength $left] - 100)}] 0 60
        r config set maxmemory 0
    }

    test "keys of all databases go" {} {
        r flushall sync
        r config set maxmemory-policy allkeys-random
        foreach db {0 3 9} {
            r select $db
            fill_selected
        }
        r select 0
        set limit [limit_to -150000]
        wait_for {[is_within $limit]}
        foreach db {0 3 9} {
            r select $db
            assert_range [r dbsize] 300 999
        }
        r select 0
        r config set maxmemory 0
    }

    test "a limit below what is used is reached without any command" {} {
        r flushall sync
        r config set maxmemory-policy allkeys-lru
        fill key 5000 [string repeat x 100]
        set limit [limit_to -300000]
        wait_for {[is_within $limit]}
        assert_range [r dbsize] 1000 4000
        r config set maxmemory 0
    }

    test "transactions: one look before EXEC, none inside" {} {
        r flushall sync
        r config set maxmemory-policy noeviction
        set other [connect]
        r multi
        r set a 1
        $other config set maxmemory 1
        assert_error "EXECABORT*OOM*" {r exec}
        assert_refused "OOM command not allowed when used memory > 'maxmemory'." r set a 1
        r multi
        assert_refused "OOM command not allowed when used memory > 'maxmemory'." r set a 1
        assert_error "EXECABORT*" {r exec}
        r config set maxmemory 0
        r config set maxmemory-policy allkeys-lru
        fill key 300 [string repeat x 100]
        r multi
        r config set maxmemory 1
        r get key:1
        r dbsize
        set replies [r exec]
        assert_equal 300 [lindex $replies 2]
        wait_for {[r dbsize] == 0}
        r config set maxmemory 0
    }

    test "what only reads is queued and runs also above the limit" {keydb} {
        r flushall sync
        r config set maxmemory-policy noeviction
        r set k v
        r config set maxmemory 1
        r multi
        assert_reply {status QUEUED} r get k
        assert_reply {status QUEUED} r del k
        assert_reply {status QUEUED} r exists k
        assert_equal {v 1 0} [r exec]
        r multi
        r get k
        assert_refused "OOM command not allowed when used memory > 'maxmemory'." r rpush l a
        assert_error "EXECABORT*" {r exec}
        r config set maxmemory 0
    }

    test "evictions are journaled, each by itself" {keydb} {
        r flushall sync
        r config set maxmemory-policy allkeys-random
        foreach {lazy command} {no DEL yes UNLINK} {
            r config set lazyfree-lazy-eviction $lazy
            fill key 300 [string repeat x 100]
            r debug journal start
            r config set maxmemory 1
            wait_for {[r dbsize] == 0}
            r config set maxmemory 0
            set stream [r debug journal read]
            r debug journal stop
            assert_equal 300 [regexp -all $command $stream]
            assert {![regexp MULTI $stream]}
        }
        r config set lazyfree-lazy-eviction no
    }

    test "watched keys that are evicted spoil the transaction" {} {
        r flushall sync
        r config set maxmemory-policy allkeys-random
        r set key v
        set c [connect]
        $c watch key
        r config set maxmemory 1
        wait_for {[r dbsize] == 0}
        r config set maxmemory 0
        $c multi
        $c ping
        assert_equal {} [$c exec]
    }

    test "nothing is evicted in a pause" {} {
        r flushall sync
        r config set maxmemory-policy allkeys-random
        fill key 200 x
        r client pause 100000 write
        r config set maxmemory 1
        r get key:1
        assert_equal 200 [r dbsize]
        r client unpause
        wait_for {[r dbsize] == 0}
        r config set maxmemory 0
    }

    test "OBJECT FREQ and IDLETIME belong to policies" {} {
        r flushall sync
        r config set maxmemory-policy allkeys-lfu
        r set key v
        assert_range [r object freq key] 5 6
        assert_error "*An LFU maxmemory policy is selected*" {r object idletime key}
        r config set maxmemory-policy allkeys-lru
        r set key v
        assert_range [r object idletime key] 0 1
        assert_error "*An LFU maxmemory policy is not selected*" {r object freq key}
    }
}
