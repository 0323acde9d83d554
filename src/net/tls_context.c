/* Contexts: the tls-* directives in the form of the library. */
#include "base/mem.h"
#include "base/slice.h"
#include "net/tls.h"
#include "net/tls_priv.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { TICKET_KEYS_MOST_S = 24 * 3600 };

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static const char *library_reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;

    return reason != NULL ? reason : code != 0 ? "unknown reason" : "no reason given";
}

static COLD bool context_fail(char error[TLS_ERROR_BYTES], const char *what, const char *value)
{
    snprintf(error, TLS_ERROR_BYTES, "%s: %s: %s", what, value, library_reason());
    ERR_clear_error();
    return false;
}

static int give_password(char *to, int size, int writing, void *user)
{
    const char *password = user;
    size_t length = password != NULL ? strlen(password) : 0;

    (void)writing;
    if (length == 0 || length > (size_t)size)
        return -1;
    memcpy(to, password, length);
    return (int)length;
}

/* The words of tls-protocols as options that switch the others off. */
static bool parse_protocols(const char *protocols, uint64_t *options, char error[TLS_ERROR_BYTES])
{
    static const struct {
        const char *name;
        uint64_t off;
    } known[] = {{"TLSv1", SSL_OP_NO_TLSv1},
                 {"TLSv1.1", SSL_OP_NO_TLSv1_1},
                 {"TLSv1.2", SSL_OP_NO_TLSv1_2},
                 {"TLSv1.3", SSL_OP_NO_TLSv1_3}};
    uint64_t off = SSL_OP_NO_SSLv3;
    const char *at = protocols;

    for (size_t i = 0; i < countof(known); i++)
        off |= known[i].off;
    while (*at != '\0') {
        size_t length = strcspn(at, " \t");
        bool found = length == 0;

        for (size_t i = 0; i < countof(known); i++)
            if (length != 0 && slice_equal_nocase(slice_make(at, length), slice_from_text(known[i].name))) {
                off &= ~known[i].off;
                found = true;
            }
        if (!found) {
            snprintf(error, TLS_ERROR_BYTES, "tls-protocols: unknown protocol '%.*s'", (int)length, at);
            return false;
        }
        at += length + (at[length] != '\0');
    }
    *options = off;
    return true;
}

static bool load_pair(SSL_CTX *context, const char *cert_file, const char *key_file, const char *password,
                      char error[TLS_ERROR_BYTES])
{
    SSL_CTX_set_default_passwd_cb(context, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(context, (void *)(uintptr_t)password);
    if (SSL_CTX_use_certificate_chain_file(context, cert_file) != 1)
        return context_fail(error, "Failed to load certificate", cert_file);
    if (!is_set(key_file))
        return context_fail(error, "No key file is given for certificate", cert_file);
    if (SSL_CTX_use_PrivateKey_file(context, key_file, SSL_FILETYPE_PEM) != 1)
        return context_fail(error, "Failed to load private key", key_file);
    if (SSL_CTX_check_private_key(context) != 1)
        return context_fail(error, "The private key does not match the certificate", key_file);
    SSL_CTX_set_default_passwd_cb_userdata(context, NULL); /* the caller's text */
    return true;
}

/* The library reads the extensions of a certificate when it needs them first, and keeps them: here, before connections
 * of several threads need them at once. */
static void read_authorities(SSL_CTX *context)
{
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));

    for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
        X509 *certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));

        if (certificate != NULL && X509_check_purpose(certificate, -1, 0) != 1)
            ERR_clear_error(); /* the connections that meet it are told */
    }
}

static bool load_authorities(SSL_CTX *context, const struct tls_options *options, char error[TLS_ERROR_BYTES])
{
    const char *file = is_set(options->ca_cert_file) ? options->ca_cert_file : NULL;
    const char *folder = is_set(options->ca_cert_dir) ? options->ca_cert_dir : NULL;

    if (file == NULL && folder == NULL)
        return true;
    if (SSL_CTX_load_verify_locations(context, file, folder) != 1)
        return context_fail(error, "Failed to load CA certificates", file != NULL ? file : folder);
    read_authorities(context);
    return true;
}

static bool load_dh_params(SSL_CTX *context, const char *path, char error[TLS_ERROR_BYTES])
{
    BIO *bio = NULL;
    EVP_PKEY *params = NULL;

    if (!is_set(path)) {
        SSL_CTX_set_dh_auto(context, 1);
        return true;
    }
    bio = BIO_new_file(path, "r");
    if (bio == NULL)
        return context_fail(error, "Failed to load DH parameters", path);
    params = PEM_read_bio_Parameters(bio, NULL);
    BIO_free(bio);
    if (params == NULL || SSL_CTX_set0_tmp_dh_pkey(context, params) != 1) {
        EVP_PKEY_free(params);
        return context_fail(error, "Failed to load DH parameters", path);
    }
    return true;
}

static bool set_ciphers(SSL_CTX *context, const struct tls_options *options, char error[TLS_ERROR_BYTES])
{
    if (is_set(options->ciphers) && SSL_CTX_set_cipher_list(context, options->ciphers) != 1)
        return context_fail(error, "Failed to configure tls-ciphers", options->ciphers);
    if (is_set(options->ciphersuites) && SSL_CTX_set_ciphersuites(context, options->ciphersuites) != 1)
        return context_fail(error, "Failed to configure tls-ciphersuites", options->ciphersuites);
    return true;
}

static void digest_file(EVP_MD_CTX *digest, const char *path)
{
    char bytes[4096];
    FILE *file = fopen(path, "re");
    size_t size = 0;

    if (file == NULL)
        return; /* load_authorities says so */
    while ((size = fread(bytes, 1, sizeof(bytes), file)) > 0)
        EVP_DigestUpdate(digest, bytes, size);
    fclose(file);
}

/* Sessions are resumed without checking the peer's certificate again, so they are bound to the rules of that check: the
 * library refuses sessions of another session id context. */
static bool set_session_id(SSL_CTX *context, const struct tls_options *options)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    unsigned char id[EVP_MAX_MD_SIZE];
    unsigned id_size = 0;
    unsigned char mode = (unsigned char)options->auth_clients;
    struct stat folder;
    bool done = digest != NULL && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1;

    if (done) {
        EVP_DigestUpdate(digest, &mode, 1);
        if (is_set(options->ca_cert_file))
            digest_file(digest, options->ca_cert_file);
        if (is_set(options->ca_cert_dir) && stat(options->ca_cert_dir, &folder) == 0) {
            EVP_DigestUpdate(digest, options->ca_cert_dir, strlen(options->ca_cert_dir) + 1);
            EVP_DigestUpdate(digest, &folder.st_mtim, sizeof(folder.st_mtim));
        }
        done = EVP_DigestFinal_ex(digest, id, &id_size) == 1 &&
               SSL_CTX_set_session_id_context(context, id, MIN(id_size, (unsigned)SSL_MAX_SID_CTX_LENGTH)) == 1;
    }
    EVP_MD_CTX_free(digest);
    return done;
}

/* The keys that tickets are encrypted with, from one context to the next. */
static bool pass_ticket_keys(const struct tls_context *from, SSL_CTX *to)
{
    unsigned char keys[TLS_TICKET_KEYS_BYTES];
    bool done = SSL_CTX_get_tlsext_ticket_keys(from->server, NULL, 0) == (long)sizeof(keys) &&
                SSL_CTX_get_tlsext_ticket_keys(from->server, keys, sizeof(keys)) == 1 &&
                SSL_CTX_set_tlsext_ticket_keys(to, keys, sizeof(keys)) == 1;

    OPENSSL_cleanse(keys, sizeof(keys));
    return done;
}

static void set_session_cache(SSL_CTX *context, const struct tls_options *options)
{
    if (!options->session_caching || !set_session_id(context, options)) {
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(context, 0);
        return;
    }
    tls_tickets_setup(context);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(context, options->session_cache_size);
    SSL_CTX_set_timeout(context, (long)options->session_cache_timeout_s);
}

/* The settings of both sides. */
static SSL_CTX *context_begin(const SSL_METHOD *method, const struct tls_options *options, char error[TLS_ERROR_BYTES])
{
    const char *protocols = is_set(options->protocols) ? options->protocols : "TLSv1.2 TLSv1.3";
    uint64_t switches = 0;
    SSL_CTX *context = NULL;

    if (!parse_protocols(protocols, &switches, error))
        return NULL;
    context = SSL_CTX_new_ex(OSSL_LIB_CTX_get0_global_default(), NULL, method); /* named, for tls_tickets.c */
    if (context == NULL) {
        context_fail(error, "Failed to set TLS up", "SSL_CTX_new");
        return NULL;
    }
    SSL_CTX_set_min_proto_version(context, 0); /* the system's configuration may demand more; ours decides */
    SSL_CTX_set_options(context, switches | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 0);
    if (set_ciphers(context, options, error) && load_authorities(context, options, error))
        return context;
    SSL_CTX_free(context);
    return NULL;
}

static bool create_server(struct tls_context *context, const struct tls_options *options, char error[TLS_ERROR_BYTES])
{
    static const int verify[] = {[TLS_AUTH_NO] = SSL_VERIFY_NONE,
                                 [TLS_AUTH_YES] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                                 [TLS_AUTH_OPTIONAL] = SSL_VERIFY_PEER};
    SSL_CTX *server = context_begin(TLS_server_method(), options, error);

    context->server = server;
    if (server == NULL)
        return false;
    if (options->prefer_server_ciphers)
        SSL_CTX_set_options(server, SSL_OP_CIPHER_SERVER_PREFERENCE);
    set_session_cache(server, options);
    SSL_CTX_set_verify(server, verify[options->auth_clients], NULL);
    if (!is_set(options->cert_file)) {
        snprintf(error, TLS_ERROR_BYTES, "No tls-cert-file configured!");
        return false;
    }
    return load_pair(server, options->cert_file, options->key_file, options->key_file_pass, error) &&
           load_dh_params(server, options->dh_params_file, error);
}

static bool create_client(struct tls_context *context, const struct tls_options *options, char error[TLS_ERROR_BYTES])
{
    bool own = is_set(options->client_cert_file);
    bool verifies = is_set(options->ca_cert_file) || is_set(options->ca_cert_dir);
    SSL_CTX *client = context_begin(TLS_client_method(), options, error);

    context->client = client;
    if (client == NULL)
        return false;
    SSL_CTX_set_verify(client, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (own)
        return load_pair(client, options->client_cert_file, options->client_key_file, options->client_key_file_pass,
                         error);
    return load_pair(client, options->cert_file, options->key_file, options->key_file_pass, error);
}

/* ---------------------------------------------------------------------------------------------------- facts -- */

static struct tls_certificate_facts certificate_facts(const X509 *certificate)
{
    struct tls_certificate_facts facts = {0};
    struct tm expires;
    BIGNUM *number = NULL;
    char *text = NULL;

    if (certificate == NULL || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &expires) != 1)
        return facts;
    facts.known = true;
    facts.expires_s = timegm(&expires);
    number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    if (number != NULL)
        text = BN_bn2hex(number);
    snprintf(facts.serial, sizeof(facts.serial), "%s", text != NULL ? text : "");
    OPENSSL_free(text);
    BN_free(number);
    return facts;
}

static struct tls_certificate_facts authority_facts(SSL_CTX *context)
{
    struct tls_certificate_facts first = {0};
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));

    for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
        const X509 *certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
        struct tls_certificate_facts facts = certificate_facts(certificate);

        if (facts.known && (!first.known || facts.expires_s < first.expires_s))
            first = facts;
    }
    return first;
}

static void note_certificates(struct tls_context *context)
{
    context->certificates[TLS_CERTIFICATE_SERVER] = certificate_facts(SSL_CTX_get0_certificate(context->server));
    context->certificates[TLS_CERTIFICATE_CLIENT] = certificate_facts(SSL_CTX_get0_certificate(context->client));
    context->certificates[TLS_CERTIFICATE_AUTHORITY] = authority_facts(context->server);
}

const struct tls_certificate_facts *tls_context_certificate(const struct tls_context *context,
                                                            enum tls_certificate_kind kind)
{
    return &context->certificates[kind];
}

/* -------------------------------------------------------------------------------------------- create and share -- */

static void hand_on_tickets(const struct tls_context *previous, struct tls_context *context)
{
    context->ticket_keys_made_s = time(NULL);
    if (previous != NULL && context->ticket_keys_made_s - previous->ticket_keys_made_s < TICKET_KEYS_MOST_S &&
        pass_ticket_keys(previous, context->server))
        context->ticket_keys_made_s = previous->ticket_keys_made_s;
}

bool tls_context_create(const struct tls_options *options, const struct tls_context *previous,
                        struct tls_context **result, char error[TLS_ERROR_BYTES])
{
    struct tls_context *context = mem_alloc_zero(sizeof(*context));

    ERR_clear_error();
    atomic_init(&context->refs, 1);
    *result = context;
    if (options->auth_clients != TLS_AUTH_NO && !is_set(options->ca_cert_file) && !is_set(options->ca_cert_dir)) {
        snprintf(error, TLS_ERROR_BYTES, "%s", "To verify clients, give tls-ca-cert-file or tls-ca-cert-dir");
    } else if (create_server(context, options, error) && create_client(context, options, error)) {
        hand_on_tickets(previous, context);
        note_certificates(context);
        return true;
    }
    tls_context_release(result);
    return false;
}

struct tls_context *tls_context_acquire(struct tls_context *context)
{
    atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
    return context;
}

void tls_context_release(struct tls_context **handle)
{
    struct tls_context *context = *handle;

    *handle = NULL;
    if (context == NULL || atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) != 1)
        return;
    SSL_CTX_free(context->server);
    SSL_CTX_free(context->client);
    mem_free(context);
}
