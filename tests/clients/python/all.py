"""Every case of the official client for Python."""

import chat  # noqa: F401
import responses  # noqa: F401
import sockets  # noqa: F401
import speech  # noqa: F401
import troubles  # noqa: F401
import world

world.run()
