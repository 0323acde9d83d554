# What the server wants to do by itself asks for the gate like an exclusive command. Where somebody else does it first,
# it must leave the queue: who stands there and never comes keeps everybody out.

# A client on that thread; 0 does what the server does by itself.
proc gate_queue_client thread {
    for {set i 0} {$i < 100} {incr i} {
        set client [connect]
        if {[regexp "current_client_thread:$thread\\M" [$client info clients]]} {
            return $client
        }
    }
    fail "no connection comes to thread $thread"
}

proc gate_queue_waits client {
    return [regexp -inline {long_lock_waits:\d+} [$client info cpu]]
}

# Has the holder's command begun? Until then the probe is answered.
proc gate_queue_is_parked {watcher probe} {
    set before [gate_queue_waits $watcher]
    $probe -send get key
    $watcher ping
    if {[gate_queue_waits $watcher] ne $before} {
        return 1
    }
    $probe -read
    return 0
}

# `scheduled` is put off by a child that `slow` starts; when that has gone, it becomes due while the gate is taken, and
# `faster` stands in the queue before it.
proc gate_queue_race {slow scheduled faster} {
    foreach {name thread} {own 0 holder 1 other 2 last 3 probe 3} {
        set $name [gate_queue_client $thread]
    }
    $own debug populate 2000
    assert_match "Background*started*" [$other {*}$slow]
    assert_match "Background*scheduled*" [$other {*}$scheduled]
    $holder -send debug busy key 60
    wait_for {[gate_queue_is_parked $last $probe]}
    set before [gate_queue_waits $last]
    $other -send {*}$faster
    wait_for {[gate_queue_waits $last] ne $before}
    set mark [string length [slurp [srv log]]]
    exec pkill -KILL -P [srv pid]
    wait_for {[regexp {Background (saving failed|AOF rewrite terminated)} [string range [slurp [srv log]] $mark end]]}
    $own ping ;# its thread stands in the queue now
    $last debug release busy
    assert_equal OK [$holder -read]
    assert_match "Background*started*" [$other -read]
    exec pkill -KILL -P [srv pid]
    wait_for {![string match "*rdb_bgsave_in_progress:1*" [$last info persistence]] &&
        ![string match "*aof_rewrite_in_progress:1*" [$last info persistence]]}
    foreach client [list $other $last $holder $own] { ;# the last one's thread would help itself
        assert_equal OK [$client config set maxmemory-samples 5]
    }
}

if {$settings(threads) < 4} {
    test "what the server wants by itself leaves the queue of the gate" {} {
        skip "needs four threads"
    }
} else {
    with_server {min-clients-per-thread 1 enable-debug-command yes snapshot-method fork rdb-key-save-delay 10000} {
        test "a rewrite that was put off, and is then asked for by a client, keeps nobody out" {} {
            gate_queue_race {bgsave} {bgrewriteaof} {bgrewriteaof}
        }
        test "a snapshot that was put off, and is then asked for by a client, keeps nobody out" {} {
            gate_queue_race {bgrewriteaof} {bgsave schedule} {bgsave}
        }
    }
}
