# What a group of servers tells of itself, and what the role of a server changes: ROLE, INFO, WAIT, refusals, FAILOVER,
# SHUTDOWN. Replies are compared with those of redis-server in the same place.

# ---- the same words to both

set facts_library {#!lua name=l
redis.register_function("w", function(k) return redis.call("set", k[1], "v") end)
redis.register_function{function_name="n", callback=function(k) return redis.call("get", k[1]) end, flags={"no-writes"}}
redis.register_function{function_name="s", callback=function(k) return redis.call("get", k[1]) end,
    flags={"no-writes", "allow-stale"}}}

# Commands that may be refused: of every kind that is checked.
proc facts_attempts {} {
    set attempts {
        {set k v} {get k} ping {del k} {eval {return 1} 0} {eval_ro {return redis.call("get", "a")} 0}
        {eval {return redis.call("set", "a", "b")} 0} {eval {return redis.call("get", "a")} 0}
        {eval {return redis.pcall("set", "a", "b").err} 0} {script load {return 1}} {function flush}
        {fcall w 1 x} {fcall n 1 x} {fcall_ro n 1 x} {fcall s 1 x} {publish a b} {spublish a b} flushall role
        {pfcount a} {config get none} {watch a} {blpop q 1} {wait 0 0} {keys none*} {select 0} {sort l store x}
        multi {set a b} exec multi {get a} exec multi ping exec
    }
    foreach flags {{} { flags=no-writes} { flags=allow-stale} { flags=allow-stale,no-writes}} {
        foreach call {{"set", "a", "1"} {"get", "a"}} {
            lappend attempts [list eval "#!lua$flags\nreturn redis.call($call)" 0]
            lappend attempts [list eval_ro "#!lua$flags\nreturn redis.call($call)" 0]
        }
    }
    return $attempts
}

proc facts_compare {mine theirs} {
    foreach attempt [facts_attempts] {
        assert_equal [list $attempt [on $theirs -typed {*}$attempt]] [list $attempt [on $mine -typed {*}$attempt]]
    }
}

proc both {body} {
    foreach name {m o} {
        uplevel 1 [list set member $name]
        uplevel 1 $body
    }
}

# What a transaction with this command is told on a server that comes into that state before the command is queued,
# or before EXEC; with the counts of refusals.
proc facts_transaction {member options command when} {
    set c [member_connect $member]
    set is_replica [expr {[lindex $options 1] in {0 no}}]
    on $member config resetstat
    $c multi
    foreach step {queueing exec} {
        if {$step eq $when} {
            on $member config set {*}$options
            if {$is_replica} {
                on $member replicaof 127.0.0.1 1
            }
        }
        lappend replies [$c -typed {*}[expr {$step eq "exec" ? "exec" : $command}]]
    }
    $c -close
    on $member replicaof no one
    on $member config set min-replicas-to-write 0 replica-serve-stale-data yes maxmemory 0
    foreach name [list [lindex $command 0] exec] {
        set line {}
        regexp "cmdstat_$name:\[^\r]*(rejected_calls=\[0-9]+,failed_calls=\[0-9]+)" \
            [on $member info commandstats] all line
        lappend replies $line
    }
    return $replies
}

# The fields of the link to the master in CLIENT LIST.
proc facts_master_line member {
    set fields {}
    foreach word [on $member client list type master] {
        regexp {^([^=]*)=(.*)$} $word all name value
        dict set fields $name $value
    }
    return $fields
}

with_server {} {
    test "what is refused for the role is refused as redis-server does it" {} {
        with_group {m ours {} o oracle {}} {
            both {on $member function load $::facts_library}
            both {on $member config set min-replicas-to-write 1}
            facts_compare m o
            both {on $member config set min-replicas-to-write 0}
            # A master that is never there.
            both {on $member replicaof 127.0.0.1 1}
            facts_compare m o
            both {on $member config set replica-serve-stale-data no}
            facts_compare m o
            both {on $member config set replica-read-only no}
            facts_compare m o
            both {on $member config set replica-serve-stale-data yes}
            foreach attempt {{set k v} {get k} {eval {return redis.call("set", "a", "b")} 0} {wait 0 0} multi
                    {set a c} exec {fcall w 1 x} {blpop none 0.01}} {
                assert_equal [on o -typed {*}$attempt] [on m -typed {*}$attempt] $attempt
            }
            both {on $member replicaof no one}
            both {assert_equal OK [on $member set k v]}
        }
    }

    test "INFO counts attempts to link, and the time without a link that there had been" {noconn keydb} {
        with_group {m ours {} r ours {}} {
            follow r m
            wait_same m r
            proc link_counts {} {
                return [lmap name {master_current_sync_attempts master_total_sync_attempts total_disconnect_time_sec} {
                    section_field r replication $name
                }]
            }
            assert_equal {1 1 0} [link_counts]
            on r client kill type master
            wait_for {[link_counts] eq {1 2 0}}
            # The next attempts are a second apart, and fail.
            on r replicaof 127.0.0.1 1
            wait_for {[lindex [link_counts] 0] >= 3 && [lindex [link_counts] 2] >= 1}
            lassign [link_counts] current total
            assert_range $total $current [expr {$current + 1}]
            follow r m
            wait_same m r
            set away [lindex [link_counts] 2]
            assert_equal [list 1 1 $away] [link_counts]
            # Nothing is lost while there is no master.
            on r replicaof no one
            assert {![string match *sync_attempts* [on r info replication]]}
            follow r m
            wait_same m r
            assert_equal [list 1 1 $away] [link_counts]
        }
    }

    test "MONITOR on a replica shows the master's stream as redis-server does" {} {
        with_group {from oracle {} m ours {} o oracle {}} {
            on from function load $::facts_library
            both {follow $member from}
            wait_same from m o
            both {
                set monitors($member) [member_connect $member]
                $monitors($member) monitor
            }
            foreach words {{set a 1} {select 3} {set "b c" "\x01\""} multi {incr n} {lpush l x} exec
                    {eval {redis.call("set", "s", 1) redis.call("incr", "s")} 0} {fcall w 1 k} {publish c message}
                    multi {set a 2} {select 2} {set a 3} exec {set last 1 px 100000000}} {
                on from {*}$words
            }
            both {
                set lines {}
                while {![string match {*"last"*} [set line [$monitors($member) -line]]]} {
                    if {![regexp -nocase {"(info|role|ping)"} $line]} {
                        lappend lines [regsub {^\+\d{10}\.\d{6} } $line {}]
                    }
                }
                set seen($member) $lines
                $monitors($member) -close
            }
            assert_equal 19 [llength $seen(o)]
            assert_equal $seen(o) $seen(m)
        }
    }

    test "a transaction that was queued before is refused; a replica reads in groups" {} {
        with_group {m ours {}} {
            set c [member_connect m]
            $c multi
            $c set a 1
            on m replicaof 127.0.0.1 1
            assert_refused "EXECABORT Transaction discarded because of: READONLY You can't write against a read only\
                replica." $c exec
            on m replicaof no one
            on m set a 2
            on m replicaof 127.0.0.1 1
            for {set i 0} {$i < 50} {incr i} {
                $c -send get a
                $c -send set a 3
            }
            for {set i 0} {$i < 50} {incr i} {
                assert_equal 2 [$c -read]
                catch {$c -read} reply
                assert_match "READONLY *" $reply
            }
        }
    }

    test "clients that are blocked get an error when their server becomes a replica" {} {
        with_group {m ours {} o oracle {}} {
            foreach words {{blpop q 0} {wait 3 0} {xread block 0 streams s 0} {brpoplpush a b 0}} {
                both {
                    on $member replicaof no one
                    set c [member_connect $member]
                    $c -send {*}$words
                    wait_for {[string match "*blocked_clients:1\r\n*" [on $member info clients]]}
                    on $member replicaof 127.0.0.1 1
                    catch {$c -read} reply
                    assert_equal "UNBLOCKED force unblock from blocking operation, instance state changed (master ->\
                        replica?)" $reply
                    assert_equal 1 [$c -closed]
                    wait_for {[string match "*blocked_clients:0\r\n*" [on $member info clients]]}
                }
            }
        }
    }

    test "another master ends waits on a writable replica; the same one and NO ONE do not" {} {
        with_group {m ours {replica-read-only no} o oracle {replica-read-only no}} {
            foreach words {{blpop q 0} {xread block 0 streams s 0} {brpoplpush a b 0}} {
                both {
                    on $member replicaof 127.0.0.1 1
                    set c [member_connect $member]
                    $c -send {*}$words
                    wait_for {[section_field $member clients blocked_clients] == 1}
                    on $member replicaof 127.0.0.1 1
                    on $member replicaof no one
                    on $member replicaof no one
                    assert_equal 1 [section_field $member clients blocked_clients]
                    on $member replicaof 127.0.0.1 1
                    catch {$c -read} reply
                    assert_match "UNBLOCKED *" $reply
                    assert_equal 1 [$c -closed]
                    set c [member_connect $member]
                    $c -send {*}$words
                    wait_for {[section_field $member clients blocked_clients] == 1}
                    on $member replicaof 127.0.0.1 2
                    catch {$c -read} reply
                    assert_match "UNBLOCKED *" $reply
                    assert_equal 1 [$c -closed]
                    wait_for {[section_field $member clients blocked_clients] == 0}
                }
            }
        }
    }

    test "a replica deletes nothing by itself, and shows nothing that has expired" {} {
        with_group {m ours {} r ours {maxmemory-policy allkeys-lru}} {
            follow r m
            wait_link r
            on m debug set-active-expire 0
            on m set gone 1 px 1000
            on m hset h f 1
            on m set stays 1
            wait_same m r
            wait_for {[on r get gone] eq {}}
            assert_equal {3 0 {}} [list [on r dbsize] [on r exists gone] [on r get gone]]
            assert_equal -2 [on r ttl gone]
            assert_equal {h stays} [lsort [on r keys *]]
            # The limit is the master's matter, too.
            on r config set maxmemory 1
            on m set more 1
            wait_for {[on r get more] eq {1}}
            assert_equal 0 [stats_of r evicted_keys]
            assert_equal 4 [on r dbsize]
            on r config set replica-ignore-maxmemory no
            wait_for {[on r ping] eq "PONG" && [on r dbsize] == 0}
            on r config set maxmemory 0
            # Afterwards it does as any master does.
            on r replicaof no one
            on r set gone 1 px 20
            wait_for {[stats_of r expired_keys] >= 1}
        }
    }

    test "what clients write on a replica stays there, and its keys expire" {} {
        with_group {m ours {} r ours {replica-read-only no appendonly yes} c ours {}} {
            follow r m
            follow c r
            wait_link r
            wait_link c
            assert_equal 1 [on r client kill type master]
            wait_for {[lindex [sync_counts m] 1] == 1}
            wait_link r
            on m set theirs 1
            on r set mine 1
            on r set short 1 px 100
            on r select 3
            on r set elsewhere 1 px 100
            on r select 0
            assert_equal 2 [stats_of r slave_expires_tracked_keys]
            on r publish somewhere something
            wait_for {[stats_of r expired_keys] == 2}
            assert_equal 0 [stats_of r slave_expires_tracked_keys]
            on m set after 1
            wait_for {[has_all m r] && [has_all r c]}
            assert_equal {after theirs} [lsort [on c keys *]]
            assert_equal {after mine theirs} [lsort [on r keys *]]
            set before [on r debug digest]
            on r debug loadaof
            assert_equal $before [on r debug digest]
        }
    }

    test "what the stream gives to a client that waits on a writable replica is in its file" {} {
        with_group {m ours {} r ours {replica-read-only no appendonly yes appendfsync always}} {
            follow r m
            wait_link r
            wait_for {[string match "*Background AOF rewrite finished successfully*" [slurp [member r log]]]}
            on m select 2
            on m rpush filled x
            on m select 0
            wait_same m r
            set waiting {}
            foreach words {{blpop list 0} {brpop list 0} {blmove list other left right 0} {bzpopmin z 0}
                {blmpop 0 1 pair left count 2} {xreadgroup group g c block 0 streams s >}} {
                if {[lindex $words 0] eq "xreadgroup"} {
                    on m xgroup create s g $ mkstream
                    wait_same m r
                }
                set c [member_connect r]
                $c -send {*}$words
                lappend waiting $c
                wait_for {[section_field r clients blocked_clients] == [llength $waiting]}
            }
            # In one batch, with others around it and a transaction.
            set c [member_connect m]
            foreach words {multi {set before 1} {rpush list a b c d e} {zadd z 1 one 2 two} {select 2} {rpush filled y}
                {select 0} {rpush pair 1 2 3} exec {xadd s 1-1 f v} {append before 2} {rpush list f}} {
                $c -send {*}$words
            }
            for {set i 0} {$i < 12} {incr i} {
                $c -read
            }
            set seen {}
            foreach client $waiting {
                lappend seen [$client -read]
            }
            assert_equal {{list a} {list e} b {z one 1} {pair {1 2}} {{s {{1-1 {f v}}}}}} $seen
            wait_for {[has_all m r]}
            assert_equal {c d f} [on r lrange list 0 -1]
            assert_equal {a b c d e f} [on m lrange list 0 -1]
            set before [on r debug digest]
            member_kill r KILL
            member_start r {replicaof {}}
            assert_equal {c d f} [on r lrange list 0 -1]
            assert_equal {b} [on r lrange other 0 -1]
            assert_equal {two} [on r zrange z 0 -1]
            assert_equal {3} [on r lrange pair 0 -1]
            assert_equal 1 [lindex [on r xpending s g] 0]
            assert_equal 12 [on r get before]
            assert_equal $before [on r debug digest]
        }
    }

    test "ROLE and INFO replication of both sides have redis-server's lines" {} {
        with_group {m ours {repl-ping-replica-period 3600} o oracle {repl-ping-replica-period 3600} a oracle {}
                b oracle {}} {
            set lines {}
            foreach {master replica} {m a o b} {
                follow $replica $master
                wait_link $replica
                on $master set k v
                assert_equal 1 [on $master wait 1 5000]
                assert_equal [list master [replication $master master_repl_offset]] [lrange [on $master role] 0 1]
                assert_equal [member $replica plain_port] [expr {[srv tls] ? [member $replica plain_port] :
                    [lindex [on $master role] 2 0 1]}]
                on $master config set min-replicas-to-write 1
                lappend lines [regexp -all -inline -line {^[a-z_0-9]+(?=:)} [on $master info replication]]
                assert_equal 1 [replication $master min_slaves_good_slaves]
            }
            assert_equal [lindex $lines 1] [lindex $lines 0]
            assert_match "*slave0:ip=127.0.0.1,port=*,state=online,offset=*,lag=*" [on m info replication]
            assert_equal 1 [regexp -all {flags=S } [on m client list type replica]]
            assert_equal {} [on m client list type master]
            assert_equal 0 [on m client kill type master]
            assert_equal 1 [on m client kill type slave]
            wait_for {[replication m connected_slaves] == 1 && [lindex [sync_counts m] 1] == 1}
            both {on $member replicaof 127.0.0.1 1}
            set lines {}
            both {lappend lines [regexp -all -inline -line {^[a-z_0-9]+(?=:)} [on $member info replication]]}
            # Those of Redis 8.
            set newer {master_current_sync_attempts master_total_sync_attempts total_disconnect_time_sec}
            assert_equal [lindex $lines 1] [lmap name [lindex $lines 0] {
                if {$name in $newer} continue
                set name
            }]
            assert_equal {slave 127.0.0.1 1} [lrange [on m role] 0 2]
        }
    }

    test "NOREPLICAS while there are too few good replicas" {} {
        with_group {m ours {min-replicas-to-write 1 min-replicas-max-lag 2} r oracle {}} {
            assert_refused "NOREPLICAS Not enough good replicas to write." [on m] set a 1
            assert_equal {} [on m get a]
            follow r m
            wait_for {[on m -typed set a 1] eq "status OK"}
            process_signal [member r process] STOP
            wait_for {[lindex [on m -typed set a 1] 0] eq "error"}
            process_signal [member r process] CONT
            wait_for {[on m -typed set a 1] eq "status OK"}
        }
    }

    test "WAIT counts who has applied the client's own last write" {} {
        with_group {m ours {} r oracle {} s ours {}} {
            follow r m
            follow s m
            wait_link r
            wait_link s
            on m set a 1
            assert_equal 2 [on m wait 2 5000]
            process_signal [member r process] STOP
            set c [member_connect m]
            # It has written nothing yet.
            assert_equal 2 [$c wait 2 1]
            $c set b 1
            assert_equal 1 [$c wait 1 5000]
            assert_equal 1 [$c wait 2 100]
            $c multi
            $c set b 2
            $c wait 2 0
            assert_range [lindex [$c exec] 1] 0 1
            $c -send wait 2 0
            wait_for {[string match "*blocked_clients:1\r\n*" [on m info clients]]}
            process_signal [member r process] CONT
            assert_equal 2 [$c -read]
            foreach words {{wait x 0} {wait 1 x} {wait 1 -1}} {
                assert_equal [on r -typed {*}$words] [on r -typed {*}$words]
            }
            assert_match {error *WAIT cannot be used with replica instances*} [on s -typed wait 0 0]
            assert_equal [on r -typed wait 0 0] [on s -typed wait 0 0]
        }
    }

    test "WAITAOF counts files, here and on replicas" {} {
        with_group {m ours {appendonly yes} r ours {appendonly yes} s ours {}} {
            follow r m
            follow s m
            wait_link r
            wait_link s
            on m set a 1
            assert_equal {1 1} [on m waitaof 1 1 10000]
            on m set a 2
            assert_equal 1 [lindex [on m waitaof 0 2 3000] 1]
            assert_match {error *WAITAOF cannot be used with replica instances*} [on r -typed waitaof 0 0 0]
        }
    }

    foreach {from to} {ours ours ours oracle oracle ours} {
        test "FAILOVER from $from to $to under load loses no acknowledged write" {} [string map [list \
                @from $from @to $to] {
            with_group {m @from {} r @to {}} {
                follow r m
                wait_link r
                wait_for {[string match "*state=online*" [on m info replication]]}
                set c [member_connect m]
                set acked 0
                for {set i 1} {$i <= 2000} {incr i} {
                    $c -send set n $i
                }
                for {set i 1} {$i <= 1000} {incr i} {
                    $c -read
                    set acked $i
                }
                assert_equal OK [on m failover to 127.0.0.1 [member r port] timeout 10000]
                for {} {$i <= 2000} {incr i} {
                    if {[catch {$c -read} reply]} {
                        assert_match "READONLY *" $reply
                        break
                    }
                    set acked $i
                }
                wait_for {[lindex [on r role] 0] eq "master" && [link_is_up m]}
                assert_equal $acked [on r get n]
                assert_equal {0 1} [lrange [sync_counts r] 0 1]
                wait_for {[replication m master_failover_state] eq "no-failover"}
                on r set further 1
                wait_same r m
                # And back.
                wait_for {[string match "*state=online*" [on r info replication]]}
                assert_equal OK [on r failover]
                wait_for {[lindex [on m role] 0] eq "master" && [link_is_up r]}
                on m set again 1
                wait_same m r
            }
        }]
    }

    test "FAILOVER that cannot be: refused, given up after its time, aborted" {} {
        with_group {m ours {} o oracle {} r ours {} s oracle {}} {
            set attempts {failover {failover abort} {failover abort x} {failover to} {failover to a} {failover to a x}
                {failover timeout 0} {failover timeout x} {failover force} {failover x} {failover timeout}
                {failover to a 1 timeout x} {failover timeout 10 timeout 20} {failover to a 1 to b 2}
                {failover to a 1 force}}
            foreach words $attempts {
                assert_equal [on o -typed {*}$words] [on m -typed {*}$words] $words
            }
            follow r m
            follow s o
            foreach master {m o} {
                wait_for {[string match "*state=online*" [on $master info replication]]}
            }
            foreach replica {r s} {
                wait_link $replica
            }
            foreach words {{failover force} {failover to a 1} {failover timeout 0} {failover to a x} {failover x}} {
                assert_equal [on o -typed {*}$words] [on m -typed {*}$words] $words
            }
            assert_equal [on s -typed failover] [on r -typed failover]
            assert_equal [on o -typed psync ? -1 failover] [on m -typed psync ? -1 failover]

            process_signal [member r process] STOP
            on m set a 1
            assert_equal OK [on m failover to 127.0.0.1 [member r port] timeout 300]
            assert_equal waiting-for-sync [replication m master_failover_state]
            assert_error "ERR FAILOVER already in progress." {on m failover}
            assert_error "ERR REPLICAOF not allowed while failing over." {on m replicaof no one}
            set c [member_connect m]
            $c -send set a 2
            assert_equal 1 [on m get a]
            assert_equal OK [$c -read]
            assert_equal {no-failover master} [list [replication m master_failover_state] [lindex [on m role] 0]]

            assert_equal OK [on m failover]
            $c -send set a 3
            assert_equal OK [on m failover abort]
            assert_equal OK [$c -read]
            process_signal [member r process] CONT
            wait_same m r
        }
    }

    test "a transaction is refused for what its scripts declare, as redis-server does it" {} {
        with_group {m ours {} o oracle {}} {
            both {on $member function load $::facts_library}
            set commands {{set k v} {get k} {fcall w 1 x} {fcall n 1 x} {fcall s 1 x} {fcall_ro w 1 x} {fcall none 0}
                {eval {return 1} 0} {publish a b}}
            foreach flags {{} { flags=no-writes} { flags=allow-stale} { flags=allow-oom} { flags=none}} {
                lappend commands [list eval "#!lua$flags\nreturn 1" 0] [list eval_ro "#!lua$flags\nreturn 1" 0]
            }
            foreach options {{min-replicas-to-write 0} {replica-serve-stale-data no} {min-replicas-to-write 1}
                    {maxmemory 1}} {
                foreach command $commands {
                    foreach when {queueing exec} {
                        # Since Redis 7.4 what needs no memory, and so is not refused by EXEC, is queued.
                        if {$options eq {maxmemory 1} && $when eq "queueing" &&
                                ![string match *OOM* [facts_transaction o $options $command exec]]} {
                            assert {![string match *OOM* [facts_transaction m $options $command queueing]]} $command
                            continue
                        }
                        assert_equal [list $options $command $when [facts_transaction o $options $command $when]] \
                            [list $options $command $when [facts_transaction m $options $command $when]]
                    }
                }
            }
        }
    }

    test "CLIENT LIST and CLIENT KILL know the link to the master, as redis-server does" {} {
        with_group {m oracle {} r ours {} o oracle {}} {
            foreach name {r o} {
                follow $name m
            }
            on m set a 1
            wait_same m r o
            foreach name {r o} {
                set line [facts_master_line $name]
                set said($name) [list [regexp -all {flags=M} [on $name client list]] \
                    [regexp -all {flags=M} [on $name client list type normal]] \
                    [on $name client kill type normal] [on $name client kill user default] \
                    [llength [split [string trim [on $name client list id [dict get $line id]]] \n]] \
                    [regexp -inline {connected_clients:\d+} [on $name info clients]]]
                foreach field {flags db sub psub ssub multi qbuf argv-mem multi-mem obl oll omem events user redir
                        resp} {
                    lappend said($name) [dict get $line $field]
                }
                assert_equal 127.0.0.1:[member m port] [dict get $line addr]
                foreach {option field} {id id addr addr laddr laddr} {
                    set before [stats_of m sync_partial_ok]
                    assert_equal 1 [on $name client kill $option [dict get [facts_master_line $name] $field]]
                    wait_for {[stats_of m sync_partial_ok] > $before && [link_is_up $name]}
                }
                set before [stats_of m sync_partial_ok]
                assert_equal OK [on $name client kill [dict get [facts_master_line $name] addr]]
                wait_for {[stats_of m sync_partial_ok] > $before && [link_is_up $name]}
                on $name replicaof no one
                lappend said($name) [on $name client list type master] [on $name client kill type master]
            }
            assert_equal $said(o) $said(r)
        }
    }

    test "SHUTDOWN does not wait for the first full sync of a replica if nothing was written since" {} {
        with_group {m ours {shutdown-timeout 60 rdb-key-save-delay 50000} r ours {}} {
            on m debug populate 1000
            follow r m
            wait_for {[string match "*state=wait_bgsave*" [on m info replication]]}
            catch {on m shutdown nosave}
            assert_equal 0 [process_wait [member m process] 20000]
            member_start m
        }
    }

    test "SHUTDOWN waits for replicas, with writes paused" {} {
        with_group {m ours {shutdown-timeout 60} r oracle {}} {
            follow r m
            wait_link r
            wait_for {[string match "*state=online*" [on m info replication]]}
            process_signal [member r process] STOP
            on m set a 1
            set sockets /proc/[process_pid [member m process]]/fd/*
            set count [llength [glob $sockets]]
            set c [member_connect m]
            $c -send shutdown
            wait_for {[string match "*shutdown_in_milliseconds:*" [on m info server]]}
            set writer [member_connect m]
            $writer -send set a 2
            assert_equal {1 PONG} [list [on m get a] [on m ping]]
            assert_equal OK [on m shutdown abort]
            assert_error "ERR Errors trying to SHUTDOWN. Check logs." {$c -read}
            assert_equal OK [$writer -read]
            assert_error "ERR No shutdown in progress." {on m shutdown abort}
            $c -close
            $writer -close
            wait_for {[llength [glob $sockets]] == $count}
            process_signal [member m process] TERM
            wait_for {[string match "*shutdown_in_milliseconds:*" [on m info server]]}
            process_signal [member r process] CONT
            assert_equal 0 [process_wait [member m process] 20000]
            assert_equal 2 [on r get a]
            member_start m
            wait_link r
            wait_for {[string match "*state=online*" [on m info replication]]}
            process_signal [member r process] STOP
            on m set a 3
            catch {on m shutdown now}
            assert_equal 0 [process_wait [member m process] 20000]
            process_signal [member r process] CONT
            member_start m
        }
    }
}
