# MULTI, EXEC, DISCARD, WATCH, UNWATCH between several clients.

set aborted "EXECABORT Transaction discarded because of previous errors."

with_server {enable-debug-command yes} {
    test "MULTI queues, EXEC runs and answers in order" {} {
        assert_reply {status OK} r multi
        assert_reply {status QUEUED} r set k 1
        assert_reply {status QUEUED} r incr k
        assert_reply {status QUEUED} r get k
        assert_reply {status QUEUED} r get none
        set other [connect]
        assert_reply nullbulk $other get k
        assert_reply {array {{status OK} {int 2} {bulk 2} nullbulk}} r exec
        assert_reply {bulk 2} $other get k
    }

    test "an empty transaction" {} {
        r multi
        assert_reply {array {}} r exec
    }

    test "DISCARD forgets the queue" {} {
        r set k 1
        r multi
        r set k 2
        assert_reply {status OK} r discard
        assert_reply {bulk 1} r get k
        assert_refused "ERR EXEC without MULTI" r exec
    }

    test "out of place" {} {
        assert_refused "ERR EXEC without MULTI" r exec
        assert_refused "ERR DISCARD without MULTI" r discard
        r multi
        assert_refused "ERR MULTI calls can not be nested" r multi
        assert_refused "ERR WATCH inside MULTI is not allowed" r watch k
        assert_reply {status QUEUED} r set k v
        assert_reply {array {{status OK}}} r exec
        assert_refused "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command" r \
            exec x
        foreach command {multi discard unwatch} {
            assert_refused "ERR wrong number of arguments for '$command' command" r $command x
        }
        assert_refused "ERR wrong number of arguments for 'watch' command" r watch
    }

    test "a command that cannot be queued spoils the transaction" {} {
        r multi
        assert_reply {status QUEUED} r set k v
        assert_refused "ERR unknown command 'nonsense', with args beginning with: 'a' 'b' " r nonsense a b
        assert_reply {status QUEUED} r set k w
        assert_refused $::aborted r exec
        assert_reply {int 0} r exists k
        assert_refused "ERR EXEC without MULTI" r exec
        r multi
        assert_refused "ERR wrong number of arguments for 'get' command" r get
        assert_refused $::aborted r exec
        r multi
        assert_refused "ERR wrong number of arguments for 'get' command" r get a b
        assert_reply {status OK} r discard
        r multi
        assert_reply {array {}} r exec
        r multi
        assert_refused "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command" r \
            exec now
        assert_refused "ERR EXEC without MULTI" r exec
    }

    test "a command that fails while it runs spoils nothing" {} {
        r multi
        r set k abc
        r incr k
        r set k2 v
        r select 99
        r get k
        assert_reply {array {{status OK} {error {ERR value is not an integer or out of range}} {status OK}
            {error {ERR DB index is out of range}} {bulk abc}}} r exec
        assert_reply {bulk v} r get k2
    }

    test "WATCH: a change by another client makes EXEC a null" {} {
        set other [connect]
        foreach command {{set k 2} {append k x} {del k} {expire k 100} {rename k k2} {incr k} {getdel k} {set k 1} \
            {getex k ex 10}
                {move k 3} {copy src k replace} {rename src k} {setrange k 0 2} {mset k 1 z 2} {swapdb 0 1} {flushall} \
                    {flushdb}
                {unlink k} {pexpireat k 1} {getset k 1}} {
            r flushall
            r mset k 1 src 2
            assert_reply {status OK} r watch k
            $other {*}$command
            r multi
            r set result done
            assert_reply nullarray r exec
            assert_reply {int 0} r exists result
        }
        r hello 3
        r set k 1
        r watch k
        $other set k 2
        r multi
        assert_reply null r exec
    }

    test "WATCH: what changes nothing does not disturb" {} {
        set other [connect]
        foreach command {{get k} {exists k} {del none} {persist k} {touch k} {set k v nx} {expire none 10} {getex k} \
            {ttl k}
                {set other v} {mget k k} {setnx k v} {msetnx k 1 new 2} {strlen k} {setrange k 0 {}} {type k} {scan 0} \
                    {keys *}
                {move none 1} {copy none k} {renamenx other k} {object encoding k} {expire k 10 xx} {swapdb 2 3}} {
            r flushall
            r mset k v other w
            r watch k
            catch {$other {*}$command}
            r multi
            r get k
            assert_equal v [r exec] $command
        }
        foreach command {{select 1} {flushdb} {set k in-another-database}} {
            r set k v
            r watch k
            $other {*}$command
            r multi
            r get k
            assert_equal v [r exec] $command
        }
    }

    test "WATCH of a missing key" {} {
        set other [connect]
        r watch none
        $other set none v
        r multi
        assert_reply nullarray r exec
        $other del none
        r watch none
        $other set none2 v
        r multi
        r ping
        assert_reply {array {{status PONG}}} r exec
        r watch none
        r flushall
        r multi
        assert_reply {array {}} r exec
    }

    # Until what was given 1 ms before the call is over, by the server's own clock.
    proc wait_until_over {} {
        lassign [r time] begin_s begin_us
        wait_for {[lassign [r time] s us; expr {($s - $begin_s) * 1000000 + $us - $begin_us}] > 2000}
    }

    # Makes the key and watches it while it is there. On a busy machine its time may be over between two commands of one
    # packet: then once more.
    proc watch_before_end {make} {
        set left -2
        while {$left == -2} {
            r unwatch
            r -raw [request {*}$make][request watch k][request pttl k]
            r -read
            r -read
            set left [r -read]
            if {[lindex $make end-1] ne "px"} {
                break
            }
        }
    }

    # `watched` before or after the key's time is over.
    test "expired keys, and what takes the whole database" {} {
        set other [connect]
        $other debug set-active-expire 0
        foreach {watched key other_key command touched} {
            before expiring none     {get k}      1  after expiring none     {get k}      0
            before expiring none     {flushall}   1  after expiring none     {flushall}   0
            before expiring none     {flushdb}    1  after expiring none     {flushdb}    0
            before expiring none     {swapdb 0 1} 1  after expiring none     {swapdb 1 0} 0
            before expiring expiring {swapdb 0 1} 1  after expiring expiring {swapdb 0 1} 0
            before expiring lasting  {swapdb 0 1} 1  after expiring lasting  {swapdb 0 1} 1
            before none     expiring {swapdb 0 1} 0  before none    lasting  {swapdb 0 1} 1
            before lasting  expiring {swapdb 0 1} 1  after expiring none     {set k new}  1
            after  expiring none     {del k}      0  before expiring none    {ping}       1
        } {
            $other flushall
            set kinds {none {del k} lasting {set k v} expiring {set k v px 1}}
            $other select 1
            $other {*}[dict get $kinds $other_key]
            $other select 0
            if {$watched eq "before"} {
                watch_before_end [dict get $kinds $key]
            } else {
                r {*}[dict get $kinds $key]
            }
            wait_until_over
            if {$watched eq "after"} {
                r watch k
            }
            $other {*}$command
            r multi
            r ping
            assert_equal [expr {$touched ? {} : "PONG"}] [r exec] "$watched $key $other_key $command"
        }
        $other debug set-active-expire 1
    }

    test "a key that is deleted and made again has changed" {} {
        set other [connect]
        r set k v
        r watch k
        $other del k
        $other set k v
        r multi
        assert_reply nullarray r exec
    }

    test "own changes before MULTI count" {} {
        r set k 1
        r watch k
        r set k 2
        r multi
        assert_reply nullarray r exec
        r watch k
        r multi
        r set k 3
        r set k 4
        assert_reply {array {{status OK} {status OK}}} r exec
    }

    test "EXEC, DISCARD, UNWATCH and a null EXEC end the watch" {} {
        set other [connect]
        foreach ending {{multi exec} {multi discard} {unwatch}} {
            r set k 1
            r watch k
            foreach command $ending {
                r $command
            }
            $other set k 2
            r multi
            r ping
            assert_equal PONG [r exec] $ending
        }
        r watch k
        $other set k 3
        r multi
        assert_reply nullarray r exec
        $other set k 4
        r multi
        r ping
        assert_equal PONG [r exec]
        r watch k
        $other set k 5
        assert_reply {status OK} r unwatch
        r multi
        r ping
        assert_equal PONG [r exec]
    }

    test "UNWATCH inside MULTI is queued" {} {
        set other [connect]
        r set k 1
        r watch k
        r multi
        assert_reply {status QUEUED} r unwatch
        $other set k 2
        assert_reply nullarray r exec
    }

    test "a spoilt transaction wins over a changed key" {} {
        set other [connect]
        r watch k
        $other set k v
        r multi
        catch {r get}
        assert_refused $::aborted r exec
    }

    test "many keys, many watchers" {} {
        set keys {}
        for {set i 0} {$i < 300} {incr i} {
            lappend keys k$i
        }
        r watch {*}$keys
        r watch k0 k1 k0
        set watchers {}
        for {set i 0} {$i < 20} {incr i} {
            lappend watchers [set c [connect]]
            $c watch k299 k$i
        }
        [connect] set k299 v
        foreach c [concat r $watchers] {
            $c multi
            assert_reply nullarray $c exec
        }
        foreach c $watchers {
            $c watch k$i
            $c -close
        }
        r set k$i v
    }

    test "WATCH belongs to the database it was made in" {} {
        set other [connect]
        r select 2
        r watch k
        r select 3
        $other select 3
        $other set k v
        r multi
        r ping
        assert_equal PONG [r exec]
        r select 2
        r watch k
        r select 3
        $other select 2
        $other set k v
        r multi
        assert_reply nullarray r exec
    }

    test "SWAPDB disturbs who watches a key that it brings, takes or changes" {} {
        set other [connect]
        r select 1
        r set k in-one
        r select 0
        foreach {key expected} {k {} none PONG} {
            r watch $key
            $other swapdb 0 1
            r multi
            r ping
            assert_equal $expected [r exec] $key
        }
    }

    test "a watched key whose time comes" {} {
        set other [connect]
        r set k v px 30
        r watch k
        wait_for {[$other exists k] == 0}
        r multi
        assert_reply nullarray r exec
        r debug set-active-expire 0
        r set k v px 1
        pause 3
        r watch k
        assert_reply {int 0} $other exists k
        r multi
        r ping
        assert_equal PONG [r exec]
        r debug set-active-expire 1
    }

    test "SELECT inside a transaction lasts" {} {
        r multi
        r select 4
        r set k in-four
        r exec
        assert_reply {bulk in-four} r get k
        r select 0
        assert_reply {int 0} r exists k
    }

    test "no other client's command falls between" {} {
        set other [connect]
        r multi
        r set a 1
        for {set i 0} {$i < 200} {incr i} {
            r incr n
        }
        r mget n n
        r -send exec
        $other -send incr n
        set replies [r -read]
        $other -read
        set first [lindex $replies 1]
        assert {$first in {1 2}}
        assert_equal [list [expr {$first + 199}] [expr {$first + 199}]] [lindex $replies end]
    }

    test "FLUSHALL, SWAPDB, RENAME and friends run inside a transaction" {} {
        r mset a 1 b 2
        r multi
        r rename a c
        r copy c d
        r dbsize
        r swapdb 0 1
        r dbsize
        r flushall
        r keys *
        r set k v
        r config get hz
        r time
        r client id
        set replies [r exec]
        assert_equal {OK 1 3 OK 0 OK {} OK} [lrange $replies 0 7]
        assert_equal hz [lindex $replies 8 0]
        assert_reply {bulk v} r get k
    }

    test "a transaction arriving in one packet, and one cut anywhere" {} {
        set bytes [request MULTI][request SET k v][request GET k][request EXEC]
        set answer "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n\$1\r\nv\r\n"
        r -raw $bytes
        assert_equal $answer [r -bytes [string length $answer]]
        for {set cut 1} {$cut < [string length $bytes]} {incr cut 7} {
            r -raw [string range $bytes 0 $cut-1]
            pause 1
            r -raw [string range $bytes $cut end]
            assert_equal $answer [r -bytes [string length $answer]]
        }
    }

    test "CLIENT REPLY inside a transaction holds for what follows" {} {
        r set k v
        r -raw [request multi][request client reply off][request get k][request get k][request exec]
        r -raw [request get k][request client reply on][request get k]
        set answer "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n\$1\r\nv\r\n"
        assert_equal $answer [r -bytes [string length $answer]]
        r -raw [request multi][request client reply skip][request get k][request exec][request get k][request get k]
        set answer "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n\$1\r\nv\r\n\$1\r\nv\r\n"
        assert_equal $answer [r -bytes [string length $answer]]
    }

    test "large transactions" {} {
        r multi
        for {set i 0} {$i < 5000} {incr i} {
            r -send set key:$i [string repeat $i 10]
        }
        for {set i 0} {$i < 5000} {incr i} {
            assert_equal QUEUED [r -read]
        }
        assert_equal [lrepeat 5000 OK] [r exec]
        assert_reply {int 5000} r dbsize
        assert_reply [list bulk [string repeat 4999 10]] r get key:4999
    }

    test "RESET, QUIT and closing forget a transaction" {} {
        r watch k
        r multi
        r set k v
        assert_reply {status RESET} r reset
        assert_refused "ERR EXEC without MULTI" r exec
        assert_reply {int 0} r exists k
        set other [connect]
        $other multi
        $other set k v
        $other -close
        assert_reply {int 0} r exists k
        set other [connect]
        $other multi
        $other set k v
        assert_reply {status OK} $other quit
        assert {[$other -closed]}
        assert_reply {int 0} r exists k
    }

    test "the error count and multi in CLIENT LIST" {} {
        assert_equal -1 [dict get [lindex [client_lines [r client info]] 0] multi]
        r multi
        r client info
        r client info
        assert_equal 2 [dict get [lindex [client_lines [lindex [r exec] 0]] 0] multi]
        r watch a b
        set flags [dict get [lindex [client_lines [r client info]] 0] flags]
        assert_equal N $flags
    }

    test "beyond maxmemory a transaction queues what needs no memory, and can be ended" {keydb} {
        set oom "OOM command not allowed when used memory > 'maxmemory'."
        set other [connect]
        with_config {maxmemory 1} {
            $other multi
            foreach command {{unwatch} {ping} {get k} {del k} {client id}} {
                assert_reply {status QUEUED} $other {*}$command
            }
            assert_equal 5 [llength [$other exec]]
            $other multi
            foreach command {{set k v} {rpush l a}} {
                assert_refused $oom $other {*}$command
            }
            assert_refused $::aborted $other exec
            $other multi
            assert_reply {array {}} $other exec
            $other multi
            assert_reply {status OK} $other discard
            $other multi
            assert_reply {status RESET} $other reset
            assert_reply {status OK} $other watch k
            assert_reply {status OK} $other unwatch
            assert_reply {status OK} $other multi
            assert_reply {status OK} $other quit
        }
    }

    test "queued commands and watched keys count as the client's memory" {} {
        set other [connect]
        set id [$other client id]
        set picture {{id} {lindex [lmap line [client_lines [r client list id $id]] {set line}] 0}}
        $other multi
        set before [apply $picture $id]
        assert_equal 0 [dict get $before multi-mem]
        $other set k [string repeat x 1000]
        set small [apply $picture $id]
        assert_range [dict get $small multi-mem] 1000 2000
        $other set k [string repeat x 100000]
        set large [apply $picture $id]
        assert_range [dict get $large multi-mem] 101000 200000
        assert {[dict get $large tot-mem] >= [dict get $before tot-mem] + 100000}
        assert_equal {2 set} [list [dict get $large multi] [dict get $large cmd]]
        wait_for {[info_field mem_clients_normal memory] > 100000}
        $other discard
        assert_equal 0 [dict get [apply $picture $id] multi-mem]
        set before [apply $picture $id]
        $other watch {*}[lmap i [lrepeat 100 x] {incr n}]
        assert {[dict get [apply $picture $id] tot-mem] >= [dict get $before tot-mem] + 100 * 50}
    }
}
