# What was acknowledged survives the death of the process, under every policy: also what the writer of the append only
# file has not got to. DEBUG AOF-FLUSH-SLEEP keeps it from writing, then the server is killed.

set never 60000000

proc tail_folder {} {
    set folder [fresh_dir]
    file mkdir $folder/appendonlydir
    return $folder
}

# Starts a server in the folder, with its data loaded: `s` is a client, `id` the process.
proc tail_start {folder args} {
    upvar 1 s s id id port port
    set port [free_port]
    set id [server_launch [list --port $port --dir $folder --save "" --appendonly yes --enable-debug-command yes \
        --auto-aof-rewrite-percentage 0 {*}[thread_args] --min-clients-per-thread 1 {*}$args]]
    if {![wait_until {![process_alive $id] || ![catch {set s [connect -port $port -tls 0]}]} 20000] ||
            ![process_alive $id]} {
        fail "the server did not start:\n[process_log $id]"
    }
    wait_until {[string match "*\nloading:0*" [$s info persistence]]} 20000
}

proc tail_kill id {
    process_signal $id KILL
    process_wait $id
}

proc tail_path folder {
    return $folder/appendonlydir/appendonly.aof.tail
}

proc tail_increment {folder {number 1}} {
    return $folder/appendonlydir/appendonly.aof.$number.incr.aof
}

# Some of everything, in another order than that of the keys; all of it is acknowledged.
proc tail_write {s {count 50}} {
    for {set i 1} {$i <= $count} {incr i} {
        $s -send incr counter
        $s -send rpush list $i
        $s -send set key:$i [string repeat v [expr {$i * 7}]]
        $s -send multi
        $s -send set pair:a $i
        $s -send select 3
        $s -send incr other
        $s -send select 0
        $s -send set pair:b $i
        $s -send exec
        $s -send eval {redis.call('append', KEYS[1], 'x') return redis.call('incr', KEYS[2])} 2 script:a script:b
        $s -send publish channel message
        $s -send spop list:[expr {$i % 3}]
    }
    for {set i 0} {$i < $count * 13} {incr i} {
        $s -read
    }
}

proc tail_check {s count} {
    assert_equal [list $count $count] [list [$s get counter] [$s llen list]]
    assert_equal $count [$s lindex list -1]
    assert_equal [list $count $count] [$s mget pair:a pair:b]
    assert_equal [list $count $count] [list [$s strlen script:a] [$s get script:b]]
    assert_equal [string repeat v [expr {$count * 7}]] [$s get key:$count]
    $s select 3
    assert_equal $count [$s get other]
    $s select 0
}

foreach policy {everysec no} {
    test "what was acknowledged survives kill -9: appendfsync $policy" {} [string map [list POLICY $policy] {
        set folder [tail_folder]
        tail_start $folder --appendfsync POLICY
        $s debug aof-flush-sleep $::never
        tail_write $s
        assert_equal 0 [file size [tail_increment $folder]]
        tail_kill $id
        foreach round {1 2} { ;# and is not there twice
            tail_start $folder --appendfsync POLICY
            tail_check $s 50
            tail_kill $id
        }
        tail_start $folder --appendfsync POLICY
        $s debug aof-flush-sleep $::never
        tail_write $s 20
        tail_kill $id
        tail_start $folder --appendfsync POLICY
        assert_equal {70 70 20} [list [$s get counter] [$s llen list] [$s get pair:a]]
        process_stop $id
        assert_equal 0 [file exists [tail_path $folder]]
    }]
}

test "part of it is written: neither lost nor there twice" {} {
    set folder [tail_folder]
    tail_start $folder
    tail_write $s 30
    wait_for {[regexp -all script:b [slurp [tail_increment $folder]]] == 30}
    $s debug aof-flush-sleep $::never
    for {set i 31} {$i <= 5000} {incr i} {
        $s -send incr counter
    }
    for {set i 31} {$i <= 5000} {incr i} {
        $s -read
    }
    tail_kill $id
    # As if the process had been killed within a write.
    set text [request incr counter]
    foreach {bytes} {0 1 22 23 1000} {
        set copy [fresh_dir]
        file copy $folder/appendonlydir $copy/appendonlydir
        set file [open [tail_increment $copy] ab]
        puts -nonewline $file [string range [string repeat $text 100] 0 [expr {$bytes - 1}]]
        close $file
        tail_start $copy
        assert_equal {5000 30} [list [$s get counter] [$s llen list]] "$bytes bytes more in the file"
        process_stop $id
    }
    # Something else is there: the file is right.
    set file [open [tail_increment $folder] ab]
    puts -nonewline $file [request set counter other]
    close $file
    tail_start $folder
    assert_equal other [$s get counter]
    assert_match "*tail* is ignored: the file has something else there*" [process_log $id]
    process_stop $id
}

test "large values: what is not in the tail is written before it is acknowledged" {} {
    set folder [tail_folder]
    tail_start $folder
    $s debug aof-flush-sleep 100000
    foreach size {40000 300000 3000000} {
        assert_equal OK [$s set big:$size [string repeat b $size]]
        if {$size > 262144} {
            assert {[file size [tail_increment $folder]] >= $size}
        }
        $s incr counter
    }
    # One that is in neither: nobody hears of it before it is in the file.
    set other [connect -port $port -tls 0]
    $s debug aof-flush-sleep 500000
    $s -send set big:again [string repeat c 400000]
    wait_until {[$other exists big:again] == 1} 20000
    assert {[file size [tail_increment $folder]] >= 400000 + 3340000}
    assert_equal OK [$s -read]
    $s debug aof-flush-sleep $::never
    $s incr counter
    tail_kill $id
    tail_start $folder
    foreach size {40000 300000 3000000} {
        assert_equal $size [$s strlen big:$size]
    }
    assert_equal {400000 4} [list [$s strlen big:again] [$s get counter]]
    process_stop $id
}

test "many small writes, more than the tail has at first" {} {
    set folder [tail_folder]
    tail_start $folder
    $s debug aof-flush-sleep 50000
    set value [string repeat v 1000]
    for {set round 0} {$round < 10} {incr round} {
        for {set i 0} {$i < 1000} {incr i} {
            $s -send set key:$round:$i $value
        }
        for {set i 0} {$i < 1000} {incr i} {
            $s -read
        }
    }
    tail_kill $id
    tail_start $folder
    assert_equal 10000 [$s dbsize]
    process_stop $id
}

test "a rewrite, and what comes after it" {} {
    set folder [tail_folder]
    tail_start $folder
    tail_write $s 10
    $s bgrewriteaof
    wait_until {[string match "*aof_rewrite_in_progress:0*" [$s info persistence]]} 20000
    $s debug aof-flush-sleep $::never
    tail_write $s 5
    tail_kill $id
    # As if it had been killed when the next increment had just been begun.
    set copy [fresh_dir]
    file copy $folder/appendonlydir $copy/appendonlydir
    set manifest [slurp $copy/appendonlydir/appendonly.aof.manifest]
    spit $copy/appendonlydir/appendonly.aof.manifest "${manifest}file appendonly.aof.3.incr.aof seq 3 type i\n"
    spit [tail_increment $copy 3] ""
    foreach where [list $folder $copy] {
        tail_start $where
        assert_equal {15 15} [list [$s get counter] [$s llen list]]
        process_stop $id
    }
}

test "switched on and off" {} {
    set folder [tail_folder]
    tail_start $folder
    $s incr counter
    $s config set appendonly no
    assert_equal 0 [file exists [tail_path $folder]]
    $s incr counter
    $s config set appendonly yes
    wait_until {[string match "*aof_rewrite_in_progress:0*aof_rewrite_scheduled:0*" [$s info persistence]]} 20000
    $s incr counter
    $s config set appendfsync always
    $s incr counter
    $s config set appendfsync no
    $s debug aof-flush-sleep $::never
    $s incr counter
    tail_kill $id
    tail_start $folder
    assert_equal 5 [$s get counter]
    process_stop $id
}

# Effects on the new data come behind the end of the file of the old data, which the writer has not got to.
foreach load {disabled swapdb} {
    test "nothing of a master's stream gets into the old file, load $load" {} [string map [list LOAD $load] {
        tail_start [tail_folder] --repl-diskless-sync-delay 0
        lassign [list $s $id $port] master master_id master_port
        set folder [tail_folder]
        tail_start $folder --repl-diskless-load LOAD
        $master set theirs 1
        $s set mine 1
        wait_for {[string match *mine* [slurp [tail_increment $folder]]]}
        $s debug aof-flush-sleep $::never
        $s incr mine
        $s replicaof 127.0.0.1 $master_port
        wait_for {[$s get theirs] eq "1"}
        $master set theirs 2
        $master set other 1
        wait_for {[$s mget theirs other mine] eq {2 1 {}}}
        tail_kill $id
        tail_start $folder
        assert_equal {{} {} 2} [$s mget theirs other mine]
        process_stop $id
        process_stop $master_id
    }]
}

test "what a script keeps from replicas" {} {
    set folder [tail_folder]
    tail_start $folder
    $s incr counter
    $s debug aof-flush-sleep $::never
    for {set i 0} {$i < 10} {incr i} {
        $s eval {redis.set_repl(redis.REPL_AOF) return redis.call('incr', KEYS[1])} 1 aof
        $s eval {redis.set_repl(redis.REPL_REPLICA) return redis.call('incr', KEYS[1])} 1 replica
    }
    tail_kill $id
    tail_start $folder
    assert_equal {1 10 {}} [$s mget counter aof replica]
    process_stop $id
}

test "notes of the time stand in the file only" {} {
    set folder [tail_folder]
    tail_start $folder --aof-timestamp-enabled yes
    tail_write $s 10
    wait_for {[string match "*#TS:*pair:b*" [slurp [tail_increment $folder]]]}
    $s debug aof-flush-sleep $::never
    tail_write $s 5
    tail_kill $id
    set written [slurp [tail_increment $folder]]
    spit [tail_increment $folder] "$written#TS:1700000000\r\n"
    tail_start $folder --aof-timestamp-enabled yes
    assert_equal {15 15} [list [$s get counter] [$s llen list]]
    process_stop $id
}

test "a damaged tail: what is there is a part of what was done, in its order" {} {
    set folder [tail_folder]
    tail_start $folder
    $s debug aof-flush-sleep $::never
    for {set i 1} {$i <= 200} {incr i} {
        $s -send rpush list $i
    }
    for {set i 1} {$i <= 200} {incr i} {
        $s -read
    }
    tail_kill $id
    set tail [slurp [tail_path $folder]]
    set damages [list {} [string range $tail 0 99] [string range $tail 0 4095] [string range $tail 0 9999] \
        [string repeat "\0" [string length $tail]]]
    # The page with the head; the first slot; records.
    foreach at {0 8 16 30 64 72 80 88 96 128 136 160 4096 4104 4112 4120 4160 4168 4176 4184 4192 4200 4204 4208
            4230 9000 12345 15000} {
        lappend damages [string replace $tail $at $at [format %c [expr {[scan [string index $tail $at] %c] ^ 0x21}]]]
    }
    lappend damages [string replace $tail 8192 12287 [string repeat "\0" 4096]]
    foreach damaged $damages {
        set copy [fresh_dir]
        file copy $folder/appendonlydir $copy/appendonlydir
        spit [tail_path $copy] $damaged
        tail_start $copy
        set number 0
        foreach element [$s lrange list 0 -1] {
            assert_equal [incr number] $element
        }
        process_stop $id
    }
}

test "the machine was started anew" {} {
    set folder [tail_folder]
    tail_start $folder
    $s debug aof-flush-sleep $::never
    tail_write $s
    tail_kill $id
    set tail [slurp [tail_path $folder]]
    spit [tail_path $folder] [string replace $tail 24 27 0000]
    tail_start $folder
    tail_check $s 50
    process_stop $id
}

test "no room for what the tail has" {} {
    set folder [tail_folder]
    tail_start $folder
    $s debug aof-flush-sleep $::never
    tail_write $s 5
    tail_kill $id
    set before [slurp [tail_path $folder]]
    set port [free_port]
    with_fault write:0:enospc {
        set id [server_launch [list --port $port --dir $folder --save "" --appendonly yes]]
    }
    assert_equal 1 [process_wait $id]
    assert_match "*Can't append acknowledged writes*The server does not start*" [process_log $id]
    assert_equal $before [slurp [tail_path $folder]]
    tail_start $folder
    assert_equal 5 [$s get counter]
    process_stop $id
}

test "other programs read the files without the tail" {} {
    if {$::settings(oracle) eq {}} {
        skip "needs redis-server (--oracle)"
    }
    set folder [tail_folder]
    tail_start $folder --aof-use-rdb-preamble no
    $s set a 1
    wait_for {[string match "*set*" [slurp [tail_increment $folder]]]}
    $s debug aof-flush-sleep $::never
    $s set a 2
    tail_kill $id
    set copy [fresh_dir]
    file copy $folder/appendonlydir $copy/appendonlydir
    set port [free_port]
    set oracle [process_start [list $::settings(oracle) --port $port --dir $copy --appendonly yes --save {}] $copy/log]
    lappend ::test_processes $oracle
    wait_until {![catch {[connect -port $port -tls 0] ping}]} 20000
    assert_equal 1 [[connect -port $port -tls 0] get a]
    process_stop $oracle
    tail_start $folder
    assert_equal 2 [$s get a]
    process_stop $id
}
