# CLIENT TRACKING: invalidations of what a client has read, in its modes; the table that knows who has read what.

proc cacher {{options {}}} {
    set c [connect]
    $c hello 3
    $c client tracking on {*}$options
    return $c
}

# The invalidations that have come, each as a list of keys; "*" for all.
proc invalidated c {
    $c ping
    return [lmap push [$c -pushes] {
        lassign $push type elements
        assert_equal {bulk invalidate} [lindex $elements 0]
        expr {[lindex $elements 1] eq "null" ? "*" : [resp::bare [lindex $elements 1]]}
    }]
}

proc is_told {keys c} {
    assert_equal $keys [invalidated $c]
}

proc tracked {} {
    return [list [info_field tracking_total_keys stats] [info_field tracking_total_items stats] \
        [info_field tracking_total_prefixes stats]]
}

with_server {enable-debug-command yes} {
    test "a client that tracks may send commands without keys" {} {
        set c [cacher]
        foreach command {{dbsize} {keys *} {scan 0} {randomkey} {object help} {eval {return redis.call('dbsize')} 0}} {
            $c {*}$command
            $c multi
            $c {*}$command
            $c exec
        }
        is_told {} $c
    }

    test "what was read is told of once, when it changes" {} {
        set c [cacher]
        r mset a 1 b 2 c 3
        is_told {} $c
        assert_equal {1 2 {}} [$c mget a b nosuch]
        is_told {} $c
        r set a x
        is_told {a} $c
        r set a y
        is_told {} $c
        $c get a
        r mset a 1 b 1 c 1 nosuch 1
        assert_equal {a b nosuch} [lsort [invalidated $c]]
        assert_equal {0 0 0} [tracked]
    }

    test "every command that changes a key counts, in any database; reads do not" {} {
        set c [cacher]
        foreach change {{append k x} {expire k 100} {persist k} {getset k 1} {incr k} {del k} {lpush k 1} {lpop k}
                {copy other k} {rename k m} {restore_by_set} {unlink k} {set k 1} {getdel k}} {
            r set other 1
            $c exists k
            is_told {} $c
            if {$change eq "restore_by_set"} {
                set change {set k v}
            }
            r {*}$change
            is_told {k} $c
        }
        r set k 1
        $c get k
        foreach look {{get k} {ttl k} {type k} {getex k} {exists k} {lpush other2 x} {object encoding k}} {
            r {*}$look
        }
        is_told {} $c
        r select 5
        r set k 1
        is_told {k} $c
    }

    test "what a script reads for the client counts" {} {
        set c [cacher]
        r mset a 1 b 2
        assert_equal 1 [$c eval {return redis.call("get", KEYS[1])} 1 a]
        assert_equal 2 [$c eval_ro {return redis.call("get", "b")} 0]
        r mset a 3 b 4
        assert_equal {a b} [lsort [concat {*}[invalidated $c]]]
    }

    test "the client's own changes are told of, after their reply, unless it wants no loop" {} {
        set c [cacher]
        $c get a
        assert_equal OK [$c set a 1]
        is_told {a} $c
        $c multi
        $c get a
        $c set a 2
        $c get a
        assert_equal {1 OK 2} [$c exec]
        is_told {a} $c
        $c client tracking on noloop
        $c get a
        $c set a 3
        is_told {} $c
        r set a 4
        is_told {} $c ;# it is not remembered any longer
        $c get a
        r set a 5
        is_told {a} $c
    }

    test "keys that expire, and keys that are evicted" {} {
        set c [cacher]
        r set a 1 px 30
        $c get a
        wait_for {[invalidated $c] eq "a"}
        r config set maxmemory-policy allkeys-lru
        set value [string repeat v 10000]
        for {set i 0} {$i < 50} {incr i} {
            r set k$i $value
            $c get k$i
        }
        r config set maxmemory [expr {[info_field used_memory memory] - 200000}]
        r set more 1
        wait_for {[r dbsize] < 45}
        r config set maxmemory 0
        set gone {}
        for {set i 0} {$i < 50} {incr i} {
            if {![r exists k$i]} {
                lappend gone k$i
            }
        }
        assert_equal [lsort $gone] [lsort [invalidated $c]]
        r config set maxmemory-policy noeviction
    }

    test "FLUSHDB and FLUSHALL: everything" {} {
        set c [cacher]
        set d [cacher bcast]
        $c get a
        r flushdb
        is_told * $c
        is_told * $d
        assert_equal {0 0 1} [tracked]
        r set a 1
        is_told {} $c
        is_told a $d
        r flushall
        is_told * $c
        $c flushall async
        is_told * $c
    }

    test "many clients on all workers read the same key" {} {
        set clients [lmap x [lrepeat 40 x] {cacher}]
        foreach c $clients {
            $c get a
            $c get a
            $c get b
        }
        assert_equal {2 80 0} [tracked]
        r set a 1
        foreach c $clients {
            is_told a $c
        }
        foreach c [lrange $clients 0 19] {
            $c -close
        }
        wait_for {[info_field tracking_clients clients] == 20}
        r set b 1
        foreach c [lrange $clients 20 end] {
            is_told b $c
        }
        assert_equal {0 0 0} [tracked]
    }

    test "readers that have gone do not fill the table" {keydb} {
        set stays [cacher]
        for {set i 0} {$i < 100} {incr i} {
            set c [cacher]
            $c get a
            $c -close
        }
        assert_range [lindex [tracked] 1] 1 99
        r set a 1
        assert_equal {0 0 0} [tracked]
        $stays get b
        $stays -close
        wait_for {[tracked] eq {0 0 0}} ;# nobody tracks any more
    }

    test "FLUSHALL empties the table also when nobody tracks just then" {} {
        set c [cacher]
        $c get a
        $c client tracking off
        r flushall
        assert_equal {0 0 0} [tracked]
        $c client tracking on
        r set a 1
        is_told {} $c
    }

    test "who waits for a key has its reply before it is told what changed for it" {} {
        set c [cacher]
        r rpush to a
        $c lrange to 0 -1
        $c -send blmove from to left left 0
        wait_for {[info_field blocked_clients clients] == 1}
        r rpush from x
        assert_equal {bulk x} [$c -reply]
        assert_equal {} [$c -pushes]
        is_told to $c
    }

    test "what goes to make room is told before the reply" {} {
        set c [cacher]
        r config set maxmemory-policy volatile-random
        r setex volatile 10000 x
        $c get volatile
        r config set maxmemory [expr {[info_field used_memory memory] + 100000}]
        r setbit big 4000000 0
        assert_equal 0 [$c getbit big 0]
        assert_equal {{invalidate volatile}} [lmap push [$c -pushes] {resp::bare $push}]
        r config set maxmemory 0
        r config set maxmemory-policy noeviction
    }

    test "OPTIN: only what follows CLIENT CACHING YES" {} {
        set c [cacher optin]
        $c get a
        r set a 1
        is_told {} $c
        $c client caching yes
        $c get a
        $c get b
        r mset a 1 b 1
        is_told a $c
        $c client caching yes
        $c client getname
        $c get a
        r set a 1
        is_told a $c
        foreach between {ping {get} {nosuch} {client nosuch}} {
            $c client caching yes
            catch {$c {*}$between}
            $c get a
            r set a 1
            is_told {} $c
        }
        $c client caching yes
        $c multi
        $c get a
        $c get b
        $c exec
        $c get c
        r mset a 1 b 1 c 1
        assert_equal {a b} [lsort [invalidated $c]]
        assert_refused "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode." \
            $c client caching no
    }

    test "OPTOUT: all but what follows CLIENT CACHING NO" {} {
        set c [cacher optout]
        $c client caching no
        $c get a
        $c get b
        r mset a 1 b 1
        is_told b $c
        assert_refused "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode." \
            $c client caching yes
        assert_refused "ERR syntax error" $c client caching maybe
    }

    test "BCAST: every change of keys with a prefix, together" {} {
        set c [cacher {bcast prefix a prefix b:}]
        set d [cacher bcast]
        assert_equal 3 [lindex [tracked] 2]
        r mset a2 1 a1 1 a1 2 b 1 b:1 1 x 1
        assert_equal {{a1 a2} b:1} [invalidated $c]
        assert_equal {{a1 a2 b b:1 x}} [invalidated $d]
        r set x 1
        is_told {} $c
        is_told x $d
        r multi
        r set a3 1
        r del a1
        r set x 1
        r exec
        assert_equal {{a1 a3}} [invalidated $c]
        assert_equal {{a1 a3 x}} [invalidated $d]
        $c set a1 1
        is_told a1 $c
        $d -close
        $c -close
        wait_for {[lindex [tracked] 2] == 0}
    }

    test "BCAST NOLOOP: others' changes only" {} {
        set c [cacher {bcast noloop}]
        set d [cacher bcast]
        $c mset a 1 b 1
        r set c 1
        assert_equal c [invalidated $c]
        assert_equal {{a b} c} [invalidated $d]
        r set e 1 px 20
        is_told e $c
        wait_for {[$c exists e] == 0}
        is_told e $c
    }

    test "REDIRECT: another connection is told, as message over RESP2" {} {
        foreach x {1 2 3 4 5 6} {
            set other [connect]
            set id [$other client id]
            set c [connect]
            $c client tracking on redirect $id
            assert_equal $id [$c client getredir]
            $c get a
            r set a 1
            $c ping ;# behind its reply the invalidation is queued for the other one
            assert_equal PONG [$other ping] ;# it subscribes to nothing: it could not understand
            $other subscribe __redis__:invalidate
            $c get a
            r set a 1
            assert_equal {message __redis__:invalidate a} [$other -read]
            r flushall
            assert_equal {message __redis__:invalidate {}} [$other -read]
            $c client tracking off
            $c client tracking on bcast prefix k redirect $id
            r mset k2 1 k1 1 x 1
            assert_equal {message __redis__:invalidate {k1 k2}} [$other -read]
        }
    }

    test "REDIRECT to a client of RESP3, which then goes" {} {
        foreach x {1 2 3 4 5 6} {
            set other [connect]
            $other hello 3
            set id [$other client id]
            set c [cacher [list redirect $id]]
            $c get a
            r set a 1
            is_told {} $c
            is_told a $other
            $other -close
            wait_for {[r client list id $id] eq {}}
            $c get a
            r set a 1
            set broken {}
            wait_for {[$c ping] ne "PONG" || [set broken [concat $broken [$c -pushes]]] ne {}}
            assert_equal [list push [list {bulk tracking-redir-broken} [list int $id]]] [lindex $broken 0]
            assert_equal [list flags {on broken_redirect} redirect $id prefixes {}] [$c client trackinginfo]
            assert_match "*flags=tR *redir=$id *" [r client list id [$c client id]]
            $c client tracking on
            assert_equal {flags on redirect 0 prefixes {}} [$c client trackinginfo]
        }
    }

    test "nobody is told who could not understand" {} {
        set c [connect]
        $c client tracking on
        $c get a
        r set a 1
        assert_equal PONG [$c ping]
        $c hello 3
        $c get a
        $c -send client reply off
        r set a 1
        $c -send client reply on
        is_told {a} $c
    }

    test "TRACKINGINFO, GETREDIR, CLIENT LIST, INFO; RESET ends it" {} {
        set c [connect]
        $c hello 3
        set id [$c client id]
        assert_equal {flags off redirect -1 prefixes {}} [$c client trackinginfo]
        assert_equal -1 [$c client getredir]
        foreach {options flags prefixes letters} {
            {} on {} t   {optin noloop} {on optin noloop} {} t   optout {on optout} {} t
            {bcast prefix b prefix a} {on bcast} {a b} tB   bcast {on bcast} {{}} tB
        } {
            $c client tracking on {*}$options
            assert_equal [list flags $flags redirect 0 prefixes $prefixes] [$c client trackinginfo]
            assert_match "*flags=$letters * redir=0 *" [r client list id $id]
            assert_equal 0 [$c client getredir]
            assert_equal 1 [info_field tracking_clients clients]
            $c client tracking off
            assert_match "*flags=N * redir=-1 *" [r client list id $id]
        }
        assert_reply {map {{bulk flags} {set {{bulk off}}} {bulk redirect} {int -1} {bulk prefixes} {array {}}}} \
            $c client trackinginfo
        $c client tracking on bcast
        $c reset
        assert_equal {flags off redirect -1 prefixes {}} [$c client trackinginfo]
        assert_equal 0 [info_field tracking_clients clients]
        $c client tracking on optin
        $c client caching yes
        assert_equal {flags {on optin caching-yes} redirect 0 prefixes {}} [$c client trackinginfo]
    }

    test "errors change nothing" {} {
        set c [connect]
        set switch "before disabling tracking for this client, and then re-enabling it with a different mode."
        foreach {options text} [list \
            {on optin optout} "You can't specify both OPTIN mode and OPTOUT mode" \
            {on bcast optin} "OPTIN and OPTOUT are not compatible with BCAST" \
            {on prefix a} "PREFIX option requires BCAST mode to be enabled" \
            {on redirect 99999} "The client ID you want redirect to does not exist" \
            {on redirect x} "value is not an integer or out of range" \
            {on redirect} "syntax error" \
            {on bcast prefix} "syntax error" \
            {on nonsense} "syntax error" \
            {off nonsense} "syntax error" \
            {maybe} "syntax error" \
            [list on redirect [r client id] redirect [r client id]] \
                "A client can only redirect to a single other client" \
            {on bcast prefix ab prefix a} "Prefix 'ab' overlaps with another provided prefix 'a'. Prefixes for a\
                single client must not overlap." \
            {on bcast prefix a prefix a} "Prefix 'a' overlaps with another provided prefix 'a'. Prefixes for a\
                single client must not overlap."] {
            assert_refused "ERR $text" $c client tracking {*}$options
            assert_equal -1 [$c client getredir]
        }
        assert_refused "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT\
            mode enabled" $c client caching yes
        $c client tracking on bcast prefix abc
        assert_refused "ERR Prefix 'ab' overlaps with an existing prefix 'abc'. Prefixes for a single client must not\
            overlap." $c client tracking on bcast prefix ab
        assert_refused "ERR You can't switch BCAST mode on/off $switch" $c client tracking on
        $c client tracking off
        $c client tracking on optin
        assert_refused "ERR You can't switch OPTIN/OPTOUT mode $switch" $c client tracking on optout
        assert_equal 0 [$c client getredir]
    }

    test "the table keeps within its limit; who is forgotten is told" {} {
        with_config {tracking-table-max-keys 10} {
            set c [cacher]
            set told {}
            for {set i 0} {$i < 11} {incr i} {
                $c get k$i
            }
            wait_for {[lindex [tracked] 0] <= 10}
            wait_for {[llength [lappend told {*}[invalidated $c]]] == 1}
            for {set i 11} {$i < 500} {incr i} {
                $c get k$i
            }
            wait_for {[lindex [tracked] 0] == 10}
            wait_for {[llength [lappend told {*}[invalidated $c]]] == 490}
            assert_equal 490 [llength [lsort -unique $told]]
            r config set tracking-table-max-keys 3
            wait_for {[lindex [tracked] 0] == 3}
            wait_for {[llength [lappend told {*}[invalidated $c]]] == 497}
            r config set tracking-table-max-keys 0
            for {set i 0} {$i < 50} {incr i} {
                $c get n$i
            }
            assert_equal 53 [lindex [tracked] 0]
        }
    }
}

with_server {} {
    # A client with a cache reads keys that others write at the same time; what it holds in the end must be so.
    test "a cache that obeys invalidations is never stale" {} {
        set writers [lmap x {1 2 3 4} {connect}]
        set cachers [lmap x {1 2 3 4 5 6} {cacher}]
        foreach c $cachers {
            set cache($c) {}
        }
        set n 0
        for {set round 0} {$round < 60} {incr round} {
            foreach w $writers {
                for {set i 0} {$i < 5} {incr i} {
                    $w -send set key[expr {int(rand() * 20)}] [incr n]
                }
            }
            foreach c $cachers {
                foreach i {1 2 3 4 5 6} {
                    set key key[expr {int(rand() * 20)}]
                    if {![dict exists $cache($c) $key]} {
                        set value [$c get $key]
                        foreach gone [concat {*}[lmap push [$c -pushes] {lindex [resp::bare $push] 1}]] {
                            dict unset cache($c) $gone
                        }
                        # An invalidation that came before this reply may be of this very key, and is older.
                        dict set cache($c) $key $value
                    }
                }
            }
            foreach w $writers {
                for {set i 0} {$i < 5} {incr i} {
                    $w -read
                }
            }
        }
        foreach c $cachers {
            $c ping
            foreach gone [concat {*}[lmap push [$c -pushes] {lindex [resp::bare $push] 1}]] {
                dict unset cache($c) $gone
            }
            dict for {key value} $cache($c) {
                assert_equal [r get $key] $value "$key of $c"
            }
        }
    }
}
