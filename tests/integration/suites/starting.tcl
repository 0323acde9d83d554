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
    spit $folder/dump.rdb "VALKEY099\0\1a\1b\xff[string repeat \0 8]"
    assert_match "*it has version 99 of Valkey; *Valkey's 80*Load it with a server that supports this*" \
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

# The image of utils/docker installs these and nothing else.
test "the libraries that the server needs are in the packages of machines that only run it" {noconn keydb} {
    set root [file normalize [file join [file dirname [info script]] .. .. ..]]
    if {[auto_execok dpkg] eq {} || [auto_execok readelf] eq {}} {
        skip "there is no dpkg or no readelf"
    }
    set installed [exec [file join $root deps install.sh] --list apt run]
    lappend installed libc6 libgcc-s1 ;# part of each system
    set needed [regexp -all -inline {NEEDED[^\[]*\[(lib[^]]+)\]} [exec readelf -d $::settings(server)]]
    assert {[llength $needed] > 6}
    foreach {all library} $needed {
        if {[regexp {^lib(asan|tsan|ubsan)\.} $library]} {
            continue ;# of the build that is tested
        }
        set packages [lmap line [split [exec dpkg -S */$library] \n] {lindex [split $line :] 0}]
        assert {[lsearch -exact [lmap package $packages {expr {$package in $installed}}] 1] >= 0} \
            "$library is in $packages, which is not installed there"
    }
}
