# A RESP2/RESP3 client on a Tcl channel, without any library.
#
# [connect ?-host H? ?-port P? ?-tls 0|1? ?-tlsopts {..}? ?-unix PATH? ?-timeout MS?] returns a command:
#
#   $c get key            sends and returns the value as a plain Tcl value; an error reply is thrown
#   $c -typed get key     sends and returns {type value}, see below; throws only when the connection fails
#   $c -send get key      sends only; the reply is fetched later by
#   $c -read              ... the next reply as a plain value, or
#   $c -reply             ... the next reply as {type value}
#   $c -raw bytes         writes bytes as they are
#   $c -line, -bytes n    reads a raw line (without CR LF) or exactly n raw bytes
#   $c -closed ?ms?       1 as soon as the server has closed the connection, 0 when it has not within ms
#   $c -pushes            push messages which came between replies, oldest first; forgets them
#   $c -address           our address:port as CLIENT LIST shows it (not for unix sockets)
#   $c -close
#
# Types: {status S} {error S} {int N} {bulk S} {nullbulk} {nullarray} {null} {double S} {bool 0|1} {bignum S}
# {verbatim FORMAT S} {array {reply ...}} {set {reply ...}} {map {reply reply ...}} {push {reply ...}}.
# Strings are bytes; numbers keep the spelling of the wire. Attributes are dropped.

namespace eval resp {
    variable serial 0
    variable chan           ;# id -> channel
    variable wait_ms        ;# id -> how long a read may take
    variable ready          ;# id -> set by the event loop
    variable pushes         ;# id -> list of typed replies
    variable open_ids {}
}

proc connect args {
    set options [dict merge [dict create -host 127.0.0.1 -port {} -tls {} -tlsopts {} -unix {} -timeout 30000] $args]
    set tls [dict get $options -tls]
    if {[dict get $options -unix] eq {}} {
        if {$tls eq {}} {
            set tls [srv tls]
        }
        set port [dict get $options -port]
        if {$port eq {}} {
            set port [expr {$tls ? [srv tls_port] : [srv port]}]
        }
    }
    if {[dict get $options -unix] ne {}} {
        set chan [open |[list python3 $::lib_dir/unix_relay.py [dict get $options -unix]] r+]
    } elseif {$tls} {
        set chan [resp::tls_open [dict get $options -host] $port [dict get $options -tlsopts]]
    } else {
        set chan [socket [dict get $options -host] $port]
    }
    chan configure $chan -translation binary -blocking 0 -buffering full -buffersize 262144
    set id [incr resp::serial]
    set resp::chan($id) $chan
    set resp::wait_ms($id) [dict get $options -timeout]
    set resp::pushes($id) {}
    lappend resp::open_ids $id
    interp alias {} ::resp::c$id {} ::resp::call $id
    return ::resp::c$id
}

proc resp::tls_open {host port extra} {
    set options [dict merge [dict create -cafile [cert ca.crt] -certfile [cert client.crt] -keyfile [cert client.key] \
        -require 1 -ssl2 0 -ssl3 0 -tls1 0 -tls1.1 0] $extra]
    foreach {name value} $options {
        if {$value eq {}} {
            dict unset options $name
        }
    }
    set chan [socket $host $port]
    if {[catch {
        chan configure $chan -translation binary -blocking 0
        tls::import $chan {*}$options -command resp::tls_event
        if {![wait_until {[tls::handshake $chan]} 5000]} {
            error "no TLS handshake within 5000 ms"
        }
    } problem]} {
        catch {close $chan}
        error $problem {} {RESP HANDSHAKE}
    }
    return $chan
}

# Tcl's own handler prints every failed handshake; here those are wanted. The verdict on a certificate stays OpenSSL's.
proc resp::tls_event {event args} {
    if {$event eq "verify"} {
        return [lindex $args 3]
    }
}

proc resp::call {id args} {
    set verb [lindex $args 0]
    set rest [lrange $args 1 end]
    if {![info exists resp::chan($id)]} {
        error "this connection has been closed by the test" {} {RESP CLOSED}
    }
    switch -- $verb {
        -typed { write $id $rest; return [reply $id] }
        -send { write $id $rest; return }
        -read { return [plain [reply $id]] }
        -reply { return [reply $id] }
        -raw { put $id $rest; return }
        -line { return [line $id] }
        -bytes { return [bytes $id [lindex $rest 0]] }
        -closed { return [closed $id [expr {$rest eq {} ? 5000 : [lindex $rest 0]}]] }
        -pushes {
            set found $resp::pushes($id)
            set resp::pushes($id) {}
            return $found
        }
        -address {
            lassign [chan configure $resp::chan($id) -sockname] host name port
            return $host:$port
        }
        -close { drop $id; return }
    }
    if {[string match {-[a-z]*} $verb]} {
        error "the client has no $verb"
    }
    write $id $args
    return [plain [reply $id]]
}

# Pieces are written one by one, for a large argument is not to be copied into one more string.
proc resp::write {id words} {
    set chan $resp::chan($id)
    if {[catch {
        puts -nonewline $chan "*[llength $words]\r\n"
        foreach word $words {
            puts -nonewline $chan "\$[string length $word]\r\n"
            puts -nonewline $chan $word
            puts -nonewline $chan "\r\n"
        }
        flush $chan
    } problem]} {
        lost $problem
    }
}

proc resp::put {id pieces} {
    if {[catch {
        foreach piece $pieces {
            puts -nonewline $resp::chan($id) $piece
        }
        flush $resp::chan($id)
    } problem]} {
        lost $problem
    }
}

proc resp::lost problem {
    error "connection lost: $problem" {} {RESP LOST}
}

# Sleeps in the event loop until the channel is readable; output still buffered is sent meanwhile.
proc resp::await {id deadline_ms} {
    set left [expr {$deadline_ms - [clock milliseconds]}]
    if {$left <= 0} {
        return 0
    }
    set chan $resp::chan($id)
    chan event $chan readable [list set ::resp::ready($id) 1]
    set timer [after $left [list set ::resp::ready($id) 0]]
    vwait ::resp::ready($id)
    after cancel $timer
    chan event $chan readable {}
    return $resp::ready($id)
}

proc resp::line id {
    set chan $resp::chan($id)
    set deadline [expr {[clock milliseconds] + $resp::wait_ms($id)}]
    while 1 {
        if {[catch {gets $chan text} got]} {
            lost $got
        }
        if {$got >= 0 && !([eof $chan] && $got == 0)} {
            return [string trimright $text "\r"]
        }
        if {[eof $chan]} {
            lost "closed by the server"
        }
        if {![await $id $deadline]} {
            error "no reply within $resp::wait_ms($id) ms" {} {RESP TIMEOUT}
        }
    }
}

proc resp::bytes {id count} {
    set chan $resp::chan($id)
    set deadline [expr {[clock milliseconds] + $resp::wait_ms($id)}]
    set data [binary format {}]
    while {[string length $data] < $count} {
        if {[catch {read $chan [expr {$count - [string length $data]}]} piece]} {
            lost $piece
        }
        if {[string length $piece] > 0} {
            append data $piece
            continue
        }
        if {[eof $chan]} {
            lost "closed by the server after [string length $data] of $count bytes"
        }
        if {![await $id $deadline]} {
            error "only [string length $data] of $count bytes within $resp::wait_ms($id) ms" {} {RESP TIMEOUT}
        }
    }
    return $data
}

proc resp::closed {id limit_ms} {
    set chan $resp::chan($id)
    set deadline [expr {[clock milliseconds] + $limit_ms}]
    while 1 {
        if {[catch {read $chan 65536} piece]} {
            return 1
        }
        if {[eof $chan]} {
            return 1
        }
        if {![await $id $deadline]} {
            return 0
        }
    }
}

# The next reply which is no push message; those are put aside.
proc resp::reply id {
    while 1 {
        set reply [parse $id]
        switch -- [lindex $reply 0] {
            push { lappend resp::pushes($id) $reply }
            attribute {}
            default { return $reply }
        }
    }
}

proc resp::parse id {
    set text [line $id]
    set rest [string range $text 1 end]
    switch -- [string index $text 0] {
        + { return [list status $rest] }
        - { return [list error $rest] }
        : { return [list int $rest] }
        _ { return null }
        , { return [list double $rest] }
        ( { return [list bignum $rest] }
        "#" { return [list bool [expr {$rest eq "t"}]] }
        "$" {
            if {$rest == -1} {
                return nullbulk
            }
            return [list bulk [payload $id $rest]]
        }
        = {
            set body [payload $id $rest]
            return [list verbatim [string range $body 0 2] [string range $body 4 end]]
        }
        * {
            if {$rest == -1} {
                return nullarray
            }
            return [list array [elements $id $rest]]
        }
        ~ { return [list set [elements $id $rest]] }
        > { return [list push [elements $id $rest]] }
        % { return [list map [elements $id [expr {2 * $rest}]]] }
        | { return [list attribute [elements $id [expr {2 * $rest}]]] }
    }
    error "no RESP type: [escape $text]" {} {RESP SYNTAX}
}

proc resp::payload {id count} {
    set data [bytes $id $count]
    if {[bytes $id 2] ne "\r\n"} {
        error "bulk of $count bytes does not end with CR LF" {} {RESP SYNTAX}
    }
    return $data
}

proc resp::elements {id count} {
    set list {}
    for {set i 0} {$i < $count} {incr i} {
        lappend list [parse $id]
    }
    return $list
}

# Plain Tcl value of a typed reply: nulls are empty strings, aggregates are lists. A nested error stays text.
proc resp::plain reply {
    lassign $reply type value
    if {$type eq "error"} {
        error $value {} {RESP ERROR}
    }
    return [bare $reply]
}

proc resp::bare reply {
    lassign $reply type value
    switch -- $type {
        array - set - push - map {
            set list {}
            foreach element $value {
                lappend list [bare $element]
            }
            return $list
        }
        verbatim { return [lindex $reply 2] }
    }
    return $value
}

proc resp::drop id {
    if {![info exists resp::chan($id)]} {
        return
    }
    # A relay process reports how it ended when its pipe is closed; that is of no interest.
    catch {chan configure $resp::chan($id) -blocking 0}
    catch {close $resp::chan($id)}
    unset resp::chan($id) resp::wait_ms($id) resp::pushes($id)
    set at [lsearch -exact $resp::open_ids $id]
    set resp::open_ids [lreplace $resp::open_ids $at $at]
    interp alias {} ::resp::c$id {}
}

proc resp::is_open connection {
    return [info exists resp::chan([string range $connection [string length ::resp::c] end])]
}

proc resp::drop_since mark {
    foreach id $resp::open_ids {
        if {$id > $mark} {
            drop $id
        }
    }
}

# The bytes of a command, for tests which send them in a way of their own.
proc request args {
    set bytes "*[llength $args]\r\n"
    foreach word $args {
        append bytes "\$[string length $word]\r\n" $word "\r\n"
    }
    return $bytes
}

# For messages: printable, and not longer than a few lines.
proc escape text {
    set shown ""
    foreach char [split [string range $text 0 399] {}] {
        scan $char %c code
        if {$code < 32 || $code > 126} {
            append shown [format {\x%02x} $code]
        } else {
            append shown $char
        }
    }
    if {[string length $text] > 400} {
        append shown "... ([string length $text] bytes)"
    }
    return $shown
}
