# Completion of keydb-cli for bash: options, files, and names of commands, which the server is asked for.

_keydb_cli_commands() {
    local words=() index word
    # The options that say which server; the others are of no interest here.
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        case $word in
        -h | -p | -s | -u | -a | --user | --pass | --cacert | --cacertdir | --cert | --key | --sni)
            words+=("$word" "${COMP_WORDS[++index]}") ;;
        --tls | --insecure) words+=("$word") ;;
        esac
    done
    timeout 2 "${COMP_WORDS[0]}" "${words[@]}" --no-auth-warning --raw COMMAND LIST 2>/dev/null </dev/null | grep -v '|'
}

_keydb_cli() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} index word
    COMPREPLY=()
    case $before in
    --cacert | --cert | --key | --eval | --rdb | --functions-rdb | -s)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return ;;
    --cacertdir)
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return ;;
    -h | -p | -u | -n | -a | --user | --pass | -r | -i | -d | -D | -X | --sni | --tls-ciphers | --tls-ciphersuites | \
        --pipe-timeout | --pattern | --quoted-pattern | --count | --memkeys-samples | --intrinsic-latency | --lru-test | \
        --compare | --rate)
        return ;;
    --show-pushes)
        mapfile -t COMPREPLY < <(compgen -W "yes no" -- "$current")
        return ;;
    esac
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "-2 -3 -a -c -d -D -e -h -i -n -p -r -s -u -v -x -X
            --askpass --bigkeys --cacert --cacertdir --cert --compare --count --csv --eval --functions-rdb --help
            --hotkeys --insecure --intrinsic-latency --json --key --latency --latency-dist --latency-history --ldb
            --ldb-sync-mode --lru-test --memkeys --memkeys-samples --mono --no-auth-warning --no-raw --pass --pattern
            --pipe --pipe-timeout --quoted-input --quoted-json --quoted-pattern --rate --raw --rdb --replica --scan
            --show-pushes --sni --stat --tls --tls-ciphers --tls-ciphersuites --user --verbose --version" -- "$current")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$(_keydb_cli_commands)" -- "${current,,}")
}

complete -o default -F _keydb_cli keydb-cli
