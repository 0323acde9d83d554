/* Facts about a connection's session and its peer's certificate. */
#include "net/conn.h"
#include "net/tls.h"
#include "net/tls_priv.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

static SSL *conn_ssl(const struct conn *conn)
{
    return (conn->flags & (CONN_TLS | CONN_HANDSHAKE)) == CONN_TLS ? conn->tls->ssl : NULL;
}

static X509 *conn_certificate(const struct conn *conn)
{
    SSL *ssl = conn_ssl(conn);

    return ssl != NULL ? SSL_get0_peer_certificate(ssl) : NULL;
}

bool tls_conn_peer_has_certificate(const struct conn *conn)
{
    return conn_certificate(conn) != NULL;
}

size_t tls_conn_peer_subject(const struct conn *conn, char *text, size_t text_size)
{
    X509 *certificate = conn_certificate(conn);
    BIO *bio = NULL;
    int size = 0;

    text[0] = '\0';
    if (certificate == NULL)
        return 0;
    bio = BIO_new(BIO_s_mem());
    if (bio == NULL)
        return 0;
    X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
    size = BIO_read(bio, text, (int)text_size - 1);
    BIO_free(bio);
    size = MAX(size, 0);
    text[size] = '\0';
    return (size_t)size;
}

/* The first common name as UTF-8, for OPENSSL_free; NULL: there is none. */
static unsigned char *common_name_of(const X509 *certificate, size_t *size)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    unsigned char *text = NULL;
    int got = -1;

    if (index >= 0)
        got = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)));
    *size = (size_t)MAX(got, 0);
    return got < 0 ? NULL : text;
}

size_t tls_conn_peer_common_name(const struct conn *conn, char *text, size_t text_size)
{
    const X509 *certificate = conn_certificate(conn);
    size_t size = 0;
    unsigned char *name = certificate != NULL ? common_name_of(certificate, &size) : NULL;

    size = MIN(size, text_size - 1);
    if (size > 0)
        memcpy(text, name, size);
    text[size] = '\0';
    OPENSSL_free(name);
    return size;
}

size_t tls_conn_peer_fingerprint(const struct conn *conn, char *text, size_t text_size)
{
    X509 *certificate = conn_certificate(conn);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_size = 0;
    size_t size = 0;

    text[0] = '\0';
    if (certificate == NULL || X509_digest(certificate, EVP_sha256(), digest, &digest_size) != 1)
        return 0;
    for (unsigned i = 0; i < digest_size && size + 2 < text_size; i++)
        size += (size_t)snprintf(text + size, text_size - size, "%02x", digest[i]);
    return size;
}

/* Names of one kind. An address is matched as text: "192.0.2.1", "2001:db8::1". */
static bool match_alternative(const GENERAL_NAME *name, int wanted, tls_name_fn fn, void *user)
{
    int type = 0;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
    char address[INET6_ADDRSTRLEN];
    const unsigned char *data = NULL;
    int size = 0;

    if (type != wanted)
        return false;
    data = ASN1_STRING_get0_data(value);
    size = ASN1_STRING_length(value);
    if (type != GEN_IPADD)
        return fn((const char *)data, (size_t)size, user);
    if ((size != 4 && size != 16) || inet_ntop(size == 4 ? AF_INET : AF_INET6, data, address, sizeof(address)) == NULL)
        return false;
    return fn(address, strlen(address), user);
}

static bool match_alternatives(const X509 *certificate, const int *kinds, size_t kind_count, tls_name_fn fn, void *user)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    bool matched = false;

    for (size_t kind = 0; kind < kind_count; kind++)
        for (int i = 0; !matched && i < sk_GENERAL_NAME_num(names); i++)
            matched = match_alternative(sk_GENERAL_NAME_value(names, i), kinds[kind], fn, user);
    GENERAL_NAMES_free(names);
    return matched;
}

bool tls_conn_peer_match_names(const struct conn *conn, tls_name_fn fn, void *user)
{
    static const int kinds[] = {GEN_EMAIL, GEN_DNS, GEN_URI, GEN_IPADD};
    const X509 *certificate = conn_certificate(conn);
    unsigned char *common = NULL;
    size_t size = 0;
    bool matched = false;

    if (certificate == NULL)
        return false;
    common = common_name_of(certificate, &size);
    if (common != NULL)
        matched = fn((const char *)common, size, user);
    OPENSSL_free(common);
    return matched || match_alternatives(certificate, kinds, countof(kinds), fn, user);
}

bool tls_conn_peer_match_uris(const struct conn *conn, tls_name_fn fn, void *user)
{
    static const int kind = GEN_URI;
    const X509 *certificate = conn_certificate(conn);

    return certificate != NULL && match_alternatives(certificate, &kind, 1, fn, user);
}

const char *tls_conn_version(const struct conn *conn)
{
    SSL *ssl = conn_ssl(conn);

    return ssl != NULL ? SSL_get_version(ssl) : "";
}

const char *tls_conn_cipher(const struct conn *conn)
{
    SSL *ssl = conn_ssl(conn);

    return ssl != NULL ? SSL_get_cipher_name(ssl) : "";
}

bool tls_conn_resumed(const struct conn *conn)
{
    SSL *ssl = conn_ssl(conn);

    return ssl != NULL && SSL_session_reused(ssl) == 1;
}
