# Many clients at once, which on KeyDB sit on several workers: nothing may be lost, torn or reordered.

proc drain {clients count} {
    foreach c $clients {
        for {set i 0} {$i < $count} {incr i} {
            $c -reply
        }
    }
}

with_server {} {
    test "INCR from 16 clients adds up" {} {
        set clients [connect_many 16]
        set each 1500
        for {set i 0} {$i < $each} {incr i 50} {
            foreach c $clients {
                for {set j 0} {$j < 50} {incr j} {
                    $c -send incr counter
                }
            }
        }
        set seen {}
        foreach c $clients {
            set last 0
            for {set i 0} {$i < $each} {incr i} {
                set value [$c -read]
                assert {$value > $last} "replies of one client grow"
                lappend seen [set last $value]
            }
        }
        assert_equal [expr {16 * $each}] [r get counter]
        assert_equal [expr {16 * $each}] [llength [lsort -unique -integer $seen]]
    }

    test "APPEND loses no byte" {} {
        set clients [connect_many 12]
        set letter 65
        foreach c $clients {
            for {set i 0} {$i < 400} {incr i} {
                $c -send append log [format %c $letter][format %03d $i]
            }
            incr letter
        }
        drain $clients 400
        set log [r get log]
        assert_equal [expr {12 * 400 * 4}] [string length $log]
        array set next {}
        for {set at 0} {$at < [string length $log]} {incr at 4} {
            set who [string index $log $at]
            scan [string range $log $at+1 $at+3] %d number
            assert_equal [incr next($who)] [expr {$number + 1}] "order of $who"
        }
    }

    test "transactions are not mixed with others" {} {
        set clients [connect_many 8]
        for {set round 0} {$round < 60} {incr round} {
            foreach c $clients {
                $c -send multi
                $c -send incr a
                $c -send incr b
                $c -send mget a b
                $c -send incr a
                $c -send incr b
                $c -send mget b a
                $c -send exec
            }
        }
        foreach c $clients {
            for {set round 0} {$round < 60} {incr round} {
                for {set i 0} {$i < 7} {incr i} {
                    $c -read
                }
                lassign [$c -read] a1 b1 pair1 a2 b2 pair2
                assert_equal [list $a1 $a1] [list $b1 [lindex $pair1 0]]
                assert_equal [list [expr {$a1 + 1}] [expr {$a1 + 1}] [list $a2 $a2]] [list $a2 $b2 $pair2]
            }
        }
        assert_reply {array {{bulk 960} {bulk 960}}} r mget a b
    }

    test "MSET and MGET of several keys are never seen half" {} {
        set clients [connect_many 10]
        set keys {k1 k2 k3 k4 k5 k6 k7 k8}
        set pairs {}
        foreach key $keys {
            lappend pairs $key 0
        }
        r mset {*}$pairs
        set number 0
        for {set round 0} {$round < 80} {incr round} {
            foreach c $clients {
                incr number
                $c -send mset k1 $number k5 $number k3 $number k2 $number k8 $number k7 $number k6 $number k4 $number
                $c -send mget {*}$keys
            }
        }
        foreach c $clients {
            for {set round 0} {$round < 80} {incr round} {
                $c -read
                assert_equal 1 [llength [lsort -unique [$c -read]]]
            }
        }
    }

    test "keys given in opposite order do not lock each other out" {} {
        set clients [connect_many 12]
        for {set round 0} {$round < 100} {incr round} {
            foreach {c d} $clients {
                $c -send mset a 1 b 2 c 3 d 4
                $d -send mset d 1 c 2 b 3 a 4
                $c -send rename a b
                $d -send copy b a replace
                $c -send del a b c d
                $d -send del d c b a
            }
        }
        drain $clients 300
        assert_equal PONG [r ping]
    }

    test "of two who watch the same key one wins" {} {
        set clients [connect_many 8]
        r set tickets 60
        set sold 0
        while {[r get tickets] > 0} {
            foreach c $clients {
                $c -send watch tickets
                $c -send get tickets
            }
            foreach c $clients {
                $c -read
                set left($c) [$c -read]
            }
            foreach c $clients {
                $c -send multi
                $c -send set tickets [expr {$left($c) - 1}]
                $c -send exec
            }
            set winners 0
            foreach c $clients {
                $c -read
                $c -read
                incr winners [expr {[$c -read] eq "OK"}]
            }
            assert_equal 1 $winners
            incr sold $winners
        }
        assert_equal 60 $sold
    }

    test "optimistic increments, every conflict is seen" {} {
        set clients [connect_many 6]
        set done 0
        for {set round 0} {$round < 80} {incr round} {
            foreach c $clients {
                $c watch n
                set value [$c get n]
                $c -send multi
                $c -send set n [expr {($value eq {} ? 0 : $value) + 1}]
                $c -send exec
            }
            foreach c $clients {
                $c -read
                $c -read
                if {[$c -read] eq "OK"} {
                    incr done
                }
            }
        }
        assert_equal $done [r get n]
    }

    test "CLIENT KILL reaches every worker" {} {
        foreach c [connect_many 24] {
            assert_reply {int 1} r client kill id [$c client id]
            assert {[$c -closed]}
        }
        set clients [connect_many 24]
        assert_reply {int 24} r client kill type normal
        foreach c $clients {
            assert {[$c -closed]}
        }
        wait_for {[info_field connected_clients clients] == 1}
    }

    test "clients kill one another" {} {
        set clients [connect_many 16]
        set ids [lmap c $clients {$c client id}]
        foreach c $clients id [lreverse $ids] {
            catch {$c -send client kill id $id skipme no}
        }
        foreach c $clients {
            $c -closed 500
        }
        assert_equal PONG [r ping]
        wait_for {[info_field connected_clients clients] <= 9}
    }

    test "CLIENT LIST while clients come and go" {} {
        set steady [connect_many 10]
        for {set round 0} {$round < 30} {incr round} {
            set brief [connect_many 5]
            foreach c $steady {
                $c -send client list
                $c -send info clients
            }
            foreach c $brief {
                $c -close
            }
            foreach c $steady {
                assert {[llength [client_lines [$c -read]]] >= 11}
                $c -read
            }
        }
        wait_for {[info_field connected_clients clients] == 11}
    }

    test "FLUSHALL and SWAPDB while others write" {} {
        set clients [connect_many 12]
        for {set round 0} {$round < 40} {incr round} {
            set i 0
            foreach c $clients {
                $c -send set k$i:$round [string repeat v 100]
                $c -send mset x$round 1 y$i 2
                $c -send [lindex {flushall ping swapdb ping flushdb ping} [expr {$i % 6}]] \
                    {*}[expr {$i % 6 == 2 ? {0 1} : {}}]
                $c -send get k$i:$round
                $c -send dbsize
                incr i
            }
        }
        foreach c $clients {
            for {set i 0} {$i < 200} {incr i} {
                set reply [$c -reply]
                if {[lindex $reply 0] eq "error"} {
                    fail $reply
                }
            }
        }
        r flushall
        assert_reply {int 0} r dbsize
        assert_equal "# Keyspace\r\n" [r info keyspace]
    }

    test "KEYS, SCAN, RANDOMKEY, DBSIZE while others write" {} {
        set clients [connect_many 8]
        for {set i 0} {$i < 300} {incr i} {
            r set stays:$i v
        }
        for {set round 0} {$round < 15} {incr round} {
            foreach c $clients {
                for {set i 0} {$i < 40} {incr i} {
                    $c -send set go:$c:$i v px 5
                }
            }
            assert_equal 300 [llength [r keys stays:*]]
            set cursor 0
            set found {}
            while 1 {
                lassign [r scan $cursor match stays:* count 50] cursor keys
                lappend found {*}$keys
                if {$cursor eq "0"} {
                    break
                }
            }
            assert_equal 300 [llength [lsort -unique $found]]
            assert {[r randomkey] ne {} && [r dbsize] >= 300}
            drain $clients 40
        }
        wait_for {[r dbsize] == 300}
    }

    test "1 MiB values from several clients at once" {} {
        set clients [connect_many 6]
        set values {}
        for {set i 0} {$i < 6} {incr i} {
            lappend values [pattern_bytes 1048576 $i]
        }
        for {set round 0} {$round < 4} {incr round} {
            foreach c $clients value $values {
                $c -send set big:[expr {$round % 2 ? $c : "shared"}] $value
            }
            foreach c $clients {
                assert_equal OK [$c -read]
            }
            foreach c $clients {
                $c -send get big:[expr {$round % 2 ? $c : "shared"}]
            }
            foreach c $clients value $values {
                set got [$c -read]
                assert {$round % 2 ? $got eq $value : $got in $values} "client $c round $round"
            }
        }
    }

    test "a value is replaced while it is being sent" {} {
        set old [pattern_bytes 3000000 1]
        set new [pattern_bytes 3000000 2]
        r set k $old
        set readers [connect_many 6]
        foreach c $readers {
            $c -send get k
            $c -send get k
        }
        r set k $new
        r append k x
        r setrange k 0 [string repeat z 1000]
        r del k
        foreach c $readers {
            for {set i 0} {$i < 2} {incr i} {
                set got [$c -read]
                assert {$got eq {} || $got eq $old || $got eq $new || [string length $got] == 3000001 ||
                    [string range $got 0 999] eq [string repeat z 1000]} "a mixed value"
            }
        }
    }

    test "CONFIG SET while others work" {} {
        set clients [connect_many 8]
        for {set round 0} {$round < 30} {incr round} {
            foreach c $clients {
                $c -send incr n
                $c -send config set hz [expr {10 + $round}] timeout 0
                $c -send config get hz
            }
        }
        drain $clients 90
        assert_equal [expr {8 * 30}] [r get n]
        r config set hz 10
    }

    test "expiring keys under many hands" {} {
        set clients [connect_many 8]
        for {set round 0} {$round < 20} {incr round} {
            foreach c $clients {
                for {set i 0} {$i < 30} {incr i} {
                    $c -send set k$i v px [expr {1 + $i % 4}]
                    $c -send get k[expr {29 - $i}]
                    $c -send persist k$i
                    $c -send pexpire k$i 2
                }
            }
            drain $clients 120
        }
        wait_for {[r dbsize] == 0}
    }
}

# A client on the same worker as another one.
proc beside client {
    set wanted [worker_of $client]
    for {set i 0} {$i < 200} {incr i} {
        set c [connect]
        if {[worker_of $c] == $wanted} {
            return $c
        }
    }
    fail "no further client on worker $wanted"
}

# A client on a worker where neither `client` sits nor the one that asks for figures.
proc away_from client {
    set taken [list [worker_of $client] [worker_of r]]
    for {set i 0} {$i < 200} {incr i} {
        set c [connect]
        if {[worker_of $c] ni $taken} {
            return $c
        }
    }
    skip "too few workers"
}

proc worker_of client {
    regexp {current_client_thread:(\d+)} [$client info clients] all worker
    return $worker
}

# Returns when the key's stripe is held by somebody: a GET of it waits.
proc wait_for_holder key {
    wait_for {[get_is_parked $key]}
}

with_server {min-clients-per-thread 0 enable-debug-command yes} {
    test "the key of a path is the same after the command was parked" {keydb} {
        set holds [connect]
        set client [connect]
        set others [beside $client]
        $holds -send debug hold tree 30
        wait_for_holder tree
        set before [parked_so_far]
        $client -send keydb.nhset tree.branch.leaf value
        wait_for {[parked_so_far] > $before}
        $others echo [string repeat x 200] ;# takes the place of what was received before
        r debug release hold
        assert_equal OK [$holds -read]
        assert_equal 0 [$client -read]
        assert_equal tree [r keys *]
        assert_equal value [r keydb.nhget tree.branch.leaf]
        r flushall
    }

    # One worker has a client that asked for the gate and one that waits for a stripe; the first is killed.
    test "a killed client that waited for all keys keeps nobody out" {keydb} {
        set asks [connect]
        set waits [beside $asks]
        set works [away_from $asks]
        set holds [connect]
        set id [$asks client id]
        $holds -send debug hold held 30
        wait_for_holder held
        set before [parked_so_far]
        $waits multi
        $waits set held v
        $waits -send exec
        wait_for {[parked_so_far] > $before}
        $works -send debug busy other 30
        wait_for_holder other
        set before [parked_so_far]
        $asks -send flushdb
        wait_for {[parked_so_far] > $before}
        r client kill id $id
        r debug release busy
        assert_reply {status OK} $works -reply
        assert_reply {status OK} r flushdb
        r debug release hold
        assert_reply {status OK} $holds -reply
        assert_equal OK [$waits -read]
    }

    test "several clients of one worker wait for all keys, each is served" {keydb} {
        set first [connect]
        set second [beside $first]
        set works [away_from $first]
        $works -send debug busy other 30
        wait_for_holder other
        set before [parked_so_far]
        $first -send flushdb
        wait_for {[parked_so_far] > $before}
        set before [parked_so_far]
        $second -send keys *
        wait_for {[parked_so_far] > $before}
        r debug release busy
        assert_equal OK [$works -read]
        assert_equal OK [$first -read]
        assert_equal {} [$second -read]
    }
}
