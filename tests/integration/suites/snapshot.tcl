# Snapshots by threads: what is saved is the moment, whatever changes meanwhile, and it does no harm to others.

proc snapshot_fill {} {
    for {set i 0} {$i < 300} {incr i} {
        r -send set key:$i [string repeat v [expr {$i % 90}]]
        r -send set number:$i $i
        r -send rpush list:$i a b $i
        r -send sadd set:$i $i member
        r -send zadd zset:$i $i.5 member
        r -send hset hash:$i field $i
        r -send xadd stream:$i 1-1 a $i
    }
    for {set i 0} {$i < 2100} {incr i} {
        r -read
    }
    r set long [string repeat 0123456789 10000]
    r set longer [string repeat 0123456789 300000]
    r set longest [pattern_bytes 2000000]
    for {set i 0} {$i < 20} {incr i} {
        r rpush biglist {*}[lrepeat 500 element:$i]
        r hset bighash {*}[snapshot_pairs $i]
    }
    r pexpireat key:1 4000000000000
    r hpexpireat hash:1 4000000000000 fields 1 field
    r select 3
    r mset a 1 b 2 c 3
    r select 0
}

proc snapshot_pairs i {
    set pairs {}
    for {set j 0} {$j < 500} {incr j} {
        lappend pairs $i:$j value:$j
    }
    return $pairs
}

# Changes all that snapshot_fill has made.
proc snapshot_change {} {
    for {set i 0} {$i < 300} {incr i} {
        r -send append key:$i more
        r -send incr number:$i
        r -send lpop list:$i
        r -send srem set:$i member
        r -send zincrby zset:$i 1 member
        r -send hset hash:$i field changed
        r -send xadd stream:$i 2-1 a b
    }
    for {set i 0} {$i < 2100} {incr i} {
        r -read
    }
    r setrange long 5 changed
    r setrange longer 65530 changed
    r append longer changed
    r setbit longer 23999999 1
    r bitfield longest set u8 80 1 incrby u8 15999992 1
    r setrange longest 5000000 changed
    r lpop biglist 5000
    r hset bighash 1:1 changed 2:2 changed
    r persist key:1
    r hpersist hash:1 fields 1 field
    r set new 1
    r select 3
    r del a
    r set d 4
    r select 0
}

proc snapshot_wait {} {
    wait_for {[info_field rdb_bgsave_in_progress] == 0 && [info_field aof_rewrite_in_progress] == 0} 60000
}

foreach method {threads fork} {
    with_server [list enable-debug-command yes save {} snapshot-method $method] {
        test "a snapshot is the moment, by $method" {} [string map [list %M $method] {
            foreach {title change} {
                "changes" snapshot_change
                "all is deleted" {r flushdb; r set new 1}
                "databases are swapped" {r swapdb 0 3; r set new 1; r select 3; snapshot_change; r select 0}
                "they are swapped and flushed" {r swapdb 0 3; r flushdb; r select 3; r flushdb; r set n 1; r select 0}
                "keys are renamed and moved" {
                    for {set i 0} {$i < 300} {incr i} {
                        r rename key:$i hash:$i
                        r copy list:$i set:$i replace
                        r move zset:$i 5
                    }
                }
            } {
                r flushall
                snapshot_fill
                set digest [r debug digest]
                with_config {rdb-key-save-delay 100} {
                    assert_equal {Background saving started} [r bgsave]
                    eval $change
                    assert_equal 1 [info_field rdb_bgsave_in_progress] $title
                    assert_equal %M [info_field snapshot_method]
                }
                snapshot_wait
                assert_equal ok [info_field rdb_last_bgsave_status]
                assert {[r debug digest] ne $digest}
                assert_equal OK [r debug reload nosave]
                assert_equal $digest [r debug digest] $title
            }
        }]
    }
}

with_server {enable-debug-command yes save {} snapshot-method threads} {
    test "a second snapshot finds nothing of the first one" {} {
        snapshot_fill
        with_config {rdb-key-save-delay 100} {
            r bgsave
            snapshot_change
        }
        snapshot_wait
        set digest [r debug digest]
        r bgsave
        snapshot_wait
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }

    test "one that was stopped leaves nothing behind" {} {
        foreach stop {{r flushall} {r debug reload}} {
            r flushall
            snapshot_fill
            with_config {rdb-key-save-delay 1000} {
                r bgsave
                snapshot_change
                assert_equal 1 [info_field rdb_bgsave_in_progress]
                r config set rdb-key-save-delay 0
                eval $stop
            }
            snapshot_wait
            assert_equal {} [glob -nocomplain [srv dir]/temp-*]
            r flushall
            snapshot_fill
            set digest [r debug digest]
            r bgsave
            snapshot_change
            snapshot_wait
            assert_equal 0 [info_field snapshot_kept_bytes]
            r debug reload nosave
            assert_equal $digest [r debug digest]
        }
    }

    test "beyond the limit writers wait for the file, and readers do not" {} {
        r flushall
        for {set i 0} {$i < 1000} {incr i} {
            r set key:$i [string repeat v 1000]
        }
        set digest [r debug digest]
        set other [connect]
        with_config {rdb-key-save-delay 1000 snapshot-memory-limit 100000} {
            r bgsave
            for {set i 0} {$i < 1000} {incr i} {
                $other -send set key:$i w
            }
            wait_for {[info_field snapshot_kept_bytes] > 50000}
            assert_match *v* [r get key:999]
            for {set i 0} {$i < 1000} {incr i} {
                assert_equal OK [$other -read]
            }
            snapshot_wait
        }
        assert_range [info_field snapshot_kept_peak_bytes] 100000 200000
        assert {[info_field snapshot_slowed_usec] > 0}
        $other -close
        r debug reload nosave
        assert_equal $digest [r debug digest]
    }

    test "without changes nothing is kept" {} {
        r flushall
        snapshot_fill
        r bgsave
        snapshot_wait
        # Large values are shared or copied, whoever changes them.
        assert {[info_field snapshot_kept_keys] <= 3}
        assert_equal 0 [info_field snapshot_keys_left]
    }
}

foreach {start flush stop} {
    bgsave flushdb flushall
    bgrewriteaof {flushall async} {config set appendonly no}
} {
    with_server [list enable-debug-command yes appendonly [expr {$start eq "bgrewriteaof" ? "yes" : "no"}] \
        auto-aof-rewrite-percentage 0 save {} snapshot-method threads maxmemory 60mb] {
        test_each {start flush stop} "[string toupper $flush] during [string toupper $start] leaves room for keys" {} {
            foreach policy {noeviction allkeys-lru} {
                r config set maxmemory-policy $policy appendonly [expr {$start eq "bgrewriteaof" ? "yes" : "no"}]
                snapshot_wait
                r debug populate 2000 key 20000
                with_config {rdb-key-save-delay 100000} {
                    r {*}$start
                    assert_equal OK [r {*}$flush]
                    assert {[info_field mem_not_counted_for_evict] > 35000000}
                    for {set i 0} {$i < 1000} {incr i} {
                        r -send set new:$i [string repeat v 30000]
                    }
                    for {set i 0} {$i < 1000} {incr i} {
                        assert_equal OK [r -read]
                    }
                    assert_equal 1000 [r dbsize] $policy
                    assert {[info_field rdb_bgsave_in_progress] + [info_field aof_rewrite_in_progress] == 1}
                    assert_equal 0 [info_field snapshot_slowed_usec]
                }
                r {*}$stop
                snapshot_wait
                wait_for {[info_field mem_not_counted_for_evict] < 20000000}
                r flushall
            }
        }
    }
}

# Sends SAVE on its own connection; returns when it has begun.
proc snapshot_save {} {
    set client [connect]
    $client -send save
    wait_for {[info_field rdb_bgsave_in_progress] == 1}
    return $client
}

with_server {
    enable-debug-command yes enable-protected-configs yes save {} snapshot-method threads server-threads 2
    min-clients-per-thread 1
} {
    test "during a SAVE others read and write, and its client waits" {} {
        r config resetstat
        # Each round's client may be on the other thread.
        set clients {}
        with_config {rdb-key-save-delay 300} {
            foreach round {1 2} {
                r flushall
                snapshot_fill
                set digest [r debug digest]
                set saves [info_field rdb_saves]
                lappend clients [set client [snapshot_save]]
                snapshot_change
                assert_equal 1 [r get new]
                assert_equal 1 [info_field rdb_bgsave_in_progress]
                assert_equal 1 [info_field blocked_clients]
                assert_equal threads [info_field snapshot_method]
                assert_equal OK [$client -read]
                assert_equal [expr {$saves + 1}] [info_field rdb_saves]
                assert_equal 0 [info_field rdb_bgsave_in_progress]
                assert_equal 0 [info_field blocked_clients]
                # What was changed meanwhile counts as not saved.
                assert {[info_field rdb_changes_since_last_save] > 1000}
                assert {[info_field rdb_changes_since_last_save] < 5000}
                assert_equal PONG [$client ping]
            }
        }
        # Its time is that of the whole.
        assert_match "*calls=2,*" [info_field cmdstat_save commandstats]
        regexp {usec_per_call=(\d+)} [info_field cmdstat_save commandstats] all us
        assert {$us > 100000}
        foreach client $clients {
            $client -close
        }
        assert_equal OK [r debug reload nosave]
        assert_equal $digest [r debug digest]
    }

    test "beside a SAVE no other save begins" {} {
        snapshot_fill
        with_config {rdb-key-save-delay 300} {
            set client [snapshot_save]
            assert_refused "ERR Background save already in progress" r save
            assert_refused "ERR Background save already in progress" r bgsave
            assert_refused "ERR Background save already in progress" r bgsave schedule
            assert_equal 1 [info_field rdb_bgsave_in_progress]
        }
        assert_equal OK [$client -read]
        $client -close
        assert_equal OK [r save]
    }

    test "the client of a SAVE leaves, the file is made" {} {
        snapshot_fill
        with_config {rdb-key-save-delay 300} {
            set saves [info_field rdb_saves]
            set client [connect]
            set id [$client client id]
            $client -send save
            wait_for {[info_field rdb_bgsave_in_progress] == 1}
            assert_equal 1 [r client kill id $id]
            assert_equal 1 [$client -closed 10000]
            wait_for {[info_field blocked_clients] == 0}
            assert_equal 1 [info_field rdb_bgsave_in_progress]
            snapshot_wait
            assert_equal [expr {$saves + 1}] [info_field rdb_saves]
            # One that waits again, for something else, does not get the first one's answer.
            set client [snapshot_save]
            $client -close
            snapshot_wait
            assert_equal [expr {$saves + 2}] [info_field rdb_saves]
        }
    }

    test "a client that wants no replies gets none for its SAVE" {} {
        snapshot_fill
        set client [connect]
        $client -send client reply skip
        $client -send save
        $client -send echo done
        assert_equal done [$client -read]
        $client -close
    }

    test "a SAVE that is stopped or fails says so, and is no reason to refuse writes" {} {
        snapshot_fill
        r config resetstat
        with_config {rdb-key-save-delay 1000} {
            set client [snapshot_save]
            r config set rdb-key-save-delay 0
            r flushall
            assert_error "ERR The save was stopped" {$client -read}
            assert_equal 0 [info_field rdb_bgsave_in_progress]
            assert_equal ok [info_field rdb_last_bgsave_status]
            assert_equal {} [glob -nocomplain [srv dir]/temp-*]
            assert_match "*failed_calls=1" [info_field cmdstat_save commandstats]
            file mkdir [srv dir]/is-a-folder/full
            with_config {dbfilename is-a-folder} {
                assert_error "ERR" {$client save}
            }
            file delete -force [srv dir]/is-a-folder
            assert_equal ok [info_field rdb_last_bgsave_status]
            assert_equal OK [$client save]
            $client -close
        }
    }
}

foreach {how expected} {{shutdown nosave} old {shutdown save} new} {
    test "[string toupper $how] during a SAVE" {} [string map [list %H $how %E $expected] {
        set folder [fresh_dir]
        set port [free_port]
        set arguments [list --port $port --dir $folder --save "" --snapshot-method threads --server-threads 2 \
            --min-clients-per-thread 1 --enable-debug-command yes]
        set id [server_launch $arguments]
        wait_for {![catch {set ends [connect -port $port -tls 0]}]}
        set saves [connect -port $port -tls 0]
        $ends debug populate 1000
        $ends set key old
        $ends save
        $ends set key new
        $ends config set rdb-key-save-delay 10000
        $saves -send save
        wait_for {[string match "*Saving by a thread*Saving by a thread*" [process_log $id]]}
        $ends config set rdb-key-save-delay 0
        $ends -send %H
        assert_equal 0 [process_wait $id]
        assert_equal 1 [$saves -closed 10000]
        assert_equal {} [glob -nocomplain $folder/temp-*]
        set id [server_launch $arguments]
        wait_for {![catch {set ends [connect -port $port -tls 0]}] && ![catch {$ends get key} value]}
        assert_equal %E $value
        $ends -close
        process_stop $id
    }]
}

with_server {enable-debug-command yes appendonly yes auto-aof-rewrite-percentage 0 save {} snapshot-method threads} {
    foreach preamble {yes no} {
        test "the base of an append-only file is the moment, preamble $preamble" {} [string map [list %P $preamble] {
            r config set aof-use-rdb-preamble %P
            r flushall
            snapshot_fill
            with_config {rdb-key-save-delay 100} {
                r bgrewriteaof
                snapshot_change
                r swapdb 0 3
                assert_equal 1 [info_field aof_rewrite_in_progress]
            }
            snapshot_wait
            set digest [r debug digest]
            assert_equal OK [r debug loadaof]
            assert_equal $digest [r debug digest]
            r swapdb 0 3
        }]
    }
}

with_server {enable-debug-command yes save {} snapshot-method threads appendonly yes} {
    test "what is loaded beside a rewrite is in it once" {} {
        snapshot_fill
        r save
        set digest [r debug digest]
        with_config {rdb-key-save-delay 100} {
            r bgrewriteaof
            assert_equal OK [r debug reload nosave]
            assert_equal 1 [info_field aof_rewrite_in_progress]
        }
        snapshot_wait
        assert_equal $digest [r debug digest]
        assert_equal OK [r debug loadaof]
        assert_equal $digest [r debug digest]
        assert_equal 0 [info_field snapshot_kept_bytes]
    }
}

proc snapshot_field {name field} {
    return [section_field $name persistence $field]
}

# A full sync and a file that overlap, in both orders, while keys change: each has its own moment.
proc snapshot_beside_sync {start field reload} {
    with_group {m ours {snapshot-method threads appendonly yes auto-aof-rewrite-percentage 0} r ours {}} {
        set saver [member_connect m]
        foreach order {{file sync} {sync file}} {
            follow r no
            on r set own 1 ;# so it needs a full sync
            on m flushall
            on m debug populate 1000 key 100
            on m function load replace "#!lua name=lib\nredis.register_function{function_name='f',\
                callback=function() return '$order' end, flags={'no-writes'}}"
            set syncs [lindex [sync_counts m] 0]
            on m config set rdb-key-save-delay 1000
            set total 0
            foreach what $order {
                if {$what eq "file"} {
                    set digest [on m debug digest]
                    $saver -send {*}$start
                } else {
                    follow r m
                }
                incr total 1000
                wait_for {[snapshot_field m current_save_keys_total] >= $total}
                for {set i 0} {$i < 500} {incr i} {
                    on m append key:$i $what
                }
                on m set $what 1
            }
            # Both are far from their ends.
            assert_equal 1 [snapshot_field m $field]
            assert_equal 1 [snapshot_field m rdb_bgsave_in_progress]
            assert_equal threads [snapshot_field m snapshot_method]
            assert {[snapshot_field m current_save_keys_total] > 2000}
            assert {[snapshot_field m snapshot_kept_keys] > 500}
            on m config set rdb-key-save-delay 0
            $saver -read
            wait_same m r
            wait_for {[snapshot_field m $field] == 0 && [snapshot_field m rdb_bgsave_in_progress] == 0}
            assert_equal 0 [snapshot_field m snapshot_kept_bytes]
            assert_equal [expr {$syncs + 1}] [lindex [sync_counts m] 0]
            assert_equal $order [on r fcall_ro f 0]
            if {$reload eq "loadaof"} {
                set digest [on m debug digest]
            }
            assert_equal OK [on m debug {*}$reload]
            assert_equal $digest [on m debug digest]
            assert_equal $order [on m fcall_ro f 0]
        }
        $saver -close
    }
}

foreach {name field reload} {
    bgsave rdb_bgsave_in_progress {reload nosave}
    save rdb_bgsave_in_progress {reload nosave}
    bgrewriteaof aof_rewrite_in_progress loadaof
} {
    test "[string toupper $name] and a full sync at once" {} [list snapshot_beside_sync $name $field $reload]
}

test "FLUSHALL stops a save and a full sync, and the replica asks again" {} {
    with_group {m ours {snapshot-method threads} r ours {}} {
        on m debug populate 2000
        on m config set rdb-key-save-delay 10000
        on m bgsave
        wait_for {[snapshot_field m current_save_keys_total] == 2000}
        follow r m
        wait_for {[snapshot_field m current_save_keys_total] == 4000}
        on m config set rdb-key-save-delay 0
        on m flushall
        on m set new 1
        wait_for {[snapshot_field m rdb_bgsave_in_progress] == 0}
        assert_equal 0 [snapshot_field m rdb_saves]
        wait_same m r
        assert_equal 1 [on r dbsize]
        assert_equal 2 [lindex [sync_counts m] 0]
        assert_equal {} [glob -nocomplain [member m dir]/temp-*]
    }
}

test "a server ends while it saves and sends" {} {
    with_group {m ours {snapshot-method threads rdb-key-save-delay 10000} r ours {}} {
        on m debug populate 2000
        on m bgsave
        follow r m
        wait_for {[snapshot_field m current_save_keys_total] == 4000}
        member_end m
        assert_equal {} [glob -nocomplain [member m dir]/temp-*]
    }
}

with_server {snapshot-method threads server-threads 4 stop-writes-on-bgsave-error no enable-protected-configs yes} {
    # Run with the thread sanitizer it says whether the one that ends and the next one share anything.
    test "saves that fail follow each other at once, whichever thread starts them" {} {
        file mkdir [srv dir]/is-a-folder/full
        with_config {dbfilename is-a-folder} {
            set clients [lmap i {1 2 3 4 5 6 7 8} {connect}]
            for {set started 0} {$started < 40} {} {
                foreach client $clients {
                    $client -send bgsave
                }
                foreach client $clients {
                    incr started [expr {![catch {$client -read}]}]
                }
            }
            wait_until {[info_field rdb_bgsave_in_progress] == 0} 20000
            assert_equal err [info_field rdb_last_bgsave_status]
            assert_equal {} [glob -nocomplain [srv dir]/temp-*]
            foreach client $clients {
                $client -close
            }
        }
        file delete -force [srv dir]/is-a-folder
    }
}
