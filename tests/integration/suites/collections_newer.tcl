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
}
