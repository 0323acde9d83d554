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
