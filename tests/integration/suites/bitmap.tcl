# Commands on the bits of strings: exact replies, exact errors, what of it lasts.

set wrong_int "ERR value is not an integer or out of range"
set wrong_offset "ERR bit offset is not an integer or out of range"
set wrong_field "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
set too_long "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

proc bytes hex {
    return [binary format H* $hex]
}

# The bits of a string as 0s and 1s, and back (the last byte is filled up).
proc bits_of string {
    binary scan $string B* bits
    return $bits
}

proc string_of bits {
    return [binary format B* $bits]
}

# A number from its bits.
proc scan_bits {bits signed} {
    set number 0
    foreach bit [split $bits {}] {
        set number [expr {$number * 2 + $bit}]
    }
    if {$signed && [string index $bits 0]} {
        set number [expr {$number - 2 ** [string length $bits]}]
    }
    return $number
}

proc random_bytes count {
    set result ""
    for {set i 0} {$i < $count} {incr i} {
        append result [binary format c [expr {int(rand() * 3) ? int(rand() * 256) : int(rand() * 2) * 255}]]
    }
    return $result
}

with_server {enable-debug-command yes} {
    test "SETBIT and GETBIT" {} {
        assert_reply {int 0} r setbit k 1 1
        assert_reply {int 1} r setbit k 1 0
        assert_reply {int 0} r setbit k 23 1
        assert_reply [list bulk [bytes 000001]] r get k
        assert_reply {int 1} r getbit k 23
        assert_reply {int 0} r getbit k 22
        assert_reply {int 0} r getbit k 24
        assert_reply {int 0} r getbit none 4294967295
        assert_reply {int 0} r exists none
    }

    test "SETBIT makes a key of zeros, keeps a lifetime, and turns numbers into bytes" {} {
        assert_reply {int 0} r setbit k 100 0
        assert_reply {int 13} r strlen k
        r set n 12345 ex 100
        assert_reply {int 1} r setbit n 7 0
        assert_reply {bulk 02345} r get n
        assert_range [r ttl n] 90 100
        assert_reply {bulk raw} r object encoding n
        r set n 12345
        assert_reply {int 1} r setbit n 7 1
        assert_reply {bulk 12345} r get n
        assert_reply {bulk raw} r object encoding n
    }

    test "SETBIT and GETBIT refuse" {} {
        foreach offset {-1 4294967296 abc 1.5 {} #1 01 99999999999999999999} {
            assert_refused $::wrong_offset r setbit k $offset 1
            assert_refused $::wrong_offset r getbit k $offset
        }
        foreach bit {-1 2 a {} 01} {
            assert_refused "ERR bit is not an integer or out of range" r setbit k 1 $bit
        }
        assert_reply {int 0} r exists k
        with_config {proto-max-bulk-len 1048576} {
            assert_refused $::wrong_offset r setbit k 8388608 1
            assert_reply {int 0} r setbit k 8388607 1
            assert_reply {int 1048576} r strlen k
        }
    }

    test "random bits beside a string of Tcl" {} {
        foreach size {5 400 30000} {
            set model [string repeat 0 [expr {$size * 8}]]
            r set k [string_of $model]
            for {set i 0} {$i < 300} {incr i} {
                set at [expr {int(rand() * $size * 8)}]
                set bit [expr {int(rand() * 2)}]
                assert_equal [string index $model $at] [r setbit k $at $bit]
                set model [string replace $model $at $at $bit]
                set other [expr {int(rand() * $size * 8)}]
                assert_equal [string index $model $other] [r getbit k $other]
            }
            assert_equal $model [bits_of [r get k]]
            assert_equal [string length [string map {0 {}} $model]] [r bitcount k]
        }
    }

    test "BITCOUNT with ranges in bytes and bits" {} {
        r set k foobar
        assert_reply {int 26} r bitcount k
        foreach {range count} {
            {0 0} 4   {1 1} 6   {0 -5} 10   {1 -2} 18   {-2 1000} 7   {0 1000} 26   {3 2} 0   {100 200} 0   {-100 -90} 4
            {-90 -100} 0   {0 -1 BYTE} 26   {0 -5 bit} 25   {5 30 BIT} 17   {0 0 BIT} 0   {1 1 BIT} 1   {-1 -3 BIT} 0
        } {
            assert_equal $count [r bitcount k {*}$range] $range
        }
        r set k ""
        assert_reply {int 0} r bitcount k
        assert_reply {int 0} r bitcount k 0 -1 BIT
        r set k 1234567890
        assert_reply {int 35} r bitcount k
    }

    test "BITCOUNT and BITPOS refuse, also of a missing key and of another type" {keydb} {
        r set k foobar
        assert_refused "ERR syntax error" r bitcount k 1
        assert_refused "ERR syntax error" r bitcount k 0 1 hello
        assert_refused "ERR syntax error" r bitcount k 0 1 BIT BIT
        assert_refused $::wrong_int r bitcount k a b
        assert_refused $::wrong_int r bitcount k 1 b
        assert_refused $::wrong_int r bitcount k 1 b BIT
        assert_reply {int 0} r bitcount none
        assert_reply {int 0} r bitcount none 0 -1 bit
        r rpush l a
        foreach key {none l} {
            assert_refused "ERR syntax error" r bitcount $key 0
            assert_refused "ERR syntax error" r bitcount $key 0 1 hello
            assert_refused $::wrong_int r bitcount $key a b
            assert_refused $::wrong_int r bitpos $key 1 a
            assert_refused "ERR syntax error" r bitpos $key 1 0 1 hello
        }
        assert_refused "WRONGTYPE Operation against a key holding the wrong kind of value" r bitcount l 0 1
        assert_refused "WRONGTYPE Operation against a key holding the wrong kind of value" r bitpos l 1
        r del l
    }

    test "BITPOS with ranges in bytes and bits" {} {
        r set k [bytes 00ff00]
        foreach {words position} {
            0 0   1 8   {0 1} 16   {1 2} -1   {0 1 1} -1   {1 0 0} -1   {1 0 -1 BIT} 8   {0 8 15 BIT} -1
            {0 8 16 BIT} 16   {1 -2 -1 byte} 8   {1 2 1} -1   {0 100} -1   {1 -100 -90} -1   {0 -90 -100} 0
            {1 11 11 bit} 11
        } {
            assert_equal $position [r bitpos k {*}$words] $words
        }
        assert_reply {int 0} r bitpos none 0
        assert_reply {int -1} r bitpos none 1
        assert_reply {int 0} r bitpos none 0 5 6
    }

    test "BITPOS of 0 in a string of ones: the first bit behind it, unless an end was named" {} {
        r set k [bytes ffffff]
        foreach {words position} {0 24   {0 0} 24   {0 2} 24   {0 3} -1   {0 0 -1} -1   {0 0 -1 BIT} -1   {0 0 5} -1} {
            assert_equal $position [r bitpos k {*}$words] $words
        }
        r set k ""
        assert_reply {int -1} r bitpos k 0
        assert_reply {int -1} r bitpos k 1
    }

    test "BITPOS refuses" {} {
        r set k abc
        assert_refused "ERR The bit argument must be 1 or 0." r bitpos k 2
        assert_refused "ERR The bit argument must be 1 or 0." r bitpos none -1
        assert_refused $::wrong_int r bitpos k a
        assert_refused $::wrong_int r bitpos k 1 a
        assert_refused $::wrong_int r bitpos k 1 0 b
        assert_refused "ERR syntax error" r bitpos k 1 0 1 hello
        assert_refused "ERR syntax error" r bitpos k 1 0 b hello
        assert_refused "ERR syntax error" r bitpos k 1 0 1 BIT BIT
    }

    test "random ranges beside a string of Tcl" {} {
        for {set i 0} {$i < 60} {incr i} {
            set value [random_bytes [expr {1 + int(rand() * ($i % 10 ? 50 : 5000))}]]
            set model [bits_of $value]
            set size [string length $model]
            r set k $value
            for {set j 0} {$j < 5} {incr j} {
                set from [expr {int(rand() * $size)}]
                set to [expr {$from + int(rand() * ($size - $from))}]
                set part [string range $model $from $to]
                assert_equal [string length [string map {0 {}} $part]] [r bitcount k $from $to BIT] "$from $to"
                foreach bit {0 1} {
                    set found [string first $bit $part]
                    assert_equal [expr {$found < 0 ? -1 : $found + $from}] [r bitpos k $bit $from $to BIT] "$from $to"
                }
            }
        }
    }

    test "BITOP" {} {
        r mset a [bytes 0f0f] b [bytes 333333] s foobar n 12
        assert_reply {int 3} r bitop and d a b
        assert_reply [list bulk [bytes 030300]] r get d
        assert_reply {int 3} r bitop OR d a b none
        assert_reply [list bulk [bytes 3f3f33]] r get d
        assert_reply {int 3} r bitop xor d a b
        assert_reply [list bulk [bytes 3c3c33]] r get d
        assert_reply {int 3} r bitop and d b none
        assert_reply [list bulk [bytes 000000]] r get d
        assert_reply {int 6} r bitop not d s
        assert_reply [list bulk [bytes 9990909d9e8d]] r get d
        assert_reply {int 2} r bitop and d n
        assert_reply {bulk 12} r get d
        assert_reply {bulk raw} r object encoding d
        assert_reply {int 6} r bitop not s s
        assert_reply [list bulk [bytes 9990909d9e8d]] r get s
    }

    test "BITOP replaces its destination, with its lifetime, or removes it" {} {
        r set a abc
        r set d 1 ex 100
        assert_reply {int 3} r bitop or d a a
        assert_reply {int -1} r ttl d
        assert_reply {int 0} r bitop and d none
        assert_reply {int 0} r exists d
        assert_reply {int 0} r bitop not d none
        r set gone abc px 1
        pause 3
        assert_reply {int 0} r bitop or d gone
        assert_reply {int 1} r dbsize
    }

    test "BITOP refuses" {} {
        r set a abc
        assert_refused "ERR syntax error" r bitop nand d a
        assert_refused "ERR BITOP NOT must be called with a single source key." r bitop not d a a
        assert_refused "ERR wrong number of arguments for 'bitop' command" r bitop and d
        assert_reply {int 1} r dbsize
    }

    test "BITOP on random strings beside Tcl" {} {
        foreach {most rounds} {30 10 3000 5 20000 2} {
            for {set i 0} {$i < $rounds} {incr i} {
                set values {}
                set keys {}
                set size 0
                for {set j 0} {$j < 1 + ($i + 2) % 5} {incr j} {
                    lappend values [random_bytes [expr {int(rand() * $most)}]]
                    lappend keys k$j
                    r set k$j [lindex $values end]
                    set size [expr {max($size, [string length [lindex $values end]])}]
                }
                foreach {name symbol} {and & or | xor ^} {
                    set expected {}
                    foreach value $values {
                        binary scan $value cu* numbers
                        while {[llength $numbers] < $size} {
                            lappend numbers 0
                        }
                        if {$expected eq {}} {
                            set expected $numbers
                        } else {
                            set expected [lmap one $expected other $numbers "expr {\$one $symbol \$other}"]
                        }
                    }
                    assert_equal $size [r bitop $name d {*}$keys]
                    assert_equal [binary format c* $expected] [r get d] $name
                }
            }
        }
    }

    test "BITOP DIFF, DIFF1, ANDOR and ONE" {keydb} {
        r flushall
        r mset x [bytes f0f00f] y [bytes 3c] z [bytes 0ff011aa] n 12
        foreach {words expected} {
            {diff x y z} c0000e00   {DIFF x y} c0f00f   {diff y x} 0c0000   {diff x none} f0f00f   {diff none x} 000000
            {diff1 x y z} 0f0010aa   {diff1 y x} c0f00f   {diff1 none x} f0f00f   {diff1 x none} 000000
            {andor x y z} 30f00100   {andor x y} 300000   {andor y x} 300000   {andor x none} 000000
            {one x y z} c3001eaa   {one x} f0f00f   {One x x} 000000   {one x x x} 000000   {one n} 3132
            {one y none} 3c
        } {
            set keys [lassign $words operation]
            r set d [bytes ff] ex 100
            assert_equal [string length [bytes $expected]] [r bitop $operation d {*}$keys]
            assert_equal $expected [binary encode hex [r get d]] $words
            assert_equal -1 [r ttl d]
        }
        foreach operation {diff diff1 andor one} {
            r set d x
            assert_reply {int 0} r bitop $operation d none none
            assert_equal 0 [r exists d]
        }
    }

    test "BITOP DIFF, DIFF1, ANDOR and ONE refuse" {keydb} {
        r flushall
        r set a abc
        r rpush l a
        foreach operation {diff diff1 andor} {
            assert_refused "ERR BITOP [string toupper $operation] must be called with at least two source keys." \
                r bitop $operation d a
        }
        foreach words {{diff d a l} {diff1 d l a} {andor d l a} {one d l} {one d a l}} {
            assert_refused "WRONGTYPE Operation against a key holding the wrong kind of value" r bitop {*}$words
        }
        foreach operation {diff diff1 andor one} {
            assert_error "ERR wrong number of arguments for 'bitop' command" [list r bitop $operation d]
        }
        assert_equal {a l} [lsort [r keys *]]
        r multi
        r bitop one d a
        r bitop diff d a d
        assert_equal {3 3} [r exec]
        assert_equal 3 [r eval {return redis.call('bitop', 'andor', KEYS[1], KEYS[2], KEYS[2])} 2 d a]
        assert_equal abc [r get d]
        r config set maxmemory 1
        assert_error "OOM *" {r bitop one d a}
        r config set maxmemory 0
        assert_equal {d a b} [r command getkeys bitop andor d a b]
    }

    test "BITOP LSHIFT and RSHIFT" {keydb} {
        foreach {hex places left right} {
            aa 4 a00a 0a   ff 1 fe01 7f   00ff 1 00fe01 807f   00ff 0 00ff 00ff   81020384 8 0081020384 020384
            aa 3 5005 15   20 1 4000 10   20 8 0020 {}   20 65 00000000000000004000 {}   {} 9 0000 {}
        } {
            r set a [bytes $hex]
            foreach {word sign expected} [list LSHIFT {} $left rshift {} $right lshift - $right RSHIFT - $left] {
                if {$places == 0 && $sign eq "-"} {
                    continue
                }
                r set d old ex 100
                assert_equal [expr {[string length $expected] / 2}] [r bitop $word d a $sign$places] $hex
                assert_equal [bytes $expected] [r get d] "$hex $word $sign$places"
                assert_equal [expr {$expected ne {}}] [r exists d]
            }
        }
        r set a abcdefg
        assert_reply {int 9} r bitop lshift a a 14
        assert_reply {int 8} r bitop rshift a a 14
        assert_reply [list bulk "abcdefg\x00"] r get a
        assert_reply {int 2} r bitop lshift d none 9
    }

    test "BITOP LSHIFT and RSHIFT refuse, and their number is no key" {keydb} {
        r set a abc
        foreach word {lshift rshift} {
            assert_refused "ERR BITOP SHIFT must be called with a single source key and an integer shift." \
                r bitop $word d a
            assert_refused "ERR BITOP SHIFT must be called with a single source key and an integer shift." \
                r bitop $word d a a 1
            assert_refused "ERR BITOP SHIFT's last parameter must be an integer" r bitop $word d a 1x
            assert_refused "ERR BITOP SHIFT value is too large." r bitop $word d a 1073741825
        }
        assert_refused "ERR BITOP SHIFT value is too large." r bitop rshift d a -1073741825
        assert_reply {int 0} r bitop lshift d a -9223372036854775808
        with_config {proto-max-bulk-len 1048576} {
            assert_reply {int 1048576} r bitop lshift d a 8388584
            assert_refused $::too_long r bitop lshift d a 8388585
        }
        assert_equal {d a} [r command getkeys bitop lshift d a 3]
        assert_equal {d a 3} [r command getkeys bitop and d a 3]
    }

    test "BITFIELD: SET, GET, INCRBY" {} {
        assert_reply {array {{int 0} {int -100} {int 0} {int 0} {int 101}}} r bitfield k set i8 0 -100 get i8 0 \
            get u8 #1 set u8 8 101 get u8 #1
        assert_reply [list bulk [bytes 9c65]] r get k
    }

    test "BITFIELD: fields lie where they are said to" {} {
        assert_reply {array {{int 0} {int 0} {int 0}}} r bitfield k set u4 0 5 set i12 #1 -1 set u63 100 1
        assert_equal 0101[string repeat 0 8][string repeat 1 12][string repeat 0 138]1[string repeat 0 5] \
            [bits_of [r get k]]
        assert_reply {array {{int 5} {int -1} {int 1} {int 0} {int -1}}} r bitfield k get u4 0 get i12 12 get u63 100 \
            get u8 1000 GET i1 12
        assert_reply {array {{int 7} {int 7}}} r bitfield k incrby u4 #0 2 get u4 0
        assert_reply {array {}} r bitfield k
        assert_reply {array {}} r bitfield none overflow sat
        assert_reply {int 0} r exists none
    }

    test "BITFIELD: overflow" {} {
        r bitfield k set u8 0 250 set i8 8 120
        assert_reply {array {{int 4} {int -126}}} r bitfield k incrby u8 0 10 incrby i8 8 10
        r bitfield k set u8 0 250 set i8 8 120
        assert_reply {array {{int 255} {int 127} {int 0} {int -128}}} r bitfield k overflow sat incrby u8 0 10 \
            incrby i8 8 10 incrby u8 0 -300 incrby i8 8 -300
        assert_reply {array {nullbulk {int 0} nullbulk {int -128}}} r bitfield k overflow fail incrby u8 0 -1 get u8 0 \
            incrby i8 8 -1 get i8 8
        assert_reply {array {{int 0} {int 255} nullbulk nullbulk {int 1} {int 2}}} r bitfield k overflow sat \
            set u8 0 -1 get u8 0 overflow fail set u8 0 256 set u8 0 -1 overflow wrap incrby u8 0 2 incrby u8 0 1
        assert_reply {array {{int 0} {int -9223372036854775808} {int -9223372036854775808} {int 9223372036854775807}}} \
            r bitfield l set i64 0 9223372036854775807 incrby i64 0 1 overflow sat incrby i64 0 -1 overflow wrap \
            incrby i64 0 -1
        r hello 3
        assert_reply {array {null}} r bitfield k overflow fail set u1 0 2
    }

    test "BITFIELD: what it writes to grows, what it reads does not" {} {
        assert_reply {array {{int 0}}} r bitfield k get u8 1000
        assert_reply {int 0} r exists k
        assert_reply {array {{int 0} {int 0}}} r bitfield k get u8 1000 set u8 10 0
        assert_reply {int 3} r strlen k
        assert_reply {array {nullbulk}} r bitfield k overflow fail incrby u2 30 9
        assert_reply {int 4} r strlen k
        r set n 255 ex 100
        assert_reply {array {{int 50}}} r bitfield n get u8 0
        assert_reply {bulk int} r object encoding n
        assert_reply {array {{int 50}}} r bitfield n set u8 0 51
        assert_reply {bulk 355} r get n
        assert_range [r ttl n] 90 100
    }

    test "BITFIELD refuses before it does anything" {} {
        foreach type {u0 u64 u65 i0 i65 U8 8 u u-1 u08 x8 {} i8x} {
            assert_refused $::wrong_field r bitfield k set u8 0 1 get $type 0
        }
        foreach offset {-1 # #-1 #536870912 #1152921504606846976 4294967296 a {}} {
            assert_refused $::wrong_offset r bitfield k set u8 0 1 get u8 $offset
        }
        assert_refused "ERR Invalid OVERFLOW type specified" r bitfield k set u8 0 1 overflow wrapp
        assert_refused $::wrong_int r bitfield k set u8 0 1 set u8 0 x
        assert_refused "ERR syntax error" r bitfield k set u8 0 1 overflow
        assert_refused "ERR syntax error" r bitfield k set u8 0 1 get u8
        assert_refused "ERR syntax error" r bitfield k set u8 0 1 nosuch u8 0
        assert_refused "ERR wrong number of arguments for 'bitfield' command" r bitfield
        assert_reply {int 0} r exists k
    }

    test "BITFIELD_RO only reads" {} {
        r set k [bytes 81ff]
        assert_reply {array {{int 129} {int -127} {int 7}}} r bitfield_ro k get u8 0 get i8 0 get u3 7
        assert_refused "ERR BITFIELD_RO only supports the GET subcommand" r bitfield_ro k get u8 0 set u8 0 1
        assert_refused "ERR BITFIELD_RO only supports the GET subcommand" r bitfield_ro k incrby u8 0 1
        assert_refused $::wrong_field r bitfield_ro k set u64 0 1
        assert_reply [list bulk [bytes 81ff]] r get k
    }

    test "BITFIELD on random fields beside Tcl" {} {
        set model [string repeat 0 400]
        for {set i 0} {$i < 400} {incr i} {
            set signed [expr {int(rand() * 2)}]
            set width [expr {1 + int(rand() * ($signed ? 64 : 63))}]
            set at [expr {int(rand() * (400 - $width))}]
            set old [scan_bits [string range $model $at $at+[expr {$width - 1}]] $signed]
            set new [expr {entier(rand() * 2 ** 62) * (int(rand() * 2) ? 1 : -1) >> int(rand() * 63)}]
            assert_equal $old [r bitfield k set [expr {$signed ? "i" : "u"}]$width $at $new] "$i: $width at $at"
            set low {}
            for {set bit [expr {$width - 1}]} {$bit >= 0} {incr bit -1} {
                append low [expr {$new >> $bit & 1}]
            }
            set model [string replace $model $at $at+[expr {$width - 1}] $low]
        }
        set got [bits_of [r get k]]
        assert_equal [string range $model 0 [string length $got]-1] $got
    }

    test "keys that are read only where all of BITFIELD reads" {} {
        assert_equal {{k {RO access}}} [r command getkeysandflags bitfield k get u8 0 overflow sat get u8 1]
        assert_equal {{k {RW access update}}} [r command getkeysandflags bitfield k get u8 0 set u8 0 1]
        assert_equal {{k {RW access update}}} [r command getkeysandflags bitfield k get u8]
    }

    test "a write that changes nothing leaves a watched key alone, any other does not" {} {
        r set k [bytes 80]
        set other [connect]
        foreach {words changes} {
            {setbit k 0 1} 0   {setbit k 1 1} 1   {bitfield k set u8 0 192} 0   {bitfield k incrby u2 0 -1} 1
            {bitfield k get u8 0} 0   {bitfield k overflow fail set u2 0 5} 0
            {bitop not k none} 1   {bitop not k none} 0
            {bitcount k} 0   {bitpos k 1} 0   {getbit k 0} 0
        } {
            r watch k
            $other {*}$words
            r multi
            r ping
            assert_equal $changes [expr {[lindex [r -typed exec] 0] ne "array"}] $words
        }
    }

    test "a string that only grew has changed, so that replicas hear of it" {keydb} {
        r debug journal start
        assert_reply {array {nullbulk}} r bitfield k overflow fail set u8 0 256
        assert_match "*bitfield*overflow*fail*" [r debug journal read]
    }
}
