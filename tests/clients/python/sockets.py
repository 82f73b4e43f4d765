"""Responses over a WebSocket, over models of both APIs."""

import asyncio

import openai
from websockets.exceptions import InvalidStatus

from world import MODELS, RESPONSES, asked, case, client, equal, script


def made(connection, **body):
    """The events of a response that is made on a connection."""
    connection.response.create(**body)
    events = []
    for event in connection:
        events.append(event)
        if event.type in ("response.completed", "error"):
            return events


@case
def socket():
    with client().responses.connect() as connection:
        for model in MODELS:
            script(model, text="One two three.", thinking="Hm. ")
            events = made(connection, model=model, input="Hello")
            equal([event.sequence_number for event in events], list(range(len(events))))
            # Every event is of a class that the client knows.
            equal([event.type for event in events if type(event).__name__.startswith("BaseModel")], [])
            equal("".join(event.delta for event in events if event.type == "response.output_text.delta"), "One two three.")
            equal(events[-1].response.output_text, "One two three.")


@case
def socket_goes_on():
    with client().responses.connect() as connection:
        first = made(connection, model=RESPONSES, input="One", store=False)[-1].response
        made(connection, model=RESPONSES, input="Two", store=False, previous_response_id=first.id)
    roles = [item.get("role") for item in asked(RESPONSES)[-1]["body"]["input"]]
    equal(roles, ["user", "assistant", "user"])


@case
def socket_errors():
    with client().responses.connect() as connection:
        [event] = made(connection, model="nobody", input="Hello")
        equal(type(event).__name__, "ResponseWsError")
        equal((event.status, event.error.code, event.error.param), (400, "model_not_found", "model"))
        equal("x-request-id" in event.error.headers, True)
        equal(made(connection, model=RESPONSES, input="Hello")[-1].type, "response.completed")
    for key, status in (("nobody", 401), ("speech", 403)):
        try:
            with client(key).responses.connect():
                raise AssertionError("the connection was opened")
        except InvalidStatus as error:
            equal(error.response.status_code, status)


@case
def socket_async():
    async def words():
        async with client(kind=openai.AsyncOpenAI).responses.connect() as connection:
            script(RESPONSES, text="One two.")
            await connection.response.create(model=RESPONSES, input="Hello")
            async for event in connection:
                if event.type == "response.completed":
                    return event.response.output_text

    equal(asyncio.run(words()), "One two.")
