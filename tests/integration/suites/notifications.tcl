# Keyspace events: notify-keyspace-events, which events come with which change, in what order, for whom.

proc listener {{pattern __key*__*}} {
    set c [connect]
    $c psubscribe $pattern
    set ::events_half($c) {}
    return $c
}

# What came up to now, each as {db key event}; of both forms the one by key, and the other is checked to follow. What
# other threads tell of other keys may come between the two, also our mark for the end.
proc events c {
    r publish __keyend__ end
    set found {}
    while 1 {
        lassign [$c -read] kind pattern channel message
        if {$channel eq "__keyend__"} {
            return $found
        }
        if {[regexp {^__keyspace@(\d+)__:(.*)$} $channel all db key]} {
            lappend found [list $db $key $message]
            lappend ::events_half($c) [list $db $key $message]
        } else {
            assert [regexp {^__keyevent@(\d+)__:(.*)$} $channel all db event]
            set half [lsearch -exact $::events_half($c) [list $db $message $event]]
            assert {$half >= 0} "$channel of $message"
            set ::events_half($c) [lreplace $::events_half($c) $half $half]
        }
    }
}

# The events of some commands in database 0, as "key event" ...
proc events_of {c script} {
    events $c
    uplevel 1 $script
    return [join [lmap event [events $c] {lassign $event db key name; list $key $name}]]
}

with_server {} {
    test "off by default; the letters and how they are told" {} {
        assert_equal {notify-keyspace-events {}} [r config get notify-keyspace-events]
        foreach {given told} {
            KEA AKE AKE AKE KE KE Kx xK E$ {$E} Knm nKm gE gE g$lshzxetd A g$lshzxetd A KEAn AKE KEn nKE} {
            r config set notify-keyspace-events $given
            assert_equal [list notify-keyspace-events $told] [r config get notify-keyspace-events]
        }
        assert_error "*Invalid event class character*" {r config set notify-keyspace-events KEAy}
        r config set notify-keyspace-events {}
    }

    test "nothing comes unless a class and K or E are wanted" {} {
        foreach classes {{} A KE K E Kl} {
            r config set notify-keyspace-events $classes
            set c [listener]
            r set a 1
            r publish __keyend__ end
            assert_equal __keyend__ [lindex [$c -read] 2] "with $classes"
        }
    }

    test "K is by key, E by event" {} {
        r config set notify-keyspace-events K$
        set c [listener]
        r set a 1
        r lpush b 1
        r config set notify-keyspace-events E$
        r select 3
        r set c 1
        assert_equal {pmessage __key*__* __keyspace@0__:a set} [$c -read]
        assert_equal {pmessage __key*__* __keyevent@3__:set c} [$c -read]
    }

    test "strings and keys" {} {
        r config set notify-keyspace-events AKE
        set c [listener]
        assert_equal {a set a append a setrange a incrby} \
            [events_of $c {r set a 1; r append a 2; r setrange a 0 3; r incr a; r get a; r get nosuch}]
        assert_equal {a set a expire a incrbyfloat a set a expire a del} \
            [events_of $c {r set a 1 ex 100; r incrbyfloat a 2; r setex a 100 1; r getdel a; r getdel a}]
        assert_equal {a set b set b expire b persist a rename_from b rename_to b del} \
            [events_of $c {r mset a 1 b 2; r expire b 100; r persist b; r rename a b; r del a b}]
        assert_equal {a set a del} [events_of $c {r set a 1; r expire a -1}]
        assert_equal {a set b copy_to a del b del} [events_of $c {r set a 1; r copy a b; r unlink a b}]
        assert_equal {a setbit a setbit b set} \
            [events_of $c {r setbit a 1 1; r bitfield a set u8 0 9; r bitop not b a}]
        r select 1
        r set m 1
        events $c
        r move m 0
        assert_equal {{1 m move_from} {0 m move_to}} [events $c]
    }

    test "lists, sets, hashes, sorted sets" {} {
        r config set notify-keyspace-events AKE
        set c [listener]
        assert_equal {l rpush l lpush l lset l linsert l lrem l ltrim l lpop l rpop l del} [events_of $c {
            r rpush l a b c; r lpush l x; r lset l 0 y; r linsert l before a z; r lrem l 1 b; r ltrim l 0 1; r lpop l
            r rpop l
        }]
        assert_equal {l rpush m lpush l rpop l del m rpush m lpush m rpop} \
            [events_of $c {r rpush l a; r lmove l m right left; r rpush m b; r lmove m m right left}]
        assert_equal {s sadd s srem t sadd u sinterstore s spop s del} \
            [events_of $c {r sadd s a b; r smove s t a; r sinterstore u t t; r spop s}]
        assert_equal {h hset h hincrby h hincrbyfloat h hdel h del} [events_of $c {
            r hset h a 1; r hincrby h a 1; r hincrbyfloat h a 1; r hdel h a nosuch; r hdel h a
        }]
        assert_equal {z zadd z zincr y zrangestore z zrem z zpopmin z del} [events_of $c {
            r zadd z 1 a 2 b; r zincrby z 1 a; r zrangestore y z 0 -1; r zrem z a; r zpopmin z
        }]
    }

    test "expired keys: when they are looked at, and in the background" {} {
        r config set notify-keyspace-events KEx
        set c [listener]
        r set a 1 px 1
        wait_for {[r exists a] == 0}
        r mset keep 1 stay 2
        r select 2
        for {set i 0} {$i < 20} {incr i} {
            r set e$i 1 px 30
        }
        assert_equal {0 a expired} [lindex [events $c] 0]
        set found {}
        wait_for {[llength [lappend found {*}[events $c]]] >= 20}
        assert_equal [lsort [lmap i {0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19} {list 2 e$i expired}]] \
            [lsort $found]
    }

    test "evicted keys" {} {
        r config set maxmemory-policy allkeys-lru
        r config set notify-keyspace-events KEe
        set c [listener]
        set value [string repeat v 10000]
        for {set i 0} {$i < 50} {incr i} {
            r set k$i $value
        }
        assert_equal {} [events $c]
        r config set maxmemory [expr {[info_field used_memory memory] - 200000}]
        r set more 1
        wait_for {[r dbsize] < 45}
        set evicted [info_field evicted_keys stats]
        set found {}
        wait_for {[llength [lappend found {*}[events $c]]] >= $evicted}
        foreach event $found {
            assert_match {0 k* evicted} $event
        }
        r config set maxmemory 0
        r config set maxmemory-policy noeviction
    }

    test "new keys, and misses" {} {
        r config set notify-keyspace-events AKEnm
        set c [listener]
        assert_equal {a new a set a set b keymiss b keymiss b new b lpush} [events_of $c {
            r set a 1; r set a 2; r get b; r exists b; r lpush b 1; r del nosuch
        }]
    }

    test "transactions: all events, in order, after which data they tell of can be read" {} {
        r config set notify-keyspace-events AKE
        set c [listener]
        assert_equal {a set b set a del} [events_of $c {r multi; r set a 1; r set b 1; r del a; r exec}]
        r multi
        r set a 1
        r publish __keyspace@0__:x between
        r publish __keyevent@0__:between x
        r set b 2
        r exec
        assert_equal {{0 a set} {0 x between} {0 b set}} [events $c]
    }

    test "a pipeline's events come in its order, over many connections each in its own" {} {
        r config set notify-keyspace-events Kl
        set listeners [lmap x {1 2 3 4 5 6} {listener}]
        set writers [lmap x {1 2 3 4 5 6} {connect}]
        for {set i 0} {$i < 300} {incr i} {
            set n 0
            foreach w $writers {
                $w -send rpush [incr n]:$i x
            }
        }
        foreach w $writers {
            for {set i 0} {$i < 300} {incr i} {
                assert_equal 1 [$w -read]
            }
        }
        foreach c $listeners {
            array unset next
            for {set i 0} {$i < 1800} {incr i} {
                set message [$c -read]
                assert [regexp {^__keyspace@0__:(\d):(\d+)$} [lindex $message 2] all n k]
                assert_equal $k [expr {[incr next($n)] - 1}]
            }
        }
    }

    test "over RESP3, and to the client that makes the change" {} {
        r config set notify-keyspace-events K$
        set c [connect]
        $c hello 3
        $c -send psubscribe __key*
        $c ping
        $c -pushes
        $c set a 1
        $c ping
        assert_equal {{pmessage __key* __keyspace@0__:a set}} [lmap push [$c -pushes] {resp::bare $push}]
    }
}
