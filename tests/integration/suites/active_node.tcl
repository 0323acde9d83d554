# The node itself: its identity file, the bounds of stamps and wall times over restarts, whatever the clock says.

# In a folder of its own, or in that of a node that has ended. {process connection}
proc start_node {folder args} {
    set port [free_port]
    set id [server_launch [list --port $port --dir $folder --save "" --active-replica yes --enable-debug-command yes \
        {*}[thread_args 0] {*}$args]]
    wait_until {![process_alive $id] || ![catch {[connect -port $port -tls 0] -typed ping}]} 15000
    if {![process_alive $id]} {
        fail "the server ended:\n[process_log $id]"
    }
    set c [connect -port $port -tls 0]
    wait_until {[string match "*\nloading:0*" [$c info persistence]]} 20000
    return [list $id $c]
}

proc kill_node id {
    process_signal $id KILL
    process_wait $id
}

proc facts_of c {
    foreach line [split [string map {\r ""} [$c debug active]] \n] {
        if {[regexp {^([a-z_0-9]+):(.*)$} $line - field value]} {
            dict set facts $field $value
        }
    }
    return $facts
}

proc fact {c field} {
    return [dict get [facts_of $c] $field]
}

proc number {c field} {
    regexp "\n$field:(\\d+)" [$c info all] - value
    return $value
}

proc stamp {c key} {
    lassign [$c debug stamp $key] ms counter
    return [expr {$ms * 16384 + $counter}]
}

# Writes the file with other values of these fields.
proc edit_identity {folder args} {
    set lines {}
    foreach line [split [string trimright [slurp $folder/keydb-identity] \n] \n] {
        set field [lindex $line 0]
        if {[dict exists $args $field]} {
            set line "$field [dict get $args $field]"
        }
        if {$field ne "crc64"} {
            append lines $line \n
        }
    }
    spit $folder/keydb-identity "${lines}crc64 [crc64 $lines]\n"
}

proc identity {folder field} {
    regexp -line "^$field (.*)\$" [slurp $folder/keydb-identity] - value
    return $value
}

test "a node has a name for life and an origin for each start" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder] id c
    set first [facts_of $c]
    assert_equal 1 [dict get $first starts]
    assert_equal [identity $folder name] [dict get $first name]
    assert_equal [identity $folder origin] [dict get $first origin]
    assert_equal 0 [process_stop $id]
    lassign [start_node $folder] id c
    assert_equal [dict get $first name] [fact $c name]
    assert_equal 2 [fact $c starts]
    assert {[fact $c origin] ne [dict get $first origin]}
    assert_equal [dict get $first origin] [identity $folder former]
    assert_equal 0 [process_stop $id]
}

test "a server that is not active has no identity, and no key a stamp" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder --active-replica no] id c
    $c set k v
    assert_equal {} [$c debug stamp k]
    assert_equal 0 [fact $c starts]
    assert {![file exists $folder/keydb-identity]}
    assert_equal 0 [process_stop $id]
}

test "a damaged identity file is refused with its path" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder] id c
    assert_equal 0 [process_stop $id]
    set whole [slurp $folder/keydb-identity]
    foreach text [list [string range $whole 0 end-10] [string map {"starts 1" "starts 2"} $whole] "" "hello\n"] {
        spit $folder/keydb-identity $text
        set id [server_launch [list --port [free_port] --dir $folder --active-replica yes {*}[thread_args 0]]]
        assert {[process_wait $id] != 0}
        assert_match "*Can't start as an active replica: the identity file keydb-identity is refused*" [process_log $id]
        assert_equal $text [slurp $folder/keydb-identity]
    }
    # The file as this suite writes it is right.
    spit $folder/keydb-identity $whole
    edit_identity $folder starts 7
    lassign [start_node $folder] id c
    assert_equal 8 [fact $c starts]
    assert_equal 0 [process_stop $id]
}

test "each write has a stamp; beats promise more of them, and the frontiers of one node follow" {noconn keydb} {
    lassign [start_node [fresh_dir]] id c
    set last 0
    for {set i 0} {$i < 20} {incr i} {
        $c incr k
        set stamp [stamp $c k]
        assert {$stamp > $last}
        set last $stamp
    }
    wait_for {[fact $c frontier] > $stamp}
    wait_for {[fact $c wall_frontier] >= $stamp / 16384}
    set beats [fact $c beats]
    wait_for {[fact $c beats] >= $beats + 3}
    $c incr k
    assert {[stamp $c k] > $stamp}
    assert_equal 0 [process_stop $id]
}

test "stamps and wall times stay within what is on the disk, and begin above it after kill -9" {noconn keydb} {
    set folder [fresh_dir]
    set above 0
    set wall 0
    for {set start 1} {$start <= 3} {incr start} {
        lassign [start_node $folder] id c
        assert_equal $start [fact $c starts]
        $c incr k
        assert {[stamp $c k] > $above}
        assert {[fact $c wall] >= $wall}
        # Long enough for the bounds to be moved once.
        set bound [identity $folder stamp-bound]
        wait_for {[identity $folder stamp-bound] > $bound}
        $c incr k
        set facts [facts_of $c]
        assert {[stamp $c k] <= [identity $folder stamp-bound]}
        assert {[dict get $facts wall] <= [identity $folder wall-bound]}
        kill_node $id
        set above [identity $folder stamp-bound]
        set wall [identity $folder wall-bound]
    }
}

test "a start goes on above its bounds, though the clock is an hour behind them; so do its deadlines" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder] id c
    assert_equal 0 [process_stop $id]
    set ms [expr {[clock milliseconds] + 3600000}]
    edit_identity $folder stamp-bound [expr {$ms * 16384}] wall-bound $ms
    lassign [start_node $folder] id c
    $c set k v
    assert {[stamp $c k] > $ms * 16384}
    assert {[fact $c wall] >= $ms}
    # What ends within this hour has ended for a command that runs with that time.
    $c set short v pxat [expr {$ms - 1000000}]
    assert_equal {} [$c get short]
    $c set long v pxat [expr {$ms + 1000000}]
    assert_equal v [$c get long]
    wait_for {[fact $c frontier] > [stamp $c k]}
    assert_equal 0 [process_stop $id]
}

test "writes wait while the identity file cannot be written, reads do not" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder] id c
    $c set k v
    set name $folder/keydb-identity
    file rename $name $name.kept
    file mkdir $name/full
    wait_for {[string match "*Writes wait until the identity file*" [process_log $id]]}
    assert_match "*cannot be written*" [process_log $id]
    assert_equal v [$c get k]
    set other [connect -port [lindex [$c config get port] 1] -tls 0]
    $c -send incr n
    wait_for {[string match "*\nblocked_clients:1*" [$other info clients]]}
    assert_equal v [$other get k]
    # Nothing is promised above what is on the disk either, however long that takes.
    set beats [fact $other beats]
    wait_for {[fact $other beats] > $beats + 15}
    set facts [facts_of $other]
    assert {[dict get $facts clock] <= [dict get $facts stamp_bound]}
    assert {[dict get $facts wall] <= [dict get $facts wall_bound]}
    file delete -force $name
    assert_equal 1 [$c -read]
    assert_equal 0 [process_stop $id]
}

test "what overwrites finds the key expired, as a younger operation has set the deadline" {noconn keydb} {
    lassign [start_node [fresh_dir]] id c
    foreach {key words left} {s {set s 1} 1 d {del d} 0} {
        set wall [clock milliseconds]
        set first [expr {($wall + 1000) << 14}]
        # In one piece, before the next heartbeat: by then all of it is settled.
        set bytes [request debug place 77 0 $first $wall 0 rpush $key a]
        append bytes [request debug place 77 $first [expr {$first + 2}] $wall 0 pexpireat $key [expr {$wall + 200000}]]
        append bytes [request debug place 78 0 [expr {$first + 1}] [expr {$wall + 300000}] 0 {*}$words]
        $c -raw $bytes
        assert_equal {OK OK OK} [list [$c -read] [$c -read] [$c -read]]
        assert_equal $left [$c exists $key]
    }
    assert_equal 1 [$c get s]
    assert_range [$c pttl s] 1 200000
    assert_equal 0 [process_stop $id]
}

test "what an operation finds expired is gone for those behind it, whatever their clocks say" {noconn keydb} {
    lassign [start_node [fresh_dir]] id c
    set deadline [expr {[clock milliseconds] + 200000}]
    $c set text old pxat $deadline
    $c rpush list a
    $c pexpireat list $deadline
    $c hset hash a 1 b 2
    $c hpexpireat hash $deadline fields 1 a
    # None of these finds anything.
    set late [expr {$deadline + 1000}]
    foreach {key words} {text {del text} list {lrem list 1 x} hash {hdel hash x}} {
        $c debug place 77 0 [expr {[stamp $c $key] + 1}] $late 0 {*}$words
    }
    # In one piece, before the next heartbeat: by then all of it is settled.
    set wall [clock milliseconds]
    set first [expr {($wall + 1000) << 14}]
    set bytes {}
    foreach {origin at time words} {
        77 0 wall {rpush among a} 77 1 wall {pexpireat among deadline} 77 4 wall {rpush among b}
        78 2 late {lrem among 1 x}
    } {
        append bytes [request debug place $origin 0 [expr {$first + $at}] [set $time] 0 \
            {*}[string map [list deadline $deadline] $words]]
    }
    $c -raw $bytes
    assert_equal {OK OK OK OK} [list [$c -read] [$c -read] [$c -read] [$c -read]]
    assert_equal {new 1 1 b} [list [$c append text new; $c get text] [$c rpush list c] [$c hincrby hash a 1] \
        [$c lrange among 0 -1]]
    foreach key {text list among} {
        assert_equal -1 [$c pttl $key] $key
    }
    assert_equal 0 [process_stop $id]
}

test "history, window and tombstones have their names in INFO memory, and count as overhead" {noconn keydb} {
    lassign [start_node [fresh_dir] --active-history-limit 4mb --maxmemory 1gb] id c
    $c set a [string repeat x 1000000]
    for {set i 0} {$i < 30} {incr i} {
        $c bitop not b a ;# for peers it is the value, by reference
    }
    wait_for {[number $c mem_active_history] < 8000000} 15000
    $c bitop not b a
    assert_range [number $c active_history_bytes] 1000000 4000000
    assert {[number $c mem_active_history] > 1000000}
    assert {[number $c mem_not_counted_for_evict] > [number $c mem_active_history] / 2}
    assert {[number $c used_memory_overhead] > [number $c mem_active_history] / 2}
    assert {[dict get [$c memory stats] active.history] > 1000000}
    assert_equal {0 0} [list [number $c mem_active_window] [number $c mem_active_tombstones]]
    assert_equal 0 [process_stop $id]
}

# Nobody else is there, so the frontiers pass all that is written; a member that was heard once and is gone holds them.
test "the bound of tombstones counts long names" {noconn keydb} {
    lassign [start_node [fresh_dir] --active-tombstones-limit 1mb] id c
    $c debug pause-cron 1
    set name [string repeat n 100000]
    for {set i 0} {$i < 30} {incr i} {
        $c set $name$i v
        $c del $name$i
    }
    assert {[number $c mem_active_tombstones] > 3000000}
    assert {[number $c mem_active_window] >= [number $c mem_active_tombstones]}
    $c debug pause-cron 0
    wait_for {[number $c mem_active_tombstones] < 1200000} 15000
    assert_equal 0 [process_stop $id]
}
