# One server has the append only file: a second one that would write into the same folder is refused.

proc aof_lock_start {folder portName args} {
    upvar 1 $portName port
    set port [free_port]
    return [server_launch [list --port $port --dir $folder --save "" --appendonly yes {*}[thread_args] {*}$args]]
}

proc aof_lock_client {id port} {
    wait_for {![process_alive $id] || ![catch {set s [connect -port $port -tls 0]}]}
    assert {[process_alive $id]} [process_log $id]
    wait_for {[string match "*\nloading:0*" [$s info persistence]]}
    return $s
}

test "a second server is refused the files, at start and later, and is told who has them" {} {
    set folder [fresh_dir]
    set first [aof_lock_start $folder port]
    set s [aof_lock_client $first $port]
    $s set key value
    set second [aof_lock_start $folder other_port]
    assert_equal 1 [process_wait $second]
    set file $folder/appendonlydir/.appendonly.aof.lock
    set line "*in use by another server: process [process_pid $first] holds $file.*"
    assert_match "$line*The server does not start*" [process_log $second]

    set third [aof_lock_start $folder third_port --appendonly no]
    set t [aof_lock_client $third $third_port]
    assert_refused "ERR CONFIG SET failed (possibly related to argument 'appendonly') - Unable to turn on AOF. Check\
        server logs." $t config set appendonly yes
    assert_refused "ERR Can't execute an AOF background rewriting. Please check the server logs for more information." \
        $t bgrewriteaof
    assert_match $line [process_log $third]
    assert_equal {appendonly no} [$t config get appendonly]

    $s config set appendonly no ;# then somebody else may have them
    assert_equal OK [$t config set appendonly yes]
    wait_for {[string match "*\naof_rewrite_in_progress:0*" [$t info persistence]]}
    assert_refused "ERR CONFIG SET failed (possibly related to argument 'appendonly') - Unable to turn on AOF. Check\
        server logs." $s config set appendonly yes
    foreach client [list $s $t] {
        $client -close
    }
    assert_equal 0 [process_stop $first]
    assert_equal 0 [process_stop $third]
    assert {![file exists $folder/appendonlydir/.appendonly.aof.lock]}
}

test "files of another name in the same folder are another server's own" {} {
    set folder [fresh_dir]
    set first [aof_lock_start $folder port]
    set second [aof_lock_start $folder other_port --appendfilename other.aof]
    set s [aof_lock_client $first $port]
    set t [aof_lock_client $second $other_port]
    assert_equal {OK OK} [list [$s set key 1] [$t set key 2]]
    $s -close
    $t -close
    process_stop $first
    process_stop $second
}

test "the lock ends with a server that is killed, also while its child writes" {} {
    set folder [fresh_dir]
    set first [aof_lock_start $folder port --rdb-key-save-delay 100000 --enable-debug-command yes]
    set s [aof_lock_client $first $port]
    $s debug populate 1000
    $s bgrewriteaof
    process_signal $first KILL
    process_wait $first
    set second [aof_lock_start $folder port]
    set s [aof_lock_client $second $port]
    assert_equal 0 [$s exists key]
    $s -close
    assert_equal 0 [process_stop $second]
}

test "a server that is refused for other reasons leaves no lock behind" {} {
    set folder [fresh_dir]
    file mkdir $folder/appendonlydir
    spit $folder/appendonlydir/appendonly.aof.manifest "nonsense\n"
    set id [aof_lock_start $folder port]
    assert_equal 1 [process_wait $id]
    assert_equal {appendonly.aof.manifest} \
        [lmap path [glob -types {f} $folder/appendonlydir/*] {file tail $path}]
    assert_equal {} [glob -nocomplain -types {f hidden} $folder/appendonlydir/.*]
}
