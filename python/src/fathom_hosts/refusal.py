"""The problem that a user can fix. It is shown as a message, never as a traceback."""


class Refusal(Exception):
    """Names the thing, the problem and the remedy, in this order.

    The problem is a clause about the thing. The remedy begins with a verb.
    """

    def __init__(self, thing: str, problem: str, remedy: str) -> None:
        super().__init__(f"{thing} {problem}: {remedy}")
