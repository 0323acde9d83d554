# Commands on keys of whatever type, and on databases as a whole.

proc keys_sorted pattern {
    return [lsort [r keys $pattern]]
}

with_server {} {
    test "DEL, UNLINK, EXISTS, TOUCH count keys" {} {
        foreach command {del unlink} {
            r mset a 1 b 2 c 3
            assert_reply {int 2} r $command a none b
            assert_reply {int 0} r $command a
            assert_reply {int 1} r dbsize
            assert_reply {int 1} r $command c c
        }
        r mset a 1 b 2
        assert_reply {int 4} r exists a b none a a
        assert_reply {int 2} r touch a none b
        assert_reply {int 0} r exists none
        foreach command {del unlink exists touch} {
            assert_refused "ERR wrong number of arguments for '$command' command" r $command
        }
    }

    test "TYPE" {} {
        r set k v
        assert_reply {status string} r type k
        assert_reply {status none} r type none
        assert_refused "ERR wrong number of arguments for 'type' command" r type k x
    }

    test "RENAME moves value and expiry, and replaces" {} {
        r set a v1 ex 100
        r set b v2
        assert_reply {status OK} r rename a b
        assert_reply {bulk v1} r get b
        assert_range [r ttl b] 98 100
        assert_reply {int 1} r dbsize
        r set c v3
        r rename c b
        assert_reply {int -1} r ttl b
        assert_reply {status OK} r rename b b
        assert_reply {bulk v3} r get b
        assert_refused "ERR no such key" r rename none b
        assert_refused "ERR no such key" r rename none none
    }

    test "RENAMENX" {} {
        r mset a 1 b 2
        assert_reply {int 0} r renamenx a b
        assert_reply {int 1} r renamenx a c
        assert_reply {int 0} r renamenx c c
        assert_reply {bulk 1} r get c
        assert_reply {int 2} r dbsize
        assert_refused "ERR no such key" r renamenx none b
        assert_refused "ERR no such key" r renamenx none none
    }

    test "COPY" {} {
        r set a v ex 100
        assert_reply {int 1} r copy a b
        assert_reply {bulk v} r get b
        assert_range [r ttl b] 98 100
        assert_reply {int 0} r copy none c
        r set a w
        assert_reply {int 0} r copy a b
        assert_reply {bulk v} r get b
        assert_reply {int 1} r copy a b REPLACE
        assert_reply {bulk w} r get b
        assert_reply {int -1} r ttl b
        r append b x
        assert_reply {bulk w} r get a
    }

    test "COPY to another database" {} {
        r set a v
        assert_reply {int 1} r copy a a db 3
        assert_reply {int 0} r copy a a db 3
        assert_reply {int 1} r copy a a replace DB 3
        r select 3
        assert_reply {bulk v} r get a
        assert_reply {int 1} r dbsize
        assert_reply {int 1} r copy a b db 3
    }

    test "COPY refuses" {} {
        r set a v
        assert_refused "ERR source and destination objects are the same" r copy a a
        assert_refused "ERR source and destination objects are the same" r copy a a db 0
        assert_refused "ERR source and destination objects are the same" r copy none none replace
        assert_refused "ERR syntax error" r copy a b foo
        assert_refused "ERR syntax error" r copy a b db
        assert_refused "ERR DB index is out of range" r copy a b db 16
        assert_refused "ERR DB index is out of range" r copy a b db -1
        assert_refused "ERR value is not an integer or out of range" r copy a b db x
    }

    test "MOVE" {} {
        r set a v ex 100
        assert_reply {int 1} r move a 5
        assert_reply {int 0} r exists a
        assert_reply {int 0} r move a 5
        r set a other
        assert_reply {int 0} r move a 5
        assert_reply {bulk other} r get a
        r select 5
        assert_reply {bulk v} r get a
        assert_range [r ttl a] 98 100
        assert_refused "ERR source and destination objects are the same" r move a 5
        assert_refused "ERR DB index is out of range" r move a 16
        assert_refused "ERR DB index is out of range" r move a -1
        assert_refused "ERR value is not an integer or out of range" r move a x
    }

    test "SELECT keeps databases apart" {} {
        for {set db 0} {$db < 16} {incr db} {
            assert_reply {status OK} r select $db
            r set k $db
        }
        for {set db 0} {$db < 16} {incr db} {
            r select $db
            assert_reply [list bulk $db] r get k
            assert_reply {int 1} r dbsize
        }
        assert_refused "ERR DB index is out of range" r select 16
        assert_refused "ERR DB index is out of range" r select -1
        assert_refused "ERR value is not an integer or out of range" r select x
        assert_refused "ERR value is not an integer or out of range" r select 9223372036854775808
        assert_refused "ERR value is out of range, value must between -2147483648 and 2147483647" r select 99999999999
        assert_reply {bulk 15} r get k
    }

    test "SWAPDB exchanges databases under every client's feet" {} {
        r set k zero
        set other [connect]
        $other select 1
        $other set k one
        $other set more 1
        assert_reply {status OK} r swapdb 0 1
        assert_reply {bulk one} r get k
        assert_reply {int 2} r dbsize
        assert_reply {bulk zero} $other get k
        assert_reply {status OK} r swapdb 1 1
        assert_refused "ERR invalid first DB index" r swapdb x 1
        assert_refused "ERR invalid second DB index" r swapdb 0 x
        assert_refused "ERR DB index is out of range" r swapdb 0 16
        assert_refused "ERR DB index is out of range" r swapdb -1 0
    }

    test "FLUSHDB and FLUSHALL in every variant" {} {
        foreach mode {{} sync async SYNC} {
            r select 1
            r set k v
            r select 0
            r set k v
            assert_reply {status OK} r flushdb {*}$mode
            assert_reply {int 0} r dbsize
            r select 1
            assert_reply {int 1} r dbsize
            r select 2
            assert_reply {status OK} r flushall {*}$mode
            r select 1
            assert_reply {int 0} r dbsize
            assert_reply nullbulk r get k
        }
        foreach command {flushdb flushall} {
            assert_refused "ERR syntax error" r $command now
            assert_refused "ERR syntax error" r $command sync async
        }
    }

    test "RANDOMKEY answers some key, and all of them in time" {} {
        assert_reply nullbulk r randomkey
        r mset a 1 b 2 c 3 d 4 e 5
        set seen {}
        for {set i 0} {$i < 500} {incr i} {
            dict set seen [r randomkey] 1
        }
        assert_equal {a b c d e} [lsort [dict keys $seen]]
        r flushall
        r set only v px 30
        wait_for {[r randomkey] eq {}}
        r hello 3
        assert_reply null r randomkey
    }

    test "KEYS with patterns" {} {
        r mset one 1 two 2 three 3 {fo*o} 4 {a[b} 5 {a\c} 6 hello 7 hallo 8 hxllo 9 hllo 10 {} 11 h^llo 12
        foreach {pattern expected} {
            *               {{} {a[b} {a\c} {fo*o} hallo hello hllo hxllo h^llo one three two}
            one             one
            t*              {three two}
            *o*             {{fo*o} hallo hello hllo hxllo h^llo one two}
            h?llo           {hallo hello hxllo h^llo}
            h[ae]llo        {hallo hello}
            h[^e]llo        {hallo hxllo h^llo}
            h[a-e]llo       {hallo hello}
            h[e-a]llo       {hallo hello}
            {h[\^]llo}      h^llo
            {fo\*o}         {{fo*o}}
            {a\[b}          {{a[b}}
            {a[[]b}         {{a[b}}
            {a\\c}          {{a\c}}
            ???             {{a[b} {a\c} one two}
            h**llo          {hallo hello hllo hxllo h^llo}
            {}              {{}}
            none            {}
            H*              {}
            h[]llo          {}
            [               {}
            *e              {one three}
        } {
            assert_equal [lsort [list {*}$expected]] [keys_sorted $pattern] "KEYS $pattern"
        }
        assert_reply {array {}} r keys none*
    }

    test "a hostile pattern takes no exponential time" {} {
        r set [string repeat a 200] v
        set started [clock milliseconds]
        assert_equal {} [r keys [string repeat a* 12]b]
        assert_range [expr {[clock milliseconds] - $started}] 0 3000
    }

    test "KEYS and DBSIZE see only the selected database, and no dead keys" {} {
        r mset a 1 b 2
        r select 1
        r set c 3
        assert_equal c [r keys *]
        r select 0
        assert_equal {a b} [keys_sorted *]
        r set gone v px 1
        wait_for {[r exists gone] == 0}
        assert_equal {a b} [keys_sorted *]
    }

    test "DBSIZE follows thousands of keys in and out" {} {
        for {set i 0} {$i < 20000} {incr i} {
            r -send set key:$i $i
        }
        for {set i 0} {$i < 20000} {incr i} {
            r -read
        }
        assert_reply {int 20000} r dbsize
        for {set i 0} {$i < 20000} {incr i 2} {
            r -send del key:$i
        }
        for {set i 0} {$i < 20000} {incr i 2} {
            assert_equal 1 [r -read]
        }
        assert_reply {int 10000} r dbsize
        for {set i 0} {$i < 20000} {incr i 997} {
            assert_equal [expr {$i % 2 ? $i : {}}] [r get key:$i]
        }
        assert_equal 10000 [llength [r keys *]]
    }

    test "OBJECT ENCODING of strings" {} {
        foreach {value encoding} [list 1 int -5 int 9223372036854775807 int 9223372036854775808 embstr {} embstr x \
            embstr \
                01 embstr 1.5 embstr [string repeat x 44] embstr [string repeat x 45] raw] {
            r set k $value
            assert_reply [list bulk $encoding] r object encoding k
        }
        r set k abc
        r append k d
        assert_reply {bulk raw} r object encoding k
        r set k 5
        r append k 5
        assert_reply {bulk raw} r object encoding k
        r set k 5
        r incr k
        assert_reply {bulk int} r object encoding k
        r set k abc
        r setrange k 1 x
        assert_reply {bulk raw} r object encoding k
    }

    test "OBJECT REFCOUNT and IDLETIME" {} {
        r set k value
        assert_reply {int 1} r object refcount k
        assert_range [r object idletime k] 0 1
        foreach what {encoding refcount idletime freq} {
            assert_reply nullbulk r object $what none
        }
        r set k v
        r hello 3
        assert_reply null r object encoding none
    }

    test "OBJECT IDLETIME grows until the key is used" {slow} {
        r set k v
        wait_for {[r object idletime k] >= 1}
        r exists k
        assert_range [r object idletime k] 1 3
        r get k
        assert_reply {int 0} r object idletime k
        wait_for {[r object idletime k] >= 1}
        r touch k
        assert_reply {int 0} r object idletime k
    }

    test "OBJECT FREQ needs an LFU policy, IDLETIME none" {} {
        r set k v
        assert_refused "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that\
            when\
            switching between policies at runtime LRU and LFU data will take some time to adjust." r object freq k
        with_config {maxmemory-policy allkeys-lfu} {
            r set fresh v
            assert_range [r object freq fresh] 1 255
            assert_refused "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when\
                switching between policies at runtime LRU and LFU data will take some time to adjust." \
                r object idletime fresh
        }
    }

    test "OBJECT HELP and errors" {} {
        set help [r object help]
        assert_equal "OBJECT <subcommand> \[<arg> \[value\] \[opt\] ...\]. Subcommands are:" [lindex $help 0]
        foreach line {"ENCODING <key>" "FREQ <key>" "IDLETIME <key>" "REFCOUNT <key>" HELP} {
            assert {$line in $help} $line
        }
        assert_match "    Print*this help." [lindex $help end]
        assert_equal array [lindex [r -typed object help] 0]
        assert_equal status [lindex [r -typed object help] 1 0 0]
        assert_refused "ERR unknown subcommand 'foo'. Try OBJECT HELP." r object foo k
        assert_refused "ERR wrong number of arguments for 'object' command" r object
        assert_refused "ERR wrong number of arguments for 'object|encoding' command" r object encoding
        assert_refused "ERR wrong number of arguments for 'object|freq' command" r object freq a b
        assert_refused "ERR wrong number of arguments for 'object|help' command" r object help me
    }

    test "the number of arguments is checked" {} {
        foreach {command words} {rename a renamenx a copy a move a swapdb 1 select {} dbsize x randomkey x keys {} \
            keys {a b}
                rename {a b c} move {a 1 2} type {} swapdb {1 2 3} select {1 2} time x} {
            assert_refused "ERR wrong number of arguments for '$command' command" r $command {*}$words
        }
    }

    test "TIME" {} {
        lassign [r time] seconds micros
        assert_range $seconds [expr {[clock seconds] - 2}] [expr {[clock seconds] + 2}]
        assert_range $micros 0 999999
        assert_equal {bulk bulk} [lmap part [lindex [r -typed time] 1] {lindex $part 0}]
        set earlier [expr {$seconds * 1000000 + $micros}]
        for {set i 0} {$i < 50} {incr i} {
            lassign [r time] seconds micros
            set now [expr {$seconds * 1000000 + $micros}]
            assert {$now >= $earlier}
            set earlier $now
        }
    }

    test "long keys and many databases' worth of names" {} {
        set key [string repeat k 100000]
        r set $key v
        assert_reply {bulk v} r get $key
        assert_reply {int 1} r exists $key
        assert_equal $key [r randomkey]
        r rename $key short
        assert_reply {bulk v} r get short
    }
}

with_server {databases 4} {
    test "databases limits SELECT, MOVE, COPY, SWAPDB" {} {
        assert_reply {status OK} r select 3
        assert_refused "ERR DB index is out of range" r select 4
        assert_refused "ERR DB index is out of range" r move k 4
        assert_refused "ERR DB index is out of range" r copy a b db 4
        assert_refused "ERR DB index is out of range" r swapdb 0 4
    }
}
