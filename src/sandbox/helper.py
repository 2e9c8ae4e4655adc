# stand-in
import json, os, socket, struct, subprocess, sys, threading
s = socket.socket(socket.AF_UNIX); s.connect("/fleet/s")
lock = threading.Lock()
def send(h, b=b""):
    t = json.dumps(h).encode()
    with lock: s.sendall(struct.pack(">II", len(t), len(b)) + t + b)
def get(n):
    d = b""
    while len(d) < n:
        c = s.recv(n - len(d))
        if not c: os._exit(0)
        d += c
    return d
def recv():
    a, b = struct.unpack(">II", get(8)); return json.loads(get(a)), get(b)
send({"hello": 1, "token": open("/fleet/token").read(), "python": sys.version, "ipython": False})
recv()
def work(h):
    p = subprocess.run(["bash", "-c", h["command"]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    send({"id": h["id"], "ok": True, "exit_code": p.returncode, "timed_out": False, "dropped_bytes": 0, "spill_path": None, "oom_killed": False}, p.stdout)
while True:
    h, b = recv()
    if h.get("call") == "bash": threading.Thread(target=work, args=(h,)).start()
