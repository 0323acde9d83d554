#!/bin/sh
# Builds the Debian package keydb from what make install installs, so that no list of files stands here:
#
#   make deb                     build/release/deb/keydb_VERSION_ARCHITECTURE.deb
#   make deb REDIS_LINKS=yes     the same with redis-server, redis-cli, ...; it takes the place of Redis' packages
#
# From the environment: OUT, MAKE, REDIS_LINKS; DEB_REVISION, what stands behind the version of the server (1).
set -eu
cd "$(dirname "$0")/../.."

for tool in dpkg-deb dpkg-shlibdeps dpkg-architecture; do
    command -v "$tool" >/dev/null || { echo "make deb needs $tool (package dpkg-dev)" >&2; exit 1; }
done
OUT=${OUT:-build/release}
REDIS_LINKS=${REDIS_LINKS:-no}
here=$PWD/utils/deb
work=$PWD/$OUT/deb
root=$work/root
version=$(sed -n 's/^#define KEYDB_VERSION "\([^"]*\)".*/\1/p' src/base/version.h)-${DEB_REVISION:-1}
architecture=$(dpkg-architecture -qDEB_HOST_ARCH)
umask 022
rm -rf "$root" "$work/debian"
mkdir -p "$root/DEBIAN" "$work/debian"

# The programs are those of make deb, whatever flags they were built with.
${MAKE:-make} --no-print-directory --old-file=programs install OUT="$OUT" DESTDIR="$root" PREFIX=/usr SYSCONFDIR=/etc \
    UNITDIR=/lib/systemd/system REDIS_LINKS="$REDIS_LINKS" >"$work/install.log"
# Names of functions for reports of crashes stay: they are those that programs export.
find "$root/usr/bin" -type f -exec strip --strip-unneeded {} +
find "$root/usr/share/man" -type f -exec gzip -9n {} +
# Who may read it besides root is set by postinst: it may get passwords.
chmod 640 "$root/etc/keydb/keydb.conf"
install -D -m 644 LICENSE "$root/usr/share/doc/keydb/copyright"

# dpkg-shlibdeps wants a source package around it.
printf 'Source: keydb\n\nPackage: keydb\nArchitecture: any\n' >"$work/debian/control"
libraries=$(cd "$work" && find root/usr/bin -type f -exec dpkg-shlibdeps -O {} + 2>"$work/shlibdeps.log" |
    sed -n 's/^shlibs:Depends=//p')
[ -n "$libraries" ] || { cat "$work/shlibdeps.log" >&2; exit 1; }

others="keydb-server, keydb-tools"
[ "$REDIS_LINKS" = no ] || others="$others, redis-server, redis-tools"
cat >"$root/DEBIAN/control" <<CONTROL
Package: keydb
Version: $version
Architecture: $architecture
Maintainer: KeyDB maintainers <root@localhost>
Section: database
Priority: optional
Installed-Size: $(du -k -s --exclude=DEBIAN "$root" | cut -f1)
Depends: $libraries, init-system-helpers, passwd
Suggests: logrotate
Provides: $others
Conflicts: $others
Replaces: $others
Description: in-memory data store that speaks Redis' protocol
 A multithreaded server with the commands and data types of Redis, snapshots
 and an append-only file, replication and active replication, its client for
 the command line, and programs that check its files.
CONTROL
(cd "$root" && find etc -type f | sort | sed 's,^,/,') >"$root/DEBIAN/conffiles"
(cd "$root" && find usr lib -type f | sort | xargs md5sum) >"$root/DEBIAN/md5sums"
for script in postinst prerm postrm; do
    install -m 755 "$here/$script" "$root/DEBIAN/$script"
done
package=$work/keydb_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
