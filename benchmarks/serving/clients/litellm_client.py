"""litellm: python litellm_client.py URL -> what it found, and what a plain request finds."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

MESSAGES = [{"role": "user", "content": "Hi"}]
OPTIONS: dict[str, Any] = {"max_tokens": 12, "temperature": 0, "seed": 3}


def plain(url: str, path: str, **body: Any) -> Any:
    request = urllib.request.Request(
        f"{url}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def main() -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # prices are not fetched
    import litellm

    url = sys.argv[1]
    where = {"model": "openai/model", "api_base": url, "api_key": "none"}
    chat: Any = litellm.completion(messages=MESSAGES, **where, **OPTIONS)
    events: Any = litellm.completion(messages=MESSAGES, stream=True, **where, **OPTIONS)
    streamed = "".join(event.choices[0].delta.content or "" for event in events)
    where["model"] = "text-completion-openai/model"
    text: Any = litellm.text_completion(prompt="Once", logprobs=2, **where, **OPTIONS)
    try:
        litellm.text_completion(prompt="Once", top_p=2.0, **where)
        refused = False
    except litellm.BadRequestError:
        refused = True
    answer = plain(url, "chat/completions", messages=MESSAGES, **OPTIONS)
    completion = plain(url, "completions", prompt="Once", logprobs=2, **OPTIONS)
    content = answer["choices"][0]["message"]["content"]
    found = {
        "chat": chat.choices[0].message.content,
        "stream": streamed,
        "usage": chat.usage.completion_tokens,
        "text": text.choices[0].text,
        "logprobs": text.choices[0].logprobs.token_logprobs,
        "refused": refused,
    }
    expected = {
        "chat": content,
        "stream": content,
        "usage": answer["usage"]["completion_tokens"],
        "text": completion["choices"][0]["text"],
        "logprobs": completion["choices"][0]["logprobs"]["token_logprobs"],
        "refused": True,
    }
    print(json.dumps({"found": found, "expected": expected}))


if __name__ == "__main__":
    main()
