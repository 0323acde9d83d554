# Streams: XNACK, as in Redis 8.8.

set most 9223372036854775807

# Entries 1-1 ... COUNT-1 of stream s, all pending for consumer c of group g, delivered once.
proc begin {{count 3}} {
    r flushall
    r xgroup create s g 0 mkstream
    for {set i 1} {$i <= $count} {incr i} {
        r xadd s $i-1 n $i
    }
    r xreadgroup group g c streams s >
}

# Id, consumer and deliveries of all that is pending.
proc rows {} {
    return [lmap row [r xpending s g - + 100] {
        lassign $row id consumer idle count
        assert_equal [expr {$consumer eq {}}] [expr {$idle == -1}]
        list $id $consumer $count
    }]
}

proc group_of_full {} {
    return [lindex [dict get [r xinfo stream s full] groups] 0]
}

# All of the group but when consumers were seen.
proc state {} {
    set group [group_of_full]
    return [list [rows] [dict get $group pending] [dict get $group nacked-count] [r debug digest]]
}

with_server {enable-debug-command yes appendonly yes} {
    foreach ::proto {2 3} {
        test "XNACK: modes and counts, RESP$::proto" {keydb} {
            r hello $::proto
            begin 9
            r xclaim s g c 0 2-1 3-1 4-1 retrycount 5 justid
            assert_reply {int 1} r xnack s g SILENT IDS 1 1-1
            assert_reply {int 1} r xnack s g silent ids 1 2-1
            assert_reply {int 1} r xnack s g fail ids 1 3-1
            assert_reply {int 1} r xnack s g fatal ids 1 4-1
            assert_reply {int 2} r xnack s g fail ids 3 5-1 77-1 6-1 RETRYCOUNT 7
            assert_reply {int 0} r xnack s g fatal ids 1 7 retrycount 0
            assert_reply {int 0} r xnack s g fatal ids 1 7-0
            assert_reply {int 1} r xnack s g silent ids 1 8-1 retrycount $::most
            assert_equal [list {1-1 {} 0} {2-1 {} 4} {3-1 {} 5} [list 4-1 {} $::most] {5-1 {} 7} {6-1 {} 7} {7-1 c 1} \
                [list 8-1 {} $::most] {9-1 c 1}] [rows]
            # Not below 0. What is released may be released again.
            assert_reply {int 1} r xnack s g silent ids 1 1-1
            assert_reply {int 2} r xnack s g silent ids 2 2-1 2-1
            assert_equal {{1-1 {} 0} {2-1 {} 2}} [lrange [rows] 0 1]
            r hello 2
        }
    }

    test "what is released: XPENDING and XINFO" {keydb} {
        begin
        assert_equal {name last-delivered-id entries-read lag pel-count pending consumers} [dict keys [group_of_full]]
        r xnack s g fail ids 2 1-1 3-1
        assert_equal {3 1-1 3-1 {{c 1}}} [r xpending s g]
        assert_equal {{1-1 {} -1 1} {3-1 {} -1 1}} [r xpending s g idle 100000 - + 10]
        assert_equal {} [r xpending s g - + 10 {}]
        assert_equal 2-1 [lindex [r xpending s g - + 10 c] 0 0]
        set group [group_of_full]
        set names {name last-delivered-id entries-read lag pel-count nacked-count pending consumers}
        assert_equal $names [dict keys $group]
        assert_equal {3 2} [list [dict get $group pel-count] [dict get $group nacked-count]]
        assert_equal {{1-1 {} 0 1} {3-1 {} 0 1}} [lreplace [dict get $group pending] 1 1]
        assert_equal {c} [lmap consumer [dict get $group consumers] {dict get $consumer name}]
        assert_equal {c 1} [lrange [lmap {field value} [lindex [r xinfo consumers s g] 0] {set value}] 0 1]
        assert_equal 1 [llength [r xinfo consumers s g]]
        assert_equal {1 3} [lmap field {consumers pending} {dict get [lindex [r xinfo groups s] 0] $field}]
        # Nobody has anything.
        r xnack s g fail ids 1 2-1
        assert_equal {3 1-1 3-1 {}} [r xpending s g]
        r xack s g 1-1 2-1 3-1
        assert_equal {name last-delivered-id entries-read lag pel-count pending consumers} [dict keys [group_of_full]]
        assert_equal {0 {} {} {}} [r xpending s g]
    }

    test "what is released goes to whoever claims, however long it has to be idle" {keydb} {
        begin 7
        assert_equal 5 [r xnack s g fail ids 5 1-1 2-1 3-1 4-1 5-1 retrycount 0]
        r xnack s g fatal ids 1 6-1
        assert_equal {{1-1 {n 1}}} [r xclaim s g d 1000000000 1-1 7-1]
        assert_equal 2-1 [r xclaim s g d 1000000000 2-1 justid]
        assert_equal {4-1 {{3-1 {n 3}}} {}} [r xautoclaim s g d 1000000000 - count 1]
        r xclaim s g d 1000000000 6-1
        assert_equal [list {1-1 d 1} {2-1 d 0} {3-1 d 1} {4-1 {} 0} {5-1 {} 0} [list 6-1 d $::most] {7-1 c 1}] [rows]
        # A count at its end stays there.
        r xreadgroup group g d streams s 5-1
        assert_equal [list 6-1 d $::most] [lindex [rows] 5]
        assert_equal 1 [r xack s g 4-1]
        # Consumers and the group's position are no matter of it.
        assert_equal 1 [r xgroup delconsumer s g c]
        assert_equal 4 [r xgroup delconsumer s g d]
        r xgroup setid s g 0
        assert_equal {{5-1 {} 0}} [rows]
        r xreadgroup group g e count 5 streams s >
        assert_equal {{1-1 e 1} {2-1 e 1} {3-1 e 1} {4-1 e 1} {5-1 e 1}} [rows]
    }

    test "XNACK FORCE makes entries pending" {keydb} {
        begin
        r xack s g 1-1 2-1
        r xdel s 2-1
        r xadd s 9-1 n 9
        assert_equal 0 [r xnack s g fail ids 2 1-1 2-1]
        assert_equal 2 [r xnack s g fail ids 4 1-1 2-1 9-1 8-1 force]
        assert_equal {{1-1 {} 0} {3-1 c 1} {9-1 {} 0}} [rows]
        r xack s g 1-1 9-1
        assert_equal 1 [r xnack s g fatal ids 1 1-1 force]
        assert_equal 1 [r xnack s g silent ids 1 9-1 force retrycount 3]
        assert_equal [list [list 1-1 {} $::most] {3-1 c 1} {9-1 {} 3}] [rows]
    }

    test "an entry that is gone is pending no longer" {keydb} {
        begin
        r xdel s 2-1
        assert_equal {{XACK s g 2-1}} [journaled_by {assert_equal 1 [r xnack s g fail ids 1 2-1]}]
        assert_equal {{1-1 c 1} {3-1 c 1}} [rows]
    }

    test "XNACK: errors change nothing" {keydb} {
        begin
        r set text v
        set before [rows]
        foreach {words error} {
            {s g soft ids 1 1-1}            "ERR mode must be SILENT, FAIL, or FATAL"
            {s g {} ids 1 1-1}              "ERR mode must be SILENT, FAIL, or FATAL"
            {s g fail id 1 1-1}             "ERR syntax error, expected IDS keyword"
            {s g fail 1-1 ids 1}            "ERR syntax error, expected IDS keyword"
            {s g fail ids 0 1-1}            "ERR numids must be a positive integer"
            {s g fail ids -1 1-1}           "ERR numids must be a positive integer"
            {s g fail ids x 1-1}            "ERR numids must be a positive integer"
            {s g fail ids 9223372036854775808 1-1} "ERR numids must be a positive integer"
            {s g fail ids 2 1-1}            "ERR number of IDs doesn't match numids"
            {s g fail ids 9223372036854775807 1-1} "ERR number of IDs doesn't match numids"
            {s g fail ids 4294967297 1-1}   "ERR number of IDs doesn't match numids"
            {s g fail ids 2 1-1 x-1}        "ERR Invalid stream ID specified as stream command argument"
            {s g fail ids 2 1-1 force}      "ERR Invalid stream ID specified as stream command argument"
            {s g fail ids 1 1-1 2-1}        "ERR Unrecognized XNACK option '2-1'"
            {s g fail ids 1 1-1 justid}     "ERR Unrecognized XNACK option 'justid'"
            {s g fail ids 1 1-1 force {}}   "ERR Unrecognized XNACK option ''"
            {s g fail ids 1 1-1 retrycount} "ERR Unrecognized XNACK option 'retrycount'"
            {s g fail ids 1 1-1 retrycount -1} "ERR Invalid RETRYCOUNT value, must be >= 0"
            {s g fail ids 1 1-1 retrycount x}  "ERR Invalid RETRYCOUNT value, must be >= 0"
            {s g fail ids 1 1-1 retrycount 9223372036854775808} "ERR Invalid RETRYCOUNT value, must be >= 0"
            {s h fail ids 1 1-1}            "NOGROUP No such key 's' or consumer group 'h'"
            {none g fail ids 1 1-1 force}   "NOGROUP No such key 'none' or consumer group 'g'"
            {text g fail ids 1 1-1}         "WRONGTYPE Operation against a key holding the wrong kind of value"
        } {
            assert_refused $error r xnack {*}$words
        }
        assert_error "ERR wrong number of arguments for 'xnack' command" {r xnack s g fail ids 1}
        assert_equal $before [rows]
        assert_equal 0 [r exists none]
        # An option that comes twice is the last one.
        assert_equal 1 [r xnack s g fail ids 1 1-1 retrycount 5 force force retrycount 6]
        assert_equal {1-1 {} 6} [lindex [rows] 0]
    }

    test "others are told by XCLAIM, which redis-server 7.0 knows" {keydb} {
        begin
        set claim {XCLAIM s g keydb:released 0 <id> TIME 0 RETRYCOUNT <count> FORCE JUSTID LASTID 3-1}
        foreach {words expected} {
            {silent ids 2 1-1 3-1}      {1-1 0 3-1 0}
            {fail ids 2 2-1 4-1}        {2-1 1}
            {fatal ids 1 2-1}           {2-1 9223372036854775807}
            {fail ids 1 1-1 retrycount 4} {1-1 4}
            {fail ids 1 7-1}            {}
        } {
            set found [journaled_by {r xnack s g {*}$words}]
            assert_equal [lmap {id count} $expected {string map [list <id> $id <count> $count] $claim}] \
                $found $words
        }
        set before [state]
        foreach again {{debug loadaof} {debug reload}} {
            r {*}$again
            assert_equal $before [state] $again
        }
        r bgrewriteaof
        wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
        r debug loadaof
        assert_equal $before [state]
        r restore copied 0 [r dump s]
        r copy s other
        r xgroup destroy s g
        r rename other s
        assert_equal [lrange $before 0 2] [lrange [state] 0 2]
        r rename copied s
        assert_equal $before [state]
    }

    test "within MULTI and scripts, watched, above maxmemory" {keydb} {
        begin
        r multi
        r xnack s g fail ids 1 1-1
        r xclaim s g d 1000000000 1-1 justid
        assert_equal {1 1-1} [r exec]
        assert_equal 1 [r eval {return redis.call('xnack', KEYS[1], 'g', 'silent', 'ids', 1, '2-1')} 1 s]
        assert_equal {{1-1 d 1} {2-1 {} 0} {3-1 c 1}} [rows]
        foreach {words is_changed} {{xnack s g fail ids 1 7-1} 0 {xnack s g fail ids 1 3-1} 1} {
            r watch s
            [set other [connect]] {*}$words
            $other -close
            r multi
            r ping
            assert_equal [expr {$is_changed ? {} : "PONG"}] [r exec] $words
        }
        with_config {maxmemory 1} {
            assert_equal 1 [r xnack s g fail ids 1 1-1]
        }
    }

    test "users need the key, and events are none" {keydb} {
        begin
        r acl setuser u on nopass +@all resetkeys %R~s
        set c [connect]
        $c auth u x
        assert_error "NOPERM No permissions to access a key*" {$c xnack s g fail ids 1 1-1}
        r acl setuser u ~s
        set listener [connect]
        with_config {notify-keyspace-events KA} {
            $listener psubscribe __keyspace@*
            assert_equal 1 [$c xnack s g fail ids 1 1-1]
            r publish __keyspace@end end
            assert_equal end [lindex [$listener -read] 3]
        }
        r acl setuser u -@stream
        assert_error "NOPERM User u has no permissions to run the 'xnack' command*" {$c xnack s g fail ids 1 1-1}
    }
}
