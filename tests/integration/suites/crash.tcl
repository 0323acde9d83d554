# A crash report takes no lock and no memory: it is whole wherever the thread has failed.

proc crash_server {args} {
    set port [free_port]
    set id [server_launch [list --port $port --save "" --enable-debug-command yes --crash-memcheck-enabled no \
        --server-threads 4 --min-clients-per-thread 1 {*}$args]]
    wait_until {![process_alive $id] || ![catch {[connect -port $port -tls 0] -typed ping}]} 15000
    if {![process_alive $id]} {
        fail "the server ended:\n[process_log $id]"
    }
    return [list $id $port]
}

proc expect_whole_report {words} {
    lassign [crash_server --databases 4] id port
    for {set i 0} {$i < 6} {incr i} {
        lappend others [connect -port $port -tls 0]
        [lindex $others end] set key:$i value
    }
    set c [connect -port $port -tls 0]
    $c select 3
    $c set key value ex 1000
    $c client setname who-asked
    assert_error "*closed*" {$c {*}$words}
    assert_equal 139 [process_crashed $id]
    set log [process_log $id]
    foreach part {"crashed by signal: 11" "STACK TRACE" "(debug_segfault+0x" "worker-1" "worker-2" "worker-3"
            "background" "REGISTERS" "CURRENT CLIENT INFO" "argv?0?: 'debug'" " name=who-asked " " user=default "
            " cmd=debug " "FAST MEMORY TEST" "INFO OUTPUT" "keydb_version:" "used_memory:" "connected_clients:"
            "# Server*# Clients*# Memory*# Persistence*# Stats*# CPU*# Keyspace*# KeyDB*worker1:clients="
            "maxclients:10000" "aof_enabled:0" "evicted_clients:0" "instantaneous_lock_contention:0"
            "db0:keys=6,expires=0" "db3:keys=1,expires=1" "Memory that this report has allocated: 0 bytes"
            "=== KEYDB BUG REPORT END. Make sure to include from START to END. ==="} {
        assert_match "*$part*" $log
    }
    foreach bad {"takes too long" "failed itself"} {
        assert {![string match "*$bad*" $log]}
    }
}

test "a crash report takes no memory" {noconn keydb} {
    expect_whole_report {debug segfault}
}

test "a crash report is whole if the roster is locked" {noconn keydb} {
    expect_whole_report {debug segfault roster}
}

test "a crash report is whole if a registry is locked" {noconn keydb} {
    expect_whole_report {debug segfault registry}
}

test "a crash report is whole if the allocator is at work" {noconn keydb} {
    expect_whole_report {debug segfault allocator}
}

test "long names and many words do not break the report" {noconn keydb} {
    lassign [crash_server --hide-user-data-from-log no] id port
    set c [connect -port $port -tls 0]
    $c client setname [string repeat n 100000]
    assert_error "*closed*" {$c debug segfault {*}[lrepeat 1000 [string repeat w 1000]]}
    assert_equal 139 [process_crashed $id]
    assert_match "*argc: 1002*argv?31?: 'www*...* name=nnnn*keydb_version:*has allocated: 0 bytes*REPORT END*" \
        [process_log $id]
}
