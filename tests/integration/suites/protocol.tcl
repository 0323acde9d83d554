# What goes over the wire: both request forms, both protocol versions, everything malformed.

# Sends bytes on a connection of their own and returns all that comes back until the server closes.
proc last_words bytes {
    set c [connect]
    $c -raw $bytes
    set text [$c -line]
    if {![$c -closed]} {
        fail "the connection stays open after [escape $bytes]"
    }
    $c -close
    return $text
}

with_server {enable-debug-command yes} {
    test "inline commands" {} {
        foreach {request answer} {
            "PING\r\n" +PONG  "ping\n" +PONG  "  PING  \r\n" +PONG  "\tPING\r\n" +PONG  "PING hello\r\n" {$5 hello}
            "SET k v\r\n" +OK  "GET k\r\n" {$1 v}  "ECHO \"a b\"\r\n" {$3 {a b}}  "ECHO 'a b'\r\n" {$3 {a b}}
            "ECHO 'it\\'s'\r\n" {$4 it's}  "ECHO \"a\\\"b\"\r\n" {$3 a\"b}  "ECHO \"\\x41\\x42\"\r\n" {$2 AB}
            "ECHO 'a\\n'\r\n" {$3 a\\n}  "ECHO \"\\q\"\r\n" {$1 q}  "ECHO \"\"\r\n" {$0 {}}  "ECHO a\tb\r\n" {-ERR*}
            "ECHO a\"b\"\r\n" {$2 ab}  "ECHO \"\\t\\b\\a\"\r\n" {$3 "\t\b\a"}
        } {
            r -raw $request
            assert_match [lindex $answer 0] [r -line]
            if {[llength $answer] > 1} {
                assert_equal [lindex $answer 1] [r -line] $request
            }
        }
    }

    test "empty lines and empty arrays are no commands" {} {
        r -raw "\r\n\n   \r\n*0\r\n*-1\r\n*-10\r\nPING\r\n"
        assert_equal +PONG [r -line]
    }

    test "inline and array requests mixed" {} {
        r -raw "SET a 1\r\n*2\r\n\$4\r\nINCR\r\n\$1\r\na\r\nGET a\n*1\r\n\$4\r\nPING\r\n"
        assert_equal {+OK :2 {$1} 2 +PONG} [list [r -line] [r -line] [r -line] [r -line] [r -line]]
    }

    test "unbalanced quotes" {} {
        foreach request {"ECHO \"abc\r\n" "ECHO 'abc\r\n" "ECHO \"abc\"d\r\n" "ECHO 'abc'd\r\n" "\"\r\n"} {
            assert_equal "-ERR Protocol error: unbalanced quotes in request" [last_words $request]
        }
    }

    test "malformed arrays" {} {
        foreach {request answer} {
            "*x\r\n" "invalid multibulk length"
            "*\r\n" "invalid multibulk length"
            "*1x\r\n" "invalid multibulk length"
            "* 1\r\n" "invalid multibulk length"
            "*+1\r\n" "invalid multibulk length"
            "*2147483648\r\n" "invalid multibulk length"
            "*9223372036854775808\r\n" "invalid multibulk length"
            "*-9223372036854775809\r\n" "invalid multibulk length"
            "*1\r\n:1\r\n" "expected '$', got ':'"
            "*1\r\nPING\r\n" "expected '$', got 'P'"
            "*1\r\n\r\n" "expected '$', got '\r'"
            "*1\r\n\$x\r\n" "invalid bulk length"
            "*1\r\n\$\r\n" "invalid bulk length"
            "*1\r\n\$-1\r\n" "invalid bulk length"
            "*1\r\n\$-5\r\n" "invalid bulk length"
            "*1\r\n\$536870913\r\n" "invalid bulk length"
            "*1\r\n\$9223372036854775808\r\n" "invalid bulk length"
            "*1\r\n\$4 \r\n" "invalid bulk length"
            "*2\r\n\$4\r\nECHO\r\n*1\r\n" "expected '$', got '*'"
        } {
            assert_equal "-ERR Protocol error: [string map {\r { }} $answer]" [last_words $request]
        }
    }

    test "lines without end" {} {
        set long [string repeat x 70000]
        assert_equal "-ERR Protocol error: too big inline request" [last_words $long]
        assert_equal "-ERR Protocol error: too big mbulk count string" [last_words *$long]
        assert_equal "-ERR Protocol error: too big bulk count string" [last_words "*1\r\n\$$long"]
    }

    test "replies before a protocol error are still sent" {} {
        set c [connect]
        $c -raw "PING\r\n*1\r\n\$4\r\nPING\r\n*1\r\n!bad\r\nPING\r\n"
        assert_equal +PONG [$c -line]
        assert_equal +PONG [$c -line]
        assert_equal "-ERR Protocol error: expected '\$', got '!'" [$c -line]
        assert {[$c -closed]}
    }

    test "one byte at a time" {} {
        set request "[request SET key "a\r\nb\x00c\r\n\$5\r\n"]GET key\r\n[request ECHO hi]"
        foreach byte [split $request {}] {
            r -raw $byte
            pause 1
        }
        assert_equal +OK [r -line]
        assert_equal "\$12\r\na\r\nb\x00c\r\n\$5\r\n\r\n\$2\r\nhi\r\n" [r -bytes 27]
    }

    test "cut at every place" {} {
        set request "*3\r\n\$3\r\nSET\r\n\$3\r\nkey\r\n\$5\r\nvalue\r\n*2\r\n\$3\r\nGET\r\n\$3\r\nkey\r\nGET key\r\n"
        set answer "+OK\r\n\$5\r\nvalue\r\n\$5\r\nvalue\r\n"
        for {set cut 1} {$cut < [string length $request]} {incr cut} {
            r -raw [string range $request 0 $cut-1]
            r -raw [string range $request $cut end]
            assert_equal $answer [r -bytes [string length $answer]] "cut at $cut"
        }
    }

    test "a pipeline of twenty thousand commands" {} {
        set count 20000
        set request ""
        for {set i 0} {$i < $count} {incr i} {
            append request "*2\r\n\$4\r\nINCR\r\n\$1\r\nn\r\n"
        }
        r -raw $request
        for {set i 1} {$i <= $count} {incr i} {
            assert_equal $i [r -read]
        }
    }

    test "a pipeline whose replies exceed every buffer" {} {
        r set k [string repeat x 10000]
        for {set i 0} {$i < 3000} {incr i} {
            r -send get k
        }
        for {set i 0} {$i < 3000} {incr i} {
            assert_equal 10000 [string length [r -read]]
        }
        assert_reply {status PONG} r ping
    }

    test "arguments of any size, around every likely limit" {} {
        foreach size {0 1 15 16 63 64 255 256 1023 1024 4095 4096 16383 16384 16385 32766 32767 32768 32769 65535 \
            65536 65537
                131072 1048575 1048576 1048577} {
            set value [pattern_bytes $size $size]
            assert_reply {status OK} r set k $value
            assert {[r get k] eq $value} $size
            assert {[r echo $value] eq $value} $size
        }
    }

    test "commands of many arguments" {} {
        set words {}
        for {set i 0} {$i < 50000} {incr i} {
            lappend words k$i
        }
        assert_reply {int 0} r exists {*}$words
        assert_reply {int 0} r del {*}$words
    }

    test "unknown commands repeat what they got, cut at 128 bytes" {} {
        assert_refused "ERR unknown command 'foo', with args beginning with: " r foo
        assert_refused "ERR unknown command 'FoO', with args beginning with: 'a' '' " r FoO a ""
        assert_refused "ERR unknown command '[string repeat x 128]', with args beginning with: " r [string repeat x 200]
        assert_refused "ERR unknown command 'foo', with args beginning with: '[string repeat a 128]' " r foo \
            [string repeat a 200] b
        assert_refused "ERR unknown command '', with args beginning with: " r ""
        assert_refused "ERR unknown command 'a  b', with args beginning with: '  ' " r "a\r\nb" "\r\n"
        assert_refused "ERR unknown command 'foo', with args beginning with:\
            [string repeat {'1234567890' } 9]'12345678901' " \
            r foo {*}[lrepeat 9 1234567890] 12345678901234567890 left out
    }

    test "HELLO tells about the server" {} {
        set info [r hello]
        assert_equal {server version proto id mode role modules} [dict keys $info]
        assert_equal redis [dict get $info server]
        assert_equal 2 [dict get $info proto]
        assert_equal [r client id] [dict get $info id]
        assert_equal {standalone master {}} [list [dict get $info mode] [dict get $info role] [dict get $info modules]]
        lassign [r -typed hello 3] type pairs
        assert_equal map $type
        assert_equal {bulk proto int 3} [concat {*}[lrange $pairs 4 5]]
        assert_equal 2 [dict get [r hello 2] proto]
        assert_equal array [lindex [r -typed hello 2] 0]
        assert_equal 2 [dict get [r hello] proto]
    }

    test "HELLO with SETNAME and AUTH" {} {
        r hello 3 setname me
        assert_reply {bulk me} r client getname
        r hello 2 SETNAME you AUTH default anything
        assert_reply {bulk you} r client getname
        assert_reply {bulk you} r client getname
        r hello 3 auth default x setname last
        assert_reply {bulk last} r client getname
    }

    test "HELLO refuses" {} {
        assert_refused "NOPROTO unsupported protocol version" r hello 1
        assert_refused "NOPROTO unsupported protocol version" r hello 4
        assert_refused "NOPROTO unsupported protocol version" r hello -3
        assert_refused "ERR Protocol version is not an integer or out of range" r hello x
        assert_refused "ERR Protocol version is not an integer or out of range" r hello 99999999999999999999
        assert_refused "ERR Syntax error in HELLO option 'foo'" r hello 3 foo
        assert_refused "ERR Syntax error in HELLO option 'setname'" r hello 3 setname
        assert_refused "ERR Syntax error in HELLO option 'auth'" r hello 3 auth default
        assert_refused "ERR Client names cannot contain spaces, newlines or special characters." r hello 3 setname "a b"
        assert_refused "WRONGPASS invalid username-password pair or user is disabled." r hello 3 auth nobody x
        assert_reply nullbulk r get none
        assert_reply nullbulk r client getname
    }

    test "RESP3 nulls, maps and sets where RESP2 has other forms" {} {
        r hello 3
        assert_reply null r get none
        assert_reply {array {null}} r mget none
        assert_equal map [lindex [r -typed config get hz] 0]
        assert_equal verbatim [lindex [r -typed client list] 0]
        assert_equal {verbatim txt} [lrange [r -typed info server] 0 1]
        assert_equal {array} [lindex [r -typed keys *] 0]
        assert_equal {array} [lindex [r -typed time] 0]
        assert_reply {bulk 3} r incrbyfloat f 3
        r hello 2
        assert_equal array [lindex [r -typed config get hz] 0]
        assert_equal bulk [lindex [r -typed info server] 0]
        assert_reply nullbulk r get none
    }

    test "every type by DEBUG PROTOCOL" {} {
        if {[string match "error*unknown subcommand*" [r -typed debug protocol string]]} {
            skip "this server has no DEBUG PROTOCOL"
        }
        foreach {what expected} {
            string {bulk {Hello World}}  integer {int 12345}  double {bulk 3.141}  null nullbulk
            array {array {{int 0} {int 1} {int 2}}}  set {array {{int 0} {int 1} {int 2}}}
            map {array {{int 0} {int 0} {int 1} {int 1} {int 2} {int 0}}}  true {int 1}  false {int 0}
            bignum {bulk 1234567999999999999999999999999999999}  verbatim {bulk "This is a verbatim\nstring"}
        } {
            assert_reply $expected r debug protocol $what
        }
        r hello 3
        foreach {what expected} {
            string {bulk {Hello World}}  integer {int 12345}  double {double 3.141}  null null
            array {array {{int 0} {int 1} {int 2}}}  set {set {{int 0} {int 1} {int 2}}}
            map {map {{int 0} {bool 0} {int 1} {bool 1} {int 2} {bool 0}}}  true {bool 1}  false {bool 0}
            bignum {bignum 1234567999999999999999999999999999999}  verbatim {verbatim txt "This is a verbatim\nstring"}
        } {
            assert_reply $expected r debug protocol $what
        }
        r debug protocol push
        assert_equal {{push {{bulk server-cpu-usage} {int 42}}}} [r -pushes]
    }

    test "a protocol switch in a pipeline takes effect in its place" {} {
        r -raw "GET none\r\nHELLO 3\r\nGET none\r\nHELLO 2\r\nGET none\r\n"
        assert_equal nullbulk [r -reply]
        assert_equal map [lindex [r -reply] 0]
        assert_equal null [r -reply]
        assert_equal array [lindex [r -reply] 0]
        assert_equal nullbulk [r -reply]
    }

    test "RESET puts everything back" {} {
        r hello 3
        r select 5
        r client setname me
        r client reply on
        r multi
        assert_reply {status RESET} r reset
        assert_reply nullbulk r client getname
        assert_reply nullbulk r get none
        assert_equal {name {} db 0 resp 2} [lindex [lmap c [client_lines [r client info]] {
            dict filter $c key db name resp
        }] 0]
        assert_refused "ERR EXEC without MULTI" r exec
        assert_refused "ERR wrong number of arguments for 'reset' command" r reset x
    }

    test "PING and ECHO" {} {
        assert_reply {status PONG} r ping
        assert_reply {bulk hello} r ping hello
        assert_reply {bulk {}} r ping ""
        assert_refused "ERR wrong number of arguments for 'ping' command" r ping a b
        assert_reply {bulk {a b}} r echo "a b"
        assert_refused "ERR wrong number of arguments for 'echo' command" r echo
    }

    test "QUIT answers and closes, what follows is not run" {} {
        set c [connect]
        $c -raw "SET a 1\r\nQUIT\r\nSET b 1\r\n"
        assert_equal {+OK +OK} [list [$c -line] [$c -line]]
        assert {[$c -closed]}
        assert_reply {int 1} r exists a b
        set c [connect]
        assert_reply {status OK} $c quit now
        assert {[$c -closed]}
    }

    test "CLIENT REPLY" {} {
        r -send client reply off
        r -send set k 1
        r -send get k
        r -send nonsense
        r -send client reply off
        assert_reply {status OK} r client reply on
        assert_reply {bulk 1} r get k
        r -send client reply skip
        r -send set k 2
        assert_reply {bulk 2} r get k
        r -send client reply skip
        r -send client reply skip
        r -send set k 3
        assert_reply {bulk 3} r get k
        r -send client reply off
        r -send client reply skip
        r -send get k
        assert_reply {status OK} r client reply on
        assert_refused "ERR syntax error" r client reply maybe
        assert_refused "ERR wrong number of arguments for 'client|reply' command" r client reply
    }

    test "half a command and a closed connection leave nothing" {} {
        for {set i 0} {$i < 50} {incr i} {
            set c [connect]
            $c -raw [string range "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$100\r\n[string repeat x 100]" 0 [expr {$i * 3}]]
            $c -close
        }
        assert_reply {int 0} r exists k
        wait_for {[llength [split [string trim [r client list]] "\n"]] == 1}
    }

    test "bytes at random, the server stays" {slow} {
        set seed [expr {[clock microseconds] % 1000000}]
        expr {srand($seed)}
        set pieces [list * \$ \r\n \n 1 2 3 -1 4 PING SET GET k \x00 \xff \" ' " " : + x 999999 \$4\r\nPING\r\n *1\r\n \
            *2\r\n\$3\r\nGET\r\n\$1\r\nk\r\n]
        for {set round 0} {$round < 150} {incr round} {
            set bytes ""
            for {set i 0} {$i < 60} {incr i} {
                append bytes [lindex $pieces [expr {int(rand() * [llength $pieces])}]]
            }
            set c [connect]
            catch {$c -raw $bytes}
            $c -close
            assert_equal PONG [r ping] "seed $seed round $round"
        }
    }
}

with_server {} {
    test "who speaks HTTP is not listened to" {} {
        foreach bytes {
            "SET before 1\r\nPOST / HTTP/1.1\r\nSET after 1\r\n"
            "GET / HTTP/1.1\r\nhost: localhost\r\n\r\nSET after 1\r\n"
            "*1\r\n\$4\r\npOsT\r\n*3\r\n\$3\r\nSET\r\n\$5\r\nafter\r\n\$1\r\n1\r\n"
            "MULTI\r\nHost: x\r\nSET after 1\r\n"
        } {
            set c [connect]
            $c -raw [subst -nocommands -novariables $bytes]
            assert {[$c -closed]} $bytes
            $c -close
        }
        assert_reply {int 0} r exists after
        assert_reply {bulk 1} r get before
        assert {[regexp -all {Possible SECURITY ATTACK} [process_log [srv process]]] == 1}
    }
}

with_server {requirepass secret} {
    test "before authentication requests are kept small" {noconn} {
        if {[srv process] eq {}} {
            server_begin
        }
        foreach {request answer} {
            "*11\r\n" "unauthenticated multibulk length"
            "*1\r\n\$16385\r\n" "unauthenticated bulk length"
        } {
            assert_equal "-ERR Protocol error: $answer" [last_words $request]
        }
        set c [connect]
        assert_refused "NOAUTH Authentication required." $c mget 1 2 3 4 5 6 7 8 9
        assert_refused "NOAUTH Authentication required." $c set k [string repeat x 16384]
        assert_reply {status OK} $c auth secret
        assert_reply {status OK} $c set k [string repeat x 16385]
        assert_reply {int 0} $c del 1 2 3 4 5 6 7 8 9 10 11
    }
}

# Closing with input unread resets the connection, and the reset takes back what was sent before.
foreach loop {epoll io_uring} {
    foreach tls {0 1} {
        if {$tls && !$have_tls} {
            continue
        }
        with_server [list event-loop $loop .tls $tls] {
            test "who is still sending reads why the connection ends: $loop, [expr {$tls ? "TLS" : "plain"}]" {} {
                # Over TLS no more than a socket takes at once: Tcl's channels do not end if they cannot send any more.
                set count [expr {[srv tls] ? 30000 : 1000000}]
                set much [string repeat "PING\r\n" $count]
                for {set i 0} {$i < 5} {incr i} {
                    assert_equal "-ERR Protocol error: expected '\$', got '!'" [last_words "*1\r\n!bad\r\n$much"]
                    assert_equal +OK [last_words "QUIT\r\n$much"]
                }
                assert_reply {status PONG} r ping
                wait_for {[info_field connected_clients clients] == 1}
            }
        }
    }
}
