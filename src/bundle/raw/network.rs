//! `allow_network` as it is written: a word or a list.

use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// What a task may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RawNetwork {
    All(bool),
    Hosts(Vec<String>),
}

impl<'de> serde::Deserialize<'de> for RawNetwork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Network;
        impl<'de> Visitor<'de> for Network {
            type Value = RawNetwork;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a list of hosts")
            }

            fn visit_bool<E: Error>(self, all: bool) -> Result<RawNetwork, E> {
                Ok(RawNetwork::All(all))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawNetwork, A::Error> {
                let mut hosts = Vec::new();
                while let Some(host) = list.next_element()? {
                    hosts.push(host);
                }
                Ok(RawNetwork::Hosts(hosts))
            }
        }
        deserializer.deserialize_any(Network)
    }
}

impl schemars::JsonSchema for RawNetwork {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Network".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "oneOf": [
                {"type": "boolean"},
                {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "examples": [["api.example.com", "*.example.org", "example.net:8443"]],
                },
            ],
        })
    }
}
