# The master's side of replication: redis-server 7.0 as replica (--oracle), and replicas made by hand.

proc oracle_replica {args} {
    if {$::settings(oracle) eq {}} {
        skip "needs redis-server (--oracle)"
    }
    set dir [fresh_dir]
    set port [free_port]
    set id [process_start [list $::settings(oracle) --port $port --dir $dir --save {} --enable-debug-command yes \
        --repl-timeout 60 --replicaof "127.0.0.1 [srv port]" {*}$args] $dir/log]
    lappend ::test_processes $id
    wait_for {![process_alive $id] || ![catch {
        set client [connect -port $port -tls 0]
        $client ping
    }]}
    assert {[process_alive $id]} [process_log $id]
    return $client
}

proc is_up replica {
    return [expr {[dict get [info_of $replica] master_link_status] eq "up"}]
}

proc info_of {client {section replication}} {
    set fields {}
    foreach line [split [$client info $section] \n] {
        if {[regexp {^([^#:]+):(.*)$} [string trimright $line \r] - name value]} {
            dict set fields $name $value
        }
    }
    return $fields
}

# Waits until the replica has all that the master has.
proc wait_equal replica {
    wait_for {[is_up $replica]}
    r set end [incr ::end_serial]
    wait_for {[$replica get end] eq $::end_serial}
    assert_equal [r debug digest] [$replica debug digest]
}

proc fill_all_types {} {
    r debug populate 1000 key 100
    r set big [string repeat x 300000]
    r set soon v px 10000000
    r rpush list a b c
    r hset hash f v g w
    r sadd set 1 2 3 a
    r zadd zset 1.5 a -inf b
    r xadd stream 5-1 f v
    r xgroup create stream g 0
    r select 3
    r set three 3
    r select 0
}

# A replica made by hand: sends the words, returns the connection.
proc hand_made {args} {
    set link [connect]
    foreach words $args {
        $link -send {*}$words
        assert_equal {status OK} [$link -reply]
    }
    return $link
}

# Reads a snapshot of either form, and returns its bytes.
proc take_snapshot link {
    while {[set line [$link -line]] eq {}} {}
    assert_match "\\$*" $line
    if {[regexp {^\$EOF:(.{40})$} $line - mark]} {
        set bytes {}
        while {[string range $bytes end-39 end] ne $mark} {
            append bytes [$link -bytes 1]
        }
        return [string range $bytes 0 end-40]
    }
    return [$link -bytes [string range $line 1 end]]
}

proc reply_line link {
    while {[set line [$link -line]] eq {}} {}
    return $line
}

set end_serial 0

foreach diskless {yes no} {
    with_server [list .tls 0 enable-debug-command yes repl-diskless-sync $diskless repl-diskless-sync-delay 0 \
        repl-ping-replica-period 1] {

        test "a replica gets all data and follows, diskless $diskless" {} {
            r flushall
            fill_all_types
            set replica [oracle_replica]
            wait_for {[is_up $replica]}
            wait_equal $replica
            r mset a 1 b 2
            r select 5
            r lpush l x
            r select 0
            r multi
            r incr a
            r set large [string repeat y 100000]
            r exec
            r eval {redis.call('set', KEYS[1], 'x') redis.call('del', KEYS[2])} 2 script b
            r del big
            wait_equal $replica
            assert_match "*flags=S*" [r client list]
        }

        test "a replica whose link was cut continues, diskless $diskless" {} {
            r flushall
            r set a 1
            set replica [oracle_replica]
            wait_equal $replica
            set cuts 5
            for {set i 0} {$i < $cuts} {incr i} {
                set lines [lsearch -all -inline [split [r client list] \n] *flags=S*]
                assert_equal 1 [llength $lines]
                regexp {id=(\d+)} [lindex $lines 0] - id
                r client kill id $id
                r set cut $i
                r set blob$i [string repeat $i 200000]
                wait_equal $replica
            }
            assert_equal 1 [llength [regexp -all -inline {Full resync from master} \
                [process_log [lindex $::test_processes end]]]]
        }
    }
}

with_server {.tls 0 enable-debug-command yes repl-diskless-sync-delay 0 repl-ping-replica-period 1000} {
    test "REPLCONF, and what is wrong with it" {} {
        assert_equal OK [r replconf]
        assert_equal OK [r replconf listening-port 1234 capa eof capa psync2 capa unheard-of]
        assert_equal OK [r replconf version 8.0.1]
        assert_equal OK [r replconf ip-address 10.0.0.1]
        assert_equal OK [r replconf rdb-only 1 rdb-only 0]
        assert_equal OK [r replconf rdb-filter-only functions]
        assert_equal OK [r replconf license x]
        assert_error "ERR syntax error" {r replconf capa}
        assert_error "ERR Unrecognized REPLCONF option: what" {r replconf what 1}
        assert_error "ERR value is not an integer or out of range" {r replconf listening-port x}
        assert_error "ERR REPLCONF ip-address provided by replica instance is too long: 300 bytes" \
            {r replconf ip-address [string repeat x 300]}
        assert_error "ERR Unsupported rdb-filter-only option: keys" {r replconf rdb-filter-only keys}
        assert_error "ERR Invalid UUID" {r replconf uuid 1}
        assert_equal 36 [string length [r replconf uuid 01234567-89ab-cdef-0123-456789abcdef]]
        # No replies: the next one is that of PING.
        r -send replconf ack 5
        r -send replconf ack x
        r -send replconf getack *
        assert_equal PONG [r ping]
    }

    test "PSYNC with what no replica asks for" {} {
        assert_error "ERR wrong number of arguments for 'psync' command" {r psync a}
        assert_error "ERR value is not an integer or out of range" {r psync ? x}
        assert_error "ERR PSYNC FAILOVER can't be sent to a master." {r psync ? 1 failover}
        r multi
        assert_error "ERR Command not allowed inside a transaction" {r psync ? -1}
        catch {r exec}
        foreach words [list [list ? -1] [list [string repeat z 39] 1] [list [string repeat z 40] 1] [list {} -5] \
                [list [string repeat 0 40] 1] [list [string repeat 1 5000] 99999999999]] {
            set link [hand_made {replconf capa eof capa psync2}]
            $link -send psync {*}$words
            assert_match "+FULLRESYNC *" [reply_line $link]
            assert_match "REDIS0*" [take_snapshot $link]
            $link -close
        }
    }

    test "the offset asked for must be there" {} {
        set link [hand_made {replconf capa eof capa psync2}]
        $link -send psync ? -1
        regexp {^\+FULLRESYNC (\w+) (\d+)$} [reply_line $link] - id offset
        take_snapshot $link
        r set a 1
        foreach asked [list 0 -5 [expr {$offset + 1000000}] 9223372036854775807 -9223372036854775808] {
            set other [hand_made {replconf capa eof capa psync2}]
            $other -send psync $id $asked
            assert_match "+FULLRESYNC *" [reply_line $other]
            $other -close
        }
        set other [hand_made {replconf capa psync2}]
        $other -send psync $id [expr {$offset + 1}]
        assert_equal "+CONTINUE $id" [reply_line $other]
        assert_equal "*2" [reply_line $other]
        set third [connect]
        $third -send psync $id [expr {$offset + 1}]
        assert_equal "+CONTINUE" [reply_line $third]
        foreach one [list $link $other $third] {
            $one -close
        }
    }

    test "after DEBUG CHANGE-REPL-ID whoever returns gets all data" {} {
        set link [hand_made {replconf capa eof capa psync2}]
        $link -send psync ? -1
        regexp {^\+FULLRESYNC (\w+) (\d+)$} [reply_line $link] - id offset
        take_snapshot $link
        $link -close
        assert_equal OK [r debug change-repl-id]
        assert {$id ne [dict get [info_of r] master_replid]}
        set link [hand_made {replconf capa eof capa psync2}]
        $link -send psync $id [expr {$offset + 1}]
        assert_equal "+FULLRESYNC [dict get [info_of r] master_replid]" [lrange [reply_line $link] 0 1]
        $link -close
    }

    test "a replica that acknowledges the future, or garbage, and goes on" {} {
        set link [hand_made {replconf capa eof}]
        $link -send psync ? -1
        assert_match "+FULLRESYNC *" [reply_line $link]
        take_snapshot $link
        foreach ack {9223372036854775807 -1 -9223372036854775808 x 1 0 99999999999} {
            $link -send replconf ack $ack
        }
        $link -raw "\n\n\n"
        r set after acks
        wait_for {[reply_line $link] eq "acks"}
        $link -close
    }

    test "a replica that sends commands is disconnected" {} {
        foreach words {{set x 1} {get x} {replconf capa eof} {ping} {monitor} {nonsense} {blpop nothing 0}} {
            set link [hand_made {replconf capa eof}]
            r del x
            $link -send psync ? -1
            assert_match "+FULLRESYNC *" [reply_line $link]
            take_snapshot $link
            $link -send {*}$words
            assert {[$link -closed 5000]} $words
            assert_equal {} [r get x]
            $link -close
        }
        # What it may not say any more, too: with a line that says why.
        r acl setuser rep on nopass +psync +replconf
        set link [hand_made {auth rep any} {replconf capa eof}]
        $link -send psync ? -1
        assert_match "+FULLRESYNC *" [reply_line $link]
        take_snapshot $link
        r acl setuser rep -replconf
        $link -send replconf ack 0
        assert {[$link -closed 5000]}
        assert_match "*Replica generated a reply to command 'replconf', disconnecting it: *" [slurp [srv log]]
        $link -close
        r acl deluser rep
        # PSYNC of a replica is ignored.
        set link [hand_made {replconf capa eof}]
        $link -send psync ? -1
        assert_match "+FULLRESYNC *" [reply_line $link]
        $link -send psync ? -1
        $link -send sync
        take_snapshot $link
        $link -send replconf ack 0
        r set after psync
        wait_for {[reply_line $link] eq "psync"}
        $link -close
    }

    test "SYNC, and a replica that wants the snapshot alone" {} {
        set link [connect]
        $link -send sync
        assert_match "REDIS0*" [take_snapshot $link]
        r set after sync
        wait_for {[reply_line $link] eq "sync"}
        $link -close
        set link [hand_made {replconf capa eof rdb-only 1}]
        $link -send psync ? -1
        assert_match "+FULLRESYNC *" [reply_line $link]
        take_snapshot $link
        assert {[$link -closed 5000]}
        $link -close
    }
}

# The version of the snapshot for a replica that says these words.
proc version_for {args} {
    set link [hand_made [list replconf capa eof {*}$args]]
    $link -send psync ? -1
    assert_match "+FULLRESYNC *" [reply_line $link]
    regexp {^(?:REDIS|VALKEY)(\d{3,4})} [take_snapshot $link] - version
    $link -close
    return [scan $version %d]
}

with_server {.tls 0 enable-debug-command yes repl-diskless-sync-delay 0} {
    test "the version of the snapshot" {} {
        foreach diskless {yes no} {
            r config set repl-diskless-sync $diskless
            r flushall
            r function flush
            r set a 1
            assert_equal 9 [version_for]
            assert_equal 12 [version_for capa rdb-newest]
            r hset hash f v g w
            r sadd set a b
            r expiremember set a 1000
            assert_equal 9 [version_for]
            r function load "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
            assert_equal 10 [version_for]
            assert_equal 9 [version_for capa activeExpire]
            r hexpire hash 1000 fields 1 f
            assert_equal 12 [version_for]
            assert_equal 9 [version_for capa activeExpire]
            assert_equal 12 [version_for rdb-filter-only {}  rdb-filter-only {} capa rdb-newest]
            assert_equal 10 [version_for rdb-filter-only functions]
            assert_equal 80 [version_for version 9.1.2]
            assert_equal 80 [version_for version 10.0.0 rdb-filter-only functions]
            assert_equal 12 [version_for version 8.1.4]
            assert_equal 12 [version_for version 9]
            assert_equal 12 [version_for version .9.1]
            assert_equal 12 [version_for version 9.1.2 capa rdb-newest]
            assert_equal 9 [version_for version 9.1.2 capa activeExpire]
            r hpersist hash fields 1 f
            assert_equal 10 [version_for]
            r function flush
            assert_equal 9 [version_for]
            r xadd stream 1-1 f v
            assert_equal 10 [version_for]
            assert_equal 9 [version_for capa activeExpire]
            assert_equal 9 [version_for rdb-filter-only functions]
            r del stream
            assert_equal 10 [version_for]
            r select 9
            r flushall
            assert_equal 9 [version_for]
            r config set rdb-version 11
            assert_equal 11 [version_for]
            assert_equal 11 [version_for capa rdb-newest]
            r config set rdb-version auto
        }
    }
}

with_server {.tls 0 server-threads 1 repl-diskless-sync-delay 0 lua-time-limit 10} {
    test "a script sees that a replica goes" {} {
        set link [hand_made {replconf capa eof}]
        $link -send psync ? -1
        assert_match "+FULLRESYNC *" [reply_line $link]
        take_snapshot $link
        set script [connect]
        $script -send eval {
            redis.call('set', 'x', 1)
            while not string.find(redis.call('info', 'replication'), 'connected_slaves:0') do end
            return redis.call('set', 'x', 2)
        } 1 x
        set other [connect]
        wait_for {[catch {$other ping} reply] && [string match "BUSY*" $reply]}
        assert_error "BUSY*" {$other ping}
        $link -close
        assert_equal {status OK} [$script -reply]
        assert_equal 2 [r get x]
        $script -close
        $other -close
    }
}

proc replica_line {} {
    return [lindex [lsearch -all -inline [split [r client list] \n] *flags=S*] 0]
}

proc kill_replicas {} {
    foreach line [lsearch -all -inline [split [r client list] \n] *flags=S*] {
        regexp {id=(\d+)} $line - id
        catch {r client kill id $id}
    }
}

with_server {.tls 0 enable-debug-command yes repl-diskless-sync-delay 0 repl-backlog-size 100kb
    journal-memory-limit 1mb} {

    test "a replica keeps its place while it is away, in the file" {} {
        set replica [oracle_replica]
        wait_equal $replica
        set process [lindex $::test_processes end]
        set port [lindex [$replica config get port] 1]
        set value [string repeat v 100000]
        process_signal $process STOP
        kill_replicas
        wait_for {[replica_line] eq {}}
        for {set i 0} {$i < 300} {incr i} {
            r set key$i $value$i
        }
        assert_match "*replica_place0:ip=127.0.0.1,port=$port,offset=*" [r info replication]
        regexp {replica_place0:.*kept_bytes=(\d+)} [r info replication] - kept
        assert_range $kept 30000000 31000000
        process_signal $process CONT
        wait_equal $replica
        assert_equal 1 [regexp -all {Full resync from master} [process_log $process]]
        # The place was moved to the new link, which keeps one again.
        process_signal $process STOP
        kill_replicas
        r mset a $value b $value c $value
        process_signal $process CONT
        wait_equal $replica
        assert_equal 1 [regexp -all {Full resync from master} [process_log $process]]
    }

    test "places of replicas that have gone are bounded" {} {
        set link [hand_made]
        $link -send psync ? -1
        assert_match "+FULLRESYNC*" [reply_line $link]
        take_snapshot $link
        $link -close
        set id [dict get [info_of r] master_replid]
        set wanted [expr {[dict get [info_of r] master_repl_offset] + 1}]
        for {set i 0} {$i < 200} {incr i} {
            set link [hand_made [list replconf listening-port [expr {10000 + $i}]]]
            $link -send psync $id $wanted
            assert_match "+CONTINUE*" [reply_line $link]
            $link -close
        }
        wait_for {[string match *port=10199,* [r info replication]]}
        assert_equal 128 [regexp -all {replica_place\d+:} [r info replication]]
        r config set repl-backlog-ttl 1
        wait_for {![string match *replica_place* [r info replication]]}
        r config set repl-backlog-ttl 3600
    }

    test "a replica that does not read costs only the file, and gets all" {} {
        set replica [oracle_replica]
        wait_equal $replica
        set process [lindex $::test_processes end]
        set value [string repeat v 100000]
        process_signal $process STOP
        for {set i 0} {$i < 400} {incr i} {
            r set key[expr {$i % 10}] $value$i
        }
        wait_for {[info_field used_memory] < 20000000}
        process_signal $process CONT
        wait_equal $replica
        assert_equal 1 [regexp -all {Full resync from master} [process_log $process]]
    }

    test "a bulk string larger than all limits goes through" {} {
        with_config {client-output-buffer-limit "replica 2mb 2mb 1" proto-max-bulk-len 64mb} {
            set replica [oracle_replica]
            wait_equal $replica
            set process [lindex $::test_processes end]
            r set huge [string repeat 0123456789 2000000]
            wait_equal $replica
            process_signal $process STOP
            r set huge [string repeat 9876543210 2000000]
            r set other [string repeat a 3000000]
            pause 1500
            process_signal $process CONT
            wait_equal $replica
            assert_equal 1 [regexp -all {Full resync from master} [process_log $process]]
            r del huge other
        }
    }

    test "repl-backpressure-limit parks writers for a while" {} {
        with_config {repl-backpressure-limit 1mb repl-timeout 3} {
            set link [hand_made {replconf capa eof}]
            $link -send psync ? -1
            assert_match "+FULLRESYNC *" [reply_line $link]
            take_snapshot $link
            $link -send replconf ack 0
            r set stream begins
            wait_for {[reply_line $link] eq "begins"}
            # The limit is set within a second.
            pause 1100
            set value [string repeat v 100000]
            set begin [clock milliseconds]
            for {set i 0} {$i < 30} {incr i} {
                r set key $value
            }
            # 3 MB were parked behind 1 MB until the replica was given up as silent.
            assert_range [expr {[clock milliseconds] - $begin}] 500 20000
            set told "*lag of a replica exceeds repl-backpressure-limit*writes continue*"
            wait_for {[string match $told [slurp [srv log]]]}
            assert {![string match "*AOF lag*" [slurp [srv log]]]}
            $link -close
        }
    }

    test "for a replica that takes nothing writers are slowed down, but not stopped" {} {
        set told [regexp -all {lag of a replica exceeds} [slurp [srv log]]]
        with_config {journal-memory-limit 1mb} {
            set link [hand_made {replconf capa eof}]
            $link -send psync ? -1
            assert_match "+FULLRESYNC *" [reply_line $link]
            take_snapshot $link
            $link -send replconf ack 0
            r set stream begins
            wait_for {[reply_line $link] eq "begins"}
            set value [string repeat v 100000]
            for {set i 0} {$i < 100} {incr i} {
                r set key $value
            }
            assert_equal 1 [regexp -all {state=online} [r info replication]]
            assert_equal $told [regexp -all {lag of a replica exceeds} [slurp [srv log]]]
            $link -close
        }
    }

    test "a replica that takes nothing of the snapshot is dropped, and another gets it" {} {
        foreach diskless {yes no} {
            with_config [list repl-diskless-sync $diskless repl-timeout 2 repl-diskless-sync-delay 1 \
                rdbcompression no] {
                r flushall
                r debug populate 200 key 100000
                set stuck [hand_made {replconf capa eof}]
                $stuck -send psync ? -1
                set replica [oracle_replica]
                wait_equal $replica
                assert_match "+FULLRESYNC *" [reply_line $stuck]
                wait_for {[regexp {timedout replica \(full sync\)} [slurp [srv log]]]}
                $stuck -close
            }
        }
        r flushall
    }

    test "a full sync ends when nobody is left" {} {
        r debug populate 2000 key 1000
        with_config {rdb-key-save-delay 10000} {
            foreach diskless {yes no} {
                with_config [list repl-diskless-sync $diskless] {
                    set link [hand_made {replconf capa eof}]
                    $link -send psync ? -1
                    assert_match "+FULLRESYNC *" [reply_line $link]
                    $link -close
                    # The child would take 20 seconds.
                    wait_for {[catch {r config set rdb-key-save-delay 0}] == 0}
                    set other [hand_made {replconf capa eof}]
                    $other -send psync ? -1
                    assert_match "+FULLRESYNC *" [reply_line $other]
                    take_snapshot $other
                    $other -close
                    r config set rdb-key-save-delay 10000
                }
            }
        }
        assert_equal {} [glob -nocomplain [srv dir]/temp-sync-*]
    }

    test "FLUSHALL ends a full sync of what it deletes" {} {
        foreach {diskless flush} {yes flushall no {flushall async}} {
            with_config [list repl-diskless-sync $diskless rdb-key-save-delay 10000] {
                r debug populate 2000 key 1000
                set link [hand_made {replconf capa eof}]
                $link -send psync ? -1
                assert_match "+FULLRESYNC *" [reply_line $link]
                r {*}$flush
                # The child would take 20 seconds.
                assert {[$link -closed 5000]}
                $link -close
                set link [hand_made {replconf capa eof}]
                $link -send psync ? -1
                assert_match "+FULLRESYNC *" [reply_line $link]
                assert {[string length [take_snapshot $link]] < 1000}
                $link -close
            }
        }
        assert_equal {} [glob -nocomplain [srv dir]/temp-sync-*]
    }
}

# Its first replica comes and goes before the server has counted a second.
test "a backlog that has just begun is kept for repl-backlog-ttl" {noconn} {
    with_group {m ours {repl-backlog-ttl 30}} {
        set link [member_connect m]
        $link -send psync ? -1
        regexp {^\+FULLRESYNC (\w+) (\d+)$} [reply_line $link] - id offset
        take_snapshot $link
        $link -close
        wait_for {[section_field m server uptime_in_seconds] >= 2}
        set link [member_connect m]
        $link -send psync $id [expr {$offset + 1}]
        assert_equal "+CONTINUE" [reply_line $link]
        $link -close
    }
}

# Begins a full sync, and returns the link when the snapshot's child runs.
proc begin_sync {} {
    set link [hand_made {replconf capa eof}]
    $link -send psync ? -1
    assert_match "+FULLRESYNC *" [reply_line $link]
    return $link
}

foreach loop {epoll io_uring} {
    with_server [list .tls 0 enable-debug-command yes event-loop $loop repl-diskless-sync-delay 0 \
        shutdown-timeout 0] {
        # with_server looks at how it has ended.
        test "a server ends while a replica does not read, $loop" {} {
            set link [begin_sync]
            take_snapshot $link
            $link -send replconf ack 0
            set value [string repeat v 1000000]
            for {set i 0} {$i < 20} {incr i} {
                r set key $value
            }
            wait_for {[regexp {flags=S.* obl=[1-9]} [r client list]]}
        }
    }
}

proc count_in_log text {
    return [regexp -all -- $text [slurp [srv log]]]
}

with_server {.tls 0 enable-debug-command yes enable-protected-configs yes repl-diskless-sync-delay 0
    snapshot-method fork} {
    test "a snapshot that cannot be made ends the links, and the next one works" {} {
        r debug populate 1000 key 1000
        # The child is killed.
        foreach diskless {yes no} {
            with_config [list repl-diskless-sync $diskless rdb-key-save-delay 10000] {
                set link [begin_sync]
                regexp {.*started by pid (\d+): full sync with 1 replicas} [slurp [srv log]] - pid
                exec kill -9 $pid
                assert {[$link -closed 5000]}
                $link -close
            }
        }
        assert_equal 2 [count_in_log {Full sync with replicas failed: terminated by signal 9}]
        # There is no folder for the file.
        with_config {repl-diskless-sync no} {
            set before [lindex [r config get dir] 1]
            set folder [fresh_dir]/gone
            file mkdir $folder
            r config set dir $folder
            file delete -force $folder
            set link [begin_sync]
            assert {[$link -closed 5000]}
            $link -close
            assert_equal 1 [count_in_log {Full sync with replicas failed: cannot create}]
            r config set dir $before
        }
        set link [begin_sync]
        assert_match "REDIS0*" [take_snapshot $link]
        $link -close
        assert_equal {} [glob -nocomplain [srv dir]/temp-sync-*]
    }

    test "a sync asked for while another child runs is not forgotten" {} {
        r debug populate 1000 key 1000
        with_config {rdb-key-save-delay 2000} {
            r bgsave
            set link [hand_made {replconf capa eof}]
            $link -send psync ? -1
            # Newlines tell that it is waited for.
            assert_equal "\n" [$link -bytes 1]
            assert_equal 1 [info_field rdb_bgsave_in_progress]
            assert_match "+FULLRESYNC *" [reply_line $link]
            take_snapshot $link
            $link -close
        }
        # The reverse.
        with_config {rdb-key-save-delay 1000} {
            set link [begin_sync]
            assert_error "ERR Background save already in progress" {r bgsave}
            assert_equal "Background saving scheduled" [r bgsave schedule]
            set saves [info_field rdb_saves]
            $link -close
            r config set rdb-key-save-delay 0
            wait_for {[info_field rdb_saves] > $saves}
        }
    }

    test "replicas that come in time share one snapshot" {} {
        set before [count_in_log {full sync with 3 replicas}]
        with_config {repl-diskless-sync-delay 100 repl-diskless-sync-max-replicas 3} {
            foreach name {one two three} {
                set $name [hand_made {replconf capa eof}]
                [set $name] -send psync ? -1
            }
            foreach name {one two three} {
                assert_match "+FULLRESYNC *" [reply_line [set $name]]
            }
            set snapshots {}
            foreach name {one two three} {
                lappend snapshots [take_snapshot [set $name]]
                [set $name] -close
            }
            assert_equal 1 [llength [lsort -unique $snapshots]]
        }
        assert_equal [expr {$before + 1}] [count_in_log {full sync with 3 replicas}]
        with_config {repl-diskless-sync-delay 1} {
            set begin [clock milliseconds]
            set link [begin_sync]
            assert_range [expr {[clock milliseconds] - $begin}] 900 5000
            take_snapshot $link
            $link -close
        }
    }

    test "replicas are asked for what they have applied, and pinged" {} {
        with_config {repl-ping-replica-period 1} {
            set link [begin_sync]
            take_snapshot $link
            $link -send replconf ack 0
            wait_for {[reply_line $link] eq "PING"}
            $link -close
        }
        set link [begin_sync]
        take_snapshot $link
        $link -send replconf ack 0
        set value [string repeat v 1000000]
        wait_for {[r set key $value] eq "OK" && [string first GETACK [$link -bytes 1000000]] >= 0}
        $link -close
    }

    test "CLIENT PAUSE of all commands does not hold what a replica acknowledges" {} {
        set link [begin_sync]
        take_snapshot $link
        set writer [connect]
        $writer set key value
        set offset [dict get [info_of r] master_repl_offset]
        $writer -send wait 1 0
        wait_for {[regexp {cmd=wait} [r client list]]}
        set begin [clock milliseconds]
        r client pause 2000
        $link -send replconf ack $offset
        assert_equal 1 [$writer -read]
        assert {[clock milliseconds] - $begin < 1900}
        # Its end, too.
        r ping
        $link -close
        $writer -close
    }
}
