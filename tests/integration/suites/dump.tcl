# DUMP and RESTORE: what the comparison with redis-server cannot see: every type there and back in every version, forms
# at their limits, members with deadlines, times of use.

proc fill_types {} {
    r set string hello
    r set number 12345
    r set large [pattern_bytes 100000]
    r rpush list a 1 [string repeat x 300] [pattern_bytes 20000]
    r sadd set a b c
    r sadd numbers 1 2 300000
    r zadd zset 1 a 2.5 b -inf c
    r hset hash a 1 b [string repeat y 100]
    r hset small a 1 b 2
    for {set i 0} {$i < 300} {incr i} {
        r -send rpush list element:$i
        r -send sadd set member:$i
        r -send zadd zset $i.25 member:$i
        r -send hset hash field:$i value:$i
        r -send xadd stream $i-1 field $i other value
    }
    for {set i 0} {$i < 1500} {incr i} {
        r -read
    }
    r xdel stream 5-1 299-1
    r xgroup create stream group 7-1
    r xreadgroup group group one count 5 streams stream >
    r xreadgroup group group two count 2 streams stream >
    r xack stream group 8-1
    r xgroup create stream idle $
    return {string number large list set numbers zset hash small stream}
}

with_server {enable-debug-command yes} {
    test "every type comes back from DUMP, in every version and form" {} {
        set keys [fill_types]
        foreach version {auto 9 10 11 12 80} {
            foreach compression {yes no} {
                with_config [list rdb-version $version rdbcompression $compression] {
                    foreach key $keys {
                        if {$key eq "stream" && $version eq "9"} {
                            continue ;# it knows less of streams
                        }
                        r del copy
                        assert_equal OK [r restore copy 0 [r dump $key]] "$key $version"
                        assert_equal [r debug digest-value $key] [r debug digest-value copy] "$key $version"
                        assert_equal [r object encoding $key] [r object encoding copy] "$key $version"
                        assert_equal -1 [r pttl copy]
                    }
                }
            }
        }
        r copy stream copy replace
        assert_equal [r xinfo stream stream full] [r xinfo stream copy full]
        with_config {rdb-version 9} {
            r restore copy 0 [r dump stream] replace
        }
        assert_equal [r xrange stream - +] [r xrange copy - +]
        assert_equal [r xpending stream group] [r xpending copy group]
    }

    test "the version of a payload is the lowest that holds the value" {} {
        proc version key {
            binary scan [string range [r dump $key] end-9 end-8] s version
            return $version
        }
        fill_types
        foreach key {string large list set numbers zset hash small} {
            assert_equal 9 [version $key] $key
        }
        assert_equal 10 [version stream]
        r xadd fresh 1-1 a b
        assert_equal 9 [version fresh]
        r hset h a 1 b 2
        r hexpire h 1000 fields 1 a
        assert_equal 12 [version h]
        r sadd s a b
        r expiremember s a 1000
        assert_equal 9 [version s]
        foreach wanted {9 10 11 12 80} {
            with_config [list rdb-version $wanted] {
                foreach key {string stream h s} {
                    assert_equal $wanted [version $key] $key
                }
            }
        }
    }

    test "members keep their deadlines" {} {
        foreach version {auto 9 10 11 12 80} {
            with_config [list rdb-version $version] {
                r flushall
                r hset h a 1 b 2 c [string repeat x 100]
                r hpexpireat h 4000000000000 fields 1 a
                r hpexpireat h 4000000000007 fields 1 c
                r sadd s a "b\0\xff" c
                r pexpirememberat s "b\0\xff" 4000000000000
                r zadd z 1 a 2 b
                r pexpirememberat z b 4000000000000
                r restore h2 0 [r dump h]
                r restore s2 0 [r dump s]
                r restore z2 0 [r dump z]
                assert_equal {4000000000000 -1 4000000000007} [r hpexpiretime h2 fields 3 a b c] $version
                assert_equal -1 [r pttl s2 a]
                assert {[r pttl s2 "b\0\xff"] > 1000000} $version
                assert {[r pttl z2 b] > 1000000} $version
                assert_equal -1 [r pttl z2]
                assert_equal [lsort [r smembers s]] [lsort [r smembers s2]]
            }
        }
    }

    test "a member whose deadline is over does not come back" {} {
        r hset h a 1 b 2
        r hpexpire h 1 fields 1 a
        r debug set-active-expire 0
        set payload [r dump h]
        wait_for {[r hlen h] == 1}
        r restore h2 0 $payload
        assert_equal {b 2} [r hgetall h2]
        r debug set-active-expire 1
    }

    test "forms are those of the limits here, not those of the payload" {} {
        r hset h a 1 b 2 c 3
        r sadd s 1 2 3
        r sadd t a b c
        r zadd z 1 a 2 b 3 c
        foreach version {9 10 11 12 80} {
            with_config [list rdb-version $version] {
                foreach key {h s t z} {
                    set $key [r dump $key]
                }
                with_config {hash-max-listpack-entries 2 set-max-intset-entries 2 set-max-listpack-entries 2
                             zset-max-listpack-entries 2} {
                    foreach {key encoding} {h hashtable s hashtable t hashtable z skiplist} {
                        r restore copy 0 [set $key] replace
                        assert_equal $encoding [r object encoding copy] "$key $version"
                        assert_equal [r debug digest-value $key] [r debug digest-value copy] "$key $version"
                    }
                }
                foreach {key encoding} {h listpack s intset t listpack z listpack} {
                    r restore copy 0 [set $key] replace
                    assert_equal $encoding [r object encoding copy] "$key $version"
                }
            }
        }
    }

    test "trees of texts come back" {} {
        r keydb.nhset t a.b x
        r keydb.nhset t.a.c x y 17
        r keydb.nhset t.q.[string repeat x. 100]y 7
        r restore u 0 [r dump t]
        assert_equal [r keydb.nhget json t] [r keydb.nhget json u]
        assert_equal {x y 17} [r keydb.nhget u.a.c]
        r keydb.nhset t text
        r restore u 0 [r dump t] replace
        assert_equal text [r keydb.nhget u]
    }

    test "RESTORE sets the deadline, and how the key is used" {} {
        r set a value
        set payload [r dump a]
        r restore b 100000 $payload
        assert_range [r pttl b] 90000 100000
        r restore c 4000000000000 $payload absttl
        assert_equal 4000000000000 [r pexpiretime c]
        r restore d 0 $payload idletime 1000
        assert_range [r object idletime d] 1000 1010
        r restore d 0 $payload replace idletime 99999999999
        assert {[r object idletime d] > 1000000}
        with_config {maxmemory-policy allkeys-lfu} {
            r restore e 0 $payload freq 100
            assert_equal 100 [r object freq e]
            r restore f 0 $payload idletime 1000
            assert_equal 5 [r object freq f]
        }
        assert_equal OK [r restore b 1 $payload absttl replace]
        assert_equal 0 [r exists b]
        assert_equal OK [r restore b 1 $payload absttl]
        assert_equal 0 [r exists b]
    }

    test "RESTORE takes what is whole only" {} {
        r hset h a 1 b 2
        set payload [r dump h]
        for {set i 0} {$i < [string length $payload]} {incr i} {
            assert_refused "ERR DUMP payload version or checksum are wrong" r restore x 0 [string range $payload 0 $i-1]
            set byte [format %c [expr {[scan [string index $payload $i] %c] ^ 1}]]
            assert_refused "ERR DUMP payload version or checksum are wrong" \
                r restore x 0 [string replace $payload $i $i $byte]
        }
        assert_equal 0 [r exists x]
        assert_refused "BUSYKEY Target key name already exists." r restore h 0 $payload
        assert_refused "ERR Bad data format" r restore x 0 [binary decode hex 01000a005bf825cc6c174356]
        assert_equal [r dump nothing] {}
    }
}

with_server {loglevel verbose} {
    test "why RESTORE refuses a payload is in the log" {} {
        assert_refused "ERR Bad data format" r restore x 0 [binary decode hex 01000a005bf825cc6c174356]
        r multi
        r restore x 0 [binary decode hex 01000a005bf825cc6c174356]
        catch {r exec}
        wait_for {[regexp -all {RESTORE refused a payload: integrity check failed at byte} \
            [slurp [srv log]]] == 2}
        assert_equal PONG [r ping]
    }

    test "a script that has many payloads refused does not fill the memory with lines" {} {
        r eval {for i = 1, 5000 do redis.pcall('restore', KEYS[1], 0, ARGV[1]) end} 1 x \
            [binary decode hex 01000a005bf825cc6c174356]
        wait_for {[regexp {[0-9]+ more lines of one command were left out} [slurp [srv log]]]}
        assert_equal PONG [r ping]
    }
}
