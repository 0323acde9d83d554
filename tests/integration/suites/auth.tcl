# A password for everybody: requirepass and AUTH.

set noauth "NOAUTH Authentication required."
set wrongpass "WRONGPASS invalid username-password pair or user is disabled."

with_server {requirepass secret} {
    test "without AUTH nothing but AUTH, HELLO, QUIT, RESET" {} {
        set c [connect]
        foreach command {{get k} {set k v} {ping} {config get *} {multi} {client id} {select 1} {flushall} {info} \
            {command}
                {echo x} {shutdown nosave} {time} {dbsize}} {
            assert_refused $::noauth $c {*}$command
        }
        assert_reply {status RESET} $c reset
        assert_refused $::noauth $c ping
        assert_reply {status OK} $c quit
    }

    test "unknown commands and wrong numbers of arguments are told apart before authentication" {} {
        set c [connect]
        assert_refused "ERR unknown command 'foo', with args beginning with: 'bar' " $c foo bar
        assert_refused "ERR wrong number of arguments for 'get' command" $c get
    }

    test "AUTH with the right and the wrong password" {} {
        set c [connect]
        assert_refused $::wrongpass $c auth wrong
        assert_refused $::wrongpass $c auth ""
        assert_refused $::wrongpass $c auth secretx
        assert_refused $::wrongpass $c auth secre
        assert_refused $::wrongpass $c auth "secret\x00"
        assert_refused $::wrongpass $c auth nobody secret
        assert_refused $::noauth $c get k
        assert_reply {status OK} $c auth secret
        assert_reply nullbulk $c get k
        assert_reply {status OK} $c auth default secret
        assert_refused $::wrongpass $c auth wrong
        assert_reply nullbulk $c get k
        assert_refused "ERR wrong number of arguments for 'auth' command" $c auth
        assert_refused "ERR syntax error" $c auth a b c
    }

    test "HELLO with AUTH" {} {
        set c [connect]
        set text "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user>\
            <pass>\
            option can be used to authenticate the client and select the RESP protocol version at the same time"
        assert_refused $text $c hello
        assert_refused $text $c hello 3
        assert_refused $text $c hello 2 setname x
        assert_refused $::wrongpass $c hello 3 auth default wrong
        assert_refused $::noauth $c ping
        assert_refused "NOPROTO unsupported protocol version" $c hello 9 auth default secret
        assert_refused $::noauth $c ping
        assert_equal map [lindex [$c -typed hello 3 auth default secret setname me] 0]
        assert_reply {bulk me} $c client getname
        assert_reply null $c get k
    }

    test "who neither authenticates nor reads is closed" {keydb} {
        set c [connect]
        set closed [info_field client_output_buffer_limit_disconnections stats]
        set commands [string repeat [request set key value] 1000]
        for {set i 0} {$i < 500} {incr i} {
            catch {$c -raw $commands}
        }
        wait_for {[info_field client_output_buffer_limit_disconnections stats] > $closed}
        assert {[$c -closed]}
    }

    test "who does not authenticate and reads is told so, however much comes at once" {keydb} {
        set c [connect]
        $c -raw [string repeat [request ping] 20000]
        for {set i 0} {$i < 20000} {incr i} {
            $c -reply
        }
        assert_reply {status OK} $c auth secret
    }

    test "RESET forgets the authentication" {} {
        set c [connect]
        $c auth secret
        $c ping
        assert_reply {status RESET} $c reset
        assert_refused $::noauth $c ping
    }

    test "AUTH in a transaction and in a pipeline" {} {
        set c [connect]
        $c -raw "PING\r\nAUTH secret\r\nPING\r\nMULTI\r\nGET k\r\nEXEC\r\n"
        assert_equal [list error $::noauth] [$c -reply]
        assert_equal {OK PONG OK QUEUED} [list [$c -read] [$c -read] [$c -read] [$c -read]]
        assert_equal {array nullbulk} [$c -reply]
    }

    test "the password can be changed and removed; who is in stays in" {} {
        set c [connect]
        $c auth secret
        r config set requirepass other
        assert_reply {status PONG} $c ping
        set late [connect]
        assert_refused $::wrongpass $late auth secret
        assert_reply {status OK} $late auth other
        assert_equal {requirepass other} [r config get requirepass]
        r config set requirepass ""
        set free [connect]
        assert_reply {status PONG} $free ping
        assert_refused "ERR AUTH <password> called without any password configured for the default user. Are you sure\
            your\
            configuration is correct?" $free auth other
        assert_reply {status OK} $free auth default whatever
        r config set requirepass secret
        assert_refused $::noauth [connect] ping
    }

    test "CLIENT LIST shows who has authenticated" {} {
        set c [connect]
        $c auth secret
        foreach line [client_lines [r client list]] {
            assert_equal default [dict get $line user]
        }
    }
}

with_server {requirepass "a b\"c'\\x"} {
    test "passwords may hold blanks, quotes and backslashes" {} {
        set c [connect]
        assert_refused $::wrongpass $c auth "a b"
        assert_reply {status OK} $c auth "a b\"c'\\x"
        assert_equal [list requirepass "a b\"c'\\x"] [$c config get requirepass]
    }
}
