# Sorted sets: what the comparison with redis-server cannot see: forms at their limits, large ones, members by chance,
# words that came later, several workers.

# Members m:0 ... with scores that repeat: as pairs of score and member.
proc scored {count spread} {
    set result {}
    for {set i 0} {$i < $count} {incr i} {
        lappend result [expr {$i * 7919 % $spread}] m:$i
    }
    return $result
}

proc compare_places {a b} {
    if {[lindex $a 0] != [lindex $b 0]} {
        return [expr {[lindex $a 0] < [lindex $b 0] ? -1 : 1}]
    }
    return [string compare [lindex $a 1] [lindex $b 1]]
}

# The same in the order of the sorted set, as pairs of member and score.
proc in_order {pairs} {
    set rows {}
    foreach {score member} $pairs {
        lappend rows [list $score $member]
    }
    set result {}
    foreach row [lsort -command compare_places $rows] {
        lappend result [lindex $row 1] [lindex $row 0]
    }
    return $result
}

proc members {pairs} {
    set result {}
    foreach {member score} $pairs {
        lappend result $member
    }
    return $result
}

with_server {} {
    test "-0 is 0 in each form, by whatever way it comes" {keydb} {
        foreach most {128 0} {
            with_config [list zset-max-listpack-entries $most] {
                r flushall
                r zadd z -0 a 1 b
                assert_equal [expr {$most ? "listpack" : "skiplist"}] [r object encoding z]
                r zincrby z -1 b
                r zincrby z -0 b
                r zincrby z -0.0 c
                r zunionstore u 1 z weights -1
                r zinterstore i 2 z z weights -1 0 aggregate min
                r sadd s a
                r zunionstore m 2 s z weights 0 -1 aggregate min
                foreach key {z u i m} {
                    assert_equal {0 0 0} [r zmscore $key a b c] $key
                }
            }
        }
        with_config {zset-max-listpack-entries 1} {
            r del z
            r zadd z 1 a -0 b ;# the second one makes it an index
            assert_equal {skiplist 0} [list [r object encoding z] [r zscore z b]]
        }
    }

    test "forms at their limits" {} {
        with_config {zset-max-listpack-entries 3 zset-max-listpack-value 5} {
            r zadd z 1 a 2 b 3 c
            assert_equal listpack [r object encoding z]
            r zadd z 5 a 5 b
            assert_equal listpack [r object encoding z]
            r zadd z 4 d
            assert_equal skiplist [r object encoding z]
            r zrem z a b c
            assert_equal skiplist [r object encoding z]
            assert_equal {d 4} [r zrange z 0 -1 withscores]
            r zadd y 1 12345
            assert_equal listpack [r object encoding y]
            r zadd y 1 123456
            assert_equal skiplist [r object encoding y]
            r zunionstore x 1 z
            assert_equal listpack [r object encoding x]
            r zunionstore x 1 y
            assert_equal skiplist [r object encoding x]
            assert_equal {3 5} [list [lindex [r config get zset-max-ziplist-entries] 1] \
                                    [lindex [r config get zset-max-ziplist-value] 1]]
        }
    }

    test "ranges of each form" {} {
        foreach {count spread} {1 1 100 10 3000 500 3000 1} {
            r del z
            set pairs [scored $count $spread]
            assert_equal $count [r zadd z {*}$pairs]
            set sorted [in_order $pairs]
            set names [members $sorted]
            assert_equal $sorted [r zrange z 0 -1 withscores]
            assert_equal [lreverse $names] [r zrevrange z 0 -1]
            for {set turn 0} {$turn < 40} {incr turn} {
                set first [expr {int(rand() * ($count + 4)) - 2}]
                set last [expr {$first + int(rand() * 30)}]
                set low [expr {int(rand() * ($spread + 2)) - 1}]
                set high [expr {$low + int(rand() * 5)}]
                set inside {}
                foreach {member score} $sorted {
                    if {$score > $low && $score <= $high} {
                        lappend inside $member
                    }
                }
                if {$first >= 0} {
                    assert_equal [lrange $names $first $last] [r zrange z $first $last]
                    assert_equal [lrange [lreverse $names] $first $last] [r zrange z $first $last rev]
                }
                assert_equal $inside [r zrangebyscore z ($low $high]
                assert_equal [lreverse $inside] [r zrange z $high ($low byscore rev]
                assert_equal [lrange $inside 2 6] [r zrange z ($low $high byscore limit 2 5]
                assert_equal [lrange [lreverse $inside] 1 end] [r zrevrangebyscore z $high ($low limit 1 -1]
                assert_equal [llength $inside] [r zcount z ($low $high]
                set member [lindex $names [expr {int(rand() * $count)}]]
                set rank [lsearch -exact $names $member]
                assert_equal $rank [r zrank z $member]
                assert_equal [expr {$count - 1 - $rank}] [r zrevrank z $member]
                assert_equal [dict get $sorted $member] [r zscore z $member]
            }
        }
    }

    test "ranges by member" {} {
        foreach count {50 2000} {
            r del z
            set names {}
            for {set i 0} {$i < $count} {incr i} {
                lappend names [format %06d [expr {$i * 3}]]
                r zadd z 0 [lindex $names end]
            }
            assert_equal $names [r zrangebylex z - +]
            assert_equal [lreverse $names] [r zrevrangebylex z + -]
            assert_equal {} [r zrangebylex z + -]
            assert_equal [lrange $names 2 9] [r zrangebylex z \[000004 \[000029]
            assert_equal [lrange $names 2 8] [r zrange z \[000006 (000027 bylex]
            assert_equal [lrange $names 4 5] [r zrange z \[000006 (000027 bylex limit 2 2]
            assert_equal 7 [r zlexcount z \[000006 (000027]
            assert_equal 7 [r zremrangebylex z \[000006 (000027]
            assert_equal [lreplace $names 2 8] [r zrange z 0 -1]
        }
    }

    test "removing ranges" {} {
        foreach {count spread} {100 20 3000 300} {
            r del z
            set sorted [in_order [scored $count $spread]]
            r zadd z {*}[scored $count $spread]
            assert_equal 11 [r zremrangebyrank z 5 15]
            set sorted [lreplace $sorted 10 31]
            assert_equal $sorted [r zrange z 0 -1 withscores]
            set kept {}
            foreach {member score} $sorted {
                if {$score < 3 || $score >= 9} {
                    lappend kept $member $score
                }
            }
            assert_equal [expr {([llength $sorted] - [llength $kept]) / 2}] [r zremrangebyscore z 3 (9]
            assert_equal $kept [r zrange z 0 -1 withscores]
            foreach {member score} $kept {
                assert_equal $score [r zscore z $member]
            }
            assert_equal [expr {[llength $kept] / 2}] [r zremrangebyrank z 0 -1]
            assert_equal 0 [r exists z]
        }
    }

    test "sorted sets of each form behave alike" {} {
        foreach {count spread} {40 7 2000 100} {
            r del z
            set sorted [in_order [scored $count $spread]]
            set names [members $sorted]
            r zadd z {*}[scored $count $spread]
            assert_equal [lsort $names] [lsort [r zrandmember z 100000]]
            assert_equal 3 [llength [lsort -unique [r zrandmember z 3]]]
            assert_equal 30 [llength [r zrandmember z -30]]
            foreach {member score} [r zrandmember z -30 withscores] {
                assert_equal [dict get $sorted $member] $score
            }
            set seen {}
            set cursor 0
            while 1 {
                lassign [r zscan z $cursor count 11] cursor some
                lappend seen {*}$some
                if {$cursor == 0} {
                    break
                }
            }
            assert_equal [lsort $names] [lsort [dict keys $seen]]
            r copy z copy replace
            assert_equal $sorted [r zrange copy 0 -1 withscores]
            assert_equal [lrange $sorted 0 5] [r zpopmin copy 3]
            assert_equal [lrange [lreverse $names] 0 0] [lindex [r zpopmax copy] 0]
            assert_equal [lrange $names 3 end-1] [r zrange copy 0 -1]
            assert_equal [expr {$count - 4}] [llength [lindex [r zmpop 2 none copy max count 100000] 1]]
            assert_equal 0 [r exists copy]
            assert_equal $sorted [r zrange z 0 -1 withscores]
        }
    }

    test "scores change places" {} {
        foreach count {30 1500} {
            r del z
            set scores {}
            for {set i 0} {$i < $count} {incr i} {
                dict set scores m:$i [expr {$i * 31 % 50}]
                r zadd z [dict get $scores m:$i] m:$i
            }
            for {set i 0} {$i < 600} {incr i} {
                set member m:[expr {int(rand() * $count)}]
                set by [expr {int(rand() * 21) - 10}]
                dict incr scores $member $by
                assert_equal [dict get $scores $member] [r zincrby z $by $member]
            }
            set pairs {}
            dict for {member score} $scores {
                lappend pairs $score $member
            }
            assert_equal [in_order $pairs] [r zrange z 0 -1 withscores]
        }
    }

    test "algebra over large sets" {} {
        r del a b s d
        for {set i 0} {$i < 600} {incr i} {
            lappend a $i $i
            lappend b [expr {$i * 10}] [expr {$i + 300}]
        }
        r zadd a {*}$a
        r zadd b {*}$b
        r sadd s 10 350 880 999
        assert_equal 901 [r zunionstore d 3 a b s]
        assert_equal {11 851 5801 1} [r zmscore d 10 350 880 999]
        assert_equal 300 [r zinterstore d 2 a b aggregate min]
        assert_equal {0 599} [list [r zscore d 300] [r zscore d 599]]
        assert_equal {300 0 301 10} [r zrange d 0 1 withscores]
        assert_equal {10 350} [r zinter 2 s a]
        assert_equal {350 2 880 2} [r zinter 2 b s weights 0 2 aggregate sum withscores]
        assert_equal 20 [r zintercard 2 a b limit 20]
        assert_equal 299 [r zdiffstore d 3 a b s]
        assert_equal {11 11} [r zrange d 10 10 withscores]
        assert_equal 0 [r zinterstore d 2 a nothing]
        assert_equal 0 [r exists d]
    }

    test "a score that stays is not less, nor greater" {} {
        foreach count {1 300} {
            r del z
            r zadd z {*}[scored $count 10]
            assert_reply nullbulk r zadd z lt incr 0 m:0
            assert_reply nullbulk r zadd z gt incr 0 m:0
            assert_reply {bulk -1} r zadd z lt incr -1 m:0
            assert_reply nullbulk r zadd z gt incr -1 m:0
            assert_reply {int 0} r zadd z ch gt -1 m:0
        }
    }

    test "the rank with the score" keydb {
        r zadd z 1 a 2.5 b
        assert_equal {1 2.5} [r zrank z b withscore]
        assert_equal {0 2.5} [r zrevrank z b WITHSCORE]
        assert_reply nullarray r zrank z c withscore
        assert_error "ERR syntax error" {r zrank z b withscores}
        assert_error "ERR syntax error" {r zrank z b withscore withscore}
    }

    test "workers move scores, none is lost" {} {
        set clients {}
        for {set i 0} {$i < 8} {incr i} {
            lappend clients [connect]
        }
        set sum 0
        for {set round 0} {$round < 100} {incr round} {
            foreach c $clients {
                for {set k 0} {$k < 5} {incr k} {
                    set by [expr {int(rand() * 9) - 4}]
                    incr sum $by
                    $c -send zincrby z $by m:[expr {int(rand() * 300)}]
                }
            }
            foreach c $clients {
                for {set k 0} {$k < 5} {incr k} {
                    $c -read
                }
            }
        }
        foreach {member score} [r zrange z 0 -1 withscores] {
            incr sum [expr {-int($score)}]
        }
        assert_equal 0 $sum
    }
}
