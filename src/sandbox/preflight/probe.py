"""Tells, as JSON, what the seal looks like from inside. Run once by fleet's preflight."""
import ctypes, errno, json, os, socket, stat


def read(*paths):
    for path in paths:
        try:
            with open(path) as file:
                return file.read().strip()
        except OSError:
            pass
    return None


def refused(attempt):
    try:
        attempt()
    except OSError as error:
        return "refused: " + errno.errorcode.get(error.errno, str(error.errno))
    return "allowed"


def cpu():
    v2 = read("/sys/fs/cgroup/cpu.max")
    if v2 is not None:
        return v2
    quota, period = (read("/sys/fs/cgroup/cpu/cpu.cfs_%s_us" % name) for name in ("quota", "period"))
    return None if quota is None else quota + " " + str(period)


def swap():
    v2 = read("/sys/fs/cgroup/memory.swap.max")
    both = read("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
    memory = read("/sys/fs/cgroup/memory/memory.limit_in_bytes")
    if v2 is not None or both is None:
        return v2
    # Without a limit both are the largest number that the kernel can hold.
    return "max" if int(both) >= 1 << 62 else str(int(both) - int(memory))


def status(name):
    for line in (read("/proc/self/status") or "").splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    return None


def write(path):
    def attempt():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(path)

    return attempt


def unshare():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def tmp():
    mode = format(stat.S_IMODE(os.stat("/tmp").st_mode), "o")
    return mode + (" writable" if refused(write("/tmp/.probe")) == "allowed" else " not writable")


seen = {
    "memory.max": read("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    "memory.swap.max": swap(),
    "pids.max": read("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"),
    "cpu.max": cpu(),
    "cap_eff": status("CapEff"),
    "cap_bnd": status("CapBnd"),
    "no_new_privs": status("NoNewPrivs"),
    "seccomp": status("Seccomp"),
    "interfaces": " ".join(sorted(os.listdir("/sys/class/net"))) if os.path.isdir("/sys/class/net")
    else " ".join(name for _, name in socket.if_nameindex()),
    "root": refused(write("/.probe")),
    "etc": refused(write("/etc/.probe")),
    "tmp": tmp(),
    "vsock": refused(lambda: socket.socket(40, socket.SOCK_STREAM)),
    "user_namespace": refused(unshare),
}
print(json.dumps(seen))
