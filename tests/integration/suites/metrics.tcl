# metrics-port: figures for Prometheus, probes, the status page; who asks too much, too slowly or without the token; the
# port, its address, token and TLS at runtime.

if {[catch {exec ldd $settings(server)} libraries] || ![string match *libmicrohttpd* $libraries]} {
    test "metrics" {noconn} {
        skip "the server was built without libmicrohttpd"
    }
    return
}

namespace eval http {
    variable text
    variable ended
}

# Sends the bytes and returns all that comes until the server closes; "" if it just closes.
proc http_raw {port bytes {tls 0}} {
    set chan [socket 127.0.0.1 $port]
    if {$tls} {
        tls::import $chan -request 1 -require 0 -cafile [cert ca.crt]
    }
    set http::text($chan) {}
    set http::ended($chan) 0
    chan configure $chan -translation binary -blocking 0 -buffering none
    chan event $chan readable [list http_read $chan]
    catch {puts -nonewline $chan $bytes}
    set late [after 20000 [list set http::ended($chan) late]]
    vwait http::ended($chan)
    after cancel $late
    catch {close $chan}
    if {$http::ended($chan) eq "late"} {
        fail "no end of the answer in 20 s"
    }
    return $http::text($chan)
}

proc http_read chan {
    if {[catch {append http::text($chan) [read $chan]}] || [eof $chan]} {
        chan event $chan readable {}
        set http::ended($chan) 1
    }
}

# {status headers body}
proc http_split text {
    set end [string first "\r\n\r\n" $text]
    regexp {^HTTP/1\.1 (\d+)} $text - status
    return [list $status [string range $text 0 $end-1] [string range $text $end+4 end]]
}

proc http_get {path {headers {}} {method GET} {tls 0}} {
    set lines [join [list "$method $path HTTP/1.1" "Host: here" {*}$headers] \r\n]
    return [http_split [http_raw $::metrics_port $lines\r\n\r\n $tls]]
}

proc http_status args {
    return [lindex [http_get {*}$args] 0]
}

proc scrape {} {
    lassign [http_get /metrics] status headers body
    assert_equal 200 $status
    return $body
}

# The value of a sample as it is written, with its labels; "" if it is not there.
proc sample {name {body {}}} {
    if {$body eq {}} {
        set body [scrape]
    }
    foreach line [split $body \n] {
        if {[string first "$name " $line] == 0} {
            return [string range $line [string length $name]+1 end]
        }
    }
    return {}
}

# Every line is of the format, each metric is in one piece behind its HELP and TYPE, no sample comes twice.
proc check_exposition body {
    assert_equal \n [string index $body end]
    set seen {}
    set samples {}
    set family {}
    foreach line [split [string range $body 0 end-1] \n] {
        if {[regexp {^# HELP ([a-z_]+) (\S.*)$} $line - name]} {
            assert {![dict exists $seen $name]} "$name comes twice"
            dict set seen $name {}
            set family $name
        } elseif {[regexp {^# TYPE ([a-z_]+) (gauge|counter|summary|histogram)$} $line - name type]} {
            assert_equal $family $name
            dict set seen $name $type
        } else {
            set label {[a-z_]+="(?:[^"\\]|\\["\\n])*"}
            set form "^(\[a-z_\]+)((?:\\{$label\(?:,$label\)*\\})?) (-?\[0-9.e+-\]+)$"
            assert {[regexp $form $line - name labels]} $line
            if {[dict get $seen $family] eq "histogram"} {
                regsub {_(bucket|sum|count)$} $name {} name
                regexp {_(?:bucket|sum|count)\{} $line what
                append labels $what
            }
            assert_equal $family $name $line
            assert {![dict exists $samples $name$labels]} "$line comes twice"
            dict set samples $name$labels 1
        }
    }
    dict for {name type} $seen {
        assert {$type ne {}} "$name has no type"
    }
    return [dict keys $seen]
}

proc with_metrics {options body} {
    uplevel #0 {set metrics_port [free_port]}
    uplevel 1 [list with_server [list metrics-port $::metrics_port {*}$options] $body]
}

with_server {} {
    test "no metrics without metrics-port" {keydb} {
        assert_equal {metrics-port 0} [r config get metrics-port]
        foreach {name value} {metrics-bind 127.0.0.1 metrics-tls no metrics-token {}} {
            assert_equal [list $name $value] [r config get $name]
        }
    }
}

with_metrics {enable-debug-command yes} {
    test "metrics: the format of Prometheus" {keydb} {
        r set k v ex 1000
        r get k
        lassign [http_get /metrics] status headers body
        assert_equal 200 $status
        assert_match "*\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n*" $headers
        set names [check_exposition $body]
        foreach name {redis_up redis_uptime_in_seconds redis_connected_clients redis_memory_used_bytes
                redis_commands_total redis_commands_duration_seconds_total redis_db_keys redis_connected_slaves
                redis_master_repl_offset redis_keyspace_hits_total redis_latency_percentiles_usec
                redis_commands_latencies_usec keydb_server_threads keydb_worker_commands_total} {
            assert {$name in $names} $name
        }
    }

    test "metrics: the figures of INFO" {keydb} {
        r config resetstat
        for {set i 0} {$i < 7} {incr i} {
            r set k$i v
        }
        r expire k0 1000
        r get k1
        r get k2
        r get none
        catch {r incr k1}
        set body [scrape]
        foreach {name value} [list redis_up 1 redis_connected_clients 1 redis_keyspace_hits_total 2 \
                redis_keyspace_misses_total 1 {redis_commands_total{cmd="set"}} 7 {redis_db_keys{db="db0"}} 7 \
                {redis_db_keys_expiring{db="db0"}} 1 {redis_errors_total{err="ERR"}} 1 \
                {redis_commands_failed_calls_total{cmd="incr"}} 1 redis_rdb_last_bgsave_status 1 \
                {redis_commands_latencies_usec_count{cmd="set"}} 7 \
                {redis_commands_latencies_usec_bucket{cmd="set",le="+Inf"}} 7 \
                keydb_server_threads $::settings(threads)] {
            assert_equal [list $name $value] [list $name [sample $name $body]]
        }
        regexp {cmdstat_set:calls=7,usec=(\d+)} [r info commandstats] - usec
        assert_equal $usec [expr {round(1e6 * [sample {redis_commands_duration_seconds_total{cmd="set"}} $body])}]
        assert_range [sample redis_memory_used_bytes $body] 100000 100000000
        assert_match "*redis_instance_info{role=\"master\",redis_version=\"7.4.0\",*} 1\n*" $body
        assert {[sample {redis_latency_percentiles_usec{cmd="set",quantile="0.999"}} $body] > 0}
        set before 0
        foreach {- count} [regexp -all -inline {latencies_usec_bucket\{cmd="set",le="\d+"\} (\d+)} $body] {
            assert {$count >= $before}
            set before $count
        }
    }

    test "metrics: whatever scripts call their errors, the format holds" {keydb} {
        foreach code {a"b a\\b a%b a\\"b a:count=1, ä} {
            catch {r eval "return redis.error_reply(ARGV\[1\])" 0 "$code text"}
        }
        check_exposition [set body [scrape]]
        assert_match "*redis_errors_total{err=\"a\\\\\"b\"} 1\n*" $body
    }

    test "metrics: probes" {keydb} {
        assert_equal "200 {alive\n}" [lreplace [http_get /healthz] 1 1]
        assert_equal "200 {ready\n}" [lreplace [http_get /readyz] 1 1]
    }

    test "metrics: the status page is one file" {keydb} {
        lassign [http_get /] status headers body
        assert_equal 200 $status
        assert_match "*\nContent-Type: text/html; charset=utf-8\r\n*" $headers
        assert_match "*\nContent-Security-Policy: default-src 'none';*" $headers
        assert_match "<!DOCTYPE html>*</html>\n" $body
        foreach url [regexp -all -inline {(?:https?:)?//[a-z][^"'\s]*} $body] {
            assert_equal http://www.w3.org/2000/svg $url
        }
        assert {![regexp {\ssrc=} $body]}
    }

    test "metrics: paths and methods that are not there" {keydb} {
        foreach path {/metric /metrics/ /METRICS //metrics /../metrics /%00 /metrics%00 /%6detrics *} {
            assert_equal [list $path 404] [list $path [http_status $path]]
        }
        assert_equal 200 [http_status /metrics?name=x]
        foreach method {POST PUT DELETE OPTIONS PATCH CONNECT TRACE SET} {
            lassign [http_get /metrics {} $method] status headers
            assert_equal [list $method 405] [list $method $status]
            assert_match "*\nAllow: GET, HEAD*" $headers
        }
        assert_equal 405 [http_status /metrics {"Content-Length: 10000000000"} POST]
        lassign [http_get /metrics {} HEAD] status headers body
        assert_equal {200 {}} [list $status $body]
        assert_match "*\nContent-Length: *" $headers
    }

    test "metrics: requests that are too long, or none" {keydb} {
        foreach bytes [list "GET /[string repeat a 100000] HTTP/1.1\r\nHost: x\r\n\r\n" \
                "GET / HTTP/1.1\r\nHost: x\r\nX: [string repeat a 100000]\r\n\r\n" \
                "GET / HTTP/1.1\r\nHost: x\r\n[string repeat "A: b\r\n" 20000]\r\n" \
                "[string repeat x 100000]\r\n\r\n" "\r\n\r\n\r\nx\r\n\r\n" "*1\r\n\$4\r\nPING\r\n\r\n" \
                "GET /metrics\r\n\r\n" "GET /metrics HTTP/9.9\r\n\r\n" [pattern_bytes 5000] "\0\0\0\0\r\n\r\n"] {
            set text [http_raw $::metrics_port $bytes]
            assert {$text eq {} || [regexp {^HTTP/1\.[01] [45]\d\d} $text]} [string range $text 0 200]
        }
        assert_equal 200 [http_status /healthz]
    }

    test "metrics: who is slow is cut off, many of them, and others wait no longer than that" {keydb} {
        set chans {}
        for {set i 0} {$i < 50} {incr i} {
            lappend chans [set chan [socket 127.0.0.1 $::metrics_port]]
            chan configure $chan -blocking 0 -translation binary -buffering none
        }
        set begin [clock milliseconds]
        set trickle [lindex $chans 0]
        foreach byte [split "GET / HTTP/1.1\r\nHost: [string repeat x 200]" {}] {
            # A byte in 100 ms: it is never idle, and never complete.
            if {[catch {puts -nonewline $trickle $byte; read $trickle}] || [eof $trickle]} {
                break
            }
            assert_equal PONG [r ping]
            pause 100
        }
        assert_range [expr {[clock milliseconds] - $begin}] 3000 12000
        foreach chan $chans {
            close $chan
        }
        assert_equal 200 [http_status /healthz]
        wait_for {[llength [glob /proc/[srv pid]/fd/*]] < 60}
    }

    test "metrics: an answer waits for no command" {keydb} {
        set other [connect]
        $other -send debug sleep 1.5
        after 100
        set begin [clock milliseconds]
        check_exposition [scrape]
        assert_range [expr {[clock milliseconds] - $begin}] 0 1000
        assert_equal OK [$other -read]
    }

    test "metrics: scrapes under load" {keydb} {
        set others {}
        for {set i 0} {$i < 8} {incr i} {
            lappend others [connect]
        }
        for {set round 0} {$round < 10} {incr round} {
            foreach c $others {
                for {set i 0} {$i < 100} {incr i} {
                    $c -send set key:$i [string repeat v $i]
                    $c -send get key:$i
                }
            }
            check_exposition [scrape]
            r config resetstat
            foreach c $others {
                for {set i 0} {$i < 200} {incr i} {
                    $c -read
                }
            }
        }
        assert_equal 100 [sample {redis_db_keys{db="db0"}}]
    }

    test "metrics: CONFIG SET moves the port" {keydb} {
        set old $::metrics_port
        set ::metrics_port [free_port]
        assert_equal OK [r config set metrics-port $::metrics_port]
        assert_equal 200 [http_status /readyz]
        assert {[catch {socket 127.0.0.1 $old}]}
        assert_error "*Unable to serve metrics there*" {r config set metrics-port [srv port]}
        assert_equal [list metrics-port $::metrics_port] [r config get metrics-port]
        assert_equal 200 [http_status /readyz]
        foreach wrong {nowhere 127.0.0.300 {} {127.0.0.1 ::1} 192.0.2.1} {
            assert_error "*" {r config set metrics-bind $wrong}
            assert_equal 127.0.0.1 [dict get [r config get metrics-bind] metrics-bind]
            assert_equal [list $wrong 200] [list $wrong [http_status /readyz]]
        }
        assert_equal OK [r config set metrics-bind *]
        assert_equal 200 [http_status /readyz]
        assert_equal OK [r config set metrics-bind 127.0.0.1 metrics-port 0]
        assert {[catch {socket 127.0.0.1 $::metrics_port}]}
        assert_equal OK [r config set metrics-port $::metrics_port]
        assert_equal 200 [http_status /readyz]
    }

    test "metrics: TLS without a certificate is refused, and nothing changes" {keydb} {
        if {$::settings(tls)} {
            skip "the server has a certificate"
        }
        assert_error "*Unable to update TLS configuration*" {r config set metrics-tls yes}
        assert_equal {metrics-tls no} [r config get metrics-tls]
        assert_equal 200 [http_status /healthz]
    }

    test "metrics: a replica that may not show old data is not ready without its master" {keydb} {
        r config set replica-serve-stale-data no
        assert_equal 200 [http_status /readyz]
        r replicaof 127.0.0.1 [free_port]
        wait_for {[http_status /readyz] == 503}
        assert_match "*the link to the master is down*" [lindex [http_get /readyz] 2]
        assert_match "*redis_master_link_up{master_host=\"127.0.0.1\",master_port=\"*\"} 0\n*" [scrape]
        r config set replica-serve-stale-data yes
        assert_equal 200 [http_status /readyz]
        r replicaof no one
    }

    test "metrics: CONFIG SET of a token" {keydb} {
        assert_equal OK [r config set metrics-token s3cret]
        assert_equal 401 [http_status /metrics]
        assert_equal 200 [http_status /metrics {"Authorization: Bearer s3cret"}]
        assert_equal OK [r config set metrics-token other]
        assert_equal 401 [http_status /metrics {"Authorization: Bearer s3cret"}]
        assert_equal OK [r config set metrics-token ""]
        assert_equal 200 [http_status /metrics]
        foreach wrong [list "a b" a\n ä [string repeat x 257]] {
            assert_error "*a token has*" {r config set metrics-token $wrong}
        }
        assert_equal OK [r config set metrics-token [string repeat x 256]]
        assert_equal 200 [http_status /metrics [list "Authorization: Bearer [string repeat x 256]"]]
        assert_equal OK [r config set metrics-token ""]
    }
}

with_metrics {metrics-token s3cret} {
    test "metrics: the token" {keydb} {
        foreach headers [list {} "{Authorization: Bearer s3cre}" "{Authorization: Bearer s3cret2}" \
                "{Authorization: Bearer }" {Authorization:} "{Authorization: Basic s3cret}" \
                "{Authorization: s3cret}" "{X-Authorization: Bearer s3cret}"] {
            foreach path {/metrics /nowhere} {
                lassign [http_get $path $headers] status answer
                assert_equal [list $headers 401] [list $headers $status]
                assert_match "*\nWWW-Authenticate: Bearer*" $answer
            }
        }
        assert_equal 200 [http_status /metrics {"Authorization: Bearer s3cret"}]
        assert_equal 200 [http_status /metrics {"authorization: bearer s3cret"}]
        assert_equal 404 [http_status /nowhere {"Authorization: Bearer s3cret"}]
        foreach path {/healthz /readyz /} {
            assert_equal 200 [http_status $path]
        }
        assert {![string match *s3cret* [slurp [srv log]]]}
    }
}

if {$have_tls} {
    set metrics_folder [fresh_dir]

    proc metrics_certificate {} {
        catch {exec timeout 10 openssl s_client -connect 127.0.0.1:$::metrics_port << {} 2>@1} text
        set pem [regexp -inline -- {-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----} $text]
        return [join $pem]
    }

    proc metrics_put_certs set {
        foreach name {server.crt server.key} {
            file copy -force [cert $name $set] $::metrics_folder/.$name
            file rename -force $::metrics_folder/.$name $::metrics_folder/$name
        }
    }

    metrics_put_certs main
    with_metrics [list metrics-tls yes tls-cert-file $metrics_folder/server.crt \
            tls-key-file $metrics_folder/server.key tls-ca-cert-file [cert ca.crt]] {
        test "metrics over TLS, with the server's certificate, also when it changes" {keydb} {
            assert_equal 200 [http_status /metrics {} GET 1]
            assert_equal {} [http_raw $::metrics_port "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"]
            assert_match "*[metrics_certificate]*" [slurp [cert server.crt]]
            metrics_put_certs other
            r config set tls-cert-file $::metrics_folder/server.crt
            wait_for {[string match "*[metrics_certificate]*" [slurp [cert server.crt other]]]}
            r config set tls-rotation yes
            metrics_put_certs main
            wait_for {[string match "*[metrics_certificate]*" [slurp [cert server.crt]]]}
            assert_equal 200 [http_status /metrics {} GET 1]
            assert_equal OK [r config set metrics-tls no]
            assert_equal 200 [http_status /metrics]
            assert_equal OK [r config set metrics-tls yes]
            assert_equal 200 [http_status /metrics {} GET 1]
        }
    }
}

test "metrics while data is loaded, and the end with connections open" {keydb noconn} {
    set ::metrics_port [free_port]
    lassign [server_launch_loading --metrics-port $::metrics_port] id s
    wait_for {![catch {close [socket 127.0.0.1 $::metrics_port]}]} ;# its port is opened after the other one
    assert_equal "503 {data is being loaded\n}" [lreplace [http_get /readyz] 1 1]
    assert_equal 200 [http_status /healthz]
    assert_equal 1 [sample redis_loading_dump_file]
    set chans {}
    for {set i 0} {$i < 30} {incr i} {
        lappend chans [set chan [socket 127.0.0.1 $::metrics_port]]
        chan configure $chan -blocking 0 -translation binary -buffering none
        puts -nonewline $chan [expr {$i % 2 ? "GET /metrics HTTP/1.1\r\n" : "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"}]
    }
    set begin [clock milliseconds]
    process_signal $id TERM
    assert_equal 0 [process_wait $id]
    assert_range [expr {[clock milliseconds] - $begin}] 0 2500
    foreach chan $chans {
        close $chan
    }
    $s -close
}

test "metrics-port in use: the server does not start" {keydb noconn} {
    set taken [socket -server {} -myaddr 127.0.0.1 0]
    set port [lindex [chan configure $taken -sockname] 2]
    set id [server_launch [list --port [free_port] --metrics-port $port]]
    assert_equal 1 [process_wait $id]
    assert_match "*metrics: 127.0.0.1 port $port: Address already in use*" [process_log $id]
    close $taken
}

with_metrics {active-replica yes replica-serve-stale-data no} {
    test "metrics of an active node" {keydb} {
        wait_for {[http_status /readyz] == 200}
        r replicaof 127.0.0.1 [free_port]
        wait_for {[http_status /readyz] == 503}
        assert_equal "fewer links are up than replica-quorum wants\n" [lindex [http_get /readyz] 2]
        set body [scrape]
        check_exposition $body
        assert_equal 0 [sample keydb_active_links_up $body]
        assert_match "*keydb_active_peer_link_up{peer=*} 0\n*" $body
        r replicaof no one
        wait_for {[http_status /readyz] == 200}
    }
}
