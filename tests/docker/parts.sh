# What tests/docker/run.sh does, a function for each part. `image`, `name`, `work`, `say`, `fail` and `wait_for` are its.
# shellcheck shell=bash disable=SC2154

build() {
    local start=$SECONDS
    docker build --network=host --build-arg "HOLDFAST_COMMIT=$(git describe --tags --always --dirty 2>/dev/null)" \
        --build-arg "SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null)" \
        -f docker/Dockerfile -t "$image" . >"$work/build.log" 2>&1 || {
        tail -30 "$work/build.log"
        fail "the image does not build"
    }
    echo "built in $((SECONDS - start)) s, $(docker image inspect -f '{{.Size}}' "$image" | awk '{ printf "%d MB", $1 / 1e6 }')"
    image_is_as_promised
}

# The image, as docs/docker.md describes it.
image_is_as_promised() {
    [ "$(docker image inspect -f '{{.Size}}' "$image")" -lt 100000000 ] || fail "the image has 100 MB or more"
    [ "$(docker image inspect -f '{{.Config.User}}' "$image")" = holdfast ] || fail "the image runs as root"
    docker run --rm --network none "$image" --version | tee "$work/version"
    grep -q '^DPDK: .*, static$' "$work/version" || fail "the program needs shared libraries"
    # Permitted is not effective: it starts where none of its capabilities can be had.
    docker run --rm --network none --cap-drop ALL "$image" --version >/dev/null || fail "it does not start without capabilities"
    # Who runs it has its capabilities: it is for one group.
    docker run --rm --network none --user 1000 --group-add 464 "$image" --version >/dev/null || fail "its group cannot run it"
    ! docker run --rm --network none --user 1000 "$image" --version >/dev/null 2>&1 || fail "everybody may run it"
    docker run --rm --network none --entrypoint cat "$image" /usr/share/doc/holdfast/sources >"$work/sources"
    for source in bash busybox glibc numactl; do
        grep -q "^$source=" "$work/sources" || fail "the image does not name the source of $source"
    done
    docker run --rm --network none "$image" doctor >"$work/doctor.log" || fail "the doctor found something bad"
    grep -q 'CAP_NET_ADMIN  *missing' "$work/doctor.log" || fail "the doctor sees capabilities that are not there"
    docker run --rm --network none --cap-add NET_ADMIN "$image" doctor | grep -q 'CAP_NET_ADMIN  *present' ||
        fail "the file's capability is not raised"
}

healthy() {
    [ "$(docker inspect -f '{{.State.Health.Status}}' "$1")" = healthy ]
}

# Stops container $1 and says what it left; its log is in $work/$1.log.
finish() {
    docker stop -t 40 "$1" >/dev/null
    docker logs "$1" >"$work/$1.log" 2>&1
    local code
    code=$(docker inspect -f '{{.State.ExitCode}}' "$1")
    docker rm "$1" >/dev/null
    [ "$code" = 0 ] || { tail -20 "$work/$1.log"; fail "$1 ended with $code"; }
    grep '^lossless: ' "$work/$1.log"
}

alone() {
    docker run -d --name "$name-alone" --network none --cap-drop ALL --security-opt no-new-privileges --read-only \
        --tmpfs /run/holdfast:uid=464,gid=464 "$image" >/dev/null
    wait_for 60 healthy "$name-alone" || { docker logs "$name-alone"; fail "it does not become healthy"; }
    docker exec "$name-alone" /usr/libexec/holdfast/healthcheck /metrics >"$work/metrics"
    grep -q '^holdfast_port_received_frames_total{.*tc="3"' "$work/metrics" || fail "no metrics"
    # Port 9464 in the kernel's table of listeners: 127.0.0.1 and no other address.
    [ "$(docker exec "$name-alone" awk '$2 ~ /:24F8$/ && $4 == "0A" { print $2 }' /proc/net/tcp /proc/net/tcp6)" = 0100007F:24F8 ] ||
        fail "its metrics are open"
    [ "$(docker exec "$name-alone" id -u)" = 464 ] || fail "it runs as somebody else"
    finish "$name-alone" | tee "$work/verdict"
    grep -q '^lossless: KEPT$' "$work/verdict" || fail "the incast was not lossless"
}

# PFC frames with XOFF for class 3 in the table of ports of log $1, at port $2: sent ($3 = 1) or received ($3 = 2).
pfc() {
    awk -v port="$2" -v which="$3" '$1 == port && $2 == "3*" {
        for (i = 3; i <= NF; i++) if ($i ~ /^[0-9,]+\/[0-9,]+$/ && ++seen == which) {
            split($i, both, "/"); gsub(",", "", both[1]); print both[1]; exit
        }
    }' "$work/$1.log"
}

# Whether the log of one of these containers, a text or JSON, has a poll gap of 20 ms or more: the machine was busy.
was_away() {
    local container
    for container; do
        grep -Eq -e '^poll gaps: .*longest ([2-9][0-9]|[0-9]{3,})\.[0-9]+ms|^poll gaps: .*longest [0-9.]+s' \
            -e '"gap_highest_ns": ([2-9][0-9]|[0-9]{3,})[0-9]{6},?$' "$work/$container.log" && return
    done
    return 1
}

# With $1 tries, 3 without.
pair() {
    local tries=${1:-3}
    local common=(--network none --cap-drop ALL --read-only --tmpfs /run/holdfast:uid=464,gid=464 -v "$name:/run/holdfast/memif")
    docker volume create "$name" >/dev/null
    # Twice: the first is killed, and its socket stays in the volume.
    local start
    for start in first again; do
        docker run -d --name "$name-tor" "${common[@]}" "$image" run /etc/holdfast/docker/tor.yaml --duration 0 >/dev/null
        wait_for 60 healthy "$name-tor" || { docker logs "$name-tor"; fail "the switch does not become healthy ($start)"; }
        [ "$start" = again ] || docker rm -f "$name-tor" >/dev/null
    done
    docker run -d --name "$name-hosts" "${common[@]}" "$image" run /etc/holdfast/docker/hosts.yaml --duration 0 >/dev/null
    wait_for 60 healthy "$name-hosts" || { docker logs "$name-hosts"; fail "the hosts do not become healthy"; }
    sleep 5
    local kept=yes
    finish "$name-hosts" | grep -q '^lossless: KEPT' || kept=
    finish "$name-tor" | grep -q '^lossless: KEPT' || kept=
    if [ -z "$kept" ]; then
        # A core that is away for longer than its rings hold loses frames, and its neighbour takes it for stuck.
        if was_away "$name-hosts" "$name-tor" && [ "$tries" -gt 1 ]; then
            echo "the CPU was away for 20 ms or more; once more"
            docker volume rm "$name" >/dev/null
            pair $((tries - 1))
            return
        fi
        tail -n 30 "$work/$name-hosts.log" "$work/$name-tor.log"
        fail "the switch or its hosts lost frames"
    fi
    local port sent received
    # What left one process has come to the other, but for what was in the memory, of 128 frames, when the hosts ended.
    received=$(awk '$1 == "n5" && $2 == "3*" { gsub(",", ""); print $3; exit }' "$work/$name-hosts.log")
    sent=$(awk '$1 == "p5" && $2 == "3*" { gsub(",", ""); print $4; exit }' "$work/$name-tor.log")
    echo "p5 sent $sent frames of class 3, n5 received $received"
    [ "${sent:-0}" -gt 1000 ] && [ $((sent - received)) -ge 0 ] && [ $((sent - received)) -le 128 ] ||
        fail "frames got lost between p5 and n5"
    for port in 1 2 3 4; do
        sent=$(pfc "$name-tor" "p$port" 1)
        received=$(pfc "$name-hosts" "n$port" 2)
        echo "p$port told n$port to stop ${sent:-0} times, which heard it ${received:-0} times"
        [ "${sent:-0}" -gt 0 ] && [ "$sent" = "$received" ] || fail "PFC got lost between p$port and n$port"
    done
}

recipe() {
    local app=holdfast-test/app
    [ -e /dev/net/tun ] || { echo "SKIPPED: this machine has no /dev/net/tun"; return; }
    docker build --network=host -t "$app" -f conf/ci/Dockerfile.host conf/ci >"$work/app.log" 2>&1 || {
        tail -5 "$work/app.log"
        fail "conf/ci/Dockerfile.host does not build"
    }
    local host
    for host in a b c; do docker run -d --name "$name-$host" --network none "$app" sleep infinity >/dev/null; done
    export HOLDFAST_IMAGE=$image HOLDFAST_NAME=$name-recipe
    local script=conf/ci/lossless-tor.sh

    # What is measured is what class 3 gets while class 0 fills the link.
    docker exec -d "$name-c" iperf3 -s -p 5201
    docker exec -d "$name-c" iperf3 -s -p 5202
    local try
    for try in 1 2 3; do
        $script up "$name-a" "$name-b" "$name-c"
        wait_for 10 docker exec "$name-a" ping -c 1 -W 1 10.48.0.3 || fail "hosts do not reach each other"
        docker exec -d "$name-a" iperf3 -c 10.48.0.3 -p 5201 -t 6
        docker exec "$name-b" iperf3 -c 10.48.0.3 -p 5202 -u -b 200M -l 1400 --dscp 26 -t 5 | tail -4
        ! $script check || break
        # Linux hosts do not obey PFC: what they send while the core is away must find room in the buffer.
        docker logs "$name-recipe" >"$work/$name-recipe.log" 2>&1
        was_away "$name-recipe" && [ "$try" -lt 3 ] || fail "class 3 lost frames beside class 0"
        echo "the CPU was away for 20 ms or more; once more"
        sleep 3
        $script down
    done
    $script down

    # And it must be able to fail: nobody in class 3; and Linux hosts, which do not obey PFC, that overrun it.
    $script up "$name-a" "$name-b" "$name-c"
    ! $script check 2>"$work/check.log" || fail "a check without a frame of class 3 passed"
    grep -q 'no frame of class 3' "$work/check.log" || fail "it says something else: $(cat "$work/check.log")"
    $script down
    $script up "$name-a" "$name-b" "$name-c"
    docker exec -d "$name-a" iperf3 -c 10.48.0.3 -p 5201 -u -b 1G -l 1400 --dscp 26 -t 6
    docker exec "$name-b" iperf3 -c 10.48.0.3 -p 5202 -u -b 1G -l 1400 --dscp 26 -t 6 >/dev/null
    ! $script check >"$work/check.log" 2>&1 || { cat "$work/check.log"; fail "a check of an overrun class passed"; }
    grep '^class 3: ' "$work/check.log"
    $script down
    docker rm -f "$name-a" "$name-b" "$name-c" >/dev/null
}

deb() {
    local tool package base
    for tool in dpkg-shlibdeps strip; do
        command -v $tool >/dev/null || { echo "SKIPPED: this machine has no $tool (dpkg-dev, binutils)"; return; }
    done
    # The package of the static program: it needs nothing of Debian but the user.
    base=$(sed -n 's/^ARG DEBIAN=//p' docker/Dockerfile)
    docker create --name "$name-binary" "$image" >/dev/null
    docker cp "$name-binary:/usr/bin/holdfast" "$work/holdfast" >/dev/null
    docker rm "$name-binary" >/dev/null
    package=$(packaging/build-deb "$work/holdfast" "$work")
    docker run -d --name "$name-deb" --network host "$base" sleep infinity >/dev/null
    docker cp "$package" "$name-deb:/holdfast.deb" >/dev/null
    docker exec "$name-deb" sh -c '
        set -e
        apt-get update -qq && apt-get install -qq -y --no-install-recommends /holdfast.deb >/dev/null 2>&1
        dpkg -s holdfast | grep -E "^(Status|Version|Installed-Size)"
        id holdfast
        setpriv --reuid=holdfast --regid=holdfast --clear-groups holdfast run --duration 2s --metrics off | tail -1
        apt-get purge -qq -y holdfast >/dev/null 2>&1
        ! command -v holdfast' >"$work/deb.log" 2>&1 || { cat "$work/deb.log"; fail "the package does not install, run or go"; }
    cat "$work/deb.log"
    grep -q '^lossless: KEPT$' "$work/deb.log" || fail "what it installs is not lossless"
    docker rm -f "$name-deb" >/dev/null
}

# docker-compose (Debian's) or docker compose, whichever is there.
compose_with() {
    if docker compose version >/dev/null 2>&1; then docker compose "$@"; else docker-compose "$@"; fi
}

compose() {
    { docker compose version || docker-compose version; } >/dev/null 2>&1 || {
        echo "SKIPPED: there is neither \`docker compose\` nor \`docker-compose\`"
        return
    }
    local files=(-p "$name" -f docker/compose.yaml)
    HOLDFAST_CONFIG=/etc/holdfast/x.yaml VFIO_GROUP=40 \
        compose_with "${files[@]}" -f docker/compose.nic.yaml config >/dev/null || fail "docker/compose.nic.yaml is wrong"
    compose_with "${files[@]}" config >/dev/null || fail "docker/compose.yaml is wrong"
    [ -e "$work/engine/dockerd.pid" ] || { echo "SKIPPED: \`up\`, since the engine is not ours"; return; }
    docker tag "$image" holdfast:latest
    local services=(holdfast hosts)
    prometheus_image && [ -e conf/prometheus/prometheus.yaml ] && services+=(prometheus)

    # Its networks are bridges, so the engine starts anew in a namespace of its own.
    "$here/engine" down "$work/engine"
    ip netns add "$name"
    ip -n "$name" link set dev lo up
    DOCKER_HOST=$(NETNS=$name "$here/engine" up "$work/engine" 2>"$work/engine.log") || {
        echo "SKIPPED: \`up\`: $(tail -1 "$work/engine.log")"
        return
    }
    compose_with "${files[@]}" up -d --no-build "${services[@]}" >"$work/compose.log" 2>&1 || {
        cat "$work/compose.log"
        fail "docker/compose.yaml does not come up"
    }
    local get=(nsenter --net="/run/netns/$name" curl -fsS)
    wait_for 60 "${get[@]}" http://127.0.0.1:9464/metrics || fail "nobody serves metrics"
    wait_for 60 has_xoff || fail "no incast to look at"
    "${get[@]}" http://127.0.0.1:9464/metrics | grep '^holdfast_pfc_sent_xoff_total{.*priority="3"'
    case " ${services[*]} " in
    *" prometheus "*)
        wait_for 60 scraped || { compose_with "${files[@]}" logs prometheus | tail; fail "Prometheus scrapes nothing"; }
        echo "Prometheus sees the switch"
        ;;
    *) echo "SKIPPED: Prometheus: neither its image nor Debian's program is there, or conf/prometheus is not" ;;
    esac
    echo "SKIPPED: Grafana: $(docker image inspect grafana/grafana:12.1.1 >/dev/null 2>&1 && echo 'not asked here' || echo 'no registry has its image')"
    compose_with "${files[@]}" down -v >/dev/null 2>&1
}

has_xoff() {
    nsenter --net="/run/netns/$name" curl -fsS http://127.0.0.1:9464/metrics | grep -q '^holdfast_pfc_sent_xoff_total{.*port="p1".*priority="3".*} [1-9]'
}

scraped() {
    nsenter --net="/run/netns/$name" curl -fsS 'http://127.0.0.1:9090/api/v1/query?query=up%7Bjob%3D%22holdfast%22%7D' | grep -q '"1"\]'
}

# Prometheus' public image, or a stand-in of Debian's program under its name.
prometheus_image() {
    local public program
    public=$(sed -n 's/^ *image: \(prom\/.*\)/\1/p' docker/compose.yaml)
    docker image inspect "$public" >/dev/null 2>&1 && return
    docker pull -q "$public" >/dev/null 2>&1 && return
    program=$(type -P prometheus) || return 1
    # As much of the public image as compose.yaml relies on: the program as entry point, and a directory of its own.
    mkdir -p "$work/prometheus"
    cp "$program" "$work/prometheus/prometheus"
    printf 'FROM %s\nCOPY prometheus /bin/prometheus\nRUN mkdir /prometheus && chown 65534 /prometheus\nUSER 65534\n%s\n' \
        "$(sed -n 's/^ARG DEBIAN=//p' docker/Dockerfile)" 'ENTRYPOINT ["/bin/prometheus"]' >"$work/prometheus/Dockerfile"
    docker build -q -t "$public" "$work/prometheus" >/dev/null 2>&1 && echo "Prometheus: a stand-in of Debian's program"
}

# The hosts of a lab reach each other through the switch, and class 3 loses nothing beside TCP. $1 begins the names of the
# containers, $2 is the address of the first host without its last number.
lab_works() {
    local lab=$1 network=$2 tor=$1-tor host code
    wait_for 60 healthy "$tor" || { docker logs "$tor"; fail "the switch of the lab does not become healthy"; }
    docker logs "$tor" >"$work/lab.log" 2>&1
    grep '^note: waiting for the interfaces ' "$work/lab.log" || fail "the switch did not wait for its interfaces"
    for host in 2 3 4; do
        wait_for 20 docker exec "$lab-h1" ping -c 1 -W 1 "$network.$host" || fail "h1 does not reach h$host"
    done
    docker exec "$tor" holdfast show ports
    docker exec -d "$lab-h4" iperf3 -s -p 5201
    docker exec -d "$lab-h4" iperf3 -s -p 5202
    sleep 1
    docker exec -d "$lab-h1" iperf3 -c "$network.4" -p 5201 -t 6
    docker exec "$lab-h2" iperf3 -c "$network.4" -p 5202 -u -b 100M -l 1400 --dscp 26 -t 5 | tail -4
    docker exec "$tor" /usr/libexec/holdfast/healthcheck /metrics >"$work/lab.metrics"
    for code in received:1000 dropped:-1; do
        awk -v name="holdfast_port_${code%:*}_frames_total{" -v least="${code#*:}" '
            index($0, name) == 1 && /tc="3"/ { sum += $NF }
            END { printf "class 3: %d frames %s\n", sum, name; exit !(least < 0 ? sum == 0 : sum > least) }' "$work/lab.metrics" ||
            fail "class 3 in the lab: see above"
    done
}

# The topology files of docs/labs.md. No registry has containerlab here, so tests/docker/lab.py does what it does. netlab is
# the real one, up to the file that it writes for containerlab.
labs() {
    local app=holdfast-test/app python=$work/netlab/bin/python lab=$name-lab file
    python3 -m venv "$work/netlab" 2>"$work/netlab.log" && "$work/netlab/bin/pip" install -q networklab >>"$work/netlab.log" 2>&1 || {
        [ "${CI:-}" != true ] || fail "netlab cannot be had: $(tail -1 "$work/netlab.log")"
        echo "SKIPPED: netlab cannot be had: $(tail -1 "$work/netlab.log")"
        return
    }
    docker build --network=host -t "$app" -f conf/ci/Dockerfile.host conf/ci >"$work/app.log" 2>&1 || fail "no host: $(tail -5 "$work/app.log")"
    export HOLDFAST_IMAGE=$image HOLDFAST_HOST_IMAGE=$app
    ip netns add "$name"
    say "conf/containerlab/holdfast.clab.yml"
    "$python" tests/docker/lab.py up conf/containerlab/holdfast.clab.yml "$lab" "$name"
    lab_works "$lab" 10.48.0
    "$python" tests/docker/lab.py down conf/containerlab/holdfast.clab.yml "$lab"

    say "conf/netlab/topology.yml"
    mkdir -p "$work/lab"
    cp -r conf/netlab conf/containerlab "$work/lab/"
    (cd "$work/lab/netlab" && PATH=$work/netlab/bin:$PATH netlab create topology.yml) | tail -3
    file=$work/lab/netlab/clab.yml
    # The images that this machine has.
    sed -i "s|image: holdfast:latest|image: $image|; s|image: ghcr.io/.*|image: $app|" "$file"
    "$python" tests/docker/lab.py up "$file" "$lab" "$name"
    # netlab runs these scripts on the host, in the network namespace of each container.
    local host pid
    for host in h1 h2 h3 h4; do
        pid=$(docker inspect -f '{{.State.Pid}}' "$lab-$host")
        nsenter -t "$pid" -n sh "$work/lab/netlab/node_files/$host/initial" >"$work/initial.log" 2>&1 || { cat "$work/initial.log"; fail "netlab's script of $host"; }
    done
    lab_works "$lab" 10.48.0
    "$python" tests/docker/lab.py down "$file" "$lab"
    ip netns delete "$name"
}
