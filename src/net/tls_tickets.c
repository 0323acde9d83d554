/* Tickets: the sessions that clients keep, encrypted for the server, and bring back.
 *
 * The library writes the peer's certificate into a ticket. It reads it twice: from the ticket that a client brings, and
 * from the one that it makes, since it copies a session so. Reading a certificate it also decodes its public key, for
 * which it looks through all decoders of all providers: half of what a resumed handshake took, a quarter of a full one.
 * But nobody needs the key: whoever resumes proves with the session's secret who he is.
 *
 * So while the library reads such a certificate, the thread's default library context is one without providers, where
 * no key is decoded. That is no error then; the certificate has all else. The library calls us right before and after:
 *
 *     a ticket comes: [set_keys] -> check, decrypt, read -> [on_read]
 *     one is made:    [on_make] -> write, read, write -> [set_keys] -> encrypt
 *
 * All else in between uses the library context of the SSL_CTX, which is named there (tls_context.c). Newer libraries
 * copy a session without reading it, and read a certificate in the context of the SSL_CTX: nothing is lost there. */
#include "base/assert.h"
#include "base/compiler.h"
#include "net/tls_priv.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

enum { NAME_BYTES = 16, MAC_KEY_BYTES = 32, CIPHER_KEY_BYTES = 32, IV_BYTES = 16 };

/* As SSL_CTX_get_tlsext_ticket_keys() has them. */
struct ticket_keys {
    unsigned char name[NAME_BYTES], mac[MAC_KEY_BYTES], cipher[CIPHER_KEY_BYTES];
};

static OSSL_LIB_CTX *bare; /* global: written once, before the first context; NULL: keys are decoded */

/* It lives as long as the process: the library's own end at exit takes down what it needs. */
static void make_bare(void)
{
    bare = OSSL_LIB_CTX_new();
    if (bare != NULL && OSSL_PROVIDER_load(bare, "null") == NULL) { /* no provider would mean the default one */
        OSSL_LIB_CTX_free(bare);
        bare = NULL;
    }
}

static void begin_reading(void)
{
    if (bare != NULL)
        OSSL_LIB_CTX_set0_default(bare);
}

void tls_tickets_settle(void)
{
    if (bare != NULL)
        OSSL_LIB_CTX_set0_default(OSSL_LIB_CTX_get0_global_default());
}

static bool init_ciphers(const struct ticket_keys *keys, const unsigned char *iv, EVP_CIPHER_CTX *cipher,
                         EVP_MAC_CTX *mac, int encrypt)
{
    static char digest[] = "SHA256";
    const OSSL_PARAM digest_of_mac[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                        OSSL_PARAM_construct_end()};

    return EVP_MAC_init(mac, keys->mac, sizeof(keys->mac), digest_of_mac) == 1 &&
           EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, keys->cipher, iv, encrypt) == 1;
}

/* 0: the ticket is of other keys; below: it does not work. 2: the client shall have a new one, since in TLS 1.3 each is
 * for one use; that is what the library does without us. */
static int set_keys(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                    int encrypt)
{
    struct ticket_keys keys;
    int result = -1;

    static_assert(sizeof(keys) == TLS_TICKET_KEYS_BYTES, "what the library copies");
    tls_tickets_settle();
    if (SSL_CTX_get_tlsext_ticket_keys(SSL_get_SSL_CTX(ssl), &keys, sizeof(keys)) != 1)
        return -1;
    if (!encrypt && memcmp(name, keys.name, NAME_BYTES) != 0)
        result = 0;
    else if ((!encrypt || RAND_bytes(iv, IV_BYTES) == 1) && init_ciphers(&keys, iv, cipher, mac, encrypt))
        result = !encrypt && SSL_version(ssl) == TLS1_3_VERSION ? 2 : 1;
    if (encrypt)
        memcpy(name, keys.name, NAME_BYTES);
    else if (result > 0)
        begin_reading();
    OPENSSL_cleanse(&keys, sizeof(keys));
    return result;
}

static int on_make(SSL *ssl, void *user)
{
    (void)ssl;
    (void)user;
    begin_reading();
    return 1;
}

/* Decides as the library does without us. */
static SSL_TICKET_RETURN on_read(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t name_size,
                                 SSL_TICKET_STATUS status, void *user)
{
    (void)ssl;
    (void)session;
    (void)name;
    (void)name_size;
    (void)user;
    tls_tickets_settle();
    switch (status) {
    case SSL_TICKET_SUCCESS:
        return SSL_TICKET_RETURN_USE;
    case SSL_TICKET_SUCCESS_RENEW:
        return SSL_TICKET_RETURN_USE_RENEW;
    default:
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    }
}

void tls_tickets_setup(SSL_CTX *server)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_bare);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(server, set_keys);
    SSL_CTX_set_session_ticket_cb(server, on_make, on_read, NULL);
}
