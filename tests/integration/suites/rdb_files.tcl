# Servers that start from a file: what comes from it, and what is said where it cannot be read.

# A file of these records, without a checksum.
proc rdb_file {version args} {
    return [format "REDIS%04d" $version][join $args {}]\xff[string repeat \0 8]
}

proc valkey_file {version args} {
    return [format "VALKEY%03d" $version][join $args {}]\xff[string repeat \0 8]
}

# Of Valkey: a field, its value, and in ms when it goes; -1: never.
proc valkey_field {field value ms} {
    return [rdb_text $field][rdb_text $value][binary format w $ms]
}

proc rdb_text text {
    return [binary format c [string length $text]]$text
}

# A server in a folder of its own with this file; its number. In `port` where it listens.
proc start_from {bytes portName args} {
    upvar 1 $portName port
    set port [free_port]
    set folder [fresh_dir]
    spit $folder/dump.rdb $bytes
    return [server_launch [list --port $port --dir $folder --save "" --enable-debug-command yes {*}[thread_args] \
        {*}$args]]
}

# Runs body with `s`, a client of a server that has this file.
proc with_file {bytes body args} {
    upvar 1 s s
    set id [start_from $bytes port {*}$args]
    wait_until {![process_alive $id] || ![catch {set s [connect -port $port -tls 0]}]} 20000
    if {![process_alive $id] || ![info exists s]} {
        fail "the server did not start:\n[process_log $id]"
    }
    wait_until {[string match "*\nloading:0*" [$s info persistence]]} 20000
    uplevel 1 $body
    $s -close
    process_stop $id
}

# The one line with which a server refuses to start.
proc refusal {bytes args} {
    set id [start_from $bytes port {*}$args]
    assert_equal 1 [process_wait $id]
    set lines [lsearch -all -inline [split [process_log $id] "\n"] "*Can't *"]
    assert_equal 1 [llength $lines] [process_log $id]
    return [lindex $lines 0]
}

set library "#!lua name=kept\nredis.register_function('answer', function() return 42 end)"

with_server {enable-debug-command yes} {
    test "functions are saved and come back" {} {
        r function flush
        r function load $::library
        r set a 1
        assert_equal OK [r debug reload]
        assert_equal 42 [r fcall answer 0]
        set bytes [slurp [srv dir]/dump.rdb]
        assert_equal REDIS0010 [string range $bytes 0 8]
        with_file $bytes {
            assert_equal 42 [$s fcall answer 0]
            assert_equal 1 [$s get a]
        }
    }

    test "a library that is there already is an error, or replaced" {} {
        r function flush
        r function load $::library
        r save
        r function load replace [string map {42 43} $::library]
        assert_refused "ERR Error trying to load the RDB dump, check server logs." r debug reload nosave noflush
        assert_equal 43 [r fcall answer 0]
        assert_equal OK [r debug reload nosave noflush merge]
        assert_equal 42 [r fcall answer 0]
        r function load "#!lua name=other\nredis.register_function('f', function() return 1 end)"
        assert_equal OK [r debug reload nosave]
        assert_equal 1 [llength [r function list]]
    }

    test "a version without functions is refused, so that none is lost" {} {
        r function flush
        r function load $::library
        r set a 1
        r save
        set before [slurp [srv dir]/dump.rdb]
        with_config {rdb-version 9} {
            assert_refused ERR r save
            assert_match "*functions need version 10, but rdb-version is 9*" [slurp [srv log]]
            assert_equal $before [slurp [srv dir]/dump.rdb]
            r function flush
            assert_equal OK [r save]
            assert_equal REDIS0009 [string range [slurp [srv dir]/dump.rdb] 0 8]
        }
    }
}

test "a library that cannot be loaded keeps the server from starting" {} {
    set bad "#!lua name=bad\nredis.register_function('f', 1)"
    set line [refusal [rdb_file 10 \xf5[rdb_text $bad]]]
    assert_match "*Can't load */dump.rdb: at byte *: a library of functions cannot be loaded: Error registering*" $line
    set twice \xf5[binary format c 0x40][binary format c [string length $::library]]$::library
    assert_match "*Library kept already exists*" [refusal [rdb_file 10 $twice $twice]]
}

test "what this server has not is refused by name" {} {
    # "tESTmodul" version 1: 9 letters of 6 bits each, then 10 bits.
    set alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_
    set id 0
    foreach letter [split tESTmodul {}] {
        set id [expr {$id << 6 | [string first $letter $alphabet]}]
    }
    set id [binary format cW 0x81 [expr {$id << 10 | 1}]]
    set line [refusal [rdb_file 9 \xfe\0 \x07[rdb_text k]$id\x02\x05\x00]]
    assert_match "*Can't load *: at byte *: a value of the unknown module type 'tESTmodul'*" $line
    assert_match "*Load it with a server that supports this*" $line
    assert_match "*data of the unknown module 'tESTmodul'*" [refusal [rdb_file 9 \xf7$id\x02\x01\x02\x05\x00]]
    assert_match "*it has version 15; versions up to 14 are supported, and Valkey's 80*" [refusal [rdb_file 15]]
    assert_match "*it has version 81 of Valkey; *" [refusal [valkey_file 81]]
    assert_match "*it has version 14 of Valkey; *" [refusal [valkey_file 14]]
    foreach {type what} {28 "an array, as in Redis 8.8" 243 "metadata of a key, as in Redis 8.x, *"} {
        assert_match "*Can't load *: at byte *: a record of type $type ($what) is not supported*" \
            [refusal [rdb_file 14 \xfe\0 [binary format c $type][rdb_text k]\x01]]
    }
    assert_match "*unknown record type 30*" [refusal [rdb_file 14 \xfe\0 \x1e[rdb_text k]\x01]]
}

# In files of Redis the same number was that of a hash of its release candidates.
test "a hash with deadlines from Valkey 9" {} {
    set far 4102444800123
    set hash \x16[rdb_text h]\x03[valkey_field a 1 -1][valkey_field b 22 $far][valkey_field c 3 -1]
    set text \0[rdb_text k][rdb_text v]
    foreach bytes [list [valkey_file 80 \xfe\0 $hash $text] [rdb_file 80 \xfe\0 $hash $text]] {
        with_file $bytes {
            assert_equal {a 1 b 22 c 3} [concat {*}[lsort_pairs [$s hgetall h]]]
            assert_equal [list -1 $far -1 -2] [$s hpexpiretime h fields 4 a b c none]
            assert_equal v [$s get k]
        }
    }
    set early \x16[rdb_text h]\x02\x00[rdb_text a][rdb_text 1]\x81[binary format W $far][rdb_text b][rdb_text 22]
    with_file [rdb_file 12 \xfe\0 $early] {
        assert_equal [list -1 $far] [$s hpexpiretime h fields 2 a b]
    }
    foreach {name damaged} [list "no deadline" \x16[rdb_text h]\x01[rdb_text a][rdb_text 1] \
            twice \x16[rdb_text h]\x02[valkey_field a 1 -1][valkey_field a 2 -1] \
            negative \x16[rdb_text h]\x01[valkey_field a 1 -2] \
            "too late" \x16[rdb_text h]\x01[valkey_field a 1 [expr {1 << 48}]]] {
        assert_match "*Can't load*" [refusal [valkey_file 80 \xfe\0 $damaged]]
    }
}

with_server {enable-debug-command yes} {
    test "files in the version of Valkey 9" {} {
        set far 4102444800123
        r hset h a one b two
        r hpexpireat h $far fields 1 b
        r hset plain a 1
        set id [r xadd s IDMP p i * f v]
        with_config {rdb-version 80} {
            r save
        }
        set bytes [slurp [srv dir]/dump.rdb]
        assert_equal VALKEY080 [string range $bytes 0 8]
        set hash \x16[rdb_text h]\x02[valkey_field a one -1][valkey_field b two $far]
        assert {[string first $hash $bytes] > 0} $bytes
        with_file $bytes {
            assert_equal {a one b two} [concat {*}[lsort_pairs [$s hgetall h]]]
            assert_equal [list -1 $far] [$s hpexpiretime h fields 2 a b]
            assert_equal 1 [$s hget plain a]
            assert_equal [list [list $id {f v}]] [$s xrange s - +]
            assert_equal 0 [dict get [$s xinfo stream s] pids-tracked]
        }
    }
}

# server -> what -> bytes: of captured.tsv.
proc captured {} {
    set all {}
    foreach line [split [string trimright [slurp $::here_dir/data/captured.tsv] "\n"] "\n"] {
        if {[string index $line 0] ne "#"} {
            lassign [split $line \t] server what digits
            dict set all $server $what [binary decode hex $digits]
        }
    }
    return $all
}

proc check_captured {s has_idmp} {
    set hundred [string repeat x 100]
    assert_equal [list {hello world} 12345 $hundred] [$s mget text number long]
    assert_equal [list a 7 -129 $hundred] [$s lrange list 0 -1]
    assert_equal {5 a bc} [lsort [$s smembers set]]
    assert_equal {-2 1 300000} [lsort -integer [$s smembers ints]]
    assert_equal {b -inf a 1.5 c 3} [$s zrange zset 0 -1 withscores]
    assert_equal {f v g 7} [concat {*}[lsort_pairs [$s hgetall hash]]]
    assert_equal {f v g w h 7} [concat {*}[lsort_pairs [$s hgetall fields]]]
    assert_equal {-1 4000000000000 4000000000123} [$s hpexpiretime fields fields 3 f g h]
    assert_equal {{2-1 {f x}} {3-1 {f y}}} [$s xrange stream - +]
    assert_equal {1 2-1 2-1 {{one 1}}} [$s xpending stream group]
    set told [$s xinfo stream stream full]
    assert_equal {3 1-1} [list [dict get $told entries-added] [dict get $told max-deleted-entry-id]]
    if {$has_idmp} {
        set told [$s xinfo stream idmp]
        assert_equal {1 1 1 1} [lmap fact {pids-tracked iids-tracked iids-added iids-duplicates} {dict get $told $fact}]
        assert_equal 4000000000000-1 [$s xadd idmp IDMP p i * f again]
        assert_equal 2 [$s xlen idmp]
    }
}

dict for {server has_idmp} {valkey-9.1.2 0 redis-8.6.3 1} {
    test_each {server has_idmp} "a file and payloads of $server" {} {
        set bytes [dict get [captured] $server]
        with_file [dict get $bytes file] {
            check_captured $s $has_idmp
            assert_equal 4000000000000 [$s pexpiretime text]
            assert_equal 42 [$s fcall answer 0]
            assert_equal [expr {10 + $has_idmp}] [$s dbsize]
            $s select 3
            assert_equal 1 [$s get other]
        }
        with_file [rdb_file 9] {
            dict for {key payload} [dict remove $bytes file] {
                assert_equal OK [$s restore $key 0 $payload] $key
            }
            check_captured $s $has_idmp
        }
    }
}

foreach options {{} {active-replica yes multi-master yes}} {
    test_each options "data of a Valkey 9 master, with options {$options}" {noconn} {
        with_group [list a ours $options] {
            set hash \x16[rdb_text h]\x02[valkey_field a 1 -1][valkey_field b 22 4102444800123]
            set file [sized [valkey_file 80 \xfe\0 $hash \0[rdb_text k][rdb_text v]]]
            set answers [dict create {REPLCONF UUID} "-ERR Unrecognized REPLCONF option: uuid\r\n" \
                PSYNC "+FULLRESYNC [string repeat a 40] 1\r\n$file"]
            on a replicaof 127.0.0.1 [fake_master $answers]
            wait_for {![catch {on a dbsize} size] && $size == 2}
            assert_equal {a 1 b 22} [concat {*}[lsort_pairs [on a hgetall h]]]
            assert_equal {-1 4102444800123} [on a hpexpiretime h fields 2 a b]
            fake_close
        }
    }
}

with_server {enable-debug-command yes} {
    test "payloads of Valkey 9" {} {
        set body \x16\x02[valkey_field a 1 -1][valkey_field b 22 4102444800123]
        foreach {version fields} {80 {a 1 b 22} 12 {}} {
            set payload $body[binary format s $version]
            append payload [binary format w 0x[crc64 $payload]]
            if {$fields eq {}} {
                assert_error "ERR Bad data format" {r restore h 0 $payload replace}
            } else {
                assert_equal OK [r restore h 0 $payload]
            }
        }
        assert_equal {a 1 b 22} [concat {*}[lsort_pairs [r hgetall h]]]
        assert_equal {-1 4102444800123} [r hpexpiretime h fields 2 a b]
        foreach version {15 79 81} {
            set payload $body[binary format s $version]
            append payload [binary format w 0x[crc64 $payload]]
            assert_error "ERR DUMP payload version or checksum are wrong" {r restore g 0 $payload}
        }
    }

    test "files load with any number of threads, in batches and with large values" {} {
        for {set i 0} {$i < 3000} {incr i} {
            r -send set key:$i [pattern_bytes [expr {$i % 200}] $i]
            r -send hset hash:$i a [string repeat x [expr {$i % 100}]] b $i
            r -send rpush list:[expr {$i % 11}] $i [string repeat y $i]
            r -send zadd zset:[expr {$i % 13}] $i.25 member:$i
            r -send xadd stream:[expr {$i % 17}] * field $i
            r -send set $i [string repeat long $i]
        }
        for {set i 0} {$i < 18000} {incr i} {
            r -read
        }
        r set huge [pattern_bytes 3000000]
        r setrange sparse 5000000 x
        r set [pattern_bytes 100000 7] "a long name"
        r hset members a 1 b 2
        r sadd set a b c
        r expiremember set b 100000
        r hpexpire members 100000 fields 1 a
        r pexpire key:7 100000
        r config set rdb-version 9
        r select 9
        r set elsewhere 1
        set digest [r debug digest]
        r save
        set bytes [slurp [srv dir]/dump.rdb]
        foreach threads {1 2 5} {
            with_file $bytes {
                assert_equal $digest [$s debug digest] $threads
                assert_match "*rdb_last_load_keys_loaded:9047\r*" [$s info persistence]
                assert {[$s pttl set b] > 0}
                assert {[$s hpttl members fields 1 a] > 0}
            } --server-threads $threads
        }
    }

    test "the first fault in a file is told, whoever finds it" {} {
        set hash [rdb_text k2]\x03[rdb_text f][rdb_text v][rdb_text f][rdb_text v][rdb_text f][rdb_text v]
        set good {}
        for {set i 0} {$i < 4000} {incr i} {
            append good \0[rdb_text name:$i][rdb_text [string repeat v 60]]
        }
        set at [expr {11 + [string length $good]}]
        foreach threads {1 4} {
            # Twice the same field, then, far behind it, no such type.
            set line [refusal [rdb_file 9 \xfe\0 $good \x04$hash $good \x37] --server-threads $threads]
            regexp {at byte (\d+): (.*)\. The server} $line - offset reason
            assert {$offset > $at && $offset < $at + 40} $line
            assert_equal "a hash has a duplicate field" $reason
            set line [refusal [rdb_file 9 \xfe\0 $good \0[rdb_text name:17][rdb_text x] $good \x37] \
                --server-threads $threads]
            assert_match "*at byte $at: duplicate key*" $line
        }
    }
}
