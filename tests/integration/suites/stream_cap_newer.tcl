# Streams: MAXCOUNT and MAXSIZE of XREAD and XREADGROUP, as since Redis 8.10. What counts are entries, and the bytes of
# their fields and values, of all streams together.

# Streams a, b and c, each with three entries of 10, 20 and 30 bytes, and group g of each.
proc prepare {} {
    r flushall
    foreach key {a b c} {
        foreach {ms size} {1 9 2 19 3 29} {
            r xadd $key $ms-0 f [string repeat $ms $size]
        }
        r xgroup create $key g 0
    }
}

# {key {ms ...}} of each stream that is there.
proc short reply {
    if {$::proto == 3} {
        set pairs {}
        foreach {key entries} $reply {
            lappend pairs [list $key $entries]
        }
        set reply $pairs
    }
    return [lmap stream $reply {
        list [lindex $stream 0] [lmap entry [lindex $stream 1] {lindex [split [lindex $entry 0] -] 0}]
    }]
}

proc pending {key {consumer u}} {
    return [lmap row [r xpending $key g - + 100 $consumer] {lindex [split [lindex $row 0] -] 0}]
}

with_server {enable-debug-command yes appendonly yes} {
    foreach ::proto {2 3} {
        test "XREAD, RESP$::proto" {keydb} {
            r hello $::proto
            prepare
            foreach {options keys ids expected} {
                {maxcount 1}              {a b c} {0 0 0}    {{a 1}}
                {MAXCOUNT 4}              {a b c} {0 0 0}    {{a {1 2 3}} {b 1}}
                {maxcount 4 count 2}      {a b c} {0 0 0}    {{a {1 2}} {b {1 2}}}
                {count 2 maxcount 5}      {c a b} {0 0 0}    {{c {1 2}} {a {1 2}} {b 1}}
                {count 2 maxcount 2}      {c a b} {0 0 0}    {{c {1 2}}}
                {count 0 maxcount 2}      {c a b} {0 0 0}    {{c {1 2}}}
                {maxcount 99}             {c a}   {2 1}      {{c 3} {a {2 3}}}
                {maxcount 1 maxcount 2}   {a b}   {0 0}      {{a {1 2}}}
                {maxcount 9223372036854775807 maxsize 9223372036854775807} {a b} {2 2} {{a 3} {b 3}}
                {maxsize 1}               {a b}   {0 0}      {{a 1}}
                {MAXSIZE 10}              {a b}   {0 0}      {{a 1}}
                {maxsize 29}              {a b}   {0 0}      {{a 1}}
                {maxsize 30}              {a b}   {0 0}      {{a {1 2}}}
                {maxsize 59}              {a b}   {0 0}      {{a {1 2}}}
                {maxsize 60}              {a b}   {0 0}      {{a {1 2 3}}}
                {maxsize 69}              {a b}   {0 0}      {{a {1 2 3}}}
                {maxsize 70}              {a b}   {0 0}      {{a {1 2 3}} {b 1}}
                {maxsize 40 count 1}      {a b c} {1 0 0}    {{a 2} {b 1} {c 1}}
                {maxsize 39 count 1}      {a b c} {1 0 0}    {{a 2} {b 1}}
                {maxsize 5}               {a b}   {2-0 0}    {{a 3}}
                {maxsize 1000 maxcount 2} {a b}   {2 0}      {{a 3} {b 1}}
                {maxcount 1}              {a b}   {3-0 2}    {{b 3}}
                {maxcount 1 block 5}      {a b}   {$ 0}      {{b 1}}
                {maxcount 1}              {a b}   {+ +}      {{a 3}}
            } {
                assert_equal $expected [short [r xread {*}$options streams {*}$keys {*}$ids]] "$options $keys $ids"
            }
            assert_reply [expr {$::proto == 2 ? "nullarray" : "null"}] r xread maxcount 1 maxsize 1 streams a b 3 3
            r hello 2
        }

        test "XREADGROUP, RESP$::proto" {keydb} {
            r hello $::proto
            foreach {options keys expected} {
                {maxcount 1}             {a b} {{a 1}}
                {maxcount 4}             {a b} {{a {1 2 3}} {b 1}}
                {maxcount 4 noack}       {a b} {{a {1 2 3}} {b 1}}
                {maxcount 3 count 2}     {a b} {{a {1 2}} {b 1}}
                {maxsize 1}              {a b} {{a 1}}
                {maxsize 30}             {a b} {{a {1 2}}}
                {maxsize 65}             {a b} {{a {1 2 3}}}
                {maxsize 70}             {a b} {{a {1 2 3}} {b 1}}
            } {
                prepare
                assert_equal $expected [short [r xreadgroup group g u {*}$options streams {*}$keys > >]] $options
                # What was left out has not been delivered: it comes next.
                foreach key {a b} {
                    set had {}
                    foreach stream $expected {
                        if {[lindex $stream 0] eq $key} {
                            set had [lindex $stream 1]
                        }
                    }
                    assert_equal [expr {"noack" in $options ? {} : $had}] [pending $key] "$options $key"
                    set rest [lrange {1 2 3} [llength $had] end]
                    assert_equal [expr {$rest eq {} ? {} : [list [list $key $rest]]}] \
                        [short [r xreadgroup group g w streams $key >]] "$options $key"
                }
            }
            r hello 2
        }

        test "history, RESP$::proto" {keydb} {
            r hello $::proto
            prepare
            r xreadgroup group g u streams a b > >
            r xdel a 2-0
            foreach {options ids expected} {
                {maxcount 2}           {0 0}     {{a {1 2}}}
                {maxcount 4}           {0 0}     {{a {1 2 3}} {b 1}}
                {maxsize 39}           {0 0}     {{a {1 2}}}
                {maxsize 49}           {0 0}     {{a {1 2 3}}}
                {maxsize 50}           {0 0}     {{a {1 2 3}} {b 1}}
                {maxsize 9}            {3 0}     {{a {}} {b 1}}
                {maxcount 1}           {3 3}     {{a {}} {b {}}}
                {maxcount 1}           {2 3}     {{a 3}}
                {maxcount 2}           {2 3}     {{a 3} {b {}}}
            } {
                assert_equal $expected [short [r xreadgroup group g u {*}$options streams a b {*}$ids]] "$options $ids"
            }
            # Deliveries are counted for what was sent alone.
            set rows [concat [r xpending a g - + 1] [r xpending a g 3 3 1] [r xpending b g - + 1]]
            assert_equal {6 6 4} [lmap row $rows {lindex $row 3}]
            r hello 2
        }
    }

    test "what CLAIM takes counts, too" {keydb} {
        foreach {options expected} {
            {maxcount 1}    {{a 1}}
            {maxcount 3}    {{a {1 2 3}}}
            {maxcount 4}    {{a {1 2 3}} {b 1}}
            {maxsize 59}    {{a {1 2}}}
            {maxsize 69}    {{a {1 2 3}}}
            {maxsize 70}    {{a {1 2 3}} {b 1}}
        } {
            set ::proto 2
            prepare
            r xreadgroup group g w count 2 streams a >
            r xreadgroup group g w count 2 streams b >
            assert_equal $expected [short [r xreadgroup group g u {*}$options claim 0 streams a b > >]] $options
            set taken [llength [lindex $expected 1 1]]
            assert_equal [lrange {1 2} 0 [expr {$taken - 1}]] [pending b] $options
            assert_equal [lrange {1 2} $taken end] [pending b w] $options
        }
    }

    test "they refuse, and nothing has changed" {keydb} {
        prepare
        set before [r debug digest]
        set int "ERR value is not an integer or out of range"
        foreach {options error} [list \
            {maxcount x} $int                       {maxcount {}} $int        {maxcount 1.5} $int \
            {maxcount 9223372036854775808} $int     {maxsize x} $int          {maxsize 9223372036854775808} $int \
            {maxcount 0} "ERR MAXCOUNT must be a positive integer" \
            {maxcount -1} "ERR MAXCOUNT must be a positive integer" \
            {maxsize 0} "ERR MAXSIZE must be a positive integer" \
            {maxsize -9223372036854775808} "ERR MAXSIZE must be a positive integer" \
            {count 2 maxcount 1} "ERR MAXCOUNT must not be less than COUNT" \
            {maxcount 1 count 2} "ERR MAXCOUNT must not be less than COUNT" \
            {maxcoun 1} "ERR syntax error"          {maxcount} $int           {maxsize} $int \
        ] {
            assert_refused $error r xread {*}$options streams a 0
            assert_refused $error r xreadgroup group g u {*}$options streams a >
            assert_refused $error r xreadgroup group g u {*}$options streams a 0
        }
        assert_equal $before [r debug digest]
        assert_equal {} [r xinfo consumers a g]
    }

    test "keys are found, also where words look like options" {keydb} {
        assert_equal {streams l} [r command getkeys xread maxcount 5 maxsize 7 streams streams l 0 0]
        assert_equal {maxsize streams} [r command getkeys xread maxcount 5 streams maxsize streams 0 0]
        assert_equal k [r command getkeys xreadgroup group maxcount u maxcount 1 count 2 maxsize 3 streams k >]
    }

    test "clients that wait get no more" {keydb} {
        set ::proto 2
        prepare
        set reader [connect]
        set worker [connect]
        $reader -send xread block 0 maxcount 2 streams a b $ $
        wait_for {[info_field blocked_clients clients] == 1}
        r xreadgroup group g x streams b >
        $worker -send xreadgroup group g u block 0 maxsize 25 maxcount 9 streams b >
        wait_for {[info_field blocked_clients clients] == 2}
        r multi
        foreach ms {4 5 6} {
            r xadd b $ms-0 f [string repeat x 9]
        }
        r exec
        assert_equal {{b {4 5}}} [short [$reader -read]]
        assert_equal {{b {4 5}}} [short [$worker -read]]
        assert_equal {4 5} [pending b]
        assert_equal {{b 6}} [short [r xreadgroup group g u streams b >]]
        $reader -close
        $worker -close
    }

    test "in MULTI and scripts, and for replicas and files" {keydb} {
        set ::proto 2
        prepare
        r multi
        r xreadgroup group g u maxcount 4 streams a b > >
        r xread maxsize 15 streams b c 0 0
        assert_equal {{{a {1 2 3}} {b 1}} {{b 1}}} [lmap reply [r exec] {short $reply}]
        assert_equal {{b {2 3}} {c 1}} [short [r eval {
            return redis.call('xreadgroup', 'GROUP', 'g', 'u', 'MAXCOUNT', 3, 'STREAMS', KEYS[1], KEYS[2], '>', '>')
        } 2 b c]]
        # The consumer is made, also where nothing fits that it could get.
        r xreadgroup group g u streams c >
        r xadd a 4-0 f 12
        r xadd b 4-0 f 12
        assert_equal {{a 4}} [short [r xreadgroup group g new maxsize 4 streams a b > >]]
        assert_equal {{a 2} {b 2} {c 1}} [lmap key {a b c} {list $key [llength [r xinfo consumers $key g]]}]
        r xreadgroup group g new streams b >
        r xgroup delconsumer b g new
        r xadd a 5-0 f 123
        r xadd b 5-0 f 123
        assert_equal {{a 5}} [short [r xreadgroup group g new maxsize 7 streams a b > >]]
        assert_equal {new u} [lsort [lmap consumer [r xinfo consumers b g] {dict get $consumer name}]]
        set before [list [r debug digest] [pending a] [pending b] [pending c]]
        r debug loadaof
        assert_equal $before [list [r debug digest] [pending a] [pending b] [pending c]]
        assert_equal {new u} [lsort [lmap consumer [r xinfo consumers b g] {dict get $consumer name}]]
    }

    test "readers that take a little each time get everything once, in order" {keydb} {
        set seed [clock clicks]
        expr {srand($seed)}
        set ::proto 2
        for {set round 0} {$round < 30} {incr round} {
            prepare
            foreach key {a b c} {
                set wanted($key) {1 2 3}
                set got($key) {}
                for {set ms 4} {$ms < 20} {incr ms} {
                    set field [string repeat f [expr {int(rand() * 9)}]]
                    r xadd $key $ms-0 $field [string repeat v [expr {int(rand() * 70)}]]
                    lappend wanted($key) $ms
                }
            }
            set options [list maxcount [expr {5 + int(rand() * 9)}] maxsize [expr {1 + int(rand() * 200)}] \
                count [expr {int(rand() * 5)}]]
            while {[set reply [r xreadgroup group g u {*}$options streams a b c > > >]] ne {}} {
                set bytes 0
                set count 0
                foreach stream $reply {
                    foreach entry [lindex $stream 1] {
                        lappend got([lindex $stream 0]) [lindex [split [lindex $entry 0] -] 0]
                        incr bytes [string length [join [lindex $entry 1] {}]]
                        incr count
                    }
                    assert {[llength [lindex $stream 1]] > 0}
                }
                assert {$count <= [lindex $options 1] && ($count == 1 || $bytes <= [lindex $options 3])} \
                    "seed $seed, $options: $reply"
            }
            foreach key {a b c} {
                assert_equal $wanted($key) $got($key) "seed $seed, $options"
                assert_equal $wanted($key) [pending $key] "seed $seed, $options"
            }
        }
    }
}
