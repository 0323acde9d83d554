# Strings: what Redis has had since 8.4, and Valkey since 8.1 and 9.0.

set hello_digest b6acb9d84a38ff74   ;# of "Hello world", as the specification has it
set bad_length "ERR must be exactly 16 hexadecimal characters"
set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"

with_server {} {
    foreach ::proto {2 3} {
        test "SET with a condition on the value, RESP$::proto" {keydb} {
            r hello $::proto
            set null [expr {$::proto == 2 ? "nullbulk" : "null"}]
            # No key: equal to nothing, different from everything.
            assert_reply $null r set k v ifeq v
            assert_reply $null r set k v ifdeq $::hello_digest
            assert_reply $null r set k v ifdeq short
            assert_equal 0 [r exists k]
            assert_reply {status OK} r set k v1 ifne v1
            r del k
            assert_reply {status OK} r set k "Hello world" IFDNE short
            assert_reply $null r set k w ifeq "hello world"
            assert_reply $null r set k w ifne "Hello world"
            assert_reply $null r set k w ifdeq 0000000000000000
            assert_reply $null r set k w ifdne $::hello_digest
            assert_equal "Hello world" [r get k]
            # The old value comes with GET, whether it is replaced or not.
            assert_reply {bulk "Hello world"} r set k w ifeq no get
            assert_equal "Hello world" [r get k]
            assert_reply {bulk "Hello world"} r set k w get ifdeq [string toupper $::hello_digest]
            assert_equal w [r get k]
            assert_reply {status OK} r set k 12 ifdne $::hello_digest
            assert_reply {status OK} r set k 13 ifeq 12
            assert_reply {status OK} r set k 14 ifne 12
            assert_reply $null r set none w get ifeq no
            # The last value of the same condition counts.
            assert_reply {status OK} r set k 15 ifeq 1 ifeq 14
            r hello 2
        }

        test "DIGEST, DELEX, DELIFEQ, RESP$::proto" {keydb} {
            r hello $::proto
            assert_reply [expr {$::proto == 2 ? "nullbulk" : "null"}] r digest none
            r set k "Hello world"
            assert_reply [list bulk $::hello_digest] r digest k
            r set n 12
            r set t x
            r append t x
            r setrange t 0 12
            assert_equal [r digest n] [r digest t] "an integer counts as its text"
            assert_reply {int 0} r delex none
            assert_reply {int 0} r delex none foo bar
            assert_reply {int 0} r delifeq none x
            assert_reply {int 0} r delex k ifeq no
            assert_reply {int 0} r delex k ifne "Hello world"
            assert_reply {int 0} r delex k ifdeq 0000000000000000
            assert_reply {int 0} r delex k ifdne $::hello_digest
            assert_reply {int 0} r delifeq k no
            assert_equal 1 [r exists k]
            assert_reply {int 1} r delex k IFDEQ $::hello_digest
            foreach words {{delex k ifeq v} {delex k ifne w} {delex k ifdne 0000000000000000} {delex k} {delifeq k v}} {
                r set k v
                assert_reply {int 1} r {*}$words
                assert_equal 0 [r exists k] $words
            }
            r rpush l a
            assert_reply {int 1} r delex l
            r hello 2
        }
    }

    test "MSETEX" {keydb} {
        assert_reply {int 1} r msetex 2 a 1 b 2
        assert_equal {1 2} [r mget a b]
        assert_reply {int 0} r msetex 2 a x c x nx
        assert_reply {int 0} r msetex 2 a x c x XX
        assert_equal {1 2 {}} [r mget a b c]
        assert_reply {int 1} r msetex 2 c 3 d 4 nx ex 100
        assert_reply {int 1} r msetex 3 a 5 c 6 d 7 keepttl xx
        assert_equal {5 2 6 7} [r mget a b c d]
        assert_equal -1 [r ttl a]
        foreach key {c d} {
            assert_range [r ttl $key] 90 100
        }
        assert_reply {int 1} r msetex 2 c 8 d 9
        assert_equal {-1 -1} [list [r ttl c] [r ttl d]]
        assert_reply {int 1} r msetex 2 c 8 c 9 px 100000
        assert_equal 9 [r get c]
        assert_range [r pttl c] 90000 100000
        assert_reply {int 1} r msetex 2 c 1 d 2 exat 1
        assert_equal {{} {}} [r mget c d]
        assert_equal {a b} [r command getkeys msetex 2 a 1 b 2 nx]
    }

    test "MSETEX refuses, and nothing has changed" {keydb} {
        r rpush l a
        foreach {words error} {
            {0 a 1} "invalid numkeys value"   {-1 a 1} "invalid numkeys value"   {x a 1} "invalid numkeys value"
            {99999999999 a 1} "invalid numkeys value"   {2 a 1} "wrong number of key-value pairs"
            {2 a 1 b} "wrong number of key-value pairs"   {1 a 1 b} "syntax error"   {1 a 1 nx xx} "syntax error"
            {1 a 1 ifeq 1} "syntax error"   {1 a 1 get} "syntax error"   {1 a 1 persist} "syntax error"
            {1 a 1 ex} "syntax error"   {1 a 1 ex 1 px 1} "syntax error"   {1 a 1 ex 1 keepttl} "syntax error"
            {1 a 1 ex 0} "invalid expire time in 'msetex' command"
            {1 a 1 px -5} "invalid expire time in 'msetex' command"
            {1 a 1 ex 9223372036854775807} "invalid expire time in 'msetex' command"
            {1 a 1 ex x} "value is not an integer or out of range"
        } {
            assert_refused "ERR $error" r msetex {*}$words
        }
        assert_error "ERR wrong number of arguments for 'msetex' command" {r msetex 1 a}
        assert_equal l [r keys *]
        assert_reply {int 1} r msetex 1 l x
        assert_equal x [r get l]
    }

    test "they refuse, and nothing has changed" {keydb} {
        r set k v
        r rpush l a
        foreach words {{nx ifeq v} {ifeq v nx} {ifeq v xx} {xx ifne v} {ifeq v ifne v} {ifdeq x ifdne x} {ifeq}
                {get ifne} {ifeq v ex} {ifeq v ex 10 px 10} {ifeq v persist}} {
            assert_refused "ERR syntax error" r set k w {*}$words
        }
        foreach words {{ifdeq 123} {ifdne 12345678901234567} {get ifdeq {}}} {
            assert_refused $::bad_length r set k w {*}$words
        }
        foreach words {{ifdeq 123} {ifdne {}}} {
            assert_refused $::bad_length r delex k {*}$words
        }
        assert_refused "ERR invalid expire time in 'set' command" r set k w ifeq v ex 0
        foreach condition {ifeq ifne ifdeq ifdne} {
            assert_refused $::wrong_type r set l w $condition 0123456789abcdef
            assert_refused $::wrong_type r set l w get $condition 0123456789abcdef
            assert_refused "ERR Key should be of string type if conditions are specified" r delex l $condition \
                0123456789abcdef
        }
        assert_refused $::wrong_type r digest l
        assert_refused $::wrong_type r delifeq l a
        foreach word {nx xx foo} {
            assert_refused "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE" r delex k $word v
            assert_refused "ERR Key should be of string type if conditions are specified" r delex l $word v
        }
        foreach words {{delex k ifeq} {delex k ifeq v w} {delex} {digest} {digest k k} {delifeq k} {delifeq k v w}} {
            assert_error "ERR wrong number of arguments for '[lindex $words 0]' command" {r {*}$words}
        }
        assert_equal {v a} [list [r get k] [r lindex l 0]]
    }

    test "deadlines: with a condition as without" {keydb} {
        r set k v ex 100
        assert_reply {status OK} r set k w ifeq v keepttl
        assert_range [r ttl k] 90 100
        assert_reply {status OK} r set k x ifeq w
        assert_equal -1 [r ttl k]
        assert_reply {status OK} r set k y ifne w px 100000
        assert_range [r pttl k] 90000 100000
        assert_reply nullbulk r set k z ifne y ex 5
        assert_range [r pttl k] 90000 100000
    }

    test "within MULTI and scripts, above maxmemory" {keydb} {
        r set k v
        set digest [r digest k]
        r del k
        r multi
        r set k v ifne v
        r digest k
        r delex k ifeq w
        r delifeq k v
        assert_equal [list OK $digest 0 1] [r exec]
        assert_equal $digest [r eval {redis.call('set', KEYS[1], 'v', 'ifne', 'v')
            local digest = redis.call('digest', KEYS[1])
            redis.call('delex', KEYS[1], 'ifdeq', digest)
            return digest} 1 k]
        assert_equal 0 [r exists k]
        r set k v
        r config set maxmemory 1
        assert_error "OOM *" {r set k w ifeq v}
        assert_reply {int 1} r delifeq k v
        r config set maxmemory 0
    }

    test "users may be allowed to write, and not to learn what a value is" {keydb} {
        r acl setuser u on nopass +@all resetkeys %W~w* %RW~a*
        set c [connect]
        $c auth u x
        assert_equal OK [$c set w v]
        assert_equal OK [$c set w v xx]
        foreach words {{set w v ifeq v} {set w v get} {delex w ifeq v} {delifeq w v} {digest w}} {
            assert_error "NOPERM No permissions to access a key*" {$c {*}$words}
        }
        assert_equal {1 OK 1} [list [$c delex w] [$c set a v ifne v] [$c delex a ifeq v]]
    }
}

# INCREX replies with the number and what was added to it: integers, or floats.
proc assert_increx {expected words} {
    set is_float [expr {"byfloat" in $words}]
    set type [expr {!$is_float ? "int" : $::proto == 2 ? "bulk" : "double"}]
    assert_reply [list array [lmap number $expected {list $type $number}]] r increx {*}$words
}

with_server {enable-debug-command yes} {
    foreach ::proto {2 3} {
        test "INCREX adds within bounds, RESP$::proto" {keydb} {
            r hello $::proto
            foreach {before words expected after} {
                - {} {1 1} 1   41 {} {42 1} 42   5 {byint -7} {-2 -7} -2   5 {byint 0} {5 0} 5
                50 {byint 5 ubound 30} {50 0} 50   50 {byint 5 ubound 30 saturate} {30 -20} 30
                50 {SATURATE LBOUND 60 BYINT 5} {60 10} 60   50 {lbound 60 byint 5} {50 0} 50
                50 {byint -25 ubound 30} {25 -25} 25   50 {byint -5 ubound 30} {50 0} 50
                9 {ubound 10} {10 1} 10   10 {ubound 10} {10 0} 10   10 {ubound 10 saturate} {10 0} 10
                -9 {byint -1 lbound -10} {-10 -1} -10   -10 {byint -1 lbound -10} {-10 0} -10
                - {ubound 0} {0 0} -   - {ubound 0 saturate} {0 0} 0   - {lbound 2 ubound 3} {0 0} -
                - {lbound 2 ubound 2 saturate} {2 2} 2
                9223372036854775807 {} {9223372036854775807 0} 9223372036854775807
                9223372036854775800 {byint 10 saturate} {9223372036854775807 7} 9223372036854775807
                -9223372036854775800 {byint -10 saturate} {-9223372036854775808 -8} -9223372036854775808
                -9223372036854775808 {byint 9223372036854775807} {-1 9223372036854775807} -1
                - {byfloat 0.5} {0.5 0.5} 0.5   10.5 {byfloat 0.1} {10.6 0.1} 10.6   3 {byfloat 1e2} {103 100} 103
                10 {byfloat 1.5 ubound 11.25} {10 0} 10   10 {byfloat 1.5 ubound 11.25 saturate} {11.25 1.25} 11.25
                0.5 {byfloat -1 lbound 0 saturate} {0 -0.5} 0   50.5 {byfloat 5 ubound 30 saturate} {30 -20.5} 30
                1 {byfloat 1 lbound -inf ubound inf} {2 1} 2   - {byfloat 1 ubound 0.5} {0 0} -
                1.5 {byfloat 0.5} {2 0.5} 2
            } {
                r del k
                if {$before ne "-"} {
                    r set k $before ex 100
                }
                assert_increx $expected [list k {*}$words]
                assert_equal [expr {$after eq "-" ? {} : $after}] [r get k] $words
                assert_equal [expr {$after eq "-" ? -2 : $before eq "-" ? -1 : 100}] [r ttl k] $words
            }
            # The largest float has 4,933 digits.
            r set k 1e4932
            set largest [r increx k byfloat 1e4932 saturate]
            assert_match "11897314953572317650*" [lindex $largest 0]
            assert_equal [list 4933 [lindex $largest 0]] [list [string length [lindex $largest 0]] [r get k]]
            r hello 2
        }
    }

    set ::proto 2
    test "INCREX and deadlines" {keydb} {
        foreach {ttl words after} {
            - {ex 100} 100   - {px 100000} 100   50 {ex 100} 100   50 {ex 100 enx} 50   - {enx px 100000} 100
            50 {} 50   50 {persist} -1   - {persist} -1   50 {exat 1} -2   - {pxat 1} -2   50 {exat 1 enx} 50
            50 {ex 100 ubound 1} 50   50 {persist ubound 1} 50   50 {pxat 1 ubound 1} 50
            50 {ex 100 ubound 1 saturate} 100   50 {persist ubound 1 saturate} -1   50 {pxat 1 ubound 1 saturate} -2
        } {
            foreach number {{} {byfloat 1}} {
                r set k 1
                if {$ttl ne "-"} {
                    r expire k $ttl
                }
                r increx k {*}$words {*}$number
                assert_equal $after [r ttl k] "$words $number"
            }
        }
        r del k
        assert_increx {5 5} {k byint 5 exat 1}
        assert_increx {0.5 0.5} {k byfloat 0.5 pxat 1 enx}
        assert_equal 0 [r exists k]
        r increx k pxat 9223372036854775807
        assert_equal 9223372036854775807 [r pexpiretime k]
    }

    test "INCREX refuses, and nothing has changed" {keydb} {
        r flushall
        r set n 5 ex 100
        r set t text
        r set f 1.5
        r set i inf
        r set low -9223372036854775808
        r set huge -1e4932
        r rpush l a
        set before [r debug digest]
        foreach {words error} {
            {n foo} "syntax error"   {n byint} "syntax error"   {n byint 1 byint 1} "syntax error"
            {n byint 1 byfloat 1} "syntax error"   {n byfloat 1 byint 1} "syntax error"   {n ex 1 px 1} "syntax error"
            {n ex 1 ex 1} "syntax error"   {n ex 1 persist} "syntax error"   {n persist persist} "syntax error"
            {n persist enx} "syntax error"   {n enx ex 1 enx} "syntax error"   {n saturate saturate} "syntax error"
            {n lbound 1 lbound 1} "syntax error"   {n ubound 1 ubound 1} "syntax error"   {n keepttl} "syntax error"
            {n lbound} "syntax error"   {n ubound} "syntax error"   {n ex} "syntax error"   {n {}} "syntax error"
            {n byfloat} "syntax error"   {n nx} "syntax error"
            {n byint 1.5} "Increment is not an integer or out of range"
            {n byint {}} "Increment is not an integer or out of range"
            {n byint 9223372036854775808} "Increment is not an integer or out of range"
            {n byfloat x} "Increment is not a valid float"   {n byfloat {}} "Increment is not a valid float"
            {n byfloat nan} "Increment is not a valid float"
            {n byfloat inf} "BYFLOAT increment cannot be Infinity"
            {n byfloat -inf} "BYFLOAT increment cannot be Infinity"
            {i byfloat 1} "value cannot be Infinity"
            {n lbound x} "value is not an integer or out of range"
            {n ubound 1.5} "value is not an integer or out of range"
            {n byfloat 1 lbound x} "value is not a valid float"   {n byfloat 1 ubound {}} "value is not a valid float"
            {n lbound 2 ubound 1} "LBOUND can't be greater than UBOUND"
            {n byfloat 1 lbound 0.2 ubound 0.1} "LBOUND can't be greater than UBOUND"
            {n enx} "ENX flag requires an expiration"
            {low lbound 9223372036854775807 saturate} "applied increment would overflow"
            {huge byfloat 1 lbound 1e4932 saturate} "applied increment would be Infinity"
            {n byfloat 1 lbound inf saturate} "applied increment would be Infinity"
            {t} "value is not an integer or out of range"   {f} "value is not an integer or out of range"
            {t byfloat 1} "value is not a valid float"
            {n ex 0} "invalid expire time in 'increx' command"   {n pxat -1} "invalid expire time in 'increx' command"
            {n ex 9223372036854775807} "invalid expire time in 'increx' command"
            {n px 9223372036854775807} "invalid expire time in 'increx' command"
            {n ex x} "value is not an integer or out of range"
            {n ex 9223372036854775808} "value is not an integer or out of range"
        } {
            assert_refused "ERR $error" r increx {*}$words
        }
        assert_refused $::wrong_type r increx l
        assert_refused $::wrong_type r increx l byfloat 1 exat 1
        assert_error "ERR wrong number of arguments for 'increx' command" {r increx}
        assert_equal $before [r debug digest]
    }

    test "INCREX within MULTI and scripts, above maxmemory, for users" {keydb} {
        r del k
        r multi
        r increx k ex 100 enx
        r increx k ubound 1
        assert_equal {{1 1} {1 0}} [r exec]
        assert_equal {3 2} [r eval {return redis.call('increx', KEYS[1], 'byint', 2)} 1 k]
        r config set maxmemory 1
        assert_error "OOM *" {r increx k}
        r config set maxmemory 0
        r acl setuser u on nopass +@all resetkeys %W~w* %R~r* ~a*
        set c [connect]
        $c auth u x
        foreach key {w r} {
            assert_error "NOPERM No permissions to access a key*" {$c increx $key}
        }
        assert_equal {1 1} [$c increx a]
    }

    test "INCREX tells who listens" {keydb} {
        set c [connect]
        r config set notify-keyspace-events KEA
        $c subscribe __keyevent@0__:incrby __keyevent@0__:incrbyfloat __keyevent@0__:expire __keyevent@0__:persist \
            __keyevent@0__:del
        for {set i 1} {$i < 5} {incr i} {
            $c -read
        }
        foreach {words events} {
            {k} incrby   {k ubound 1} {}   {k ex 100} {incrby expire}   {k ex 100 enx byfloat 1} incrbyfloat
            {k persist} {incrby persist}   {k persist} incrby   {k px 100000 byfloat 1} {incrbyfloat expire}
            {k exat 1} del   {k exat 1} {}   {k} incrby
        } {
            r increx {*}$words
            foreach event $events {
                assert_equal [list message __keyevent@0__:$event k] [$c -read] $words
            }
        }
    }
}
