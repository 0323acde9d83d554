# Streams: XADD with IDMP and IDMPAUTO, XCFGSET and XIDMPRECORD, as in Redis 8.6.

set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"
set multiple "ERR syntax error, IDMP/IDMPAUTO specified multiple times"
set bad_duration "ERR IDMP-DURATION must be between 1 and 86400 seconds"
set bad_maxsize "ERR IDMP-MAXSIZE must be between 1 and 10000 entries"

proc idmp_facts {{key s}} {
    set stream [r xinfo stream $key]
    return [lmap name {idmp-duration idmp-maxsize pids-tracked iids-tracked iids-added iids-duplicates} {
        dict get $stream $name
    }]
}

with_server {enable-debug-command yes appendonly yes} {
    foreach ::proto {2 3} {
        test "XADD IDMP and IDMPAUTO: known pairs, RESP$::proto" {keydb} {
            r hello $::proto
            r flushall
            set id [r xadd s IDMP p i * f v]
            assert_equal $id [r xadd s IDMP p i * f other g h]
            assert_equal $id [r xadd s nomkstream idmp p i maxlen = 0 * f v]
            assert_equal 1 [r xlen s]
            # Another producer, another iid, and binary ones.
            set others [list [r xadd s IDMP q i * f v] [r xadd s IDMP p j * f v] [r xadd s IDMP p i\x00 * f v] \
                [r xadd s * f v]]
            assert_equal 5 [llength [lsort -unique [concat $id $others]]]
            assert_equal [lindex $others 2] [r xadd s IDMP p i\x00 * x y]
            # The order of pairs does not count; what is a field, what a value, and how often, does.
            set auto [r xadd s IDMPAUTO p * a 1 b 2]
            assert_equal $auto [r xadd s maxlen ~ 1000 IDMPAUTO p * b 2 a 1]
            set ids [list $auto]
            foreach pairs {{a 2 b 1} {1 a b 2} {a 1} {a 1 b 2 b 2} {a 1 b 2 b 2 b 2} {a1 {} b 2} {{} a1 b 2} {b 2}} {
                lappend ids [r xadd s IDMPAUTO p * {*}$pairs]
            }
            assert_equal [llength $ids] [llength [lsort -unique $ids]]
            assert {[r xadd s IDMPAUTO q * a 1 b 2] ni $ids}
            assert_equal {100 100 2 14 14 4} [idmp_facts]
            assert_equal 15 [r xlen s]
            # A pair is known when its entry has gone.
            r xdel s $id
            assert_equal $id [r xadd s IDMP p i * f v]
            assert_equal 14 [r xlen s]
        }

        test "XADD IDMP: what is refused, RESP$::proto" {keydb} {
            r hello $::proto
            r flushall
            r set text v
            foreach {words error} [list \
                {s IDMP p i IDMP p i * f v} $::multiple \
                {s IDMPAUTO p IDMP p i * f v} $::multiple \
                {s idmp p i idmpauto p * f v} $::multiple \
                {s IDMPAUTO {} * f v} "ERR syntax error, IDMPAUTO requires a non-empty producer ID" \
                {s IDMP {} i * f v} "ERR syntax error, IDMP requires a non-empty producer ID" \
                {s IDMP p {} * f v} "ERR syntax error, IDMP requires a non-empty idempotent ID" \
                {s IDMP p i 1-1 f v} "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs" \
                {s IDMPAUTO p 1-* f v} "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs" \
                {s IDMP p i * f} "ERR wrong number of arguments for 'xadd' command" \
                {s IDMP p i * f v g} "ERR wrong number of arguments for 'xadd' command" \
                {s IDMPAUTO p maxlen -1 * f v} "ERR The MAXLEN argument must be >= 0." \
                {s IDMP p *} "ERR wrong number of arguments for 'xadd' command" \
                {s maxlen 5 IDMPAUTO} "ERR Invalid stream ID specified as stream command argument" \
                {s IDMPX p i * f v} "ERR Invalid stream ID specified as stream command argument" \
                {text IDMP p i * f v} $::wrong_type] {
                assert_refused $error r xadd {*}$words
            }
            assert_equal 0 [r exists s]
            assert_equal {} [r xadd s nomkstream IDMP p i * f v]
            assert_equal 0 [r exists s]
        }

        test "XCFGSET, RESP$::proto" {keydb} {
            r hello $::proto
            r flushall
            r set text v
            r xadd s 1-1 f v
            foreach {words error} [list \
                {none IDMP-MAXSIZE 1} "ERR no such key" \
                {text IDMP-MAXSIZE 1} $::wrong_type \
                {none} "ERR no such key" {text IDMP-DURATION x} $::wrong_type \
                {s} "ERR At least one parameter must be specified" \
                {s IDMP-DURATION 0} $::bad_duration {s IDMP-DURATION 86401} $::bad_duration \
                {s IDMP-DURATION x} "ERR value is not an integer or out of range" {s idmp-duration -1} $::bad_duration \
                {s IDMP-MAXSIZE 0} $::bad_maxsize {s IDMP-MAXSIZE 10001} $::bad_maxsize \
                {s IDMP-MAXSIZE 1.5} "ERR value is not an integer or out of range" \
                {s IDMP-MAXSIZE 99999999999999999999} "ERR value is not an integer or out of range" \
                {s IDMP-MAXSIZE 1 IDMP-MAXSIZE 1} "ERR IDMP-MAXSIZE specified multiple times" \
                {s IDMP-DURATION 1 IDMP-DURATION 2} "ERR IDMP-DURATION specified multiple times" \
                {s IDMP-MAXSIZE} "ERR syntax error" {s IDMP-DURATION 1 IDMP-MAXSIZE} "ERR syntax error" \
                {s DURATION 1} "ERR syntax error"] {
                assert_refused $error r xcfgset {*}$words
            }
            assert_equal {100 100 0 0 0 0} [idmp_facts]
            with_config {stream-idmp-duration 7 stream-idmp-maxsize 9} {
                assert_equal {7 9 0 0 0 0} [idmp_facts]
                r xadd s IDMP p i * f v
                assert_equal {7 9 1 1 1 0} [idmp_facts]
            }
            # The stream keeps what it had with its first pair.
            assert_equal {7 9 1 1 1 0} [idmp_facts]
            assert_reply {status OK} r xcfgset s IDMP-MAXSIZE 9 IDMP-DURATION 7
            assert_equal {7 9 1 1 1 0} [idmp_facts]
            assert_reply {status OK} r xcfgset s IDMP-MAXSIZE 10000 IDMP-DURATION 86400
            assert_equal {86400 10000 0 0 1 0} [idmp_facts]
            assert_reply {status OK} r xcfgset s idmp-maxsize 1
            assert_equal {86400 1 0 0 1 0} [idmp_facts]
        }

        test "XIDMPRECORD, RESP$::proto" {keydb} {
            r hello $::proto
            r flushall
            r set text v
            r xadd s 1-1 f v
            r xadd s 2-1 f v
            foreach {words error} [list \
                {none p i 1-1} "ERR no such key" {text p i 1-1} $::wrong_type \
                {s {} i 1-1} "ERR producer ID must be non-empty" {s p {} 1-1} "ERR idempotent ID must be non-empty" \
                {s p i x} "ERR Invalid stream ID specified as stream command argument" \
                {s p i 1-2} "ERR No such message in stream" {s p i 9-9} "ERR No such message in stream"] {
                assert_refused $error r xidmprecord {*}$words
            }
            set id [r xadd s * f v]
            set other [r xadd s * f v]
            assert_reply {status OK} r xidmprecord s p i $id
            assert_reply {status OK} r xidmprecord s p i $id
            assert_refused "ERR IID already exists for this producer with a different stream ID" \
                r xidmprecord s p i $other
            assert_equal $id [r xadd s IDMP p i * f v]
            r xdel s $id
            assert_reply {status OK} r xidmprecord s p i $id
            assert_equal {100 100 1 1 1 1} [idmp_facts]
            # What is too old does not count, and may be somebody else's.
            assert_reply {status OK} r xidmprecord s p old 1-1
            assert_reply {status OK} r xidmprecord s p old 2-1
        }
    }

    test "pairs are known for so long, and so many of a producer" {keydb} {
        r flushall
        r xadd s 0-1 f v
        r xcfgset s IDMP-MAXSIZE 3
        foreach iid {a b c d} {
            set $iid [r xadd s IDMP p $iid * f v]
        }
        r xadd s IDMP q a * f v
        assert_equal {100 3 2 4 5 0} [idmp_facts]
        assert_equal $d [r xadd s IDMP p d * f v]
        assert_equal $b [r xadd s IDMP p b * f v]
        assert {[r xadd s IDMP p a * f v] ne $a}
        assert {[r xadd s IDMP p b * f v] ne $b}
        r xcfgset s IDMP-DURATION 1
        set first [r xadd s IDMP p a * f v]
        assert_equal $first [r xadd s IDMP p a * f v]
        r xadd s IDMP q a * f v
        wait_for {[r xadd s IDMP p a * f v] ne $first}
        # What the other producer has added is over, too, and goes.
        assert_equal {1 3 1 1} [lrange [idmp_facts] 0 3]
        r xadd s [expr {[clock milliseconds] + 3600000}]-1 f v
        set second [r xadd s IDMP p a * f v]
        assert {$second ne $first}
        assert_equal $second [r xadd s IDMP p a * f v]
    }

    test "in transactions and scripts, with rights of keys, events" {keydb} {
        r flushall
        r config set notify-keyspace-events KEA
        set listener [connect]
        $listener psubscribe __keyspace@0__:s
        r multi
        r xadd s IDMP p i * f v
        r xadd s IDMP p i * f v
        r xcfgset s IDMP-MAXSIZE 7
        r xadd s IDMP p i * f v
        lassign [r exec] one two three four
        assert_equal {1 1 0} [list [expr {$one eq $two}] [expr {$three eq "OK"}] [expr {$one eq $four}]]
        assert_equal $four [r eval {return redis.call('XADD', KEYS[1], 'IDMP', 'p', 'i', '*', 'f', 'v')} 1 s]
        r xidmprecord s p other $four
        r del s
        foreach event {xadd xadd del} { # limits and pairs have no events
            assert_equal [list pmessage __keyspace@0__:s __keyspace@0__:s $event] [$listener -read]
        }
        r xadd s IDMP p i * f v
        $listener -close
        r config set notify-keyspace-events {}
        r acl setuser limited on nopass resetkeys ~own* %R~s +@all
        set limited [connect]
        $limited auth limited any
        foreach words {{xcfgset s IDMP-MAXSIZE 1} {xidmprecord s p i 1-1} {xadd s IDMP p i * f v}} {
            assert_error "NOPERM*" {$limited {*}$words}
        }
        $limited xadd own IDMP p i * f v
        $limited -close
        r acl deluser limited
    }

    test "at maxmemory pairs are refused, limits are not" {keydb} {
        r flushall
        set id [r xadd s IDMP p i * f v]
        with_config {maxmemory 1} {
            assert_error "OOM*" {r xadd s IDMP p i * f v}
            assert_error "OOM*" {r xidmprecord s p j $id}
            assert_equal OK [r xcfgset s IDMP-MAXSIZE 1]
        }
    }

    test "replicas and files get pairs with ids" {keydb} {
        r flushall
        set effects [effects_of {set ::id [r xadd s IDMPAUTO p * f v]}]
        assert_match "MULTI {xadd s $::id f v} {XCFGSET s IDMP-DURATION 100 IDMP-MAXSIZE 100}\
            {XIDMPRECORD s p * $::id} EXEC" $effects
        set effects [effects_of {
            set ::id [r xadd s NOMKSTREAM IDMPAUTO p MAXLEN ~ 1 LIMIT 5 * f w]
            r xadd s IDMPAUTO p * f w
        }]
        assert_equal 1 [llength $effects]
        assert_match "xadd s NOMKSTREAM IDMP p * MAXLEN = 2 $::id f w" [lindex $effects 0]
        assert {[regexp { IDMP p (.*) MAXLEN } [lindex $effects 0] - iid]}
        assert_equal 16 [string length $iid]
        assert_equal {} [effects_of {r xcfgset s IDMP-MAXSIZE 100}]
        assert_equal {{XCFGSET s IDMP-DURATION 100 IDMP-MAXSIZE 5}} [effects_of {r xcfgset s IDMP-MAXSIZE 5}]
        set id [r xadd s * f v]
        assert_equal [list "xidmprecord s p i $id"] [effects_of {r xidmprecord s p i $id}]
        assert_equal {} [effects_of {r xidmprecord s p i $id}]
    }

    test "files have the pairs" {keydb} {
        r flushall
        set ids {}
        for {set i 0} {$i < 50} {incr i} {
            lappend ids [r xadd s MAXLEN = 7 IDMP p[expr {$i % 3}] $i * f v]
        }
        r xadd s * f v
        set trimmed [r xadd trimmed MAXLEN = 0 IDMP p i * f v]
        set digest [r debug digest-value s]
        set facts [idmp_facts]
        foreach words {{debug reload} {debug loadaof} {copy s t} {rename t s}} {
            r {*}$words
            assert_equal $digest [r debug digest-value s] $words
            assert_equal $facts [idmp_facts] $words
        }
        r bgrewriteaof
        wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
        with_config {aof-use-rdb-preamble no} {
            r bgrewriteaof
            wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
        }
        r xadd s IDMP q last * f v
        set digest [r debug digest-value s]
        r debug loadaof
        assert_equal $digest [r debug digest-value s]
        for {set i 0} {$i < 50} {incr i} {
            assert_equal [lindex $ids $i] [r xadd s IDMP p[expr {$i % 3}] $i * f v]
        }
        assert_equal 9 [r xlen s]
        assert_equal $trimmed [r xadd trimmed IDMP p i * f v]
    }

    # A large stream is written piece by piece, and changes meanwhile.
    test "a snapshot has the pairs of its moment" {keydb} {
        r flushall
        for {set i 0} {$i < 30} {incr i} {
            r set filler:$i v
        }
        for {set i 0} {$i < 3000} {incr i} {
            r -send xadd s IDMP p[expr {$i % 40}] $i * field [string repeat v 20]
        }
        for {set i 0} {$i < 3000} {incr i} {
            r -read
        }
        set digest [r debug digest-value s]
        set facts [idmp_facts]
        with_config {rdb-key-save-delay 200000} {
            r bgsave
            for {set i 0} {$i < 200} {incr i} {
                r xadd s IDMP p1 new:$i * f v
            }
            assert_equal 1 [info_field rdb_bgsave_in_progress persistence]
            r xcfgset s IDMP-MAXSIZE 7
        }
        wait_for {[info_field rdb_bgsave_in_progress persistence] == 0}
        r debug reload nosave
        assert_equal $digest [r debug digest-value s]
        assert_equal $facts [idmp_facts]
        assert_equal 3000 [r xlen s]
    }

    test "files have pairs of entries behind the last id, where XSETID went back" {keydb} {
        r flushall
        set id [r xadd s IDMP p i * f v]
        r xtrim s MAXLEN 0
        r xsetid s 3-0
        set digest [r debug digest-value s]
        r restore t 0 [r dump s]
        assert_equal $digest [r debug digest-value t]
        with_config {aof-use-rdb-preamble no} {
            foreach words {{debug reload} bgrewriteaof {debug loadaof}} {
                r {*}$words
                wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
                assert_equal $digest [r debug digest-value s] $words
                assert_equal $id [r xadd s IDMP p i * f v] $words
            }
        }
        assert_equal $id [r xadd t IDMP p i * f v]
        assert_equal 0 [r xlen s]
    }

    test "payloads have version 13 for pairs alone, and a lower one loses them" {keydb} {
        r flushall
        set id [r xadd s IDMP p i * f v]
        r xadd plain * f v
        binary scan [r dump s] cu@[expr {[string length [r dump s]] - 10}]su type version
        assert_equal {26 13} [list $type $version]
        binary scan [r dump plain] cu@[expr {[string length [r dump plain]] - 10}]su type version
        assert_equal {15 9} [list $type $version]
        r restore t 0 [r dump s]
        assert_equal $id [r xadd t IDMP p i * f v]
        foreach wished {12 80} {
            with_config [list rdb-version $wished] {
                set payload [r dump s]
            }
            binary scan $payload cu@[expr {[string length $payload] - 10}]su type version
            assert_equal [list 21 $wished] [list $type $version]
            r restore t 0 $payload replace
            assert_equal {100 100 0 0 0 0} [idmp_facts t]
            assert_equal 1 [r xlen t]
        }
    }

    test "damaged payloads are refused" {keydb} {
        r flushall
        r xadd s 5-5 f v
        r xidmprecord s pro iid 5-5
        r xidmprecord s pro jjd 5-5
        set good [string range [r dump s] 0 end-10]
        # From the limits on: 100 s, 100 pairs, 1 producer, 2 pairs; 2 added, no duplicates.
        set tail "\x40\x64\x40\x64\x01\x03pro\x02\x03iid\x05\x05\x03jjd\x05\x05\x02\x00"
        assert_equal $tail [string range $good end-[expr {[string length $tail] - 1}] end]
        set head [string range $good 0 end-[string length $tail]]
        foreach {name tail fine} [list \
            same $tail 1 \
            "no duration" [string replace $tail 0 1 \x00] 0 \
            "too many pairs" [string replace $tail 2 3 \x80\x00\x00\x27\x11] 0 \
            "no name" [string replace $tail 5 8 \x00] 0 \
            "no iid" [string replace $tail 10 13 \x00] 0 \
            "twice" [string map {jjd iid} $tail] 0 \
            "more than the limit" [string replace $tail 2 3 \x01] 0 \
            "too short" [string range $tail 0 end-1] 0 \
            "many pairs" [string replace $tail 9 9 \x80\xff\xff\xff\xff] 0] {
            set body "$head$tail[binary format s 13]"
            set payload "$body[binary format w 0x[crc64 $body]]"
            if {$fine} {
                assert_equal OK [r restore t 0 $payload replace] $name
            } else {
                assert_error "ERR Bad data format" {r restore u 0 $payload}
            }
        }
        assert_equal [r debug digest-value s] [r debug digest-value t]
        assert_equal 0 [r exists u]
    }

    test "memory of pairs is counted, and comes back" {keydb} {
        r flushall
        r xadd s * f v
        set without [r memory usage s samples 0]
        for {set i 0} {$i < 100} {incr i} {
            r xadd s maxlen = 1 IDMP p $i-[string repeat x 100] * f v
        }
        set with [r memory usage s samples 0]
        assert_range $with [expr {$without + 100 * 130}] [expr {$without + 100 * 600}]
        r xcfgset s IDMP-DURATION 5
        assert_range [r memory usage s samples 0] $without [expr {$without + 300}]
    }
}

# What was replied holds after a crash, on a replica that takes over, and on an active peer.
with_server {} {
    test "a pair that was answered has its id after kill -9" {noconn keydb} {
        with_group {a ours {appendonly yes appendfsync always}} {
            set id [on a xadd s IDMP p i * f v]
            set other [on a xadd s IDMPAUTO p * f v]
            on a xcfgset s IDMP-MAXSIZE 100
            member_kill a
            member_start a
            assert_equal $id [on a xadd s IDMP p i * f v]
            assert_equal $other [on a xadd s IDMPAUTO p * f v]
        }
    }

    test "a replica knows pairs, whatever its directives are" {noconn keydb} {
        with_group {a ours {} b ours {stream-idmp-duration 1 stream-idmp-maxsize 1}} {
            set before [on a xadd s IDMP p before * f v]
            follow b a
            wait_link b
            set ids {}
            foreach iid {x y z} {
                lappend ids [on a xadd s IDMP p $iid * f v]
                lappend ids [on a xadd new IDMPAUTO p * f $iid]
            }
            wait_same a b
            on b replicaof no one
            foreach iid {x y z} {
                lappend again [on b xadd s IDMP p $iid * f v]
                lappend again [on b xadd new IDMPAUTO p * f $iid]
            }
            assert_equal $ids $again
            assert_equal $before [on b xadd s IDMP p before * f v]
            assert_equal 100 [dict get [on b xinfo stream new] idmp-maxsize]
        }
    }

    # Redis 8.6 sends, and writes into its files, what clients have sent: only new entries have their ids there.
    test "repetitions of a Redis master or in its file are counted, and add nothing" {noconn keydb} {
        set stream {}
        foreach words {
            {XADD s IDMP p i 7-1 f v} {XADD s IDMP p i * f v} {XADD s IDMPAUTO p 7-2 f v} {XADD s IDMPAUTO p * f v}
            {XADD s MAXLEN ~ 0 NOMKSTREAM IDMP p i * f v} {XADD new IDMP p i * f v} {SET end 1}
        } {
            append stream [request {*}$words]
        }
        set facts [dict create iids-added 2 iids-duplicates 3]
        proc check_facts {name facts} {
            assert_equal {{7-1 {f v}} {7-2 {f v}}} [on $name xrange s - +]
            assert_equal 0 [on $name exists new]
            set told [on $name xinfo stream s]
            dict for {fact value} $facts {
                assert_equal $value [dict get $told $fact] $fact
            }
        }
        with_group {a ours {appendonly yes} b ours {}} {
            on a replicaof 127.0.0.1 [fake_master \
                [list PSYNC "+FULLRESYNC [string repeat a 40] 1\r\n[sized REDIS0009\xff[string repeat \0 8]]"]]
            wait_link a
            follow b a
            wait_link b
            fake_send $stream
            foreach name {a b} {
                wait_for {[on $name exists end] == 1}
                check_facts $name $facts
            }
            fake_close
            on a replicaof no one
            on a set end 2
            assert_equal {1 0} [on a waitaof 1 0 0]
            member_kill a
            member_start a
            check_facts a $facts
        }
    }

    test "an active peer knows pairs" {noconn keydb} {
        with_group {a ours {active-replica yes} b ours {active-replica yes stream-idmp-maxsize 1}} {
            follow a b
            follow b a
            foreach name {a b} {
                wait_for {[string match *link=up* [on $name info replication]]}
            }
            set ids {}
            foreach iid {x y z} {
                lappend ids [on a xadd s IDMP p $iid * f v]
            }
            wait_for {[on b xlen s] == 3}
            wait_for {[on a debug digest] eq [on b debug digest]}
            foreach iid {x y z} id $ids {
                assert_equal $id [on b xadd s IDMP p $iid * f v]
            }
            on b xcfgset s IDMP-DURATION 50
            wait_for {[dict get [on a xinfo stream s] idmp-duration] == 50}
            assert_equal 0 [dict get [on a xinfo stream s] iids-tracked]
            set id [on b xadd s IDMP p x * f v]
            wait_for {[on a xlen s] == 4}
            wait_for {[dict get [on a xinfo stream s] iids-tracked] == 1}
            assert_equal $id [on a xadd s IDMP p x * f v]
        }
    }
}
