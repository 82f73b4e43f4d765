"""Speech: whole, streamed to a file, and refused."""

import pathlib
import tempfile

import openai

from world import asked, case, client, equal, raises, script

SAY = {"model": "colloquy-tts", "voice": "alloy", "input": "Hello there. This is a test."}
BEGINS = {"mp3": (b"\xff\xf3", b"\xff\xfb", b"ID3"), "opus": (b"OggS",), "wav": (b"RIFF",), "pcm": (b"",)}


@case
def speech_in_every_format():
    it = client(version="v2")
    for form, begins in BEGINS.items():
        answer = it.audio.speech.create(**SAY, response_format=form)
        sound = answer.read()
        equal(sound.startswith(begins) and len(sound) > 1_000, True, (form, sound[:4]))
        equal(answer.response.headers["x-svc-tts-request-id"].isdigit(), True)
    # Without a format it is mp3, here and there.
    equal(it.audio.speech.create(**SAY).read().startswith(BEGINS["mp3"]), True)
    equal(asked("speech")[-1]["body"]["voice"], "alloy")


@case
def speech_streamed_to_a_file():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "speech.wav"
        with client(version="v2").audio.speech.with_streaming_response.create(**SAY, response_format="opus") as answer:
            answer.stream_to_file(file)
        equal(file.read_bytes().startswith(b"OggS"), True)
        pieces = 0
        with client(version="v2").audio.speech.with_streaming_response.create(**SAY, speed=1.2) as answer:
            for piece in answer.iter_bytes(1_024):
                pieces += 1
        equal(pieces > 2, True, pieces)


@case
def speech_refused():
    it = client(version="v2")
    error = raises(openai.BadRequestError, lambda: it.audio.speech.create(**SAY | {"model": "tts-1", "input": ""}))
    equal(sorted(error.body["errors"]), ["input", "model"])
    error = raises(openai.AuthenticationError, lambda: client("nobody", "v2").audio.speech.create(**SAY))
    # The body is `{"error": TEXT}`, and this client makes the text the body.
    equal(error.body, "Invalid API key")
    raises(openai.PermissionDeniedError, lambda: client("text", "v2").audio.speech.create(**SAY))
    error = raises(openai.RateLimitError, lambda: client("spent", "v2").audio.speech.create(**SAY))
    equal(error.response.json()["code"], "QUOTA_EXHAUSTED")
    # The server itself asks a second time.
    for _ in range(2):
        script("speech", fault={"status": 500})
    raises(openai.InternalServerError, lambda: it.audio.speech.create(**SAY))
