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
}
