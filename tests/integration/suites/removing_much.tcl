# Commands that remove most of a large value, or all of it: the rest takes the value's place, and the old one is freed
# elsewhere. Nobody must see a difference.

proc fill_zset {name {step 1}} {
    r del $name
    set words {}
    for {set i 0} {$i < 3000} {incr i} {
        lappend words [expr {$i * $step}] [format m%04d $i]
    }
    r zadd $name {*}$words
}

proc fill_set name {
    r del $name
    set ::members {}
    for {set i 0} {$i < 3000} {incr i} {
        lappend ::members [expr {$i % 3 ? "member:$i" : $i}]
    }
    r sadd $name {*}$::members
}

# Every seventh entry is pending for `other`.
proc fill_group name {
    r del $name
    r eval {for i = 1, 3000 do redis.call('XADD', KEYS[1], i .. '-0', 'f', 'v') end} 1 $name
    r xgroup create $name g 0
    r xgroup create $name untouched 0
    r xreadgroup group g one count 3000 streams $name >
    r xreadgroup group untouched one count 5 streams $name >
    set ids {}
    for {set i 7} {$i <= 3000} {incr i 7} {
        lappend ids $i-0
    }
    r xclaim $name g other 0 {*}$ids justid
}

proc names {first last} {
    set names {}
    for {set i $first} {$i <= $last} {incr i} {
        lappend names [format m%04d $i]
    }
    return $names
}

proc listen {} {
    set c [connect]
    $c subscribe __keyspace@0__:k
    $c subscribe end
    return $c
}

# Events of the key since then, in order.
proc told c {
    r publish end {}
    set found {}
    while 1 {
        lassign [$c -read] kind channel event
        if {$channel eq "end"} {
            return $found
        }
        lappend found $event
    }
}

proc assert_rest_of_zset {left step} {
    assert_equal skiplist [r object encoding k]
    assert_range [r ttl k] 900 1000
    set rank 0
    foreach name $left {
        assert_equal [expr {[scan $name m%d] * $step}] [r zscore k $name]
        assert_equal $rank [r zrank k $name]
        incr rank
    }
    assert_equal 1 [r zadd k -1 first]
    assert_equal first [lindex [r zrange k 0 0] 0]
}

proc assert_rest_of_set {left popped} {
    assert_equal $left [r scard k]
    assert_equal hashtable [r object encoding k]
    assert_range [r ttl k] 900 1000
    assert_equal 0 [r sismember k [lindex $popped 0]]
    assert_equal 1 [r sadd k [lindex $popped 0]]
}

set ranges {
    {zremrangebyrank k 0 -1}              1 {}                               zremrangebyrank
    {zremrangebyrank k 4 -3}              1 {[names 0 3] [names 2998 2999]}  zremrangebyrank
    {zremrangebyrank k 1000 -1}           1 {[names 0 999]}                  zremrangebyrank
    {zremrangebyrank k 0 1999}            1 {[names 2000 2999]}              zremrangebyrank
    {zremrangebyrank k 500 1500}          1 {[names 0 499] [names 1501 2999]} zremrangebyrank
    {zremrangebyscore k -inf +inf}        1 {}                               zremrangebyscore
    {zremrangebyscore k 10 (2990}         1 {[names 0 9] [names 2990 2999]}  zremrangebyscore
    {zremrangebylex k - +}                0 {}                               zremrangebylex
    {zremrangebylex k \[m0003 (m2999}     0 {[names 0 2] m2999}              zremrangebylex
    {zpopmin k 3000}                      1 {}                               zpopmin
    {zpopmin k 2999}                      1 {m2999}                          zpopmin
    {zpopmax k 2500}                      1 {[names 0 499]}                  zpopmax
    {zmpop 1 k min count 2990}            1 {[names 2990 2999]}              zpopmin
}

with_server {enable-debug-command yes notify-keyspace-events KA} {
    foreach {words step left event} $ranges {
        test_each {words step left event} "the rest of a sorted set: $words" {} {
            set left [concat {*}[subst $left]]
            fill_zset k $step
            r expire k 1000
            r watch k
            set listener [listen]
            set other [connect]
            set reply [$other {*}$words]
            assert_equal [concat $event [expr {$left eq {} ? "del" : {}}]] [told $listener]
            if {[string match zrem* $event]} {
                assert_equal [expr {3000 - [llength $left]}] $reply
            }
            assert_equal $left [r zrange k 0 -1]
            assert_equal [llength $left] [r zcard k]
            r multi
            r ping
            assert_equal {} [r exec]
            assert_equal [expr {$left ne {}}] [r exists k]
            if {$left ne {}} {
                assert_rest_of_zset $left $step
            }
        }
    }
    foreach count {3000 2999 2990 2000 1999 1} {
        test_each count "the rest of a set: $count are popped" {} {
            fill_set k
            r expire k 1000
            set listener [listen]
            set popped [r spop k $count]
            assert_equal [concat spop [expr {$count == 3000 ? "del" : {}}]] [told $listener]
            assert_equal $count [llength $popped]
            assert_equal [lsort $::members] [lsort [concat $popped [r smembers k]]]
            assert_equal [expr {$count < 3000}] [r exists k]
            if {$count < 3000} {
                assert_rest_of_set [expr {3000 - $count}] $popped
            }
        }
    }

    test "each member is popped as often as others, also if nearly all are" {} {
        set words {}
        for {set i 0} {$i < 2048} {incr i} {
            lappend words member:$i
        }
        for {set round 0} {$round < 60} {incr round} {
            r del k
            r sadd k {*}$words
            r spop k 1536
            foreach member [r smembers k] {
                incr left($member)
            }
        }
        # 512 * 60 of 2048: each is left 15 times on average, with a deviation of 3.4
        assert_range [array size left] 2047 2048
        foreach {member times} [array get left] {
            assert_range $times 1 40
        }
    }

    test "groups and consumers with much that is pending" {} {
        fill_group k
        set stream [r xinfo stream k]
        assert_equal 2572 [r xgroup delconsumer k g one]
        assert_equal 428 [lindex [r xpending k g] 0]
        assert_equal {{other 428}} [lindex [r xpending k g] 3]
        assert_equal {7-0 14-0 21-0} [lmap each [r xpending k g - + 3] {lindex $each 0}]
        assert_equal 2996-0 [lindex [r xpending k g (2990-0 + 3] 0 0]
        assert_equal 1 [r xack k g 2996-0]
        assert_equal 1 [r xgroup createconsumer k g one]
        assert_equal 427 [r xgroup delconsumer k g other]
        assert_equal 1 [r xgroup destroy k g]
        assert_equal 0 [r xgroup destroy k g]
        assert_equal 5 [lindex [r xpending k untouched] 0]
        assert_equal $stream [concat [lrange [r xinfo stream k] 0 end-6] [lrange $stream end-5 end]]
    }

    test "what goes is freed in the background, if the option says so" {keydb} {
        set cases {
            {fill_zset k}  {zremrangebyrank k 0 -1}
            {fill_zset k}  {zremrangebyscore k 10 +inf}
            {fill_zset k}  {zpopmin k 2990}
            {fill_set k}   {spop k 2990}
            {fill_set k}   {spop k 3000}
            {fill_group k} {xgroup destroy k g}
            {fill_group k} {xgroup delconsumer k g one}
        }
        foreach {lazy freed} {yes 1 no 0} {
            r config set lazyfree-lazy-server-del $lazy
            foreach {fill words} $cases {
                {*}$fill
                wait_for {[info_field lazyfree_pending_objects memory] == 0}
                set before [info_field lazyfreed_objects memory]
                r {*}$words
                wait_for {[info_field lazyfree_pending_objects memory] == 0}
                assert_equal [expr {$before + $freed}] [info_field lazyfreed_objects memory] $words
            }
        }
        r config set lazyfree-lazy-server-del yes
    }

    test "a value is freed in the background if that takes longer than to hand it over" {keydb} {
        with_config {lazyfree-lazy-user-del yes set-max-listpack-entries 16} {
            foreach {count freed} {17 0 127 0 128 1 129 1} {
                r del k
                for {set i 0} {$i < $count} {incr i} {
                    r sadd k member:$i
                }
                set before [info_field lazyfreed_objects memory]
                assert_equal 1 [r del k]
                wait_for {[info_field lazyfree_pending_objects memory] == 0}
                assert_equal [expr {$before + $freed}] [info_field lazyfreed_objects memory] "$count members"
            }
        }
    }

    test "effects are what they are for few members" {keydb} {
        foreach {fill words effect} {
            {fill_zset k} {zremrangebyscore k 10 +inf} {4 zremrangebyscore k 10 +inf}
            {fill_zset k} {zpopmin k 2990}             {3 zpopmin k 2990}
            {fill_set k}  {spop k 2990}                {2992 SREM k}
            {fill_set k}  {spop k 3000}                {2 DEL k}
        } {
            {*}$fill
            r debug journal start
            set popped [r {*}$words]
            set stream [r debug journal read]
            r debug journal stop
            set lines [lsearch -all -inline -not -regexp [split [string map {\r {}} $stream] \n] {^(\$.*)?$}]
            assert_equal [concat *2 SELECT 0 *[lindex $effect 0] [lrange $effect 1 end]] \
                [lrange $lines 0 [expr {[llength $effect] + 2}]]
            if {[string match *SREM* $effect]} {
                assert_equal $popped [lrange $lines 6 end]
            }
        }
    }

    test "all of it is taken back" {keydb} {
        foreach {fill words} {
            {fill_zset k}  {zremrangebyrank k 0 -1}
            {fill_zset k}  {zremrangebyrank k 3 -4}
            {fill_zset k}  {zadd k 1 new ; zremrangebyrank k 3 -4 ; zadd k 2 newer ; zremrangebyrank k 0 2}
            {fill_set k}   {spop k 2990}
            {fill_set k}   {sadd k new ; spop k 2990 ; sadd k newer ; spop k 3}
            {fill_group k} {xgroup destroy k g}
            {fill_group k} {xgroup delconsumer k g one}
        } {
            {*}$fill
            r expireat k 4000000000
            set digest [r debug digest-key k]
            assert_equal 1 [lindex [r debug undo run {*}$words] end]
            assert {[r debug digest-key k] ne $digest}
            assert_equal 1 [r debug undo back]
            assert_equal $digest [r debug digest-key k] $words
        }
    }

    test "members that stay keep their deadlines, and others lose theirs" {keydb} {
        fill_zset k
        r expiremember k m0001 1000
        r expiremember k m1500 1000
        assert_equal 2990 [r zremrangebyrank k 10 2999]
        assert_range [r ttl k m0001] 900 1000
        r zadd k 1 m1500
        assert_equal -1 [r ttl k m1500]
        assert_equal 11 [r zremrangebyrank k 0 -1]
        r zadd k 1 m0001
        assert_equal -1 [r ttl k m0001]
        fill_set k
        r expiremember k [lindex $::members 1] 1000
        set popped [r spop k 2990]
        assert_equal [expr {[lindex $::members 1] ni $popped}] [expr {[r ttl k [lindex $::members 1]] > 900}]
        r sadd k {*}$popped
        assert_equal [expr {[lindex $::members 1] ni $popped}] [expr {[r ttl k [lindex $::members 1]] > 900}]
    }
}
