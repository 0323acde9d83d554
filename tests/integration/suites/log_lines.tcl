# Lines of the log that tools wait for, in the words of Redis and KeyDB.

proc log_has {id args} {
    foreach line $args {
        assert {[wait_until {[string match "*$line\n*" [process_log $id]\n]} 10000]} $line
    }
}

test "what the log says from start to end" {keydb} {
    set dir [fresh_dir]
    set port [free_port]
    spit $dir/server.conf "port $port\ndir $dir\nsave 1 1\nloglevel verbose\nserver-threads 3\n"
    set id [server_launch [list $dir/server.conf]]
    log_has $id "# oO0OoO0OoO0Oo KeyDB is starting oO0OoO0OoO0Oo" "# KeyDB version=7.0.0, bits=*, commit=*, modified=*,\
        pid=*, just started" "# Configuration loaded" "# Server initialized" "* Thread 0 alive." "* Thread 1 alive." \
        "* Thread 2 alive." "* Ready to accept connections"
    set c [connect -port $port -tls 0]
    $c set k v
    log_has $id "- Accepted 127.0.0.1:*" "* 1 changes in 1 seconds. Saving..." \
        "* Background saving started by *" "* DB saved on disk" "* Background saving terminated with success"
    $c config rewrite
    $c config set appendonly yes
    log_has $id "# CONFIG REWRITE executed with success." \
        "* Creating AOF incr file temp-appendonly.aof.incr on background rewrite" \
        "* Background append only file rewriting started by *" \
        "* Successfully created the temporary AOF base file *" "* Background AOF rewrite terminated with success" \
        "* Successfully renamed the temporary AOF base file * into appendonly.aof.1.base.rdb" \
        "* Successfully renamed the temporary AOF incr file * into appendonly.aof.1.incr.aof" \
        "* Background AOF rewrite finished successfully"
    $c bgrewriteaof
    log_has $id "* Creating AOF incr file appendonly.aof.2.incr.aof on background rewrite" \
        "* Removing the history file appendonly.aof.1.base.rdb in the background" \
        "* Removing the history file appendonly.aof.1.incr.aof in the background"
    $c -close
    log_has $id "- Client closed connection id=* addr=127.0.0.1:*"
    process_stop $id
    log_has $id "# Received SIGTERM scheduling shutdown..." "# User requested shutdown..." \
        "* Saving the final RDB snapshot before exiting." "# KeyDB is now ready to exit, bye bye..."

    set id [server_launch [list $dir/server.conf --appendonly yes]]
    log_has $id "* DB loaded from base file appendonly.aof.2.base.rdb: * seconds" \
        "* DB loaded from append only file: * seconds" \
        "* Opening AOF incr file appendonly.aof.2.incr.aof on server start"
    process_stop $id

    set id [server_launch [list $dir/server.conf]]
    log_has $id "* Done loading RDB, keys loaded: 1, keys expired: 0." "* DB loaded from disk: * seconds"
    set second [server_launch [list --port $port]]
    assert_equal 1 [process_wait $second]
    log_has $second "# Warning: Could not create server TCP listening socket *:$port: bind: Address already in use" \
        "# Failed listening on port $port (TCP), aborting."
    process_stop $id
}

# Whoever looks why the server is not there reads the end of the log.
test "what keeps the server from starting is the last line" {keydb} {
    foreach {name options} {dump.rdb {} appendonly.aof {--appendonly yes}} {
        for {set i 0} {$i < 10} {incr i} {
            set dir [fresh_dir]
            spit $dir/$name "!!!"
            set id [server_launch [list --port [free_port] --dir $dir --server-threads 4 {*}$options]]
            assert_equal 1 [process_wait $id]
            set lines [split [string trim [process_log $id]] "\n"]
            assert_match "*$name*The server does not start*" [lindex $lines end]
        }
    }
}

with_server {} {
    test "the version is the one after KeyDB 6.3.4" {keydb} {
        assert_equal 7.0.0 [info_field keydb_version server]
        assert_match "KeyDB server v=7.0.0 *" [exec $::settings(server) --version]
    }
}
