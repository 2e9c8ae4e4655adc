//! Reads channels' secrets from the host's environment, when they are needed and no earlier.

use secrecy::SecretString;

use super::SendError;
use crate::secrets::Redactor;

/// The environment as one channel sees it.
pub(super) struct Environment<'e> {
    pub(super) channel: &'e str,
    pub(super) redactor: &'e Redactor,
}

impl Environment<'_> {
    /// A secret's value, which is masked from now on. `key` is the bundle key that names the variable.
    pub(super) fn secret(
        &self,
        key: &'static str,
        variable: &str,
    ) -> Result<SecretString, SendError> {
        let value = self.value(key, variable)?;
        self.redactor.register(&value);
        Ok(SecretString::from(value))
    }

    /// A value that is not secret by itself.
    pub(super) fn value(&self, key: &'static str, variable: &str) -> Result<String, SendError> {
        match std::env::var(variable) {
            Ok(value) if !value.is_empty() => Ok(value),
            _ => Err(SendError::MissingVariable {
                variable: variable.to_owned(),
                key,
                channel: self.channel.to_owned(),
            }),
        }
    }
}
