# CONFIG GET and CONFIG SET: patterns, several at once, all or nothing.

proc config_error {name text args} {
    assert_refused "ERR CONFIG SET failed (possibly related to argument '$name') - $text" r config set {*}$args
}

with_server {} {
    test "CONFIG GET of one, several and by pattern" {} {
        assert_equal {hz 10} [r config get hz]
        assert_equal {HZ 10} [r config get HZ]
        set found [r config get maxmemory maxmemory-policy nosuch]
        assert_equal {maxmemory 0 maxmemory-policy noeviction} [lsort -stride 2 $found]
        assert_equal {} [r config get nosuch]
        set found [r config get maxmemory*]
        foreach name {maxmemory maxmemory-policy maxmemory-samples} {
            assert {[dict exists $found $name]} $name
        }
        foreach name [dict keys $found] {
            assert_match maxmemory* $name
        }
        assert_equal [lsort [dict keys $found]] [lsort -unique [dict keys [r config get maxmemory* maxmemory \
            *memory-policy]]]
        assert {[dict size [r config get *]] > 50}
        assert_equal {hz} [dict keys [r config get h\[z\]]]
        assert_reply {array {{bulk hz} {bulk 10}}} r config get hz
        r hello 3
        assert_reply {map {{bulk hz} {bulk 10}}} r config get hz
    }

    test "CONFIG GET and SET know aliases" {} {
        with_config {replica-priority 100} {
            r config set slave-priority 77
            assert_equal {replica-priority 77} [r config get replica-priority]
            assert_equal {slave-priority 77} [r config get slave-priority]
            assert_equal {replica-priority 77 slave-priority 77} [lsort -stride 2 [r config get {*[ae]-priority}]]
        }
    }

    test "values come back as they are kept" {} {
        foreach {name value kept} {
            maxmemory 1gb 1073741824   maxmemory 1g 1000000000   maxmemory 100MB 104857600   maxmemory 5k 5000
            maxmemory 7 7
            maxmemory 0 0  maxmemory 100b 100  hz 50 50   hz 100000 500  hz 0 1  timeout 300 300  loglevel DEBUG debug
            maxmemory-policy ALLKEYS-LRU allkeys-lru
            maxmemory-samples 7 7  client-query-buffer-limit 2mb 2097152  proto-max-bulk-len 1mb 1048576
            lazyfree-lazy-user-del YES yes  maxmemory-clients 5% 5%  maxmemory-clients 1mb 1048576
            client-output-buffer-limit {normal 1mb 512kb 30} {normal 1048576 524288 30 slave 268435456 67108864 60\
                pubsub 33554432 8388608 60}
            client-output-buffer-limit {normal 0 0 0 replica 1 2 3} {normal 0 0 0 slave 1 2 3 pubsub 33554432 8388608\
                60}
            client-output-buffer-limit {} {normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60}
            tcp-keepalive 0 0  lfu-decay-time 0 0  lfu-log-factor 5 5  slowlog-log-slower-than -1 -1
            repl-backlog-size 1 16384  repl-backlog-size 16383 16384  repl-backlog-size 16385 16385
        } {
            set before [dict get [r config get $name] $name]
            assert_reply {status OK} r config set $name $value
            assert_equal $kept [dict get [r config get $name] $name] "$name $value"
            r config set $name $before
        }
    }

    test "several at once, all or nothing" {} {
        with_config {hz 10 maxmemory 0 timeout 0} {
            assert_reply {status OK} r config set hz 20 maxmemory 1mb TIMEOUT 7
            assert_equal {20 1048576 7} [list [dict get [r config get hz] hz] \
                [dict get [r config get maxmemory] maxmemory] \
                [dict get [r config get timeout] timeout]]
            config_error maxmemory "argument must be a memory value" hz 30 maxmemory 2zb timeout 8
            assert_refused "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'" r config set hz 30 \
                nosuch 1
            config_error hz "duplicate parameter" hz 30 timeout 8 hz 40
            config_error databases "can't set immutable config" hz 30 databases 4
            assert_equal {20 1048576 7} [list [dict get [r config get hz] hz] \
                [dict get [r config get maxmemory] maxmemory] \
                [dict get [r config get timeout] timeout]]
        }
    }

    test "refused values and their reasons" {} {
        foreach {name value text} {
            hz x "argument couldn't be parsed into an integer"
            maxmemory x "argument must be a memory value"
            maxmemory 10% "argument must be a memory value"
            maxmemory -1 "argument must be a memory value"
            maxmemory-clients 101% "percentage argument must be less or equal to 100"
            timeout -1 "argument must be between 0 and 2147483647 inclusive"
            tcp-keepalive 1x "argument couldn't be parsed into an integer"
            port 65536 "argument must be between 0 and 65535 inclusive"
            maxclients 0 "argument must be between 1 and 4294967295 inclusive"
            maxmemory-samples 0 "argument must be between 1 and 2147483647 inclusive"
            client-query-buffer-limit 1 "argument must be between 1048576 and 9223372036854775807 inclusive"
            lazyfree-lazy-user-del maybe "argument must be 'yes' or 'no'"
            lfu-decay-time x "argument couldn't be parsed into an integer"
            maxmemory-policy foo "argument(s) must be one of the following: volatile-lru, volatile-lfu,\
                volatile-random, volatile-ttl, volatile-lrm, allkeys-lru, allkeys-lfu, allkeys-random, allkeys-lrm,\
                noeviction"
            client-output-buffer-limit x "Wrong number of arguments in buffer limit configuration."
            client-output-buffer-limit {foo 1 2 3} "Invalid client class specified in buffer limit configuration."
            client-output-buffer-limit {normal 1 2 x} "Error in hard, soft or soft_seconds setting in buffer limit\
                configuration."
            bind nonsense.invalid "Failed to bind to specified addresses."
        } {
            config_error $name $text $name $value
        }
    }

    test "the words of an enumeration are listed" {} {
        set levels "debug, verbose, notice, warning[expr {$::is_oracle ? {} : {, nothing}}]"
        config_error loglevel "argument(s) must be one of the following: $levels" loglevel loud
    }

    test "immutable ones" {} {
        foreach {name value} {daemonize yes  databases 5  unixsocket /tmp/nowhere  tcp-backlog 100  supervised systemd
                always-show-logo yes  cluster-enabled yes  logfile x  pidfile x} {
            config_error $name "can't set immutable config" $name $value
        }
    }

    test "errors" {} {
        assert_refused "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'" r config set nosuch 1
        assert_refused "ERR Unknown option or number of arguments for CONFIG SET - '[string repeat x 50]'" \
            r config set [string repeat x 50] 1
        assert_refused "ERR syntax error" r config set hz 10 timeout
        assert_refused "ERR wrong number of arguments for 'config|set' command" r config set
        assert_refused "ERR wrong number of arguments for 'config|set' command" r config set hz
        assert_refused "ERR wrong number of arguments for 'config|get' command" r config get
        assert_refused "ERR unknown subcommand 'foo'. Try CONFIG HELP." r config foo
        assert_refused "ERR wrong number of arguments for 'config' command" r config
    }

    test "what is set has an effect at once" {} {
        with_config {proto-max-bulk-len 536870912} {
            r config set proto-max-bulk-len 1mb
            set c [connect]
            $c -raw "*2\r\n\$4\r\nECHO\r\n\$1048577\r\n"
            assert_equal "-ERR Protocol error: invalid bulk length" [$c -line]
            assert_reply [list bulk [string repeat x 1048576]] r echo [string repeat x 1048576]
        }
    }

    test "CONFIG RESETSTAT" {} {
        r get none
        catch {r nonsense}
        assert {[info_field keyspace_misses stats] > 0}
        assert_reply {status OK} r config resetstat
        set stats [info_fields stats]
        foreach field {keyspace_misses keyspace_hits expired_keys rejected_connections evicted_keys \
            total_error_replies} {
            assert_equal 0 [dict get $stats $field] $field
        }
        assert_range [dict get $stats total_commands_processed] 0 3
        assert_refused "ERR wrong number of arguments for 'config|resetstat' command" r config resetstat x
    }

    test "CONFIG HELP" {} {
        set help [r config help]
        assert_equal "CONFIG <subcommand> \[<arg> \[value\] \[opt\] ...\]. Subcommands are:" [lindex $help 0]
        foreach line {"GET <*" "SET <*" "REWRITE*" "RESETSTAT*"} {
            assert {[lsearch $help $line] >= 0} $line
        }
    }

    test "defaults" {} {
        foreach {name value} {
            timeout 0 tcp-keepalive 300 maxclients 10000 databases 16 hz 10 dynamic-hz yes maxmemory 0 \
                maxmemory-policy noeviction
            proto-max-bulk-len 536870912 client-query-buffer-limit 1073741824 protected-mode yes requirepass {} \
                unixsocket {}
            unixsocketperm 0 tcp-backlog 511 loglevel notice lfu-log-factor 10 lfu-decay-time 1 bind {* -::*}
            client-output-buffer-limit {normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60}
            enable-debug-command no tls-auth-clients yes tls-protocols {} daemonize no
            lazyfree-lazy-user-flush yes lazyfree-lazy-user-del yes lazyfree-lazy-expire yes
            lazyfree-lazy-server-del yes lazyfree-lazy-eviction yes
            shutdown-timeout 10 shutdown-on-sigterm default shutdown-on-sigint default set-proc-title yes
        } {
            assert_equal [list $name $value] [r config get $name]
        }
    }
}

with_server {hz 37 maxmemory 10mb client-output-buffer-limit "normal 1mb 0 0" loglevel verbose} {
    test "options of the command line arrive" {} {
        foreach {name value} {hz 37 maxmemory 10485760 loglevel verbose
                client-output-buffer-limit {normal 1048576 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608\
                    60}} {
            assert_equal [list $name $value] [r config get $name]
        }
    }
}
