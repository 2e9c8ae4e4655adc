//! A parsed value to a typed one, with errors that keep their parts and the way to the place. A null
//! is never taken for "absent".

use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess};
use serde_json::Value;

use super::path::{Path, Step};

/// Why a value does not have the form that is asked of it, and where.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) kind: MismatchKind,
    /// Innermost step first, while the error is on its way out.
    steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) enum MismatchKind {
    UnknownKey { key: String, known: &'static [&'static str] },
    WrongType { seen: String, wanted: String },
    InvalidValue { seen: String, wanted: String },
    UnknownWord { word: String, known: &'static [&'static str] },
    Other(String),
}

impl Mismatch {
    fn new(kind: MismatchKind) -> Self {
        Mismatch { kind, steps: Vec::new() }
    }

    fn below(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub(super) fn path(&self) -> Path {
        Path(self.steps.iter().rev().cloned().collect())
    }
}

impl Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {}", self.kind, self.path().text())
    }
}

impl std::error::Error for Mismatch {}

impl de::Error for Mismatch {
    fn custom<T: Display>(message: T) -> Self {
        Mismatch::new(MismatchKind::Other(message.to_string()))
    }

    fn invalid_type(seen: de::Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        let (seen, wanted) = (describe(seen), accepted(&wanted.to_string()));
        Mismatch::new(MismatchKind::WrongType { seen, wanted })
    }

    fn invalid_value(seen: de::Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        let wanted = wanted.to_string();
        let wanted = match (seen, wanted.as_str()) {
            (de::Unexpected::Unsigned(_), "u16") => format!("a whole number up to {}", u16::MAX),
            (de::Unexpected::Unsigned(_), "u32") => format!("a whole number up to {}", u32::MAX),
            _ => accepted(&wanted),
        };
        Mismatch::new(MismatchKind::InvalidValue { seen: describe(seen), wanted })
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Mismatch::new(MismatchKind::UnknownKey { key: key.to_owned(), known })
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Mismatch::new(MismatchKind::UnknownWord { word: word.to_owned(), known })
    }
}

fn describe(seen: de::Unexpected<'_>) -> String {
    match seen {
        de::Unexpected::Unit => "nothing".to_owned(),
        de::Unexpected::Bool(value) => format!("{value}"),
        de::Unexpected::Unsigned(value) => format!("the number {value}"),
        de::Unexpected::Signed(value) => format!("the number {value}"),
        de::Unexpected::Float(value) => format!("the number {value:?}"),
        de::Unexpected::Str(text) => format!("the text {:?}", shorten(text)),
        de::Unexpected::Seq => "a list".to_owned(),
        de::Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    }
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// serde's names of what it expects, in the words of the bundle's documentation.
fn accepted(wanted: &str) -> String {
    match wanted {
        "a boolean" => "true or false".to_owned(),
        "a string" => "text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "u64" | "u32" | "u16" | "usize" => "a whole number, 0 or more".to_owned(),
        "f64" => "a number".to_owned(),
        other => other.to_owned(),
    }
}

/// Reads a value of a parsed document.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a Value);

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => {
                if let Some(value) = number.as_u64() {
                    visitor.visit_u64(value)
                } else if let Some(value) = number.as_i64() {
                    visitor.visit_i64(value)
                } else {
                    visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
                }
            }
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { items: items.iter(), next: 0 }),
            Value::Object(map) => visitor.visit_map(Entries { entries: map.iter(), value: None }),
        }
    }

    fn deserialize_option<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: de::Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    /// Derived visitors would take a list for a mapping, entry by entry.
    fn deserialize_struct<V: de::Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Array(_) => Err(de::Error::invalid_type(de::Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: de::Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::String(word) => {
                let word: StrDeserializer<'_, Mismatch> = word.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            // Only words are variants here: say so as for text.
            _ => self.deserialize_any(TextOnly).map(|never| match never {}),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// Refuses everything, as something that is not text.
struct TextOnly;

enum Never {}

impl de::Visitor<'_> for TextOnly {
    type Value = Never;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Value>,
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mismatch> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(Reader(item)).map(Some).map_err(|error| error.below(Step::Index(index)))
    }
}

struct Entries<'a> {
    entries: serde_json::map::Iter<'a>,
    value: Option<(&'a String, &'a Value)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mismatch> {
        self.value = self.entries.next();
        let Some((key, _)) = self.value else { return Ok(None) };
        let text: StrDeserializer<'_, Mismatch> = key.as_str().into_deserializer();
        seed.deserialize(text).map(Some).map_err(|error| error.below(Step::Key(key.clone())))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        let (key, value) =
            self.value.take().ok_or_else(|| de::Error::custom("a value without its key"))?;
        seed.deserialize(Reader(value)).map_err(|error| error.below(Step::Key(key.clone())))
    }
}
