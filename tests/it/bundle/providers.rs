//! Who answers for the models.

use fleet::bundle::{HttpService, ProviderKind};

use super::{check, load_files};

fn manifest(providers: &str) -> String {
    format!(
        "version: 1\nname: test\nproviders:\n  - {{name: scripted, type: scripted}}\n{providers}"
    )
}

#[test]
fn services_have_their_own_address_and_need_a_key_there() {
    let text = manifest(
        "  - {name: a, type: anthropic, api_key_env: A_KEY}\n  - {name: b, type: openrouter, \
         api_key_env: B_KEY}\n  - {name: c, type: ollama}\n  - {name: d, type: anthropic, base_url: \
         'http://127.0.0.1:4000/v1/'}\n",
    );
    let loaded = load_files(&[("manifest.yaml", text.as_bytes())]);
    let bundle = loaded.bundle.expect("a bundle");
    let seen: Vec<_> = ["a", "b", "c", "d"].map(|name| bundle.providers[name].kind.clone()).into();
    let http = |service, base_url: &str, key: Option<&str>| ProviderKind::Http {
        service,
        base_url: base_url.to_owned(),
        api_key_env: key.map(str::to_owned),
    };
    assert_eq!(
        seen,
        [
            http(HttpService::Anthropic, "https://api.anthropic.com/v1", Some("A_KEY")),
            http(HttpService::OpenRouter, "https://openrouter.ai/api/v1", Some("B_KEY")),
            http(HttpService::Ollama, "http://127.0.0.1:11434/v1", None),
            // A proxy of one's own may hold the key.
            http(HttpService::Anthropic, "http://127.0.0.1:4000/v1", None),
        ]
    );
}

#[test]
fn a_service_without_its_key_and_an_unknown_type_are_refused() {
    let text = manifest(
        "  - {name: a, type: anthropic}\n  - {name: b, type: openrouter}\n  - {name: c, type: openai}\n",
    );
    assert_eq!(
        check(&[("manifest.yaml", &text)]),
        [
            "manifest.yaml:5:5 missing-key: \"api_key_env\" is missing in providers[1]",
            "manifest.yaml:6:5 missing-key: \"api_key_env\" is missing in providers[2]",
            "manifest.yaml:7:5 missing-key: \"base_url\" is missing in providers[3]",
        ]
    );
    let text = manifest("  - {name: a, type: antropic}\n");
    let problems = check(&[("manifest.yaml", &text)]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("manifest.yaml:5:21 "), "{problems:?}");
}

#[test]
fn a_fallback_model_is_inherited_and_is_another_one() {
    let text = "version: 1\nname: test\nproviders: [{name: scripted, type: scripted}, {name: lab, \
                type: ollama}]\ndefaults: {model: scripted/session, fallback_model: lab/second}\n";
    let loaded = load_files(&[
        ("manifest.yaml", text.as_bytes()),
        ("tasks/a.yaml", b"prompt: x\n"),
        ("tasks/b.yaml", b"prompt: x\nfallback_model: lab/third\n"),
        ("scripted/a.yaml", b"turns: [{text: done}]\n"),
        ("scripted/b.yaml", b"turns: [{text: done}]\n"),
    ]);
    let bundle = loaded.bundle.expect("a bundle");
    let fallbacks: Vec<_> = bundle
        .tasks
        .values()
        .map(|task| task.fallback_model.as_ref().map(|model| model.model.clone()))
        .collect();
    assert_eq!(fallbacks, [Some("second".to_owned()), Some("third".to_owned())]);

    let task = |text: &str| {
        check(&[
            ("manifest.yaml", &manifest("")),
            ("tasks/t.yaml", text),
            ("scripted/t.yaml", "turns: [{text: done}]\n"),
        ])
    };
    assert_eq!(
        task("prompt: x\nmodel: scripted/a\nfallback_model: scripted/a\n"),
        ["tasks/t.yaml:3:1 useless-key: fallback_model \"scripted/a\" is the task's model"]
    );
    assert_eq!(
        task("prompt: x\nmodel: scripted/a\nfallback_model: nobody/a\n"),
        ["tasks/t.yaml:3:17 unknown-provider: no provider is named \"nobody\""]
    );
}
