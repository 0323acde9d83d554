# The server itself: what Redis has had since 8.0, and Valkey since 8.0, in COMMANDLOG, CLIENT, HELLO, CONFIG and INFO.

proc log_words {kind} {
    return [lmap entry [r commandlog get -1 $kind] {lindex $entry 3}]
}

# The log without what these commands add: only the wanted kinds are on while they run.
proc logged {kind option value script} {
    r commandlog reset $kind
    with_config [list $option $value] [list uplevel 1 $script]
    return [log_words $kind]
}

with_server {} {
    foreach ::proto {2 3} {
        test "COMMANDLOG: replies and errors, RESP$::proto" {keydb} {
            r hello $::proto
            set type "ERR type should be one of the following: slow, large-request, large-reply"
            set count "ERR count should be greater than or equal to -1"
            foreach kind {slow large-request large-reply LARGE-Reply} {
                assert_reply {status OK} r commandlog reset $kind
                assert_reply {int 0} r commandlog len $kind
                assert_reply {array {}} r commandlog get -1 $kind
                assert_reply {array {}} r commandlog get 0 $kind
                assert_refused $count r commandlog get -2 $kind
                assert_refused $count r commandlog get x $kind
                assert_refused $count r commandlog get 9223372036854775808 $kind
            }
            foreach words {{len fast} {reset {}} {get 1 all} {get -1 slowly}} {
                assert_refused $type r commandlog {*}$words
            }
            foreach {words name} {len commandlog|len {len slow x} commandlog|len reset commandlog|reset
                {reset slow x} commandlog|reset {get 1} commandlog|get {get 1 slow x} commandlog|get
                {help x} commandlog|help {} commandlog} {
                assert_refused "ERR wrong number of arguments for '$name' command" r commandlog {*}$words
            }
            assert_match "ERR unknown subcommand 'nonsense'*" [lindex [r -typed commandlog nonsense] 1]
            assert_match "COMMANDLOG <subcommand>*" [lindex [r commandlog help] 0]
            r hello 2
        }
    }

    test "a request is large by its bytes in the protocol" {keydb} {
        # *3 $3 SET $1 k $100 x...
        set request [list set k [string repeat x 100]]
        foreach {limit expected} {129 0 128 1 127 1} {
            r commandlog reset large-request
            r config set commandlog-request-larger-than $limit
            r {*}$request
            r config set commandlog-request-larger-than -1
            assert_equal $expected [llength [lsearch -all -index 0 [log_words large-request] set]] $limit
        }
        set entry [lindex [r commandlog get 1 large-request] 0]
        assert_equal [list 128 $request] [lrange $entry 2 3]
        assert_equal 6 [llength $entry]
        assert_range [lindex $entry 1] [expr {[clock seconds] - 60}] [clock seconds]
        assert_match *:* [lindex $entry 4]
        r config set commandlog-request-larger-than 1048576
    }

    test "a value of a megabyte is a large request, and a large reply" {keydb} {
        set other [connect]
        $other client setname somebody
        foreach kind {slow large-request large-reply} {
            r commandlog reset $kind
        }
        set value [string repeat x 1048576]
        $other set k $value
        assert_equal $value [$other get k]
        $other set k [string range $value 1 1000]
        $other get k
        set cut "[string repeat x 128]... (1048448 more bytes)"
        assert_equal [list [list set k $cut]] [log_words large-request]
        assert_equal {{get k}} [log_words large-reply]
        set entry [lindex [r commandlog get -1 large-reply] 0]
        assert_equal {1048588 somebody} [list [lindex $entry 2] [lindex $entry 5]]
        assert_equal 0 [r slowlog len]
        # Without the reply there is none.
        r commandlog reset large-reply
        r set k $value
        $other -send client reply off
        $other -send get k
        $other -send client reply on
        assert_equal OK [$other -read]
        assert_equal 0 [r commandlog len large-reply]
        $other -close
    }

    test "what EXEC runs is large, EXEC is not; a script is, what it runs is not" {keydb} {
        set value [string repeat x 300]
        set words [logged large-request commandlog-request-larger-than 250 {
            r multi
            r set k $value
            r get k
            r exec
            r eval {redis.call('set', 'k', string.rep('x', 300))} 1 k
            r eval {return redis.call('set', KEYS[1], ARGV[1])} 1 k $value
        }]
        assert_equal {eval set} [lmap args $words {lindex $args 0}]
        set words [logged large-reply commandlog-reply-larger-than 250 {
            r multi
            r get k
            r ping
            r exec
            r eval {redis.call('get', 'k')} 1 k
            r eval {return redis.call('get', 'k')} 1 k
        }]
        assert_equal {eval get} [lmap args $words {lindex $args 0}]
    }

    test "a client that waited: its request when it begins, its reply when it comes" {keydb} {
        r commandlog reset large-request
        r commandlog reset large-reply
        with_config {commandlog-request-larger-than 200 commandlog-reply-larger-than 200} {
            set key [string repeat k 200]
            set other [connect]
            $other -send blpop $key 0
            wait_for {[info_field blocked_clients clients] == 1}
            assert_equal blpop [lindex [log_words large-request] 0 0]
            r commandlog reset large-reply
            r rpush $key v
            assert_equal [list $key v] [$other -read]
            assert_equal blpop [lindex [log_words large-reply] 0 0]
            assert_equal {rpush blpop} [lmap args [log_words large-request] {lindex $args 0}]
            $other -close
        }
    }

    test "SLOWLOG is the command log's type slow" {keydb} {
        with_config {commandlog-execution-slower-than 0} {
            r ping
        }
        assert_equal [r slowlog get -1] [r commandlog get -1 slow]
        assert_equal [r slowlog len] [r commandlog len slow]
        assert {[r slowlog len] > 0}
        assert_equal OK [r commandlog reset slow]
        assert_equal {0 0} [list [r slowlog len] [r commandlog len slow]]
    }

    test "each type has its length, and its ids" {keydb} {
        r commandlog reset large-request
        with_config {commandlog-large-request-max-len 2 commandlog-request-larger-than 100} {
            foreach n {1 2 3 4} {
                r set k$n [string repeat x 100]
            }
            assert_equal {k4 k3} [lmap args [log_words large-request] {lindex $args 1}]
            lassign [r commandlog get -1 large-request] newest older
            assert_equal [lindex $newest 0] [expr {[lindex $older 0] + 1}]
            assert_equal [list $newest] [r commandlog get 1 large-request]
            r config set commandlog-large-request-max-len 1
            assert_equal [list $newest] [r commandlog get -1 large-request]
            r config set commandlog-large-reply-max-len 0
            assert_equal 1 [r commandlog len large-request]
            r config set commandlog-large-reply-max-len 128
        }
    }

    test "entries show as much as they are told to" {keydb} {
        with_config {slowlog-entry-max-argc 3 slowlog-entry-max-string-len 4 slowlog-log-slower-than 0} {
            r slowlog reset
            r mget abcd abcde
            r mget a b c
        }
        set words [log_words slow]
        assert {{mget abcd {abcd... (1 more bytes)}} in $words}
        assert {{mget a {... (2 more arguments)}} in $words}
        foreach {name value} {slowlog-entry-max-argc 0 slowlog-entry-max-string-len -1} {
            assert_match "ERR CONFIG SET failed*" [lindex [r -typed config set $name $value] 1]
        }
    }
}

# A client that knows to go to the master; what it is told there.
proc redirected {client args} {
    return [lindex [$client -typed {*}$args] 1]
}

with_server {.tls 0} {
    test "CLIENT CAPA: on a master nothing changes" {keydb} {
        set c [connect]
        assert_match "* capa=" [string trim [$c client info]]
        foreach words {nonsense {nonsense redirect} {REDIRECT redirect}} {
            assert_reply {status OK} $c client capa {*}$words
        }
        assert_match "* capa=r" [string trim [$c client info]]
        assert_refused "ERR wrong number of arguments for 'client|capa' command" r client capa
        assert_equal OK [$c set k v]
        assert_equal v [$c get k]
        # For others READONLY is about clusters.
        foreach name {readonly readwrite} {
            assert_refused "ERR This instance has cluster support disabled" r $name
            assert_reply {status OK} $c $name
        }
        $c readonly
        assert_match "* flags=r *" [$c client info]
        assert_equal RESET [$c reset]
        assert_match "* flags=N * capa=" [string trim [$c client info]]
        $c -close
    }

    test "CLIENT LIST: the field capa and its filters" {keydb} {
        set c [connect]
        $c client setname knows
        $c client capa redirect
        assert_match "*name=knows*" [r client list capa r]
        assert_equal 1 [llength [split [string trim [r client list capa r]] "\n"]]
        assert {[string first name=knows [r client list not-capa r]] < 0}
        assert {[string first name=knows [r client list capa {}]] >= 0}
        assert_equal {} [r client list not-capa {}]
        foreach letters {x rx} {
            assert_refused "ERR Unknown capa found in the provided filter: $letters" r client list capa $letters
            assert_refused "ERR Unknown capa found in the NOT-CAPA filter: $letters" r client kill not-capa $letters
        }
        assert_reply {int 1} r client kill capa r
        wait_for {[r client list capa r] eq {}}
        $c -close
    }

    test "CLIENT LIST: the fields of Redis 8 stand behind those of 7.4" {keydb} {
        set c [connect]
        set before [dict get [regsub -all {=(\S*)} [$c client info] { {\1} }] tot-cmds]
        $c ping
        $c multi
        $c ping
        $c exec
        set fields [regsub -all {=(\S*)} [string trim [$c client info]] { {\1} }]
        assert_equal [list resp lib-name lib-ver io-thread tot-net-in tot-net-out tot-cmds read-events \
            parse-batch-cmd-sum parse-batch-cnt capa] [lrange [dict keys $fields] end-10 end]
        assert_equal {5 5} [list [dict get $fields parse-batch-cmd-sum] [dict get $fields parse-batch-cnt]]
        assert_range [dict get $fields read-events] 5 6
        $c -raw [string repeat "PING\r\n" 8]
        for {set i 0} {$i < 8} {incr i} {
            $c -read
        }
        lassign [lmap name {sum cnt} {
            regexp "parse-batch-\[a-z-]*$name=(\\d+)" [$c client info] all number
            expr {$number}
        }] sum count
        assert {$sum == 14 && $count < 10} "eight that came together"
        # The first CLIENT INFO, PING, MULTI, EXEC and what it runs.
        assert_equal 5 [expr {[dict get $fields tot-cmds] - $before}]
        assert {[dict get $fields io-thread] < [dict get [r config get server-threads] server-threads] ||
            [dict get [r config get server-threads] server-threads] == 0}
        $c -close
    }

    test "a replica sends clients that know it to the master" {keydb} {
        set port [free_port]
        set c [connect]
        set other [connect]
        $c set k v
        $c client capa redirect
        r replicaof 127.0.0.1 $port
        set moved "REDIRECT 127.0.0.1:$port"
        foreach words {{get k} {set k w} {mget a b} {dbsize} {touch k} {lpush l x}} {
            assert_equal $moved [redirected $c {*}$words] $words
            assert_equal {error} [lindex [$c -typed {*}$words] 0]
        }
        assert_equal PONG [$c ping]
        assert_match *role:slave* [$c info replication]
        assert_equal v [$other get k]
        assert_match READONLY* [redirected $other set k w]
        # In a transaction: when it is queued, so EXEC fails.
        $c multi
        assert_equal $moved [redirected $c get k]
        assert_match EXECABORT* [redirected $c exec]
        # READONLY: reads are for this server, writes are not.
        assert_equal OK [$c readonly]
        assert_equal v [$c get k]
        assert_equal $moved [redirected $c set k w]
        $c multi
        $c get k
        assert_equal v [$c exec]
        assert_equal OK [$c readwrite]
        assert_equal $moved [redirected $c get k]
        # Rights come first; what is not a command is an error as ever.
        r acl setuser some on nopass ~a* +get +multi +exec
        set some [connect]
        $some client capa redirect
        $some auth some x
        assert_match NOPERM* [redirected $some get k]
        assert_equal $moved [redirected $some get a]
        assert_match "ERR unknown command*" [redirected $c nonsense]
        assert_match "ERR wrong number*" [redirected $c get]
        # What was queued before the role changed is for the master, too.
        r replicaof no one
        $c multi
        $c get k
        r replicaof 127.0.0.1 $port
        assert_equal $moved [redirected $c exec]
        assert_equal {ERR EXEC without MULTI} [redirected $c exec]
        # Another master, another address.
        r replicaof localhost 7
        assert_equal "REDIRECT localhost:7" [redirected $c get k]
        r replicaof no one
        assert_equal v [$c get k]
        $c -close
        $other -close
        $some -close
    }

    test "a client that waits when the server turns replica is sent to the master" {keydb} {
        set port [free_port]
        foreach name {knows reads ignores} words {{blpop l 0} {xread block 0 streams s $} {blpop l 0}} {
            set $name [connect]
            if {$name ne "ignores"} {
                [set $name] client capa redirect
            }
            if {$name eq "reads"} {
                [set $name] readonly
            }
            [set $name] -send {*}$words
        }
        wait_for {[info_field blocked_clients clients] == 3}
        r replicaof 127.0.0.1 $port
        assert_error "REDIRECT 127.0.0.1:$port" {$knows -read}
        assert_equal PONG [$knows ping]
        foreach c [list $reads $ignores] {
            assert_error UNBLOCKED* {$c -read}
            $c -close
        }
        r replicaof no one
        $knows -close
    }
}

with_server {active-replica yes .tls 0} {
    test "an active replica takes writes, and sends nobody away" {keydb} {
        r client capa redirect
        r replicaof 127.0.0.1 [free_port]
        assert_equal OK [r set k v]
        assert_equal v [r get k]
        r replicaof no one
    }
}

with_server {} {
    foreach ::proto {2 3} {
        test "HELLO says where the server is, if it was told, RESP$::proto" {keydb} {
            assert {![dict exists [r hello $::proto] availability_zone]}
            with_config {availability-zone "zone a"} {
                set answer [r hello $::proto]
                assert_equal "zone a" [dict get $answer availability_zone]
                assert_equal {modules availability_zone} [lrange [dict keys $answer] end-1 end]
                assert_equal "zone a" [info_field availability_zone server]
            }
            assert {![dict exists [r hello 2] availability_zone]}
        }
    }
}

# What the files that come with the newer servers set, beside what redis-server 7.0 has; some other value for each.
set newer_directives {
    aof-load-corrupt-tail-max-size 1048576  array-slice-size 8192  array-sparse-kmax 12  array-sparse-kmin 4
    backup-sealed-ttl 60  backupdirname elsewhere  cluster-compatibility-sample-ratio 1
    cluster-slot-migration-handoff-max-lag-bytes 2097152  cluster-slot-migration-sync-buffer-drain-timeout 60001
    cluster-slot-migration-write-pause-timeout 10001  cluster-slot-stats-enabled "cpu mem"  key-memory-histograms yes
    lookahead 32  repl-rdb-channel yes  replica-full-sync-buffer-limit 268435456  slowlog-entry-max-argc 16
    slowlog-entry-max-string-len 64  tls-auth-clients-user CN  vset-force-single-threaded-execution yes
    active-defrag-cycle-us 600  availability-zone az  cluster-announce-client-port 7  cluster-databases 2
    cluster-manual-failover-timeout 6000  cluster-slot-migration-log-max-len 7  commandlog-execution-slower-than 20000
    commandlog-large-reply-max-len 64  commandlog-large-request-max-len 64  commandlog-reply-larger-than 2000000
    commandlog-request-larger-than 2000000  commandlog-slow-execution-max-len 64  dual-channel-replication-enabled yes
    extended-redis-compatibility yes  hash-seed abc  hide-user-data-from-log no  import-mode no
    io-threads-do-reads yes  lua-enable-insecure-api yes  max-new-connections-per-cycle 20
    max-new-tls-connections-per-cycle 2  min-io-threads-avoid-copy-reply 8  min-string-size-avoid-copy-reply 20000
    min-string-size-avoid-copy-reply-threaded 70000  mptcp yes  prefetch-batch-max-size 32  primaryauth secret
    primaryuser some  rdb-version-check relaxed  rdma-bind 127.0.0.1  rdma-completion-vector 0  rdma-port 7
    rdma-rx-size 2097152  repl-mptcp yes  slot-migration-max-failover-repl-bytes -1  tls-auto-reload-interval 60
}

test "the directives of Redis 8's and Valkey 9's files: each as given, one warning for what has no effect" \
        {noconn keydb} {
    set text "# As in those files, aliases and all.\n"
    dict for {name value} $::newer_directives {
        append text "$name $value\n"
    }
    set port [free_port]
    set id [server_launch [list [spit [fresh_dir]/server.conf $text] --port $port --dir [fresh_dir] {*}[thread_args]]]
    wait_for {![process_alive $id] || ![catch {set c [connect -port $port -tls 0]}]}
    assert {[process_alive $id]} [process_log $id]
    dict for {name value} $::newer_directives {
        assert_equal [list $name $value] [$c config get $name]
    }
    assert_equal {masterauth secret masteruser some} \
        [concat [$c config get masterauth] [$c config get masteruser]]
    set log [process_log $id]
    foreach {value kept} {cpu cpu  {net cpu} {cpu net}  {mem net cpu} yes  {no mem} mem  {yes no} yes  no no} {
        $c config set cluster-slot-stats-enabled $value
        assert_equal [list cluster-slot-stats-enabled $kept] [$c config get cluster-slot-stats-enabled] $value
    }
    assert_refused "ERR CONFIG SET failed (possibly related to argument 'cluster-slot-stats-enabled') - argument(s)\
        must be one of the following: no, yes, cpu, net, mem" $c config set cluster-slot-stats-enabled x
    assert_refused "ERR CONFIG SET failed (possibly related to argument 'aof-load-corrupt-tail-max-size') - argument\
        couldn't be parsed into an integer" $c config set aof-load-corrupt-tail-max-size 1mb
    foreach {name count} {lookahead 1 hash-seed 1 rdma-port 1 backupdirname 1 tls-auto-reload-interval 0
        commandlog-reply-larger-than 0 slowlog-entry-max-argc 0 import-mode 0} {
        assert_equal $count [regexp -all "'$name' is accepted but has no effect" $log] $name
    }
    $c -close
    assert_equal 0 [process_stop $id]
}

with_server {enable-debug-command yes appendonly yes} {
    test "CLIENT IMPORT-SOURCE: words and errors" {keydb} {
        assert_reply {status OK} r client import-source off
        foreach word {on maybe} {
            assert_refused "ERR Server is not in import mode" r client import-source $word
        }
        foreach words {{} {on off}} {
            assert_refused "ERR wrong number of arguments for 'client|import-source' command" \
                r client import-source {*}$words
        }
        with_config {import-mode yes} {
            set c [connect]
            assert_reply {status OK} $c client import-source ON
            assert_match "* flags=I *" [$c client info]
            assert_reply {status OK} $c client import-source off
            assert_match "* flags=N *" [$c client info]
            assert_refused "ERR syntax error" r client import-source maybe
            $c client import-source on
            $c reset
            assert_match "* flags=N *" [$c client info]
            $c -close
        }
    }

    test "an import: for its source no key expires, for others it is absent, and none goes" {keydb} {
        set source [connect]
        with_config {import-mode yes} {
            $source client import-source on
            set expired [info_field expired_keys stats]
            r set short v px 20
            assert_equal OK [$source set past v pxat 1000]
            $source set late v
            assert_reply {int 1} $source expire late -1
            $source hset h f v g w
            assert_equal 1 [$source hpexpireat h 1000 fields 1 f]
            $source rpush l a b
            $source pexpireat l 1
            wait_for {[r get short] eq {}}
            # Longer than turns of active expiry are apart.
            pause 300
            foreach name {short past late l} {
                assert_equal {0 1} [list [r exists $name] [$source exists $name]] $name
            }
            assert_equal {v {} w} [list [$source hget h f] [r hget h f] [r hget h g]]
            assert_equal {a b} [$source lrange l 0 -1]
            assert_equal {v v} [list [$source get short] [$source get past]]
            assert_equal {h l late past short} [lsort [$source keys *]]
            assert_equal h [r keys *]
            assert_equal 1000 [$source pexpiretime past]
            assert_equal v [$source eval {return redis.call('get', 'past')} 1 past]
            $source multi
            $source get past
            assert_equal v [$source exec]
            # Files have them, and those that load a file keep them.
            r debug reload
            assert_equal v [$source get past]
            r debug loadaof
            assert_equal {v {a b} v} [list [$source get past] [$source lrange l 0 -1] [$source hget h f]]
            assert_equal $expired [info_field expired_keys stats]
            # A write of another client finds nothing.
            assert_equal 1 [r append past x]
            assert_equal {x -1} [list [$source get past] [$source pttl past]]
        }
        # All goes as ever; to the source, too.
        wait_for {[r dbsize] == 2}
        assert_equal {0 x} [list [$source exists late] [r get past]]
        assert_equal {g w} [r hgetall h]
        assert_equal {} [$source hget h f]
        r flushall
        $source -close
    }

    test "an import: nothing is evicted, and writes go on" {keydb} {
        with_config {import-mode yes maxmemory-policy allkeys-random maxmemory 1mb} {
            set evicted [info_field evicted_keys stats]
            foreach n {1 2 3 4 5 6 7 8} {
                assert_equal OK [r set k$n [string repeat x 100000]]
            }
            assert_equal {8 0} [list [r dbsize] [expr {[info_field evicted_keys stats] - $evicted}]]
            r config set import-mode no
            r get k1
            wait_for {[r dbsize] < 8}
            r config set import-mode yes
        }
        r flushall
    }
}

with_server {active-replica yes} {
    test "an active replica imports nothing" {keydb} {
        assert_refused "ERR CONFIG SET failed (possibly related to argument 'import-mode') - an active replica can't\
            import: its nodes decide together when keys expire" r config set import-mode yes
        assert_equal {import-mode no} [r config get import-mode]
        assert_refused "ERR Server is not in import mode" r client import-source on
    }
}

with_server {enable-debug-command yes hz 100} {
    test "INFO: who pauses what, and for how long" {keydb} {
        proc paused {} {
            return [lmap name {reason actions timeout_milliseconds} {info_field paused_$name clients}]
        }
        assert_equal {none none 0} [paused]
        r client pause 60000 write
        lassign [paused] reason actions left
        assert_equal {client_pause write} [list $reason $actions]
        assert_range $left 1 60000
        r client unpause
        assert_equal {none none 0} [paused]
        # One that is over, whoever has looked since.
        r client pause 30 write
        wait_for {[paused] eq {none none 0}}
    }

    test "INFO: what the slow log has counted" {keydb} {
        proc slow_sums {} {
            return [lmap name {commands_count commands_time_ms_sum commands_time_ms_max} {
                info_field slowlog_$name stats
            }]
        }
        # Only while it is on can a slow machine add to it.
        r config set slowlog-log-slower-than -1
        r slowlog reset
        r config resetstat
        assert_equal {0 0 0} [slow_sums]
        r config set slowlog-log-slower-than 20000
        r debug sleep 0.03
        r debug sleep 0.06
        r config set slowlog-log-slower-than -1
        lassign [slow_sums] count sum most
        assert_equal [r slowlog len] $count
        assert {$count >= 2 && $most >= 60 && $sum >= $most + 30} "sum $sum, most $most"
        r slowlog reset
        assert_equal [list $count $sum $most] [slow_sums]
        r config resetstat
        assert_equal {0 0 0} [slow_sums]
        r config set slowlog-log-slower-than 10000
    }

    test "INFO: what went by itself, and what somebody found" {keydb} {
        proc gone {} {
            return [lmap name {expired_keys expired_keys_active expired_subkeys expired_fields
                expired_subkeys_active} {info_field $name stats}]
        }
        r config resetstat
        r debug set-active-expire 0
        r set a v px 1
        r hset h f v g w
        r hpexpire h 1 fields 1 f
        wait_for {[r get a] eq {}}
        wait_for {[r hget h f] eq {}}
        assert_equal {1 0 1 1 0} [gone]
        r debug set-active-expire 1
        r set a v px 1
        r set b v px 1
        r hpexpire h 1 fields 1 g
        wait_for {[r dbsize] == 0}
        lassign [gone] keys active members fields active_members
        assert_equal $members $fields
        assert_equal {2 1} [list $active [expr {$keys - $active}]]
        assert_equal 1 $active_members
    }

    test "INFO: snapshots that failed, one after the other" {keydb} {
        set dir [dict get [r config get dir] dir]
        assert_equal 0 [info_field rdb_saves_consecutive_failures persistence]
        file mkdir $dir/[dict get [r config get dbfilename] dbfilename]
        foreach n {1 2} {
            r bgsave
            wait_for {[info_field rdb_saves_consecutive_failures persistence] == $n}
            assert_equal err [info_field rdb_last_bgsave_status persistence]
        }
        file delete -force $dir/[dict get [r config get dbfilename] dbfilename]
        r save
        assert_equal 0 [info_field rdb_saves_consecutive_failures persistence]
        assert_equal standalone [info_field server_mode server]
    }
}
