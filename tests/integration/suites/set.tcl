# Sets: what the comparison with redis-server cannot see: forms at their limits, members by chance, large ones.

proc numbers {from to} {
    set result {}
    for {set i $from} {$i < $to} {incr i} {
        lappend result $i
    }
    return $result
}

with_server {} {
    test "forms at their limits" {} {
        with_config {set-max-intset-entries 4} {
            r sadd s 1 2 3 4
            assert_equal intset [r object encoding s]
            r sadd s 5
            assert_equal hashtable [r object encoding s]
            r srem s 1 2 3 4
            assert_equal hashtable [r object encoding s]
            r sadd t 1 2
            r sadd t a
            assert_equal listpack [r object encoding t]
            assert_equal {1 2 a} [lsort [r smembers t]]
            r sadd t {*}[numbers 1 129]
            assert_equal hashtable [r object encoding t]
            r sadd u [string repeat x 64]
            assert_equal listpack [r object encoding u]
            r sadd u [string repeat x 65]
            assert_equal hashtable [r object encoding u]
            r del s t u
        }
    }

    test "max-rand-count limits what random commands may be asked for" {keydb} {
        r sadd s a b c
        r hset h a 1 b 2 c 3
        r zadd z 1 a 2 b 3 c
        set large {{srandmember s 9223372036854775807} {hrandfield h 9223372036854775807}
            {hrandfield h 4611686018427387903 withvalues} {zrandmember z 4611686018427387903 withscores}}
        foreach words $large {
            assert {[llength [r {*}$words]] in {3 6}} $words
        }
        assert_refused "ERR value is out of range" r hrandfield h 4611686018427387904 withvalues
        with_config {max-rand-count 2} {
            foreach words {{srandmember s} {hrandfield h} {zrandmember z}} option {{} withvalues withscores} {
                foreach count {3 -3 9223372036854775807} {
                    assert_refused "ERR value is out of range" r {*}$words $count {*}$option
                }
                foreach count {2 -2 1 0} {
                    set elements [llength [r {*}$words $count {*}$option]]
                    assert_equal [expr {abs($count) * ($option eq {} ? 1 : 2)}] $elements
                }
            }
            assert_equal {3 3} [list [llength [r hrandfield h 5]] [llength [r zrandmember z 5]]]
        }
    }

    test "sets of each form behave alike" {} {
        set words [lmap i [numbers 0 2000] {set i m:$i}]
        foreach {key members} [list ints [numbers 0 100] few {a b c 1 2 3} words $words] {
            r del $key
            assert_equal [llength $members] [r sadd $key {*}$members]
            assert_equal 0 [r sadd $key {*}$members]
            assert_equal [lsort $members] [lsort [r smembers $key]]
            assert_equal {1 0 1} [r smismember $key [lindex $members 0] absent [lindex $members end]]
            assert_equal [llength $members] [llength [lsort -unique [r srandmember $key 100000]]]
            assert_equal 3 [llength [lsort -unique [r srandmember $key 3]]]
            assert_equal 30 [llength [r srandmember $key -30]]
            set seen {}
            set cursor 0
            while 1 {
                lassign [r sscan $key $cursor count 11] cursor some
                lappend seen {*}$some
                if {$cursor == 0} {
                    break
                }
            }
            assert_equal [lsort $members] [lsort $seen]
            r copy $key copy replace
            set popped [r spop copy 3]
            assert_equal 3 [llength [lsort -unique $popped]]
            assert_equal [lsort $members] [lsort [concat $popped [r smembers copy]]]
            lappend popped [r spop copy]
            assert_equal [lsort $members] [lsort [concat $popped [r smembers copy]]]
            lappend popped {*}[r spop copy 100000]
            assert_equal [lsort $members] [lsort $popped]
            assert_equal 0 [r exists copy]
        }
    }

    test "algebra over sets of different forms" {} {
        r del a b c
        r sadd a {*}[numbers 0 600]
        r sadd b {*}[numbers 300 400] x y
        r sadd c {*}[numbers 350 360] x
        assert_equal [numbers 350 360] [lsort -integer [r sinter a b c]]
        assert_equal 10 [r sintercard 3 a b c]
        assert_equal 7 [r sintercard 3 a b c limit 7]
        assert_equal [lsort [concat [numbers 300 350] [numbers 360 400] y]] [lsort [r sdiff b c]]
        assert_equal 602 [r sunionstore d a b c]
        assert_equal 602 [r scard d]
        assert_equal 602 [r sunionstore d d d]
        assert_equal 500 [r sdiffstore d a b]
        assert_equal 0 [r sinterstore d a nothing]
        assert_equal 0 [r exists d]
    }

    test "SMOVE" {} {
        r del a b
        r sadd a 1 2 x
        assert_equal 1 [r smove a b x]
        assert_equal 0 [r smove a b x]
        assert_equal {1 2 x} [lsort [concat [r smembers a] [r smembers b]]]
        assert_equal 1 [r smove b a x]
        assert_equal 0 [r exists b]
    }

    test "workers move members between sets, none is lost" {} {
        r del a b
        r sadd a {*}[numbers 0 200]
        set clients {}
        for {set i 0} {$i < 8} {incr i} {
            lappend clients [connect]
        }
        for {set round 0} {$round < 100} {incr round} {
            foreach c $clients {
                set member [expr {int(rand() * 200)}]
                $c -send smove a b $member
                $c -send smove b a [expr {($member + 7) % 200}]
            }
            foreach c $clients {
                $c -read
                $c -read
            }
        }
        assert_equal [numbers 0 200] [lsort -integer [r sunion a b]]
        assert_equal 200 [expr {[r scard a] + [r scard b]}]
        assert_equal {} [r sinter a b]
    }
}
