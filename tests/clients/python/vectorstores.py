"""The official client for Python as a judge of the service with vector stores that stands in for those outside."""

import json
import sys

import openai

WORLD = json.loads(sys.argv[1])
CLIENT = openai.OpenAI(base_url=WORLD["url"], api_key=WORLD["key"], max_retries=0)


def raises(kind, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError(f"{function} did not raise {kind}")


store = CLIENT.vector_stores.create(name="acme/manual", metadata={"colloquy_knowledge_base": "b1"})
assert store.object == "vector_store" and store.name == "acme/manual", store
assert store.metadata == {"colloquy_knowledge_base": "b1"}, store
assert CLIENT.vector_stores.retrieve(store.id) == store
names = [f"{number}.md" for number in range(3)]
files = [CLIENT.files.create(file=(name, name.encode(), "text/markdown"), purpose="assistants") for name in names]
assert [file.filename for file in files] == names
# The newest come first, over pages that the client turns itself.
listed = list(CLIENT.files.list(purpose="assistants", order="desc", limit=2))
assert [file.id for file in listed] == [file.id for file in reversed(files)], listed
assert [found.id for found in CLIENT.vector_stores.list(limit=1, order="desc")] == [store.id]
attributes = {"document_id": "d1", "name": "0.md"}
attached = CLIENT.vector_stores.files.create(store.id, file_id=files[0].id, attributes=attributes)
assert (attached.status, attached.attributes, attached.last_error) == ("completed", attributes, None), attached
assert CLIENT.vector_stores.files.retrieve(files[0].id, vector_store_id=store.id) == attached
raises(openai.NotFoundError, CLIENT.vector_stores.files.retrieve, files[1].id, vector_store_id=store.id)
raises(openai.NotFoundError, CLIENT.vector_stores.files.create, store.id, file_id="file-9999", attributes={})
long = {"name": "n" * 513}
raises(openai.BadRequestError, CLIENT.vector_stores.files.create, store.id, file_id=files[1].id, attributes=long)
assert CLIENT.vector_stores.files.delete(files[0].id, vector_store_id=store.id).deleted
assert all(CLIENT.files.delete(file.id).deleted for file in files)
raises(openai.NotFoundError, CLIENT.files.delete, files[0].id)
assert CLIENT.vector_stores.delete(store.id).deleted
raises(openai.NotFoundError, CLIENT.vector_stores.retrieve, store.id)
raises(openai.AuthenticationError, openai.OpenAI(base_url=WORLD["url"], api_key="wrong", max_retries=0).files.list, limit=1)
print("the service with vector stores is what the client expects")
