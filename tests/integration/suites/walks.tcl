# RANDOMKEY and SCAN beside a part of the keys that somebody holds for long: they find others, or wait.

# A client in whose name the key is held, once it is.
proc hold {key seconds} {
    set holds [connect]
    $holds -send debug hold $key $seconds
    wait_for {[get_is_parked $key]}
    return $holds
}

proc release holds {
    r debug release hold
    assert_reply {status OK} $holds -reply
}

with_server {min-clients-per-thread 0 enable-debug-command yes} {
    foreach {command answer} {
        randomkey {bulk held}
        {scan 0} {array {{bulk 0} {array {{bulk held}}}}}
        {scan 0 match nothing} {array {{bulk 0} {array {}}}}
    } {
        test "the only key is held: [string toupper $command] waits for it" {keydb} [string map \
            [list @command $command @answer [list $answer]] {
            r set held v
            set c [connect]
            set holds [hold held 30]
            set before [parked_so_far]
            $c -send @command
            wait_for {[parked_so_far] > $before}
            release $holds
            assert_equal @answer [$c -reply]
        }]
    }

    test "RANDOMKEY finds another key at once" {keydb} {
        for {set i 0} {$i < 300} {incr i} {
            r set key:$i v
        }
        set holds [hold key:0 30]
        for {set i 0} {$i < 200} {incr i} {
            assert_match key:* [r randomkey]
        }
        release $holds
    }

    test "RANDOMKEY waits for the key that is held, where others have expired" {keydb} {
        r debug set-active-expire 0
        r set held v
        for {set i 0} {$i < 5} {incr i} {
            r set dead:$i v px 1
        }
        set c [connect]
        set holds [hold held 30]
        set before [parked_so_far]
        $c -send randomkey
        wait_for {[parked_so_far] > $before}
        release $holds
        assert_equal held [$c -read]
        r debug set-active-expire 1
    }

    test "SCAN gets on with each call" {keydb} {
        for {set i 0} {$i < 300} {incr i} {
            r set key:$i v
        }
        hold key:0 1
        set cursor 0
        set found {}
        while 1 {
            lassign [r scan $cursor count 1] next keys
            lappend found {*}$keys
            assert {$next ne $cursor} "SCAN goes on from $cursor at $next"
            set cursor $next
            if {$cursor eq "0"} {
                break
            }
        }
        assert_equal 300 [llength [lsort -unique $found]]
    }

    test "CLIENT REPLY SKIP is for the scan that waits" {keydb} {
        r set held v
        set c [connect]
        set holds [hold held 30]
        set before [parked_so_far]
        $c -send client reply skip
        $c -send randomkey
        $c -send echo next
        wait_for {[parked_so_far] > $before}
        release $holds
        assert_equal next [$c -read]
    }
}
