# What a server says while it starts, and which files and options it takes.

proc starting_log {folder args} {
    set id [server_launch [list --port [free_port] --dir $folder --save "" {*}[thread_args] {*}$args]]
    assert_equal 1 [process_wait $id]
    return [process_log $id]
}

test "a server whose data cannot be loaded has never been ready" {keydb} {
    set folder [fresh_dir]
    spit $folder/dump.rdb "REDIS0010\0\1a\1b"
    assert {![string match "*Ready to accept connections*" [starting_log $folder]]}
    file mkdir $folder/appendonlydir
    spit $folder/appendonlydir/appendonly.aof.1.incr.aof "*1\r\n\$7\r\nNOTHING\r\n"
    spit $folder/appendonlydir/appendonly.aof.manifest "file appendonly.aof.1.incr.aof seq 1 type i\n"
    assert {![string match "*Ready to accept connections*" [starting_log $folder --appendonly yes]]}
}

test "it is ready when the data is there" {keydb} {
    set folder [fresh_dir]
    spit $folder/dump.rdb "REDIS0009\0\1a\1b\xff[string repeat \0 8]"
    set id [server_launch [list --port [free_port] --dir $folder --save "" {*}[thread_args]]]
    wait_for {[string match "*DB loaded from disk*Ready to accept connections*" [process_log $id]]}
    assert_equal 0 [process_stop $id]
}

test "a file of Valkey is told from one that is none" {keydb} {
    set folder [fresh_dir]
    spit $folder/dump.rdb "VALKEY080\0\1a\1b\xff[string repeat \0 8]"
    assert_match "*it is an RDB file of Valkey 9 or later (VALKEY080)*Load it with a server that supports this*" \
        [starting_log $folder]
}

test "an option of later patches of Redis starts the server" {} {
    set port [free_port]
    set file [spit [fresh_dir]/server.conf "port $port\nlua-enable-deprecated-api no\n"]
    set id [server_launch [list $file {*}[thread_args]]]
    wait_for {![process_alive $id] || ![catch {set s [connect -port $port -tls 0]}]}
    assert {[process_alive $id]} [process_log $id]
    $s -close
    assert_equal 0 [process_stop $id]
}

test "the tools for files tell their version" {keydb} {
    foreach tool {keydb-check-rdb keydb-check-aof} {
        assert_match "$tool *.*.*" [exec [file dirname $::settings(server)]/$tool --version]
    }
}
