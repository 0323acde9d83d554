# SCAN: whoever is there from beginning to end is reported, whatever happens to others meanwhile.

proc scan_all {options {between {}}} {
    set cursor 0
    set found {}
    set rounds 0
    while 1 {
        lassign [r scan $cursor {*}$options] cursor keys
        lappend found {*}$keys
        if {$cursor eq "0"} {
            return $found
        }
        if {![string is wideinteger -strict $cursor] || $cursor <= 0 || $cursor >= 1 << 53} {
            fail "cursor $cursor"
        }
        if {[incr rounds] > 200000} {
            fail "SCAN does not end"
        }
        uplevel 1 $between
    }
}

proc fill {from to {prefix key:}} {
    for {set i $from} {$i < $to} {incr i} {
        r -send set $prefix$i $i
    }
    for {set i $from} {$i < $to} {incr i} {
        r -read
    }
}

with_server {} {
    test "an empty database, a single key" {} {
        assert_reply {array {{bulk 0} {array {}}}} r scan 0
        r set k v
        assert_equal k [scan_all {}]
    }

    test "only HSCAN can leave values out" {keydb} {
        r sadd s a
        r zadd z 1 a
        set error "ERR NOVALUES option can only be used in HSCAN"
        foreach words {{scan 0} {sscan s 0} {zscan z 0}} {
            assert_refused $error r {*}$words novalues
            assert_refused $error r {*}$words count 10 NOVALUES
        }
        assert_refused "ERR syntax error" r sscan s 0 novalue
    }

    test "every key is found, with any COUNT" {} {
        fill 0 1000
        foreach count {1 7 10 100 999 100000} {
            assert_equal 1000 [llength [lsort -unique [scan_all [list count $count]]]] "COUNT $count"
        }
        assert_equal 1000 [llength [scan_all {}]]
        assert_equal {0 1000} [lmap part [r scan 0 count 1000000] {expr {[llength $part] == 1 ? $part : \
            [llength $part]}}]
    }

    test "COUNT bounds the work of a call" {} {
        fill 0 5000
        assert_range [llength [lindex [r scan 0] 1]] 0 60
        assert_range [llength [lindex [r scan 0 count 500] 1]] 400 700
    }

    test "MATCH filters, and an empty page is not the end" {} {
        fill 0 1000
        assert_equal {key:500 key:501 key:502 key:503 key:504 key:505 key:506 key:507 key:508 key:509} \
            [lsort [scan_all {match key:50?}]]
        assert_equal {} [scan_all {MATCH nothing*}]
        assert_equal 1000 [llength [scan_all {match * count 33}]]
        assert_equal key:7 [scan_all {match key:7 count 5}]
    }

    test "TYPE filters" {} {
        fill 0 300
        assert_equal 300 [llength [scan_all {type string}]]
        assert_equal 300 [llength [scan_all {TYPE STRING count 50}]]
        assert_equal {} [scan_all {type hash}]
        assert_equal {} [scan_all {type nonsense}]
        assert_equal 10 [llength [scan_all {type string match key:1? count 20}]]
    }

    test "keys present all the time are found while others come and go" {} {
        fill 0 2000 stays:
        set round 0
        set found [scan_all {count 20} {
            fill [expr {$round * 40}] [expr {$round * 40 + 40}] new:
            for {set i [expr {$round * 40 - 20}]} {$i >= 0 && $i < $round * 40} {incr i} {
                r del new:$i
            }
            incr round
        }]
        set stays [lsort -unique [lsearch -all -inline $found stays:*]]
        assert_equal 2000 [llength $stays]
    }

    test "keys present all the time are found while the table shrinks" {} {
        fill 0 200 stays:
        fill 0 20000 goes:
        set from 0
        set found [scan_all {count 50} {
            if {$from < 20000} {
                set doomed {}
                for {set i $from} {$i < $from + 500} {incr i} {
                    lappend doomed goes:$i
                }
                r del {*}$doomed
                incr from 500
            }
        }]
        assert_equal 200 [llength [lsort -unique [lsearch -all -inline $found stays:*]]]
    }

    test "and while the table grows tenfold" {} {
        fill 0 500 stays:
        set at 0
        set found [scan_all {count 10} {
            if {$at < 10000} {
                fill $at [expr {$at + 500}] new:
                incr at 500
            }
        }]
        assert_equal 500 [llength [lsort -unique [lsearch -all -inline $found stays:*]]]
    }

    test "FLUSHALL in the middle ends a scan" {} {
        fill 0 1000
        lassign [r scan 0] cursor keys
        r flushall
        set rounds 0
        while {$cursor ne "0" && [incr rounds] < 5000} {
            lassign [r scan $cursor] cursor keys
            assert_equal {} $keys
        }
        assert_equal 0 $cursor
    }

    test "dead keys are not reported, and are removed" {} {
        fill 0 50
        for {set i 50} {$i < 100} {incr i} {
            r set key:$i v px 1
        }
        pause 3
        assert_equal 50 [llength [scan_all {count 1000}]]
        wait_for {[r dbsize] == 50}
    }

    test "each database has its own" {} {
        fill 0 10
        r select 1
        fill 0 3 other:
        assert_equal {other:0 other:1 other:2} [lsort [scan_all {}]]
    }

    test "errors" {} {
        foreach cursor {x 1x 18446744073709551616 { 1}} {
            assert_refused "ERR invalid cursor" r scan $cursor
        }
        assert_refused "ERR syntax error" r scan 0 count 0
        assert_refused "ERR syntax error" r scan 0 count -1
        assert_refused "ERR value is not an integer or out of range" r scan 0 count x
        assert_refused "ERR syntax error" r scan 0 foo
        assert_refused "ERR syntax error" r scan 0 foo bar
        assert_refused "ERR syntax error" r scan 0 match
        assert_refused "ERR syntax error" r scan 0 count
        assert_refused "ERR syntax error" r scan 0 type
        assert_refused "ERR wrong number of arguments for 'scan' command" r scan
    }

    test "a cursor nobody gave out does no harm" {} {
        fill 0 100
        foreach cursor {1 12345 281474976710655 18446744073709551615 4503599627370497} {
            lassign [r -typed scan $cursor] type value
            assert_equal array $type
            assert_equal {bulk array} [lmap part $value {lindex $part 0}]
        }
    }
}
