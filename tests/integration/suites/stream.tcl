# Streams: what the comparison with redis-server cannot see: ids made of the time, long streams, waiting readers.

proc blocked_count {} {
    return [info_field blocked_clients clients]
}

# A client that sent the command and waits.
proc waiting args {
    set before [blocked_count]
    set c [connect]
    $c -send {*}$args
    wait_for {[blocked_count] == $before + 1}
    return $c
}

proc ids_of entries {
    return [lmap entry $entries {lindex $entry 0}]
}

proc lseq_ids {from to} {
    for {set i $from} {$i <= $to} {incr i} {
        lappend ids $i-1
    }
    return $ids
}

# Compares ids as streams order them.
proc id_before {one other} {
    lassign [split $one -] ms seq
    lassign [split $other -] other_ms other_seq
    return [expr {$ms < $other_ms || $ms == $other_ms && $seq < $other_seq}]
}

# How many of the model's ids, pairs of {id value}, go from its front.
proc model_trim {model strategy threshold} {
    if {$strategy eq "maxlen"} {
        return [lrange $model end-[expr {$threshold - 1}] end]
    }
    return [lmap entry $model {
        if {[id_before [lindex $entry 0] $threshold]} continue
        set entry
    }]
}

proc assert_stream {key model} {
    set entries [lmap entry $model {list [lindex $entry 0] [list field [lindex $entry 1]]}]
    assert_equal [llength $model] [r xlen $key]
    assert_equal $entries [r xrange $key - +]
    assert_equal [lreverse $entries] [r xrevrange $key + -]
    if {[llength $model] > 0} {
        assert_equal [lindex $entries 0] [dict get [r xinfo stream $key] first-entry]
        assert_equal [lindex $entries end] [dict get [r xinfo stream $key] last-entry]
    }
}

with_server {enable-debug-command yes} {
    test "ids made of the time ascend, whoever adds" {} {
        set before [clock milliseconds]
        set clients [lmap n {1 2 3 4 5 6} {connect}]
        for {set round 0} {$round < 100} {incr round} {
            foreach c $clients {
                $c -send xadd s * n $round
            }
            foreach c $clients {
                lappend given [$c -read]
            }
        }
        set ids [ids_of [r xrange s - +]]
        assert_equal 600 [llength $ids]
        foreach id [lrange $ids 1 end] last [lrange $ids 0 end-1] {
            if {$id ne "" && ![id_before $last $id]} {
                fail "$id after $last"
            }
        }
        assert_equal [lsort $ids] [lsort $given]
        lassign [split [lindex $ids 0] -] first_ms
        assert_range $first_ms [expr {$before - 1000}] [clock milliseconds]
    }

    test "a time before the last id: its sequence goes on" {} {
        set future [expr {[clock milliseconds] + 10000000}]
        r xadd s2 $future-7 a b
        assert_equal $future-8 [r xadd s2 * a b]
        assert_equal $future-9 [r xadd s2 $future-* a b]
        r xadd s2 $future-18446744073709551615 a b
        assert_equal [expr {$future + 1}]-0 [r xadd s2 * a b]
    }

    test "after the last id of all there is no other" {} {
        r xadd last 18446744073709551615-18446744073709551614 a b
        assert_equal 18446744073709551615-18446744073709551615 [r xadd last * a b]
        foreach id {* 1-1 18446744073709551615-*} {
            assert_refused "ERR The stream has exhausted the last possible ID, unable to add more items" \
                r xadd last $id a b
        }
        assert_reply {nullarray} r xread streams last 18446744073709551615-18446744073709551615
        r xadd seq 5-18446744073709551615 a b
        assert_refused "ERR The ID specified in XADD is equal or smaller than the target stream top item" \
            r xadd seq 5-* a b
    }

    foreach {::bytes ::entries} {4096 100 0 1 0 0 300 7 1 0} {
        test "random changes against a model, nodes of $::bytes bytes and $::entries entries" {} {
            with_config [list stream-node-max-bytes $::bytes stream-node-max-entries $::entries] {
                r del s
                set model {}
                set ms 1
                for {set step 0} {$step < 1500} {incr step} {
                    set draw [expr {rand()}]
                    if {$draw < 0.75 || [llength $model] == 0} {
                        incr ms [expr {rand() < 0.5}]
                        set value [string repeat v [expr {int(rand() * 60)}]]
                        lappend model [list [r xadd s $ms-* field $value] $value]
                    } elseif {$draw < 0.93} {
                        set place [expr {int(rand() * [llength $model])}]
                        assert_equal 1 [r xdel s [lindex $model $place 0] 99999999-1]
                        set model [lreplace $model $place $place]
                    } elseif {$draw < 0.95} {
                        set keep [expr {[llength $model] - int(rand() * 40)}]
                        set left [model_trim $model maxlen [expr {max($keep, 0)}]]
                        assert_equal [expr {[llength $model] - [llength $left]}] \
                            [r xtrim s maxlen [expr {max($keep, 0)}]]
                        set model $left
                    } elseif {$draw < 0.97} {
                        set id [lindex $model [expr {int(rand() * min(30, [llength $model]))}] 0]
                        set left [model_trim $model minid $id]
                        assert_equal [expr {[llength $model] - [llength $left]}] [r xtrim s minid $id]
                        set model $left
                    } else {
                        set from [lindex $model [expr {int(rand() * [llength $model])}] 0]
                        set to [lindex $model [expr {int(rand() * [llength $model])}] 0]
                        set wanted [lmap entry $model {
                            set id [lindex $entry 0]
                            if {[id_before $id $from] || [id_before $to $id]} continue
                            set id
                        }]
                        assert_equal $wanted [ids_of [r xrange s $from $to]]
                        assert_equal [lreverse $wanted] [ids_of [r xrevrange s $to $from]]
                        assert_equal [lrange $wanted 0 2] [ids_of [r xrange s $from $to count 3]]
                    }
                }
                assert_stream s $model
                r copy s t replace
                r del s
                assert_stream t $model
            }
        }
    }

    test "XTRIM with ~ takes whole nodes, LIMIT entries at most" {} {
        with_config {stream-node-max-entries 10} {
            r del s
            for {set i 1} {$i <= 100} {incr i} {
                r xadd s $i-1 field $i
            }
            assert_equal 0 [r xtrim s maxlen ~ 95]
            assert_equal 10 [r xtrim s maxlen ~ 85]
            assert_equal 0 [r xtrim s maxlen ~ 0 limit 9]
            assert_equal 20 [r xtrim s maxlen ~ 0 limit 29]
            assert_equal 10 [r xtrim s minid ~ 50-0]
            assert_equal 41-1 [lindex [r xrange s - +] 0 0]
            r xadd s maxlen ~ 25 101-1 field 101
            assert_equal 31 [r xlen s]
            r xadd s maxlen = 25 102-1 field 102
            assert_equal 25 [r xlen s]
        }
    }

    test "how many entries of a size are in a node" {} {
        foreach {size least} {37 86 500 7 1000 4 1365 2 2000 2 2047 1 4000 1} {
            r del s
            while {![r exists s] || [dict get [r xinfo stream s] radix-tree-keys] == 1} {
                r xadd s * f [string repeat v $size]
            }
            assert_equal $least [expr {[r xlen s] - 1}] "values of $size bytes"
        }
    }

    test "nodes that are no longer written to are packed, and read and changed as before" {} {
        r del s t
        for {set i 1} {$i <= 2000} {incr i} {
            r xadd s $i-1 number $i text "the same in all of them"
            r xadd t $i-1 number $i text [pattern_bytes 23 $i]
        }
        assert {[r memory usage s] * 3 < [r memory usage t] * 2}
        assert_equal [lseq_ids 1 2000] [ids_of [r xrange s - +]]
        assert_equal [lreverse [lseq_ids 1 2000]] [ids_of [r xrevrange s + -]]
        foreach i {1 99 100 101 777 1000 1999 2000} {
            assert_equal [list [list $i-1 [list number $i text "the same in all of them"]]] [r xrange s $i $i]
            assert_equal [list [list $i-1 [list number $i text [pattern_bytes 23 $i]]]] [r xrange t $i $i]
        }
        r copy s u replace
        set digest [r debug digest-value s]
        assert_equal $digest [r debug digest-value u]
        foreach i {150 151 1 2000 1100} {
            assert_equal 1 [r xdel s $i-1]
            assert_equal 0 [r xdel s $i-1]
        }
        assert_equal 197 [r xtrim s minid 201-0]
        assert_equal {201-1 1999-1 1798} [list [lindex [r xrange s - + count 1] 0 0] \
            [lindex [r xrevrange s + - count 1] 0 0] [r xlen s]]
        assert_equal $digest [r debug digest-value u]
    }

    test "a stream without entries stays, and goes on from its last id" {} {
        r del s
        r xadd s 5-5 a b
        r xadd s 5-6 a b
        assert_equal 2 [r xdel s 5-5 5-6]
        assert_equal 1 [r exists s]
        assert_equal 0 [r xlen s]
        assert_equal {} [r xrange s - +]
        assert_refused "ERR The ID specified in XADD is equal or smaller than the target stream top item" \
            r xadd s 5-6 a b
        assert_refused "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id" r xsetid s 5-5
        assert_equal OK [r xsetid s 7-1]
        assert_equal 7-2 [r xadd s 7-* a b]
    }

    test "ids of deleted entries don't come again in their node" {} {
        r del s
        foreach id {5-1 5-2 5-3} {
            r xadd s $id a b
        }
        r xdel s 5-3
        r xsetid s 5-3 entriesadded 3 maxdeletedid 0-1
        assert_refused "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id" r xsetid s 5-2
        r xsetid s 5-3 entriesadded 3 maxdeletedid 5-3
        foreach words {5-1 {5-2 entriesadded 3 maxdeletedid 0-1}} {
            assert_refused "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id" \
                r xsetid s {*}$words
        }
        assert_equal 5-4 [r xadd s 5-* a b]
        assert_equal 1 [r xdel s 5-4]
    }

    test "fields and values of any size and kind" {} {
        r del s
        set pairs {}
        foreach size {0 1 63 64 4095 4096 20000 100000} {
            lappend pairs [pattern_bytes $size $size] [pattern_bytes $size 3] n$size $size
        }
        r xadd s 1-1 {*}$pairs
        r xadd s 1-2 {*}$pairs
        r xadd s 1-3 {*}[lreverse $pairs]
        assert_equal [list [list 1-1 $pairs] [list 1-2 $pairs] [list 1-3 [lreverse $pairs]]] [r xrange s - +]
        r xdel s 1-2
        assert_equal [list [list 1-3 [lreverse $pairs]]] [r xrange s 1-2 +]
    }

    test "what others ask about streams" {} {
        r del d e
        r xadd d 1-1 f v
        assert_equal 2ed9a7a81688084b1f7eae33456ef7727d357031 [r debug digest-value d]
        r xadd e 1-1 f v
        r xadd e 1-2 f w
        assert_equal 1facc2e5b9e7c803796e57fb755ac9bf21b79c97 [r debug digest-value e]
        assert_equal {stream stream} [list [r type d] [r object encoding d]]
        assert_match "*encoding:stream*" [r debug object d]
        set small [r memory usage d]
        for {set i 0} {$i < 500} {incr i} {
            r xadd d * field [pattern_bytes 50 $i]
        }
        assert {[r memory usage d] > $small + 10000}
        set key_bytes [r memory usage d]
        r xgroup create d g 0
        for {set i 0} {$i < 50} {incr i} {
            r xreadgroup group g consumer:$i count 5 streams d >
        }
        assert {[r memory usage d] > $key_bytes + 50 * 100}
    }

    test "effects name the id that was made, and what is left" {} {
        r del s
        r debug journal start
        with_config {stream-node-max-entries 2} {
            set ids [lmap n {1 2 3 4 5} {r xadd s * field $n}]
            r xadd s maxlen ~ 3 limit 100 * field 6
            r xtrim s minid ~ [lindex $ids 4]
        }
        set effects [r debug journal read]
        r debug journal stop
        foreach id $ids {
            assert_match "*xadd\r\n*s\r\n*$id\r\n*" $effects
        }
        assert_match "*xadd\r\n*maxlen\r\n\$1\r\n=\r\n\$1\r\n4\r\n*" $effects
        assert_match "*xtrim\r\n*minid\r\n\$1\r\n=\r\n*[lindex $ids 4]\r\n*" $effects
        assert {![string match -nocase *limit* $effects]}
    }

    test "XREAD waits, from what was last when it came" {} {
        r del s t
        r xadd s 1-1 a b
        set new [waiting xread block 0 streams s t $ $]
        set old [waiting xread block 0 count 1 streams t 0]
        set later [waiting xread block 0 streams t 3-0]
        r xadd t 1-1 a b
        assert_equal {{t {{1-1 {a b}}}}} [$new -read]
        assert_equal {{t {{1-1 {a b}}}}} [$old -read]
        r xadd t 3-0 a b
        assert_equal 1 [blocked_count]
        r multi
        r xadd t 3-1 a b
        r xadd t 3-2 a b
        r exec
        assert_equal {{t {{3-1 {a b}} {3-2 {a b}}}}} [$later -read]
        r xadd s 1-2 a b
        assert_equal 0 [blocked_count]
    }

    test "all who wait get the entry, on every worker" {} {
        r del s
        set readers [lmap n [lrepeat 12 x] {waiting xread block 0 streams s $}]
        r xadd s 1-1 a b
        foreach c $readers {
            assert_equal {{s {{1-1 {a b}}}}} [$c -read]
        }
    }

    test "a reader that waits does not mind what becomes of the key" {} {
        r del s
        r xadd s 5-5 a b
        set c [waiting xread block 0 streams s 5-5]
        r del s
        r set s text
        r del s
        r xadd s 5-5 a b
        r multi
        r xadd s 5-6 a b
        r xdel s 5-6
        r exec
        r xsetid s 9-9
        assert_equal 1 [blocked_count]
        r xadd s 9-10 a b
        assert_equal {{s {{9-10 {a b}}}}} [$c -read]
    }

    test "a stream that comes by another name serves those who wait" {} {
        r del s t
        r xadd t 1-1 a b
        set c [waiting xread block 0 streams s 0]
        r rename t s
        assert_equal {{s {{1-1 {a b}}}}} [$c -read]
        set c [waiting xread block 0 streams t 0]
        r copy s t
        assert_equal {{t {{1-1 {a b}}}}} [$c -read]
    }

    test "XREAD waits no longer than it says, and not in transactions" {} {
        r del s
        set c [connect]
        assert_equal {nullarray} [$c -typed xread block 10 streams s $]
        r multi
        r xread block 0 streams s $
        r xadd s 1-1 a b
        assert_equal {{} 1-1} [r exec]
        $c hello 3
        assert_equal {null} [$c -typed xread block 10 streams s $]
        assert_equal {map {{bulk s} {array {{array {{bulk 1-1} {array {{bulk a} {bulk b}}}}}}}}} \
            [$c -typed xread block 10 streams s 0]
        $c -send xread block 0 streams s $
        wait_for {[blocked_count] == 1}
        r xadd s 1-2 a b
        assert_equal {map {{bulk s} {array {{array {{bulk 1-2} {array {{bulk a} {bulk b}}}}}}}}} [$c -reply]
        assert_refused "ERR timeout is negative" r xread block -1 streams s $
        assert_refused "ERR timeout is not an integer or out of range" r xread block 1.5 streams s $
    }

    test "a name may be STREAMS" {} {
        r del streams s
        r xadd streams 1-1 a b
        r xgroup create streams streams 0
        assert_equal {{streams {{1-1 {a b}}}}} [r xread streams streams 0]
        assert_equal {{streams {{1-1 {a b}}}}} [r xreadgroup noack group streams streams streams streams >]
        assert_equal streams [r command getkeys xreadgroup noack group streams streams streams streams >]
        assert_equal {a b} [r command getkeys xread count 1 block 5 streams a b 0 0]
    }

    test "streams are used while everything of them moves" {keydb} {
        r flushall
        foreach key {a b c} {
            for {set i 1} {$i <= 1500} {incr i} {
                r xadd $key $i-1 number $i text [string repeat $key 20]
            }
            r xgroup create $key g 0
        }
        r copy a still
        set digest [r debug digest-value still]
        r debug defrag-all 1
        r config set active-defrag-cycle-max 90 activedefrag yes
        wait_for {[info_field active_defrag_running memory] == 90}
        for {set round 0} {$round < 20} {incr round} {
            set before [info_field active_defrag_hits stats]
            foreach key {a b c} {
                set first [expr {$round * 50 + 1}]
                set got [lindex [r xreadgroup group g me count 50 streams $key >] 0 1]
                assert_equal [lrange [lseq_ids $first [expr {$first + 49}]] 0 end] [ids_of $got]
                assert_equal 50 [r xack $key g {*}[ids_of $got]]
                r xdel $key [expr {$round * 23 + 1001}]-1
                r xadd $key * number $round
            }
            r xtrim b minid [expr {$round * 50}]
            wait_for {[info_field active_defrag_hits stats] > $before}
        }
        r config set activedefrag no
        wait_for {[info_field active_defrag_running memory] == 0}
        r debug defrag-all 0
        assert_equal $digest [r debug digest-value still]
        assert_equal [lseq_ids 1 1500] [ids_of [r xrange still - +]]
    }
}
