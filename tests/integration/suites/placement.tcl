# Where new connections go: to workers that are free, whatever the others do, and evenly.

proc worker_of client {
    regexp {current_client_thread:(\d+)} [$client info clients] all worker
    return $worker
}

# A client whose worker is another than that of `client`.
proc away_from client {
    for {set i 0} {$i < 200} {incr i} {
        set c [connect]
        if {[worker_of $c] != [worker_of $client]} {
            return $c
        }
    }
    fail "all clients sit on one worker"
}

# Runs something endless with the key `held` on a worker without r; returns when it runs: another client had to wait
# for the key, or was refused it.
proc keep_busy args {
    set busy [away_from r]
    set probe [away_from $busy]
    set before [kept_off]
    $busy -send {*}$args
    wait_for {[had_to_wait $probe] > $before}
    return $busy
}

proc had_to_wait probe {
    $probe -send get held
    pause 5
    return [kept_off]
}

proc kept_off {} {
    regexp {errorstat_BUSY:count=(\d+)} "[r info errorstats] errorstat_BUSY:count=0" all refused
    return [expr {[info_field long_lock_waits cpu] + $refused}]
}

proc each_gets_served {count args} {
    set clients {}
    for {set i 0} {$i < $count} {incr i} {
        set c [connect {*}$args]
        assert_equal PONG [$c ping]
        assert_equal $i [$c echo $i]
        lappend clients $c
    }
    foreach c $clients {
        assert_equal PONG [$c ping]
        $c -close
    }
}

set endless {while true do local x = #redis.sha1hex('x') end}

foreach {fill loop} {20 epoll 0 epoll 20 io_uring 0 io_uring} {
    foreach threshold {2000 50} {
        with_server [list server-threads 4 min-clients-per-thread $fill event-loop $loop \
                busy-reply-threshold $threshold unixsocket %DIR%/sock] {
            set about "filled to $fill, $loop, threshold $threshold"

            test "new connections are served while a script runs ($about)" {keydb} {
                set busy [keep_busy eval $::endless 1 held]
                if {$::threshold == 50} {
                    wait_for {[catch {[connect] get held} reply] && [string match BUSY* $reply]}
                }
                each_gets_served 12
                each_gets_served 2 -unix [srv dir]/sock
                assert_error BUSY* {[connect] get held}
                assert_error BUSY* {[connect] flushall}
                assert_equal OK [[connect] script kill]
                assert_error "*Script killed*" {$busy -read}
            }
        }
    }
}

foreach balancing {yes no} {
    with_server [list min-clients-per-thread 0 server-threads 4 active-client-balancing $balancing] {
        test "without a least number connections are spread evenly (balancing $balancing)" {keydb} {
            set clients [lmap i {1 2 3 4 5 6 7 8 9 10 11 12 13 14 15} {connect}]
            foreach c $clients {
                $c ping
            }
            set clients [concat $clients r]
            foreach c $clients {
                incr count([worker_of $c])
            }
            if {$::balancing} {
                assert_equal {4 4 4 4} [lmap {worker clients} [array get count] {set clients}]
            } else { ;# what was there before r counts, too
                assert_equal 4 [array size count]
                foreach worker [array names count] {
                    assert_range $count($worker) 2 6
                }
            }
        }
    }
}

# Connects as often as it can, from four threads, until its input ends.
set connecting {
import socket, sys, threading, time
over = []
def connect():
    held = []
    while not over:
        try:
            held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1))
            if len(held) > 50:
                held.pop(0).close()
        except OSError:
            time.sleep(0.0005)
threads = [threading.Thread(target=connect) for _ in range(4)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
over.append(1)
}

test "a server that stops while clients connect ends in order" {keydb noconn slow} {
    set port [free_port]
    set storm [open |[list python3 -c $::connecting $port] r+]
    gets $storm
    try {
        for {set round 0} {$round < 20} {incr round} {
            set id [server_launch [list --port $port --save {} --server-threads 4 --min-clients-per-thread 1]]
            wait_for {![catch {
                set c [connect -port $port -tls 0]
                set served [regexp {total_connections_received:(\d{3})} [$c info stats]]
                $c -close
            }] && $served}
            process_signal $id TERM
            assert_equal 0 [process_wait $id]
        }
    } finally {
        close $storm
    }
}
