# KeyDB 6.3.4 as master of ours and as replica of ours; the program is named by KEYDB_ORACLE.

# What that version knows: no libraries, streams without counts.
proc fill_for_keydb name {
    on $name flushall
    on $name mset s:int 5 s:text text s:long [pattern_bytes 4000]
    on $name setbit bits 5000 1
    on $name pfadd hll a b c
    on $name rpush l:short a b {} 7
    on $name rpush l:long {*}[lrepeat 1000 [string repeat e 30]]
    on $name sadd set:ints 1 2 3
    on $name sadd set:mixed 1 two
    on $name hset h f v g 5
    on $name hset h:large {*}[concat {*}[lmap i [lrepeat 600 x] {list field:[incr f] value:$f}]]
    on $name zadd z 1.5 a -inf b
    on $name zadd z:large {*}[concat {*}[lmap i [lrepeat 300 x] {list [incr z].25 member:$z}]]
    on $name xadd stream 1-1 f v
    on $name xadd stream 2-1 f w
    on $name xgroup create stream readers 0
    on $name xreadgroup group readers alice count 1 streams stream >
    on $name set ttl v px 5000000
    on $name sadd members one two
    on $name expiremember members one 5000
    on $name select 7
    on $name set other 1
    on $name select 0
}

proc change_for_keydb name {
    on $name incr s:int
    on $name append s:text more
    on $name lmove l:short l:other left right
    on $name lpop l:long 5
    on $name spop set:mixed
    on $name hincrby h g 3
    on $name zpopmin z:large 5
    on $name zadd z 9 c
    on $name xadd stream * f x
    on $name xack stream readers 1-1
    on $name xreadgroup group readers bob count 1 streams stream >
    on $name getex ttl px 9000000
    on $name copy h h:copy
    on $name sadd members three
    on $name expiremember members three 6000
    on $name sadd brief gone stays
    on $name expiremember brief gone 30 ms
    on $name set short v px 20
    on $name eval {redis.call('set', KEYS[1], 1) return redis.call('incr', KEYS[1])} 1 evaluated
    on $name multi
    on $name set t 1
    on $name incr t
    on $name exec
    on $name swapdb 7 8
    wait_for {[on $name exists short] == 0 && [on $name scard brief] == 1}
}

# Digests of KeyDB are its own, so values are compared.
proc values_of name {
    set seen {}
    foreach database {0 7 8} {
        on $name select $database
        foreach key [lsort [on $name keys *]] {
            switch [on $name type $key] {
                string { set value [on $name get $key] }
                list { set value [on $name lrange $key 0 -1] }
                set { set value [lsort [on $name smembers $key]] }
                hash { set value [lsort_pairs [on $name hgetall $key]] }
                zset { set value [on $name zrange $key 0 -1 withscores] }
                stream { set value [list [on $name xrange $key - +] [on $name xpending $key readers]] }
            }
            set deadline [expr {[on $name pttl $key] < 0 ? "none" : "some"}]
            lappend seen "$database:$key $deadline $value"
        }
    }
    on $name select 0
    return $seen
}

proc wait_keydb_same {m r} {
    wait_link $r
    wait_for {[has_all $m $r]}
    foreach a [values_of $m] b [values_of $r] {
        assert_equal $a $b
    }
}

foreach {a b} {ours keydb keydb ours} {
    foreach {how from to} {
        {by a file} {repl-diskless-sync no} {}
        {without a disk} {repl-diskless-sync yes} {repl-diskless-load swapdb}
    } {
        test_each {a b from to} "$a to $b: everything arrives $how, changes follow, a cut link continues" {noconn} {
            with_group [list m $a $from r $b $to] {
                set via [proxy_open m]
                fill_for_keydb m
                follow r m $via
                wait_keydb_same m r
                change_for_keydb m
                wait_keydb_same m r
                proxy $via down
                wait_for {![link_is_up r]}
                change_for_keydb m
                proxy $via up
                wait_keydb_same m r
                assert_equal {1 1} [lrange [sync_counts m] 0 1]
                assert {[on r pttl ttl] > 8000000}
            }
        }
    }

    test_each {a b} "$a to $b: one takes over, the other one follows it without all data" {noconn slow} {
        with_group [list m $a {} r $b {}] {
            fill_for_keydb m
            follow r m
            wait_keydb_same m r
            follow r no
            on r set first 1
            follow m r
            wait_keydb_same r m
            assert_equal {0 1} [lrange [sync_counts r] 0 1]
        }
    }
}

test "our answers to what KeyDB says in its handshake give no word to be misread" {noconn} {
    with_group {m ours {}} {
        set link [member_connect m]
        assert_reply {status OK} $link replconf capa eof capa psync2 capa activeExpire
        assert_reply {status OK} $link replconf capa keydb-fastsync
        # To the id either an error or one of the same length: KeyDB gives up at anything else.
        set reply [$link -typed replconf uuid 12345678-1234-1234-1234-123456789012]
        assert {[lindex $reply 0] eq "error" || [string length [lindex $reply 1]] == 36} $reply
    }
}
