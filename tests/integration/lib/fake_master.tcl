# ---- a master that says what it is told to
#
# fake_master ANSWERS      listens without TLS; gives its port. ANSWERS: NAME REPLY ...: what it replies (raw bytes) to
#                          a command of that name; PING, AUTH, REPLCONF and ACK have replies of their own. A REPLY
#                          `close` closes. {REPLCONF CAPA} and the like are for that word behind it
# fake_requests            all commands so far, as lists
# fake_count               connections so far
# fake_send BYTES          to the last connection
# fake_close

namespace eval fake {
    variable listener {}
    variable channels {}
    variable requests {}
    variable count 0
    variable answers {}
    variable input          ;# channel -> bytes of an incomplete command
    array set input {}
}

proc fake_master answers {
    fake_close
    set fake::requests {}
    set fake::count 0
    set fake::answers $answers
    set fake::listener [socket -server fake::accept -myaddr 127.0.0.1 0]
    return [lindex [chan configure $fake::listener -sockname] 2]
}

proc fake::accept {chan host port} {
    variable channels
    variable count
    variable input
    incr count
    lappend channels $chan
    chan configure $chan -translation binary -blocking 0 -buffering none
    set input($chan) {}
    chan event $chan readable [list fake::readable $chan]
}

# Another socket may get its name: it is not closed twice.
proc fake::forget chan {
    variable channels
    catch {close $chan}
    set channels [lsearch -all -inline -not -exact $channels $chan]
}

proc fake::readable chan {
    variable input
    if {[catch {append input($chan) [read $chan]}] || [eof $chan]} {
        fake::forget $chan
        return
    }
    while {[string index $input($chan) 0] eq "\n"} {
        set input($chan) [string range $input($chan) 1 end]
    }
    while {[regexp {^\*(\d+)\r\n} $input($chan) head count]} {
        set at [string length $head]
        set words {}
        for {set i 0} {$i < $count} {incr i} {
            if {![regexp -start $at {\A\$(\d+)\r\n} $input($chan) head size]} {
                return
            }
            incr at [string length $head]
            lappend words [string range $input($chan) $at [expr {$at + $size - 1}]]
            incr at [expr {$size + 2}]
        }
        if {[string length $input($chan)] < $at} {
            return
        }
        set input($chan) [string range $input($chan) $at end]
        lappend fake::requests $words
        if {[catch {fake::answer $chan $words}]} {
            return
        }
    }
}

proc fake::answer {chan words} {
    set name [string toupper [lindex $words 0]]
    set reply +OK\r\n
    if {$name eq "PING"} {
        set reply +PONG\r\n
    } elseif {$name eq "REPLCONF" && [string toupper [lindex $words 1]] eq "ACK"} {
        set reply {}
    }
    foreach named [list $name [string toupper [lrange $words 0 1]]] {
        if {[dict exists $fake::answers $named] && $reply ne {}} {
            set reply [dict get $fake::answers $named]
        }
    }
    if {$reply eq "close"} {
        fake::forget $chan
        error closed
    }
    puts -nonewline $chan $reply
}

proc fake_requests {} {
    return $fake::requests
}

proc fake_count {} {
    return $fake::count
}

proc fake_send bytes {
    puts -nonewline [lindex $fake::channels end] $bytes
}

proc fake_close {} {
    catch {close $fake::listener}
    set fake::listener {}
    foreach chan $fake::channels {
        catch {close $chan}
    }
    set fake::channels {}
}

# A snapshot without checksum: the pairs as strings of database 0.
proc snapshot pairs {
    set records {}
    foreach {key value} $pairs {
        append records \0 [format %c [string length $key]] $key [format %c [string length $value]] $value
    }
    return REDIS0009\xfe\0$records\xff[string repeat \0 8]
}

proc sized bytes {
    return "\$[string length $bytes]\r\n$bytes"
}

proc marked bytes {
    set mark [string repeat 0123456789 4]
    return "\$EOF:$mark\r\n$bytes$mark"
}
