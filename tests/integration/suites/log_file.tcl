# The file of the log is kept open, and opened again when its name comes to mean another one.

# A server that logs into a file of its own folder; the file and a connection.
proc logging {args} {
    set port [free_port]
    set dir [fresh_dir]
    set id [server_launch [list --port $port --save "" --dir $dir --logfile $dir/file.log --enable-debug-command yes \
        --crash-memcheck-enabled no {*}[thread_args] {*}$args]]
    wait_for {[file exists $dir/file.log] && [string match "*Ready to accept connections*" [slurp $dir/file.log]]}
    return [list $id $dir/file.log [connect -port $port -tls 0]]
}

# Where the descriptors of a process lead, of those that the pattern fits.
proc open_files {id pattern} {
    set found {}
    foreach link [glob -nocomplain /proc/[process_pid $id]/fd/*] {
        if {![catch {file readlink $link} target] && [string match $pattern $target]} {
            lappend found $target
        }
    }
    return [lsort $found]
}

test "the log's file is kept open, once" {noconn keydb} {
    lassign [logging] id file c
    assert_equal [list $file] [open_files $id $file*]
    $c debug log hello
    wait_for {[string match "*hello*" [slurp $file]]}
    assert_equal [list $file] [open_files $id $file*]
}

# As logrotate does without copytruncate: nothing but the name changes.
test "a log that was moved goes on in a new file" {noconn keydb} {
    lassign [logging] id file c
    for {set i 0} {$i < 3} {incr i} {
        file rename $file $file.$i
        wait_for {[open_files $id $file*] eq [list $file]}
        $c debug log "line $i"
        assert_match "*line $i*" [slurp $file]
        assert {![string match "*line $i*" [slurp $file.$i]]}
    }
}

test "a log that was removed, or replaced, goes on in what has its name" {noconn keydb} {
    lassign [logging] id file c
    file delete $file
    wait_for {[file exists $file]}
    $c debug log one
    assert_match "*one*" [slurp $file]
    file delete $file
    spit $file "begin\n"
    $c debug log two
    wait_for {[open_files $id $file*] eq [list $file]}
    $c debug log three
    assert_match "begin\n*three*" [slurp $file]
}

# A server that only looked at its timer would take a second for each.
test "SIGHUP opens the log again, at once, and ends nobody" {noconn keydb} {
    lassign [logging] id file c
    set begin [clock milliseconds]
    for {set i 0} {$i < 20} {incr i} {
        file rename $file $file.$i
        process_signal $id HUP
        wait_for {[file exists $file]}
    }
    assert {[clock milliseconds] - $begin < 10000}
    $c debug log hello
    assert_match "*hello*" [slurp $file]
    assert_equal [list $file] [open_files $id $file*]
    assert_equal PONG [$c ping]
    assert_equal 0 [process_stop $id]
}

test "threads that log lose no line when the file moves" {noconn keydb} {
    lassign [logging --server-threads 4 --min-clients-per-thread 1] id file c
    set port [lindex [$c config get port] 1]
    set clients {}
    for {set i 0} {$i < 4} {incr i} {
        lappend clients [connect -port $port -tls 0]
    }
    for {set round 0} {$round < 20} {incr round} {
        foreach client $clients {
            for {set i 0} {$i < 50} {incr i} {
                $client -send debug log "row $round $i"
            }
        }
        file rename $file $file.$round
        process_signal $id HUP
        foreach client $clients {
            for {set i 0} {$i < 50} {incr i} {
                assert_equal OK [$client -read]
            }
        }
        wait_for {[file exists $file]}
    }
    set rows 0
    foreach name [glob $file*] {
        incr rows [regexp -all {DEBUG LOG: row} [slurp $name]]
    }
    assert_equal [expr {4 * 20 * 50}] $rows
}

test "a child logs into the file that has the name by then" {noconn keydb} {
    lassign [logging --rdb-key-save-delay 10000 --snapshot-method fork] id file c
    $c debug populate 100
    $c bgsave
    wait_for {![catch {exec pgrep -P [process_pid $id]} child]}
    exec kill -HUP $child
    file rename $file $file.0
    wait_for {[string match "*rdb_bgsave_in_progress:0*" [$c info persistence]]}
    assert_match "*:C *DB saved on disk*" [slurp $file]
}

test "a crash is reported where lines go" {noconn keydb} {
    lassign [logging] id file c
    file rename $file $file.0
    wait_for {[file exists $file]}
    assert_error "*closed*" {$c debug segfault}
    assert_equal 139 [process_crashed $id]
    assert_match "*BUG REPORT START*STACK TRACE*INFO OUTPUT*BUG REPORT END*" [slurp $file]
    assert {![string match "*BUG REPORT*" [slurp $file.0]]}
}
