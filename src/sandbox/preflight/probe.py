"""Tells, as JSON, what the seal looks like from inside. Run once by fleet's preflight."""
import ctypes, errno, json, os, resource, socket, stat, threading


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


def changed(path):
    seen = refused(write(path))
    if seen == "refused: EACCES":
        # gVisor looks at the rights first: the mount itself tells the rest.
        for line in (read("/proc/self/mountinfo") or "").splitlines():
            if line.split()[4] == "/" and "ro" in line.split()[5].split(","):
                return seen + " on a read-only mount"
    return seen


def clone3():
    # With one new user namespace; a child that there is ends at once.
    class Arguments(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name in (
            "flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls",
            "set_tid", "set_tid_size", "cgroup")]

    libc = ctypes.CDLL(None, use_errno=True)
    child = libc.syscall(435, ctypes.byref(Arguments(flags=0x10000000, exit_signal=17)), ctypes.sizeof(Arguments))
    if child == 0:
        os._exit(0)
    if child < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    os.waitpid(child, 0)


def threads():
    try:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    except RuntimeError as error:
        return str(error)
    return "work"


def unshare():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def no_new_privs():
    # gVisor has no such line in /proc.
    return status("NoNewPrivs") or str(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))


def door():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        try:
            knock.connect("/fleet/s")
        except OSError as error:
            return "refused: " + errno.errorcode.get(error.errno, str(error.errno))
    return "open"


def rlimit(name):
    soft, hard = resource.getrlimit(getattr(resource, "RLIMIT_" + name))
    return str(soft) if soft == hard else "%d, and %d when asked for" % (soft, hard)


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
    "no_new_privs": no_new_privs(),
    "seccomp": status("Seccomp"),
    "interfaces": " ".join(sorted(os.listdir("/sys/class/net"))) if os.path.isdir("/sys/class/net")
    else " ".join(name for _, name in socket.if_nameindex()),
    "root": changed("/.probe"),
    "etc": changed("/etc/.probe"),
    "tmp": tmp(),
    "nofile": rlimit("NOFILE"),
    "fsize": rlimit("FSIZE"),
    "core": rlimit("CORE"),
    "data": rlimit("DATA"),
    "nproc": rlimit("NPROC"),
    "vsock": refused(lambda: socket.socket(40, socket.SOCK_STREAM)),
    "user_namespace": refused(unshare),
    "clone3": refused(clone3),
    "threads": threads(),
    "door": door(),
}
print(json.dumps(seen))
