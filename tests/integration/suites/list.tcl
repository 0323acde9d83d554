# Lists: what the comparison with redis-server cannot see: long ones of several nodes, compressed ones, several workers.

proc push_many {key from to {width 1}} {
    for {set i $from} {$i < $to} {incr i} {
        r -send rpush $key [string repeat x [expr {$i % $width}]]$i
    }
    for {set i $from} {$i < $to} {incr i} {
        r -read
    }
}

proc model_of {from to {width 1}} {
    set model {}
    for {set i $from} {$i < $to} {incr i} {
        lappend model [string repeat x [expr {$i % $width}]]$i
    }
    return $model
}

with_server {enable-debug-command yes} {
    # A list begins as a listpack, becomes a quicklist beyond the limits of a node, a listpack again at half of them.
    foreach {::size ::most ::text} {8 8 x -1 66 {[string repeat x 60]}} {
        test "how a list is called while it grows and shrinks, list-max-listpack-size $::size" {keydb} {
            with_config [list list-max-listpack-size $::size] {
                set text [subst $::text]
                r rpush l $text
                while {[r object encoding l] eq "listpack"} {
                    r rpush l $text
                }
                set most [expr {[r llen l] - 1}]
                assert {$most <= $::most && $most > $::most * 0.9} $most
                while {[r object encoding l] eq "quicklist"} {
                    r rpop l
                }
                assert_range [r llen l] [expr {$most / 2 - 1}] [expr {($most + 1) / 2}]
                for {set i [r llen l]} {$i < $most} {incr i} {
                    r lpush l $text
                    assert_equal listpack [r object encoding l] "it has grown to [r llen l]"
                }
                r linsert l before $text $text
                assert_equal quicklist [r object encoding l]
                r ltrim l 0 2
                assert_equal listpack [r object encoding l]
                r rpush l {*}[lrepeat $most $text]
                r debug reload
                assert_equal quicklist [r object encoding l]
                r lrem l $most $text
                assert_equal listpack [r object encoding l]
                assert_match "*encoding:listpack*" [r debug object l]
                r lset l 0 [string repeat y 70000]
                assert_equal quicklist [r object encoding l]
            }
        }
    }

    foreach {::size ::depth} {-2 0 -1 1 3 0 7 2} {
        test "a long list, list-max-listpack-size $::size, list-compress-depth $::depth" {} {
            with_config [list list-max-listpack-size $::size list-compress-depth $::depth] {
                push_many l 0 3000 60
                set model [model_of 0 3000 60]
                assert_equal $model [r lrange l 0 -1]
                foreach index {0 1 2999 -1 -3000 1500 -700 77} {
                    set place [expr {$index < 0 ? 3000 + $index : $index}]
                    assert_equal [lindex $model $place] [r lindex l $index]
                    r lset l $index new:$index
                    lset model $place new:$index
                }
                assert_equal $model [r lrange l 0 -1]
                r linsert l before [lindex $model 1000] here
                set model [linsert $model 1000 here]
                r linsert l after [lindex $model 2000] there
                set model [linsert $model 2001 there]
                assert_equal {1000 2001} [list [r lpos l here] [r lpos l there rank -1]]
                assert_equal [lrange $model 990 1010] [r lrange l 990 1010]
                r ltrim l 100 -101
                set model [lrange $model 100 end-100]
                assert_equal $model [r lrange l 0 -1]
                r copy l m
                assert_equal [lrange $model 0 499] [r lpop l 500]
                assert_equal [lreverse [lrange $model end-499 end]] [r rpop l 500]
                assert_equal [lrange $model 500 end-500] [r lrange l 0 -1]
                assert_equal $model [r lrange m 0 -1]
                r del l m
            }
        }
    }

    test "LPOS RANK has no negative without its positive" {keydb} {
        r rpush l a b a
        assert_refused "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807" \
            r lpos l a rank -9223372036854775808
        assert_reply {nullbulk} r lpos l a rank -9223372036854775807
    }

    test "elements of any size in one list" {} {
        set model {}
        foreach size {0 1 63 64 4095 4096 8000 8192 9000 40000 200000} {
            set value [pattern_bytes $size $size]
            lappend model $value $size
            r rpush l $value $size
        }
        assert_equal $model [r lrange l 0 -1]
        while {[llength $model] > 0} {
            assert {[r rpop l] eq [lindex $model end]}
            set model [lrange $model 0 end-1]
        }
        assert_equal 0 [r exists l]
    }

    test "LREM from both ends" {} {
        r rpush l a b a c a d a
        assert_equal 2 [r lrem l 2 a]
        assert_equal {b c a d a} [r lrange l 0 -1]
        assert_equal 1 [r lrem l -1 a]
        assert_equal {b c a d} [r lrange l 0 -1]
        assert_equal 1 [r lrem l 0 a]
        assert_equal {b c d} [r lrange l 0 -1]
    }

    test "workers pass elements round, none is lost" {} {
        set clients {}
        for {set i 0} {$i < 8} {incr i} {
            lappend clients [connect]
        }
        push_many l0 0 200
        for {set round 0} {$round < 150} {incr round} {
            set i 0
            foreach c $clients {
                $c -send lmove l[expr {$i % 4}] l[expr {($i + 1) % 4}] left right
                $c -send rpoplpush l[expr {($i + 2) % 4}] l[expr {$i % 4}]
                incr i
            }
            foreach c $clients {
                $c -read
                $c -read
            }
        }
        set all [concat [r lrange l0 0 -1] [r lrange l1 0 -1] [r lrange l2 0 -1] [r lrange l3 0 -1]]
        assert_equal [model_of 0 200] [lsort -integer $all]
    }

    test "LMPOP takes from the first list that has any" {} {
        r rpush b 1 2 3
        r rpush c 4
        assert_equal {b {1 2}} [r lmpop 3 a b c left count 2]
        assert_equal {b 3} [r lmpop 3 a b c right count 5]
        assert_equal {c 4} [r lmpop 3 a b c left]
        assert_reply {nullarray} r lmpop 3 a b c left
    }
}
