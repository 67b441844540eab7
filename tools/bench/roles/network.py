"""A network inside this machine: hosts are network namespaces, each with one limited link to a switch.

    with Network(hosts=4, mbit=1000) as network:
        network.addresses                             # '10.77.0.1' ...
        subprocess.run(network.inside(2) + ['hostname', '-I'])

The switch is a bridge in a separate namespace, so the machine's own network is not affected. A token bucket (tbf) at
each end of a link limits both directions. Requires root and iproute2.
"""

import os
import shutil
import subprocess

MTU = 9000  # as in a cluster: headers are 0.7 % of the traffic
BURST_S, LEAST_BURST = 0.002, 65536  # of a link; a burst as large as TCP's segments avoids splitting
QUEUE_BYTES = 64 << 20  # so that several senders to one receiver wait instead of losing packets


class NoNetwork(Exception):
    """Network namespaces are not available here; the text says why."""


def ip(*words):
    run(["ip", *words])


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoNetwork(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")


class Network:
    def __init__(self, hosts, mbit):
        self.names = [f"penstock-bench-{os.getpid()}-{host}" for host in range(hosts)]
        self.switch = f"penstock-bench-{os.getpid()}-switch"
        self.addresses = [f"10.77.{host // 250}.{host % 250}" for host in range(1, hosts + 1)]
        self.mbit = mbit
        self.made = []

    def __enter__(self):
        missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
        if missing:
            raise NoNetwork(f"iproute2 is not installed: no {', no '.join(missing)}")
        try:
            self.make(self.switch)
            ip("-n", self.switch, "link", "add", "bridge", "mtu", str(MTU), "type", "bridge")
            ip("-n", self.switch, "link", "set", "bridge", "up")
            for host, name in enumerate(self.names):
                self.make(name)
                self.connect(host, name)
        except NoNetwork:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        self.made = []

    def inside(self, host):
        """The prefix of a command that runs it on that host."""
        return ["ip", "netns", "exec", self.names[host]]

    def make(self, name):
        ip("netns", "add", name)
        self.made.append(name)

    def connect(self, host, name):
        port = f"port{host}"
        ip(
            "-n",
            name,
            "link",
            "add",
            "eth0",
            "mtu",
            str(MTU),
            "type",
            "veth",
            "peer",
            "name",
            port,
            "mtu",
            str(MTU),
            "netns",
            self.switch,
        )
        ip("-n", name, "addr", "add", self.addresses[host] + "/16", "dev", "eth0")
        ip("-n", self.switch, "link", "set", port, "master", "bridge")
        for namespace, device in ((name, "eth0"), (self.switch, port)):
            run(
                [
                    "tc",
                    "-n",
                    namespace,
                    "qdisc",
                    "add",
                    "dev",
                    device,
                    "root",
                    "tbf",
                    "rate",
                    f"{self.mbit:g}mbit",
                    "burst",
                    str(max(LEAST_BURST, int(self.mbit * 1e6 / 8 * BURST_S))),
                    "limit",
                    str(QUEUE_BYTES),
                ]
            )
            ip("-n", namespace, "link", "set", device, "up")
        ip("-n", name, "link", "set", "lo", "up")
