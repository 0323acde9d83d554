# The append only file as it is written: its files, rewriting, switching on and off, WAITAOF, what INFO tells. What
# stands in the files is judged by redis-server, which loads them (--oracle); loading is tested in aof_load.tcl.

proc aof_folder {} {
    return [srv dir]/appendonlydir
}

proc aof_manifest {} {
    return [string trim [slurp [aof_folder]/appendonly.aof.manifest]]
}

# All but the tail, which is there as long as the server is (aof_tail.tcl).
proc aof_files {} {
    set names [lmap path [glob -nocomplain -directory [aof_folder] *] {file tail $path}]
    return [lsort [lsearch -all -inline -not $names *.tail]]
}

# The words of an increment's commands.
proc aof_commands path {
    set bytes [slurp $path]
    set commands {}
    while {$bytes ne {}} {
        set end [string first "\r\n" $bytes]
        set head [string range $bytes 0 [expr {$end - 1}]]
        set bytes [string range $bytes [expr {$end + 2}] end]
        if {[string match "#*" $head]} {
            lappend commands [list $head]
            continue
        }
        set words {}
        for {set i 0} {$i < [string range $head 1 end]} {incr i} {
            set end [string first "\r\n" $bytes]
            set size [string range $bytes 1 [expr {$end - 1}]]
            lappend words [string range $bytes [expr {$end + 2}] [expr {$end + 1 + $size}]]
            set bytes [string range $bytes [expr {$end + 4 + $size}] end]
        }
        lappend commands $words
    }
    return $commands
}

proc aof_increment {{number 1}} {
    return [aof_folder]/appendonly.aof.$number.incr.aof
}

proc wait_for_rewrite {} {
    wait_for {[info_field aof_rewrite_scheduled] == 0 && [info_field aof_rewrite_in_progress] == 0} 30000
}

proc rewrite {} {
    assert_equal {Background append only file rewriting started} [r bgrewriteaof]
    wait_for_rewrite
    assert_equal ok [info_field aof_last_bgrewrite_status]
}

# Everything that has been done is in the files.
proc wait_written {} {
    wait_for {[info_field aof_buffer_length] == 0}
}

# The digest of what redis-server loads from a copy of the files.
proc oracle_digest {} {
    if {$::settings(oracle) eq {}} {
        skip "needs redis-server (--oracle)"
    }
    set dir [fresh_dir]
    file copy [aof_folder] $dir/appendonlydir
    set port [free_port]
    set id [process_start [list $::settings(oracle) --port $port --dir $dir --appendonly yes --save {} \
        --enable-debug-command yes] $dir/log]
    lappend ::test_processes $id
    wait_for {![process_alive $id] || ![catch {
        set client [connect -port $port -tls 0]
        $client ping
    }]}
    if {![process_alive $id]} {
        fail "redis-server does not load the files: [log_tail $dir/log]"
    }
    set digest [$client debug digest]
    catch {$client shutdown nosave force}
    return $digest
}

proc write_everything {client seed} {
    for {set i 0} {$i < 200} {incr i} {
        $client -send set key:$seed:$i [string repeat v [expr {$i % 90}]]
        $client -send incrby number:$seed $i
        $client -send rpush list:[expr {$i % 7}] $i element:$seed
        $client -send sadd set:[expr {$i % 7}] $i member:$seed:$i
        $client -send zadd zset:[expr {$i % 7}] $i.25 member:$seed:$i
        $client -send hset hash:[expr {$i % 7}] field:$i value:$seed
        $client -send xadd stream:[expr {$i % 3}] * a $i
        $client -send spop set:[expr {$i % 7}]
        $client -send setex gone:$i 100 x
        $client -send expire key:$seed:$i 1000
        $client -send eval {redis.call('append', KEYS[1], ARGV[1]); return redis.call('incr', 'undeclared')} \
            1 script:[expr {$i % 5}] $i
        $client -send multi
        $client -send lpop list:[expr {$i % 7}]
        $client -send select [expr {$i % 3}]
        $client -send set other:$i $seed
        $client -send select 0
        $client -send exec
        $client -send getdel gone:$i
    }
    for {set i 0} {$i < 200 * 18} {incr i} {
        $client -read
    }
}

with_server {appendonly yes enable-debug-command yes} {
    test "a base and an increment are there from the start" {} {
        assert_equal "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i" \
            [aof_manifest]
        assert_equal {appendonly.aof.1.base.rdb appendonly.aof.1.incr.aof appendonly.aof.manifest} [aof_files]
        assert_equal 1 [info_field aof_enabled]
        assert_equal ok [info_field aof_last_write_status]
        assert {[info_field aof_current_size] >= [info_field aof_base_size]}
    }

    test "requests that only we take are written as all take them" {} {
        rewrite
        set file [aof_folder]/[lindex [lsearch -inline [split [aof_manifest] "\n"] *.incr.*] 1]
        r -raw "*3\r\n\$3\r\nSET\r\n\$1\r\na\r\n\$2\r\nxx\r\n"
        r -raw "*3\r\n\$3\r\nSET..\$1\r\nb\r\n\$2\r\nxx\r\n"
        r -raw "*3\r\n\$3\r\nSET\r\n\$1\r\nc\r\n\$2\r\nxx.."
        r -raw "*3\r.\$3\r\nSET\r\n\$1\r\nd\r\n\$2\r\nxx\r\n"
        r -raw "*3\r\n\$3\r.SET\r\n\$1\r\ne\r\n\$2\r\nxx\r\n"
        r -raw "SET f \"xx\"\r\n"
        r -raw "*3\r\n\$3\r\nset\r\n\$100\r\n[string repeat h 100]\r\n\$0\r\n\r\n"
        for {set i 0} {$i < 7} {incr i} {
            assert_equal OK [r -read]
        }
        wait_written
        set wanted "*2\r\n\$6\r\nSELECT\r\n\$1\r\n0\r\n"
        foreach key {a b c d e f} {
            append wanted "*3\r\n\$3\r\nSET\r\n\$1\r\n$key\r\n\$2\r\nxx\r\n"
        }
        append wanted "*3\r\n\$3\r\nset\r\n\$100\r\n[string repeat h 100]\r\n\$0\r\n\r\n"
        assert_equal $wanted [slurp $file]
        r flushall
    }

    test "effects are appended as replicas would get them" {} {
        rewrite
        set file [aof_folder]/[lindex [lsearch -inline [split [aof_manifest] "\n"] *.incr.*] 1]
        r set a 1
        r select 5
        r multi
        r incr b
        r rpush c 1 2
        r exec
        r get b
        r sadd d 1
        r spop d
        r publish channel message
        r set e 1 px 100000
        wait_written
        set commands [aof_commands $file]
        assert_equal {{SELECT 0} {set a 1} {SELECT 5} MULTI {incr b} {rpush c 1 2} EXEC {sadd d 1} {SREM d 1}} \
            [lrange $commands 0 8] $commands
        assert_match {set e 1 pxat *} [string tolower [lindex $commands 9]]
        assert_equal 10 [llength $commands]
    }

    test "commands that redis-server 7.0 lacks are appended in its words" {keydb} {
        rewrite
        set file [aof_folder]/[lindex [lsearch -inline [split [aof_manifest] "\n"] *.incr.*] 1]
        r select 5
        r del k
        set wanted {{SELECT 5}}
        foreach {command effects} {
            {increx k} {{INCRBY k 1}}
            {increx k byint -2 lbound -1 saturate} {{INCRBY k -2}}
            {increx k byint 2} {{INCRBY k 2}}
            {increx k ubound 1} {}
            {increx k pxat 4000000000000 byint 2} {{SET k 3 PXAT 4000000000000}}
            {increx k exat 4000000001 enx} {{INCRBY k 1}}
            {increx k byfloat 0.5} {{SET k 4.5 KEEPTTL}}
            {increx k byfloat 0.5 persist} {{SET k 5}}
            {increx k exat 1} {{UNLINK k}}
            {increx k exat 1} {}
            {increx k byint 9 ubound 7 saturate exat 4000000000} {{SET k 7 PXAT 4000000000000}}
            {bitop one d k} {{SET d 7}}
            {bitop diff d k none} {{SET d 7}}
            {bitop andor d none none} {{DEL d}}
            {bitop diff1 d none none} {}
        } {
            r {*}$command
            lappend wanted {*}$effects
        }
        # One that is no part of its key.
        r setrange k 9999 x
        r bitop one d k
        lappend wanted {setrange k 9999 x} [list SET d [r get k]]
        wait_written
        assert_equal $wanted [aof_commands $file]
        assert_equal [r debug digest] [oracle_digest]
    }

    test "redis-server loads what four workers write" {slow} {
        set clients [list [connect] [connect] [connect] [connect]]
        foreach client $clients seed {1 2 3 4} {
            write_everything $client $seed
        }
        wait_written
        assert_equal [r debug digest] [oracle_digest]
    }

    test "a rewrite while others write loses nothing, with and without RDB preamble" {slow} {
        foreach preamble {yes no} {
            r config set aof-use-rdb-preamble $preamble
            write_everything r before
            r set large [string repeat x 300000]
            r hpexpireat hash:1 4000000000000 fields 1 field:1
            r hpersist hash:1 fields 1 field:1
            r config set rdb-key-save-delay 300
            set rewrites [info_field aof_rewrites]
            assert_equal {Background append only file rewriting started} [r bgrewriteaof]
            assert_refused "ERR Background append only file rewriting already in progress" r bgrewriteaof
            assert_error "ERR Another child process is active (AOF?)*" {r bgsave}
            assert_equal 1 [info_field aof_rewrite_in_progress]
            assert_range [info_field aof_current_rewrite_time_sec] 0 100
            write_everything r meanwhile
            wait_for_rewrite
            r config set rdb-key-save-delay 0
            assert_equal ok [info_field aof_last_bgrewrite_status]
            assert_equal [expr {$rewrites + 1}] [info_field aof_rewrites]
            assert_range [info_field aof_last_rewrite_time_sec] 0 100
            wait_for {[llength [aof_files]] == 3}
            assert_match "*.base.[expr {$preamble ? "rdb" : "aof"}] seq*type b\n*.incr.aof seq * type i" [aof_manifest]
            wait_written
            assert_equal [r debug digest] [oracle_digest]
            r config set aof-use-rdb-preamble yes
        }
    }

    test "the history can be kept" {} {
        with_config {aof-disable-auto-gc yes} {
            set before [aof_files]
            rewrite
            foreach file $before {
                assert {$file in [aof_files]} $file
            }
            assert_match "*type h*type h*" [aof_manifest]
        }
        rewrite
        wait_for {[llength [aof_files]] == 3}
        assert {![string match "*type h*" [aof_manifest]]}
    }

    test "times are written down" {} {
        with_config {aof-timestamp-enabled yes} {
            rewrite
            r set a 1
            r set a 2
            wait_written
            set file [aof_folder]/[lindex [lsearch -inline [split [aof_manifest] "\n"] *.incr.*] 1]
            set commands [aof_commands $file]
            assert_range [string range [lindex $commands 0 0] 4 end] [expr {[clock seconds] - 100}] [clock seconds]
            assert_equal {SELECT 0} [lindex $commands 1]
        }
    }

    test "BGREWRITEAOF waits for a snapshot that is under way" {} {
        for {set i 0} {$i < 100} {incr i} {
            r set key:$i x
        }
        with_config {rdb-key-save-delay 20000} {
            r bgsave
            assert_equal {Background append only file rewriting scheduled} [r bgrewriteaof]
            assert_equal 1 [info_field aof_rewrite_scheduled]
        }
        set rewrites [info_field aof_rewrites]
        wait_for {[info_field aof_rewrites] > $rewrites} 30000
        wait_for_rewrite
        assert_equal ok [info_field aof_last_bgrewrite_status]
    }

    test "it is rewritten when it has grown" {} {
        with_config {auto-aof-rewrite-min-size 100kb auto-aof-rewrite-percentage 50} {
            rewrite
            set rewrites [info_field aof_rewrites]
            for {set i 0} {$i < 200} {incr i} {
                r set key [string repeat $i 1000]
            }
            # What is written during a rewrite may be enough for another one.
            wait_for {[info_field aof_rewrites] > $rewrites && [info_field aof_current_size] < 100000}
            wait_for_rewrite
        }
    }

    test "a rewrite that is killed changes nothing" {} {
        r set a 1
        set manifest [aof_manifest]
        for {set i 0} {$i < 100} {incr i} {
            r set key:$i x
        }
        with_config {rdb-key-save-delay 100000 snapshot-method fork} {
            r bgrewriteaof
            wait_for {[catch {exec pgrep -P [srv pid]} child] == 0}
            exec kill -9 $child
            wait_for_rewrite
        }
        assert_equal err [info_field aof_last_bgrewrite_status]
        assert_equal 1 [info_field aof_rewrites_consecutive_failures]
        assert_equal {} [glob -nocomplain -directory [aof_folder] temp-*]
        assert_match "*.base.rdb seq * type b\n*.incr.aof seq * type i\n*.incr.aof seq * type i" [aof_manifest]
        wait_written
        assert_equal [r debug digest] [oracle_digest]
        rewrite
        assert_equal 0 [info_field aof_rewrites_consecutive_failures]
    }

    test "a rewrite that has just ended when the file is switched off takes nothing away" {} {
        r set before 1
        # While a transaction sleeps nobody looks after the child, which is long done when the file is switched off.
        r -raw "BGREWRITEAOF\r\nSET after 1\r\nMULTI\r\nDEBUG SLEEP 1\r\nCONFIG SET appendonly no\r\nEXEC\r\n"
        for {set i 0} {$i < 6} {incr i} {
            r -read
        }
        wait_for {[info_field aof_rewrite_in_progress] == 0}
        set digest [r debug digest]
        assert_equal OK [r debug loadaof]
        assert_equal $digest [r debug digest]
        assert_equal 1 [r get after]
        assert_equal {} [glob -nocomplain -directory [aof_folder] temp-*]
        r config set appendonly yes
        wait_for_rewrite
        assert_equal ok [info_field aof_last_bgrewrite_status]
    }

    test "history goes as soon as it need not be kept any more" {} {
        with_config {aof-disable-auto-gc yes} {
            rewrite
            rewrite
            assert_match "*.base.rdb seq * type b\n*incr.aof seq * type h\n*base.rdb seq * type h\n*" [aof_manifest]
        }
        assert_match "file *.base.rdb seq * type b\nfile *.incr.aof seq * type i" [aof_manifest]
        assert_equal 3 [llength [aof_files]]
    }

    test "DEBUG LOADAOF finds everything, and writing goes on" {} {
        for {set i 0} {$i < 3} {incr i} {
            write_everything r $i
            set digest [r debug digest]
            assert_equal OK [r debug loadaof]
            assert_equal $digest [r debug digest]
        }
        wait_written
        assert_equal $digest [oracle_digest]
    }

    test "redis-server loads what newer commands came to" {keydb} {
        r flushall
        for {set i 0} {$i < 300} {incr i} {
            r zadd z $i $i
            r sadd s element:$i [expr {$i * 2}]
        }
        r zunionstore union 2 z s weights 0.1 0.7 aggregate count
        r zinterstore inter 2 z s weights inf 1 aggregate count
        r zinterstore z 2 z s aggregate count
        r geoadd places 1 1 a 2.5 2 b 3 1.5 c 40 40 far
        r geosearchstore inside places bypolygon 4 0 0 4 0 4 4 0 4
        r geosearchstore inside places bypolygon 3 0 0 4 0 4 4 storedist
        r geosearchstore places places bypolygon 3 0 0 4 0 4 4
        r geosearchstore places none bypolygon 3 0 0 4 0 4 4
        r set gone v
        r zinterstore gone 2 z none aggregate count
        r zinterstore gone 2 z none aggregate count
        foreach words {{left left count 3 obo} {left left count 3 bulk} {right left exactly 2 bulk}
                {right right count 20 obo} {left right count 20 bulk}} {
            r rpush from a {} 12 c d e
            r pexpireat from 4000000000000
            r lmovem from to {*}$words
            r lmovem to to {*}$words
            r rpush from last
            r lmovem from from {*}$words
            r blmovem from to2 right left 0
        }
        foreach {key words} {turned {left left count 5 obo} rotated {right left exactly 3 bulk}} {
            r rpush $key a b c
            r pexpireat $key 4000000000000
            r lmovem $key $key {*}$words
        }
        set c [connect]
        $c -send blmovem waits to left left 0 exactly 2 obo
        wait_for {[info_field blocked_clients clients] == 1}
        r rpush waits 1 2 3
        assert_equal {2 1} [$c -read]
        assert_equal {750 150 150 0} [list [r zcard union] [r zcard inter] [r zcard z] [r exists gone]]
        wait_written
        assert_equal [r debug digest] [oracle_digest]
    }

    test "WAITAOF" {} {
        r set a 1
        assert_equal {1 0} [r waitaof 1 0 0]
        assert_equal {1 0} [r waitaof 0 0 0]
        r set a 2
        assert_match {* 0} [r waitaof 1 1 1]
        assert_equal {1 0} [r waitaof 1 1 3000]
        assert_refused "ERR value is out of range, value must between 0 and 1" r waitaof 2 0 0
        assert_refused "ERR value is out of range, must be positive" r waitaof 0 -1 0
        assert_refused "ERR timeout is negative" r waitaof 0 0 -1
        assert_refused "ERR timeout is not an integer or out of range" r waitaof 0 0 x
        r multi
        r waitaof 1 1 0
        assert_match {{* 0}} [r exec]
    }

    test "a message is nothing to wait for" {} {
        r set a 1
        r publish channel message
        assert_equal {1 0} [r waitaof 1 0 0]
        wait_written
        r publish channel message
        wait_written
        r publish channel message
        rewrite
        r publish channel message
        assert_equal {1 0} [r waitaof 1 0 0]
        with_config {appendfsync always} {
            assert_equal 0 [r publish channel message]
            assert_equal OK [r set a 1]
            assert_equal 0 [r publish channel message]
        }
        r publish channel message ;# the last of it: the server ends all the same
    }

    test "WAITAOF and CLIENT UNBLOCK, and a client that leaves" {} {
        set other [connect]
        set id [$other client id]
        $other -send waitaof 0 1 0
        wait_for {[info_field blocked_clients] == 1}
        assert_equal 1 [r client unblock $id]
        assert_match {* 0} [$other -read]
        $other -send waitaof 0 1 0
        wait_for {[info_field blocked_clients] == 1}
        assert_equal 1 [r client unblock $id error]
        assert_error "UNBLOCKED*" {$other -read}
        $other -send waitaof 0 1 0
        wait_for {[info_field blocked_clients] == 1}
        $other -close
        wait_for {[info_field blocked_clients] == 0}
    }

    test "without syncs of its own WAITAOF asks for one" {} {
        with_config {appendfsync no} {
            r set a [expr {rand()}]
            assert_equal {1 0} [r waitaof 1 0 0]
        }
    }
}

with_server {enable-debug-command yes} {
    test "it is switched on and off while the server runs" {slow} {
        assert_equal 0 [info_field aof_enabled]
        assert_equal {} [info_fields aof_current_size]
        assert_refused "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled." r waitaof 1 0 0
        write_everything r before
        assert_equal OK [r config set appendonly yes]
        write_everything r meanwhile
        assert_equal 1 [info_field aof_enabled]
        wait_for_rewrite
        write_everything r after
        wait_written
        assert_equal "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i" \
            [aof_manifest]
        assert_equal [r debug digest] [oracle_digest]
        assert_equal OK [r config set appendonly no]
        set digest [r debug digest]
        r set not written
        assert_equal $digest [oracle_digest]
        r del list:1
        assert_equal OK [r config set appendonly yes]
        wait_for_rewrite
        r set now written
        wait_written
        assert_equal "file appendonly.aof.2.base.rdb seq 2 type b\nfile appendonly.aof.2.incr.aof seq 2 type i" \
            [aof_manifest]
        wait_for {[llength [aof_files]] == 3}
        assert_equal [r debug digest] [oracle_digest]
        r config set appendonly no
    }

    test "a rewrite without it leaves a base" {} {
        r config set appendonly no
        write_everything r 1
        rewrite
        assert_match "file appendonly.aof.*.base.rdb seq * type b" [aof_manifest]
        wait_for {[llength [aof_files]] == 2}
        assert_equal [r debug digest] [oracle_digest]
    }

    test "off and on again while the first rewrite runs" {} {
        r config set appendonly no
        for {set i 0} {$i < 100} {incr i} {
            r set key:$i x
        }
        with_config {rdb-key-save-delay 10000} {
            r config set appendonly yes
            assert_equal 1 [info_field aof_rewrite_in_progress]
            r config set appendonly no
            r config set appendonly yes
            r set a 1
        }
        wait_for_rewrite
        r set b 1
        wait_written
        assert_equal [r debug digest] [oracle_digest]
        r config set appendonly no
    }
}

test "a rewrite that has ended just before the server does is put in place" {noconn keydb} {
    set dir [fresh_dir]
    set port [free_port]
    set id [server_launch [list --port $port --dir $dir --save {} --server-threads 1 --enable-debug-command yes \
        --snapshot-method fork]]
    wait_for {![catch {set c [connect -port $port -tls 0]}]}
    foreach words {bgrewriteaof {debug sleep 0.5} {shutdown nosave}} {
        $c -send {*}$words
    }
    assert_equal 0 [process_wait $id]
    assert_match "*Background AOF rewrite finished successfully*" [process_log $id]
    assert_match "file appendonly.aof.1.base.rdb seq 1 type b*" \
        [slurp $dir/appendonlydir/appendonly.aof.manifest]
    $c -close
}

test "files that cannot be made keep the server from starting, or the option off" {noconn} {
    set dir [fresh_dir]
    spit $dir/appendonlydir "a file"
    set id [server_launch [list --port [free_port] --dir $dir --appendonly yes --save {}]]
    assert_equal 1 [process_wait $id]
    assert_match "*appendonlydir*The server does not start*" [process_log $id]
}

with_server {} {
    test "CONFIG SET appendonly yes says why not" {} {
        spit [srv dir]/appendonlydir "a file"
        assert_error "ERR CONFIG SET failed*Unable to turn on AOF. Check server logs." {r config set appendonly yes}
        assert_equal {appendonly no} [r config get appendonly]
        assert_equal 0 [info_field aof_enabled]
        file delete [srv dir]/appendonlydir
        assert_equal OK [r config set appendonly yes]
        wait_for_rewrite
        r set a 1
        assert_equal {1 0} [r waitaof 1 0 0]
    }
}

# How long it takes; a lower bound is certain, as a sync has been made to take that long.
proc takes_ms script {
    set start [clock milliseconds]
    uplevel 1 $script
    return [expr {[clock milliseconds] - $start}]
}

with_server {appendonly yes appendfsync always enable-debug-command yes} {
    test "with `always` a reply tells that it is on the disk" {slow} {
        set other [connect]
        assert_equal OK [r set a 1]
        assert_equal {1 0} [r waitaof 1 0 1]
        r config set aof-sync-delay 200000
        set start [clock milliseconds]
        r -send set a 2
        wait_for {[$other get a] == 2}
        assert {[clock milliseconds] - $start >= 200} "somebody has read what is not on the disk"
        assert_equal OK [r -read]
        assert {[takes_ms {$other incr b}] >= 200}
        assert {[takes_ms {
            $other -send multi
            $other -send set c 1
            $other -send exec
            for {set i 0} {$i < 3} {incr i} {
                $other -read
            }
        }] >= 200}
        assert {[takes_ms {$other eval {return redis.call('incr', KEYS[1])} 1 b}] >= 200}
    }

    test "with `always` messages, too, wait for what was done before" {slow} {
        r config set aof-sync-delay 200000
        set other [connect]
        $other subscribe channel
        set waiting [connect]
        $waiting -send blpop list 0
        wait_for {[info_field blocked_clients] == 1}
        set start [clock milliseconds]
        r -send multi
        r -send set a 1
        r -send publish channel hello
        r -send rpush list element
        r -send exec
        assert_equal {message channel hello} [$other -read]
        assert {[clock milliseconds] - $start >= 200}
        assert_equal {list element} [$waiting -read]
        assert {[clock milliseconds] - $start >= 200}
        for {set i 0} {$i < 5} {incr i} {
            r -read
        }
    }

    test "with `always` who sends without end is answered" {slow} {
        r config set aof-sync-delay 20000
        set writer [connect]
        set subscriber [connect]
        $subscriber subscribe channel
        set answered 0
        for {set i 0} {$answered < 500} {incr i} {
            $writer -send incr a
            r -send publish channel $i
            r -send set b $i
            if {$i >= 300} {
                assert_equal [incr answered] [$writer -read]
                assert_equal [list message channel [expr {$answered - 1}]] [$subscriber -read]
                r -read
                r -read
            }
        }
    }

    test "with `always` the last reply comes before the end" {} {
        r config set aof-sync-delay 50000
        set other [connect]
        $other -send set a [expr {rand()}]
        $other -send quit
        assert_equal OK [$other -read]
        assert_equal OK [$other -read]
        set other [connect]
        $other -send set a [string repeat x 100000]
        $other -send get a
        $other -send get a
        assert_equal OK [$other -read]
        assert_equal 100000 [string length [$other -read]]
        assert_equal 100000 [string length [$other -read]]
    }

    test "what is held is sent when `always` ends, or the file does" {} {
        foreach {name value} {appendfsync everysec appendonly no} {
            r config set aof-sync-delay 300000
            set others [list [connect] [connect] [connect] [connect]]
            foreach other $others {
                $other -send set a [expr {rand()}]
            }
            r config set $name $value aof-sync-delay 0
            foreach other $others {
                assert_equal OK [$other -read]
            }
            r config set appendonly yes appendfsync always
            wait_for_rewrite
        }
    }

    test "with `always` everything is in the files at once" {slow} {
        r config set aof-sync-delay 1000
        set clients [list [connect] [connect] [connect] [connect]]
        foreach client $clients seed {1 2 3 4} {
            write_everything $client $seed
        }
        set digest [r debug digest]
        assert_equal $digest [oracle_digest]
    }
}

# Body for each call of a kind that fails once while the server lives; up to the first that never comes.
with_server {appendonly yes enable-debug-command yes} {
    test "a rewrite asked for within a transaction has all of it or nothing" {slow} {
        r set n 0
        foreach words {bgrewriteaof {config set appendonly yes}} {
            if {$words ne "bgrewriteaof"} {
                r config set appendonly no
            }
            r multi
            r incr n
            r {*}$words
            r incr n
            assert_equal 3 [llength [r exec]]
            wait_for_rewrite
            assert_equal {1 0} [r waitaof 1 0 0]
            assert_equal [r debug digest] [oracle_digest]
        }
    }
}

proc with_each_fault {kind how options body} {
    for {set n 0} {$n < 60} {incr n} {
        set failed [catch {
            with_server [dict merge {appendonly yes enable-debug-command yes} $options] {
                with_fault $kind:$n:$how {
                    server_begin
                }
                uplevel 1 $body
                set log [slurp [srv log]]
            }
        } problem details]
        if {$failed && [dict get $details -errorcode] ne {SERVER START}} {
            return -options $details "$kind:$n: $problem"
        }
        if {!$failed && ![string match "*fault: *" $log]} {
            assert {$n > 3} "no fault has happened"
            return
        }
    }
    fail "there is no end of calls"
}

test "a sync that fails is healed by a rewrite, and nobody is told that it worked" {noconn slow} {
    with_each_fault sync eio {appendfsync everysec rdb-key-save-delay 2000000} {
        set client [connect]
        $client set a 1
        assert_equal {1 0} [$client waitaof 1 0 0]
        # Whatever failed: WAITAOF has waited until the files were good.
        if {[string match "*Fail to fsync*" [slurp [srv log]]]} {
            assert_match "*aof_last_write_status:ok*" [$client info persistence]
            assert_match "*aof_rewrites:1\r*" [$client info persistence]
        }
        assert_equal OK [$client set b 1]
        assert_equal {1 0} [$client waitaof 1 0 0]
        assert_equal [$client debug digest] [oracle_digest]
        $client -close
    }
}

proc log_count text {
    return [regexp -all -- $text [slurp [srv log]]]
}

# The rewrite itself works each time: what fails is the sync of what is written behind it.
with_server {appendonly yes appendfsync everysec enable-debug-command yes auto-aof-rewrite-percentage 0} {
    test "while syncs go on failing rewrites come more and more seldom, until one works again" {keydb} {
        set again {AOF syncs failed after each of 3 rewrites, will retry in 1 minutes}
        assert_equal OK [r set a 1]
        assert_equal {1 0} [r waitaof 1 0 0]
        set rewrites [info_field aof_rewrites persistence]
        r debug aof-sync-fail 1
        r set b 1
        wait_for {[log_count $again] == 1}
        assert_equal 3 [expr {[info_field aof_rewrites persistence] - $rewrites}]
        assert_equal 4 [log_count {Fail to fsync}]
        assert_equal err [info_field aof_last_write_status persistence]
        assert_error MISCONF* {r set c 1}
        # Nobody has to wait who asks for one; and once it works the next failure is healed at once.
        r debug aof-sync-fail 0
        r bgrewriteaof
        assert_equal {1 0} [r waitaof 1 0 0]
        wait_for {[info_field aof_last_write_status persistence] eq "ok"}
        assert_equal OK [r set c 1]
        assert_equal {1 0} [r waitaof 1 0 0]
        r debug aof-sync-fail 1
        r set d 1
        wait_for {[log_count $again] == 2}
        assert_equal 8 [log_count {Fail to fsync}]
        assert_equal 7 [expr {[info_field aof_rewrites persistence] - $rewrites}]
        r debug aof-sync-fail 0
        r bgrewriteaof
        assert_equal {1 0} [r waitaof 1 0 0]
    }
}

test "a write that fails is made good, and refuses writes meanwhile" {noconn slow} {
    with_each_fault write torn {appendfsync everysec} {
        set client [connect]
        $client set a 1
        assert_equal {1 0} [$client waitaof 1 0 0]
        wait_for {[string match "*aof_last_write_status:ok*" [$client info persistence]]}
        assert_equal OK [$client set b 1]
        assert_equal {1 0} [$client waitaof 1 0 0]
        assert_equal [$client debug digest] [oracle_digest]
        $client -close
    }
}
