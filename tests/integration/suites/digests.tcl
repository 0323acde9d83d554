# DEBUG DIGEST-SLOT and DIGEST-KEY: digests of hash slots, by which servers are compared.

proc slots_of name {
    return [on $name debug digest-slot seed test 0-16383]
}

# The slots that have keys.
proc slots_in_use digests {
    set used {}
    set slot 0
    foreach digest $digests {
        if {$digest ne [string repeat 0 32]} {
            lappend used $slot
        }
        incr slot
    }
    return $used
}

proc assert_same_slots {one other} {
    set slot 0
    foreach a [slots_of $one] b [slots_of $other] {
        if {$a ne $b} {
            fail "slot $slot: $one has $a, $other $b"
        }
        incr slot
    }
}

# What only this server has: deadlines of members, nested hashes, jobs.
proc fill_more client {
    {*}$client hset fields a 1 b 2 c 3
    {*}$client hpexpire fields 3600000 fields 2 a b
    {*}$client sadd members x y z
    {*}$client expiremember members x 3600
    {*}$client zadd scores 1 x 2 y
    {*}$client expiremember scores y 3600
    {*}$client keydb.nhset tree.branch.leaf 5
    {*}$client keydb.cron job repeat 1000000000 {return 1} 1 key
    {*}$client set large [string repeat 0123456789 300000]
    {*}$client hset table {*}[concat {*}[lmap i [lrepeat 5000 x] {list [incr n] value:$n}]]
}

with_server {enable-debug-command yes} {
    test "DEBUG DIGEST-SLOT: what it takes" {keydb} {
        foreach slot {-1 16384 x {} 5-4 0-16384 1-2-3 - 7-} {
            assert_refused "ERR Invalid or out of range slot" r debug digest-slot $slot
        }
        assert_refused "ERR these are more slots than there are" r debug digest-slot 0-16383 5
        assert_equal 16384 [llength [r debug digest-slot 0-16383]]
        assert_error "ERR unknown subcommand or wrong number*" {r debug digest-slot}
        assert_error "ERR unknown subcommand or wrong number*" {r debug digest-slot seed x}
        assert_equal [lrepeat 3 [string repeat 0 32]] [r debug digest-slot 7 12182-12183]
        r set foo bar
        lassign [r debug digest-slot 12182 7] digest none
        assert {[string length $digest] == 32 && $digest ne $none}
        assert_equal [list $digest] [r debug digest-key foo]
        assert_equal [list $digest $digest] [r debug digest-slot seed {} 12182 12182-12182]
        assert {[r debug digest-slot seed x 12182] ne [list $digest]}
        assert_equal [list $none] [r debug digest-key none]
    }

    test "the way to a value leaves no trace in its slot's digest, its encoding neither" {keydb} {
        r flushall
        r hset h a 1 b 2
        r sadd s 1 2 3
        r zadd z 1 a 2.5 b
        r rpush l a b 3
        r pfadd hll a b
        set expected [r debug digest-slot 0-16383]
        set digests [r debug digest-key h s z l hll]
        with_config {hash-max-listpack-entries 0 set-max-intset-entries 0 zset-max-listpack-entries 0
                     list-max-listpack-size 1 hll-sparse-max-bytes 0} {
            r flushall
            r hset h b 3 a 1 c 9
            r hdel h c
            r hset h b 2
            r sadd s 3 2 1
            r zadd z 2.5 b 1 a
            r lpush l 3 b a
            r pfadd hll b a
            r pfcount hll
            assert_equal {hashtable skiplist} [list [r object encoding h] [r object encoding z]]
            assert_equal $digests [r debug digest-key h s z l hll]
            assert_equal $expected [r debug digest-slot 0-16383]
        }
        r hset h b 4
        assert_equal [list 1 [string repeat 0 32]] [list [llength [lsort -unique [r debug digest-slot 5 6]]] \
                                                        [lindex [r debug digest-slot 5] 0]]
        assert {[r debug digest-slot 0-16383] ne $expected}
    }

    test "SWAPDB, MOVE and deadlines change digests, and back" {keydb} {
        r flushall
        fill_more r
        set expected [r debug digest-slot 0-16383]
        r swapdb 0 1
        assert {[r debug digest-slot 0-16383] ne $expected}
        r swapdb 0 1
        assert_equal $expected [r debug digest-slot 0-16383]
        r move fields 1
        assert {[r debug digest-slot 0-16383] ne $expected}
        r select 1
        r move fields 0
        r select 0
        assert_equal $expected [r debug digest-slot 0-16383]
        set at [expr {[clock milliseconds] + 3600000}]
        r pexpireat large $at
        set with [r debug digest-slot 0-16383]
        assert {$with ne $expected}
        r pexpireat large [expr {$at + 1}]
        assert {[r debug digest-slot 0-16383] ne $with}
        r persist large
        assert_equal $expected [r debug digest-slot 0-16383]
        assert_equal OK [r debug reload]
        assert_equal $expected [r debug digest-slot 0-16383]
    }

    test "a key that has expired is as absent, before it is deleted" {keydb} {
        r flushall
        r debug set-active-expire 0
        r set k v px 1
        wait_for {[r debug digest-key k] eq [list [string repeat 0 32]]}
        assert_equal [list [string repeat 0 32]] [lsort -unique [r debug digest-slot 0-16383]]
        assert_equal 1 [r dbsize]
        r debug set-active-expire 1
    }
}

proc walk_state field {
    regexp "$field:(\\w+)" [r debug digest-walk state] -> value
    return $value
}

proc walk_ends {} {
    wait_for {[walk_state state] eq "ended"}
}

with_server {enable-debug-command yes} {
    test "DEBUG DIGEST-WALK has the digests of DIGEST-SLOT, made in the background" {keydb} {
        assert_equal none [walk_state state]
        assert_refused "ERR no walk has ended" r debug digest-walk slots 1
        foreach words {{start a b} {state x} {slots} {nonsense}} {
            assert_error "ERR unknown subcommand or wrong number*" {r debug digest-walk {*}$words}
        }
        r debug populate 30000
        r select 1
        r debug populate 2000 other 200
        r select 0
        fill_more r
        r debug digest-walk start text
        walk_ends
        assert_equal 1 [walk_state large] ;# of fill_more
        assert_equal 16383 [walk_state clear]
        foreach walked [r debug digest-walk slots 0-16383] exact [r debug digest-slot seed text 0-16383] {
            if {$walked ne {}} {
                assert_equal $exact $walked
            }
        }
        assert_equal [list {}] [r debug digest-walk slots 9543]
        assert_refused "ERR Invalid or out of range slot" r debug digest-walk slots 16384
    }

    test "DEBUG DIGEST-WALK: slots whose keys change meanwhile have no digest" {keydb} {
        r flushall
        r debug populate 30000
        r set a 1
        r debug pause-cron 1
        r debug digest-walk start
        r set b 1
        r get a
        r hset {{c}1} f v
        r debug pause-cron 0
        walk_ends
        assert_equal [list {} {} {}] [r debug digest-walk slots 3300 7365 7365]
        assert_equal 16382 [walk_state clear]
        assert_equal [r debug digest-slot 15495] [r debug digest-walk slots 15495]
        foreach command {{flushall} {swapdb 0 3}} {
            r debug pause-cron 1
            r debug digest-walk start
            r {*}$command
            r debug pause-cron 0
            walk_ends
            assert_equal 0 [walk_state clear]
        }
    }
}

with_server {enable-debug-command yes} {
    test "keys are in the slots in which redis-server has them" {keydb noconn} {
        with_group {o oracle {cluster-enabled yes} n ours {}} {
            expr {srand(7)}
            for {set round 0} {$round < 200} {incr round} {
                set key {}
                for {set i [expr {int(rand() * 20)}]} {$i > 0} {incr i -1} {
                    append key [string index "{}ab\{xyz\x01" [expr {int(rand() * 9)}]]
                }
                on n flushall
                on n set $key v
                assert_equal [on n debug digest-key $key] [on n debug digest-slot [on o cluster keyslot $key]] $key
            }
        }
    }

    test "a replica has the digests of its master, slot by slot" {noconn} {
        with_group {m ours {} r ours {hash-max-listpack-entries 2 set-max-intset-entries 0}} {
            fill_everything m
            fill_more {on m}
            follow r m
            wait_same m r
            assert_same_slots m r
            change_everything m
            on m hpexpire fields 50 fields 1 a
            on m keydb.nhset tree.other.leaf 6
            wait_for {[on m hlen fields] == 2}
            wait_same m r
            assert_same_slots m r
            assert {[llength [slots_in_use [slots_of r]]] > 30}
            follow r no
            on r set more 1
            assert {[slots_of m] ne [slots_of r]}
        }
    }
}

# What utils/compare-nodes.py says of these members: its exit code, and its lines.
proc compare {a b args} {
    set addresses [lmap name [list $a $b] {string cat 127.0.0.1: [member $name port]}]
    if {$::settings(tls)} {
        lappend args --cacert [cert ca.crt] --cert [cert client.crt] --key [cert client.key]
    }
    set code 0
    if {[catch {exec python3 $::root_dir/utils/compare-nodes.py {*}$args {*}$addresses 2>@1} said options]} {
        set code [lindex [dict get $options -errorcode] 2]
        set said [string trim [string map {"child process exited abnormally" {}} $said]]
    }
    return [list $code [split $said \n]]
}

with_server {} {
    test "compare-nodes.py names the keys that differ" {noconn} {
        with_group {a ours {} b ours {}} {
            fill_everything a
            fill_more {on a}
            follow b a
            wait_same a b
            follow b no
            assert_equal {0 {{the data are equal}}} [compare a b]
            on a set only:here 1
            on b set s:int 5
            on b pexpire l:short 100000
            on b xgroup create stream more 0
            on b select 9
            on b set {odd "{tag}} 1
            on b del a
            on b select 0
            lassign [compare a b --rounds 1] code lines
            assert_equal 1 $code
            set here 127.0.0.1:[member a port]
            set there 127.0.0.1:[member b port]
            assert_equal [list "0 \"l:short\" value" "0 \"only:here\" only on $here" "0 \"s:int\" value" \
                              "0 \"stream\" beside the value" "9 \"a\" only on $here" \
                              "9 \"odd \\x22{tag}\" only on $there" "6 keys differ"] $lines
            on a config set requirepass secret
            lassign [compare a b] code lines
            assert_equal 2 $code
            assert_match "compare-nodes: $here: NOAUTH*" [lindex $lines 0]
        }
    }
}
