# DEBUG: its table, and the subcommands that look inside. LOLWUT.

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
            if {$name in {ASSERT PANIC SEGFAULT REPLICATE DIGEST-VALUE}} {
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
