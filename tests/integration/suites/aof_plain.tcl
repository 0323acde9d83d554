# The base of an append only file that consists of commands (aof-use-rdb-preamble no), as older programs read it.

# The commands of a file, each a list of words.
proc aof_plain_commands path {
    set bytes [slurp $path]
    set commands {}
    set at 0
    while {$at < [string length $bytes]} {
        set end [string first "\r\n" $bytes $at]
        set count [string range $bytes $at+1 $end-1]
        set at [expr {$end + 2}]
        set words {}
        for {set i 0} {$i < $count} {incr i} {
            set end [string first "\r\n" $bytes $at]
            set size [string range $bytes $at+1 $end-1]
            lappend words [string range $bytes $end+2 [expr {$end + 1 + $size}]]
            set at [expr {$end + 2 + $size + 2}]
        }
        lappend commands $words
    }
    return $commands
}

proc aof_plain_rewrite {} {
    r bgrewriteaof
    wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
    return [lindex [glob [srv dir]/appendonlydir/*.base.aof] 0]
}

proc aof_plain_data {} {
    r set string 1 px 10000000
    r rpush list a b c
    r sadd set 1 2 3
    r sadd members x y
    r expiremember members x 100000
    r zadd zset 1 a 2.5 b
    r zadd zmembers 1 a 2 b
    r expiremember zmembers a 100000
    r hset hash f v g w
    r hset fields f v g w
    r hpexpire fields 100000000 fields 1 f
    r xadd stream 1-1 a b
    r xadd stream 1-2 a c
    r xdel stream 1-1
    r xgroup create stream group 0
    r xreadgroup group group consumer count 1 streams stream >
}

with_server {aof-use-rdb-preamble no} {
    test "values in a plain base have the version that is wished for" {} {
        aof_plain_data
        foreach {wished got} {9 9 10 10 11 11 12 12 80 80 auto 10} {
            r config set rdb-version $wished
            set versions {}
            foreach words [aof_plain_commands [aof_plain_rewrite]] {
                if {[lindex $words 0] eq "RESTORE"} {
                    binary scan [string range [lindex $words 3] end-9 end-8] su version
                    lappend versions [lindex $words 1] $version
                }
            }
            assert_equal [list stream $got] $versions "rdb-version $wished"
        }
    }

    test "deadlines of members are told in words that the version's readers know" {} {
        aof_plain_data
        foreach {wished expected} {
            9 {PEXPIREMEMBERAT fields PEXPIREMEMBERAT members PEXPIREMEMBERAT zmembers}
            80 {HPEXPIREAT fields PEXPIREMEMBERAT members PEXPIREMEMBERAT zmembers}
            auto {HPEXPIREAT fields PEXPIREMEMBERAT members PEXPIREMEMBERAT zmembers}
        } {
            r config set rdb-version $wished
            set told {}
            foreach words [aof_plain_commands [aof_plain_rewrite]] {
                if {[string match "*PEXPIRE*AT" [lindex $words 0]] && [lindex $words 0] ne "PEXPIREAT"} {
                    lappend told [list [lindex $words 0] [lindex $words 1]]
                }
            }
            assert_equal $expected [concat {*}[lsort -index 1 $told]]
        }
    }

    test "libraries of functions are not left out in silence" {} {
        r function load "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
        r config set rdb-version 9
        r bgrewriteaof
        wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
        assert_equal err [info_field aof_last_bgrewrite_status persistence]
        assert_match "*functions need version 10*" [slurp [srv log]]
        r config set rdb-version auto
        aof_plain_rewrite
        assert_equal ok [info_field aof_last_bgrewrite_status persistence]
        r function flush
    }

    test "a plain base of version 9 is all there for KeyDB 6.3.4" {} {
        if {![info exists ::env(KEYDB_ORACLE)]} {
            skip "KEYDB_ORACLE does not name a keydb-server 6.3.4"
        }
        aof_plain_data
        r config set rdb-version 9
        set dir [fresh_dir]
        file copy [aof_plain_rewrite] $dir/appendonly.aof
        set port [free_port]
        set id [process_start [list $::env(KEYDB_ORACLE) --port $port --dir $dir --appendonly yes --save {} \
            --logfile $dir/log.txt] $dir/out]
        wait_for {![catch {[connect -port $port -tls 0] ping} text] && $text eq "PONG"}
        set other [connect -port $port -tls 0]
        assert_equal [lsort [r keys *]] [lsort [$other keys *]]
        assert_equal [r xrange stream - +] [$other xrange stream - +]
        assert_equal [lindex [r xpending stream group] 0] [lindex [$other xpending stream group] 0]
        assert_equal [lsort [r hgetall fields]] [lsort [$other hgetall fields]]
        foreach {key member} {fields f members x zmembers a} {
            assert_range [$other pttl $key $member] 1 100000000
        }
        process_stop $id
    }
}
