# Scripts: what the comparison with redis-server cannot see or would break on: the sandbox, bounds, many threads at
# once, keys that were not declared, the cache.

# Runs so many scripts, which differ by the number that takes the place of @.
proc eval_many {client count body} {
    for {set i 0} {$i < $count} {incr i} {
        $client -send eval [string map [list @ $i] $body] 0
    }
    for {set i 0} {$i < $count} {incr i} {
        $client -read
    }
}

with_server {enable-debug-command yes} {
    test "EVAL, EVALSHA and the cache" {} {
        set sha [r script load {return {KEYS[1], ARGV[1]}}]
        assert_equal {a b} [r evalsha $sha 1 a b]
        assert_equal {a b} [r evalsha [string toupper $sha] 1 a b]
        assert_equal 7 [r eval {return 7} 0]
        assert_equal 7 [r evalsha 59b6ab2fbe0ee4b25733de0f62e6cda4899ef8e9 0]
        assert_equal {1 0 1} [r script exists $sha abc 59b6ab2fbe0ee4b25733de0f62e6cda4899ef8e9]
        assert_equal 2 [info_field number_of_cached_scripts memory]
        r script flush
        assert_equal {0} [r script exists $sha]
        assert_refused {NOSCRIPT No matching script. Please use EVAL.} r evalsha $sha 0
        assert_equal 0 [info_field number_of_cached_scripts memory]
    }

    test "a command of a script finds its own key, not that of the command before" {} {
        r hset from a 1
        assert_equal OK [r eval {
            local payload = redis.call('dump', KEYS[1])
            return redis.call('restore', KEYS[2], 0, payload, 'replace')
        } 2 from to]
        assert_equal {a 1} [r hgetall to]
        assert_equal {a 1} [r hgetall from]
        r flushall
    }

    test "every thread finds what one has loaded, and nothing after SCRIPT FLUSH" {} {
        set clients [lmap i {1 2 3 4 5 6 7 8} {connect}]
        set sha [r script load {return redis.call('incr', KEYS[1])}]
        foreach c $clients {
            $c evalsha $sha 1 n
        }
        assert_equal 8 [r get n]
        r script flush sync
        foreach c $clients {
            assert_error NOSCRIPT* {$c evalsha $sha 1 n}
        }
    }

    test "scripts that EVAL brought are bounded, those of SCRIPT LOAD stay, those in use stay" {} {
        set loaded [r script load {return 'loaded'}]
        r eval {return 'used'} 0
        set used [r eval {return redis.sha1hex("return 'used'")} 0]
        for {set i 0} {$i < 10} {incr i} {
            eval_many r 200 "return '@:$i'"
            assert_equal used [r evalsha $used 0]
        }
        assert_range [info_field number_of_cached_scripts memory] 400 502
        assert {[info_field evicted_scripts stats] > 900}
        assert_equal loaded [r evalsha $loaded 0]
    }

    test "ten thousand scripts leave memory where it was" {} {
        eval_many r 1500 {return @ + 1}
        set before [info_field used_memory memory]
        set lua [info_field used_memory_lua memory]
        eval_many r 10000 {return @ + 2}
        assert {[info_field used_memory memory] < $before + 8000000}
        assert {[info_field used_memory_lua memory] < $lua + 8000000}
    }

    test "globals and libraries cannot be changed" {} {
        foreach script {
            {a = 1} {redis.call = 1} {redis.x = 1} {KEYS = 1} {string.upper = 1} {getmetatable('').__index = 1}
            {getmetatable('').__add = 1} {getmetatable('').__index.upper = 1} {_G.x = 1} {_G._G.x = 1}
            {rawset(_G, 'x', 1)} {rawset(redis, 'x', 1)} {setmetatable(_G, {})} {setmetatable(redis, {})}
            {table.insert(redis, 1)} {table.insert(_G, 1)} {getmetatable(_G).__index = 1}
            {rawset(getmetatable(_G), '__index', 1)} {rawset(getmetatable(''), '__index', 1)}
            {function string.upper() end} {math.random = 1} {cjson.encode = 1} {bit.bor = 1} {coroutine.wrap = 1}
            {keydb.call = 1} {os.clock = 1}
            {for k, v in pairs(getmetatable('')) do v.upper = 1 end}
            {for k, v in pairs(_G) do if k == 'string' then v.upper = 1 end end}
            {local n, t = pairs(redis) t.call = 1}
            {local n, t = pairs(redis) rawset(t, 'call', 1)}
            {local k, v = next(_G, nil) while k do if type(v) == 'table' and k ~= 'KEYS' and k ~= 'ARGV' then
             v.x = 1 end k, v = next(_G, k) end}
            {coroutine.wrap(function() x = 1 end)()} {loadstring('x = 1')()}
            {load((function() local n = 0 return function() n = n + 1 return n == 1 and 'x = 1' or nil end end)())()}
        } {
            assert_error "*Attempt to modify a readonly table*" {r eval $script 0}
        }
        assert_equal A [r eval {return ('a'):upper()} 0]
        assert_equal {nil nil} [r eval {return {type(rawget(_G, 'x')), type(rawget(redis, 1))}} 0]
    }

    test "scripts know which server this is, and it is one by all its names" {keydb} {
        set version [info_field keydb_version server]
        scan $version %d.%d.%d major minor patch
        set expected [list keydb $version [expr {$major << 16 | $minor << 8 | $patch}] 1]
        set text {server.SERVER_NAME, keydb.KEYDB_VERSION, redis.KEYDB_VERSION_NUM, server == redis and keydb == redis}
        assert_equal $expected [r eval "return {$text}" 0]
        r function load "#!lua name=which\nlocal same = server == redis\nredis.register_function('which', function()\
            return {$text and same} end)"
        assert_equal $expected [r fcall which 0]
        r function flush
    }

    test "what leads out of the sandbox is not there" {} {
        foreach name {print io debug package require module dofile loadfile newproxy setfenv getfenv jit ffi} {
            assert_error "*nonexistent global variable '$name'*" {r eval "return $name" 0}
        }
        assert_equal clock [r eval {local t = {} for k in pairs(os) do t[#t + 1] = k end return table.concat(t, ' ')} 0]
        assert_equal {} [r eval {return string.dump} 0]
        assert_equal {} [r eval {return table.new} 0]
    }

    test "bytecode is not loaded" {} {
        assert_error "*Error compiling script*binary chunk*" {r eval "\x1bLJ\2\2" 0}
        foreach form {{loadstring('\27LJ\2')} {load((function() local n = 0 return function() n = n + 1
                       return n == 1 and '\27' or n == 2 and 'LJ\2' or nil end end)())}} {
            assert_match {*binary chunk*} [r eval "local f, e = $form return {tostring(f), e}" 0]
        }
    }

    test "numbers that would be values of the FFI library are refused" {} {
        foreach number {1LL 0x1ull 3i 1.5i 12Ull} {
            assert_error "*user_script:2: malformed number near '$number'*" {r eval "local a\n= $number" 0}
            assert_match "*malformed number*" [r eval "return {loadstring('return $number')}  and
                                                         select(2, loadstring('return $number'))" 0]
        }
        assert_equal {1LL 2i} [r eval {--[==[ 1LL ]] ]==] -- 2i
            return {'1LL', [=[2i]=]}} 0]
    }

    test "errors name the line, also of what is called last" {} {
        assert_error "*user_script:2: oops script: *, on @user_script:2." {r eval "local a = 1\nerror('oops')" 0}
        assert_error "* on @user_script:3." {r eval "\n\nreturn redis.call('nosuch')" 0}
        assert_error "* on @user_script:3." {r eval "if true then\n\nreturn redis.call('nosuch') else return end" 0}
        assert_error "ERR user_script:1: *" {r eval "return cjson.decode('x')" 0}
        assert_equal {1 2} [r eval "local function f() return 1, 2 end local a, b = f() return {a, b}" 0]
        assert_error "ERR *" {r eval "error({})" 0}
        assert_error "ERR *" {r eval "return error(setmetatable({}, {__tostring = function() error('x') end}))" 0}
    }

    test "published holes of other servers: stacks of Lua and C" {} {
        set slow [connect -timeout 120000] ;# sanitizers take their time
        # CVE-2021-32626, CVE-2025-46817 (ranges of unpack), and what nests without end
        foreach {script pattern} {
            {return cmsgpack.unpack(string.rep('\145', 100000) .. '\1')} *
            {local t = {} t[1] = t return #cmsgpack.pack(t)} *
            {local t = {} t[1] = t cjson.encode_max_depth(2000000000) return cjson.encode(t)} "*excessive nesting*"
            {cjson.decode_max_depth(2000000000) return cjson.decode(string.rep('[', 1000000))} "*nested*"
            {return cmsgpack.unpack(string.rep('\1', 100000))} "*too many*"
            {return {unpack({1, 2, 3}, -2, 2147483647)}} "*too many results*"
            {return {unpack({}, 0, 2147483647)}} "*too many results*"
            {return {unpack({}, -2147483648, 2147483647)}} "*too many results*"
            {return {string.byte(string.rep('x', 100000), 1, -1)}} "*"
            {return select('#', table.concat({}, '', 1, 2147483647))} "*"
            {local function f() return f() + 1 end return f()} "*stack overflow*"
            {local function f() return pcall(f) end return tostring(f())} *
            {return string.rep('(', 1000000):find(string.rep('(', 1000000))} *
            {return ('x'):rep(100000):gsub(('x?'):rep(100000) .. ('x'):rep(100000), '')} *
            {return loadstring('return ' .. string.rep('(', 100000) .. '1' .. string.rep(')', 100000))} *
            {return loadstring(string.rep('do ', 100000) .. string.rep('end ', 100000))} *
        } {
            catch {$slow eval $script 0} reply
            assert_match $pattern $reply
        }
        assert_equal PONG [r ping]
        # A table that is part of itself
        set c [connect]
        $c -send eval {local t = {} t[1] = t return t} 0
        set depth 0
        while {[set line [$c -line]] eq "*1"} {
            incr depth
        }
        assert_equal "-ERR reached lua stack limit" $line
        assert_range $depth 500 8000
        assert_equal PONG [$c ping]
        # ... and many times part of itself
        assert_error "*reply of more than*" {$slow eval {local t = {} for i = 1, 50 do t[i] = t end return t} 0}
    }

    test "published holes of other servers: sizes in cjson, cmsgpack, struct, bit" {} {
        set slow [connect -timeout 120000]
        # CVE-2022-24834, CVE-2024-31449
        foreach {script pattern} {
            {local s = string.rep('\1', 100000000) return #cjson.encode({s, s})} *
            {return bit.tohex(65535, -2147483648)} 0000FFFF
            {return bit.tohex(65535, 2147483647)} 0000ffff
            {return struct.pack('I2147483647', 1)} "*larger than*"
            {return struct.pack('!2147483648', 1)} "*overflow*"
            {return struct.unpack('c2147483647', 'abc')} "*too short*"
            {return struct.unpack('I1c0', '\255abc')} "*too short*"
            {return struct.unpack('>I8c0', '\255\255\255\255\255\255\255\255abc')} "*too short*"
            {return struct.unpack('b', 'abc', 1e300)} "*too short*"
            {return cmsgpack.unpack('\219\255\255\255\255')} "*Missing bytes*"
            {return cmsgpack.unpack('\221\255\255\255\255')} "*Missing bytes*"
            {return cmsgpack.unpack('\223\255\255\255\255')} "*Missing bytes*"
            {return cmsgpack.unpack_limit('abc', 1e300, 1e300)} "*"
            {return cmsgpack.unpack_one('abc', -2147483648)} "*"
        } {
            catch {$slow eval $script 0} reply
            assert_match $pattern $reply
        }
    }

    test "published holes of other servers: collected while in use, types' metatables, long brackets" {} {
        # CVE-2024-46981 and CVE-2025-49844: whatever is at work stays while memory is collected
        for {set i 0} {$i < 20} {incr i} {
            assert_equal 3 [r eval "collectgarbage() local f = loadstring('collectgarbage() return 1 + 2', \
                '@' .. string.rep('x', 100)) collectgarbage() return f()" 0]
        }
        assert_equal 2000 [r eval {local t = {}
            for i = 1, 2000 do
                local f = loadstring('local a = "' .. ('x'):rep(i) .. '" return #a', ('n'):rep(i))
                t[#t + 1] = f
                if i % 50 == 0 then collectgarbage() end
            end
            return t[2000]()} 0]
        assert_error "*" {r eval {return getmetatable(newproxy(true))} 0}
        assert_equal {0 0} [r eval {return {collectgarbage('stop'), collectgarbage('setpause', 0)}} 0]
        # CVE-2025-46818: no type's metatable can be had
        foreach value {nil true 1 tostring redis.call} {
            catch {r eval "return type(getmetatable($value))" 0} reply
            assert_match "*nil*" $reply
        }
        r function flush
        foreach change {{getmetatable('').__index = function() return 'mine' end} {getmetatable('').__add = 1}
                        {getmetatable('').__metatable = nil} {rawset(getmetatable(''), '__index', nil)}
                        {setmetatable(getmetatable(''), {})} {getmetatable('').__index.len = 1}
                        {getmetatable(_G).__newindex = nil}} {
            assert_error "*" {r eval $change 0}
            r function load replace "#!lua name=l\nredis.register_function('f', function() $change end)"
            assert_error "*" {r fcall f 0}
        }
        assert_equal 3 [r eval {return ('abc'):len()} 0]
        assert_error "*" {r eval {return 'a' + 1} 0}
        # CVE-2025-46819
        foreach text {"--\[" "--\[=" "\[=" "--\[==\[" "return \[=\[" "\[\[" "--\[==" "return \[====" "\[=\[\]"
                      "--\[\[\]"} {
            catch {r eval $text 0} reply
        }
        assert_equal PONG [r ping]
    }

    test "a script may not take all memory" {} {
        set slow [connect -timeout 300000]
        assert_error "*not enough memory*" {$slow eval {local s = ('x'):rep(1000000)
            while true do s = s .. s end} 0}
        assert_error "*" {$slow eval {return #('x'):rep(2147483647)} 0}
        assert_error "*not enough memory*" {$slow eval {local t = {} for i = 1, 1e9 do t[i] = {i} end} 0}
        assert_equal 1 [$slow eval {local ok = pcall(function() local s = 'x' while true do s = s .. s end end)
            return ok and 0 or 1} 0]
        assert {[info_field used_memory_lua memory] < 50000000}
    }

    test "what one script sets does not show in the next" {} {
        r eval {math.randomseed(1)} 0
        r select 0
        r eval {redis.call('select', 3) redis.call('set', 'there', 1) redis.setresp(3)} 0
        assert_equal 0 [r exists there]
        assert_equal {a 1} [r eval {redis.call('hset', KEYS[1], 'a', 1) return redis.call('hgetall', KEYS[1])} 1 h]
        r select 3
        assert_equal 1 [r exists there]
    }

    test "what cjson is told holds for all scripts after it, in every thread, until SCRIPT FLUSH" {} {
        set clients [lmap i {1 2 3 4 5 6 7 8} {connect}]
        set script {return cjson.encode({{1.23456}})}
        r function flush
        r function load "#!lua name=l\nredis.register_function('f', function() $script end)"
        foreach c $clients {
            assert_equal {[[1.23456]]} [$c eval $script 0]
        }
        r eval {cjson.encode_number_precision(3)} 0
        foreach c $clients {
            assert_equal {[[1.23]]} [$c eval $script 0]
            assert_equal {[[1.23456]]} [$c fcall f 0]
        }
        assert_error "*" {r eval {cjson.encode_max_depth(1) error('x')} 0}
        assert_error "*nesting*" {[lindex $clients 3] eval $script 0}
        r script flush
        foreach c $clients {
            assert_equal {[[1.23456]]} [$c eval $script 0]
        }
    }

    test "what scripts call is counted as what clients call" {} {
        r config resetstat
        r eval {redis.call('set', 'x', 1) redis.pcall('incr', 'x', 'y') redis.pcall('lpush', 'x', 1)} 0
        set text [r info commandstats]
        assert_match "*cmdstat_set:calls=1,*cmdstat_*" $text
        assert_match "*cmdstat_incr:calls=0,*rejected_calls=1,failed_calls=0*" $text
        assert_match "*cmdstat_lpush:calls=1,*rejected_calls=0,failed_calls=1*" $text
        assert_match "*cmdstat_eval:calls=1,*rejected_calls=0,failed_calls=0*" $text
        assert_match "*latency_percentiles_usec_lpush:*" [r info latencystats]
        # CONFIG, EVAL and what it calls, INFO twice
        assert_equal 6 [info_field total_commands_processed stats]
    }

    test "set_repl may tell one kind of reader alone" {} {
        r debug journal start
        r eval {redis.set_repl(redis.REPL_AOF) redis.call('set', 'file', 1) redis.set_repl(redis.REPL_REPLICA)
            redis.call('set', 'replica', 1) redis.set_repl(redis.REPL_NONE) redis.call('set', 'none', 1)} 0
        set text [string map {\r\n { }} [r debug journal read]]
        r debug journal stop
        assert_match "*replica*" $text
        assert {![string match *file* $text] && ![string match *none* $text] && ![string match *MULTI* $text]}
        assert_equal 3 [r exists file replica none]
    }

    test "no order that is a matter of chance for scripts" {} {
        r sadd letters [expr {rand()}] c a d b
        set sorted [lsort [r smembers letters]]
        assert_equal $sorted [r eval {return redis.call('sort', KEYS[1], 'by', 'nosort')} 1 letters]
        set script {return redis.call('sort', KEYS[1], 'by', 'x', 'limit', 1, 2)}
        assert_equal [lrange $sorted 1 2] [r eval $script 1 letters]
    }

    test "keys that were not declared: the script is alone from there on" {} {
        r eval {for i = 1, 1000 do redis.call('set', 'k' .. i, i) end} 0
        assert_equal 1000 [r dbsize]
        assert_equal {1000 2} [r eval {redis.call('set', KEYS[1], 2)
            return {redis.call('get', 'k1000'), redis.call('get', KEYS[1])}} 1 mine]
        assert_equal 1001 [r eval {return redis.call('dbsize')} 1 mine]
        assert_equal 1001 [llength [r eval {return redis.call('keys', '*')} 0]]
        r eval {redis.call('flushall')} 1 mine
        assert_equal 0 [r dbsize]
        r multi
        r eval {return redis.call('set', 'far', 1)} 1 near
        r set near 1
        r eval {return redis.call('get', 'far')} 1 near
        assert_equal {OK OK 1} [r exec]
    }

    test "scripts of many threads are atomic, with and without declared keys" {} {
        # Each adds one to some counters that nobody else may see apart.
        set declared [r script load {for i = 1, #KEYS do redis.call('incr', KEYS[i]) end
            local v = redis.call('mget', unpack(KEYS))
            for i = 2, #v do if v[i] ~= v[1] then return 'torn' end end return 'fine'}]
        set undeclared [r script load {redis.call('incr', KEYS[1]) redis.call('incr', 'b') redis.call('incr', 'c')
            local v = redis.call('mget', 'a', 'b', 'c')
            return v[1] == v[2] and v[2] == v[3] and 'fine' or 'torn'}]
        set clients [lmap i {1 2 3 4 5 6 7 8} {connect}]
        set n 0
        foreach c $clients {
            incr n
            for {set i 0} {$i < 200} {incr i} {
                switch [expr {($i + $n) % 4}] {
                    0 { $c -send evalsha $declared 3 a b c }
                    1 { $c -send evalsha $undeclared 1 a }
                    2 {
                        $c -send eval {for _, k in ipairs({'a', 'b', 'c'}) do redis.call('incr', k) end
                            return 'fine'} 0
                    }
                    3 { $c -send set other:$n $i }
                }
            }
        }
        foreach c $clients {
            for {set i 0} {$i < 200} {incr i} {
                set reply [$c -read]
                assert {$reply in {fine OK}} $reply
            }
        }
        assert_equal {1200 1200 1200} [r mget a b c]
    }

    test "what a script did goes to the journal as its effects" {} {
        r debug journal start
        r eval {redis.call('set', 'a', 1) redis.call('get', 'a') redis.call('incr', 'b') return 1} 0
        r eval {redis.call('set', 'one', 1)} 1 one
        r eval {redis.call('get', 'one')} 1 one
        r eval {redis.set_repl(redis.REPL_NONE) redis.call('set', 'hidden', 1) redis.set_repl(redis.REPL_ALL)
            redis.call('set', 'shown', 1)} 2 hidden shown
        catch {r eval {redis.call('set', 'before', 1) error('x')} 1 before}
        set text [string map {\r\n { }} [r debug journal read]]
        r debug journal stop
        assert_match "*MULTI*set*a*incr*b*EXEC*set*one*set*shown*set*before*" $text
        assert {![string match *eval* $text] && ![string match *hidden* $text] && ![string match *get* $text]}
        assert_equal 1 [regexp -all MULTI $text]
    }

    test "RESP3 values both ways" {} {
        set c [connect]
        $c hello 3
        assert_reply {map {{bulk a} {int 1}}} $c eval {return {map = {a = 1}}} 0
        assert_reply {set {{bulk a}}} $c eval {return {set = {a = true}}} 0
        assert_reply {double 1.5} $c eval {return {double = 1.5}} 0
        assert_reply {null} $c eval {return nil} 0
        assert_reply {int 1} $c eval {return true} 0
        assert_reply {bool 1} $c eval {redis.setresp(3) return true} 0
        assert_reply {bignum 123} $c eval {return {big_number = '123'}} 0
        assert_reply {verbatim txt hello} $c eval {return {verbatim_string = {string = 'hello', format = 'txt'}}} 0
        $c hset h f v
        assert_reply {map {{bulk f} {bulk v}}} $c eval {redis.setresp(3) return redis.call('hgetall', KEYS[1])} 1 h
        assert_reply {array {{bulk f} {bulk v}}} $c eval {return redis.call('hgetall', KEYS[1])} 1 h
        assert_equal maptable [r eval {redis.setresp(3) for k, v in pairs(redis.call('hgetall', KEYS[1])) do
            return k .. type(v) end} 1 h]
    }

    test "commands that would wait do not wait in scripts" {keydb} {
        r del l m z s
        foreach command {{blpop l 0} {brpop l 0} {blmove l m left right 0} {brpoplpush l m 0} {blmpop 0 1 l left}
            {bzpopmin z 0} {bzpopmax z 0} {bzmpop 0 1 z min} {xread block 0 streams s $}} {
            assert_reply nullbulk r eval {return redis.call(unpack(ARGV)) or nil} 0 {*}$command
        }
        assert_reply {int 0} r eval {return redis.call('wait', 1, 0)} 0
        assert_equal [list {l a} b c {m c} {z x 1}] [r eval {
            redis.call('rpush', 'l', 'a', 'b', 'c')
            redis.call('zadd', 'z', 1, 'x')
            return {redis.call('blpop', 'l', 0), redis.call('blmove', 'l', 'm', 'left', 'right', 0),
                    redis.call('brpoplpush', 'l', 'm', 0), redis.call('brpop', 'none', 'm', 0) and
                    redis.call('blpop', 'm', 0), redis.call('bzpopmin', 'z', 0)}
        } 0]
        # Keys that are known before, so that it runs beside others, and what others are told.
        r rpush l a b
        assert_equal {{l a} {l b}} [r eval {
            return {redis.call('blpop', KEYS[1], 0), redis.call('brpop', KEYS[1], 0)}
        } 1 l]
        r rpush l x y
        assert_equal {{lpop l} {lmove l m left right}} [lmap effect [effects_of {
            r eval {redis.call('blpop', 'l', 0)} 0
            r eval {redis.call('blmove', 'l', 'm', 'left', 'right', 0)} 0
        }] {string tolower $effect}]
        r del l m z
    }

    test "scripts that may not write, and maxmemory" {} {
        assert_error "*Write commands are not allowed from read-only scripts*" {
            r eval_ro {redis.call('set', 'a', 1)} 1 a
        }
        assert_error "*Write commands*" {r eval "#!lua flags=no-writes\nredis.call('set', 'a', 1)" 1 a}
        assert_error "*with write flag*" {r eval_ro "#!lua\nreturn 1" 0}
        r set a 1
        with_config {maxmemory 1} {
            assert_error "*OOM command not allowed*" {r eval {return redis.call('set', KEYS[1], 1)} 1 a}
            assert_equal 1 [r eval {return redis.call('get', KEYS[1])} 1 a]
            assert_error "OOM command not allowed*" {r eval "#!lua\nreturn 1" 0}
            assert_equal OK [r eval "#!lua flags=allow-oom\nreturn redis.call('set', KEYS\[1\], 1)" 1 a]
            assert_equal 1 [r eval "#!lua flags=no-writes\nreturn 1" 0]
            assert_equal 1 [r eval {redis.call('del', KEYS[1]) redis.call('set', KEYS[1], 2) return 1} 1 a]
        }
    }
}
