# Servers that start from an append only file: what comes from it, and what is said where it cannot be read.

set manifest "file appendonly.aof.1.base.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\nfile\
    appendonly.aof.2.incr.aof seq 2 type i\n"
set base appendonlydir/appendonly.aof.1.base.aof
set first appendonlydir/appendonly.aof.1.incr.aof
set last appendonlydir/appendonly.aof.2.incr.aof
set manifest_path appendonlydir/appendonly.aof.manifest

# Commands as they stand in a file.
proc written args {
    set text {}
    foreach words $args {
        append text [request {*}$words]
    }
    return $text
}

# A folder with a base and two increments, changed by path/content pairs; content - : not there.
proc aof_folder {changes} {
    set files [dict create $::manifest_path $::manifest $::base [written {select 0} {set a 1}] \
        $::first [written {select 0} {set b 2}] $::last [written {select 0} {set c 3}]]
    return [folder_of [dict merge $files $changes]]
}

proc folder_of files {
    set folder [fresh_dir]
    file mkdir $folder/appendonlydir
    dict for {path content} $files {
        if {$content ne "-"} {
            spit $folder/$path $content
        }
    }
    return $folder
}

proc start_in {folder portName args} {
    upvar 1 $portName port
    set port [free_port]
    return [server_launch [list --port $port --dir $folder --save "" --appendonly yes --enable-debug-command yes \
        {*}[thread_args] {*}$args]]
}

# Runs body with `s`, a client of a server that has loaded what is there, and `folder`, `id`.
proc with_aof {folder_ body args} {
    upvar 1 s s folder folder id id
    set folder $folder_
    set id [start_in $folder port {*}$args]
    if {![wait_until {![process_alive $id] || ![catch {set s [connect -port $port -tls 0]}]} 20000] ||
            ![process_alive $id]} {
        fail "the server did not start:\n[process_log $id]"
    }
    wait_until {[string match "*\nloading:0*" [$s info persistence]]} 20000
    uplevel 1 $body
    $s -close
    process_stop $id
}

# The one line with which a server refuses to start; the files are as they were.
proc aof_refusal {folder args} {
    set before [contents $folder]
    set id [start_in $folder port {*}$args]
    assert_equal 1 [process_wait $id]
    assert_equal $before [contents $folder]
    set lines [lsearch -all -inline [split [process_log $id] "\n"] "*The server does not start*"]
    assert_equal 1 [llength $lines] [process_log $id]
    return [lindex $lines 0]
}

proc contents folder {
    set all {}
    foreach path [lsort [concat [glob -nocomplain -type f $folder/*] [glob -nocomplain -type f $folder/*/*]]] {
        lappend all [file tail $path] [slurp $path]
    }
    return $all
}

proc sha1 text {
    return [lindex [exec sha1sum << $text] 0]
}

test "base and increments, in their order" {} {
    with_aof [aof_folder [list $::last [written {select 0} {set a x} {del b} {select 3} {set d 4}]]] {
        assert_equal x [$s get a]
        assert_equal 0 [$s exists b]
        $s select 3
        assert_equal 4 [$s get d]
        assert_match "*DB loaded from base file appendonly.aof.1.base.aof: *" [process_log $id]
        assert_match "*DB loaded from incr file appendonly.aof.2.incr.aof: *" [process_log $id]
        assert_match "*DB loaded from append only file: *" [process_log $id]
    }
}

test "each file begins in database 0" {} {
    with_aof [aof_folder [list $::first [written {select 5} {set b 2}] $::last [written {set c 3}]]] {
        assert_equal 3 [$s get c]
        $s select 5
        assert_equal {2 {}} [list [$s get b] [$s get c]]
    }
}

test "empty files, no increments, only increments" {} {
    with_aof [folder_of [list $::manifest_path $::manifest $::base {} $::first {} $::last {}]] {
        assert_equal 0 [$s dbsize]
    }
    with_aof [folder_of [list $::manifest_path "file b seq 1 type b\n" appendonlydir/b [written {set a 1}]]] {
        assert_equal 1 [$s get a]
    }
    with_aof [folder_of [list $::manifest_path "file i seq 7 type i\n" appendonlydir/i [written {set a 1}]]] {
        assert_equal 1 [$s get a]
    }
}

test "history is not loaded, and need not be there" {} {
    with_aof [aof_folder [list $::manifest_path "file h seq 1 type h\n$::manifest"]] {
        assert_equal 3 [$s dbsize]
    }
}

test "transactions" {} {
    with_aof [aof_folder [list $::last [written {select 0} multi {set x 1} {select 1} {set y 2} exec {set z 3}]]] {
        assert_equal 1 [$s get x]
        $s select 1
        assert_equal {2 3} [$s mget y z]
    }
}

test "a transaction within a transaction is told, and changes nothing" {} {
    with_aof [aof_folder [list $::last [written {select 0} multi {set x 1} multi {set y 2} exec {set z 3}]]] {
        assert_equal {1 2 3} [$s mget x y z]
        assert_match "*'ERR MULTI calls can not be nested' after processing the command 'multi' at byte 65 of *" \
            [process_log $id]
    }
}

test "notes and timestamps" {} {
    set text "#TS:1700000000\r\n[written {select 0} multi]#TS:1700000001\r\n[written {set c 3} exec]# else\n"
    with_aof [aof_folder [list $::last $text]] {
        assert_equal 3 [$s get c]
    }
}

test "nothing expires before a command says so" {} {
    set commands {{set a 1 pxat 1000} {append a 2} {persist a} {set b 1} {pexpireat b 1000} {append b 2}
        {hset h f 1 g 1} {hpexpireat h 1000 fields 1 f} {hset h f 2} {sadd m x y} {pexpirememberat m x 1000}
        {set g 1} {getex g pxat 1000} {persist g} {set e 1 pxat 1000}}
    with_aof [aof_folder [list $::last [written {select 0} {*}$commands]]] {
        assert_equal 12 [$s get a]
        assert_equal -1 [$s ttl a]
        assert_equal {} [$s get b]
        assert_equal {2 1} [$s hmget h f g]
        assert_equal y [$s smembers m]
        assert_equal 1 [$s get g]
        assert_equal {} [$s get e]
    }
}

test "scripts and functions" {} {
    set code "#!lua name=lib\nredis.register_function('f', function(keys, args) return redis.call('set', keys\[1\],\
        args\[1\]) end)"
    set commands [list [list function load $code] {fcall f 1 x 1} {eval "return redis.call('incr', KEYS[1])" 1 x} \
        {script load "return 1"} {eval {redis.call('set', 'undeclared', 1) redis.call('select', 2)} 0} \
        {eval "error('x')" 0} {set y 1}]
    with_aof [aof_folder [list $::last [written {select 0} {*}$commands]]] {
        assert_equal {2 1 1} [$s mget x undeclared y]
        assert_equal OK [$s fcall f 1 x 7]
        assert_equal 7 [$s get x]
        assert_equal {1} [$s script exists [sha1 "return 1"]]
        assert_match "*is sending an error to its AOF-loading-client: *after processing the command 'eval'*" \
            [process_log $id]
    }
}

test "commands that do nothing to data are passed over" {} {
    set commands {ping {publish c m} {get a} {blpop nothing 0} {set c 3}}
    with_aof [aof_folder [list $::last [written {*}$commands]]] {
        assert_equal 3 [$s get c]
    }
}

test "a command that fails is told, and the rest is loaded" {} {
    with_aof [aof_folder [list $::last [written {select 0} {lpush a x} {set c 3}]]] {
        assert_equal {1 3} [$s mget a c]
        assert_match "*'-WRONGTYPE *' after processing the command 'lpush' at byte 23 of appendonly.aof.2.incr.aof*" \
            [process_log $id]
    }
}

test "strings longer than proto-max-bulk-len, which was larger" {} {
    set long [string repeat x 800000]
    set text [written "select 0" "append a $long" "append a $long" "setrange b 2000000 x" "setbit c 80000000 1"]
    with_aof [aof_folder [dict create $::last $text]] {
        assert_equal {1600001 2000001 10000001} [list [$s strlen a] [$s strlen b] [$s strlen c]]
        assert_refused "ERR string exceeds maximum allowed size (proto-max-bulk-len)" $s append a x
    } --proto-max-bulk-len 1mb
}

test "loading is no work of clients" {} {
    with_aof [aof_folder {}] {
        assert {![string match *cmdstat_set:* [$s info commandstats]]}
        assert_match "*rdb_changes_since_last_save:0\r\n*" [$s info persistence]
    }
}

test "an RDB file as base, and before commands" {} {
    set id [server_launch [list --port [set port [free_port]] --save "" --dir [set from [fresh_dir]]]]
    wait_for {![catch {set s [connect -port $port -tls 0]}]}
    $s set gone 1 pxat 9999999999999
    $s set a 1
    $s rpush l 1 2 3
    $s function load "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
    $s save
    process_stop $id
    set rdb [slurp $from/dump.rdb]
    set files [list $::manifest_path "file x.rdb seq 1 type b\nfile y seq 1 type i\n" appendonlydir/x.rdb $rdb \
        appendonlydir/y [written {incr a}]]
    with_aof [folder_of $files] {
        assert_equal {2 {1 2 3} 1} [list [$s get a] [$s lrange l 0 -1] [$s fcall f 0]]
    }
    with_aof [folder_of [list appendonly.aof $rdb[written {incr a} {del l}]]] {
        assert_equal {2 0 1} [list [$s get a] [$s exists l] [$s fcall f 0]]
    }
    # Damaged, it keeps the server from starting.
    lset files 3 [string range $rdb 0 end-1]
    assert_match "*Error reading the RDB preamble of the AOF file x.rdb: at byte *" [aof_refusal [folder_of $files]]
}

test "a single file of old is taken over" {} {
    with_aof [folder_of [list appendonly.aof [written {set old 1}]]] {
        assert_equal 1 [$s get old]
        assert_equal 0 [file exists $folder/appendonly.aof]
        assert_equal [written {set old 1}] [slurp $folder/appendonlydir/appendonly.aof]
        assert_match "*file appendonly.aof seq 1 type b\n*" [slurp $folder/$::manifest_path]
        assert_match "*Successfully migrated an old-style AOF file*" [process_log $id]
    }
    with_aof $folder {
        assert_equal 1 [$s get old]
    }
}

test "taking over goes on where it was interrupted" {} {
    with_aof [folder_of [list appendonly.aof [written {set old 1}] \
        $::manifest_path "file appendonly.aof seq 1 type b\n"]] {
        assert_equal 1 [$s get old]
        assert_equal 0 [file exists $folder/appendonly.aof]
    }
}

test "an old file beside new ones is left alone" {} {
    with_aof [aof_folder [list appendonly.aof [written {set old 1}]]] {
        assert_equal 3 [$s dbsize]
        assert_equal [written {set old 1}] [slurp $folder/appendonly.aof]
    }
}

test "other names" {} {
    with_aof [folder_of [list mine [written {set old 1}]]] {
        assert_equal 1 [$s get old]
        assert_equal 1 [file exists $folder/there/mine.manifest]
    } --appendfilename mine --appenddirname there
}

test "who switches the file on does not lose the snapshot" {} {
    set id [server_launch [list --port [set port [free_port]] --save "" --dir [set from [fresh_dir]]]]
    wait_for {![catch {set s [connect -port $port -tls 0]}]}
    $s set a 1
    $s save
    process_stop $id
    with_aof $from {
        assert_equal 1 [$s get a]
        assert_match "*No append-only file yet: loading the data from dump.rdb*" [process_log $id]
    }
}

# --- the end is missing ---

test "what is missing at the end of the last file costs the last command" {} {
    set whole [written {select 0} {set c 3} {set d 4}]
    set kept [written {select 0} {set c 3}]
    for {set size [expr {[string length $kept] + 1}]} {$size < [string length $whole]} {incr size 5} {
        with_aof [aof_folder [list $::last [string range $whole 0 $size-1]]] {
            assert_equal {3 {}} [$s mget c d]
            assert_equal $kept [string range [slurp $folder/$::last] 0 [string length $kept]-1]
            assert_match "*Truncating the AOF appendonly.aof.2.incr.aof at offset [string length $kept] *" \
                [process_log $id]
            assert_match "*loaded anyway because aof-load-truncated is enabled*" [process_log $id]
        }
    }
}

test "a transaction that is not all there is cut off" {} {
    set whole [written {select 0} {set c 3} multi {set d 4} {set e 5} exec]
    set kept [written {select 0} {set c 3}]
    for {set size [expr {[string length $kept] + 15}]} {$size < [string length $whole]} {incr size 9} {
        with_aof [aof_folder [list $::last [string range $whole 0 $size-1]]] {
            assert_equal {3 {} {}} [$s mget c d e]
            assert_equal $kept [string range [slurp $folder/$::last] 0 [string length $kept]-1]
            assert_match "*Revert incomplete MULTI/EXEC transaction in AOF file*" [process_log $id]
        }
    }
}

test "half a note is cut off" {} {
    with_aof [aof_folder [list $::last "[written {set c 3}]#TS:17"]] {
        assert_equal 3 [$s get c]
        assert_match "*at offset 27 *" [process_log $id]
    }
}

test "aof-load-truncated no" {} {
    set line [aof_refusal [aof_folder [list $::last "[written {set c 3}]*1\r\n\$3"]] --aof-load-truncated no]
    assert_match "*Unexpected end of file reading the append only file appendonly.aof.2.incr.aof: at byte 27.*" $line
}

test "only the last file may end early" {} {
    foreach path [list $::base $::first] {
        set line [aof_refusal [aof_folder [list $path "[written {set x 3}]*1\r\n\$3"]]]
        assert_match "*the truncated file is not the last file: [file tail $path] ends early: at byte 27.*" $line
    }
    set line [aof_refusal [aof_folder [list $::first [written multi {set x 3}]]]]
    assert_match "*the truncated file is not the last file*at byte 0.*" $line
}

test "a length that swallows commands is damage, not an end" {} {
    set text [string map {"\$1\r\nx" "\$100\r\nx"} [written {set c 3} {set x 3} {set y 4}]]
    set line [aof_refusal [aof_folder [list $::last $text]]]
    assert_match "*Bad file format*at byte 27: a length is larger than what follows*" $line
}

# --- damage ---

test "what is no command is refused, with its place" {} {
    foreach {text reason} {
        !SET           "expected '*' at the beginning of a command"
        "*0\r\n"       "a command has no arguments"
        "*x\r\n\$1\r\na\r\n" "a length is not a number"
        "*1\r\n\$-1\r\n"     "a length is not a number"
        "*1\r\n:1\r\n"       "expected '$' at the beginning of an argument"
        "*1\n\$4\nPING\n"    "a length is not a number"
        "*2\r\n\$3\r\nGETxx\$1\r\na\r\n" "an argument is longer than its length says"
        "*9999999999999999999\r\n"       "a length is too large"
    } {
        set line [aof_refusal [aof_folder [list $::last "[written {set c 3}]$text"]]]
        assert_equal 1 [string match "*Bad file format reading the append only file appendonly.aof.2.incr.aof: at byte\
            27: [string map {* \\* \[ \\\[} $reason].*keydb-check-aof --fix*" $line] "$text: $line"
    }
}

test "commands that cannot be are refused, with their place" {} {
    foreach {command reason} {
        {foobar x}     "*Unknown command 'foobar' reading the append only file *: at byte 27*"
        {set c}        "*at byte 27: the command 'set' has a wrong number of arguments*"
        shutdown       "*at byte 27: the command 'shutdown' does not belong into such a file*"
        {config set hz 1} "*at byte 27: the command 'config' does not belong into such a file*"
        post           "*at byte 27: the command 'post' does not belong into such a file*"
        {host: x}      "*at byte 27: the command 'host:' does not belong into such a file*"
        {subscribe x}  "*at byte 27: the command 'subscribe' does not belong into such a file*"
        {select 99}    "*at byte 27: the command 'select' names a database that is not there*"
    } {
        assert_match $reason [aof_refusal [aof_folder [list $::last [written {set c 3} $command]]]]
    }
}

test "files that are missing" {} {
    foreach path [list $::base $::first $::last] {
        assert_match "*Unable to obtain the AOF file [file tail $path] length. stat: No such file*" \
            [aof_refusal [aof_folder [list $path -]]]
    }
}

test "a server never starts empty where its manifest is missing" {} {
    assert_match "*The append-only file has no manifest: *appendonly.aof.manifest does not*" \
        [aof_refusal [aof_folder [list $::manifest_path -]]]
    assert_match "*The append-only file has no manifest*" [aof_refusal [aof_folder [list $::manifest_path "#\n"]]]
}

test "a manifest that is damaged" {} {
    foreach {text reason} {
        ""                    "Found an empty AOF manifest"
        "\n"                  "Invalid AOF manifest file format"
        "file a seq 1 type b" "The AOF manifest file contains too long line"
        "file a seq 1 type x\n" "at line 1 >>> 'file a seq 1 type x': Unknown AOF file type"
        "file a/b seq 1 type b\n" "File can't be a path, just a filename"
        "#\nfile a seq 2 type i\nfile b seq 1 type i\n" "at line 3 >>> *: Found a non-monotonic sequence number"
        "file a seq 1 type b\nfile b seq 2 type b\n" "Found duplicate base file information"
    } {
        assert_match "*appendonly.aof.manifest*$reason*" [aof_refusal [aof_folder [list $::manifest_path $text]]]
    }
}

test "the folder is no folder" {} {
    set folder [fresh_dir]
    spit $folder/appendonlydir x
    assert_match "*appendonlydir*: Not a directory*" [aof_refusal $folder]
}

test "what stands in for the file is no file" {} {
    set folder [aof_folder [list $::last -]]
    file mkdir $folder/$::last
    assert_match "*Unrecoverable error reading the append only file appendonly.aof.2.incr.aof: at byte 0: Is a dir*" \
        [aof_refusal $folder]
}

# --- while it loads, and later ---

test "clients hear that the server loads, and see how far it is" {} {
    set text [written {select 0}]
    for {set i 0} {$i < 200} {incr i} {
        append text [written [list set key$i [string repeat x 100000]]]
    }
    append text [written [list eval {local t = 0 for i = 1, 3e8 do t = t + i end} 0] {set done 1}]
    set folder [aof_folder [list $::last $text]]
    set id [start_in $folder port]
    wait_for {![catch {set s [connect -port $port -tls 0]}]}
    wait_for {[string match "*\nloading_loaded_bytes:\[1-9\]*" [set info [$s info persistence]]]}
    assert_match "*\nloading:1*\nloading_total_bytes:2\[0-9\]*\nloading_eta_seconds:*" $info
    assert_refused "LOADING Redis is loading the dataset in memory" $s get key1
    wait_for {[string match "*\nloading:0*" [$s info persistence]]} 60000
    assert_equal 1 [$s get done]
    $s -close
    process_stop $id
}

test "a server that is to stop does not wait for its data" {} {
    set text [written {select 0} [list eval {while true do end} 0] {set done 1}]
    set id [start_in [aof_folder [list $::last $text]] port]
    wait_for {![catch {set s [connect -port $port -tls 0]}]}
    assert_match "*\nloading:1*" [$s info persistence]
    process_signal $id TERM
    assert_equal 0 [process_wait $id]
}

test "DEBUG LOADAOF" {} {
    set code "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
    with_aof [aof_folder {}] {
        $s set a other
        $s function load $code
        $s set expired 1 px 1
        foreach way {commands rewritten} {
            assert_equal OK [$s debug loadaof]
            assert_equal {other 2 3} [$s mget a b c]
            assert_equal 1 [$s fcall f 0]
            $s bgrewriteaof
            wait_for {[string match *aof_rewrite_in_progress:0* [$s info persistence]]}
        }
        assert_equal OK [$s debug loadaof]
        assert_equal {other 2 3} [$s mget a b c]
        wait_for {[$s dbsize] == 3}
    }
    # What it loaded is not written once more.
    with_aof $folder {
        assert_equal {other 2 3} [$s mget a b c]
        assert_equal 3 [$s dbsize]
    }
}

with_server {enable-debug-command yes} {
    test "DEBUG LOADAOF without a file" {} {
        r set a 1
        assert_refused "ERR Error trying to load the AOF files, check server logs." r debug loadaof
        assert_equal 1 [r get a]
    }

    test "without appendonly a rewrite leaves what DEBUG LOADAOF loads" {} {
        r set a 1
        r bgrewriteaof
        wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
        r set a 2
        r set b 3
        assert_equal OK [r debug loadaof]
        assert_equal {1 {}} [r mget a b]
    }
}
