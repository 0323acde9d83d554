# The append only file switched on and off while it is rewritten.

proc aof_switch_done {} {
    return [regexp -all {Background AOF rewrite finished successfully} [slurp [srv log]]]
}

with_server {enable-debug-command yes min-clients-per-thread 1} {
    test "a rewrite that began while the file was off does not switch it on" {} {
        r debug populate 300
        r config set rdb-key-save-delay 3000
        assert_match "Background append only file rewriting started" [r bgrewriteaof]
        r config set rdb-key-save-delay 0
        r config set appendfsync always appendonly yes
        wait_for {[aof_switch_done] == 2} ;# the second is the one that has what came since
        assert_equal OK [r set key value]
        assert_equal {1 0} [r waitaof 1 0 0]
        r debug loadaof
        assert_equal value [r get key]
        assert_equal 301 [r dbsize]
        r config set appendonly no
    }
}

with_server {appendonly yes enable-debug-command yes} {
    test "behind the reply that the file is off another rewrite begins at once" {} {
        r debug populate 1000 key 1000
        foreach round {1 2 3 4 5 6 7 8} {
            r config set rdb-key-save-delay 10000
            r bgrewriteaof
            assert_equal 1 [info_field aof_rewrite_in_progress persistence]
            r config set appendonly no
            assert_equal 0 [info_field aof_rewrite_in_progress persistence]
            r config set rdb-key-save-delay 0
            assert_match "Background append only file rewriting started" [r bgrewriteaof]
            wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
            r config set appendonly yes
            wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
        }
    }
}

proc aof_switch_load {} {
    r debug loadaof
    return [lsort [r keys *]]
}

with_server {appendonly yes appendfsync everysec enable-debug-command yes min-clients-per-thread 1} {
    test "nobody but who asked waits for the disk while the file is switched off" {} {
        set other [connect]
        r set before 1
        r config set aof-sync-delay 2000000
        $other -send config set appendonly no
        wait_for {[info_field aof_enabled persistence] == 0 && [info_field aof_pending_bio_fsync persistence] == 1}
        r set during 1
        assert_equal 1 [info_field aof_pending_bio_fsync persistence]
        assert_error "ERR WAITAOF cannot be used*" {r waitaof 1 0 0}
        assert_error "*" {r debug loadaof}
        $other -send set after 1
        assert_equal OK [$other -read]
        assert_equal OK [$other -read]
        r config set aof-sync-delay 0
        assert_equal 0 [info_field aof_enabled persistence]
        assert_equal before [aof_switch_load]
    }

    test "a file that is still being switched off can be switched on again" {} {
        r config set appendonly yes
        wait_for {[aof_switch_done] == 1}
        set other [connect]
        r set first 1
        r config set aof-sync-delay 1000000
        $other -send config set appendonly no
        wait_for {[info_field aof_enabled persistence] == 0}
        assert_equal OK [r config set appendonly yes]
        assert_equal 1 [info_field aof_enabled persistence]
        r config set aof-sync-delay 0
        r set second 1
        assert_equal OK [$other -read]
        assert_equal {1 0} [r waitaof 1 0 0]
        assert_equal {first second} [aof_switch_load]
    }

    test "what is switched off while it is written is whole" {} {
        set others [list [connect] [connect] [connect]]
        for {set round 0} {$round < 10} {incr round} {
            foreach other $others {
                for {set i 0} {$i < 200} {incr i} {
                    $other -send eval {redis.call('incr', KEYS[1]) redis.call('incr', KEYS[2])} 2 left right
                }
            }
            r config set appendonly no
            foreach other $others {
                for {set i 0} {$i < 200} {incr i} {
                    $other -read
                }
            }
            r debug loadaof
            assert_equal [r get left] [r get right]
            set done [aof_switch_done]
            r config set appendonly yes
            wait_for {[aof_switch_done] == $done + 1}
        }
    }
}

foreach is_on {no yes} {
    with_server [list appendonly $is_on enable-debug-command yes] {
        test "the server ends in order during a rewrite, appendonly $is_on" {} {
            r debug populate 100
            r config set rdb-key-save-delay 1000000
            assert_match "Background append only file rewriting started" [r bgrewriteaof]
        }
    }
}
