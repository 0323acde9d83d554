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

    test "DEBUG OPERATIONS tells origin, stamp and wall time" {keydb} {
        r debug operations start
        r set before v
        assert_equal {0 0 0} [lrange [lindex [r debug operations read] 0] 3 5] "without stamps"
        with_stamps {
            r debug operations read
            set begin [clock milliseconds]
            r set k 1
            r multi
            r incr k
            r set l v
            r exec
            set records [r debug operations read]
            assert_equal 5 [llength $records]
            set stamped [list [lindex $records 0] [lindex $records 2] [lindex $records 3]]
            set origins [lsort -unique [lmap record $stamped {lindex $record 3}]]
            assert_equal 1 [llength $origins]
            assert {$origins != 0}
            lassign [lmap record $stamped {lindex $record 4}] first second third
            assert {$first < $second}
            assert_equal $second $third "one stamp of the transaction"
            assert_equal $second [stamp k]
            foreach record $stamped {
                set wall [lindex $record 5]
                assert {$wall >= $begin && $wall <= [clock milliseconds]}
            }
        }
        r debug operations stop
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

    # What takes changes back is recorded command by command; the server asserts that it has ended with each.
    test "a wait that gets nothing leaves nothing recorded" {keydb} {
        with_stamps {
            set waiting [connect]
            $waiting -send blpop queue 0
            wait_for {[info_field blocked_clients clients] == 1}
            r multi
            r lpush queue element
            r del queue
            r exec
            r incr counter
            assert_equal 2 [r incr counter]
            $waiting -close
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

# The window: what is known of keys beside their versions, and operations of peers that come out of order.
with_server {enable-debug-command yes} {
    proc stamp_in {ms} {
        expr {([clock milliseconds] + $ms) * 16384}
    }
    proc id_bits id {
        lassign [split $id -] ms seq
        format %020u-%020u $ms $seq
    }
    # An entry of origin 77, with such a stamp.
    proc place {stamp args} {
        r debug place 77 [expr {$stamp - 1}] $stamp [clock milliseconds] 0 {*}$args
    }
    # bytes, keys, tombstones, dirty keys; operations appended, placed, dropped, late
    proc window {} {
        lrange [r debug window] 1 end
    }

    test "an older operation of a peer runs where it belongs" {keydb} {
        with_stamps {
            r set n 10
            r incr n
            r rpush l b
            set before [stamp_in -5000]
            place $before rpush l a
            place [expr {$before + 1}] set n 1
            assert_equal {a b} [r lrange l 0 -1]
            assert_equal 11 [r get n]
            place [stamp_in 5000] set n 1
            assert_equal 1 [r get n]
            place [stamp_in 6000] set other 1
            r incr n
            place [expr {[stamp n] - 1}] incrby n 5
            assert_equal 7 [r get n]
            place [expr {[stamp n] - 2}] del n
            assert_equal 6 [r get n]
        }
    }

    test "an older addition or change of another member runs as it is" {keydb} {
        with_stamps {
            place [stamp_in 5000] set n 10 pxat [expr {[clock milliseconds] + 1000000}]
            place [stamp_in 5000] hset h f 1 g 1
            r incr n
            r hincrby h f 1
            r debug journal read
            place [expr {[stamp n] - 1}] incrby n 5
            place [expr {[stamp h] - 1}] hincrby h f 3
            place [expr {[stamp h] - 1}] hset h g 4
            assert_equal {16 5 4} [list [r get n] {*}[r hmget h f g]]
            # Whoever reads the stream gets the operations themselves, not the value that comes of them.
            set words [regexp -all -inline {[A-Za-z]+} [string tolower [r debug journal read]]]
            assert_equal {incrby n hincrby h f hset h g} $words
            # One that is older than these takes them back, what they have added is not lost.
            place [expr {[stamp n] - 2}] set n 100
            place [stamp_in 5001] hset h f 10
            assert_equal {106 14} [list [r get n] [r hget h f]]
        }
    }

    test "FLUSHALL of a peer leaves what is younger" {keydb} {
        with_stamps {
            place [stamp_in 10000] set old 1
            set flush [stamp_in 11000]
            place [stamp_in 12000] set young 1
            r incr young
            place [stamp_in 10500] rpush l a
            place [stamp_in 13000] rpush l b
            place $flush flushall
            assert_equal {l young} [lsort [r keys *]]
            assert_equal b [r lrange l 0 -1]
            place [expr {$flush - 5}] set gone 1
            assert_equal 0 [r exists gone]
        }
    }

    test "what all have is forgotten, and what comes later makes a key dirty" {keydb} {
        with_stamps {
            r rpush l a
            r set x 1
            r del x
            set before [expr {[stamp l] - 1}]
            assert_equal {2 1 0} [lrange [window] 0 2]
            r debug window [expr {[stamp l] + 16384 * 1000}] 0
            assert_equal {0 0 0} [lrange [window] 0 2]
            place $before rpush l late
            assert_equal {1 0 1} [lrange [window] 0 2]
            assert_equal {a late} [r lrange l 0 -1]
            r del l
            assert_equal 0 [lindex [window] 2]
        }
    }

    # The low 40 bits of a number.
    proc origin_of id {
        expr {[lindex [split $id -] 1] & ((1 << 40) - 1)}
    }

    test "ids that this node chooses ascend, and end with its origin" {keydb} {
        with_stamps {
            set first [r xadd x * f v]
            assert {[origin_of $first] != 0}
            set last $first
            r multi
            for {set i 0} {$i < 50} {incr i} {
                r xadd x * f v
            }
            foreach id [r exec] {
                assert_equal [origin_of $first] [origin_of $id]
                assert {[string compare [id_bits $last] [id_bits $id]] < 0} "$last $id"
                set last $id
            }
            set far [expr {[clock milliseconds] + 100000}]
            foreach given [list 1 $far $far] {
                set id [r xadd y $given-* f v]
                assert_equal $given [lindex [split $id -] 0]
                assert_equal [origin_of $first] [origin_of $id]
            }
            assert_equal $far [lindex [split [r xadd y * f v] -] 0]
            # The last number of a millisecond.
            r xadd y $far-[expr {((1 << 64) - 1)}] f v
            assert_error "*equal or smaller*" {r xadd y $far-* f v}
            assert_equal [expr {$far + 1}] [lindex [split [r xadd y * f v] -] 0]
            r xadd y [expr {(1 << 64) - 1}]-[expr {(1 << 64) - 2}] f v
            assert_error "*exhausted*" {r xadd y * f v}
        }
        r del x
        assert_equal 0 [lindex [split [r xadd x * f v] -] 1]
        assert_equal {9999999999999-0 9999999999999-1} \
            [list [r xadd x 9999999999999-* f v] [r xadd x 9999999999999-* f v]]
    }

    test "which ids are used does not depend on nodes that have deleted entries" {keydb} {
        with_stamps {
            foreach size {1 100} {
                r config set stream-node-max-entries $size
                r del x
                foreach id {1-1 2-1 3-1 4-1} {
                    r xadd x $id f v
                }
                r xdel x 2-1 3-1
                foreach id {2-1 3-1 4-1} {
                    place [expr {[stamp x] + 1}] keydb.op.xadd x $id f w
                }
                assert_equal {{1-1 {f v}} {2-1 {f w}} {4-1 {f v}}} [r xrange x - +]
            }
            r config set stream-node-max-entries 100
        }
    }

    test "the bytes of a HyperLogLog do not depend on a directive, nor on PFCOUNT" {keydb} {
        with_stamps {
            with_config {hll-sparse-max-bytes 0} {
                r pfadd h a b c
                assert_equal sparse [r pfdebug encoding h]
            }
            with_config {hll-sparse-max-bytes 100000} {
                for {set i 0} {$i < 60} {incr i} {
                    r pfadd h {*}[lmap each [lrepeat 50 x] {incr element}]
                }
                assert_equal dense [r pfdebug encoding h]
            }
            r pfadd small a b c
            foreach key {h small} {
                set bytes [r get $key]
                set count [r pfcount $key]
                assert_equal $count [r eval {return redis.call('pfcount', KEYS[1])} 1 $key]
                r multi
                r pfcount $key
                assert_equal $count [r exec]
                assert_equal $bytes [r get $key]
            }
        }
    }

    test "a group gets next what comes in behind its position, or was passed by" {keydb} {
        with_stamps {
            r xadd x 5-1 f a
            r xgroup create x g 0
            r xgroup create x other 0
            r xreadgroup group g u streams x >
            set late [connect]
            $late -send xreadgroup group g w block 0 streams x >
            wait_for {[string match "*\nblocked_clients:1*" [r info clients]]}
            place [expr {[stamp x] + 1}] keydb.op.xadd x 3-1 f b
            assert_equal {{x {{3-1 {f b}}}}} [$late -read]
            assert_equal {2 3-1 5-1 {{u 1} {w 1}}} [r xpending x g]
            assert_equal {{x {{3-1 {f b}} {5-1 {f a}}}}} [r xreadgroup group other v streams x >]
            # Others have given 8-1 to v, and had neither 7-1 nor 4-1.
            r xadd x 7-1 f c
            r xadd x 8-1 f d
            place [expr {[stamp x] + 1}] keydb.op.deliver x g v 5 ACK 8-1
            place [expr {[stamp x] + 1}] keydb.op.xadd x 4-1 f e
            assert_equal {5 3-1 8-1 {{keydb:late 2} {u 1} {v 1} {w 1}}} [r xpending x g]
            assert_equal 2 [dict get [lindex [r xinfo groups x] 0] lag]
            r debug reload
            assert_equal {{x {{4-1 {f e}}}}} [r xreadgroup group g u count 1 streams x >]
            assert_equal {{x {{7-1 {f c}}}}} [r xreadgroup group g u noack streams x >]
            assert_equal {} [r xreadgroup group g u streams x >]
            assert_equal {4 3-1 8-1 {{u 2} {v 1} {w 1}}} [r xpending x g]
            assert_equal 0 [dict get [lindex [r xinfo groups x] 0] lag]
            # What is deleted before it is handed out is forgotten.
            place [expr {[stamp x] + 1}] keydb.op.xadd x 6-1 f f
            r xdel x 6-1
            r xadd x 9-1 f g
            assert_equal {{x {{9-1 {f g}}}}} [r xreadgroup group g u streams x >]
            assert_equal {5 3-1 9-1 {{u 3} {v 1} {w 1}}} [r xpending x g]
            # What is behind a position that was set back is new, and handed out once.
            place [expr {[stamp x] + 1}] keydb.op.xadd x 8-5 f h
            r xgroup setid x g 8-1
            assert_equal {{x {{8-5 {f h}} {9-1 {f g}}}}} [r xreadgroup group g u noack streams x >]
            assert_equal {} [r xreadgroup group g u streams x >]
            $late -close
        }
    }
}
