# Streams: XREADGROUP CLAIM, as in Redis 8.4.

# Entries 1-1 ... COUNT-1 of stream s, all pending for consumer c of group g; then one that is new.
proc begin {{count 3}} {
    r flushall
    r xgroup create s g 0 mkstream
    for {set i 1} {$i <= $count} {incr i} {
        r xadd s $i-1 n $i
    }
    r xreadgroup group g c streams s >
}

# Makes entries of s pending since IDLE_MS ago.
proc since {idle_ms args} {
    foreach id $args {
        r xclaim s g c 0 $id idle $idle_ms justid
    }
}

# Id, consumer and deliveries of all that is pending.
proc rows {} {
    return [lmap row [r xpending s g - + 1000] {
        lassign $row id consumer idle count
        list $id $consumer $count
    }]
}

# The entries of a reply, without their fields: id, idle time in whole seconds, deliveries.
proc claimed reply {
    return [lmap entry [lindex $reply 0 1] {
        lassign $entry id fields idle count
        assert_equal [list n [lindex [split $id -] 0]] $fields
        list $id [expr {$idle / 1000}] $count
    }]
}

proc claim args {
    return [claimed [r xreadgroup group g d {*}$args streams s >]]
}

proc waiting name {
    set client [connect]
    $client client setname $name
    return $client
}

with_server {enable-debug-command yes appendonly yes} {
    foreach ::proto {2 3} {
        test "what has been pending the longest comes first, then what is new, RESP$::proto" {keydb} {
            begin 4
            r xclaim s g c 0 3-1 1-1 idle 5000 justid
            since 9000 2-1
            r xadd s 5-1 n 5
            set c [connect]
            $c hello $::proto
            foreach {id idle count words} {2-1 9000 1 {count 1 claim 8000} 5-1 0 0 {claim 8000}} {
                set fields [list array [list {bulk n} [list bulk [string index $id 0]]]]
                set entry [list array [list [list bulk $id] $fields [list int $idle] [list int $count]]]
                set entries [list array [list $entry]]
                set expected [expr {$::proto == 2 ? [list array [list [list array [list {bulk s} $entries]]]] :
                    [list map [list {bulk s} $entries]]}]
                set reply [regsub {int 9\d\d\d} [$c -typed xreadgroup group g d {*}$words streams s >] {int 9000}]
                assert {[same_reply $expected $reply]} $reply
            }
            $c -close
            assert_equal {{1-1 5 1} {3-1 5 1}} [claim claim 4000]
            assert_equal {{1-1 d 2} {2-1 d 2} {3-1 d 2} {4-1 c 1} {5-1 d 1}} [rows]
            assert_equal {} [claim claim 4000]
        }
    }

    test "COUNT is for both; an id in place of > is history" {keydb} {
        begin 5
        since 5000 1-1 2-1 3-1
        r xadd s 6-1 n 6
        r xadd s 7-1 n 7
        assert_equal {{1-1 5 1} {2-1 5 1}} [claim count 2 claim 4000]
        assert_equal {{3-1 5 1} {6-1 0 0}} [claim count 2 claim 4000]
        assert_equal {{7-1 0 0}} [claim count 0 claim 4000]
        assert_equal {} [claim count 2 claim 4000]
        assert_equal {{s {{4-1 {n 4}} {5-1 {n 5}}}}} [r xreadgroup group g c claim 0 streams s 0]
        assert_equal {{s {{4-1 {n 4}} {5-1 {n 5}}}}} [r xreadgroup group g c claim 0 block 0 streams s 0]
        # Any time will do: also in the future, and of this millisecond. Each comes once.
        assert_equal {1-1 2-1 3-1 4-1 5-1 6-1 7-1} [lsort [lmap entry [claim claim 0] {lindex $entry 0}]]
        assert_equal 1 [llength [claim count 1 CLAIM 0]]
        # The last one counts.
        assert_equal {} [claim claim 0 claim 1000000]
    }

    test "NOACK is not for what is claimed; the consumer is made" {keydb} {
        begin 2
        since 5000 1-1
        r xadd s 3-1 n 3
        assert_equal {{1-1 5 1} {3-1 0 0}} [claim noack claim 4000]
        assert_equal {{1-1 d 2} {2-1 c 1}} [rows]
        foreach consumer [r xinfo consumers s g] {
            assert_range [dict get $consumer inactive] 0 60000
        }
        assert_equal 3-1 [dict get [lindex [r xinfo groups s] 0] last-delivered-id]
        assert_equal 3 [dict get [lindex [r xinfo groups s] 0] entries-read]
    }

    test "what is gone is passed over, and stays pending" {keydb} {
        begin 5
        since 5000 1-1 2-1 3-1 4-1
        r xdel s 1-1 3-1
        assert_equal {{2-1 5 1}} [claim count 1 claim 4000]
        assert_equal {{4-1 5 1}} [claim count 5 claim 4000]
        assert_equal {} [claim claim 4000]
        assert_equal {1-1 2-1 3-1 4-1 5-1} [lmap row [rows] {lindex $row 0}]
    }

    test "what XNACK has released comes first, by id" {keydb} {
        begin 5
        since 5000 1-1
        r xnack s g fail ids 2 4-1 3-1
        r xnack s g fatal ids 1 5-1
        assert_equal [list {3-1 1} {4-1 1} {5-1 9223372036854775807} {1-1 1}] \
            [lmap entry [claim claim 4000] {lreplace $entry 1 1}]
        assert_equal [list {1-1 d 2} {2-1 c 1} {3-1 d 2} {4-1 d 2} {5-1 d 9223372036854775807}] [rows]
    }

    test "errors" {keydb} {
        begin
        set integer "ERR min-idle-time is not an integer or out of range"
        foreach {words error} [list \
            {claim x streams s >} $integer \
            {claim {} streams s >} $integer \
            {claim 1.5 streams s >} $integer \
            {claim 9223372036854775808 streams s >} $integer \
            {claim streams s >} $integer \
            {claim -1 streams s >} "ERR min-idle-time must be a positive integer" \
            {claim -9223372036854775808 streams s >} "ERR min-idle-time must be a positive integer" \
            {claim 1 claim -1 streams s >} "ERR min-idle-time must be a positive integer" \
            {noack streams s > claim} \
                "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified." \
        ] {
            assert_refused $error r xreadgroup group g d {*}$words
        }
        assert_refused "ERR syntax error" r xreadgroup group g d count 1 claim
        assert_refused "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead." \
            r xread claim 1 streams s 0
        assert_refused "NOGROUP No such key 's' or consumer group 'h' in XREADGROUP with GROUP option" \
            r xreadgroup group h d claim 0 streams s >
        assert_equal {{1-1 c 1} {2-1 c 1} {3-1 c 1}} [rows]
        assert_equal {} [claim claim 9223372036854775807]
        assert_equal {s t} [r command getkeys xreadgroup group g d claim 5 streams s t > >]
        assert_equal {s} [r command getkeys xreadgroup group claim claim streams s >]
    }

    test "others are told by XCLAIM of each, and where the group is" {keydb} {
        begin 2
        since 5000 2-1
        r xadd s 3-1 n 3
        set found [journaled_by {claim claim 4000}]
        assert_match {XCLAIM s g d 0 2-1 TIME * RETRYCOUNT 2 FORCE JUSTID LASTID 2-1} [lindex $found 0]
        assert_match {XCLAIM s g d 0 3-1 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 3-1} [lindex $found 1]
        assert_equal {{XGROUP SETID s g 3-1 ENTRIESREAD 3}} [lrange $found 2 end]
        since 5000 1-1 2-1 3-1
        claim claim 4000 noack count 2
        assert_equal {} [journaled_by {claim claim 4000000}]
        set before [list [r xpending s g] [rows] [r debug digest]]
        r debug loadaof
        assert_equal $before [list [r xpending s g] [rows] [r debug digest]]
    }

    test "in transactions and scripts, above maxmemory, for users" {keydb} {
        begin 5
        since 5000 1-1 2-1 3-1 4-1 5-1
        r multi
        r xreadgroup group g d count 1 claim 4000 streams s >
        r xreadgroup group g d count 1 block 0 claim 4000 streams s >
        r xreadgroup group g d block 0 claim 4000000 streams s >
        assert_equal {1-1 2-1 {}} [lmap reply [r exec] {lindex $reply 0 1 0 0}]
        set script {return redis.call('xreadgroup', 'group', 'g', 'd', 'count', 1, 'block', 0, 'claim', ARGV[1],
            'streams', KEYS[1], '>')}
        assert_equal 3-1 [lindex [r eval $script 1 s 4000] 0 1 0 0]
        assert_equal {} [r eval $script 1 s 4000000]
        with_config {maxmemory 1} {
            assert_equal {{4-1 5 1}} [claim count 1 claim 4000]
        }
        r acl setuser u on nopass +@all resetkeys ~t
        set c [connect]
        $c auth u x
        assert_error "NOPERM No permissions to access a key*" {$c xreadgroup group g d claim 1 streams s >}
    }

    # The index follows whatever happens to what is pending; a model is XPENDING.
    test "the order is right after random changes" {keydb} {
        begin 60
        expr {srand(7)}
        for {set round 0} {$round < 300} {incr round} {
            set ids [lsort -unique [lmap x {1 2 3} {string cat [expr {1 + int(rand() * 60)}] -1}]]
            set idle [expr {1000 * (2 + int(rand() * 50))}]
            switch [expr {int(rand() * 14)}] {
                0 - 1 - 2 { r xclaim s g c[string index $ids 0] 0 {*}$ids idle $idle force justid }
                3 { r xack s g {*}$ids }
                4 { r xnack s g fail ids [llength $ids] {*}$ids }
                5 { r xgroup delconsumer s g c[string index $ids 0] }
                6 { r xautoclaim s g e 0 [lindex $ids 0] count 2 justid }
                7 { r xreadgroup group g e count 1 streams s [lindex $ids 0] }
                8 { if {$round % 3 == 0} { r xdel s [lindex $ids 0] } }
                9 { if {$round % 5 == 0} { r debug reload } }
                10 { r copy s copied replace; r rename copied s }
                11 { r multi; r xack s g [lindex $ids 0]; r xclaim s g c 0 {*}$ids force justid; r exec }
            }
            set least [expr {1000 * int(rand() * 50) + 500}]
            set count [expr {1 + int(rand() * 3)}]
            # All at one time.
            r multi
            r xpending s g - + 1000
            r xrange s - +
            r xreadgroup group g d count $count claim $least streams s >
            lassign [r exec] pending entries reply
            set there [lmap entry $entries {lindex $entry 0}]
            set expected {}
            foreach row $pending {
                lassign $row id consumer gone deliveries
                if {$consumer eq {}} {
                    set gone 10000000000000
                }
                if {$gone >= $least && $id in $there} {
                    lappend expected [list [expr {-$gone}] [lindex [split $id -] 0] $id $deliveries]
                }
            }
            set expected [lrange [lsort -integer -index 0 [lsort -integer -index 1 $expected]] 0 [expr {$count - 1}]]
            set found [claimed $reply]
            assert_equal [lmap one $expected {lrange $one 2 3}] [lmap one $found {list [lindex $one 0] [lindex $one 2]}]
            r xclaim s g e 0 {*}[lmap one $found {lindex $one 0}] 1-1 idle 0 justid
        }
    }
}

with_server {enable-debug-command yes} {
    test "a client that waits gets what has become idle enough" {keydb} {
        begin 3
        set a [waiting a]
        set start [clock milliseconds]
        $a -send xreadgroup group g d count 1 block 0 claim 300 streams s >
        set reply [$a -read]
        assert_range [expr {[clock milliseconds] - $start}] 200 20000
        assert_equal 1-1 [lindex $reply 0 1 0 0]
        assert_range [lindex $reply 0 1 0 2] 300 20000
        assert_equal 1 [lindex $reply 0 1 0 3]
        assert_equal {1-1 d 2} [lindex [rows] 0]
        assert_equal 0 [info_field blocked_clients clients]
        # Others were not served, so they wait on; each gets one, in order of arrival.
        set b [waiting b]
        r xclaim s g c 0 1-1 2-1 3-1 idle 0 justid
        foreach client [list $a $b] {
            $client -send xreadgroup group g d count 1 block 0 claim 200 streams s >
            wait_for {[info_field blocked_clients clients] == 1 + ($client eq $b)}
        }
        assert_equal {1-1 2-1} [list [lindex [$a -read] 0 1 0 0] [lindex [$b -read] 0 1 0 0]]
        $a -close
        $b -close
    }

    test "what is handed out while a client waits will be idle enough, too" {keydb} {
        begin 0
        set a [waiting a]
        $a -send xreadgroup group g d block 0 claim 250 streams none other s > > >
        assert_match {NOGROUP*} [lindex [$a -reply] 1]
        $a -send xreadgroup group g d block 0 claim 250 streams s >
        wait_for {[info_field blocked_clients clients] == 1}
        r multi
        r xadd s 1-1 n 1
        r xreadgroup group g c streams s >
        r exec
        assert_equal {{1-1 0 1}} [claimed [$a -read]]
        # Nothing is left of those that were acknowledged meanwhile, or have gone.
        $a -send xreadgroup group g d block 600 claim 200 streams s >
        wait_for {[info_field blocked_clients clients] == 1}
        r xack s g 1-1
        assert_equal {} [$a -read]
        # A timeout that comes first.
        r xreadgroup group g c streams s >
        r xnack s g fail ids 1 1-1 force
        since 0 1-1
        $a -send xreadgroup group g d block 20 claim 100000 streams s >
        assert_equal {} [$a -read]
        $a -close
    }

    test "XNACK, XADD and XCLAIM wake who waits with CLAIM" {keydb} {
        begin 3
        set a [waiting a]
        set wait {xreadgroup group g d block 0 claim 100000 streams s >}
        foreach {words expected} {
            {xnack s g fail ids 2 2-1 1-1} {{1-1 1} {2-1 1}}
            {xadd s 4-1 n 4}               {{4-1 0}}
            {xclaim s g c 0 3-1 idle 200000 justid} {{3-1 1}}
        } {
            $a -send {*}$wait
            wait_for {[info_field blocked_clients clients] == 1}
            r {*}$words
            assert_equal $expected [lmap entry [claimed [$a -read]] {lreplace $entry 1 1}]
        }
        # Who does not claim gets none of it.
        set b [waiting b]
        $b -send xreadgroup group g e block 0 streams s >
        wait_for {[info_field blocked_clients clients] == 1}
        r xnack s g fail ids 1 1-1
        assert_equal 1 [info_field blocked_clients clients]
        r xadd s 5-1 n 5
        assert_equal {{s {{5-1 {n 5}}}}} [$b -read]
        # A key that goes is an answer.
        $a -send {*}[linsert $wait 4 count 0]
        assert_equal 1-1 [lindex [$a -read] 0 1 0 0]
        $a -send {*}$wait
        wait_for {[info_field blocked_clients clients] == 1}
        r xgroup destroy s g
        assert_match {NOGROUP*} [lindex [$a -reply] 1]
        $a -close
        $b -close
    }

    test "while writes are paused nothing is claimed" {keydb} {
        begin 1
        set a [waiting a]
        r client pause 100000 write
        $a -send xreadgroup group g d block 0 claim 50 streams s >
        r client unpause
        wait_for {[info_field blocked_clients clients] == 1 || [rows] eq {{1-1 d 2}}}
        assert_equal 1-1 [lindex [$a -read] 0 1 0 0]
        since 0 1-1
        $a -send xreadgroup group g e block 0 claim 300 streams s >
        wait_for {[info_field blocked_clients clients] == 1}
        r client pause 100000 write
        wait_for {[lindex [r xpending s g - + 10] 0 2] > 500}
        assert_equal {{1-1 c 2}} [rows]
        r client unpause
        assert_range [lindex [$a -read] 0 1 0 2] 500 100000
        assert_equal {{1-1 e 3}} [rows]
        $a -close
    }

    test "an entry whose deletion is taken back can be claimed again" {keydb} {
        begin 2
        since 5000 1-1
        assert_equal 1 [lindex [r debug undo run xdel s 1-1] 0]
        r debug undo run xreadgroup group g d claim 4000 streams s >
        r debug undo back
        r debug undo forget
        assert_equal {{1-1 c 1} {2-1 c 1}} [rows]
        assert_equal {{1-1 5 1}} [claim claim 4000]
    }

    test "data that is loaded while a client waits" {keydb} {
        foreach round {1 2} {
            begin 1
            set a [waiting a]
            $a -send xreadgroup group g d block 0 claim 700 streams s >
            wait_for {[info_field blocked_clients clients] == 1}
            r debug reload
            assert_equal {{1-1 0 1}} [claimed [$a -read]]
            $a -close
        }
        # What nobody but the loader has seen.
        begin 1
        r save
        r xack s g 1-1
        set a [waiting a]
        $a -send xreadgroup group g d block 0 claim 1000 streams s >
        wait_for {[info_field blocked_clients clients] == 1}
        r debug reload nosave
        assert_match {{1-1 * 1}} [claimed [$a -read]]
        $a -close
    }

    test "a client that goes while it waits, and names of all kinds" {keydb} {
        begin 1
        foreach key [list {} [string repeat k 300] "a\0b"] {
            r copy s $key replace
            set a [waiting a]
            $a -send xreadgroup group g d block 0 claim 100 streams $key >
            assert_equal 1-1 [lindex [$a -read] 0 1 0 0]
            $a -send xreadgroup group g d block 0 claim 100 streams $key >
            wait_for {[info_field blocked_clients clients] == 1}
            $a -close
            wait_for {[info_field blocked_clients clients] == 0}
        }
        r select 3
        r xgroup create s g 0 mkstream
        r xadd s 9-1 n 9
        r xreadgroup group g c streams s >
        set a [waiting a]
        $a select 3
        $a -send xreadgroup group g d block 0 claim 100 streams s >
        assert_equal 9-1 [lindex [$a -read] 0 1 0 0]
        $a -close
        r select 0
    }
}

with_server {active-replica yes enable-debug-command yes} {
    test "an active node hands out what is late before what is new, and tells peers of each" {keydb} {
        r xgroup create s g 0 mkstream
        r xadd s 5-1 n 5
        r xreadgroup group g c streams s >
        r debug operate 0 0 KEYDB.OP.XADD s 1-1 n 1
        since 5000 5-1
        r xadd s 9-1 n 9
        assert_equal {{5-1 5 1} {1-1 0 0}} [claim count 2 claim 4000]
        assert_equal {{9-1 0 0}} [claim count 2 claim 4000]
        assert_equal {{1-1 d 1} {5-1 d 2} {9-1 d 1}} [rows]
        # A late entry is new, not one that is pending, so it cannot be given back.
        r debug operate 0 0 KEYDB.OP.XADD s 2-1 n 2
        assert_equal 0 [r xnack s g fail ids 1 2-1]
        set a [waiting a]
        $a -send xreadgroup group g d count 1 block 0 claim 100000 streams s >
        assert_equal {{2-1 0 0}} [claimed [$a -read]]
        $a -send xreadgroup group g e count 1 block 0 claim 200 streams s >
        assert_equal {{1-1 0 1}} [claimed [$a -read]]
        $a -close
    }
}
