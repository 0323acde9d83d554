# redis-sentinel 7.0 watches our servers: what it asks of them, and what it makes them do.

# Sentinels are told to hurry, and to take a server for down after a second.
proc sentinels_watch {names master {quorum 2} args} {
    foreach name $names {
        on $name sentinel debug info-period 600 ping-period 400 ask-period 300 publish-period 300 \
            default-failover-timeout 6000 election-timeout 3000
        on $name sentinel monitor group 127.0.0.1 [member $master port] $quorum
        on $name sentinel set group down-after-milliseconds 1000 failover-timeout 6000 {*}$args
    }
}

proc sentinel_of {name what} {
    return [dict get [on $name sentinel master group] $what]
}

# Port -> facts of each replica that the sentinel knows.
proc sentinel_replicas name {
    set found {}
    foreach facts [on $name sentinel replicas group] {
        dict set found [dict get $facts port] $facts
    }
    return $found
}

proc wait_sentinel_knows {name replica_count {sentinel_count 0}} {
    wait_for {[sentinel_of $name num-slaves] == $replica_count &&
        [sentinel_of $name num-other-sentinels] == $sentinel_count} 20000
    wait_for {[replicas_heard_of $name] == $replica_count}
}

# Replicas that have told the sentinel that their link is up.
proc replicas_heard_of name {
    set count 0
    dict for {port facts} [sentinel_replicas $name] {
        incr count [expr {[dict get $facts master-link-status] eq "ok" && [dict get $facts slave-repl-offset] > 0}]
    }
    return $count
}

proc chosen name {
    return [lindex [on $name sentinel get-master-addr-by-name group] 1]
}

proc wait_chosen {names port} {
    foreach name $names {
        wait_for {[chosen $name] == $port} 30000
    }
}

proc member_at {port names} {
    foreach name $names {
        if {[member $name port] == $port} {
            return $name
        }
    }
    fail "$port is nobody's port"
}

proc config_lines {name word} {
    return [lsearch -all -inline [split [slurp [member $name dir]/server.conf] \n] "$word *"]
}

# A sentinel's transaction makes a server follow first and closes its clients after that: a client of another thread can
# hear the new role between the two. What the sentinel itself heard after its transaction is behind both.
proc knows_follower {name follower port} {
    set replicas [sentinel_replicas $name]
    set key [member $follower port]
    return [expr {[dict exists $replicas $key] && [dict get $replicas $key role-reported] eq "slave" &&
        [dict get $replicas $key master-port] == $port}]
}

# The one that the sentinel has chosen is a master, the others follow it, all with the same data, and no sentinel is
# about to close their clients.
proc wait_failed_over {sentinels candidates others} {
    set port [chosen [lindex $sentinels 0]]
    set new [member_at $port $candidates]
    wait_for {[replication_is $new role master]}
    foreach name [concat $candidates $others] {
        if {$name ne $new} {
            wait_for {[replication_is $name master_port $port]} 30000
            foreach sentinel $sentinels {
                wait_for {[knows_follower $sentinel $name $port]}
            }
            # What was asked before may have been asked by a client that they have closed since.
            member_forget_link $new
            member_forget_link $name
            wait_same $new $name
        }
    }
    return $new
}

proc switched_from {sentinels port} {
    foreach name $sentinels {
        wait_for {[chosen $name] != $port} 30000
    }
}

test "three sentinels find replicas and each other, and replace a master that was killed" {noconn slow} {
    set in_file {.file 1}
    with_group [list m ours $in_file a ours $in_file b ours $in_file s1 sentinel {} s2 sentinel {} s3 sentinel {}] {
        set sentinels {s1 s2 s3}
        fill_everything m
        follow a m
        follow b m
        wait_same m a b
        sentinels_watch $sentinels m 2
        foreach s $sentinels {
            wait_sentinel_knows $s 2 2
        }
        assert_equal master [sentinel_of s1 role-reported]
        assert_equal [section_field m server run_id] [sentinel_of s1 runid]
        foreach name {a b} {
            set facts [dict get [sentinel_replicas s1] [member $name port]]
            assert_equal slave [dict get $facts role-reported]
            assert_equal slave [dict get $facts flags]
            assert_equal 100 [dict get $facts slave-priority]
            assert_equal 1 [dict get $facts replica-announced]
            assert_equal [member m port] [dict get $facts master-port]
            assert_equal [section_field $name server run_id] [dict get $facts runid]
        }
        assert_match "OK 3 usable Sentinels*" [on s1 sentinel ckquorum group]

        # Clients of servers that get another master are closed, so that they ask again where to go.
        set reader [member_connect a]
        $reader subscribe news
        set writer [member_connect b]
        $writer ping
        set before [everything_beside_digest m]
        set old [member m port]
        member_kill m
        switched_from $sentinels $old
        assert_equal 1 [$reader -closed]
        assert_equal 1 [$writer -closed]
        set new [wait_failed_over $sentinels {a b} {}]
        set other [expr {$new eq "a" ? "b" : "a"}]
        assert_equal $before [everything_beside_digest $new]
        assert_equal {0 1} [lrange [sync_counts $new] 0 1]
        wait_for {[config_lines $new replicaof] eq {}}
        wait_for {[config_lines $other replicaof] eq [list "replicaof 127.0.0.1 [member $new port]"]}
        on $new set after 1

        # The old master comes back: it knows of nothing, and is made a replica.
        member_start m
        assert_equal $new [wait_failed_over $sentinels {a b} m]
        assert_everything_same $new $other m
        wait_for {[config_lines m replicaof] eq [list "replicaof 127.0.0.1 [member $new port]"]}

        # Who starts again goes on with what CONFIG REWRITE wrote.
        member_kill $other
        member_start $other
        wait_same $new $other
    }
}

test "priorities decide who takes over: the lowest, never 0" {noconn slow} {
    with_group {m ours {} never ours {replica-priority 0} high ours {replica-priority 50} low ours {replica-priority 10}
            s sentinel {}} {
        foreach name {never high low} {
            follow $name m
        }
        on m set key value
        wait_same m never high low
        sentinels_watch s m 1
        wait_sentinel_knows s 3
        assert_equal {0 10 50} [lsort -integer [lmap {port facts} [sentinel_replicas s] {
            dict get $facts slave-priority
        }]]
        member_kill m
        wait_chosen s [member low port]
        assert_equal low [wait_failed_over s {never high low} {}]
        on low config set replica-priority 7
        wait_same low never high
    }
}

test "a failover that was ordered: the master follows, siblings continue, nothing is lost" {noconn slow} {
    with_group {m ours {} a ours {} b ours {} s sentinel {}} {
        fill_everything m
        follow a m
        follow b m
        wait_same m a b
        sentinels_watch s m 1
        wait_sentinel_knows s 2
        for {set round 1} {$round <= 2} {incr round} {
            set old [chosen s]
            on [member_at $old {m a b}] set round:$round 1
            wait_for {![catch {on s sentinel failover group}]}
            switched_from s $old
            set new [wait_failed_over s {m a b} {}]
            assert_equal 1 [on $new exists round:$round]
            assert_everything_same $new {*}[lsearch -all -inline -not -exact {m a b} $new]
        }
    }
}

test "a master that only slept becomes a replica, and its own last writes go" {noconn slow} {
    with_group {m ours {} a ours {} s sentinel {}} {
        on m set key value
        follow a m
        wait_same m a
        sentinels_watch s m 1
        wait_sentinel_knows s 1
        set late [member_connect m]
        $late ping
        process_signal [member m process] STOP
        $late -send set late 1
        wait_chosen s [member a port]
        wait_for {[replication_is a role master]}
        on a set key new
        process_signal [member m process] CONT
        assert_equal a [wait_failed_over s a m]
        assert_equal {} [on m get late]
        assert_equal new [on m get key]
    }
}

test "replicas that are not announced are not seen; what is announced is believed" {noconn slow} {
    with_group {m ours {} hidden ours {replica-announced no} known ours {replica-announce-ip localhost} s sentinel {}} {
        set via [proxy_open known]
        on known config set replica-announce-ip 127.0.0.2 replica-announce-port [proxy_port $via]
        follow hidden m
        follow known m
        wait_same m hidden known
        sentinels_watch s m 1
        wait_for {[dict exists [sentinel_replicas s] [proxy_port $via]]}
        assert_equal 127.0.0.2 [dict get [sentinel_replicas s] [proxy_port $via] ip]
        # The hidden one is in INFO of the master, so the sentinel finds it, asks, and then forgets it again.
        wait_for {![dict exists [sentinel_replicas s] [member hidden port]]}
        assert_equal 0 [replication hidden replica_announced]
    }
}

test "hellos of sentinels are heard at the master and at replicas" {noconn slow} {
    with_group {m ours {} a ours {} s1 sentinel {} s2 sentinel {}} {
        follow a m
        wait_same m a
        set at_master [member_connect m]
        set at_replica [member_connect a]
        $at_master subscribe __sentinel__:hello
        $at_replica subscribe __sentinel__:hello
        sentinels_watch {s1 s2} m 2
        foreach client [list $at_master $at_replica] {
            set heard {}
            wait_for {[llength [lsort -unique [lappend heard [lindex [split [lindex [$client -read] 2] ,] 1]]]] == 2}
            assert_equal [lsort [list [member s1 port] [member s2 port]]] [lsort -unique $heard]
        }
        wait_sentinel_knows s1 1 1
    }
}

test "a user with the rights that a sentinel needs, and no others" {noconn slow} {
    with_group {m ours {requirepass boss masterauth boss} a ours {requirepass boss masterauth boss} s sentinel {}} {
        foreach name {m a} {
            on $name acl setuser guard on >word allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite \
                +role +publish +info +client|setname +client|kill +script|kill
        }
        follow a m
        wait_same m a
        sentinels_watch s m 1 auth-user guard auth-pass word
        wait_sentinel_knows s 1
        member_kill m
        wait_chosen s [member a port]
        wait_for {[replication_is a role master]}
        member_start m
        on m acl setuser guard on >word allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite \
            +role +publish +info +client|setname +client|kill +script|kill
        assert_equal a [wait_failed_over s a m]
        assert_equal {} [lsearch -all -inline [on a acl log] *guard*]
    }
}
