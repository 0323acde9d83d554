# SORT: what the comparison with redis-server cannot see: long lists, ties, lifetimes of weights, and others that write
# meanwhile.

proc numbers count {
    set result {}
    for {set i 0} {$i < $count} {incr i} {
        lappend result [expr {int(rand() * $count)}]
    }
    return $result
}

proc push_all {key elements} {
    r del $key
    for {set i 0} {$i < [llength $elements]} {incr i 500} {
        r rpush $key {*}[lrange $elements $i $i+499]
    }
}

proc worker_of client {
    regexp {current_client_thread:(\d+)} [$client info clients] all worker
    return $worker
}

# A connection that none of these workers serves.
proc away_from workers {
    for {set i 0} {$i < 200} {incr i} {
        set c [connect]
        if {[worker_of $c] ni $workers} {
            return $c
        }
    }
    skip "too few workers"
}

with_server {enable-debug-command yes} {
    test "long lists and sets, whole and in part" {} {
        set elements [numbers 3000]
        push_all l $elements
        r sadd s {*}$elements
        foreach {key model} [list l [lsort -integer $elements] s [lsort -integer -unique $elements]] {
            set reversed [lreverse $model]
            assert_equal $model [r sort $key]
            assert_equal $reversed [r sort $key desc]
            foreach {offset count} {0 1 0 10 1490 20 2900 1000 5 0 17 -1 0 3000 4000 1} {
                set end [expr {$count < 0 ? "end" : $offset + $count - 1}]
                assert_equal [lrange $model $offset $end] [r sort $key limit $offset $count]
                assert_equal [lrange $reversed $offset $end] [r sort $key limit $offset $count desc]
            }
            assert_equal [lsort $model] [r sort $key alpha]
            assert_equal [llength $model] [r sort $key store d desc]
            assert_equal $reversed [r lrange d 0 -1]
        }
        assert_equal [llength $elements] [r sort l store l]
        assert_equal [lsort -integer $elements] [r lrange l 0 -1]
    }

    test "what has the same weight stays in order" {} {
        set elements {}
        for {set i 0} {$i < 500} {incr i} {
            lappend elements e:$i
        }
        push_all l $elements
        assert_equal $elements [r sort l by nothing_* alpha]
        assert_equal $elements [r sort l by nothing_* alpha desc]
        assert_equal [lrange $elements 70 99] [r sort l by nothing_* alpha limit 70 30]
        assert_equal [lsort $elements] [r sort l by nothing_*]
        assert_equal [lreverse [lsort $elements]] [r sort l by nothing_* desc]
        assert_equal [lreverse $elements] [r sort l by nosort desc]
    }

    test "lists with compressed nodes and long elements" {} {
        with_config {list-compress-depth 1 list-max-listpack-size 16} {
            set elements [numbers 1000]
            push_all l $elements
            assert_equal [lsort -integer $elements] [r sort l]
        }
        set long [string repeat x 2000000]
        r del l
        r rpush l b $long a [string range $long 0 5000]
        assert {[r sort l alpha] eq [list a b [string range $long 0 5000] $long]}
        assert_equal 4 [r sort l alpha store d]
        assert_equal {a b} [r lrange d 0 1]
        assert {[r lindex d -1] eq $long}
    }

    test "members of a set that nobody sorts" {} {
        set members [lsort -unique [numbers 1000]]
        r sadd s {*}$members
        r sadd t a b c
        foreach {key all} [list s $members t {a b c}] {
            assert_equal $all [lsort [r sort $key by nosort]]
            set some [r sort $key by nosort limit 1 2]
            assert_equal 2 [llength [lsort -unique $some]]
            assert_equal $some [lrange [r sort $key by nosort] 1 2]
            assert_equal [llength $all] [r sort $key by nosort store d]
            assert_equal $all [r lrange d 0 -1]
        }
    }

    test "sorted sets in the order of scores, and in that of members" {} {
        with_config {zset-max-listpack-entries 10} {
            foreach {key count} {few 10 many 1000} {
                set model {}
                for {set i 0} {$i < $count} {incr i} {
                    r zadd $key [expr {$count - $i}] $i
                    lappend model $i
                }
                assert_equal $model [r sort $key]
                assert_equal [lreverse $model] [r sort $key by nosort]
                assert_equal $model [r sort $key by nosort desc]
                assert_equal [lrange [lreverse $model] 2 6] [r sort $key by nosort limit 2 5]
                assert_equal [lrange $model 2 6] [r sort $key by nosort limit 2 5 desc]
                assert_equal [lrange $model 3 end] [r sort $key by nosort limit 3 100000 desc]
                assert_equal $count [r sort $key by nosort store d]
                assert_equal [lreverse $model] [r lrange d 0 -1]
            }
            assert_equal listpack [r object encoding few]
        }
    }

    test "weights and results end with their lifetime" {} {
        r rpush l a b c
        r mset w_a 3 w_b 2 w_c 1
        assert_equal {c b a} [r sort l by w_*]
        r debug set-active-expire 0
        r pexpire w_b 1
        wait_for {[r pttl w_b] == -2}
        assert_equal {b c a} [r sort l by w_*]
        r pexpire w_a 1
        r hset g_c f 5
        assert_equal {{} {} 5} [r sort l by nosort get g_*->f]
        r pexpire g_c 1
        wait_for {[r pttl w_a] == -2 && [r pttl g_c] == -2}
        assert_equal {{} {} 1} [r sort l by nosort get w_*]
        assert_equal {{} {} {}} [r sort l by nosort get g_*->f]
        assert_equal 3 [r sort l by nosort get w_* store d]
        assert_equal {{} {} 1} [r lrange d 0 -1]
    }

    test "the destination loses its type and lifetime" {} {
        r set d x ex 100
        r rpush l 2 1
        assert_equal 2 [r sort l store d]
        assert_equal {list -1} [list [r type d] [r ttl d]]
        r expire d 100
        assert_equal 2 [r sort l store d]
        assert_equal -1 [r ttl d]
        assert_equal 0 [r sort nothing store d]
        assert_equal 0 [r exists d]
        r set l2 x
        assert_refused "WRONGTYPE Operation against a key holding the wrong kind of value" r sort l2 store l
        assert_equal {2 1} [r lrange l 0 -1]
    }

    test "a result that cannot be had changes nothing" {} {
        r rpush l 1 x 2
        r rpush d old
        assert_refused "ERR One or more scores can't be converted into double" r sort l store d
        assert_refused "ERR syntax error" r sort l store d limit 1
        assert_equal old [r lrange d 0 -1]
    }

    test "members of a set that weigh the same are stored in one order on every server" {} {
        foreach members {{b a d c e f} {f e d c b a}} {
            r del s
            r sadd s {*}$members [string repeat x 100]
            r sort s by w_* alpha store d
            assert_equal [list a b c d e f [string repeat x 100]] [r lrange d 0 -1]
        }
        r flushall
    }

    test "watchers see what is stored, also nothing" {} {
        set c [connect]
        foreach source {l nothing} {
            r rpush l 1 2
            r rpush d 0
            r watch d
            assert_equal [expr {$source eq "l" ? 2 : 0}] [$c sort $source store d]
            r multi
            r ping
            assert_reply {nullarray} r exec
        }
        r watch d
        $c sort l limit 0 1
        $c sort nothing store d
        r multi
        r ping
        assert_equal PONG [r exec]
    }

    test "a stored result is an event of the destination" {} {
        with_config {notify-keyspace-events Elg} {
            set c [connect]
            $c psubscribe __keyevent@0__:*
            r rpush l 2 1
            r sort l
            r sort l store d
            r sort nothing store d
            r sort nothing store d
            foreach {event key} {rpush l sortstore d del d} {
                assert_equal [list pmessage __keyevent@0__:* __keyevent@0__:$event $key] [$c -read]
            }
            r rpush last x
            assert_equal {pmessage __keyevent@0__:* __keyevent@0__:rpush last} [$c -read]
        }
    }

    test "what is journaled" {keydb} {
        r rpush l 2 1
        r debug journal start
        r sort l
        r sort_ro l
        r sort l by w_* get w_*
        r sort nothing store d
        assert_equal {} [r debug journal read]
        r sort l desc store d
        assert_match "*SELECT*sort*l*desc*store*d*" [r debug journal read]
        r sort nothing store d
        assert_match "*sort*nothing*store*d*" [r debug journal read]
        r debug journal stop
    }

    test "in a transaction, with and without patterns" {} {
        r rpush l a b
        r mset w_a 2 w_b 1
        r multi
        r sort l alpha
        r set w_b 3
        r sort l by w_* get # get w_*
        r sort l by w_* store d desc
        r lrange d 0 -1
        assert_equal {{a b} OK {a 2 b 3} 2 {b a}} [r exec]
    }

    test "only patterns that name keys need the gate" {keydb} {
        r rpush l 2 1 3
        set works [away_from [worker_of r]]
        for {set i 0} {$i < 4} {incr i} {
            lappend clients [away_from [worker_of $works]]
        }
        $works -send debug busy other 30
        wait_for {[get_is_parked other]}
        set c [lindex $clients 0]
        assert_equal {1 2 3} [$c sort l]
        assert_equal {3 2 1} [$c sort l desc get #]
        assert_equal {2 1 3} [$c sort_ro l by nosort get #]
        assert_equal 3 [$c sort l alpha store d]
        set need_gate {{sort l by w_*} {sort_ro l get w_*} {sort l limit 0 1 get # get w_*->f}}
        foreach c [lrange $clients 1 end] words $need_gate {
            set before [parked_so_far]
            $c -send {*}$words
            wait_for {[parked_so_far] > $before}
        }
        r debug release busy
        foreach c [lrange $clients 1 end] {
            $c -read
        }
        assert_equal OK [$works -read]
    }

    test "weights of one moment, whoever changes them" {} {
        set elements {a b c d e f g h}
        r rpush l {*}$elements
        set orders {}
        foreach order [list $elements [lreverse $elements] {d a h c b g e f}] {
            set weights {}
            set rank 0
            foreach element $order {
                lappend weights w_$element [incr rank]
            }
            lappend orders $weights
        }
        r mset {*}[lindex $orders 0]
        set writers [list [connect] [connect]]
        set readers [list [connect] [connect] [connect]]
        for {set i 0} {$i < 300} {incr i} {
            foreach c $writers {
                $c -send mset {*}[lindex $orders [expr {int(rand() * 3)}]]
            }
            foreach c $readers {
                $c -send sort l by w_* get w_*
                $c -send sort_ro l get w_* alpha by w_* desc
            }
            foreach c $writers {
                $c -read
            }
            foreach c $readers {
                assert_equal {1 2 3 4 5 6 7 8} [$c -read]
                assert_equal {8 7 6 5 4 3 2 1} [$c -read]
            }
        }
    }
}
