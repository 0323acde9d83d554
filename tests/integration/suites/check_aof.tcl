# keydb-check-aof: what it says of files that are whole, cut, damaged; what it cuts off.

proc written args {
    set text {}
    foreach words $args {
        append text [request {*}$words]
    }
    return $text
}

# The tool's exit code and what it printed, in a folder with these files; `answer` is what it is told when it asks.
proc check_aof {files arguments {answer ""}} {
    set ::checked [fresh_dir]
    dict for {name content} $files {
        spit $::checked/$name $content
    }
    return [check_again $arguments $answer]
}

proc check_again {arguments {answer ""}} {
    set tool [file join [pwd] [file dirname $::settings(server)] keydb-check-aof]
    set here [pwd]
    cd $::checked
    try {
        set failed [catch {exec $tool {*}$arguments << $answer 2>@1} text details]
    } finally {
        cd $here
    }
    set code 0
    if {$failed} {
        set code [dict get $details -errorcode]
        assert_equal CHILDSTATUS [lindex $code 0] $text
        set code [lindex $code 2]
        regsub {\nchild process exited abnormally$} $text {} text
    }
    return [list $code $text]
}

proc assert_checked {code lines result} {
    assert_equal $code [lindex $result 0] [lindex $result 1]
    foreach line $lines {
        assert {$line in [split [lindex $result 1] "\n"]} "no line '$line' in:\n[lindex $result 1]"
    }
}

proc checked_size name {
    return [file size $::checked/$name]
}

set good [written {select 0} {set a 1}]
set manifest "file a.1.base.aof seq 1 type b\nfile a.1.incr.aof seq 1 type i\nfile a.2.incr.aof seq 2 type i\n"
set parts [list a.manifest $manifest a.1.base.aof $good a.1.incr.aof $good a.2.incr.aof $good]

test "a file that is whole" {keydb} {
    assert_checked 0 {"Start checking Old-Style AOF" "AOF analyzed: filename=x, size=50, ok_up_to=50,\
        ok_up_to_line=13, diff=0" "AOF x is valid"} [check_aof [list x $::good] x]
    assert_checked 0 {"AOF x is empty"} [check_aof {x {}} x]
    set result [check_aof [list x "[written multi {set b 1} exec]#TS:17\r\n"] x]
    assert_checked 0 {"AOF x is valid"} $result
    assert_match "*0 keys, 1 commands, 1 transactions, 1 notes*" $result
}

test "wrong calls" {keydb} {
    foreach arguments {{} {--foo x} {a b c d} --help} {
        set result [check_aof {} $arguments]
        assert_equal 1 [lindex $result 0]
        assert_match "Usage: *" [lindex $result 1]
    }
    assert_checked 1 {"Cannot open file x: No such file or directory"} [check_aof {} x]
    assert_checked 1 {"Invalid timestamp, aborting..."} [check_aof [list x $::good] {--truncate-to-timestamp foo x}]
}

test "what is not whole is told, with its place, and cut off if that is wanted" {keydb} {
    foreach {tail first_words} {
        "*2\r\n\$3"                "Expected to read a whole command"
        "xx"                       "expected '*' at the beginning"
        "*1\r\n\$5\r\nMULTI\r\n*1\r\n\$4\r\nPING\r\n" "Reached EOF before reading EXEC for MULTI"
        "*1\r\n\$4\r\nEXEC\r\n"    "Unexpected EXEC in AOF x"
        "*1\r\n\$5\r\nMULTI\r\n*1\r\n\$5\r\nMULTI\r\n" "Unexpected MULTI in AOF x"
        "#TS:17"                   "Expected to read a whole command"
    } {
        set size [expr {50 + [string length $tail]}]
        set analyzed "AOF analyzed: filename=x, size=$size, ok_up_to=50, ok_up_to_line=13, diff=[expr {$size - 50}]"
        set result [check_aof [list x $::good$tail] x]
        assert_checked 1 [list $analyzed "AOF x is not valid. Use the --fix option to try fixing it."] $result
        assert_match "*0x* *: $first_words*" [lindex $result 1]
        set result [check_again {--fix x} "n\n"]
        assert_checked 1 [list $analyzed "This will shrink the AOF x from $size bytes, with [expr {$size - 50}] bytes,\
            to 50 bytes" "Continue? \[y/N\]: Aborting..."] $result
        assert_equal $size [checked_size x]
        assert_checked 1 {} [check_again {--fix x}]
        assert_equal $size [checked_size x]
        assert_checked 0 {"Continue? [y/N]: Successfully truncated AOF x"} [check_again {--fix x} "y\n"]
        assert_equal 50 [checked_size x]
        assert_checked 0 {"AOF x is valid"} [check_again x]
    }
}

test "a length that swallows commands is named as such" {keydb} {
    set result [check_aof [list x "[string map {"\$1\r\n1" "\$99\r\n1"} $::good]$::good"] x]
    assert_equal 1 [lindex $result 0]
    assert_match "*The claimed argument has whole commands in it*" $result
}

test "all files of a manifest" {keydb} {
    assert_checked 0 {"Start checking Multi Part AOF" "Start to check BASE AOF (RESP format)."
        "BASE AOF a.1.base.aof is valid" "Start to check INCR files." "INCR AOF a.1.incr.aof is valid"
        "AOF analyzed: filename=a.2.incr.aof, size=50, ok_up_to=50, ok_up_to_line=37, diff=0"
        "All AOF files and manifest are valid"} [check_aof $::parts a.manifest]
    assert_checked 0 {"INCR AOF a.2.incr.aof is empty"} [check_aof [dict merge $::parts {a.2.incr.aof {}}] a.manifest]
    set history [dict merge $::parts [list a.manifest "file h seq 1 type h\n$::manifest"]]
    assert_checked 0 {"All AOF files and manifest are valid"} [check_aof $history a.manifest]
    assert_checked 1 {"Cannot open file a.1.incr.aof: No such file or directory, aborting..."} \
        [check_aof [dict remove $::parts a.1.incr.aof] a.manifest]
    assert_checked 1 {"*** FATAL AOF MANIFEST FILE ERROR ***" "m: at line 1: Unknown AOF file type"} \
        [check_aof [list m "file a seq 1 type x\n"] m]
}

test "only the last file of a manifest is cut" {keydb} {
    set cut [string range $::good 0 end-1]
    assert_checked 1 {"Failed to truncate AOF a.1.incr.aof because it is not the last file"} \
        [check_aof [dict merge $::parts [list a.1.incr.aof $cut]] {--fix a.manifest} "y\n"]
    assert_equal 49 [checked_size a.1.incr.aof]
    assert_checked 0 {"Continue? [y/N]: Successfully truncated AOF a.2.incr.aof"
        "All AOF files and manifest are valid"} \
        [check_aof [dict merge $::parts [list a.2.incr.aof $cut]] {--fix a.manifest} "y\n"]
    assert_equal 23 [checked_size a.2.incr.aof]
}

test "back to a point in time" {keydb} {
    set text "#TS:100\r\n$::good#TS:200\r\n[written {set b 2}]#TS:300\r\n[written multi {set c 2} exec]"
    foreach {time code size line} {
        200  0 95  "Successfully truncated AOF x to timestamp 200"
        250  0 95  "Successfully truncated AOF x to timestamp 250"
        50   1 -   "AOF x has nothing before timestamp 50, aborting..."
        1000 0 -   "Truncate nothing in AOF x to timestamp 1000"
    } {
        assert_checked $code [list $line] [check_aof [list x $text] [list --truncate-to-timestamp $time x]]
        assert_equal [expr {$size eq "-" ? [string length $text] : $size}] [checked_size x]
    }
    # A transaction stays whole or goes.
    set text "$::good[written multi]#TS:300\r\n[written {set c 2} exec]"
    assert_checked 0 {} [check_aof [list x $text] {--truncate-to-timestamp 200 x}]
    assert_equal 50 [checked_size x]
    set result [check_aof [dict merge $::parts [list a.1.incr.aof "$::good#TS:300\r\n$::good"]] \
        {--truncate-to-timestamp 200 a.manifest}]
    assert_checked 1 {"Failed to truncate AOF a.1.incr.aof to timestamp 200 to offset 50 because it is not the last\
        file."} $result
    assert_checked 0 {"Successfully truncated AOF a.2.incr.aof to timestamp 200" "All AOF files and manifest are\
        valid"} [check_aof [dict merge $::parts [list a.2.incr.aof "$::good#TS:300\r\n$::good"]] \
        {--truncate-to-timestamp 200 a.manifest}]
    assert_equal 50 [checked_size a.2.incr.aof]
}

with_server {} {
    test "an RDB file as base" {keydb} {
        r set a 1
        r set b 1 ex 1000
        r save
        set rdb [slurp [srv dir]/dump.rdb]
        set result [check_aof [list x $rdb$::good] x]
        assert_checked 0 {"[info] 2 keys read" "[info] 1 expires"
            "RDB preamble is OK, proceeding with AOF tail..." "AOF x is valid"} $result
        assert_match "*RDB looks OK!*2 keys, 2 commands*" $result
        assert_checked 0 {"Start to check BASE AOF (RDB format)." "BASE AOF a.1.base.aof is valid"} \
            [check_aof [dict merge $::parts [list a.1.base.aof $rdb]] a.manifest]
        for {set size 5} {$size < [string length $rdb]} {incr size} {
            set result [check_aof [list x [string range $rdb 0 $size-1]] {--fix x} "y\n"]
            assert_checked 1 {"--- RDB ERROR DETECTED ---" "RDB preamble of AOF file is not sane, aborting."} $result
            assert_equal $size [checked_size x]
        }
    }
}
