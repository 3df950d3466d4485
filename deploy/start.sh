#!/bin/sh
# start.sh [arguments of fliphat serve]: what the container runs.
# FLIPHAT_STORE is a directory or postgresql://...; FLIPHAT_POLICY a TOML file with the policy's arguments, which a
# store that exists does not need; tokens are files, as secrets of a container are.
set -eu
set -- "$FLIPHAT_STORE" --host "${FLIPHAT_HOST:-0.0.0.0}" --port "${FLIPHAT_PORT:-8377}" "$@"
if [ -n "${FLIPHAT_POLICY:-}" ]; then set -- "$@" --policy "$FLIPHAT_POLICY"; fi
if [ -n "${FLIPHAT_WORKERS:-}" ]; then set -- "$@" --workers "$FLIPHAT_WORKERS"; fi
if [ -n "${FLIPHAT_LIMITS:-}" ]; then set -- "$@" --limits "$FLIPHAT_LIMITS"; fi
secrets=${FLIPHAT_SECRETS:-/run/secrets}
exec fliphat serve "$@" \
    --write-token-file "$secrets/write_token" --operator-token-file "$secrets/operator_token"
