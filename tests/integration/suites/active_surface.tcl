# What users see of an active node: directives, REPLICAOF, ROLE, INFO, KEYDB.ACTIVE.

# Starts a server with these lines as its file. {process connection path}
proc active_server lines {
    set path [spit [fresh_dir]/test.conf "[join $lines \n]\nsave \"\"\n"]
    return [list {*}[active_again $path] $path]
}

proc active_again path {
    set port [free_port]
    set id [server_launch [list $path --port $port --dir [file dirname $path] {*}[thread_args 0]]]
    wait_until {![process_alive $id] || ![catch {[connect -port $port -tls 0] -typed ping}]} 15000
    if {![process_alive $id]} {
        fail "the server ended:\n[process_log $id]"
    }
    return [list $id [connect -port $port -tls 0]]
}

# The directive lines of a file, without blank ones and comments.
proc lines_of {path name} {
    return [regexp -all -inline -line "^$name .*\$" [slurp $path]]
}

test "several lines replicaof, before and behind active-replica; CONFIG GET and REWRITE keep them" {noconn keydb} {
    lassign [active_server {{replicaof 127.0.0.1 1} {active-replica yes} {multi-master yes} {slaveof other.host 2}
        {replicaof 127.0.0.1 1}}] id c path
    assert_equal {replicaof {127.0.0.1 1 other.host 2}} [$c config get replicaof]
    assert_equal {slaveof {127.0.0.1 1 other.host 2}} [$c config get slaveof]
    foreach {name value} {active-replica yes multi-master yes multi-master-no-forward no replica-quorum -1} {
        assert_equal [list $name $value] [$c config get $name]
        if {$value eq "yes"} {
            assert_error "*can't set immutable config" {$c config set $name no}
        }
    }
    # Writes are taken, and nothing is hidden from them.
    assert_equal {replica-read-only no} [$c config get replica-read-only]
    assert_equal OK [$c set k v]
    $c config rewrite
    assert_equal {{replicaof 127.0.0.1 1} {replicaof other.host 2}} [lines_of $path replicaof]
    assert_equal {} [lines_of $path slaveof]
    assert_equal 0 [process_stop $id]
    lassign [active_again $path] id c
    assert_equal {replicaof {127.0.0.1 1 other.host 2}} [$c config get replicaof]
    assert_equal 0 [process_stop $id]
}

test "without multi-master the last line counts; NO ONE clears those before" {noconn keydb} {
    lassign [active_server {{active-replica yes} {replicaof 127.0.0.1 1} {replicaof 127.0.0.1 2}}] id c
    assert_equal {replicaof {127.0.0.1 2}} [$c config get replicaof]
    assert_match "*replicaof 127.0.0.1 1 is not used*" [process_log $id]
    assert_equal 0 [process_stop $id]
    lassign [active_server {{active-replica yes} {multi-master yes} {replicaof 127.0.0.1 1} {replicaof no one}
        {replicaof 127.0.0.1 2}}] id c
    assert_equal {replicaof {127.0.0.1 2}} [$c config get replicaof]
    assert_equal 0 [process_stop $id]
    # A plain replica, too.
    lassign [active_server {{replicaof 127.0.0.1 1} {replicaof 127.0.0.1 2}}] id c
    assert_equal {replicaof {127.0.0.1 2}} [$c config get replicaof]
    assert_equal {slave 127.0.0.1 2} [lrange [$c role] 0 2]
    assert_equal 0 [process_stop $id]
}

test "multi-master without active-replica ends the start" {noconn keydb} {
    set path [spit [fresh_dir]/test.conf "multi-master yes\nport [free_port]\n"]
    set id [server_launch [list $path]]
    assert_equal 1 [process_wait $id]
    assert_match "*multi-master yes needs active-replica yes*" [process_log $id]
    foreach {line reason} {
        "replicaof 127.0.0.1 65536" "Invalid master port"
        "replicaof 127.0.0.1 x" "Invalid master port"
        "replicaof {} 1" "*"
        "active-replica perhaps" "argument must be 'yes' or 'no'"
        "active-window-size 1023" "argument must be between*"
    } {
        set id [server_launch [list [spit $path "active-replica yes\n$line\nport 0\n"]]]
        assert_equal 1 [process_wait $id] $line
        assert_match "*$reason*" [process_log $id]
    }
}

# A group with one active node of ours, and one of KeyDB if that is here; both get the same words.
set active_options {active-replica yes multi-master yes}

# What both say, but for what is known to differ: error texts of ports, ADD, and a host in other letters.
test "REPLICAOF, ROLE and HELLO of an active node answer as KeyDB does" {noconn keydb} {
    with_group [list m ours $::active_options k keydb $::active_options] {
        foreach words {
            role {replicaof 127.0.0.1 1} {replicaof 127.0.0.1 1} role {config get replicaof} {replicaof LocalHost 2}
            {replicaof localhost 2} role {replicaof remove 127.0.0.1 3} {replicaof remove 127.0.0.1 1}
            {replicaof remove 127.0.0.1 1} role {config get replicaof} {replicaof a b c d e} failover {wait 0 0}
            {config get replica-read-only} {config get active-replica}
            {config get multi-master-no-forward} {set k v} {incr n} {replicaof no one}
            {replicaof no one} {config get replicaof} {slaveof 127.0.0.1 1} {slaveof no one}
        } {
            # Nobody is there: a link is in the one state or the other.
            set theirs [string map {connecting connect} [on k -typed {*}$words]]
            assert_equal [list $words $theirs] [list $words [string map {connecting connect} [on m -typed {*}$words]]]
        }
        foreach name {m k} {
            assert_equal {master {}} [lreplace [on $name role] 1 1]
            assert_equal master [dict get [on $name hello 2] role]
            on $name replicaof 127.0.0.1 1
            assert_equal active-replica [dict get [on $name hello 2] role]
            on $name replicaof 127.0.0.1 2
        }
        # The lines of INFO about masters have the same names; what they say differs: this node serves.
        set names [lmap {all name} [regexp -all -inline -line {^([a-z_0-9]+):} [on k info replication]] {set name}]
        set mine [lmap {all name} [regexp -all -inline -line {^([a-z_0-9]+):} [on m info replication]] {set name}]
        foreach name $names {
            if {$name ni $mine && ![string match *link_down_since_seconds $name]} {
                fail "INFO of an active node lacks $name"
            }
        }
    }
}

test "REPLICAOF ADD and REMOVE on an active node, with multi-master and without" {noconn keydb} {
    with_group [list m ours $::active_options s ours {active-replica yes} p ours {}] {
        assert_equal {status OK} [on m -typed replicaof add 127.0.0.1 1]
        assert_equal {status OK} [on m -typed replicaof Add other 2]
        assert_equal {status {OK Already connected to specified master}} [on m -typed replicaof ADD OTHER 2]
        assert_equal {127.0.0.1 1 other 2} [lindex [on m config get replicaof] 1]
        assert_error "ERR Invalid arguments" {on m replicaof swap other 2}
        assert_error "ERR Invalid master port" {on m replicaof add other x}
        assert_error "ERR Invalid master host" {on m replicaof add {} 1}
        assert_error "ERR wrong number of arguments*" {on m slaveof add other 2}
        assert_equal {status OK} [on m -typed replicaof REMOVE OTHER 2]
        for {set port 1} {$port <= 128} {incr port} {
            on m replicaof 127.0.0.1 $port
        }
        assert_error "ERR There are 128 masters already" {on m replicaof 127.0.0.1 129}
        assert_equal 128 [llength [on m role]]
        assert_equal OK [on m replicaof no one]
        assert_equal master [lindex [on m role] 0]
        # One master: another one takes its place, or is refused.
        on s replicaof 127.0.0.1 1
        assert_error "ERR There is a master already, and several need multi-master yes" {on s replicaof add 127.0.0.1 2}
        assert_equal OK [on s replicaof 127.0.0.1 2]
        assert_equal {active-replica 127.0.0.1 2} [lrange [on s role] 0 2]
        assert_equal OK [on s replicaof remove 127.0.0.1 2]
        assert_equal OK [on s replicaof add 127.0.0.1 3]
        assert_equal {active-replica 127.0.0.1 3} [lrange [on s role] 0 2]
        # A plain replica.
        assert_error "ERR Master not found" {on p replicaof remove 127.0.0.1 1}
        assert_equal OK [on p replicaof add 127.0.0.1 1]
        assert_equal slave [lindex [on p role] 0]
        assert_error "ERR There is a master already, and several need active-replica yes and multi-master yes" \
            {on p replicaof add 127.0.0.1 2}
        assert_error "ERR Master not found" {on p replicaof remove 127.0.0.1 2}
        assert_equal OK [on p replicaof remove 127.0.0.1 1]
        assert_equal master [lindex [on p role] 0]
    }
}

test "an active node serves whatever its links say: writes, expiry, jobs, blocked clients, INFO" {noconn keydb} {
    with_group [list m ours $::active_options] {
        set blocked [member_connect m]
        $blocked -send blpop q 0
        wait_until {[section_field m clients blocked_clients] == 1} 5000
        on m replicaof 127.0.0.1 1
        on m replicaof 127.0.0.1 2
        assert_equal active-replica [replication m role]
        foreach field {master_link_status master_1_link_status master_global_link_status} {
            assert_equal up [replication m $field]
        }
        assert_equal 0 [replication m connected_masters]
        assert_equal 0 [replication m slave_read_only]
        assert_error "ERR SWAPDB is not allowed on an active replica" {on m swapdb 0 1}
        assert_error "ERR DB index is out of range" {on m swapdb 0 99}
        on m config set replica-read-only yes
        on m set k v px 10
        on m keydb.cron job repeat 10 {redis.call("incr", "runs")}
        wait_until {[on m get runs] > 1} 30000
        wait_until {[on m exists k] == 0} 30000 ;# its memory stays while nobody was met
        on m lpush q x
        assert_equal {q x} [$blocked -read]
        on m replicaof remove 127.0.0.1 1
        assert_match "*master_host:127.0.0.1\r\nmaster_port:2\r\n*active_peer0:name=,link=*,host=127.0.0.1,port=2,*" \
            [on m info replication]
        on m replicaof no one
        assert_equal master [replication m role]
        assert {![string match *master_link_status* [on m info replication]]}
    }
}

# A payload, and what is wrong with it, to both.
test "KEYDB.MVCCRESTORE without versions always restores, as KeyDB does" {noconn keydb} {
    with_group [list m ours {} k keydb {}] {
        on k rpush source a b c
        set payload [on k dump source]
        set broken [string replace $payload end end [expr {[string index $payload end] eq "x" ? "y" : "x"}]]
        set late [expr {[clock milliseconds] + 1000000}]
        foreach words [list \
            [list keydb.mvccrestore k 1 -1 $payload] {lrange k 0 -1} {pttl k} \
            {set k x} [list keydb.mvccrestore k 0 $late $payload] {lrange k 0 -1} \
            [list keydb.mvccrestore k 18446744073709551615 -5 $payload] {ttl k} \
            [list keydb.mvccrestore k x -1 $payload] \
            [list keydb.mvccrestore k 1 x $payload] [list keydb.mvccrestore k 1 -1 $broken] \
            {keydb.mvccrestore k 1 -1 {}} {type k} \
        ] {
            assert_equal [list $words [on k -typed {*}$words]] [list $words [on m -typed {*}$words]]
        }
        on m keydb.mvccrestore k 1 $late $payload
        assert_range [on m pttl k] 900000 1000000
        on m keydb.mvccrestore k 1 9223372036854775807 $payload
        assert_equal -1 [on m pttl k]
        # A deadline that has passed leaves nothing.
        assert_equal OK [on m keydb.mvccrestore k 1 5 $payload]
        assert_equal 0 [on m exists k]
    }
}

test "KEYDB.MVCCRESTORE leaves a key alone that has changed since; replicas get RESTORE" {noconn keydb} {
    with_group {m ours {} r ours {}} {
        on m debug stamping 1000
        follow r m
        wait_same m r
        on m set old a
        set before [expr {[clock milliseconds] << 20}]
        set after [expr {([clock milliseconds] + 10000) << 20}]
        set payload [on m dump old]
        wait_until {[clock milliseconds] > ($before >> 20)} 1000
        on m set k b
        assert_equal OK [on m keydb.mvccrestore k $before -1 $payload]
        assert_equal b [on m get k]
        assert_equal OK [on m keydb.mvccrestore k $after -1 $payload]
        assert_equal a [on m get k]
        assert_equal OK [on m keydb.mvccrestore new $before -1 $payload]
        assert_equal a [on m get new]
        assert_range [on m object lastmodified new] 0 5
        wait_same m r
        assert_equal {a a} [on r mget k new]
        assert_match "*cmdstat_restore:calls=2,*" [on r info commandstats]
    }
}

# What a payload is sealed with: its version, and the checksum of all before.
proc sealed {body {version 9}} {
    set bytes $body[binary format s $version]
    return $bytes[binary format w 0x[crc64 $bytes]]
}

test "KEYDB.MVCCRESTORE looks at its payload first, also where the key is younger" {noconn keydb} {
    with_group {m ours {} r ours {}} {
        on m debug stamping 1000
        follow r m
        wait_same m r
        on m set k v
        set good [sealed "\0\1x"]
        set wrong "ERR DUMP payload version or checksum are wrong"
        foreach {payload error} [list \
            {} $wrong  short $wrong  [string replace $good end end ?] $wrong  [sealed "\0\1x" 99] $wrong \
            [sealed "\0\2x"] "ERR Bad data format"  [sealed "\1\0"] "ERR Bad data format" \
            [sealed "\xc8x"] "ERR Bad data format" \
        ] {
            foreach {key mvcc deadline} [list k 1 -1  k 1 5  k 18446744073709551615 5  none 1 -1] {
                assert_error $error {on m keydb.mvccrestore $key $mvcc $deadline $payload}
            }
        }
        assert_equal {v {}} [on m mget k none]
        assert_error "ERR Invalid MVCC Tstamp" {on m keydb.mvccrestore k x -1 short}
        assert_equal OK [on m keydb.mvccrestore k 1 -1 $good]
        assert_equal v [on m get k]
        wait_same m r
        assert {![string match *cmdstat_restore:* [on r info commandstats]]}
        assert_equal OK [on m keydb.mvccrestore k 18446744073709551615 -1 $good]
        assert_equal x [on m get k]
    }
}

test "KEYDB.ACTIVE of a node alone, and of a server that is none" {noconn keydb} {
    with_group [list m ours $::active_options p ours {}] {
        foreach words {peers ready {wait 0} {forget 01234567-89ab-4def-8123-456789abcdef}} {
            assert_error "ERR This server is not an active replica" {on p keydb.active {*}$words}
        }
        assert_equal {} [on m keydb.active peers]
        assert_equal {status READY} [on m -typed keydb.active ready]
        on m set k v
        assert_equal {0 0} [on m keydb.active wait 0]
        foreach {words text} {
            {wait x} "ERR timeout is not an integer or out of range"
            {wait -1} "ERR timeout is negative"
            {forget x} "ERR A name is a UUID*"
            {forget 01234567-89ab-4def-8123-456789abcdef x} "ERR syntax error"
            {forget 01234567-89ab-4def-8123-456789abcdef force} "ERR No member has this name"
            {forget 01234567-89ab-4def-8123-456789abcdef} "ERR No member has this name"
            {wait} "ERR wrong number of arguments*"
            nothing "ERR unknown subcommand*"
        } {
            assert_error $text {on m keydb.active {*}$words}
        }
        assert_error "ERR That is this node*" \
            {on m keydb.active forget [replication m active_name]}
        on m replicaof add 127.0.0.1 1
        set peer [lindex [on m keydb.active peers] 0]
        assert_equal {127.0.0.1 1 0} [lmap field {host port member} {dict get $peer $field}]
        assert {[dict get $peer link] in {connect connecting handshake}}
        assert_match "*WAIT <timeout>*" [on m keydb.active help]
    }
}

test "replica-quorum counts where replica-serve-stale-data is no" {noconn keydb} {
    with_group [list m ours $::active_options] {
        on m set k v
        on m config set replica-serve-stale-data no
        assert_equal v [on m get k]
        on m replicaof add 127.0.0.1 1
        wait_until {[catch {on m get k}]} 5000
        assert_error "MASTERDOWN *" {on m get k}
        assert_error "NOTREADY fewer links are up than replica-quorum wants" {on m keydb.active ready}
        assert_equal down [replication m master_link_status]
        assert_match "fewer links*" [replication m active_state]
        on m config set replica-quorum 0
        wait_until {![catch {on m get k}]} 5000
        assert_equal {status READY} [on m -typed keydb.active ready]
        assert_equal up [replication m master_link_status]
        on m config set replica-quorum 1
        wait_until {[catch {on m get k}]} 5000
        on m config set replica-serve-stale-data yes
        assert_equal v [on m get k]
        assert_equal up [replication m master_link_status]
    }
}

test "a node that loads its data is not ready, and says so" {noconn keydb} {
    lassign [server_launch_loading --key-load-delay 10000 --active-replica yes \
        --replicaof "127.0.0.1 1"] id c
    assert_equal {error {NOTREADY data is being loaded}} [$c -typed keydb.active ready]
    assert_match "*role:active-replica\r\nmaster_global_link_status:down\r\n*" [$c info replication]
    assert_error "LOADING *" {$c keydb.active peers}
    wait_until {[$c -typed keydb.active ready] eq {status READY}} 30000
    assert_match "*\r\nmaster_link_status:up\r\n*" [$c info replication]
    assert_equal 0 [process_stop $id]
}

# Two nodes that have each other as masters.
proc active_pair body {
    with_group [list a ours $::active_options b ours $::active_options] {
        on a replicaof 127.0.0.1 [member b port]
        on b replicaof 127.0.0.1 [member a port]
        wait_until {[replication a active_links_up] == 1 && [replication b active_links_up] == 1} 30000
        wait_until {[replication a active_members] == 2 && [replication b active_members] == 2} 30000
        uplevel 1 $body
    }
}

test "two nodes: PEERS, WAIT, INFO, ROLE" {noconn keydb} {
    active_pair {
        on a set k v
        assert_equal {1 0} [on a keydb.active wait 5000]
        assert_equal v [on b get k]
        assert_equal [replication b active_name] [dict get [lindex [on a keydb.active peers] 0] name]
        set peer [lindex [on a keydb.active peers] 0]
        assert_equal [list 127.0.0.1 [member b port] up 1 0] \
            [lmap field {host port link member given-up} {dict get $peer $field}]
        assert_equal connected [lindex [on a role] 3]
        assert_equal 1 [replication a connected_masters]
        wait_until {[replication a active_frontier_age_ms] >= 0} 30000
        # One that is away holds the wait until it is back.
        process_signal [member b process] STOP
        on a incr n
        assert_equal {0 1} [on a keydb.active wait 300]
        assert_equal v [on a get k]
        assert_equal up [replication a master_link_status]
        process_signal [member b process] CONT
        assert_equal {1 0} [on a keydb.active wait 10000]
    }
}

# The only member's part of a comparison, as {state equal different undecided keys}.
proc compared {node args} {
    set reply [lindex [on $node keydb.active compare {*}$args] 0]
    lmap field {state equal different undecided keys} {dict get $reply $field}
}

# A change that peers do not get.
proc change_here {node args} {
    on $node eval {redis.set_repl(redis.REPL_NONE); redis.call(unpack(ARGV))} 0 {*}$args
}

test "COMPARE finds nothing where nothing differs, also while both write" {noconn keydb} {
    active_pair {
        on a eval {for i = 1, 2000 do redis.call('SET', 'k' .. i, i) end} 0
        on b rpush list 1 2 3
        on b expire list 1000
        assert_equal {1 0} [on a keydb.active wait 5000]
        assert_equal {done 16384 0 0 0} [compared a 20000]
        assert_equal {done 16384 0 0 0} [compared b 20000 [replication a active_name]]
        # One walk has read everything before the other one begins: what changes in between cannot be told.
        foreach {node other} {a b b a} {
            process_signal [member $other process] STOP
            on $node keydb.active compare 1
            wait_for {[string match "*state:ended*" [on $node debug digest-walk state]]} 20000
            for {set i 0} {$i < 50} {incr i} {
                on $node incr n$i
                on $node rpush l[expr {$i % 7}] $i
            }
            process_signal [member $other process] CONT
            wait_for {[replication $node active_compared] == 2} 30000
            assert_equal {0 0} \
                [lmap field {compared_different compared_keys} {replication $node active_$field}]
        }
    }
}

test "COMPARE finds keys that differ, and they are written anew" {noconn keydb} {
    active_pair {
        on a eval {for i = 1, 2000 do redis.call('SET', 'k' .. i, i) end} 0
        on b sadd set 1 2 3
        assert_equal {1 0} [on a keydb.active wait 5000]
        wait_until {[on a scard set] == 3} 5000
        change_here a set k7 other
        change_here b sadd set 4
        change_here a set only-a 1
        change_here b set only-b 1
        change_here b del k9
        lassign [compared a 20000] state equal different undecided keys
        assert_equal {done 16379 5 0 5} [list $state $equal $different $undecided $keys]
        foreach node {a b} {
            wait_until {[on $node mget only-a only-b k9] eq {1 1 9}} 10000
            wait_until {[on $node scard set] == [on a scard set]} 10000
        }
        wait_until {[on a get k7] eq [on b get k7]} 10000
        wait_until {[replication a active_dirty_keys] + [replication b active_dirty_keys] == 0} 10000
        assert_equal {1 0} [on a keydb.active wait 5000]
        assert_equal {1 0} [on b keydb.active wait 5000]
        assert_equal {done 16384 0 0 0} [compared b 20000]
        assert_equal {1 5 5} \
            [lmap field {compared compared_different compared_keys} {replication a active_$field}]
    }
}

test "active-repair-rate bounds how many keys a second are written anew; the log tells when it is done" {noconn keydb} {
    active_pair {
        on a config set active-repair-rate 2
        on b config set active-repair-rate 2
        on a eval {for i = 1, 100 do redis.call('SET', 'k' .. i, i) end} 0
        assert_equal {1 0} [on a keydb.active wait 5000]
        for {set i 1} {$i <= 10} {incr i} {
            change_here a set k$i other
        }
        pause 1100
        assert_equal 10 [lindex [compared a 20000] 4]
        set begun [clock milliseconds]
        wait_for {[replication a active_repaired_keys] + [replication b active_repaired_keys] == 10} 30000
        assert {[clock milliseconds] - $begun > 2500}
        wait_for {[on b get k10] eq "other"} 10000
        wait_for {[regexp {are clean: \d+ were written anew} \
            "[process_log [member a process]][process_log [member b process]]"]} 10000
    }
}

test "SAVE needs no other process for what is not settled" {noconn keydb} {
    active_pair {
        on a set n 0
        assert_equal {1 0} [on a keydb.active wait 5000]
        member_kill a
        with_fault fork:0 {
            member_start a $::active_options
        }
        on a replicaof 127.0.0.1 [member b port]
        wait_until {[replication a active_links_up] == 1 && [replication b active_links_up] == 1} 30000
        exec kill -STOP [member b pid]
        for {set i 1} {$i <= 50} {incr i} {
            on a incr n
        }
        assert {[replication a active_window_keys] > 0} "operations that are not settled"
        assert_equal OK [on a save]
        member_kill a
        member_start a $::active_options
        assert_equal 50 [on a get n]
        assert {[replication a active_window_keys] > 0} "they are not settled in the file either"
        exec kill -CONT [member b pid]
        on a replicaof 127.0.0.1 [member b port]
        wait_until {[on b get n] == 50} 30000
        assert_equal 0 [replication b active_operations_late]
    }
}

test "COMPARE of nodes that ask each other, and of one that no link leads to" {noconn keydb} {
    active_pair {
        on a set k v
        assert_equal {1 0} [on a keydb.active wait 5000]
        foreach node {a b} {on $node debug pause-cron 1}
        foreach node {a b} {on $node keydb.active compare 1}
        pause 300
        assert_error "ERR A comparison is going on already" {on a keydb.active compare 1}
        foreach node {a b} {on $node debug pause-cron 0}
        foreach node {a b} {wait_for {[replication $node active_compared] == 1} 30000}
        assert_error "ERR syntax error" {on a keydb.active compare 1 a b}
        on a replicaof no one
        wait_until {[replication a active_links_up] == 0} 10000
        assert_equal no-link [lindex [compared a 20000] 0]
    }
}
