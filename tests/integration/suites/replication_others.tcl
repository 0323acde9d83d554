# With redis-server 7.0, both ways: what we send it can read, what it sends we can.

test "EXPDEL arrives as DEL, which redis-server knows" {noconn} {
    with_group {m ours {} r oracle {}} {
        on m mset a 1 b 2 c 3
        follow r m
        wait_same m r
        assert_equal 2 [on m expdel a none b]
        assert_equal 0 [on m expdel a]
        wait_same m r
        assert_equal {0 1} [list [on r exists a b] [on r exists c]]
    }
}

# master and replica
set both_ways {ours oracle oracle ours}

foreach {a b} $both_ways {
    foreach {how from to} {
        {by a file} {repl-diskless-sync no} {repl-diskless-load disabled}
        {without a disk on either side} {repl-diskless-sync yes} {repl-diskless-load swapdb}
        {into an empty server} {repl-diskless-sync yes} {repl-diskless-load on-empty-db}
        {from a file into memory} {repl-diskless-sync no} {repl-diskless-load swapdb}
        {through a pipe into a file} {repl-diskless-sync yes} {repl-diskless-load disabled}
    } {
        test_each {a b from to} "$a to $b: everything arrives $how, and every change of it" {noconn} {
            with_group [list m $a $from r $b $to] {
                fill_everything m
                follow r m
                wait_same m r
                assert_everything_same m r
                change_everything m
                wait_same m r
                assert_everything_same m r
                assert_equal 42 [on r fcall_ro answer 0]
            }
        }
    }

    test_each {a b} "$a to $b: what a replica had is replaced as a whole" {noconn} {
        with_group [list m $a {} r $b {repl-diskless-load swapdb}] {
            on r set old 1
            on r function load "#!lua name=old\nredis.register_function('f', function() return 1 end)"
            fill_everything m
            follow r m
            wait_same m r
            assert_everything_same m r
            assert_equal 0 [on r exists old]
        }
    }

    test_each {a b} "$a to $b: a link that is cut continues, with everything that changed meanwhile" {noconn} {
        with_group [list m $a {} r $b {}] {
            set via [proxy_open m]
            fill_everything m
            follow r m $via
            wait_same m r
            for {set round 1} {$round <= 3} {incr round} {
                proxy $via down
                wait_for {![link_is_up r]}
                change_everything m
                proxy $via up
                wait_same m r
                assert_everything_same m r
                assert_equal [list 1 $round] [lrange [sync_counts m] 0 1]
                fill_everything m
            }
        }
    }

    test_each {a b} "$a to $b: a cut in the middle of a transfer, of a command, of a transaction" {noconn slow} {
        with_group [list m $a {} r $b {repl-timeout 5}] {
            set via [proxy_open m]
            fill_everything m
            proxy $via at 60000 cut
            follow r m $via
            wait_same m r
            proxy $via at 2000 cut
            proxy $via cut
            wait_link r
            for {set i 0} {$i < 100} {incr i} {
                on m -send multi
                on m -send set k$i [string repeat v 100]
                on m -send rpush list $i
                on m -send exec
            }
            for {set i 0} {$i < 400} {incr i} {
                on m -read
            }
            wait_same m r
            assert_everything_same m r
        }
    }

    test_each {a b} "$a to $b: FLUSHALL, FLUSHDB, SWAPDB and writes at once" {noconn} {
        with_group [list m $a {} r $b {}] {
            fill_everything m
            follow r m
            wait_same m r
            on m swapdb 0 9
            on m flushdb
            on m swapdb 0 9
            on m set behind 1
            wait_same m r
            assert_everything_same m r
            on m flushall
            on m function flush
            wait_same m r
            assert_everything_same m r
            on m set after 1
            wait_same m r
        }
    }

    test_each {a b} "$a to $b: keys expire when the master says so, and are not shown before" {noconn} {
        with_group [list m $a {} r $b {}] {
            follow r m
            wait_link r
            on m debug set-active-expire 0
            on m set short v px 50
            wait_for {[has_all m r]}
            wait_for {[on r exists short] == 0}
            assert_equal 1 [on r dbsize]
            assert_equal {} [on m get short]
            wait_for {[on r dbsize] == 0}
            wait_same m r
        }
    }

    test_each {a b} "$a to $b: a replica that restarts in order continues" {noconn slow} {
        with_group [list m $a {} r $b {}] {
            fill_everything m
            follow r m
            wait_same m r
            set port [member m port]
            on r config set save {3600 1000000}
            member_kill r TERM
            change_everything m
            member_start r [list replicaof "127.0.0.1 $port"]
            wait_same m r
            assert_everything_same m r
            assert_equal {1 1} [lrange [sync_counts m] 0 1]
        }
    }

    test_each {a b} "$a to $b: SHUTDOWN SAVE of both, and the replica continues under the new id" {noconn slow} {
        with_group [list m $a {} r $b {}] {
            fill_everything m
            follow r m
            wait_same m r
            set port [member m port]
            foreach name {r m} {
                on $name -send shutdown save
                wait_for {![process_alive [member $name process]]}
                member_forget_link $name
                dict set group::members($name) process {}
            }
            member_start m
            on m set later 1
            member_start r [list replicaof "127.0.0.1 $port"]
            wait_same m r
            assert_everything_same m r
            assert_equal {0 1} [lrange [sync_counts m] 0 1]
        }
    }

    test_each {a b} "$a to $b: a password, a user, another name of the user's commands" {noconn} {
        with_group [list m $a {requirepass secret} r $b {masterauth wrong}] {
            fill_everything m
            follow r m
            wait_for {[string match "*MASTER aborted replication*" [slurp [member r log]]] ||
                [string match -nocase "*unable to auth*" [slurp [member r log]]] ||
                [string match -nocase "*WRONGPASS*" [slurp [member r log]]]}
            assert {![link_is_up r]}
            on r config set masterauth secret
            wait_same m r
            on m acl setuser follower on >word +psync +replconf +ping
            on r config set masteruser follower masterauth word
            foreach line [split [on m client list type replica] \n] {
                if {[regexp {^id=(\d+)} $line all id]} {
                    on m client kill id $id
                }
            }
            wait_for {[string match *user=follower* [on m client list type replica]]}
            wait_same m r
        }
    }
}

# ---- more than two

foreach {a b c} {ours oracle ours  oracle ours oracle  ours ours oracle  oracle oracle ours} {
    test_each {a b c} "a chain $a, $b, $c: everything passes, and cuts of either link are mended" {noconn slow} {
        with_group [list top $a {} middle $b {} end $c {}] {
            fill_everything top
            set first [proxy_open top]
            set second [proxy_open middle]
            follow middle top $first
            follow end middle $second
            wait_same top middle end
            assert_everything_same top middle end
            change_everything top
            wait_same top middle end
            assert_everything_same top middle end
            foreach via [list $first $second] {
                proxy $via down
                wait_for {![link_is_up [expr {$via eq $first ? "middle" : "end"}]]}
                on top rpush during $via
                proxy $via up
                wait_same top middle end
            }
            assert_equal [replication top master_replid] [replication end master_replid]
            assert_equal 1 [stats_of top sync_full]
            assert_equal {1 1} [lrange [sync_counts middle] 0 1]

            # The one in the middle leaves: the end goes on with its new history.
            follow middle no
            on middle set own 1
            wait_same middle end
            assert_equal [replication middle master_replid] [replication end master_replid]
            assert_equal 1 [stats_of middle sync_full]
            assert_equal 1 [on end get own]
        }
    }

    test_each {a b c} "$a is gone, $b takes over, $c continues with it" {noconn slow} {
        with_group [list old $a {} new $b {} sibling $c {}] {
            fill_everything old
            follow new old
            follow sibling old
            wait_same old new sibling
            set id [replication old master_replid]
            set offset [replication old master_repl_offset]
            member_kill old
            follow new no
            assert_equal $id [replication new master_replid2]
            assert {[replication new second_repl_offset] > $offset}
            on new set first 1
            follow sibling new
            wait_same new sibling
            change_everything new
            wait_same new sibling
            assert_everything_same new sibling
            assert_equal {0 1} [lrange [sync_counts new] 0 1]
            assert_equal [replication new master_replid] [replication sibling master_replid]

            # The old one comes back with nothing, as a replica.
            member_start old
            follow old new
            wait_same new old sibling
            assert_everything_same new old sibling
        }
    }

    test_each {a b c} "$a hands over to $b and follows it, $c moves along: nobody needs all data" {noconn slow} {
        with_group [list one $a {} two $b {} three $c {}] {
            fill_everything one
            follow two one
            follow three one
            wait_same one two three
            follow two no
            on two set by-two 1
            follow one two
            follow three two
            wait_same two one three
            assert_equal {0 2} [lrange [sync_counts two] 0 1]
            follow three no
            on three set by-three 1
            follow two three
            follow one two
            wait_same three two one
            assert_everything_same three two one
            assert_equal {0 1} [lrange [sync_counts three] 0 1]
            assert_equal 1 [on one get by-three]
        }
    }
}
