# keydb-check-rdb: whole files, cut and damaged ones, those of other servers; what it says and its exit codes.

# Its exit code and all it says.
proc check_rdb args {
    set tool [file join [file dirname $::settings(server)] keydb-check-rdb]
    if {![file exists $tool]} {
        skip "no keydb-check-rdb beside the server"
    }
    if {[catch {exec -ignorestderr $tool {*}$args 2>@1} text details]} {
        set code [dict get $details -errorcode]
        return [list [expr {[lindex $code 0] eq "CHILDSTATUS" ? [lindex $code 2] : $code}] $text]
    }
    return [list 0 $text]
}

with_server {enable-debug-command yes} {
    test "keydb-check-rdb tells what is in a file" {} {
        r set a 1
        r set b [string repeat x 1000] px 1
        r debug set-active-expire 0
        r pexpireat b 1
        r set c 1 px 100000000
        r hset hash f v
        r sadd set m
        r expiremember set m 1000
        r function load replace "#!lua name=kept\nredis.register_function('answer', function() return 42 end)"
        r select 5
        r set d 1
        r save
        set path [srv dir]/dump.rdb
        lassign [check_rdb $path] code text
        assert_equal 0 $code $text
        foreach line [list {Checking RDB file *dump.rdb} {AUX FIELD redis-ver = *} {Selecting DB ID 0} \
                {Selecting DB ID 5} {Checksum OK} {*RDB looks OK!*} {* keys read} {1 libraries of functions} \
                {1 members with a deadline} {* x string, * bytes} {1 x hash, * bytes} {1 x set, * bytes}] {
            assert_match "*\] $line\n*" "$text\n"
        }
        assert_match "*info] version 10\n*" $text
        lassign [check_rdb --keys $path] code text
        assert_equal 0 $code
        assert {[lsearch -glob [split $text "\n"] "5\tstring\t*\t-1\td"] >= 0} $text
        r debug set-active-expire 1
        r select 0
        r function flush
    }

    test "keydb-check-rdb finds every cut and every flip" {} {
        r set text [string repeat v 30]
        r rpush list a b c
        r save
        set bytes [slurp [srv dir]/dump.rdb]
        set size [string length $bytes]
        set path [fresh_dir]/damaged.rdb
        for {set at 0} {$at < $size} {incr at} {
            foreach damaged [list [string range $bytes 0 [expr {$at - 1}]] \
                    [string replace $bytes $at $at [expr {[string index $bytes $at] eq "a" ? "b" : "a"}]]] {
                lassign [check_rdb [spit $path $damaged]] code text
                assert_equal 1 $code "at $at: $text"
                assert {[regexp {ERROR DETECTED ---\n\[offset (\d+)\] .+} $text - offset]} $text
                assert {$offset <= $size} $text
            }
        }
        # The last key that is whole is told.
        set at [string first list $bytes]
        if {[string first text $bytes] < $at} {
            assert_match "*last complete key: text*" \
                [lindex [check_rdb [spit $path [string range $bytes 0 $at+8]]] 1]
        }
        assert_match "*5 bytes follow*" [lindex [check_rdb [spit $path ${bytes}*3\r\n\$]] 1]
        set none [string range $bytes 0 end-8][string repeat \0 8]
        assert_match "*saved without a checksum*" [lindex [check_rdb [spit $path $none]] 1]
    }
}

test "keydb-check-rdb without a file" {} {
    assert_equal 2 [lindex [check_rdb] 0]
    assert_equal 2 [lindex [check_rdb a b c] 0]
    lassign [check_rdb /nowhere/at/all.rdb] code text
    assert_equal 1 $code
    assert_match "Cannot open file /nowhere/at/all.rdb: No such file or directory*" $text
    assert_equal 1 [lindex [check_rdb [spit [fresh_dir]/empty.rdb {}]] 0]
    set cron @[format %c 1]j[binary format c 8]return\ 1[string repeat \0 8]\1[string repeat \0 7]\1\2k1\1\2a1
    lassign [check_rdb [spit [fresh_dir]/cron.rdb REDIS0009$cron\xff[string repeat \0 8]]] code text
    assert_equal 0 $code $text
    assert_match "*1 x cron job, *" $text
}
