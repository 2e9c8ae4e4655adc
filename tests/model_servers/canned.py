"""The answers of the proxy's model `canned`: one command, then one sentence."""

import litellm
from litellm import CustomLLM

COMMAND = '{"command": "echo made through the proxy > report.md"}'


def piece(text="", tool=None, reason="", prompt=0, completion=0):
    """One piece of a streamed answer, as litellm's own providers give it."""
    usage = None
    if reason:
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
    return {
        "text": text,
        "tool_use": tool,
        "is_finished": bool(reason),
        "finish_reason": reason,
        "usage": usage,
        "index": 0,
    }


class Canned(CustomLLM):
    async def astreaming(self, model, messages, *args, **kwargs):
        if any(message.get("role") == "tool" for message in messages):
            for word in ["It ", "is ", "done."]:
                yield piece(word)
            yield piece(reason="stop", prompt=150, completion=5)
            return
        yield piece("Let me look.")
        function = {"name": "bash", "arguments": COMMAND}
        yield piece(tool={"id": "call_1", "type": "function", "index": 0, "function": function})
        yield piece(reason="tool_calls", prompt=100, completion=20)


canned = Canned()
litellm.suppress_debug_info = True
