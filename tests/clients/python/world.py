"""The server and the scripted upstream, as the test that starts this tells of them, and the runner of the cases."""

import json
import os
import sys
import time
import traceback
import urllib.parse
import urllib.request

import openai

WORLD = json.loads(sys.argv[1])
CHAT, RESPONSES = "scripted-chat", "scripted-responses"
MODELS = (CHAT, RESPONSES)
# The API of the upstream that has a model.
API = {CHAT: "chat", RESPONSES: "responses"}

# How many times longer this machine takes than the one that deadlines are made for (`tests/run` measures it).
SLOWNESS = max(1.0, float(os.environ.get("COLLOQUY_TEST_SLOWNESS") or 1))

CASES = []
CLIENTS = {}


def case(function):
    """Marks a case; it passes unless it raises."""
    CASES.append(function)
    return function


def client(key="all", version="v3", kind=openai.OpenAI, **options):
    """A client as its users make it. It tries once, unless a case wants to see it try again."""
    options.setdefault("max_retries", 0)
    known = (key, version, kind, *options.items())
    if known not in CLIENTS or kind is openai.AsyncOpenAI:
        CLIENTS[known] = kind(base_url=f"{WORLD['url']}/{version}", api_key=WORLD["keys"].get(key, key), **options)
    return CLIENTS[known]


def script(model, **answer):
    """What the upstream answers the next request for a model, or of an API, with."""
    body = {"api": API.get(model, model), "script": answer}
    request = urllib.request.Request(
        f"{WORLD['control']}/script", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    urllib.request.urlopen(request).close()


def forget_scripts():
    """What a case before this one has left over is not for this one."""
    urllib.request.urlopen(urllib.request.Request(f"{WORLD['control']}/script", method="DELETE")).close()


def asked(model):
    """The requests for a model so far: `body`, and `end`: `answered`, `disconnected` or None."""
    query = urllib.parse.urlencode({"api": API.get(model, model)})
    with urllib.request.urlopen(f"{WORLD['control']}/asked?{query}") as answer:
        return json.load(answer)


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} is not {expected!r}")


def raises(kind, call):
    """The exception of exactly this class that a call raises."""
    try:
        call()
    except Exception as error:
        if type(error) is kind:
            return error
        raise
    raise AssertionError(f"no {kind.__name__} was raised")


def run():
    """Runs every case, says how each went, and ends the process."""
    failed = 0
    for function in CASES:
        begin = time.monotonic()
        forget_scripts()
        name = function.__name__.replace("_", " ")
        try:
            function()
            outcome = "ok    "
        except Exception:
            failed += 1
            outcome = "FAILED"
            traceback.print_exc(file=sys.stdout)
        print(f"python {openai.__version__} {outcome} {name} ({time.monotonic() - begin:.2f} s)", flush=True)
    sys.exit(1 if failed else 0)
