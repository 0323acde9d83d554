# Commands on string values: exact replies, exact errors, limits.

set wrong_int "ERR value is not an integer or out of range"
set too_long "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

with_server {} {
    test "GET of a missing key is a null, of an empty value an empty bulk" {} {
        assert_reply nullbulk r get none
        assert_reply {status OK} r set k ""
        assert_reply {bulk {}} r get k
        r hello 3
        assert_reply null r get none
    }

    test "values and keys may hold any byte" {} {
        for {set i 0; set all {}} {$i < 256} {incr i} {
            append all [binary format c $i]
        }
        foreach key [list "a\x00b" "\r\n" $all {} " "] {
            assert_reply {status OK} r set $key $all$key
            assert_reply [list bulk $all$key] r get $key
        }
        assert_reply {int 5} r dbsize
    }

    test "SET replaces a value and drops its expiry" {} {
        r set k one ex 100
        assert_reply {status OK} r set k two
        assert_reply {int -1} r ttl k
        assert_reply {bulk two} r get k
    }

    test "SET NX and XX" {} {
        assert_reply nullbulk r set k v xx
        assert_reply {int 0} r exists k
        assert_reply {status OK} r set k v1 nx
        assert_reply nullbulk r set k v2 nx
        assert_reply {bulk v1} r get k
        assert_reply {status OK} r set k v3 XX
        assert_reply {bulk v3} r get k
        r hello 3
        assert_reply null r set k v4 nx
    }

    test "SET with GET answers the old value, whether it sets or not" {} {
        assert_reply nullbulk r set k a get
        assert_reply {bulk a} r set k b GET
        assert_reply {bulk b} r set k c get nx
        assert_reply {bulk b} r get k
        assert_reply {bulk b} r set k d xx get
        assert_reply nullbulk r set other x get xx
        assert_reply {int 0} r exists other
        assert_reply nullbulk r set other x nx get
        assert_reply {bulk x} r get other
    }

    test "SET with an expiry in all four forms" {} {
        set now [clock seconds]
        r set a v ex 50
        assert_range [r pttl a] 49000 50000
        r set b v px 50000
        assert_range [r pttl b] 49000 50000
        r set c v exat [expr {$now + 50}]
        assert_reply [list int [expr {$now + 50}]] r expiretime c
        r set d v pxat [expr {$now * 1000 + 50123}]
        assert_reply [list int [expr {$now * 1000 + 50123}]] r pexpiretime d
    }

    test "SET with a time that has passed leaves no key" {} {
        r set k old
        assert_reply {status OK} r set k v exat 1
        assert_reply {int 0} r exists k
        assert_reply {status OK} r set k v pxat 1
        assert_reply nullbulk r get k
    }

    test "SET KEEPTTL" {} {
        r set k a ex 100
        assert_reply {status OK} r set k b keepttl
        assert_range [r ttl k] 95 100
        assert_reply {bulk b} r get k
        assert_reply {status OK} r set fresh v keepttl
        assert_reply {int -1} r ttl fresh
        assert_reply {bulk b} r set k c keepttl get xx
        assert_range [r ttl k] 95 100
    }

    test "SET options are taken in any order and case" {} {
        assert_reply {status OK} r set k v Ex 10 nX
        assert_reply {bulk v} r set k w gEt PX 20000 xX
        assert_range [r ttl k] 19 20
    }

    test "SET refuses options that exclude each other" {} {
        foreach options {
            {nx xx} {xx nx} {ex 10 px 10} {px 10 ex 10} {ex 10 exat 10} {ex 10 keepttl} {keepttl ex 10} {pxat 1 keepttl}
            {exat 5 pxat 5} {keepttl px 10} {ex} {px} {exat} {pxat} {foo} {ex 10 foo} {nx nx xx} {ex 10 ex} {10}
        } {
            assert_refused "ERR syntax error" r set k v {*}$options
        }
        assert_reply {status OK} r set k v nx nx
        assert_reply {bulk v} r set k v get get
        assert_reply {status OK} r set k v keepttl keepttl
        assert_reply {status OK} r set k v ex 10 ex 20
        assert_range [r ttl k] 18 20
    }

    test "SET refuses bad times" {} {
        foreach option {ex px exat pxat} {
            foreach time {0 -1 -9223372036854775808} {
                assert_refused "ERR invalid expire time in 'set' command" r set k v $option $time
            }
            foreach time {x 1.5 {} { 1} {1 } 9223372036854775808 0x10 +5 007} {
                assert_refused $::wrong_int r set k v $option $time
            }
        }
        foreach {option time} {ex 9223372036854775807 exat 9223372036854775807 ex 9223372036854776 px \
            9223372036854775807} {
            assert_refused "ERR invalid expire time in 'set' command" r set k v $option $time
        }
        assert_reply {int 0} r exists k
        assert_reply {status OK} r set k v pxat 9223372036854775807
        assert_reply {int 9223372036854775807} r pexpiretime k
    }

    test "the number of arguments is checked" {} {
        foreach command {get set getset getdel getex setex psetex setnx mset msetnx mget append strlen setrange getrange
                substr incr decr incrby decrby incrbyfloat lcs} {
            assert_refused "ERR wrong number of arguments for '$command' command" r $command
        }
        foreach {command words} {get {a b} strlen {a b} incr {a b} decr {a b} incrby {a 1 2} getset {a} setex {a 1}
                psetex {a 1 v x} setnx {a} append {a} setrange {a 0} getrange {a 0} getdel {a b} mset {a 1 b} msetnx \
                    {a 1 b}
                incrbyfloat {a 1 2} set {a} decrby {a} substr {a 1 2 3} lcs {a} mset {a}} {
            assert_refused "ERR wrong number of arguments for '$command' command" r $command {*}$words
        }
        assert_refused "ERR wrong number of arguments for 'get' command" r GeT
    }

    test "GETSET" {} {
        assert_reply nullbulk r getset k a
        r expire k 100
        assert_reply {bulk a} r getset k b
        assert_reply {int -1} r ttl k
        assert_reply {bulk b} r get k
    }

    test "GETDEL" {} {
        assert_reply nullbulk r getdel k
        r set k v
        assert_reply {bulk v} r getdel k
        assert_reply {int 0} r exists k
        assert_reply {int 0} r dbsize
    }

    test "GETEX with every option" {} {
        assert_reply nullbulk r getex none ex 10
        assert_reply {int 0} r exists none
        r set k v
        assert_reply {bulk v} r getex k
        assert_reply {int -1} r ttl k
        assert_reply {bulk v} r getex k ex 100
        assert_range [r ttl k] 98 100
        assert_reply {bulk v} r getex k
        assert_range [r ttl k] 98 100
        r getex k PX 50000
        assert_range [r pttl k] 48000 50000
        r getex k exat 4102444800
        assert_reply {int 4102444800} r expiretime k
        r getex k pxat 4102444800123
        assert_reply {int 4102444800123} r pexpiretime k
        assert_reply {bulk v} r getex k persist
        assert_reply {int -1} r ttl k
        assert_reply {bulk v} r getex k pxat 1
        assert_reply {int 0} r exists k
    }

    test "GETEX refuses what does not fit" {} {
        r set k v
        foreach options {{ex} {ex 10 px 10} {persist ex 10} {ex 10 persist} {keepttl} {nx} {get} {10}} {
            assert_refused "ERR syntax error" r getex k {*}$options
        }
        assert_refused "ERR invalid expire time in 'getex' command" r getex k ex 0
        assert_refused "ERR invalid expire time in 'getex' command" r getex k px -5
        assert_refused "ERR invalid expire time in 'getex' command" r getex k ex 9223372036854775807
        assert_refused $::wrong_int r getex k exat 1x
        assert_reply nullbulk r getex none ex x
        assert_reply nullbulk r getex none ex 0
        assert_reply {int -1} r ttl k
    }

    test "SETEX and PSETEX" {} {
        assert_reply {status OK} r setex k 100 v
        assert_range [r ttl k] 98 100
        assert_reply {status OK} r psetex k 50000 w
        assert_range [r pttl k] 48000 50000
        assert_reply {bulk w} r get k
        foreach command {setex psetex} {
            foreach time {0 -1} {
                assert_refused "ERR invalid expire time in '$command' command" r $command k $time v
            }
            assert_refused $::wrong_int r $command k x v
            assert_refused "ERR invalid expire time in '$command' command" r $command k 9223372036854775807 v
        }
        assert_reply {bulk w} r get k
    }

    test "SETNX" {} {
        assert_reply {int 1} r setnx k a
        assert_reply {int 0} r setnx k b
        assert_reply {bulk a} r get k
    }

    test "MSET and MGET" {} {
        assert_reply {status OK} r mset a 1 b 2 a 3
        assert_reply {array {{bulk 3} {bulk 2} nullbulk {bulk 3}}} r mget a b none a
        r expire b 100
        r mset b 5
        assert_reply {int -1} r ttl b
        r hello 3
        assert_reply {array {{bulk 3} null}} r mget a none
    }

    test "MSETNX sets all or nothing" {} {
        assert_reply {int 1} r msetnx a 1 b 2
        assert_reply {int 0} r msetnx c 3 b 4
        assert_reply {array {{bulk 1} {bulk 2} nullbulk}} r mget a b c
        assert_reply {int 1} r msetnx d 1 d 2
        assert_reply {bulk 2} r get d
    }

    test "many keys at once" {} {
        set pairs {}
        set keys {}
        set expected {}
        for {set i 0} {$i < 3000} {incr i} {
            lappend pairs key:$i value:$i
            lappend keys key:$i
            lappend expected value:$i
        }
        assert_reply {status OK} r mset {*}$pairs
        assert_equal $expected [r mget {*}$keys]
        assert_reply {int 3000} r dbsize
    }

    test "APPEND" {} {
        assert_reply {int 3} r append k abc
        assert_reply {int 6} r append k def
        assert_reply {int 6} r append k {}
        assert_reply {bulk abcdef} r get k
        r set n 12
        assert_reply {int 4} r append n 34
        assert_reply {bulk 1234} r get n
        assert_reply {int 1235} r incr n
        r set t x ex 100
        r append t y
        assert_range [r ttl t] 98 100
        assert_reply {int 0} r append fresh {}
        assert_reply {bulk {}} r get fresh
    }

    test "STRLEN" {} {
        assert_reply {int 0} r strlen none
        r set k ""
        assert_reply {int 0} r strlen k
        r set k "a\x00b\r\n"
        assert_reply {int 5} r strlen k
        r set k -9223372036854775808
        assert_reply {int 20} r strlen k
    }

    test "SETRANGE writes inside, over the end and behind it" {} {
        assert_reply {int 8} r setrange k 3 Hello
        assert_reply [list bulk "\x00\x00\x00Hello"] r get k
        assert_reply {int 8} r setrange k 0 abc
        assert_reply {bulk abcHello} r get k
        assert_reply {int 10} r setrange k 7 XYZ
        assert_reply {bulk abcHellXYZ} r get k
        assert_reply {int 14} r setrange k 12 zz
        assert_reply [list bulk "abcHellXYZ\x00\x00zz"] r get k
    }

    test "SETRANGE with an empty piece changes nothing" {} {
        assert_reply {int 0} r setrange none 5 {}
        assert_reply {int 0} r exists none
        r set k abc
        assert_reply {int 3} r setrange k 10 {}
        assert_reply {bulk abc} r get k
    }

    test "SETRANGE on numbers and with expiry" {} {
        r set k 1234
        assert_reply {int 4} r setrange k 1 99
        assert_reply {bulk 1994} r get k
        assert_reply {int 1995} r incr k
        r expire k 100
        r setrange k 0 2
        assert_range [r ttl k] 98 100
    }

    test "SETRANGE refuses offsets" {} {
        foreach offset {-1 -9223372036854775808} {
            assert_refused "ERR offset is out of range" r setrange k $offset x
        }
        foreach offset {x 1.0 {} 9223372036854775808} {
            assert_refused $::wrong_int r setrange k $offset x
        }
        assert_refused $::too_long r setrange k 536870912 x
        assert_refused $::too_long r setrange k 536870908 world
        assert_refused $::too_long r setrange k 9223372036854775807 x
        assert_reply {int 0} r exists k
        r set k v
        assert_refused $::too_long r setrange k 536870912 x
        assert_reply {bulk v} r get k
    }

    test "GETRANGE and SUBSTR cut as told" {} {
        r set k "Hello World"
        foreach {start end expected} {
            0 4 Hello  0 -1 {Hello World}  -5 -1 World  -5 -2 Worl  6 100 World  3 3 l  5 3 {}  -3 -5 {}  100 200 {}
            -100 4 Hello  -100 -200 {}  0 0 H  10 10 d  11 11 {}  0 -11 H  0 -12 H  -1 0 {}
            -9223372036854775808 9223372036854775807 {Hello World}  9223372036854775807 -1 {}
        } {
            assert_reply [list bulk $expected] r getrange k $start $end
            assert_reply [list bulk $expected] r substr k $start $end
        }
        assert_reply {bulk {}} r getrange none 0 -1
        r set n 123456
        assert_reply {bulk 345} r getrange n 2 4
        assert_refused $::wrong_int r getrange k x 1
        assert_refused $::wrong_int r getrange k 0 1.5
        assert_refused $::wrong_int r substr none 0 9223372036854775808
    }

    test "INCR, DECR, INCRBY, DECRBY" {} {
        assert_reply {int 1} r incr k
        assert_reply {int 11} r incrby k 10
        assert_reply {int 10} r decr k
        assert_reply {int -10} r decrby k 20
        assert_reply {int -15} r incrby k -5
        assert_reply {int -10} r decrby k -5
        assert_reply {bulk -10} r get k
        assert_reply {int -1} r decr fresh
        assert_reply {int -7} r decrby fresh2 7
        r set t 5 ex 100
        r incr t
        assert_range [r ttl t] 98 100
    }

    test "counting refuses values that are no integer" {} {
        foreach value {x {} { 1} {1 } 1.0 1e3 +1 01 0x1 -0 -- 9223372036854775808 -9223372036854775809 \
            12345678901234567890123} {
            r set k $value
            assert_refused $::wrong_int r incr k
            assert_refused $::wrong_int r decrby k 1
        }
        r set k "1\x00"
        assert_refused $::wrong_int r incr k
        r set k 1
        foreach by {x {} 1.5 { 1} 9223372036854775808 +1} {
            assert_refused $::wrong_int r incrby k $by
            assert_refused $::wrong_int r decrby k $by
        }
        assert_reply {bulk 1} r get k
    }

    test "counting stops at the ends of 64 bits" {} {
        set overflow "ERR increment or decrement would overflow"
        r set k 9223372036854775806
        assert_reply {int 9223372036854775807} r incr k
        assert_refused $overflow r incr k
        assert_refused $overflow r incrby k 1
        assert_refused $overflow r decrby k -1
        assert_reply {int 9223372036854775806} r decr k
        r set k -9223372036854775807
        assert_reply {int -9223372036854775808} r decr k
        assert_refused $overflow r decr k
        assert_refused $overflow r incrby k -1
        assert_refused "ERR decrement would overflow" r decrby k -9223372036854775808
        assert_reply {bulk -9223372036854775808} r get k
        r set k 1
        assert_reply {int -9223372036854775807} r incrby k -9223372036854775808
        r set k -1
        assert_reply {int 9223372036854775806} r incrby k 9223372036854775807
    }

    test "INCRBYFLOAT" {} {
        foreach {start by expected} {
            {} 1 1  {} -1.5 -1.5  10.50 0.1 10.6  3.0e3 200 3200  5.0e3 2.0e2 5200  1 1.5e0 2.5  1 -1 0  0.1 0.2 0.3
            1.10 0 1.1  -0.0 0 0  100 -0.000001 99.999999  1e18 1 1000000000000000001
            3 0.00000000000000001 3.00000000000000001
            1.5 +1.5 3  .5 0.25 0.75  5. 1 6
        } {
            r del k
            if {$start ne {}} {
                r set k $start
            }
            assert_reply [list bulk $expected] r incrbyfloat k $by
            assert_reply [list bulk $expected] r get k
        }
        r set t 1 ex 100
        r incrbyfloat t 1
        assert_range [r ttl t] 98 100
    }

    test "INCRBYFLOAT refuses" {} {
        set no_float "ERR value is not a valid float"
        foreach value {x {} { 1} {1 } 1.5x nan 1e500000 --1} {
            r set k $value
            assert_refused $no_float r incrbyfloat k 1
            r set k 1
            assert_refused $no_float r incrbyfloat k $value
        }
        r set k "1\x00"
        assert_refused $no_float r incrbyfloat k 1
        r set k 1
        assert_refused "ERR increment would produce NaN or Infinity" r incrbyfloat k inf
        assert_refused "ERR increment would produce NaN or Infinity" r incrbyfloat k -inf
        assert_reply {bulk 1} r get k
    }

    test "integers come back as they were written" {} {
        foreach value {0 -1 1 9999 10000 -0 00 007 +7 2147483647 2147483648 -2147483649 9223372036854775807
                -9223372036854775808 9223372036854775808 1e5 { 12} 12345678901234567890} {
            r set k $value
            assert_reply [list bulk $value] r get k
            assert_reply [list int [string length $value]] r strlen k
        }
    }

    test "LCS gives the string, its length or the matches" {} {
        r mset a ohmytext b mynewtext
        assert_reply {bulk mytext} r lcs a b
        assert_reply {int 6} r lcs a b LEN
        assert_reply {array {{bulk matches} {array {{array {{array {{int 4} {int 7}}} {array {{int 5} {int 8}}}}}
            {array {{array {{int 2} {int 3}}} {array {{int 0} {int 1}}}}}}} {bulk len} {int 6}}} r lcs a b idx
        assert_reply {array {{bulk matches} {array {{array {{array {{int 4} {int 7}}} {array {{int 5} {int 8}}} \
            {int 4}}}
            {array {{array {{int 2} {int 3}}} {array {{int 0} {int 1}}} {int 2}}}}} {bulk len} {int 6}}} \
            r lcs a b IDX WITHMATCHLEN
        assert_reply {array {{bulk matches} {array {{array {{array {{int 4} {int 7}}} {array {{int 5} {int 8}}}}}}}
            {bulk len} {int 6}}} r lcs a b idx minmatchlen 4
        assert_reply {array {{bulk matches} {array {}} {bulk len} {int 6}}} r lcs a b minmatchlen 5 idx withmatchlen
        r hello 3
        assert_reply {map {{bulk matches} {array {{array {{array {{int 4} {int 7}}} {array {{int 5} {int 8}}} \
            {int 4}}}}}
            {bulk len} {int 6}}} r lcs a b idx withmatchlen minmatchlen 3
    }

    test "LCS of missing and empty values, and of equal ones" {} {
        assert_reply {bulk {}} r lcs none1 none2
        assert_reply {int 0} r lcs none1 none2 len
        r set a abc
        r set e {}
        assert_reply {bulk {}} r lcs a e
        assert_reply {bulk abc} r lcs a a
        assert_reply {array {{bulk matches} {array {{array {{array {{int 0} {int 2}}} {array {{int 0} {int 2}}}}}}}
            {bulk len} {int 3}}} r lcs a a idx
        assert_reply {array {{bulk matches} {array {}} {bulk len} {int 0}}} r lcs a none idx
        r set n1 12345
        r set n2 345
        assert_reply {bulk 345} r lcs n1 n2
    }

    test "LCS refuses" {} {
        assert_refused "ERR If you want both the length and indexes, please just use IDX." r lcs a b len idx
        assert_refused "ERR syntax error" r lcs a b foo
        assert_refused "ERR syntax error" r lcs a b minmatchlen
        assert_refused $::wrong_int r lcs a b idx minmatchlen x
        assert_reply {array {{bulk matches} {array {}} {bulk len} {int 0}}} r lcs a b idx minmatchlen -5
    }

    test "random strings: every operation agrees with a model" {slow} {
        set seed [expr {[clock microseconds] % 1000000}]
        expr {srand($seed)}
        array set model {}
        for {set step 0} {$step < 2500} {incr step} {
            set key k[expr {int(rand() * 12)}]
            set known [info exists model($key)]
            set value {}
            if {$known} {
                set value $model($key)
            }
            set piece [string repeat [format %c [expr {33 + int(rand() * 90)}]] [expr {int(rand() * 40)}]]
            set note "seed $seed step $step key $key"
            switch [expr {int(rand() * 8)}] {
                0 {
                    r set $key $piece
                    set model($key) $piece
                }
                1 {
                    append value $piece
                    assert_equal [string length $value] [r append $key $piece] $note
                    set model($key) $value
                }
                2 {
                    set offset [expr {int(rand() * 60)}]
                    if {$piece ne {}} {
                        set gap [string repeat \x00 [expr {max(0, $offset - [string length $value])}]]
                        set tail [string range $value [expr {$offset + [string length $piece]}] end]
                        set value [string range $value 0 [expr {$offset - 1}]]$gap$piece$tail
                        set model($key) $value
                    }
                    assert_equal [string length $value] [r setrange $key $offset $piece] $note
                }
                3 {
                    set from [expr {int(rand() * 50)}]
                    set to [expr {$from + int(rand() * 30)}]
                    assert_equal [string range $value $from $to] [r getrange $key $from $to] $note
                }
                4 {
                    assert_equal $known [r del $key] $note
                    unset -nocomplain model($key)
                }
                5 {
                    assert_equal $value [r getdel $key] $note
                    unset -nocomplain model($key)
                }
                6 {
                    assert_equal [expr {!$known}] [r setnx $key $piece] $note
                    if {!$known} {
                        set model($key) $piece
                    }
                }
                7 {
                    assert_equal [string length $value] [r strlen $key] $note
                    assert_equal $value [r get $key] $note
                }
            }
        }
        assert_equal [array size model] [r dbsize]
        foreach key [array names model] {
            assert_equal $model($key) [r get $key]
        }
    }

    test "proto-max-bulk-len limits what a value may grow to" {} {
        with_config {proto-max-bulk-len 1048576} {
            r set k [string repeat x 1048570]
            assert_reply {int 1048576} r append k 123456
            assert_refused $::too_long r append k 7
            assert_refused $::too_long r setrange k 1048576 x
            assert_reply {int 1048576} r setrange k 1048575 y
            assert_reply {int 1048576} r strlen k
        }
    }
}
