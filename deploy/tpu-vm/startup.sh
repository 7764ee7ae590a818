#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# startup.sh - start-up script of a TPU VM: installs the agent and starts it, at each boot if something changed.
#
#   gcloud compute tpus tpu-vm create NAME ... --metadata-from-file=startup-script=deploy/tpu-vm/startup.sh \
#     --metadata=lockstep-package=gs://BUCKET/lockstep-agent-static_0.1.0_amd64.deb,lockstep-collector=tcp://HOST:7117
#
# lockstep-package: where deploy/package's lockstep-agent-static lies: gs://, https:// or a file of the image.
# lockstep-collector: the collector. What is said goes to the console of the VM (journalctl -u google-startup-scripts).
set -eu
metadata=${LOCKSTEP_METADATA:-http://169.254.169.254}
defaults=/etc/default/lockstep-agent

say() { echo "lockstep: $*" >&2; }
attribute() {
	curl -fsS --retry 5 --max-time 20 -H 'Metadata-Flavor: Google' "$metadata/computeMetadata/v1/instance/attributes/$1" ||
		{ say "the instance has no metadata $1: nothing is installed"; return 1; }
}

package=$(attribute lockstep-package)
collector=$(attribute lockstep-collector)
case $collector in
tcp://?*:?*) ;;
*) say "lockstep-collector is '$collector', not tcp://HOST:PORT"; exit 1 ;;
esac

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
case $package in
gs://*) gcloud storage cp "$package" "$dir/agent.deb" ;;
https://*) curl -fsSL --retry 5 -o "$dir/agent.deb" "$package" ;;
/*) cp "$package" "$dir/agent.deb" ;;
*) say "lockstep-package is '$package', not gs://, https:// or a file"; exit 1 ;;
esac
wanted=$(dpkg-deb -f "$dir/agent.deb" Version)
if [ "$(dpkg-query -W -f '${Version} ${Status}' lockstep-agent-static 2>/dev/null)" != "$wanted install ok installed" ]; then
	# at the first boot, other programs may hold apt's lock for minutes
	chmod 755 "$dir"
	DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold install "$dir/agent.deb"
fi
line="LOCKSTEP_COLLECTOR=$collector"
if ! grep -qxF "$line" "$defaults"; then
	sed -i '/^LOCKSTEP_COLLECTOR=/d' "$defaults"
	echo "$line" >>"$defaults"
	systemctl restart lockstep-agent
fi
systemctl is-active --quiet lockstep-agent || systemctl restart lockstep-agent
say "lockstep-agent $wanted sends to $collector"
