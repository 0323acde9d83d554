# A replica takes all of its master's data: what clients see meanwhile, the old data, the append-only file, and what RDB
# files say of the history.

proc persistence {name field} {
    return [section_field $name persistence $field]
}

# How far the replica is with the snapshot: loading, async_loading.
proc is_loading name {
    return [expr {[persistence $name loading] == 1}]
}

# How often its log tells that the connection to its master was lost.
proc times_lost name {
    return [regexp -all {Link to the master[^\n]*: Connection with master lost} [slurp [member $name log]]]
}

proc is_loading_aside name {
    return [expr {[persistence $name async_loading] == 1}]
}

# The masters' data: 2,000 keys, a library, and a list for those who wait.
proc fill_master name {
    on $name debug populate 2000 key 100
    on $name function load "#!lua name=ofmaster\nredis.register_function{function_name='of_master',\
        callback=function() return 1 end, flags={'no-writes'}}"
    on $name xadd stream 1-1 field value
    on $name set counter 1
}

proc fill_replica name {
    on $name set old 1
    on $name select 3
    on $name set old 3
    on $name select 0
    on $name function load "#!lua name=ofreplica\nredis.register_function{function_name='of_replica',\
        callback=function() return 2 end, flags={'no-writes'}}"
}

# A master whose snapshots come slowly, and a replica with data of its own.
proc with_slow_sync {options body} {
    uplevel 1 [list with_group [list m ours {} r ours [dict merge {key-load-delay 500} $options]] "
        fill_master m
        fill_replica r
        $body
    "]
}

with_server {} {
    foreach {title options} {
        "from a file" {}
        "from the link" {repl-diskless-load on-empty-db}
        "from the link, and always" {repl-diskless-load flushdb}
    } {
        test "while a replica loads its master's data $title, it has none" {noconn} [string map [list %O $options] {
            with_slow_sync {%O} {
                if {"on-empty-db" in {%O}} {
                    on r flushall
                }
                set watcher [member_connect r]
                $watcher watch counter
                $watcher multi
                $watcher get counter
                follow r m
                wait_for {[is_loading r]}
                assert_error "LOADING *" {on r get old}
                assert_error "LOADING *" {on r fcall_ro of_replica 0}
                assert_error "LOADING *" {on r save}
                assert_error "LOADING *" {on r bgrewriteaof}
                assert_error "LOADING *" {on r replicaof no one}
                on r config set hz 20
                assert_equal 0 [persistence r async_loading]
                assert {[persistence r loading_start_time] > 0}
                on r config set key-load-delay 0
                wait_same m r
                assert_equal 0 [on r exists old]
                on r select 3
                assert_equal 0 [on r dbsize]
                on r select 0
                assert_equal 1 [on r fcall_ro of_master 0]
                assert_equal 1 [llength [on r function list]]
                assert_equal {} [$watcher exec]
                assert_equal 0 [persistence r loading]
                assert_equal [expr {[dict size {%O}] != 0}] \
                    [string match "*streamed RDB*to parser*" [slurp [member r log]]]
            }
        }]
    }

    test "with repl-diskless-load swapdb the old data is served meanwhile" {noconn} {
        with_slow_sync {repl-diskless-load swapdb} {
            set watcher [member_connect r]
            $watcher watch counter old
            $watcher multi
            $watcher get counter
            set other [member_connect r]
            $other watch nowhere
            $other multi
            $other get nowhere
            set tracker [member_connect r]
            $tracker hello 3
            $tracker client tracking on
            assert_equal 1 [$tracker get old]
            follow r m
            wait_for {[is_loading_aside r]}
            assert_equal 1 [on r get old]
            assert_equal 2 [on r fcall_ro of_replica 0]
            assert_equal 0 [persistence r loading]
            assert_error "LOADING *" {on r save}
            assert_error "LOADING *" {on r bgrewriteaof}
            assert_error "LOADING *" {on r replicaof no one}
            on r config set key-load-delay 0
            wait_same m r
            assert_equal 0 [on r exists old]
            assert_equal 1 [on r fcall_ro of_master 0]
            assert_equal 1 [llength [on r function list]]
            assert_equal {} [$watcher exec]
            assert_equal {{}} [$other exec]
            $tracker ping
            assert_equal null [lindex [$tracker -pushes] 0 1 1] ;# all keys
            assert_equal 0 [persistence r async_loading]
            on r select 3
            assert_equal 0 [on r dbsize]
        }
    }

    test "if loading beside the old data fails, the old data stays" {noconn} {
        with_slow_sync {repl-diskless-load swapdb} {
            set via [proxy_open m]
            proxy $via at 20000 down
            set lost [times_lost r]
            follow r m $via
            wait_for {[times_lost r] > $lost && ![is_loading_aside r]}
            assert_equal 1 [on r get old]
            assert_equal 2 [on r fcall_ro of_replica 0]
            on r config set key-load-delay 0
            proxy $via up
            wait_same m r
            assert_equal 0 [on r exists old]
        }
    }

    test "clients that wait for a stream are served from what was loaded" {noconn} {
        with_group {m ours {} r ours {}} {
            fill_master m
            follow r m
            wait_same m r
            set waits [member_connect r]
            $waits -send xread block 0 streams stream 1-1
            wait_for {[section_field r clients blocked_clients] == 1}
            # All of the data comes again, with one entry more.
            member_kill m
            member_start m
            fill_master m
            on m xadd stream 2-1 field second
            wait_same m r
            assert_equal {{stream {{2-1 {field second}}}}} [$waits -read]
        }
    }

    test "a server that loads its master's data can be stopped" {noconn} {
        foreach mode {disabled swapdb} {
            with_slow_sync [list repl-diskless-load $mode] {
                follow r m
                wait_for {[is_loading r] || [is_loading_aside r]}
                assert_equal 0 [member_kill r TERM]
                member_start r
            }
        }
    }

    foreach {title end} {
        "complete" {}
        "given up" {
            regexp {rewriting started by pid (\d+)} [slurp [member r log]] all child
            exec kill -KILL $child
        }
    } {
        test "SIGTERM while a new base is written: the server stops when that is $title" {noconn} [string map \
            [list %T $title %E $end] {
            with_group {m ours {} r ours {appendonly yes rdb-key-save-delay 1500 snapshot-method fork}} {
                fill_master m
                on m set later 1
                follow r m
                wait_same m r
                set before [dataset m]
                wait_for {[persistence r aof_rewrite_in_progress] == 1}
                exec kill -TERM [member r pid]
                wait_for {[string match "*Writing initial AOF: the server stops when*" [slurp [member r log]]]}
                assert_equal PONG [on r ping]
                assert_error "ERR Errors trying to SHUTDOWN*" {on r shutdown nosave}
                %E
                wait_for {![process_alive [member r process]]}
                assert_equal 0 [process_wait [member r process] 1000]
                member_start r {replicaof {} rdb-key-save-delay 0}
                assert_equal [expr {"%T" eq "complete" ? $before : {{} 0000000000000000000000000000000000000000}}] \
                    [dataset r]
            }
        }]
    }

    test "SIGTERM is kept if the first base of the AOF begins while the server waits for replicas" {noconn} {
        with_group {m ours {shutdown-timeout 1 rdb-key-save-delay 1500} r ours {}} {
            fill_master m
            follow r m
            wait_same m r
            exec kill -STOP [member r pid]
            on m set later 1
            set before [dataset m]
            exec kill -TERM [member m pid]
            wait_for {[string match "*Waiting for replicas before*" [slurp [member m log]]]}
            on m config set appendonly yes
            wait_for {[string match "*can't exit*" [slurp [member m log]]]}
            exec kill -CONT [member r pid]
            wait_for {![process_alive [member m process]]}
            assert_equal 0 [process_wait [member m process] 1000]
            member_start m {appendonly yes}
            assert_equal $before [dataset m]
        }
    }

    # The member that fails, the fault, its options, what its log says of it once.
    foreach {title name fault options line} {
        "the master cannot fork for a sync" m fork:0 {snapshot-method fork}
            "Full sync with replicas failed: fork: Resource"
        "the replica cannot fork for the base of its file" r fork:0 {appendonly yes snapshot-method fork}
            "Can't rewrite append only file in background: fork"
        "there is no space for the snapshot" r write:0:torn {} "Can't write the snapshot: No space left on device"
    } {
        test "one sync fails, the next one does not: $title" {noconn} [string map \
            [list %NAME% $name %FAULT% $fault %OPTIONS% $options %LINE% $line] {
            with_group {m ours {} r ours {}} {
                member_kill %NAME%
                with_fault %FAULT% {
                    member_start %NAME% {%OPTIONS%}
                }
                fill_master m
                fill_replica r
                follow r m
                wait_same m r
                wait_for {[string match "*fault: %FAULT%*" [slurp [member %NAME% log]]]}
                assert_equal 1 [regexp -all "%LINE%" [slurp [member %NAME% log]]]
                assert_equal 0 [on r exists old]
                if {"%NAME%" eq "r" && "%OPTIONS%" ne {}} {
                    wait_for {[string match "*rewrite finished successfully*" [slurp [member r log]]]} 60000
                    set before [dataset r]
                    member_kill r KILL
                    member_start r {replicaof {}}
                    assert_equal $before [dataset r]
                }
            }
        }]
    }

    foreach {load old} {on-empty-db {} swapdb 1} {
        test "a snapshot that is cut within leaves none of it; repl-diskless-load $load" {noconn} [string map \
            [list %LOAD% $load %OLD% $old] {
            with_slow_sync {repl-diskless-load %LOAD% key-load-delay 50} {
                if {"%OLD%" eq {}} {
                    on r flushall
                    on r function flush
                }
                set empty [dataset r]
                set via [proxy_open m]
                proxy $via at 20000 down
                set lost [times_lost r]
                follow r m $via
                wait_for {[times_lost r] > $lost && ![is_loading r] && ![is_loading_aside r]}
                assert_equal $empty [dataset r]
                on r config set key-load-delay 0
                proxy $via up
                wait_same m r
                assert_equal 0 [on r exists old]
            }
        }]
    }

    test "behind a sync the append-only file has the new data" {noconn} {
        with_group {m ours {} r ours {appendonly yes}} {
            fill_master m
            fill_replica r
            follow r m
            wait_same m r
            wait_for {[persistence r aof_rewrite_scheduled] == 0 && [persistence r aof_rewrite_in_progress] == 0}
            on m set later 1
            on m select 5
            on m set later 5
            on m select 0
            wait_same m r
            set before [dataset r]
            member_kill r
            on m debug sleep 0
            member_start r {replicaof {}}
            assert_equal $before [dataset r]
            assert_equal 0 [on r exists old]
            assert_equal 1 [on r fcall_ro of_master 0]
        }
    }

    test "until a new base is in place the append-only file has the old data, whole" {noconn} {
        with_group {m ours {} r ours {appendonly yes rdb-key-save-delay 2000}} {
            fill_master m
            fill_replica r
            follow r m
            wait_same m r
            on m set later 1
            wait_same m r
            wait_for {[persistence r aof_rewrite_in_progress] == 1}
            member_kill r
            member_start r {replicaof {} rdb-key-save-delay 0}
            assert_equal 1 [on r get old]
            assert_equal 1 [on r dbsize]
            assert_equal 2 [on r fcall_ro of_replica 0]
            on r select 3
            assert_equal 3 [on r get old]
        }
    }

    foreach {master replica} {ours ours ours oracle} {
        set title "a master that restarts from its RDB file goes on with its replica ($replica)"
        test $title {noconn} [string map [list %M $master %R $replica] {
            with_group {m %M {} r %R {}} {
                fill_master m
                on m select 2
                on m set two 2 px 86400000
                follow r m
                wait_same m r
                on m set due 1 px 100
                on m save
                set id [replication m master_replid]
                wait_for {[replication r master_repl_offset] == [replication m master_repl_offset]}
                assert_equal 0 [catch {member_kill m KILL}]
                member_start m
                assert {[replication m master_replid] ne $id}
                assert_equal $id [replication m master_replid2]
                wait_same m r
                on m set after 1
                wait_same m r
                assert_equal {0 1 0} [sync_counts m]
                wait_for {[on r exists due] == 0}
                wait_same m r
            }
        }]
    }

    test "replicas hear of what had expired when their master was saved" {noconn} {
        with_group {m ours {} r ours {}} {
            follow r m
            wait_same m r
            on m debug set-active-expire 0
            on m set stays 1
            on m hset hash f 1 g 1
            on m hpexpire hash 1 fields 1 f
            on m set gone 1 px 1
            wait_for {[on r dbsize] == 3 && [on r exists gone] == 0 && [on r hlen hash] == 1}
            on m save
            assert_equal 0 [catch {member_kill m KILL}]
            member_start m
            wait_same m r
            wait_for {[on r dbsize] == 2}
            assert_equal {g 1} [on r hgetall hash]
            assert_equal 1 [persistence m rdb_last_load_keys_expired]
            assert_equal {0 1 0} [sync_counts m]
        }
    }

    foreach {master replica} {ours ours oracle ours} {
        set title "a replica that restarts from its RDB file goes on with its master ($master)"
        test $title {noconn} [string map [list %M $master %R $replica] {
            with_group {m %M {} r %R {}} {
                on m debug populate 100 key 10
                follow r m
                wait_same m r
                on m select 4
                on m set four 4
                wait_same m r
                on r save
                set counts [sync_counts m]
                member_kill r
                on m set four again
                member_start r [list replicaof "127.0.0.1 [member m port]"]
                wait_same m r
                assert_equal [list [lindex $counts 0] 1] [lrange [sync_counts m] 0 1]
                on m set more 1
                wait_same m r
            }
        }]
    }

    test "a replica that starts keeps keys past their deadlines, until its master says so" {noconn} {
        with_group {m ours {} r ours {}} {
            on m set stays 1
            on m set due 1 px 300
            follow r m
            wait_same m r
            on r save
            member_kill r
            wait_for {[on m exists due] == 0}
            set via [proxy_open m]
            proxy $via down
            member_start r [list replicaof "127.0.0.1 [proxy_port $via]"]
            assert_equal 0 [on r exists due]
            assert_equal 2 [on r dbsize]
            proxy $via up
            wait_same m r
            assert_equal 1 [on r dbsize]
        }
    }

    test "a server without replicas saves no history" {noconn} {
        with_group {m ours {appendonly yes} r ours {}} {
            on m set a 1
            on m save
            assert {[string first repl-id [slurp [member m dir]/dump.rdb]] < 0}
            follow r m
            wait_same m r
            on m save
            assert {[string first repl-id [slurp [member m dir]/dump.rdb]] > 0}
            on m bgrewriteaof
            wait_for {[persistence m aof_rewrite_in_progress] == 0}
            assert_equal {} [lmap base [glob [member m dir]/appendonlydir/*.base.rdb] {
                expr {[string first repl-id [slurp $base]] < 0 ? [continue] : $base}
            }]
        }
    }
}
