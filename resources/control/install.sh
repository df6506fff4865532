#!/bin/sh
# Installs the helper with rights, its polkit policy and the unit that puts boards back at boot. Run it as root:
#   sudo sh install.sh            install
#   sudo sh install.sh remove     take it away again
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
library=/usr/lib/wattridge
policy=/usr/share/polkit-1/actions/org.wattridge.control.policy
unit=/etc/systemd/system/wattridge-restore.service

[ "$(id -u)" = 0 ] || { echo "run it as root: sudo sh $0" >&2; exit 1; }
if [ "${1:-}" = remove ]; then
    rm -rf "$library"
    rm -f "$policy" "$unit"
    exit 0
fi
umask 022
rm -rf "$library"
mkdir -p "$library" "$(dirname "$policy")"
cp -R "$here/app" "$here/pynvml.py" "$here/wattridge-control" "$library/"
chown -R root:root "$library"
chmod -R u=rwX,go=rX "$library"
chmod 755 "$library/wattridge-control"
install -m 644 -o root -g root "$here/org.wattridge.control.policy" "$policy"
if [ -d /etc/systemd/system ]; then
    install -m 644 -o root -g root "$here/wattridge-restore.service" "$unit"
    echo "to put boards back at boot: systemctl enable wattridge-restore.service"
fi
echo "to let a group set boards without a password, as a line for visudo:"
echo "  %GROUP ALL=(root) NOPASSWD: $library/wattridge-control GPU-*"
