//! Usage as chat completions report it, in the dialects of several providers.

use serde_json::Value;

use super::super::WireUsage;

/// Reads a `usage` member; `None` when there is none.
pub(super) fn usage_of(value: &Value) -> Option<WireUsage> {
    let usage = value.get("usage").filter(|usage| usage.is_object())?;
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    Some(WireUsage {
        prompt_tokens: count("/prompt_tokens").unwrap_or(0),
        // OpenAI and its relatives, then DeepSeek.
        cached_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .unwrap_or(0),
        completion_tokens: count("/completion_tokens").unwrap_or(0),
        cost_usd: usage.get("cost").and_then(Value::as_f64),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_tokens_and_cost_are_read_where_providers_put_them() {
        let openrouter = json!({"usage": {
            "prompt_tokens": 100, "completion_tokens": 5, "cost": 0.0012,
            "prompt_tokens_details": {"cached_tokens": 64}
        }});
        assert_eq!(
            usage_of(&openrouter),
            Some(WireUsage {
                prompt_tokens: 100,
                cached_tokens: 64,
                completion_tokens: 5,
                cost_usd: Some(0.0012),
            })
        );
        let deepseek = json!({"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}});
        assert_eq!(usage_of(&deepseek).map(|usage| usage.cached_tokens), Some(4));
        assert_eq!(usage_of(&json!({"usage": null})), None);
    }
}
