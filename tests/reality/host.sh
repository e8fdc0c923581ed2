# The first process of one host, in namespaces of its own: makes the container's files and network, then becomes
# the container's first process.  $1 folder of the host, $2 "FOLDER=TREE" lines to lay over the machine's folders,
# $3 address, $4 "FOLDER=SOURCE" lines to bind; the rest is the command to become.
set -eu
folder=$1 layers=$2 address=$3 binds=$4
shift 4
cat "$folder/name" >/proc/sys/kernel/hostname
mount -t tmpfs tmpfs "$folder/disk"
root=$folder/disk/root
mkdir "$folder/disk/up" "$folder/disk/work" "$root"
lower=/ # the machine's own files, or those of an image
[ ! -e "$folder/base" ] || lower=$(cat "$folder/base")
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$folder/disk/up,workdir=$folder/disk/work" "$root"
IFS='
'
for layer in $layers; do
  place=${layer%%=*}
  mkdir -p "$folder/disk/up$place-layer" "$folder/disk/work$place-layer"
  mount -t overlay overlay -o "lowerdir=${layer#*=}:$place,upperdir=$folder/disk/up$place-layer,workdir=$folder/disk/work$place-layer" "$root$place"
done
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
for bind in $binds; do
  mkdir -p "$root${bind%%=*}"
  mount --bind "${bind#*=}" "$root${bind%%=*}"
done
unset IFS
cp -a "$folder/files/." "$root/"
touch "$folder/ready"
read -r _ # eth0 is plugged in
ip link set lo up
ip addr add "$address/16" dev eth0
ip link set eth0 up
while read -r name own; do # a second network, at the worst: up, with an address, and nobody else is there
  ip link add "$name" type veth peer name "$name-end"
  ip addr add "$own/24" dev "$name"
  ip link set "$name-end" up
  ip link set "$name" up
done <"$folder/networks"
[ ! -s "$folder/filter" ] || chroot "$root" /usr/sbin/nft -f - <"$folder/filter"
[ ! -e "$folder/read-only" ] || mount -o remount,ro "$root"
exec chroot "$root" "$@" </dev/null
