# What looks at the server from outside needs no key: it is answered while somebody is alone with all of them.

# A connection to another worker than that of `client`.
proc elsewhere client {
    regexp {current_client_thread:(\d+)} [$client info clients] all worker
    for {set i 0} {$i < 200} {incr i} {
        set other [connect]
        regexp {current_client_thread:(\d+)} [$other info clients] all its
        if {$its != $worker} {
            return $other
        }
        $other -close
    }
    skip "one worker"
}

with_server {server-threads 4 min-clients-per-thread 0 busy-reply-threshold 20 enable-protected-configs yes} {
    test "behind a closed gate monitoring is answered" {keydb} {
        set alone [connect]
        set asks [elsewhere $alone]
        $asks set x 1
        $asks acl setuser someone on >secret ~* +@all
        $alone -send eval {redis.call('get', 'not declared') while true do end} 0
        wait_for {![catch {$asks script kill} reply] || ![string match NOTBUSY* $reply]}
        assert_error "*Script killed*" {$alone -read}
        $alone -send eval {redis.call('get', 'not declared') while true do end} 0
        wait_for {[catch {$asks get x} reply] && [string match BUSY* $reply]}
        set refused {}
        foreach command {
            {config get *} {config get save dbfilename requirepass} {info} {info everything} {info commandstats}
            {client list} {client info} {client id} {client getname} {client trackinginfo}
            {command} {command count} {command info get set} {command docs get} {command list}
            {command getkeys get x} {latency latest} {latency history command} {latency doctor} {latency histogram}
            {latency graph command} {slowlog get} {slowlog len} {memory stats} {memory doctor} {memory malloc-stats}
            {dbsize} {role} {lastsave} {time} {ping} {echo x} {hello 2}
            {pubsub channels} {pubsub numsub a} {pubsub numpat} {pubsub shardchannels} {pubsub shardnumsub a}
            {acl whoami} {acl list} {acl users} {acl cat} {acl getuser someone} {acl log} {acl dryrun someone get x}
            {script exists aa} {function list} {function stats} {module list}
            {object help} {config help} {lolwut}
        } {
            if {[catch {$asks {*}$command} reply] && ![string match "ERR unknown*" $reply] &&
                ![string match "ERR No samples*" $reply]} {
                lappend refused $command $reply
            }
        }
        wait_for {![catch {$asks script kill} reply]}
        assert_error "*Script killed*" {$alone -read}
        assert_equal {} $refused
    }

    test "CONFIG GET sees all of a CONFIG SET or nothing" {keydb} {
        set changes [connect]
        set asks [elsewhere $changes]
        foreach {text number} {first 1 second-and-longer 2 third 3} {
            lappend values $number $text
        }
        for {set i 0} {$i < 300} {incr i} {
            foreach {number text} $values {
                $changes -send config set lfu-decay-time $number availability-zone $text dbfilename $text.rdb \
                    proc-title-template $text save "$number $number" maxmemory-samples $number
            }
            foreach {number text} $values {
                array set seen [$asks config get lfu-decay-time availability-zone dbfilename proc-title-template save \
                    maxmemory-samples]
                if {$i != 0} {
                    set n $seen(lfu-decay-time)
                    set t [dict get $values $n]
                    assert_equal [list $t $t.rdb $t "$n $n" $n] \
                        [list $seen(availability-zone) $seen(dbfilename) $seen(proc-title-template) $seen(save) \
                            $seen(maxmemory-samples)]
                }
            }
            foreach value $values {
                if {[incr odd] % 2} {
                    assert_equal OK [$changes -read]
                }
            }
        }
        $asks config set dbfilename dump.rdb save "" availability-zone ""
    }
}
