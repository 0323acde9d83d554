# Groups of consumers: several workers, waiting consumers, and what the journal says of deliveries.

proc blocked_count {} {
    return [info_field blocked_clients clients]
}

proc waiting args {
    set before [blocked_count]
    set c [connect]
    $c -send {*}$args
    wait_for {[blocked_count] == $before + 1}
    return $c
}

proc stream_of {key group entries} {
    r del $key
    r xgroup create $key $group 0 mkstream
    for {set i 1} {$i <= $entries} {incr i} {
        r xadd $key $i-1 n $i
    }
}

proc group_field {key field} {
    return [dict get [lindex [r xinfo groups $key] 0] $field]
}

proc pending_ids {key group args} {
    return [lmap record [r xpending $key $group - + 100000 {*}$args] {lindex $record 0}]
}

proc pending_ids_idle least_ms {
    return [lmap record [r xpending s g idle $least_ms - + 100] {lindex $record 0}]
}

# The words of the commands in a journal.
proc journal_commands bytes {
    set commands {}
    set at 0
    while {$at < [string length $bytes]} {
        regexp -start $at {\A\*(\d+)\r\n} $bytes head count
        incr at [string length $head]
        set words {}
        for {set i 0} {$i < $count} {incr i} {
            regexp -start $at {\A\$(\d+)\r\n} $bytes head size
            incr at [string length $head]
            lappend words [string range $bytes $at [expr {$at + $size - 1}]]
            incr at [expr {$size + 2}]
        }
        lappend commands $words
    }
    return $commands
}

# What XINFO tells of all, without what only the one who was asked knows: when consumers were seen.
proc whole_stream key {
    return [regsub -all {(seen|active)-time -?\d+} [r xinfo stream $key full count 0] {}]
}

with_server {enable-debug-command yes} {
    test "consumers on all workers share a stream: every entry to exactly one" {} {
        stream_of s g 0
        set clients [lmap n {1 2 3 4 5 6 7 8} {connect}]
        set got {}
        for {set round 0} {$round < 60} {incr round} {
            set who 0
            foreach c $clients {
                $c -send xadd s * n $round:[incr who]
                $c -send xreadgroup group g c$who count [expr {1 + $round % 3}] streams s >
            }
            foreach c $clients {
                lappend added [$c -read]
                foreach entry [lindex [$c -read] 0 1] {
                    lappend got [lindex $entry 0]
                }
            }
        }
        foreach entry [lindex [r xreadgroup group g rest streams s >] 0 1] {
            lappend got [lindex $entry 0]
        }
        assert_equal 480 [llength $got]
        assert_equal [lsort $added] [lsort $got]
        assert_equal [lsort $got] [lsort [pending_ids s g]]
        assert_equal {480 0} [list [group_field s entries-read] [group_field s lag]]
        set sum 0
        foreach consumer [r xinfo consumers s g] {
            incr sum [dict get $consumer pending]
        }
        assert_equal 480 $sum
        assert_equal 480 [r xack s g {*}$got]
        assert_equal {0 {} {} {}} [r xpending s g]
    }

    test "consumers that wait are served in order, one entry each" {} {
        stream_of s g 0
        set clients [lmap n {1 2 3 4 5 6} {waiting xreadgroup group g c$n count 1 block 0 streams s >}]
        r multi
        foreach n {1 2 3 4} {
            r xadd s $n-1 n $n
        }
        r exec
        foreach n {1 2 3 4} c [lrange $clients 0 3] {
            assert_equal [list [list s [list [list $n-1 [list n $n]]]]] [$c -read]
        }
        assert_equal 2 [blocked_count]
        r xadd s 5-1 n 5
        r xadd s 6-1 n 6
        assert_equal {{s {{5-1 {n 5}}}}} [[lindex $clients 4] -read]
        assert_equal {{s {{6-1 {n 6}}}}} [[lindex $clients 5] -read]
        assert_equal {1-1 2-1 3-1 4-1 5-1 6-1} [pending_ids s g]
        assert_equal {3-1} [pending_ids s g c3]
    }

    test "groups do not take entries from each other, nor from plain readers" {} {
        stream_of s g 0
        r xgroup create s h $
        set first [waiting xreadgroup group g c block 0 streams s >]
        set second [waiting xreadgroup group h c block 0 noack streams s >]
        set third [waiting xread block 0 streams s $]
        r xadd s 1-1 a b
        foreach c [list $first $second $third] {
            assert_equal {{s {{1-1 {a b}}}}} [$c -read]
        }
        assert_equal {1-1} [pending_ids s g]
        assert_equal {} [pending_ids s h]
    }

    foreach {what ::words ::error} {
        "DEL" {{del s}} "UNBLOCKED the stream key no longer exists"
        "another type" {{set s text}} "UNBLOCKED the stream key no longer exists"
        "FLUSHALL" {{flushall}} "UNBLOCKED the stream key no longer exists"
        "SWAPDB" {{swapdb 0 1}} "UNBLOCKED the stream key no longer exists"
        "a deadline" {{pexpire s 1}} "UNBLOCKED the stream key no longer exists"
        "XGROUP DESTROY" {{xgroup destroy s g}} "NOGROUP the consumer group this client was blocked on no longer exists"
        "RENAME" {{rename other s}} "NOGROUP the consumer group this client was blocked on no longer exists"
        "a new stream" {multi {del s} {xadd s 1-1 a b} exec}
            "NOGROUP the consumer group this client was blocked on no longer exists"
    } {
        test "the end of a wait in a group: $what" {} {
            r flushall
            stream_of s g 0
            stream_of t g 0
            r xadd other 1-1 a b
            set c [waiting xreadgroup group g c block 0 streams t s > >]
            set patient [waiting xread block 0 streams s 5-5]
            foreach words $::words {
                r {*}$words
            }
            assert_error $::error {$c -read}
            assert_equal 1 [blocked_count]
            $patient -close
            wait_for {[blocked_count] == 0}
            r select 0
        }
    }

    test "a group that is destroyed and made again keeps who waits, and so does a consumer" {} {
        stream_of s g 0
        set c [waiting xreadgroup group g c block 0 streams s >]
        r multi
        r xgroup destroy s g
        r xgroup create s g $
        r exec
        r xgroup createconsumer s g c
        r xgroup delconsumer s g c
        r xsetid s 5-5
        r xgroup setid s g 8-8
        r xadd s 8-1 a b
        assert_equal 1 [blocked_count]
        r xadd s 8-9 a b
        assert_equal {{s {{8-9 {a b}}}}} [$c -read]
    }

    test "a group that is set back serves who waits" {} {
        stream_of s g 2
        r xgroup setid s g $
        set c [waiting xreadgroup group g c block 0 streams s >]
        r xgroup setid s g 1-1
        assert_equal {{s {{2-1 {n 2}}}}} [$c -read]
    }

    test "what a consumer had is told at once, nothing waits within a transaction" {} {
        stream_of s g 1
        assert_equal {{s {}}} [r xreadgroup group g c block 0 streams s 0]
        r multi
        r xreadgroup group g c block 0 streams s >
        r xreadgroup group g c block 0 streams s >
        assert_equal {{{s {{1-1 {n 1}}}}} {}} [r exec]
        assert_reply {nullarray} r xreadgroup group g c block 10 streams s >
        set c [connect]
        set id [$c client id]
        $c -send xreadgroup group g c block 0 streams s >
        wait_for {[blocked_count] == 1}
        assert_equal 1 [r client unblock $id]
        assert_equal {nullarray} [$c -reply]
        r xadd s 2-1 n 2
        assert_equal {1-1} [pending_ids s g]
    }

    test "the lag, as far as it can be known" {} {
        stream_of s g 5
        assert_equal {{} 5} [list [group_field s entries-read] [group_field s lag]]
        r xreadgroup group g c count 2 streams s >
        assert_equal {2 3} [list [group_field s entries-read] [group_field s lag]]
        r xdel s 4-1
        assert_equal {2 {}} [list [group_field s entries-read] [group_field s lag]]
        r xreadgroup group g c streams s >
        assert_equal {5 0} [list [group_field s entries-read] [group_field s lag]]
        r xadd s 6-1 n 6
        assert_equal {5 1} [list [group_field s entries-read] [group_field s lag]]
        r xgroup setid s g 2-1
        assert_equal {{} {}} [list [group_field s entries-read] [group_field s lag]]
        r xgroup setid s g 2-1 entriesread 2
        r xtrim s maxlen 1
        assert_equal {2 1} [list [group_field s entries-read] [group_field s lag]]
    }

    # As Redis 8.6 does it. ENTRIESREAD, what happens then, and entries-read and lag after it.
    foreach {::read ::commands ::expected} {
        2 {{xtrim s maxlen 3}} {2 3}
        2 {{xtrim s maxlen 3} read} {3 2}
        2 {{xtrim s maxlen 0}} {2 0}
        0 {{xdel s 1-1}} {0 4}
        0 {{xdel s 1-1} read} {2 3}
        0 {{xdel s 3-1}} {0 {}}
        0 {{xdel s 3-1} read} {{} {}}
        0 {read {xdel s 1-1} read} {2 3}
        0 {read {xdel s 2-1} read} {{} {}}
        9 {} {5 5}
        5 {{xgroup setid s g 5-1 entriesread 7}} {5 0}
        -1 {} {{} 5}
    } {
        test "the lag of a group that has read $::read, after: $::commands" {keydb} {
            stream_of s other 5
            r xgroup create s g 0 entriesread $::read
            r xgroup destroy s other
            foreach command $::commands {
                if {$command eq "read"} {
                    r xreadgroup group g c count 1 streams s >
                } else {
                    r {*}$command
                }
            }
            assert_equal $::expected [list [group_field s entries-read] [group_field s lag]]
        }
    }

    test "deliveries and claims against a model" {} {
        stream_of s g 0
        array unset owner
        array unset count
        set live {}
        set next 0
        set delivered 0
        for {set step 0} {$step < 2500} {incr step} {
            set consumer c[expr {int(rand() * 5)}]
            set draw [expr {rand()}]
            set all [lsort -dictionary [array names owner]]
            set first [expr {int(rand() * [llength $all])}]
            set some [lrange $all $first [expr {$first + int(rand() * 4)}]]
            if {$draw < 0.35} {
                lappend live [incr next]
                r xadd s $next-1 n $next
            } elseif {$draw < 0.6} {
                set want [expr {1 + int(rand() * 3)}]
                foreach entry [lindex [r xreadgroup group g $consumer count $want streams s >] 0 1] {
                    set n [lindex $entry 1 1]
                    assert {$n > $delivered && ![info exists owner($n)]}
                    set delivered $n
                    set owner($n) $consumer
                    set count($n) 1
                }
            } elseif {$draw < 0.7 && $some ne ""} {
                assert_equal [llength $some] [r xack s g {*}[lmap n $some {set n $n-1}] 99999-1]
                foreach n $some {
                    unset owner($n) count($n)
                }
            } elseif {$draw < 0.75 && $live ne ""} {
                set place [expr {int(rand() * [llength $live])}]
                assert_equal 1 [r xdel s [lindex $live $place]-1]
                set live [lreplace $live $place $place]
            } elseif {$draw < 0.85 && $some ne ""} {
                set here [lmap n $some {if {$n ni $live} continue; set n}]
                set reply [r xclaim s g $consumer 0 {*}[lmap n $some {set n $n-1}]]
                assert_equal [lmap n $here {set n $n-1}] [lmap entry $reply {lindex $entry 0}]
                foreach n $some {
                    if {$n in $here} {
                        set owner($n) $consumer
                        incr count($n)
                    } else {
                        unset owner($n) count($n)
                    }
                }
            } elseif {$draw < 0.9} {
                lassign [r xautoclaim s g $consumer 0 0 count 3 justid] cursor claimed gone
                set looked [lrange [lsort -dictionary [array names owner]] 0 2]
                assert_equal [lmap n $looked {set n $n-1}] [lsort -dictionary [concat $claimed $gone]]
                foreach id $claimed {
                    set owner([lindex [split $id -] 0]) $consumer
                }
                foreach id $gone {
                    set n [lindex [split $id -] 0]
                    assert {$n ni $live}
                    unset owner($n) count($n)
                }
            } elseif {$draw < 0.92} {
                set lost [lmap n [array names owner] {if {$owner($n) ne $consumer} continue; set n}]
                assert_equal [llength $lost] [r xgroup delconsumer s g $consumer]
                foreach n $lost {
                    unset owner($n) count($n)
                }
            }
        }
        set wanted [lmap n [lsort -dictionary [array names owner]] {list $n-1 $owner($n) $count($n)}]
        assert_equal $wanted [lmap record [r xpending s g - + 100000] {lreplace $record 2 2}]
        set total [llength $wanted]
        assert_equal $total [lindex [r xpending s g] 0]
        foreach line [lindex [r xpending s g] 3] {
            lassign $line consumer pending
            assert_equal $pending [llength [pending_ids s g $consumer]]
            incr total -$pending
        }
        assert_equal 0 $total
    }

    test "a claim that finds deleted entries only is a change" {keydb} {
        foreach claim {{xautoclaim s g d 0 0} {xclaim s g d 0 1-1 2-1}} {
            stream_of s g 2
            r xreadgroup group g c streams s >
            r xdel s 1-1 2-1
            set watcher [connect]
            $watcher watch s
            r {*}$claim
            assert_equal {} [pending_ids s g]
            $watcher multi
            $watcher ping
            assert_equal {} [$watcher exec] $claim
            $watcher -close
        }
    }

    test "idle times: who may claim what" {} {
        stream_of s g 3
        r xreadgroup group g c streams s >
        r xclaim s g c 0 1-1 idle 100000 justid
        r xclaim s g c 0 2-1 time [expr {[clock milliseconds] - 50000}] retrycount 7 justid
        assert_equal {1-1} [pending_ids_idle 90000]
        assert_equal {1-1 2-1} [pending_ids_idle 40000]
        assert_equal {} [r xclaim s g d 40000 3-1]
        assert_equal {{2-1 {n 2}}} [r xclaim s g d 40000 2-1 3-1]
        assert_equal {8} [lindex [r xpending s g 2-1 2-1 1] 0 3]
        r xclaim s g d 0 2-1 justid
        r xautoclaim s g d 0 2-1 count 1 justid
        assert_equal {8} [lindex [r xpending s g 2-1 2-1 1] 0 3]
        r xclaim s g d 0 2-1 time [expr {[clock milliseconds] - 50000}] justid
        assert_equal {0-0 1-1 {}} [r xautoclaim s g e 90000 - justid]
        assert_equal {1-1 e} [lrange [lindex [r xpending s g - + 1] 0] 0 1]
    }

    test "XAUTOCLAIM looks at ten records for one that it may claim" {} {
        stream_of s g 30
        r xreadgroup group g c streams s >
        assert_equal {11-1 {} {}} [r xautoclaim s g d 1000000 0 count 1]
        assert_equal {21-1 {} {}} [r xautoclaim s g d 1000000 11-1 count 1]
        assert_equal {0-0 {} {}} [r xautoclaim s g d 1000000 21-1 count 1]
        assert_equal {2-1 1-1 {}} [r xautoclaim s g d 0 0 count 1 justid]
        assert_refused "ERR COUNT must be > 0" r xautoclaim s g d 0 0 count 0
        assert_refused "ERR COUNT must be > 0" r xautoclaim s g d 0 0 count 9223372036854775807
    }

    test "who reads the journal has the same groups" {} {
        r flushall
        r debug journal start
        stream_of s g 20
        r xgroup create s h 3-1
        foreach {group consumer count} {g a 5 g b 3 h a 4 g a 2} {
            r xreadgroup group $group $consumer count $count streams s >
        }
        r xreadgroup group h quick count 2 noack streams s >
        r xreadgroup group g nothing streams s 0
        r xack s g 1-1 2-1 7-1
        r xdel s 3-1 8-1 12-1
        r xclaim s g b 0 3-1 4-1 5-1 force
        r xclaim s g b 1000000 4-1 lastid 11-1
        r xautoclaim s h c 0 0 count 3
        r xgroup delconsumer s g a
        assert_equal {} [r xclaim s g b 0 8-1 12-1]
        r xreadgroup group h late streams s >
        set c [waiting xreadgroup group h late block 0 streams s >]
        r xadd s maxlen ~ 3 * n last
        $c -reply
        r xgroup create s quick 0
        r xreadgroup group quick one count 3 noack streams s >
        r xgroup create s gone 0
        r xgroup destroy s gone
        set commands [journal_commands [r debug journal read]]
        r debug journal stop
        set wanted [whole_stream s]
        r flushall
        set replica [connect]
        foreach words $commands {
            $replica {*}$words
        }
        assert_equal $wanted [whole_stream s]
    }
}
