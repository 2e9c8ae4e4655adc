//! One provider over HTTP: the request, its answer or its refusal.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio_util::sync::CancellationToken;

use super::super::sse::SseParser;
use super::super::{Answer, Model, ModelError, Request, anthropic, openai};
use super::assembly::{Assembly, Progress};
use super::failure::Failures;
use super::response::{is_event_stream, read_body};
use super::{HttpSettings, WireFormat, client};

/// The most bytes that are read of an answer that is not a stream.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
/// The most bytes that are read of an error.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The version of Messages that requests are written in.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// A provider that is asked over HTTP.
#[derive(Clone, Debug)]
pub struct HttpModel {
    format: WireFormat,
    endpoint: String,
    client: reqwest::Client,
    /// The header that carries the key.
    key: Option<(HeaderName, HeaderValue)>,
    failures: Failures,
}

impl HttpModel {
    /// Prepares a connection pool; nothing is sent yet. Fails when the key or the URL is unusable.
    pub fn new(settings: HttpSettings) -> Result<Self, ModelError> {
        let failures = Failures::new(&settings);
        let key = match &settings.api_key {
            Some(key) => Some(client::key_header(settings.format, key).ok_or_else(|| {
                failures.config("the key has characters that no HTTP header can carry".to_owned())
            })?),
            None => None,
        };
        let client = client::build(&settings).map_err(|message| failures.config(message))?;
        let path = match settings.format {
            WireFormat::ChatCompletions | WireFormat::OpenRouter => "chat/completions",
            WireFormat::Messages => "messages",
        };
        let endpoint = format!("{}/{path}", settings.base_url.trim_end_matches('/'));
        Ok(HttpModel { format: settings.format, endpoint, client, key, failures })
    }

    async fn ask(&self, request: &Request) -> Result<Answer, ModelError> {
        let body = match self.format {
            WireFormat::ChatCompletions => openai::encode(request, openai::Dialect::Plain),
            WireFormat::OpenRouter => openai::encode(request, openai::Dialect::OpenRouter),
            WireFormat::Messages => anthropic::encode(request),
        };
        let mut post = self
            .client
            .post(&self.endpoint)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(body);
        if self.format == WireFormat::Messages {
            post = post.header("anthropic-version", ANTHROPIC_VERSION);
        }
        if let Some((name, value)) = &self.key {
            post = post.header(name, value.clone());
        }
        let response = post.send().await.map_err(|error| self.failures.transport(error, false))?;
        if response.status() != StatusCode::OK {
            return Err(self.refusal(response).await);
        }
        if is_event_stream(response.headers()) {
            self.read_stream(response).await
        } else {
            self.read_whole(response).await
        }
    }

    async fn refusal(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let retry_after = self.failures.retry_after(response.headers());
        // A body that cannot be read still leaves the status.
        let body = read_body(&mut response, MAX_ERROR_BYTES).await.unwrap_or_default();
        self.failures.refused(status, &body, retry_after)
    }

    async fn read_stream(&self, mut response: Response) -> Result<Answer, ModelError> {
        let mut parser = SseParser::default();
        let mut assembly = Assembly::new(self.format);
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // All that matters has come: what is lost is at most the usage.
                Err(_) if assembly.is_finished() => break,
                Err(error) => return Err(self.failures.transport(error, true)),
            };
            let events = parser
                .push(&chunk)
                .map_err(|error| self.failures.broken_stream(&error.to_string()))?;
            for event in events {
                match assembly.take(&event).map_err(|fault| self.failures.in_stream(fault))? {
                    Progress::More => {}
                    Progress::Done => return self.finished(assembly),
                }
            }
        }
        if let Some(event) = parser.finish() {
            assembly.take(&event).map_err(|fault| self.failures.in_stream(fault))?;
        }
        self.finished(assembly)
    }

    /// A server that does not stream answers in one piece; an error may come with 200 as well.
    async fn read_whole(&self, mut response: Response) -> Result<Answer, ModelError> {
        let body = read_body(&mut response, MAX_BODY_BYTES)
            .await
            .map_err(|error| self.failures.transport(error, true))?;
        let mut assembly = Assembly::new(self.format);
        assembly.take_whole(&body).map_err(|fault| self.failures.in_stream(fault))?;
        self.finished(assembly)
    }

    fn finished(&self, assembly: Assembly) -> Result<Answer, ModelError> {
        assembly
            .finish()
            .ok_or_else(|| self.failures.broken_stream("the answer ended before it was finished"))
    }
}

impl Model for HttpModel {
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async move {
            tokio::select! {
                biased;
                // Dropping the request closes its connection.
                () = cancel.cancelled() => Err(self.failures.cancelled()),
                answer = self.ask(request) => answer,
            }
        }
        .boxed()
    }
}
