# HyperLogLogs: counts, the bytes they are made of, and what is done about bytes that are none.

set not_one "WRONGTYPE Key is not a valid HyperLogLog string value."
set broken "INVALIDOBJ Corrupted HLL object detected"

# A value with these registers (hexadecimal), whose count is not known.
proc sparse_value hex {
    return "HYLL\x01[string repeat \x00 10]\x80[binary format H* $hex]"
}

proc elements {from to} {
    set words {}
    for {set i $from} {$i < $to} {incr i} {
        lappend words element:$i
    }
    return $words
}

with_server {enable-debug-command yes} {
    test "PFADD makes a key, and tells whether it learned something" {} {
        assert_reply {int 1} r pfadd k
        assert_reply {int 0} r pfadd k
        assert_reply [list bulk [sparse_value 7fff]] r get k
        assert_reply {int 1} r pfadd k a
        assert_reply {int 0} r pfadd k a
        assert_reply {int 1} r pfadd k a b c a
        assert_reply {int 3} r pfcount k
        assert_reply {bulk raw} r object encoding k
        assert_reply {int 1} r pfadd other a b c
        assert_equal [string range [r get k] 16 end] [string range [r get other] 16 end]
    }

    test "the bytes are the known ones" {} {
        r pfadd k a
        assert_reply [list bulk [sparse_value 71a6844e57]] r get k
        assert_reply {bulk {Z:12711 v:2,1 Z:3672}} r pfdebug decode k
        assert_reply {status sparse} r pfdebug encoding k
        assert_reply {int 1} r pfcount k
        assert_equal "HYLL\x01\x00\x00\x00\x01[string repeat \x00 7]" [string range [r get k] 0 15]
        r pfadd k b c d
        assert_equal "HYLL\x01\x00\x00\x00\x01[string repeat \x00 6]\x80" [string range [r get k] 0 15]
        assert_reply {bulk {Z:7292 v:1,1 Z:1143 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603}} r pfdebug decode k
        assert_reply {int 1} r pfdebug todense k
        assert_reply {int 0} r pfdebug todense k
        assert_reply {status dense} r pfdebug encoding k
        assert_reply {int 12304} r strlen k
        assert_reply {int 4} r pfcount k
        assert_refused "ERR HLL encoding is not sparse" r pfdebug decode k
    }

    test "the counts are the known ones" {} {
        set before 0
        foreach {elements count size} {
            1 1 21   2 2 24   10 10 48   50 50 158   100 99 285   500 502 1050   1000 997 1897   2000 2004 12304
            5000 5005 12304   10000 10017 12304   20000 19986 12304   40000 39605 12304
        } {
            for {} {$before < $elements} {set before $to} {
                set to [expr {min($before + 1000, $elements)}]
                r pfadd k {*}[elements $before $to]
            }
            assert_equal [list $count $size] [list [r pfcount k] [r strlen k]] "$elements elements"
            assert_reply [list int $count] r pfcount k none
        }
    }

    test "a count is remembered with the value, and forgotten when it changes" {} {
        r set k "HYLL\x01\x00\x00\x00\x07[string repeat \x00 7]\x7f\xff"
        assert_reply {int 7} r pfcount k
        assert_reply {int 0} r pfcount k k
        set remembered [r get k]
        r pfadd k a
        assert_reply {int 1} r pfcount k
        assert_reply {int 1} r pfcount k
        r set k $remembered
        r pfmerge k none
        assert_reply [list bulk [string replace $remembered 15 15 \x80]] r get k
        assert_reply {int 0} r pfcount k
    }

    test "a lifetime stays, also when the value becomes dense" {} {
        foreach words {{pfadd k b} {pfcount k} {pfmerge k k} {pfdebug todense k} {pfadd k c}} {
            r del k
            r pfadd k a
            r expire k 100
            r {*}$words
            assert_range [r ttl k] 90 100
        }
    }

    test "registers, and the side effect of looking at them" {} {
        r pfadd k a
        set registers [r pfdebug getreg k]
        assert_equal {16384 2} [list [llength $registers] [lindex $registers 12711]]
        assert_equal 2 [tcl::mathop::+ {*}$registers]
        assert_reply {status dense} r pfdebug encoding k
        assert_reply {int 1} r pfcount k
    }

    test "PFCOUNT of several is that of their union" {} {
        r pfadd a foo bar zap a
        r pfadd b a b c foo
        assert_reply {int 6} r pfcount a b
        assert_reply {int 6} r pfcount a none b b
        assert_reply {int 0} r pfcount none
        assert_reply {int 0} r pfcount none none
        assert_reply {int 2} r dbsize
        r pfdebug todense a
        assert_reply {int 6} r pfcount a b
        assert_reply {int 6} r pfcount b a
    }

    test "PFMERGE" {} {
        r pfadd a {*}[elements 0 300]
        r pfadd b {*}[elements 200 500]
        assert_reply {status OK} r pfmerge d a none b
        assert_reply {int 502} r pfcount d
        assert_equal [r pfcount a b] [r pfcount d]
        assert_reply {status sparse} r pfdebug encoding d
        r pfadd all {*}[elements 0 500]
        assert_equal [r pfdebug getreg all] [r pfdebug getreg d]
        assert_reply {status OK} r pfmerge d2 d
        assert_reply {status dense} r pfdebug encoding d2
        assert_reply {status OK} r pfmerge a d
        assert_reply {status dense} r pfdebug encoding a
        assert_reply {int 502} r pfcount a
    }

    test "PFMERGE makes its destination, keeps what it has seen and its lifetime" {} {
        assert_reply {status OK} r pfmerge d
        assert_reply {int 1} r exists d
        assert_reply {int 0} r pfcount d
        r pfadd d x
        r expire d 100
        r pfadd a a b
        r pfmerge d a
        assert_reply {int 3} r pfcount d
        assert_range [r ttl d] 90 100
        r pfmerge d
        assert_reply {int 3} r pfcount d
    }

    test "hll-sparse-max-bytes" {} {
        r pfadd a {*}[elements 0 10]
        assert_reply {int 48} r strlen a
        foreach {limit size} {0 12304 47 12304 48 48 3000 48} {
            with_config [list hll-sparse-max-bytes $limit] {
                assert_equal [list hll-sparse-max-bytes $limit] [r config get hll-sparse-max-bytes]
                r del k m
                r pfadd k {*}[elements 0 10]
                r pfmerge m a
                assert_equal [list $size $size] [list [r strlen k] [r strlen m]] $limit
                assert_equal {10 10} [list [r pfcount k] [r pfcount m]]
            }
        }
    }

    test "strings that are no HyperLogLog" {} {
        r pfadd good a
        foreach value [list foo {} 12345 [string range [r get good] 0 14] "HYLL\x02[string repeat \x00 14]" \
                "hyll\x01[string repeat \x00 9]\x80\x7f\xff" "HYLL[string repeat \x00 12299]" \
                "HYLL[string repeat \x00 12301]"] {
            r set k $value
            foreach words {
                {pfadd k} {pfadd k a} {pfcount k} {pfcount good k} {pfmerge d k} {pfmerge d good k} {pfmerge k}
                {pfmerge k good} {pfdebug getreg k} {pfdebug encoding k} {pfdebug nosuch k}
            } {
                assert_refused $::not_one r {*}$words
            }
            assert_reply [list bulk $value] r get k
        }
        assert_reply {int 0} r exists d
    }

    test "registers that are not 16384" {} {
        r pfadd good a
        foreach hex {{} 7f 7ffe 7fff00 7fff80 7fff40 80 3f} {
            r set k [sparse_value $hex]
            foreach words {
                {pfcount k} {pfcount good k} {pfmerge d k} {pfmerge k good} {pfdebug getreg k} {pfdebug todense k}
            } {
                assert_refused $::broken r {*}$words
            }
            assert_reply [list bulk [sparse_value $hex]] r get k
        }
        assert_reply {int 0} r exists d
    }

    test "nothing is added to registers that are not 16384" {keydb} {
        foreach hex {{} 7f 7ffe 7fff00} {
            r set k [sparse_value $hex]
            foreach words {{pfadd k a} {pfadd k a b c} {pfdebug decode k}} {
                assert_refused $::broken r {*}$words
            }
            assert_reply [list bulk [sparse_value $hex]] r get k
        }
    }

    test "any bytes in a value: an error or a reply, and the server lives" {} {
        r pfadd good {*}[elements 0 400]
        set whole [r get good]
        for {set i 0} {$i < 300} {incr i} {
            set value $whole
            for {set j 0} {$j < 1 + $i % 5} {incr j} {
                set at [expr {int(rand() * [string length $value])}]
                set value [string replace $value $at $at [binary format c [expr {int(rand() * 256)}]]]
            }
            r set k [string range $value 0 [expr {$i % 3 ? "end" : int(rand() * [string length $value])}]]
            foreach words {{pfadd k x y} {pfcount k} {pfcount k good} {pfmerge d k good} {pfdebug todense k}} {
                assert {[lindex [r -typed {*}$words] 0] in {int status error}}
            }
        }
        assert_reply {bulk hello} r echo hello
    }

    test "random elements are counted within the known error" {} {
        for {set i 0} {$i < 20} {incr i} {
            set words {}
            for {set j 0} {$j < 1000} {incr j} {
                lappend words $i:$j:[expr {rand()}]
            }
            r pfadd k {*}$words
            set real [expr {($i + 1) * 1000}]
            assert_range [r pfcount k] [expr {$real * 0.95}] [expr {$real * 1.05}]
        }
    }

    test "PFDEBUG and PFSELFTEST" {} {
        assert_refused "ERR The specified key does not exist" r pfdebug getreg none
        assert_refused "ERR The specified key does not exist" r pfdebug nosuch none
        r pfadd k a
        assert_refused "ERR Unknown PFDEBUG subcommand 'nosuch'" r pfdebug nosuch k
        assert_refused "ERR wrong number of arguments for 'pfdebug' command" r pfdebug encoding
        assert_reply {status sparse} r pfdebug Encoding k
        assert_reply {status OK} r pfselftest
    }

    test "what changes a watched key, and what is handed on to replicas" {keydb} {
        set other [connect]
        r debug journal start
        foreach {words changes} {
            {pfadd k} 1   {pfadd k} 0   {pfadd k a} 1   {pfadd k a} 0   {pfcount k} 1   {pfcount k} 0
            {pfcount k none} 0   {pfmerge k k} 1   {pfdebug encoding k} 0   {pfdebug todense k} 1   {pfdebug getreg k} 0
        } {
            r watch k
            r debug journal read
            $other {*}$words
            assert_equal $changes [string match "*[lindex $words 0]*" [r debug journal read]] $words
            r multi
            r ping
            assert_equal $changes [expr {[lindex [r -typed exec] 0] ne "array"}] $words
        }
    }

    test "several keys of PFCOUNT and PFMERGE" {} {
        assert_equal {a b c} [r command getkeys pfcount a b c]
        assert_equal {{d {RW access insert}} {a {RO access}}} [r command getkeysandflags pfmerge d a]
    }
}
