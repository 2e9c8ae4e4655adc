//! TLS through the way out: what is inside speaks with the host itself, the tool trusts what the system
//! trusts, and nothing less.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use fleet::egress::{Caps, FetchLimits, fetch};
use fleet::run::RunState;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;

use super::run::{carry_out, outputs, verdicts};
use crate::env::again;
use crate::env::outside::{Names, Server, Way, dialer, hosts, ok, read_head};
use crate::env::world::World;

/// A certificate authority, and a certificate of it for `good.test`.
const MAKE: &str = r#"
cat >ca.cnf <<END
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
subjectAltName = DNS:good.test
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
END
key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
openssl req -config ca.cnf $key -x509 -days 2 -extensions ca -subj /CN=authority -keyout ca.key -out ca.pem
openssl req -config ca.cnf $key -subj /CN=good.test -keyout key.pem -out request.pem
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -set_serial 7 -days 2 \
    -extfile ca.cnf -extensions server -out certificate.pem
"#;

fn make_certificates(dir: &Path) {
    let output = Command::new("bash").args(["-ec", MAKE]).current_dir(dir).output();
    let output = output.expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A server on loopback with the certificate of this directory.
async fn serve(dir: &Path) -> Server {
    fleet::tls::install_ring();
    let certificate = CertificateDer::from_pem_file(dir.join("certificate.pem"));
    let key = PrivateKeyDer::from_pem_file(dir.join("key.pem")).expect("a key");
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.expect("a certificate")], key)
        .expect("they belong together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Server::start(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let head = read_head(&mut stream).await;
            let answer = ok(head.lines().next().unwrap_or_default());
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    })
    .await
}

/// Carries the test out in a process whose system trusts the authority of a new directory as well.
fn trusting(test: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    make_certificates(dir.path());
    let mut command = Command::new("env");
    command.env("SSL_CERT_FILE", dir.path().join("ca.pem"));
    again::carry_out(command, test);
}

/// That directory.
fn directory() -> std::path::PathBuf {
    let file = std::env::var_os("SSL_CERT_FILE").expect("the second process has it");
    Path::new(&file).parent().expect("in a directory").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn https_is_reached_by_curl_by_python_and_by_the_tool() {
    if !again::is_second() {
        return trusting("egress::tls::https_is_reached_by_curl_by_python_and_by_the_tool");
    }
    let dir = directory();
    let server = serve(&dir).await;
    let port = server.port();
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let authority = std::fs::read_to_string(dir.join("ca.pem")).expect("the authority");
    let write =
        serde_json::to_string(&format!("cat >ca.pem <<'END'\n{authority}END")).expect("JSON");
    let task = format!(
        "prompt: x\nallow_network: ['good.test:{port}']\ncompletion: {{required_tools: [web_fetch]}}\n"
    );
    let script = format!(
        r#"turns:
  - tool_calls:
      - name: bash
        arguments: {{command: {write}}}
  - tool_calls:
      - name: bash
        arguments: {{command: 'curl -sS --cacert ca.pem https://good.test:{port}/curl'}}
  - tool_calls:
      - name: bash
        arguments:
          command: |
            python3 - <<'END'
            import ssl, urllib.request
            context = ssl.create_default_context(cafile="ca.pem")
            print(urllib.request.urlopen("https://good.test:{port}/python", context=context).read().decode())
            END
  - tool_calls:
      - name: web_fetch
        arguments: {{url: 'https://good.test:{port}/tool'}}
  - text: Done.
"#
    );
    let world = World::new(&[("tasks/reach.yaml", &task), ("scripted/reach.yaml", &script)]);
    let (state, events) = carry_out(&world, "reach", dialer(&names, server.address)).await;
    let told: Vec<&str> = outputs(&events).iter().map(|(_, output, _)| *output).collect();
    assert_eq!(state, RunState::Success, "{told:?}");
    assert!(told[1].starts_with("GET /curl HTTP/1.1"), "{told:?}");
    assert!(told[2].starts_with("GET /python HTTP/1.1"), "{told:?}");
    assert!(told[3].starts_with("GET /tool HTTP/1.1\n[status 200"), "{told:?}");
    let allowed = |via: &str| format!("allowed good.test:{port} {via} -");
    assert_eq!(verdicts(&events), [allowed("sandbox"), allowed("sandbox"), allowed("web_fetch")]);
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_certificate_of_another_name_or_of_a_stranger_is_refused_by_the_tool() {
    if !again::is_second() {
        let test = "a_certificate_of_another_name_or_of_a_stranger_is_refused_by_the_tool";
        return trusting(&format!("egress::tls::{test}"));
    }
    let strange = tempfile::tempdir().expect("a directory");
    make_certificates(strange.path());
    let table = [
        (directory(), "good.test", "GET /x HTTP/1.1"),
        (directory(), "also.test", "not valid for name"),
        (strange.path().to_owned(), "good.test", "invalid peer certificate: BadSignature"),
    ];
    for (dir, name, want) in table {
        let server = serve(&dir).await;
        let port = server.port();
        let names = Names::default();
        names.answer(name, &["127.0.0.1"]);
        let policy = hosts(&[&format!("{name}:{port}")]);
        let way = Way::new(policy, dialer(&names, server.address), Caps::default());
        let url = format!("https://{name}:{port}/x");
        let told = match fetch(&way.gate, &url, FetchLimits::default()).await {
            Ok(fetched) => String::from_utf8_lossy(&fetched.body).into_owned(),
            Err(error) => error.to_string(),
        };
        assert!(told.contains(want), "{name}: {told}");
        if !want.starts_with("GET") {
            let refused = format!("{name} offers no trusted TLS connection: ");
            assert!(told.starts_with(&refused), "{name}: {told}");
        }
    }
}
