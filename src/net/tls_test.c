#include "net/tls.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/tick.h"
#include "net/conn.h"
#include "net/loop.h"

#include <fcntl.h>
#include <malloc.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Both ends are connections of one loop, or the far end is the library alone on a blocking socket's bytes. The
 * certificates are made here: an authority, a server and a client signed by it, and a stranger signed by itself. */

static enum loop_kind kind;
static struct loop *loop;
static char folder[] = "/tmp/tls_test.XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % countof(paths)];

    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

/* -------------------------------------------------------------------------------------------- certificates -- */

static void add_extension(X509 *certificate, int kind_of, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension = NULL;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, kind_of, value);
    assert_non_null(extension);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

static void write_files(const char *name, X509 *certificate, EVP_PKEY *key, const char *password)
{
    char file[32];
    FILE *out = NULL;

    snprintf(file, sizeof(file), "%s.crt", name);
    out = fopen(path_of(file), "w");
    assert_int_equal(PEM_write_X509(out, certificate), 1);
    fclose(out);
    snprintf(file, sizeof(file), "%s.key", name);
    out = fopen(path_of(file), "w");
    assert_int_equal(PEM_write_PrivateKey(out, key, password != NULL ? EVP_aes_128_cbc() : NULL,
                                          (const unsigned char *)password, password != NULL ? (int)strlen(password) : 0,
                                          NULL, NULL),
                     1);
    fclose(out);
}

static X509 *make_certificate(const char *name, X509 *authority, EVP_PKEY *authority_key, EVP_PKEY **key,
                              const char *password)
{
    static long serial = 1;
    X509 *certificate = X509_new();
    X509_NAME *subject = X509_get_subject_name(certificate);

    *key = EVP_EC_gen("P-256");
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_set_pubkey(certificate, *key);
    X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC, (const unsigned char *)"test", -1, -1, 0);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(certificate, authority != NULL ? X509_get_subject_name(authority) : subject);
    if (authority != NULL)
        add_extension(certificate, NID_subject_alt_name,
                      "DNS:host.example,IP:127.0.0.1,IP:2001:db8::1,URI:urn:x:y,email:a@example.org");
    else
        add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(certificate, authority != NULL ? authority_key : *key, EVP_sha256());
    write_files(name, certificate, *key, password);
    return certificate;
}

static int make_certificates(void **state)
{
    static const struct {
        const char *name;
        const char *password;
    } signed_ones[] = {{"server", NULL}, {"client", NULL}, {"locked", "secret"}};
    EVP_PKEY *authority_key = NULL;
    EVP_PKEY *key = NULL;
    X509 *authority = NULL;
    X509 *certificate = NULL;

    (void)state;
    if (access(path_of("server.crt"), R_OK) == 0)
        return 0;
    assert_non_null(mkdtemp(folder));
    authority = make_certificate("authority", NULL, NULL, &authority_key, NULL);
    for (size_t i = 0; i < countof(signed_ones); i++) {
        certificate = make_certificate(signed_ones[i].name, authority, authority_key, &key, signed_ones[i].password);
        X509_free(certificate);
        EVP_PKEY_free(key);
    }
    certificate = make_certificate("stranger", NULL, NULL, &key, NULL);
    X509_free(certificate);
    EVP_PKEY_free(key);
    X509_free(authority);
    EVP_PKEY_free(authority_key);
    return 0;
}

static void remove_certificates(void)
{
    static const char *const names[] = {"authority", "server", "client", "locked", "stranger"};

    for (size_t i = 0; i < countof(names); i++) {
        char file[32];

        snprintf(file, sizeof(file), "%s.crt", names[i]);
        unlink(path_of(file));
        snprintf(file, sizeof(file), "%s.key", names[i]);
        unlink(path_of(file));
    }
    rmdir(folder);
}

static struct tls_options options_for(const char *name)
{
    char crt[32];
    char key[32];

    snprintf(crt, sizeof(crt), "%s.crt", name);
    snprintf(key, sizeof(key), "%s.key", name);
    return (struct tls_options){.cert_file = path_of(crt),
                                .key_file = path_of(key),
                                .ca_cert_file = path_of("authority.crt"),
                                .session_caching = true,
                                .session_cache_size = 100,
                                .session_cache_timeout_s = 300,
                                .auth_clients = TLS_AUTH_NO};
}

static struct tls_context *context_of(const struct tls_options *options)
{
    struct tls_context *context = NULL;
    char error[TLS_ERROR_BYTES] = "";

    if (!tls_context_create(options, NULL, &context, error))
        fail_msg("%s", error);
    return context;
}

/* -------------------------------------------------------------------------------------------- connections -- */

/* One end. Input is collected; "D<n>\n" at the server's end asks for a direct receive of n bytes. */
struct end {
    struct conn conn;
    struct buffer got;
    char *direct;
    size_t direct_size;
    bool takes_direct;
    bool echoes;
    unsigned opened;
    bool closed;
    enum conn_close_reason reason;
    char detail[256];
};

static size_t on_data(struct conn *conn, char *data, size_t size)
{
    struct end *end = (struct end *)conn;

    if (end->takes_direct && data[0] == 'D') {
        char *line_end = memchr(data, '\n', size);
        size_t head = 0;
        size_t there = 0;

        if (line_end == NULL)
            return 0;
        head = (size_t)(line_end - data) + 1;
        end->direct_size = strtoul(data + 1, NULL, 10);
        end->direct = mem_alloc(end->direct_size);
        there = MIN(end->direct_size, size - head);
        memcpy(end->direct, data + head, there);
        if (there == end->direct_size) {
            conn->handler->on_direct_done(conn);
            buffer_append(&end->got, data + head + there, size - head - there);
            return size;
        }
        conn_receive_direct(conn, end->direct + there, end->direct_size - there, there);
        return head;
    }
    buffer_append(&end->got, data, size);
    if (end->echoes) {
        output_append(&conn->output, data, size);
        conn_write_pending(conn);
    }
    return size;
}

static void on_direct_done(struct conn *conn)
{
    struct end *end = (struct end *)conn;

    buffer_append(&end->got, end->direct, end->direct_size);
    mem_free(end->direct);
    end->direct = NULL;
}

static void on_open(struct conn *conn)
{
    ((struct end *)conn)->opened++;
}

static void on_closed(struct conn *conn, enum conn_close_reason reason, const char *detail)
{
    struct end *end = (struct end *)conn;

    mem_free(end->direct);
    end->direct = NULL;
    end->closed = true;
    end->reason = reason;
    snprintf(end->detail, sizeof(end->detail), "%s", detail);
}

static const struct conn_handler handler = {.on_data = on_data,
                                            .on_direct_done = on_direct_done,
                                            .on_open = on_open,
                                            .on_closed = on_closed};

static int setup_loop(void **state)
{
    (void)state;
    loop = loop_create(&(struct loop_options){.kind = kind});
    assert_non_null(loop);
    return 0;
}

static int teardown_loop(void **state)
{
    (void)state;
    loop_destroy(&loop);
    return 0;
}

static int listen_here(struct sockaddr_storage *address, socklen_t *size)
{
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sa_family_t family = AF_UNIX;

    assert_int_equal(bind(listener, (struct sockaddr *)&family, sizeof(family)), 0); /* the system names it */
    assert_int_equal(listen(listener, 5), 0);
    *size = sizeof(*address);
    assert_int_equal(getsockname(listener, (struct sockaddr *)address, size), 0);
    return listener;
}

static void open_pair(struct end *server, struct end *client, struct tls_context *server_tls,
                      struct tls_context *client_tls)
{
    struct sockaddr_storage address;
    socklen_t size = 0;
    int listener = listen_here(&address, &size);
    int fd = -1;

    *server = (struct end){0};
    *client = (struct end){0};
    assert_true(conn_connect(loop, &client->conn, (struct sockaddr *)&address, size, NULL, 0, &handler, client_tls,
                             "host.example"));
    fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(fd >= 0);
    close(listener);
    assert_true(conn_open(loop, &server->conn, fd, &handler, server_tls));
}

static bool is_over(const struct end *end)
{
    return end->closed || end->opened > 0;
}

static void shake_hands(struct end *server, struct end *client)
{
    for (int i = 0; i < 200 && !(is_over(server) && is_over(client)); i++)
        loop_turn(loop, 5000);
    if (server->closed || client->closed)
        print_message("server: %s, client: %s\n", server->detail, client->detail);
}

static void turns(int count)
{
    for (int i = 0; i < count; i++)
        loop_turn(loop, 1000);
}

static void close_pair(struct end *server, struct end *client)
{
    conn_close(&client->conn);
    for (int i = 0; i < 200 && !(server->closed && client->closed); i++)
        loop_turn(loop, 5000);
    assert_true(server->closed && client->closed);
    buffer_fini(&server->got);
    buffer_fini(&client->got);
}

static void expect_got(struct end *end, size_t size)
{
    for (int i = 0; i < 20000 && end->got.size < size && !end->closed; i++)
        loop_turn(loop, 5000);
    assert_int_equal(end->got.size, size);
}

/* --------------------------------------------------------------------------------------------------- tests -- */

static void talks_in_every_version(void **state)
{
    static const char *const versions[] = {"TLSv1.2", "TLSv1.3", "TLSv1.2 TLSv1.3"};

    (void)state;
    for (size_t i = 0; i < countof(versions); i++) {
        struct tls_options options = options_for("server");
        struct tls_context *context = NULL;
        struct end server;
        struct end client;

        options.protocols = versions[i];
        context = context_of(&options);
        open_pair(&server, &client, context, context);
        shake_hands(&server, &client);
        assert_int_equal(server.opened, 1);
        assert_int_equal(client.opened, 1);
        assert_string_equal(tls_conn_version(&server.conn), i == 0 ? "TLSv1.2" : "TLSv1.3");
        assert_true(tls_conn_cipher(&client.conn)[0] != '\0');
        server.echoes = true;
        output_append(&client.conn.output, "hello", 5);
        conn_write_pending(&client.conn);
        expect_got(&client, 5);
        assert_memory_equal(client.got.data, "hello", 5);
        close_pair(&server, &client);
        assert_int_equal(server.reason, CONN_CLOSED_PEER);
        assert_int_equal(client.reason, CONN_CLOSED_LOCAL);
        tls_context_release(&context);
    }
}

static void no_common_version(void **state)
{
    struct tls_options old = options_for("server");
    struct tls_options new = options_for("server");
    struct tls_context *server_tls = NULL;
    struct tls_context *client_tls = NULL;
    struct end server;
    struct end client;

    (void)state;
    old.protocols = "TLSv1.2";
    new.protocols = "TLSv1.3";
    server_tls = context_of(&new);
    client_tls = context_of(&old);
    open_pair(&server, &client, server_tls, client_tls);
    shake_hands(&server, &client);
    assert_true(server.closed);
    assert_int_equal(server.reason, CONN_CLOSED_HANDSHAKE);
    assert_non_null(strstr(server.detail, "unsupported protocol"));
    assert_int_equal(client.reason, CONN_CLOSED_HANDSHAKE); /* the alert reached it */
    assert_non_null(strstr(client.detail, "alert protocol version"));
    tls_context_release(&server_tls);
    tls_context_release(&client_tls);
}

static bool is_email(const char *name, size_t size, void *user)
{
    unsigned *seen = user;

    ++*seen;
    return size == 13 && memcmp(name, "a@example.org", 13) == 0;
}

static bool note_name(const char *name, size_t size, void *user)
{
    struct buffer *names = user;

    buffer_append(names, name, size);
    buffer_append_char(names, ' ');
    return false;
}

static void clients_show_certificates(void **state)
{
    static const enum tls_auth_clients modes[] = {TLS_AUTH_NO, TLS_AUTH_OPTIONAL, TLS_AUTH_YES};

    (void)state;
    for (size_t i = 0; i < countof(modes); i++) {
        struct tls_options server_options = options_for("server");
        struct tls_options client_options = options_for("server");
        struct tls_context *server_tls = NULL;
        struct tls_context *client_tls = NULL;
        struct end server;
        struct end client;
        struct buffer names = {0};
        unsigned seen = 0;
        char text[128];
        bool shown = modes[i] != TLS_AUTH_NO;

        server_options.auth_clients = modes[i];
        client_options.client_cert_file = path_of("client.crt");
        client_options.client_key_file = path_of("client.key");
        server_tls = context_of(&server_options);
        client_tls = context_of(&client_options);
        open_pair(&server, &client, server_tls, client_tls);
        shake_hands(&server, &client);
        assert_int_equal(server.opened, 1);
        assert_int_equal(tls_conn_peer_has_certificate(&server.conn), shown);
        tls_conn_peer_subject(&server.conn, text, sizeof(text));
        assert_string_equal(text, shown ? "CN=client,O=test" : "");
        tls_conn_peer_common_name(&server.conn, text, sizeof(text));
        assert_string_equal(text, shown ? "client" : "");
        assert_int_equal(tls_conn_peer_fingerprint(&server.conn, text, sizeof(text)), shown ? 64 : 0);
        assert_int_equal(tls_conn_peer_match_names(&server.conn, is_email, &seen), shown);
        assert_int_equal(seen, shown ? 2 : 0);
        assert_false(tls_conn_peer_match_uris(&server.conn, note_name, &names));
        assert_string_equal(buffer_text(&names), shown ? "urn:x:y " : "");
        buffer_fini(&names);
        assert_false(tls_conn_peer_match_names(&server.conn, note_name, &names));
        assert_string_equal(buffer_text(&names),
                            shown ? "client a@example.org host.example urn:x:y 127.0.0.1 2001:db8::1 " : "");
        buffer_fini(&names);
        close_pair(&server, &client);
        tls_context_release(&server_tls);
        tls_context_release(&client_tls);
    }
}

static void strangers_are_refused(void **state)
{
    struct tls_options server_options = options_for("server");
    struct tls_options client_options = options_for("stranger");
    struct tls_context *server_tls = NULL;
    struct tls_context *client_tls = NULL;
    struct end server;
    struct end client;

    (void)state;
    server_options.auth_clients = TLS_AUTH_YES;
    server_tls = context_of(&server_options);
    client_tls = context_of(&client_options);
    open_pair(&server, &client, server_tls, client_tls);
    for (int i = 0; i < 200 && !server.closed; i++)
        loop_turn(loop, 5000);
    assert_true(server.closed);
    assert_int_equal(server.opened, 0);
    assert_int_equal(server.reason, CONN_CLOSED_HANDSHAKE);
    assert_non_null(strstr(server.detail, "certificate verify failed"));
    turns(5);
    if (!client.closed)
        conn_close(&client.conn);
    turns(5);
    buffer_fini(&client.got);

    /* And the other way round: a client that does not trust the server. */
    server_options = options_for("stranger");
    tls_context_release(&server_tls);
    server_tls = context_of(&server_options);
    open_pair(&server, &client, server_tls, client_tls);
    shake_hands(&server, &client);
    assert_true(client.closed);
    assert_int_equal(client.reason, CONN_CLOSED_HANDSHAKE);
    assert_non_null(strstr(client.detail, "self-signed certificate"));
    turns(5);
    tls_context_release(&server_tls);
    tls_context_release(&client_tls);
}

static void plain_bytes_are_no_handshake(void **state)
{
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);
    struct end server = {0};
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    assert_true(conn_open(loop, &server.conn, pair[0], &handler, context));
    assert_int_equal(write(pair[1], "*1\r\n$4\r\nPING\r\n", 14), 14);
    for (int i = 0; i < 100 && !server.closed; i++)
        turns(1);
    assert_true(server.closed);
    assert_int_equal(server.reason, CONN_CLOSED_HANDSHAKE);
    assert_int_equal(server.opened, 0);
    close(pair[1]);

    /* Nor is silence and then the end. */
    server = (struct end){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    assert_true(conn_open(loop, &server.conn, pair[0], &handler, context));
    turns(2);
    close(pair[1]);
    for (int i = 0; i < 100 && !server.closed; i++)
        turns(1);
    assert_int_equal(server.reason, CONN_CLOSED_HANDSHAKE);
    tls_context_release(&context);
}

/* All sizes, in small and large appends, both ways, some received directly. */
static void any_amount(void **state)
{
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);
    struct random random;
    uint64_t seed = 271828;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    random_seed(&random, seed);
    for (int round = 0; round < 30; round++) {
        static const size_t limits[] = {100, 5000, 40000, 400000};
        struct end server;
        struct end client;
        struct buffer sent = {0};
        size_t limit = limits[random_below(&random, countof(limits))];

        open_pair(&server, &client, context, context);
        shake_hands(&server, &client);
        server.echoes = true;
        for (int i = 0; i < 20; i++) {
            size_t size = 1 + random_below(&random, limit);
            char *bytes = buffer_reserve(&sent, size);

            for (size_t n = 0; n < size; n++)
                bytes[n] = (char)random_below(&random, 256);
            sent.size += size;
            for (size_t at = 0; at < size;) { /* in pieces, so that the output has many */
                size_t part = 1 + random_below(&random, limit);

                part = MIN(part, size - at);
                output_append(&client.conn.output, bytes + at, part);
                at += part;
            }
            conn_write_pending(&client.conn);
            if (random_below(&random, 3) == 0)
                loop_turn(loop, 0);
        }
        expect_got(&client, sent.size);
        assert_memory_equal(client.got.data, sent.data, sent.size);
        close_pair(&server, &client);
        buffer_fini(&sent);
    }
    tls_context_release(&context);
}

static void direct_memory(void **state)
{
    static const size_t sizes[] = {1, 100, 16384, 100000, 3000000};
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);

    (void)state;
    for (size_t i = 0; i < countof(sizes); i++) {
        struct end server;
        struct end client;
        struct buffer sent = {0};

        open_pair(&server, &client, context, context);
        shake_hands(&server, &client);
        server.takes_direct = true;
        buffer_printf(&sent, "D%zu\n", sizes[i]);
        for (size_t n = 0; n < sizes[i]; n++)
            buffer_append_char(&sent, (char)(n * 7));
        buffer_append_text(&sent, "tail");
        output_append(&client.conn.output, sent.data, sent.size);
        conn_write_pending(&client.conn);
        expect_got(&server, sizes[i] + 4);
        assert_memory_equal(server.got.data, sent.data + (sent.size - sizes[i] - 4), sizes[i] + 4);
        close_pair(&server, &client);
        buffer_fini(&sent);
    }
    tls_context_release(&context);
}

/* A reload swaps the context; old connections live on. */
static void reload_keeps_old_connections(void **state)
{
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);
    struct end server;
    struct end client;

    (void)state;
    open_pair(&server, &client, context, context);
    shake_hands(&server, &client);
    tls_context_release(&context);
    assert_null(context);
    server.echoes = true;
    output_append(&client.conn.output, "still here", 10);
    conn_write_pending(&client.conn);
    expect_got(&client, 10);
    close_pair(&server, &client);
}

static void a_full_socket_does_not_swell(void **state)
{
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);
    struct end server;
    struct end client;
    char *block = mem_alloc(1 << 20);

    (void)state;
    memset(block, 'x', 1 << 20);
    open_pair(&server, &client, context, context);
    shake_hands(&server, &client);
    turns(3);
    conn_pause(&client.conn);
    for (int i = 0; i < 20; i++)
        output_append(&server.conn.output, block, 1 << 20);
    conn_write_pending(&server.conn);
    turns(10);
    assert_true(output_size(&server.conn.output) > 15 << 20); /* waits as plain bytes */
    assert_true(conn_output_size(&server.conn) - output_size(&server.conn.output) <= 600 * 1024);
    conn_close_after_flush(&server.conn);
    conn_resume(&client.conn);
    expect_got(&client, 20 << 20);
    for (int i = 0; i < 100 && !(server.closed && client.closed); i++)
        turns(1);
    assert_true(server.closed && client.closed);
    assert_int_equal(client.reason, CONN_CLOSED_PEER);
    buffer_fini(&client.got);
    mem_free(block);
    tls_context_release(&context);
}

enum { CROWD = 100 };

static unsigned count_answered(const struct end *crowd)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CROWD; i++)
        count += crowd[2 * i].conn.bytes_out > 0;
    return count;
}

static unsigned count_opened(const struct end *crowd)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CROWD; i++)
        count += crowd[2 * i].opened;
    return count;
}

/* A crowd of handshakes arrives at once: the server's part, the costly one, is spread over turns. */
static void handshakes_take_turns(void **state)
{
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);
    struct end *crowd = mem_alloc_zero(2 * CROWD * sizeof(*crowd));
    unsigned most = 0;

    (void)state;
    for (unsigned i = 0; i < CROWD; i++)
        open_pair(&crowd[2 * i], &crowd[2 * i + 1], context, context);
    for (int i = 0; i < 20000 && count_opened(crowd) < CROWD; i++) {
        unsigned before = count_answered(crowd);

        loop_turn(loop, 5000);
        most = MAX(most, count_answered(crowd) - before);
    }
    assert_int_equal(count_opened(crowd), CROWD);
    assert_true(most < CROWD / 2);
    for (unsigned i = 0; i < CROWD; i++)
        close_pair(&crowd[2 * i], &crowd[2 * i + 1]);

    /* Some leave while they wait. */
    for (unsigned i = 0; i < CROWD; i++)
        open_pair(&crowd[2 * i], &crowd[2 * i + 1], context, context);
    turns(2);
    for (unsigned i = 0; i < CROWD; i++)
        close_pair(&crowd[2 * i], &crowd[2 * i + 1]);
    mem_free(crowd);
    tls_context_release(&context);
}

static void certificates_have_facts(void **state)
{
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);
    const struct tls_certificate_facts *server = tls_context_certificate(context, TLS_CERTIFICATE_SERVER);
    const struct tls_certificate_facts *authority = tls_context_certificate(context, TLS_CERTIFICATE_AUTHORITY);

    (void)state;
    assert_true(server->known && authority->known);
    assert_string_equal(authority->serial, "01");
    assert_string_equal(server->serial, "02");
    assert_in_range(server->expires_s, time(NULL) + 86400 - 3600, time(NULL) + 86400);
    tls_context_release(&context);
}

static void errors_name_what_is_wrong(void **state)
{
    struct tls_options options;
    struct tls_context *context = NULL;
    char error[TLS_ERROR_BYTES];

    (void)state;
#define EXPECT_ERROR(part1, part2)                                         \
    do {                                                                   \
        assert_false(tls_context_create(&options, NULL, &context, error)); \
        assert_null(context);                                              \
        assert_non_null(strstr(error, part1));                             \
        assert_non_null(strstr(error, part2));                             \
    } while (0)
    options = options_for("absent");
    EXPECT_ERROR("Failed to load certificate", "absent.crt");
    options = options_for("server");
    options.key_file = path_of("client.key");
    EXPECT_ERROR("private key", "client.key");
    options = options_for("server");
    options.key_file = "";
    EXPECT_ERROR("No key file", "server.crt");
    options = options_for("server");
    options.ca_cert_file = "/no/such/file";
    EXPECT_ERROR("CA certificates", "/no/such/file");
    options = options_for("server");
    options.ca_cert_file = NULL;
    options.auth_clients = TLS_AUTH_YES;
    EXPECT_ERROR("tls-ca-cert-file", "tls-ca-cert-dir");
    options = options_for("server");
    options.protocols = "TLSv1.2 SSLv9";
    EXPECT_ERROR("tls-protocols", "SSLv9");
    options = options_for("server");
    options.ciphers = "nonsense";
    EXPECT_ERROR("tls-ciphers", "nonsense");
    options = options_for("server");
    options.ciphersuites = "nonsense";
    EXPECT_ERROR("tls-ciphersuites", "nonsense");
    options = options_for("server");
    options.dh_params_file = path_of("server.crt");
    EXPECT_ERROR("DH parameters", "server.crt");
    options = options_for("locked");
    EXPECT_ERROR("private key", "locked.key");
    options.key_file_pass = "wrong";
    EXPECT_ERROR("private key", "locked.key");
    options.key_file_pass = "secret";
    context = context_of(&options);
    tls_context_release(&context);
    tls_context_release(&context);
#undef EXPECT_ERROR
}

/* What others have left in the thread's queue of errors does not end a session that waits for the rest of a record. */
static void errors_of_others_do_no_harm(void **state)
{
    enum { SIZE = 1000 * 1000 };
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);
    struct end server;
    struct end client;
    char *bytes = mem_alloc_zero(SIZE);

    (void)state;
    open_pair(&server, &client, context, context);
    shake_hands(&server, &client);
    output_append(&client.conn.output, bytes, SIZE);
    conn_write_pending(&client.conn);
    for (int i = 0; i < 20000 && server.got.size < SIZE && !server.closed; i++) {
        ERR_raise(ERR_LIB_USER, 1);
        loop_turn(loop, 5000);
    }
    ERR_clear_error();
    assert_int_equal(server.got.size, SIZE);
    close_pair(&server, &client);
    mem_free(bytes);
    tls_context_release(&context);
}

/* ---- Sessions that are resumed. The client is the library alone: ours keeps no sessions. */

static SSL_CTX *client_of(int version)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    assert_int_equal(SSL_CTX_use_certificate_chain_file(context, path_of("client.crt")), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(context, path_of("client.key"), SSL_FILETYPE_PEM), 1);
    SSL_CTX_set_min_proto_version(context, version);
    SSL_CTX_set_max_proto_version(context, version);
    return context;
}

/* Connects, has a byte echoed, and notes what the server knows of the client. The session of the connection takes the
 * place of the one that it began with. Returns whether it was resumed. */
static bool come_again(struct tls_context *context, SSL_CTX *client, SSL_SESSION **session, char *fingerprint)
{
    struct end server = {.echoes = true};
    struct buffer names = {0};
    bool resumed = false;
    SSL *ssl = SSL_new(client);
    char byte = 'x';
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    assert_true(conn_open(loop, &server.conn, pair[0], &handler, context));
    SSL_set_fd(ssl, pair[1]);
    if (*session != NULL)
        SSL_set_session(ssl, *session);
    for (int i = 0; i < 200 && SSL_connect(ssl) != 1; i++)
        loop_turn(loop, 5000);
    assert_int_equal(SSL_write(ssl, &byte, 1), 1);
    for (int i = 0; i < 200 && SSL_read(ssl, &byte, 1) != 1; i++)
        loop_turn(loop, 5000);
    assert_ptr_equal(OSSL_LIB_CTX_set0_default(NULL), OSSL_LIB_CTX_get0_global_default());
    resumed = tls_conn_resumed(&server.conn);
    assert_int_equal(resumed, SSL_session_reused(ssl));
    assert_true(tls_conn_peer_has_certificate(&server.conn));
    assert_int_equal(tls_conn_peer_fingerprint(&server.conn, fingerprint, TLS_FINGERPRINT_BYTES), 64);
    assert_false(tls_conn_peer_match_names(&server.conn, note_name, &names));
    assert_non_null(strstr(buffer_text(&names), "host.example"));
    buffer_fini(&names);
    SSL_SESSION_free(*session);
    *session = SSL_get1_session(ssl);
    SSL_shutdown(ssl);
    SSL_free(ssl);
    close(pair[1]);
    for (int i = 0; i < 200 && !server.closed; i++)
        loop_turn(loop, 5000);
    buffer_fini(&server.got);
    return resumed;
}

static void damage_ticket(const SSL_SESSION *session)
{
    const unsigned char *ticket = NULL;
    size_t size = 0;

    SSL_SESSION_get0_ticket(session, &ticket, &size);
    assert_true(size > 100);
    ((unsigned char *)(uintptr_t)ticket)[size - 1] ^= 1;
}

static void resumed_sessions_have_the_certificate(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct tls_options options = options_for("server");

    (void)state;
    options.auth_clients = TLS_AUTH_YES;
    for (size_t i = 0; i < countof(versions); i++) {
        struct tls_context *context = context_of(&options);
        struct tls_context *other = context_of(&options); /* with keys of its own */
        SSL_CTX *client = client_of(versions[i]);
        SSL_SESSION *session = NULL;
        char first[TLS_FINGERPRINT_BYTES], again[TLS_FINGERPRINT_BYTES];

        assert_false(come_again(context, client, &session, first));
        for (int times = 0; times < 3; times++) {
            assert_true(come_again(context, client, &session, again));
            assert_string_equal(again, first);
        }
        assert_false(come_again(other, client, &session, again));
        assert_string_equal(again, first);
        damage_ticket(session);
        assert_false(come_again(other, client, &session, again));
        assert_true(come_again(other, client, &session, again));
        SSL_SESSION_free(session);
        SSL_CTX_free(client);
        tls_context_release(&context);
        tls_context_release(&other);
    }
}

/* ---- Handshakes beside others */

static struct end *neighbour; /* the other pair's server, and client, of neighbours_are_served_first */
static bool neighbour_was_sent;

static void ask_neighbour(struct conn *conn)
{
    on_open(conn);
    output_append(&neighbour[1].conn.output, "x", 1);
    conn_write_pending(&neighbour[1].conn);
}

static void look_at_neighbour(struct conn *conn)
{
    on_open(conn);
    neighbour_was_sent = neighbour[0].got.size == 1 && output_is_empty(&neighbour[0].conn.output);
}

/* The end of a handshake, and a request on another connection, arrive in one turn: the reply is sent before the
 * handshake goes on. */
static void neighbours_are_served_first(void **state)
{
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);
    struct conn_handler asks = handler, looks = handler;
    struct end old[2], young[2];

    (void)state;
    asks.on_open = ask_neighbour;
    looks.on_open = look_at_neighbour;
    open_pair(&old[0], &old[1], context, context);
    shake_hands(&old[0], &old[1]);
    old[0].echoes = true;
    neighbour = old;
    neighbour_was_sent = false;
    open_pair(&young[0], &young[1], context, context);
    young[0].conn.handler = &looks;
    young[1].conn.handler = &asks;
    shake_hands(&young[0], &young[1]);
    assert_true(neighbour_was_sent);
    expect_got(&old[1], 1);
    close_pair(&young[0], &young[1]);
    close_pair(&old[0], &old[1]);
    tls_context_release(&context);
}

static void say_and_leave(struct conn *conn)
{
    on_open(conn);
    output_append(&conn->output, "x", 1);
    conn_close_after_flush(conn);
}

/* Those whose handshake still waits when their end arrives are heard, too. */
static void the_end_does_not_overtake(void **state)
{
    struct tls_options options = options_for("server");
    struct tls_context *context = context_of(&options);
    struct end *crowd = mem_alloc_zero(2 * CROWD * sizeof(*crowd));
    struct conn_handler leaves = handler;

    (void)state;
    leaves.on_open = say_and_leave;
    for (unsigned i = 0; i < CROWD; i++) {
        open_pair(&crowd[2 * i], &crowd[2 * i + 1], context, context);
        crowd[2 * i + 1].conn.handler = &leaves;
    }
    for (unsigned i = 0; i < CROWD; i++) {
        struct end *server = &crowd[2 * i];

        for (int tries = 0; tries < 20000 && !(server[0].closed && server[1].closed); tries++)
            loop_turn(loop, 5000);
        assert_true(server[0].closed && server[1].closed);
        assert_int_equal(server->opened, 1);
        assert_int_equal(server->got.size, 1);
        buffer_fini(&server->got);
    }
    mem_free(crowd);
    tls_context_release(&context);
}

#define FOR(test) cmocka_unit_test_setup_teardown(test, setup_loop, teardown_loop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOR(talks_in_every_version),
        FOR(no_common_version),
        FOR(clients_show_certificates),
        FOR(strangers_are_refused),
        FOR(plain_bytes_are_no_handshake),
        FOR(any_amount),
        FOR(direct_memory),
        FOR(errors_of_others_do_no_harm),
        FOR(reload_keeps_old_connections),
        FOR(a_full_socket_does_not_swell),
        FOR(handshakes_take_turns),
        FOR(neighbours_are_served_first),
        FOR(the_end_does_not_overtake),
        FOR(resumed_sessions_have_the_certificate),
        FOR(certificates_have_facts),
        FOR(errors_name_what_is_wrong),
    };
    int failed = 0;

    tick_setup();
    kind = LOOP_EPOLL;
    failed += cmocka_run_group_tests_name("epoll", tests, make_certificates, NULL);
    kind = LOOP_IO_URING;
    failed += cmocka_run_group_tests_name("io_uring", tests, make_certificates, NULL);
    remove_certificates();
    return failed;
}
