//! Models over real HTTP, against a server on the loopback interface.

mod anthropic;
mod faults;
mod independent;
mod streams;

use fleet::model::{
    Answer, HttpModel, HttpSettings, Message, Model, ModelError, Request, ToolSpec, WireFormat,
};
use secrecy::SecretString;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::env::model_server::{ModelServer, Reply, SHORT_SILENCE};

/// A key that must be seen nowhere but in the header.
const KEY: &str = "sk-test-0123456789abcdef";

fn model(server: &ModelServer) -> HttpModel {
    let mut settings = HttpSettings::new(
        "lab",
        WireFormat::ChatCompletions,
        server.base_url(),
        Some(SecretString::from(KEY.to_owned())),
    );
    settings.idle_timeout = SHORT_SILENCE;
    HttpModel::new(settings).expect("the settings are usable")
}

fn request() -> Request {
    Request {
        model: "test-1".to_owned(),
        system: "be brief".into(),
        messages: vec![Arc::new(Message::User("hello".to_owned()))],
        tools: Arc::new([ToolSpec {
            name: "bash".to_owned(),
            description: "runs".to_owned(),
            parameters: serde_json::json!({"type": "object"}),
        }]),
        temperature: Some(0.5),
        max_output_tokens: None,
    }
}

/// Asks a server that gives this one reply.
async fn ask(reply: Reply) -> Result<Answer, ModelError> {
    let server = ModelServer::start(vec![reply]);
    model(&server).complete(&request(), &CancellationToken::new()).await
}
