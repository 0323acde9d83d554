# Functions: libraries that all threads share, what they may see while they are loaded, and the journal.

proc library {name args} {
    set code "#!lua name=$name\n"
    foreach {function body} $args {
        append code "redis.register_function('$function', function(keys, args) $body end)\n"
    }
    return $code
}

with_server {enable-debug-command yes} {
    test "FUNCTION LOAD, LIST, DELETE, FLUSH, and FCALL from every thread" {} {
        set clients [lmap i {1 2 3 4 5 6 7 8} {connect}]
        assert_equal one [r function load [library one f {return redis.call('incr', keys[1])} g {return args[1]}]]
        foreach c $clients {
            $c fcall f 1 n
            assert_equal x [$c fcall g 0 x]
        }
        assert_equal 8 [r get n]
        assert_refused {ERR Library 'one' already exists} r function load [library one f {return 1}]
        assert_refused {ERR Function f already exists} r function load [library two f {return 1}]
        assert_equal one [r function load replace [library one f {return 'new'}]]
        foreach c $clients {
            assert_equal new [$c fcall F 0]
            assert_refused {ERR Function not found} $c fcall g 0 x
        }
        assert_equal 1 [llength [r function list]]
        assert_equal 1 [info_field number_of_libraries memory]
        assert_equal OK [r function delete one]
        assert_refused {ERR Library not found} r function delete one
        foreach c $clients {
            assert_refused {ERR Function not found} $c fcall f 0
        }
        r function load [library one f {return 1}]
        r function flush
        assert_equal {} [r function list]
        assert_equal 0 [info_field number_of_functions memory]
    }

    test "flags and what a function may not" {} {
        r function flush
        r function load {#!lua name=l
            redis.register_function{function_name = 'ro', callback = function(keys)
                return redis.call('set', keys[1], 1) end, flags = {'no-writes'}, description = 'reads'}
            redis.register_function('rw', function(keys) return redis.call('set', keys[1], 1) end)
            redis.register_function('global', function() x = 1 end)
            redis.register_function('keys', function() return KEYS end)
            redis.register_function('again', function() return redis.register_function('x', function() end) end)}
        assert_error "*Write commands are not allowed from read-only scripts*" {r fcall ro 1 k}
        assert_error "ERR Can not execute a script with write flag using *_ro command." {r fcall_ro rw 1 k}
        assert_equal OK [r fcall rw 1 k]
        assert_error "*Attempt to modify a readonly table*" {r fcall global 0}
        assert_error "*nonexistent global variable 'KEYS'*" {r fcall keys 0}
        assert_error "*register_function*" {r fcall again 0}
        assert_match "*name ro description reads flags no-writes*" [r function list]
    }

    test "while a library is loaded there is nothing but register_function" {} {
        r function flush
        foreach name {redis.call redis.setresp math string pairs _G KEYS load setmetatable} {
            assert_error "ERR Error registering functions:*nonexistent global variable*" {
                r function load "#!lua name=l\nlocal x = $name"
            }
        }
        assert_error "*readonly*" {r function load "#!lua name=l\nx = 1"}
        assert_error "*readonly*" {r function load "#!lua name=l\nredis.x = 1"}
        assert_error "ERR No functions registered" {r function load "#!lua name=l\nreturn"}
        assert_error "*FUNCTION LOAD timeout*" {r function load "#!lua name=l\nwhile true do end"}
        assert_equal {} [r function list]
        assert_equal PONG [r ping]
    }

    test "functions in transactions, and in the journal" {} {
        r function flush
        r debug journal start
        r multi
        r function load [library l f {return redis.call('set', keys[1], args[1])}]
        r fcall f 1 k v
        assert_equal {l OK} [r exec]
        r function delete l
        set text [string map {\r\n { }} [r debug journal read]]
        r debug journal stop
        assert_match "*MULTI*function*load*set*k*v*EXEC*function*delete*l*" $text
        assert {![string match *fcall* $text]}
    }

    test "FUNCTION DUMP and RESTORE: the bytes are those of redis-server, and nothing is half loaded" {} {
        # As redis-server 7.0 writes it, one in full and one compressed.
        set a "#!lua name=a\n redis.register_function(\"fa\", function(keys,args) return 1 end)"
        set plain "\xf5\x40\x4d$a\n\x00\x62\xa3\x86\xd8\x75\xb1\x25\xc1"
        r function flush
        assert_equal OK [r function restore $plain]
        assert_equal $plain [r function dump]
        assert_equal 1 [r fcall fa 0]
        r function flush
        assert_equal "\x0a\x00\x5d\x9b\x5c\x40\x0f\x7f\xa2\xda" [r function dump]
        set long "#!lua name=big\n-- [string repeat a 90]\n redis.register_function('big', function() return 2 end)"
        r function load $long
        r function load [library two f {return 'f'} g {return 'g'}]
        set both [r function dump]
        assert {[string length $both] < [string length $long] + 80}
        r function flush
        r function load [library c fa {return 1} f {return 3}]
        assert_refused {ERR Function f already exists} r function restore $both
        assert_refused {ERR Function f already exists} r function restore $both replace
        assert_refused {ERR Function not found} r fcall big 0
        assert_equal 3 [r fcall f 0]
        assert_equal OK [r function restore $both FLUSH]
        assert_equal {2 g} [list [r fcall big 0] [r fcall g 0]]
        assert_refused {ERR Function not found} r fcall fa 0
        assert_refused {ERR Library big already exists} r function restore $both APPEND
        assert_equal OK [r function restore $both REPLACE]
        assert_equal $both [r function dump]
        assert_error "ERR Wrong restore policy given*" {r function restore $both all}
        assert_error "ERR unknown subcommand*" {r function restore $both flush x}
        for {set i 0} {$i < [string length $both]} {incr i} {
            set byte [format %c [expr {[scan [string index $both $i] %c] ^ 1}]]
            assert_refused {ERR DUMP payload version or checksum are wrong} \
                r function restore [string replace $both $i $i $byte] flush
            assert_refused {ERR DUMP payload version or checksum are wrong} \
                r function restore [string range $both 0 $i-1] flush
        }
        assert_equal $both [r function dump]
        set text [r function list]
        assert_refused {ERR Failed loading library payload} \
            r function restore "\xf5\x7f\xffabc\x0a\x00\xc8\x83\x00\x9e\x21\x71\x26\xe5" flush
        r set k v
        assert_refused {ERR given type is not a function} r function restore [r dump k] flush
        assert_equal $text [r function list]
    }

    test "what RESTORE brought is in the journal as it came, and other threads run it" {} {
        r function flush
        r function load [library l f {return redis.call('incr', keys[1])}]
        set payload [r function dump]
        r debug journal start
        r del n
        r function restore $payload flush
        set text [r debug journal read]
        r debug journal stop
        assert_match "*function*restore*flush*" [string map {\r\n { }} $text]
        assert {[string first $payload $text] > 0}
        foreach c [lmap i {1 2 3 4 5 6} {connect}] {
            $c fcall f 1 n
        }
        assert_equal 6 [r get n]
    }
}
