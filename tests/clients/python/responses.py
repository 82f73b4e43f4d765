"""Responses, over models of both APIs."""

import openai
from openai.types.responses import ResponseOutputItem

from chat import VERDICT, Verdict, Weather
from world import CHAT, MODELS, RESPONSES, asked, case, client, equal, raises, script

TOOL = openai.pydantic_function_tool(Weather, name="weather")["function"] | {"type": "function"}


@case
def response():
    for model in MODELS:
        script(model, text="Grüße, 你好 👋🏽")
        answer = client().responses.create(
            model=model, input="Hello", instructions="Be brief.", max_output_tokens=50, metadata={"trace": "t-1"}
        )
        equal(answer.output_text, "Grüße, 你好 👋🏽")
        equal((answer.status, answer.model, answer.error, answer.incomplete_details), ("completed", model, None, None))
        equal((answer.instructions, answer.max_output_tokens), ("Be brief.", 50))
        equal(answer.metadata, {"trace": "t-1"})
        equal((answer.usage.input_tokens, answer.usage.output_tokens), (12, 3))
        equal(answer.usage.input_tokens_details.cached_tokens, 4)


@case
def response_stream():
    for model in MODELS:
        script(model, text="One two three.", thinking="Hm. ", between_delay_ms=5)
        events = list(client().responses.create(model=model, input="Hello", stream=True))
        equal([event.sequence_number for event in events], list(range(len(events))))
        # Every event is of a class that the client knows.
        equal([event.type for event in events if type(event).__name__.startswith("BaseModel")], [])
        equal((events[0].type, events[1].type), ("response.created", "response.in_progress"))
        equal("".join(event.delta for event in events if event.type == "response.output_text.delta"), "One two three.")
        equal("".join(event.delta for event in events if event.type == "response.reasoning_text.delta"), "Hm. ")
        equal(events[-1].type, "response.completed")
        equal(events[-1].response.output_text, "One two three.")
        equal(events[-1].response.id, events[0].response.id)


@case
def response_stream_helper():
    for model in MODELS:
        script(model, text="One two three.", thinking="Hm. ")
        with client().responses.stream(model=model, input="Hello") as stream:
            said = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()
        equal(said, ["One ", "One two ", "One two three."])
        equal(final.output_text, "One two three.")
        equal([item.type for item in final.output], ["reasoning", "message"])
        equal(final.output[0].content[0].text, "Hm. ")


@case
def response_tools():
    for model in MODELS:
        for streamed in (False, True):
            script(model, text="", tool=["weather", '{"city": "Zürich"}'])
            question = {"model": model, "input": "Weather?", "tools": [TOOL]}
            if streamed:
                with client().responses.stream(**question) as stream:
                    kinds = [event.type for event in stream]
                    answer = stream.get_final_response()
                equal(kinds.count("response.function_call_arguments.done"), 1, kinds)
            else:
                answer = client().responses.parse(**question)
            [call] = answer.output
            equal((call.type, call.name, call.arguments), ("function_call", "weather", '{"city": "Zürich"}'))
            equal(call.parsed_arguments, {"city": "Zürich"})

            script(model, text="Sunny.")
            result = {"type": "function_call_output", "call_id": call.call_id, "output": "sun"}
            answer = client().responses.create(model=model, input=[result], previous_response_id=answer.id)
            equal(answer.output_text, "Sunny.")


@case
def response_structured_output():
    for model in MODELS:
        expected = Verdict(good=True, words=["fine", "schön"])
        script(model, text=VERDICT)
        equal(client().responses.parse(model=model, input="Well?", text_format=Verdict).output_parsed, expected)
        sent = asked(model)[-1]["body"]
        schema = sent["response_format"]["json_schema"] if model == CHAT else sent["text"]["format"]
        equal((schema["name"], schema["strict"]), ("Verdict", True))
        script(model, text=VERDICT)
        with client().responses.stream(model=model, input="Well?", text_format=Verdict) as stream:
            equal(stream.get_final_response().output_parsed, expected)


@case
def response_reasoning():
    for model in MODELS:
        script(model, text="Yes.", thinking="Hm, let me see. ")
        answer = client().responses.create(model=model, input="Well?", reasoning={"effort": "low"})
        equal([item.type for item in answer.output], ["reasoning", "message"])
        equal(answer.output[0].content[0].text, "Hm, let me see. ")
        equal((answer.output_text, answer.reasoning.effort), ("Yes.", "low"))
        sent = asked(model)[-1]["body"]
        equal(sent["reasoning_effort"] if model == CHAT else sent["reasoning"]["effort"], "low")


@case
def response_with_knowledge():
    documents = [{"title": "Lions", "text": "The lions eat meat at noon."}]
    character = {"personality": "You are Max.", "parameters": {"rag_enabled": True, "documents": documents}}
    question = {"input": "What do lions eat?", "metadata": {"svc": {"character": character}}}
    expected = ["reasoning", "file_search_call", "reasoning", "message"]
    for model in MODELS:
        answer = client().responses.create(model=model, **question)
        equal([item.type for item in answer.output], expected)
        equal(answer.output[0].summary[0].text, "Looking through the knowledge base...")
        search = answer.output[1]
        equal((search.status, search.results[0].filename), ("completed", "Lions"))
        equal(search.results[0].text, "The lions eat meat at noon.")
        equal(answer.output[2].summary[0].text, "Found 1 relevant documents, thinking...")
        with client().responses.stream(model=model, **question) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
        steps = ["in_progress", "searching", "completed"]
        equal([kind for kind in kinds if "file_search" in kind], [f"response.file_search_call.{step}" for step in steps])
        equal([item.type for item in final.output], expected)
        equal(final.output[1].results[0].filename, "Lions")


@case
def response_of_a_fallback():
    for streamed in (False, True):
        script(RESPONSES, fault={"status": 503})
        question = {"model": RESPONSES, "input": "Hello", "extra_body": {"fallback_model": CHAT}}
        if streamed:
            answer = list(client().responses.create(stream=True, **question))[-1].response
        else:
            answer = client().responses.create(**question)
        equal((answer.model, answer.output_text), (CHAT, "This is the scripted answer. It has two sentences."))


@case
def stored_responses():
    it = client()
    for model in MODELS:
        first = it.responses.create(model=model, input="I am Ann.")
        second = it.responses.create(model=model, input="Who am I?", previous_response_id=first.id)
        equal(second.previous_response_id, first.id)
        sent = str(asked(model)[-1]["body"])
        equal("I am Ann." in sent and "Who am I?" in sent, True, sent)
        read = it.responses.retrieve(second.id)
        equal((read.id, read.output_text), (second.id, second.output_text))
        equal([item.type for item in read.output], [item.type for item in second.output])
        events = list(it.responses.retrieve(second.id, stream=True))
        equal((events[0].type, events[-1].type), ("response.created", "response.completed"))
        equal(events[-1].response.id, second.id)
        equal(list(it.responses.retrieve(second.id, stream=True, starting_after=3)), events[4:])
        counted = it.responses.input_tokens.count(model=model, input="word " * 400)
        equal((counted.object, 450 < counted.input_tokens < 600), ("response.input_tokens", True))
        items = list(it.responses.input_items.list(second.id))
        equal((items[0].role, items[0].content[0].text), ("user", "Who am I?"))
        it.responses.delete(first.id)
        raises(openai.NotFoundError, lambda: it.responses.retrieve(first.id))
        error = raises(
            openai.BadRequestError,
            lambda: it.responses.create(model=model, input="Go on.", previous_response_id=first.id),
        )
        equal(error.code, "previous_response_not_found")
        kept = it.responses.create(model=model, input="Hello", store=False)
        raises(openai.NotFoundError, lambda: it.responses.retrieve(kept.id))


@case
def output_of_a_response_is_input_of_the_next():
    for model in MODELS:
        script(model, text="Four.", thinking="Two and two. ")
        first = client().responses.create(model=model, input="2 + 2?", store=False)
        items: list[ResponseOutputItem] = first.output
        turns = [{"role": "user", "content": "2 + 2?"}, *(item.model_dump(exclude_none=True) for item in items)]
        turns.append({"role": "user", "content": "Sure?"})
        script(model, text="Yes.")
        equal(client().responses.create(model=model, input=turns, store=False).output_text, "Yes.")
        sent = str(asked(model)[-1]["body"])
        equal("Four." in sent and "Sure?" in sent, True, sent)


@case
def compaction():
    for model in MODELS:
        script(model, text="A summary.")
        told = client().responses.compact(model=model, input=[{"role": "user", "content": "Hello"}])
        equal(type(told).__name__, "CompactedResponse")
        equal(told.object, "response.compaction")
        equal((told.output[0].role, told.output[-1].type), ("user", "compaction"))
        equal(type(told.output[-1]).__name__, "ResponseCompactionItem")
        equal((told.usage.input_tokens, told.usage.output_tokens), (12, 2))
        # What comes back is an input as it is.
        items = [item.model_dump(exclude_none=True, warnings=False) for item in told.output]
        answer = client().responses.create(model=model, input=items, store=False)
        equal(answer.status, "completed")
