#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Make an OCI bundle that does what bench/start.sh asks of every peer: all
namespaces, the host's /usr read-only, fresh /proc, /dev and /tmp, run `true`.

    bundle.py DIR [--rootless UID]

The root is a directory of symbolic links and mount points with the host's /usr
bound into it, the cheapest root that still runs a dynamic program.  What a
runtime does by default beyond that (masked paths) is asked for too, because
leaving it out would be a different product; no cgroup limits are set."""
import argparse
import json
import os


def root(path):
    for d in ("usr", "proc", "dev", "tmp", "etc"):
        os.makedirs(os.path.join(path, d), exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        link = os.path.join(path, name)
        if os.path.islink("/" + name) and not os.path.lexists(link):
            os.symlink(os.readlink("/" + name), link)


def config(rootless):
    namespaces = ["pid", "ipc", "uts", "mount", "network", "cgroup"]
    linux = {
        "maskedPaths": ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                        "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi"],
        "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    }
    if rootless is not None:
        namespaces.append("user")
        mapping = [{"containerID": 0, "hostID": rootless, "size": 1}]
        linux["uidMappings"] = linux["gidMappings"] = mapping
    linux["namespaces"] = [{"type": n} for n in namespaces]
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
         "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev"]},
        {"destination": "/usr", "type": "none", "source": "/usr", "options": ["rbind", "ro", "nosuid", "nodev"]},
    ]
    none = {s: [] for s in ("bounding", "effective", "permitted")}
    return {
        "ociVersion": "1.0.0",
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": ["true"],
                    "env": ["PATH=/usr/bin:/bin"], "cwd": "/", "capabilities": none, "noNewPrivileges": True},
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "bench",
        "mounts": mounts,
        "linux": linux,
    }


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--rootless", type=int, metavar="UID")
    a = p.parse_args()
    root(os.path.join(a.dir, "rootfs"))
    with open(os.path.join(a.dir, "config.json"), "w") as f:
        json.dump(config(a.rootless), f, indent=1)


if __name__ == "__main__":
    main()
