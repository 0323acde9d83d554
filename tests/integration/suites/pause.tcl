# CLIENT PAUSE, UNPAUSE, UNBLOCK.

proc blocked_count {} {
    return [info_field blocked_clients clients]
}

with_server {enable-debug-command yes} {
    test "PAUSE WRITE holds writes, not reads" {} {
        r set key before
        assert_equal OK [r client pause 100000 write]
        set writer [connect]
        $writer -send set key after
        wait_for {[blocked_count] == 1}
        assert_equal before [r get key]
        assert_equal PONG [r ping]
        assert_match *flags=b* [r client list id [lindex [regexp -inline {id=(\d+)[^\n]*cmd=set} [r client list]] 1]]
        r client unpause
        assert_equal OK [$writer -read]
        assert_equal after [r get key]
        assert_equal 0 [blocked_count]
    }

    test "many wait, each in the order of its connection" {} {
        r del counter
        r client pause 100000 write
        set clients [lmap n [lrepeat 12 x] {
            set c [connect]
            $c -send incr counter
            $c -send get counter
            set c
        }]
        wait_for {[blocked_count] == 12}
        r client unpause
        set numbers [lmap c $clients {
            set number [$c -read]
            assert {[$c -read] >= $number}
            set number
        }]
        assert_equal {1 2 3 4 5 6 7 8 9 10 11 12} [lsort -integer $numbers]
    }

    test "transactions: what reads runs, what writes waits, queueing a write waits" {} {
        r set key v
        set writes [connect]
        set queues [connect]
        $writes multi
        $writes set key w
        $queues multi
        r client pause 100000 write
        r multi
        r ping
        r get key
        assert_equal {PONG v} [r exec]
        $writes -send exec
        $queues -send set key x
        wait_for {[blocked_count] == 2}
        r client unpause
        assert_equal {OK} [$writes -read]
        assert_equal QUEUED [$queues -read]
        assert_equal {OK} [$queues exec]
        assert_equal x [r get key]
    }

    test "a pause begins at the end of the transaction that asks for it" {} {
        r multi
        r set a 1
        r client pause 100000 write
        r set b 2
        r exec
        set c [connect]
        $c -send set c 3
        wait_for {[blocked_count] == 1}
        assert_equal {1 2 {}} [r mget a b c]
        r client unpause
        assert_equal OK [$c -read]
    }

    test "PAUSE ALL holds everything, and ends by itself" {} {
        set other [connect]
        set begin [clock milliseconds]
        r client pause 300
        assert_equal PONG [$other ping]
        assert {[clock milliseconds] - $begin >= 290}
    }

    test "a second pause can prolong the first, not shorten it" {} {
        r client pause 100000 write
        r client pause 10 write
        set c [connect]
        $c -send set key v
        wait_for {[blocked_count] == 1}
        pause 50
        assert_equal 1 [blocked_count]
        r client unpause
        assert_equal OK [$c -read]
    }

    test "keys do not expire in a pause, they are just not seen" {} {
        r flushall
        r config resetstat
        r multi
        r set a{t} 1 px 10
        r set b{t} 1 px 10
        r client pause 100000 write
        r exec
        wait_for {[r get a{t}] eq {} && [r get b{t}] eq {}}
        assert_equal 0 [r exists a{t}]
        assert_equal -2 [r pttl a{t}]
        r keys *
        r scan 0 count 1000
        assert_equal 2 [r dbsize]
        assert_equal 0 [info_field expired_keys stats]
        r client unpause
        r get a{t}
        r get b{t}
        wait_for {[info_field expired_keys stats] == 2}
        assert_equal 0 [r dbsize]
    }

    test "mistakes are told at once" {} {
        r client pause 100000 write
        assert_refused "ERR wrong number of arguments for 'set' command" r set a
        assert_refused "ERR timeout is negative" r client pause -1
        assert_refused "ERR timeout is not an integer or out of range" r client pause x
        assert_refused "ERR CLIENT PAUSE mode must be WRITE or ALL" r client pause 1 foo
        r client unpause
    }

    test "a client that waits in a pause can be killed" {} {
        set c [connect]
        set id [$c client id]
        r client pause 100000 write
        $c -send set key killed
        wait_for {[blocked_count] == 1}
        r client kill id $id
        assert {[$c -closed]}
        r client unpause
        assert {[r get key] ne "killed"}
    }

    test "CLIENT UNBLOCK" {keydb} {
        set unblocked {error {UNBLOCKED client unblocked via CLIENT UNBLOCK}}
        foreach {how reply} [list timeout nullbulk error $unblocked {} nullbulk] {
            set c [connect]
            set id [$c client id]
            $c -send debug hold key 30
            wait_for {[blocked_count] == 1}
            assert_equal 1 [r client unblock $id {*}$how]
            assert_equal 0 [r client unblock $id {*}$how]
            assert_equal $reply [$c -reply]
            r debug release hold
            assert_equal PONG [$c ping]
        }
        assert_equal 0 [r client unblock 999999]
        assert_refused "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR" r client unblock 1 foo
        assert_refused "ERR value is not an integer or out of range" r client unblock x
    }
}
