# The replica's side of replication: REPLICAOF, the link to a redis-server, and to masters that lie.

proc fullresync {offset rest} {
    return "+FULLRESYNC [string repeat a 40] $offset\r\n$rest"
}

proc words args {
    set bytes "*[llength $args]\r\n"
    foreach word $args {
        append bytes "\$[string length $word]\r\n$word\r\n"
    }
    return $bytes
}

# The reply, or nothing while the data is being loaded.
proc shows {name args} {
    if {[catch {on $name {*}$args} reply] && ![string match LOADING* $reply]} {
        error $reply
    }
    return $reply
}

proc logged {name text} {
    return [expr {[string first $text [slurp [member $name log]]] >= 0}]
}

proc log_count {name text} {
    return [expr {[llength [split [string map [list $text \x01] [slurp [member $name log]]] \x01]] - 1}]
}

with_server {} {
    test "REPLICAOF: its words" {keydb} {
        assert_refused "ERR Invalid master port" r replicaof 127.0.0.1 x
        assert_refused "ERR Invalid master port" r replicaof 127.0.0.1 65536
        assert_refused "ERR Invalid master port" r slaveof 127.0.0.1 -1
        assert_reply {status OK} r replicaof no one
        assert_reply {status OK} r slaveof NO ONE
        assert_equal {replicaof {}} [r config get replicaof]
        set port [free_port]
        assert_reply {status OK} r replicaof 127.0.0.1 $port
        assert_reply {status {OK Already connected to specified master}} r replicaof 127.0.0.1 $port
        assert_equal [list replicaof "127.0.0.1 $port"] [r config get replicaof]
        assert_equal [list slaveof "127.0.0.1 $port"] [r config get slaveof]
        assert_reply {status OK} r replicaof no one
        assert_equal {replicaof {}} [r config get replicaof]
        r set a 1
    }
}

with_server {.tls 0} {
    test "tls-replication needs certificates" {plain} {
        assert_error "*Unable to update TLS configuration*" {r config set tls-replication yes}
        assert_equal {tls-replication no} [r config get tls-replication]
        assert_reply {status OK} r config set tls-replication yes tls-cert-file [cert server.crt] \
            tls-key-file [cert server.key] tls-ca-cert-file [cert ca.crt]
        assert_reply {status OK} r config set tls-replication no
    }
}

with_server {} {
    foreach {mode options} {
        "through a file" {}
        "without a file" {repl-diskless-load swapdb}
        "without a file, when it is empty" {repl-diskless-load on-empty-db}
    } {
        foreach {sender extra} {"from a disk" {repl-diskless-sync no} "without a disk" {repl-diskless-sync yes}} {
            test "a redis-server is followed: it sends $sender, we load $mode" {noconn} \
                [string map [list %SETTINGS% $extra %OPTIONS% $options] {
                with_group {m oracle {%SETTINGS%} r ours {%OPTIONS%}} {
                    on m set before 1
                    on m debug populate 20000 key 100
                    on m select 5
                    on m rpush l a b c
                    follow r m
                    wait_for {[shows r dbsize] == 20001}
                    on m set after 2
                    on m select 0
                    on m multi
                    on m set x 1
                    on m incr x
                    on m exec
                    wait_for {[shows r get x] eq 2}
                    assert_equal [dataset m] [dataset r]
                    on r replicaof no one
                    on r set old 1
                    on m flushall
                    on m set only 1
                    follow r m
                    wait_for {[shows r get only] eq 1}
                    assert_equal 1 [on r dbsize]
                }
            }]
        }
    }

    test "a link that was cut continues, in the database of the stream" {noconn} {
        with_group {m oracle {} r ours {}} {
            set via [proxy_open m]
            follow r m $via
            on m select 3
            on r select 3
            on m set a 1
            wait_for {[shows r get a] eq 1}
            proxy $via down
            for {set i 0} {$i < 100} {incr i} {
                on m rpush l $i
            }
            proxy $via up
            wait_for {[shows r llen l] == 100}
            assert_equal {1 1} [lrange [sync_counts m] 0 1]
            on m set b 2
            wait_for {[shows r get b] eq 2}
            assert_equal [dataset m] [dataset r]
        }
    }

    test "REPLICAOF NO ONE keeps the offset: the former sibling continues here, and we there" {noconn} {
        with_group {m oracle {} r ours {} o oracle {}} {
            follow r m
            follow o m
            on m set a 1
            wait_for {[shows r get a] eq 1 && [shows o get a] eq 1}
            on o replicaof no one
            on o set b 1
            follow r o
            wait_for {[shows r get b] eq 1}
            assert_equal {0 1} [lrange [sync_counts o] 0 1]
            wait_for {[logged r "Master replication ID changed"]}
        }
    }

    test "what the master wrote is within its limits, not within ours" {noconn} {
        with_group {m oracle {} r ours {proto-max-bulk-len 1mb client-query-buffer-limit 1mb}} {
            follow r m
            on m set a [string repeat a 1500000]
            on m append a [string repeat b 1500000]
            on m append a c
            on m setrange b 2000000 abc
            on m setbit c 80000000 1
            on m bitfield d set u8 90000000 7
            on m setbit e 80000000 0
            on m bitop and f e
            on m set last 1
            wait_for {[shows r get last] eq 1}
            assert_equal [dataset m] [dataset r]
            assert_equal {1 0} [lrange [sync_counts m] 0 1]
        }
    }

    test "CLIENT PAUSE holds the stream, too" {noconn} {
        with_group {m oracle {} r ours {}} {
            follow r m
            on m set a 1
            wait_for {[shows r get a] eq 1}
            foreach value {2 3} {
                on r client pause 1000000 write
                set offset [replication r slave_repl_offset]
                on m set a $value
                wait_for {[replication r slave_read_repl_offset] == [replication m master_repl_offset]}
                assert_equal $offset [replication r slave_repl_offset]
                assert_equal 1 [on r get a]
                on r client unpause
                wait_for {[shows r get a] eq $value}
                on m set a 1
                wait_for {[shows r get a] eq 1}
            }
            # It ends by itself, too.
            on r client pause 300 all
            on m set a 2
            wait_for {[shows r get a] eq 2}
            assert_equal {1 0} [lrange [sync_counts m] 0 1]
        }
    }

    test "the option replicaof: from the command line, and written by CONFIG REWRITE" {noconn} {
        with_group {m oracle {requirepass secret}} {
            set dir [fresh_dir]
            set port [free_port]
            spit $dir/conf "port $port\ndir $dir\nmasterauth wrong\nslaveof 127.0.0.1 [member m plain_port]\n"
            set id [server_launch [list $dir/conf]]
            wait_for {![catch {set c [connect -port $port -tls 0]}]}
            wait_for {[string first "Unable to AUTH to MASTER: '-WRONGPASS" [slurp $process::info($id,dir)/log]] >= 0}
            $c config set masterauth secret
            on m set a 1
            wait_for {![catch {$c get a} reply] && $reply eq 1}
            $c config rewrite
            assert_match "*\nreplicaof 127.0.0.1 [member m plain_port]\n*" [slurp $dir/conf]
            $c replicaof no one
            $c config rewrite
            assert {![regexp replicaof\ 127|slaveof\ 127 [slurp $dir/conf]]}
        }
    }

    test "a replica that restarts continues where its file ends, in the database of the stream" {noconn} {
        with_group {m oracle {} r ours {}} {
            follow r m
            on m select 4
            on m set a 1
            on r select 4
            wait_for {[shows r get a] eq 1}
            on r save
            member_kill r
            on m set b 2
            member_start r [list replicaof "127.0.0.1 [member m port]"]
            on r select 4
            wait_for {[shows r get b] eq 2}
            assert_equal {1 1} [lrange [sync_counts m] 0 1]
        }
    }

    test "a master that restarts is continued by its replicas" {noconn} {
        with_group {m ours {} o oracle {}} {
            on m set a 1
            follow o m
            wait_for {[shows o get a] eq 1}
            on m set b 2 px 1
            on m select 3
            on m set c 3
            wait_for {[shows o dbsize] == 1}
            on m select 0
            wait_for {[on m dbsize] == 1} ;# what expires after SAVE the replica alone would have
            on m save
            member_kill m
            member_start m
            on m select 3
            on m set d 4
            on o select 3
            wait_for {[shows o get d] eq 4}
            assert {[logged o "Master accepted a Partial Resynchronization"]}
            wait_for {[dataset m] eq [dataset o]}
        }
    }

    test "what the master sends while a script is busy is applied when it has ended" {noconn} {
        with_group {m ours {} r ours {server-threads 1 lua-time-limit 20 repl-timeout 2}} {
            follow r m
            wait_link r
            set busy [member_connect r]
            $busy -send eval {while true do end} 0
            wait_for {[catch {on r get x} reply] && [string match BUSY* $reply]}
            for {set i 0} {$i < 5} {incr i} {
                on m set k$i [string repeat v 100000]
                on m incr counter
            }
            set from [clock milliseconds]
            wait_for {[clock milliseconds] - $from > 3000}
            on r script kill
            $busy -close
            wait_same m r
            assert_equal 5 [on r get counter]
            on m set more 1
            wait_same m r
        }
    }

    foreach threads {1 4} {
        test "a slow script of the master: clients get -BUSY, it stays ($threads threads)" {noconn} [string map \
            "%THREADS% $threads" {
            with_group {r ours {server-threads %THREADS% busy-reply-threshold 50 repl-timeout 1}} {
                set port [fake_master [dict create PSYNC [fullresync 1 [sized [snapshot {a 1}]]]]]
                on r replicaof 127.0.0.1 $port
                wait_for {[link_is_up r]}
                fake_send [words SET before 1][words EVAL {
                    redis.call('set', 'written', 1)
                    for i = 1, 100000000 do local x = i % 7 end} 0][words SET after 1]
                wait_for {[catch {on r get a} reply] && [string match "BUSY Redis is busy*SCRIPT KILL*" $reply]}
                foreach kind {script function} {
                    assert_refused "UNKILLABLE The busy script was sent by a master instance in the context of\
                        replication and cannot be killed." [on r] $kind kill
                }
                assert_error BUSY* {on r replicaof no one}
                wait_for {![catch {on r get after} reply] && $reply eq 1} 60000
                assert_equal 1 [on r get written]
                assert_equal 1 [link_is_up r]
                # One that never ends does not keep the server from its end.
                fake_send [words EVAL {while true do end} 0][words SET never 1]
                wait_for {[catch {on r get a} reply] && [string match BUSY* $reply]}
                fake_send [words SET never 2]
                fake_close
                assert_error BUSY* {on r get a}
            }
        }]
    }

    foreach {how files} {nosave {appendonly yes appendfsync always} nosave-multi {appendonly yes appendfsync always}
        signal {save {3600 1}} signal-unwritten {save {3600 1}}} {
        test "a script of the master that the server's end cuts is not applied ($how)" {noconn} [string map \
            [list %HOW% $how %FILES% $files] {
            with_group {r ours {busy-reply-threshold 50 %FILES%}} {
                set id [string repeat a 40]
                set port [fake_master [dict create PSYNC [fullresync 1 [sized [snapshot {a 1}]]]]]
                on r replicaof 127.0.0.1 $port
                wait_for {[link_is_up r]}
                wait_for {[string match save* "%FILES%"] ||
                    [logged r "Background AOF rewrite finished successfully"]}
                set before [words SELECT 0][words SET before 1]
                set script {%WRITE% while true do end}
                set script [string map [list %WRITE% [expr {"%HOW%" eq "signal-unwritten" ? {} :
                    {redis.call('incr', 'n')}}]] $script]
                set after [words EVAL $script 0][words SET never 1]
                if {"%HOW%" eq "nosave-multi"} {
                    set after [words MULTI][words INCR m][words EVAL $script 0][words EXEC]
                }
                fake_send $before
                wait_for {[string match save* "%FILES%"] ||
                    [string match *before* [slurp [lindex [glob [member r dir]/appendonlydir/*.incr.aof] end]]]}
                fake_send $after
                wait_for {[catch {on r get a} reply] && [string match BUSY* $reply]}
                if {[string match nosave* "%HOW%"]} {
                    catch {on r shutdown nosave}
                    member_kill r
                    member_start r {replicaof {}} ;# the master would send all data anew, which would replace these
                    assert_equal {1 1 0} [list [on r get before] [on r get a] [on r exists n m never]]
                } else {
                    member_kill r TERM
                    set requests [llength [fake_requests]]
                    member_start r [list replicaof "127.0.0.1 $port"]
                    wait_for {[lsearch -index 0 [lrange [fake_requests] $requests end] PSYNC] >= 0}
                    foreach request [lrange [fake_requests] $requests end] {
                        if {[lindex $request 0] eq "PSYNC"} {
                            set psync [lrange $request 1 2]
                        }
                    }
                    fake_close
                    if {"%HOW%" eq "signal"} {
                        assert {[lindex $psync 0] ne $id}
                    } else {
                        assert_equal [list $id [expr {1 + [string length $before] + 1}]] $psync
                    }
                }
            }
        }]
    }

    test "what the master is told" {noconn} {
        with_group {r ours {.tls 0 masteruser joe masterauth pw replica-announce-ip 1.2.3.4 replica-announce-port 77}} {
            set port [fake_master [dict create PSYNC [fullresync 7 [sized [snapshot {a 1}]]]]]
            on r replicaof 127.0.0.1 $port
            wait_for {[shows r get a] eq 1}
            wait_for {[lindex [fake_requests] end 1] eq "ACK"}
            assert_equal [list PING {AUTH joe pw} {REPLCONF listening-port 77} {REPLCONF ip-address 1.2.3.4} \
                {REPLCONF capa eof capa psync2 capa rdb-newest} {REPLCONF version 9.0.0} {PSYNC ? -1}] \
                [lrange [fake_requests] 0 6]
            assert_equal {REPLCONF ACK 7} [lindex [fake_requests] 7]
            fake_send [words SELECT 2][words SET b 1][words REPLCONF GETACK *]
            wait_for {[lindex [fake_requests] end 2] > 7}
            on r select 2
            assert_equal 1 [on r get b]
            fake_send [words MULTI][words SET c 1]
            wait_for {[shows r dbsize] == 1}
            assert_equal {} [on r get c]
            # The next attempt asks for what was applied, in the database that was selected.
            set fake::answers [dict create PSYNC "+CONTINUE [string repeat b 40]\r\n[words SET d 1]"]
            close [lindex $fake::channels end]
            wait_for {[shows r get d] eq 1}
            set end [expr {7 + [string length [words SELECT 2][words SET b 1][words REPLCONF GETACK *]]}]
            assert {[list PSYNC [string repeat a 40] [expr {$end + 1}]] in [fake_requests]}
        }
    }
}

# Each: what the master says instead, and a part of the one line of the log about it.
with_group {r ours {.tls 0 repl-timeout 2}} {
    foreach {name answers line} [list \
        "refuses PING" {PING "-LOADING wait\r\n"} "reply to PING: '-LOADING wait'" \
        "is busy" {PING "-BUSY script\r\n"} "reply to PING: '-BUSY script'" \
        "wants a password" {PSYNC "-NOAUTH Authentication required.\r\n"} "refuses PSYNC: '-NOAUTH" \
        "is no master" {PSYNC "-NOMASTERLINK Can't SYNC\r\n"} "should later: '-NOMASTERLINK" \
        "knows no PSYNC" {PSYNC "-ERR unknown command 'PSYNC'\r\n"} "does not know PSYNC" \
        "says nothing" {PING {}} "nothing was received for 2 seconds" \
        "says garbage" [list PING "\x00\xff\x80garbage\r\n"] "reply to PING: '???garbage'" \
        "closes" {REPLCONF close} "ended before the reply to REPLCONF listening-port" \
        "sends a line of 1 MB" [list PSYNC +[string repeat x 1000000]] "reply is too long: '+xxxx" \
        "sends a long line that ends" [list PSYNC +[string repeat x 5000]\r\n] "reply is too long: '+xxxx" \
        "has an id of 39 digits" [list PSYNC "+FULLRESYNC [string repeat a 39] 1\r\n"] "PSYNC is damaged: '+FULLRES" \
        "has an id of 41 digits" [list PSYNC "+FULLRESYNC [string repeat a 41] 1\r\n"] "PSYNC is damaged: '+FULLRES" \
        "has an offset of -5" [list PSYNC [fullresync -5 {}]] "PSYNC is damaged: '+FULLRES" \
        "has no offset" [list PSYNC "+FULLRESYNC [string repeat a 40]\r\n"] "PSYNC is damaged: '+FULLRES" \
        "has an offset beyond all" [list PSYNC [fullresync 9223372036854775807 {}]] "PSYNC is damaged: '+FULLRES" \
        "continues what nobody has" [list PSYNC "+CONTINUE [string repeat a 40]\r\n"] "what was not asked for" \
        "sends a snapshot of no length" [list PSYNC [fullresync 1 "\$\r\n"]] "no snapshot begins with this: '\$'" \
        "sends a snapshot of length 0" [list PSYNC [fullresync 1 "\$0\r\n"]] "no snapshot begins with this: '\$0'" \
        "sends a short mark" [list PSYNC [fullresync 1 "\$EOF:abc\r\n"]] "no snapshot begins with this: '\$EOF:abc'" \
        "ends the sync" [list PSYNC [fullresync 1 "-ERR no fork\r\n"]] "the master ended the sync: '-ERR no fork'" \
        "promises too much" [list PSYNC [fullresync 1 "\$1000\r\n[snapshot {a 1}]"]] "nothing was received for 2" \
        "never sends its mark" [list PSYNC [fullresync 1 "\$EOF:[string repeat m 40]\r\n[snapshot {a 1}]"]] \
            "nothing was received for 2" \
    ] {
        test "a master that $name" {noconn} [string map [list %ANSWERS% [list $answers] %LINE% [list $line]] {
            on r replicaof no one
            on r flushall
            on r set mine 1
            set before [log_count r "Link to the master"]
            set port [fake_master %ANSWERS%]
            on r replicaof 127.0.0.1 $port
            wait_for {[logged r %LINE%]}
            wait_for {[fake_count] >= 2}
            on r replicaof no one
            assert {[log_count r "Link to the master"] - $before <= [fake_count]}
            assert_equal 1 [on r get mine]
            fake_close
        }]
    }
}

# The bytes, with some of them replaced from `offset` behind the text on.
proc damaged {bytes text offset instead} {
    set at [expr {[string first $text $bytes] + [string length $text] + $offset}]
    return [string replace $bytes $at [expr {$at + [string length $instead] - 1}] $instead]
}

proc saved_by name {
    on $name save
    return [file_bytes [member $name dir]/dump.rdb]
}

proc file_bytes path {
    set file [open $path rb]
    try {
        return [read $file]
    } finally {
        close $file
    }
}

# What a sync must leave as it is if it brings nothing.
proc state_of name {
    return [list [dataset $name] [replication $name master_replid] [replication $name master_repl_offset] \
        [on $name function list withcode] [on $name fcall_ro get 0] [file_bytes [member $name dir]/dump.rdb]]
}

foreach aof {no yes} {
    test_each aof "a damaged snapshot in a file leaves data, offset and files as they were; appendonly $aof" {noconn} {
        with_group [list m ours {.tls 0 rdbcompression no} plain ours {.tls 0 rdbcompression no rdbchecksum no} \
            r ours [list .tls 0 appendonly $aof]] {
            set library "redis.register_function{function_name='get', callback=function() return %s end, "
            append library "flags={'no-writes'}}"
            foreach name {m plain} {
                fill_everything $name
                on $name function flush
                on $name function load "#!lua name=both\n[format $library 1]"
                lappend datasets [dataset $name]
            }
            set good [saved_by m]
            set last [string index $good end]
            set unsummed [saved_by plain]
            assert_equal [string repeat \0 8] [string range $unsummed end-7 end]
            on m flushall
            on m set old 1
            on m select 3
            on m set other 1
            on m function flush
            on m function load "#!lua name=both\n[format $library 2]"
            on m function load "#!lua name=old\n[string map {'get' 'old'} [format $library 3]]"
            on m set behind 1
            follow r m
            wait_same m r
            on r save
            on r replicaof 127.0.0.1 [free_port]
            set before [state_of r]
            set counts [sync_counts m]
            set serial 0
            foreach {name bad reason} [list \
                "a byte within a value" [damaged $good s:long 100 \x01] "CRC error" \
                "a wrong checksum" [string range $good 0 end-1][format %c [expr {[scan $last %c] ^ 1}]] "CRC error" \
                "an unknown record" [damaged $good s:long -8 \xf0] "unknown record" \
                "no checksum, a value" [damaged $unsummed h:short 1 \xff\xff] "can't load" \
                "no checksum, cut" [string range $unsummed 0 end-300] "can't load" \
                "a library that cannot be loaded" [damaged $unsummed redis.register_ 0 X] "a library of functions"] {
                foreach frame {sized marked} {
                    set port [fake_master [dict create PSYNC [fullresync 1 [$frame $bad]]]]
                    set serial [log_count r $reason]
                    on r replicaof 127.0.0.1 $port
                    wait_for {[log_count r $reason] > $serial}
                    fake_close
                    assert_equal $before [state_of r] "$name, $frame"
                }
            }
            assert_equal {} [glob -nocomplain [member r dir]/dump.rdb.*]
            if {$aof} {
                on r debug loadaof
                assert_equal $before [state_of r]
            }
            on m set next 1
            follow r m
            wait_same m r
            assert_equal [lindex $counts 0] [lindex [sync_counts m] 0]
            foreach bytes [list $good $unsummed] whole $datasets {
                set port [fake_master [dict create PSYNC [fullresync 1 [sized $bytes]]]]
                set loads [log_count r "Done loading RDB"]
                on r replicaof 127.0.0.1 $port
                wait_for {[log_count r "Done loading RDB"] > $loads}
                wait_for {[link_is_up r]}
                assert_equal $whole [dataset r]
                assert_equal 1 [on r fcall get 0]
                assert_equal 1 [llength [on r function list]]
                fake_close
                assert_equal $bytes [file_bytes [member r dir]/dump.rdb]
            }
        }
    }
}

with_server {} {
    foreach load {disabled on-empty-db swapdb} {
        test "damaged snapshots, and then a good one; repl-diskless-load $load" {noconn} [string map "%LOAD% $load" {
            with_group {r ours {.tls 0 repl-diskless-load %LOAD%}} {
                set good [snapshot {a 1 b 2}]
                set serial 0
                foreach bad [list [string range $good 0 end-9] [string map {REDIS X} $good] [snapshot {a 1 a 1}] x] {
                    foreach frame {sized marked} {
                        set port [fake_master [dict create PSYNC [fullresync 1 [$frame $bad]]]]
                        on r replicaof 127.0.0.1 $port
                        wait_for {[log_count r "Link to the master"] > $serial}
                        set serial [log_count r "Link to the master"]
                        wait_for {![catch {on r replicaof no one}]} ;# another try may be loading
                    }
                }
                set port [fake_master [dict create PSYNC [fullresync 1 "\n\n[marked $good][words set c 3]"]]]
                on r replicaof 127.0.0.1 $port
                wait_for {[shows r mget a b c] eq {1 2 3}}
                fake_close
            }
        }]
    }

    test "a snapshot that we cannot read is not asked for again at once" {noconn} {
        with_group {r ours {.tls 0}} {
            set port [fake_master [dict create PSYNC [fullresync 1 [sized [string map {0009 0099} [snapshot {a 1}]]]]]]
            on r replicaof 127.0.0.1 $port
            wait_for {[logged r "can't load the master's data"]}
            pause 3000
            assert_equal 1 [log_count r "Connecting to MASTER"] ;# (others may use our port, too)
            fake_close
        }
    }

    test "a command of the stream that fails is logged, and the stream goes on" {noconn} {
        with_group {r ours {.tls 0}} {
            set port [fake_master [dict create PSYNC [fullresync 1 [sized [snapshot {a x}]]]]]
            on r replicaof 127.0.0.1 $port
            wait_for {[shows r get a] eq "x"}
            fake_send [words INCR a][words SET b 1]
            wait_for {[shows r get b] eq 1}
            assert {[logged r "== CRITICAL == This replica is sending an error to its master: '-ERR value is not"]}
            fake_send "SET c 1\r\n"
            wait_for {[logged r "the stream ends"] || [shows r get c] eq 1}
            fake_close
        }
    }

    test "propagation-error-behavior panic ends a replica on which clients cannot write" {noconn} {
        with_group {m ours {}} {
            on m set a 1
            foreach read_only {no yes} {
                set port [free_port]
                set id [process_start [list $::settings(server) --port $port --dir [fresh_dir] --save {} \
                    --propagation-error-behavior panic --replica-read-only $read_only \
                    --replicaof "127.0.0.1 [member m plain_port]"] [fresh_dir]/log]
                wait_for {![catch {set r [connect -port $port -tls 0]; $r get a} a] && $a eq 1}
                if {$read_only} {
                    catch {on m debug replicate lpush a x}
                    assert_equal 134 [process_crashed $id]
                    assert_match "*The master's command 'lpush' failed here*" [process_log $id]
                } else {
                    on m debug replicate lpush a x
                    on m set b 1
                    wait_for {[$r get b] eq 1}
                    assert_match "*== CRITICAL ==*'lpush'*" [process_log $id]
                    $r -close
                    assert_equal 0 [process_stop $id]
                }
            }
        }
    }

    test "a replica of itself" {noconn} {
        with_group {r ours {}} {
            on r set a 1
            on r replicaof 127.0.0.1 [member r port]
            wait_for {[log_count r "Link to the master"] >= 1}
            assert_equal 1 [on r get a]
            on r replicaof no one
            on r set b 1
        }
    }
}

with_server {} {
    test "a chain: ours, ours, redis-server, ours" {noconn} {
        with_group {a ours {} b ours {} c oracle {} d ours {}} {
            on a set x 1
            follow b a
            wait_for {[shows b get x] eq 1}
            follow c b
            wait_for {[shows c get x] eq 1}
            follow d c
            wait_for {[shows d get x] eq 1}
            on a select 7
            on a rpush l 1 2 3
            on a eval {redis.call('set', 'k', 1) redis.call('incr', 'k')} 0
            on a select 0
            on a set end 1
            foreach name {b c d} {
                wait_for {[shows $name get end] eq 1}
                assert_equal [dataset a] [dataset $name]
            }
            # The second takes over; those behind it need no full sync.
            on b replicaof no one
            on b set end 2
            follow a b
            foreach name {a c d} {
                wait_for {[shows $name get end] eq 2}
            }
            assert_equal [dataset b] [dataset a]
            assert_equal [dataset b] [dataset d]
            assert_equal 1 [log_count d "Full resync from master"]
            assert_equal 0 [log_count a "Full resync from master"]
            wait_for {[log_count a "Successful partial resynchronization"] == 1}
        }
    }

    test "a replica of its own replica, and a cycle of three" {noconn} {
        with_group {a ours {} b ours {} c ours {}} {
            on a set x 1
            follow b a
            wait_for {[shows b get x] eq 1}
            follow a b
            wait_for {[logged a "Connecting to MASTER"]}
            pause 1500 ;# what it is that they agree on is not promised
            on a replicaof no one
            on a set y 1
            wait_for {[shows b get y] eq 1}
            follow c b
            wait_for {[shows c get y] eq 1}
            follow a c
            pause 1500
            on a replicaof no one
            on a set z 1
            foreach name {b c} {
                wait_for {[shows $name get z] eq 1}
                assert_equal [dataset a] [dataset $name]
            }
        }
    }
}

with_server {} {
    foreach load {disabled swapdb} {
        test "links cut at every few bytes; repl-diskless-load $load" {noconn slow} [string map "%LOAD% $load" {
            with_group {m oracle {repl-diskless-sync no} r ours {repl-diskless-load %LOAD%}} {
                for {set i 0} {$i < 20} {incr i} {
                    on m set key:$i [string repeat $i 20]
                }
                set via [proxy_open m]
                set good 0
                set step [expr {$::settings(tls) ? 201 : 23}]
                for {set at 1} {$at < 60 * $step && !$good} {incr at $step} {
                    set before [log_count r "Link to the master"]
                    proxy $via at $at cut
                    follow r m $via
                    wait_for {[log_count r "Link to the master"] > $before || [shows r dbsize] == 20}
                    set good [expr {[log_count r "Link to the master"] == $before}]
                    wait_for {[shows r replicaof no one] eq "OK"}
                }
                assert $good
                follow r m
                on m set last 1
                wait_for {[shows r get last] eq 1}
                assert_equal [dataset m] [dataset r]
                assert_equal {} [glob -nocomplain -directory [member r dir] *temp* *.tmp*]
            }
        }]
    }

    test "a silent link is given up after repl-timeout, and continued" {noconn slow} {
        with_group {m oracle {repl-ping-replica-period 1} r ours {repl-timeout 3}} {
            follow r m
            on m set a 1
            wait_for {[shows r get a] eq 1}
            process_signal [member m process] STOP
            wait_for {[logged r "nothing was received for 3 seconds"]}
            process_signal [member m process] CONT
            on m set last 1
            wait_for {[shows r get last] eq 1}
            assert_equal 0 [lindex [sync_counts m] 2]
            assert_equal 1 [log_count r "Full resync from master"]
        }
    }
}
