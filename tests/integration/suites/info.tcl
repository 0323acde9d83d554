# INFO: which sections and fields there are, their form, and that the numbers move.

set info_forms {
    server {
        redis_version {^\d+\.\d+\.\d+$}  redis_git_sha1 {^[0-9a-f]{8}$}  redis_git_dirty {^\d+$}
        redis_build_id {^[0-9a-f]+$}
        redis_mode {^standalone$}  os {^Linux }  arch_bits {^64$}  monotonic_clock .
        multiplexing_api {^(epoll|io_uring)$}
        atomicvar_api .  gcc_version {^\d+\.\d+\.\d+$}  process_id {^\d+$}  process_supervised {^no$}
        run_id {^[0-9a-f]{40}$}
        tcp_port {^\d+$}  server_time_usec {^\d{16}$}  uptime_in_seconds {^\d+$}  uptime_in_days {^0$}  hz {^\d+$}
        configured_hz {^10$}  lru_clock {^\d+$}  executable {^/}  config_file {^$}
    }
    clients {
        connected_clients {^\d+$}  cluster_connections {^0$}  maxclients {^\d+$}  client_recent_max_input_buffer {^\d+$}
        client_recent_max_output_buffer {^\d+$}  blocked_clients {^0$}  tracking_clients {^0$}
        clients_in_timeout_table {^0$}
    }
    memory {
        used_memory {^\d+$}  used_memory_human {^[\d.]+[BKMG]$}  used_memory_rss {^\d+$}
        used_memory_rss_human {^[\d.]+[KMG]$}
        used_memory_peak {^\d+$}  used_memory_peak_human {^[\d.]+[BKMG]$}  used_memory_peak_perc {^[\d.]+%$}
        used_memory_overhead {^\d+$}  used_memory_startup {^\d+$}  used_memory_dataset {^\d+$}
        used_memory_dataset_perc {^[\d.]+%$}  allocator_allocated {^\d+$}  allocator_active {^\d+$}
        allocator_resident {^\d+$}
        total_system_memory {^\d+$}  total_system_memory_human {^[\d.]+[MG]$}  maxmemory {^0$}  maxmemory_human {^0B$}
        maxmemory_policy {^noeviction$}  allocator_frag_ratio {^[\d.]+$}  allocator_frag_bytes {^\d+$}
        allocator_rss_ratio {^[\d.]+$}  allocator_rss_bytes {^-?\d+$}  rss_overhead_ratio {^[\d.]+$}
        rss_overhead_bytes {^-?\d+$}  mem_fragmentation_ratio {^[\d.]+$}  mem_fragmentation_bytes {^-?\d+$}
        mem_clients_normal {^\d+$}  mem_allocator {^(jemalloc-\d|libc$)}  lazyfree_pending_objects {^\d+$}
        lazyfreed_objects {^\d+$}
    }
    stats {
        total_connections_received {^\d+$}  total_commands_processed {^\d+$}  instantaneous_ops_per_sec {^\d+$}
        total_net_input_bytes {^\d+$}  total_net_output_bytes {^\d+$}  instantaneous_input_kbps {^\d+\.\d\d$}
        instantaneous_output_kbps {^\d+\.\d\d$}  rejected_connections {^\d+$}  expired_keys {^\d+$}
        expired_stale_perc {^\d+\.\d\d$}  expired_time_cap_reached_count {^\d+$}  evicted_keys {^\d+$}
        keyspace_hits {^\d+$}
        keyspace_misses {^\d+$}  pubsub_channels {^0$}  pubsub_patterns {^0$}  latest_fork_usec {^\d+$}
        total_error_replies {^\d+$}  unexpected_error_replies {^0$}
        total_reads_processed {^\d+$}  total_writes_processed {^\d+$}
    }
    cpu {
        used_cpu_sys {^\d+\.\d{6}$}  used_cpu_user {^\d+\.\d{6}$}  used_cpu_sys_children {^\d+\.\d{6}$}
        used_cpu_user_children {^\d+\.\d{6}$}
    }
}

proc cpu_seconds pid {
    set words [split [lindex [split [slurp /proc/$pid/stat] ")"] end]]
    return [expr {([lindex $words 12] + [lindex $words 13]) / double([exec getconf CLK_TCK])}]
}

# A line "NAME: N kB" of a file in /proc.
proc proc_kilobytes {pid file name} {
    regexp "$name:\\s+(\\d+) kB" [slurp [file join /proc $pid $file]] -> kilobytes
    return $kilobytes
}

proc srv_started pid {
    return [file mtime /proc/$pid]
}

proc section_order {all one two} {
    return [expr {[lsearch $all $one] - [lsearch $all $two]}]
}

with_server {} {
    foreach {section forms} $info_forms {
        test "INFO $section has its fields" {} [string map [list @section $section @forms [list $forms]] {
            set fields [info_fields @section]
            set wrong {}
            foreach {name form} @forms {
                if {![dict exists $fields $name]} {
                    lappend wrong "$name is missing"
                } elseif {![regexp $form [dict get $fields $name]]} {
                    lappend wrong "$name is \"[dict get $fields $name]\", not like $form"
                }
            }
            if {$wrong ne {}} {
                fail [join $wrong ", "]
            }
        }]
    }

    test "since when memory has its peak" {keydb} {
        assert_range [info_field used_memory_peak_time memory] [expr {[srv_started [srv pid]] - 1}] [clock seconds]
        set before [info_field used_memory_peak_time memory]
        r config resetstat
        r set peak [string repeat x 20000000]
        set at [info_field used_memory_peak_time memory]
        assert_range $at $before [clock seconds]
        r del peak
        wait_for {[clock seconds] > $at}
        assert_equal $at [info_field used_memory_peak_time memory]
    }

    test "workers, as threads of Redis, and the time of the main thread" {keydb} {
        set reads 0
        dict for {name line} [info_fields threads] {
            assert {[regexp {^clients=\d+,reads=(\d+),writes=\d+$} $line all number]} "$name $line"
            incr reads $number
        }
        assert_equal [llength [dict keys [info_fields clients] thread_*_clients]] \
            [llength [dict keys [info_fields threads]]]
        assert_range [info_field total_reads_processed stats] $reads [expr {$reads + 5}]
        assert_range [info_field used_active_time_main_thread cpu] 0 [info_field eventloop_duration_sum stats]
    }

    test "the form of the text" {} {
        foreach {section title} {server Server clients Clients memory Memory stats Stats cpu CPU keyspace Keyspace} {
            set text [r info $section]
            assert_match "# $title\r\n*" $text
            assert {[string range $text end-1 end] eq "\r\n"}
            assert_equal {} [lsearch -all -inline -not -regexp [lrange [split [string trimright $text] "\n"] 1 end] \
                {^[a-zA-Z_0-9]+:.*\r?$}]
        }
        assert_equal "# Keyspace\r\n" [r info keyspace]
        assert_equal "" [r info nosuch]
        assert_match "# Server\r\n*\r\n\r\n# Clients\r\n*" [r info server clients]
        assert_match "# Server\r\n*\r\n\r\n# Clients\r\n*" [r info CLIENTS server nosuch server]
    }

    test "sections by default, all, everything" {} {
        foreach words {{} default all everything} {
            set titles [lmap line [lsearch -all -inline [split [r info {*}$words] "\n"] "# *"] \
                {string trim $line "# \r"}]
            set at -1
            foreach title {Server Clients Memory Stats CPU Keyspace} {
                set next [lsearch $titles $title]
                assert {$next > $at} "$words: $title"
                set at $next
            }
        }
    }

    test "numbers follow what happens" {} {
        assert_equal [srv pid] [info_field process_id server]
        assert_equal [srv port] [info_field tcp_port server]
        assert_equal [file normalize $::settings(server)] [file normalize [info_field executable server]]
        r config resetstat
        set before [info_fields stats]
        r set k v
        r get k
        r get none
        catch {r nonsense}
        catch {r incr k}
        set after [info_fields stats]
        assert_equal 1 [expr {[dict get $after keyspace_hits] - [dict get $before keyspace_hits]}]
        assert_equal 1 [expr {[dict get $after keyspace_misses] - [dict get $before keyspace_misses]}]
        assert_equal 2 [expr {[dict get $after total_error_replies] - [dict get $before total_error_replies]}]
        assert_range [expr {[dict get $after total_commands_processed] - [dict get $before total_commands_processed]}] \
            4 6
        assert {[dict get $after total_net_input_bytes] > [dict get $before total_net_input_bytes]}
        assert {[dict get $after total_net_output_bytes] > [dict get $before total_net_output_bytes]}
    }

    test "the keyspace section" {} {
        r mset a 1 b 2 c 3
        r expire a 1000
        r select 9
        r set k v
        assert_match "keys=3,expires=1,avg_ttl=*" [info_field db0 keyspace]
        assert_match "keys=1,expires=0,avg_ttl=0*" [info_field db9 keyspace]
        assert_equal 2 [dict size [info_fields keyspace]]
        r flushall
        assert_equal 0 [dict size [info_fields keyspace]]
    }

    test "memory grows with the data and is given back" {} {
        set before [info_field used_memory memory]
        for {set i 0} {$i < 50} {incr i} {
            r set k$i [string repeat x 100000]
        }
        set full [info_fields memory]
        assert_range [expr {[dict get $full used_memory] - $before}] 4900000 9000000
        assert {[dict get $full used_memory_peak] >= [dict get $full used_memory]}
        assert {[dict get $full used_memory_dataset] > 4000000}
        r flushall
        wait_for {[info_field used_memory memory] < $before + 1000000}
        assert {[info_field used_memory_peak memory] >= [dict get $full used_memory]}
    }

    test "errors are counted by their kind" {} {
        if {![string match "# Errorstats*" [r info errorstats]]} {
            skip "this server has no section errorstats"
        }
        r config resetstat
        catch {r nonsense}
        catch {r hello 9}
        catch {r get}
        set fields [info_fields errorstats]
        assert_equal {count=2 count=1} [list [dict get $fields errorstat_ERR] [dict get $fields errorstat_NOPROTO]]
    }

    test "a protocol error counts as an error" {} {
        r config resetstat
        set other [connect]
        $other -raw "*1\r\n\$-5\r\n"
        assert {[$other -closed]}
        assert_equal count=1 [info_field errorstat_ERR errorstats]
        assert_equal 1 [info_field total_error_replies stats]
    }

    test "errors are told in the order of their codes" {} {
        r config resetstat
        r set k v
        catch {r hello 9}
        catch {r auth a b}
        catch {r exec x}
        catch {r nonsense}
        assert_equal {errorstat_ERR errorstat_EXECABORT errorstat_NOPROTO errorstat_WRONGPASS} \
            [dict keys [info_fields errorstats]]
    }

    test "figures agree with what the system says of the process" {} {
        set pid [srv pid]
        set before [cpu_seconds $pid]
        set cpu [info_fields cpu]
        set used [expr {[dict get $cpu used_cpu_sys] + [dict get $cpu used_cpu_user]}]
        set main [expr {[dict get $cpu used_cpu_sys_main_thread] + [dict get $cpu used_cpu_user_main_thread]}]
        assert_range $used [expr {$before - 0.05}] [expr {[cpu_seconds $pid] + 0.05}]
        assert {$main <= $used + 0.05}
        set resident [proc_kilobytes $pid status VmRSS]
        assert_range [info_field used_memory_rss memory] [expr {$resident * 900}] [expr {$resident * 1100 + 1000000}]
        assert_equal [expr {[proc_kilobytes {} meminfo MemTotal] * 1024}] [info_field total_system_memory memory]
        assert_range [info_field uptime_in_seconds server] 0 [expr {[clock seconds] - [srv_started $pid] + 1}]
        set server_s [expr {[info_field server_time_usec server] / 1000000}]
        assert_range $server_s [expr {[clock seconds] - 2}] [clock seconds]
    }

    test "keydb: what each worker does" {keydb} {
        r config resetstat
        set clients [lmap i [lrepeat 8 x] {connect}]
        foreach client $clients {
            $client ping
            catch {$client nonsense}
        }
        set fields [info_fields keydb stats clients]
        set sums [dict create clients 0 commands 0 errors 0 input_bytes 0 output_bytes 0]
        for {set i 0} {$i < $::settings(threads)} {incr i} {
            foreach part [split [dict get $fields worker$i] ,] {
                lassign [split $part =] name value
                dict incr sums $name $value
            }
        }
        assert_equal 8 [dict get $sums errors]
        assert_equal [dict get $fields connected_clients] [dict get $sums clients]
        assert_range [dict get $sums commands] 16 [dict get $fields total_commands_processed]
        assert_range [dict get $sums input_bytes] 200 [dict get $fields total_net_input_bytes]
        assert_equal 0 [dict get $fields mvcc_depth]
    }

    test "changes since the last save" {} {
        foreach {changes command} {
            1 {set k v}  0 {get k}  0 {set k v nx}  1 {append k x}  2 {mset a 1 b 2}  2 {del a b none}
            0 {expire none 1}  1 {expire k 100}
            1 {persist k}  0 {persist k}  1 {incr n}  1 {copy k k2}  1 {swapdb 0 1}  2 {flushall}
            0 {flushall}  0 {setrange none 0 {}}
        } {
            if {$command eq "flushall" && $changes == 2} {
                r flushall
                r mset x 1 y 2
            }
            set before [info_field rdb_changes_since_last_save persistence]
            r {*}$command
            assert_equal $changes [expr {[info_field rdb_changes_since_last_save persistence] - $before}] $command
        }
        set before [info_field rdb_changes_since_last_save persistence]
        r multi
        r set k v
        r mset a 1 b 2
        r get k
        r exec
        assert_equal 3 [expr {[info_field rdb_changes_since_last_save persistence] - $before}]
    }

    test "the largest buffers of the last seconds" {slow keydb} {
        set other [connect]
        $other -raw "*2\r\n\$4\r\nECHO\r\n\$31000\r\n[string repeat x 20000]"
        wait_for {
            [$other -raw xx] eq {} && [info_field client_recent_max_input_buffer clients] >= 20000
        }
        $other -close
        assert {[info_field client_recent_max_input_buffer clients] >= 20000}
        wait_for {[info_field client_recent_max_input_buffer clients] < 20000}
    }

    test "refused passwords are counted" {keydb} {
        r config resetstat
        catch {r auth nobody x}
        catch {r hello 3 auth nobody x}
        assert_equal 2 [info_field acl_access_denied_auth stats]
        r config resetstat
        assert_equal 0 [info_field acl_access_denied_auth stats]
    }

    test "the listeners" {keydb} {
        set binds [join [lmap address [lindex [r config get bind] 1] {string cat ,bind= $address}] {}]
        set number [expr {$::settings(tls) ? 2 : 0}]
        set port [expr {$::settings(tls) ? [srv tls_port] : [srv port]}]
        assert_equal "name=[lindex {tcp - tls} $number]$binds,port=$port" [info_field listener$number server]
    }

    test "the names of sections" {} {
        set titles {{words} {
            lmap line [lsearch -all -inline [split [r info {*}$words] "\n"] "# *"] {string trim $line "# \r"}
        }}
        set usual {Server Clients Memory Persistence Stats Replication CPU Modules Errorstats Cluster Keyspace}
        set all [list {*}[lrange $usual 0 7] Commandstats Errorstats Latencystats Cluster Keyspace]
        if {!$::is_oracle} {
            foreach list {usual all} {
                set $list [concat [linsert [set $list] 4 Threads] {TLS KeyDB}]
            }
        }
        foreach {words expected} [list {} $usual default $usual DEFAULT $usual all $all {cpu all} $all everything $all \
                {all default} $all modules Modules module_list Modules {cpu server nosuch CPU} {Server CPU} \
                {default commandstats} [lsort -command [list section_order $all] [concat $usual Commandstats]] \
                {""} {}] {
            assert_equal $expected [apply $titles $words] $words
        }
    }

    test "threads" {keydb} {
        assert_equal $::settings(threads) [info_field server_threads cpu]
        set fields [info_fields clients]
        set sum 0
        for {set i 0} {$i < $::settings(threads)} {incr i} {
            incr sum [dict get $fields thread_${i}_clients]
        }
        assert_equal [dict get $fields connected_clients] $sum
    }
}

with_server {latency-tracking yes} {
    test "a colon in the name of a command ends no name of a field" {keydb} {
        foreach name {host: post} {
            set c [connect]
            $c -send $name x
            assert {[$c -closed]}
            $c -close
        }
        foreach {section before} {commandstats cmdstat_ latencystats latency_percentiles_usec_} {
            set fields [info_fields $section]
            foreach name {host_ post} {
                assert {[dict exists $fields $before$name]} "$before$name in $fields"
                assert_match {[a-z]*=*} [dict get $fields $before$name]
            }
        }
    }
}

# What was fetched ahead for commands that came together: {times keys}.
proc prefetched script {
    r config resetstat
    uplevel 1 $script
    set fields [info_fields stats]
    return [list [dict get $fields io_threaded_total_prefetch_batches] \
        [dict get $fields io_threaded_total_prefetch_entries]]
}

with_server {} {
    test "prefetch-enabled is about keys of commands that come together" {keydb} {
        set eight {
            r -raw [string repeat "*2\r\n\$3\r\nGET\r\n\$1\r\nk\r\n" 8]
            for {set i 0} {$i < 8} {incr i} {
                assert_equal 0 [r -read]
            }
        }
        r set k 0
        assert_equal {1 8} [prefetched $eight]
        assert_equal {1 3} [prefetched {r mget a b c}]
        assert_equal {0 0} [prefetched {r get k}]
        with_config {prefetch-enabled no} {
            assert_equal {0 0} [prefetched $eight]
            assert_equal {0 0} [prefetched {r mget a b c}]
        }
        assert_equal {1 8} [prefetched $eight]
    }
}

with_server {enable-debug-command local} {
    test "what turns of the loops take" {keydb} {
        set names {eventloop_cycles eventloop_duration_sum eventloop_duration_cmd_sum
            instantaneous_eventloop_cycles_per_sec instantaneous_eventloop_duration_usec}
        set debug_names {eventloop_duration_aof_sum eventloop_duration_cron_sum eventloop_duration_max
            eventloop_cmd_per_cycle_max}
        set c [connect]
        $c debug sleep 0.05
        $c -raw [string repeat "PING\r\n" 40]
        for {set i 0} {$i < 40} {incr i} {
            assert_equal +PONG [$c -line]
        }
        wait_for {[info_field eventloop_duration_max debug] >= 50000}
        assert_equal [list {*}$debug_names] [dict keys [info_fields debug]]
        set fields [info_fields stats]
        foreach name $names {
            assert_match {[0-9]*} [dict get $fields $name]
        }
        assert {[dict get $fields eventloop_duration_cmd_sum] >= 50000}
        assert {[dict get $fields eventloop_duration_sum] >= 50000}
        wait_for {[info_field instantaneous_eventloop_duration_usec stats] > 0}
        assert {[info_field eventloop_cmd_per_cycle_max debug] >= 40}
        wait_for {[info_field eventloop_duration_cron_sum debug] > 0}
        assert_equal 0 [info_field eventloop_duration_aof_sum debug]
        foreach words {{} all everything default} {
            assert {![string match *eventloop_duration_max* [r info {*}$words]]} $words
        }
        # What was is forgotten; the turn that forgets it counts.
        $c -close
        r config resetstat
        assert_range [info_field eventloop_cmd_per_cycle_max debug] 0 39
        assert {[info_field eventloop_duration_cmd_sum stats] < [dict get $fields eventloop_duration_cmd_sum]}
    }
}

with_server {appendonly yes} {
    test "what the append-only file takes of the turns" {keydb} {
        wait_for {[r set k v] eq "OK" && [info_field eventloop_duration_aof_sum debug] > 0}
    }
}

with_server {.tls 1 unixsocket s tls-auth-clients no} {
    test "each listener has a line, as Redis 7.2 prints it" {keydb} {
        set listeners {{} {dict filter [info_fields server] key listener*}}
        set lines {{port tls_port binds} {
            list listener0 name=tcp$binds,port=$port listener1 name=unix,bind=s listener2 name=tls$binds,port=$tls_port
        }}
        assert_equal [apply $lines [srv port] [srv tls_port] ",bind=*,bind=-::*"] [apply $listeners]
        assert_match *config_file:*\nlistener0:*io_threads_active:* [r info server]
        r config set bind "127.0.0.1 -::1" port [set port [free_port]] tls-port [set tls_port [free_port]]
        assert_equal [apply $lines $port $tls_port ,bind=127.0.0.1,bind=-::1] [apply $listeners]
        r config set bind 127.0.0.1 tls-port 0
        assert_equal [lrange [apply $lines $port 0 ,bind=127.0.0.1] 0 3] [apply $listeners]
        r config set port 0
        assert_equal {listener1 name=unix,bind=s} [apply $listeners]
        r config set port [srv port] tls-port [srv tls_port]
    }
}

# The names of data/info_fields.tsv that INFO prints in these states, as "section field", in order. A section has a line
# even if nothing stands in it.
proc info_names_expected states {
    set names {}
    foreach line [split [slurp $::lib_dir/../data/info_fields.tsv] "\n"] {
        if {$line eq {} || [string index $line 0] eq "#"} {
            continue
        }
        lassign [split $line "\t"] section name redis when
        if {($redis eq "redis" || !$::is_oracle) && ($when eq "-" || $when in $states)} {
            lappend names [list $section $name]
        }
    }
    return $names
}

# The same from the text that INFO printed.
proc info_names_printed text {
    set forms {{^listener\d+$} listener<n> {^thread_\d+_clients$} thread_<n>_clients
        {^io_thread_\d+$} io_thread_<n> {^worker\d+$} worker<n>
        {^db\d+$} db<n> {^cmdstat_.*} cmdstat_<command> {^errorstat_.*} errorstat_<code>
        {^latency_percentiles_usec_.*} latency_percentiles_usec_<command>}
    set names {}
    foreach line [split $text "\n"] {
        if {[regexp {^# (.*)\r$} $line -> section] || ![regexp {^([^:]+):} $line -> name]} {
            continue
        }
        foreach {form pattern} $forms {
            regsub $form $name $pattern name
        }
        if {[lindex $names end] ne [list $section $name]} {
            lappend names [list $section $name]
        }
    }
    return $names
}

# Says where two lists of names part.
proc assert_same_names {expected printed} {
    foreach one $expected other $printed {
        if {$one ne $other} {
            fail "\"$one\" was expected, \"$other\" was printed"
        }
    }
}

with_server {.tls 0 appendonly yes latency-tracking yes} {
    test "the names of all fields, and their order" {} {
        r set k v
        catch {r nonsense}
        assert_same_names [info_names_expected aof] [info_names_printed [r info everything debug]]
        r config set appendonly no
        assert_same_names [lsearch -inline -all -not [info_names_expected {}] "Debug *"] \
            [info_names_printed [r info everything]]
    }
}

with_server [list .tls 1 latency-tracking yes tls-client-cert-file [cert client.crt] \
    tls-client-key-file [cert client.key]] {
    test "the names of fields about certificates, and their order" {keydb} {
        r set k v
        catch {r nonsense}
        assert_same_names [info_names_expected tls] [info_names_printed [r info everything debug]]
    }
}

test "the names of fields while data is loaded, and their order" {keydb} {
    lassign [server_launch_loading] id s
    assert_same_names [lsearch -inline -all [info_names_expected loading] "Persistence *"] \
        [info_names_printed [$s info persistence]]
    process_signal $id KILL
    process_wait $id
}

with_server {.tls 0 active-replica yes} {
    test "the names of fields about the group of an active node, and their order" {keydb} {
        assert_same_names [lsearch -inline -all [info_names_expected active] "Replication *"] \
            [info_names_printed [r info replication]]
    }
}
