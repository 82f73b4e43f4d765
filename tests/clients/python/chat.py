"""Chat completions, over models of both APIs."""

import asyncio

import openai
from pydantic import BaseModel

from world import CHAT, MODELS, RESPONSES, asked, case, client, equal, script

HELLO = [{"role": "user", "content": "Hello"}]


class Weather(BaseModel):
    """The weather of a city."""

    city: str


class Verdict(BaseModel):
    good: bool
    words: list[str]


VERDICT = '{"good": true, "words": ["fine", "schön"]}'
TOOL = openai.pydantic_function_tool(Weather, name="weather")


@case
def chat_completion():
    for model in MODELS:
        script(model, text="Grüße, 你好 👋🏽")
        raw = client().chat.completions.with_raw_response.create(model=model, messages=HELLO)
        answer = raw.parse()
        equal(answer.choices[0].message.content, "Grüße, 你好 👋🏽")
        equal(answer.choices[0].finish_reason, "stop")
        equal((answer.model, answer.object), (model, "chat.completion"))
        equal((answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens), (12, 3, 15))
        equal(answer.usage.prompt_tokens_details.cached_tokens, 4)
        equal(answer._request_id, raw.headers["x-request-id"])


@case
def chat_stream():
    for model in MODELS:
        script(model, text="One two three.", between_delay_ms=5)
        options = {"include_usage": True}
        chunks = list(client().chat.completions.create(model=model, messages=HELLO, stream=True, stream_options=options))
        equal(chunks[0].choices[0].delta.role, "assistant")
        equal("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), "One two three.")
        equal((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], 3))
        equal({chunk.usage for chunk in chunks[:-1]}, {None})
        equal(len({chunk.id for chunk in chunks}), 1)


@case
def chat_stream_helper():
    for model in MODELS:
        script(model, text="One two three.")
        with client().chat.completions.stream(model=model, messages=HELLO) as stream:
            events = list(stream)
            final = stream.get_final_completion()
        said = [event.snapshot for event in events if event.type == "content.delta" and event.delta]
        equal(said, ["One ", "One two ", "One two three."])
        equal([event.content for event in events if event.type == "content.done"], ["One two three."])
        equal((final.choices[0].message.content, final.choices[0].finish_reason), ("One two three.", "stop"))


@case
def chat_stream_of_the_asynchronous_client():
    async def read(model):
        async with client(kind=openai.AsyncOpenAI) as it:
            stream = await it.chat.completions.create(model=model, messages=HELLO, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    for model in MODELS:
        script(model, text="One two three.")
        equal(asyncio.run(read(model)), "One two three.")


@case
def chat_tools():
    for model in MODELS:
        for streamed in (False, True):
            script(model, text="", tool=["weather", '{"city": "Zürich"}'])
            question = {"model": model, "messages": HELLO, "tools": [TOOL], "tool_choice": "required"}
            if streamed:
                with client().chat.completions.stream(**question) as stream:
                    kinds = [event.type for event in stream]
                    answer = stream.get_final_completion()
                equal(kinds.count("tool_calls.function.arguments.done"), 1, kinds)
            else:
                answer = client().chat.completions.parse(**question)
            choice = answer.choices[0]
            equal(choice.finish_reason, "tool_calls")
            call = choice.message.tool_calls[0]
            equal((call.function.name, call.function.parsed_arguments), ("weather", Weather(city="Zürich")))
            sent = asked(model)[-1]["body"]
            tool = sent["tools"][0].get("function", sent["tools"][0])
            equal((tool["name"], tool["strict"], sent["tool_choice"]), ("weather", True, "required"))

            # The conversation goes on with what the client made of the answer.
            script(model, text="Sunny.")
            turn = {"role": "assistant", "tool_calls": [call.model_dump(include={"id": True, "type": True, "function": {"name", "arguments"}})]}
            result = {"role": "tool", "tool_call_id": call.id, "content": "sun"}
            answer = client().chat.completions.create(model=model, messages=[*HELLO, turn, result], tools=[TOOL])
            equal(answer.choices[0].message.content, "Sunny.")


@case
def chat_structured_output():
    for model in MODELS:
        question = {"model": model, "messages": HELLO, "response_format": Verdict}
        expected = Verdict(good=True, words=["fine", "schön"])
        script(model, text=VERDICT)
        answer = client().chat.completions.parse(**question)
        equal(answer.choices[0].message.parsed, expected)
        sent = asked(model)[-1]["body"]
        schema = sent["response_format"]["json_schema"] if model == CHAT else sent["text"]["format"]
        equal((schema["name"], schema["strict"]), ("Verdict", True))
        equal(sorted(schema["schema"]["properties"]), ["good", "words"])
        script(model, text=VERDICT)
        with client().chat.completions.stream(**question) as stream:
            equal(stream.get_final_completion().choices[0].message.parsed, expected)


@case
def chat_reasoning():
    for model in MODELS:
        script(model, text="Yes.", thinking="Hm, let me see. ")
        answer = client().chat.completions.create(model=model, messages=HELLO, reasoning_effort="low")
        equal(answer.choices[0].message.content, "Yes.")
        equal(answer.choices[0].message.model_extra["reasoning_content"], "Hm, let me see. ")
        equal(answer.usage.completion_tokens_details.reasoning_tokens, 4)
        sent = asked(model)[-1]["body"]
        equal(sent["reasoning_effort"] if model == CHAT else sent["reasoning"]["effort"], "low")

        script(model, text="Yes.", thinking="Hm, let me see. ")
        chunks = client().chat.completions.create(
            model=model, messages=HELLO, stream=True, extra_body={"reasoning": {"effort": "high"}}
        )
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        thought = "".join((delta.model_extra or {}).get("reasoning_content") or "" for delta in deltas)
        equal(thought, "Hm, let me see. ")
        sent = asked(model)[-1]["body"]
        equal(sent["reasoning_effort"] if model == CHAT else sent["reasoning"]["effort"], "high")


@case
def chat_with_a_character_and_a_fallback():
    # `metadata` is a map of strings to the client's types; at run time it sends what it is given.
    character = {"personality": "You are {{ robot_name }}.", "parameters": {"robot_name": "Max"}}
    metadata = {"trace": "t-1", "svc": {"character": character}}
    script(CHAT, fault={"status": 500})
    answer = client().chat.completions.create(
        model=CHAT, messages=HELLO, metadata=metadata, extra_body={"fallback_model": RESPONSES}
    )
    equal(answer.model, RESPONSES)
    sent = asked(RESPONSES)[-1]["body"]
    equal(sent["metadata"], {"trace": "t-1"})
    equal("You are Max." in sent["instructions"], True, sent)
    equal("fallback_model" in sent, False)
    # Or past its types.
    client().chat.completions.create(model=CHAT, messages=HELLO, extra_body={"metadata": {"svc": {"character": character}}})
    sent = asked(CHAT)[-1]["body"]
    equal("You are Max." in sent["messages"][0]["content"], True, sent)
    equal("metadata" in sent, False)


@case
def list_of_models():
    names = [model.id for model in client().models.list()]
    equal(set(MODELS) <= set(names), True, names)
    equal([model.id for model in client("chat").models.list()], [CHAT])
    for name in (CHAT, "builtin/extractive"):
        equal(client().models.retrieve(name).id, name)
