# What clients are told without having asked, at the edges: much of it made by one command; who is told in another's
# place. The order in general is the business of tests/stress (part told).

# Calls PUBLISH so many times in one script, with as many bytes each; what used_memory was in the end, beyond before.
proc publish_in_script {channel count bytes} {
    set script {
        local function used() return tonumber(redis.call('info', 'memory'):match('used_memory:(%d+)')) end
        local before = used()
        for i = 1, tonumber(ARGV[1]) do redis.call('publish', KEYS[1], ARGV[2]) end
        return used() - before
    }
    return [r eval $script 1 $channel $count [string repeat v $bytes]]
}

proc cut_count {} {
    return [info_field client_output_buffer_limit_disconnections stats]
}

with_server {server-threads 1} {
    test "messages of one script are bounded: who would get too many is cut" {} {
        set c [connect]
        set p [connect]
        $c subscribe c
        $p psubscribe c*
        set before [cut_count]
        assert_range [publish_in_script c 900 100000] 0 60000000
        wait_for {[cut_count] == $before + 2}
        wait_for {[r pubsub numsub c] eq {c 0}}
        assert_equal 0 [r pubsub numpat]
    }

    test "messages of one transaction are bounded" {} {
        set c [connect]
        $c subscribe c
        set before [cut_count]
        set message [string repeat v 1000000]
        r multi
        for {set i 0} {$i < 60} {incr i} {
            r publish c $message
        }
        assert_equal [lrepeat 60 1] [r exec]
        wait_for {[cut_count] == $before + 1}
    }

    test "messages of one script within the limit all come" {} {
        set c [connect]
        $c subscribe c
        set before [cut_count]
        publish_in_script c 250 100000
        for {set i 0} {$i < 250} {incr i} {
            assert_equal 100000 [string length [lindex [$c -read] 2]]
        }
        assert_equal $before [cut_count]
        assert_equal 1 [r publish c end]
        assert_equal {message c end} [$c -read]
    }

    test "who is sent other messages stays; without a limit all come" {} {
        set c [connect]
        set other [connect]
        $c subscribe c
        $other subscribe other
        set before [cut_count]
        publish_in_script c 450 100000
        wait_for {[cut_count] == $before + 1}
        assert_equal 1 [r publish other end]
        assert_equal {message other end} [$other -read]
        with_config {client-output-buffer-limit "pubsub 0 0 0"} {
            publish_in_script other 400 100000
            for {set i 0} {$i < 400} {incr i} {
                assert_equal 100000 [string length [lindex [$other -read] 2]]
            }
        }
    }

    test "keyspace events of one script are bounded" {} {
        set c [connect]
        $c subscribe __keyspace@0__:k
        set before [cut_count]
        with_config {notify-keyspace-events KA client-output-buffer-limit "pubsub 100000 0 0"} {
            r eval {for i = 1, 40000 do redis.call('incr', KEYS[1]) end} 1 k
            wait_for {[cut_count] == $before + 1}
        }
    }
}

with_server {min-clients-per-thread 1} {
    test "messages of one script are bounded on all workers" {} {
        set subscribers [lmap x [lrepeat 8 x] {connect}]
        foreach c $subscribers {
            $c subscribe c
        }
        assert_range [publish_in_script c 900 100000] 0 75000000
    }

    test "who is told in another's place has heard of it before its own reply" {} {
        set ears [lmap x [lrepeat 8 x] {connect}]
        set caches [lmap x [lrepeat 8 x] {connect}]
        foreach ear $ears c $caches {
            $ear hello 3
            $c client tracking on redirect [$ear client id]
        }
        for {set i 0} {$i < 50} {incr i} {
            foreach c $caches {
                $c get k
            }
            r set k $i
            foreach ear $ears c $caches {
                assert_equal $i [$c get k]
                $ear ping
                assert_equal {{invalidate k}} [lmap push [$ear -pushes] {resp::bare $push}]
            }
        }
    }
}
