# Hashes: HSETEX, HGETEX and HGETDEL, with the options of Redis 8 and of Valkey 9.

set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"
set wrong_int "ERR value is not an integer or out of range"
set far 4102444800

# The fields of key k, each with its value and its deadline in ms.
proc fields {} {
    set found {}
    foreach field [lsort [r hkeys k]] {
        lappend found $field [r hget k $field] [lindex [r hpexpiretime k fields 1 $field] 0]
    }
    return $found
}

with_server {enable-debug-command yes appendonly yes} {
    foreach ::proto {2 3} {
        set ::null [expr {$::proto == 2 ? "nullbulk" : "null"}]

        test "HSETEX: deadlines, RESP$::proto" {keydb} {
            r hello $::proto
            r flushall
            assert_reply {int 1} r hsetex k fields 2 a 1 b 2
            assert_equal {a 1 -1 b 2 -1} [fields]
            foreach {option time low high} {EX 100 99000 100000 px 100000 99000 100000} {
                r del k
                assert_reply {int 1} r hsetex k $option $time FIELDS 1 a 1
                assert_range [r hpttl k fields 1 a] $low $high
                assert_equal -1 [r ttl k]
            }
            assert_reply {int 1} r hsetex k exat $::far fields 2 a 1 b 2
            assert_reply {int 1} r hsetex k fields 2 c 3 a 4 PXAT ${::far}123
            assert_equal "a 4 ${::far}123 b 2 ${::far}000 c 3 ${::far}123" [fields]
            # They stay only if asked to; fields that are not named keep theirs.
            assert_reply {int 1} r hsetex k fields 2 a 5 d 6 keepttl
            assert_reply {int 1} r hsetex k fields 1 b 7
            assert_equal "a 5 ${::far}123 b 7 -1 c 3 ${::far}123 d 6 -1" [fields]
            # Named twice: the last value counts.
            assert_reply {int 1} r hsetex k pxat ${::far}000 fields 2 a x a y
            assert_equal "a y ${::far}000" [lrange [fields] 0 2]
            # What has passed is as good as gone.
            assert_reply {int 1} r hsetex k px 0 fields 3 a 1 b 2 new 3
            assert_equal "c 3 ${::far}123 d 6 -1" [fields]
            assert_reply {int 1} r hsetex k exat 1 fields 2 c 1 d 1
            assert_reply {int 1} r hsetex none exat 1 fields 2 c 1 d 1
            assert_equal 0 [r exists k none]
            # Empty texts, numbers, and more than a listpack takes.
            assert_reply {int 1} r hsetex k ex 100 fields 3 {} {} 12 -7 long [string repeat x 5000]
            assert_equal {{} -7 5000} [list [r hget k {}] [r hget k 12] [r hstrlen k long]]
            # Words of options are also fields and values.
            r del k
            assert_reply {int 1} r hsetex k fields 3 ex px fields keepttl fnx fxx pxat ${::far}000
            assert_equal "ex px ${::far}000 fields keepttl ${::far}000 fnx fxx ${::far}000" [fields]
            r hello 2
        }

        test "HSETEX: conditions, RESP$::proto" {keydb} {
            r hello $::proto
            r flushall
            assert_reply {int 0} r hsetex k fxx fields 1 a 1
            assert_reply {int 0} r hsetex k XX fields 1 a 1
            assert_equal 0 [r exists k]
            assert_reply {int 1} r hsetex k nx FNX pxat ${::far}000 fields 1 a 1
            assert_reply {int 0} r hsetex k nx fields 1 b 1
            assert_reply {int 0} r hsetex k fields 2 b 1 a 1 fnx
            assert_reply {int 0} r hsetex k fields 2 a 1 b 1 FXX
            assert_reply {int 0} r hsetex k fxx nx fields 1 a 2
            assert_reply {int 0} r hsetex k fnx px 0 fields 1 a 2
            assert_equal "a 1 ${::far}000" [fields]
            assert_reply {int 1} r hsetex k xx fnx fields 2 b 2 b 3
            assert_reply {int 1} r hsetex k fields 2 a 4 b 5 keepttl fxx xx
            assert_equal "a 4 ${::far}000 b 5 -1" [fields]
            # A dead field is not there.
            r debug set-active-expire 0
            r hpexpire k 1 fields 1 a
            pause 2
            assert_reply {int 0} r hsetex k fxx fields 2 a 1 b 1
            assert_reply {int 1} r hsetex k fnx keepttl fields 1 a 6
            assert_equal "a 6 -1 b 5 -1" [fields]
            r debug set-active-expire 1
            r hello 2
        }

        test "HGETEX, RESP$::proto" {keydb} {
            r hello $::proto
            r flushall
            foreach options {{} {ex 10} persist {px 0}} {
                assert_reply [list array [list $::null $::null]] r hgetex k {*}$options fields 2 a b
            }
            assert_equal 0 [r exists k]
            r hset k a 1 b 2 c 3
            assert_reply [list array [list {bulk 1} $::null {bulk 2}]] r hgetex k fields 3 a none b
            assert_equal {a 1 -1 b 2 -1 c 3 -1} [fields]
            assert_reply [list array [list {bulk 1} $::null]] r hgetex k PXAT ${::far}123 fields 2 a none
            assert_reply {array {{bulk 2}}} r hgetex k fields 1 b EXAT $::far
            assert_equal "a 1 ${::far}123 b 2 ${::far}000 c 3 -1" [fields]
            assert_reply {array {{bulk 1} {bulk 2}}} r hgetex k fields 2 a b
            assert_equal "a 1 ${::far}123 b 2 ${::far}000 c 3 -1" [fields]
            assert_reply [list array [list {bulk 1} {bulk 3} $::null {bulk 1}]] r hgetex k persist fields 4 a c none a
            assert_equal "a 1 -1 b 2 ${::far}000 c 3 -1" [fields]
            foreach {option time} {ex 100 px 100000} {
                assert_reply {array {{bulk 3}}} r hgetex k $option $time fields 1 c
                assert_range [r hpttl k fields 1 c] 99000 100000
            }
            assert_reply [list array [list {bulk 3} $::null $::null]] r hgetex k px 0 fields 3 c c none
            assert_equal "a 1 -1 b 2 ${::far}000" [fields]
            assert_reply {array {{bulk 2} {bulk 1}}} r hgetex k exat 1 fields 2 b a
            assert_equal 0 [r exists k]
            r hello 2
        }

        test "HGETDEL, RESP$::proto" {keydb} {
            r hello $::proto
            r flushall
            assert_reply [list array [list $::null $::null]] r hgetdel k fields 2 a b
            r hset k a 1 b 2 c 3 {} {}
            r hpexpireat k ${::far}000 fields 2 a b
            assert_reply [list array [list {bulk 1} $::null {bulk {}} $::null]] r hgetdel k FIELDS 4 a none {} a
            assert_equal "b 2 ${::far}000 c 3 -1" [fields]
            r hsetex k keepttl fields 1 a 4
            assert_equal -1 [r httl k fields 1 a]
            assert_reply {array {{bulk 3} {bulk 2} {bulk 4}}} r hgetdel k fields 3 c b a
            assert_equal 0 [r exists k]
            # A table of fields.
            for {set i 0} {$i < 600} {incr i} {
                lappend pairs f$i $i
            }
            r hset k {*}$pairs
            assert_reply {array {{bulk 599} {bulk 0}}} r hgetdel k fields 2 f599 f0
            assert_equal 598 [r hlen k]
            r hello 2
        }
    }

    test "they refuse, and nothing has changed" {keydb} {
        r flushall
        r hset k a 1
        r rpush l a
        set many "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
        set get_many "ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified"
        set few "ERR wrong number of arguments"
        set twice "ERR FIELDS keyword specified multiple times"
        set number "ERR invalid number of fields"
        set fields_error "ERR Only one of FXX or FNX arguments can be specified"
        set key_error "ERR Only one of XX or NX arguments can be specified"
        set negative "ERR invalid expire time, must be >= 0"
        set late "ERR invalid expire time in 'hsetex' command"
        set get_late "ERR invalid expire time in 'hgetex' command"
        set mandatory "ERR Mandatory argument FIELDS is missing or not at the right position"
        set match "ERR The `numfields` parameter must match the number of arguments"
        set positive "ERR Number of fields must be a positive integer"
        set most [expr {(1 << 46) - 1}]
        foreach {words error} [list \
            {ex 1 px 1 fields 1 a 2} $many          {ex 1 ex 1 fields 1 a 2} $many \
            {keepttl ex 1 fields 1 a 2} $many       {fields 1 a 2 pxat 1 keepttl} $many \
            {keepttl keepttl fields 1 a 2} $many    {fnx fxx fields 1 a 2} $fields_error \
            {fields 1 a 2 fxx fxx} $fields_error    {nx xx fields 1 a 2} $key_error \
            {xx fields 1 a 2 xx} $key_error         {fields 0 a 2 b 3} $number \
            {fields -1 a 2 b 3} $number             {fields x a 2 b 3} $number \
            {fields 2147483648 a 2 b 3} $number     {fields 9223372036854775808 a 2} $number \
            {fields 2147483647 a 2} $few            {fields 2 a 2 b} $few \
            {fields 2 a 2} $few                     {fnx keepttl xx fields} $few \
            {fields 1 a 2 fields 1 b 3} $twice      {fnx keepttl a 2} "ERR unknown argument: a" \
            {fields 1 a 2 b 3} "ERR unknown argument: b" {persist fields 1 a 2} "ERR unknown argument: persist" \
            {gt fields 1 a 2} "ERR unknown argument: gt" {{} fields 1 a 2} "ERR unknown argument: " \
            {keepttl fnx xx nx} $key_error          {keepttl fnx xx ex} $many \
            {fnx xx px 100} "ERR missing FIELDS argument" {fields 1 a 2 ex} "ERR missing expire time" \
            {ex -1 fields 1 a 2} $negative          {pxat -9223372036854775808 fields 1 a 2} $negative \
            {ex x fields 1 a 2} $::wrong_int        {ex {} fields 1 a 2} $::wrong_int \
            {px 9223372036854775808 fields 1 a 2} $::wrong_int {ex 1.5 fields 1 a 2} $::wrong_int \
            {ex 9223372036854775807 fields 1 a 2} $late {px 9223372036854775807 fields 1 a 2} $late \
            {exat 9223372036854775807 fields 1 a 2} $late "pxat [expr {$most + 1}] fields 1 a 2" $late \
        ] {
            assert_refused $error r hsetex k {*}$words
            assert_refused $error r hsetex l {*}$words
            assert_refused $error r hsetex none {*}$words
        }
        foreach {words error} [list \
            {ex 1 persist fields 1 a} $get_many     {persist persist fields 1 a} $get_many \
            {fields 1 a exat 1 px 1} $get_many      {fields 0 a} $number \
            {fields x a} $number                    {fields 2147483648 a} $number \
            {fields 2 a} $few                       {ex 1 fields} $few \
            {fields 1 a fields 1 b} $twice          {fields 1 a b} "ERR unknown argument: b" \
            {keepttl fields 1 a} "ERR unknown argument: keepttl" {fnx fields 1 a} "ERR unknown argument: fnx" \
            {nx fields 1 a} "ERR unknown argument: nx" {persist a b} "ERR unknown argument: a" \
            {px 100 persist} $get_many              {fields 1 a px} "ERR missing expire time" \
            {ex -1 fields 1 a} $negative            {ex x fields 1 a} $::wrong_int \
            {exat 9223372036854775807 fields 1 a} $get_late "pxat [expr {$most + 1}] fields 1 a" $get_late \
        ] {
            assert_refused $error r hgetex k {*}$words
            assert_refused $::wrong_type r hgetex l {*}$words
            assert_refused $error r hgetex none {*}$words
        }
        foreach {words error} [list \
            {field 1 a} $mandatory   {1 fields a} $mandatory   {fields 0 a} $positive   {fields -1 a} $positive \
            {fields x a} $positive   {fields 2 a} $match   {fields 1 a b} $match \
            {fields 9223372036854775807 a} $match \
        ] {
            assert_refused $error r hgetdel k {*}$words
            assert_refused $::wrong_type r hgetdel l {*}$words
            assert_refused $error r hgetdel none {*}$words
        }
        foreach words {{hsetex l fields 1 a 1} {hsetex l nx fields 1 a 1} {hgetex l fields 1 a}
                {hgetex l persist fields 1 a} {hgetdel l fields 1 a}} {
            assert_refused $::wrong_type r {*}$words
        }
        foreach words {{hsetex k fields 1 a} {hgetex k fields 1} {hgetdel k fields 1} {hsetex k} {hgetex} {hgetdel k}} {
            assert_error "ERR wrong number of arguments for '[lindex $words 0]' command" {r {*}$words}
        }
        assert_equal {a 1 -1} [fields]
        assert_equal {k l} [lsort [r keys *]]
        # The latest deadline, and one that is kept though it is later than that.
        assert_reply {int 1} r hsetex k pxat $most fields 1 a 2
        assert_equal "a 2 $most" [fields]
        r pexpirememberat k a [expr {$most + 9}]
        assert_reply {int 1} r hsetex k keepttl fields 1 a 3
        assert_equal "a 3 [expr {$most + 9}]" [fields]
    }

    test "others are told by older commands, with times that count from 1970" {keydb} {
        foreach {script expected} {
            {r hsetex k fields 2 a 1 c 2}                     {{HSET k a 1 c 2}}
            {r hsetex k fields 1 a 5 xx fxx keepttl}          {MULTI {HSET k a 5}
                                                                  {HPEXPIREAT k 4102444800123 FIELDS 1 a} EXEC}
            {r hsetex k fields 1 b 5 keepttl}                 {{HSET k b 5}}
            {r hsetex k exat 4102444800 fnx fields 2 c 1 d 2} {MULTI {HSET k c 1 d 2}
                                                                  {HPEXPIREAT k 4102444800000 FIELDS 2 c d} EXEC}
            {r hsetex k px 0 fields 1 a 3}                    {{HDEL k a}}
            {r hsetex k px 0 fields 2 a 3 b 4}                {{HDEL k a b}}
            {r hsetex k fnx fields 1 a 3; r hsetex k nx fields 1 a 3; r hsetex n xx ex 9 fields 1 a 3} {}
            {r hgetex k fields 2 a b; r hgetex n ex 10 fields 1 a; r hgetex k ex 10 fields 1 n}        {}
            {r hgetex k persist fields 1 b}                   {}
            {r hgetex k persist fields 3 b n a}               {{HPERSIST k FIELDS 1 a}}
            {r hgetex k exat 4102444800 fields 3 b n a}       {{HPEXPIREAT k 4102444800000 FIELDS 2 b a}}
            {r hgetex k px 0 fields 3 b n b}                  {{HDEL k b}}
            {r hgetdel k fields 3 n a a}                      {{HDEL k a}}
            {r hgetdel k fields 2 b a}                        {{HDEL k b a}}
            {r hgetdel k fields 1 n; r hgetdel n fields 1 a}  {}
        } {
            r flushall
            r hset k a 1 b 2
            r hpexpireat k 4102444800123 fields 1 a
            assert_equal [list {*}$expected] [effects_of $script] $script
            set before [list [r debug digest] [fields]]
            r debug loadaof
            assert_equal $before [list [r debug digest] [fields]] $script
        }
        r hset k a 1
        set now [lindex [r time] 0]
        lassign [effects_of {r hsetex k ex 100 fields 1 a 1; r hgetex k px 200000 fields 1 a}] - - first - second
        assert_range [lindex $first 2] [expr {($now + 100) * 1000}] [expr {($now + 110) * 1000}]
        assert_range [lindex $second 2] [expr {($now + 200) * 1000}] [expr {($now + 210) * 1000}]
    }

    test "keyspace events" {keydb} {
        r flushall
        with_config {notify-keyspace-events Kghx} {
            foreach {script expected} {
                {r hsetex k fields 2 a 1 b 2}                                  {hset}
                {r hsetex k ex 100 fields 2 a 1 b 2}                           {hset hexpire}
                {r hsetex k keepttl fields 1 a 2; r hsetex k fnx fields 1 a 2} {hset}
                {r hgetex k fields 1 a; r hgetex k ex 9 fields 1 n}            {}
                {r hgetex k ex 100 fields 2 a n}                               {hexpire}
                {r hgetex k persist fields 2 a b; r hgetex k persist fields 1 a} {hpersist}
                {r hgetex k px 0 fields 1 a}                                   {hdel}
                {r hsetex k px 0 fields 1 a 1}                                 {hset hdel}
                {r hgetex k px 0 fields 1 b}                                   {hdel del}
                {r hsetex k px 0 fields 1 b 1}                                 {hset hdel del}
                {r hset k a 1 b 2; r hgetdel k fields 2 a n}                   {hset hdel}
                {r hgetdel k fields 1 a; r hgetdel k fields 2 a b}             {hdel del}
            } {
                assert_equal $expected [key_events_of $script] $script
            }
        }
    }

    test "within MULTI and scripts, watched, above maxmemory" {keydb} {
        r flushall
        r multi
        r hsetex k ex 100 fields 2 a 1 b 2
        r hgetex k persist fields 1 a
        r hgetdel k fields 2 a b
        assert_equal {1 1 {1 2}} [r exec]
        assert_equal 0 [r exists k]
        assert_equal {1 100 {}} [r eval {
            redis.call('hsetex', KEYS[1], 'ex', 100, 'fields', 2, 'a', 1, 'b', 2)
            local values = redis.call('hgetex', KEYS[1], 'persist', 'fields', 1, 'b')
            local left = redis.call('httl', KEYS[1], 'fields', 2, 'a', 'b')
            return {redis.call('hgetdel', KEYS[1], 'fields', 1, 'a')[1], left[1],
                redis.call('hgetdel', KEYS[1], 'fields', 1, 'a')[1] or ''}
        } 1 k]
        assert_equal "b 2 -1" [fields]
        foreach {words is_changed} {{hgetex k fields 1 b} 0 {hgetex k ex 10 fields 1 b} 1 {hsetex k fnx fields 1 b 1} 0
                {hsetex k fields 1 b 1} 1 {hgetdel k fields 1 n} 0 {hgetdel k fields 1 b} 1} {
            r watch k
            [set other [connect]] {*}$words
            $other -close
            r multi
            r ping
            assert_equal [expr {$is_changed ? {} : "PONG"}] [r exec] $words
        }
        r hset k a 1 b 2
        with_config {maxmemory 1} {
            assert_error "OOM *" {r hsetex k fields 1 a 2}
            assert_equal 1 [r hgetex k ex 100 fields 1 a]
            assert_equal {1 2} [r hgetdel k fields 2 a b]
        }
    }

    test "users need the key for what a command does to it" {keydb} {
        r flushall
        r acl setuser u on nopass +@all resetkeys %W~w* %R~r* %RW~a*
        set c [connect]
        $c auth u x
        foreach words {{hsetex K fields 1 f v} {hgetex K fields 1 f} {hgetdel K fields 1 f}} {
            assert_error "NOPERM No permissions to access a key*" {$c {*}[string map {K r} $words]}
            if {[lindex $words 0] ne "hsetex"} {
                assert_error "NOPERM No permissions to access a key*" {$c {*}[string map {K w} $words]}
            }
            $c {*}[string map {K a} $words]
        }
        assert_equal 1 [$c hsetex w fnx fields 1 f v]
        r acl setuser u -@hash
        assert_error "NOPERM User u has no permissions to run the 'hgetex' command*" {$c hgetex a fields 1 f}
    }
}
