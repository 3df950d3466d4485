#!/bin/sh
# prepare.sh DIRECTORY: what compose.yaml and the systemd unit need before the first start; keeps what is there.
set -eu
mkdir -p "$1/secrets"
for name in write operator; do
    [ -e "$1/secrets/$name.token" ] || (umask 077; head -c 32 /dev/urandom | base64 > "$1/secrets/$name.token")
done
[ -e "$1/policy.toml" ] || cat > "$1/policy.toml" <<'POLICY'
# The arguments of the policy, for a new store. See docs/choosing.md.
dim = 100
sparsity = 5
epsilon = 1.0
delta = 1e-6
POLICY
