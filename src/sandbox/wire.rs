//! Calls and replies as the helper's protocol writes them. Pure.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{
    Call, CallError, CommandOutput, EditError, FileContent, GitBundle, KernelOutput, Reply,
    Resources,
};
use super::frame::MAX_BODY;

/// Bytes of output that a command or a cell sends back.
const OUTPUT_LIMIT: u64 = 128 * 1024;
/// How long the helper may take for calls that name no time.
const FILE_CALL: Duration = Duration::from_secs(60);
const COLLECTION: Duration = Duration::from_secs(120);
/// What a call may take over its own time before the sandbox is given up.
const GRACE: Duration = Duration::from_secs(10);
/// The longest refusal that is passed on.
const MAX_MESSAGE: usize = 8 * 1024;
const MAX_FIGURES: usize = 20;
/// Between the head and the tail of an output that was cut.
const CUT: &[u8] = b"\n";
/// Longer than any token: what has no blank for so long is no word.
const LONGEST_WORD: usize = 1024;

/// One request as it is sent.
#[derive(Debug)]
pub(super) struct Request {
    pub header: Value,
    pub body: Vec<u8>,
    /// The longest body that its reply may have.
    pub reply_cap: u32,
    /// When this is over the sandbox is retired.
    pub deadline: Duration,
    pub shape: Shape,
}

/// What a reply must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Command,
    Kernel,
    Content,
    Written,
    Stat,
    Names,
    Git,
    Resources,
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a call down under this id.
pub(super) fn request(id: u64, call: Call) -> Request {
    let mut time = FILE_CALL;
    let mut grace = Duration::ZERO;
    let mut body = Vec::new();
    let mut reply_cap = 0;
    let (shape, mut header) = match call {
        Call::Bash { command, cwd, timeout } => {
            (time, grace, reply_cap) = (timeout, GRACE, 2 * OUTPUT_LIMIT);
            let fields = json!({"call": "bash", "command": command, "cwd": cwd, "output_limit": OUTPUT_LIMIT});
            (Shape::Command, fields)
        }
        Call::Python { code, timeout, reset_kernel, return_vars } => {
            (time, grace, reply_cap) = (timeout, GRACE, 2 * OUTPUT_LIMIT);
            let fields = json!({"call": "python", "code": code, "reset_kernel": reset_kernel, "return_vars": return_vars, "output_limit": OUTPUT_LIMIT});
            (Shape::Kernel, fields)
        }
        Call::Read { path, offset, limit } => {
            reply_cap = limit;
            (
                Shape::Content,
                json!({"call": "read", "path": path, "offset": offset, "limit": limit}),
            )
        }
        Call::Write { path, content } => {
            body = content;
            (Shape::Written, json!({"call": "write", "path": path}))
        }
        Call::Edit { path, old, new, replace_all, expected_hash } => {
            let fields = json!({"call": "edit", "path": path, "old": old, "new": new, "replace_all": replace_all, "expected_hash": expected_hash});
            (Shape::Written, fields)
        }
        Call::Stat { path } => (Shape::Stat, json!({"call": "stat", "path": path})),
        Call::List { path } => (Shape::Names, json!({"call": "list", "path": path})),
        Call::Fetch { path, max_bytes } => {
            reply_cap = max_bytes;
            (Shape::Content, json!({"call": "fetch", "path": path, "max_bytes": max_bytes}))
        }
        Call::CollectGit { base, message, max_bytes } => {
            (time, reply_cap) = (COLLECTION, max_bytes);
            let fields = json!({"call": "collect_git", "base": base, "message": message, "max_bytes": max_bytes});
            (Shape::Git, fields)
        }
        Call::Resources => (Shape::Resources, json!({"call": "resources"})),
    };
    header["id"] = json!(id);
    header["timeout_ms"] = json!(millis(time));
    let reply_cap = u32::try_from(reply_cap).unwrap_or(MAX_BODY).min(MAX_BODY);
    Request { header, body, reply_cap, deadline: time.saturating_add(grace), shape }
}

/// A reply's id, when it has one.
pub(super) fn reply_id(header: &Value) -> Option<u64> {
    header.get("id")?.as_u64()
}

/// Reads a reply of that shape. `Err(Malformed)` retires the sandbox.
pub(super) fn reply(
    shape: Shape,
    header: Value,
    body: Vec<u8>,
) -> Result<Result<Reply, CallError>, String> {
    match header.get("ok").and_then(Value::as_bool) {
        Some(true) => success(shape, header, body).map(Ok),
        Some(false) => refusal(header).map(Err),
        None => Err("a reply without ok".to_owned()),
    }
}

fn parse<'de, T: Deserialize<'de>>(header: Value) -> Result<T, String> {
    T::deserialize(header).map_err(|error| format!("a reply of another shape ({error})"))
}

fn refusal(header: Value) -> Result<CallError, String> {
    #[derive(Deserialize)]
    struct Raw {
        kind: String,
        message: String,
    }
    let Raw { kind, mut message } = parse(header)?;
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    let kind = match kind.as_str() {
        "cancelled" => return Ok(CallError::Cancelled),
        "not_found" => EditError::NotFound,
        "is_directory" => EditError::IsDirectory,
        "ambiguous" => EditError::Ambiguous,
        "stale" => EditError::Stale,
        "no_change" => EditError::NoChange,
        "unsafe" => EditError::Unsafe,
        "too_large" => EditError::TooLarge,
        "io" | "bad_request" => EditError::Io,
        other => return Err(format!("a refusal of kind {other:?}")),
    };
    Ok(CallError::Refused { kind, message })
}

fn success(shape: Shape, header: Value, body: Vec<u8>) -> Result<Reply, String> {
    Ok(match shape {
        Shape::Command => Reply::Command(command(parse(header)?, body)?),
        Shape::Kernel => Reply::Kernel(kernel(parse(header)?, body)?),
        Shape::Content => {
            let Written { size, sha256, .. } = parse(header)?;
            Reply::Content(FileContent { bytes: body, size, sha256: hash(sha256)? })
        }
        Shape::Written => {
            let Written { size, sha256, replaced } = parse(header)?;
            Reply::Written { size, sha256: hash(sha256)?, replaced }
        }
        Shape::Stat => {
            let Stat { kind, size } = parse(header)?;
            Reply::Stat { kind, size }
        }
        Shape::Names => Reply::Names(parse::<Names>(header)?.names),
        Shape::Git => {
            let Git { head, salvaged, has_bundle } = parse(header)?;
            Reply::Git(GitBundle { bytes: has_bundle.then_some(body), head, salvaged })
        }
        Shape::Resources => {
            let Used { oom_kills, memory_peak } = parse(header)?;
            Reply::Resources(Resources { oom_kills, memory_peak })
        }
    })
}

/// A SHA-256 in lower-case hexadecimal, or a malformed reply.
fn hash(text: String) -> Result<String, String> {
    let good = text.len() == 64
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if good { Ok(text) } else { Err("a reply with a hash that is none".to_owned()) }
}

#[derive(Deserialize)]
struct Ended {
    exit_code: Option<i32>,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    dropped_bytes: u64,
    #[serde(default)]
    spill_path: Option<String>,
    #[serde(default)]
    oom_killed: bool,
    #[serde(default)]
    head_len: Option<u64>,
}

#[derive(Deserialize)]
struct Cell {
    value: Option<String>,
    error: Option<String>,
    #[serde(default)]
    vars: Vec<(String, String)>,
    #[serde(default)]
    figures: Vec<String>,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    kernel_lost: bool,
    #[serde(default)]
    oom_killed: bool,
    #[serde(default)]
    dropped_bytes: u64,
    #[serde(default)]
    spill_path: Option<String>,
    #[serde(default)]
    head_len: Option<u64>,
}

#[derive(Deserialize)]
struct Written {
    size: u64,
    sha256: String,
    #[serde(default)]
    replaced: u64,
}

#[derive(Deserialize)]
struct Stat {
    kind: String,
    size: u64,
}

#[derive(Deserialize)]
struct Names {
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Git {
    head: Option<String>,
    #[serde(default)]
    salvaged: bool,
    has_bundle: bool,
}

#[derive(Deserialize)]
struct Used {
    oom_kills: u64,
    memory_peak: Option<u64>,
}

fn command(ended: Ended, body: Vec<u8>) -> Result<CommandOutput, String> {
    let (output, dropped_bytes) = rejoin(body, ended.dropped_bytes, ended.head_len);
    Ok(CommandOutput {
        exit_code: ended.exit_code,
        output,
        dropped_bytes,
        spill_path: spill(ended.spill_path)?,
        timed_out: ended.timed_out,
        oom_killed: ended.oom_killed,
    })
}

fn kernel(cell: Cell, body: Vec<u8>) -> Result<KernelOutput, String> {
    if cell.figures.len() > MAX_FIGURES || !cell.figures.iter().all(|name| is_figure(name)) {
        return Err("a reply with figures that are none".to_owned());
    }
    let (output, dropped_bytes) = rejoin(body, cell.dropped_bytes, cell.head_len);
    Ok(KernelOutput {
        output,
        dropped_bytes,
        spill_path: spill(cell.spill_path)?,
        value: cell.value,
        error: cell.error,
        vars: cell.vars,
        figures: cell.figures,
        timed_out: cell.timed_out,
        kernel_lost: cell.kernel_lost,
        oom_killed: cell.oom_killed,
    })
}

/// A path is shown to the model: only the one that the helper makes is passed on.
fn spill(path: Option<String>) -> Result<Option<String>, String> {
    let good = |path: &String| {
        let name = path.strip_prefix(".fleet/spill/").and_then(|name| name.strip_suffix(".txt"));
        name.is_some_and(|name| is_short(name) && name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if path.iter().all(good) {
        Ok(path)
    } else {
        Err("a reply with a spill that is none".to_owned())
    }
}

fn is_figure(path: &str) -> bool {
    let name = path.strip_prefix("figures/").and_then(|name| name.strip_suffix(".png"));
    let plain = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase() || byte == b'-';
    name.is_some_and(|name| is_short(name) && name.bytes().all(plain))
}

fn is_short(name: &str) -> bool {
    (1..=64).contains(&name.len())
}

/// Puts head and tail of a cut output on lines of their own, without the words that the cut went
/// through: a piece of a secret would be masked by nobody. Answers how many bytes are missing now.
fn rejoin(body: Vec<u8>, dropped: u64, head_len: Option<u64>) -> (Vec<u8>, u64) {
    let cut = head_len.and_then(|n| usize::try_from(n).ok()).filter(|n| *n < body.len());
    let (true, Some(cut)) = (dropped > 0, cut) else { return (body, dropped) };
    let (head, tail) = body.split_at(cut);
    let (last, first) = (word(head.iter().rev()), word(tail.iter()));
    let (head, tail) = (&head[..cut - last], &tail[first..]);
    let line_end: &[u8] = if head.is_empty() || head.ends_with(CUT) { b"" } else { CUT };
    ([head, line_end, tail].concat(), dropped.saturating_add((last + first) as u64))
}

/// The length of the word that bytes begin with; 0 when it has no end or is too long for one.
fn word<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    let mut bytes = bytes.take(LONGEST_WORD + 1);
    bytes.position(u8::is_ascii_whitespace).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_on_the_helper_s_cut_are_left_out() {
        let seen = |body: &str, dropped, head_len| {
            let (joined, missing) = rejoin(body.into(), dropped, Some(head_len));
            (String::from_utf8(joined).expect("text"), missing)
        };
        assert_eq!(seen("one sec|ret two", 9, 8), ("one \n two".to_owned(), 16));
        assert_eq!(seen("one\n|two\n", 9, 4), ("one\n\n".to_owned(), 13));
        assert_eq!(seen("one two", 0, 3), ("one two".to_owned(), 0));
        let long = format!("a {}", "x".repeat(3000));
        assert_eq!(seen(&long, 9, 1500), (format!("{}\n{}", &long[..1500], &long[1500..]), 9));
        assert_eq!(seen("one", 9, 99), ("one".to_owned(), 9));
    }

    #[test]
    fn paths_that_the_helper_does_not_make_are_not_passed_on() {
        let figures = |name: &str| json!({"id": 1, "ok": true, "value": null, "error": null, "figures": [name]});
        let spilled = |path: &str| json!({"id": 1, "ok": true, "exit_code": 0, "spill_path": path});
        let good = [
            reply(Shape::Kernel, figures("figures/cell-1-2-ab12.png"), vec![]).is_ok(),
            reply(Shape::Command, spilled(".fleet/spill/12.txt"), vec![]).is_ok(),
        ];
        assert_eq!(good, [true; 2]);
        for name in
            ["figures/../a.png", "a.png", "figures/.png", "figures/A.png", "figures/a.png\n"]
        {
            reply(Shape::Kernel, figures(name), vec![]).expect_err(name);
        }
        for path in
            ["/etc/passwd", ".fleet/spill/a.txt", ".fleet/spill/.txt", ".fleet/spill/1.txt]"]
        {
            reply(Shape::Command, spilled(path), vec![]).expect_err(path);
        }
    }

    #[test]
    fn a_long_refusal_is_cut() {
        let message = "é".repeat(100_000);
        let header = json!({"id": 1, "ok": false, "kind": "io", "message": message});
        let Ok(Err(CallError::Refused { message, .. })) = reply(Shape::Stat, header, vec![]) else {
            panic!("no refusal")
        };
        assert_eq!(message.len(), MAX_MESSAGE);
    }
}
