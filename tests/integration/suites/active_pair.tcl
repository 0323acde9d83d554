# Two nodes that both take writes: each is told to receive from the other. When links are healed they are equal, and
# hold what one server holds that did all operations in the order of their stamps.

# Starts the nodes a and b, joined through proxies: $to_a is that of what a receives, $to_b that of what b receives.
proc with_pair {options body} {
    upvar 1 to_a to_a to_b to_b
    set options [dict merge {active-replica yes} $options]
    uplevel 1 [list with_group [list a ours $options b ours $options] "
        set to_a \[proxy_open b\]
        set to_b \[proxy_open a\]
        follow a b \$to_a
        follow b a \$to_b
        wait_joined a b
        $body
    "]
}

# The states of a node's links.
proc links_of name {
    set states {}
    foreach {all state} [regexp -all -inline -line {^active_peer\d+:.*link=([a-z]+)} [on $name info replication]] {
        lappend states $state
    }
    return $states
}

proc on_field {name field} {
    regexp "\n$field:(\\d+)" [on $name info all] - value
    return $value
}

# What a node's memory is once nothing that it wrote can change any more: until then it keeps what was before.
proc settled_memory name {
    wait_for {[on_field $name mem_active_window] == 0}
    return [on_field $name used_memory]
}

proc wait_joined args {
    foreach name $args {
        if {![wait_until {[links_of $name] eq "up"} 20000]} {
            fail "the link of $name is not up:\n[on $name info replication]\n[log_tail [member $name log] 20]"
        }
    }
}

# An operation of each node has come back from the other, so all that was written before is on both.
proc wait_equal {} {
    foreach {from to} {a b b a} {
        set mark [on $from incr "mark:$from"]
        if {![wait_until {[on $to get "mark:$from"] eq $mark} 20000]} {
            fail "what $from wrote has not come to $to:\n[on $to info replication]\n[log_tail [member $to log] 20]"
        }
    }
    if {![wait_until {[dataset a] eq [dataset b]} 20000]} {
        fail "a has [dataset a], b [dataset b]; they differ in [different_keys]"
    }
}

# What b evicts it has seen at 100; what a does meanwhile comes behind that, whoever was later.
proc evict_what_the_other_counts {options before_they_meet} {
    with_pair $options {
        on a set counter 100
        on b set other 1
        wait_equal
        wait_for {[regexp {\nmay_evict:1} [on b debug active]]}
        cut $to_a $to_b
        on a incr counter
        on b config set maxmemory-policy allkeys-random
        on b config set maxmemory 100000
        wait_for {[on b dbsize] == 0}
        assert {[on_field b evicted_keys] >= 2}
        on b config set maxmemory 0
        eval $before_they_meet
        proxy $to_a up
        proxy $to_b up
        follow a no ; # so that no link waits for its next attempt
        follow a b $to_a
        follow b a $to_b
        wait_joined a b
        wait_equal
        assert_equal {1 1} [list [on a get counter] [on b get counter]]
        assert_equal {{} {}} [list [on a get other] [on b get other]]
    }
}

proc different_keys {} {
    set keys [lsort -unique [concat [on a keys *] [on b keys *]]]
    return [lmap key $keys {
        if {[on a debug digest-value $key] eq [on b debug digest-value $key]} continue
        set key
    }]
}

# How many times a node has begun to write its state for peers.
proc state_children name {
    return [regexp -all {Background saving of the state for} [process_log [member $name process]]]
}

proc cut {to_a to_b} {
    proxy $to_a down
    proxy $to_b down
    foreach name {a b} {
        wait_for {[links_of $name] ne "up"}
    }
}

proc heal {to_a to_b} {
    proxy $to_a up
    proxy $to_b up
    wait_joined a b
}

# What each writes; and what both have then, with the writes of a before those of b, where the order matters not.
proc both {} {
    return {
    string    {set s:NAME NAME}                              {mget s:a s:b}                 {a b}
    counter   {incrby n 5}                                   {get n}                        10
    counters  {hincrby h n 7}                                {hget h n}                     14
    fields    {hset h NAME 1}                                {hmget h a b}                  {1 1}
    members   {sadd s NAME}                                  {sort s alpha}                 {a b}
    scores    {zadd z 1 NAME}                                {zrange z 0 -1}                {a b}
    added     {zincrby z2 2 m}                               {zscore z2 m}                  4
    pushes    {rpush l NAME}                                 {llen l}                       2
    entries   {xadd x * from NAME}                           {xlen x}                       2
    bits      {setbit bits 7 1}                              {get bits}                     \x01
    appended  {append text:NAME xyz}                         {mget text:a text:b}           {xyz xyz}
    deadline  {set e:NAME 1 ex 1000}                         {exists e:a e:b}               2
    script    {eval "return redis.call('incr', KEYS[1])" 1 c} {get c}                        2
    hidden    {getset g:NAME NAME}                           {mget g:a g:b}                 {a b}
    database  {copy n n:NAME db 0}                           {exists n:a n:b}               2
    }
}

with_server {} {
    test "what one of a pair writes is on the other one, of every type" {noconn} {
        with_pair {} {
            foreach {name command look expected} [both] {
                on a {*}[string map {NAME a} $command]
                wait_equal
                on b {*}[string map {NAME b} $command]
            }
            wait_equal
            foreach {name command look expected} [both] {
                assert_equal $expected [on a {*}$look] "$name on a"
                assert_equal $expected [on b {*}$look] "$name on b"
            }
            assert_equal {0 0} [list [on a exists nothing] [on b exists nothing]]
        }
    }

    test "transactions and scripts come whole" {noconn} {
        with_pair {} {
            set client [member_connect a]
            $client multi
            $client set t1 1
            $client incr t1
            $client lpush t2 x y
            $client del t3
            $client exec
            on b eval {
                for i = 1, 10 do redis.call('rpush', KEYS[1], i) end
                return redis.call('set', KEYS[2], 'x')
            } 2 t4 t5
            wait_equal
            assert_equal {2 2 10 x} [list [on b get t1] [on b llen t2] [on a llen t4] [on a get t5]]
        }
    }

    test "deadlines and deletions come to the other one" {noconn} {
        with_pair {} {
            on a mset k1 1 k2 2 k3 3
            wait_equal
            on b del k1
            on b expire k2 1000
            on a expireat k3 [expr {[clock seconds] + 1000}]
            wait_equal
            assert_equal {0 1 1} [list [on a exists k1] [expr {[on a ttl k2] > 900}] [expr {[on b ttl k3] > 900}]]
            on a persist k2
            on b unlink k3
            wait_equal
            assert_equal {-1 0} [list [on b ttl k2] [on a exists k3]]
        }
    }

    test "large values and many small ones come over" {noconn} {
        with_pair {} {
            on a set large [string repeat x 3000000]
            on a set medium [string repeat y 40000]
            on b eval {for i = 1, 2000 do redis.call('set', 'b:' .. i, i) end} 0
            on b append large tail
            wait_equal
            assert_equal {3000004 40000} [list [on a strlen large] [on b strlen medium]]
            assert_equal 2000 [llength [on a keys b:*]]
        }
    }

    test "a value that goes to another key is written down once, a long string not even that" {noconn} {
        with_pair {journal-memory-limit 0} { ;# the history stays, so nothing but the command changes the memory
            on a set s [string repeat x 20000000]
            on a eval {for i = 1, 1000 do redis.call('HSET', 'h', i, string.rep('x', 20000) .. i) end} 0
            on a config set rdbcompression no
            wait_equal
            foreach {words most} {{rename s s2} 2000000 {copy s2 s3} 2000000 {rename h h2} 30000000} {
                set before [settled_memory a]
                on a {*}$words
                wait_equal
                assert_range [expr {[settled_memory a] - $before}] -1000000 $most
            }
            assert_equal {20000000 20000000 1000} [list [on b strlen s2] [on b strlen s3] [on b hlen h2]]
            # What shares its memory does not change with it.
            on a append s2 tail
            on b setrange s3 0 y
            wait_equal
            assert_equal {20000004 y 20000000} [list [on b strlen s2] [on a getrange s3 0 0] [on a strlen s3]]
        }
    }

    foreach first {a b} second {b a} {
        test_each {first second} "a cut: both write, $first heals first, and counters are exact" {noconn} {
            with_pair {} {
                on a set n 1
                wait_equal
                cut $to_a $to_b
                on $first incrby n 3
                on $second incrby n 1
                foreach {name command look expected} [both] {
                    on $first {*}[string map [list NAME $first] $command]
                    on $second {*}[string map [list NAME $second] $command]
                }
                heal $to_a $to_b
                wait_equal
                assert_equal [expr {1 + 3 + 1 + 10}] [on a get n]
                foreach {name command look expected} [both] {
                    # Both may give an entry the same id: it is not made of the origin yet.
                    if {$name ni {counter database entries}} {
                        assert_equal $expected [on a {*}$look] "$name on a"
                    }
                }
            }
        }

        test_each {first second} "a cut: $first sets a key, then $second does: the later one stays" {noconn} {
            with_pair {} {
                on a set k 0
                wait_equal
                cut $to_a $to_b
                on $first set k $first
                on $first set gone 1
                after 5
                on $second set k $second
                on $second del k2
                heal $to_a $to_b
                wait_equal
                assert_equal [list $second $second] [list [on a get k] [on b get k]]
            }
        }
    }

    test "links that a client kills are made again, and nothing is lost" {noconn} {
        with_pair {} {
            for {set i 0} {$i < 300} {incr i} {
                on a incr na
                on b incr nb
                if {$i % 50 == 25} {
                    on a client kill type replica
                    on b client kill type replica
                }
            }
            wait_equal
            assert_equal {300 300} [list [on b get na] [on a get nb]]
        }
    }

    test "what comes waits for the end of CLIENT PAUSE" {noconn} {
        with_pair {} {
            wait_equal
            on b client pause 100000 write
            on a set paused 1
            assert {![wait_until {[on b exists paused]} 300]}
            on b client unpause
            wait_equal
            assert_equal 1 [on b get paused]
        }
    }

    test "a node says what it has sent to whom" {noconn} {
        with_pair {} {
            for {set i 0} {$i < 50} {incr i} {
                on a set key$i [string repeat x 1000]
            }
            wait_equal
            set pattern {receives=streams,sent=(\d+),sent_bytes=(\d+),lag_bytes=(\d+)}
            wait_for {[regexp $pattern [on a info replication] - sent bytes lag] && $lag == 0}
            assert_range $sent 50 80
            assert_range $bytes 50000 100000
        }
    }

    test "a peer without memory reads on when it has some" {noconn} {
        with_pair {} {
            wait_equal
            set limit [expr {[on_field b used_memory] + 5000000}]
            on b config set maxmemory $limit
            for {set i 0} {$i < 200} {incr i} {
                on a set key$i [string repeat $i 30000]
            }
            wait_for {[on_field b active_waits_for_memory] == 1}
            assert {[on_field b used_memory] - [on_field b mem_not_counted_for_evict] < $limit * 11 / 10 + 3000000}
            assert_match *,held=1,* [on b info replication]
            assert {[on b dbsize] < 200}
            on b config set maxmemory 0
            wait_equal
            assert_equal 200 [llength [on b keys key*]]
            assert_equal 0 [on_field b active_waits_for_memory]
            set waits [on_field b active_memory_waits]
            assert {$waits >= 1} ;# again, if what was freed meanwhile let it begin once more
            foreach line {"operations of peers wait" "operations of peers are taken"} {
                assert_equal $waits [regexp -all $line [process_log [member b process]]]
            }
        }
    }

    test "what peers send evicts first" {noconn} {
        with_pair {} {
            wait_equal
            on b config set maxmemory-policy allkeys-random
            set limit [expr {[on_field b used_memory] + 5000000}]
            on b config set maxmemory $limit
            for {set i 0} {$i < 200} {incr i} {
                on a set key$i [string repeat $i 30000]
            }
            wait_equal
            assert {[on_field b evicted_keys] > 50}
            assert {[on b dbsize] < 150}
            wait_for {[on_field b used_memory] - [on_field b mem_not_counted_for_evict] <= $limit}
        }
    }

    test "an eviction stands behind what it saw, not behind what others did since" {noconn} {
        evict_what_the_other_counts {} {}
    }

    test "an eviction out of the append-only file stands behind what it saw, too" {noconn} {
        evict_what_the_other_counts {appendonly yes} {
            member_kill b
            member_start b
        }
    }

    test "nodes that both evict under load are equal in the end" {noconn} {
        with_pair {} {
            wait_equal
            foreach name {a b} {
                on $name config set maxmemory-policy allkeys-random
                on $name config set maxmemory [expr {[on_field $name used_memory] + 1500000}]
            }
            # Whoever evicts makes room on the other one, too, so it may take a while until both have.
            for {set i 0} {$i < 300 || ![on_field a evicted_keys] || ![on_field b evicted_keys]} {incr i} {
                assert {$i < 5000}
                foreach name {a b} {
                    set key key[expr {$i * 7 % 60}]
                    on $name append string:$key [string repeat $name 2000]
                    on $name rpush list:$key [string repeat $i 500]
                    on $name incr number:$key
                }
            }
            foreach name {a b} {
                on $name config set maxmemory 0
            }
            wait_equal
        }
    }

    test "a node that is told to receive from itself is told so in its log, once" {noconn} {
        with_group {a ours {active-replica yes}} {
            follow a a
            wait_for {[regexp {Link to the peer} [process_log [member a process]]]}
            assert {[links_of a] ne "up"}
            on a set k 1
            assert_equal 1 [regexp -all {Link to the peer [^\n]*itself} [process_log [member a process]]]
        }
    }

    test "REPLICAOF NO ONE ends the link; told again, all is caught up" {noconn} {
        with_pair {} {
            on a set k 1
            wait_equal
            follow b no
            on a set k 2
            on b set other 1
            assert_equal 1 [on b get k]
            follow b a $to_b
            wait_joined b
            wait_equal
            assert_equal 2 [on b get k]
        }
    }

    test "a node that is killed and started at once is heard again within seconds" {noconn} {
        with_pair {} {
            wait_equal
            wait_for {[lindex [on a debug window] 1] == 0} ; # it has heard beats of b
            member_kill b
            member_start b
            follow a no
            follow a b $to_a
            on b set new 1
            assert {[wait_until {[on a get new] eq 1} 9000]} [log_tail [member a log] 20]
        }
    }

    proc a_library name {
        return "#!lua name=$name\nredis.register_function('f_$name', function() return 1 end)"
    }

    proc libraries_of name {
        lmap library [on $name function list] {dict get $library library_name}
    }

    # Bytes of states that a node has got.
    proc state_bytes name {
        regexp {active_peer0:[^\r]*state_bytes=(\d+)} [on $name info replication] all bytes
        return $bytes
    }

    test "behind cut histories only what has changed crosses the link, deletions and increments, too" {noconn} {
        with_pair {} {
            foreach name {a b} {on $name config set active-history-limit 4096}
            on a eval {
                for i = 0, 3999 do redis.call('SET', 'k:' .. i, string.rep('x', 64)) end
                for i = 0, 99 do redis.call('INCRBY', 'n:' .. i, 1) redis.call('SADD', 's:' .. i, 1) end
            } 0
            on a function load [a_library kept]
            wait_equal
            cut $to_a $to_b
            foreach {name from} {a 0 b 400} {
                on $name eval {
                    for i = tonumber(ARGV[1]), ARGV[1] + 499 do
                        redis.call('SET', 'k:' .. i, ARGV[2] .. string.rep('y', 64))
                    end
                } 0 $from $name
                for {set i 0} {$i < 12} {incr i} {
                    on $name incr only:$name
                    on $name del k:[expr {2000 + $from + $i}]
                    on $name rpush l:$name $i
                    after 20
                }
            }
            proxy $to_a up
            proxy $to_b up
            wait_for {![catch {list [on a get only:b] [on b get only:a]} got] && $got eq {12 12}} 30000
            wait_joined a b
            wait_equal
            assert_equal {12 12 12 12 3976} [list [on a get only:a] [on a get only:b] [on a llen l:a] [on b llen l:b] \
                [llength [on a keys k:*]]]
            assert {[state_bytes a] + [state_bytes b] < 1.3 * 1000 * (64 + 26)}
            assert {[state_bytes a] + [state_bytes b] > 0}
            assert_equal {kept kept} [list [libraries_of a] [libraries_of b]]
        }
    }

    test "a node that comes back behind the histories of several takes a state once" {noconn} {
        set options {active-replica yes multi-master yes}
        with_group [list a ours $options b ours $options c ours $options d ours $options] {
            foreach name {b c d} {follow $name a}
            on a set k 1
            foreach name {b c d} {
                wait_for {[on $name get k] eq 1}
                on $name config set active-history-limit 4096
            }
            on a config set active-history-limit 4096
            follow d no
            for {set i 0} {$i < 40} {incr i} {
                on a set big:$i [string repeat x 1000]
                after 20
            }
            foreach name {b c} {
                wait_for {[on $name exists big:39]}
            }
            foreach name {a b c} {follow d $name}
            wait_for {![catch {on d exists big:39} is_there] && $is_there} 30000
            wait_for {[replication d active_links_up] == 3} 30000
            set states [regexp -all -inline {state_bytes=[1-9]\d*} [on d info replication]]
            assert_equal 1 [llength $states] $states
        }
    }

    test "behind a cut history a library of functions comes with all data" {noconn} {
        with_pair {} {
            on a function load [a_library old]
            on b set k 1
            wait_equal
            cut $to_a $to_b
            on a config set active-history-limit 4096
            on a function load [a_library new]
            on a function delete old
            for {set i 0} {$i < 40} {incr i} {
                on a set big:$i [string repeat x 1000]
                after 20
            }
            proxy $to_a up
            proxy $to_b up
            wait_for {![catch {on b exists big:39} is_there] && $is_there} 30000
            wait_joined a b
            wait_equal
            assert_equal {new new} [list [libraries_of a] [libraries_of b]]
        }
    }

    test "what a node writes while the state of the other one comes is put on top of it" {noconn} {
        with_pair {} {
            on a set n 1
            on a rpush l first
            wait_equal
            cut $to_a $to_b
            on a config set active-history-limit 4096
            for {set i 0} {$i < 40} {incr i} {
                on a set big:$i [string repeat x 1000]
                after 20
            }
            on a set n 10
            # The state is of the moment at which the child was forked, and takes a while.
            on a config set rdb-key-save-delay 50000
            proxy $to_b up
            wait_for {[state_children a] == 1}
            on b incrby n 5
            on b rpush l of_b
            on b set own 1
            on b set gone 1
            on b del gone
            on a config set rdb-key-save-delay 0
            wait_for {![catch {on b exists big:39} is_there] && $is_there eq 1} ; # meanwhile it is loading
            assert_equal {15 {first of_b}} [list [on b get n] [on b lrange l 0 -1]]
            assert_equal {1 0} [list [on b get own] [on b exists gone]]
            assert_match "*Operations that only this node had were put on top: 5*" [process_log [member b process]]
            proxy $to_a up
            wait_joined a b
            wait_equal
            assert_equal {15 {first of_b}} [list [on a get n] [on a lrange l 0 -1]]
            assert_equal 0 [state_children b]
        }
    }

    test "a plain master's data are united with ours, its stream are our operations" {noconn} {
        with_group {a ours {active-replica yes} b ours {active-replica yes} plain ours {}} {
            on plain set both theirs
            on plain set text x px 100000
            on plain rpush list a b
            on plain xadd stream 1-1 f v
            on plain function load "#!lua name=l\nredis.register_function('f', function() return 1 end)"
            on a set both ours
            on a set own 1
            set through [proxy_open plain]
            follow b a
            follow a plain $through
            wait_for {[lindex [links_of a] 0] eq "up"}
            assert_equal {theirs 1} [on a mget both own]
            assert_equal {{a b} {{1-1 {f v}}}} [list [on a lrange list 0 -1] [on a xrange stream - +]]
            assert_equal 1 [on a fcall f 0]
            assert_range [on a pttl text] 1 100000
            assert_equal 1 [section_field plain stats sync_full]

            proxy $through down
            wait_for {[lindex [links_of a] 0] ne "up"}
            on plain lmove list other left right
            on plain multi
            on plain set n 1
            on plain incr n
            on plain exec
            on plain eval {redis.call('set', 's', 1) redis.call('incr', 's')} 0
            on plain set expired 1 px 1
            on plain mset m1 1 m2 2
            on a set own 2
            proxy $through up
            wait_for {[on a exists m2]}
            assert_equal {2 2 1 2 2} [on a mget n s m1 m2 own]
            assert_equal {a b} [list {*}[on a lrange other 0 -1] {*}[on a lrange list 0 -1]]
            assert_equal {1 1} [list [section_field plain stats sync_full] [section_field plain stats sync_partial_ok]]
            wait_for {[on b exists m2]}
            wait_for {[on a debug digest] eq [on b debug digest]}
            assert_equal 0 [on plain exists own]
        }
    }

    foreach files {rdb aof} options {{appendonly no} {appendonly yes appendfsync always}} {
        test_each {files options} "a node that restarts ($files) gives its state to nobody who has all of it" {noconn} {
            with_pair $options {
                on a incr n
                on b incr n
                wait_equal
                wait_for {[lindex [on b debug window] 1] == 0}
                if {$files eq "rdb"} {
                    on b save
                }
                member_kill b
                member_start b
                on a incr n
                on b incr n
                follow b a $to_b
                wait_joined a b
                wait_equal
                assert_equal {4 4} [list [on a get n] [on b get n]]
                assert_equal {0 0} [list [state_children a] [state_children b]]
            }
        }
    }
}
