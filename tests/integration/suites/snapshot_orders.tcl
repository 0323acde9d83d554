# Orders that come while a snapshot is written, and orders for snapshots from places where few give them.

# What is scheduled runs when it is not any more: so that is asked first.
proc orders_idle {} {
    wait_for {[info_field rdb_bgsave_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0 &&
        [info_field aof_rewrite_in_progress] == 0} 60000
}

with_server {enable-debug-command yes save {} snapshot-method threads} {
    test "BGSAVE in a transaction saves all of it, or nothing" {} {
        foreach words {bgsave {bgsave schedule}} {
            r mset a 0 b 0
            set saves [info_field rdb_saves]
            r multi
            r incr a
            r {*}$words
            r incr b
            assert_equal {1 {Background saving scheduled} 1} [r exec]
            wait_for {[info_field rdb_saves] == $saves + 1}
            orders_idle
            assert_equal OK [r debug reload nosave]
            assert_equal {1 1} [r mget a b]
        }
        r multi
        r bgsave foo
        assert_match "*ERR syntax error*" [r -typed exec]
    }

    test "SAVE is for no transaction and no script" {} {
        r multi
        assert_refused "ERR Command not allowed inside a transaction" r save
        assert_error "EXECABORT*" {r exec}
        foreach command {save bgsave} {
            assert_error "ERR This Redis command is not allowed from script*" \
                [list r eval "return redis.call('$command')" 0]
        }
    }
}

# Small and large values; gives the digest.
proc orders_fill {} {
    for {set i 0} {$i < 200} {incr i} {
        r -send set key:$i $i
        r -send rpush list:$i a b $i
    }
    for {set i 0} {$i < 400} {incr i} {
        r -read
    }
    for {set i 0} {$i < 5} {incr i} {
        set pairs {}
        set scores {}
        for {set j 0} {$j < 1000} {incr j} {
            lappend pairs $i:$j value:$j
            lappend scores $j $i:$j
        }
        r hset hash {*}$pairs
        r zadd zset {*}$scores
        r rpush list {*}$pairs
    }
    r set long [string repeat 0123456789abcdef 125000]
    return [r debug digest]
}

proc orders_change {} {
    for {set i 0} {$i < 200} {incr i} {
        r -send incr key:$i
        r -send lpop list:$i
    }
    for {set i 0} {$i < 400} {incr i} {
        r -read
    }
    r hdel hash 1:1
    r zadd zset 5 new
    r lpop list 4000
    r setrange long 1000000 changed
    r del key:1
    r set new 1
}

# Threads of the server that write a snapshot.
proc orders_threads {} {
    set count 0
    foreach file [glob -nocomplain /proc/[srv pid]/task/*/comm] {
        catch {incr count [string match snapshot* [slurp $file]]}
    }
    return $count
}

# Sends the order on a connection of its own, which it gives. It runs, slowly.
proc orders_begin order {
    set client [connect]
    $client -send {*}$order
    wait_for {[info_field rdb_bgsave_in_progress] + [info_field aof_rewrite_in_progress] == 1}
    return $client
}

with_server {
    enable-debug-command yes save {} snapshot-method threads appendonly yes auto-aof-rewrite-percentage 0
} {
    test "snapshot-threads takes 1 to 8, and is kept by CONFIG REWRITE" {noconn} {
        set port [free_port]
        set folder [fresh_dir]
        spit $folder/conf "port $port\ndir $folder\nsave \"\"\n"
        set id [server_launch [list $folder/conf]]
        wait_for {![catch {set s [connect -port $port -tls 0]}]}
        assert_equal {snapshot-threads 1} [$s config get snapshot-threads]
        foreach bad {0 9 -1 two {}} {
            assert_match "ERR CONFIG SET failed*'snapshot-threads'*" \
                [lindex [$s -typed config set snapshot-threads $bad] 1]
        }
        assert_equal {snapshot-threads 1} [$s config get snapshot-threads]
        foreach good {2 8} {
            assert_equal OK [$s config set snapshot-threads $good]
            assert_equal OK [$s config rewrite]
            assert_match "*\nsnapshot-threads $good\n*" [slurp $folder/conf]
        }
        $s -close
        process_stop $id
        set id [server_launch [list $folder/conf]]
        wait_for {![catch {set s [connect -port $port -tls 0]}]}
        assert_equal {snapshot-threads 8} [$s config get snapshot-threads]
        $s -close
        process_stop $id
        set id [server_launch [list $folder/conf --snapshot-threads 9]]
        assert_equal 1 [process_wait $id]
    }

    foreach {order preamble reload} {
        bgsave yes {reload nosave}
        save yes {reload nosave}
        bgrewriteaof yes loadaof
        bgrewriteaof no loadaof
    } {
        test_each {order preamble reload} "[string toupper $order] by any number of threads, preamble $preamble" {} {
            r config set aof-use-rdb-preamble $preamble
            foreach {threads meanwhile} {1 8 8 2} {
                r flushall
                set digest [orders_fill]
                r config set snapshot-threads $threads
                with_config [list rdb-key-save-delay [expr {400 * $threads}]] {
                    set saver [orders_begin $order]
                    if {$preamble} {
                        wait_for {[orders_threads] == $threads}
                    }
                    assert_equal OK [r config set snapshot-threads $meanwhile]
                    orders_change
                    assert_equal 1 [expr {[info_field rdb_bgsave_in_progress] + [info_field aof_rewrite_in_progress]}]
                    if {$preamble} {
                        assert_equal $threads [orders_threads]
                    }
                }
                $saver -read
                $saver -close
                orders_idle
                wait_for {[orders_threads] == 0}
                assert_equal 0 [info_field snapshot_kept_bytes]
                if {$reload eq "loadaof"} {
                    set digest [r debug digest]
                }
                assert_equal OK [r debug {*}$reload]
                assert_equal $digest [r debug digest] $threads
            }
        }
    }
}

# ---- orders meanwhile

with_server {enable-debug-command yes enable-protected-configs yes save {} snapshot-method threads} {
    foreach start {save bgsave} {
        test_each start "whatever is ordered during [string toupper $start], its file is the moment's" {} {
            set home [srv dir]
            set else [fresh_dir]
            foreach {order expected undo} {
                save "ERR Background save already in progress" {}
                bgsave "ERR Background save already in progress" {}
                bgrewriteaof "*scheduled" {}
                flushdb OK {}
                {swapdb 0 1} OK {}
                {config set snapshot-method fork} OK {config set snapshot-method threads}
                {config set snapshot-threads 8} OK {config set snapshot-threads 1}
                {config set appendonly yes} OK {config set appendonly no}
                {config set save "3600 1000000"} OK {config set save {}}
                {config set dbfilename other.rdb} OK {config set dbfilename dump.rdb}
                {config set dir $else} OK {config set dir $home}
                {config set maxmemory 1} OK {config set maxmemory 0}
                {replicaof 127.0.0.1 1} OK {replicaof no one}
                {shutdown abort} "ERR No shutdown in progress." {}
            } {
                r flushall
                file delete $home/dump.rdb
                set digest [orders_fill]
                set saves [info_field rdb_saves]
                with_config {rdb-key-save-delay 2000} {
                    set saver [orders_begin $start]
                    assert_match $expected [lindex [r -typed {*}[subst $order]] 1]
                    assert_equal 1 [info_field rdb_bgsave_in_progress] $order
                }
                if {$start eq "save"} {
                    assert_equal {status OK} [$saver -reply] $order
                } else {
                    assert_match "*started" [$saver -read]
                }
                assert_equal PONG [$saver ping]
                $saver -close
                orders_idle
                if {$undo ne {}} {
                    r {*}[subst $undo]
                }
                assert_equal {} [glob -nocomplain $home/temp-* $else/*]
                assert_equal [list [expr {$saves + 1}] ok 0] [list [info_field rdb_saves] \
                    [info_field rdb_last_bgsave_status] [info_field snapshot_kept_bytes]] $order
                assert_equal OK [r debug reload nosave]
                assert_equal $digest [r debug digest] $order
            }
        }
    }

    test "what a client has sent behind its SAVE is done behind it, in order" {} {
        orders_fill
        with_config {rdb-key-save-delay 200} {
            set client [connect]
            $client -raw [request set a 1] [request save] [request incr a] [request save] [request get a] \
                [request client unblock 1]
            assert_equal {OK OK 2 OK 2 0} [list [$client -read] [$client -read] [$client -read] [$client -read] \
                [$client -read] [$client -read]]
        }
    }
}

# Files of more than 300 KB are refused while the body runs.
proc orders_with_full_disk body {
    exec prlimit --fsize=300000:unlimited --pid [srv pid]
    try {
        uplevel 1 $body
    } finally {
        exec prlimit --fsize=unlimited:unlimited --pid [srv pid]
    }
}

foreach threads {1 8} {
    with_server [list enable-debug-command yes save {} snapshot-method threads snapshot-threads $threads \
        rdbcompression no] {
        test "a disk that is full in the middle, threads: $threads" {} {
            set digest [orders_fill]
            assert_equal OK [r save]
            set before [slurp [srv dir]/dump.rdb]
            orders_change
            orders_with_full_disk {
                assert_refused ERR r save
                assert_equal ok [info_field rdb_last_bgsave_status]
                r bgsave
                wait_for {[info_field rdb_last_bgsave_status] eq "err"}
                r bgrewriteaof
                wait_for {[info_field aof_last_bgrewrite_status] eq "err"}
                orders_idle
                assert_equal 0 [info_field snapshot_kept_bytes]
                assert_equal {} [glob -nocomplain [srv dir]/temp-* [srv dir]/appendonlydir/temp-*]
                assert_equal $before [slurp [srv dir]/dump.rdb]
                assert_equal OK [r set one 1]
            }
            set digest [r debug digest]
            assert_equal OK [r save]
            assert_equal ok [info_field rdb_last_bgsave_status]
            assert_equal OK [r debug reload nosave]
            assert_equal $digest [r debug digest]
        }
    }
}

# ---- replicas

proc orders_field {name field} {
    return [section_field $name persistence $field]
}

foreach load {disabled swapdb} {
    test_each load "the data of a master ends a SAVE, repl-diskless-load $load" {} {
        with_group [list m ours {} r ours [list snapshot-method threads repl-diskless-load $load]] {
            on m debug populate 500 master
            on r debug populate 2000
            on r config set rdb-key-save-delay 100000
            set saver [member_connect r]
            $saver -send save
            wait_for {[orders_field r rdb_bgsave_in_progress] == 1}
            follow r m
            assert_error "ERR The save was stopped" {$saver -read}
            assert_equal PONG [$saver ping]
            wait_same m r
            assert_equal {0 0 ok 0} [list [orders_field r rdb_saves] [orders_field r rdb_bgsave_in_progress] \
                [orders_field r rdb_last_bgsave_status] [orders_field r snapshot_kept_bytes]]
            assert_equal {} [glob -nocomplain [member r dir]/temp-*]
            on r config set rdb-key-save-delay 0
            assert_equal OK [$saver save]
            assert_equal OK [on r debug reload nosave]
            assert_equal [dataset m] [dataset r]
            $saver -close
        }
    }
}

# The replica stands still, so that the sync does not end.
foreach {diskless way} {yes TERM yes {shutdown now force} no {shutdown nosave} no {shutdown save}} {
    test_each {diskless way} "a server ends by $way during a full sync, diskless: $diskless" {} {
        with_group [list m ours [list snapshot-method threads repl-diskless-sync $diskless shutdown-timeout 0] \
            r ours {}] {
            on m debug populate 2000 key 1000
            on m config set rdb-key-save-delay 100000
            follow r m
            wait_for {[orders_field m rdb_bgsave_in_progress] == 1}
            process_signal [member r process] STOP
            on m config set rdb-key-save-delay 0
            if {$way eq "TERM"} {
                assert_equal 0 [member_kill m TERM]
            } else {
                on m -send {*}$way
                assert_equal 0 [process_wait [member m process] 30000]
                assert_equal 0 [member_kill m KILL]
            }
            process_signal [member r process] CONT
            assert_equal {} [glob -nocomplain [member m dir]/temp-*]
            assert_equal [expr {$way eq "shutdown save"}] [file exists [member m dir]/dump.rdb]
            member_start m
            wait_same m r
            assert_equal [expr {$way eq "shutdown save" ? 2000 : 0}] [on r dbsize]
        }
    }
}
