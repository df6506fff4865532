#!/bin/sh
# Puts Wattridge into the desktop's menu for this user; `install.sh --remove` takes it out again.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
data=${XDG_DATA_HOME:-$HOME/.local/share}
entry=$data/applications/wattridge.desktop
icons=$data/icons/hicolor
if [ "${1:-}" = "--remove" ]; then
    rm -f "$entry" "$icons/scalable/apps/wattridge.svg"
    for size in 16 32 48 64 128 256; do rm -f "$icons/${size}x${size}/apps/wattridge.png"; done
    exit 0
fi
command=$(command -v wattridge || true)
[ -n "$command" ] || { echo "install.sh: wattridge is not on the PATH; install it first, or activate its environment" >&2; exit 1; }
mkdir -p "$data/applications" "$icons/scalable/apps"
# the full path: a desktop does not know an environment's PATH; spaces in it need the entry's own quotes
sed "s|^Exec=wattridge|Exec=\"$command\"|" "$here/wattridge.desktop" > "$entry"
cp "$here/../icons/wattridge.svg" "$icons/scalable/apps/wattridge.svg"
for size in 16 32 48 64 128 256; do
    mkdir -p "$icons/${size}x${size}/apps"
    cp "$here/../icons/wattridge-$size.png" "$icons/${size}x${size}/apps/wattridge.png"
done
if command -v update-desktop-database >/dev/null; then update-desktop-database "$data/applications" || true; fi
echo "Wattridge is in the menu: $entry"
