#include "tools/link/link_priv.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* src/net has sessions for an event loop; a tool waits for its one connection, so it uses the library directly. */

struct link_session {
    SSL_CTX *context;
    SSL *ssl;
    bool is_broken; /* no goodbye any more */
};

static void tell(char *error, size_t room, const char *what)
{
    unsigned long code = ERR_get_error();
    char reason[256] = "";

    if (code != 0)
        ERR_error_string_n(code, reason, sizeof(reason));
    snprintf(error, room, "%s%s%s", what, reason[0] != '\0' ? ": " : "", reason);
    ERR_clear_error();
}

static const char *set_authorities(SSL_CTX *context, const struct link_tls *options)
{
    if (options->ca_file == NULL && options->ca_folder == NULL)
        return SSL_CTX_set_default_verify_paths(context) == 1 ? NULL : "Failed to use default CA paths";
    return SSL_CTX_load_verify_locations(context, options->ca_file, options->ca_folder) == 1
               ? NULL
               : "Failed to load CA Certificate or CA Path";
}

/* NULL, or what was wrong. */
static const char *set_options(SSL_CTX *context, const struct link_tls *options)
{
    const char *wrong = NULL;

    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, options->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    wrong = set_authorities(context, options);
    if (wrong != NULL)
        return wrong;
    if ((options->cert_file == NULL) != (options->key_file == NULL))
        return "Client cert and key must both be specified or not at all";
    if (options->cert_file != NULL && SSL_CTX_use_certificate_chain_file(context, options->cert_file) != 1)
        return "Failed to load client certificate";
    if (options->key_file != NULL && SSL_CTX_use_PrivateKey_file(context, options->key_file, SSL_FILETYPE_PEM) != 1)
        return "Failed to load private key";
    if (options->ciphers != NULL && SSL_CTX_set_cipher_list(context, options->ciphers) != 1)
        return "Error while configuring ciphers";
    if (options->ciphersuites != NULL && SSL_CTX_set_ciphersuites(context, options->ciphersuites) != 1)
        return "Error while setting cypher suites";
    return NULL;
}

struct link_session *link_session_create(const struct link_tls *options, int socket, char *error, size_t error_room)
{
    struct link_session *session = mem_alloc_zero(sizeof(*session));
    const char *wrong = "out of memory";

    session->is_broken = true;
    session->context = SSL_CTX_new(TLS_client_method());
    if (session->context != NULL)
        wrong = set_options(session->context, options);
    if (wrong == NULL) {
        session->ssl = SSL_new(session->context);
        if (session->ssl == NULL || SSL_set_fd(session->ssl, socket) != 1)
            wrong = "Couldn't create new SSL instance";
        else if (options->server_name != NULL && /* it is copied */
                 SSL_set_tlsext_host_name(session->ssl, (char *)(uintptr_t)options->server_name) != 1)
            wrong = "Failed to configure SNI";
    }
    if (wrong == NULL)
        return session;
    tell(error, error_room, wrong);
    link_session_destroy(&session);
    return NULL;
}

void link_session_destroy(struct link_session **handle)
{
    struct link_session *session = *handle;

    *handle = NULL;
    if (session == NULL)
        return;
    if (!session->is_broken)
        status_ignore(SSL_shutdown(session->ssl), "the other side may be gone");
    SSL_free(session->ssl);
    SSL_CTX_free(session->context);
    ERR_clear_error();
    mem_free(session);
}

static must_check enum status judge(struct link_session *session, int result, enum link_wish *wish, char *error,
                                    size_t error_room)
{
    int saved = errno;

    *wish = LINK_WISH_NONE;
    switch (SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        *wish = LINK_WISH_READ;
        return STATUS_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        *wish = LINK_WISH_WRITE;
        return STATUS_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        snprintf(error, error_room, "Server closed the connection");
        return STATUS_CLOSED;
    case SSL_ERROR_SYSCALL:
        session->is_broken = true;
        snprintf(error, error_room, "%s", saved != 0 ? strerror(saved) : "Server closed the connection");
        return saved != 0 ? STATUS_IO : STATUS_CLOSED;
    default:
        session->is_broken = true;
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
            ERR_clear_error();
            snprintf(error, error_room, "Server closed the connection");
            return STATUS_CLOSED;
        }
        tell(error, error_room, "TLS");
        return STATUS_IO;
    }
}

enum status link_session_shake(struct link_session *session, enum link_wish *wish, char *error, size_t error_room)
{
    int result;
    long verdict;
    enum status status;

    ERR_clear_error();
    errno = 0;
    result = SSL_connect(session->ssl);
    if (result == 1) {
        session->is_broken = false;
        return STATUS_OK;
    }
    verdict = SSL_get_verify_result(session->ssl);
    status = judge(session, result, wish, error, error_room);
    if (status == STATUS_AGAIN)
        return status;
    if (verdict != X509_V_OK)
        snprintf(error, error_room, "SSL_connect failed: certificate verify failed: %s",
                 X509_verify_cert_error_string(verdict));
    else if (status == STATUS_CLOSED)
        snprintf(error, error_room, "SSL_connect failed: the server closed the connection");
    return STATUS_UNSUPPORTED;
}

enum status link_session_read(struct link_session *session, char *data, size_t room, size_t *size, enum link_wish *wish,
                              char *error, size_t error_room)
{
    int result;

    ERR_clear_error();
    errno = 0;
    result = SSL_read(session->ssl, data, (int)MIN(room, (size_t)INT_MAX));
    if (result > 0) {
        *size = (size_t)result;
        return STATUS_OK;
    }
    return judge(session, result, wish, error, error_room);
}

enum status link_session_write(struct link_session *session, const char *data, size_t size, size_t *written,
                               enum link_wish *wish, char *error, size_t error_room)
{
    int result;

    ERR_clear_error();
    errno = 0;
    result = SSL_write(session->ssl, data, (int)MIN(size, (size_t)INT_MAX));
    if (result > 0) {
        *written = (size_t)result;
        return STATUS_OK;
    }
    return judge(session, result, wish, error, error_room);
}
