"""What is refused, what fails, and what the client does about it by itself."""

import time

import openai

from world import API, CHAT, MODELS, RESPONSES, SLOWNESS, asked, case, client, equal, raises, script

# The kinds of error of the public APIs.
TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
HELLO = [{"role": "user", "content": "Hello"}]


def chat(it, model=CHAT, **more):
    return it.chat.completions.create(model=model, messages=HELLO, **more)


def respond(it, model=RESPONSES, **more):
    return it.responses.create(model=model, input="Hello", **more)


@case
def refusals():
    before = {model: len(asked(model)) for model in MODELS}
    cases = [
        (openai.AuthenticationError, 401, "invalid_api_key", "nobody", {}),
        (openai.PermissionDeniedError, 403, "quota_kind_not_allowed", "speech", {}),
        (openai.RateLimitError, 429, "quota_exhausted", "spent", {}),
        (openai.BadRequestError, 400, "model_not_found", "all", {"model": "gpt-none"}),
        (openai.BadRequestError, 400, "invalid_parameters", "all", {"extra_body": {"stream": "yes"}}),
        (openai.BadRequestError, 400, "invalid_parameters", "all", {"metadata": {"svc": {"routing": "x"}}}),
    ]
    for kind, status, code, key, more in cases:
        for ask in (chat, respond):
            error = raises(kind, lambda: ask(client(key), **more))
            # What this client calls the body is the `error` object; the document's `detail` is in the answer itself.
            detail = error.response.json()["detail"]
            equal((error.status_code, error.code, detail["code"]), (status, code, code), detail)
            equal(detail["context"]["request_id"], error.request_id)
            equal((error.type, error.param), (TYPES[status], detail["context"].get("field")))
            equal(error.body["message"], detail["message"])
            equal(detail["message"] in str(error), True, str(error))
    raises(openai.PermissionDeniedError, lambda: respond(client("chat")))
    error = raises(openai.BadRequestError, lambda: chat(client(), extra_body={"stream": "yes"}))
    equal((error.param, error.body["message"]), ("stream", "stream must be a boolean"))
    equal({model: len(asked(model)) for model in MODELS}, before, "no model was asked")


@case
def refusal_by_the_model():
    for model, ask in ((CHAT, chat), (RESPONSES, respond)):
        script(model, fault={"status": 400})
        error = raises(openai.BadRequestError, lambda: ask(client(), model))
        equal((error.body["message"], error.code, error.type), ("scripted refusal", "upstream_rejected", "scripted"))
        equal("scripted refusal" in str(error), True)


@case
def retries():
    faults = [({"rate_limited": {"retry_after": 1}}, 1.0), ({"status": 500}, 0.0)]
    for model, ask in ((CHAT, chat), (RESPONSES, respond)):
        for fault, least in faults:
            before = len(asked(model))
            script(model, fault=fault)
            begin = time.monotonic()
            equal(ask(client(max_retries=2), model).model, model)
            equal(len(asked(model)) - before, 2)
            # The model's Retry-After reaches the client, who keeps to it.
            equal(time.monotonic() - begin >= least, True)
    # A stream is asked for again as well.
    script(CHAT, fault={"status": 503})
    chunks = list(chat(client(max_retries=1), stream=True))
    equal(chunks[-1].choices[0].finish_reason, "stop")
    # And in the end the client says why.
    script(CHAT, fault={"status": 500})
    error = raises(openai.InternalServerError, lambda: chat(client()))
    equal((error.status_code, error.code, error.type), (502, "upstream_error", "server_error"))
    script(CHAT, fault={"rate_limited": {"retry_after": 7}})
    error = raises(openai.RateLimitError, lambda: chat(client()))
    equal((error.code, error.response.headers["retry-after"]), ("upstream_rate_limited", "7"))
    # That was for one request; others are asked.
    equal(chat(client()).model, CHAT)


@case
def time_out():
    for model, ask in ((CHAT, chat), (RESPONSES, respond)):
        script(model, fault={"stall": {"after": 0}})
        # Long enough for the request to get to the model.
        raises(openai.APITimeoutError, lambda: ask(client(timeout=0.3 * SLOWNESS), model))
        gone(model)
    raises(openai.APIConnectionError, lambda: chat(openai.OpenAI(base_url="http://127.0.0.1:9/v3", api_key="x", max_retries=0)))


@case
def failure_in_the_middle():
    for model in MODELS:
        for ask in (chat, respond):
            script(model, fault={"cut": {"after": 6}}, thinking="")
            said = []

            def read():
                for event in ask(client(), model, stream=True):
                    said.append(event)

            error = raises(openai.APIError, read)
            equal(len(said) > 2, True)
            equal((error.code, error.message), ("upstream_cut", "The model's answer was cut off"))


@case
def cancelling():
    for model in MODELS:
        for ask in (chat, respond):
            # More than is said until the model knows that nobody listens.
            script(model, text="word " * int(400 * SLOWNESS), between_delay_ms=20)
            with ask(client(), model, stream=True) as stream:
                for _, _ in zip(range(6), stream):
                    pass
            gone(model)


def gone(model):
    """The last request for a model ends because its client went away, within three seconds on a machine of ordinary speed."""
    until = time.monotonic() + 3 * SLOWNESS
    while time.monotonic() < until:
        if asked(model)[-1]["end"]:
            return equal(asked(model)[-1]["end"], "disconnected", API[model])
        time.sleep(0.01)
    raise AssertionError("the model goes on")
