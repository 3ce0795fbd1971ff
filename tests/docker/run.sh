#!/bin/bash
# The image and what is said of it in docs/docker.md, docs/ci.md and docs/labs.md, tried: built, run, scraped, two containers
# joined by shared memory, the recipe for CI between containers, the labs, docker/compose.yaml, and the Debian package.
# `make docker-test` calls this; it takes some ten minutes on two CPUs, most of them the build. With arguments only these
# parts: alone pair recipe labs deb compose.
#
# Where no engine can be had it says why and ends with 0; with CI=true that is an error. HOLDFAST_DOCKER_DIR is where the engine
# keeps its images, so that a second run is quick; without it they go at the end. HOLDFAST_DOCKER_IMAGE is an image to try instead
# of one that is built.
#
# The commands of docs/install.md, docs/deploy.md and docs/labs.md are run here.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/tests/docker
name=holdfast-test-$$
image=$name/holdfast

say() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

skip() {
    [ "${CI:-}" != true ] || fail "in CI nothing may be skipped: $*"
    echo "SKIPPED: docker: $*"
    exit 0
}

# Waits until the command succeeds, at most $1 s.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.3
    done
}

if [ -n "${HOLDFAST_DOCKER_DIR:-}" ]; then
    work=$(realpath -m "$HOLDFAST_DOCKER_DIR")
    mkdir -p "$work"
    # Without its last name an image goes, and what the next build would take from it.
    image=holdfast-test/holdfast
else
    work=$(mktemp -d)
fi
. "$here/parts.sh"

# Cleaning up changes no verdict: what it cannot do, it says, and the code is that of the tests.
clean() {
    local code=$? left=
    set +e
    if [ -n "${DOCKER_HOST:-}" ]; then
        docker ps -aq --filter "name=$name" | xargs -r docker rm -f >/dev/null 2>&1 || true
        docker volume rm "$name" >/dev/null 2>&1 || true
        [ "$image" != "$name/holdfast" ] || docker rmi -f "$image" >/dev/null 2>&1 || true
    fi
    left=$("$here/engine" down "$work/engine" 2>&1) || printf 'cleanup: the engine did not end in order: %s\n' "$left" >&2
    ip netns delete "$name" 2>/dev/null
    [ -n "${HOLDFAST_DOCKER_DIR:-}" ] || left=$(rm -rf "$work" 2>&1) || printf 'cleanup: %s is left: %s\n' "$work" "$left" >&2
    [ "$code" = 0 ] || printf 'FAILED: a step before the cleanup ended with %s\n' "$code" >&2
    exit "$code"
}
trap clean EXIT
trap 'exit 130' INT TERM

say "an engine"
DOCKER_HOST=$("$here/engine" up "$work/engine" 2>"$work/engine.log") || skip "$(tail -1 "$work/engine.log")"
export DOCKER_HOST
echo "$DOCKER_HOST: $(docker version -f '{{.Server.Version}}')"

say "base images"
"$here/base-images" "$work/base" || fail "the base images could not be had"

say "the image"
if [ -n "${HOLDFAST_DOCKER_IMAGE:-}" ]; then
    image=$HOLDFAST_DOCKER_IMAGE
    image_is_as_promised
else
    build
fi
for part in ${*:-alone pair recipe labs deb compose}; do
    case $part in
    alone) say "a switch without any privilege" ;;
    pair) say "a switch and its hosts in two containers" ;;
    recipe) say "the recipe for CI" ;;
    labs) say "the topology files of containerlab and netlab" ;;
    deb) say "the Debian package" ;;
    compose) say "docker/compose.yaml" ;;
    *) fail "there is no part $part" ;;
    esac
    "$part"
done
say "done"
