"""Does for a topology file of `kind: linux` nodes what containerlab does, where containerlab cannot be had.

lab.py up FILE PREFIX NETNS    containers, then links, then the commands of `exec`
lab.py down FILE PREFIX        removes the containers

It follows nodes/linux and links/link_veth.go of containerlab 0.75: containers are privileged and start without interfaces.
Each link is a veth pair with the MTU of the link or 9500 and without transmit checksum offload. Its ends then move into the
containers, get their names and are set up. NETNS is the namespace where pairs are made. There is no management network.
A node without `cmd` sleeps, since the stand-in for the hosts' image does nothing by itself.
"""

import os
import re
import shlex
import subprocess
import sys
import time

import yaml


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def read(path):
    with open(path) as file:
        text = file.read()
    value = lambda match: os.environ.get(match[1]) or match[2]
    return yaml.safe_load(re.sub(r"\$\{(\w+):=([^}]*)\}", value, text))["topology"]


def rights():
    """A machine that lacks CAP_SYS_RESOURCE (24), as some virtual ones do, can give a container all others only."""
    with open("/proc/self/status") as file:
        mask = int(re.search(r"CapBnd:\s*(\w+)", file.read())[1], 16)
    if mask >> 24 & 1:
        return ["--privileged"]
    return ["--cap-add", "ALL", "--cap-drop", "SYS_RESOURCE", "--security-opt", "seccomp=unconfined"]


def start(name, node, prefix, directory, interfaces):
    if node["kind"] != "linux":
        sys.exit(f"{name} is of kind {node['kind']}, and this knows `linux` only")
    words = ["docker", "run", "-d", *rights(), "--network", "none", "--name", f"{prefix}-{name}", "--hostname", name]
    words += ["-e", f"CLAB_INTFS={interfaces}"]
    for bind in node.get("binds", []):
        source, target = bind.split(":", 1)
        words += ["-v", f"{os.path.realpath(os.path.join(directory, source))}:{target}"]
    run(*words, node["image"], *shlex.split(node.get("cmd", "sleep infinity")))


def link(number, link, prefix, netns):
    pair = [f"clab{number}a", f"clab{number}b"]
    run("ip", "-n", netns, "link", "add", pair[0], "mtu", str(link.get("mtu", 9500)), "type", "veth", "peer", "name", pair[1])
    for end in pair:
        run("ip", "netns", "exec", netns, "ethtool", "-K", end, "tx", "off")
    for end, endpoint in zip(pair, link["endpoints"]):
        node, interface = endpoint.split(":")
        pid = run("docker", "inspect", "-f", "{{.State.Pid}}", f"{prefix}-{node}")
        run("ip", "-n", netns, "link", "set", end, "netns", pid)
        run("nsenter", "-t", pid, "-n", "ip", "link", "set", end, "name", interface)
        run("nsenter", "-t", pid, "-n", "ip", "link", "set", interface, "up")


def up(path, prefix, netns):
    topology = read(path)
    nodes = {name: {**topology.get("defaults", {}), **(node or {})} for name, node in topology["nodes"].items()}
    ends = [endpoint.split(":")[0] for link in topology["links"] for endpoint in link["endpoints"]]
    print("containers:", *rights())
    for name, node in nodes.items():
        start(name, node, prefix, os.path.dirname(path), ends.count(name))
    # containerlab needs a moment too, and the switch must wait.
    time.sleep(2)
    for number, of in enumerate(topology["links"]):
        link(number, of, prefix, netns)
    for name, node in nodes.items():
        for command in node.get("exec", []):
            run("docker", "exec", f"{prefix}-{name}", *shlex.split(command))


def down(path, prefix):
    for name in read(path)["nodes"]:
        subprocess.run(["docker", "rm", "-f", f"{prefix}-{name}"], capture_output=True)


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]](*sys.argv[2:])
