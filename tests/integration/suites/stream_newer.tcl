# Streams: what Redis has had since 7.2 and 7.4.

with_server {} {
    test "XINFO tells when a consumer last got something" {keydb} {
        r xgroup create s g 0 mkstream
        r xgroup createconsumer s g idle
        assert_equal {inactive -1} [lrange [lindex [r xinfo consumers s g] 0] 6 7]
        assert_equal {} [r xreadgroup group g idle streams s >]
        assert_equal {inactive -1} [lrange [lindex [r xinfo consumers s g] 0] 6 7]
        assert_equal -1 [dict get [lindex [dict get [lindex [dict get [r xinfo stream s full] groups] 0] consumers] 0] \
            active-time]
        r xadd s 1-1 f v
        r xreadgroup group g idle streams s >
        assert_range [lindex [r xinfo consumers s g] 0 7] 0 60000
        set consumer [lindex [dict get [lindex [dict get [r xinfo stream s full] groups] 0] consumers] 0]
        assert_equal {name seen-time active-time pel-count pending} [dict keys $consumer]
        assert_equal [dict get $consumer seen-time] [dict get $consumer active-time]
        r xgroup createconsumer s g other
        r xclaim s g other 0 1-1
        foreach consumer [r xinfo consumers s g] {
            assert {[dict get $consumer inactive] >= 0} $consumer
        }
    }

    test "XREAD +: the last entry that is there" {keydb} {
        assert_equal {} [r xread streams s +]
        r xadd s 1-1 f 1
        r xadd s 2-0 f 2
        r xadd s 3-1 f 3
        assert_equal {{s {{3-1 {f 3}}}}} [r xread streams s +]
        assert_equal {{s {{3-1 {f 3}}}}} [r xread count 10 block 0 streams s +]
        r xdel s 3-1
        assert_equal {{s {{2-0 {f 2}}}}} [r xread streams s +]
        r xdel s 1-1 2-0
        assert_equal {} [r xread streams s +]
        r xgroup create s g 0
        assert_error "ERR The + ID is meaningless*" {r xreadgroup group g c streams s +}
    }

    test "XREAD + of an empty stream waits for its first entry" {keydb} {
        set waits [connect]
        $waits -send xread block 0 streams none s +  +
        wait_for {[info_field blocked_clients clients] == 1}
        r xadd s 1-1 f v
        assert_equal {{s {{1-1 {f v}}}}} [$waits -read]
        $waits -close
    }

    # Nobody can wait there: the answer is that of a wait which is over.
    test "XREAD and XREADGROUP with BLOCK in a script" {keydb} {
        r xgroup create s g $ mkstream
        assert_reply nullbulk r eval {return redis.call('XREAD', 'BLOCK', 0, 'STREAMS', KEYS[1], '$')} 1 s
        set read {return redis.call('XREADGROUP', 'GROUP', 'g', 'c', 'BLOCK', 0, 'STREAMS', KEYS[1], '>')}
        assert_reply nullbulk r eval $read 1 s
        r xadd s 1-1 f v
        assert_equal {{s {{1-1 {f v}}}}} [r eval {return redis.call('XREAD', 'BLOCK', 0, 'STREAMS', KEYS[1], 0)} 1 s]
        assert_equal {{s {{1-1 {f v}}}}} [r eval $read 1 s]
        assert_reply nullbulk r eval $read 1 s
        assert_equal 0 [info_field blocked_clients clients]
    }
}
