//! The status page over real HTTP on loopback, against a real store, and in a real browser.

mod browser;
mod chromium;
mod http;
mod site;
