# A small limit of open files: what is left for clients, and what the log says of it.

# A server under a hard limit of that many open files.
proc launch_with {limit args} {
    set port [free_port]
    set dir [fresh_dir]
    set id [process_start [list sh -c "cd $dir && ulimit -n $limit && exec \"\$@\"" sh [file normalize \
        $::settings(server)] --port $port --save "" {*}[thread_args] {*}$args] $dir/log]
    lappend ::test_processes $id
    return [list $id $port]
}

proc connect_when_up {id port} {
    wait_for {[string match "*Ready to accept connections*" [process_log $id]]}
    return [connect -port $port -tls 0]
}

proc info_of {c field} {
    regexp "$field:(\[^\r\]*)" [$c info persistence] all value
    return $value
}

test "256 open files leave about as many clients as with Redis" {} {
    lassign [launch_with 256 --appendonly yes] id port
    set c [connect_when_up $id $port]
    set most [lindex [$c config get maxclients] 1]
    assert_range $most 216 224
    set clients [list $c]
    while {[llength $clients] < $most} {
        set more [connect -port $port -tls 0]
        assert_equal PONG [$more ping]
        lappend clients $more
    }
    set late [connect -port $port -tls 0]
    assert_equal "-ERR max number of clients reached" [$late -line]
    assert_match "*rewriting started*" [$c bgrewriteaof] ;# its files can still be opened, so can the pipes of a child
    wait_for {![info_of $c aof_rewrite_in_progress]}
    assert_equal OK [$c set k v]
    $c bgsave
    wait_for {![info_of $c rdb_bgsave_in_progress]}
    foreach field {aof_last_bgrewrite_status rdb_last_bgsave_status aof_last_write_status} {
        assert_equal ok [info_of $c $field]
    }
    assert_match "*# You requested maxclients of 10000 requiring at least * max file descriptors.*# Server can't set\
        maximum open files to * because of OS error: *# Current maximum open files is 256. maxclients has been reduced\
        to $most to compensate for low ulimit. If you need higher maxclients increase 'ulimit -n'.*" [process_log $id]
}

test "CONFIG SET maxclients says how many there can be" {} {
    lassign [launch_with 256] id port
    set c [connect_when_up $id $port]
    set most [lindex [$c config get maxclients] 1]
    assert_error "*The operating system is not able to handle the specified number of clients, try with $most*" {
        $c config set maxclients 5000
    }
    assert_equal [list maxclients $most] [$c config get maxclients]
    assert_equal OK [$c config set maxclients 100]
    assert_equal OK [$c config set maxclients $most]
}

test "too few open files to serve anybody end the start" {} {
    lassign [launch_with 20] id port
    assert_equal 1 [process_wait $id]
    assert_match "*Your current 'ulimit -n' of 20 is not enough for the server to start. Please increase your open file\
        limit to at least *. Exiting.*" [process_log $id]
}
