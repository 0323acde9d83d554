# Completion of keydb-benchmark for bash: options, files, and names of tests.

_keydb_benchmark() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} first=""
    COMPREPLY=()
    case $before in
    --cacert | --cert | --key | --json | --svg | -s)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return ;;
    --cacertdir)
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return ;;
    -t) # a list: what stands before the last comma stays
        [[ $current != *,* ]] || first=${current%,*},
        mapfile -t COMPREPLY < <(compgen -P "$first" -W "ping_inline ping_mbulk ping set get incr lpush rpush lpop rpop
            sadd hset spop zadd zpopmin lrange lrange_100 lrange_300 lrange_500 lrange_600 mset xadd mget hmset hmget" \
            -- "${current##*,}")
        return ;;
    --distribution)
        mapfile -t COMPREPLY < <(compgen -W "uniform sequential gaussian zipf latest" -- "$current")
        return ;;
    --ycsb)
        mapfile -t COMPREPLY < <(compgen -W "load A B C D E F" -- "$current")
        return ;;
    -k)
        mapfile -t COMPREPLY < <(compgen -W "0 1" -- "$current")
        return ;;
    -h | -p | -u | -a | --user | --dbnum | -n | -c | -P | -d | -r | --threads | --rate | --duration | --warm-up | \
        --key-size | --ratio | --mix | --seed | --precision | --sni | --tls-ciphers | --tls-ciphersuites)
        return ;;
    esac
    [[ $current != -* ]] ||
        mapfile -t COMPREPLY < <(compgen -W "-3 -a -c -d -h -I -k -l -n -p -P -q -r -s -t -u -v -x --cacert --cacertdir
            --cert --cluster --csv --dbnum --diagnose --distribution --duration --enable-tracking --go-on --help
            --insecure --json --key --key-size --mix --precision --rate --ratio --seed --sni --svg --table --threads --tls --tls-ciphers
            --tls-ciphersuites --user --version --warm-up --ycsb" -- "$current")
}

complete -o default -F _keydb_benchmark keydb-benchmark
