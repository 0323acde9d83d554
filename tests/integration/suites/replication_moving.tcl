# docs/operations.md, "Moving from Redis or KeyDB, and back": each step is done here while a client writes.

# The application: it knows one address, and moves to another when it is told to. A write is counted when it was
# acknowledged; one that was refused since the server is a replica is done again at the new address.
namespace eval app {
    variable at {}
    variable acknowledged 0
}

proc app_connect name {
    set app::at [member_connect $name]
}

# Some writes now. They may not fail.
proc app_works {{count 50}} {
    for {set i 0} {$i < $count} {incr i} {
        $app::at rpush app:log [incr app::acknowledged]
    }
}

# One write that waits while writes are paused; then its fate is read, and the application has moved.
proc app_waits {} {
    $app::at -send rpush app:log [expr {$app::acknowledged + 1}]
}

proc app_moves name {
    set reply [$app::at -reply]
    if {[lindex $reply 0] eq "int"} {
        incr app::acknowledged
    } else {
        assert_match "READONLY*" [lindex $reply 1]
    }
    $app::at -close
    app_connect $name
}

# All that was acknowledged is there, once, in order.
proc assert_app_lost_nothing name {
    assert_equal $app::acknowledged [on $name llen app:log]
    for {set i 1} {$i <= $app::acknowledged} {incr i} {
        lappend expected $i
    }
    assert_equal $expected [on $name lrange app:log 0 -1]
}

proc fill_old name {
    if {[member $name kind] eq "keydb"} {
        on $name mset a 1 b 2
        on $name rpush list x y z
        on $name hset hash f v
        on $name sadd set 1 2 m
        on $name zadd zset 1 a
        on $name xadd stream 1-1 f v
        on $name xgroup create stream g 0
        on $name expire b 10000
    } else {
        fill_everything $name
    }
}

# Step 4: writes are paused, the new one has them all, the roles change, and the old one follows.
proc hand_over {old new} {
    on $old client pause 10000 write
    app_waits
    wait_same $old $new
    follow $new no
    follow $old $new
    on $old client unpause
    app_moves $new
    app_works
    wait_same $new $old
    assert_app_lost_nothing $new
    assert_app_lost_nothing $old
}

foreach kind {oracle keydb} {
    test_each kind "from $kind to ours without downtime, and back, by hand" {noconn slow} {
        with_group [list old $kind {} new ours {}] {
            set app::acknowledged 0
            app_connect old
            fill_old old
            # 1. a replica  2. until it has everything
            follow new old
            app_works
            wait_same old new
            assert_equal 1 [replication new slave_read_only]
            # 3. reading clients go to the new server
            assert_equal $app::acknowledged [on new llen app:log]
            # 4. the roles change
            hand_over old new
            assert_equal 0 [stats_of new sync_full]
            # 5. and back: the same, the other way round
            hand_over new old
            app_works
            wait_same old new
            # 6. at last the old server is not needed any more
            hand_over old new
            follow old no
            assert_equal master [replication new role]
        }
    }
}

test "from redis-server to ours and back by FAILOVER" {noconn slow} {
    with_group {old oracle {} new ours {}} {
        set app::acknowledged 0
        app_connect old
        fill_everything old
        follow new old
        app_works
        wait_same old new
        foreach {from to} {old new new old} {
            app_works
            on $from failover to 127.0.0.1 [member $to port] timeout 10000
            app_waits
            wait_for {[replication $from role] eq "slave" && [replication $to role] eq "master"}
            app_moves $to
            app_works
            wait_same $to $from
            assert_app_lost_nothing $to
            assert_everything_same $to $from
        }
        assert_equal 0 [stats_of new sync_full]
    }
}

test "a group of redis-servers with a sentinel: ours joins, is preferred, takes over" {noconn slow} {
    with_group {old oracle {replica-priority 100} new ours {replica-priority 10} s sentinel {}} {
        fill_everything old
        follow new old
        wait_same old new
        on s sentinel debug info-period 600 ping-period 400 ask-period 300 publish-period 300
        on s sentinel monitor group 127.0.0.1 [member old port] 1
        on s sentinel set group down-after-milliseconds 2000 failover-timeout 6000
        wait_for {[dict get [on s sentinel master group] num-slaves] == 1}
        wait_for {[dict get [lindex [on s sentinel replicas group] 0] master-link-status] eq "ok"}
        on s sentinel failover group
        wait_for {[lindex [on s sentinel get-master-addr-by-name group] 1] == [member new port]}
        wait_for {[replication_is new role master]}
        wait_for {[replication_is old role slave]}
        wait_same new old
        assert_everything_same new old
    }
}

test "what a redis-server behind ours does not know stays there until it is deleted" {noconn keydb slow} {
    with_group {m ours {} r oracle {}} {
        follow r m
        wait_link r
        on m hset hash f v g w
        on m hpexpire hash 200 fields 1 f
        on m sadd set gone stays
        on m expiremember set gone 200 ms
        wait_for {[on m hlen hash] == 1 && [on m scard set] == 1}
        wait_same m r
        assert_equal {g w} [on r hgetall hash]
        assert_equal stays [on r smembers set]
    }
}
