//! A span of time as it is written.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

/// A duration in words, not yet parsed: `90s`, `4h`, `1h 30m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DurationText(pub(crate) String);

impl<'de> serde::Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = DurationText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, such as 90s or 4h")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<DurationText, E> {
                Ok(DurationText(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl schemars::JsonSchema for DurationText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "examples": ["90s", "4h", "1h 30m"],
        })
    }
}
