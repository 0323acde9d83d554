/* usage.h: what all programs that make links say of options that are the same. */
#pragma once

#define LINK_USAGE_TLS                                                                       \
    "TLS\n"                                                                                  \
    "  --tls                       connect over TLS\n"                                       \
    "  --sni HOST                  name of the server to ask for\n"                          \
    "  --cacert FILE               authorities to trust; without them those of the system\n" \
    "  --cacertdir FOLDER          folder of authorities, by hash\n"                         \
    "  --insecure                  do not check the server's certificate\n"                  \
    "  --cert FILE, --key FILE     certificate of the client and its key\n"                  \
    "  --tls-ciphers LIST          ciphers up to TLS 1.2, see ciphers(1)\n"                  \
    "  --tls-ciphersuites LIST     cipher suites of TLS 1.3\n"                               \
    "\n"
