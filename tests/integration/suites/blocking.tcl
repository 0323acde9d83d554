# Commands that wait for something to come into a key.

proc blocked_count {} {
    return [info_field blocked_clients clients]
}

# Clients that send the command one after the other, each only when the one before it waits.
proc waiting {count args} {
    set before [blocked_count]
    return [lmap n [lrepeat $count x] {
        set c [connect]
        $c -send {*}$args
        incr before
        wait_for {[blocked_count] == $before}
        set c
    }]
}

with_server {enable-debug-command yes} {
    test "what is there is taken at once, from the first key that has something" {} {
        r del a b c
        r rpush b 1 2 3
        r rpush c x
        assert_equal {b 1} [r blpop a b c 0]
        assert_equal {b 3} [r brpop a b c 0]
        assert_equal {b 2} [r blmpop 0 3 a b c left count 5]
        assert_equal {c x} [r blpop b c 0]
        assert_equal 0 [r exists a b c]
    }

    test "served in order of arrival, whatever the worker" {} {
        r del list
        set clients [waiting 12 blpop list 0]
        assert_equal 1 [info_field total_blocking_keys clients]
        r rpush list 1 2 3 4 5
        r rpush list 6 7 8 9 10 11 12 13
        set n 0
        foreach c $clients {
            assert_equal [list list [incr n]] [$c -read]
        }
        assert_equal 13 [r lpop list]
        wait_for {[blocked_count] == 0}
        wait_for {[info_field total_blocking_keys clients] == 0}
    }

    test "one push of several: who waits takes from his own end" {} {
        r del list
        set left [lindex [waiting 1 blpop list 0] 0]
        set right [lindex [waiting 1 brpop list 0] 0]
        set several [lindex [waiting 1 blmpop 0 1 list right count 2] 0]
        r rpush list a b c d e
        assert_equal {list a} [$left -read]
        assert_equal {list e} [$right -read]
        assert_equal {list {d c}} [$several -read]
        assert_equal b [r lrange list 0 -1]
    }

    test "who waits through DEBUG RELOAD is served afterwards" {} {
        r del list stream
        r xadd stream 1-1 a 1
        set list [lindex [waiting 1 blpop list 0] 0]
        set stream [lindex [waiting 1 xread block 0 streams stream $] 0]
        assert_equal OK [r debug reload]
        assert_equal OK [r debug reload nosave noflush merge]
        assert_equal 2 [blocked_count]
        r xadd stream 2-1 b 2
        r rpush list x
        assert_equal {{stream {{2-1 {b 2}}}}} [$stream -read]
        assert_equal {list x} [$list -read]
    }

    test "several keys: the one that is filled, the same key twice, and no longer the others" {} {
        r del a b c
        set c [lindex [waiting 1 blpop a b a c 0] 0]
        r rpush b 1
        assert_equal {b 1} [$c -read]
        r rpush a 2
        r rpush c 3
        assert_equal 1 [r llen a]
        assert_equal 1 [r llen c]
    }

    test "keys filled in one transaction: the first that was filled serves, after the transaction" {} {
        r del a b
        set c [lindex [waiting 1 blpop a b 0] 0]
        r multi
        r rpush b 1
        r rpush a 2
        r llen b
        assert_equal {1 1 1} [r exec]
        assert_equal {b 1} [$c -read]
        assert_equal 1 [r llen a]
    }

    test "filled and emptied, or filled with something else, within a transaction: nobody is woken" {} {
        r del a
        set c [lindex [waiting 1 blpop a 0] 0]
        r multi
        r rpush a 1
        r del a
        r exec
        r multi
        r rpush a 1
        r del a
        r set a text
        r exec
        r sadd other 1
        assert_equal 1 [blocked_count]
        r del a
        r rpush a 2
        assert_equal {a 2} [$c -read]
    }

    test "within a transaction nothing waits" {} {
        r del a b
        r multi
        r blpop a 0
        r blmove a b left right 0
        r brpoplpush a b 0
        r blmpop 0 1 a left
        r rpush a 1
        r blpop a 0
        assert_equal {{} {} {} {} 1 {a 1}} [r exec]
    }

    test "time-outs end a wait, and not the next one" {} {
        r del a
        set c [connect]
        assert_equal {nullarray} [$c -typed blpop a 0.01]
        assert_equal {nullarray} [$c -typed blmove a b left right 0.01]
        assert_equal {nullarray} [$c -typed brpoplpush a b 0.01]
        assert_equal {nullarray} [$c -typed blmpop 0.01 1 a left]
        $c -send blpop a 1000
        wait_for {[info_field clients_in_timeout_table clients] == 1}
        r rpush a 1
        assert_equal {a 1} [$c -read]
        wait_for {[info_field clients_in_timeout_table clients] == 0}
        $c hello 3
        assert_equal {null} [$c -typed blpop a 0.01]
        assert_refused "ERR timeout is negative" r blpop a -1
        assert_refused "ERR timeout is not a float or out of range" r blpop a x
        assert_refused "ERR timeout is out of range" r blpop a 9223372036854775
    }

    test "what is behind a waiting command waits, too" {} {
        r del a x
        set c [connect]
        $c -send set x 1
        $c -send blpop a 0
        $c -send set x 2
        $c -send incr x
        wait_for {[blocked_count] == 1}
        assert_equal 1 [r get x]
        r rpush a v
        assert_equal OK [$c -read]
        assert_equal {a v} [$c -read]
        assert_equal OK [$c -read]
        assert_equal 3 [$c -read]
    }

    test "CLIENT UNBLOCK" {} {
        r del a
        set c [connect]
        set id [$c client id]
        $c -send blpop a 0
        wait_for {[blocked_count] == 1}
        assert_equal 1 [r client unblock $id]
        assert_equal {nullarray} [$c -reply]
        assert_equal 0 [r client unblock $id]
        $c -send blpop a 0
        wait_for {[blocked_count] == 1}
        assert_equal 1 [r client unblock $id error]
        assert_error {UNBLOCKED*} {$c -read}
        r rpush a 1
        assert_equal 1 [r llen a]
    }

    test "a call that waits counts at once; it has a time, and may have failed, when it has been answered" {} {
        r config resetstat
        set other [connect]
        set id [$other client id]
        proc stats {} {
            set calls [regsub -all {usec=\d+,usec_per_call=[\d.]+,} [info_field cmdstat_blpop commandstats] {}]
            set times [r latency histogram blpop]
            return [list $calls [expr {$times eq {} ? 0 : [dict get [lindex $times 1] calls]}] \
                [llength [lsearch -all [dict keys [info_fields errorstats]] errorstat_UNBLOCKED]]]
        }
        $other -send blpop list 0
        wait_for {[info_field blocked_clients clients] == 1}
        assert_equal {calls=1,rejected_calls=0,failed_calls=0 0 0} [stats]
        r client unblock $id error
        catch {$other -read}
        assert_equal {calls=1,rejected_calls=0,failed_calls=1 1 1} [stats]
        assert_reply nullarray $other blpop list 0.001
        assert_equal {calls=2,rejected_calls=0,failed_calls=1 1 1} [stats]
        foreach i {1 2 3} {
            $other -send blpop list 0
            wait_for {[info_field blocked_clients clients] == 1}
            r rpush list x
            assert_equal {list x} [$other -read]
        }
        assert_equal {calls=5,rejected_calls=0,failed_calls=1 4 1} [stats]
        $other -send blpop list 0
        wait_for {[info_field blocked_clients clients] == 1}
        $other -close
        wait_for {[info_field blocked_clients clients] == 0}
        assert_equal {calls=6,rejected_calls=0,failed_calls=1 4 1} [stats]
    }

    test "who leaves takes nothing" {} {
        r del a
        set clients [waiting 3 blpop a 0]
        [lindex $clients 0] -close
        wait_for {[blocked_count] == 2}
        set line [lsearch -inline [split [r client list] \n] *cmd=blpop*]
        assert_equal 1 [r client kill id [regexp -inline -- {\d+} $line]]
        wait_for {[blocked_count] == 1}
        r rpush a 1 2
        assert_equal {a 1} [[lindex $clients 2] -read]
        assert_equal 2 [r lrange a 0 -1]
    }

    test "CLIENT REPLY OFF: it waits, and nothing is said" {} {
        r del a
        set c [connect]
        $c -send client reply off
        $c -send blpop a 0
        $c -send client reply on
        wait_for {[blocked_count] == 1}
        r rpush a 1
        assert_equal OK [$c -read]
        assert_equal PONG [$c ping]
    }

    test "BLMOVE waits for its source, and its destination serves others" {} {
        r del a b c d
        set last [lindex [waiting 1 blpop d 0] 0]
        set third [lindex [waiting 1 blmove c d left right 0] 0]
        set second [lindex [waiting 1 brpoplpush b c 0] 0]
        set first [lindex [waiting 1 blmove a b left left 0] 0]
        r rpush a x
        assert_equal x [$first -read]
        assert_equal x [$second -read]
        assert_equal x [$third -read]
        assert_equal {d x} [$last -read]
        assert_equal 0 [r exists a b c d]
    }

    test "BLMOVE in a circle, and onto itself" {} {
        r del a b
        set first [lindex [waiting 1 blmove a b left right 0] 0]
        set second [lindex [waiting 1 blmove b a left right 0] 0]
        r rpush a x y
        assert_equal x [$first -read]
        assert_equal x [$second -read]
        assert_equal {y x} [r lrange a 0 -1]
        r del a
        set c [lindex [waiting 1 blmove a a left right 0] 0]
        r rpush a x y
        assert_equal x [$c -read]
        assert_equal {y x} [r lrange a 0 -1]
    }

    test "BLMOVE whose destination is no list: an error, and the element stays for the next" {} {
        r del a b
        set first [lindex [waiting 1 blmove a b left right 0] 0]
        set second [lindex [waiting 1 blpop a 0] 0]
        r set b text
        r rpush a 1
        assert_error {WRONGTYPE*} {$first -read}
        assert_equal {a 1} [$second -read]
    }

    test "keys that come by other ways: RENAME, COPY, MOVE, SWAPDB" {} {
        r flushall
        foreach command {{rename src dst} {copy src dst}} {
            set c [lindex [waiting 1 blpop dst 0] 0]
            r rpush src 1
            r {*}$command
            assert_equal {dst 1} [$c -read]
            r del src
        }
        set c [lindex [waiting 1 blpop k 0] 0]
        r select 5
        r rpush k moved
        r move k 0
        assert_equal {k moved} [$c -read]
        r select 0
        set c [lindex [waiting 1 blpop k 0] 0]
        r select 5
        r rpush k swapped
        r swapdb 0 5
        assert_equal {k swapped} [$c -read]
        r select 0
        assert_equal 0 [r dbsize]
    }

    test "the database is the one of the client that waits" {} {
        r flushall
        set c [connect]
        $c select 3
        $c -send blpop k 0
        wait_for {[blocked_count] == 1}
        r rpush k 0
        assert_equal 1 [r llen k]
        r select 3
        r rpush k 3
        r select 0
        assert_equal {k 3} [$c -read]
        assert_equal 1 [r llen k]
    }

    test "an argument that is a large value of its own" {} {
        r del a
        set big [string repeat x 100000]
        set c [lindex [waiting 1 blpop a 0] 0]
        r rpush a $big
        assert_equal [list a $big] [$c -read]
        set c [connect]
        $c -send blpop $big 0
        wait_for {[blocked_count] == 1}
        r rpush $big 1
        assert_equal [list $big 1] [$c -read]
    }

    test "thousands wait" {} {
        r del a b
        set clients {}
        for {set i 0} {$i < 400} {incr i} {
            set c [connect]
            for {set k 0} {$k < 5} {incr k} {
                $c -send blpop a$i b$k all 0
            }
            lappend clients $c
        }
        wait_for {[blocked_count] == 400}
        for {set n 0} {$n < 2000} {incr n} {
            r -send rpush all $n
        }
        for {set n 0} {$n < 2000} {incr n} {
            r -read
        }
        set seen {}
        foreach c $clients {
            for {set k 0} {$k < 5} {incr k} {
                lassign [$c -read] key value
                assert_equal all $key
                lappend seen $value
            }
        }
        assert_equal 2000 [llength [lsort -unique $seen]]
        assert_equal 0 [r exists all]
        wait_for {[info_field total_blocking_keys clients] == 0}
    }

    test "an expired list serves nobody, its successor does" {} {
        r del a
        r debug set-active-expire 0
        r rpush a old
        r pexpire a 1
        wait_for {[r exists a] == 0}
        set c [lindex [waiting 1 blpop a 0] 0]
        r rpush a new
        assert_equal {a new} [$c -read]
        r debug set-active-expire 1
    }

    test "BZPOPMIN, BZPOPMAX, BZMPOP" {} {
        r del z y
        set least [lindex [waiting 1 bzpopmin z y 0] 0]
        set greatest [lindex [waiting 1 bzpopmax z 0] 0]
        set several [lindex [waiting 1 bzmpop 0 2 y z min count 2] 0]
        set list [lindex [waiting 1 blpop z 0] 0]
        r zadd z 1 a 2 b 3 c 4 d 5 e
        assert_equal {z a 1} [$least -read]
        assert_equal {z e 5} [$greatest -read]
        assert_equal {z {{b 2} {c 3}}} [$several -read]
        assert_equal {d 4} [r zrange z 0 -1 withscores]
        assert_equal {z d 4} [r bzpopmin z 0]
        assert_equal {nullarray} [$least -typed bzpopmin z 0.01]
        $least hello 3
        $least -send bzpopmin z 0
        wait_for {[blocked_count] == 2}
        r zadd z 1.5 x
        assert_equal {array {{bulk z} {bulk x} {double 1.5}}} [$least -reply]
        r rpush z v
        assert_equal {z v} [$list -read]
    }

    test "a key that takes the place of another serves, too" {} {
        r del z s src
        r zadd src 1 a
        set c [lindex [waiting 1 bzpopmin nothing z 0] 0]
        r set z text
        r zunionstore z 1 src
        assert_equal {z a 1} [$c -read]
    }
}
