# Files that are damaged at any place: told in one line, no crash, no hang; and keydb-check-rdb says the same.

proc fill_every_type {} {
    r set int 12345
    r set text hello
    r set packed [string repeat abc 30] px 100000000
    r rpush list a 1 [string repeat z 70] -77 100000
    r sadd intset 1 2 300000
    r sadd set a b c
    r expiremember set a 100000
    r zadd zset 1 a 2.5 b -inf c
    r hset hash f v g 17
    r hset deadlines f v g 17
    r hpexpire deadlines 100000000 fields 1 f
    r xadd stream 1-1 a b
    r xadd stream 1-2 a b c d
    r xgroup create stream group 0
    r xreadgroup group group one streams stream >
    r pfadd hll a b c
    r function load replace "#!lua name=kept\nredis.register_function('answer', function() return 42 end)"
    r select 3
    r set other 1
    r select 0
}

# What a flip of these bits at each byte, and a cut before it, make of loading.
proc damage_everywhere {bytes bits} {
    set path [srv dir]/dump.rdb
    set told 0
    set wrong {}
    set seen [string length [slurp [srv log]]]
    for {set at 0} {$at < [string length $bytes]} {incr at} {
        binary scan [string index $bytes $at] cu byte
        foreach damaged [list [string replace $bytes $at $at [binary format c [expr {$byte ^ $bits}]]] \
                [string range $bytes 0 [expr {$at - 1}]]] {
            spit $path $damaged
            set reply [r -typed debug reload nosave]
            incr told [expr {[lindex $reply 0] eq "error"}]
            if {[lindex $reply 0] eq "error" && ![string match "*Error trying to load*" [lindex $reply 1]]} {
                lappend wrong $at $reply
            }
        }
    }
    assert_equal {} $wrong
    set lines 0
    foreach line [split [string range [slurp [srv log]] $seen end] "\n"] {
        if {[regexp {Can't load .*: at byte (\d+): (.+)$} $line - offset reason]} {
            incr lines
            assert {$offset <= [string length $bytes] && $reason ne {}} $line
        }
    }
    assert_equal $told $lines "as many lines as failures"
    return $told
}

foreach ::version {9 12} {
    with_server [list enable-debug-command yes rdb-version [expr {$::version == 9 ? "auto" : 12}] rdbchecksum no] {
        test "a file of version $::version damaged at any byte does no harm" {} {
            fill_every_type
            if {$::version == 9} {
                r del deadlines
                r function flush
                r xgroup destroy stream group
            }
            r save
            set bytes [slurp [srv dir]/dump.rdb]
            foreach bits {0xff 0x01 0x80} {
                assert {[damage_everywhere $bytes $bits] > [string length $bytes]}
            }
            spit [srv dir]/dump.rdb $bytes
            r config set rdb-version auto
            assert_equal OK [r debug reload nosave]
            assert_equal hello [r get text]
        }
    }
}

with_server {enable-debug-command yes} {
    test "with a checksum no damage goes unseen" {} {
        fill_every_type
        r save
        set bytes [slurp [srv dir]/dump.rdb]
        set path [srv dir]/dump.rdb
        for {set at 0} {$at < [string length $bytes]} {incr at} {
            binary scan [string index $bytes $at] cu byte
            spit $path [string replace $bytes $at $at [binary format c [expr {$byte ^ (1 << $at % 8)}]]]
            assert_refused "ERR Error trying to load the RDB dump, check server logs." r debug reload nosave
        }
        spit $path $bytes
        assert_equal OK [r debug reload nosave]
    }
}
