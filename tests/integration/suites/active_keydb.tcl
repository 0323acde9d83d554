# Active nodes and active servers of KeyDB 6.3.4. What KeyDB sends is here also written by hand, as its wire is known;
# the tests with the program itself run where KEYDB_ORACLE names it.

set keydb_uuid 11112222-3333-4444-9555-666677778888
set other_uuid 99992222-3333-4444-9555-666677778888

proc bulks words {
    set bytes "*[llength $words]\r\n"
    foreach word $words {
        append bytes "\$[string length $word]\r\n$word\r\n"
    }
    return $bytes
}

proc envelope {uuid mvcc args} {
    return [bulks [list RREPLAY $uuid [join [lmap words $args {bulks $words}] {}] 0 $mvcc]]
}

proc wrapped {uuid mvcc inside} {
    return [bulks [list RREPLAY $uuid $inside 0 $mvcc]]
}

# KeyDB's time: milliseconds from now on, and a counter.
proc mvcc {{ms 0} {counter 0}} {
    return [expr {([clock milliseconds] + $ms) << 20 | $counter}]
}

# A snapshot of strings: KEY VALUE MVCC ..., where KEY may be a name and a deadline.
proc stamped_snapshot args {
    set records {}
    foreach {name_deadline value mvcc} $args {
        lassign $name_deadline key deadline
        append records [expr {$deadline ne {} ? "\xfc[binary format w $deadline]" : {}}]
        append records \xfa\x0bmvcc-tstamp [format %c [string length $mvcc]] $mvcc
        append records \0 [format %c [string length $key]] $key [format %c [string length $value]] $value
    }
    return REDIS0009\xfe\0$records\xff[string repeat \0 8]
}

# A node, `a`, that follows a server which speaks as KeyDB does, with this snapshot.
proc with_keydb_model {snapshot body} {
    with_group {a ours {active-replica yes multi-master yes}} {
        set answers [dict create {REPLCONF CAPA} "+OK active-replica\r\n" {REPLCONF UUID} "+$::keydb_uuid\r\n" \
            PSYNC "+FULLRESYNC [string repeat 7 40] 1000\r\n[sized [uplevel 1 $snapshot]]"]
        set port [fake_master $answers]
        on a replicaof 127.0.0.1 $port
        try {
            wait_for {[string match "*link=up*" [on a info replication]]}
            uplevel 1 $body
        } finally {
            fake_close
        }
    }
}

proc own_uuid {} {
    return [lindex [lsearch -inline -glob [fake_requests] "REPLCONF uuid *"] 2]
}

proc psyncs {} {
    return [llength [lsearch -all -index 0 [fake_requests] PSYNC]]
}

test "data of a KeyDB server: of each key the younger value stays" {noconn} {
    with_group {a ours {active-replica yes multi-master yes}} {
        on a mset younger ours older ours own ours
        on a del gone
        set answers [dict create {REPLCONF CAPA} "+OK active-replica\r\n" {REPLCONF UUID} "+$::keydb_uuid\r\n" PSYNC \
            "+FULLRESYNC [string repeat 7 40] 1000\r\n[sized [stamped_snapshot younger theirs [mvcc 500] older theirs \
            [mvcc -5000] new theirs [mvcc -5000] {endless 9223372036854775807} theirs [mvcc -5000] \
            {ends 9223372036854775806} theirs [mvcc -5000]]]"]
        on a replicaof 127.0.0.1 [fake_master $answers]
        wait_for {[string match "*link=up*" [on a info replication]]}
        assert_equal {theirs ours ours theirs} [on a mget younger older own new]
        assert_equal {theirs -1 9223372036854775806} \
            [list [on a get endless] [on a pexpiretime endless] [on a pexpiretime ends]]
        fake_close
    }
}

test "envelopes of a KeyDB server: each operation counts once, by whatever way it comes" {noconn} {
    with_keydb_model {stamped_snapshot n 10 [mvcc]} {
        set first [envelope $::keydb_uuid [set m1 [mvcc 1]] {INCRBY n 1}]
        set nested [wrapped $::keydb_uuid [mvcc 2] [envelope $::other_uuid [set m2 [mvcc 2 1]] {INCRBY n 10}]]
        set own [wrapped $::keydb_uuid [mvcc 3] [envelope [own_uuid] [mvcc 3] {INCRBY n 100}]]
        fake_send $first$first$nested$own[envelope $::other_uuid $m2 {INCRBY n 10}]
        fake_send [envelope $::keydb_uuid [mvcc 4] {SET end 1}]
        wait_for {[on a exists end]}
        assert_equal 21 [on a get n]
        assert_equal 0 [section_field a replication active_operations_late]
    }
}

test "envelopes: transactions come whole, commands on several keys become operations" {noconn} {
    with_keydb_model {stamped_snapshot n 10 [mvcc]} {
        set at 0
        foreach words {
            {MULTI} {SET t 1} {INCR t} {EXEC} {RPUSH l a b c} {LMOVE l m LEFT RIGHT} {MSET x 1 y 2} {RENAME x z}
            {SET x 3} {DEL y no} {SADD s a b} {SMOVE s s2 a} {SUNIONSTORE s3 s s2}
            {COPY z w} {MOVE w 2} {PING}
            {SET end 1}
        } {
            fake_send [envelope $::keydb_uuid [mvcc [incr at]] $words]
        }
        wait_for {[on a exists end]}
        assert_equal {2 3 {} 1} [on a mget t x y z]
        assert_equal {{b c} a b a {a b}} [list [on a lrange l 0 -1] [on a lrange m 0 -1] [on a smembers s] \
            [on a smembers s2] [lsort [on a smembers s3]]]
        on a select 2
        assert_equal 1 [on a get w]
        on a select 0
    }
}

test "keys that a KeyDB server passes on: what is known is passed over" {noconn} {
    with_keydb_model {stamped_snapshot theirs 1 [mvcc -5000]} {
        on a set ours 2
        set payload [on a dump theirs]
        # A key of a file that it has loaded has no time: 0.
        set at 0
        foreach {key time} [list ours [mvcc -5000] new [mvcc -5000] ours 0 loaded 0] {
            fake_send [envelope $::keydb_uuid [mvcc [incr at]] \
                [list KEYDB.MVCCRESTORE $key $time 9223372036854775807 $payload]]
        }
        fake_send [envelope $::keydb_uuid [mvcc [incr at]] {SET end 1}]
        wait_for {[on a exists end]}
        assert_equal {2 1 1 -1} [list {*}[on a mget ours new loaded] [on a ttl new]]
    }
}

test "a damaged envelope ends the link, with UUID, depth and byte in the log; nothing of it counts" {noconn} {
    with_keydb_model {stamped_snapshot n 10 [mvcc]} {
        set before [fake_count]
        set good [envelope $::keydb_uuid [mvcc 1] {INCR n}]
        set inside [bulks [list RREPLAY $::other_uuid "[bulks {INCR n}]rubbish" 0 [mvcc 2]]]
        dict set fake::answers PSYNC "+CONTINUE\r\n"
        fake_send $good[wrapped $::keydb_uuid [mvcc 2] $inside]
        wait_for {[fake_count] > $before}
        assert_match "*RREPLAY of $::other_uuid at depth 2, byte 21 of its payload: no command begins here*" \
            [process_log [member a process]]
        wait_for {[psyncs] == 2}
        assert_equal [list PSYNC [string repeat 7 40] [expr {1001 + [string length $good]}]] \
            [lindex [lsearch -all -inline -index 0 [fake_requests] PSYNC] end]
        fake_send [envelope $::keydb_uuid [mvcc 3] {INCR n}]
        wait_for {[on a get n] == 12}
    }
}

# ---- a server that follows as KeyDB does

# A connection that has its data, and the words of the answer to PSYNC.
proc keydb_follower {name uuid args} {
    set link [member_connect $name]
    assert_equal {status {OK active-replica}} [$link -typed replconf capa psync2 capa activeExpire]
    assert_equal 36 [string length [$link replconf uuid $uuid]]
    $link -send psync {*}$args
    set answer [$link -line]
    if {[lindex $answer 0] eq "+FULLRESYNC"} {
        while {[set size [$link -line]] eq {}} {}
        set ::keydb_snapshot [$link -bytes [string range $size 1 end]]
        set ::keydb_offset [lindex $answer 2]
    }
    return [list $link {*}$answer]
}

# The next envelope that is not a PING: {UUID {command ...} db mvcc}.
proc next_envelope link {
    while 1 {
        set words [$link -read]
        incr ::keydb_offset [string length [bulks $words]]
        assert_equal {RREPLAY 5} [list [lindex $words 0] [llength $words]]
        lassign $words - uuid payload db mvcc
        set commands {}
        while {[regexp {^\*(\d+)\r\n} $payload head count]} {
            set payload [string range $payload [string length $head] end]
            set command {}
            for {set i 0} {$i < $count} {incr i} {
                regexp {^\$(\d+)\r\n} $payload head size
                set at [string length $head]
                lappend command [string range $payload $at [expr {$at + $size - 1}]]
                set payload [string range $payload [expr {$at + $size + 2}] end]
            }
            lappend commands $command
        }
        if {$commands ne "PING" && $commands ne "ping"} {
            return [list $uuid $commands $db $mvcc]
        }
    }
}

test "who follows as KeyDB does gets envelopes, without what it did itself, and continues" {noconn} {
    with_keydb_model {stamped_snapshot theirs 1 [mvcc -5000]} {
        on a set ours 1
        set own [own_uuid]
        lassign [keydb_follower a $::keydb_uuid ? -1] link - id
        assert_match "REDIS0009*mvcc-tstamp*theirs*" $::keydb_snapshot
        fake_send [envelope $::keydb_uuid [mvcc] {INCR theirs}][envelope $::other_uuid [set at [mvcc]] {INCR theirs}]
        assert_equal [list $::other_uuid {{INCR theirs}} 0 $at] [next_envelope $link]
        on a set x 1
        set first [next_envelope $link]
        assert_equal [list $own {{set x 1}} 0] [lrange $first 0 2]
        on a multi
        on a incr x
        on a publish news 1
        on a exec
        lassign [next_envelope $link] uuid commands db second
        assert_equal [list $own {MULTI {incr x} {publish news 1} EXEC}] [list $uuid $commands]
        assert {$second > [lindex $first 3]} "[lindex $first 3], then $second"
        on a hset h f v g w
        next_envelope $link
        on a hpexpireat h [set deadline [expr {[clock milliseconds] + 500000}]] fields 2 f g
        assert_equal [list MULTI [list PEXPIREMEMBERAT h f $deadline] [list PEXPIREMEMBERAT h g $deadline] EXEC] \
            [lindex [next_envelope $link] 1]
        $link -close
        wait_for {[string match "*connected_slaves:0*" [on a info replication]]}
        on a set missed 1
        lassign [keydb_follower a $::keydb_uuid $id [expr {$::keydb_offset + 1}]] link answer
        assert_equal +CONTINUE $answer
        assert_equal {{{set missed 1}} 0} [lrange [next_envelope $link] 1 2]
        $link -close
    }
}

# What the server did of late to a key is not taken back by a value that lacks what it is doing now.
test "who follows as KeyDB does and writes gets operations of others instead of values that correct them" {noconn} {
    with_keydb_model {stamped_snapshot n 10 [mvcc -5000]} {
        lassign [keydb_follower a $::keydb_uuid ? -1] link
        fake_send [envelope $::keydb_uuid [mvcc] {INCRBY n 1}]
        wait_for {[on a get n] == 11}
        fake_send [envelope $::other_uuid [mvcc -200] {INCRBY n 20}]
        assert_equal {{INCRBY n 20}} [lindex [next_envelope $link] 1]
        assert_equal 31 [on a get n]

        # Of what it does not change it gets the value.
        on a incrby free 5
        next_envelope $link
        fake_send [envelope $::other_uuid [mvcc -100] {INCRBY free 1}]
        assert_equal [list [own_uuid] {{SET free 6}} 0 0] [next_envelope $link]
        $link -close
    }
}

# ---- a client that sends envelopes by itself

# With 2 words, or those behind the payload, too.
proc replay {name uuid words args} {
    on $name rreplay $uuid [bulks $words] {*}$args
}

proc check_replay name {
    assert_error "ERR *master*" {replay $name $::keydb_uuid {SET k v}}
    assert_equal OK [on $name debug force-master yes]
    on $name select 4
    assert_equal OK [replay $name $::keydb_uuid {SET k four}]
    assert_equal four [on $name get k]
    assert_equal OK [replay $name $::keydb_uuid {SET k two} 2]
    assert_equal two [on $name get k] ;# the connection's database is that of the last one
    on $name select 4
    assert_equal four [on $name get k]

    # Each mvcc of a server counts once, whatever was sent without one.
    on $name select 0
    foreach {times ms words} {1 10 {INCR n} 1 20 {INCR n} 2 0 {INCR n}} {
        for {set i 0} {$i < $times} {incr i} {
            assert_equal OK [replay $name $::keydb_uuid $words 0 [expr {$ms ? [mvcc $ms] : 0}]]
        }
    }
    assert_equal 4 [on $name get n]
    set at 100
    foreach {words n} {{MULTI} 4 {INCR n} 4 {INCR n} 4 {EXEC} 6 {LPUSH n x} 6 {DEL n} {}} {
        assert_equal OK [replay $name $::keydb_uuid $words 0 [mvcc [incr at]]]
        assert_equal $n [on $name get n]
    }
    assert_equal OK [on $name rreplay $::keydb_uuid [envelope $::other_uuid [mvcc 1] {SET inner 1}] 0 [mvcc [incr at]]]
    assert_equal 1 [on $name get inner]
    foreach {uuid db mvcc} [list $::keydb_uuid 99 1  $::keydb_uuid x 1  $::keydb_uuid 0 x  bad 0 1] {
        assert_error "ERR *" {replay $name $uuid {SET no 1} $db $mvcc}
    }
    assert_equal 0 [on $name exists no]
}

test "a client sends envelopes by itself: what it may, and what comes of them" {noconn} {
    with_group {a ours {active-replica yes enable-debug-command yes}} {
        check_replay a
        assert_match "*flags=M *" [on a client list]
        on a debug force-master no ;# KeyDB ends there with an assertion
        assert_error "ERR *master*" {replay a $::keydb_uuid {SET k v}}
        assert_equal OK [on a debug force-master flagonly]
        assert_equal OK [replay a $::keydb_uuid {SET k v}]
        # Behind a reset: nobody is a master by himself. What is here counts once.
        on a reset
        assert_error "ERR *master*" {replay a $::keydb_uuid {SET k v}}
        on a debug force-master yes
        set seen [mvcc 500]
        for {set i 0} {$i < 3} {incr i} {
            assert_equal OK [replay a $::keydb_uuid {INCR once} 0 $seen]
        }
        assert_equal 1 [on a get once]
        foreach payload [list rubbish [bulks {INCR once}]rubbish "*1\r\n" [string repeat "*5\r\n" 70]] {
            assert_error "ERR *" {on a rreplay $::keydb_uuid $payload 0 [mvcc 600]}
        }
        assert_equal 1 [on a get once]
        on a multi
        assert_error "ERR Command not allowed inside a transaction" {replay a $::keydb_uuid {INCR once}}
        assert_error "EXECABORT*" {on a exec}
        on a acl setuser someone on nopass +@all -acl ~*
        on a auth someone x
        assert_error "NOPERM *" {replay a $::keydb_uuid {INCR once}}
    }
    with_group {p ours {enable-debug-command yes}} {
        on p debug force-master yes
        assert_error "ERR This server is not an active replica" {replay p $::keydb_uuid {SET k v}}
    }
}

test "what a client sends in envelopes is passed on, under the names of its servers" {noconn} {
    with_keydb_model {stamped_snapshot n 10 [mvcc -5000]} {
        lassign [keydb_follower a $::keydb_uuid ? -1] link
        on a debug force-master yes
        set at [mvcc 1]
        replay a $::other_uuid {INCRBY n 5} 0 $at
        assert_equal [list $::other_uuid {{INCRBY n 5}} 0 $at] [next_envelope $link]
        # It comes by the link, too, and the other way round.
        fake_send [envelope $::other_uuid $at {INCRBY n 5}][envelope $::keydb_uuid [set later [mvcc 2]] {INCRBY n 1}]
        wait_for {[on a get n] == 16}
        replay a $::keydb_uuid {INCRBY n 1} 0 $later
        assert_equal 16 [on a get n]
        $link -close
    }
}

# What each kind of server shows of its keys; digests of KeyDB are its own.
proc keys_of name {
    set seen {}
    foreach key [lsort [on $name keys *]] {
        switch [on $name type $key] {
            string { set value [on $name get $key] }
            list { set value [on $name lrange $key 0 -1] }
            set { set value [lsort [on $name smembers $key]] }
            hash { set value [lsort -stride 2 [on $name hgetall $key]] }
            zset { set value [on $name zrange $key 0 -1 withscores] }
            stream { set value [list [on $name xrange $key - +] [on $name xpending $key readers]] }
        }
        lappend seen "$key [expr {[on $name pttl $key] < 0 ? "none" : "some"}] $value"
    }
    return $seen
}

# Commands of every kind, one after the other.
proc write_all name {
    foreach words {
        {mset s 5 t text} {setbit bits 500 1} {pfadd hll a b} {rpush l a b c} {sadd set 1 two three} {hset h f v g 5}
        {zadd z 1.5 a -2 b} {del x} {xadd x * f v} {xgroup create x readers 0}
        {xreadgroup group readers al count 1 streams x >}
        {set ttl v px 500000} {expiremember set two 5000} {incr s} {append t more} {lmove l l2 left right} {lpop l}
        {spop set} {hincrby h g 3} {hincrbyfloat h e 1.5} {zpopmin z} {incrbyfloat f 0.25} {rename f f2}
        {del h2} {copy h h2}
        {getex ttl px 900000} {sinterstore set2 set set} {zunionstore z2 1 z} {set gone 1} {del gone none} {getset u 1}
        {eval {redis.call('set', KEYS[1], 1) return redis.call('incr', KEYS[1])} 1 e} {multi} {set m 1} {incr m} {exec}
        {setrange t 2 xyz} {lrem l 0 b} {bitop not bits2 bits} {set nx 1 nx} {setex ex 500 v} {persist ttl} {unlink u}
        {georadius none 0 0 1 km} {smove set set3 three} {hset h f v}
    } {
        on $name {*}$words
    }
}

proc wait_both {a b} {
    set mark [on $a incr mark:$a]
    if {![wait_until {[on $b get mark:$a] eq $mark} 20000]} {
        fail "what $a wrote has not come to $b:\n[log_tail [member $a log] 20]\n[log_tail [member $b log] 20]"
    }
    if {![wait_until {[keys_of $a] eq [keys_of $b]} 20000]} {
        set differ [lmap x [keys_of $a] y [keys_of $b] {expr {$x eq $y ? [continue] : "$x | $y"}}]
        fail "$a and $b differ: [join $differ \n]"
    }
}

test "KeyDB's own answers to a client that sends envelopes are ours" {noconn} {
    with_group [list k keydb {active-replica yes}] {
        check_replay k
    }
}

test "KeyDB to ours: its data and all kinds of commands arrive, and go on to our nodes; a cut link continues" {noconn} {
    set active {active-replica yes multi-master yes}
    with_group [list k keydb $active a ours $active b ours $active] {
        set via [proxy_open k]
        write_all k
        follow b a
        follow a k $via
        wait_both k a
        write_all k
        wait_both k a
        proxy $via down
        wait_for {![string match "*link=up*" [on a info replication]]}
        write_all k
        proxy $via up
        wait_both k a
        wait_both k b
        wait_for {[on a debug digest] eq [on b debug digest]}
        assert_equal {1 1} [list [section_field k stats sync_full] [section_field k stats sync_partial_ok]]
    }
}

set active {active-replica yes multi-master yes}

test "ours to KeyDB: our data and all kinds of commands arrive, those of our other nodes, too" {noconn} {
    with_group [list k keydb $::active a ours $::active b ours $::active] {
        set via [proxy_open a]
        write_all a
        follow a b
        follow b a
        follow k a $via
        wait_both a k
        write_all a
        write_all b
        wait_both b a
        wait_both a k
        proxy $via down
        wait_for {[string match "*master_link_status:down*" [on k info replication]]}
        write_all b
        wait_both b a
        proxy $via up
        wait_both a k
        assert_equal {1 1} [list [section_field a stats sync_full] [section_field a stats sync_partial_ok]]
        assert_equal 1 [on a wait 1 5000]
    }
}

test "KeyDB and ours at once: both take writes, each is delivered once, messages too" {noconn} {
    with_group [list k keydb $::active a ours $::active b ours $::active] {
        follow k a
        wait_for {[string match "*master_link_status:up*" [on k info replication]]}
        foreach {name master} {a b b a a k} {
            on $name replicaof add 127.0.0.1 [member $master port]
            wait_for {[string match "*host=127.0.0.1,port=[member $master port]*" [on $name info replication]]}
        }
        foreach {from to} {a k k a b k k b a b} {
            write_all $from
            wait_both $from $to
        }
        foreach from {a b k} {
            for {set i 0} {$i < 10} {incr i} {
                on $from incr counted
            }
        }
        foreach name {a b k} {
            wait_for {[on $name get counted] == 30}
        }
        wait_both a k
        wait_for {[on a debug digest] eq [on b debug digest]}

        set listeners {}
        foreach name {a b k} {
            set listener [member_connect $name]
            $listener subscribe news
            lappend listeners $listener
        }
        foreach name {a b k} {
            on $name publish news of:$name
        }
        foreach listener $listeners {
            set heard [lsort [lmap message {1 2 3} {lindex [$listener -read] 2}]]
            assert_equal {of:a of:b of:k} $heard
            $listener -close
        }

        # Nothing goes round: both streams stand still.
        proc offsets {} {
            return [lmap name {a k} {section_field $name replication master_repl_offset}]
        }
        set seen [offsets]
        on a set last 1
        wait_for {[on k exists last]}
        wait_both a k
        set before [offsets]
        lassign $before ours theirs
        assert_range [expr {$ours - [lindex $seen 0]}] 1 1000
        assert_range [expr {$theirs - [lindex $seen 1]}] 1 4000
    }
}

test "from a KeyDB pair to a pair of ours, node by node, and back" {noconn} {
    with_group [list k keydb $::active l keydb $::active a ours $::active b ours $::active] {
        proc pair {x y} {
            on $x replicaof 127.0.0.1 [member $y port]
            on $y replicaof 127.0.0.1 [member $x port]
        }
        proc part {x y} {
            on $x replicaof remove 127.0.0.1 [member $y port]
            on $y replicaof remove 127.0.0.1 [member $x port]
        }
        foreach {x y z} {k l a  l a b  a b k  b k l} {
            pair $x $y
            write_all $x
            on $x incr steps
            wait_both $x $y
            wait_both $y $x
            part $x $y
            on $x flushall
        }
        assert_equal 4 [on k get steps]
    }
}

# ---- meshes while all write

# Each follows all others; waits until all are up.
proc active_mesh args {
    foreach what {join wait} {
        foreach name $args {
            foreach master $args {
                if {$name eq $master} {
                    continue
                }
                if {$what eq "join"} {
                    on $name replicaof 127.0.0.1 [member $master port]
                } elseif {![wait_until {[active_link_is_up $name $master]} 30000]} {
                    fail "$name has no link to $master:\n[on $name info replication]"
                }
            }
        }
    }
}

proc active_link_is_up {name master} {
    set port [member $master port]
    foreach line [split [string map {\r {}} [on $name info replication]] \n] {
        if {[member $name kind] eq "ours" && [string match "active_peer*port=$port,*link=up*" $line,] ||
            [string match "active_peer*link=up*port=$port,*" $line,]} {
            return 1
        }
        if {[regexp {^(master(?:_\d+)?)_port:(\d+)$} $line - prefix found] && $found == $port &&
            [member $name kind] eq "keydb"} {
            return [expr {[replication $name ${prefix}_link_status] eq "up"}]
        }
    }
    return 0
}

# Each of them counts in keys of its own.
proc count_at {names times} {
    for {set i 0} {$i < $times} {incr i} {
        foreach name $names {
            [on $name] -send incr own:$name
            [on $name] -send hincrby hash:$name f 1
            [on $name] -send rpush list:$name $i
        }
    }
    foreach name $names {
        for {set i 0} {$i < 3 * $times} {incr i} {
            [on $name] -read
        }
        incr ::counted($name) $times
    }
}

proc wait_counted {names writers} {
    foreach name $names {
        foreach writer $writers {
            set expected [lrepeat 3 $::counted($writer)]
            if {![wait_until {[list [on $name get own:$writer] [on $name hget hash:$writer f] \
                [on $name llen list:$writer]] eq $expected} 20000]} {
                fail "$name has [on $name get own:$writer] [on $name hget hash:$writer f] [on $name llen list:$writer]\
                    of what $writer has counted, $expected"
            }
        }
    }
}

set meshed [list {*}$active allow-write-during-load yes]

test "one KeyDB and two of ours write at once, also while a link is cut: nothing is lost" {noconn} {
    with_group [list k keydb $::meshed a ours $::active b ours $::active] {
        array unset ::counted
        set via [proxy_open a]
        active_mesh a b
        on a replicaof 127.0.0.1 [member k port]
        wait_for {[active_link_is_up a k]}
        follow k a $via
        wait_link k
        foreach round {before cut healed} {
            if {$round eq "cut"} {
                proxy $via down
                wait_for {![link_is_up k]}
            }
            count_at {k a b} 100
            if {$round eq "cut"} {
                proxy $via up
            }
        }
        wait_link k
        wait_counted {k a b} {k a b}
        wait_for {[on a debug digest] eq [on b debug digest]}
        assert_equal 1 [section_field a stats sync_partial_ok]
    }
}

# It knows no time of the keys of its file. Small numbers share one, so here are none.
test "a KeyDB server that is started again with its file takes nothing back" {noconn} {
    with_group [list k keydb $::meshed a ours $::active b ours $::active] {
        active_mesh a b
        active_mesh k a
        on k mset old first both 10001
        wait_both k a
        on k save
        member_kill k
        on a mset old second new second
        on b incr both
        member_start k
        assert_equal {first 10001} [on k mget old both]
        active_mesh k a
        wait_for {[on k exists new]}
        foreach name {k a b} {
            wait_for {[on $name mget old both new] eq {second 10002 second}}
        }
        on k incr both
        wait_for {[on b get both] == 10003}
    }
}

test "data of a KeyDB server without their times are older than ours" {noconn} {
    with_group {a ours {active-replica yes multi-master yes}} {
        on a mset changed ours gone ours
        on a del gone
        set answers [dict create {REPLCONF CAPA} "+OK active-replica\r\n" {REPLCONF UUID} "+$::keydb_uuid\r\n" PSYNC \
            "+FULLRESYNC [string repeat 7 40] 1000\r\n[sized [stamped_snapshot changed theirs 0 gone theirs 0 new \
            theirs 0]]"]
        on a replicaof 127.0.0.1 [fake_master $answers]
        wait_for {[string match "*link=up*" [on a info replication]]}
        assert_equal {ours {} theirs} [on a mget changed gone new]
        fake_close
    }
}
