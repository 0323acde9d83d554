# The stamps of active replication: what commands write into the keys that they change. The journal stamps while
# somebody reads it and DEBUG STAMPING is on.

# 0: none
proc stamp {key {client r}} {
    set found [$client debug stamp $key]
    if {$found eq ""} {
        return 0
    }
    lassign $found ms counter
    return [expr {$ms * 16384 + $counter}]
}

proc with_stamps body {
    r flushall
    r debug journal start spills
    r debug stamping 1
    try {
        uplevel 1 $body
    } finally {
        r debug stamping 0
        r debug journal stop
    }
}

# Each of the scripts gives each of the keys the same stamp, above all stamps before.
proc assert_stamped_anew {keys scripts} {
    set last 0
    foreach script $scripts {
        uplevel 1 $script
        set stamp [stamp [lindex $keys 0]]
        assert {$stamp > $last} $script
        foreach key $keys {
            assert_equal $stamp [stamp $key] "$script: $key"
        }
        set last $stamp
    }
}

with_server {enable-debug-command yes lua-replicate-commands yes} {
    test "without stamping no key has a stamp" {keydb} {
        r set k v
        assert_equal 0 [stamp k]
        r debug journal start spills
        r set k w
        assert_equal 0 [stamp k]
        r debug journal stop
        r debug stamping 1
        r set k x
        assert_equal 0 [stamp k] "nobody reads the journal"
        r debug stamping 0
        assert_refused "ERR unknown subcommand or wrong number of arguments for 'stamping'. Try DEBUG HELP." \
            r debug stamping
    }

    test "each change gives the key a stamp above the last one" {keydb} {
        with_stamps {
            assert_stamped_anew k {
                {r set k 1} {r set k [string repeat x 5000]} {r set k 7} {r incr k} {r append k x} {r setrange k 70 y}
                {r setbit k 999 1} {r expire k 100} {r persist k} {r set k v px 100000} {r getex k persist}
                {r set k short} {r set k [string repeat x 500]} {r mset a 1 k 2} {r getset k 3} {r incrbyfloat k 1.5}
                {r del k; r rpush k a b c} {r lpop k} {r lset k 0 z} {r ltrim k 0 0}
                {r del k; r hset k f v} {r hset k f w} {r hincrby k n 1} {r pexpire k 100000} {r hdel k f}
                {r hset k e v} {r expiremember k e 100} {r hset k e w}
                {r del k; r sadd k a b c} {r srem k a} {r spop k} {r del k; r zadd k 1 a} {r zincrby k 1 a}
                {r del k; r xadd k * f v} {r xgroup create k g 0} {r pfadd other x; r del k; r pfadd k x}
                {r restore k 0 [r dump other] replace}
            }
            set stamp [stamp k]
            r get k
            r type k
            r object encoding k
            r exists k
            r expire none 100
            r setnx k v
            assert_equal $stamp [stamp k] "nothing has changed"
        }
    }

    test "RENAME, COPY and MOVE give the key that they come to a stamp of its own" {keydb} {
        with_stamps {
            assert_stamped_anew b {
                {r set a 1; r set b 1} {r rename a b} {r set a 1; r copy a b replace} {r del b; r rename a b}
                {r sadd a x; r sunionstore b a} {r sort a by nosort store b} {r set c 1; r bitop or b c c}
            }
            assert_equal 0 [stamp none]
            r select 1
            r del b
            r select 0
            set stamp [stamp b]
            r move b 1
            assert_equal 0 [stamp b]
            r select 1
            assert {[stamp b] > $stamp}
            r select 0
            r set l 1
            set stamp [stamp l]
            r rename l m
            assert_equal 0 [stamp l]
            assert {[stamp m] > $stamp}
        }
    }

    test "a transaction and a script have one stamp" {keydb} {
        with_stamps {
            assert_stamped_anew {a b c} {
                {r mset a 1 b 2 c 3}
                {r multi; r set a 1; r incr b; r get c; r expire c 100; r incr a; r exec}
                {r eval {for i = 1, 3 do redis.call('append', KEYS[i], 'x') end} 3 a b c}
                {r multi; r eval {redis.call('set', KEYS[1], 1)} 1 a; r set b 1; r set c 1; r exec}
                {r multi; r del a b c; r mset a 1 b 1; r set c 1; r exec}
            }
        }
    }

    test "commands that run together have a stamp each" {keydb} {
        with_stamps {
            foreach round {1 2 3} {
                for {set i 0} {$i < 8} {incr i} {
                    r -send set k:$i $round
                    r -send get k:$i
                    r -send get none
                }
                for {set i 0} {$i < 24} {incr i} {
                    r -read
                }
                set last 0
                for {set i 0} {$i < 8} {incr i} {
                    assert {[stamp k:$i] > $last}
                    set last [stamp k:$i]
                }
            }
        }
    }

    test "what a script hides from the journal has no stamp" {keydb} {
        with_stamps {
            r set k v
            r set n 1
            set stamp [stamp k]
            r eval {redis.set_repl(redis.REPL_NONE); redis.call('set', KEYS[1], 'w')} 1 k
            assert_equal $stamp [stamp k]
            r incr n
            assert_equal $stamp [stamp k]
            assert {[stamp n] > $stamp}
            r set k v
            assert {[stamp k] > [stamp n]}
        }
    }

    test "whoever waited for a key has a stamp of his own" {keydb} {
        with_stamps {
            set waiting [connect]
            $waiting -send blmove from to left right 0
            wait_for {[info_field blocked_clients clients] == 1}
            r multi
            r rpush from a b
            r set k v
            r exec
            assert_equal a [$waiting -read]
            assert_equal [stamp from] [stamp to]
            assert {[stamp to] > [stamp k]}
            $waiting -close
        }
    }

    test "a key that has expired comes back with a new stamp" {keydb} {
        with_stamps {
            r debug set-active-expire 0
            r set k v px 1
            set stamp [stamp k]
            pause 3
            assert_equal {} [r get k]
            assert_equal 0 [stamp k]
            r set k v px 1
            pause 3
            r incr k
            assert {[stamp k] > $stamp}
            r debug set-active-expire 1
        }
    }

    test "when stamping ends, versions stay as they are" {keydb} {
        with_stamps {
            r set k v
            set stamp [stamp k]
            r debug stamping 0
            r append k w
            r set new v
            assert_equal $stamp [stamp k]
            assert_equal 0 [stamp new]
            r debug stamping 1
            r append k w
            assert {[stamp k] > $stamp}
        }
    }

    test "OBJECT LASTMODIFIED counts from the stamp" {keydb} {
        with_stamps {
            r set k v
            assert_range [r object lastmodified k] 0 5
            assert_equal {} [r object lastmodified none]
        }
    }

    test "stamps of one key ascend whoever changes it" {keydb} {
        with_stamps {
            set clients [connect_many 6]
            set last 0
            for {set i 0} {$i < 100} {incr i} {
                foreach client $clients {
                    $client -send incr shared
                    $client -send multi
                    $client -send incr shared
                    $client -send incr shared:$client
                    $client -send exec
                }
                set stamp [stamp shared]
                assert {$stamp >= $last}
                set last $stamp
                foreach client $clients {
                    for {set k 0} {$k < 5} {incr k} {
                        $client -read
                    }
                }
            }
            assert_equal 1200 [r get shared]
            set highest 0
            foreach client $clients {
                set highest [expr {max($highest, [stamp shared:$client])}]
                $client -close
            }
            assert {[stamp shared] >= $highest}
        }
    }

    test "a journal read with stamps is the same stream" {keydb} {
        foreach stamping {0 1} {
            r flushall
            r debug journal start spills
            r debug stamping $stamping
            r set k v
            r multi
            r incr n
            r rpush l a
            r exec
            r eval {redis.call('set', KEYS[1], 1) redis.call('del', KEYS[2])} 2 a k
            set streams($stamping) [r debug journal read]
            r debug stamping 0
            r debug journal stop
        }
        assert_equal $streams(0) $streams(1)
        assert {[string length $streams(0)] > 100}
    }
}
