# Commands are taken back (store/undo.h): DEBUG UNDO compares the digests of their keys, which have the order of lists,
# all deadlines, and groups of streams.

proc one_of list {
    return [lindex $list [expr {int(rand() * [llength $list])}]]
}

proc below bound {
    return [expr {int(rand() * $bound)}]
}

# Replaces the words of a template that stand for something random.
proc random_words template {
    set words {}
    foreach word $template {
        switch -regexp -- $word {
            {^K$} {lappend words key:[below 12]}
            {^M$} {lappend words [one_of [list m[below 20] [below 30] [string repeat x [below 90]]]]}
            {^V$} {lappend words [one_of [list v[below 20] [below 1000] [string repeat [one_of {a b c}] [below 200]] \
                                          [string repeat [one_of {a b c}] [below 3000]]]]}
            {^N$} {lappend words [expr {[below 40] - 15}]}
            {^I$} {lappend words [expr {[below 12] - 4}]}
            {^P$} {lappend words [below 2000]}
            {^F$} {lappend words [expr {[below 1000] / 8.0}]}
            {^D$} {lappend words [expr {4000000000000 + [below 1000]}]}
            {^E$} {lappend words [expr {1000 + [below 1000]}]}
            {^X$} {lappend words [below 30]-[below 3]}
            {^G$} {lappend words g[below 3]}
            {^C$} {lappend words c[below 3]}
            {^T$} {lappend words [one_of {0 9 10}]}
            default {lappend words $word}
        }
    }
    return $words
}

set families {
    "strings" {
        {set K V} {set K V pxat D} {set K V keepttl} {set K N} {append K V} {append K M} {setrange K P V} {incr K}
        {incrby K N} {decr K} {incrbyfloat K F} {getdel K} {getex K pxat D} {getex K persist} {getset K V}
        {increx K} {increx K byint N ubound N saturate pxat D} {increx K byfloat F persist}
        {set K V ifne M} {delex K ifne M}
        {mset K V K N K V} {msetnx K V K V} {msetex 2 K V K N pxat D} {setnx K V}
    }
    "bits and bytes" {
        {setbit K P 1} {setbit K P 0} {bitfield K set u8 P N incrby i5 P N overflow fail incrby u3 0 9}
        {bitop or K K K} {bitop not K K} {bitop one K K K} {bitop diff1 K K K}
        {pfadd K M M M M} {pfadd K N N V V} {pfadd K V} {pfmerge K K K}
        {setrange K P V}
    }
    "lists" {
        {lpush K V V V} {rpush K M M M M M} {lpushx K V} {rpushx K M} {lpop K} {rpop K} {lpop K 3} {rpop K 2}
        {lset K I V} {lset K I M} {linsert K before M V} {linsert K after M M} {lrem K I M} {ltrim K I -2}
        {ltrim K 1 9} {lmove K K left right} {lmove K K right left} {rpoplpush K K} {lmpop 2 K K left count 2}
        {keydb.op.pop K left M M} {lmovem K K left left count 3 obo} {lmovem K K right left count 2 bulk}
        {lmovem K K right right count 5 bulk}
    }
    "hashes" {
        {hset K M V M V} {hset K M N} {hdel K M M} {hincrby K M N} {hincrbyfloat K M F} {hsetnx K M V}
        {hpexpireat K D fields 2 M M} {hpersist K fields 2 M M} {keydb.hrename K M M}
        {hsetex K pxat D fields 2 M V M N} {hsetex K keepttl fxx fields 1 M V} {hsetex K px 0 fields 2 M V M N}
        {hgetex K pxat D fields 2 M M} {hgetex K persist fields 2 M M} {hgetex K px 0 fields 1 M}
        {hgetdel K fields 2 M M}
    }
    "sets" {
        {sadd K M M M} {sadd K N N N} {srem K M N} {spop K} {spop K 3} {smove K K M} {sunionstore K K K}
        {sinterstore K K K} {sdiffstore K K K} {expiremember K M E} {expirememberat K M 4000000000}
    }
    "sorted sets" {
        {zadd K F M N M} {zadd K nx N M} {zadd K gt F M} {zadd K incr F M} {zincrby K F M} {zrem K M M} {zpopmin K 2}
        {zpopmax K} {zremrangebyrank K I 4} {zremrangebyscore K 0 9} {zunionstore K 2 K K} {zinterstore K 2 K K}
        {zunionstore K 2 K K aggregate count}
        {zdiffstore K 2 K K} {zrangestore K K 0 5} {geoadd K 13.3 38.1 M} {expiremember K M E}
        {geosearchstore K K bypolygon 3 -180 -85 180 -85 0 85}
    }
    "streams" {
        {xadd K * f V} {xadd K X f V g M} {xadd K maxlen = 5 * f V} {xadd K minid = X * f M} {keydb.op.xadd K X f V}
        {keydb.op.xadd K X g V} {keydb.op.xadd K X f M g V} {xdel K X X X X X X X X X X X X} {xdel K X X X X X X X X}
        {xtrim K maxlen 4} {xtrim K minid X} {xgroup create K G T mkstream}
        {xdelex K delref ids 3 X X X} {xdelex K acked ids 4 X X X X} {xackdel K G delref ids 3 X X X}
        {xackdel K G acked ids 3 X X X} {xtrim K maxlen 4 delref} {xtrim K maxlen 2 acked} {xadd K delref minid X * f M}
        {xadd K maxlen ~ 3 acked * f V}
        {xgroup createconsumer K G C} {xgroup delconsumer K G C} {xgroup destroy K G} {xgroup setid K G X}
        {xreadgroup group G C count 3 streams K >} {xreadgroup group G C count 3 streams K 0}
        {xreadgroup group G C maxcount 4 maxsize 20 streams K K > 0}
        {xreadgroup group G C count 3 claim 0 streams K >} {xack K G X X X}
        {xclaim K G C 0 X X X} {xclaim K G C 0 X force} {xautoclaim K G C 0 0 count 3}
        {xnack K G fail ids 2 X X} {xnack K G silent ids 1 X force} {xsetid K 1000-0}
        {keydb.op.deliver K G C 5 ack X X}
        {xadd K idmp M N * f V} {xadd K idmpauto M maxlen 3 * f V} {xadd K acked idmp M N maxlen 2 * f V}
        {keydb.op.xidmp K M N X 1 3} {xcfgset K idmp-maxsize 2} {xcfgset K idmp-maxsize 3 idmp-duration 50}
        {xidmprecord K M N X}
    }
    "nested hashes and jobs" {
        {keydb.nhset K.a.b V} {keydb.nhset K.a V} {keydb.nhset K.c.d N} {keydb.cron K repeat 1000000000 {return 1}}
        {keydb.cron K single 1000000000 {return 2}}
    }
}
set general {
    {del K} {unlink K K} {pexpireat K D} {pexpireat K D nx} {persist K} {expire K 1000} {rename K K} {copy K K}
    {copy K K replace} {sort K alpha store K}
    {del K ; rpush K V ; lpop K} {set K 1 ; incr K ; append K x ; pexpireat K D} {incr K ; incr K ; append K x ; del K}
    {rpush K M ; lpush K V ; hset K M V ; sadd K M ; zadd K 1 M ; append K V ; pexpireat K D ; setrange K P V}
    {mset K 1 K 2 K 3 K 4 K 5 K 6 K 7 K 8 K 9 K 10 K 11 K 12 ; incr K ; append K V ; del K ; lpush K V}
    {rename K K ; lpop K ; hdel K M ; srem K M}
}

set options {
    enable-debug-command yes hash-max-listpack-entries 6 set-max-intset-entries 6 set-max-listpack-entries 9
    zset-max-listpack-entries 6 list-max-listpack-size 4 stream-node-max-entries 4 list-compress-depth 1
    hll-sparse-max-bytes 24
}

# Run again they give something else.
set unsteady {spop keydb.cron expire expiremember xreadgroup xclaim xautoclaim xgroup keydb.op.deliver}

proc is_steady words {
    foreach word $::unsteady {
        if {$word in $words} {
            return 0
        }
    }
    return [expr {"*" ni $words}]
}

proc keys_now {} {
    return [r debug digest-key {*}$::keys]
}

# Returns how many keys have changed, or an error.
proc run words {
    if {[catch {r debug undo run {*}$words} reply]} {
        fail "$words: $reply"
    }
    assert {[string is integer -strict [lindex $reply end]]} "$words: $reply"
    return [lindex $reply end]
}

# Some commands; then some of them are taken back, those that are steady are run again, and all are taken back.
proc go_and_come_back templates {
    set done {}
    set digests [list [keys_now]]
    set count [expr {1 + [below 12]}]
    for {set i 0} {$i < $count} {incr i} {
        set words [random_words [one_of [expr {[below 5] ? $templates : $::general}]]]
        incr ::changes [run $words]
        lappend done $words
        lappend digests [keys_now]
    }
    set left [below [expr {$count + 1}]]
    set taken [expr {$count - $left}]
    assert_equal $taken [r debug undo back $taken] "after $done"
    assert_equal [lindex $digests $left] [keys_now] "$taken taken back of $done"
    foreach words [lrange $done $left end] after [lrange $digests [expr {$left + 1}] end] {
        if {![is_steady $words]} {
            break
        }
        run $words
        incr left
        assert_equal $after [keys_now] "run again: $words, of $done"
    }
    if {[below 3] == 0} {
        r debug undo forget
    } else {
        assert_equal $left [r debug undo back] "after $done"
        assert_equal [lindex $digests 0] [keys_now] "all taken back of $done"
    }
    assert_equal 0 [r debug undo bytes]
}

with_server $options {
    for {set i 0} {$i < 12} {incr i} {
        lappend keys key:$i
    }
    foreach {name templates} $families {
        test_each templates "random commands are taken back: $name" {keydb} {
            set seed [clock clicks]
            expr {srand($seed)}
            r flushall
            r debug undo forget
            set ::changes 0
            for {set i 0} {$i < 300} {incr i} {
                if {[catch {go_and_come_back $templates} problem]} {
                    fail "seed $seed, round $i: $problem"
                }
            }
            assert {$::changes > 300} "only $::changes changes"
        }
    }

    test "a number whose bytes were changed in place" {} {
        r flushall
        foreach words {{setbit n 7 1} {setrange n 0 7} {bitfield n set u8 0 55}} {
            r set n 12
            assert_equal {13 1} [r debug undo run incr n]
            r debug undo run {*}$words
            assert_equal {20 1} [r debug undo run incrby n [expr {20 - [r get n]}]]
            assert_equal 3 [r debug undo back 3] $words
            assert_equal 12 [r get n] $words
        }
        r debug undo forget
    }

    test "an expired key is absent, and goes only as part of a change" {keydb} {
        r flushall
        r debug undo forget
        r debug keep-expired 1
        r set k 41 px 1
        r rpush other x
        wait_for {[r exists k] == 0}
        set there [r debug digest-value k]
        foreach {words reply} {
            {del k} 0 {lpushx k a} 0 {set k v xx} {} {getdel k} {} {hdel k f} 0 {persist k} 0 {expire k 10} 0
            {srem k a} 0 {zrem k a} 0 {lpop k} {} {getex k persist} {} {copy k new} 0 {spop k} {} {setrange k 1 {}} 0
        } {
            assert_equal [list $reply 0] [r debug undo run {*}$words] $words
            assert_equal $there [r debug digest-value k] $words
        }
        assert_equal {{ERR no such key} 0} [r debug undo run rename k new]
        foreach {words reply} {
            {incr k} 1 {append k x} 1 {lpush k a} 1 {hset k f v} 1 {sadd k a b} 2 {set k v} OK {set k v nx} OK
            {rename other k} OK {copy other k} 1 {setbit k 7 1} 0 {zadd k 1 a} 1 {xadd k 5-1 f v} 5-1
        } {
            lassign [r debug undo run {*}$words] is changed
            assert {$is eq $reply && $changed > 0} "$words: $is, $changed"
            assert_equal 1 [r exists k] $words
            assert_equal 1 [r debug undo back 1] $words
            assert_equal $there [r debug digest-value k] $words
            assert_equal 0 [r exists k] $words
        }
        assert_equal {none {} -2} [list [r type k] [r get k] [r pttl k]]
        r debug keep-expired 0
        wait_for {[r dbsize] == 1}
    }

    test "expired members are absent, and go only as part of a change" {keydb} {
        r flushall
        r debug undo forget
        r debug keep-expired 1
        r hset h a 1 b 2
        r hpexpire h 1 fields 1 a
        r hset all a 1
        r hpexpire all 1 fields 1 a
        r zadd z 1 a 2 b
        r expiremember z a 1 ms
        wait_for {[r hlen h] == 1 && [r exists all] == 0 && [r zcard z] == 1}
        foreach key {h all z} {
            set there($key) [r debug digest-value $key]
        }
        foreach {key words reply} {
            h {hdel h a} 0 h {hsetnx h b 5} 0 h {hincrbyfloat h b x} {ERR value is not a valid float}
            all {hdel all a} 0 z {zadd z xx 7 a} 0 z {zrem z a} 0 h {hpexpire h 1000 nx fields 1 a} -2
        } {
            assert_equal [list $reply 0] [r debug undo run {*}$words] $words
            assert_equal $there($key) [r debug digest-value $key] $words
        }
        foreach {key words reply left} {
            h {hset h c 3} 1 {b 2 c 3} h {hset h a 9} 1 {a 9 b 2} h {hincrby h a 4} 4 {a 4 b 2}
            all {hset all n 1} 1 {n 1}
            z {zincrby z 5 a} 5 {a 5 b 2}
        } {
            assert_equal [list $reply 1] [r debug undo run {*}$words] $words
            set now [expr {$key eq "z" ? [r zrange z 0 -1 withscores] : [r hgetall $key]}]
            assert_equal [lsort_pairs $left] [lsort_pairs $now] $words
            assert_equal 1 [r debug undo back 1] $words
            assert_equal $there($key) [r debug digest-value $key] $words
        }
        r debug keep-expired 0
        wait_for {[r dbsize] == 2}
    }

    test "replicas and files get what expired before the change, and nothing without one" {keydb} {
        r flushall
        r debug undo forget
        r debug keep-expired 1
        r debug journal start
        r set k 41 px 1
        r hset h a 1 b 2
        r hpexpire h 1 fields 1 a
        wait_for {[r hlen h] == 1 && [r exists k] == 0}
        r debug journal read
        r debug undo run del k
        r debug undo run hdel h x
        assert_equal {} [r debug journal read]
        r debug undo run incr k
        r debug undo run hset h c 3
        set plain [join [regexp -all -inline {[a-zA-Z0-9]+} [regsub -all {[*$][0-9]+} [r debug journal read] {}]]]
        assert_match "*UNLINK k*incr k*HDEL h a*hset h c 3*" $plain
        r debug journal stop
        r debug undo forget
        r debug keep-expired 0
    }

    test "DEBUG UNDO refuses what is no write" {keydb} {
        assert_refused "ERR no such write command" r debug undo run get key
        assert_refused "ERR no such write command" r debug undo run set key
        assert_equal 0 [r debug undo back]
    }
}
