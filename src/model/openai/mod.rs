//! Chat completions: the wire format of OpenAI itself and of everything compatible (OpenRouter,
//! Ollama, vLLM, llama.cpp, LiteLLM). Streams, because long answers outlive idle timeouts.

mod answer;
mod body;
mod client;
mod failure;
mod response;
mod settings;
mod usage;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio_util::sync::CancellationToken;

use self::answer::{Assembly, Progress};
use self::failure::Failures;
use self::response::{is_event_stream, read_body};
pub use self::settings::OpenAiSettings;
use super::fault::Fault;
use super::sse::SseParser;
use super::{Answer, Model, ModelError, Request};

/// The most bytes that are read of an answer that is not a stream.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
/// The most bytes that are read of an error.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// A provider of chat completions.
#[derive(Clone, Debug)]
pub struct OpenAiModel {
    endpoint: String,
    client: reqwest::Client,
    authorization: Option<HeaderValue>,
    failures: Failures,
}

impl OpenAiModel {
    /// Prepares a connection pool; nothing is sent yet. Fails when the key or the URL is unusable.
    pub fn new(settings: OpenAiSettings) -> Result<Self, ModelError> {
        let failures = Failures::new(&settings);
        let authorization = match &settings.api_key {
            Some(key) => Some(client::authorization(key).ok_or_else(|| {
                failures.config("the key has characters that no HTTP header can carry".to_owned())
            })?),
            None => None,
        };
        let client = client::build(&settings).map_err(|message| failures.config(message))?;
        let endpoint = format!("{}/chat/completions", settings.base_url.trim_end_matches('/'));
        Ok(OpenAiModel { endpoint, client, authorization, failures })
    }

    async fn ask(&self, request: &Request) -> Result<Answer, ModelError> {
        let body = body::encode(request);
        let mut post = self
            .client
            .post(&self.endpoint)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(body);
        if let Some(authorization) = &self.authorization {
            post = post.header(reqwest::header::AUTHORIZATION, authorization.clone());
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
        let mut assembly = Assembly::default();
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
        let mut assembly = Assembly::default();
        assembly.take_whole(&body).map_err(|fault: Fault| self.failures.in_stream(fault))?;
        self.finished(assembly)
    }

    fn finished(&self, assembly: Assembly) -> Result<Answer, ModelError> {
        assembly
            .finish()
            .ok_or_else(|| self.failures.broken_stream("the answer ended before it was finished"))
    }
}

impl Model for OpenAiModel {
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
