# DEBUG: its table, and the subcommands that look inside. LOLWUT.

# Index and content of each element in what DEBUG LISTPACK or QUICKLIST tells.
proc described text {
    set result {}
    foreach {all index content} [regexp -all -inline -line {^ *(\d+) at \d+: (.*)$} $text] {
        lappend result $index $content
    }
    return $result
}

proc eviction_sum {} {
    set sum 0
    foreach {all bytes} [regexp -all -inline {tot-mem: +(\d+)} [r debug client-eviction]] {
        incr sum $bytes
    }
    return $sum
}

with_server {enable-debug-command yes} {
    test "DEBUG HELP tells every subcommand once, and each exists" {keydb} {
        set lines [r debug help]
        assert_match "DEBUG <subcommand> *" [lindex $lines 0]
        set names {}
        foreach line [lrange $lines 1 end] {
            if {![string match " *" $line]} {
                lappend names [lindex [split $line] 0]
            }
        }
        assert_equal [lsort -unique $names] [lsort $names]
        assert {[llength $names] > 20}
        foreach name $names {
            set words [lrepeat 70 x]
            if {$name in {ASSERT PANIC SEGFAULT OPERATE PLACE REPLICATE DIGEST-KEY DIGEST-SLOT
                       DIGEST-VALUE}} {
                continue
            }
            assert_refused "ERR unknown subcommand or wrong number of arguments for '$name'. Try DEBUG HELP." \
                r debug $name {*}$words
        }
        assert_refused "ERR unknown subcommand or wrong number of arguments for 'nonsense'. Try DEBUG HELP." \
            r debug nonsense
    }

    test "DEBUG SDSLEN" {} {
        r mset short abc long [string repeat x 2000] number 12
        assert_match "key_sds_len:5, key_sds_avail:0, key_zmalloc: *, val_sds_len:3, val_sds_avail:0, val_zmalloc: *" \
            [r debug sdslen short]
        assert_match "*val_sds_len:2000,*" [r debug sdslen long]
        assert {[regexp {val_zmalloc: (\d+)} [r debug sdslen long] -> taken] && $taken >= 2000}
        assert_refused "ERR Not an sds encoded string." r debug sdslen number
        assert_refused "ERR no such key" r debug sdslen none
    }

    test "DEBUG of other types' structures, on a string" {} {
        r set k v
        assert_refused "ERR The value stored at the specified key is not represented using an hash table" \
            r debug htstats-key k
        assert_refused "ERR Not a listpack encoded object." r debug listpack k
        foreach subcommand {htstats-key listpack quicklist} {
            assert_refused "ERR no such key" r debug $subcommand none
        }
    }

    test "DEBUG HTSTATS-KEY, LISTPACK and QUICKLIST describe values" {keydb} {
        with_config {hash-max-listpack-entries 3 hash-max-listpack-value 100 set-max-listpack-entries 2
                     zset-max-listpack-entries 2 list-max-listpack-size 3} {
            r hset h a 1 b 2 c 3 d 4
            r sadd s a b c
            r zadd z 1 a 2 b 3 c
            foreach {key count} {h 4 s 3 z 3} {
                assert_match "*table size: *number of elements: $count\n*" [r debug htstats-key $key]
                assert_refused "ERR Not a listpack encoded object." r debug listpack $key
                assert_refused "ERR Not a quicklist encoded object." r debug quicklist $key
            }
            r hset hl field 12 number [string repeat x 100]
            assert_equal [list 0 {5 bytes "field"} 1 {number 12} 2 {6 bytes "number"} \
                               3 "100 bytes \"[string repeat x 64]\"..."] [described [r debug listpack hl]]
            r sadd sl a 1
            assert_equal {0 {1 bytes "a"} 1 {number 1}} [described [r debug listpack sl]]
            assert_refused "ERR The value stored at the specified key is not represented using an hash table" \
                r debug htstats-key sl
            r rpush l 1 2 3 4 "a b"
            set nodes [list "5 elements, 2 nodes, fill 3, compress 8" "node 0: listpack, 3 elements, 13 bytes" \
                            "node 1: listpack, 2 elements, 14 bytes"]
            assert_equal [join $nodes \n]\n [r debug quicklist l]
            assert_equal [r debug quicklist l] [r debug quicklist l 0]
            assert_equal {0 {number 1} 1 {number 2} 2 {number 3} 0 {number 4} 1 {3 bytes "a b"}} \
                [described [r debug quicklist l 1]]
        }
        with_config {list-compress-depth 1 list-max-listpack-size 10} {
            for {set i 0} {$i < 50} {incr i} {
                r rpush lc [string repeat x 50]
            }
            assert_equal 3 [regexp -all {node [123]: listpack, 10 elements, \d+ bytes, compressed to} \
                                [r debug quicklist lc]]
            assert_equal 50 [llength [regexp -all -inline {at \d+: 50 bytes} [r debug quicklist lc 1]]]
        }
    }

    test "DEBUG QUICKLIST-PACKED-THRESHOLD gives large elements nodes of their own" {keydb} {
        foreach {size accepted} {200b 1 0 1 4293918720 1 4293918721 0 -1 0 x 0 5gb 0} {
            set words [list debug quicklist-packed-threshold $size]
            if {$accepted} {
                assert_reply {status OK} r {*}$words
            } else {
                assert_refused "ERR argument must be a memory value bigger than 1 and smaller than 4gb" r {*}$words
            }
        }
        r rpush before [string repeat x 300] b
        r debug quicklist-packed-threshold 200b
        r rpush l [string repeat x 199] [string repeat y 200] b
        r rpush before [string repeat x 300]
        r debug quicklist-packed-threshold 0
        r rpush after [string repeat x 300] b
        assert_match "*ql_nodes:3 *" [r debug object l]
        assert_match "*\nnode 0: listpack, 1 *\nnode 1: plain, 1 *, 200 bytes\nnode 2: listpack, 1 *" \
            [r debug quicklist l]
        assert_match "*ql_nodes:1 *" [r debug object before]
        assert_match "*ql_nodes:1 *" [r debug object after]
        assert_equal [list [string repeat x 199] [string repeat y 200] b] [r lrange l 0 -1]
    }

    test "DEBUG CLIENT-EVICTION tells what clients take" {keydb} {
        assert_refused "ERR maxmemory-clients is disabled." r debug client-eviction
        with_config {maxmemory-clients 100mb} {
            set before [eviction_sum]
            set c [connect]
            $c multi
            $c set k [string repeat x 20000]
            wait_for {[eviction_sum] >= $before + 20000}
            assert_equal 19 [regexp -all {bucket +\d+(\+| - +\d+) *: tot-mem:} [r debug client-eviction]]
            set clients [regexp -all -inline {clients: [1-9]\d*} [r debug client-eviction]]
            assert_equal {{clients: 2}} $clients
        }
    }

    test "DEBUG MALLCTL and MALLCTL-STR" {keydb} {
        if {![string match jemalloc* [info_field mem_allocator memory]]} {
            assert_refused "ERR No such file or directory" r debug mallctl arenas.page
            skip "built without jemalloc"
        }
        assert_equal 4096 [r debug mallctl arenas.page]
        assert {[r debug mallctl arenas.nbins] > 20}
        set before [r debug mallctl arenas.dirty_decay_ms]
        assert_equal $before [r debug mallctl arenas.dirty_decay_ms 4321]
        assert_equal 4321 [r debug mallctl arenas.dirty_decay_ms]
        r debug mallctl arenas.dirty_decay_ms $before
        assert_match {[1-9].*} [r debug mallctl-str version]
        assert_equal OK [r debug mallctl-str thread.tcache.flush VOID]
        assert_refused "ERR No such file or directory" r debug mallctl-str nosuch VOID
        assert_refused "ERR Operation not permitted" r debug mallctl-str arena.0.reset VOID
        assert_refused "ERR No such file or directory" r debug mallctl nosuch
        assert_refused "ERR No such file or directory" r debug mallctl-str nosuch
        assert_refused "ERR Invalid argument" r debug mallctl-str arenas.page
        assert_refused "ERR Invalid argument" r debug mallctl version
        assert_refused "ERR Operation not permitted" r debug mallctl arenas.nbins 3
        assert_refused "ERR value is not an integer or out of range" r debug mallctl arenas.page x
    }

    test "DEBUG REPLICATE hands its words on" {keydb} {
        r debug journal start
        assert_reply {status OK} r debug replicate set k v
        assert_match "*SELECT*0*set*k*v*" [string map {\r\n { }} [r debug journal read]]
        r debug journal stop
        assert_reply nullbulk r get k
    }

    test "DEBUG ERROR replies as it is told and counts nothing" {} {
        r config resetstat
        assert_refused "MINE and more" r debug error "MINE and more"
        assert_equal {} [info_fields errorstats]
        assert_equal 0 [info_field total_error_replies stats]
    }

    test "DEBUG STRUCTSIZE, STRINGMATCH-TEST, LEAK" {} {
        assert_match "bits:64 *" [r debug structsize]
        if {$::is_oracle} {
            skip "its matching test takes long"
        }
        assert_reply {status OK} r debug stringmatch-test
    }

    test "DEBUG PAUSE-CRON keeps a signal from being served, SHUTDOWN ABORT forgets it" {} {
        assert_refused "ERR No shutdown in progress." r shutdown abort
        assert_reply {status OK} r debug pause-cron 1
        exec kill -TERM [srv pid]
        wait_for {![catch {r shutdown abort}]}
        assert_refused "ERR No shutdown in progress." r shutdown abort
        assert_reply {status OK} r debug pause-cron 0
        assert_reply {status PONG} r ping
        r set k v px 1
        wait_for {[r dbsize] == 0}
    }

    test "DEBUG REPLYBUFFER checks its arguments" {} {
        foreach words {{resizing 0} {RESIZING 1} {peak-reset-time never} {peak-reset-time 9} {peak-reset-time reset}} {
            assert_reply {status OK} r debug replybuffer {*}$words
        }
        assert_refused "ERR value is not an integer or out of range" r debug replybuffer peak-reset-time x
        assert_refused "ERR unknown subcommand or wrong number of arguments for 'replybuffer'. Try DEBUG HELP." \
            r debug replybuffer x y
    }

    test "LOLWUT" {} {
        set line "*Redis ver. [info_field redis_version server]\n"
        assert_match [string range $line 1 end] [r lolwut]
        assert_match [string range $line 1 end] [r lolwut version 99]
        assert_match [string range $line 1 end] [r lolwut version]
        foreach {words columns} {{version 5 30 3 1} 30  {version 5} 66  {version 5 -7 -7 -7} 1  {version 5 4 1 1 9} 4} {
            set text [r lolwut {*}$words]
            assert_match $line $text
            assert_equal $columns [string length [encoding convertfrom utf-8 [lindex [split $text \n] 0]]] $words
        }
        foreach {words columns rows} {{version 6 7 3} 7 3  {version 6} 80 20  {version 6 0 0} 1 1} {
            set lines [split [r lolwut {*}$words] \n]
            assert_match $line [r lolwut {*}$words]
            assert_equal $columns [regexp -all {\x1b\[0m} [lindex $lines 0]]
            assert_equal $rows [llength [lsearch -all $lines "\x1b*"]]
        }
        foreach words {{version x} {version 5 x} {version 6 1 x}} {
            assert_refused "ERR value is not an integer or out of range" r lolwut {*}$words
        }
        r hello 3
        assert_equal verbatim [lindex [r -typed lolwut] 0]
    }
}

test "DEBUG OOM ends the server with a word about it" {noconn keydb} {
    set port [free_port]
    set id [server_launch [list --port $port --save "" --enable-debug-command yes]]
    wait_for {![catch {[connect -port $port -tls 0] ping}]}
    if {![string match *jemalloc* [process_log $id]]} {
        skip "the allocators of sanitizers end the process themselves"
    }
    catch {[connect -port $port -tls 0] debug oom}
    assert {[process_crashed $id] != 0}
    assert_match "*out of memory*" [string tolower [process_log $id]]
}

test "DEBUG CONFIG-REWRITE-FORCE-ALL writes what has its default, too, and a server can start with it" {noconn} {
    set file [file join [fresh_dir] server.conf]
    set port [free_port]
    spit $file "port $port\nenable-debug-command yes\nsave \"\"\nmaxclients 123\n"
    set id [server_launch $file]
    wait_for {![catch {[connect -port $port -tls 0] ping}]}
    set c [connect -port $port -tls 0]
    $c config rewrite
    assert {![regexp -line {^timeout } [slurp $file]]}
    set before [$c config get *]
    assert_equal OK [$c debug config-rewrite-force-all]
    assert {[regexp -line {^timeout 0$} [slurp $file]] && [regexp -line {^maxclients 123$} [slurp $file]]}
    assert_equal 0 [process_stop $id]
    set id [server_launch $file]
    wait_for {![catch {[connect -port $port -tls 0] ping}]}
    assert_equal [lsort $before] [lsort [[connect -port $port -tls 0] config get *]]
    assert_equal 0 [process_stop $id]
}

test "the server's end does not wait for DEBUG HOLD, which no longer holds anything then" {noconn} {
    with_group {m ours {}} {
        set c [member_connect m]
        $c -send debug hold key 100
        wait_for {[section_field m clients blocked_clients] == 1}
        exec kill -TERM [member m pid]
        wait_for {![process_alive [member m process]]}
        assert_equal 0 [process_wait [member m process] 1000]
        member_start m
    }
}
