# Sets, sorted sets and lists: what Redis has had since 8.8 and 8.10, and Valkey since 8.0.

set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"

# Sets that share members; the same ones in every run.
proc fill_sets {client count} {
    for {set i 0} {$i < $count} {incr i} {
        $client del s$i
        foreach n [lrange {3 40 700 0 150 12 300 90} $i $i] {
            for {set k 0} {$k < $n} {incr k} {
                $client sadd s$i m[expr {($k * ($i + 3) * 7 + $i * 11) % 997}]
            }
        }
    }
}

# Members and scores in one list, in either protocol.
proc scored {client args} {
    return [concat {*}[$client {*}$args withscores]]
}

# Moves elements from a list to another one, and within a list, and compares lists and reply with what Tcl makes
# of them.
proc check_move {from to selector count order} {
    foreach destination {m l} {
        set list {a 1 {} 23456 e}
        r del l m
        r rpush l {*}$list
        r rpush m x y
        set words [list l $destination $from $to $selector $count $order]
        if {$selector eq "exactly" && $count > 5} {
            assert_equal {} [r lmovem {*}$words]
            assert_equal $list [r lrange l 0 -1]
            continue
        }
        set count [expr {min($count, 5)}]
        if {$from eq "left"} {
            set block [lrange $list 0 $count-1]
            set list [lrange $list $count end]
        } else {
            set block [lrange $list end-[expr {$count - 1}] end]
            set list [lrange $list 0 end-$count]
        }
        if {$order eq "obo" && $from eq $to} {
            set block [lreverse $block]
        }
        set onto [expr {$destination eq "m" ? {x y} : $list}]
        set onto [expr {$to eq "left" ? [concat $block $onto] : [concat $onto $block]}]
        assert_equal $block [r lmovem {*}$words] $words
        assert_equal $onto [r lrange $destination 0 -1] $words
        if {$destination eq "m"} {
            assert_equal $list [r lrange l 0 -1] $words
            assert_equal [expr {[llength $list] != 0}] [r exists l] $words
        }
    }
}

with_server {} {
    test "SDIFFCARD and SUNIONCARD count what SDIFF and SUNION reply" {keydb} {
        fill_sets r 8
        foreach keys {s0 s1 s3 {s0 s1} {s1 s0} {s2 s4} {s4 s2 s3} {s2 s2} {s2 s0 s1 s4} {s0 s1 s2 s3 s4 s5 s6 s7}
                {s7 s6 s5 s4 s3} {s3 none} {none} {none s1} {s1 none s1} {s3 s3 s3 s3 s3 none}} {
            set count [llength $keys]
            set union [llength [r sunion {*}$keys]]
            set difference [llength [r sdiff {*}$keys]]
            assert_reply [list int $union] r sunioncard $count {*}$keys
            assert_reply [list int $difference] r sdiffcard $count {*}$keys
            assert_reply [list int $union] r sunioncard $count {*}$keys limit 0
            assert_reply [list int $difference] r sdiffcard $count {*}$keys limit 0
            foreach limit {1 2 3 39 40 41 150 699 700 701 100000} {
                assert_reply [list int [expr {min($limit, $union)}]] r sunioncard $count {*}$keys LIMIT $limit
                assert_reply [list int [expr {min($limit, $difference)}]] r sdiffcard $count {*}$keys LIMIT $limit
            }
        }
    }

    test "SUNIONCARD APPROX is what PFCOUNT estimates" {keydb} {
        fill_sets r 3
        foreach key {s0 s1 s2} {
            r pfadd h {*}[r smembers $key]
        }
        set estimate [r pfcount h]
        assert_reply [list int $estimate] r sunioncard 3 s0 s1 s2 approx
        assert_reply [list int $estimate] r sunioncard 3 s2 s0 s1 APPROX limit 0
        assert_reply {int 5} r sunioncard 3 s0 s1 s2 limit 5 approx
        assert_reply [list int $estimate] r sunioncard 3 s0 s1 s2 approx limit 100000 approx
        assert_reply {int 0} r sunioncard 2 none none approx
        r del big h
        for {set i 0} {$i < 20} {incr i} {
            set members {}
            for {set k 0} {$k < 1000} {incr k} {
                lappend members element:[expr {$i * 1000 + $k}]
            }
            r sadd big {*}$members
            r pfadd h {*}$members
        }
        assert_equal [r pfcount h] [r sunioncard 1 big approx]
        assert_range [r sunioncard 1 big approx] 19200 20800
    }

    test "SDIFFCARD and SUNIONCARD refuse" {keydb} {
        fill_sets r 4
        r rpush l a
        foreach command {sdiffcard sunioncard} {
            foreach {words error} {
                {0 s0} "numkeys should be greater than 0"   {-1 s0} "numkeys should be greater than 0"
                {x s0} "numkeys should be greater than 0"
                {2 s0} "Number of keys can't be greater than number of args"
                {99999999999 s0} "Number of keys can't be greater than number of args"
                {1 s0 limit} "syntax error"   {1 s0 s1} "syntax error"   {1 s0 limit 1 x} "syntax error"
                {1 s0 approximate} "syntax error"   {1 l limit} "syntax error"
                {1 s0 limit -1} "LIMIT can't be negative"   {1 s0 limit x} "LIMIT can't be negative"
                {1 s0 limit 99999999999999999999} "LIMIT can't be negative"
            } {
                assert_refused "ERR $error" r $command {*}$words
            }
            assert_error "ERR wrong number of arguments for '$command' command" {r $command 1}
            foreach words {{1 l} {2 s0 l} {2 l s0} {6 s0 s1 s2 s3 none l} {2 none l}} {
                assert_refused $::wrong_type r $command {*}$words
            }
            assert_equal {s0 s1} [r command getkeys $command 2 s0 s1 limit 1]
            assert_reply {int 3} r eval "return redis.call('$command', 1, KEYS\[1\], 'LIMIT', 3)" 1 s2
        }
        assert_refused "ERR syntax error" r sdiffcard 1 s0 approx
        assert_refused $::wrong_type r sunioncard 2 s0 l approx
        r acl setuser reader on nopass ~s* +sunioncard +sdiffcard
        r acl setuser writer on nopass %W~s* +sunioncard +sdiffcard
        assert_match "*permissions*" [r acl dryrun reader sunioncard 2 s0 l]
        assert_match "*permissions*" [r acl dryrun writer sdiffcard 1 s0]
        assert_equal OK [r acl dryrun reader sdiffcard 2 s0 s1]
    }

    foreach ::proto {2 3} {
        test "ZSCAN NOSCORES, RESP$::proto" {keydb} {
            r hello $::proto
            r del z
            foreach limit {128 0} {
                r config set zset-max-listpack-entries $limit
                r zadd z 1 a 2.5 b inf ab
                assert_equal {a ab b} [lsort [lindex [r zscan z 0 noscores] 1]]
                assert_equal {a ab} [lsort [lindex [r zscan z 0 match a* NOSCORES count 10] 1]]
                assert_equal {a ab} [lsort [lindex [r zscan z 0 noscores match a* noscores] 1]]
                assert_equal 6 [llength [lindex [r zscan z 0 match *] 1]]
                r zadd z 3 c 4 d
                r zrem z c d
            }
            assert_reply {array {{bulk 0} {array {}}}} r zscan none 0 noscores
            r config set zset-max-listpack-entries 128
            r hello 2
        }
    }

    test "only ZSCAN can leave scores out" {keydb} {
        r hset h f v
        r sadd s a
        r zadd z 1 a
        set error "ERR NOSCORES option can only be used in ZSCAN"
        foreach words {{scan 0} {sscan s 0} {hscan h 0}} {
            assert_refused $error r {*}$words noscores
            assert_refused $error r {*}$words count 10 NOSCORES
        }
        foreach words {{noscore} {noscores 1} {noscores count} {noscores count 0}} {
            assert_refused "ERR syntax error" r zscan z 0 {*}$words
        }
    }

    test "SCRIPT SHOW" {keydb} {
        foreach text [list "return 1" "#!lua flags=no-writes\nreturn redis.call('get', KEYS\[1\])" ""] {
            set sha [r script load $text]
            assert_reply [list bulk $text] r script show $sha
            assert_reply [list bulk $text] r script show [string toupper $sha]
        }
        r eval "return 'run'" 0
        assert_reply {bulk "return 'run'"} r script show [r eval "return redis.sha1hex(\"return 'run'\")" 0]
        set error "NOSCRIPT No matching script."
        assert_refused $error r script show x
        assert_refused $error r script show ""
        assert_refused $error r script show [string repeat 0 40]
        assert_error "ERR wrong number of arguments for 'script|show' command" {r script show}
        assert_error "ERR wrong number of arguments for 'script|show' command" {r script show $sha $sha}
        assert_error "*not allowed from script*" {r eval "return redis.call('script', 'show', ARGV\[1\])" 0 $sha}
        r multi
        r script show $sha
        assert_equal [list $text] [r exec]
        r script flush
        assert_refused $error r script show $sha
    }

    foreach ::proto {2 3} {
        test "AGGREGATE COUNT, RESP$::proto" {keydb} {
            r hello $::proto
            foreach limit {128 0} {
                r config set zset-max-listpack-entries $limit
                r flushall
                r zadd a 10 x 20 y inf z
                r zadd b -inf x 5 y 1 w
                r sadd s x w v
                assert_equal {v 1 z 1 w 2 y 2 x 3} [scored r zunion 3 a b s aggregate count]
                assert_equal {v 3 w 4.5 z 10 y 11.5 x 14.5} \
                    [scored r zunion 3 a b s weights 10 1.5 3 AGGREGATE Count]
                assert_equal {x 14.5} [scored r zinter 3 a b s aggregate count weights 10 1.5 3]
                assert_equal {x 2 y 2} [scored r zinter 2 a b aggregate count]
                assert_equal {x 2 y 2 z 2} [scored r zinter 2 a a aggregate sum aggregate count]
                assert_equal {x 20 y 40 z inf} [scored r zinter 2 a a aggregate count aggregate sum]
                # Weights that cancel out: no number is kept out.
                assert_equal {z -inf x 0 y 0 w inf} [scored r zunion 2 a b weights -inf inf aggregate count]
                assert_equal {x 0 y 0} [scored r zinter 2 a b weights -inf inf aggregate count]
                assert_equal {} [scored r zinter 2 a none aggregate count]
                assert_reply {int 5} r zunionstore d 3 a b s aggregate count weights 1 2 4
                assert_equal {z 1 y 3 v 4 w 6 x 7} [scored r zrange d 0 -1]
                assert_reply {int 2} r zinterstore a 2 a b aggregate count
                assert_equal {x 2 y 2} [scored r zrange a 0 -1]
                assert_reply {int 0} r zinterstore d 2 a none aggregate count
                assert_reply {int 0} r exists d
                assert_reply {int 0} r zinterstore d 2 a none aggregate count
            }
            r config set zset-max-listpack-entries 128
            r hello 2
        }
    }

    test "AGGREGATE COUNT refuses, and nothing has changed" {keydb} {
        r zadd z 1 a
        r set d v
        foreach words {{zdiff 1 z aggregate count} {zdiffstore d 1 z aggregate count} {zintercard 1 z aggregate count}
                {zunion 1 z aggregate} {zunion 1 z count} {zunion 1 z aggregate counts}
                {zunionstore d 1 z aggregate count withscores}} {
            assert_refused "ERR syntax error" r {*}$words
        }
        assert_refused "ERR weight value is not a float" r zunion 1 z weights nan aggregate count
        assert_refused $::wrong_type r zunionstore d 2 z d aggregate count
        assert_equal v [r get d]
    }

    foreach ::proto {2 3} {
        test "LMOVEM, by a model, RESP$::proto" {keydb} {
            r hello $::proto
            foreach limit {-2 2} {
                r config set list-max-listpack-size $limit
                foreach from {left right} {
                    foreach to {left right} {
                        foreach order {obo bulk} {
                            foreach count {1 2 4 5 9} {
                                foreach selector {count exactly} {
                                    check_move $from $to $selector $count $order
                                }
                            }
                        }
                    }
                }
            }
            r config set list-max-listpack-size -2
            r hello 2
        }

        test "LMOVEM without a number, and of nothing, RESP$::proto" {keydb} {
            r hello $::proto
            set null [expr {$::proto == 2 ? "nullarray" : "null"}]
            r rpush l a b c
            assert_reply {array {{bulk a}}} r lmovem l m left right
            assert_reply {array {{bulk c}}} r lmovem l m RIGHT LEFT
            assert_equal {c a} [r lrange m 0 -1]
            assert_reply $null r lmovem none m left right
            assert_reply $null r lmovem none m left right count 5 obo
            assert_reply $null r lmovem none m left right exactly 1 bulk
            assert_reply $null r lmovem m l left right exactly 3 obo
            assert_equal {c a} [r lrange m 0 -1]
            r set t text
            assert_reply $null r lmovem none t left right
            assert_reply $null r lmovem m t left right exactly 3 obo
            assert_reply {array {{bulk c} {bulk a}}} r lmovem m l left right EXACTLY 2 Bulk
            assert_equal {0 {b c a}} [list [r exists m] [r lrange l 0 -1]]
            assert_reply {array {{bulk b} {bulk c} {bulk a}}} r blmovem l m left right 0 count 9223372036854775807 obo
            assert_reply {array {{bulk b}}} r blmovem m l left right 0
            assert_reply $null r blmovem none m left right 0.01
            assert_reply $null r blmovem m l left right 0.01 exactly 3 bulk
            assert_equal {c a} [r lrange m 0 -1]
            r hello 2
        }
    }

    test "LMOVEM and BLMOVEM refuse, and nothing has changed" {keydb} {
        r rpush l a b
        r set t text
        foreach {words error} {
            {up left} "syntax error"   {left down} "syntax error"
            {left left count} "syntax error"   {left left count 1} "syntax error"   {left left obo} "syntax error"
            {left left 1 obo} "syntax error"   {left left exactly 1} "syntax error"
            {left left obo count 1} "syntax error"   {left left count 1 obo bulk} "syntax error"
            {left left count 1 obo exactly 1 obo} "syntax error"   {left left count 1 both} "syntax error"
            {left left many 1 obo} "syntax error"
            {left left count 0 obo} "count should be greater than 0"
            {left left count -1 bulk} "count should be greater than 0"
            {left left exactly x obo} "count should be greater than 0"
            {left left exactly 9223372036854775808 obo} "count should be greater than 0"
        } {
            assert_refused "ERR $error" r lmovem l m {*}$words
            assert_refused "ERR $error" r blmovem l m {*}[linsert $words 2 0]
        }
        foreach words {{t m} {l t} {t t}} {
            assert_refused $::wrong_type r lmovem {*}$words left right count 2 obo
            assert_refused $::wrong_type r blmovem {*}$words left right 0 count 2 obo
        }
        assert_refused "ERR timeout is negative" r blmovem l m left right -1
        assert_refused "ERR timeout is not a float or out of range" r blmovem l m left right x count 1 obo
        assert_error "ERR wrong number of arguments for 'lmovem' command" {r lmovem l m left}
        assert_error "ERR wrong number of arguments for 'blmovem' command" {r blmovem l m left right}
        assert_equal {{a b} 0 text} [list [r lrange l 0 -1] [r exists m] [r get t]]
        r config set maxmemory 1
        assert_error "OOM *" {r lmovem l m left right}
        r config set maxmemory 0
        r acl setuser mover on nopass resetkeys %RW~l %R~m +lmovem
        assert_match "*permissions*" [r acl dryrun mover lmovem l m left right]
        assert_equal OK [r acl dryrun mover lmovem l l left right]
    }

    test "LMOVEM within one list keeps its deadline" {keydb} {
        foreach words {{left left count 9 obo} {right right exactly 3 obo} {left right count 3 bulk}
                {right left count 2 obo} {left left count 3 bulk} {left left}} {
            r del l
            r rpush l a b c
            r expire l 100
            r lmovem l l {*}$words
            assert_range [r ttl l] 90 100
        }
    }

    test "BLMOVEM EXACTLY waits until there are so many; others may take them before" {keydb} {
        set c [connect]
        set d [connect]
        $c -send blmovem l m left right 0 exactly 3 obo
        wait_for {[info_field blocked_clients clients] == 1}
        r rpush l a b
        $d -send blmovem l n right left 0 exactly 4 bulk
        wait_for {[info_field blocked_clients clients] == 2}
        assert_equal {a b} [r lrange l 0 -1]
        assert_equal a [r lpop l]
        r rpush l c
        assert_equal {b c} [r lrange l 0 -1]
        r rpush l d e f g
        assert_equal {b c d} [$c -read]
        # The second one is asked after the first: what is left is enough for it, or is not.
        assert_equal {e f g} [r lrange l 0 -1]
        r lpush l x
        assert_equal {x e f g} [$d -read]
        assert_equal {0 {b c d} {x e f g}} [list [r exists l] [r lrange m 0 -1] [r lrange n 0 -1]]
        # A number is enough for one that waits for anything; a chain of them is served at once.
        $c -send blmovem p q left left 0 count 3 bulk
        wait_for {[info_field blocked_clients clients] == 1}
        $d -send blmovem q s left left 0 exactly 2 obo
        wait_for {[info_field blocked_clients clients] == 2}
        r rpush p 1 2
        assert_equal {1 2} [$c -read]
        assert_equal {2 1} [$d -read]
        assert_equal {0 {2 1}} [list [r exists p q] [r lrange s 0 -1]]
        # A list that cannot take them is an error when they come.
        $c -send blmovem p q left left 0 exactly 2 bulk
        wait_for {[info_field blocked_clients clients] == 1}
        r set q text
        r rpush p 1
        r rpush p 2
        assert_error $::wrong_type {$c -read}
        assert_equal {1 2} [r lrange p 0 -1]
    }

    test "LMOVEM and BLMOVEM within MULTI and scripts" {keydb} {
        r rpush l a b c
        r multi
        r blmovem none m left right 0
        r blmovem l m left right 0 exactly 4 obo
        r lmovem l m left right count 2 bulk
        assert_equal {{} {} {a b}} [r exec]
        assert_equal {b a} [r eval {return redis.call('lmovem', KEYS[1], KEYS[2], 'LEFT', 'LEFT', 'COUNT', 5, 'OBO')} \
            2 m l]
        assert_equal 0 [r eval {return redis.call('blmovem', KEYS[1], KEYS[2], 'LEFT', 'LEFT', 0) and 1 or 0} 2 m l]
        assert_equal {b a c} [r lrange l 0 -1]
    }

    test "LMOVEM: an event for each list" {keydb} {
        r config set notify-keyspace-events Elg
        set c [connect]
        $c psubscribe __keyevent@0__:*
        r rpush l a b c
        r lmovem l m left right count 2 bulk
        r lmovem l m right left count 2 bulk
        r lmovem m m left left count 2 bulk
        r lmovem m m left left count 2 obo
        r rpush end x
        set told {}
        while {[lindex $told end] ne "rpush end"} {
            lassign [$c -read] kind pattern channel key
            lappend told "[lindex [split $channel :] 1] $key"
        }
        assert_equal {{rpush l} {rpush m} {lpop l} {lpush m} {rpop l} {del l} {lpush m} {lpop m} {rpush end}} $told
        r config set notify-keyspace-events ""
    }

    test "LMOVEM: workers pass elements round, none is lost" {keydb} {
        set clients [connect_many 8]
        set all {}
        for {set n 0} {$n < 200} {incr n} {
            lappend all $n
        }
        r rpush l0 {*}$all
        for {set round 0} {$round < 100} {incr round} {
            set i 0
            foreach c $clients {
                $c -send lmovem l[expr {$i % 4}] l[expr {($i + 1) % 4}] left right count 7 bulk
                $c -send lmovem l[expr {($i + 2) % 4}] l[expr {$i % 4}] right right exactly 3 obo
                $c -send blmovem l[expr {$i % 4}] l[expr {($i + 3) % 4}] left left 0.001 exactly 5 obo
                incr i
            }
            foreach c $clients {
                $c -read
                $c -read
                $c -read
            }
        }
        assert_equal $all [lsort -integer [concat {*}[lmap key {l0 l1 l2 l3} {r lrange $key 0 -1}]]]
    }
}
