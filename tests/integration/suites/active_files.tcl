# What files keep of an active node: versions of keys, its vector, its floor; and what others find in such a file.

# In a folder of its own, or in that of a node that has ended. {process connection}
proc start_node {folder args} {
    set port [lindex [list {*}$args --port [free_port]] [lsearch [list {*}$args --port] --port]+1]
    set id [server_launch [list --port $port --dir $folder --save "" --active-replica yes --enable-debug-command yes \
        --rdbcompression no {*}[thread_args 0] {*}$args]]
    wait_until {![process_alive $id] || ![catch {[connect -port $port -tls 0] -typed ping}]} 15000
    if {![process_alive $id]} {
        fail "the server ended:\n[process_log $id]"
    }
    set c [connect -port $port -tls 0]
    wait_until {[string match "*\nloading:0*" [$c info persistence]]} 20000
    return [list $id $c]
}

# What is written of a node in its RDB file: name, origin, clock, vector (ids and stamps).
proc state_in path {
    set bytes [slurp $path]
    set at [string first "\xfa\x0border-state" $bytes]
    assert {$at >= 0} "there is no state in the file"
    incr at 13
    binary scan $bytes "@${at}cu" size
    incr at
    if {$size >= 64} {
        binary scan $bytes "@${at}cu" low
        set size [expr {($size & 63) << 8 | $low}]
        incr at
    }
    set ::state [string range $bytes $at [expr {$at + $size - 1}]]
    set ::state_at 0
    assert_equal 1 [state_byte]
    foreach field {name origin clock} {
        dict set state $field [state_fixed]
    }
    state_varint
    dict set state vector {}
    for {set count [state_varint]} {$count > 0} {incr count -1} {
        set id [state_fixed]
        set coded [state_varint]
        set behind [expr {$coded & 1 ? -(($coded + 1) >> 1) : $coded >> 1}]
        dict set state vector $id [expr {[dict get $state clock] - $behind}]
    }
    return $state
}

proc state_byte {} {
    binary scan $::state "@${::state_at}cu" byte
    incr ::state_at
    return $byte
}

proc state_fixed {} {
    binary scan $::state "@${::state_at}wu" number
    incr ::state_at 8
    return $number
}

proc state_varint {} {
    for {set sum 0; set shift 0} {1} {incr shift 7} {
        set byte [state_byte]
        set sum [expr {$sum | ($byte & 127) << $shift}]
        if {$byte < 128} {
            return $sum
        }
    }
}

# The stamp of a key, as a number.
proc stamp_of {c key} {
    lassign [$c debug stamp $key] ms counter
    return [expr {$ms << 14 | $counter}]
}

proc write_all_types c {
    $c set text 1
    $c set due later px 100000000
    $c rpush list a b
    $c sadd set a b
    $c zadd zset 1 a
    $c hset hash f v
    $c expiremember set a 100000
    $c xadd stream 1-1 f v
    $c set number 7
    $c incr number
}

set kinds {text due list set zset hash stream number}

test "a restart after kill -9 finds versions and vector of the last save" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder] id c
    write_all_types $c
    $c save
    foreach key $::kinds {
        set before($key) [stamp_of $c $key]
    }
    set digest [$c debug digest]
    set saved [state_in $folder/dump.rdb]
    set origin [dict get $saved origin]
    assert_equal [list $origin] [dict keys [dict get $saved vector]]
    $c set lost 1
    set after [stamp_of $c lost]
    $c -close
    process_signal $id KILL
    process_wait $id

    lassign [start_node $folder] id c
    assert_equal $digest [$c debug digest]
    foreach key $::kinds {
        assert_equal $before($key) [stamp_of $c $key] $key
        # It was another start that wrote it.
        assert {[lindex [$c debug stamp $key] 3] != 0} $key
    }
    $c incr number
    assert {[stamp_of $c number] > $after} "the clock stands above all that was given"
    assert_equal 0 [lindex [$c debug stamp number] 3]
    $c save
    set again [state_in $folder/dump.rdb]
    assert_equal [dict get $saved name] [dict get $again name]
    assert {[dict get $again origin] ne $origin}
    assert_equal [dict get $saved vector $origin] [dict get $again vector $origin]
    assert {[dict exists $again vector [dict get $again origin]]}
    process_stop $id
}

test "a file of an active node is a file for others" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder --rdb-version 9] id c
    $c hset hash f v
    $c set text 1
    $c rpush list a b
    $c zadd zset 1 a
    $c save
    set digest [$c debug digest]
    process_stop $id
    # A server that is not active has no use for it.
    set port [free_port]
    set id [server_launch [list --port $port --dir $folder --save "" --enable-debug-command yes {*}[thread_args 0]]]
    wait_until {![catch {set c [connect -port $port -tls 0]}]} 15000
    wait_until {[string match "*\nloading:0*" [$c info persistence]]} 20000
    assert_equal $digest [$c debug digest]
    assert_equal {} [$c debug stamp text]
    process_stop $id
}

test "redis-server loads a file of an active node" {noconn keydb} {
    if {$::settings(oracle) eq {}} {
        skip "needs redis-server (--oracle)"
    }
    set folder [fresh_dir]
    lassign [start_node $folder] id c
    write_all_types $c
    $c del set
    $c save
    process_stop $id
    set port [free_port]
    set id [process_start [list $::settings(oracle) --port $port --dir $folder --save ""] $folder/redis.log]
    wait_until {![catch {set c [connect -port $port -tls 0]}]} 15000
    assert_equal 7 [$c dbsize]
    assert_equal {a b} [$c lrange list 0 -1]
    assert_equal 8 [$c get number]
    process_stop $id
}

test "a node does not start with a damaged state" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder --rdbchecksum no] id c
    $c set k v
    $c save
    process_stop $id
    state_in $folder/dump.rdb
    set bytes [slurp $folder/dump.rdb]
    set at [string first $::state $bytes]
    spit $folder/dump.rdb [string replace $bytes $at $at \x63]
    set id [server_launch [list --port [free_port] --dir $folder --save "" --active-replica yes {*}[thread_args 0]]]
    assert_equal 1 [process_wait $id]
    assert_match "*the state of the node, byte 1: it is of a version that this server does not know*" [process_log $id]
}

proc last_increment folder {
    return [lindex [lsort [glob $folder/appendonlydir/*.incr.aof]] end]
}

# Everything that the file has to tell of a node: versions, whose they are, and the data.
proc picture_of {c keys} {
    set picture [list [$c debug digest]]
    foreach key $keys {
        lappend picture $key [lrange [$c debug stamp $key] 0 1]
    }
    return $picture
}

# Behind so many bytes of operations the window is held within its limits: what comes next may be of another kind.
test "a command without a note stands right behind a large operation in the append-only file" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder --appendonly yes] id c
    $c set k v
    $c incr n
    $c set large [string repeat x 1000000]
    $c -close
    process_signal $id KILL
    process_wait $id
    set path [last_increment $folder]
    spit $path "[slurp $path]*2\r\n\$3\r\nDEL\r\n\$1\r\nk\r\n*2\r\n\$4\r\nINCR\r\n\$1\r\nn\r\n*1\r\n\$4\r\nPING\r\n"
    lassign [start_node $folder --appendonly yes] id c
    assert_equal {0 2 1000000} [list [$c exists k] [$c get n] [$c strlen large]]
    $c -close
    process_stop $id
}

test "a restart after kill -9 finds versions and vector of the append-only file" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder --appendonly yes --appendfsync always] id c
    write_all_types $c
    $c select 3
    $c set float 1
    $c incrbyfloat float 0.5
    $c multi
    $c set inside 1
    $c select 0
    $c incr number
    $c incr number
    $c exec
    $c set gone 1
    $c del gone
    $c incr number
    set last [stamp_of $c number]
    set keys $::kinds
    set picture [picture_of $c $keys]
    $c select 3
    set elsewhere [picture_of $c {float inside}]
    $c -close
    process_signal $id KILL
    process_wait $id
    set text [slurp [last_increment $folder]]

    lassign [start_node $folder --appendonly yes] id c
    assert_equal $picture [picture_of $c $keys]
    assert {[lindex [$c debug stamp number] 3] != 0}
    $c select 3
    assert_equal $elsewhere [picture_of $c {float inside}]
    assert_equal 1.5 [$c get float]
    $c save
    set vector [dict get [state_in $folder/dump.rdb] vector]
    assert {$last in [dict values $vector]} "up to the last command of the start before"
    process_stop $id

    # A command whose note is missing may be known to others or not: they give it back, or nobody saw it.
    lassign [start_node $folder --appendonly yes --appendfsync always] id c
    $c set before 1
    set size [file size [last_increment $folder]]
    $c incr before
    $c -close
    process_signal $id KILL
    process_wait $id
    set text [slurp [last_increment $folder]]
    spit [last_increment $folder] [string range $text 0 [expr {[string last "#order" $text] + 3}]]
    lassign [start_node $folder --appendonly yes] id c
    assert_equal 1 [$c get before]
    assert_equal $size [file size [last_increment $folder]]
    assert_match "*Truncating the AOF*" [process_log $id]
    process_stop $id
}

test "redis-server loads the append-only file of an active node" {noconn keydb} {
    if {$::settings(oracle) eq {}} {
        skip "needs redis-server (--oracle)"
    }
    set folder [fresh_dir]
    lassign [start_node $folder --appendonly yes --aof-use-rdb-preamble yes] id c
    $c rpush list a b
    $c sadd set a b
    $c spop set
    $c xadd stream 1-1 f v
    $c set number 8
    $c incrbyfloat number 0.5
    $c multi
    $c zadd zset 1 a
    $c hset hash f v
    $c exec
    process_stop $id
    set port [free_port]
    set id [process_start [list $::settings(oracle) --port $port --dir $folder --save "" --appendonly yes] \
        $folder/redis.log]
    wait_until {![process_alive $id] || ![catch {set c [connect -port $port -tls 0]}]} 15000
    assert {[process_alive $id]} [process_log $id]
    wait_until {[string match "*\nloading:0*" [$c info persistence]]} 20000
    assert_equal 6 [$c dbsize]
    assert_equal 8.5 [$c get number]
    assert_equal {a b} [$c lrange list 0 -1]
    process_stop $id
}

# In one piece, so that no heartbeat comes between: with it the window would be settled.
proc at_once {c args} {
    set bytes {}
    foreach words $args {
        append bytes [request {*}$words]
    }
    $c -raw $bytes
    foreach words $args {
        lappend replies [$c -read]
    }
    return $replies
}

test "deleted keys and dirty ones are in the file, and dirty ones are written anew behind a restart" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder] id c
    for {set try 0} {$try < 20} {incr try} { # a heartbeat may come between even so
        $c del late
        $c sadd late a
        set stamp [stamp_of $c late]
        $c set gone 1
        wait_until {[lindex [$c debug window] 1] == 0} 30000
        # An operation of a peer that is older than what is settled.
        set words [list [expr {77 + $try}] 0 [expr {$stamp - 16384}] [expr {($stamp >> 14) - 1}] 0 sadd late b]
        at_once $c {del gone} [list debug place {*}$words] save
        if {[regexp -all "order-record" [slurp $folder/dump.rdb]] == 2} {
            break
        }
    }
    assert_equal {a b} [lsort [$c smembers late]]
    $c -close
    process_signal $id KILL
    process_wait $id
    set bytes [slurp $folder/dump.rdb]
    assert_equal 2 [regexp -all "order-record" $bytes]

    lassign [start_node $folder] id c
    assert_equal 0 [$c exists gone]
    wait_until {[lindex [$c debug stamp late] 3] == 0} 30000
    assert_equal {a b} [lsort [$c smembers late]]
    $c save
    assert_equal 0 [regexp -all "order-record" [slurp $folder/dump.rdb]]
    process_stop $id
}

# A node with a plain file that has these keys. {folder process connection}
proc start_with_data {keys args} {
    set folder [fresh_dir]
    set port [free_port]
    set id [server_launch [list --port $port --dir $folder --save "" {*}[thread_args 0]]]
    wait_until {![catch {set c [connect -port $port -tls 0]}]} 15000
    foreach {key value} $keys {
        $c set $key $value
    }
    $c rpush list:[lindex $keys 0] a b
    $c hset hash:[lindex $keys 0] f v
    $c save
    process_stop $id
    return [list $folder {*}[start_node $folder {*}$args]]
}

# While a node takes a state over it refuses commands.
proc receive_from {c port} {
    assert {[wait_until {![catch {$c replicaof 127.0.0.1 $port}]} 20000]}
}

proc same_digests args {
    if {[catch {lmap c $args {$c debug digest}} digests]} {
        return 0
    }
    return [expr {[llength [lsort -unique $digests]] == 1}]
}

test "nodes with data of their own meet: all keys of both are on all" {noconn keydb} {
    lassign [start_with_data {a 1 both of_a} --multi-master yes] fa a ca
    lassign [start_with_data {b 1 both of_b} --multi-master yes] fb b cb
    lassign [start_node [fresh_dir] --multi-master yes] e ce
    set pa [lindex [$ca config get port] 1]
    set pb [lindex [$cb config get port] 1]
    set pe [lindex [$ce config get port] 1]
    $ca set later 1
    foreach {c ports} [list $ca [list $pb $pe] $cb [list $pa $pe] $ce [list $pa $pb]] {
        foreach port $ports {
            receive_from $c $port
        }
    }
    set keys {a b both hash:a hash:b later list:a list:b}
    foreach {name id c} [list a $a $ca b $b $cb empty $e $ce] {
        if {![wait_until {![catch {$c keys *} found] && [lsort $found] eq $keys} 30000]} {
            fail "$name has $found:\n[string range [process_log $id] end-4000 end]"
        }
    }
    assert {[wait_until {[same_digests $ca $cb $ce]} 20000]}
    assert_equal {a b} [$ce lrange list:b 0 -1]
    assert {[$ce get both] in {of_a of_b}}
    foreach id [list $a $b $e] {
        process_stop $id
    }
}

test "what has come out of its order is in the append-only file with its values, or not at all" {noconn keydb} {
    set folder [fresh_dir]
    lassign [start_node $folder --appendonly yes --appendfsync always] id c
    $c append text a
    set stamp [stamp_of $c text]
    wait_for {[clock milliseconds] > $stamp >> 14}
    set words [list 77 0 [expr {$stamp + 1}] [expr {$stamp >> 14}] 0 append text x]
    at_once $c {append text b} [list debug place {*}$words] {set last 1}
    set picture [list [$c get text] [lrange [$c debug stamp text] 0 2] [$c get last]]
    $c -close
    process_signal $id KILL
    process_wait $id
    set file [last_increment $folder]
    set text [slurp $file]
    set mark [string first "#order 000000000000004d" $text]
    assert {$mark > 0} "the peer's operation is in the file"
    set behind_mark [string first "\n" $text $mark]
    set behind_value [string first "\n#" $text $behind_mark]

    foreach end [list $behind_mark $behind_value [string length $text]] whole {0 0 1} {
        spit $file [string range $text 0 $end]
        lassign [start_node $folder --appendonly yes] id c
        if {$whole} {
            assert_equal $picture [list [$c get text] [lrange [$c debug stamp text] 0 2] [$c get last]]
        } else {
            assert_equal {ab {}} [$c mget text last]
        }
        $c save
        assert_equal $whole [dict exists [dict get [state_in $folder/dump.rdb] vector] 77]
        process_stop $id
        set file [last_increment $folder]
    }
}

test "lists and the history are in the append-only file" {noconn keydb} {
    set fa [fresh_dir]
    set fb [fresh_dir]
    lassign [start_node $fa --multi-master yes --appendonly yes --appendfsync always] a ca
    lassign [start_node $fb --multi-master yes --appendonly yes] b cb
    set pa [lindex [$ca config get port] 1]
    set pb [lindex [$cb config get port] 1]
    set size [file size $fa/keydb-identity]
    receive_from $ca $pb
    receive_from $cb $pa
    $ca set common 1
    assert {[wait_until {[$cb get common] eq 1} 30000]}
    assert {[wait_until {[file size $fa/keydb-identity] > $size} 30000]} "it has whom it knows"
    $cb -close
    process_signal $b KILL
    process_wait $b

    # While a member is away nothing of this is settled.
    $ca set text >
    $ca append text a
    set stamp [stamp_of $ca text]
    wait_for {[clock milliseconds] > $stamp >> 14}
    $ca append text b
    $ca set float 0.5
    $ca incrbyfloat float 1
    $ca rpush list x y z
    $ca lpop list
    $ca mset m1 1 m2 2
    $ca multi
    $ca sadd set a b c
    $ca smove set other a
    $ca publish channel nothing
    $ca exec
    $ca publish channel nothing
    $ca sadd set d
    $ca del common
    set keys {float list m1 m2 other set text}
    set picture [picture_of $ca $keys]
    set window [lrange [$ca debug window] 1 end]
    $ca -close
    process_signal $a KILL
    process_wait $a

    lassign [start_node $fa --multi-master yes --appendonly yes --port $pa --replicaof 127.0.0.1 $pb] a ca
    assert_equal $picture [picture_of $ca $keys]
    assert_equal $window [lrange [$ca debug window] 1 end]
    $ca debug place 77 0 [expr {$stamp + 1}] [expr {$stamp >> 14}] 0 append text -
    assert_equal >a-b [$ca get text]
    assert_match "*active_operations_late:0*" [$ca info replication]
    $ca set text 1

    lassign [start_node $fb --multi-master yes --appendonly yes --port $pb --replicaof 127.0.0.1 $pa] b cb
    assert {[wait_until {[same_digests $ca $cb]} 30000]}
    assert_equal {1.5 1} [$cb mget float m1]
    assert_equal 0 [$cb exists common]
    assert_match "*gets the stream*" [process_log $a]
    assert {![string match "*the state*" [process_log $b]]}
    process_stop $a
    process_stop $b
}

# A node with large values that have settled, changes of them that have not, and more changes while the file is written.
# Members are added, changed, removed, get deadlines and lose them; values are replaced and deleted.
proc fill_large c {
    $c eval {
        for i = 1, 4000 do
            redis.call('ZADD', 'zset', i, 'm' .. i)
            redis.call('HSET', 'hash', 'm' .. i, i)
            redis.call('SADD', 'set', 'm' .. i)
            redis.call('RPUSH', 'list', 'element:' .. i .. string.rep('x', 2000))
            redis.call('HSET', 'replaced', 'm' .. i, i)
            redis.call('ZADD', 'deleted', i, 'm' .. i)
            redis.call('RPUSH', 'middle', 'element:' .. i .. string.rep('x', 200))
            redis.call('XADD', 'stream', i .. '-1', 'field', i .. string.rep('x', 100))
        end
        redis.call('SET', 'text', string.rep('0123456789', 200000))
        redis.call('XGROUP', 'CREATE', 'stream', 'group', 0)
        redis.call('XREADGROUP', 'GROUP', 'group', 'reader', 'COUNT', 500, 'STREAMS', 'stream', '>')
    } 9 zset hash set list replaced deleted middle stream text
    foreach i {1 2 3} {
        $c expiremember set m$i 100000
        $c expiremember hash m$i 100000
    }
}

proc change_large {c from} {
    for {set i $from} {$i < $from + 40} {incr i} {
        $c zadd zset [expr {$i * 10}] m$i $i new:$i
        $c zrem zset m[expr {$i + 100}]
        $c zincrby zset 0.5 m[expr {$i + 200}]
        $c hset hash m$i changed new:$i 1
        $c hincrby hash m[expr {$i + 200}] 5
        $c hdel hash m[expr {$i + 100}]
        $c srem set m$i
        $c sadd set new:$i
        $c rpush list new:$i
        $c lpop list
        $c lpush list first:$i
        $c rpop list 2
        $c hset replaced m$i changed
        $c zadd deleted 1 new:$i
        $c lset middle [expr {$i * 3}] changed:$i
        $c linsert middle before changed:$i new:$i
        $c lrem middle 1 element:[expr {$i * 2}][string repeat x 200]
        $c rpush middle last:$i
        $c xadd stream * field new:$i
        $c xdel stream [expr {$i * 3}]-1
        $c xack stream group [expr {$i / 2}]-1
        $c setrange text [expr {$i * 1000}] changed:$i
        $c append text more:$i
    }
    $c xreadgroup group group other count 10 streams stream >
    $c xtrim stream maxlen 3000
    $c setbit text 77777 1
    $c expiremember set m[expr {$from + 1000}] 50000
    $c expiremember hash m[expr {$from + 1000}] 50000
    $c persist set m[expr {$from / 100 + 1}]
    $c ltrim list 30 -30
    $c expire zset 100000
    $c expire text 100000
    $c del replaced
    $c hset replaced f v
    $c del deleted
}

proc restart_with_large method {
    set fa [fresh_dir]
    set fb [fresh_dir]
    lassign [start_node $fa --multi-master yes --snapshot-method $method] a ca
    lassign [start_node $fb --multi-master yes] b cb
    set pa [lindex [$ca config get port] 1]
    set pb [lindex [$cb config get port] 1]
    set size [file size $fa/keydb-identity]
    receive_from $ca $pb
    receive_from $cb $pa
    fill_large $ca
    $ca set common 1
    assert {[wait_until {[$cb get common] eq 1} 30000]}
    assert {[wait_until {[file size $fa/keydb-identity] > $size} 30000]} "it has whom it knows"
    wait_for {[lindex [$ca debug window] 0] == 0}
    $cb -close
    process_signal $b KILL
    process_wait $b

    change_large $ca 100
    set stamp [stamp_of $ca zset]
    set keys {zset hash set list replaced deleted middle stream text}
    set picture [picture_of $ca $keys]
    set window [lrange [$ca debug window] 1 end]
    $ca config set rdb-key-save-delay 2000
    $ca bgsave
    change_large $ca 500
    $ca del set
    $ca config set rdb-key-save-delay 0
    wait_for {[string match "*rdb_bgsave_in_progress:0*" [$ca info persistence]]}
    $ca -close
    process_signal $a KILL
    process_wait $a
    set count [regexp -all "order-record" [slurp $fa/dump.rdb]]
    # All values are large at their bases: a part and a record each, at least; the list and the text are of megabytes. A
    # forked child, for which nobody waits, writes records alone.
    if {$method eq "threads"} {
        assert {$count > 7 * 2 + 20 + 30} "only $count"
    } else {
        assert_equal 9 $count
    }

    lassign [start_node $fa --multi-master yes --port $pa --replicaof 127.0.0.1 $pb] a ca
    assert_equal $picture [picture_of $ca $keys]
    assert_equal $window [lrange [$ca debug window] 1 end]
    # What takes the operations back is there, too.
    $ca debug place 77 0 [expr {$stamp - 1}] [expr {$stamp >> 14}] 0 del zset
    assert {[$ca zcard zset] < 200} "only what came behind it is left"
    assert_match "*active_operations_late:0*" [$ca info replication]
    lassign [start_node $fb --multi-master yes --port $pb --replicaof 127.0.0.1 $pa] b cb
    assert {[wait_until {[same_digests $ca $cb]} 30000]}
    process_stop $a
    process_stop $b
}

foreach method {threads fork} {
    test "large values with operations that are not settled are in the file as they were: $method" {noconn keydb} \
        "restart_with_large $method"
}

test "a file with large entries is loaded within the limits of memory" {noconn keydb} {
    set folder [fresh_dir]
    set words {--appendonly yes --active-history-limit 1mb}
    lassign [start_node $folder {*}$words] id c
    for {set i 0} {$i < 50} {incr i} {
        $c eval {
            for i = ARGV[1] * 1000, ARGV[1] * 1000 + 999 do redis.call('SET', 'key:' .. i, string.rep('x', 100)) end
        } 0 $i
    }
    $c -close
    process_signal $id TERM
    process_wait $id
    lassign [start_node $folder {*}$words] id c
    assert_equal 50000 [$c dbsize]
    regexp {used_memory:(\d+).*used_memory_peak:(\d+)} [$c info memory] - used peak
    assert {$peak < 15000000} "$peak bytes at most, $used at the end; a history without limit takes 10 MB more"
    process_stop $id
}

# --- libraries of functions ---

proc library {name result} {
    return "#!lua name=$name\nredis.register_function('f_$name', function() return '$result' end)"
}

# What the functions of these libraries say; {}: it is not there.
proc results {c args} {
    set results {}
    foreach name $args {
        if {[catch {$c fcall f_$name 0} result]} {
            assert_match "*Function not found*" $result
            set result {}
        }
        lappend results $result
    }
    return $results
}

# The library of a peer, or none. A command for at_once.
proc peers_library {origin stamp args} {
    return [list debug place $origin 0 $stamp [clock milliseconds] 0 keydb.op.library {*}$args]
}

test "a library is a key: what is older than its last operation does nothing" {noconn keydb} {
    lassign [start_node [fresh_dir]] id c
    # In one piece, and ahead of the clock: so nothing is settled in between.
    set at [expr {([clock milliseconds] + 1000) << 14}]
    at_once $c \
        [peers_library 77 [expr {$at + 10}] a [library a two]] [peers_library 78 [expr {$at + 5}] a [library a one]] \
        [peers_library 77 [expr {$at + 10}] b [library b two]] [peers_library 77 [expr {$at + 20}] b] \
        [peers_library 78 [expr {$at + 15}] b [library b one]] [peers_library 79 [expr {$at + 25}] c [library c new]]
    assert_equal {two {} new} [results $c a b c]
    # A flush keeps what is younger, and what is older does not come back.
    at_once $c [list debug place 80 0 [expr {$at + 22}] [clock milliseconds] 0 function flush] \
        [peers_library 81 [expr {$at + 21}] d [library d old]] [peers_library 81 [expr {$at + 30}] e [library e new]] \
        [peers_library 82 [expr {$at + 24}] c]
    assert_equal {{} {} new {} new} [results $c a b c d e]
    # Own ones are younger than all that was heard.
    at_once $c [list function load replace [library c own]] [list function load [library f own]] {function delete f} \
        [peers_library 83 [expr {$at + 28}] c [library c late]] [peers_library 83 [expr {$at + 29}] f [library f late]]
    assert_equal {own {}} [results $c c f]
    assert_equal 0 [process_stop $id]
}

test "of two libraries with one function the first by name has it, in any order" {noconn keydb} {
    lassign [start_node [fresh_dir]] id c
    set at [expr {([clock milliseconds] + 1000) << 14}]
    set of_a [string map {f_a f} [library a first]]
    set of_b [string map {f_b f} [library b second]]
    at_once $c [peers_library 77 $at a $of_a] [peers_library 78 [expr {$at + 1}] b $of_b]
    assert_equal first [$c fcall f 0]
    at_once $c [peers_library 77 [expr {$at + 2}] a] [peers_library 77 [expr {$at + 3}] a $of_a]
    assert_equal first [$c fcall f 0]
    assert_equal 2 [llength [$c function list]]
    assert_error "*already exists*" {$c function load [string map {name=b name=d} $of_b]}
    $c debug reload
    assert_equal first [$c fcall f 0]
    $c function delete a
    assert_equal second [$c fcall f 0]
    assert_equal 0 [process_stop $id]
}

test "behind a restart an older library that comes late does not replace the younger one" {noconn keydb} {
    foreach args {{--save ""} {--appendonly yes --appendfsync always}} {
        set folder [fresh_dir]
        lassign [start_node $folder {*}$args] id c
        set before [expr {([clock milliseconds] - 5000) << 14}]
        $c function load [library a one]
        $c function load replace [library a two]
        $c function load [library gone one]
        $c function delete gone
        if {"--save" in $args} {
            $c save
        }
        $c -close
        process_signal $id KILL
        process_wait $id
        lassign [start_node $folder {*}$args] id c
        at_once $c [peers_library 77 $before a [library a old]]
        assert_equal two [results $c a]
        at_once $c [peers_library 77 [expr {([clock milliseconds] + 1000) << 14}] a [library a new]]
        assert_equal new [results $c a]
        assert_equal 0 [process_stop $id]
    }
}
