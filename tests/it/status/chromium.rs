//! A headless Chromium, driven over its debugging pipe.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// One browser with one tab. Killed when dropped.
pub(super) struct Chromium {
    _child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    next: u64,
    /// Events that came while something else was awaited.
    events: VecDeque<Value>,
    /// What the console and the browser's log said: policy errors, failed loads, exceptions.
    pub complaints: Vec<String>,
}

impl Chromium {
    /// Starts a browser with a new profile. The shell maps the pipe, which is expected at descriptors
    /// 3 and 4, to standard input and output.
    pub(super) async fn start(profile: &Path) -> Self {
        let flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
                     --disable-background-networking --disable-component-update --disable-sync \
                     --disable-features=BackForwardCache \
                     --remote-debugging-pipe";
        let script = format!("exec chromium {flags} --user-data-dir=\"$0\" 3<&0 4>&1 >/dev/null");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("a shell");
        let to = child.stdin.take().expect("piped");
        let from = BufReader::new(child.stdout.take().expect("piped"));
        let mut browser = Chromium {
            _child: child,
            to,
            from,
            session: None,
            next: 0,
            events: VecDeque::new(),
            complaints: Vec::new(),
        };
        let tab = browser.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": tab["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach).await;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({})).await;
        }
        browser
    }

    /// Sets the size of the screen and the preferred colours (`light` or `dark`).
    pub(super) async fn screen(&mut self, width: u32, height: u32, colours: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1,
                          "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!([{"name": "prefers-color-scheme", "value": colours}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features})).await;
    }

    /// Opens an address and waits until it is loaded.
    pub(super) async fn open(&mut self, url: &str) {
        // A load event of an earlier page would be taken for this one's.
        self.events.clear();
        self.call("Page.navigate", json!({"url": url})).await;
        self.event("Page.loadEventFired").await;
    }

    /// The value of an expression; a promise is awaited.
    pub(super) async fn evaluate(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", ask).await;
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// A picture of the whole page, as base64 of a PNG.
    pub(super) async fn picture(&mut self) -> String {
        let ask = json!({"captureBeyondViewport": true});
        let answer = self.call("Page.captureScreenshot", ask).await;
        answer["data"].as_str().expect("a picture").to_owned()
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).await.expect("the browser listens");
        loop {
            let answer = self.read().await;
            if answer["id"] == id {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push_back(answer);
        }
    }

    async fn event(&mut self, method: &str) {
        while let Some(event) = self.events.pop_front() {
            if event["method"] == method {
                return;
            }
        }
        while self.read().await["method"] != method {}
    }

    async fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        let read = self.from.read_until(0, &mut bytes).await.expect("the browser answers");
        assert!(read > 0, "the browser ended: is chromium installed?");
        bytes.pop();
        let message: Value = serde_json::from_slice(&bytes).expect("JSON");
        let method = message["method"].as_str().unwrap_or_default();
        if matches!(
            method,
            "Log.entryAdded" | "Runtime.exceptionThrown" | "Runtime.consoleAPICalled"
        ) {
            self.complaints.push(message["params"].to_string());
        }
        message
    }
}
