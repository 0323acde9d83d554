# What a group of servers must survive: circles, faults of the disk and of fork, orders at bad moments, and clients of
# a replica that want to change it.

proc log_count {name text} {
    return [regexp -all -- $text [slurp [member $name log]]]
}

test "a server that follows itself keeps its data, says so once a try, and can leave" {noconn} {
    with_group {m ours {}} {
        fill_everything m
        set before [dataset m]
        follow m m
        wait_for {[log_count m NOMASTERLINK] + [log_count m "itself"] >= 1}
        assert_equal 0 [link_is_up m]
        assert_equal $before [dataset m]
        assert_refused "READONLY You can't write against a read only replica." [on m] set a 1
        follow m no
        on m set a 1
        assert {[llength [split [slurp [member m log]] \n]] < 60}
    }
}

foreach circle {{m r} {m r s}} {
    test_each circle "a circle of [llength $circle] serves what it has, and whole again all is well" {noconn slow} {
        set members {}
        foreach name $circle {
            lappend members $name ours {}
        }
        with_group $members {
            set last m
            fill_everything m
            foreach name [lrange $circle 1 end] {
                follow $name $last
                wait_same $last $name
                set last $name
            }
            set before [dataset m]
            follow m $last
            # Nobody has a master that has one: links may be up, but nothing new can come.
            wait_for {[log_count m "aster"] > 0}
            foreach name $circle {
                assert_equal slave [replication $name role]
                assert_refused "READONLY You can't write against a read only replica." [on $name] set a 1
                assert_equal $before [dataset $name]
            }
            follow m no
            on m set after 1
            wait_same m {*}[lrange $circle 1 end]
            foreach name $circle {
                assert_equal 1 [on $name get after]
                assert {[llength [split [slurp [member $name log]] \n]] < 120}
            }
        }
    }
}

test "REPLICAOF while a server loads is refused" {noconn keydb} {
    lassign [server_launch_loading] id s
    assert_match "*LOADING*" [$s -typed replicaof 127.0.0.1 1]
}

test "REPLICAOF in a transaction and in a script" {noconn} {
    with_group {m ours {} r ours {}} {
        on m set from-master 1
        on r multi
        on r set a 1
        on r replicaof 127.0.0.1 [member m port]
        on r get a
        assert_equal {OK OK 1} [on r exec]
        wait_same m r
        assert_equal {} [on r get a]
        assert_error "*not allowed from script*" {on r eval {return redis.call('replicaof', 'no', 'one')} 0}
        assert_equal slave [replication r role]
        on r multi
        on r replicaof no one
        on r -typed set b 1
        assert_error "EXECABORT*" {on r exec}
        assert_equal slave [replication r role]
    }
}

test "REPLICAOF while a child saves: the sync is done, and the file is one of both" {noconn slow} {
    with_group {m ours {} r ours {rdb-key-save-delay 20000}} {
        fill_everything m
        on r debug populate 1000
        on r bgsave
        follow r m
        wait_same m r
        wait_for {[section_field r persistence rdb_bgsave_in_progress] == 0} 40000
        assert_equal {} [glob -nocomplain [member r dir]/temp-*]
        on r config set rdb-key-save-delay 0
        on r bgsave
        wait_for {[section_field r persistence rdb_bgsave_in_progress] == 0}
        assert_equal ok [section_field r persistence rdb_last_bgsave_status]
    }
}

test "a master whose child saves already syncs behind it" {noconn slow} {
    with_group {m ours {rdb-key-save-delay 5000} r ours {}} {
        on m debug populate 100
        on m bgsave
        follow r m
        wait_same m r
        assert_equal 1 [stats_of m sync_full]
    }
}

test "a snapshot behind which a database is selected that the replica does not have" {noconn} {
    with_group {m ours {databases 2000} middle ours {databases 2000} r ours {}} {
        follow middle m
        wait_same m middle
        on m set here 1
        on m select 1999
        on m set there 1
        on m del there
        wait_same m middle
        follow r middle
        wait_for {[link_is_up r]}
        assert_equal 1 [on r get here]
        on m set there 1
        wait_for {[log_count r "needs at least `databases 2000`"] >= 1}
        assert_equal 1 [on r dbsize]
    }
}

# ---- faults

foreach load {disabled on-empty-db swapdb} {
    test_each load "a sync that the disk does not take leaves the old data, the next one succeeds ($load)" {noconn} {
        with_group [list m ours {} r ours [list repl-diskless-load $load]] {
            on m config set rdbcompression no
            on m debug populate 2000 key 1000
            on r set old 1
            set before [dataset r]
            # Files of more than 100 KiB are refused.
            exec prlimit --pid [member r pid] --fsize=102400:unlimited
            follow r m
            if {$load eq "disabled" || $load eq "on-empty-db"} {
                wait_for {[log_count r "File too large|temp-"] >= 1}
                assert {![link_is_up r]}
                assert_equal $before [dataset r]
                assert_equal {} [glob -nocomplain [member r dir]/temp-*]
                exec prlimit --pid [member r pid] --fsize=unlimited:unlimited
            }
            wait_same m r
            assert_equal {} [on r get old]
        }
    }
}

# ---- a replica is not changed by its clients

test "no command of a client changes a replica" {noconn} {
    with_group {m ours {} r ours {}} {
        fill_everything m
        on m script load {return redis.call('set', 'script', 1)}
        follow r m
        wait_same m r
        set before [everything_beside_digest r]
        set data [dataset r]
        set offset [replication r slave_repl_offset]
        set refused 0
        foreach facts [on r command] {
            lassign $facts name arity flags first
            if {"write" ni $flags || $name in {replicaof slaveof}} {
                continue
            }
            foreach key {s:int l:short set:ints h:short z:short stream new} {
                set words [list $name {*}[lrepeat [expr {abs($arity) - 1}] $key]]
                set reply [on r -typed {*}$words]
                if {[lindex $reply 0] ne "error"} {
                    fail "$words: [escape $reply]"
                }
                incr refused [string match READONLY* [lindex $reply 1]]
            }
        }
        assert {$refused > 500} $refused
        foreach words {
            {eval "return redis.call('set', 'a', 1)" 0}
            {eval "return redis.call('del', KEYS[1])" 1 s:int}
            {eval "redis.pcall('incr', 's:int') return redis.call('flushall')" 0}
            {eval "#!lua\nreturn redis.call('incr', 's:int')" 0}
            {fcall put 1 s:int v}
            {function load replace "#!lua name=lib\nredis.register_function('x', function() end)"}
            {function flush} {function delete lib}
            {flushall} {flushdb async} {swapdb 0 9}
            {sort l:short alpha store sorted} {georadius geo 13 38 500 km store near}
            {bitfield bits set u8 0 1} {getex s:int ex 1} {xreadgroup group readers eve streams stream >}
            {set s:int 1 get} {spop set:ints} {restore s:int 0 x replace} {copy s:int s:new}
            {expiremember set:ints 1 100} {hpexpire h:short 1 fields 1 f} {keydb.cron job repeat 10 "return 1"}
        } {
            assert_equal error [lindex [on r -typed {*}$words] 0] $words
        }
        # These read; PFCOUNT keeps what it has counted, but not here.
        on r pfcount hll hll:dense
        on r pfcount hll
        on r bitfield_ro bits get u8 0
        on r debug sleep 0
        on r multi
        on r get s:int
        on r exec
        assert_equal $before [everything_beside_digest r]
        assert_equal $data [dataset r]
        assert_equal [replication m master_repl_offset] [replication r slave_repl_offset]
        # Its own memory limit evicts nothing.
        on r config set maxmemory 1mb maxmemory-policy allkeys-lru
        on m set large [string repeat x 2000000]
        wait_same m r
        assert_equal 0 [stats_of r evicted_keys]
    }
}

test "jobs and deadlines of members do nothing on a replica by themselves" {noconn keydb slow} {
    with_group {m ours {} r ours {}} {
        set via [proxy_open m]
        follow r m $via
        wait_same m r
        on m rpush runs 0
        on m keydb.cron job repeat 50 {redis.call('rpush', KEYS[1], '1')} 1 runs
        on m sadd set goes
        on m expiremember set goes 1
        on m set key v px 1500
        wait_for {[on r llen runs] > 2}
        proxy $via stall
        set before [on r llen runs]
        wait_for {[on m llen runs] > $before + 8}
        wait_for {[on m exists key set] == 0}
        set before [on r llen runs]
        set digest [on r debug digest]
        wait_for {[on m llen runs] > $before + 8}
        assert_equal $before [on r llen runs]
        assert_equal $digest [on r debug digest]
        proxy $via resume
        on m del job
        wait_same m r
    }
}

# ---- a replica that cannot keep what its master sends

foreach {file says options} {
    "append-only file" "append-only file can't be written" {--save {}}
    snapshot "snapshots fail" {--save {3600 1000000}}
} {
    foreach ignores {no yes} {
        test_each {file says options ignores} \
                "a replica that can't write its $file; replica-ignore-disk-write-errors $ignores" {noconn} {
            with_group {m ours {rdbcompression no repl-ping-replica-period 1}} {
                on m set a 1
                set port [free_port]
                set id [process_start [list $::settings(server) --port $port --dir [fresh_dir] {*}$options \
                    --rdbcompression no --replica-ignore-disk-write-errors $ignores \
                    --replicaof "127.0.0.1 [member m plain_port]"] [fresh_dir]/log]
                wait_for {![catch {set r [connect -port $port -tls 0]; $r get a} a] && $a eq 1}
                if {$file ne "snapshot"} {
                    $r config set appendonly yes
                    wait_for {[regexp {aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0} [$r info persistence]] &&
                        [regexp {aof_base_size:} [$r info persistence]]}
                }
                exec prlimit --pid [process_pid $id] --fsize=65536:unlimited
                on m set large [string repeat x 200000]
                wait_for {[$r strlen large] == 200000}
                if {$file eq "snapshot"} {
                    $r bgsave
                    wait_for {[regexp {rdb_last_bgsave_status:err} [$r info persistence]]}
                } else {
                    wait_for {[regexp {aof_last_write_status:err} [$r info persistence]]}
                }
                # A PING of the master's, or of a client, ends nothing.
                set offset [replication m master_repl_offset]
                wait_for {[regexp {slave_repl_offset:(\d+)} [$r info replication] all at] && $at > $offset}
                assert_match "*MISCONF*" [$r -typed ping]
                on m set a 2
                if {$ignores} {
                    on m eval {redis.call('set', KEYS[1], 3)} 1 b
                    on m multi
                    on m incr a
                    on m exec
                    wait_for {[$r mget a b] eq {3 3}}
                    assert_equal 1 [regexp -all "can't keep: the $says|can't keep: $says" [process_log $id]]
                    assert {![string match "*CRITICAL*" [process_log $id]]}
                    exec prlimit --pid [process_pid $id] --fsize=unlimited:unlimited
                    $r -close
                    assert_equal 0 [process_stop $id]
                } else {
                    assert_equal 1 [process_crashed $id]
                    assert_match "*can't keep a write of its master: *$says*" [process_log $id]
                    $r -close
                }
            }
        }
    }
}
