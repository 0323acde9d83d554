# Streams: who asks a group becomes a consumer of it, as since Redis 7.2; and what others are told of where a group is.

proc begin {{entries 3}} {
    r flushall
    r xgroup create s g 0 mkstream
    for {set i 1} {$i <= $entries} {incr i} {
        r xadd s $i-1 n $i
    }
}

proc consumers {} {
    return [lmap consumer [r xinfo consumers s g] {dict get $consumer name}]
}

# seen-time or active-time of the only consumer
proc time_of field {
    return [dict get [lindex [dict get [lindex [dict get [r xinfo stream s full] groups] 0] consumers] 0] $field]
}

# Effects without the times in them.
proc told_by script {
    return [regsub -all {TIME \d+} [uplevel 1 [list effects_of $script]] {TIME T}]
}

proc claim_of {id {consumer c} {count 1}} {
    return "XCLAIM s g $consumer 0 $id TIME T RETRYCOUNT $count FORCE JUSTID LASTID"
}

# What groups, what is pending, and consumers are, but for what only the one who was asked knows: when they were seen.
# redis-server 7.0 computes the lag in its own way.
proc groups_of name {
    return [lmap group [dict get [on $name xinfo stream s full count 0] groups] {
        list [dict get $group name] [dict get $group last-delivered-id] [dict get $group entries-read] \
            [dict get $group pending] [lmap consumer [dict get $group consumers] {
                list [dict get $consumer name] [dict get $consumer pending]
            }]
    }]
}

with_server {enable-debug-command yes notify-keyspace-events KEA} {
    foreach {::what ::asks} {
        "XREADGROUP without news" {xreadgroup group g d streams s >}
        "XREADGROUP NOACK without news" {xreadgroup group g d noack streams s >}
        "XREADGROUP CLAIM of nothing" {xreadgroup group g d claim 1000000 streams s >}
        "XREADGROUP BLOCK whose time is over" {xreadgroup group g d block 1 streams s >}
        "XREADGROUP of its history" {xreadgroup group g d streams s 0}
        "XCLAIM of what is not pending" {xclaim s g d 0 9-9}
        "XCLAIM of what is not idle enough" {xclaim s g d 1000000 1-1}
        "XAUTOCLAIM of nothing" {xautoclaim s g d 1000000 0}
    } {
        test "$::what makes the consumer" {keydb} {
            begin
            r xreadgroup group g c streams s >
            assert_equal xgroup-createconsumer [key_events_of {
                assert_equal {{XGROUP CREATECONSUMER s g d}} [effects_of {r {*}$::asks}]
            }]
            assert_equal {c d} [consumers]
            assert_equal {} [key_events_of {assert_equal {} [effects_of {r {*}$::asks}]}]
            assert_equal {3 1-1 3-1 {{c 3}}} [r xpending s g]
        }
    }

    test "a claim that forgets what is gone makes the consumer, too" {keydb} {
        foreach claim {{xclaim s g d 0 1-1} {xautoclaim s g d 0 0 count 1}} {
            begin
            r xreadgroup group g c streams s >
            r xdel s 1-1
            assert_equal [list "[claim_of 1-1] 3-1" "XGROUP CREATECONSUMER s g d"] \
                [lrange [told_by {r {*}$claim}] 1 end-1]
            assert_equal {c d} [consumers]
            assert_equal 2 [lindex [r xpending s g] 0]
        }
    }

    test "XCLAIM that only moves the group makes the consumer, too" {keydb} {
        begin
        assert_equal {MULTI {XGROUP SETID s g 9-9 ENTRIESREAD -1} {XGROUP CREATECONSUMER s g d} EXEC} \
            [effects_of {r xclaim s g d 0 1-1 lastid 9-9}]
        assert_equal d [consumers]
    }

    test "one that waits is there before it gets something, and in each stream" {keydb} {
        begin
        r xreadgroup group g c streams s >
        r xgroup create t g 0 mkstream
        set waits [connect]
        set told [effects_of {
            $waits -send xreadgroup group g d block 0 streams t s > >
            wait_for {[info_field blocked_clients clients] == 1}
        }]
        assert_equal {{XGROUP CREATECONSUMER t g d} {XGROUP CREATECONSUMER s g d}} [lrange $told 1 end-1]
        assert_equal {c d} [consumers]
        r xadd s 4-1 n 4
        assert_equal {{s {{4-1 {n 4}}}}} [$waits -read]
        $waits -close
        r xreadgroup group g e streams t s > 0
        assert_equal {d e} [lmap consumer [r xinfo consumers t g] {dict get $consumer name}]
        assert_equal {c d e} [consumers]
    }

    test "errors make no consumer" {keydb} {
        begin
        foreach words {
            {xclaim s g d 0 1-1 idle x} {xclaim s g d x 1-1} {xautoclaim s g d 0 x} {xautoclaim s g d 0 0 count 0}
            {xreadgroup group g d streams s none > >} {xreadgroup group g d streams s s > x}
        } {
            assert_error * {r {*}$words}
        }
        assert_equal {} [consumers]
    }

    test "each time it asks it is seen; it is active when it got something to acknowledge" {keydb} {
        begin 2
        r xreadgroup group g c count 1 streams s >
        foreach {asks is_active} {
            {xreadgroup group g c noack streams s >} 0
            {xreadgroup group g c streams s >} 0
            {xreadgroup group g c streams s 0} 0
            {xclaim s g c 0 9-9} 0
            {xclaim s g c 0 1-1} 1
            {xautoclaim s g c 1000000 0} 0
            {xautoclaim s g c 0 0} 1
            {xreadgroup group g c claim 0 noack streams s >} 1
        } {
            set seen [time_of seen-time]
            set active [time_of active-time]
            wait_for {[clock milliseconds] > $seen}
            r {*}$asks
            assert {[time_of seen-time] > $seen} $asks
            assert_equal $is_active [expr {[time_of active-time] > $active}] $asks
        }
        r xgroup create s h 0
        r xreadgroup group h c noack streams s >
        assert_equal -1 [dict get [lindex [r xinfo consumers s h] 0] inactive]
    }

    test "behind what was delivered others are told how much the group has read" {keydb} {
        begin 5
        assert_equal [list MULTI "[claim_of 1-1] 1-1" "XGROUP SETID s g 1-1 ENTRIESREAD 1" EXEC] \
            [told_by {r xreadgroup group g c count 1 streams s >}]
        assert_equal [list MULTI "[claim_of 2-1] 2-1" "[claim_of 3-1] 3-1" "XGROUP SETID s g 3-1 ENTRIESREAD 3" \
            EXEC] [told_by {r xreadgroup group g c count 2 streams s >}]
        assert_equal {{XGROUP SETID s g 4-1 ENTRIESREAD 4}} [told_by {r xreadgroup group g c count 1 noack streams s >}]
        r xgroup setid s g 3-1
        assert_equal [list MULTI "[claim_of 4-1] 4-1" "XGROUP SETID s g 4-1 ENTRIESREAD -1" EXEC] \
            [told_by {r xreadgroup group g c count 1 streams s >}]
        assert_equal {} [told_by {r xreadgroup group g c streams s 0}]
    }

    test "what is claimed moves no group" {keydb} {
        begin 2
        r xreadgroup group g c streams s >
        assert_equal [list MULTI "[claim_of 1-1 d 2] 2-1" "[claim_of 2-1 d 2] 2-1" EXEC] \
            [told_by {r xreadgroup group g d claim 0 streams s >}]
        assert_equal [list MULTI "XGROUP CREATECONSUMER s g e" "[claim_of 1-1 e 3] 2-1" "[claim_of 2-1 e 3] 2-1" \
            EXEC] [told_by {r xreadgroup group g e claim 0 noack streams s >}]
        r xadd s 3-1 n 3
        set told [told_by {r xreadgroup group g d claim 0 streams s >}]
        assert_equal [list MULTI "[claim_of 1-1 d 4] 2-1" "[claim_of 3-1 d] 3-1" \
            "XGROUP SETID s g 3-1 ENTRIESREAD 3" EXEC] [lreplace $told 2 2]
    }

    test "no group has read more than was added, and others need not see to that" {keydb} {
        begin
        assert_equal {{XGROUP SETID s g 1-1 entriesread 3}} [effects_of {r xgroup setid s g 1-1 entriesread 4}]
        assert_equal {{XGROUP SETID s g 3-1 entriesread 3}} [effects_of {r xgroup setid s g $ entriesread 4}]
        assert_equal {{xgroup setid s g $ entriesread 3}} [effects_of {r xgroup setid s g $ entriesread 3}]
        assert_equal {{XGROUP CREATE s h 3-1 mkstream entriesread 3}} \
            [effects_of {r xgroup create s h $ mkstream entriesread 9}]
        assert_equal {3 3} [lmap group [r xinfo groups s] {dict get $group entries-read}]
        r xgroup setid s g 1-1 entriesread 3
        assert_equal [list MULTI "[claim_of 2-1] 2-1" "XGROUP SETID s g 2-1 ENTRIESREAD 3" EXEC] \
            [told_by {r xreadgroup group g c count 1 streams s >}]
    }

    test "XCLAIM that moves the group tells where it is, and counts nothing" {keydb} {
        begin
        assert_equal [list MULTI "[claim_of 2-1 c 2] 2-1" "XGROUP SETID s g 2-1 ENTRIESREAD -1" EXEC] \
            [told_by {r xclaim s g c 0 2-1 force lastid 2-1}]
        assert_equal [list "[claim_of 1-1 c 2] 2-1"] [told_by {r xclaim s g c 0 1-1 force lastid 1-1}]
    }

    test "lists that do not fit" {} {
        set each "list of streams: for each stream key an ID"
        assert_refused "ERR Unbalanced 'xread' $each, '+', or '\$' must be specified." r xread streams a b c
        assert_refused "ERR Unbalanced 'xreadgroup' $each or '>' must be specified." \
            r xreadgroup group g c streams a b c
    }
}

set ::rounds 150
with_group {m ours {appendonly yes} ours ours {} oracle oracle {}} {
    test "files and replicas, ours and redis-server, know of each group where it is" {noconn} {
        foreach name {ours oracle} {
            follow $name m
            wait_link $name
        }
        for {set round 1} {$round <= $::rounds} {incr round} {
            on m xadd s $round-1 n $round
            if {$round % 40 == 1} {
                on m xgroup create s g[expr {$round / 40}] [expr {$round / 2}]-0
            }
            set group g[expr {int(rand() * (($round - 1) / 40 + 1))}]
            set consumer c[expr {int(rand() * 4)}]
            set id [expr {1 + int(rand() * $round)}]-1
            switch [expr {int(rand() * 10)}] {
                0 { on m xdel s $id }
                1 { on m xtrim s maxlen 30 }
                2 { on m xreadgroup group $group $consumer count 3 noack streams s > }
                3 { on m xreadgroup group $group $consumer claim 0 count 4 streams s > }
                4 { on m xgroup setid s $group $id entriesread [expr {int(rand() * 9) - 1}] }
                5 { on m xautoclaim s $group $consumer 0 0 count 2 }
                6 { on m xclaim s $group $consumer 0 $id }
                7 { on m xclaim s $group $consumer 0 $id force lastid $id }
                default { on m xreadgroup group $group $consumer count [expr {1 + int(rand() * 5)}] streams s > }
            }
        }
        wait_same m ours oracle
        set wanted [groups_of m]
        assert_equal $wanted [groups_of ours]
        assert_equal $wanted [groups_of oracle]
        assert_equal [on m xinfo groups s] [on ours xinfo groups s]
        on m debug loadaof
        assert_equal $wanted [groups_of m]
    }
}
