//! The host's side of the protocol, blocking and trusting: it starts a helper and speaks frames.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::env::source_root;

const TOKEN: &str = "a-token-of-this-test";

/// A running helper with its workspace.
pub struct Helper {
    process: Child,
    pub stream: UnixStream,
    pub hello: Value,
    pub workspace: PathBuf,
    next: u64,
    early: HashMap<u64, (Value, Vec<u8>)>,
    _root: tempfile::TempDir,
}

impl Helper {
    pub fn start() -> Self {
        Self::start_prepared(|_| {})
    }

    /// Starts a helper whose workspace was prepared before.
    pub fn start_prepared(prepare: impl FnOnce(&PathBuf)) -> Self {
        Self::start_as(prepare, |helper| vec![helper])
    }

    /// Starts a helper that takes the directory `cgroup` of its workspace for its control group.
    pub fn start_in_cgroup() -> Self {
        let start = "import runpy, sys\nsys.path.insert(0, sys.argv[1])\nimport cgroup\n\
                     cgroup.CGROUP = 'cgroup'\ndel sys.argv[0]\nrunpy.run_path(sys.argv[0], run_name='__main__')";
        let prepare = |workspace: &PathBuf| {
            std::fs::create_dir(workspace.join("cgroup")).expect("a directory");
        };
        Self::start_as(prepare, |helper| vec!["-c".into(), start.into(), helper])
    }

    fn start_as(
        prepare: impl FnOnce(&PathBuf),
        program: impl FnOnce(PathBuf) -> Vec<PathBuf>,
    ) -> Self {
        let root = tempfile::Builder::new().prefix("fh").tempdir_in("/tmp").expect("a directory");
        let workspace = root.path().join("w");
        let door = root.path().join("d");
        std::fs::create_dir(&workspace).expect("a workspace");
        std::fs::create_dir(&door).expect("a door");
        std::fs::write(door.join("token"), TOKEN).expect("a token");
        prepare(&workspace);
        let listener = UnixListener::bind(door.join("s")).expect("a socket");
        let process = Command::new("/usr/bin/python3")
            .arg("-BISu")
            .args(program(source_root().join("src/sandbox/helper")))
            .arg(&door)
            .env("SECRET_OF_THE_HOST", "visible")
            .current_dir(&workspace)
            .stdin(Stdio::null())
            .spawn()
            .expect("python3 starts");
        let (mut stream, _) = listener.accept().expect("the helper connects");
        let (hello, _) = receive(&mut stream).expect("a hello");
        send(&mut stream, &json!({"welcome": 1, "workspace": workspace}), &[]);
        Helper { process, stream, hello, workspace, next: 0, early: HashMap::new(), _root: root }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a request and answers its id.
    pub fn ask(&mut self, fields: Value, body: &[u8]) -> u64 {
        self.next += 1;
        let mut header = fields;
        header["id"] = json!(self.next);
        if header.get("timeout_ms").is_none() {
            header["timeout_ms"] = json!(60_000);
        }
        send(&mut self.stream, &header, body);
        self.next
    }

    /// The reply to that request, whichever come before it.
    pub fn wait(&mut self, id: u64) -> (Value, Vec<u8>) {
        loop {
            if let Some(reply) = self.early.remove(&id) {
                return reply;
            }
            let (mut header, body) = receive(&mut self.stream).expect("a reply");
            let of = header.as_object_mut().expect("an object").shift_remove("id");
            self.early.insert(of.and_then(|id| id.as_u64()).expect("an id"), (header, body));
        }
    }

    pub fn call(&mut self, fields: Value) -> (Value, Vec<u8>) {
        let id = self.ask(fields, &[]);
        self.wait(id)
    }

    /// Runs a command that must end well and answers its output.
    pub fn bash(&mut self, command: &str) -> String {
        let (header, body) = self.call(json!({"call": "bash", "command": command}));
        assert_eq!(header["exit_code"], json!(0), "{header}");
        String::from_utf8(body).expect("text")
    }

    /// The kind of error that a call is refused with.
    pub fn refusal(&mut self, fields: Value) -> String {
        let (header, body) = self.call(fields);
        assert_eq!((&header["ok"], body), (&json!(false), vec![]), "{header}");
        header["kind"].as_str().expect("a kind").to_owned()
    }

    pub fn cancel(&mut self, id: u64) {
        send(&mut self.stream, &json!({"cancel": id}), &[]);
    }

    /// Resident bytes of the helper itself.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))
            .expect("the helper lives");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
        let kib = line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
        kib.expect("a number") * 1024
    }

    /// Waits for the helper's end and answers its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        self.process.wait().expect("an end").code()
    }

    /// Closes the connection, nothing else.
    pub fn hang_up(&self) {
        self.stream.shutdown(std::net::Shutdown::Both).expect("a connection");
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let _ = self.process.wait();
    }
}

/// Whether a process of that number exists, be it as a zombie.
pub fn exists(pid: &str) -> bool {
    assert!(pid.trim().parse::<u32>().is_ok(), "{pid:?} is no process number");
    std::path::Path::new("/proc").join(pid.trim()).exists()
}

pub fn send(stream: &mut UnixStream, header: &Value, body: &[u8]) {
    let header = header.to_string();
    let mut frame = Vec::new();
    for length in [header.len(), body.len()] {
        frame.extend(u32::try_from(length).expect("a small frame").to_be_bytes());
    }
    frame.extend(header.as_bytes());
    frame.extend(body);
    stream.write_all(&frame).expect("the helper reads");
}

fn receive(stream: &mut UnixStream) -> std::io::Result<(Value, Vec<u8>)> {
    let mut lengths = [0; 8];
    stream.read_exact(&mut lengths)?;
    let [header, body] = [0, 4].map(|at| {
        let bytes: [u8; 4] = lengths[at..at + 4].try_into().expect("four bytes");
        u32::from_be_bytes(bytes) as usize
    });
    assert!((1..=1024 * 1024).contains(&header), "a header of {header} bytes");
    let mut raw = vec![0; header];
    stream.read_exact(&mut raw)?;
    let mut content = vec![0; body];
    stream.read_exact(&mut content)?;
    Ok((serde_json::from_slice(&raw)?, content))
}
