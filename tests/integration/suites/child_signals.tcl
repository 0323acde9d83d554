# A child that saves ends by SIGTERM, whichever worker forked it.

proc other_workers_client {} {
    for {set i 0} {$i < 100} {incr i} {
        set c [connect]
        if {[info_field_of $c current_client_thread clients] != 0} {
            return $c
        }
    }
    skip "one worker"
}

proc info_field_of {client name section} {
    regexp "$name:(\\d+)" [$client info $section] all value
    return $value
}

proc ends_by_sigterm command {
    for {set i 0} {$i < 200} {incr i} {
        r set key:$i v
    }
    [other_workers_client] $command
    wait_for {[catch {exec pgrep -P [srv pid]} child] == 0}
    exec kill -TERM $child
    wait_for {[catch {exec pgrep -P [srv pid]}]}
}

# A child left to itself takes 20 seconds.
with_server {server-threads 4 min-clients-per-thread 0 snapshot-method fork rdb-key-save-delay 100000} {
    test "SIGTERM ends the child of BGSAVE from any worker" {keydb} {
        ends_by_sigterm bgsave
    }

    test "SIGTERM ends the child of BGREWRITEAOF from any worker" {keydb} {
        ends_by_sigterm bgrewriteaof
    }
}
