//! Servers that others wrote (`scripts/model-servers.sh`): fleet speaks the formats, not our own
//! double's idea of them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::model::{
    Answer, CallRequest, HttpModel, HttpSettings, Message, Model, ModelError, ModelErrorClass,
    Request, StopReason, ToolResult, ToolSpec, WireFormat, WireUsage,
};
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::SecretString;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::env::source_root;
use crate::env::world::World;

/// `master_key` of `tests/model_servers/proxy.yaml`.
const PROXY_KEY: &str = "sk-of-the-proxy";
/// How long a server may take to listen: Python reads a lot of files.
const STARTS_WITHIN: Duration = Duration::from_secs(150);

const FORMATS: [WireFormat; 2] = [WireFormat::ChatCompletions, WireFormat::Messages];

/// A server of somebody else, ended with its whole group when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// `health`: the path that answers 200 once it is ready.
    fn start(program: &str, health: &str, arguments: impl FnOnce(u16) -> Vec<String>) -> Self {
        let installed = std::env::var_os("FLEET_TEST_MODEL_SERVERS").map(PathBuf::from);
        let installed = installed.expect(
            "FLEET_TEST_MODEL_SERVERS names what scripts/model-servers.sh printed; scripts/test.sh \
             sets it",
        );
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let mut command = Command::new(installed.join(program));
        command.args(arguments(port)).current_dir(source_root().join("tests/model_servers"));
        // Its own files of prices; nothing is asked of anybody.
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_TELEMETRY", "False");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().expect("the server starts");
        let mut server = Server { child, port };
        server.wait(health);
        server
    }

    fn wait(&mut self, health: &str) {
        let until = Instant::now() + STARTS_WITHIN;
        while !self.is_healthy(health).unwrap_or(false) {
            let ended = self.child.try_wait().expect("the server is a child");
            assert!(ended.is_none(), "the server ended: {ended:?}");
            assert!(Instant::now() < until, "the server does not listen");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    fn is_healthy(&self, path: &str) -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(1024).read_to_string(&mut answer)?;
        Ok(answer.split(' ').nth(1) == Some("200"))
    }

    fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    async fn ask(&self, format: WireFormat, key: &str, asked: &Request) -> Asked {
        let key = SecretString::from(key.to_owned());
        let settings = HttpSettings::new("other", format, self.base_url(), Some(key));
        let model = HttpModel::new(settings).expect("the settings are usable");
        model.complete(asked, &CancellationToken::new()).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

type Asked = Result<Answer, ModelError>;

fn proxy() -> Server {
    Server::start("litellm", "/health/liveliness", |port| {
        let port = port.to_string();
        ["--config", "proxy.yaml", "--host", "127.0.0.1", "--port", &port]
            .map(str::to_owned)
            .to_vec()
    })
}

fn request(model: &str, messages: Vec<Message>) -> Request {
    Request {
        model: model.to_owned(),
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new([ToolSpec {
            name: "bash".to_owned(),
            description: "Runs a command.".to_owned(),
            parameters: json!({
                "type": "object", "properties": {"command": {"type": "string"}},
                "required": ["command"], "additionalProperties": false,
            }),
        }]),
        temperature: Some(0.0),
        max_output_tokens: Some(16),
    }
}

fn hello() -> Message {
    Message::User("Say hello.".to_owned())
}

/// What follows on a call: the call, its result.
fn after(call: CallRequest) -> Vec<Message> {
    let result = ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: "[exit 0]".to_owned(),
        is_error: false,
    };
    let said = "Let me look.".to_owned();
    vec![
        hello(),
        Message::Assistant { text: said, calls: vec![call], reasoning: None },
        Message::Tools(vec![result]),
    ]
}

fn class(asked: Asked) -> ModelErrorClass {
    asked.expect_err("it is refused").class
}

fn manifest(server: &Server, kind: &str) -> String {
    format!(
        "version: 1\nname: proxied\ndefaults: {{model: proxy/canned}}\nproviders:\n  - {{name: \
         proxy, type: {kind}, base_url: '{}', api_key_env: PROXY_KEY}}\npricing: {{fallback: \
         {{input_per_million: 10, cached_per_million: 1, output_per_million: 100}}}}\n",
        server.base_url()
    )
}

/// A run with a call over this format: its state and its cost in US dollars.
fn run(server: &Server, kind: &str) -> (String, f64) {
    let check =
        "prompt: Report.\ncompletion: {shell: grep -q 'made through the proxy' report.md}\n";
    let world =
        World::new(&[("manifest.yaml", &manifest(server, kind)), ("tasks/report.yaml", check)]);
    let bundle = world.bundle();
    let args = ["task", "run", "report", "--bundle", bundle.to_str().expect("UTF-8")];
    let output = world.command(&args).env("PROXY_KEY", PROXY_KEY).output().expect("fleet starts");
    let run = world.runs().remove(0);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{run:#}\n{said}");
    let state = run["state"].as_str().expect("a state").to_owned();
    (state, run["cost_usd"].as_f64().expect("a cost"))
}

#[tokio::test(flavor = "multi_thread")]
async fn litellm_s_proxy_is_understood_in_both_formats() {
    let server = proxy();
    for format in FORMATS {
        let ask =
            async |model: &str| server.ask(format, PROXY_KEY, &request(model, vec![hello()])).await;
        let first = ask("canned").await.expect("it answers");
        let usage = |prompt_tokens, completion_tokens| WireUsage {
            prompt_tokens,
            completion_tokens,
            ..WireUsage::default()
        };
        assert_eq!(first.text, "Let me look.", "{format:?}");
        assert_eq!(first.stop, StopReason::ToolCalls, "{format:?}");
        assert_eq!(first.usage, Some(usage(100, 20)), "{format:?}");
        let [call] = first.calls.as_slice() else { panic!("{format:?}: {:?}", first.calls) };
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).expect("JSON");
        assert_eq!(
            (call.name.as_str(), arguments),
            ("bash", json!({"command": "echo made through the proxy > report.md"})),
            "{format:?}"
        );
        let next = request("canned", after(call.clone()));
        let last = server.ask(format, PROXY_KEY, &next).await.expect("it answers");
        let seen = (last.text.as_str(), last.stop, last.calls.len(), last.usage);
        assert_eq!(
            seen,
            ("It is done.", StopReason::EndTurn, 0, Some(usage(150, 5))),
            "{format:?}"
        );

        assert_eq!(class(ask("limited").await), ModelErrorClass::Transient, "{format:?}");
        assert_eq!(class(ask("broken").await), ModelErrorClass::Transient, "{format:?}");
        assert_eq!(class(ask("overflowing").await), ModelErrorClass::ContextOverflow, "{format:?}");
        assert_eq!(class(ask("unknown").await), ModelErrorClass::Config, "{format:?}");
        let stranger = server.ask(format, "sk-wrong", &request("canned", vec![hello()])).await;
        assert_eq!(class(stranger), ModelErrorClass::Config, "{format:?}");
    }
    for kind in ["openai", "anthropic"] {
        let (state, cost) = run(&server, kind);
        // 250 tokens in, 25 out.
        assert_eq!((state.as_str(), (cost * 1e6).round()), ("success", 5000.0), "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn llama_cpp_s_server_is_understood_in_both_formats() {
    let server = Server::start("python", "/health", |port| {
        vec!["llama.py".to_owned(), port.to_string(), "1024".to_owned()]
    });
    for format in FORMATS {
        let first = server.ask(format, "none", &request("any", vec![hello()])).await;
        let first = first.expect("it answers");
        assert!(!first.text.is_empty(), "{format:?}: {first:?}");
        assert!([StopReason::EndTurn, StopReason::Length].contains(&first.stop), "{first:?}");
        let usage = first.usage.expect("it counts");
        assert!(usage.prompt_tokens > 10 && usage.completion_tokens > 0, "{format:?}: {usage:?}");
        assert!(usage.completion_tokens <= 16, "{format:?}: {usage:?}");

        let again = server.ask(format, "none", &request("any", vec![hello()])).await;
        let again = again.expect("it answers").usage.expect("it counts");
        assert!(again.cached_tokens > 0, "{format:?}: {again:?}");
        assert_eq!(again.prompt_tokens, usage.prompt_tokens, "{format:?}");

        let call = CallRequest {
            id: "call_1".to_owned(),
            name: "bash".to_owned(),
            arguments: r#"{"command":"true"}"#.to_owned(),
        };
        let history = request("any", after(call));
        server.ask(format, "none", &history).await.expect("its template takes a call's history");

        let long = Message::User("a long word ".repeat(2000));
        let refused = server.ask(format, "none", &request("any", vec![long])).await;
        let refused = refused.expect_err("the prompt is too long");
        assert_eq!(
            (refused.class, refused.window_tokens),
            (ModelErrorClass::ContextOverflow, Some(1024)),
            "{format:?}: {refused}"
        );
    }
}
