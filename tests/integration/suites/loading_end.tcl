# Servers that are asked to end while they load: they do so soon, and leave the files as they were.

# Every file below the folder with its content; made by a server that saves or appends what it has.
proc loading_end_folder {kind} {
    set folder [fresh_dir]
    set port [free_port]
    set id [server_launch [list --port $port --dir $folder --save "" --rdbcompression no --enable-debug-command yes \
        --appendonly [expr {$kind eq "aof" ? "yes" : "no"}] --server-threads 1]]
    wait_for {![catch {set s [connect -port $port -tls 0]}]}
    $s debug populate 1500 key 10000
    $s config set key-load-delay 0
    if {$kind eq "aof"} {
        $s bgrewriteaof
        wait_for {[string match "*\naof_rewrite_in_progress:0*aof_rewrites:1*" [$s info persistence]]}
        $s set behind the-base
    } else {
        $s save
    }
    $s -close
    process_stop $id
    return $folder
}

proc loading_end_contents folder {
    set all {}
    foreach path [lsort [concat [glob -nocomplain -type f $folder/*] [glob -nocomplain -type f $folder/*/*]]] {
        lappend all [string range $path [string length $folder] end] [slurp $path]
    }
    return $all
}

# `end` runs with `s`, a client, and `id`, while other clients wait for the gate that the loader owns; it is to end the
# server.
proc loading_end {kind threads folder end} {
    set before [loading_end_contents $folder]
    set port [free_port]
    set id [server_launch [list --port $port --dir $folder --save "900 1" --key-load-delay 5000 --hz 500 \
        --enable-debug-command yes --appendonly [expr {$kind eq "aof" ? "yes" : "no"}] --server-threads $threads \
        --min-clients-per-thread 1]]
    wait_for {![catch {set s [connect -port $port -tls 0]}]}
    wait_for {[string match "*\nloading:1*loading_loaded_bytes:\[1-9\]*" [$s info persistence]]}
    set waiting {}
    for {set i 0} {$i < 4} {incr i} {
        lappend waiting [set one [connect -port $port -tls 0]]
        $one -send config set maxmemory-samples [expr {5 + $i}]
    }
    eval $end
    set code [process_wait $id]
    if {$code eq "running"} {
        process_signal $id KILL
    }
    assert_equal 0 $code "the server does not end:\n[process_log $id]"
    assert {![string match "*Done loading*" [process_log $id]]} "the data was there already"
    assert_equal $before [loading_end_contents $folder]
    foreach one [list $s {*}$waiting] {
        $one -close
    }
}

proc loading_end_on_threads {kind end} {
    set folder [loading_end_folder $kind]
    foreach threads {1 4} {
        loading_end $kind $threads $folder $end
    }
}

foreach kind {rdb aof} {
    foreach {name end} {
        SIGTERM {process_signal $id TERM}
        SIGINT {process_signal $id INT}
        SHUTDOWN {$s -send shutdown}
        "SHUTDOWN NOSAVE" {$s -send shutdown nosave}
        "SHUTDOWN SAVE" {$s -send shutdown save}
    } {
        test "$name ends a server that loads its $kind, on any number of threads" {} \
            [list loading_end_on_threads $kind $end]
    }
}
