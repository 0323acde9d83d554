# Saving all keys and reading them again: SAVE, BGSAVE, save points, the end of the server, files that are damaged.

proc fill_data {} {
    for {set i 0} {$i < 500} {incr i} {
        r -send set key:$i [string repeat v [expr {$i % 90}]]
        r -send rpush list:[expr {$i % 7}] $i element
        r -send sadd set:[expr {$i % 7}] $i member:$i
        r -send zadd zset:[expr {$i % 7}] $i.5 member:$i
        r -send hset hash:[expr {$i % 7}] field:$i value
        r -send xadd stream:[expr {$i % 3}] *  a $i
    }
    for {set i 0} {$i < 3000} {incr i} {
        r -read
    }
    r pexpireat key:1 4000000000000
    r pexpireat key:2 9223372036854775807
    r hpexpireat hash:1 4000000000000 fields 1 field:1
    r pexpirememberat set:1 1 4000000000000
    r select 7
    r set other database
    r select 0
}

proc file_bytes path {
    set file [open $path rb]
    set bytes [read $file]
    close $file
    return $bytes
}

proc write_file {path bytes} {
    set file [open $path wb]
    puts -nonewline $file $bytes
    close $file
}

with_server {enable-debug-command yes save {}} {
    test "DEBUG RELOAD leaves everything as it was, in every version" {} {
        fill_data
        foreach version {auto 12 80} {
            foreach compression {yes no} {
                with_config [list rdb-version $version rdbcompression $compression] {
                    set digest [r debug digest]
                    assert_equal OK [r debug reload]
                    assert_equal $digest [r debug digest] $version
                    assert_equal 4000000000000 [r pexpiretime key:1]
                    assert_equal 4000000000000 [r hpexpiretime hash:1 fields 1 field:1]
                    assert {[r pttl set:1 1] > 1000000}
                    r select 7
                    assert_equal database [r get other]
                    r select 0
                }
            }
        }
        assert_equal 0 [info_field rdb_changes_since_last_save]
    }

    test "DEBUG RELOAD with NOSAVE, NOFLUSH and MERGE" {} {
        r set a old
        r save
        r set a new
        r set b new
        assert_refused "ERR Error trying to load the RDB dump, check server logs." r debug reload nosave noflush
        assert_equal OK [r debug reload nosave noflush merge]
        assert_equal {old new} [r mget a b]
        assert_equal OK [r debug reload nosave]
        assert_equal {old {}} [r mget a b]
        assert_refused "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options." r debug reload foo
    }

    test "BGSAVE saves the moment, and counts changes from there" {} {
        fill_data
        set digest [r debug digest]
        with_config {rdb-key-save-delay 1000} {
            assert_equal {Background saving started} [r bgsave]
            assert_equal 1 [info_field rdb_bgsave_in_progress]
            assert_refused "ERR Background save already in progress" r bgsave
            assert_refused "ERR Background save already in progress" r save
            r flushdb
            r set later 1
        }
        wait_for {[info_field rdb_bgsave_in_progress] == 0} 60000
        assert_equal ok [info_field rdb_last_bgsave_status]
        assert {[info_field rdb_changes_since_last_save] > 0}
        assert_equal OK [r debug reload nosave]
        assert_equal $digest [r debug digest]
        assert_refused "ERR syntax error" r bgsave foo
    }

    test "keys whose time is over stay away" {} {
        r set a 1
        r set b 1 px 1
        r set c 1 px 100000
        r debug set-active-expire 0
        r save
        wait_for {[r pttl b] == -2}
        assert_equal OK [r debug reload nosave]
        assert_equal 2 [r dbsize]
        r debug set-active-expire 1
    }
}

with_server {enable-debug-command yes save {1 1}} {
    test "a save point starts a snapshot, FLUSHALL makes an empty one" {} {
        set before [info_field rdb_saves]
        r set a 1
        wait_for {[info_field rdb_saves] > $before}
        wait_for {[info_field rdb_changes_since_last_save] == 0}
        r flushall
        assert_equal OK [r debug reload nosave]
        assert_equal 0 [r dbsize]
    }

    test "writes are refused while snapshots fail" {} {
        r set a 1
        r save
        set folder [lindex [r config get dir] 1]
        file delete $folder/dump.rdb
        file mkdir $folder/dump.rdb/in-the-way
        assert_refused ERR r save
        assert_equal ok [info_field rdb_last_bgsave_status]
        assert_equal OK [r set a 1]
        r bgsave
        wait_for {[info_field rdb_last_bgsave_status] eq "err"}
        assert_equal {} [glob -nocomplain $folder/temp-*]
        assert_error "MISCONF *" {r set a 2}
        assert_error "MISCONF *" {r ping}
        assert_error "MISCONF *" {r eval {return redis.call('set', KEYS[1], 1)} 1 a}
        assert_error "MISCONF *" {r eval "#!lua\nreturn 1" 0}
        assert_equal 1 [r eval {return redis.call('get', KEYS[1])} 1 a]
        assert_equal 1 [r eval "#!lua flags=no-writes\nreturn 1" 0]
        assert_equal 1 [r get a]
        with_config {stop-writes-on-bgsave-error no} {
            assert_equal OK [r set a 2]
        }
        file delete -force $folder/dump.rdb
        assert_equal OK [r save]
        assert_equal OK [r set a 3]
    }
}

with_server {enable-debug-command yes snapshot-method fork} {
    test "a child's file goes with it" {} {
        fill_data
        with_config {rdb-key-save-delay 10000} {
            r bgsave
            wait_for {[llength [glob -nocomplain [srv dir]/temp-*.rdb]] == 1}
            set pid [exec pgrep -P [srv pid]]
            exec kill -9 $pid
            wait_for {[info_field rdb_bgsave_in_progress] == 0}
            assert_equal err [info_field rdb_last_bgsave_status]
            assert_equal {} [glob -nocomplain [srv dir]/temp-*]
            assert_match "*Background saving failed: terminated by signal 9*" [slurp [srv log]]
        }
        r bgsave
        wait_for {[info_field rdb_last_bgsave_status] eq "ok"}
    }

    test "reading writes nothing while a child shares the memory" {} {
        for {set i 0} {$i < 500} {incr i} {
            r set key:$i 1
        }
        wait_for {[r object idletime key:1] >= 1}
        with_config {rdb-key-save-delay 100000} {
            r bgsave
            wait_for {[llength [glob -nocomplain [srv dir]/temp-*.rdb]] == 1}
            r get key:1
            assert {[r object idletime key:1] >= 1}
            r config set rdb-key-save-delay 0
            exec pkill -9 -P [srv pid]
        }
        wait_for {[info_field rdb_bgsave_in_progress] == 0}
        r get key:1
        assert_equal 0 [r object idletime key:1]
        r bgsave
        wait_for {[info_field rdb_last_bgsave_status] eq "ok"}
    }

    test "a disk without room fails a snapshot, and leaves the file before it" {} {
        r set a 1
        r save
        set before [slurp [srv dir]/dump.rdb]
        r set big [pattern_bytes 3000000]
        set limits [exec prlimit --fsize --pid [srv pid] --noheadings -o SOFT,HARD]
        exec prlimit --fsize=100000:[lindex $limits 1] --pid [srv pid]
        assert_refused ERR r save
        r bgsave
        wait_for {[info_field rdb_last_bgsave_status] eq "err"}
        assert_equal $before [slurp [srv dir]/dump.rdb]
        assert_equal {} [glob -nocomplain [srv dir]/temp-*]
        assert_match "*Error saving the data: cannot write *temp-*.rdb: File too large*" [slurp [srv log]]
        assert_equal 1 [r get a]
        exec prlimit --fsize=[lindex $limits 0]:[lindex $limits 1] --pid [srv pid]
        assert_equal OK [r save]
    }
}

test "a second SIGINT ends a server that saves, and what it has written goes" {} {
    set port [free_port]
    set id [server_launch [list --port $port --save "900 100000" --rdb-key-save-delay 10000 --enable-debug-command yes \
        {*}[thread_args]]]
    wait_for {![catch {set s [connect -port $port -tls 0]}]}
    $s debug populate 10000
    set folder [file dirname $process::info($id,log)]
    process_signal $id INT
    wait_for {[file exists $folder/temp-[process_pid $id].rdb]}
    process_signal $id INT
    assert_equal 1 [process_wait $id]
    assert_equal {} [glob -nocomplain $folder/temp-* $folder/dump.rdb]
}

test "where data is kept does not change while it is loaded" {} {
    lassign [server_launch_loading] id s
    assert_refused "LOADING Redis is loading the dataset in memory" $s config set dir /
    assert_refused "LOADING Redis is loading the dataset in memory" $s get 100
    assert_equal OK [$s config set maxmemory 0]
    assert_match "*\nloading:1*loading_total_bytes:2118*" [$s info persistence]
    process_signal $id KILL
    process_wait $id
}
