# What ran for long, how long commands take, and watching them: SLOWLOG, LATENCY, INFO commandstats and latencystats,
# MONITOR.

proc slow_args entry {
    return [lindex $entry 3]
}

with_server {slowlog-log-slower-than -1 enable-debug-command yes} {
    test "slow log: threshold, order, length" {} {
        r config set slowlog-log-slower-than -1
        r slowlog reset
        r debug sleep 0.01
        assert_equal 0 [r slowlog len]
        r config set slowlog-log-slower-than 5000
        r slowlog reset
        r ping
        r debug sleep 0.01
        r debug sleep 0.012
        assert_equal 2 [r slowlog len]
        set entries [r slowlog get]
        assert_equal {debug sleep 0.012} [slow_args [lindex $entries 0]]
        assert_equal {debug sleep 0.01} [slow_args [lindex $entries 1]]
        assert_equal [expr {[lindex $entries 1 0] + 1}] [lindex $entries 0 0]
        assert {[lindex $entries 0 2] >= 12000}
        assert_range [lindex $entries 0 1] [expr {[clock seconds] - 60}] [clock seconds]
        assert_equal 1 [llength [r slowlog get 1]]
        assert_equal 2 [llength [r slowlog get -1]]
        assert_equal {} [r slowlog get 0]
        assert_refused "ERR count should be greater than or equal to -1" r slowlog get -2
        r config set slowlog-log-slower-than -1
        r slowlog reset
        assert_equal {} [r slowlog get]
    }

    test "slow log: who it was, ids go on, the length is limited" {} {
        set other [connect]
        $other client setname somebody
        r config set slowlog-log-slower-than 0
        $other get a
        r config set slowlog-log-slower-than -1
        set entry [lsearch -inline -index 3 [r slowlog get -1] {get a}]
        assert_equal somebody [lindex $entry 5]
        assert_match *:* [lindex $entry 4]
        r slowlog reset
        r config set slowlog-max-len 3
        r config set slowlog-log-slower-than 0
        foreach n {1 2 3 4 5} {
            $other get k$n
        }
        r config set slowlog-log-slower-than -1
        assert_equal 3 [r slowlog len]
        assert {[lindex [r slowlog get] 0 0] > [lindex $entry 0] + 4}
        r config set slowlog-max-len 1
        r config set slowlog-log-slower-than 0
        r config set slowlog-log-slower-than -1
        assert_equal 1 [r slowlog len]
        r config set slowlog-max-len 128
    }

    test "slow log: long arguments and many of them are cut, secrets redacted" {} {
        r slowlog reset
        set many [lmap n [lrepeat 40 x] {incr i}]
        r config set slowlog-log-slower-than 0
        r set a [string repeat x 150]
        r exists {*}$many
        catch {r auth me secret}
        r hello 2 auth default x
        r config set masterauth secret
        r config set slowlog-log-slower-than -1
        r config set masterauth ""
        set all [lmap entry [r slowlog get -1] {slow_args $entry}]
        assert {"set a [string repeat x 128]... (22 more bytes)" in [lmap args $all {join $args}]}
        set long [lsearch -inline -index 0 $all exists]
        assert_equal 32 [llength $long]
        assert_equal "... (10 more arguments)" [lindex $long end]
        assert {{auth (redacted) (redacted)} in $all}
        assert {{hello 2 auth (redacted) (redacted)} in $all}
        assert {{config set masterauth (redacted)} in $all}
    }

    test "slow log: what EXEC runs is there, EXEC is not" {} {
        r slowlog reset
        r multi
        r set a 1
        r get a
        r config set slowlog-log-slower-than 0
        r set b 1
        r exec
        r config set slowlog-log-slower-than -1
        set all [lmap entry [r slowlog get -1] {slow_args $entry}]
        assert {{set b 1} in $all}
        assert {{exec} ni $all}
    }
}

with_server {enable-debug-command yes} {
    test "command statistics: calls, times, rejected and failed ones" {} {
        r config resetstat
        r set a x
        r get a
        r get a
        catch {r incr a}
        catch {r get}
        r debug sleep 0.02
        catch {r config nosuch}
        set fields [info_fields commandstats]
        assert_match calls=1,usec=*,rejected_calls=0,failed_calls=0 [dict get $fields cmdstat_set]
        assert_match calls=2,usec=*,rejected_calls=1,failed_calls=0 [dict get $fields cmdstat_get]
        assert_match calls=1,usec=*,rejected_calls=0,failed_calls=1 [dict get $fields cmdstat_incr]
        assert {![dict exists $fields cmdstat_config]}
        regexp {usec=(\d+),usec_per_call=([\d.]+)} [dict get $fields cmdstat_debug] all usec each
        assert {$usec >= 20000 && $each == $usec}
        r config resetstat
        assert {![dict exists [info_fields commandstats] cmdstat_set]}
    }

    test "EXEC counts its commands and itself" {} {
        r config resetstat
        r multi
        r set a 1
        r set b 2
        r exec
        set fields [info_fields commandstats]
        assert_match calls=2,* [dict get $fields cmdstat_set]
        assert_match calls=1,* [dict get $fields cmdstat_exec]
    }

    test "latency statistics" {} {
        r config resetstat
        r config set latency-tracking-info-percentiles "50 99.95 100"
        assert_equal {latency-tracking-info-percentiles {50 99.95 100}} [r config get latency-tracking-info-percentiles]
        r debug sleep 0.01
        r debug sleep 0.03
        set line [dict get [info_fields latencystats] latency_percentiles_usec_debug]
        assert {[regexp {^p50=([\d.]+),p99.95=([\d.]+),p100=([\d.]+)$} $line all low high most]}
        assert {$low >= 9600 && $high >= 29000 && $most == $high}
        assert_error "*should sit between*" {r config set latency-tracking-info-percentiles 101}
        assert_error "*Invalid latency-tracking-info-percentiles*" {r config set latency-tracking-info-percentiles x}
        r config set latency-tracking-info-percentiles ""
        assert_equal "" [dict get [info_fields latencystats] latency_percentiles_usec_debug]
        r config set latency-tracking-info-percentiles "50 99 99.9"
    }

    test "LATENCY HISTOGRAM" {} {
        r config resetstat
        assert_equal {} [r latency histogram set]
        r set a 1
        r set a 2
        r debug sleep 0.01
        set all [r latency histogram]
        assert_equal {config|resetstat debug latency|histogram set} [lsort [dict keys $all]]
        assert_equal 2 [dict get $all set calls]
        assert_equal 2 [lindex [dict get $all set histogram_usec] end]
        lassign [dict get $all debug histogram_usec] end count
        assert {$end in {16908 33816 67633 135266 270532} && $count == 1} $end
        assert_equal [dict get $all set] [dict get [r latency histogram nosuch set] set]
        assert {[dict exists [r latency histogram config] config|resetstat]}
        assert {[dict exists [r latency histogram config|resetstat] config|resetstat]}
        r config set latency-tracking no
        r get a
        assert_equal {} [r latency histogram get]
        assert_equal {} [info_fields latencystats]
        assert_match calls=1,* [dict get [info_fields commandstats] cmdstat_get]
        r config set latency-tracking yes
    }

    test "latency events" {} {
        r latency reset
        assert_equal {} [r latency latest]
        r debug sleep 0.01
        assert_equal {} [r latency latest]
        r config set latency-monitor-threshold 5
        r debug sleep 0.02
        r debug sleep 0.01
        set latest [r latency latest]
        assert_equal command [lindex $latest 0 0]
        assert {[lindex $latest 0 3] >= 20}
        assert {[llength [r latency history command]] in {1 2}}
        assert_equal {} [r latency history nosuch]
        assert_match "command - high * ms, low * ms (all time high * ms)*" [r latency graph command]
        assert_refused "ERR No samples available for event 'nosuch'" r latency graph nosuch
        assert_match *command* [r latency doctor]
        assert_equal 0 [r latency reset nosuch]
        assert_equal 1 [r latency reset command]
        assert_equal 0 [r latency reset]
        r config set latency-monitor-threshold 0
    }
}

# The lines a monitor has got so far, without their times.
proc monitored {monitor count} {
    set lines {}
    while {[llength $lines] < $count} {
        set line [$monitor -line]
        assert {[regexp {^\+\d{10}\.\d{6} (\[\d+ [^ \]]+\] .*)$} $line all rest]} $line
        lappend lines $rest
    }
    return $lines
}

with_server {} {
    test "MONITOR shows commands as they ran" {} {
        set monitor [connect]
        set id [$monitor client id]
        assert_equal OK [$monitor monitor]
        set client [connect]
        $client set a "x\n\x01\"\xff"
        $client select 3
        catch {$client get a b}
        $client config get hz
        catch {$client auth me secret}
        $client multi
        $client incr n
        $client exec
        set lines [monitored $monitor 6]
        assert_match {\[0 *\] "set" "a" "x\\n\\x01\\"\\xff"} [lindex $lines 0]
        assert_match {\[3 *\] "select" "3"} [lindex $lines 1]
        assert_match {\[3 *\] "auth" "(redacted)" "(redacted)"} [lindex $lines 2]
        assert_match {\[3 *\] "multi"} [lindex $lines 3]
        assert_match {\[3 *\] "incr" "n"} [lindex $lines 4]
        assert_match {\[3 *\] "exec"} [lindex $lines 5]
        assert_match "*flags=O *" [r client list id $id]
    }

    test "MONITOR shows what scripts and functions call, behind the command that runs them" {} {
        set monitor [connect]
        assert_equal OK [$monitor monitor]
        r function load replace "#!lua name=m\nredis.register_function('m', function(keys)
            return redis.call('get', keys\[1\]) end)"
        r eval {redis.call('set', KEYS[1], 1)} 1 k
        catch {r evalsha [string repeat 0 40] 0}
        r multi
        r fcall m 1 k
        r exec
        set lines [lrange [monitored $monitor 8] 1 end]
        foreach line $lines pattern {
            {\[0 *:*\] "eval" "redis.call('set'*" "1" "k"} {\[0 lua\] "set" "k" "1"}
            {\[0 *:*\] "evalsha" "0000*" "0"} {\[0 *:*\] "multi"} {\[0 *:*\] "fcall" "m" "1" "k"}
            {\[0 lua\] "get" "k"} {\[0 *:*\] "exec"}
        } {
            assert_match $pattern $line
        }
        r function flush
    }

    test "monitors of all workers see commands of all workers" {} {
        set monitors [lmap n [lrepeat 12 x] {set m [connect]; $m monitor; set m}]
        set clients [lmap n [lrepeat 12 x] {connect}]
        set n 0
        foreach client $clients {
            $client set key[incr n] value
        }
        foreach monitor $monitors {
            set seen {}
            while {[llength $seen] < 12} {
                set line [$monitor -line]
                if {[regexp {"(key\d+)" "value"} $line all key]} {
                    lappend seen $key
                }
            }
            assert_equal 12 [llength [lsort -unique $seen]]
        }
    }

    test "a monitor cannot use keys, RESET ends it" {} {
        set monitor [connect]
        $monitor monitor
        $monitor -send get a
        assert_equal "-ERR Replica can't interact with the keyspace" [$monitor -line]
        $monitor -send reset
        assert_equal +RESET [$monitor -line]
        assert_equal v [$monitor getset nosuch v; $monitor get nosuch]
        $monitor multi
        $monitor monitor
        $monitor -send exec
        assert_equal *1 [$monitor -line]
        assert_match "*MONITOR isn't allowed*" [$monitor -line]
    }
}
