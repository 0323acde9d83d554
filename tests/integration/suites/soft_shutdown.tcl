# SHUTDOWN SOFT and soft-shutdown: the server ends when its clients have gone.

proc soft_answers port {
    if {[catch {connect -port $port -tls 0} c]} {
        return 0
    }
    set answers [expr {![catch {$c ping}]}]
    $c -close
    return $answers
}

proc soft_server {args} {
    set port [free_port]
    set id [server_launch [list --port $port --save "" {*}[thread_args] {*}$args]]
    wait_for {[soft_answers $port]}
    return [list $id $port]
}

test "SHUTDOWN SOFT waits for the clients that are there" {keydb noconn} {
    lassign [soft_server] id port
    set a [connect -port $port -tls 0]
    set b [connect -port $port -tls 0]
    set monitor [connect -port $port -tls 0]
    $monitor monitor
    assert_equal OK [$b ping; $a shutdown soft]
    assert_error "SHUTDOWN PENDING*" {$a ping}
    assert_error "SHUTDOWN PENDING*" {$b ping hello}
    assert_equal OK [$b set key v]
    set late [connect -port $port -tls 0]
    assert_equal -SHUTDOWN [$late -bytes 9]
    assert {[$late -closed]}
    assert_error "*No shutdown in progress*" {$a shutdown abort}
    assert_error "*syntax*" {$a shutdown soft now}
    $a -close
    assert_equal v [$b get key]
    assert {[process_alive $id]}
    $b -close
    assert_equal 0 [process_wait $id]
}

test "soft-shutdown: a signal begins it, a second SIGINT ends at once" {keydb noconn} {
    lassign [soft_server --soft-shutdown yes] id port
    set a [connect -port $port -tls 0]
    $a ping
    process_signal $id TERM
    wait_for {[catch {$a ping}]}
    $a -close
    assert_equal 0 [process_wait $id]

    lassign [soft_server --soft-shutdown yes] id port
    set a [connect -port $port -tls 0]
    $a ping
    process_signal $id INT
    wait_for {[catch {$a ping}]}
    process_signal $id INT
    assert_equal 1 [process_wait $id]
}
