//! A loopback mail server that speaks as much SMTP as taking a mail needs, and keeps what it was told.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The server; its thread ends with the test process.
#[derive(Clone, Debug)]
pub struct MailServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Answers to RCPT, before all are taken.
    refusals: VecDeque<String>,
    commands: Vec<String>,
    mails: Vec<String>,
}

impl MailServer {
    /// Refuses the first receivers with these answers.
    pub fn start(refusals: &[&str]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("the listener has an address");
        let refusals = refusals.iter().map(ToString::to_string).collect();
        let shared = Arc::new(Mutex::new(Shared { refusals, ..Shared::default() }));
        let server = MailServer { address, shared: shared.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that breaks off ends its own conversation.
                let _ = converse(&stream, &shared);
            }
        });
        server
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every line that is no part of a mail.
    pub fn commands(&self) -> Vec<String> {
        self.shared.lock().expect("the lists").commands.clone()
    }

    /// The mails that were taken.
    pub fn mails(&self) -> Vec<String> {
        self.shared.lock().expect("the lists").mails.clone()
    }
}

fn converse(stream: &TcpStream, shared: &Mutex<Shared>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut out = stream;
    out.write_all(b"220 loopback\r\n")?;
    while let Some(line) = lines.next().transpose()? {
        shared.lock().expect("the lists").commands.push(line.clone());
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match verb.as_str() {
            "EHLO" => "250-loopback\r\n250 AUTH PLAIN".to_owned(),
            "AUTH" => "235 welcome".to_owned(),
            "RCPT" => {
                let refusal = shared.lock().expect("the lists").refusals.pop_front();
                refusal.unwrap_or_else(|| "250 ok".to_owned())
            }
            "DATA" => {
                out.write_all(b"354 go on\r\n")?;
                let mut mail = String::new();
                for line in lines.by_ref() {
                    match line?.as_str() {
                        "." => break,
                        line => mail.push_str(&format!("{line}\n")),
                    }
                }
                shared.lock().expect("the lists").mails.push(mail);
                "250 taken".to_owned()
            }
            "QUIT" => {
                return out.write_all(b"221 bye\r\n");
            }
            _ => "250 ok".to_owned(),
        };
        out.write_all(format!("{answer}\r\n").as_bytes())?;
    }
    Ok(())
}
